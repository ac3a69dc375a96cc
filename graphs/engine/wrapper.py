"""The base of all wrappers: graphs that check a task, pass it to judges and make one verdict.

    prepare --> (the wrapper's nodes, with a judge in each of some) --> the node that concludes

``repeated``, ``calibrated``, ``cascade`` and ``review`` build on this module, each in two forms:

- Around graphs from the caller (``repeated(graph, k)``). A run does not change their settings, and
  its context goes to the graph inside (``GivenJudges``).
- As a registered protocol that builds its judges by name (``of=debate``). A run's context chooses
  the settings, and the part that concerns a judge is passed on to it (``NestedJudges``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

from langgraph.graph import END, START

from ...nodes.common.server_rules import (
    check_caller,
    check_media,
    check_size,
    is_allowed,
    is_on_server,
    refusal,
)
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.runtime.bound_judge import BoundJudge, Models, OwnModel, is_role, split_models
from ...nodes.runtime.prompt_context import Prompts
from ...nodes.runtime.verdicts import check_kind
from ...state.errors import InputError, UsageError
from ...state.graph_state import GraphState, JudgeOutput, Outcome
from ...state.protocols import CallsByRole, Can, Protocol
from ...state.settings import ModelSpec, Settings, WrapperSettings, make_settings
from ...state.settings.base_settings import explicitly_set
from ...state.tasks import (
    EXAMPLES,
    CompareTask,
    JudgeInput,
    ScoreTask,
    TaskKind,
    input_schema_of,
    kinds_of_input,
    parse_task,
)
from ...state.transcript import Turn
from ...state.verdict import Verdict
from ._langgraph import SyncFunction
from .judge_graph import JudgeGraphBuilder, context_of_run, labels_of
from .nested import Compiled, JudgeSlot, nested_judge_node
from .registry import Given, built, find_protocol, is_reference

WrapperSettingsT = TypeVar("WrapperSettingsT", bound=WrapperSettings)
Count = Literal["calls", "calls_once"]
"""The function of a protocol's record that counts calls."""


def emptied(state: type[GraphState]) -> dict[str, Any]:
    """Return the update that clears a state except for its task, because threads can be reused."""
    return {
        name: [] if name == "scores" else None for name in state.__annotations__ if name != "task"
    }


def marked_outcome(outcome: Outcome, mark: Callable[[Turn], Turn]) -> Outcome:
    """Mark all turns of a judge's outcome, and the id of the turn that explains it."""
    by_id = {turn.get("id"): mark(turn) for turn in outcome["transcript"]}
    explained_by = by_id.get(outcome["verdict"].get("explained_by"))
    verdict = {
        **outcome["verdict"],
        "explained_by": explained_by.get("id") if explained_by else None,
    }
    return Outcome(verdict=verdict, transcript=[mark(turn) for turn in outcome["transcript"]])


def gathered(outcome: Outcome) -> dict[str, Any]:
    """Return the state update for a judge's outcome."""
    scores = outcome["verdict"]["score_by_round"]
    rounds = outcome["verdict"]["rounds"]
    return {"transcript": outcome["transcript"], "scores": scores, "round": rounds}


def verdict_in(outcome: Outcome | None) -> Verdict:
    """Return the verdict of an outcome, which must exist.

    Raises:
        ReplyError: the judge abstained, so there is nothing to combine.
    """
    assert outcome is not None
    verdict = Verdict.of(cast("Mapping[str, Any]", outcome))
    verdict.check_decided()
    return verdict


class GivenJudges(Generic[WrapperSettingsT]):
    """The graphs that a wrapper was given, with settings that no run's context changes.

    Args:
        bound: the settings.
        graphs: the graphs by place; the first one receives the run's context.

    Attributes:
        slots: the judges by place.
        context_schema: the context schema of the first graph.
    """

    def __init__(self, bound: WrapperSettingsT, **graphs: Given) -> None:
        self.bound = bound
        self.slots = {place: JudgeSlot(graph) for place, graph in graphs.items()}
        self.context_schema = next(iter(self.slots.values())).context_schema

    def settings(self, _context: object) -> WrapperSettingsT:
        """Return the settings."""
        return self.bound


