"""Test repaired replies and endings in every provider's words."""

import json
import re
from types import ModuleType
from typing import Any

import pytest
from jurygraph.graphs import baseline, chateval, debate, ensemble, geval, more, samre, single
from jurygraph.nodes.models.call import Reply
from jurygraph.nodes.models.provider_errors import ResponseError
from jurygraph.nodes.models.responses import read_response
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.runtime.agent_runtime import read
from jurygraph.nodes.runtime.courtroom import TotalSchema, TotalsSchema
from jurygraph.nodes.runtime.output_schemas import RatingSchema, ScoreSchema
from jurygraph.state import ReplyError, Verdict
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


def test_after_a_cut_off_the_value_alone_is_asked_for_and_the_loop_is_not_resent(
    provider: Provider,
) -> None:
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
    # No placeholder replaces the reply: small models repeat it.
    assert [role for role, _ in repairs[0].messages] == ["system", "user"]
    assert repairs[0].messages[1][1].startswith(first.messages[1][1])
    assert "cut off before its end" in repairs[0].messages[1][1]
    provider.play(Text(LOOP, finish="length"), "Score: 4")
    assert judged(structured="off").score == 4
    assert LOOP not in str(provider.requests[-1].body)
    assert "Score: <number>" in provider.requests[-1].messages[-1][1]


@pytest.mark.parametrize("way", ["structured", "words"])
@pytest.mark.parametrize(("graph", "settings", "role"), [
    (single, {}, "scorer"), (debate, {}, "critic"), (baseline, {}, "judge"),
    (more, {"aggregate": "best"}, "judge"), (samre, {}, "juror"),
    (ensemble, {"position_calibration": False}, "referee_1"),
])  # fmt: skip
def test_a_repair_asks_no_reasons(
    graph: ModuleType, settings: dict[str, Any], role: str, way: str
) -> None:
    kind = "score" if graph in (single, debate) else "compare"
    answers: dict[str, Any] = dict.fromkeys(TotalsSchema(6, 120).schema()["required"][1:], 10)
    answers |= dict.fromkeys(TotalSchema(6, 120).schema()["required"][1:], 10)
    answers |= {
        "score": 4,
        "score_1": 8,
        "score_2": 6,
        "winner": "1",
        "no_issue": True,
        "feedback": "Fine.",
    }
    # The totals of 6 to 120 and the scores of 1 to 10 have these numbers in common.
    texts = {
        "vote": "Vote: 1",
        "critique": "NO ISSUE",
        "pair": "Score of answer 1: 8\nScore of answer 2: 6",
    }
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
    built = graph.build(
        models={"*": model}, structured="auto" if way == "structured" else "off", **settings
    )
    built.compile().invoke({"task": SCORE_TASK if kind == "score" else COMPARE_TASK})
    again = [call for call in model.calls if call.metadata["repair"]]
    assert again
    for call in again:
        asked = call.prompt.rpartition("too long and was cut off")[2]
        assert LOOP not in call.prompt
        assert "leave out every reason" in asked
        assert not re.search(
            "reasons? (?:first|step)|`reasoning`|because|why", asked, re.IGNORECASE
        ), asked


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
    assert (
        outcome["transcript"][0]["content"] == "1. Read both texts.\n2. Look for what is missing."
    )
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


def test_a_reply_that_repeats_what_it_was_shown_is_warned_of_and_no_quotation(
    provider: Provider,
) -> None:
    task = {**SCORE_TASK, "candidate": "Eight years of work went into the bridge. " * 3}
    copied = {"reasoning": " ".join(str(task["candidate"]).split()), "score": 4}
    own = "I say this in words of my own, twice. " * 3
    provider.play(by=lambda request: copied if request.form else own)
    warnings = judged(chateval, task, turns=1).warnings
    assert [kind_of(told) for told in warnings] == [COPIED, COPIED, SAME_AS_OTHER]
    quoted = f"It says: {SCORE_TASK['candidate']} That is what the source says, in another order, with the same year."
    provider.play({"reasoning": quoted, "score": 4})
    assert judged().warnings == ()


@pytest.mark.parametrize(("feedback", "no_issue", "reason", "kind"), [
    ("1", True, "max_rounds", EMPTY_OBJECTION), ("1", False, "max_rounds", EMPTY_OBJECTION),
    ("", True, "no_issue", None), ("The score leaves nothing to object to.", True, "no_issue", None),
    (DECLARE, True, "no_issue", COPIED_DECLARATION),
])  # fmt: skip
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
def test_a_server_that_counts_far_too_few_tokens(
    provider: Provider, counted: int, warned: bool
) -> None:
    provider.play(Text(fields={"reasoning": "Fine.", "score": 4}, usage=Usage(input=counted)))
    task = {**SCORE_TASK, "source": "The bridge opened in 1932. " * 600}
    verdict = judged(task=task)
    assert [kind_of(told) for told in verdict.warnings] == [PROMPT_CUT] * warned
    assert ("500 tokens in a prompt of 1" in "".join(verdict.warnings)) is warned


