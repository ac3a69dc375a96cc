"""Have the debates of a run read turn by turn; labels are kept in ``audit.jsonl`` beside the results.

One line a verdict, written as it is done, so that what was paid for is never lost; the same call goes on where it
stopped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import orjson

from ...graphs.audit import KINDS, audit, audited_places
from ...nodes.bound_judge import Models
from ...nodes.sync_bridge import run_blocking
from ...state.errors import DataError, ModelCallError, ReplyError, UsageError
from ...state.transcript import usage_of_turns
from ...state.usage import NO_USAGE, Usage
from ..results.folder import read_manifest
from ..results.results import Key, Result, ResultsFile
from ..statistics.alignment import number_units
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..storage.private_files import private
from ..tables import Column, share_column, text_column

FILE = "audit.jsonl"
MOST_FAILURES = 5
"""So many verdicts that cannot be read, and none that can, end an audit."""


@dataclass(frozen=True)
class AuditedRole:
    """Says what the turns of one role did.

    Attributes:
        protocol, role: whose turns.
        n: turns that were labelled.
        argument, concession, repetition: the share of each kind.
        answers: of the turns with another before them, the share that takes it up.
    """

    protocol: Annotated[str, text_column("judge")]
    role: Annotated[str, text_column("role")]
    n: Annotated[int, Column("turns")]
    argument: Annotated[Statistic, share_column("new argument")]
    concession: Annotated[Statistic, share_column("concession")]
    repetition: Annotated[Statistic, share_column("repetition")]
    answers: Annotated[Statistic, share_column("answers", "takes up the turn before it")]


@dataclass(frozen=True)
class Audit:
    """Holds what an auditor said of a run.

    Attributes:
        folder: of the run.
        roles: what the turns of each role did.
        models: who read them.
        read: verdicts whose turns are labelled.
        failed: verdicts whose turns could not be labelled, with the reason.
        usage: of this call; what an earlier one paid is not in it.
        left: verdicts that nobody has read yet.
    """

    folder: Path
    roles: tuple[AuditedRole, ...]
    models: tuple[str, ...]
    read: int
    failed: Mapping[Key, str]
    usage: Usage = NO_USAGE
    left: int = 0


def audit_run(folder: str | Path, models: Models | None = None, **options: Any) -> Audit:
    """Read the debates of a run turn by turn.

    Args:
        folder: of the run.
        models: the auditor's: a chat model or its name under ``"*"``; by default the offline judge.
        **options: ``limit``, how many verdicts are read, ``concurrency``, how many of them at a time (8), ``tell``,
            called after each, and settings of all protocols.

    Raises:
        UsageError: no run, a model that is not there, or labels by another auditor in the folder.
        DataError: a line that is no result.
    """
    return run_blocking(aaudit_run(Path(folder), models, **options))


async def aaudit_run(
    folder: Path,
    models: Models | None = None,
    *,
    limit: int | None = None,
    concurrency: int = 8,
    tell: Callable[[int, int], None] = lambda _done, _wanted: None,
    **settings: Any,
) -> Audit:
    """Read the debates of a run from async code; arguments and errors are those of ``audit_run``."""
    if concurrency < 1 or (limit is not None and limit < 1):
        raise UsageError(f"limit and concurrency must be 1 or more, got {limit} and {concurrency}")
    read_manifest(folder)
    graph = audit(models, **settings).compile()
    done = {record["key"]: record for record in read_audit(folder)}
    _check_auditor(folder, models, done.values())
    wanted = [result for result in ResultsFile(folder).read() if result.status == "ok" and _places(result)]
    chosen = [result for result in wanted[:limit] if result.key not in done]
    failed: dict[Key, str] = {}
    gate, spent, finished = asyncio.Semaphore(concurrency), [NO_USAGE], [0]

    async def read(result: Result, file: int) -> None:
        async with gate:
            try:
                given = {"protocol": _protocol(result), "turns": [dict(turn) for turn in result.transcript]}
                outcome = await graph.ainvoke(given)
            except (ReplyError, ModelCallError) as error:
                failed[result.key] = str(error)
                # A key that is refused is refused for every verdict: no more of them are asked for.
                if not finished[0] and len(failed) >= MOST_FAILURES:
                    raise
                return
        usage = usage_of_turns(outcome["transcript"])
        models_used = sorted({str(turn["model"]) for turn in outcome["transcript"]})
        line = {**result.key._asdict(), "models": models_used, "labels": outcome["labels"], **usage.flat()}
        # One write of one line: a kill leaves whole lines, and at most one half line, which is not read.
        os.write(file, orjson.dumps(line) + b"\n")
        spent[0] += usage
        finished[0] += 1
        tell(finished[0], len(chosen))

    if chosen:
        _end_last_line(folder / FILE)
        file = private(str(folder / FILE), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            async with asyncio.TaskGroup() as group:
                for result in chosen:
                    group.create_task(read(result, file))
        except* (ReplyError, ModelCallError) as errors:
            raise errors.exceptions[0] from None
        finally:
            os.close(file)
    records = read_audit(folder)
    return Audit(
        folder,
        roles_of(records),
        tuple(dict.fromkeys(model for record in records for model in record["models"])),
        len(records),
        failed,
        spent[0],
        len(wanted) - len(records),
    )


def read_audit(folder: Path) -> list[dict[str, Any]]:
    """Return the labels that a folder holds, one record a verdict, each with its ``key``; none where there are none.

    Raises:
        DataError: a line that is no record of an audit.
    """
    path = folder / FILE
    if not path.exists():
        return []
    records = {}
    whole, _, _half = path.read_bytes().rpartition(b"\n")
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            record = orjson.loads(line)
            key = Key(record["item"], record["aspect"], record["protocol"], record["repeat"])
            kinds = [label["kind"] for label in record["labels"]]
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(f"{path}, line {number}: no record of an audit: {error}") from error
        if unknown := {*kinds} - {*KINDS}:
            raise DataError(f"{path}, line {number}: no kind of turn {min(unknown)!r}")
        records[key] = {**record, "key": key}
    return [*records.values()]


def roles_of(
    records: Sequence[Mapping[str, Any]], resampling: Resampling | None = None
) -> tuple[AuditedRole, ...]:
    """Count what the turns of each role did; intervals take all turns on one item together."""
    import numpy as np

    resampling = resampling or Resampling()
    by_role: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    for record in records:
        for label in record["labels"]:
            by_role.setdefault((record["protocol"], label["role"]), []).append((record["item"], label))

    def share(turns: Sequence[tuple[str, Any]], holds: Sequence[bool]) -> Statistic:
        units = number_units([item for item, _ in turns], len(turns))
        return share_of_rows(np.array(holds, dtype=bool), units, resampling)

    def counted(protocol: str, role: str, turns: Sequence[tuple[str, Any]]) -> AuditedRole:
        argument, concession, repetition = (
            share(turns, [label["kind"] == kind for _, label in turns])
            for kind in ("argument", "concession", "repetition")
        )
        behind = [turn for turn in turns if turn[1]["answers"] is not None]
        answers = share(behind, [label["answers"] for _, label in behind])
        return AuditedRole(protocol, role, len(turns), argument, concession, repetition, answers)

    return tuple(counted(*names, turns) for names, turns in by_role.items())


def _places(result: Result) -> list[int]:
    """Return the turns to label; a verdict in which nobody hears another holds no debate."""
    return audited_places(_protocol(result), result.transcript)


def _check_auditor(folder: Path, models: Models | None, records: Iterable[Mapping[str, Any]]) -> None:
    """Refuse another auditor than the one whose labels are there: their shares could not be told apart."""
    model = models.get("*", models.get("auditor")) if isinstance(models, Mapping) else models
    name = "offline" if model is None else model if isinstance(model, str) else getattr(model, "name", None)
    before = {str(label).partition("?")[0] for record in records for label in record["models"]}
    if isinstance(name, str) and before and before != {name.partition("?")[0]}:
        raise UsageError(
            f"{folder / FILE} holds labels by {', '.join(sorted(before))}: move it away to have {name} read the debates"
        )


def _protocol(result: Result) -> str:
    return str(result.details.get("of", result.protocol))


def _end_last_line(path: Path) -> None:
    """Cut off half a line that a killed process has left."""
    if path.exists():
        whole, newline, _half = path.read_bytes().rpartition(b"\n")
        os.truncate(path, len(whole) + len(newline))
