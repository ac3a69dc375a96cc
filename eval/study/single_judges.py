"""The smaller ensembles that one run holds: its first k judges, who never heard each other, as an ensemble of k."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from ...state.aggregation import mean_of
from .comparing import Side
from .contenders import Bill
from .gathering import Cell, Entry
from .rows import Row, RowKey, Value, judged_by


class Smaller(NamedTuple):
    """An ensemble of the first k judges of a run, on one subject."""

    k: int
    of: int
    side: Side
    bill: Bill


def holds_ensembles(entry: Entry) -> bool:
    """Whether a contender is an ensemble of judges who do not talk, or one judge asked several times."""
    repeated = int(entry.manifest.get("repeats") or 1) > 1
    return entry.protocol == "ensemble" or (entry.protocol == "single" and repeated)


def smaller_ensembles(entry: Entry, cell: Cell) -> Iterator[Smaller]:
    """All of them, k rising; the greatest is the run itself. Rows in which a judge is missing count for none.

    Of an ensemble: each verdict's first k referees, whose scores (over both orders of the answers) are averaged, as
    ``ensemble`` itself does. Of a single judge: each item's first k repeats, likewise.
    """
    if entry.protocol == "ensemble":
        yield from _of(entry, cell, [[(v.value, v.bill) for v in row.voices] for row in cell.rows], cell.rows)
        return
    repeats: dict[str, list[Row]] = defaultdict(list)
    for row in cell.rows:
        repeats[row.item].append(row)
    said = [[(row.path[-1], row.bill) for row in rows if row.path] for rows in repeats.values()]
    yield from _of(entry, cell, said, [rows[0] for rows in repeats.values()])


def _of(
    entry: Entry,
    cell: Cell,
    said: Sequence[Sequence[tuple[object, Bill]]],
    rows: Sequence[Row],
) -> Iterator[Smaller]:
    most = max(map(len, said), default=0)
    complete = [(row, judges) for row, judges in zip(rows, said, strict=True) if len(judges) == most and most]
    for k in range(1, most + 1):
        found: dict[RowKey, Row] = {}
        for row, judges in complete:
            bill = replace(sum((bill for _, bill in judges[:k]), Bill()), judgements=1)
            judged = judged_by(mean([cast("Value", value) for value, _ in judges[:k]]))
            found[row.key] = row._replace(judged=judged, bill=bill, path=(), voices=())
        label = f"{entry.label}, {k} of {most}"
        side = Side(label, found, cell.distances)
        yield Smaller(k, most, side, sum((row.bill for row in found.values()), Bill()))


def mean(values: Sequence[Value]) -> Value:
    """Of scores, or of pairs answer by answer.

    >>> mean([3.0, 4.0]), mean([(8.0, 6.0), (7.0, 7.0)])
    (3.5, (7.5, 6.5))
    """
    found = mean_of([list(value) if isinstance(value, tuple) else value for value in values])
    return cast("tuple[float, float]", tuple(found)) if isinstance(found, list) else found
