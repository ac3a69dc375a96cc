"""The rules of a panel of agents: its quorum, its members, and the turns that are votes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from ...state.errors import ModelCallError, ReplyError
from ...state.graph_state import JudgeState
from ...state.panels import Quorum, check_quorum, roll_of, votes_needed
from ...state.settings import SettingsT

Names = Callable[[JudgeState, Any], Sequence[str]]
"""Returns the names of agents from the state and the settings."""


@dataclass(frozen=True)
class PanelRules(Generic[SettingsT]):
    """The rules of a panel in which some agents may fail.

    ``ProtocolGraph.agents`` takes it as ``quorum``.

    Attributes:
        quorum: ``majority``, ``all``, a number, or a function that returns one of them from the
            settings.
        members: returns the names of all members; by default, they are the agents that ``route``
            sends.
        voting_round: returns the round whose turns are the votes, from the state and the settings;
            by default, the votes of every round are counted.
        side_of: returns the side for which a member speaks, such as the number of an answer, if
            each side needs at least one.
        name_of_side: returns the name of a side for messages, from the state; by default, it is
            that of an answer.
        is_required: whether there is no verdict without the quorum. If it is not required, the
            protocol itself decides what follows.
    """

    quorum: Quorum | Callable[[SettingsT], Quorum]
    members: Names | None = None
    voting_round: Callable[[JudgeState, SettingsT], int] | None = None
    side_of: Callable[[str], Hashable] | None = None
    name_of_side: Callable[[JudgeState, Hashable], str] = lambda _state, side: f"answer {side}"
    is_required: bool = True

    def quorum_of(self, settings: SettingsT) -> Quorum:
        """Return the quorum with these settings."""
        return self.quorum(settings) if callable(self.quorum) else self.quorum

    def raises(self, error: ReplyError | ModelCallError, settings: SettingsT) -> bool:
        """Return whether a member's failure is an error, so that a resumed graph asks it again.

        If the quorum is not required, a vote that cannot be read is void, but a call that was
        refused may succeed later.
        """
        may_pass = self.is_required or isinstance(error, ModelCallError)
        return may_pass and self.quorum_of(settings) == "all"

    def check_size(self, settings: SettingsT, members: Sequence[str]) -> None:
        """Refuse a quorum larger than the panel before its members are asked.

        Raises:
            UsageError: the quorum is higher than the number of members.
        """
        votes_needed(self.quorum_of(settings), len(members))

    def check_votes(self, state: JudgeState, settings: SettingsT, members: Sequence[str]) -> None:
        """Check that enough members have voted, once all of them have been asked.

        Raises:
            QuorumError, ModelCallError: too few votes; see ``state.panels.check_quorum``.
        """
        if not self.is_required or not members:
            return
        voting = None if self.voting_round is None else self.voting_round(state, settings)
        if (roll := roll_of(members, state["transcript"], voting)) is not None:
            name_of_side = partial(self.name_of_side, state)
            check_quorum(roll, self.quorum_of(settings), self.side_of, name_of_side)
