"""Give a judge to agents: as a tool with flat arguments, or as an agent to hand over to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Annotated, Any, NotRequired, Protocol, TypedDict, cast, get_type_hints

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Command
from pydantic import Field, create_model

from ...graphs.engine.given_graphs import compiled
from ...graphs.engine.nested import Compiled, JudgeSlot, nested_judge_node
from ...nodes.replies.json_fields import whole_object
from ...state.checked import Checked, did_you_mean, field_docstrings, listed
from ...state.conversations import before_last_answers, read_conversation
from ...state.errors import ReplyError, UsageError
from ...state.graph_state import Outcome
from ...state.media import Media
from ...state.tasks import CompareTask, Rubric, ScoreTask
from ...state.verdict import outcome_in_words
from .judge_inputs import TaskMaker

LONGEST_EXPLANATION = 1000
"""The maximum number of characters of an explanation for an agent; the verdict has all of it."""

Ask = Callable[..., Mapping[str, Any]]
"""A function that returns the feedback for a task, or for the output of a judge's graph."""
AskAsync = Callable[..., Awaitable[Mapping[str, Any]]]


def tool_of(
    tasks: TaskMaker, ask: Ask, aask: AskAsync, name: str, description: str | None
) -> BaseTool:
    """Make a tool of a judge; see ``Judge.as_tool``."""

    @contextmanager
    def failures_are_shown() -> Iterator[None]:
        """Show the calling agent why a reply could not be read."""
        try:
            yield
        except ReplyError as error:
            raise ToolException(
                f"No verdict: the judge's reply could not be read. {error.problem} "
                "Call the tool again, or go on without a verdict."
            ) from error

    # The sync function does not run the async one: a checkpointer of the caller's agent may support
    # only one of them.
    def judge(**texts: Any) -> tuple[str, Any]:
        with failures_are_shown():
            verdict = ask(**texts)["metadata"]
            return in_words(verdict, tasks), verdict

    async def ajudge(**texts: Any) -> tuple[str, Any]:
        with failures_are_shown():
            verdict = (await aask(**texts))["metadata"]
            return in_words(verdict, tasks), verdict

    if (aspect := tasks.aspect) is None:
        about = "Compare two answers to one question. Returns which is better, and why."
    else:
        scale = f"from {aspect.low:g} to {aspect.high:g}"
        about = (
            f"Rate a text on {aspect.name}, {scale}. Returns the score, and why. {aspect.criteria}"
        )
    task = CompareTask if aspect is None else ScoreTask
    hints = get_type_hints(task, include_extras=True)
    words = field_docstrings(task)
    text = hints["candidate" if task is ScoreTask else "question"]
    fields: dict[str, Any] = {
        field: (
            Annotated[
                text if field in tasks.required else hints[field], Field(description=words[field])
            ],
            default,
        )
        for field in tasks.fields
        for default in [... if field in tasks.required else None]
    }
    schema = create_model(name, __base__=Checked, **fields)
    schema.called = "a call of this tool"
    return StructuredTool.from_function(
        judge,
        ajudge,
        name,
        description or about,
        args_schema=schema,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error="Nothing was judged: {}. Correct this, and call the tool again.".format,
    )


def in_words(verdict: Mapping[str, Any], tasks: TaskMaker) -> str:
    """Describe a verdict in a few lines: the score on its scale or the winner, then the reason."""
    why = str(verdict.get("explanation", ""))
    why = why if len(why) <= LONGEST_EXPLANATION else f"{why[:LONGEST_EXPLANATION].rstrip()} ..."
    return f"{outcome_in_words(verdict, tasks.aspect)}\n\n{why}".strip()


class JudgeAgentOutput(MessagesState):
    """The output of a judge among agents: the conversation with its message, and the verdict."""

    verdict: NotRequired[dict[str, Any] | None]


class JudgeAgentState(JudgeAgentOutput):
    """The state of a judge among agents: its output, and the task taken from the conversation."""

    task: NotRequired[dict[str, Any] | None]


class Judging(Protocol):
    """A judge whose calls are counted and limited."""

    graph: PregelProtocol[Any, Any, Any, Any]

    def judging(self) -> AbstractContextManager[Callable[[Any], None]]:
        """Make a judgement inside."""


def slot_for(judge: Judging, rubric: Rubric | None) -> JudgeSlot:
    """Return the slot of a judge inside another graph."""
    return JudgeSlot(compiled("judge", judge.graph), rubric, judge.judging)


