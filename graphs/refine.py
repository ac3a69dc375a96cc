r"""refine: a text is written, judged, and written anew with the judge's objections, until it is good enough.

    prepare --nothing written--> write --written--> judge --good enough / out of tries / judge failed--> conclude
        \                         ^ \                ^ |                                                    ^
         \                        |  +--writer failed-|-|----------------------------------------------------+
          \                       +----- objection ---|-+
           +--draft given-----------------------------+

``refine(writer, judge)`` is a wrapper like ``calibrated``, and a judge's graph itself: a task goes in, a verdict comes
out, and beside it the text that was judged best. A candidate in the task is a draft, and judged as the first try.

Model calls: for each try one of the writer, where it is a model, and those of the judge; at most ``tries`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnablePassthrough
from langgraph.graph import StateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import get_runtime
from pydantic import Field
from typing_extensions import TypedDict

from ..nodes.agent_runtime import without_models
from ..nodes.bound_judge import bound_agent
from ..nodes.models.model_chains import is_chain
from ..nodes.models.resolver import OFFLINE
from ..nodes.prompt_context import Prompts
from ..nodes.writer import writer as ask_writer
from ..nodes.writer import writer_prompt
from ..state.aspects import Aspect
from ..state.checked import shortened
from ..state.conversations import read_conversation
from ..state.errors import ModelCallError, ReplyError, UsageError
from ..state.graph_state import GraphState, JudgeOutput, append, as_json
from ..state.tasks import ScoreTask, parse_task
from ..state.transcript import Turn, TurnIds, usage_of_turns
from .base import AsyncNode
from .nested import JudgeSlot, nested_judge_node
from .registry import AnyGraph, kind_of_turns
from .wrapper import StepGraph, emptied, kinds_of, marked_outcome

Writer = str | Runnable[Any, Any] | AnyGraph | Callable[..., Any]
Ended = Literal["good_enough", "out_of_tries", "judge_failed", "writer_failed"]


class Try(TypedDict):
    """One version of the text: its verdict, or why it has none."""

    candidate: str
    verdict: dict[str, Any] | None
    error: str | None


class RefineInput(TypedDict):
    """What is to be written: a score task, in which a candidate is a draft to begin with."""

    task: Annotated[dict[str, Any], as_json]


class RefineOutput(JudgeOutput):
    """The best text with its verdict (None where none was judged), all tries in order, and why there were no more."""

    candidate: Annotated[str, Field(description="The version that was judged best.")]
    tries: Annotated[list[Try], append]
    ended: Annotated[Ended, Field(description="Why there was no further try.")]
    error: str | None


class RefineState(GraphState):
    """The state while the text is refined: the latest version, and the tries so far."""

    candidate: NotRequired[str | None]
    tries: Annotated[list[Try], append]
    ended: NotRequired[Ended | None]
    error: NotRequired[str | None]


def refine(writer: Writer, judge: str | AnyGraph | Any, until: float = 4, tries: int = 3) -> StepGraph:
    """Build a graph that has a text written, judged and written anew until it is good enough; yours to compile.

    Args:
        writer: a chat model or its name, which is shown source, criteria and objections; or a function, runnable or
            graph, which is given ``task``, ``candidate`` (its last version, or None), ``objections`` (empty at first)
            and the same as ``messages``, and returns a text, a message, or a dict with ``candidate`` or ``messages``.
        judge: a protocol's name or graph, compiled or not, or what ``create_judge`` made.
        until: the score that is good enough, on the scale of the task's aspect.
        tries: how many versions there may be.

    Raises:
        UsageError: no such model or protocol, a judge that rates no texts, or fewer tries than one.

    >>> def writer(given: dict) -> str:
    ...     source = given["task"]["source"]
    ...     return source if given["objections"] else "Nothing of this was there."
    >>> graph = refine(writer, "debate", until=4).compile()
    >>> task = {"source": "The bridge opened in 1932, after eight years of work.", "aspect": "consistency"}
    >>> outcome = graph.invoke({"task": task})
    >>> outcome["ended"], outcome["verdict"]["details"]["refine"]["try"], len(outcome["tries"])
    ('good_enough', 2, 2)
    """
    check_tries(tries)
    slot = slot_of(judge)

    def prepared(state: RefineState) -> dict[str, Any]:
        """Check the task, and whether a text can be good enough for it."""
        given = state.get("task") or {}
        if given.get("kind", "score") != "score":
            raise UsageError("refine writes one text, but a task of the kind 'compare' has two answers")
        task = _task(given)
        check_until(until, task.aspect)
        whole = {**task.model_dump(mode="json"), "candidate": given.get("candidate")}
        return {**emptied(RefineState), "task": whole, "candidate": given.get("candidate")}

    def after_judge(state: RefineState) -> str:
        """Have the text written anew if it is not good enough, and there are tries left."""
        verdict = state["tries"][-1]["verdict"]
        if verdict is None:
            return "judge_failed"
        if verdict["score"] >= until:
            return "good_enough"
        return "objection" if len(state["tries"]) < tries else "out_of_tries"

    def concluded(state: RefineState) -> dict[str, Any]:
        """Return the best text with its verdict; of equals the latest, which has met more objections."""
        done = state["tries"]
        ended = after_write(state) if state.get("error") else after_judge(state)
        scores = [attempt["verdict"]["score"] if attempt["verdict"] else None for attempt in done]
        judged = [(score, place) for place, score in enumerate(scores) if score is not None]
        best = max(judged)[1] if judged else len(done) - 1
        verdict = done[best]["verdict"]
        if verdict is not None:
            about = {"try": best + 1, "tries": len(done), "until": until, "ended": ended, "scores": scores}
            details = {**(verdict.get("details") or {}), "refine": about}
            verdict = {**verdict, **usage_of_turns(state["transcript"]).flat(), "details": details}
        error = state.get("error") or done[-1]["error"]
        return {"candidate": done[best]["candidate"], "verdict": verdict, "ended": ended, "error": error}

    graph = StepGraph(RefineState, slot.context_schema, input_schema=RefineInput, output_schema=RefineOutput)
    graph.begin(prepared)
    graph.add_node("write", _writing_node(writer))
    asked = nested_judge_node(
        slot, lambda s: {"task": {**s["task"], "candidate": s.get("candidate")}}, _judged, mark=_mark
    )
    graph.add_node("judge", softly(asked, _unjudged))
    graph.end("conclude", concluded)
    graph.fork("prepare", after_prepare, {"nothing_written": "write", "draft_given": "judge"})
    graph.fork("write", after_write, {"written": "judge", "writer_failed": "conclude"})
    ends = dict.fromkeys(("good_enough", "out_of_tries", "judge_failed"), "conclude")
    graph.fork("judge", after_judge, {"objection": "write", **ends})
    return graph


def slot_of(judge: Any) -> JudgeSlot:
    """Make the slot of a judge that rates texts: a protocol's name or graph, or what ``create_judge`` made.

    Raises:
        UsageError: it is none.
    """
    slot = JudgeSlot(judge)
    if "score" not in kinds_of(slot.graph):
        compares = "this judge compares two texts: use one with score tasks"
        raise UsageError(f"a refined text is rated, but {compares}")
    return slot


def objections(verdict: Mapping[str, Any], transcript: list[Turn]) -> str:
    """Return what a writer is told of a verdict: the score, the words that explain it, and what critics objected."""
    kind_of = kind_of_turns(verdict["protocol"], verdict.get("details") or {})
    objected = (turn for turn in transcript if kind_of(turn) == "objects")
    critics = [turn["content"] for turn in objected if turn["value"] is not True]
    parts = [f"The score is {verdict['score']:g}.", str(verdict.get("explanation") or ""), *critics]
    return "\n\n".join(dict.fromkeys(words.strip() for words in parts if words.strip()))


def check_tries(tries: int) -> None:
    """Refuse fewer tries than one."""
    if tries < 1:
        raise UsageError(f"tries must be 1 or more, got {tries}")


def check_until(until: float, aspect: Aspect) -> None:
    """Refuse a score that no text can miss, or none can reach."""
    if not aspect.low < until <= aspect.high:
        scale = f"{aspect.low:g} to {aspect.high:g}"
        raise UsageError(f"until={until:g} cannot be reached: {aspect.name} is rated from {scale}")


def after_prepare(state: RefineState) -> str:
    """Judge the draft where the task has one."""
    return "draft_given" if state.get("candidate") else "nothing_written"


def after_write(state: RefineState) -> str:
    """Judge what was written."""
    return "writer_failed" if state.get("error") else "written"


def _task(given: Mapping[str, Any]) -> ScoreTask:
    """Check a task that may have no candidate yet."""
    written = given.get("candidate") is not None
    task = parse_task({"kind": "score", **given, "candidate": given["candidate"] if written else "-"})
    assert isinstance(task, ScoreTask)
    return task


def softly(
    node: Runnable[Any, Any], failed: Callable[[Any, Exception], dict[str, Any]]
) -> Runnable[Any, Any]:
    """Have a judge's or a writer's failure become an update of the state, so that no text is lost."""

    def run(state: Any, config: RunnableConfig) -> Any:
        try:
            return node.invoke(state, config)
        except (ReplyError, ModelCallError) as error:
            return failed(state, error)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        try:
            return await node.ainvoke(state, config)
        except (ReplyError, ModelCallError) as error:
            return failed(state, error)

    return RunnableLambda(run, arun)


# The judge


def _mark(state: RefineState, turn: Turn) -> Turn:
    return cast("Turn", {**turn, "id": f"try_{len(state['tries']) + 1}/{turn.get('id')}"})


def _judged(state: RefineState, outcome: JudgeOutput) -> dict[str, Any]:
    marked = marked_outcome(outcome, partial(_mark, state))
    done = Try(candidate=str(state.get("candidate")), verdict=marked["verdict"], error=None)
    scores = [*state["scores"], marked["verdict"]["score"]]
    rounds = marked["verdict"]["rounds"]
    return {"tries": [done], "transcript": marked["transcript"], "scores": scores, "round": rounds}


def _unjudged(state: RefineState, error: Exception) -> dict[str, Any]:
    return {"tries": [Try(candidate=str(state.get("candidate")), verdict=None, error=str(error))]}


# The writer


def _writing_node(writer: Any) -> Runnable[Any, Any]:
    if isinstance(writer, StateGraph):
        writer = writer.compile()
    if isinstance(writer, PregelProtocol):
        node: Runnable[Any, Any] = nested_judge_node(JudgeSlot(writer), _given, _written)
    elif isinstance(writer, str) or is_chain(writer):
        node = _model_writer(writer)
    elif isinstance(writer, Runnable) or callable(writer):
        asked = RunnablePassthrough.assign(reply=RunnableLambda(_given) | writer)
        node = asked | RunnableLambda[Any, Any](lambda state: _written(state, state["reply"]))
    else:
        raise UsageError(f"a writer must be a model, function, runnable or graph, got {shortened(writer)}")
    return softly(node, _not_written)


def _model_writer(model: Any) -> Runnable[Any, Any]:
    bound = bound_agent("refine", "writer", (), model, {})
    if bound.bound.models and bound.bound.models["*"].name == OFFLINE.name:
        raise UsageError("the offline judge is not a language model and writes nothing: use another writer")

    async def write(state: RefineState) -> dict[str, Any]:
        writer = get_runtime().stream_writer
        runtime = await bound.runtime(None, writer, TurnIds(state.get("transcript") or ()))
        last, objected = _last(state)
        answer = await ask_writer(_task(state["task"]), last, objected, runtime)
        return {"candidate": answer.turn["content"], "transcript": [answer.turn]}

    return AsyncNode("write", write)


def _last(state: RefineState) -> tuple[str | None, str]:
    """Return the last version and what was objected to it; nothing where there is none yet."""
    if not state["tries"]:
        return None, ""
    last = state["tries"][-1]
    assert last["verdict"] is not None
    mark = f"try_{len(state['tries'])}/"
    of_try = [turn for turn in state["transcript"] if turn.get("id", "").startswith(mark)]
    return last["candidate"], objections(last["verdict"], of_try)


def _given(state: RefineState) -> dict[str, Any]:
    """Return what a writer of one's own is given; its messages are those that a model would be sent."""
    last, objected = _last(state)
    prompt = writer_prompt(_task(state["task"]), None, "", Prompts.bundled())
    system, first = prompt.messages("", "shared_prefix")
    messages: list[BaseMessage] = [SystemMessage(system), HumanMessage(first.strip())]
    if last is not None:
        request = f"It is not good enough yet. Write all of it anew so that this is met:\n\n{objected}"
        messages += [AIMessage(last), HumanMessage(request)]
    task = {name: value for name, value in state["task"].items() if name != "candidate"}
    return {"task": task, "candidate": last, "objections": objected, "messages": messages}


def _written(state: RefineState, reply: Any) -> dict[str, Any]:
    """Read the text from what a writer returned.

    Raises:
        UsageError: there is none, or a message with more than text in it.
    """
    text = reply
    if isinstance(text, Mapping):
        text = text.get("candidate") or (text.get("messages") or [None])[-1]
    if isinstance(text, BaseMessage):
        remedy = "have the writer return the text that is to be judged"
        entries = read_conversation(text, "the writer's message", remedy)
        if called := [entry.heading for entry in entries if entry.kind == "call"]:
            raise UsageError(f"the writer's message has no text yet ({called[0]}): {remedy}")
        text = "".join(entry.text for entry in entries if entry.kind == "words")
    if not isinstance(text, str) or not text.strip():
        wanted = "a text, a message, or a dict with candidate or messages"
        raise UsageError(f"the writer returned no text: it must return {wanted}, got {shortened(reply)}")
    return {"candidate": text, "transcript": [without_models(state["transcript"]).say(0, "writer", text)]}


def _not_written(state: RefineState, error: Exception) -> dict[str, Any]:
    """Keep the versions so far; without any, the failure is that of the run."""
    if not state["tries"]:
        raise error
    return {"error": str(error)}
