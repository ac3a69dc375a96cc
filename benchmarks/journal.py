"""Measure the cost of saving calls: the journal alone, with one worker per call in flight.

    python -m benchmarks.journal [--calls 20000] [--concurrency 64] [--journal FILE_OR_URL]
    python -m benchmarks.journal --opening 5000000 [--journal FILE_OR_URL]    seconds to open a run of so many calls
    python -m benchmarks.journal --rate 600 --journal URL    whether four processes keep one limit on requests a minute

Each worker reserves a call's key, waits as long as a provider takes, and saves the reply. The cost
of the same without a journal is subtracted. Bytes are those of the database minus the replies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import COUNTER_BITS, journal_location
from jurygraph.eval.journal.records import Entry
from jurygraph.eval.journal.store import Patience, Store
from jurygraph.state.transcript import Usage
from sqlalchemy import text

from .scenario import middle, options, scratch, show, show_machine
from .simulated_provider import simulated
from .simulated_replies import prose

HEADINGS = (
    "journal",
    "calls a second",
    "CPU per call, ms",
    "bytes per call beside the text",
    "must",
    "goal",
)


@dataclass(frozen=True)
class Load:
    """The amount of data and the pace of the writers.

    Attributes:
        calls: the number of calls, made by ``concurrency`` workers.
        latency: seconds per call.
        words: words per reply.
    """

    calls: int
    concurrency: int
    latency: float
    words: int = 80

    def keys(self) -> Iterator[bytes]:
        """Yield the identities of the calls."""
        return (blake2b(b"%d" % number, digest_size=16).digest() for number in range(self.calls))

    def entry(self, key: bytes) -> Entry:
        """A finished call."""
        reply = json.dumps(
            {
                "text": f"{key.hex()} {prose('reply', self.words)}",
                "cut_off": False,
                "refused": False,
            }
        )
        return Entry(
            "openai:sim-model", reply.encode(), Usage(1, 400, 0, 130, 0, 0.0001, self.latency)
        )

    @property
    def text(self) -> int:
        """Bytes of one reply."""
        return len(self.entry(bytes(16)).reply)


async def _worker(load: Load, keys: Iterator[bytes], journal: Journal | None) -> None:
    for key in keys:
        if journal is not None:
            await journal.reserve(key)
        await asyncio.sleep(load.latency)
        entry = load.entry(key)
        if journal is not None:
            await journal.keep(key, entry)


async def drive(load: Load, where: str | None) -> tuple[float, float]:
    """Return the wall and CPU seconds of all calls; ``where``: the journal, None for none."""
    journal = await Journal.open(where, run="benchmark") if where else None
    keys = load.keys()
    started = time.perf_counter()
    cpu = _cpu()
    async with asyncio.TaskGroup() as group:
        for _ in range(load.concurrency):
            group.create_task(_worker(load, keys, journal))
    seconds = time.perf_counter() - started
    cpu = _cpu() - cpu
    if journal is not None:
        await journal.close()
    return seconds, cpu


_CALL = "number, key, created, model, requests, input_tokens, cached_input_tokens, output_tokens, reasoning_tokens"
_MANY = {
    "sqlite": """
        WITH RECURSIVE series(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM series WHERE i < :calls)
        INSERT INTO jurygraph_calls (CALL, cost_usd, seconds, reply)
        SELECT :first + i, randomblob(16), 1, 'm', 1, 400, 0, 130, 0, 0.0001, 0.5, zeroblob(100) FROM series""",
    "postgresql": """
        INSERT INTO jurygraph_calls (CALL, cost_usd, seconds, reply)
        SELECT :first + i, decode(md5(CAST(i AS text)), 'hex'), 1, 'm', 1, 400, 0, 130, 0, 0.0001, 0.5,
        decode(repeat('00', 100), 'hex') FROM generate_series(1, :calls) i""",
}


def opening(where: str, calls: int) -> list[float]:
    """Return the seconds to open a run of many calls: without sums, with sums, and after a kill."""
    place = journal_location(where)

    def store() -> Store:
        return Store(
            place, "benchmark", part="", shared=True, fresh=False, patience=Patience(600, 60)
        )

    made = store()
    first = made.opening << COUNTER_BITS
    insert = text(_MANY[made.dialect.name].replace("CALL", _CALL))
    made.transact(
        lambda connection: connection.execute(insert, {"first": first, "calls": calls}) and None
    )
    seconds = []
    for _ in range(2):
        made.disconnect()  # as when a process is killed
        seconds.append(_seconds_to_open(where, calls))
        made = store()
    made.close()
    return seconds


def _seconds_to_open(where: str, calls: int) -> float:
    async def once() -> float:
        started = time.perf_counter()
        journal = await Journal.open(where, run="benchmark")
        seconds = time.perf_counter() - started
        assert journal.totals().calls == calls
        await journal.close()
        return seconds

    return asyncio.run(once())


PACED = """
import asyncio, os, sys, time
from functools import partial
import aiohttp
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.nodes.models.rate_limiter import RateLimiter, RateLimits
from jurygraph.nodes.models.retry import Waits
where, part, rate, ends, address = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]

