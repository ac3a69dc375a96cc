"""Test every option that a message offers: the command with it keeps the promise."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import agreement, load_dataset
from jurygraph.eval.datasets.reading import ReadingNotice

from .processes import Command
from .sample_data import read_lines, write_lines

pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")

OFFERED = re.compile(
    r"""
      add\ `(?P<quoted>--[^`]+)`                                  # add `--columns human=winner`
    | (?<!`)(?P<bare>--(?:columns|labels|empty|max-chars)\ (?:"[^"]*"|[^\s;,`]\S*?)) (?=[;,.]?(?:\s|$))
    """,
    re.VERBOSE,
)


def options_in(message: str) -> list[str]:
    """The words of the first option that a message offers."""
    match = OFFERED.search(" ".join(message.split()))
    assert match, f"no option is offered: {message}"
    return shlex.split(match["quoted"] or match["bare"])


# `agree`.


@dataclass(frozen=True)
class Agree:
    """A file of another judge's results, the message about it, and the metric with the option."""

    table: str
    said: str
    figure: tuple[str, str, float]


AGREE = {
    "a label of another name": Agree(
        "item,winner,gold\na,1,1\nb,2,2\nc,1,2\nd,2,2\n",
        "Column `gold` was not used. To use `gold` as the human label",
        ("preference", "accuracy", 0.75),
    ),
    "winners counted from 0": Agree(
        "item,winner,label,length\na,1,0,7\nb,2,1,8\nc,1,0,9\n",
        "Columns `label`, `length` were not used. To use `label` as the human label, if its values",
        ("preference", "accuracy", 1),
    ),
    "neither side by its name": Agree(
        "item,length,judge score,human score\na,7,1,1\nb,8,2,2\nc,9,3,3\n",
        "To use `human score` as the human label and `judge score` as the score of the judge",
        ("score", "pearson", 1),
    ),
    "the judge alone": Agree(
        "item,gpt4,human\na,1,1\nb,2,2\nc,3,3\n",
        "Column `gpt4` was not used. To use `gpt4` as the score of the judge",
        ("score", "pearson", 1),
    ),
    "several annotators": Agree(
        "item,score,coherence_a1,coherence_a2\na,1,0,2\nb,2,1,3\nc,4,3,5\n",
        "To use `coherence_a1` and `coherence_a2` as the labels of several annotators",
        ("score", "pearson", 1),
    ),
    "several voters": Agree(
        "item,winner,annotator1,annotator2,annotator3\na,1,1,1,2\nb,2,2,1,2\nc,1,1,1,1\n",
        "To use `annotator1` and `annotator2` and `annotator3` as the labels of several annotators",
        ("preference", "accuracy", 1),
    ),
    "a name that a shell would read": Agree(
        "item,score,human $rating\na,1,1\nb,2,2\nc,3,3\n",
        "To use `human $rating` as the human label",
        ("score", "pearson", 1),
    ),
    "labels by aspect": Agree(
        "item,score,human.coherence\na,1,1\nb,2,2\nc,3,3\n",
        "line 2: field 'human' has labels of the aspects coherence; choose one with",
        ("score", "pearson", 1),
    ),
    "an export": Agree(
        "run,item,protocol,score,human_score\nr,a,single,1,1\nr,b,single,2,2\nr,c,single,3,3\n",
        "Columns `run`, `human_score` were not used. To use `human_score` as the human label",
        ("score", "pearson", 1),
    ),
}


@pytest.mark.parametrize("case", AGREE)
def test_the_option_that_agree_offers_works(case: str, command: Command, tmp_path: Path) -> None:
    table, said, (name, figure, value) = AGREE[case].table, AGREE[case].said, AGREE[case].figure
    (tmp_path / "rows.csv").write_text(table)
    assert command("agree", "rows.csv", "--resamples", "0") == 2
    message = " ".join(command.errors.split())
    assert said in message
    assert command("agree", "rows.csv", "--json", "--resamples", "0", *options_in(message)) == 0
    found = json.loads(command.printed)[name]
    assert (found.get("over_rows") or found)[figure]["value"] == pytest.approx(value)


def test_agree_names_unused_columns_beside_a_figure_and_offers_nothing_that_is_there(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text(
        "item,score,human,gold,note\na,1,1,5,x\nb,2,2,4,y\nc,3,3,3,z\n"
    )
    assert command("agree", "rows.csv") == 0
    assert "rows.csv: Columns `gold`, `note` were not used.\n" in command.errors
    assert "add `" not in command.errors
    assert command("agree", "rows.csv", "--columns", "human=gold") == 0
    assert "rows.csv: Columns `note`" not in command.errors
    assert "rows.csv: Column `note` was not used." in command.errors


def test_agree_names_no_column_of_a_run_s_own_results(command: Command, tmp_path: Path) -> None:
    run = ("run", "single", "--data", "demo", "--limit", "4", "--aspect", "fluency", "--out", "out")
    assert command(*run) == 0
    assert command("agree", "out/results.jsonl") == 0
    assert "not used" not in command.errors
    assert command("agree", "out", "--columns", "human=score") == 2
    assert "--columns only applies to a file, and out is the folder of a run" in command.errors


def test_a_column_that_agree_is_told_of_and_is_not_there_is_refused(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("item,score,gold\na,1,1\nb,2,2\n")
    assert command("agree", "rows.csv", "--columns", "human=golf") == 2
    assert (
        "no row has a value in the column 'golf'; columns are item, score, gold" in command.errors
    )
    assert command("agree", "rows.csv", "--columns", "candidate.x=gold") == 2
    assert command("agree", "rows.csv", "--columns", "humann=gold") == 2
    assert "unknown field 'humann'; fields are" in command.errors
    assert command("agree", "rows.csv", "--columns", "human.wit=gold") == 2
    assert "use human=gold" in command.errors


def test_labels_by_aspect_are_those_of_the_row_s_aspect() -> None:
    rows = [
        {"item": n, "aspect": aspect, "score": n, "human": {"wit": n, "calm": -n}}
        for n in range(3)
        for aspect in ("wit", "calm")
    ]
    found: Any = agreement(rows)
    assert {name: found[name].over_rows["pearson"].value for name in found} == {
        "wit": 1.0,
        "calm": -1.0,
    }


def test_the_call_that_agreement_offers_works() -> None:
    rows = [{"item": n, "winner": ("1", "2")[n % 2], "label": n % 2} for n in range(4)]
    with pytest.warns(ReadingNotice, match="`label` was not used") as notices:
        agreement(rows)
    call = re.search(r"call `(.*)`\.", str(notices[0].message))
    assert call
    found: Any = eval(call[1].replace("...", "rows"), {"agreement": agreement, "rows": rows})
    assert found["preference"].accuracy.value == 1


def test_agree_leaves_out_flagged_items_of_a_mapped_column(
    command: Command, tmp_path: Path
) -> None:
    flag = ["candidate states a verdict"]
    rows = [
        {"text": f"t{n}", "score": n, "human": n, "warnings": flag * (n == 3)} for n in range(5)
    ]
    write_lines(tmp_path / "rows.jsonl", rows)
    assert (
        command("agree", "rows.jsonl", "--columns", "item=text", "--without-flagged", "--json") == 0
    )
    assert json.loads(command.printed)["score"]["n"] == 4


# `run`, `try` and data frames.


@dataclass(frozen=True)
class Run:
    """A file, the message about it, and the items' labels with the option that it offers."""

    table: str
    said: str
    labels: list[Any]
    refused: bool = False
    compares: bool = True


HEAD = "id,question,answer_1,answer_2"
RUNS = {
    "a winner": Run(
        f"{HEAD},winner\na,q,x,y,model_b\nb,r,x,y,tie\n", "as the human label", ["2", "tie"]
    ),
    "a winner whose name has a space": Run(
        f"{HEAD},overall winner\na,q,x,y,A\nb,r,x,y,B\n", "as the human label", ["1", "2"]
    ),
    "winners counted from 0": Run(
        f"{HEAD},label\na,q,x,y,0\nb,r,x,y,1\nc,s,x,y,2\n",
        "if its values have this meaning",
        ["1", "2", "tie"],
    ),
    "a score of each answer": Run(
        f"{HEAD},score_1,score_2\na,q,x,y,3,4\nb,r,x,y,4,4\n",
        "To take the answer with the higher of `score_1` and `score_2` as the human label",
        ["2", "tie"],
    ),
    "labels counted from 0": Run(
        f"{HEAD},human\na,q,x,y,0\nb,r,x,y,1\n",
        "if labels are counted from 0",
        ["1", "2"],
        refused=True,
    ),
    "an empty answer": Run(
        f"{HEAD},human\na,q,x,,1\n",
        "judge it as an empty answer with --empty judge",
        ["1"],
        refused=True,
    ),
    "a score of a known aspect": Run(
        "id,source,candidate,coherence\na,s,c,4\nb,t,c,2\n",
        "as the human label",
        [4, 2],
        compares=False,
    ),
    "a score of another name": Run(
        "id,source,candidate,my rating\na,s,c,4\nb,t,c,2\n",
        "holds human scores of",
        [4, 2],
        compares=False,
    ),
    "two columns for one aspect": Run(
        "Article,Summary,coherence_score,human_coherence\ns,c,4,3\nt,c,2,1\n",
        "may both hold the labels of human.coherence; choose one",
        [4, 2],
        refused=True,
        compares=False,
    ),
}


@pytest.mark.parametrize("case", RUNS)
def test_the_option_that_run_offers_works(case: str, command: Command, tmp_path: Path) -> None:
    given = RUNS[case]
    (tmp_path / "mine.csv").write_text(given.table)
    aspect = () if given.compares else ("--aspect", "coherence")
    run = ("run", "single", "--data", "mine.csv", *aspect)
    assert command(*run, "--out", "a") == (2 if given.refused else 0)
    message = " ".join(command.errors.split())
    assert given.said in message
    assert command(*run, "--out", "b", *options_in(message)) == 0
    assert [row["human"] for row in read_lines(tmp_path / "b")] == given.labels
    assert "as the human label" not in command.errors


@pytest.mark.parametrize("case", [name for name, given in RUNS.items() if not given.refused])
def test_the_call_that_a_frame_s_notice_offers_works(case: str) -> None:
    lines = [line.split(",") for line in RUNS[case].table.splitlines()]
    rows = [dict(zip(lines[0], cells, strict=True)) for cells in lines[1:]]
    with pytest.warns(ReadingNotice) as notices:
        load_dataset(rows)
    call = re.search(r"call `(.*?)`[.;]", "\n".join(str(notice.message) for notice in notices))
    assert call
    dataset: Any = eval(
        call[1].replace("...", "rows"), {"load_dataset": load_dataset, "rows": rows}
    )
    aspect = None if RUNS[case].compares else "coherence"
    assert [item.label(aspect) for item in dataset] == RUNS[case].labels
