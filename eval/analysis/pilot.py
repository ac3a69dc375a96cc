"""Plan the size of a study from a pilot: the groups, items and annotators that show a gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from ...state.errors import UsageError
from ..results.run_set import folders_of_runs
from ..statistics.alignment import Floats, grouped
from ..statistics.metrics import METRICS
from ..statistics.planned_size import (
    NeededClusters,
    PilotVariance,
    VarianceParts,
    needed_clusters,
    pilot_variance,
    split_variance,
)
from ..statistics.resampling import FEWEST_CLUSTERS, Resampling, is_few
from ..statistics.sample import POWER, Pair
from ..statistics.tie_policy import count_votes
from .comparison import PairwiseComparator
from .loading import load_runs
from .study import choose_bases, comparators_of
from .verdict_columns import Verdicts, sample

_SPLITS = 8
"""The number of random halves, and of random annotators, behind the parts of a variance."""
_RESAMPLES = 400
_SEVERAL = 1.5
"""From this mean number of annotators per item, the variance of a single label is estimated."""


@dataclass(frozen=True)
class Design:
    """A size of a study and its number of groups.

    Attributes:
        items: items per group; 1 without groups.
        annotators: annotators per item.
        size: the number of groups, or of items without groups, with its range.
    """

    items: int
    annotators: int
    size: NeededClusters


@dataclass(frozen=True)
class PlannedPair:
    """What a study of two judges needs.

    Attributes:
        first, second: the judges.
        aspect: what they judge; ``average`` for the mean over the aspects.
        metric: the metric of the gain.
        clusters: the groups of the pilot, or its items without groups.
        effective: the number of independent ones that they are worth.
        items: the mean number of items per group in the pilot.
        annotators: the mean number of annotators per item in the pilot.
        parts: the parts of the variance; ``None`` if nothing is claimed.
        designs: sizes of a study, the design of the pilot first; empty if nothing is claimed.
        problem: the reason why nothing is claimed; ``None`` if there are designs.
    """

    first: str
    second: str
    aspect: str
    metric: str
    clusters: int
    effective: float
    items: float
    annotators: float
    parts: VarianceParts | None
    designs: tuple[Design, ...]
    problem: str | None = None


@dataclass(frozen=True)
class StudyPlan:
    """The size of a study that shows a gain between judges.

    Attributes:
        gain: the difference to show.
        power: the chance to show it.
        tests: the number of pairs that are tested together (Holm).
        unit: ``groups``, or ``items`` if there are no groups.
        pairs: each pair of judges on each aspect.
    """

    gain: float
    power: float
    tests: int
    unit: str
    pairs: tuple[PlannedPair, ...]

    @property
    def largest(self) -> PlannedPair | None:
        """The pair that needs the most groups; ``None`` if nothing is claimed for any pair."""
        planned = [pair for pair in self.pairs if pair.designs]
        return max(planned, key=lambda pair: pair.designs[0].size.needed, default=None)


def plan_study(
    pilot: str | Path | Sequence[str | Path],
    gain: float,
    power: float = POWER,
    *,
    base: str | None = None,
    metric: str | None = None,
    resampling: Resampling | None = None,
) -> StudyPlan:
    """Compute how many groups, items and annotators show a gain between judges.

    Args:
        pilot: the folder of a run with human labels and at least two judges, or several folders.
        gain: the difference of the metric to show, above 0 and below 1.
        power: the chance to show it, above 0 and below 1.
        base: the label of a judge; only its differences to the others are planned.
        metric: the metric of the gain; the default depends on the data.
        resampling: the confidence of the range, and the seed; default 95 %, seed 0.

    Raises:
        UsageError: a gain or a power out of range; no labels, one judge or one group; a metric
            without an interval; an unknown base.
        DataError: a folder without a run.
    """
    if not 0 < gain < 1:
        raise UsageError(f"--gain must be above 0 and below 1, got {gain:g}")
    if not 0 < power < 1:
        raise UsageError(f"--power must be above 0 and below 1, got {power:g}")
    given = [pilot] if isinstance(pilot, str | Path) else pilot
    resampling = resampling or Resampling(_RESAMPLES)
    folders, _ = folders_of_runs([Path(folder) for folder in given])
    judges = load_runs(folders, metric=metric)
    shown = ", ".join(map(str, given))
    if len(judges) < 2:
        raise UsageError(
            f"{shown}: the pilot has one judge ({judges[0].label}); a gain needs two, "
            "such as jurygraph run single,debate"
        )
    bases = choose_bases(judges, base) if base is not None else {}
    comparators = comparators_of(judges, resampling)
    labelled = [
        of for of in comparators if any(side.rows.labelled.any() for side in of.sides.values())
    ]
    if not labelled:
        raise UsageError(f"{shown}: the pilot has no human labels, so it shows no agreement")
    by_data = grouped((of.subject.digest, of) for of in labelled)
    if len(by_data) > 1:
        names = ", ".join(of[0].subject.data for of in by_data.values())
        raise UsageError(f"{shown}: the pilot has several datasets ({names}); give one")
    if METRICS[labelled[0].subject.metric].interval == "none":
        raise UsageError(
            f"--metric {metric} has no interval, so no study can test a gain in it; "
            f"take {METRICS[labelled[0].subject.metric].against_chance}"
        )
    (digest,) = by_data
    labels = [*labelled[0].sides]
    pairs = [
        (first, second)
        for place, first in enumerate(labels)
        for second in labels[place + 1 :]
        if base is None or bases.get(digest) in (first, second)
    ]
    telling = [of for of in labelled if of.subject.labels_differ]
    if not telling:
        raise UsageError(f"{shown}: all human labels of the pilot are the same")
    if not pairs:
        raise UsageError(f"{shown}: no two judges of the pilot judged {labelled[0].subject.label}")
    groups = {len(np.unique(side.rows.clusters)) for of in telling for side in of.sides.values()}
    if max(groups) < 2:
        raise UsageError(
            f"{shown}: the pilot has one group or item, and its variance needs at least "
            f"{FEWEST_CLUSTERS}"
        )
    is_grouped = any((side.rows.group >= 0).any() for of in telling for side in of.sides.values())
    unit = "groups" if is_grouped else "items"
    planned = [
        _planned(averaged, name, pair, unit, (gain, power, len(pairs)))
        for name, averaged in _aspects(telling)
        for pair in pairs
        if all(label in of.sides for of in averaged for label in pair)
    ]
    return StudyPlan(gain, power, len(pairs), unit, tuple(planned))


def _aspects(
    telling: Sequence[PairwiseComparator],
) -> Iterator[tuple[str, list[PairwiseComparator]]]:
    averaged = [of for of in telling if of.averaged]
    if len(averaged) > 1:
        yield "average", averaged
    for of in telling:
        yield of.subject.aspect or of.subject.label, [of]


Goal = tuple[float, float, int]
"""A gain, a power, and the number of tests."""


def _planned(
    comparators: Sequence[PairwiseComparator],
    aspect: str,
    judges: tuple[str, str],
    unit: str,
    goal: Goal,
) -> PlannedPair:
    """Plan the study of two judges, on one aspect or on average."""
    sides = [(of, of.sides[judges[0]], of.sides[judges[1]]) for of in comparators]
    rows = [(of, of.rows(first, second), of.rows(second, first)) for of, first, second in sides]
    metric = comparators[0].subject.metric
    found = pilot_variance([_pair(*of_aspect) for of_aspect in rows], metric)
    _, first_rows, _ = rows[0]
    clusters = len(np.unique(first_rows.clusters))
    effective = found.effective if found else 0.0
    items = len(np.unique(first_rows.item)) / max(1, clusters)
    annotators = float(np.mean([_annotators(of) for _, of, _ in rows])) if clusters else 1.0
    problem = _problem(found, clusters, unit, METRICS[metric].within)
    parts = None
    designs: tuple[Design, ...] = ()
    if found is not None and problem is None:
        parts = _parts(rows, metric, found, (items, annotators))
        confidence = comparators[0].resampling.confidence
        designs = tuple(_designs(parts, found, (items, annotators), goal, confidence))
    return PlannedPair(
        *judges, aspect, metric, clusters, effective, items, annotators, parts, designs, problem
    )


def _problem(found: PilotVariance | None, clusters: int, unit: str, within: bool) -> str | None:
    if clusters < FEWEST_CLUSTERS:
        return f"the pilot has {clusters} {unit}; at least {FEWEST_CLUSTERS} are needed"
    if found is None:
        return (
            "the difference has no variance in the pilot, for example because a verdict is constant"
        )
    if is_few(found.effective):
        needed = int(np.ceil(clusters * FEWEST_CLUSTERS / found.effective))
        reason = "most labels or most verdicts are the same, or most rows are in few groups"
        if within:
            reason = "in the others the labels or the verdicts do not differ"
        return (
            f"{clusters} {unit} count as {found.effective:.1f}, since {reason}; "
            f"about {needed} are needed"
        )
    if found.is_zero:
        return "both judges agree with the labels equally in every resample"
    return None


def _pair(
    comparator: PairwiseComparator,
    first: Verdicts,
    second: Verdicts,
    labels: Floats | None = None,
) -> Pair:
    subject = comparator.subject
    how = comparator.resampling
    return (
        sample(subject, first, how, labels=labels),
        sample(subject, second, how, labels=labels),
    )


def _annotators(rows: Verdicts) -> float:
    counts = (~np.isnan(rows.by_annotator)).sum(axis=1)
    return float(np.maximum(counts, 1).mean()) if len(counts) else 1.0


Rows = Sequence[tuple[PairwiseComparator, Verdicts, Verdicts]]


def _parts(
    rows: Rows, metric: str, found: PilotVariance, size: tuple[float, float]
) -> VarianceParts:
    """Split the variance of the pilot by random halves of its items and by single annotators."""
    items, annotators = size
    draw = np.random.default_rng(rows[0][0].resampling.seed)
    within = METRICS[metric].within
    halves = []
    # Half of a group must have two items for a metric within groups.
    for _ in range(_SPLITS if items >= (4 if within else 2) else 0):
        parts = [_half(of_aspect, draw) for of_aspect in rows]
        variance = pilot_variance([_pair(*of_aspect) for of_aspect in parts], metric)
        if variance is not None:
            _, first, _ = parts[0]
            each = len(np.unique(first.item)) / len(np.unique(first.clusters))
            halves.append((variance.each, each))
    labels = []
    for _ in range(_SPLITS if annotators >= _SEVERAL else 0):
        pairs = [_pair(*of_aspect, _one_label(of_aspect[1], draw)) for of_aspect in rows]
        variance = pilot_variance(pairs, metric)
        if variance is not None:
            labels.append(variance.each)
    half = None
    if halves:
        of_half, half_items = np.mean(halves, axis=0).tolist()
        half = of_half, half_items
    one_label = float(np.mean(labels)) if labels else None
    return split_variance(found.each, half, one_label, items, annotators, within)


def _half(
    of_aspect: tuple[PairwiseComparator, Verdicts, Verdicts], draw: np.random.Generator
) -> tuple[PairwiseComparator, Verdicts, Verdicts]:
    """Take a random half of the items of each group; a group of one item stays."""
    comparator, first, second = of_aspect
    _, place, of_row = np.unique(first.item, return_index=True, return_inverse=True)
    groups = np.unique(first.clusters[place], return_inverse=True)[1]
    order = np.lexsort((draw.random(len(groups)), groups))
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(groups), dtype=np.intp)
    rank[order] = np.arange(len(groups)) - starts[groups[order]]
    wanted = (rank < np.maximum(1, sizes // 2)[groups])[of_row]
    return comparator, first.take(wanted), second.take(wanted)


def _one_label(rows: Verdicts, draw: np.random.Generator) -> Floats:
    """Return the label of one random annotator for each row."""
    labels = rows.by_annotator
    known = ~np.isnan(labels)
    chosen = np.where(known, draw.random(labels.shape), -1.0).argmax(axis=1)
    one = np.where(known.any(axis=1), labels[np.arange(len(labels)), chosen], rows.human)
    return count_votes(one[:, None]) if rows.winners else one


def _designs(
    parts: VarianceParts,
    found: PilotVariance,
    size: tuple[float, float],
    goal: tuple[float, float, int],
    confidence: float,
) -> Iterator[Design]:
    """Yield the design of the pilot, and those with twice the items or annotators."""
    items, annotators = (max(1, round(number)) for number in size)
    # Twice the items only helps if the pilot shows what single items contribute.
    some_items = [items, 2 * items] if parts.groups and items > 1 else [items]
    some_annotators = [annotators, 2 * annotators] if parts.labels else [annotators]
    for number, of_item in product(some_items, some_annotators):
        is_pilot = (number, of_item) == (items, annotators)
        variance = found.each if is_pilot else parts.each(number, of_item)
        needed = needed_clusters(variance, *goal, found.freedom, confidence)
        yield Design(number, of_item, needed)
