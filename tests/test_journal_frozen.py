"""A process stopped or killed in the middle of a transaction: the others go on, and it survives being cut off."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.nodes.models.retry import Waits

from .journal_locations import entry, key, opened
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
    assert (summarize(postgres).spent.calls, summarize(postgres).claims) == (survived, 0), "lost or doubled"


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
    # By a clock that stands still, a wait that was noted stays as long as the next attempts are waited for.
    words = ""
    while not words:
        assert not opening.done()
        words = waits.summary(show_time=str)
        await asyncio.sleep(0.001)
    opening.cancel()
    assert words.startswith(f"waiting for journal postgresql://me@127.0.0.1:{unused_tcp_port}/test until ")
    assert "refused" in words
    assert "hunter2" not in words
