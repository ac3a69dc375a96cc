"""A server on the loopback interface that gives one text reply in five providers' formats, for tests of connections.

What the providers' formats hold besides is no matter here: it keeps connections alive, and keeps every request.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = "All claims hold.\nScore: 4"


def _chat_completion(model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": WORDS}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def _anthropic(model: str) -> dict[str, Any]:
    return {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": WORDS}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


def _responses(model: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": WORDS, "annotations": []}
    item = {"type": "message", "id": "m1", "status": "completed", "role": "assistant", "content": [text]}
    return {
        "id": "1",
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "model": model,
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _ollama(model: str) -> dict[str, Any]:
    return {
        "model": model,
        "created_at": "2025-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": WORDS},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 100,
        "eval_count": 20,
    }


def _google(model: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": WORDS}]}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "modelVersion": model,
        "usageMetadata": usage,
    }


FORMATS: dict[str, Callable[[str], dict[str, Any]]] = {
    "/chat/completions": _chat_completion,
    "/messages": _anthropic,
    "/responses": _responses,
    "/api/chat": _ollama,
    ":generateContent": _google,
}
"""From the end of an address to the body of a reply of this model."""


@dataclass
class Chats:
    """The server's address, and what it was asked: path, headers and body of each request."""

    url: str
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def chats_server() -> Iterator[Chats]:
    """Run the server for the length of a ``with`` block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads, server.block_on_close = True, False
    kept = Chats(f"http://127.0.0.1:{server.server_address[1]}")
    setattr(server, "kept", kept)  # noqa: B010
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        kept: Chats = getattr(self.server, "kept")  # noqa: B009
        path = self.path.partition("?")[0]
        kept.paths.append(path)
        kept.headers.append({name.lower(): value for name, value in self.headers.items()})
        kept.bodies.append(body)
        answer = next(reply for end, reply in FORMATS.items() if path.endswith(end))
        content = json.dumps(answer(str(body.get("model")))).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""
