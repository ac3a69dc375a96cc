"""Define where a journal is, and its tables and statements, the same for SQLite and Postgres.

A call is a row that is added and never replaced, so that its cost stays counted whatever becomes of its reply. Its
number is the number of the opening that wrote it, then a counter, so that rows of one opening lie together.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    URL,
    BigInteger,
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
    Select,
    String,
    Table,
    Text,
    bindparam,
    case,
    cast,
    create_engine,
    event,
    false,
    func,
    inspect,
    literal_column,
    make_url,
    select,
    text,
    update,
)
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateColumn
from sqlalchemy.sql.elements import ColumnElement

from ...state.errors import UsageError
from ...state.transcript import USAGE_FIELDS, Usage
from ...state.word_files import words_beside
from .records import USAGE_NAMES

POSSIBLE = "a file such as runs/journal.sqlite, sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE"
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")

DATABASES: dict[str, Any] = words_beside(__file__, "databases.toml")
"""By kind of database its settings, its faults that may pass, and what to do about faults."""

# Seconds that the database itself waits for a lock; the store then warns and tries again.
_LOCK_PATIENCE = 2
# Seconds after which Postgres ends a session that has begun a transaction and says no more: a process that was stopped
# there, or a machine that vanished, would else hold its locks for ever. Whoever is only slow connects anew.
IDLE_PATIENCE = 5


class JournalLocation(NamedTuple):
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
        known = DATABASES["sqlite" if self.file else "postgres"]
        url = self.url
        if self.file:
            options: dict[str, Any] = {"connect_args": {"timeout": _LOCK_PATIENCE}}
        else:
            url = url.set(query={**known["connection"], **url.query})
            # Each statement sees what others have committed, such as a reply that came between a look and a claim.
            options = {"isolation_level": "READ COMMITTED"}
        # No pool, since the store holds its one connection and a faulty one must really be closed. No parameters in
        # messages, since they are whole replies.
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True, **options)

        @event.listens_for(engine, "connect")
        def _prepare(connection: Any, _record: object) -> None:
            if self.file:
                # The driver's own transactions would begin too late: the store begins them.
                connection.isolation_level = None
            for setting in known["settings"]:
                connection.execute(setting.format(lock=_LOCK_PATIENCE, idle=IDLE_PATIENCE))
            # Postgres' driver began a transaction for the SET, and to roll it back would undo the setting.
            connection.commit()

        return engine


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
        raise UsageError(f"that journal URL cannot be read; possible are {POSSIBLE}") from error
    if url.drivername == "sqlite" and url.database:
        return JournalLocation(url, url.database, Path(url.database), named_by_url=True)
    if url.drivername in _POSTGRES:
        if importlib.util.find_spec("psycopg") is None:
            raise UsageError("a journal in Postgres needs psycopg: pip install 'jurygraph[postgres]'")
        shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
        return JournalLocation(url.set(drivername="postgresql+psycopg"), str(shown), None, named_by_url=True)
    raise UsageError(f"a journal cannot be kept in {url.drivername}://...; possible are {POSSIBLE}")


VERSION = 2
# Version 1 had no table of runs, and of an opening only its number, its run and its lease.
_READABLE = (1, VERSION)
COUNTER_BITS = 32
# "jury" in ASCII: the number of an advisory lock, which all users of a Postgres server share.
_CREATION_LOCK = 0x6A757279
metadata = MetaData()
_ZERO = text("0")
about = Table("jurygraph_journal", metadata, Column("version", Integer, nullable=False))
runs = Table(
    "jurygraph_runs",
    metadata,
    Column("run", String, primary_key=True),
    # A process that waits for budget asks the others to give back what they do not need.
    Column("waiting_until", BigInteger, nullable=False, server_default=_ZERO),
    # Openings up to this one are to stop, for this reason.
    Column("stopped_to", Integer, nullable=False, server_default=_ZERO),
    Column("stop_reason", String),
    Column("explanation", Text),
    sqlite_with_rowid=False,
)
rates = Table(
    "jurygraph_rates",
    metadata,
    *(Column(name, String, primary_key=True) for name in ("run", "model", "kind")),
    # Seconds since 1970 at which all that was given out is used up.
    Column("used_until", Float, nullable=False),
    sqlite_with_rowid=False,
)
COUNTED = ("unpriced", *USAGE_NAMES, "uncounted")
"""The names of the sums that an opening keeps: calls without a price, all of a usage, calls without tokens."""

GRANTED = ("granted_calls", "granted_tokens", "granted_cost")
"""The names of what an opening may use in all: calls, tokens and US dollars."""

_FRACTIONS = ("cost_usd", "seconds", "granted_cost")
openings = Table(
    "jurygraph_openings",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    # 0 once the opening is known to have ended.
    Column("alive_until", BigInteger, nullable=False),
    Column("part", String, nullable=False, server_default=""),
    # The calls of this opening up to this number are in its sums.
    Column("counted_to", BigInteger, nullable=False, server_default=_ZERO),
    *(
        Column(name, Float if name in _FRACTIONS else BigInteger, nullable=False, server_default=_ZERO)
        for name in (*COUNTED, *GRANTED)
    ),
)
calls = Table(
    "jurygraph_calls",
    metadata,
    # SQLite makes a primary key its row id only if the type is exactly INTEGER, which holds 64 bits there.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("key", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("model", String, nullable=False),
    # A price may be unknown.
    *(
        Column(name, Float if name in _FRACTIONS else Integer, nullable=name == "cost_usd")
        for name in USAGE_NAMES
    ),
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
    Column("part", String, nullable=False, server_default=""),
)


def now(dialect: Dialect) -> ColumnElement[int]:
    """Return an expression for the seconds since 1970 by the database's clock, which all its users share."""
    if dialect.name == "sqlite":
        return literal_column("CAST(strftime('%s', 'now') AS INTEGER)", BigInteger)
    # now() would be the start of the transaction, however long it has waited for a lock.
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)", BigInteger)


