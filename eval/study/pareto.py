"""Which points nobody beats: those that agree better or cost less than every other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from .comparing import Arena
from .frontier import Curve, Frontier, Point
from .matching import EnsembleOf, Unit
from .matchmaking import Competitor, spent, unit_of
from .measures import MAIN


def frontier(arena: Arena, there: Sequence[Competitor], ensembles: Sequence[EnsembleOf]) -> Frontier:
    """Agreement over cost on one subject."""
    unit = unit_of([each.cell.bill for each in there if each.entry.models])
    points, left_out = _points(arena, there, unit)
    curves = {
        source: [_ensemble(found, unit) for found in of_source if found.agreement.value is not None]
        for source, of_source in groupby(ensembles, key=lambda found: found.source)
    }
    everybody = [*points, *(point for curve in curves.values() for point in curve)]
    best = {id(point) for point in unbeaten(everybody)}

    def shown(of: Sequence[Point]) -> tuple[Point, ...]:
        return tuple(replace(point, on_frontier=id(point) in best) for point in of)

    return Frontier(
        subject=arena.subject.label,
        measure=MAIN[arena.kind],
        unit=unit,
        points=shown(sorted(points, key=lambda point: (point.spent, point.label))),
        curves=tuple(Curve(source, shown(points)) for source, points in curves.items() if points),
        left_out=left_out,
    )


def unbeaten(points: Sequence[Point]) -> Iterator[Point]:
    """Those for which there is no other that agrees as well or better and costs as much or less, one of them truly.

    Of points that are alike in both, all are.
    """
    best = float("-inf")
    by_cost = sorted(points, key=lambda point: (point.spent, -_height(point)))
    for _, alike in groupby(by_cost, key=lambda point: point.spent):
        there = list(alike)
        if _height(there[0]) > best:
            best = _height(there[0])
            yield from (point for point in there if _height(point) == best)


def _points(arena: Arena, there: Sequence[Competitor], unit: Unit) -> tuple[list[Point], Mapping[str, str]]:
    points, left_out = [], {}
    for each in there:
        bill = each.cell.bill
        agreement = arena.sample(each.side).statistic(MAIN[arena.kind])
        price = spent(bill, unit)
        if not each.cell.rows:
            left_out[each.side.label] = "no verdict"
        elif not each.cell.labelled:
            left_out[each.side.label] = "no labels"
        elif agreement.value is None:
            left_out[each.side.label] = "no agreement to measure: all scores, or all labels, are the same"
        elif price is None:
            left_out[each.side.label] = "what it cost is not known"
        else:
            calls = bill.calls_each or 0.0
            points.append(Point(each.side.label, price, bill.cost_each, calls, agreement, on_frontier=False))
    return points, left_out


def _ensemble(found: EnsembleOf, unit: Unit) -> Point:
    bill = found.bill
    return Point(
        label=found.label,
        spent=spent(bill, unit) or 0.0,
        cost=bill.cost_each,
        calls=bill.calls_each or 0.0,
        agreement=found.agreement,
        on_frontier=False,
        k=found.k,
    )


def _height(point: Point) -> float:
    return float("-inf") if point.agreement.value is None else point.agreement.value
