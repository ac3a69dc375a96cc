"""Make the charts of a study, each with a caption and a description in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..analysis import Frontier, Round, Study
from ..statistics.resampling import Statistic
from .labels import reference_of
from .leaderboard_tables import best_first
from .ranking_tables import of_subject, people_of, shares_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """Holds a chart with its texts.

    Attributes:
        figure: the matplotlib figure.
        title: the subject of the chart.
        description: the content of the chart in words, for screen readers.
        caption: the text below it.
    """

    figure: Figure
    title: str
    description: str
    caption: str


def pictures(study: Study) -> Iterator[Picture]:
    """Make all charts of a study.

    Raises:
        UsageError: matplotlib is not installed.
    """
    yield from frontiers(study)
    yield from rounds(study)
    yield from distributions(study)


def frontiers(study: Study) -> Iterator[Picture]:
    """Make a chart of agreement over cost for each subject."""
    numbers = numbers_of(study)
    return (_frontier(frontier, numbers) for frontier in study.frontiers if frontier.points)


def numbers_of(study: Study) -> dict[str, int]:
    """Number the judges of a study: a judge has the same colour, mark and place in all of its charts."""
    return {judge.label: number for number, judge in enumerate(study.judges)}


def _frontier(frontier: Frontier, numbers: Mapping[str, int]) -> Picture:
    from .frontier_charts import AXES, MANY, UNITS, frontier_figure

    title = f"{AXES.get(frontier.measure, frontier.measure)} over {UNITS[frontier.unit]}, {frontier.subject}"
    points = "; ".join(
        f"{point.label} {point.agreement.value:.3f} at {point.spent:.4g}"
        for point in frontier.points
        if point.agreement.value is not None
    )
    best = ", ".join(point.label for point in frontier.frontier)
    curves = " Dashed: ensembles of 1, 2, 3, ... single judges." if frontier.curves else ""
    crowded = " Names without room are left out." if len(frontier.points) > MANY else ""
    left = "".join(f" {label} is not drawn: {reason}." for label, reason in frontier.left_out.items())
    return Picture(
        frontier_figure(frontier, numbers),
        title,
        f"{points}. On the Pareto frontier: {best}.",
        f"{title}. Line, filled marks, bold names: Pareto frontier, no judge agrees better for less."
        f"{curves}{crowded}{left}",
    )


def rounds(study: Study) -> Iterator[Picture]:
    """Make a chart of agreement by round for each subject with debates of several rounds."""
    # A debate of a single round has no course to draw.
    for subject in study.subjects:
        debated = [
            diagnosis
            for diagnosis in study.diagnoses
            if diagnosis.subject == subject.label and len(diagnosis.rounds) > 1
        ]
        if debated:
            paths, numbers = {diagnosis.judge: diagnosis.rounds for diagnosis in debated}, numbers_of(study)
            in_order = {name: paths[name] for name in sorted(paths, key=lambda name: numbers[name])}
            yield _rounds(subject.label, in_order, debated[0].measure, numbers)


def _rounds(
    subject: str, debates: dict[str, tuple[Round, ...]], measure: str, numbers: Mapping[str, int]
) -> Picture:
    from .frontier_charts import rounds_figure

    title = f"Agreement by round, {subject}"
    values = "; ".join(f"{name}: {_path(of_judge)}" for name, of_judge in debates.items())
    return Picture(
        rounds_figure(debates, measure, subject, numbers),
        title,
        f"From the first verdict on: {values}.",
        f"{title}, if every debate had ended there. Vertical lines are intervals.",
    )


def _path(rounds: Sequence[Round]) -> str:
    values = (stage.agreement.value for stage in rounds)
    return ", ".join("none" if value is None else f"{value:.3f}" for value in values)


# Judges in a chart of distributions: each of them adds a bar to every group.
MOST_BARS = 4


def distributions(study: Study) -> Iterator[Picture]:
    """Make a chart for each subject of how often each score was given, by humans and by the best judges."""
    for subject in study.subjects:
        entries = {entry.judge: entry for entry in of_subject(study, subject.label)}
        judges = {
            judge.label: shares
            for judge in best_first(study, [subject], None)
            if judge.label in entries and (shares := _values(shares_of(entries[judge.label])))
        }
        if judges:
            numbers = {label: number for label, number in numbers_of(study).items() if label in judges}
            best = sorted([*judges][:MOST_BARS], key=lambda label: numbers[label])
            points = list(next(filter(None, map(shares_of, entries.values()))))
            human = _values(people_of(study, subject.label))
            chosen = {label: judges[label] for label in best}
            yield _bars(subject.label, reference_of(subject), points, human, chosen, numbers)


def _values(shares: Mapping[str, Statistic]) -> list[float]:
    values = [share.value for share in shares.values()]
    # All or none: a bar that is missing among the others would be read as a share of 0.
    return [value / 100 for value in values if value is not None] if None not in values else []


def _bars(
    subject: str,
    reference: str,
    points: list[str],
    people: list[float],
    judges: Mapping[str, list[float]],
    numbers: Mapping[str, int],
) -> Picture:
    from .series_charts import bars_figure

    title = f"Score distribution, {subject}"
    shares_in_words = "; ".join(
        f"{name}: " + ", ".join(f"{point} {share:.0%}" for point, share in zip(points, shares, strict=True))
        for name, shares in {**({reference: people} if people else {}), **judges}.items()
    )
    some = (
        f" Of {len(numbers)} judges, the {len(judges)} with the best agreement."
        if len(judges) < len(numbers)
        else ""
    )
    return Picture(
        bars_figure(points, people, judges, subject, numbers, reference),
        title,
        f"{shares_in_words}.",
        f"{title}.{some}",
    )
