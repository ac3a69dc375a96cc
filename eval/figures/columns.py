"""Columns side by side with their intervals: agreement under settings that have no order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..statistics.statistic import Statistic
from .lines import Panel, each_of, legend
from .style import INK, MUTED, look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 0.8
"""Of the columns at one place together, where places are 1 apart."""

LETTERS = 36
"""So many have room below a panel, beside each other."""


def columns(panels: Sequence[Panel], labels: Sequence[str], axis: str) -> Figure:
    """Panels with columns at the same places.

    Args:
        panels: beside each other; columns of one name look the same in all of them.
        labels: of the places, in order.
        axis: what they are places on.

    Raises:
        UsageError: matplotlib is not installed.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    width = min(max(3.4, 1.2 + 0.32 * len(labels) * max(2, len(names))), 9.0)
    shared = len({panel.measure for panel in panels}) == 1
    figure, axes = new_figure(width * len(panels), 3.8, len(panels), sharey=shared)
    each = each_of(axes)
    for panel, drawn in zip(panels, each, strict=True):
        _frame(drawn, panel, labels, axis)
        if not shared or drawn is each[0]:
            drawn.set_ylabel(plain(panel.measure))
        for name, figures in panel.lines.items():
            _series(drawn, names.index(name), len(names), figures, plain(name))
    if len(names) > 1:
        legend(figure, each[0])
    return figure


def _frame(drawn: Axes, panel: Panel, labels: Sequence[str], axis: str) -> None:
    drawn.set_title(plain(panel.title))
    drawn.set_xlabel(plain(axis))
    crowded = max(map(len, labels)) * len(labels) > LETTERS
    drawn.set_xticks(
        range(len(labels)),
        [plain(label) for label in labels],
        rotation=25 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    drawn.set_xlim(-0.6, len(labels) - 0.4)
    drawn.grid(False, axis="x")
    drawn.axhline(0, color=INK, linewidth=0.8)
    if not _any(panel.lines):
        drawn.text(0.5, 0.5, "no figures", transform=drawn.transAxes, color=MUTED, ha="center", va="center")


def _any(series: Mapping[str, Sequence[Statistic | None]]) -> bool:
    return any(one is not None and one.value is not None for figures in series.values() for one in figures)


def _series(drawn: Axes, number: int, several: int, figures: Sequence[Statistic | None], name: str) -> None:
    color, _ = look(number)
    each = WIDTH / several
    left = -WIDTH / 2 + each * (number + 0.5)
    there = [(at + left, one) for at, one in enumerate(figures) if one is not None and one.value is not None]
    heights = [one.value or 0.0 for _, one in there]
    drawn.bar([at for at, _ in there], heights, width=each * 0.92, color=color, label=name)
    for at, one in there:
        if one.low is not None and one.high is not None:
            drawn.plot([at, at], [one.low, one.high], color=INK, linewidth=1.1)
