"""Measure how well each cell of a sweep agrees with humans, and extra metrics for some plans.

Values and gains use the same comparators and samples as ``report``, with the first cell as the
baseline, so a report on the cells shows the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ..analysis.loading import LoadedJudge, load_evaluations
from ..analysis.study import comparators_of
from ..analysis.verdict_columns import close
from ..results.agreement import Agreement, RowsByAspect
from ..statistics.chance_corrected import krippendorff_alpha
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic, share_of_rows
from ..statistics.sample import average, paired_difference
from ..tables.grid import Column
from .cells import CellResult

AVERAGE = "average"
PREFERENCE = "preference"


class MetricKey(NamedTuple):
    """The key of a value: its metric and its aspect, or ``preference`` or ``average``."""

    subject: str
    statistic: str


@dataclass(frozen=True)
class Measured:
    """A cell's agreement with humans.

    Attributes:
        figures: agreement with humans, in the metrics from ``shown_metrics``.
        gains: the cell's agreement minus the first cell's, over rows in both; empty for the first
            cell.
        rows: the number of rows used, by subject.
        units: the number of groups or items that are resampled, by subject.
        flips: the share of verdicts, labelled or not, that differ from the first cell's; ``None``
            for the first.
    """

    figures: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    gains: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, int] = field(default_factory=dict)
    flips: Statistic | None = None


def measure(
    cells: Sequence[CellResult],
    metric: str | None = None,
    resampling: Resampling | None = None,
    skip_one_score: bool = False,
) -> tuple[Measured, ...]:
    """Measure each cell's agreement with humans and its gain over the first cell, as a report does.

    Args:
        cells: the cells of one sweep.
        metric: the metric for the comparison; the default depends on the data.
        resampling: how to compute intervals; default: 1000 resamples, 95 %, seed 0.
        skip_one_score: leave out groups in which a cell gives all items the same score, as the
            papers' tables do.
    """
    resampling = resampling or Resampling()
    runs = {str(number): (cell.protocol, cell.evaluation) for number, cell in enumerate(cells)}
    base, *_ = judges = load_evaluations(runs, metric=metric)
    # Leave out aspects without labelled verdicts in all cells. Aspects that only some cells lack
    # stay: these cells have no average, because averages over different aspects cannot be compared.
    comparators = comparators_of(judges, resampling, skip_one_score)
    labelled = [of for of in comparators if any(len(of.sample(side)) for side in of.sides.values())]
    names = shown_metrics(labelled[0].subject.metric) if labelled else ()
    measured = []
    for judge in judges:
        own = [of for of in labelled if judge.label in of.sides]
        samples = {of.subject.label: of.sample(of.sides[judge.label]) for of in own}
        judged = {label: sample for label, sample in samples.items() if len(sample)}
        for sample in judged.values():
            sample.statistics(names)  # all at once, because correlations share their resamples
        subjects = {of.subject.label: [of] for of in own} | ({AVERAGE: own} if len(own) > 1 else {})
        figures = dict[MetricKey, Statistic]()
        gains = dict[MetricKey, Statistic]()
        for label, averaged in subjects.items() if judged else ():
            both = judge is not base and all(base.label in of.sides for of in averaged)
            pairs = [
                of.pair(of.sides[judge.label], of.sides[base.label]) for of in averaged if both
            ]
            for key in (MetricKey(label, name) for name in names):
                figures[key] = average(
                    [samples[of.subject.label] for of in averaged], key.statistic
                )
                if pairs:
                    gains[key] = paired_difference(pairs, key.statistic).difference
        rows = {label: sample.counted for label, sample in judged.items()}
        units = {label: sample.count for label, sample in judged.items()}
        flips = None if judge is base else _flips(judge, base, resampling)
        measured.append(Measured(figures, gains, rows, units, flips))
    return tuple(measured)


def _flips(own: LoadedJudge, base: LoadedJudge, resampling: Resampling) -> Statistic | None:
    """Return how often verdicts on the same item, aspect and repeat differ, by any amount."""
    changed = []
    clusters = []
    for aspect in own.by_aspect.keys() & base.by_aspect.keys():
        mine = own.by_aspect[aspect].rows
        theirs = base.by_aspect[aspect].rows
        # Match by item and repeat, because a stopped cell has fewer verdicts.
        _, own_places, base_places = np.intersect1d(mine.keys, theirs.keys, return_indices=True)
        changed.append(~close(mine.judged[own_places], theirs.judged[base_places]))
        clusters.append(mine.clusters[own_places])
    if not changed or not len(rows := np.concatenate(changed)):
        return None
    return share_of_rows(rows, np.concatenate(clusters), resampling)


def shown_metrics(metric: str) -> tuple[str, ...]:
    """Return the leading metric and its usual companion: Kendall's tau, or kappa.

    >>> shown_metrics("group_spearman"), shown_metrics("accuracy")
    (('group_spearman', 'group_kendall'), ('accuracy', 'kappa'))
    """
    declared = METRICS[metric]
    beside = declared.companion if declared.kind == "compare" else None
    kendall = {"rows": "kendall", "groups": "group_kendall", "systems": "system_kendall"}
    return tuple(dict.fromkeys((metric, beside or kendall[declared.unit])))


def metric_keys(measured: Iterable[Measured]) -> list[MetricKey]:
    """Return the keys of all values in any cell, averages first."""
    keys = dict.fromkeys(key for cell in measured for key in cell.figures)
    return sorted(keys, key=lambda key: key.subject != AVERAGE)


def leading(keys: Sequence[MetricKey]) -> list[MetricKey]:
    """Return the keys of the averages over aspects; if there are none, those of all subjects."""
    return [key for key in keys if key.subject == AVERAGE] or list(keys)


def agreement_by_category(cell: CellResult) -> dict[str, Agreement]:
    """Measure a cell's agreement with humans by category, in order of first occurrence."""
    by_category: dict[str, RowsByAspect] = {}
    for head in cell.evaluation.heads():
        if head["status"] == "ok" and head["category"]:
            by_category.setdefault(head["category"], RowsByAspect()).add(head)
    rule = cell.evaluation.rule
    return {
        name: next(iter(rows.agreement(rule=rule).values())) for name, rows in by_category.items()
    }


