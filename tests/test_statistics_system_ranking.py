"""Rankings and system-level correlation: against a solver and a plain loop, against scipy, against theory."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.system_ranking import (
    Rankings,
    rank_by_verdicts,
    system_agreement,
)
from jurygraph.state.errors import UsageError
from scipy import optimize, stats

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


def figures(found: Rankings) -> dict[str, float | None]:
    return {each.system: each.figure.value for each in found.judge.standings}


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
    found = figures(rank_by_verdicts(rows, resampling=NONE))
    wanted = solved(rows)
    assert found == pytest.approx(wanted, abs=1e-9)


def test_strengths_of_two_systems_against_theory() -> None:
    """a wins 3 of 4: the odds are 3, so the strengths are ln(3) apart."""
    rows = [game("a", "b", winner, at=at) for at, winner in enumerate(["1", "1", "1", "2"])]
    assert figures(rank_by_verdicts(rows, resampling=NONE)) == pytest.approx(
        {"a": np.log(3) / 2, "b": -np.log(3) / 2}, abs=1e-9
    )


def test_which_answer_stands_first_does_not_matter() -> None:
    rows = season({"a": 1.0, "b": 0.0, "c": -1.0}, 80, seed=3)
    swap = {"1": "2", "2": "1", "tie": "tie"}
    turned = [{**row, "systems": row["systems"][::-1], "winner": swap[row["winner"]]} for row in rows]
    one, other = (rank_by_verdicts(given, resampling=QUICK) for given in (rows, turned))
    assert figures(one) == pytest.approx(figures(other), abs=1e-9)
    assert one.judge.standings[0].figure.low == pytest.approx(other.judge.standings[0].figure.low, abs=1e-9)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    truth = {"a": 0.8, "b": 0.2, "c": -1.0}
    held = 0
    for seed in range(40):
        found = rank_by_verdicts(season(truth, 120, seed, ties=0), resampling=Resampling(resamples=100))
        first = next(each for each in found.judge.standings if each.system == "a")
        assert first.figure.low is not None
        assert first.figure.high is not None
        held += first.figure.low <= truth["a"] <= first.figure.high
    assert held >= 32


def elo(rows: list[Row]) -> dict[str, float]:
    ratings: dict[str, float] = {}
    for row in rows:
        first, second = row["systems"]
        ra, rb = ratings.setdefault(first, 1000.0), ratings.setdefault(second, 1000.0)
        expected = 1 / (1 + 10 ** ((rb - ra) / 400))
        got = {"1": 1.0, "tie": 0.5, "2": 0.0}[row["winner"]]
        ratings[first] += 4 * (got - expected)
        ratings[second] -= 4 * (got - expected)
    return ratings


def test_elo_against_a_plain_loop_also_in_resamples() -> None:
    rows = season({"a": 1.0, "b": 0.0, "c": -1.0}, 60, seed=5)
    for at, row in enumerate(rows):
        row["group"] = f"q{at // 3}"
    found = rank_by_verdicts(rows, "elo", QUICK)
    assert figures(found) == pytest.approx(elo(rows), abs=1e-9)
    drawn = [
        elo([row for at, row in enumerate(rows) for _ in range(times[at // 3])])["a"]
        for block in QUICK.weights(20)
        for times in block
    ]
    first = next(each.figure for each in found.judge.standings if each.system == "a")
    wanted = QUICK.studentised(first.value, np.array(drawn), 20)[0]
    assert (first.low, first.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


def test_people_stand_beside_the_judge_on_the_same_rows() -> None:
    rows = season({"a": 1.0, "b": 0.2, "c": -0.3, "d": -1.0}, 200, seed=6)
    labelled = [{**row, "human": row["winner"]} for row in rows]
    labelled += [game("a", "d", "2", None, at=900 + at) for at in range(5)]
    found = rank_by_verdicts(labelled, resampling=QUICK)
    assert found.people is not None
    assert found.judge == found.people
    assert found.left_out == {"no label": 5}
    assert found.correlations["kendall"].value == 1


PROBLEMS: dict[str, tuple[list[Row], str]] = {
    "parts": (
        [game("a", "b", "tie"), game("c", "d", "1")],
        "never compared, not even through others: a, b and c, d",
    ),
    "top": (
        [game("a", "b", "1"), game("b", "c", "tie")],
        "without bound: no other system won against or tied with a",
    ),
    "bottom": (
        [game("a", "b", "tie"), game("b", "c", "1")],
        "without bound: no other system won against or tied with a, b",
    ),
    "two tops": (
        [game("a", "c", "1"), game("b", "c", "1"), game("b", "c", "tie")],
        "without bound: no other system won against or tied with a",
    ),
    "empty": ([], "nothing to rank: no systems in 0 rows"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_where_no_strengths_exist_none_are_made_up(case: str) -> None:
    rows, problem = PROBLEMS[case]
    found = rank_by_verdicts(rows, resampling=QUICK).judge
    assert problem in (found.problem or "")
    assert all(each.figure.value is None and each.place is None for each in found.standings)


def test_all_ties_make_equals() -> None:
    found = rank_by_verdicts([game("a", "b", "tie"), game("b", "c", "tie")], resampling=QUICK).judge
    assert [(each.place, round(each.figure.value or 0, 9), each.ties) for each in found.standings] == [
        (1, 0, 1),
        (1, 0, 2),
        (1, 0, 1),
    ]


def test_rows_that_rank_nothing_are_counted() -> None:
    rows = [game("a", "b", "1"), game("a", "b", "2"), game("a", "b", None), game("a", "a", "1")]
    rows.append({"item": "x", "systems": [], "winner": "1"})
    found = rank_by_verdicts(rows, resampling=NONE)
    assert found.n == 2
    assert found.left_out == {"not judged": 1, "a system against itself": 1, "not two systems": 1}
    assert found.people is None
    assert found.correlations == {}


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match="no ranking method 'trueskill': there are bradley_terry, elo"):
        rank_by_verdicts([], "trueskill")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'A' is no winner: give '1', '2' or 'tie'"):
        rank_by_verdicts([game("a", "b", "A")])


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "evalica", None)
    with pytest.raises(UsageError, match=r'pip install "jurygraph\[report\]"'):
        rank_by_verdicts([game("a", "b", "1"), game("a", "b", "2")])


SCIPY: dict[str, Callable[..., float]] = {
    "pearson": lambda x, y: float(stats.pearsonr(x, y)[0]),
    "spearman": lambda x, y: float(stats.spearmanr(x, y)[0]),
    "kendall": lambda x, y: float(stats.kendalltau(x, y)[0]),
}


def judged(seed: int = 0, systems: int = 6, texts: int = 15) -> list[Row]:
    random = np.random.default_rng(seed)
    return [
        {
            "item": f"{text}-{system}",
            "group": f"t{text}",
            "systems": [f"s{system}"],
            "score": float(np.clip(system / 2 + random.integers(0, 4), 1, 5)),
            "human": float(np.clip(system / 2 + random.integers(0, 3), 1, 5)),
        }
        for text in range(texts)
        for system in range(systems)
    ]


def means_of(rows: list[Row], field: str) -> dict[str, float]:
    names = sorted({row["systems"][0] for row in rows})
    return {name: float(np.mean([row[field] for row in rows if row["systems"] == [name]])) for name in names}


@pytest.mark.parametrize("name", SCIPY)
def test_system_level_correlation_against_scipy(name: str) -> None:
    rows = judged()
    found = system_agreement(rows, QUICK)["score"]

    def figure(given: list[Row]) -> float:
        return SCIPY[name](*(list(means_of(given, field).values()) for field in ("score", "human")))

    assert found.correlations[name].value == pytest.approx(figure(rows), abs=1e-9)
    assert found.correlations[name].low is None, "withheld: no resample tells it well enough"
    assert {each.system: each.judge.value for each in found.systems} == pytest.approx(means_of(rows, "score"))
    assert (found.n, found.groups, len(found.systems)) == (90, 15, 6)


def test_two_systems_have_no_correlation() -> None:
    found = system_agreement(judged(systems=2), QUICK)["score"]
    assert {statistic.value for statistic in found.correlations.values()} == {None}
    assert len(found.systems) == 2


def test_rows_without_system_score_or_label_are_counted() -> None:
    rows = judged(texts=2)
    rows += [{**rows[0], "systems": []}, {**rows[0], "score": None}, {**rows[0], "human": None}]
    rows += [{**rows[0], "score": float("nan")}]
    found = system_agreement(rows, QUICK)["score"]
    assert found.n == 12
    assert found.left_out == {"no system": 1, "not judged": 1, "no label": 1, "not a number": 1}


def test_recorded_reviews(shared_data: Path) -> None:
    rows = []
    with gzip.open(shared_data / "vicuna80_reviews" / "reviews.jsonl.gz", "rt", encoding="utf-8") as file:
        for review in map(json.loads, file):
            first, second = review["author_score"]
            winner = "1" if first > second else "2" if second > first else "tie"
            row = game(review["model_1"], review["model_2"], winner)
            rows.append({**row, "item": review["review_id"], "group": str(review["question_id"])})
    found = rank_by_verdicts(rows, resampling=QUICK)
    assert figures(found) == pytest.approx(solved(rows), abs=1e-9)
    assert [each.system for each in found.judge.standings][-2:] == ["alpaca-13b", "llama-13b"]
    assert found.groups == 60
