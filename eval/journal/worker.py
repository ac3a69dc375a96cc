"""Run the thread that reads and writes a journal: waiting requests are served together, in few transactions."""

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
# Seconds between two looks for replies that other processes are about to write.
POLL_SECONDS = 0.2
# Seconds between two looks for what other processes of the run note, where limits hold for all of them.
NOTICE_SECONDS = 1.0
# Requests that are served together, at most.
AT_ONCE = 256
# A pause this short gathers requests into one transaction, and is nothing beside the time of a model call.
APART_SECONDS = 0.005


class Reserve(NamedTuple):
    """Asks for the reply of a key, or for the right to make its call."""

    key: bytes
    done: asyncio.Future[bytes | None]


class Keep(NamedTuple):
    """Asks for a call to be written."""

    row: Row
    done: asyncio.Future[None]


class Job(NamedTuple):
    """Asks for any other action of the store."""

    action: Callable[[Store], Any]
    done: asyncio.Future[Any]


Request = Reserve | Keep | Job
Outcome = tuple[Request, Any]


class Worker:
    """Serves requests from a queue in the thread that owns the journal's only connection.

    Args:
        opening: creates the store; called in the thread.
        patience: how long a claim holds, and who is told of calls that other processes are making.

    Attributes:
        store: is there once it has served something.
        noticed: called on the event loop with what other processes of the run have noted.
        thread: ends once it has served what was queued before ``end``.
    """

    store: Store

    def __init__(self, opening: Callable[[], Store], patience: Patience) -> None:
        self._opening = opening
        self.noticed: Callable[[Notice], None] | None = None
        # A third of the lease, so that a renewal which has to wait for a lock is still in time.
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
        """Queue a request and return the future that gets its outcome."""
        if self._closed:
            raise JournalError(CLOSED)
        self._requests.put(request)
        return request.done

    async def do(self, action: Callable[Concatenate[Store, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of the store in the thread, and return its result."""
        job = Job(lambda store: action(store, *args, **kwargs), self._loop.create_future())
        result: T = await self.put(job)
        return result

    def renew_often(self) -> None:
        """Renew every second from now on: what other processes note about limits of the run is to be seen soon."""
        self._renewed_every = min(self._renewed_every, NOTICE_SECONDS)
        self._renewal = min(self._renewal, time.monotonic() + self._renewed_every)

    def check(self) -> None:
        """Raise the fault after which the journal cannot be used, if there was one."""
        if self._fault:
            raise JournalError(str(self._fault))

    def end(self) -> None:
        """Tell the thread to serve what is queued and then end; does not wait for it."""
        self._closed = True
        self._requests.put(None)

    def _run(self) -> None:
        try:
            self.store = self._opening()
        except Exception as error:
            # ``Journal.open`` asks for something, and for nothing else before that is there.
            if opening := self._requests.get():
                self._deliver([(opening, error)])
            return
        while not self._ending:
            requests = self._next_requests()
            try:
                self._serve(requests)
            except Exception as error:
                # The fault ends the use of the journal: all who wait get it, and whoever asks later.
                fault = error if isinstance(error, JournalError) else JournalError(f"journal: {error!r}")
                if self._fault is None:
                    self._fault = fault
                    logger.error("%s", fault)
                waiting, self._blocked = [*requests, *self._blocked], []
                self._deliver([(request, self._fault) for request in waiting])
        self._deliver([(request, JournalError(CLOSED)) for request in self._blocked])
        if self._fault:
            # To free the claims would take another transaction; they lapse with the lease.
            self.store.disconnect()
        else:
            self.store.close()

    def _next_requests(self) -> list[Request]:
        """Return all waiting requests; an empty list when it is time to poll for replies or to renew claims."""
        requests: list[Request] = []
        idle = POLL_SECONDS if self._blocked else max(0.0, self._renewal - time.monotonic())
        try:
            request = self._requests.get(timeout=idle if self.store.shared and not self._fault else None)
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
        # Calls are written first: an invalidation of the same round finds their rows, and a reservation their replies.
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
        # Reads alone need no pause before the next round: only a commit waits for the disk.
        if keeps or store.shared:
            self._served = time.monotonic()

    def _claim(self, asking: list[Reserve]) -> None:
        """Serve stored replies, claim the other keys, and keep requests waiting whose calls others are making."""
        if self._blocked and time.monotonic() >= self._polling:
            self.store.free_lapsed([request.key for request in self._blocked])
            asking, self._blocked = [*self._blocked, *asking], []
        # A claim for a request that is cancelled from now on is freed by what `forget` queues.
        asking = [request for request in asking if not request.done.cancelled()]
        outcomes: list[Outcome] = []
        if asking:
            # In `_blocked` they are told of any fault from here on.
            self._blocked += asking
            replies, ours = self.store.reserve([request.key for request in asking])
            outcomes += ((r, replies.get(r.key)) for r in asking if r.key in replies or r.key in ours)
            served = {request for request, _ in outcomes}
            self._blocked = [request for request in self._blocked if request not in served]
            self._polling = time.monotonic() + POLL_SECONDS
        for request in self._noted.keys() - set(self._blocked):
            self._waits.remove(self._noted.pop(request))
        for request in set(self._blocked) - self._noted.keys():
            self._noted[request] = self._waits.add("another process", "it is making the same call", None)
        # Last: whoever has waited may look at once whether a wait is still shown.
        self._deliver(outcomes)

    def _deliver(self, outcomes: Sequence[Outcome]) -> None:
        self._on_loop(self._settle, outcomes)

    def _on_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        # A closed event loop refuses the call, and nothing waits on it any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        for request, outcome in outcomes:
            if request.done.done():
                continue  # whoever asked has been cancelled
            if isinstance(outcome, JournalError):
                # One object each: an exception that several tasks raise would gather all their tracebacks.
                request.done.set_exception(JournalError(str(outcome)))
            elif isinstance(outcome, Exception):  # of the opening, for which one task waits
                request.done.set_exception(outcome)
            else:
                request.done.set_result(outcome)

    def forget(self, key: bytes) -> None:
        """Free a key that was claimed for a request which was cancelled, so that another process can make its call."""
        if self.store.shared and not self._closed:
            freeing = self.put(Job(lambda store: store.free([key]), self._loop.create_future()))
            # Nobody waits for it; asyncio would complain of an exception that nobody looked at.
            freeing.add_done_callback(lambda freed: freed.exception())
