"""Read the results of batches that have ended from the files that their providers' modules have written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from ...nodes.models.provider_errors import ResponseError
from .batch_provider import NO_ANSWER
from .request_file import SubmittedBatch


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

    def read(self, custom_id: str) -> tuple[int, dict[str, Any]]:
        """Return status and body of the response.

        Raises:
            ResponseError: the request was not made, or not answered.
        """
        sent, file, offset = self._places[custom_id]
        if file is None:
            raise ResponseError(f"the batch {sent.id} ended without an answer to this request", NO_ANSWER)
        file.seek(offset)
        line = orjson.loads(file.readline())
        response, error = line.get("response"), line.get("error")
        if not response:
            said = error.get("message") if isinstance(error, dict) else error
            raise ResponseError(f"the batch {sent.id} did not make this request: {said}", NO_ANSWER)
        return int(response["status_code"]), response["body"]

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
