"""Single agent: one scorer, asked once, without role and discussion (ChatEval, section 3.3).

    prepare --one_order, both_orders--> scorer -> conclude

The prompt is ChatEval's own without role and history. By default, a comparison runs in both orders
of the answers at once, and the scores are averaged.

Stop reason: always ``complete``.

Model calls: 1; a comparison with position calibration takes 2. With ``juror_tools``, up to
``tool_rounds`` requests for tools come before each.
"""

from __future__ import annotations

from typing import Unpack

from ..nodes.referee import single_scorer
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.verdicts import lone_scorer, number_of_orders
from ..state.citations import CHATEVAL
from ..state.protocol_facts import SINGLE_FACTS
from ..state.protocols import CallsByRole, Can, Protocol, exactly, with_requests_for_tools
from ..state.settings import SingleSettings
from ..state.tasks import TaskKind
from .engine.base import ProtocolGraph
from .engine.options import Bound, SingleOptions
from .wrappers.calibrated import weigh_orders


def calls(settings: SingleSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count one call for each order of the answers, and the requests for tools before it."""
    scorer = exactly(number_of_orders(settings, kind))
    return with_requests_for_tools({"scorer": scorer}, settings, "scorer")


protocol = Protocol(
    name="single",
    summary="one scorer, asked once",
    source="ChatEval (Chan et al. 2024), section 3.3",
    citation=CHATEVAL,
    kinds=("score", "compare"),
    roles=("scorer",),
    settings=SingleSettings,
    prompts=("shared", "chateval"),
    calls=calls,
    role_kinds=SINGLE_FACTS.role_kinds,
    tool_roles=("scorer",),
    is_baseline=SINGLE_FACTS.is_baseline,
)


def build(
    settings: Bound[SingleSettings] = None,
    models: Models | None = None,
    **fields: Unpack[SingleOptions],
) -> ProtocolGraph[SingleSettings]:
    """Build the scorer's graph, not compiled; arguments and errors as for ``debate.build``.

    >>> graph = build().compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["calls"]
    2
    """
    graph = ProtocolGraph(protocol, SingleSettings, settings, models, fields)
    graph.panel("scorer", single_scorer, lone_scorer, weigh=weigh_orders)
    return graph


graph = build().compile(name="single")
