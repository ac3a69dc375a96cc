"""Test that the same rows and seed have the same interval everywhere, as declared metrics do."""

import csv
import json
import random
import re
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.cli.app import app
from jurygraph.eval.experiments.cell_metrics import measure
from jurygraph.eval.experiments.cells import Cell, CellResult
from jurygraph.eval.results.agreement import Agreement, PreferenceAgreement, agreement
from jurygraph.eval.results.evaluation import Evaluation
from jurygraph.eval.results.folder import read_manifest
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.metrics import METRICS, of_kind
from jurygraph.eval.statistics.resampling import Statistic
from typer.testing import CliRunner

from .run_folders import compared, noisy, run_folder


def pairs() -> list[Result]:
    draw = random.Random(1)
    found = []
    for number in range(60):
        human = draw.choice(["1", "2", "tie"])
        winner = human if draw.random() < 0.6 else draw.choice(["1", "2", "tie"])
        found.append(compared(f"i{number}", winner=winner, human=human, group=f"g{number % 15}"))
    return found


CASES: dict[str, tuple[str, list[Result], str]] = {
    "scores": ("score", noisy("debate", 1.5), "wit"),
    "items without groups": ("score", noisy("debate", 1.5, group=None), "wit"),
    "comparisons": ("compare", pairs(), "preference"),
}


def figures(found: Agreement) -> Mapping[str, Statistic]:
    """The statistics by the metrics' names."""
    if isinstance(found, PreferenceAgreement):
        return found.measures
    return {**found.over_rows, **of_groups(found.per_group)}


