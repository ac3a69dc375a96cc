"""Define a journal's location, tables and statements, the same for SQLite and Postgres.

A call is a row that is added and never replaced, so that its cost stays counted even if its reply
is not used. Its number is the number of the opening that wrote it plus a counter, so that rows of
one opening are adjacent.
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
)
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool
from sqlalchemy.sql.elements import ColumnElement

from ...state.errors import UsageError
from ...state.transcript import USAGE_FIELDS, Usage
from .records import USAGE_NAMES

POSSIBLE = (
    "a file such as runs/journal.sqlite, sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE"
)
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")

# Seconds that the database itself waits for a lock; the store then warns and tries again.
_LOCK_PATIENCE = 2
# Seconds after which Postgres ends a session that is idle in a transaction. Otherwise a stopped
# process or a vanished machine would hold its locks forever. A process that is only slow
# reconnects.
IDLE_PATIENCE = 5

_SQLITE_SETTINGS = (
    # Before WAL mode, which fixes the page size of a file.
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    # With NORMAL a power failure could undo commits, and replies are used once they are committed.
    "PRAGMA synchronous = FULL",
)
_POSTGRES_SETTINGS = (
    f"SET lock_timeout = '{_LOCK_PATIENCE}s'",
    f"SET idle_in_transaction_session_timeout = '{IDLE_PATIENCE}s'",
    # The planner overestimates the few calls to count, and would compile a second for them.
    "SET jit = off",
)
_POSTGRES_CONNECTION = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""A server that vanishes without closing its connections is detected within half a minute.

The URL of a journal may set other values.
"""


class JournalLocation(NamedTuple):
    """The location of a journal: a file or a database.

    Attributes:
        url: the URL of the database, for SQLAlchemy.
        shown: the location for messages, without a password.
        file: the SQLite file; ``None`` for Postgres.
        named_by_url: whether it was given as a URL.
    """

    url: URL
    shown: str
    file: Path | None
    named_by_url: bool

    def engine(self) -> Engine:
        """Return an engine for the database; nothing is connected yet."""
        url = self.url
        settings = _SQLITE_SETTINGS if self.file else _POSTGRES_SETTINGS
        if self.file:
            options: dict[str, Any] = {"connect_args": {"timeout": _LOCK_PATIENCE}}
        else:
            url = url.set(query={**_POSTGRES_CONNECTION, **url.query})
            options = _postgres_options()
        # No pool, because the store holds its one connection and a faulty one must really be
        # closed. No parameters in messages, because they are whole replies.
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True, **options)

        @event.listens_for(engine, "connect")
        def _prepare(connection: Any, _record: object) -> None:
            if self.file:
                # The driver's own transactions would begin too late, so the store begins them.
                connection.isolation_level = None
            for setting in settings:
                connection.execute(setting)
            # Postgres' driver began a transaction for the SET; a rollback would undo the setting.
            connection.commit()

        return engine


def _postgres_options() -> dict[str, Any]:
    """Return engine options that send each statement to Postgres as a single message.

    By default psycopg sends five messages for a statement: parse, bind, describe, execute, sync. If
    a process freezes between two of them, the server waits for the rest without any timeout, and
    keeps the locks of the transaction. Before and after a single message the session counts as idle
    in the transaction, and ``IDLE_PATIENCE`` ends it.
    """
    from psycopg import ClientCursor

    return {
        # Each statement sees the commits of others, such as a reply that came between look-up and
        # claim.
        "isolation_level": "READ COMMITTED",
        "connect_args": {"cursor_factory": ClientCursor},
        # Looking up the type hstore, which a journal does not use, would again take several
        # messages.
        "use_native_hstore": False,
    }


def journal_location(where: str | Path) -> JournalLocation:
    """Parse the location of a journal from a path or a URL.

    Raises:
        UsageError: a URL of another kind of database, or Postgres without its driver.

    >>> journal_location("postgres://me:secret@db.example/journal").shown
    'postgresql://me@db.example/journal'
    """
    if "://" not in str(where):
        file = Path(where)
        return JournalLocation(
            URL.create("sqlite", database=str(file)), str(file), file, named_by_url=False
        )
    try:
        url = make_url(str(where))
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"that journal URL cannot be read; possible are {POSSIBLE}") from error
    if url.drivername == "sqlite" and url.database:
        return JournalLocation(url, url.database, Path(url.database), named_by_url=True)
    if url.drivername in _POSTGRES:
        if importlib.util.find_spec("psycopg") is None:
            raise UsageError(
                "a journal in Postgres needs psycopg: pip install 'jurygraph[postgres]'"
            )
        shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
        return JournalLocation(
            url.set(drivername="postgresql+psycopg"), str(shown), None, named_by_url=True
        )
    raise UsageError(f"a journal cannot be kept in {url.drivername}://...; possible are {POSSIBLE}")


