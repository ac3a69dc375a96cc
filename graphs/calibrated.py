r"""calibrated: both orders of two answers around any protocol that compares (FairEval, section 3).

    prepare --> straight --+--> weigh
          \--> swapped ----+

``calibrated(graph)`` puts it around any graph; the registered protocol ``calibrated`` around the one that the setting
``of`` names. The two orders run side by side; ``position_calibration`` has their graph.

Model calls: twice those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.graph import StateGraph
from langgraph.runtime import get_runtime

from ..nodes.bound_judge import Models
from ..state.call_counts import CallsByRole, Can
from ..state.graph_state import JudgeOutput
from ..state.settings import CalibratedSettings
from ..state.tasks import TaskKind
from ..state.verdict import Verdict
from .nested import (
    TEMPLATES,
    NestedJudges,
    calls_of,
    calls_once_of,
    nested_judge_node,
    rename_verdict,
    roles_of,
)
from .position_calibration import BothOrders, Compiled, OrdersState, _compiled, comparison, weigh_orders
from .protocol_record import Protocol


def calls(settings: CalibratedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Count the calls of the protocol inside, once for each order."""
    return {role: of_role * 2 for role, of_role in calls_of(settings, "of", kind, can).items()}


def calls_once(settings: CalibratedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Count the calls of the protocol inside that serve all verdicts."""
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
    """Weigh both orders as around any graph, under this protocol's name."""
    return rename_verdict(protocol.name, weigh_orders(straight, mapped))


class CalibratedGraph(BothOrders):
    """The registered protocol ``calibrated``: the settings name the judge inside.

    Attributes:
        bound_judge: the settings that are bound to it, and its judge.
    """

    def __init__(self, bound_judge: NestedJudges[CalibratedSettings]) -> None:
        def check(state: OrdersState) -> dict[str, Any]:
            checked = comparison(state)
            bound_judge.check_run(get_runtime().context, "compare")
            return checked

        inner = nested_judge_node(
            bound_judge.inside["of"].slot, lambda task: task, lambda _task, outcome: outcome
        )
        super().__init__(inner, CalibratedSettings, weigh, check)
        self.bound_judge = bound_judge
        self.add_edge("prepare", "straight")
        self.add_edge("prepare", "swapped")


def build(
    settings: CalibratedSettings | Mapping[str, Any] | None = None,
    models: Models | None = None,
    **fields: Any,
) -> CalibratedGraph:
    """Build the graph of both orders, yours to compile; arguments and errors as for ``repeated.build``.

    >>> graph = build(of="multiagent", inner={"n": 1}).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["protocol"], verdict["details"]["of"]
    ('calibrated', 'multiagent')
    """
    return CalibratedGraph(NestedJudges(protocol, CalibratedSettings, settings, models, fields))


graph = build().compile(name="calibrated")


def calibrated(graph: Compiled | StateGraph[Any, Any, Any, Any]) -> StateGraph[Any, Any, Any, Any]:
    """Build a graph that runs a comparing protocol in both orders of the answers; yours to compile.

    Args:
        graph: a protocol's graph, compiled or not; settings and models that are bound to it stay.

    >>> from jurygraph.graphs import debate
    >>> graph = calibrated(debate.build(n=1)).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "Because of the tide.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["position_consistent"]
    True
    """
    inner = _compiled(graph)
    both = BothOrders(inner, inner.builder.context_schema, weigh_orders, comparison)
    both.add_edge("prepare", "straight")
    both.add_edge("prepare", "swapped")
    return both
