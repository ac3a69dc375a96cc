"""Test results on disk: kills, replacement, order, memory, and equal figures."""

import json
import os
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.report.result_tables import overview_table
from jurygraph.eval.results.agreement import PreferenceAgreement, ScoreAgreement
from jurygraph.eval.results.results import NO_KEYS, Key, Result, ResultsFile, digests_of
from jurygraph.state import Aspect, DataError, UsageError
from jurygraph.state.transcript import Turn, turn_without_model
from rich.console import Console

from .processes import child
from .run_folders import compared, failed, scored
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
    one = result(
        "a", score=3.5, score_by_round=(3.0, 3.5), human=2.0, transcript=(said("Wörds. \u2028 \n"),)
    )
    beside: Any = {"details": {"x": [1, None]}, "warnings": ("w",)}
    two = result("b", scores=(1.0, 2.0), winner="2", score_by_round=((1.0, 2.0),), **beside)
    filled(tmp_path, one, two)
    assert list(ResultsFile(tmp_path).read()) == [one, two]
    line = json.loads(one.line())
    assert list(line)[:6] == ["item", "group", "aspect", "protocol", "status", "score"]
    assert list(line)[-3:] == ["details", "warnings", "transcript"]
    assert set(line) == {*Result.model_fields} - {"uncounted"}, (
        "which is told only where it is not zero"
    )
    unknown = result("a", calls=2, input_tokens=0, uncounted=1)
    assert json.loads(unknown.line()) == unknown.model_dump(mode="json")


