"""Tables of one's own: Parquet files, frames of pandas, polars and Arrow, lists of dicts."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jurygraph.eval import Dataset, evaluate, load_dataset
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.aspect_choice import choose_aspects
from jurygraph.eval.datasets.items import CompareItem, ScoreItem
from jurygraph.state import DataError, UsageError
from typer.testing import CliRunner

from .on_demand import OnDemand

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from pyarrow import parquet
else:
    pd, pl = OnDemand("pandas"), OnDemand("polars")
    pa, parquet = OnDemand("pyarrow"), OnDemand("pyarrow.parquet")

Rows = Sequence[Mapping[str, Any]]
TEXT = {"source": "It rained.", "candidate": "Rain."}
ROWS: list[dict[str, Any]] = [
    {"id": 1, **TEXT, "group": "g", "human.fluency": 4.5, "system": "A"},
    {"id": 2, **TEXT, "candidate": "", "group": None, "human.fluency": None, "system": "A"},
    {"id": 3, **TEXT, "group": "g", "human.fluency": 1.0, "system": None},
]


def as_written(rows: Rows) -> Any:
    return list(rows)


def as_pandas(rows: Rows) -> Any:
    return pd.DataFrame(list(rows))


def as_nullable_pandas(rows: Rows) -> Any:
    return pd.DataFrame(list(rows)).convert_dtypes()


def as_polars(rows: Rows) -> Any:
    return pl.DataFrame(list(rows))


def as_arrow(rows: Rows) -> Any:
    return pa.Table.from_pylist(list(rows))


Make = Callable[[Rows], Any]
FRAMES = pytest.mark.parametrize("made", [as_written, as_pandas, as_nullable_pandas, as_polars, as_arrow])


def write(folder: Path, rows: Rows, **options: Any) -> Path:
    path = folder / "data.parquet"
    parquet.write_table(pa.Table.from_pylist(list(rows)), path, **options)
    return path


@FRAMES
def test_all_kinds_of_frames_hold_the_same_and_are_judged(made: Make) -> None:
    frame = made(ROWS)
    dataset = load_dataset(frame)
    if isinstance(frame, pd.DataFrame):
        frame.loc[0, "source"] = "What is changed afterwards changes nothing."
    assert dataset.digest == load_dataset(ROWS).digest
    first, second, third = (item for item in dataset if isinstance(item, ScoreItem))
    assert (first.id, first.label("fluency"), first.group) == ("1", 4.5, "g")
    assert (second.label("fluency"), second.group, second.candidate) == (None, None, "")
    assert (third.system, dataset.labels, dataset.location) == (None, "people", "in memory")
    results = evaluate("single", dataset).results
    assert [(result.item, result.human) for result in results] == [("1", 4.5), ("2", None), ("3", 1.0)]


@pytest.mark.parametrize("made", [as_written, as_polars, as_arrow])
def test_nested_columns(made: Make) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", **TEXT, "references": ["r1", "r2"], "human": {"fluency": [4, 2]}},
        {"id": "b", **TEXT, "references": [], "human": {"fluency": None}},
    ]
    first, second = (item for item in load_dataset(made(rows)) if isinstance(item, ScoreItem))
    assert (first.references, first.label("fluency")) == (("r1", "r2"), 3)
    assert (second.references, second.human) == ((), {})


def test_arrays_and_json_in_cells() -> None:
    cells = {"human.fluency": np.array([4.0, np.nan, 2.0]), "references": '["r"]'}
    [item] = load_dataset(pd.DataFrame([{"id": "a", "source": "[not a list]", "candidate": "c", **cells}]))
    assert isinstance(item, ScoreItem)
    assert (item.source, item.human, item.references) == ("[not a list]", {"fluency": [4, 2]}, ("r",))


def test_preferences_that_missing_cells_made_decimal() -> None:
    pair = {"question": "?", "answer_1": "x", "answer_2": "y"}
    frame = pd.DataFrame([{"id": i, **pair, "human": label} for i, label in ((1, 1), (2, 2), (3, None))])
    assert frame["human"].dtype == float
    items = [CompareItem.model_validate(item.model_dump()) for item in Dataset.of_frame(frame)]
    assert [item.label() for item in items] == ["1", "2", None]
    with pytest.raises(DataError, match=r"row 1: field 'human'.*got 1.5"):
        Dataset.of_frame(pd.DataFrame([{"id": 1, **pair, "human": 1.5}]))


def test_the_texts_of_a_frame_cannot_be_shown_later_and_that_is_said(tmp_path: Path) -> None:
    evaluate("single", ROWS, aspects=["fluency"], limit=1, out=tmp_path / "out")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "out"), "1"]).output
    assert "texts of this item are not shown, because the data can no longer be read (in memory)." in shown


def test_a_name_for_a_frame_and_its_aspects() -> None:
    rows = [{"id": "a", "source": "s", "candidate": "c", "human.coherence": 3}]
    dataset = Dataset.of_frame(rows, "mine", labels="construction", family="topical-chat")
    assert (dataset.name, dataset.labels) == ("mine", "construction")
    assert [aspect.high for aspect in choose_aspects(dataset, [])] == [3]


NO_TABLE = "is not a dataset: give a name, a file, a frame"
PAIR_ROW = {"id": "q", "question": "?", "answer_1": "x", "answer_2": "y"}
TWICE = ["id", "source", "candidate", "candidate"]
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "missing column": (
        lambda: pd.DataFrame([{"id": 1, "candidate": "c"}]),
        "frame, row 1: field 'source' is missing; the row has id, candidate",
    ),
    "missing cell": (
        lambda: pd.DataFrame([ROWS[0], {**ROWS[1], "source": None}]),
        "frame, row 2: field 'source' is missing; the row has id, candidate, system",
    ),
    "two kinds": (
        lambda: [ROWS[0], PAIR_ROW],
        "row 2: a file cannot hold both texts to be rated and answers to",
    ),
    "no dicts": (lambda: [{}, 3], "row 2: expected a dict with named fields, got int"),
    "a huge text": (
        lambda: pd.DataFrame([{**ROWS[0], "source": "x" * 200_000}]),
        "row 1: field 'source' has 200,000 characters, more than 100,000",
    ),
    "one name": (lambda: pd.DataFrame([[*"ascc"]], columns=TWICE), "two columns are called 'candidate'"),
    "a lazy frame": (lambda: pl.DataFrame(ROWS).lazy(), f"LazyFrame {NO_TABLE}"),
    "a series": (lambda: pd.Series([1, 2]), f"Series {NO_TABLE}"),
    "an array": (lambda: pa.array(["a"]), f"StringArray {NO_TABLE}"),
}


@pytest.mark.filterwarnings("ignore:Determining the column names of a LazyFrame")
@pytest.mark.parametrize(("made", "fault"), BAD.values(), ids=BAD)
def test_bad_frames_are_told_by_row_and_field(made: Callable[[], Any], fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_dataset(made())
    assert fault in str(caught.value)


def test_a_parquet_file_holds_what_the_frame_holds(tmp_path: Path) -> None:
    dataset, again = load_dataset(write(tmp_path, ROWS)), load_dataset(ROWS)
    assert dataset.items == again.items
    assert list(dataset) == list(dataset)
    assert (dataset.name, dataset.unit, len(dataset.digest)) == ("data.parquet", "row", 12)
    assert [aspect.name for aspect in choose_aspects(dataset, [])] == ["fluency"]
    write(tmp_path, [{**row, "source": "It snowed all day."} for row in ROWS])
    with pytest.raises(DataError, match="has changed since its rows were checked"):
        list(dataset)


def test_bad_parquet_is_told_by_row_and_field(tmp_path: Path) -> None:
    path = write(tmp_path, [ROWS[0], {**ROWS[1], "source": None}])
    with pytest.raises(DataError, match=r"data\.parquet, row 2: field 'source' is missing"):
        load_dataset(path)
    for content in (b"PAR1 and nothing more", b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"data\.parquet: cannot be read as Parquet: "):
            load_dataset(path)
    path.unlink()
    with pytest.raises(DataError, match=r"data\.parquet: cannot be read: No such file"):
        load_dataset(path)


@pytest.mark.slow
def test_a_large_parquet_file_is_not_held(tmp_path: Path) -> None:
    text = "It rained. " * 1_000
    rows = ({**ROWS[0], "id": f"i{n}", "source": f"{n} {text}"} for n in range(4_000))
    path = write(tmp_path, list(rows), row_group_size=4_000, compression="none", use_dictionary=False)
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    dataset = load_dataset(path)
    most, arrow = 0, 0
    for item in dataset:
        most, arrow = most + len(item.id), max(arrow, pa.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most == 18_890
    assert peak + arrow < path.stat().st_size / 2


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table = write(tmp_path, ROWS), as_arrow(ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for data in (path, table):
        with pytest.raises(UsageError, match=r'needs pyarrow: pip install "jurygraph\[frames\]"'):
            load_dataset(data)
    assert len(load_dataset(pl.DataFrame(ROWS))) == len(load_dataset(pd.DataFrame(ROWS))) == 3
