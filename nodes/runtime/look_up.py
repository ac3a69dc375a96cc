"""The sub-graph in which an agent calls tools before it answers, at most ``tool_rounds`` calls.

    request --tool_calls--> tools -> record --calls_left--> request
       |                                |
       +--ready--> END                  +--no_calls_left--> END

``request`` is a model call like any other: it is in the journal, in the budget, and has an identity.
``tools`` is LangGraph's ``ToolNode``. The evidence is part of the agent's later prompts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from ...state.evidence import Evidence
from ...state.transcript import Usage
from ...state.verdict_warnings import LOOK_UP_UNREAD, TOOL_LIMIT, TOOLS_FAILED
from ..models.call import Call, Reply, fingerprint
from .output_schemas import TextSchema
from .prompt_context import Prompt, Prompts, evidence_in_words
from .toolbox import Toolbox, evidence_of, message_of, shortened_arguments


@dataclass(frozen=True)
class LookUpSchema(TextSchema):
    """Request a tool call, or the word that none is needed; what else the reply says is not used.

    Attributes:
        tools: the names of the tools.
        left: the number of tool calls that are left in this turn.
    """

    tools: tuple[str, ...] = ()
    left: int = 1
    name: ClassVar[str] = "look_up"
    template: ClassVar[str] = "tools/look_up"

    def limits(self) -> dict[str, Any]:
        return {"tools": self.tools, "left": self.left}


@dataclass
class LookedUp:
    """The evidence of one agent's turn.

    Attributes:
        evidence: the results of its tool calls in order.
        usages: the usage of its requests for tools.
        warnings: warnings for the reader of the verdict.
    """

    evidence: list[Evidence] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


Ask = Callable[[Sequence[Evidence], int], Awaitable[tuple[Call, Reply]]]
"""Asks the agent for tool calls, given the evidence so far and the number of calls left."""


@dataclass(frozen=True)
class LookUp:
    """The context of one run of the sub-graph.

    Attributes:
        ask: makes the model call.
        prefix: the beginning of the evidence's ids.
        first: the number of the first piece.
        most: the maximum number of tool calls.
        who: the agent and the round, for warnings.
        made: filled in while the sub-graph runs, so that a failed call loses nothing.
    """

    ask: Ask
    prefix: str
    first: int
    most: int
    who: str
    made: LookedUp

    @property
    def left(self) -> int:
        """The number of tool calls that are left."""
        return self.most - len(self.made.evidence)

    @property
    def next_id(self) -> str:
        """The id of the next piece of evidence."""
        return f"{self.prefix}{self.first + len(self.made.evidence)}"


class LookUpState(TypedDict):
    """The last request's message, or the tools' results after it, and the calls in it."""

    messages: list[BaseMessage]
    calls: list[dict[str, Any]]


async def request(
    state: LookUpState,  # noqa: ARG001 LangGraph's types need this name
    runtime: Runtime[LookUp],
) -> dict[str, Any]:
    """Ask the agent for tool calls; those beyond the limit are not run."""
    look_up = runtime.context
    made = look_up.made
    call, reply = await look_up.ask(made.evidence, look_up.left)
    made.usages.append(reply.usage)
    wanted = list(reply.tool_calls)
    if not wanted and (reply.refused or reply.cut_off or reply.problem):
        made.warnings.append(LOOK_UP_UNREAD.of(look_up.who, problem=reply.problem or "cut off"))
    if (beyond := len(wanted) - look_up.left) > 0:
        made.warnings.append(TOOL_LIMIT.of(look_up.who, beyond=beyond, most=look_up.most))
        del wanted[look_up.left :]
    calls = [dict(call) for call in wanted]
    readable = [call for call in calls if "args" in call]
    return {"messages": [message_of(readable, fingerprint(call))], "calls": calls}


def after_request(state: LookUpState) -> str:
    """Run the tool calls whose arguments could be read; without any call, the agent is ready."""
    if not state["calls"]:
        return "ready"
    return "tool_calls" if any("args" in call for call in state["calls"]) else "unreadable"


def record(state: LookUpState, runtime: Runtime[LookUp]) -> dict[str, Any]:
    """Number the results of the tools as evidence, in the order of the calls."""
    look_up = runtime.context
    results = (message for message in state["messages"] if isinstance(message, ToolMessage))
    for call in state["calls"]:
        id = look_up.next_id
        if "args" in call:
            piece = evidence_of(id, call, next(results))
        else:
            name = str(call["name"])
            problem = f"{name} was not run: its arguments are not JSON."
            args = shortened_arguments(str(call["invalid"]))
            piece = Evidence(id=id, tool=name, args=args, result=problem, status="failed")
        look_up.made.evidence.append(piece)
    return {}


def after_record(_state: LookUpState, runtime: Runtime[LookUp]) -> str:
    """Ask again while tool calls are left."""
    return "calls_left" if runtime.context.left > 0 else "no_calls_left"


@lru_cache(maxsize=64)
def look_up_graph(toolbox: Toolbox) -> Any:
    """Return the compiled sub-graph for these tools."""
    graph = StateGraph(LookUpState, context_schema=LookUp)
    graph.add_node("request", request)
    graph.add_node("tools", toolbox.node)
    graph.add_node("record", record)
    graph.add_edge(START, "request")
    asked: dict[Hashable, str] = {"tool_calls": "tools", "unreadable": "record", "ready": END}
    graph.add_conditional_edges("request", after_request, asked)
    graph.add_edge("tools", "record")
    left: dict[Hashable, str] = {"calls_left": "request", "no_calls_left": END}
    graph.add_conditional_edges("record", after_record, left)
    # Its state is not plain JSON. A resumed node finds its replies and results by their keys.
    return graph.compile(checkpointer=False, name="look_up")


def with_evidence(prompt: Prompt, prompts: Prompts, evidence: Sequence[Evidence]) -> Prompt:
    """Return an agent's prompt with the results of its tool calls, fenced as data."""
    if not evidence:
        return prompt
    return replace(prompt, shared=f"{prompt.shared}\n\n{evidence_in_words(prompts, evidence)}")


def tool_warnings(who: str, evidence: Sequence[Evidence]) -> list[str]:
    """Return a warning if tool calls of an agent gave no result."""
    failed = [piece for piece in evidence if piece["status"] != "ok"]
    if not failed:
        return []
    first = failed[0]
    return [TOOLS_FAILED.of(who, failed=len(failed), asked=len(evidence), first=first["result"])]
