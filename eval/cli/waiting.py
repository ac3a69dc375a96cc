"""Show on a terminal that a command is busy, for example with reading a large file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .runtime import Output

PATIENCE = 1.0
"""The seconds after which a bar appears; shorter work shows none."""


@contextmanager
def shown_if_slow(
    doing: str, console: Console | None = None, after: float = PATIENCE
) -> Iterator[None]:
    """Show a bar on standard error if work takes longer than a second; only on a terminal.

    Args:
        doing: the work, such as ``reading mine.csv``.
        console: the console; default: standard error.
        after: the seconds before the bar appears.
    """
    errors = console or Output(stderr=True)
    if not errors.is_terminal:
        yield
        return
    progress = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=None),
        TimeElapsedColumn(),
        console=errors,
        transient=True,
        expand=True,
    )
    # The amount of work is unknown in advance, so the bar only moves.
    progress.add_task(escape(doing), total=None)
    timer = Timer(after, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.stop()