VERSION = 2
COUNTER_BITS = 32
# "jury" in ASCII: the number of an advisory lock. All users of a Postgres server share these.
_CREATION_LOCK = 0x6A757279
metadata = MetaData()
_ZERO = text("0")
about = Table("jurygraph_journal", metadata, Column("version", Integer, nullable=False))
runs = Table(
    "jurygraph_runs",
    metadata,
    Column("run", String, primary_key=True),
    # A process that waits for budget asks the others to return unused budget.
    Column("waiting_until", BigInteger, nullable=False, server_default=_ZERO),
    # Openings up to this one must stop, for this reason.
    Column("stopped_to", Integer, nullable=False, server_default=_ZERO),
    Column("stop_reason", String),
    Column("explanation", Text),
    sqlite_with_rowid=False,
)
rates = Table(
    "jurygraph_rates",
    metadata,
    *(Column(name, String, primary_key=True) for name in ("run", "model", "kind")),
    # Seconds since 1970 when all granted budget is used up.
    Column("used_until", Float, nullable=False),
    sqlite_with_rowid=False,
)
COUNTED = ("unpriced", *USAGE_NAMES, "uncounted")
"""The names of the sums of an opening: calls without a price, the usage, calls without tokens."""

GRANTED = ("granted_calls", "granted_tokens", "granted_cost")
"""The names of the total limits of an opening: calls, tokens and US dollars."""

