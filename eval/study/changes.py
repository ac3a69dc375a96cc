"""From the first verdict to the last: what talking changed, and whether for the better."""

from __future__ import annotations

from collections import Counter

from ..statistics.resampling import Resampling
from ..statistics.statistic import Statistic
from .diagnostics import Changes
from .gathering import Cell
from .measures import mean_statistic, numbering
from .movers import same
from .rows import Judged, Row, direction, judged_by
from .signs import sign_test


def changes(cell: Cell, resampling: Resampling) -> Changes | None:
    """Of one contender on one subject; ``None`` where nobody talked, so that there is nothing but a last verdict."""
    rows = [row for row in cell.rows if row.path]
    if not cell.debates or not rows:
        return None
    changed = [row for row in rows if moved(first(row), row.judged)]
    told = [
        row for row in changed if row.human is not None and (cell.distances or cell.subject.kind == "compare")
    ]
    ways = Counter(direction(first(row), row.judged, row.human) for row in told)
    return Changes(
        n=len(rows),
        changed=len(changed),
        moved=mean_statistic(
            (float(moved(first(row), row.judged)) for row in rows), numbering(rows)[0], resampling
        ),
        back=sum(_came_back(row) for row in rows),
        labelled=len(told),
        helpful=ways[1],
        harmful=ways[-1],
        neither=ways[0],
        p=sign_test(ways[1], ways[-1]),
        error=_error(cell, rows, resampling),
        up=sum(_rank(first(row)) < _rank(row.judged) for row in changed),
        down=sum(_rank(first(row)) > _rank(row.judged) for row in changed),
    )


def first(row: Row) -> Judged:
    """The first score, or the winner by the first scores."""
    return judged_by(row.path[0])


def moved(before: Judged, after: Judged) -> bool:
    """Whether a verdict differs by more than rounding."""
    if isinstance(before, str) or isinstance(after, str):
        return before != after
    return not same(before, after)


def _came_back(row: Row) -> bool:
    on_the_way = any(moved(first(row), judged_by(value)) for value in row.path)
    return on_the_way and not moved(first(row), row.judged)


def _rank(judged: Judged) -> float:
    """Upwards is a higher score, or answer 1."""
    return {"2": 0.0, "tie": 1.0, "1": 2.0}[judged] if isinstance(judged, str) else judged


def _error(cell: Cell, rows: list[Row], resampling: Resampling) -> Statistic | None:
    """The mean change of the distance to people."""
    if cell.subject.kind != "score" or not cell.distances:
        return None
    told = [row for row in rows if row.human is not None]
    if not told:
        return None
    apart = (distance(row.judged, row.human) - distance(first(row), row.human) for row in told)
    return mean_statistic(apart, numbering(told)[0], resampling)


def distance(judged: Judged, human: Judged | None) -> float:
    """Of a score to people's; of a winner 0 where it is right, else 1."""
    if isinstance(judged, str) or isinstance(human, str) or human is None:
        return float(judged != human)
    return abs(judged - human)
