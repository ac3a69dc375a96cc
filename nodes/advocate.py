"""Ask the advocates, each of whom defends one answer against the other, alone or in a team (MORE, SAMRE)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import MoreSettings, SamreSettings
from ..state.transcript import Turn
from .agent_runtime import AgentRuntime, Answer, Question
from .court_summarizer import memory
from .courtroom import (
    CRITERIA,
    SIDES,
    court_details,
    court_prompt,
    merge_answers,
    record_of,
    side_of,
    totals_so_far,
)
from .output_schemas import TextSchema
from .prompt_templates import Instruction, Prompt


async def lone_advocates(
    state: JudgeState, runtime: AgentRuntime[SamreSettings], round: int
) -> dict[str, Any]:
    """Ask both advocates at once for their arguments of a round.

    Shown: the case, and the memory of earlier rounds with both sides' arguments, the scores and the feedback.
    """
    given = {"round": round, "rounds": runtime.settings.max_rounds, "totals": totals_so_far(state["scores"])}
    questions = [
        _question(
            f"advocate_{side}",
            round,
            court_prompt(state, runtime.prompts, _own(runtime, "alone", side, **given), memory(state)),
            side,
        )
        for side in SIDES
    ]
    return {**merge_answers(await runtime.ask_all(questions)), "round": round}


async def teams_of_advocates(
    state: JudgeState, runtime: AgentRuntime[MoreSettings], round: int
) -> dict[str, Any]:
    """Ask both teams for their defences of a round, all advocates at once; or in turn if they collaborate.

    Shown: the case; from round 2 on the team's record; if they collaborate, what team mates have just said.
    """
    numbers = range(1, runtime.settings.advocates + 1)
    answers: list[Answer] = []
    # Advocates who collaborate read their team mates' words, so only the same number of both teams can speak at once.
    for group in [[number] for number in numbers] if runtime.settings.collaborate else [list(numbers)]:
        spoken = [answer.turn for answer in answers]
        questions = [
            _of_team(state, runtime, round, side, number, spoken) for side in SIDES for number in group
        ]
        answers += await runtime.ask_all(questions)
    # By side, and within a side by number (the sort is stable), whether or not the teams spoke in turn.
    in_order = sorted(answers, key=lambda answer: side_of(answer.turn))
    return {**merge_answers(in_order), "round": round}


def leading_criteria(number: int, advocates: int) -> list[str]:
    """Return the criteria that an advocate puts first; no two advocates of a team have the same (up to 36 of them).

    >>> leading_criteria(1, 3), leading_criteria(3, 3)
    (['Relevance', 'Clarity'], ['Depth', 'Answering the opponent'])
    """
    names = [criterion.name for criterion in CRITERIA]
    if advocates == 1:
        return []
    if advocates <= len(names):
        return names[number - 1 :: advocates]
    # More advocates than criteria: the first six lead with one each, the next six with that and its neighbour, ...
    cycle, at = divmod(number - 1, len(names))
    return list(dict.fromkeys([names[at], names[(at + cycle) % len(names)]]))


def _of_team(
    state: JudgeState,
    runtime: AgentRuntime[MoreSettings],
    round: int,
    side: int,
    number: int,
    spoken: Sequence[Turn],
) -> Question:
    settings = runtime.settings
    mates = [turn for turn in spoken if side_of(turn) == side]
    given = {
        "number": number,
        "advocates": settings.advocates,
        "lead": " and ".join(leading_criteria(number, settings.advocates)).lower(),
        "heard": bool(mates),
        "round": round,
        "rounds": settings.rounds,
    }
    own = _own(runtime, "in_team", side, **given)
    record = [*record_of(state, side, round), *mates]
    prompt = court_prompt(state, runtime.prompts, own, record)
    return _question(f"advocate_{side}_{number}", round, prompt, side)


def _own(runtime: AgentRuntime[Any], kind: str, side: int, **given: Any) -> Instruction:
    return runtime.prompts.instruction(f"courtroom/advocate_{kind}", side=side, other=3 - side, **given)


def _question(agent: str, round: int, prompt: Prompt, side: int) -> Question:
    return Question(agent, "advocate", round, prompt, TextSchema(), court_details(side=side))
