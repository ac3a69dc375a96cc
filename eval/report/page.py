"""Write the HTML page of a report: one file with tables, charts and debates for offline use."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from ..journal.private_files import whole_file
from ..statistics.resampling import Statistic
from ..tables.formats import width_of
from ..tables.grid import CellValue, Grid, printable
from ..tables.screen import FirstScreen
from .chart_style import theme
from .debates import Debates, for_script

_SCRIPTS = ("carried.js", "words.js", "debate.js", "list.js", "main.js")


class Drawing(NamedTuple):
    """A chart as SVG in the page's colours, with its caption."""

    svg: str
    caption: str


class Whiskers(NamedTuple):
    """The position of each row's interval in the picture of a column.

    Attributes:
        place: the index of the column.
        on_scale: for each row the position of zero, then of the value and of both ends; only zero
            if there is no interval.
    """

    place: int
    on_scale: list[list[float]]


def _interval(cell: CellValue) -> tuple[float, ...]:
    """Return a value with the ends of its interval; nothing without an interval."""
    if (
        not isinstance(cell, Statistic)
        or cell.value is None
        or cell.low is None
        or cell.high is None
    ):
        return ()
    return cell.value, cell.low, cell.high


# The characters of a table that fit into a column of the page and of a phone, and the rows that are
# shown without a click.
_NARROW = 68
_PHONE = 40
_MANY_ROWS = 20


@dataclass(frozen=True)
class Table:
    """A table on the page, with drawn intervals, folded or not."""

    grid: Grid
    folded: bool = False

    @cached_property
    def whiskers(self) -> Whiskers | None:
        """The intervals of the first column with any, on one scale; ``None`` if there are none."""
        for place, column in enumerate(self.grid.columns):
            intervals = [_interval(row[place]) for row in self.grid.rows]
            if not column.interval or not any(intervals):
                continue
            # Zero is always on the scale, because it is drawn as a line. A scale from 0 to 0 must
            # not divide by 0.
            ends = [0.0, *chain.from_iterable(intervals)]
            low = min(ends)
            width = (max(ends) - min(ends)) or 1.0
            # The picture is 136 wide. A margin of 4 on either side shows dots of radius 4 whole at
            # the ends.
            on_scale = [
                [4 + 128 * (end - low) / width for end in (0.0, *interval)]
                for interval in intervals
            ]
            return Whiskers(place, on_scale)
        return None

    @property
    def long(self) -> bool:
        """Whether the table is folded into the details, on request or because of its many rows."""
        return self.folded or len(self.grid.rows) > _MANY_ROWS

    @property
    def wide(self) -> bool:
        """Whether the table needs the whole width of the page."""
        return width_of(self.grid) > (_NARROW - 16 if self.whiskers else _NARROW)

    @property
    def stacks(self) -> bool:
        """Whether a phone shows each row as a list of its cells, because the columns do not fit."""
        return width_of(self.grid) > (_PHONE - 16 if self.whiskers else _PHONE)


@dataclass(frozen=True)
class Section:
    """A section of the page: a heading, a sentence on how to read it, tables, charts and notes.

    Attributes:
        id: the fragment of its address.
        short: the name of the section in the navigation.
        title: the heading of the section.
        lead: a sentence on how to read it.
        parts: the tables and charts in order.
        notes: the remarks on them.
        beside: whether the parts are side by side if the window is wide enough.
    """

    id: str
    short: str
    title: str
    lead: str = ""
    parts: tuple[Table | Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    beside: bool = False

    @property
    def shown(self) -> list[Table | Drawing]:
        """The parts that are shown at once."""
        return [part for part in self.parts if not (isinstance(part, Table) and part.long)]

    @property
    def folded(self) -> list[Table]:
        """The tables that one click opens."""
        return [part for part in self.parts if isinstance(part, Table) and part.long]


class PageOfDataset(NamedTuple):
    """The part of the page about one dataset.

    Attributes:
        name: the dataset's name; empty if the page is about one dataset.
        id: the fragment of its address.
        screen: the headline, the evidence, the sentence to quote, warnings and other remarks.
        sections: the sections in order.
    """

    name: str
    id: str
    screen: FirstScreen
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Page:
    """The content of the page above the debates.

    Attributes:
        title: the title of the window.
        subtitle: the datasets, judges and verdicts in the report.
        datasets: the part on each dataset.
        configs: the configuration of each judge with its hash.
        made: how intervals were computed.
        version: the version of this package.
    """

    title: str
    subtitle: str
    datasets: tuple[PageOfDataset, ...]
    configs: tuple[str, ...]
    made: str
    version: str

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of all datasets."""
        return tuple(section for dataset in self.datasets for section in dataset.sections)


def write_page(page: Page, debates: Debates, path: Path) -> int:
    """Write the page, and return its size in bytes.

    It is written to a temporary file first, so ``path`` never contains half a page.

    Raises:
        DataError: a line of results cannot be read.
        OSError: the page cannot be written.
    """
    script = "\n" + "\n".join(source_of(name) for name in _SCRIPTS)
    themes = _template("themes.css").render(charts_light=theme(), charts_dark=theme(dark=True))
    style = f"{themes}{source_of('report.css')}"
    # The hash must cover the exact text in the page, to the last line feed. Otherwise a browser
    # refuses the script.
    pieces = _template("page.html").generate(
        **vars(page),
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
        sample=debates.note,
        blocks=debates.blocks(),
        # The template calls this after all blocks, because only then the place of each debate is
        # known.
        index=lambda: Markup(for_script(debates.index())),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path, public=True) as file:
        # Written piece by piece, so that the blocks of a large run are never in memory together.
        file.writelines(piece.encode(errors="replace") for piece in pieces)
    return path.stat().st_size


@cache
def _template(name: str) -> Any:
    environment = Environment(
        autoescape=name.endswith(".html"), trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters["printable"] = printable
    return environment.from_string(source_of(name))


def source_of(name: str) -> str:
    """Read one of the source files of the page."""
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash with which the Content-Security-Policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
