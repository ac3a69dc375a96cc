"""Test the simulated provider of ``benchmarks/``, on which their figures depend."""

import http.client
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from .processes import HANG_GUARD, simulated_address
from .source_tree import ROOT, beside

beside("benchmarks/simulated_provider.py")
SCENARIOS = (
    "durability, economy, frozen, journal, memory, profiling, raw_client, scale, speed, storm"
)

Ask = Callable[..., tuple[int, Any]]


@contextmanager
def running(*options: str) -> Iterator[Ask]:
    """Run the provider as a script; a call of the result returns status and body."""
    with simulated_address(*options) as address:
        host = urlsplit(address).netloc

        def ask(
            method: str, path: str, body: Any = None, timeout: float = HANG_GUARD
        ) -> tuple[int, Any]:
            with closing(http.client.HTTPConnection(host, timeout=timeout)) as client:
                client.request(method, path, json.dumps(body) if body else None)
                reply = client.getresponse()
                text = reply.read()
                return reply.status, json.loads(text) if text.startswith(b"{") else text

        yield ask


def question(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def complete(ask: Ask, text: str, **more: Any) -> tuple[int, Any]:
    return ask("POST", "/v1/chat/completions", question(text, **more))


def content(reply: tuple[int, Any]) -> str:
    return str(reply[1]["choices"][0]["message"]["content"])


def test_a_reply_is_a_function_of_its_request_and_every_request_is_counted() -> None:
    with running() as ask:
        one, again, other = (complete(ask, text) for text in ("a", "a", "b"))
        seen = ask("GET", "/stats")[1]
        ask("POST", "/reset")
        anew = ask("GET", "/stats")[1]
    assert one == again
    assert content(one) != content(other)
    assert (seen["requests"], seen["distinct"], seen["repeated"], seen["answered_twice"]) == (
        3,
        2,
        1,
        1,
    )
    assert (anew["requests"], anew["distinct"]) == (0, 0)


def test_a_storm_is_the_same_each_time_and_an_attempt_later_another() -> None:
    def weather(ask: Ask) -> list[int]:
        return [complete(ask, f"call {number}")[0] for number in range(200)]

    with running("--faults", "limit=0.2,error=0.2") as ask:
        first = weather(ask)
        second = weather(ask)
        ask("POST", "/reset")
        again = weather(ask)
    assert first == again
    assert first != second
    assert 20 <= first.count(429) <= 60
    assert 20 <= sum(status >= 500 for status in first) <= 60


@pytest.mark.slow
def test_every_scenario_can_be_imported() -> None:
    command = [sys.executable, "-c", f"from benchmarks import {SCENARIOS}"]
    finished = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
