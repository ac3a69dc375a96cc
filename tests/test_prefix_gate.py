"""Calls with a common prefix: the first is answered before the others, and no time is lost."""

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.results.results import Key
from jurygraph.eval.run.calls.job_queue import JobQueue
from jurygraph.eval.run.calls.judge_item import JudgementContext, current_judgement
from jurygraph.eval.run.calls.prefix_gate import BLOCK, PrefixGate
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.eval.run.calls.workers import Workers
from jurygraph.graphs import single
from jurygraph.nodes.models.call import Call
from jurygraph.nodes.models.scripted_model import ScriptedModel
from langchain_core.messages import HumanMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from .virtual_time import in_virtual_time

ITEMS = 120
ASPECTS = ("coherence", "consistency", "fluency", "relevance")


def call(text: str, own: str = "") -> Call:
    """A call whose prompt begins with four blocks of this text."""
    prompt = (text * 4 * BLOCK)[: 4 * BLOCK] + own
    given = SimpleNamespace(model=SimpleNamespace(label="m"), messages=[HumanMessage(prompt)])
    return cast("Call", given)


def key(item: str, aspect: str = "wit") -> Key:
    return Key(item, aspect, "single", 0)


class Provider:
    """Answers after some seconds of the loop's clock, at most ``slots`` calls at a time."""

    def __init__(self, gate: PrefixGate | None, slots: int) -> None:
        self.gate = gate
        self.slots = asyncio.Semaphore(slots)
        self.draw = random.Random(0)
        self.answered: set[str] = set()
        self.read_before = 0
        self.sent = list[str]()
        self.fail = set[str]()

    async def ask(self, text: str, own: str = "", seconds: float | None = None) -> None:
        if self.gate is None:
            await self._send(text, own, seconds)
            return
        async with self.gate.passing(call(text, own)) as passage:
            await self._send(text, own, seconds)
            self.gate.answered(passage)

    async def _send(self, text: str, own: str, seconds: float | None) -> None:
        async with self.slots:
            self.sent.append(f"{text}{own}")
            self.read_before += text in self.answered
            await asyncio.sleep(self.draw.uniform(0.6, 1.4) if seconds is None else seconds)
            if f"{text}{own}" in self.fail:
                raise ValueError("refused")
            self.answered.add(text)


async def judge_all(jobs: Sequence[Key], provider: Provider, slots: int, agents: int = 1) -> float:
    """Judge all jobs, each with agents that are asked at once; return the seconds."""

    async def work(job: Key) -> None:
        current_judgement.set(JudgementContext(job, {}))
        async with asyncio.TaskGroup() as asked:
            for agent in range(agents):
                asked.create_task(provider.ask(job.item, f"{job.aspect} {agent}"))

    started = asyncio.get_running_loop().time()
    ahead = 0 if provider.gate is None else slots
    queue = JobQueue[Key](iter(jobs), lambda job: job.item, ahead)
    await Workers[Key](slots, StopSignal(), provider.gate).do_all(queue, work)
    return asyncio.get_running_loop().time() - started


def test_an_item_is_opened_by_one_job_and_the_last_jobs_are_others() -> None:
    jobs = [key(f"{item}", aspect) for item in range(40) for aspect in ASPECTS]
    queue = JobQueue[Key](iter(jobs), lambda job: job.item, ahead=8)
    in_flight: deque[Key] = deque()
    taken = list[Key]()
    ended = set[str]()
    unread = 0
    while True:
        if len(in_flight) < 8 and (job := queue.take()) is not None:
            unread += job.item in {other.item for other in taken} - ended
            taken.append(job)
            in_flight.append(job)
        elif in_flight:
            job = in_flight.popleft()
            ended.add(job.item)
            queue.ended(job)
        else:
            break
    assert sorted(taken) == sorted(jobs)
    assert [job.item for job in taken[:8]] == [f"{number}" for number in range(8)]
    assert unread == 0
    last_opened = max(taken.index(key(f"{item}", ASPECTS[0])) for item in range(40))
    assert len(jobs) - last_opened > 8


def test_without_jobs_ahead_the_order_stays() -> None:
    jobs = [key(item, aspect) for item in "abc" for aspect in ASPECTS]
    queue = JobQueue[Key](iter(jobs), lambda job: job.item, ahead=0)
    taken = list[Key]()
    while (job := queue.take()) is not None:
        taken.append(job)
        if len(taken) % 3 == 0:
            queue.ended(job)
    assert taken == jobs


def test_jobs_of_one_item_are_all_taken_at_once() -> None:
    queue = JobQueue[Key](iter([key("a", name) for name in ASPECTS]), lambda job: job.item, 16)
    assert [queue.take() for _ in range(5)] == [*(key("a", name) for name in ASPECTS), None]


@pytest.mark.parametrize("slots", [16, 64])
@pytest.mark.parametrize(("aspects", "agents"), [(4, 1), (1, 3), (4, 3)])
def test_most_calls_find_their_prefix_read_and_the_run_takes_no_longer(
    slots: int, aspects: int, agents: int
) -> None:
    jobs = [
        key(f"item {number}", aspect) for number in range(ITEMS) for aspect in ASPECTS[:aspects]
    ]

    @in_virtual_time
    async def compare() -> None:
        at_once = Provider(None, slots)
        usual = await judge_all(jobs, at_once, slots, agents)
        held = Provider(PrefixGate(slots), slots)
        seconds = await judge_all(jobs, held, slots, agents)
        later = len(held.sent) - ITEMS
        assert len(held.sent) == len(at_once.sent) == len(jobs) * agents
        assert held.read_before / later > 0.9
        assert at_once.read_before / later < held.read_before / later
        assert seconds < 1.03 * usual

    compare()


