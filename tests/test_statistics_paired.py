"""The paired bootstrap: against doing it by hand, against other tools, against theory."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
from jurygraph.eval.statistics.paired_bootstrap import (
    PairedBootstrap,
    compare_accuracies,
    compare_correlations,
    compare_correlations_within,
    compare_kappas,
)
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.tie_policy import Ties
from scipy import stats

QUICK = Resampling(resamples=60, seed=5)
SCIPY: dict[str, Callable[..., float]] = {
    "pearson": lambda x, y: float(stats.pearsonr(x, y)[0]),
    "spearman": lambda x, y: float(stats.spearmanr(x, y)[0]),
    "kendall": lambda x, y: float(stats.kendalltau(x, y)[0]),
}
Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def scores() -> Columns:
    """Two judges and people on 12 groups of 4, one judge better than the other."""
    random = np.random.default_rng(8)
    human = random.integers(1, 6, 48)
    good = np.clip(human + random.integers(-1, 2, 48), 1, 5)
    poor = np.clip(human + random.integers(-3, 4, 48), 1, 5)
    return good, poor, human, np.repeat(np.arange(12), 4)


def by_hand(resampling: Resampling, units: np.ndarray, figure: Callable[[np.ndarray], float]) -> np.ndarray:
    """A figure of the rows that each resample draws, drawn row by row."""
    rows = [np.flatnonzero(units == unit) for unit in range(units.max() + 1)]
    return np.array(
        [
            figure(np.concatenate([rows[unit] for unit, times in enumerate(drawn) for _ in range(times)]))
            for block in resampling.weights(len(rows))
            for drawn in block
        ]
    )


@pytest.mark.parametrize("name", SCIPY)
def test_correlations_against_scipy_in_resamples_drawn_by_hand(name: str, scores: Columns) -> None:
    good, poor, human, groups = scores
    found = compare_correlations(name, good.tolist(), poor.tolist(), human.tolist(), groups.tolist(), QUICK)
    of = SCIPY[name]
    assert found.first == pytest.approx(of(good, human), abs=1e-9)
    assert found.second == pytest.approx(of(poor, human), abs=1e-9)
    drawn = by_hand(QUICK, groups, lambda rows: of(good[rows], human[rows]) - of(poor[rows], human[rows]))
    assert (found.difference.low, found.difference.high) == pytest.approx(
        tuple(np.quantile(drawn, (0.025, 0.975))), abs=1e-9
    )
    fewest = min((drawn <= 0).sum(), (drawn >= 0).sum())
    assert found.p == pytest.approx(min(1, 2 * (fewest + 1) / 61))
    assert (found.groups, found.n, found.resampling) == (12, 48, QUICK)


def test_correlations_within_groups_against_scipy(scores: Columns) -> None:
    good, poor, human, groups = scores
    found = compare_correlations_within(
        "spearman", good.tolist(), poor.tolist(), human.tolist(), groups.tolist(), QUICK
    )
    each = []
    for group in range(12):
        rows = groups == group
        if min(np.ptp(column[rows]) for column in (good, poor, human)) > 0:
            each.append([stats.spearmanr(judge[rows], human[rows]).statistic for judge in (good, poor)])
    first, second = np.mean(each, axis=0)
    assert (found.first, found.second) == pytest.approx((first, second), abs=1e-9)
    assert (found.groups, found.skipped) == (len(each), 12 - len(each))
    differences = np.subtract(*np.transpose(each))
    drawn = by_hand(QUICK, np.arange(len(each)), lambda rows: float(differences[rows].mean()))
    assert found.difference.low == pytest.approx(np.quantile(drawn, 0.025), abs=1e-9)


def test_a_judge_does_not_differ_from_itself(scores: Columns) -> None:
    good, _, human, groups = (column.tolist() for column in scores)
    for found in (
        compare_correlations("kendall", good, good, human, groups, QUICK),
        compare_correlations_within("kendall", good, good, human, groups, QUICK),
    ):
        assert (found.difference.value, found.difference.low, found.difference.high, found.p) == (0, 0, 0, 1)


def verdicts(seed: int, share: float) -> tuple[list[str], list[str]]:
    random = np.random.default_rng(seed)
    human = random.choice(["1", "2", "tie"], 90, p=[0.45, 0.4, 0.15])
    judge = np.where(random.random(90) < share, human, random.choice(["1", "2", "tie"], 90))
    return judge.tolist(), human.tolist()


def kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Cohen's kappa straight from its definition."""
    observed = (first == second).mean()
    chance = sum((first == c).mean() * (second == c).mean() for c in ("1", "2", "tie"))
    return float((observed - chance) / (1 - chance))


FIGURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "accuracy": lambda judge, human: float((judge == human).mean()),
    "kappa": kappa,
}
COMPARE: dict[str, Callable[..., PairedBootstrap]] = {"accuracy": compare_accuracies, "kappa": compare_kappas}


@pytest.mark.parametrize("what", FIGURES)
def test_preferences_against_their_definitions(what: str) -> None:
    (first, human), (second, _) = verdicts(1, 0.8), verdicts(1, 0.4)
    groups = [at // 3 for at in range(90)]
    found = COMPARE[what](first, second, human, groups, resampling=QUICK)
    x, y, truth = np.array(first), np.array(second), np.array(human)
    figure = FIGURES[what]
    assert (found.first, found.second) == pytest.approx((figure(x, truth), figure(y, truth)), abs=1e-9)
    drawn = by_hand(
        QUICK, np.array(groups), lambda rows: figure(x[rows], truth[rows]) - figure(y[rows], truth[rows])
    )
    assert (found.difference.low, found.difference.high) == pytest.approx(
        tuple(np.quantile(drawn, (0.025, 0.975))), abs=1e-9
    )


def test_ties_of_people_are_treated_as_asked() -> None:
    first, second, human = ["1", "tie", "2"], ["1", "1", "1"], ["1", "tie", "2"]
    found = {
        ties: compare_accuracies(first, second, human, ties=ties, resampling=QUICK) for ties in get_args(Ties)
    }
    assert (found["class"].first, found["class"].second) == pytest.approx((1, 1 / 3))
    assert (found["left_out"].first, found["left_out"].second, found["left_out"].n) == (1, 0.5, 2)
    assert found["left_out"].left_out == {"human tie": 1}
    assert (found["half"].first, found["half"].second) == pytest.approx((2.5 / 3, 1.5 / 3))


def test_rows_are_left_out_for_one_reason_each() -> None:
    found = compare_accuracies(
        ["1", None, "2", "1"],
        ["1", "1", None, "1"],
        ["tie", "1", "1", None],
        ties="left_out",
        resampling=QUICK,
    )
    assert (found.n, found.first, found.p) == (0, None, None)
    assert found.left_out == {"no first": 1, "no second": 1, "no human": 1, "human tie": 1}


def test_p_values_are_even_where_judges_are_equally_good() -> None:
    """Of 200 pairs of equally good judges about one in ten has p < .1."""
    random = np.random.default_rng(3)
    resampling = Resampling(resamples=199)
    low = 0
    for _ in range(200):
        human = random.normal(size=60)
        first, second = ((human + random.normal(size=60)).tolist() for _ in range(2))
        found = compare_correlations("pearson", first, second, human.tolist(), resampling=resampling)
        assert found.p is not None
        low += found.p < 0.1
    assert 8 <= low <= 36


def test_a_constant_judge_has_no_correlation_to_compare() -> None:
    found = compare_correlations("pearson", [3] * 5, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5], resampling=QUICK)
    assert (found.first, found.difference.value, found.p) == (None, None, None)
    assert found.second == pytest.approx(1)
    alone = compare_kappas(["1"] * 3, ["1"] * 3, ["1"] * 3, resampling=QUICK)
    assert (alone.first, alone.difference.value, alone.p) == (None, None, None)


def test_one_group_gives_a_value_without_an_interval() -> None:
    found = compare_correlations("pearson", [1, 2, 4], [2, 1, 4], [1, 2, 3], ["a"] * 3, QUICK)
    assert found.difference.value is not None
    assert (found.difference.low, found.p, found.groups) == (None, None, 1)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no correlation 'tau': there are pearson, spearman, kendall"):
        compare_correlations("tau", [1], [1], [1])
    with pytest.raises(ValueError, match="need a group for every row"):
        compare_correlations_within("pearson", [1], [1], [1], [None])
    with pytest.raises(ValueError, match="row 2 of second: 'A' is not '1', '2' or 'tie'"):
        compare_accuracies(["1", "1"], ["1", "A"], ["1", "1"])
    with pytest.raises(ValueError, match="ties may be 'class', 'left_out' or 'half'"):
        compare_accuracies(["1"], ["1"], ["1"], ties="drop")  # type: ignore[arg-type]
