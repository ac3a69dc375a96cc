"""Texts to judge, and files of them, for tests of any part."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.graphs.engine.registry import protocols
from jurygraph.state import DataError
from jurygraph.state.aspects import find_aspect
from jurygraph.testing import protocol_contract

SCORE_TASK = protocol_contract.SCORE_TASK
COMPARE_TASK = protocol_contract.COMPARE_TASK
TASKS = {"score": SCORE_TASK, "compare": COMPARE_TASK}
RUBRIC = [
    {"criterion": "Says how long the kiln burned.", "points": 5},
    {"criterion": "Says when the kiln was lit.", "points": 3, "id": "lit"},
    {"criterion": "Invents a cause.", "points": -4},
]
RUBRIC_TASK = {
    **SCORE_TASK,
    "aspect": {**find_aspect("consistency").model_dump(mode="json"), "rubric": RUBRIC},
}
TASKS_OF: dict[str, dict[str, dict[str, Any]]] = {"checklist": {"score": RUBRIC_TASK}}
"""The tasks of protocols that do not judge every task."""


def task_for(name: str, kind: str) -> dict[str, Any]:
    """Return a task that a protocol judges."""
    return TASKS_OF.get(name, TASKS)[kind]


CASES = [(name, kind) for name, module in protocols().items() for kind in module.protocol.kinds]
"""Every protocol with each kind of task that it takes."""
UNATTENDED = [
    (name, kind)
    for name, kind in CASES
    if not protocols()[name].protocol.pauses_for_person(protocols()[name].protocol.settings())
]
"""The protocols that never wait for a human."""


THREAD: Any = {"configurable": {"thread_id": "1"}}


def goes_on(graph: Any, given: Any, is_async: bool, config: Any = THREAD) -> Any:
    """Return the result of a graph called from sync or from async code."""
    return asyncio.run(graph.ainvoke(given, config)) if is_async else graph.invoke(given, config)


def timeless(result: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return verdict and transcript without how long they took."""
    return {**result["verdict"], "seconds": 0}, [
        {**turn, "seconds": 0} for turn in result["transcript"]
    ]


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write each row as a line of JSON; return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def refused(words: str, *data: Any, **options: Any) -> DataError:
    """See that a dataset cannot be loaded, and that the reason is given in these words."""
    with pytest.raises(DataError, match=words) as caught:
        load_dataset(*data, **options)
    return caught.value


def parquet(rows: Iterable[Mapping[str, Any]], **options: Any) -> bytes:
    """Return a Parquet file of these rows."""
    import pyarrow as pa
    from pyarrow.parquet import write_table

    written = pa.BufferOutputStream()
    write_table(pa.Table.from_pylist(list(rows)), written, **options)
    return bytes(written.getvalue())


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines; of a run's folder, its results."""
    file = path / "results.jsonl" if path.is_dir() else path
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def numbered(folder: Path, count: int, **fields: Any) -> Path:
    """Write this many numbered texts to rate; ``fields`` are added to every row."""
    rows = [
        {"id": f"i{n}", "source": "Noon.", "candidate": f"Number {n}.", **fields}
        for n in range(count)
    ]
    return write_lines(folder / "mine.jsonl", rows)