MIDWAY = "It might look like a score: 4 but on closer"
FORM = ScoreSchema(1, 5)


def reply(content: Any = MIDWAY, more: dict[str, Any] | None = None, **metadata: Any) -> Reply:
    message = AIMessage(content, response_metadata=metadata, additional_kwargs=more or {})
    return read_response([message], "acme:judge", 0.0)


def fault(answer: Reply, form: Any = FORM) -> str:
    """Return why no value is read from the reply; "" if one is."""
    try:
        read(form, answer)
    except ReplyError as error:
        return error.fault
    return ""


CUT_OFF: dict[str, list[Any]] = {
    "finish_reason": [
        *(
            "length",
            "MAX_TOKENS",
            "model_length",
            "MALFORMED_FUNCTION_CALL",
            "OTHER",
            "whatever_comes_next",
        ),
        *("MAX_TOKENSMAX_TOKENS", "STOPMAX_TOKENS", "reached_max_length_of_reply"),
    ],
    "stop_reason": ["max_tokens", "model_context_window_exceeded", "pause_turn"],
    "stopReason": ["max_tokens", "malformed_model_output"],
    "done_reason": ["length"],
    "status": ["incomplete"],
}
WITHHELD: dict[str, list[Any]] = {
    "finish_reason": ["content_filter", "SAFETY", "PROHIBITED_CONTENT", "sensitive"],
    "stopReason": ["guardrail_intervened", "content_filtered"],
}
COMPLETE: dict[str, list[Any]] = {
    "finish_reason": [
        "stop",
        "STOP",
        "STOPSTOP",
        None,
        "eos_token",
        "COMPLETE",
        "whatever_comes_next",
    ],
    "stop_reason": ["end_turn", "tool_use"],
    "stopReason": ["end_turn"],
    "done_reason": ["stop"],
    "status": ["completed"],
}


def of_each(words: dict[str, list[Any]], *more: dict[str, Any]) -> pytest.MarkDecorator:
    """Run a test with each word of an ending under its name, and with some metadata more."""
    cases = [{name: word} for name, of_name in words.items() for word in of_name]
    return pytest.mark.parametrize("metadata", [*cases, *more], ids=str)


