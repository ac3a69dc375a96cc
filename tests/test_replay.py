"""Test scoring of recorded replies: past runs, files in our and published forms, gaps."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate, load_dataset
from jurygraph.eval.results.results import Key
from jurygraph.eval.run.plan.estimator import estimate
from jurygraph.eval.run.plan.plan import plan, read_recording
from jurygraph.eval.run.replay.recording import NOT_RECORDED
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.errors import DataError, UsageError
from jurygraph.state.protocols import Range, exactly
from jurygraph.state.transcript import USAGE_FIELDS

from .processes import Command
from .sample_data import write_lines

NONE_RECORDED = "NotRecordedError: no replies are recorded for this item"
SPENT = {*USAGE_FIELDS, "uncounted", "details", "warnings", "transcript"}
KINDS = ("geval", "geval_no_auto_cot", "llm_eval_no_cot", "rate_explain", "analyze_rate")
PROTOCOLS: Any = {
    "geval": {"samples": 3}, "single": {}, "faireval": {"k": 2}, "baseline": {}, "ensemble": {},
    "chateval": {"strategy": "summarizer"}, "debate": {"n": 2, "commander": "llm"}, "multiagent": {},
    "samre": {}, "more": {"rounds": 2, "aggregate": "best", "collaborate": True},
    "calibrated": {"of": "chateval"}, "repeated": {"of": "chateval", "k": 2}, "cascade": {},
}  # fmt: skip


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    return write_lines(folder / "mine.jsonl", rows)


def outcomes(evaluation: Evaluation) -> list[dict[str, Any]]:
    return [result.model_dump(exclude=SPENT) for result in evaluation.results]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_replayed_is_the_run(protocol: Any, tmp_path: Path) -> None:
    data = "demo" if protocol == "geval" else "demo-pairs"
    run = evaluate(
        protocol, data, limit=2, repeats=2, settings=PROTOCOLS[protocol], out=tmp_path / "run",
        aspects=["consistency"] if data == "demo" else [],
    )  # fmt: skip
    again = evaluate(protocol, replies=tmp_path / "run", repeats=2, out=tmp_path / "again")
    assert outcomes(again) == outcomes(run)
    assert not run.failed
    for result in again.results:
        assert (result.calls, result.cost_usd, result.input_tokens) == (0, 0.0, 0)
        assert {turn["model"] for turn in result.transcript} <= {"offline", None}


def debate_run(out: Path, critic: str, **settings: Any) -> Evaluation:
    """Run two rounds in which the critic repeats itself and the scorer adds one each time."""

    def line(metadata: Any, _prompt: str) -> str:
        return critic if metadata["role"] == "critic" else f"Score: {2 + metadata['round']}"

    model = ScriptedModel(script=line)
    given: Any = {"n": 2, "structured": "off", **settings}
    return evaluate(
        "debate", "demo", aspects=["fluency"], limit=1, settings=given, models={"*": model}, out=out
    )


def test_a_stop_rule_is_changed_over_an_old_run(tmp_path: Path) -> None:
    literal = "There is NO ISSUE with the grammar, but the commas are wrong."
    [before] = debate_run(tmp_path / "run", literal).results
    assert (before.score, before.stop_reason) == (4.0, "max_rounds")
    [after] = evaluate(
        "debate", replies=tmp_path / "run", settings={"termination": "substring"}
    ).results
    assert (after.score, after.stop_reason, after.rounds) == (2.0, "no_issue", 1)


def test_a_recording_that_is_changed_meanwhile(tmp_path: Path) -> None:
    evaluate("single", "demo", aspects=["fluency"], limit=2, out=tmp_path / "run")
    recording = read_recording(tmp_path / "run")
    [first, _] = [Key(item.id, "fluency", "single", 0) for item in recording.dataset]
    assert recording.of(first)
    path = tmp_path / "run" / "results.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    with pytest.raises(DataError, match="has changed since it was read"):
        recording.of(first)


def test_a_vote_rule_is_changed_over_an_old_run(tmp_path: Path) -> None:
    def line(metadata: Any, _prompt: str) -> str:
        return f"Score: {(2, 4, 4)[metadata['repeat']]}"

    one_item: Any = {"data": "demo", "aspects": ["fluency"], "limit": 1, "out": tmp_path / "run"}
    settings: Any = {"of": "single", "k": 3, "structured": "off"}
    run = evaluate(
        "repeated", **one_item, settings=settings, models={"*": ScriptedModel(script=line)}
    )
    assert run.results[0].score == pytest.approx(10 / 3)
    for changed, score in (({"by": "vote"}, 4.0), ({"k": 2}, 3.0), ({"k": 4}, None)):
        [again] = evaluate("repeated", replies=tmp_path / "run", settings=changed).results  # type: ignore[arg-type]
        assert again.score == score
    assert "no reply is recorded for scorer, round 1, run 4" in str(again.error)


def test_fewer_rounds_are_replayed_and_what_is_missing_is_named(tmp_path: Path) -> None:
    first = debate_run(tmp_path / "run", "The commas are wrong.")
    expected = estimate(plan("debate", replies=tmp_path / "run"))
    assert expected.verdicts == {"debate": 1}
    assert (expected.total.calls, expected.total.cost_usd) == (exactly(0), Range(0.0, 0.0))
    [fewer] = evaluate("debate", replies=tmp_path / "run", settings={"n": 1}).results
    assert (fewer.status, fewer.score) == ("ok", 3.0)
    for settings, missing in (
        ({"n": 3}, "critic, round 3; it has replies in round 1, 2"),
        ({"tie_breaker": True}, "tie_breaker, round 2; there are replies of critic, scorer"),
    ):
        [more] = evaluate("debate", replies=tmp_path / "run", settings=settings).results  # type: ignore[arg-type]
        assert (more.status, more.score) == ("failed", None)
        assert more.error == f"NotRecordedError: no reply is recorded for {missing}"
    # A replay can be replayed, and is marked as one.
    once = evaluate("debate", replies=tmp_path / "run", out=tmp_path / "once").manifest
    told = "Replayed: no model was called; the replies were recorded in run by scriptedmodel:ScriptedModel."
    assert once["note"].startswith(told)
    assert f"|replies:run@{once['replies']['digest']}|" in once["signatures"]["debate"]
    again = evaluate("debate", replies=tmp_path / "once")
    assert outcomes(again) == outcomes(first)
    assert again.manifest["replies"]["models"] == ["scriptedmodel:ScriptedModel"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        *(
            ({"settings": setting}, "there would have been other replies")
            for setting in ({"persona": "weak"}, {"commander": "llm"}, {"temperature": "0.7"})
        ),
        *(({option: True}, "or --replies") for option in ("batch", "journal")),
        ({"protocol": "single"}, "a run of debate, with no replies recorded for single"),
        ({"out": "run"}, "is the run to replay: choose another --out"),
        ({"models": {"*": "offline"}}, "give no model with --replies"),
        ({"replies": None}, r"give a dataset .--data., or recorded replies .--replies."),
        ({"replies": "none.jsonl"}, "there is no file or folder"),
        ({"replies": "."}, "holds no run"),
    ],
)
def test_what_cannot_be_replayed_is_refused(
    options: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    debate_run(tmp_path / "run", "NO ISSUE")
    given: Any = {"replies": "run", **options}
    with pytest.raises((DataError, UsageError), match=problem):
        evaluate(given.pop("protocol", "debate"), **given)
    # Settings that change no reply are free.
    plan("debate", replies=tmp_path / "run", settings={"persona": "strict", "commander": "relay"})


def test_what_could_not_be_read_is_read_by_another_reader(tmp_path: Path) -> None:
    replies = written(tmp_path, {"item": "a", "aspect": "fluency", "reply": "Score: 7"})
    narrow = evaluate("single", replies=replies)
    assert "off the scale" in str(narrow.results[0].error)
    aspect = tmp_path / "wide.yaml"
    aspect.write_text("name: fluency\ncriteria: How well it reads.\nlow: 1\nhigh: 10\n")
    wide = evaluate("single", replies=replies, aspects=[str(aspect)])
    assert wide.results[0].score == 7.0


def test_a_failed_comparison_in_both_orders_is_not_guessed_at(tmp_path: Path) -> None:
    """Turns of a failed verdict do not record the order of the answers."""

    def line(metadata: Any, _prompt: str) -> str:
        return "no score" if metadata["role"] == "scorer" else ""

    model = ScriptedModel(script=line)
    run = evaluate("single", "demo-pairs", limit=1, models={"*": model}, out=tmp_path / "run")
    assert run.failed
    [result] = evaluate("single", replies=tmp_path / "run").results
    assert result.error == NONE_RECORDED


def test_the_command(tmp_path: Path, command: Command) -> None:
    about = {"aspect": "fluency", "replies": ["4", "5"], "model": "m"}
    written(tmp_path, *({"item": f"i{n}", "human": n, **about} for n in (1, 2)))
    run = ("run", "geval", "--replies", "mine.jsonl", "--out", "out")
    assert command(*run, "--dry-run") == 0
    assert "2 verdicts to judge, no model call" in command.printed
    assert command(*run) == 0
    assert "total usage: 0 calls" in command.printed
    assert command("show", "out", "i1") == 0
    assert "Replayed: no model was called" in command.printed
    assert "4.5" in command.printed


# Files of replies
def test_samples_that_are_missing_or_cannot_be_read_are_left_out_and_counted(
    tmp_path: Path,
) -> None:
    samples = {
        "a": ["4", "no idea", "9", "5", "Score: 3"],
        "b": ["3", "4", None, None, None],
        "c": ["none", "?", "", "?", "?"],
        "d": [None] * 5,
    }
    about = {"aspect": "fluency", "model": "gpt-4", "human": 4}
    path = written(
        tmp_path, *({"item": item, "replies": said, **about} for item, said in samples.items())
    )
    some, other, unread, none = evaluate("geval", replies=path).results
    assert (some.score, some.human, other.score) == (4.0, 4.0, 3.5)
    assert (some.details["samples"], some.details["unread_samples"]) == (5, 2)
    assert (other.details["samples"], other.details["unread_samples"]) == (5, 3)
    assert [turn["model"] for turn in some.transcript] == ["gpt-4"] * 5
    assert (unread.status, unread.score) == ("failed", None)
    assert "Raw reply: 'none'" in str(unread.error)
    assert none.error == NONE_RECORDED
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
    with pytest.raises(
        DataError, match=r"line 2: line 1 already has a reply of scorer, round 1; choose"
    ):
        read_recording(path)
    assert read_recording(f"{path}?model=m2").models == ("m2",)
    for choice, told in (
        ("model", r"no such line .model=m3."),
        ("judge", "only aspect, item, model, reply"),
    ):
        with pytest.raises(UsageError, match=told):
            read_recording(f"{path}?{choice}=m3")


ONE = {"item": "a", "aspect": "summeval/coherence", "reply": "4"}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [{"item": "a", "text": "4"}],
            "no recorded reply; a line has `item` and `reply` or `replies`",
        ),
        ([{"item": "", "reply": "4"}], "field 'item'"),
        ([{"item": "a", "reply": "4", "order": 3}], "field 'order'"),
        ([{"item": "a", "reply": "4", "replies": ["4"]}], "`reply` or `replies`, not both"),
        ([{**ONE, "human": "tie"}], "field 'human': 'tie' is not a number"),
        (
            [ONE, {**ONE, "aspect": "hanna/coherence"}],
            "2: a file cannot mix aspects of summeval and of hanna",
        ),
        (
            [ONE, {"item": "b", "reply": "4 5"}],
            "line 2: a file cannot mix lines with and without an aspect",
        ),
        ([], "contains no recorded replies"),
        (
            [{**ONE, "aspect": "fluency"}],
            "no recorded reply is for an item of demo; an item there is",
        ),
    ],
)
def test_bad_lines(rows: list[dict[str, Any]], told: str, tmp_path: Path) -> None:
    with pytest.raises((DataError, UsageError), match=told):
        plan("single", "demo", replies=written(tmp_path, *rows))


# Published recordings
def recorded(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_means_of_what_the_authors_read(kind: str, shared_data: Path) -> None:
    """Replies off the scale are left out; the authors' rule includes them."""
    path = shared_data / "topical_chat" / f"chatgpt_replies_{kind}.jsonl.gz"
    done = evaluate("geval", replies=path, limit=60)
    scores = {(result.item, result.aspect): result for result in done.results}
    rows = [row for row in recorded(path) if (row["item_id"], row["dimension"]) in scores]
    assert len(scores) == len(rows) > 230
    for row in rows:
        result = scores[row["item_id"], row["dimension"]]
        assert result.human == row["human"]
        low, high = (0, 1) if row["dimension"] == "groundedness" else (1, 3)
        read = [
            score for score in row["author_scores"] if score is not None and low <= score <= high
        ]
        assert result.score == pytest.approx(sum(read) / len(read), abs=1e-12)


def test_texts_come_from_the_data(shared_data: Path) -> None:
    path = shared_data / "topical_chat" / "chatgpt_replies_geval.jsonl.gz"
    data = load_dataset("topical-chat", shared_data / "topical_chat")
    done = evaluate("geval", data, replies=path, limit=4, aspects=["coherence"])
    alone = evaluate("geval", replies=path, limit=4, aspects=["coherence"])
    assert [result.score for result in done.results] == [result.score for result in alone.results]
    assert all(result.lengths for result in done.results)


@pytest.mark.slow
def test_summaries_are_found_under_the_names_of_their_articles(shared_data: Path) -> None:
    file = shared_data / "summeval" / "llm_rating_replies.jsonl.gz"
    replies = f"{file}?prompt_kind=rts&judge_model=gpt-4-0314"
    data = load_dataset("summeval", shared_data / "summeval")
    done = evaluate("single", data, replies=replies, limit=16, aspects=["coherence"])
    judged = [result for result in done.results if result.status == "ok"]
    assert len(judged) == 12
    assert {result.error for result in done.failed} == {NONE_RECORDED}
    alone = evaluate("single", replies=replies, aspects=["coherence"])
    by_system = {(result.systems, result.group): result for result in alone.results}
    article = next(result.group for result in alone.results)
    for result in judged:
        same = by_system[result.systems, article]
        assert result.score == same.score
        assert isinstance(result.human, float)
        assert result.human == pytest.approx(same.human)


def test_reviews_of_pairs(shared_data: Path) -> None:
    path = shared_data / "vicuna80_reviews" / "reviews.jsonl.gz"
    rows = [row for row in recorded(path) if row["review_file"] == "llama_alpaca-13b"]
    chosen = f"{path}?review_file=llama_alpaca-13b"
    done = evaluate("single", replies=chosen, settings={"position_calibration": False})
    off_the_scale = [0.0, 9.0]
    expected = [row["author_score"] for row in rows]
    assert [list(result.scores or off_the_scale) for result in done.results] == expected
    assert [result.error and "scale" in result.error for result in done.failed] == [True]
    assert done.results[0].systems == ("llama-13b", "alpaca-13b")
