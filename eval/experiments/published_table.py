"""Publish the folder of a reproduced table, and check such a folder without a model.

``publish`` writes a manifest with the SHA-256 of each file. ``check_published`` compares the files
with it, judges the recorded replies again, and computes every figure from the verdicts. So it finds
an edited file, an edited verdict and an edited figure, even if the manifest was written anew.
"""

from __future__ import annotations

import getpass
import hashlib
import html
import json
import math
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...graphs.engine.registry import find_protocol
from ...state.errors import DataError, UsageError
from ...state.redaction import redact, spelled_out
from ..datasets.dataset import Dataset
from ..results.evaluation import Evaluation
from ..results.folder import SHARED_JOURNAL, read_manifest, results_of, write_whole
from ..results.results import Result
from ..run.evaluate import evaluate
from ..statistics.resampling import Statistic
from ..tables.grid import CellValue
from ..tables.stored import grid_from_json
from .cells import Cell, CellResult
from .paper_tables import find_table
from .reproduction import METHOD, Reproduction, reproduce_table
from .sweep_record import FILE as SWEEP
from .sweep_record import read_record
from .sweep_result import write_grid

FILE = Reproduction.file
MANIFEST = "manifest.json"
PAGE = "page.html"
TABLE = "table"
_LEFT_OUT = {MANIFEST, "log.jsonl"}
"""Files without a checksum: a log grows with every start."""
_OF_MODELS = ("models", "prompts", "layout", "temperature", "max_tokens")
"""Settings that matter only if a model is called."""
_COMPARED = ("status", "score", "scores", "winner", "stop_reason", "rounds", "human")


def publish(folder: Path, table: str, judged: Sequence[Path] = ()) -> Path:
    """Write the manifest of a reproduced table's folder, and return its path.

    Paths of this machine are removed from the descriptions of the runs and from the page.

    Args:
        folder: the folder with the table, its runs and their journal.
        table: the name of the paper's table.
        judged: the folders of the runs.
    """
    _without_paths(folder, judged)
    runs = [read_manifest(path) for path in judged]
    manifest = {
        "table": table,
        "check": f"jurygraph reproduce {table} --check DIR",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": runs[0]["versions"] if runs else {},
        "data": [runs[0]["data"][name] for name in ("name", "digest", "items")] if runs else [],
        "signatures": sorted({of for run in runs for of in run["signatures"].values()}),
        "files": {_name(path, folder): _digest(path) for path in _files(folder)},
    }
    write_whole(folder / MANIFEST, manifest)
    return folder / MANIFEST


def private_in(folder: Path) -> Iterator[str]:
    """Yield a sentence for each published file that names this machine, its user, or a key.

    >>> [*private_in(Path("no-such-folder"))]
    []
    """
    home = str(Path.home())
    user = getpass.getuser()
    looked_for = {
        "the home folder": home if len(home) > 5 else "",
        "the folder of the user": f"/{user}/" if user != "root" else "",
        "the current folder": str(Path.cwd()),
        "the name of this machine": socket.gethostname(),
    }
    # Logs and locks have no checksum, but may be published too.
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        # A short or common name, such as `main`, says nothing.
        found = [
            what for what, text in looked_for.items() if len(text) > 5 and text.encode() in content
        ]
        text = content.decode("utf-8", errors="ignore")
        if redact(text) != spelled_out(text):
            found.append("a key, or a text that looks like one")
        if found:
            yield f"{_name(path, folder)} contains {', '.join(found)}"


