"""Make tables of score distributions, rankings of systems, and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..analysis import LeaderboardEntry, Study
from ..statistics.resampling import Statistic
from ..tables import CellValue, Column, Grid, text_column
from .labels import SHORT, config_notes, interval_note, reference_of

_PERCENT = "% of verdicts"


def of_subject(study: Study, label: str) -> list[LeaderboardEntry]:
    """Return the leaderboard entries of all judges on a subject."""
    return [standing for standing in study.leaderboard.standings if standing.subject == label]


def distributions(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject how often each score was given or each answer won, by humans and by each judge."""
    for subject in study.subjects:
        standings = of_subject(study, subject.label)
        shares = {standing.judge: shares_of(standing) for standing in standings}
        shares = {name: found for name, found in shares.items() if found}
        if not shares:
            continue
        # Each entry has the labels of the rows that its judge judged: the first entry with shares is shown.
        people = next((_people(one) for one in standings if shares_of(one)), {})
        points = list(next(iter(shares.values())))
        rows: list[tuple[CellValue, ...]] = []
        if any(share.value is not None for share in people.values()):
            rows.append((reference_of(subject), *(people[point] for point in points), None))
        rows += [
            (name, *(found.get(point) for point in points), _distance(standings, name))
            for name, found in shares.items()
        ]
        yield Grid(
            title=f"{subject.label}: score distribution, {_PERCENT}",
            columns=(
                text_column("judge"),
                *(Column(point, digits=0, interval=False) for point in points),
                Column(
                    "total variation",
                    best="low",
                    about="distance from the human distribution: half the sum of the absolute differences",
                ),
            ),
            rows=tuple(rows),
            notes=(interval_note(study), *config_notes(study, shares)),
        )


def shares_of(standing: LeaderboardEntry) -> dict[str, Statistic]:
    """Return the percentage of a judge's verdicts at each point of the scale, or with each winner."""
    if standing.distribution is not None:
        return {f"{point.point:g}": point.judge for point in standing.distribution.points}
    return {_winner(share.winner): share.judge for share in standing.winners}


def people_of(study: Study, label: str) -> dict[str, Statistic]:
    """Return the percentage of the labels at each point of the scale, or with each winner."""
    return next((_people(one) for one in of_subject(study, label) if shares_of(one)), {})


def _people(standing: LeaderboardEntry) -> dict[str, Statistic]:
    if standing.distribution is not None:
        return {f"{point.point:g}": point.human for point in standing.distribution.points}
    return {_winner(share.winner): share.human for share in standing.winners}


def _winner(name: str) -> str:
    return name if name == "tie" else f"answer {name}"


def _distance(standings: list[LeaderboardEntry], name: str) -> Statistic | None:
    found = next(one.distribution for one in standings if one.judge == name)
    return None if found is None else found.distance


def systems(study: Study) -> Iterator[Grid]:
    """Tabulate for each subject the systems whose texts were judged, with their human value and each judge's."""
    for subject in study.subjects:
        figures: dict[str, Mapping[str, Statistic]] = {}
        notes: list[str] = []
        method = ""
        for standing in of_subject(study, subject.label):
            method = _gather(standing, reference_of(subject), figures, notes) or method
        # A single judge's values without labels rank systems, but there is nothing to compare them with.
        if len(figures) < 2 and reference_of(subject) not in figures:
            continue
        names = _in_order(figures)
        yield Grid(
            title=f"{subject.label}: systems by {method}",
            columns=(
                text_column("system"),
                *(Column(name, digits=2, best="high", interval=False) for name in figures),
            ),
            rows=tuple((name, *(found.get(name) for found in figures.values())) for name in names),
            notes=(*notes, interval_note(study), *config_notes(study, figures)),
        )


_METHODS = {"bradley_terry": "Bradley-Terry strength", "elo": "Elo rating", "mean": "mean score"}


def _gather(
    standing: LeaderboardEntry, reference: str, figures: dict[str, Mapping[str, Statistic]], notes: list[str]
) -> str:
    """Add a judge's values of systems to ``figures``, and those of the labels; return the ranking method's name."""
    if standing.systems is not None:
        held = standing.systems.systems
        if any(one.human.value is not None for one in held):
            figures.setdefault(reference, {one.system: one.human for one in held})
        figures[standing.judge] = {one.system: one.judge for one in held}
        notes.extend(_correlated(standing.judge, reference, standing.systems.correlations))
        return _METHODS["mean"]
    if standing.ranking is not None:
        ranking = standing.ranking
        if ranking.people is not None and ranking.people.problem is None:
            figures.setdefault(reference, {one.system: one.figure for one in ranking.people.standings})
        if ranking.judge.problem is not None:
            notes.append(f"{standing.judge} is left out: {ranking.judge.problem}")
            return _METHODS.get(ranking.judge.method, ranking.judge.method)
        figures[standing.judge] = {one.system: one.figure for one in ranking.judge.standings}
        notes.extend(_correlated(standing.judge, reference, ranking.correlations))
        return _METHODS.get(ranking.judge.method, ranking.judge.method)
    return ""


def _correlated(name: str, reference: str, correlations: Mapping[str, Statistic]) -> Iterator[str]:
    told = [
        f"{SHORT[each]} {found.value:.3f}" for each, found in correlations.items() if found.value is not None
    ]
    if told:
        yield f"{name} and {reference}, correlation over systems: {', '.join(told)}"


def _in_order(figures: Mapping[str, Mapping[str, Statistic]]) -> list[str]:
    """Order systems by the first column of values, the human one if there is one; the highest first."""
    first = next(iter(figures.values()))
    all_systems = dict.fromkeys(name for found in figures.values() for name in found)

    def rank(name: str) -> float:
        found = first.get(name)
        # A system without a value comes last: the others are sorted by the negative of theirs.
        return float("inf") if found is None or found.value is None else -found.value

    return sorted(all_systems, key=rank)


def alphas(study: Study) -> Iterator[Grid]:
    """Tabulate Krippendorff's alpha: between agents, repeats, annotators, and annotators with the judge as one more."""
    rows: list[tuple[CellValue, ...]] = []
    for standing in study.leaderboard.standings:
        if (found := standing.alphas) is None:
            continue
        between = found.people
        cells: tuple[CellValue, ...] = (
            None if found.agents is None else found.agents.alpha,
            None if found.repeats is None else found.repeats.alpha,
            None if between is None else _alpha(between, "people"),
            None if between is None else _alpha(between, "with_judge"),
        )
        if any(isinstance(cell, Statistic) and cell.value is not None for cell in cells):
            rows.append((standing.judge, standing.subject, *cells))
    if rows:
        yield Grid(
            "Krippendorff's alpha",
            (
                *(
                    text_column("judge"),
                    text_column("aspect"),
                    Column("between agents"),
                    Column("between repeats"),
                ),
                *(
                    Column("between annotators"),
                    Column("with the judge", about="the judge as one more annotator"),
                ),
            ),
            tuple(rows),
            (interval_note(study), *config_notes(study, (str(row[0]) for row in rows))),
        )


def _alpha(found: object, name: str) -> Statistic | None:
    held = getattr(found, name, None)
    alpha = getattr(held, "alpha", held)
    return alpha if isinstance(alpha, Statistic) else None
