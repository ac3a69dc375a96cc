"""Test rating statistics by counting, by hand, and against other tools."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, get_args

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.statistics.chance_corrected import Level, krippendorff_alpha
from jurygraph.eval.statistics.resampling import (
    FEWEST_CLUSTERS,
    Resampling,
    Statistic,
    share_of_rows,
)
from jurygraph.eval.statistics.sample import Sample, paired_difference
from jurygraph.eval.statistics.score_distribution import ScoreDistribution, score_distribution
from numpy.typing import NDArray
from scipy import stats

from .agreement_columns import SCIPY, cohen_kappa

NONE = Resampling(resamples=0)
QUICK = Resampling(resamples=50, seed=4)


# Distributions of scores
def of(
    scores: Sequence[float],
    people: Sequence[Sequence[float]] = (),
    scale: tuple[float, float] = (1, 5),
    units: Any = None,
) -> ScoreDistribution:
    # Padded to one width.
    given = np.array(
        list(zip_longest(*(people or [()] * len(scores)), fillvalue=np.nan)), dtype=float
    )
    rows = np.arange(len(scores)) if units is None else units
    return score_distribution(
        np.array(scores, dtype=float), given.reshape(-1, len(scores)).T, rows, scale, QUICK
    )


def judged(found: ScoreDistribution) -> list[float | None]:
    return [each.judge.value for each in found.points]


def human(found: ScoreDistribution) -> list[float | None]:
    return [each.human.value for each in found.points]


scores = st.lists(
    st.tuples(st.integers(1, 5), st.lists(st.integers(1, 5), min_size=1, max_size=3)), min_size=1
)


@given(scores)
def test_shares_against_counting(given_scores: list[tuple[int, list[int]]]) -> None:
    found = of([score for score, _ in given_scores], [people for _, people in given_scores])
    judge = Counter(score for score, _ in given_scores)
    labels = Counter(value for _, people in given_scores for value in people)
    assert [each.point for each in found.points] == [1, 2, 3, 4, 5]
    assert judged(found) == pytest.approx(
        [100 * judge[point] / judge.total() for point in range(1, 6)]
    )
    assert human(found) == pytest.approx(
        [100 * labels[point] / labels.total() for point in range(1, 6)]
    )
    differences = [abs(judge[p] / judge.total() - labels[p] / labels.total()) for p in range(1, 6)]
    assert found.distance.value == pytest.approx(sum(differences) / 2)


def test_an_interval_is_that_of_a_share_in_groups() -> None:
    given_scores = np.random.default_rng(0).integers(1, 6, 40)
    groups = np.arange(40) // 4
    third = of(given_scores.tolist(), units=groups).points[2].judge
    wanted = share_of_rows(given_scores == 3, groups, QUICK)
    assert wanted.low is not None and wanted.high is not None
    assert (third.low, third.high) == pytest.approx((100 * wanted.low, 100 * wanted.high))


@pytest.mark.parametrize(
    ("score", "point"), [(1.49, 1), (1.5, 2), (2.5, 3), (3.4999999999999, 4), (4.5, 5), (4.333, 4)]
)
def test_what_lies_between_points_is_rounded_half_up(score: float, point: int) -> None:
    for found in (judged(of([score])), human(of([3.0], [[score]]))):
        assert [place for place, share in enumerate(found, start=1) if share] == [point]


def test_means_of_ratings_and_scales_without_whole_steps_have_their_points() -> None:
    found = of([0.2, 0.9], [[1 / 3], [1.0]], (0, 1))
    assert (judged(found), human(found)) == ([50, 50], [50, 50])
    found = of([1.25, 1.5], scale=(1, 1.5))
    assert [each.point for each in found.points] == pytest.approx([1 + 0.05 * n for n in range(11)])
    assert judged(found) == [0.0] * 5 + [50.0] + [0.0] * 4 + [50.0]


def test_rows_off_the_scale_and_without_label_do_not_count() -> None:
    people: list[list[float]] = [[3], [3], [0], [], [3, 9]]
    assert of([3.0, 6.0, 3.0, 4.0, 5.0], people) == of([3.0], [[3]])
    alone = of([1, 2, 3, 4, 5])
    assert (judged(alone), human(alone), alone.distance.value) == ([20] * 5, [None] * 5, None)
    nothing = of([9.0], [[3.0]])
    assert (judged(nothing), nothing.distance.value) == ([None] * 5, None)


# Agreement among raters
# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability: four observers, twelve units;
# printed results nominal .743, interval .849.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("interval", 0.849)])
def test_against_the_published_example(level: Level, printed: float) -> None:
    found = krippendorff_alpha(list(zip(*OBSERVERS, strict=True)), level, resampling=NONE)
    assert round(found.alpha.value or 0, 3) == printed
    assert found.units == 11, "one has a single value"


def tables(missing: float, seed: int, shape: tuple[int, int] = (40, 4)) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = random.integers(1, 6, shape[0])[:, None] + random.integers(-1, 2, shape)
    return np.where(random.random(shape) < missing, np.nan, found.astype(float))


@pytest.mark.parametrize("level", get_args(Level))
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_against_krippendorff(level: Level, missing: float, seed: int) -> None:
    table = tables(missing, seed) ** 3 - 20  # unevenly apart, and below zero
    wanted = krippendorff.alpha(reliability_data=table.T, level_of_measurement=level)
    found = krippendorff_alpha(table.tolist(), level, resampling=NONE)
    assert found.alpha.value == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("level", get_args(Level))
def test_resamples_against_krippendorff(level: Level) -> None:
    """Alpha of a resample is alpha of the units that it drew."""
    table = tables(0.2, 7, (25, 3))
    table = table[(~np.isnan(table)).sum(axis=1) > 1]
    groups = (np.arange(len(table)) // 2).tolist()
    found = krippendorff_alpha(table.tolist(), level, groups, QUICK)
    rows = [np.flatnonzero(np.array(groups) == group) for group in range(groups[-1] + 1)]
    drawn = [
        krippendorff.alpha(
            reliability_data=np.concatenate(
                [table[rows[g]] for g in range(len(rows)) for _ in range(times[g])]
            ).T,
            level_of_measurement=level,
        )
        for block in QUICK.weights(len(rows))
        for times in block
    ]
    wanted = QUICK.studentised(found.alpha.value, np.array(drawn), len(rows), bounded=True)[0]
    assert (found.alpha.low, found.alpha.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


def test_degenerate_cases_have_no_alpha() -> None:
    for units in ([], [[1], [2, None]], [[3, 3], [3, 3]]):
        assert krippendorff_alpha(units, resampling=QUICK).alpha.value is None  # type: ignore[arg-type]
    assert krippendorff_alpha([[], [1], [1, float("nan")]]).units == 0


Array = NDArray[np.float64]
Units = NDArray[np.intp]
Columns = tuple[Array, Array, Array, Units]
FEW = Resampling(resamples=60, seed=5)


def rated(
    judged: Array, human: Array, groups: Units | None = None, how: Resampling = FEW
) -> Sample:
    """Scores; without groups each row stands alone."""
    clusters = np.arange(len(judged)) if groups is None else groups
    return Sample("score", judged, human, clusters, groups is not None, how)


def chosen(judged: list[str], human: list[str], clusters: Units | None = None) -> Sample:
    codes = {"1": 0, "2": 1, "tie": 2}
    votes = np.eye(3)[[codes[label] for label in human]]
    alone = np.arange(len(judged))
    verdicts = np.array([float(codes[winner]) for winner in judged])
    return Sample("compare", verdicts, votes, alone if clusters is None else clusters, False, FEW)


def difference(first: Sample, second: Sample, metric: str) -> tuple[Statistic, float | None]:
    compared = paired_difference([(first, second)], metric)
    return compared.difference, compared.p


@pytest.fixture(scope="module")
def columns() -> Columns:
    """Two judges and humans on 12 groups of 4, one judge better than the other."""
    random = np.random.default_rng(8)
    human = random.integers(1, 6, 48).astype(float)
    good = np.clip(human + random.integers(-1, 2, 48), 1, 5)
    poor = np.clip(human + random.integers(-3, 4, 48), 1, 5)
    groups: Units = np.repeat(np.arange(12), 4)
    return np.asarray(good, dtype=float), np.asarray(poor, dtype=float), human, groups


def by_hand(clusters: Units, figure: Callable[[Units], float]) -> Array:
    """A figure of the rows that each resample draws, drawn row by row."""
    rows = [np.flatnonzero(clusters == cluster) for cluster in range(clusters.max() + 1)]
    return np.array(
        [
            figure(
                np.concatenate([rows[at] for at, times in enumerate(drawn) for _ in range(times)])
            )
            for block in FEW.weights(len(rows))
            for drawn in block
        ]
    )


def student(value: float, drawn: Array, clusters: int) -> tuple[float, float, float]:
    """Student's interval and p-value by the spread of resamples, from scipy's distribution."""
    error = drawn.std(ddof=1) * np.sqrt(clusters / (clusters - 1))
    low, high = stats.t.interval(0.95, clusters - 1, value, error)
    return float(low), float(high), float(2 * stats.t.sf(abs(value) / error, clusters - 1))


@pytest.mark.parametrize(("metric", "reach"), [("accuracy", 1), ("kappa", 2)])
def test_two_that_are_right_on_the_same_items_may_part_on_others(metric: str, reach: int) -> None:
    judged = ["1", "2", "2"] * 10
    human = ["1", "2", "1"] * 10
    found, p = difference(chosen(judged, human), chosen(judged, human), metric)
    margin = reach * stats.binomtest(0, 30).proportion_ci(method="wilson").high
    assert (found.value, p) == (0, 1)
    assert (found.low, found.high) == pytest.approx((-margin, margin))


def test_a_judge_that_is_perfect_in_every_group_seen_may_err_in_others() -> None:
    scores = np.arange(60.0)
    groups = np.repeat(np.arange(20), 3)
    found = rated(scores, scores, groups).statistic("group_spearman")
    assert found.low is not None and 0.6 < found.low < 0.7
    assert (found.value, found.high) == (1, 1)


@pytest.mark.parametrize("name", SCIPY)
def test_differences_over_rows_against_scipy_in_resamples_drawn_by_hand(
    name: str, columns: Columns
) -> None:
    good, poor, human, groups = columns
    found, p = difference(rated(good, human, groups), rated(poor, human, groups), name)
    of = SCIPY[name]
    value = of(good, human) - of(poor, human)
    drawn = by_hand(groups, lambda rows: of(good[rows], human[rows]) - of(poor[rows], human[rows]))
    assert (found.value, found.low, found.high, p) == pytest.approx(
        (value, *student(value, drawn, 12))
    )


@pytest.mark.parametrize("name", SCIPY)
def test_an_interval_over_rows_is_made_on_fishers_scale(name: str, columns: Columns) -> None:
    good, _, human, groups = columns
    found = rated(good, human, groups).statistic(name)
    value = SCIPY[name](good, human)
    drawn = np.arctanh(by_hand(groups, lambda rows: SCIPY[name](good[rows], human[rows])))
    low, high, _ = student(float(np.arctanh(value)), drawn, 12)
    assert (found.value, found.low, found.high) == pytest.approx(
        (value, np.tanh(low), np.tanh(high))
    )


def test_means_within_groups_are_tested_as_scipy_tests_a_mean(columns: Columns) -> None:
    good, poor, human, groups = columns
    each = np.array(
        [
            [
                SCIPY["spearman"](judge[groups == group], human[groups == group])
                for judge in (good, poor)
            ]
            for group in range(12)
            if min(np.ptp(column[groups == group]) for column in (good, poor, human)) > 0
        ]
    )
    assert len(each) >= FEWEST_CLUSTERS
    found, p = difference(rated(good, human, groups), rated(poor, human, groups), "group_spearman")
    test = stats.ttest_rel(each[:, 0], each[:, 1])
    interval = test.confidence_interval(0.95)
    assert (found.low, found.high, p) == pytest.approx((interval.low, interval.high, test.pvalue))
    assert found.value == pytest.approx(np.subtract(*each.mean(axis=0)))


def verdicts(seed: int, share: float) -> tuple[list[str], list[str]]:
    random = np.random.default_rng(seed)
    human = random.choice(["1", "2", "tie"], 90, p=[0.45, 0.4, 0.15])
    judge = np.where(random.random(90) < share, human, random.choice(["1", "2", "tie"], 90))
    return judge.tolist(), human.tolist()


@pytest.mark.parametrize("metric", ["accuracy", "kappa"])
def test_preferences_against_their_definitions(metric: str) -> None:
    (first, human), (second, _) = verdicts(1, 0.8), verdicts(1, 0.4)

    def by_definition(judge: list[str], rows: Units) -> float:
        one = [judge[row] for row in rows]
        other = [human[row] for row in rows]
        agreed = float(np.mean([a == b for a, b in zip(one, other, strict=True)]))
        return agreed if metric == "accuracy" else cohen_kappa(one, other) or 0

    everything = np.arange(90)
    clusters = np.arange(90) // 3
    one = chosen(first, human, clusters)
    other = chosen(second, human, clusters)
    assert one.value(metric) == pytest.approx(by_definition(first, everything))
    found, p = difference(one, other, metric)
    value = by_definition(first, everything) - by_definition(second, everything)
    drawn = by_hand(clusters, lambda rows: by_definition(first, rows) - by_definition(second, rows))
    assert (found.value, found.low, found.high, p) == pytest.approx(
        (value, *student(value, drawn, 30))
    )


@pytest.mark.parametrize("groups", [2, 9, 10, 40])
def test_from_ten_groups_on_there_are_intervals_and_p_values(groups: int) -> None:
    draw = np.random.default_rng(7)
    clusters = np.repeat(np.arange(groups), 4)
    human = np.tile([1.0, 2.0, 3.0, 4.0], groups)
    first = human + draw.normal(0, 0.3, human.shape)
    second = human + draw.normal(0, 3, human.shape)
    one = rated(first, human, clusters)
    other = rated(second, human, clusters)
    for metric in ("spearman", "group_spearman"):
        apart, p = difference(one, other, metric)
        there = {one.statistic(metric).low is not None, apart.low is not None, p is not None}
        assert there == {groups >= FEWEST_CLUSTERS}
