"""Test named datasets in published and recorded forms, and the bundled ones."""

import csv
import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jurygraph.eval import Dataset, load_dataset
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.aspect_choice import choose_aspects
from jurygraph.eval.datasets.catalog import SOURCES
from jurygraph.eval.datasets.dataset import describe_data, find_item, load_again
from jurygraph.eval.datasets.items import EMPTY_TEXT, CompareItem, ScoreItem
from jurygraph.state import DataError
from typer.testing import CliRunner

from .processes import Command
from .sample_data import parquet, read_lines, refused
from .source_tree import imported

Write = Callable[[Mapping[str, Any]], Path]
PUBLISHED = [name for name, source in SOURCES.items() if source.forms]


@pytest.fixture
def folder(tmp_path: Path) -> Write:
    """Return a function that writes files by path, each in the format of its name."""

    def write(files: Mapping[str, Any]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(as_bytes(name, content))
        return tmp_path

    return write


def as_bytes(name: str, content: Any) -> bytes:
    """A file: text as it is, rows as Parquet, as a JSON array, or else as JSON lines."""
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".parquet"):
        return parquet(content)
    if name.endswith(".json"):
        return json.dumps(content, indent=4).encode()
    lines = "".join(json.dumps(row) + "\n" for row in content).encode()
    return gzip.compress(lines) if name.endswith(".gz") else lines


def scored(dataset: Dataset) -> list[ScoreItem]:
    return [item for item in dataset if isinstance(item, ScoreItem)]


def compared(dataset: Dataset) -> list[CompareItem]:
    return [item for item in dataset if isinstance(item, CompareItem)]


TRUTH = "Original Ground Truth"
SCORES = {
    "understandability": 1,
    "naturalness": 3,
    "coherence": 2.5,
    "engagingness": 2,
    "groundedness": 0,
}
ARTICLE: dict[str, Any] = {
    **{"id": "cnn-1", "text": "It rained in Oslo all day.", "machine_summaries": ["Rain.", "Sun."]},
    "human_summaries": ["It rained.", "Oslo was wet."],
    **{
        "coherence": [4.0, 2.0],
        "consistency": [5.0, 1.0],
        "fluency": [5.0, 4.5],
        "relevance": [3.0, 1.0],
    },
}
INSTRUCTION = {"input": "Say hi.", "output_1": "hi", "output_2": "ho", "label": 1}


def said(source: str, system: str, output: str) -> dict[str, Any]:
    texts = {
        "source": f"{source} \n\n",
        "system_output": f"{output} \n",
        "context": "ferries are slow\n",
    }
    return {**texts, "system_id": system, "scores": {**SCORES, "overall": 4.0}}


def test_topical_chat_as_unieval_has_it(folder: Write) -> None:
    rows = [
        said("hi", "Argmax Decoding", "no"),
        said("hi", TRUTH, "yes"),
        said("hello", TRUTH, "ah"),
    ]
    dataset = load_dataset(
        "topical-chat", folder({"reproduce/data/dialogue/topical_chat.json": rows})
    )
    first, truth, other = scored(dataset)
    assert [item.id for item in dataset] == ["tc-00-0", "tc-00-1", "tc-01-0"]
    assert (first.source, first.candidate, first.fact) == ("hi", "no", "ferries are slow")
    assert (first.references, truth.references, other.references) == (("yes",), (), ())
    assert (first.group, other.group, truth.system) == ("tc-00", "tc-01", TRUTH)
    scales = {aspect.name: aspect.high for aspect in choose_aspects(dataset, [])}
    assert scales == dict(zip(SCORES, (1, 3, 3, 3, 1), strict=True))


def test_summeval_as_mteb_has_it(folder: Write) -> None:
    name = "data/test-00000-of-00001-35901af5f6649399.parquet"
    dataset = load_dataset("summeval", folder({name: [ARTICLE, {**ARTICLE, "id": "cnn-2"}]}))
    rain, sun, *_ = scored(dataset)
    assert [item.id for item in dataset] == ["cnn-1-0", "cnn-1-1", "cnn-2-0", "cnn-2-1"]
    assert rain.references == ("It rained.", "Oslo was wet.")
    assert (sun.group, sun.candidate, sun.label("fluency"), sun.system) == (
        "cnn-1",
        "Sun.",
        4.5,
        None,
    )
    short = folder({name: [{**ARTICLE, "coherence": [4.0]}]})
    refused("row 1: field 'coherence' has 1 values for 2 summaries", "summeval", short)


