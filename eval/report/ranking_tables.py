"""Make tables of score distributions, rankings of systems, annotators, and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter

from ..analysis import Alphas, LeaderboardEntry, Rater, Study, WinnerShare
from ..statistics.resampling import Statistic
from ..statistics.score_distribution import ScalePoint
from ..tables import CellValue, Column, Grid, columns_of, text_column
from .labels import SHORT, reference_of
from .leaderboard_tables import WHOSE

Shares = Mapping[str, Statistic]
"""Percentages by the points of a scale, or by the winners; or values by the names of systems."""


def of_subject(study: Study, label: str) -> list[LeaderboardEntry]:
    """Return the leaderboard entries of all judges on a subject."""
    return [entry for entry in study.leaderboard.standings if entry.subject == label]


def distributions(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject how often each score was given or each answer won, by humans and by each judge."""
    for subject in study.subjects:
        rows: list[tuple[str, Shares, Statistic | None]] = [
            (entry.judge, shares, getattr(entry.distribution, "distance", None))
            for entry in of_subject(study, subject.label)
            if (shares := shares_of(entry))
        ]
        if not rows:
            continue
        points = [Column(name, 0, interval=False, of=partial(_share, name)) for name in rows[0][1]]
        human = people_of(study, subject.label)
        if any(share.value is not None for share in human.values()):
            rows.insert(0, (reference_of(subject), human, None))
        about = "distance from the human distribution: half the sum of the absolute differences"
        distance = Column("total variation", best="low", about=about, of=itemgetter(2))
        title = f"{subject.label}: score distribution, % of verdicts"
        yield Grid.from_records(title, (text_column("judge", of=itemgetter(0)), *points, distance), rows)


def _share(point: str, row: tuple[str, Shares, Statistic | None]) -> CellValue:
    return row[1].get(point)


def shares_of(entry: LeaderboardEntry) -> dict[str, Statistic]:
    """Return the percentage of a judge's verdicts at each point of the scale, or with each winner."""
    return {name: point.judge for name, point in _points(entry)}


def people_of(study: Study, label: str) -> dict[str, Statistic]:
    """Return the percentage of the labels at each point of the scale, or with each winner.

    Each entry has the labels of the rows that its judge judged: those of the first entry with shares are returned.
    """
    of_entries = ({name: point.human for name, point in _points(entry)} for entry in of_subject(study, label))
    return next(filter(None, of_entries), {})


def _points(entry: LeaderboardEntry) -> Iterator[tuple[str, ScalePoint | WinnerShare]]:
    if entry.distribution is not None:
        yield from ((f"{point.point:g}", point) for point in entry.distribution.points)
        return
    for share in entry.winners:
        yield share.winner if share.winner == "tie" else f"answer {share.winner}", share


def systems(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject the systems whose texts were judged, with their human value and each judge's."""
    for subject in study.subjects:
        reference = reference_of(subject)
        values: dict[str, Shares] = {}
        notes: list[str] = []
        method = ""
        for entry in of_subject(study, subject.label):
            method = _gather(entry, reference, values, notes) or method
        # A single judge's values without labels rank systems, but there is nothing to compare them with.
        if len(values) < 2 and reference not in values:
            continue
        columns = [
            Column(name, digits=2, best="high", interval=False, of=of_systems.get)
            for name, of_systems in values.items()
        ]
        title = f"{subject.label}: systems by {method}"
        system = text_column("system", of=str)
        yield Grid.from_records(title, (system, *columns), _in_order(values.values()), notes)


_METHODS = {"bradley_terry": "Bradley-Terry strength", "mean": "mean score"}


def _gather(entry: LeaderboardEntry, reference: str, values: dict[str, Shares], notes: list[str]) -> str:
    """Add a judge's values of systems to ``values``, and those of the labels; return the ranking method's name."""
    ranking = entry.systems
    if ranking is None:
        return ""
    if ranking.human:
        values.setdefault(reference, ranking.human)
    if ranking.problem is not None:
        notes.append(f"{entry.judge} is left out: {ranking.problem}")
        return _METHODS[ranking.method]
    values[entry.judge] = ranking.judge
    known = [
        f"{SHORT[name]} {correlation.value:.3f}"
        for name, correlation in ranking.correlations.items()
        if correlation.value is not None
    ]
    if known:
        notes.append(f"{entry.judge} and {reference}, correlation over systems: {', '.join(known)}")
    return _METHODS[ranking.method]


def _in_order(values: Iterable[Shares]) -> list[str]:
    """Order systems by the first column of values, the human one if there is one; the highest first."""
    first, *others = values
    all_systems = dict.fromkeys([*first, *(name for of_systems in others for name in of_systems)])

    def rank(name: str) -> float:
        value = first[name].value if name in first else None
        # A system without a value comes last: the others are sorted by the negative of theirs.
        return float("inf") if value is None else -value

    return sorted(all_systems, key=rank)


def alphas(study: Study) -> Iterator[Grid]:
    """Tabulate Krippendorff's alpha: between agents, repeats, annotators, and annotators with the judge as one more."""
    columns = columns_of(Alphas, lambda entry: entry.alphas)
    grid = Grid.from_records("Krippendorff's alpha", (*WHOSE, *columns), study.leaderboard.standings)
    known = [row for row in grid.rows if any(getattr(cell, "value", None) is not None for cell in row[2:])]
    if known:
        yield replace(grid, rows=tuple(known))


def annotators(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject the annotators, how far they agree, and the judges in their place."""
    for people in study.annotators:
        yield Grid.from_records(people.title, columns_of(Rater), people.raters, people.notes, drop_empty=True)
