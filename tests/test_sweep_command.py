"""``jurygraph sweep`` as its users call it: what it says before, what it prints after, how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.cli import app
from jurygraph.eval.figures.style import save
from jurygraph.eval.sweeping import sweep
from jurygraph.state.errors import UsageError
from typer.testing import CliRunner

from .loopback import Failure, Provider, Request, Text

DEMO = ("--data", "demo", "--aspect", "consistency", "--limit", "4")
PAID = ("--model", "openai:gpt-4o-mini", "--set", "structured=off")


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)], catch_exceptions=False)


def answer(request: Request) -> Text | Failure:
    return Text("It stays close to the source.\nScore: 4\nNO ISSUE")


def test_a_sweep_ends_in_a_table_files_and_a_place_to_read_on(tmp_path: Path) -> None:
    axes = ("--axis", "n=1,2", "--axis", "persona=strict,plain")
    done = command("debate", *axes, *DEMO, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    words = (
        "4 cells, 16 verdicts",
        "no language model",
        "gain in rho",
        "calls each",
        "saved",
        "paid in all: ",
    )
    for word in (*words, " show '"):
        assert word in done.output
    there = {
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    for name in (
        "sweep.json",
        "calls.sqlite",
        "tables/cells.md",
        "tables/cells.tex",
        "figures/agreement.svg",
    ):
        assert name in there
    assert "cells/n=2,persona=plain/run.json" in there


def test_a_cell_is_a_run_that_other_commands_read(tmp_path: Path) -> None:
    command("debate", "--axis", "n=1,2", *DEMO, "--out", tmp_path / "out")
    cell = tmp_path / "out" / "cells" / "n=2"
    shown = CliRunner().invoke(app, ["show", str(cell), "lighthouse-good"], catch_exceptions=False)
    assert shown.exit_code == 0 and "Scorer" in shown.output
    agreed = CliRunner().invoke(app, ["agree", str(cell / "results.jsonl"), "--json"], catch_exceptions=False)
    assert json.loads(agreed.output)["consistency"]["n"] == 4


def test_a_dry_run_says_what_it_takes_and_asks_nobody(provider: Provider, tmp_path: Path) -> None:
    told = command("debate", "--axis", "n=1,2,3", *DEMO, *PAID, "--dry-run", "--out", tmp_path / "out")
    assert told.exit_code == 0 and provider.requests == []
    assert not (tmp_path / "out").exists()
    said = " ".join(told.output.split())
    assert "one by one the cells take 24 to 60 calls" in said
    assert "and no fewer than 8" in said
    assert "to 28 calls" in said and "rehearsed on 4 items a cell with the offline judge" in said
    assert "that costs about $" in said


def test_the_plan_is_printed_before_the_first_call(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=lambda request: Failure(400, "The plan came too late."))
    done = command("single", "--axis", "repair=0,1", *DEMO, *PAID, "--out", tmp_path)
    assert done.exit_code == 3
    assert done.output.index("one by one the cells take") < done.output.index("failed: repair=0: ")
    assert "The plan came too late" in done.output


def test_what_failed_is_tried_again_and_nothing_else_is(provider: Provider, tmp_path: Path) -> None:
    fails = [True]
    provider.play(
        by=lambda request: (
            Failure(400, "No.") if fails[0] and len(provider.requests) == 2 else answer(request)
        )
    )
    arguments = ("single", "--axis", "repair=0,1", *DEMO, *PAID, "--out", tmp_path, "--concurrency", "1")
    first = command(*arguments)
    assert first.exit_code == 3 and "tries those that failed again" in " ".join(first.output.split())
    fails[0] = False
    before = len(provider.requests)
    again = command(*arguments)
    assert again.exit_code == 0, again.output
    assert len(provider.requests) - before <= 1


def test_a_spent_budget_is_exit_code_4(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=answer)
    arguments = ("single", "--axis", "temperature=0,1", *DEMO, *PAID, "--out", tmp_path)
    stopped = command(*arguments, "--max-calls", 5)
    assert stopped.exit_code == 4 and len(provider.requests) == 5
    said = " ".join(stopped.output.split())
    assert "the budget is reached: at most 5 calls" in said and "goes on with a higher limit" in said
    assert command(*arguments, "--max-calls", 8).exit_code == 0
    assert len(provider.requests) == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("debate", "--axis", "n=1,2"), "give a dataset"),
        (("debate", "--data", "demo"), "a sweep needs an axis"),
        (("--axis", "n=1,2", "--data", "demo"), "which protocol"),
        (("--plan", "cheese", "--data", "demo"), "no plan 'cheese'"),
        (("--plan", "jury", "--data", "demo"), "is for pairs of answers"),
        (("debate", "--axis", "rounds=1,2", "--data", "demo"), "rounds=1: debate has no setting 'rounds'"),
        (("debate", "--axis", "n=1", "--data", "demo", "--max-cost", "1", "--model", "openai:mine"), "price"),
    ],
)
def test_bad_input_is_told_before_any_call(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        command(*arguments)
    assert not list(tmp_path.rglob("*.jsonl"))


def test_figures_show_a_line_for_each_combination_of_the_other_axes(tmp_path: Path) -> None:
    done = sweep(
        "debate",
        {"n": [3, 1], "persona": ["strict", "plain"]},
        "demo",
        aspects=["consistency", "relevance"],
        limit=16,
    )
    drawn = done.figures()
    assert list(drawn) == ["agreement", "aspects"]
    lines = drawn["agreement"].axes[0].get_lines()
    assert [line.get_label() for line in lines] == ["strict", "plain"]
    for line in lines:
        assert np.asarray(line.get_xdata()) == pytest.approx([1.0, 3.0], abs=0.1)
    at_three = done.measured()[0].figures
    value = next(figure.value for place, figure in at_three.items() if place == ("average", "spearman"))
    assert np.asarray(lines[0].get_ydata())[1] == value
    across = done.figures(along="persona")["agreement"]
    assert len(across.axes[0].patches) == 4
    for name in ("a.svg", "a.png", "a.pdf"):
        assert save(across, tmp_path / name).stat().st_size > 1000
    with pytest.raises(UsageError, match="no axis 'tau'; it has n, persona"):
        done.figures(along="tau")


def test_without_labels_there_are_tables_and_no_figures(tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"id": "a", "source": "It rained all day.", "candidate": "Rain."}))
    done = command(
        "debate", "--axis", "n=1,2", "--data", bare, "--aspect", "fluency", "--out", tmp_path / "out"
    )
    assert done.exit_code == 0, done.output
    assert "calls each" in done.output and "figures:" not in done.output
    assert not (tmp_path / "out" / "figures").exists()
