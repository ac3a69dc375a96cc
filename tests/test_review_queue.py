"""People review a finished run: the queue file filled in and read, the dialogue, and what they decided."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.cli.app import app
from jurygraph.eval.review.review_queue import (
    RecordedAnswer,
    add_answers,
    conclude_answers,
    decide_outcome,
    find_questions,
    kept_answers,
    read_queue,
    write_queue,
)
from jurygraph.eval.statistics.chance_corrected import krippendorff_alpha
from jurygraph.nodes.human import HumanAnswer
from jurygraph.state import DataError, UsageError
from jurygraph.state.review_rules import Rule
from typer.testing import CliRunner

from .processes import HANG_GUARD
from .sample_data import read_lines, write_lines

ALWAYS = [Rule("always")]
SCORES = [
    {
        "id": name,
        "source": "The well ran dry in May, and water came by cart until August.",
        "candidate": text,
        "human": {"consistency": 3},
    }
    for name, text in [
        ("=cmd|x", "=HYPERLINK(1)\nThe well ran dry in May."),
        ("b", "Water came by cart; the well was full."),
        ("c", "Water came by cart until August."),
    ]
]
PAIRS = [
    {"id": name, "question": "When did the well run dry?", "answer_1": one, "answer_2": two, "human": "1"}
    for name, one, two in [("p1", "In May.", "In May."), ("p2", "Never.", "In May, before the carts came.")]
]


def made(folder: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    data = write_lines(folder / "data.jsonl", rows)
    evaluate(options.pop("protocol", "debate"), data, out=folder / "run", **options)
    return folder / "run"


@pytest.fixture
def scored(tmp_path: Path) -> Path:
    return made(tmp_path, SCORES, settings={"n": 1})


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    return made(tmp_path, PAIRS, protocol="single")


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def filled(path: Path, fill: Callable[[int, dict[str, str]], dict[str, Any]], to: Path | None = None) -> Path:
    """Fill in a queue file as a person with a spreadsheet does."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    to = to or path
    with to.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, **fill(number, row)} for number, row in enumerate(rows))
    return to


# -- the questions


def test_the_rules_choose_the_questions(compared: Path) -> None:
    chosen = find_questions(compared, [Rule("gap", 0.5)])
    assert [question.result.item for question in chosen] == ["p1"]
    assert chosen[0].why == ("gap<0.5: the scores of the two answers are 0 apart",)
    assert find_questions(compared, [Rule("unresolved")]) == []


def test_repeats_are_one_question(tmp_path: Path) -> None:
    run = made(tmp_path, SCORES, settings={"n": 1}, repeats=3)
    assert len(find_questions(run, ALWAYS)) == 3
    lines = read_lines(run)
    for line in lines:
        line["score"] = {"=cmd|x": [1, 3, 5], "b": [3, 3, 3], "c": [2, 3, 3]}[line["item"]][line["repeat"]]
    write_lines(run / "results.jsonl", lines)
    [wide] = find_questions(run, [Rule("wide", 1.5)])
    assert wide.why == ("wide>1.5: scores of repeated runs have a standard deviation of 2",)


def test_data_that_has_changed_is_told(scored: Path) -> None:
    data = scored.parent / "data.jsonl"
    data.write_text(data.read_text().replace("August", "July"))
    with pytest.raises(UsageError, match="has changed since the run"):
        find_questions(scored, ALWAYS)
    data.unlink()
    with pytest.raises(UsageError):
        find_questions(scored, ALWAYS)


# -- the queue file


@pytest.mark.parametrize("name", ["queue.csv", "queue.jsonl"])
def test_a_queue_is_written_filled_in_and_read(scored: Path, name: str) -> None:
    before = (scored / "results.jsonl").read_bytes()
    queue = scored.parent / name
    assert command("review", scored, "--when", "always", "--queue", queue).exit_code == 0
    again = command("review", scored, "--when", "always", "--queue", queue)
    assert isinstance(again.exception, UsageError)
    assert "may have been filled in" in str(again.exception)
    answers = [
        {"answer": "2", "reason": "No cart."},
        {"answer": "let it stand"},
        {"answer": "5", "name": "Bo"},
    ]
    if name.endswith("csv"):
        filled(queue, lambda number, row: {"name": "Ann", **answers[number]})
    else:
        rows = read_lines(queue)
        assert all(row["answer"] == "" for row in rows)
        queue.write_text(
            "".join(
                json.dumps({**row, "name": "Ann", **new}) + "\n"
                for row, new in zip(rows, answers, strict=True)
            )
        )
    done = command("review", scored, "--answers", queue)
    assert done.exit_code == 0, done.output
    assert "3 answers read; 0 rows are not filled in" in done.output
    judged = [json.loads(line)["score"] for line in before.splitlines()]
    reviewed = read_lines(scored / "reviewed.jsonl")
    assert [line["reviewed"] for line in reviewed] == [2, judged[1], 5]
    assert [line["judge"]["score"] for line in reviewed] == judged
    assert reviewed[0]["answers"][0]["reason"] == "No cart."
    assert reviewed[0]["why"] == ["always: every verdict is reviewed"]
    assert (scored / "results.jsonl").read_bytes() == before, "what the judge said stays"
    labels = read_lines(scored / "labels.jsonl")
    assert [(row["item"], row["human"], row["score"]) for row in labels] == [
        ("=cmd|x", [2], judged[0]),
        ("c", [5], judged[2]),
    ], "a verdict that was let stand is no label"
    assert all(row["saw_verdict"] for row in labels)
    known = command("review", scored, "--answers", queue)
    assert "3 answers read, 3 already recorded" in known.output
    assert sum(map(len, kept_answers(scored).values())) == 3


