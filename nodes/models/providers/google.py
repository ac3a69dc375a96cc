"""Google's Gemini API."""

from __future__ import annotations

from typing import Any

import orjson

from .provider import Client, JsonSchema, Options, Provider, SendBody


def _json_schema(asked: JsonSchema) -> Options:
    return {"response_mime_type": "application/json", "response_json_schema": asked.schema}


async def _ask_through(
    chat: Any, send: SendBody, messages: Any, stop: Any = None, **options: Any
) -> Any:
    from google.genai.types import GenerateContentResponse, InlinedRequest
    from langchain_google_genai.chat_models import _response_to_result

    request = chat._prepare_request(
        messages, stop=stop, **{"cached_content": chat.cached_content, **options}
    )
    # The client's HTTP options are not part of the request.
    request["config"] = request["config"].model_copy(update={"http_options": None})
    body = await send(InlinedRequest(**request).model_dump(mode="json", exclude_none=True))
    # As JSON, since bytes are text in it.
    return _response_to_result(GenerateContentResponse.model_validate_json(orjson.dumps(body)))


CHAT_GOOGLE = Client(
    class_name="ChatGoogleGenerativeAI",
    json_schema=_json_schema,
    json_object={"response_mime_type": "application/json"},
    bounds="lists",  # it accepts some bounds of numbers, and no lengths of texts
    tool_bounds="none",  # its tools accept lists of texts only
    # Its two HTTP clients have different names for following redirects, which neither may do.
    arguments={"client_args": {"allow_redirects": False, "follow_redirects": False}},
    retries=1,  # it counts the first attempt as one of them
    # It returns an empty message for any JSON without a reply, such as the error page of a proxy.
    empty_if_unread=True,
    ask_through=_ask_through,
)

GOOGLE = Provider(
    title="Gemini",
    names=("google_genai",),
    clients=(CHAT_GOOGLE,),
    key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    address_variables=("GOOGLE_GEMINI_BASE_URL",),
    price_list="google",
    telemetry={"google_genai": "gcp.gemini"},
    finish_reasons={
        "complete": ("stop", "finish_reason_stop"),
        "cut_off": (
            "max_tokens",
            "finish_reason_max_tokens",
            "malformed_function_call",
            "unexpected_tool_call",
            "other",
        ),
        "filtered": (
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "image_safety",
            "language",
            "model_armor",
        ),
    },
    refusals={
        "unexplained": ("request contains an invalid argument",),
        "unsupported": ("cannot find field",),
        "too_much": (
            "too many states",
            r"\benum\[",
        ),
    },
    error_codes={"too_many": ("RESOURCE_EXHAUSTED",)},
    statuses={
        400: ("INVALID_ARGUMENT",),
        401: ("UNAUTHENTICATED",),
        403: ("PERMISSION_DENIED",),
        404: ("NOT_FOUND",),
    },
    parameters={
        "response_format": ("response_schema", "response_json_schema", "response_mime_type"),
        "max_tokens": ("max_output_tokens",),
    },
    reasoning_models=r"gemini-(?:2\.5|[3-9]|flash-latest|pro-latest)",
    batch_client=CHAT_GOOGLE.class_name,
)
