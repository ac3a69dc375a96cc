"""The first screen of a result: the first thing that readers of a terminal, page or file see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .grid import Grid


@dataclass(frozen=True)
class FirstScreen:
    """The first screen of one dataset, or of an experiment.

    Attributes:
        name: the dataset, if there are several.
        headline: the answer, in at most twelve words.
        table: at most four columns, with the metric of the headline.
        evidence: the line of numbers behind the headline.
        quotable: a sentence for a paper; empty if there is nothing to report.
        warnings: at most two, the most important first.
        others: all other remarks.
    """

    name: str
    headline: str
    table: Grid
    evidence: str = ""
    quotable: str = ""
    warnings: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The headline, after the dataset if there are several."""
        return f"{self.name}: {self.headline}" if self.name else self.headline

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything below the headline, without the table."""
        first = tuple(filter(None, (self.evidence, self.quotable)))
        return (*first, *self.warnings, *self.others)

    def lines(self) -> Iterator[str]:
        """Yield the texts of the screen, without the table and the other remarks."""
        yield self.headline
        yield from filter(None, (self.evidence, self.quotable, *self.warnings))
