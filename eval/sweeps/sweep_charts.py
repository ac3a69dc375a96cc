"""A sweep as figures: agreement along one axis, a line or a row of bars for each combination of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...state.errors import UsageError
from ..report.series_charts import Panel, columns, lines
from ..statistics.resampling import Resampling, Statistic
from .cell_metrics import (
    AVERAGE,
    PREFERENCE,
    Measured,
    MetricKey,
    agreement_of,
    all_rows,
    categories_of,
    figures_of,
    leading,
    metric_keys,
    shown,
)
from .cells import Axis, CellResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MEASURES = {
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "accuracy": "accuracy",
    "kappa": "Cohen's kappa",
}
FIRST = "spearman"
"""The statistic that is drawn for every aspect."""


def figures(
    axes: Sequence[Axis], cells: Sequence[CellResult], measured: Sequence[Measured], along: str | None = None
) -> dict[str, Figure]:
    """The figures of a sweep by name: ``agreement``, and ``aspects`` where there are several; none without labels.

    Args:
        axes: what varies.
        cells: every combination of it.
        measured: each cell beside people, in the order of the cells.
        along: the axis that figures run along; default: the first one of numbers, else the first.

    Raises:
        UsageError: no such axis; matplotlib is not installed.
    """
    axis = _along(axes, along)
    places = metric_keys(measured)
    if not places:
        return {}
    found = {"agreement": _figure(cells, axis, measured, leading(places)[:4])}
    several = [place for place in places if place.subject != AVERAGE and place.statistic == FIRST]
    if len(several) > 1:
        found["aspects"] = _figure(cells, axis, measured, several)
    return found


def category_figure(cells: Sequence[CellResult]) -> Figure:
    """Accuracy by category of items: a row of bars for each cell."""
    categories = categories_of(cells)
    series = {
        ", ".join(shown(axis, label) for axis, label in one.cell.labels.items()): [
            _of_category(one, category) for category in categories
        ]
        for one in cells
    }
    return columns([Panel("", MEASURES["accuracy"], series)], categories, "category of items")


def _of_category(one: CellResult, category: str) -> Statistic | None:
    found = agreement_of(all_rows(one, category), Resampling(), one.evaluation.rule)
    return None if found is None else next(iter(figures_of(found, within=False).values()))


def _along(axes: Sequence[Axis], name: str | None) -> Axis:
    if name is None:
        return next((axis for axis in axes if axis.numbers and len(axis.values) > 1), axes[0])
    found = [axis for axis in axes if axis.name == name]
    if not found:
        raise UsageError(f"the sweep has no axis {name!r}; it has {', '.join(axis.name for axis in axes)}")
    return found[0]


def _figure(
    cells: Sequence[CellResult], axis: Axis, measured: Sequence[Measured], places: Iterable[MetricKey]
) -> Figure:
    panels = [_panel(cells, axis, measured, place) for place in places]
    numbers = axis.numbers
    return columns(panels, axis.labels, axis.name) if numbers is None else lines(panels, numbers, axis.name)


def _panel(cells: Sequence[CellResult], axis: Axis, measured: Sequence[Measured], place: MetricKey) -> Panel:
    """A line for each combination of the other axes."""
    series: dict[str, dict[str, Statistic]] = {}
    for one, found in zip(cells, measured, strict=True):
        others = ", ".join(shown(name, label) for name, label in one.cell.labels.items() if name != axis.name)
        series.setdefault(others, {})[one.cell.labels[axis.name]] = found.figures.get(place, Statistic(None))
    title = "" if place.subject in (PREFERENCE, AVERAGE) else place.subject
    measure = MEASURES[place.statistic]
    return Panel(
        title,
        f"{measure}, mean over aspects" if place.subject == AVERAGE else measure,
        {name: [values.get(label) for label in axis.labels] for name, values in series.items()},
    )