class NestedJudge(JudgeSlot, Generic[WrapperSettingsT]):
    """A judge that is built from the name in a wrapper's settings.

    It has the bound settings, and a run's context can override them.

    Attributes:
        bound_judge: the judge as bound, with its settings and models.
    """

    graph: Compiled

    def __init__(self, bound: WrapperSettingsT, place: str, own: Mapping[str, OwnModel]) -> None:
        self._bound = bound
        self._place = place
        self._own = own
        roles = roles_by_place(bound)
        self._roles = roles[place]
        self._all_roles = in_all(roles)
        self._name = str(getattr(bound, place))
        super().__init__(self._build(self._name, bound.handed_to(place)))
        self.bound_judge: BoundJudge[Any] = self.graph.builder.bound_judge  # type: ignore[attr-defined]
        self._graphs = {self._name: self.graph}

    def choose(self, context: object) -> tuple[Compiled, Settings]:
        """Return the graph and the context for a run; a context of another class changes nothing.

        Raises:
            UsageError: an unknown protocol.
            InputError: an unknown setting or an invalid value.
        """
        # Compare the exact class, as ``resolve_settings`` does: wrappers' settings inherit from
        # each other.
        given = context if type(context) is type(self._bound) else type(self._bound)()
        assert isinstance(given, type(self._bound))
        # A resumed run skips the first node, which has checked the context of another run.
        check_choices(given, self._bound)
        name = str(getattr(given.over(self._bound), self._place))
        # Cache graphs by name, because compiling takes long and every verdict needs the graph.
        if name not in self._graphs:
            # Settings that were bound for another judge do not apply to this one.
            shared = type(self._bound).model_validate({self._place: name}).over(self._bound)
            self._graphs[name] = self._build(name, shared.handed_to(self._place))
        return self._graphs[name], self._settings(name, given.handed_to(self._place))

    def _build(self, name: str, given: Mapping[str, Any]) -> Compiled:
        """Build the graph with the caller's chat models; models in the judge's own settings win."""
        own = getattr(self._bound, self._bound.places[self._place]).get("models") or {}
        # A chat model object would override a name in the judge's settings for the same role.
        meant = [role for role in self._own if role not in own and self._has(name, role)]
        models = {role: self._own[role].model for role in meant}
        graph: Compiled = built(name, self._settings(name, given), models).compile(name=name)
        return graph

    def _settings(self, name: str, given: Mapping[str, Any]) -> Settings:
        models = given.get("models")
        if isinstance(models, Mapping):
            given = {
                **given,
                "models": {role: m for role, m in models.items() if self._has(name, role)},
            }
        return _validated(name, given, self._bound.places[self._place])

    def _has(self, name: str, role: str) -> bool:
        """Return whether a role's model is for this judge, not for another one of the wrapper."""
        roles = self._roles if name == self._name else find_protocol(name).protocol.roles
        return is_role(role, roles) or not is_role(role, self._all_roles)


