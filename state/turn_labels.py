"""The labels that an auditor gives to the turns of a finished debate."""

from __future__ import annotations

from typing import Literal, get_args

from typing_extensions import TypedDict

Kind = Literal["argument", "repetition", "concession"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Behaviour = Literal["opening", "alternative", "maintenance", "consensus", "none"]
BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)


class TurnLabel(TypedDict):
    """The label of one turn.

    Attributes:
        turn, agent, role, round: the turn, its agent with its role, and its round.
        kind: what it did to the arguments.
        behaviour: the behaviour that it shows most clearly.
        answers: whether it answers the turn before it; None for the first turn.
    """

    turn: str
    agent: str
    role: str
    round: int
    kind: Kind
    behaviour: Behaviour
    answers: bool | None
