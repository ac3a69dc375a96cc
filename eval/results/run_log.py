"""Write the log of a run; secrets and control characters are taken out of all text."""

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
"""Loggers whose warnings go to the log as well, rather than to the middle of the screen."""


@contextmanager
def logging_to(
    folder: Path | None, console: Console | None, notices: Console | None = None
) -> Iterator[None]:
    """Log what happens inside.

    Args:
        folder: gets ``log.jsonl``: a line an event, ``time`` in UTC, ``level``, ``logger``, ``event`` and its figures.
            Several starts of a run append to it.
        console: gets the same, for people.
        notices: gets, where ``console`` does not, what a person is to be told at once.
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
    """Send what happens inside to these handlers alone, from that level on; of other packages' loggers, warnings."""
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
        """Format the time in UTC, so that no hour comes twice when clocks change."""
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Redact the message, since it may quote text from anywhere."""
        return {name: _safe(value) for name, value in log_data.items()}


class _LogFile(logging.Handler):
    """Writes events as lines of JSON; a line that a crash or a full disk cuts off leaves all others readable.

    Lines that cannot be written are counted, and the next one that can be says how many: a log is not worth a run.
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
        """Write a record if it can be written."""
        if self._lost:
            record.lines_lost = self._lost
        try:
            line = self.format(record).encode() + b"\n"
            if self._file is None:
                # With the first record, so that a run that is refused leaves no file behind.
                make_private_folder(self._path.parent)
                # In mode "a" every write goes to the end, wherever the check of the last byte has left the position.
                self._file = FileIO(self._path, "a+", opener=private)
                if self._file.tell():
                    self._file.seek(-1, 2)
                    self._torn = self._file.read(1) != b"\n"
            # The newline ends the half line before it, so that this one stands alone.
            whole = b"\n" + line if self._torn else line
            self._torn = self._file.write(whole) < len(whole)
            # Without room for the whole line, it is lost, too.
            self._lost = self._lost + 1 if self._torn else 0
        except Exception:
            self._lost += 1


_STYLES = {logging.DEBUG: "dim", logging.INFO: "cyan", logging.WARNING: "yellow"}


class _ConsoleHandler(logging.Handler):
    """Prints one line for each event, with its extra fields; never folded, so that ``grep`` finds it whole."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record if it can be printed: a log is not worth a run."""
        with suppress(Exception):
            # Without those of other packages, which put some into every record of the process, with an underscore.
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
    """Return a number as it is, anything else as redacted text."""
    return value if value is None or isinstance(value, bool | int | float) else log_text(str(value))


LONGEST = 1000
KEPT_AT_THE_END = 300


def log_text(text: str) -> str:
    """Make the words of an error fit for a log: one line without keys and control characters, and not too long.

    A model's reply is left out where an error quotes it, since it may quote the prompt in turn; it stands in the
    results.

    >>> log_text("no such key: sk-abcdefgh12345678")
    'no such key: ***'
    >>> print(log_text("fine\\n\\x1b[31mERROR"))
    fine\\n\\x1b[31mERROR
    """
    # The words before the reply that `ReplyError` quotes at the end of its message.
    shown = one_line(text.partition(" Raw reply: ")[0])
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[: LONGEST - KEPT_AT_THE_END]} ... {shown[-KEPT_AT_THE_END:]}"