def test_what_people_decided_is_a_dataset_that_agree_reads(scored: Path) -> None:
    queue = scored.parent / "queue.csv"
    write_queue(queue, find_questions(scored, ALWAYS), blind=True)
    for name, shift in (("Ann", 0), ("Bo", 1)):
        copy = filled(
            queue,
            lambda number, _row, name=name, shift=shift: {"answer": str(number + 1 + shift), "name": name},  # type: ignore[misc]
            scored.parent / f"{name}.csv",
        )
        assert command("review", scored, "--answers", copy, "--decide", "median").exit_code == 0
    rows = read_lines(scored / "labels.jsonl")
    assert [row["human"] for row in rows] == [[1, 2], [2, 3], [3, 4]]
    assert not any(row["saw_verdict"] for row in rows)
    found = command("agree", scored / "labels.jsonl", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["consistency"]["n"] == 3


def test_a_blind_queue_shows_nothing_of_the_judge(scored: Path) -> None:
    queue = scored.parent / "queue.csv"
    command("review", scored, "--when", "always", "--queue", queue, "--blind")
    with queue.open(encoding="utf-8-sig", newline="") as file:
        [first, *_] = rows = list(csv.DictReader(file))
    assert not {"verdict", "debate", "why", "protocol"} & first.keys()
    assert first["to_answer"] == "a score from 1 to 5"
    filled(queue, lambda number, row: {"answer": "let it stand", "name": "Ann"} if not number else {})
    read = read_queue(scored, [queue])
    assert (read.answers, read.empty) == ([], len(rows) - 1)
    assert read.problems == [f"{queue}, row 2: lets the verdict stand, but the queue did not show it"]


def test_no_cell_is_a_formula_and_every_text_is_there(scored: Path) -> None:
    queue = scored.parent / "queue.csv"
    write_queue(queue, find_questions(scored, ALWAYS))
    assert queue.read_bytes().startswith(b"\xef\xbb\xbf")
    assert queue.stat().st_mode & 0o077 == 0
    with queue.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["item"] for row in rows] == ["'=cmd|x", "b", "c"]
    assert rows[0]["candidate"] == f"'{SCORES[0]['candidate']}"
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]


def test_wrong_rows_are_named_and_the_others_taken(scored: Path) -> None:
    first, second = scored.parent / "one.csv", scored.parent / "two.csv"
    write_queue(first, find_questions(scored, ALWAYS))
    rows = [{"answer": "9", "name": "Ann"}, {"answer": "", "reason": "Hm.", "name": "Ann"}, {"answer": "4"}]
    filled(first, lambda number, row: rows[number], second)
    filled(first, lambda number, row: {"answer": "3", "name": "Bo"} if number else {"id": "q0"} | rows[0])
    done = command("review", scored, "--answers", second, "--answers", first)
    assert done.exit_code == 3
    told = [line for line in done.output.splitlines() if line.startswith("not accepted: ")]
    assert [re.sub(r"^.*/", "", line).partition(":")[0] for line in told] == [
        *(f"two.csv, row {row}" for row in (2, 3, 4)),
        "one.csv, row 2",
    ]
    for part, line in zip(
        ["off the scale", "missing", "no name", "no verdict of this run"], told, strict=True
    ):
        assert part in line
    assert "2 answers read" in done.output
    assert {name for said in kept_answers(scored).values() for name in said} == {"Bo"}
    named = command("review", scored, "--answers", second, "--name", "Cy")
    assert "1 answers read" in named.output


def test_a_queue_of_another_run_is_refused_as_a_whole(scored: Path) -> None:
    queue = scored.parent / "queue.csv"
    write_queue(queue, find_questions(scored, ALWAYS))
    filled(queue, lambda number, row: {"id": f"q{number}", "answer": "3", "name": "Ann"})
    with pytest.raises(DataError, match="it is a queue for another run"):
        read_queue(scored, [queue])


