"""Write the requests of a wave to files, and describe what was sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ..storage.private_files import make_private_folder

UNFINISHED = ".part"


@dataclass(frozen=True)
class Request:
    """Describes a request of a wave.

    Attributes:
        address: of the provider that it is for.
        model: the model that it asks.
        line: its line in the file, with its ``custom_id``.
        file_bytes: how large a file may be by the provider's rules.
    """

    address: str
    model: str
    line: dict[str, Any]
    file_bytes: int


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

    def add(self, request: Request, tokens: float, cost: float) -> None:
        """Write a request; one file has those to one model only.

        Raises:
            OSError: it cannot be written.
        """
        address, custom_id = request.address, request.line["custom_id"]
        line = orjson.dumps(request.line, option=orjson.OPT_APPEND_NEWLINE)
        # Providers refuse batches with requests to several models.
        place = (address, request.model)
        writing = self._open.get(place)
        most = min(self._limits.file_bytes, request.file_bytes)
        if writing is None or not writing.has_room(len(line), self._limits.requests, most):
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

    def has_room(self, more: int, requests: int, file_bytes: int) -> bool:
        return self.one_file.requests < requests and self.size + more <= file_bytes

    def close(self) -> RequestFile:
        with self.file:
            self.file.flush()
            # Before it gets its final name, which says that it is complete even after a crash of the machine.
            os.fsync(self.file.fileno())
        self.unfinished.replace(self._finished)
        return self.one_file


def requests_in(file: Path) -> Iterator[dict[str, Any]]:
    """Read the requests in a file, one after another."""
    with file.open("rb") as lines:
        yield from map(orjson.loads, lines)


def custom_ids(file: Path) -> list[str]:
    """Read the custom ids of the requests in a file."""
    return [request["custom_id"] for request in requests_in(file)]


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
    """Describes a file of requests that is sent as a batch.

    Attributes:
        name: its name in the journal.
        run: the run that it is of.
        since: when it was about to be sent, in seconds since 1970.
        id: the provider's name for the batch; empty as long as it is not known that there is one.
        input_file: the provider's name for the file of requests.
        requests_done: how many requests are answered or have failed.
    """

    name: str = ""
    run: str = ""
    since: float = 0.0
    id: str = ""
    input_file: str = ""
    requests_done: int = 0

    @classmethod
    def of(cls, name: str, about: Mapping[str, Any]) -> SubmittedBatch:
        """Make one from its name and its description in the journal."""
        # Journals of earlier versions have the provider's name for a batch in this place.
        return cls(**{"id": name, **about}, name=name)

    def described(self) -> dict[str, Any]:
        """Describe the batch for the journal."""
        left_out = {"name", "requests_done"}
        return {field: value for field, value in asdict(self).items() if field not in left_out}


BATCH_DISCOUNT = 0.5
"""The share of the usual price that a batched call costs."""


@dataclass(frozen=True)
class BatchLimits:
    """Holds how large files of requests may be, and how often batches are polled.

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
