"""Which failed calls are attempted again, when, and how often; how many calls go out at a time."""

import asyncio
from typing import Any

import pytest
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call, Reply
from jurygraph.nodes.models.rate_limiter import (
    SLOW_START,
    AdaptiveConcurrency,
    RateLimiter,
    RateLimits,
)
from jurygraph.nodes.models.resolver import wrap
from jurygraph.nodes.models.retry import RetryPolicy, Waits
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.models.send import attempt, call_with_retry
from jurygraph.state import ModelCallError
from jurygraph.state.errors import TransientCallError
from jurygraph.state.settings import ModelSpec
from jurygraph.state.transcript import Usage
from langchain_core.messages import HumanMessage

from .virtual_time import in_virtual_time, others_have_begun

CALL = Call(wrap(ScriptedModel(script={})), [], None, {})
REPLY = Reply("4", None, False, False, Usage(1, 10, 0, 2, 0, None, 0.1))
QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.002)


class Sender:
    """Fails as configured, then answers."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)

    async def __call__(self, call: Call) -> Reply:
        if self.errors:
            raise self.errors.pop(0)
        return REPLY


def passing(**kind: Any) -> ModelCallError:
    return TransientCallError("try again", **kind)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited for, without waiting."""
    slept: list[float] = []
    sleep = asyncio.sleep

    async def no_time(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", no_time)
    return slept


async def test_waits_grow_up_to_the_longest(waits: list[float]) -> None:
    retry_policy = RetryPolicy(attempts=40, first_wait=1.0, longest_wait=8.0)
    for _ in range(20):
        await call_with_retry(CALL, Sender(*(passing() for _ in range(10))), retry_policy)
    longest = [max(waits[nth::10]) for nth in range(10)]
    assert longest[0] <= 1.0 < longest[1] <= 2.0 < longest[2] <= 4.0 < longest[9] <= 8.0
    assert len(set(waits[9::10])) == 20, "no jitter"


@pytest.mark.parametrize(("asked", "count", "expected"), [(7.0, 1, 7.0), (86_400.0, 3, 900.0)])
async def test_the_provider_says_when_but_is_asked_every_quarter_of_an_hour(
    waits: list[float], asked: float, count: int, expected: float
) -> None:
    refusal = passing(retry_after=asked, rate_limited=True)
    await call_with_retry(CALL, Sender(*[refusal] * count), QUICK)
    assert len(waits) == count
    assert all(expected <= waited < expected + 0.1 for waited in waits)


@pytest.mark.parametrize("asked", [1e9, 40.0, 3.0])
async def test_all_waits_of_a_call_together_have_a_bound(waits: list[float], asked: float) -> None:
    policy = RetryPolicy(attempts=50, first_wait=0.001, longest_wait=0.002, max_wait=100.0)
    with pytest.raises(ModelCallError, match=r"given up after \d+ attempts and 100 s of waiting"):
        await call_with_retry(
            CALL, Sender(*(passing(retry_after=asked) for _ in range(50))), policy
        )
    assert sum(waits) == pytest.approx(100.0)


@in_virtual_time
async def test_a_call_that_waits_is_noted_with_the_time_until_when() -> None:
    loop = asyncio.get_running_loop()
    noted = Waits(loop.time)
    waiting = asyncio.create_task(
        call_with_retry(CALL, Sender(passing(retry_after=60.0)), QUICK, noted)
    )
    await others_have_begun()
    told = noted.summary(show_time=lambda until: f"{until:.0f}")
    assert told == f"waiting for {CALL.model.label} until 60 (next attempt)"
    await waiting
    assert noted.summary() == ""


@in_virtual_time
async def test_a_models_name_may_limit_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    name = "openai:qwen?base_url=http://127.0.0.1:9/v1"
    limited = ModelSpec.parse(f"{name}&max_wait=0")
    usual = ModelSpec.parse(name)
    model = resolver.load(limited, asyncio.get_running_loop())
    assert model.identity == resolver.load(usual, asyncio.get_running_loop()).identity
    assert str(limited.identified) == str(usual)
    call = Call(model, [HumanMessage("Hi.")], None, {"agent": "scorer", "round": 1})
    with (
        pytest.warns(UserWarning, match="no call succeeds"),
        pytest.raises(ModelCallError, match="1 attempts"),
    ):
        await call_with_retry(call, attempt, RetryPolicy())


# The number of concurrent calls, and its adaptation to the provider


def trips(
    concurrency: AdaptiveConcurrency, count: int, *, refused: float = 0.0, seconds: float = 0.5
) -> int:
    """Simulate round trips with a share of refusals; return the resulting limit."""
    for _ in range(count):
        size = concurrency.limit
        for number in range(size):
            concurrency.record(seconds=seconds, refused=number < round(refused * size))
    return concurrency.limit


class Provider:
    """Accepts a number of concurrent calls and refuses the others."""

    def __init__(self, most: int, seconds: float = 0.002) -> None:
        self.most = most
        self.seconds = seconds
        self.now = self.peak = self.refused = self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await asyncio.sleep(self.seconds)
            if self.now > self.most:
                self.refused += 1
                raise TransientCallError("too many", rate_limited=True)
            return "reply"
        finally:
            self.now -= 1


def rate_limiter(**allowed: Any) -> RateLimiter:
    rate_limits = RateLimits(**{"concurrency": 64, **allowed})
    return RateLimiter(rate_limits, asyncio.Semaphore(rate_limits.concurrency), "m", Waits(), None)


async def ask(rate_limiter: RateLimiter, provider: Provider, calls: int) -> None:
    async def insist() -> None:
        while True:
            try:
                await rate_limiter.run(provider, 100)
            except ModelCallError:
                await asyncio.sleep(0.002)
            else:
                return

    await asyncio.gather(*(insist() for _ in range(calls)))


def test_it_begins_small_and_doubles_up_to_what_is_allowed() -> None:
    concurrency = AdaptiveConcurrency(maximum=200)
    assert concurrency.limit == SLOW_START
    assert [trips(concurrency, 1) for _ in range(4)] == [64, 128, 200, 200]
    assert AdaptiveConcurrency(maximum=5).limit == 5


def test_a_wall_of_refusals_halves_it_a_stray_one_does_not_and_it_recovers() -> None:
    assert trips(AdaptiveConcurrency(maximum=32), 1, refused=1.0) == 16
    assert trips(AdaptiveConcurrency(maximum=32), 1, refused=1 / 32) >= 31
    assert trips(AdaptiveConcurrency(maximum=64), 200, refused=0.1) >= 20
    concurrency = AdaptiveConcurrency(maximum=64)
    assert trips(concurrency, 50, refused=1.0) == 1
    assert trips(concurrency, 100) == 64


@pytest.mark.parametrize(
    ("before", "count", "now", "least", "most"),
    [
        (1.0, 3, 4.0, 1, 44),  # calls that have become slow
        (0.05, 5, 0.5, 64, 64),  # milliseconds are noise
        (2.0, 300, 6.0, 64, 64),  # longer texts become the usual in time
    ],
)
def test_it_shrinks_if_calls_are_slow(
    before: float, count: int, now: float, least: int, most: int
) -> None:
    concurrency = AdaptiveConcurrency(maximum=64)
    assert trips(concurrency, 5, seconds=before) == 64
    assert least <= trips(concurrency, count, seconds=now) <= most


@in_virtual_time
async def test_never_more_in_flight_than_allowed_also_of_several_models() -> None:
    provider = Provider(most=1000)
    await ask(rate_limiter(concurrency=7), provider, 100)
    assert (provider.peak, provider.calls) == (7, 100)
    everybody = asyncio.Semaphore(5)
    provider = Provider(most=1000)
    rate_limiters = [
        RateLimiter(RateLimits(concurrency=5), everybody, "m", Waits(), None) for _ in range(3)
    ]
    await asyncio.gather(*(ask(one, provider, 20) for one in rate_limiters))
    assert provider.peak == 5


@in_virtual_time
async def test_it_settles_near_what_the_provider_takes() -> None:
    provider = Provider(most=8)
    paced = rate_limiter()
    await ask(paced, provider, 600)
    assert paced.concurrency.limit <= 16
    assert provider.refused < provider.calls / 2
    refused = provider.refused
    calls = provider.calls
    await ask(paced, provider, 600)
    assert (provider.refused - refused) / (provider.calls - calls) < 0.35


class Refusing:
    """Refuses the first calls and names a time; when each call came."""

    def __init__(self, refused: int, seconds: float) -> None:
        self.refused = refused
        self.seconds = seconds
        self.came: list[float] = []

    async def __call__(self) -> str:
        self.came.append(asyncio.get_running_loop().time())
        if len(self.came) <= self.refused:
            raise TransientCallError("later", rate_limited=True, retry_after=self.seconds)
        return "reply"


async def refusing(paced: RateLimiter, work: Refusing, calls: int) -> list[Any]:
    return await asyncio.gather(*(paced.run(work, 1) for _ in range(calls)), return_exceptions=True)


BOUNDED = {"concurrency": 1, "retry_policy": RetryPolicy(max_wait=600.0)}


@in_virtual_time
async def test_a_provider_that_refuses_for_longer_than_allowed_is_given_up_for_all_calls() -> None:
    paced = rate_limiter(**BOUNDED)
    work = Refusing(1000, seconds=400.0)
    results = await refusing(paced, work, 50)
    assert [round(moment) for moment in work.came] == [0, 0, 0, 150, 300, 450, 600]
    assert all(isinstance(result, ModelCallError) for result in results)
    assert {str(result) for result in results[7:]} == {"later (all calls refused for 600 s)"}
    with pytest.raises(ModelCallError, match="all calls refused") as raised:
        await paced.run(work, 1)
    assert (raised.value.retryable, raised.value.rate_limited) == (False, True)
    assert (len(work.came), paced.in_flight) == (7, 0)


@in_virtual_time
async def test_a_reply_in_between_begins_the_time_anew() -> None:
    paced = rate_limiter(**BOUNDED)
    work = Refusing(3, seconds=400.0)
    for turn in range(4):
        work.refused = len(work.came) + 3
        assert (await refusing(paced, work, 4))[3] == "reply", turn
    assert work.came[-1] >= 600


@in_virtual_time
async def test_what_is_waited_for_is_noted_until_it_is_over() -> None:
    clock = asyncio.get_running_loop().time
    waits = Waits(asyncio.get_running_loop().time)
    paced = RateLimiter(RateLimits(concurrency=1), asyncio.Semaphore(1), "openai:one", waits, None)
    work = Refusing(3, seconds=90.0)
    calls = [asyncio.create_task(paced.run(work, 1)) for _ in range(4)]
    await asyncio.wait(calls[:3])
    told = waits.summary(show_time=lambda until: f"{until:.0f}")
    assert told == "waiting for openai:one until 90 (it refuses all calls)"
    await asyncio.wait(calls)
    assert clock() >= 90
    assert waits.summary() == ""


@in_virtual_time
async def test_requests_and_tokens_a_minute() -> None:
    time = asyncio.get_running_loop().time
    provider = Provider(most=1000)
    started = time()
    await ask(rate_limiter(requests_per_minute=600), provider, 22)
    assert 0.15 <= time() - started < 2.0
    started = time()
    # 6,000 tokens are to be had at once; the other 200 take two seconds.
    await ask(rate_limiter(tokens_per_minute=6_000), provider, 62)
    assert 1.5 <= time() - started < 4.0


@in_virtual_time
async def test_a_slow_pace_lets_one_call_through_at_once() -> None:
    paced = rate_limiter(requests_per_minute=1, tokens_per_minute=10)
    provider = Provider(most=10)
    async with asyncio.timeout(1):
        await paced.run(provider, 5_000)


@in_virtual_time
async def test_who_is_cancelled_while_waiting_leaves_no_hole() -> None:
    paced = rate_limiter(concurrency=2)
    provider = Provider(most=10, seconds=0.02)
    tasks = [asyncio.create_task(paced.run(provider, 1)) for _ in range(6)]
    await asyncio.sleep(0.005)
    for task in tasks[:4]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert done[4:] == ["reply", "reply"]
    assert paced.in_flight == 0
    await ask(paced, provider, 10)
    assert provider.peak == 2
