"""Places for the journals of tests: files, and schemas in this machine's Postgres server."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import journal_location
from jurygraph.eval.journal.records import Entry
from jurygraph.eval.journal.store import Patience, Store
from jurygraph.state.transcript import Usage
from sqlalchemy import Engine

KINDS = ["file", "shared file", "postgres"]
SHARED = pytest.mark.parametrize("where", KINDS[1:], indirect=True)
"""Marks tests of the state that several processes share."""
POSTGRES = os.environ.get("JURYGRAPH_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")


def entry(reply: str = "4", cost: float | None = 0.25, model: str = "gpt-4o-mini") -> Entry:
    return Entry(model, reply.encode(), Usage(1, 100, 40, 20, 5, cost, 1.5))


def key(number: int) -> bytes:
    return number.to_bytes(4, "big") * 4


def store_at(where: str, run: str = "a", *, lease: float = 60, part: str = "") -> Store:
    """Open a journal that others may have open too, without the threads of a ``Journal``."""
    patience = Patience(5, lease)
    return Store(
        journal_location(where), run, part=part, shared=True, fresh=False, patience=patience
    )


@contextmanager
def schema() -> Iterator[str]:
    """Yield a URL whose tables are in a schema that is dropped afterwards."""
    psycopg = pytest.importorskip("psycopg")
    name = f"jurygraph_{os.urandom(6).hex()}"
    try:
        server = psycopg.connect(POSTGRES, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        pytest.skip(f"no Postgres at {POSTGRES}: {error}")
    with server:
        server.execute(f"CREATE SCHEMA {name}")
        try:
            yield f"{POSTGRES}?options=-csearch_path%3D{name}"
        finally:
            server.execute(f"DROP SCHEMA {name} CASCADE")


@contextmanager
def somewhere(kind: str, folder: Path) -> Iterator[str]:
    """Yield a place of a kind: a file of one process, a shared file, or a Postgres database."""
    if kind == "postgres":
        with schema() as url:
            yield url
    else:
        yield (
            f"sqlite:///{folder}/shared.sqlite"
            if kind == "shared file"
            else f"{folder}/journal.sqlite"
        )


@asynccontextmanager
async def opened(where: str | Path, **options: Any) -> AsyncIterator[Journal]:
    """A journal that is open for the block inside."""
    journal = await Journal.open(where, **options)
    try:
        yield journal
    finally:
        await journal.close()


def with_shared_statements(create_engine: Callable[..., Engine]) -> Callable[..., Engine]:
    """Let all SQLite engines of a process share compiled statements, which belong to a dialect."""
    first = create_engine("sqlite://")
    # A dialect knows its database only after the first connection.
    first.connect().close()
    first.dispose()

    def create(*arguments: Any, **options: Any) -> Engine:
        engine = create_engine(*arguments, **options)
        if engine.dialect.name == first.dialect.name:
            shared: Any = first
            of_engine: Any = engine
            of_engine.dialect = of_engine.pool._dialect = shared.dialect
            of_engine._compiled_cache = shared._compiled_cache
        return engine

    return create
