"""Test significance and rankings against other tools, a solver, scipy, and theory."""

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.analysis.leaderboard import gain
from jurygraph.eval.statistics.alignment import number_clusters
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.significance import (
    binomial_test,
    compare_dependent,
    difference_of_correlations,
    holm,
    paired_t_test,
)
from jurygraph.eval.statistics.system_ranking import SystemRanking, rank_by_scores, rank_by_verdicts
from jurygraph.eval.statistics.tie_policy import CODES
from jurygraph.state.errors import UsageError
from scipy import optimize, stats

from .agreement_columns import SCIPY

Printed = tuple[float, float]
QUICK = Resampling(resamples=200)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_against_scipy(b: int, c: int) -> None:
    wanted = stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert binomial_test(b, c) == pytest.approx(wanted, abs=1e-9)


def test_holm_against_statsmodels() -> None:
    # from statsmodels.stats.multitest import multipletests; multipletests(p, method="holm")[1]
    p = [0.01, 0.04, None, 0.03, 0.005, 0.2, 0.04, 0.9]
    assert holm(p) == pytest.approx([0.06, 0.16, None, 0.15, 0.035, 0.4, 0.16, 0.9], abs=1e-12)


def test_a_mean_over_clusters_against_scipy() -> None:
    """Equal clusters count as single means; unequal ones as resamples of clusters vary."""
    random = np.random.default_rng(3)
    codes = np.repeat(np.arange(30), 4)
    values = random.normal(0.2, 1, 120) + random.normal(0, 1, 30)[codes]
    figure, p = QUICK.mean_interval(values, codes)
    wanted = stats.ttest_1samp(values.reshape(30, 4).mean(axis=1), 0)
    assert (figure.low, figure.high) == pytest.approx(tuple(wanted.confidence_interval(0.95)))
    assert p == pytest.approx(wanted.pvalue)
    some = random.random(120) < 0.6
    kept = values[some]
    units = np.unique(codes[some], return_inverse=True)[1]
    sums = np.bincount(units, kept)
    sizes = np.bincount(units)
    drawn = [
        (weights @ sums) / (weights @ sizes)
        for weights in random.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), 5000)
    ]
    figure = QUICK.mean_interval(kept, units)[0]
    assert figure.high is not None and figure.low is not None
    assert (figure.high - figure.low) / 2 / stats.t.ppf(0.975, 29) == pytest.approx(
        np.std(drawn), rel=0.06
    )


# The courtroom paper, Tables 1 and 2: baseline, MORE, SAMRE without juries; gains as printed.
PAPER = [
    ("Llama-3-8B", 0.82, 0.85, 0.89, (0.03, 3.7), (0.07, 8.5)),
    ("Qwen", 0.83, 0.86, 0.91, (0.03, 3.6), (0.08, 9.6)),
    ("Gemini", 0.84, 0.88, 0.92, (0.04, 4.8), (0.08, 9.5)),
    ("GPT-3.5-turbo", 0.83, 0.87, 0.92, (0.04, 4.8), (0.09, 10.8)),
]


@pytest.mark.parametrize(("model", "base", "more", "samre", "of_more", "of_samre"), PAPER)
def test_gains_against_the_paper(
    model: str, base: float, more: float, samre: float, of_more: Printed, of_samre: Printed
) -> None:
    for value, (absolute, percent) in ((more, of_more), (samre, of_samre)):
        found = gain(value, base)
        assert round(found.absolute or 0, 2) == absolute
        assert round(100 * (found.relative or 0), 1) == percent


def test_without_a_spread_or_a_figure_there_is_no_t_and_no_gain() -> None:
    assert gain(None, 0.5).absolute is None
    assert gain(0.1, -0.2).absolute == pytest.approx(0.3)
    assert gain(0.1, -0.2).relative is gain(0.1, 0).relative is None
    same = paired_t_test(np.array([1.0, 2, 3]), np.array([0.0, 1, 2]))
    assert same == (Statistic(1.0), (None, None))
    assert paired_t_test(np.array([1.0]), np.array([0.5])) == (Statistic(0.5), (None, None))
    assert paired_t_test(np.array([]), np.array([])) == (Statistic(None), (None, None))


# The R package cocor (Diedenhofen and Musch 2015), cocor.dep.groups.overlap(r.jk, r.jh, r.kh, n),
# as it prints: Williams' t and Steiger's Z. The inputs were printed with four digits, hence the
# tolerance.
COCOR = [
    ((0.8065821, 0.2383, 0.2255, 177), 9.3823, 8.5460),
    ((-0.1741, 0.2015, 0.3734, 646), -9.0340, -8.6124),
]


