"""Test a process that is stopped or killed in a transaction: the others continue."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import batches, calls, claims, journal_location
from jurygraph.nodes.models.retry import Waits
from sqlalchemy import func, make_url, select

from .journal_locations import entry, key, opened, store_at
from .postgres_proxy import StoppingProxy, stopping_proxy
from .processes import HANG_GUARD, child, reached

FREEZES = """
import asyncio, os, signal, sys, time
from sqlalchemy import event
from sqlalchemy.engine import Engine
from jurygraph.eval.journal import database
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Entry
from jurygraph.state import Usage

where, statement, number = sys.argv[1], sys.argv[2], signal.Signals[sys.argv[3]]
database.IDLE_PATIENCE = 1  # of this process's sessions alone: the test need not wait for longer
seen = []

@event.listens_for(Engine, "after_cursor_execute")
def freeze(connection, cursor, said, *_):
    if said.startswith(statement) and not seen:
        seen.append(said)
        os.write(1, b"stopped\\n")
        os.kill(os.getpid(), number)
        time.sleep(0.2)  # the signal may come to another thread first

async def main():
    journal = await Journal.open(where, run="a", shared=True, lease=2, retry_seconds=0.5)
    reply = await journal.reserve(bytes(12) + b"0001")
    if reply is None:
        os.write(1, b"call made\\n")
        await journal.keep(bytes(12) + b"0001", Entry("m", b"mine", Usage(1, 1, 0, 1, 0, 0.001, 0.1)))
    for other in range(20):
        assert await journal.reserve(os.urandom(16)) is None
    await journal.close()
    os.write(1, b"done\\n")

asyncio.run(main())
"""
SAME = bytes(12) + b"0001"

MOMENTS = {
    "creating tables": "SELECT pg_advisory_xact_lock",
    "opening": "INSERT INTO jurygraph_openings",
    "claiming": "INSERT INTO jurygraph_claims",
    "writing": "INSERT INTO jurygraph_calls",
    "freeing": "DELETE FROM jurygraph_claims WHERE jurygraph_claims.key",
}


def is_gone(process: subprocess.Popen[str]) -> bool:
    """Whether a process is stopped or killed: its signal may come a moment after it was sent."""
    state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0]
    return state in "TZ"


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "number"), [
    *((moment, signal.SIGSTOP) for moment in MOMENTS),
    *((moment, signal.SIGKILL) for moment in ("claiming", "writing")),
])  # fmt: skip
async def test_a_process_that_freezes_in_a_transaction_holds_nobody_up_and_goes_on_later(
    postgres: str, moment: str, number: signal.Signals, tmp_path: Path
) -> None:
    told = tmp_path / "told.txt"
    command = (sys.executable, "-c", FREEZES, postgres, MOMENTS[moment], number.name)
    with told.open("w") as out, child(*command, stdout=out) as process:
        await reached(lambda: is_gone(process) and "stopped" in told.read_text())
        journal = await Journal.open(postgres, run="b", shared=True, lease=2)
        reply = await asyncio.wait_for(journal.reserve(SAME), HANG_GUARD)
        if reply is None:
            await journal.keep(SAME, entry("the other's"))
        assert await asyncio.wait_for(journal.reserve(key(2)), HANG_GUARD) is None
        await journal.close()
        if number == signal.SIGSTOP:
            process.send_signal(signal.SIGCONT)
            assert await asyncio.to_thread(process.wait, HANG_GUARD) == 0
    made = told.read_text().count("call made") + (reply is None)
    survived = made if number == signal.SIGSTOP else 1
    assert ("done" in told.read_text()) == (number == signal.SIGSTOP)
    assert (summarize(postgres).spent.calls, summarize(postgres).claims) == (survived, 0), (
        "lost or doubled"
    )


FORKED = """
import asyncio, json, os, signal, sys, traceback
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Amounts, Entry, GrantRequest
from jurygraph.state import Usage

usage = Usage(1, 1, 0, 1, 0, 0.001, 0.1)

async def call(journal, key):
    if await journal.reserve(key) is None:
        await journal.keep(key, Entry("m", bytes(20_000), usage))

