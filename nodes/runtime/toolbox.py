"""The tools of judging agents: which objects count, and how one call is run safely.

A tool is other people's code, and the model decides its arguments. A call therefore has a time
limit and a length limit, and its failure becomes a text for the agent, not an error of the run.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import importlib
import json
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from ...state.errors import StoppedError, UsageError
from ...state.evidence import Evidence, EvidenceStatus
from ...state.redaction import redact
from ...state.settings import ToolSettings, ToolSpec
from ...state.transcript import NO_USAGE
from ..models.call import Reply
from ..models.responses import replace_surrogates
from ..models.send import tool_result

if TYPE_CHECKING:
    from langgraph.prebuilt import ToolNode
    from langgraph.prebuilt.tool_node import ToolCallRequest

LONGEST_RESULT = 4000
"""The characters of a tool's result that an agent is shown."""

LONGEST_ARGUMENTS = 1000
"""The characters of a tool call's arguments that a turn and a prompt contain."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that all providers accept."""


@dataclass(frozen=True, eq=False)
class Toolbox:
    """The tools of a judge, checked and ready to be offered to a model.

    Attributes:
        tools: the tools in order.
        seconds: the time limit of one call.
    """

    tools: tuple[BaseTool, ...]
    seconds: float

    @cached_property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools as OpenAI describes them, which every LangChain client converts."""
        return [convert_to_openai_tool(tool) for tool in self.tools]

    @cached_property
    def digest(self) -> str:
        """A short hash of names, descriptions and arguments; not of the tools' code."""
        plain = json.dumps(self.schemas, sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:12]

    @cached_property
    def node(self) -> ToolNode:
        """LangGraph's node that runs the tool calls of a message, each within its limits."""
        # Imported here: only judges with tools need it, and its import takes long.
        from langgraph.prebuilt import ToolNode

        return ToolNode(list(self.tools), handle_tool_errors=False, awrap_tool_call=self._guarded)

    async def _guarded(
        self,
        request: ToolCallRequest,
        execute: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage:
        """Run one tool call, unless its result is known; the message has it as ``artifact``."""
        call = request.tool_call
        key = hashlib.blake2b(str(call["id"]).encode(), digest_size=16).digest()

        async def run() -> Reply:
            result, status, length = await self._result(request, execute)
            told = {"status": status, "length": length}
            return Reply(result, fields=told, cut_off=False, refused=False, usage=NO_USAGE)

        reply = await tool_result(key, call["name"], run)
        return ToolMessage(
            reply.text, tool_call_id=str(call["id"]), name=call["name"], artifact=reply.fields
        )

    async def _result(
        self,
        request: ToolCallRequest,
        execute: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> tuple[str, EvidenceStatus, int]:
        """Return the text of a tool's result, how the call ended, and the text's whole length."""
        name = request.tool_call["name"]
        status: EvidenceStatus = "failed"
        if request.tool is None:
            known = ", ".join(tool.name for tool in self.tools)
            text = f"There is no tool {name!r}; the tools are {known}."
        else:
            run = _in_thread(request) if _is_sync(request.tool) else execute(request)
            work = asyncio.ensure_future(run)
            try:
                # Not ``wait_for``: it would wait for a tool that ignores its cancellation.
                await asyncio.wait({work}, timeout=self.seconds)
            finally:
                if not work.done():
                    work.cancel()
            text, status = self._words(name, work)
        text = replace_surrogates(text)
        if len(text) <= LONGEST_RESULT:
            return text, status, len(text)
        cut = f"[cut: the first {LONGEST_RESULT:,} of {len(text):,} characters]"
        return f"{text[:LONGEST_RESULT]}\n{cut}", status, len(text)

    def _words(
        self, name: str, work: asyncio.Future[ToolMessage | Command[Any]]
    ) -> tuple[str, EvidenceStatus]:
        """Return the result of a tool call, or why there is none, as a text."""
        if not work.done():
            return f"{name} gave no result within {self.seconds:g} seconds.", "timed_out"
        if work.cancelled():
            return f"{name} failed: it was cancelled.", "failed"
        if (error := work.exception()) is not None:
            # The end of the run is no failure of the tool, for example if the tool is a judge.
            if isinstance(error, StoppedError | KeyboardInterrupt):
                raise error
            return f"{name} failed: {redact(f'{type(error).__name__}: {error}')}", "failed"
        message = work.result()
        if not isinstance(message, ToolMessage):
            return f"{name} failed: it returned no text but a command for a graph.", "failed"
        text = _text_of(message)
        if message.status == "error":
            return f"{name} failed: {redact(text)}", "failed"
        return text or f"{name} returned an empty text.", "ok"


def _without_exit(tool: BaseTool) -> BaseTool:
    """Return a tool whose async code cannot end the event loop, and with it the whole run."""
    if not isinstance(tool, StructuredTool) or tool.coroutine is None:
        return tool
    run = tool.coroutine

    @wraps(run)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            return await run(*args, **kwargs)
        except SystemExit as error:
            raise RuntimeError(f"SystemExit: {error}") from None

    return tool.model_copy(update={"coroutine": guarded})


async def _in_thread(request: ToolCallRequest) -> ToolMessage:
    """Run a tool without async code in a thread of its own.

    The threads of asyncio's pool would keep the process from ending while a tool hangs.
    """
    tool = request.tool
    assert tool is not None
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()
    call = {**request.tool_call, "type": "tool_call"}

    def tell(value: Any, error: BaseException | None) -> None:
        # The caller may have given up.
        if result.done():
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)

    def work() -> None:
        value = None
        problem: BaseException | None = None
        try:
            value = context.run(tool.invoke, call, request.runtime.config)
        except Exception as error:
            problem = error
        except BaseException as error:
            problem = RuntimeError(f"{type(error).__name__}: {error}")
        try:
            loop.call_soon_threadsafe(tell, value, problem)
        except RuntimeError:
            # The loop has ended, and with it everybody who waited.
            return

    threading.Thread(target=work, name=f"tool {tool.name}", daemon=True).start()
    message = await result
    if isinstance(message, ToolMessage | Command):
        return message  # type: ignore[return-value]
    return ToolMessage(str(message), tool_call_id=str(call["id"]))


def _is_sync(tool: BaseTool) -> bool:
    """Return whether a tool has only sync code."""
    if isinstance(tool, StructuredTool):
        return tool.coroutine is None
    return getattr(type(tool), "_arun", None) is BaseTool._arun


def _text_of(message: ToolMessage) -> str:
    """Return the text of a result; other content, such as an image, is named in its place."""
    if isinstance(message.content, str):
        return message.content
    parts = []
    for block in message.content:
        if isinstance(block, str):
            parts.append(block)
        elif block.get("type") == "text":
            parts.append(str(block.get("text", "")))
        else:
            parts.append(f"[{block.get('type', 'content')}: not shown]")
    return "\n".join(parts)


def message_of(calls: Sequence[Mapping[str, Any]], key: bytes) -> AIMessage:
    """Return the message of a model with these tool calls.

    The id of each call comes from the request that asked for it, so that it is the same in a
    resumed run. It identifies the result.

    Args:
        calls: the calls, with ``name`` and ``args``.
        key: the fingerprint of the request.
    """
    named = [
        {
            "name": call["name"],
            "args": dict(call["args"]),
            "id": f"{key.hex()}-{number}",
            "type": "tool_call",
        }
        for number, call in enumerate(calls)
    ]
    return AIMessage("", tool_calls=named)


def evidence_of(id: str, call: Mapping[str, Any], message: ToolMessage) -> Evidence:
    """Return the evidence of one tool call from its result."""
    told = message.artifact or {}
    piece = Evidence(
        id=id,
        tool=str(call["name"]),
        args=shortened_arguments(call["args"]),
        result=str(message.content),
        status=told.get("status", "ok"),
    )
    if told.get("length", 0) > LONGEST_RESULT:
        piece["length"] = told["length"]
    return piece


def shortened_arguments(args: Any) -> Any:
    """Return the arguments of a tool call; as a text that is cut, if they are very long.

    >>> shortened_arguments({"query": "tides"})
    {'query': 'tides'}
    """
    text = json.dumps(args, ensure_ascii=False, default=str)
    return args if len(text) <= LONGEST_ARGUMENTS else f"{text[:LONGEST_ARGUMENTS]} [cut]"


# Loading


def load_toolbox(settings: ToolSettings) -> Toolbox | None:
    """Return the tools of these settings, checked; None if there are none. May import: blocking.

    Raises:
        UsageError: a place that cannot be imported, or an object that is not a usable tool.
    """
    if not settings.juror_tools:
        return None
    tools = [_loaded(spec, settings.called) for spec in settings.juror_tools]
    names = [tool.name for tool in tools]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"{settings.called}: two tools in juror_tools are called {twice[0]!r}; "
            "give each a name of its own"
        )
    toolbox = Toolbox(tuple(tools), settings.tool_timeout)
    # Made here, because an import reads files, and a server refuses that on its event loop.
    assert toolbox.node
    return toolbox


