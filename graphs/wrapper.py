"""The skeleton of the wrappers: a graph that checks its task, hands it to judges, and makes one verdict of theirs.

    prepare --> (the wrapper's nodes, with a judge in each of some) --> the node that concludes

``repeated``, ``calibrated``, ``cascade`` and ``review`` are made on it, each in two ways: of graphs that the caller
gives (``repeated(graph, k)``), with settings that no run changes (``GivenJudges``), and as a registered protocol,
whose judges and settings a run's context chooses (``NestedJudges``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Generic, NotRequired, cast

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from ..state.graph_state import JudgeOutput, as_json, latest
from ..state.settings import Settings
from ..state.tasks import CompareTask, JudgeInput, ScoreTask, TaskKind, parse_task
from ..state.transcript import Score, Turn, merge_turns
from ..state.verdict import Verdict
from .base import SyncFunction
from .nested import (
    AnyGraph,
    JudgeSlot,
    NestedJudges,
    WrapperSettingsT,
    context_of_run,
    nested_judge_node,
    shared_input,
)


class WrapperState(TypedDict):
    """The state of a graph round other judges' graphs, whose turns it gathers as each of them ends."""

    task: Annotated[dict[str, Any], as_json]
    transcript: Annotated[list[Turn], merge_turns]
    scores: list[Score]
    round: Annotated[int, latest]
    verdict: NotRequired[dict[str, Any] | None]


def emptied(state: type[WrapperState]) -> dict[str, Any]:
    """Return the update that empties a state but for its task: an earlier run on the same thread may have left it."""
    return {name: [] if name == "scores" else None for name in state.__annotations__ if name != "task"}


def marked_outcome(outcome: JudgeOutput, mark: Callable[[Turn], Turn]) -> JudgeOutput:
    """Return a judge's outcome with its turns, and the id of the one that explains it, marked."""
    by_id = {turn.get("id"): mark(turn) for turn in outcome["transcript"]}
    explained_by = by_id.get(outcome["verdict"].get("explained_by"))
    verdict = {**outcome["verdict"], "explained_by": explained_by.get("id") if explained_by else None}
    return JudgeOutput(verdict=verdict, transcript=[mark(turn) for turn in outcome["transcript"]])


def gathered(outcome: JudgeOutput) -> dict[str, Any]:
    """Return the update by what a judge has said and come to."""
    verdict = outcome["verdict"]
    return {
        "transcript": outcome["transcript"],
        "scores": verdict["score_by_round"],
        "round": verdict["rounds"],
    }


def verdict_in(outcome: JudgeOutput | None) -> Verdict:
    """Return the verdict of an outcome that is there by now."""
    assert outcome is not None
    return Verdict.of(cast("Mapping[str, Any]", outcome))


class GivenJudges(Generic[WrapperSettingsT]):
    """Hold the graphs that were given to a wrapper, and settings that no run's context changes.

    Args:
        bound: the settings.
        graphs: by place; the run's context is that of the first.

    Attributes:
        slots: the judges.
        context_schema: of the first.
    """

    def __init__(self, bound: WrapperSettingsT, **graphs: AnyGraph) -> None:
        self.bound = bound
        self.slots = {place: JudgeSlot.of(graph) for place, graph in graphs.items()}
        self.context_schema = next(iter(self.slots.values())).context_schema

    def settings(self, _context: object) -> WrapperSettingsT:
        """Return the settings."""
        return self.bound

    def check_run(self, _context: object, _kind: TaskKind) -> None:
        """Leave it to the graphs which tasks they take."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What the wrapper was given besides the graphs, for the description of a run."""
        others = {*Settings.model_fields, *self.bound.places, *self.bound.places.values()}
        described: dict[str, Any] = self.bound.model_dump(mode="json", exclude=others)
        return described


Judges = GivenJudges[WrapperSettingsT] | NestedJudges[WrapperSettingsT]


class Wrapper(StateGraph[Any, Any, Any, Any], Generic[WrapperSettingsT]):
    """A graph that checks its task and hands it to judges; each wrapper adds its nodes behind ``prepare``.

    Attributes:
        called: what the wrapper is called in the name of a judge, as in ``calibrated-debate``.
        bound_judge: of a registered protocol its bound settings and judges.
        parameters: of given graphs what the wrapper was given besides.
    """

    called: ClassVar[str] = "wrapper"

    def __init__(
        self,
        state: type[WrapperState],
        judges: Judges[WrapperSettingsT],
        input_schema: type[Any] | None = None,
    ) -> None:
        super().__init__(
            state,
            context_schema=judges.context_schema,
            input_schema=input_schema or shared_input(*judges.slots.values()),
            output_schema=JudgeOutput,
        )
        self.judges = judges
        if isinstance(judges, NestedJudges):
            self.bound_judge = judges
        else:
            self.parameters = judges.parameters

        def prepare(given: Mapping[str, Any]) -> dict[str, Any]:
            task = parse_task(given.get("task"))
            self.check(task)
            return {**emptied(state), "task": task.model_dump(mode="json")}

        self.step("prepare", prepare)
        self.add_edge(START, "prepare")

    def settings(self) -> WrapperSettingsT:
        """Return the settings of the run."""
        return self.judges.settings(context_of_run())

    def check(self, task: ScoreTask | CompareTask) -> None:
        """Check the run's task and settings before any model is called.

        Raises:
            UsageError: a protocol that does not exist, or one that does not take this kind of task.
            InputError: a setting that does not exist or cannot be so.
        """
        self.judges.check_run(context_of_run(), task.kind)

    def step(self, name: str, work: Callable[[Any], dict[str, Any]]) -> None:
        """Add a node that calls no model."""
        self.add_node(name, SyncFunction(name, work))

    def judge(
        self,
        node: str,
        place: str,
        after: Callable[[Any, Any], Any],
        before: Callable[[Any], Any] = lambda state: cast("JudgeInput", {"task": state["task"]}),
        **marks: Any,
    ) -> None:
        """Add a node that runs the judge of a place; ``after`` and ``marks`` are as for ``nested_judge_node``."""
        self.add_node(node, nested_judge_node(self.judges.slots[place], before, after, **marks))

    def concluded(self, verdict: Verdict) -> dict[str, Any]:
        """Return the last update; of a registered protocol the verdict has its name, and says which it is of."""
        if isinstance(self.judges, NestedJudges) and verdict.protocol != self.judges.protocol:
            details = {"of": verdict.protocol, **verdict.details}
            verdict = verdict.model_copy(update={"protocol": self.judges.protocol, "details": details})
        told = verdict.model_dump(mode="json")
        return {"verdict": told, "scores": told["score_by_round"]}
