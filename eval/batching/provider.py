"""OpenAI's Batch API, as far as a run needs it, by OpenAI's own client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, NotFoundError, OpenAIError
from openai.types import Batch

log = logging.getLogger("jurygraph.batch")

RETRIES = 5
WAITS = (1.0, 4.0, 16.0, 60.0)
"""Seconds before a batch is attempted to be made once more."""

UPLOAD_SECONDS, SECONDS = 1800.0, 60.0

ENDED = {"completed", "expired", "cancelled", "failed"}


class Provider:
    """One address with its key."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client.with_options(max_retries=RETRIES, timeout=SECONDS)
        self._patient = client.with_options(max_retries=RETRIES, timeout=UPLOAD_SECONDS)
        self._once = client.with_options(max_retries=0, timeout=SECONDS)

    async def upload(self, path: Path) -> str:
        """Upload a file of requests; gives the provider's name for it.

        Raises:
            openai.OpenAIError: it cannot be uploaded.
        """
        return (await self._patient.files.create(file=path, purpose="batch")).id

    async def create(self, input_file: str, marks: Mapping[str, str]) -> Batch:
        """Make a batch of an uploaded file, and no second one where the answer to the first request is lost.

        Args:
            input_file: the provider's name for the file.
            marks: tell this batch from all others.

        Raises:
            openai.OpenAIError: it cannot be made.
        """
        for wait in WAITS:
            try:
                return await self._create(input_file, marks)
            except OpenAIError as error:
                if not may_pass(error):
                    raise
                log.info("batch could not be made", extra={"reason": str(error), "wait_seconds": wait})
            await asyncio.sleep(wait)
            if there := await self.marked(marks):
                return there[0]
        return await self._create(input_file, marks)

    async def _create(self, input_file: str, marks: Mapping[str, str]) -> Batch:
        return await self._once.batches.create(
            input_file_id=input_file,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata=dict(marks),
        )

    async def marked(self, marks: Mapping[str, str]) -> list[Batch]:
        """The batches with these marks."""
        every = self._client.batches.list(limit=100)
        return [batch async for batch in every if marks.items() <= (batch.metadata or {}).items()]

    async def look(self, name: str) -> Batch | None:
        """How far a batch has come; ``None`` where there is no such batch any more.

        Raises:
            openai.OpenAIError: the provider does not say.
        """
        try:
            return await self._client.batches.retrieve(name)
        except NotFoundError:
            return None

    async def download(self, name: str, path: Path) -> bool:
        """Copy one of the provider's files; false where it is gone.

        Raises:
            openai.OpenAIError: it cannot be had.
            OSError: it cannot be written.
        """
        unfinished = path.with_name(path.name + ".part")
        try:
            async with self._patient.files.with_streaming_response.content(name) as response:
                await response.stream_to_file(unfinished)
        except NotFoundError:
            unfinished.unlink(missing_ok=True)
            return False
        unfinished.replace(path)
        return True


def may_pass(error: OpenAIError) -> bool:
    """Whether asking again makes sense."""
    if isinstance(error, APIStatusError):
        return error.status_code in {408, 409, 429} or error.status_code >= 500
    return isinstance(error, APIConnectionError)


def problems(batch: Batch) -> list[tuple[str, str]]:
    """Code and message of what kept a batch from being made."""
    found = (batch.errors.data if batch.errors else None) or []
    return [(one.code or "", one.message or "") for one in found]
