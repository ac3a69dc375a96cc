"""Whether a run can go over batches at all, told before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from openai import AsyncOpenAI

from ...graphs.nested import everybody
from ...nodes.bound_judge import Panel
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.openai_fast import LeanChatOpenAI
from ...nodes.models.resolver import load
from ...state.errors import UsageError
from ...state.settings import ModelSpec
from ..plan import Plan

OPENAI = "openai:"


def check_batch(prepared: Plan) -> None:
    """Say what keeps a run from going over batches.

    Raises:
        UsageError: a model that is not OpenAI's, or a chat model object; no folder.
    """
    other = next((label for label in prepared.models().values() if not label.startswith(OPENAI)), None)
    if other is not None:
        raise UsageError(
            f"{other} cannot be asked in batches: only models of OpenAI can, such as openai:gpt-4o-mini"
        )
    if any(isinstance(model, LoadedModel) for model in _chosen(prepared)):
        raise UsageError(
            "a chat model object cannot be asked in batches: name the model, as in openai:gpt-4o-mini"
        )
    if prepared.folder is None:
        raise UsageError("batches take hours: name a folder (out) that keeps them meanwhile")


async def clients(prepared: Plan) -> dict[str, AsyncOpenAI]:
    """The clients of all models, by address."""
    loop = asyncio.get_running_loop()
    specs = {
        model for model in _chosen(prepared) if isinstance(model, ModelSpec) and model.name.startswith(OPENAI)
    }
    models = [await asyncio.to_thread(load, spec, loop) for spec in specs]
    for model in models:
        await model.hold()
    found = [client_of(model.chat) for model in models if isinstance(model.chat, LeanChatOpenAI)]
    return {str(client.base_url): client for client in found}


def client_of(chat: LeanChatOpenAI) -> AsyncOpenAI:
    """What the model is reached by."""
    client = chat.root_async_client
    assert isinstance(client, AsyncOpenAI)
    return client


def _chosen(prepared: Plan) -> Iterator[ModelSpec | LoadedModel]:
    for graph in prepared.graphs.values():
        panel: Panel[Any] = graph.builder.panel  # type: ignore[attr-defined]
        for judge in everybody(panel):
            yield from judge.chosen().values()
