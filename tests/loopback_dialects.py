"""Serve providers on loopback, each in its real format, for tests through its own client.

A dialect reads how a request of its client asks for JSON and whether it has a system message. It
writes an answer of the script in the provider's format: a reply with its ending and reasoning, or a
refusal. A client's package is imported with its first chat model, since together they take 60 MB.
"""

import json
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, ClassVar, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from .loopback_http import Handler, serving_http

Form = Literal["schema", "tool", "json", "text"]
Ending = Literal["complete", "cut_off", "refused", "filtered"]
Body = Mapping[str, Any]
KEY = SecretStr("test-key")
CLIENT_CACHES = {
    "langchain_openai.chat_models._client_utils": "_cached_sync_httpx_client",
    "langchain_anthropic._client_utils": "_get_default_httpx_client",
}


@dataclass(frozen=True)
class Said:
    """A model's answer: words, or fields in the requested form, and its ending."""

    words: str = ""
    fields: Body | None = None
    ending: Ending = "complete"
    reasoning: str = ""

    def text(self) -> str:
        return self.words if self.fields is None else json.dumps(self.fields)


@dataclass(frozen=True)
class Refusal:
    """A provider's refusal instead of a reply."""

    status: int
    words: str
    code: str = "invalid_request_error"


@dataclass(frozen=True)
class Asked:
    """The contents, address and account of a request."""

    form: Form
    has_system: bool
    body: Body
    path: str
    headers: Mapping[str, str]


Script = Callable[[Asked], Said | Refusal]

ENDINGS: Mapping[str, Mapping[Ending, str]] = {
    "openai": {
        "complete": "stop",
        "cut_off": "length",
        "refused": "stop",
        "filtered": "content_filter",
    },
    "responses": {
        "complete": "",
        "cut_off": "max_output_tokens",
        "refused": "",
        "filtered": "content_filter",
    },
    "anthropic": {"complete": "end_turn", "cut_off": "max_tokens", "refused": "refusal"},
    "gemini": {"complete": "STOP", "cut_off": "MAX_TOKENS", "filtered": "SAFETY"},
    "bedrock": {
        "complete": "end_turn",
        "cut_off": "max_tokens",
        "filtered": "guardrail_intervened",
    },
    "ollama": {"complete": "stop", "cut_off": "length"},
    "mistral": {"complete": "stop", "cut_off": "model_length"},
    "groq": {"complete": "stop", "cut_off": "length"},
    "deepseek": {"complete": "stop", "cut_off": "length", "filtered": "content_filter"},
}
"""Each provider's words for the endings that it knows."""

_UNAVAILABLE = Refusal(400, "This response_format type is unavailable now")
_OPENAI: Mapping[Form, Refusal] = {
    "schema": Refusal(
        400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported."
    ),
    "tool": Refusal(400, "tools is not supported in this model."),
    "json": Refusal(
        400, "Invalid parameter: 'response_format' of type 'json_object' is not supported."
    ),
}
_TEXT_FORMAT = "Invalid parameter: 'text.format' of type 'json_schema' is not supported."
REFUSALS: Mapping[str, Mapping[Form, Refusal]] = {
    "openai": _OPENAI,
    "responses": {**_OPENAI, "schema": Refusal(400, _TEXT_FORMAT)},
    "anthropic": {
        "schema": Refusal(400, "output_config: Extra inputs are not permitted"),
        "tool": Refusal(400, "Thinking may not be enabled when tool_choice forces tool use."),
    },
    "gemini": {
        "schema": Refusal(
            400, 'Invalid JSON payload. Unknown name "responseJsonSchema": Cannot find field.'
        ),
        "tool": Refusal(400, "Function calling is not enabled for models/gemma-3-27b-it"),
        "json": Refusal(400, "JSON mode is not enabled for models/gemma-3-27b-it"),
    },
    "bedrock": {
        "schema": Refusal(
            400, "This model doesn't support the outputConfig field. Remove it and try again."
        ),
        "tool": Refusal(400, "This model doesn't support tool use."),
    },
    "ollama": {
        "schema": Refusal(400, "invalid JSON schema in format"),
        "tool": Refusal(400, "registry.ollama.ai/library/gemma2:latest does not support tools"),
        "json": Refusal(400, "failed to parse grammar"),
    },
    "mistral": {
        "schema": Refusal(422, "response_format.json_schema: Extra inputs are not permitted"),
        "tool": Refusal(400, "Function calling is not enabled for this model"),
        "json": Refusal(422, "response_format.type: Input should be 'text'"),
    },
    "groq": {
        "schema": Refusal(400, "This model does not support response format `json_schema`."),
        "tool": Refusal(400, "`tool calling` is not supported with this model"),
        "json": Refusal(400, "This model does not support response format `json_object`."),
    },
    "deepseek": {
        "schema": _UNAVAILABLE,
        "tool": Refusal(400, "Thinking mode does not support this tool_choice"),
        "json": _UNAVAILABLE,
    },
}
"""How each provider refuses each form that its client can ask for."""

