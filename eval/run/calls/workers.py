"""Workers that take jobs from one queue. While some of them wait, others are added."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Generic

from .job_queue import Job, JobQueue
from .prefix_gate import PrefixGate, no_others
from .shutdown import StopSignal


class Workers(Generic[Job]):
    """One worker for each call that may be in flight, and one more for each waiting worker.

    Args:
        number: the number of workers that do not wait at the gate.
        stop: ends them after their current job.
        gate: makes calls wait, and so the workers of these calls; ``None`` if no call waits.
    """

    def __init__(self, number: int, stop: StopSignal, gate: PrefixGate | None) -> None:
        self._number = number
        self._stop = stop
        self._gate = gate
        self._running = 0
        self._may_start = True

    async def do_all(self, jobs: JobQueue[Job], work: Callable[[Job], Awaitable[None]]) -> None:
        """Do all jobs, as many as possible until the end is requested.

        Raises:
            ExceptionGroup: the errors of the workers; the first one cancels the others.
        """
        # A worker that is started at the gate must not inherit the context of a call.
        context = copy_context()

        async def worker(job: Job) -> None:
            try:
                await work(job)
                jobs.ended(job)
                # Tasks can share a queue: taking from it is a step without an await.
                while not (self._stop.is_asked or self._are_too_many()):
                    if (following := jobs.take()) is None:
                        self._may_start = False
                        break
                    await work(following)
                    jobs.ended(following)
            except BaseException:
                self._may_start = False
                raise
            finally:
                self._running -= 1
                if self._gate is not None:
                    self._gate.balance()

        async with asyncio.TaskGroup() as group:

            def start() -> bool:
                """Start workers up to their number; return whether there were jobs for all."""
                while self._may_start and self._running - self._standing() < self._number:
                    if self._stop.is_asked or (job := jobs.take()) is None:
                        self._may_start = False
                        break
                    self._running += 1
                    group.create_task(worker(job), context=context.copy())
                return self._may_start

            if self._gate is not None:
                self._gate.start_others = start
            start()
        if self._gate is not None:
            self._gate.start_others = no_others

    def _standing(self) -> int:
        return 0 if self._gate is None else self._gate.standing

    def _are_too_many(self) -> bool:
        """Return whether more workers than their number have something to do."""
        return self._running - self._standing() > self._number
