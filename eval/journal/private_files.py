"""Create files and folders that their owner alone can read: they hold judged texts, replies and what a run was given.

What is there already keeps its permissions, since somebody may have chosen them; ``warn_of_readers`` tells of them.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

log = logging.getLogger("jurygraph.run")

PRIVATE = 0o600
"""The mode of a file that its owner alone can read."""
_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private(path: str, flags: int) -> int:
    """Open a file for ``open(..., opener=private)``; one that is made is its owner's alone."""
    return os.open(path, flags, PRIVATE)


def make_private_folder(path: Path) -> None:
    """Make a folder, where there is none; folders above it that are missing get the usual permissions.

    Raises:
        FileExistsError: a file stands there.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def whole_file(path: Path, ending: str = ".tmp", public: bool = False) -> Iterator[BinaryIO]:
    """Write a file whole or not at all: it is written aside, flushed, and put in the place of what is there.

    Args:
        path: the file; one that is there keeps its permissions.
        ending: ends the name of the file while it is written.
        public: whether a new file gets the usual permissions, and is not its owner's alone.
    """
    # Beside the file and not in a temporary folder: only within one file system is a file replaced at once.
    fresh = path.with_name(f"{path.name}{ending}")
    try:
        with open(fresh, "wb", opener=None if public else private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, fresh)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def warn_of_readers(folder: Path, names: tuple[str, ...]) -> None:
    """Log a warning where these files of a folder, made earlier or by somebody else, can be read by others."""
    if os.name != "posix" or not _is_open_to_others(folder):
        return
    readable = [name for name in names if (folder / name).exists() and _is_open_to_others(folder / name)]
    if readable:
        listed = ", ".join(readable)
        log.warning("other users can read %s in %s; `chmod -R go= %s` stops that", listed, folder, folder)


def _is_open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & _OF_OTHERS)
