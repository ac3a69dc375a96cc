"""The audit of a run: a model reads its debates turn by turn, with labels in ``audit.jsonl``.

The file is next to the results and has one line for each verdict, written as soon as it is done. So
no paid work is lost, and the same command continues an interrupted audit.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any, Self, Unpack

import orjson

from ...graphs.engine.base import Graph
from ...graphs.wrappers.audit import audit as auditor_graph
from ...graphs.wrappers.audit import audited_places
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.models.resolver import load
from ...nodes.models.send import answering_calls
from ...nodes.runtime.bound_judge import Models
from ...state.errors import ModelCallError, ReplyError, StoppedError, UsageError
from ...state.protocols import exactly
from ...state.settings import OFFLINE
from ...state.transcript import usage_of_turns
from ..analysis.debate_counters import shown_to_critics
from ..analysis.verdict_columns import ReadTurn, turns_of
from ..journal.call_journal import Journal
from ..journal.private_files import private
from ..journal.records import JournalError
from ..results.config import RunConfig, RunLimits
from ..results.experiment_result import ExperimentResult
from ..results.folder import read_manifest, results_of
from ..results.results import Key, Result
from ..review.audit_labels import (
    FILE,
    SECOND,
    AuditedRole,
    LabelAgreement,
    agreement_of_labellers,
    read_audit,
    roles_of,
)
from ..run.calls.call_pipeline import LivePipeline, RunContext
from ..run.plan.dry_run import CallSampler, role_profiles
from ..run.plan.estimator import MOST_SAMPLED, Estimate, shares
from ..run.runner import drained_when_stopped
from ..tables.grid import Grid, columns_of
from ..tables.screen import FirstScreen
from .experiment import Experiment, planned_and_done

JOURNALS = {FILE: "audit.sqlite", SECOND: "audit-second.sqlite"}
"""The journal of each labeller. Replies of the first must not count as the second's own."""

MOST_FAILURES = 5
"""The number of failed verdicts, without any success, that ends an audit.

A key that is refused once is refused always.
"""


@dataclass(frozen=True)
class Audit(ExperimentResult):
    """An auditor's labels of a run.

    Attributes:
        roles: the labels of the turns of each role.
        models: the auditors.
        read: the number of verdicts whose turns are labelled.
        unlabelled: verdicts whose turns could not be labelled, with the reason.
        left: the number of verdicts that are not read yet.
        calls: the calls of this start, without those of earlier starts.
        labels: the name of the file with the labels.
        agreement: the agreement with the other labeller, if there are two.
    """

    file = FILE
    roles: tuple[AuditedRole, ...]
    models: tuple[str, ...]
    read: int
    unlabelled: Mapping[Key, str] = field(repr=False)
    left: int = 0
    calls: int = 0
    labels: str = FILE
    agreement: tuple[LabelAgreement, ...] = ()

    def screen(self) -> FirstScreen:
        """Compose the first screen: the kinds of each role's turns."""
        columns = columns_of(AuditedRole, only=("role", "argument", "concession", "repetition"))
        left = f"; {self.left:,} left to label" if self.left else ""
        return FirstScreen(
            name="",
            headline="The turns are labelled by role" if self.roles else "No turn is labelled yet",
            table=Grid.from_records("", columns, self.roles),
            evidence=f"Debates of {self.read:,} verdicts are labelled{left}.",
        )

    def grids(self) -> Iterator[Grid]:
        """Yield the table of the roles."""
        if self.roles:
            title = f"what turns did, labelled by {', '.join(self.models) or 'nobody'}"
            columns = columns_of(AuditedRole)
            yield Grid.from_records(title, columns, self.roles).without_empty_columns()
        if self.agreement:
            title = "agreement of the two labellers"
            yield Grid.from_records(title, columns_of(LabelAgreement), self.agreement)

    def write(self) -> Self:
        """Return the result: each label is in the file since it was made."""
        return self


