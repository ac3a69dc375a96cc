"""Read the tables of the papers: what each measures, on which data, and what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from ...nodes.yaml_files import read_yaml
from ...state.checked import did_you_mean
from ...state.errors import UsageError
from ..sweeps.cells import cells
from ..sweeps.presets import ablations

Figures = dict[tuple[str, str], float | None]
"""Figures by column and metric."""

Measure = Literal["agreement", "category", "shares", "gains", "t-tests", "cost", "spread", "none"]
_FIGURES: Mapping[str, tuple[str, ...]] = {
    "gains": ("gain",),
    "t-tests": ("t", "p"),
    "cost": ("USD", "minutes"),
    "spread": ("sd", "range"),
}


@dataclass(frozen=True)
class PaperTable:
    """Describes a table of a paper; tables.yaml says what the fields mean there.

    Attributes:
        paper: the paper, and which of its tables.
        title: what it is about.
        columns: aspects, ``average`` over them, or ``preference`` of comparisons.
        printed: its figures, by row and by the model that the paper used.
        data: the name of its dataset; none where it is reckoned from another table.
        measure: what its figures are: ``agreement`` in ``metrics`` (by ``category``: each column is one), ``shares``
            of scores in percent, ``gains`` over a row in percent, ``t-tests`` against a row, ``cost`` in dollars and
            minutes, ``spread`` over repeats; or ``none``, where it can only be shown.
        metrics: of agreement, in each column.
        shares: the scores whose shares it has.
        rows: what is measured here: what a sweep's cell sets, ``metric`` or ``field``.
        plan: the ready-made plan of sweeps whose cells are its rows, instead.
        without_systems: systems whose texts it leaves out.
        gains_of: the table from whose printed figures the gains are reckoned, too.
        over: the row that gains and tests refer to.
        sample, repeats: how many items the paper judged how often, unless all of them once.
        errata: where the paper's labels or sums are wrong.
        differs: what is different here.
    """

    paper: str
    title: str
    columns: tuple[str, ...]
    printed: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    data: str = ""
    measure: Measure = "agreement"
    metrics: tuple[str, ...] = ()
    shares: tuple[int, ...] = ()
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plan: str = ""
    without_systems: tuple[str, ...] = ()
    gains_of: str = ""
    over: str = ""
    sample: int | None = None
    repeats: int = 1
    errata: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def figure_names(self) -> tuple[str, ...]:
        """What the figures of a column are, such as metrics, or scores whose shares it has."""
        return _FIGURES.get(self.measure) or self.metrics or tuple(map(str, self.shares))

    @property
    def judges(self) -> dict[str, Mapping[str, Any]]:
        """The rows for which models are asked."""
        if not self.plan:
            return {name: row for name, row in self.rows.items() if "protocol" in row}
        preset, judges = ablations()[self.plan], dict[str, Mapping[str, Any]]()
        for cell in cells(preset.axes):
            labels = (f"{axis} {value}" if value.isdigit() else value for axis, value in cell.labels.items())
            judges[", ".join(labels)] = {"protocol": preset.protocol, **cell.change}
        return judges

    def printed_figures(self, row: str, model: str) -> Figures:
        """Return the figures that the paper prints in a row for a model.

        >>> find_table("chateval-table3").printed_figures("same roles", "ChatGPT")
        {('preference', 'accuracy'): 0.538, ('preference', 'kappa'): 0.25}
        """
        numbers = str(self.printed[row][model]).split()
        places = [(column, name) for column in self.columns for name in self.figure_names]
        pairs = zip(places, numbers, strict=True)
        return {place: None if number == "-" else float(number) for place, number in pairs}


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return all tables by name."""
    tables = read_yaml(Path(__file__).with_name("tables.yaml"))
    # Checked like any input: a misspelt field is refused.
    return TypeAdapter(dict[str, PaperTable]).validate_python(tables, extra="forbid")


def find_table(name: str) -> PaperTable:
    """Return a table by its name.

    Raises:
        UsageError: there is none of this name; the nearest one is named.
    """
    if name not in paper_tables():
        known = list(paper_tables())
        raise UsageError(f"no table {name!r}; tables are {', '.join(known)}{did_you_mean(name, known)}")
    return paper_tables()[name]
