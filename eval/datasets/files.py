"""Read and check the rows of a file: JSON lines, JSON, CSV, TSV or plain text, also compressed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import re
import stat
import zlib
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from ...state.errors import DataError
from .reading import SEPARATORS, guessed_encoding, marked_encoding, separator_of

LONGEST_LINE = 1 << 26
"""Characters: a longer line or cell means another kind of file or a quote that is not closed."""

MOST_EXPANDED = 1 << 30
"""Bytes to which a compressed file that is read in one piece may expand."""

_EXPANDED_FREELY = 1 << 26
_HIGHEST_RATIO = 100
"""Beyond ``_EXPANDED_FREELY`` bytes, a file may expand to this multiple; tables reach 10 to 30."""

# Single cells contain whole articles, longer than the csv module's default of 131,072 characters.
csv.field_size_limit(LONGEST_LINE)

Row = tuple[int, dict[str, Any]]
"""A row: its number and its fields."""
_Content = gzip.GzipFile | io.BufferedReader
_CHUNK = 1 << 18
_HEADER_LINES = 20
"""The lines in which a header must end if its names contain line ends."""


class RowFile:
    """Reads a JSONL, JSON, CSV or TSV file (by its name), also ``.gz``, row by row.

    A file can be read many times. The first complete pass records a digest of the content; a later
    pass over other content is an error. JSON that is not in lines is read in one piece.

    Attributes:
        path: the path of the file.
        digest: the digest of the decompressed content; empty before the first pass is complete.
        line_name: the unit of a row's number: ``line`` or ``row``.

    Args:
        path: the path of the file.
        takes_text: whether a ``.txt`` file may be read, as published datasets have them. Each line
            that is not blank becomes a row ``{"text": ...}``.
    """

    def __init__(self, path: Path, takes_text: bool = False) -> None:
        self.path = path
        self._takes_text = takes_text
        self._name = path.name.removesuffix(".gz").lower()
        self._is_csv = self._name.endswith((".csv", ".tsv", ".tab"))
        self.digest = ""
        self._version: tuple[int, int] | None = None
        self._list = ""

    @cached_property
    def line_name(self) -> str:
        """Return ``row`` for JSON that is read in one piece, else ``line``.

        Such JSON is an array, an object over several lines, or a single object in one line. Its
        rows are counted from 1.
        """
        if self._name.endswith(".json"):
            # An error here is raised again when the rows are read.
            with suppress(DataError, OSError, EOFError, zlib.error), self._open() as content:
                # A byte order mark and JSON's white space may precede the bracket.
                beginning = content.read(_CHUNK).lstrip(_BEFORE_JSON)
                if beginning.startswith(b"["):
                    return "row"
                if beginning.startswith(b"{"):
                    content.seek(0)
                    line = b""
                    while not line.strip(_BEFORE_JSON):
                        line = content.readline(LONGEST_LINE)
                    after = content.read(_CHUNK)
                    opens_only = line.strip(_BEFORE_JSON) == b"{" or not line.rstrip().endswith(
                        b"}"
                    )
                    return "row" if opens_only or not after.strip() else "line"
        return "line"

    def rows(self) -> Iterator[Row]:
        """Yield the rows, from the beginning.

        Raises:
            DataError: a file that cannot be read or has changed, or a line that is not text, not
                JSON or not an object; names file and line.
        """
        # An incomplete first pass leaves a version without a digest: there is nothing to compare
        # with yet.
        self._version = self._version if self.digest else None
        try:
            # Open twice at once, so that the digest belongs to the rows that are read, even if
            # another file replaces this one meanwhile.
            with self._open() as content, self._open() as whole:
                for row in self._parsed(content):
                    # Check after each row, so that a row from a changed file is not used.
                    self._check_version(os.fstat(whole.fileno()))
                    yield row
                digest = _digest(whole)
                # A change after the last row would give these rows the digest of others.
                self._check_version(os.fstat(whole.fileno()))
        except UnicodeDecodeError as error:
            raise self._not_text() from error
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.path, error) from error
        if self.digest not in ("", digest):
            raise self._changed()
        self.digest = digest

    def rows_with(self, text: str) -> Iterator[Row]:
        """Yield the rows whose line contains a text, without parsing the others.

        Only for a file with a JSON object in each line. The file is not compared with an earlier
        pass.
        """
        with self._open() as content:
            for number, line in enumerate(self._lines(content), start=1):
                if text in line:
                    where = f"{self.path}, line {number}"
                    yield number, _named_fields(_parsed_json(line, where), where)

    @property
    def has_object_lines(self) -> bool:
        """Whether each line is a JSON object, by the file's name."""
        return self._name.endswith((".jsonl", ".ndjson"))

    def current_digest(self) -> str:
        """Return the digest of the decompressed content as it is now.

        Raises:
            DataError: the file cannot be read.
        """
        try:
            with self._open() as content:
                return _digest(content)
        except (OSError, EOFError, zlib.error) as error:
            raise unreadable(self.path, error) from error

    def _parsed(self, content: _Content) -> Iterator[Row]:
        """Yield the rows in the file's content."""
        if self._is_csv:
            yield from self._csv_rows(content)
        elif self.line_name == "row":
            text = self._whole(content).decode(self.encoding)
            rows, self._list = _rows_of_json(text, str(self.path))
            for number, row in enumerate(rows, start=1):
                yield number, _named_fields(row, f"{self.path}, row {number}")
        else:
            yield from self._rows_by_line(content)

    def _whole(self, content: _Content) -> bytes:
        """Read all content; refuse a small compressed file that would fill the memory."""
        pieces = list[bytes]()
        expanded = 0
        packed = self.path.stat().st_size
        while piece := content.read(_CHUNK):
            pieces.append(piece)
            expanded += len(piece)
            if self.path.suffix == ".gz":
                refuse_expansion(self.path, packed, expanded)
        return b"".join(pieces)

    def _rows_by_line(self, content: _Content) -> Iterator[Row]:
        is_text = self._takes_text and self._name.endswith(".txt")
        if not is_text and not self._name.endswith((".jsonl", ".ndjson", ".json")):
            raise DataError(
                f"{self.path}: this kind of file cannot be read as a dataset; expected {KINDS}"
            )
        for number, line in enumerate(self._lines(content), start=1):
            if not line.strip():
                continue
            where = f"{self.path}, line {number}"
            if is_text:
                yield number, {"text": line.rstrip("\r\n")}
            elif line.strip() == "[":
                raise DataError(
                    f"{where}: an array, not one row per line: end the file's name with .json"
                )
            else:
                yield number, _named_fields(_parsed_json(line, where), where)

    def _csv_rows(self, content: _Content) -> Iterator[Row]:
        # With newline="" the csv module itself separates line ends from those inside quoted cells.
        # Without strict mode, it reads everything after an unclosed quote as one cell.
        lines = self._lines(content, newline="")
        if self._has_bare_quotes:
            reader = csv.reader(
                lines, strict=True, delimiter=self.separator, quoting=csv.QUOTE_NONE
            )
        else:
            reader = csv.reader(lines, strict=True, delimiter=self.separator)
        before = 0
        try:
            columns = next(reader, [])
            if reader.line_num == 1 and re.fullmatch(
                "sep=.?", self.separator.join(columns).strip()
            ):
                columns = next(reader, [])
            before = reader.line_num
            refuse_repeated(filter(None, columns), f"{self.path}, line {before}: ")
            for cells in reader:
                before = reader.line_num
                if cells:  # a blank line has none
                    yield before, named_cells(columns, cells, f"{self.path}, line {before}")
        except csv.Error as error:
            last = f" to {reader.line_num}" if reader.line_num > before + 1 else ""
            raise DataError(
                f"{self.path}, line {before + 1}{last}: not CSV: {error}; "
                "put a cell that contains a quote into quotes, and double each quote inside it"
            ) from error

    def _lines(self, content: _Content, newline: str = "\n") -> Iterator[str]:
        """Yield the lines; refuse one that is too long before it is in memory."""
        with self._text(content, newline) as text:
            for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE), ""), start=1):
                if len(line) == LONGEST_LINE:
                    raise DataError(
                        f"{self.path}, line {number}: has more than {LONGEST_LINE:,} characters, too many "
                        "for a row"
                    )
                yield line

    def _text(self, content: _Content, newline: str = "\n") -> io.TextIOWrapper:
        # Lines end with "\n" by default: JSON strings may contain U+2028 and similar characters.
        return io.TextIOWrapper(content, encoding=self.encoding, newline=newline)

    @cached_property
    def encoding(self) -> str:
        """Return the encoding: from the first bytes, else UTF-8; for a CSV file it may be guessed.

        Raises:
            DataError: a CSV in no known encoding, or in several.
        """
        with self._open() as content:
            encoding = marked_encoding(content.read(4))
            if encoding == "utf-8-sig" and self._is_csv:
                content.seek(0)
                lines = iter(partial(content.readline, LONGEST_LINE), b"")
                encoding = guessed_encoding(lines, str(self.path))
        return encoding

    @cached_property
    def separator(self) -> str:
        """Return the separator of a CSV file's columns."""
        with self._open() as content, self._text(content, newline="") as text:
            first = list(islice(iter(partial(text.readline, LONGEST_LINE), ""), _HEADER_LINES))
        # Spreadsheets state the separator in a first line such as "sep=;".
        stated = re.fullmatch(r"sep=(.)\s*", first[0]) if first else None
        return stated[1] if stated else separator_of(first)

    @cached_property
    def _has_bare_quotes(self) -> bool:
        """Whether the quotes of a file with tabs are part of its texts, as many tools write them.

        They are if all lines below the first have the same number of cells, and if a cell begins
        with a quote but does not end with one. Reading this quote as the beginning of a quoted cell
        would join cells and lines.
        """
        if self.separator != "\t":
            return False
        bare = False
        with self._open() as content:
            lines = self._lines(content, newline="")
            columns = next(lines, "").count("\t") + 1
            of_rows: int | None = None
            for line in lines:
                if not line.strip():
                    continue
                cells = line.rstrip("\r\n").split("\t")
                of_rows = of_rows or len(cells)
                if len(cells) != of_rows or len(cells) > columns:
                    return False
                bare = bare or any(
                    cell.startswith('"') and not _IN_QUOTES.fullmatch(cell) for cell in cells
                )
        return bare

    def form(self) -> list[str]:
        """Describe the file's encoding and separator if they are unusual."""
        words = [] if self.encoding == "utf-8-sig" else [f"as {self.encoding}"]
        usual = "," if self._name.endswith(".csv") else "\t"
        if self._is_csv and self.separator != usual:
            words.append(
                f"with {SEPARATORS.get(self.separator, repr(self.separator))} between columns"
            )
        if self._is_csv and self._has_bare_quotes:
            words.append("with quotes as parts of texts")
        if self._list:
            words.append(f"from the list {self._list!r}")
        return words

    def _open(self) -> _Content:
        if stat.S_ISFIFO(self.path.stat().st_mode):
            raise DataError(
                f"{self.path}: a pipe can be read only once; write its content to a file"
            )
        return gzip.open(self.path) if self.path.suffix == ".gz" else self.path.open("rb")

    def _check_version(self, status: os.stat_result) -> None:
        """Raise an error if the file has changed since the digest was recorded.

        A new date alone is not a change: the content is hashed again before the file is refused.
        """
        version = status.st_size, status.st_mtime_ns
        if self._version not in (None, version):
            with self._open() as content:
                if _digest(content) != self.digest:
                    raise self._changed()
        self._version = version

    def _changed(self) -> DataError:
        remedy = "leave it unchanged and start again"
        return DataError(f"{self.path}: the file has changed since its rows were checked; {remedy}")

    def _not_text(self) -> DataError:
        """Return an error that names the first undecodable byte and its line.

        The decoder reads ahead and cannot name them.
        """
        # Without "-sig", a byte order mark counts as a character, as it does in the bytes.
        encoding = self.encoding.removesuffix("-sig")
        number = 1
        position = 0
        decoder = getincrementaldecoder(encoding)()
        with self._open() as content:
            # A piece of UTF-16 may end within a character, which is decoded with the next piece;
            # the last piece may be the end of the file.
            for piece in chain(iter(partial(content.read, _CHUNK), b""), (b"",)):
                left_over = len(decoder.getstate()[0])
                try:
                    number += decoder.decode(piece, final=not piece).count("\n")
                except UnicodeDecodeError as error:
                    number += error.object[: error.start].decode(error.encoding).count("\n")
                    where = f"byte {position - left_over + error.start}: {error.reason}"
                    problem = f"line {number}: not {encoding.upper()} text ({where})"
                    return DataError(f"{self.path}, {problem}; save the file as UTF-8")
                position += len(piece)
        return self._changed()


