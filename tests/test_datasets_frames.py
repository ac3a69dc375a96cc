"""Tables of one's own: Parquet files, frames of pandas, polars and Arrow, lists of dicts."""

import sys
import tracemalloc
from collections.abc import Callable
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
from .sample_data import parquet, refused

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
else:
    pd = OnDemand("pandas")
    pl = OnDemand("polars")
    pa = OnDemand("pyarrow")

Rows = list[dict[str, Any]]
TEXT = {"source": "It rained.", "candidate": "Rain."}
ROWS: Rows = [
    {"id": 1, **TEXT, "group": "g", "human.fluency": 4.5, "system": "A"},
    {"id": 2, **TEXT, "candidate": "Drops.", "group": None, "human.fluency": None, "system": "A"},
    {"id": 3, **TEXT, "group": "g", "human.fluency": 1.0, "system": None},
]


KINDS = ["dicts", "pandas", "nullable pandas", "polars", "Arrow"]


def made(kind: str, rows: Rows) -> Any:
    match kind:
        case "pandas":
            return pd.DataFrame(rows)
        case "nullable pandas":
            return pd.DataFrame(rows).convert_dtypes()
        case "polars":
            return pl.DataFrame(rows)
        case "Arrow":
            return pa.Table.from_pylist(rows)
    return rows


def write(folder: Path, rows: Rows, **options: Any) -> Path:
    path = folder / "data.parquet"
    path.write_bytes(parquet(rows, **options))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_frames_hold_the_same_and_are_judged(kind: str) -> None:
    frame = made(kind, ROWS)
    dataset = load_dataset(frame)
    if isinstance(frame, pd.DataFrame):
        frame.loc[0, "source"] = "What is changed afterwards changes nothing."
    assert dataset.digest == load_dataset(ROWS).digest
    first, second, third = (item for item in dataset if isinstance(item, ScoreItem))
    assert (first.id, first.label("fluency"), first.group) == ("1", 4.5, "g")
    assert (second.label("fluency"), second.group, second.candidate) == (None, None, "Drops.")
    assert (third.system, dataset.labels, dataset.location) == (None, "people", "in memory")
    results = evaluate("single", dataset).results
    assert [(result.item, result.human) for result in results] == [
        ("1", 4.5),
        ("2", None),
        ("3", 1.0),
    ]


@pytest.mark.parametrize("kind", ["dicts", "polars", "Arrow"])
def test_nested_columns(kind: str) -> None:
    rows: Rows = [
        {"id": "a", **TEXT, "references": ["r1", "r2"], "human": {"fluency": [4, 2]}},
        {"id": "b", **TEXT, "source": "Noon.", "references": [], "human": {"fluency": None}},
    ]
    first, second = (item for item in load_dataset(made(kind, rows)) if isinstance(item, ScoreItem))
    assert (first.references, first.label("fluency")) == (("r1", "r2"), 3)
    assert (second.references, second.human) == ((), {})


def test_arrays_and_json_in_cells() -> None:
    cells = {"human.fluency": np.array([4.0, np.nan, 2.0]), "references": '["r"]'}
    [item] = load_dataset(
        pd.DataFrame([{"id": "a", "source": "[not a list]", "candidate": "c", **cells}])
    )
    assert isinstance(item, ScoreItem)
    assert (item.source, item.human, item.references) == (
        "[not a list]",
        {"fluency": [4, 2]},
        ("r",),
    )


def test_preferences_that_missing_cells_made_decimal() -> None:
    pair = {"question": "?", "answer_1": "x", "answer_2": "y"}
    labels = ((1, 1), (2, 2), (3, None))
    frame = pd.DataFrame(
        [{"id": i, **pair, "answer_1": f"x{i}", "human": label} for i, label in labels]
    )
    assert frame["human"].dtype == float
    items = [CompareItem.model_validate(item.model_dump()) for item in Dataset.of_frame(frame)]
    assert [item.label() for item in items] == ["1", "2", None]
    for label, told in (
        (1.5, "field 'human': 1.5 is not 1, 2 or tie"),
        ('{"a": 1, "a": 2}', "the key 'a' occurs twice"),
    ):
        with pytest.raises(DataError, match=f"row 1: {told}"):
            Dataset.of_frame(pd.DataFrame([{"id": 1, **pair, "human": label}]))