@in_virtual_time
async def test_a_lone_verdict_asks_all_its_agents_at_once() -> None:
    provider = Provider(PrefixGate(16), 16)
    assert await judge_all([key("a")], provider, 16, agents=6) < 1.5
    assert await judge_all([key(name) for name in "bcd"], provider, 16, agents=3) < 1.5


@in_virtual_time
async def test_a_failure_lets_the_next_call_go_first() -> None:
    gate = PrefixGate(2)
    gate.start_others = lambda: True
    provider = Provider(gate, 2)
    provider.fail = {"a1"}
    current_judgement.set(JudgementContext(key("a"), {}))
    asked = [asyncio.create_task(provider.ask("a", str(number), 1.0)) for number in (1, 2, 3)]
    await asyncio.sleep(0.5)
    assert provider.sent == ["a1"]
    await asyncio.sleep(1.0)
    assert provider.sent == ["a1", "a2"]
    first, *others = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(first, ValueError)
    assert others == [None, None]
    assert provider.sent == ["a1", "a2", "a3"]
    assert gate.standing == 0


@in_virtual_time
async def test_a_released_call_does_not_wait_for_a_retry() -> None:
    gate = PrefixGate(2)
    gate.start_others = lambda: True
    current_judgement.set(JudgementContext(key("a"), {}))
    provider = Provider(gate, 2)
    async with gate.passing(call("a", "first")) as first:
        other = asyncio.create_task(provider.ask("a", "other", 1.0))
        await asyncio.sleep(0.1)
        assert not provider.sent
        gate.release(first)
        await asyncio.sleep(0.1)
        assert provider.sent == ["aother"]
        await other


@in_virtual_time
async def test_cancelled_calls_leave_nothing_waiting() -> None:
    gate = PrefixGate(2)
    gate.start_others = lambda: True
    provider = Provider(gate, 2)
    current_judgement.set(JudgementContext(key("a"), {}))
    asked = [asyncio.create_task(provider.ask("a", str(number), 1.0)) for number in range(4)]
    await asyncio.sleep(0.5)
    asked[1].cancel()
    asked[0].cancel()
    await asyncio.sleep(0.1)
    assert provider.sent == ["a0", "a2"]
    # Cancelled in the moment in which it may go.
    await asyncio.sleep(0.9)
    asked[3].cancel()
    done = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(one) for one in done[:3]] == [
        asyncio.CancelledError,
        asyncio.CancelledError,
        type(None),
    ]
    assert (gate.standing, gate._held, gate._first, gate._calls) == (0, type(gate._held)(), {}, {})


@in_virtual_time
async def test_calls_of_other_items_and_short_ones_do_not_wait() -> None:
    gate = PrefixGate(4)
    gate.start_others = lambda: True
    provider = Provider(gate, 4)

    async def ask(item: str, text: str, own: str) -> None:
        current_judgement.set(JudgementContext(key(item), {}))
        await provider.ask(text, own, 1.0)

    async with asyncio.TaskGroup() as group:
        for item, text in (("a", "x"), ("b", "x"), ("a", "y")):
            group.create_task(ask(item, text, item))
        await asyncio.sleep(0.5)
        assert len(provider.sent) == 3


@in_virtual_time
async def test_an_error_of_a_job_ends_all_workers() -> None:
    provider = Provider(PrefixGate(4), 4)
    provider.fail = {"item 3coherence 0"}
    jobs = [key(f"item {number}", aspect) for number in range(50) for aspect in ASPECTS]
    with pytest.raises(ExceptionGroup):
        await judge_all(jobs, provider, 4)
    assert len(provider.sent) < 40


class Reading(ScriptedModel):
    """Counts the later calls of an item that were sent before any of them had a reply."""

    begun: set[str] = Field(default_factory=set)
    answered: set[str] = Field(default_factory=set)
    unread: int = 0

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        judgement = current_judgement.get()
        assert judgement is not None
        self.unread += judgement.key.item in self.begun - self.answered
        self.begun.add(judgement.key.item)
        await asyncio.sleep(0.05)
        self.answered.add(judgement.key.item)
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


@pytest.mark.parametrize("at_once", [False, True])
def test_the_aspects_of_an_item_are_judged_after_its_first_call(at_once: bool) -> None:
    model = Reading(script=lambda about, _prompt: f"Fine.\nScore: {about['low']}")
    graph = single.build(models={"*": model}, structured="off")
    rows = [
        {"id": str(n), "source": f"Source {n}. " * 150, "candidate": "Short."} for n in range(12)
    ]
    done = evaluate(
        {"single": graph}, rows, aspects=ASPECTS, concurrency=4, ignore_prefixes=at_once
    )
    assert len(done.results) == len(model.calls) == 48
    assert not done.failed
    # At the end, nothing else could be judged meanwhile. On a busy machine, some of the calls that
    # are sent at once come late.
    assert model.unread > 6 if at_once else model.unread <= 6
