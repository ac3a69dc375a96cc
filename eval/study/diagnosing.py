"""Puts together what one contender's debates did on one subject."""

from __future__ import annotations

from collections.abc import Iterator

from ..statistics.columns import numbered
from ..statistics.resampling import Resampling
from .changes import changes
from .diagnostics import Diagnosis, Positions
from .gathering import Cell, Entry
from .lengths import length_bias
from .measures import MAIN, mean_statistic
from .rounds import rounds
from .signs import sign_test


def diagnose(entry: Entry, cell: Cell, resampling: Resampling) -> Diagnosis:
    """What one contender's debates did on one subject."""
    return Diagnosis(
        contender=entry.label,
        subject=cell.subject.label,
        measure=MAIN[cell.subject.kind],
        changes=changes(cell, resampling),
        rounds=rounds(cell, resampling),
        movers=cell.movers.movers(),
        conformity=cell.conformity.conformity(),
        spending=cell.spending.spending(),
        positions=_positions(cell, resampling),
        length=length_bias(cell, resampling),
        replies=cell.replies.replies(),
        notes=tuple(_notes(cell)),
    )


def _positions(cell: Cell, resampling: Resampling) -> Positions | None:
    if cell.subject.kind != "compare" or not cell.rows:
        return None
    places, both = cell.places, cell.consistent
    units = numbered([unit for _, unit in both], rows=len(both))
    consistent = mean_statistic((float(same) for same, _ in both), units, resampling) if both else None
    return Positions(
        n=len(both),
        consistent=consistent,
        shown_first=places.first,
        shown_second=places.second,
        ties=places.ties,
        p=sign_test(places.first, places.second),
    )


def _notes(cell: Cell) -> Iterator[str]:
    subject = cell.subject
    if cell.is_metric and subject.kind == "score":
        yield "a metric has a scale of its own: distances to people's scores say nothing and are left out"
    elif cell.off_scale and subject.low is not None and subject.high is not None:
        yield (
            f"{cell.off_scale} of {len(cell.rows)} verdicts or their labels lie outside {subject.low:g} to "
            f"{subject.high:g}: distances to people's scores say nothing and are left out"
        )
    if not cell.labelled and cell.rows:
        yield "no verdict has a label: what is said of people is left out"
    if not cell.rows:
        yield f"no verdict: {cell.failed} judgements failed" if cell.failed else "nothing was judged yet"
