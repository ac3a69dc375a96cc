"""Which of the teams' defences comes before the judge, and what a team has on record (MORE, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterable

from ..state.graph_state import JudgeState
from ..state.transcript import Turn
from .courtroom import side_of


def spoken_in(state: JudgeState, role: str, round: int) -> list[Turn]:
    """A role's turns of one round."""
    return [turn for turn in state["transcript"] if turn["role"] == role and turn["round"] == round]


def presented(state: JudgeState, round: int) -> list[Turn]:
    """What both sides put before the judge: one defence made of all, the picked one, or all of them."""
    defences = spoken_in(state, "advocate", round)
    picked = picked_in(state, round)
    best = [turn for turn in defences if turn["agent"] in picked]
    return spoken_in(state, "aggregator", round) or best or defences


def picked_in(state: JudgeState, round: int) -> list[str]:
    """The advocates who represent their sides where the best defence of each is picked."""
    held = state["details"].get("best", ())
    return next((entry["picked"] for entry in held if entry["round"] == round), [])


def record_of(state: JudgeState, side: int, round: int) -> list[Turn]:
    """All that a team knows in a round: its own turns; of earlier rounds also what the other side put before the
    judge, and what the judge said to both.
    """
    public = _names(turn for earlier in range(1, round) for turn in presented(state, earlier))
    return [
        turn
        for turn in state["transcript"]
        if side_of(turn) in (0, side) or (turn["agent"], turn["round"]) in public
    ]


def _names(turns: Iterable[Turn]) -> set[tuple[str, int]]:
    return {(turn["agent"], turn["round"]) for turn in turns}
