"""Rankings and system-level correlation: against a solver and a plain loop, against scipy, against theory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.statistics.alignment import number_units
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.system_ranking import SystemRanking, rank_by_scores, rank_by_verdicts
from jurygraph.eval.statistics.tie_policy import CODES
from jurygraph.state.errors import UsageError
from scipy import optimize

from .agreement_columns import SCIPY

NONE = Resampling(resamples=0)
QUICK = Resampling(resamples=60, seed=1)
Row = dict[str, Any]


def game(first: str, second: str, winner: str | None, human: str | None = None, at: int = 0) -> Row:
    return {"item": f"{first}-{second}-{at}", "systems": [first, second], "winner": winner, "human": human}


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


def ranked(rows: list[Row], resampling: Resampling = QUICK) -> SystemRanking:
    names = sorted({name for row in rows for name in row["systems"]})
    pairs = np.array([[names.index(name) for name in row["systems"]] for row in rows]).reshape(-1, 2)
    units = number_units([row.get("group") for row in rows])
    return rank_by_verdicts(
        names, pairs.astype(np.intp), codes(rows, "winner"), codes(rows, "human"), units, resampling
    )


def figures(found: SystemRanking) -> dict[str, float | None]:
    return {name: figure.value for name, figure in found.judge.items()}


def solved(rows: list[Row]) -> dict[str, float]:
    """Bradley-Terry strengths as the root of the score equations, ties half a win: no use of evalica."""
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
    for seed in range(40):
        first = ranked(season(truth, 120, seed, ties=0), Resampling(resamples=100)).judge["a"]
        assert first.low is not None
        assert first.high is not None
        held += first.low <= truth["a"] <= first.high
    assert held >= 32


def test_people_stand_beside_the_judge_on_the_same_rows() -> None:
    rows = season({"a": 1.0, "b": 0.2, "c": -0.3, "d": -1.0}, 200, seed=6)
    labelled = [{**row, "human": row["winner"]} for row in rows]
    labelled += [game("a", "d", "2", None, at=900 + at) for at in range(5)]
    found = ranked(labelled)
    assert found.judge == found.human == ranked(labelled[:200]).judge, "rows without a label do not count"
    assert found.correlations["kendall"].value == 1


NEVER, NO_BOUND = (
    "never compared, not even indirectly: ",
    "strength without bound: no other system beat or tied with ",
)
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
    assert found.correlations[name].value == pytest.approx(SCIPY[name](judge, human), abs=1e-9)
    assert found.correlations[name].low is None, "withheld: no resample tells it well enough"
    assert figures(found) == pytest.approx({f"s{n}": mean for n, mean in enumerate(judge)})
    two = means(2)[0]
    assert (two.correlations[name].value, len(two.judge)) == (None, 2)


def means(systems: int, texts: int = 15) -> tuple[SystemRanking, list[float], list[float]]:
    """A judge's and people's scores of systems that get better and better, and the systems' means."""
    random, numbers = np.random.default_rng(0), np.tile(np.arange(systems), texts)
    judged = np.clip(numbers / 2 + random.integers(0, 4, len(numbers)), 1, 5)
    human = np.clip(numbers / 2 + random.integers(0, 3, len(numbers)), 1, 5)
    names, units = [f"s{n}" for n in range(systems)], np.arange(len(numbers)) // systems
    found = rank_by_scores(names, numbers, judged, human, units, QUICK)
    of_judge, of_human = (
        [float(column[numbers == n].mean()) for n in range(systems)] for column in (judged, human)
    )
    return found, of_judge, of_human
