"""Run the transactions of a journal, and retry them where a fault may pass."""

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

from sqlalchemy import ColumnElement, Connection, bindparam, case, delete, func, insert, select, update
from sqlalchemy.exc import DBAPIError

from ...nodes.models.retry import Waits
from ...state.errors import UsageError
from .database import (
    COUNTED,
    COUNTER_BITS,
    DATABASES,
    GRANTED,
    KEPT_AT_ONCE,
    JournalLocation,
    addition,
    batches,
    calls,
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
# Seconds of retrying at the start and from the command line, where somebody is watching, and at the end, where nothing
# is left to lose.
EDGE_PATIENCE = 10.0
# Calls after which the sums of an opening are brought up to date, so that whoever opens the run next adds up no more.
_COUNTED_EVERY = 5_000
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


def transaction(action: Callable[Concatenate[Store, Connection, P], T]) -> Callable[Concatenate[Store, P], T]:
    """Have a method of the store run in one transaction, which is retried while a fault may pass."""

    @wraps(action)
    def run(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.transact(lambda connection: action(store, connection, *args, **kwargs))

    return run


class Store:
    """Reads and writes the tables of a journal, for one opening of it and from one thread.

    Args:
        place: where the journal is.
        run: the run that opens it.
        part: the part of the run that this process judges.
        shared: whether other processes may have it open; calls are claimed then.
        fresh: whether replies from before the run's first opening are ignored.
        patience: how long it waits.
    """

    def __init__(
        self, place: JournalLocation, run: str, *, part: str, shared: bool, fresh: bool, patience: Patience
    ) -> None:
        self._place = place
        self._waits = patience.waits
        self.run, self._part, self.shared = run, part, shared
        self.of_run = openings.c.run == run
        self._not_counted = 0
        # By the monotonic clock: when others may take what was granted to this opening; 0 where nothing is.
        self.granted_until = 0.0
        # The first transaction asks for this already; the lasting value is set once the journal is open.
        self._retry_seconds = min(patience.retry_seconds, EDGE_PATIENCE)
        self.lease = patience.lease
        self._engine = place.engine()
        self.dialect = self._engine.dialect
        self._connection: Connection | None = None
        self._inode: int | None = None
        try:
            if place.file:
                make_private_folder(place.file.parent)
                # SQLite would give a new file the usual permissions; what it cannot open it tells itself.
                with suppress(OSError):
                    place.file.touch(PRIVATE)
            self.opening = self._open()
        except JournalError as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            raise UsageError(f"{place.shown}: cannot create its folder: {error.strerror}") from error
        self._retry_seconds = patience.retry_seconds
        first = select(func.min(openings.c.number)).where(self.of_run)
        since = self.transact(lambda connection: connection.scalar(first)) if fresh else 0
        # Built once, since every round of requests needs them.
        self._served = served(since or 0)
        self._claiming = insert_for(self.dialect)(claims).on_conflict_do_nothing()
        mine = claims.c.key.in_(bindparam("keys", expanding=True)) & (claims.c.opening == self.opening)
        self._claimed, self._freed = select(claims.c.key).where(mine), delete(claims).where(mine)

    def transact(self, action: Callable[[Connection], T], *, one_statement: bool = False) -> T:
        """Run an action in one transaction, and retry it while a fault may pass.

        Args:
            action: what to do.
            one_statement: whether it is a single statement, which is a transaction in itself.

        Raises:
            JournalError: a fault that lasts.
        """
        begin = self._place.file is not None and not one_statement
        once = partial(self._once, action, begin)
        return persevere(once, self._place, lambda: self._retry_seconds, self._waits)

    def _once(self, action: Callable[[Connection], T], begin: bool) -> T:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            # Only after connecting, which creates a file that is not there yet.
            self._check_file()
            with self._connection.begin():
                if begin:
                    # Not deferred: a file that others change between our reading and writing makes us begin anew.
                    self._connection.exec_driver_sql("BEGIN IMMEDIATE")
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
            inode = self._place.file.stat().st_ino
        except FileNotFoundError:
            inode = None
        self._inode = self._inode or inode
        if inode is None or inode != self._inode:
            problem = "the file was removed or replaced while it was in use"
            remedy = "put it back, or start again (finished verdicts are kept)"
            raise JournalError(f"journal {self._place.shown}: {problem}; {remedy}")

    def hurry(self) -> None:
        """Stop retrying soon, also in the transaction that is being retried now."""
        self._retry_seconds = min(self._retry_seconds, EDGE_PATIENCE)

    def close(self) -> None:
        """Free the claims of this opening, note that it has ended, and disconnect."""
        self.hurry()
        # Claims that cannot be freed now lapse with the lease, and whoever opens the run next counts the last calls.
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
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @transaction
    def _open(self, connection: Connection) -> int:
        create(connection, self._place)
        self.lock_run(connection)
        # One process at a time opens a journal for a part of a run: earlier openings are of processes that have ended.
        earlier = self.of_run & (openings.c.part == self._part)
        numbers = select(openings.c.number).where(earlier)
        connection.execute(delete(claims).where(claims.c.opening.in_(numbers)))
        ended = earlier | (self.of_run & self.lapsed(connection))
        self.count(connection, ended & (openings.c.alive_until != 0), ended=True)
        until = now(connection.dialect) + int(self.lease)
        added = connection.execute(insert(openings).values(run=self.run, part=self._part, alive_until=until))
        assert added.inserted_primary_key is not None
        number = int(added.inserted_primary_key[0])
        before = (number << COUNTER_BITS) - 1
        connection.execute(update(openings).where(openings.c.number == number).values(counted_to=before))
        return number

    def lock_run(self, connection: Connection) -> None:
        """Let no other process of this run open, end or grant anything until the transaction is over."""
        mine = runs.c.run == self.run
        # Most of the time the row is there, and an INSERT that finds it would take a lock of its own.
        if connection.execute(select(runs.c.run).where(mine)).first() is None:
            connection.execute(insert_for(self.dialect)(runs).on_conflict_do_nothing(), {"run": self.run})
        connection.execute(select(runs.c.run).where(mine).with_for_update())

    def lapsed(self, connection: Connection) -> ColumnElement[bool]:
        """Return the condition that an opening's lease is over."""
        clock = now(connection.dialect)
        # A time too far ahead was written before somebody set the clock back.
        return ~openings.c.alive_until.between(clock, clock + int(self.lease))

    def count(self, connection: Connection, which: ColumnElement[bool], *, ended: bool = False) -> None:
        """Bring the sums of openings up to their last calls; of those that have ended, take back what was granted."""
        over = {"alive_until": 0, **dict.fromkeys(GRANTED, 0)} if ended else {}
        for row in connection.execute(counted(which)).all():
            sums = {name: getattr(row, name) for name in (*COUNTED, "counted_to")}
            connection.execute(update(openings).where(openings.c.number == row.number).values(sums | over))

    def spent(self) -> Spent:
        """Add up what this run's calls took, over all its openings."""
        sums = counted(self.of_run).subquery()
        totals = select(*(func.coalesce(func.sum(sums.c[name]), 0).label(name) for name in COUNTED))
        row = self.transact(lambda connection: connection.execute(totals).one(), one_statement=True)
        usage = replace(usage_from(row[:-1]), uncounted=int(row.uncounted))
        return Spent(usage, float(row.cost_usd), int(row.unpriced))

    @transaction
    def note_keys(self, connection: Connection, note: Callable[[bytes], None], most: int) -> bool:
        """Call a function with every key of the journal, unless there are more than so many; return whether it did."""
        keys = select(calls.c.key)
        # The count of a few of them, since that of millions would take seconds.
        some = keys.limit(most + 1).subquery()
        if (connection.scalar(select(func.count()).select_from(some)) or 0) > most:
            return False
        for key in connection.scalars(keys, execution_options={"yield_per": 1000}):
            note(key)
        return True

    def write(self, rows: Sequence[Row]) -> None:
        """Add calls and free their claims; a call that was written before is left as it is."""
        for first in range(0, len(rows), KEPT_AT_ONCE):
            # A lone INSERT commits by itself, which saves the statements BEGIN and COMMIT.
            add = partial(self._add, rows[first : first + KEPT_AT_ONCE])
            self.transact(add, one_statement=not self.shared)
        self._not_counted += len(rows)
        if self._not_counted >= _COUNTED_EVERY:
            self._not_counted = 0
            self.transact(lambda connection: self.count(connection, openings.c.number == self.opening))

    def _add(self, rows: Sequence[Row], connection: Connection) -> None:
        connection.exec_driver_sql(addition(self.dialect, len(rows)), tuple(chain(*rows)))
        if self.shared:
            connection.execute(self._freed, {"keys": [key for _, key, *_ in rows]})

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the newest reply of each key that has one."""
        rows = self.transact(lambda c: c.execute(self._served, {"keys": keys}).all(), one_statement=True)
        # The newest reply wins, since rows come in the order in which they were written.
        return {row.key: row.reply for row in rows}

    def reserve(self, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], set[bytes]]:
        """Return the stored replies, and which of the other keys this opening has claimed and is to call."""
        replies = self.look_up(keys)
        # Everybody claims in the same order, so that two who want the same do not lock each other out.
        wanted = sorted(set(keys) - replies.keys())
        if not wanted:
            return replies, set()
        ours = self._claim(wanted)
        # Between the first look and the claim, another process may have kept a reply and freed its claim. Looked up
        # after the commit: a process that is stopped while it is sent long replies must hold no locks.
        late = self.look_up(list(ours)) if ours else {}
        if late:
            self.free(late)
        return replies | late, ours - late.keys()

    @transaction
    def _claim(self, connection: Connection, keys: Sequence[bytes]) -> set[bytes]:
        connection.execute(self._claiming, [{"key": key, "opening": self.opening} for key in keys])
        return set(connection.scalars(self._claimed, {"keys": keys}))

    @transaction
    def free(self, connection: Connection, keys: Iterable[bytes]) -> None:
        """Free claims of this opening."""
        connection.execute(self._freed, {"keys": list(keys)})

    @transaction
    def free_lapsed(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """Free claims whose process has let its lease lapse."""
        alive = select(openings.c.number).where(~self.lapsed(connection))
        connection.execute(delete(claims).where(claims.c.key.in_(keys), claims.c.opening.not_in(alive)))

    @transaction
    def renew(self, connection: Connection) -> Notice:
        """Extend the claims of this opening by another lease, and bring its sums up to date.

        Returns:
            What other processes of the run have noted for this one.
        """
        began, mine = time.monotonic(), openings.c.number == self.opening
        self.count(connection, mine)
        clock = now(connection.dialect)
        until = update(openings).where(mine).values(alive_until=clock + int(self.lease))
        # After a freeze, others may have been granted what was granted to this process.
        if not connection.execute(until.where(openings.c.alive_until != 0)).rowcount:
            self.granted_until = 0.0
            connection.execute(until)
        elif self.granted_until:
            self.granted_until = began + self.lease
        is_stopped = runs.c.stopped_to >= self.opening
        stopped = (case((is_stopped, column)) for column in (runs.c.stop_reason, runs.c.explanation))
        noted = select(runs.c.waiting_until > clock, *stopped).where(runs.c.run == self.run)
        return Notice(*connection.execute(noted).one())

    @transaction
    def note_stop(self, connection: Connection, reason: str, explanation: str) -> None:
        """Note that all processes which have the run open now are to stop; one that opens it later is not."""
        newest = select(func.max(openings.c.number)).where(self.of_run).scalar_subquery()
        noted = {"stopped_to": newest, "stop_reason": reason, "explanation": explanation}
        connection.execute(update(runs).where(runs.c.run == self.run).values(noted))

    @transaction
    def invalidate(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """Mark the replies of these keys so that they are not served again."""
        connection.execute(update(calls).where(calls.c.key.in_(keys)).values(invalidated=True))

    @transaction
    def note_batch(self, connection: Connection, name: str, about: str) -> None:
        """Store a batch that was sent, or replace what is stored about it."""
        connection.execute(delete(batches).where(batches.c.id == name))
        of = {"run": self.run, "part": self._part, "created": now(connection.dialect)}
        connection.execute(insert(batches).values(id=name, about=about, **of))

    @transaction
    def batches(self, connection: Connection) -> list[Batch]:
        """Return the batches of this part of the run, oldest first; those of all parts where this is the whole."""
        mine = batches.c.run == self.run
        if self._part:
            # Version 1 did not note the part.
            mine &= batches.c.part.in_((self._part, ""))
        rows = connection.execute(select(batches).where(mine).order_by(batches.c.created, batches.c.id))
        return [Batch(row.id, row.settled, json.loads(row.about)) for row in rows]

    @transaction
    def settle_batch(self, connection: Connection, name: str) -> None:
        """Mark a batch as settled."""
        connection.execute(update(batches).where(batches.c.id == name).values(settled=True))


# Faults

_WAIT_AT_MOST = 5.0
# Attempts that are made however long they take: a process that was stopped meanwhile has lost no time of its own.
_ATTEMPTS_AT_LEAST = 3
# SQLite's faults go by the names that its codes have.
_PASSING_SQLITE = {getattr(sqlite3, name) for name in DATABASES["sqlite"]["passing"]}
_REMEDIES = {getattr(sqlite3, name): remedy for name, remedy in DATABASES["sqlite"]["remedies"].items()}
_PASSING_POSTGRES = tuple(DATABASES["postgres"]["passing"])


def persevere(
    action: Callable[[], T], place: JournalLocation, retry_seconds: Callable[[], float], waits: Waits
) -> T:
    """Run an action, and retry it while the fault may pass; ``retry_seconds`` is asked anew after each attempt.

    Raises:
        JournalError: the fault lasts or cannot pass; says which database, what is wrong and what to do.
    """
    began, attempts = time.monotonic(), 0
    # A wait is shown until the next attempt has ended, which may itself wait for a lock.
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
                most, taken = retry_seconds(), time.monotonic() - began
                if attempts >= _ATTEMPTS_AT_LEAST and taken >= most:
                    raise JournalError(f"journal {place.shown}: {problem} (for {most:g} s)") from error
            # At random, so that several processes which met the same fault do not all come back at once.
            pause = random.uniform(0, min(_WAIT_AT_MOST, 0.05 * 2 ** min(attempts - 1, 10)))
            again = f"trying again in {pause:.1f} s, for {most:g} s at most"
            logger.warning("journal %s: %s; %s", place.shown, problem, again)
            notes.enter_context(waits.noted(f"journal {place.shown}", problem, most - taken))
            time.sleep(pause)


def passes(error: DBAPIError) -> bool:
    """Tell whether a retry may help, which is so for faults that pass: locks, a full disk, a lost server."""
    code = _sqlite_code(error)
    if code is not None:
        return code in _PASSING_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    # By name, since psycopg is optional and its classes may not be there to compare with.
    is_operational = type(error.orig).__name__ in ("OperationalError", "InterfaceError")
    # A server that cannot be reached gives no SQLSTATE.
    lost = error.connection_invalidated or (state is None and is_operational)
    return lost or str(state).startswith(_PASSING_POSTGRES)


def _sqlite_code(error: DBAPIError) -> int | None:
    """Return the primary code of an SQLite fault; its higher bits only say where it occurred."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    # SQLITE_BUSY_SNAPSHOT (517) becomes SQLITE_BUSY (5), SQLITE_IOERR_FSYNC (1034) becomes SQLITE_IOERR (10).
    return None if code is None else code & 0xFF
