"""The offline judge as a LangChain chat model that replies in text, or in JSON with a schema."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle
from operator import attrgetter
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from typing_extensions import override

from ..common.delimiters import fenced_sections
from .agent_view import Response
from .offline_roles import respond

LETTERS_PER_TOKEN = 4
"""Characters per token, an approximation; the number of tokens is rounded up."""


class OfflineJudge(BaseChatModel):
    """Answers for every role of every protocol from word counts, without key, network or weights.

    The call's metadata name the role. The fenced sections of the prompt are the texts to judge. The
    same messages and metadata always get the same reply.

    >>> from jurygraph.nodes.common.delimiters import fence
    >>> prompt = [("user", fence("source", "Ann met Bob in Paris.")), ("user", fence("candidate", "Ann met Bob."))]
    >>> about = {"role": "scorer", "kind": "score", "aspect": "consistency", "low": 1, "high": 5, "form": "score"}
    >>> print(OfflineJudge().invoke(prompt, config={"metadata": about}).text)
    Support from the source: 3 of the 3 content words of the candidate and 2 of its 2 word pairs can be found in the \
source. Taken together, this is near the top of the scale.
    Score: 5
    """

    # LangChain's global cache identifies calls by prompt and model only, and would confuse roles.
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
        schema = kwargs.get("json_schema")
        high = metadata.get("high")
        content = (
            as_json(response, schema["properties"], high) if schema else as_text(response, form)
        )
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


def as_text(response: Response, form: str) -> str:
    """Return a reply in plain text: prose, then the value on the last line (or two).

    >>> print(as_text(Response("Well put.", values=(4.0,)), "score"))
    Well put.
    Score: 4
    """
    values = response.values
    lines = [response.prose]
    if form == "vote":
        lines.append(f"Vote: {response.winner}")
    elif form == "checks":
        for number, (answer, quotation) in enumerate(response.checks, start=1):
            lines += [f"Quotation {number}: {quotation or 'none'}", f"Criterion {number}: {answer}"]
    elif form == "turn_label":
        said = "yes" if response.answers else "no"
        lines = [f"Kind: {response.kind}", f"Behaviour: {response.behaviour}", f"Answers: {said}"]
    elif form in ("text", "steps", "personas", "critique"):
        lines += ["NO ISSUE"] if response.no_issue else []
    # For a form of another package, write the value so that every reader of scores finds it.
    elif form == "score" or (form != "pair" and len(values) == 1):
        lines.append(f"Score: {values[0]:g}")
    else:
        lines += [
            f"Score of answer {number}: {value:g}" for number, value in enumerate(values, start=1)
        ]
    return "\n".join(lines)


def as_json(response: Response, schemas: Mapping[str, Any], high: float | None = None) -> str:
    """Return a reply as the JSON object that a schema requests.

    Args:
        response: the role's answer.
        schemas: the schemas of the object's properties; a property with an unknown name is filled
            in by its type.
        high: the highest score; numbers whose maxima add up to it are parts of the score.

    >>> as_json(Response("Well put.", values=(4.0,)), {"reasoning": {}, "score": {}})
    '{"reasoning": "Well put.", "score": 4.0}'
    >>> as_json(Response("Well put.", values=(4.5,)), {"grade": {"type": "integer"}, "why": {"type": "string"}})
    '{"grade": 4, "why": "Well put."}'

    Raises:
        ValueError: neither the name nor the type of a property is known.
    """
    values = response.values
    most = [schema["maximum"] for schema in schemas.values() if "maximum" in schema]
    if values and high is not None and len(most) != len(values) and sum(most) == high * len(values):
        # Divide each value into whole parts: of 63 in six parts, the first three are 11 and the
        # others 10.
        parts = len(most) // len(values)
        values = tuple(
            (value + parts - 1 - part) // parts for part in range(parts) for value in values
        )
    return json.dumps(_object(response._replace(values=values), schemas), ensure_ascii=False)


_FIELDS: dict[str, Callable[[Response], Any]] = {
    **dict.fromkeys(("reasoning", "feedback"), attrgetter("prose")),
    **dict.fromkeys(("score", "score_1"), lambda response: response.values[0]),
    "score_2": lambda response: response.values[1],
    **{name: attrgetter(name) for name in ("no_issue", "winner", "kind", "behaviour", "answers")},
    # A list in JSON has no number at the start of each line.
    "steps": lambda response: [line.split(" ", 1)[1] for line in response.prose.splitlines()],
}


def _object(response: Response, schemas: Mapping[str, Any]) -> dict[str, Any]:
    # In a comparison, two numbers with unknown names belong to the first and the second answer.
    numbers = cycle(response.values)
    checks = {
        f"{field}_{number}": value
        for number, check in enumerate(response.checks, start=1)
        for field, value in zip(("answer", "quotation"), check, strict=True)
    }
    return checks | {
        name: _FIELDS[name](response)
        if name in _FIELDS
        else _by_type(response, name, schema, numbers)
        for name, schema in schemas.items()
        if name not in checks
    }


def _by_type(
    response: Response, name: str, schema: Mapping[str, Any], numbers: Iterator[float]
) -> Any:
    """Fill in a property by its schema."""
    kind = schema.get("type")
    if options := schema.get("enum"):
        return response.winner if response.winner in options else options[0]
    if kind in ("number", "integer") and response.values:
        value = min(
            max(next(numbers), schema.get("minimum", -math.inf)), schema.get("maximum", math.inf)
        )
        return round(value) if kind == "integer" else value
    if kind == "array":
        return [_by_type(response, name, schema.get("items") or {"type": "string"}, numbers)]
    if kind == "object":
        return _object(response, schema.get("properties") or {})
    if kind == "boolean":
        return response.no_issue
    if kind == "string":
        return response.prose
    raise ValueError(
        f"the offline judge cannot fill in {name!r}: "
        f"its schema has no type that it knows, nor is it one of {', '.join(_FIELDS)}"
    )
