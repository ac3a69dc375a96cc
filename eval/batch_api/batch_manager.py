"""Send waves of requests to the provider as batches, poll them and collect their results.

Batches go on at the provider when the process ends; the next start of the run finds them in the journal.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...state.errors import UsageError
from ..calls.budget import BudgetTracker
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import StopSignal
from ..journal import Journal
from ..storage.private_files import make_private_folder
from .batch_provider import BatchProvider, BatchState, errors_of, may_pass
from .batch_results import BatchResults
from .request_file import UNFINISHED, BatchLimits, RequestFile, SubmittedBatch, custom_ids

log = logging.getLogger("jurygraph.batch")

# Each pause between polls is so many times as long as the one before.
GROWTH = 1.5

# wave-12-3.jsonl: the third file of the twelfth wave
_FILE = re.compile(r"wave-(\d+)-\d+\.jsonl")


@dataclass(eq=False)
class BatchManager:
    """Manages the batches of one run.

    Attributes:
        folder: holds the files of requests and of results for as long as they are needed.
        run: the id of the run, which marks its batches where the provider keeps marks.
        providers: the batches at each address.
        journal: records the batches.
        budget: holds what the requests of running batches are estimated to take.
        counts: shows how far the batches are.
        stop: ends the run where the provider does not let it go on.
        limits: how large a file may be, and how often batches are polled.
        outcomes: results of batches that have ended.
        submitted: the requests of batches that are running.
    """

    folder: Path
    run: str
    providers: Mapping[str, BatchProvider]
    journal: Journal
    budget: BudgetTracker
    counts: ProgressCounters
    stop: StopSignal
    limits: BatchLimits
    outcomes: BatchResults = field(default_factory=BatchResults)
    submitted: set[str] = field(default_factory=set)
    _running: dict[str, SubmittedBatch] = field(default_factory=dict)
    _collected: list[SubmittedBatch] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _waves: int = 0

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What the providers raise where they refuse, fail or cannot be reached."""
        return errors_of([*self.providers.values()])

    @property
    def running(self) -> int:
        """The number of batches that have not ended."""
        return len(self._running)

    def next_wave(self) -> int:
        """Return a number that no wave of this folder has had."""
        self._waves += 1
        return self._waves

    async def resume(self) -> None:
        """Go on with the batches of earlier starts of the run, also those that were sent but not recorded yet."""
        recorded = await self.journal.batches()
        known = [SubmittedBatch.of(batch.id, batch.about) for batch in recorded]
        self._ids = {sent.id for sent in known}
        local = self._clean_up({sent.file for sent in known})
        self._waves = max((_number(name) for name in [*local, *(sent.file for sent in known)]), default=0)
        for sent, batch in zip(known, recorded, strict=True):
            if batch.settled:
                # The run ended after the batch was settled and before its files were removed.
                self._remove(sent)
            elif sent.id or await self._is_found(sent):
                await self._go_on_with(sent)
        if self._running:
            log.info(
                "batches taken up", extra={"batches": len(self._running), "requests": len(self.submitted)}
            )
            await self._poll_all()
        # Which requests a batch has is not known where its file is gone: they would be sent a second time.
        while any(not (self.folder / sent.file).exists() for sent in self._running.values()):
            await asyncio.sleep(self.limits.poll_interval)
            await self._poll_all()

    async def send(self, files: Sequence[RequestFile]) -> None:
        """Make a batch of each file of a wave."""
        for one_file in files:
            path, provider = self.folder / one_file.file, self._provider(one_file.address)
            name = f"{self.run}/{one_file.file}"
            sent = SubmittedBatch(**vars(one_file), name=name, run=self.run, since=time.time())
            # Noted before it is made: a run that is killed in between looks for it when it resumes.
            await self.journal.note_batch(name, sent.described())
            try:
                batch = await provider.create(path, sent, self._ids)
            except provider.errors as error:
                if not may_pass(error):
                    await self.journal.settle_batch(name)
                raise
            await self._note(sent, batch)
            self._running[sent.name] = sent
            self.submitted.update(custom_ids(path))
            log.info("batch sent", extra={"batch": sent.id, "file": sent.file, "requests": sent.requests})

    async def wait(self) -> None:
        """Poll until all batches have ended, or the run is to end."""
        pause = self.limits.first_poll
        self._show_phase()
        while self._running and not self.stop.is_asked:
            await asyncio.sleep(pause)
            await self._poll_all()
            pause = min(pause * GROWTH, self.limits.poll_interval)

    async def settle(self) -> None:
        """Forget the batches whose results were read: these are in the journal now, or no call asks for them."""
        for sent in self.outcomes.left():
            tokens, cost = sent.per_request
            self.budget.release(tokens, cost)
        self.outcomes.clear()
        for sent in self._collected:
            await self.journal.settle_batch(sent.name)
            self._remove(sent)
        self._collected.clear()

    def _clean_up(self, known: set[str]) -> list[str]:
        """List the files of requests; remove those that were not to be sent yet, and results without such a file."""
        for path in self.folder.glob(f"*{UNFINISHED}"):
            path.unlink()
        there = [path.name for path in self.folder.glob("wave-*.jsonl")]
        whole = [name for name in there if _FILE.fullmatch(name) and name in known]
        # The results of wave-1-2.jsonl are in wave-1-2.output.jsonl and wave-1-2.errors.jsonl.
        for name in there:
            if f"{name.partition('.')[0]}.jsonl" not in whole:
                (self.folder / name).unlink()
        return whole

    async def _note(self, sent: SubmittedBatch, batch: BatchState) -> None:
        sent.id, sent.input_file = batch.id, batch.input_file
        self._ids.add(sent.id)
        await self.journal.note_batch(sent.name, sent.described())

    async def _is_found(self, sent: SubmittedBatch) -> bool:
        """Look for the batch of a file that was being sent when the run ended; forget the file if there is none."""
        batch = await self._provider(sent.address).find(self.folder / sent.file, sent, self._ids)
        if batch is not None:
            await self._note(sent, batch)
            return True
        await self.journal.settle_batch(sent.name)
        self._remove(sent)
        return False

    async def _go_on_with(self, sent: SubmittedBatch) -> None:
        path = self.folder / sent.file
        if not path.exists():
            make_private_folder(self.folder)
            await self._provider(sent.address).download(sent.input_file, path)
        self._running[sent.name] = sent
        self.budget.add_in_flight(sent.requests, sent.tokens, sent.cost)
        self.submitted.update(self._requests(sent))

    async def _poll_all(self) -> None:
        for sent in list(self._running.values()):
            try:
                await self._poll(sent)
            except self.errors as error:
                if not may_pass(error):
                    raise
                log.warning("batch cannot be looked after", extra={"batch": sent.id, "reason": str(error)})
            self._show_phase()

    async def _poll(self, sent: SubmittedBatch) -> None:
        batch = await self._provider(sent.address).poll(sent.id)
        if batch is not None and batch.requests_done is not None:
            sent.requests_done = batch.requests_done
        if batch is None or batch.ended:
            await self._collect(sent, batch)

    async def _collect(self, sent: SubmittedBatch, batch: BatchState | None) -> None:
        if batch is not None and batch.refused:
            await self._drop_refused(sent, batch)
            return
        # A batch that is gone, or whose results are, has none: its requests count as not answered.
        path = self.folder / sent.file
        files = await self._provider(sent.address).collect(batch, path) if batch is not None else []
        requests = self._requests(sent)
        self.outcomes.add(sent, requests, files)
        self.submitted.difference_update(requests)
        del self._running[sent.name]
        self._collected.append(sent)
        status = batch.status if batch else "gone"
        log.info("batch ended", extra={"batch": sent.id, "status": status, "done": sent.requests_done})

    async def _drop_refused(self, sent: SubmittedBatch, batch: BatchState) -> None:
        """Drop a batch that the provider did not begin: its requests may be sent again."""
        self.submitted.difference_update(self._requests(sent))
        self.budget.add_in_flight(-sent.requests, -sent.tokens, -sent.cost)
        del self._running[sent.name]
        await self.journal.settle_batch(sent.name)
        self._remove(sent)
        log.warning("batch refused", extra={"batch": sent.id, "reason": batch.refused})
        # Room comes as other batches end; where none is left to end, a second attempt would be refused as well.
        if not (batch.over_limit and (self._running or self._collected)):
            self.stop.ask("provider", f"the provider refused the batch {sent.id}: {batch.refused}")

    def _requests(self, sent: SubmittedBatch) -> list[str]:
        path = self.folder / sent.file
        return custom_ids(path) if path.exists() else []

    def _remove(self, sent: SubmittedBatch) -> None:
        for path in self.folder.glob(f"{Path(sent.file).stem}.*"):
            path.unlink()

    def _provider(self, address: str) -> BatchProvider:
        if address not in self.providers:
            raise UsageError(
                f"this run has batches under way at {address}, and none of its models is there now; "
                "set models and base URLs as they were when these were sent"
            )
        return self.providers[address]

    def _show_phase(self) -> None:
        if not self._running:
            self.counts.phase = ""
            return
        done = sum(sent.requests_done for sent in self._running.values())
        whole = sum(sent.requests for sent in self._running.values())
        self.counts.phase = (
            f"wave {self._waves}: {len(self._running):,} at the provider, {done:,} of {whole:,} requests done"
        )


def _number(file: str) -> int:
    found = _FILE.fullmatch(file)
    return int(found[1]) if found else 0
