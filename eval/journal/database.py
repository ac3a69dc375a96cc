"""Define where a journal is, and its tables and statements, the same for SQLite and Postgres.

A call is a row that is added and never replaced, so that its cost stays counted whatever becomes of its reply. Its
number is the number of the opening that wrote it, then a counter, so that rows of one opening lie together.
"""

from __future__ import annotations

import importlib.util
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    BindParameter,
    Boolean,
    Column,
    Connection,
    Dialect,
    Engine,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    case,
    cast,
    create_engine,
    delete,
    event,
    false,
    func,
    inspect,
    literal_column,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.elements import ColumnElement

from ...state.errors import UsageError
from ...state.usage import USAGE_FIELDS, Usage
from .records import USAGE_NAMES

POSSIBLE = "a file such as runs/journal.sqlite, sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE"
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")

# A server that vanishes without closing its connections is noticed within half a minute; the URL may set other values.
_NOTICE_LOSS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# Seconds that the database itself waits for a lock; the store then warns and tries again.
_LOCK_PATIENCE = 2
# Seconds after which Postgres ends a session that has begun a transaction and says no more: a process that was stopped
# there, or a machine that vanished, would else hold its locks for ever. Whoever is only slow connects anew.
IDLE_PATIENCE = 5
_PAGE_BYTES = 8192


@dataclass(frozen=True)
class JournalLocation:
    """Says where a journal is: in a file or in a database.

    Attributes:
        url: the URL of the database, for SQLAlchemy.
        shown: the place for messages, without a password.
        file: the SQLite file; ``None`` for Postgres.
        named_by_url: whether it was given as a URL.
    """

    url: URL
    shown: str
    file: Path | None
    named_by_url: bool

    def engine(self) -> Engine:
        """Return an engine for the database; nothing is connected yet."""
        return _sqlite_engine(self.url) if self.file else _postgres_engine(self.url)


def journal_location(where: str | Path) -> JournalLocation:
    """Read the place of a journal from a path or a URL.

    Raises:
        UsageError: a URL of another kind of database, or Postgres without its driver.

    >>> journal_location("postgres://me:secret@db.example/journal").shown
    'postgresql://me@db.example/journal'
    """
    if "://" not in str(where):
        file = Path(where)
        return JournalLocation(URL.create("sqlite", database=str(file)), str(file), file, named_by_url=False)
    try:
        url = make_url(str(where))
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"that URL of a journal cannot be read; possible are {POSSIBLE}") from error
    if url.drivername == "sqlite" and url.database:
        return JournalLocation(url, url.database, Path(url.database), named_by_url=True)
    if url.drivername in _POSTGRES:
        return _postgres(url)
    raise UsageError(f"a journal cannot be kept in {url.drivername}://...; possible are {POSSIBLE}")


def _postgres(url: URL) -> JournalLocation:
    if importlib.util.find_spec("psycopg") is None:
        raise UsageError("a journal in Postgres needs psycopg: pip install 'jurygraph[postgres]'")
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    return JournalLocation(url.set(drivername="postgresql+psycopg"), str(shown), None, named_by_url=True)


def _postgres_engine(url: URL) -> Engine:
    unsaid = {name: value for name, value in _NOTICE_LOSS.items() if name not in url.query}
    # No pool, since the store holds its one connection and a faulty one must really be closed. No parameters in
    # messages, since they are whole replies.
    engine = create_engine(
        url.update_query_dict(unsaid),
        poolclass=NullPool,
        hide_parameters=True,
        # Each statement sees what others have committed, such as a reply that came between a look and a claim.
        isolation_level="READ COMMITTED",
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.execute(f"SET lock_timeout = '{_LOCK_PATIENCE}s'")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_PATIENCE}s'")
        # The driver began a transaction for the SET, and to roll it back would undo the setting.
        connection.commit()

    return engine


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": _LOCK_PATIENCE}
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own transactions would begin too late: the store begins them.
        connection.isolation_level = None
        # Before WAL mode, in which the page size of a file can no longer be set.
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL would let a power failure take back commits, and replies are used once they are committed.
        connection.execute("PRAGMA synchronous = FULL")

    return engine


VERSION = 1
COUNTER_BITS = 32
# "jury" in ASCII: the number of an advisory lock, which all users of a Postgres server share.
_CREATION_LOCK = 0x6A757279
metadata = MetaData()
about = Table("jurygraph_journal", metadata, Column("version", Integer, nullable=False))
openings = Table(
    "jurygraph_openings",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    Column("alive_until", BigInteger, nullable=False),
)
calls = Table(
    "jurygraph_calls",
    metadata,
    # SQLite makes a primary key its row id only if the type is exactly INTEGER, which holds 64 bits there.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("key", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("model", String, nullable=False),
    Column("requests", Integer, nullable=False),
    Column("input_tokens", Integer, nullable=False),
    Column("cached_input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("reasoning_tokens", Integer, nullable=False),
    Column("cost_usd", Float),
    Column("seconds", Float, nullable=False),
    # The column has kept its first name, so that journals of earlier versions can be read.
    Column("disowned", Boolean, key="invalidated", nullable=False, server_default=false()),
    Column("reply", LargeBinary),
)
# Not unique: a key whose reply was invalidated or pruned is called again and gets another row.
Index("jurygraph_calls_key", calls.c.key)
claims = Table(
    "jurygraph_claims",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("opening", Integer, nullable=False),
    # A row is little more than its key, so that one tree is enough; with row ids there would be an index besides.
    sqlite_with_rowid=False,
)
batches = Table(
    "jurygraph_batches",
    metadata,
    Column("id", String, primary_key=True),
    Column("run", String, nullable=False),
    Column("settled", Boolean, nullable=False, server_default=false()),
    Column("created", BigInteger, nullable=False),
    Column("about", Text, nullable=False),
)


def now(dialect: Dialect) -> ColumnElement[int]:
    """Return an expression for the seconds since 1970 by the database's clock, which all its users share."""
    if dialect.name == "sqlite":
        return literal_column("CAST(strftime('%s', 'now') AS INTEGER)", BigInteger)
    # now() would be the start of the transaction, however long it has waited for a lock.
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)", BigInteger)


