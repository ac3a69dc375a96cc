"""The drawings of a study, with what is said about them to those who see them and to those who do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..analysis import Frontier, Round, Study
from ..statistics.resampling import Statistic
from .labels import judges_on
from .leaderboard_tables import best_first
from .ranking_tables import people_of, shares_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A drawing.

    Attributes:
        figure: drawn in the house's style.
        title: what it is.
        description: what is to be seen in it, for those who do not see it.
        caption: what stands under it.
    """

    figure: Figure
    title: str
    description: str
    caption: str


def pictures(study: Study) -> Iterator[Picture]:
    """All drawings.

    Raises:
        UsageError: matplotlib is not installed.
    """
    yield from frontiers(study)
    yield from rounds(study)
    yield from distributions(study)


def frontiers(study: Study) -> Iterator[Picture]:
    """Agreement over cost, for each subject."""
    return (_frontier(frontier) for frontier in study.frontiers if frontier.points)


def _frontier(frontier: Frontier) -> Picture:
    from .frontier_charts import AXES, MANY, UNITS, frontier_figure

    title = f"{AXES.get(frontier.measure, frontier.measure)} over {UNITS[frontier.unit]}, {frontier.subject}"
    points = "; ".join(
        f"{point.label} {point.agreement.value:.3f} at {point.spent:.4g}"
        for point in frontier.points
        if point.agreement.value is not None
    )
    best = ", ".join(point.label for point in frontier.frontier)
    curves = " Dashed: ensembles of single judges, 1, 2, 3 and so on." if frontier.curves else ""
    crowded = " Names that find no room are left out." if len(frontier.points) > MANY else ""
    left = "".join(f" {label} is not drawn: {reason}." for label, reason in frontier.left_out.items())
    return Picture(
        frontier_figure(frontier),
        title,
        f"{points}. Nobody beats at their price: {best}.",
        f"{title}. On the line, in bold: nobody agrees better for less.{curves}{crowded}{left}",
    )


def rounds(study: Study) -> Iterator[Picture]:
    """Agreement after each round, for each subject that was debated in rounds."""
    for subject in study.subjects:
        debated = [each for each in study.diagnoses if each.subject == subject.label and len(each.rounds) > 1]
        if debated:
            yield _rounds(subject.label, {each.judge: each.rounds for each in debated}, debated[0].measure)


def _rounds(subject: str, debates: dict[str, tuple[Round, ...]], measure: str) -> Picture:
    from .frontier_charts import rounds_figure

    title = f"Agreement after each round, {subject}"
    said = "; ".join(f"{name}: {_path(held)}" for name, held in debates.items())
    return Picture(
        rounds_figure(debates, measure, subject),
        title,
        f"From the first verdict on: {said}.",
        f"{title}, had every debate ended there. Vertical lines are intervals.",
    )


def _path(rounds: Sequence[Round]) -> str:
    values = (one.agreement.value for one in rounds)
    return ", ".join("none" if value is None else f"{value:.3f}" for value in values)


MOST_BARS = 4


def distributions(study: Study) -> Iterator[Picture]:
    """How often each score was given, or each answer won: people beside the judges that agree best with them."""
    for subject in study.subjects:
        judges = {
            each.label: shares
            for each in best_first(study, [subject], "spearman")
            if (standing := study.leaderboard.standing(each.label, subject.label)) is not None
            and (shares := _values(shares_of(standing)))
        }
        chosen = dict(list(judges.items())[:MOST_BARS])
        if chosen:
            points = list(shares_of_first(study, subject.label))
            people = _values(people_of(study, subject.label)) or []
            everybody = judges_on(study, (subject.data, subject.digest))
            numbers = {each.label: number for number, each in enumerate(everybody)}
            yield _bars(subject.label, points, people, chosen, numbers)


def shares_of_first(study: Study, subject: str) -> list[str]:
    """The points of a subject's scale, as the first judge that has any was counted by them."""
    standings = (each for each in study.leaderboard.standings if each.subject == subject)
    return next((list(shares) for each in standings if (shares := shares_of(each))), [])


def _values(shares: Mapping[str, Statistic]) -> list[float]:
    values = [share.value for share in shares.values()]
    return [value / 100 for value in values if value is not None] if None not in values else []


def _bars(
    subject: str,
    points: list[str],
    people: list[float],
    judges: Mapping[str, list[float]],
    numbers: Mapping[str, int],
) -> Picture:
    from .series_charts import bars_figure

    title = f"Distribution of verdicts, {subject}"
    said = "; ".join(
        f"{name}: " + ", ".join(f"{point} {share:.0%}" for point, share in zip(points, shares, strict=True))
        for name, shares in {**({"people": people} if people else {}), **judges}.items()
    )
    some = f" The {len(judges)} judges that agree best with people." if len(judges) < len(numbers) else ""
    return Picture(
        bars_figure(points, people, judges, subject, numbers), title, f"{said}.", f"{title}.{some}"
    )
