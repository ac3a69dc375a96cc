"""Providers on the loopback interface, each in the format that it really sends, for tests through its own client.

A dialect says how a request of its client asks for JSON and whether it has a system message, and puts what a script
says into the provider's words: a reply with its ending and reasoning, or a refusal. A client's package is imported
with its first chat: together they take 60 MB.
"""

from __future__ import annotations

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
KEY = SecretStr("test-key")
CLIENT_CACHES = {
    "langchain_openai.chat_models._client_utils": "_cached_sync_httpx_client",
    "langchain_anthropic._client_utils": "_get_default_httpx_client",
}


@dataclass(frozen=True)
class Said:
    """What a model says: words, or fields in the form that was asked for; and how it ends."""

    words: str = ""
    fields: Mapping[str, Any] | None = None
    ending: Ending = "complete"
    reasoning: str = ""

    def text(self) -> str:
        """The words, or the fields as JSON."""
        return self.words if self.fields is None else json.dumps(self.fields)


@dataclass(frozen=True)
class Refusal:
    """What a provider says in place of a reply."""

    status: int
    words: str
    code: str = "invalid_request_error"


@dataclass(frozen=True)
class Asked:
    """What a request asks for."""

    form: Form
    has_system: bool
    body: Mapping[str, Any]


Script = Callable[[Asked], Said | Refusal]


class Dialect(ABC):
    """How one provider speaks; ``endings`` has its words for those that it knows."""

    name: ClassVar[str]
    endings: ClassVar[Mapping[Ending, str]]
    refusals: ClassVar[Mapping[Form, Refusal]]
    """How it refuses each form that its client can ask for."""
    system_refusal: ClassVar[Refusal]

    @abstractmethod
    def chat(self, url: str) -> BaseChatModel:
        """The provider's own client, pointed to the server."""

    @abstractmethod
    def form(self, body: Mapping[str, Any]) -> Form:
        """In which form a request asks for its reply."""

    @abstractmethod
    def has_system(self, body: Mapping[str, Any]) -> bool:
        """Whether a request has a system message."""

    @abstractmethod
    def reply(self, said: Said, form: Form) -> Any:
        """The body of a reply."""

    def error(self, refusal: Refusal) -> Any:
        """The body of an error."""
        return {
            "error": {"message": refusal.words, "type": refusal.code, "param": None, "code": refusal.code}
        }

    def tool(self, said: Said, form: Form) -> Mapping[str, Any] | None:
        """The arguments of a tool, where one was asked for and is answered with."""
        return said.fields if form == "tool" and said.ending != "refused" else None


class OpenAI(Dialect):
    """Chat completions."""

    name = "openai"
    model = "gpt-4o-mini"
    endings: ClassVar[Mapping[Ending, str]] = {
        **{"complete": "stop", "cut_off": "length", "refused": "stop", "filtered": "content_filter"}
    }
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(
            400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported."
        ),
        "tool": Refusal(400, "tools is not supported in this model."),
        "json": Refusal(400, "Invalid parameter: 'response_format' of type 'json_object' is not supported."),
    }
    system_refusal = Refusal(
        400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."
    )

    def chat(self, url: str) -> BaseChatModel:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=self.model, base_url=f"{url}/v1", api_key=KEY, max_retries=0)

    def form(self, body: Mapping[str, Any]) -> Form:
        forms: dict[Any, Form] = {"json_schema": "schema", "json_object": "json"}
        kind = (body.get("response_format") or {}).get("type")
        return "tool" if body.get("tools") else forms.get(kind, "text")

    def has_system(self, body: Mapping[str, Any]) -> bool:
        return any(message["role"] in ("system", "developer") for message in body["messages"])

    def reply(self, said: Said, form: Form) -> Any:
        choice = {"index": 0, "message": self.message(said, form), "finish_reason": self.endings[said.ending]}
        return {
            **{"id": "1", "object": "chat.completion", "created": 1700000000, "model": self.model},
            "choices": [choice],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }

    def message(self, said: Said, form: Form) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": said.text()}
        if said.ending == "refused":
            message |= {"content": None, "refusal": said.text()}
        if (arguments := self.tool(said, form)) is not None:
            function = {"name": "score_reply", "arguments": json.dumps(arguments)}
            message |= {
                "content": "",
                "tool_calls": [{"id": "call_1234a", "type": "function", "function": function}],
            }
        return message | ({"reasoning_content": said.reasoning} if said.reasoning else {})


