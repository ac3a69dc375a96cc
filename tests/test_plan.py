"""Test plans of a study's size from a pilot: simulations, the command, and bad input."""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import plan_study
from jurygraph.eval.cli.app import app
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.planned_size import (
    needed_clusters,
    pilot_variance,
    split_variance,
)
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.sample import Pair, Sample
from jurygraph.state.errors import DataError, UsageError
from scipy import stats
from typer.testing import CliRunner

from .processes import in_this_process
from .run_folders import compared, run_folder, scored

QUICK = Resampling(200)


def pilot(groups: int, noises: Sequence[float], size: int = 4, annotators: int = 3) -> list[Result]:
    """Judges with these errors, on labels of some annotators."""
    draw = random.Random(groups)
    found = []
    for group in range(groups):
        for place in range(size):
            quality = draw.gauss(3, 0.9)
            labels = [
                min(5, max(1, round(quality + draw.gauss(0, 0.6)))) for _ in range(annotators)
            ]
            about: dict[str, Any] = {
                "human": float(np.mean(labels)),
                "annotations": tuple(map(float, labels)),
                "group": f"g{group}",
            }
            for number, noise in enumerate(noises):
                score = min(5.0, max(1.0, quality + draw.gauss(0, noise)))
                found.append(scored(f"{group}-{place}", f"judge{number}", score=score, **about))
    return found


def test_the_number_of_groups_by_formula() -> None:
    found = needed_clusters(0.25, 0.1, power=0.9)
    # The power of a paired t-test with this number, from the noncentral t distribution.
    free = found.needed - 1
    shift = 0.1 / math.sqrt(0.25 / found.needed)
    critical = stats.t.ppf(0.975, free)
    assert stats.nct.sf(critical, free, shift) == pytest.approx(0.9, abs=0.005)
    assert found.low == found.needed == found.high, "the variance is known"
    more = needed_clusters(0.25, 0.1, power=0.9, tests=10)
    assert more.needed > found.needed
    # The chi-squared interval of a variance with 19 degrees of freedom.
    uncertain = needed_clusters(25.0, 0.1, freedom=19)
    ends = [19 / stats.chi2.ppf(tail, 19) for tail in (0.975, 0.025)]
    known = needed_clusters(25.0, 0.1).needed
    assert uncertain.low / known == pytest.approx(ends[0], rel=0.01)
    assert uncertain.high / known == pytest.approx(ends[1], rel=0.01)


def test_parts_are_never_negative_and_add_up() -> None:
    for half in (None, (0.05, 2.0), (0.5, 2.0)):
        for one in (None, 0.05, 0.9):
            parts = split_variance(0.1, half, one, 4, 3, within=True)
            assert min(parts.groups, parts.items, parts.labels) >= 0
            assert parts.each(4, 3) == pytest.approx(0.1)


def drawn_pair(draw: np.random.Generator, groups: int, size: int) -> Pair:
    """Two judges of scores with different errors, in groups with a level of their own."""
    human = draw.normal(0, 0.6, (groups, 1)) + draw.normal(0, 0.8, (groups, size))
    codes = np.repeat(np.arange(groups), size)

    def judge(noise: float) -> Sample:
        scores = human + draw.normal(0, noise, human.shape)
        return Sample("score", scores.ravel(), human.ravel(), codes, True, QUICK)

    return judge(0.5), judge(0.62)


def apart(draw: np.random.Generator, groups: int, metric: str) -> np.ndarray[Any, Any]:
    mine, theirs = drawn_pair(draw, groups, 5)
    found: np.ndarray[Any, Any] = mine.by_group(metric) - theirs.by_group(metric)
    return found


@pytest.mark.parametrize("metric", ["group_pearson", "group_spearman"])
def test_the_planned_size_has_the_planned_power(metric: str) -> None:
    draw = np.random.default_rng(7)
    many = apart(draw, 8_000, metric)
    gain = float(many.mean())
    true = needed_clusters(float(many.var()), gain).needed
    studies = [stats.ttest_1samp(apart(draw, true, metric), 0).pvalue for _ in range(150)]
    # The standard error of this share is 3.3 points.
    assert np.mean(np.array(studies) < 0.05) == pytest.approx(0.8, abs=0.1)
    powers = []
    covered = 0
    for _ in range(60):
        variance = pilot_variance([drawn_pair(draw, 40, 5)], metric)
        assert variance is not None
        found = needed_clusters(variance.each, gain, freedom=variance.freedom)
        assert found.low < found.needed < found.high
        covered += found.low <= true <= found.high
        free = found.needed - 1
        shift = gain / math.sqrt(float(many.var()) / found.needed)
        powers.append(stats.nct.sf(stats.t.ppf(0.975, free), free, shift))
    assert np.mean(powers) == pytest.approx(0.8, abs=0.05)
    assert covered >= 48


