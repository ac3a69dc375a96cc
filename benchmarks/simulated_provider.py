"""Serve chat completions on the loopback interface, fast enough never to be the bottleneck.

    python benchmarks/simulated_provider.py --latency-ms 50 [--port 0] [--core 1] [--faults storm]
    ...

It prints its address. With ``OPENAI_BASE_URL`` set to it and any key, any client of OpenAI's chat
completions can call it. Replies are a pure function of the request. Faults depend on the request
and on how often it came, so that a storm is the same in each run. ``GET /stats`` returns the counts
(``?digests=1``: also per request), ``POST /reset`` resets them. From Python: ``with
simulated(latency_ms=50) as provider``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, cast, get_args

import orjson

if not __package__:  # run by its path: the folder is a package all the same
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    __package__ = "benchmarks"

from .simulated_replies import Asked, Critic, Manner, read_request, reply_to

Fault = Literal["limit", "error", "reset", "hang", "half", "garbage"]
"""429 with Retry-After; 500 to 504; a lost connection; no reply, ever; half a body; 200 without a
completion."""

STORM: Mapping[Fault, float] = {
    "limit": 0.10,
    "error": 0.08,
    "reset": 0.05,
    "hang": 0.03,
    "half": 0.02,
    "garbage": 0.02,
}
"""Thirty requests in a hundred fail."""


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of the provider.

    Attributes:
        latency_ms: time to a reply; the median if it varies.
        spread: standard deviation of the latency's logarithm; 0: constant.
        faults: ``none``, ``storm``, or kinds with their shares, such as ``limit=0.1,reset=0.05``.
        retry_after: the seconds in a 429.
        seed: the seed of latencies and faults.
        words: words of each text in a reply.
        critic: whether the Critic objects, agrees, or does either (``mixed``).
        tokens: the number of tokens with log-probabilities, if requested.
    """

    latency_ms: float = 0.0
    spread: float = 0.0
    faults: str = "none"
    retry_after: float = 1.0
    seed: int = 20
    words: int = 80
    critic: Critic = "objects"
    tokens: int = 64

    @property
    def manner(self) -> Manner:
        """How it words its replies."""
        return Manner(self.words, self.critic, self.tokens)

    def shares(self) -> dict[Fault, float]:
        """Each fault's share of the requests.

        >>> Behaviour(faults="limit=0.1,reset=0.05").shares()
        {'limit': 0.1, 'reset': 0.05}
        """
        if self.faults in ("none", "storm"):
            return dict(STORM) if self.faults == "storm" else {}
        pairs = (part.partition("=") for part in self.faults.split(","))
        given = {name.strip(): share for name, _, share in pairs}
        known: dict[str, Fault] = {name: name for name in get_args(Fault)}
        return {known[name]: float(share) for name, share in given.items()}


@dataclass
class Counts:
    """The counts since the last reset.

    Attributes:
        requests: requested chat completions.
        answered: requests that got a whole reply.
        abandoned: requests whose client hung up before the reply.
        characters: the size of their bodies, without HTTP headers.
        span_seconds: the time from the first request to the last reply.
        by_digest: for each request, how often it came, was answered and was abandoned.
    """

    requests: int = 0
    answered: int = 0
    abandoned: int = 0
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    characters: int = 0
    span_seconds: float = 0.0
    started: float | None = None
    faults: Counter[str] = field(default_factory=Counter)
    by_digest: dict[bytes, list[int]] = field(default_factory=dict)

    def asked(self, digest: bytes, characters: int) -> int:
        """Count a request; which of its kind it is, from 1 on."""
        self.started = time.monotonic() if self.started is None else self.started
        self.characters += characters
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        times = self.by_digest.setdefault(digest, [0, 0, 0])
        times[0] += 1
        return times[0]

    def answer(self, digest: bytes) -> None:
        """Count a reply."""
        self.answered += 1
        self.span_seconds = time.monotonic() - (self.started or 0.0)
        self.by_digest.setdefault(digest, [0, 0, 0])[1] += 1

    def abandon(self, digest: bytes) -> None:
        """Count a request whose client hung up."""
        self.abandoned += 1
        self.by_digest.setdefault(digest, [0, 0, 0])[2] += 1

    def report(self, *, digests: bool) -> dict[str, Any]:
        """All of it as JSON; ``idle_seconds`` have gone by since the last reply."""
        told: dict[str, Any] = {
            **{name: getattr(self, name) for name in _PLAIN},
            "idle_seconds": time.monotonic() - (self.started or 0.0) - self.span_seconds,
            "distinct": len(self.by_digest),
            "repeated": sum(times[0] - 1 for times in self.by_digest.values()),
            "answered_twice": sum(max(0, times[1] - 1) for times in self.by_digest.values()),
            "faults": dict(self.faults),
        }
        if digests:
            told["digests"] = {digest.hex(): times for digest, times in self.by_digest.items()}
        return told


