"""Which sections and tables there are, in the order of reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from .labels import SIGNED, interval_note, signatures, signed, without_idle_notes
from .leaderboard_tables import agreements, gains, leaderboards, repeats
from .page import Drawing, Page, Section, Table, Whiskers
from .ranking_tables import alphas, distributions, systems


def compose(study: Study, metric: str, title: str) -> Page:
    """The page of a study, without its debates."""
    return Page(
        title=title,
        subtitle=headline.subtitle(study),
        headline=headline.headline(study, metric),
        answers=(*headline.answers(study, metric), *headline.caveats(study)),
        disclosures=study.notes,
        sections=tuple(section for section in _sections(study, metric) if section.parts),
        signatures=tuple(map(signed, study.judges)),
        made=f"{interval_note(study)}. Made by jurygraph {_version()}.",
        version=_version(),
    )


def _version() -> str:
    try:
        return version("jurygraph")
    except PackageNotFoundError:
        return "unknown"


def _sections(study: Study, metric: str) -> Iterator[Section]:
    boards = [_table(grid) for grid in leaderboard_tables.leaderboards(study, metric)]
    drawn = list(_drawn(study, charts.frontiers))
    first = _first_of_each(study, drawn)
    yield Section(
        "leaderboard",
        "Leaderboard",
        "Who agrees best, and at what price",
        "The best first. Where two intervals overlap widely, look at the comparison below: it looks at differences.",
        (*boards, *first),
        study.leaderboard.notes,
        beside=len(boards) == 1 and bool(drawn) and not boards[0].wide,
    )
    yield Section(
        "comparison",
        "Comparison",
        "Side by side on the same rows",
        "Differences with intervals from paired resamples. A difference counts where its Holm-adjusted p is small.",
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
        "price",
        "Price",
        "Agreement at the same price",
        "Each judge beside the largest ensemble of single judges that costs no more than it; then what each one takes.",
        (
            *(_table(grid) for grid in summary_tables.at_the_same_price(study) if len(study.subjects) > 1),
            *(_table(grid, folded=len(study.subjects) > 1) for grid in comparison_tables.matchings(study)),
            *(drawing for drawing in drawn if drawing not in first),
            _table(comparison_tables.costs(study)),
        ),
        study.matching.notes,
    )
    yield Section(
        "aspects",
        "Aspects",
        "Aspect by aspect",
        "Correlations over all rows, and as the mean within groups (the candidates of one source).",
        (
            *(_table(grid) for grid in leaderboard_tables.agreements(study)),
            *(_table(grid) for grid in leaderboard_tables.repeats(study)),
        ),
    )
    yield Section(
        "spread",
        "Spread",
        "How scores are spread",
        "A judge that gives everybody the same score can still be right on average: look at where its verdicts lie.",
        (
            *_drawn(study, charts.distributions),
            *(_table(grid) for grid in ranking_tables.distributions(study)),
        ),
    )
    yield Section(
        "systems",
        "Systems",
        "Which system wrote best",
        "Systems in the order of people's figures where there are some, beside each judge's.",
        (
            *(_table(grid) for grid in ranking_tables.systems(study)),
            *(_table(grid) for grid in ranking_tables.alphas(study)),
        ),
    )
    yield Section(
        "diagnostics",
        "Diagnostics",
        "What the debates did",
        "Whether talking changed verdicts, for better or worse, by whose word, and what else can bend a judge.",
        (
            *_drawn(study, charts.rounds),
            *(_table(grid) for grid in debate_tables.diagnoses(study)),
        ),
        debate_tables.notes(study),
    )
    yield Section(
        "gaps",
        "Gaps",
        "How far apart two answers end",
        "Whether advocates and more rounds drive the answers' scores apart, as the courtroom protocols are to do; "
        "a wide gap is no virtue by itself: whether it points the right way is in the comparison.",
        tuple(_table(grid) for grid in debate_tables.gaps(study) if grid.rows),
    )


def _first_of_each(study: Study, drawn: Sequence[Drawing]) -> list[Drawing]:
    """The frontier of each dataset's first subject; of a single dataset, those of its first two."""
    data = {subject.label: (subject.data, subject.digest) for subject in study.subjects}
    subjects = [frontier.subject for frontier in study.frontiers if frontier.points]
    if len({data[subject] for subject in subjects}) < 2:
        return list(drawn[:2])
    first: dict[tuple[str, str], Drawing] = {}
    for subject, drawing in zip(subjects, drawn, strict=False):
        first.setdefault(data[subject], drawing)
    return list(first.values())


def _table(grid: Grid, folded: bool = False) -> Table:
    return Table(without_idle_notes(grid), whiskers(grid), folded)


def whiskers(grid: Grid) -> Whiskers | None:
    """Drawings of the first column that has intervals, if any."""
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
    """Drawings for the page; none where there is nothing to draw with."""
    from .chart_style import themed_svg

    try:
        for picture in of(study):
            yield Drawing(themed_svg(picture.figure, picture.title, picture.description), picture.caption)
    except UsageError:
        return


def grids(study: Study, metric: str, full: bool = False) -> Iterator[Grid]:
    """The tables of a study.

    Args:
        study: what was computed.
        metric: ``spearman``, ``pearson`` or ``kendall``: what leaderboard and comparison are in.
        full: whether whole signatures stand under each table, for tables that go their own ways; else their marks.
    """
    for grid in (
        *leaderboards(study, metric),
        *agreements(study),
        *comparisons(study, metric),
        *all_pairs(study, metric),
        *gains(study, metric),
        *repeats(study),
        *matchings(study),
        costs(study),
        *distributions(study),
        *systems(study),
        *alphas(study),
        *diagnoses(study),
        *gaps(study),
    ):
        if grid.rows:
            held = without_idle_notes(grid)
            yield _with_signatures(study, held) if full else held


def _with_signatures(study: Study, grid: Grid) -> Grid:
    said = (cell for row in grid.rows for cell in row if isinstance(cell, str))
    notes = (note for note in grid.notes if not note.startswith(SIGNED))
    return replace(grid, notes=(*notes, *signatures(study, said, full=True)))


def file_name(title: str) -> str:
    """A title as a file's name.

    >>> file_name("topical-chat: Spearman's rho with people, over rows")
    'topical-chat-spearman-s-rho-with-people-over-rows'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "table"
