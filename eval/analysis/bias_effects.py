"""Measure a judge's biases by experiment: answer order, padding, and texts by its own model.

Only an experiment shows a bias, never a correlation. The same pair is judged in both orders, and
the same text with filler and without. If the judge may vary, it also judges the unchanged text
again (the placebo).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from ..statistics.alignment import Floats, Ints, number_groups
from ..statistics.given_quality import effect_given_quality
from ..statistics.resampling import FEWEST_CLUSTERS, Resampling, Statistic
from ..statistics.significance import LEVEL, clustered_sign_test, holm
from ..tables.grid import Column, figure, text_column

Kind = Literal["position", "length", "self-preference"]
Unit = Literal["points", "wins"]
"""For scores, points of the scale; for comparisons, the share of wins above one half."""

SWAPPED = "swapped orders"
PADDED = "padding"
HALVES = "annotators' halves"
LABELS = "labels, uncorrected"
"""The method that measured an effect."""

_NUMBER = Column("effect", digits=3)
_P = Column("p", form="p")
POWER = 0.8


@dataclass(frozen=True)
class BiasEffect:
    """The effect of an irrelevant feature on a judge's verdicts, on one aspect or in comparisons.

    Attributes:
        kind: the irrelevant feature.
        by: the method of measurement.
        subject: the aspect, or ``preference``.
        n: the texts or pairs that were judged in every form.
        groups: the number of independent groups of them; an item without a group is one.
        unit: the unit of the effect.
        effect: positive if it favours the answer shown first, the longer text, or texts by the
            judge's own model.
        p: two-sided, for an effect of 0; ``None`` if nothing is claimed, as with labels by one
            annotator.
        adjusted: ``p`` by Holm's method over all effects that were tested together.
        detectable: the smallest effect that an experiment of this size finds with 80 % probability.
        placebo: the change without a change of the text; zero if the judge repeats its verdicts.
        moved: the share of verdicts that change with the text.
        placebo_moved: the same without a change of the text.
    """

    kind: Annotated[Kind, text_column("bias")]
    by: Annotated[str, text_column("measured by")]
    subject: Annotated[str, text_column("on")]
    n: Annotated[int, Column("items")]
    groups: Annotated[
        int, Column("groups", about="independent groups; an item without a group is one")
    ]
    unit: Annotated[Unit, text_column("unit")]
    effect: Annotated[Statistic, Column("effect", digits=3)]
    p: float | None
    adjusted: Annotated[float | None, Column("p (Holm)", form="p")]
    detectable: Annotated[
        float | None, Column("detectable", digits=3, about="smallest effect found with 80 % power")
    ]
    placebo: Annotated[
        Statistic | None, Column("placebo", digits=3, about="with nothing changed")
    ] = None
    moved: Annotated[float | None, Column("moved", form="percent", digits=0)] = None
    """verdicts that differ after the change"""
    placebo_moved: Annotated[float | None, Column("by placebo", form="percent", digits=0)] = None
    """verdicts that differ with nothing changed"""

    @property
    def significant(self) -> bool:
        """Whether the effect differs significantly from 0, adjusted for all tests of the run."""
        return self.adjusted is not None and self.adjusted < LEVEL

    @property
    def convicts(self) -> bool:
        """Whether the effect is a bias: significant, and not just a penalty for filler."""
        return self.significant and (self.kind != "length" or (self.effect.value or 0.0) > 0)

    @property
    def favours(self) -> str:
        """The feature that a judge with this bias favours, in words."""
        above = (self.effect.value or 0.0) > 0
        if self.kind == "position":
            return f"favours the answer shown {'first' if above else 'second'}"
        if self.kind == "length":
            return f"favours longer {'texts' if self.unit == 'points' else 'answers'}"
        return f"{'favours' if above else 'disfavours'} texts by its own model"

    @property
    def evidence(self) -> str:
        """One line with the figures."""
        of = f"{self.kind} on {self.subject} ({self.by}, {self.n:,} items)"
        value = _in_words(self.effect, self.unit)
        if self.groups < FEWEST_CLUSTERS:
            return f"{of}: {value}; no test of fewer than {FEWEST_CLUSTERS} groups"
        if self.p is None:
            reason = "noise in the labels alone can cause this, so nothing is claimed"
            if self.by == HALVES:
                reason = "the annotators agree too little to tell"
            return f"{of}: {value}; {reason}"
        p = figure(self.adjusted, _P)
        parts = [f"{of}: {value} (Holm-adjusted p {p if p.startswith('<') else f'= {p}'})"]
        if self.detectable is not None:
            parts.append(f"80 % power for {_in_words(Statistic(self.detectable), self.unit)}")
        if self.placebo is not None:
            parts.append(f"with nothing changed {_in_words(self.placebo, self.unit)}")
        if self.kind == "length" and self.significant and not self.convicts:
            parts.append("filler lowers the verdict, which is no bias towards length")
        return "; ".join(parts)


def _in_words(value: Statistic, unit: Unit) -> str:
    if value.value is None:
        return "no figure"
    known = [end for end in (value.value, value.low, value.high) if end is not None]
    if unit == "wins":
        first, *ends = (f"{100 * end:+.1f}" for end in known)
        return f"{first} percentage points of wins" + (
            f" [{', '.join(ends)}]" if len(ends) == 2 else ""
        )
    first, *ends = (f"{end:+.3f}" for end in known)
    return f"{first} points" + (f" [{', '.join(ends)}]" if len(ends) == 2 else "")


@dataclass(frozen=True)
class Rows:
    """The common settings of all effects on one aspect, and how their intervals are computed.

    Attributes:
        subject: the aspect, or ``preference``.
        unit: ``points`` of scores, ``wins`` of comparisons.
        clusters: for each row, a number shared by rows that are resampled together.
        resampling: how intervals are computed.
    """

    subject: str
    unit: Unit
    clusters: Ints
    resampling: Resampling = Resampling()  # noqa: RUF009 (frozen)

    @property
    def groups(self) -> int:
        """The number of clusters."""
        return len(np.unique(self.clusters))


def mean_effect(
    kind: Kind,
    by: str,
    rows: Rows,
    values: Floats,
    placebo: Floats | None = None,
    moved: tuple[Floats, Floats | None] | None = None,
) -> BiasEffect:
    """Return the mean difference that a change made, with Student's interval over groups.

    There is one difference for each row. The p-value is Student's, too. For winners that change
    places, it comes from the exact sign test over groups: if few verdicts change, Student's test
    finds an effect in up to 5.4 % of simulated runs without one.

    Args:
        kind: the irrelevant feature.
        by: the kind of change.
        rows: the rows.
        values: for each row, the difference that the change made.
        placebo: for each row, the difference that judging again made; ``None`` if the judge never
            varies.
        moved: for each row, whether the change and whether the placebo moved the verdict.
    """
    how = rows.resampling
    effect, p = how.mean_interval(values, rows.clusters)
    if kind == "position":
        p = clustered_sign_test(np.round(values, 9), rows.clusters)
    detectable = _detectable(effect, rows.groups, how)
    # The largest possible move of a verdict; for scores, the largest observed one.
    reach = 0.5 if rows.unit == "wins" else max(1.0, float(np.abs(values).max(initial=0.0)))
    effect = how.no_point(effect, rows.groups, reach)
    of_placebo = Statistic(0.0)
    if placebo is not None:
        of_placebo = how.no_point(how.mean_interval(placebo, rows.clusters)[0], rows.groups, reach)
    by_change, by_placebo = moved or (None, None)
    return BiasEffect(
        kind=kind,
        by=by,
        subject=rows.subject,
        n=len(values),
        groups=rows.groups,
        unit=rows.unit,
        effect=effect,
        p=p,
        adjusted=p,
        detectable=detectable,
        placebo=of_placebo,
        moved=None if by_change is None or not len(by_change) else float(by_change.mean()),
        placebo_moved=0.0 if by_placebo is None else float(by_placebo.mean()),
    )


def effect_beyond_quality(
    kind: Kind, rows: Rows, judged: Floats, feature: Floats, halves: Floats, *, within: bool
) -> BiasEffect:
    """Return the effect of a feature of the texts at constant quality.

    Quality is the part that the labels of both halves of the annotators have in common.

    Args:
        kind: the irrelevant feature.
        rows: the rows.
        judged, feature, halves: as in ``effect_given_quality``.
        within: whether texts are compared within their groups.
    """
    effect, p = effect_given_quality(
        judged, feature, halves, rows.clusters, rows.resampling, within=within
    )
    detectable = _detectable(effect, rows.groups, rows.resampling)
    n = len(judged)
    groups = rows.groups
    return BiasEffect(kind, HALVES, rows.subject, n, groups, rows.unit, effect, p, p, detectable)


def effect_beyond_labels(
    kind: Kind, rows: Rows, judged: Floats, feature: Floats, labels: Floats
) -> BiasEffect:
    """Return how much further verdicts follow a feature than single labels do, without a test.

    If a feature goes with quality, noisy labels follow it less than a precise judge does. So this
    difference is no proof of a bias.

    Args:
        kind: the irrelevant feature.
        rows: the rows.
        judged, feature, labels: a value for each row.
    """
    centred = feature - feature.mean()
    spread = float((centred**2).mean())
    values = (judged - labels) * centred / spread if spread > 0 else np.full(len(judged), np.nan)
    effect = (
        Statistic(None)
        if np.isnan(values).any()
        else rows.resampling.mean_interval(values, rows.clusters)[0]
    )
    n = len(judged)
    groups = rows.groups
    return BiasEffect(kind, LABELS, rows.subject, n, groups, rows.unit, effect, None, None, None)


def adjusted_together(
    effects: Sequence[BiasEffect], resampling: Resampling
) -> tuple[BiasEffect, ...]:
    """Adjust the p-values and the detectable effects of all effects together.

    Holm's method adjusts the p-values, and its first step the detectable effects.
    """
    tests = sum(effect.p is not None for effect in effects)
    adjusted = []
    for effect, p in zip(effects, holm([effect.p for effect in effects]), strict=True):
        detectable = effect.detectable
        if detectable is not None and tests > 1:
            # The observed interval gives the standard error. The level is that of Holm's first
            # step.
            one, several = (_quantiles(effect.groups, resampling, number) for number in (1, tests))
            detectable *= several / one
        adjusted.append(replace(effect, adjusted=p, detectable=detectable))
    return tuple(adjusted)


def _detectable(effect: Statistic, groups: int, resampling: Resampling) -> float | None:
    """Return the effect that is found with 80 % probability, given the observed standard error.

    Source: Cohen 1988, section 2.2.
    """
    from scipy.special import stdtrit

    if effect.low is None or effect.high is None or effect.high - effect.low < 1e-12:
        return None
    student = float(stdtrit(groups - 1, (1 + resampling.confidence) / 2))
    error = (effect.high - effect.low) / 2 / student
    return error * _quantiles(groups, resampling, 1)


def _quantiles(groups: int, resampling: Resampling, tests: int) -> float:
    from scipy.special import stdtrit

    level = (1 - resampling.confidence) / tests
    return float(stdtrit(groups - 1, 1 - level / 2) + stdtrit(groups - 1, POWER))


def clusters_of(names: Sequence[str]) -> Ints:
    """Number the groups of rows by their names.

    >>> clusters_of(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    return number_groups(np.unique(np.array(names), return_inverse=True)[1])
