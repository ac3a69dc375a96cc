"""Test ``run --pilot``: a few labelled items say how many members are worth their cost."""

from pathlib import Path

import pytest

from .loopback import Provider
from .processes import Command
from .sample_data import read_lines, write_lines

RUN = ("run", "--data", "demo", "--aspect", "consistency", "--pilot", "30")


@pytest.mark.slow
def test_a_pilot_of_several_judges(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("run", "single,debate", *RUN[1:], "--of-group", "1", "--out", "pilot")
    assert command(*run) == 0, command.errors
    lines = read_lines(tmp_path / "pilot" / "results.jsonl")
    assert len({line["item"] for line in lines}) == 30
    said = " ".join(command.printed.split())
    assert said.count("worth the cost") == 1
    assert "see the panel of the pilot" in said
    # The same statement as that of the command panel.
    assert command("panel", "pilot", "--all") == 0, command.errors
    start = said.index("further member")
    assert said[start : start + 50] in " ".join(command.printed.split())


def test_a_pilot_of_the_members_of_one_panel(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(*RUN[:1], "ensemble", *RUN[1:], "--out", "pilot") == 0, command.errors
    # The sample has whole groups, so few of them.
    assert "groups are too few to say how many members are worth their cost" in command.printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("single",), "single is one judge: give several models"),
        (("debate",), "debate is one judge"),
        (("ensemble", "--set", "stop=decided"), "ensemble is one judge"),
        (("single,debate", "--limit", "9"), "--pilot and --limit exclude each other"),
        (("single,debate", "--sample", "9"), "--pilot and --sample exclude each other"),
        (("single,debate", "--shard", "1/2"), "--pilot and --shard exclude each other"),
    ],
)
def test_a_pilot_that_measures_nothing_is_refused_before_any_call(
    command: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "pilot"
    assert command(*RUN[:1], *words, *RUN[1:], "--out", out) == 2
    assert message in " ".join(command.errors.split())
    assert not (out / "results.jsonl").exists()


def test_a_pilot_needs_labels_and_data(command: Command, tmp_path: Path) -> None:
    items = [{"id": str(n), "source": "A.", "candidate": "A."} for n in range(5)]
    data = write_lines(tmp_path / "mine.jsonl", items)
    run = ("run", "single,debate", "--aspect", "fluency", "--pilot", "4")
    assert command(*run, "--data", data, "--out", tmp_path / "out") == 2
    assert "--pilot needs human labels" in " ".join(command.errors.split())
    assert command("run", "single,debate", "--pilot", "4") == 2
    assert "--pilot only applies to a dataset" in " ".join(command.errors.split())
    assert command("run", "single,debate", "--data", "demo", "--pilot", "1") == 2


@pytest.mark.slow
def test_a_pilot_s_replies_are_not_paid_for_again(
    provider: Provider, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    provider.play(by=lambda request: f"So.\nScore: {1 + len(request.user) % 5}")
    items = [
        {"id": str(n), "source": "A.", "candidate": "B" * n + ".", "human": {"fluency": n % 5 + 1}}
        for n in range(1, 13)
    ]
    data = write_lines(tmp_path / "mine.jsonl", items)
    run = ("run", "ensemble", "--data", data, "--aspect", "fluency", "--set", "structured=off")
    models = ("--model", "openai:gpt-a", "--role-model", "referee_2=openai:gpt-b")
    kept = ("--journal", "calls.sqlite")
    assert command(*run, *models, *kept, "--pilot", "4", "--out", "pilot") == 0, command.errors
    assert "4 items are too few to say how many members are worth" in command.printed
    assert len(provider.requests) == 4 * 3
    assert command(*run, *models, *kept, "--out", "whole") == 0, command.errors
    assert len(provider.requests) == 12 * 3
