"""Test files as tools and benchmarks write them, with their columns and our own texts."""

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.dataset import describe_data, load_again
from jurygraph.eval.datasets.inspect_logs import CONVERT
from jurygraph.eval.datasets.items import CompareItem
from jurygraph.eval.datasets.mqm import weight
from jurygraph.eval.datasets.reading import ReadingNotice

from .sample_data import refused, write_lines

pytestmark = pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")

Row = dict[str, Any]


def told(path: Path | list[Row], **options: Any) -> tuple[Any, str]:
    with pytest.warns(ReadingNotice) as notices:
        dataset = load_dataset(path, **options)
    return dataset, "\n".join(str(notice.message) for notice in notices)


def turn(role: str, content: Any) -> Row:
    return {"role": role, "content": content}


ASKED = [turn("user", "Why?"), turn("assistant", "Rain.")]
OTHER = [turn("user", "Why?"), turn("assistant", "Snow.")]
SHARED = [turn("user", "Why?"), turn("assistant", "Which?"), turn("user", "The first.")]
TEXTS = {"source": "s", "candidate": "c"}
LS_RATING = {"from_name": "fluency", "to_name": "c", "type": "rating", "value": {"rating": 4}}

LAYOUTS: dict[str, tuple[Row, str, Row]] = {
    "an arena's messages in parts": (
        {
            "id": "u1", "model_a": "x", "model_b": "y", "winner": "both_bad", "evaluation_session_id": "e",
            "conversation_a": [turn("user", [{"type": "text", "text": "Why?", "image": None}]), ASKED[1]],
            "conversation_b": [turn("user", [{"type": "text", "text": "Why?", "image": None}]), OTHER[1]],
        },
        "conversations of an arena",
        {"id": "u1", "question": "Turn 1: Why?", "answer_1": "Turn 1: Rain.", "human": "tie", "model_2": "y"},
    ),
    "an expert's vote": (
        {
            "question_id": 81, "model_a": "x", "model_b": "y", "winner": "tie (bothbad)",
            "judge": "expert_3", "turn": 1,
            "conversation_a": [turn("system", "Be brief."), *ASKED], "conversation_b": OTHER,
        },
        "conversations of an arena",
        {"annotators": ("expert_3",), "group": "81", "human": "tie", "question": "Turn 1: Be brief.\n\nTurn 2: Why?"},
    ),
    "an arena's turns in lists": (
        {
            "id": 30192, "model_a": "x", "model_b": "y", "prompt": '["Why?", "And then?"]',
            "response_a": '["Rain.", null]', "response_b": '["Snow.", "Sun."]',
            "winner_model_a": 0, "winner_model_b": 1, "winner_tie": 0,
        },
        "winners of an arena",
        {"question": "Turn 1: Why?\n\nTurn 2: And then?", "answer_2": "Turn 1: Snow.\n\nTurn 2: Sun.", "human": "2"},
    ),
    "a prompt of messages": (
        {"prompt": SHARED, "chosen": [turn("assistant", "Rain.")], "rejected": [turn("assistant", "Rain.")]},
        "a preference set",
        {"answer_1": "Rain.", "answer_2": "Rain."},
    ),
    "conversations of one question": (
        {"chosen": ASKED, "rejected": ASKED, "source": "somewhere"},
        "pairs of conversations",
        {"question": "Why?", "answer_1": "Rain.", "answer_2": "Rain."},
    ),
    "conversations as texts": (
        {
            "chosen": "\n\nHuman: Why?\n\nAssistant: Rain.\n\nIt fell: all day.",
            "rejected": "\n\nHuman: Why?\n\nAssistant: Rain.\n\nIt fell: all day.",
        },
        "pairs of conversations",
        {"question": "Why?", "answer_1": "Rain.\n\nIt fell: all day."},
    ),
    "a text on the left and one on the right": (
        {
            "id": 4, "data": {"question": "Why?", "answer_1": "Rain.", "answer_2": "Snow."}, "project": 1,
            "annotations": [
                {
                    "id": 9, "completed_by": {"id": 2, "email": "ann@example.org"}, "was_cancelled": False,
                    "result": [{"from_name": "pw", "type": "pairwise", "value": {"selected": "right"}}],
                }
            ],
        },
        "an export of Label Studio",
        {"human": ["2"], "annotators": ("ann@example.org",)},
    ),
    "a task that an annotator skipped": (
        {
            "id": 4, "data": TEXTS, "predictions": [],
            "annotations": [
                {"completed_by": 2, "was_cancelled": False, "result": [LS_RATING]},
                {"completed_by": 5, "was_cancelled": True, "result": [LS_RATING]},
            ],
        },
        "an export of Label Studio",
        {"human": {"fluency": [4.0]}, "annotators": ("2",)},
    ),
    "flattened records": (
        {
            "id": "r1", "status": "completed", **TEXTS, "fluency.responses": [4, 2],
            "fluency.responses.users": ["u", "v"], "fluency.responses.status": ["submitted", "submitted"],
            "fluency.suggestion": None,
        },
        "records of Argilla",
        {"id": "r1", "human": {"fluency": [4.0, 2.0]}, "annotators": ("u", "v")},
    ),
    "records of an earlier version": (
        {
            "id": "r1", **TEXTS,
            "fluency": [
                {"user_id": "u", "value": 4, "status": "submitted"},
                {"user_id": "v", "value": 2, "status": "discarded"},
            ],
            "fluency-suggestion": None,
        },
        "records of Argilla",
        {"human": {"fluency": [4.0]}, "annotators": ("u",)},
    ),
    "records": (
        {
            "id": "r1", "status": "completed", "fields": TEXTS, "metadata": {}, "suggestions": {}, "vectors": {},
            "responses": {"fluency": [{"value": 4, "user_id": "u"}]},
        },
        "an export of Argilla",
        {"human": {"fluency": [4.0]}, "annotators": ("u",)},
    ),
    "an experiment as a frame": (
        {
            "inputs.question": "Why?", "outputs.answer": "Rain.", "error": None, "reference.answer": "Rain!",
            "feedback.correctness": 1, "execution_time": 0.1, "example_id": "e1", "id": "r1",
        },
        "runs of LangSmith",
        {"id": "r1", "source": "Why?", "candidate": "Rain.", "reference": "Rain!"},
    ),
    "a run with messages": (
        {"inputs": {"messages": ASKED[:1]}, "outputs": {"answer": "Rain."}, "metadata": {}},
        "runs of LangSmith",
        {"source": "Why?", "candidate": "Rain."},
    ),
    "an output that is an object": (
        {
            "promptIdx": 0, "testIdx": 0, "vars": {"x": "y"}, "success": True, "score": 1,
            "prompt": {"raw": "Why?", "label": "p"}, "provider": {"id": "openai:x", "label": ""},
            "response": {"output": {"answer": "Rain.", "sure": True}, "tokenUsage": {}},
        },
        "results of promptfoo",
        {"source": "Why?", "candidate": '{\n  "answer": "Rain.",\n  "sure": true\n}', "system": "openai:x"},
    ),
    "a choice among options": (
        {
            "id": 3, "epoch": 2, "input": "Which?", "choices": ["Rain", "Snow"], "target": ["A"],
            "messages": ASKED, "scores": {}, "attachments": {"0a": "ANSWER: A"},
            "output": {"model": "m", "choices": [{"message": {"role": "assistant", "content": "attachment://0a"}}]},
        },
        "samples of a log of Inspect",
        {
            "id": "3-2", "group": "3", "source": "Which?\n\nA) Rain\nB) Snow", "candidate": "ANSWER: A",
            "reference": "A", "system": "m",
        },
    ),
    "an agent with tools": (
        {
            "id": "t", "epoch": 1, "input": "Why?", "target": "",
            "messages": [
                turn("user", "Why?"),
                {**turn("assistant", ""), "tool_calls": [{"id": "c", "function": "look", "arguments": {"at": "sky"}}]},
                {**turn("tool", "attachment://0a"), "tool_call_id": "c", "function": "look"},
                turn("assistant", [{"type": "text", "text": "Rain."}]),
            ],
            "attachments": {"0a": "wet"},
            "output": {"model": "m", "choices": [{"message": turn("assistant", "Rain.")}]},
        },
        "samples of a log of Inspect",
        {"candidate": 'AI calls look (call 1): {"at": "sky"}\nResult of look (call 1): wet\nAI: Rain.'},
    ),
    "a conversation of ragas": (
        {"user_input": [{"content": "Why?", "type": "human"}, {"content": "Rain.", "type": "ai"}], "rubrics": None},
        "conversations of ragas",
        {"source": "Why?", "candidate": "Rain."},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LAYOUTS)
def test_a_row_as_the_tool_writes_it_is_read(case: str, tmp_path: Path) -> None:
    row, name, fields = LAYOUTS[case]
    for data in (write_lines(tmp_path / "mine.jsonl", [row]), [row]):
        dataset, notice = told(data)
        assert f"read as {name}" in notice
        [item] = dataset
        assert {field: getattr(item, field) for field in fields} == fields


def test_a_table_as_csv_has_the_layout_of_its_frame(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    for case in ("an arena's turns in lists", "an experiment as a frame"):
        row, name, fields = LAYOUTS[case]
        path = tmp_path / "mine.csv"
        pd.DataFrame([row]).to_csv(path, index=False)
        dataset, notice = told(path)
        assert f"read as {name}" in notice
        [item] = dataset
        assert {field: getattr(item, field) for field in fields} == fields


# Pairs of whole conversations.


def pairs(dataset: Any) -> list[tuple[str, str, str]]:
    """The question, the better answer and the worse one of each item."""
    found = []
    for item in dataset:
        assert isinstance(item, CompareItem)
        answers = (
            (item.answer_1, item.answer_2) if item.human == "1" else (item.answer_2, item.answer_1)
        )
        found.append((item.question, *answers))
    return found


def test_the_common_beginning_of_two_conversations_is_the_question(tmp_path: Path) -> None:
    as_text = "\n\nHuman: Why?\n\nAssistant: Which?\n\nHuman: The first."
    rows = [
        {
            "chosen": f"{as_text}\n\nAssistant: Good {n}.",
            "rejected": f"{as_text}\n\nAssistant: Bad {n}.",
        }
        for n in range(40)
    ]
    lists = [
        {
            "chosen": [*SHARED, turn("assistant", f"Good {n}.")],
            "rejected": [*SHARED, turn("assistant", f"Bad {n}.")],
        }
        for n in range(40)
    ]
    dataset, notice = told(write_lines(tmp_path / "a.jsonl", rows))
    assert "their common beginning is the question" in notice
    of_lists, _ = told(write_lines(tmp_path / "b.jsonl", lists))
    assert dataset.items == of_lists.items
    question = "Human: Why?\nAI: Which?\nHuman: The first."
    assert {place for place, _, _ in pairs(dataset)} == {question}
    assert [(good, bad) for _, good, bad in pairs(dataset)] == [
        (f"Good {n}.", f"Bad {n}.") for n in range(40)
    ]
    # Binomial, n = 40, p = 1/2: a standard deviation is 3.2.
    assert 8 < sum(item.human == "1" for item in dataset) < 32


def test_conversations_that_part_early_keep_what_the_user_said_then(tmp_path: Path) -> None:
    good = [*ASKED, turn("user", "Sure?"), turn("assistant", "Yes.")]
    [(question, better, worse)] = pairs(told([{"chosen": good, "rejected": OTHER}])[0])
    assert (question, better, worse) == (
        "Why?",
        "Assistant: Rain.\n\nUser: Sure?\n\nAssistant: Yes.",
        "Snow.",
    )


BAD_PAIRS: dict[str, tuple[Row, str]] = {
    "no common beginning": (
        {"chosen": ASKED, "rejected": [turn("user", "How?"), ASKED[1]]},
        "no beginning in common",
    ),
    "the user speaks last": (
        {"chosen": ASKED, "rejected": ASKED[:1]},
        "'rejected' ends with the user",
    ),
    "the user speaks last in a set": (
        {"prompt": "Why?", "chosen": ASKED, "rejected": ASKED[:1]},
        "a conversation ends with the user, so it has no answer",
    ),
    "no list": (
        {"chosen": ASKED, "rejected": 3},
        "is not of the form that pairs of conversations has",
    ),
    "nothing rejected": (
        {"chosen": ASKED},
        "'rejected' is missing, which rows of pairs of conversations have",
    ),
}


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_a_wrong_row_of_a_layout_is_refused_with_its_line(case: str, tmp_path: Path) -> None:
    row, problem = BAD_PAIRS[case]
    prompt = {"prompt": "Why?"} if "prompt" in row else {}
    good = {**prompt, "chosen": ASKED, "rejected": OTHER}
    error = refused(
        "mine.jsonl, line 4: ", write_lines(tmp_path / "mine.jsonl", [good, good, good, row])
    )
    assert problem in str(error)
    with pytest.raises(type(error), match="row 4: "):
        load_dataset([good, good, good, row])


def test_one_hot_winners_of_none_or_two_are_refused(tmp_path: Path) -> None:
    row, _, _ = LAYOUTS["an arena's turns in lists"]
    for a, b, found in ((0, 0, 0), (1, 1, 2)):
        path = write_lines(
            tmp_path / "a.jsonl", [{**row, "winner_model_a": a, "winner_model_b": b}]
        )
        refused(
            f"line 1: {found} of the columns winner_model_a, winner_model_b, winner_tie are 1", path
        )


def test_a_call_of_promptfoo_that_failed_has_an_empty_answer(tmp_path: Path) -> None:
    row, _, _ = LAYOUTS["an output that is an object"]
    failed = {**row, "response": None, "error": "timed out"}
    path = write_lines(tmp_path / "a.jsonl", [row, failed])
    refused("line 2: field 'candidate' is empty", path)
    assert len(load_dataset(path, empty="judge")) == 2


def test_messages_beside_the_texts_are_named_as_unused() -> None:
    row = {
        "prompt": "Why?",
        "prompt_id": "p",
        "chosen": ASKED,
        "rejected": OTHER,
        "messages": ASKED,
        "score_chosen": 8.5,
    }
    _, notice = told([row])
    assert "Columns `prompt_id`, `messages`, `score_chosen` were not used." in notice


# WMT's MQM ratings.

MQM_HEAD = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"
MQM = f"""{MQM_HEAD}
x\td\t1\t1\tr1\tIt rained.\tEs <v>regnet</v>.\tAccuracy/Mistranslation\tMajor
x\td\t1\t1\tr1\tIt rained.\tEs regnet<v>.</v>\tFluency/Punctuation\tMinor
x\td\t1\t1\tr2\tIt rained.\tEs regnet.\tNo-error\tNo-error
y\td\t1\t1\tr1\tIt rained.\tRegen <v>Regen</v>\tNon-translation!\tMajor
y\td\t2\t2\tr2\tIt <v>raind</v>.\tEs regnete.\tSource error\tMajor
x\td\t1\t1\tr3\tIt rained.\tEs regnet.\tFound\tHOTW-test
"""


def test_marked_errors_become_scores_of_raters(tmp_path: Path) -> None:
    path = tmp_path / "mqm.tsv"
    path.write_text(MQM)
    dataset, notice = told(path)
    assert "read as errors marked in translations (MQM)" in notice
    assert "major 5, minor 1, minor punctuation 0.1, no translation 25" in notice
    assert "rows of severity HOTW-test, which test the rater, are left out" in notice
    assert [(item.id, item.group, item.human, item.annotators) for item in dataset] == [
        ("d-1-x", "d-1", {"mqm": [-5.1, 0.0]}, ("r1", "r2")),
        ("d-1-y", "d-1", {"mqm": [-25.0]}, ("r1",)),
        ("d-2-y", "d-2", {"mqm": [0.0]}, ("r2",)),
    ]
    assert (dataset.items[0].source, dataset.items[0].candidate) == ("It rained.", "Es regnet.")
    assert (dataset.items[1].system, dataset.items[2].source) == ("y", "It raind.")
    assert load_again(describe_data(dataset)).items == dataset.items


def test_equal_translations_of_different_segments_stay_items_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "mqm.tsv"
    rows = [
        f"x\td\t{n}\t{n}\tr1\tYes.\tJa.\t{error}"
        for n, error in enumerate(["Style\tMinor", "No-error\tNo-error"])
    ]
    path.write_text("\n".join([MQM_HEAD, *rows]) + "\n")
    dataset, _ = told(path)
    assert [item.human for item in dataset] == [{"mqm": [-1.0]}, {"mqm": [0.0]}]


@pytest.mark.parametrize(
    ("category", "severity", "expected"),
    [
        ("Fluency/Grammar", "major", 5.0),
        ("Accuracy/Creative Reinterpretation", "Minor", 0.0),
        ("Fluency/Punctuation", "Major", 5.0),
        ("Style/Awkward", "Neutral", 0.0),
        ("Other", "Critical", 5.0),
        ("Other", "Grave", None),
    ],
)
def test_the_weight_of_an_error(category: str, severity: str, expected: float | None) -> None:
    assert weight(category, severity) == expected


def test_an_unknown_severity_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mqm.tsv"
    path.write_text(MQM + "x\td\t1\t1\tr1\ts\tt\tOther\tGrave\n")
    refused("mqm.tsv, line 8: severity 'Grave' is not one of MQM's", path)


def test_a_rating_without_a_number_of_its_segment_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mqm.tsv"
    path.write_text(MQM + "x\td\t\t\tr1\ts\tt\tStyle\tMinor\n")
    refused("mqm.tsv, line 8: no number of a segment; a rating needs one of seg_id", path)


def test_quotes_of_a_file_with_tabs_are_text_where_they_are_not_closed(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    # A reader of CSV would take the first quote and the last one for one cell of two rows.
    path.write_text(
        'id\tsource\tcandidate\tnote\na\ts\t"Rain\tx\nb\ts\tRain"\ty\nc\ts\t"Rain," he said\tz\n'
    )
    dataset, notice = told(path)
    assert "read with quotes as parts of texts" in notice
    assert [item.candidate for item in dataset] == ['"Rain', 'Rain"', '"Rain," he said']
    path.write_text(
        'id\tsource\tcandidate\tnote\na\ts\t"Rain\tor\nsnow"\tx\nb\ts\t"It ""rained"""\ty\n'
    )
    dataset, notice = told(path)
    assert "with quotes" not in notice
    assert [item.candidate for item in dataset] == ["Rain\tor\nsnow", 'It "rained"']


# Logs of Inspect.


def sample(number: int, epoch: int = 1, **more: Any) -> Row:
    answer = {"message": turn("assistant", f"Answer {number}.")}
    return {
        "id": number, "epoch": epoch, "input": f"Question {number}?", "target": "x", "messages": [],
        "output": {"model": "m", "choices": [answer]}, "scores": {}, "events": [], "attachments": {}, **more,
    }  # fmt: skip


def log(path: Path, samples: Sequence[Row], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("_journal/start.json", "{}")
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("summaries.json", "[]")
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success"}))
    return path


def test_a_log_is_read_by_epoch_and_id(tmp_path: Path) -> None:
    samples = [sample(10), sample(2), sample(2, epoch=2), sample(1)]
    path = log(tmp_path / "log.eval", samples)
    dataset, notice = told(path)
    assert [item.id for item in dataset] == ["1-1", "2-1", "10-1", "2-2"]
    assert "read as samples of a log of Inspect (each epoch is an item)" in notice
    assert "Columns `scores`, `events` were not used." in notice
    assert load_again(describe_data(dataset)).items == dataset.items
    as_json = tmp_path / "log.json"
    as_json.write_text(
        json.dumps(
            {"version": 2, "samples": sorted(samples, key=lambda of: (of["epoch"], of["id"]))}
        )
    )
    assert told(as_json)[0].items == dataset.items


def zstd_log(path: Path, content: bytes, compress: Callable[[bytes], bytes]) -> Path:
    """Write a log like newer versions of Inspect, compressed with zstd."""
    name = b"samples/1_epoch_1.json"
    packed = compress(content)
    sizes = struct.pack("<III", zlib.crc32(content), len(packed), len(content))
    about = struct.pack("<HHHHH", 63, 0, 93, 0, 33) + sizes + struct.pack("<HH", len(name), 0)
    local = b"PK\x03\x04" + about + name + packed
    entry = (
        b"PK\x01\x02" + struct.pack("<H", 63) + about + struct.pack("<HHHII", 0, 0, 0, 0, 0) + name
    )
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local), 0)
    path.write_bytes(local + entry + end)
    return path


def test_a_log_that_newer_versions_write_is_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")

    def frames(content: bytes) -> bytes:
        """Large samples have several frames."""
        half = len(content) // 2
        return b"".join(zstandard.compress(part) for part in (content[:half], content[half:]))

    content = json.dumps(sample(1)).encode()
    for compress in (zstandard.compress, frames):
        [item] = told(zstd_log(tmp_path / "log.eval", content, compress))[0]
        assert (item.source, item.candidate) == ("Question 1?", "Answer 1.")


def rewritten(path: Path, name: str, content: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, content)
    return path


BAD_LOGS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no archive": (lambda path: write_lines(path, [sample(1)]), "not a log of Inspect: File is not a zip file"),
    "no samples": (lambda path: log(path, []), "has no samples"),
    "a sample in parts": (
        lambda path: rewritten(path, "samples/a/b_epoch_1/sample.json", "{}"),
        "the sample a/b is written in several parts",
    ),
    "no JSON": (lambda path: rewritten(path, "samples/1_epoch_1.json", "{"), "samples/1_epoch_1.json is not JSON"),
    "no object": (lambda path: rewritten(path, "samples/1_epoch_1.json", "[]"), "has no sample, but list"),
    "cut off": (lambda path: cut(log(path, [sample(1)])), "not a log of Inspect"),
    "a bomb": (
        lambda path: log(path, [sample(1, padding="x" * (80 << 20))]),
        "expands to more than the limit of 67,108,864 bytes (samples/1_epoch_1.json)",
    ),
}  # fmt: skip


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-30])
    return path


