"""Define a batch, and what a provider must be able to do with it; each provider's module implements it with its SDK."""

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

from ...nodes.models.provider_errors import ProviderFault, ResponseError
from ..journal.private_files import whole_file
from ..journal.records import Amounts

log = logging.getLogger("jurygraph.batch")

WAITS = (1.0, 4.0, 16.0, 60.0)
"""Seconds before each further attempt to make a batch."""
RETRIES = 5
# Time limits of a request that carries many requests or results, and of any other.
UPLOAD_SECONDS, SECONDS = 1800.0, 60.0
UNFINISHED = ".part"
"""The ending of a file that is being written."""

BATCH_DISCOUNT = 0.5
"""The share of the usual price that a batched call costs."""


class BatchLimits(NamedTuple):
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


def requests_in(file: Path) -> Iterator[dict[str, Any]]:
    """Read the requests in a file, one after another."""
    with file.open("rb") as lines:
        yield from map(orjson.loads, lines)


def custom_ids(file: Path) -> list[str]:
    """Read the custom ids of the requests in a file; none where it is gone."""
    return [request["custom_id"] for request in requests_in(file)] if file.exists() else []


class BatchState(NamedTuple):
    """Describes how a batch stands at its provider.

    Attributes:
        id: the provider's name for it.
        status: the provider's word for how it stands.
        ended: whether nothing more will come.
        results: by kind (``output``, ``errors``), what the provider's module reads those results from.
        requests_done: how many requests are answered or have failed, as far as the provider says.
        refused: why the provider did not begin it; empty where it did.
        over_limit: whether it was refused since too much is queued already.
        input_file: the provider's name for the file of requests, where there is one.
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
    """Makes, finds and polls batches at one address, and collects their results.

    Attributes:
        errors: what its methods raise where the provider refuses, fails or cannot be reached.
        file_bytes: the most bytes of requests that one batch may have.
        client: under which name a chat model has the client of its provider's package.
        named: what stands before the address, where addresses of several providers might look alike.
    """

    errors: ClassVar[tuple[type[Exception], ...]]
    file_bytes: ClassVar[int]
    client: ClassVar[str]
    named: ClassVar[str] = ""

    @abstractmethod
    def __init__(self, chat: BaseChatModel) -> None:
        """Take address, key and connections over from a chat model."""

    def use(self, client: Any, once_seconds: float) -> None:
        """Make requests with the client of a provider's package (``AsyncOpenAI`` and its like)."""
        self._client = client.with_options(max_retries=RETRIES, timeout=SECONDS)
        self._slow = client.with_options(max_retries=RETRIES, timeout=UPLOAD_SECONDS)
        # Without retries: if only the answer was lost, the client itself would make the batch a second time.
        self._once = client.with_options(max_retries=0, timeout=once_seconds)

    async def create(self, path: Path, sent: SubmittedBatch, known: Collection[str]) -> BatchState:
        """Make a batch of a file of requests, and no second one if the answer to the first attempt is lost.

        Args:
            path: the file.
            sent: what is sent; its run and its file mark the batch where the provider keeps marks.
            known: the ids of other batches of the run.
        """
        input_file = await self.upload(path)
        for wait in WAITS:
            try:
                return await self.start(path, sent, input_file)
            except self.errors as error:
                if not may_pass(error):
                    raise
                log.info("batch could not be made", extra={"reason": str(error), "wait_seconds": wait})
            await asyncio.sleep(wait)
            if batch := await self.find(path, sent, known):
                return batch
        return await self.start(path, sent, input_file)

    async def poll(self, name: str) -> BatchState:
        """Return the state of a batch; one that is not there any more has ended without results."""
        try:
            return await self.state_of(name)
        except self.errors as error:
            if ProviderFault(error).status == 404:
                return BatchState(name, "gone", ended=True, results={})
            raise

    async def collect(self, batch: BatchState, path: Path) -> list[Path]:
        """Write the results of a batch that has ended beside its file of requests; those that are gone are left out.

        Each line is an object with ``custom_id`` and either ``response`` (``status_code`` and ``body``) or ``error``.
        """
        files = []
        for kind, source in batch.results.items():
            to = path.with_suffix(f".{kind}.jsonl")
            # A file that an earlier start wrote is whole: it gets this name only then.
            if to.exists() or await self.fetch(batch.id, source, path, to):
                files.append(to)
        if not files:
            log.warning("no results", extra={"batch": batch.id, "status": batch.status})
        return files

    async def upload(self, path: Path) -> str:
        """Upload a file of requests where a batch is made of one, and return the provider's name for it."""
        return ""

    async def download(self, name: str, path: Path) -> bool:
        """Download one of the provider's files; return False where it is gone or the provider has no files."""
        return False

    @abstractmethod
    async def start(self, path: Path, sent: SubmittedBatch, input_file: str) -> BatchState:
        """Make a batch, in one attempt: if only the answer was lost, a second would make another batch."""

    @abstractmethod
    async def find(self, path: Path, sent: SubmittedBatch, known: Collection[str]) -> BatchState | None:
        """Find the batch that was made of a file, if there is one; ``known`` batches are others."""

    @abstractmethod
    async def state_of(self, name: str) -> BatchState:
        """Ask for the state of a batch; an error with the status 404 where there is none."""

    async def fetch(self, name: str, source: Any, path: Path, to: Path) -> bool:
        """Write results to a file, from their place in a ``BatchState``; return False where they are gone.

        Args:
            name: the provider's name for the batch.
            source: what the batch's state has of these results.
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
        # Not abstract: where results are a file already, a provider has its own ``fetch`` and no need of lines.
        raise NotImplementedError

    @classmethod
    def client_of(cls, chat: BaseChatModel) -> Any:
        """Return the client by which a chat model asks its provider."""
        return getattr(chat, cls.client)

    @classmethod
    def address_of(cls, chat: BaseChatModel) -> str:
        """Return what tells the provider and the address that a chat model asks from all others."""
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
    """Tell whether another attempt may succeed after an error."""
    return ProviderFault(error).retryable
