"""Writes and reads ``results.jsonl``: one line per item, aspect, protocol and repeat.

Each line is written when its result is finished.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Sized
from functools import lru_cache
from io import FileIO
from math import inf
from pathlib import Path
from struct import Struct
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, cast, overload
from weakref import finalize

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ...state.errors import DataError
from ...state.redaction import redact
from ...state.review_rules import KindOf
from ...state.transcript import USAGE_FIELDS, Turn, Usage
from ...state.verdict import Winner
from ..datasets.items import digest
from ..journal.private_files import private, whole_file
from .known_protocols import role_kinds

FILE = "results.jsonl"

Lines = NDArray[np.integer[Any]]
"""Line numbers, counted from 0."""

Digests = NDArray[np.uint64]
"""The digests of keys, in an order."""


class Key(NamedTuple):
    """The identity of a result within a run."""

    item: str
    aspect: str | None
    protocol: str
    repeat: int


class Result(BaseModel, Usage):
    """The outcome of judging one item: a verdict or an error, the human label, and the transcript.

    ``systems``, ``category``, ``lengths``, ``annotations`` and ``annotators`` are the item's (see
    ``About``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: str
    group: str | None = None
    aspect: str | None = None
    protocol: str
    status: Literal["ok", "failed"]
    score: float | None = None
    scores: tuple[float, float] | None = None
    winner: Winner | None = None
    human: float | Winner | None = None
    rounds: int | None = None
    stop_reason: str | None = None
    score_by_round: tuple[float | tuple[float, float], ...] = ()
    repeat: int = 0
    error: Annotated[str, AfterValidator(redact)] | None = None
    position_consistent: bool | None = None
    systems: tuple[str, ...] = ()
    category: str | None = None
    lengths: tuple[int, ...] = ()
    annotations: tuple[float | Winner | None, ...] = ()
    annotators: tuple[str, ...] = ()
    explained_by: str | None = None
    # The long fields come last, so that `_head` can stop before them.
    details: dict[str, Any] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    transcript: tuple[Turn, ...] = ()

    @property
    def key(self) -> Key:
        """The item, aspect, protocol and repeat that identify the result."""
        return Key(self.item, self.aspect, self.protocol, self.repeat)

    def line(self) -> bytes:
        """Return the result as a line of JSON, with the identifying fields first.

        >>> Result(item="a", protocol="debate", status="failed", error="no words").line()[:26]
        b'{"item":"a","group":null,"'
        """
        names = _ORDER if self.uncounted else _COUNTED
        try:
            return orjson.dumps({name: getattr(self, name) for name in names}) + b"\n"
        except TypeError:
            # Details may contain objects that are not JSON yet, and models write lone surrogates.
            fields = self.model_dump(mode="json")
            ordered = {name: fields[name] for name in names}
            return json.dumps(ordered, ensure_ascii=False).encode(errors="replace") + b"\n"


def kind_of_turns(result: Result) -> KindOf:
    """Return the function that returns the kind of a turn of this result.

    Unknown roles are ``scores``.

    >>> turn = {"role": "critic", "agent": "critic", "round": 1, "value": False}
    >>> kind_of_turns(Result(item="a", protocol="debate", status="ok"))(turn)
    'objects'
    """
    # A wrapper's verdict names the protocol inside in its details.
    kinds = role_kinds(str(result.details.get("of", result.protocol)))
    return lambda turn: kinds.get(turn["role"], "scores")


_FIELDS = list(Result.__annotations__)
# The usage, whose fields are inherited, comes before the error.
_ERROR = _FIELDS.index("error")
_ORDER = (*_FIELDS[:_ERROR], *USAGE_FIELDS, "uncounted", *_FIELDS[_ERROR:])
_COUNTED = tuple(name for name in _ORDER if name != "uncounted")
_HEAD_LENGTH = _COUNTED.index("details")
_LONG_FIELDS = b',"details":'
"""The beginning of the long fields of a line."""
_AFTER_KEY = f',"{_ORDER[_ORDER.index("repeat") + 1]}":'.encode()
"""The beginning of the fields after those of the key and the verdict."""


