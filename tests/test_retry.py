"""Which failed calls are attempted again, when, and how often."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call, Reply
from jurygraph.nodes.models.resolver import wrap
from jurygraph.nodes.models.retry import RetryPolicy, Waits
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.models.send import attempt, call_with_retry, with_timeout
from jurygraph.state import ModelCallError
from jurygraph.state.errors import TransientCallError
from jurygraph.state.settings import ModelSpec
from jurygraph.state.usage import Usage
from langchain_core.messages import HumanMessage

from .virtual_time import in_virtual_time, others_have_begun

CALL = Call(wrap(ScriptedModel(script={})), [], None, {})
REPLY = Reply("4", None, False, False, Usage(1, 10, 0, 2, 0, None, 0.1))
QUICK = RetryPolicy(first_wait=0.001, longest_wait=0.002)


class Sender:
    """Fails as told, then answers."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.attempts = 0

    async def __call__(self, call: Call) -> Reply:
        self.attempts += 1
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


@pytest.mark.parametrize(
    ("errors", "attempts"),
    [
        ([passing(), passing(), passing()], 4),
        ([ModelCallError("the key was refused")], 1),
        ([passing(), ModelCallError("the key was refused")], 2),
        ([KeyError("a mistake")], 1),
    ],
)
async def test_what_passes_is_attempted_again_and_what_stays_is_not(
    errors: list[Exception], attempts: int
) -> None:
    sender = Sender(*errors)
    if attempts > len(errors):
        assert await call_with_retry(CALL, sender, QUICK) is REPLY
    else:
        with pytest.raises(type(errors[-1]), match=f"^{re.escape(str(errors[-1]))}$"):
            await call_with_retry(CALL, sender, QUICK)
    assert sender.attempts == attempts


async def test_at_last_it_is_given_up_and_says_how_often_it_was_tried() -> None:
    sender = Sender(*(passing() for _ in range(9)))
    with pytest.raises(ModelCallError, match=r"try again \(given up after 3 attempts\)"):
        await call_with_retry(CALL, sender, RetryPolicy(attempts=3, first_wait=0.001))
    assert sender.attempts == 3


async def test_waits_grow_up_to_the_longest(waits: list[float]) -> None:
    retry_policy = RetryPolicy(attempts=40, first_wait=1.0, longest_wait=8.0)
    for _ in range(20):
        await call_with_retry(CALL, Sender(*(passing() for _ in range(10))), retry_policy)
    nth: Callable[[int], list[float]] = lambda n: waits[n::10]  # noqa: E731
    assert max(nth(0)) <= 1.0 < max(nth(1)) <= 2.0 < max(nth(2)) <= 4.0
    assert 4.0 < max(nth(9)) <= 8.0
    assert len(set(nth(9))) == 20, "no jitter"


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
        await call_with_retry(CALL, Sender(*(passing(retry_after=asked) for _ in range(50))), policy)
    assert sum(waits) == pytest.approx(100.0)


@in_virtual_time
async def test_a_call_that_waits_is_noted_with_the_time_until_when() -> None:
    loop = asyncio.get_running_loop()
    noted = Waits(loop.time)
    waiting = asyncio.create_task(call_with_retry(CALL, Sender(passing(retry_after=60.0)), QUICK, noted))
    await others_have_begun()
    told = noted.summary(show_time=lambda until: f"{until:.0f}")
    assert told == f"waiting for {CALL.model.label} until 60 (next attempt)"
    await waiting
    assert noted.summary() == ""


@in_virtual_time
async def test_an_attempt_that_takes_too_long_is_as_good_as_a_lost_connection() -> None:
    async def hang(call: Call) -> Reply:
        await asyncio.sleep(3600)
        return REPLY

    with pytest.raises(ModelCallError, match=r"no reply within 0.01 seconds") as raised:
        await with_timeout(hang, 0.01)(CALL)
    assert raised.value.retryable


@in_virtual_time
async def test_a_models_name_may_limit_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    name = "openai:qwen?base_url=http://127.0.0.1:9/v1"
    limited, usual = ModelSpec.parse(f"{name}&max_wait=0"), ModelSpec.parse(name)
    model = resolver.load(limited, asyncio.get_running_loop())
    assert model.identity == resolver.load(usual, asyncio.get_running_loop()).identity
    assert str(limited.identified) == str(usual)
    call = Call(model, [HumanMessage("Hi.")], None, {"agent": "scorer", "round": 1})
    with (
        pytest.warns(UserWarning, match="no call succeeds"),
        pytest.raises(ModelCallError, match="1 attempts"),
    ):
        await call_with_retry(call, attempt)


async def test_waiting_can_be_cancelled() -> None:
    patient = asyncio.create_task(call_with_retry(CALL, Sender(passing(retry_after=3600.0))))
    await asyncio.sleep(0.01)
    patient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await patient
