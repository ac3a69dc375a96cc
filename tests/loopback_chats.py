"""A server on the loopback interface that gives one text reply in five providers' formats, for tests of connections.

What the providers' formats hold besides is no matter here: it keeps connections alive, and keeps every request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .loopback_http import Handler, serving_http

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
    kept = Chats("")
    with serving_http(_Handler, kept=kept) as kept.url:
        yield kept


class _Handler(Handler):
    kept: Chats

    def do_POST(self) -> None:
        body, path = self.fields(), self.path.partition("?")[0]
        self.kept.paths.append(path)
        self.kept.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.kept.bodies.append(body)
        reply = next(reply for end, reply in FORMATS.items() if path.endswith(end))
        said = json.dumps(reply(str(body.get("model")))).encode() + b"\n"
        self.answer(said, headers={"Content-Type": "application/json"})