@pytest.mark.parametrize("case", BAD_LOGS)
def test_what_is_no_readable_log_is_refused(case: str, tmp_path: Path) -> None:
    make, problem = BAD_LOGS[case]
    error = refused("log.eval", make(tmp_path / "log.eval"))
    assert problem in str(error)
    if case in ("a bomb", "a sample in parts"):
        assert CONVERT in str(error)


def test_a_bomb_in_the_newer_compression_is_refused(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = zstd_log(tmp_path / "log.eval", b" " * (80 << 20), zstandard.compress)
    refused("expands to more than the limit of 67,108,864 bytes", path)


def test_a_compression_that_nobody_reads_is_refused_with_the_command_that_converts(
    tmp_path: Path,
) -> None:
    path = zstd_log(tmp_path / "log.eval", b"{}", lambda content: content)
    path.write_bytes(
        path.read_bytes().replace(
            struct.pack("<HHHHH", 63, 0, 93, 0, 33), struct.pack("<HHHHH", 63, 0, 97, 0, 33)
        )
    )
    assert CONVERT in str(refused("cannot be read: That compression method is not supported", path))


# Scores of two answers as the label of a pair.


def test_the_answer_with_the_higher_score_wins(tmp_path: Path) -> None:
    head = "Question,Response_A,Response_B,Model_A_Score,Model_B_Score\n"
    path = tmp_path / "mine.csv"
    path.write_text(head + 'q1,x,y,7,8\nq2,x,y,8,8.0\nq3,x,y,9,"8,5"\nq4,x,y,,3\n')
    dataset, notice = told(path)
    assert (
        "human = 'Model_A_Score>Model_B_Score', the answer with the higher score wins, equal scores are a tie"
        in notice
    )
    assert "not used" not in notice
    assert [item.human for item in dataset] == ["2", "tie", "1", None]
    assert load_again(describe_data(dataset)).items == dataset.items
    path.write_text(head + "q1,x,y,7,8\nq2,x,y,7,good\n")
    refused(
        "mine.csv, line 3: column 'Model_B_Score': 'good' is not a number", path, columns=HIGHER
    )
    with pytest.raises(Exception, match="names 3 scores, and must name two"):
        load_dataset(path, columns={"human": "a>b>c"})


HIGHER: Mapping[str, str] = {"human": "Model_A_Score>Model_B_Score"}
