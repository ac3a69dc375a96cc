"""One style for all charts: one palette and one frame for paper and for light and dark pages.

A chart is drawn in the colours of the light theme. On a page each colour becomes a CSS variable, so
the chart follows the page from light to dark. In a file it stays light. No global state of
matplotlib is changed.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import yaml

from ...nodes.common.plugins import needed
from ...state.errors import UsageError
from ..tables.grid import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PALETTE = yaml.safe_load(
    files(__package__).joinpath("page", "palette.yaml").read_text(encoding="utf-8")
)
INK, MUTED, RULE, PAPER, PEOPLE = (light for light, _dark in _PALETTE["figure"].values())
SERIES = tuple(light for light, _dark in _PALETTE["series"].values())
MARKS = ("o", "s", "^", "D", "v", "P", "X", "h")
"""Marker shapes for the colours, for print in black and white."""

# The name of each colour on a page, and its value in the dark theme.
_COLORS = (
    (f"--{kind}-{name}", *shades) for kind, its in _PALETTE.items() for name, shades in its.items()
)
_THEMED = {light: (name, dark) for name, light, dark in _COLORS}
_SUFFIXES = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}
"""The formats of files, each without dates, so that the same chart gives the same file."""
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"


def theme(dark: bool = False) -> str:
    """Write the declarations of the CSS variables for charts on a page.

    >>> theme().splitlines()[0]
    '--figure-ink: #1d2127;'
    """
    return "\n".join(
        f"{name}: {shade if dark else color};" for color, (name, shade) in _THEMED.items()
    )


def new_figure(
    width: float, height: float, columns: int = 1, rows: int = 1, **subplots: Any
) -> tuple[Figure, list[Axes]]:
    """Create an empty figure in this style, and its axes, row by row.

    Args:
        width: in inches.
        height: in inches.
        columns: the number of panels in a row.
        rows: the number of rows of panels.
        subplots: arguments for ``Figure.subplots``.

    Raises:
        UsageError: matplotlib is not installed.
    """
    matplotlib = needed(
        "matplotlib.figure", 'charts need matplotlib: pip install "jurygraph[report]"'
    )
    # Not through pyplot, which keeps every figure in memory and may open a window.
    figure: Figure = matplotlib.Figure(figsize=(width, height), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False, **subplots).flat)
    for axes in panels:
        axes.patch.set_alpha(0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["bottom", "left"]].set_color(RULE)
        axes.tick_params(colors=MUTED, labelsize=9, length=3)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set(color=INK, fontsize=10)
        axes.title.set(color=INK, fontsize=11)
        axes.grid(True, color=RULE, linewidth=0.6)
        axes.set_axisbelow(True)
    return figure, panels


def look(number: int) -> tuple[str, str]:
    """Return the colour and marker of series ``number``, from 0; they repeat after eight.

    >>> look(0)
    ('#0b63a8', 'o')
    """
    return SERIES[number % len(SERIES)], MARKS[number % len(MARKS)]


def plain(text: str, most: int = 40) -> str:
    """Shorten a name to one line of at most ``most`` characters, and escape matplotlib's formulas.

    >>> plain("costs $5 or $6")
    'costs \\\\$5 or \\\\$6'
    """
    line = printable(text)
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    return line.replace("$", r"\$")


def save(figure: Figure, path: str | Path) -> Path:
    """Write a figure in the format of the file's suffix: ``.svg``, ``.pdf`` or ``.png``.

    No date is written into the file, so the same figure gives the same file.

    Raises:
        UsageError: the suffix is unknown.
    """
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(
            f"{path}: charts are written as {', '.join(_SUFFIXES)}; "
            "choose a file name with one of these suffixes"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with _settings():
        figure.savefig(path, dpi=200, facecolor=PAPER, metadata=_SUFFIXES[path.suffix.lower()])
    return path


def themed_svg(figure: Figure, title: str, description: str) -> str:
    """Write a figure as SVG for a page, with CSS variables as colours and text as text.

    See ``theme`` for the variables. The SVG has no style sheet, loads nothing from outside, and has
    a description for screen readers.

    Args:
        figure: a figure in this module's colours.
        title: the subject of the chart, in a few words.
        description: the content of the chart, in a sentence or two.
    """
    text = StringIO()
    # A page has several charts, so ids must be unique. They are the same each time the page is
    # made.
    mark = f"figure-{sha256(f'{title}. {description}'.encode(errors='replace')).hexdigest()[:8]}"
    with _settings(salt=mark):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(text.getvalue())
    values = (value for element in root.iter() for value in element.attrib.values())
    referred = set(re.findall(r"#([\w-]+)", " ".join(values)))
    for element in root.iter():
        # The parser puts the namespace into each name and would write it as a prefix. It is
        # declared once, below.
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        _style_to_attributes(element)
        # Unused names are the same in all charts.
        if element.get("id") not in referred:
            element.attrib.pop("id", None)
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    # Its metadata is empty, and its style sheet would apply to the whole page.
    for child in list(root):
        if child.tag == "metadata" or (child.tag == "defs" and child.find("style") is not None):
            root.remove(child)
    # Without its own size, a chart gets its size from the page's style sheet. Its viewBox preserves
    # the proportions.
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    named = f"{mark}-title {mark}-desc"
    root.attrib |= {"xmlns": _SVG, "role": "img", "aria-labelledby": named, "class": "figure"}
    # Each is inserted at the front, so the title ends up first, as SVG requires.
    for name, words in (("desc", description), ("title", title)):
        element = ElementTree.Element(name, {"id": f"{mark}-{name}"})
        element.text = printable(words)
        root.insert(0, element)
    return ElementTree.tostring(root, encoding="unicode")


@contextmanager
def _settings(salt: str = "jurygraph") -> Iterator[None]:
    import matplotlib

    # Text stays text in SVG. This salt replaces a random one for ids. PDF gets TrueType fonts (42),
    # because publishers refuse matplotlib's default, Type 3.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": salt, "pdf.fonttype": 42}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The measuring font may lack the script of a name. The reader's own font has it.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield


def _style_to_attributes(element: ElementTree.Element) -> None:
    """Replace style attributes by presentation attributes.

    The page's Content-Security-Policy forbids style attributes.
    """
    for declaration in filter(None, element.attrib.pop("style", "").split(";")):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name != "font-family":
            element.set(name, value)
    for name in ("fill", "stroke"):
        if (color := element.get(name, "").lower()) in _THEMED:
            element.set(name, f"var({_THEMED[color][0]}, {color})")
    if element.tag == "text" and "fill" not in element.attrib:
        element.set("fill", f"var({_THEMED[INK][0]}, {INK})")
