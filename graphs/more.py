"""MORE: two teams of advocates and one judge (courtroom paper, 3.1 and 3.3).

    prepare -> teams --advocates--> advocate x 2k -> teams      all at once; one of each side after the other if they
                 |                                              collaborate
                 +--llm--> aggregator x 2 --> judge --+--complete--> conclude
                 +--concat------------------> judge --+
                 +--best--> defence_judge x 2k -------+--another_round--> feedback -> teams
                                                      +--budget_asked---> next_round

    next_round --within_budget--> feedback                 only with budget_tokens
    next_round --early_end------> conclude

The setting ``aggregate`` decides on the judge's input: one defence per team, merged by a model
(``llm``), all defences (``concat``), or each defence alone (``best``). With ``best``, the highest
score of each team decides without a further judge. The totals of the last round count, 6 to 120 per
side. The higher one wins.

A comparison has a team for each answer. A rating has a team for a high score and one for a low
score, and the judge gives the text one score on the aspect's scale. With ``best``, it scores the
text once for each argument, and the verdict is the mean of the highest score after an argument for
the text and the lowest score after one against it. The paper has no rating; appendix A.5 wishes for
tests on summaries and dialogue, whose data sets have ratings.

An advocate whose call fails is silent. Each round needs a quorum of the advocates, and at least one
for each side.

Stop reason: ``complete``; with ``budget_tokens`` also ``budget``, if a further round would exceed it.

Model calls with k advocates per side: 2k + 3 in one round (``llm``), 2k + 1 (``concat``), 4k
(``best``). Each further round adds the same and 1 for the judge's feedback.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Unpack

from ..nodes.advocate import advocate_of_team
from ..nodes.aggregator import aggregator
from ..nodes.courtroom_judge import (
    best_totals,
    by_last_ruling,
    defence_judge,
    feedback,
    judge_of_round,
    selections,
)
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.courtroom import (
    SIDES,
    best_rulings,
    is_rating,
    side_of_agent,
    total_of,
    turns_of_round,
)
from ..nodes.runtime.rating_teams import LEVELS
from ..nodes.runtime.stops import early_stop_of_teams
from ..nodes.runtime.verdicts import (
    Decision,
    by_last_score,
    nearest,
    scores_of_roles,
    with_early_stop,
)
from ..state.aggregation import mean_of
from ..state.citations import COURTROOM
from ..state.graph_state import JudgeState
from ..state.panels import without_failed
from ..state.protocol_facts import MORE_FACTS
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, Replay, exactly
from ..state.settings import MoreSettings
from ..state.tasks import TaskKind
from ..state.transcript import Score
from ..state.verdict import StopReason
from .engine.base import ProtocolGraph, each
from .engine.options import Bound, MoreOptions
from .engine.panel_rules import PanelRules


def calls(settings: MoreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count both teams in every round, the aggregators, the judge, and feedback between rounds."""
    team = 2 * settings.advocates
    rounds = CallRange(1 if settings.budget_tokens else settings.rounds, settings.rounds)
    judged = team if settings.aggregate == "best" else 1
    between = CallRange(rounds.least - 1, rounds.most - 1)
    return {
        "advocate": rounds * team,
        "aggregator": rounds * 2 if settings.aggregate == "llm" else exactly(0),
        "judge": rounds * judged + between,
    }


def impossible(settings: MoreSettings) -> set[str]:
    """Return the outcomes that the settings exclude: the other aggregates, and further rounds."""
    excluded = {"llm", "concat", "best"} - {settings.aggregate}
    asked = {"budget_asked", "within_budget", "early_end"}
    if settings.rounds == 1:
        return excluded | {"another_round"} | asked
    return excluded | (asked if settings.budget_tokens is None else {"another_round"})


protocol = Protocol(
    name="more",
    summary="teams of advocates argue for two answers, or about one text, before a judge",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, section 3.1",
    citation=COURTROOM,
    kinds=("score", "compare"),
    roles=("advocate", "aggregator", "judge"),
    settings=MoreSettings,
    prompts=("shared", "courtroom", "rating"),
    calls=calls,
    role_kinds=MORE_FACTS.role_kinds,
    agents=lambda settings: {
        "advocate": 2 * settings.advocates,
        "aggregator": 2,
        "defence_judge": 2 * settings.advocates,
    },
    phases={
        "teams": {
            "prepare": ["advocates"],
            "advocate": ["advocates", "llm", "best", "concat"],
            "feedback": ["advocates"],
        },
        "next_round": {
            "judge": ["within_budget", "early_end"],
            "defence_judge": ["within_budget", "early_end"],
        },
    },
    replay=Replay(fixed=("advocates", "aggregate", "collaborate")),
    impossible=impossible,
    score_gaps=MORE_FACTS.score_gaps,
)


def scores_by_round(state: JudgeState) -> list[Score]:
    """Return each round's totals, or its score of one text.

    With ``aggregate="best"``, it is each team's best total, or the mean of each team's best score.
    """
    # Only ``aggregate="best"`` scores single defences. This function does not know the settings.
    best = best_totals(state)
    if not best:
        return scores_of_roles(protocol.role_kinds)(state)
    return [mean_of(of_round) for of_round in best] if is_rating(state) else [*best]


def advocates_due(state: JudgeState, settings: MoreSettings) -> list[str]:
    """Return the advocates that speak next: all, or one of each team if they collaborate."""
    spoken = {turn["agent"] for turn in turns_of_round(state, "advocate", state["round"])}
    numbers = range(1, settings.advocates + 1)
    silent = [number for number in numbers if f"advocate_{SIDES[-1]}_{number}" not in spoken]
    due = silent[:1] if settings.collaborate else silent
    return [f"advocate_{side}_{number}" for side in SIDES for number in due]


