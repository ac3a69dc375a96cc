"""Make tables of score distributions, rankings of systems, annotators, and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from operator import itemgetter

from ..analysis import Study
from ..analysis.annotators import Alphas, Annotators, Rater
from ..analysis.leaderboard import LeaderboardEntry
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic
from ..statistics.score_distribution import ScalePoint
from ..statistics.tie_policy import WINNERS
from ..tables.grid import Column, Grid, columns_of, text_column, value_at
from .labels import reference_of
from .leaderboard_tables import WHOSE

Shares = Mapping[str, Statistic]
"""Percentages by the points of a scale, or by the winners; or values by the names of systems."""


def distributions(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject how often each score was given or each answer won, by humans and by each judge."""
    for subject in study.subjects:
        rows: list[tuple[str, Shares, Statistic | None]] = [
            (entry.judge, shares, getattr(entry.distribution, "distance", None))
            for entry in study.leaderboard.on(subject.label)
            if (shares := shares_of(entry))
        ]
        if not rows:
            continue
        points = [Column(name, 0, interval=False, of=value_at(name, itemgetter(1))) for name in rows[0][1]]
        human = people_of(study, subject.label)
        if any(share.value is not None for share in human.values()):
            rows.insert(0, (reference_of(subject), human, None))
        about = "distance from the human distribution: half the sum of the absolute differences"
        distance = Column("total variation", best="low", about=about, of=itemgetter(2))
        title = f"{subject.label}: score distribution, % of verdicts"
        yield Grid.from_records(title, (text_column("judge", of=itemgetter(0)), *points, distance), rows)


def shares_of(entry: LeaderboardEntry) -> dict[str, Statistic]:
    """Return the percentage of a judge's verdicts at each point of the scale, or with each winner."""
    return {name: point.judge for name, point in _points(entry)}


def people_of(study: Study, label: str) -> dict[str, Statistic]:
    """Return the percentage of the labels at each point of the scale, or with each winner.

    Each entry has the labels of the rows that its judge judged: those of the first entry with shares are returned.
    """
    shares = ({name: point.human for name, point in _points(entry)} for entry in study.leaderboard.on(label))
    return next(filter(None, shares), {})


def _points(entry: LeaderboardEntry) -> Iterator[tuple[str, ScalePoint]]:
    if entry.distribution is not None:
        yield from ((f"{point.point:g}", point) for point in entry.distribution.points)
        return
    for share in entry.winners:
        winner = WINNERS[int(share.point)]
        yield winner if winner == "tie" else f"answer {winner}", share


_METHODS = {"bradley_terry": "Bradley-Terry strength", "mean": "mean score"}


def systems(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject the systems whose texts were judged, with their human value and each judge's."""
    for subject in study.subjects:
        reference = reference_of(subject)
        values: dict[str, Shares] = {}
        notes: list[str] = []
        method = ""
        for entry in study.leaderboard.on(subject.label):
            if (ranking := entry.systems) is None:
                continue
            method = _METHODS[ranking.method]
            if ranking.human:
                values.setdefault(reference, ranking.human)
            if ranking.problem is not None:
                notes.append(f"{entry.judge} is left out: {ranking.problem}")
                continue
            values[entry.judge] = ranking.judge
            known = {name: of.value for name, of in ranking.correlations.items() if of.value is not None}
            if known:
                listed = ", ".join(f"{METRICS[name].short} {value:.3f}" for name, value in known.items())
                notes.append(f"{entry.judge} and {reference}, correlation over systems: {listed}")
        # A single judge's values without labels rank systems, but there is nothing to compare them with.
        if len(values) < 2 and reference not in values:
            continue
        columns = [
            Column(name, digits=2, best="high", interval=False, of=of_systems.get)
            for name, of_systems in values.items()
        ]
        title = f"{subject.label}: systems by {method}"
        system = text_column("system", of=str)
        yield Grid.from_records(title, (system, *columns), _in_order([*values.values()]), notes)


def _in_order(values: Sequence[Shares]) -> list[str]:
    """Order systems by the first column of values, the human one if there is one; the highest first."""
    first = {name: figure.value for name, figure in values[0].items() if figure.value is not None}
    # A system without a value comes last.
    return sorted(dict.fromkeys(chain(*values)), key=lambda name: first.get(name, -inf), reverse=True)


def alphas(study: Study) -> Iterator[Grid]:
    """Tabulate Krippendorff's alpha: between agents, repeats, annotators, and annotators with the judge as one more."""
    columns = columns_of(Alphas, lambda entry: entry.alphas)
    grid = Grid.from_records("Krippendorff's alpha", (*WHOSE, *columns), study.leaderboard.standings)
    known = [row for row in grid.rows if any(getattr(cell, "value", None) is not None for cell in row[2:])]
    if known:
        yield replace(grid, rows=tuple(known))


def annotators(of_subjects: Iterable[Annotators]) -> Iterator[Grid]:
    """Tabulate for each subject the annotators, how far they agree, and the judges in their place."""
    for people in of_subjects:
        yield Grid.from_records(people.title, columns_of(Rater), people.raters, people.notes, drop_empty=True)
