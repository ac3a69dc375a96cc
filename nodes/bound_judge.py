"""Hold a graph's settings and models, and make the ``AgentRuntime`` of each of its runs.

For each role, the model is chosen by the run's context, else by ``build``, else it is the offline judge.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple
from weakref import WeakKeyDictionary

from langchain_core.runnables import Runnable, ensure_config
from langchain_core.runnables.config import var_child_runnable_config
from pydantic import BaseModel

from ..state.errors import UsageError
from ..state.protocols import Protocol, exactly
from ..state.redaction import HIDDEN, redact_all
from ..state.settings import ModelSpec, Settings, SettingsT, resolve_settings
from ..state.settings.base_settings import explicitly_set
from ..state.tasks import TaskKind
from ..state.transcript import TurnIds
from .agent_runtime import AgentRuntime, Publish
from .models import prices, resolver
from .models.loaded_model import LoadedModel
from .models.model_chains import check_chain, choices, resolved
from .prompt_context import Prompts
from .server_rules import check_caller, check_size, is_on_server

DEFAULT_TEMPERATURE = 0.0
"""Used with a model chosen by name, where neither it nor the settings say otherwise (DEBATE, E.1; ChatEval, 3.1)."""

Model = str | dict[str, Any] | ModelSpec | Runnable[Any, Any]
"""The name of a chat model, a chat model, or a runnable made of chat models."""

Models = Model | Mapping[str, Model]
"""One model for all, or from a role, one agent's name, or ``"*"`` for all others, to a model."""


class OwnModel:
    """Hold a model object of the caller's own: a chat model, or a runnable made of chat models.

    Attributes:
        model: the object.
        is_configurable: whether a config chooses among models, or parameters of one.
    """

    def __init__(self, model: object) -> None:
        """Take the object.

        Raises:
            UsageError: it is no model.
        """
        self.model = check_chain(model)
        self.is_configurable = bool(choices(self.model, {}))
        self._loaded: dict[str, LoadedModel] = {}

    def loaded(self) -> LoadedModel:
        """Return the model as the running config chooses it; the same choice is the same loaded model.

        Raises:
            UsageError: the config chooses no model that can be made.
        """
        config = ensure_config()
        key = choices(self.model, config) if self.is_configurable else ""
        if key not in self._loaded:
            self._loaded[key] = resolver.wrap(resolved(self.model, config))
        return self._loaded[key]


def split_models(
    models: Models | None, fields: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, OwnModel]]:
    """Split the models given to ``build`` into names, which are settings, and objects, which cannot be.

    Args:
        models: as given.
        fields: the settings given by name; a model for all may be among them as ``model``.

    Returns:
        The fields with the names as ``models``; and the objects by role.

    Raises:
        UsageError: something that is no model.
    """
    given = {**fields}
    roles = {"*": given.pop("model")} if "model" in given else {}
    roles.update(by_role(models))
    own = {r: OwnModel(m) for r, m in roles.items() if not isinstance(m, str | Mapping | ModelSpec)}
    if names := {role: model for role, model in roles.items() if role not in own}:
        given["models"] = names
    return given, own


def by_role(models: Models | None) -> Mapping[str, Any]:
    """Return the model of each role; one model alone is that of all."""
    if models is None:
        return {}
    # A name with its parameters is a mapping, too; no role is called ``name``.
    return models if isinstance(models, Mapping) and "name" not in models else {"*": models}


def is_role(name: str, roles: Sequence[str]) -> bool:
    """Tell whether a name is a role, one agent of a role (``juror_1``), or ``*`` for all."""
    # ``advocate_1_3`` is an agent of the role ``advocate``.
    return name == "*" or name in roles or re.sub(r"(_\d+)+$", "", name) in roles


KEY_CACHE_SECONDS = 1.0
"""Seconds for which an API key read from the environment is trusted."""

RUNS_KEPT = 256
"""So many runs of a graph find again what their first node has checked; beyond, the earliest are checked anew."""


