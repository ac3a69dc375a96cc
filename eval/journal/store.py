"""Run the transactions of a journal, and retry them where a fault may pass."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import DBAPIError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_random_exponential

from ...nodes.models.waits import Waits
from ...state.errors import UsageError
from ..private_files import make_private_file, make_private_folder
from .database import (
    KEPT_AT_ONCE,
    SPENT,
    SUMS,
    WRITTEN_BY,
    JournalLocation,
    Statements,
    batches,
    calls,
    claims,
    create,
    now,
    openings,
    usage_from,
)
from .records import Batch, JournalError, Spent

T = TypeVar("T")

# Seconds of retrying at the start, where somebody is watching, and at the end, where nothing is left to lose.
_EDGE_PATIENCE = 10.0
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Patience:
    """Says how long a journal waits for what.

    Attributes:
        retry_seconds: for how long faults that may pass are retried.
        lease: for how many seconds the claims of a process hold that does not renew them.
        waits: gets a note while a fault or another process is waited out.
    """

    retry_seconds: float = 60.0
    lease: float = 60.0
    waits: Waits = field(default_factory=Waits)


class Store:
    """Reads and writes the tables of a journal, for one opening of it and from one thread.

    Args:
        place: where the journal is.
        run: the run that opens it.
        shared: whether other processes may have it open; calls are claimed then.
        fresh: whether replies from before the run's first opening are ignored.
        patience: how long it waits.
    """

    def __init__(
        self,
        place: JournalLocation,
        run: str,
        *,
        shared: bool,
        fresh: bool,
        patience: Patience,
    ) -> None:
        self._place = place
        self._waits = patience.waits
        self._run = run
        self._shared = shared
        # The first transaction asks for this already; the lasting value is set once the journal is open.
        self._retry_seconds = min(patience.retry_seconds, _EDGE_PATIENCE)
        self._lease = patience.lease
        self._engine = place.engine()
        self._connection: Connection | None = None
        self._inode: int | None = None
        self.opening = self._first()
        self._retry_seconds = patience.retry_seconds
        since = self.transact(self._first_of_run) if fresh else 0
        self._statements = Statements(self._engine.dialect, self.opening, since=since)

    def _first(self) -> int:
        try:
            if self._place.file:
                make_private_folder(self._place.file.parent)
                # SQLite would give a new file the usual permissions; what it cannot open it tells itself.
                with suppress(OSError):
                    make_private_file(self._place.file)
            return self.transact(self._open)
        except JournalError as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            raise UsageError(f"{self._place.shown}: its folder cannot be made: {error.strerror}") from error

    def transact(self, action: Callable[[Connection], T], *, one_statement: bool = False) -> T:
        """Run an action in one transaction, and retry it while a fault may pass.

        Args:
            action: what to do.
            one_statement: whether it is a single statement, which is a transaction in itself.

        Raises:
            JournalError: a fault that lasts.
        """
        begin = self._place.file is not None and not one_statement
        return persevere(
            lambda: self._once(action, begin), self._place, lambda: self._retry_seconds, self._waits
        )

    def _once(self, action: Callable[[Connection], T], begin: bool) -> T:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            # Only after connecting, which creates a file that is not there yet.
            self._check_file()
            with self._connection.begin():
                if begin:
                    self._connection.exec_driver_sql("BEGIN")
                return action(self._connection)
        except BaseException:
            # After a fault the connection may be dead or inside a broken transaction: a retry begins with a new one.
            self.disconnect()
            raise

    def _check_file(self) -> None:
        """Raise an error if the SQLite file was removed or replaced since it was opened."""
        # SQLite goes on writing into a deleted file, and all of it would be lost.
        if self._place.file is None:
            return
        try:
            there = self._place.file.stat().st_ino
        except FileNotFoundError:
            there = None
        if self._inode is None:
            self._inode = there
        if there is None or there != self._inode:
            raise JournalError(
                f"journal {self._place.shown}: the file was removed or replaced while it was in use; put it back, "
                "or start again (what was judged stays judged)"
            )

    def hurry(self) -> None:
        """Stop retrying soon, also in the transaction that is being retried now."""
        self._retry_seconds = min(self._retry_seconds, _EDGE_PATIENCE)

    def close(self) -> None:
        """Free the claims of this opening and disconnect."""
        self.hurry()
        if self._shared:
            # Claims that cannot be freed now lapse with the lease.
            with suppress(JournalError):
                mine = delete(claims).where(claims.c.opening == self.opening)
                self.transact(lambda connection: connection.execute(mine) and None)
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the next transaction opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self, connection: Connection) -> int:
        create(connection, self._place)
        earlier = select(openings.c.number).where(openings.c.run == self._run)
        # One process at a time opens a journal for a run, so that earlier openings are of processes that have ended.
        connection.execute(delete(claims).where(claims.c.opening.in_(earlier)))
        until = now(connection.dialect) + int(self._lease)
        added = connection.execute(insert(openings).values(run=self._run, alive_until=until))
        assert added.inserted_primary_key is not None
        return int(added.inserted_primary_key[0])

    def _first_of_run(self, connection: Connection) -> int:
        number = connection.scalar(select(func.min(openings.c.number)).where(openings.c.run == self._run))
        assert isinstance(number, int)
        return number

    def spent(self) -> Spent:
        """Add up what this run's calls took, over all its openings."""
        mine = openings.join(calls, WRITTEN_BY)
        statement = select(*SUMS, *SPENT).select_from(mine).where(openings.c.run == self._run)
        row = self.transact(lambda connection: connection.execute(statement).one())
        return Spent(usage_from(row[: len(SUMS)]), *row[len(SUMS) :])

    def note_keys(self, note: Callable[[bytes], None]) -> None:
        """Call a function with every key of the journal, without holding all of them in memory."""

        def action(connection: Connection) -> None:
            for key in connection.scalars(select(calls.c.key), execution_options={"yield_per": 1000}):
                note(key)

        self.transact(action)

    def write(self, rows: Sequence[Row]) -> None:
        """Add calls and free their claims; a call that was written before is left as it is."""
        for first in range(0, len(rows), KEPT_AT_ONCE):
            self._write(rows[first : first + KEPT_AT_ONCE])

    def _write(self, rows: Sequence[Row]) -> None:
        def action(connection: Connection) -> None:
            connection.exec_driver_sql(self._statements.keep(len(rows)), tuple(chain(*rows)))
            if self._shared:
                connection.execute(self._statements.free, {"keys": [key for _, key, *_ in rows]})

        # A lone INSERT commits by itself, which saves the statements BEGIN and COMMIT.
        self.transact(action, one_statement=not self._shared)

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the newest reply of each key that has one."""

        def action(connection: Connection) -> dict[bytes, bytes]:
            rows = connection.execute(self._statements.look_up, {"keys": keys})
            return {row.key: row.reply for row in rows}

        return self.transact(action, one_statement=True)

    def reserve(self, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the stored replies, and which of the other keys this opening has claimed and is to call."""
        found = self.look_up(keys)
        # Everybody claims in the same order, so that two who want the same do not lock each other out.
        wanted = sorted(set(keys) - found.keys())
        if not wanted:
            return found, set()
        ours = self.transact(lambda connection: self._claim(connection, wanted))
        # Between the first look and the claim, another process may have kept a reply and freed its claim. Looked up
        # after the commit: a process that is stopped while it is sent long replies must hold no locks.
        late = self.look_up(list(ours)) if ours else {}
        self.free(late)
        return found | late, ours - late.keys()

    def _claim(self, connection: Connection, keys: Sequence[bytes]) -> set[bytes]:
        rows = [{"key": key, "opening": self.opening} for key in keys]
        connection.execute(self._statements.claim, rows)
        return set(connection.scalars(self._statements.claimed, {"keys": keys}))

    def free(self, keys: Iterable[bytes]) -> None:
        """Free claims of this opening."""
        given = {"keys": list(keys)}
        if given["keys"]:
            self.transact(lambda connection: connection.execute(self._statements.free, given) and None)

    def free_lapsed(self, keys: Sequence[bytes]) -> None:
        """Free claims whose process has let its lease lapse."""

        def action(connection: Connection) -> None:
            clock = now(connection.dialect)
            # A time too far ahead was written before somebody set the clock back.
            alive = openings.c.alive_until.between(clock, clock + int(self._lease))
            lapsed = claims.c.opening.not_in(select(openings.c.number).where(alive))
            connection.execute(delete(claims).where(claims.c.key.in_(keys), lapsed))

        self.transact(action)

    def renew(self) -> None:
        """Extend the claims of this opening by another lease."""

        def action(connection: Connection) -> None:
            until = now(connection.dialect) + int(self._lease)
            connection.execute(
                update(openings).where(openings.c.number == self.opening).values(alive_until=until)
            )

        self.transact(action)

    def invalidate(self, keys: Sequence[bytes]) -> None:
        """Mark the replies of these keys so that they are not served again."""
        statement = update(calls).where(calls.c.key.in_(keys)).values(invalidated=True)
        self.transact(lambda connection: connection.execute(statement) and None)

    def note_batch(self, name: str, about: str) -> None:
        """Store a batch that was sent, or replace what is stored about it."""

        def action(connection: Connection) -> None:
            connection.execute(delete(batches).where(batches.c.id == name))
            noted = {"id": name, "run": self._run, "about": about, "created": now(connection.dialect)}
            connection.execute(insert(batches).values(noted))

        self.transact(action)

    def batches(self) -> list[Batch]:
        """Return this run's batches, oldest first."""
        statement = (
            select(batches).where(batches.c.run == self._run).order_by(batches.c.created, batches.c.id)
        )
        rows = self.transact(lambda connection: connection.execute(statement).all())
        return [Batch(row.id, row.run, row.settled, row.created, json.loads(row.about)) for row in rows]

    def settle_batch(self, name: str) -> None:
        """Mark a batch as settled."""
        statement = update(batches).where(batches.c.id == name).values(settled=True)
        self.transact(lambda connection: connection.execute(statement) and None)


