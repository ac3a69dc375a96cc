"""Reading datasets: what is accepted, and how what is not is told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets import SOURCES, choose_aspects
from jurygraph.eval.items import CompareItem, ScoreItem, majority, parse_item
from jurygraph.state import DataError, UsageError

ROW: dict[str, Any] = {"id": "a", "source": "s", "candidate": "c", "human": {"coherence": 3}}
PAIR: dict[str, Any] = {"id": "p", "question": "q", "answer_1": "x", "answer_2": "y", "human": "tie"}


def write(folder: Path, *rows: dict[str, Any], name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "kind"), [("demo", "score"), ("demo-pairs", "compare")])
def test_the_bundled_ones(name: str, kind: str) -> None:
    dataset = load_dataset(name)
    assert (dataset.kind, dataset.labels) == (kind, "construction")
    assert len(dataset.items) >= 40
    assert SOURCES[name].kind == kind


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_jsonl_plain_and_compressed(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path, ROW, {**ROW, "id": "b"})
    if suffix:
        compressed = path.with_name("data.jsonl.gz")
        compressed.write_bytes(gzip.compress(path.read_bytes()))
        path = compressed
    dataset = load_dataset(path)
    assert [item.id for item in dataset.items] == ["a", "b"]
    assert dataset.labels == "people"


def test_csv_has_the_same_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "id,group,source,candidate,human.coherence,human\n"
        '1,g,"He said ""stop"".","[not a list]",4,\n'
        '2,g,s,,,"{""coherence"": [1, 2]}"\n',
        encoding="utf-8-sig",
    )
    first, second = load_dataset(path).items
    assert isinstance(first, ScoreItem)
    assert isinstance(second, ScoreItem)
    assert (first.id, first.source, first.candidate) == ("1", 'He said "stop".', "[not a list]")
    assert (first.label("coherence"), second.label("coherence")) == (4, 1.5)
    assert second.candidate == ""


def test_csv_of_comparisons(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('id,question,answer_1,answer_2,human\n1,q,a,b,2\n2,q,a,b,"[""1"", ""1"", 2]"\n')
    labels = [item.label() for item in load_dataset(path).items if isinstance(item, CompareItem)]
    assert labels == ["2", "1"]


def test_line_separators_inside_a_text_do_not_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({**ROW, "source": "a\u2028b"}, ensure_ascii=False) + "\n", encoding="utf-8")
    [item] = load_dataset(path).items
    assert isinstance(item, ScoreItem)
    assert item.source == "a\u2028b"


def test_a_huge_text_is_refused_unless_allowed(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, {**ROW, "id": "b", "candidate": "word " * 40_000})
    with pytest.raises(
        DataError, match=r"line 2: field 'candidate' has 200,000 characters, more than 100,000"
    ):
        load_dataset(path)
    assert len(load_dataset(path, max_characters=200_000).items) == 2


BAD = {
    "empty": ("", "holds no items"),
    "blank": ("\n\n", "holds no items"),
    "no JSON": ("{", "line 1: not JSON"),
    "no object": ("[1]", "line 1: expected an object"),
    "wrong column": (
        json.dumps({"id": "a", "src": "s", "candidate": "c"}),
        "line 1: field 'source' is missing",
    ),
    "no id": (json.dumps({"source": "s", "candidate": "c"}), "line 1: field 'id' is missing"),
    "label no number": (
        json.dumps({**ROW, "human": {"coherence": "good"}}),
        "line 1: field 'human.coherence",
    ),
    "label not finite": (
        '{"id":"a","source":"s","candidate":"c","human":{"coherence":NaN}}',
        "line 1: field 'human",
    ),
    "winner unknown": (json.dumps({**PAIR, "human": "3"}), "line 1: field 'human"),
    "same id twice": (json.dumps(ROW) + "\n\n" + json.dumps(ROW), "line 3: id 'a' stands already in line 1"),
    "two kinds": (json.dumps(ROW) + "\n" + json.dumps(PAIR), "line 2: texts to be rated and answers"),
}


@pytest.mark.parametrize(("text", "fault"), BAD.values(), ids=BAD)
def test_bad_files_are_told_by_file_line_and_field(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        load_dataset(path)
    assert str(path) in str(caught.value)
    assert fault in str(caught.value)


@pytest.mark.parametrize("name", ["junk.jsonl", "junk.csv", "junk.jsonl.gz"])
def test_binary_junk(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"fine\n\xff\xfe\x00\x9c" * 100)
    with pytest.raises(DataError, match=r"junk\.(jsonl|csv)"):
        load_dataset(path)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "data.xlsx"
    path.write_text("x")
    with pytest.raises(DataError, match=r"expected \.jsonl or \.csv"):
        load_dataset(path)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="datasets are demo, demo-pairs"):
        load_dataset("dmeo")


def test_aspects_default_to_those_with_labels(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, {**ROW, "human": {"fluency": 1, "coherence": 2}}))
    assert [aspect.name for aspect in choose_aspects(dataset, [])] == ["fluency", "coherence"]


def test_an_aspect_that_the_dataset_lacks(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, ROW))
    with pytest.raises(UsageError, match="no labels for the aspect 'fluency'; it has coherence"):
        choose_aspects(dataset, ["fluency"])


def test_an_aspect_must_be_named_where_there_are_no_labels(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, {"id": "a", "source": "s", "candidate": "c"}))
    with pytest.raises(UsageError, match="--aspect"):
        choose_aspects(dataset, [])
    assert choose_aspects(dataset, ["fluency"])[0].high == 5
    with pytest.raises(UsageError, match="unknown aspect 'wit'"):
        choose_aspects(dataset, ["wit"])


def test_a_label_off_the_scale(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, ROW, {**ROW, "id": "b", "human": {"coherence": 6}}))
    with pytest.raises(DataError, match=r"line 2: field 'human.coherence' of 'b' is 6, off the scale 1 to 5"):
        choose_aspects(dataset, [])


def test_an_aspect_of_ones_own(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, ROW))
    path = tmp_path / "wit.yaml"
    path.write_text("name: wit\ncriteria: Does it amuse?\nlow: 0\nhigh: 10\nsteps: [Read it., Smile.]\n")
    [aspect] = choose_aspects(dataset, [str(path)])
    assert (aspect.name, aspect.high, len(aspect.steps)) == ("wit", 10, 2)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("name: [", "not YAML"),
        ("name: wit", "'criteria' is missing"),
        ("name: wit\ncriteria: c\nlow: 9", "low must be"),
    ],
)
def test_a_bad_aspect_file(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "wit.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=fault):
        choose_aspects(load_dataset(write(tmp_path, ROW)), [str(path)])


def test_turns_are_joined() -> None:
    item = parse_item({"id": "m", "turns": ["One?", "Two?"], "answer_1": ["1", "2"], "answer_2": "both"})
    assert isinstance(item, CompareItem)
    assert item.question == "Turn 1: One?\n\nTurn 2: Two?"
    assert item.answer_1.endswith("Turn 2: 2")


def test_the_majority_of_annotators() -> None:
    assert majority(["1", "1", "2"]) == "1"
    assert majority(["1", "2"]) == "tie"


@pytest.mark.parametrize("name", ["topical-chat", "summeval", "faireval", "llmbar"])
def test_published_data_needs_its_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--data-dir"):
        load_dataset(name)
    with pytest.raises(DataError, match="holds no"):
        load_dataset(name, tmp_path)


def test_published_data(shared_data: Path) -> None:
    chat, summeval = (load_dataset(name, shared_data) for name in ("topical-chat", "summeval"))
    assert {aspect.high for aspect in choose_aspects(chat, [])} == {1, 3}
    assert {aspect.high for aspect in choose_aspects(summeval, [])} == {5}
    assert len({item.group for item in chat.items}) * 6 == len(chat.items)
    assert len({item.group for item in summeval.items}) * 16 == len(summeval.items)


@pytest.mark.parametrize(("name", "labels"), [("faireval", {"1", "2", "tie"}), ("llmbar", {"1", "2"})])
def test_published_comparisons(shared_data: Path, name: str, labels: set[str]) -> None:
    dataset = load_dataset(name, shared_data)
    assert dataset.kind == "compare"
    assert {item.label() for item in dataset.items if isinstance(item, CompareItem)} == labels
