"""The quorum of a panel: the votes that a verdict needs, and the members that have voted.

A member whose call fails leaves a turn without a value. The turn's ``problem`` gives the reason,
and ``fault`` a keyword. The transcript alone therefore shows the missing members, also in a
checkpoint and in a results file.

In a discussion of several rounds, a member's last turn is its vote. A member that failed in an
earlier round only was silent in that round, and is not missing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

from .errors import ModelCallError, QuorumError, UsageError
from .transcript import Turn

Quorum = Literal["majority", "all"] | int
"""The required votes of a panel's configured members: more than half, all, or a number."""

CALL_FAILED = "call_failed"
"""The ``fault`` of a member whose call the provider refused.

The other faults are ``ReplyFault``.
"""

RECUSED = "recused"
"""The ``fault`` of a member that did not vote, because its family wrote a text under judgement."""


class Roll(NamedTuple):
    """The members of a panel, and those that have not voted.

    Attributes:
        members: the names of all configured members.
        missing: the failed turns of each member without a vote.
    """

    members: Sequence[str]
    missing: Mapping[str, Sequence[Turn]]

    @property
    def votes(self) -> int:
        """The number of members that have voted."""
        return len(self.members) - len(self.missing)


def votes_needed(quorum: Quorum, members: int) -> int:
    """Return the number of votes that a panel needs.

    Raises:
        UsageError: the quorum is higher than the number of members.

    >>> votes_needed("majority", 4), votes_needed("all", 4), votes_needed(1, 4)
    (3, 4, 1)
    """
    if quorum == "majority":
        return members // 2 + 1
    if quorum == "all":
        return members
    if quorum > members:
        raise UsageError(
            f"quorum={quorum}, but the panel has {members} members: lower it, or add members"
        )
    return quorum


def failed_turns(turns: Sequence[Turn]) -> dict[tuple[Any, ...], list[Turn]]:
    """Return the failed turns of each agent that has not voted, which is one whose last turn failed.

    A member that is asked in both orders of the answers has voted only if it answered in both,
    because a score in one order would include position bias. The latest turn of an agent in each
    order counts.

    The same holds for a member whose seat was taken by another model in one order only.

    Returns:
        The failed turns by agent, also those before a replacement that failed; its repeat and stage
        are part of the key, because wrappers ask an agent several times.
    """
    # Every verdict asks, and almost always nobody has failed.
    if not any("problem" in turn or "replaces" in turn for turn in turns):
        return {}
    asked: dict[tuple[Any, ...], dict[int | None, list[Turn]]] = {}
    for turn in turns:
        asked.setdefault(_agent_of(turn), {}).setdefault(turn.get("order"), []).append(turn)
    failed: dict[tuple[Any, ...], list[Turn]] = {}
    for agent, orders in asked.items():
        last = [of_order[-1] for of_order in orders.values()]
        mixed = len({turn.get("replaces") is None for turn in last}) > 1
        if mixed or any("problem" in turn for turn in last):
            problems = [t for of_order in orders.values() for t in _last_problems(of_order)]
            failed[agent] = problems
    return failed


def _last_problems(turns: Sequence[Turn]) -> list[Turn]:
    """Return the last turn if it failed, and the failed turn before a replacement."""
    last = turns[-1]
    found = [last]
    if "replaces" in last:
        # The replacement keeps the seat in later rounds.
        found = [*(before for before, turn in pairwise(turns) if "replaces" in turn)][:1] + found
    return [turn for turn in found if "problem" in turn]


def without_missing(turns: Sequence[Turn]) -> Sequence[Turn]:
    """Return the turns without the values of missing members, and of rounds in which one failed.

    A member that failed in one order of the answers has no value in the other one either. A member
    that has not voted has no value in earlier rounds either, which would count as its vote. Words
    and costs stay.
    """
    if not any("problem" in turn for turn in turns):
        return turns
    missing = failed_turns(turns)
    silent = {(_agent_of(turn), turn["round"]) for turn in silent_turns(turns)}
    return [
        cast("Turn", {**turn, "value": None})
        if _agent_of(turn) in missing or (_agent_of(turn), turn["round"]) in silent
        else turn
        for turn in turns
    ]


def silent_turns(turns: Sequence[Turn]) -> list[Turn]:
    """Return the failed turns of agents that were asked again in a later round."""
    if not any("problem" in turn for turn in turns):
        return []
    last: dict[tuple[Any, ...], Turn] = {}
    silent = []
    for turn in turns:
        agent = (_agent_of(turn), turn.get("order"))
        before = last.get(agent)
        if before is not None and "problem" in before and before["round"] < turn["round"]:
            silent.append(before)
        last[agent] = turn
    return silent


