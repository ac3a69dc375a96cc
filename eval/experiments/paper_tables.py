"""The papers' tables and their printed numbers, read from paper_tables.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from ...nodes.common.yaml_files import line_in_yaml, read_yaml
from ...state.checked import listed
from ...state.data_files import check_data
from ...state.errors import UsageError
from ..statistics.metrics import METRICS
from .cells import cells
from .presets import ablations

Figures = dict[tuple[str, str], float | None]
"""Values by column and metric."""
Measure = Literal["agreement", "category", "shares", "gains", "t-tests", "cost", "spread", "none"]


_OTHER_FIGURES = ("score", "sd", "range", "USD", "minutes", "gain", "t", "p")


def _is_known(figure: str) -> str:
    if figure not in METRICS and figure not in _OTHER_FIGURES:
        known = listed([*METRICS, *_OTHER_FIGURES], figure)
        raise ValueError(f"there is no figure {figure!r}; figures are {known}")
    return figure


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper, as described in paper_tables.yaml.

    Attributes:
        name: its name in paper_tables.yaml.
        paper: the paper, and the number of the table in it.
        title: its subject.
        columns: aspects, ``average`` over them, or ``preference`` for comparisons.
        printed: its numbers, by row and by the paper's model.
        printed_sd: the standard deviations of these numbers, if printed.
        data: the name of its dataset; empty for a table that is only shown.
        measure: the type of its numbers: ``agreement`` in ``metrics`` (with ``category``, each
            column is one), ``shares`` of scores in percent, ``gains`` over a row in percent,
            ``t-tests`` against a row, ``cost`` in dollars and minutes, ``spread`` over repeats;
            ``none`` for a table that is only shown.
        metrics: the metrics of agreement, or other values by name, in each column.
        shares: the scores for which it has shares.
        rows: the rows that can be measured: a sweep cell's settings, ``metric`` or ``field``.
        plan: the ready-made sweep whose cells are its rows, instead of ``rows``.
        without_systems: systems whose texts are left out.
        gains_of: the table whose printed numbers give the gains.
        over: the baseline row of gains and tests.
        sample, repeats: the number of judged items and of repeats, if not all items once.
        questions: the number of questions in the paper's costs.
        differs: differences between the paper's setup and ours.
    """

    name: str
    paper: str
    title: str
    columns: tuple[str, ...]
    printed: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    printed_sd: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    data: str = ""
    measure: Measure = "agreement"
    metrics: tuple[Annotated[str, AfterValidator(_is_known)], ...] = ()
    shares: tuple[int, ...] = ()
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plan: str = ""
    without_systems: tuple[str, ...] = ()
    gains_of: str = ""
    over: str = ""
    sample: int | None = None
    repeats: int = 1
    questions: int = 1
    differs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for printed in (self.printed, self.printed_sd):
            for row, by_model in printed.items():
                for model, figures in by_model.items():
                    try:
                        self._figures(figures)
                    except ValueError:
                        places = len(self.places)
                        raise ValueError(
                            f"row {row!r}, model {model!r}: must be {places} numbers or dashes, got {figures!r}"
                        ) from None

    @property
    def places(self) -> list[tuple[str, str]]:
        """The column and name of each value in a row; the name is a metric or a score."""
        return [(column, name) for column in self.columns for name in self.names]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the values in each column."""
        return self.metrics or tuple(map(str, self.shares))

    @property
    def judges(self) -> dict[str, Mapping[str, Any]]:
        """The rows that need a model."""
        if not self.plan:
            return {name: row for name, row in self.rows.items() if "protocol" in row}
        preset = ablations()[self.plan]
        judges = dict[str, Mapping[str, Any]]()
        for cell in cells(preset.axes):
            labels = (
                f"{axis} {value}" if value.isdigit() else value
                for axis, value in cell.labels.items()
            )
            judges[", ".join(labels)] = {"protocol": preset.protocol, **cell.change}
        return judges

    def printed_figures(self, row: str, model: str) -> Figures:
        """Return the printed numbers of a row for a model.

        >>> find_table("chateval-table3").printed_figures("same roles", "ChatGPT")
        {('preference', 'accuracy'): 0.538, ('preference', 'kappa'): 0.25}
        """
        return self._figures(self.printed[row][model])

    def printed_deviations(self, row: str, model: str) -> Figures:
        """Return the printed standard deviations of a row for a model; empty if there are none.

        >>> find_table("chateval-table5").printed_deviations("single agent", "Vicuna-7B-v1.5")
        {('preference', 'accuracy'): 0.015, ('preference', 'kappa'): 0.01}
        """
        printed = self.printed_sd.get(row, {})
        return self._figures(printed[model]) if model in printed else {}

    def _figures(self, printed: str | float) -> Figures:
        # A dash in the paper means that there is no number.
        pairs = zip(self.places, str(printed).split(), strict=True)
        return {place: None if number == "-" else float(number) for place, number in pairs}


@cache
def paper_tables() -> Mapping[str, PaperTable]:
    """Return all tables by name."""
    path = Path(__file__).with_name("paper_tables.yaml")
    named = {name: {"name": name, **fields} for name, fields in read_yaml(path).items()}
    return check_data(
        path, named, dict[str, PaperTable], lambda place, _: line_in_yaml(path, place)
    )


def find_table(name: str) -> PaperTable:
    """Return a table by name.

    Raises:
        UsageError: an unknown name; suggests the closest one.
    """
    if name not in paper_tables():
        raise UsageError(f"no table {name!r}; tables are {listed(paper_tables(), name)}")
    return paper_tables()[name]
