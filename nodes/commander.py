"""The Commander: briefs, hands over, remembers; every message of the debate passes through it (DEBATE, section 2).

Relaying, it calls no model: the graph's state is the memory. With a model of its own, it writes what
accompanies the words that it hands over (appendix E.2).
"""

from __future__ import annotations

from typing import Any, Literal

from ..state.graph_state import JudgeState
from ..state.settings import DebateSettings
from ..state.tasks import CompareTask
from ..state.transcript import turn_without_model
from .agent_runtime import Hearing, Question
from .output_schemas import TextForm, describe
from .prompt_context import particulars, prompt_for, spoken, task_of

Recipient = Literal["scorer", "critic"]


def recipient(state: JudgeState) -> Recipient:
    """Whose turn it is: the Critic hears the Scorer, the Scorer everybody else."""
    said = spoken(state)
    return "critic" if said and said[-1]["role"] == "scorer" else "scorer"


async def commander(state: JudgeState, hearing: Hearing[DebateSettings]) -> dict[str, Any]:
    """Hand the latest words to whose turn it is; a new round begins when the Critic is called."""
    to = recipient(state)
    round = state["round"] + (to == "critic")
    if hearing.settings.commander == "llm":
        return {**await _written(state, hearing, to, round), "round": round}
    turn = turn_without_model(round, "commander", "commander", _relayed(state, hearing, to))
    hearing.tell(turn)
    return {"transcript": [turn], "round": round}


def _relayed(state: JudgeState, hearing: Hearing[DebateSettings], to: Recipient) -> str:
    if not state["scores"]:
        task = task_of(state)
        subject = "both answers" if isinstance(task, CompareTask) else f"the candidate for {task.aspect.name}"
        return hearing.prompts.render("debate/relay_brief", subject=subject)
    return hearing.prompts.render(f"debate/relay_to_{to}", value=describe(state["scores"][-1]))


async def _written(
    state: JudgeState, hearing: Hearing[DebateSettings], to: Recipient, round: int
) -> dict[str, Any]:
    first = not state["scores"]
    own = hearing.prompts.render("debate/commander", recipient=to, first=first)
    last = None if first else state["scores"][-1]
    answer = await hearing.ask(
        Question(
            agent="commander",
            role="commander",
            round=round,
            prompt=prompt_for(state, hearing.prompts, own, spoken(state)),
            form=TextForm(),
            details={**particulars(task_of(state)), "last_value": last},
        )
    )
    return answer.update
