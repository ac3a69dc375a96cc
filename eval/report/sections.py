"""Put together the sections of the page and the tables of a report, in the order of reading."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import yaml

from ...nodes.plugins import installed_version
from ...state.errors import UsageError
from ..analysis import Study
from ..tables import Grid
from . import charts, debate_tables, headline, study_tables
from .chart_style import themed_svg
from .charts import Picture
from .labels import config_line, interval_note, with_notes
from .page import Drawing, Page, Section, Table, source_of


def compose(study: Study, title: str) -> Page:
    """Compose the page of a study: headline, sections, configurations; the debates are added when it is written."""
    this_version = installed_version("jurygraph")
    # The notes of the comparison make the answer less certain.
    caveats = (f"Caution: {note.removesuffix('.')}." for note in study.comparison.notes)
    return Page(
        title=title,
        subtitle=headline.subtitle(study),
        headline=headline.headline(study),
        answers=(*headline.answers(study), *caveats),
        disclosures=study.notes,
        sections=tuple(section for section in _sections(study) if section.parts),
        configs=tuple(config_line(study, judge) for judge in study.judges),
        made=f"{interval_note(study.resampling)}. Made with jurygraph {this_version}.",
        version=this_version,
    )


def _sections(study: Study) -> Iterator[Section]:
    several = len(study.subjects) > 1
    frontiers = list(_drawn(study, charts.frontiers))  # drawn once, and divided between two sections
    first = _first_of_each(study, frontiers)
    others: dict[str, Iterable[Table | Drawing]] = {
        "against base": map(Table, study_tables.against_base(study) if several else ()),
        "against ensembles": map(Table, study_tables.equal_cost(study) if several else ()),
        "first frontiers": first,
        "other frontiers": (drawing for drawing in frontiers if drawing not in first),
        "charts of scores": _drawn(study, charts.distributions),
        "charts of rounds": _drawn(study, charts.rounds),
    }
    notes = {
        "leaderboard": study.leaderboard.notes,
        "comparison": study.comparison.notes,
        "cost": study.matching.notes,
        "diagnostics": debate_tables.notes(study),
    }
    for section in yaml.safe_load(source_of("sections.yaml")):
        parts: list[Table | Drawing] = []
        for name in section["parts"]:
            folded = name in section.get("folded", ()) or (several and name in section.get("summed_up", ()))
            grids = TABLES[name](study) if name in TABLES else ()
            parts += [Table(with_notes(study, grid), folded) for grid in grids if grid.rows]
            parts += others.get(name, ())
        boards = [part for part in parts if isinstance(part, Table)]
        beside = "beside" in section and len(boards) == 1 < len(parts) and not boards[0].wide
        texts = {name: section[name] for name in ("id", "short", "title", "lead")}
        yield Section(**texts, parts=tuple(parts), notes=notes.get(section["id"], ()), beside=beside)


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


def _drawn(study: Study, of: Callable[[Study], Iterator[Picture]]) -> Iterator[Drawing]:
    """Draw charts as SVG for the page; none if matplotlib is not installed."""
    try:
        for picture in of(study):
            yield Drawing(themed_svg(picture.figure, picture.title, picture.description), picture.caption)
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
    "distribution": study_tables.distributions,
    "systems": study_tables.systems,
    "alpha": study_tables.alphas,
    "annotators": lambda study: study_tables.annotators(study.annotators),
    "diagnostics": debate_tables.diagnoses,
    "audit": debate_tables.audits,
    "score-gap": debate_tables.gaps,
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
        problem = f"there is no table {', '.join(unknown)}" if names else "no table given"
        raise UsageError(f"--table {given!r}: {problem}; tables are {', '.join(TABLES)}")
    return names


def grids(study: Study, chosen: Sequence[str] = ()) -> Iterator[Grid]:
    """Make the tables of a study, in the order of reading, without the notes of ``with_notes``; no empty ones.

    Args:
        study: the results to tabulate.
        chosen: names of tables (``TABLES``); none for all.
    """
    for name in chosen or TABLES:
        tables = [grid for grid in TABLES[name](study) if grid.rows]
        for label, grid in zip(_labels(name, tables), tables, strict=True):
            yield replace(grid, label=label)


def _labels(name: str, tables: Sequence[Grid]) -> list[str]:
    """Return the labels of the tables of one name: the name, with what each is about where there are several."""
    if len(tables) == 1:
        return [name]
    subjects = [grid.title.partition(": ")[0] for grid in tables]
    texts = subjects if len(set(subjects)) == len(tables) else [grid.title for grid in tables]
    labels = [f"{name}-{file_name(text)}" for text in texts]
    # Titles in other scripts may come to the same file name.
    return labels if len(set(labels)) == len(tables) else [f"{name}-{n}" for n in range(1, len(tables) + 1)]


def file_name(title: str) -> str:
    """Turn a table's title into a file name.

    >>> file_name("topical-chat: Spearman's rho with human ratings, over rows")
    'topical-chat-spearman-s-rho-with-human-ratings-over-rows'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "table"
