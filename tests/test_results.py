"""Results on disk: what a kill leaves, what is replaced, in which order they end up, and that none is held."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.results.results import Key, Result, ResultsFile
from jurygraph.state import DataError
from jurygraph.state.transcript import Turn, turn_without_model

from .processes import child
from .sample_data import read_lines


def said(words: str) -> Turn:
    return turn_without_model(0, "scorer", "scorer", words, 3.0)


def result(item: str, status: Any = "ok", **fields: Any) -> Result:
    return Result(item=item, aspect="wit", protocol="debate", status=status, **fields)


def key(item: str) -> Key:
    return Key(item, "wit", "debate", 0)


def filled(folder: Path, *results: Result) -> ResultsFile:
    file = ResultsFile(folder)
    for each in results:
        file.add(each)
    file.close()
    return file


def names(folder: Path) -> list[str]:
    return [line["item"] for line in read_lines(folder)]


def items(results: Iterable[Result]) -> list[str]:
    return [result.item for result in results]


def test_what_is_added_can_be_read_with_its_fields_in_their_order(tmp_path: Path) -> None:
    one = result("a", score=3.5, score_by_round=(3.0, 3.5), human=2.0, transcript=(said("Wörds. \u2028 \n"),))
    beside: Any = {"details": {"x": [1, None]}, "warnings": ("w",)}
    two = result("b", scores=(1.0, 2.0), winner="2", score_by_round=((1.0, 2.0),), **beside)
    filled(tmp_path, one, two)
    assert list(ResultsFile(tmp_path).read()) == [one, two]
    line = json.loads(one.line())
    assert list(line)[:6] == ["item", "group", "aspect", "protocol", "status", "score"]
    assert list(line)[-3:] == ["details", "warnings", "transcript"]
    assert set(line) == {*Result.model_fields} - {"uncounted"}, "which is told only where it is not zero"
    unknown = result("a", calls=2, input_tokens=0, uncounted=1)
    assert json.loads(unknown.line()) == unknown.model_dump(mode="json")


@pytest.mark.parametrize(
    ("details", "read"),
    [
        ({"path": Path("a")}, {"path": "a"}),
        ({"by": {1: 2**70}}, {"by": {"1": 2**70}}),
        ({"half": "\ud83d."}, {"half": "?."}),
    ],
    ids=["no JSON", "large number", "half a surrogate pair"],
)
def test_details_of_any_kind_are_written_and_read(
    tmp_path: Path, details: dict[Any, Any], read: dict[str, Any]
) -> None:
    filled(tmp_path, result("a").model_copy(update={"details": details}), result("b"))
    assert [each.details for each in ResultsFile(tmp_path).read()] == [read, {}]


def test_lines_of_another_hand_are_read(tmp_path: Path) -> None:
    """Fields in any order, spaces between them, defaults left out."""
    (tmp_path / "results.jsonl").write_text(
        '{"details": {}, "status": "ok", "protocol": "debate", "aspect": "wit", "score": 3, "item": "a"}\n'
    )
    file = ResultsFile(tmp_path)
    assert key("a") in file.ok_keys()
    [found] = file.read()
    [head] = file.read().heads()
    assert found.score == head["score"] == 3.0
    assert (head["calls"], head["cost_usd"]) == (0, 0.0)


def test_the_last_line_of_a_key_counts_and_keys_differ_in_every_part(tmp_path: Path) -> None:
    other = Result(item="b", protocol="more", status="ok")
    filled(tmp_path, result("a", "failed"), result("b"), other, result("a", score=2.0), result("b", "failed"))
    file = ResultsFile(tmp_path)
    told = [(each.item, each.protocol, each.status) for each in file.read()]
    assert told == [("a", "debate", "ok"), ("b", "debate", "failed"), ("b", "more", "ok")]
    there = file.ok_keys()
    assert (len(there), key("a") in there, key("b") in there) == (2, True, False)
    for parts in (("c", "wit", "debate", 0), ("a", None, "debate", 0), ("a", "wit", "more", 0)):
        assert Key(*parts) not in there
    assert Key("a", "wit", "debate", 1) not in there
    assert [(each.item, each.protocol, each.status) for each in file.of_item("b")] == told[1:]
    assert file.of_item('"') == []


@pytest.mark.parametrize("cut", [1, 7, 200, 100_000])
def test_half_a_line_is_no_line_and_is_taken_away_by_writing_alone(tmp_path: Path, cut: int) -> None:
    filled(tmp_path, result("a"), result("b", transcript=(said("x" * 200_000),)))
    path = tmp_path / "results.jsonl"
    path.write_bytes(before := path.read_bytes()[:-cut])
    file = ResultsFile(tmp_path)
    assert (items(file.read()), len(file.ok_keys()), len(file.of_item("a"))) == (["a"], 1, 1)
    assert path.read_bytes() == before
    filled(tmp_path, result("c"))
    assert names(tmp_path) == ["a", "c"]
    path.write_bytes(before)
    assert items(ResultsFile(tmp_path).finish(map(key, "ab"))) == names(tmp_path) == ["a"]


def test_no_line_yet(tmp_path: Path) -> None:
    file = ResultsFile(tmp_path)
    for _ in range(2):
        assert len(file.read()) == len(file.ok_keys()) == len(file.finish([key("a")])) == 0
        assert file.of_item("a") == []
        file.close()
        assert not file.path.exists() or file.path.read_bytes() == b""
        (tmp_path / "results.jsonl").write_text('{"item": "a", "prot')
    filled(tmp_path, result("b"))
    assert names(tmp_path) == ["b"]


def test_a_kill_leaves_whole_lines(tmp_path: Path) -> None:
    """Every result that was announced after ``add`` is there, and the last line is whole or cut off."""
    script = """
