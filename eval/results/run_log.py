"""The log of a run; secrets and control characters are removed from all text."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from pythonjsonlogger.core import RESERVED_ATTRS, merge_record_extra
from pythonjsonlogger.json import JsonFormatter
from rich.console import Console
from rich.text import Text

from ...state.redaction import one_line
from ..journal.private_files import make_private_folder, private

FILE = "log.jsonl"
ROOT = logging.getLogger("jurygraph")

OTHERS = ("asyncio", "langsmith", "opentelemetry")
"""Loggers whose warnings also go to the log, instead of appearing on the screen."""


@contextmanager
def logging_to(
    folder: Path | None, console: Console | None, notices: Console | None = None
) -> Iterator[None]:
    """Log the events inside the block.

    Args:
        folder: receives ``log.jsonl``: one line per event with ``time`` in UTC, ``level``,
            ``logger``, ``event`` and its fields. Several starts of a run append to it.
        console: receives the same, for humans.
        notices: receives notices for the user immediately, if ``console`` is not given.
    """
    handlers: list[logging.Handler] = []
    if folder is not None:
        handlers.append(_LogFile(folder / FILE))
    if console is not None:
        handlers.append(_ConsoleHandler(console))
    elif notices is not None:
        handlers.append(_ConsoleHandler(notices))
        handlers[-1].addFilter(logging.Filter("jurygraph.notices"))
    with ExitStack() as stack:
        for handler in handlers:
            stack.callback(handler.close)
        if handlers:
            stack.enter_context(handled_by(handlers))
        yield


@contextmanager
def handled_by(handlers: list[logging.Handler], level: int = logging.DEBUG) -> Iterator[None]:
    """Send events inside the block only to these handlers; from other packages only warnings."""
    least = {ROOT: level, **dict.fromkeys(map(logging.getLogger, OTHERS), logging.WARNING)}
    before = {logger: (logger.level, logger.propagate) for logger in least}
    for logger, its_level in least.items():
        logger.propagate = False
        logger.setLevel(its_level)
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, (usual_level, logger.propagate) in before.items():
            logger.setLevel(usual_level)
            for handler in handlers:
                logger.removeHandler(handler)


class _JsonLine(JsonFormatter):
    def __init__(self) -> None:
        renamed = {"asctime": "time", "levelname": "level", "name": "logger", "message": "event"}
        fields = " ".join(f"%({field})s" for field in renamed)
        super().__init__(fields, rename_fields=renamed, json_ensure_ascii=False)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        """Format the time in UTC, so that no hour occurs twice when clocks change."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Redact the message, because it may quote text from anywhere."""
        return {name: _safe(value) for name, value in log_data.items()}


class _LogFile(logging.Handler):
    """Writes events as lines of JSON; a partial line after a crash leaves all others readable.

    Lines that cannot be written are counted, and the next written line contains the count. A
    failing log must not stop a run.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.setFormatter(_JsonLine())
        self._path = path
        self._file: FileIO | None = None
        self._torn = False
        self._lost = 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record if possible."""
        if self._lost:
            record.lines_lost = self._lost
        try:
            line = self.format(record).encode() + b"\n"
            if self._file is None:
                # Open it with the first record, so that a refused run leaves no file behind.
                make_private_folder(self._path.parent)
                # In mode "a", every write goes to the end, regardless of the position after
                # checking the last byte.
                self._file = FileIO(self._path, "a+", opener=private)
                if self._file.tell():
                    self._file.seek(-1, 2)
                    self._torn = self._file.read(1) != b"\n"
            # The newline ends the partial line before it, so that this one is separate.
            whole = b"\n" + line if self._torn else line
            self._torn = self._file.write(whole) < len(whole)
            # Without room for the whole line, it is lost too.
            self._lost = self._lost + 1 if self._torn else 0
        except Exception:
            self._lost += 1


_STYLES = {logging.DEBUG: "dim", logging.INFO: "cyan", logging.WARNING: "yellow"}


class _ConsoleHandler(logging.Handler):
    """Prints one unfolded line for each event with its extra fields, so that ``grep`` works."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record if possible, because a failing log must not stop a run."""
        with suppress(Exception):
            # Without fields of other packages, some of which add fields with an underscore to every
            # record.
            fields = merge_record_extra(record, {}, RESERVED_ATTRS)
            if record.exc_info and record.exc_info[1]:
                fields["error"] = repr(record.exc_info[1])
            figures = " ".join(f"{name}={_safe(value)}" for name, value in fields.items())
            line = Text.assemble(
                (f"{datetime.fromtimestamp(record.created, UTC):%H:%M:%SZ} ", "dim"),
                (f"{record.levelname.lower()} ", _STYLES.get(record.levelno, "red")),
                log_text(record.getMessage()),
                (f" {figures}", "dim"),
            )
            self._console.print(line, soft_wrap=True)


def _safe(value: Any) -> Any:
    """Return a number unchanged, anything else as redacted text."""
    return value if value is None or isinstance(value, bool | int | float) else log_text(str(value))


LONGEST = 1000
KEPT_AT_THE_END = 300


def log_text(text: str) -> str:
    """Return an error's text for a log: one line without keys and control characters, shortened.

    A model's reply that an error quotes is left out, because it may quote the prompt. The results
    contain it.

    >>> log_text("no such key: sk-abcdefgh12345678")
    'no such key: ***'
    >>> print(log_text("fine\\n\\x1b[31mERROR"))
    fine\\n\\x1b[31mERROR
    """
    # `ReplyError` puts these words before the reply at the end of its message.
    shown = one_line(text.partition(" Raw reply: ")[0])
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[: LONGEST - KEPT_AT_THE_END]} ... {shown[-KEPT_AT_THE_END:]}"
