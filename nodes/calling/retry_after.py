"""How long a provider wants to be left alone, in all the ways in which providers say it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any


def retry_after(headers: Mapping[str, str], body: object) -> float | None:
    """Seconds until the next request is welcome; None where the provider does not say.

    Read from ``Retry-After-Ms``, from ``Retry-After`` (seconds or an HTTP date), from the ``RetryInfo`` in an error of
    Google's, and from OpenAI's ``x-ratelimit-reset-*`` of what is used up; the first that is there counts.

    Args:
        headers: of the response, names in lower case.
        body: its JSON.

    >>> retry_after({"retry-after": "2"}, None)
    2.0
    >>> retry_after({}, {"error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "7s"}]}})
    7.0
    >>> retry_after({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"}, None)
    90.0
    """
    said = (_milliseconds(headers), _seconds_or_date(headers), _retry_info(body), _reset(headers))
    return next((max(0.0, wait) for wait in said if wait is not None and math.isfinite(wait)), None)


def _milliseconds(headers: Mapping[str, str]) -> float | None:
    wait = _number(headers.get("retry-after-ms"))
    return None if wait is None else wait / 1000


def _seconds_or_date(headers: Mapping[str, str]) -> float | None:
    said = headers.get("retry-after")
    wait = _number(said)
    if wait is not None or said is None:
        return wait
    until = _date(said)
    # By the server's own clock where it tells it: ours may be wrong.
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return None if until is None else (until - now).total_seconds()


def _retry_info(body: object) -> float | None:
    for part in _parts(body):
        if isinstance(delay := part.get("retryDelay"), str):
            return _duration(delay)
    return None


def _reset(headers: Mapping[str, str]) -> float | None:
    used_up = [kind for kind in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{kind}") == "0"]
    waits = (_duration(headers.get(f"x-ratelimit-reset-{kind}", "")) for kind in used_up)
    return max((wait for wait in waits if wait is not None), default=None)


def _parts(body: object) -> Iterator[dict[str, Any]]:
    """Every JSON object in there, however it is wrapped."""
    if isinstance(body, dict):
        yield body
    for inner in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        yield from _parts(inner)


_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_STRETCH = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def _duration(said: str) -> float | None:
    """``7s``, ``1m30.5s``, ``20ms``."""
    stretches = _STRETCH.findall(said)
    if not stretches or _STRETCH.sub("", said):
        return None
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in stretches)


def _number(said: str | None) -> float | None:
    try:
        return None if said is None else float(said)
    except ValueError:
        return None


def _date(said: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(said)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
