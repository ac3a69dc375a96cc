"""The four formats of a table: terminal (rich), Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from ..statistics.resampling import Statistic
from .grid import CellValue, Column, Grid, Written, printable


def to_lines(grid: Grid, width: int | None = None) -> Group:
    """Render a table for a terminal of this width, with its title and notes in full width.

    A table that is too wide first loses its intervals. If that is not enough, it is split into
    several tables that repeat the first columns. If not even these and one value fit, every value
    gets its own line. A note explains the change. Values and names are never cut.
    """
    parts = [grid] if width is None else _fitting(grid, width)
    if not parts:
        return _stacked(grid)
    tables = [to_rich(part, width) for part in parts]
    # Removed from the tables, because rich breaks a title and a caption at the width of their
    # table.
    title = tables[0].title
    notes = tables[-1].caption
    for table in tables:
        table.title = table.caption = None
    return Group(*(part for part in (title, *tables, notes) if part is not None))


def to_rich(grid: Grid, width: int | None = None) -> Table:
    """Render a table for a terminal, with notes below it and intervals if there is room."""
    # A table that is too wide loses the least important parts first: intervals, space, unbroken
    # long words.
    gap = 2
    folded = dict[int, int]()
    if width is not None and width_of(grid) > width:
        grid = _without_intervals(grid)
        gap = 2 if width_of(grid) <= width else 1
        if width_of(grid, gap) > width:
            grid = grid.with_cells(
                lambda cell: _with_breaks(cell) if isinstance(cell, str) else cell
            )
            folded = _folded_widths(grid, width - gap * len(grid.columns))
    table = Table(
        title=Text(printable(grid.title), "bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, gap - 1, 0, 0),
        caption=Text("\n".join(map(printable, grid.notes)), "dim") if grid.notes else None,
        caption_justify="left",
    )
    for place, (column, texts) in enumerate(_texts(grid)):
        whole = column.align == "right" or max(map(len, texts), default=0) <= _SHORT
        name = Text(printable(column.name))
        width = folded.get(place)
        table.add_column(name, justify=column.align, no_wrap=whole, overflow="fold", width=width)
    for row in grid.written():
        table.add_row(*map(_rich_cell, row, grid.columns))
    return table


def to_compact(grid: Grid, width: int | None = None) -> Table | Group:
    """Render a small table for a first screen: no lines, and indented row names.

    A table that is too wide is rendered with ``to_lines``.
    """
    if width is not None and width_of(grid, gap=3) + 2 > width:
        return to_lines(grid, width)
    caption = Text("\n".join(map(printable, grid.notes)), "dim") if grid.notes else None
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 3, 0, 0),
        header_style="dim",
        caption=caption,
        caption_justify="left",
    )
    for column in grid.columns:
        table.add_column(Text(printable(column.name)), justify=column.align, no_wrap=True)
    for row in grid.written():
        first, *others = map(_rich_cell, row, grid.columns)
        table.add_row(Text("  ") + first, *others)
    return table


def _texts(grid: Grid) -> list[tuple[Column, list[str]]]:
    """Return each column with the texts of its cells, without intervals."""
    rows = list(grid.written())
    return [
        (column, [row[place].text for row in rows]) for place, column in enumerate(grid.columns)
    ]


def _folded_widths(grid: Grid, room: int) -> dict[int, int]:
    """Return the widths of the columns whose long texts are folded, so that no word is broken."""
    # Without this, rich narrows columns of short and of long words alike, and breaks the words.
    least = [_least_width(column, texts) - 1 for column, texts in _texts(grid)]
    whole = [max([len(column.name), *map(len, texts)]) for column, texts in _texts(grid)]
    more = [max(0, wanted - narrowest) for wanted, narrowest in zip(whole, least, strict=True)]
    free = max(0, room - 1 - sum(least))
    wished = sum(more)
    # Distribute the free space in proportion to each column's need, so the longest text gets most
    # of it.
    return {
        place: least[place] + min(wish, free * wish // wished)
        for place, wish in enumerate(more)
        if wish
    }


INTERVAL_NOTE = "Brackets: "
"""The first word of the note on intervals, which is dropped together with the intervals."""
_SHORT = 28
"""The maximum number of characters of a text on one line."""
_NO_ROOM = "intervals are left out: the terminal is too narrow for them"
_SPLIT = "split into several tables: the terminal is too narrow for one"
_STACKED = "each value is on a line of its own: the terminal is too narrow for a table"


def _without_intervals(grid: Grid) -> Grid:
    """Return a table without its intervals, with a note that replaces the one on intervals."""
    notes = (note for note in grid.notes if not note.startswith(INTERVAL_NOTE))
    return replace(
        grid.without_intervals(), notes=(*notes, *([_NO_ROOM] if grid.has_intervals else []))
    )


def _stacked(grid: Grid) -> Group:
    """Render a table with one line per value, below the names of its row."""
    names = _names(grid)
    lines = [Text(printable(grid.title), "bold")]
    for row in grid.written():
        called = " · ".join(cell.text for cell in row[:names])
        lines.append(Text(f"\n{_with_breaks(called)}", "bold", overflow="fold"))
        for column, cell in zip(grid.columns[names:], row[names:], strict=True):
            # Rich breaks a long line at its spaces, and a word without spaces only if necessary.
            lines.append(
                Text(f"{printable(column.name)}: ", overflow="fold") + _rich_cell(cell, column)
            )
    notes = "\n".join(map(printable, (*grid.notes, _STACKED)))
    return Group(*lines, Text(f"\n{notes}", "dim"))


def _names(grid: Grid) -> int:
    """Count the columns that name a row: text before the first number, or the first column."""
    return (
        next((place for place, column in enumerate(grid.columns) if column.align == "right"), 1)
        or 1
    )


def _fitting(grid: Grid, width: int) -> list[Grid]:
    """Split a table that is too wide even without intervals, repeating the first text columns.

    Returns:
        Return the tables, or none if not even the first columns and one more fit.
    """
    widths = [_least_width(column, texts) for column, texts in _texts(grid)]
    names = _names(grid)
    # A terminal's table is one character wider than its columns, for its left edge.
    room = width - 1 - sum(widths[:names])
    if sum(widths[names:]) <= room:
        return [grid]
    if max(widths[names:], default=0) > room:
        return []
    parts: list[list[int]] = [[]]
    for place in range(names, len(widths)):
        if sum(widths[other] for other in (*parts[-1], place)) > room:
            parts.append([])
        parts[-1].append(place)
    bare = _without_intervals(grid)
    # Each part has all notes, but only those of the last part are shown.
    bare = replace(bare, notes=(*bare.notes, _SPLIT))
    return [bare.only([*range(names), *part]) for part in parts]


def _least_width(column: Column, texts: list[str]) -> int:
    """Return the minimum width of a column including a space, so that no value is cut.

    Long texts may be folded.
    """
    longest = max(map(len, texts), default=0)
    if column.align == "left" and longest > _SHORT:
        longest = max(
            (len(word) for text in texts for word in _with_breaks(text).split()), default=0
        )
    return max(longest, len(column.name)) + 1


def _with_breaks(text: str) -> str:
    """Put spaces after the commas of a long text, but not within numbers.

    ``n=1,persona=plain`` may be broken, and ``1,234`` stays.
    """
    return re.sub(r",(?=[^\s\d])", ", ", text) if len(text) > _SHORT else text


def width_of(grid: Grid, gap: int = 2) -> int:
    """Return the width of a table in characters, with all intervals of its columns."""
    rows = [map(_rich_cell, row, grid.columns) for row in grid.written()]
    cells = ([column.name for column in grid.columns], *rows)
    return sum(max(map(len, column)) + gap for column in zip(*cells, strict=True))


def _rich_cell(cell: Written, column: Column) -> Text:
    text = Text(cell.text, "bold" if cell.best else "")
    if cell.interval and column.interval:
        text.append(f" {cell.interval}", "not bold dim")
    return text


def to_markdown(grid: Grid) -> str:
    """Return a table as GitHub's Markdown, with title, notes, and intervals after their values."""
    from tabulate import tabulate

    def cell(of: Written) -> str:
        text = markdown_text(of.text)
        return f"{f'**{text}**' if of.best else text} {of.interval}".rstrip()

    rows = [list(map(cell, row)) for row in grid.written()]
    names = [markdown_text(column.name) for column in grid.columns]
    sides = [column.align for column in grid.columns] if rows else None
    # The cells are already text, but tabulate would format numbers again.
    table = tabulate(rows, headers=names, tablefmt="github", colalign=sides, disable_numparse=True)
    notes = "\n".join(f"{markdown_text(note)}  " for note in grid.notes)
    return "\n\n".join(filter(None, (f"### {markdown_text(grid.title)}", table, notes))) + "\n"


