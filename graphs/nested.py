"""Put a judge inside another graph, and count and check what wrappers hold.

    the wrapper's node:   state --before--> judge's graph, with a context of its own --after--> update

A ``JudgeSlot`` holds a judge. In ``repeated(graph, k)`` it holds the given graph, and the run's context is that
graph's own. In a registered wrapper (``of=debate``) the judge is built by name, and the run's context is the wrapper's:
the part that concerns the judge is passed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import merge_configs
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import Runtime, get_runtime

from ..nodes.bound_judge import BoundJudge, Models, split_models
from ..nodes.models.loaded_model import LoadedModel
from ..nodes.models.resolver import OwnModel
from ..nodes.prompt_context import Prompts
from ..state.call_counts import CallsByRole, Can
from ..state.checked import shortened
from ..state.errors import InputError, UsageError
from ..state.settings import ModelSpec, Settings, WrapperSettings, make_settings
from ..state.tasks import EXAMPLES, JudgeInput, TaskKind, input_schema_of, kinds_of_input
from ..state.transcript import Turn
from .judge_graph import forwarded, side_by_side, threads_side_by_side
from .protocol_record import Protocol
from .registry import find_protocol
from .remote_judge import RemoteJudge, SettingsElsewhere

Compiled = CompiledStateGraph[Any, Any, Any, Any]
AnyGraph = PregelProtocol[Any, Any, Any, Any] | StateGraph[Any, Any, Any, Any]
"""A graph, compiled or not; also one that runs elsewhere, such as LangGraph's ``RemoteGraph``."""

Choice = tuple[Compiled | None, Settings | None]
"""The graph to run in place of the given one, and the context to run it with; None where neither changes."""
WrapperSettingsT = TypeVar("WrapperSettingsT", bound=WrapperSettings)


class JudgeSlot(NamedTuple):
    """Hold a judge inside a wrapper: its graph as drawn, and how to choose the one that a run's context asks for."""

    graph: Compiled | RemoteJudge
    choose: Callable[[object], Choice]

    @property
    def context_schema(self) -> type[Any] | None:
        """The context schema of the graph; one that runs elsewhere takes any settings, and checks them there."""
        if isinstance(self.graph, RemoteJudge):
            return SettingsElsewhere
        return self.graph.builder.context_schema

    @classmethod
    def of(cls, graph: AnyGraph) -> JudgeSlot:
        """Make the slot of a given graph, compiled or not; a run's context cannot exchange it.

        Raises:
            UsageError: it is no graph, but a protocol's name or module, for example.
        """
        held = graph.compile() if isinstance(graph, StateGraph) else graph
        if not isinstance(held, PregelProtocol):
            raise UsageError(f"a wrapper holds a graph, such as debate.build(), got {shortened(graph)}")
        slot = held if isinstance(held, CompiledStateGraph) else RemoteJudge(held)
        return cls(slot, lambda _context: (None, None))


def shared_input(*slots: JudgeSlot) -> type[Any]:
    """Return the input of a wrapper: the kinds of task that all judges in it take, as far as their graphs tell."""
    inputs = [getattr(getattr(slot.graph, "builder", None), "input_schema", JudgeInput) for slot in slots]
    return input_schema_of([kind for kind in EXAMPLES if all(kind in kinds_of_input(one) for one in inputs)])