class DeepSeek(OpenAI):
    """Chat completions with reasoning beside the text, without schemas."""

    name = "deepseek"
    model = "deepseek-chat"
    endings: ClassVar[Mapping[Ending, str]] = {
        **{"complete": "stop", "cut_off": "length", "filtered": "content_filter"}
    }
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(400, "This response_format type is unavailable now"),
        "tool": Refusal(400, "Thinking mode does not support this tool_choice"),
        "json": Refusal(400, "This response_format type is unavailable now"),
    }

    def chat(self, url: str) -> BaseChatModel:
        from langchain_deepseek import ChatDeepSeek

        return ChatDeepSeek(model_name=self.model, api_base=url, api_key=KEY, max_retries=0)


class Groq(OpenAI):
    """Chat completions, with a refusal of its own for words that are no JSON."""

    name = "groq"
    model = "llama-3.3-70b-versatile"
    endings: ClassVar[Mapping[Ending, str]] = {"complete": "stop", "cut_off": "length"}
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(400, "This model does not support response format `json_schema`."),
        "tool": Refusal(400, "`tool calling` is not supported with this model"),
        "json": Refusal(400, "This model does not support response format `json_object`."),
    }

    def chat(self, url: str) -> BaseChatModel:
        from langchain_groq import ChatGroq

        return ChatGroq(model_name=self.model, base_url=url, api_key=KEY, max_retries=0)

    def message(self, said: Said, form: Form) -> dict[str, Any]:
        message = super().message(said, form)
        return message | ({"reasoning": message.pop("reasoning_content")} if said.reasoning else {})


class Mistral(OpenAI):
    """Chat completions with reasoning in blocks, and errors of a web framework."""

    name = "mistral"
    model = "mistral-small"
    endings: ClassVar[Mapping[Ending, str]] = {"complete": "stop", "cut_off": "model_length"}
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(422, "response_format.json_schema: Extra inputs are not permitted"),
        "tool": Refusal(400, "Function calling is not enabled for this model"),
        "json": Refusal(422, "response_format.type: Input should be 'text'"),
    }

    def chat(self, url: str) -> BaseChatModel:
        from langchain_mistralai import ChatMistralAI

        return ChatMistralAI(model_name=self.model, base_url=f"{url}/v1", api_key=KEY, max_retries=1)

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
    endings: ClassVar[Mapping[Ending, str]] = {
        **{"complete": "", "cut_off": "max_output_tokens", "refused": "", "filtered": "content_filter"}
    }
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        **OpenAI.refusals,
        "schema": Refusal(400, "Invalid parameter: 'text.format' of type 'json_schema' is not supported."),
    }

    def chat(self, url: str) -> BaseChatModel:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model="o3-pro", base_url=f"{url}/v1", api_key=KEY, max_retries=0, use_responses_api=True
        )

    def form(self, body: Mapping[str, Any]) -> Form:
        forms: dict[Any, Form] = {"json_schema": "schema", "json_object": "json"}
        kind = ((body.get("text") or {}).get("format") or {}).get("type")
        return "tool" if body.get("tools") else forms.get(kind, "text")

    def has_system(self, body: Mapping[str, Any]) -> bool:
        return any(message.get("role") in ("system", "developer") for message in body["input"])

    def reply(self, said: Said, form: Form) -> Any:
        output: list[dict[str, Any]] = []
        if said.reasoning:
            output.append(
                {
                    "type": "reasoning",
                    "id": "r1",
                    "summary": [{"type": "summary_text", "text": said.reasoning}],
                }
            )
        if (arguments := self.tool(said, form)) is not None:
            call = {
                "type": "function_call",
                "id": "f1",
                "call_id": "c1",
                "name": "score_reply",
                "status": "completed",
            }
            output.append({**call, "arguments": json.dumps(arguments)})
        else:
            text = {"type": "output_text", "text": said.text(), "annotations": []}
            refusal = {"type": "refusal", "refusal": said.text()}
            message = {"type": "message", "id": "m1", "status": "completed", "role": "assistant"}
            output.append({**message, "content": [refusal if said.ending == "refused" else text]})
        reason = self.endings[said.ending]
        return {
            **{"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "o3-pro"},
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
    endings: ClassVar[Mapping[Ending, str]] = {
        **{"complete": "end_turn", "cut_off": "max_tokens", "refused": "refusal"}
    }
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(400, "output_config: Extra inputs are not permitted"),
        "tool": Refusal(400, "Thinking may not be enabled when tool_choice forces tool use."),
    }
    system_refusal = Refusal(400, "This model does not support system prompts.")

    def chat(self, url: str) -> BaseChatModel:
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model="claude-opus-4-8", base_url=url, api_key=KEY, max_retries=0)

    def form(self, body: Mapping[str, Any]) -> Form:
        if body.get("tools"):
            return "tool"
        return "schema" if (body.get("output_config") or {}).get("format") else "text"

    def has_system(self, body: Mapping[str, Any]) -> bool:
        return bool(body.get("system"))

    def error(self, refusal: Refusal) -> Any:
        return {"type": "error", "error": {"type": refusal.code, "message": refusal.words}}

    def reply(self, said: Said, form: Form) -> Any:
        thought = {"type": "thinking", "thinking": said.reasoning, "signature": "x"}
        arguments = self.tool(said, form)
        answer: dict[str, Any] = {"type": "text", "text": said.text()}
        if arguments is not None:
            answer = {"type": "tool_use", "id": "t1", "name": "score_reply", "input": arguments}
        whole = (
            "tool_use" if arguments is not None and said.ending == "complete" else self.endings[said.ending]
        )
        return {
            **{"id": "1", "type": "message", "role": "assistant", "model": "claude-opus-4-8"},
            "content": [thought, answer] if said.reasoning else [answer],
            **{
                "stop_reason": whole,
                "stop_sequence": None,
                "usage": {"input_tokens": 100, "output_tokens": 20},
            },
        }


