"""Find the score after each round in the turns of a transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..state.aggregation import mean_of
from ..state.graph_state import JudgeState
from ..state.role_kinds import RoleKind
from ..state.transcript import Score, Turn


def score_of(turn: Mapping[str, Any]) -> Score | None:
    """Return a turn's value if it is a score or a pair of scores; also of an edit, which may hold no value."""
    value = turn.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float | list):
        return None
    return value


def scores_of_roles(role_kinds: Mapping[str, RoleKind]) -> Callable[[JudgeState], list[Score]]:
    """Make the function that returns, for each round, the mean of the scores that agents gave in it.

    Args:
        role_kinds: of the protocol; the scores of roles that are of the kind ``scores`` or ``panel`` count, which is
            what a role is of which nothing is said.
    """

    def scores_by_round(state: JudgeState) -> list[Score]:
        return mean_scores(
            turn
            for turn in state["transcript"]
            if role_kinds.get(turn["role"], "scores") in ("scores", "panel")
        )

    return scores_by_round


def mean_scores(turns: Iterable[Turn]) -> list[Score]:
    """Return the mean of the turns' scores, round by round; where answers were shown in two orders, of both alike.

    Of several turns of one agent in a round the latest counts, as where a thread was taken back and it was asked again.
    """
    rounds: dict[int, dict[int, dict[tuple[str, int], Score]]] = {}
    for turn in turns:
        if (score := score_of(turn)) is not None:
            of_order = rounds.setdefault(turn["round"], {}).setdefault(turn.get("order", 1), {})
            of_order[turn["agent"], turn.get("sample", 0)] = score
    # Order by order first: one with an unreadable sample would otherwise weigh less than the other.
    return [_mean([_mean([*scores.values()]) for scores in orders.values()]) for orders in rounds.values()]


def _mean(scores: list[Score]) -> Score:
    # A single score stays as it is, a whole number a whole number.
    return scores[0] if len(scores) == 1 else mean_of(scores)