class _Loaded(NamedTuple):
    """Hold what calls on one event loop need.

    Attributes:
        chosen: the model of each role, as a name or loaded.
        prompts: the templates.
        models: the model of each role, loaded.
        until: when the environment is to be looked at again.
    """

    chosen: Mapping[str, ModelSpec | LoadedModel]
    prompts: Prompts
    models: dict[str, LoadedModel]
    until: float


@dataclass(frozen=True, eq=False)
class PreparedRun(Generic[SettingsT]):
    """Hold what all nodes and routers of a run have in common, so that it is checked once and not by each of them.

    Attributes:
        context: the run's context, by which its nodes find this again.
        begun: what was set when the thread was begun, as its state has it; None where no state has it yet.
        in_force: the context with what the thread was begun with.
        settings: what ``in_force`` sets over what is bound.
        loaded: templates and models, by event loop.
    """

    context: object
    begun: Mapping[str, Any] | None
    in_force: object
    settings: SettingsT
    loaded: WeakKeyDictionary[asyncio.AbstractEventLoop, _Loaded] = field(default_factory=WeakKeyDictionary)


class BoundJudge(Generic[SettingsT]):
    """Hold a protocol with the settings and models that were given to ``build``, and make the runtime of each run.

    Attributes:
        record: what the package knows of the protocol.
        protocol: its name.
        roles: roles that can have a model.
        bound: the settings given to ``build``.
        source_digest: of the file that defines the protocol, where no version of a package tells which one it is.
    """

    source_digest = ""

    def __init__(self, record: Protocol[SettingsT], bound: SettingsT, own: Mapping[str, OwnModel]) -> None:
        self.record, self.protocol, self.roles = record, record.name, record.roles
        self.bound = bound
        self._own = own
        self._asks_config = any(model.is_configurable for model in own.values())
        # By the identity of the context, which cannot change: most runs have none, and these have all in common.
        self._runs: OrderedDict[int, PreparedRun[SettingsT]] = OrderedDict()
        self._prompts: dict[str | None, Prompts] = {None: Prompts.bundled(record.templates)}
        # Told here where it can be: a graph that is built inside a run must not read files on the event loop.
        if bound.prompts is not None and var_child_runnable_config.get() is None:
            self._prompts[bound.prompts] = Prompts.load(bound.prompts, record.templates)
        self._check_roles([*bound.models, *own])

    def settings(self, context: object) -> SettingsT:
        """Return the settings of a run with this context; see ``resolve_settings``."""
        return self.run(context).settings

    def run(self, context: object, begun: Mapping[str, Any] | None = None) -> PreparedRun[SettingsT]:
        """Return what the nodes of a run have in common; the first of them to ask has it checked.

        Args:
            context: of the run.
            begun: the settings in the state of a thread that has begun, with which it goes on.

        Raises:
            UsageError: settings that the thread was not begun with, or more than callers of a server may ask for.
            InputError: settings that cannot go together.
        """
        run = self._runs.get(id(context))
        # Kept alive by the entry, a context shares its id with no other; the thread may be another one.
        if run is None or run.context is not context or run.begun != begun:
            in_force = context if begun is None else continued(type(self.bound), context, begun)
            run = PreparedRun(context, begun, in_force, resolve_settings(self.bound, in_force))
            if isinstance(in_force, type(self.bound)) and is_on_server():
                check_size("characters", in_force)
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
            context: of the run.
            publish: the stream of its graph.
            turn_ids: numbers the turns, where some were said before.
            begun: as for ``run``.
            begins: whether the run begins here; the environment, which may hold a new key, is looked at then, and
                after ``KEY_CACHE_SECONDS``.

        Raises:
            UsageError: a role that the protocol does not have, an unknown model, a missing key, a bad template, or
                what the callers of a server may not choose.
        """
        run, loop = self.run(context, begun), asyncio.get_running_loop()
        loaded = None if begins else run.loaded.get(loop)
        if loaded is None or time.monotonic() >= loaded.until:
            loaded = await self._loaded(run, loop, loaded)
        return AgentRuntime(run.settings, loaded.prompts, loaded.models, publish, turn_ids or TurnIds())

    def check_calls(self, settings: SettingsT, *kinds: TaskKind) -> None:
        """Check how many calls a run with these settings takes, where it is one of a server.

        Raises:
            UsageError: more than its callers may ask for. What is bound is allowed, however much it takes.
        """
        if is_on_server():
            most_calls = self.record.most_calls
            check_size("calls", most_calls(settings, *kinds), most_calls(self.bound, *kinds))

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """Return the model of each role as bound by ``build``; ``"*"`` stands for all others."""
        return self._chosen(self.bound, None)

    def check(self) -> None:
        """Check models, keys and templates before any model is called.

        Raises:
            UsageError: an unknown model, a missing key, or prompts that cannot be read.
        """
        Prompts.load(self.bound.prompts, self.record.templates)
        for model in self.chosen().values():
            if isinstance(model, ModelSpec):
                resolver.check(model)

    def _chosen(self, settings: SettingsT, context: object) -> dict[str, ModelSpec | LoadedModel]:
        # A context of this very class has been combined into the settings already; its models are needed apart, since
        # one that a run names goes before a chat model object given to ``build``.
        of_run = context.models if isinstance(context, Settings) and type(context) is type(self.bound) else {}
        self._check_roles(of_run)
        # Later entries win: the offline judge, the settings' names, chat model objects, the run's own names.
        chosen: dict[str, ModelSpec | LoadedModel] = {"*": resolver.OFFLINE}
        own = {role: model.loaded() for role, model in self._own.items()}
        chosen.update({**settings.models, **own, **of_run})
        return {role: _with_parameters(model, settings) for role, model in chosen.items()}

    async def _loaded(
        self, run: PreparedRun[SettingsT], loop: asyncio.AbstractEventLoop, before: _Loaded | None
    ) -> _Loaded:
        """Load templates and models for calls on this event loop; those of ``before`` where they are still right."""
        if before is None or self._asks_config:
            check_caller(run.in_force)
            chosen: Mapping[str, ModelSpec | LoadedModel] = self._chosen(run.settings, run.in_force)
        else:
            chosen = before.chosen
        known = {r: m if isinstance(m, LoadedModel) else resolver.loaded(m, loop) for r, m in chosen.items()}
        models = {role: model for role, model in known.items() if model is not None}
        prompts = self._prompts.get(run.settings.prompts)
        if prompts is None or len(models) < len(chosen):
            # Templates and clients read files, and LangGraph's server refuses blocking calls on the event loop.
            ready = await asyncio.to_thread(self._load, run.settings, chosen, loop)
        else:
            ready = prompts, models
        until = time.monotonic() + KEY_CACHE_SECONDS
        if self._asks_config:
            # Another task of the same run may have another config.
            until = 0.0
        elif not any(isinstance(model, ModelSpec) for model in chosen.values()):
            until = math.inf
        # A closed loop that somebody still refers to would keep its clients. (Another loop's thread may be here, too.)
        for reference in run.loaded.keyrefs():
            if (other := reference()) is not None and other.is_closed():
                run.loaded.pop(other, None)
        loaded = run.loaded[loop] = _Loaded(chosen, *ready, until)
        return loaded

    def _load(
        self, settings: SettingsT, chosen: Mapping[str, ModelSpec | LoadedModel], loop: object
    ) -> tuple[Prompts, dict[str, LoadedModel]]:
        self._prompts[settings.prompts] = prompts = Prompts.load(settings.prompts, self.record.templates)
        models = {r: m if isinstance(m, LoadedModel) else resolver.load(m, loop) for r, m in chosen.items()}
        for model in models.values():
            # Reads the price list, which the first reply would otherwise do on the event loop.
            prices.is_priced(model.label)
        return prompts, models

    def _check_roles(self, named: Sequence[str] | Mapping[str, Any]) -> None:
        """Raise UsageError for a name that is not ``*``, a role, or an agent of one (``juror_2``, ``advocate_1_3``)."""
        for name in named:
            if not is_role(name, self.roles):
                known = f"its roles are {', '.join(self.roles)} (and * for all)"
                raise UsageError(f"{self.protocol} has no role {name!r}; {known}")


def bound_agent(
    name: str, role: str, prompts: tuple[str, ...], models: Models | None, settings: Mapping[str, Any]
) -> BoundJudge[Settings]:
    """Bind settings and models to the one agent of a graph that is no protocol.

    Args:
        name: of the graph, in messages.
        role: of the agent.
        prompts: the folders of its templates.
        models: its model, by the role or ``"*"``.
        settings: those of all protocols.

    Raises:
        UsageError: another role, an unknown model, a missing key.
    """
    given, own = split_models(models, settings)
    kinds: tuple[TaskKind, ...] = ("score", "compare")
    record = Protocol(name, "", "", kinds, (role,), Settings, prompts, lambda *_: {role: exactly(1)})
    return BoundJudge(record, Settings.model_validate(given), own)


def begun_with(schema: type[BaseModel], context: object) -> dict[str, Any]:
    """Return what a run's context set, as plain JSON for the state, where secrets in addresses are hidden."""
    if type(context) is not schema:
        return {}
    assert isinstance(context, BaseModel)
    included = set(explicitly_set(context)) if isinstance(context, Settings) else None
    kept: dict[str, Any] = redact_all(context.model_dump(mode="json", include=included, exclude_unset=True))
    return kept