def advocates(_state: JudgeState, settings: MoreSettings) -> list[str]:
    """Return the names of all advocates."""
    numbers = range(1, settings.advocates + 1)
    return [f"advocate_{side}_{number}" for side in SIDES for number in numbers]


def defence_judges(state: JudgeState, settings: MoreSettings) -> list[str]:
    """Return one judge per defence: ``judge_1_2`` for the defence of ``advocate_1_2``."""
    defences = without_failed(turns_of_round(state, "advocate", state["round"]))
    heard = {turn["agent"] for turn in defences}
    everybody = advocates(state, settings)
    return [name.replace("advocate", "judge", 1) for name in everybody if name in heard]


async def teams(state: JudgeState, _runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Begin the next round after the judge's ruling, otherwise wait for both teams."""
    return {"round": state["round"] + 1} if len(state["scores"]) == state["round"] else {}


def after_teams(state: JudgeState, settings: MoreSettings) -> str:
    """Route to advocates who are still due, otherwise to the step that ``aggregate`` names."""
    return "advocates" if advocates_due(state, settings) else settings.aggregate


def after_judge(state: JudgeState, settings: MoreSettings) -> str:
    """End after the last round, otherwise give both sides feedback for the next one."""
    if state["round"] >= settings.rounds:
        return "complete"
    return "another_round" if settings.budget_tokens is None else "budget_asked"


async def next_round(_state: JudgeState, _runtime: AgentRuntime[MoreSettings]) -> dict[str, Any]:
    """Wait for all rulings of the round; ``after_ruling`` asks for the budget."""
    return {}


def after_ruling(state: JudgeState, settings: MoreSettings) -> str:
    """Return whether a further round is within the token budget."""
    return "early_end" if early_stop_of_teams(settings, state["transcript"]) else "within_budget"


def stop_reason(state: JudgeState, settings: MoreSettings) -> StopReason:
    """Return whether all rounds were held, or the budget ended them."""
    return "complete" if state["round"] >= settings.rounds else "budget"


def decide(state: JudgeState, settings: MoreSettings) -> Decision:
    """Decide by the last round's totals, or by its score of one text.

    The details contain the points behind the totals, or with ``aggregate="best"`` the best
    defences.
    """
    turns = state["transcript"]
    final = state["scores"][-1]
    rates = is_rating(state)
    if settings.aggregate == "best":
        best = best_rulings(state, state["round"])
        turn = nearest(best, final) if rates else max(best, key=total_of)
        details = {"best": selections(state, settings.tau), "tau": settings.tau}
        decision = Decision(final, turn, details=details)
    elif rates:
        decision = by_last_score(protocol.role_kinds)(state, settings)
    else:
        decision = by_last_ruling(state, settings)
    is_early = stop_reason(state, settings) == "budget"
    stop = early_stop_of_teams(settings, turns) if is_early else None
    return with_early_stop(decision, stop, turns, settings.budget_tokens)


def name_of_side(state: JudgeState, side: Hashable) -> str:
    """Return the name of a team's side for messages."""
    if not is_rating(state):
        return f"answer {side}"
    return f"a {LEVELS[1] if side == SIDES[0] else LEVELS[2]} score"


def build(
    settings: Bound[MoreSettings] = None,
    models: Models | None = None,
    **fields: Unpack[MoreOptions],
) -> ProtocolGraph[MoreSettings]:
    """Build the MORE graph, not compiled; arguments and errors as for ``debate.build``.

    >>> graph = build(advocates=2, aggregate="concat").compile()
    >>> result = graph.invoke({"task": {"kind": "compare", "question": "When did the bridge open?",
    ...     "answer_1": "The bridge opened in 1932.", "answer_2": "No idea."}})
    >>> [turn["agent"] for turn in result["transcript"]]
    ['advocate_1_1', 'advocate_1_2', 'advocate_2_1', 'advocate_2_2', 'judge']
    """
    graph = ProtocolGraph(protocol, MoreSettings, settings, models, fields, scores_by_round)
    graph.begin(then="teams")
    graph.agent("teams", teams)
    panel = PanelRules[MoreSettings](
        quorum=lambda settings: settings.quorum,
        members=advocates,
        side_of=side_of_agent,
        name_of_side=name_of_side,
    )
    graph.agents("advocate", advocate_of_team, then="teams", quorum=panel)
    graph.agents("aggregator", aggregator, then="judge")
    graph.agents("defence_judge", defence_judge)
    graph.agent("judge", judge_of_round)
    graph.agent("feedback", feedback, then="teams")
    graph.agent("next_round", next_round)
    graph.end(stop_reason, decide)
    argue = each("advocate", advocates_due)
    rate = each("defence_judge", defence_judges)
    combine = each("aggregator", lambda _state, _settings: [f"aggregator_{side}" for side in SIDES])
    graph.route(
        "teams", after_teams, {"advocates": argue, "llm": combine, "concat": "judge", "best": rate}
    )
    for judge in ("judge", "defence_judge"):
        outcomes = {"another_round": "feedback", "complete": "conclude"}
        graph.route(judge, after_judge, {**outcomes, "budget_asked": "next_round"})
    further = {"within_budget": "feedback", "early_end": "conclude"}
    graph.route("next_round", after_ruling, further)
    return graph


graph = build().compile(name="more")