def test_the_texts_of_a_frame_cannot_be_shown_later_and_that_is_said(tmp_path: Path) -> None:
    evaluate("single", ROWS, aspects=["fluency"], limit=1, out=tmp_path / "out")
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "out"), "1"]).output
    assert "The texts of this item are not shown. " in shown and "in memory" in shown


def test_a_name_for_a_frame_and_its_aspects() -> None:
    rows = [{"id": "a", "source": "s", "candidate": "c", "human.coherence": 3}]
    dataset = Dataset.of_frame(rows, "mine", labels="construction", family="topical-chat")
    assert (dataset.name, dataset.labels) == ("mine", "construction")
    assert [aspect.high for aspect in choose_aspects(dataset, [])] == [3]


NO_TABLE = "is not a dataset: give a name, a file, a frame"
NO_SOURCE = {**ROWS[1], "candidate": None}
TWICE = ["id", "source", "candidate", "candidate"]
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "missing cell": (
        lambda: pd.DataFrame([ROWS[0], NO_SOURCE]),
        "frame, row 2: field 'candidate' is missing",
    ),
    "no dicts": (lambda: [{}, 3], "row 2: expected a dict with named fields, got int"),
    "a huge text": (
        lambda: [{**ROWS[0], "source": "x" * 200_000}],
        "row 1: field 'source' has 200,000",
    ),
    "one name": (
        lambda: pd.DataFrame([[*"ascc"]], columns=TWICE),
        "two columns are called 'candidate'",
    ),
    "a lazy frame": (lambda: pl.DataFrame(ROWS).lazy(), f"LazyFrame {NO_TABLE}"),
    "a series": (lambda: pd.Series([1, 2]), f"Series {NO_TABLE}"),
    "an array": (lambda: pa.array(["a"]), f"StringArray {NO_TABLE}"),
}


@pytest.mark.filterwarnings("ignore:Determining the column names of a LazyFrame")
@pytest.mark.parametrize(("make", "fault"), BAD.values(), ids=BAD)
def test_bad_frames_are_told_by_row_and_field(make: Callable[[], Any], fault: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_dataset(make())
    assert fault in str(caught.value)


def test_a_parquet_file_holds_what_the_frame_holds(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, ROWS))
    again = load_dataset(ROWS)
    assert dataset.items == again.items
    assert list(dataset) == list(dataset)
    assert (dataset.name, dataset.line_name, len(dataset.digest)) == ("data.parquet", "row", 12)
    assert [aspect.name for aspect in choose_aspects(dataset, [])] == ["fluency"]
    write(tmp_path, [{**row, "source": "It snowed all day."} for row in ROWS])
    with pytest.raises(DataError, match="has changed since its rows were checked"):
        list(dataset)


def test_bad_parquet_is_told_by_row_and_field(tmp_path: Path) -> None:
    path = write(tmp_path, [ROWS[0], NO_SOURCE])
    refused(r"data\.parquet, row 2: field 'candidate' is missing", path)
    for content in (b"PAR1 and nothing more", b""):
        path.write_bytes(content)
        refused(r"data\.parquet: cannot be read as Parquet: ", path)
    refused(r"none\.parquet: cannot be read: No such file", tmp_path / "none.parquet")


@pytest.mark.slow
def test_a_large_parquet_file_is_not_held(tmp_path: Path) -> None:
    text = "It rained. " * 1_000
    rows = ({**ROWS[0], "id": f"i{n}", "source": f"{n} {text}"} for n in range(4_000))
    path = write(
        tmp_path, list(rows), row_group_size=4_000, compression="none", use_dictionary=False
    )
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    dataset = load_dataset(path)
    most = 0
    arrow = 0
    for item in dataset:
        most = most + len(item.id)
        arrow = max(arrow, pa.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most == 18_890
    assert peak + arrow < path.stat().st_size / 2


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, ROWS)
    table = made("Arrow", ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for data in (path, table):
        with pytest.raises(UsageError, match=r'needs pyarrow: pip install "jurygraph\[frames\]"'):
            load_dataset(data)
    assert len(load_dataset(pl.DataFrame(ROWS))) == len(load_dataset(pd.DataFrame(ROWS))) == 3
