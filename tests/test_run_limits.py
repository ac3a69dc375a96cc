"""Test limits that several processes of a run share: grants, pace, stops, and budget."""

import asyncio
import math
import random
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jurygraph.eval import Evaluation, aevaluate, evaluate
from jurygraph.eval.journal import run_limits as limits
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.journal.database import openings
from jurygraph.eval.journal.records import Amounts, GrantRequest, Notice, Spent
from jurygraph.eval.journal.store import Store
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.results.merge import merge
from jurygraph.eval.run.calls.budget import BudgetTracker
from jurygraph.eval.run.calls.call_pipeline import LivePipeline, RunContext
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.nodes.models.call import Call
from jurygraph.nodes.models.rate_limiter import REQUESTS_BURST, RateLimiter, RateLimits
from jurygraph.nodes.models.retry import Waits
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.errors import StoppedError
from jurygraph.state.transcript import NO_USAGE
from langchain_core.outputs import ChatResult
from sqlalchemy import Update, select, update

from .journal_locations import SHARED, entry, key, store_at
from .processes import HANG_GUARD, Simulated, child, command_line, pairs, reached
from .sample_data import numbered
from .virtual_time import in_virtual_time

NOTHING = Amounts()


class Process:
    """One process of a run, as the journal sees it: an opening that asks, spends and gives back."""

    def __init__(self, where: str, part: int, most: Amounts) -> None:
        self.store = store_at(where, part=str(part), lease=600)
        self.limits = most
        self.allowed = NOTHING
        self.spent = 0
        self.in_flight = 0
        self.reached = ""

    def ask(self, calls: int) -> None:
        one = self._calls(min(calls, 1))
        in_flight = self._calls(self.in_flight)
        asked = GrantRequest(
            self.limits, self._calls(self.spent), in_flight, self._calls(calls), one
        )
        granted = limits.grant(self.store, asked)
        self.allowed = granted.allowed
        self.reached = granted.reached
        assert [*map(math.isinf, self.allowed)] == [*map(math.isinf, self.limits)]
        begun = (math.floor(min(self.allowed.calls, self.allowed.tokens / 120)) if calls else 0) - (
            self.spent + self.in_flight
        )
        self.in_flight += max(0, min(calls, begun))

    def end_calls(self, calls: int) -> None:
        for _ in range(min(calls, self.in_flight)):
            number = (self.store.opening << 32) + self.spent
            self.store.write([(number, bytes(16), "m", b"{}", 1, 100, 0, 20, 0, 0.25, 1.0)])
            self.spent, self.in_flight = self.spent + 1, self.in_flight - 1

    @staticmethod
    def _calls(number: int) -> Amounts:
        return Amounts(number, 120.0 * number, 0.25 * number)


def _execute(store: Store, statement: Update) -> None:
    store.transact(lambda connection: connection.execute(statement).rowcount)


@SHARED
@pytest.mark.parametrize("seed", range(3))
def test_what_processes_begin_is_never_more_than_all_may_and_ends_as_all_of_it(
    where: str, seed: int
) -> None:
    chance = random.Random(seed)
    most = [
        Amounts(40, math.inf, math.inf),
        Amounts(math.inf, 4_800, 10.0),
        Amounts(40, 4_800, 10.0),
    ][seed]
    processes = [Process(where, part, most) for part in range(4)]
    spent_by_the_dead = 0
    parts = 4
    while not any(process.reached for process in processes):
        process = chance.choice(processes)
        match chance.randrange(8):
            case 0 | 1 | 2 | 3:
                process.ask(chance.randrange(5))
            case 4 | 5 | 6:
                process.end_calls(chance.randrange(8))
            case 7 if parts < 8:
                # Killed: its lease ends, and another takes its place.
                gone = (
                    update(openings)
                    .where(openings.c.number == process.store.opening)
                    .values(alive_until=5)
                )
                _execute(process.store, gone)
                process.store.disconnect()
                spent_by_the_dead = spent_by_the_dead + process.spent
                parts = parts + 1
                processes[processes.index(process)] = Process(where, parts, most)
        begun = sum(process.spent + process.in_flight for process in processes)
        assert begun + spent_by_the_dead <= 40
        # At the end each process must be able to get the others' unused share.
        if begun + spent_by_the_dead >= 35:
            for other in processes:
                other.end_calls(2)
                other.store.renew()
    for process in processes:
        process.end_calls(100)
    assert sum(process.spent for process in processes) + spent_by_the_dead == 40
    for process in processes:
        process.store.close()


