"""Keep the files of batches: the requests of a wave, what was sent of them, and the results that came."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ...nodes.models.provider_errors import ResponseError
from ..journal.private_files import make_private_folder
from ..journal.records import Amounts

Body = dict[str, Any]
"""The body of a request or of a response, or a line of a file with one in it."""
UNFINISHED = ".part"
NO_ANSWER = 408
"""The status given to a request that the provider did not answer, which makes it retryable."""

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


@dataclass
class SubmittedBatch:
    """Describes a file of requests to one model, and the batch that it is sent as.

    Attributes:
        file: the name of the file.
        address: the address of the API that it is sent to.
        requests: how many requests it has.
        tokens: how many tokens they are expected to take.
        cost: how many US dollars they are expected to cost.
        name: its name in the journal.
        run: the run that it is of.
        since: when it was about to be sent, in seconds since 1970.
        id: the provider's name for the batch; empty as long as it is not known that there is one.
        input_file: the provider's name for the file of requests.
        requests_done: how many requests are answered or have failed.
    """

    file: str
    address: str
    requests: int = 0
    tokens: float = 0.0
    cost: float = 0.0
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
        return {name: value for name, value in asdict(self).items() if name not in ("name", "requests_done")}

    @property
    def amounts(self) -> Amounts:
        """What its requests are estimated to take."""
        return Amounts(self.requests, self.tokens, self.cost)

    @property
    def per_request(self) -> Amounts:
        """What one request is estimated to take, on average."""
        return Amounts(1, self.tokens / max(self.requests, 1), self.cost / max(self.requests, 1))


class WaveFiles:
    """Writes the requests of one wave to files; a file has its final name once it is complete.

    Args:
        folder: where the files go.
        number: the number of the wave.

    Attributes:
        ids: the custom ids of its requests.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.number, self._folder, self._limits = number, folder, DEFAULT_LIMITS
        self.ids: set[str] = set()
        self._open: dict[tuple[str, str], tuple[SubmittedBatch, BinaryIO]] = {}
        self._complete: list[SubmittedBatch] = []

    def add(self, line: Body, place: tuple[str, str], most: int, expected: Amounts) -> None:
        """Write a request; one file has those to one model only, since providers refuse batches with several.

        Args:
            line: its line in the file, with its ``custom_id``.
            place: the provider's address, and the model that it asks.
            most: how many bytes a file may have by the provider's rules.
            expected: what it is expected to take.

        Raises:
            OSError: it cannot be written.
        """
        text = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        if place in self._open:
            sent, file = self._open[place]
            is_full = file.tell() + len(text) > min(self._limits.file_bytes, most)
            if is_full or sent.requests >= self._limits.requests:
                self._finish(place)
        if place not in self._open:
            make_private_folder(self._folder)
            part = 1 + len(self._complete) + len(self._open)
            sent = SubmittedBatch(f"wave-{self.number}-{part}.jsonl", address=place[0])
            self._open[place] = sent, (self._folder / (sent.file + UNFINISHED)).open("wb")
        sent, file = self._open[place]
        file.write(text)
        sent.requests += 1
        sent.tokens += expected.tokens
        sent.cost += expected.cost
        self.ids.add(line["custom_id"])

    def close(self) -> list[SubmittedBatch]:
        """Finish the files and return them; they are complete and on disk then.

        Raises:
            OSError: they cannot be written.
        """
        for place in [*self._open]:
            self._finish(place)
        return self._complete

    def discard(self) -> None:
        """Remove all files of the wave."""
        for _, file in self._open.values():
            file.close()
        for path in self._folder.glob(f"wave-{self.number}-*"):
            path.unlink()

    def _finish(self, place: tuple[str, str]) -> None:
        sent, file = self._open[place]
        with file:
            file.flush()
            # Before it gets its final name, which says that it is complete even after a crash of the machine.
            os.fsync(file.fileno())
        Path(file.name).replace(self._folder / sent.file)
        self._complete.append(sent)
        del self._open[place]


def requests_in(file: Path) -> Iterator[dict[str, Any]]:
    """Read the requests in a file, one after another."""
    with file.open("rb") as lines:
        yield from map(orjson.loads, lines)


def custom_ids(file: Path) -> list[str]:
    """Read the custom ids of the requests in a file; none where it is gone."""
    return [request["custom_id"] for request in requests_in(file)] if file.exists() else []


_Place = tuple[SubmittedBatch, BinaryIO | None, int]
"""Where a result is: its batch, its file (None where there is none), and its offset in there."""


class BatchResults:
    """Finds the results of batches that have ended; in memory is only where in its file each one stands.

    Attributes:
        unread: by custom id, the batch of each result that was not read yet.
    """

    def __init__(self) -> None:
        self.unread: dict[str, SubmittedBatch] = {}
        self._places: dict[str, _Place] = {}
        self._files: list[BinaryIO] = []

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._places

    def add(self, sent: SubmittedBatch, wanted: list[str], files: list[Path]) -> None:
        """Add the results of a batch; requests that have none count as not answered."""
        # Not answered, unless a file says otherwise: a batch that is cut off has results for some of its requests.
        places: dict[str, _Place] = dict.fromkeys(wanted, (sent, None, 0))
        for path in files:
            file = path.open("rb")
            self._files.append(file)
            offset = 0
            for line in file:
                # Lines that hold no result are passed over.
                with suppress(ValueError, TypeError, KeyError):
                    if isinstance(custom_id := orjson.loads(line)["custom_id"], str):
                        places[custom_id] = sent, file, offset
                offset += len(line)
        self._places |= places
        self.unread |= dict.fromkeys(places, sent)

    def read(self, custom_id: str) -> tuple[int, Body]:
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
            reason = error.get("message") if isinstance(error, dict) else error
            raise ResponseError(f"the batch {sent.id} did not carry out this request: {reason}", NO_ANSWER)
        return int(response["status_code"]), response["body"]

    def forget(self, custom_id: str) -> None:
        """Forget a result, so that its request is made again."""
        self._places.pop(custom_id, None)

    def clear(self) -> None:
        """Forget everything."""
        for file in self._files:
            file.close()
        self._files.clear()
        self._places.clear()
        self.unread.clear()