def markdown_text(text: str) -> str:
    """Escape a text so that no part of it starts a column, a link, a tag or emphasis."""
    return re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", printable(text))


def to_csv(grid: Grid) -> str:
    """Return a table as CSV in full precision; a statistic has three columns: value, low, high."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    # A column with any statistic has three columns in all rows. Otherwise cells would be under
    # wrong headings.
    wide = [
        3 if any(isinstance(row[place], Statistic) for row in grid.rows) else 1
        for place in range(len(grid.columns))
    ]
    headings = [
        (column.name, f"{column.name} low", f"{column.name} high") for column in grid.columns
    ]
    for row in (headings, *(map(_values, row) for row in grid.rows)):
        cells = (cell for values, width in zip(row, wide, strict=True) for cell in values[:width])
        writer.writerow(inert(cell) if isinstance(cell, str) else cell for cell in cells)
    return out.getvalue()


def _values(cell: CellValue) -> tuple[str | float | None, ...]:
    return (cell.value, cell.low, cell.high) if isinstance(cell, Statistic) else (cell, None, None)


# A spreadsheet runs a cell that begins with one of these characters as a formula, also in full
# width.
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20].|\t", re.DOTALL)


def inert(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run. Numbers are unchanged."""
    # Some CSV readers refuse a NUL, and Python's writer does not quote a single carriage return.
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}").replace("\r\n", "\n").replace("\r", "\n")
    if not _FORMULA.match(text):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def to_latex(grid: Grid) -> str:
    """Return a table as LaTeX: intervals small, at most as wide as the text.

    Only a significant lead is bold, because bold in a paper claims that a value is the best. The
    document needs the packages ``booktabs`` and ``graphicx``.
    """
    if grid.significant is None:
        grid = replace(grid, significant=frozenset())
    # \resizebox shrinks the table only if it is wider than the text.
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        _latex_caption(grid),
        *([rf"\label{{tab:{grid.label}}}"] if grid.label else []),
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"\begin{{tabular}}{{@{{}}{''.join(column.align[0] for column in grid.columns)}@{{}}}}",
        r"\toprule",
        _latex_row(rf"\textbf{{{latex_text(column.name)}}}" for column in grid.columns),
        r"\midrule",
        *(_latex_row(map(_latex_cell, row)) for row in grid.written()),
        r"\bottomrule",
        r"\end{tabular}}",
    ]
    if grid.notes:
        lines += [r"\par\smallskip", r"\parbox{\linewidth}{\footnotesize\raggedright"]
        # A signature is one long word. Allow breaks after "|" (which is \textbar{} here), "+" and
        # ",".
        notes = map(latex_text, grid.notes)
        lines += [
            re.sub(r"\\textbar\{\}|[+,]", r"\g<0>\\allowbreak{}", note) + r"\par" for note in notes
        ]
        lines += ["}"]
    return "\n".join([*lines, r"\end{table}", ""])


