"""Write and read results in parts: Parquet files in a folder or an object store, each whole or not there at all."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from ...state.errors import UsageError
from ..private_files import make_private_folder, private
from ..run.results import Result

log = logging.getLogger("jurygraph.run")

_AS_JSON = ("human", "score_by_round", "annotations", "details", "warnings", "transcript")
"""Fields of mixed or nested types, which are text in JSON in their column."""

_OBJECT_STORES = ("s3", "gcs", "abfs")


class ResultParts:
    """Writes and reads the parts of one run, in a folder of its own below a place.

    Args:
        where: a folder, or a URL that Arrow knows: ``s3://``, ``gs://``, ``abfs://``, ``file://``, ``hdfs://``.
        run: the id of the run.
        filesystem: an Arrow file system in which ``where`` is a path.

    Raises:
        UsageError: a URL that cannot be used, or pyarrow is not installed.
    """

    def __init__(self, where: str, run: str, filesystem: Any = None) -> None:
        fs = _arrow_fs()
        self.where = where
        self._local = Path(where) / run if filesystem is None and "://" not in where else None
        if self._local is not None:
            self._fs, self._folder = fs.LocalFileSystem(), str(self._local)
            return
        try:
            found, path = (filesystem, where) if filesystem else fs.FileSystem.from_uri(where)
        except (OSError, ValueError, NotImplementedError) as error:
            raise UsageError(f"results cannot be written to {where}: {error}") from error
        self._fs, self._folder = found, f"{path.rstrip('/')}/{run}"

    def write(self, first: int, results: Sequence[Result]) -> None:
        """Write a part.

        Args:
            first: the number of its first verdict among all of the run's.
            results: what it holds; the same results get the same name again.

        Raises:
            OSError: it could not be written.
        """
        keys = blake2b(repr([result.key for result in results]).encode(), digest_size=6).hexdigest()
        self.put(f"part-{first:010d}-{keys}.parquet", _to_parquet(results))

    def put(self, name: str, content: bytes) -> None:
        """Write a file whole, or leave what is there."""
        if self._local is not None:
            make_private_folder(self._local)
            fresh = self._local / f".{name}.{uuid4().hex}"
            with open(fresh, "wb", opener=private) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._local / name)
            return
        # An object is there once it is whole. Half a file, which others may keep, lacks the end that Parquet needs.
        if self._fs.type_name not in _OBJECT_STORES:
            self._fs.create_dir(self._folder, recursive=True)
        with self._fs.open_output_stream(f"{self._folder}/{name}") as stream:
            stream.write(content)

    def has(self, name: str) -> bool:
        """Tell whether a file is there."""
        return bool(self._fs.get_file_info(f"{self._folder}/{name}").is_file)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._fs.delete_file(f"{self._folder}/{name}")

    def read(self) -> Iterator[Result]:
        """Yield all results, part by part, those of a part that was written later after those of earlier ones."""
        import pyarrow as pa

        selector = _arrow_fs().FileSelector(self._folder, allow_not_found=True)
        files = [info for info in self._fs.get_file_info(selector) if info.base_name.startswith("part-")]
        for info in sorted(files, key=lambda info: (info.mtime_ns or 0, info.base_name)):
            try:
                with self._fs.open_input_file(info.path) as file:
                    rows = list(_from_parquet(file))
            except pa.ArrowInvalid as error:
                # Its calls are in the journal: it is judged again without paying.
                log.warning("a part cannot be read", extra={"part": info.path, "reason": str(error)})
                continue
            yield from rows

    def clear(self) -> None:
        """Remove the parts of the run from their folder; in an object store they stay."""
        if self._local is None or not self._local.is_dir():
            return
        for path in self._local.iterdir():
            path.unlink()
        self._local.rmdir()
        # Other runs may have parts beside it.
        with suppress(OSError):
            self._local.parent.rmdir()


def _arrow_fs() -> Any:
    try:
        from pyarrow import fs
    except ImportError as error:
        raise UsageError('results in parts need pyarrow: pip install "jurygraph[ray]"') from error
    return fs


def _to_parquet(results: Sequence[Result]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist([_row(result) for result in results], schema=_schema())
    parquet.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def _from_parquet(file: Any) -> Iterator[Result]:
    from pyarrow import parquet

    for batch in parquet.ParquetFile(file).iter_batches():
        for row in batch.to_pylist():
            for name in _AS_JSON:
                row[name] = None if row[name] is None else orjson.loads(row[name])
            yield Result.model_validate(row)


def _row(result: Result) -> dict[str, Any]:
    # By way of the line, in which everything is JSON already and halves of surrogate pairs are replaced.
    fields = orjson.loads(result.line())
    return {
        name: orjson.dumps(value).decode() if name in _AS_JSON and value is not None else value
        for name, value in fields.items()
    }


def _schema() -> Any:
    import pyarrow as pa

    numbers = ("score", "cost_usd", "seconds")
    counts = ("rounds", "repeat", "calls", "input_tokens", "cached_input_tokens", "output_tokens")
    others = {
        **dict.fromkeys(numbers, pa.float64()),
        **dict.fromkeys((*counts, "reasoning_tokens"), pa.int64()),
        "scores": pa.list_(pa.float64()),
        "position_consistent": pa.bool_(),
        "systems": pa.list_(pa.string()),
        "lengths": pa.list_(pa.int64()),
    }
    names = orjson.loads(Result(item="", protocol="", status="failed").line())
    return pa.schema([pa.field(name, others.get(name, pa.string())) for name in names])
