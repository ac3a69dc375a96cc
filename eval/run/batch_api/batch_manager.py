"""The batches of a run: write waves of requests to files, send and poll batches, collect results.

Batches continue at the provider when the process ends; the next start of the run finds them in the
journal.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from ....nodes.models.provider_errors import ResponseError
from ....state.errors import UsageError
from ...journal.call_journal import Journal
from ...journal.private_files import make_private_folder, whole_file
from ...journal.records import Amounts
from ..calls.budget import BudgetTracker
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import StopSignal
from . import batch_provider
from .batch_provider import (
    UNFINISHED,
    BatchProvider,
    BatchState,
    SubmittedBatch,
    custom_ids,
    log,
    may_pass,
)

# For example wave-12-3.jsonl: the third file of the twelfth wave.
_FILE = re.compile(r"wave-(\d+)-\d+\.jsonl")


NO_ANSWER = 408
"""The status of a request that the provider did not answer, which makes it retryable."""

Body = dict[str, Any]
"""The body of a request or a response, or a line of a file that contains one."""


class WaveFiles:
    """Writes the requests of one wave to files; a file has its final name once it is complete.

    Args:
        folder: the folder of the files.
        number: the number of the wave.

    Attributes:
        ids: the custom ids of its requests.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.number = number
        self._folder = folder
        self._limits = batch_provider.DEFAULT_LIMITS
        self.ids: set[str] = set()
        self._files: list[SubmittedBatch] = []
        self._open: dict[tuple[str, str], tuple[SubmittedBatch, BinaryIO]] = {}
        self._closing = ExitStack()

    def add(self, line: Body, place: tuple[str, str], most: int, expected: Amounts) -> None:
        """Write a request; a file has requests to one model only, since providers require this.

        Args:
            line: its line in the file, with its ``custom_id``.
            place: the provider's address and the requested model.
            most: the maximum number of bytes of a file by the provider's rules.
            expected: its expected usage.

        Raises:
            OSError: the file cannot be written.
        """
        text = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        sent, file = self._open.get(place) or self._begin(place)
        is_full = file.tell() + len(text) > min(self._limits.file_bytes, most)
        if sent.requests and (is_full or sent.requests >= self._limits.requests):
            sent, file = self._begin(place)
        file.write(text)
        sent.requests += 1
        sent.tokens += expected.tokens
        sent.cost += expected.cost
        self.ids.add(line["custom_id"])

    def close(self) -> list[SubmittedBatch]:
        """Finish the files and return them; after that they are complete and on disk.

        Raises:
            OSError: the files cannot be written.
        """
        self._closing.close()
        return self._files

    def discard(self) -> None:
        """Remove all files of the wave."""
        self.close()
        for path in self._folder.glob(f"wave-{self.number}-*"):
            path.unlink()

    def _begin(self, place: tuple[str, str]) -> tuple[SubmittedBatch, BinaryIO]:
        make_private_folder(self._folder)
        sent = SubmittedBatch(f"wave-{self.number}-{len(self._files) + 1}.jsonl", address=place[0])
        # On closing, it gets its final name, which shows even after a crash that it is complete.
        file = self._closing.enter_context(whole_file(self._folder / sent.file, UNFINISHED))
        self._files.append(sent)
        self._open[place] = sent, file
        return sent, file


_Place = tuple[SubmittedBatch, Path | None, int]
"""The place of a result: its batch, its file (``None`` without one), and its offset in the file."""