_IN_QUOTES = re.compile(
    r"""
    "(?: [^"] | "" )*"       # a cell in quotes, inside which a quote is doubled
    """,
    re.VERBOSE,
)


def _digest(content: _Content) -> str:
    return hashlib.file_digest(content, "sha256").hexdigest()[:12]


KINDS = ".jsonl, .json, .csv or .tsv (also .gz), .parquet, .xlsx or .eval"


def _parsed_json(text: str, where: str) -> Any:
    """Read JSON; a faulty object becomes an error object, so that the caller can name its row."""
    try:
        return json.loads(text, object_pairs_hook=_object_or_fault)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}") from error


_BEFORE_JSON = b"\xef\xbb\xbf \t\r\n"

# Lists with these names contain the rows of a file; a single row has no such fields.
_ROW_LISTS = (
    "data",
    "rows",
    "items",
    "examples",
    "instances",
    "records",
    "samples",
    "results",
    "questions",
)

# An object with one of these keys is a message of a conversation.
_ROLES = {"role", "content", "from"}


def _rows_of_json(text: str, where: str) -> tuple[list[Any], str]:
    """Return the rows of JSON that is read in one piece, and the name of their list.

    The rows are an array, a list in an object (or in an object inside it), one or several objects,
    or the values of an object, such as objects by id.

    Raises:
        DataError: not JSON, or an object with several lists that may be the rows.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_object_or_fault)
    values: list[Any] = []
    place = 0
    try:
        while (place := _next_value(text, place)) < len(text):
            value, place = decoder.raw_decode(text, place)
            values.append(value)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON: {error}") from error
    if len(values) != 1 or not isinstance(values[0], list | dict):
        return values, ""
    if isinstance(values[0], list):
        return values[0], ""
    found = _lists_of_objects(values[0]) or {
        f"{outer}.{name}": rows
        for outer, value in values[0].items()
        if isinstance(value, dict)
        for name, rows in _lists_of_objects(value).items()
    }
    preferred = [name for name in found if name.rpartition(".")[2] in _ROW_LISTS]
    if len(preferred) == 1:
        return found[preferred[0]], preferred[0]
    if not preferred:
        if len(found) == len(values[0]) == 1:
            [(name, rows)] = found.items()
            if len(rows) > 1 and not _ROLES & rows[0].keys():
                return rows, name
        return _objects_by_name(values[0]) or values, ""
    lists = ", ".join(map(repr, found))
    raise DataError(
        f"{where}: an object with the lists {lists}; save the list with the rows as a file of its own"
    )


def _next_value(text: str, place: int) -> int:
    """Return where the next value begins, after white space and an initial byte order mark."""
    while place < len(text) and text[place] in " \t\r\n\ufeff":
        place += 1
    return place


def _lists_of_objects(value: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists in an object that contain only objects."""
    return {
        name: inner
        for name, inner in value.items()
        if isinstance(inner, list) and inner and all(isinstance(row, dict) for row in inner)
    }