def clock(dialect: Dialect) -> ColumnElement[float]:
    """Return an expression for the same with fractions."""
    if dialect.name == "sqlite":
        return literal_column("((julianday('now') - 2440587.5) * 86400.0)", Float)
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)", Float)


def create(connection: Connection, place: JournalLocation) -> None:
    """Create the tables where there are none yet, or bring them to this version; several processes may do it at once.

    Raises:
        UsageError: the tables are of another version, or an SQLite file holds something else.
    """
    if connection.dialect.name == "postgresql":
        # Else two processes that find no tables would both create them; the commit frees the lock.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
    version = version_of(connection, place)
    if version is None:
        metadata.create_all(connection)
        connection.execute(about.insert().values(version=VERSION))
    elif version < VERSION:
        # What version 2 has is added; processes of an earlier version that have the journal open can go on.
        for table in (openings, batches):
            names = {column["name"] for column in inspect(connection).get_columns(table.name)}
            for column in table.columns:
                if column.name not in names:
                    added = CreateColumn(column).compile(dialect=connection.dialect)
                    connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {added}")
        metadata.create_all(connection)
        connection.execute(update(openings).values(counted_to=_FIRST - 1))
        connection.execute(update(about).values(version=VERSION))


def version_of(connection: Connection, place: JournalLocation) -> int | None:
    """Return the version of the journal that is there; ``None`` if there is none.

    Raises:
        UsageError: it is of another version, or an SQLite file holds something else.
    """
    names = inspect(connection).get_table_names()
    if about.name not in names:
        if place.file and names:
            raise UsageError(f"{place.shown}: a database, not a journal (it holds {', '.join(names[:5])})")
        return None
    version = connection.execute(select(about.c.version)).scalar()
    if version not in _READABLE:
        readable = " and ".join(map(str, _READABLE))
        problem = f"made by version {version} of the journal format; this jurygraph reads {readable}"
        remedy = "Use the jurygraph that made it, or choose another place for the journal"
        raise UsageError(f"{place.shown}: {problem}. {remedy}")
    return int(version)


# Calls in one INSERT: 64 rows have 704 parameters, and SQLite before 3.32 takes 999 at most.
KEPT_AT_ONCE = 64

ROW = ("number", "key", "model", "reply", *USAGE_NAMES)
"""The columns that are given for a call; the database adds the others."""
_FIRST = cast(openings.c.number, BigInteger) * (1 << COUNTER_BITS)

_LAST = _FIRST + ((1 << COUNTER_BITS) - 1)

WRITTEN_BY = calls.c.number.between(_FIRST, _LAST)
"""The condition that an opening wrote a call; over the primary key, so that no calls of other runs are read."""

SUMS: tuple[ColumnElement[Any], ...] = (
    # The number of calls without a price, since the count of a column passes over NULL.
    func.count(calls.c.number) - func.count(calls.c.cost_usd),
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


def counted(which: ColumnElement[bool]) -> Select[Any]:
    """Select openings with their sums brought up to the last call, and its number as ``counted_to``.

    Calls are added in the order of their numbers, so none is missing below the last one. In one statement, since an
    opening may be counted, and others may look, at the same time.
    """
    last = func.coalesce(func.max(calls.c.number), openings.c.counted_to).label("counted_to")
    # Every call sends some tokens: none means that the provider did not say how many.
    uncounted = func.count(case((calls.c.input_tokens <= 0, 1)))
    of_tail = zip(COUNTED, (*SUMS, uncounted), strict=True)
    sums = ((openings.c[name] + more).label(name) for name, more in of_tail)
    tail = openings.outerjoin(calls, (calls.c.number > openings.c.counted_to) & (calls.c.number <= _LAST))
    statement = select(openings.c.number, last, *sums).select_from(tail)
    return statement.where(which).group_by(openings.c.number)


def served(since: int) -> Select[Any]:
    """Select the replies of some ``keys`` in the order in which they were written; from the opening ``since`` on."""
    written = calls.c.number >= since << COUNTER_BITS
    usable = written & calls.c.invalidated.is_(False) & calls.c.reply.is_not(None)
    of_keys = calls.c.key.in_(bindparam("keys", expanding=True))
    return select(calls.c.key, calls.c.reply).where(of_keys, usable).order_by(calls.c.number)


@lru_cache
def addition(dialect: Dialect, rows: int) -> str:
    """Return the statement that adds so many calls in one step."""
    # One step for all, since each step of SQLite competes with the event loop's thread for the interpreter.
    placeholder = "?" if dialect.paramstyle == "qmark" else "%s"
    row = f"({', '.join([placeholder] * len(ROW))}, {now(dialect)})"
    start = f"INSERT INTO {calls.name} ({', '.join(ROW)}, created) VALUES "
    # A retry finds its own rows if the connection was lost after the commit and before its confirmation.
    return start + ", ".join([row] * rows) + " ON CONFLICT DO NOTHING"


def insert_for(dialect: Dialect) -> Callable[[Table], Any]:
    """Return the database's own INSERT, which can skip rows that are there; each dialect takes megabytes to load."""
    into: Callable[[Table], Any] = importlib.import_module(f"sqlalchemy.dialects.{dialect.name}").insert
    return into