def test_summeval_as_its_authors_pair_it(folder: Write) -> None:
    marks = {"coherence": 4, "consistency": 5, "fluency": 5, "relevance": 3}
    row: dict[str, Any] = {
        "id": "dm-7",
        "decoded": "Rain.",
        "model_id": "M8",
        "references": ["It rained."],
    }
    row["expert_annotations"] = [marks, {**marks, "coherence": 2}]
    name = "model_annotations.aligned.paired.jsonl"
    [item] = scored(
        load_dataset("summeval", folder({name: [{**row, "text": "It rained in Oslo."}]}))
    )
    assert (item.id, item.system, item.label("coherence")) == ("dm-7-M8", "M8", 3)
    assert item.about("coherence")["annotations"] == (4, 2)
    refused(
        r"line 1: field 'text' is missing: .* published without the articles",
        "summeval",
        folder({name: [row]}),
    )


def story(number: int, rater: int, **marks: int) -> dict[str, Any]:
    titles = ("Relevance", "Coherence", "Empathy", "Surprise", "Engagement", "Complexity")
    texts = {"Prompt": "Write of rain.", "Story": f"It, and {number},\nrained."}
    about = {"Story ID": number, **texts, "Model": "Human" if number < 96 else "GPT"}
    return {**about, **{title: marks.get(title, rater) for title in titles}}


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


VERDICTS = "review/review_gpt35_vicuna-13b_human.txt"
FAIREVAL = {
    "question.jsonl": [{"question_id": n, "text": f"q{n}", "category": "generic"} for n in (1, 2)],
    "answer/answer_gpt35.jsonl": [{"question_id": n, "text": f"g{n}"} for n in (2, 1)],
    "answer/answer_vicuna-13b.jsonl": [{"question_id": n, "text": f"v{n}"} for n in (1, 2)],
    VERDICTS: "CHATGPT\nTIE\n",
}


def test_faireval_as_its_repository_has_it(folder: Write, command: Command) -> None:
    place = folder(FAIREVAL)
    dataset = load_dataset("faireval", place)
    first, second = compared(dataset)
    assert (first.question, first.answer_1, first.answer_2) == ("q1", "g1", "v1")
    assert (first.label(), second.label()) == ("1", "tie")
    assert first.about()["systems"] == ("gpt35", "vicuna-13b")
    assert dataset.location == str(place)
    run = ("run", "single", "--data", "faireval", "--data-dir", str(place), "--out", "out")
    assert command(*run) == command("show", "out", "2") == 0
    assert "g2" in command.printed and "v2" in command.printed
    # A change in any of the files is noticed.
    folder({VERDICTS: "TIE\nTIE\n"})
    with pytest.raises(DataError, match=r"_human\.txt: the file has changed"):
        list(dataset)
    assert load_dataset("faireval", place).digest != dataset.digest


@pytest.mark.parametrize(("name", "content", "fault"), [
    (VERDICTS, "CHATGPT\n", "has 1 verdicts for 2 questions"),
    (VERDICTS, "TIE\nTIE\nTIE\n", "has 3 verdicts for 2 questions"),
    (VERDICTS, "CHATGPT\nBOTH\n", "item 2: field 'human': 'BOTH' is not 1, 2 or tie$"),
    ("answer/answer_gpt35.jsonl", [{"question_id": 1, "text": "g1"}], "has no answer to question 2"),
    ("answer/answer_gpt35.jsonl", [{"id": 1, "text": "g1"}], "line 1: field 'question_id' is missing"),
])  # fmt: skip
def test_files_of_faireval_that_do_not_fit(
    folder: Write, name: str, content: Any, fault: str
) -> None:
    refused(fault, "faireval", folder({**FAIREVAL, name: content}))


