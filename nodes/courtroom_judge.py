"""The courtroom judge: scores both answers on six criteria, with feedback (MORE, SAMRE, baseline).

On a rating, MORE's judge gives the text one score on the aspect's scale. It can also score one
defence alone, if the best one of each side represents that side (MORE, section 3.3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..state.graph_state import AgentState, JudgeState
from ..state.settings import BaselineSettings, MoreSettings, SamreSettings, Settings
from .runtime.agent_runtime import AgentRuntime
from .runtime.courtroom import (
    HIGHEST_TOTAL,
    LOWEST_TOTAL,
    SIDES,
    Points,
    SeveralTotalsSchema,
    TotalSchema,
    TotalsSchema,
    answers_of,
    ask_in_court,
    best_rulings,
    is_rating,
    presented_defences,
    read_points,
    rounds_and_totals,
    rulings_by_side,
    selected_advocates,
    side_of_agent,
    total_of,
    turns_of_round,
)
from .runtime.output_schemas import OutputSchema
from .runtime.prompt_context import score_schema, task_of
from .runtime.rating_teams import ask_on_rating, rounds_and_scores
from .runtime.verdicts import Decision, nearest


async def judge_alone(state: JudgeState, runtime: AgentRuntime[BaselineSettings]) -> dict[str, Any]:
    """Ask for the totals of both answers without a debate.

    Shown: the case.
    """
    own = runtime.prompts.instruction("courtroom/baseline")
    form = TotalsSchema(LOWEST_TOTAL, HIGHEST_TOTAL, explained=True)
    # The state is still in round 0, because there is no debate.
    return await ask_in_court(state, runtime, "judge", own, None, form, round=1, last_value=None)


async def judge_of_round(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
    """Ask for all sides' totals in this round, and for feedback.

    Shown: the case, this round's defences or arguments, and earlier totals.
    """
    settings: MoreSettings | SamreSettings = runtime.settings
    is_more = isinstance(settings, MoreSettings)
    # MORE ends before its last round only if its budget is spent.
    most = "" if is_more and settings.budget_tokens is None else "at most "
    rounds = settings.rounds if isinstance(settings, MoreSettings) else settings.max_rounds
    record = presented_defences(state, state["round"])
    if is_rating(state):
        course = {**rounds_and_scores(state, rounds), "most": most}
        return await ask_on_rating(
            state, runtime, "judge", "judge", record, is_scored=True, **course
        )
    given = rounds_and_totals(state, rounds)
    form: OutputSchema = TotalsSchema(LOWEST_TOTAL, HIGHEST_TOTAL, feedback=True)
    if (answers := answers_of(state)) > len(SIDES):
        own = runtime.prompts.instruction("court/judge", answers=answers, **given)
        form = SeveralTotalsSchema(LOWEST_TOTAL, HIGHEST_TOTAL, feedback=True, answers=answers)
    else:
        own = runtime.prompts.instruction("courtroom/judge", most=most, **given)
    last = state["scores"][-1] if state["scores"] else None
    return await ask_in_court(state, runtime, "judge", own, record, form, last_value=last)


async def feedback(state: JudgeState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask for feedback that helps the two sides to differ more clearly.

    Shown: the case, this round's defences, and the judge's own ruling on them.
    """
    round = state["round"]
    # With aggregate=best, each defence has its own judge.
    rulings = best_rulings(state, round) or turns_of_round(state, "judge", round)
    record = [*presented_defences(state, round), *rulings]
    if is_rating(state):
        course = rounds_and_scores(state, runtime.settings.rounds)
        return await ask_on_rating(state, runtime, "judge", "feedback", record, **course)
    given = rounds_and_totals(state, runtime.settings.rounds)
    own = runtime.prompts.instruction("courtroom/feedback", **given)
    return await ask_in_court(state, runtime, "judge", own, record, last_value=state["scores"][-1])


def by_last_ruling(state: JudgeState, _settings: Settings) -> Decision:
    """Decide by the totals of the last round; the details contain the points of every round."""
    final = state["scores"][-1]
    turns = state["transcript"]
    return Decision(final, nearest(turns, final), details={"criteria": points_by_round(state)})


def points_by_round(state: JudgeState) -> list[Points]:
    """Return the points behind the judge's totals for each round."""
    rulings = (turn for turn in state["transcript"] if turn["role"] == "judge")
    return [
        read_points(ruling["content"], answers=len(ruling["value"]))
        for ruling in rulings
        if isinstance(ruling["value"], list)
    ]


async def defence_judge(state: AgentState, runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Ask for the total of one defence: ``judge_1_2`` scores the defence of ``advocate_1_2``.

    On a rating, ask for the score of the text after this one argument. Shown: the case and the
    defence.
    """
    side = side_of_agent(state["agent"])
    advocate = state["agent"].replace("judge", "advocate", 1)
    defences = turns_of_round(state, "advocate", state["round"])
    defence = [turn for turn in defences if turn["agent"] == advocate]
    rounds = runtime.settings.rounds
    if is_rating(state):
        course = rounds_and_scores(state, rounds)
        return await ask_on_rating(
            state, runtime, state["agent"], "judge_of_one", defence, is_scored=True, **course
        )
    given = rounds_and_totals(state, rounds)
    own = runtime.prompts.instruction("courtroom/judge_of_one", side=side, **given)
    form = TotalSchema(LOWEST_TOTAL, HIGHEST_TOTAL)
    return await ask_in_court(state, runtime, state["agent"], own, defence, form, side=side)


def best_totals(state: JudgeState) -> list[list[float]]:
    """Return each side's best total for each round."""
    return [[total_of(turn) for turn in best_rulings(state, round)] for round in _rounds(state)]


def selections(state: JudgeState, tau: float) -> list[dict[str, Any]]:
    """Return each round's totals, their softmax weights, and the selected advocates.

    On a rating, the totals are scores of the text, and a low one has a high weight for the side
    that argues for it.
    """
    low: float = LOWEST_TOTAL
    high: float = HIGHEST_TOTAL
    signs = (1, 1)
    if is_rating(state):
        form = score_schema(task_of(state))
        low = form.low
        high = form.high
        signs = (1, -1)
    chosen = []
    for round in _rounds(state):
        totals = [[total_of(turn) for turn in turns] for turns in rulings_by_side(state, round)]
        weights = [
            softmax([sign * value for value in values], tau, high - low)
            for sign, values in zip(signs, totals, strict=True)
        ]
        picked = selected_advocates(state, round)
        chosen.append({"round": round, "totals": totals, "weights": weights, "picked": picked})
    return chosen


def _rounds(state: JudgeState) -> list[int]:
    """Return the rounds in which single defences were scored."""
    judges = (turn for turn in state["transcript"] if turn["role"] == "judge")
    return sorted({turn["round"] for turn in judges if side_of_agent(turn["agent"])})


def softmax(
    totals: Sequence[float], tau: float, span: float = HIGHEST_TOTAL - LOWEST_TOTAL
) -> list[float]:
    """Return the softmax weights of totals at temperature ``tau`` (MORE, section 3.3).

    The totals are first scaled to the range 0 to 1; ``span`` is the length of their scale.

    >>> softmax([63, 63], tau=0.1)
    [0.5, 0.5]
    """
    # Subtract the highest total, so that no exponential overflows at a small tau. The weights do
    # not change.
    highest = max(totals)
    raw = [math.exp((total - highest) / span / tau) for total in totals]
    return [weight / sum(raw) for weight in raw]
