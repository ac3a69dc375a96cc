"""Test damaged, locked, full or missing journals: no loss, no hang, a clear message."""

import asyncio
import importlib.util
import logging
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import JournalError
from sqlalchemy import Engine, event, make_url

from .journal_locations import POSTGRES, entry, key, opened
from .processes import HANG_GUARD, reached

BIG = "x" * 20_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


async def outcomes(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Return the results or exceptions of concurrent calls."""
    return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), HANG_GUARD)


class Room:
    """How many pages a database may have: a disk that fills up, and is cleared."""

    def __init__(self) -> None:
        self.pages = 1_000_000

    def limit(self, connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {self.pages}")


@pytest.fixture
def room() -> Iterator[Room]:
    disk = Room()
    event.listen(Engine, "connect", disk.limit)
    yield disk
    event.remove(Engine, "connect", disk.limit)


class Proxy:
    """A way to Postgres that can be cut."""

    def __init__(self) -> None:
        self.port = 0
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.StreamWriter] = set()

    async def restore(self) -> None:
        self._server = await asyncio.start_server(self.serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        assert self._server
        self._server.close()
        for pipe in self._pipes:
            pipe.transport.abort()
        self._pipes.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = make_url(POSTGRES)
        inner, outer = await asyncio.open_connection(target.host, target.port or 5432)
        self._pipes |= {writer, outer}
        await asyncio.gather(self._pump(reader, outer), self._pump(inner, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def proxied(postgres: str, proxy: Proxy, **options: Any) -> AsyncIterator[Journal]:
    """A journal that is reached through a proxy."""
    await proxy.restore()
    url = make_url(postgres).set(host="127.0.0.1", port=proxy.port)
    async with opened(url.render_as_string(hide_password=False), run="a", **options) as journal:
        yield journal


def test_a_file_that_is_no_journal_of_this_version_is_refused_and_left_alone(file: Path) -> None:
    async def opens() -> None:
        async with opened(file, run="a"):
            """It can be opened."""

    asyncio.run(opens())
    with sqlite3.connect(file) as database:
        database.execute("UPDATE jurygraph_journal SET version = 99")
    database.close()
    with pytest.raises(ValueError, match="made by version 99"):
        summarize(file)
    with pytest.raises(
        ValueError, match=r"journal.sqlite: made by version 99 .* reads 2\. Use the jurygraph"
    ):
        asyncio.run(opens())
    file.write_text("Dear diary, " * 500)
    with pytest.raises(ValueError, match=r"journal.sqlite: file is not a database; .*move it away"):
        asyncio.run(opens())
    assert file.read_text() == "Dear diary, " * 500
    file.unlink()
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()
    with pytest.raises(ValueError, match=r"a database, not a journal \(it holds recipes\)"):
        asyncio.run(opens())


def _damage(file: Path) -> None:
    """Overwrite all pages but the first, so that every user has to read them again."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.execute("CREATE TABLE unrelated (name)")
    other.close()
    with file.open("r+b") as database:
        database.seek(8192)
        database.write(os.urandom(file.stat().st_size - 8192))


async def test_damage_found_late_ends_all_calls_with_a_clear_word(file: Path) -> None:
    async with opened(file, run="a") as journal:
        await asyncio.gather(*(journal.keep(key(number), entry(BIG)) for number in range(50)))
        _damage(file)
        told = await outcomes(*(journal.reserve(key(number)) for number in range(50)))
        assert any(isinstance(one, JournalError) for one in told)
        with pytest.raises(JournalError, match=r"journal.sqlite: .*malformed.*damaged"):
            await journal.keep(key(1), entry())


async def test_a_file_that_is_deleted_while_in_use_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "journal.sqlite"
    async with opened(file, run="a") as journal:
        await journal.keep(key(1), entry("kept"))
        file.unlink()
        for call in (journal.keep(key(2), entry("lost")), journal.reserve(key(3))):
            with pytest.raises(JournalError, match=r"removed or replaced while it was in use"):
                await call


async def test_a_lock_that_passes_is_waited_out(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(file, run="a") as journal:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        keeping = asyncio.create_task(journal.keep(key(1), entry("patient")))
        await reached(lambda: "another program holds it" in caplog.text, keeping)
        assert not keeping.done()
        other.execute("ROLLBACK")
        other.close()
        await asyncio.wait_for(keeping, HANG_GUARD)
        assert await journal.reserve(key(1)) == b"patient"
    assert "database is locked; another program holds it" in caplog.text


async def test_a_full_disk_is_waited_out(
    file: Path, room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    room.pages = 40
    async with opened(file, run="a", retry_seconds=60) as journal:
        keeping = [
            asyncio.create_task(journal.keep(key(number), entry(BIG))) for number in range(40)
        ]
        await reached(lambda: "trying again in" in caplog.text)
        assert not all(task.done() for task in keeping)
        room.pages = 1_000_000
        await asyncio.wait_for(asyncio.gather(*keeping), HANG_GUARD)
    assert summarize(file).spent.calls == 40
    warning = next(record for record in caplog.records if record.levelno == logging.WARNING)
    assert (
        "database or disk is full; make room on the disk; trying again in" in warning.getMessage()
    )
    assert "for 60 s at most" in warning.getMessage()


@pytest.mark.slow
async def test_a_disk_that_stays_full_ends_all_calls_and_keeps_what_was_kept(
    file: Path, room: Room
) -> None:
    room.pages = 40
    journal = await Journal.open(file, run="a", retry_seconds=1)
    await journal.keep(key(0), entry("kept"))
    told = await outcomes(*(journal.keep(key(number), entry(BIG)) for number in range(1, 40)))
    assert all(isinstance(one, JournalError) and "disk is full" in str(one) for one in told)
    for later in (
        journal.keep(key(41), entry()),
        journal.reserve(key(0)),
        journal.reserve(os.urandom(16)),
    ):
        with pytest.raises(JournalError, match="disk is full"):
            await asyncio.wait_for(later, HANG_GUARD)
    await asyncio.wait_for(journal.close(), HANG_GUARD)

    room.pages = 1_000_000
    async with opened(file, run="a") as again:
        assert await again.reserve(key(0)) == b"kept"


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="needs a folder in which nobody may write"
)
async def test_a_folder_that_is_not_there_is_made_and_one_that_cannot_be_written_told(
    tmp_path: Path,
) -> None:
    new = tmp_path / "runs" / "new" / "journal.sqlite"
    async with opened(new, run="a") as journal:
        await journal.keep(key(1), entry())
    assert summarize(new).spent.calls == 1
    with pytest.raises(
        ValueError, match=r"/proc/journal.sqlite: .*writable, or choose another place"
    ):
        await asyncio.wait_for(Journal.open("/proc/journal.sqlite", run="a"), HANG_GUARD)


async def test_other_databases_are_refused_with_what_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for where in (
        "mysql://db.example/x",
        "redis://db.example",
        "sqlite://",
        "postgresql+asyncpg://h/d",
    ):
        with pytest.raises(
            ValueError, match=r"possible are a file .* sqlite:///FILE or postgresql://"
        ):
            await Journal.open(where, run="a")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'jurygraph\[postgres\]'"):
        await Journal.open("postgresql://db.example/x", run="a")


async def test_a_server_that_is_not_there_is_told_soon_and_the_password_is_not(
    unused_tcp_port: int,
) -> None:
    url = f"postgresql://me:hunter2@127.0.0.1:{unused_tcp_port}/test"
    with pytest.raises(ValueError, match=f"@127.0.0.1:{unused_tcp_port}/test: ") as told:
        await asyncio.wait_for(Journal.open(url, run="a", retry_seconds=1), HANG_GUARD)
    assert "hunter2" not in str(told.value)


@pytest.mark.slow
async def test_a_postgres_that_was_away_lost_nothing(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = Proxy()
    async with proxied(postgres, proxy, retry_seconds=120) as journal:

        async def call(number: int) -> None:
            assert await journal.reserve(key(number)) is None
            await asyncio.sleep(0.002 * number)
            await journal.keep(key(number), entry(str(number)))

        calling = [asyncio.create_task(call(number)) for number in range(500)]
        for _ in range(3):
            await asyncio.sleep(0.2)
            await proxy.cut()
            await reached(lambda: "trying again in" in caplog.text)
            await asyncio.sleep(0.3)
            await proxy.restore()
        await asyncio.wait_for(asyncio.gather(*calling), HANG_GUARD)
    await proxy.cut()
    summary = summarize(postgres)
    assert (summary.spent.calls, summary.claims) == (500, 0)
    async with opened(postgres, run="b") as again:
        replies = await asyncio.gather(*(again.reserve(key(number)) for number in range(500)))
    assert replies == [str(number).encode() for number in range(500)]


async def test_ended_sessions_are_made_anew_and_one_that_stays_away_ends_all_calls(
    postgres: str,
) -> None:
    proxy = Proxy()
    async with proxied(
        f"{postgres}&application_name=jurygraph-ended", proxy, retry_seconds=1
    ) as journal:
        with psycopg.connect(POSTGRES, autocommit=True) as server:
            for number in range(20):
                ended = server.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jurygraph-ended'"
                ).fetchall()
                assert ended
                await asyncio.wait_for(journal.keep(key(number), entry()), HANG_GUARD)
        await proxy.cut()
        with pytest.raises(JournalError, match=r"127\.0\.0\.1"):
            await asyncio.wait_for(journal.keep(key(20), entry()), HANG_GUARD)
    assert summarize(postgres).spent.calls == 20


async def test_a_server_that_does_not_answer_a_connection_in_time_is_asked_again(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    proxy = Proxy()
    unanswered: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if unanswered:
            await proxy.serve(reader, writer)
        else:
            unanswered.append(writer)

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        url = make_url(f"{postgres}&connect_timeout=2")
        url = url.set(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
        async with opened(url.render_as_string(hide_password=False), run="a") as journal:
            await journal.keep(key(1), entry())
        unanswered[0].close()
    assert "connection timeout expired; trying again in" in caplog.text
    assert summarize(postgres).spent.calls == 1


KILLED = """
import asyncio, os, sys
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Entry
from jurygraph.state import Usage

async def main():
    journal = await Journal.open(sys.argv[1], run="a")
    async def work():
        while True:
            key = os.urandom(16)
            assert await journal.reserve(key) is None
            await journal.keep(key, Entry("m", key * 100, Usage(1, 1, 0, 1, 0, 0.001, 0.1)))
            os.write(1, key)
    await asyncio.gather(*(work() for _ in range(16)))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "shared file", "postgres"])
@pytest.mark.parametrize("seconds", [0.05, 0.35])
async def test_what_was_kept_survives_kill_9(
    kind: str, seconds: float, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = (
        request.getfixturevalue("postgres")
        if kind == "postgres"
        else str(tmp_path / "journal.sqlite")
    )
    where = f"sqlite:///{where}" if kind == "shared file" else where
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, where, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    told = await process.stdout.readexactly(16)
    await asyncio.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    told += await process.stdout.read()
    await process.wait()
    kept = [told[start : start + 16] for start in range(0, len(told) // 16 * 16, 16)]

    async with opened(where, run="a") as journal:
        for one in kept:
            assert await asyncio.wait_for(journal.reserve(one), HANG_GUARD) == one * 100
        assert len(kept) <= journal.totals().calls <= len(kept) + 16


ENDS = """
import asyncio, sys
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Entry
from jurygraph.state import Usage

async def main():
    journal = await Journal.open(sys.argv[1], run="a")
    for number in range(10):
        asyncio.create_task(journal.keep(bytes([number]) * 16, Entry("m", b"{}", Usage(1, 1, 0, 1, 0, 0.1, 0.1))))
    await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_program_that_ends_without_closing_its_journal_has_what_it_kept(file: Path) -> None:
    program = KILLED.partition("async def main")[0] + ENDS
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(file))
    assert await asyncio.wait_for(process.wait(), HANG_GUARD) == 0
    assert summarize(file).spent.calls == 10
