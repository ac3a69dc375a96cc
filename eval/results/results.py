"""Write and read ``results.jsonl``: one line for each item, aspect, protocol and repeat, written as each finishes."""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Sized
from io import FileIO
from math import inf
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, cast, overload
from weakref import finalize

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from ...state.errors import DataError
from ...state.redaction import redact
from ...state.transcript import USAGE_FIELDS, Turn, Usage
from ...state.verdict import Winner
from ..datasets.items import digest
from ..journal.private_files import private, whole_file

FILE = "results.jsonl"

Lines = NDArray[np.intp]
"""Numbers of lines, counted from 0."""


class Key(NamedTuple):
    """Identifies a result within a run."""

    item: str
    aspect: str | None
    protocol: str
    repeat: int


class Result(BaseModel, Usage):
    """Holds the outcome of judging one item: a verdict or an error, the label by people, and the transcript.

    ``systems``, ``category``, ``lengths`` and ``annotations`` are the item's (see ``About``).
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
        """Return the result as a line of JSON, with the fields that identify it first.

        >>> Result(item="a", protocol="debate", status="failed", error="no words").line()[:26]
        b'{"item":"a","group":null,"'
        """
        names = _ORDER if self.uncounted else _COUNTED
        try:
            return orjson.dumps({name: getattr(self, name) for name in names}) + b"\n"
        except TypeError:
            # Details may hold objects that are no JSON yet, and models write halves of surrogate pairs.
            fields = self.model_dump(mode="json")
            ordered = {name: fields[name] for name in names}
            return json.dumps(ordered, ensure_ascii=False).encode(errors="replace") + b"\n"


_FIELDS = list(Result.__annotations__)
# The usage, whose fields are inherited, stands before what went wrong.
_ERROR = _FIELDS.index("error")
_ORDER = (*_FIELDS[:_ERROR], *USAGE_FIELDS, "uncounted", *_FIELDS[_ERROR:])
_COUNTED = tuple(name for name in _ORDER if name != "uncounted")
_HEAD_LENGTH = _COUNTED.index("details")


class StoredResults(Sequence[Result]):
    """Gives results that stay in their file: each is read when it is accessed, and none is kept in memory.

    Errors of reading: ``DataError`` for a line that is no result, or where the file has been rewritten since.
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
        """Iterate over the fields of each result without details, warnings and transcript, which are most of a line."""
        return (_head(line, self._path, offset) for offset, line in self.lines())

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> StoredResults: ...
    def __getitem__(self, index: int | slice) -> Result | StoredResults:
        if isinstance(index, slice):
            return self.at(index)
        offset = int(self._offsets[index])
        with self._opened() as file:
            file.seek(offset)
            return _parsed(file.readline(), self._path, offset)

    def __repr__(self) -> str:
        return f"<{len(self)} results in {self._path}>"

    @property
    def failed(self) -> StoredResults:
        """The results that have no verdict."""
        return self.at(np.flatnonzero(~self._ok))

    def at(self, places: Lines | slice) -> StoredResults:
        """Return the results at some places, in the order of the places."""
        return StoredResults(self._path, self._offsets[places], self._ok[places])

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the lines, each with its offset in the file."""
        if not len(self):
            return
        with self._opened() as file:
            for offset in map(int, self._offsets):
                file.seek(offset)
                yield offset, file.readline()

    def _opened(self) -> BinaryIO:
        file = self._path.open("rb")
        # `ResultsFile.finish` puts a new file in the place of the old one, in which these offsets mean nothing.
        if os.fstat(file.fileno()).st_ino != self._file_number:
            file.close()
            raise DataError(
                f"{self._path}: the file was rewritten after these results were found; read it again"
            )
        return file


class OkKeys(Container[Key], Sized):
    """Holds the keys that have a verdict, as sorted digests of 8 bytes each: there may be millions."""

    def __init__(self, digests: NDArray[np.uint64]) -> None:
        # Not a numpy array, in which to look up a single number takes ten times as long.
        self._sorted = array("Q", np.sort(digests).tobytes())

    def __contains__(self, key: object) -> bool:
        wanted = digest(*cast("Key", key))
        place = bisect_left(self._sorted, wanted)
        return place < len(self._sorted) and self._sorted[place] == wanted

    def __len__(self) -> int:
        return len(self._sorted)


class LineIndex:
    """Holds where the lines of a results file begin and which results they are, in 17 bytes a line.

    Attributes:
        digests: the digest of each line's key.
        offsets: where each line begins, in bytes.
        ok: 1 for each line with a verdict, else 0.
        end: where the next line will begin.
    """

    def __init__(self) -> None:
        self.digests = array("Q")
        self.offsets = array("q")
        self.ok = bytearray()
        self.end = 0

    def __len__(self) -> int:
        return len(self.ok)

    def add(self, key_digest: int, ok: bool, length: int) -> None:
        """Add a line, ``length`` bytes long."""
        self.digests.append(key_digest)
        self.offsets.append(self.end)
        self.ok.append(ok)
        self.end += length

    def latest(self) -> Lines:
        """Return the last line of each result, in the order in which the results first occur."""
        # `np.unique` finds first occurrences only; on the reversed array they are the last ones.
        digests = np.array(self.digests, dtype=np.uint64)
        _, first = np.unique(digests, return_index=True)
        _, from_the_end = np.unique(digests[::-1], return_index=True)
        return (len(digests) - 1 - from_the_end)[np.argsort(first)]

    def latest_of(self, keys: Iterable[Key]) -> Lines:
        """Return the last line of each of these keys, in their order; those without a line are left out."""
        latest = self.latest()
        known = np.array(self.digests, dtype=np.uint64)[latest]
        wanted = np.fromiter((digest(*key) for key in keys), dtype=np.uint64)
        _, of_wanted, of_known = np.intersect1d(wanted, known, return_indices=True)
        return latest[of_known[np.argsort(of_wanted)]]


class ResultsFile:
    """Writes and reads the results of a run. The last line of a key counts, so that a retry replaces a failure.

    Half a last line, which a killed run may have left, is not read, and is cut off before the next one is added.
    A score that is off the scale of its aspect is refused, where the aspects are given.
    """

    def __init__(self, folder: Path, aspects: Iterable[Mapping[str, Any]] = ()) -> None:
        self.path = folder / FILE
        self._file: FileIO | None = None
        self._lines: LineIndex | None = None
        self._scales = {aspect["name"]: (aspect["low"], aspect["high"]) for aspect in aspects}

    def add(self, result: Result) -> None:
        """Append a result; when this returns, it survives the end of the process (after ``finish``: of the machine).

        Raises:
            OSError: it could not be written whole; the file is as it was before.
        """
        # The index is made of the file before this line is in it, or it would count the line twice.
        index, line = self._index(), result.line()
        if self._file is None:
            # Half a line may stand behind the whole ones.
            if self.path.exists():
                os.truncate(self.path, index.end)
            # Unbuffered: a line that is written outlives the process.
            self._file = FileIO(self.path, "a", opener=private)
            finalize(self, self._file.close)
        written = 0
        try:  # A full disk takes only part of a line.
            while written < len(line):
                written += self._file.write(line[written:])
        except OSError:
            self._file.truncate(os.fstat(self._file.fileno()).st_size - written)
            raise
        index.add(digest(*result.key), result.status == "ok", len(line))

    def close(self) -> None:
        """Close the file; ``add`` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self) -> StoredResults:
        """Return all results, the last one of each key, in the order in which the keys first occur.

        Raises:
            DataError: a line that is no result; names file and line.
        """
        return self._stored(self._index().latest())

    def of_item(self, item: str) -> list[Result]:
        """Return all results of one item, the last one of each key."""
        # To search a line for the name is much faster than to parse it.
        results, name = {}, orjson.dumps(item)
        for offset, line in _whole_lines(self.path):
            if name not in line:
                continue
            key, _ = _about(line, self.path, offset, self._scales)
            if key.item == item:
                results[key] = _parsed(line, self.path, offset)
        return list(results.values())

    def keys(self) -> list[Key]:
        """Return the keys of all results, in the order in which they first occur.

        Raises:
            DataError: a line that is no result; names file and line.
        """
        return [_about(line, self.path, offset, self._scales)[0] for offset, line in self.read().lines()]

    def ok_keys(self) -> OkKeys:
        """Return the keys whose last result is a verdict.

        Raises:
            DataError: a line that is no result; names file and line.
        """
        index = self._index()
        lines = index.latest()
        ok = np.array(index.ok, dtype=bool)[lines]
        return OkKeys(np.array(index.digests, dtype=np.uint64)[lines[ok]])

    def finish(self, keys: Iterable[Key]) -> StoredResults:
        """Rewrite the file with one line a key, in the order of the keys, and other results after them.

        The new file replaces the old one at once, or not at all. Keys without a result are left out.

        Returns:
            the results of the keys, in their order.
        """
        if self._file is not None:
            os.fsync(self._file.fileno())
        self.close()
        index = self._index()
        wanted = index.latest_of(keys)
        # Those that are not wanted stay in their order, since the numbers of lines are unique.
        lines = np.concatenate([wanted, np.setdiff1d(index.latest(), wanted, assume_unique=True)])
        size = self.path.stat().st_size if self.path.exists() else 0
        # The sizes differ if half a line is left at the end; such a file is rewritten in any case.
        if size != index.end or not np.array_equal(lines, np.arange(len(index))):
            rewritten = LineIndex()
            with self.path.open("rb") as old, whole_file(self.path) as new:
                for line in lines:
                    old.seek(index.offsets[line])
                    length = new.write(old.readline())
                    rewritten.add(index.digests[line], bool(index.ok[line]), length)
            self._lines = rewritten
        return self._stored(np.arange(len(wanted)))

    def _index(self) -> LineIndex:
        if self._lines is None:
            self._lines = LineIndex()
            for offset, line in _whole_lines(self.path):
                key, ok = _about(line, self.path, offset, self._scales)
                self._lines.add(digest(*key), ok, len(line))
        return self._lines

    def _stored(self, lines: Lines) -> StoredResults:
        index = self._index()
        return StoredResults(self.path, np.array(index.offsets)[lines], np.array(index.ok, dtype=bool)[lines])


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Iterate over the complete lines, each with its offset in bytes."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield offset, line
                offset += len(line)