class NestedJudges(BoundJudge[WrapperSettingsT]):
    """The judges inside a registered wrapper, as the bound judge of the wrapper's name.

    Attributes:
        bound: the bound settings, with the judges' own settings in full.
        slots: the judge in each place, by the setting that names it.
        context_schema: the class of the wrapper's settings.
    """

    def __init__(
        self,
        protocol: Protocol[WrapperSettingsT],
        settings: WrapperSettingsT | Mapping[str, Any] | None,
        models: Models | None,
        fields: Mapping[str, Any],
    ) -> None:
        # Model names become part of the settings. Model objects cannot, so they stay separate.
        named, own = split_models(models, fields)
        given = make_settings(protocol.settings, settings, named)
        # The record lists the roles of the default judges, so replace them by the actual roles.
        super().__init__(replace(protocol, roles=in_all(roles_by_place(given))), given, own)
        self.slots = {place: NestedJudge(given, place, own) for place in given.places}
        self.context_schema = type(given)
        described: dict[str, Any] = {}
        for place, judge in self.slots.items():
            # Of the shared settings, describe only those that were set or follow from one that was.
            chosen = {*given.handed_to(place), *judge.bound_judge.bound.implied}
            skipped = {
                name for name in Settings.model_fields if name not in chosen or name == "models"
            }
            inside = judge.bound_judge.bound
            skipped |= inside.unchanged_newer
            described[given.places[place]] = inside.model_dump(mode="json", exclude=skipped)
        self.bound = given.model_copy(update=described)

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """Return the model of each role, with the place as prefix if there are several judges.

        For example, ``cheap.scorer`` is the scorer of the judge in the place ``cheap``.
        """
        # With a single judge, role names are unique without a prefix.
        if len(self.slots) == 1:
            return next(iter(self.slots.values())).bound_judge.chosen()
        inside = ((place, judge.bound_judge.chosen()) for place, judge in self.slots.items())
        return {
            f"{place}.{role}": model for place, chosen in inside for role, model in chosen.items()
        }

    def check_caller(self, context: WrapperSettingsT) -> None:
        """Check the choices of a run's context, including those for the judges inside."""
        check_choices(context, self.bound)

    def check(self, texts: Collection[str] = ()) -> None:
        """Check every judge inside, as ``BoundJudge.check`` does."""
        for judge in self.slots.values():
            judge.bound_judge.check(texts)


def check_choices(context: Settings, bound: Settings) -> None:
    """Check the settings that a server's caller chose for a protocol and for the judges inside it.

    Names in the settings are checked before anything is looked up.

    Args:
        context: the caller's choices.
        bound: the operator's settings of the same protocol.

    Raises:
        UsageError: a setting that only the operator may choose, or a protocol that the server does
            not serve.
        InputError: an unknown setting or an invalid value for a protocol inside.
    """
    if not is_on_server():
        return
    check_caller(context)
    if not isinstance(context, WrapperSettings) or type(context) is not type(bound):
        return
    chosen = explicitly_set(context)
    combined = context.over(bound)
    for place, settings_field in context.places.items():
        name = str(getattr(combined, place))
        if place in chosen and is_reference(name) and not is_allowed(place):
            # The message must not reveal whether a file exists.
            raise refusal(
                place, " as a file or a module, only by the name of a protocol that it serves"
            )
        inner = _validated(name, getattr(context, settings_field), settings_field)
        bound_inside: Settings = inner
        if isinstance(inner, WrapperSettings):
            same = name == str(getattr(bound, place))
            bound_inside = type(inner).model_validate(
                getattr(bound, settings_field) if same else {}
            )
        check_choices(inner, bound_inside)


Judges = GivenJudges[WrapperSettingsT] | NestedJudges[WrapperSettingsT]


class StepGraph(JudgeGraphBuilder):
    """A graph around judges whose own nodes do not call a model."""

    def step(
        self, name: str, work: Callable[[Any], dict[str, Any]], then: str | None = None
    ) -> None:
        """Add a node that does not call a model; ``then`` always follows it."""
        self.place(name, SyncFunction(name, work), then)

    def begin(self, work: Callable[[Any], dict[str, Any]]) -> None:
        """Add the node ``prepare``, with which every run begins."""
        self.step("prepare", work)
        self.add_edge(START, "prepare")

    def end(self, name: str, work: Callable[[Any], dict[str, Any]]) -> None:
        """Add the last node, which does not call a model."""
        self.step(name, work, END)

    def fork(self, source: str, router: Callable[[Any], str], targets: Mapping[str, str]) -> None:
        """Add a conditional edge: a pure function of the state returns the name of an outcome."""
        labels = labels_of(targets)
        ends: dict[Hashable, str] = {labels[outcome]: node for outcome, node in targets.items()}
        choose = SyncFunction(router.__name__, lambda state: labels[router(state)])
        self.add_conditional_edges(source, choose, ends)


