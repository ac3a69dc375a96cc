"""Define the JSON of the two providers: requests, their faults, and replies."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

OPENAI_PATH = "/v1/chat/completions"
ANTHROPIC_PATH = "/v1/messages"
GOOGLE_PATH = re.compile(r"/v1(?:beta)?/models/(?P<model>[^:/]+):generateContent")
OPENAI_FIELDS = {
    *(
        "model",
        "messages",
        "stream",
        "n",
        "stop",
        "seed",
        "prompt_cache_key",
        "user",
        "store",
        "metadata",
        "service_tier",
    ),
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs"),
    *("max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity", "top_logprobs"),
    *("response_format", "tools", "tool_choice", "parallel_tool_calls"),
}
GOOGLE_FIELDS = {
    *("contents", "systemInstruction", "safetySettings", "generationConfig"),
    *("tools", "toolConfig", "cachedContent"),
}
GOOGLE_CONFIG = {
    *(
        "temperature",
        "topP",
        "topK",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
        "thinkingConfig",
    ),
    *("candidateCount", "maxOutputTokens", "stopSequences", "responseLogprobs", "logprobs"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
}


@dataclass(frozen=True)
class Usage:
    """Tokens, including cached input tokens and output tokens for hidden reasoning."""

    input: int = 100
    cached: int = 0
    output: int = 20
    reasoning: int = 0


@dataclass(frozen=True)
class Text:
    """A reply with status 200. ``fields`` are the requested JSON object of a schema or a tool.

    ``top`` has the most likely tokens of each token with their probabilities; ``about`` replaces or
    extends fields of OpenAI's JSON.
    """

    text: str = ""
    fields: dict[str, Any] | None = None
    finish: Literal["stop", "length", "blocked"] = "stop"
    refusal: str | None = None
    usage: Usage | None = Usage()
    top: tuple[dict[str, float], ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """An error status with the provider's message."""

    status: int
    message: str = "The server had an error."
    param: str | None = None
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A client's request; the properties read both providers' JSON alike."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def is_google(self) -> bool:
        return GOOGLE_PATH.fullmatch(self.path) is not None

    @property
    def is_anthropic(self) -> bool:
        return self.path.partition("?")[0] == ANTHROPIC_PATH

    @property
    def model(self) -> str:
        match = GOOGLE_PATH.fullmatch(self.path)
        return match["model"] if match else str(self.body.get("model"))

    @property
    def choices(self) -> int:
        config = self.body.get("generationConfig") or {}
        return int((config.get("candidateCount") if self.is_google else self.body.get("n")) or 1)

    @property
    def parameters(self) -> dict[str, Any]:
        if self.is_google:
            return dict(self.body.get("generationConfig") or {})
        return {
            key: value
            for key, value in self.body.items()
            if key not in {"model", "messages", "stream"}
        }

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Return role and text of each message, with the same roles for both providers."""
        if self.is_google:
            names = {"user": "user", "model": "assistant"}
            said = [(names[c["role"]], _parts(c)) for c in self.body["contents"]]
            system = self.body.get("systemInstruction")
            return [("system", _parts(system)), *said] if system else said
        names = {"developer": "system"}
        if self.is_anthropic and self.body.get("system"):
            told = [("system", _content(self.body["system"]))]
            return [*told, *((m["role"], _content(m["content"])) for m in self.body["messages"])]
        return [
            (names.get(m["role"], m["role"]), _content(m["content"])) for m in self.body["messages"]
        ]

    @property
    def system(self) -> str:
        return next(text for role, text in self.messages if role == "system")

    @property
    def user(self) -> str:
        """The first user message: material, log, the agent's own part."""
        return next(text for role, text in self.messages if role == "user")

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the reply is to follow, however it was sent."""
        if self.is_google:
            schema = self.parameters.get("responseJsonSchema")
            return dict(schema) if schema else None
        if self.is_anthropic:
            schema = ((self.body.get("output_config") or {}).get("format") or {}).get("schema")
            return dict(schema) if schema else None
        if self.body.get("tools"):
            return dict(self.body["tools"][0]["function"]["parameters"])
        wanted = self.body.get("response_format") or {}
        return (
            dict(wanted["json_schema"]["schema"]) if wanted.get("type") == "json_schema" else None
        )

    @property
    def form(self) -> str | None:
        """The name of the requested form of the reply, such as ``score_reply``."""
        if self.body.get("tools") and not self.is_google:
            return str(self.body["tools"][0]["function"]["name"])
        return None if self.schema is None else str(self.schema["title"])


def problem_with(request: Request) -> Failure | None:
    """Return the fault that a provider would find, if any."""
    if request.is_google:
        return _google_problem(request)
    if request.is_anthropic:
        if not {"x-api-key", "authorization"} & request.headers.keys():
            return Failure(401, f"no key among {sorted(request.headers)}")
        return None
    if request.path.partition("?")[0] != OPENAI_PATH:
        return Failure(404, f"Invalid URL (POST {request.path})")
    return _openai_problem(request)


def error_body(request: Request, failure: Failure) -> Any:
    status = failure.status
    message = failure.message
    if request.is_google:
        names = {
            400: "INVALID_ARGUMENT",
            401: "UNAUTHENTICATED",
            403: "PERMISSION_DENIED",
            404: "NOT_FOUND",
        }
        names |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
        return {
            "error": {"code": status, "message": message, "status": names.get(status, "UNKNOWN")}
        }
    if request.is_anthropic:
        kinds = {401: "authentication_error", 429: "rate_limit_error", 500: "api_error"}
        kind = kinds.get(status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req"}
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {
        "error": {"message": message, "type": kind, "param": failure.param, "code": failure.code}
    }


def reply_body(request: Request, texts: Sequence[Text]) -> dict[str, Any]:
    if request.is_anthropic:
        return _anthropic_reply(request, texts[0])
    return _google_reply(request, texts) if request.is_google else _openai_reply(request, texts)


def _anthropic_reply(request: Request, text: Text) -> dict[str, Any]:
    usage = text.usage or Usage()
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": request.model},
        **{"content": [{"type": "text", "text": _words(text)}], "stop_reason": "end_turn"},
        **{
            "stop_sequence": None,
            "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
        },
    }


def _openai_problem(request: Request) -> Failure | None:
    body = request.body
    if not request.headers.get("authorization", "").startswith("Bearer "):
        return Failure(401, "You didn't provide an API key.", code="invalid_api_key")
    if unknown := sorted(body.keys() - OPENAI_FIELDS):
        words = f"Unrecognized request argument supplied: {unknown[0]}"
        return Failure(400, words, unknown[0], "unknown_parameter")
    roles = [message.get("role") for message in body.get("messages", [])]
    if not roles or not set(roles) <= {"system", "developer", "user", "assistant", "tool"}:
        return Failure(400, f"Invalid value: {roles}", "messages", "invalid_value")
    if any(not isinstance(message.get("content"), str | list) for message in body["messages"]):
        return Failure(400, "Invalid value for 'content': expected a string, got null.", "messages")
    if not 0 <= body.get("temperature", 1) <= 2:
        return Failure(400, "Invalid 'temperature': decimal above maximum value.", "temperature")
    return _openai_schema_problem(body)


def _openai_schema_problem(body: dict[str, Any]) -> Failure | None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        named = wanted["json_schema"]
        schema = wanted["json_schema"].get("schema", {})
        closed = schema.get("additionalProperties") is False
        whole = sorted(schema.get("required", [])) == sorted(schema.get("properties", {}))
        if not re.fullmatch(r"[\w-]{1,64}", named.get("name", "")):
            return Failure(400, "Invalid 'response_format.json_schema.name'", "response_format")
        if named.get("strict") and not (closed and whole):
            return Failure(400, "Invalid schema for response_format", "response_format")
    tools = {tool["function"]["name"] for tool in body.get("tools") or []}
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice["function"]["name"] not in tools:
        return Failure(400, f"Tool choice {choice} not found in 'tools' parameter.", "tool_choice")
    return None


def _google_problem(request: Request) -> Failure | None:
    if not request.headers.get("x-goog-api-key"):
        return Failure(403, "Method doesn't allow unregistered callers.")
    for where, known in ((request.body, GOOGLE_FIELDS), (request.parameters, GOOGLE_CONFIG)):
        if unknown := sorted(where.keys() - known):
            return Failure(
                400, f'Invalid JSON payload. Unknown name "{unknown[0]}": Cannot find field.'
            )
    roles = [content.get("role") for content in request.body.get("contents", [])]
    if roles != ["user", "model"] * (len(roles) // 2) + ["user"]:
        return Failure(
            400, f"Please ensure that turns alternate between user and model, got {roles}."
        )
    return None


def _openai_reply(request: Request, texts: Sequence[Text]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": "chatcmpl-loopback",
        "object": "chat.completion",
        "created": 1700000000,
        "model": request.model,
        "choices": [_openai_choice(request, at, text) for at, text in enumerate(texts)],
    }
    usage = texts[0].usage
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
    return body | dict(texts[0].about)


def _openai_choice(request: Request, at: int, text: Text) -> dict[str, Any]:
    finish = {"stop": "stop", "length": "length", "blocked": "content_filter"}[text.finish]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": _words(text),
        "refusal": text.refusal,
    }
    if text.refusal is not None:
        message["content"] = None
    elif request.body.get("tools") and (text.fields is not None):
        function = {"name": request.body["tools"][0]["function"]["name"], "arguments": _words(text)}
        call = {"id": "call_1", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    tokens = [_openai_token(token) for token in text.top] if request.body.get("logprobs") else None
    logprobs = {"content": tokens, "refusal": None} if tokens else None
    return {"index": at, "message": message, "finish_reason": finish, "logprobs": logprobs}


def _openai_token(top: dict[str, float]) -> dict[str, Any]:
    ranked = sorted(top.items(), key=lambda pair: -pair[1])
    entries = [
        {"token": token, "logprob": math.log(p), "bytes": list(token.encode())}
        for token, p in ranked
    ]
    return {**entries[0], "top_logprobs": entries}


def _google_reply(request: Request, texts: Sequence[Text]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "candidates": [_google_candidate(at, text) for at, text in enumerate(texts)],
        "modelVersion": request.model,
    }
    usage = texts[0].usage
    if usage is not None:
        body["usageMetadata"] = {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "totalTokenCount": usage.input + usage.output,
            "cachedContentTokenCount": usage.cached,
            "thoughtsTokenCount": usage.reasoning,
        }
    return body


def _google_candidate(at: int, text: Text) -> dict[str, Any]:
    finish = {"stop": "STOP", "length": "MAX_TOKENS", "blocked": "SAFETY"}[text.finish]
    words = _words(text)
    content = {"role": "model", "parts": [{"text": words}]} if words else {"role": "model"}
    return {"index": at, "content": content, "finishReason": finish}


def _words(text: Text) -> str:
    return text.text if text.fields is None else json.dumps(text.fields)


def _parts(content: Mapping[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content.get("parts", []))


def _content(content: str | list[dict[str, Any]]) -> str:
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )
