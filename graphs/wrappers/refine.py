r"""refine: a text is written, judged, and rewritten with the objections until it is good enough.

    prepare --nothing written--> write --written--> judge --good enough / out of tries / judge failed--> conclude
        \                         ^ \                ^ |                                                    ^
         \                        |  +--writer failed-|-|----------------------------------------------------+
          \                       +----- objection ---|-+
           +--draft given-----------------------------+

``refine(writer, judge)`` is a wrapper like ``calibrated``, and its graph is a judge too: it takes a
task and returns a verdict, along with the best text. A candidate in the task is a draft, which is
judged as the first try.

Model calls: for each try one of the writer, if it is a model, and those of the judge; at most
``tries`` times.
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

from ...nodes.models.model_chains import is_chain
from ...nodes.runtime.agent_runtime import without_models
from ...nodes.runtime.bound_judge import bound_agent
from ...nodes.runtime.prompt_context import Prompts
from ...nodes.writer import writer as ask_writer
from ...nodes.writer import writer_prompt
from ...state.aspects import Aspect
from ...state.checked import shortened
from ...state.conversations import read_conversation
from ...state.errors import ModelCallError, ReplyError, UsageError
from ...state.graph_state import GraphState, JudgeOutput, Outcome, append, as_json
from ...state.settings import OFFLINE
from ...state.tasks import ScoreTask, parse_task
from ...state.transcript import Turn, TurnIds, usage_of_turns
from ..engine.base import AsyncNode
from ..engine.nested import JudgeSlot, nested_judge_node
from ..engine.registry import AnyGraph, kind_of_turns
from ..engine.wrapper import StepGraph, emptied, kinds_of, marked_outcome

Writer = str | Runnable[Any, Any] | AnyGraph | Callable[..., Any]
Ended = Literal["good_enough", "out_of_tries", "judge_failed", "writer_failed"]


class Try(TypedDict):
    """One version of the text with its verdict, or with the error if it has none."""

    candidate: str
    verdict: dict[str, Any] | None
    error: str | None


class RefineInput(TypedDict):
    """The input: a score task, in which a candidate is the first draft."""

    task: Annotated[dict[str, Any], as_json]


class RefineOutput(JudgeOutput):
    """The best text, its verdict (None if no try was judged), all tries, and why they ended."""

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


def refine(
    writer: Writer, judge: str | AnyGraph | Any, until: float = 4, tries: int = 3
) -> StepGraph:
    """Build a graph that has a text written and judged until it is good enough, not compiled.

    Args:
        writer: a chat model or its name, which reads the source, the criteria and the objections.
            Or a function, runnable or graph: it receives ``task``, ``candidate`` (its last version,
            or None), ``objections`` (empty at first) and the same as ``messages``. It returns a
            text, a message, or a dict with ``candidate`` or ``messages``.
        judge: a protocol's name or graph, compiled or not, or a judge from ``create_judge``.
        until: the lowest score that is good enough, on the scale of the task's aspect.
        tries: the maximum number of versions.

    Raises:
        UsageError: an unknown model or protocol, a judge that does not rate texts, or fewer tries
            than one.

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
        """Check the task, and that ``until`` lies on its scale."""
        given = state.get("task") or {}
        if given.get("kind", "score") != "score":
            raise UsageError(
                "refine writes one text, but a task of the kind 'compare' has two answers"
            )
        task = _task(given)
        check_until(until, task.aspect)
        whole = {**task.model_dump(mode="json"), "candidate": given.get("candidate")}
        return {**emptied(RefineState), "task": whole, "candidate": given.get("candidate")}

    def after_judge(state: RefineState) -> str:
        """Have the text rewritten if it is not good enough and tries are left."""
        verdict = state["tries"][-1]["verdict"]
        if verdict is None:
            return "judge_failed"
        if verdict["score"] >= until:
            return "good_enough"
        return "objection" if len(state["tries"]) < tries else "out_of_tries"

    def concluded(state: RefineState) -> dict[str, Any]:
        """Return the best text with its verdict.

        Among equals, return the latest one, which answers more objections.
        """
        done = state["tries"]
        ended = after_write(state) if state.get("error") else after_judge(state)
        scores = [attempt["verdict"]["score"] if attempt["verdict"] else None for attempt in done]
        judged = [(score, place) for place, score in enumerate(scores) if score is not None]
        best = max(judged)[1] if judged else len(done) - 1
        verdict = done[best]["verdict"]
        if verdict is not None:
            about = {
                "try": best + 1,
                "tries": len(done),
                "until": until,
                "ended": ended,
                "scores": scores,
            }
            details = {**(verdict.get("details") or {}), "refine": about}
            verdict = {**verdict, **usage_of_turns(state["transcript"]).flat(), "details": details}
        error = state.get("error") or done[-1]["error"]
        of_best = {"scores": [], "round": 0}
        if verdict is not None:
            of_best = {"scores": verdict["score_by_round"], "round": verdict["rounds"]}
        about_text = {"candidate": done[best]["candidate"], "ended": ended, "error": error}
        return {**about_text, "verdict": verdict, **of_best}

    graph = StepGraph(
        RefineState, slot.context_schema, input_schema=RefineInput, output_schema=RefineOutput
    )
    graph.begin(prepared)
    graph.add_node("write", _writing_node(writer))
    asked = nested_judge_node(
        slot,
        lambda s: {"task": {**s["task"], "candidate": s.get("candidate")}},
        _judged,
        mark=_mark,
    )
    graph.add_node("judge", softly(asked, _unjudged))
    graph.end("conclude", concluded)
    graph.fork("prepare", after_prepare, {"nothing_written": "write", "draft_given": "judge"})
    graph.fork("write", after_write, {"written": "judge", "writer_failed": "conclude"})
    ends = dict.fromkeys(("good_enough", "out_of_tries", "judge_failed"), "conclude")
    graph.fork("judge", after_judge, {"objection": "write", **ends})
    return graph


