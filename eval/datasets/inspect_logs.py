"""Read the samples in a log of Inspect (``.eval``).

The log is an archive with a JSON file for each sample and epoch.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from ...nodes.common.plugins import needed
from ...state.errors import DataError
from .files import refuse_expansion

CONVERT = "inspect log convert LOG.eval --to json --output-dir FOLDER"
"""The command of Inspect that writes a log as JSON."""

_PIECE = 1 << 20

_SAMPLE = re.compile(
    r"""
    samples/ (?P<id>.+) _epoch_ (?P<epoch>\d+)
    (?:
        \.json                              # the whole sample
      | (?P<parts> /sample\.json)           # a large sample, whose messages and events are in further files
    )
    """,
    re.VERBOSE | re.DOTALL,
)

# Python reads this compression since version 3.14.
_ZSTANDARD = 93
_LOCAL_HEADER = struct.Struct("<4s22xHH")


def samples(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the samples of a log, by epoch and id.

    Raises:
        DataError: not a log, a sample that cannot be read or expands too far, or no samples.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path)
            for member in members:
                yield _sample(archive, member, path)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: not a log of Inspect: {error}") from error
    except (NotImplementedError, RuntimeError) as error:
        # A compression that this Python cannot read, or a password.
        raise DataError(f"{path}: cannot be read: {error}; convert it with `{CONVERT}`") from error


def _members(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """Return the files of samples in the order in which Inspect shows them."""
    found = []
    for member in archive.infolist():
        match = _SAMPLE.fullmatch(member.filename)
        if match is None:
            continue
        if match["parts"]:
            raise DataError(
                f"{path}: the sample {match['id']} is written in several parts, which are not read; "
                f"convert the log with `{CONVERT}`"
            )
        # Ids are numbers or texts; numbers come first, and 2 before 10.
        number = int(match["id"]) if match["id"].isdecimal() else -1
        found.append(((int(match["epoch"]), number < 0, number, match["id"]), member))
    if not found:
        raise DataError(
            f"{path}: has no samples: not a log of Inspect, or one of a run that has not finished any"
        )
    return [member for _, member in sorted(found, key=lambda of: of[0])]


def _sample(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> dict[str, Any]:
    pieces: list[bytes] = []
    expanded = 0
    with _opened(archive, member) as content:
        while piece := content.read(_PIECE):
            pieces.append(piece)
            expanded += len(piece)
            refuse_expansion(
                path,
                member.compress_size,
                expanded,
                member.filename,
                f"convert it with `{CONVERT}`",
            )
    try:
        sample = json.loads(b"".join(pieces))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: {member.filename} is not JSON: {error}") from error
    if not isinstance(sample, dict):
        raise DataError(f"{path}: {member.filename} has no sample, but {type(sample).__name__}")
    return sample


def _opened(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """Open a file of the archive, even if Python's own reader cannot decompress it.

    Raises:
        NotImplementedError: an unknown compression.
    """
    try:
        return archive.open(member)
    except NotImplementedError:
        if member.compress_type != _ZSTANDARD:
            raise
    lacking = f"logs that newer versions of Inspect write need zstandard: pip install zstandard, or `{CONVERT}`"
    zstandard = needed("zstandard", lacking)
    # The content begins after a header, which states the lengths of the name and of extra fields.
    file = cast("IO[bytes]", archive.fp)
    file.seek(member.header_offset)
    signature, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if signature != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"no header in front of {member.filename}")
    file.seek(name + extra, 1)
    content = _Bounded(file, member.compress_size)
    reader = zstandard.ZstdDecompressor().stream_reader(
        content, read_across_frames=True, closefd=False
    )
    return cast("IO[bytes]", reader)


class _Bounded:
    """The next bytes of a file, up to a given number."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(piece)
        return piece