CLIENTS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "openai": ("openai", "ChatOpenAI", {"model": "gpt-4o-mini", "base_url": "{}/v1"}),
    "responses": (
        "openai",
        "ChatOpenAI",
        {"model": "o3-pro", "base_url": "{}/v1", "use_responses_api": True},
    ),
    "anthropic": ("anthropic", "ChatAnthropic", {"model": "claude-opus-4-8", "base_url": "{}"}),
    "gemini": (
        "google_genai",
        "ChatGoogleGenerativeAI",
        {"model": "gemini-2.0-flash", "base_url": "{}"},
    ),
    "ollama": ("ollama", "ChatOllama", {"model": "gemma2", "base_url": "{}", "reasoning": True}),
    "mistral": ("mistralai", "ChatMistralAI", {"model_name": "mistral-small", "base_url": "{}/v1"}),
    "groq": ("groq", "ChatGroq", {"model_name": "llama-3.3-70b-versatile", "base_url": "{}"}),
    "deepseek": ("deepseek", "ChatDeepSeek", {"model_name": "deepseek-chat", "api_base": "{}"}),
}
"""LangChain's package and class for each provider, and its fields; braces take the server's
address."""


def form_of(body: Body) -> Form:
    """In which form a request asks for its reply, whosever request it is."""
    if body.get("tools") or body.get("toolConfig"):
        return "tool"
    config = body.get("generationConfig") or {}
    wanted = body.get("format")
    kind = (body.get("response_format") or (body.get("text") or {}).get("format") or {}).get("type")
    schemas = (
        config.get("responseJsonSchema"),
        config.get("responseSchema"),
        body.get("outputConfig"),
    )
    if any(schemas) or (body.get("output_config") or {}).get("format"):
        return "schema"
    if kind == "json_schema" or isinstance(wanted, dict):
        return "schema"
    return "json" if kind == "json_object" or wanted or config.get("responseMimeType") else "text"


def has_system(body: Body) -> bool:
    messages = body.get("messages") or body.get("input") or []
    roles = {message.get("role") for message in messages}
    return bool(
        body.get("system") or body.get("systemInstruction") or roles & {"system", "developer"}
    )


class Dialect(ABC):
    """The format of one provider."""

    name: ClassVar[str]
    system_refusal: ClassVar[Refusal]

    def chat(self, url: str) -> BaseChatModel:
        package, name, fields = CLIENTS[self.name]
        given = {
            field: part.replace("{}", url) if isinstance(part, str) else part
            for field, part in fields.items()
        }
        if name != "ChatOllama":
            # Gemini's and Mistral's count attempts, the others retries.
            given |= {"api_key": KEY, "max_retries": int(self.name in ("gemini", "mistral"))}
        chat: BaseChatModel = getattr(import_module(f"langchain_{package}"), name)(**given)
        return chat

    @abstractmethod
    def reply(self, said: Said, form: Form) -> Any:
        """Return the body of a reply; the server replaces its model by the requested one."""

    def error(self, refusal: Refusal) -> Any:
        told = {"message": refusal.words, "type": refusal.code, "param": None, "code": refusal.code}
        return {"error": told}

    def ending(self, said: Said) -> str:
        return ENDINGS[self.name][said.ending]

    def tool(self, said: Said, form: Form) -> Body | None:
        """Return the arguments of a tool, if it was requested and is used."""
        return said.fields if form == "tool" and said.ending != "refused" else None


class OpenAI(Dialect):
    """Chat completions."""

    name = "openai"
    system_refusal = Refusal(
        400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."
    )

    def reply(self, said: Said, form: Form) -> Any:
        choice = {
            "index": 0,
            "message": self.message(said, form),
            "finish_reason": self.ending(said),
        }
        return {
            **{"id": "1", "object": "chat.completion", "created": 1700000000, "model": ""},
            "choices": [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }

    def message(self, said: Said, form: Form) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text()}
        if said.ending == "refused":
            message |= {"content": None, "refusal": said.text()}
        if (arguments := self.tool(said, form)) is not None:
            function = {"name": "score_reply", "arguments": json.dumps(arguments)}
            call = {"id": "call_1234a", "type": "function", "function": function}
            message |= {"content": "", "tool_calls": [call]}
        return message | ({"reasoning_content": said.reasoning} if said.reasoning else {})