def continued(schema: type[BaseModel], context: object, begun: Mapping[str, Any]) -> object:
    """Return the context to go on with: the one at hand over the one that the thread was begun with.

    Raises:
        UsageError: a setting of the protocol's own has changed, and with it what the agents' turns mean; or the context
            held a secret, which is not kept.
    """
    if type(context) is not schema:
        return without_hidden(schema.model_validate(begun)) if begun else context
    assert isinstance(context, Settings)
    given = begun_with(schema, context)
    if given == begun:
        return context
    # Models, repairs and the like may change between the calls of one debate; what decides its course may not.
    own = [name for name in given if name not in Settings.model_fields and given[name] != begun.get(name)]
    if own:
        now = ", ".join(f"{name}={given[name]!r}" for name in own)
        were = ", ".join(f"{name}={begun.get(name, 'as bound')!r}" for name in own)
        remedy = "resume it without these settings, or start another thread"
        raise UsageError(f"this thread was started with {were}, but resumed with {now}: {remedy}")
    before = schema.model_validate(begun)
    assert isinstance(before, Settings)
    return without_hidden(context.over(before))


def without_hidden(context: BaseModel) -> BaseModel:
    """Return a context that was kept, where nothing in it was hidden: no model can be called at a hidden address.

    Raises:
        UsageError: it held a secret.
    """
    kept = context.model_dump_json()
    # Also an address in the settings of a judge inside a wrapper; what a judge elsewhere takes for one, it alone knows.
    if _HIDDEN_IN_ADDRESS.search(kept) if isinstance(context, Settings) else HIDDEN in kept:
        problem = "has a secret in an address, which is not stored: resume it with the same context"
        raise UsageError(f"the context that this thread was started with {problem}")
    return context


_HIDDEN_IN_ADDRESS = re.compile(r'base_url\W+[^"]*' + re.escape(HIDDEN))


def _with_parameters(model: ModelSpec | LoadedModel, settings: Settings) -> ModelSpec | LoadedModel:
    """Complete a named model's parameters by those of the settings, or by the default temperature.

    A chat model object of the caller's keeps its own, unless the settings set them.
    """
    if isinstance(model, LoadedModel):
        return model.tuned(settings.temperature, settings.max_tokens)
    if model.name == resolver.OFFLINE.name:
        return model
    temperature = DEFAULT_TEMPERATURE if settings.temperature is None else settings.temperature
    defaults = {"temperature": temperature, "max_tokens": settings.max_tokens}
    return model.model_copy(update={k: v for k, v in defaults.items() if getattr(model, k) is None})
