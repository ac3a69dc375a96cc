r"""calibrated: both orders of two answers around any protocol that compares (FairEval, section 3).

    prepare --> straight --+--> weigh
          \--> swapped ----+

``calibrated(graph)`` puts it around any graph; the registered protocol ``calibrated`` around the one that the setting
``of`` names. The two orders run side by side, each the whole graph inside; what the second says of the answers is
mapped back to the task's order.

Model calls: twice those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NotRequired, cast

from langgraph.graph import END, START, StateGraph

from ..nodes.answer_orders import swap_answers
from ..nodes.bound_judge import Models
from ..nodes.prepare_conclude import Weigh
from ..state.call_counts import CallsByRole, Can
from ..state.errors import UsageError
from ..state.graph_state import JudgeOutput
from ..state.settings import CalibratedSettings
from ..state.task_inputs import CompareInput
from ..state.tasks import ScoreTask, TaskKind, parse_task
from ..state.transcript import Turn
from ..state.verdict import Verdict
from .base import SyncFunction
from .nested import (
    TEMPLATES,
    AnyGraph,
    JudgeSlot,
    NestedJudges,
    WrapperState,
    calls_of,
    calls_once_of,
    context_of_run,
    emptied,
    marked_outcome,
    nested_judge_node,
    rename_verdict,
    roles_of,
)
from .position_calibration import as_given, mapped_back, outcome_mapped_back, weigh_orders
from .protocol_record import Protocol


class OrdersState(WrapperState):
    """The state while the two orders are judged: the outcome of each."""

    straight: NotRequired[JudgeOutput | None]
    swapped: NotRequired[JudgeOutput | None]


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


class BothOrders(StateGraph[OrdersState, Any, Any, Any]):
    """Run a judge in both orders of the answers side by side, and weigh the two outcomes."""

    def __init__(
        self,
        slot: JudgeSlot,
        context_schema: type[Any] | None,
        weigh: Weigh,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(
            OrdersState, context_schema=context_schema, input_schema=CompareInput, output_schema=JudgeOutput
        )

        def prepare(state: OrdersState) -> dict[str, Any]:
            task = _comparison(state)
            check()
            return {"task": task, **emptied("straight", "swapped")}

        def conclude(state: OrdersState) -> dict[str, Any]:
            straight, swapped = state.get("straight"), state.get("swapped")
            assert straight is not None
            assert swapped is not None
            verdict = weigh(straight, swapped).model_dump(mode="json")
            return {"verdict": verdict, "scores": verdict["score_by_round"]}

        self.add_node("prepare", SyncFunction("prepare", prepare))
        self.add_node("straight", nested_judge_node(slot, _as_given, _straight, mark=_mark_as_given))
        self.add_node("swapped", nested_judge_node(slot, _swapped, _mapped_back, mark=_mark_mapped_back))
        self.add_node("weigh", SyncFunction("weigh", conclude))
        self.add_edge(START, "prepare")
        for order in ("straight", "swapped"):
            self.add_edge("prepare", order)
            self.add_edge(order, "weigh")
        self.add_edge("weigh", END)


def _comparison(state: OrdersState) -> dict[str, Any]:
    """Check the task, and that it has two answers."""
    task = parse_task(state.get("task"))
    if isinstance(task, ScoreTask):
        raise UsageError(
            "calibrated(...) swaps two answers, and a task of the kind 'score' has one text; use the graph inside"
        )
    return task.model_dump(mode="json")


def _as_given(state: OrdersState) -> CompareInput:
    return cast("CompareInput", {"task": state["task"]})


def _swapped(state: OrdersState) -> CompareInput:
    return cast("CompareInput", {"task": swap_answers(state["task"])})


def _straight(_state: OrdersState, outcome: JudgeOutput) -> dict[str, Any]:
    marked = marked_outcome(outcome, as_given)
    return {"straight": marked, "transcript": marked["transcript"], "round": marked["verdict"]["rounds"]}


def _mapped_back(_state: OrdersState, outcome: JudgeOutput) -> dict[str, Any]:
    mapped = outcome_mapped_back(outcome)
    return {"swapped": mapped, "transcript": mapped["transcript"], "round": mapped["verdict"]["rounds"]}


def _mark_as_given(_state: OrdersState, turn: Turn) -> Turn:
    return as_given(turn)


def _mark_mapped_back(_state: OrdersState, turn: Turn) -> Turn:
    return mapped_back(turn)


class CalibratedGraph(BothOrders):
    """The registered protocol ``calibrated``: the settings name the judge inside.

    Attributes:
        bound_judge: the settings that are bound to it, and its judge.
    """

    def __init__(self, bound_judge: NestedJudges[CalibratedSettings]) -> None:
        def check() -> None:
            bound_judge.check_run(context_of_run(), "compare")

        super().__init__(bound_judge.inside["of"].slot, CalibratedSettings, weigh, check)
        self.bound_judge = bound_judge


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


def calibrated(graph: AnyGraph) -> StateGraph[Any, Any, Any, Any]:
    """Build a graph that runs a comparing protocol in both orders of the answers; yours to compile.

    Args:
        graph: a protocol's graph, compiled or not, also a ``RemoteGraph``; what is bound to it stays.

    >>> from jurygraph.graphs import debate
    >>> graph = calibrated(debate.build(n=1)).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "Because of the tide.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["position_consistent"]
    True
    """
    slot = JudgeSlot.of(graph)
    return BothOrders(slot, slot.context_schema, weigh_orders)