def vote(
    winner: str, judge: str = "expert_1", models: str = "ab", turns: int = 2
) -> dict[str, Any]:
    def talk(model: str) -> list[dict[str, str]]:
        turn = [("user", "Q{}"), ("assistant", model + "{}")]
        return [
            {"role": role, "content": text.format(n + 1)}
            for n in range(turns)
            for role, text in turn
        ]

    model_a, model_b = tuple(models)
    about = {
        "question_id": 111,
        "model_a": model_a,
        "model_b": model_b,
        "winner": winner,
        "judge": judge,
    }
    return {**about, "conversation_a": talk(model_a), "conversation_b": talk(model_b), "turn": 1}


VOTES = "data/human-00000-of-00001-25f4910818759289.parquet"


def test_votes_on_one_pair_of_answers_are_one_item(folder: Write) -> None:
    votes = [
        vote("model_a"),
        vote("tie"),
        vote("model_a", models="ba"),
        vote("model_b", "author_0"),
    ]
    dataset = load_dataset("mt-bench", folder({VOTES: [*votes, vote("model_b", models="ac")]}))
    pair, other = compared(dataset)
    assert (pair.human, other.human) == (["1", "tie", "2"], ["2"])
    assert (pair.id, pair.category, pair.group) == ("111-a-b", "math", "111")
    assert pair.question == "Turn 1: Q1\n\nTurn 2: Q2"
    assert (pair.answer_1, pair.answer_2) == (
        "Turn 1: a1\n\nTurn 2: a2",
        "Turn 1: b1\n\nTurn 2: b2",
    )
    assert pair.about()["annotations"] == ("1", "tie", "2")
    # A vote on the first turn may show no more than that.
    votes = [vote("model_a", turns=1), vote("model_a", models="ba")]
    [pair] = compared(load_dataset("mt-bench", folder({VOTES: votes})))
    assert (pair.human, pair.answer_1) == (["1", "2"], "Turn 1: a1\n\nTurn 2: a2")
    unknown = folder({VOTES: [vote("tie"), vote("both")]})
    refused(
        "row 2: field 'winner' is 'both'; expected model_a, model_b or tie", "mt-bench", unknown
    )


def test_answers_without_votes_make_pairs_without_labels(folder: Write) -> None:
    row = {"question_id": 81, "turns": ["A?", "B?"], "answers": {m: [m, m * 2] for m in "cab"}}
    dataset = load_dataset("mt-bench", folder({"mt_bench.jsonl.gz": [row]}))
    assert [item.id for item in dataset] == ["81-a-b", "81-a-c", "81-b-c"]
    assert (dataset.labels, compared(dataset)[0].category) == ("none", "writing")


def test_llmbar_as_its_repository_has_it(folder: Write) -> None:
    names = SOURCES["llmbar"].forms[0].files
    place = folder({name: [INSTRUCTION, {**INSTRUCTION, "label": 2}] for name in names})
    dataset = load_dataset("llmbar", place)
    assert len(dataset) == 16
    assert Counter(item.category for item in compared(dataset))["Adversarial-GPTInst"] == 2
    assert [item.id for item in dataset][1:3] == ["Natural-001", "Adversarial-Neighbor-000"]
    assert load_dataset("llmbar", place / "Dataset").digest == dataset.digest


def test_judgebench_as_its_repository_has_it(folder: Write) -> None:
    texts = {"source": "livebench-math", "question": "2+2?", "response_A": "4", "response_B": "5"}
    one, other = SOURCES["judgebench"].forms[0].files
    row = {"pair_id": "p", **texts, "label": "A>B"}
    dataset = load_dataset(
        "judgebench", folder({one: [row], other: [{**row, "pair_id": "r", "label": "B>A"}]})
    )
    first, second = compared(dataset)
    assert (first.label(), second.label(), first.group) == ("1", "2", second.group)
    assert (dataset.labels, first.about()["systems"]) == ("construction", ())
    refused(
        r"item 1: field 'human': 'A~B' is not 1, 2 or tie$",
        "judgebench",
        folder({one: [{**row, "label": "A~B"}]}),
    )