def _alpha(cell: CellResult) -> Statistic:
    """Compute Krippendorff's alpha (interval) of the totals of defences for the same answer.

    Each defence is scored alone. 1 means that all defences of an answer get the same total, 0 that
    they are no more alike than defences of different answers. Items are resampled.
    """
    sides = _sides(cell)
    totals = [totals for _, totals, _ in sides]
    items = [item for item, *_ in sides]
    return krippendorff_alpha(totals, groups=items, resampling=Resampling()).alpha


def _gap(cell: CellResult) -> Statistic:
    return _mean([max(totals) - min(totals) for _, totals, _ in _sides(cell)])


def _weight(cell: CellResult) -> Statistic:
    return _mean([max(weights) for *_, weights in _sides(cell)])


def _mean(values: list[float]) -> Statistic:
    return Statistic(fmean(values) if values else None)


def _sides(cell: CellResult) -> list[tuple[str, list[float], list[float]]]:
    """Return item, totals and weights of each side's defences, by verdict and round."""
    results = cell.evaluation.results
    rounds = [(result.item, of) for result in results for of in result.details.get("best", ())]
    return [
        (item, *side)
        for item, of in rounds
        for side in zip(of["totals"], of["weights"], strict=True)
    ]


EXTRAS: Mapping[str, Column] = {
    "alpha": Column(
        "alpha", about="Krippendorff's alpha between the defences of an answer", of=_alpha
    ),
    "spread": Column(
        "spread", digits=1, about="points from an answer's worst to its best defence", of=_gap
    ),
    "weight": Column(
        "weight of the best", about="softmax weight of the defence that is picked", of=_weight
    ),
}
"""Extra metrics of a cell by name, for the sweeps that request them."""
