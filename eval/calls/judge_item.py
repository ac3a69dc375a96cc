"""Judge one item: run a graph on it, and make a result of its verdict or of what went wrong."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from langsmith.utils import tracing_is_enabled

from ...graphs.base import Graph
from ...graphs.judge_graph import heard_by
from ...nodes.prompt_context import rubric_of_user
from ...state.aspects import Aspect
from ...state.errors import JurygraphError, StoppedError
from ...state.transcript import Turn, usage_of_turns
from ...state.verdict import Verdict
from ..datasets.items import Item
from ..journal.records import JournalError
from ..results.results import Key, Result

JudgeItem = Callable[[Graph, Key, Item, Aspect | None], Awaitable[Result | None]]
"""Makes the result of one item; ``None`` where the run ended in the middle of it."""


class JudgementContext(NamedTuple):
    """Describes the verdict that is being made.

    Attributes:
        key: its item, aspect, protocol and repeat.
        notes: notes of the pipeline that answers its calls; dropped when the verdict is made.
    """

    key: Key
    notes: dict[Any, Any]


current_judgement: ContextVar[JudgementContext | None] = ContextVar("current_judgement", default=None)
"""The verdict that a call is made for; tasks that are started inside inherit it."""


async def judge_item(graph: Graph, key: Key, item: Item, aspect: Aspect | None, repeat: int) -> Result | None:
    """Run a graph on one item.

    Args:
        graph: the compiled protocol.
        key: identifies the result.
        item: the item to judge.
        aspect: the aspect that it is scored for; ``None`` for comparisons.
        repeat: the number that its calls are marked with, so that repeats ask for replies of their own.

    Returns:
        The result, with the turns and their cost also where the item failed; ``None`` where the run ended meanwhile.
    """
    spoken: dict[str, Turn] = {}
    verdict: Verdict | None = None
    problem = "the graph ended without a verdict: it is waiting for a person, or it is not a judge"

    def hear(event: Mapping[str, Any]) -> None:
        # A repaired turn replaces its first form, which could not be read.
        turn = event["turn"]
        spoken[turn["id"]] = turn

    # LangSmith's traces show these. Else there are none, for each of a graph's tasks takes over all of them. The first
    # repeat has no mark: its calls are those of a run without repeats, which the journal may hold.
    marks = {**(key._asdict() if tracing_is_enabled() else {}), "repeat": repeat or None}
    name = " · ".join(filter(None, (key.protocol, key.item, key.aspect)))
    shown = {mark: value for mark, value in marks.items() if value is not None}
    config: Any = {"run_name": name, "metadata": shown} if shown else None
    # Until the next item that this task judges.
    current_judgement.set(JudgementContext(key, {}))
    with heard_by(hear), rubric_of_user(aspect):
        try:
            asked = {"task": item.task(aspect).model_dump(mode="json")}
            states: Any = graph.astream(asked, config, stream_mode="values")
            # A generator that is left early would otherwise be closed by the garbage collector, at some later time.
            async with aclosing(states):
                async for state in states:
                    if state.get("verdict"):
                        verdict = Verdict.of(state, "score" if aspect else "compare", aspect)
                        turns = state.get("transcript") or ()
                        spoken = {str(turn.get("id", place)): turn for place, turn in enumerate(turns)}
        except (StoppedError, JournalError):
            # Nothing is wrong with the item: its calls are in the journal, and the next start judges it.
            return None
        except Exception as error:  # whatever went wrong with one item, the others go on
            problem = f"{type(error).__name__}: {error}{_place_of(error)}"
    known: Any = {"human": item.label(key.aspect), **item.about(key.aspect)}
    about = {**key._asdict(), "group": item.group, **known, "transcript": tuple(spoken.values())}
    if verdict is None:
        return Result(**about, status="failed", error=problem, **usage_of_turns(spoken.values()).flat())
    # The words that explain the verdict stand in the transcript already.
    return Result(**about, status="ok", **verdict.model_dump(exclude={"protocol", "kind", "explanation"}))


def _place_of(error: Exception) -> str:
    """Name the line in somebody's own graph where an error arose that says nothing of it itself."""
    if isinstance(error, JurygraphError):
        return ""
    trace = ((Path(frame.f_code.co_filename), line) for frame, line in traceback.walk_tb(error.__traceback__))
    # Code that was made while running has no file, and no path that is absolute.
    of_files = ((file, line) for file, line in trace if file.is_absolute())
    own = [(file, line) for file, line in of_files if not any(map(file.is_relative_to, _OF_OTHERS))]
    return f" ({own[-1][0].name}, line {own[-1][1]})" if own else ""


# Python's own modules, installed packages, and this one.
_OF_OTHERS = [*map(Path, sysconfig.get_paths().values()), Path(__file__).parents[2]]
