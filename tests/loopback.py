"""Run a model provider on the loopback interface, for tests with real clients and sockets.

It speaks OpenAI's chat completions and Gemini's ``generateContent`` over HTTP/1.1 with persistent
connections, as providers do. It answers from a script and records every request. It uses the
standard library's server, which supports persistent connections and truncated replies; werkzeug's
supports neither.
"""

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from . import loopback_wire as wire
from .loopback_batches import Batches, as_request
from .loopback_http import JSON, Handler, Server
from .loopback_wire import Failure, Request, Text, Usage

__all__ = ["Failure", "Request", "Text", "Usage"]
"""Of another module, and taken from here."""

Coding = Literal["plain", "chunked", "gzip"]


@dataclass(frozen=True)
class Raw:
    """A body of one's own: HTML, or an error under status 200."""

    body: str
    content_type: str = "application/json"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Hang:
    """No reply for so long."""

    seconds: float


@dataclass(frozen=True)
class Reset:
    """The connection is torn down instead of a reply."""


@dataclass(frozen=True)
class Broken:
    """A promised whole reply of which half is sent; then the connection ends or falls silent."""

    text: str = "Score: 3"
    coding: Coding = "plain"
    silent: float = 0.0


@dataclass(frozen=True)
class Noise:
    """A response that is not HTTP."""


@dataclass(frozen=True)
class Coded:
    """A text reply, sent in chunks or compressed."""

    text: str
    coding: Coding


Answer = str | dict[str, Any] | Text | Failure | Raw | Hang | Reset | Broken | Noise | Coded
"""An answer of the script; a string is a text reply, a dict the fields of a JSON reply."""

Script = Sequence[Answer] | Callable[[Request], Answer]
"""Answers in order, or a function of the request."""


class Provider:
    """The running server; ``play`` gives it a script, and ``requests`` has the requests so far."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.batches = Batches(self)
        self.told: dict[str, Any] = {}
        """Maps a path to a server's description of its models there."""
        self._script: Script = []
        self._spoken = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._server = Server(_Handler, provider=self)

    def stop(self) -> None:
        self._stopped.set()
        self._server.stop()

    def play(self, *answers: Answer, by: Callable[[Request], Answer] | None = None) -> None:
        """Answer from this script from now on: in order, or by a function of the request."""
        with self._lock:
            self._script = by or answers
            self._spoken = 0

    @property
    def url(self) -> str:
        """Scheme, host and port: the base URL for Gemini's client."""
        return self._server.url

    @property
    def openai_url(self) -> str:
        """The value for OPENAI_BASE_URL."""
        return f"{self.url}/v1"

    @property
    def models(self) -> list[str]:
        return [request.model for request in self.requests]

    @property
    def asked_for(self) -> list[str]:
        """The address in each request: a path, or a full URL if a proxy should pass it on."""
        return [request.path for request in self.requests]

    @property
    def connections(self) -> int:
        return self._server.opened

    def take(self, request: Request) -> list[Answer]:
        """Record the request, and return the script's answer for each requested choice."""
        with self._lock:
            self.requests.append(request)
            problem = wire.problem_with(request)
            if problem is not None:
                return [problem]
            try:
                return [self._next(request) for _ in range(request.choices)]
            except Exception as error:
                return [Failure(400, f"the test's script fails: {error!r}", code="script_failed")]

    def completion(
        self, body: dict[str, Any], path: str = wire.OPENAI_PATH
    ) -> tuple[int, dict[str, Any]]:
        """Return status and body of the answer to a request in a batch."""
        request = as_request(body, path)
        answers = self.take(request)
        if isinstance(answers[0], Failure):
            return answers[0].status, wire.error_body(request, answers[0])
        return 200, wire.reply_body(request, [_text(answer) for answer in answers])

    def wait(self, seconds: float) -> None:
        self._stopped.wait(seconds)

    def _next(self, request: Request) -> Answer:
        if callable(self._script):
            return self._script(request)
        if self._spoken >= len(self._script):
            return Failure(
                400, f"the test's script ends after {self._spoken} answers", code="script_ended"
            )
        self._spoken += 1
        return self._script[self._spoken - 1]


class _Handler(Handler):
    provider: Provider

    def do_POST(self) -> None:  # noqa: N802
        if self.provider.batches.handles(self.path):
            self._answer_batches()
            return
        request = Request("POST", self.path, self.named_headers(), self.fields())
        self._answer(request, self.provider.take(request))

    def do_GET(self) -> None:  # noqa: N802
        if self.path in self.provider.told:
            self.answer(self.provider.told[self.path])
        else:
            self._answer_batches()

    def _answer_batches(self) -> None:
        answer = self.provider.batches.answer(
            self.command, self.path, self.named_headers(), self.body()
        )
        if answer is None:
            self._reset()
        else:
            status, content = answer
            self.answer(content, status, JSON)

    def _answer(self, request: Request, answers: list[Answer]) -> None:
        match answers[0]:
            case Hang(seconds):
                self.provider.wait(seconds)
                self.close_connection = True
            case Reset():
                self._reset()
            case Raw(body, content_type, status, more):
                self.answer(body.encode(), status, {"Content-Type": content_type, **more})
            case Failure() as failure:
                self.answer(wire.error_body(request, failure), failure.status, failure.headers)
            case Broken(text, coding, silent):
                headers, whole = _coded(request, text, coding)
                length = {} if coding == "chunked" else {"Content-Length": str(len(whole))}
                self.answer(whole[: len(whole) // 2], headers={**headers, **length})
                self.provider.wait(silent)
                self.close_connection = True
            case Noise():
                self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
                self.close_connection = True
            case Coded(text, coding):
                headers, whole = _coded(request, text, coding)
                self.answer(whole, headers=headers)
            case _:
                self.answer(wire.reply_body(request, [_text(answer) for answer in answers]))

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _coded(request: Request, text: str, coding: Coding) -> tuple[dict[str, str], bytes]:
    whole = json.dumps(wire.reply_body(request, [Text(text)])).encode()
    if coding == "gzip":
        return {**JSON, "Content-Encoding": "gzip"}, gzip.compress(whole)
    if coding == "plain":
        return dict(JSON), whole
    parts = [whole[at : at + 50] for at in range(0, len(whole), 50)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return {**JSON, "Transfer-Encoding": "chunked"}, chunks + b"0\r\n\r\n"


def _text(answer: Answer) -> Text:
    if isinstance(answer, Text):
        return answer
    if isinstance(answer, str):
        return Text(answer)
    if isinstance(answer, dict):
        return Text(fields=answer)
    raise TypeError(f"{answer!r} cannot stand among several choices")
