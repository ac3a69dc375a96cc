"""The datasets that have a name: the forms in which they were published, written here in small, and recorded ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Dataset, load_dataset
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.aspect_choice import choose_aspects
from jurygraph.eval.datasets.dataset import SOURCES
from jurygraph.eval.datasets.items import CompareItem, ScoreItem
from jurygraph.state import DataError
from typer.testing import CliRunner

Write = Callable[[Mapping[str, Any]], Path]
PUBLISHED = [name for name, source in SOURCES.items() if source.forms]


@pytest.fixture
def folder(tmp_path: Path) -> Write:
    """Write files by their path: text as it is, lists as JSON lines or, in ``.json``, as one array."""

    def write(files: Mapping[str, Any]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(as_bytes(name, content))
        return tmp_path

    return write


def as_bytes(name: str, content: Any) -> bytes:
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".parquet"):
        return parquet(content)
    if name.endswith(".json"):
        return json.dumps(content, indent=4).encode()
    lines = "".join(json.dumps(row) + "\n" for row in content).encode()
    return gzip.compress(lines) if name.endswith(".gz") else lines


def parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet as files

    written = io.BytesIO()
    files.write_table(pa.Table.from_pylist(list(rows)), written)
    return written.getvalue()


def scored(dataset: Dataset) -> list[ScoreItem]:
    return [item for item in dataset if isinstance(item, ScoreItem)]


def compared(dataset: Dataset) -> list[CompareItem]:
    return [item for item in dataset if isinstance(item, CompareItem)]


SCORES = {
    "understandability": 1.0,
    "naturalness": 3.0,
    "coherence": 2.5,
    "engagingness": 2.0,
    "groundedness": 0.0,
    "overall": 4.0,
}
TRUTH = "Original Ground Truth"


def said(source: str, system: str, output: str) -> dict[str, Any]:
    return {
        "source": source + " \n\n",
        "system_id": system,
        "system_output": output + " \n",
        "context": "ferries are slow\n",
        "scores": SCORES,
    }


def test_topical_chat_as_unieval_has_it(folder: Write) -> None:
    rows = [said("hi", "Argmax Decoding", "no"), said("hi", TRUTH, "yes"), said("hello", TRUTH, "ah")]
    dataset = load_dataset("topical-chat", folder({"reproduce/data/dialogue/topical_chat.json": rows}))
    first, truth, other = scored(dataset)
    assert [item.id for item in dataset] == ["tc-00-0", "tc-00-1", "tc-01-0"]
    assert (first.source, first.candidate, first.fact) == ("hi", "no", "ferries are slow")
    assert (first.references, truth.references, other.references) == (("yes",), (), ())
    assert (first.group, other.group, truth.system) == ("tc-00", "tc-01", TRUTH)
    assert {aspect.name: aspect.high for aspect in choose_aspects(dataset, [])} == {
        **{"understandability": 1, "naturalness": 3, "coherence": 3, "engagingness": 3, "groundedness": 1}
    }


def test_summeval_as_mteb_has_it(folder: Write) -> None:
    article = {
        "id": "cnn-1",
        "text": "It rained in Oslo all day.",
        "machine_summaries": ["Rain.", "Sun."],
        "human_summaries": ["It rained.", "Oslo was wet."],
        **{
            "coherence": [4.0, 2.0],
            "consistency": [5.0, 1.0],
            "fluency": [5.0, 4.5],
            "relevance": [3.0, 1.0],
        },
    }
    name = "data/test-00000-of-00001-35901af5f6649399.parquet"
    dataset = load_dataset("summeval", folder({name: [article, {**article, "id": "cnn-2"}]}))
    rain, sun, *_ = scored(dataset)
    assert [item.id for item in dataset] == ["cnn-1-0", "cnn-1-1", "cnn-2-0", "cnn-2-1"]
    assert rain.references == ("It rained.", "Oslo was wet.")
    assert (sun.group, sun.candidate, sun.label("fluency"), sun.system) == ("cnn-1", "Sun.", 4.5, None)


def test_summeval_with_lists_of_unequal_length(folder: Write) -> None:
    article: dict[str, Any] = {
        "id": "cnn-1",
        "text": "t",
        "machine_summaries": ["a", "b"],
        "human_summaries": [],
    }
    marks = {"coherence": [4.0], "consistency": [5.0, 1.0], "fluency": [5.0, 4.5], "relevance": [3.0, 1.0]}
    name = "test-00000-of-00001-35901af5f6649399.parquet"
    with pytest.raises(DataError, match="row 1: field 'coherence' has 1 values for 2 summaries"):
        load_dataset("summeval", folder({name: [{**article, **marks}]}))


ANNOTATED = {
    "id": "dm-7",
    "decoded": "Rain.",
    "model_id": "M8",
    "expert_annotations": [
        {"coherence": 4, "consistency": 5, "fluency": 5, "relevance": 3},
        {"coherence": 2, "consistency": 5, "fluency": 5, "relevance": 3},
    ],
    "references": ["It rained."],
}


def test_summeval_as_its_authors_pair_it(folder: Write) -> None:
    place = folder({"model_annotations.aligned.paired.jsonl": [{**ANNOTATED, "text": "It rained in Oslo."}]})
    [item] = scored(load_dataset("summeval", place))
    assert (item.id, item.system, item.label("coherence")) == ("dm-7-M8", "M8", 3)
    assert item.about("coherence")["annotations"] == (4, 2)


def test_summeval_without_its_articles(folder: Write) -> None:
    with pytest.raises(
        DataError, match=r"line 1: field 'text' is missing: .* published without the articles"
    ):
        load_dataset("summeval", folder({"model_annotations.aligned.paired.jsonl": [ANNOTATED]}))


def story(number: int, rater: int, **marks: int) -> dict[str, Any]:
    titles = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
    return {
        "Story ID": number,
        "Prompt": "Write of rain.",
        "Story": f"It, and {number},\nrained.",
        "Model": "Human" if number < 96 else "GPT",
        **{title: marks.get(title, rater) for title in titles},
    }


def test_hanna_as_its_authors_have_it(folder: Write) -> None:
    rows = [story(0, 1), story(0, 2), story(0, 3), story(96, 5, Empathy=1)]
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    dataset = load_dataset("hanna", folder({"hanna_stories_annotations.csv": text.getvalue()}))
    human, gpt = scored(dataset)
    assert (human.label("empathy"), gpt.label("empathy"), gpt.label("surprise")) == (2, 1, 5)
    assert human.about("empathy")["annotations"] == (1, 2, 3)
    assert (human.system, gpt.system, human.group) == ("Human", "GPT", gpt.group)
    aspects = choose_aspects(dataset, [])
    assert [aspect.name for aspect in aspects] == list(SOURCES["hanna"].aspects)
    assert {aspect.candidate_name for aspect in aspects} == {"story"}


def faireval(verdicts: str = "CHATGPT\nTIE\n", more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "question.jsonl": [{"question_id": n, "text": f"q{n}", "category": "generic"} for n in (1, 2)],
        "answer/answer_gpt35.jsonl": [{"question_id": n, "text": f"g{n}"} for n in (2, 1)],
        "answer/answer_vicuna-13b.jsonl": [{"question_id": n, "text": f"v{n}"} for n in (1, 2)],
        "review/review_gpt35_vicuna-13b_human.txt": verdicts,
        **(more or {}),
    }


def test_faireval_as_its_repository_has_it(folder: Write) -> None:
    place = folder(faireval())
    dataset = load_dataset("faireval", place)
    first, second = compared(dataset)
    assert (first.question, first.answer_1, first.answer_2) == ("q1", "g1", "v1")
    assert (first.label(), second.label()) == ("1", "tie")
    assert first.about()["systems"] == ("gpt35", "vicuna-13b")
    assert dataset.location == str(place)


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (faireval("CHATGPT\n"), "_human.txt: has 1 verdicts for 2 questions"),
        (faireval("TIE\nTIE\nTIE\n"), "_human.txt: has 3 verdicts for 2 questions"),
        (faireval("CHATGPT\nBOTH\n"), "item 2: field 'human': Input should be '1', '2' or 'tie', got 'BOTH'"),
        (
            faireval(more={"answer/answer_gpt35.jsonl": [{"question_id": 1, "text": "g1"}]}),
            "answer_gpt35.jsonl: has no answer to question 2",
        ),
        (
            faireval(more={"answer/answer_gpt35.jsonl": [{"id": 1, "text": "g1"}]}),
            "answer_gpt35.jsonl, line 1: field 'question_id' is missing; the row has id, text",
        ),
    ],
)
def test_files_of_faireval_that_do_not_fit(folder: Write, files: dict[str, Any], fault: str) -> None:
    with pytest.raises(DataError) as caught:
        load_dataset("faireval", folder(files))
    assert fault in str(caught.value)


def test_a_dataset_of_several_files_notices_a_change_in_any(folder: Write) -> None:
    place = folder(faireval())
    dataset = load_dataset("faireval", place)
    before = dataset.digest
    folder({"review/review_gpt35_vicuna-13b_human.txt": "TIE\nTIE\n"})
    with pytest.raises(DataError, match=r"_human\.txt: the file has changed"):
        list(dataset)
    assert load_dataset("faireval", place).digest != before


def vote(winner: str, judge: str = "expert_1", models: str = "ab", turns: int = 2) -> dict[str, Any]:
    def talk(model: str) -> list[dict[str, str]]:
        turn = [("user", "Q{}"), ("assistant", model + "{}")]
        return [{"role": role, "content": text.format(n + 1)} for n in range(turns) for role, text in turn]

    model_a, model_b = tuple(models)
    about = {"question_id": 111, "model_a": model_a, "model_b": model_b, "winner": winner, "judge": judge}
    return {**about, "conversation_a": talk(model_a), "conversation_b": talk(model_b), "turn": 1}


VOTES = "data/human-00000-of-00001-25f4910818759289.parquet"


def test_votes_on_one_pair_of_answers_are_one_item(folder: Write) -> None:
    votes = [vote("model_a"), vote("tie"), vote("model_a", models="ba"), vote("model_b", "author_0")]
    dataset = load_dataset("mt-bench", folder({VOTES: [*votes, vote("model_b", models="ac")]}))
    pair, other = compared(dataset)
    assert (pair.human, other.human) == (["1", "tie", "2"], ["2"])
    assert (pair.id, pair.category, pair.group) == ("111-a-b", "math", "111")
    assert pair.question == "Turn 1: Q1\n\nTurn 2: Q2"
    assert (pair.answer_1, pair.answer_2) == ("Turn 1: a1\n\nTurn 2: a2", "Turn 1: b1\n\nTurn 2: b2")
    assert pair.about()["annotations"] == ("1", "tie", "2")


def test_a_vote_on_the_first_turn_may_show_no_more_than_that(folder: Write) -> None:
    votes = [vote("model_a", turns=1), vote("model_a", models="ba")]
    [pair] = compared(load_dataset("mt-bench", folder({VOTES: votes})))
    assert (pair.human, pair.answer_1) == (["1", "2"], "Turn 1: a1\n\nTurn 2: a2")


def test_a_vote_for_nobody(folder: Write) -> None:
    with pytest.raises(DataError, match="row 2: field 'winner' is 'both'; expected model_a, model_b or tie"):
        load_dataset("mt-bench", folder({VOTES: [vote("tie"), vote("both")]}))


def test_answers_without_votes_make_pairs_without_labels(folder: Write) -> None:
    row = {"question_id": 81, "turns": ["A?", "B?"], "answers": {m: [m, m * 2] for m in "cab"}}
    dataset = load_dataset("mt-bench", folder({"mt_bench.jsonl.gz": [row]}))
    assert [item.id for item in dataset] == ["81-a-b", "81-a-c", "81-b-c"]
    assert (dataset.labels, compared(dataset)[0].category) == ("none", "writing")


def test_llmbar_as_its_repository_has_it(folder: Write) -> None:
    row = {"input": "Say hi.", "output_1": "hi", "output_2": "ho", "label": 1}
    names = SOURCES["llmbar"].forms[0].files
    place = folder({name: [row, {**row, "label": 2}] for name in names})
    dataset = load_dataset("llmbar", place)
    assert len(dataset) == 16
    assert Counter(item.category for item in compared(dataset))["Adversarial-GPTInst"] == 2
    assert [item.id for item in dataset][1:3] == ["Natural-001", "Adversarial-Neighbor-000"]
    assert load_dataset("llmbar", place / "Dataset").digest == dataset.digest


def test_judgebench_as_its_repository_has_it(folder: Write) -> None:
    row = {
        "pair_id": "p",
        "source": "livebench-math",
        "question": "2+2?",
        "response_A": "4",
        "response_B": "5",
    }
    one, other = SOURCES["judgebench"].forms[0].files
    files = {one: [{**row, "label": "A>B"}], other: [{**row, "pair_id": "r", "label": "B>A"}]}
    dataset = load_dataset("judgebench", folder(files))
    first, second = compared(dataset)
    assert (first.label(), second.label(), first.group) == ("1", "2", second.group)
    assert (dataset.labels, first.about()["systems"]) == ("construction", ())
    folder({one: [{**row, "label": "A=B"}]})
    with pytest.raises(DataError, match=r"item 1: field 'human': .* got 'A=B'"):
        load_dataset("judgebench", folder({}))


def test_pandalm_as_its_repository_has_it(folder: Write) -> None:
    row = {"idx": 4, "motivation_app": "Mail", "cmp_key": "bloom-7b_opt-7b", "instruction": "Shorten."}
    votes = {"annotator1": 0, "annotator2": 1, "annotator3": 1}
    rows = [
        {**row, "input": float("nan"), "response1": True, "response2": 7, **votes},
        {**row, "idx": 5, "input": "A text.", "response1": "a", "response2": "b", **votes, "annotator2": 2},
    ]
    alone, with_input = compared(load_dataset("pandalm", folder({"data/testset-v1.json": rows})))
    assert (alone.question, with_input.question) == ("Shorten.", "Shorten.\n\nA text.")
    assert (alone.answer_1, alone.answer_2) == ("True", "7")
    assert (alone.human, alone.label(), with_input.label()) == (["tie", "1", "1"], "1", "tie")
    assert alone.about()["systems"] == ("bloom-7b", "opt-7b")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_folder_without_the_files(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"holds no .* which {name} is read from"):
        load_dataset(name, tmp_path)
    with pytest.raises(DataError, match="there is no such folder"):
        load_dataset(name, tmp_path / "nowhere")
    (tmp_path / "other.txt").write_text("x")
    with pytest.raises(DataError, match=r"other\.txt: .* not from this file"):
        load_dataset(name, tmp_path / "other.txt")


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_file_that_is_another(name: str, tmp_path: Path) -> None:
    form = SOURCES[name].forms[-1]
    (tmp_path / form.files[0]).write_text('{"title": "no dataset"}\n')
    with pytest.raises(DataError, match=r"line 1: field '\w+' is missing; the row has title"):
        load_dataset(name, tmp_path)
    (tmp_path / form.files[0]).write_text("")
    with pytest.raises(DataError, match="holds no items"):
        load_dataset(name, tmp_path)


def test_topical_chat_is_the_same_in_both_forms(shared_data: Path, folder: Write) -> None:
    """Whoever judged one form can compare with whoever judged the other."""
    text = (shared_data / "topical_chat/topical_chat.jsonl").read_text(encoding="utf-8")
    recorded = [json.loads(line) for line in text.split("\n") if line]
    unieval = [
        {
            "source": row["dialogue_history"],
            "system_id": row["system_id"],
            "system_output": row["response"],
            "context": row["fact"],
            "scores": row["human"],
        }
        for row in recorded
    ]
    other = load_dataset("topical-chat", folder({"topical_chat.json": unieval}))
    for one, two in zip(load_dataset("topical-chat", shared_data), other, strict=True):
        assert one.model_dump(exclude={"id", "group"}) == two.model_dump(exclude={"id", "group"})


def test_shown_is_what_was_judged_also_of_several_files(folder: Write, tmp_path: Path) -> None:
    place, runner = folder(faireval()), CliRunner()
    out = str(tmp_path / "out")
    ran = runner.invoke(app, ["run", "single", "--data", "faireval", "--data-dir", str(place), "--out", out])
    assert ran.exit_code == 0, ran.output
    shown = runner.invoke(app, ["show", out, "2"])
    assert "g2" in shown.output
    assert "v2" in shown.output
