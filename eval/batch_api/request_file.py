"""Write requests to files as the Batch API takes them, and describe what was sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ..private_files import make_private_folder

ENDPOINT = "/v1/chat/completions"
UNFINISHED = ".part"


class BatchRequestFile:
    """Writes the requests of one wave to files; a file has its final name once it is complete.

    Args:
        folder: where the files go.
        number: the number of the wave.
        limits: how large a file may be.
    """

    def __init__(self, folder: Path, number: int, limits: BatchLimits) -> None:
        self.number = number
        self._folder = folder
        self._limits = limits
        self._ids: set[str] = set()
        self._open: dict[tuple[str, str], _Writing] = {}
        self._parts = 0
        self._files: list[RequestFile] = []

    def __len__(self) -> int:
        """The number of requests."""
        return len(self._ids)

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._ids

    def add(self, address: str, custom_id: str, body: dict[str, Any], tokens: float, cost: float) -> None:
        """Write a request; one file has those to one model only.

        Raises:
            OSError: it cannot be written.
        """
        request = {"custom_id": custom_id, "method": "POST", "url": ENDPOINT, "body": body}
        line = orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE)
        # The API refuses files with requests to several models.
        place = (address, str(body.get("model")))
        writing = self._open.get(place)
        if writing is None or not writing.has_room(len(line), self._limits):
            if writing is not None:
                self._files.append(writing.close())
            writing = self._open[place] = self._next(address)
        writing.file.write(line)
        writing.size += len(line)
        writing.one_file.add(tokens, cost)
        self._ids.add(custom_id)

    def close(self) -> list[RequestFile]:
        """Finish the files and return them; they are complete and on disk then.

        Raises:
            OSError: they cannot be written.
        """
        self._files += [writing.close() for writing in self._open.values()]
        self._open.clear()
        return self._files

    def discard(self) -> None:
        """Remove all files of the wave."""
        for writing in self._open.values():
            writing.file.close()
            writing.unfinished.unlink(missing_ok=True)
        for one_file in self._files:
            (self._folder / one_file.file).unlink(missing_ok=True)

    def _next(self, address: str) -> _Writing:
        make_private_folder(self._folder)
        self._parts += 1
        return _Writing(self._folder, RequestFile(f"wave-{self.number}-{self._parts}.jsonl", address))


class _Writing:
    """Writes a file under a temporary name, and gives it its own name when it is complete."""

    def __init__(self, folder: Path, one_file: RequestFile) -> None:
        self.one_file = one_file
        self.size = 0
        self._finished = folder / one_file.file
        self.unfinished = self._finished.with_name(one_file.file + UNFINISHED)
        self.file: BinaryIO = self.unfinished.open("wb")

    def has_room(self, more: int, limits: BatchLimits) -> bool:
        return self.one_file.requests < limits.requests and self.size + more <= limits.file_bytes

    def close(self) -> RequestFile:
        with self.file:
            self.file.flush()
            # Before it gets its final name, which says that it is complete even after a crash of the machine.
            os.fsync(self.file.fileno())
        self.unfinished.replace(self._finished)
        return self.one_file


def custom_ids(file: Path) -> list[str]:
    """Read the custom ids of the requests in a file."""
    with file.open("rb") as lines:
        return [orjson.loads(line)["custom_id"] for line in lines]


@dataclass
class RequestFile:
    """Describes a file of requests to one model at one address.

    Attributes:
        file: the name of the file.
        address: the address of the API that it is sent to.
        requests: how many requests it has.
        tokens: how many tokens they are expected to take.
        cost: how many US dollars they are expected to cost.
    """

    file: str
    address: str
    requests: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    @property
    def per_request(self) -> tuple[float, float]:
        """Estimated tokens and US dollars of one request, on average."""
        return self.tokens / max(self.requests, 1), self.cost / max(self.requests, 1)

    def add(self, tokens: float, cost: float) -> None:
        """Count one more request."""
        self.requests += 1
        self.tokens += tokens
        self.cost += cost


@dataclass
class SubmittedBatch(RequestFile):
    """Describes a file of requests that was sent as a batch.

    Attributes:
        id: the provider's name for the batch.
        input_file: the provider's name for the file of requests.
        requests_done: how many requests are answered or have failed.
    """

    id: str = ""
    input_file: str = ""
    requests_done: int = 0

    @classmethod
    def of(cls, name: str, about: Mapping[str, Any]) -> SubmittedBatch:
        """Make one from its description in the journal, or at the provider, where all values are strings."""
        return cls(
            file=str(about["file"]),
            address=str(about["address"]),
            requests=int(about["requests"]),
            tokens=float(about["tokens"]),
            cost=float(about["cost"]),
            id=name,
            input_file=str(about.get("input_file", "")),
        )

    def described(self) -> dict[str, Any]:
        """Describe the batch for the journal."""
        return {
            "file": self.file,
            "address": self.address,
            "requests": self.requests,
            "tokens": self.tokens,
            "cost": self.cost,
            "input_file": self.input_file,
        }


BATCH_DISCOUNT = 0.5
"""The share of the usual price that a batched call costs."""


@dataclass(frozen=True)
class BatchLimits:
    """Holds the limits of OpenAI's Batch API, and how often it is polled.

    Attributes:
        requests: the most requests in one file.
        file_bytes: the most bytes in one file.
        first_poll: seconds before the first poll.
        poll_interval: seconds between later polls, at most.
    """

    requests: int = 50_000
    file_bytes: int = 200_000_000
    first_poll: float = 5.0
    poll_interval: float = 60.0


DEFAULT_LIMITS = BatchLimits()