class Wrapper(StepGraph, Generic[WrapperSettingsT]):
    """A graph that checks its task and passes it to judges; subclasses add nodes after ``prepare``.

    Attributes:
        bound_judge: the bound settings and judges, for a registered protocol.
        parameters: the wrapper's own arguments, for given graphs.
    """

    def __init__(
        self,
        state: type[GraphState],
        judges: Judges[WrapperSettingsT],
        input_schema: type[Any] | None = None,
        output_schema: type[Any] = JudgeOutput,
    ) -> None:
        shared = [
            k for k in EXAMPLES if all(k in kinds_of(slot.graph) for slot in judges.slots.values())
        ]
        super().__init__(
            state,
            context_schema=judges.context_schema,
            input_schema=input_schema or input_schema_of(shared),
            output_schema=output_schema,
        )
        self.judges = judges
        if isinstance(judges, NestedJudges):
            self.bound_judge = judges
        else:
            others = {*Settings.model_fields, *judges.bound.places, *judges.bound.places.values()}
            self.parameters = judges.bound.model_dump(mode="json", exclude=others)

        def prepare(given: Mapping[str, Any]) -> dict[str, Any]:
            return {**emptied(state), **self.prepared(given)}

        self.begin(prepare)

    def prepared(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the update of the first node, which clears the rest of the state.

        Raises:
            InputError: an invalid task.
            UsageError: a task that this run's settings do not take.
        """
        return {"task": self.checked(given.get("task")).model_dump(mode="json")}

    def checked(self, value: Any) -> ScoreTask | CompareTask:
        """Return a value as a task that this run takes; errors as for ``prepared``."""
        task = parse_task(value)
        check_size("characters", task)
        check_media(task.media)
        self.check(task)
        return task

    def settings(self) -> WrapperSettingsT:
        """Return the settings of the run."""
        return self.judges.settings(context_of_run())

    def check(self, task: ScoreTask | CompareTask) -> None:
        """Check the run's task and settings before any model is called.

        Raises:
            UsageError: an unknown protocol, one that does not take this kind of task, or more calls
                than a server's callers may request.
            InputError: an unknown setting or an invalid value, here or in a judge inside.
        """
        # Given graphs check their tasks themselves, because their kinds are not always known here.
        if not isinstance(self.judges, NestedJudges):
            return
        context = context_of_run()
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
        """Add a node that runs the judge of a place.

        ``before``, ``after`` and ``marks`` are as in ``nested_judge_node``.
        """

        def checked(state: Any) -> Any:
            self.settings()  # an edited state skips ``prepare``
            return before(state)

        def heard(state: Any, outcome: Any) -> Any:
            if not outcome.get("verdict"):
                raise UsageError(
                    f"the judge at {node} ended without a verdict, so it is not a judge; "
                    "if this thread was begun with another judge, resume it with the context of "
                    "its first run"
                )
            return after(state, outcome)

        slot = self.judges.slots[place]
        self.judges_of_nodes[node] = slot.choose
        self.place(node, nested_judge_node(slot, checked, heard, **marks), then)

    def concluded(self, verdict: Verdict) -> dict[str, Any]:
        """Return the final update.

        The verdict of a registered protocol names the wrapper, and the judge in its details.
        """
        if isinstance(self.judges, NestedJudges) and verdict.protocol != self.judges.protocol:
            details = {"of": verdict.protocol, **verdict.details}
            verdict = verdict.model_copy(
                update={"protocol": self.judges.protocol, "details": details}
            )
        final = verdict.model_dump(mode="json")
        return {"verdict": final, "scores": final["score_by_round"], "round": final["rounds"]}


def all_judges(bound_judge: BoundJudge[Any]) -> Iterator[BoundJudge[Any]]:
    """Yield a bound judge, then those nested in it, at any depth."""
    yield bound_judge
    if isinstance(bound_judge, NestedJudges):
        for judge in bound_judge.slots.values():
            yield from all_judges(judge.bound_judge)


def bound_judge_of(graph: Compiled) -> BoundJudge[Any]:
    """Return the judge that a protocol's graph was built with: its settings and roles.

    Raises:
        UsageError: a graph without a judge, whose calls cannot be predicted.
    """
    bound_judge: BoundJudge[Any] | None = getattr(graph.builder, "bound_judge", None)
    if bound_judge is None:
        raise UsageError(
            f"{graph.name} is a graph, not a protocol: its calls can be neither estimated nor sent in batches"
        )
    return bound_judge


def kinds_of(graph: Any) -> tuple[TaskKind, ...]:
    """Return the kinds of task that a graph takes, as far as known.

    All judges inside must take them.
    """
    builder = getattr(graph, "builder", None)
    kinds = kinds_of_input(getattr(builder, "input_schema", JudgeInput))
    inside = builder.judges.slots.values() if isinstance(builder, Wrapper) else ()
    return tuple(kind for kind in kinds if all(kind in kinds_of(slot.graph) for slot in inside))


def roles_by_place(settings: WrapperSettings) -> dict[str, tuple[str, ...]]:
    """Return the protocol's roles for each place of a wrapper; nested wrappers are resolved."""
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
        InputError: an invalid setting, named as part of the wrapper's setting that contains it.
    """
    settings: type[Settings] = find_protocol(name).protocol.settings
    try:
        return settings.model_validate(given)
    except InputError as error:
        # Name ``inner.n`` instead of ``n``, because the caller wrote it there.
        raise error.inside(settings_field) from None


def wrapper_record(
    settings: type[WrapperSettingsT], name: str, summary: str, source: str, **others: Any
) -> Protocol[WrapperSettingsT]:
    """Return a wrapper's record: it takes all tasks and makes its judge's calls by default.

    ``others`` override this. ``times`` among them returns, from the settings, how often the wrapper
    makes the calls of one verdict.
    """
    roles = in_all(roles_by_place(settings()))
    # Include all bundled templates, because the settings decide on the protocols inside.
    # A court is no protocol, so its templates are never used there.
    folders = {name.partition("/")[0] for name in Prompts.bundled().sources} - {"court"}
    prompts = tuple(sorted(folders))
    times: Callable[[WrapperSettingsT], int] = others.pop("times", lambda _settings: 1)

    def calls(chosen: WrapperSettingsT, kind: TaskKind, can: Can) -> CallsByRole:
        inside = calls_inside("calls", chosen, kind, can)
        return {role: of_role * times(chosen) for role, of_role in inside.items()}

    own: dict[str, Any] = {
        "calls": calls,
        "calls_once": partial(calls_inside, "calls_once"),
        **others,
    }
    kinds = own.pop("kinds", ("score", "compare"))
    return Protocol(name, summary, source, kinds, roles, settings, prompts, **own)


def calls_inside(
    count: Count, settings: WrapperSettings, kind: TaskKind, can: Can, place: str = "of"
) -> CallsByRole:
    """Count a place's calls: those of one verdict, or those that serve all verdicts."""
    name = str(getattr(settings, place))
    protocol: Protocol[Any] = find_protocol(name).protocol
    # Leave out settings with default values: a bound wrapper lists both names of a setting that has
    # two.
    defaults = {name: field.get_default() for name, field in protocol.settings.model_fields.items()}
    given = settings.handed_to(place).items()
    changed = {
        name: value for name, value in given if name not in defaults or value != defaults[name]
    }
    counted: Callable[..., CallsByRole] = getattr(protocol, count)
    return counted(_validated(name, changed, settings.places[place]), kind, can)
