"""Make a judge in one line: a callable that is an evaluator of openevals and of LangSmith."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol
from pydantic import BaseModel, ValidationError

from ...graphs.engine.given_graphs import compiled, load_graph, name_of
from ...graphs.engine.nested import Compiled
from ...graphs.engine.registry import Given
from ...graphs.engine.wrapper import kinds_of
from ...nodes.common.sync_bridge import run_blocking
from ...nodes.runtime.prompt_context import rubric_of_user
from ...state.aspects import Aspect
from ...state.checked import shortened
from ...state.errors import ReplyError, UsageError
from ...state.tasks import CompareTask, ScoreTask, parse_task
from ...state.verdict import Verdict
from ..datasets.aspect_choice import aspect_from_file
from . import judge_options as of
from .judge_calls import JudgeCalls, JudgeLimits, JudgeUsage
from .judge_inputs import TaskMaker
from .judge_tools import NodeKeys, agent_of, node_of, tool_of
from .peer_prompts import PeerPrompt, named_choices, read_examples, read_prompt, scale_of
from .texts import is_absent

if TYPE_CHECKING:
    from ..datasets.dataset import Data
    from ..results.evaluation import Evaluation
    from ..run.evaluate import RunOptions, SeveralData

Feedback = dict[str, Any]
"""The result of an evaluator: ``key``, ``score``, ``comment`` and ``metadata``.

With several runs it has ``scores``, one for each run.
"""

PREFERENCE = {"1": 1.0, "tie": 0.5, "2": 0.0}
"""The score of a comparison by its winner: 1 if the first output wins."""


class Judge:
    """A judge that you call like an evaluator of openevals or LangSmith.

    Attributes:
        graph: the compiled graph.
        name: the protocol's name, or the graph's.
        key: the name of the score.
    """

    def __init__(
        self,
        graph: PregelProtocol[Any, Any, Any, Any],
        tasks: TaskMaker,
        key: str,
        normalize: bool = False,
        schema: OutputFields | None = None,
        calls: JudgeCalls | None = None,
    ) -> None:
        self.graph = graph
        self.name = name_of(graph)
        self.key = self.__name__ = key
        self._tasks = tasks
        self._normalize = normalize
        self._schema = schema
        self._calls = calls or JudgeCalls(JudgeLimits())
        # A call of an evaluator has no thread, which a graph compiled with a checkpointer would
        # require.
        self._without_threads = compiled(self.name, graph)

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        context: Any = None,
        attachments: Any = None,
        runs: Sequence[Any] | None = None,
        **named: Any,
    ) -> Feedback:
        """Judge one output, or compare two.

        Every argument is shown to the judge, or refused by name.

        Args:
            inputs: the request, or the source of the text: a text, messages, or any JSON value.
            outputs: the output in the same forms, or a list of two outputs to compare.
            reference_outputs: a correct answer, in the same forms.
            context: further texts for the judge, such as retrieved passages, in the same forms.
            attachments: images, audio, PDF files and texts, in the forms of LangSmith and
                openevals.
            runs: LangSmith's two runs; the result then has a score for each.
            **named: further arguments that ``variable_mapping`` or the judge's prompt names, or a
                field of the task. Also LangSmith's ``run`` and ``example``, which fill in arguments
                that you omit.

        Raises:
            UsageError: an argument is unknown, missing or empty, or has a part that the judge
                cannot be shown; or the graph gives no verdict.
            ReplyError: the model's reply cannot be read, so there is no score.
            ModelCallError: the provider refused the call, or all retries failed.
            LimitError: a limit of ``create_judge`` is reached.
        """
        given = {
            **named,
            "inputs": inputs,
            "outputs": outputs,
            "reference_outputs": reference_outputs,
        }
        given |= {"context": context, "attachments": attachments}
        with self._judging(given, runs) as (task, shown), self.judging() as concluded:
            outcome = self._without_threads.invoke(task)
            feedback = self.feedback(outcome, runs)
            concluded(outcome)
            # With an output schema, the result has the schema's type.
            return self._shaped(feedback, shown)  # type: ignore[no-any-return]

    async def acall(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        reference_outputs: Any = None,
        context: Any = None,
        attachments: Any = None,
        runs: Sequence[Any] | None = None,
        **named: Any,
    ) -> Feedback:
        """Judge from async code, with the arguments and errors of a plain call."""
        given = {
            **named,
            "inputs": inputs,
            "outputs": outputs,
            "reference_outputs": reference_outputs,
        }
        given |= {"context": context, "attachments": attachments}
        with self._judging(given, runs) as (task, shown), self.judging() as concluded:
            outcome = await self._without_threads.ainvoke(task)
            feedback = self.feedback(outcome, runs)
            concluded(outcome)
            return self._shaped(feedback, shown)  # type: ignore[no-any-return]

    def as_tool(self, name: str | None = None, description: str | None = None) -> BaseTool:
        """Return a tool for agents: texts in, the score or winner with its reason out.

        Its arguments are the task's fields: ``source`` and ``candidate``, or ``question``,
        ``answer_1`` and ``answer_2``; also ``context``, ``reference`` and, for ratings, ``fact``.
        The whole verdict is the ``artifact`` of the tool's message. If the arguments cannot be
        judged, or a reply cannot be read, the calling agent sees the reason.

        >>> tool = create_judge("debate", aspect="consistency").as_tool()
        >>> sorted(tool.args)
        ['candidate', 'context', 'fact', 'reference', 'source']
        """
        named = name or re.sub(r"[^a-zA-Z0-9_-]+", "_", f"judge_{self.key}")[:64]
        # A tool's arguments are the task's own fields, so no mapping is needed.
        tasks = replace(self._tasks, mapping={})
        plain = Judge(self.graph, tasks, self.key, calls=self._calls)
        return tool_of(self._tasks, plain, plain.acall, named, description)

    def as_agent(self, name: str = "judge", then: str | None = None) -> Compiled:
        """Return an agent that other agents can hand over to.

        The agent is a compiled graph that reads and returns messages. It judges the last answer in
        the conversation against the request before it (a comparison: the last two answers). It adds
        a message with score and explanation. The verdict is in the message's ``additional_kwargs``
        and in the state.

        Args:
            name: the agent's name.
            then: the agent that continues, if agents hand over to each other (langgraph-swarm).
                Without it the surrounding graph decides, such as a supervisor.

        >>> agent = create_judge("debate", aspect="consistency").as_agent()
        >>> said = [("user", "It rained all day. Sum up."), ("ai", "It rained.")]
        >>> agent.invoke({"messages": said})["messages"][-1].name
        'judge'
        """
        return agent_of(self, self._tasks, name, then)

    def node(
        self, state: type[Any] | None = None, /, **keys: Unpack[NodeKeys]
    ) -> Runnable[Any, Any]:
        """Return a node for your own graph, with the judge as a sub-graph.

        Args:
            state: the class of your graph's state, to check its keys at once. Without it they are
                checked when the node runs.
            **keys: the state's key for each field of the task (``source``, ``candidate``, ``fact``;
                ``question``, ``answer_1``, ``answer_2``; ``context``, ``reference``) and for each
                result (``score``, ``winner``, ``explanation``, ``verdict`` and ``transcript``).
                Results without a key are left out.

        Raises:
            UsageError: the task, the verdict or the state has no such key.

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
        return node_of(self, self._tasks, self.feedback, state, keys)

    def evaluate(self, data: Data | SeveralData, **options: Unpack[RunOptions]) -> Evaluation:
        """Judge a dataset; data, options and errors are those of ``jurygraph.eval.evaluate``.

        Scores are on the aspect's scale, and comparisons on the criteria that the items name.
        """
        return run_blocking(self.aevaluate(data, **options))

    async def aevaluate(
        self, data: Data | SeveralData, **options: Unpack[RunOptions]
    ) -> Evaluation:
        """Judge a dataset from async code."""
        # A run imports much that a single verdict does not need, such as the journal's database.
        from ..run.evaluate import aevaluate

        if limits := self._calls.limits.given:
            known = {"cache": "journal", "timeout": "timeout, for one request"}
            named = ", ".join(known.get(name, name) for name in limits)
            raise UsageError(
                f"{next(iter(limits))}: a run has its own limits; create the judge without, and "
                f"give the run {named}"
            )
        if self._tasks.criteria is not None:
            raise UsageError(
                "criteria: the items of a dataset have their own; create the judge without"
            )
        if self._tasks.named is not None:
            raise UsageError(
                "prompt: a dataset shows the judge all texts of an item, not only those that a "
                "prompt names; create the judge with an aspect"
            )
        if self._tasks.aspect is not None:
            # Aspects that the caller names for this run take precedence over the judge's own.
            options = {"aspects": [self._tasks.aspect], **options}
        return await aevaluate({self.name: self.graph}, data, **options)

    @property
    def aspect(self) -> Aspect | None:
        """The aspect of its scores, with their scale; ``None`` for comparisons."""
        return self._tasks.aspect

    @property
    def has_schema(self) -> bool:
        """Whether calls return the fields of an ``output_schema`` instead of a ``Feedback``."""
        return self._schema is not None

    @property
    def usage(self) -> JudgeUsage:
        """The usage of all judgements so far, also as a tool, a node, an agent or a gate.

        It does not include calls of ``judge.graph`` and ``judge.evaluate``, and calls that your own
        graph or a remote graph makes itself.
        """
        return self._calls.usage

    def close(self) -> None:
        """Close the cache of the judge, if it has one; the next judgement opens it again."""
        self._calls.close()

    @contextmanager
    def judging(self) -> Iterator[Callable[[Any], None]]:
        """Make a judgement inside: its model calls are counted and limited.

        Yields a function for the graph's output. Wrappers use this for a judge inside them.
        """
        with self._calls.judgement():
            if "opentelemetry.trace" not in sys.modules:
                yield lambda _outcome: None
                return
            # Imported only where traces are possible, since it imports parts of runs.
            from ..run.calls.tracing import traced_judgement

            with traced_judgement(self.name, self.key) as concluded:
                yield concluded

    def task(self, **given: Any) -> ScoreTask | CompareTask:
        """Return the task that a call with these arguments judges."""
        return self._tasks.task(given).task

    def feedback(self, outcome: Any, runs: Sequence[Any] | None = None) -> Feedback:
        """Return the feedback for the graph's output.

        LangSmith's ``runs`` get a score each.

        Raises:
            UsageError: the output has no verdict, or a verdict of the wrong kind.
        """
        if isinstance(outcome, Mapping) and outcome.get("__interrupt__"):
            raise UsageError(
                f"{self.name} waits for a person, but an evaluator cannot: "
                "choose a setting without a pause, such as on_unresolved=last, or invoke "
                "judge.graph under a checkpointer"
            )
        if not (isinstance(outcome, Mapping) and outcome.get("verdict")):
            raise UsageError(
                f"{self.name} returned no verdict, so it is not a judge: {shortened(outcome)}"
            )
        aspect = self._tasks.aspect
        try:
            verdict = Verdict.of(outcome, "compare" if aspect is None else "score", aspect)
        except ValidationError as error:
            raise UsageError(
                f"{self.name} returned a verdict that cannot be read: {error}"
            ) from error
        about = {"key": self.key, "comment": verdict.explanation}
        if verdict.score is None and verdict.winner is None:
            problem = (
                f"{self.name} reached no result ({verdict.stop_reason}), so there is no score."
            )
            raise ReplyError(problem, verdict.explanation)
        if aspect is None:
            score = PREFERENCE[str(verdict.winner)]
            if runs is not None:
                # One call compared both runs, so each gets its side of the score.
                by_run = zip([run.id for run in runs], [score, 1 - score], strict=True)
                return {**about, "scores": dict(by_run)}
        else:
            assert verdict.score is not None
            low, width = (aspect.low, aspect.high - aspect.low) if self._normalize else (0, 1)
            score = (verdict.score - low) / width
        return {**about, "score": score, "metadata": dict(outcome["verdict"])}

    def _shaped(self, feedback: Feedback, shown: Mapping[str, str]) -> Any:
        """Add which arguments the judge was shown, or reduce the result to the schema."""
        if self._schema is not None:
            return self._schema.filled(feedback)
        if "metadata" in feedback:
            feedback["metadata"] = {**feedback["metadata"], "shown": dict(shown)}
        return feedback

    @contextmanager
    def _judging(
        self, given: dict[str, Any], runs: Sequence[Any] | None
    ) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
        """Yield the graph's input, and add advice to the error about an unreadable reply.

        LangSmith's run and example fill in arguments that you omit. Each text's argument is yielded
        with the input.
        """
        run = given.get("run")
        example = given.get("example")
        of_langsmith = {
            "inputs": getattr(example, "inputs", None) or getattr(run, "inputs", None),
            "outputs": [compared.outputs for compared in runs]
            if runs
            else getattr(run, "outputs", None),
            "reference_outputs": getattr(example, "outputs", None),
        }
        given |= {name: value for name, value in of_langsmith.items() if is_absent(given.get(name))}
        made = self._tasks.task(given)
        rubric = made.task.aspect if isinstance(made.task, ScoreTask) else self._tasks.rubric
        try:
            with rubric_of_user(rubric):
                yield {"task": made.task.model_dump(mode="json")}, made.shown
        except ReplyError as error:
            remedies = "more tokens for its reply (max_tokens) or more requests for a readable one (repair)"
            error.add_note(f"No score was given. Another model, {remedies} may help.")
            raise


class AsyncJudge(partial[Coroutine[Any, Any, Feedback]]):
    """The same judge for async code: calling it returns a coroutine.

    ``inspect`` accepts a partial of an async function as async, and evaluation runners rely on
    that. It does not accept an object with an async ``__call__``.
    """

    @property
    def judge(self) -> Judge:
        """The judge that is called."""
        return cast("Judge", self.func.__self__)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judge, name)


@of.checked_by_protocol
def create_judge(
    judge: Given | None = None,
    /,
    *,
    aspect: str | Aspect | Mapping[str, Any] | None = None,
    criteria: Sequence[str] | None = None,
    variable_mapping: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    key: str | None = None,
    normalize: bool = False,
    output_schema: Any = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    timeout: float | None = None,
    cache: str | Path | None = None,
    **options: Any,
) -> Judge:
    """Create a judge that rates an output, or that compares two outputs.

    Args:
        judge: a protocol's name, file (``mine.py``) or module. Also a graph with the same input and
            output, compiled or not, or its file (``mine.py:graph``). With a prompt the default is
            ``single``.
        aspect: the aspect to rate: the name of a known aspect or of a YAML file with one, or an
            aspect of your own. Without an aspect or a prompt, the judge compares two outputs.
        criteria: the criteria for comparing two outputs; default: helpfulness, relevance, accuracy,
            level of detail.
        variable_mapping: the place of each field of the task (``source``, ``candidate``,
            ``context``, ``fact``, ``reference``; ``question``, ``answer_1``, ``answer_2``) in the
            arguments, such as ``{"source": "inputs.article"}``.
        ignore: arguments of the calls that the judge is not shown, such as ``["attachments"]``.
        key: the name of the score; default: the aspect's name, or ``preference``.
        normalize: give scores from 0 to 1 instead of on the aspect's scale. Comparisons always do:
            1 if the first output wins, 0 if the second does, 0.5 for a tie.
        output_schema: a ``TypedDict``, a pydantic class or a JSON schema with the fields that a
            call returns: ``score``, ``reasoning``, ``comment``, ``key`` or ``metadata``.
        max_cost: the most US dollars that all judgements together may cost. A request that would
            exceed it is not made.
        max_calls: the most requests that all judgements together may make; failed requests count.
        timeout: the most seconds that one judgement may wait for its models.
        cache: a file, or ``postgresql://...``, where replies are stored. The same call is then not
            paid for twice, also by other processes. A judgement with stored replies is repeated for
            free.
        **options: settings of the protocol by name, such as ``n=2``; also
            ``model="openai:gpt-4o-mini"`` or ``models``. A graph already has its own settings. For
            a prompt of another library: ``prompt`` with its places (``{inputs}``, ``{outputs}``,
            ``{reference_outputs}``, ``{context}``, ``{attachments}``), ``choices`` (also named,
            such as ``{"correct": 1, "incorrect": 0}``), ``continuous=True`` or ``low`` and ``high``
            (default: 0 and 1), ``few_shot``, ``system``, ``feedback_key``.

    Raises:
        UsageError: an unknown protocol, aspect, setting or field, or a protocol that does not
            support this.

    >>> judge = create_judge("debate", aspect="consistency", n=2, max_calls=100)
    >>> feedback = judge(inputs="It rained all day.", outputs="It rained.")
    >>> feedback["key"], 1 <= feedback["score"] <= 5, judge.usage.calls <= 100
    ('consistency', True, True)
    >>> judge = create_judge(prompt="Is {outputs} a polite answer to {inputs}?", choices=[0, 1])
    >>> judge(inputs="How are you?", outputs="Fine, thank you.")["score"] in (0, 1)
    True
    """
    judge, options, asked = _with_prompt(judge, options)
    key = key or asked.key
    rated = None if aspect is None else _aspect(aspect)
    if asked.prompt is not None:
        if aspect is not None or criteria is not None:
            raise UsageError("prompt defines what is rated: leave out aspect and criteria")
        rated = asked.prompt.aspect
    graph = load_graph(judge, **options)
    kinds = kinds_of(graph)
    if ("compare" if rated is None else "score") not in kinds:
        rates = 'only rates one output: name an aspect, such as aspect="coherence"'
        compares = "only compares two outputs: leave out the aspect"
        raise UsageError(f"{name_of(graph)} {compares if 'compare' in kinds else rates}")
    if rated is not None and criteria is not None:
        raise UsageError(
            "criteria are what two outputs are compared on: leave out these, or the aspect"
        )
    named = None if asked.prompt is None else asked.prompt.named
    variables = () if asked.prompt is None else asked.prompt.variables
    tasks = TaskMaker(rated, criteria, variable_mapping or {}, ignore, named, variables)
    schema = None if output_schema is None else OutputFields.of(output_schema)
    limits = JudgeLimits(max_cost, max_calls, timeout, cache)
    if limits.given and not isinstance(graph, StateGraph | CompiledStateGraph):
        raise UsageError(
            f"{next(iter(limits.given))}: {name_of(graph)} runs elsewhere, so its calls cannot be "
            "limited or stored here"
        )
    named_key = key or (rated.name if rated else "preference")
    return Judge(graph, tasks, named_key, normalize, schema, _calls_within(limits))


def _calls_within(limits: JudgeLimits) -> JudgeCalls:
    if not limits.needs_pipeline:
        return JudgeCalls(limits)
    # It imports the journal's database, which other judges do not need.
    from .judge_pipeline import limited_pipeline

    return JudgeCalls(limits, limited_pipeline(limits))


@of.checked_by_protocol
def create_async_judge(judge: Given | None = None, /, **options: Any) -> AsyncJudge:
    """Make a judge for async code, with the arguments and errors of ``create_judge``.

    >>> import asyncio
    >>> judge = create_async_judge("single", aspect="fluency")
    >>> asyncio.run(judge(inputs="It rained all day.", outputs="It rained."))["key"]
    'fluency'
    """
    make: Callable[..., Judge] = create_judge
    return AsyncJudge(make(judge, **options).acall)


class _Asked(NamedTuple):
    """The aspect of another library's prompt, if there is one, and the name of its score."""

    prompt: PeerPrompt | None
    key: str | None


_OF_PROMPTS = ("choices", "continuous", "low", "high", "few_shot", "system", "use_reasoning")


def _with_prompt(
    judge: Given | None, options: dict[str, Any]
) -> tuple[Given, dict[str, Any], _Asked]:
    """Return the judge, its protocol's settings, and the values of other libraries' options."""
    options = dict(options)
    if "judge" in options:
        # The name that openevals uses for the model.
        model = options.pop("judge")
        if judge is not None or not isinstance(model, BaseChatModel):
            raise UsageError(
                "judge is not a setting: give the protocol or graph first: "
                'create_judge("debate", ...), and the model as model=...'
            )
        options["model"] = model
    key = options.pop("feedback_key", None)
    prompt = options.pop("prompt", None)
    given = {name: options.pop(name) for name in _OF_PROMPTS if name in options}
    if (examples := options.pop("few_shot_examples", None)) is not None:
        # The names that openevals uses.
        if "few_shot" in given:
            raise UsageError("few_shot and few_shot_examples are both given: give one of them")
        given["few_shot"] = examples
    if prompt is None:
        if given:
            raise UsageError(
                f"{next(iter(given))} belongs to prompt=..., which is not given; "
                "for an aspect, set choices, low, high and examples in Aspect(...)"
            )
        if judge is None:
            raise UsageError(
                'name a protocol first, such as create_judge("debate", aspect="coherence")'
            )
        return judge, options, _Asked(None, key)
    if given.get("use_reasoning", True) is not True:
        raise UsageError(
            "use_reasoning=False: every verdict keeps its reasons, which agents and reports "
            'need; leave it out, and read feedback["score"] alone'
        )
    choices = given.get("choices")
    if isinstance(choices, Mapping):
        prompt = f"{prompt}\n\n{named_choices(choices)}" if isinstance(prompt, str) else prompt
        choices = tuple(choices.values())
    scale = scale_of(
        given.get("low"), given.get("high"), choices, bool(given.get("continuous", False))
    )
    examples = read_examples(given.get("few_shot") or ())
    asked = read_prompt(prompt, key or "score", given.get("system"), examples=examples, **scale)
    return judge or "single", options, _Asked(asked, key)


