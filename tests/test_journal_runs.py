"""Test runs of several parts on one journal and sums."""

import asyncio

import pytest
from jurygraph.eval.journal import store as journal_store
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import calls, openings
from sqlalchemy import select, update

from .journal_locations import entry, key, store_at
from .processes import HANG_GUARD


async def test_parts_of_a_run_are_open_together_and_their_spending_is_one_sum(where: str) -> None:
    if "://" not in where:
        pytest.skip("a journal that is not shared has one process")
    first, second = [await Journal.open(where, run="a", part=part) for part in ("1/2", "2/2")]
    assert await first.reserve(key(1)) is None
    waiting = asyncio.create_task(second.reserve(key(1)))
    assert await asyncio.wait([waiting], timeout=0.6) == (set(), {waiting}), (
        "a living part's claim was freed"
    )
    await first.keep(key(1), entry("the first's"))
    assert await asyncio.wait_for(waiting, HANG_GUARD) == b"the first's"
    await second.keep(key(2), entry())
    assert await first.reserve(key(3)) is None
    # The same part once more: the one before it is over, whatever it had claimed.
    again = await Journal.open(where, run="a", part="1/2")
    assert again.totals().calls == 2
    assert await asyncio.wait_for(again.reserve(key(3)), HANG_GUARD) is None
    for journal in (first, second, again):
        await journal.close()


async def test_calls_are_added_up_while_they_are_written(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_store, "_COUNTED_EVERY", 7)
    store = store_at(where)
    for wrote in range(1, 20):
        number = store.opening * 2**32 + wrote
        store.write([(number, key(wrote), "m", b"{}", 1, 10, 0, 5, 0, 0.5, 1.0)])
    counted = store.transact(lambda c: c.scalar(select(openings.c.requests)))
    assert counted == 14
    store.disconnect()


async def test_sums_are_exact_whenever_a_process_dies(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_store, "_COUNTED_EVERY", 7)
    monkeypatch.setattr(journal_store, "KEPT_AT_ONCE", 3)
    store = store_at(where, part="1")
    for wrote in range(1, 20):
        row = (
            store.opening * 2**32 + wrote,
            key(wrote),
            "m",
            b"{}",
            1,
            10 * (wrote % 3),
            0,
            5,
            0,
            0.5,
            1.0,
        )
        store.write([row])
        if wrote % 5 == 0:
            store.renew()
        # As another process finds it that opens the run at this moment.
        spent = store.spent()
        assert (spent.usage.calls, spent.known_cost, spent.usage.uncounted) == (
            wrote,
            wrote / 2,
            wrote // 3,
        )
    kept = store.transact(
        lambda c: c.execute(select(openings.c.requests, openings.c.counted_to)).one()
    )
    assert kept.requests == kept.counted_to - store.opening * 2**32 >= 14, (
        "few calls are left to add up"
    )
    store.disconnect()
    # The lease of the killed process is over: its last calls are counted by the next opening, once.
    store.transact(lambda c: c.execute(update(openings).values(alive_until=5)))
    for _ in range(2):
        other = store_at(where, part="2")
        assert other.spent().usage.calls == 19
        other.close()
    rows = store.transact(lambda c: c.execute(select(openings).order_by(openings.c.number)).all())
    assert [(row.part, row.requests, row.alive_until) for row in rows] == [
        ("1", 19, 0),
        ("2", 0, 0),
        ("2", 0, 0),
    ]
    assert (
        store.transact(lambda c: c.execute(select(calls.c.number)).all())[-1].number
        == rows[0].counted_to
    )
    store.disconnect()