class Gemini(Dialect):
    """``generateContent``."""

    name = "gemini"
    endings: ClassVar[Mapping[Ending, str]] = {
        "complete": "STOP",
        "cut_off": "MAX_TOKENS",
        "filtered": "SAFETY",
    }
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(
            400, 'Invalid JSON payload received. Unknown name "responseJsonSchema": Cannot find field.'
        ),
        "tool": Refusal(400, "Function calling is not enabled for models/gemma-3-27b-it"),
        "json": Refusal(400, "JSON mode is not enabled for models/gemma-3-27b-it"),
    }
    system_refusal = Refusal(400, "Developer instruction is not enabled for models/gemma-3-27b-it")

    def chat(self, url: str) -> BaseChatModel:
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(
            model="gemini-2.0-flash", base_url=url, google_api_key=KEY, max_retries=1
        )

    def form(self, body: Mapping[str, Any]) -> Form:
        config = body.get("generationConfig") or {}
        if body.get("tools"):
            return "tool"
        if config.get("responseJsonSchema") or config.get("responseSchema"):
            return "schema"
        return "json" if config.get("responseMimeType") else "text"

    def has_system(self, body: Mapping[str, Any]) -> bool:
        return bool(body.get("systemInstruction"))

    def error(self, refusal: Refusal) -> Any:
        return {"error": {"code": refusal.status, "message": refusal.words, "status": "INVALID_ARGUMENT"}}

    def reply(self, said: Said, form: Form) -> Any:
        arguments = self.tool(said, form)
        answer: dict[str, Any] = {"text": said.text()}
        if arguments is not None:
            answer = {"functionCall": {"name": "score_reply", "args": arguments}}
        parts = [{"text": said.reasoning, "thought": True}, answer] if said.reasoning else [answer]
        finish = {"index": 0, "finishReason": self.endings[said.ending]}
        return {
            "candidates": [{**finish, "content": {"role": "model", "parts": parts}}],
            "modelVersion": "gemini-2.0-flash",
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120},
        }


class Ollama(Dialect):
    """``/api/chat``, which sends one JSON object a line."""

    name = "ollama"
    endings: ClassVar[Mapping[Ending, str]] = {"complete": "stop", "cut_off": "length"}
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(400, "invalid JSON schema in format"),
        "tool": Refusal(400, "registry.ollama.ai/library/gemma2:latest does not support tools"),
        "json": Refusal(400, "failed to parse grammar"),
    }
    system_refusal = Refusal(500, "template: System role not supported")

    def chat(self, url: str) -> BaseChatModel:
        from langchain_ollama import ChatOllama

        return ChatOllama(model="gemma2", base_url=url, reasoning=True)

    def form(self, body: Mapping[str, Any]) -> Form:
        if body.get("tools"):
            return "tool"
        wanted = body.get("format")
        return "schema" if isinstance(wanted, dict) else "json" if wanted else "text"

    def has_system(self, body: Mapping[str, Any]) -> bool:
        return any(message["role"] == "system" for message in body["messages"])

    def error(self, refusal: Refusal) -> Any:
        return {"error": refusal.words}

    def reply(self, said: Said, form: Form) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": said.text()}
        if (arguments := self.tool(said, form)) is not None:
            message |= {
                "content": "",
                "tool_calls": [{"function": {"name": "score_reply", "arguments": arguments}}],
            }
        if said.reasoning:
            message["thinking"] = said.reasoning
        about = {"model": "gemma2", "created_at": "2025-01-01T00:00:00Z"}
        counts = {"prompt_eval_count": 100, "eval_count": 20, "total_duration": 1}
        first = {**about, "message": message, "done": False}
        last = {
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": self.endings[said.ending],
        }
        return [first, {**about, **last, **counts}]