async def use(where, run, keys, patience):
    journal = await Journal.open(where, run=run, shared=True, **patience)
    await journal.grant(GrantRequest(Amounts(100, 1e6, 1.0), *3 * [Amounts(0, 0, 0)], Amounts(1, 1, 0.1)))
    await journal.book("m", "requests", 0.1)
    await asyncio.gather(*(call(journal, key) for key in keys))
    await journal.note_batch(run, {"calls": 1})
    await journal.settle_batch(run)
    await journal.invalidate(keys[2:])
    await journal.close()

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    if child := os.fork():
        print(child, flush=True)
        continue
    outcome = "done"
    try:
        keys = [bytes.fromhex(key) for key in request["keys"]]
        asyncio.run(use(request["where"], request["run"], keys, request["patience"]))
    except BaseException:
        outcome = traceback.format_exc()
    with open(request["outcome"] + ".part", "w") as file:
        file.write(outcome)
    os.rename(file.name, request["outcome"])
    os._exit(0)
"""
LEASE = 2.0
PATIENCE = {"lease": LEASE, "retry_seconds": HANG_GUARD}
# Two connections for each trial, of the hundred that Postgres has for all.
TRIALS_AT_A_TIME = 12


class UsingProcess(NamedTuple):
    """A process that uses a journal and is to be frozen.

    Attributes:
        run: the run that it opens.
        keys: of the three calls that it makes; the last one is invalidated in the end.
        id: of the process.
        outcome: the file that has "done" or a traceback once the process has ended.
    """

    run: str
    keys: list[bytes]
    id: int
    outcome: Path


class Forked:
    """Starts processes as forks of one with the necessary imports."""

    def __init__(self, origin: subprocess.Popen[str], folder: Path) -> None:
        self._origin = origin
        self._folder = folder
        self._one_at_a_time = asyncio.Lock()

    async def start(self, where: str) -> UsingProcess:
        """Start a process with a run and calls of its own."""
        run = os.urandom(6).hex()
        keys = [os.urandom(16) for _ in range(3)]
        outcome = self._folder / run
        hexadecimal = [key.hex() for key in keys]
        request = {"where": where, "run": run, "keys": hexadecimal, "patience": PATIENCE}
        async with self._one_at_a_time:
            # In a thread, because the event loop has to forward the messages of the other
            # processes.
            number = await asyncio.to_thread(
                self._fork, json.dumps({**request, "outcome": str(outcome)})
            )
        return UsingProcess(run, keys, number, outcome)

    def _fork(self, request: str) -> int:
        assert self._origin.stdin
        assert self._origin.stdout
        print(request, file=self._origin.stdin, flush=True)
        return int(self._origin.stdout.readline())


@contextmanager
def forked_processes(folder: Path) -> Iterator[Forked]:
    with child(
        sys.executable, "-c", FORKED, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as origin:
        yield Forked(origin, folder)


async def messages_of(forked: Forked, where: str) -> list[str]:
    """Return the kind of each message that an undisturbed process sends to Postgres."""
    async with stopping_proxy() as proxy:
        process = await forked.start(through(where, proxy))
        proxy.process.set_result(process.id)
        await reached(process.outcome.exists)
        assert process.outcome.read_text() == "done"
    return proxy.kinds


def through(where: str, proxy: StoppingProxy) -> str:
    url = make_url(where).set(host="127.0.0.1", port=proxy.port)
    return url.render_as_string(hide_password=False)


async def fault_when_frozen(forked: Forked, where: str, number: int, forwarded: float) -> str:
    """Stop a process at a message, ask for the calls that it was making, and let it go on.

    Returns:
        What went wrong; empty if the calls were free in time, and the process then came to its end.
    """
    what = f"stopped when {forwarded:.0%} of message {number} had been sent"
    async with stopping_proxy(number, forwarded) as proxy:
        process = await forked.start(through(where, proxy))
        proxy.process.set_result(process.id)
        try:
            await reached(lambda: proxy.stopped.is_set() or process.outcome.exists())
            if not proxy.stopped.is_set():
                return f"{what}: ended before with {process.outcome.read_text()}"
            began = time.monotonic()
            async with opened(
                where, run=f"other than {process.run}", shared=True, **PATIENCE
            ) as journal:
                async with asyncio.timeout(HANG_GUARD):
                    await asyncio.gather(*(journal.reserve(key) for key in process.keys))
                seconds = time.monotonic() - began
            if seconds > LEASE + 15:
                return f"{what}: held others for {seconds:.1f} s, with a lease of {LEASE:g} s"
            proxy.go_on()
            await reached(process.outcome.exists)
        except TimeoutError:
            return f"{what}: " + (
                "hangs when it goes on" if proxy.goes_on else "holds others for ever"
            )
        finally:
            with suppress(ProcessLookupError):
                os.kill(process.id, signal.SIGKILL)
    outcome = process.outcome.read_text()
    if outcome != "done":
        return f"{what}: went on and ended with {outcome}"
    left = await asyncio.to_thread(traces_of, where, process)
    return "" if left == AS_UNDISTURBED else f"{what}: left {left}"


AS_UNDISTURBED = {"calls": [False, False, True], "claims": 0, "settled": [True]}


def traces_of(where: str, process: UsingProcess) -> dict[str, object]:
    """Return a process's traces in the journal: invalidated calls, claims, and batches."""
    engine = journal_location(where).engine()
    with engine.connect() as connection:
        rows = connection.execute(
            select(calls.c.key, calls.c.invalidated).where(calls.c.key.in_(process.keys))
        )
        in_order = sorted((process.keys.index(row.key), row.invalidated) for row in rows)
        of_keys = select(func.count()).select_from(claims).where(claims.c.key.in_(process.keys))
        settled = select(batches.c.settled).where(batches.c.run == process.run)
        return {
            "calls": [invalidated for _, invalidated in in_order],
            "claims": connection.scalar(of_keys),
            "settled": list(connection.scalars(settled)),
        }