def _objects_by_name(value: Mapping[str, Any]) -> list[Any]:
    """Return the values of an object if they are rows: two or more with three keys in common.

    A row without an ``id`` gets its key as the id.
    """
    rows = [*value.values()]
    if len(rows) < 2 or not all(isinstance(row, dict) for row in rows):
        return []
    shared = set.intersection(*({*row} for row in rows))
    # Frames saved by column, with one object per column, are refused elsewhere.
    if len(shared) < 3 or "0" in shared:
        return []
    return [{"id": name, **row} for name, row in value.items()]


def _named_fields(row: Any, where: str) -> dict[str, Any]:
    if isinstance(row, DoubledKeyError):
        raise DataError(f"{where}: {row}")
    if not isinstance(row, dict):
        raise DataError(f"{where}: expected an object with named fields, got {type(row).__name__}")
    if row and all(isinstance(column, dict) and "0" in column for column in row.values()):
        raise DataError(
            f"{where}: contains columns instead of rows; save a pandas frame with df.to_json(path, "
            "orient='records', lines=True)"
        )
    return row


class DoubledKeyError(ValueError):
    """Raised for a JSON object with a repeated key; Python would silently use the last value."""


def _object_or_fault(pairs: list[tuple[str, Any]]) -> dict[str, Any] | DoubledKeyError:
    """Make an object of its members; return the error if a key is repeated, also inside."""
    for _, value in pairs:
        for member in value if isinstance(value, list) else (value,):
            if isinstance(member, DoubledKeyError):
                return member
    members = dict(pairs)
    if len(members) < len(pairs):
        return DoubledKeyError(
            f"the key {repeated(name for name, _ in pairs)!r} occurs twice in one object"
        )
    return members


