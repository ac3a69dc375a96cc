"""Measure how well each cell of a sweep agrees with people, its gain over the first cell, and what some sweeps add.

``measure`` is the main function; then the means over aspects, the extra metrics, and what tables and charts share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Literal, NamedTuple

from ..analysis.comparison import PairwiseComparator, Side
from ..analysis.loading import load_evaluations
from ..results.agreement import PreferenceAgreement, ScoreAgreement, agreement
from ..results.results import StoredResults
from ..statistics.alignment import fields_of
from ..statistics.chance_corrected import krippendorff_alpha
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Pair, average, average_difference, difference
from .cells import CellResult

AVERAGE, PREFERENCE = "average", "preference"


class MetricKey(NamedTuple):
    """Names a figure: its aspect (``preference`` for comparisons, ``average`` over aspects) and its statistic."""

    subject: str
    statistic: str


@dataclass(frozen=True)
class Measured:
    """Says how well one cell agrees with humans.

    Attributes:
        figures: agreement with humans, in the metrics that ``shown_metrics`` names.
        gains: the cell's agreement less the first cell's, over the rows that both have; empty for the first.
        rows: rows that counted, by subject.
        within: whether correlations are means within groups.
        units: groups or items that intervals draw from, by subject.
    """

    figures: Mapping[MetricKey, Statistic]
    gains: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    within: bool = False
    units: Mapping[str, int] = field(default_factory=dict)


def measure(
    cells: Sequence[CellResult], resampling: Resampling | None = None, metric: str | None = None
) -> tuple[Measured, ...]:
    """Measure each cell's agreement with humans, and its gain over the first cell, as a report on these runs does.

    Args:
        cells: of one sweep.
        resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
        metric: what cells are compared by; default: what belongs to the data.
    """
    judges = load_evaluations(
        {f"{number}": (cell.protocol, cell.evaluation) for number, cell in enumerate(cells)}, metric=metric
    )
    comparators: dict[str, PairwiseComparator] = {}
    for judge in judges:
        for data in judge.cells.values():
            subject = data.subject
            comparators.setdefault(subject.label, PairwiseComparator(subject, resampling or Resampling()))
    sides = [
        {data.subject.label: Side(judge.label, data.rows, data.distances) for data in judge.cells.values()}
        for judge in judges
    ]
    return tuple(
        _measure_cell(comparators, of_cell, sides[0] if number else None)
        for number, of_cell in enumerate(sides)
    )


def shown_metrics(metric: str) -> tuple[str, ...]:
    """Return the leading metric and the one that papers print beside it: tau beside rho, kappa beside accuracy.

    >>> shown_metrics("group_spearman"), shown_metrics("accuracy")
    (('group_spearman', 'group_kendall'), ('accuracy', 'kappa'))
    """
    beside = METRICS[metric].companion if METRICS[metric].kind == "compare" else None
    kendall = "group_kendall" if METRICS[metric].within else "kendall"
    return tuple(dict.fromkeys((metric, beside or kendall)))


def _measure_cell(
    comparators: Mapping[str, PairwiseComparator], sides: Mapping[str, Side], base: Mapping[str, Side] | None
) -> Measured:
    samples = {
        label: sample
        for label, side in sides.items()
        if len(sample := comparators[label].labelled_sample(side))
    }
    if not samples:
        return Measured({})
    names = shown_metrics(comparators[next(iter(samples))].subject.metric)
    figures = {
        MetricKey(label, name): figure
        for label, sample in samples.items()
        for name, figure in sample.statistics(names).items()
    }
    gains: dict[MetricKey, Statistic] = {}
    pairs: list[Pair] = []
    for label in samples if base is not None else ():
        if base is not None and label in base:
            mine, theirs = comparators[label].shared(sides[label], base[label])
            own = comparators[label].sample(sides[label].label, mine)
            other = comparators[label].sample(base[label].label, theirs)
            pairs.append((own, other))
            gains |= {MetricKey(label, name): difference(own, other, name)[0] for name in names}
    if len(samples) > 1:
        for name in names:
            figures[MetricKey(AVERAGE, name)] = average(list(samples.values()), name)
            if len(pairs) == len(samples):
                gains[MetricKey(AVERAGE, name)] = average_difference(pairs, name)[0]
    return Measured(
        figures,
        gains,
        rows={label: sample.counted for label, sample in samples.items()},
        within=METRICS[names[0]].within,
        units={label: sample.count for label, sample in samples.items()},
    )


def rows_of_category(cell: CellResult, category: str) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of a cell's verdicts on items of one category."""
    return (head for head in heads(cell) if head["status"] == "ok" and head["category"] == category)


