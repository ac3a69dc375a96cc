r"""calibrated: both orders of two answers around any protocol that compares (FairEval, section 3).

    prepare --> straight --+--> weigh
          \--> swapped ----+

``calibrated(graph)`` wraps any graph. The registered protocol ``calibrated`` wraps the protocol
that the setting ``of`` names. The two orders run side by side, each with the whole graph inside.
The second outcome is mapped back to the task's order. Scores are averages over the two orders. The
answer with the higher average wins, and the verdict contains whether both orders agree.

Protocols with their own calibration (``single``, ``ensemble``, ``chateval``, ``faireval``) ask
their agents in both orders within one graph. They use ``weigh_orders`` from this module too.

Model calls: twice those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NotRequired, Unpack, cast

from ...nodes.runtime.bound_judge import Models
from ...nodes.runtime.verdicts import joint_verdict, swap_answers
from ...state.aggregation import mean_pair, swapped, winner_by_mean
from ...state.citations import FAIREVAL
from ...state.errors import UsageError
from ...state.graph_state import GraphState, Outcome
from ...state.settings.wrapper_settings import CalibratedSettings
from ...state.tasks import CompareInput, CompareTask, ScoreTask
from ...state.transcript import Turn
from ...state.verdict import Verdict, Winner
from ...state.verdict_warnings import INCONSISTENT
from ..engine.options import AnyJudge, Bound, CalibratedOptions
from ..engine.wrapper import (
    GivenJudges,
    Judges,
    NestedJudges,
    Wrapper,
    marked_outcome,
    verdict_in,
    wrapper_record,
)


class OrdersState(GraphState):
    """The state while the two orders are judged: the outcome of each."""

    straight: NotRequired[Outcome | None]
    swapped: NotRequired[Outcome | None]


protocol = wrapper_record(
    CalibratedSettings,
    name="calibrated",
    summary="both orders of two answers, averaged, around any protocol that compares",
    source="FairEval (Wang et al. 2024), section 3",
    citation=FAIREVAL,
    kinds=("compare",),
    times=lambda _settings: 2,
)


class BothOrders(Wrapper[CalibratedSettings]):
    """A graph that runs a judge in both orders of the answers and weighs the two outcomes."""

    def __init__(self, judges: Judges[CalibratedSettings]) -> None:
        super().__init__(OrdersState, judges, CompareInput)

        def shown(order: str, state: OrdersState) -> CompareInput:
            task = swap_answers(state["task"]) if order == "swapped" else state["task"]
            return cast("CompareInput", {"task": task})

        def heard(order: str, state: OrdersState, outcome: Outcome) -> dict[str, Any]:
            marked = marked_outcome(outcome, partial(_marked, order, state))
            verdict = marked["verdict"]
            if order == "swapped":
                verdict.update({key: swapped(verdict[key]) for key in ("scores", "winner")})
                verdict["score_by_round"] = [swapped(pair) for pair in verdict["score_by_round"]]
            return {order: marked, "transcript": marked["transcript"], "round": verdict["rounds"]}

        def weigh(state: OrdersState) -> dict[str, Any]:
            straight = state.get("straight")
            mapped = state.get("swapped")
            assert straight is not None and mapped is not None
            return self.concluded(weigh_orders(straight, mapped))

        # ``order`` is the name of a node, of the field with its outcome, and of the mark on its
        # turns.
        for order in ("straight", "swapped"):
            mark = partial(_marked, order)
            self.judge(
                order, "of", partial(heard, order), partial(shown, order), then="weigh", mark=mark
            )
            self.add_edge("prepare", order)
        self.end("weigh", weigh)

    def check(self, task: ScoreTask | CompareTask) -> None:
        """Check also that the task has two answers."""
        if isinstance(task, ScoreTask):
            raise UsageError(
                "calibrated(...) swaps two answers, but a task of the kind 'score' has one text; "
                "use the graph inside"
            )
        super().check(task)


def _marked(run: str, _state: OrdersState, turn: Turn) -> Turn:
    """Mark a turn with its run, and map a value on swapped answers to the task's order."""
    order = turn.get("order", 1)
    marked = {**turn, "id": f"{run}/{turn.get('id')}", "order": order}
    if run == "swapped":
        # The inner graph may itself have judged both orders: 1 becomes 2 and 2 becomes 1.
        marked |= {"order": 3 - order, "value": swapped(turn["value"])}
    return cast("Turn", marked)


def weigh_orders(
    straight: Outcome,
    mapped: Outcome,
    winner: Winner | None = None,
    details: Mapping[str, Any] | None = None,
) -> Verdict:
    """Combine two verdicts: average the scores, with the winner of each order in the details.

    Args:
        straight: the outcome with the answers in the task's order.
        mapped: the outcome with the answers swapped, mapped back to the task's order.
        winner: the winner; by default, the answer with the higher average.
        details: the protocol's own details; by default, the details of both verdicts, unchanged.
    """
    first = verdict_in(straight)
    second = verdict_in(mapped)
    by_order = [list(verdict.scores or ()) for verdict in (first, second)]
    scores = mean_pair(by_order)
    stops = [first.stop_reason, second.stop_reason]
    # Agents that speak before the answers are shown, such as a planner, are asked once for both
    # orders.
    turns = {turn.get("id"): turn for turn in (*straight["transcript"], *mapped["transcript"])}
    own = (
        {"details_by_order": [first.details, second.details]}
        if first.details or second.details
        else {}
    )
    winner = winner or winner_by_mean(scores)
    # The order with the joint winner explains the verdict. Its words may name the swapped answers.
    explains = first
    note = ""
    if second.winner == winner != first.winner:
        explains = second
        note = "(With the answers swapped: answer 1 is here the task's answer 2.) "
    named = {"1": "answer 1 wins", "2": "answer 2 wins", "tie": "a tie", None: "no winner"}
    given = f"{named[first.winner]} with the answers in the given order"
    other = f"{named[second.winner]} with them swapped"
    return joint_verdict(
        (first, second),
        turns.values(),
        scores=scores,
        winner=winner,
        position_consistent=first.winner == second.winner,
        details={
            "calibrated": True,
            "winner_by_order": [first.winner, second.winner],
            "scores_by_order": by_order,
            **({} if stops[0] == stops[1] else {"stop_reasons": stops}),
            **(own if details is None else details),
        },
        warnings=(INCONSISTENT.of(winners=f"{given}, {other}"),)
        if first.winner != second.winner
        else (),
        explanation=f"{note}{explains.explanation}",
        explained_by=explains.explained_by,
    )


def build(
    settings: Bound[CalibratedSettings] = None,
    models: Models | None = None,
    **fields: Unpack[CalibratedOptions],
) -> BothOrders:
    """Build the graph of both orders, not compiled; arguments and errors as for ``repeated.build``.

    >>> graph = build(of="multiagent", inner={"n": 1}).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["protocol"], verdict["details"]["of"]
    ('calibrated', 'multiagent')
    """
    return BothOrders(NestedJudges(protocol, settings, models, fields))


graph = build().compile(name="calibrated")


def calibrated(graph: AnyJudge) -> BothOrders:
    """Build a graph that runs a comparing protocol in both orders of the answers, not compiled.

    Args:
        graph: a protocol's graph, compiled or not, or a ``RemoteGraph``; its bound settings stay.

    >>> from jurygraph.graphs import debate
    >>> graph = calibrated(debate.build(n=1)).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "Because of the tide.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["position_consistent"]
    True
    """
    return BothOrders(GivenJudges(CalibratedSettings(), of=graph))
