"""All tables of a study, in the order of reading."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ..export import Grid
from ..study import Study
from .comparing import all_pairs, comparisons, costs, matchings
from .diagnosing import diagnoses
from .gaps import gaps
from .naming import SIGNED, signatures, without_idle_notes
from .ranking import alphas, distributions, systems
from .standings import agreements, gains, leaderboards, repeats


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
