"""How often each point of a scale was given: a judge beside people (DEBATE, 2024, table 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .style import PEOPLE, look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bars_figure(
    points: Sequence[str],
    people: Sequence[float],
    judges: Mapping[str, Sequence[float]],
    title: str = "",
    numbers: Mapping[str, int] | None = None,
) -> Figure:
    """Shares of each point, a group of bars a point: people first, then the judges.

    Args:
        points: names of the scale's points, in order.
        people: share of people's labels at each point (0 to 1); empty without labels.
        judges: the same of each judge.
        title: what was judged.
        numbers: of the judges' colours, so that a judge has one colour in all figures; default: in order.

    Raises:
        ValueError: a series that has not one share a point.
        UsageError: matplotlib is not installed.
    """
    series = {**({"people": people} if len(people) else {}), **judges}
    for name, shares in series.items():
        if len(shares) != len(points):
            raise ValueError(f"{name}: {len(shares)} shares for {len(points)} points of the scale")
    figure, axes = new_figure(max(4.6, 0.32 * len(points) * max(1, len(series))), 3.4)
    numbers = numbers or {name: number for number, name in enumerate(judges)}
    width = 0.82 / max(1, len(series))
    for number, (name, shares) in enumerate(series.items()):
        left = -0.41 + width * (number + 0.5)
        axes.bar(
            [place + left for place in range(len(points))],
            [100 * share for share in shares],
            width=width * 0.92,
            color=PEOPLE if name == "people" else look(numbers[name])[0],
            label=plain(name, 30),
        )
    axes.set_xticks(range(len(points)), [plain(point, 12) for point in points])
    axes.grid(False, axis="x")
    axes.set_ylabel("% of verdicts")
    if title:
        axes.set_title(plain(title), loc="left")
    figure.legend(frameon=False, fontsize=8, ncols=min(3, len(series)), loc="outside lower center")
    return figure