def _without_paths(folder: Path, judged: Sequence[Path]) -> None:
    """Replace paths in the descriptions of runs: relative to the current folder, or the name."""
    changed: dict[str, str] = {}
    described = [path / "run.json" for path in judged]
    for file in (*described, folder / SWEEP):
        if file.is_file():
            write_whole(file, _shortened(_read(file), changed))
    page = folder / PAGE
    if page.is_file():
        text = page.read_text(encoding="utf-8")
        for path, short in sorted(changed.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(html.escape(path), html.escape(short)).replace(path, short)
        page.write_text(text, encoding="utf-8")


_PLACES = ("location", "prompts", "folder")
"""The keys of paths in the descriptions of runs and sweeps. No signature has these paths."""


def _shortened(value: Any, changed: dict[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _shortened(inner, changed, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_shortened(inner, changed, key) for inner in value]
    if key in _PLACES and isinstance(value, str) and Path(value).is_absolute():
        path = Path(value)
        here = Path.cwd()
        short = path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
        changed[value] = short
        return short
    return value


@dataclass(frozen=True)
class Checked:
    """The result of checking a published table.

    Attributes:
        faults: the differences between the files and their recomputed content; empty if all agree.
        files: the number of files with a checksum.
        verdicts: the number of verdicts that were recomputed from recorded replies.
        figures: the number of figures that were recomputed.
        unchecked: the figures that were not recomputed, with the reason.
    """

    faults: tuple[str, ...]
    files: int
    verdicts: int
    figures: int
    unchecked: tuple[str, ...] = ()


def check_published(folder: Path, table: str, dataset: Dataset | None = None) -> Checked:
    """Check a published table without a model.

    Args:
        folder: the published folder.
        table: the name of the paper's table.
        dataset: the whole data; without it, rows that need no model are not recomputed.

    Raises:
        UsageError: the folder is not one of this table.
        DataError: a file that cannot be read.
    """
    manifest = _read(folder / MANIFEST)
    if manifest.get("table") != table:
        raise UsageError(f"{folder} has the table {manifest.get('table')}, not {table}")
    faults = [*_changed_files(folder, manifest["files"])]
    cells = [*_cells(folder)]
    verdicts = 0
    for cell in cells:
        of_cell, count = _changed_verdicts(folder, cell)
        faults += of_cell
        verdicts += count
    stored = _read(folder / FILE)
    again = reproduce_table(find_table(table), dataset, cells)
    of_table, figures, unchecked = _changed_figures(stored, again)
    faults += of_table
    faults += _changed_texts(folder, stored, again)
    return Checked(tuple(faults), len(manifest["files"]), verdicts, figures, tuple(unchecked))


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files that are published, without logs and locks."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".lock" and path.name not in _LEFT_OUT:
            yield path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"{path.parent} is not the folder of a reproduced table: {path.name}: {error.strerror}"
        ) from error
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a JSON object")
    return content


def _changed_files(folder: Path, digests: Mapping[str, str]) -> Iterator[str]:
    for name, digest in digests.items():
        path = folder / name
        called = "the journal of calls" if path.name == SHARED_JOURNAL else "a file of the table"
        if not path.is_file():
            yield f"{name}: missing ({called})"
        elif _digest(path) != digest:
            yield f"{name}: edited after the run ({called}); its SHA-256 is not the manifest's"
    for path in _files(folder):
        if _name(path, folder) not in digests:
            yield f"{_name(path, folder)}: not in the manifest"


def _cells(folder: Path) -> Iterator[CellResult]:
    """Yield the stored runs of a table's rows."""
    record = read_record(folder)
    if record is None:
        return
    changes = {axis: dict(values) for axis, values in record["axes"].items()}
    for cell in record["cells"]:
        place = folder / cell["folder"]
        if not (place / "run.json").is_file():
            continue
        manifest = read_manifest(place)
        (protocol,) = manifest["signatures"]
        change = dict(changes[METHOD][cell["labels"][METHOD]])
        labelled = Cell(cell["labels"], change)
        evaluation = Evaluation(results_of(place).read(), manifest, place)
        yield CellResult(labelled, protocol, evaluation)


def _changed_verdicts(folder: Path, cell: CellResult) -> tuple[list[str], int]:
    """Judge a run's recorded replies again; return the differences and the number of verdicts."""
    place = cell.evaluation.folder
    assert place is not None
    name = _name(place, folder)
    manifest = cell.evaluation.manifest
    recorded = manifest["protocols"][cell.protocol]
    # A replay has settings of its own for the number of samples.
    left_out = {*_OF_MODELS, *find_protocol(cell.protocol).protocol.replay.settings(1)}
    settings: Any = {
        key: value for key, value in recorded.items() if key not in left_out and value is not None
    }
    repeats = manifest.get("repeats", 1)
    protocol: Any = cell.protocol
    try:
        again = evaluate(protocol, replies=str(place), settings=settings, repeats=repeats)
    except (UsageError, DataError) as error:
        return [f"{name}: its replies cannot be judged again: {error}"], 0
    stored = {result.key: result for result in cell.evaluation.results}
    faults = []
    for result in again.results:
        first = stored.pop(result.key, None)
        if first is None:
            faults.append(f"{name}: {_of(result)} has a reply and no verdict")
        elif different := [field for field in _COMPARED if not _same(first, result, field)]:
            field = different[0]
            faults.append(
                f"{name}/results.jsonl: {_of(result)}: {field} is {_shown(getattr(first, field))}, "
                f"but its replies give {_shown(getattr(result, field))}"
            )
    faults += [f"{name}: {_of(result)} has a verdict and no reply" for result in stored.values()]
    return faults, len(again.results)


def _of(result: Result) -> str:
    aspect = f", {result.aspect}" if result.aspect else ""
    repeat = f", repeat {result.repeat}" if result.repeat else ""
    return f"item {result.item}{aspect}{repeat}"


def _shown(value: Any) -> str:
    return "missing" if value is None else str(value)


def _same(first: Result, second: Result, field: str) -> bool:
    one = getattr(first, field)
    other = getattr(second, field)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    if isinstance(one, Sequence) and isinstance(other, Sequence) and not isinstance(one, str):
        return [*one] == [*other]
    return bool(one == other)


def _changed_figures(
    stored: Mapping[str, Any], again: Reproduction
) -> tuple[list[str], int, list[str]]:
    """Compare stored figures with recomputed ones; name the rows that cannot be recomputed."""
    grid = again.grid()
    heads = [column.name for column in grid.columns]
    if stored.get("columns") != heads:
        return [f"{FILE}: the columns are {stored.get('columns')}, not {heads}"], 0, []
    rows = {row[:2]: row for row in grid.rows}
    faults = []
    unchecked = []
    count = 0
    for row in stored["rows"]:
        key = tuple(row[:2])
        recomputed = rows.pop(key, None)
        if recomputed is None:
            unchecked.append(f"{', '.join(map(str, key))}: needs the data (--data-dir)")
            continue
        for head, value, expected in zip(heads[2:], row[2:], recomputed[2:], strict=True):
            count += 1
            if not _equal(value, expected):
                faults.append(
                    f"{FILE}: {key[0]}, {key[1]}, {head}: {_figure(value)} is stored, "
                    f"{_figure(_plain(expected))} follows from the verdicts"
                )
    faults += [f"{FILE}: the row {', '.join(map(str, key))} is missing" for key in rows]
    # The file has the same figures again, as a report shows them.
    shown = [row for of in stored.get("tables", ()) for row in grid_from_json(of).rows]
    for written, row in zip(shown, stored["rows"], strict=False):
        if [*map(_plain, written)] != row:
            faults.append(
                f"{FILE}: tables: {', '.join(map(str, row[:2]))}: differs from the same row in rows"
            )
    return faults, count, unchecked


def _plain(value: CellValue) -> Any:
    return vars(value) if isinstance(value, Statistic) else value


def _figure(value: Any) -> str:
    if isinstance(value, Mapping):
        ends = [value.get(name) for name in ("value", "low", "high")]
        return " ".join("-" if end is None else f"{end:.6g}" for end in ends)
    return "-" if value is None else str(value)


def _equal(stored: Any, expected: CellValue) -> bool:
    wanted = _plain(expected)
    if isinstance(wanted, Mapping) and isinstance(stored, Mapping):
        return wanted.keys() == stored.keys() and all(
            _close(stored[name], wanted[name]) for name in wanted
        )
    return _close(stored, wanted)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        # Other versions of numerical libraries may differ in the last digits.
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return bool(one == other)


def _changed_texts(folder: Path, stored: Mapping[str, Any], again: Reproduction) -> Iterator[str]:
    """Compare the written tables with those that the recomputed figures give."""
    grid = again.grid()
    rows = {row[:2]: row for row in grid.rows}
    # Rows that were not recomputed are taken from the stored figures.
    whole = tuple(
        rows.get(tuple(row[:2])) or (*row[:2], *map(_value, row[2:])) for row in stored["rows"]
    )
    if any(len(row) != len(grid.columns) for row in whole):
        return
    expected = replace(grid, rows=whole, notes=tuple(stored["notes"]))
    with TemporaryDirectory() as temporary:
        write_grid(expected, Path(temporary), TABLE)
        for path in sorted(Path(temporary).iterdir()):
            own = folder / path.name
            if not own.is_file():
                continue  # named as missing already
            lines = own.read_text(encoding="utf-8").splitlines()
            wanted = path.read_text(encoding="utf-8").splitlines()
            for number, (line, right) in enumerate(zip(lines, wanted, strict=False), 1):
                if line != right:
                    yield f"{path.name}, line {number}: {line!r} should be {right!r}"
            if len(lines) != len(wanted):
                yield f"{path.name}: has {len(lines)} lines and should have {len(wanted)}"


def _value(value: Any) -> CellValue:
    return Statistic(**value) if isinstance(value, Mapping) else value