def test_a_row_answered_twice_differently_is_told(scored: Path) -> None:
    queue = scored.parent / "queue.csv"
    write_queue(queue, find_questions(scored, ALWAYS))
    other = filled(queue, lambda number, row: {"answer": "2", "name": "Ann"}, scored.parent / "other.csv")
    filled(queue, lambda number, row: {"answer": "3" if number else "2", "name": "Ann"})
    read = read_queue(scored, [queue, other])
    assert len(read.answers) == 3
    assert [problem.partition(": ")[0] for problem in read.problems] == [f"{other}, row 3", f"{other}, row 4"]
    assert "Ann answers this question twice, 3.0 and 2.0" in read.problems[0]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_spreadsheet_may_separate_cells_otherwise(scored: Path, delimiter: str) -> None:
    queue = scored.parent / "queue.csv"
    write_queue(queue, find_questions(scored, ALWAYS))
    filled(queue, lambda number, row: {"answer": "3", "name": "Zoë"})
    with queue.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    with queue.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    assert {review.name for review in read_queue(scored, [queue]).answers} == {"Zoë"}
    queue.write_bytes(queue.read_text(encoding="utf-8").encode("latin-1"))
    with pytest.raises(DataError, match="save it as CSV in UTF-8"):
        read_queue(scored, [queue])


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "id,answer\n"])
def test_a_file_that_is_no_queue(scored: Path, content: str) -> None:
    queue = scored.parent / "queue.csv"
    queue.write_text(content)
    with pytest.raises(DataError, match="not a queue"):
        read_queue(scored, [queue])


# -- several people


def test_people_who_disagree(compared: Path) -> None:
    questions = find_questions(compared, ALWAYS)
    said: dict[str, list[Any]] = {"Ann": ["1", "2"], "Bo": ["2", "2"], "Cy": ["tie", None]}
    reviews = [
        RecordedAnswer.of(question, HumanAnswer(value), name)
        for name, values in said.items()
        for question, value in zip(questions, values, strict=True)
    ]
    assert add_answers(compared, reviews) == 6
    summary = conclude_answers(compared)
    assert [(line["reviewed"], line["decided_by"]) for line in summary.lines] == [
        (None, "open: no majority among 3"),
        ("2", "all of 3"),
    ]
    assert [line["item"] for line in summary.disputed] == ["p1"]
    alpha = summary.agreement[None]
    assert alpha.units == 2
    assert alpha.alpha == krippendorff_alpha([["1", "2", "tie"], ["2", "2"]], "nominal").alpha, (
        "Cy let p2 stand"
    )
    shown = command("review", compared, "--answers", _empty(compared))
    assert "disagree: p1 · single: Ann 1, Bo 2, Cy tie; open: no majority among 3" in shown.output
    assert "Krippendorff's alpha" in shown.output
    add_answers(compared, [RecordedAnswer.of(questions[0], HumanAnswer("2"), "Cy")])
    assert conclude_answers(compared).lines[0]["reviewed"] == "2", "Cy has changed their mind"
    assert conclude_answers(compared, "open").lines[0]["reviewed"] is None


def _empty(run: Path) -> Path:
    queue = run.parent / "nobody.csv"
    write_queue(queue, find_questions(run, ALWAYS))
    return queue


@pytest.mark.parametrize(
    ("said", "how", "decided"),
    [
        ([2, 5, 5], "mean", 4),
        ([2, 5, 5], "median", 5),
        ([2, 5, 5], "majority", 5),
        ([2, 5], "majority", None),
        ([2, 5], "open", None),
        ([2, 2], "open", 2),
        (["1", "1", "2"], "median", "1"),
        (["1", "tie"], "mean", None),
        ([0.0, 0.0, 3], "majority", 0),
    ],
)
def test_several_answers_are_decided_by_a_rule(said: list[Any], how: Any, decided: Any) -> None:
    assert decide_outcome(said, how)[0] == decided


def test_a_damaged_line_of_answers_is_named(scored: Path) -> None:
    (scored / "reviews.jsonl").write_text('{"item": "b"\n')
    with pytest.raises(DataError, match=r"reviews.jsonl, line 1"):
        kept_answers(scored)