class StoredResults(Sequence[Result]):
    """Results that stay in their file: each is read when accessed, and none is stored in memory.

    Reading raises ``DataError`` for a line that is not a result, or if the file has been rewritten
    since.
    """

    def __init__(self, path: Path, offsets: NDArray[np.int64], ok: NDArray[np.bool_]) -> None:
        self._path = path.absolute()
        self._offsets = offsets
        self._ok = ok
        self._file_number = path.stat().st_ino if len(offsets) else None

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Result]:
        return (_parsed(line, self._path, offset) for offset, line in self.lines())

    def heads(self) -> Iterator[Mapping[str, Any]]:
        """Yield the fields of each result without details, warnings and transcript."""
        return (_head(line, self._path, offset) for offset, line in self.lines())

    def fields(self, places: Iterable[int] | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield all fields of each result, which takes a fraction of the time that results
        themselves take.

        Args:
            places: those of the results, in the order in which they are wanted; by default, all.
        """
        return (_fields(line, self._path, offset) for offset, line in self.lines(places))

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice | Lines) -> StoredResults: ...
    def __getitem__(self, index: int | slice | Lines) -> Result | StoredResults:
        """Return a result, or for a slice or an array of places, the results in that order."""
        if isinstance(index, slice | np.ndarray):
            return StoredResults(self._path, self._offsets[index], self._ok[index])
        offset = int(self._offsets[index])
        with self._opened() as file:
            file.seek(offset)
            return _parsed(file.readline(), self._path, offset)

    def __repr__(self) -> str:
        return f"<{len(self)} results in {self._path}>"

    @property
    def failed(self) -> StoredResults:
        """The results without a verdict."""
        return self[np.flatnonzero(~self._ok)]

    def lines(self, places: Iterable[int] | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their offsets in the file; arguments as for ``fields``."""
        if not len(self):
            return
        offsets = self._offsets if places is None else (self._offsets[place] for place in places)
        with self._opened() as file:
            here = -1
            for offset in map(int, offsets):
                # Most lines follow one another, and going to where the file is throws away what it
                # has read ahead.
                if offset != here:
                    file.seek(offset)
                line = file.readline()
                here = offset + len(line)
                yield offset, line

    def _opened(self) -> BinaryIO:
        file = self._path.open("rb")
        # `ResultsFile.finish` replaces the file by a new one, for which these offsets are wrong.
        if os.fstat(file.fileno()).st_ino != self._file_number:
            file.close()
            raise DataError(
                f"{self._path}: the file was rewritten after these results were found; read it again"
            )
        return file


_PART = 65_536
"""Digests that are looked up at once."""

_FEW = 1_024
"""Lines that are rewritten at once: as Python numbers, each takes a hundred bytes."""


@lru_cache(4096)
def part_digest(aspect: str | None, protocol: str, repeat: int) -> int:
    """Return the digest of a key without its item."""
    return digest(aspect, protocol, repeat)


def key_digest(key: Key) -> int:
    """Return the digest of a key: that of its item, combined with that of the rest."""
    return digest(key.item) ^ part_digest(*key[1:])


def digests_of(keys: Iterable[Key]) -> Digests:
    """Return the digests of keys in their order, in 8 bytes each."""
    return np.fromiter(map(key_digest, keys), dtype=np.uint64)


class OkKeys(Container[Key], Sized):
    """The keys that have a verdict, as sorted digests of 8 bytes, because there may be millions."""

    def __init__(self, digests: NDArray[np.uint64]) -> None:
        # In a numpy array, a lookup of a single number takes ten times as long.
        self._sorted = np.sort(digests).data

    def count(self, digests: Digests) -> int:
        """Return how many of these keys have a verdict."""
        known = np.asarray(self._sorted)
        if not len(known):
            return 0
        found = 0
        # In parts, which need less memory than all places at once.
        for start in range(0, len(digests), _PART):
            part = digests[start : start + _PART]
            places = np.searchsorted(known, part).clip(max=len(known) - 1)
            found += int((known[places] == part).sum())
        return found

    def __contains__(self, key: object) -> bool:
        wanted = key_digest(cast("Key", key))
        place = bisect_left(self._sorted, wanted)
        return place < len(self._sorted) and self._sorted[place] == wanted

    def __len__(self) -> int:
        return len(self._sorted)


NO_KEYS = OkKeys(np.empty(0, dtype=np.uint64))
"""The keys of a run without results."""


class NumberRows:
    """Collects rows of numbers.

    Args:
        **fields: the type of each field in the notation of ``struct`` and numpy: ``i`` and ``q``
            are integers of four and eight bytes, ``Q`` is an unsigned one, ``d`` is a float (``2d``
            are two of them), ``?`` is a boolean.

    >>> rows = NumberRows(item="i", scores="2d")
    >>> rows.add(7, 0.5, 1.5)
    >>> rows.table()["scores"].tolist()
    [[0.5, 1.5]]
    """

    def __init__(self, **fields: str) -> None:
        self._type = np.dtype([*fields.items()])
        self._packed = Struct("=" + "".join(fields.values())).pack
        self._rows = bytearray()

    def add(self, *numbers: float) -> None:
        """Add a row: the numbers of its fields in order."""
        self._rows += self._packed(*numbers)

    def table(self) -> NDArray[Any]:
        """Return the rows as named columns; no row can be added while the result is in use."""
        return np.frombuffer(self._rows, self._type)


class _LineIndex:
    """The digest of the key of each line, its start, and whether it has a verdict.

    In columns of 17 bytes a line in all, because there may be millions of lines.
    """

    def __init__(self) -> None:
        self._keys = array("Q")
        self._offsets = array("q")
        self._ok = bytearray()

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: int, offset: int, ok: bool) -> None:
        """Add a line."""
        try:
            self._offsets.append(offset)
        except BufferError:
            # Stored results read the columns of the lines so far, which cannot grow meanwhile.
            self._offsets = self._offsets[:]
            self._ok = self._ok[:]
            self._offsets.append(offset)
        self._ok.append(ok)
        self._keys.append(key)

    def keys(self) -> Digests:
        """Return the digests; no line can be added while the result is in use."""
        return np.frombuffer(self._keys, dtype=np.uint64)

    def offsets(self) -> NDArray[np.int64]:
        """Return the starts of the lines."""
        return np.frombuffer(self._offsets, dtype=np.int64)

    def ok(self) -> NDArray[np.bool_]:
        """Return which lines have a verdict."""
        return np.frombuffer(self._ok, dtype=np.bool_)


