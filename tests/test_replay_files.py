"""Files of recorded replies: the form of a line, published forms, and what authors of recordings published."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate, load_dataset
from jurygraph.eval.plan.plan import plan, read_recording
from jurygraph.eval.replay.recording import NOT_RECORDED
from jurygraph.nodes.replies import ReplyError, read_score
from jurygraph.state.errors import DataError, UsageError

from .sample_data import write_lines

KINDS = ("geval", "geval_no_auto_cot", "llm_eval_no_cot", "rate_explain", "analyze_rate")


def written(folder: Path, *rows: dict[str, Any], name: str = "mine.jsonl") -> Path:
    return write_lines(folder / name, rows)


def test_samples_that_are_missing_or_cannot_be_read_are_left_out_and_counted(tmp_path: Path) -> None:
    samples = {
        "a": ["4", "no idea", "9", "5", "Score: 3"],
        "b": ["3", "4", None, None, None],
        "c": ["none", "?", "", "?", "?"],
        "d": [None] * 5,
    }
    about = {"aspect": "fluency", "model": "gpt-4", "human": 4}
    path = written(tmp_path, *({"item": item, "replies": said, **about} for item, said in samples.items()))
    some, other, unread, none = evaluate("geval", replies=path).results
    assert (some.score, some.human, other.score) == (4.0, 4.0, 3.5)
    assert (some.details["samples"], some.details["unread_samples"]) == (5, 2)
    assert (other.details["samples"], other.details["unread_samples"]) == (5, 3)
    assert [turn["model"] for turn in some.transcript] == ["gpt-4"] * 5
    assert (unread.status, unread.score) == ("failed", None)
    assert "Raw reply: 'none'" in str(unread.error)
    assert none.error == "NotRecordedError: no replies are recorded for this item"
    more = evaluate("geval", replies=path, settings={"samples": 6}).results[0]
    told = "no reply is recorded for scorer, round 1, sample 6; there are 5 samples"
    assert more.error == f"NotRecordedError: {told}"


def test_one_order_of_the_answers_is_all_that_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, {"item": "q", "replies": ["8 5"]})
    [item] = read_recording(path).dataset
    assert getattr(item, "question", None) == NOT_RECORDED
    for protocol in ("single", "faireval"):
        [result] = evaluate(protocol, replies=path).results
        assert (result.winner, result.scores) == ("1", (8.0, 5.0))
    [result] = evaluate("faireval", replies=path, settings={"position_calibration": True}).results
    assert "answers swapped; its replies are for one order of the answers" in str(result.error)


def test_items_without_texts_have_no_lengths(tmp_path: Path) -> None:
    about = {"human": 2, "group": "g", "system": "s"}
    path = written(
        tmp_path,
        {"item": 1, "aspect": "topical-chat/coherence", "reply": "2", **about},
        {"item": 2, "aspect": "topical-chat/naturalness", "reply": "3", "human": 2.5},
    )
    done = evaluate("single", replies=path)
    judged = [(result.item, result.aspect, result.score, result.human) for result in done.results]
    assert judged == [("1", "coherence", 2.0, 2.0), ("2", "naturalness", 3.0, 2.5)]
    first = done.results[0]
    assert (first.group, first.systems, first.lengths) == ("g", ("s",), ())
    assert [aspect["high"] for aspect in done.manifest["aspects"]] == [3, 3]


def test_a_debate_in_lines(tmp_path: Path) -> None:
    about = {"item": "a", "aspect": "fluency"}
    path = written(
        tmp_path,
        {**about, "round": 0, "reply": "Score: 2", "model": "m1"},
        {**about, "role": "critic", "round": 1, "reply": "Too low.", "model": "m2"},
        {**about, "round": 1, "reply": "Score: 4", "model": "m1"},
        {**about, "role": "critic", "round": 2, "reply": "NO ISSUE", "model": "m2"},
    )
    [result] = evaluate("debate", replies=path).results
    assert (result.score, result.rounds, result.stop_reason) == (4.0, 2, "no_issue")
    assert {turn["model"] for turn in result.transcript} == {"m1", "m2", None}


def test_both_orders_and_repeats_in_lines(tmp_path: Path) -> None:
    pairs = {(1, 0): "8 5", (2, 0): "5 7", (1, 1): "3 9", (2, 1): "9 3"}
    rows = [
        {"item": "q", "order": order, "repeat": repeat, "reply": text, "human": "1"}
        for (order, repeat), text in pairs.items()
    ]
    done = evaluate("single", replies=written(tmp_path, *rows), repeats=2)
    assert [result.scores for result in done.results] == [(7.5, 5.0), (3.0, 9.0)]
    assert [result.winner for result in done.results] == ["1", "2"]
    assert {result.human for result in done.results} == {"1"}


def test_two_lines_for_one_voice_are_refused(tmp_path: Path) -> None:
    row = {"item": "a", "aspect": "fluency", "reply": "3", "model": "m1"}
    path = written(tmp_path, row, {**row, "reply": "4", "model": "m2"})
    with pytest.raises(DataError, match=r"line 2: line 1 already has a reply of scorer, round 1; choose"):
        read_recording(path)
    assert read_recording(f"{path}?model=m2").models == ("m2",)
    for choice, told in (("model", r"no such line .model=m3."), ("judge", "only aspect, item, model, reply")):
        with pytest.raises(UsageError, match=told):
            read_recording(f"{path}?{choice}=m3")


ONE = {"item": "a", "aspect": "summeval/coherence", "reply": "4"}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"item": "a", "text": "4"}], "no recorded reply; a line has `item` and `reply` or `replies`"),
        ([{"item": "", "reply": "4"}], "field 'item'"),
        ([{"item": "a", "reply": "4", "order": 3}], "field 'order'"),
        ([{"item": "a", "reply": "4", "replies": ["4"]}], "`reply` or `replies`, not both"),
        ([{**ONE, "human": "tie"}], "field 'human.coherence'"),
        (
            [ONE, {**ONE, "aspect": "topical-chat/coherence"}],
            "2: a file cannot mix aspects of summeval and of top",
        ),
        ([ONE, {"item": "b", "reply": "4 5"}], "line 2: a file cannot mix lines with and without an aspect"),
        ([], "holds no recorded replies"),
        ([{**ONE, "aspect": "fluency"}], "no recorded reply is for an item of demo; an item there is"),
    ],
)
def test_bad_lines(rows: list[dict[str, Any]], told: str, tmp_path: Path) -> None:
    with pytest.raises((DataError, UsageError), match=told):
        plan("single", "demo", replies=written(tmp_path, *rows))


# --- published recordings ----------------------------------------------------------------------------------------


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def ours(reply: str, row: dict[str, Any]) -> float | None:
    low, high = (0, 1) if row["dimension"] == "groundedness" else (1, 3)
    try:
        return read_score(reply, low, high, aspect=row["dimension"])
    except ReplyError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_means_of_what_the_authors_read(kind: str, shared_data: Path) -> None:
    """Wherever our reader agrees with the authors' on all twenty replies, so do the scores."""
    path = shared_data / "topical_chat" / f"chatgpt_replies_{kind}.jsonl.gz"
    done = evaluate("geval", replies=path, limit=60)
    scores = {(result.item, result.aspect): result for result in done.results}
    rows = [row for row in recorded(path) if (row["item_id"], row["dimension"]) in scores]
    assert len(scores) == len(rows) > 230
    alike = 0
    for row in rows:
        result = scores[row["item_id"], row["dimension"]]
        assert result.human == row["human"]
        if [ours(reply, row) for reply in row["replies"]] == row["author_scores"]:
            read = [score for score in row["author_scores"] if score is not None]
            assert result.score == pytest.approx(sum(read) / len(read), abs=1e-12)
            alike += 1
    assert alike > 0.6 * len(rows)


