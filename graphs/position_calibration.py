"""Judge two answers in both orders and make one verdict: balanced position calibration (FairEval; ChatEval, 3.3).

    prepare --> straight --+--> weigh
            +-> swapped  --+

``calibrated(graph)`` puts it around any protocol that compares. The two orders run in parallel, each the whole
inner graph; what the second says about the answers is mapped back to the task's order. Scores are averages over
the two, the winner has the higher average, and the verdict tells whether both orders agree.

Model calls: twice those of the inner graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, NotRequired, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableSequence
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from ..nodes.bound_judge import BoundJudge
from ..state.aggregation import mean_pair, swapped, winner_by_mean
from ..state.errors import UsageError
from ..state.graph_state import JudgeInput, JudgeOutput, as_json
from ..state.settings import PositionSettings
from ..state.tasks import ScoreTask, TaskKind, parse_task
from ..state.transcript import Turn, usage_of_turns
from ..state.verdict import StopReason, Verdict, Winner
from .base import ProtocolGraph, SyncFunction

Compiled = CompiledStateGraph[Any, Any, Any, Any]

Weigh = Callable[[JudgeOutput, JudgeOutput], Verdict]
"""A function that makes one verdict of both orders' outcomes; the second is already mapped back to the task's order."""
PositionSettingsT = TypeVar("PositionSettingsT", bound=PositionSettings)


class OrdersState(TypedDict):
    """The state while the two orders are judged: the outcome of each."""

    task: Annotated[dict[str, Any], as_json]
    straight: NotRequired[JudgeOutput | None]
    swapped: NotRequired[JudgeOutput | None]
    verdict: NotRequired[dict[str, Any]]
    transcript: NotRequired[list[Turn]]


def number_of_orders(settings: PositionSettings, kind: TaskKind) -> int:
    """Return the number of orders in which a task is judged: two for calibrated comparisons, one for a single text.

    >>> number_of_orders(PositionSettings(), "compare"), number_of_orders(PositionSettings(), "score")
    (2, 1)
    """
    return 2 if settings.position_calibration and kind == "compare" else 1


def weigh_orders(
    straight: JudgeOutput,
    mapped: JudgeOutput,
    winner: Winner | None = None,
    details: Mapping[str, Any] | None = None,
) -> Verdict:
    """Make one verdict of two: average scores, with the winner of each order in the details.

    Args:
        straight: the outcome with the answers in the task's order.
        mapped: the outcome with the answers swapped, mapped back to the task's order.
        winner: the winner; without it, the answer with the higher average wins.
        details: the protocol's own details; without them, those of the two orders' verdicts, unchanged.
    """
    one, two = (Verdict.of(cast("Mapping[str, Any]", outcome)) for outcome in (straight, mapped))
    by_order = [list(verdict.scores or ()) for verdict in (one, two)]
    scores = mean_pair(by_order)
    return Verdict(
        protocol=one.protocol,
        kind="compare",
        scores=scores,
        winner=winner or winner_by_mean(scores),
        stop_reason=_stop_reason(one, two),
        # The orders ran side by side, so their rounds do not add up.
        rounds=max(one.rounds, two.rounds),
        score_by_round=_mean_by_round(one, two),
        position_consistent=one.winner == two.winner,
        details={
            "calibrated": True,
            "winner_by_order": [one.winner, two.winner],
            "scores_by_order": by_order,
            **(_by_order(one, two) if details is None else details),
        },
        warnings=tuple(dict.fromkeys([*one.warnings, *two.warnings, *_inconsistency(one, two)])),
        **usage_of_turns([*straight["transcript"], *mapped["transcript"]]).flat(),
    )


class BothOrders(StateGraph[OrdersState, Any, Any, Any]):
    """Run an inner graph in both orders side by side, and weigh the two outcomes.

    The edges from ``prepare`` are added by the caller, because some protocols judge in one order only.
    """

    def __init__(
        self,
        inner: Runnable[Any, Any],
        context_schema: type[Any] | None,
        weigh: Weigh,
        check: Callable[[OrdersState], dict[str, Any]],
    ) -> None:
        super().__init__(
            OrdersState, context_schema=context_schema, input_schema=JudgeInput, output_schema=JudgeOutput
        )
        self.add_node("prepare", SyncFunction("prepare", check))
        self.add_node(
            "straight",
            _as_node(inner, SyncFunction("as_given", _as_given), SyncFunction("hand_in", _straight)),
        )
        self.add_node(
            "swapped", _as_node(inner, SyncFunction("swap", _swap), SyncFunction("map_back", _mapped_back))
        )
        self.add_node("weigh", SyncFunction("weigh", lambda state: _weighed(state, weigh)))
        self.add_edge(START, "prepare")
        # Two edges, not one from both nodes, which would wait for an order that a score task does not have. Both orders
        # end in the same step of the graph, so that ``weigh`` runs once.
        self.add_edge("straight", "weigh")
        self.add_edge("swapped", "weigh")
        self.add_edge("weigh", END)


class PositionGraph(BothOrders, Generic[PositionSettingsT]):
    """Judge comparisons in both orders where the protocol's settings say so; a score task has one order.

    Attributes:
        bound_judge: the settings and models that are bound to the protocol.
    """

    def __init__(self, core: ProtocolGraph[PositionSettingsT], weigh: Weigh = weigh_orders) -> None:
        super().__init__(_compiled(core), core.context_schema, weigh, _checked)
        self.bound_judge: BoundJudge[PositionSettingsT] = core.bound_judge

        def orders(state: OrdersState) -> Sequence[str]:
            settings = self.bound_judge.settings(get_runtime().context)
            return ["straight", "swapped"][: number_of_orders(settings, state["task"]["kind"])]

        self.add_conditional_edges("prepare", SyncFunction("orders", orders), ["straight", "swapped"])


def _compiled(graph: Compiled | StateGraph[Any, Any, Any, Any]) -> Compiled:
    return graph.compile() if isinstance(graph, StateGraph) else graph


def _as_node(
    inner: Runnable[Any, Any], before: SyncFunction, after: SyncFunction
) -> RunnableSequence[Any, Any]:
    return RunnableSequence(before, inner, after)


def _checked(state: OrdersState) -> dict[str, Any]:
    """Check the task before any model is called, and clear what an earlier run on the same thread left."""
    task = parse_task(state.get("task"))
    return {"task": task.model_dump(mode="json"), "straight": None, "swapped": None}


def comparison(state: OrdersState) -> dict[str, Any]:
    """Check the task as ``_checked`` does, and that it has two answers."""
    if isinstance(parse_task(state.get("task")), ScoreTask):
        raise UsageError(
            "calibrated(...) swaps two answers, and a task of the kind 'score' has one text; use the graph inside"
        )
    return _checked(state)


def _as_given(state: OrdersState) -> JudgeInput:
    return cast("JudgeInput", {"task": state["task"]})


def _swap(state: OrdersState) -> JudgeInput:
    task = state["task"]
    changed = {**task, "answer_1": task["answer_2"], "answer_2": task["answer_1"]}
    return cast("JudgeInput", {"task": changed})


def _straight(outcome: JudgeOutput) -> dict[str, Any]:
    return {"straight": outcome}


def _mapped_back(outcome: JudgeOutput) -> dict[str, Any]:
    """Map the outcome for swapped answers back: its values in the task's order, the agents' words unchanged."""
    verdict = {**outcome["verdict"]}
    verdict.update({key: swapped(verdict[key]) for key in ("scores", "winner")})
    verdict["score_by_round"] = [swapped(pair) for pair in verdict["score_by_round"]]
    turns = [_turn_mapped_back(turn) for turn in outcome["transcript"]]
    return {"swapped": JudgeOutput(verdict=verdict, transcript=turns)}


def _turn_mapped_back(turn: Turn) -> Turn:
    # 1 becomes 2 and 2 becomes 1: the inner graph may itself have judged both orders.
    order = 3 - turn.get("order", 1)
    return cast("Turn", {**turn, "value": swapped(turn["value"]), "order": order})


def _weighed(state: OrdersState, weigh: Weigh) -> JudgeOutput:
    straight, mapped = state.get("straight"), state.get("swapped")
    assert straight is not None
    if mapped is None:
        return straight
    given = [cast("Turn", {**turn, "order": turn.get("order", 1)}) for turn in straight["transcript"]]
    verdict = weigh(straight, mapped).model_dump(mode="json")
    return JudgeOutput(verdict=verdict, transcript=[*given, *mapped["transcript"]])


def _stop_reason(one: Verdict, two: Verdict) -> StopReason:
    # Where the two orders ended for different reasons, neither reason holds for both.
    return one.stop_reason if one.stop_reason == two.stop_reason else "complete"


def _mean_by_round(one: Verdict, two: Verdict) -> tuple[tuple[float, float], ...]:
    """Average both orders after each round; an order that ended earlier keeps its last scores."""
    longest = max(len(one.score_by_round), len(two.score_by_round))
    return tuple(map(mean_pair, zip(_held(one, longest), _held(two, longest), strict=True)))


def _held(verdict: Verdict, rounds: int) -> list[tuple[float, float]]:
    pairs = [pair for pair in verdict.score_by_round if isinstance(pair, tuple)]
    # A slice, which is empty where there is no pair at all.
    return [*pairs, *pairs[-1:] * (rounds - len(pairs))]


def _by_order(one: Verdict, two: Verdict) -> dict[str, Any]:
    return {"details_by_order": [one.details, two.details]} if one.details or two.details else {}


def _inconsistency(one: Verdict, two: Verdict) -> tuple[str, ...]:
    if one.winner == two.winner:
        return ()
    named = {"1": "answer 1 wins", "2": "answer 2 wins", "tie": "a tie", None: "no winner"}
    return (
        f"position inconsistency: {named[one.winner]} with the answers in the given order, "
        f"{named[two.winner]} with them swapped",
    )
