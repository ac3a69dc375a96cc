"""Which failed calls are worth another attempt, and when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from ...state.errors import ModelCallError
from .call import Call, Reply, Send

log = logging.getLogger("jurygraph.calls")

LONGEST_RETRY_AFTER = 3600.0
"""Seconds: a provider that wants to be left alone for longer is asked again all the same."""


@dataclass(frozen=True)
class RetryPolicy:
    """How long to wait for a reply, and how often to ask again.

    Attributes:
        attempts: at most so many for one call.
        timeout: seconds that one attempt may take.
        first_wait: seconds before the second attempt, at most; doubled from then on.
        longest_wait: seconds before an attempt, at most, unless the provider names a time itself.
    """

    attempts: int = 12
    timeout: float = 180.0
    first_wait: float = 0.5
    longest_wait: float = 60.0


DEFAULT_RETRY_POLICY = RetryPolicy()


async def call_with_retry(call: Call, send: Send, retry_policy: RetryPolicy | None = None) -> Reply:
    """Attempt a call until it succeeds, cannot succeed, or has been attempted often enough.

    Waits grow exponentially, with full jitter; a ``Retry-After`` is honoured. How long one attempt may take is for
    ``send`` to see to (``with_timeout``).

    Raises:
        ModelCallError: the last attempt's.
    """
    retry_policy = retry_policy or DEFAULT_RETRY_POLICY
    try:
        return await send(call)
    except ModelCallError as error:
        if not error.retryable:
            raise
        return await _again(error, call, send, retry_policy)


async def _again(error: ModelCallError, call: Call, send: Send, retry_policy: RetryPolicy) -> Reply:
    """What comes after a failed first attempt; apart, since most calls need none of it."""
    failed = iter([error])

    async def once_more() -> Reply:
        if first := next(failed, None):
            raise first
        return await send(call)

    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelCallError) and error.retryable),
        stop=stop_after_attempt(retry_policy.attempts),
        wait=_pause(retry_policy),
        before_sleep=lambda state: _tell(call, state),
        retry_error_callback=_give_up,
    )
    reply: Reply = await retrying(once_more)
    return reply


def _pause(retry_policy: RetryPolicy) -> Callable[[RetryCallState], float]:
    backoff = wait_random_exponential(multiplier=retry_policy.first_wait, max=retry_policy.longest_wait)

    def seconds(state: RetryCallState) -> float:
        asked = _error(state).retry_after
        return backoff(state) if asked is None else min(asked, LONGEST_RETRY_AFTER) + 0.1 * backoff(state)

    return seconds


def with_timeout(send: Send, seconds: float) -> Send:
    """An attempt that is given up after so many seconds, and is then as good as a lost connection."""

    async def in_time(call: Call) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await send(call)
        except TimeoutError as error:
            problem = f"{call.model.label}: no reply within {seconds:g} seconds"
            raise ModelCallError(problem, retryable=True) from error

    return in_time


def _error(state: RetryCallState) -> ModelCallError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ModelCallError)
    return error


def _tell(call: Call, state: RetryCallState) -> None:
    waiting = state.next_action.sleep if state.next_action else 0.0
    log.info(
        "another attempt",
        extra={
            "model": call.model.label,
            "attempt": state.attempt_number,
            "wait_seconds": round(waiting, 3),
            "reason": str(_error(state)),
        },
    )


def _give_up(state: RetryCallState) -> Reply:
    error = _error(state)
    problem = f"{error} (given up after {state.attempt_number} attempts)"
    raise ModelCallError(problem, retryable=True, rate_limited=error.rate_limited) from error
