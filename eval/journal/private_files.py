"""Creates files and folders that only their owner can read, for texts, replies and run inputs.

Existing files keep their permissions, because their owner may have chosen them. ``warn_of_readers``
warns about them.
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
"""The mode of a file that only its owner can read."""
_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private(path: str, flags: int) -> int:
    """Open a file for ``open(..., opener=private)``; only its owner can read a new file."""
    return os.open(path, flags, PRIVATE)


def make_private_folder(path: Path) -> None:
    """Create a folder if there is none; missing parent folders get the usual permissions.

    Raises:
        FileExistsError: a file has this name.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def whole_file(path: Path, ending: str = ".tmp", public: bool = False) -> Iterator[BinaryIO]:
    """Write a file completely or not at all.

    The content goes to a temporary file, which is flushed and then replaces the old one.

    Args:
        path: the file; an existing one keeps its permissions.
        ending: the ending of the temporary file's name.
        public: whether a new file gets the usual permissions instead of private ones.
    """
    # Not in a temporary folder: a file can only be replaced atomically within one file system.
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
    """Log a warning if others can read existing files of a folder."""
    if os.name != "posix" or not _is_open_to_others(folder):
        return
    readable = [
        name for name in names if (folder / name).exists() and _is_open_to_others(folder / name)
    ]
    if readable:
        listed = ", ".join(readable)
        log.warning(
            "other users can read %s in %s; `chmod -R go= %s` stops that", listed, folder, folder
        )


def _is_open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & _OF_OTHERS)