def test_against_published_figures() -> None:
    # Howell, Statistical methods for psychology (6th ed., p. 262), as computed in SPSS by Weaver
    # and Wuensch (2013): r12 = .80, r13 = .72, r23 = .89, n = 26 gives t(23) = 1.361, p = .187.
    found = difference_of_correlations(0.80, 0.72, 0.89, 26)
    assert (round(found.williams.statistic or 0, 3), round(found.williams.p or 0, 3)) == (
        1.361,
        0.187,
    )
    for given_r, t, z in COCOR:
        found = difference_of_correlations(*given_r)
        assert (found.williams.statistic, found.steiger.statistic) == pytest.approx(
            (t, z), rel=2e-4
        )


@pytest.mark.parametrize("ranks", [False, True], ids=["pearson", "spearman"])
def test_columns_are_compared_by_the_correlations_that_numpy_finds(ranks: bool) -> None:
    random = np.random.default_rng(2)
    human = random.integers(1, 6, 50).astype(float)
    columns = [human + random.integers(-1, 2, 50), human + random.integers(-2, 3, 50), human]
    found = compare_dependent("spearman" if ranks else "pearson", *columns)
    r = np.corrcoef([stats.rankdata(column) for column in columns] if ranks else columns)
    wanted = difference_of_correlations(r[0, 2], r[1, 2], r[0, 1], 50)
    assert np.array(found) == pytest.approx(np.array(wanted), abs=1e-9)
    assert found.williams.p == pytest.approx(2 * stats.t.sf(abs(found.williams.statistic or 0), 47))
    assert found.steiger.p == pytest.approx(2 * stats.norm.sf(abs(found.steiger.statistic or 0)))


def test_degenerate_cases_have_no_figure() -> None:
    human = np.array([1.0, 2, 3, 4, 5, 3])
    some = np.array([1.0, 3, 2, 4, 5, 5])
    constant = compare_dependent("pearson", np.full(6, 2.0), human, human)
    assert (constant.williams, constant.steiger) == ((None, None), (None, None))
    twins = compare_dependent("pearson", some, 2 * some, human)
    assert (twins.williams, twins.steiger) == ((None, None), (None, None))
    perfect = compare_dependent("pearson", human, some, human)
    assert perfect.steiger.statistic is None
    few = compare_dependent("pearson", some[:3], some[2::-1], human[:3])
    assert few.williams.statistic is None


NONE = Resampling(resamples=0)
FEW = Resampling(resamples=60, seed=1)
Row = dict[str, Any]


def game(first: str, second: str, winner: str | None, human: str | None = None, at: int = 0) -> Row:
    return {
        "item": f"{first}-{second}-{at}",
        "systems": [first, second],
        "winner": winner,
        "human": human,
    }


def season(strengths: dict[str, float], games: int, seed: int, ties: float = 0.1) -> list[Row]:
    """Games whose winners follow Bradley-Terry strengths, some of them tied."""
    random = np.random.default_rng(seed)
    names = list(strengths)
    rows = []
    for at in range(games):
        first, second = random.choice(names, 2, replace=False)
        chance = 1 / (1 + np.exp(strengths[second] - strengths[first]))
        winner = "tie" if random.random() < ties else "1" if random.random() < chance else "2"
        rows.append({**game(str(first), str(second), winner, at=at), "group": f"q{at % 40}"})
    return rows


def codes(rows: list[Row], field: str) -> np.ndarray:
    return np.array([CODES.get(row[field], np.nan) if row[field] else np.nan for row in rows])


def ranked(rows: list[Row], resampling: Resampling = FEW) -> SystemRanking:
    names = sorted({name for row in rows for name in row["systems"]})
    pairs = np.array([[names.index(name) for name in row["systems"]] for row in rows]).reshape(
        -1, 2
    )
    units = number_clusters([row.get("group") for row in rows])
    return rank_by_verdicts(
        names, pairs.astype(np.intp), codes(rows, "winner"), codes(rows, "human"), units, resampling
    )


def figures(found: SystemRanking) -> dict[str, float | None]:
    return {name: figure.value for name, figure in found.judge.items()}


