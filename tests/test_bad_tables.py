"""Test faulty tables as people make them: the message, and that its remedy works."""

import json
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.reading import ReadingNotice

from .processes import Command
from .sample_data import read_lines, refused, write_lines
from .test_hints import options_in

pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")

TEXTS = [{"source": f"Source {n}.", "candidate": f"Candidate {n}."} for n in range(6)]
PAIRS = [{"question": f"Why {n}?", "answer_1": "Rain.", "answer_2": "Snow."} for n in range(6)]


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    lines = [",".join(rows[0]), *(",".join(str(cell) for cell in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_rater_column_with_one_rater_names_the_rater_of_each_item(tmp_path: Path) -> None:
    rows = [{**text, "rater": "ann", "human.fluency": n % 5 + 1} for n, text in enumerate(TEXTS)]
    for data in (table(tmp_path / "a.csv", rows), rows):
        with pytest.warns(ReadingNotice) as notices:
            dataset = load_dataset(data)
        said = "\n".join(str(notice.message) for notice in notices)
        assert "annotator = 'rater'" in said
        assert "annotators" not in said.replace("annotator = ", "")
        assert [item.about("fluency")["annotators"] for item in dataset] == [("ann",)] * 6
        assert [item.label("fluency") for item in dataset] == [1, 2, 3, 4, 5, 1]


@pytest.mark.parametrize("labels", [(1, 2, 1, 0, 1, 2), ("1", "2", "0", "2", "1", "1")])
def test_winners_that_mix_two_ways_of_counting_stop_with_the_line_and_a_remedy(
    labels: tuple[Any, ...], command: Command, tmp_path: Path
) -> None:
    table(
        tmp_path / "a.csv",
        [
            {"id": n, **pair, "human": label}
            for n, (pair, label) in enumerate(zip(PAIRS, labels, strict=True))
        ],
    )
    line = 2 + [str(label) for label in labels].index("0")
    run = ("run", "single", "--data", "a.csv", "--out", "out")
    assert command(*run) == 2
    message = " ".join(command.errors.split())
    assert (
        f"a.csv, line {line}: field 'human': '0' is not 1, 2 or tie; if labels are counted from 0"
        in message
    )
    assert not (tmp_path / "out").exists()
    assert command(*run, *options_in(message)) == 0
    meaning = {"0": "1", "1": "2", "2": "tie"}
    assert [row["human"] for row in read_lines(tmp_path / "out")] == [
        meaning[str(label)] for label in labels
    ]


def test_scores_that_mix_words_and_numbers_stop_with_the_line(
    command: Command, tmp_path: Path
) -> None:
    table(
        tmp_path / "a.csv",
        [
            {"id": n, **TEXTS[n], "human.fluency": label}
            for n, label in enumerate(("4", "good", "5"))
        ],
    )
    run = ("run", "single", "--data", "a.csv", "--out", "out")
    assert command(*run) == 2
    assert "a.csv, line 3: field 'human.fluency': 'good' is not a number" in " ".join(
        command.errors.split()
    )
    assert command(*run, "--labels", "4=4,5=5,good=3") == 0
    assert [row["human"] for row in read_lines(tmp_path / "out")] == [4, 3, 5]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            {"id": 1, "messages": [{"role": "user", "content": "Why?"}]},
            "line 1: field 'messages': ",
        ),
        (
            {"id": 1, "user_input": [{"type": "human", "content": "Why?"}]},
            "line 1: field 'messages': ",
        ),
        (
            {
                "prompt": "Why?",
                "chosen": [{"role": "user", "content": "Why?"}],
                "rejected": "Rain.",
            },
            "line 1: a conversation ends with the user",
        ),
    ],
)
def test_a_conversation_that_ends_with_the_user_has_nothing_to_judge(
    row: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    error = refused("mine.jsonl, ", write_lines(tmp_path / "mine.jsonl", [row]))
    assert problem in str(error)


def test_a_mapping_to_a_column_that_is_not_there_names_the_nearest_that_works(
    command: Command, tmp_path: Path
) -> None:
    table(tmp_path / "a.csv", [{"id": n, **pair, "verdict": "A"} for n, pair in enumerate(PAIRS)])
    run = ("run", "single", "--data", "a.csv", "--out", "out")
    assert command(*run, "--columns", "human=verdct") == 2
    message = " ".join(command.errors.split())
    assert (
        "no row has a value in the column 'verdct'; columns are answer_1, answer_2, id, question, verdict"
        in message
    )
    assert "did you mean verdict?" in message
    assert command(*run, "--columns", "human=verdict") == 0
    assert {row["human"] for row in read_lines(tmp_path / "out")} == {"1"}


def test_agree_counts_a_single_rater_s_rows_as_they_are(command: Command, tmp_path: Path) -> None:
    rows = [{"item": f"i{n}", "score": n, "human": n % 4, "rater": "ann"} for n in range(6)]
    table(tmp_path / "a.csv", rows)
    assert command("agree", "a.csv", "--json") == 0
    assert "several annotators" not in command.errors
    assert json.loads(command.printed)["score"]["n"] == 6
