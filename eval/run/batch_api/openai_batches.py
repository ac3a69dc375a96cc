"""Batches with OpenAI's Batch API: files of requests are uploaded, files of results downloaded."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import orjson
from langchain_core.language_models import BaseChatModel
from openai import NotFoundError, OpenAIError
from openai.types import Batch

from ....nodes.models.openai_fast import completion
from .batch_provider import SECONDS, UNFINISHED, BatchProvider, BatchState, SubmittedBatch, log

ENDPOINT: Final = "/v1/chat/completions"
ENDED = {"completed", "expired", "cancelled", "failed"}
TOO_MANY_TOKENS = "token_limit_exceeded"
"""The provider's code for a batch that would queue too many tokens of one model.

It is sent again later.
"""


class OpenAIBatches(BatchProvider):
    """The batches of OpenAI, and of servers with the same API."""

    errors = (OpenAIError,)
    file_bytes = 200_000_000
    client = "root_async_client"

    def __init__(self, chat: BaseChatModel) -> None:
        self.use(self.client_of(chat), once_seconds=SECONDS)

    async def upload(self, path: Path) -> str:
        """Upload a file of requests; return the provider's name for it."""
        return str((await self._slow.files.create(file=path, purpose="batch")).id)

    async def start(self, path: Path, sent: SubmittedBatch, input_file: str) -> BatchState:
        """Create a batch from an uploaded file, with its marks as metadata."""
        about = {"endpoint": ENDPOINT, "completion_window": "24h", "metadata": _marks(sent)}
        return _state(await self._once.batches.create(input_file_id=input_file, **about))

    async def find(
        self, path: Path, sent: SubmittedBatch, known: Collection[str]
    ) -> BatchState | None:
        """Find the batch with these marks."""
        # Pages of 100, the maximum of the API; iterating requests the further pages.
        async for batch in self._client.batches.list(limit=100):
            if _marks(sent).items() <= (batch.metadata or {}).items() and batch.id not in known:
                return _state(batch)
        return None

    async def state_of(self, name: str) -> BatchState:
        """Request the state of a batch."""
        return _state(await self._client.batches.retrieve(name))

    async def fetch(self, name: str, source: Any, path: Path, to: Path) -> bool:
        """Download a file of results or of errors; ``source`` is its name."""
        if not (is_there := await self.download(source, to)):
            log.warning("file gone", extra={"batch": name, "file": source})
        return is_there

    async def download(self, name: str, path: Path) -> bool:
        """Download one of the provider's files; return ``False`` if it does not exist.

        Raises:
            OSError: it cannot be written.
        """
        unfinished = path.with_name(path.name + UNFINISHED)
        try:
            async with self._slow.files.with_streaming_response.content(name) as response:
                await response.stream_to_file(unfinished)
        except NotFoundError:
            return False
        unfinished.replace(path)
        return True

    @staticmethod
    def line(custom_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the line of a request in its file."""
        return {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}

    @staticmethod
    def read(status: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return a chat completion, read like the response to a live call.

        A batch brings no headers.
        """
        return completion(status, {}, orjson.dumps(body))


def _marks(sent: SubmittedBatch) -> dict[str, str]:
    """Return the marks that identify a batch."""
    return {"jurygraph_run": sent.run, "file": sent.file}


def _state(batch: Batch) -> BatchState:
    counts = batch.request_counts
    files = {"output": batch.output_file_id, "errors": batch.error_file_id}
    problems = (batch.errors.data if batch.errors else None) or []
    reason = "; ".join(problem.message or problem.code or "" for problem in problems)
    return BatchState(
        batch.id,
        batch.status,
        ended=batch.status in ENDED,
        requests_done=counts.completed + counts.failed if counts else 0,
        refused=(reason or "no reason given") if batch.status == "failed" else "",
        over_limit=any(problem.code == TOO_MANY_TOKENS for problem in problems),
        input_file=batch.input_file_id,
        results={kind: name for kind, name in files.items() if name},
    )