def solved(rows: list[Row]) -> dict[str, float]:
    """Solve the score equations for Bradley-Terry strengths, ties half a win, without evalica."""
    names = sorted({name for row in rows for name in row["systems"]})
    points = np.zeros((len(names), len(names)))
    for row in rows:
        first, second = (names.index(name) for name in row["systems"])
        points[first, second] += {"1": 1, "tie": 0.5, "2": 0}[row["winner"]]
        points[second, first] += {"1": 0, "tie": 0.5, "2": 1}[row["winner"]]

    def surplus(strengths: np.ndarray) -> np.ndarray:
        chances = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        expected = ((points + points.T) * chances).sum(axis=1)
        equations: np.ndarray = points.sum(axis=1) - expected
        equations[0] = strengths.sum()
        return equations

    root = optimize.root(surplus, np.zeros(len(names)), tol=1e-14)
    return dict(zip(names, root.x.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_strengths_against_a_solver(seed: int) -> None:
    rows = season({"a": 1.5, "b": 0.5, "c": 0.0, "d": -1.0, "e": -1.2}, 300, seed)
    assert figures(ranked(rows, NONE)) == pytest.approx(solved(rows), abs=1e-9)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    truth = {"a": 0.8, "b": 0.2, "c": -1.0}
    held = 0
    for seed in range(24):
        first = ranked(season(truth, 120, seed, ties=0), Resampling(resamples=100)).judge["a"]
        assert first.low is not None
        assert first.high is not None
        held += first.low <= truth["a"] <= first.high
    assert held >= 20


def test_people_stand_beside_the_judge_on_the_same_rows() -> None:
    rows = season({"a": 1.0, "b": 0.2, "c": -0.3, "d": -1.0}, 200, seed=6)
    labelled = [{**row, "human": row["winner"]} for row in rows]
    labelled += [game("a", "d", "2", None, at=900 + at) for at in range(5)]
    found = ranked(labelled)
    assert found.judge == found.human == ranked(labelled[:200]).judge, (
        "rows without a label do not count"
    )
    assert found.agreement["kendall"].value == 1


NEVER = "never compared, not even indirectly: "
NO_BOUND = "strength without bound: no other system beat or tied with "
PROBLEMS: dict[str, tuple[list[Row], str]] = {
    "parts": ([game("a", "b", "tie"), game("c", "d", "1")], f"{NEVER}a, b and c, d"),
    "top": ([game("a", "b", "1"), game("b", "c", "tie")], f"{NO_BOUND}a"),
    "bottom": ([game("a", "b", "tie"), game("b", "c", "1")], f"{NO_BOUND}a, b"),
    "two tops": ([game("a", "c", "1"), game("b", "c", "1"), game("b", "c", "tie")], f"{NO_BOUND}a"),
    "empty": ([], "nothing to rank: no systems in 0 rows"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_where_no_strengths_exist_none_are_made_up(case: str) -> None:
    rows, problem = PROBLEMS[case]
    found = ranked(rows)
    assert problem in (found.problem or "")
    assert found.judge == {}


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evalica", None)
    with pytest.raises(UsageError, match=r'pip install "jurygraph\[report\]"'):
        ranked([game("a", "b", "1"), game("a", "b", "2")])


@pytest.mark.parametrize("name", SCIPY)
def test_system_level_correlation_against_scipy(name: str) -> None:
    found, judge, human = means(6)
    assert found.agreement[name].value == pytest.approx(SCIPY[name](judge, human), abs=1e-9)
    assert found.agreement[name].low is None, "withheld: no resample tells it well enough"
    assert figures(found) == pytest.approx({f"s{n}": mean for n, mean in enumerate(judge)})
    two = means(2)[0]
    assert (two.agreement[name].value, len(two.judge)) == (None, 2)


def means(systems: int, texts: int = 15) -> tuple[SystemRanking, list[float], list[float]]:
    """Return a judge's and humans' scores of ever better systems, and the systems' means."""
    random = np.random.default_rng(0)
    numbers = np.tile(np.arange(systems), texts)
    judged = np.clip(numbers / 2 + random.integers(0, 4, len(numbers)), 1, 5)
    human = np.clip(numbers / 2 + random.integers(0, 3, len(numbers)), 1, 5)
    names = [f"s{n}" for n in range(systems)]
    units = np.arange(len(numbers)) // systems
    found = rank_by_scores(names, numbers, judged, human, units, FEW)
    of_judge, of_human = (
        [float(column[numbers == n].mean()) for n in range(systems)] for column in (judged, human)
    )
    return found, of_judge, of_human