def heads(cell: CellResult) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of each result of a cell; of stored ones without the transcript, which is not parsed."""
    results = cell.evaluation.results
    return results.heads() if isinstance(results, StoredResults) else map(fields_of, results)


Extra = Literal["alpha", "spread", "weight"]


@dataclass(frozen=True)
class ExtraMetric:
    """Computes a further figure of a cell, for the sweeps that ask for it.

    Attributes:
        name: its heading.
        about: what it is, in a sentence.
        compute: of a cell.
        digits: decimals.
    """

    name: str
    about: str
    compute: Callable[[CellResult], Statistic]
    digits: int = 3


def advocates_alpha(cell: CellResult) -> Statistic:
    """Compute Krippendorff's alpha (interval) of the totals that the defences of one answer got, each scored alone.

    1: all defences of an answer are worth the same; 0: no more alike than defences of different answers.
    Resampled are items.
    """
    units = [(item, totals) for item, side in _sides(cell) for totals in [side["totals"]]]
    return krippendorff_alpha(
        [totals for _, totals in units], groups=[item for item, _ in units], resampling=Resampling()
    ).alpha


def advocates_spread(cell: CellResult) -> Statistic:
    """Compute by how many points the best defence of an answer exceeds the worst one, on average."""
    return _mean([max(side["totals"]) - min(side["totals"]) for _, side in _sides(cell)])


def picked_weight(cell: CellResult) -> Statistic:
    """Compute the softmax weight of the defence that represents its answer, on average."""
    return _mean([max(side["weights"]) for _, side in _sides(cell)])


def _mean(values: list[float]) -> Statistic:
    return Statistic(fsum(values) / len(values) if values else None)


def _sides(cell: CellResult) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield for each verdict, round and side the item, and the totals and weights of the side's defences."""
    for result in cell.evaluation.results:
        for round in result.details.get("best", ()):
            for totals, weights in zip(round["totals"], round["weights"], strict=True):
                yield result.item, {"totals": totals, "weights": weights}


EXTRAS: Mapping[Extra, ExtraMetric] = {
    "alpha": ExtraMetric("alpha", "Krippendorff's alpha between the defences of an answer", advocates_alpha),
    "spread": ExtraMetric(
        "spread", "points between an answer's best and worst defence", advocates_spread, digits=1
    ),
    "weight": ExtraMetric(
        "weight of the best", "softmax weight of the defence that is picked", picked_weight
    ),
}


def categories_of(cells: Sequence[CellResult]) -> list[str]:
    """Return the items' categories, those that a cell is named after first."""
    labels = {label for cell in cells for label in cell.cell.labels.values()}
    categories = dict.fromkeys(head["category"] for cell in cells for head in heads(cell) if head["category"])
    # False sorts before True, and sorting is stable: the order within both parts stays.
    return sorted(categories, key=lambda category: category not in labels)


def agreement_on_category(cell: CellResult, category: str) -> ScoreAgreement | PreferenceAgreement | None:
    """Measure a cell's agreement with humans on items of one category; ``None`` where it has none of these."""
    rule = cell.evaluation.rule
    by_aspect = agreement(rows_of_category(cell, category), Resampling(), ties=rule.ties, votes=rule.votes)
    return next(iter(by_aspect.values()), None)


def first_figure(result: ScoreAgreement | PreferenceAgreement) -> Statistic:
    """Return the first of the figures that papers print: rho over rows, or accuracy."""
    return result.accuracy if isinstance(result, PreferenceAgreement) else result.over_rows["spearman"]


def metric_keys(measured: Sequence[Measured]) -> list[MetricKey]:
    """Return the keys of all figures that any cell has, those of the average first."""
    keys = dict.fromkeys(key for cell in measured for key in cell.figures)
    return sorted(keys, key=lambda key: key.subject != AVERAGE)


def leading(keys: Iterable[MetricKey]) -> list[MetricKey]:
    """Return the keys of the averages over aspects; where there are none, those of every subject."""
    listed = list(keys)
    return [key for key in listed if key.subject == AVERAGE] or listed


def shown(axis: str, label: str) -> str:
    """Return a value's label where its axis is not named: a number or a flag is shown with its axis.

    >>> shown("n", "3"), shown("tie_breaker", "true"), shown("persona", "plain")
    ('n=3', 'tie_breaker=true', 'plain')
    """
    speaks_for_itself = not label.replace(".", "").isdigit() and label not in ("true", "false")
    return label if speaks_for_itself else f"{axis}={label}"
