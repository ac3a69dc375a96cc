"""Test reading datasets: accepted files, and the messages about others."""

import csv
import gzip
import json
import os
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Dataset, load_dataset
from jurygraph.eval.datasets import files, items
from jurygraph.eval.datasets.aspect_choice import choose_aspects
from jurygraph.eval.datasets.dataset import (
    describe_data,
    find_item,
    item_of_run,
    load_again,
)
from jurygraph.eval.datasets.items import EMPTY_TEXT, CompareItem, ScoreItem, parse_item
from jurygraph.eval.run.plan.plan import plan
from jurygraph.state import ASPECTS, Aspect, DataError, UsageError

from .sample_data import refused, write_lines

ROW: dict[str, Any] = {"id": "a", "source": "s", "candidate": "c", "human": {"coherence": 3}}
PAIR: dict[str, Any] = {
    "id": "p",
    "question": "q",
    "answer_1": "x",
    "answer_2": "y",
    "human": "tie",
}
HEAD = "id,source,candidate,human.fluency\n"


def write(folder: Path, *rows: dict[str, Any], name: str = "data.jsonl") -> Path:
    return write_lines(folder / name, rows)


@pytest.mark.filterwarnings("ignore:.*1 item has an empty candidate or answer")
def test_csv_has_the_same_columns(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(
        "id,group,source,candidate,human.coherence,human\n"
        '1,g,"He said ""stop"".","[not a list]",4,\n'
        '2,g,s,,,"{""coherence"": [1, 2]}"\n'
        "3,g,s,c\n",
        encoding="utf-8-sig",
    )
    first, second, third = (
        item for item in load_dataset(path, empty="judge") if isinstance(item, ScoreItem)
    )
    assert (first.id, first.source, first.candidate) == ("1", 'He said "stop".', "[not a list]")
    assert (first.label("coherence"), second.label("coherence"), second.candidate) == (
        4,
        1.5,
        EMPTY_TEXT,
    )
    assert third.human == {}, "the last cells of a row may be left out where they are no texts"
    path.write_text(HEAD + 'a,"They said ""no"",\ntwice","5"" pipe",\n\nb,5" pipe,,4\n')
    twice, pipe = (
        item for item in load_dataset(path, empty="judge") if isinstance(item, ScoreItem)
    )
    assert (twice.source, twice.candidate, twice.human) == ('They said "no",\ntwice', '5" pipe', {})
    assert (pipe.source, pipe.candidate, pipe.human) == ('5" pipe', EMPTY_TEXT, {"fluency": 4.0})
    path.write_text('id,question,answer_1,answer_2,human\n1,q,a,b,2\n2,r,a,b,"[""1"", ""1"", 2]"\n')
    labels = [item.label() for item in load_dataset(path).items if isinstance(item, CompareItem)]
    assert labels == ["2", "1"]


def test_line_separators_inside_a_text_do_not_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text(
        json.dumps({**ROW, "source": "a\u2028b"}, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    [item] = load_dataset(path)
    assert item.task(ASPECTS["summeval/fluency"]).model_dump()["source"] == "a\u2028b"


def talk(messages: Any) -> dict[str, Any]:
    return {"id": "a", "messages": messages}


def test_a_huge_text_is_refused_unless_allowed(tmp_path: Path) -> None:
    path = write(tmp_path, ROW, {**ROW, "id": "b", "candidate": "word " * 40_000})
    refused("line 2: field 'candidate' has 200,000 characters, more than 100,000", path)
    assert len(load_dataset(path, max_characters=200_000).items) == 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    refused("only once", path)
    with pytest.raises(UsageError, match=r"--data-dir \(data_dir=\) does not apply to demo"):
        load_dataset("demo", tmp_path)
    with pytest.raises(UsageError, match="does not apply to data in memory"):
        load_dataset(load_dataset("demo"), tmp_path)
    with pytest.raises(
        UsageError, match=r"pipe\.jsonl is a file: --data-dir .* only applies to named"
    ):
        load_dataset(path, tmp_path)


@pytest.mark.parametrize("before", [0, 1, 3_000])
def test_bytes_that_are_no_text_are_told_by_their_line(tmp_path: Path, before: int) -> None:
    """The decoder reads ahead and meets the bytes long before their line is requested."""
    path = write(tmp_path, *({**ROW, "id": str(n)} for n in range(before)))
    start = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"id": "\xe9"}\n')
    refused(rf"line {before + 1}: not UTF-8 text \(byte {start + 8}: ", path)


@pytest.mark.parametrize(("encoding", "width"), [("utf-16", 2), ("utf-32", 4)])
def test_text_in_another_encoding_is_told_by_its_line_too(
    tmp_path: Path, encoding: str, width: int
) -> None:
    path = tmp_path / "rows.csv"
    rows = ["source,candidate", "It rained.,Ċafé", "It snowed.,Snow"]
    beginning = "\n".join(rows).encode(encoding)
    rest = "\n".join(rows[:2]).encode(encoding)
    path.write_bytes(beginning[: len(rest)] + b"\xff\xdf\xff\xdf" + beginning[len(rest) + 4 :])
    refused(rf"line 2: not {encoding.upper()} text \(byte {len(rest)}: ", path)
    path.write_bytes(beginning[:-1])
    refused(
        rf"line 3: not {encoding.upper()} text \(byte {len(beginning) - width}: truncated", path
    )


def labelled(folder: Path, *labels: dict[str, float], **more: Any) -> Dataset:
    rows = (
        {**ROW, "id": f"i{n}", "source": f"s{n}", "human": human, **more}
        for n, human in enumerate(labels)
    )
    return load_dataset(write(folder, *rows))


def test_aspects_default_to_those_with_labels(tmp_path: Path) -> None:
    """Labels of items that are left out do not count."""
    dataset = labelled(
        tmp_path, {"fluency": 1, "coherence": 2}, {"coherence": 6, "relevance": 2}
    ).first(1)
    assert dataset.aspect_names() == ["fluency", "coherence"]
    assert [aspect.name for aspect in choose_aspects(dataset, [])] == ["fluency", "coherence"]
    assert choose_aspects(labelled(tmp_path, {}), ["fluency"])[0].high == 5


@pytest.mark.parametrize("asked", [[], ["hanna/empathy"]])
@pytest.mark.parametrize("label", ["hanna/empathy", "empathy"])
def test_labels_may_be_called_by_the_whole_name(
    tmp_path: Path, label: str, asked: list[str]
) -> None:
    [aspect] = choose_aspects(labelled(tmp_path, {label: 2}), asked)
    assert (aspect.name, aspect.criteria) == (label, ASPECTS["hanna/empathy"].criteria)


@pytest.mark.parametrize(
    ("labels", "more", "asked", "fault"),
    [
        (
            [{"coherence": 3}],
            {},
            ["fluency"],
            "no labels for the aspect 'fluency'; it has coherence",
        ),
        ([{"coherence": 3}], {}, ["coherance"], "it has coherence; did you mean coherence"),
        ([{}], {}, [], "--aspect"),
        ([{}], {}, ["wit"], "unknown aspect 'wit'"),
        (
            [{"coherence": 3}, {"coherence": 6}],
            {},
            [],
            "line 2: .*coherence' of 'i1' is 6, off the scale 1 to 5",
        ),
        (
            [{"coherence": 4}],
            {"fact": "So."},
            [],
            "off the scale 1 to 3; .* name --aspect summeval/coherence",
        ),
    ],
)
def test_aspects_that_cannot_be_judged(
    tmp_path: Path, labels: list[dict[str, float]], more: Any, asked: list[str], fault: str
) -> None:
    with pytest.raises(UsageError, match=fault):
        choose_aspects(labelled(tmp_path, *labels, **more), asked)


def test_an_aspect_of_ones_own(tmp_path: Path) -> None:
    dataset = load_dataset(write(tmp_path, ROW))
    path = tmp_path / "wit.yaml"
    path.write_text(
        "name: wit\ncriteria: Does it amuse?\nlow: 0\nhigh: 10\nsteps: [Read it., Smile.]\n"
    )
    [aspect] = choose_aspects(dataset, [str(path)])
    assert (aspect.name, aspect.high, len(aspect.steps)) == ("wit", 10, 2)
    assert choose_aspects(dataset, [aspect, "coherence"]) == [aspect, ASPECTS["summeval/coherence"]]
    missing = "criteria is missing; criterion is not a field of an aspect; did you mean criteria"
    for text, fault in {
        "name: [": "not YAML",
        "&a [*a]": "not YAML: more than 100,000 values",
        "name: wit": "criteria is missing$",
        "name: wit\ncriterion: c": missing,
        "just words": "must be an object with a value for each field, got 'just words'",
        "name: wit\ncriteria: ' '": "criteria is blank",
        "name: wit\ncriteria: c\nlow: 9": "low must be",
    }.items():
        path.write_text(text)
        with pytest.raises(DataError, match=fault):
            choose_aspects(dataset, [str(path)])


@pytest.mark.parametrize(
    ("more", "chosen", "others"),
    [
        (
            {},
            "summeval/coherence",
            "`--aspect topical-chat/coherence` or `--aspect hanna/coherence`",
        ),
        (
            {"fact": "Ice floats."},
            "topical-chat/coherence",
            "`--aspect summeval/coherence` or `--aspect hanna/coherence`",
        ),
    ],
    ids=["a text", "a dialogue"],
)
def test_of_a_name_that_several_benchmarks_share_the_wording_is_told(
    tmp_path: Path, more: dict[str, Any], chosen: str, others: str
) -> None:
    dataset = labelled(tmp_path, {"coherence": 2, "fluency": 2}, **more)
    with pytest.warns(
        UserWarning, match=rf"Rubric for coherence: {chosen} \(a .*: {others}$"
    ) as told:
        planned = plan("debate", dataset)
    assert planned.aspects[0] == ASPECTS[chosen]
    assert len(told) == 1
    with pytest.warns(UserWarning, match="has labels for tcat, but none for tact"):
        plan(
            "debate",
            labelled(tmp_path, {"tcat": 2}),
            aspects=[Aspect(name="tact", criteria="Is it kind?")],
        )
    with warnings.catch_warnings(action="error"):
        # A full name and a benchmark's own data need no word on the wording.
        assert plan("debate", dataset, aspects=["hanna/coherence"]).aspects == [
            ASPECTS["hanna/coherence"]
        ]
        plan("debate", "demo")


def written(folder: Path, form: str, rows: list[dict[str, Any]]) -> Path:
    """Write the same rows as one kind of file."""
    path = folder / f"data.{form}"
    if form == "csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=["id", "source", "candidate", "human"])
            writer.writeheader()
            writer.writerows({**row, "human": json.dumps(row["human"])} for row in rows)
    else:
        content = write(folder, *rows).read_bytes()
        path.write_bytes(gzip.compress(content) if form.endswith("gz") else content)
    return path


KINDS_OF_FILE = pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "json"])


