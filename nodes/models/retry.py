"""Retry failed calls: decide which are worth another attempt, and how long to wait before it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from ...state.errors import ModelCallError, TransientCallError
from .call import Call, Reply, Send

log = logging.getLogger("jurygraph.calls")

LONGEST_RETRY_AFTER = 3600.0
"""Seconds: a longer ``Retry-After`` is cut to this."""


@dataclass(frozen=True)
class RetryPolicy:
    """Say how long to wait for a reply, and how often to ask again.

    Attributes:
        attempts: the most attempts at one call, the first included.
        timeout: the seconds that one attempt may take.
        first_wait: the most seconds to wait before the second attempt; the bound doubles with each attempt.
        longest_wait: the most seconds to wait before any attempt, unless the provider names a time itself.
    """

    attempts: int = 12
    timeout: float = 180.0
    first_wait: float = 0.5
    longest_wait: float = 60.0


DEFAULT_RETRY_POLICY = RetryPolicy()


async def call_with_retry(call: Call, send: Send, retry_policy: RetryPolicy | None = None) -> Reply:
    """Send a call until it succeeds, fails for good, or has had all its attempts.

    Waits grow exponentially, with full jitter; a ``Retry-After`` is honoured.

    Args:
        call: what is sent.
        send: makes one attempt; ``with_timeout`` limits how long it may take.
        retry_policy: how many attempts, and how long to wait between them.

    Raises:
        ModelCallError: the error of the last attempt.
    """
    retry_policy = retry_policy or DEFAULT_RETRY_POLICY
    try:
        return await send(call)
    except ModelCallError as error:
        if not error.retryable:
            raise
        return await _again(error, call, send, retry_policy)


async def _again(error: ModelCallError, call: Call, send: Send, retry_policy: RetryPolicy) -> Reply:
    """Make the further attempts; apart from the first, since most calls do without tenacity's machinery."""
    failed = iter([error])

    async def once_more() -> Reply:
        # Tenacity begins with the attempt that has failed already, so that it is counted and waited for.
        if first := next(failed, None):
            raise first
        return await send(call)

    retrying = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, ModelCallError) and error.retryable),
        stop=stop_after_attempt(retry_policy.attempts),
        wait=_pause(retry_policy),
        before_sleep=lambda state: _log_retry(call, state),
        retry_error_callback=_give_up,
    )
    reply: Reply = await retrying(once_more)
    return reply


def _pause(retry_policy: RetryPolicy) -> Callable[[RetryCallState], float]:
    backoff = wait_random_exponential(multiplier=retry_policy.first_wait, max=retry_policy.longest_wait)

    def seconds(state: RetryCallState) -> float:
        asked = _error(state).retry_after
        # Some jitter on top of the time that the provider named, or all waiting calls would come back at once.
        return backoff(state) if asked is None else min(asked, LONGEST_RETRY_AFTER) + 0.1 * backoff(state)

    return seconds


def with_timeout(send: Send, seconds: float) -> Send:
    """Limit an attempt to so many seconds; when they are over it fails like a lost connection, which is retried."""

    async def in_time(call: Call) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await send(call)
        except TimeoutError as error:
            problem = f"{call.model.label}: no reply within {seconds:g} seconds"
            raise TransientCallError(problem) from error

    return in_time


def _error(state: RetryCallState) -> ModelCallError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ModelCallError)
    return error


def _log_retry(call: Call, state: RetryCallState) -> None:
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
    raise TransientCallError(problem, rate_limited=error.rate_limited) from error
