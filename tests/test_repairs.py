"""Replies that are asked for again: what is sent back, what is asked for, and what is noticed."""

from __future__ import annotations

from typing import Any

import pytest
from jurygraph.graphs import chateval, debate, single
from jurygraph.state import ReplyError, Verdict

from .loopback import Answer, Provider, Request, Text
from .loopback_debate import OPENAI, SCORE_TASK

LOOP = "The bridge opened. " * 50


def judged(**settings: Any) -> Verdict:
    graph = single.build(models={"*": OPENAI}, **settings).compile()
    return Verdict.of(graph.invoke({"task": SCORE_TASK}))


def test_after_a_cut_off_the_value_alone_is_asked_for_and_the_loop_is_not_resent(provider: Provider) -> None:
    provider.play(Text('{"reasoning": "' + LOOP, finish="length"), {"score": 4})
    verdict = judged()
    assert (verdict.score, verdict.calls) == (4, 2)
    first, again = provider.requests
    assert first.schema is not None
    assert again.schema is not None
    assert list(first.schema["properties"]) == ["reasoning", "score"]
    assert list(again.schema["properties"]) == again.schema["required"] == ["score"]
    assert LOOP not in str(again.body)
    assert len(str(again.body)) < len(str(first.body)) + 1000
    assert [role for role, _ in again.messages] == ["system", "user", "assistant", "user"]


def test_in_words_too_the_loop_is_not_resent(provider: Provider) -> None:
    provider.play(Text(LOOP, finish="length"), "Score: 4")
    assert judged(structured="off").score == 4
    assert LOOP not in str(provider.requests[1].body)
    assert "Score: <number>" in provider.requests[1].messages[-1][1]


def test_a_reply_that_cannot_be_read_for_another_reason_is_sent_back(provider: Provider) -> None:
    provider.play({"reasoning": "Well built.", "score": 9}, {"reasoning": "Well built.", "score": 4})
    assert judged().score == 4
    again = provider.requests[1]
    assert again.schema == provider.requests[0].schema
    assert "Well built." in again.messages[2][1]
    assert "off the scale" in again.messages[3][1]


def test_a_critique_keeps_its_words(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        if request.form == "score_reply":
            return {"reasoning": "Level.", "score": 4}
        if len(request.messages) == 2:
            return Text('{"feedback": "' + LOOP, finish="length")
        return {"feedback": "Nothing to add.", "no_issue": True}

    provider.play(by=by)
    verdict = Verdict.of(debate.build(models={"*": OPENAI}).compile().invoke({"task": SCORE_TASK}))
    assert verdict.stop_reason == "no_issue"
    schema = provider.requests[-1].schema
    assert schema is not None
    assert list(schema["properties"]) == ["feedback", "no_issue"]


def test_a_second_cut_off_is_no_verdict(provider: Provider) -> None:
    provider.play(*[Text('{"score": 4', finish="length")] * 2)
    with pytest.raises(ReplyError) as raised:
        judged()
    assert raised.value.fault == "cut_off"
    assert "max_tokens" in raised.value.problem


def test_a_reply_that_repeats_what_it_was_shown_is_warned_of(provider: Provider) -> None:
    task = {**SCORE_TASK, "candidate": "Eight years of work went into the bridge. " * 3}
    words = " ".join(str(task["candidate"]).split())

    def by(request: Request) -> Answer:
        return (
            {"reasoning": words, "score": 4} if request.form else "I say this in words of my own, twice. " * 3
        )

    provider.play(by=by)
    graph = chateval.build(models={"*": OPENAI}, turns=1).compile()
    warnings = Verdict.of(graph.invoke({"task": task})).warnings
    assert warnings
    assert all("repeats what it was shown, word for word" in told for told in warnings)


def test_a_reply_that_quotes_is_not_warned_of(provider: Provider) -> None:
    quoted = f"It says: {SCORE_TASK['candidate']} That is what the source says, in another order, with the same year."
    provider.play({"reasoning": quoted, "score": 4})
    assert judged().warnings == ()
