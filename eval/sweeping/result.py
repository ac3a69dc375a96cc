"""What a sweep came to: the evaluation of each cell, and what all of them took together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..evaluation import Evaluation, Overview
from .axes import Axis, Cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..export.grid import Grid
    from ..statistics.resampling import Resampling
    from .measuring import Measured


@dataclass(frozen=True)
class CellResult:
    """What one cell came to.

    Attributes:
        cell: which it is.
        protocol: the name of its protocol.
        evaluation: its results; a run like any other.
    """

    cell: Cell
    protocol: str
    evaluation: Evaluation

    def overviews(self) -> Iterator[Overview]:
        """What was judged and what it took, by aspect."""
        return iter(self.evaluation.figures.overviews.values())

    @property
    def judged(self) -> int:
        """Verdicts."""
        return sum(one.judged for one in self.overviews())

    @property
    def failed(self) -> int:
        """Items that have none."""
        return sum(one.failed for one in self.overviews())

    @property
    def calls(self) -> int:
        """The calls behind its verdicts, whoever made them first."""
        return sum(one.calls for one in self.overviews())

    @property
    def calls_each(self) -> float | None:
        """Calls a verdict."""
        return self._each(self.calls)

    @property
    def cost_each(self) -> float | None:
        """US dollars a verdict; ``None`` where a price is unknown."""
        costs = [one.cost_usd for one in self.overviews()]
        known = [cost for cost in costs if cost is not None]
        return self._each(sum(known)) if len(known) == len(costs) else None

    def _each(self, total: float) -> float | None:
        asked = self.judged + self.failed
        return total / asked if asked else None


@dataclass(frozen=True)
class Sweep:
    """What a sweep came to.

    Attributes:
        axes: what varied.
        cells: those that were begun, in order.
        wanted: how many cells there are to be.
        folder: where it is kept, if anywhere.
        calls_made: requests that were answered, over all its starts.
        cost_made: the same in US dollars; ``None`` where a price is unknown.
        stopped: why it ended before its work was done; ``None`` if all is done.
    """

    axes: tuple[Axis, ...]
    cells: tuple[CellResult, ...]
    wanted: int
    folder: Path | None
    calls_made: int
    cost_made: float | None
    stopped: str | None = None
    _measured: dict[Any, tuple[Measured, ...]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def calls_alone(self) -> int:
        """The calls behind all verdicts: what the cells would have taken one by one."""
        return sum(one.calls for one in self.cells)

    @property
    def failed(self) -> int:
        """Items without a verdict, in all cells."""
        return sum(one.failed for one in self.cells)

    @cached_property
    def note(self) -> str | None:
        """What must stand at the head of everything shown of it."""
        notes = (one.evaluation.manifest.get("note") for one in self.cells)
        return next(filter(None, notes), None)

    @property
    def signatures(self) -> Mapping[str, str]:
        """Of each cell, by its title."""
        return {one.cell.title: one.evaluation.manifest["signatures"][one.protocol] for one in self.cells}

    def measured(self, resampling: Resampling | None = None) -> tuple[Measured, ...]:
        """How well each cell agrees with people, and what it gains over the first cell.

        Args:
            resampling: how intervals are made; default 1000 resamples, 95 %, seed 0.
        """
        from .measuring import measure

        if resampling not in self._measured:
            self._measured[resampling] = measure(self.cells, resampling)
        return self._measured[resampling]

    def table(self) -> Grid:
        """All cells with agreement, its interval, what a verdict takes, and the gain over the first cell."""
        return cell_grid(self)

    def figures(self, along: str | None = None) -> dict[str, Figure]:
        """Agreement along one axis, a line or a row of columns for each combination of the others; by name.

        Args:
            along: the axis that figures run along; default: the first one of numbers, else the first.

        Raises:
            UsageError: no such axis; matplotlib is not installed.
        """
        from .drawing import figures

        return figures(self, along)