class DeepSeek(OpenAI):
    """Chat completions with reasoning next to the text, without schemas."""

    name = "deepseek"


class Groq(OpenAI):
    """Chat completions, with a special refusal of words that are not JSON."""

    name = "groq"

    def message(self, said: Said, form: Form) -> dict[str, Any]:
        message = super().message(said, form)
        return message | ({"reasoning": message.pop("reasoning_content")} if said.reasoning else {})


class Mistral(OpenAI):
    """Chat completions with reasoning in blocks, and errors of a web framework."""

    name = "mistral"

    def error(self, refusal: Refusal) -> Any:
        return {"object": "error", "message": refusal.words, "type": refusal.code, "code": None}

    def message(self, said: Said, form: Form) -> dict[str, Any]:
        message = super().message(said, form)
        if message.pop("reasoning_content", None):
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": said.reasoning}]}
            message["content"] = [thought, {"type": "text", "text": message["content"]}]
        return message


class Responses(OpenAI):
    """OpenAI's Responses API."""

    name = "responses"

    def reply(self, said: Said, form: Form) -> Any:
        output: list[dict[str, Any]] = []
        if said.reasoning:
            summary = [{"type": "summary_text", "text": said.reasoning}]
            output.append({"type": "reasoning", "id": "r1", "summary": summary})
        if (arguments := self.tool(said, form)) is not None:
            call = {"type": "function_call", "id": "f1", "call_id": "c1", "status": "completed"}
            output.append({**call, "name": "score_reply", "arguments": json.dumps(arguments)})
        else:
            text = {"type": "output_text", "text": said.text(), "annotations": []}
            refusal = {"type": "refusal", "refusal": said.text()}
            message = {"type": "message", "id": "m1", "status": "completed", "role": "assistant"}
            output.append({**message, "content": [refusal if said.ending == "refused" else text]})
        reason = self.ending(said)
        return {
            **{"id": "resp_1", "object": "response", "created_at": 1700000000, "model": ""},
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            **{"output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
            "usage": {
                **{"input_tokens": 100, "output_tokens": 20, "total_tokens": 120},
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }


class Anthropic(Dialect):
    """Messages."""

    name = "anthropic"
    system_refusal = Refusal(400, "This model does not support system prompts.")

    def error(self, refusal: Refusal) -> Any:
        return {"type": "error", "error": {"type": refusal.code, "message": refusal.words}}

    def reply(self, said: Said, form: Form) -> Any:
        thought = {"type": "thinking", "thinking": said.reasoning, "signature": "x"}
        answer: dict[str, Any] = {"type": "text", "text": said.text()}
        ending = self.ending(said)
        if (arguments := self.tool(said, form)) is not None:
            answer = {"type": "tool_use", "id": "t1", "name": "score_reply", "input": arguments}
            ending = "tool_use" if said.ending == "complete" else ending
        return {
            **{"id": "1", "type": "message", "role": "assistant", "model": ""},
            "content": [thought, answer] if said.reasoning else [answer],
            **{"stop_reason": ending, "stop_sequence": None},
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }


class Gemini(Dialect):
    """``generateContent``."""

    name = "gemini"
    system_refusal = Refusal(400, "Developer instruction is not enabled for models/gemma-3-27b-it")

    def error(self, refusal: Refusal) -> Any:
        return {
            "error": {
                "code": refusal.status,
                "message": refusal.words,
                "status": "INVALID_ARGUMENT",
            }
        }

    def reply(self, said: Said, form: Form) -> Any:
        answer: dict[str, Any] = {"text": said.text()}
        if (arguments := self.tool(said, form)) is not None:
            answer = {"functionCall": {"name": "score_reply", "args": arguments}}
        parts = [{"text": said.reasoning, "thought": True}, answer] if said.reasoning else [answer]
        finish = {"index": 0, "finishReason": self.ending(said)}
        return {
            "candidates": [{**finish, "content": {"role": "model", "parts": parts}}],
            "modelVersion": "gemini-2.0-flash",
            "usageMetadata": {
                "promptTokenCount": 100,
                "candidatesTokenCount": 20,
                "totalTokenCount": 120,
            },
        }


class Ollama(Dialect):
    """``/api/chat``, which sends one JSON object a line."""

    name = "ollama"
    system_refusal = Refusal(500, "template: System role not supported")

    def error(self, refusal: Refusal) -> Any:
        return {"error": refusal.words}

    def reply(self, said: Said, form: Form) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": said.text()}
        if (arguments := self.tool(said, form)) is not None:
            call = {"function": {"name": "score_reply", "arguments": arguments}}
            message |= {"content": "", "tool_calls": [call]}
        if said.reasoning:
            message["thinking"] = said.reasoning
        about = {"model": "", "created_at": "2025-01-01T00:00:00Z"}
        counts = {"prompt_eval_count": 100, "eval_count": 20, "total_duration": 1}
        end = {"message": {"role": "assistant", "content": ""}, "done": True}
        last = {**about, **end, **counts, "done_reason": self.ending(said)}
        return [{**about, "message": message, "done": False}, last]


@cache
def _aws() -> Any:
    """Share one session among clients; each session reads megabytes of service descriptions."""
    secret = KEY.get_secret_value()
    session: Any = import_module("boto3").Session
    return session(region_name="us-east-1", aws_access_key_id=secret, aws_secret_access_key=secret)


class Bedrock(Dialect):
    """Converse, through AWS's own client."""

    name = "bedrock"
    system_refusal = Refusal(
        400, "This model doesn't support system messages. Try again without a system message."
    )

    def chat(self, url: str) -> BaseChatModel:
        services = {"client": "bedrock-runtime", "bedrock_client": "bedrock"}
        fields = {
            field: _aws().client(service, endpoint_url=url) for field, service in services.items()
        }
        model = "anthropic.claude-3-haiku-20240307-v1:0"
        chat: BaseChatModel = import_module("langchain_aws").ChatBedrockConverse(
            model_id=model, **fields
        )
        return chat

    def error(self, refusal: Refusal) -> Any:
        return {"message": refusal.words}

    def reply(self, said: Said, form: Form) -> Any:
        answer: dict[str, Any] = {"text": said.text()}
        if (arguments := self.tool(said, form)) is not None:
            answer = {"toolUse": {"toolUseId": "t1", "name": "score_reply", "input": arguments}}
        thought = {
            "reasoningContent": {"reasoningText": {"text": said.reasoning, "signature": "x"}}
        }
        content = [thought, answer] if said.reasoning else [answer]
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": self.ending(said),
            "usage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120},
            "metrics": {"latencyMs": 1},
        }


DIALECTS = {
    kind.name: kind()
    for kind in (OpenAI, Responses, Anthropic, Gemini, Bedrock, Ollama, Mistral, Groq, DeepSeek)
}
PATHS = {"/messages": "anthropic", "/responses": "responses", "/api/chat": "ollama"}
PATHS |= {"/chat/completions": "openai", ":generateContent": "gemini"}
"""From the end of an address to the dialect that is spoken there."""


@dataclass
class Server:
    """The server's address and requests; without a dialect, the address selects it."""

    url: str
    dialect: Dialect | None
    script: Script
    asked: list[Asked] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


def close(chat: BaseChatModel) -> None:
    """Close the connections of a client, since most clients never do so themselves."""
    for name in ("root_client", "client", "_client"):
        holder = getattr(chat, name, None)
        for client in (holder, getattr(holder, "_client", None)):
            if callable(closing := getattr(client, "close", None)):
                closing()
    # LangChain caches closed clients by address, and a later server may have the same port.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        for package, clients in CLIENT_CACHES.items():
            if package in sys.modules:
                getattr(sys.modules[package], clients).cache_clear()


@contextmanager
def serving(dialect: Dialect | None, script: Script) -> Iterator[Server]:
    provider = Server("", dialect, script)
    with serving_http(_Handler, provider=provider) as provider.url:
        yield provider


class _Handler(Handler):
    provider: Server

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = self.fields()
        spoken_at = (DIALECTS[name] for end, name in PATHS.items() if path.endswith(end))
        dialect = self.provider.dialect or next(spoken_at)
        asked = Asked(form_of(body), has_system(body), body, path, self.named_headers())
        self.provider.asked.append(asked)
        said = self.provider.script(asked)
        if isinstance(said, Refusal):
            error = (
                {"x-amzn-ErrorType": "ValidationException"} if isinstance(dialect, Bedrock) else {}
            )
            self._send(
                said.status, [dialect.error(said)], {"Content-Type": "application/json", **error}
            )
            return
        reply = dialect.reply(said, asked.form)
        lines = reply if isinstance(reply, list) else [reply]
        for line in lines:
            if "model" in line:
                line["model"] = body["model"]
        kind = "x-ndjson" if isinstance(dialect, Ollama) else "json"
        self._send(200, lines, {"Content-Type": f"application/{kind}"})

    def _send(self, status: int, lines: list[Any], headers: Mapping[str, str]) -> None:
        self.answer(b"".join(json.dumps(line).encode() + b"\n" for line in lines), status, headers)
