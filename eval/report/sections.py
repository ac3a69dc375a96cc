"""Put together the sections of the page and the tables of a report, in the order of reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from ...state.errors import UsageError
from ..analysis import Study
from ..statistics.resampling import Statistic
from ..tables import Grid
from . import (
    charts,
    comparison_tables,
    debate_tables,
    headline,
    leaderboard_tables,
    ranking_tables,
    summary_tables,
)
from .charts import Picture
from .comparison_tables import all_pairs, comparisons, costs, matchings
from .debate_tables import diagnoses, gaps
from .labels import CONFIG, config_line, config_notes, interval_note, without_idle_notes
from .leaderboard_tables import agreements, gains, leaderboards, repeats
from .page import Drawing, Page, Section, Table, Whiskers
from .ranking_tables import alphas, distributions, systems


def compose(study: Study, metric: str | None, title: str) -> Page:
    """Compose the page of a study: headline, sections, configurations; the debates are added when it is written."""
    return Page(
        title=title,
        subtitle=headline.subtitle(study),
        headline=headline.headline(study, metric),
        answers=(*headline.answers(study, metric), *headline.caveats(study)),
        disclosures=study.notes,
        sections=tuple(section for section in _sections(study, metric) if section.parts),
        configs=tuple(map(config_line, study.judges)),
        made=f"{interval_note(study)}. Made with jurygraph {_version()}.",
        version=_version(),
    )


def _version() -> str:
    try:
        return version("jurygraph")
    except PackageNotFoundError:
        return "unknown"


def _sections(study: Study, metric: str | None) -> Iterator[Section]:
    boards = [_table(grid) for grid in leaderboard_tables.leaderboards(study, metric)]
    drawn = list(_drawn(study, charts.frontiers))  # drawn once, and divided between two sections
    first = _first_of_each(study, drawn)
    yield Section(
        "leaderboard",
        "Leaderboard",
        "Agreement with the labels, and cost",
        "The best first. Intervals that overlap do not say whether two judges differ: the comparison below tests that.",
        (*boards, *first),
        study.leaderboard.notes,
        beside=len(boards) == 1 and bool(drawn) and not boards[0].wide,
    )
    yield Section(
        "comparison",
        "Comparison",
        "Differences between judges on the same rows",
        "Intervals come from paired resamples. A difference is significant if its Holm-adjusted p is small.",
        (
            *(_table(grid) for grid in summary_tables.against_base(study, metric) if len(study.subjects) > 1),
            *(
                _table(grid, folded=len(study.subjects) > 1)
                for grid in comparison_tables.comparisons(study, metric)
            ),
            *(_table(grid, folded=True) for grid in comparison_tables.all_pairs(study, metric)),
            *(_table(grid, folded=True) for grid in leaderboard_tables.gains(study, metric)),
        ),
        study.comparison.notes,
    )
    yield Section(
        "cost",
        "Cost",
        "Cost, and the equal-cost baseline",
        "Each judge against the largest ensemble of single judges that costs no more (compute-matched); then all "
        "costs.",
        (
            *(_table(grid) for grid in summary_tables.equal_cost(study) if len(study.subjects) > 1),
            *(_table(grid, folded=len(study.subjects) > 1) for grid in comparison_tables.matchings(study)),
            *(drawing for drawing in drawn if drawing not in first),
            _table(comparison_tables.costs(study)),
        ),
        study.matching.notes,
    )
    yield Section(
        "aspects",
        "Aspects",
        "All correlations by aspect",
        "Over all rows, and as the mean within groups (the candidates of one source).",
        (
            *(_table(grid) for grid in leaderboard_tables.agreements(study)),
            *(_table(grid) for grid in leaderboard_tables.repeats(study)),
        ),
    )
    yield Section(
        "distribution",
        "Distribution",
        "Score distribution",
        "How often each score was given or each answer won. A judge can be right on average and still use few scores.",
        (
            *_drawn(study, charts.distributions),
            *(_table(grid) for grid in ranking_tables.distributions(study)),
        ),
    )
    yield Section(
        "systems",
        "Systems",
        "Ranking of systems",
        "Systems in the order of their labels if there are some, with each judge's values.",
        (
            *(_table(grid) for grid in ranking_tables.systems(study)),
            *(_table(grid) for grid in ranking_tables.alphas(study)),
        ),
    )
    yield Section(
        "diagnostics",
        "Diagnostics",
        "Debate diagnostics",
        "How verdicts changed in the debate, for better or worse, after which agent's turn; and biases of the judges.",
        (
            *_drawn(study, charts.rounds),
            *(_table(grid) for grid in debate_tables.diagnoses(study)),
        ),
        debate_tables.notes(study),
    )
    yield Section(
        "score-gap",
        "Score gap",
        "Score gap between two answers",
        "Whether advocates and more rounds widen the difference of the answers' scores, as the courtroom protocols "
        "claim; a wide gap can still favour the wrong answer: the comparison says how often the winner is right.",
        tuple(_table(grid) for grid in debate_tables.gaps(study) if grid.rows),
    )


def _first_of_each(study: Study, drawn: Sequence[Drawing]) -> list[Drawing]:
    """Choose the cost charts to show first: of each dataset's first subject; of a single dataset, of its first two."""
    data = {subject.label: (subject.data, subject.digest) for subject in study.subjects}
    subjects = [frontier.subject for frontier in study.frontiers if frontier.points]
    if len({data[subject] for subject in subjects}) < 2:
        return list(drawn[:2])
    first: dict[tuple[str, str], Drawing] = {}
    # Not strict: without matplotlib there are no drawings.
    for subject, drawing in zip(subjects, drawn, strict=False):
        first.setdefault(data[subject], drawing)
    return list(first.values())


