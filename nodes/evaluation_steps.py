"""Share evaluation steps, which are written once a run, between the verdicts of that run.

A run opens a cache around its verdicts: steps are then asked for once for each aspect and model, also when many items
begin at the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pydantic import BaseModel, ConfigDict

from ..state.errors import ModelCallError, ReplyError, TransientCallError
from .sync_bridge import set_for_block


class PlannedSteps(BaseModel):
    """Hold the steps for one aspect, the label of the model that wrote them, and the key of the planner's prompt."""

    model_config = ConfigDict(frozen=True)

    aspect: str
    model: str
    key: str
    steps: tuple[str, ...]


class EvaluationStepsCache:
    """Keep evaluation steps by key, and have each set written once.

    Args:
        known: sets that were written before.
        keep: called with each new set.
    """

    def __init__(
        self, known: Iterable[PlannedSteps] = (), keep: Callable[[PlannedSteps], None] = lambda _: None
    ) -> None:
        self._known = {planned.key: planned for planned in known}
        self._keep = keep
        self._failed: dict[str, ReplyError | ModelCallError] = {}
        self._writing: dict[tuple[int, str], asyncio.Lock] = {}

    @property
    def all(self) -> list[PlannedSteps]:
        """All sets in the cache."""
        return list(self._known.values())

    def note(self, planned: PlannedSteps) -> None:
        """Add steps that were written elsewhere; known ones are kept."""
        # Verdicts may have been made by the known steps already, and all verdicts of a run share one set.
        if planned.key not in self._known:
            self._known[planned.key] = planned
            self._keep(planned)

    async def steps(self, key: str, write: Callable[[], Awaitable[PlannedSteps]]) -> tuple[str, ...]:
        """Return the steps of a key; the first caller has them written, callers at the same time wait for that.

        Where writing fails for good, all callers get that error, and nobody tries again: the planner is asked the same
        whichever item asks first, and a run over thousands of items would pay for each. After an error that may pass
        (a lost connection, a stop, a spent budget), the next caller tries.

        Raises:
            ReplyError, ModelCallError: the steps could not be written.
        """
        # An asyncio lock belongs to one event loop, and graphs may run on several.
        async with self._writing.setdefault((id(asyncio.get_running_loop()), key), asyncio.Lock()):
            if failed := self._failed.get(key):
                raise _without_turn(failed)
            if key not in self._known:
                try:
                    self._known[key] = planned = await write()
                except (ReplyError, ModelCallError) as error:
                    if not isinstance(error, TransientCallError):
                        self._failed[key] = error
                    raise
                self._keep(planned)
            return self._known[key].steps


def _without_turn(error: ReplyError | ModelCallError) -> ReplyError | ModelCallError:
    """Return an equal error for another item, which has not paid for the turn."""
    if not isinstance(error, ReplyError):
        return ModelCallError(str(error))
    other = ReplyError(error.problem, error.reply, error.fault)
    other.agent, other.round = error.agent, error.round
    return other


open_cache: ContextVar[EvaluationStepsCache | None] = ContextVar("open_cache", default=None)


@contextmanager
def keep_steps_in(cache: EvaluationStepsCache | None = None) -> Iterator[EvaluationStepsCache]:
    """Share evaluation steps between all judgements inside the ``with`` block.

    >>> from jurygraph.graphs import geval
    >>> task = {"kind": "score", "source": "It rained.", "candidate": "It rained.", "aspect": "fluency"}
    >>> with keep_steps_in() as cache:
    ...     results = geval.graph.batch([{"task": task}] * 3)
    >>> sum(turn["agent"] == "planner" for result in results for turn in result["transcript"]), len(cache.all)
    (1, 1)
    """
    cache = EvaluationStepsCache() if cache is None else cache
    with set_for_block(open_cache, cache):
        yield cache
