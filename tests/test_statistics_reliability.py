"""Krippendorff's alpha and whose it is: against the krippendorff package, and theory."""

from __future__ import annotations

from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.statistics.chance_corrected import LEVELS, Level, krippendorff_alpha
from jurygraph.eval.statistics.resampling import Resampling

NONE = Resampling(resamples=0)
QUICK = Resampling(resamples=50, seed=2)

# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability: four observers, twelve units; printed results
# nominal .743, ordinal .815, interval .849.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_against_the_published_example(level: Level, printed: float) -> None:
    found = krippendorff_alpha(list(zip(*OBSERVERS, strict=True)), level, resampling=NONE)
    assert round(found.alpha.value or 0, 3) == printed
    assert found.units == 11, "one has a single value"


def tables(missing: float, seed: int, shape: tuple[int, int] = (40, 4)) -> np.ndarray:
    random = np.random.default_rng(seed)
    found = random.integers(1, 6, shape[0])[:, None] + random.integers(-1, 2, shape)
    return np.where(random.random(shape) < missing, np.nan, found.astype(float))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_against_krippendorff(level: Level, missing: float, seed: int) -> None:
    table = tables(missing, seed)
    wanted = krippendorff.alpha(reliability_data=table.T, level_of_measurement=level)
    found = krippendorff_alpha(table.tolist(), level, resampling=NONE)
    assert found.alpha.value == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
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


ratings = st.lists(
    st.lists(st.one_of(st.none(), st.integers(1, 5)), min_size=1, max_size=4), min_size=1, max_size=15
)


@given(ratings, st.randoms(use_true_random=False), st.integers(1, 9), st.integers(-50, 50))
def test_who_gave_which_value_the_order_of_units_and_the_scale_do_not_matter(
    given_ratings: list[list[int | None]], random: Any, factor: int, shift: int
) -> None:
    def same_on(units: Any) -> bool:
        values = (krippendorff_alpha(of, level, resampling=NONE).alpha.value for of in (given_ratings, units))
        return next(values) == pytest.approx(next(values), abs=1e-9)

    shuffled = [random.sample(unit, len(unit)) for unit in given_ratings]
    random.shuffle(shuffled)
    moved = [[None if value is None else factor * value + shift for value in unit] for unit in given_ratings]
    stretched = [[None if value is None else value**3 for value in unit] for unit in given_ratings]
    for level in LEVELS:
        assert same_on(shuffled)
        assert same_on(moved if level == "interval" else stretched)


def test_degenerate_cases_have_no_alpha() -> None:
    for units in ([], [[1], [2, None]], [[3, 3], [3, 3]]):
        assert krippendorff_alpha(units, resampling=QUICK).alpha.value is None  # type: ignore[arg-type]
    assert krippendorff_alpha([[], [1], [1, float("nan")]]).units == 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown level 'ratio'; levels are nominal, ordinal, interval"):
        krippendorff_alpha([[1, 2]], "ratio")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'tie' is not a number, which level 'interval' needs"):
        krippendorff_alpha([[1, "tie"]])
    with pytest.raises(ValueError, match="1 groups for 2 units"):
        krippendorff_alpha([[1, 2], [1, 2]], groups=["a"])
    with pytest.raises(ValueError, match="infinite"):
        krippendorff_alpha([[1, float("inf")]])
