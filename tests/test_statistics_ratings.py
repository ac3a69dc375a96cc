"""What ratings look like: how scores are distributed, against counting; Krippendorff's alpha, against its package."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, get_args

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.statistics.chance_corrected import Level, krippendorff_alpha
from jurygraph.eval.statistics.resampling import Resampling, share_of_rows
from jurygraph.eval.statistics.score_distribution import ScoreDistribution, score_distribution

NONE = Resampling(resamples=0)
QUICK = Resampling(resamples=50, seed=4)

# --- distributions of scores ----------------------------------------------------------------------------------------


def of(
    scores: Sequence[float],
    people: Sequence[Sequence[float]] = (),
    scale: tuple[float, float] = (1, 5),
    units: Any = None,
) -> ScoreDistribution:
    # Padded to one width.
    given = np.array(list(zip_longest(*(people or [()] * len(scores)), fillvalue=np.nan)), dtype=float)
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
    assert judged(found) == pytest.approx([100 * judge[point] / judge.total() for point in range(1, 6)])
    assert human(found) == pytest.approx([100 * labels[point] / labels.total() for point in range(1, 6)])
    differences = [abs(judge[p] / judge.total() - labels[p] / labels.total()) for p in range(1, 6)]
    assert found.distance.value == pytest.approx(sum(differences) / 2)


def test_an_interval_is_that_of_a_share_in_groups() -> None:
    given_scores, groups = np.random.default_rng(0).integers(1, 6, 40), np.arange(40) // 4
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


# --- agreement among raters -----------------------------------------------------------------------------------------

# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability: four observers, twelve units; printed results
# nominal .743, interval .849.
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
