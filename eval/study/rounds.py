"""Agreement with people had every debate ended after a given round, and what each round adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from ..statistics.resampling import Resampling
from .changes import distance, moved
from .diagnostics import Round
from .gathering import Cell
from .measures import MAIN, Sample, difference, sample
from .rows import Judged, Row, direction, judged_by

MOST = 40
"""Rounds that are looked at, at most."""


class _Stage(NamedTuple):
    """How verdicts stood at one time."""

    judged: Sequence[Judged]
    active: int
    calls: float | None
    final: bool = False


def rounds(cell: Cell, resampling: Resampling) -> tuple[Round, ...]:
    """Round after round, then what decided in the end, where that was something else; empty where nobody talked."""
    rows = [row for row in cell.labelled if row.path]
    if not cell.debates or not rows:
        return ()
    found: list[Round] = []
    before: tuple[_Stage, Sample] | None = None
    for number, stage in enumerate(_stages(cell, rows)):
        now = sample(cell.subject.kind, rows, resampling, stage.judged, cell.subject.rule)
        found.append(_round(cell, rows, number, stage, now, before))
        before = stage, now
    return tuple(found)


def _stages(cell: Cell, rows: Sequence[Row]) -> Iterator[_Stage]:
    stage = None
    for entry in range(min(MOST, max(len(row.path) for row in rows))):
        judged = [judged_by(row.path[min(entry, len(row.path) - 1)]) for row in rows]
        active = sum(len(row.path) > entry for row in rows)
        stage = _Stage(judged, active, cell.calls_by_round.up_to(entry))
        yield stage
    decided = [row.judged for row in rows]
    if stage is not None and any(map(moved, stage.judged, decided)):
        yield _Stage(decided, len(rows), cell.calls_by_round.in_all(), final=True)


def _round(
    cell: Cell,
    rows: Sequence[Row],
    number: int,
    stage: _Stage,
    now: Sample,
    before: tuple[_Stage, Sample] | None,
) -> Round:
    measure, comparable = MAIN[cell.subject.kind], cell.distances or cell.subject.kind == "compare"
    human = [row.human if comparable else None for row in rows]
    gain = None if before is None else difference(now, before[1], measure)[0]
    was = stage.judged if before is None else before[0].judged
    ways = [direction(*change) for change in zip(was, stage.judged, human, strict=True)]
    taken = _taken(stage, None if before is None else before[0])
    return Round(
        round=number,
        active=stage.active,
        agreement=now.statistic(measure),
        gain=gain,
        calls=stage.calls,
        gain_per_call=gain.value / taken if gain and gain.value is not None and taken else None,
        changed=sum(map(moved, was, stage.judged)),
        helpful=ways.count(1),
        harmful=ways.count(-1),
        error=fmean(map(distance, stage.judged, human)) if comparable else None,
        final=stage.final,
    )


def _taken(stage: _Stage, before: _Stage | None) -> float | None:
    """Calls a verdict between two times."""
    if before is None or stage.calls is None or before.calls is None:
        return None
    return stage.calls - before.calls