class ResultsFile:
    """Writes and reads the results of a run.

    The last line of a key counts, so retries replace failures.

    A partial last line, which a killed run may have left, is not read, and is removed before the
    next one is added. A score that is off the scale of its aspect is refused, if the aspects are
    given.
    """

    def __init__(self, folder: Path, aspects: Iterable[Mapping[str, Any]] = ()) -> None:
        self.path = folder / FILE
        self._file: FileIO | None = None
        self._lines: _LineIndex | None = None
        # The start of the next line.
        self._end = 0
        self._scales = {aspect["name"]: (aspect["low"], aspect["high"]) for aspect in aspects}

    def add(self, result: Result) -> None:
        """Append a result, which then survives the end of the process (after ``finish``: a crash).

        Raises:
            OSError: it could not be written completely; the file is unchanged.
        """
        # Create the index before this line is in the file, or it would count the line twice.
        index = self._index()
        line = result.line()
        if self._file is None:
            # A partial line may follow the complete ones.
            if self.path.exists():
                os.truncate(self.path, self._end)
            # Unbuffered, so that a written line outlives the process.
            self._file = FileIO(self.path, "a", opener=private)
            finalize(self, self._file.close)
        written = 0
        try:  # a full disk takes only part of a line
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError:
            self._file.truncate(os.fstat(self._file.fileno()).st_size - written)
            raise
        index.add(key_digest(result.key), self._end, result.status == "ok")
        self._end += len(line)

    def close(self) -> None:
        """Close the file; ``add`` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> StoredResults:
        """Return all results, the last one of each key, in order of the keys' first occurrence.

        Raises:
            DataError: a line that is not a result; the message names file and line.
        """
        return self._stored(_latest(self._index().keys()))

    def of_item(self, item: str) -> list[Result]:
        """Return all results of one item, the last one of each key."""
        # Searching a line for the name is much faster than parsing it.
        results = {}
        name = orjson.dumps(item)
        for offset, line in _whole_lines(self.path):
            if name not in line:
                continue
            key, _ = _about(line, self.path, offset, self._scales)
            if key.item == item:
                results[key] = _parsed(line, self.path, offset)
        return list(results.values())

    def keys(self) -> list[Key]:
        """Return the keys of all results, in order of first occurrence.

        Raises:
            DataError: a line that is not a result; the message names file and line.
        """
        return [
            _about(line, self.path, offset, self._scales)[0] for offset, line in self.read().lines()
        ]

    def ok_keys(self) -> OkKeys:
        """Return the keys whose last result is a verdict.

        Raises:
            DataError: a line that is not a result; the message names file and line.
        """
        index = self._index()
        keys = index.keys()
        ok = index.ok()
        latest = _latest(keys)
        if latest is not None:
            keys = keys[latest]
            ok = ok[latest]
        return OkKeys(keys if ok.all() else keys[ok])

    def finish(self, keys: Iterable[Key] | Digests) -> StoredResults:
        """Rewrite the file with one line per key, in the order of the keys, then other results.

        The new file replaces the old one at once, or not at all. Keys without a result are left
        out.

        Args:
            keys: the keys, or their digests.

        Returns:
            the results of the keys, in their order.
        """
        if self._file is not None:
            os.fsync(self._file.fileno())
        self.close()
        index = self._index()
        digests = keys if isinstance(keys, np.ndarray) else digests_of(keys)
        # A file with a partial last line is always rewritten.
        if not self._has_partial_line() and np.array_equal(digests, index.keys()):
            return self._stored(None)
        lines, wanted = _in_order(digests, index.keys())
        # Free what is not needed any more: each takes 8 bytes per line.
        del digests, keys
        if self._has_partial_line() or not _are_all(lines, len(index)):
            self._lines, self._end = self._rewritten(index, lines)
        return self._stored(slice(wanted))

    def _rewritten(self, index: _LineIndex, lines: Lines) -> tuple[_LineIndex, int]:
        """Write some lines of the file to a new one in its place; return its index and its size."""
        rewritten = _LineIndex()
        end = 0
        with self.path.open("rb") as old, whole_file(self.path) as new:
            for start in range(0, len(lines), _FEW):
                part = lines[start : start + _FEW]
                columns = (index.keys()[part], index.offsets()[part], index.ok()[part])
                for key, offset, ok in zip(*(column.tolist() for column in columns), strict=True):
                    old.seek(offset)
                    rewritten.add(key, end, ok)
                    end += new.write(old.readline())
        return rewritten, end

    def _has_partial_line(self) -> bool:
        """Return whether the file goes on after its complete lines."""
        return self.path.exists() and self.path.stat().st_size != self._end

    def _index(self) -> _LineIndex:
        if self._lines is None:
            index = _LineIndex()
            for offset, line in _whole_lines(self.path):
                key, ok = _about(line, self.path, offset, self._scales)
                index.add(key_digest(key), offset, ok)
                self._end = offset + len(line)
            self._lines = index
        return self._lines

    def _stored(self, lines: Lines | slice | None) -> StoredResults:
        """Return the results in some lines; ``None``: in all."""
        index = self._index()
        # Slices of the columns are not copied.
        chosen = slice(None) if lines is None else lines
        return StoredResults(self.path, index.offsets()[chosen], index.ok()[chosen])


def _latest(keys: Digests) -> Lines | None:
    """Return the last line of each key, in order of the keys' first occurrence.

    ``None`` if no key occurs twice: all lines in their order.
    """
    # Most files have no key twice, and this takes a fraction of the memory.
    in_order = np.sort(keys)
    if not (in_order[1:] == in_order[:-1]).any():
        return None
    del in_order
    # `np.unique` only finds first occurrences; in the reversed array, these are the last ones.
    _, first = np.unique(keys, return_index=True)
    _, from_the_end = np.unique(keys[::-1], return_index=True)
    return (len(keys) - 1 - from_the_end)[np.argsort(first)]


def _in_order(digests: Digests, keys: Digests) -> tuple[Lines, int]:
    """Return the latest line of each digest that has one, then the latest lines of other keys.

    The others stay in order.

    Returns:
        the numbers of the lines, and how many of them are the digests'.
    """
    latest = _latest(keys)
    # Four bytes are enough for the number of a line.
    if latest is None:
        by_key = np.argsort(keys).astype(np.uint32)
    else:
        by_key = latest[np.argsort(keys[latest])].astype(np.uint32)
    known = keys[by_key]
    lines = np.empty(len(keys), dtype=np.uint32)
    others = np.ones(len(keys), dtype=np.bool_)
    count = 0
    for start in range(0, len(digests) if len(keys) else 0, _PART):
        part = digests[start : start + _PART]
        found = np.searchsorted(known, part).clip(max=len(known) - 1)
        places = by_key[found[known[found] == part]]
        lines[count : count + len(places)] = places
        others[places] = False
        count += len(places)
    del by_key, known
    rest = np.flatnonzero(others) if latest is None else latest[others[latest]]
    lines[count : count + len(rest)] = rest
    return lines[: count + len(rest)], count


def _are_all(lines: Lines, number: int) -> bool:
    """Return whether these are all of a number of lines, in their order."""
    return len(lines) == number and np.array_equal(lines, np.arange(number, dtype=np.uint32))


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines with their offsets in bytes."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield offset, line
                offset += len(line)


def _about(line: bytes, path: Path, offset: int, scales: Mapping[str, Any]) -> tuple[Key, bool]:
    """Return the key of a line, and whether it has a verdict, without decoding its other fields."""
    # This cannot occur inside a JSON string, because quotes are escaped there.
    end = line.find(_AFTER_KEY) if line.endswith(b"}\n") else -1
    try:
        row = orjson.loads(line[:end] + b"}" if end > 0 else line)
        key = Key(row["item"], row["aspect"], row["protocol"], row["repeat"])
        ok = row["status"] == "ok"
        scale = scales.get(key.aspect or "")
        score = inf if row["score"] is None else row["score"]
        # Means of scores may exceed the ends by rounding.
        wrong = ok and scale and not scale[0] - 1e-6 <= score <= scale[1] + 1e-6
    except (ValueError, LookupError, TypeError):
        # A field with a default may be absent. A line that is not a result gets its error message
        # here.
        result = _parsed(line, path, offset)
        return result.key, result.status == "ok"
    if wrong and scale:
        raise DataError(
            f"{path}, line {_number(path, offset)}: score: {row['score']} "
            f"is off the scale of {key.aspect}, {scale[0]:g} to {scale[1]:g}; "
            "no judge can have given it"
        )
    return key, ok


def _head(line: bytes, path: Path, offset: int) -> Mapping[str, Any]:
    """Parse the fields of a line up to its details.

    A line in another order is parsed completely.
    """
    end = line.find(_LONG_FIELDS)
    try:
        head = orjson.loads(line[:end] + b"}") if end > 0 else {}
    except ValueError:
        head = {}
    return (
        head
        if len(head) - ("uncounted" in head) == _HEAD_LENGTH
        else vars(_parsed(line, path, offset))
    )


def _fields(line: bytes, path: Path, offset: int) -> Mapping[str, Any]:
    """Parse the fields of a line; a line with more or fewer of them, as other versions have written
    it, as a result.
    """
    try:
        row = orjson.loads(line)
    except ValueError:
        row = {}
    is_whole = isinstance(row, dict) and len(row) - ("uncounted" in row) == len(_COUNTED)
    return row if is_whole else vars(_parsed(line, path, offset))


def _parsed(line: bytes, path: Path, offset: int) -> Result:
    try:
        return Result.model_validate_json(line)
    except ValidationError as error:
        raise DataError(f"{path}, line {_number(path, offset)}: {first_fault(error)}") from error


def first_fault(error: ValidationError, *above: str) -> str:
    """Return pydantic's first problem with its field, below the fields ``above``."""
    problem = error.errors(include_url=False)[0]
    field = ".".join(map(str, (*above, *problem["loc"])))
    return f"{field}: {problem['msg']}" if field else problem["msg"]


def _number(path: Path, offset: int) -> int:
    """Return the number of the line that begins at an offset, counted from 1."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(min(1 << 16, offset - file.tell())), b"")
        return 1 + sum(block.count(b"\n") for block in blocks)
