"""Test several processes on one journal: one call each, and short waits for dead ones."""

import asyncio
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import openings
from jurygraph.eval.journal.records import JournalError
from jurygraph.eval.journal.store import Store
from sqlalchemy import update

from .journal_locations import SHARED, entry, key, opened, store_at
from .processes import HANG_GUARD

pytestmark = SHARED
IDENTICAL_WORK = """
import asyncio, random, sys
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.records import Entry
from jurygraph.state import Usage

where, run, log, calls = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

async def main():
    journal = await Journal.open(where, run=run, shared=True)
    async def one(number):
        key = number.to_bytes(4, "big") * 4
        reply = await journal.reserve(key)
        if reply is None:
            with open(log, "a") as made:
                made.write(f"{number}\\n")
            await asyncio.sleep(random.uniform(0.01, 0.05))
            reply = str(number).encode()
            await journal.keep(key, Entry("m", reply, Usage(1, 1, 0, 1, 0, 0.001, 0.1)))
        assert reply == str(number).encode()
    numbers = list(range(calls))
    random.Random(run).shuffle(numbers)
    queue = iter(numbers)
    async def work():
        for number in queue:
            await one(number)
    await asyncio.gather(*(work() for _ in range(16)))
    await journal.close()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_identical_work_in_three_processes_makes_each_call_once(
    where: str, tmp_path: Path
) -> None:
    log = tmp_path / "calls.txt"
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            IDENTICAL_WORK,
            where,
            run,
            str(log),
            "200",
            stderr=asyncio.subprocess.PIPE,
        )
        for run in ("a", "b", "c")
    ]
    ends = await asyncio.wait_for(
        asyncio.gather(*(process.communicate() for process in processes)), HANG_GUARD
    )
    assert [process.returncode for process in processes] == [0, 0, 0], ends
    made = Counter(log.read_text().split())
    assert made == Counter(str(number) for number in range(200))
    summary = summarize(where)
    assert (summary.spent.calls, summary.claims) == (200, 0)


def dead_process(where: str, lease: float) -> Store:
    """Make a process that has claimed a call and will neither make it nor renew its lease."""
    store = store_at(where, "dead", lease=lease)
    assert store.reserve([key(1)]) == ({}, {key(1)})
    return store


async def test_whoever_asks_second_gets_the_reply_of_the_first_or_makes_a_released_call(
    where: str,
) -> None:
    async with opened(where, run="a") as first, opened(where, run="b") as second:
        for number in (1, 2):
            assert await first.reserve(key(number)) is None
        served, released = (asyncio.create_task(second.reserve(key(number))) for number in (1, 2))
        assert await asyncio.wait([served, released], timeout=0.6) == (set(), {served, released})
        await first.keep(key(1), entry("the first's"))
        await first.release(key(2))
        assert await asyncio.wait_for(served, HANG_GUARD) == b"the first's"
        assert await asyncio.wait_for(released, HANG_GUARD) is None
        assert second.totals().calls == 0
    assert summarize(where).claims == 0, "a journal that is closed has left a claim"


@pytest.mark.slow
async def test_the_living_keep_their_claims_beyond_the_lease_and_the_dead_only_so_long(
    where: str,
) -> None:
    began = time.monotonic()
    dead = dead_process(where, lease=2)
    async with opened(where, run="b", lease=2) as journal:
        assert await asyncio.wait_for(journal.reserve(key(1)), HANG_GUARD) is None
    # Leases end at whole seconds of the database's clock, so a lease of two lasts more than one.
    assert 1 < time.monotonic() - began < HANG_GUARD
    dead.disconnect()
    async with opened(where, run="a", lease=6) as first, opened(where, run="b", lease=6) as second:
        assert await first.reserve(key(1)) is None
        waiting = asyncio.create_task(second.reserve(key(1)))
        await asyncio.sleep(7)
        assert not waiting.done()
        await first.keep(key(1), entry("slow"))
        assert await asyncio.wait_for(waiting, HANG_GUARD) == b"slow"


@pytest.mark.parametrize("run", ["dead", "b"], ids=["taken up again", "clock set back"])
async def test_a_resumed_run_or_one_with_its_clock_set_back_awaits_no_dead(
    where: str, run: str
) -> None:
    dead = dead_process(where, lease=600)
    if run == "b":
        far = update(openings).values(alive_until=4_000_000_000)
        dead.transact(lambda connection: connection.execute(far))
    async with opened(where, run=run) as journal:
        assert await asyncio.wait_for(journal.reserve(key(1)), HANG_GUARD) is None
    dead.disconnect()


async def test_a_call_that_nobody_waits_for_any_more_is_not_claimed(where: str) -> None:
    async with opened(where, run="a") as first, opened(where, run="b") as second:
        asking = asyncio.create_task(first.reserve(key(1)))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.wait_for(second.reserve(key(1)), HANG_GUARD) is None


async def test_whoever_waits_for_another_process_is_told_when_the_journal_closes(
    where: str,
) -> None:
    dead = dead_process(where, lease=600)
    journal = await Journal.open(where, run="b", lease=600)
    waiting = asyncio.create_task(journal.reserve(key(1)))
    await asyncio.sleep(0.3)
    await journal.close()
    with pytest.raises(JournalError, match="the journal is closed"):
        await asyncio.wait_for(waiting, HANG_GUARD)
    with pytest.raises(JournalError, match="the journal is closed"):
        await asyncio.wait_for(journal.keep(key(2), entry()), HANG_GUARD)
    dead.disconnect()