def repeated(names: Iterable[str]) -> str | None:
    """Return the first repeated name; ``None`` if there is none."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def refuse_repeated(columns: Iterable[str], place: str = "") -> None:
    """Raise a DataError if two columns have the same name."""
    if (name := repeated(columns)) is not None:
        raise DataError(f"{place}two columns are called {name!r}")


def named_cells(columns: Sequence[str], cells: Sequence[Any], where: str) -> dict[str, Any]:
    """Make a row from a line of cells; an empty cell is an empty string.

    Raises:
        DataError: there are more cells than columns, or a text is missing.
    """
    if any(cell != "" for cell in cells[len(columns) :]):
        raise DataError(f"{where}: more cells than columns")
    # Spreadsheets leave out empty cells at the end of a row. A missing text means that the row is
    # cut off.
    if missing := [name for name in columns[len(cells) :] if name in _MAY_BE_EMPTY]:
        raise DataError(
            f"{where}: has only {len(cells)} cells, and none for the column {missing[0]!r}"
        )
    filled = {key: cell for key, cell in zip(columns, cells, strict=False) if key and cell != ""}
    # An empty cell is a missing value, except in text columns, where it is an empty text.
    empty = {key: "" for key in _MAY_BE_EMPTY if key in columns}
    return {**empty, **unflattened(filled, where)}


_MAY_BE_EMPTY = ("source", "candidate", "answer_1", "answer_2")
_TEXT_CELLS = {*_MAY_BE_EMPTY, "fact", "question", "reference", "id", "group", "system", "category"}


def unflattened(cells: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Make a row of a table's cells, without the empty ones; ``where`` is for messages.

    ``human.coherence`` becomes a field of ``human``. Cells with JSON lists or objects are parsed,
    except in text columns.

    Raises:
        DataError: an object in a cell has a key twice.

    >>> unflattened({"id": "a", "human.coherence": 4, "references": '["It rained."]'}, "row 1")
    {'id': 'a', 'human': {'coherence': 4}, 'references': ['It rained.']}
    """
    row: dict[str, Any] = {}
    for key, cell in cells.items():
        value = (
            _json_cell(cell, where) if isinstance(cell, str) and key not in _TEXT_CELLS else cell
        )
        outer, _, inner = key.partition(".")
        if not inner:
            # Merge an object in a column ``human`` with earlier columns such as ``human.fluency``.
            row[key] = {**row[key], **value} if isinstance(value, dict) and key in row else value
        elif isinstance(row.setdefault(outer, {}), dict):
            row[outer][inner] = value
    return row