@dataclass(frozen=True)
class OutputFields:
    """The fields that a judge with an output schema returns.

    Attributes:
        names: the names of the fields.
        make: creates the result from the fields.
    """

    names: tuple[str, ...]
    make: Callable[..., Any]

    @classmethod
    def of(cls, schema: Any) -> OutputFields:
        """Read a ``TypedDict``, a pydantic class or a JSON schema.

        Raises:
            UsageError: the schema has a field that a judge cannot fill, or has another form.
        """
        make: Callable[..., Any] = dict
        if isinstance(schema, Mapping):
            names = tuple(schema.get("properties") or ())
        elif isinstance(schema, type) and issubclass(schema, BaseModel):
            names = tuple(schema.model_fields)
            make = schema
        else:
            names = tuple(getattr(schema, "__annotations__", ()))
        if not names:
            raise UsageError(
                "output_schema must be a TypedDict, a pydantic class or a JSON schema with "
                f"properties, got {shortened(schema)}"
            )
        if unknown := [name for name in names if name not in _FEEDBACK_FIELDS]:
            known = ", ".join(_FEEDBACK_FIELDS)
            raise UsageError(
                f"output_schema: a judge has no {unknown[0]!r} to return; it fills {known}"
            )
        return cls(names, make)

    def filled(self, feedback: Feedback) -> Any:
        """Return the fields with their values from the feedback."""
        return self.make(**{name: feedback[_FEEDBACK_FIELDS[name]] for name in self.names})


_FEEDBACK_FIELDS = {
    **{name: name for name in ("score", "comment", "key", "metadata")},
    **dict.fromkeys(("reasoning", "explanation"), "comment"),
}
"""The fields that an output schema may have, with their place in the feedback."""

_PLACE = re.compile(r"\{\{?\s*(?:inputs|outputs|reference_outputs)\s*\}?\}")


def _aspect(given: str | Aspect | Mapping[str, Any]) -> Aspect:
    if isinstance(given, str) and given.endswith((".yaml", ".yml")):
        aspect = aspect_from_file(Path(given))
    else:
        text = {"source": "-", "context": "-", "fact": "-", "reference": "-", "candidate": "-"}
        task = parse_task({"kind": "score", "aspect": given, **text})
        assert isinstance(task, ScoreTask)
        aspect = task.aspect
    if place := _PLACE.search("\n".join((aspect.criteria, *aspect.steps))):
        raise UsageError(
            f"the criteria of {aspect.name} have the place {place[0]}, which is not filled in: "
            "write the text's name (the candidate, the source), or pass the whole as "
            "create_judge(prompt=...)"
        )
    return aspect
