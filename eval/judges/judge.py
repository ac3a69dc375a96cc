"""Make a judge in one line: a callable that is an evaluator of openevals and of LangSmith."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.pregel.protocol import PregelProtocol
from pydantic import ValidationError

from ...graphs.given_graphs import compiled, load_graph, name_of
from ...graphs.nested import Compiled
from ...graphs.registry import Given
from ...graphs.wrapper import kinds_of
from ...nodes.prompt_context import rubric_of_user
from ...nodes.sync_bridge import run_blocking
from ...state.aspects import Aspect
from ...state.checked import shortened
from ...state.errors import ReplyError, UsageError
from ...state.tasks import CompareTask, ScoreTask, parse_task
from ...state.verdict import Verdict
from ..datasets.aspect_choice import aspect_from_file
from . import judge_options as of
from .judge_inputs import TaskMaker, is_absent
from .judge_tools import NodeKeys, agent_of, node_of, tool_of

if TYPE_CHECKING:
    from ..datasets.dataset import Data
    from ..results.evaluation import Evaluation
    from ..run.runner import RunOptions

Feedback = dict[str, Any]
"""What an evaluator returns: ``key``, ``score``, ``comment`` and ``metadata``; of several runs, ``scores`` by run."""

PREFERENCE = {"1": 1.0, "tie": 0.5, "2": 0.0}
"""The score of a comparison by its winner: how far the first output is preferred."""


class Judge:
    """Judges outputs as the evaluators of openevals and LangSmith do.

    Attributes:
        graph: the compiled graph.
        name: the protocol's name, or the graph's.
        key: what the score is called.
    """

    def __init__(
        self, graph: PregelProtocol[Any, Any, Any, Any], tasks: TaskMaker, key: str, normalize: bool = False
    ) -> None:
        self.graph = graph
        self.name = name_of(graph)
        self.key = self.__name__ = key
        self._tasks = tasks
        self._normalize = normalize
        # A call of an evaluator has no thread, which a graph that was compiled with a checkpointer would ask for.
        self._without_threads = compiled(self.name, graph)

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        runs: Sequence[Any] | None = None,
        **others: Any,
    ) -> Feedback:
        """Judge one output, or compare two.

        Args:
            inputs: what was asked, or what the text was made from: a text, a dict with one, or messages.
            outputs: the output in the same forms, or a list of the two to compare.
            reference_outputs: a correct answer, which comparisons are shown; texts are rated without one unless
                ``variable_mapping`` says where it goes.
            runs: LangSmith's two runs; the answer then has a score for each.
            **others: what ``variable_mapping`` names besides, or a field of the task itself; also LangSmith's ``run``
                and ``example``, for what is left out of the arguments above.

        Raises:
            UsageError: an argument that is missing, empty or no text, or that holds more than text, such as calls of
                tools or images, which the judge would not see; or a graph that gives no verdict.
            ReplyError: the model's reply cannot be read; there is no score then.
            ModelCallError: the provider refused the call, or it failed for good.
        """
        given = {**others, "inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        with self._judging(given, runs) as task:
            return self.feedback(self._without_threads.invoke(task), runs)

    async def acall(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        runs: Sequence[Any] | None = None,
        **others: Any,
    ) -> Feedback:
        """Judge from async code, with the arguments and errors of a plain call."""
        given = {**others, "inputs": inputs, "outputs": outputs, "reference_outputs": reference_outputs}
        with self._judging(given, runs) as task:
            return self.feedback(await self._without_threads.ainvoke(task), runs)

    def as_tool(self, name: str | None = None, description: str | None = None) -> BaseTool:
        """Return a tool for agents: texts in, the score or the winner and why in a few lines out.

        Its arguments are the task's fields: ``source`` and ``candidate`` (``fact``), or ``question``, ``answer_1`` and
        ``answer_2`` (``reference``). The whole verdict is the ``artifact`` of the tool's message. Arguments that cannot
        be judged and replies that cannot be read are told to the calling agent.

        >>> tool = create_judge("debate", aspect="consistency").as_tool()
        >>> sorted(tool.args)
        ['candidate', 'fact', 'source']
        """
        named = name or re.sub(r"[^a-zA-Z0-9_-]+", "_", f"judge_{self.key}")[:64]
        # A tool's arguments are the task's own fields: nothing is to be looked up elsewhere.
        plain = Judge(self.graph, replace(self._tasks, mapping={}), self.key)
        return tool_of(self._tasks, plain, plain.acall, named, description)

    def as_agent(self, name: str = "judge", then: str | None = None) -> Compiled:
        """Return an agent that others can hand over to: a compiled graph, messages in and messages out.

        It judges the last answer in the conversation against what was asked before it (a comparison: the last two) and
        adds a message with score and explanation, which has the verdict in ``additional_kwargs``; so has the state.

        Args:
            name: the agent's name.
            then: the agent to go on with, where agents hand over to each other (langgraph-swarm); without it the
                graph around decides, as a supervisor does.

        >>> agent = create_judge("debate", aspect="consistency").as_agent()
        >>> said = [("user", "It rained all day. Sum up."), ("ai", "It rained.")]
        >>> agent.invoke({"messages": said})["messages"][-1].name
        'judge'
        """
        return agent_of(self.graph, self._tasks, name, then)

    def node(self, state: type[Any] | None = None, /, **keys: Unpack[NodeKeys]) -> Runnable[Any, Any]:
        """Return a node for a graph of your own, in which the judge is a sub-graph, with its turns and checkpoints.

        Args:
            state: the class of your graph's state; its keys are checked at once then, else when the node runs.
            **keys: which key of the state each field of the task is taken from (``source``, ``candidate``, ``fact``;
                ``question``, ``answer_1``, ``answer_2``, ``reference``), and which one takes ``score``, ``winner``,
                ``explanation``, ``verdict`` and ``transcript``; what is not named is left out.

        Raises:
            UsageError: a key that the task, the verdict or the state does not have.

        >>> from langgraph.graph import MessagesState, StateGraph
        >>> class Draft(MessagesState):
        ...     article: str
        ...     draft: str
        ...     grade: float
        >>> judge = create_judge("debate", aspect="consistency", n=1)
        >>> node = judge.node(Draft, source="article", candidate="draft", score="grade")
        >>> graph = StateGraph(Draft).add_node("judge", node).set_entry_point("judge").compile()
        >>> 1 <= graph.invoke({"article": "It rained.", "draft": "It rained."})["grade"] <= 5
        True
        """
        return node_of(self.graph, self._tasks, self.feedback, state, keys)

    def evaluate(self, data: Data, **options: Unpack[RunOptions]) -> Evaluation:
        """Judge a dataset; data, options and errors are those of ``jurygraph.eval.evaluate``.

        Scores are on the aspect's scale, and comparisons on the criteria that the items name.
        """
        return run_blocking(self.aevaluate(data, **options))

    async def aevaluate(self, data: Data, **options: Unpack[RunOptions]) -> Evaluation:
        """Judge a dataset from async code."""
        # A run needs much that a single verdict does not, such as the database of its journal.
        from ..run.runner import aevaluate

        if self._tasks.criteria is not None:
            raise UsageError("criteria: the items of a dataset have their own; create the judge without")
        if self._tasks.aspect is not None:
            # Aspects that the caller names for this run come before the judge's own.
            options = {"aspects": [self._tasks.aspect], **options}
        return await aevaluate({self.name: self.graph}, data, **options)

    def task(self, **given: Any) -> ScoreTask | CompareTask:
        """Return the task that a call with these arguments judges."""
        return self._tasks.task(given)

    def feedback(self, outcome: Any, runs: Sequence[Any] | None = None) -> Feedback:
        """Make the feedback of what the graph returned; with LangSmith's ``runs``, a score for each of them.

        Raises:
            UsageError: there is no verdict in it, or one of another kind than was asked for.
        """
        if isinstance(outcome, Mapping) and outcome.get("__interrupt__"):
            setting = "choose a setting without a pause, such as on_unresolved=last"
            remedy = f"{setting}, or invoke judge.graph under a checkpointer"
            raise UsageError(f"{self.name} waits for a person, but an evaluator cannot: {remedy}")
        if not (isinstance(outcome, Mapping) and outcome.get("verdict")):
            raise UsageError(f"{self.name} returned no verdict, so it is not a judge: {shortened(outcome)}")
        aspect = self._tasks.aspect
        try:
            verdict = Verdict.of(outcome, "compare" if aspect is None else "score", aspect)
        except ValidationError as error:
            raise UsageError(f"{self.name} returned a verdict that cannot be read: {error}") from error
        about = {"key": self.key, "comment": verdict.explanation}
        if aspect is None:
            score = PREFERENCE[str(verdict.winner)]
            if runs is not None:
                # Both runs were compared by one call: each gets its side of the score.
                by_run = zip([run.id for run in runs], [score, 1 - score], strict=True)
                return {**about, "scores": dict(by_run)}
        else:
            assert verdict.score is not None
            low, width = (aspect.low, aspect.high - aspect.low) if self._normalize else (0, 1)
            score = (verdict.score - low) / width
        return {**about, "score": score, "metadata": dict(outcome["verdict"])}

    @contextmanager
    def _judging(self, given: dict[str, Any], runs: Sequence[Any] | None) -> Iterator[dict[str, Any]]:
        """Make the graph's input, and say of a reply that cannot be read what may help.

        What is left out of the arguments is taken from LangSmith's run and example.
        """
        run, example = given.get("run"), given.get("example")
        of_langsmith = {
            "inputs": getattr(example, "inputs", None) or getattr(run, "inputs", None),
            "outputs": [compared.outputs for compared in runs] if runs else getattr(run, "outputs", None),
            "reference_outputs": getattr(example, "outputs", None),
        }
        given |= {name: value for name, value in of_langsmith.items() if is_absent(given[name])}
        try:
            with rubric_of_user(self._tasks.rubric):
                yield {"task": self._tasks.task(given).model_dump(mode="json")}
        except ReplyError as error:
            remedies = "more tokens for its reply (max_tokens) or more requests for a readable one (repair)"
            error.add_note(f"No score was given. Another model, {remedies} may help.")
            raise


class AsyncJudge(partial[Coroutine[Any, Any, Feedback]]):
    """The same judge for async code: calling it gives a coroutine; all else is as for ``Judge``.

    A partial of an async function counts as one for ``inspect``, which evaluation runners ask; an object with an async
    ``__call__`` does not.
    """

    @property
    def judge(self) -> Judge:
        """The judge that is called."""
        return cast("Judge", self.func.__self__)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judge, name)


@of.checked_by_protocol
def create_judge(
    judge: Given,
    *,
    aspect: str | Aspect | Mapping[str, Any] | None = None,
    criteria: Sequence[str] | None = None,
    variable_mapping: Mapping[str, str] | None = None,
    key: str | None = None,
    normalize: bool = False,
    **settings: Any,
) -> Judge:
    """Make a judge: with an aspect one that rates an output, without one that compares two.

    Args:
        judge: a protocol's name, file (``mine.py``) or module; or a graph with the same input and output, compiled or
            not, or the file that has it (``mine.py:graph``).
        aspect: what to rate: the name of a known aspect or of a YAML file with one, or an aspect of your own.
        criteria: what to compare two outputs on; default: helpfulness, relevance, accuracy, level of detail.
        variable_mapping: from a field of the task (``source``, ``candidate``, ``fact``; ``question``, ``answer_1``,
            ``answer_2``, ``reference``) to where it is found, such as ``{"source": "inputs.article"}``.
        key: what the score is called; default: the aspect's name, or ``preference``.
        normalize: give scores from 0 to 1 instead of on the aspect's scale. Comparisons always do: 1 where the first
            output wins, 0 where the second does, 0.5 for a tie.
        **settings: settings of the protocol by name, such as ``n=2``; also ``model="openai:gpt-4o-mini"`` or
            ``models``. A graph has its own already.

    Raises:
        UsageError: no such protocol, aspect, setting or field, or a protocol that cannot do this.

    >>> judge = create_judge("debate", aspect="consistency", n=2)
    >>> feedback = judge(inputs="It rained all day.", outputs="It rained.")
    >>> feedback["key"], 1 <= feedback["score"] <= 5
    ('consistency', True)
    """
    graph = load_graph(judge, **settings)
    kinds = kinds_of(graph)
    if ("compare" if aspect is None else "score") not in kinds:
        rates = 'only rates one output: name an aspect, such as aspect="coherence"'
        compares = "only compares two outputs: leave out the aspect"
        raise UsageError(f"{name_of(graph)} {compares if 'compare' in kinds else rates}")
    if aspect is not None and criteria is not None:
        raise UsageError("criteria are what two outputs are compared on: leave out these, or the aspect")
    rated = None if aspect is None else _aspect(aspect)
    tasks = TaskMaker(rated, criteria, variable_mapping or {})
    return Judge(graph, tasks, key or (rated.name if rated else "preference"), normalize)


@of.checked_by_protocol
def create_async_judge(judge: Given, **options: Any) -> AsyncJudge:
    """Make a judge for async code, with the arguments and errors of ``create_judge``.

    >>> import asyncio
    >>> judge = create_async_judge("single", aspect="fluency")
    >>> asyncio.run(judge(inputs="It rained all day.", outputs="It rained."))["key"]
    'fluency'
    """
    make: Callable[..., Judge] = create_judge
    return AsyncJudge(make(judge, **options).acall)


def _aspect(given: str | Aspect | Mapping[str, Any]) -> Aspect:
    if isinstance(given, str) and given.endswith((".yaml", ".yml")):
        return aspect_from_file(Path(given))
    task = parse_task({"kind": "score", "source": "-", "candidate": "-", "aspect": given})
    assert isinstance(task, ScoreTask)
    return task.aspect
