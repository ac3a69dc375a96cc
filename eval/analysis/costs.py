"""Compare what judging costs with what people would cost, and find the Pareto frontier of agreement over cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Annotated

from ...state.errors import UsageError
from ..results.evaluation import UsageTotals
from ..statistics.alignment import grouped
from ..statistics.resampling import Statistic
from ..tables import Column
from .comparison import PairwiseComparator
from .equal_cost import Currency, EnsembleOf, cost_of, currency_of
from .judges import Judge


@dataclass(frozen=True)
class People:
    """States what human annotation takes, in the user's own figures (ChatEval, 2024, appendix E; DEBATE, E.1).

    Attributes:
        price_usd: US dollars of one judgement by one person.
        minutes: working time of one judgement.
        annotators: how many people judge each item.

    Raises:
        UsageError: a price or a time below zero, or no annotator.
    """

    price_usd: float | None = None
    minutes: float | None = None
    annotators: int = 1

    def __post_init__(self) -> None:
        for name, value in (("price_usd", self.price_usd), ("minutes", self.minutes)):
            if value is not None and not 0 <= value < float("inf"):
                raise UsageError(f"people: {name} must be 0 or more, got {value}")
        if self.annotators < 1:
            raise UsageError(f"people: annotators must be 1 or more, got {self.annotators}")

    @property
    def cost_each(self) -> float | None:
        """US dollars of one item and aspect, for all annotators."""
        return None if self.price_usd is None else self.price_usd * self.annotators

    @property
    def seconds_each(self) -> float | None:
        """Seconds of work on one item and aspect, by all annotators."""
        return None if self.minutes is None else 60 * self.minutes * self.annotators


@dataclass(frozen=True)
class CostRow:
    """Holds the cost and time of one way of judging for one dataset.

    Attributes:
        label: a judge's, or ``people``.
        data: the dataset's name.
        judgements: how many (an item, an aspect, a repeat).
        calls_each, tokens_each: of one; ``None`` for people.
        cost_each, seconds_each: of one.
        cost_usd, seconds: of all of them, one after another; ``None`` where unknown.
        is_people: whether this is the row of people.
    """

    label: str
    data: str
    judgements: Annotated[int, Column("judgements")]
    calls_each: Annotated[float | None, Column("calls", digits=1)]
    tokens_each: Annotated[float | None, Column("tokens", form="short")]
    cost_each: Annotated[float | None, Column("cost", form="money")]
    seconds_each: Annotated[float | None, Column("seconds", digits=2)]
    cost_usd: Annotated[float | None, Column("total cost", form="money")]
    seconds: Annotated[float | None, Column("total minutes", digits=1, of=lambda seconds: seconds / 60)]
    is_people: bool = False


@dataclass(frozen=True)
class Costs:
    """Lists the rows of all judges, then one of people for each dataset, where their price or time was given."""

    rows: tuple[CostRow, ...]
    people: People | None = None
    notes: tuple[str, ...] = ()


def costs(judges: Sequence[Judge], people: People | None) -> Costs:
    """Make a row for each judge, then for each dataset one for people on as much as its longest run judged."""
    rows = [_row(judge) for judge in judges]
    if people is not None:
        rows += _people(judges, people)
    return Costs(tuple(rows), people, tuple(_notes(judges)))


def _row(judge: Judge) -> CostRow:
    usage = judge.usage
    return CostRow(
        label=judge.label,
        data=judge.data,
        judgements=usage.judgements,
        cost_usd=usage.total.cost_usd,
        seconds=usage.total.seconds,
        cost_each=usage.cost_each,
        seconds_each=usage.seconds_each,
        calls_each=usage.calls_each,
        tokens_each=usage.tokens_each,
    )


def _people(judges: Sequence[Judge], people: People) -> Iterator[CostRow]:
    for of_dataset in grouped((judge.digest, judge) for judge in judges).values():
        # Asking a model again is a repeat; people would judge each item once.
        judgements = max(
            judge.usage.judgements // max(1, int(judge.manifest.get("repeats") or 1)) for judge in of_dataset
        )
        cost, seconds = people.cost_each, people.seconds_each
        yield CostRow(
            label="people",
            data=of_dataset[0].data,
            judgements=judgements,
            cost_usd=None if cost is None else cost * judgements,
            seconds=None if seconds is None else seconds * judgements,
            cost_each=cost,
            seconds_each=seconds,
            calls_each=None,
            tokens_each=None,
            is_people=True,
        )


def _notes(judges: Sequence[Judge]) -> Iterator[str]:
    yield "time is the sum over all calls; since calls run concurrently, a run takes less by the clock"
    if unknown := [judge.label for judge in judges if judge.usage.total.cost_usd is None]:
        yield f"the cost is unknown, because the price of a model is: {', '.join(unknown)}"
    if least := [judge.label for judge in judges if judge.usage.total.uncounted]:
        yield f"token counts are lower bounds, because those of some calls are unknown: {', '.join(least)}"


@dataclass(frozen=True)
class Point:
    """Places a judge, or an ensemble of k, on the plot of agreement over cost.

    Attributes:
        label: shown beside it.
        spent: the horizontal position: dollars or calls a judgement, whichever is the frontier's unit.
        cost: US dollars a judgement; ``None`` where a price is unknown.
        calls: model calls a judgement.
        agreement: the vertical position: agreement with people, in the frontier's measure.
        on_frontier: whether no other point agrees better and costs no more, or agrees as well and costs less.
        k: how many single judges, for an ensemble of k.
    """

    label: str
    spent: float
    cost: float | None
    calls: float
    agreement: Statistic
    on_frontier: bool
    k: int | None = None


@dataclass(frozen=True)
class Curve:
    """Lists the ensembles of k that one run holds, k rising."""

    source: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Frontier:
    """Holds agreement over cost on one target.

    Attributes:
        subject: its label.
        measure: ``spearman`` or ``accuracy``.
        unit: what the horizontal axis is: ``cost`` or ``calls``.
        points: the judges, cheapest first. Those without an agreement (no labels, constant scores) are in ``left_out``.
        curves: ensembles of k. Their points count for the frontier as well.
        left_out: label to the reason why it has no point.
    """

    subject: str
    measure: str
    unit: Currency
    points: tuple[Point, ...]
    curves: tuple[Curve, ...]
    left_out: Mapping[str, str]

    @property
    def frontier(self) -> tuple[Point, ...]:
        """The points on the Pareto frontier, cheapest first."""
        everybody = [*self.points, *(point for curve in self.curves for point in curve.points)]
        return tuple(sorted((p for p in everybody if p.on_frontier), key=lambda p: (p.spent, p.label)))


def frontier(comparator: PairwiseComparator, ensembles: Sequence[EnsembleOf]) -> Frontier:
    """Place judges and ensembles on the plot of one target, and mark those on the Pareto frontier."""
    # Computed metrics ask no model and have no price: the currency is that of the judges.
    currency = currency_of([cell.usage for cell in comparator.cells if cell.judge.models])
    points: list[Point] = []
    left_out = {}
    for cell in comparator.cells:
        usage, label = cell.usage, cell.judge.label
        agreement = comparator.labelled_sample(cell.side).statistic(comparator.subject.metric)
        if not len(cell.rows):
            left_out[label] = "no verdict"
        elif not len(cell.labelled):
            left_out[label] = "no labels"
        elif agreement.value is None:
            left_out[label] = "no agreement to measure: all scores, or all labels, are the same"
        elif cost_of(usage, currency) is None:
            left_out[label] = "its cost is unknown"
        else:
            points.append(_point(label, usage, agreement, currency))
    curves = grouped(
        (of.source, _point(of.label, of.usage, of.agreement, currency, of.k))
        for of in ensembles
        if of.subject == comparator.subject.label and of.agreement.value is not None
    )
    best = {id(point) for point in pareto_front([*points, *chain(*curves.values())])}

    def shown(of: Sequence[Point]) -> tuple[Point, ...]:
        return tuple(replace(point, on_frontier=id(point) in best) for point in of)

    return Frontier(
        subject=comparator.subject.label,
        measure=comparator.subject.metric,
        unit=currency,
        points=shown(sorted(points, key=lambda point: (point.spent, point.label))),
        curves=tuple(Curve(source, shown(points)) for source, points in curves.items()),
        left_out=left_out,
    )


def pareto_front(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points that no other dominates: none agrees as well for less, or better for as much or less.

    Of several points at the same place, all are given.
    """
    # In order of cost, a point is on the front if it is above all cheaper ones; those of one cost come together.
    best = float("-inf")
    by_cost = sorted(points, key=lambda point: (point.spent, -_height(point)))
    for _, alike in groupby(by_cost, key=lambda point: point.spent):
        tied = list(alike)
        if _height(tied[0]) > best:
            best = _height(tied[0])
            yield from (point for point in tied if _height(point) == best)


def _point(
    label: str, usage: UsageTotals, agreement: Statistic, currency: Currency, k: int | None = None
) -> Point:
    spent, calls = cost_of(usage, currency) or 0.0, usage.calls_each or 0.0
    return Point(label, spent, usage.cost_each, calls, agreement, on_frontier=False, k=k)


def _height(point: Point) -> float:
    return float("-inf") if point.agreement.value is None else point.agreement.value
