"""Score distributions: against counting, against resampling by hand, with all that rows can lack."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling, share_of_rows
from jurygraph.eval.statistics.score_distribution import Scale, ScoreDistribution, score_distributions
from jurygraph.state.errors import UsageError

QUICK = Resampling(resamples=50, seed=4)
Row = dict[str, Any]


def of(rows: list[Row], scale: Scale | None = None) -> ScoreDistribution:
    return score_distributions(rows, {"score": scale or Scale()}, QUICK)["score"]


def row(at: int, score: float | None, human: float | None = None, **more: Any) -> Row:
    return {"item": str(at), "score": score, "human": human, **more}


scores = st.lists(
    st.tuples(st.integers(1, 5), st.lists(st.integers(1, 5), min_size=1, max_size=3)), min_size=1
)


@given(scores)
def test_shares_against_counting(given_scores: list[tuple[int, list[int]]]) -> None:
    rows = [row(at, float(score), annotations=people) for at, (score, people) in enumerate(given_scores)]
    found = score_distributions(rows, resampling=Resampling(resamples=0))["score"]
    judge = Counter(score for score, _ in given_scores)
    human = Counter(value for _, people in given_scores for value in people)
    assert [each.point for each in found.points] == [1, 2, 3, 4, 5]
    assert [each.judge.value for each in found.points] == pytest.approx(
        [100 * judge[point] / judge.total() for point in range(1, 6)]
    )
    assert [each.human.value for each in found.points] == pytest.approx(
        [100 * human[point] / human.total() for point in range(1, 6)]
    )
    differences = [abs(judge[p] / judge.total() - human[p] / human.total()) for p in range(1, 6)]
    assert found.distance.value == pytest.approx(sum(differences) / 2)
    assert (found.annotations, found.means, found.rounded) == (human.total(), 0, 0)


def test_an_interval_is_that_of_a_share_in_groups() -> None:
    random = np.random.default_rng(0)
    rows = [
        row(at, float(random.integers(1, 6)), float(random.integers(1, 6)), group=f"g{at // 4}")
        for at in range(40)
    ]
    found = of(rows)
    threes = np.array([r["score"] == 3.0 for r in rows])
    wanted = share_of_rows(threes, np.arange(40) // 4, QUICK)
    third = found.points[2].judge
    assert wanted.low is not None and wanted.high is not None
    assert (third.low, third.high) == pytest.approx((100 * wanted.low, 100 * wanted.high))
    assert found.groups == 10


@pytest.mark.parametrize(
    ("score", "point"), [(1.49, 1), (1.5, 2), (2.5, 3), (3.4999999999999, 4), (4.5, 5), (4.333, 4)]
)
def test_what_lies_between_points_is_rounded_half_up_and_said(score: float, point: int) -> None:
    found = of([row(0, score, 3.0)])
    assert [each.point for each in found.points if each.judge.value] == [point]
    assert found.rounded == 1


def test_means_of_people_are_rounded_half_up_where_there_are_no_annotations() -> None:
    found = of([row(0, 3.0, 2.5), row(1, 3.0, 4.0, annotations=[5, 3])])
    assert [each.point for each in found.points if each.human.value] == [3, 5]
    assert (found.means, found.annotations) == (1, 2)
    assert found.points[2].human.value == pytest.approx(200 / 3)


def test_annotations_that_are_means_of_ratings_land_on_the_scale_too() -> None:
    found = of([row(0, 0.2, 1 / 3), row(1, 0.9, 1.0)], Scale(0, 1))
    assert [(each.judge.value, each.human.value) for each in found.points] == [(50, 50), (50, 50)]


def test_half_steps() -> None:
    found = of([row(0, 1.25, 1.0), row(1, 2.0, 2.0)], Scale(1, 2, 0.5))
    assert [(each.point, each.judge.value) for each in found.points] == [(1.0, 0), (1.5, 50), (2.0, 50)]


def test_rows_left_out_are_counted() -> None:
    rows = [row(0, 3.0, 3.0), row(1, None, 3.0), row(2, 6.0, 3.0), row(3, 3.0, 0.0), row(4, 3.0)]
    rows += [row(5, float("nan"), 3.0), row(6, 3.0, annotations=[3, 9])]
    found = of(rows)
    assert found.n == 1
    assert found.left_out == {
        "not judged": 1,
        "score off the scale": 2,
        "label off the scale": 2,
        "no label": 1,
    }


def test_without_people_the_judge_stands_alone() -> None:
    found = of([row(at, float(at + 1)) for at in range(5)])
    assert [each.judge.value for each in found.points] == [20] * 5
    assert {each.human.value for each in found.points} == {None}
    assert found.distance.value is None


def test_nothing_that_counts_gives_no_figures() -> None:
    found = of([row(0, None, 3.0)])
    assert (found.n, found.points[0].judge.value, found.distance.value) == (0, None, None)


def test_comparisons_have_no_scores_to_distribute() -> None:
    assert score_distributions([{"item": "a", "winner": "1", "human": "2"}]) == {}


def test_results_are_read_as_well_as_mappings() -> None:
    results = [Result(item="a", protocol="p", status="ok", aspect="wit", score=2.0, human=3.0)]
    assert list(score_distributions(results, resampling=QUICK)) == ["wit"]


@pytest.mark.parametrize("scale", [Scale(5, 1), Scale(1, 5, 0), Scale(1, 5, 3), Scale(1, 1), Scale(0, 1e9)])
def test_what_is_no_scale_is_refused(scale: Scale) -> None:
    with pytest.raises(UsageError, match=r"no scale: from .* in steps of"):
        of([row(0, 1.0)], scale)


def test_recorded_annotations(shared_data: Path) -> None:
    """SummEval's experts: four in five of their fluency ratings, and more for consistency, are the highest."""
    rows = []
    with gzip.open(shared_data / "summeval" / "summeval.jsonl.gz", "rt", encoding="utf-8") as file:
        for each in map(json.loads, file):
            experts = [expert["consistency"] for expert in each["expert_annotations"] or ()]
            rows.append(row(each["item_id"], 5.0, each["human"]["consistency"], annotations=experts))
    found = of(rows)
    counted = Counter(value for each in rows for value in each["annotations"])
    highest = found.points[-1]
    assert found.annotations == counted.total()
    assert highest.judge.value == 100
    if not found.means:
        assert highest.human.value == pytest.approx(100 * counted[5] / counted.total())
    assert (highest.human.value or 0) > 80