def test_pandalm_as_its_repository_has_it(folder: Write) -> None:
    row = {
        "idx": 4,
        "motivation_app": "Mail",
        "cmp_key": "bloom-7b_opt-7b",
        "instruction": "Shorten.",
    }
    votes = {"annotator1": 0, "annotator2": 1, "annotator3": 1}
    rows = [
        {**row, "input": float("nan"), "response1": True, "response2": 7, **votes},
        {
            **row,
            "idx": 5,
            "input": "A text.",
            "response1": "a",
            "response2": "b",
            **votes,
            "annotator2": 2,
        },
    ]
    alone, with_input = compared(load_dataset("pandalm", folder({"data/testset-v1.json": rows})))
    assert (alone.question, with_input.question) == ("Shorten.", "Shorten.\n\nA text.")
    assert (alone.answer_1, alone.answer_2) == ("True", "7")
    assert (alone.human, alone.label(), with_input.label()) == (["tie", "1", "1"], "1", "tie")
    assert alone.about()["systems"] == ("bloom-7b", "opt-7b")


@pytest.mark.parametrize("name", PUBLISHED)
def test_folders_and_files_of_something_else(name: str, tmp_path: Path) -> None:
    refused(f"has no .* which {name} is read from", name, tmp_path)
    refused("there is no such folder", name, tmp_path / "nowhere")
    (tmp_path / "other.txt").write_text("x")
    refused(r"other\.txt: .* not from this file", name, tmp_path / "other.txt")
    file = tmp_path / SOURCES[name].forms[-1].files[0]
    file.write_text('{"title": "no dataset"}\n')
    refused(r"line 1: field '\w+' is missing; the row has title", name, tmp_path)
    file.write_text("")
    refused("contains no items", name, tmp_path)


def test_topical_chat_is_the_same_in_both_forms(shared_data: Path, folder: Write) -> None:
    """Results on one form are comparable with results on the other."""
    names = {
        "dialogue_history": "source",
        "response": "system_output",
        "fact": "context",
        "human": "scores",
    }
    rows = read_lines(shared_data / "topical_chat/topical_chat.jsonl")
    unieval = [
        {"system_id": row["system_id"], **{names[key]: row[key] for key in names}} for row in rows
    ]
    other = load_dataset("topical-chat", folder({"topical_chat.json": unieval}))
    for one, two in zip(load_dataset("topical-chat", shared_data), other, strict=True):
        assert one.model_dump(exclude={"id", "group"}) == two.model_dump(exclude={"id", "group"})


LABELS = {
    "faireval": {"1", "2", "tie"}, "llmbar": {"1", "2"}, "judgebench": {"1", "2"},
    "pandalm": {"1", "2", "tie"}, "mt-bench": {None},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*an empty candidate or answer")
@pytest.mark.parametrize("name", PUBLISHED)
def test_recorded_data(shared_data: Path, name: str) -> None:
    dataset = load_dataset(name, shared_data)
    again = load_again(describe_data(dataset))
    last = dataset.items[-1]
    assert find_item(again, last.id) == last
    assert again.digest == dataset.digest
    assert dataset.kind == SOURCES[name].kind
    if name in LABELS:
        assert {item.label() for item in compared(dataset)} == LABELS[name]
    else:
        assert dataset.aspect_names() == list(SOURCES[name].aspects)
        choose_aspects(dataset, [])


def test_groups_and_references_of_recorded_data(shared_data: Path) -> None:
    items = {
        name: scored(load_dataset(name, shared_data))
        for name in ("topical-chat", "summeval", "hanna")
    }
    sizes = {name: set(Counter(item.group for item in items[name]).values()) for name in items}
    assert sizes == {"topical-chat": {6}, "summeval": {16}, "hanna": {11}}
    assert {len(item.references) for item in items["summeval"]} == {11}
    for item in items["topical-chat"]:
        assert len(item.references) == (0 if item.system == TRUTH else 1)


def test_the_list_of_datasets() -> None:
    def told(*name: str) -> str:
        return CliRunner().invoke(app, ["datasets", *name], env={"COLUMNS": "200"}).output

    listed = told()
    assert all(words in listed for words in ("bundled", "mean of 3 experts", "CC-BY-4.0"))
    for name, source in SOURCES.items():
        assert name in listed
        assert source.size.split()[0] in listed
        assert all(paper.bibtex in told(name) for paper in source.papers)
        assert source.home is None or source.home.address in told(name).replace("\n", "")
    refused = CliRunner().invoke(app, ["datasets", "dmeo"])
    assert "unknown dataset 'dmeo'; datasets are demo, " in str(refused.exception)


def test_what_the_catalogue_says_of_the_bundled_ones() -> None:
    for name in ("demo", "demo-pairs"):
        dataset = load_dataset(name)
        assert (len(dataset), dataset.kind) == (SOURCES[name].items, SOURCES[name].kind)
        assert dataset.labels == "construction"
        assert SOURCES[name].size.startswith(f"{SOURCES[name].items} ")


DATA = resources.files("jurygraph") / "eval" / "datasets" / "data"
CATEGORIES = {"howto", "science", "writing", "advice", "reasoning"}


def load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_bytes().splitlines()]


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:
    return load("demo.jsonl")


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, Any]]:
    return load("demo-pairs.jsonl")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return imported("benchmarks/make_demo_data.py")


