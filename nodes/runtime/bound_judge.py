"""A graph's settings and models, and the ``AgentRuntime`` of each of its runs.

For each role, the run's context chooses the model, otherwise ``build``. The default is the offline
judge.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple
from weakref import WeakKeyDictionary

from langchain_core.runnables import Runnable, ensure_config
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import BaseModel

from ...state.errors import UsageError
from ...state.protocols import Protocol, exactly
from ...state.redaction import HIDDEN, redact_all
from ...state.settings import (
    OFFLINE,
    Fences,
    ModelSpec,
    SeatSettings,
    Settings,
    SettingsT,
    ToolSettings,
    WrapperSettings,
    resolve_settings,
)
from ...state.settings.base_settings import explicitly_set
from ...state.tasks import TaskKind
from ...state.transcript import TurnIds
from ..common.server_rules import check_caller, check_size, is_on_server
from ..models import prices, resolver
from ..models.loaded_model import LoadedModel
from ..models.model_chains import check_chain, choices, resolved
from .agent_runtime import REPLACEMENT, AgentRuntime, Publish, check_calls_tools, model_key
from .prompt_context import Prompts
from .toolbox import Toolbox, load_toolbox

DEFAULT_TEMPERATURE = 0.0
"""The temperature of a model chosen by name, unless it or the settings give one (DEBATE, E.1)."""

Model = str | dict[str, Any] | ModelSpec | Runnable[Any, Any]
"""The name of a chat model, a chat model, or a runnable made of chat models."""

Models = Model | Mapping[str, Model]
"""One model for all, or a mapping from roles, agents' names or ``"*"`` (all others) to models."""


class OwnModel:
    """The caller's own model object: a chat model, or a runnable made of chat models.

    Attributes:
        model: the object.
        is_configurable: whether a config chooses among models, or parameters of one.
    """

    def __init__(self, model: object) -> None:
        """Check and store the object.

        Raises:
            UsageError: it is not a model.
        """
        self.model = check_chain(model)
        self.is_configurable = bool(choices(self.model, {}))
        self._loaded: dict[str, LoadedModel] = {}

    def loaded(self) -> LoadedModel:
        """Return the model that the running config chooses; equal choices share one loaded model.

        Raises:
            UsageError: the config chooses a model that cannot be created.
        """
        config = ensure_config()
        key = choices(self.model, config) if self.is_configurable else ""
        if key not in self._loaded:
            self._loaded[key] = resolver.wrap(resolved(self.model, config))
        return self._loaded[key]


def split_models(
    models: Models | None, fields: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, OwnModel]]:
    """Split the models of ``build`` into names, which are settings, and objects.

    Args:
        models: the models from the caller.
        fields: the settings given by name; they may include a model for all as ``model``.

    Returns:
        The fields with the names as ``models``, and the objects by role.

    Raises:
        UsageError: an object that is not a model.
    """
    given = {**fields}
    roles = {"*": given.pop("model")} if "model" in given else {}
    roles.update(by_role(models))
    own = {r: OwnModel(m) for r, m in roles.items() if not isinstance(m, str | Mapping | ModelSpec)}
    if names := {role: model for role, model in roles.items() if role not in own}:
        given["models"] = names
    return given, own


def split_replacements(
    fields: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, OwnModel]]:
    """Split the setting ``replacements`` into names, which stay in it, and model objects.

    Returns:
        The fields, and the objects by their place, such as ``replacement_2``; the names fill the
        other places in order.

    Raises:
        UsageError: an object that is not a model.
    """
    given = {**fields}
    listed = given.get("replacements")
    if isinstance(listed, str | ModelSpec | Mapping) or listed is None:
        return given, {}
    models = [*listed] if isinstance(listed, list | tuple) else [listed]
    own = {
        f"{REPLACEMENT}_{place}": OwnModel(model)
        for place, model in enumerate(models, start=1)
        if not isinstance(model, str | Mapping | ModelSpec)
    }
    names = [model for model in models if isinstance(model, str | Mapping | ModelSpec)]
    # Without objects, the settings check the value.
    return ({**given, "replacements": names}, own) if own else (given, {})


def by_role(models: Models | None) -> Mapping[str, Any]:
    """Return the model of each role; a single model is for all roles."""
    if models is None:
        return {}
    # A name with parameters is also a mapping. No role is named ``name``.
    return models if isinstance(models, Mapping) and "name" not in models else {"*": models}


