"""What keeping calls costs: the journal alone, written to by as many workers as there may be calls in flight.

    python -m benchmarks.journal [--calls 20000] [--concurrency 64] [--journal FILE_OR_URL]

Each worker reserves a call's key, waits as long as a provider takes, and keeps the reply; the same without the journal
is taken off. Bytes are those of the database beside the text of the replies.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from jurygraph.eval.journal import Entry, Journal
from jurygraph.state.usage import Usage

from .scenario import middle, options, scratch, show, show_machine
from .simulated_replies import prose

HEADINGS = ("journal", "calls a second", "CPU per call, ms", "bytes per call beside the text", "must", "goal")


@dataclass(frozen=True)
class Load:
    """How much is written, and how.

    Attributes:
        calls: so many, by ``concurrency`` workers.
        latency: seconds that a call takes.
        words: of a reply.
    """

    calls: int
    concurrency: int
    latency: float
    words: int = 80

    def keys(self) -> Iterator[bytes]:
        """What identifies the calls."""
        return (blake2b(b"%d" % number, digest_size=16).digest() for number in range(self.calls))

    def entry(self, key: bytes) -> Entry:
        """A finished call."""
        reply = json.dumps(
            {"text": f"{key.hex()} {prose('reply', self.words)}", "cut_off": False, "refused": False}
        )
        return Entry("openai:sim-model", reply.encode(), Usage(1, 400, 0, 130, 0, 0.0001, self.latency))

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
    """Seconds, and the processor's, of all calls; with no journal where there is no place for one."""
    journal = await Journal.open(where, run="benchmark") if where else None
    keys = load.keys()
    started, cpu = time.perf_counter(), _cpu()
    async with asyncio.TaskGroup() as group:
        for _ in range(load.concurrency):
            group.create_task(_worker(load, keys, journal))
    seconds, cpu = time.perf_counter() - started, _cpu() - cpu
    if journal is not None:
        await journal.close()
    return seconds, cpu


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
    arguments = parser.parse_args()
    calls = arguments.calls // 10 if arguments.quick else arguments.calls
    load = Load(calls, arguments.concurrency, arguments.latency_ms / 1000)
    show_machine()
    costs, rates, extra = [], [], []
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
    show("P4", HEADINGS, [(kind, middle(rates), middle(costs), shown, "0.4 ms; 2 KB", "0.2 ms; 0.5 KB")])


if __name__ == "__main__":
    main()
