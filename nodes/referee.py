"""Ask the referees, who discuss and give their scores in the last turn (ChatEval, section 2, appendix A).

An ensemble's referees answer the same prompt with the history left out, the single scorer with history and role
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import ChatEvalSettings, EnsembleSettings, SingleSettings
from ..state.transcript import Turn, last_turn
from .agent_runtime import AgentRuntime, Answer, Question
from .output_schemas import TextSchema
from .personas import Referee, load_referees
from .prompt_context import build_prompt, call_metadata, requested_output, score_schema, task_of
from .prompt_templates import Instruction


async def contribute(
    state: JudgeState,
    runtime: AgentRuntime[ChatEvalSettings],
    referees: Sequence[Referee],
    speakers: Sequence[Referee],
    turn: int,
) -> dict[str, Any]:
    """Ask referees for their contributions to one turn of the discussion, all speakers at the same time.

    Shown: the material, the rubric, the discussion so far (or its summary), who the referee is. Argues in words;
    asked for scores in the last turn, or in each where the settings say so.

    Args:
        state: the state of the discussion.
        runtime: settings, prompts and models.
        referees: all referees who take part.
        speakers: those of them who speak now.
        turn: the number of the turn, from 1.
    """
    questions = [_contribution(state, runtime, referee, turn) for referee in speakers]
    return {**_merged(await runtime.ask_all(questions), referees), "round": turn}


async def independent_referees(state: JudgeState, runtime: AgentRuntime[EnsembleSettings]) -> dict[str, Any]:
    """Ask all referees of an ensemble for their scores at the same time; none knows of the others."""
    referees = await load_referees(runtime.settings)
    questions = [_verdict(state, runtime, referee) for referee in referees]
    return {**_merged(await runtime.ask_all(questions), referees), "round": 1}


async def single_scorer(state: JudgeState, runtime: AgentRuntime[SingleSettings]) -> dict[str, Any]:
    """Ask one scorer, who has neither a role nor a discussion."""
    answer = await runtime.ask(_verdict(state, runtime))
    return {**answer.update, "scores": [answer.value], "round": 1}


def visible_history(state: JudgeState, settings: ChatEvalSettings) -> list[Turn]:
    """Return the discussion as a referee sees it: all turns, or the latest summary in their place."""
    if settings.strategy == "summarizer" and settings.summary == "replace":
        latest = last_turn(state["transcript"], "summarizer")
        return [latest] if latest else []
    return state["transcript"]


def _contribution(
    state: JudgeState, runtime: AgentRuntime[ChatEvalSettings], referee: Referee, round: int
) -> Question:
    settings, task = runtime.settings, task_of(state)
    # The last turn always ends in scores: the verdict is made of them.
    last = round == settings.turns
    scored = last or settings.score_each_turn
    others = settings.referees > 1
    # A summarizer is somebody else, whose words even the only referee is shown.
    alone = not others and settings.strategy != "summarizer"
    own = _own(state, runtime, referee, others=others, last=last, scored=scored)
    return Question(
        agent=referee.agent,
        role="referee",
        round=round,
        prompt=build_prompt(state, runtime.prompts, own, visible_history(state, settings), alone=alone),
        form=score_schema(task) if scored else TextSchema(),
        details={**call_metadata(task), "persona": referee.name},
    )


def _verdict(state: JudgeState, runtime: AgentRuntime[Any], referee: Referee | None = None) -> Question:
    task = task_of(state)
    own = _own(state, runtime, referee, others=False, last=True, scored=True)
    return Question(
        agent=referee.agent if referee else "scorer",
        role="referee" if referee else "scorer",
        round=1,
        prompt=build_prompt(state, runtime.prompts, own),
        form=score_schema(task),
        details={**call_metadata(task), **({"persona": referee.name} if referee else {})},
    )


def _own(
    state: JudgeState, runtime: AgentRuntime[Any], referee: Referee | None, *, others: bool, **flags: bool
) -> Instruction:
    """Render the agent's own part of the prompt: who it is, and what it is asked to do now."""
    task, prompts = task_of(state), runtime.prompts
    return prompts.instruction(
        "chateval/referee",
        role=referee.words(prompts, task, others) if referee else "",
        title=referee.title if referee else "",
        agent=referee.agent if referee else "",
        wanted=requested_output(task),
        others=others,
        **flags,
    )


def _merged(answers: Sequence[Answer], referees: Sequence[Referee]) -> dict[str, Any]:
    alone = ["there is only one referee: nobody to discuss with"] if len(referees) == 1 else []
    return {
        "transcript": [answer.turn for answer in answers],
        "warnings": [*alone, *(warning for answer in answers for warning in answer.warnings)],
        "details": {"roles": {referee.agent: referee.name for referee in referees}},
    }
