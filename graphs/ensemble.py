"""Ensemble: referees with different personas score at the same time (ChatEval, section 3.2).

    prepare --one_order, both_orders----> referee x N -> conclude
       +--roles_open--> planner --------> referee x N

The prompt is ChatEval's own without the history. The referees do not discuss. Each answers once,
and their scores are averaged, or combined by another rule (``combine``). In a comparison, the
answer with the higher combined score wins. By default, a comparison runs in both orders of the
answers at once, and each referee's scores are averaged over them before they are combined.

Stop reason: always ``complete``.

Model calls: N; a comparison with position calibration takes 2N. ``roles=auto`` adds 1 for the
personas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from ..nodes.referee import independent_referee, referees, roles_of_referees, who_judged
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.personas import casting, roles_are_open, with_roles
from ..nodes.runtime.verdicts import (
    by_rule,
    combine_panel,
    number_of_orders,
    orders_shown,
    scores_over_orders,
)
from ..state.citations import CHATEVAL
from ..state.graph_state import JudgeState, Outcome
from ..state.protocols import CallsByRole, Can, Ensemble, Protocol, Replay, exactly
from ..state.settings import EnsembleSettings
from ..state.settings.protocol_settings import AUTO, GROUPS, SAME
from ..state.tasks import TaskKind
from ..state.verdict import Verdict
from .engine.base import FanOut, ProtocolGraph, each
from .engine.options import Bound, EnsembleOptions
from .wrappers.calibrated import weigh_orders


def calls(settings: EnsembleSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one call for each referee and order of the answers."""
    referees = exactly(settings.referees * number_of_orders(settings, kind))
    return {"planner": exactly(int(settings.roles == AUTO)), "referee": referees}


def of_size(referees: int, alike: bool) -> dict[str, Any]:
    """Return the settings of an ensemble of a given size.

    All referees share one persona if ``alike`` is set or there are fewer personas than referees.
    """
    same = {"roles": SAME} if alike or referees > len(GROUPS["diverse"]) else {}
    return {"referees": referees, **same}


def are_alike(settings: Mapping[str, Any]) -> bool:
    """Return whether all referees have one role and their scores are averaged."""
    if settings.get("combine", "mean") != "mean":
        return False
    roles = settings.get("roles", SAME)
    return roles == SAME if isinstance(roles, str) else len({str(role) for role in roles}) == 1


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
    role_kinds={"planner": "plans", "referee": "panel"},
    agents=lambda settings: {"referee": settings.referees},
    replay=Replay(fixed=("roles",)),
    ensemble=Ensemble(single="single", settings=of_size, alike=are_alike),
)


def who_is_first(state: JudgeState, settings: EnsembleSettings) -> str:
    """Route to the planner if it has to write the personas, otherwise to all referees."""
    written = roles_are_open(state, settings) == "roles_given"
    return orders_shown(state, settings) if written else "roles_open"


def weigh_referees(straight: Outcome, mapped: Outcome) -> Verdict:
    """Combine the referees' averages over both orders, which are also in the details."""
    pairs = scores_over_orders(straight["transcript"], mapped["transcript"])
    details = {**who_judged(straight), "scores_by_referee": pairs}
    of_order = straight["verdict"]["details"]
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
    graph.agents(
        "referee", independent_referee, then="conclude", quorum=lambda settings: settings.quorum
    )
    graph.end(decide=by_rule, weigh=weigh_referees)
    asked = each("referee", referees)
    orders: dict[str, str | FanOut] = {"one_order": asked, "both_orders": asked}
    graph.route("prepare", who_is_first, {**orders, "roles_open": "planner"})
    graph.route("planner", orders_shown, orders)
    return graph


graph = build().compile(name="ensemble")