@KINDS_OF_FILE
def test_an_item_of_a_run_is_found_again_unless_the_file_has_changed(
    tmp_path: Path, form: str
) -> None:
    rows = [{**ROW, "id": f"i{n}", "source": f"about i{n + 1}"} for n in range(5)]
    dataset = load_dataset(written(tmp_path, form, rows))
    about = describe_data(dataset)
    assert [item_of_run(about, f"i{n}") for n in range(5)] == list(dataset)
    written(tmp_path, form, [{**row, "source": "other"} for row in rows])
    with pytest.raises(DataError, match="has changed since the run"):
        item_of_run(about, "i3")


@pytest.mark.parametrize("id", ["é", '"', "5", "a/b"])
def test_an_item_of_a_run_is_found_by_any_id(tmp_path: Path, id: str) -> None:
    others = [{**ROW, "id": f"other {id}"}, {**ROW, "id": f"{id}{id}", "source": "else"}]
    rows = [*others, {**ROW, "id": int(id) if id == "5" else id, "source": "it"}]
    file = tmp_path / "data.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert item_of_run(describe_data(load_dataset(file)), id).id == id


def test_other_items_are_not_parsed_to_find_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**ROW, "id": f"i{n}-", "source": f"s{n}"} for n in range(500)]
    about = describe_data(load_dataset(written(tmp_path, "jsonl", rows)))
    parsed: list[str] = []

    def noted(row: dict[str, Any], kind: Any) -> Any:
        parsed.append(row["id"])
        return parse_item(row, kind)

    monkeypatch.setattr(items, "parse_item", noted)
    assert item_of_run(about, "i400-").id == "i400-"
    assert parsed == ["i400-"]


