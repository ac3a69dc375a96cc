"""Create files and folders that their owner alone can read: they hold judged texts, replies and what a run was given.

What is there already keeps its permissions, since somebody may have chosen them; ``warn_of_readers`` tells of them.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from pathlib import Path

log = logging.getLogger("jurygraph.run")

_OF_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def private(path: str, flags: int) -> int:
    """Open a file for ``open(..., opener=private)``; one that is made is its owner's alone."""
    return os.open(path, flags, 0o600)


def make_private_file(path: Path) -> None:
    """Make an empty file, where there is none."""
    os.close(private(str(path), os.O_CREAT | os.O_RDWR))


def make_private_folder(path: Path) -> None:
    """Make a folder, where there is none; folders above it that are missing get the usual permissions.

    Raises:
        FileExistsError: a file stands there.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def keep_permissions(before: Path, fresh: Path) -> None:
    """Give a file that is about to replace another one the permissions of that one, if it exists."""
    if before.exists():
        shutil.copymode(before, fresh)


def warn_of_readers(folder: Path, names: tuple[str, ...]) -> None:
    """Log a warning where these files of a folder, made earlier or by somebody else, can be read by others."""
    if os.name != "posix" or not _is_open_to_others(folder):
        return
    readable = [name for name in names if (folder / name).exists() and _is_open_to_others(folder / name)]
    if readable:
        log.warning(
            "others can read %s in %s; `chmod -R go= %s` ends that", ", ".join(readable), folder, folder
        )


def _is_open_to_others(path: Path) -> bool:
    return bool(path.stat().st_mode & _OF_OTHERS)