@pytest.mark.parametrize(("details", "read"), [
    ({"path": Path("a")}, {"path": "a"}), ({"by": {1: 2**70}}, {"by": {"1": 2**70}}),
    ({"half": "\ud83d."}, {"half": "?."}),
], ids=["no JSON", "large number", "half a surrogate pair"])  # fmt: skip
def test_details_of_any_kind_are_kept(
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
    filled(
        tmp_path,
        result("a", "failed"),
        result("b"),
        other,
        result("a", score=2.0),
        result("b", "failed"),
    )
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
def test_half_a_line_is_no_line_and_is_taken_away_by_writing_alone(
    tmp_path: Path, cut: int
) -> None:
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
    """Every result announced after ``add`` is there; the last line is whole or cut off."""
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


@pytest.mark.parametrize(("line", "fault"), [
    ('{"item": 5}', r"results\.jsonl, line 3: item: "), ("mumble", r"results\.jsonl, line 3: Invalid JSON"),
    ("[1]", r"results\.jsonl, line 3: Input should be"),
    ('{"item": "a", "aspect": null, "protocol": "p", "repeat": 0}', r"line 3: status: Field required"),
])  # fmt: skip
def test_a_line_that_is_no_result_is_told_by_its_number(
    tmp_path: Path, line: str, fault: str
) -> None:
    path = filled(tmp_path, result("a"), result("b", score=7.25)).path
    good = path.read_text()
    path.write_text(f"{good}{line}\n")
    for act in (ResultsFile.read, ResultsFile.ok_keys):
        with pytest.raises(DataError, match=fault):
            act(ResultsFile(tmp_path))
    # An invalid result that looks valid at first.
    path.write_text(good.replace("7.25", '"x"'))
    stored = ResultsFile(tmp_path).read()
    assert stored[0].item == "a"
    for read in (lambda: stored[1], lambda: list(stored)):
        with pytest.raises(DataError, match=r"results\.jsonl, line 2: score: "):
            read()


def test_digests_stand_for_keys(tmp_path: Path) -> None:
    filled(tmp_path, result("a"), result("b", "failed"), result("c"), result("a"))
    digests = digests_of(map(key, "cbda"))
    assert ResultsFile(tmp_path).ok_keys().count(digests) == 2
    assert NO_KEYS.count(digests) == len(NO_KEYS) == 0
    assert items(ResultsFile(tmp_path).finish(digests)) == ["c", "b", "a"]
    # Nothing to rewrite.
    before = (tmp_path / "results.jsonl").stat().st_ino
    assert items(ResultsFile(tmp_path).finish(digests_of(map(key, "cba")))) == ["c", "b", "a"]
    assert (tmp_path / "results.jsonl").stat().st_ino == before


def test_results_of_a_file_that_grows_remain_readable(tmp_path: Path) -> None:
    file = filled(tmp_path, *map(result, "ab"))
    stored = file.read()
    for item in "cd":
        file.add(result(item))
    assert items(stored) == ["a", "b"]
    assert items(file.read()) == ["a", "b", "c", "d"]
    assert len(file.ok_keys()) == 4


def test_a_key_is_read_without_the_long_fields(tmp_path: Path) -> None:
    path = filled(tmp_path, result("a"), result("b")).path
    # Not JSON any more, in a place that only the reader of the transcript reaches.
    path.write_text(path.read_text().replace('"details":{}', '"details":{]', 1))
    there = ResultsFile(tmp_path)
    assert [key(item) in there.ok_keys() for item in "ab"] == [True, True]
    with pytest.raises(DataError, match=r"results\.jsonl, line 1"):
        list(there.read())


def test_finishing_puts_lines_in_order(tmp_path: Path) -> None:
    """One line a key, in the order of the keys; other lines come last."""
    filled(
        tmp_path,
        *map(result, ["x", "c", "a"]),
        result("b", "failed"),
        result("y"),
        result("b"),
        result("x"),
    )
    file = ResultsFile(tmp_path)
    stored = file.finish(map(key, ["a", "missing", "b", "c"]))
    assert items(stored) == ["a", "b", "c"]
    assert names(tmp_path) == items(file.read()) == ["a", "b", "c", "x", "y"]
    assert not stored.failed
    # A sorted file stays unchanged; an added line moves to its place.
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
    stored = filled(
        tmp_path, result("a"), result("b", "failed"), result("c"), result("d", "failed")
    ).finish(map(key, "dcba"))
    assert (len(stored), stored[0].item, stored[-1].item, stored[2].item) == (4, "d", "a", "b")
    assert items(stored[1:3]) == ["c", "b"]
    assert items(reversed(stored)) == ["a", "b", "c", "d"]
    assert items(stored.failed) == ["d", "b"]
    assert items(stored[1:].failed[:1]) == ["b"]
    with pytest.raises(IndexError):
        stored[4]


def test_heads_hold_what_results_hold(tmp_path: Path) -> None:
    """A result may contain any words, even those that look like the end of its head."""
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
    """Write, resume, sort and read twenty megabytes of results in under three of memory."""
    count = 1_000
    words = (said("x" * 20_000),)
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


MANIFEST = {"data": {"labels": "people"}, "protocols": {"debate": {}, "more": {}}}
SPENT: dict[str, Any] = {"calls": 2, "input_tokens": 1_000, "output_tokens": 100, "cost_usd": 0.25}


def debated(
    n: int, score: float, human: float, rounds: int, stop_reason: str = "max_rounds"
) -> Result:
    about = {
        "group": f"g{n % 2}",
        "human": human,
        "rounds": rounds,
        "stop_reason": stop_reason,
        **SPENT,
    }
    return scored(f"i{n}", score=score, score_by_round=(3.0, score), **about)


RESULTS = [
    debated(0, 3.0, 2.5, 4),
    debated(1, 1.0, 1.0, 1, "no_issue"),
    debated(2, 5.0, 4.0, 3),
    debated(3, 2.0, 2.5, 2),
    failed("i9", aspect="wit", human=4.0, **SPENT),
    *(
        compared(f"p{n}", "more", winner="1", human=human, rounds=9, **{**SPENT, "cost_usd": None})
        for n, human in enumerate(["1", "tie", "1"])
    ),
]


@pytest.fixture(params=["in memory", "in a file"])
def evaluation(request: pytest.FixtureRequest, tmp_path: Path) -> Evaluation:
    results: Sequence[Result] = tuple(RESULTS)
    if request.param == "in a file":
        file = ResultsFile(tmp_path)
        for result in reversed(RESULTS):
            file.add(result)
        results = file.finish(result.key for result in RESULTS)
    return Evaluation(results, MANIFEST)


def test_agreement_of_one_protocol(evaluation: Evaluation) -> None:
    wit = evaluation.agreement("debate")["wit"]
    assert isinstance(wit, ScoreAgreement)
    assert (wit.n, wit.left_out, wit.groups) == (4, {"failed": 1}, 2)
    assert wit.over_rows["spearman"].value == pytest.approx(0.9486832980505138)
    assert wit.per_group["pearson"].value == pytest.approx(1.0)
    preference = evaluation.agreement("more")["preference"]
    assert isinstance(preference, PreferenceAgreement)
    assert (preference.n, preference.left_out, preference.ties, preference.human_ties) == (
        3,
        {},
        0,
        1,
    )
    assert (preference.accuracy.value, preference.kappa.value) == (2 / 3, 0.0)


def test_agreement_wants_to_know_of_which_protocol(evaluation: Evaluation) -> None:
    with pytest.raises(ValueError, match="name one of debate, more"):
        evaluation.agreement()
    assert evaluation.agreement("samre") == {}
    alone = Evaluation(RESULTS[:5], MANIFEST)
    assert alone.agreement() == alone.agreement("debate") == evaluation.agreement("debate")


def shown(evaluation: Evaluation) -> list[str]:
    """Return the table's lines, with cells one space apart."""
    console = Console(width=120)
    with console.capture() as captured:
        console.print(overview_table(evaluation))
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_results_failures_and_overviews(evaluation: Evaluation) -> None:
    assert list(evaluation.results) == RESULTS
    assert [result.item for result in evaluation.failed] == ["i9"]
    assert evaluation.stopped is None
    debate = evaluation.figures.overviews["debate", "wit"]
    assert (debate.judged, debate.failed, debate.usage.calls, debate.usage.tokens) == (
        4,
        1,
        10,
        5_500,
    )
    assert (debate.score.value, debate.rounds.value, debate.usage.cost_usd) == (2.75, 2.5, 1.25)
    assert debate.stop_reasons == {"max_rounds": 3, "no_issue": 1}
    more = evaluation.figures.overviews["more", None]
    assert (more.judged, more.score.value, more.usage.cost_usd) == (3, None, None)
    assert "debate wit 4 1 2.75 2.50 10 5.5k $1.2500 max_rounds 3, no_issue 1" in shown(evaluation)
    assert "more preference 3 0 - 9.00 6 3.3k unknown complete 3" in shown(evaluation)
    # The item that changed its score most.
    example = evaluation.most_worth_reading()
    assert example and example.item == "i2"


def test_no_results(tmp_path: Path) -> None:
    for results in ((), ResultsFile(tmp_path).finish([])):
        nothing = Evaluation(results, MANIFEST)
        assert (len(nothing.failed), nothing.agreement(), nothing.most_worth_reading()) == (
            0,
            {},
            None,
        )
        assert not any("debate" in line for line in shown(nothing))


def test_an_edited_rubric_is_another_run(tmp_path: Path) -> None:
    wit = Aspect(name="wit", criteria="Does the text amuse?")
    first, again = (
        evaluate("single", "demo", aspects=[wit], limit=2, out=tmp_path) for _ in range(2)
    )
    assert again.manifest["run"] == first.manifest["run"]
    edited = wit.model_copy(update={"steps": ("Count the jokes.",)})
    with pytest.raises(UsageError, match="aspects was wit@"):
        evaluate("single", "demo", aspects=[edited], limit=2, out=tmp_path)
    ready_made = evaluate("single", "demo", aspects=["fluency"], limit=2)
    assert "|aspects:fluency|" in ready_made.manifest["signatures"]["single"]
