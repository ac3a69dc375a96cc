"""Take the requests of chat models away from the network: a handler is given the body, and brings the response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import new_class
from typing import Any

import orjson
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from ...state.errors import UsageError

RequestHandler = Callable[[BaseChatModel, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Takes the body of a request; returns that of the response, or raises what the network would."""
_handler: ContextVar[RequestHandler | None] = ContextVar("_handler", default=None)


@contextmanager
def requests_handled_by(handler: RequestHandler) -> Iterator[None]:
    """Pass all requests made inside the ``with`` block to a handler and not to the network (batches do so)."""
    token = _handler.set(handler)
    try:
        yield
    finally:
        _handler.reset(token)


def request_handler() -> RequestHandler | None:
    """Return the handler of requests here, or None where they go to the network."""
    return _handler.get()


def handled(chat: BaseChatModel) -> BaseChatModel:
    """Return a copy of Anthropic's or Gemini's chat model that asks the handler, where there is one here.

    Its requests and replies are made and read by the class itself; OpenAI's asks the handler anyway.
    """
    if _handler.get() is None:
        return chat
    names = {base.__name__ for base in type(chat).__mro__}
    agenerate = next((_AGENERATE[name] for name in _AGENERATE if name in names), None)
    if agenerate is None:
        return chat
    # A stream would go past the handler.
    copied = chat.model_copy(update={"disable_streaming": True})
    object.__setattr__(copied, "__class__", _asking_handler(type(chat), agenerate))
    return copied


_Agenerate = Callable[..., Awaitable[ChatResult]]


@lru_cache
def _asking_handler(kind: type[BaseChatModel], agenerate: _Agenerate) -> type[BaseChatModel]:
    members = {"_agenerate": agenerate, "__module__": kind.__module__}
    made: type[BaseChatModel] = new_class(kind.__name__, (kind,), exec_body=lambda body: body.update(members))
    return made


async def _handled(chat: BaseChatModel, body: dict[str, Any]) -> dict[str, Any]:
    handler = _handler.get()
    assert handler is not None
    return await handler(chat, body)


async def _ask_anthropic(
    self: Any, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
) -> ChatResult:
    from anthropic.types import Message

    payload = self._get_request_payload(messages, stop=stop, **kwargs)
    payload.pop("stream", None)
    # ``extra_body`` is no field of the API: the client merges it into the body, and so does this.
    more = payload.pop("extra_body", None) or {}
    body = {**payload, **more}
    if other := sorted(body.keys() & {"betas", "extra_headers", "extra_query", "timeout"}):
        raise UsageError(
            f"{self.model} is asked with {', '.join(other)}, which a request of a batch cannot have"
        )
    result: ChatResult = self._format_output(Message.construct(**await _handled(self, body)), **kwargs)
    return result


async def _ask_gemini(
    self: Any, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
) -> ChatResult:
    from google.genai.types import GenerateContentResponse, InlinedRequest
    from langchain_google_genai.chat_models import _response_to_result

    request = self._prepare_request(messages, stop=stop, **{"cached_content": self.cached_content, **kwargs})
    # How the client is to send it is no part of the request.
    request["config"] = request["config"].model_copy(update={"http_options": None})
    body = await _handled(self, InlinedRequest(**request).model_dump(mode="json", exclude_none=True))
    # As JSON, since bytes are text in it.
    return _response_to_result(GenerateContentResponse.model_validate_json(orjson.dumps(body)))


_AGENERATE: dict[str, _Agenerate] = {"ChatAnthropic": _ask_anthropic, "ChatGoogleGenerativeAI": _ask_gemini}
"""By a class's name what its ``_agenerate`` is; no provider's package needs to be imported for it."""
