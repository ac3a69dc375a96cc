"""The wrappers: graphs that check their task, hand it to judges, and make one verdict of theirs.

    prepare --> (the wrapper's nodes, with a judge in each of some) --> the node that concludes

``repeated``, ``calibrated``, ``cascade`` and ``review`` are made on this skeleton, each in two ways: of graphs that the
caller gives (``repeated(graph, k)``), with settings that no run changes and the run's context for the graph inside
(``GivenJudges``); and as a registered protocol, whose judges are built by name (``of=debate``) and whose settings a
run's context chooses: the part of it that concerns a judge is passed on (``NestedJudges``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

from langgraph.graph import END, START

from ..nodes.bound_judge import BoundJudge, Models, OwnModel, is_role, split_models
from ..nodes.models.loaded_model import LoadedModel
from ..nodes.prompt_context import Prompts
from ..nodes.server_rules import check_caller, check_size
from ..nodes.verdicts import check_kind
from ..state.errors import InputError, UsageError
from ..state.graph_state import GraphState, JudgeOutput
from ..state.protocols import CallsByRole, Can, Protocol
from ..state.settings import ModelSpec, Settings, WrapperSettings, make_settings
from ..state.tasks import (
    EXAMPLES,
    CompareTask,
    JudgeInput,
    ScoreTask,
    TaskKind,
    input_schema_of,
    kinds_of_input,
    parse_task,
)
from ..state.transcript import Turn
from ..state.verdict import Verdict
from .base import SyncFunction
from .judge_graph import JudgeGraphBuilder, context_of_run, labels_of
from .nested import Compiled, JudgeSlot, nested_judge_node
from .registry import Given, built, find_protocol

WrapperSettingsT = TypeVar("WrapperSettingsT", bound=WrapperSettings)
Count = Literal["calls", "calls_once"]
"""Which calls of a protocol are counted, by the field of its record that does so."""


def emptied(state: type[GraphState]) -> dict[str, Any]:
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
    scores, rounds = outcome["verdict"]["score_by_round"], outcome["verdict"]["rounds"]
    return {"transcript": outcome["transcript"], "scores": scores, "round": rounds}


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

    def __init__(self, bound: WrapperSettingsT, **graphs: Given) -> None:
        self.bound = bound
        self.slots = {place: JudgeSlot(graph) for place, graph in graphs.items()}
        self.context_schema = next(iter(self.slots.values())).context_schema

    def settings(self, _context: object) -> WrapperSettingsT:
        """Return the settings."""
        return self.bound


class NestedJudge(JudgeSlot, Generic[WrapperSettingsT]):
    """Build the judge that a wrapper's settings name, with the bound settings; run it with what a context adds.

    Attributes:
        bound_judge: the judge as bound: its settings and models.
    """

    graph: Compiled

    def __init__(self, bound: WrapperSettingsT, place: str, own: Mapping[str, OwnModel]) -> None:
        self._bound, self._place, self._own = bound, place, own
        roles = roles_by_place(bound)
        self._roles, self._all_roles = roles[place], in_all(roles)
        self._name = str(getattr(bound, place))
        super().__init__(self._build(self._name, bound.handed_to(place)))
        self.bound_judge: BoundJudge[Any] = self.graph.builder.bound_judge  # type: ignore[attr-defined]
        self._graphs = {self._name: self.graph}

    def choose(self, context: object) -> tuple[Compiled, Settings]:
        """Return the graph that a run asks for, and its context; a context of another class changes nothing.

        Raises:
            UsageError: no such protocol.
            InputError: a setting that the protocol does not have or that cannot be so.
        """
        # The exact class, as ``resolve_settings`` compares it: one wrapper's settings inherit from another's.
        given = context if type(context) is type(self._bound) else type(self._bound)()
        assert isinstance(given, type(self._bound))
        name = str(getattr(given.over(self._bound), self._place))
        # Kept by name: to build and compile a graph takes much longer than to find it, and each verdict asks for it.
        if name not in self._graphs:
            # What was bound for the judge that was there before says nothing about another one.
            shared = type(self._bound).model_validate({self._place: name}).over(self._bound)
            self._graphs[name] = self._build(name, shared.handed_to(self._place))
        return self._graphs[name], self._settings(name, given.handed_to(self._place))

    def _build(self, name: str, given: Mapping[str, Any]) -> Compiled:
        """Build the graph with the caller's chat models; models in the judge's own settings win."""
        own = getattr(self._bound, self._bound.places[self._place]).get("models") or {}
        # A chat model object would win over a name that the judge's settings give for the same role.
        meant = [role for role in self._own if role not in own and self._has(name, role)]
        models = {role: self._own[role].model for role in meant}
        graph: Compiled = built(name, self._settings(name, given), models).compile(name=name)
        return graph

    def _settings(self, name: str, given: Mapping[str, Any]) -> Settings:
        models = given.get("models")
        if isinstance(models, Mapping):
            given = {**given, "models": {role: m for role, m in models.items() if self._has(name, role)}}
        return _validated(name, given, self._bound.places[self._place])

    def _has(self, name: str, role: str) -> bool:
        """Tell whether a model for this role is for this judge; a role that only the other judge has is not."""
        roles = self._roles if name == self._name else find_protocol(name).protocol.roles
        return is_role(role, roles) or not is_role(role, self._all_roles)


class NestedJudges(BoundJudge[WrapperSettingsT]):
    """Hold the judges inside a registered wrapper, as the bound judge under the wrapper's name.

    Attributes:
        bound: the settings that are bound to it; the judges' own settings in full.
        slots: the judge in each place, by the setting that names it.
        context_schema: the wrapper's settings.
    """

    def __init__(
        self,
        protocol: Protocol[WrapperSettingsT],
        settings: WrapperSettingsT | Mapping[str, Any] | None,
        models: Models | None,
        fields: Mapping[str, Any],
    ) -> None:
        # Names of models are settings and go into the settings; model objects cannot be, and are kept apart.
        named, own = split_models(models, fields)
        given = make_settings(protocol.settings, settings, named)
        # The record has the roles of the judges that the default settings name.
        super().__init__(replace(protocol, roles=in_all(roles_by_place(given))), given, own)
        self.slots = {place: NestedJudge(given, place, own) for place in given.places}
        self.context_schema = type(given)
        described: dict[str, Any] = {}
        for place, judge in self.slots.items():
            # Of the settings that all protocols share, those alone that were set.
            chosen = given.handed_to(place)
            skipped = {name for name in Settings.model_fields if name not in chosen or name == "models"}
            described[given.places[place]] = judge.bound_judge.bound.model_dump(mode="json", exclude=skipped)
        self.bound = given.model_copy(update=described)

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """Return the model of each role; with several judges inside, the place comes first (``cheap.scorer``)."""
        # A lone judge inside needs no prefix to tell its roles from another's.
        if len(self.slots) == 1:
            return next(iter(self.slots.values())).bound_judge.chosen()
        inside = ((place, judge.bound_judge.chosen()) for place, judge in self.slots.items())
        return {f"{place}.{role}": model for place, chosen in inside for role, model in chosen.items()}

    def check(self) -> None:
        """Check every judge inside, as ``BoundJudge.check`` does."""
        for judge in self.slots.values():
            judge.bound_judge.check()


Judges = GivenJudges[WrapperSettingsT] | NestedJudges[WrapperSettingsT]


class StepGraph(JudgeGraphBuilder):
    """A graph whose own nodes call no model, such as one round judges."""

    def step(self, name: str, work: Callable[[Any], dict[str, Any]], then: str | None = None) -> None:
        """Add a node that calls no model; ``then`` always follows it."""
        self.place(name, SyncFunction(name, work), then)

    def begin(self, work: Callable[[Any], dict[str, Any]]) -> None:
        """Add the node ``prepare``, with which every run begins."""
        self.step("prepare", work)
        self.add_edge(START, "prepare")

    def end(self, name: str, work: Callable[[Any], dict[str, Any]]) -> None:
        """Add a node that calls no model, and is the last one."""
        self.step(name, work, END)

    def fork(self, source: str, router: Callable[[Any], str], targets: Mapping[str, str]) -> None:
        """Add a conditional edge: a pure function of the state names the outcome, which leads to a node."""
        labels = labels_of(targets)
        ends: dict[Hashable, str] = {labels[outcome]: node for outcome, node in targets.items()}
        choose = SyncFunction(router.__name__, lambda state: labels[router(state)])
        self.add_conditional_edges(source, choose, ends)


class Wrapper(StepGraph, Generic[WrapperSettingsT]):
    """A graph that checks its task and hands it to judges; each wrapper adds its nodes behind ``prepare``.

    Attributes:
        bound_judge: of a registered protocol its bound settings and judges.
        parameters: of given graphs what the wrapper was given besides.
    """

    def __init__(
        self, state: type[GraphState], judges: Judges[WrapperSettingsT], input_schema: type[Any] | None = None
    ) -> None:
        shared = [k for k in EXAMPLES if all(k in kinds_of(slot.graph) for slot in judges.slots.values())]
        super().__init__(
            state,
            context_schema=judges.context_schema,
            input_schema=input_schema or input_schema_of(shared),
            output_schema=JudgeOutput,
        )
        self.judges = judges
        if isinstance(judges, NestedJudges):
            self.bound_judge = judges
        else:
            others = {*Settings.model_fields, *judges.bound.places, *judges.bound.places.values()}
            self.parameters = judges.bound.model_dump(mode="json", exclude=others)

        def prepare(given: Mapping[str, Any]) -> dict[str, Any]:
            task = parse_task(given.get("task"))
            check_size("characters", task)
            self.check(task)
            return {**emptied(state), "task": task.model_dump(mode="json")}

        self.begin(prepare)

    def settings(self) -> WrapperSettingsT:
        """Return the settings of the run."""
        return self.judges.settings(context_of_run())

    def check(self, task: ScoreTask | CompareTask) -> None:
        """Check the run's task and settings before any model is called.

        Raises:
            UsageError: a protocol that does not exist, or one that does not take this kind of task; or more than
                callers of a server may ask for.
            InputError: a setting, also of a judge inside, that does not exist or cannot be so.
        """
        # Graphs that were given find out by themselves which tasks they take: what they are is not known here.
        if not isinstance(self.judges, NestedJudges):
            return
        context = context_of_run()
        # Before any judge inside is built, and long before one asks a model.
        check_caller(context)
        self.judges.check_calls(self.settings(), task.kind)
        for judge in self.judges.slots.values():
            graph, _ = judge.choose(context)
            check_kind(task.kind, graph.name, kinds_of(graph))

    def judge(
        self,
        node: str,
        place: str,
        after: Callable[[Any, Any], Any],
        before: Callable[[Any], Any] = lambda state: cast("JudgeInput", {"task": state["task"]}),
        then: str | None = None,
        **marks: Any,
    ) -> None:
        """Add a node that runs the judge of a place; ``after`` and ``marks`` are as for ``nested_judge_node``."""

        def checked(state: Any) -> Any:
            self.settings()  # A state that a caller has edited goes round ``prepare``, but not round this check.
            return before(state)

        self.place(node, nested_judge_node(self.judges.slots[place], checked, after, **marks), then)

    def concluded(self, verdict: Verdict) -> dict[str, Any]:
        """Return the last update; of a registered protocol the verdict has its name, and says which it is of."""
        if isinstance(self.judges, NestedJudges) and verdict.protocol != self.judges.protocol:
            details = {"of": verdict.protocol, **verdict.details}
            verdict = verdict.model_copy(update={"protocol": self.judges.protocol, "details": details})
        final = verdict.model_dump(mode="json")
        return {"verdict": final, "scores": final["score_by_round"]}


def all_judges(bound_judge: BoundJudge[Any]) -> Iterator[BoundJudge[Any]]:
    """Yield a bound judge, then those nested in it, at any depth."""
    yield bound_judge
    if isinstance(bound_judge, NestedJudges):
        for judge in bound_judge.slots.values():
            yield from all_judges(judge.bound_judge)


def bound_judge_of(graph: Compiled) -> BoundJudge[Any]:
    """Return the judge that a protocol's graph was built with: its settings and roles.

    Raises:
        UsageError: a graph without, whose calls nobody can tell before they are made.
    """
    bound_judge: BoundJudge[Any] | None = getattr(graph.builder, "bound_judge", None)
    if bound_judge is None:
        cannot = "its calls can be neither estimated nor sent in batches"
        raise UsageError(f"{graph.name} is a graph, not a protocol: {cannot}")
    return bound_judge


def kinds_of(graph: Any) -> tuple[TaskKind, ...]:
    """Return the kinds of task that a graph takes, as far as it tells; of a wrapper, those that its judges take."""
    builder = getattr(graph, "builder", None)
    kinds = kinds_of_input(getattr(builder, "input_schema", JudgeInput))
    inside = builder.judges.slots.values() if isinstance(builder, Wrapper) else ()
    return tuple(kind for kind in kinds if all(kind in kinds_of(slot.graph) for slot in inside))


def roles_by_place(settings: WrapperSettings) -> dict[str, tuple[str, ...]]:
    """Return the roles of the protocol in each place of a wrapper; that protocol may be a wrapper too."""
    roles: dict[str, tuple[str, ...]] = {}
    for place, settings_field in settings.places.items():
        name = str(getattr(settings, place))
        protocol: Protocol[Any] = find_protocol(name).protocol
        roles[place] = protocol.roles
        if issubclass(protocol.settings, WrapperSettings):
            inner: Any = _validated(name, getattr(settings, settings_field), settings_field)
            roles[place] = in_all(roles_by_place(inner))
    return roles


def in_all(roles: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the roles of all places, each once."""
    return tuple(dict.fromkeys(role for of_one in roles.values() for role in of_one))


