"""Test the human review of a finished run: queue file, dialogue, and decisions."""

import csv
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.cli import review
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
from jurygraph.nodes.human_answers import HumanAnswer
from jurygraph.state import DataError, UsageError
from jurygraph.state.review_rules import Rule
from typer.testing import CliRunner

from .sample_data import read_lines, write_lines

ALWAYS = [Rule("always")]
SOURCE = "The well ran dry in May, and water came by cart until August."
SCORES = [
    {"id": name, "source": SOURCE, "candidate": text, "human": {"consistency": 3}}
    for name, text in [
        ("=cmd|x", "=HYPERLINK(1)\nThe well ran dry in May."),
        ("b", "Water came by cart; the well was full."),
        ("c", "Water came by cart until August."),
    ]
]
PAIRS = [
    {
        "id": name,
        "question": "When did the well run dry?",
        "answer_1": one,
        "answer_2": two,
        "human": "1",
    }
    for name, one, two in [
        ("p1", "In May.", "In May."),
        ("p2", "Never.", "In May, before the carts came."),
    ]
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


@pytest.fixture
def queue(scored: Path) -> Path:
    """A queue of all verdicts of ``scored``."""
    write_queue(scored.parent / "queue.csv", find_questions(scored, ALWAYS))
    return scored.parent / "queue.csv"


def command(*arguments: object, typed: str = "") -> Any:
    return CliRunner().invoke(app, [str(one) for one in arguments], input=typed)


def rows_of(queue: Path) -> list[dict[str, str]]:
    with queue.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def filled(
    path: Path, fill: Callable[[int, dict[str, str]], dict[str, Any]], to: Path | None = None
) -> Path:
    """Fill in a queue file as a person with a spreadsheet does."""
    rows = rows_of(path)
    to = to or path
    with to.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, **fill(number, row)} for number, row in enumerate(rows))
    return to


# -- the questions
def test_the_rules_choose_the_questions_of_data_that_has_not_changed(compared: Path) -> None:
    chosen = find_questions(compared, [Rule("gap", 0.5)])
    assert [question.result.item for question in chosen] == ["p1"]
    assert chosen[0].why == ("gap<0.5: the scores of the two answers are 0 apart",)
    assert find_questions(compared, [Rule("unresolved")]) == []
    data = compared.parent / "data.jsonl"
    data.write_text(data.read_text().replace("carts", "wells"))
    with pytest.raises(UsageError, match="has changed since the run"):
        find_questions(compared, ALWAYS)
    data.unlink()
    with pytest.raises(UsageError):
        find_questions(compared, ALWAYS)


def test_no_text_runs_as_a_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    run = made(tmp_path, [{**SCORES[2], "candidate": "\uff1dHYPERLINK(1)"}], protocol="single")
    write_queue(tmp_path / "queue.csv", find_questions(run, ALWAYS))
    assert rows_of(tmp_path / "queue.csv")[0]["candidate"] == "'\uff1dHYPERLINK(1)"


def test_repeats_are_one_question(tmp_path: Path) -> None:
    run = made(tmp_path, SCORES, settings={"n": 1}, repeats=3)
    assert len(find_questions(run, ALWAYS)) == 3
    lines = read_lines(run)
    for line in lines:
        line["score"] = {"=cmd|x": [1, 3, 5], "b": [3, 3, 3], "c": [2, 3, 3]}[line["item"]][
            line["repeat"]
        ]
    write_lines(run / "results.jsonl", lines)
    [wide] = find_questions(run, [Rule("wide", 1.5)])
    assert wide.why == ("wide>1.5: scores of repeated runs have a standard deviation of 2",)


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
        assert all(row["answer"] == "" for row in read_lines(queue))
        rows = zip(read_lines(queue), answers, strict=True)
        write_lines(queue, [{**row, "name": "Ann", **new} for row, new in rows])
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
    # A confirmed verdict is not a label.
    first, last = read_lines(scored / "labels.jsonl")
    assert (
        first.items()
        >= {"item": "=cmd|x", "human": [2], "score": judged[0], "saw_verdict": True}.items()
    )
    assert (
        last.items() >= {"item": "c", "human": [5], "score": judged[2], "saw_verdict": True}.items()
    )
    known = command("review", scored, "--answers", queue)
    assert "3 answers read, 3 already recorded" in known.output
    assert sum(map(len, kept_answers(scored).values())) == 3


