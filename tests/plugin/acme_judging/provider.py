"""A model provider: ``acme:<name>``. Its models say the same to everybody."""

import os
from typing import Any

from jurygraph.state import UsageError
from jurygraph.state.settings import ModelSpec
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

PARAMETERS = {"temperature", "top_p", "seed", "max_tokens"}


class AcmeChat(BaseChatModel):
    """A chat model that needs no network."""

    model: str
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None

    @property
    def _llm_type(self) -> str:
        return "acme"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = AIMessage(f"Acme's {self.model} finds it fair.\nScore: 4")
        return ChatResult(generations=[ChatGeneration(message=message)])


def chat_model(spec: ModelSpec) -> BaseChatModel:
    """The model of that name."""
    if not os.environ.get("ACME_API_KEY"):
        raise UsageError("ACME_API_KEY is not set, and Acme's models cannot be called without it")
    given = spec.model_dump(include=PARAMETERS, exclude_none=True)
    return AcmeChat(model=spec.name.partition(":")[2], **given)
