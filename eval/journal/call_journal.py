"""Open and use the journal of model calls: every finished call is on disk before its reply is used."""

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

# Seconds for which faults that may pass are retried, unless the caller names others.
SQLITE_PATIENCE, POSTGRES_PATIENCE = 60.0, 600.0
# Seconds that a program which ends without closing its journal waits for the last writes.
_EXIT_PATIENCE = 30.0


class PatienceOptions(TypedDict, total=False):
    """Names the fields of ``Patience`` for type checkers."""

    retry_seconds: float
    lease: float
    waits: Waits


class Journal:
    """Serves stored replies and stores new ones, for one run and the event loop that opened the journal.

    A journal is an SQLite file or a Postgres database. Before a call its key is reserved: the answer is the stored
    reply, or ``None``, after which the caller makes the call and keeps its reply or releases the key.

    Attributes:
        spent: what earlier openings for the same run, and other parts of it, have spent.
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
        self.spent, self.shared = spent, worker.store.shared
        self._worker, self._store = worker, worker.store
        self._usage, self._seen = spent.usage, seen
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
            run: the id of the run; what it spends is summed over all its openings.
            part: the part of the run that is judged here, such as ``2/4`` of four shards. One process at a time may
                open a journal for a part: claims of an earlier one are freed. Those of other parts are not touched.
            fresh: whether replies from before the run's first opening are ignored. They stay; later ones are served.
            shared: whether other processes may have it open at the same time, so that calls have to be
                claimed. Default: where it was given as a URL.
            **patience: how long it waits for what, see ``Patience``; a full disk, a lock or a lost server is retried
                for a minute with a file, for ten with Postgres.

        Raises:
            UsageError: an unknown kind of database, one that cannot be reached, a file that is no journal, or a
                journal of another version.
        """
        place = journal_location(where)
        claiming = place.named_by_url if shared is None else shared
        usual = Patience(retry_seconds=SQLITE_PATIENCE if place.file else POSTGRES_PATIENCE)
        waiting = replace(usual, **patience)
        opening = partial(Store, place, run, part=part, shared=claiming, fresh=fresh, patience=waiting)
        worker = Worker(opening, waiting)
        try:
            # With several processes, keys that another one adds later would be missing from the filter.
            seen = KeyFilter()
            filled = not claiming and await worker.do(Store.note_keys, seen.add, KeyFilter.MOST)
            return cls(worker, await worker.do(Store.spent), seen if filled else None)
        except BaseException:
            worker.end()
            raise

    async def reserve(self, key: bytes) -> bytes | None:
        """Return the stored reply of a key; ``None`` where the caller is to make the call, then keep or release it.

        While another process is making the call, this waits for its reply.

        Args:
            key: 16 bytes that identify the call.

        Raises:
            JournalError: the journal cannot be used any more.
        """
        # A new call need not wait for the thread: with one process, a key that was never added is not in the file.
        if self._seen and not self._seen.may_hold(key):
            self._worker.check()
            return None
        reserved: asyncio.Future[bytes | None] = self._worker.put(Reserve(key, self._loop.create_future()))
        try:
            return await reserved
        except asyncio.CancelledError:
            # The claim may have been granted, and nobody would use it.
            self._worker.forget(key)
            raise

    async def keep(self, key: bytes, entry: Entry) -> None:
        """Write a finished call; it is on disk when this returns, and is written even if this is cancelled.

        Raises:
            JournalError: it could not be written.
        """
        if self._seen:
            self._seen.add(key)
        self._usage += entry.usage
        # No await before `put`: a cancelled caller cannot keep the row from being queued, and a later `reserve` of the
        # key is queued behind it.
        row = (next(self._numbers), key, entry.model, entry.reply, *usage_values(entry.usage))
        await self._worker.put(Keep(row, self._loop.create_future()))

    async def release(self, key: bytes) -> None:
        """Release a reserved key whose call failed."""
        # A journal that is not shared has no claims to free.
        if self.shared:
            await self._worker.do(Store.free, [key])

    async def invalidate(self, keys: Iterable[bytes]) -> None:
        """Mark replies that could not be used, so that they are not served again. Their cost stays counted."""
        await self._worker.do(Store.invalidate, list(keys))

    def totals(self) -> Usage:
        """Return what this run has spent so far, earlier openings included."""
        return self._usage

    async def spent_by_all(self) -> Spent:
        """Add up what all processes of this run have spent until now, as far as they have written it."""
        return await self._worker.do(Store.spent)

    async def grant(self, request: GrantRequest) -> Grant:
        """Ask for a share of what all processes of this run may use; it holds while ``holds_grant`` says so.

        A process that dies loses it with its lease; one that was frozen for longer has to ask again.
        """
        self._worker.renew_often()
        return await self._worker.do(run_limits.grant, request)

    def holds_grant(self) -> bool:
        """Return whether what was granted has not been given to others meanwhile."""
        return time.monotonic() < self._store.granted_until

    async def book(self, model: str, kind: str, seconds: float) -> float:
        """Book so many seconds of a rate that all processes of this run share; return in how many they begin."""
        return await self._worker.do(run_limits.book, model, kind, seconds)

    def listen(self, listener: Callable[[Notice], None]) -> None:
        """Have a function called with what other processes of this run note; at each renewal of the lease."""
        self._worker.noticed = listener

    async def hear_soon(self) -> None:
        """Look every second from now on for what others note, not only where limits hold for all of them."""
        self._worker.renew_often()
        # The thread may be waiting for a request until its next usual look.
        await self._worker.do(lambda _: None)

    async def note_stop(self, reason: str, explanation: str) -> None:
        """Tell all processes that have this run open to stop; one that opens it later may go on."""
        await self._worker.do(Store.note_stop, reason, explanation)

    async def note_batch(self, name: str, about: Mapping[str, Any]) -> None:
        """Store a batch that the provider has, or replace what is stored about it; ``about`` is plain JSON."""
        await self._worker.do(Store.note_batch, name, json.dumps(about))

    async def batches(self) -> list[Batch]:
        """Return the batches of this run, oldest first."""
        return await self._worker.do(Store.batches)

    async def settle_batch(self, name: str) -> None:
        """Mark a batch whose replies are all in the journal or given up."""
        await self._worker.do(Store.settle_batch, name)

    async def close(self) -> None:
        """Write what is queued, free the claims and disconnect from the database."""
        atexit.unregister(self._finish)
        # Before the thread is told to end: it may be retrying a transaction, which is then given up sooner.
        self._store.hurry()
        self._worker.end()
        await asyncio.to_thread(self._worker.thread.join)

    aclose = close
    """What ``contextlib.aclosing`` calls."""

    def _finish(self) -> None:
        """Write what is queued when the program ends without closing the journal."""
        self._worker.end()
        self._worker.thread.join(_EXIT_PATIENCE)


_WORDS = struct.Struct("<4I")


class KeyFilter:
    """A Bloom filter over keys of 16 bytes, which are hashes themselves and are not hashed again.

    It takes 1 MiB, however many keys it holds. With 500,000 of them it reports one unknown key in 400 as known, and
    never a known one as unknown.

    >>> seen = KeyFilter()
    >>> seen.add(bytes(range(16)))
    >>> seen.may_hold(bytes(range(16))), seen.may_hold(b"another key, 16b")
    (True, False)
    """

    MOST = 500_000
    """With more keys the filter is of little use, and to read them takes long."""

    def __init__(self) -> None:
        self._bits = bytearray(1 << 20)

    def add(self, key: bytes) -> None:
        """Add a key."""
        bits = self._bits
        for word in _WORDS.unpack(key):
            # The low 23 bits of each word are the number of a bit: 20 of them name the byte, the last three the bit in
            # it.
            bits[(word & 0x7FFFFF) >> 3] |= 1 << (word & 7)

    def may_hold(self, key: bytes) -> bool:
        """Return whether the key may have been added; never false where it was."""
        bits = self._bits
        return all(bits[(word & 0x7FFFFF) >> 3] >> (word & 7) & 1 for word in _WORDS.unpack(key))
