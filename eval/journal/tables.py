"""The tables of a journal, the same in SQLite and Postgres, and their version.

A call is a row that is added and never replaced, so that what it cost stays counted whatever becomes of its
reply. Its number is the number of the opening that wrote it, then a counter: rows of one opening lie together.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    false,
    inspect,
    literal_column,
    select,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from ...state.errors import UsageError
from .places import Place

VERSION = 1
COUNTER_BITS = 32
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
    Column("disowned", Boolean, nullable=False, server_default=false()),
    Column("reply", LargeBinary),
)
Index("jurygraph_calls_key", calls.c.key)

claims = Table(
    "jurygraph_claims",
    metadata,
    Column("key", LargeBinary, primary_key=True),
    Column("opening", Integer, nullable=False),
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
    """Seconds since 1970 by the database's clock, which is the same for all who share it."""
    if dialect.name == "sqlite":
        return literal_column("CAST(strftime('%s', 'now') AS INTEGER)", BigInteger)
    return literal_column("CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)", BigInteger)


def create(connection: Connection, place: Place) -> None:
    """Make the tables where there are none yet; several processes may do it at once.

    Raises:
        UsageError: the tables are of another version, or an SQLite file holds something else.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
    if not is_there(connection, place):
        metadata.create_all(connection)
        connection.execute(about.insert().values(version=VERSION))


def is_there(connection: Connection, place: Place) -> bool:
    """Whether there is a journal that can be read.

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
