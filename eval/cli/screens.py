"""Print the first screen of a result, and suggested commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from ..tables.formats import to_compact
from ..tables.grid import printable
from .runtime import Output

if TYPE_CHECKING:
    from ..tables.screen import FirstScreen

MOST_STEPS = 4
"""The number of suggested commands."""


@dataclass(frozen=True)
class Step:
    """A suggested command.

    Attributes:
        purpose: its effect, in a few words.
        command: the command, ready to paste into a shell.
        note: its cost, such as the number of calls.
    """

    purpose: str
    command: str
    note: str = ""


def print_screens(
    out: Output, screens: Iterable[FirstScreen], full: bool = False, more: str = ""
) -> None:
    """Print first screens, one for each dataset.

    Args:
        out: the console.
        screens: the screens in order.
        full: whether to print all remarks instead of the two most important ones.
        more: the command that prints the other remarks.
    """
    for screen in screens:
        if screen.name:
            out.rule(Text(printable(screen.name), "bold"), align="left")
        out.print_line(printable(screen.headline), "bold")
        if screen.table.rows:
            out.print()
            out.print(to_compact(screen.table, out.width))
        if screen.evidence:
            out.print()
            for line in _lines_of(screen.evidence):
                _text(out, line)
        if screen.quotable:
            out.print()
            out.print_line("What you may write", "bold")
            _text(out, screen.quotable, indent=2)
        for warning in screen.warnings:
            _paragraph(out, warning, "yellow")
        if full:
            for remark in screen.others:
                _paragraph(out, remark)
        elif more and screen.others:
            count = len(screen.others)
            remarks = "1 more remark" if count == 1 else f"{count} more remarks"
            _paragraph(out, f"{remarks}: {more}", "dim")
        out.print()


def print_next(out: Output, steps: Sequence[Step] | None, results: str = "") -> None:
    """Print at most four commands, with their purposes in a column.

    Args:
        out: the console.
        steps: the commands, the most useful first.
        results: the place of the results.
    """
    shown = list(steps or ())[:MOST_STEPS]
    if not shown:
        return
    out.print()
    out.print_line(f"Next (results: {results})" if results else "Next", "bold")
    width = max(len(step.purpose) for step in shown)
    for step in shown:
        note = f"   ({step.note})" if step.note else ""
        out.print_line(f"  {step.purpose:<{width}}  {step.command}{note}")


def _lines_of(evidence: str) -> list[str]:
    """Return the lines of an evidence: each sentence has its own if together they are long.

    >>> _lines_of("rho: a 0.56, b 0.55 over 24 items. At least 30 items would be needed.")
    ['rho: a 0.56, b 0.55 over 24 items. At least 30 items would be needed.']
    """
    return [evidence] if len(evidence) <= _LONGEST_LINE else _NEXT_SENTENCE.split(evidence)


# A blank between two sentences: "p = 0.364. At least"
_NEXT_SENTENCE = re.compile(r"(?<=[\w)]\.) (?=[A-Z])")
_LONGEST_LINE = 100


def _paragraph(out: Output, text: str, style: str = "") -> None:
    if text:
        out.print()
        _text(out, text, style)


def _text(out: Output, text: str, style: str = "", indent: int = 0) -> None:
    """Print a text, wrapped on a terminal; elsewhere in one line, for search by other programs."""
    line = Text(printable(text), style)
    if out.is_terminal:
        out.print(Padding(line, (0, 0, 0, indent)))
    else:
        out.print(Text(" " * indent) + line, soft_wrap=True)
