"""Where fetched files are kept, and what is remembered of them: the SHA-256 that each had when it was checked."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from uuid import uuid4

from ...state.errors import DataError

CACHE = "JURYGRAPH_CACHE"
SUMS = "SHA256SUMS"


def cache_folder() -> Path | None:
    """The folder that ``JURYGRAPH_CACHE`` names; ``None`` for the fetching packages' own."""
    named = os.environ.get(CACHE)
    return Path(named).expanduser() if named else None


def sha256(path: Path) -> str:
    """Of a file's content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_blob(path: Path) -> str:
    """The name that git gives a file's content: the SHA-1 of a short header and the content."""
    found = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


class Sums:
    """The files of a folder that were checked, in the form that ``sha256sum --check`` reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / SUMS
        lines = self._file.read_text(encoding="utf-8").splitlines() if self._file.exists() else []
        self._known = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}

    def holds(self, name: str) -> bool:
        """Whether a file is there and is what it was when it was checked.

        Raises:
            DataError: it is there and is something else.
        """
        path, known = self._folder / name, self._known.get(name)
        if known is None or not path.exists():
            return False
        if (found := sha256(path)) != known:
            raise DataError(
                f"{path}: was changed after it was fetched (SHA-256 {found[:12]}..., was {known[:12]}...); "
                "delete it, and it is fetched again"
            )
        return True

    def add(self, name: str) -> None:
        """A file has been checked.

        Raises:
            DataError: one of that name was checked before, and held something else.
        """
        found, known = sha256(self._folder / name), self._known.get(name)
        if known is not None and known != found:
            raise DataError(
                f"{self._folder / name}: what was fetched now is not what was fetched before "
                f"(SHA-256 {found[:12]}..., was {known[:12]}...)"
            )
        self._known[name] = found
        fresh = self._file.with_name(f"{SUMS}.{uuid4().hex}")  # somebody else may be fetching the same
        lines = (f"{digest}  {held}\n" for held, digest in self._known.items())
        fresh.write_text("".join(lines), encoding="utf-8")
        fresh.replace(self._file)