@SHARED
def test_whoever_outslept_its_lease_has_to_ask_anew_and_what_the_ended_had_is_free(
    where: str,
) -> None:
    ended = Process(where, 0, Amounts(20, math.inf, math.inf))
    ended.ask(12)
    ended.end_calls(10)
    ended.store.close()
    first, second = (Process(where, part, Amounts(20, math.inf, math.inf)) for part in (1, 2))
    first.ask(2)
    assert first.allowed.calls == 3
    first.store.renew()
    assert first.store.granted_until > 0
    lapsed = update(openings).where(openings.c.number == first.store.opening).values(alive_until=5)
    _execute(first.store, lapsed)
    # All that the first process did not use: it has written no call.
    second.ask(10)
    assert second.in_flight == 10
    granted = second.store.transact(
        lambda c: c.execute(select(openings.c.granted_calls)).scalars().all()
    )
    assert granted[0] == 0
    first.store.renew()
    assert first.store.granted_until == 0
    for process in (first, second):
        process.store.close()


@SHARED
async def test_where_one_process_stops_for_the_provider_the_others_stop_too(where: str) -> None:
    journals = [await Journal.open(where, run="a", part=str(part), lease=3) for part in range(2)]
    stops = [StopSignal(), StopSignal()]
    pipelines = [
        LivePipeline(journal, RunContext(stop=stop))
        for journal, stop in zip(journals, stops, strict=True)
    ]
    # A stop applies to all open processes, and to none that opens later.
    stops[0].ask("provider", "10 calls of m in a row failed")
    await pipelines[0].drain(0)
    await pipelines[0].finish()
    await reached(lambda: stops[1].is_asked)
    assert (stops[1].reason, stops[1].explanation) == ("provider", "10 calls of m in a row failed")
    for pipeline, journal in zip(pipelines, journals, strict=True):
        await pipeline.drain(0)
        await pipeline.finish()
        await journal.close()
    later = await Journal.open(where, run="a", part="0")
    assert await later._worker.do(Store.renew) == Notice()
    await later.close()


async def test_an_attempt_after_one_that_may_be_billed_needs_room_of_its_own() -> None:
    stop = StopSignal()
    budget = BudgetTracker(RunConfig(max_calls=3), Spent(NO_USAGE), stop)
    call = cast("Call", SimpleNamespace(messages=[], model=SimpleNamespace(label="m")))
    for _ in range(2):
        await budget.reserve(call)
    wanted = budget.estimate(call)
    # Of two calls in flight, one was abandoned: it counts as spent, and its next attempt is the
    # third.
    budget.give_up(call)
    await budget.reserve_again(wanted)
    # Once more there is room only if the other one comes to nothing.
    budget.give_up(call)
    again = asyncio.create_task(budget.reserve_again(wanted))
    assert await asyncio.wait([again], timeout=0.1) == (set(), {again})
    budget.release(wanted)
    await again
    budget.give_up(call)
    with pytest.raises(StoppedError, match="at most 3 calls"):
        await budget.reserve_again(wanted)


