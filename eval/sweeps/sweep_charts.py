"""Draw a sweep: agreement along one axis, a line or a row of bars for each combination of the other axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...state.errors import UsageError
from ..report.series_charts import Panel, columns, lines
from ..statistics.metrics import METRICS
from ..statistics.resampling import Statistic
from .cell_metrics import (
    AVERAGE,
    PREFERENCE,
    Measured,
    MetricKey,
    agreement_on_category,
    categories_of,
    first_figure,
    leading,
    metric_keys,
    shown,
)
from .cells import Axis, CellResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(
    axes: Sequence[Axis], cells: Sequence[CellResult], measured: Sequence[Measured], along: str | None = None
) -> dict[str, Figure]:
    """Draw a sweep's figures by name: ``agreement``, and ``aspects`` of several aspects; nothing without labels.

    Args:
        axes: what varies.
        cells: every combination of it.
        measured: each cell's agreement with people, in the order of the cells.
        along: the axis that figures run along; default: the first one of numbers, else the first.

    Raises:
        UsageError: no such axis; matplotlib is not installed.
    """
    axis = _axis_along(axes, along)
    keys = metric_keys(measured)
    if not keys:
        return {}
    # At most four panels: with several aspects their averages lead, and each aspect has a figure of its own.
    drawn = {"agreement": _figure(cells, axis, measured, leading(keys)[:4])}
    # Of each aspect the leading metric, which is the first of all.
    of_aspects = [key for key in keys if key.subject != AVERAGE and key.statistic == keys[0].statistic]
    if len(of_aspects) > 1:
        drawn["aspects"] = _figure(cells, axis, measured, of_aspects)
    return drawn


def category_figure(cells: Sequence[CellResult]) -> Figure:
    """Draw accuracy by category of items: a row of bars for each cell."""
    categories = categories_of(cells)
    series = {
        ", ".join(shown(axis, label) for axis, label in cell.cell.labels.items()): [
            None if (result := agreement_on_category(cell, category)) is None else first_figure(result)
            for category in categories
        ]
        for cell in cells
    }
    return columns([Panel("", METRICS["accuracy"].title, series)], categories, "category of items")


def _axis_along(axes: Sequence[Axis], name: str | None) -> Axis:
    if name is None:
        return next((axis for axis in axes if axis.numbers and len(axis.values) > 1), axes[0])
    named = [axis for axis in axes if axis.name == name]
    if not named:
        raise UsageError(f"the sweep has no axis {name!r}; it has {', '.join(axis.name for axis in axes)}")
    return named[0]


def _figure(
    cells: Sequence[CellResult], axis: Axis, measured: Sequence[Measured], keys: Iterable[MetricKey]
) -> Figure:
    panels = [_panel(cells, axis, measured, key) for key in keys]
    numbers = axis.numbers
    # Labels have no distance from each other, so there is nothing for a line to rise or fall over.
    return columns(panels, axis.labels, axis.name) if numbers is None else lines(panels, numbers, axis.name)


def _panel(cells: Sequence[CellResult], axis: Axis, measured: Sequence[Measured], key: MetricKey) -> Panel:
    """Lay out a panel with a line for each combination of the other axes."""
    series: dict[str, dict[str, Statistic]] = {}
    for cell, metrics in zip(cells, measured, strict=True):
        labels = cell.cell.labels
        others = ", ".join(shown(name, label) for name, label in labels.items() if name != axis.name)
        series.setdefault(others, {})[labels[axis.name]] = metrics.figures.get(key, Statistic(None))
    title = "" if key.subject in (PREFERENCE, AVERAGE) else key.subject
    measure = METRICS[key.statistic].title
    return Panel(
        title,
        f"{measure}, mean over aspects" if key.subject == AVERAGE else measure,
        # A sweep that was stopped has no value yet at some labels.
        {name: [values.get(label) for label in axis.labels] for name, values in series.items()},
    )
