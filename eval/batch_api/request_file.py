"""Requests in files as the provider takes them, and what was sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

ENDPOINT = "/v1/chat/completions"
UNFINISHED = ".part"


class BatchRequestFile:
    """Requests are written as they come; a file is whole once it has its name.

    Args:
        folder: where the files go.
        number: of the wave.
        terms: how large a file may be.
    """

    def __init__(self, folder: Path, number: int, terms: BatchLimits) -> None:
        self.number = number
        self._folder = folder
        self._terms = terms
        self._ids: set[str] = set()
        self._open: dict[tuple[str, str], _Writing] = {}
        self._parts = 0
        self._parcels: list[RequestFile] = []

    def __len__(self) -> int:
        """How many requests."""
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
        place = (address, str(body.get("model")))
        writing = self._open.get(place)
        if writing is None or not writing.has_room(len(line), self._terms):
            if writing is not None:
                self._parcels.append(writing.close())
            writing = self._open[place] = self._next(address)
        writing.file.write(line)
        writing.size += len(line)
        writing.one_file.add(tokens, cost)
        self._ids.add(custom_id)

    def close(self) -> list[RequestFile]:
        """Finish the files: they are on disk, whole.

        Raises:
            OSError: they cannot be written.
        """
        self._parcels += [writing.close() for writing in self._open.values()]
        self._open.clear()
        return self._parcels

    def discard(self) -> None:
        """Leave nothing behind."""
        for writing in self._open.values():
            writing.file.close()
            writing.unfinished.unlink(missing_ok=True)
        for one_file in self._parcels:
            (self._folder / one_file.file).unlink(missing_ok=True)

    def _next(self, address: str) -> _Writing:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._parts += 1
        return _Writing(self._folder, RequestFile(f"wave-{self.number}-{self._parts}.jsonl", address))


class _Writing:
    """A file that is being written."""

    def __init__(self, folder: Path, one_file: RequestFile) -> None:
        self.one_file = one_file
        self.size = 0
        self._whole = folder / one_file.file
        self.unfinished = self._whole.with_name(one_file.file + UNFINISHED)
        self.file: BinaryIO = self.unfinished.open("wb")

    def has_room(self, more: int, terms: BatchLimits) -> bool:
        return self.one_file.requests < terms.requests and self.size + more <= terms.file_bytes

    def close(self) -> RequestFile:
        with self.file:
            self.file.flush()
            os.fsync(self.file.fileno())
        self.unfinished.replace(self._whole)
        return self.one_file


def custom_ids(file: Path) -> list[str]:
    """The requests in a file, by name."""
    with file.open("rb") as lines:
        return [orjson.loads(line)["custom_id"] for line in lines]


@dataclass
class RequestFile:
    """Requests to one model at one address, written to one file.

    Attributes:
        file: its name.
        address: where it is to go.
        requests: how many.
        tokens: that they are expected to take.
        cost: US dollars that they are expected to take.
    """

    file: str
    address: str
    requests: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    @property
    def each(self) -> tuple[float, float]:
        """Tokens and dollars of one request, on average."""
        return self.tokens / max(self.requests, 1), self.cost / max(self.requests, 1)

    def add(self, tokens: float, cost: float) -> None:
        """Count one more request."""
        self.requests += 1
        self.tokens += tokens
        self.cost += cost


@dataclass
class SubmittedBatch(RequestFile):
    """A parcel that was sent.

    Attributes:
        id: the provider's name for the batch.
        input_file: the provider's name for the file of requests.
        requests_done: how far it has come.
    """

    id: str = ""
    input_file: str = ""
    requests_done: int = 0

    @classmethod
    def of(cls, name: str, about: Mapping[str, Any]) -> SubmittedBatch:
        """From what was noted, here or at the provider, where all values are strings."""
        return cls(
            file=str(about["file"]),
            address=str(about["address"]),
            requests=int(about["requests"]),
            tokens=float(about["tokens"]),
            cost=float(about["cost"]),
            id=name,
            input_file=str(about.get("input_file", "")),
        )

    def about(self) -> dict[str, Any]:
        """What is to be noted."""
        return {
            "file": self.file,
            "address": self.address,
            "requests": self.requests,
            "tokens": self.tokens,
            "cost": self.cost,
            "input_file": self.input_file,
        }


BATCH_DISCOUNT = 0.5
"""What a batched call costs, as a share of the usual price."""


@dataclass(frozen=True)
class BatchLimits:
    """OpenAI's, as of its guide to the Batch API.

    Attributes:
        requests: in one file, at most.
        file_bytes: of one file, at most.
        first_look: seconds after which a batch is looked after for the first time.
        between_looks: seconds between later looks, at most.
    """

    requests: int = 50_000
    file_bytes: int = 200_000_000
    first_look: float = 5.0
    between_looks: float = 60.0


DEFAULT_LIMITS = BatchLimits()
