"""Test that groups with one score for every item count as 0, except in the papers' tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.experiments.cell_metrics import MetricKey, measure
from jurygraph.eval.experiments.cells import Cell, CellResult
from jurygraph.eval.experiments.paper_tables import find_table
from jurygraph.eval.experiments.reproduction import reproduce_table
from jurygraph.eval.report.first_screen import first_screens
from jurygraph.eval.results.agreement import ScoreAgreement, agreement
from jurygraph.eval.results.evaluation import Evaluation
from jurygraph.eval.results.folder import read_manifest
from jurygraph.eval.results.results import Result, ResultsFile
from jurygraph.eval.statistics.resampling import Resampling
from scipy import stats

from .run_folders import RATED, run_folder, scored

QUICK = Resampling(resamples=40)
GROUPS = 30
SIZE = 5
SILENT = 9


def verdicts(aspect: str = "wit") -> Iterator[Result]:
    """Make two judges; ``silent`` gives one score to all candidates of the first groups."""
    random = np.random.default_rng(7)
    for group in range(GROUPS):
        for place in range(SIZE):
            human = float(1 + (group + place) % 5)
            about = {"group": f"g{group:02}", "human": human, "aspect": aspect}
            for name in ("honest", "silent"):
                score = human + float(random.integers(-1, 2))
                quiet = name == "silent" and group < SILENT
                yield scored(f"i{group:02}-{place}", name, score=3.0 if quiet else score, **about)


def expected(name: str) -> list[float]:
    """Return the correlation of each group, 0 if the judge gives one score."""
    rows = [row for row in verdicts() if row.protocol == name]
    found = []
    for at in range(0, len(rows), SIZE):
        scores, labels = zip(*((row.score, row.human) for row in rows[at : at + SIZE]), strict=True)
        found.append(0.0 if len(set(scores)) == 1 else float(stats.spearmanr(scores, labels)[0]))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run_folder(tmp_path / "run", verdicts(), aspects=[{**RATED, "low": 0, "high": 6}])


def of_scores(found: object) -> ScoreAgreement:
    assert isinstance(found, ScoreAgreement)
    return found


def cells(folder: Path) -> list[CellResult]:
    results = list(ResultsFile(folder).read())
    manifest = read_manifest(folder)
    return [
        CellResult(
            Cell({"judge": name}),
            name,
            Evaluation(tuple(r for r in results if r.protocol == name), manifest),
        )
        for name in ("honest", "silent")
    ]


def test_agree_report_and_sweep_count_them_as_0(folder: Path) -> None:
    wanted = expected("silent")
    assert wanted.count(0.0) >= SILENT
    rows = [vars(row) for row in verdicts() if row.protocol == "silent"]
    own = of_scores(agreement(rows, QUICK)["wit"]).per_group["spearman"]
    study = Study.of(folder, resampling=QUICK)
    entry = study.leaderboard.standing("silent", "wit")
    assert entry is not None
    of_cells = measure(cells(folder), resampling=QUICK)
    swept = of_cells[1].figures[MetricKey("wit", "group_spearman")]
    for found in (own, of_scores(entry.agreement).per_group["spearman"]):
        assert (found.groups, found.skipped, found.one_score) == (GROUPS, 0, SILENT)
    for value in (own.value, entry.measures["group_spearman"].value, swept.value):
        assert value == pytest.approx(np.mean(wanted))


def test_the_first_screen_names_how_many_there_are(folder: Path) -> None:
    (screen,) = first_screens(Study.of(folder, resampling=QUICK))
    assert (
        "silent gave all items of a group one score in 9 of 30 groups; these count as 0."
        in screen.warnings
    )


def test_a_group_whose_labels_are_all_the_same_is_skipped() -> None:
    rows = [{**vars(row), "human": 3.0} if row.group == "g29" else vars(row) for row in verdicts()]
    own = of_scores(agreement([r for r in rows if r["protocol"] == "silent"], QUICK)["wit"])
    assert (own.per_group["spearman"].groups, own.per_group["spearman"].skipped) == (GROUPS - 1, 1)


def test_a_paper_s_table_leaves_them_out(tmp_path: Path) -> None:
    coherence = [row for row in verdicts("coherence") if row.protocol == "silent"]
    folder = run_folder(
        tmp_path / "run", coherence, aspects=[{"name": "coherence", "low": 0, "high": 6}]
    )
    evaluation = Evaluation(tuple(ResultsFile(folder).read()), read_manifest(folder))
    items = [
        ScoreItem(
            id=row.item, source="s", candidate="c", group=row.group, human={"coherence": row.human}
        )
        for row in coherence
    ]
    judged = [CellResult(Cell({"method": "DEBATE"}), "silent", evaluation)]
    done = reproduce_table(find_table("debate-table1-summeval"), Dataset.of("mine", items), judged)
    figure = done.measured["DEBATE", "test"]["coherence", "group_spearman"]
    assert getattr(figure, "value", None) == pytest.approx(np.mean(expected("silent")[SILENT:]))
