"""Test that a journal stores and serves calls: file, shared file, Postgres, and the command."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.cli.app import app
from jurygraph.eval.journal.admin import prune, summarize
from jurygraph.eval.journal.call_journal import KeyFilter
from jurygraph.eval.journal.records import Batch
from jurygraph.state.errors import UsageError
from jurygraph.state.transcript import Usage
from typer.testing import CliRunner

from .journal_locations import entry, key, opened, schema, store_at


async def test_spending_is_carried_over_openings_and_one_unknown_price_makes_it_unknown(
    where: str,
) -> None:
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


async def test_a_call_is_written_also_if_its_waiting_is_cancelled_or_the_journal_closes(
    where: str,
) -> None:
    async with opened(where, run="a") as journal:
        cancelled, *keeping = [
            asyncio.create_task(journal.keep(key(n), entry(str(n)))) for n in range(50)
        ]
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


@pytest.mark.parametrize(("choice", "gone", "left"), [
    ({"invalidated": True}, 1, {1, 2, 3}), ({"run": "a"}, 2, {3}), ({"older_than_days": -1}, 4, set()),
    ({"older_than_days": 1}, 0, {1, 2, 3}), ({"run": "a", "invalidated": True}, 0, {1, 2, 3}),
])  # fmt: skip
async def test_pruning_keeps_the_cost(
    where: str, choice: dict[str, Any], gone: int, left: set[int]
) -> None:
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
        served = {
            number for number in (1, 2, 3, 4) if await journal.reserve(key(number)) is not None
        }
    assert served == left


async def test_a_call_takes_half_a_kilobyte_at_most_and_is_pruned_from_the_disk(
    tmp_path: Path,
) -> None:
    reply = os.urandom(750).hex()
    file = tmp_path / "journal.sqlite"
    async with opened(file, run="a") as journal:
        for _ in range(20):
            await asyncio.gather(*(journal.keep(os.urandom(16), entry(reply)) for _ in range(64)))
    before = file.stat().st_size
    assert before / 1280 - len(reply) < 512
    assert prune(file, run="a") == 1280
    assert summarize(file).bytes < before / 5


def test_the_filter_misses_no_key_and_is_seldom_wrong_about_strangers() -> None:
    seen = KeyFilter()
    noted = [os.urandom(16) for _ in range(100_000)]
    for key_of_call in noted:
        seen.add(key_of_call)
    assert all(map(seen.may_hold, noted))
    assert sum(seen.may_hold(os.urandom(16)) for _ in range(10_000)) < 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    asyncio.run(_two_runs(str(tmp_path / "journal.sqlite")))
    return tmp_path


async def _two_runs(where: str) -> None:
    for number, (run, model, cost) in enumerate([("ab12", "small", 0.25), ("cd34", "large", None)]):
        async with opened(where, run=run) as journal:
            await journal.keep(key(number), entry(model=model, cost=cost))
            await journal.invalidate([key(1)])


def _shown(*arguments: str) -> str:
    return CliRunner().invoke(app, ["journal", *arguments], catch_exceptions=False).output


def test_a_journal_is_shown_with_what_each_model_and_run_spent(where: str) -> None:
    asyncio.run(_two_runs(where))
    shown = _shown(where)
    about = " ".join(shown.split())
    for told in (
        "version 2, ",
        "2 calls, 2 replies cached, from 20",
        "1 invalidated, 0 in flight now",
    ):
        assert told in about
    for words in (
        ["small", "1", "100", "40", "20", "$0.2500"],
        ["cd34", "1", "100", "40", "20", "unknown"],
    ):
        assert any(
            [cell for cell in line.split() if cell != "│"] == words for line in shown.splitlines()
        )


def test_what_is_named_is_deleted_and_nothing_without_prune(folder: Path) -> None:
    with pytest.raises(UsageError, match="add --prune to delete it"):
        _shown(str(folder), "--run", "ab12")
    with pytest.raises(UsageError, match=r"--prune needs .* --older-than DAYS"):
        _shown(str(folder), "--prune")
    with pytest.raises(UsageError, match="say which replies"):
        prune(str(folder / "journal.sqlite"))
    with pytest.raises(UsageError, match="no run 'z'; runs are ab12, cd34"):
        _shown(str(folder), "--run", "z", "--prune")
    assert summarize(folder / "journal.sqlite").replies == 2
    assert "deleted 1 reply" in _shown(str(folder / "journal.sqlite"), "--invalidated", "--prune")
    assert "deleted 1 reply" in _shown(str(folder), "--run", "ab12", "--prune")
    assert "deleted 0 replies" in _shown(str(folder), "--older-than", "0", "--prune")


def test_a_place_without_a_journal_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"journal\.sqlite: there is no journal"):
        _shown(str(tmp_path))
    assert not (tmp_path / "journal.sqlite").exists()
    with schema() as url, pytest.raises(UsageError, match="there is no journal"):
        _shown(url)