def test_a_blind_queue_shows_nothing_of_the_judge_and_agree_reads_what_people_decided(
    scored: Path,
) -> None:
    queue = scored.parent / "queue.csv"
    command("review", scored, "--when", "always", "--queue", queue, "--blind")
    [first, *_] = rows = rows_of(queue)
    assert not {"verdict", "debate", "why", "protocol"} & first.keys()
    assert first["to_answer"] == "a score from 1 to 5"
    let_stand = {"answer": "let it stand", "name": "Ann"}
    stands = filled(
        queue, lambda number, _: {} if number else let_stand, queue.with_name("stands.csv")
    )
    read = read_queue(scored, [stands])
    assert (read.answers, read.empty) == ([], len(rows) - 1)
    assert read.problems == [
        f"{stands}, row 2: lets the verdict stand, but the queue did not show it"
    ]
    missing = ("", "NA", "-")
    words = [{"answer": missing[number % 3], "name": "Ann"} for number in range(len(rows))]
    unanswered = filled(queue, lambda number, _: words[number], queue.with_name("missing.csv"))
    assert read_queue(scored, [unanswered]) == ([], [], len(rows))
    for name, first_score in (("Ann", 1), ("Bo", 2)):
        answers = [
            {"answer": str(first_score + number), "name": name} for number in range(len(rows))
        ]
        copy = filled(queue, lambda number, _: answers[number], queue.with_name(f"{name}.csv"))  # noqa: B023
        assert command("review", scored, "--answers", copy, "--decide", "median").exit_code == 0
    labels = read_lines(scored / "labels.jsonl")
    assert [(row["human"], row["saw_verdict"]) for row in labels] == [
        ([n, n + 1], False) for n in (1, 2, 3)
    ]
    agreed = command("agree", scored / "labels.jsonl", "--json")
    assert agreed.exit_code == 0, agreed.output
    assert json.loads(agreed.output)["consistency"]["n"] == 3


def test_no_cell_is_a_formula_and_every_text_is_there(queue: Path) -> None:
    assert queue.read_bytes().startswith(b"\xef\xbb\xbf")
    assert queue.stat().st_mode & 0o077 == 0
    rows = rows_of(queue)
    assert [row["item"] for row in rows] == ["'=cmd|x", "b", "c"]
    assert rows[0]["candidate"] == f"'{SCORES[0]['candidate']}"
    assert not [
        cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))
    ]


def test_wrong_rows_are_named_and_the_others_taken(scored: Path, queue: Path) -> None:
    rows = [
        {"answer": "9", "name": "Ann"},
        {"answer": "", "reason": "Hm.", "name": "Ann"},
        {"answer": "4"},
    ]
    second = filled(queue, lambda number, row: rows[number], scored.parent / "two.csv")
    filled(
        queue,
        lambda number, row: {"answer": "3", "name": "Bo"} if number else {"id": "q0"} | rows[0],
    )
    done = command("review", scored, "--answers", second, "--answers", queue)
    assert done.exit_code == 3
    told = [line for line in done.output.splitlines() if line.startswith("not accepted")]
    faults = {
        "two.csv, row 2": "off the scale",
        "two.csv, row 3": "missing",
        "two.csv, row 4": "no name",
        "queue.csv, row 2": "no verdict of this run",
    }
    for (place, fault), line in zip(faults.items(), told, strict=True):
        assert f"{place}: " in line and fault in line
    assert "2 answers read" in done.output
    assert {name for said in kept_answers(scored).values() for name in said} == {"Bo"}
    named = command("review", scored, "--answers", second, "--name", "Cy")
    assert "1 answers read" in named.output


def test_a_row_answered_twice_differently_is_told(scored: Path, queue: Path) -> None:
    other = filled(
        queue, lambda number, row: {"answer": "2", "name": "Ann"}, scored.parent / "other.csv"
    )
    filled(queue, lambda number, row: {"answer": "3" if number else "2", "name": "Ann"})
    read = read_queue(scored, [queue, other])
    assert len(read.answers) == 3
    assert [problem.partition(": ")[0] for problem in read.problems] == [
        f"{other}, row 3",
        f"{other}, row 4",
    ]
    assert "Ann answers this question twice, 3.0 and 2.0" in read.problems[0]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_spreadsheet_may_separate_cells_otherwise(
    scored: Path, queue: Path, delimiter: str
) -> None:
    filled(queue, lambda number, row: {"answer": "3", "name": "Zoë"})
    with queue.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    with queue.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    assert {review.name for review in read_queue(scored, [queue]).answers} == {"Zoë"}


def test_a_file_that_is_no_queue_of_this_run_is_refused_as_a_whole(
    scored: Path, queue: Path
) -> None:
    filled(queue, lambda number, row: {"id": f"q{number}", "answer": "3", "name": "Zoë"})
    foreign = queue.read_bytes()
    for content, problem in (
        (foreign, "it is a queue for another run"),
        (foreign.decode("utf-8-sig").encode("latin-1"), "save it as CSV in UTF-8"),
        *((words, "not a queue") for words in (b"", b"a,b\n1,2\n", b"id,answer\n")),
    ):
        queue.write_bytes(content)
        with pytest.raises(DataError, match=problem):
            read_queue(scored, [queue])
    (scored / "reviews.jsonl").write_text('{"item": "b"\n')
    with pytest.raises(DataError, match=r"reviews.jsonl, line 1"):
        kept_answers(scored)


