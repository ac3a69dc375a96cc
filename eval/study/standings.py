"""Computes where each contender stands on each subject, and on average."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np

from ...state.errors import UsageError
from ..agreement import PreferenceAgreement, ScoreAgreement, agreement
from ..statistics.distribution import Scale, ScoreDistribution, score_distributions
from ..statistics.gains import Gain, gain
from ..statistics.ranking import Rankings, rank_by_verdicts
from ..statistics.raters import between_repeats, with_people
from ..statistics.reliability import Level, Reliability, krippendorff_alpha
from ..statistics.resampling import Resampling
from ..statistics.statistic import Statistic
from ..statistics.systems import SystemAgreement, system_agreement
from .comparing import Arena
from .gathering import Cell, Entry
from .leaderboard import Alphas, Average, Leaderboard, OverRepeats, Standing, WinnerShare
from .matchmaking import Competitor
from .measures import MEASURES, Sample, mean_statistic, numbering, sample
from .rows import Judged, Row, judged_by

WINNERS = ("1", "2", "tie")
_STEPS = 10
"""Parts of a scale whose ends are no whole number apart."""
_RANKINGS = 200
"""Resamples of a ranking, at most: each is a fit of its own, by a package that takes a millisecond for it."""


class Board:
    """Gathers standings subject by subject.

    Args:
        resampling: how intervals are made.
        bases: by dataset's digest, the label of the contender that gains refer to.
    """

    def __init__(self, resampling: Resampling, bases: Mapping[str, str]) -> None:
        self._resampling, self._bases = resampling, bases
        self._fewer = replace(resampling, resamples=min(resampling.resamples, _RANKINGS))
        self._standings: dict[tuple[str, str], Standing] = {}
        self._samples: dict[tuple[str, str], tuple[Sample, Sequence[str]]] = {}
        self._notes: dict[str, None] = {}

    def add(self, arena: Arena, there: Sequence[Competitor]) -> None:
        """All contenders on one subject."""
        for each in there:
            place = each.entry.label, arena.subject.label
            units = list(dict.fromkeys(row.unit for row in each.cell.labelled))
            self._samples[place] = arena.sample(each.side), units
            self._standings[place] = self._standing(each.entry, each.cell, self._samples[place][0])
        base = self._bases.get(arena.subject.digest)
        self._add_gains([each.entry.label for each in there], arena.subject.label, base)

    def leaderboard(self, entries: Sequence[Entry]) -> Leaderboard:
        """Of all subjects so far, contender by contender."""
        standings = [
            standing
            for entry in entries
            for standing in self._standings.values()
            if standing.contender == entry.label
        ]
        averages = {entry.label: average for entry in entries if (average := self._average(entry))}
        return Leaderboard(tuple(standings), tuple(self._with_gains(averages, entries)), tuple(self._notes))

    def _standing(self, entry: Entry, cell: Cell, of_all: Sample) -> Standing:
        wanted = entry.wanted_each()
        done = len(cell.rows) + cell.failed
        spending = cell.spending.spending()
        measures = {name: of_all.statistic(name) for name in MEASURES[cell.subject.kind]}
        return Standing(
            contender=entry.label,
            subject=cell.subject.label,
            judged=len(cell.rows),
            failed=cell.failed,
            missing=max(0, (wanted or done) - done),
            mean=cell.score.value,
            rounds=cell.rounds.value,
            stop_reasons=spending.stop_reasons,
            bill=cell.bill,
            agreement=_agreement(cell, measures, self._resampling),
            measures=measures,
            repeats=_over_repeats(cell, self._resampling),
            alphas=self._alphas(cell),
            systems=self._systems(cell),
            ranking=self._ranking(cell),
            distribution=_distribution(cell, self._resampling),
            winners=_winners(cell, self._resampling),
        )

    def _add_gains(self, labels: Sequence[str], subject: str, base: str | None) -> None:
        before = self._standings.get((base or "", subject))
        for label in labels:
            standing = self._standings[label, subject]
            if before is not None and label != base:
                self._standings[label, subject] = replace(
                    standing, gains=_gains(standing.measures, before.measures)
                )

    def _average(self, entry: Entry) -> Average | None:
        subjects = [cell.subject.label for cell in entry.cells.values() if cell.subject.kind == "score"]
        if len(subjects) < 2:
            return None
        there = [self._samples[entry.label, subject] for subject in subjects]
        measures = {name: self._mean_measure(name, there) for name in MEASURES["score"]}
        return Average(entry.label, str(entry.data.get("name", "unknown")), tuple(subjects), measures, {})

    def _mean_measure(self, name: str, there: Sequence[tuple[Sample, Sequence[str]]]) -> Statistic:
        values = [found.value(name) for found, _ in there]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return Statistic(None)
        if any(units != there[0][1] for _, units in there):
            return Statistic(fmean(known))
        drawn = np.mean([found.drawn(name) for found, _ in there], axis=0)
        return self._resampling.interval(fmean(known), drawn)

    def _with_gains(self, averages: Mapping[str, Average], entries: Sequence[Entry]) -> Iterator[Average]:
        for entry in entries:
            average = averages.get(entry.label)
            before = averages.get(self._bases.get(entry.digest, ""))
            if average is None:
                continue
            comparable = before is not None and set(before.subjects) == set(average.subjects)
            if before is not None and comparable and before is not average:
                yield replace(average, gains=_gains(average.measures, before.measures))
            else:
                yield average

    def _alphas(self, cell: Cell) -> Alphas:
        rows = list(cell.fields())
        repeated = len({row.repeat for row in cell.rows}) > 1
        repeats = between_repeats(rows, resampling=self._resampling) if repeated else {}
        alike = cell.distances or cell.subject.kind == "compare"
        people = with_people(rows, resampling=self._resampling) if cell.labelled and alike else {}
        return Alphas(
            agents=_between_agents(cell, self._resampling),
            repeats=next(iter(repeats.values()), None),
            people=next(iter(people.values()), None),
        )

    def _systems(self, cell: Cell) -> SystemAgreement | None:
        if cell.subject.kind != "score" or not any(row.systems for row in cell.rows):
            return None
        return next(iter(system_agreement(cell.fields(), self._resampling).values()), None)

    def _ranking(self, cell: Cell) -> Rankings | None:
        if cell.subject.kind != "compare" or not any(len(row.systems) > 1 for row in cell.rows):
            return None
        try:
            return rank_by_verdicts(cell.fields(), resampling=self._fewer)
        except UsageError as error:
            self._notes.setdefault(f"systems are not ranked: {error}")
            return None


def _agreement(
    cell: Cell, measures: Mapping[str, Statistic], resampling: Resampling
) -> ScoreAgreement | PreferenceAgreement | None:
    """What ``agreement`` says of the rows, with intervals that have been made already: they are the same."""
    rule, without = cell.subject.rule, replace(resampling, resamples=0)
    of_aspect = agreement(cell.fields(), without, ties=rule.ties, votes=rule.votes)
    found = next(iter(of_aspect.values()), None)
    if isinstance(found, ScoreAgreement):
        return replace(
            found,
            over_rows={name: measures[name] for name in found.over_rows},
            per_group={
                name: replace(each, low=measures[f"group_{name}"].low, high=measures[f"group_{name}"].high)
                for name, each in found.per_group.items()
            },
            resampling=resampling,
        )
    if isinstance(found, PreferenceAgreement):
        return replace(found, accuracy=measures["accuracy"], kappa=measures["kappa"], resampling=resampling)
    return found


def _distribution(cell: Cell, resampling: Resampling) -> ScoreDistribution | None:
    subject = cell.subject
    if (
        subject.kind != "score"
        or cell.is_metric
        or not cell.rows
        or subject.low is None
        or subject.high is None
    ):
        return None
    scale = Scale(subject.low, subject.high)
    if not (subject.high - subject.low).is_integer():
        scale = Scale(subject.low, subject.high, (subject.high - subject.low) / _STEPS)
    found = score_distributions(cell.fields(), {subject.aspect or "score": scale}, resampling)
    return next(iter(found.values()), None)


def _winners(cell: Cell, resampling: Resampling) -> tuple[WinnerShare, ...]:
    """Over the verdicts that have a label, where any has; else over all."""
    if cell.subject.kind != "compare" or not cell.rows:
        return ()
    rows = cell.labelled or cell.rows
    units = numbering(rows)[0]

    def percent(said: Sequence[Judged | None], winner: str) -> Statistic:
        return mean_statistic((100.0 * (each == winner) for each in said), units, resampling)

    judged, human = [row.judged for row in rows], [row.human for row in rows]
    return tuple(
        WinnerShare(name, percent(judged, name), percent(human, name) if cell.labelled else Statistic(None))
        for name in WINNERS
    )


def _gains(own: Mapping[str, Statistic], base: Mapping[str, Statistic]) -> dict[str, Gain]:
    return {name: gain(own[name].value, base[name].value) for name in own if name in base}


def _over_repeats(cell: Cell, resampling: Resampling) -> dict[str, OverRepeats]:
    """Each measure in each repeat by itself."""
    numbers = sorted({row.repeat for row in cell.labelled})
    if len(numbers) < 2:
        return {}
    kind = cell.subject.kind
    samples = [
        sample(
            kind,
            [row for row in cell.labelled if row.repeat == number],
            resampling,
            rule=cell.subject.rule,
        )
        for number in numbers
    ]
    return {name: over_repeats([found.value(name) for found in samples]) for name in MEASURES[kind]}


def over_repeats(values: Sequence[float | None]) -> OverRepeats:
    """Mean and sample standard deviation of what there is.

    >>> over_repeats([0.5, 0.7, None])
    OverRepeats(values=(0.5, 0.7, None), mean=0.6, deviation=0.14142135623730948)
    """
    known = [value for value in values if value is not None]
    return OverRepeats(
        tuple(values), fmean(known) if known else None, stdev(known) if len(known) > 1 else None
    )


def _between_agents(cell: Cell, resampling: Resampling) -> Reliability | None:
    """Between judges who sit beside each other, by their last words."""
    several = [row for row in cell.rows if len(row.voices) > 1]
    if not several:
        return None
    level: Level = "interval" if cell.subject.kind == "score" else "nominal"
    units = [row.unit for row in several]
    return krippendorff_alpha(map(_words, several), level, units, resampling)


def _words(row: Row) -> list[float | str]:
    return [voice.value if isinstance(voice.value, str) else judged_by(voice.value) for voice in row.voices]