logger = logging.getLogger("jurygraph.journal")
_WAIT_AT_MOST = 5.0
_PASSING_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}

# Connection lost, session ended for idling in a transaction, transaction lost to another (deadlock), resources,
# operator's shutdown, lock not available, I/O.
_PASSING_POSTGRES = ("08", "25P03", "40", "53", "57", "55P03", "58")
# Attempts that are made however long they take: a process that was stopped meanwhile has lost no time of its own.
_ATTEMPTS_AT_LEAST = 3
_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another program holds it: close that program",
    sqlite3.SQLITE_LOCKED: "another program holds it: close that program",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "look after the disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable, or choose another place",
    sqlite3.SQLITE_CANTOPEN: "make sure that its folder is there and writable, or choose another place",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: put it aside, or recover it with sqlite3 FILE .recover",
    sqlite3.SQLITE_NOTADB: "the file is no SQLite database: choose another place, or put it aside",
}


def persevere(
    action: Callable[[], T],
    place: JournalLocation,
    retry_seconds: Callable[[], float],
    waits: Waits | None = None,
) -> T:
    """Run an action, and retry it while the fault may pass; ``retry_seconds`` is asked anew before each attempt.

    Raises:
        JournalError: the fault lasts or cannot pass; says which database, what is wrong and what to do.
    """
    with ExitStack() as notes:

        def before_sleep(state: RetryCallState) -> None:
            notes.close()
            if waits:
                left = retry_seconds() - (state.seconds_since_start or 0.0)
                why = explain(fault) if isinstance(fault := _fault(state), DBAPIError) else ""
                notes.enter_context(waits.noted(f"journal {place.shown}", why, left))
            _warn(state, place, retry_seconds())

        return _retried(action, place, retry_seconds, before_sleep)


