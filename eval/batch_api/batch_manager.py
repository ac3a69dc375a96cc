"""Send waves of requests to the provider as batches, poll them and collect their results.

Batches go on at the provider when the process ends; the next start of the run finds them in the journal.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openai import OpenAIError
from openai.types import Batch

from ...state.errors import UsageError
from ..journal import Journal
from ..private_files import make_private_folder
from ..run.budget import BudgetTracker
from ..run.progress_counters import ProgressCounters
from ..run.shutdown import StopSignal
from .openai_batches import ENDED, BatchResults, Provider, may_pass, problems
from .request_file import UNFINISHED, BatchLimits, RequestFile, SubmittedBatch, custom_ids

log = logging.getLogger("jurygraph.batch")

# Each pause between polls is so many times as long as the one before.
GROWTH = 1.5
TOO_MANY_TOKENS = "token_limit_exceeded"
"""The provider's code for a batch that would queue too many tokens of one model; it is sent again later."""

# wave-12-3.jsonl: the third file of the twelfth wave
_FILE = re.compile(r"wave-(\d+)-\d+\.jsonl")


@dataclass(eq=False)
class BatchManager:
    """Manages the batches of one run.

    Attributes:
        folder: holds the files of requests and of results for as long as they are needed.
        run: the id of the run, which marks its batches at the provider.
        providers: the Batch API at each address.
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
    providers: Mapping[str, Provider]
    journal: Journal
    budget: BudgetTracker
    counts: ProgressCounters
    stop: StopSignal
    limits: BatchLimits
    outcomes: BatchResults = field(default_factory=BatchResults)
    submitted: set[str] = field(default_factory=set)
    _running: dict[str, SubmittedBatch] = field(default_factory=dict)
    _collected: list[SubmittedBatch] = field(default_factory=list)
    _waves: int = 0

    @property
    def _run_mark(self) -> dict[str, str]:
        return {"jurygraph_run": self.run}

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
        local = self._clean_up()
        self._waves = max((_number(name) for name in [*local, *(sent.file for sent in known)]), default=0)
        for sent, batch in zip(known, recorded, strict=True):
            if batch.settled:
                # The run ended after the batch was settled and before its files were removed.
                self._remove(sent)
            else:
                await self._go_on_with(sent)
        if unrecorded := set(local) - {sent.file for sent in known}:
            await self._find_unrecorded(unrecorded, {sent.id for sent in known})
        if self._running:
            log.info(
                "batches taken up", extra={"batches": len(self._running), "requests": len(self.submitted)}
            )
            await self._poll_all()

    async def send(self, files: Sequence[RequestFile]) -> None:
        """Upload the files of a wave and make a batch of each."""
        for one_file in files:
            path, provider = self.folder / one_file.file, self._provider(one_file.address)
            input_file = await provider.upload(path)
            marks = {**self._run_mark, **{name: str(value) for name, value in _describe(one_file).items()}}
            batch = await provider.create(input_file, marks)
            # A run that is killed before the batch is noted finds it by these marks when it resumes.
            sent = SubmittedBatch(**vars(one_file), id=batch.id, input_file=input_file)
            await self.journal.note_batch(sent.id, sent.described())
            self._running[sent.id] = sent
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
            await self.journal.settle_batch(sent.id)
            self._remove(sent)
        self._collected.clear()

    def _clean_up(self) -> list[str]:
        """List the files of requests; remove unfinished ones, and results whose file of requests is gone."""
        for path in self.folder.glob(f"*{UNFINISHED}"):
            path.unlink()
        there = [path.name for path in self.folder.glob("wave-*.jsonl")]
        whole = [name for name in there if _FILE.fullmatch(name)]
        # The results of wave-1-2.jsonl are in wave-1-2.output.jsonl and wave-1-2.errors.jsonl.
        for name in there:
            if f"{name.partition('.')[0]}.jsonl" not in whole:
                (self.folder / name).unlink()
        return whole

    async def _find_unrecorded(self, unrecorded: set[str], known: set[str]) -> None:
        """Find the batches made of files that were being sent when the run ended; remove files that have none."""
        for provider in self.providers.values():
            for batch in await provider.find(self._run_mark):
                if batch.id not in known and batch.metadata:
                    sent = SubmittedBatch.of(batch.id, {**batch.metadata, "input_file": batch.input_file_id})
                    await self.journal.note_batch(sent.id, sent.described())
                    await self._go_on_with(sent)
                    unrecorded.discard(sent.file)
        for name in unrecorded:
            (self.folder / name).unlink()

    async def _go_on_with(self, sent: SubmittedBatch) -> None:
        path = self.folder / sent.file
        if not path.exists():
            make_private_folder(self.folder)
            await self._provider(sent.address).download(sent.input_file, path)
        self._running[sent.id] = sent
        self.budget.add_in_flight(sent.requests, sent.tokens, sent.cost)
        self.submitted.update(self._requests(sent))

    async def _poll_all(self) -> None:
        for sent in list(self._running.values()):
            try:
                await self._poll(sent)
            except OpenAIError as error:
                if not may_pass(error):
                    raise
                log.warning("batch cannot be looked after", extra={"batch": sent.id, "reason": str(error)})
            self._show_phase()

    async def _poll(self, sent: SubmittedBatch) -> None:
        batch = await self._provider(sent.address).poll(sent.id)
        if batch is not None and batch.request_counts is not None:
            sent.requests_done = batch.request_counts.completed + batch.request_counts.failed
        if batch is None or batch.status in ENDED:
            await self._collect(sent, batch)

    async def _collect(self, sent: SubmittedBatch, batch: Batch | None) -> None:
        if batch is not None and batch.status == "failed":
            await self._drop_refused(sent, batch)
            return
        # A batch that is gone, or whose files are, has no results: its requests count as not answered.
        files = [path for path in await self._files(sent, batch) if path is not None]
        requests = self._requests(sent)
        self.outcomes.add(sent, requests, files)
        self.submitted.difference_update(requests)
        del self._running[sent.id]
        self._collected.append(sent)
        status = batch.status if batch else "gone"
        log.info("batch ended", extra={"batch": sent.id, "status": status, "done": sent.requests_done})

    async def _files(self, sent: SubmittedBatch, batch: Batch | None) -> list[Path | None]:
        if batch is None:
            return []
        wanted = {"output": batch.output_file_id, "errors": batch.error_file_id}
        return [await self._file(sent, kind, name) for kind, name in wanted.items() if name]

    async def _file(self, sent: SubmittedBatch, kind: str, name: str) -> Path | None:
        path = (self.folder / sent.file).with_suffix(f".{kind}.jsonl")
        # A file that an earlier start downloaded is whole: it gets this name only then.
        there = path.exists() or await self._provider(sent.address).download(name, path)
        if not there:
            log.warning("file gone", extra={"batch": sent.id, "file": name})
        return path if there else None

    async def _drop_refused(self, sent: SubmittedBatch, batch: Batch) -> None:
        """Drop a batch that the provider did not begin: its requests may be sent again."""
        found = problems(batch)
        said = "; ".join(message or code for code, message in found) or "no reason given"
        self.submitted.difference_update(self._requests(sent))
        self.budget.add_in_flight(-sent.requests, -sent.tokens, -sent.cost)
        del self._running[sent.id]
        await self.journal.settle_batch(sent.id)
        self._remove(sent)
        log.warning("batch refused", extra={"batch": sent.id, "reason": said})
        # Room comes as other batches end; where none is left to end, a second attempt would be refused as well.
        too_many = any(code == TOO_MANY_TOKENS for code, _ in found)
        if not (too_many and (self._running or self._collected)):
            self.stop.ask("provider", f"the provider refused the batch {sent.id}: {said}")

    def _requests(self, sent: SubmittedBatch) -> list[str]:
        path = self.folder / sent.file
        return custom_ids(path) if path.exists() else []

    def _remove(self, sent: SubmittedBatch) -> None:
        for path in self.folder.glob(f"{Path(sent.file).stem}.*"):
            path.unlink()

    def _provider(self, address: str) -> Provider:
        if address not in self.providers:
            raise UsageError(
                f"this run has batches under way at {address}, and none of its models is there now; "
                "set OPENAI_BASE_URL as it was when they were sent"
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


def _describe(one_file: RequestFile) -> dict[str, object]:
    return {name: value for name, value in vars(one_file).items() if value is not None}
