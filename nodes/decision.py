"""Decide what the turns of a protocol come to: the final score, the winner, and the turn whose words explain it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ..state.graph_state import JudgeState
from ..state.role_kinds import RoleKind
from ..state.transcript import Score, Turn
from ..state.verdict import Winner
from .round_scores import score_of


@dataclass(frozen=True)
class Decision:
    """Hold what a protocol's turns come to.

    Attributes:
        final: the score, or the pair of scores.
        turn: the turn whose words explain it.
        winner: the winner of a comparison, where something other than the higher score decides it.
        details: what is particular to the protocol.
        warnings: what a reader of the verdict should know.
    """

    final: Score
    turn: Turn | None
    winner: Winner | None = None
    details: dict[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()


Decide = Callable[[JudgeState, Any], Decision]
"""A pure function of the state and the settings."""


def by_last_score(role_kinds: Mapping[str, RoleKind]) -> Decide:
    """Make the rule that the score of the last round stands, unless somebody who ``decides`` overrules it."""

    def decide(state: JudgeState, _settings: Any) -> Decision:
        kinds = [(turn, role_kinds.get(turn["role"], "scores")) for turn in state["transcript"]]
        final = state["scores"][-1]
        for turn in reversed([turn for turn, kind in kinds if kind == "decides"]):
            if (score := score_of(turn)) is not None:
                return Decision(score, turn, details=state["details"])
            # A person may vote for an answer, which overrules the scores as a jury's vote does.
            if turn["value"] in ("1", "2", "tie"):
                return Decision(final, turn, cast("Winner", turn["value"]), state["details"])
        scoring = [turn for turn, kind in kinds if kind in ("scores", "panel")]
        return Decision(final, nearest(scoring, final), details=state["details"])

    return decide


def nearest(turns: Iterable[Turn], final: Score) -> Turn | None:
    """Return, of the turns of the last round with a score, the one whose score is nearest to the final one.

    Of equally near ones the first is taken; for two answers, one that prefers the same answer comes first.
    """
    scored = [(turn, score) for turn in turns if (score := score_of(turn)) is not None]
    last = max((turn["round"] for turn, _ in scored), default=0)
    of_last = [(turn, score) for turn, score in scored if turn["round"] == last]
    return min(of_last, key=lambda one: distance(one[1], final), default=(None, 0.0))[0]


def distance(score: Score, final: Score) -> tuple[bool, float]:
    """Return how far a score is from the final one; for a pair, whether it prefers the other answer comes first.

    >>> distance(3.0, 4.0), distance([8, 6], [7, 6]), distance([6, 7], [7, 6])
    ((False, 1.0), (False, 1), (True, 2))
    """
    if isinstance(score, list) and isinstance(final, list):
        apart = sum(abs(one - two) for one, two in zip(score, final, strict=True))
        return (score[0] - score[1]) * (final[0] - final[1]) <= 0, apart
    assert not isinstance(score, list)
    assert not isinstance(final, list)
    return False, abs(score - final)
