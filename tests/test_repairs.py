"""Replies that are asked for again: what is sent back, what is asked for, and what is noticed."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import pytest
from jurygraph.graphs import baseline, chateval, debate, ensemble, geval, more, samre, single
from jurygraph.nodes.courtroom import TotalSchema, TotalsSchema
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import Verdict
from jurygraph.state.verdict_warnings import (
    COPIED,
    COPIED_DECLARATION,
    EMPTY_OBJECTION,
    PROMPT_CUT,
    SAME_AGAIN,
    SAME_AS_OTHER,
    SPEECH_CUT_OFF,
    WarningKind,
    kind_of,
)
from langchain_core.messages import AIMessage

from .loopback import Answer, Provider, Request, Text, Usage
from .loopback_debate import COMPARE_TASK, OPENAI, SCORE_TASK

DECLARE = "Declare NO ISSUE only for a score that leaves you nothing to criticise."
LOOP = "The bridge opened. " * 50


def judged(protocol: ModuleType = single, task: Any = SCORE_TASK, **settings: Any) -> Verdict:
    graph = protocol.build(**{"models": {"*": OPENAI}, **settings}).compile()
    return Verdict.of(graph.invoke({"task": task}))


def test_after_a_cut_off_the_value_alone_is_asked_for_and_the_loop_is_not_resent(provider: Provider) -> None:
    # The second reply is off the scale: a later repair asks for no reasons either.
    provider.play(Text('{"reasoning": "' + LOOP, finish="length"), {"score": 9}, {"score": 4})
    verdict = judged(repair=2)
    assert (verdict.score, verdict.calls) == (4, 3)
    first, *repairs = provider.requests
    assert first.schema is not None
    assert list(first.schema["properties"]) == ["reasoning", "score"]
    for again in repairs:
        assert again.schema is not None
        assert list(again.schema["properties"]) == again.schema["required"] == ["score"]
        assert LOOP not in str(again.body)
        assert len(str(again.body)) < len(str(first.body)) + 1000
    # Nothing stands for the reply either: small models repeat whatever does.
    assert [role for role, _ in repairs[0].messages] == ["system", "user"]
    assert repairs[0].messages[1][1].startswith(first.messages[1][1])
    assert "cut off before its end" in repairs[0].messages[1][1]
    provider.play(Text(LOOP, finish="length"), "Score: 4")
    assert judged(structured="off").score == 4
    assert LOOP not in str(provider.requests[-1].body)
    assert "Score: <number>" in provider.requests[-1].messages[-1][1]


@pytest.mark.parametrize("way", ["structured", "words"])
@pytest.mark.parametrize(
    ("graph", "settings", "role"),
    [
        (single, {}, "scorer"),
        (debate, {}, "critic"),
        (baseline, {}, "judge"),
        (more, {"aggregate": "best"}, "judge"),
        (samre, {}, "juror"),
        (ensemble, {"position_calibration": False}, "referee_1"),
    ],
)
def test_a_repair_asks_no_reasons(graph: ModuleType, settings: dict[str, Any], role: str, way: str) -> None:
    kind = "score" if graph in (single, debate) else "compare"
    answers: dict[str, Any] = dict.fromkeys(TotalsSchema(6, 120).schema()["required"][1:], 10)
    answers |= dict.fromkeys(TotalSchema(6, 120).schema()["required"][1:], 10)
    answers |= {"score": 4, "score_1": 8, "score_2": 6, "winner": "1", "no_issue": True, "feedback": "Fine."}
    # The totals of 6 to 120 and the scores of 1 to 10 have these numbers in common.
    texts = {"vote": "Vote: 1", "critique": "NO ISSUE", "pair": "Score of answer 1: 8\nScore of answer 2: 6"}
    texts["score"] = "Score: 4" if kind == "score" else "Score: 60"

    def speak(metadata: Any, prompt: str) -> Any:
        asked = metadata["agent"].startswith(role)
        if asked and not metadata["repair"]:
            return AIMessage(LOOP, response_metadata={"finish_reason": "length"})
        form = metadata["form"]
        if form == "text":
            return "I defend it."
        return answers if way == "structured" else texts[form]

    model = ScriptedModel(script=speak)
    built = graph.build(models={"*": model}, structured="auto" if way == "structured" else "off", **settings)
    built.compile().invoke({"task": SCORE_TASK if kind == "score" else COMPARE_TASK})
    again = [call for call in model.calls if call.metadata["repair"]]
    assert again
    for call in again:
        asked = call.prompt.rpartition("too long and was cut off")[2]
        assert LOOP not in call.prompt
        assert "leave out every reason" in asked
        assert not re.search("reasons? (?:first|step)|`reasoning`|because|why", asked, re.IGNORECASE), asked


def test_a_speech_that_was_cut_off_is_kept_and_marked(provider: Provider) -> None:
    def answer(request: Request) -> Answer:
        if request.schema is None:
            return Text("Mine is exact, and", finish="length")
        return dict.fromkeys(request.schema["properties"], 10)

    provider.play(by=answer)
    graph = more.build(models={"*": OPENAI}, advocates=1, aggregate="concat").compile()
    outcome = graph.invoke({"task": COMPARE_TASK})
    said = [turn["content"] for turn in outcome["transcript"] if turn["role"] == "advocate"]
    assert said == ["Mine is exact, and [cut off]"] * 2
    assert "Mine is exact, and [cut off]" in provider.requests[-1].user
    assert (outcome["verdict"]["winner"], outcome["verdict"]["calls"]) == ("tie", 3)
    kinds = [kind_of(told) for told in outcome["verdict"]["warnings"]]
    assert kinds == [SPEECH_CUT_OFF, SPEECH_CUT_OFF, SAME_AS_OTHER]


def test_steps_that_run_on_are_asked_for_as_bounded_json(provider: Provider) -> None:
    steps = ["Read both texts.", "Look for what\nis missing."]
    provider.play(Text(LOOP, finish="length"), {"steps": steps}, Text("4"))
    graph = geval.build(models={"*": OPENAI}, weighting="sampling", samples=1).compile()
    outcome = graph.invoke({"task": SCORE_TASK})
    assert outcome["transcript"][0]["content"] == "1. Read both texts.\n2. Look for what is missing."
    assert outcome["verdict"]["score"] == 4


def test_a_critique_keeps_its_words(provider: Provider) -> None:
    def by(request: Request) -> Answer:
        if request.form == "score_reply":
            return {"reasoning": "Level.", "score": 4}
        if "cut off before its end" not in request.messages[1][1]:
            return Text('{"feedback": "' + LOOP, finish="length")
        return {"feedback": "Nothing to add.", "no_issue": True}

    provider.play(by=by)
    assert judged(debate, models={"*": "openai:qwen3"}).stop_reason == "no_issue"
    schema = provider.requests[-1].schema
    assert schema is not None
    assert list(schema["properties"]) == ["feedback", "no_issue"]
    assert schema["properties"]["feedback"]["maxLength"] == 500


def test_a_reply_that_repeats_what_it_was_shown_is_warned_of_and_no_quotation(provider: Provider) -> None:
    task = {**SCORE_TASK, "candidate": "Eight years of work went into the bridge. " * 3}
    copied = {"reasoning": " ".join(str(task["candidate"]).split()), "score": 4}
    own = "I say this in words of my own, twice. " * 3
    provider.play(by=lambda request: copied if request.form else own)
    warnings = judged(chateval, task, turns=1).warnings
    assert [kind_of(told) for told in warnings] == [COPIED, COPIED, SAME_AS_OTHER]
    quoted = f"It says: {SCORE_TASK['candidate']} That is what the source says, in another order, with the same year."
    provider.play({"reasoning": quoted, "score": 4})
    assert judged().warnings == ()


@pytest.mark.parametrize(
    ("feedback", "no_issue", "reason", "kind"),
    [
        ("1", True, "max_rounds", EMPTY_OBJECTION),
        ("1", False, "max_rounds", EMPTY_OBJECTION),
        ("", True, "no_issue", None),
        ("The score leaves nothing to object to.", True, "no_issue", None),
        (DECLARE, True, "no_issue", COPIED_DECLARATION),
    ],
)
def test_what_a_critic_says_is_looked_at(
    provider: Provider, feedback: str, no_issue: bool, reason: str, kind: WarningKind | None
) -> None:
    def by(request: Request) -> Answer:
        if request.form == "score_reply":
            return {"reasoning": "Built with some care, it seems to me.", "score": 4}
        return {"feedback": feedback, "no_issue": no_issue}

    provider.play(by=by)
    verdict = judged(debate, n=1)
    again = [SAME_AGAIN] if reason == "max_rounds" else []
    assert verdict.stop_reason == reason
    assert [kind_of(told) for told in verdict.warnings] == [*([kind] if kind else []), *again]


@pytest.mark.parametrize(("counted", "warned"), [(500, True), (2000, False), (0, False)])
def test_a_server_that_counts_far_too_few_tokens(provider: Provider, counted: int, warned: bool) -> None:
    provider.play(Text(fields={"reasoning": "Fine.", "score": 4}, usage=Usage(input=counted)))
    task = {**SCORE_TASK, "source": "The bridge opened in 1932. " * 600}
    verdict = judged(task=task)
    assert [kind_of(told) for told in verdict.warnings] == [PROMPT_CUT] * warned
    assert ("500 tokens in a prompt of 1" in "".join(verdict.warnings)) is warned