def _validated(name: str, given: Mapping[str, Any], settings_field: str) -> Settings:
    """Validate the settings of a protocol inside a wrapper.

    Raises:
        InputError: one that cannot be so; named as part of the setting that holds it.
    """
    settings: type[Settings] = find_protocol(name).protocol.settings
    try:
        return settings.model_validate(given)
    except InputError as error:
        # ``inner.n`` instead of ``n``, which is where the caller has written it.
        raise error.inside(settings_field) from None


def wrapper_record(
    settings: type[WrapperSettingsT], name: str, summary: str, source: str, **others: Any
) -> Protocol[WrapperSettingsT]:
    """Return the record of a wrapper: it takes all tasks and makes its judge's calls, unless ``others`` differ.

    ``times`` among them says, from the settings, how often it makes those of one verdict.
    """
    roles = in_all(roles_by_place(settings()))
    # All folders of bundled templates: a wrapper's settings say which of them are used.
    prompts = tuple(sorted({name.partition("/")[0] for name in Prompts.bundled().sources}))
    times: Callable[[WrapperSettingsT], int] = others.pop("times", lambda _settings: 1)

    def calls(chosen: WrapperSettingsT, kind: TaskKind, can: Can) -> CallsByRole:
        inside = calls_inside("calls", chosen, kind, can)
        return {role: of_role * times(chosen) for role, of_role in inside.items()}

    own: dict[str, Any] = {"calls": calls, "calls_once": partial(calls_inside, "calls_once"), **others}
    kinds = own.pop("kinds", ("score", "compare"))
    return Protocol(name, summary, source, kinds, roles, settings, prompts, **own)


def calls_inside(
    count: Count, settings: WrapperSettings, kind: TaskKind, can: Can, place: str = "of"
) -> CallsByRole:
    """Count the calls of the protocol in a place: those of one verdict, or those that serve all verdicts."""
    name = str(getattr(settings, place))
    protocol: Protocol[Any] = find_protocol(name).protocol
    # Without settings at their default: a bound wrapper lists both names of a setting that has two.
    defaults = {name: field.get_default() for name, field in protocol.settings.model_fields.items()}
    given = settings.handed_to(place).items()
    changed = {name: value for name, value in given if name not in defaults or value != defaults[name]}
    counted: Callable[..., CallsByRole] = getattr(protocol, count)
    return counted(_validated(name, changed, settings.places[place]), kind, can)