_FRACTIONS = ("cost_usd", "seconds", "granted_cost")
openings = Table(
    "jurygraph_openings",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("run", String, nullable=False, index=True),
    # 0 once the opening is known to have ended.
    Column("alive_until", BigInteger, nullable=False),
    Column("part", String, nullable=False, server_default=""),
    # The sums include the calls of this opening up to this number.
    Column("counted_to", BigInteger, nullable=False, server_default=_ZERO),
    *(
        Column(
            name, Float if name in _FRACTIONS else BigInteger, nullable=False, server_default=_ZERO
        )
        for name in (*COUNTED, *GRANTED)
    ),
)
calls = Table(
    "jurygraph_calls",
    metadata,
    # SQLite makes a primary key its row id only if the type is exactly INTEGER, which has 64 bits.
    Column(
        "number",
        BigInteger().with_variant(Integer, "sqlite"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("key", LargeBinary, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("model", String, nullable=False),
    # A price may be unknown.
    *(
        Column(name, Float if name in _FRACTIONS else Integer, nullable=name == "cost_usd")
        for name in USAGE_NAMES
    ),
    # The column keeps its first name, so that existing journals can be read.
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
    # A row is little more than its key, so one tree is enough; row ids would need another index.
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
    """Return an expression for the seconds since 1970 by the database's shared clock."""
    if dialect.name == "sqlite":
        return literal_column("CAST(strftime('%s', 'now') AS INTEGER)", BigInteger)
    # now() would be the start of the transaction, even if it has waited for a lock.
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)", BigInteger)


def clock(dialect: Dialect) -> ColumnElement[float]:
    """Return an expression for the same time with fractions."""
    if dialect.name == "sqlite":
        return literal_column("((julianday('now') - 2440587.5) * 86400.0)", Float)
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)", Float)


def create(connection: Connection, place: JournalLocation) -> None:
    """Create the tables if there are none; several processes may do so at once.

    Raises:
        UsageError: the tables have another version, or an SQLite file has other contents.
    """
    version = version_of(connection, place)
    if version == VERSION:
        return
    if connection.dialect.name == "postgresql":
        # Otherwise two processes that find no tables would both create them. The commit frees the
        # lock.
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
        version = version_of(connection, place)
    if version is None:
        metadata.create_all(connection)
        connection.execute(about.insert().values(version=VERSION))


def version_of(connection: Connection, place: JournalLocation) -> int | None:
    """Return the version of an existing journal; ``None`` if there is none.

    Raises:
        UsageError: it has another version, or an SQLite file has other contents.
    """
    inspector = inspect(connection)
    if not inspector.has_table(about.name):
        # Files only: a whole database may have too many names to send to a process that may be
        # stopped meanwhile.
        if place.file and (names := inspector.get_table_names()):
            raise UsageError(
                f"{place.shown}: a database, not a journal (it holds {', '.join(names[:5])})"
            )
        return None
    version = connection.execute(select(about.c.version)).scalar()
    if version != VERSION:
        raise UsageError(
            f"{place.shown}: made by version {version} of the journal format; "
            f"this jurygraph reads {VERSION}. Use the jurygraph that made it, or choose another "
            "place for the journal"
        )
    return int(version)


# Calls in one INSERT: 64 rows have 704 parameters, and SQLite before 3.32 takes 999 at most.
KEPT_AT_ONCE = 64

ROW = ("number", "key", "model", "reply", *USAGE_NAMES)
"""The columns of a new call; the database adds the others."""
_FIRST = cast(openings.c.number, BigInteger) * (1 << COUNTER_BITS)

_LAST = _FIRST + ((1 << COUNTER_BITS) - 1)

WRITTEN_BY = calls.c.number.between(_FIRST, _LAST)
"""Selects the calls of an opening by the primary key, so that no other calls are read."""

SUMS: tuple[ColumnElement[Any], ...] = (
    # The number of calls without a price, because the count of a column skips NULL.
    func.count(calls.c.number) - func.count(calls.c.cost_usd),
    *(func.coalesce(func.sum(calls.c[name]), 0) for name in USAGE_NAMES),
)
"""The columns that :func:`usage_from` reads."""


def usage_from(row: Sequence[Any]) -> Usage:
    """Read a usage from the columns of :data:`SUMS`."""
    unpriced, *sums = row
    totals = dict(zip(USAGE_FIELDS, sums, strict=True))
    cost = float(totals.pop("cost_usd"))
    seconds = float(totals.pop("seconds"))
    # SQL omits unknown costs from a sum, but one of them must make the total unknown.
    counts = {name: int(count) for name, count in totals.items()}
    return Usage(**counts, cost_usd=None if unpriced else cost, seconds=seconds)


def counted(which: ColumnElement[bool]) -> Select[Any]:
    """Select openings with sums up to the last call, whose number is ``counted_to``.

    Calls are added in the order of their numbers, so none is missing below the last one. This is
    one statement, because others may count or read an opening at the same time.
    """
    last = func.coalesce(func.max(calls.c.number), openings.c.counted_to).label("counted_to")
    # Every call sends some tokens: none means that the provider did not report the number.
    uncounted = func.count(case((calls.c.input_tokens <= 0, 1)))
    of_tail = zip(COUNTED, (*SUMS, uncounted), strict=True)
    sums = ((openings.c[name] + more).label(name) for name, more in of_tail)
    tail = openings.outerjoin(
        calls, (calls.c.number > openings.c.counted_to) & (calls.c.number <= _LAST)
    )
    statement = select(openings.c.number, last, *sums).select_from(tail)
    return statement.where(which).group_by(openings.c.number)


def served(since: int) -> Select[Any]:
    """Select the replies of some ``keys`` as they were written, from the opening ``since`` on."""
    written = calls.c.number >= since << COUNTER_BITS
    usable = written & calls.c.invalidated.is_(False) & calls.c.reply.is_not(None)
    of_keys = calls.c.key.in_(bindparam("keys", expanding=True))
    return select(calls.c.key, calls.c.reply).where(of_keys, usable).order_by(calls.c.number)


@lru_cache
def addition(dialect: Dialect, rows: int) -> str:
    """Return the statement that adds this many calls in one step."""
    # One step for all, because each step of SQLite competes with the event loop for the
    # interpreter.
    row = f"({_placeholders(dialect, len(ROW))}, {now(dialect)})"
    start = f"INSERT INTO {calls.name} ({', '.join(ROW)}, created) VALUES "
    # A retry finds its own rows if the connection was lost between commit and confirmation.
    return start + ", ".join([row] * rows) + " ON CONFLICT DO NOTHING"


@lru_cache(maxsize=256)
def claiming(dialect: Dialect, rows: int) -> str:
    """Return the statement that claims keys, each with its opening, and skips claimed ones."""
    # One statement per key would go to Postgres in a pipeline of messages (``_postgres_options``).
    row = f"({_placeholders(dialect, 2)})"
    return f"INSERT INTO {claims.name} (key, opening) VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING"


def _placeholders(dialect: Dialect, number: int) -> str:
    return ", ".join(["?" if dialect.paramstyle == "qmark" else "%s"] * number)


def insert_for(dialect: Dialect) -> Callable[[Table], Any]:
    """Return the dialect's INSERT, which can skip existing rows; a dialect loads megabytes."""
    into: Callable[[Table], Any] = importlib.import_module(
        f"sqlalchemy.dialects.{dialect.name}"
    ).insert
    return into
