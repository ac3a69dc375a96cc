"""Batches with Anthropic's Message Batches API.

Requests are sent with the batch, and the results are one stream. These batches have no metadata. A
batch that was not recorded after its creation is known only by the custom ids in its results. So
the code waits until each batch that was created since has ended, and then searches its results.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

from anthropic import AnthropicError
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from langchain_core.language_models import BaseChatModel

from ....nodes.models.connections import for_running_loop
from ....nodes.models.providers import CODE_STATUSES
from . import batch_provider
from .batch_provider import (
    UPLOAD_SECONDS,
    BatchProvider,
    BatchState,
    SubmittedBatch,
    custom_ids,
    log,
    may_pass,
    requests_in,
)

CLOCKS_DIFFER = 600.0
"""The number of seconds by which the provider's clock may be behind ours."""


class AnthropicBatches(BatchProvider):
    """The batches of Anthropic."""

    errors = (AnthropicError,)
    # The API takes 256 MB, but all requests of a batch are in memory when it is created.
    file_bytes = 64_000_000
    client = "_async_client"
    named = "anthropic "

    def __init__(self, chat: BaseChatModel) -> None:
        self.use(self.client_of(for_running_loop(chat)), once_seconds=UPLOAD_SECONDS)

    @staticmethod
    def line(custom_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request in the form that the API takes."""
        return {"custom_id": custom_id, "params": body}

    async def start(self, path: Path, sent: SubmittedBatch, input_file: str) -> BatchState:
        """Create a batch from the requests in a file."""
        requests: list[Any] = await asyncio.to_thread(lambda: [*requests_in(path)])
        return _state(await self._once.messages.batches.create(requests=requests))

    async def find(
        self, path: Path, sent: SubmittedBatch, known: Collection[str]
    ) -> BatchState | None:
        """Find the batch that has results for the requests in a file.

        Wait until all batches that may be the one have ended.
        """
        wanted = set(custom_ids(path))
        async for batch in self._client.messages.batches.list(limit=100):
            if batch.created_at.timestamp() < sent.since - CLOCKS_DIFFER:
                break
            alike = batch.id not in known and _total(batch) == sent.requests
            if alike and await self._answers(_state(batch), wanted):
                return await self.state_of(batch.id)
        return None

    async def _answers(self, batch: BatchState, wanted: set[str]) -> bool:
        """Wait until a batch has ended; return whether its results belong to these requests."""
        while not batch.ended:
            log.info("waiting for a batch that may be of this run", extra={"batch": batch.id})
            await asyncio.sleep(batch_provider.DEFAULT_LIMITS.poll_interval)
            try:
                batch = await self.poll(batch.id)
            except AnthropicError as error:
                if not may_pass(error):
                    raise
        if not batch.results.get("output"):
            return False
        results = await self._slow.messages.batches.results(batch.id)
        return any([result.custom_id in wanted async for result in results])

    async def state_of(self, name: str) -> BatchState:
        """Request the state of a batch."""
        return _state(await self._client.messages.batches.retrieve(name))

    async def lines(self, name: str, source: Any, path: Path) -> AsyncIterator[dict[str, Any]]:
        """Yield all results; they are deleted after 29 days."""
        async for response in await self._slow.messages.batches.results(name):
            yield _result(response)


def _total(batch: MessageBatch) -> int:
    counts = batch.request_counts
    return counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired


def _state(batch: MessageBatch) -> BatchState:
    status = batch.processing_status
    results = {"output": batch.results_url}
    done = _total(batch) - batch.request_counts.processing
    return BatchState(
        batch.id, status, ended=status == "ended", requests_done=done, results=results
    )


def _result(response: MessageBatchIndividualResponse) -> dict[str, Any]:
    result = response.result
    line: dict[str, Any] = {"custom_id": response.custom_id}
    if result.type == "succeeded":
        return line | {
            "response": {"status_code": 200, "body": result.message.to_dict(mode="json")}
        }
    if result.type == "errored":
        status = CODE_STATUSES.get(result.error.error.type, 500)
        return line | {
            "response": {"status_code": status, "body": result.error.to_dict(mode="json")}
        }
    return line | {"error": {"message": result.type}}
