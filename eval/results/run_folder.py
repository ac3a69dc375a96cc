"""What a run writes into its folder, with the journal that it has open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from ...nodes.evaluation_steps import EvaluationStepsCache
from ...nodes.models.retry import Waits
from ...state.planned_steps import PlannedSteps
from ..journal.call_journal import Journal
from ..journal.private_files import warn_of_readers
from .config import RunConfig
from .folder import (
    FILE,
    JOURNAL,
    STEPS,
    keep_steps,
    locked_folder,
    read_steps,
    rename_results,
    results_of,
    run_of_shards,
    write_manifest,
)
from .results import FILE as RESULTS
from .results import Result, kind_of_turns
from .run_log import FILE as LOG


class RunFolder:
    """The files that a run writes: results, manifest, evaluation steps, journal.

    A run without a folder has a journal in a temporary one, and does not write results.

    Attributes:
        manifest: the manifest of this run, as of its first start.
        results: the file; ``None`` without a folder.
        steps: the evaluation steps so far.
        new_steps: the steps that no stored verdict has requested yet.
        journal: the finished calls.
    """

    def __init__(self, manifest: Mapping[str, Any], path: Path | None, journal: Journal) -> None:
        self._manifest = manifest
        self._path = path
        self.new_steps: list[PlannedSteps] = []
        self.results = results_of(path) if path else None
        known = read_steps(path) if path else STEPS.validate_python(manifest.get("steps", []))
        self.steps = EvaluationStepsCache(known, self.new_steps.append)
        self.journal = journal

    def keep(self, result: Result) -> None:
        """Add a result to the file, and its evaluation steps to the manifest.

        Steps are not written before the verdict that requested them. If the run is interrupted in
        between, the verdict requests them again after the resumption. The journal then answers, and
        the transcript contains the planner's turn.

        Raises:
            OSError: it could not be written.
        """
        if self._path is None or self.results is None:
            return
        self.results.add(result)
        if self.new_steps and result.status == "ok":
            kind_of = kind_of_turns(result)
            # Whether this verdict had the steps written.
            if any(kind_of(turn) == "plans" for turn in result.transcript):
                for planned in [new for new in self.new_steps if new.aspect == result.aspect]:
                    keep_steps(self._path, planned)
                    self.new_steps.remove(planned)

    def steps_of_a_pass(self) -> EvaluationStepsCache:
        """Return a cache for one of several passes over the items, with steps of stored verdicts.

        Other steps are requested again in each pass, until their first item has its verdict.
        """
        new = {planned.key for planned in self.new_steps}
        kept = [planned for planned in self.steps.all if planned.key not in new]
        return EvaluationStepsCache(kept, self.steps.note)

    def keep_rest(self) -> None:
        """Add steps to the manifest whose first item failed, but which other items used.

        Raises:
            OSError: it could not be written.
        """
        while self._path is not None and self.new_steps:
            keep_steps(self._path, self.new_steps.pop())

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's manifest, with the evaluation steps written so far."""
        steps = [planned.model_dump(mode="json") for planned in self.steps.all]
        return {**self._manifest, **({"steps": steps} if steps else {})}


@asynccontextmanager
async def run_folder(
    path: Path | None,
    manifest: Mapping[str, Any],
    config: RunConfig,
    waits: Waits | None = None,
    journal_file: Path | None = None,
) -> AsyncIterator[RunFolder]:
    """Open the folder of a new or existing run.

    Args:
        path: the folder; ``None`` stores calls in a temporary one until the run ends.
        manifest: the description of the run; a folder with another run is refused.
        config: decides whether to rename results in the folder, and has the location of the
            journal.
        waits: receives a note while the run waits for the journal.
        journal_file: the journal if the config names none; default: a file in the folder. The
            caller ensures that no other process uses it.

    Raises:
        UsageError: another process uses the folder, it contains another run, or the journal cannot
            be used.
    """
    with locked_folder(path) as folder:
        if path is not None:
            begin_anew = config.fresh or config.overwrite
            if "shard" in manifest:
                manifest = {
                    **manifest,
                    "run": run_of_shards(folder, manifest, begin_anew=begin_anew),
                }
            if begin_anew:
                rename_results(folder)
            manifest = write_manifest(folder, {**manifest, "fresh": config.fresh})
        journal = await Journal.open(
            config.journal or journal_file or folder / JOURNAL,
            run=manifest["run"],
            part=manifest.get("shard", ""),
            # As of the first start: a run that began fresh must not get older replies when it
            # resumes.
            fresh=manifest.get("fresh", config.fresh),
            # The folder's lock protects the journal inside. A named journal may have other users.
            shared=config.journal is not None,
            waits=waits or Waits(),
        )
        if path is not None:
            warn_of_readers(path, (RESULTS, FILE, JOURNAL, LOG))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(journal.close)
            run = RunFolder(manifest, path, journal)
            if run.results is not None:
                stack.callback(run.results.close)
            yield run