def is_role(name: str, roles: Sequence[str]) -> bool:
    """Return whether a name is a role, one agent of a role (``juror_1``), or ``*`` for all."""
    # ``advocate_1_3`` is an agent of the role ``advocate``.
    return name == "*" or name in roles or re.sub(r"(_\d+)+$", "", name) in roles


KEY_CACHE_SECONDS = 1.0
"""Seconds for which an API key from the environment is used before it is read again."""

RUNS_KEPT = 256
"""The number of recent runs of a graph whose checked settings are cached."""


class _Loaded(NamedTuple):
    """The templates and models for calls on one event loop.

    Attributes:
        chosen: the model of each role, as a name or loaded.
        prompts: the templates.
        models: the loaded model of each role.
        toolbox: the tools of the judging agents; None if they have none.
        until: the time at which the environment is read again.
    """

    chosen: Mapping[str, ModelSpec | LoadedModel]
    prompts: Prompts
    models: dict[str, LoadedModel]
    toolbox: Toolbox | None
    until: float


@dataclass(frozen=True, eq=False)
class PreparedRun(Generic[SettingsT]):
    """The parts that all nodes and routers of a run share, so that they are checked once.

    Attributes:
        context: the run's context, by which its nodes find this object.
        begun: the settings with which the thread began, from its state; None if no state has them
            yet.
        in_force: the context combined with ``begun``.
        settings: the bound settings, overridden by ``in_force``.
        loaded: templates and models, by event loop.
    """

    context: object
    begun: Mapping[str, Any] | None
    in_force: object
    settings: SettingsT
    loaded: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loaded] = field(
        default_factory=WeakKeyDictionary
    )