def _loaded(spec: ToolSpec, judge: str) -> BaseTool:
    given = spec.tool
    if given is None and not spec.is_place:
        raise UsageError(
            f"{judge}: the tool {spec.name!r} is a Python object that is not here; give the object "
            "again (juror_tools=[...]), or name the place to import it from as module:attribute"
        )
    if given is None:
        given = _imported(spec.name, judge)
    made = _as_tool(given, spec.name, judge)
    if not _NAME.fullmatch(made.name):
        raise UsageError(
            f"{judge}: {made.name!r} is no name for a tool: use at most 64 letters, digits, "
            "hyphens and underscores"
        )
    _check_arguments(made, judge)
    return _without_exit(made)


def _imported(place: str, judge: str) -> Any:
    module, _, attribute = place.partition(":")
    try:
        found = importlib.import_module(module)
    except Exception as error:  # an imported module can raise anything
        raise UsageError(
            f"{judge}: the tool {place} cannot be imported: {type(error).__name__}: {error} "
            "(a module of your own must be on Python's path, for example by PYTHONPATH=.)"
        ) from error
    if not hasattr(found, attribute):
        raise UsageError(f"{judge}: the module {module} has no {attribute!r} to use as a tool")
    return getattr(found, attribute)


def _as_tool(given: Any, name: str, judge: str) -> BaseTool:
    if isinstance(given, BaseTool):
        return given
    if not callable(given) or isinstance(given, type):
        raise UsageError(
            f"{judge}: {name} is no tool: give a LangChain tool, or a function with types and a "
            f"docstring, not {type(given).__name__}"
        )
    try:
        made = as_tool(given)
    except ValueError as error:
        raise UsageError(f"{judge}: {name} cannot be made a tool: {error}") from error
    assert isinstance(made, BaseTool)
    return made


def _check_arguments(tool: BaseTool, judge: str) -> None:
    """Check that the model gives all arguments of a tool.

    Raises:
        UsageError: LangGraph would have to fill in some, such as the state of the graph; or the
            arguments cannot be described to a model.
    """
    try:
        asked = convert_to_openai_tool(tool)["function"].get("parameters", {}).get("properties", {})
        schema: Any = tool.get_input_schema()
        fields = set(schema.model_fields) if hasattr(schema, "model_fields") else set(asked)
    except Exception as error:  # pydantic and LangChain have many reasons
        raise UsageError(
            f"{judge}: the arguments of the tool {tool.name} cannot be described to a model: {error}"
        ) from error
    if hidden := sorted(fields - set(asked)):
        raise UsageError(
            f"{judge}: the tool {tool.name} takes {', '.join(hidden)} from its graph, which a "
            "judge's tool is not given; leave it out of the tool's arguments"
        )