def agent_of(judge: Judging, tasks: TaskMaker, name: str, then: str | None) -> Compiled:
    """Make an agent of a judge; see ``Judge.as_agent``."""
    # The task comes from messages, not from the arguments that a mapping refers to.
    tasks = replace(tasks, mapping={})
    compares = tasks.aspect is None

    def read(state: JudgeAgentState) -> dict[str, Any]:
        try:
            media: Media = {}
            entries = read_conversation(state["messages"], "messages", media=media)
            others = [entry for entry in entries if entry.name != name]
            # An agent that hands over only a description (deepagents) can name the texts in it.
            handed = whole_object(others[0].text) if len(others) == 1 and others[0].asks else None
            if handed is None:
                asked, answers = before_last_answers(others, 2 if compares else 1)
                fields = (
                    ("question", "answer_1", "answer_2") if compares else ("source", "candidate")
                )
                handed = dict(zip(fields, [asked, *answers], strict=True))
            task = tasks.task({**handed, "media": media}).task
        except UsageError as error:
            form = f"one JSON object, and nothing else, with the texts as {', '.join(tasks.fields)}"
            remedy = f"Who hands over one message alone makes it {form}."
            message = AIMessage(f"Nothing was judged: {error}. {remedy}", name=name)
            return {"messages": [message], "task": None, "verdict": None}
        return {"task": task.model_dump(mode="json"), "verdict": None}

    def judged(_state: JudgeAgentState, outcome: Outcome) -> dict[str, Any]:
        verdict = outcome["verdict"]
        words = AIMessage(
            in_words(verdict, tasks), name=name, additional_kwargs={"verdict": verdict}
        )
        return {"messages": [words], "verdict": verdict}

    def hand_back(state: JudgeAgentState) -> Command[str]:
        # langgraph-swarm uses ``active_agent``. A graph without it drops the key.
        update = {"messages": state["messages"][-1:], "active_agent": then}
        return Command(graph=Command.PARENT, goto=str(then), update=update)

    builder = StateGraph(JudgeAgentState, output_schema=JudgeAgentOutput)
    builder.add_node("read", read)
    slot = slot_for(judge, tasks.rubric)
    asked = nested_judge_node(slot, lambda state: {"task": state["task"]}, judged, once=True)
    builder.add_node("judge", asked)
    builder.add_edge(START, "read")
    last = "hand_back" if then else END
    if then:
        builder.add_node("hand_back", hand_back)
    outcomes: dict[Hashable, str] = {"task": "judge", "nothing": last}
    builder.add_conditional_edges(
        "read", lambda state: "task" if state["task"] else "nothing", outcomes
    )
    builder.add_edge("judge", last)
    return builder.compile(name=name)


class NodeKeys(TypedDict, total=False):
    """The state's key for each field of the task and each part of the verdict."""

    source: str
    candidate: str
    fact: str
    question: str
    answer_1: str
    answer_2: str
    context: str
    reference: str
    score: str
    winner: str
    explanation: str
    verdict: str
    transcript: str


def node_of(
    judge: Judging, tasks: TaskMaker, feedback_of: Ask, state: Any, keys: NodeKeys
) -> Runnable[Any, Any]:
    """Return a judge as a node; see ``Judge.node``.

    ``feedback_of`` makes the feedback for the graph's output.
    """
    # ``keys`` give the places of the texts, like a mapping for the arguments of an evaluator.
    tasks = replace(tasks, mapping={})
    results = ("score", "winner", "explanation", "verdict", "transcript")
    given = cast("Mapping[str, str]", keys)
    if wrong := [name for name in given if name not in (*tasks.fields, *results)]:
        known = f"takes {', '.join(tasks.fields)} and gives {', '.join(results)}"
        raise UsageError(
            f"{wrong[0]}: the judge {known}{did_you_mean(wrong[0], [*tasks.fields, *results])}"
        )
    taken = {name: key for name, key in given.items() if name in tasks.fields}
    put = {name: key for name, key in given.items() if name in results}
    if not put:
        raise UsageError(f"name a key for what the judge gives: one of {', '.join(results)}")
    of_state = None if state is None else list(get_type_hints(state))
    for name, key in given.items():
        if of_state is not None and key not in of_state:
            raise UsageError(
                f"{name}: {state.__name__} has no {key!r}, only {listed(of_state, key)}"
            )
    if missing := [name for name in tasks.required if name not in taken]:
        raise UsageError(f"name a key of the state for {missing[0]}, which the judge takes")

    def before(values: Any) -> dict[str, Any]:
        values = values if isinstance(values, Mapping) else vars(values)
        if missing := [name for name, key in taken.items() if key not in values]:
            key = taken[missing[0]]
            raise UsageError(
                f"{missing[0]}: there is no {key!r} in the state, only {', '.join(values)}"
            )
        task = tasks.task({name: values[key] for name, key in taken.items()}).task
        return {"task": task.model_dump(mode="json")}

    def after(_values: Any, outcome: Outcome) -> dict[str, Any]:
        feedback = feedback_of(outcome)
        known = {
            **outcome,
            **outcome["verdict"],
            "score": feedback["score"],
            "verdict": outcome["verdict"],
        }
        return {key: known[name] for name, key in put.items()}

    return nested_judge_node(slot_for(judge, tasks.rubric), before, after, once=True)