# -- several people
def test_people_who_disagree(compared: Path) -> None:
    questions = find_questions(compared, ALWAYS)
    said: dict[str, list[Any]] = {"Ann": ["1", "2"], "Bo": ["2", "2"], "Cy": ["tie", None]}
    for name, values in said.items():
        answers = [HumanAnswer(value) for value in values]
        recorded = [RecordedAnswer.of(*pair, name) for pair in zip(questions, answers, strict=True)]
        assert add_answers(compared, recorded) == 2
    summary = conclude_answers(compared)
    assert [(line["reviewed"], line["decided_by"]) for line in summary.lines] == [
        (None, "open: no majority among 3"),
        ("2", "all of 3"),
    ]
    assert [line["item"] for line in summary.disputed] == ["p1"]
    # Cy confirmed p2.
    assert summary.agreement[None] == krippendorff_alpha([["1", "2", "tie"], ["2", "2"]], "nominal")
    write_queue(compared.parent / "nobody.csv", questions)
    shown = command("review", compared, "--answers", compared.parent / "nobody.csv")
    assert "disagree: p1 · single: Ann 1, Bo 2, Cy tie; open: no majority among 3" in shown.output
    assert "Krippendorff's alpha" in shown.output
    add_answers(compared, [RecordedAnswer.of(questions[0], HumanAnswer("2"), "Cy")])
    assert conclude_answers(compared).lines[0]["reviewed"] == "2", "Cy has changed their mind"
    assert conclude_answers(compared, "open").lines[0]["reviewed"] is None


@pytest.mark.parametrize(("said", "how", "decided"), [
    ([2, 5, 5], "mean", 4), ([2, 5, 5], "median", 5), ([2, 5, 5], "majority", 5),
    ([2, 5], "majority", None), ([2, 5], "open", None), ([2, 2], "open", 2),
    (["1", "1", "2"], "median", "1"), (["1", "tie"], "mean", None), ([0.0, 0.0, 3], "majority", 0),
])  # fmt: skip
def test_several_answers_are_decided_by_a_rule(said: list[Any], how: Any, decided: Any) -> None:
    assert decide_outcome(said, how)[0] == decided


# -- the command line
@pytest.mark.parametrize(("arguments", "problem"), [
    (["--review", "never"], "unknown rule 'never'"), (["--review", ","], "no rule"),
    (["--review", "unresolved"], "there is none: write the questions to a file with --review-queue FILE"),
    (["--review", "split", "--review-queue", "q.csv"], "the rule split never matches debate"),
    (["--review", "gap", "--review-queue", "q.csv"], "the rule gap<1 never matches debate"),
    (["--review", "always", "--review-queue", "q.xls"], "a queue must be a .csv or .jsonl file"),
    (["--review-queue", "q.csv"], "needs rules"),
])  # fmt: skip
def test_an_impossible_review_is_refused_first(
    tmp_path: Path, arguments: list[str], problem: str
) -> None:
    found = command(
        "run", "debate", "--data", "demo", "--limit", 1, "--out", tmp_path / "run", *arguments
    )
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
    # Repeats make the rule possible, and one item is not wide.
    twice = [
        "run", "debate", "--data", "demo", "--limit", "1", "--repeats", "2", "--set", "n=1", "--review",
        "wide",
    ]  # fmt: skip
    done = command(*twice, "--out", tmp_path / "twice", "--review-queue", tmp_path / "q.csv")
    assert done.exit_code == 0, done.output
    assert "nothing to review" in done.output


def test_the_dialogue(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "check_terminal", lambda option: None)
    typed = "Ann\n9\n2\nThe well was not full.\nskip\nquit\n"
    left = command("review", scored, "--when", "always", typed=typed)
    assert left.exit_code == 130, left.output
    for words in (
        "1 of 3",
        "The judge's verdict",
        "Asked because always: every verdict",
        "off the scale",
    ):
        assert words in left.output
    [[answered]] = [list(said.values()) for said in kept_answers(scored).values()]
    assert (answered.name, answered.answer, answered.reason) == ("Ann", 2, "The well was not full.")
    typed = "let it stand: right\n4 because of August\n"
    done = command("review", scored, "--when", "always", "--name", "Ann", typed=typed)
    assert done.exit_code == 0, done.output
    assert "1 of 2" in done.output
    assert "2 answered, 0 left for later, 1 answered before" in done.output
    assert [line["reviewed"] for line in conclude_answers(scored).lines][::2] == [2, 4]


@pytest.mark.parametrize("interrupted", [True, False], ids=["ctrl-c", "ctrl-d"])
def test_the_dialogue_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    typed = iter(["Bo"])

    def type_in(_prompt: str = "") -> str:
        for words in typed:
            return words
        if interrupted:
            signal.raise_signal(signal.SIGINT)
        raise EOFError

    monkeypatch.setattr(review, "check_terminal", lambda option: None)
    monkeypatch.setattr("builtins.input", type_in)
    run = ["run", "debate", "--data", "demo", "--limit", 1, "--aspect", "fluency", "--set", "n=1"]
    done = command(*run, "--out", tmp_path / "run", "--review", "always")
    assert done.exit_code == 130, done.output
    assert "answers so far are saved" in done.output
    assert (tmp_path / "run" / "results.jsonl").exists()
