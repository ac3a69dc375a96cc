"""The folder of a run: locked while it is on, so that two processes never write the same results."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from filelock import FileLock, Timeout

from ...nodes.planner import PlannedSteps, StepsBook
from ...state.errors import DataError, UsageError
from ..journal import Journal
from ..manifest import check_manifest, keep_steps, make_way, read_steps, write_manifest
from ..plan import Plan
from ..results import FILE as RESULTS
from ..results import Result, ResultsFile
from .conduct import Conduct

JOURNAL = "journal.sqlite"
LOCK = "run.lock"


class RunFolder:
    """Where a run keeps things; without a folder of its own it keeps calls in a temporary one, and results nowhere.

    Attributes:
        manifest: of this run, as it was first started.
        results: the file; ``None`` without a folder.
        steps: evaluation steps written so far.
        journal: finished calls.
    """

    def __init__(self, manifest: Mapping[str, Any], path: Path | None, journal: Journal) -> None:
        self._manifest = manifest
        self._path = path
        self._new_steps: list[PlannedSteps] = []
        self.results = ResultsFile(path) if path else None
        self.steps = StepsBook(read_steps(path) if path else (), self._new_steps.append)
        self.journal = journal

    def keep(self, result: Result) -> None:
        """Add a result to the file, and to the manifest the evaluation steps that came of it.

        No steps before that: whoever had them written and is interrupted asks for them again when the run is taken
        up, is served by the journal, and has the planner's turn in its transcript as it would have had.

        Raises:
            OSError: it could not be written.
        """
        if self._path is None or self.results is None:
            return
        self.results.add(result)
        if self._new_steps and result.status == "ok" and _asked_planner(result):
            for planned in [new for new in self._new_steps if new.aspect == result.aspect]:
                keep_steps(self._path, planned)
                self._new_steps.remove(planned)

    def steps_of_a_pass(self) -> StepsBook:
        """A book for one of several passes over the items, with the steps that came to a verdict.

        Others are asked for again in each pass, until whoever asks for them first has made a verdict.
        """
        new = {planned.key for planned in self._new_steps}
        return StepsBook([one for one in self.steps.all if one.key not in new], self.steps.note)

    def keep_rest(self) -> None:
        """Add to the manifest the steps that nobody who asked for them made a verdict with, but others did.

        Raises:
            OSError: it could not be written.
        """
        while self._path is not None and self._new_steps:
            keep_steps(self._path, self._new_steps.pop())

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's manifest, with the evaluation steps that were written on the way."""
        steps = [planned.model_dump(mode="json") for planned in self.steps.all]
        return {**self._manifest, **({"steps": steps} if steps else {})}


@asynccontextmanager
async def run_folder(prepared: Plan, conduct: Conduct) -> AsyncIterator[RunFolder]:
    """Open the folder of a run, new or begun.

    Raises:
        UsageError: another process has it, it belongs to another run, or its journal cannot be used.
    """
    with _locked(prepared.folder) as folder:
        manifest = prepared.manifest
        if prepared.folder is not None:
            if conduct.fresh or conduct.replace:
                make_way(folder)
            manifest = write_manifest(folder, {**manifest, "fresh": conduct.fresh})
        journal = await Journal.open(
            conduct.journal or folder / JOURNAL,
            run=manifest["run"],
            fresh=manifest.get("fresh", conduct.fresh),
            shared=conduct.journal is not None,
        )
        try:
            run = RunFolder(manifest, prepared.folder, journal)
            try:
                yield run
            finally:
                if run.results is not None:
                    run.results.close()
        finally:
            await journal.close()


@contextmanager
def _locked(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with TemporaryDirectory(prefix="jurygraph-") as temporary:
            yield Path(temporary)
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{folder} is a file: --out takes a folder") from None
    lock = FileLock(folder / LOCK, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise UsageError(
            f"{folder} is in use by another run that is on; wait for it, or choose another --out"
        ) from None
    with lock:
        yield folder


def _asked_planner(result: Result) -> bool:
    return any("planner" in turn["agent"] for turn in result.transcript)


def judged(prepared: Plan, conduct: Conduct) -> dict[str, int]:
    """How many verdicts each protocol has in the folder already; a run that is on may hold it.

    Raises:
        UsageError: the folder holds another run, or is none.
    """
    folder = prepared.folder
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: --out takes a folder")
    if folder is None or conduct.fresh or conduct.replace:
        return {}
    check_manifest(folder, prepared.manifest)
    if not (folder / RESULTS).exists():
        return {}
    try:
        there = ResultsFile(folder).ok_keys()
    except DataError as error:
        raise DataError(
            f"{error}. Take that line out: its calls are kept, and make it again for nothing"
        ) from error
    return Counter(key.protocol for key, *_ in prepared.units() if key in there)