@pytest.mark.slow
async def test_a_process_that_freezes_at_any_message_holds_others_at_most_its_lease_and_15_seconds(
    postgres: str, tmp_path: Path
) -> None:
    # Tables first: to create them, processes take a lock that all trials would share.
    store_at(postgres).close()
    at_a_time = asyncio.Semaphore(TRIALS_AT_A_TIME)

    async def trial(number: int, forwarded: float) -> str:
        async with at_a_time:
            return await fault_when_frozen(forked, postgres, number, forwarded)

    with forked_processes(tmp_path) as forked:
        numbers = range(1, len(await messages_of(forked, postgres)) + 1)
        whole = [(number, 1.0) for number in numbers]
        half = [(number, 0.5) for number in numbers[::8]]
        faults = await asyncio.gather(*(trial(*moment) for moment in [*whole, *half]))
    assert [*filter(None, faults)] == []


@pytest.mark.slow
async def test_every_statement_is_one_message_to_postgres(postgres: str, tmp_path: Path) -> None:
    store_at(postgres).close()
    with forked_processes(tmp_path) as forked:
        kinds = await messages_of(forked, postgres)
    assert set(kinds) == {"start", "Q", "X"}, (
        "a process frozen between parts of a statement would keep its locks"
    )


async def test_what_another_process_is_making_is_noted_as_waited_for(postgres: str) -> None:
    now, waits = 0.0, Waits(clock=lambda: now)
    async with opened(postgres, run="a") as first, opened(postgres, run="b", waits=waits) as second:
        assert await first.reserve(key(1)) is None
        waiting = asyncio.create_task(second.reserve(key(1)))
        await asyncio.sleep(0.5)
        assert waits.summary() == "", "told of a wait that is short so far"
        now = 60.0
        assert waits.summary() == "waiting for another process (it is making the same call)"
        await first.keep(key(1), entry())
        await asyncio.wait_for(waiting, HANG_GUARD)
        assert waits.summary() == ""


async def test_a_database_that_is_away_is_noted_as_waited_for(unused_tcp_port: int) -> None:
    waits = Waits(clock=lambda: 0.0)

    url = f"postgresql://me:hunter2@127.0.0.1:{unused_tcp_port}/test"
    opening = asyncio.create_task(Journal.open(url, run="a", retry_seconds=20, waits=waits))
    # With a stopped clock, a recorded wait remains while the next attempts are waited for.
    words = ""
    while not words:
        assert not opening.done()
        words = waits.summary(show_time=str)
        await asyncio.sleep(0.001)
    opening.cancel()
    assert words.startswith(
        f"waiting for journal postgresql://me@127.0.0.1:{unused_tcp_port}/test until "
    )
    assert "refused" in words
    assert "hunter2" not in words
