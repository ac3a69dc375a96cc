"""Compare the cost of judges and humans, and find the Pareto frontier of agreement over cost."""

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
    """The cost and time of human annotation, as given by the user.

    Source: ChatEval, 2024, appendix E; DEBATE, E.1.

    Attributes:
        price_usd: US dollars for one judgement by one human.
        minutes: working time of one judgement.
        annotators: the number of humans that judge each item.

    Raises:
        UsageError: a price or a time is below zero, or there is no annotator.
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
    """The cost and time of one way of judging for one dataset.

    Attributes:
        label: a judge's label, or ``humans``.
        data: the dataset's name.
        judgements: the number of judgements (an item, an aspect, a repeat).
        calls_each, tokens_each: for one judgement; ``None`` for humans.
        cost_each, seconds_each: for one judgement.
        cost_usd, seconds: for all judgements, one after another; ``None`` if unknown.
    """

    label: str
    data: str
    judgements: Annotated[int, Column("judgements")]
    calls_each: Annotated[float | None, Column("calls", digits=1)]
    tokens_each: Annotated[float | None, Column("tokens", form="short")]
    cost_each: Annotated[float | None, Column("cost", form="money")]
    seconds_each: Annotated[float | None, Column("seconds", digits=2)]
    cost_usd: Annotated[float | None, Column("total cost", form="money")]
    seconds: Annotated[
        float | None, Column("total minutes", digits=1, of=lambda seconds: seconds / 60)
    ]


class Costs(NamedTuple):
    """The rows of all judges, and of humans for each dataset if their price or time is given."""

    rows: tuple[CostRow, ...]
    notes: tuple[str, ...] = ()


def costs(judges: Sequence[Judge], people: AnnotatorRates | None) -> Costs:
    """Make a row for each judge, then a row of humans for each dataset.

    Humans judge as much as the longest run of the dataset.
    """
    rows = []
    for judge in judges:
        usage = judge.usage
        total = judge.usage.total
        of_one = usage.calls_each, usage.tokens_each, usage.cost_each, usage.seconds_each
        of_all = total.cost_usd, total.seconds
        rows.append(CostRow(judge.label, judge.data, usage.judgements, *of_one, *of_all))
    for of_dataset in grouped((judge.digest, judge) for judge in judges).values():
        if people is None:
            break
        # A repeat asks a model again. Humans would judge each item once.
        made = (
            (judge.usage.judgements, judge.manifest.get("repeats") or 1) for judge in of_dataset
        )
        judgements = max(judged // max(1, int(repeats)) for judged, repeats in made)
        price = people.cost_each
        time = people.seconds_each
        in_all = (
            None if price is None else price * judgements,
            None if time is None else time * judgements,
        )
        rows.append(
            CostRow("humans", of_dataset[0].data, judgements, None, None, price, time, *in_all)
        )
    notes = [
        "time is the sum over all calls; since calls run concurrently, a run takes less by the clock"
    ]
    if unknown := [judge.label for judge in judges if judge.usage.total.cost_usd is None]:
        notes.append(f"the cost is unknown, because the price of a model is: {', '.join(unknown)}")
    if least := [judge.label for judge in judges if judge.usage.total.uncounted]:
        why = "because those of some calls are unknown"
        notes.append(f"token counts are lower bounds, {why}: {', '.join(least)}")
    return Costs(tuple(rows), tuple(notes))


class Point(NamedTuple):
    """A judge, or an ensemble of k, in the plot of agreement over cost.

    Attributes:
        label: the label of the point.
        spent: the horizontal position: dollars or calls for a judgement, depending on the
            frontier's currency.
        agreement: the vertical position: agreement with humans, in the frontier's metric.
        on_frontier: whether no other point agrees better at the same or lower cost, or equally well
            at lower cost.
    """

    label: str
    spent: float
    agreement: Statistic
    on_frontier: bool = False

    @property
    def place(self) -> tuple[float, float]:
        """Both positions. A point always has an agreement."""
        return self.spent, self.agreement.value or 0.0


class Frontier(NamedTuple):
    """Agreement over cost on one subject.

    Attributes:
        subject: its label.
        measure: ``spearman`` or ``accuracy``.
        currency: the unit of the horizontal axis.
        points: the judges, cheapest first. Judges without an agreement (no labels, constant scores)
            are in ``left_out``.
        curves: the ensembles of each run that contains any, by increasing k. They count for the
            frontier as well.
        left_out: the reason why a judge has no point, by label.
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
        return tuple(
            sorted((p for p in everybody if p.on_frontier), key=lambda p: (p.spent, p.label))
        )


def frontier(comparator: PairwiseComparator, ensembles: Sequence[EnsembleOf]) -> Frontier:
    """Place judges and ensembles on the plot of one subject, and mark the Pareto frontier."""
    # Computed metrics call no model and have no price, so the judges determine the currency.
    currency = currency_of([data.usage for data in comparator.data if data.judge.models])
    points: list[Point] = []
    left_out = {}
    for data in comparator.data:
        label = data.judge.label
        spent = cost_of(data.usage, currency)
        agreement = comparator.sample(data.side).statistic(comparator.subject.metric)
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
        """Mark a point unless another one agrees as well for less, or better at no higher cost."""
        own_spent, own_agreement = point.place
        others = places - {point.place}
        dominated = any(
            spent <= own_spent and agreement >= own_agreement for spent, agreement in others
        )
        return point._replace(on_frontier=not dominated)

    return Frontier(
        subject=comparator.subject.label,
        measure=comparator.subject.metric,
        currency=currency,
        points=tuple(map(marked, sorted(points, key=lambda point: (point.spent, point.label)))),
        curves=tuple(tuple(map(marked, curve)) for curve in curves),
        left_out=left_out,
    )