def _json_cell(cell: str, where: str) -> Any:
    """Read a cell that contains JSON, and refuse an object with a repeated key.

    >>> _json_cell('{"fluency": 4, "relevance": {"mean": 4, "mean": 2}}', "row 1")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.DataError: row 1: the key 'mean' occurs twice in one object
    """
    if not cell.lstrip().startswith(("[", "{")):
        return cell
    try:
        value = json.loads(cell, object_pairs_hook=_object_or_fault)
    except (ValueError, RecursionError):
        return cell  # a text that only begins with a bracket
    if isinstance(value, DoubledKeyError):
        raise DataError(f"{where}: {value}")
    return value


def refuse_expansion(
    path: Path,
    packed: int,
    expanded: int,
    what: str = "",
    remedy: str = "save it as .jsonl or .csv, which are read row by row",
) -> None:
    """Raise an error if a compressed file expands further than any table does.

    Args:
        path: the file.
        packed: its size in bytes.
        expanded: the number of bytes that were read from it.
        what: the part of its content that is too large.
        remedy: advice for the user.
    """
    limit = min(MOST_EXPANDED, max(_EXPANDED_FREELY, _HIGHEST_RATIO * packed))
    if expanded > limit:
        content = f" ({what})" if what else ""
        raise DataError(
            f"{path}: a compressed file of {packed:,} bytes expands to more than the limit of "
            f"{limit:,} bytes{content}; {remedy}"
        )


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the error for a file that the system cannot read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return DataError(f"{path}: cannot be read: {reason}")


