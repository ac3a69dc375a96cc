"""A model provider on the loopback interface, for tests that drive the real clients over real sockets.

It speaks OpenAI's chat completions and Gemini's ``generateContent`` over HTTP/1.1 with connections kept alive, as
providers do, answers from a script, and keeps every request. Built on the standard library's server, since that one
keeps connections alive and lets a reply break off in the middle; werkzeug's does neither.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Literal

from . import loopback_wire as wire
from .loopback_batches import Batches, as_request
from .loopback_wire import Request, Text, Usage

__all__ = [
    "Answer",
    "Broken",
    "Coded",
    "Failure",
    "Hang",
    "Noise",
    "Provider",
    "Raw",
    "Request",
    "Reset",
    "Script",
    "Text",
    "Usage",
]

Coding = Literal["plain", "chunked", "gzip"]


@dataclass(frozen=True)
class Failure:
    """An error status with the body that the provider would send."""

    status: int
    message: str = "The server had an error."
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


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
    """A whole reply is promised and half of it sent; then the connection ends, or stays and is silent for so long."""

    text: str = "Score: 3"
    coding: Coding = "plain"
    silent: float = 0.0


@dataclass(frozen=True)
class Noise:
    """What comes is no HTTP at all."""


@dataclass(frozen=True)
class Coded:
    """A text reply, sent in chunks or compressed."""

    text: str
    coding: Coding


Answer = str | dict[str, Any] | Text | Failure | Raw | Hang | Reset | Broken | Noise | Coded
"""What the script may say next; a string is a text reply, a dict the fields of a JSON reply."""

Script = Sequence[Answer] | Callable[[Request], Answer]
"""Answers in order, or a function of the request."""


_JSON = {"Content-Type": "application/json"}


class Provider:
    """The server. ``play`` gives it a script; ``requests`` is what it has been asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.batches = Batches(self)
        self.told: dict[str, Any] = {}
        """From a path to what a server of open models says of itself there."""
        self._script: Script = []
        self._spoken = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        handler = type("Handler", (_Handler,), {"provider": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="loopback")

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Close the server and every connection to it."""
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server.server_close()

    def play(self, *answers: Answer, by: Callable[[Request], Answer] | None = None) -> None:
        """Answer from this script from now on: in order, or by a function of the request."""
        with self._lock:
            self._script, self._spoken = (by or answers), 0

    @property
    def url(self) -> str:
        """Scheme, host and port: what Gemini's client takes for its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """What goes into OPENAI_BASE_URL."""
        return f"{self.url}/v1"

    @property
    def models(self) -> list[str]:
        """Which model each request named, in order."""
        return [request.model for request in self.requests]

    @property
    def asked_for(self) -> list[str]:
        """The address in each request: a path, or the whole of it where the request was to be passed on."""
        return [request.path for request in self.requests]

    @property
    def connections(self) -> int:
        """How many connections were opened so far."""
        return self._server.opened

    def take(self, request: Request) -> list[Answer]:
        """Keep the request, and say what the script has for it: an answer for each choice that it wants."""
        with self._lock:
            self.requests.append(request)
            problem = wire.problem_with(request)
            if problem is not None:
                return [Failure(problem.status, problem.message, problem.param, problem.code)]
            try:
                return [self._next(request) for _ in range(request.choices)]
            except Exception as error:
                return [Failure(400, f"the test's script fails: {error!r}", code="script_failed")]

    def completion(self, body: dict[str, Any], path: str = wire.OPENAI_PATH) -> tuple[int, dict[str, Any]]:
        """Status and body of what a request in a batch is answered with."""
        request = as_request(body, path)
        answers = self.take(request)
        match answers[0]:
            case Failure(status, message, param, code):
                return status, wire.error_body(request, status, message, param, code)
            case _:
                return 200, wire.reply_body(request, [_text(answer) for answer in answers])

    def wait(self, seconds: float) -> None:
        """Let time pass, but no longer than the server lives."""
        self._stopped.wait(seconds)

    def _next(self, request: Request) -> Answer:
        if callable(self._script):
            return self._script(request)
        if self._spoken >= len(self._script):
            return Failure(400, f"the test's script ends after {self._spoken} answers", code="script_ended")
        self._spoken += 1
        return self._script[self._spoken - 1]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.opened = 0
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.opened += 1
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._open.discard(request)

    def close_connections(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + 10
        while self._open and time.monotonic() < deadline:
            time.sleep(0.001)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    provider: ClassVar[Provider]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.provider.batches.handles(self.path):
            self._answer_batches("POST", headers, body)
            return
        request = Request("POST", self.path, headers, json.loads(body or b"{}"))
        self._answer(request, self.provider.take(request))

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path in self.provider.told:
            self._send(200, json.dumps(self.provider.told[self.path]).encode(), _JSON)
            return
        self._answer_batches("GET", headers, b"")

    def _answer_batches(self, method: str, headers: Mapping[str, str], body: bytes) -> None:
        answer = self.provider.batches.answer(method, self.path, headers, body)
        if answer is None:
            self._tear_down("rst")
        else:
            self._send(*answer, _JSON)

    def _answer(self, request: Request, answers: list[Answer]) -> None:
        first = answers[0]
        match first:
            case Hang(seconds):
                self.provider.wait(seconds)
                self._tear_down("fin")
            case Reset():
                self._tear_down("rst")
            case Raw(body, content_type, status, more):
                self._send(status, body.encode(), {"Content-Type": content_type, **more})
            case Failure():
                error = wire.error_body(request, first.status, first.message, first.param, first.code)
                self._send(first.status, json.dumps(error).encode(), {**_JSON, **first.headers})
            case Broken(text, coding, silent):
                headers, whole = _coded(request, text, coding)
                length = {} if coding == "chunked" else {"Content-Length": str(len(whole))}
                self._send(200, whole[: len(whole) // 2], {**headers, **length})
                self.provider.wait(silent)
                self._tear_down("fin")
            case Noise():
                self.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
                self._tear_down("fin")
            case Coded(text, coding):
                headers, whole = _coded(request, text, coding)
                self._send(200, whole, headers)
            case _:
                reply = wire.reply_body(request, [_text(answer) for answer in answers])
                self._send(200, json.dumps(reply).encode(), _JSON)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """In one write, so that no half of it waits for the other's acknowledgement."""
        length = {} if "Transfer-Encoding" in headers else {"Content-Length": str(len(body))}
        lines = {**length, **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.wfile.write(f"HTTP/1.1 {status} {_phrase(status)}\r\n{head}\r\n".encode() + body)

    def _tear_down(self, how: Literal["fin", "rst"]) -> None:
        self.close_connection = True
        if how == "rst":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""


def _phrase(status: int) -> str:
    return BaseHTTPRequestHandler.responses.get(status, ("Of Its Own", ""))[0]


def _coded(request: Request, text: str, coding: Coding) -> tuple[dict[str, str], bytes]:
    """Headers and body of a text reply."""
    whole = json.dumps(wire.reply_body(request, [Text(text)])).encode()
    if coding == "gzip":
        return {**_JSON, "Content-Encoding": "gzip"}, gzip.compress(whole)
    if coding == "plain":
        return dict(_JSON), whole
    parts = [whole[at : at + 50] for at in range(0, len(whole), 50)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return {**_JSON, "Transfer-Encoding": "chunked"}, chunks + b"0\r\n\r\n"


def _text(answer: Answer) -> Text:
    if isinstance(answer, Text):
        return answer
    if isinstance(answer, str):
        return Text(answer)
    if isinstance(answer, dict):
        return Text(fields=answer)
    raise TypeError(f"{answer!r} cannot stand among several choices")
