"""Ensemble: referees with different personas score at the same time, without discussing (ChatEval, 3.2).

    prepare --one_order, both_orders----> referee x N -> conclude
       +--roles_open--> planner --------> referee x N

ChatEval's own prompt with the history left out; one answer each, averaged. Of two answers the one with the higher
average wins. By default a comparison is held in both orders of the answers at once.

Why it stops: always ``complete``.

Model calls: N; a comparison with position calibration takes 2N. ``roles=auto``: 1 more, for the personas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from ..nodes.bound_judge import Models
from ..nodes.personas import casting, roles_are_open, with_roles
from ..nodes.referee import independent_referee, referees, roles_of_referees, who_judged
from ..nodes.verdicts import average, number_of_orders, orders_shown, scores_over_orders
from ..state.graph_state import JudgeOutput, JudgeState
from ..state.protocols import CallsByRole, Can, Ensemble, Protocol, Replay, exactly
from ..state.settings import EnsembleSettings
from ..state.settings.protocol_settings import AUTO, GROUPS, SAME
from ..state.tasks import TaskKind
from ..state.verdict import Verdict
from .base import FanOut, ProtocolGraph, each
from .calibrated import weigh_orders
from .options import Bound, EnsembleOptions


def calls(settings: EnsembleSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one call for each referee and order of the answers."""
    referees = exactly(settings.referees * number_of_orders(settings, kind))
    return {"planner": exactly(int(settings.roles == AUTO)), "referee": referees}


def of_size(referees: int, alike: bool) -> dict[str, Any]:
    """Return the settings of an ensemble of a given size; beyond the number of personas all referees share one."""
    same = {"roles": SAME} if alike or referees > len(GROUPS["diverse"]) else {}
    return {"referees": referees, **same}


def are_alike(settings: Mapping[str, Any]) -> bool:
    """Tell whether all referees have one role."""
    roles = settings.get("roles", SAME)
    return roles == SAME if isinstance(roles, str) else len({str(role) for role in roles}) == 1


protocol = Protocol(
    name="ensemble",
    summary="the average of referees with different personas who do not talk",
    source="ChatEval (Chan et al. 2024), section 3.2",
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
    """Ask the planner first where the personas are still to be written; else all referees, in each order."""
    written = roles_are_open(state, settings) == "roles_given"
    return orders_shown(state, settings) if written else "roles_open"


def weigh_referees(straight: JudgeOutput, mapped: JudgeOutput) -> Verdict:
    """Average over referees and orders; the details hold each referee's own average."""
    pairs = scores_over_orders(straight["transcript"], mapped["transcript"])
    return weigh_orders(straight, mapped, details={**who_judged(straight), "scores_by_referee": pairs})


def build(
    settings: Bound[EnsembleSettings] = None, models: Models | None = None, **fields: Unpack[EnsembleOptions]
) -> ProtocolGraph[EnsembleSettings]:
    """Build the ensemble's graph, yours to compile; arguments and errors as for ``chateval.build``.

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
    graph.agents("referee", independent_referee, then="conclude")
    graph.end(decide=average, weigh=weigh_referees)
    asked = each("referee", referees)
    orders: dict[str, str | FanOut] = {"one_order": asked, "both_orders": asked}
    graph.route("prepare", who_is_first, {**orders, "roles_open": "planner"})
    graph.route("planner", orders_shown, orders)
    return graph


graph = build().compile(name="ensemble")
