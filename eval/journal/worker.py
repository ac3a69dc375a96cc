"""The thread that reads and writes a journal and serves waiting requests in few transactions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, NamedTuple

from ...nodes.models.retry import Wait
from .records import JournalError, Notice
from .store import P, Patience, Row, Store, T, logger

CLOSED = "the journal is closed: open it again to continue"
# Seconds between checks for replies that other processes are about to write.
POLL_SECONDS = 0.2
# Seconds between checks for notices of other processes, if they share limits.
NOTICE_SECONDS = 1.0
# The maximum number of requests that are served together.
AT_ONCE = 256
# This short pause collects requests into one transaction, and is negligible compared with a model
# call.
APART_SECONDS = 0.005


class Reserve(NamedTuple):
    """A request for the reply of a key, or for the right to make its call."""

    key: bytes
    done: asyncio.Future[bytes | None]


class Keep(NamedTuple):
    """A request to write a call."""

    row: Row
    done: asyncio.Future[None]


class Job(NamedTuple):
    """A request for any other action of the store."""

    action: Callable[[Store], Any]
    done: asyncio.Future[Any]


Request = Reserve | Keep | Job
Outcome = tuple[Request, Any]


class Worker:
    """Serves requests from a queue in the thread that owns the journal's only connection.

    Args:
        opening: creates the store; called in the thread.
        patience: the duration of a claim, and the receiver of notes about waits.

    Attributes:
        store: exists after the first request has been served.
        noticed: called on the event loop with notices of other processes of the run.
        thread: ends after it has served the requests before ``end``.
    """

    store: Store

    def __init__(self, opening: Callable[[], Store], patience: Patience) -> None:
        self._opening = opening
        self.noticed: Callable[[Notice], None] | None = None
        # A third of the lease, so that a renewal that has to wait for a lock is still in time.
        self._renewed_every = patience.lease / 3
        self._loop = asyncio.get_running_loop()
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._blocked: list[Reserve] = []
        self._waits = patience.waits
        self._noted: dict[Reserve, Wait] = {}
        self._fault: JournalError | None = None
        self._closed = self._ending = False
        self._renewal = time.monotonic() + self._renewed_every
        self._served = self._polling = 0.0
        # A daemon, so that a program can end; `Journal` joins it before that.
        self.thread = threading.Thread(target=self._run, name="jurygraph-journal", daemon=True)
        self.thread.start()

    def put(self, request: Request) -> asyncio.Future[Any]:
        """Queue a request and return the future for its outcome."""
        if self._closed:
            raise JournalError(CLOSED)
        self._requests.put(request)
        return request.done

    async def do(
        self, action: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function of the store in the thread, and return its result."""
        job = Job(lambda store: action(store, *args, **kwargs), self._loop.create_future())
        result: T = await self.put(job)
        return result

    def renew_often(self) -> None:
        """Renew every second from now on, to see notices about shared limits soon."""
        self._renewed_every = min(self._renewed_every, NOTICE_SECONDS)
        self._renewal = min(self._renewal, time.monotonic() + self._renewed_every)

    def check(self) -> None:
        """Raise the fault after which the journal cannot be used, if there was one."""
        if self._fault:
            raise JournalError(str(self._fault))

    def end(self) -> None:
        """Ask the thread to serve its queue and then end, without waiting for it."""
        self._closed = True
        self._requests.put(None)

    def _run(self) -> None:
        try:
            self.store = self._opening()
        except Exception as error:
            # ``Journal.open`` makes the first request, and no other one before its outcome.
            if opening := self._requests.get():
                self._deliver([(opening, error)])
            return
        while not self._ending:
            requests = self._next_requests()
            try:
                self._serve(requests)
            except Exception as error:
                # The fault ends the use of the journal: all waiting and later requests receive it.
                fault = (
                    error
                    if isinstance(error, JournalError)
                    else JournalError(f"journal: {error!r}")
                )
                if self._fault is None:
                    self._fault = fault
                    logger.error("%s", fault)
                waiting = [*requests, *self._blocked]
                self._blocked = []
                self._deliver([(request, self._fault) for request in waiting])
        self._deliver([(request, JournalError(CLOSED)) for request in self._blocked])
        if self._fault:
            # Freeing the claims would take another transaction. They expire with the lease.
            self.store.disconnect()
        else:
            self.store.close()

    def _next_requests(self) -> list[Request]:
        """Return all waiting requests.

        An empty list if it is time to poll for replies or to renew.
        """
        requests: list[Request] = []
        idle = POLL_SECONDS if self._blocked else max(0.0, self._renewal - time.monotonic())
        try:
            request = self._requests.get(
                timeout=idle if self.store.shared and not self._fault else None
            )
            pause = self._served + APART_SECONDS - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            while request is not None:
                requests.append(request)
                if len(requests) == AT_ONCE:
                    return requests
                request = self._requests.get_nowait()
            self._ending = True
        except Empty:
            pass
        return requests

    def _serve(self, requests: Sequence[Request]) -> None:
        if self._fault:
            raise self._fault
        store = self.store
        if store.shared and time.monotonic() >= self._renewal:
            notice = store.renew()
            self._renewal = time.monotonic() + self._renewed_every
            if self.noticed and notice != Notice():
                self._on_loop(self.noticed, notice)
        # Write calls first: an invalidation of the same round then finds their rows, and a
        # reservation their replies.
        keeps = [request for request in requests if isinstance(request, Keep)]
        if keeps:
            store.write([keep.row for keep in keeps])
            self._deliver([(keep, None) for keep in keeps])
        for request in requests:
            if isinstance(request, Job):
                self._deliver([(request, request.action(store))])
        asking = [request for request in requests if isinstance(request, Reserve)]
        if store.shared:
            self._claim(asking)
        elif asking:
            replies = store.look_up([request.key for request in asking])
            self._deliver([(request, replies.get(request.key)) for request in asking])
        # Reads alone need no pause before the next round, because only a commit waits for the disk.
        if keeps or store.shared:
            self._served = time.monotonic()

    def _claim(self, asking: list[Reserve]) -> None:
        """Serve stored replies and claim the other keys.

        Requests for others' calls keep waiting.
        """
        if self._blocked and time.monotonic() >= self._polling:
            self.store.free_lapsed([request.key for request in self._blocked])
            asking = [*self._blocked, *asking]
            self._blocked = []
        # `forget` frees the claim of a request that is cancelled after this point.
        asking = [request for request in asking if not request.done.cancelled()]
        outcomes: list[Outcome] = []
        if asking:
            # From here on, requests in `_blocked` receive any fault.
            self._blocked += asking
            replies, ours = self.store.reserve([request.key for request in asking])
            outcomes += (
                (r, replies.get(r.key)) for r in asking if r.key in replies or r.key in ours
            )
            served = {request for request, _ in outcomes}
            self._blocked = [request for request in self._blocked if request not in served]
            self._polling = time.monotonic() + POLL_SECONDS
        for request in self._noted.keys() - set(self._blocked):
            self._waits.remove(self._noted.pop(request))
        for request in set(self._blocked) - self._noted.keys():
            self._noted[request] = self._waits.add(
                "another process", "it is making the same call", None
            )
        # Last: a served task may immediately check whether a wait is still shown.
        self._deliver(outcomes)

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        self._on_loop(self._settle, outcomes)

    def _on_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        # A closed event loop refuses the call, and nothing waits for it any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        for request, outcome in outcomes:
            if request.done.done():
                continue  # the caller was cancelled
            if isinstance(outcome, JournalError):
                # One object each, because an exception that several tasks raise would collect all
                # their tracebacks.
                request.done.set_exception(JournalError(str(outcome)))
            elif isinstance(outcome, Exception):  # from the opening, for which one task waits
                request.done.set_exception(outcome)
            else:
                request.done.set_result(outcome)

    def forget(self, key: bytes) -> None:
        """Free a key that was claimed for a cancelled request, for other processes to call."""
        if self.store.shared and not self._closed:
            freeing = self.put(Job(lambda store: store.free([key]), self._loop.create_future()))
            # Nothing waits for it, and asyncio would warn about an exception that was not
            # retrieved.
            freeing.add_done_callback(lambda freed: freed.exception())