def _retried(
    action: Callable[[], T],
    place: JournalLocation,
    retry_seconds: Callable[[], float],
    before_sleep: Callable[[RetryCallState], None],
) -> T:
    retrying = Retrying(
        retry=retry_if_exception(passes),
        wait=wait_random_exponential(multiplier=0.05, max=_WAIT_AT_MOST),
        stop=lambda state: (
            state.attempt_number >= _ATTEMPTS_AT_LEAST
            and (state.seconds_since_start or 0.0) >= retry_seconds()
        ),
        before_sleep=before_sleep,
        reraise=True,
    )
    try:
        return retrying(action)
    except DBAPIError as error:
        waited = f" (for {retry_seconds():g} s)" if passes(error) else ""
        raise JournalError(f"journal {place.shown}: {explain(error)}{waited}") from error


def passes(error: BaseException) -> bool:
    """Tell whether a retry may help, which is so for faults that pass: locks, a full disk, a lost server."""
    if not isinstance(error, DBAPIError):
        return False
    code = _sqlite_code(error)
    if code is not None:
        return code in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    # A server that cannot be reached gives no SQLSTATE.
    lost = error.connection_invalidated or (state is None and _is_operational(error))
    return lost or str(state).startswith(_PASSING_POSTGRES)


def explain(error: DBAPIError) -> str:
    """Return the database's message and a remedy, without the statement and its values."""
    said = " ".join(str(error.orig).split())
    remedy = _REMEDIES.get(_sqlite_code(error) or 0)
    return f"{said}; {remedy}" if remedy else said


def _sqlite_code(error: DBAPIError) -> int | None:
    """Return the primary code of an SQLite fault; its higher bits only say where it occurred."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # SQLITE_BUSY_SNAPSHOT (517) becomes SQLITE_BUSY (5), SQLITE_IOERR_FSYNC (1034) becomes SQLITE_IOERR (10).
    return None if code is None else code & 0xFF


def _is_operational(error: DBAPIError) -> bool:
    # By name, since psycopg is optional and its classes may not be there to compare with.
    return type(error.orig).__name__ in ("OperationalError", "InterfaceError")


def _fault(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _warn(state: RetryCallState, place: JournalLocation, retry_seconds: float) -> None:
    fault = _fault(state)
    if isinstance(fault, DBAPIError) and state.next_action:
        logger.warning(
            "journal %s: %s; trying again in %.1f s, for %g s at most",
            place.shown, explain(fault), state.next_action.sleep, retry_seconds,
        )  # fmt: skip