def test_more_items_and_annotators_need_fewer_groups(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", pilot(40, [0.5, 0.8], size=8))
    planned = plan_study(folder, 0.05)
    [pair] = planned.pairs
    assert (planned.unit, planned.tests, pair.clusters, pair.items, pair.annotators) == (
        "groups",
        1,
        40,
        8,
        3,
    )
    by_design = {(of.items, of.annotators): of.size.needed for of in pair.designs}
    assert by_design[8, 3] >= max(by_design.values())
    assert pair.parts is not None
    assert pair.parts.items > 0
    assert pair.parts.labels > 0
    larger = plan_study(folder, 0.025)
    ratio = larger.pairs[0].designs[0].size.needed / pair.designs[0].size.needed
    assert ratio == pytest.approx(4, rel=0.1)
    surer = plan_study(folder, 0.05, 0.95)
    assert surer.pairs[0].designs[0].size.needed > pair.designs[0].size.needed


def test_several_judges_are_planned_with_holm(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", pilot(40, [0.5, 0.8, 1.0]))
    every = plan_study(folder, 0.05)
    assert (every.tests, len(every.pairs)) == (3, 3)
    over = plan_study(folder, 0.05, base="judge0")
    assert [(pair.first, pair.second) for pair in over.pairs] == [
        ("judge0", "judge1"),
        ("judge0", "judge2"),
    ]
    assert over.pairs[0].designs[0].size.needed < every.pairs[0].designs[0].size.needed


def test_items_without_groups_and_comparisons(tmp_path: Path) -> None:
    draw = random.Random(5)
    results = []
    for number in range(80):
        human = draw.choice(["1", "2"])
        for name, skill in (("one", 0.9), ("other", 0.7)):
            winner = human if draw.random() < skill else "1"
            results.append(compared(f"i{number}", name, winner=winner, human=human))
    folder = run_folder(tmp_path / "run", results, kind="compare")
    planned = plan_study(folder, 0.1)
    assert planned.unit == "items"
    assert planned.pairs[0].metric == "accuracy"
    right = np.array(
        [[r.winner == r.human for r in results if r.protocol == name] for name in ("one", "other")]
    ).astype(float)
    variance = float((right[0] - right[1]).var(ddof=1))
    expected = needed_clusters(variance, 0.1).needed
    assert planned.pairs[0].designs[0].size.needed == pytest.approx(expected, rel=0.15)


def test_a_pilot_that_is_too_small_claims_nothing(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", pilot(6, [0.5, 0.8]))
    planned = plan_study(folder, 0.05)
    assert planned.largest is None
    assert [pair.designs for pair in planned.pairs] == [()]
    result = CliRunner().invoke(app, ["plan", "--pilot", str(folder), "--gain", "0.05"])
    assert result.exit_code == 0
    shown = " ".join(result.output.split())
    assert "No size can be planned: the pilot has 6 groups; at least 10 are needed." in shown
    assert "needed to show" not in shown


def test_identical_judges_claim_nothing(tmp_path: Path) -> None:
    one = pilot(20, [0.5])
    folder = run_folder(
        tmp_path / "run", [*one, *(r.model_copy(update={"protocol": "b"}) for r in one)]
    )
    [pair] = plan_study(folder, 0.05).pairs
    assert pair.designs == ()
    assert pair.problem is not None


def test_the_command_prints_and_writes_the_plan(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", pilot(30, [0.5, 0.8]))
    words = ["plan", "--pilot", str(folder), "--gain", "0.05", "--power", "0.9"]
    printed = CliRunner().invoke(app, words, env={"COLUMNS": "160"})
    assert printed.exit_code == 0, printed.output
    shown = " ".join(printed.output.split())
    found = json.loads(CliRunner().invoke(app, [*words, "--json"]).output)
    size = found["pairs"][0]["designs"][0]["size"]
    sentence = (
        f"At least {size['needed']:,} groups of 4 items with 3 annotators each are needed to show a "
        "gain of 0.05 (Spearman's rho within groups) with a power of 90% "
        f"(range {size['low']:,} to {size['high']:,})."
    )
    assert sentence in shown
    assert "Variance of the difference" in shown


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "gain of 0": ({"gain": 0.0}, "--gain must be above 0 and below 1, got 0"),
    "no number": ({"gain": math.nan}, "--gain must be above 0 and below 1, got nan"),
    "negative gain": ({"gain": -0.1}, "--gain must be above 0"),
    "power of 1": ({"power": 1.0}, "--power must be above 0 and below 1, got 1"),
    "an unknown judge": ({"base": "nobody"}, "no judge 'nobody' to compare with"),
    "an unknown metric": ({"metric": "rho"}, "--metric 'rho' is unknown"),
    "a metric without an interval": (
        {"metric": "system_spearman"},
        "--metric system_spearman has no interval",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_refused(name: str, tmp_path: Path) -> None:
    options, message = BAD[name]
    folder = run_folder(tmp_path / "run", pilot(12, [0.5, 0.8]))
    with pytest.raises(UsageError) as error:
        plan_study(folder, **{"gain": 0.05, **options})
    assert message in str(error.value)


def test_bad_pilots_are_refused(tmp_path: Path) -> None:
    rows = pilot(12, [0.5, 0.8])
    bad = {
        "has one judge": [row for row in rows if row.protocol == "judge0"],
        "has no human labels": [
            row.model_copy(update={"human": None, "annotations": ()}) for row in rows
        ],
        "has one group or item": [row.model_copy(update={"group": "same"}) for row in rows],
        "all human labels of the pilot are the same": [
            row.model_copy(update={"human": 3.0, "annotations": ()}) for row in rows
        ],
    }
    for number, (message, results) in enumerate(bad.items()):
        folder = run_folder(tmp_path / f"run{number}", results)
        with pytest.raises(UsageError, match=message):
            plan_study(folder, 0.05)
    with pytest.raises((DataError, UsageError)):
        plan_study(tmp_path / "nothing", 0.05)


def test_the_command_ends_with_2_on_bad_input(tmp_path: Path) -> None:
    for words in (
        ["plan"],
        ["plan", "--pilot", str(tmp_path)],
        ["plan", "--pilot", str(tmp_path), "--gain", "0.05"],
        ["plan", "--pilot", str(tmp_path), "--gain", "0"],
        ["plan", "--pilot", str(tmp_path), "--gain", "0.05", "--power", "1"],
    ):
        result = in_this_process(*words, cwd=tmp_path)
        assert result.returncode == 2, words
        assert result.stderr