@KINDS_OF_FILE
def test_items_are_read_anew_as_often_as_wanted(tmp_path: Path, form: str) -> None:
    """A file of JSON lines may be called ``.json``, too."""
    rows = [{**ROW, "id": f"i{n}", "source": f"s{n}"} for n in range(5)]
    dataset = load_dataset(written(tmp_path, form, rows))
    assert (
        [item.id for item in dataset]
        == [item.id for item in dataset]
        == [f"i{n}" for n in range(5)]
    )
    assert find_item(dataset, "i3") == dataset.items[3] and find_item(dataset, "c") is None
    first = dataset.first(2)
    assert (len(first), [item.id for item in first]) == (2, ["i0", "i1"])
    lengths = [
        len(part) for part in (dataset, first.first(4), dataset.first(9), dataset.first(None))
    ]
    assert lengths == [5, 2, 5, 5]
    assert first.digest == dataset.digest
    written(tmp_path, form, [*rows[:-1], {**ROW, "id": "other"}])
    with pytest.raises(DataError, match="has changed since its rows were checked"):
        next(iter(dataset))


@pytest.mark.slow
@KINDS_OF_FILE
def test_a_large_file_is_not_held(tmp_path: Path, form: str) -> None:
    text = "It rained. " * 1_000
    path = written(
        tmp_path, form, [{**ROW, "id": f"i{n}", "source": text + str(n)} for n in range(1_000)]
    )
    tracemalloc.start()
    dataset = load_dataset(path)
    assert sum(len(item.id) for item in dataset) == 3_890
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000 * len(text) / 4


