"""Test ``run --pilot``: a few labelled items say how many members are worth their cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.cli.pilot import pilots_of
from jurygraph.eval.datasets.reading import ReadingNotice
from jurygraph.eval.datasets.selection import Sample

from .loopback import Provider
from .processes import Command
from .sample_data import read_lines, write_lines

TELLS = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")
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
    run = (*RUN[:1], "ensemble", *RUN[1:], "--of-group", "12", "--out", "pilot")
    assert command(*run) == 0, command.errors
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


def partly_labelled(tmp_path: Path, labelled: int, total: int = 12) -> Path:
    """Write items of which every third has a label, until there are enough."""
    items: list[dict[str, Any]] = []
    for n in range(1, total + 1):
        items.append({"id": f"item-{n}", "source": "A.", "candidate": "B" * n + "."})
        if n % 3 == 0 and n // 3 <= labelled:
            items[-1]["human"] = {"fluency": n % 5 + 1}
    return write_lines(tmp_path / "mine.jsonl", items)


PARTLY = ("run", "single,debate", "--aspect", "fluency", "--data")


@TELLS
def test_a_pilot_judges_labelled_items_and_names_the_others(
    command: Command, tmp_path: Path
) -> None:
    data = partly_labelled(tmp_path, labelled=4)
    out = tmp_path / "out"
    assert command(*PARTLY, data, "--pilot", "3", "--out", out) == 0, command.errors
    judged = {line["item"] for line in read_lines(out / "results.jsonl")}
    assert len(judged) == 3
    assert judged < {"item-3", "item-6", "item-9", "item-12"}
    assert (
        "mine.jsonl: the pilot leaves out 8 of 12 items, which do not have a human label for "
        "fluency: item-1, item-2, item-4 and 5 more"
    ) in " ".join(command.errors.split())
    manifest = json.loads((out / "run.json").read_text(encoding="utf-8"))
    assert manifest["data"]["sample"]["labelled"] == ["fluency"]
    assert "sample:seed 0 labelled" in manifest["signatures"]["single"].replace(" spread", "")
    # The same items again, also from Python.
    drawn = load_dataset(data).drawn(Sample(**manifest["data"]["sample"]))
    assert {item.id for item in drawn} == judged


@TELLS
def test_a_pilot_larger_than_the_labels_judges_all_labelled_items(
    command: Command, tmp_path: Path
) -> None:
    data = partly_labelled(tmp_path, labelled=2)
    out = tmp_path / "out"
    assert command(*PARTLY, data, "--pilot", "5", "--out", out) == 0, command.errors
    assert {line["item"] for line in read_lines(out / "results.jsonl")} == {"item-3", "item-6"}
    words = "the pilot has 2 items instead of 5, because no more have a human label for fluency"
    assert f"mine.jsonl: {words}" in " ".join(command.errors.split())


def test_a_pilot_with_one_label_is_refused_by_name(command: Command, tmp_path: Path) -> None:
    data = partly_labelled(tmp_path, labelled=1)
    assert command(*PARTLY, data, "--pilot", "5", "--out", tmp_path / "out") == 2
    said = " ".join(command.errors.split())
    assert "1 of 12 items of mine.jsonl have a human label for fluency" in said
    assert not (tmp_path / "out").exists()


def test_a_pilot_of_comparisons_leaves_out_those_without_a_winner(tmp_path: Path) -> None:
    pair = {"answer_1": "So.", "answer_2": "Because of rain."}
    items = [
        {"id": str(n), "question": f"Why {n}?", **pair, **({"human": "2"} if n % 2 else {})}
        for n in range(8)
    ]
    data = load_dataset(write_lines(tmp_path / "pairs.jsonl", items))
    words = "leaves out 4 of 8 items, which do not have a human label: 0, 2, 4 and 1 more"
    with pytest.warns(ReadingNotice, match=words):
        [drawn] = pilots_of([data], [], Sample(3, seed=0))
    assert {item.id for item in drawn} < {"1", "3", "5", "7"}
    assert len(drawn) == 3


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
