"""Test every provider's dialect through its own client: endings, forms, reasoning, refusals."""

import asyncio
from typing import Any

import pytest
from jurygraph.graphs import single
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call
from jurygraph.nodes.models.capabilities import BOUNDS, STRUCTURE, SYSTEM
from jurygraph.nodes.models.provider_errors import ProviderFault, ResponseError
from jurygraph.nodes.models.send import attempt
from jurygraph.nodes.runtime.output_schemas import PairSchema, ScoreSchema
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
ENDED = [
    (*taken, ending) for taken in TAKEN for ending in ENDINGS[taken[0]] if ending != "complete"
]

pytestmark = pytest.mark.usefixtures("one_attempt")


def judged(name: str, script: Script, **settings: Any) -> tuple[Verdict, list[Asked]]:
    """Return a judge's verdict on this provider's model, and the provider's requests."""
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


@pytest.mark.slow
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
    said = (
        Said(words=WORDS, ending=ending) if form == "text" else Said(fields=FIELDS, ending=ending)
    )
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
    dialect = DIALECTS["deepseek"]
    schema = PairSchema(1, 20).schema()
    schema["properties"]["score_1"] = ScoreSchema(1, 3).schema()["properties"]["score"]
    words = "Keyword '{}' is not permitted in a schema of response_format."

    def by(asked: Asked) -> Said | Refusal:
        refused = next(
            (word for word in ("minimum", "maxLength", "enum") if word in str(asked.body)), None
        )
        return Refusal(400, words.format(refused)) if refused else Said(fields={"score": 4})

    with serving(dialect, by) as server:
        model = resolver.wrap(dialect.chat(server.url))
        for _ in range(2):
            reply = await attempt(Call(model, [HumanMessage("Judge.")], schema, {}))
            assert reply.fields == {"score": 4}
        assert [one.form for one in server.asked] == ["schema"] * 4
        kept = [
            [word for word in ("minimum", "enum") if word in str(one.body)] for one in server.asked
        ]
        assert kept == [["minimum", "enum"], ["enum"], [], []]
        assert [*model.warnings.values()] == [
            f"{model.label} takes no bounds in a schema: they were left out"
        ]


LEARNED = ("ollama", "mistral", "groq", "deepseek")
"""The features of these are unknown, and so are tried."""


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_bounds_that_a_provider_is_known_to_refuse_are_not_sent(name: str) -> None:
    verdict, asked = judged(name, lambda _: Said(fields=FIELDS))
    assert (verdict.score, verdict.warnings) == (4, ())
    for one in asked:
        # The values are listed for everybody.
        assert one.form != "schema" or "[1, 2, 3, 4, 5]" in str(one.body)
    assert ("maxLength" in str(asked[0].body)) is (name in LEARNED)


def test_groqs_own_failure_to_make_json_passes_and_then_eases_the_form(fast_retries: None) -> None:
    failure = Refusal(
        400, "Failed to validate JSON. Please adjust your prompt.", "json_validate_failed"
    )
    once = iter([failure])
    assert judged("groq", lambda _: next(once, Said(fields=FIELDS)))[0].score == 4
    verdict, asked = judged(
        "groq", lambda one: failure if one.form == "schema" else Said(fields=FIELDS)
    )
    assert (verdict.score, [one.form for one in asked]) == (4, ["schema"] * 3 + ["tool"])


# How other providers and servers refuse a form, a role or a parameter

