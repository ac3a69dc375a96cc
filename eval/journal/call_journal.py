"""The journal of model calls: every finished call is on disk before its reply is used."""

from __future__ import annotations

import asyncio
import atexit
import json
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ...nodes.models.retry import Waits
from ...state.transcript import Usage
from . import run_limits
from .database import COUNTER_BITS, journal_location
from .records import Batch, Entry, Grant, GrantRequest, Notice, Spent, usage_values
from .store import Patience, Store
from .worker import Keep, Reserve, Worker

# The default number of seconds for which temporary faults are retried.
SQLITE_PATIENCE = 60.0
POSTGRES_PATIENCE = 600.0
# Seconds that a program waits for the last writes if it ends without closing its journal.
_EXIT_PATIENCE = 30.0


class PatienceOptions(TypedDict, total=False):
    """The fields of ``Patience`` for type checkers."""

    retry_seconds: float
    lease: float
    waits: Waits


class Journal:
    """Serves stored replies and stores new ones, for one run and the event loop that opened it.

    A journal is an SQLite file or a Postgres database. Before a call, its key is reserved. The
    result is the stored reply, or ``None``: the caller then makes the call, and either stores its
    reply or releases the key.

    Attributes:
        spent: the usage of earlier openings for the same run, and of other parts of it.
        shared: whether other processes may have it open.

    >>> import asyncio, tempfile
    >>> async def twice(file: str) -> list[bytes | None]:
    ...     journal = await Journal.open(file, run="6b1f")
    ...     before = await journal.reserve(bytes(16))
    ...     await journal.keep(bytes(16), Entry("m", b'{"text": "4"}', Usage(1, 90, 0, 5)))
    ...     after = await journal.reserve(bytes(16))
    ...     await journal.close()
    ...     return [before, after]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(twice(f"{folder}/journal.sqlite"))
    [None, b'{"text": "4"}']
    """

    def __init__(self, worker: Worker, spent: Spent, seen: KeyFilter | None) -> None:
        self.spent = spent
        self.shared = worker.store.shared
        self._worker = worker
        self._store = worker.store
        self._usage = spent.usage
        self._seen = seen
        self._loop = asyncio.get_running_loop()
        self._numbers = count(worker.store.opening << COUNTER_BITS)
        atexit.register(self._finish)

    @classmethod
    async def open(
        cls,
        where: str | Path,
        *,
        run: str,
        part: str = "",
        fresh: bool = False,
        shared: bool | None = None,
        **patience: Unpack[PatienceOptions],
    ) -> Journal:
        """Open a journal, or create it.

        Args:
            where: an SQLite file, ``sqlite:///FILE`` or ``postgresql://USER@HOST:PORT/DATABASE``.
            run: the id of the run; its usage is summed over all its openings.
            part: the part of the run that is judged here, such as ``2/4`` of four shards. Only one
                process at a time may open a journal for a part: claims of an earlier one are freed.
                Claims of other parts stay.
            fresh: whether to ignore replies from before the run's first opening. They stay in the
                journal; later ones are served.
            shared: whether other processes may have it open at the same time, so that calls must be
                claimed. Default: if it was given as a URL.
            **patience: the waiting times, see ``Patience``; a full disk, a lock or a lost server is
                retried for a minute with a file, and for ten with Postgres.

        Raises:
            UsageError: an unknown or unreachable database, a file that is not a journal, or a
                journal of another version.
        """
        place = journal_location(where)
        claiming = place.named_by_url if shared is None else shared
        usual = Patience(retry_seconds=SQLITE_PATIENCE if place.file else POSTGRES_PATIENCE)
        waiting = replace(usual, **patience)
        opening = partial(
            Store, place, run, part=part, shared=claiming, fresh=fresh, patience=waiting
        )
        worker = Worker(opening, waiting)
        try:
            # With several processes, the filter would lack the keys that another one adds later.
            seen = KeyFilter()
            filled = not claiming and await worker.do(Store.note_keys, seen.add, KeyFilter.MOST)
            return cls(worker, await worker.do(Store.spent), seen if filled else None)
        except BaseException:
            worker.end()
            raise

    async def reserve(self, key: bytes) -> bytes | None:
        """Return the stored reply of a key; ``None`` if the caller has to make the call.

        The caller then stores the reply or releases the key. While another process makes the call,
        this method waits for its reply.

        Args:
            key: 16 bytes that identify the call.

        Raises:
            JournalError: the journal can no longer be used.
        """
        # A new call need not wait for the thread: with one process, a key that was never added is
        # not in the file.
        if self._seen and not self._seen.may_hold(key):
            self._worker.check()
            return None
        reserved: asyncio.Future[bytes | None] = self._worker.put(
            Reserve(key, self._loop.create_future())
        )
        try:
            return await reserved
        except asyncio.CancelledError:
            # The claim may have been granted, but would not be used.
            self._worker.forget(key)
            raise

    async def keep(self, key: bytes, entry: Entry) -> None:
        """Write a finished call; it is on disk when this returns, and is written even if cancelled.

        Raises:
            JournalError: it could not be written.
        """
        if self._seen:
            self._seen.add(key)
        self._usage += entry.usage
        # There is no await before `put`, so a cancelled caller still queues the row, and a later
        # `reserve` of the key is queued after it.
        row = (next(self._numbers), key, entry.model, entry.reply, *usage_values(entry.usage))
        await self._worker.put(Keep(row, self._loop.create_future()))

    async def release(self, key: bytes) -> None:
        """Release a reserved key whose call failed."""
        # A journal that is not shared has no claims to free.
        if self.shared:
            await self._worker.do(Store.free, [key])

    async def invalidate(self, keys: Iterable[bytes]) -> None:
        """Mark replies that could not be used, so that they are not served again.

        Their cost counts.
        """
        await self._worker.do(Store.invalidate, list(keys))

    def totals(self) -> Usage:
        """Return the usage of this run so far, including earlier openings."""
        return self._usage

    async def spent_by_all(self) -> Spent:
        """Return the usage of all processes of this run, as far as they have written it."""
        return await self._worker.do(Store.spent)

    async def grant(self, request: GrantRequest) -> Grant:
        """Request a share of the run's limits; it is valid while ``holds_grant`` is true.

        A process that dies loses it with its lease. A process that was frozen for longer has to
        request it again.
        """
        self._worker.renew_often()
        return await self._worker.do(run_limits.grant, request)

    def holds_grant(self) -> bool:
        """Return whether the grant is still valid."""
        return time.monotonic() < self._store.granted_until

    async def book(self, model: str, kind: str, seconds: float) -> float:
        """Book seconds of a rate that all processes share; return the delay until they begin."""
        return await self._worker.do(run_limits.book, model, kind, seconds)

    def listen(self, listener: Callable[[Notice], None]) -> None:
        """Call a function with the notices of other processes, at each renewal of the lease."""
        self._worker.noticed = listener

    async def hear_soon(self) -> None:
        """Check for others' notices every second from now on, not only if they share limits."""
        self._worker.renew_often()
        # The thread may be waiting for a request until its next usual check.
        await self._worker.do(lambda _: None)

    async def note_stop(self, reason: str, explanation: str) -> None:
        """Ask all processes that have this run open to stop.

        One that opens it later may continue.
        """
        await self._worker.do(Store.note_stop, reason, explanation)

    async def note_batch(self, name: str, about: Mapping[str, Any]) -> None:
        """Store a batch at the provider, or replace its stored data; ``about`` is plain JSON."""
        await self._worker.do(Store.note_batch, name, json.dumps(about))

    async def batches(self) -> list[Batch]:
        """Return the batches of this run, oldest first."""
        return await self._worker.do(Store.batches)

    async def settle_batch(self, name: str) -> None:
        """Mark a batch whose replies are all in the journal or given up."""
        await self._worker.do(Store.settle_batch, name)

    async def close(self) -> None:
        """Write the queue, free the claims and disconnect from the database."""
        atexit.unregister(self._finish)
        # Call this before the thread is asked to end: a transaction that it retries is then given
        # up sooner.
        self._store.hurry()
        self._worker.end()
        await asyncio.to_thread(self._worker.thread.join)

    aclose = close
    """The method that ``contextlib.aclosing`` calls."""

    def _finish(self) -> None:
        """Write the queue when the program ends without closing the journal."""
        self._worker.end()
        self._worker.thread.join(_EXIT_PATIENCE)


_WORDS = struct.Struct("<4I")


class KeyFilter:
    """A Bloom filter over keys of 16 bytes, which are hashes already and are not hashed again.

    It takes 1 MiB for any number of keys. With 500,000 keys, it reports one unknown key in 400 as
    known, and never a known one as unknown.

    >>> seen = KeyFilter()
    >>> seen.add(bytes(range(16)))
    >>> seen.may_hold(bytes(range(16))), seen.may_hold(b"another key, 16b")
    (True, False)
    """

    MOST = 500_000
    """With more keys, the filter is of little use and slow to read."""

    def __init__(self) -> None:
        self._bits = bytearray(1 << 20)

    def add(self, key: bytes) -> None:
        """Add a key."""
        bits = self._bits
        for word in _WORDS.unpack(key):
            # The low 23 bits of each word are the number of a bit: 20 of them select the byte, the
            # last three the bit in it.
            bits[(word & 0x7FFFFF) >> 3] |= 1 << (word & 7)

    def may_hold(self, key: bytes) -> bool:
        """Return whether the key may have been added; never false for an added key."""
        bits = self._bits
        return all(bits[(word & 0x7FFFFF) >> 3] >> (word & 7) & 1 for word in _WORDS.unpack(key))