_PLAIN = (
    *("requests", "answered", "abandoned", "connections", "in_flight", "most_in_flight"),
    *("characters", "span_seconds"),
)


class Provider:
    """The shared state of all connections."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.manner = behaviour.manner
        self.counts = Counts()
        self._shares = behaviour.shares()
        self._normal = NormalDist()
        self._seed = behaviour.seed.to_bytes(8, "big", signed=True)

    def reset(self) -> None:
        """Reset the counts; requests in flight stay, and are the new maximum."""
        pending = self.counts.in_flight
        self.counts = Counts(in_flight=pending, most_in_flight=pending)

    def fault(self, digest: bytes, attempt: int) -> tuple[Fault | None, int]:
        """Return the fault of this request, if any, and a number to choose its variant."""
        if not self._shares:
            return None, 0
        drawn = self._draw(b"fault", digest, attempt)
        point = drawn / _WHOLE
        for kind, share in self._shares.items():
            point -= share
            if point < 0:
                return kind, drawn
        return None, drawn

    def latency(self, digest: bytes, attempt: int) -> float:
        """Seconds until this request is answered."""
        seconds = self.behaviour.latency_ms / 1000
        if not self.behaviour.spread:
            return seconds
        drawn = (self._draw(b"latency", digest, attempt) + 0.5) / _WHOLE
        return seconds * float(
            2.718281828459045 ** (self.behaviour.spread * self._normal.inv_cdf(drawn))
        )

    def _draw(self, what: bytes, digest: bytes, attempt: int) -> int:
        told = b"%b %b %b %d" % (what, self._seed, digest, attempt)
        return int.from_bytes(blake2b(told, digest_size=7).digest())


_WHOLE = 2**56


# HTTP


class Connection(asyncio.Protocol):
    """One client's persistent connection."""

    def __init__(self, provider: Provider, loop: asyncio.AbstractEventLoop) -> None:
        self._provider = provider
        self._loop = loop
        self._buffer = b""
        self._pending: bytes | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._provider.counts.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._pending is not None:
            self._provider.counts.abandon(self._pending)
            self._done()

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            start = end + 4
            length = _content_length(head)
            if len(self._buffer) < start + length:
                return
            body = self._buffer[start : start + length]
            self._buffer = self._buffer[start + length :]
            self._serve(head, body)

    def _serve(self, head: bytes, body: bytes) -> None:
        method, path, _ = head.split(b" ", 2)
        if method == b"POST" and path.endswith(b"/chat/completions"):
            self._complete(body)
        elif method == b"GET" and path.startswith(b"/stats"):
            self._write(
                200, orjson.dumps(self._provider.counts.report(digests=b"digests=1" in path))
            )
        elif method == b"POST" and path == b"/reset":
            self._provider.reset()
            self._write(200, b"{}")
        else:
            self._write(404, _error(f"no such address: {path.decode(errors='replace')}"))

    def _complete(self, body: bytes) -> None:
        try:
            asked = read_request(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._write(400, _error(f"the request cannot be read: {error!r}"))
            return
        provider = self._provider
        attempt = provider.counts.asked(asked.digest, len(body))
        self._pending = asked.digest
        fault, shape = provider.fault(asked.digest, attempt)
        if fault is not None:
            provider.counts.faults[fault] += 1
        if fault == "hang":
            return
        seconds = provider.latency(asked.digest, attempt)
        if seconds:
            self._timer = self._loop.call_later(seconds, self._answer, asked, fault, shape)
        else:
            self._answer(asked, fault, shape)

    def _answer(self, asked: Asked, fault: Fault | None, shape: int) -> None:
        self._timer = None
        if fault is None:
            self._provider.counts.answer(asked.digest)
            self._done()
            self._write(200, reply_to(asked, self._provider.manner))
            return
        self._done()
        _FAULTS[fault](self, asked, shape)

    def _done(self) -> None:
        self._pending = None
        self._provider.counts.in_flight -= 1

    def _write(
        self, status: int, body: bytes, kind: bytes = b"application/json", more: bytes = b""
    ) -> None:
        self._transport.write(_head(status, len(body), kind, more) + body)

    # --- faults ---

    def limit(self, _asked: Asked, _shape: int) -> None:
        """Too many requests."""
        wait = self._provider.behaviour.retry_after
        more = b"retry-after: %d\r\nretry-after-ms: %d\r\n" % (
            max(1, round(wait)),
            round(wait * 1000),
        )
        self._write(429, _error("Rate limit reached.", "rate_limit_exceeded"), more=more)

    def error(self, _asked: Asked, shape: int) -> None:
        """The server's own fault."""
        self._write((500, 502, 503, 504)[shape % 4], _error("The server had an error."))

    def reset(self, _asked: Asked, _shape: int) -> None:
        """The connection is torn down."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def half(self, asked: Asked, _shape: int) -> None:
        """A whole body is promised, half of it sent."""
        body = reply_to(asked, self._provider.manner)
        self._transport.write(_head(200, len(body)) + body[: len(body) // 2])
        self._transport.close()

    def garbage(self, _asked: Asked, shape: int) -> None:
        """Status 200, and no completion."""
        if shape % 3 == 0:
            self._write(200, b"<html><body>Down for maintenance</body></html>", b"text/html")
        elif shape % 3 == 1:
            self._write(200, b'{"object": "chat.completion", "id": "none"}')
        else:
            self._write(200, _error("The engine is overloaded."))


_FAULTS: dict[Fault, Callable[[Connection, Asked, int], None]] = {
    "limit": Connection.limit,
    "error": Connection.error,
    "reset": Connection.reset,
    "half": Connection.half,
    "garbage": Connection.garbage,
}

_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    404: b"Not Found",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}


def _head(status: int, length: int, kind: bytes = b"application/json", more: bytes = b"") -> bytes:
    form = b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\ncontent-length: %d\r\nx-request-id: req_simulated\r\n%b\r\n"
    return form % (status, _REASONS[status], kind, length, more)


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    if at < 0:
        return 0
    return int(lower[at + 17 : (end if (end := lower.find(b"\r\n", at + 2)) > 0 else len(lower))])


def _error(message: str, code: str | None = None) -> bytes:
    return orjson.dumps(
        {"error": {"message": message, "type": "server_error", "param": None, "code": code}}
    )


# The process


async def serve(behaviour: Behaviour, port: int, *, until_stdin_ends: bool = False) -> None:
    """Answer until stopped; print the address first."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    provider = Provider(behaviour)
    server = await loop.create_server(
        lambda: Connection(provider, loop), "127.0.0.1", port, backlog=4096
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    if until_stdin_ends:
        threading.Thread(target=_wait_for_end, args=(loop, stopped), daemon=True).start()
    gc.freeze()
    async with server:
        await stopped.wait()
        server.close()
        os._exit(0)  # no client waits for the hanging connections any more


def _wait_for_end(loop: asyncio.AbstractEventLoop, stopped: asyncio.Event) -> None:
    sys.stdin.buffer.read()
    loop.call_soon_threadsafe(stopped.set)


class Simulated:
    """A provider that runs in a process of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that make OpenAI's clients call it."""
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "simulated"}

    def stats(self, *, digests: bool = False) -> dict[str, Any]:
        """Return the counts since the last reset; with ``digests``, also per request."""
        told = self._ask("GET", f"/stats{'?digests=1' if digests else ''}")
        assert isinstance(told, dict)
        return told

    def reset(self) -> None:
        """Reset the counts."""
        self._ask("POST", "/reset")

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(self.url.removesuffix("/v1") + path, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as reply:
            return json.load(reply)


@contextlib.contextmanager
def simulated(core: int | None = None, **behaviour: Any) -> Iterator[Simulated]:
    """Run a provider in its own process until the block ends; arguments as for ``Behaviour``."""
    options = [
        f"--{name.replace('_', '-')}={value}"
        for name, value in asdict(Behaviour(**behaviour)).items()
    ]
    command = [sys.executable, str(Path(__file__).resolve()), "--until-stdin-ends", *options]
    if core is not None:
        command.append(f"--core={core}")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise SystemExit("the simulated provider did not start")
            yield Simulated(address)
        finally:
            process.stdin.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--core", type=int, help="the processor core to stay on")
    parser.add_argument("--until-stdin-ends", action="store_true", help=argparse.SUPPRESS)
    default = Behaviour()
    for option in fields(Behaviour):
        value = getattr(default, option.name)
        name = f"--{option.name.replace('_', '-')}"
        told = f"default: {value}"
        parser.add_argument(name, type=type(value), default=value, metavar="X", help=told)
    arguments = vars(parser.parse_args())
    port, core, until = (arguments.pop(name) for name in ("port", "core", "until_stdin_ends"))
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    with contextlib.suppress(KeyboardInterrupt), _runner() as runner:
        runner.run(serve(Behaviour(**arguments), port, until_stdin_ends=until))


def _runner() -> asyncio.Runner:
    """Return a runner, with uvloop if installed, which serves twice as many requests a second."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


if __name__ == "__main__":
    main()
