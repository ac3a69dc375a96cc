"""Batches with Gemini's batch mode.

Requests and results are parts of the batch, and its name marks it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from google.genai import types
from google.genai.errors import APIError
from langchain_core.language_models import BaseChatModel

from ....state.errors import UsageError
from .batch_provider import (
    RETRIES,
    SECONDS,
    UPLOAD_SECONDS,
    BatchProvider,
    BatchState,
    SubmittedBatch,
    custom_ids,
    requests_in,
)


class GeminiBatches(BatchProvider):
    """The batches of Gemini's own API (not of Vertex AI, which uses a storage bucket)."""

    errors = (APIError, aiohttp.ClientError, TimeoutError)
    # The API takes 20 MB. Its client escapes text that is not ASCII, which may triple the length.
    file_bytes = 6_000_000
    client = "client"

    def __init__(self, chat: BaseChatModel) -> None:
        client = self.client_of(chat)
        if client.vertexai:
            raise UsageError(
                "models on Vertex AI cannot be used in batches; those of Gemini's own API can"
            )
        self._batches = client.aio.batches

    @classmethod
    def address_of(cls, chat: BaseChatModel) -> str:
        """Return the address of the API."""
        return f"google_genai {cls.client_of(chat)._api_client._http_options.base_url}"

    async def start(self, path: Path, sent: SubmittedBatch, input_file: str) -> BatchState:
        """Create a batch from the requests in a file; its display name contains run and file."""
        requests = await asyncio.to_thread(_inlined, path)
        # One attempt: if only the answer was lost, the client would create the batch a second time.
        once = _options(1, UPLOAD_SECONDS)
        config = types.CreateBatchJobConfig(display_name=_name(sent), http_options=once)
        return _state(
            await self._batches.create(model=str(requests[0].model), src=requests, config=config)
        )

    async def find(
        self, path: Path, sent: SubmittedBatch, known: Collection[str]
    ) -> BatchState | None:
        """Find the batch with this display name."""
        config = types.ListBatchJobsConfig(page_size=100, http_options=_options())
        async for job in await self._batches.list(config=config):
            if job.display_name == _name(sent) and job.name not in known:
                return _state(job)
        return None

    async def state_of(self, name: str) -> BatchState:
        """Request the state of a batch; its replies come with it."""
        config = types.GetBatchJobConfig(http_options=_options(seconds=UPLOAD_SECONDS))
        return _state(await self._batches.get(name=name, config=config))

    async def lines(self, name: str, source: Any, path: Path) -> AsyncIterator[dict[str, Any]]:
        """Yield the replies that came with the batch's state; a batch that was cut off has none."""
        # Replies come in the order of the requests, even if the metadata of these is not returned.
        asked = custom_ids(path) or [""] * len(source)
        for custom_id, response in zip(asked, source, strict=False):
            known = (response.metadata or {}).get("custom_id", custom_id)
            yield {"custom_id": known, **_outcome(response)}


def _inlined(path: Path) -> list[types.InlinedRequest]:
    marked = (
        {**line["body"], "metadata": {"custom_id": line["custom_id"]}} for line in requests_in(path)
    )
    # As JSON, since bytes are text in it.
    return [types.InlinedRequest.model_validate_json(orjson.dumps(request)) for request in marked]


def _name(sent: SubmittedBatch) -> str:
    return f"jurygraph {sent.run} {sent.file}"


def _options(attempts: int = RETRIES, seconds: float = SECONDS) -> types.HttpOptions:
    retries = types.HttpRetryOptions(attempts=attempts)
    return types.HttpOptions(timeout=round(seconds * 1000), retry_options=retries)


def _state(job: types.BatchJob) -> BatchState:
    state = job.state.name if job.state else "unknown"
    # The client leaves out the reason that the API gives for a batch.
    reason = (
        job.error.message if job.error else None
    ) or f"{state}, and its client gives no reason"
    ended = job.done or state == "JOB_STATE_PARTIALLY_SUCCEEDED"
    refused = reason if state == "JOB_STATE_FAILED" else ""
    results = {"output": job.dest.inlined_responses if job.dest else None}
    return BatchState(job.name or "", state, ended=ended, refused=refused, results=results)


_STATUS = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 14: 503, 16: 401}
"""From the number of an error (as in gRPC) to the status of a live call; for all others, 500."""


def _outcome(reply: types.InlinedResponse) -> dict[str, Any]:
    if reply.response is not None:
        body = reply.response.model_dump(mode="json", exclude_none=True)
        return {"response": {"status_code": 200, "body": body}}
    if reply.error is None:
        return {"error": {"message": "it has no reply"}}
    code = reply.error.code or 0
    status = code if code >= 100 else _STATUS.get(code, 500)
    return {
        "response": {"status_code": status, "body": {"error": {"message": reply.error.message}}}
    }