def nested_judge_node(
    slot: JudgeSlot,
    before: Callable[[Any], Any],
    after: Callable[[Any, Any], Any],
    metadata: Callable[[Any, Mapping[str, Any]], dict[str, Any]] | None = None,
    mark: Callable[[Any, Turn], Turn] = lambda _state, turn: turn,
) -> RunnableLambda[Any, Any]:
    """Make a node (or a step of one) that runs a judge's graph; sync and async, and drawn as a sub-graph.

    Args:
        slot: the judge.
        before: makes the judge's input from the state.
        after: makes the update from the state and the judge's output.
        metadata: returns the marks that every call of the judge gets, from the state and the marks that are there.
        mark: returns a turn as it is streamed from here, from the state and the turn as the judge streams it.
    """
    # A name in both functions below, which is how LangGraph finds out that it is a sub-graph.
    graph = slot.graph

    def marked(state: Any, config: RunnableConfig) -> RunnableConfig:
        marks = metadata(state, config.get("metadata") or {}) if metadata else {}
        return merge_configs(config, {"metadata": marks})

    def judge(state: Any, config: RunnableConfig) -> Any:
        other, context = slot.choose(context_of_run())
        chosen = other or graph
        with threads_side_by_side(get_runtime()), forwarded(lambda turn: mark(state, turn)):
            outcome = chosen.invoke(before(state), marked(state, config), **_in_context(chosen, context))
        return after(state, outcome)

    async def ajudge(state: Any, config: RunnableConfig) -> Any:
        other, context = slot.choose(context_of_run())
        chosen = other or graph
        async with side_by_side(get_runtime()):
            with forwarded(lambda turn: mark(state, turn)):
                outcome = await chosen.ainvoke(
                    before(state), marked(state, config), **_in_context(chosen, context)
                )
        return after(state, outcome)

    return RunnableLambda(judge, ajudge)


def context_of_run() -> object:
    """Return the context of the run; None where there is none, as while ``update_state`` asks the routers."""
    runtime: Runtime[Any] | None = get_runtime()
    return runtime.context if runtime else None


def _in_context(graph: Any, context: Settings | None) -> dict[str, Any]:
    # A graph that runs elsewhere finds out itself which context is for it.
    return {} if isinstance(graph, RemoteJudge) else {"context": context}


class NestedJudge(Generic[WrapperSettingsT]):
    """Build the judge that a wrapper's settings name, with the bound settings; run it with what a context adds.

    Attributes:
        bound_judge: the judge as bound: its settings and models.
        kinds: kinds of task that it takes, as bound.
        graph: its graph, as bound.
        slot: for the wrapper's node.
    """

    def __init__(self, bound: WrapperSettingsT, place: str, own: Mapping[str, OwnModel]) -> None:
        self._bound, self._place, self._own = bound, place, own
        roles = roles_by_place(bound)
        self._roles, self._all_roles = roles[place], [role for of_one in roles.values() for role in of_one]
        name = self._named(bound)
        self.graph = graph = self._build(name, bound.handed_to(place))
        self.bound_judge: BoundJudge[Any] = graph.builder.bound_judge  # type: ignore[attr-defined]
        self.kinds = kinds_of(graph)
        self._graphs = {name: graph}
        self.slot = JudgeSlot(graph, self.choose)

    def choose(self, context: object) -> tuple[Compiled, Settings]:
        """Return the graph that a run asks for, and its context; a context of another class changes nothing.

        Raises:
            UsageError: no such protocol.
            InputError: a setting that the protocol does not have or that cannot be so.
        """
        # The exact class, as ``resolve_settings`` compares it: one wrapper's settings inherit from another's.
        given = context if type(context) is type(self._bound) else type(self._bound)()
        assert isinstance(given, type(self._bound))
        name = self._named(given.over(self._bound))
        # Kept by name: to build and compile a graph takes much longer than to find it, and each verdict asks for it.
        if name not in self._graphs:
            # What was bound for the judge that was there before says nothing about another one.
            shared = type(self._bound).model_validate({self._place: name}).over(self._bound)
            self._graphs[name] = self._build(name, shared.handed_to(self._place))
        return self._graphs[name], self._settings(name, given.handed_to(self._place))

    def check_run(self, context: object, kind: TaskKind) -> None:
        """Check a run with this context and kind of task, as ``NestedJudges.check_run`` does."""
        graph, _ = self.choose(context)
        kinds = kinds_of(graph)
        if kind not in kinds:
            raise UsageError(f"{graph.name} takes no task of the kind {kind!r}, only {' and '.join(kinds)}")

    def described(self) -> dict[str, Any]:
        """Return the bound settings of the judge, without those that all protocols share unless they were set."""
        own = self._bound.handed_to(self._place)
        skipped = {name for name in Settings.model_fields if name not in own or name == "models"}
        described: dict[str, Any] = self.bound_judge.bound.model_dump(mode="json", exclude=skipped)
        return described

    def _named(self, settings: WrapperSettingsT) -> str:
        return str(getattr(settings, self._place))

    def _build(self, name: str, given: Mapping[str, Any]) -> Compiled:
        """Build the graph with the caller's chat models; models in the judge's own settings win."""
        own = getattr(self._bound, self._bound.places[self._place]).get("models") or {}
        # A chat model object would win over a name that the judge's settings give for the same role.
        models = {
            role: one.model for role, one in self._own.items() if role not in own and self._has(name, role)
        }
        graph: Compiled = find_protocol(name).build(self._settings(name, given), models).compile(name=name)
        return graph

    def _settings(self, name: str, given: Mapping[str, Any]) -> Settings:
        models = given.get("models")
        if isinstance(models, Mapping):
            given = {**given, "models": {role: m for role, m in models.items() if self._has(name, role)}}
        return _validated(name, given, self._bound.places[self._place])

    def _has(self, name: str, role: str) -> bool:
        """Tell whether a model for this role is for this judge; a role that only the other judge has is not."""
        bound = name == self._named(self._bound)
        roles = self._roles if bound else find_protocol(name).protocol.roles
        return is_role(role, roles) or not is_role(role, self._all_roles)


