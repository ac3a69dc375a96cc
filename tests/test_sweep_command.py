"""Test ``jurygraph sweep`` as users see it: its announcement, output, and end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.cli.app import app
from jurygraph.eval.experiments import sweep, sweep_result
from jurygraph.eval.report.charts import Panel, columns, lines
from jurygraph.eval.statistics.resampling import Statistic
from jurygraph.state.errors import UsageError
from typer.testing import CliRunner

from .loopback import Failure, Provider, Request, Text
from .sample_data import numbered, read_lines

DEMO = ("--data", "demo", "--aspect", "consistency", "--limit", "4")
PAID = ("--model", "openai:gpt-4o-mini", "--set", "structured=off")


@pytest.fixture(autouse=True)
def _in_one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures in one format; the ready-made plans test all formats."""
    monkeypatch.setattr(sweep_result, "DRAWN", ("svg",))


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)], catch_exceptions=False)


def answer(request: Request) -> Text | Failure:
    return Text("It stays close to the source.\nScore: 4\nNO ISSUE")


def test_a_sweep_ends_in_a_table_and_files_and_its_cells_are_runs(tmp_path: Path) -> None:
    axes = ("--axis", "n=1,2", "--axis", "persona=strict,plain")
    out = tmp_path / "out"
    done = command("debate", *axes, *DEMO, "--out", out)
    assert done.exit_code == 0, done.output
    said = (
        "4 cells, 16 verdicts",
        "not from a language model",
        "gain in rho",
        "total usage: ",
        " show ",
    )
    assert [words for words in said if words not in done.output] == []

    written = "sweep.json calls.sqlite tables/cells.md tables/cells.tex figures/agreement.svg"
    cell = out / "cells" / "n=2,persona=plain"
    assert all((out / name).is_file() for name in written.split()) and (cell / "run.json").is_file()
    shown = CliRunner().invoke(app, ["show", str(cell), "lighthouse-good"], catch_exceptions=False)
    assert shown.exit_code == 0 and "Scorer" in shown.output
    agreed = CliRunner().invoke(
        app, ["agree", str(cell / "results.jsonl"), "--json"], catch_exceptions=False
    )
    assert json.loads(agreed.output)["consistency"]["n"] == 4


def test_without_labels_there_are_tables_and_no_figures(tmp_path: Path) -> None:
    bare = numbered(tmp_path, 1)
    asked = ("--data", bare, "--aspect", "fluency", "--out", tmp_path / "out")
    done = command("debate", "--axis", "n=1,2", *asked)
    assert done.exit_code == 0, done.output
    assert "calls each" in done.output and "figures:" not in done.output
    assert not (tmp_path / "out" / "figures").exists()
    before, _, _ = done.output.partition("run one by one")
    assert (
        "no agreement with humans will be shown: mine.jsonl has fewer than 2 human labels for"
        in " ".join(before.split())
    )
    with pytest.raises(
        UsageError, match=r"--metric spearman needs human labels, but .*--columns human\.fluency="
    ):
        command(
            "debate",
            "--axis",
            "n=1,2",
            *asked[:4],
            "--metric",
            "spearman",
            "--out",
            tmp_path / "other",
        )
    assert not (tmp_path / "other").exists()


def test_what_stands_under_a_narrow_table_is_as_wide_as_the_screen() -> None:
    done = command("single", "--axis", "temperature=0", *DEMO[:4])
    lines = done.output.splitlines()
    start = next(
        number
        for number, line in enumerate(lines)
        if line.startswith("Brackets: 95 % confidence interval")
    )
    note = [line.strip() for line in lines[start : start + 2]]
    assert " ".join(note).endswith("bootstrap over groups or items (1,000 resamples, seed 0)")
    assert len(note[0]) > 100


@pytest.mark.slow
def test_a_sweep_ends_with_the_sentence_that_heads_a_report_on_its_cells(tmp_path: Path) -> None:
    sweeping = ("debate", "--axis", "n=1,2", *DEMO[:4], "--out", tmp_path / "out")
    done = command(*sweeping)
    cells = [str(folder) for folder in sorted((tmp_path / "out" / "cells").iterdir())]
    report = CliRunner().invoke(app, ["report", *cells], catch_exceptions=False).output.splitlines()
    record = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert report[0] == record["headline"]
    # A long answer is printed with each sentence on a line of its own.
    assert record["answers"][0] in " ".join(report)
    printed = done.output.splitlines()
    assert report[0] in printed
    assert record["answers"][0] in " ".join(printed)
    # A sweep that is taken up again reads its record, and ends with the same.
    assert report[0] in command(*sweeping).output.splitlines()


def test_a_dry_run_says_what_it_takes_and_asks_nobody(provider: Provider, tmp_path: Path) -> None:
    told = command(
        "debate", "--axis", "n=1,2,3", *DEMO, *PAID, "--dry-run", "--out", tmp_path / "out"
    )
    assert told.exit_code == 0 and provider.requests == []
    assert not (tmp_path / "out").exists()
    said = " ".join(told.output.split())
    for words in (
        "one by one, the cells take 24 to 60 calls",
        "and at least 8",
        "to 28 calls",
        "estimated by a dry run of 4 items per cell with the offline judge",
        "expected cost: about $",
    ):
        assert words in said


