"""Measure how well each cell of a sweep agrees with people, and what the plans of some protocols add to that.

Figures and gains come from the comparators and samples that a report takes its own from, with the first cell as the
base: ``report`` on the cells says the same.
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
        units: groups or items that intervals draw from, by subject.
        flips: the share of verdicts, labelled or not, that differ from the first cell's; ``None`` for the first.
    """

    figures: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    gains: Mapping[MetricKey, Statistic] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, int] = field(default_factory=dict)
    flips: Statistic | None = None


def measure(
    cells: Sequence[CellResult], metric: str | None = None, resampling: Resampling | None = None
) -> tuple[Measured, ...]:
    """Measure each cell's agreement with humans, and its gain over the first cell, as a report on these runs does.

    Args:
        cells: of one sweep.
        metric: what cells are compared by; default: what belongs to the data.
        resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
    """
    resampling = resampling or Resampling()
    runs = {str(number): (cell.protocol, cell.evaluation) for number, cell in enumerate(cells)}
    base, *_ = judges = load_evaluations(runs, metric=metric)
    # What no cell has a labelled verdict on is left out. What some cells lack stays: their average has no value then,
    # since means over different aspects cannot be compared.
    comparators = comparators_of(judges, resampling)
    labelled = [of for of in comparators if any(len(of.labelled_sample(side)) for side in of.sides.values())]
    names = shown_metrics(labelled[0].subject.metric) if labelled else ()
    measured = []
    for judge in judges:
        own = [of for of in labelled if judge.label in of.sides]
        samples = {of.subject.label: of.labelled_sample(of.sides[judge.label]) for of in own}
        judged = {label: sample for label, sample in samples.items() if len(sample)}
        for sample in judged.values():
            sample.statistics(names)  # correlations share the preparation of their resamples
        subjects = {of.subject.label: [of] for of in own} | ({AVERAGE: own} if len(own) > 1 else {})
        figures, gains = dict[MetricKey, Statistic](), dict[MetricKey, Statistic]()
        for label, averaged in subjects.items() if judged else ():
            both = judge is not base and all(base.label in of.sides for of in averaged)
            pairs = [of.samples(of.sides[judge.label], of.sides[base.label]) for of in averaged if both]
            for key in (MetricKey(label, name) for name in names):
                figures[key] = average([samples[of.subject.label] for of in averaged], key.statistic)
                if pairs:
                    gains[key] = paired_difference(pairs, key.statistic).difference
        rows = {label: sample.counted for label, sample in judged.items()}
        units = {label: sample.count for label, sample in judged.items()}
        flips = None if judge is base else _flips(judge, base, resampling)
        measured.append(Measured(figures, gains, rows, units, flips))
    return tuple(measured)


def _flips(own: LoadedJudge, base: LoadedJudge, resampling: Resampling) -> Statistic | None:
    """Return how often verdicts on the same item, aspect and repeat differ, scores by any amount."""
    changed, clusters = [], []
    for aspect in own.by_aspect.keys() & base.by_aspect.keys():
        mine, theirs = own.by_aspect[aspect].rows, base.by_aspect[aspect].rows
        # Matched by item and repeat, since a cell that was stopped has fewer verdicts.
        _, own_places, base_places = np.intersect1d(mine.keys, theirs.keys, return_indices=True)
        changed.append(~close(mine.judged[own_places], theirs.judged[base_places]))
        clusters.append(mine.clusters[own_places])
    if not changed or not len(rows := np.concatenate(changed)):
        return None
    return share_of_rows(rows, np.concatenate(clusters), resampling)


def shown_metrics(metric: str) -> tuple[str, ...]:
    """Return the leading metric and the one that papers print beside it: tau beside rho, kappa beside accuracy.

    >>> shown_metrics("group_spearman"), shown_metrics("accuracy")
    (('group_spearman', 'group_kendall'), ('accuracy', 'kappa'))
    """
    beside = METRICS[metric].companion if METRICS[metric].kind == "compare" else None
    kendall = "group_kendall" if METRICS[metric].within else "kendall"
    return tuple(dict.fromkeys((metric, beside or kendall)))


def metric_keys(measured: Iterable[Measured]) -> list[MetricKey]:
    """Return the keys of all figures that any cell has, those of the average first."""
    keys = dict.fromkeys(key for cell in measured for key in cell.figures)
    return sorted(keys, key=lambda key: key.subject != AVERAGE)


def leading(keys: Sequence[MetricKey]) -> list[MetricKey]:
    """Return the keys of the averages over aspects; where there are none, those of every subject."""
    return [key for key in keys if key.subject == AVERAGE] or list(keys)


def agreement_by_category(cell: CellResult) -> dict[str, Agreement]:
    """Measure a cell's agreement with humans on the items of each category, in the order in which they come up."""
    by_category: dict[str, RowsByAspect] = {}
    for head in cell.evaluation.heads():
        if head["status"] == "ok" and head["category"]:
            by_category.setdefault(head["category"], RowsByAspect()).add(head)
    rule = cell.evaluation.rule
    return {name: next(iter(rows.agreement(rule=rule).values())) for name, rows in by_category.items()}


def _alpha(cell: CellResult) -> Statistic:
    """Compute Krippendorff's alpha (interval) of the totals that the defences of one answer got, each scored alone.

    1: all defences of an answer are worth the same; 0: no more alike than defences of different answers.
    Resampled are items.
    """
    sides = _sides(cell)
    totals, items = [totals for _, totals, _ in sides], [item for item, *_ in sides]
    return krippendorff_alpha(totals, groups=items, resampling=Resampling()).alpha


def _gap(cell: CellResult) -> Statistic:
    return _mean([max(totals) - min(totals) for _, totals, _ in _sides(cell)])


def _weight(cell: CellResult) -> Statistic:
    return _mean([max(weights) for *_, weights in _sides(cell)])


def _mean(values: list[float]) -> Statistic:
    return Statistic(fmean(values) if values else None)


def _sides(cell: CellResult) -> list[tuple[str, list[float], list[float]]]:
    """Return for each verdict, round and side the item, and the totals and weights of the side's defences."""
    results = cell.evaluation.results
    rounds = [(result.item, of) for result in results for of in result.details.get("best", ())]
    return [(item, *side) for item, of in rounds for side in zip(of["totals"], of["weights"], strict=True)]


EXTRAS: Mapping[str, Column] = {
    "alpha": Column("alpha", about="Krippendorff's alpha between the defences of an answer", of=_alpha),
    "spread": Column("spread", digits=1, about="points from an answer's worst to its best defence", of=_gap),
    "weight": Column("weight of the best", about="softmax weight of the defence that is picked", of=_weight),
}
"""Further figures of a cell, for the sweeps that ask for them, by name."""