FORM = [
    (422, "Failed to deserialize the JSON body: response_format.type `json_schema` is unavailable now"),
    (422, "Failed to deserialize the JSON body: tool_choice: expected one of `none`, `auto`, `required`"),
    (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    (400, "response_format value as json_schema is enabled only for api versions 2024-08-01 and later"),
    (400, "'response_format.type' must be 'json_schema' or 'text'"),
    (400, "This model does not support response format `json_schema`. See the supported models."),
    (400, "Model does not support formatted output."), (400, "JSON mode is not supported for this model."),
    (422, "[{'type': 'extra_forbidden', 'loc': ['body', 'response_format', 'json_schema']}]"),
    (400, "tool_choice forces tool use is not compatible with this model"),
    (400, "The tool_choice parameter does not support being set to required or object in thinking mode"),
    (400, "tool_choice 'specified' is incompatible with thinking enabled"),
    (400, "'claude-3-haiku-20240307' does not support output format."),
    (404, "No endpoints found that support tool use. Try disabling it."),
    (404, "No endpoints found that support the provided 'tool_choice' value."),
    (404, "No endpoints found that can handle the requested parameters."),
    (400, "This model doesn't support the toolConfig.toolChoice.any field. Remove it and try again"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (400, "JSON schema conversion failed: unrecognized schema"), (500, "tools param requires --jinja flag"),
    (501, "response_format is not implemented"),
    (400, "Structured outputs are not available for this deployment"),
    (400, "Request contains an invalid argument."), (400, "Provider returned error"),
    (400, "Invalid schema for response_format 'score_reply'."),
    (422, "body.response_format: Extra inputs are not permitted"),
]  # fmt: skip
BOUND = [
    (400, "Invalid schema for response_format 'score_reply': 'minimum' is not permitted."),
    (400, "output_config.format.schema: For 'number' type, property 'minimum' is not supported"),
    (400, "Invalid JSON schema: maxLength is not supported"),
    (400, "The provided JSON schema contains features not supported by xgrammar."),
    (400, "Failed to initialize samplers: failed to parse grammar"),
    (
        400,
        "Invalid value at 'tools[0].function_declarations[0].parameters.enum[0]' (TYPE_STRING), 7",
    ),
    (400, "The specified schema produces a constraint that has too many states for serving."),
    (400, "output_config.format.schema: Schema is too complex for compilation"),
]
ROLE = [
    (500, "System role not supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, "message role not supported yet: system"),
    (400, "模型不支持的 message role: system"),
    (400, 'role only allows "user" / "assistant", not "system"'),
    (
        400,
        "invalid parameter 'messages[0].role': invalid role 'developer', must be one of: user, assistant",
    ),
    (400, "Only user and assistant roles are supported!"),
    (400, "Unexpected role 'system' after role 'user'"),
]
PARAMETER = [
    ("temperature", "`temperature` may only be set to 1 when thinking is enabled."),
    ("temperature", "`temperature` and `top_p` cannot both be specified for this model."),
    ("temperature", "invalid temperature: only 1 is allowed for this model"),
    ("top_p", "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."),
    ("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model."),
    ("seed", "seed: Extra inputs are not permitted"),
]
OTHER = [
    (400, "The maximum context length is 8192 tokens, but you used 9000 (1000 in the tools)"),
    (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    (400, "Your organisation must be verified to use tools of the trade."),
    (400, "The response was filtered due to the content management policy; see response_format"),
    (401, "Invalid API key for tool_choice"), (404, "The model `gpt-9` does not exist"),
    (429, "Rate limit reached for response_format requests"),
    (500, "The server had an error while processing the response_format"), (503, "The model is overloaded"),
    (400, "Invalid 'temperature': expected a value <= 1."),
    (400, "The temperature value of 3 is outside the supported range from 0 to 2."),
    (400, "max_tokens is too large: 900. This model supports at most 512."),
    (404, "The requested model 'gpt-4o-mini' is not supported here."),
    (400, "Please use a valid role: user, model."), (400, "Your system is not supported by our sales team"),
]  # fmt: skip


def rejected(status: int, words: str, parameter: str | None = None) -> str | None:
    return ProviderFault(
        ResponseError(words, status, body={"param": parameter})
    ).rejected_parameter({})


@pytest.mark.parametrize(("expected", "status", "words"), [
    *((STRUCTURE, *case) for case in FORM), *((BOUNDS, *case) for case in BOUND),
    *((SYSTEM, *case) for case in ROLE), *((parameter, 400, words) for parameter, words in PARAMETER),
    *((None, *case) for case in OTHER),
], ids=str)  # fmt: skip
def test_what_is_refused_is_known_by_the_words(
    expected: str | None, status: int, words: str
) -> None:
    assert rejected(status, words) == expected
    if expected == STRUCTURE:
        assert rejected(status, f"BadRequestError: Error code: {status} - {words}") == STRUCTURE
    if expected == SYSTEM:
        assert rejected(status, words, "messages[0].role") == SYSTEM


def test_the_parameter_that_a_provider_names_counts_more_than_its_words() -> None:
    words = "'messages' must contain 'json' in some form, to use 'response_format' of type 'json_object'."
    assert rejected(400, words, "response_format") == STRUCTURE
    assert (
        rejected(400, "not supported together with response_format", "temperature") == "temperature"
    )
