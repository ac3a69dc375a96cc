"""The transactions of a journal, which are retried after temporary faults."""

from __future__ import annotations

import json
import logging
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import chain
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    case,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from ...nodes.models.retry import Waits
from ...state.errors import UsageError
from .database import (
    COUNTED,
    COUNTER_BITS,
    GRANTED,
    KEPT_AT_ONCE,
    JournalLocation,
    addition,
    batches,
    calls,
    claiming,
    claims,
    counted,
    create,
    insert_for,
    now,
    openings,
    runs,
    served,
    usage_from,
)
from .private_files import PRIVATE, make_private_folder
from .records import Batch, JournalError, Notice, Spent

T = TypeVar("T")
P = ParamSpec("P")

logger = logging.getLogger("jurygraph.journal")
# Seconds of retrying at the start and on the command line, where a user is waiting, and at the end,
# where nothing can be lost.
EDGE_PATIENCE = 10.0
# Calls after which the sums of an opening are updated, so that the next opening has at most that
# many to add up.
_COUNTED_EVERY = 5_000
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Patience:
    """The waiting times of a journal.

    Attributes:
        retry_seconds: the seconds for which temporary faults are retried.
        lease: the seconds for which the claims of a process are valid without renewal.
        waits: receives a note while a fault or another process causes a wait.
    """

    retry_seconds: float = 60.0
    lease: float = 60.0
    waits: Waits = field(default_factory=Waits)


