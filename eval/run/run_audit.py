"""Have the debates of a run read turn by turn; labels are kept in ``audit.jsonl`` beside the results.

One line a verdict, written as it is done, so that what was paid for is never lost; the same call goes on where it
stopped.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ...graphs.audit import audit, audited_places
from ...graphs.base import Graph
from ...nodes.bound_judge import Models
from ...nodes.models.resolver import OFFLINE, load
from ...nodes.models.send import answering_calls
from ...state.errors import ModelCallError, ReplyError, StoppedError, UsageError
from ...state.protocols import exactly
from ...state.transcript import usage_of_turns
from ..calls.call_pipeline import LivePipeline, RunContext
from ..journal.call_journal import Journal
from ..journal.private_files import private
from ..journal.records import JournalError
from ..plan.dry_run import CallSampler, role_profiles
from ..plan.estimator import MOST_SAMPLED, Estimate, shares
from ..results.config import RunConfig
from ..results.folder import read_manifest, results_of
from ..results.results import Key, Result
from ..review.audit_labels import FILE, AuditedRole, read_audit, roles_of
from .runner import drained_when_stopped

JOURNAL = "audit.sqlite"
MOST_FAILURES = 5
"""So many verdicts that cannot be read, and none that can, end an audit: a key that is refused is refused for all."""


class Audit(NamedTuple):
    """Holds what an auditor said of a run.

    Attributes:
        roles: what the turns of each role did.
        models: who read them.
        read: verdicts whose turns are labelled.
        failed: verdicts whose turns could not be labelled, with the reason.
        left: verdicts that nobody has read yet.
        calls: the calls of this start; those of earlier ones are not in it.
        stopped: why it ended before its work was done; ``None`` where all is done.
    """

    roles: tuple[AuditedRole, ...]
    models: tuple[str, ...]
    read: int
    failed: Mapping[Key, str]
    left: int = 0
    calls: int = 0
    stopped: str | None = None


class AuditPlan(NamedTuple):
    """A run's debates to be read, checked and not begun.

    Attributes:
        folder: of the run.
        graph: the auditor's.
        debates: all verdicts with a debate.
        chosen: of those that are to be read, the ones that nobody has read yet.
        expected: what reading them will take.
    """

    folder: Path
    graph: Graph
    debates: Sequence[Result]
    chosen: Sequence[Result]
    expected: Estimate

    @property
    def costs_money(self) -> bool:
        """Whether any model but the offline judge is called."""
        return any(part.model != "offline" for part in self.expected.parts)

    def check(self, config: RunConfig) -> None:
        """Check that limits can be kept.

        Raises:
            UsageError: the cost is limited, and the auditor's price is unknown.
        """
        config.check_prices(part.model.partition("?")[0] for part in self.expected.parts)


async def plan_audit(folder: Path, models: Models | None, limit: int | None, **settings: Any) -> AuditPlan:
    """Check what is to be read, and estimate what that takes.

    Args:
        folder: of the run.
        models: the auditor's: a chat model or its name under ``"*"``; by default the offline judge.
        limit: how many verdicts are read.
        **settings: settings of all protocols.

    Raises:
        UsageError: no run, no debate in it, a model that is not there, or labels by another auditor in the folder.
        DataError: a line that is no result.
    """
    read_manifest(folder)
    graph = audit(models, **settings).compile()
    done = {record["key"]: record for record in read_audit(folder)}
    # The shares of two auditors could not be told apart.
    model = models.get("*", models.get("auditor")) if isinstance(models, Mapping) else models
    name = "offline" if model is None else model if isinstance(model, str) else getattr(model, "name", None)
    before = {str(label).partition("?")[0] for record in done.values() for label in record["models"]}
    if isinstance(name, str) and before and before != {name.partition("?")[0]}:
        others = ", ".join(sorted(before))
        raise UsageError(f"{folder / FILE} holds labels by {others}: move it away to label with {name}")
    debates = [result for result in results_of(folder).read() if result.status == "ok" and _places(result)]
    if not debates:
        raise UsageError(f"{folder} holds no debates: no verdict has more than one turn")
    chosen = [result for result in debates[:limit] if result.key not in done]
    sampler = CallSampler(load(OFFLINE, asyncio.get_running_loop()))
    sampled = chosen[:: math.ceil(len(chosen) / MOST_SAMPLED) or 1]
    with answering_calls(sampler):
        for result in sampled:
            await graph.ainvoke(_debate(result))
    # Turns are read one by one: no prompt is longer for the auditor's own earlier replies.
    samples = [replace(sample, number=1) for sample in sampler.samples]
    calls = exactly(sum(len(_places(result)) for result in chosen))
    parts = [part for role in role_profiles(samples).values() for part in shares("audit", role, calls)]
    expected = Estimate({"audit": len(chosen)}, tuple(parts), len(sampled))
    return AuditPlan(folder, graph, debates, chosen, expected)


async def carry_out_audit(planned: AuditPlan, context: RunContext) -> Audit:
    """Read the debates that are planned, as far as the budget goes."""
    config, counts, stop = context.config, context.counts, context.stop
    planned.check(config)
    folder = planned.folder
    where, run = config.journal or folder / JOURNAL, f"audit of {read_manifest(folder)['run']}"
    journal = await Journal.open(where, run=run, shared=config.journal is not None, waits=counts.waits)
    before = len(read_audit(folder))
    counts.take_up(before + len(planned.chosen), before, journal.totals())
    failed: dict[Key, str] = {}
    gate = asyncio.Semaphore(config.concurrency)

    async def read(result: Result, file: FileIO) -> None:
        try:
            async with gate, pipeline.room_for(len(_places(result))):
                outcome = await planned.graph.ainvoke(_debate(result))
        except (StoppedError, JournalError):
            return  # The verdict has not failed: the next start reads it.
        except (ReplyError, ModelCallError) as error:
            failed[result.key] = str(error)
            counts.failed += 1
            if counts.judged == before and len(failed) >= MOST_FAILURES:
                stop.ask("provider", f"the first {MOST_FAILURES} debates could not be labelled: {error}")
            return
        usage = usage_of_turns(outcome["transcript"])
        models_used = sorted({str(turn["model"]) for turn in outcome["transcript"]})
        line = {**result.key._asdict(), "models": models_used, "labels": outcome["labels"], **usage.flat()}
        # One write of one line: a kill leaves whole lines, and at most one half line, which is not read.
        file.write(orjson.dumps(line) + b"\n")
        counts.judged += 1

    if (labels := folder / FILE).exists():
        # A killed process may have left half a line.
        os.truncate(labels, labels.read_bytes().rfind(b"\n") + 1)
    pipeline = LivePipeline(journal, context)
    async with aclosing(journal):
        with FileIO(labels, "a", opener=private) as file, answering_calls(pipeline):
            async with drained_when_stopped(pipeline, stop, config.grace):
                await asyncio.gather(*(read(result, file) for result in planned.chosen))
    records = read_audit(folder)
    models = tuple(dict.fromkeys(model for record in records for model in record["models"]))
    left = len(planned.debates) - len(records)
    return Audit(roles_of(records), models, len(records), failed, left, counts.made, stop.reason)


def _debate(result: Result) -> Any:
    return {"protocol": _protocol(result), "turns": [dict(turn) for turn in result.transcript]}


def _places(result: Result) -> list[int]:
    """Return the turns to label; a verdict in which nobody hears another holds no debate."""
    return audited_places(_protocol(result), result.transcript)


def _protocol(result: Result) -> str:
    return str(result.details.get("of", result.protocol))
