"""The command line as its users have it: its output, its exit code; also as a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import click
import pytest
from jurygraph import __version__
from jurygraph.eval.cli.app import COMMANDS, app
from jurygraph.state import UsageError
from typer.main import get_command
from typer.testing import CliRunner

from .processes import JURYGRAPH, command_line, in_this_process


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    done = in_this_process(
        "run", "debate,multiagent", "--data", "demo", "--limit", "4", "--out", "out", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    return folder


def test_a_run_ends_in_the_sentences_of_its_report_and_a_place_to_look_further(finished: Path) -> None:
    printed = (finished / "stdout").read_text()
    # Without a terminal there is neither progress nor colour.
    assert ((finished / "stderr").read_text(), "\x1b[" in printed) == ("", False)
    for words in ("Verdicts", "no language model", "no_issue"):
        assert words in printed
    assert " show out lighthouse-" in printed
    assert " report out --html report.html --open" in printed
    reported = in_this_process("report", "out", cwd=finished).stdout.splitlines()
    assert reported[0] in printed.splitlines()
    assert reported[1] in printed.splitlines()


def test_the_same_command_again_does_nothing_twice(finished: Path) -> None:
    before = (finished / "out" / "results.jsonl").read_bytes()
    again = in_this_process(
        "run", "debate,multiagent", "--data", "demo", "--limit", "4", "--out", "out", cwd=finished
    )
    assert again.returncode == 0
    assert (finished / "out" / "results.jsonl").read_bytes() == before


def test_show_reads_a_debate_aloud(finished: Path) -> None:
    show = ("show", "out", "lighthouse-good", "--aspect", "fluency")
    done = in_this_process(*show, cwd=finished)
    assert done.returncode == 0
    for words in ("Skarrow Point", "candidate", "Scorer", "Critic", "Verdict", "multiagent · fluency"):
        assert words in done.stdout
    one = in_this_process(*show, "--protocol", "debate", cwd=finished)
    assert "multiagent" not in one.stdout
    # Protocols stand beside each other where there is room.
    wide = in_this_process(*show, cwd=finished, COLUMNS="180").stdout.splitlines()
    assert any("debate · fluency" in line and "multiagent · fluency" in line for line in wide)
    unknown = in_this_process("show", "out", "nobody", cwd=finished)
    assert (unknown.returncode, "its items are lighthouse-good" in unknown.stderr) == (2, True)


BAD = {
    "no protocol": (("run", "", "--data", "demo"), "no protocol given; protocols are baseline, "),
    "no protocol, in a list": (("run", " , ", "--data", "demo"), "no protocol given; protocols are "),
    "unknown protocol": (("run", "debat", "--data", "demo"), "known are "),
    "unknown dataset": (("run", "debate", "--data", "dmeo"), "datasets are demo, demo-pairs"),
    "no such file": (("run", "debate", "--data", "no.jsonl"), "no.jsonl: cannot be read"),
    "aspect of pairs": (
        ("run", "debate", "--data", "demo-pairs", "--aspect", "wit"),
        "--aspect only applies to scores",
    ),
    "no JSON": (
        ("run", "chateval", "--data", "demo", "--set", "roles=[critic]"),
        "not valid JSON (Expecting value: line 1 column 2 (char 1)); write a list as",
    ),
    "whole and parts": (
        ("run", "repeated", "--data", "demo", "--set", "inner.n=1", "--set", 'inner={"n": 2}'),
        "parts of inner are already set",
    ),
    "no pair": (("run", "debate", "--data", "demo", "--set", "n"), "'n' is not of the form --set KEY=VALUE"),
    "zero items": (("run", "debate", "--data", "demo", "--limit", "0"), "--limit"),
    "no data": (("run", "debate"), "--data"),
    "no run": (("show", "nowhere", "x"), "holds no run"),
    "no graph": (("graph", "debat"), "known are "),
    **{
        f"a limit of {limit}": (("run", "debate", "--data", "demo", "--max-cost", limit), "max_cost must be")
        for limit in ("nan", "inf", "0", "-1")
    },
}


@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD)
def test_bad_usage_is_exit_code_2_and_a_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = in_this_process(*arguments, cwd=tmp_path)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_warning_is_one_line_before_any_call(tmp_path: Path) -> None:
    item = {"id": "a", "source": "Do fish sleep?", "candidate": "They rest.", "fact": "Fish rest."}
    (tmp_path / "own.jsonl").write_text(json.dumps(item) + "\n")
    command = ("run", "debate", "--data", "own.jsonl", "--aspect", "coherence", "--dry-run")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = in_this_process(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("Warning: ")
    assert "coherence is rated as topical-chat/coherence" in line


def test_lists_and_objects_may_be_set_as_json(tmp_path: Path) -> None:
    roles = 'roles=["critic", {"name": "Nurse", "description": "You look for harm."}]'
    command = ("run", "chateval", "--data", "demo", "--limit", "1", "--aspect", "fluency", "--out", "out")
    done = in_this_process(*command, "--set", roles, "--set", "turns=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [line] = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert len(json.loads(line)["transcript"]) == 2


def test_help_of_each_command_has_an_example_and_that_of_run_says_how_it_ends(tmp_path: Path) -> None:
    listed = in_this_process("--help", cwd=tmp_path, COLUMNS="80").stdout.splitlines()
    assert max(map(len, listed)) <= 80
    for name, command in COMMANDS.items():
        assert any(name in line and command.summary in line for line in listed), name
        shown = in_this_process(name, "--help", cwd=tmp_path, COLUMNS="80").stdout
        assert f"Example: {example(name)}" in " ".join(shown.split())
        assert max(map(len, shown.splitlines())) <= 80
        assert "<bool>" not in shown
    printed = " ".join(in_this_process("run", "--help", cwd=tmp_path, COLUMNS="120").stdout.split())
    for words in (
        "The same command with the same --out resumes a run that stopped",
        "Ctrl-C or SIGTERM stops the run once the calls in flight have finished",
        "0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 5 a gate is not met, "
        "130 interrupted.",
        *("Concurrency and limits", "Budget", "Output and cache"),
    ):
        assert words in printed


def example(name: str) -> str:
    return f"jurygraph {name} {COMMANDS[name].example}".strip()


@pytest.mark.slow
def test_the_examples_in_the_help_work(tmp_path: Path) -> None:
    for name in COMMANDS:
        program, *arguments = example(name).split()
        assert (program, arguments[0]) == ("jurygraph", name)
        done = in_this_process(*arguments, cwd=tmp_path)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)


def test_brackets_are_printed_and_are_no_markup(tmp_path: Path) -> None:
    group: Any = get_command(app)
    for name in COMMANDS:
        _, command, _ = group.resolve_command(click.Context(group), [name])
        shown = in_this_process(name, "--help", cwd=tmp_path, COLUMNS="2000").stdout
        for told in filter(None, (command.help, *(getattr(param, "help", None) for param in command.params))):
            for words in re.findall(r"\S*\[\S*\]", told.replace("\\[", "[")):
                assert words in shown, (name, words)
    assert 'pip install "jurygraph[studio]"' in in_this_process("studio", "--help", cwd=tmp_path).stdout
    assert "pip install 'jurygraph[hub]'" in in_this_process("datasets", cwd=tmp_path).stdout


@pytest.mark.parametrize("option", ["--overwrite", "--replace"])
def test_an_option_that_was_renamed_keeps_its_old_name(option: str, tmp_path: Path) -> None:
    run = command_line(f"run single --data demo --limit 1 --aspect fluency --out {tmp_path / 'out'}")
    assert CliRunner().invoke(app, run).exit_code == 0
    other = [*run, "--set", "temperature=0.5"]
    refused = CliRunner().invoke(app, other)
    assert isinstance(refused.exception, UsageError)
    assert "--overwrite" in str(refused.exception)
    assert CliRunner().invoke(app, [*other, option]).exit_code == 0
    assert "--replace" not in CliRunner().invoke(app, ["run", "--help"]).output


@pytest.mark.slow
def test_drawing(tmp_path: Path) -> None:
    text = in_this_process("graph", "debate", cwd=tmp_path)
    assert "commander -. &nbsp;critic_speaks&nbsp; .-> critic;" in text.stdout
    picture = in_this_process("graph", "single", "--svg", "single.svg", cwd=tmp_path)
    assert picture.returncode == 0
    assert (tmp_path / "single.svg").read_text().startswith("<svg")


def test_lists(tmp_path: Path) -> None:
    listed = in_this_process("protocols", cwd=tmp_path, COLUMNS="200").stdout
    for words in ("debate", "multiagent", "compare", "tie_breaker", "persona=strict", "Kim et al. 2024"):
        assert words in listed
    assert in_this_process("--version", cwd=tmp_path).stdout == f"jurygraph {__version__}\n"
    listed = in_this_process("datasets", cwd=tmp_path, COLUMNS="200").stdout
    for words in ("demo-pairs", "topical-chat", "summeval", "bundled", "mean of 3 experts", "CC-BY-4.0"):
        assert words in listed
    for width in (110, 115, 120):
        for command in ("protocols", "datasets"):
            lines = in_this_process(command, cwd=tmp_path, COLUMNS=str(width)).stdout.splitlines()
            assert max(map(len, lines)) <= width


@pytest.mark.slow
def test_a_reader_who_has_seen_enough_is_no_error(finished: Path) -> None:
    show = " ".join(f"'{part}'" for part in (*JURYGRAPH, "show", "out", "lighthouse-good"))
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{show} | head -1"],
        cwd=finished,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr
