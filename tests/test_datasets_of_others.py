"""Test files as other people make them: annotators, unused columns, kinds of items."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import agreement, load_dataset
from jurygraph.eval.datasets.dataset import describe_data, load_again
from jurygraph.eval.datasets.items import EMPTY_TEXT, CompareItem, Item, ScoreItem
from jurygraph.eval.datasets.reading import ReadingNotice
from jurygraph.state import UsageError

from .processes import JURYGRAPH, Command, ran
from .sample_data import read_lines, refused, write_lines

pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")

RATERS = ("ann", "bob", "cem", "dee")
# Twelve texts by four raters who disagree.
SCORES = [
    (3, 4, 2, 5), (1, 2, 1, 3), (5, 5, 4, 5), (2, 4, 3, 3), (4, 2, 5, 3), (1, 1, 2, 2),
    (5, 3, 4, 4), (2, 2, 1, 4), (3, 5, 3, 2), (4, 4, 5, 5), (1, 3, 2, 1), (3, 3, 3, 4),
]  # fmt: skip
TEXTS = [
    {"source": f"Source {n}.", "candidate": f"Candidate {n} of {'many ' * n}words."}
    for n in range(12)
]


def by_item() -> list[dict[str, Any]]:
    return [
        {"id": f"{n}", **text, "human": {"coherence": list(scores)}, "annotators": list(RATERS)}
        for n, (text, scores) in enumerate(zip(TEXTS, SCORES, strict=True), start=1)
    ]


def by_rater(named: bool) -> list[dict[str, Any]]:
    return [
        {**text, **({"rater": rater} if named else {}), "human.coherence": score}
        for text, scores in zip(TEXTS, SCORES, strict=True)
        for rater, score in zip(RATERS, scores, strict=True)
    ]


def by_column() -> list[dict[str, Any]]:
    return [
        {
            "id": f"{n}",
            **text,
            **{f"coherence_{r}{i}": s for i, (r, s) in enumerate(zip("aaaa", scores, strict=True))},
        }
        for n, (text, scores) in enumerate(zip(TEXTS, SCORES, strict=True), start=1)
    ]


def csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    lines = [",".join(rows[0]), *(",".join(str(cell) for cell in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def told(action: Callable[[], Any]) -> tuple[Any, str]:
    with pytest.warns(ReadingNotice) as notices:
        result = action()
    return result, "\n".join(str(notice.message) for notice in notices)


def labels(items: Any) -> list[Any]:
    return [item.about("coherence")["annotations"] for item in items]


@pytest.mark.parametrize(
    ("rows", "names", "said"),
    [
        (
            by_rater(named=True),
            RATERS,
            "48 rows are 12 items with 4 annotators (ann, bob, cem, dee)",
        ),
        (by_rater(named=False), (), "48 rows are 12 items with up to 4 annotators each"),
        (
            by_column(),
            ("a0", "a1", "a2", "a3"),
            "'coherence_a0+coherence_a1+coherence_a2+coherence_a3'",
        ),
    ],
    ids=["a row for each rater", "equal texts", "a column for each rater"],
)
def test_several_annotators_are_one_item(
    rows: list[dict[str, Any]], names: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    for data in (
        csv(tmp_path / "mine.csv", rows),
        write_lines(tmp_path / "mine.jsonl", rows),
        rows,
    ):
        dataset, notice = told(partial(load_dataset, data))
        assert said in notice
        assert labels(dataset) == SCORES
        assert {item.about("coherence")["annotators"] for item in dataset} == {names}
        assert [item.about("fluency")["annotators"] for item in dataset] == [()] * 12


def test_a_run_on_rows_of_raters_has_the_figures_of_annotators_of_one_item(
    command: Command, tmp_path: Path
) -> None:
    csv(tmp_path / "raters.csv", by_rater(named=True))
    # A merged item has the number of its first row, and resamples depend on the names of items.
    items = [{**item, "id": f"{n * len(RATERS) + 1}"} for n, item in enumerate(by_item())]
    write_lines(tmp_path / "items.jsonl", items)
    for data, out in (("raters.csv", "a"), ("items.jsonl", "b")):
        assert command("run", "single", "--data", data, "--out", out, "--aspect", "coherence") == 0
    first, second = (read_lines(tmp_path / out) for out in "ab")
    assert len(first) == 12
    assert [row["annotators"] for row in first] == [list(RATERS)] * 12
    for name in ("score", "human", "annotations", "annotators", "calls"):
        assert sorted(str(row[name]) for row in first) == sorted(str(row[name]) for row in second)
    assert command("agree", "a", "--json") == 0
    of_rows = json.loads(command.printed)
    assert command("agree", "b", "--json") == 0
    assert of_rows == json.loads(command.printed)
    assert of_rows["coherence"]["units"] == 12
    assert command("report", "a", "--table", "annotators") == 0
    assert all(name in command.printed for name in RATERS)


@pytest.mark.parametrize("key", ["item", "texts"])
@pytest.mark.parametrize("named", [True, False])
def test_agree_counts_items_and_not_rows_of_raters(
    key: str, named: bool, command: Command, tmp_path: Path
) -> None:
    judged = [n % 5 + (n > 6) for n in range(12)]
    about = [{"item": f"i{n}"} if key == "item" else TEXTS[n] for n in range(12)]
    rows = [
        {**about[n], "score": judged[n], "human": score, **({"annotator": rater} if named else {})}
        for n, scores in enumerate(SCORES)
        for rater, score in zip(RATERS, scores, strict=True)
    ]
    lists = [
        {**about[n], "score": judged[n], "human": list(scores)} for n, scores in enumerate(SCORES)
    ]
    csv(tmp_path / "rows.csv", rows)
    write_lines(tmp_path / "lists.jsonl", lists)
    assert command("agree", "rows.csv", "--json") == 0
    assert "48 rows are 12 items with several annotators each" in command.errors
    of_rows = json.loads(command.printed)
    assert command("agree", "lists.jsonl", "--json") == 0
    assert of_rows == json.loads(command.printed)
    assert (of_rows["score"]["n"], of_rows["score"]["units"]) == (12, 12)


def test_votes_of_several_rows_are_a_majority_in_agree() -> None:
    votes = [("a", "1"), ("a", "1"), ("a", "2"), ("b", "2"), ("b", "2"), ("b", "tie")]
    rows = [{"item": item, "winner": "1", "human": vote} for item, vote in votes]
    with pytest.warns(ReadingNotice, match="6 rows are 2 items"):
        result: Any = agreement(rows)["preference"]
    assert (result.n, result.accuracy.value) == (2, 0.5)
    with pytest.warns(ReadingNotice):
        each: Any = agreement(rows, votes="each")["preference"]
    assert (each.n, each.accuracy.value) == (6, 2 / 6)


def test_two_labels_of_one_annotator_are_refused(tmp_path: Path) -> None:
    rows = [{**TEXTS[0], "rater": "ann", "human.fluency": score} for score in (4, 2)]
    refused(
        r"line 1 and line 2: annotator 'ann' gave equal texts two labels for fluency, 4\.0 and 2\.0",
        write_lines(tmp_path / "a.jsonl", rows),
    )
    with pytest.raises(
        UsageError, match="row 1 and row 2 have two labels of one annotator for one item"
    ):
        agreement([{"item": "a", "score": 3, "human": human, "rater": "x"} for human in (1, 2)])


def test_rows_with_equal_texts_and_labels_are_judged_once(tmp_path: Path) -> None:
    rows = [{"id": f"i{n}", **TEXTS[n % 3], "human.fluency": n % 3 + 1} for n in range(6)]
    dataset, notice = told(lambda: load_dataset(write_lines(tmp_path / "a.jsonl", rows)))
    assert notice.endswith(
        "3 rows repeat the texts and labels of earlier rows (the first is of line 1): each is judged once"
    )
    assert [item.label("fluency") for item in dataset] == [1, 2, 3]
    # Rows without labels count nowhere, and each has an id that its user asks for.
    unlabelled = [{"id": f"i{n}", **TEXTS[0]} for n in range(3)]
    assert len(load_dataset(unlabelled)) == 3


def test_two_columns_for_one_aspect_are_refused_with_a_remedy_that_works(tmp_path: Path) -> None:
    rows = [
        {"text": f"t{n}", "summary": "s", "coherence_score": 4, "human_coherence": 3}
        for n in range(3)
    ]
    path = csv(tmp_path / "a.csv", rows)
    error = refused(
        "'coherence_score' and 'human_coherence' may both hold the labels of human.coherence", path
    )
    remedy = "human.coherence=coherence_score+human_coherence"
    assert f"if they are two annotators, add --columns {remedy}" in str(error)
    field, _, columns = remedy.partition("=")
    dataset = load_dataset(path, columns={field: columns})
    assert labels(dataset) == [(4, 3)] * 3
    assert dataset.items[0].annotators == ("coherence_score", "human_coherence")


def test_winners_in_several_columns_are_votes(tmp_path: Path) -> None:
    pair = {"question": "Why?", "answer_1": "Rain.", "answer_2": "Snow."}
    rows = [{**pair, "annotator1": "1", "annotator2": "model_b", "annotator3": "tie"}]
    dataset, notice = told(lambda: load_dataset(csv(tmp_path / "a.csv", rows)))
    assert "human = 'annotator1+annotator2+annotator3'" in notice
    [item] = dataset
    assert item.about(None)["annotations"] == ("1", "2", "tie")


# Unused columns.

PAIR = {"question": "Why?", "answer_1": "Rain.", "answer_2": "Snow."}
OFFERS: dict[str, tuple[dict[str, Any], str, str, Any]] = {
    "a winner": (
        {**PAIR, "winner": "model_a"},
        "Column `winner` was not used. To use it as the human label, add `--columns human=winner`.",
        "human=winner",
        "1",
    ),
    "a score": (
        {**TEXTS[0], "fluency": 4, "topic": "rain"},
        "Columns `fluency`, `topic` were not used. To use `fluency` as the human label, "
        "add `--columns human.fluency=fluency`.",
        "human.fluency=fluency",
        4,
    ),
    "a score of another aspect": (
        {**TEXTS[0], "Rating": 4},
        "If `Rating` holds human scores of coherence, add `--columns human.coherence=Rating`",
        "human.coherence=Rating",
        4,
    ),
}


@pytest.mark.parametrize("case", OFFERS)
def test_an_unused_column_is_named_with_the_option_that_uses_it(
    case: str, command: Command, tmp_path: Path
) -> None:
    row, words, option, label = OFFERS[case]
    csv(tmp_path / "mine.csv", [{"id": 1, **row}])
    kind = ["--aspect", "coherence"] if "source" in row else []
    run = ("run", "single", "--data", "mine.csv", "--model", "offline")
    assert command(*run, *kind, "--out", "a") == 0
    assert words in " ".join(command.errors.split())
    assert command("try", "mine.csv", "--model", "offline", *kind) in (0, 2)
    assert words in " ".join(command.errors.split())
    assert command(*run, "--columns", option, "--out", "b") == 0
    assert [line["human"] for line in read_lines(tmp_path / "b")] == [label]


def test_a_frame_s_unused_column_is_used_by_the_call_that_is_named() -> None:
    _, notice = told(lambda: load_dataset([{"id": 1, **PAIR, "winner": "B"}]))
    assert "call `load_dataset(..., columns={'human': 'winner'})`." in notice
    [item] = load_dataset([{"id": 1, **PAIR, "winner": "B"}], columns={"human": "winner"})
    assert item.label(None) == "2"


def test_winners_counted_from_0_are_offered_with_their_meaning(tmp_path: Path) -> None:
    rows = [{"id": n, **PAIR, "question": f"Why {n}?", "label": n % 2} for n in range(4)]
    path = csv(tmp_path / "a.csv", rows)
    _, notice = told(lambda: load_dataset(path))
    assert "add `--columns human=label --labels 0=1,1=2,2=tie`." in notice
    dataset = load_dataset(
        path, columns={"human": "label"}, label_codes={"0": "1", "1": "2", "2": "tie"}
    )
    assert [item.label(None) for item in dataset] == ["1", "2", "1", "2"]


def test_ten_thousand_columns_are_not_all_named(tmp_path: Path) -> None:
    row = {"id": 1, **TEXTS[0], **{f"c{n}": "x" for n in range(10_000)}}
    path = csv(tmp_path / "wide.csv", [row])
    _, notice = told(lambda: load_dataset(path))
    assert "`c7` and 9,992 more were not used" in notice
    assert len(notice) < 500
    error = refused(
        "no row has a value in the column 'c99999'; columns are ", path, columns={"group": "c99999"}
    )
    assert "did you mean c9999?" in str(error)
    assert len(str(error)) < 600


# The kind of an item

Kind = type[Item]
KINDS: dict[str, tuple[dict[str, Any], dict[str, str], Any, dict[str, Any]]] = {
    "a question beside the texts": (
        {**TEXTS[0], "question": "Why?"},
        {},
        ScoreItem,
        {"source": "Source 0."},
    ),
    "a question beside mapped texts": (
        {"question": "Why?", "contexts": "It rained.", "answer": "Rain."},
        {"source": "contexts", "candidate": "answer"},
        ScoreItem,
        {"source": "It rained.", "candidate": "Rain."},
    ),
    "an answer with its context": (
        {"question": "Why?", "context": "It rained.", "answer": "Rain."},
        {},
        ScoreItem,
        {"source": "Why?", "context": "It rained.", "candidate": "Rain."},
    ),
    "a context alone": (
        {"context": "It rained.", "answer": "Rain."},
        {},
        ScoreItem,
        {"source": "It rained.", "context": None, "candidate": "Rain."},
    ),
    "the names of ragas": (
        {
            "user_input": "Why?",
            "retrieved_contexts": ["a", "b"],
            "response": "Rain.",
            "reference": "Rain!",
        },
        {},
        ScoreItem,
        {"source": "Why?", "candidate": "Rain.", "context": "Passage 1: a\n\nPassage 2: b"},
    ),
    "a candidate mapped beside two answers": (
        {**PAIR, "summary": "Rain."},
        {"candidate": "summary", "source": "question"},
        ScoreItem,
        {"source": "Why?", "candidate": "Rain."},
    ),
    "annotations of a labelling tool": (
        {**TEXTS[0], "annotations": [{"id": 3, "result": []}]},
        {},
        ScoreItem,
        {"annotations": {}},
    ),
    "two answers": (PAIR, {}, CompareItem, {"question": "Why?"}),
}


@pytest.mark.parametrize("case", KINDS)
def test_the_kind_follows_from_the_mapping_or_the_needed_columns(case: str, tmp_path: Path) -> None:
    row, columns, kind, fields = KINDS[case]
    path = write_lines(tmp_path / "mine.jsonl", [{"id": "1", **row}])
    [item] = load_dataset(path, columns=columns)
    assert type(item) is kind
    assert {name: getattr(item, name) for name in fields} == fields


def test_a_mapping_to_both_kinds_and_a_row_of_both_kinds_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "mine.jsonl", [{"id": "1", **TEXTS[0], **PAIR}])
    refused("line 1: the row has a candidate to be rated and two answers to be compared", path)
    [item] = load_dataset(path, columns={"candidate": "candidate"})
    assert isinstance(item, ScoreItem)
    [pair] = load_dataset(path, columns={"answer_1": "answer_1"})
    assert isinstance(pair, CompareItem)
    with pytest.raises(
        UsageError, match="'candidate' is a field of a text to be rated, 'question' one of two"
    ):
        load_dataset(path, columns={"candidate": "candidate", "question": "question"})


def test_paths_reach_into_lists(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Rain."}]
    path = write_lines(tmp_path / "mine.jsonl", [{"id": "1", "conversation_a": talk}])
    columns = {"source": "conversation_a.0.content", "candidate": "conversation_a.-1.content"}
    [item] = load_dataset(path, columns=columns)
    assert isinstance(item, ScoreItem)
    assert (item.source, item.candidate) == ("Why?", "Rain.")


# JSON as a whole.

WHOLE: dict[str, tuple[Any, int | None]] = {
    "an object around a list": ({"version": 2, "data": TEXTS}, None),
    "a list two levels down": ({"version": 2, "results": {"stats": {}, "results": TEXTS}}, 2),
    "a pretty-printed list": (TEXTS, 2),
    "a row with a list of objects": ({**TEXTS[0], "spans": [{"start": 1}]}, None),
    "a pretty-printed row": (TEXTS[0], 2),
}


@pytest.mark.parametrize("case", WHOLE)
def test_json_is_read_as_a_whole(case: str, tmp_path: Path) -> None:
    value, indent = WHOLE[case]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(value, indent=indent) + "\n")
    dataset = load_dataset(path)
    texts = [item.candidate for item in dataset if isinstance(item, ScoreItem)]
    assert texts == [text["candidate"] for text in TEXTS[: 1 if "row" in case else 12]]


def test_pretty_printed_rows_one_after_the_other_and_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    for indent in (None, 2):
        path.write_text("\n".join(json.dumps(text, indent=indent) for text in TEXTS))
        assert len(load_dataset(path)) == 12
    path.write_text(json.dumps({"data": TEXTS, "items": TEXTS}))
    refused(
        "an object with the lists 'data', 'items'; save the list with the rows as a file of its own",
        path,
    )


def test_a_filled_in_spreadsheet_of_questions_is_read(command: Command, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    assert (
        command(
            "run", "single", "--data", "demo", "--limit", "2", "--aspect", "fluency", "--out", "out"
        )
        == 0
    )
    assert command("review", "out", "--queue", "q.csv", "--when", "always") == 0
    frame = pd.read_csv(tmp_path / "q.csv")
    frame["answer"] = 3
    frame["name"] = "ann"
    frame.to_excel(tmp_path / "q.xlsx", index=False)
    assert command("review", "out", "--answers", "q.xlsx") == 0
    assert "2 answers read" in command.printed


# Empty answers.


@pytest.mark.parametrize("blank", ["", "  ", "\u200b"])
def test_an_empty_answer_is_refused_or_judged_and_never_fails_for_ever(
    blank: str, command: Command, tmp_path: Path
) -> None:
    write_lines(
        tmp_path / "a.jsonl",
        [{"id": "a", **TEXTS[0]}, {"id": "b", "source": "s", "candidate": blank}],
    )
    run = ("run", "single", "--data", "a.jsonl", "--aspect", "fluency", "--out", "out")
    assert command(*run) == 2
    assert "a.jsonl, line 2: field 'candidate' is empty" in command.errors
    assert "--empty judge" in command.errors
    assert command(*run, "--empty", "judge") == 0
    assert [row["status"] for row in read_lines(tmp_path / "out")] == ["ok", "ok"]
    manifest = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "|empty:judge|" in manifest["signatures"]["single"]
    assert load_again(manifest["data"]).items[1].candidate == EMPTY_TEXT  # type: ignore[union-attr]
    assert command("show", "out", "b") == 0
    assert EMPTY_TEXT in command.printed
    with pytest.raises(UsageError, match="row 1: field 'answer_2' is empty"):
        load_dataset([{"id": 1, **PAIR, "answer_2": blank}])
    [pair] = load_dataset([{"id": 1, **PAIR, "answer_2": blank}], empty="judge")
    assert isinstance(pair, CompareItem) and pair.answer_2 == EMPTY_TEXT


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_output_that_is_not_utf_8_has_no_traceback(
    encoding: str, command: Command, tmp_path: Path
) -> None:
    write_lines(
        tmp_path / "a.jsonl",
        [{"id": "a", "source": "\u65e5\u672c \u2192", "candidate": "\u0414\u043e"}],
    )
    assert command("run", "single", "--data", "a.jsonl", "--aspect", "fluency", "--out", "out") == 0
    done = ran(
        *JURYGRAPH,
        "show",
        "out",
        "a",
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        encoding=encoding,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert r"\u65e5" in done.stdout


# Layouts that people publish.

ASKED = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Rain."}]
OTHER = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Snow."}]
LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an arena's conversations": (
        {"model_a": "x", "model_b": "y", "winner": "model_b", "conversation_a": ASKED, "conversation_b": OTHER},
        {"question": "Turn 1: Why?", "answer_1": "Turn 1: Rain.", "answer_2": "Turn 1: Snow.", "human": "2"},
    ),
    "an arena's one-hot winners": (
        {
            "prompt": "Why?", "response_a": "Rain.", "response_b": "Snow.",
            "winner_model_a": 0, "winner_model_b": 0, "winner_tie": 1,
        },
        {"question": "Why?", "answer_1": "Rain.", "human": "tie"},
    ),
    "a run of LangSmith": (
        {"inputs": {"question": "Why?"}, "outputs": {"answer": "Rain."}, "reference_outputs": {"answer": "Rain!"}},
        {"source": "Why?", "candidate": "Rain.", "reference": "Rain!"},
    ),
    "promptfoo": (
        {"prompt": {"raw": "Why?", "label": "p"}, "response": {"output": "Rain."}, "provider": {"id": "openai:x"}},
        {"source": "Why?", "candidate": "Rain.", "system": "openai:x"},
    ),
    "Inspect": (
        {
            "id": 1, "epoch": 1, "input": "Why?", "target": "Rain!",
            "output": {"choices": [{"message": {"content": "Rain."}}]},
        },
        {"source": "Why?", "candidate": "Rain.", "reference": "Rain!"},
    ),
    "Label Studio": (
        {
            "id": 7, "data": {"source": "s", "candidate": "c"},
            "annotations": [
                {"completed_by": 3, "result": [{"from_name": "fluency", "type": "rating", "value": {"rating": 4}}]},
                {"completed_by": 9, "result": [{"from_name": "fluency", "type": "rating", "value": {"rating": 2}}]},
            ],
        },
        {"id": "7", "source": "s", "human": {"fluency": [4, 2]}, "annotators": ("3", "9")},
    ),
    "Argilla": (
        {
            "id": "a", "fields": {"source": "s", "candidate": "c"},
            "responses": {"fluency": [{"value": 4, "user_id": "u"}, {"value": 2, "user_id": "v"}]},
        },
        {"id": "a", "source": "s", "human": {"fluency": [4, 2]}, "annotators": ("u", "v")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYOUTS)
def test_a_published_layout_is_read_and_named(case: str, tmp_path: Path) -> None:
    row, fields = LAYOUTS[case]
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"results": [row]}))
    for data in (path, [row]):
        dataset, notice = told(partial(load_dataset, data))
        assert "read as" in notice
        [item] = dataset
        assert {name: getattr(item, name) for name in fields} == fields
    again = load_again(describe_data(load_dataset(path)))
    assert again.items == load_dataset(path).items


def test_a_preference_set_is_balanced_by_a_hash(tmp_path: Path) -> None:
    rows = [
        {
            "prompt": f"Why {n}?",
            "chosen": [*ASKED[:1], {"role": "assistant", "content": f"Good {n}."}],
            "rejected": f"Bad {n}.",
        }
        for n in range(200)
    ]
    dataset, notice = told(lambda: load_dataset(write_lines(tmp_path / "a.jsonl", rows)))
    assert "the chosen answer is answer 1 or 2 by a hash of the texts" in notice
    first = 0
    for item in dataset:
        assert isinstance(item, CompareItem)
        good = item.answer_1 if item.human == "1" else item.answer_2
        assert good.startswith("Good")
        first += item.human == "1"
    # Binomial, n = 200, p = 1/2: a standard deviation is 7.
    assert 65 < first < 135
