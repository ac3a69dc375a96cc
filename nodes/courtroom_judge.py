"""Ask the judge to score both answers on six criteria and to give the advocates feedback (MORE, SAMRE, baseline)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import BaselineSettings, MoreSettings, SamreSettings, Settings
from ..state.transcript import Turn
from .agent_runtime import AgentRuntime
from .courtroom import (
    HIGHEST_TOTAL,
    LOWEST_TOTAL,
    Points,
    TotalsSchema,
    ask_in_court,
    presented_defences,
    read_points,
    selected_advocates,
    totals_so_far,
    turns_of_round,
)
from .prompt_context import Instruction
from .verdicts import Decision, nearest


async def judge_alone(state: JudgeState, runtime: AgentRuntime[BaselineSettings]) -> dict[str, Any]:
    """Ask for the totals of both answers, without any debate.

    Shown: the case.
    """
    own = runtime.prompts.instruction("courtroom/baseline")
    form = TotalsSchema(LOWEST_TOTAL, HIGHEST_TOTAL, explained=True)
    return await _judged(state, runtime, own, form)


async def judge_of_teams(state: JudgeState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask for both sides' totals in this round.

    Shown: the case, this round's defences, earlier totals.
    """
    record = presented_defences(state, state["round"])
    own = _own(state, runtime, runtime.settings.rounds, "")
    return await _judged(state, runtime, own, _WITH_FEEDBACK, record)


async def judge_of_round(state: JudgeState, runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Ask for both sides' totals in this round, and for feedback.

    Shown: the case, this round's two arguments, earlier totals.
    """
    record = turns_of_round(state, "advocate", state["round"])
    own = _own(state, runtime, runtime.settings.max_rounds, "at most ")
    return await _judged(state, runtime, own, _WITH_FEEDBACK, record)


async def feedback(state: JudgeState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask for feedback that helps the two sides to differ more clearly.

    Shown: the case, this round's defences, the judge's own ruling on them.
    """
    round, totals = state["round"], totals_so_far(state["scores"])
    given = {"round": round, "rounds": runtime.settings.rounds, "totals": totals}
    own = runtime.prompts.instruction("courtroom/feedback", **given)
    # With aggregate=best each defence has a judge of its own: judge_1_2 scored the defence of advocate_1_2.
    judges = {name.replace("advocate", "judge", 1) for name in selected_advocates(state, round)} or {"judge"}
    rulings = [turn for turn in turns_of_round(state, "judge", round) if turn["agent"] in judges]
    record = [*presented_defences(state, round), *rulings]
    return await ask_in_court(state, runtime, "judge", own, record, last_value=state["scores"][-1])


_WITH_FEEDBACK = TotalsSchema(LOWEST_TOTAL, HIGHEST_TOTAL, feedback=True)


async def _judged(
    state: JudgeState,
    runtime: AgentRuntime[Any],
    own: Instruction,
    form: TotalsSchema,
    record: Sequence[Turn] | None = None,
) -> dict[str, Any]:
    # The judge without a debate is asked while the state still says round 0.
    round, last = max(state["round"], 1), state["scores"][-1] if state["scores"] else None
    return await ask_in_court(state, runtime, "judge", own, record, form, round=round, last_value=last)


def by_last_ruling(state: JudgeState, _settings: Settings) -> Decision:
    """Take the totals of the last round; the details hold the points behind those of every round."""
    final = state["scores"][-1]
    rulings = [turn for turn in state["transcript"] if turn["role"] == "judge"]
    return Decision(final, nearest(rulings, final), details={"criteria": points_by_round(state)})


def points_by_round(state: JudgeState) -> list[Points]:
    """Return, for each round, the points behind the judge's totals."""
    rulings = (turn for turn in state["transcript"] if turn["role"] == "judge")
    return [read_points(ruling["content"]) for ruling in rulings if isinstance(ruling["value"], list)]


def _own(state: JudgeState, runtime: AgentRuntime[Any], rounds: int, most: str) -> Instruction:
    given = {"round": state["round"], "rounds": rounds, "totals": totals_so_far(state["scores"])}
    return runtime.prompts.instruction("courtroom/judge", most=most, **given)
