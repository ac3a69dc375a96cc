"""Draw panels side by side with lines or columns, and intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..statistics.resampling import Statistic
from .chart_style import INK, MUTED, PEOPLE, look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES_A_LETTER, LETTERS_A_MARK = 0.08, 6
"""The width of a letter in a legend in inches, and that of the marker in letters."""
WIDE = 20
"""The ratio of the largest to the smallest value from which on an axis is logarithmic."""
GROUP = 0.82
"""The width of all columns at one label together; labels are 1 apart."""
LETTERS = 36
"""How many letters fit below a panel before its labels are turned."""


@dataclass(frozen=True)
class Panel:
    """Describes one panel of a chart.

    Attributes:
        title: the text above it.
        measure: the label of the vertical axis.
        lines: a statistic for each value on the horizontal axis, or ``None`` if there is none, by the line's name.
    """

    title: str
    measure: str
    lines: Mapping[str, Sequence[Statistic | None]]


Numbers = Mapping[str, int] | None
"""The number of each name's colour and mark (``look``), by default the order; others are people's."""


def lines(panels: Sequence[Panel], places: Sequence[float], axis: str, numbers: Numbers = None) -> Figure:
    """Draw panels side by side with lines over the same values of a horizontal axis.

    Args:
        panels: the panels; lines of one name look the same in all of them.
        places: the values on the horizontal axis, in any order.
        axis: the label of the horizontal axis.
        numbers: which colours and marks the names have.

    Raises:
        UsageError: matplotlib is not installed.
    """
    names, ticks = _names(panels), sorted(set(places))
    by_factors = ticks[0] > 0 and ticks[-1] >= WIDE * ticks[0]
    narrowest = min((after - before for before, after in pairwise(ticks)), default=1.0)
    # Lines are shifted a little, so that their intervals stand side by side; on a logarithmic axis a shift must stay
    # small beside the smallest value, which would else fall below zero.
    step = min(0.05, 0.3 / len(names)) * (min(narrowest, ticks[0]) if by_factors else narrowest)

    def draw(axes: Axes, panel: Panel) -> None:
        if by_factors:
            axes.set_xscale("log")
        axes.set_xticks(ticks, [f"{place:g}" for place in ticks])
        axes.set_xticks([], minor=True)  # a logarithmic axis has some of its own
        for name, figures in panel.lines.items():
            aside = (names.index(name) - (len(names) - 1) / 2) * step
            # The values come in any order, but a line through them has to go from left to right.
            order = sorted(zip(places, figures, strict=True), key=lambda point: point[0])
            color, mark = _look(name, names, numbers)
            xs, ys = _values_and_intervals(axes, [(at + aside, known) for at, known in order], color)
            axes.plot(xs, ys, color=color, marker=mark, label=plain(name))

    shared = len({panel.measure for panel in panels}) == 1
    return _drawn(panels, axis, max(4.6, (3.0 if shared else 3.6) * len(panels)), draw)


def columns(panels: Sequence[Panel], labels: Sequence[str], axis: str, numbers: Numbers = None) -> Figure:
    """Draw panels side by side with columns at the same labels, given in order; else as ``lines``."""
    names = _names(panels)
    crowded = max(map(len, labels)) * len(labels) > LETTERS
    width = GROUP / len(names)

    def draw(axes: Axes, panel: Panel) -> None:
        turned: Any = {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axes.set_xticks(range(len(labels)), [plain(label) for label in labels], **turned)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.grid(False, axis="x")
        axes.axhline(0, color=INK, linewidth=0.8)
        for name, figures in panel.lines.items():
            left = width * (names.index(name) + 0.5) - GROUP / 2
            points = [(at + left, known) for at, known in enumerate(figures)]
            xs, ys = _values_and_intervals(axes, points, INK)
            axes.bar(xs, ys, width=width * 0.92, color=_look(name, names, numbers)[0], label=plain(name))

    each = min(max(3.4, 1.2 + 0.32 * len(labels) * max(2, len(names))), 9.0)
    return _drawn(panels, axis, each * len(panels), draw)


def _names(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def _look(name: str, names: Sequence[str], numbers: Numbers) -> tuple[str, str]:
    number = names.index(name) if numbers is None else numbers.get(name)
    return (PEOPLE, "o") if number is None else look(number)


def _values_and_intervals(
    axes: Axes, points: Sequence[tuple[float, Statistic | None]], color: str
) -> tuple[list[float], list[float]]:
    """Draw the intervals of points; return the places and values of those that have one."""
    values = [(at, known.value) for at, known in points if known and known.value is not None]
    for at, known in points:
        if known and known.low is not None and known.high is not None:
            axes.vlines(at, known.low, known.high, color=color, alpha=0.75, linewidth=1.1, zorder=3)
    return [at for at, _ in values], [value for _, value in values]


def _drawn(panels: Sequence[Panel], axis: str, width: float, draw: Callable[[Axes, Panel], None]) -> Figure:
    shared = len({panel.measure for panel in panels}) == 1
    figure, all_axes = new_figure(width, 3.7, len(panels), sharey=shared)
    for number, (panel, axes) in enumerate(zip(panels, all_axes, strict=True)):
        axes.set_title(plain(panel.title), loc="left")
        axes.set_xlabel(plain(axis))
        if number == 0 or not shared:
            axes.set_ylabel(plain(panel.measure))
        draw(axes, panel)
        if not any(known and known.value is not None for line in panel.lines.values() for known in line):
            axes.text(0.5, 0.5, "no values", transform=axes.transAxes, color=MUTED, ha="center", va="center")
    handles, names = all_axes[0].get_legend_handles_labels()
    if names:
        most = int(figure.get_figwidth() / (INCHES_A_LETTER * (max(map(len, names)) + LETTERS_A_MARK)))
        fitting = max(1, min(len(names), most))
        figure.legend(handles, names, loc="outside lower center", ncols=fitting, frameon=False)
    return figure