def test_the_better_answer_of_a_pair_stands_first_as_often_as_second(
    pairs: list[dict[str, Any]],
) -> None:
    assert len({pair["question"] for pair in pairs}) >= 20
    for category in CATEGORIES:
        own = Counter(pair["human"] for pair in pairs if pair["category"] == category)
        assert abs(own["1"] - own["2"]) <= 1, category
    verdicts = Counter(pair["human"] for pair in pairs)
    assert verdicts["1"] == verdicts["2"] and 4 <= verdicts["tie"] <= 10
    for pair in pairs:
        assert pair["category"] in CATEGORIES and pair["human"] in {"1", "2", "tie"}
        models = {pair["model_1"]: "1", pair["model_2"]: "2"}
        if pair["human"] != "tie" and "good" in models:
            assert pair["human"] == models["good"], pair["id"]


def test_the_card_states_the_counts_and_the_label_rule(
    maker: ModuleType, items: list[dict[str, Any]], pairs: list[dict[str, Any]]
) -> None:
    card = (DATA / "README.md").read_text(encoding="utf-8")
    assert f"| `demo.jsonl` | score | {len(items)} |" in card
    assert f"| `demo-pairs.jsonl` | compare | {len(pairs)} |" in card
    assert "Apache-2.0" in card
    for (system, degree), labels in maker.LABELS.items():
        count = sum(
            item["system"] == system and tuple(item["human"].values()) == tuple(labels)
            for item in items
        )
        cells = " | ".join(f"{label:g}" for label in labels)
        row = rf"^\|[^|]*\| {degree}[^|]*\| [^|]+ \| {re.escape(cells)} \| {count} \|$"
        assert re.search(row, card, flags=re.MULTILINE), (system, degree)
    for model, rank in maker.RANK.items():
        assert re.search(rf"^\| {rank} \|.*`{model}`", card, flags=re.MULTILINE), model


def test_the_generator_reproduces_the_files(maker: ModuleType) -> None:
    for name, text in maker.render().items():
        assert (DATA / name).read_bytes() == text.encode("utf-8"), name


@pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")
def test_an_empty_answer_of_a_named_dataset_is_judged_or_refused(
    folder: Write, command: Command
) -> None:
    row = {"item_id": "a", "subset": "Natural", "instruction": "Why?", "label": 1}
    rows = [
        {**row, "output_1": "Rain.", "output_2": ""},
        {**row, "item_id": "b", "output_1": "x", "output_2": "y"},
    ]
    there = folder({"instances.jsonl": rows})
    run = ("run", "single", "--data", "llmbar", "--data-dir", there, "--out", there / "out")
    assert command(*run, "--empty", "refuse") == 2
    assert "line 1: field 'answer_2' is empty" in command.errors
    assert command(*run) == 0
    assert (
        "llmbar: 1 item has an empty candidate or answer, which is judged and shown as empty"
        in command.errors
    )
    assert [line["status"] for line in read_lines(there / "out")] == ["ok", "ok"]
    manifest = json.loads((there / "out" / "run.json").read_text())
    assert load_again(manifest["data"]).items[0].answer_2 == EMPTY_TEXT  # type: ignore[union-attr]
    assert command("show", there / "out", "a") == 0
    assert EMPTY_TEXT in command.printed
