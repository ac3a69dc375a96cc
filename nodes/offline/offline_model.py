"""Make the offline judge a LangChain chat model."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.output_parsers import BaseOutputParser, JsonOutputParser, PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from pydantic import BaseModel
from typing_extensions import override

from ..delimiters import fenced_sections
from .offline_roles import respond
from .written_reply import as_json, as_text

DISCLOSURE = "The offline judge is no language model: it scores by lexical statistics of the texts."

LETTERS_PER_TOKEN = 4
"""Characters that count as one token, an approximation; a token that is begun counts."""


class OfflineJudge(BaseChatModel):
    """Answer for every role of every protocol from word counts; no key, no network and no weights are needed.

    The call's metadata say which role it answers for; the texts to be judged are the fenced sections of the prompt.
    The same messages and metadata always get the same reply.

    >>> from jurygraph.nodes.delimiters import fence
    >>> prompt = [("user", fence("source", "Ann met Bob in Paris.")), ("user", fence("candidate", "Ann met Bob."))]
    >>> about = {"role": "scorer", "kind": "score", "aspect": "consistency", "low": 1, "high": 5, "form": "score"}
    >>> print(OfflineJudge().invoke(prompt, config={"metadata": about}).text)
    Support from the source: 3 of the 3 content words of the candidate and 2 of its 2 word pairs can be found in the \
source. Taken together, this is near the top of the scale.
    Score: 5
    """

    # LangChain's global cache knows calls by prompt and model alone, and would mix up roles.
    cache: Any = False

    @property
    def _llm_type(self) -> str:
        return "jurygraph-offline"

    @override
    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        metadata = run_manager.metadata if run_manager else {}
        prompt = "\n".join(str(message.text) for message in messages)
        response, form = respond(metadata, fenced_sections(prompt))
        properties, high = kwargs.get("properties"), metadata.get("high")
        content = as_text(response, form) if properties is None else as_json(response, properties, high)
        read, written = (math.ceil(len(text) / LETTERS_PER_TOKEN) for text in (prompt, content))
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        about = {"model_name": "offline", "finish_reason": "stop"}
        message = AIMessage(content=content, response_metadata=about, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, stop, run_manager, **kwargs)

    @override
    def with_structured_output(
        self, schema: dict[str, Any] | type, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Return the same judge, replying with the JSON object that ``schema`` describes.

        Args:
            schema: a JSON schema, or a pydantic class.
            include_raw: give ``{"raw", "parsed", "parsing_error"}`` instead of the parsed object alone.
            kwargs: options for other providers (``method``, ``strict``), which make no difference here.
        """
        parser: BaseOutputParser[Any] = JsonOutputParser()
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            parser, schema = PydanticOutputParser(pydantic_object=schema), schema.model_json_schema()
        if not isinstance(schema, dict):
            raise TypeError(f"a schema is a JSON schema or a pydantic class, not {schema!r}")
        if not schema.get("properties"):
            raise ValueError("the schema has no properties that could be filled in")
        model = self.bind(properties=dict(schema["properties"]))
        if not include_raw:
            return model | parser
        # The form in which LangChain's own ``with_structured_output`` gives the raw message.
        parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=model) | parsed.with_fallbacks([failed], exception_key="parsing_error")