def without_failed(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns that other agents may read: a reply that could not be used is not shown."""
    return [turn for turn in turns if "problem" not in turn]


def roll_of(
    members: Sequence[str], turns: Sequence[Turn], of_round: int | None = None
) -> Roll | None:
    """Return the votes of a panel; None while a member has not been asked.

    Args:
        members: the names of all configured members.
        turns: the turns of all agents so far.
        of_round: the round of the votes; by default, the last one in which a member was asked.
    """
    of_panel = [turn for turn in turns if turn["agent"] in members]
    last = max((turn["round"] for turn in of_panel), default=0) if of_round is None else of_round
    heard = {turn["agent"] for turn in of_panel if turn["round"] == last}
    if not heard.issuperset(members):
        return None
    failed = failed_turns([turn for turn in of_panel if turn["round"] <= last])
    return Roll(members, {agent: of_agent for (agent, *_), of_agent in failed.items()})


def check_quorum(
    roll: Roll,
    quorum: Quorum,
    side_of: Callable[[str], Hashable] | None = None,
    name_of_side: Callable[[Hashable], str] = "answer {}".format,
) -> None:
    """Check that enough members of a panel have voted.

    Args:
        roll: the votes.
        quorum: the required number of votes.
        side_of: returns the side for which a member speaks, if each side needs at least one vote.
        name_of_side: returns the name of a side for messages.

    Raises:
        QuorumError: too few votes, and at least one reply could not be read; contains the raw
            replies.
        ModelCallError: too few votes, because the providers refused the other calls, or the other
            members are recused.
        UsageError: the quorum is higher than the number of members.
    """
    needed = votes_needed(quorum, len(roll.members))
    silent: set[Hashable] = set()
    if side_of is not None:
        heard = {side_of(member) for member in roll.members if member not in roll.missing}
        silent = {side_of(member) for member in roll.members} - heard
    if roll.votes >= needed and not silent:
        return
    failed = [turn for turns in roll.missing.values() for turn in turns]
    votes = f"{roll.votes} of {len(roll.members)} members of the panel voted"
    lacking = [f"none of them speaks for {side}" for side in sorted(map(name_of_side, silent))]
    if roll.votes < needed:
        lacking.append(f"quorum={quorum} needs {needed}")
    reasons = "; ".join(map(_with_reply, failed))
    problem = f"{votes}, and {', and '.join(lacking)}. {reasons}"
    unread = next((turn for turn in failed if turn.get("fault") not in _WITHOUT_REPLY), None)
    if unread is None:
        raise ModelCallError(problem)
    raise QuorumError.of_turn(problem, unread)


def reasons_of_missing(turns: Sequence[Turn]) -> dict[str, str]:
    """Return the reason for each panel member that has not voted.

    >>> from .transcript import turn_without_model
    >>> turn = turn_without_model(1, "referee_2", "referee", "I cannot.")
    >>> reasons_of_missing([{**turn, "problem": "The reply is a refusal."}])
    {'referee_2': 'The reply is a refusal.'}
    """
    return {
        agent: "; ".join(dict.fromkeys(map(_reason, of_agent)))
        for (agent, *_), of_agent in failed_turns(turns).items()
    }


def replaced_members(turns: Sequence[Turn]) -> dict[str, dict[str, str]]:
    """Return the members whose seats were taken, each with both models and the reason.

    A member that has not voted in the end is not one of them.
    """
    missing = failed_turns(turns)
    found: dict[str, dict[str, str]] = {}
    for before, turn in pairwise(turns):
        agent = _agent_of(turn)
        # In a later round, the turn before belongs to another agent.
        taken = "replaces" in turn and "problem" in before and _agent_of(before) == agent
        if taken and agent not in missing:
            found[turn["agent"]] = {
                "model": str(turn["model"]),
                "replaces": str(turn["replaces"]),
                "reason": before["problem"],
            }
    return found


_WITHOUT_REPLY = (CALL_FAILED, RECUSED)
"""The faults of members of whom there is no reply to read."""


def _agent_of(turn: Turn) -> tuple[Any, ...]:
    """Return an agent's name with its repeat and stage, because wrappers ask it several times."""
    return (turn["agent"], turn.get("repeat"), turn.get("stage"))


def _reason(turn: Turn) -> str:
    seat = f" (replacement {turn['model']})" if "replaces" in turn else ""
    order = {1: " (with the answers as given)", 2: " (with the answers swapped)"}.get(
        turn.get("order", 0), ""
    )
    return f"{turn['problem']}{seat}{order}"


def _with_reply(turn: Turn) -> str:
    content = turn["content"]
    # Both ends, as in `ReplyError`.
    shown = content if len(content) <= 400 else f"{content[:200]} ... {content[-180:]}"
    # A provider that refused the first request sent no reply.
    reply = f" Raw reply: {shown!r}" if content or turn.get("fault") not in _WITHOUT_REPLY else ""
    return f"{turn['agent']}, round {turn['round']}: {_reason(turn)}{reply}"