@of_each(
    CUT_OFF,
    {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    {"finish_reason": "stop", "stop_reason": "max_tokens"},
)
def test_a_cut_off_reply_is_no_verdict(metadata: dict[str, Any]) -> None:
    assert fault(reply(**metadata)) == "cut_off"
    fields = AIMessage("", response_metadata=metadata)
    fields.tool_calls = [
        {"name": "score_reply", "args": {"score": 4}, "id": "1", "type": "tool_call"}
    ]
    if "whatever_comes_next" not in metadata.values():
        assert fault(read_response([fields], "acme:judge", 0.0)) == "cut_off"
        assert (
            fault(reply('{"reasoning": "It is well built.", "score": 4}', **metadata)) == "cut_off"
        )


@of_each(
    WITHHELD,
    {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
    {"prompt_feedback": {"block_reason": "SAFETY"}, "finish_reason": "STOP"},
)
def test_a_reply_that_was_withheld_or_refused_is_no_verdict(metadata: dict[str, Any]) -> None:
    assert fault(reply("Score: 4", **metadata)) == "filtered"
    assert fault(reply("Score: 4", stop_reason="refusal")) == "refused"
    assert fault(reply("Score: 4", {"refusal": "I will not."}, finish_reason="stop")) == "refused"


@pytest.mark.parametrize(
    "word",
    ["error", "insufficient_system_resource", "abort", "network_error", "timeout", "in_progress"],
)
def test_a_reply_that_the_provider_broke_off_is_asked_for_again(word: str) -> None:
    with pytest.raises(ResponseError, match=word) as raised:
        reply("Score: 4", finish_reason=word)
    assert raised.value.status_code == 200


@of_each(COMPLETE, {}, {"status": "success", "finish_reason": "stop"})
def test_a_complete_reply_is_read(metadata: dict[str, Any]) -> None:
    assert fault(reply("All claims hold.\nScore: 4", **metadata)) == ""
    assert fault(reply('{"reasoning": "All claims hold.", "score": 4}', **metadata)) == ""


@pytest.mark.parametrize(
    "words", ['{"reasoning": "All claims hold", "score": 4', "Score: 4,", "```json\nScore: 4"]
)
def test_a_reply_of_which_nothing_is_said_is_not_read_if_it_is_open(words: str) -> None:
    assert fault(reply(words)) == "cut_off"


def test_the_advice_is_for_the_cause() -> None:
    thought = [{"type": "thinking", "thinking": "Is it a 4?"}, {"type": "text", "text": ""}]
    for reasoned in (
        reply(thought, stop_reason="max_tokens"),
        reply("<think>Is it a 4? Score:", finish_reason="length"),
        reply("", {"reasoning_content": "Is it a 4?"}, finish_reason="length"),
    ):
        assert "reasoning effort" in reasoned.problem
    assert "context" in reply(stop_reason="model_context_window_exceeded").problem
    assert "max_tokens" in reply(finish_reason="length").problem
    assert "guardrail_intervened" in reply(stopReason="guardrail_intervened").problem


TEXT = {"type": "text", "text": "Score: 2"}
THOUGHT = {"text": "Score: 1"}
ANALYSIS = "<|channel|>analysis<|message|>Score: 1<|end|><|start|>assistant"
BLOCKS = {
    "anthropic": [{"type": "thinking", "thinking": "Score: 1", "signature": "x"}, TEXT],
    "redacted": [{"type": "redacted_thinking", "data": "Score: 1"}, TEXT],
    "bedrock": [{"type": "reasoning_content", "reasoning_content": THOUGHT}, TEXT],
    "mistral": [{"type": "thinking", "thinking": [{"type": "text", **THOUGHT}]}, TEXT],
    "responses": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Score: 1"}]},
        {"type": "text", "text": "Score: 3", "phase": "commentary"},
        {"type": "text", "text": "Score: 2", "phase": "final_answer"},
    ],
    "other tags": "<reasoning>\nScore: 1\n</reasoning>\nScore: 2",
    "Magistral's": "[THINK]Score: 1[/THINK]Score: 2",
    "the closing tag in a line": 'Score: 1</think>{"reasoning": "Thin.", "score": 2}',
    "channels and JSON": ANALYSIS + '<|channel|>final <|constrain|>json<|message|>{"score": 2}',
    "channels without marks": 'analysisThe plot is thin. Score: 1assistantfinal{"reasoning": "Thin.", "score": 2}',
    "JSON and a sentence": '{"reasoning": "Thin.", "score": 2}\n\nI hope that this helps.',
    "an opening tag that is spoken of": "The answer's <think> tag does not matter.\nScore: 2",
    "a closing tag that is spoken of": "Score: 2\nThe answer has a stray </think> tag.",
    "a tag that is quoted": "The answer ends with `</think>`\nScore: 2",
    "a word like a channel's": "Analysis of the plot: thin.\nScore: 2",
}


@pytest.mark.parametrize("content", BLOCKS.values(), ids=BLOCKS)
def test_the_answer_is_read_and_the_reasoning_is_not(content: Any) -> None:
    assert read(FORM, reply(content, finish_reason="stop"))[1] == 2


ALONE = [
    *("<think>The plot is thin, so score: 1", "<think>\nScore: 1\n</think>"),
    *(
        "<|channel|>analysis<|message|>Score: 1",
        "analysisIt is thin. Score: 1assistantanalysisScore: 1",
    ),
    [{"type": "thinking", "thinking": "Score: 1"}],
]


@pytest.mark.parametrize("content", ALONE, ids=str)
def test_reasoning_alone_is_no_answer(content: Any) -> None:
    assert fault(reply(content, finish_reason="stop")) == "empty"


def test_an_object_that_the_words_behind_it_may_gainsay_is_not_taken() -> None:
    assert reply('{"reasoning": "Thin.", "score": 2} but {"score": 4}').fields is None
    words = '{"reasoning": "The candidate said so.", "score": 4} That is what it claims; I say 2.'
    assert reply(words).fields is None


@pytest.mark.parametrize(
    ("text", "high", "whole"),
    [("4", 5, True), (" 4\n", 5, True), ("1", 10, False), ("2", 10, True), ("4 o", 5, False)],
)
def test_one_value_of_the_scale_is_complete_whatever_the_limit(
    text: str, high: float, whole: bool
) -> None:
    form = RatingSchema(1, high, "fluency")
    rating = reply(text, finish_reason="length")
    assert fault(rating, form) == ("" if whole else "cut_off")
    assert not whole or read(form, rating)[1] == float(text)


# Reading that is not linear in the length would take hours over these.
@pytest.mark.parametrize(
    "piece", ["<think>", "</think>", "<|channel|>", "<think>a</think>\n", "{", "\n{", "```json\n{"]
)
def test_a_long_reply_is_read(piece: str) -> None:
    assert reply(piece * 300_000, finish_reason="stop").fields is None


@pytest.mark.parametrize("is_called", [False, True], ids=["text", "tool"])
def test_an_object_beyond_all_measure_is_refused(is_called: bool) -> None:
    for length, expected in ((900_000, ""), (1_000_000, "cut_off")):
        given = {"reasoning": "x" * length, "score": 4}
        message = AIMessage("" if is_called else json.dumps(given))
        if is_called:
            message.tool_calls = [
                {"name": "score_reply", "args": given, "id": "1", "type": "tool_call"}
            ]
        assert fault(read_response([message], "acme:judge", 0.0, "score_reply")) == expected
