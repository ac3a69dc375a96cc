"""Test intervals for little data: rare labels, unequal or small groups, constant labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.cli.app import app
from jurygraph.eval.statistics.resampling import Resampling, is_few, share_interval
from jurygraph.eval.statistics.sample import Sample, paired_difference
from typer.testing import CliRunner

from .source_tree import imported

RUNS = 150
coverage: Any = imported("benchmarks/coverage.py")
QUICK: Resampling = coverage.QUICK


def shares(model: Any, clusters: int, figure: str) -> tuple[float, float, float]:
    """Return the rates of intervals, of covered truths, and of p < .05 in equal judges."""
    true = model.figures(
        np.random.default_rng(99), min(model.plenty, 100_000), Resampling(resamples=0)
    )
    truth = true[figure][0].value
    random = np.random.default_rng(4)
    shown = 0
    held = 0
    found = 0
    for _ in range(RUNS):
        statistic, p = model.figures(random, clusters, QUICK)[figure]
        if statistic.low is not None and statistic.high is not None and truth is not None:
            shown += 1
            held += statistic.low <= truth <= statistic.high
        found += p is not None and p < 0.05
    return shown / RUNS, held / max(1, shown), found / RUNS


@pytest.mark.parametrize(("model", "clusters", "figure"), [
    (coverage.rare_labels(None), 100, "kappa, random judge, 95/5 labels"),
    (coverage.rare_labels(0.8), 60, "kappa, good judge, 95/5 labels"),
    (coverage.unequal_groups(), 20, "accuracy, sizes by a power law"),
])  # fmt: skip
def test_intervals_contain_the_truth(model: Any, clusters: int, figure: str) -> None:
    shown, held, found = shares(model, clusters, figure)
    assert shown > 0.5
    assert held >= 0.92
    assert found <= 0.06


def test_means_within_groups_of_three_have_intervals_that_contain_the_truth() -> None:
    random = np.random.default_rng(4)
    truth = coverage.rated_pair(random, 20_000, 3, Resampling(resamples=1))[0].value(
        "group_spearman"
    )
    assert truth is not None
    pairs = [coverage.rated_pair(random, 12, 3, Resampling(resamples=1)) for _ in range(500)]
    figures = [sample.statistic("group_spearman") for pair in pairs for sample in pair]
    held = [
        of.low <= truth <= of.high for of in figures if of.low is not None and of.high is not None
    ]
    assert len(held) > 800
    assert np.mean(held) >= 0.92


def test_a_correlation_that_depends_on_few_rows_has_no_interval_and_the_number_it_takes_is_named(
    tmp_path: Path,
) -> None:
    shown, _, found = shares(coverage.equal_labels(), 100, "pearson, 93 % of the labels equal")
    assert shown < 0.2
    assert found <= 0.06
    draw = np.random.default_rng(1)
    rows = [
        {"score": int(draw.integers(1, 6)), "human": 5 if n % 15 else 1, "aspect": "wit"}
        for n in range(100)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = " ".join(
        CliRunner().invoke(app, ["agree", str(path)], env={"COLUMNS": "150"}).output.split()
    )
    assert (
        "no interval over rows for wit: 100 items count as 5.4, since most labels or most verdicts are the"
        in printed
    )
    assert "about 190 items are needed" in printed
    assert "[low, high]" not in printed


def test_a_random_judge_is_not_worse_than_a_constant_one() -> None:
    """All verdicts of the second class are wrong, so kappa is below 0 in nearly all resamples."""
    human = np.zeros(100, dtype=int)
    human[:5] = 1
    judged = np.zeros(100)
    judged[50:55] = 1
    random, constant = (
        Sample("compare", verdicts, np.eye(3)[human], np.arange(100), False, QUICK)
        for verdicts in (judged, np.zeros(100))
    )
    figure, p = random.tested("kappa")
    assert figure.value is not None and figure.low is not None and figure.high is not None
    assert figure.low < figure.value < 0 < figure.high
    assert p is not None and p > 0.3
    assert constant.tested("kappa") == (constant.statistic("kappa"), None)
    assert constant.statistic("kappa").low is None
    difference = paired_difference([(random, constant)], "kappa")
    assert difference.p is not None and difference.p > 0.3


def test_one_large_group_counts_as_one() -> None:
    votes = np.array([1000.0, 1, 1, 1])
    assert share_interval(votes * 0.5, votes, Resampling()).low is None
    codes = np.repeat(np.arange(12), [500, *[1] * 11])
    scores = np.random.default_rng(0).normal(size=(2, len(codes)))
    sample = Sample("score", scores[0], scores[1], codes, False, QUICK)
    assert sample.count == 12
    assert sample.effective("pearson") == pytest.approx(1.04, abs=0.01)
    assert sample.tested("pearson")[1] is None
    assert is_few(9.4) and not is_few(9.6) and is_few(0.3) and not is_few(0)
