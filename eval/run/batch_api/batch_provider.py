"""A batch, and the base class of providers of batches; each module implements it with an SDK."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import orjson
from langchain_core.language_models import BaseChatModel

from ....nodes.models.provider_errors import ProviderFault, ResponseError
from ...journal.private_files import whole_file
from ...journal.records import Amounts

log = logging.getLogger("jurygraph.batch")

WAITS = (1.0, 4.0, 16.0, 60.0)
"""The seconds before each further attempt to create a batch."""
RETRIES = 5
# Time limits of a request that carries many requests or results, and of any other request.
UPLOAD_SECONDS = 1800.0
SECONDS = 60.0
UNFINISHED = ".part"
"""The ending of a file that is being written."""

BATCH_DISCOUNT = 0.5
"""The share of the usual price that a batched call costs."""


class BatchLimits(NamedTuple):
    """The limits on files of requests, and the times between polls.

    Attributes:
        requests: the maximum number of requests in one file.
        file_bytes: the maximum number of bytes in one file.
        first_poll: seconds before the first poll.
        poll_interval: the maximum number of seconds between later polls.
    """

    requests: int = 50_000
    file_bytes: int = 200_000_000
    first_poll: float = 5.0
    poll_interval: float = 60.0


DEFAULT_LIMITS = BatchLimits()


@dataclass
class SubmittedBatch:
    """A file of requests to one model, and the batch that is created from it.

    Attributes:
        file: the name of the file.
        address: the address of the API.
        requests: the number of its requests.
        tokens: the expected number of tokens.
        cost: the expected cost in US dollars.
        name: its name in the journal.
        run: the id of its run.
        since: the time just before it was sent, in seconds since 1970.
        id: the provider's name for the batch; empty until it is known that the batch exists.
        input_file: the provider's name for the file of requests.
        requests_done: the number of requests that are answered or have failed.
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
        """Create one from its name and its description in the journal."""
        # Journals of earlier versions have the provider's name for a batch in this place.
        return cls(**{"id": name, **about}, name=name)

    def described(self) -> dict[str, Any]:
        """Describe the batch for the journal."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ("name", "requests_done")
        }

    @property
    def amounts(self) -> Amounts:
        """The estimated usage of its requests."""
        return Amounts(self.requests, self.tokens, self.cost)

    @property
    def per_request(self) -> Amounts:
        """The estimated usage of one request, on average."""
        return Amounts(1, self.tokens / max(self.requests, 1), self.cost / max(self.requests, 1))


def requests_in(file: Path) -> Iterator[dict[str, Any]]:
    """Read the requests in a file, one after another."""
    with file.open("rb") as lines:
        yield from map(orjson.loads, lines)


def custom_ids(file: Path) -> list[str]:
    """Read the custom ids of the requests in a file; none if the file does not exist."""
    return [request["custom_id"] for request in requests_in(file)] if file.exists() else []


class BatchState(NamedTuple):
    """The state of a batch at its provider.

    Attributes:
        id: the provider's name for it.
        status: the provider's word for its state.
        ended: whether no further results will come.
        results: by kind (``output``, ``errors``), the source that the provider's module reads those
            results from.
        requests_done: the number of requests that are answered or have failed, as reported by the
            provider.
        refused: the reason why the provider did not begin it; empty if it did.
        over_limit: whether it was refused because too much is queued already.
        input_file: the provider's name for the file of requests, if there is one.
    """

    id: str
    status: str
    ended: bool
    results: Mapping[str, Any]
    requests_done: int = 0
    refused: str = ""
    over_limit: bool = False
    input_file: str = ""


class BatchProvider(ABC):
    """Creates, finds and polls batches at one address, and collects their results.

    Attributes:
        errors: the errors that its methods raise if the provider refuses, fails or cannot be
            reached.
        file_bytes: the maximum number of bytes of requests in one batch.
        client: the attribute of a chat model that has the client of its provider's package.
        named: the prefix of the address, if addresses of several providers might look alike.
    """

    errors: ClassVar[tuple[type[Exception], ...]]
    file_bytes: ClassVar[int]
    client: ClassVar[str]
    named: ClassVar[str] = ""

    @abstractmethod
    def __init__(self, chat: BaseChatModel) -> None:
        """Take address, key and connections over from a chat model."""

    def use(self, client: Any, once_seconds: float) -> None:
        """Send requests with the client of a provider's package, such as ``AsyncOpenAI``."""
        self._client = client.with_options(max_retries=RETRIES, timeout=SECONDS)
        self._slow = client.with_options(max_retries=RETRIES, timeout=UPLOAD_SECONDS)
        # Without retries: if only the answer was lost, the client would create the batch a second
        # time.
        self._once = client.with_options(max_retries=0, timeout=once_seconds)

    async def create(self, path: Path, sent: SubmittedBatch, known: Collection[str]) -> BatchState:
        """Create a batch from a file of requests, and no second one if the first answer is lost.

        Args:
            path: the file.
            sent: the description of the batch; its run and file mark the batch if the provider
                stores marks.
            known: the ids of other batches of the run.
        """
        input_file = await self.upload(path)
        for wait in WAITS:
            try:
                return await self.start(path, sent, input_file)
            except self.errors as error:
                if not may_pass(error):
                    raise
                log.info(
                    "batch could not be made", extra={"reason": str(error), "wait_seconds": wait}
                )
            await asyncio.sleep(wait)
            if batch := await self.find(path, sent, known):
                return batch
        return await self.start(path, sent, input_file)

    async def poll(self, name: str) -> BatchState:
        """Return the state of a batch; one that no longer exists has ended without results."""
        try:
            return await self.state_of(name)
        except self.errors as error:
            if ProviderFault(error).status == 404:
                return BatchState(name, "gone", ended=True, results={})
            raise

    async def collect(self, batch: BatchState, path: Path) -> list[Path]:
        """Write the results of an ended batch next to its file of requests; skip deleted results.

        Each line is an object with ``custom_id`` and either ``response`` (``status_code`` and
        ``body``) or ``error``.
        """
        files = []
        for kind, source in batch.results.items():
            to = path.with_suffix(f".{kind}.jsonl")
            # A file from an earlier start is complete, since it gets this name only at the end.
            if to.exists() or await self.fetch(batch.id, source, path, to):
                files.append(to)
        if not files:
            log.warning("no results", extra={"batch": batch.id, "status": batch.status})
        return files

    async def upload(self, path: Path) -> str:
        """Upload a file of requests if batches need one, and return the provider's name for it."""
        return ""

    async def download(self, name: str, path: Path) -> bool:
        """Download one of the provider's files; return ``False`` if it does not exist."""
        return False

    @abstractmethod
    async def start(self, path: Path, sent: SubmittedBatch, input_file: str) -> BatchState:
        """Create a batch in one attempt.

        If only the answer was lost, a second attempt would create another batch.
        """

    @abstractmethod
    async def find(
        self, path: Path, sent: SubmittedBatch, known: Collection[str]
    ) -> BatchState | None:
        """Find the batch that was created from a file, if there is one.

        ``known`` batches are others.
        """

    @abstractmethod
    async def state_of(self, name: str) -> BatchState:
        """Request the state of a batch; raise an error with the status 404 if it does not exist."""

    async def fetch(self, name: str, source: Any, path: Path, to: Path) -> bool:
        """Write results to a file, from their source in a ``BatchState``.

        Return ``False`` without any.

        Args:
            name: the provider's name for the batch.
            source: the source of these results in the batch's state.
            path: the file of its requests.
            to: the file to write.
        """
        if not source:
            return False
        with whole_file(to, UNFINISHED) as file:
            async for line in self.lines(name, source, path):
                file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        return True

    def lines(self, name: str, source: Any, path: Path) -> AsyncIterator[dict[str, Any]]:
        """Yield results as lines of their file (see ``collect``); arguments as for ``fetch``."""
        # Not abstract: a provider with results in a file has its own ``fetch`` and needs no lines.
        raise NotImplementedError

    @classmethod
    def client_of(cls, chat: BaseChatModel) -> Any:
        """Return the client that a chat model uses for its provider."""
        return getattr(chat, cls.client)

    @classmethod
    def address_of(cls, chat: BaseChatModel) -> str:
        """Return a text that identifies the provider and the address of a chat model."""
        return f"{cls.named}{cls.client_of(chat).base_url}"

    @staticmethod
    def line(custom_id: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the line of a request in its file."""
        return {"custom_id": custom_id, "body": body}

    @staticmethod
    def read(status: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a response.

        Raises:
            ResponseError: it is an error.
        """
        if status < 300:
            return body
        message = (body.get("error") or {}).get("message")
        raise ResponseError(f"Error code: {status} - {message}", status, {}, body)


def may_pass(error: Exception) -> bool:
    """Return whether another attempt may succeed after an error."""
    return ProviderFault(error).retryable
