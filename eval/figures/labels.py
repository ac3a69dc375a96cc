"""Names beside points, where they cover neither each other nor a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .style import INK, MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = 9
MANY = 10
"""Points of which each is sure to get its name."""
_AROUND = (
    *((7, 5, "left", "bottom"), (-7, 5, "right", "bottom"), (7, -5, "left", "top"), (-7, -5, "right", "top")),
    *((9, 0, "left", "center"), (-9, 0, "right", "center")),
    *(
        (7, 17, "left", "bottom"),
        (-7, 17, "right", "bottom"),
        (7, -17, "left", "top"),
        (-7, -17, "right", "top"),
    ),
    *(
        (7, 30, "left", "bottom"),
        (-7, 30, "right", "bottom"),
        (7, -30, "left", "top"),
        (-7, -30, "right", "top"),
    ),
)


def place_labels(figure: Figure, axes: Axes, named: Sequence[tuple[float, float | None, str, bool]]) -> None:
    """Write names beside points.

    Each name takes the first free place around its point that is inside the axes; where there is none, the first. Of
    many points those that do not count most stay without a name where there is no room.

    Args:
        figure: that the axes belong to.
        axes: with everything else drawn, scales set.
        named: for each point, its place in data, its name, and whether it is one of those that count most.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()
    renderer = canvas.get_renderer()  # type: ignore[no-untyped-call]
    frame = axes.get_window_extent(renderer)
    points = [axes.transData.transform((x, y)) for x, y, _, _ in named if y is not None]
    taken: list[Any] = []
    # Those that count most choose first.
    for x, y, name, counts in sorted(named, key=lambda each: not each[3]):
        tried = _tries(axes, (x, y), name, counts)
        fitting = None
        for label in tried:
            box = label.get_window_extent(renderer).padded(1.5)
            free = not any(box.overlaps(other) for other in taken) and not any(
                box.contains(*at) for at in points
            )
            if (
                free
                and frame.x0 <= box.x0
                and box.x1 <= frame.x1
                and frame.y0 <= box.y0
                and box.y1 <= frame.y1
            ):
                fitting = label
                break
            label.remove()
        if fitting is None and not counts and len(named) > MANY:
            continue
        if fitting is None:
            fitting = next(_tries(axes, (x, y), name, counts))
        taken.append(fitting.get_window_extent(renderer).padded(1.5))


def _tries(axes: Axes, at: tuple[float, float | None], name: str, counts: bool) -> Iterator[Any]:
    for right, up, horizontal, vertical in _AROUND:
        yield axes.annotate(
            name,
            at,
            xytext=(right, up),
            textcoords="offset points",
            ha=horizontal,
            va=vertical,
            fontsize=_SIZE,
            color=INK if counts else MUTED,
            fontweight="bold" if counts else "normal",
        )
