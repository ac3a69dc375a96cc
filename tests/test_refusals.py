"""What providers and servers say when they refuse a form, a role or a parameter.

Beside what is in ``loopback_dialects``, whose words ``test_dialects`` has real clients pass on.
"""

from __future__ import annotations

import pytest
from jurygraph.nodes.models.capabilities import BOUNDS, STRUCTURE, SYSTEM
from jurygraph.nodes.models.refusals import rejected_parameter

FORM = [
    (422, "Failed to deserialize the JSON body: response_format.type `json_schema` is unavailable now"),
    (422, "Failed to deserialize the JSON body: tool_choice: expected one of `none`, `auto`, `required`"),
    (400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."),
    (400, "response_format value as json_schema is enabled only for api versions 2024-08-01 and later"),
    (400, "'response_format.type' must be 'json_schema' or 'text'"),
    (400, "This model does not support response format `json_schema`. See the supported models."),
    (400, "Model does not support formatted output."),
    (400, "JSON mode is not supported for this model."),
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
    (400, "JSON schema conversion failed: unrecognized schema"),
    (500, "tools param requires --jinja flag"),
    (501, "response_format is not implemented"),
    (400, "Structured outputs are not available for this deployment"),
    (400, "Request contains an invalid argument."),
    (400, "Provider returned error"),
    (400, "Invalid schema for response_format 'score_reply'."),
    (422, "body.response_format: Extra inputs are not permitted"),
]
BOUND = [
    (400, "Invalid schema for response_format 'score_reply': 'minimum' is not permitted."),
    (400, "output_config.format.schema: For 'number' type, property 'minimum' is not supported"),
    (400, "Invalid JSON schema: maxLength is not supported"),
    (400, "The provided JSON schema contains features not supported by xgrammar."),
    (400, "Failed to initialize samplers: failed to parse grammar"),
    (400, "Invalid value at 'tools[0].function_declarations[0].parameters.enum[0]' (TYPE_STRING), 7"),
    (400, "The specified schema produces a constraint that has too many states for serving."),
    (400, "output_config.format.schema: Schema is too complex for compilation"),
]
ROLE = [
    (500, "System role not supported"),
    (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    (400, "message role not supported yet: system"),
    (400, "模型不支持的 message role: system"),
    (400, 'role only allows "user" / "assistant", not "system"'),
    (400, "invalid parameter 'messages[0].role': invalid role 'developer', must be one of: user, assistant"),
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
    (401, "Invalid API key for tool_choice"),
    (404, "The model `gpt-9` does not exist"),
    (429, "Rate limit reached for response_format requests"),
    (500, "The server had an error while processing the response_format"),
    (503, "The model is overloaded"),
    (400, "Invalid 'temperature': expected a value <= 1."),
    (400, "The temperature value of 3 is outside the supported range from 0 to 2."),
    (400, "max_tokens is too large: 900. This model supports at most 512."),
    (404, "The requested model 'gpt-4o-mini' is not supported here."),
    (400, "Please use a valid role: user, model."),
    (400, "Your system is not supported by our sales team"),
]


@pytest.mark.parametrize(
    ("expected", "status", "words"),
    [
        *((STRUCTURE, *case) for case in FORM),
        *((BOUNDS, *case) for case in BOUND),
        *((SYSTEM, *case) for case in ROLE),
        *((parameter, 400, words) for parameter, words in PARAMETER),
        *((None, *case) for case in OTHER),
    ],
    ids=str,
)
def test_what_is_refused_is_known_by_the_words(expected: str | None, status: int, words: str) -> None:
    assert rejected_parameter(status, words, None, {}) == expected
    if expected == STRUCTURE:
        told = f"BadRequestError: Error code: {status} - {words}"
        assert rejected_parameter(status, told, None, {}) == STRUCTURE
    if expected == SYSTEM:
        assert rejected_parameter(status, words, "messages[0].role", {}) == SYSTEM


def test_the_parameter_that_a_provider_names_counts_more_than_its_words() -> None:
    words = "'messages' must contain 'json' in some form, to use 'response_format' of type 'json_object'."
    assert rejected_parameter(400, words, "response_format", {}) == STRUCTURE
    words = "not supported together with response_format"
    assert rejected_parameter(400, words, "temperature", {}) == "temperature"