def checked(file: RowFile, *fields: str) -> Iterator[Row]:
    """Yield the rows of a file, and require these fields in each.

    Raises:
        DataError: a row lacks a field; names file, line and field.
    """
    for line, row in file.rows():
        if missing := [field for field in fields if field not in row]:
            raise DataError(
                f"{file.path}, {file.line_name} {line}: field {missing[0]!r} is missing; "
                f"the row has {', '.join(row)}"
            )
        yield line, row


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(text: str) -> str:
    """Return a short name for a text, for example for the group of all items that share it."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


Filter = Mapping[str, str]
"""Selects lines of a file by the values of their fields."""


def split_filter(where: str | Path) -> tuple[Path, Filter]:
    """Split ``FILE?field=value&field=value`` into the file and the values of its chosen lines.

    If a file has this whole name, nothing is split, because a name may contain a question mark.

    >>> split_filter("replies.jsonl?model=gpt-4&swapped=false")
    (PosixPath('replies.jsonl'), {'model': 'gpt-4', 'swapped': 'false'})
    """
    if Path(where).exists():
        return Path(where), {}
    name, _, query = str(where).partition("?")
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return Path(name), {field: value for field, _, value in pairs}


def is_chosen(row: Mapping[str, Any], only: Filter) -> bool:
    """Return whether a row has the values of a filter.

    >>> is_chosen({"swapped": False}, {"swapped": "false"}), is_chosen({"model": "a"}, {"model": "b"})
    (True, False)
    """
    return all(_matches(row.get(field), value) for field, value in only.items())


def _matches(cell: Any, value: str) -> bool:
    # JSON's true and false, or Python's.
    return str(cell) == value or (isinstance(cell, bool) and str(cell).lower() == value)