# -- the command line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--review", "never"], "unknown rule 'never'"),
        (["--review", ","], "no rule"),
        (["--review", "unresolved"], "there is none: write the questions to a file with --review-queue FILE"),
        (["--review", "split", "--review-queue", "q.csv"], "the rule split never matches debate"),
        (["--review", "gap", "--review-queue", "q.csv"], "the rule gap<1 never matches debate"),
        (["--review", "always", "--review-queue", "q.xls"], "a queue must be a .csv or .jsonl file"),
        (["--review-queue", "q.csv"], "needs rules"),
    ],
)
def test_a_review_that_cannot_be_is_refused_before_the_run(
    tmp_path: Path, arguments: list[str], problem: str
) -> None:
    found = command("run", "debate", "--data", "demo", "--limit", 1, "--out", tmp_path / "run", *arguments)
    assert isinstance(found.exception, UsageError)
    assert problem in str(found.exception)
    assert not (tmp_path / "run").exists()


def test_a_run_writes_its_queue(tmp_path: Path) -> None:
    queue = tmp_path / "queue.jsonl"
    run = ["run", "debate,single", "--data", "demo-pairs", "--limit", 2, "--out", tmp_path / "run"]
    done = command(*run, "--review", "always,orders_differ", "--review-queue", queue)
    assert done.exit_code == 0, done.output
    assert "4 questions in" in done.output
    assert len(queue.read_text().splitlines()) == 4


def test_repeats_make_wide_possible(tmp_path: Path) -> None:
    run = ["run", "debate", "--data", "demo", "--limit", 1, "--repeats", 2, "--out", tmp_path / "run"]
    done = command(*run, "--review", "wide", "--review-queue", tmp_path / "q.csv", "--set", "n=1")
    assert done.exit_code == 0, done.output
    assert "nothing to review" in done.output


Typed = list[tuple[str, str | signal.Signals]]
Terminal = Callable[..., tuple[int, str]]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    """Runs the command in a terminal of its own; types answers, or sends signals, as their prompts come."""
    running: list[subprocess.Popen[bytes]] = []

    def run(*arguments: object, typed: Typed) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        program = [sys.executable, "-c", "from jurygraph.eval.cli.app import main; main()"]
        environment = {**os.environ, "COLUMNS": "200"}
        process = subprocess.Popen(
            [*program, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        running.append(process)
        os.close(theirs)
        seen, place, left, end = "", 0, list(typed), time.monotonic() + HANG_GUARD
        act: str | signal.Signals = ""
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1)[0]:
                # Python's ``input`` loses a Ctrl-C that comes while it writes its prompt: a person presses it again.
                if isinstance(act, signal.Signals):
                    process.send_signal(act)
                continue
            try:
                seen += os.read(ours, 1 << 16).decode(errors="replace")
            except OSError:  # the terminal closes when the program ends
                break
            if left and left[0][0] in seen[place:]:
                prompt, act = left.pop(0)
                place = seen.index(prompt, place) + len(prompt)
                process.send_signal(act) if isinstance(act, signal.Signals) else os.write(ours, act.encode())
        os.close(ours)
        return process.wait(HANG_GUARD), re.sub(r"\x1b\[[\d;]*m", "", seen)

    yield run
    for process in running:
        process.kill()


@pytest.mark.slow
def test_the_dialogue(scored: Path, terminal: Terminal) -> None:
    typed: Typed = [
        ("Your name", "Ann\n"),
        ("Your verdict", "9\n"),
        ("off the scale", "2\n"),
        ("Reason", "The well was not full.\n"),
        ("Your verdict", "skip\n"),
        ("Your verdict", "quit\n"),
    ]
    code, seen = terminal("review", scored, "--when", "always", typed=typed)
    assert code == 130, seen
    assert "1 of 3" in seen
    assert "The judge's verdict" in seen
    assert "Asked because always: every verdict is reviewed" in seen
    [[review]] = [list(said.values()) for said in kept_answers(scored).values()]
    assert (review.name, review.answer, review.reason) == ("Ann", 2, "The well was not full.")
    typed = [
        ("1 of 2", ""),
        ("Your verdict", "let it stand: right\n"),
        ("Your verdict", "4 because of August\n"),
    ]
    code, seen = terminal("review", scored, "--when", "always", "--name", "Ann", typed=typed)
    assert code == 0, seen
    assert "2 answered, 0 left for later, 1 answered before" in seen
    assert [line["reviewed"] for line in conclude_answers(scored).lines][::2] == [2, 4]


@pytest.mark.slow
@pytest.mark.parametrize("act", [signal.SIGINT, "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_the_dialogue_after_a_run_is_left(tmp_path: Path, terminal: Terminal, act: Any) -> None:
    run = ["run", "debate", "--data", "demo", "--limit", 1, "--aspect", "fluency", "--set", "n=1"]
    code, seen = terminal(
        *run,
        "--out",
        tmp_path / "run",
        "--review",
        "always",
        typed=[("Your name", "Bo\n"), ("Your verdict", act)],
    )
    assert code == 130, seen
    assert "answers so far are saved" in seen
    assert (tmp_path / "run" / "results.jsonl").exists()
