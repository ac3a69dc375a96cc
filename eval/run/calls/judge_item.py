"""Judging one item: run a graph on it, and create a result from its verdict or its error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, aclosing
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, NamedTuple

from langsmith.utils import tracing_is_enabled

from ....graphs.engine.base import Graph
from ....graphs.engine.judge_graph import heard_by
from ....graphs.engine.own_code import line_of
from ....nodes.models.call import session_key
from ....nodes.runtime.prompt_context import rubric_of_user
from ....state.aspects import Aspect
from ....state.errors import JurygraphError, StoppedError
from ....state.tasks import rubric_of
from ....state.transcript import Turn, usage_of_turns
from ....state.verdict import Verdict
from ...datasets.items import Item
from ...journal.records import JournalError
from ...results.results import Key, Result

JudgeItem = Callable[[Graph, Key, Item, Aspect | None], Awaitable[Result | None]]
"""Creates the result of one item; ``None`` if the run ended before its verdict."""


class JudgementContext(NamedTuple):
    """The verdict that is being made.

    Attributes:
        key: its item, aspect, protocol and repeat.
        notes: notes of the pipeline that answers its calls; discarded after the verdict.
    """

    key: Key
    notes: dict[Any, Any]


current_judgement: ContextVar[JudgementContext | None] = ContextVar(
    "current_judgement", default=None
)
"""The verdict that a call is made for; tasks that are started inside inherit it."""


async def judge_item(
    graph: Graph, key: Key, item: Item, aspect: Aspect | None, repeat: int
) -> Result | None:
    """Run a graph on one item.

    Args:
        graph: the compiled protocol.
        key: identifies the result.
        item: the item to judge.
        aspect: the aspect of the score; ``None`` for comparisons.
        repeat: the number that marks its calls, so that repeats request their own replies.

    Returns:
        The result, with turns and their cost even if the item failed; ``None`` if the run ended
        first.
    """
    spoken: dict[str, Turn] = {}
    verdict: Verdict | None = None
    problem = "the graph ended without a verdict: it is waiting for a person, or it is not a judge"

    def hear(event: Mapping[str, Any]) -> None:
        # A repaired turn replaces its first, unreadable form.
        turn = event["turn"]
        spoken[turn["id"]] = turn

    # LangSmith's traces show these marks. Without traces they are left out, since each task of a
    # graph would copy them all. The first repeat has no mark: its calls are those of a run without
    # repeats, which may be in the journal.
    marks = {**(key._asdict() if tracing_is_enabled() else {}), "repeat": repeat or None}
    name = " · ".join(filter(None, (key.protocol, key.item, key.aspect)))
    shown = {mark: value for mark, value in marks.items() if value is not None}
    config: Any = {"run_name": name, "metadata": shown} if shown else None
    # It stays set until the next item of this task.
    current_judgement.set(JudgementContext(key, {}))
    # A digest, because an id may name a person.
    session_key.set(blake2b(key.item.encode(errors="replace"), digest_size=16).hexdigest())
    with heard_by(hear), ExitStack() as followed:
        try:
            task = item.task(aspect)
            # The user who chose the dataset also chose the criteria in it.
            followed.enter_context(rubric_of_user(rubric_of(task)))
            asked = {"task": task.model_dump(mode="json")}
            states: Any = graph.astream(asked, config, stream_mode="values")
            # Otherwise the garbage collector would close a generator that is left early, at some
            # later time.
            async with aclosing(states):
                async for state in states:
                    if state.get("verdict"):
                        verdict = Verdict.of(state, "score" if aspect else "compare", aspect)
                        turns = state.get("transcript") or ()
                        spoken = {
                            str(turn.get("id", place)): turn for place, turn in enumerate(turns)
                        }
        except (StoppedError, JournalError):
            # The item has no fault: its calls are in the journal, and the next start judges it.
            return None
        except Exception as error:  # whatever went wrong with one item, the others go on
            problem = f"{type(error).__name__}: {error}{_place_of(error)}"
    known: Any = {"human": item.label(key.aspect), **item.about(key.aspect)}
    about = {**key._asdict(), "group": item.group, **known, "transcript": tuple(spoken.values())}
    if verdict is None:
        return Result(
            **about, status="failed", error=problem, **usage_of_turns(spoken.values()).flat()
        )
    # The explanation of the verdict is in the transcript already.
    return Result(
        **about, status="ok", **verdict.model_dump(exclude={"protocol", "kind", "explanation"})
    )


def _place_of(error: Exception) -> str:
    """Name the line in a user's graph that raised an error without such information."""
    if isinstance(error, JurygraphError) or (found := line_of(error)) is None:
        return ""
    return f" ({found[0].name}, line {found[1]})"