def test_a_judge_who_fails_and_one_who_says_always_the_same(
    provider: Provider, tmp_path: Path
) -> None:
    """The plan is printed before the first call."""
    provider.play(by=lambda request: Failure(400) if request.model == "broken" else answer(request))
    axis = ("--axis", "model=openai:gpt-4o-mini,openai:broken")
    done = command("single", *axis, *DEMO, "--set", "structured=off", "--out", tmp_path / "out")
    assert done.exit_code == 3, done.output
    said = " ".join(done.output.split())
    failed = "failed: model=openai:broken: lighthouse-good and 3 more: "
    assert -1 < said.find("one by one, the cells take") < said.find(failed)
    assert (
        "consistency rho" in said and " show " in said and "cells/model=openai-gpt-4o-mini " in said
    )


def test_recorded_replies_are_swept_over_without_a_call(tmp_path: Path) -> None:
    run = CliRunner().invoke(
        app, ["run", "debate", "--set", "n=3", *DEMO, "--out", str(tmp_path / "run")]
    )
    assert run.exit_code == 0, run.output
    swept = ("debate", "--axis", "n=1,2,3", "--aspect", "consistency")
    again = command(*swept, "--replies", tmp_path / "run", "--out", tmp_path / "again")
    assert again.exit_code == 0 and "total usage: 0 calls" in again.output, again.output
    anew = command(*swept, "--data", "demo", "--limit", 4, "--out", tmp_path / "anew")
    assert anew.exit_code == 0
    for cell in ("n=1", "n=2", "n=3"):
        scores = [
            {row["item"]: row["score"] for row in read_lines(tmp_path / name / "cells" / cell)}
            for name in ("again", "anew")
        ]
        assert len(scores[0]) == 4 and scores[0] == scores[1]
    ready = command("--plan", "rounds", "--replies", tmp_path / "run", "--dry-run")
    assert "5 cells, 20 verdicts to judge, no model call" in ready.output
    alone = command("debate", "--axis", "n=1", "--replies", tmp_path / "run", "--dry-run")
    assert "\n1 cell, " in alone.output
    with pytest.raises(UsageError, match=r"persona=plain: .*there would have been other replies"):
        command("debate", "--axis", "persona=plain", "--replies", tmp_path / "run")


@pytest.mark.slow
def test_a_spent_budget_is_exit_code_4(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=answer)
    arguments = ("single", "--axis", "temperature=0,1", *DEMO, *PAID, "--out", tmp_path)
    stopped = command(*arguments, "--max-calls", 5)
    assert stopped.exit_code == 4 and len(provider.requests) == 5
    said = " ".join(stopped.output.split())
    assert (
        "the budget is reached: at most 5 calls" in said and "resumes with a higher limit" in said
    )
    assert command(*arguments, "--max-calls", 8).exit_code == 0
    assert len(provider.requests) == 8


@pytest.mark.parametrize(("arguments", "words"), [
    ("debate --axis n=1,2", "give a dataset"), ("debate --data demo", "a sweep needs an axis"),
    ("--axis n=1,2 --data demo", "no protocol given"),
    ("--plan cheese --data demo", "no plan 'cheese'; plans are rounds, personas"),
    ("--plan jury --data demo", "the plan jury is for pairs of answers.*mt-bench, faireval"),
    ("rounds --data demo", "rounds is a ready-made plan: give it as --plan rounds"),
    ("debate --axis rounds=1,2 --data demo", "rounds is not a setting of debate; did you mean n?"),
    ("debate --axis n=1,2 --data demo --metric kappa", "kappa measures comparisons"),
    ("debate --axis n=1 --data demo --max-cost 1 --model openai:mine", "price"),
])  # fmt: skip
def test_bad_input_is_told_before_any_call(
    arguments: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        command(*arguments.split())
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.slow
def test_figures_show_a_line_for_each_combination_of_the_other_axes(tmp_path: Path) -> None:
    axes: Any = {"n": [3, 1], "persona": ["strict", "plain"]}
    done = sweep("debate", axes, "demo", aspects=["consistency", "relevance"], limit=16)
    drawn = done.figures()
    assert list(drawn) == ["agreement", "aspects"]
    drawn_lines = drawn["agreement"].axes[0].get_lines()
    assert [line.get_label() for line in drawn_lines] == ["strict", "plain"]
    for line in drawn_lines:
        assert np.asarray(line.get_xdata()) == pytest.approx([1.0, 3.0], abs=0.1)
    at_three = {tuple(key): figure.value for key, figure in done.measured()[0].figures.items()}
    assert np.asarray(drawn_lines[0].get_ydata())[1] == at_three["average", "spearman"]
    across = done.figures(along="persona")["agreement"]
    assert len(across.axes[0].patches) == 4
    with pytest.raises(UsageError, match="no axis 'tau'; it has n, persona"):
        done.figures(along="tau")


def test_legends_stay_inside_and_places_that_grow_by_factors_stand_apart() -> None:
    names = [f"a judge with a rather long name, number {number}" for number in range(5)]
    found = {name: [Statistic(0.5, 0.4, 0.6)] * 3 for name in names}
    panel = Panel("", "accuracy", found)
    for figure in (
        lines([panel], [0.01, 0.1, 1.0], "tau"),
        columns([panel], ["a", "b", "c"], "roles"),
    ):
        figure.draw_without_rendering()
        left, right = figure.legends[0].get_window_extent().intervalx
        assert left >= 0 and right <= figure.bbox.width
    assert lines([panel], [0.01, 0.1, 1.0], "tau").axes[0].get_xscale() == "log"
    assert lines([panel], [1, 2, 5], "n").axes[0].get_xscale() == "linear"