class BoundJudge(Generic[SettingsT]):
    """A protocol with the settings and models from ``build``, which makes the runtime of each run.

    Attributes:
        record: the record of the protocol.
        protocol: its name.
        roles: the roles that can have a model.
        bound: the settings given to ``build``.
        source_digest: a digest of the file that defines the protocol, if no package version
            identifies it.
    """

    source_digest = ""

    def __init__(
        self,
        record: Protocol[SettingsT],
        bound: SettingsT,
        own: Mapping[str, OwnModel],
        replacements: Mapping[str, OwnModel] | None = None,
    ) -> None:
        self.record = record
        self.protocol = record.name
        self.roles = record.roles
        self.bound = bound
        self._own = own
        self._own_replacements = replacements or {}
        objects = [*own.values(), *self._own_replacements.values()]
        self._asks_config = any(model.is_configurable for model in objects)
        # Key the runs by the identity of their context, which cannot change. Most runs have no
        # context and share one entry.
        self._runs: OrderedDict[int, PreparedRun[SettingsT]] = OrderedDict()
        self._prompts: dict[tuple[str | None, Fences], Prompts] = {
            (None, "on"): Prompts.bundled(record.templates)
        }
        # Load the templates here if possible: a graph that is built inside a run must not read
        # files on the event loop.
        which = bound.prompts, bound.fences
        if which != (None, "on") and var_child_runnable_config.get() is None:
            self._prompts[which] = Prompts.load(bound.prompts, record.templates, bound.fences)
        check_fences(bound)
        self._check_roles([*bound.models, *own])
        self._toolboxes: dict[tuple[object, ...], Toolbox | None] = {(): None}
        # Importing a tool reads files as well.
        if var_child_runnable_config.get() is None:
            self.toolbox(bound)

    def settings(self, context: object) -> SettingsT:
        """Return the settings of a run with this context; see ``resolve_settings``."""
        return self.run(context).settings

    def run(
        self, context: object, begun: Mapping[str, Any] | None = None
    ) -> PreparedRun[SettingsT]:
        """Return the shared parts of a run; the first node that asks has them checked.

        Args:
            context: the run's context.
            begun: the settings in the state of an existing thread, which the run continues.

        Raises:
            UsageError: settings that differ from those of the thread, or that a server's callers
                may not choose; bare texts without a waiver, or on a server.
            InputError: settings that are incompatible.
        """
        run = self._runs.get(id(context))
        # The entry keeps the context alive, so its id is unique. The thread may be another one.
        if run is None or run.context is not context or run.begun != begun:
            in_force = context if begun is None else continued(type(self.bound), context, begun)
            if type(in_force) is type(self.bound) and is_on_server():
                check_size("characters", in_force)
                # Check before anything that the settings name is looked up.
                self.check_caller(in_force)
            run = PreparedRun(context, begun, in_force, resolve_settings(self.bound, in_force))
            check_fences(run.settings, is_on_server())
            if type(in_force) is type(self.bound) and is_on_server():
                self.check_calls(run.settings)
            self._runs[id(context)] = run
            if len(self._runs) > RUNS_KEPT:
                self._runs.popitem(last=False)
        return run

    async def runtime(
        self,
        context: object,
        publish: Publish,
        turn_ids: TurnIds | None = None,
        begun: Mapping[str, Any] | None = None,
        begins: bool = True,
    ) -> AgentRuntime[SettingsT]:
        """Return the runtime of a run with this context.

        Args:
            context: the run's context.
            publish: the stream of its graph.
            turn_ids: numbers the turns, if there are earlier ones.
            begun: as for ``run``.
            begins: whether the run begins here; the environment, which may have a new key, is then
                read, and again after ``KEY_CACHE_SECONDS``.

        Raises:
            UsageError: a role that the protocol does not have, an unknown model, a missing key, an
                invalid template, or a choice that a server's callers may not make.
        """
        run = self.run(context, begun)
        loop = asyncio.get_running_loop()
        loaded = None if begins else run.loaded.get(loop)
        if loaded is None or time.monotonic() >= loaded.until:
            loaded = await self._loaded(run, loop, loaded)
        return AgentRuntime(
            run.settings,
            loaded.prompts,
            loaded.models,
            publish,
            turn_ids or TurnIds(),
            toolbox=loaded.toolbox,
            tool_roles=self.record.tool_roles,
        )

    def toolbox(self, settings: Settings) -> Toolbox | None:
        """Return the tools of these settings, loaded once. Blocking.

        Raises:
            UsageError: a tool that cannot be imported or used.
        """
        key = _tools_key(settings)
        if key not in self._toolboxes:
            assert isinstance(settings, ToolSettings)
            self._toolboxes[key] = load_toolbox(settings)
        return self._toolboxes[key]

    def _check_tools(
        self, settings: SettingsT, chosen: Mapping[str, ModelSpec | LoadedModel]
    ) -> None:
        """Check that the models of all agents with tools can call them.

        The model of a name may need a connection or weights, and is checked when it is loaded.

        Raises:
            UsageError: one cannot; the message names it.
        """
        if not _tools_key(settings):
            return
        numbers = self.record.agents(settings)
        asked: list[tuple[str, ModelSpec | LoadedModel]] = []
        for role in self.record.tool_roles:
            agents = [f"{role}_{number}" for number in range(1, 1 + numbers.get(role, 0))]
            for agent in agents or [role]:
                asked.append((role, chosen[model_key(chosen, role, agent)]))
        replacements = (name for name in chosen if name.startswith(f"{REPLACEMENT}_"))
        asked += [(REPLACEMENT, chosen[name]) for name in replacements]
        for role, model in asked:
            if isinstance(model, LoadedModel):
                check_calls_tools(model.label, role, model.calls_tools)
            else:
                check_calls_tools(str(model), role, model.name != OFFLINE.name)

    def check_caller(self, context: SettingsT) -> None:
        """Check the choices of a run's context; see ``server_rules.check_caller``."""
        check_caller(context)

    def check_calls(self, settings: SettingsT, *kinds: TaskKind) -> None:
        """Check the number of calls that a server's run with these settings makes.

        Raises:
            UsageError: more than callers may request; the number of the bound settings is always
                allowed.
        """
        if is_on_server():
            most_calls = self.record.most_calls
            check_size("calls", most_calls(settings, *kinds), most_calls(self.bound, *kinds))

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """Return the model of each role as bound by ``build``; ``"*"`` is for all others."""
        return self._chosen(self.bound, None)

    @property
    def has_models(self) -> bool:
        """Whether a model is bound by name or as an object; the name ``offline`` counts too."""
        places = self.bound.places.values() if isinstance(self.bound, WrapperSettings) else ()
        inside = (getattr(self.bound, place, {}) for place in places)
        named = bool(self.bound.models) or any(given.get("models") for given in inside)
        return named or bool(self._own)

    def check(self, texts: Collection[str] = ()) -> None:
        """Check models, keys and templates before any model is called.

        Args:
            texts: the fields of tasks that have a text in the data.

        Raises:
            UsageError: an unknown model, a missing key, or prompts that cannot be read or leave out
                a text of the data.
        """
        prompts = Prompts.load(self.bound.prompts, self.record.templates, self.bound.fences)
        prompts.check_shown(self.record.prompts_of(self.bound), texts)
        for model in self.chosen().values():
            if isinstance(model, ModelSpec):
                resolver.check(model)
        self.toolbox(self.bound)
        self._check_tools(self.bound, self.chosen())

    def _chosen(self, settings: SettingsT, context: object) -> dict[str, ModelSpec | LoadedModel]:
        # The settings already include a context of exactly this class. Its models are needed
        # separately, because a model that a run names overrides a chat model object from ``build``.
        of_run = (
            context.models
            if isinstance(context, Settings) and type(context) is type(self.bound)
            else {}
        )
        self._check_roles(of_run)
        # Later entries win: the offline judge, the settings' names, chat model objects, the run's
        # own names.
        chosen: dict[str, ModelSpec | LoadedModel] = {"*": OFFLINE}
        own = {role: model.loaded() for role, model in self._own.items()}
        chosen.update({**settings.models, **own, **of_run})
        if isinstance(settings, SeatSettings):
            # As models of the judge, they are checked, priced and recorded like all others. Those
            # that a run names override the objects from ``build``.
            of_run_alone = (
                type(context) is type(self.bound)
                and isinstance(context, SeatSettings)
                and "replacements" in explicitly_set(context)
            )
            objects = {} if of_run_alone else self._own_replacements
            names = iter(settings.replacements)
            for number in range(1, len(objects) + len(settings.replacements) + 1):
                key = f"{REPLACEMENT}_{number}"
                chosen[key] = objects[key].loaded() if key in objects else next(names)
        return {role: _with_parameters(model, settings) for role, model in chosen.items()}

    async def _loaded(
        self, run: PreparedRun[SettingsT], loop: asyncio.AbstractEventLoop, before: _Loaded | None
    ) -> _Loaded:
        """Load templates and models for this event loop, and reuse ``before`` where possible."""
        if before is None or self._asks_config:
            chosen: Mapping[str, ModelSpec | LoadedModel] = self._chosen(run.settings, run.in_force)
        else:
            chosen = before.chosen
        known = {
            r: m if isinstance(m, LoadedModel) else resolver.loaded(m, loop)
            for r, m in chosen.items()
        }
        models = {role: model for role, model in known.items() if model is not None}
        prompts = self._prompts.get((run.settings.prompts, run.settings.fences))
        if prompts is None or len(models) < len(chosen):
            # Templates and clients read files, and LangGraph's server refuses blocking calls on the
            # event loop.
            ready = await asyncio.to_thread(self._load, run.settings, chosen, loop)
        else:
            ready = prompts, models
        key = _tools_key(run.settings)
        if key not in self._toolboxes:
            await asyncio.to_thread(self.toolbox, run.settings)
        toolbox = self._toolboxes[key]
        self._check_tools(run.settings, ready[1])
        until = time.monotonic() + KEY_CACHE_SECONDS
        if self._asks_config:
            # Another task of the same run may have another config.
            until = 0.0
        elif not any(isinstance(model, ModelSpec) for model in chosen.values()):
            until = math.inf
        # A closed loop that is still referenced would keep its clients. Another thread may do the
        # same, hence the default.
        for reference in run.loaded.keyrefs():
            if (other := reference()) is not None and other.is_closed():
                run.loaded.pop(other, None)
        loaded = run.loaded[loop] = _Loaded(chosen, *ready, toolbox, until)
        return loaded

    def _load(
        self, settings: SettingsT, chosen: Mapping[str, ModelSpec | LoadedModel], loop: object
    ) -> tuple[Prompts, dict[str, LoadedModel]]:
        self._prompts[settings.prompts, settings.fences] = prompts = Prompts.load(
            settings.prompts, self.record.templates, settings.fences
        )
        models = {
            r: m if isinstance(m, LoadedModel) else resolver.load(m, loop)
            for r, m in chosen.items()
        }
        for model in models.values():
            # Read the price list here, because the first reply would otherwise read it on the event
            # loop.
            prices.is_priced(model.label)
        return prompts, models

    def _check_roles(self, named: Sequence[str] | Mapping[str, Any]) -> None:
        """Raise UsageError for a name that is neither ``*``, a role, nor an agent of one."""
        for name in named:
            if not is_role(name, self.roles):
                raise UsageError(
                    f"{self.protocol} has no role {name!r}; "
                    f"its roles are {', '.join(self.roles)} (and * for all)"
                )


