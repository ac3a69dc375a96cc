"""What ``--replies`` names: a past run's folder, or a file of recorded replies."""

from __future__ import annotations

from pathlib import Path

from ...state.errors import UsageError
from ..results import FILE
from .lines import RecordedLines
from .past import PastRun
from .recording import Recording


def read_recording(where: str | Path) -> Recording:
    """Open recorded replies.

    Args:
        where: the folder of a run, or a file; ``FILE?field=value&field=value`` takes the lines with these values.

    Raises:
        UsageError: nothing there, or nothing of that kind; a ``DataError`` names file and line.
    """
    path, only = Path(where), {}
    if not path.exists():
        name, _, query = str(where).partition("?")
        path = Path(name)
        only = {key: value for key, _, value in (pair.partition("=") for pair in query.split("&") if pair)}
    if not path.exists():
        raise UsageError(f"no recorded replies: there is no file or folder {str(path)!r}")
    if path.is_dir() or path.name == FILE:
        if only:
            raise UsageError(f"{path} is a run: lines of a file alone are chosen with ?{'&'.join(only)}")
        return PastRun(path if path.is_dir() else path.parent)
    return RecordedLines(path, only)
