"""How many calls go out at a time, and that it follows what the provider takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jurygraph.nodes.models.rate_limiter import SLOW_START, AdaptiveConcurrency, RateLimiter, RateLimits
from jurygraph.nodes.models.retry import RetryPolicy, Waits
from jurygraph.state import ModelCallError
from jurygraph.state.errors import TransientCallError

from .virtual_time import in_virtual_time


def trips(concurrency: AdaptiveConcurrency, count: int, *, refused: float = 0.0, seconds: float = 0.5) -> int:
    """So many round trips of which a share is refused; how many calls are wanted in flight after them."""
    for _ in range(count):
        size = concurrency.limit
        for number in range(size):
            concurrency.record(seconds=seconds, refused=number < round(refused * size))
    return concurrency.limit


class Provider:
    """Takes so many calls at a time and refuses the others."""

    def __init__(self, most: int, seconds: float = 0.002) -> None:
        self.most, self.seconds = most, seconds
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
    return RateLimiter(rate_limits, asyncio.Semaphore(rate_limits.concurrency))


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


def test_it_begins_small_and_doubles() -> None:
    concurrency = AdaptiveConcurrency(maximum=200)
    assert concurrency.limit == SLOW_START
    assert [trips(concurrency, 1) for _ in range(4)] == [64, 128, 200, 200]


def test_it_never_wants_more_than_allowed_nor_less_than_one() -> None:
    assert AdaptiveConcurrency(maximum=5).limit == 5
    assert trips(AdaptiveConcurrency(maximum=64), 50, refused=1.0) == 1


def test_a_wall_of_refusals_halves_it_and_a_stray_one_does_not() -> None:
    assert trips(AdaptiveConcurrency(maximum=32), 1, refused=1.0) == 16
    assert trips(AdaptiveConcurrency(maximum=32), 1, refused=1 / 32) >= 31
    assert trips(AdaptiveConcurrency(maximum=64), 200, refused=0.1) >= 20


def test_it_recovers_when_refusals_end() -> None:
    concurrency = AdaptiveConcurrency(maximum=64)
    trips(concurrency, 10, refused=1.0)
    assert concurrency.limit == 1
    assert trips(concurrency, 100) == 64


def test_it_shrinks_when_calls_become_slow() -> None:
    concurrency = AdaptiveConcurrency(maximum=64)
    trips(concurrency, 5, seconds=1.0)
    assert concurrency.limit == 64
    assert trips(concurrency, 3, seconds=4.0) < 45


def test_milliseconds_are_noise() -> None:
    concurrency = AdaptiveConcurrency(maximum=64)
    trips(concurrency, 5, seconds=0.05)
    assert trips(concurrency, 5, seconds=0.5) == 64


def test_longer_texts_become_the_usual_in_time() -> None:
    concurrency = AdaptiveConcurrency(maximum=64)
    trips(concurrency, 5, seconds=2.0)
    trips(concurrency, 300, seconds=6.0)
    assert concurrency.limit == 64


@in_virtual_time
async def test_never_more_in_flight_than_allowed() -> None:
    provider = Provider(most=1000)
    await ask(rate_limiter(concurrency=7), provider, 100)
    assert (provider.peak, provider.calls) == (7, 100)


@in_virtual_time
async def test_it_settles_near_what_the_provider_takes() -> None:
    provider, paced = Provider(most=8), rate_limiter()
    await ask(paced, provider, 600)
    assert paced.concurrency.limit <= 16
    assert provider.refused < provider.calls / 2
    refused, calls = provider.refused, provider.calls
    await ask(paced, provider, 600)
    assert (provider.refused - refused) / (provider.calls - calls) < 0.35


@in_virtual_time
async def test_all_models_share_what_is_allowed() -> None:
    everybody, provider = asyncio.Semaphore(5), Provider(most=1000)
    rate_limiters = [RateLimiter(RateLimits(concurrency=5), everybody) for _ in range(3)]
    await asyncio.gather(*(ask(one, provider, 20) for one in rate_limiters))
    assert provider.peak == 5


def refusal(seconds: float) -> ModelCallError:
    return TransientCallError("later", rate_limited=True, retry_after=seconds)


class Refusing:
    """Refuses the first calls and names a time; when each call came."""

    def __init__(self, refused: int, seconds: float) -> None:
        self.refused, self.seconds = refused, seconds
        self.came: list[float] = []

    async def __call__(self) -> str:
        self.came.append(asyncio.get_running_loop().time())
        if len(self.came) <= self.refused:
            raise refusal(self.seconds)
        return "reply"


@in_virtual_time
async def test_after_refusals_in_a_row_nothing_goes_out_until_the_provider_says() -> None:
    paced, work = rate_limiter(concurrency=1), Refusing(3, seconds=0.2)
    results = await asyncio.gather(*(paced.run(work, 1) for _ in range(5)), return_exceptions=True)
    assert [isinstance(result, ModelCallError) for result in results] == [True] * 3 + [False] * 2
    assert work.came[3] - work.came[2] >= 0.2


@in_virtual_time
async def test_a_provider_that_asks_for_decades_holds_calls_back_no_longer_than_allowed() -> None:
    paced, work = (
        rate_limiter(concurrency=1, retry_policy=RetryPolicy(max_wait=600.0)),
        Refusing(3, seconds=1e9),
    )
    results = await asyncio.gather(*(paced.run(work, 1) for _ in range(5)), return_exceptions=True)
    assert results[3:] == ["reply", "reply"]
    assert 150 <= work.came[3] < 151


@in_virtual_time
async def test_a_provider_that_refuses_for_longer_than_allowed_is_given_up_for_all_calls() -> None:
    paced, work = (
        rate_limiter(concurrency=1, retry_policy=RetryPolicy(max_wait=600.0)),
        Refusing(1000, seconds=400.0),
    )
    results = await asyncio.gather(*(paced.run(work, 1) for _ in range(50)), return_exceptions=True)
    assert [round(moment) for moment in work.came] == [0, 0, 0, 150, 300, 450, 600]
    assert all(isinstance(result, ModelCallError) for result in results)
    assert {str(result) for result in results[7:]} == {"later (all calls refused for 600 s)"}
    with pytest.raises(ModelCallError, match="all calls refused") as raised:
        await paced.run(work, 1)
    assert (raised.value.retryable, raised.value.rate_limited) == (False, True)
    assert (len(work.came), paced.in_flight) == (7, 0)


@in_virtual_time
async def test_a_reply_in_between_begins_the_time_anew() -> None:
    paced, work = (
        rate_limiter(concurrency=1, retry_policy=RetryPolicy(max_wait=600.0)),
        Refusing(3, seconds=400.0),
    )
    for turn in range(4):
        work.refused, calls = len(work.came) + 3, [paced.run(work, 1) for _ in range(4)]
        assert (await asyncio.gather(*calls, return_exceptions=True))[3] == "reply", turn
    assert work.came[-1] >= 600


@in_virtual_time
async def test_what_is_waited_for_is_noted_until_it_is_over() -> None:
    clock, waits = asyncio.get_running_loop().time, Waits(asyncio.get_running_loop().time)
    paced = RateLimiter(RateLimits(concurrency=1), asyncio.Semaphore(1), "openai:one", waits)
    work = Refusing(3, seconds=90.0)
    calls = [asyncio.create_task(paced.run(work, 1)) for _ in range(4)]
    await asyncio.wait(calls[:3])
    told = waits.summary(show_time=lambda until: f"{until:.0f}")
    assert told == "waiting for openai:one until 90 (it refuses all calls)"
    await asyncio.wait(calls)
    assert clock() >= 90
    assert waits.summary() == ""


@in_virtual_time
async def test_requests_a_minute() -> None:
    paced, provider = rate_limiter(requests_per_minute=600), Provider(most=1000)
    started = asyncio.get_running_loop().time()
    await ask(paced, provider, 22)
    assert 0.15 <= asyncio.get_running_loop().time() - started < 2.0


@in_virtual_time
async def test_tokens_a_minute() -> None:
    paced, provider = rate_limiter(tokens_per_minute=6_000), Provider(most=1000)
    started = asyncio.get_running_loop().time()
    await ask(paced, provider, 62)  # 6,000 tokens are to be had at once; the other 200 take two seconds
    assert 1.5 <= asyncio.get_running_loop().time() - started < 4.0


@in_virtual_time
async def test_a_slow_pace_lets_one_call_through_at_once() -> None:
    paced, provider = rate_limiter(requests_per_minute=1, tokens_per_minute=10), Provider(most=10)
    async with asyncio.timeout(1):
        await paced.run(provider, 5_000)


@in_virtual_time
async def test_who_is_cancelled_while_waiting_leaves_no_hole() -> None:
    paced, provider = rate_limiter(concurrency=2), Provider(most=10, seconds=0.02)
    tasks = [asyncio.create_task(paced.run(provider, 1)) for _ in range(6)]
    await asyncio.sleep(0.005)
    for task in tasks[:4]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert done[4:] == ["reply", "reply"]
    assert paced.in_flight == 0
    await ask(paced, provider, 10)
    assert provider.peak == 2