@dataclass(frozen=True)
class AuditPlan(Experiment[Audit]):
    """A checked plan to audit the debates of a run, not started yet.

    Attributes:
        folder: the folder of the run.
        graph: the auditor's graph.
        debates: all verdicts with a debate.
        chosen: the selected verdicts that are not read yet.
        expected: the expected usage.
        file: the labeller's file: ``FILE`` or ``SECOND``.
    """

    folder: Path
    graph: Graph
    debates: Sequence[Result]
    chosen: Sequence[Result]
    expected: Estimate
    file: str = FILE

    @property
    def costs_money(self) -> bool:
        """Whether any model other than the offline judge is called."""
        return any(part.model != "offline" for part in self.expected.parts)

    def check(self, config: RunConfig) -> None:
        """Check that limits can be enforced.

        Raises:
            UsageError: the cost is limited, and the auditor's price is unknown.
        """
        config.check_prices(part.model.partition("?")[0] for part in self.expected.parts)

    async def carry_out(self, context: RunContext) -> Audit:
        """Read the planned debates, as far as the budget allows."""
        config = context.config
        counts = context.counts
        stop = context.stop
        self.check(config)
        folder = self.folder
        where = config.journal or folder / JOURNALS[self.file]
        which = "second audit" if self.file == SECOND else "audit"
        run = f"{which} of {read_manifest(folder)['run']}"
        journal = await Journal.open(
            where, run=run, shared=config.journal is not None, waits=counts.waits
        )
        before = len(read_audit(folder, self.file))
        counts.take_up(before + len(self.chosen), before, journal.totals())
        failed: dict[Key, str] = {}
        gate = asyncio.Semaphore(config.concurrency)

        async def read(result: Result, file: FileIO) -> None:
            try:
                async with gate, pipeline.room_for(len(_places(result))):
                    outcome = await self.graph.ainvoke(_debate(result))
            except (StoppedError, JournalError):
                return  # The verdict has not failed: the next start reads it.
            except (ReplyError, ModelCallError) as error:
                failed[result.key] = str(error)
                counts.failed += 1
                if counts.judged == before and len(failed) >= MOST_FAILURES:
                    stop.ask(
                        "provider",
                        f"the first {MOST_FAILURES} debates could not be labelled: {error}",
                    )
                return
            usage = usage_of_turns(outcome["transcript"])
            models_used = sorted({str(turn["model"]) for turn in outcome["transcript"]})
            line = {
                **result.key._asdict(),
                "models": models_used,
                "labels": [*_with_objections(result, outcome["labels"])],
                **usage.flat(),
            }
            # One write of one line: a kill leaves whole lines, and at most one partial line, which is
            # not read.
            file.write(orjson.dumps(line) + b"\n")
            counts.judged += 1

        if (labels := folder / self.file).exists():
            # A killed process may have left a partial line.
            os.truncate(labels, labels.read_bytes().rfind(b"\n") + 1)
        pipeline = LivePipeline(journal, context)
        async with aclosing(journal):
            with FileIO(labels, "a", opener=private) as file, answering_calls(pipeline):
                async with drained_when_stopped(pipeline, stop, config.grace):
                    await asyncio.gather(*(read(result, file) for result in self.chosen))
        records = read_audit(folder, self.file)
        other = read_audit(folder, FILE if self.file == SECOND else SECOND)
        models = tuple(dict.fromkeys(model for record in records for model in record["models"]))
        left = len(self.debates) - len(records)
        return Audit(
            roles_of(records),
            models,
            len(records),
            failed,
            left,
            counts.made,
            self.file,
            agreement_of_labellers(records, other),
            folder=folder,
            stopped=stop.reason,
            failed=len(failed),
        )


class AuditOptions(RunLimits, total=False):
    """The auditor and its limits.

    Attributes:
        models: the auditor's model, under ``"*"``; by default the offline judge.
        limit: the number of verdicts to read.
        settings: settings of the auditor by name.
        second: whether this is the second labeller, with a file of its own.
    """

    models: Models | None
    limit: int | None
    settings: Mapping[str, Any]
    second: bool


def audit(run: str | Path, **options: Unpack[AuditOptions]) -> Audit:
    """Label what each turn of a run's debates did; ``aaudit`` is the same for async code.

    Args:
        run: its folder, which gets the labels.
        **options: see ``AuditOptions`` and ``RunConfig``.

    Raises:
        UsageError: invalid input; raised before any call.
    """
    return run_blocking(aaudit(run, **options))


async def aaudit(run: str | Path, **options: Unpack[AuditOptions]) -> Audit:
    """Label from async code; arguments and errors are the same as for ``audit``."""
    config = RunConfig.from_options(options, ("models", "limit", "settings", "second"))
    if config.batch or config.fresh or config.overwrite:
        raise UsageError("an audit has no batch, fresh or overwrite: leave them out")

    def planned() -> AuditPlan:
        models = options.get("models")
        settings = options.get("settings") or {}
        second = options.get("second", False)
        return run_blocking(
            plan_audit(Path(run), models, options.get("limit"), second=second, **settings)
        )

    return await planned_and_done(planned, config)


