"""Show two answers in either order, and put what is said of them back into the task's order (FairEval, section 3)."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from ..state.aggregation import swapped
from ..state.graph_state import JudgeState
from ..state.settings import PositionSettings, Settings
from ..state.tasks import TaskKind
from ..state.transcript import Turn

StateT = TypeVar("StateT", bound=JudgeState)


def number_of_orders(settings: Settings, kind: TaskKind) -> int:
    """Return the number of orders in which a task is judged: two for calibrated comparisons, one for a single text.

    >>> number_of_orders(PositionSettings(), "compare"), number_of_orders(PositionSettings(), "score")
    (2, 1)
    """
    calibrated = isinstance(settings, PositionSettings) and settings.position_calibration
    return 2 if calibrated and kind == "compare" else 1


def swap_answers(task: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison with its two answers in each other's place."""
    return {**task, "answer_1": task["answer_2"], "answer_2": task["answer_1"]}


def turns_in_order(state: JudgeState, order: int) -> list[Turn]:
    """Return the turns of one order of the answers; all of them where there is only one order."""
    return [turn for turn in state["transcript"] if turn.get("order", order) == order]


def as_shown(state: StateT, order: int) -> StateT:
    """Return the state as agents of this order see it: the answers, the scores and the turns' values in that order."""
    if len(state["orders"]) < 2:
        return state
    turns = turns_in_order(state, order)
    if order == 1:
        return cast("StateT", {**state, "transcript": turns})
    shown = [cast("Turn", {**turn, "value": swapped(turn["value"])}) for turn in turns]
    return cast("StateT", {**state, "task": swap_answers(state["task"]), "transcript": shown})


def orders_shown(state: JudgeState, _settings: Settings) -> str:
    """Name the outcome of ``prepare`` for protocols that may show two answers in both orders."""
    return "both_orders" if len(state["orders"]) > 1 else "one_order"


def lone_scorer(_state: JudgeState, _settings: Any) -> list[str]:
    """Return the name of a scorer who is alone; in both orders of the answers it is asked once in each."""
    return ["scorer"]
