"""Find out how many tokens a model takes, prompt and reply together: as given, by its server, or by the price list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from .capabilities import speaks_chat_completions
from .connections import hold_connections
from .loaded_model import LoadedModel
from .prices import listed_window

PATIENCE = 3.0
"""Seconds that a server has to say what its models are."""


async def context_window(model: LoadedModel) -> int | None:
    """Return how many tokens prompt and reply may have together; None where nobody knows.

    A server of OpenAI's dialect at an address of its own is asked (``/v1/models`` of vLLM, LM Studio and gateways,
    ``/props`` of llama.cpp), since a name says nothing about how a model is served there.
    """
    if model.serving.context is not None:
        return model.serving.context
    chat: Any = model.chat
    address = str(getattr(chat, "root_async_client", None) and chat.root_async_client.base_url)
    if speaks_chat_completions(model.chat) and "://" in address and "api.openai.com" not in address:
        await hold_connections()
        client = chat.root_async_client.with_options(max_retries=0, timeout=PATIENCE)
        for path in ("/models", f"{address.rstrip('/').removesuffix('/v1')}/props"):
            try:
                told = await asyncio.wait_for(client.get(path, cast_to=object), PATIENCE)
            # A server need not have these, and the run itself will tell what is wrong with it.
            except Exception:
                continue
            if (tokens := next(_windows(told, model.asked_name), None)) is not None:
                return tokens
    return listed_window(model.label)


_SIZES = ("max_model_len", "loaded_context_length", "context_length", "context_window", "n_ctx")


def _windows(told: Any, name: str | None) -> Iterator[int]:
    """Yield the sizes in what a server says of the model, or of the only one that it has."""
    listed = told.get("data", [told]) if isinstance(told, Mapping) else ()
    models = [one for one in listed if isinstance(one, Mapping)]
    for one in [one for one in models if one.get("id") == name] or models[: len(models) == 1]:
        places = (one, one.get("meta"), one.get("default_generation_settings"))
        sizes = (place.get(key) for place in places if isinstance(place, Mapping) for key in _SIZES)
        yield from (size for size in sizes if isinstance(size, int) and size > 0)