class BatchResults:
    """Finds the results of batches that have ended; only their places in files are in memory.

    Attributes:
        unread: by custom id, the batch of each result that was not read yet.
    """

    def __init__(self) -> None:
        self.unread: dict[str, SubmittedBatch] = {}
        self._places: dict[str, _Place] = {}

    def __contains__(self, custom_id: str) -> bool:
        return custom_id in self._places

    def add(self, sent: SubmittedBatch, wanted: list[str], files: list[Path]) -> None:
        """Add the results of a batch; requests without a result count as not answered."""
        # By default not answered: a batch that is cut off has results for only some of its
        # requests.
        places: dict[str, _Place] = dict.fromkeys(wanted, (sent, None, 0))
        for path in files:
            offset = 0
            with path.open("rb") as file:
                for line in file:
                    # Lines without a result are skipped.
                    with suppress(ValueError, TypeError, KeyError):
                        if isinstance(custom_id := orjson.loads(line)["custom_id"], str):
                            places[custom_id] = sent, path, offset
                    offset += len(line)
        self._places |= places
        self.unread |= dict.fromkeys(places, sent)

    def read(self, custom_id: str) -> tuple[int, Body]:
        """Return status and body of the response.

        Raises:
            ResponseError: the request was not sent, or not answered.
        """
        sent, path, offset = self._places[custom_id]
        if path is None:
            raise ResponseError(
                f"the batch {sent.id} ended without an answer to this request", NO_ANSWER
            )
        with path.open("rb") as file:
            file.seek(offset)
            line = orjson.loads(file.readline())
        response = line.get("response")
        error = line.get("error")
        if not response:
            reason = error.get("message") if isinstance(error, dict) else error
            raise ResponseError(
                f"the batch {sent.id} did not carry out this request: {reason}", NO_ANSWER
            )
        return int(response["status_code"]), response["body"]

    def forget(self, custom_id: str) -> None:
        """Forget a result, so that its request is sent again."""
        self._places.pop(custom_id, None)