@SHARED
def test_booked_times_follow_each_other_over_all_processes(where: str) -> None:
    stores = [Process(where, part, NOTHING).store for part in range(2)]
    assert limits.book(stores[0], "m", "requests", 3_000.0) == 0
    # Less what has passed since the first one.
    assert 2_900 < limits.book(stores[1], "m", "requests", 6_000.0) <= 3_000
    assert 8_800 < limits.book(stores[0], "m", "requests", 1.0) <= 9_000
    assert (
        limits.book(stores[0], "m", "tokens", 1.0)
        == limits.book(stores[0], "n", "requests", 1.0)
        == 0
    )
    for store in stores:
        store.close()


@in_virtual_time
async def test_calls_of_several_processes_go_out_at_one_rate_and_book_together() -> None:
    loop = asyncio.get_running_loop()
    went = list[float]()
    booked = list[float]()
    used_until = 0.0

    async def book(_kind: str, seconds: float) -> float:
        nonlocal used_until
        await asyncio.sleep(0.01)
        begins = max(used_until, loop.time())
        booked.append(seconds)
        used_until = begins + seconds
        return begins - loop.time()

    async def work() -> None:
        went.append(loop.time())

    began = loop.time()
    used_until = began
    processes = [
        RateLimiter(
            RateLimits(16, requests_per_minute=600), asyncio.Semaphore(16), "m", Waits(), book=book
        )
        for _ in range(4)
    ]

    async def calls(process: RateLimiter) -> None:
        for _ in range(20):
            await process.run(work, 100)

    async with asyncio.TaskGroup() as group:
        for process in processes:
            for _ in range(16):
                group.create_task(calls(process))
    assert len(went) == 4 * 16 * 20
    assert booked[:4] == pytest.approx([1.6] * 4), "calls that wait together book together"
    went.sort()
    for first, later in zip(went, went[300:], strict=False):
        assert later - first >= 300 / 10 - REQUESTS_BURST - 0.1
    assert went[-1] - began == pytest.approx(len(went) / 10 - REQUESTS_BURST, abs=1)


@pytest.mark.slow
async def test_two_shards_of_a_run_share_the_rate_of_a_model(tmp_path: Path) -> None:
    """At ten requests a minute, the second shard's call follows six seconds after the first's."""
    called: list[float] = []

    def answer(_metadata: object, _prompt: str) -> str:
        called.append(time.monotonic())
        return "Score: 4"

    def run(shard: str) -> Coroutine[Any, Any, Evaluation]:
        return aevaluate(
            "single",
            data,
            aspects=["fluency"],
            models={"*": ScriptedModel(script=answer)},
            settings={"structured": "off"},
            out=tmp_path / "out",
            shard=shard,
            journal=tmp_path / "calls.sqlite",
            requests_per_minute=10,
        )

    data = numbered(tmp_path, 2)
    shards = await asyncio.gather(run("1/2"), run("2/2"))
    assert [len(shard.results) for shard in shards] == [1, 1]
    first, second = called
    assert second - first > 4


class Counting(ScriptedModel):
    """Counts concurrent calls."""

    at_once: int = 0
    most: int = 0

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0.1)
        self.at_once -= 1
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


async def test_a_shared_budget_with_enough_room_lets_items_run_in_parallel(tmp_path: Path) -> None:
    model = Counting(script={"scorer": ["Score: 4"] * 8})
    done = await aevaluate(
        "single",
        numbered(tmp_path, 8),
        aspects=["fluency"],
        models={"*": model},
        settings={"structured": "off"},
        journal=tmp_path / "calls.sqlite",
        max_calls=100,
        concurrency=4,
    )
    assert not done.failed
    assert model.most == 4


