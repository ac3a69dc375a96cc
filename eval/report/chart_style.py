"""Give all charts one style: one palette and one frame for paper and for light and dark pages.

A chart is drawn in the colours of the light theme. On a page each of them becomes a CSS variable, so that a chart
follows the page from light to dark; in a file it stays light. No global state of matplotlib is changed.
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
"""Colours of series: distinct for colour-blind readers, and with a contrast to white of at least 4.5 to 1."""
MARKS = ("o", "s", "^", "D", "v", "P", "X", "h")
"""Marker shapes that go with the colours, for print in black and white."""
PEOPLE = "#3b3f46"
"""The colour of human labels beside judges."""

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
    """Write the declarations of the CSS variables that charts on a page use.

    >>> theme().splitlines()[0]
    '--figure-ink: #1d2127;'
    """
    return "\n".join(f"{name}: {_DARK[color] if dark else color};" for color, name in _NAMES.items())


def new_figure(
    width: float = 6.4, height: float = 4.0, columns: int = 1, **subplots: Any
) -> tuple[Figure, Any]:
    """Make an empty figure in this style, and its axes (an array of them if there are several columns).

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
        raise UsageError('charts need matplotlib: pip install "jurygraph[report]"') from error
    # Not through pyplot, which keeps every figure in memory and may want a window.
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(1, columns, **subplots)
    for panel in [axes] if columns == 1 else axes.flat:
        _frame(panel)
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
    """Return the colour and marker of series ``number``, from 0; after eight they repeat.

    >>> look(0)
    ('#0b63a8', 'o')
    """
    return SERIES[number % len(SERIES)], MARKS[number % len(MARKS)]


def plain(text: str, most: int = 40) -> str:
    """Shorten a name to one line of at most ``most`` characters, without what matplotlib takes for a formula.

    >>> plain("costs $5 or $6")
    'costs \\\\$5 or \\\\$6'
    """
    line = printable(text)
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return line.replace("$", r"\$")


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure in the format of the file's suffix: ``.svg``, ``.pdf`` or ``.png``.

    The same figure gives the same file, since no date is written into it.

    Raises:
        UsageError: the suffix is another one.
    """
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(
            f"{path}: charts are written as {', '.join(_SUFFIXES)}; choose a file name with one of these suffixes"
        )
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix.lower()]
    path.parent.mkdir(parents=True, exist_ok=True)
    # Dates are left out, so that the same chart always gives the same file.
    with _settings():
        figure.savefig(path, dpi=200, facecolor=PAPER, metadata=metadata)
    return path


def themed_svg(figure: Figure, title: str, description: str) -> str:
    """Write a figure as SVG to be embedded in a page: its colours are CSS variables (see ``theme``), its text is text.

    It has no style sheet, loads nothing from outside, and describes itself to screen readers.

    Args:
        figure: drawn in this module's colours.
        title: the subject of the chart, in a few words.
        description: the content of the chart, in a sentence or two.
    """
    text = StringIO()
    with _settings():
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(text.getvalue())
    # From the chart itself: different for any two charts of a page, and the same whenever the page is made again.
    mark = f"figure-{sha256((title + text.getvalue()).encode(errors='replace')).hexdigest()[:8]}"
    # The parser puts the namespace into each name and would write it as a prefix; ``_introduce`` declares it once.
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

    # Text stays text in SVG; its ids are made from a fixed salt in place of a random one; PDF gets TrueType fonts (42),
    # since publishers refuse matplotlib's default, Type 3.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "jurygraph", "pdf.fonttype": 42}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # A name may be written in a script that the measuring font lacks; the reader's own font has it.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _strip(root: ElementTree.Element) -> None:
    """Drop metadata and the style sheet, which would apply to the whole page."""
    for child in list(root):
        if child.tag == "metadata" or (child.tag == "defs" and child.find("style") is not None):
            root.remove(child)
    # Without a size of its own, a chart is as large as the page's style sheet says; its viewBox keeps the proportions.
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)


def _rename(root: ElementTree.Element, mark: str) -> None:
    """Make the ids that are referred to unique to this chart and drop the others, since a page holds several charts."""
    link = f"{{{_LINK}}}href"
    referred = set()
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            # References such as ``clip-path="url(#p3a0f)"``; those of ``use`` elements follow below.
            referred.update(re.findall(r"url\(#([^)]+)\)", value))
            element.set(name, re.sub(r"url\(#([^)]+)\)", rf"url(#{mark}-\1)", value))
        if target := element.attrib.pop(link, "").removeprefix("#"):
            referred.add(target)
            element.set("href", f"#{mark}-{target}")
    for element in root.iter():
        if (old := element.attrib.pop("id", None)) in referred:
            element.set("id", f"{mark}-{old}")


def _style_to_attributes(element: ElementTree.Element) -> None:
    """Turn style attributes, which the page's Content-Security-Policy forbids, into presentation attributes."""
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":
            size = re.search(r"([\d.]+px)", value)  # of "700 10px 'DejaVu Sans', sans-serif"
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
    # Each is inserted at the front, so the title comes to stand first, where SVG wants it.
    for name, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(name, {"id": f"{mark}-{name}"})
        element.text = text
        root.insert(0, element)
