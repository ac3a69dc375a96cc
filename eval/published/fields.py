"""What the readers of published files share: rows whose fields are there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ...state.errors import DataError
from ..files import Row, RowFile


def checked(file: RowFile, *fields: str) -> Iterator[Row]:
    """The rows of a file, each of which has these fields.

    Raises:
        DataError: one has not; names file, line and field.
    """
    for line, row in file.rows():
        if missing := [field for field in fields if field not in row]:
            raise DataError(
                f"{file.path}, {file.unit} {line}: field {missing[0]!r} is missing; there are {', '.join(row)}"
            )
        yield line, row


def digest_of(text: str) -> str:
    """A short name for what all items that share a text have in common."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
