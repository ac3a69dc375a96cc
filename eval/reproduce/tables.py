"""Read the tables of the papers: what each measures, on which data, and what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from ...state.checked import did_you_mean
from ...state.errors import UsageError

Figures = dict[tuple[str, str], float | None]
"""Figures by column and metric."""


@dataclass(frozen=True)
class PaperTable:
    """Describes a table of a paper; tables.yaml says what the fields mean there.

    Attributes:
        paper: the paper, and which of its tables.
        title: what it is about.
        columns: aspects, ``average`` over them, or ``preference`` of comparisons.
        printed: its figures, by row and by the model that the paper used.
        data: the name of its dataset; none where it is reckoned from another table.
        metrics: what its figures are, in each column.
        shares: scores whose shares in percent it has instead.
        rows: what is measured here: what a sweep's cell sets, ``metric`` or ``field``.
        without_systems: systems whose texts it leaves out.
        gains_of, over: the table whose gains over a row it has.
        errata: where the paper's labels or sums are wrong.
        differs: what is different here.
    """

    paper: str
    title: str
    columns: tuple[str, ...]
    printed: Mapping[str, Mapping[str, str | float]]
    data: str = ""
    metrics: tuple[str, ...] = ()
    shares: tuple[int, ...] = ()
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    without_systems: tuple[str, ...] = ()
    gains_of: str = ""
    over: str = ""
    errata: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def figure_names(self) -> tuple[str, ...]:
        """What the figures of a column are: metrics, scores, or the gain."""
        return self.metrics or tuple(map(str, self.shares)) or ("gain",)

    @property
    def judges(self) -> dict[str, Mapping[str, Any]]:
        """The rows for which models are asked."""
        return {name: row for name, row in self.rows.items() if "protocol" in row}

    def printed_figures(self, row: str, model: str) -> Figures:
        """Return the figures that the paper prints in a row for a model.

        >>> find_table("chateval-table3").printed_figures("same roles", "ChatGPT")
        {('preference', 'accuracy'): 0.538, ('preference', 'kappa'): 0.25}
        """
        numbers = str(self.printed[row][model]).split()
        places = [(column, name) for column in self.columns for name in self.figure_names]
        return {
            place: None if number == "-" else float(number)
            for place, number in zip(places, numbers, strict=True)
        }


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return all tables by name."""
    text = Path(__file__).with_name("tables.yaml").read_text(encoding="utf-8")
    # Checked like any input: a misspelt field is refused.
    return TypeAdapter(dict[str, PaperTable]).validate_python(yaml.safe_load(text), extra="forbid")


def find_table(name: str) -> PaperTable:
    """Return a table by its name.

    Raises:
        UsageError: there is none of this name; the nearest one is named.
    """
    if name not in paper_tables():
        known = list(paper_tables())
        raise UsageError(f"no table {name!r}; there are {', '.join(known)}{did_you_mean(name, known)}")
    return paper_tables()[name]
