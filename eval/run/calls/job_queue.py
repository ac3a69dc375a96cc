"""The order of jobs in which calls with a common prefix do not have to wait for one another.

Jobs of the same item begin with the same texts. All of them at once would only wait at the gate
(``prefix_gate.py``) for the first one's call. So the others are postponed until the first has
ended, and other items are started instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Generic, TypeVar

Job = TypeVar("Job")

MOST_POSTPONED = 256
"""The maximum number of postponed jobs per call in flight."""


class JobQueue(Generic[Job]):
    """Takes jobs from an iterator: those of an item after the first once this one has ended.

    Args:
        jobs: the jobs, item by item.
        item_of: returns the item of a job.
        ahead: the number of jobs whose first one has ended that are kept, so that the last jobs of
            the run need not wait for a first one; 0 keeps the order of the jobs.

    >>> queue = JobQueue(iter(["a1", "a2", "b1", "b2"]), lambda job: job[0], ahead=2)
    >>> queue.take(), queue.take(), queue.ended("a1"), queue.take(), queue.take()
    ('a1', 'b1', None, 'a2', 'b2')
    """

    def __init__(self, jobs: Iterator[Job], item_of: Callable[[Job], str], ahead: int) -> None:
        self._items = groupby(jobs, item_of)
        self._item_of = item_of
        self._ahead = ahead
        self._ready: deque[Job] = deque()
        self._postponed: dict[str, deque[Job]] = {}
        self._waiting = 0
        """The number of postponed jobs."""

    def take(self) -> Job | None:
        """Return the next job; ``None`` if all were taken."""
        has_room = self._waiting < MOST_POSTPONED * self._ahead
        if len(self._ready) < self._ahead and has_room and (job := self._first()) is not None:
            return job
        if self._ready:
            return self._ready.popleft()
        if self._postponed:
            return self._oldest()
        return self._first()

    def ended(self, job: Job) -> None:
        """Note the end of a job; the other jobs of its item may be taken now."""
        if (others := self._postponed.pop(self._item_of(job), None)) is not None:
            self._waiting -= len(others)
            self._ready += others

    def _first(self) -> Job | None:
        """Return the first job of the next item, and postpone its others."""
        if (following := next(self._items, None)) is None:
            return None
        item, jobs = following
        first = next(jobs)
        if others := deque(jobs):
            self._postponed[item] = others
            self._waiting += len(others)
        return first

    def _oldest(self) -> Job:
        """Return a job whose first one has not ended: there is nothing else to do."""
        item, others = next(iter(self._postponed.items()))
        self._waiting -= 1
        job = others.popleft()
        if not others:
            del self._postponed[item]
        return job