async def main():
    journal = await Journal.open(where, run="paced", part=part)
    limits = RateLimits(16, requests_per_minute=rate)
    limiter = RateLimiter(limits, asyncio.Semaphore(16), "m", Waits(), book=partial(journal.book, "m"))
    async with aiohttp.ClientSession() as session:
        async def send():
            print(time.time(), flush=True)
            body = {"model": "sim-model", "messages": [{"role": "user", "content": "How good is it? Score: "}]}
            async with session.post(address + "/chat/completions", json=body) as reply:
                await reply.read()
        async def work():
            while time.time() < ends:
                await limiter.run(send, 100)
        await asyncio.gather(*(work() for _ in range(16)))
    await journal.close()

asyncio.run(main())
"""


def paced(where: str, rate: float, processes: int, minutes: float) -> tuple[int, float]:
    """Return the most requests in any minute, and the requests a minute after the first seconds."""
    with simulated(latency_ms=50) as provider:
        ends = time.time() + 10 + 60 * minutes
        commands = [
            [sys.executable, "-c", PACED, where, str(part), str(rate), str(ends), provider.url]
            for part in range(processes)
        ]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands
        ]
        went = sorted(float(line) for one in started for line in one.communicate()[0].split())
    last = 0
    most = 0
    for first, moment in enumerate(went):
        while last < len(went) and went[last] < moment + 60:
            last += 1
        most = max(most, last - first)
    steady = [moment for moment in went if went[0] + 10 <= moment < ends]
    return most, 60 * len(steady) / (ends - went[0] - 10)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def size(path: Path) -> int:
    """Bytes of an SQLite database once its write-ahead log is written back."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


def main() -> None:
    """The command line."""
    parser = options(__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--journal", help="a place; default: an SQLite file of its own")
    parser.add_argument("--opening", type=int, metavar="CALLS")
    parser.add_argument("--rate", type=float, metavar="REQUESTS_A_MINUTE")
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=2.0)
    arguments = parser.parse_args()
    if arguments.opening or arguments.rate:
        _other_modes(arguments)
        return
    calls = arguments.calls // 10 if arguments.quick else arguments.calls
    load = Load(calls, arguments.concurrency, arguments.latency_ms / 1000)
    show_machine()
    costs = []
    rates = []
    extra = []
    with scratch() as folder:
        for at in range(arguments.repeats):
            path = folder / f"{at}.sqlite"
            _, bare = asyncio.run(drive(load, None))
            seconds, cpu = asyncio.run(drive(load, arguments.journal or str(path)))
            costs.append(1000 * (cpu - bare) / calls)
            rates.append(calls / seconds)
            extra += [size(path) / calls - load.text] if path.exists() else []
    shown = middle(extra) if extra else "not told"
    kind = "SQLite" if extra else str(arguments.journal).partition(":")[0]
    show(
        "P4",
        HEADINGS,
        [(kind, middle(rates), middle(costs), shown, "0.4 ms; 2 KB", "0.2 ms; 0.5 KB")],
    )


def _other_modes(arguments: argparse.Namespace) -> None:
    show_machine()
    with scratch() as folder:
        where = arguments.journal or f"sqlite:///{folder}/journal.sqlite"
        kind = where.partition(":")[0]
        if arguments.opening:
            show(
                "opening a run",
                ("journal", "calls", "sums not kept yet, s", "sums kept, s"),
                [(kind, arguments.opening, *opening(where, arguments.opening))],
            )
            return
        kept = paced(where, arguments.rate, arguments.processes, arguments.minutes)
        show(
            "one rate for all",
            ("journal", "processes", "limit", "most in any minute", "a minute, steady"),
            [(kind, arguments.processes, arguments.rate, *kept)],
        )


if __name__ == "__main__":
    main()