def test_texts_come_from_the_data(shared_data: Path) -> None:
    path = shared_data / "topical_chat" / "chatgpt_replies_geval.jsonl.gz"
    data = load_dataset("topical-chat", shared_data / "topical_chat")
    done = evaluate("geval", data, replies=path, limit=4, aspects=["coherence"])
    alone = evaluate("geval", replies=path, limit=4, aspects=["coherence"])
    assert [result.score for result in done.results] == [result.score for result in alone.results]
    assert all(result.lengths for result in done.results)


def test_summaries_are_found_under_the_names_of_their_articles(shared_data: Path) -> None:
    file = shared_data / "summeval" / "llm_rating_replies.jsonl.gz"
    replies = f"{file}?prompt_kind=rts&judge_model=gpt-4-0314"
    data = load_dataset("summeval", shared_data / "summeval")
    done = evaluate("single", data, replies=replies, limit=16, aspects=["coherence"])
    judged = [result for result in done.results if result.status == "ok"]
    assert len(judged) == 12
    assert {result.error for result in done.failed} == {
        "NotRecordedError: no replies are recorded for this item"
    }
    alone = evaluate("single", replies=replies, aspects=["coherence"])
    by_system = {(result.systems, result.group): result for result in alone.results}
    article = next(result.group for result in alone.results)
    for result in judged:
        same = by_system[result.systems, article]
        assert result.score == same.score
        assert isinstance(result.human, float)
        assert result.human == pytest.approx(same.human)


def test_one_judge_of_a_file_of_several(shared_data: Path) -> None:
    path = shared_data / "summeval" / "llm_rating_replies.jsonl.gz"
    with pytest.raises(DataError, match=r"choose with .*\?(prompt_kind|judge_model)="):
        read_recording(path)
    chosen = f"{path}?prompt_kind=rts&judge_model=gpt-4-0314"
    rows = [
        row for row in recorded(path) if (row["prompt_kind"], row["judge_model"]) == ("rts", "gpt-4-0314")
    ]
    done = evaluate("single", replies=chosen, limit=60)
    authors = {(f"{row['doc_id']}-{row['system_id']}", row["dimension"]): row["author_score"] for row in rows}
    right = [authors[result.item, str(result.aspect)] == result.score for result in done.results]
    assert sum(right) >= 0.99 * len(right) > 230


def test_reviews_of_pairs(shared_data: Path) -> None:
    path = shared_data / "vicuna80_reviews" / "reviews.jsonl.gz"
    rows = [row for row in recorded(path) if row["review_file"] == "llama_alpaca-13b"]
    done = evaluate(
        "single", replies=f"{path}?review_file=llama_alpaca-13b", settings={"position_calibration": False}
    )
    off_the_scale = [0.0, 9.0]
    expected = [row["author_score"] for row in rows]
    assert [list(result.scores or off_the_scale) for result in done.results] == expected
    assert [result.error and "scale" in result.error for result in done.failed] == [True]
    assert done.results[0].systems == ("llama-13b", "alpaca-13b")