def of_groups(by_coefficient: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics within groups by name; they are stored by coefficient."""
    within = of_kind("score", "groups")
    names = {METRICS[name].coefficient: name for name in within}
    return {names[coefficient]: of for coefficient, of in by_coefficient.items()}


def check(found: Mapping[str, Statistic], wanted: Mapping[str, Statistic]) -> None:
    """Equal but for the last digits, since rows are added up in another order."""
    assert {*wanted} <= {*found}
    for name, statistic in wanted.items():
        assert statistic.low is not None
        for end in ("value", "low", "high"):
            assert getattr(found[name], end) == pytest.approx(getattr(statistic, end), abs=1e-12), (
                name
            )


@pytest.mark.parametrize("name", CASES)
def test_agree_report_run_sweep_and_json_have_the_same_interval(name: str, tmp_path: Path) -> None:
    kind, results, aspect = CASES[name]
    shuffled = random.Random(2).sample(results, len(results))
    folder = run_folder(tmp_path / "run", shuffled, kind=kind)
    [entry] = Study.of(folder).leaderboard.standings
    wanted = {name: of for name, of in entry.measures.items() if of.value is not None}
    evaluation = Evaluation(tuple(shuffled), read_manifest(folder))
    [of_run] = evaluation.agreement().values()
    [of_rows] = agreement(map(vars, reversed(results))).values()
    check(figures(of_run), wanted)
    check(figures(of_rows), wanted)
    [cell] = measure([CellResult(Cell({}), "debate", evaluation)])
    of_cell = {key.statistic: statistic for key, statistic in cell.figures.items()}
    assert of_cell
    assert of_cell.items() <= wanted.items()
    assert {key.subject for key in cell.figures} == {aspect}
    printed = json.loads(CliRunner().invoke(app, ["agree", str(folder), "--json"]).output)[aspect]
    groups = of_groups(printed.get("per_group", {}))
    for metric, statistic in wanted.items():
        shown = {**printed, **printed.get("over_rows", {}), **groups}[metric]
        check({metric: Statistic(shown["value"], shown["low"], shown["high"])}, {metric: statistic})
    assert printed["intervals"] == of_run.intervals


def test_an_interval_is_called_what_it_is(tmp_path: Path) -> None:
    notes = {
        "scores": [
            "r, rho, tau: bootstrap over 10 groups (1,000 resamples, seed 0)",
            "r within, rho within, tau within, pairs within: Student over 10 groups",
        ],
        "items without groups": ["r, rho, tau: bootstrap over 40 items (1,000 resamples, seed 0)"],
        "comparisons": [
            "accuracy: Wilson; kappa: bootstrap over 15 groups (1,000 resamples, seed 0)"
        ],
    }
    for name, (kind, results, _) in CASES.items():
        folder = run_folder(tmp_path / name, results, kind=kind)
        printed = CliRunner().invoke(app, ["agree", str(folder)], env={"COLUMNS": "200"}).output
        intervals = [line.strip() for line in printed.splitlines() if "confidence interval" in line]
        assert intervals == [f"Brackets: 95 % confidence interval; {note}" for note in notes[name]]
        shown = (
            CliRunner().invoke(app, ["report", str(folder), "--all"], env={"COLUMNS": "200"}).output
        )
        how = "shares: Wilson; means within groups: Student over groups; others: bootstrap over groups or items"
        assert f"Brackets: 95 % confidence interval; {how} (1,000 resamples, seed 0)" in " ".join(
            shown.split()
        )


# Matthews correlation of three classes: Gorodkin 2004, equation 8.
DECLARED = """
import json
import sys
import numpy as np
from jurygraph.eval.statistics import metrics

def matthews(tables):
    correct, total = np.trace(tables, axis1=1, axis2=2), tables.sum(axis=(1, 2))
    judged, human = tables.sum(axis=2), tables.sum(axis=1)
    above = correct * total - (judged * human).sum(axis=1)
    below = (total**2 - (judged**2).sum(axis=1)) * (total**2 - (human**2).sum(axis=1))
    return above / np.sqrt(np.where(below > 0, below, np.nan))

metrics.METRICS["mcc"] = metrics.Metric("mcc", "compare", "Matthews correlation", "MCC", formula=matthews)
from jurygraph.eval.cli.app import app
from typer.testing import CliRunner
done = [CliRunner().invoke(app, words, catch_exceptions=False) for words in json.loads(sys.argv[1])]
assert not any(one.exit_code for one in done), done
print(json.dumps([one.stdout for one in done]))
"""


def matthews(results: list[Result]) -> float:
    """The covariance of indicators, summed over classes (Gorodkin 2004, equation 6)."""
    columns = [[(r.winner == name, r.human == name) for r in results] for name in ("1", "2", "tie")]
    tables = [np.cov(np.array(column, dtype=float).T) for column in columns]
    judged, human, both = (sum(table[at] for table in tables) for at in ((0, 0), (1, 1), (0, 1)))
    return float(both / np.sqrt(judged * human))


@pytest.mark.slow
def test_a_declaration_is_enough_for_a_metric_to_be_shown_everywhere(tmp_path: Path) -> None:
    other = [compared(r.item, "single", winner="1", human=r.human, group=r.group) for r in pairs()]
    folder = run_folder(tmp_path / "run", [*pairs(), *other], kind="compare")

    # Metrics are declared before the commands are imported, so they run in another process: one.
    commands = [
        ["agree", str(folder), "--json"],
        ["agree", str(folder)],
        ["report", str(folder), "--all", "--metric", "mcc", "--csv", str(tmp_path / "csv")],
    ]
    words = json.dumps([[*command, "--resamples", "100"] for command in commands])
    program = [sys.executable, "-c", DECLARED, words]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    as_json, agreed, shown = json.loads(printed)

    value = matthews(pairs())
    found = json.loads(as_json)["debate"]["preference"]
    assert found["mcc"]["value"] == pytest.approx(value)
    assert found["mcc"]["low"] < value < found["mcc"]["high"]
    assert found["intervals"]["mcc"] == "bootstrap over groups"
    assert f"{value:.3f}" in agreed
    assert "Matthews correlation" in shown
    leaderboard = csv.DictReader(StringIO((tmp_path / "csv" / "leaderboard.csv").read_text()))
    assert float(
        next(row for row in leaderboard if row["judge"] == "debate")["MCC"]
    ) == pytest.approx(value)
    # The table of differences to the base.
    assert re.search(r"accuracy +kappa +mcc", shown)
