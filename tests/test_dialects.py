"""Every provider's dialect, through its own client: what a reply's ending, form and reasoning come to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jurygraph.graphs import single
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call
from jurygraph.nodes.models.send import attempt
from jurygraph.nodes.output_schemas import PairSchema, ScoreSchema
from jurygraph.state import ReplyError, Verdict
from jurygraph.state.errors import ModelCallError
from langchain_core.messages import HumanMessage

from .loopback_debate import SCORE_TASK
from .loopback_dialects import (
    DIALECTS,
    ENDINGS,
    REFUSALS,
    Asked,
    Ending,
    Form,
    Refusal,
    Said,
    Script,
    close,
    serving,
)

FORMS: tuple[Form, ...] = ("schema", "tool", "json", "text")
FIELDS = {"reasoning": "All claims hold.", "score": 4}
WORDS = "All claims hold.\nScore: 4"
TAKEN = [(name, form) for name in DIALECTS for form in (*REFUSALS[name], "text")]
ENDED = [(*taken, ending) for taken in TAKEN for ending in ENDINGS[taken[0]] if ending != "complete"]

pytestmark = pytest.mark.usefixtures("one_attempt")


def judged(name: str, script: Script, **settings: Any) -> tuple[Verdict, list[Asked]]:
    """What a judge on this provider's model comes to, and what the provider was asked."""
    with serving(DIALECTS[name], script) as server:
        chat = DIALECTS[name].chat(server.url)
        graph = single.build(models={"*": chat}, **settings).compile()
        try:
            return Verdict.of(asyncio.run(graph.ainvoke({"task": SCORE_TASK}))), server.asked
        finally:
            close(chat)


def taking(name: str, taken: Form, said: Said) -> Script:
    """A provider that refuses, in its own words, every form that is stricter than one."""
    stricter = FORMS[: FORMS.index(taken)]
    return lambda asked: REFUSALS[name][asked.form] if asked.form in stricter else said


@pytest.mark.parametrize(("name", "form"), TAKEN)
def test_each_refusal_of_a_form_leads_to_the_next(name: str, form: Form) -> None:
    verdict, asked = judged(name, taking(name, form, Said(fields=FIELDS)))
    assert verdict.score == 4
    known = [one for one in FORMS if one in (*REFUSALS[name], "text")]
    assert [one.form for one in asked] == known[: known.index(form) + 1]
    assert len(verdict.warnings) == (form != known[0])
    if form in ("json", "text") and len(asked) > 1:
        assert '"score" (integer' in str(asked[-1].body).replace('\\\\"', '"').replace('\\"', '"')


async def test_what_was_refused_is_not_asked_for_again() -> None:
    with serving(DIALECTS["deepseek"], taking("deepseek", "json", Said(fields=FIELDS))) as server:
        graph = single.build(models={"*": DIALECTS["deepseek"].chat(server.url)}).compile()
        for _ in range(3):
            assert Verdict.of(await graph.ainvoke({"task": SCORE_TASK})).score == 4
        assert [one.form for one in server.asked] == ["schema", "tool", "json", "json", "json"]


@pytest.mark.parametrize(("name", "form", "ending"), ENDED)
def test_a_reply_that_is_not_complete_is_no_verdict(name: str, form: Form, ending: Ending) -> None:
    said = Said(words=WORDS, ending=ending) if form == "text" else Said(fields=FIELDS, ending=ending)
    with pytest.raises(ReplyError) as raised:
        judged(name, taking(name, form, said))
    assert raised.value.fault == ending


@pytest.mark.parametrize("name", DIALECTS)
def test_a_system_message_that_is_refused_goes_to_the_users(name: str) -> None:
    refusal = DIALECTS[name].system_refusal
    verdict, asked = judged(name, lambda one: refusal if one.has_system else Said(fields=FIELDS))
    assert verdict.score == 4
    assert [one.has_system for one in asked] == [True, False]
    assert "takes no system message" in verdict.warnings[0]


@pytest.mark.parametrize("name", DIALECTS)
def test_words_are_read_and_reasoning_is_not_the_verdict(name: str) -> None:
    verdict, asked = judged(name, lambda _: Said(WORDS), structured="off")
    assert (verdict.score, [one.form for one in asked], verdict.warnings) == (4, ["text"], ())
    assert (verdict.input_tokens, verdict.output_tokens) == (100, 20)
    thought = "It is thin.\nScore: 1"
    tagged = Said(f"<think>{thought}</think>\n{WORDS}")
    beside = Said(fields=FIELDS, reasoning=thought)
    for structured in ("auto", "off"):
        assert judged(name, lambda _: beside, structured=structured)[0].score == 4
        assert judged(name, lambda _: tagged, structured=structured)[0].score == 4
    # Words in place of the tool that was wanted.
    assert judged(name, taking(name, "tool", Said(WORDS, reasoning=thought)))[0].score == 4


async def test_a_form_that_was_not_the_cause_is_asked_for_again() -> None:
    answers: list[Said | Refusal] = [Refusal(400, "Request contains an invalid argument.")]
    with serving(DIALECTS["gemini"], lambda _: answers[-1]) as server:
        graph = single.build(models={"*": DIALECTS["gemini"].chat(server.url)}).compile()
        with pytest.raises(ModelCallError, match="invalid argument"):
            await graph.ainvoke({"task": SCORE_TASK})
        assert [one.form for one in server.asked] == list(FORMS)
        answers.append(Said(fields=FIELDS))
        verdict = Verdict.of(await graph.ainvoke({"task": SCORE_TASK}))
        assert (verdict.score, verdict.warnings, server.asked[-1].form) == (4, (), "schema")


async def test_bounds_that_are_refused_are_left_out_before_the_schema_is() -> None:
    dialect, schema = DIALECTS["deepseek"], PairSchema(1, 20).schema()
    schema["properties"]["score_1"] = ScoreSchema(1, 3).schema()["properties"]["score"]
    words = "Keyword '{}' is not permitted in a schema of response_format."

    def by(asked: Asked) -> Said | Refusal:
        refused = next((word for word in ("minimum", "maxLength", "enum") if word in str(asked.body)), None)
        return Refusal(400, words.format(refused)) if refused else Said(fields={"score": 4})

    with serving(dialect, by) as server:
        model = resolver.wrap(dialect.chat(server.url))
        for _ in range(2):
            reply = await attempt(Call(model, [HumanMessage("Judge.")], schema, {}))
            assert reply.fields == {"score": 4}
        assert [one.form for one in server.asked] == ["schema"] * 4
        kept = [[word for word in ("minimum", "enum") if word in str(one.body)] for one in server.asked]
        assert kept == [["minimum", "enum"], ["enum"], [], []]
        assert model.warnings == [f"{model.label} takes no bounds in a schema: they were left out"]


LEARNED = ("ollama", "mistral", "groq", "deepseek")
"""What these take is not known, and so is tried."""


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_bounds_that_a_provider_is_known_to_refuse_are_not_sent(name: str) -> None:
    verdict, asked = judged(name, lambda _: Said(fields=FIELDS))
    assert (verdict.score, verdict.warnings) == (4, ())
    for one in asked:
        assert one.form != "schema" or "[1, 2, 3, 4, 5]" in str(one.body), (
            "the values are listed for everybody"
        )
    assert ("maxLength" in str(asked[0].body)) is (name in LEARNED)


def test_groqs_own_failure_to_make_json_passes_and_then_eases_the_form(fast_retries: None) -> None:
    failure = Refusal(400, "Failed to validate JSON. Please adjust your prompt.", "json_validate_failed")
    once = iter([failure])
    assert judged("groq", lambda _: next(once, Said(fields=FIELDS)))[0].score == 4
    verdict, asked = judged("groq", lambda one: failure if one.form == "schema" else Said(fields=FIELDS))
    assert (verdict.score, [one.form for one in asked]) == (4, ["schema"] * 3 + ["tool"])