async def plan_audit(
    folder: Path,
    models: Models | None,
    limit: int | None,
    *,
    second: bool = False,
    **settings: Any,
) -> AuditPlan:
    """Check which verdicts are to be read, and estimate the usage.

    Args:
        folder: the folder of the run.
        models: the auditor's model: a chat model or its name under ``"*"``; by default the offline
            judge.
        limit: the number of verdicts to read.
        second: whether this is the second labeller.
        **settings: settings of all protocols.

    Raises:
        UsageError: no run, no debate in it, an unknown model, or labels by another auditor in the
            folder, or the same model as both labellers.
        DataError: a line that is no result.
    """
    read_manifest(folder)
    graph = auditor_graph(models, **settings).compile()
    file = SECOND if second else FILE
    done = {record["key"]: record for record in read_audit(folder, file)}
    # The shares of two auditors could not be distinguished.
    model = models.get("*", models.get("auditor")) if isinstance(models, Mapping) else models
    name = (
        "offline"
        if model is None
        else model
        if isinstance(model, str)
        else getattr(model, "name", None)
    )
    before = _labellers(done.values())
    if isinstance(name, str) and before and before != {name.partition("?")[0]}:
        others = ", ".join(sorted(before))
        raise UsageError(
            f"{folder / file} holds labels by {others}: move it away to label with {name}, or add "
            "--second to label as the second labeller"
            if not second
            else f"{folder / file} holds labels by {others}: move it away to label with {name}"
        )
    if (
        second
        and isinstance(name, str)
        and name.partition("?")[0] in _labellers(read_audit(folder))
    ):
        raise UsageError(
            f"{name} is the first labeller already: take another model for the second, because "
            "one model mostly agrees with itself"
        )
    debates = [
        result for result in results_of(folder).read() if result.status == "ok" and _places(result)
    ]
    if not debates:
        raise UsageError(f"{folder} holds no debates: no verdict has more than one turn")
    chosen = [result for result in debates[:limit] if result.key not in done]
    sampler = CallSampler(load(OFFLINE, asyncio.get_running_loop()))
    sampled = chosen[:: math.ceil(len(chosen) / MOST_SAMPLED) or 1]
    with answering_calls(sampler):
        for result in sampled:
            await graph.ainvoke(_debate(result))
    # Turns are read one by one: the auditor's own earlier replies do not make a prompt longer.
    samples = [replace(sample, number=1) for sample in sampler.samples]
    calls = exactly(sum(len(_places(result)) for result in chosen))
    parts = [
        part for role in role_profiles(samples).values() for part in shares("audit", role, calls)
    ]
    expected = Estimate({"audit": len(chosen)}, tuple(parts), len(sampled))
    return AuditPlan(folder, graph, debates, chosen, expected, file)


def _labellers(records: Iterable[Mapping[str, Any]]) -> set[str]:
    return {str(label).partition("?")[0] for record in records for label in record["models"]}


def _with_objections(
    result: Result, labels: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Add to a critic's labels whether it objected to a score that is right by the human label.

    The human label decides this, not the auditor. Turns after a wrong score, and turns of verdicts
    without a human label, get nothing.
    """
    objected: dict[str, bool] = {}
    if (human := result.human) is not None:
        discussions: dict[tuple[Any, ...], list[ReadTurn]] = {}
        for read in turns_of(result):
            place = tuple(read.turn.get(mark) for mark in ("order", "repeat", "stage"))
            discussions.setdefault(place, []).append(read)
        for turns in discussions.values():
            for turn, right in shown_to_critics(turns, human):
                if right:
                    objected[turn["id"]] = not turn["value"]
    for label in labels:
        turn_id = label["turn"]
        yield {**label, "objected_to_right": objected[turn_id]} if turn_id in objected else label


def _debate(result: Result) -> Any:
    return {"protocol": _protocol(result), "turns": [dict(turn) for turn in result.transcript]}


def _places(result: Result) -> list[int]:
    """Return the turns to label; a verdict in which no agent hears another has no debate."""
    return audited_places(_protocol(result), result.transcript)


def _protocol(result: Result) -> str:
    return str(result.details.get("of", result.protocol))
