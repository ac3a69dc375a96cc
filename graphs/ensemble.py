"""Ensemble: referees with different personas score at the same time (ChatEval, section 3.2).

    prepare --one_order, both_orders----> referee x N -> conclude
       +--roles_open--> planner --------> referee x N

With ``stop="decided"``, the referees are asked one after the other, until their votes decide::

    prepare --in_turn--> referee -> next_referee --next_vote--> referee
                                    next_referee --decided--> conclude

The prompt is ChatEval's own without the history. The referees do not discuss. Each answers once,
and their scores are averaged, or combined by another rule (``combine``). In a comparison, the
answer with the higher combined score wins. By default, a comparison runs in both orders of the
answers at once, and each referee's scores are averaged over them before they are combined.

Stop reason: ``complete``, or ``decided`` if some referees were not asked.

Model calls: N; a comparison with position calibration takes 2N. ``roles=auto`` adds 1 for the
personas. ``stop="decided"`` asks more than half of the referees at least. With ``juror_tools``, up
to ``tool_rounds`` requests for tools come before each referee's call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from ..nodes.referee import independent_referee, referees, roles_of_referees, who_judged
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.personas import casting, roles_are_open, with_roles
from ..nodes.runtime.prompt_context import score_schema, task_of
from ..nodes.runtime.stops import panel_is_decided
from ..nodes.runtime.verdicts import (
    Decision,
    by_rule,
    combine_panel,
    last_scores,
    number_of_orders,
    orders_shown,
    scores_over_orders,
    turns_in_order,
)
from ..state.citations import CHATEVAL
from ..state.graph_state import JudgeState, Outcome
from ..state.panels import votes_needed
from ..state.protocol_facts import ENSEMBLE_FACTS
from ..state.protocols import (
    CallRange,
    CallsByRole,
    Can,
    Protocol,
    Replay,
    exactly,
    with_requests_for_tools,
)
from ..state.settings import EnsembleSettings
from ..state.settings.protocol_settings import AUTO
from ..state.tasks import TaskKind
from ..state.transcript import Score
from ..state.verdict import StopReason, Verdict
from .engine.base import FanOut, ProtocolGraph, each
from .engine.options import Bound, EnsembleOptions
from .wrappers.calibrated import weigh_orders


def calls(settings: EnsembleSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one call for each referee and order of the answers."""
    referees = exactly(settings.referees)
    if "decided" in settings.stop:
        referees = CallRange(fewest_referees(settings, kind), settings.referees)
    if settings.recuse != "none":
        needed = votes_needed(settings.quorum, settings.referees)
        referees = CallRange(needed, settings.referees)
    referees *= number_of_orders(settings, kind)
    of_roles = {"planner": exactly(int(settings.roles == AUTO)), "referee": referees}
    return with_requests_for_tools(of_roles, settings, "referee")


def fewest_referees(settings: EnsembleSettings, kind: TaskKind) -> int:
    """Return how many referees decide if all give the same extreme scores.

    >>> fewest_referees(EnsembleSettings(referees=5, stop="decided"), "compare")
    3
    """
    names = [f"referee_{number}" for number in range(1, settings.referees + 1)]
    # A file of roles may name other referees.
    weights = settings.weights and {name: settings.weights.get(name, 1.0) for name in names}
    extreme: Score = 1.0 if kind == "score" else [10.0, 1.0]
    return next(
        (
            asked
            for asked in range(votes_needed(settings.quorum, len(names)), len(names))
            if panel_is_decided(
                dict.fromkeys(names[:asked], extreme),
                names[asked:],
                (1.0, 10.0),
                settings.combine,
                weights,
            )
        ),
        len(names),
    )


def impossible(settings: EnsembleSettings) -> set[str]:
    """Return the outcomes that the settings exclude: in turn or all at once, and a planner."""
    in_turn = {"in_turn", "next_vote", "decided"}
    at_once = {"one_order", "both_orders", "heard"}
    excluded = at_once if "decided" in settings.stop else in_turn
    return excluded if settings.roles == AUTO else excluded | {"roles_open"}


protocol = Protocol(
    name="ensemble",
    summary="the average of referees with different personas who do not talk",
    source="ChatEval (Chan et al. 2024), section 3.2",
    citation=CHATEVAL,
    kinds=("score", "compare"),
    roles=("planner", "referee"),
    settings=EnsembleSettings,
    prompts=("shared", "chateval", "casting"),
    calls=calls,
    role_kinds=ENSEMBLE_FACTS.role_kinds,
    tool_roles=("referee",),
    agents=lambda settings: {"referee": settings.referees},
    phases={"next_referee": {"referee": ["next_vote", "decided"]}},
    impossible=impossible,
    replay=Replay(fixed=("roles",)),
    ensemble=ENSEMBLE_FACTS.ensemble,
)