def transaction(
    action: Callable[Concatenate[Store, Connection, P], T],
) -> Callable[Concatenate[Store, P], T]:
    """Run a method of the store in one transaction, which is retried after temporary faults."""

    @wraps(action)
    def run(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.transact(lambda connection: action(store, connection, *args, **kwargs))

    return run


class Store:
    """Reads and writes the tables of a journal, for one opening of it and from one thread.

    Args:
        place: the location of the journal.
        run: the run that opens it.
        part: the part of the run that this process judges.
        shared: whether other processes may have it open; calls are then claimed.
        fresh: whether to ignore replies from before the run's first opening.
        patience: the waiting times.
    """

    def __init__(
        self,
        place: JournalLocation,
        run: str,
        *,
        part: str,
        shared: bool,
        fresh: bool,
        patience: Patience,
    ) -> None:
        self._place = place
        self._waits = patience.waits
        self.run = run
        self._part = part
        self.shared = shared
        self.of_run = openings.c.run == run
        self._not_counted = 0
        # By the monotonic clock: the time at which others may take this opening's grant; 0 without
        # a grant.
        self.granted_until = 0.0
        # The first transaction already needs this. The final value is set once the journal is open.
        self._retry_seconds = min(patience.retry_seconds, EDGE_PATIENCE)
        self.lease = patience.lease
        self._engine = place.engine()
        self.dialect = self._engine.dialect
        self._connection: Connection | None = None
        self._inode: int | None = None
        try:
            if place.file:
                make_private_folder(place.file.parent)
                # SQLite would give a new file the usual permissions. SQLite itself reports a file
                # that it cannot open.
                with suppress(OSError):
                    place.file.touch(PRIVATE)
            self.opening = self._open()
        except JournalError as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            raise UsageError(
                f"{place.shown}: cannot create its folder: {error.strerror}"
            ) from error
        self._retry_seconds = patience.retry_seconds
        first = select(func.min(openings.c.number)).where(self.of_run)
        since = self.transact(lambda connection: connection.scalar(first)) if fresh else 0
        # Built once, because every round of requests needs them.
        self._served = served(since or 0)
        mine = claims.c.key.in_(bindparam("keys", expanding=True)) & (
            claims.c.opening == self.opening
        )
        self._claimed = select(claims.c.key).where(mine)
        self._freed = delete(claims).where(mine)

    def transact(self, action: Callable[[Connection], T], *, one_statement: bool = False) -> T:
        """Run an action in one transaction, and retry it after temporary faults.

        Args:
            action: the action.
            one_statement: whether it is a single statement, which is a transaction in itself.

        Raises:
            JournalError: a permanent fault.
        """
        begin = self._place.file is not None and not one_statement
        once = partial(self._once, action, begin)
        return persevere(once, self._place, lambda: self._retry_seconds, self._waits)

    def _once(self, action: Callable[[Connection], T], begin: bool) -> T:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            # Only after connecting, which creates a missing file.
            self._check_file()
            with self._connection.begin():
                if begin:
                    # Not deferred: if others changed the file between our read and write, the
                    # transaction would have to restart.
                    self._connection.exec_driver_sql("BEGIN IMMEDIATE")
                return action(self._connection)
        except BaseException:
            # After a fault, the connection may be dead or inside a broken transaction. A retry uses
            # a new one.
            self.disconnect()
            raise

    def _check_file(self) -> None:
        """Raise an error if the SQLite file was removed or replaced since it was opened."""
        # SQLite continues to write to a deleted file, and all of it would be lost.
        if self._place.file is None:
            return
        try:
            inode = self._place.file.stat().st_ino
        except FileNotFoundError:
            inode = None
        self._inode = self._inode or inode
        if inode is None or inode != self._inode:
            raise JournalError(
                f"journal {self._place.shown}: the file was removed or replaced while it was in "
                "use; put it back, or start again (finished verdicts are kept)"
            )

    def hurry(self) -> None:
        """Stop retrying soon, also in the transaction that is being retried now."""
        self._retry_seconds = min(self._retry_seconds, EDGE_PATIENCE)

    def close(self) -> None:
        """Free the claims of this opening, mark it as ended, and disconnect."""
        self.hurry()
        # Claims that cannot be freed now expire with the lease, and the next opening counts the
        # last calls.
        with suppress(JournalError):
            self._end()
        self.disconnect()

    @transaction
    def _end(self, connection: Connection) -> None:
        if self.shared:
            connection.execute(delete(claims).where(claims.c.opening == self.opening))
        self.count(connection, openings.c.number == self.opening, ended=True)

    def disconnect(self) -> None:
        """Close the connection; the next transaction opens another."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.close()

    @transaction
    def _open(self, connection: Connection) -> int:
        create(connection, self._place)
        self.lock_run(connection)
        # Only one process at a time opens a journal for a part of a run, so the processes of
        # earlier openings have ended.
        earlier = self.of_run & (openings.c.part == self._part)
        numbers = select(openings.c.number).where(earlier)
        connection.execute(delete(claims).where(claims.c.opening.in_(numbers)))
        ended = earlier | (self.of_run & self.lapsed(connection))
        self.count(connection, ended & (openings.c.alive_until != 0), ended=True)
        until = now(connection.dialect) + int(self.lease)
        added = connection.execute(
            insert(openings).values(run=self.run, part=self._part, alive_until=until)
        )
        assert added.inserted_primary_key is not None
        number = int(added.inserted_primary_key[0])
        before = (number << COUNTER_BITS) - 1
        connection.execute(
            update(openings).where(openings.c.number == number).values(counted_to=before)
        )
        return number

    def lock_run(self, connection: Connection) -> None:
        """Keep other processes of this run from opening, ending or granting until the end."""
        mine = runs.c.run == self.run
        # Usually the row exists, and an INSERT would take a lock even then.
        if connection.execute(select(runs.c.run).where(mine)).first() is None:
            connection.execute(
                insert_for(self.dialect)(runs).on_conflict_do_nothing(), {"run": self.run}
            )
        connection.execute(select(runs.c.run).where(mine).with_for_update())

    def lapsed(self, connection: Connection) -> ColumnElement[bool]:
        """Return the condition that an opening's lease has expired."""
        clock = now(connection.dialect)
        # A time too far in the future was written before the clock was set back.
        return ~openings.c.alive_until.between(clock, clock + int(self.lease))

    def count(
        self, connection: Connection, which: ColumnElement[bool], *, ended: bool = False
    ) -> None:
        """Update the sums of openings to their last calls; ended openings lose their grants."""
        over = {"alive_until": 0, **dict.fromkeys(GRANTED, 0)} if ended else {}
        for row in connection.execute(counted(which)).all():
            sums = {name: getattr(row, name) for name in (*COUNTED, "counted_to")}
            connection.execute(
                update(openings).where(openings.c.number == row.number).values(sums | over)
            )

    def spent(self) -> Spent:
        """Return the usage of this run's calls over all its openings."""
        sums = counted(self.of_run).subquery()
        totals = select(*(func.coalesce(func.sum(sums.c[name]), 0).label(name) for name in COUNTED))
        row = self.transact(lambda connection: connection.execute(totals).one(), one_statement=True)
        usage = replace(usage_from(row[:-1]), uncounted=int(row.uncounted))
        return Spent(usage, float(row.cost_usd), int(row.unpriced))

    @transaction
    def note_keys(self, connection: Connection, note: Callable[[bytes], None], most: int) -> bool:
        """Call a function with every key of the journal, unless there are more than ``most``.

        Return whether it did.
        """
        keys = select(calls.c.key)
        # Count only a few of them, because counting millions would take seconds.
        some = keys.limit(most + 1).subquery()
        if (connection.scalar(select(func.count()).select_from(some)) or 0) > most:
            return False
        for key in connection.scalars(keys, execution_options={"yield_per": 1000}):
            note(key)
        return True

    def write(self, rows: Sequence[Row]) -> None:
        """Add calls and free their claims; an existing call is unchanged."""
        for first in range(0, len(rows), KEPT_AT_ONCE):
            # A single INSERT commits by itself, which saves the statements BEGIN and COMMIT.
            add = partial(self._add, rows[first : first + KEPT_AT_ONCE])
            self.transact(add, one_statement=not self.shared)
        self._not_counted += len(rows)
        if self._not_counted >= _COUNTED_EVERY:
            self._not_counted = 0
            self.transact(
                lambda connection: self.count(connection, openings.c.number == self.opening)
            )

    def _add(self, rows: Sequence[Row], connection: Connection) -> None:
        connection.exec_driver_sql(addition(self.dialect, len(rows)), tuple(chain(*rows)))
        if self.shared:
            connection.execute(self._freed, {"keys": [key for _, key, *_ in rows]})

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the newest reply of each key that has one."""
        rows = self.transact(
            lambda c: c.execute(self._served, {"keys": keys}).all(), one_statement=True
        )
        # Rows come in the order in which they were written, so the newest reply wins.
        return {row.key: row.reply for row in rows}

    def reserve(self, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the stored replies, and the other keys that this opening has claimed."""
        replies = self.look_up(keys)
        # All processes claim in the same order, so that two with the same keys do not deadlock.
        wanted = sorted(set(keys) - replies.keys())
        if not wanted:
            return replies, set()
        ours = self._claim(wanted)
        # Between the first lookup and the claim, another process may have stored a reply and freed
        # its claim. Look it up after the commit: a process that is stopped while it receives long
        # replies must not have locks.
        late = self.look_up(list(ours)) if ours else {}
        if late:
            self.free(late)
        return replies | late, ours - late.keys()

    @transaction
    def _claim(self, connection: Connection, keys: Sequence[bytes]) -> set[bytes]:
        claimed = tuple(chain.from_iterable((key, self.opening) for key in keys))
        connection.exec_driver_sql(claiming(self.dialect, len(keys)), claimed)
        return set(connection.scalars(self._claimed, {"keys": keys}))

    @transaction
    def free(self, connection: Connection, keys: Iterable[bytes]) -> None:
        """Free claims of this opening."""
        connection.execute(self._freed, {"keys": list(keys)})

    @transaction
    def free_lapsed(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """Free claims whose process has let its lease expire."""
        alive = select(openings.c.number).where(~self.lapsed(connection))
        connection.execute(
            delete(claims).where(claims.c.key.in_(keys), claims.c.opening.not_in(alive))
        )

    @transaction
    def renew(self, connection: Connection) -> Notice:
        """Extend the claims of this opening by another lease, and update its sums.

        Returns:
            The notices of other processes of the run for this one.
        """
        began = time.monotonic()
        mine = openings.c.number == self.opening
        self.count(connection, mine)
        clock = now(connection.dialect)
        until = update(openings).where(mine).values(alive_until=clock + int(self.lease))
        # After a freeze, others may have received this process's grant.
        if not connection.execute(until.where(openings.c.alive_until != 0)).rowcount:
            self.granted_until = 0.0
            connection.execute(until)
        elif self.granted_until:
            self.granted_until = began + self.lease
        is_stopped = runs.c.stopped_to >= self.opening
        stopped = (
            case((is_stopped, column)) for column in (runs.c.stop_reason, runs.c.explanation)
        )
        noted = select(runs.c.waiting_until > clock, *stopped).where(runs.c.run == self.run)
        return Notice(*connection.execute(noted).one())

    @transaction
    def note_stop(self, connection: Connection, reason: str, explanation: str) -> None:
        """Ask all processes that have the run open now to stop, but not later ones."""
        newest = select(func.max(openings.c.number)).where(self.of_run).scalar_subquery()
        noted = {"stopped_to": newest, "stop_reason": reason, "explanation": explanation}
        connection.execute(update(runs).where(runs.c.run == self.run).values(noted))

    @transaction
    def invalidate(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """Mark the replies of these keys so that they are not served again."""
        connection.execute(update(calls).where(calls.c.key.in_(keys)).values(invalidated=True))

    @transaction
    def note_batch(self, connection: Connection, name: str, about: str) -> None:
        """Store a batch that was sent, or replace its stored data."""
        connection.execute(delete(batches).where(batches.c.id == name))
        of = {"run": self.run, "part": self._part, "created": now(connection.dialect)}
        connection.execute(insert(batches).values(id=name, about=about, **of))

    @transaction
    def batches(self, connection: Connection) -> list[Batch]:
        """Return the batches of this part of the run (of all parts for the whole), oldest first."""
        mine = batches.c.run == self.run
        if self._part:
            # Version 1 did not store the part.
            mine &= batches.c.part.in_((self._part, ""))
        rows = connection.execute(
            select(batches).where(mine).order_by(batches.c.created, batches.c.id)
        )
        return [Batch(row.id, row.settled, json.loads(row.about)) for row in rows]

    @transaction
    def settle_batch(self, connection: Connection, name: str) -> None:
        """Mark a batch as settled."""
        connection.execute(update(batches).where(batches.c.id == name).values(settled=True))


# Faults

_WAIT_AT_MOST = 5.0
# The minimum number of attempts regardless of time, because a stopped process loses time without
# retrying.
_ATTEMPTS_AT_LEAST = 3
_PASSING_SQLITE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
}
"""The codes of temporary faults of SQLite."""

_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another program holds it: close that program",
    sqlite3.SQLITE_LOCKED: "another program holds it: close that program",
    sqlite3.SQLITE_FULL: "make room on the disk",
    sqlite3.SQLITE_IOERR: "check the disk",
    sqlite3.SQLITE_READONLY: "make the file and its folder writable, or choose another place",
    sqlite3.SQLITE_CANTOPEN: "make sure that its folder exists and is writable, or choose another place",
    sqlite3.SQLITE_CORRUPT: "the file is damaged: move it away, or recover it with sqlite3 FILE .recover",
    sqlite3.SQLITE_NOTADB: "the file is not an SQLite database: choose another place, or move it away",
}
"""The remedy for a fault of SQLite, by its code."""

_PASSING_POSTGRES = (
    "08",  # connection lost
    "25P03",  # session ended for idling in a transaction
    "40",  # transaction lost to another, such as a deadlock
    "53",  # resources
    "55P03",  # lock not available
    "57",  # shutdown by an operator
    "58",  # input and output
)
"""The beginnings of the SQLSTATE of temporary faults."""


def persevere(
    action: Callable[[], T],
    place: JournalLocation,
    retry_seconds: Callable[[], float],
    waits: Waits,
) -> T:
    """Run an action, and retry it after temporary faults.

    ``retry_seconds`` is called again after each attempt.

    Raises:
        JournalError: the fault is permanent; the message names the database, the problem and a
            remedy.
    """
    began = time.monotonic()
    attempts = 0
    # A wait is shown until the end of the next attempt, which may itself wait for a lock.
    with ExitStack() as notes:
        while True:
            try:
                return action()
            except DBAPIError as error:
                notes.close()
                attempts += 1
                # The database's message, without the statement and its values.
                problem = " ".join(str(error.orig).split())
                if remedy := _REMEDIES.get(_sqlite_code(error) or 0):
                    problem = f"{problem}; {remedy}"
                if not passes(error):
                    raise JournalError(f"journal {place.shown}: {problem}") from error
                most = retry_seconds()
                taken = time.monotonic() - began
                if attempts >= _ATTEMPTS_AT_LEAST and taken >= most:
                    raise JournalError(
                        f"journal {place.shown}: {problem} (for {most:g} s)"
                    ) from error
            # Random, so that several processes with the same fault do not all retry at once.
            pause = random.uniform(0, min(_WAIT_AT_MOST, 0.05 * 2 ** min(attempts - 1, 10)))
            again = f"trying again in {pause:.1f} s, for {most:g} s at most"
            logger.warning("journal %s: %s; %s", place.shown, problem, again)
            notes.enter_context(waits.noted(f"journal {place.shown}", problem, most - taken))
            time.sleep(pause)


def passes(error: DBAPIError) -> bool:
    """Return whether a retry may help: after locks, a full disk, or a lost server."""
    code = _sqlite_code(error)
    if code is not None:
        return code in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    # SQLAlchemy also wraps subclasses of the driver's errors in these, such as psycopg's
    # ConnectionTimeout.
    is_operational = isinstance(error, OperationalError | InterfaceError)
    # An unreachable server gives no SQLSTATE.
    lost = error.connection_invalidated or (state is None and is_operational)
    return lost or str(state).startswith(_PASSING_POSTGRES)


def _sqlite_code(error: DBAPIError) -> int | None:
    """Return the primary code of an SQLite fault; its higher bits only give details."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # SQLITE_BUSY_SNAPSHOT (517) becomes SQLITE_BUSY (5), SQLITE_IOERR_FSYNC (1034) becomes
    # SQLITE_IOERR (10).
    return None if code is None else code & 0xFF
