"""OpenAI's chat client, leaner where a reply brings twenty likely tokens along for each of its own.

Imported by the model resolver alone, when a model of OpenAI is named.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI


class LeanChatOpenAI(ChatOpenAI):
    """``ChatOpenAI`` that reads log-probabilities as plain JSON, not into an object for each likely token."""

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        if not payload.get("logprobs") or self._use_responses_api(payload) or _CLIENT_SIDE & payload.keys():
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        response = await self.root_async_client.post(
            "/chat/completions", cast_to=httpx.Response, body=payload
        )
        return self._create_chat_result(_parsed(response))


_CLIENT_SIDE = {"extra_body", "extra_headers", "extra_query", "timeout"}
"""What stands in a payload for the client itself, and not for the provider."""


def _parsed(response: httpx.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except ValueError as error:
        raise ValueError(f"the reply is not JSON: {response.text[:200]!r}") from error
    if not isinstance(body, dict):
        raise ValueError(f"the reply is no JSON object: {response.text[:200]!r}")
    return body