@cache
def _aws() -> Any:
    """One session for all clients: each session of its own reads megabytes of descriptions of the services."""
    secret = KEY.get_secret_value()
    session: Any = import_module("boto3").Session
    return session(region_name="us-east-1", aws_access_key_id=secret, aws_secret_access_key=secret)


class Bedrock(Dialect):
    """Converse, whose client is AWS's own."""

    name = "bedrock"
    endings: ClassVar[Mapping[Ending, str]] = {
        **{"complete": "end_turn", "cut_off": "max_tokens", "filtered": "guardrail_intervened"}
    }
    refusals: ClassVar[Mapping[Form, Refusal]] = {
        "schema": Refusal(
            400, "This model doesn't support the outputConfig field. Remove outputConfig and try again."
        ),
        "tool": Refusal(400, "This model doesn't support tool use."),
    }
    system_refusal = Refusal(
        400, "This model doesn't support system messages. Try again without a system message."
    )

    def chat(self, url: str) -> BaseChatModel:
        from langchain_aws import ChatBedrockConverse

        return ChatBedrockConverse(
            model_id="anthropic.claude-3-haiku-20240307-v1:0",
            client=_aws().client("bedrock-runtime", endpoint_url=url),
            bedrock_client=_aws().client("bedrock", endpoint_url=url),
        )

    def form(self, body: Mapping[str, Any]) -> Form:
        return "tool" if body.get("toolConfig") else "schema" if body.get("outputConfig") else "text"

    def has_system(self, body: Mapping[str, Any]) -> bool:
        return bool(body.get("system"))

    def error(self, refusal: Refusal) -> Any:
        return {"message": refusal.words}

    def reply(self, said: Said, form: Form) -> Any:
        arguments = self.tool(said, form)
        answer: dict[str, Any] = {"text": said.text()}
        if arguments is not None:
            answer = {"toolUse": {"toolUseId": "t1", "name": "score_reply", "input": arguments}}
        thought = {"reasoningContent": {"reasoningText": {"text": said.reasoning, "signature": "x"}}}
        content = [thought, answer] if said.reasoning else [answer]
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": self.endings[said.ending],
            "usage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120},
            "metrics": {"latencyMs": 1},
        }


DIALECTS = {
    kind.name: kind()
    for kind in (OpenAI, Responses, Anthropic, Gemini, Bedrock, Ollama, Mistral, Groq, DeepSeek)
}


@dataclass
class Server:
    """The server's address, and what it was asked."""

    url: str
    dialect: Dialect
    script: Script
    asked: list[Asked] = field(default_factory=list)

    def answer(self, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        asked = Asked(self.dialect.form(body), self.dialect.has_system(body), body)
        self.asked.append(asked)
        said = self.script(asked)
        if isinstance(said, Refusal):
            return said.status, json.dumps(self.dialect.error(said)).encode()
        reply = self.dialect.reply(said, asked.form)
        lines = reply if isinstance(reply, list) else [reply]
        return 200, b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"


def close(chat: BaseChatModel) -> None:
    """Close the connections of a client, which is its caller's to do: most clients never do it themselves."""
    for name in ("root_client", "client", "_client"):
        holder = getattr(chat, name, None)
        for client in (holder, getattr(holder, "_client", None)):
            if callable(closing := getattr(client, "close", None)):
                closing()
    # LangChain keeps what is closed now by its address, and a later server may have the same port.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        for package, clients in CLIENT_CACHES.items():
            if package in sys.modules:
                getattr(sys.modules[package], clients).cache_clear()


@contextmanager
def serving(dialect: Dialect, script: Script) -> Iterator[Server]:
    """Run a provider for the length of a ``with`` block."""
    provider = Server("", dialect, script)
    with serving_http(_Handler, provider=provider) as provider.url:
        yield provider


class _Handler(Handler):
    provider: Server

    def do_POST(self) -> None:
        status, content = self.provider.answer(self.fields())
        kind = "x-ndjson" if isinstance(self.provider.dialect, Ollama) else "json"
        refused = isinstance(self.provider.dialect, Bedrock) and status >= 400
        error = {"x-amzn-ErrorType": "ValidationException"} if refused else {}
        self.answer(content, status, {"Content-Type": f"application/{kind}", **error})