class NestedJudges(BoundJudge[WrapperSettingsT]):
    """Hold the judges inside a registered wrapper, as the bound judge under the wrapper's name.

    Attributes:
        bound: the settings that are bound to it; the judges' own settings in full.
        inside: the judge in each place, by the setting that names it.
        slots: the same for the wrapper's nodes.
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
        roles = dict.fromkeys(role for of_one in roles_by_place(given).values() for role in of_one)
        super().__init__(protocol.name, tuple(roles), given, own)
        self.inside = {place: NestedJudge(given, place, own) for place in given.places}
        self.slots = {place: judge.slot for place, judge in self.inside.items()}
        self.context_schema = type(given)
        held = {given.places[place]: judge.described() for place, judge in self.inside.items()}
        self.bound = given.model_copy(update=held)

    @property
    def kinds(self) -> tuple[TaskKind, ...]:
        """The kinds of task that every judge inside takes."""
        first, *others = (judge.kinds for judge in self.inside.values())
        return tuple(kind for kind in first if all(kind in kinds for kinds in others))

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """Return the model of each role; with several judges inside, the place comes first (``cheap.scorer``)."""
        # A lone judge inside needs no prefix to tell its roles from another's.
        if len(self.inside) == 1:
            return next(iter(self.inside.values())).bound_judge.chosen()
        bound_judges = {place: judge.bound_judge.chosen() for place, judge in self.inside.items()}
        return {
            f"{place}.{role}": model
            for place, chosen in bound_judges.items()
            for role, model in chosen.items()
        }

    def check(self) -> None:
        """Check every judge inside, as ``BoundJudge.check`` does."""
        for judge in self.inside.values():
            judge.bound_judge.check()

    def check_run(self, context: object, kind: TaskKind) -> None:
        """Check a run before any model is called.

        Raises:
            UsageError: a protocol that does not exist, or one that does not take this kind of task.
            InputError: a setting of a judge that does not exist or cannot be so.
        """
        for judge in self.inside.values():
            judge.check_run(context, kind)


def all_judges(bound_judge: BoundJudge[Any]) -> Iterator[BoundJudge[Any]]:
    """Yield a bound judge, then those nested in it, at any depth."""
    yield bound_judge
    if isinstance(bound_judge, NestedJudges):
        for judge in bound_judge.inside.values():
            yield from all_judges(judge.bound_judge)


def bound_judge_of(graph: Compiled) -> BoundJudge[Any]:
    """Return the judge that a protocol's graph was built with: its settings and roles.

    Raises:
        UsageError: a graph without, whose calls nobody can tell before they are made.
    """
    bound_judge: BoundJudge[Any] | None = getattr(graph.builder, "bound_judge", None)
    if bound_judge is None:
        raise UsageError(
            f"{graph.name} is a graph of its own: its calls can be neither estimated nor sent in batches"
        )
    return bound_judge


def kinds_of(graph: Any) -> tuple[TaskKind, ...]:
    """Return the kinds of task that a graph takes, as far as it tells; of a wrapper, those that its judges take."""
    builder = getattr(graph, "builder", None)
    if (bound_judge := getattr(builder, "bound_judge", None)) is None:
        return tuple(kinds_of_input(getattr(builder, "input_schema", JudgeInput)))
    own: tuple[TaskKind, ...] = find_protocol(bound_judge.protocol).protocol.kinds
    return (
        tuple(kind for kind in own if kind in bound_judge.kinds)
        if isinstance(bound_judge, NestedJudges)
        else own
    )


def is_role(name: str, roles: Sequence[str]) -> bool:
    """Tell whether a name is a role, one agent of a role (``juror_1``), or ``*`` for all."""
    # ``advocate_1_3`` is an agent of the role ``advocate``.
    return name == "*" or name in roles or re.sub(r"(_\d+)+$", "", name) in roles


def roles_by_place(settings: WrapperSettings) -> dict[str, tuple[str, ...]]:
    """Return the roles of the protocol in each place of a wrapper; that protocol may be a wrapper too."""
    return {
        place: _roles(str(getattr(settings, place)), settings, held)
        for place, held in settings.places.items()
    }


def _roles(name: str, settings: WrapperSettings, held: str) -> tuple[str, ...]:
    protocol: Protocol[Any] = find_protocol(name).protocol
    if not issubclass(protocol.settings, WrapperSettings):
        return protocol.roles
    inner = _validated(name, getattr(settings, held), held)
    assert isinstance(inner, WrapperSettings)
    return tuple(dict.fromkeys(role for of_one in roles_by_place(inner).values() for role in of_one))


def _validated(name: str, given: Mapping[str, Any], held: str) -> Settings:
    """Validate the settings of a protocol inside a wrapper.

    Raises:
        InputError: one that cannot be so; named as part of the setting that holds it.
    """
    settings: type[Settings] = find_protocol(name).protocol.settings
    try:
        return settings.model_validate(given)
    except InputError as error:
        # ``inner.n`` instead of ``n``, which is where the caller has written it.
        raise error.inside(held) from None


TEMPLATES = tuple(sorted({name.partition("/")[0] for name in Prompts.bundled().sources}))
"""All folders of bundled templates; a wrapper's settings say which of them are used."""


