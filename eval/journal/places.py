"""Where a journal is: an SQLite file or a Postgres database, and the engine that reaches it."""

from __future__ import annotations

import importlib.util
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from ...state.errors import UsageError

POSSIBLE = "a file such as runs/journal.sqlite, sqlite:///FILE or postgresql://USER@HOST:PORT/DATABASE"
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg")
# A server that vanishes without a word is noticed within half a minute; the URL may say otherwise.
_NOTICE_LOSS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
_LOCK_PATIENCE = 2
_PAGE_BYTES = 8192


@dataclass(frozen=True)
class Place:
    """Where a journal is.

    Attributes:
        url: as SQLAlchemy has it.
        shown: the same for people to read, without a password.
        file: the SQLite file; ``None`` for Postgres.
        named_by_url: whether it was given as a URL.
    """

    url: URL
    shown: str
    file: Path | None
    named_by_url: bool

    def engine(self) -> Engine:
        """A way to the database; nothing is connected yet."""
        return _sqlite_engine(self.url) if self.file else _postgres_engine(self.url)


def place(where: str | Path) -> Place:
    """Read where a journal is.

    Raises:
        UsageError: a URL of another kind of database, or Postgres without its driver.

    >>> place("postgres://me:secret@db.example/journal").shown
    'postgresql://me@db.example/journal'
    """
    if "://" not in str(where):
        file = Path(where)
        return Place(URL.create("sqlite", database=str(file)), str(file), file, named_by_url=False)
    try:
        url = make_url(str(where))
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"that URL of a journal cannot be read; possible are {POSSIBLE}") from error
    if url.drivername == "sqlite" and url.database:
        return Place(url, url.database, Path(url.database), named_by_url=True)
    if url.drivername in _POSTGRES:
        return _postgres(url)
    raise UsageError(f"a journal cannot be kept in {url.drivername}://...; possible are {POSSIBLE}")


def _postgres(url: URL) -> Place:
    if importlib.util.find_spec("psycopg") is None:
        raise UsageError("a journal in Postgres needs psycopg: pip install 'jurygraph[postgres]'")
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database)
    return Place(url.set(drivername="postgresql+psycopg"), str(shown), None, named_by_url=True)


def _postgres_engine(url: URL) -> Engine:
    unsaid = {name: value for name, value in _NOTICE_LOSS.items() if name not in url.query}
    engine = create_engine(
        url.update_query_dict(unsaid),
        poolclass=NullPool,
        hide_parameters=True,
        isolation_level="READ COMMITTED",
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: object) -> None:
        connection.execute(f"SET lock_timeout = '{_LOCK_PATIENCE}s'")
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
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    return engine