def _tools_key(settings: Settings) -> tuple[object, ...]:
    """Return the identity of the tools of these settings; empty without tools."""
    if not isinstance(settings, ToolSettings) or not settings.juror_tools:
        return ()
    tools = (spec.name if spec.tool is None else id(spec.tool) for spec in settings.juror_tools)
    return settings.tool_timeout, *tools


def check_fences(settings: Settings, on_server: bool = False) -> None:
    """Check that bare texts are only judged if the caller vouches for them.

    Args:
        settings: the settings of a run.
        on_server: whether the run is on a server, whose callers bring the texts.

    Raises:
        UsageError: ``fences=off`` without ``trusted_texts``, or on a server.
    """
    if settings.fences == "on":
        return
    if on_server:
        raise UsageError(
            f"{settings.called}: fences=off is not possible on a server, because its callers "
            "bring the texts; leave fences on"
        )
    if not settings.trusted_texts:
        raise UsageError(
            f"{settings.called}: with fences=off, a text under judgement can give orders to the "
            "judge; if you trust every text of your data, also set trusted_texts=true"
        )


def bound_agent(
    name: str,
    role: str,
    prompts: tuple[str, ...],
    models: Models | None,
    settings: Mapping[str, Any],
) -> BoundJudge[Settings]:
    """Bind settings and models to the only agent of a graph that is not a protocol.

    Args:
        name: the graph's name for messages.
        role: the agent's role.
        prompts: the folders of its templates.
        models: its model, by role or ``"*"``.
        settings: settings that all protocols share.

    Raises:
        UsageError: another role, an unknown model, or a missing key.
    """
    given, own = split_models(models, settings)
    kinds: tuple[TaskKind, ...] = ("score", "compare")
    record = Protocol(
        name, "", "", kinds, (role,), Settings, prompts, lambda *_: {role: exactly(1)}
    )
    return BoundJudge(record, Settings.model_validate(given), own)


