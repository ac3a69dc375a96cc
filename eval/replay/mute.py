"""The model of a replay: it has a name, and is never asked."""

from __future__ import annotations

from typing import Any, NoReturn

from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import BaseMessage

from ...state.errors import UsageError


class RecordedModel(BaseChatModel):
    """Stands in for the models whose replies were recorded.

    >>> RecordedModel(label="gpt-4-0314").invoke("Hello?")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: gpt-4-0314 is known by its recorded replies alone: it cannot be called
    """

    label: str

    @property
    def _llm_type(self) -> str:
        return "jurygraph-recorded"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return LangSmithParams(ls_model_name=self.label)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> NoReturn:
        raise UsageError(f"{self.label} is known by its recorded replies alone: it cannot be called")