import pathlib, sys
from jurygraph.eval.results.results import Result, ResultsFile
file = ResultsFile(pathlib.Path(sys.argv[1]))
for n in range(10**9):
    file.add(Result(item=f"i{n}", protocol="debate", status="ok", error="x" * 50_000))
    print(n, flush=True)
"""
    with child(sys.executable, "-c", script, str(tmp_path), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        announced = [int(process.stdout.readline())]
        time.sleep(0.1)
        process.kill()
        announced += map(int, process.stdout.read().split("\n")[:-1])
    there = items(ResultsFile(tmp_path).read())
    assert there == [f"i{n}" for n in range(len(there))]
    assert len(there) in {announced[-1] + 1, announced[-1] + 2}


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes a part of a line and then no more; once there is room again, all goes on."""
    file = filled(tmp_path, result("a"))
    room = 10

    class Disk(FileIO):
        def write(self, data: Any) -> int:
            nonlocal room
            if room == 0:
                raise OSError(28, "No space left on device")
            taken = super().write(bytes(data)[:room])
            room -= taken
            return taken

    monkeypatch.setattr("jurygraph.eval.results.results.FileIO", Disk)
    with pytest.raises(OSError, match="No space left"):
        file.add(result("b"))
    assert items(ResultsFile(tmp_path).read()) == ["a"]
    room = 10**6
    file.add(result("c"))
    assert [each.item for each in file.finish([key("c"), key("a")])] == ["c", "a"]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"item": 5}', r"results\.jsonl, line 3: item: "),
        ("mumble", r"results\.jsonl, line 3: Invalid JSON"),
        ("[1]", r"results\.jsonl, line 3: Input should be"),
        ('{"item": "a", "aspect": null, "protocol": "p", "repeat": 0}', r"line 3: status: Field required"),
    ],
)
def test_a_line_that_is_no_result_is_told_by_its_number(tmp_path: Path, line: str, fault: str) -> None:
    path = filled(tmp_path, result("a"), result("b", score=7.25)).path
    good = path.read_text()
    path.write_text(f"{good}{line}\n")
    for act in (ResultsFile.read, ResultsFile.ok_keys):
        with pytest.raises(DataError, match=fault):
            act(ResultsFile(tmp_path))
    # What is no result at second sight only.
    path.write_text(good.replace("7.25", '"x"'))
    stored = ResultsFile(tmp_path).read()
    assert stored[0].item == "a"
    for read in (lambda: stored[1], lambda: list(stored)):
        with pytest.raises(DataError, match=r"results\.jsonl, line 2: score: "):
            read()


