"""The journal keeps calls and serves them again: in a file, in a shared file and in Postgres."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.journal.admin import prune, summarize
from jurygraph.eval.journal.records import Batch
from jurygraph.state.transcript import Usage

from .journal_locations import entry, key, opened, store_at


async def test_spending_is_carried_over_openings_and_one_unknown_price_makes_it_unknown(where: str) -> None:
    for number in range(3):
        async with opened(where, run="a") as journal:
            await journal.keep(key(number), entry())
    async with opened(where, run="b") as other:
        assert other.totals().cost_usd == 0.0
        await other.keep(key(9), entry())
    async with opened(where, run="a") as journal:
        assert journal.totals() == Usage(3, 300, 120, 60, 15, 0.75, 4.5)
        await journal.keep(key(3), entry(cost=None))
        await journal.keep(key(4), entry(cost=0.5))
        assert journal.totals().cost_usd is None
    async with opened(where, run="a") as journal:
        assert (journal.totals().calls, journal.totals().cost_usd) == (5, None)


async def test_a_disowned_reply_is_not_served_but_stays_counted(where: str) -> None:
    async with opened(where, run="a") as journal:
        await journal.keep(key(1), entry("unusable"))
        await journal.keep(key(2), entry("usable"))
        await journal.invalidate([key(1)])
        assert await journal.reserve(key(1)) is None
        await journal.keep(key(1), entry("better"))
        assert await journal.reserve(key(1)) == b"better"
        assert await journal.reserve(key(2)) == b"usable"
    async with opened(where, run="a") as again:
        assert await again.reserve(key(1)) == b"better"
        assert again.totals().calls == 3


async def test_a_fresh_run_passes_over_what_was_kept_before_it(where: str) -> None:
    async with opened(where, run="a") as journal:
        await journal.keep(key(1), entry("old"))
        await journal.keep(key(2), entry("old"))
    async with opened(where, run="b", fresh=True) as fresh:
        assert await fresh.reserve(key(1)) is None
        await fresh.keep(key(1), entry("new"))
        assert await fresh.reserve(key(1)) == b"new"
        assert fresh.totals().calls == 1
    async with opened(where, run="b", fresh=True) as resumed:
        assert await resumed.reserve(key(1)) == b"new"
        assert await resumed.reserve(key(2)) is None
    async with opened(where, run="a") as later:
        assert await later.reserve(key(1)) == b"new"
        assert await later.reserve(key(2)) == b"old"


async def test_a_call_is_written_also_if_its_waiting_is_cancelled_or_the_journal_closes(where: str) -> None:
    async with opened(where, run="a") as journal:
        cancelled, *keeping = [asyncio.create_task(journal.keep(key(n), entry(str(n)))) for n in range(50)]
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    await asyncio.gather(*keeping)
    async with opened(where, run="a") as again:
        assert await again.reserve(key(0)) == b"0"
        assert again.totals().calls == 50


async def test_a_call_written_again_after_a_doubtful_end_is_one_call(where: str) -> None:
    store = store_at(where)
    for _ in range(2):
        store.write([(store.opening << 32, key(1), "m", b"{}", 1, 10, 0, 5, 0, 0.5, 1.0)])
    assert store.spent().usage.calls == 1
    store.close()


async def test_batches_are_noted_changed_and_settled(where: str) -> None:
    async with opened(where, run="a") as journal:
        await journal.note_batch("batch_1", {"calls": 2})
        await journal.note_batch("batch_2", {"calls": 5})
        await journal.note_batch("batch_1", {"calls": 3})
        await journal.settle_batch("batch_2")
    async with opened(where, run="a") as again:
        found = {batch.id: batch for batch in await again.batches()}
    first = found["batch_1"]
    assert first == Batch("batch_1", False, {"calls": 3})
    assert found["batch_2"].settled

    async with opened(where, run="b") as other:
        assert await other.batches() == []


@pytest.mark.parametrize(
    ("choice", "gone", "left"),
    [
        ({"invalidated": True}, 1, {1, 2, 3}),
        ({"run": "a"}, 2, {3}),
        ({"older_than_days": -1}, 4, set()),
        ({"older_than_days": 1}, 0, {1, 2, 3}),
        ({"run": "a", "invalidated": True}, 0, {1, 2, 3}),
    ],
)
async def test_pruning_keeps_the_cost(where: str, choice: dict[str, Any], gone: int, left: set[int]) -> None:
    for run, numbers in {"a": (1, 2), "b": (3,)}.items():
        async with opened(where, run=run) as journal:
            for number in numbers:
                await journal.keep(key(number), entry())
    async with opened(where, run="b") as journal:
        await journal.keep(key(4), entry())
        await journal.invalidate([key(4)])
    before = summarize(where)
    assert prune(where, **choice) == gone

    after = summarize(where)
    assert after.replies == before.replies - gone
    assert after.spent == before.spent
    async with opened(where, run="c") as journal:
        served = {number for number in (1, 2, 3, 4) if await journal.reserve(key(number)) is not None}
    assert served == left


async def test_a_call_takes_half_a_kilobyte_at_most_and_is_pruned_from_the_disk(tmp_path: Path) -> None:
    reply, file = os.urandom(750).hex(), tmp_path / "journal.sqlite"
    async with opened(file, run="a") as journal:
        for _ in range(20):
            await asyncio.gather(*(journal.keep(os.urandom(16), entry(reply)) for _ in range(64)))
    before = file.stat().st_size
    assert before / 1280 - len(reply) < 512
    assert prune(file, run="a") == 1280
    assert summarize(file).bytes < before / 5