def roles_of(settings: type[WrapperSettings]) -> tuple[str, ...]:
    """Return the roles of the protocols that a wrapper holds by default."""
    names = [settings.model_fields[place].default for place in settings.places]
    roles = [role for name in names for role in find_protocol(name).protocol.roles]
    return tuple(dict.fromkeys(roles))


def calls_of(settings: WrapperSettings, kind: TaskKind, can: Can, place: str = "of") -> CallsByRole:
    """Count the calls of one verdict of the protocol in a place."""
    protocol, inner = _inside(settings, place)
    return protocol.calls(inner, kind, can)


def calls_once_of(settings: WrapperSettings, kind: TaskKind, can: Can, place: str = "of") -> CallsByRole:
    """Count the calls of the protocol in a place that serve all verdicts."""
    protocol, inner = _inside(settings, place)
    return protocol.calls_once(inner, kind, can)


def _inside(settings: WrapperSettings, place: str) -> tuple[Protocol[Any], Settings]:
    protocol: Protocol[Any] = find_protocol(str(getattr(settings, place))).protocol
    return protocol, protocol.settings.model_validate(_changed(protocol.settings, settings.handed_to(place)))


def _changed(settings: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
    """Drop settings that are at their default: a bound wrapper lists both names of a setting that has two."""
    defaults = {name: field.get_default() for name, field in settings.model_fields.items()}
    return {name: value for name, value in given.items() if name not in defaults or value != defaults[name]}
