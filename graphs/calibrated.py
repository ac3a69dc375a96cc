r"""calibrated: both orders of two answers around any protocol that compares (FairEval, section 3).

    prepare --> straight --+--> weigh
          \--> swapped ----+

``calibrated(graph)`` puts it around any graph; the registered protocol ``calibrated`` around the one that the setting
``of`` names. The two orders run side by side, each the whole graph inside; what the second says of the answers is
mapped back to the task's order.

Model calls: twice those of the protocol inside.
"""

from __future__ import annotations

from typing import Any, NotRequired, Unpack, cast

from langgraph.graph import END, StateGraph

from ..nodes.bound_judge import Models
from ..nodes.verdicts import swap_answers
from ..state.errors import UsageError
from ..state.graph_state import JudgeOutput
from ..state.protocols import CallsByRole, Can
from ..state.settings import CalibratedSettings
from ..state.tasks import CompareInput, CompareTask, ScoreTask, TaskKind
from .options import AnyJudge, Bound, CalibratedOptions
from .position_calibration import as_given, mapped_back, outcome_mapped_back, weigh_orders
from .wrapper import (
    GivenJudges,
    Judges,
    NestedJudges,
    Wrapper,
    WrapperState,
    calls_of,
    marked_outcome,
    wrapper_record,
)


class OrdersState(WrapperState):
    """The state while the two orders are judged: the outcome of each."""

    straight: NotRequired[JudgeOutput | None]
    swapped: NotRequired[JudgeOutput | None]


def calls(settings: CalibratedSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Count the calls of the protocol inside, once for each order."""
    return {role: of_role * 2 for role, of_role in calls_of(settings, kind, can).items()}


protocol = wrapper_record(
    CalibratedSettings,
    name="calibrated",
    summary="both orders of two answers, averaged, around any protocol that compares",
    source="FairEval (Wang et al. 2024), section 3",
    kinds=("compare",),
    calls=calls,
)


class BothOrders(Wrapper[CalibratedSettings]):
    """Run a judge in both orders of the answers side by side, and weigh the two outcomes."""

    called = "calibrated"

    def __init__(self, judges: Judges[CalibratedSettings]) -> None:
        super().__init__(OrdersState, judges, CompareInput)

        def weigh(state: OrdersState) -> dict[str, Any]:
            straight, swapped = state.get("straight"), state.get("swapped")
            assert straight is not None and swapped is not None
            return self.concluded(weigh_orders(straight, swapped))

        def straight(_state: OrdersState, outcome: JudgeOutput) -> dict[str, Any]:
            return _noted("straight", marked_outcome(outcome, as_given))

        def swapped(_state: OrdersState, outcome: JudgeOutput) -> dict[str, Any]:
            return _noted("swapped", outcome_mapped_back(outcome))

        def swap(state: OrdersState) -> CompareInput:
            return cast("CompareInput", {"task": swap_answers(state["task"])})

        self.judge("straight", "of", straight, mark=lambda _state, turn: as_given(turn))
        self.judge("swapped", "of", swapped, swap, mark=lambda _state, turn: mapped_back(turn))
        self.step("weigh", weigh)
        for order in ("straight", "swapped"):
            self.add_edge("prepare", order)
            self.add_edge(order, "weigh")
        self.add_edge("weigh", END)

    def check(self, task: ScoreTask | CompareTask) -> None:
        """Check also that the task has two answers."""
        if isinstance(task, ScoreTask):
            raise UsageError(
                "calibrated(...) swaps two answers, but a task of the kind 'score' has one text; use the graph inside"
            )
        super().check(task)


def _noted(order: str, outcome: JudgeOutput) -> dict[str, Any]:
    return {order: outcome, "transcript": outcome["transcript"], "round": outcome["verdict"]["rounds"]}


def build(
    settings: Bound[CalibratedSettings] = None,
    models: Models | None = None,
    **fields: Unpack[CalibratedOptions],
) -> BothOrders:
    """Build the graph of both orders, yours to compile; arguments and errors as for ``repeated.build``.

    >>> graph = build(of="multiagent", inner={"n": 1}).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["protocol"], verdict["details"]["of"]
    ('calibrated', 'multiagent')
    """
    return BothOrders(NestedJudges(protocol, settings, models, fields))


graph = build().compile(name="calibrated")


def calibrated(graph: AnyJudge) -> StateGraph[Any, Any, Any, Any]:
    """Build a graph that runs a comparing protocol in both orders of the answers; yours to compile.

    Args:
        graph: a protocol's graph, compiled or not, also a ``RemoteGraph``; what is bound to it stays.

    >>> from jurygraph.graphs import debate
    >>> graph = calibrated(debate.build(n=1)).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "Because of the tide.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["position_consistent"]
    True
    """
    return BothOrders(GivenJudges(CalibratedSettings(), of=graph))