def begun_with(schema: type[BaseModel], context: object) -> dict[str, Any]:
    """Return the settings of a run's context as JSON for the state, with secrets removed."""
    if type(context) is not schema:
        return {}
    assert isinstance(context, BaseModel)
    included = set(explicitly_set(context)) if isinstance(context, Settings) else None
    kept: dict[str, Any] = redact_all(
        context.model_dump(mode="json", include=included, exclude_unset=True)
    )
    return kept


def continued(schema: type[BaseModel], context: object, begun: Mapping[str, Any]) -> object:
    """Return the context of a resumed run: the given one over the one that began the thread.

    Raises:
        UsageError: a setting of the protocol itself has changed, and with it the meaning of the
            turns; or the stored context contained a secret, which was removed.
    """
    if type(context) is not schema:
        return without_hidden(schema.model_validate(begun)) if begun else context
    assert isinstance(context, Settings)
    given = begun_with(schema, context)
    if given == begun:
        return context
    # Models, repairs and similar settings may change during a debate. Settings that decide its
    # course may not.
    own = [
        name
        for name in given
        if name not in Settings.model_fields and given[name] != begun.get(name)
    ]
    if own:
        now = ", ".join(f"{name}={given[name]!r}" for name in own)
        were = ", ".join(f"{name}={begun.get(name, 'as bound')!r}" for name in own)
        raise UsageError(
            f"this thread was started with {were}, but resumed with {now}: "
            "resume it without these settings, or start another thread"
        )
    before = schema.model_validate(begun)
    assert isinstance(before, Settings)
    return without_hidden(context.over(before))


def without_hidden(context: BaseModel) -> BaseModel:
    """Return a stored context if no secret was removed from it; removed addresses cannot be called.

    Raises:
        UsageError: the context contained a secret.
    """
    kept = context.model_dump_json()
    # This includes addresses in the settings of nested judges. For a judge elsewhere, any setting
    # may be an address.
    if _HIDDEN_IN_ADDRESS.search(kept) if isinstance(context, Settings) else HIDDEN in kept:
        raise UsageError(
            "the context that this thread was started with has a secret in an address, which is "
            "not stored: resume it with the same context"
        )
    return context


_HIDDEN_IN_ADDRESS = re.compile(r'base_url\W+[^"]*' + re.escape(HIDDEN))


def _with_parameters(model: ModelSpec | LoadedModel, settings: Settings) -> ModelSpec | LoadedModel:
    """Complete a named model's parameters from the settings, or with the default temperature.

    A chat model object keeps its own parameters, unless the settings set them.
    """
    if isinstance(model, LoadedModel):
        return model.tuned(settings.temperature, settings.max_tokens)
    if model.name == OFFLINE.name:
        return model
    temperature = DEFAULT_TEMPERATURE if settings.temperature is None else settings.temperature
    defaults = {"temperature": temperature, "max_tokens": settings.max_tokens}
    return model.model_copy(update={k: v for k, v in defaults.items() if getattr(model, k) is None})