@dataclass(eq=False)
class BatchManager:
    """Manages the batches of one run.

    Attributes:
        folder: contains the files of requests and of results as long as they are needed.
        run: the id of the run, which marks its batches if the provider stores marks.
        providers: the batches at each address.
        journal: records the batches.
        budget: reserves the estimated usage of requests in running batches.
        counts: shows the progress of the batches.
        stop: ends the run if the provider does not let it continue.
        waves: the number of waves in the folder so far.
        outcomes: the results of batches that have ended.
        running: the batches that have not ended.
        submitted: the requests of batches that are running.
    """

    folder: Path
    run: str
    providers: Mapping[str, BatchProvider]
    journal: Journal
    budget: BudgetTracker
    counts: ProgressCounters
    stop: StopSignal
    outcomes: BatchResults = field(default_factory=BatchResults)
    submitted: set[str] = field(default_factory=set)
    running: dict[str, SubmittedBatch] = field(default_factory=dict)
    _collected: list[SubmittedBatch] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    waves: int = 0

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that the providers raise if they refuse, fail or cannot be reached."""
        return tuple({kind for provider in self.providers.values() for kind in provider.errors})

    async def resume(self) -> None:
        """Continue the batches of earlier starts, also those that were sent but not recorded."""
        recorded = await self.journal.batches()
        known = [SubmittedBatch.of(batch.id, batch.about) for batch in recorded]
        self._ids = {sent.id for sent in known}
        files = {sent.file for sent in known}
        self.waves = max(
            (int(match[1]) for match in map(_FILE.fullmatch, files) if match), default=0
        )
        self._clean_up(files)
        for sent, batch in zip(known, recorded, strict=True):
            if batch.settled:
                # The run ended after the batch was settled and before its files were removed.
                self._remove(sent)
                continue
            path = self.folder / sent.file
            provider = self._provider(sent.address)
            if not sent.id:
                # The run ended while the batch was being sent.
                if (made := await provider.find(path, sent, self._ids)) is None:
                    await self._forget(sent)
                    continue
                await self._note(sent, made)
            if not path.exists():
                make_private_folder(self.folder)
                await provider.download(sent.input_file, path)
            self.running[sent.name] = sent
            self.budget.add_in_flight(sent.amounts)
            self.submitted.update(custom_ids(path))
        if self.running:
            about = {"batches": len(self.running), "requests": len(self.submitted)}
            log.info("batches taken up", extra=about)
            await self._poll_all()
        # Without its file, the requests of a batch are unknown and would be sent a second time.
        while any(not (self.folder / sent.file).exists() for sent in self.running.values()):
            await asyncio.sleep(batch_provider.DEFAULT_LIMITS.poll_interval)
            await self._poll_all()

    async def send(self, files: Sequence[SubmittedBatch]) -> None:
        """Create a batch from each file of a wave."""
        for sent in files:
            path = self.folder / sent.file
            provider = self._provider(sent.address)
            sent.name = f"{self.run}/{sent.file}"
            sent.run = self.run
            sent.since = time.time()
            # It is noted before it is created: a run that is killed in between searches for it on
            # resuming.
            await self.journal.note_batch(sent.name, sent.described())
            try:
                batch = await provider.create(path, sent, self._ids)
            except provider.errors as error:
                if not may_pass(error):
                    await self.journal.settle_batch(sent.name)
                raise
            await self._note(sent, batch)
            self.running[sent.name] = sent
            self.submitted.update(custom_ids(path))
            log.info(
                "batch sent", extra={"batch": sent.id, "file": sent.file, "requests": sent.requests}
            )

    async def wait(self) -> None:
        """Poll until all batches have ended, or the run is to end."""
        pause = batch_provider.DEFAULT_LIMITS.first_poll
        self._show_phase()
        while self.running and not self.stop.is_asked:
            await asyncio.sleep(pause)
            await self._poll_all()
            # Each pause is 1.5 times as long as the one before.
            pause = min(pause * 1.5, batch_provider.DEFAULT_LIMITS.poll_interval)

    async def settle(self) -> None:
        """Forget the batches whose results were read.

        These results are in the journal now, or no call requests them.
        """
        for sent in self.outcomes.unread.values():
            self.budget.release(sent.per_request)
        self.outcomes = BatchResults()
        for sent in self._collected:
            await self._forget(sent)
        self._collected.clear()

    def _clean_up(self, known: set[str]) -> None:
        """Remove files of requests that are not ready to send, and results without a file."""
        for path in self.folder.glob(f"*{UNFINISHED}"):
            path.unlink()
        paths = list(self.folder.glob("wave-*.jsonl"))
        whole = known & {path.name for path in paths}
        for path in paths:
            # The results of wave-1-2.jsonl are in wave-1-2.output.jsonl and wave-1-2.errors.jsonl.
            if f"{path.name.partition('.')[0]}.jsonl" not in whole:
                path.unlink()

    async def _note(self, sent: SubmittedBatch, batch: BatchState) -> None:
        sent.id = batch.id
        sent.input_file = batch.input_file
        self._ids.add(sent.id)
        await self.journal.note_batch(sent.name, sent.described())

    async def _poll_all(self) -> None:
        for sent in list(self.running.values()):
            try:
                batch = await self._provider(sent.address).poll(sent.id)
                sent.requests_done = max(sent.requests_done, batch.requests_done)
                if batch.ended or batch.refused:
                    await self._end(sent, batch)
            except self.errors as error:
                if not may_pass(error):
                    raise
                log.warning(
                    "batch cannot be looked after", extra={"batch": sent.id, "reason": str(error)}
                )
            self._show_phase()

    async def _end(self, sent: SubmittedBatch, batch: BatchState) -> None:
        """Remove a batch from those that are running.

        If it was refused, its requests may be sent again.

        If the batch or its results no longer exist, its requests count as not answered.
        """
        path = self.folder / sent.file
        files = [] if batch.refused else await self._provider(sent.address).collect(batch, path)
        requests = custom_ids(path)
        self.submitted.difference_update(requests)
        del self.running[sent.name]
        if not batch.refused:
            self.outcomes.add(sent, requests, files)
            self._collected.append(sent)
            noted = {"batch": sent.id, "status": batch.status, "done": sent.requests_done}
            log.info("batch ended", extra=noted)
            return
        self.budget.release(sent.amounts)
        await self._forget(sent)
        log.warning("batch refused", extra={"batch": sent.id, "reason": batch.refused})
        # Ending batches make room. Without another batch to end, a second attempt would be refused
        # too.
        if not (batch.over_limit and (self.running or self._collected)):
            self.stop.ask("provider", f"the provider refused the batch {sent.id}: {batch.refused}")

    async def _forget(self, sent: SubmittedBatch) -> None:
        await self.journal.settle_batch(sent.name)
        self._remove(sent)

    def _remove(self, sent: SubmittedBatch) -> None:
        for path in self.folder.glob(f"{Path(sent.file).stem}.*"):
            path.unlink()

    def _provider(self, address: str) -> BatchProvider:
        if address not in self.providers:
            raise UsageError(
                f"this run has unfinished batches at {address}, but none of its models is there "
                "now; set models and base URLs as they were when the batches were sent"
            )
        return self.providers[address]

    def _show_phase(self) -> None:
        done = sum(sent.requests_done for sent in self.running.values())
        whole = sum(sent.requests for sent in self.running.values())
        under_way = f"{len(self.running):,} at the provider, {done:,} of {whole:,} requests done"
        self.counts.phase = f"wave {self.waves}: {under_way}" if self.running else ""
