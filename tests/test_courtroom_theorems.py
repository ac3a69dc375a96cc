"""Test the checks of the courtroom paper's Theorems 1 and 2 on scores with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.analysis.courtroom_theorems import (
    COURTS,
    Court,
    rounds_needed_hold,
    score_differentiation_holds,
    simulated,
)

SHARE = st.integers(0, 20).map(lambda number: number / 20)
PAIRS = st.lists(st.tuples(SHARE, SHARE, SHARE, SHARE), min_size=1, max_size=8)


@given(PAIRS)
def test_theorem_1_follows_from_the_assumption_of_its_proof(rows: list[tuple[float, ...]]) -> None:
    scores = np.array(rows)
    found = score_differentiation_holds(scores[:, :2], scores[:, 2:])
    assert found.claim >= found.assumption
    if found.assumption == 1:
        assert found.claim == 1
        assert found.mean_change > 0


def test_theorem_1_does_not_follow_from_the_aggregation_property() -> None:
    """Both answers' best arguments are at least as good, and the gap closes."""
    lone, team = np.array([[0.9, 0.5]]), np.array([[0.95, 0.9]])
    found = score_differentiation_holds(lone, team)
    assert (found.aggregation, found.assumption, found.claim) == (1, 0, 0)
    # The claim can hold without the assumption: the other answer takes a wide lead.
    found = score_differentiation_holds(np.array([[0.5, 0.4]]), np.array([[0.5, 0.9]]))
    assert (found.assumption, found.claim, found.claim_without) == (0, 1, 1)


@pytest.mark.parametrize(
    ("court", "widens"), [*zip(COURTS, (True, False, False, False), strict=True)]
)
def test_teams_widen_the_gap_only_where_the_better_answer_gains_more(
    court: Court, widens: bool
) -> None:
    lone, team = (simulated(court, advocates)[:, 0] for advocates in (1, 3))
    found = score_differentiation_holds(lone, team)
    assert found.aggregation == 1
    assert (found.mean_change > 0) is widens
    assert 0 < found.claim < 1


def test_a_team_includes_the_lone_advocate_and_rounds_only_add() -> None:
    lone, team = (simulated(COURTS[1], advocates, rounds=4, debates=50) for advocates in (1, 4))
    assert lone.shape == team.shape == (50, 4, 2)
    assert (team >= lone).all()
    assert (np.diff(team, axis=1) >= 0).all()
    assert (simulated(COURTS[1], 1, rounds=4, debates=50) == lone).all()
    assert (simulated(COURTS[1], 1, rounds=4, debates=50, seed=1) != lone).any()


def test_rounds_are_compared_debate_by_debate() -> None:
    def gaps(*paths: list[float]) -> Any:
        scores = np.array(paths)
        return np.stack([scores, np.zeros_like(scores)], axis=2)

    lone = gaps([0.1, 0.5], [0.5, 0.5], [0.5, 0.1], [0.1, 0.1], [0.1, 0.5])
    team = gaps([0.5, 0.5], [0.5, 0.1], [0.1, 0.5], [0.1, 0.1], [0.1, 0.1])
    found = rounds_needed_hold(lone, team, 0.5)
    assert (found.fewer, found.equal, found.more) == (0.2, 0.4, 0.4)
    assert found.never == (0.2, 0.4)


def test_theorem_2_is_not_strict_and_not_for_every_gap() -> None:
    """Even where teams help, most debates of a narrow and of a wide gap need the same rounds."""
    lone, team = (simulated(COURTS[0], advocates, rounds=8) for advocates in (1, 3))
    found = {eps: rounds_needed_hold(lone, team, eps) for eps in (0.1, 0.3, 0.5)}
    assert found[0.3].fewer > 2 * found[0.3].more
    assert found[0.1].equal > 0.5 and found[0.5].equal > 0.5
    assert found[0.5].more > found[0.5].fewer


@pytest.mark.parametrize(("call", "message"), [
    (lambda: simulated(COURTS[0], 0), "at least one advocate"),
    (lambda: simulated(COURTS[0], 1, rounds=0), "at least one advocate and one round"),
    (lambda: score_differentiation_holds(np.zeros((0, 2)), np.zeros((0, 2))), "at least one debate"),
    (lambda: score_differentiation_holds(np.zeros((2, 2)), np.zeros((3, 2))), r"shape \(debates, 2\)"),
    (lambda: rounds_needed_hold(np.zeros((2, 2)), np.zeros((2, 2)), 0.1), "debates, rounds, 2"),
    (lambda: rounds_needed_hold(np.zeros((1, 2, 2)), np.zeros((1, 2, 2)), 0), "eps must be above 0"),
])  # fmt: skip
def test_scores_that_cannot_be_compared(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
