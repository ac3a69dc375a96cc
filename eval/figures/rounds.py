"""Agreement with people had every debate ended after each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .frontier import AXES
from .style import look, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..study.diagnostics import Round


def rounds_figure(debates: Mapping[str, Sequence[Round]], measure: str, title: str = "") -> Figure:
    """A line a judge, with its intervals; rounds are counted from the first verdict, which is 0.

    Args:
        debates: by the judge's name, its rounds in order.
        measure: what agreement is measured in.
        title: what was judged.

    Raises:
        UsageError: matplotlib is not installed.
    """
    figure, axes = new_figure(5.6, 3.4)
    aside = 0.035
    for number, (name, rounds) in enumerate(debates.items()):
        color, mark = look(number)
        shift = aside * (number - (len(debates) - 1) / 2)
        held = [(one.round + shift, one.agreement) for one in rounds if one.agreement.value is not None]
        axes.plot(
            [place for place, _ in held],
            [found.value for _, found in held],
            color=color,
            marker=mark,
            markersize=5.5,
            linewidth=1.6,
            label=plain(name, 30),
        )
        for place, found in held:
            if found.low is not None and found.high is not None:
                axes.vlines(place, found.low, found.high, color=color, linewidth=1.1, alpha=0.5)
    last = max((one.round for rounds in debates.values() for one in rounds), default=0)
    axes.set_xticks(range(last + 1))
    axes.set_xlabel("rounds of debate (0: the first verdict)")
    axes.set_ylabel(AXES.get(measure, measure))
    if title:
        axes.set_title(plain(title), loc="left")
    if len(debates) > 1:
        axes.legend(frameon=False, fontsize=9)
    return figure
