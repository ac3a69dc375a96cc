"""Run the transactions of a journal, and retry them where a fault may pass."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Executable,
    Select,
    case,
    delete,
    func,
    insert,
    select,
    update,
)

from ...nodes.models.retry import Waits
from ...state.errors import UsageError
from ..storage.private_files import make_private_file, make_private_folder
from .database import (
    COUNTED,
    COUNTER_BITS,
    GRANTED,
    KEPT_AT_ONCE,
    JournalLocation,
    Statements,
    batches,
    calls,
    claims,
    counted,
    create,
    insert_for,
    now,
    openings,
    runs,
    spent_by,
)
from .database_faults import persevere
from .records import Batch, JournalError, Notice, Spent

T = TypeVar("T")

# Seconds of retrying at the start, where somebody is watching, and at the end, where nothing is left to lose.
_EDGE_PATIENCE = 10.0
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
        self,
        place: JournalLocation,
        run: str,
        *,
        part: str = "",
        shared: bool,
        fresh: bool,
        patience: Patience,
    ) -> None:
        self._place = place
        self._waits = patience.waits
        self.run, self._part = run, part
        self.of_run = openings.c.run == run
        self._not_counted = 0
        # By the monotonic clock: when others may take what was granted to this opening; 0 where nothing is.
        self.granted_until = 0.0
        self._shared = shared
        # The first transaction asks for this already; the lasting value is set once the journal is open.
        self._retry_seconds = min(patience.retry_seconds, _EDGE_PATIENCE)
        self.lease = patience.lease
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
            raise UsageError(f"{self._place.shown}: cannot create its folder: {error.strerror}") from error

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

    def _execute(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> None:
        def action(connection: Connection) -> None:
            connection.execute(statement, parameters)

        self.transact(action)

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
        if self._inode is None:
            self._inode = inode
        if inode is None or inode != self._inode:
            problem = "the file was removed or replaced while it was in use"
            remedy = "put it back, or start again (finished verdicts are kept)"
            raise JournalError(f"journal {self._place.shown}: {problem}; {remedy}")

    @property
    def dialect(self) -> Dialect:
        """The dialect of the database."""
        return self._engine.dialect

    def hurry(self) -> None:
        """Stop retrying soon, also in the transaction that is being retried now."""
        self._retry_seconds = min(self._retry_seconds, _EDGE_PATIENCE)

    def close(self) -> None:
        """Free the claims of this opening, note that it has ended, and disconnect."""
        self.hurry()
        # Claims that cannot be freed now lapse with the lease, and whoever opens the run next counts the last calls.
        with suppress(JournalError):
            self.transact(self._end)
        self.disconnect()

    def _end(self, connection: Connection) -> None:
        if self._shared:
            connection.execute(delete(claims).where(claims.c.opening == self.opening))
        self.count(connection, openings.c.number == self.opening, ended=True)

    def disconnect(self) -> None:
        """Close the connection; the next transaction opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

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

    def _first_of_run(self, connection: Connection) -> int:
        number = connection.scalar(select(func.min(openings.c.number)).where(self.of_run))
        assert isinstance(number, int)
        return number

    def spent(self) -> Spent:
        """Add up what this run's calls took, over all its openings."""
        statement = counted(self.of_run)
        rows = self.transact(lambda connection: connection.execute(statement).all(), one_statement=True)
        return spent_by(rows)

    def note_keys(self, note: Callable[[bytes], None], most: int) -> bool:
        """Call a function with every key of the journal, unless there are more than so many; return whether it did."""

        def action(connection: Connection) -> bool:
            keys = select(calls.c.key)
            # The count of a few of them, since that of millions would take seconds.
            some = keys.limit(most + 1).subquery()
            if (connection.scalar(select(func.count()).select_from(some)) or 0) > most:
                return False
            for key in connection.scalars(keys, execution_options={"yield_per": 1000}):
                note(key)
            return True

        return self.transact(action)

    def write(self, rows: Sequence[Row]) -> None:
        """Add calls and free their claims; a call that was written before is left as it is."""
        for first in range(0, len(rows), KEPT_AT_ONCE):
            self._write(rows[first : first + KEPT_AT_ONCE])
        self._not_counted += len(rows)
        if self._not_counted >= _COUNTED_EVERY:
            self._not_counted = 0
            self.transact(lambda connection: self.count(connection, openings.c.number == self.opening))

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
        replies = self.look_up(keys)
        # Everybody claims in the same order, so that two who want the same do not lock each other out.
        wanted = sorted(set(keys) - replies.keys())
        if not wanted:
            return replies, set()

        def claim(connection: Connection) -> set[bytes]:
            rows = [{"key": key, "opening": self.opening} for key in wanted]
            connection.execute(self._statements.claim, rows)
            return set(connection.scalars(self._statements.claimed, {"keys": wanted}))

        ours = self.transact(claim)
        # Between the first look and the claim, another process may have kept a reply and freed its claim. Looked up
        # after the commit: a process that is stopped while it is sent long replies must hold no locks.
        late = self.look_up(list(ours)) if ours else {}
        self.free(late)
        return replies | late, ours - late.keys()

    def free(self, keys: Iterable[bytes]) -> None:
        """Free claims of this opening."""
        if given := list(keys):
            self._execute(self._statements.free, {"keys": given})

    def free_lapsed(self, keys: Sequence[bytes]) -> None:
        """Free claims whose process has let its lease lapse."""

        def action(connection: Connection) -> None:
            alive = select(openings.c.number).where(~self.lapsed(connection))
            connection.execute(delete(claims).where(claims.c.key.in_(keys), claims.c.opening.not_in(alive)))

        self.transact(action)

    def renew(self) -> Notice:
        """Extend the claims of this opening by another lease, and bring its sums up to date.

        Returns:
            What other processes of the run have noted for this one.
        """
        began, mine = time.monotonic(), openings.c.number == self.opening

        def action(connection: Connection) -> Notice:
            self.count(connection, mine)
            until = update(openings).where(mine).values(alive_until=now(connection.dialect) + int(self.lease))
            # After a freeze, others may have been granted what was granted to this process.
            if not connection.execute(until.where(openings.c.alive_until != 0)).rowcount:
                self.granted_until = 0.0
                connection.execute(until)
            elif self.granted_until:
                self.granted_until = began + self.lease
            return Notice(*connection.execute(self._noted(connection)).one())

        return self.transact(action)

    def _noted(self, connection: Connection) -> Select[Any]:
        is_stopped = runs.c.stopped_to >= self.opening
        return select(
            runs.c.waiting_until > now(connection.dialect),
            case((is_stopped, runs.c.stop_reason)),
            case((is_stopped, runs.c.explanation)),
        ).where(runs.c.run == self.run)

    def note_stop(self, reason: str, explanation: str) -> None:
        """Note that all processes which have the run open now are to stop; one that opens it later is not."""
        newest = select(func.max(openings.c.number)).where(self.of_run).scalar_subquery()
        noted = {"stopped_to": newest, "stop_reason": reason, "explanation": explanation}
        self._execute(update(runs).where(runs.c.run == self.run).values(noted))

    def invalidate(self, keys: Sequence[bytes]) -> None:
        """Mark the replies of these keys so that they are not served again."""
        self._execute(update(calls).where(calls.c.key.in_(keys)).values(invalidated=True))

    def note_batch(self, name: str, about: str) -> None:
        """Store a batch that was sent, or replace what is stored about it."""

        def action(connection: Connection) -> None:
            connection.execute(delete(batches).where(batches.c.id == name))
            of = {"run": self.run, "part": self._part, "created": now(connection.dialect)}
            connection.execute(insert(batches).values(id=name, about=about, **of))

        self.transact(action)

    def batches(self) -> list[Batch]:
        """Return the batches of this part of the run, oldest first; those of all parts where this is the whole."""
        mine = batches.c.run == self.run
        if self._part:
            # Version 1 did not note the part.
            mine &= batches.c.part.in_((self._part, ""))
        statement = select(batches).where(mine).order_by(batches.c.created, batches.c.id)
        rows = self.transact(lambda connection: connection.execute(statement).all())
        return [Batch(row.id, row.run, row.settled, row.created, json.loads(row.about)) for row in rows]

    def settle_batch(self, name: str) -> None:
        """Mark a batch as settled."""
        self._execute(update(batches).where(batches.c.id == name).values(settled=True))
