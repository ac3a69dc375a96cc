"""Make tables of score distributions, rankings of systems, and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from ..analysis import Alphas, LeaderboardEntry, Study, WinnerShare
from ..analysis.alphas import AgreementWithPeople
from ..statistics.resampling import Statistic
from ..statistics.score_distribution import ScalePoint
from ..tables import CellValue, Column, Grid, columns_of, text_column
from .labels import SHORT, reference_of, with_notes
from .leaderboard_tables import ASPECT_OF_RECORD, JUDGE_OF_RECORD

Shares = Mapping[str, Statistic]
"""Percentages by the points of a scale, or by the winners; or values by the names of systems."""


def of_subject(study: Study, label: str) -> list[LeaderboardEntry]:
    """Return the leaderboard entries of all judges on a subject."""
    return [entry for entry in study.leaderboard.standings if entry.subject == label]


def distributions(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject how often each score was given or each answer won, by humans and by each judge."""
    for subject in study.subjects:
        entries = [entry for entry in of_subject(study, subject.label) if shares_of(entry)]
        if not entries:
            continue
        rows: list[tuple[str, Shares, Statistic | None]] = [
            (entry.judge, shares_of(entry), getattr(entry.distribution, "distance", None))
            for entry in entries
        ]
        human = people_of(study, subject.label)
        if any(share.value is not None for share in human.values()):
            rows.insert(0, (reference_of(subject), human, None))
        yield with_notes(
            study,
            Grid.from_records(
                f"{subject.label}: score distribution, % of verdicts",
                (
                    text_column("judge", of=lambda row: row[0]),
                    *(
                        Column(point, digits=0, interval=False, of=partial(_share, point))
                        for point in shares_of(entries[0])
                    ),
                    Column(
                        "total variation",
                        best="low",
                        about="distance from the human distribution: half the sum of the absolute differences",
                        of=lambda row: row[2],
                    ),
                ),
                rows,
            ),
        )


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
        yield with_notes(
            study,
            Grid.from_records(
                f"{subject.label}: systems by {method}",
                (
                    text_column("system", of=str),
                    *(
                        Column(name, digits=2, best="high", interval=False, of=of_systems.get)
                        for name, of_systems in values.items()
                    ),
                ),
                _in_order(values.values()),
                notes=notes,
            ),
        )


_METHODS = {"bradley_terry": "Bradley-Terry strength", "elo": "Elo rating", "mean": "mean score"}


def _gather(entry: LeaderboardEntry, reference: str, values: dict[str, Shares], notes: list[str]) -> str:
    """Add a judge's values of systems to ``values``, and those of the labels; return the ranking method's name."""
    if entry.systems is not None:
        systems, correlations, method = entry.systems.systems, entry.systems.correlations, "mean"
        if any(system.human.value is not None for system in systems):
            values.setdefault(reference, {system.system: system.human for system in systems})
        values[entry.judge] = {system.system: system.judge for system in systems}
    elif entry.ranking is not None:
        ranking, human = entry.ranking.judge, entry.ranking.people
        correlations, method = entry.ranking.correlations, ranking.method
        if human is not None and human.problem is None:
            values.setdefault(reference, {system.system: system.figure for system in human.standings})
        if ranking.problem is not None:
            notes.append(f"{entry.judge} is left out: {ranking.problem}")
            return _METHODS.get(method, method)
        values[entry.judge] = {system.system: system.figure for system in ranking.standings}
    else:
        return ""
    known = [
        f"{SHORT[name]} {correlation.value:.3f}"
        for name, correlation in correlations.items()
        if correlation.value is not None
    ]
    if known:
        notes.append(f"{entry.judge} and {reference}, correlation over systems: {', '.join(known)}")
    return _METHODS.get(method, method)


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
    columns = (
        *columns_of(Alphas, lambda entry: entry.alphas),
        *columns_of(AgreementWithPeople, lambda entry: entry.alphas and entry.alphas.people),
    )
    entries = [
        entry
        for entry in study.leaderboard.standings
        if any(
            isinstance(alpha := column.of and column.of(entry), Statistic) and alpha.value is not None
            for column in columns
        )
    ]
    if entries:
        yield with_notes(
            study,
            Grid.from_records("Krippendorff's alpha", (JUDGE_OF_RECORD, ASPECT_OF_RECORD, *columns), entries),
        )
