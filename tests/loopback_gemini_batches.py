"""Serve Gemini's batches on loopback; with display names, and replies in request order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loopback_batches import Batch, Batches

CREATE = re.compile(r"/v1(?:beta)?/models/([^:/]+):batchGenerateContent")
STATES = {
    **{"in_progress": "PENDING", "completed": "SUCCEEDED", "expired": "EXPIRED"},
    **{"cancelled": "CANCELLED", "failed": "FAILED"},
}


def handles(path: str) -> bool:
    return path.startswith(("/v1/batches", "/v1beta/batches")) or CREATE.match(path) is not None


def answer(batches: Batches, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    if method == "POST":
        return _create(batches, path, body)
    name = path.split("/", 2)[2]
    if name == "batches":
        return 200, {"operations": [_shown(batches, batch) for batch in batches.of("batches/")]}
    batch = next((one for one in batches.of("batches/") if one.id == name), None)
    if batch is None:
        return 404, {"error": {"code": 404, "message": f"no batch {name}", "status": "NOT_FOUND"}}
    batch.looks += 1
    return 200, _shown(batches, batch)


def _create(batches: Batches, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    found = CREATE.match(path)
    assert found
    made = body["batch"]
    lines = []
    for one in made["inputConfig"]["requests"]["requests"]:
        if one["request"].pop("model") != f"models/{found[1]}":
            problem = {"code": 400, "message": "another model", "status": "INVALID_ARGUMENT"}
            return 400, {"error": problem}
        lines.append({"custom_id": one["metadata"]["custom_id"], "body": one["request"]})
    metadata = {"displayName": made["displayName"], "model": found[1]}
    return 200, _shown(batches, batches.add("batches/", metadata, lines))


def _shown(batches: Batches, batch: Batch) -> dict[str, Any]:
    about: dict[str, Any] = {
        "displayName": batch.metadata["displayName"],
        "state": f"BATCH_STATE_{STATES[batch.status]}",
    }
    shown = {"name": batch.id, "metadata": about, "done": batch.status != "in_progress"}
    if batch.status == "failed":
        code = 8 if batch.fate.problem[0] == "token_limit_exceeded" else 3
        shown["error"] = {"code": code, "message": batch.fate.problem[1]}
    if batch.status in {"completed", "expired", "cancelled"}:
        path = f"/v1/models/{batch.metadata['model']}:generateContent"
        found = [_outcome(*one) for one in batches.end(batch, path)]
        about["output"] = {"inlinedResponses": {"inlinedResponses": found}}
    return shown


def _outcome(custom_id: str, status: int | None, body: Any) -> dict[str, Any]:
    metadata = {"metadata": {"custom_id": custom_id}}
    if status == 200:
        return {**metadata, "response": body}
    problem = {"code": 4, "message": "not made in time"}
    if status is not None:
        problem = {"code": {400: 3, 429: 8, 500: 13}[status], "message": body["error"]["message"]}
    return {**metadata, "error": problem}