@SHARED
async def test_the_others_are_told_that_one_waits_and_what_it_gets_is_no_longer_theirs(
    where: str,
) -> None:
    noticed: list[Notice] = []
    first = await Journal.open(where, run="a", part="1")
    first.listen(noticed.append)
    most = Amounts(8, math.inf, math.inf)
    one = Amounts(1)
    mine = await first.grant(GrantRequest(most, NOTHING, NOTHING, one, one))
    assert mine.allowed.calls == 2
    assert first.holds_grant()
    second = await Journal.open(where, run="a", part="2")
    theirs = await second.grant(GrantRequest(most, NOTHING, NOTHING, Amounts(7), one))
    assert (theirs.allowed.calls, theirs.reached) == (6, "")
    await reached(lambda: Notice(others_wait=True) in noticed)
    await first.grant(GrantRequest(most, NOTHING, NOTHING, NOTHING, NOTHING))
    theirs = await second.grant(GrantRequest(most, NOTHING, Amounts(6), one, one))
    assert theirs.allowed.calls == 7
    await second.keep(key(1), entry())
    await first.close()
    await asyncio.wait_for(second.close(), HANG_GUARD)


@SHARED
async def test_many_parts_that_start_ask_and_end_at_once_do_not_lock_each_other_out(
    where: str,
) -> None:
    async def part(number: int) -> float:
        journal = await Journal.open(where, run="a", part=str(number))
        most = Amounts(20, math.inf, math.inf)
        one = Amounts(1)
        made = 0
        while True:
            granted = await journal.grant(
                GrantRequest(most, Amounts(made), NOTHING, Amounts(2), one)
            )
            if granted.allowed.calls <= made:
                break
            assert await journal.reserve(key(100 * number + made)) is None
            await journal.keep(key(100 * number + made), entry())
            made += 1
        await journal.close()
        return made

    async with asyncio.timeout(HANG_GUARD):
        made = await asyncio.gather(*(part(number) for number in range(8)))
    # A process without further share has ended, so later returns of others may remain unused.
    assert 12 < sum(made) <= 20
    journal = await Journal.open(where, run="a")
    assert journal.totals().calls == sum(made)
    await journal.close()


MODEL = "openai:gpt-4o-mini"
SHORT_LEASE = """
from jurygraph.eval.journal.call_journal import Journal
opening = Journal.open
Journal.open = lambda where, **options: opening(where, **{**options, "lease": 3})
from jurygraph.eval.cli.start import main
main()
"""


@contextmanager
def shards(
    of: int, data: Path, out: Path, journal: str, *options: str
) -> Iterator[list[subprocess.Popen[str]]]:
    command = command_line(
        f"run single --data {data} --model {MODEL} --out {out} --journal '{journal}'"
    )
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                child(
                    *(
                        sys.executable,
                        "-c",
                        SHORT_LEASE,
                        *command,
                        "--shard",
                        f"{number}/{of}",
                        *options,
                    ),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
            for number in range(1, of + 1)
        ]


@pytest.mark.slow
def test_one_budget_stops_all_processes(
    simulated: Simulated, postgres: str, tmp_path: Path
) -> None:
    data = pairs(tmp_path, 90)
    out = tmp_path / "out"
    with shards(3, data, out, postgres, "--max-calls", "50", "--concurrency", "4") as processes:
        ends = [process.communicate(timeout=HANG_GUARD) for process in processes]
    assert [process.returncode for process in processes] == [4, 4, 4], ends
    assert all(
        "the budget is reached: at most 50 calls" in " ".join((out + err).split())
        for out, err in ends
    )
    assert simulated.stats()["requests"] == 50
    assert next(iter(summarize(postgres).by_run.values())).calls == 50
    # A larger budget includes the spending of all, and no call is repeated.
    with shards(3, data, out, postgres, "--max-calls", "70", "--concurrency", "4") as processes:
        ends = [process.communicate(timeout=HANG_GUARD) for process in processes]
    assert {process.returncode for process in processes} <= {0, 4}, ends
    assert simulated.stats()["requests"] == 70
    merge(sorted(out.glob("shard-*")), tmp_path / "merged")
    rest = evaluate(
        "single",
        data,
        models={"*": MODEL},
        out=tmp_path / "merged",
        journal=postgres,
        max_calls=10_000,
    )
    assert not rest.failed
    made = simulated.stats()["requests"]
    assert made == summarize(postgres).spent.calls == sum(line.calls for line in rest.results)
