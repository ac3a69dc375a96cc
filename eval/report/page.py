"""One file that opens without network: tables, drawings, and every debate."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from jinja2 import Environment
from markupsafe import Markup

from ..tables import Grid
from ..tables.formats import width_of
from ..tables.grid import printable
from .chart_style import theme
from .debates import Debates, for_script

_SCRIPTS = ("carried.js", "words.js", "debate.js", "list.js", "main.js")
_LIGHT = """
color-scheme: light;
--paper: #fdfdfc; --raised: #f6f7f8; --hover: #eef1f4; --ink: #1d2127; --muted: #5c6570;
--rule: #e3e6ea; --edge: #c9ced5;
--accent: #0b63a8; --accent-soft: #e6f0f9; --chip: #e6e9ed; --good: #0a6650; --good-soft: #e0f3ec;
--warn: #8c4a06; --warn-soft: #fdf1dd; --bad: #b3261e; --bad-soft: #fceceb; --mark: #ffe58a;
"""
_DARK = """
color-scheme: dark;
--paper: #15181d; --raised: #1c2027; --hover: #242a32; --ink: #e7eaee; --muted: #a2abb6;
--rule: #2a3038; --edge: #434c57;
--accent: #6cb4f0; --accent-soft: #1b2f43; --chip: #2b323b; --good: #6fd6b4; --good-soft: #16332b;
--warn: #eebb6b; --warn-soft: #382a14; --bad: #ff8f86; --bad-soft: #3d1f1e; --mark: #6a5710;
"""


@dataclass(frozen=True)
class Drawing:
    """A themed drawing with the words under it."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Whiskers:
    """Intervals drawn beside a table's column, all on one scale.

    Attributes:
        place: of the column.
        drawn: for each row, its value and interval as parts of the scale (0 to 1); ``None`` where there is none.
        zero: where zero is on that scale, if it is on it.
    """

    place: int
    drawn: tuple[tuple[float, float, float] | None, ...]
    zero: float | None = None

    def svg(self, row: int) -> Markup:
        """The drawing of a row: only numbers go into it."""
        found = self.drawn[row]
        if found is None:
            return Markup()
        value, low, high = (4 + 128 * part for part in found)
        zero = "" if self.zero is None else _ZERO.format(4 + 128 * self.zero)
        return Markup(_WHISKER.format(zero=zero, value=value, low=low, high=high))


_ZERO = '<line class="zero" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="16"/>'
_WHISKER = (
    '<svg viewBox="0 0 136 16" aria-hidden="true" focusable="false">{zero}'
    '<line class="line" x1="{low:.1f}" x2="{high:.1f}" y1="8" y2="8"/>'
    '<circle class="dot" cx="{value:.1f}" cy="8" r="4"/></svg>'
)


_NARROW, _MANY_ROWS = 68, 20


@dataclass(frozen=True)
class Table:
    """A table on the page."""

    grid: Grid
    whiskers: Whiskers | None = None
    folded: bool = False

    @property
    def long(self) -> bool:
        """Whether it is opened on demand: it was asked for, or there are more rows than can be taken in."""
        return self.folded or len(self.grid.rows) > _MANY_ROWS

    @property
    def wide(self) -> bool:
        """Whether it needs the page's whole width."""
        return width_of(self.grid) > (_NARROW - 16 if self.whiskers else _NARROW)


@dataclass(frozen=True)
class Section:
    """A part of the page: what it is about, in a heading and a sentence, then tables, drawings and notes.

    Attributes:
        id: its address.
        short: what it is called where there is little room.
        title: its heading.
        lead: a sentence that says how to read it.
        parts: in order.
        notes: what a reader should know of them.
        beside: whether the parts stand side by side where there is room.
    """

    id: str
    short: str
    title: str
    lead: str = ""
    parts: tuple[Table | Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    beside: bool = False


@dataclass(frozen=True)
class Page:
    """What the page says before the debates.

    Attributes:
        title: of the window.
        subtitle: what this is a report of.
        headline: the answer, in a line.
        answers: how sure it is and what it costs, in a sentence each.
        disclosures: what must stand at the head.
        sections: in order.
        signatures: of what was run.
        made: how the figures were made.
        version: of this package.
    """

    title: str
    subtitle: str
    headline: str
    answers: tuple[str, ...]
    disclosures: tuple[str, ...]
    sections: tuple[Section, ...]
    signatures: tuple[str, ...]
    made: str
    version: str


def write_page(page: Page, debates: Debates, path: Path) -> int:
    """Write the page; the file is there whole or not at all. Gives its size in bytes.

    Raises:
        DataError: a line of results that is none.
        OSError: it could not be written.
    """
    fresh = path.with_name(f"{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with fresh.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            _write(page, debates, file)
        size = fresh.stat().st_size
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return size


def _write(page: Page, debates: Debates, file: IO[str]) -> None:
    script, style = _script(), _style()
    pieces = _template().generate(
        **vars(page),
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
        blocks=debates.blocks(),
        index=_index(debates),
    )
    file.writelines(pieces)


def _index(debates: Debates) -> Callable[[], Markup]:
    # The template asks for it when all blocks are written: before, it is not known.
    return lambda: Markup(for_script(debates.index()))


@cache
def _template() -> Any:
    environment = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True)
    environment.filters["printable"] = printable
    return environment.from_string(_source("page.html"))


@cache
def _script() -> str:
    return "\n" + "\n".join(_source(name) for name in _SCRIPTS)


@cache
def _style() -> str:
    light, dark = _LIGHT + theme(), _DARK + theme(dark=True)
    return (
        f"\n:root {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme]) {{ {dark} }} }}\n"
        f":root[data-theme=dark] {{ {dark} }}\n"
        f"@media print {{ :root, :root:not([data-theme]), :root[data-theme=dark] {{ {light} }} }}\n"
        f"{_source('report.css')}"
    )


def _source(name: str) -> str:
    return files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a Content-Security-Policy names what it lets run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
