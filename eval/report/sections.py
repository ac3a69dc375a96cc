"""Put together the sections of the page and the tables of a report, in reading order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from ...nodes.common.plugins import installed_version
from ...state.errors import UsageError
from ..analysis import Study
from ..tables import Grid
from ..tables.screen import FirstScreen
from . import charts, debate_tables, study_tables
from .chart_style import themed_svg
from .charts import Picture
from .first_screen import first_screens
from .labels import config_line, interval_note, with_notes
from .page import Drawing, Page, PageOfDataset, Section, Table
from .panel_tables import panel_tables
from .ranked_dataset import is_labelled


def compose(study: Study, title: str, findings: Iterable[str] = ()) -> Page:
    """Compose the page of a study: first screens, sections, configurations.

    ``write_page`` adds the debates. With several datasets, each has its own first screen and
    sections below its name.

    Args:
        study: the results.
        title: the title of the window.
        findings: sentences on whether debates pay.
    """
    this_version = installed_version("jurygraph")
    screens = first_screens(study, findings)
    datasets = tuple(
        _of_dataset(part, name, slug, screen)
        for (part, name, slug), screen in zip(_named_parts(study), screens, strict=True)
    )
    return Page(
        title=title,
        subtitle=subtitle(study),
        datasets=datasets,
        configs=tuple(config_line(study, judge) for judge in study.judges),
        made=f"{interval_note(study.resampling)}. Made with jurygraph {this_version}.",
        version=this_version,
    )


def subtitle(study: Study) -> str:
    """Write the datasets, judges and verdicts of the report."""
    judges = len({judge.label for judge in study.judges})
    data = ", ".join(dict.fromkeys(subject.data for subject in study.subjects)) or "nothing judged"
    verdicts = sum(judge.judged for judge in study.judges)
    failed = sum(judge.failed for judge in study.judges)
    missing = f", {failed:,} failed" if failed else ""
    return (
        f"{data} · {judges} {'judge' if judges == 1 else 'judges'} · {verdicts:,} verdicts{missing}"
    )


def _of_dataset(study: Study, name: str, slug: str, screen: FirstScreen) -> PageOfDataset:
    prefix = f"data-{slug}" if name else ""
    # The notes of the comparison make the answer less certain.
    caveats = (f"Caution: {note.removesuffix('.')}." for note in study.comparison.notes)
    screen = replace(screen, others=(*screen.others, *caveats))
    sections = (section for section in _sections(study) if section.parts)
    if prefix:
        sections = (replace(section, id=f"{prefix}-{section.id}") for section in sections)
    return PageOfDataset(name, prefix, screen, tuple(sections))


@dataclass(frozen=True)
class _Layout:
    """The names and the content of a section of the page.

    Attributes:
        id, short, title, lead: see ``Section``.
        parts: tables by name (``TABLES``), summaries and charts, in reading order.
        folded: tables that a click opens.
        summed_up: tables that a click opens if a summary of several subjects replaces them.
        beside: charts side by side, or next to a single narrow table.
        labelled: whether to leave the section out if there are no labels.
    """

    id: str
    short: str
    title: str
    lead: str
    parts: tuple[str, ...]
    folded: tuple[str, ...] = ()
    summed_up: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    labelled: bool = False


_LAYOUTS = (
    _Layout(
        id="verdict-summary",
        short="Summary",
        title="Winners, means and spread",
        lead="What each judge said. There are no human labels, so nothing here says how good a judge is.",
        parts=("verdicts without labels",),
    ),
    _Layout(
        id="leaderboard",
        short="Leaderboard",
        title="Agreement with the labels",
        lead="Best first. Overlapping intervals do not show whether two judges differ; the comparison tests it.",
        parts=("forest", "charts of rounds", "leaderboard"),
        beside=("forest", "charts of rounds"),
        labelled=True,
    ),
    _Layout(
        id="comparison",
        short="Comparison",
        title="Differences between judges on the same rows",
        lead="Intervals come from paired resamples. A difference is significant if its Holm-adjusted p is below 0.05.",
        parts=("against base", "comparison", "pairs", "gains", "pooled-gains"),
        folded=("pairs", "gains"),
        summed_up=("comparison",),
        labelled=True,
    ),
    _Layout(
        id="cost",
        short="Cost",
        title="Cost, and the equal-cost baseline",
        lead="Agreement over cost; each judge against the largest ensemble of single judges that costs no more.",
        parts=("frontiers", "against ensembles", "equal-cost", "cost"),
        summed_up=("equal-cost",),
        beside=("frontiers",),
    ),
    _Layout(
        id="panels",
        short="Panels",
        title="What the judges are worth as a panel",
        lead=(
            "Judges that fail on the same items add little to each other. All figures are for the rows that "
            "all of them judged."
        ),
        parts=("panels",),
        labelled=True,
    ),
    _Layout(
        id="aspects",
        short="Aspects",
        title="All correlations by aspect",
        lead="Over all rows, and as means within groups (the items of one source).",
        parts=("agreement", "repeats"),
        labelled=True,
    ),
    _Layout(
        id="annotators",
        short="Annotators",
        title="Annotators among themselves, and judges in their place",
        lead="How well annotators agree with each other limits the agreement that a judge can reach on their labels.",
        parts=("annotators",),
    ),
    _Layout(
        id="distribution",
        short="Distribution",
        title="Score distribution",
        lead="How often each score was given or each answer won. A judge can be right on average and use few scores.",
        parts=("charts of scores", "distribution"),
    ),
    _Layout(
        id="systems",
        short="Systems",
        title="Ranking of systems",
        lead="Systems in the order of their labels, if there are any, with each judge's values.",
        parts=("systems", "alpha"),
    ),
    _Layout(
        id="diagnostics",
        short="Diagnostics",
        title="Debate diagnostics",
        lead="How verdicts changed in the debate, and after which agent's turn; then position, length and replies.",
        parts=("diagnostics", "verdicts", "audit"),
        folded=("verdicts",),
    ),
    _Layout(
        id="score-gap",
        short="Score gap",
        title="Score gap between two answers",
        lead=(
            "Whether advocates and more rounds widen the gap between the answers' scores, as the courtroom papers "
            "claim. A wide gap can still favour the wrong answer: the comparison shows how often the winner is right."
        ),
        parts=("score-gap",),
    ),
)


def _sections(study: Study) -> Iterator[Section]:
    several = len(study.subjects) > 1
    labelled = is_labelled(study)
    others: dict[str, Callable[[], Iterable[Table | Drawing]]] = {
        "against base": lambda: map(Table, study_tables.against_base(study) if several else ()),
        "against ensembles": lambda: map(Table, study_tables.equal_cost(study) if several else ()),
        "forest": lambda: _drawn(study, charts.forests),
        "frontiers": lambda: _drawn(study, charts.frontiers) if labelled else (),
        "charts of scores": lambda: _drawn(study, charts.distributions),
        "charts of rounds": lambda: _drawn(study, charts.rounds) if labelled else (),
        "verdicts without labels": lambda: (
            () if labelled else map(Table, study_tables.verdicts(study))
        ),
    }
    notes = {
        "leaderboard": study.leaderboard.notes,
        "comparison": study.comparison.notes,
        "cost": study.matching.notes if labelled else (),
        "diagnostics": debate_tables.notes(study) if labelled else (),
    }
    for layout in _LAYOUTS:
        if layout.labelled and not labelled:
            continue
        parts: list[Table | Drawing] = []
        for name in layout.parts:
            folded = name in layout.folded or (several and name in layout.summed_up)
            made = TABLES[name](study) if name in TABLES else ()
            parts += [Table(with_notes(study, grid), folded) for grid in made if grid.has_values]
            parts += others[name]() if name in others else ()
        yield Section(
            id=layout.id,
            short=layout.short,
            title=layout.title,
            lead=layout.lead,
            parts=tuple(parts),
            notes=notes.get(layout.id, ()),
            beside=bool(layout.beside),
        )


def _drawn(study: Study, of: Callable[[Study], Iterator[Picture]]) -> Iterator[Drawing]:
    """Draw charts as SVG for the page; none if matplotlib is not installed."""
    try:
        for picture in of(study):
            yield Drawing(
                themed_svg(picture.figure, picture.title, picture.description), picture.caption
            )
    except UsageError:
        return


TABLES: Mapping[str, Callable[[Study], Iterable[Grid]]] = {
    "leaderboard": study_tables.leaderboards,
    "agreement": study_tables.agreements,
    "comparison": study_tables.comparisons,
    "pairs": study_tables.all_pairs,
    "gains": study_tables.gains,
    "pooled-gains": study_tables.pooled,
    "repeats": study_tables.repeats,
    "equal-cost": study_tables.matchings,
    "cost": study_tables.costs,
    "panels": lambda study: panel_tables(study.panels),
    "verdicts": study_tables.verdicts,
    "distribution": study_tables.distributions,
    "systems": study_tables.systems,
    "alpha": study_tables.alphas,
    "annotators": lambda study: study_tables.annotators(study.annotators),
    "diagnostics": debate_tables.diagnoses,
    "audit": debate_tables.audits,
    "score-gap": debate_tables.gaps,
}
"""The tables of a report by name, in reading order.

A name may have a table for each aspect.
"""


def names_of_tables(given: str) -> tuple[str, ...]:
    """Read names of tables, separated by commas.

    Raises:
        UsageError: a name is not the name of a table.

    >>> names_of_tables("leaderboard, cost")
    ('leaderboard', 'cost')
    """
    names = tuple(dict.fromkeys(name for part in given.split(",") if (name := part.strip())))
    if not names or (unknown := [name for name in names if name not in TABLES]):
        problem = f"there is no table {', '.join(unknown)}" if names else "no table given"
        raise UsageError(f"--table {given!r}: {problem}; tables are {', '.join(TABLES)}")
    return names


class TablesOfDataset(NamedTuple):
    """The tables about one dataset.

    Attributes:
        name: the dataset's name; empty if the study has only one.
        study: the study of this dataset.
        grids: its tables, in reading order.
    """

    name: str
    study: Study
    grids: tuple[Grid, ...]


def tables_by_dataset(study: Study, chosen: Sequence[str] = ()) -> list[TablesOfDataset]:
    """Make the tables of each dataset, without empty tables and the notes of ``with_notes``.

    Args:
        study: the results to tabulate.
        chosen: names of tables (``TABLES``); none for all.

    Returns:
        the tables of each dataset, with labels that are unique in the report.
    """
    datasets: list[TablesOfDataset] = []
    for part, data, slug in _named_parts(study):
        tables: list[Grid] = []
        for name in chosen or TABLES:
            made = [grid for grid in TABLES[name](part) if grid.rows]
            labels = _labels(name, made, data, slug)
            named = (_with_dataset(grid, data) for grid in made)
            tables += [
                replace(grid, label=label) for grid, label in zip(named, labels, strict=True)
            ]
        datasets.append(TablesOfDataset(data, part, tuple(tables)))
    return datasets


def grids(study: Study, chosen: Sequence[str] = ()) -> Iterator[Grid]:
    """Make the tables of all datasets, as ``tables_by_dataset``."""
    return chain.from_iterable(of.grids for of in tables_by_dataset(study, chosen))


def summaries(study: Study) -> list[TablesOfDataset]:
    """Make the summary tables of each dataset."""
    return [
        TablesOfDataset(data, part, tuple(study_tables.summary(part)))
        for part, data, _ in _named_parts(study)
    ]


def _named_parts(study: Study) -> list[tuple[Study, str, str]]:
    """Return the study of each dataset, with its name and a unique text for addresses.

    Both texts are empty if there is one dataset.
    """
    parts = study.by_dataset
    if len(parts) == 1:
        return [(study, "", "")]
    names = [part.judges[0].data for part in parts]
    slugs = _unique([file_name(name) for name in names])
    return list(zip(parts, names, slugs, strict=True))


def _with_dataset(grid: Grid, data: str) -> Grid:
    """Add the dataset to the title if there are several, because a table may be used separately."""
    named = not data or grid.title.startswith(f"{data}: ")
    return grid if named else replace(grid, title=f"{data}: {grid.title}")


def _labels(name: str, tables: Sequence[Grid], data: str, slug: str) -> list[str]:
    """Return labels for tables of one name.

    A label has the name, and the dataset and subject if there are several.
    """
    stem = f"{name}-{slug}" if slug else name
    if len(tables) == 1:
        return [stem]
    titles = [grid.title.removeprefix(f"{data}: ") if data else grid.title for grid in tables]
    subjects = [title.partition(": ")[0] for title in titles]
    texts = subjects if len(set(subjects)) == len(tables) else titles
    labels = [f"{stem}-{file_name(text)}" for text in texts]
    # Titles in other scripts may give the same file name.
    return (
        labels
        if len(set(labels)) == len(tables)
        else [f"{stem}-{n}" for n in range(1, len(tables) + 1)]
    )


def _unique(slugs: Sequence[str]) -> list[str]:
    """Number equal texts for addresses."""
    if len(set(slugs)) == len(slugs):
        return list(slugs)
    return [f"{slug}-{number}" for number, slug in enumerate(slugs, start=1)]


def file_name(title: str) -> str:
    """Convert a table's title to a file name.

    >>> file_name("topical-chat: Spearman's rho with human ratings, over rows")
    'topical-chat-spearman-s-rho-with-human-ratings-over-rows'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "table"