def who_is_first(state: JudgeState, settings: EnsembleSettings) -> str:
    """Route to the planner if it has to write the personas, otherwise to all referees."""
    written = roles_are_open(state, settings) == "roles_given"
    return how_asked(state, settings) if written else "roles_open"


def how_asked(state: JudgeState, settings: EnsembleSettings) -> str:
    """Return whether the referees are asked in turn, or all at once in one or both orders."""
    return "in_turn" if "decided" in settings.stop else orders_shown(state, settings)


def after_referee(_state: JudgeState, settings: EnsembleSettings) -> str:
    """Return to the next referee if they are asked in turn."""
    return "in_turn" if "decided" in settings.stop else "heard"


async def next_referee(
    _state: JudgeState, _runtime: AgentRuntime[EnsembleSettings]
) -> dict[str, Any]:
    """Wait for a referee's scores in all orders; ``after_vote`` decides what follows."""
    return {}


def unasked_referees(state: JudgeState, settings: EnsembleSettings) -> list[str]:
    """Return the referees that have not been asked, in order."""
    asked = {turn["agent"] for turn in state["transcript"] if turn["role"] == "referee"}
    return [referee for referee in referees(state, settings) if referee not in asked]


def after_vote(state: JudgeState, settings: EnsembleSettings) -> str:
    """Return whether the votes decide and reach the quorum, or another referee is asked.

    When all have been asked, their votes decide in any case.
    """
    outstanding = unasked_referees(state, settings)
    if not outstanding:
        return "decided"
    turns = state["transcript"]
    scores: Mapping[str, Score] = last_scores(turns)
    if len(state["orders"]) > 1:
        scores = scores_over_orders(turns_in_order(state, 1), turns_in_order(state, 2))
    form = score_schema(task_of(state))
    decided = panel_is_decided(
        scores, outstanding, (form.low, form.high), settings.combine, settings.weights
    )
    needed = votes_needed(settings.quorum, len(referees(state, settings)))
    return "decided" if decided and len(scores) >= needed else "next_vote"


def stop_reason(state: JudgeState, settings: EnsembleSettings) -> StopReason:
    """Return whether all referees were asked, or the votes of some decided."""
    return "decided" if unasked_referees(state, settings) else "complete"


def decide(state: JudgeState, settings: EnsembleSettings) -> Decision:
    """Decide by the rule of the settings; the details name the referees that were not asked."""
    decision = by_rule(state, settings)
    unasked = unasked_referees(state, settings)
    details = {**decision.details, "not_asked": unasked} if unasked else decision.details
    return replace(decision, details=details)


def weigh_referees(straight: Outcome, mapped: Outcome) -> Verdict:
    """Combine the referees' averages over both orders, which are also in the details."""
    pairs = scores_over_orders(straight["transcript"], mapped["transcript"])
    details = {**who_judged(straight), "scores_by_referee": pairs}
    of_order = straight["verdict"]["details"]
    if unasked := of_order.get("not_asked"):
        details["not_asked"] = unasked
    how = of_order.get("combine")
    if how is None:
        return weigh_orders(straight, mapped, details=details)
    final, winner, of_rule = combine_panel(pairs, how, of_order.get("weights"))
    assert isinstance(final, list)
    pair = (final[0], final[1])
    whole = weigh_orders(straight, mapped, winner, {**details, **of_rule})
    return whole.model_copy(update={"scores": pair, "score_by_round": (pair,)})


def build(
    settings: Bound[EnsembleSettings] = None,
    models: Models | None = None,
    **fields: Unpack[EnsembleOptions],
) -> ProtocolGraph[EnsembleSettings]:
    """Build the ensemble's graph, not compiled; arguments and errors as for ``chateval.build``.

    >>> graph = build(referees=5, models={"*": "offline"}).compile()
    >>> result = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})
    >>> result["verdict"]["calls"]
    5
    """
    graph = ProtocolGraph(protocol, EnsembleSettings, settings, models, fields)
    graph.bound_judge.bound = with_roles(graph.bound_judge.bound)
    graph.begin(roles_of_referees)
    graph.agent("planner", casting)
    graph.agent("next_referee", next_referee)
    graph.agents("referee", independent_referee, quorum=lambda settings: settings.quorum)
    graph.end(stop_reason, decide, weigh_referees)
    asked = each("referee", referees)
    ways: dict[str, str | FanOut] = {"one_order": asked, "both_orders": asked}
    vote = each("referee", lambda state, settings: unasked_referees(state, settings)[:1])
    ways["in_turn"] = vote
    graph.route("prepare", who_is_first, {**ways, "roles_open": "planner"})
    graph.route("planner", how_asked, ways)
    graph.route("referee", after_referee, {"heard": "conclude", "in_turn": "next_referee"})
    graph.route("next_referee", after_vote, {"next_vote": vote, "decided": "conclude"})
    return graph


graph = build().compile(name="ensemble")
