"""How figures look: one palette and one frame for paper, screen and dark screen; no global state is touched.

A figure is drawn in the light theme's colours. On a page each of them becomes a CSS variable, so that a drawing
follows the page from light to dark; in a file it stays as it is.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ...state.errors import UsageError
from ..tables.grid import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, RULE, PAPER = "#1d2127", "#5c6570", "#d5d9de", "#fefefe"
SERIES = ("#0b63a8", "#c04f15", "#0b7d61", "#8a4799", "#8a6400", "#4f5d73", "#b3325f", "#3d7a1f")
"""Lines and marks: told apart by people who see few colours, and readable on white (each at least 4.5 to 1)."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "h")
"""Shapes that go with the colours, for those who see none of them."""
PEOPLE = "#3b3f46"
"""People, where judges stand beside them."""

_DARK = {
    **{INK: "#e7eaee", MUTED: "#a2abb6", RULE: "#3a414b", PAPER: "#15181d", PEOPLE: "#d0d5dc"},
    **dict(
        zip(
            SERIES,
            ("#6cb4f0", "#f0925c", "#4cc7a4", "#cf9bdd", "#dcb44a", "#a9b6ca", "#f07fa6", "#92cc6e"),
            strict=True,
        )
    ),
}
_NAMES = {
    **{INK: "--figure-ink", MUTED: "--figure-muted", RULE: "--figure-rule", PAPER: "--figure-paper"},
    **{PEOPLE: "--figure-people"},
    **{color: f"--series-{number}" for number, color in enumerate(SERIES, start=1)},
}
_SUFFIXES = (".svg", ".pdf", ".png")
_SVG = "http://www.w3.org/2000/svg"
_LINK = "http://www.w3.org/1999/xlink"


def theme(dark: bool = False) -> str:
    """The declarations of the CSS variables that themed drawings use.

    >>> theme().splitlines()[0]
    '--figure-ink: #1d2127;'
    """
    return "\n".join(f"{name}: {_DARK[color] if dark else color};" for color, name in _NAMES.items())


def new_figure(
    width: float = 6.4, height: float = 4.0, columns: int = 1, **subplots: Any
) -> tuple[Figure, Any]:
    """An empty figure in the house's style, and its axes (an array of them where there are several columns).

    Args:
        width: in inches.
        height: in inches.
        columns: panels beside each other.
        subplots: passed on to ``Figure.subplots``.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError('figures need matplotlib: pip install "jurygraph[report]"') from error
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, **subplots)
    for each in [axes] if columns == 1 else axes.flat:
        _frame(each)
    return figure, axes


def _frame(axes: Axes) -> None:
    axes.patch.set_alpha(0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(RULE)
    axes.tick_params(colors=MUTED, labelsize=9, length=3)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set(color=INK, fontsize=10)
    axes.title.set(color=INK, fontsize=11)
    axes.grid(True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def look(number: int) -> tuple[str, str]:
    """Colour and mark of the so-manieth series, from 0; after eight they come again.

    >>> look(0)
    ('#0b63a8', 'o')
    """
    return SERIES[number % len(SERIES)], MARKS[number % len(MARKS)]


def plain(text: str, most: int = 40) -> str:
    """A name as a figure can hold it: one line, no formula, not longer than there is room for.

    >>> plain("costs $5 or $6")
    'costs \\\\$5 or \\\\$6'
    """
    line = printable(text)
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return line.replace("$", r"\$")


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure, in the form that the file's name ends in: ``.svg``, ``.pdf`` or ``.png``.

    The same figure gives the same file: no date is written into it.

    Raises:
        UsageError: another ending.
    """
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{path}: figures are written as {', '.join(_SUFFIXES)}; give a name that ends so")
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix.lower()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with _settings():
        figure.savefig(path, dpi=200, facecolor=PAPER, metadata=metadata)
    return path


def themed_svg(figure: Figure, title: str, description: str) -> str:
    """A drawing to be put into a page: its colours are the page's (see ``theme``), its text is text.

    It needs no styles of its own, asks for nothing from outside, and says what it shows to those who do not see it.

    Args:
        figure: drawn in this module's colours.
        title: what it is, in a few words.
        description: what is to be seen in it, in a sentence or two.
    """
    text = StringIO()
    with _settings():
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(text.getvalue())
    mark = f"figure-{sha256((title + text.getvalue()).encode(errors='replace')).hexdigest()[:8]}"
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    _strip(root)
    _rename(root, mark)
    for element in root.iter():
        _style_to_attributes(element)
    _introduce(root, mark, printable(title), printable(description))
    return ElementTree.tostring(root, encoding="unicode")


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib

    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "jurygraph", "pdf.fonttype": 42}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A name may be written in a script that the measuring font lacks; the reader's own font has it.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _strip(root: ElementTree.Element) -> None:
    """Drop metadata and the style sheet, which would hold for the whole page."""
    for child in list(root):
        if child.tag == "metadata" or (child.tag == "defs" and child.find("style") is not None):
            root.remove(child)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)


def _rename(root: ElementTree.Element, mark: str) -> None:
    """Names that are referred to become the drawing's own; the others go: a page holds several drawings."""
    link = f"{{{_LINK}}}href"
    referred = set()
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            referred.update(re.findall(r"url\(#([^)]+)\)", value))
            element.set(name, re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", value))
        if target := element.attrib.pop(link, "").removeprefix("#"):
            referred.add(target)
            element.set("href", f"#{mark}-{target}")
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in referred:
            element.set("id", f"{mark}-{old}")


def _style_to_attributes(element: ElementTree.Element) -> None:
    """A page that forbids styles in attributes (by its Content-Security-Policy) still shows the colours."""
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":
            size = re.search(r"([\d.]+px)", value)
            element.set("font-size", size[1] if size else "10px")
            if value.startswith(("bold", "700", "600")):
                element.set("font-weight", "600")
        elif name != "font-family":
            element.set(name, value)
    for name in ("fill", "stroke"):
        if (color := element.get(name, "").lower()) in _NAMES:
            element.set(name, f"var({_NAMES[color]}, {color})")
    if element.tag == "text" and "fill" not in element.attrib:
        element.set("fill", f"var({_NAMES[INK]}, {INK})")


def _introduce(root: ElementTree.Element, mark: str, title: str, description: str) -> None:
    root.set("xmlns", _SVG)
    root.set("role", "img")
    root.set("aria-labelledby", f"{mark}-title {mark}-desc")
    root.set("class", "figure")
    for name, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(name, {"id": f"{mark}-{name}"})
        element.text = text
        root.insert(0, element)
