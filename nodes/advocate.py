"""The advocates: each defends one answer against the other, alone or in a team (MORE, SAMRE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..state.graph_state import AgentState
from ..state.panels import without_failed
from ..state.settings import MoreSettings, SamreSettings
from ..state.transcript import Turn
from .court_summarizer import memory
from .runtime.agent_runtime import AgentRuntime
from .runtime.courtroom import (
    CRITERIA,
    SIDES,
    answers_of,
    ask_in_court,
    is_rating,
    record_of,
    rounds_and_totals,
    side_of_agent,
    turns_of_round,
)
from .runtime.rating_teams import LEADS, ask_on_rating


async def lone_advocate(state: AgentState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask one side's advocate for its argument at the beginning of a round.

    Shown: the case, and the memory of earlier rounds with all sides' arguments, scores and
    feedback.
    """
    given = rounds_and_totals(state, runtime.settings.max_rounds) | {"round": state["round"] + 1}
    if (answers := answers_of(state)) > len(SIDES):
        side = side_of_agent(state["agent"])
        others = [other for other in range(1, answers + 1) if other != side]
        own = runtime.prompts.instruction("court/advocate", side=side, others=others, **given)
        about = {"side": side, "round": given["round"]}
        return await ask_in_court(state, runtime, state["agent"], own, memory(state), **about)
    return await _argument(state, runtime, "alone", memory(state), given)


async def question_of_advocate(
    state: AgentState, runtime: AgentRuntime[SamreSettings]
) -> dict[str, Any]:
    """Ask one side's advocate for its question to the other side.

    Shown: the case, and the debate so far with both sides' arguments of this round.
    """
    return await _examined(state, runtime, "question", memory(state))


async def answer_of_advocate(
    state: AgentState, runtime: AgentRuntime[SamreSettings]
) -> dict[str, Any]:
    """Ask one side's advocate for its answer to the other side's question.

    Shown: the case, the debate so far, and the question last. An advocate does not read its own
    question, which is not for it to answer.
    """
    turns = memory(state)
    asked = f"advocate_{3 - side_of_agent(state['agent'])}_asks"
    question = [turn for turn in turns if turn["agent"] == asked]
    others = [turn for turn in turns if not turn["agent"].endswith("_asks")]
    return await _examined(state, runtime, "answer", [*others, *question])


async def _examined(
    state: AgentState, runtime: AgentRuntime[SamreSettings], part: str, record: list[Turn]
) -> dict[str, Any]:
    side = side_of_agent(state["agent"])
    own = runtime.prompts.instruction(f"examination/{part}", side=side, other=3 - side)
    return await ask_in_court(state, runtime, state["agent"], own, record, side=side)


async def advocate_of_team(
    state: AgentState, runtime: AgentRuntime[MoreSettings]
) -> dict[str, Any]:
    """Ask one advocate of a team for its defence in this round.

    On a rating, it argues for a high or for a low score.

    Shown: the case; from round 2 on the team's record; if they collaborate, the teammates' latest
    defences.
    """
    settings = runtime.settings
    round = state["round"]
    side = side_of_agent(state["agent"])
    argued = without_failed(turns_of_round(state, "advocate", round))
    speakers = [turn["agent"] for turn in argued]
    heard = side in map(side_of_agent, speakers)
    number = int(state["agent"].rpartition("_")[2])
    names = LEADS if is_rating(state) else _CRITERIA
    lead = " and ".join(leading_criteria(number, settings.advocates, names)).lower()
    team: dict[str, Any] = {
        "number": number,
        "advocates": settings.advocates,
        "lead": lead,
        "heard": heard,
    }
    given = {**team, "round": round, "rounds": settings.rounds}
    record = record_of(state, side, round)
    if is_rating(state):
        return await ask_on_rating(state, runtime, state["agent"], "advocate", record, **given)
    return await _argument(state, runtime, "in_team", record, given)


_CRITERIA = tuple(criterion.name for criterion in CRITERIA)


def leading_criteria(
    number: int, advocates: int, names: Sequence[str] = _CRITERIA
) -> Sequence[str]:
    """Return the criteria that an advocate emphasizes; up to 36 team members get different ones.

    >>> leading_criteria(1, 3), leading_criteria(3, 3)
    (('Relevance', 'Clarity'), ('Depth', 'Answering the opponent'))
    """
    if advocates == 1:
        return ()
    if advocates <= len(names):
        return names[number - 1 :: advocates]
    # More advocates than criteria: the first six lead with one criterion each, the next six with
    # two.
    cycle, at = divmod(number - 1, len(names))
    return list(dict.fromkeys([names[at], names[(at + cycle) % len(names)]]))


async def _argument(
    state: AgentState,
    runtime: AgentRuntime[Any],
    kind: str,
    record: list[Turn],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    agent = state["agent"]
    side = side_of_agent(state["agent"])
    own = runtime.prompts.instruction(
        f"courtroom/advocate_{kind}", side=side, other=3 - side, **given
    )
    return await ask_in_court(state, runtime, agent, own, record, side=side, round=given["round"])