def _table(grid: Grid, folded: bool = False) -> Table:
    return Table(without_idle_notes(grid), whiskers(grid), folded)


def whiskers(grid: Grid) -> Whiskers | None:
    """Take the intervals of the first column that has some, to be drawn beside it; ``None`` if there are none."""
    for place, column in enumerate(grid.columns):
        cells = [row[place] for row in grid.rows]
        found = [cell for cell in cells if isinstance(cell, Statistic) and _has_interval(cell)]
        if found and column.interval:
            return _whiskers(place, cells)
    return None


def _has_interval(cell: Statistic) -> bool:
    return cell.value is not None and cell.low is not None and cell.high is not None


def _whiskers(place: int, cells: Iterable[object]) -> Whiskers:
    held = [
        (cell.value, cell.low, cell.high) if isinstance(cell, Statistic) and _has_interval(cell) else None
        for cell in cells
    ]
    ends = [end for each in held if each is not None for end in each if end is not None]
    # Zero is always on the scale, since it is drawn as a line; a scale from 0 to 0 must not divide by 0.
    low, high = min(*ends, 0.0), max(*ends, 0.0)
    width = (high - low) or 1.0

    def part(value: float | None) -> float:
        return ((value or 0.0) - low) / width

    return Whiskers(
        place,
        tuple(None if each is None else (part(each[0]), part(each[1]), part(each[2])) for each in held),
        zero=part(0.0),
    )


def _drawn(study: Study, of: Callable[[Study], Iterator[Picture]]) -> Iterator[Drawing]:
    """Draw charts as SVG for the page; none if matplotlib is not installed."""
    from .chart_style import themed_svg

    try:
        for picture in of(study):
            yield Drawing(themed_svg(picture.figure, picture.title, picture.description), picture.caption)
    except UsageError:
        return


TABLES: Mapping[str, Callable[[Study, str | None], Iterable[Grid]]] = {
    "leaderboard": leaderboards,
    "agreement": lambda study, _: agreements(study),
    "comparison": comparisons,
    "pairs": all_pairs,
    "gains": gains,
    "repeats": lambda study, _: repeats(study),
    "equal-cost": lambda study, _: matchings(study),
    "cost": lambda study, _: (costs(study),),
    "distribution": lambda study, _: distributions(study),
    "systems": lambda study, _: systems(study),
    "alpha": lambda study, _: alphas(study),
    "diagnostics": lambda study, _: diagnoses(study),
    "score-gap": lambda study, _: gaps(study),
}
"""The tables of a report by name, in the order of reading; under one name there may be a table for each aspect."""


def names_of_tables(given: str) -> tuple[str, ...]:
    """Read names of tables that commas part.

    Raises:
        UsageError: there is no table of a name.

    >>> names_of_tables("leaderboard, cost")
    ('leaderboard', 'cost')
    """
    names = tuple(dict.fromkeys(name for part in given.split(",") if (name := part.strip())))
    if not names or (unknown := [name for name in names if name not in TABLES]):
        problem = f"there is no table {', '.join(unknown)}" if names else "no table is named"
        raise UsageError(f"--table {given!r}: {problem}; tables are {', '.join(TABLES)}")
    return names


def grids(study: Study, metric: str | None, full: bool = False, chosen: Sequence[str] = ()) -> Iterator[Grid]:
    """Make the tables of a study, in the order of reading; empty ones are left out.

    Args:
        study: the results to tabulate.
        metric: what judges are ranked by (``METRICS``); by default the metric of the data.
        chosen: names of tables (``TABLES``); none for all.
        full: whether notes hold whole configurations, for tables that are used apart from the report; else hashes.
    """
    for name in chosen or TABLES:
        found = [without_idle_notes(grid) for grid in TABLES[name](study, metric) if grid.rows]
        for label, grid in zip(_labels(name, found), found, strict=True):
            yield replace(_with_configs(study, grid) if full else grid, label=label)


def _labels(name: str, found: Sequence[Grid]) -> list[str]:
    """Return the labels of the tables of one name: the name, with what each is about where there are several."""
    if len(found) == 1:
        return [name]
    subjects = [grid.title.partition(": ")[0] for grid in found]
    texts = subjects if len(set(subjects)) == len(found) else [grid.title for grid in found]
    labels = [f"{name}-{file_name(text)}" for text in texts]
    # Titles in other scripts may come to the same file name.
    return labels if len(set(labels)) == len(found) else [f"{name}-{n}" for n in range(1, len(found) + 1)]


def _with_configs(study: Study, grid: Grid) -> Grid:
    # Any text in the table may be a judge's name: ``config_notes`` passes over what is none.
    names = (cell for row in grid.rows for cell in row if isinstance(cell, str))
    notes = (note for note in grid.notes if not note.startswith(CONFIG))
    return replace(grid, notes=(*notes, *config_notes(study, names, full=True)))


def file_name(title: str) -> str:
    """Turn a table's title into a file name.

    >>> file_name("topical-chat: Spearman's rho with human ratings, over rows")
    'topical-chat-spearman-s-rho-with-human-ratings-over-rows'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "table"