def _about(line: bytes, path: Path, offset: int, scales: Mapping[str, Any]) -> tuple[Key, bool]:
    """Return the key of a line, and whether it has a verdict, without the cost of validating the whole line."""
    try:
        row = orjson.loads(line)
        key = Key(row["item"], row["aspect"], row["protocol"], row["repeat"])
        ok, scale = row["status"] == "ok", scales.get(key.aspect or "")
        score = inf if row["score"] is None else row["score"]
        # Means of scores may lie beyond the ends by rounding.
        wrong = ok and scale and not scale[0] - 1e-6 <= score <= scale[1] + 1e-6
    except (ValueError, LookupError, TypeError):
        # A field with a default may be absent; a line that is no result at all gets its error message here.
        result = _parsed(line, path, offset)
        return result.key, result.status == "ok"
    if wrong and scale:
        fault = f"score: {row['score']} is off the scale of {key.aspect}, {scale[0]:g} to {scale[1]:g}"
        raise DataError(f"{path}, line {_number(path, offset)}: {fault}; no judge can have given it")
    return key, ok


def _head(line: bytes, path: Path, offset: int) -> Mapping[str, Any]:
    """Parse the fields of a line up to its details; a line in another order is parsed whole."""
    # This cannot occur inside a JSON string, since quotes are escaped there.
    end = line.find(b',"details":')
    try:
        head = orjson.loads(line[:end] + b"}") if end > 0 else {}
    except ValueError:
        head = {}
    return head if len(head) - ("uncounted" in head) == _HEAD_LENGTH else vars(_parsed(line, path, offset))


def _parsed(line: bytes, path: Path, offset: int) -> Result:
    try:
        return Result.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, problem["loc"]))
        fault = f"{field}: {problem['msg']}" if field else problem["msg"]
        raise DataError(f"{path}, line {_number(path, offset)}: {fault}") from error


def _number(path: Path, offset: int) -> int:
    """Return the number of the line that begins at an offset, counted from 1."""
    with path.open("rb") as file:
        blocks = iter(lambda: file.read(min(1 << 16, offset - file.tell())), b"")
        return 1 + sum(block.count(b"\n") for block in blocks)
