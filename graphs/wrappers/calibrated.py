"""``calibrated`` as a protocol: both orders of the answers around the protocol that the setting ``of`` names.

See ``jurygraph.graphs.calibration`` for the graph, and for ``calibrated(graph)`` around a graph of one's own.

Model calls: twice those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.runtime import get_runtime

from ...nodes.bound_judge import Models
from ...state.call_counts import CallsByRole, Can
from ...state.graph_state import JudgeOutput
from ...state.settings import CalibratedSettings
from ...state.tasks import TaskKind
from ...state.verdict import Verdict
from ..calibration import Orders, OrdersState, comparison, weigh_orders
from ..inside import NamedJudges, judged, under
from ..wiring import Protocol
from .defaults import TEMPLATES, calls_of, calls_once_of, roles_of


def calls(settings: CalibratedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Those of the protocol inside, for each order."""
    return {role: of_role * 2 for role, of_role in calls_of(settings, "of", kind, can).items()}


def calls_once(settings: CalibratedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Those of the protocol inside."""
    return calls_once_of(settings, "of", kind, can)


protocol = Protocol(
    name="calibrated",
    summary="both orders of two answers, averaged, around any protocol that compares",
    source="FairEval (Wang et al. 2024), section 3",
    kinds=("compare",),
    roles=roles_of(CalibratedSettings),
    settings=CalibratedSettings,
    prompts=TEMPLATES,
    calls=calls,
    calls_once=calls_once,
)


def weigh(straight: JudgeOutput, mapped: JudgeOutput) -> Verdict:
    """As around any graph, under this protocol's name."""
    return under(protocol.name, weigh_orders(straight, mapped))


class CalibratedGraph(Orders):
    """The graph whose judge the settings name.

    Attributes:
        panel: the settings that are bound to it, and its judge.
    """

    def __init__(self, panel: NamedJudges[CalibratedSettings]) -> None:
        def check(state: OrdersState) -> dict[str, Any]:
            checked = comparison(state)
            panel.check_run(get_runtime().context, "compare")
            return checked

        inner = judged(panel.inside["of"].seat, lambda task: task, lambda _task, outcome: outcome)
        super().__init__(inner, CalibratedSettings, weigh, check)
        self.panel = panel
        self.add_edge("prepare", "straight")
        self.add_edge("prepare", "swapped")


def build(
    settings: CalibratedSettings | Mapping[str, Any] | None = None,
    models: Models | None = None,
    **fields: Any,
) -> CalibratedGraph:
    """The graph of both orders, yours to compile; arguments and errors as for ``repeated.build``.

    >>> graph = build(of="multiagent", inner={"n": 1}).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["protocol"], verdict["details"]["of"]
    ('calibrated', 'multiagent')
    """
    return CalibratedGraph(NamedJudges(protocol, CalibratedSettings, settings, models, fields))


graph = build().compile(name="calibrated")
