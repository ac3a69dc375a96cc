"""Compare what judging costs with what people would cost, and find the Pareto frontier of agreement over cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, NamedTuple

from ...state.errors import UsageError
from ..statistics.alignment import grouped
from ..statistics.resampling import Statistic
from ..tables import Column
from .comparison import PairwiseComparator
from .equal_cost import Currency, EnsembleOf, cost_of, currency_of
from .judges import Judge


@dataclass(frozen=True)
class AnnotatorRates:
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
        """US dollars of one judgement by all annotators."""
        return None if self.price_usd is None else self.price_usd * self.annotators

    @property
    def seconds_each(self) -> float | None:
        """Working time of one judgement by all annotators."""
        return None if self.minutes is None else 60 * self.minutes * self.annotators


class CostRow(NamedTuple):
    """Holds the cost and time of one way of judging for one dataset.

    Attributes:
        label: a judge's, or ``humans``.
        data: the dataset's name.
        judgements: how many (an item, an aspect, a repeat).
        calls_each, tokens_each: of one; ``None`` for people.
        cost_each, seconds_each: of one.
        cost_usd, seconds: of all of them, one after another; ``None`` where unknown.
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


class Costs(NamedTuple):
    """Lists the rows of all judges, then one of people for each dataset, where their price or time was given."""

    rows: tuple[CostRow, ...]
    notes: tuple[str, ...] = ()


def costs(judges: Sequence[Judge], people: AnnotatorRates | None) -> Costs:
    """Make a row for each judge, then for each dataset one for people on as much as its longest run judged."""
    rows = []
    for judge in judges:
        usage, total = judge.usage, judge.usage.total
        of_one = usage.calls_each, usage.tokens_each, usage.cost_each, usage.seconds_each
        of_all = total.cost_usd, total.seconds
        rows.append(CostRow(judge.label, judge.data, usage.judgements, *of_one, *of_all))
    for of_dataset in grouped((judge.digest, judge) for judge in judges).values():
        if people is None:
            break
        # Asking a model again is a repeat; people would judge each item once.
        made = ((judge.usage.judgements, judge.manifest.get("repeats") or 1) for judge in of_dataset)
        judgements = max(judged // max(1, int(repeats)) for judged, repeats in made)
        price, time = people.cost_each, people.seconds_each
        in_all = None if price is None else price * judgements, None if time is None else time * judgements
        rows.append(CostRow("humans", of_dataset[0].data, judgements, None, None, price, time, *in_all))
    notes = ["time is the sum over all calls; since calls run concurrently, a run takes less by the clock"]
    if unknown := [judge.label for judge in judges if judge.usage.total.cost_usd is None]:
        notes.append(f"the cost is unknown, because the price of a model is: {', '.join(unknown)}")
    if least := [judge.label for judge in judges if judge.usage.total.uncounted]:
        why = "because those of some calls are unknown"
        notes.append(f"token counts are lower bounds, {why}: {', '.join(least)}")
    return Costs(tuple(rows), tuple(notes))


class Point(NamedTuple):
    """Places a judge, or an ensemble of k, on the plot of agreement over cost.

    Attributes:
        label: shown beside it.
        spent: the horizontal position: dollars or calls a judgement, whichever is the frontier's currency.
        agreement: the vertical position: agreement with people, in the frontier's measure.
        on_frontier: whether no other point agrees better and costs no more, or agrees as well and costs less.
    """

    label: str
    spent: float
    agreement: Statistic
    on_frontier: bool = False

    @property
    def place(self) -> tuple[float, float]:
        """Both positions: only what has an agreement is a point."""
        return self.spent, self.agreement.value or 0.0


class Frontier(NamedTuple):
    """Holds agreement over cost on one subject.

    Attributes:
        subject: its label.
        measure: ``spearman`` or ``accuracy``.
        currency: what the horizontal axis is.
        points: the judges, cheapest first. Those without an agreement (no labels, constant scores) are in ``left_out``.
        curves: of each run that holds ensembles of k, these, k rising. They count for the frontier as well.
        left_out: label to the reason why it has no point.
    """

    subject: str
    measure: str
    currency: Currency
    points: tuple[Point, ...]
    curves: tuple[tuple[Point, ...], ...]
    left_out: Mapping[str, str]

    @property
    def frontier(self) -> tuple[Point, ...]:
        """The points on the Pareto frontier, cheapest first."""
        everybody = chain(self.points, *self.curves)
        return tuple(sorted((p for p in everybody if p.on_frontier), key=lambda p: (p.spent, p.label)))


def frontier(comparator: PairwiseComparator, ensembles: Sequence[EnsembleOf]) -> Frontier:
    """Place judges and ensembles on the plot of one subject, and mark those on the Pareto frontier."""
    # Computed metrics ask no model and have no price: the currency is that of the judges.
    currency = currency_of([data.usage for data in comparator.data if data.judge.models])
    points: list[Point] = []
    left_out = {}
    for data in comparator.data:
        label, spent = data.judge.label, cost_of(data.usage, currency)
        agreement = comparator.labelled_sample(data.side).statistic(comparator.subject.metric)
        if not len(data.rows):
            left_out[label] = "no verdict"
        elif not len(data.labelled):
            left_out[label] = "no labels"
        elif agreement.value is None:
            left_out[label] = "no agreement to measure: all scores, or all labels, are the same"
        elif spent is None:
            left_out[label] = "its cost is unknown"
        else:
            points.append(Point(label, spent, agreement))
    curves = grouped(
        (of.source, Point(of.label, cost_of(of.usage, currency) or 0.0, of.agreement))
        for of in ensembles
        if of.subject == comparator.subject.label and of.agreement.value is not None
    ).values()
    places = {point.place for point in chain(points, *curves)}

    def marked(point: Point) -> Point:
        """Mark it unless another point agrees as well for less, or better for as much or less."""
        own_spent, own_agreement = point.place
        others = places - {point.place}
        dominated = any(spent <= own_spent and agreement >= own_agreement for spent, agreement in others)
        return point._replace(on_frontier=not dominated)

    return Frontier(
        subject=comparator.subject.label,
        measure=comparator.subject.metric,
        currency=currency,
        points=tuple(map(marked, sorted(points, key=lambda point: (point.spent, point.label)))),
        curves=tuple(tuple(map(marked, curve)) for curve in curves),
        left_out=left_out,
    )
