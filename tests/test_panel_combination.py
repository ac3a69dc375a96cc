"""Test the rules that combine the scores of a panel's members."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval import evaluate
from jurygraph.graphs import ensemble
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import Verdict
from jurygraph.state.aggregation import Combination, combine_scores
from pydantic import ValidationError

from .sample_data import COMPARE_TASK, SCORE_TASK
from .test_panels import without

RULES: tuple[Combination, ...] = get_args(Combination)
EQUAL = {f"referee_{number}": 1.0 for number in range(1, 10)}
SCORES = dict(zip(EQUAL, [4, 4, 5, 1, 4], strict=False))
PAIRS = dict(zip(EQUAL, [(8, 6), (7, 6), (8, 5), (1, 10), (7, 7)], strict=False))


def panel(**settings: Any) -> Any:
    """Five referees with the scores above."""

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        if about["kind"] == "score":
            return {"reasoning": "So.", "score": SCORES[about["agent"]]}
        first, second = PAIRS[about["agent"]][:: 1 if about.get("order", 1) == 1 else -1]
        return {"reasoning": "So.", "score_1": first, "score_2": second}

    return ensemble.build(
        models={"*": ScriptedModel(script=script)}, referees=5, **settings
    ).compile()


@pytest.mark.parametrize(
    ("rule", "score", "pair", "winner"),
    [
        ("mean", 3.6, (6.2, 6.8), "2"),
        ("median", 4.0, (7.0, 6.0), "1"),
        ("trimmed", 4.0, (22 / 3, 19 / 3), "1"),
        ("geometric_median", 4.0, (7.07990763, 6.077137863), "1"),
        ("majority", 4.0, (6.2, 6.8), "1"),
    ],
)
@pytest.mark.parametrize("both_orders", [True, False])
def test_a_panel_is_combined_by_its_rule(
    rule: Combination, score: float, pair: tuple[float, float], winner: str, both_orders: bool
) -> None:
    graph = panel(combine=rule, position_calibration=both_orders)
    rated = graph.invoke({"task": SCORE_TASK})
    verdict = Verdict.of(rated)
    assert verdict.score == pytest.approx(score)
    assert rated["scores"] == [pytest.approx(score)]
    compared = graph.invoke({"task": COMPARE_TASK})
    verdict = Verdict.of(compared)
    assert verdict.scores == pytest.approx(pair)
    [after_one_round] = verdict.score_by_round
    assert after_one_round == pytest.approx(pair)
    assert verdict.winner == winner
    assert verdict.details.get("combine", "mean") == rule


def test_weights_count_members_by_name_and_those_who_voted_alone() -> None:
    weights = {**dict.fromkeys(SCORES, 1.0), "referee_4": 4.0}
    verdict = Verdict.of(panel(combine="weighted", weights=weights).invoke({"task": SCORE_TASK}))
    assert verdict.score == pytest.approx((4 + 4 + 5 + 4 * 1 + 4) / 8)
    assert verdict.details["weights"] == weights
    heavy = {"referee_1": 100.0, "referee_2": 1.0, "referee_3": 3.0}
    model = without("referee_1")
    settings: Any = {"structured": "off", "roles": "same", "combine": "weighted"}
    graph = ensemble.build(models={"*": model}, weights=heavy, **settings).compile()
    verdict = Verdict.of(graph.invoke({"task": SCORE_TASK}))
    assert (verdict.score, list(verdict.details["missing"])) == (4.0, ["referee_1"])


@pytest.mark.parametrize("task", [SCORE_TASK, COMPARE_TASK])
def test_a_trimmed_mean_of_two_votes_has_a_warning(task: Any) -> None:
    settings: Any = {"structured": "off", "roles": "same", "combine": "trimmed"}
    for failing in ((), ("referee_1",)):
        model = without(*failing)
        verdict = Verdict.of(
            ensemble.build(models={"*": model}, **settings).compile().invoke({"task": task})
        )
        warned = [text for text in verdict.warnings if text.startswith("fewer than three members")]
        assert len(warned) == len(failing)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"combine": "trimmed", "referees": 2}, "trimmed leaves out two scores, but there are 2"),
        ({"combine": "weighted"}, "combine=weighted needs weights"),
        ({"weights": EQUAL}, "weights need combine=weighted"),
        (
            {"combine": "weighted", "weights": {"referee_1": 1}},
            "must name each of referee_1, referee_2, referee_3; they name referee_1",
        ),
        ({"combine": "weighted", "weights": {}}, "they name nobody"),
        ({"combine": "weighted", "weights": {"referee_1": 0}}, "greater than 0"),
        ({"combine": "weighted", "weights": {"referee_1": math.inf}}, "finite"),
        ({"combine": "best"}, "combine"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ensemble.build(**settings)


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_members_makes_no_difference(rule: Combination) -> None:
    rated: dict[str, Any] = dict(SCORES)
    compared: dict[str, Any] = {name: list(pair) for name, pair in PAIRS.items()}
    for scores in (rated, compared):
        combined = {
            str(combine_scores(dict(order), rule, EQUAL)) for order in permutations(scores.items())
        }
        assert len(combined) == 1, combined


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(1, 10)), min_size=1, max_size=9))
def test_no_point_is_nearer_to_all_pairs_than_the_geometric_median(
    pairs: list[tuple[int, int]],
) -> None:
    members = {str(number): [float(a), float(b)] for number, (a, b) in enumerate(pairs)}
    median = combine_scores(members, "geometric_median")
    assert isinstance(median, list)

    def distance(at: Any) -> float:
        return math.fsum(math.dist(at, pair) for pair in members.values())

    best = distance(median)
    random = Random(0)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            near = [side + random.uniform(-size, size) for side in median]
            assert best <= distance(near) + 1e-6
    assert all(best <= distance(pair) + 1e-6 for pair in members.values())


@pytest.mark.parametrize(
    ("rule", "tolerated"),
    [("mean", 0), ("trimmed", 1), ("median", 4), ("geometric_median", 4), ("majority", 4)],
)
def test_each_rule_withstands_as_many_corrupted_members_as_it_should(
    rule: Combination, tolerated: int
) -> None:
    """Nine members; some of them always prefer the worse answer as strongly as they can.

    The others give the same scores. The mean breaks down with the first corrupted member whose
    scores are extreme enough. A majority of votes, the median and the geometric median withstand
    any minority.
    """
    for corrupted in range(6):
        pairs: dict[str, Any] = {
            f"m{number}": [0.0, 1000.0] if number < corrupted else [8.0, 6.0] for number in range(9)
        }
        final = combine_scores(pairs, rule)
        assert isinstance(final, list)
        right = final[0] > final[1]
        if rule == "majority":
            right = sum(pair[0] > pair[1] for pair in pairs.values()) > 4
        assert right is (corrupted <= tolerated), corrupted


def test_a_run_without_a_rule_has_the_signature_of_before(tmp_path: Path) -> None:
    plain = evaluate("ensemble", "demo", aspects=["consistency"], limit=2, out=tmp_path / "a")
    [signed] = plain.manifest["signatures"].values()
    assert "combine" not in signed and "weights" not in signed
    settings: Any = {"ensemble": {"combine": "median"}}
    other = evaluate("ensemble", "demo", aspects=["consistency"], limit=2, settings=settings)
    [signed] = other.manifest["signatures"].values()
    assert "|combine:median|" in signed