def test_finishing_puts_lines_in_order(tmp_path: Path) -> None:
    """One line a key, in the order of the keys; what else is there comes last; keys without a line are left out."""
    filled(
        tmp_path, *map(result, ["x", "c", "a"]), result("b", "failed"), result("y"), result("b"), result("x")
    )
    file = ResultsFile(tmp_path)
    stored = file.finish(map(key, ["a", "missing", "b", "c"]))
    assert items(stored) == ["a", "b", "c"]
    assert names(tmp_path) == items(file.read()) == ["a", "b", "c", "x", "y"]
    assert not stored.failed
    # A file in order is left alone; a line that is added comes to its place.
    before = file.path.stat()
    assert items(file.finish(map(key, "ab"))) == ["a", "b"]
    after = file.path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    file.add(result("d"))
    assert items(file.finish(map(key, "dba"))) == ["d", "b", "a"]
    assert names(tmp_path) == ["d", "b", "a", "c", "x", "y"]


def test_a_failed_rewrite_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = filled(tmp_path, *map(result, "ba"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        file.finish(map(key, "ab"))
    assert names(tmp_path) == ["b", "a"]
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


def test_stored_results_are_a_sequence(tmp_path: Path) -> None:
    stored = filled(tmp_path, result("a"), result("b", "failed"), result("c"), result("d", "failed")).finish(
        map(key, "dcba")
    )
    assert (len(stored), stored[0].item, stored[-1].item, stored[2].item) == (4, "d", "a", "b")
    assert items(stored[1:3]) == ["c", "b"]
    assert items(reversed(stored)) == ["a", "b", "c", "d"]
    assert items(stored.failed) == ["d", "b"]
    assert items(stored[1:].failed[:1]) == ["b"]
    with pytest.raises(IndexError):
        stored[4]


def test_heads_hold_what_results_hold(tmp_path: Path) -> None:
    """Whatever words stand in a result, also those that look like the end of its head."""
    tricky = ',"details":{} ,\\"details\\": "'
    results = [
        result("a" + tricky, "failed", error=tricky, group=tricky, transcript=(said(tricky),)),
        result("b", score=3.0, details={"details": {"details": 1}}),
    ]
    heads = list(filled(tmp_path, *results).read().heads())
    for head, whole in zip(heads, results, strict=True):
        fields = whole.model_dump(mode="json", exclude={"details", "warnings", "transcript"})
        assert head == fields


def test_results_of_a_file_that_was_rewritten_since_are_refused(tmp_path: Path) -> None:
    file = filled(tmp_path, *map(result, "ab"))
    stored = file.read()
    file.add(result("c"))
    assert items(stored) == ["a", "b"]
    file.finish(map(key, "cba"))
    with pytest.raises(DataError, match="the file was rewritten after"):
        list(stored)


def test_many_results_are_not_held(tmp_path: Path) -> None:
    """Twenty megabytes of results, written in disorder, resumed, put in order and read with less than three."""
    count, words = 1_000, (said("x" * 20_000),)
    shuffled = random.Random(1).sample([f"i{n}" for n in range(count)], count)
    tracemalloc.start()
    filled(tmp_path, *(result(item, transcript=words) for item in shuffled))
    there = ResultsFile(tmp_path).ok_keys()
    assert all(key(item) in there for item in shuffled)
    stored = ResultsFile(tmp_path).finish(key(f"i{n}") for n in range(count))
    assert items(stored) == [f"i{n}" for n in range(count)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "results.jsonl").stat().st_size > 20_000_000
    assert peak < 3_000_000
