"""Takes waves to the provider and brings back what came of them; whatever is under way outlives the process."""

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
from ..run.budget import BudgetTracker
from ..run.progress_counters import ProgressCounters
from ..run.shutdown import StopSignal
from .openai_batches import ENDED, BatchResults, Provider, may_pass, problems
from .request_file import UNFINISHED, BatchLimits, RequestFile, SubmittedBatch, custom_ids

log = logging.getLogger("jurygraph.batch")

GROWTH = 1.5
TOO_MANY_TOKENS = "token_limit_exceeded"
"""The provider queues so many tokens of one model, and no more: what is refused for that is sent later."""

_FILE = re.compile(r"wave-(\d+)-\d+\.jsonl")


@dataclass(eq=False)
class BatchManager:
    """The batches of one run.

    Attributes:
        folder: where files of requests and of outcomes are as long as they are needed.
        run: the id of the run, by which its batches are told from others.
        providers: by address.
        journal: in which batches are noted.
        purse: for requests that are under way.
        counts: tells how far it has come.
        stop: ends the run where the provider does not let it go on.
        terms: how often batches are looked after.
        outcomes: of batches that have ended.
        away: the requests of those that have not.
    """

    folder: Path
    run: str
    providers: Mapping[str, Provider]
    journal: Journal
    tracker: BudgetTracker
    counts: ProgressCounters
    stop: StopSignal
    terms: BatchLimits
    outcomes: BatchResults = field(default_factory=BatchResults)
    away: set[str] = field(default_factory=set)
    _alive: dict[str, SubmittedBatch] = field(default_factory=dict)
    _brought: list[SubmittedBatch] = field(default_factory=list)
    _waves: int = 0

    @property
    def _marks(self) -> dict[str, str]:
        return {"jurygraph_run": self.run}

    @property
    def under_way(self) -> int:
        """How many batches the provider has that have not ended."""
        return len(self._alive)

    def next_wave(self) -> int:
        """A number that no wave of this folder has had."""
        self._waves += 1
        return self._waves

    async def take_up(self) -> None:
        """Go on with what an earlier start of the run has sent, even if it had no time to note it."""
        noted = await self.journal.batches()
        known = [SubmittedBatch.of(batch.id, batch.about) for batch in noted]
        local = self._tidy()
        self._waves = max((_number(name) for name in [*local, *(sent.file for sent in known)]), default=0)
        for sent, batch in zip(known, noted, strict=True):
            if batch.settled:
                self._remove(sent)
            else:
                await self._take(sent)
        if untold := set(local) - {sent.file for sent in known}:
            await self._find(untold, {sent.id for sent in known})
        if self._alive:
            log.info("batches taken up", extra={"batches": len(self._alive), "requests": len(self.away)})
            await self._look_round()

    async def send(self, parcels: Sequence[RequestFile]) -> None:
        """Have the provider begin with a wave."""
        for one_file in parcels:
            path, provider = self.folder / one_file.file, self._provider(one_file.address)
            input_file = await provider.upload(path)
            marks = {**self._marks, **{name: str(value) for name, value in _about(one_file).items()}}
            batch = await provider.create(input_file, marks)
            sent = SubmittedBatch(**vars(one_file), id=batch.id, input_file=input_file)
            await self.journal.note_batch(sent.id, sent.about())
            self._alive[sent.id] = sent
            self.away.update(custom_ids(path))
            log.info("batch sent", extra={"batch": sent.id, "file": sent.file, "requests": sent.requests})

    async def wait(self) -> None:
        """Until all batches have ended."""
        pause = self.terms.first_look
        self._tell()
        while self._alive and not self.stop.is_asked:
            await asyncio.sleep(pause)
            await self._look_round()
            pause = min(pause * GROWTH, self.terms.between_looks)

    async def settle(self) -> None:
        """What the batches brought has been read: it is in the journal, or of no use to anybody."""
        for sent in self.outcomes.left():
            tokens, cost = sent.each
            self.tracker.give_back(tokens, cost)
        self.outcomes.clear()
        for sent in self._brought:
            await self.journal.settle_batch(sent.id)
            self._remove(sent)
        self._brought.clear()

    def _tidy(self) -> list[str]:
        """The files of requests in the folder; what was not finished is removed, and outcomes of what is not there."""
        for path in self.folder.glob(f"*{UNFINISHED}"):
            path.unlink()
        there = [path.name for path in self.folder.glob("wave-*.jsonl")]
        whole = [name for name in there if _FILE.fullmatch(name)]
        for name in there:
            if f"{name.partition('.')[0]}.jsonl" not in whole:
                (self.folder / name).unlink()
        return whole

    async def _find(self, untold: set[str], known: set[str]) -> None:
        """Files that were being sent when the run was ended: are there batches made of them?"""
        for provider in self.providers.values():
            for batch in await provider.marked(self._marks):
                if batch.id not in known and batch.metadata:
                    sent = SubmittedBatch.of(batch.id, {**batch.metadata, "input_file": batch.input_file_id})
                    await self.journal.note_batch(sent.id, sent.about())
                    await self._take(sent)
                    untold.discard(sent.file)
        for name in untold:
            (self.folder / name).unlink()

    async def _take(self, sent: SubmittedBatch) -> None:
        path = self.folder / sent.file
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            await self._provider(sent.address).download(sent.input_file, path)
        self._alive[sent.id] = sent
        self.tracker.set_aside(sent.requests, sent.tokens, sent.cost)
        self.away.update(self._requests(sent))

    async def _look_round(self) -> None:
        for sent in list(self._alive.values()):
            try:
                await self._look(sent)
            except OpenAIError as error:
                if not may_pass(error):
                    raise
                log.warning("batch cannot be looked after", extra={"batch": sent.id, "reason": str(error)})
            self._tell()

    async def _look(self, sent: SubmittedBatch) -> None:
        batch = await self._provider(sent.address).look(sent.id)
        if batch is not None and batch.request_counts is not None:
            sent.requests_done = batch.request_counts.completed + batch.request_counts.failed
        if batch is None or batch.status in ENDED:
            await self._collect(sent, batch)

    async def _collect(self, sent: SubmittedBatch, batch: Batch | None) -> None:
        if batch is not None and batch.status == "failed":
            await self._refused(sent, batch)
            return
        files = [path for path in await self._files(sent, batch) if path is not None]
        requests = self._requests(sent)
        self.outcomes.add(sent, requests, files)
        self.away.difference_update(requests)
        del self._alive[sent.id]
        self._brought.append(sent)
        status = batch.status if batch else "gone"
        log.info("batch ended", extra={"batch": sent.id, "status": status, "done": sent.requests_done})

    async def _files(self, sent: SubmittedBatch, batch: Batch | None) -> list[Path | None]:
        if batch is None:
            return []
        wanted = {"output": batch.output_file_id, "errors": batch.error_file_id}
        return [await self._file(sent, kind, name) for kind, name in wanted.items() if name]

    async def _file(self, sent: SubmittedBatch, kind: str, name: str) -> Path | None:
        path = (self.folder / sent.file).with_suffix(f".{kind}.jsonl")
        there = path.exists() or await self._provider(sent.address).download(name, path)
        if not there:
            log.warning("file gone", extra={"batch": sent.id, "file": name})
        return path if there else None

    async def _refused(self, sent: SubmittedBatch, batch: Batch) -> None:
        """A batch that was not even begun: its requests are free to be sent again."""
        found = problems(batch)
        said = "; ".join(message or code for code, message in found) or "no reason given"
        self.away.difference_update(self._requests(sent))
        self.tracker.set_aside(-sent.requests, -sent.tokens, -sent.cost)
        del self._alive[sent.id]
        await self.journal.settle_batch(sent.id)
        self._remove(sent)
        log.warning("batch refused", extra={"batch": sent.id, "reason": said})
        too_many = any(code == TOO_MANY_TOKENS for code, _ in found)
        if not (too_many and (self._alive or self._brought)):
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

    def _tell(self) -> None:
        if not self._alive:
            self.counts.phase = ""
            return
        done = sum(sent.requests_done for sent in self._alive.values())
        whole = sum(sent.requests for sent in self._alive.values())
        self.counts.phase = (
            f"wave {self._waves}: {len(self._alive):,} at the provider, {done:,} of {whole:,} requests done"
        )


def _number(file: str) -> int:
    found = _FILE.fullmatch(file)
    return int(found[1]) if found else 0


def _about(one_file: RequestFile) -> dict[str, object]:
    return {name: value for name, value in vars(one_file).items() if value is not None}
