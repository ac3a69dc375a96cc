"""What came of requests: replies and errors, read from the provider's files when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from ...nodes.models.openai_fast import completion
from ...nodes.models.provider_errors import ResponseError
from .sent import Sent

_NO_ANSWER = 408
"""The status that stands for a request which the provider has not got round to: the same one may succeed later."""


class _Place(NamedTuple):
    """Where an outcome is; without a file, there is none."""

    sent: Sent
    file: BinaryIO | None
    offset: int


class Outcomes:
    """Of the batches that have ended; only where each stands is held."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._unread: set[str] = set()
        self._files: list[BinaryIO] = []

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._places

    def add(self, sent: Sent, wanted: list[str], files: list[Path]) -> None:
        """Take up what a batch has brought; whatever of it is missing has got no answer."""
        for custom_id in wanted:
            self._places[custom_id] = _Place(sent, None, 0)
        for path in files:
            file = path.open("rb")
            self._files.append(file)
            for offset, custom_id in _lines(file):
                self._places[custom_id] = _Place(sent, file, offset)
                self._unread.add(custom_id)
        self._unread.update(wanted)

    def first_read(self, custom_id: str) -> Sent | None:
        """The batch that brought it, if nobody has read it yet."""
        if custom_id not in self._unread:
            return None
        self._unread.discard(custom_id)
        return self._places[custom_id].sent

    def read(self, custom_id: str) -> dict[str, Any]:
        """The chat completion.

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
        return completion(int(response["status_code"]), {}, orjson.dumps(response["body"]))

    def forget(self, custom_id: str) -> None:
        """It is of no use any more: the request is to be made again."""
        self._places.pop(custom_id, None)

    def left(self) -> Iterator[Sent]:
        """The batch of each outcome that nobody has read."""
        return (self._places[custom_id].sent for custom_id in self._unread if custom_id in self._places)

    def clear(self) -> None:
        """Forget everything."""
        for file in self._files:
            file.close()
        self._files.clear()
        self._places.clear()
        self._unread.clear()


def _lines(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Where each line begins and whose it is; what is no line of a result is passed over."""
    offset = 0
    for line in file:
        try:
            custom_id = orjson.loads(line)["custom_id"]
        except (ValueError, TypeError, KeyError):
            custom_id = None
        if isinstance(custom_id, str):
            yield offset, custom_id
        offset += len(line)
