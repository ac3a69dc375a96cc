"""Serve OpenAI's files and batches on loopback; the provider's script answers uploads."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from . import loopback_anthropic_batches as anthropic
from . import loopback_gemini_batches as gemini
from . import loopback_wire as wire
from .loopback_wire import Request

if TYPE_CHECKING:
    from .loopback import Provider

MOST_REQUESTS = 50_000


@dataclass(frozen=True)
class Fate:
    """The result of a batch.

    Attributes:
        status: its final status.
        share: the share of its requests that are made before it ends.
        problem: code and message, if it is refused as a whole.
        looks: the number of status requests before it ends; a great number means never.
        told: whether the file of errors lists requests that were not made.
    """

    status: str = "completed"
    share: float = 1.0
    problem: tuple[str, str] = ("", "")
    looks: int = 1
    told: bool = True


@dataclass
class Batch:
    """A batch that was created."""

    id: str
    input_file: str
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    fate: Fate
    created: int = field(default_factory=lambda: int(time.time()))
    looks: int = 0
    output_file: str | None = None
    error_file: str | None = None
    ended: list[tuple[str, int | None, Any]] | None = None

    @property
    def custom_ids(self) -> list[str]:
        return [line["custom_id"] for line in self.lines]

    @property
    def status(self) -> str:
        return self.fate.status if self.looks >= self.fate.looks else "in_progress"


class Batches:
    """Files and batches of one provider.

    Attributes:
        made: all batches, in order.
        fate: returns the result of a batch from its number (from 0).
        lost_answers: the number of lost answers to the creation of a batch, which is created
            anyway.
        failures: the number of requests to this path that are answered with that status.
    """

    def __init__(self, provider: Provider) -> None:
        self.made: list[Batch] = []
        self.files: dict[str, bytes] = {}
        self.fate: Callable[[int], Fate] = lambda _number: Fate()
        self.lost_answers = 0
        self.failures: dict[str, list[int]] = {}
        self.asked: list[tuple[str, str]] = []
        self._provider = provider
        self._lock = threading.RLock()

    def sent(self) -> list[str]:
        """Return the name of every request in a batch; a duplicate appears twice."""
        return [custom_id for batch in self.made for custom_id in batch.custom_ids]

    def handles(self, path: str) -> bool:
        own = path.startswith(("/v1/files", "/v1/batches"))
        return own or anthropic.handles(path) or gemini.handles(path)

    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any] | None:
        """Return status and answer, as bytes or JSON; None if the answer is lost."""
        with self._lock:
            address = urlsplit(path)
            self.asked.append((method, address.path))
            keys = ("authorization", "x-api-key", "x-goog-api-key")
            if not any(headers.get(name) for name in keys):
                return _error(401, "You didn't provide an API key.", "invalid_api_key")
            for prefix, statuses in self.failures.items():
                if address.path.startswith(prefix) and statuses:
                    return _error(statuses.pop(0), "The server had an error.", "server_error")
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            made = len(self.made)
            answer = None
            for other in (anthropic, gemini):
                # A list of OpenAI's batches may have the same path as one of Gemini's.
                if other.handles(path) and (other is anthropic or headers.get("x-goog-api-key")):
                    answer = other.answer(self, method, address.path, json.loads(body or b"{}"))
            answer = answer or self._routed(
                method, address.path.split("/")[2:], query, headers, body
            )
            if len(self.made) > made and self.lost_answers:
                self.lost_answers -= 1
                return None
            return answer

    def add(self, name: str, metadata: dict[str, str], lines: list[dict[str, Any]]) -> Batch:
        """One more, of another provider than OpenAI."""
        batch = Batch(f"{name}{len(self.made) + 1}", "", metadata, lines, self.fate(len(self.made)))
        self.made.append(batch)
        return batch

    @property
    def url(self) -> str:
        return self._provider.url

    def of(self, name: str) -> list[Batch]:
        """Return the batches whose ids begin with the name, newest first."""
        return [batch for batch in reversed(self.made) if batch.id.startswith(name)]

    def end(self, batch: Batch, path: str) -> list[tuple[str, int | None, Any]]:
        """Return custom id, status and body of each request; no status if it was not made."""
        if batch.ended is None:
            made = int(len(batch.lines) * batch.fate.share)
            batch.ended = [
                (
                    line["custom_id"],
                    *(self._provider.completion(line["body"], path) if at < made else (None, None)),
                )
                for at, line in enumerate(batch.lines)
            ]
        return batch.ended

    def _routed(
        self,
        method: str,
        parts: list[str],
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, Any]:
        match method, parts:
            case "POST", ["files"]:
                return self._upload(headers, body)
            case "GET", ["files", name, "content"]:
                return (200, self.files[name]) if name in self.files else _no_such("file", name)
            case "POST", ["batches"]:
                return self._create(json.loads(body))
            case "GET", ["batches"]:
                return self._list(query)
            case "GET", ["batches", name]:
                return self._look(name)
        return _error(404, f"no such path: {method} {parts}", "unknown_url")

    def _upload(self, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        whole = f"Content-Type: {headers['content-type']}\r\n\r\n".encode() + body
        fields: dict[str, Message[str, str]] = {}
        for part in message_from_bytes(whole).walk():
            name = part.get_param("name", header="content-disposition")
            if isinstance(name, str):
                fields[name] = part
        content = fields["file"].get_payload(decode=True)
        purpose = fields["purpose"].get_payload(decode=True)
        assert isinstance(content, bytes)
        if purpose != b"batch":
            return _error(400, f"Invalid purpose {purpose!r}", "invalid_purpose")
        name = self._store(content)
        about = {
            "id": name, "object": "file", "bytes": len(content), "created_at": int(time.time()),
            "filename": fields["file"].get_filename(), "purpose": "batch", "status": "processed",
        }  # fmt: skip
        return 200, about

    def _store(self, content: bytes) -> str:
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return name

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        name = asked["input_file_id"]
        metadata = asked.get("metadata") or {}
        if asked["completion_window"] != "24h" or asked["endpoint"] != wire.OPENAI_PATH:
            return _error(400, "Invalid window or endpoint", "invalid_value")
        if any(not isinstance(value, str) or len(value) > 512 for value in metadata.values()):
            return _error(400, "Invalid 'metadata'", "invalid_type")
        if name not in self.files:
            return _no_such("file", name)
        lines = [json.loads(line) for line in self.files[name].splitlines()]
        number = len(self.made)
        batch = Batch(f"batch_{number + 1}", name, metadata, lines, self.fate(number))
        if problem := _problem(batch):
            batch.fate = Fate("failed", problem=problem)
        self.made.append(batch)
        return 200, _shown(batch)

    def _list(self, query: Mapping[str, str]) -> tuple[int, Any]:
        newest = list(reversed(self.made))
        if "after" in query:
            at = next(place for place, batch in enumerate(newest) if batch.id == query["after"])
            newest = newest[at + 1 :]
        page = newest[: int(query.get("limit", 20))]
        body = {
            "object": "list", "data": [_shown(batch) for batch in page], "has_more": len(page) < len(newest),
            "first_id": page[0].id if page else None, "last_id": page[-1].id if page else None,
        }  # fmt: skip
        return 200, body

    def _look(self, name: str) -> tuple[int, Any]:
        batch = next((one for one in self.made if one.id == name), None)
        if batch is None:
            return _no_such("batch", name)
        batch.looks += 1
        if batch.status in {"completed", "expired", "cancelled"} and batch.output_file is None:
            self._work_off(batch)
        return 200, _shown(batch)

    def _work_off(self, batch: Batch) -> None:
        good: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        late = {
            "code": f"batch_{batch.status}",
            "message": "This request could not be executed in time.",
        }
        for name, status, body in self.end(batch, wire.OPENAI_PATH):
            if status is not None:
                response = {"status_code": status, "request_id": "req", "body": body}
                outcome = {
                    "id": "batch_req",
                    "custom_id": name,
                    "response": response,
                    "error": None,
                }
                (good if status == 200 else bad).append(outcome)
            elif batch.fate.told:
                bad.append({"custom_id": name, "response": None, "error": late})
        # Answers come in another order than requests.
        batch.output_file = self._store(_lines(good[::-1]))
        batch.error_file = self._store(_lines(bad)) if bad else None


def _problem(batch: Batch) -> tuple[str, str] | None:
    models = {line["body"]["model"] for line in batch.lines}
    ids = batch.custom_ids
    if not ids:
        return "empty_file", "The file has no requests."
    if len(models) > 1:
        return "mismatched_model", "The file has requests to several models."
    if len(set(ids)) < len(ids):
        return "duplicate_custom_id", "The custom_id is not unique."
    if len(ids) > MOST_REQUESTS or any(len(name) > 64 for name in ids):
        return "invalid_file", "Too many requests, or too long a custom_id."
    if any(line.keys() != {"custom_id", "method", "url", "body"} for line in batch.lines):
        return "invalid_json_line", "This line is no request."
    return None


def _shown(batch: Batch) -> dict[str, Any]:
    code, message = batch.fate.problem
    failed = batch.status == "failed"
    done = batch.output_file is not None
    return {
        "id": batch.id, "object": "batch", "endpoint": wire.OPENAI_PATH, "input_file_id": batch.input_file,
        "completion_window": "24h", "status": batch.status, "created_at": batch.created,
        "metadata": batch.metadata, "output_file_id": batch.output_file, "error_file_id": batch.error_file,
        "errors": {"object": "list", "data": [{"code": code, "message": message}]} if failed else None,
        "request_counts": {"total": len(batch.lines), "completed": len(batch.lines) * done, "failed": 0},
    }  # fmt: skip


def _lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _error(status: int, message: str, code: str) -> tuple[int, Any]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return status, {"error": error}


def _no_such(what: str, name: str) -> tuple[int, Any]:
    return _error(404, f"No such {what}: {name}", "not_found")


def as_request(body: dict[str, Any], path: str) -> Request:
    """Convert a request in a batch to a single one."""
    keys = {"authorization": "Bearer of the batch", "x-api-key": "key", "x-goog-api-key": "key"}
    return Request("BATCH", path, keys, body)