@KINDS_OF_FILE
def test_one_id_twice_far_apart(tmp_path: Path, form: str) -> None:
    rows = [{**ROW, "id": f"i{n % 700}", "source": f"s{n}"} for n in range(701)]
    offset = 1 if form == "csv" else 0
    refused(
        f"line {701 + offset}: id 'i0' is already used in line {1 + offset}",
        written(tmp_path, form, rows),
    )


def test_a_file_that_changes_while_it_is_read_or_without_a_trace_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path, *({**ROW, "id": f"i{n}", "source": f"{n:03}" * 3_334} for n in range(100))
    )
    items = iter(load_dataset(path))
    assert next(items).id == "i0"
    with path.open("r+b") as file:
        file.seek(-200, os.SEEK_END)
        file.write(b"y" * 100)
    with pytest.raises(DataError, match="has changed"):
        list(items)
    write(tmp_path, ROW)
    dataset = load_dataset(path)
    before = path.stat()
    os.utime(path, (1, 1))
    assert [item.id for item in dataset] == ["a"], "a new date on the same content is no change"
    path.write_text(path.read_text().replace('"s"', '"t"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match="has changed"):
        list(dataset)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read: No such file"):
        list(dataset)


def test_items_in_memory() -> None:
    items = [
        parse_item({**ROW, "id": "b"}),
        parse_item({"id": "a", "source": "s", "candidate": "c"}),
    ]
    dataset = Dataset.of("mine", items)
    assert list(dataset) == list(dataset.items) == items
    assert (dataset.kind, dataset.labels, len(dataset)) == ("score", "people", 2)
    assert [aspect.name for aspect in choose_aspects(dataset, [])] == ["coherence"]
    assert (
        dataset.digest == Dataset.of("mine", items).digest != Dataset.of("mine", items[:1]).digest
    )
    assert Dataset.of("mine", items[1:]).labels == "none"
    for rows, fault in (
        ((), "mine: contains no items"),
        ((ROW, ROW), "mine, item 2: id 'a' .* used in item 1"),
    ):
        with pytest.raises(DataError, match=fault):
            Dataset.of("mine", map(parse_item, rows))


def test_the_location_holds_from_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, ROW)
    monkeypatch.chdir(tmp_path)
    dataset = load_dataset("data.jsonl")
    assert dataset.location == str(tmp_path / "data.jsonl")
    monkeypatch.chdir("/")
    assert load_again(describe_data(dataset)).digest == dataset.digest


# Nothing is read wrong in silence
JUNK = b"fine\n\xff\xfe\x00\x9c" * 100
LINE = json.dumps(ROW)
RESULT = [{"role": "tool", "tool_call_id": "7", "content": "42"}]
IMAGE = {"role": "ai", "content": [{"type": "image", "url": "a"}]}
IN_TALK = r"line 1: field 'messages':"
TOLD: dict[str, dict[str, tuple[str | bytes | list[Any], str]]] = {
    "data.jsonl": {
        "empty": ("", "contains no items"),
        "blank": ("\n\n", "contains no items"),
        "junk": (JUNK, "line 2: not UTF-8"),
        "no JSON": ("{", "line 1: not JSON"),
        "no object": ([[1]], "line 1: expected an object"),
        "wrong column": (
            [{"id": "a", "src": "s", "candidate": "c"}],
            "line 1: field 'source' is missing",
        ),
        "no id": ([ROW, {"source": "s", "candidate": "c"}], "line 2: field 'id' is missing"),
        "label no number": (
            [{**ROW, "human": {"coherence": "good"}}],
            r"line 1: field 'human\.coherence",
        ),
        "label not finite": (
            [{**ROW, "human": {"coherence": float("inf")}}],
            "line 1: field 'human",
        ),
        "winner unknown": ([{**PAIR, "human": "3"}], "line 1: field 'human"),
        "same id twice": (
            [ROW, {**ROW, "source": "t"}],
            "line 2: id 'a' is already used in line 1",
        ),
        "two kinds": ([ROW, PAIR], "line 2: a file cannot hold both texts"),
        "message without a role": (
            [talk([{"content": "Hi"}])],
            rf"{IN_TALK} messages\[0\] has no role",
        ),
        "no messages": ([talk([])], f"{IN_TALK} messages is an empty"),
        "messages that are a text": ([talk("Hi")], f"{IN_TALK} messages must be .*, got 'Hi'"),
        "nobody answers": (
            [talk([{"role": "user", "content": "Hi"}])],
            f"{IN_TALK} .* no answer to judge",
        ),
        "a result of no call": (
            [{**ROW, "source": RESULT}],
            r"'source': source\[0\] is the result of a tool call",
        ),
        "an image": (
            [{**ROW, "candidate": IMAGE}],
            r"field 'candidate': candidate holds an image \(image\)",
        ),
        "a doubled key": (f'{LINE}\n{{"id": "b", "id": "c"}}', "line 2: the key 'id' occurs twice"),
        "a doubled key inside": (
            '{"human": {"wit": 1, "wit": 2}}',
            "line 1: the key 'wit' occurs twice",
        ),
        "half a character": (
            [{**ROW, "source": "So \ud83d."}],
            r"'source' .* \(U\+D83D\), at position 4",
        ),
        "half a reference": (
            [{**ROW, "references": ["so", "\udc00"]}],
            "'references' has half a character",
        ),
    },
    "data.jsonl.gz": {
        "junk": (JUNK, "cannot be read"),
        "cut off": (gzip.compress(LINE.encode())[:-10], "cannot be read"),
    },
    "data.json": {
        "no array": ("[1, ", "not JSON"),
        "wrong names": (
            f'[{LINE}, {{"id": "b"}}]',
            "row 2: fields 'source' and 'candidate' are missing",
        ),
        "no object": (f"[{LINE}, 7]", "row 2: expected an object with named fields, got int"),
        "a doubled key": (
            f'[{LINE}, {{"id": "b", "id": "c"}}]',
            "row 2: the key 'id' occurs twice",
        ),
        "a frame's columns": (
            '{"Summary": {"0": "Rain."}}',
            "columns instead of rows; .*orient='records'",
        ),
    },
    "data.csv": {
        "junk": (JUNK, r"data\.csv"),
        "a header alone": (HEAD, "contains no items"),
        "a wrong name": (
            "id,headline,candidate\n1,a,b\n",
            "'source' is missing; .*--columns source=COLUMN$",
        ),
        "wrong names": (
            "headline,body\na,b\n",
            "headline, body; .*source=COLUMN,candidate=COLUMN .and human",
        ),
        "a quote that nobody closes": (
            HEAD + "".join(f"{n},{'' if n != 3 else chr(34)}Noon.,Rain.,4\n" for n in range(20)),
            "line 5 to 21: not CSV: unexpected end of data; put a cell that contains a quote",
        ),
        "a quote that another row closes": (
            HEAD + 'a,"Noon.,Rain.,4\nb,"Dusk.",Hail.,4\nc,Dawn.,Snow.,4\n',
            "line 2 to 3: not CSV: .*; put a cell that contains a quote into quotes",
        ),
        "quotes in quotes": (
            HEAD + 'a,"They said "no"",Rain.,4\n',
            "line 2: not CSV: .*double each quote",
        ),
        "a doubled column": (
            "id,source,source\na,b,c\n",
            "line 1: two columns are called 'source'",
        ),
        "a row cut off": (HEAD + "a,Noon.\n", "line 2: has only 2 cells, and none .* 'candidate'"),
        "a doubled key in a cell": (
            'id,source,candidate,human\na,b,c,"{""fluency"": 1, ""fluency"": 2}"\n',
            "line 2: the key 'fluency' occurs twice in one object",
        ),
        "NUL": (
            HEAD + "a,b,Ra\0in.,4\n",
            "line 2: (field 'candidate' has a NUL|not CSV: line contains NUL)",
        ),
        "three encodings": (
            "id;source\n1;caf\xe9\n".encode("cp1252") + "2;Größe\n".encode(),
            "line 3 is UTF-8 and line 2 is not: a file in several encodings",
        ),
    },
    "data.xlsx": {"no spreadsheet": ("Rain.", "cannot be read as a spreadsheet")},
    "data.docx": {"another kind": ("x", r"expected \.jsonl, \.json, \.csv or \.tsv")},
}
"""The contents of a file of this name, and the message; rows are written as JSON lines."""
REFUSED = [
    pytest.param(name, content, words, id=f"{name}: {case}")
    for name, cases in TOLD.items()
    for case, (content, words) in cases.items()
]


@pytest.mark.parametrize(("name", "content", "words"), REFUSED)
def test_what_cannot_be_read_or_would_be_read_wrong_is_refused_with_file_line_and_field(
    tmp_path: Path, name: str, content: str | bytes | list[Any], words: str
) -> None:
    path = tmp_path / name
    if isinstance(content, list):
        write_lines(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert str(path) in str(refused(words, path))


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv", "data.jsonl.gz"])
def test_a_line_too_long_to_be_a_row_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1000)
    path = tmp_path / name
    content = (HEAD if name.endswith("csv") else json.dumps(ROW) + "\n") + "x" * 5000
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    refused(r"line 2: has more than 1,000 characters, too many for a row", path)