_FILE = re.compile(
    r"""
    (?: \b[A-Za-z]: )?                            # a drive, as in C:\data\mine.csv
    (?: [^\s/\\,;:()]* [/\\] )*                  # folders
    ( [^\s/\\,;:()]+ )                            # the name, which stays
    \. (?: csv | tsv | jsonl? | xlsx | parquet ) \b
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(r"https?://[^\s,;()]*")


def _latex_caption(grid: Grid) -> str:
    """Return the caption with config hashes, and without them the short one for lists of tables.

    Names of datasets lose their folders and the endings of files, and addresses are left out.
    """
    title = _ADDRESS.sub("...", _FILE.sub(r"\1", grid.title))
    short = latex_text(title)
    if not grid.configs:
        return rf"\caption{{{short}}}"
    named = "configuration" if len(grid.configs) == 1 else "configurations"
    hashes = latex_text(f"{named} {', '.join(f'#{config}' for config in grid.configs)}")
    # The inner braces protect brackets in the short caption.
    return rf"\caption[{{{short}}}]{{{short} ({hashes})}}"


def _latex_row(cells: Iterator[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Written) -> str:
    if cell.text == "-":  # a missing value: an en dash does not look like a minus
        return "--"
    text = latex_text(cell.text)
    # A hyphen before a number, as in "-0.12", becomes a minus. A hyphen inside a name stays.
    text = re.sub(r"^-(?=[\d.])", "$-$", text)
    text = rf"\textbf{{{text}}}" if cell.best else text
    interval = latex_text(cell.interval).replace("-", "$-$")
    return rf"{text} {{\small {interval}}}" if interval else text


_NAMED = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater"}
_NAMED |= {"|": "bar", '"': "quotedbl"}
_LATEX = {character: rf"\{character}" for character in "&%$#_{}"}
_LATEX |= {character: rf"\text{name}{{}}" for character, name in _NAMED.items()}
# Greek letters and arrows are not in pdfLaTeX's text fonts. At the beginning of a row, LaTeX would
# read "[" as the optional argument of the preceding "\\".
_LATEX |= {"Δ": r"$\Delta$", "→": r"$\to$", "[": "{[}", "]": "{]}"}


def latex_text(text: str) -> str:
    """Escape a text so that LaTeX prints it unchanged, on one line.

    >>> latex_text("50% of a_b")
    '50\\\\% of a\\\\_b'
    """
    return "".join(_LATEX.get(character, character) for character in printable(text))