def slot_of(judge: Any) -> JudgeSlot:
    """Return the slot of a judge that rates texts: a protocol's name or graph, or a created judge.

    Raises:
        UsageError: the judge does not rate texts.
    """
    slot = JudgeSlot(judge)
    if "score" not in kinds_of(slot.graph):
        raise UsageError(
            "a refined text is rated, but this judge compares two texts: use one with score tasks"
        )
    return slot


def objections(verdict: Mapping[str, Any], transcript: list[Turn]) -> str:
    """Return the feedback for a writer: the score, its explanation, and the critics' objections."""
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
    """Refuse a score that every text or no text can reach."""
    if not aspect.low < until <= aspect.high:
        raise UsageError(
            f"until={until:g} cannot be reached: {aspect.name} is rated from {aspect.low:g} "
            f"to {aspect.high:g}"
        )


def after_prepare(state: RefineState) -> str:
    """Route a draft in the task to the judge."""
    return "draft_given" if state.get("candidate") else "nothing_written"


def after_write(state: RefineState) -> str:
    """Route the written text to the judge."""
    return "writer_failed" if state.get("error") else "written"


def _task(given: Mapping[str, Any]) -> ScoreTask:
    """Validate a task that may have no candidate yet."""
    written = given.get("candidate") is not None
    task = parse_task(
        {"kind": "score", **given, "candidate": given["candidate"] if written else "-"}
    )
    assert isinstance(task, ScoreTask)
    return task


def softly(
    node: Runnable[Any, Any],
    failed: Callable[[Any, Exception], dict[str, Any]],
    failures: tuple[type[Exception], ...] = (ReplyError, ModelCallError),
) -> Runnable[Any, Any]:
    """Turn a failure of a judge or a writer into a state update, so that no text is lost."""

    def run(state: Any, config: RunnableConfig) -> Any:
        try:
            return node.invoke(state, config)
        except failures as error:
            return failed(state, error)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        try:
            return await node.ainvoke(state, config)
        except failures as error:
            return failed(state, error)

    return RunnableLambda(run, arun)


# The judge


def _mark(state: RefineState, turn: Turn) -> Turn:
    return cast("Turn", {**turn, "id": f"try_{len(state['tries']) + 1}/{turn.get('id')}"})


def _judged(state: RefineState, outcome: Outcome) -> dict[str, Any]:
    marked = marked_outcome(outcome, partial(_mark, state))
    done = Try(candidate=str(state.get("candidate")), verdict=marked["verdict"], error=None)
    # The round is set at the end: the reducer takes the highest, but the best verdict may have
    # fewer.
    scores = [*state["scores"], marked["verdict"]["score"]]
    return {"tries": [done], "transcript": marked["transcript"], "scores": scores}


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
        raise UsageError(
            f"a writer must be a model, function, runnable or graph, got {shortened(writer)}"
        )
    return softly(node, _not_written)


def _model_writer(model: Any) -> Runnable[Any, Any]:
    bound = bound_agent("refine", "writer", (), model, {})
    if bound.bound.models and bound.bound.models["*"].name == OFFLINE.name:
        raise UsageError(
            "the offline judge is not a language model and writes nothing: use another writer"
        )

    async def write(state: RefineState) -> dict[str, Any]:
        writer = get_runtime().stream_writer
        runtime = await bound.runtime(None, writer, TurnIds(state.get("transcript") or ()))
        last, objected = _last(state)
        answer = await ask_writer(_task(state["task"]), last, objected, runtime)
        return {"candidate": answer.turn["content"], "transcript": [answer.turn]}

    return AsyncNode("write", write)


def _last(state: RefineState) -> tuple[str | None, str]:
    """Return the last version and the objections to it; None and an empty text before it."""
    if not state["tries"]:
        return None, ""
    last = state["tries"][-1]
    assert last["verdict"] is not None
    mark = f"try_{len(state['tries'])}/"
    of_try = [turn for turn in state["transcript"] if turn.get("id", "").startswith(mark)]
    return last["candidate"], objections(last["verdict"], of_try)


def _given(state: RefineState) -> dict[str, Any]:
    """Return the input of a custom writer; its messages are those that a model would receive."""
    last, objected = _last(state)
    prompt = writer_prompt(_task(state["task"]), None, "", Prompts.bundled())
    system, first = prompt.messages("", "shared_prefix")
    messages: list[BaseMessage] = [SystemMessage(system), HumanMessage(first.strip())]
    if last is not None:
        request = (
            f"It is not good enough yet. Write all of it anew so that this is met:\n\n{objected}"
        )
        messages += [AIMessage(last), HumanMessage(request)]
    task = {name: value for name, value in state["task"].items() if name != "candidate"}
    return {"task": task, "candidate": last, "objections": objected, "messages": messages}


def _written(state: RefineState, reply: Any) -> dict[str, Any]:
    """Read the text from a writer's return value.

    Raises:
        UsageError: there is no text, or a message contains more than text.
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
        raise UsageError(
            "the writer returned no text: it must return a text, a message, or a dict with "
            f"candidate or messages, got {shortened(reply)}"
        )
    return {
        "candidate": text,
        "transcript": [without_models(state["transcript"]).say(0, "writer", text)],
    }


def _not_written(state: RefineState, error: Exception) -> dict[str, Any]:
    """End with the versions so far; without any version, raise the error."""
    if not state["tries"]:
        raise error
    return {"error": str(error)}
