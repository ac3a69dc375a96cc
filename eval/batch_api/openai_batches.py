"""Talk to OpenAI's Batch API: upload requests, make and poll batches, read results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, NotFoundError, OpenAIError
from openai.types import Batch

from ...nodes.models.openai_fast import completion
from ...nodes.models.provider_errors import ResponseError
from .request_file import SubmittedBatch

log = logging.getLogger("jurygraph.batch")
RETRIES = 5

WAITS = (1.0, 4.0, 16.0, 60.0)
"""Seconds before each further attempt to make a batch."""
# Time limits of a request that carries a file, which may have 200 MB, and of any other.
UPLOAD_SECONDS, SECONDS = 1800.0, 60.0
ENDED = {"completed", "expired", "cancelled", "failed"}


class Provider:
    """Uploads files, makes and polls batches, and downloads results at one address."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client.with_options(max_retries=RETRIES, timeout=SECONDS)
        self._slow = client.with_options(max_retries=RETRIES, timeout=UPLOAD_SECONDS)
        # Without retries: if only the answer was lost, the client itself would make the batch a second time.
        self._once = client.with_options(max_retries=0, timeout=SECONDS)

    async def upload(self, path: Path) -> str:
        """Upload a file of requests; return the provider's name for it.

        Raises:
            openai.OpenAIError: it cannot be uploaded.
        """
        return (await self._slow.files.create(file=path, purpose="batch")).id

    async def create(self, input_file: str, marks: Mapping[str, str]) -> Batch:
        """Make a batch of an uploaded file, and no second one if the answer to the first request is lost.

        Args:
            input_file: the provider's name for the file.
            marks: metadata that tells this batch from all others.

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
            if there := await self.find(marks):
                return there[0]
        return await self._create(input_file, marks)

    async def _create(self, input_file: str, marks: Mapping[str, str]) -> Batch:
        return await self._once.batches.create(
            input_file_id=input_file,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata=dict(marks),
        )

    async def find(self, marks: Mapping[str, str]) -> list[Batch]:
        """Find the batches with these marks."""
        # Pages of 100, the most that the API gives; iterating asks for the further pages.
        every = self._client.batches.list(limit=100)
        return [batch async for batch in every if marks.items() <= (batch.metadata or {}).items()]

    async def poll(self, name: str) -> Batch | None:
        """Return the state of a batch; ``None`` where there is no such batch any more.

        Raises:
            openai.OpenAIError: the provider does not say.
        """
        try:
            return await self._client.batches.retrieve(name)
        except NotFoundError:
            return None

    async def download(self, name: str, path: Path) -> bool:
        """Download one of the provider's files; return false where it is gone.

        Raises:
            openai.OpenAIError: it cannot be had.
            OSError: it cannot be written.
        """
        unfinished = path.with_name(path.name + ".part")
        try:
            async with self._slow.files.with_streaming_response.content(name) as response:
                await response.stream_to_file(unfinished)
        except NotFoundError:
            unfinished.unlink(missing_ok=True)
            return False
        unfinished.replace(path)
        return True


def may_pass(error: OpenAIError) -> bool:
    """Tell whether another attempt may succeed after an error."""
    if isinstance(error, APIStatusError):
        return error.status_code in {408, 409, 429} or error.status_code >= 500
    return isinstance(error, APIConnectionError)


def problems(batch: Batch) -> list[tuple[str, str]]:
    """Return code and message of each problem that kept a batch from being made."""
    found = (batch.errors.data if batch.errors else None) or []
    return [(one.code or "", one.message or "") for one in found]


_NO_ANSWER = 408
"""The status given to a request that the provider did not answer, which makes it retryable."""


class _Place(NamedTuple):
    """Says where the result of a request is; ``file`` is ``None`` where there is none."""

    sent: SubmittedBatch
    file: BinaryIO | None
    offset: int


class BatchResults:
    """Finds the results of batches that have ended; in memory is only where in its file each one stands."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._unread: set[str] = set()
        self._files: list[BinaryIO] = []

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._places

    def add(self, sent: SubmittedBatch, wanted: list[str], files: list[Path]) -> None:
        """Add the results of a batch; requests that have none count as not answered."""
        for custom_id in wanted:
            # Not answered, unless a file says otherwise: a batch that is cut off has results for some of its requests.
            self._places[custom_id] = _Place(sent, None, 0)
        for path in files:
            file = path.open("rb")
            self._files.append(file)
            for offset, custom_id in _lines(file):
                self._places[custom_id] = _Place(sent, file, offset)
                self._unread.add(custom_id)
        self._unread.update(wanted)

    def first_read(self, custom_id: str) -> SubmittedBatch | None:
        """Return the batch of a result that is read for the first time, else ``None``."""
        if custom_id not in self._unread:
            return None
        self._unread.discard(custom_id)
        return self._places[custom_id].sent

    def read(self, custom_id: str) -> dict[str, Any]:
        """Return the chat completion.

        Raises:
            ResponseError: there is none, but an error, or nothing.
        """
        sent, file, offset = self._places[custom_id]
        if file is None:
            raise ResponseError(f"the batch {sent.id} ended without an answer to this request", _NO_ANSWER)
        file.seek(offset)
        line = orjson.loads(file.readline())
        response, error = line.get("response"), line.get("error")
        if not response:
            said = error.get("message") if isinstance(error, dict) else error
            raise ResponseError(f"the batch {sent.id} did not make this request: {said}", _NO_ANSWER)
        # Read like the response to a live call, errors by status included; a batch brings no headers.
        return completion(int(response["status_code"]), {}, orjson.dumps(response["body"]))

    def forget(self, custom_id: str) -> None:
        """Forget a result, so that its request is made again."""
        self._places.pop(custom_id, None)

    def left(self) -> Iterator[SubmittedBatch]:
        """Yield the batch of each result that was not read."""
        return (self._places[custom_id].sent for custom_id in self._unread if custom_id in self._places)

    def clear(self) -> None:
        """Forget everything."""
        for file in self._files:
            file.close()
        self._files.clear()
        self._places.clear()
        self._unread.clear()


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yield where each line begins and its request's id; lines that hold no result are passed over."""
    offset = 0
    for line in file:
        try:
            custom_id = orjson.loads(line)["custom_id"]
        except (ValueError, TypeError, KeyError):
            custom_id = None
        if isinstance(custom_id, str):
            yield offset, custom_id
        offset += len(line)
