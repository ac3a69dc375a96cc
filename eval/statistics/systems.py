"""How well a judge ranks whole systems: its mean score for each beside people's.

A judge may miss the differences between single texts and still tell which system writes better ones. This is how Fabbri
et al. 2021 (SummEval) hold metrics against people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from .columns import Floats, Units, numbered
from .correlation import STATISTICS, correlation, correlations_within
from .means import resampled_ratios
from .resampling import Resampling
from .statistic import Statistic
from .together import NO_NUMBER, UNLABELLED, Reasons, fields_of, unit_of, why_unjudged

FEWEST = 3
"""Systems below which there is no correlation: two points lie on a line, whatever they are."""


@dataclass(frozen=True)
class SystemScores:
    """One system's scores.

    Attributes:
        system: its name.
        n: rows of it.
        judge, human: mean scores, with the interval of groups drawn with replacement; ``human`` has no value where
            people scored nothing.
    """

    system: str
    n: int
    judge: Statistic
    human: Statistic


@dataclass(frozen=True)
class SystemAgreement:
    """A judge's mean scores of systems beside people's.

    Attributes:
        n: rows that count; ``groups``: units drawn; ``left_out``: rows that do not count, by reason.
        systems: by the judge's mean, the highest first (equal ones by name).
        correlations: Pearson, Spearman and Kendall over the systems' two means, without a value for fewer than three
            systems, or where all means of a side are equal.
        resampling: how intervals were made; drawn are groups (the sources), each with all its systems.
    """

    n: int
    groups: int
    left_out: Reasons
    systems: tuple[SystemScores, ...]
    correlations: Mapping[str, Statistic]
    resampling: Resampling


def system_agreement(rows: Iterable[Any], resampling: Resampling | None = None) -> dict[str, SystemAgreement]:
    """Agreement on systems, by aspect.

    Args:
        rows: of one protocol, as in ``results.jsonl``: ``score``, ``human``, ``systems`` (one name), ``group`` and
            ``aspect`` if any. If no row of an aspect has people's score, the judge's means stand alone; else rows that
            lack it do not count.
        resampling: how intervals are made.

    >>> rows = [{"item": f"{system}{text}", "group": text, "systems": [system], "score": score, "human": human}
    ...     for text, add in [("s", 0), ("t", 1)]
    ...     for system, score, human in [("a", 1 + add, 2), ("b", 2 + add, 4), ("c", 3 + add, 3)]]
    >>> found = system_agreement(rows)["score"]
    >>> [(each.system, each.judge.value) for each in found.systems], round(found.correlations["spearman"].value, 9)
    ([('c', 3.5), ('b', 2.5), ('a', 1.5)], 0.5)
    """
    found: dict[str, _Gathered] = {}
    for row in map(fields_of, rows):
        if row.get("winner") is None and not isinstance(row.get("human"), str):
            found.setdefault(row.get("aspect") or "score", _Gathered()).add(row)
    return {aspect: gathered.agreement(resampling or Resampling()) for aspect, gathered in found.items()}


def rowwise(name: str, first: Floats, second: Floats) -> Floats:
    """The correlation of each line of two tables of shape (some, systems): shape (some,), NaN where there is none."""
    there = ~np.isnan(first + second).any(axis=1)
    lines = np.repeat(np.arange(int(there.sum())), first.shape[1])
    found = np.full(len(first), np.nan)
    found[there] = correlations_within(name, first[there].ravel(), second[there].ravel(), lines)
    return found


def over_systems(
    judge: Floats, human: Floats, drawn: tuple[Floats, Floats], resampling: Resampling
) -> dict[str, Statistic]:
    """The correlations over systems of two figures that each has, with intervals.

    Args:
        judge, human: one figure a system, of shape (systems,).
        drawn: the same in each resample, of shape (resamples, systems).
    """
    if len(judge) < FEWEST or np.isnan(judge + human).any():
        return {name: Statistic(None) for name in STATISTICS}
    return {
        name: resampling.interval(correlation(name, judge, human), rowwise(name, drawn[0], drawn[1]))
        for name in STATISTICS
    }


@dataclass
class _Gathered:
    """What is kept of the rows of an aspect: numbers, and what they are of."""

    systems: list[str] = field(default_factory=list)
    units: list[Hashable] = field(default_factory=list)
    judge: list[float] = field(default_factory=list)
    human: list[float | None] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, row: Mapping[str, Any]) -> None:
        systems: Sequence[str] = row.get("systems") or ()
        human = row.get("human")
        if reason := why_unjudged(row, row.get("score")):
            self.left_out[reason] += 1
        elif not isfinite(row["score"]) or (human is not None and not isfinite(human)):
            self.left_out[NO_NUMBER] += 1
        elif len(systems) != 1:
            self.left_out["no system" if not systems else "several systems"] += 1
        else:
            self.systems.append(systems[0])
            self.units.append(unit_of(row))
            self.judge.append(row["score"])
            self.human.append(human)

    def agreement(self, resampling: Resampling) -> SystemAgreement:
        labelled = [human is not None for human in self.human]
        counting = np.flatnonzero(labelled if any(labelled) else np.ones(len(labelled), dtype=bool))
        reasons = dict(self.left_out)
        if len(counting) < len(labelled):
            reasons[UNLABELLED] = len(labelled) - len(counting)
        names = [self.systems[at] for at in counting]
        units = numbered([self.units[at] for at in counting], len(counting))
        judge = np.array([self.judge[at] for at in counting], dtype=float)
        human = np.array([self.human[at] for at in counting], dtype=float)
        return _agreement(names, units, (judge, human), reasons, resampling)


def _agreement(
    names: list[str],
    units: Units,
    scores: tuple[Floats, Floats],
    left_out: Reasons,
    resampling: Resampling,
) -> SystemAgreement:
    labels = sorted(set(names))
    number = {label: at for at, label in enumerate(labels)}
    system = np.array([number[name] for name in names], dtype=np.intp)
    shape = (int(units.max()) + 1 if len(units) else 0, len(labels))
    rows = np.zeros(shape)
    np.add.at(rows, (units, system), 1)
    means, drawn = [], []
    for column in scores:
        sums = np.zeros(shape)
        np.add.at(sums, (units, system), column)
        means.append(sums.sum(axis=0) / rows.sum(axis=0))
        drawn.append(resampled_ratios(sums, rows, resampling))
    each = [
        SystemScores(
            system=label,
            n=int(rows[:, at].sum()),
            judge=_interval(means[0][at], drawn[0][:, at], resampling),
            human=_interval(means[1][at], drawn[1][:, at], resampling),
        )
        for at, label in enumerate(labels)
    ]
    return SystemAgreement(
        n=len(names),
        groups=shape[0],
        left_out=left_out,
        systems=tuple(sorted(each, key=lambda scores: (-(scores.judge.value or 0), scores.system))),
        correlations=over_systems(means[0], means[1], (drawn[0], drawn[1]), resampling),
        resampling=resampling,
    )


def _interval(value: float, drawn: Floats, resampling: Resampling) -> Statistic:
    return resampling.interval(None if np.isnan(value) else float(value), drawn)
