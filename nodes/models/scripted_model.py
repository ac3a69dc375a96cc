"""Provide a chat model with scripted replies, to test graphs without network or key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, SkipValidation

Line = str | dict[str, Any] | AIMessage | Exception
Script = Mapping[str, Sequence[Line]] | Callable[[Mapping[str, Any], str], Line]


@dataclass(frozen=True)
class RecordedCall:
    """A call as the model received it: the metadata, with agent and role, and the whole prompt."""

    metadata: Mapping[str, Any]
    prompt: str = field(repr=False)


class ScriptedModel(BaseChatModel):
    """A chat model that replies from a script.

    The script is a dict of lists of lines by role, or a function of metadata and prompt. A line is
    a text, the fields of a structured reply, which arrive as JSON, a whole message, or an exception
    to be raised. ``calls`` has all calls in order. A role whose lines have run out raises
    ``IndexError``.

    >>> from jurygraph.graphs import debate
    >>> model = ScriptedModel(script={"scorer": ["Score: 4"], "critic": ["NO ISSUE"]})
    >>> graph = debate.build(models={"*": model}, structured="off").compile()
    >>> task = {"kind": "score", "source": "a", "candidate": "b", "aspect": "fluency"}
    >>> graph.invoke({"task": task})["verdict"]["score"], len(model.calls)
    (4.0, 2)
    """

    script: SkipValidation[Script]
    _calls: list[RecordedCall] = PrivateAttr(default_factory=list)
    _lines: dict[str, Iterator[Line]] = PrivateAttr(default_factory=dict)

    @property
    def calls(self) -> list[RecordedCall]:
        """All calls so far, in order."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "jurygraph-scripted"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        metadata: Mapping[str, Any] = (run_manager.metadata or {}) if run_manager else {}
        prompt = "\n\n".join(str(message.text) for message in messages)
        self._calls.append(RecordedCall(metadata, prompt))
        line: Line | None
        if callable(self.script):
            line = self.script(metadata, prompt)
        else:
            # One iterator per role, reused in later calls, tracks the position in the role's lines.
            role = str(metadata.get("role"))
            line = next(self._lines.setdefault(role, iter(self.script.get(role, ()))), None)
            if line is None:
                raise IndexError(f"the script has no more lines for the {role}")
        if isinstance(line, Exception):
            raise line
        if isinstance(line, dict):
            line = json.dumps(line)
        message = AIMessage(line) if isinstance(line, str) else line
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        # LangChain's own would use a thread for each call, which may change the order of the lines.
        return self._generate(messages, stop, run_manager)


class ScriptedToolModel(ScriptedModel):
    """A scripted model that can be offered tools; a line with a tool call is a whole message.

    >>> from langchain_core.messages import AIMessage
    >>> from jurygraph.graphs import single
    >>> def year_of(event: str) -> str:
    ...     "Return the year of an event."
    ...     return "1932"
    >>> call = {"name": "year_of", "args": {"event": "opening"}, "id": "1"}
    >>> lines = [AIMessage("", tool_calls=[call]), "READY", "It opened in 1932 [E1].\\nScore: 2"]
    >>> model = ScriptedToolModel(script={"scorer": lines})
    >>> graph = single.build(models=model, structured="off", juror_tools=[year_of]).compile()
    >>> task = {"kind": "score", "source": "a", "candidate": "b", "aspect": "fluency"}
    >>> result = graph.invoke({"task": task})
    >>> result["transcript"][0]["evidence"][0]["result"], result["verdict"]["calls"]
    ('1932', 3)
    """

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Return the model with the tools, which its script may call."""
        return self.bind(tools=[*tools], **kwargs)
