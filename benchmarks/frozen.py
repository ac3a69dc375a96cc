"""Stop or kill a process in each transaction on a shared Postgres journal, and time the others.

    python -m benchmarks.frozen [--lease 10]

One process requests a call and saves its reply. It is stopped (SIGSTOP) or killed after one of its
statements, before the commit. From then on another process requests the same call. It should wait
at most the lease and 15 seconds. The exit code is 1 if it took longer, or if the stopped process
does not continue correctly.

The database is that of ``JURYGRAPH_TEST_POSTGRES``; the tables have their own schema.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
import time

from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Entry
from jurygraph.state import Usage

from .durability import schema
from .scenario import show, show_machine

WORKER = """
import asyncio, os, sys, time
from sqlalchemy import event
from sqlalchemy.engine import Engine
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Entry
from jurygraph.state import Usage

where, statement, number, lease = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
seen = []

@event.listens_for(Engine, "after_cursor_execute")
def freeze(connection, cursor, said, *_):
    if said.startswith(statement) and not seen:
        seen.append(said)
        os.write(1, b"x")
        os.kill(os.getpid(), number)
        time.sleep(0.2)  # the signal may come to another thread first

async def main():
    journal = await Journal.open(where, run="stopped", lease=lease)
    if await journal.reserve(bytes(16)) is None:
        await journal.keep(bytes(16), Entry("m", b"{}", Usage(1, 1, 0, 1, 0, 0.001, 0.1)))
    await journal.close()

asyncio.run(main())
"""
MOMENTS = {
    "creating tables": "SELECT pg_advisory_xact_lock",
    "opening": "INSERT INTO jurygraph_openings",
    "claiming": "INSERT INTO jurygraph_claims",
    "writing": "INSERT INTO jurygraph_calls",
    "freeing": "DELETE FROM jurygraph_claims WHERE jurygraph_claims.key",
}
SIGNALS = (signal.SIGSTOP, signal.SIGKILL)
ALLOWED = 15.0


async def waited(where: str, lease: float) -> float:
    """Ask for the same call from another process; how long that took."""
    started = time.perf_counter()
    journal = await Journal.open(where, run="other", lease=lease)
    if await journal.reserve(bytes(16)) is None:
        await journal.keep(bytes(16), Entry("m", b"{}", Usage(1, 1, 0, 1, 0, 0.001, 0.1)))
    seconds = time.perf_counter() - started
    await journal.close()
    return seconds


def trial(statement: str, number: signal.Signals, lease: float) -> tuple[float, bool]:
    """Stop or kill one process; return another's wait, and whether a stopped one went on."""
    with schema() as where:
        command = [sys.executable, "-c", WORKER, where, statement, str(int(number)), str(lease)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout
                assert process.stdout.read(1) == b"x", (
                    "the worker ended before it was to be stopped"
                )
                seconds = asyncio.run(waited(where, lease))
                process.send_signal(signal.SIGCONT)
                went_on = process.wait(60) == 0
            finally:
                process.kill()
    return seconds, went_on or number == signal.SIGKILL


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lease", type=float, default=10.0, help="of a claim, in seconds")
    lease = parser.parse_args().lease
    show_machine()
    rows = []
    sound = True
    for moment, statement in MOMENTS.items():
        for number in SIGNALS:
            seconds, went_on = trial(statement, number, lease)
            sound = sound and went_on and seconds <= lease + ALLOWED
            rows.append((moment, number.name, seconds, "yes" if went_on else "no"))
    show(
        f"frozen, lease {lease:g} s",
        ("in the middle of", "signal", "others waited, s", "went on well"),
        rows,
    )
    sys.exit(not sound)


if __name__ == "__main__":
    main()
