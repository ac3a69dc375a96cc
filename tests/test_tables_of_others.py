"""Test published table formats: readable at once, or with one correction that is named."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.aspect_choice import choose_aspects
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import CompareItem
from jurygraph.eval.datasets.label_reader import parse_label_codes
from jurygraph.eval.datasets.selection import parse_columns
from jurygraph.state import DataError, UsageError

PAIR = {"answer_1": "It rained.", "answer_2": "It snowed."}


def load(tmp_path: Path, data: Any, suffix: str = "json", **options: Any) -> tuple[Dataset, str]:
    """Return a file's dataset, and the notices about how it was read."""
    path = tmp_path / f"mine.{suffix}"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = load_dataset(path, **options)
    return dataset, " ".join(str(one.message) for one in caught)


def refusal(tmp_path: Path, data: Any, suffix: str = "json", **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        load(tmp_path, data, suffix, **options)
    return str(caught.value)


def corrected(tmp_path: Path, data: Any, words: str, **more: Any) -> Dataset:
    """Follow a message word by word: the options that it names, as the command line reads them."""
    found = dict(re.findall(r"--(columns|labels|empty) (\S+?)(?=[`\s);.]|$)", words))
    options: dict[str, Any] = (
        {"columns": parse_columns(found["columns"])} if "columns" in found else {}
    )
    options |= {"label_codes": parse_label_codes(found["labels"])} if "labels" in found else {}
    options |= {"empty": found["empty"]} if "empty" in found else {}
    return load(tmp_path, data, **{**options, **more})[0]


@pytest.mark.parametrize(
    ("label", "winner"),
    [
        ("A>B", "1"),
        ("B>A", "2"),
        ("A>>B", "1"),
        ("[[B>>A]]", "2"),
        ("A=B", "tie"),
        ("A<B", "2"),
        ("b<<a", "1"),
    ],
)
def test_an_order_of_two_answers_is_a_winner(label: str, winner: str, tmp_path: Path) -> None:
    row = {
        "pair_id": "p",
        "question": "Why?",
        "response_A": "Rain.",
        "response_B": "Snow.",
        "label": label,
    }
    dataset, told = load(tmp_path, [row, {**row, "pair_id": "q", "question": "When?"}])
    assert "human = 'label'" in told
    assert [(item.id, item.human) for item in dataset] == [("p", winner), ("q", winner)]


def test_the_objects_of_an_object_are_rows_by_id(tmp_path: Path) -> None:
    row = {"input": "How?", "response": "So.", "score": 4, "response_model_name": "m"}
    dataset, _ = load(tmp_path, {"plan_0": row, "plan_1": {**row, "response": "Thus."}})
    assert [(item.id, item.candidate, item.system) for item in dataset] == [  # type: ignore[union-attr]
        ("plan_0", "So.", "m"),
        ("plan_1", "Thus.", "m"),
    ]


def test_a_rubric_that_is_an_object_belongs_to_its_row(tmp_path: Path) -> None:
    rubric = {"criteria": "Is it short?", "score1_description": "No.", "score5_description": "Yes."}
    dataset, told = load(tmp_path, [{"input": "How?", "response": "So.", "score_rubric": rubric}])
    assert "criteria = 'score_rubric'" in told
    words = "criteria: Is it short?\nscore1_description: No.\nscore5_description: Yes."
    assert dataset.items[0].criteria == (words,)


INSTRUCTED = {
    "idx": 0, "instruction": "Shorten this.", "input": "It is raining cats and dogs.",
    "response1": "It rains.", "response2": "Cats.", "annotator1": 1, "annotator2": 2, "annotator3": 1,
}  # fmt: skip


def test_the_input_of_an_instruction_is_its_context(tmp_path: Path) -> None:
    [item], _ = load(tmp_path, [INSTRUCTED])
    assert isinstance(item, CompareItem)
    assert (item.question, item.context) == ("Shorten this.", "It is raining cats and dogs.")
    assert item.human == ["1", "2", "1"]
    rated = {"instruction": "Shorten this.", "input": "It is raining.", "output": "It rains."}
    [score], _ = load(tmp_path, [rated])
    assert (score.source, score.context) == ("Shorten this.", "It is raining.")  # type: ignore[union-attr]


def test_one_message_corrects_an_empty_answer_and_a_label(tmp_path: Path) -> None:
    rows = [
        INSTRUCTED,
        {**INSTRUCTED, "response1": ""},
        {**INSTRUCTED, "input": "", "annotator2": 0},
    ]
    words = refusal(tmp_path, rows)
    assert "row 2: field 'answer_1' is empty" in words and "--empty judge" in words
    assert "Also, in column `annotator2`: 0 is not 1, 2 or tie" in words
    assert 'if 0 is a tie, add --labels "0=tie,1=1,2=2"' in words
    codes = parse_label_codes("0=tie,1=1,2=2")
    dataset, _ = load(tmp_path, rows, empty="judge", label_codes=codes)
    assert dataset.items[2].human == ["1", "tie", "1"]


def test_one_message_corrects_an_empty_answer_and_an_unread_label(tmp_path: Path) -> None:
    row = {"prompt": "Why?", "response 1": "Rain.", "response 2": "Snow.", "label": 1}
    rows = [
        row,
        {**row, "response 2": " "},
        {**row, "prompt": "When?", "label": 2},
        {**row, "label": 0},
    ]
    words = refusal(tmp_path, rows)
    assert "(`--labels 0=tie,1=1,2=2` if 0 is a tie)" in words
    dataset = corrected(tmp_path, rows, words.replace("`--labels 0=tie,1=1,2=2` if", "if"))
    assert [item.human for item in dataset] == [["2", "1"], "2", "tie"]


RATED = {
    "doc_id": 0,
    "source": "s",
    "system_output": "c",
    "scores": {"naturalness": 3.5, "overall": 4.0},
}


def test_an_object_of_scores_is_offered_as_the_label_and_read(tmp_path: Path) -> None:
    _, told = load(tmp_path, [RATED])
    assert "add `--columns human=scores`" in told
    assert corrected(tmp_path, [RATED], told).items[0].human == {"naturalness": 3.5, "overall": 4.0}


LONG = """original,simplification,aspect,worker_id,rating
Since 2000 it has been cold.,It is cold.,meaning,7,55
Since 2000 it has been cold.,It is cold.,meaning,8,70
Since 2000 it has been cold.,It is cold.,fluency,7,90
"""


def test_a_row_for_each_aspect_and_worker_is_one_item(tmp_path: Path) -> None:
    [item], told = load(tmp_path, LONG, "csv")
    assert "one row for each aspect (the column 'rating' has the human score on the aspect)" in told
    assert (item.source, item.candidate) == ("Since 2000 it has been cold.", "It is cold.")  # type: ignore[union-attr]
    assert item.human == {"meaning": [55, 70], "fluency": [90, None]}
    assert item.annotators == ("7", "8")


def test_an_aspect_is_what_answers_are_compared_on(tmp_path: Path) -> None:
    rows = [
        {"question": "q", **PAIR, "aspect": aspect, "winner": 1}
        for aspect in ("fluency", "meaning")
    ]
    dataset, _ = load(tmp_path, rows)
    assert [item.criteria for item in dataset] == [("fluency",), ("meaning",)]


@pytest.mark.parametrize(
    ("preference", "winner"),
    [(1, "1"), (2.0, "2"), (1.73, "2"), (1.2, "1"), (1.5, "tie"), (0, "tie")],
)
def test_annotations_of_alpaca_eval_are_read(
    preference: float, winner: str, tmp_path: Path
) -> None:
    row = {
        "instruction": "Why?", "output_1": "Rain.", "output_2": "Snow.", "generator_1": "base",
        "generator_2": "mine", "annotator": "some_judge", "preference": preference, "dataset": "d",
    }  # fmt: skip
    [item], told = load(tmp_path, [row])
    assert isinstance(item, CompareItem)
    assert (item.human, item.model_1, item.model_2) == (winner, "base", "mine")
    assert item.annotators == ("some_judge",)
    assert "the preference of the annotator, which may be a model" in told


def test_texts_inside_objects_are_named_as_paths(tmp_path: Path) -> None:
    annotated = {"metric_input": {"user_input": "Why?", "response": "Rain."}, "metric_output": 1}
    data = {"helpfulness": [annotated, {**annotated, "metric_output": 0}]}
    words = refusal(tmp_path, data)
    assert "the row has metric_input.user_input, metric_input.response, metric_output" in words
    columns = parse_columns(
        "source=metric_input.user_input,candidate=metric_input.response,human.helpfulness=metric_output"
    )
    [item], _ = load(tmp_path, data, columns=columns)
    assert (item.source, item.human) == ("Why?", {"helpfulness": [1, 0]})  # type: ignore[union-attr]
    crowd = "Input.text,Answer.fluency\nIt rained.,4\n"
    assert "the row has Input.text, Answer.fluency" in refusal(tmp_path, crowd, "csv")


def test_a_message_names_the_fields_of_both_kinds(tmp_path: Path) -> None:
    rows = [
        {"source": "q", "theirs": "a", "ours": "b", "winner": winner}
        for winner in ("theirs", "similar", "ours")
    ]
    words = refusal(tmp_path, rows)
    assert "use --columns candidate=COLUMN" in words
    assert "for two answers to be compared, use --columns question=COLUMN,answer_1=COLUMN" in words
    # The value that means a tie is offered as one.
    assert "--columns human=winner --labels ours=1,theirs=2,similar=tie" in words
    words = refusal(tmp_path, [{"question": "q", "expected": "a"}])
    assert "for one text to be rated, use --columns source=COLUMN,candidate=COLUMN" in words


def test_messages_in_an_object_are_no_rows(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Rain."}]
    [item], _ = load(tmp_path, {"messages": talk})
    assert (item.source, item.candidate) == ("Why?", "Rain.")  # type: ignore[union-attr]


def test_an_answer_that_is_a_truth_value_is_its_text(tmp_path: Path) -> None:
    [item], _ = load(tmp_path, [{"id": 1, "question": "Is it?", "answer_1": True, "answer_2": 7}])
    assert isinstance(item, CompareItem)
    assert (item.answer_1, item.answer_2) == ("True", "7")


def test_labels_without_criteria_are_named_with_the_file_that_adds_some(tmp_path: Path) -> None:
    row = {"id": 1, "source": "s", "candidate": "c", "human": {"fluency": 3, "overall": 70}}
    dataset, _ = load(
        tmp_path, [row, {**row, "candidate": "d", "id": 2, "human": {"fluency": 2, "overall": 10}}]
    )
    with pytest.warns(UserWarning, match="labels for overall are not used") as told:
        assert [aspect.name for aspect in choose_aspects(dataset, [])] == ["fluency"]
    words = str(told[0].message)
    (tmp_path / "own.yaml").write_text(words.partition("a file such as ")[2])
    [own] = choose_aspects(dataset, [str(tmp_path / "own.yaml")])
    assert (own.name, own.low, own.high) == ("overall", 10, 70)
    alone, _ = load(tmp_path, [{**row, "human": {"overall": 70}}])
    with pytest.raises(
        UsageError, match=r"unknown aspect 'overall'.* such as \{name: overall, criteria: "
    ):
        choose_aspects(alone, [])


def test_labels_off_the_scale_are_refused_with_the_file_of_another_scale(tmp_path: Path) -> None:
    rows = [
        {"id": n, "candidate": f"c{n}", "human": {"fluency": label}}
        for n, label in enumerate((4, 90))
    ]
    dataset, _ = load(tmp_path, rows)
    with pytest.raises(DataError, match="is 90, off the scale 1 to 5") as caught:
        choose_aspects(dataset, [])
    (tmp_path / "own.yaml").write_text(str(caught.value).partition("such as ")[2])
    [own] = choose_aspects(dataset, [str(tmp_path / "own.yaml")])
    assert (own.name, own.low, own.high) == ("fluency", 4, 90)


def test_rows_with_several_annotators_each_are_all_counted(tmp_path: Path) -> None:
    rows = [{**INSTRUCTED, "annotator1": 2, "annotator2": 2}, INSTRUCTED, INSTRUCTED]
    [item], told = load(tmp_path, rows)
    assert "3 rows are 1 item with" in told
    assert sorted(map(str, item.human or ())) == ["1", "1", "1", "2", "2", "2"]
    assert item.annotators[:2] == ("annotator1", "annotator2")
    assert item.annotators[3:5] == ("annotator1, row 2", "annotator2, row 2")