def create(connection: Connection, place: JournalLocation) -> None:
    """Create the tables where there are none yet; several processes may do it at once.

    Raises:
        UsageError: the tables are of another version, or an SQLite file holds something else.
    """
    if connection.dialect.name == "postgresql":
        # Else two processes that find no tables would both create them; the commit frees the lock.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
    if not is_there(connection, place):
        metadata.create_all(connection)
        connection.execute(about.insert().values(version=VERSION))


def is_there(connection: Connection, place: JournalLocation) -> bool:
    """Return whether there is a journal that can be read.

    Raises:
        UsageError: it is of another version, or an SQLite file holds something else.
    """
    names = inspect(connection).get_table_names()
    if about.name not in names:
        if place.file and names:
            raise UsageError(f"{place.shown}: a database, but no journal (it holds {', '.join(names[:5])})")
        return False
    version = connection.execute(select(about.c.version)).scalar()
    if version != VERSION:
        raise UsageError(
            f"{place.shown}: made by version {version} of the journal format; this jurygraph reads {VERSION}."
            " Use the jurygraph that made it, or choose another place for the journal"
        )
    return True


# Calls in one INSERT: 64 rows have 704 parameters, and SQLite before 3.32 takes 999 at most.
KEPT_AT_ONCE = 64

ROW = ("number", "key", "model", "reply", *USAGE_NAMES)
"""The columns that are given for a call; the database adds the others."""
_FIRST = cast(openings.c.number, BigInteger) * (1 << COUNTER_BITS)

WRITTEN_BY = calls.c.number.between(_FIRST, _FIRST + ((1 << COUNTER_BITS) - 1))
"""The condition that an opening wrote a call; over the primary key, so that no calls of other runs are read."""

_UNPRICED = func.count(calls.c.number) - func.count(calls.c.cost_usd)
"""The number of calls without a price, since the count of a column passes over NULL."""

SUMS: tuple[ColumnElement[Any], ...] = (
    _UNPRICED,
    *(func.coalesce(func.sum(calls.c[name]), 0) for name in USAGE_NAMES),
)
"""The columns that :func:`usage_from` reads."""


def usage_from(row: Sequence[Any]) -> Usage:
    """Read a usage from the columns of :data:`SUMS`."""
    unpriced, *sums = row
    totals = dict(zip(USAGE_FIELDS, sums, strict=True))
    cost, seconds = float(totals.pop("cost_usd")), float(totals.pop("seconds"))
    # SQL leaves unknown costs out of a sum, where one of them is to make the whole unknown.
    counts = {name: int(count) for name, count in totals.items()}
    return Usage(**counts, cost_usd=None if unpriced else cost, seconds=seconds)


SPENT: tuple[ColumnElement[Any], ...] = (
    func.coalesce(func.sum(calls.c.cost_usd), 0.0),
    _UNPRICED,
    # Every call sends some tokens: none means that the provider did not say how many.
    func.count(case((calls.c.input_tokens <= 0, 1))),
)
"""The columns that a ``Spent`` has beside its usage, in their order."""


class Statements:
    """Builds the SQL statements of one opening, once for all its transactions.

    Args:
        dialect: the dialect of the database.
        opening: the number of the opening.
        since: the opening from which on replies are served.
    """

    def __init__(self, dialect: Dialect, opening: int, *, since: int = 0) -> None:
        adding = _insert_for(dialect)
        keys: BindParameter[Any] = bindparam("keys", expanding=True)
        first = since << COUNTER_BITS
        # The newest reply wins in `look_up`, since rows come in the order in which they were written.
        self.served = calls.c.invalidated.is_(False) & calls.c.reply.is_not(None) & (calls.c.number >= first)
        self.look_up = (
            select(calls.c.key, calls.c.reply)
            .where(calls.c.key.in_(keys), self.served)
            .order_by(calls.c.number)
        )
        self._placeholder = "?" if dialect.paramstyle == "qmark" else "%s"
        self._now = str(now(dialect))
        self._keeps: dict[int, str] = {}
        self.claim = adding(claims).on_conflict_do_nothing()
        self.claimed = select(claims.c.key).where(claims.c.key.in_(keys), claims.c.opening == opening)
        self.free = delete(claims).where(claims.c.key.in_(keys), claims.c.opening == opening)

    def keep(self, rows: int) -> str:
        """Return the statement that adds so many calls in one step."""
        # One step for all, since each step of SQLite competes with the event loop's thread for the interpreter.
        if rows not in self._keeps:
            row = f"({', '.join([self._placeholder] * len(ROW))}, {self._now})"
            start = f"INSERT INTO {calls.name} ({', '.join(ROW)}, created) VALUES "
            # A retry finds its own rows if the connection was lost after the commit and before its confirmation.
            self._keeps[rows] = start + ", ".join([row] * rows) + " ON CONFLICT DO NOTHING"
        return self._keeps[rows]


def _insert_for(dialect: Dialect) -> Callable[[Table], Any]:
    """Return the database's own INSERT, which can skip rows that are there; each dialect takes megabytes to load."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as into_postgres

        return into_postgres
    from sqlalchemy.dialects.sqlite import insert as into_sqlite

    return into_sqlite
