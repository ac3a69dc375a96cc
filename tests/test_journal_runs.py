"""What several processes on one journal share: a run of several parts, its sums, a journal of an earlier version."""

import asyncio
import sqlite3

import psycopg
import pytest
from jurygraph.eval.journal import store as journal_store
from jurygraph.eval.journal.admin import prune, summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import calls, openings
from jurygraph.state.transcript import Usage
from sqlalchemy import select, update

from .journal_locations import entry, key, opened, store_at
from .processes import HANG_GUARD

VERSION_1 = """
CREATE TABLE jurygraph_journal (version INTEGER NOT NULL);
CREATE TABLE jurygraph_openings (number {serial} PRIMARY KEY, run VARCHAR NOT NULL, alive_until BIGINT NOT NULL);
CREATE INDEX ix_jurygraph_openings_run ON jurygraph_openings (run);
CREATE TABLE jurygraph_calls (number {long} NOT NULL PRIMARY KEY, key {bytes} NOT NULL, created BIGINT NOT NULL,
    model VARCHAR NOT NULL, requests INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    cost_usd FLOAT, seconds FLOAT NOT NULL, disowned BOOLEAN DEFAULT false NOT NULL, reply {bytes});
CREATE INDEX jurygraph_calls_key ON jurygraph_calls (key);
CREATE TABLE jurygraph_claims (key {bytes} NOT NULL PRIMARY KEY, opening INTEGER NOT NULL);
CREATE TABLE jurygraph_batches (id VARCHAR NOT NULL PRIMARY KEY, run VARCHAR NOT NULL,
    settled BOOLEAN DEFAULT false NOT NULL, created BIGINT NOT NULL, about TEXT NOT NULL);
INSERT INTO jurygraph_journal VALUES (1);
INSERT INTO jurygraph_openings (run, alive_until) VALUES ('a', 5), ('b', 4000000000), ('a', 4000000000);
INSERT INTO jurygraph_calls VALUES
    (4294967296, {key1}, 7, 'm', 1, 100, 40, 20, 5, 0.25, 1.5, false, {reply}),
    (8589934592, {key2}, 8, 'm', 1, 100, 40, 20, 5, 0.25, 1.5, false, {reply}),
    (12884901888, {key3}, 9, 'm', 2, 100, 40, 20, 5, NULL, 1.5, false, {reply});
INSERT INTO jurygraph_batches VALUES ('batch_1', 'a', false, 7, '{{"calls": 2}}');
"""


def make_version_1(where: str) -> None:
    keys = {f"key{n}": key(n).hex() for n in (1, 2, 3)}
    if where.startswith("postgresql"):
        literals = {name: f"'\\x{hexed}'" for name, hexed in {**keys, "reply": b"old".hex()}.items()}
        with psycopg.connect(where, autocommit=True) as database:
            database.execute(
                VERSION_1.format(serial="SERIAL", long="BIGINT", bytes="BYTEA", **literals).encode()
            )
        return
    literals = {name: f"x'{hexed}'" for name, hexed in {**keys, "reply": b"old".hex()}.items()}
    with sqlite3.connect(where.removeprefix("sqlite:///")) as file:
        file.executescript(VERSION_1.format(serial="INTEGER", long="INTEGER", bytes="BLOB", **literals))
    file.close()


async def test_a_journal_of_version_1_is_used_and_brought_to_this_version(where: str) -> None:
    make_version_1(where)
    before = summarize(where)
    assert (before.version, before.spent.calls, before.replies) == (1, 4, 3)
    assert {run: spent.calls for run, spent in before.by_run.items()} == {"a": 3, "b": 1}
    assert prune(where, run="b") == 1

    journals = await asyncio.gather(*(Journal.open(where, run="a", part=str(part)) for part in range(3)))
    for journal in journals:
        assert journal.totals() == Usage(3, 200, 80, 40, 10, None, 3.0)
        assert (journal.spent.known_cost, journal.spent.unpriced) == (0.25, 1)
        assert await journal.reserve(key(1)) == b"old"
        assert [batch.id for batch in await journal.batches()] == ["batch_1"]
    await journals[0].keep(key(4), entry("new"))
    for journal in journals:
        await journal.close()
    assert summarize(where).version == 2
    async with opened(where, run="a") as again:
        assert (again.totals().calls, await again.reserve(key(4))) == (4, b"new")


async def test_parts_of_a_run_are_open_together_and_their_spending_is_one_sum(where: str) -> None:
    if "://" not in where:
        pytest.skip("a journal that is not shared has one process")
    first, second = [await Journal.open(where, run="a", part=part) for part in ("1/2", "2/2")]
    assert await first.reserve(key(1)) is None
    waiting = asyncio.create_task(second.reserve(key(1)))
    assert await asyncio.wait([waiting], timeout=0.6) == (set(), {waiting}), "a living part's claim was freed"
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


async def test_sums_are_exact_whenever_a_process_dies(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_store, "_COUNTED_EVERY", 7)
    monkeypatch.setattr(journal_store, "KEPT_AT_ONCE", 3)
    store = store_at(where, part="1")
    for wrote in range(1, 20):
        row = (store.opening * 2**32 + wrote, key(wrote), "m", b"{}", 1, 10 * (wrote % 3), 0, 5, 0, 0.5, 1.0)
        store.write([row])
        if wrote % 5 == 0:
            store.renew()
        # As another process finds it that opens the run at this moment.
        spent = store.spent()
        assert (spent.usage.calls, spent.known_cost, spent.usage.uncounted) == (wrote, wrote / 2, wrote // 3)
    kept = store.transact(lambda c: c.execute(select(openings.c.requests, openings.c.counted_to)).one())
    assert kept.requests == kept.counted_to - store.opening * 2**32 >= 14, "few calls are left to add up"
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
    assert store.transact(lambda c: c.execute(select(calls.c.number)).all())[-1].number == rows[0].counted_to
    store.disconnect()
