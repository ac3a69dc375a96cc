"""Serve Anthropic's Message Batches on loopback; without metadata, results by custom id."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from . import loopback_wire as wire

if TYPE_CHECKING:
    from .loopback_batches import Batch, Batches

PATH = "/v1/messages/batches"


def handles(path: str) -> bool:
    return path.startswith(PATH)


def answer(batches: Batches, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    parts = [part for part in path.removeprefix(PATH).split("/") if part]
    if method == "POST":
        return _create(batches, body["requests"])
    if not parts:
        shown = [_shown(batches, batch) for batch in batches.of("msgbatch_")]
        return 200, {"data": shown, "has_more": False, "first_id": None, "last_id": None}
    batch = next((one for one in batches.of("msgbatch_") if one.id == parts[0]), None)
    if batch is None:
        return _problem(404, "not_found_error", f"no batch {parts[0]}")
    if parts[1:] == ["results"]:
        return 200, b"".join(
            _result(*one) for one in reversed(batches.end(batch, wire.ANTHROPIC_PATH))
        )
    batch.looks += 1
    return 200, _shown(batches, batch)


def _create(batches: Batches, requests: list[dict[str, Any]]) -> tuple[int, Any]:
    ids = [request["custom_id"] for request in requests]
    if any(request.keys() != {"custom_id", "params"} for request in requests):
        return _problem(400, "invalid_request_error", "requests: Extra inputs are not permitted")
    if len(set(ids)) < len(ids) or not all(
        re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in ids
    ):
        return _problem(
            400, "invalid_request_error", "custom_id: not unique, or not of the pattern"
        )
    if batches.fate(len(batches.made)).status == "failed":
        return _problem(400, "invalid_request_error", batches.fate(len(batches.made)).problem[1])
    lines = [{"custom_id": one["custom_id"], "body": one["params"]} for one in requests]
    return 200, _shown(batches, batches.add("msgbatch_", {}, lines))


def _shown(batches: Batches, batch: Batch) -> dict[str, Any]:
    ended = batch.status in {"completed", "expired", "cancelled"}
    kinds = (
        [_kind(status) for _, status, _ in batches.end(batch, wire.ANTHROPIC_PATH)] if ended else []
    )
    counts = {kind: kinds.count(kind) for kind in ("succeeded", "errored", "expired", "canceled")}
    made = datetime.fromtimestamp(batch.created, UTC)
    return {
        **{"id": batch.id, "type": "message_batch", "created_at": made.isoformat()},
        **{
            "expires_at": (made + timedelta(days=1)).isoformat(),
            "archived_at": None,
            "ended_at": None,
        },
        **{"cancel_initiated_at": None, "processing_status": "ended" if ended else "in_progress"},
        "request_counts": {**counts, "processing": 0 if ended else len(batch.lines)},
        "results_url": f"{batches.url}{PATH}/{batch.id}/results" if ended else None,
    }


def _kind(status: int | None) -> str:
    return "expired" if status is None else "succeeded" if status == 200 else "errored"


def _result(custom_id: str, status: int | None, body: Any) -> bytes:
    kind = _kind(status)
    more = {"succeeded": {"message": body}, "errored": {"error": body}}.get(kind, {})
    return json.dumps({"custom_id": custom_id, "result": {"type": kind, **more}}).encode() + b"\n"


def _problem(status: int, kind: str, message: str) -> tuple[int, Any]:
    return status, {"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}
