"""Hold a graph's settings and models, and make the ``AgentRuntime`` of each of its runs.

For each role, the model is chosen by the run's context, else by ``build``, else it is the offline judge.
"""

from __future__ import annotations

import asyncio
import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple

from langchain_core.runnables import Runnable
from langchain_core.runnables.config import var_child_runnable_config

from ..state.errors import UsageError
from ..state.settings import ModelSpec, Settings, SettingsT, resolve_settings
from .agent_runtime import AgentRuntime, TurnIds
from .models import prices, resolver
from .models.loaded_model import LoadedModel
from .models.resolver import OwnModel
from .prompt_templates import Prompts
from .server_rules import check_caller

DEFAULT_TEMPERATURE = 0.0
"""Used with a model chosen by name, where neither it nor the settings say otherwise (DEBATE, E.1; ChatEval, 3.1)."""

Model = str | dict[str, Any] | ModelSpec | Runnable[Any, Any]
"""The name of a chat model, a chat model, or a runnable made of chat models."""

Models = Model | Mapping[str, Model]
"""One model for all, or from a role, one agent's name, or ``"*"`` for all others, to a model."""


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
    own = {role: OwnModel(model) for role, model in roles.items() if not _is_name(model)}
    if names := {role: model for role, model in roles.items() if role not in own}:
        given["models"] = names
    return given, own


def by_role(models: Models | None) -> Mapping[str, Any]:
    """Return the model of each role; one model alone is that of all."""
    if models is None:
        return {}
    # A name with its parameters is a mapping, too; no role is called ``name``.
    return models if isinstance(models, Mapping) and "name" not in models else {"*": models}


def _is_name(model: object) -> bool:
    return isinstance(model, str | Mapping | ModelSpec)


FRESH = 1.0
"""For so many seconds nodes of a run do not look again whether a key in the environment has changed."""


class _Loaded(NamedTuple):
    """Hold what a run's nodes have in common."""

    context: object
    loop: weakref.ref[asyncio.AbstractEventLoop]
    until: float
    prompts: Prompts
    models: dict[str, LoadedModel]

    def holds(self, context: object, loop: asyncio.AbstractEventLoop) -> bool:
        """Tell whether it holds for a node with this context on this loop."""
        return self.context is context and self.loop() is loop and time.monotonic() < self.until


class BoundJudge(Generic[SettingsT]):
    """Hold a protocol with the settings and models that were given to ``build``, and make the runtime of each run.

    Attributes:
        protocol: the protocol's name.
        roles: roles that can have a model.
        bound: the settings given to ``build``.
    """

    def __init__(
        self,
        protocol: str,
        roles: Sequence[str],
        bound: SettingsT,
        own: Mapping[str, OwnModel],
        templates: Path | None = None,
    ):
        self.protocol = protocol
        self.roles = roles
        self.bound = bound
        self.templates = templates
        self._own = own
        self._settled: tuple[object, SettingsT] | None = None
        self._last: _Loaded | None = None
        self._prompts: dict[str | None, Prompts] = {None: Prompts.bundled(templates)}
        # Told here where it can be: a graph that is built inside a run must not read files on the event loop.
        if bound.prompts is not None and var_child_runnable_config.get() is None:
            self._prompts[bound.prompts] = Prompts.load(bound.prompts, templates)
        self._check_roles([*bound.models, *own])

    def settings(self, context: object) -> SettingsT:
        """Return the settings of a run with this context; see ``resolve_settings``."""
        # All nodes and routers of a run ask with the same context, which cannot change: settings are checked once.
        settled = self._settled
        if settled is None or settled[0] is not context:
            settled = self._settled = context, resolve_settings(self.bound, context)
        return settled[1]

    async def runtime(
        self,
        context: object,
        publish: Callable[[Any], None],
        turn_ids: TurnIds | None = None,
        begins: bool = True,
    ) -> AgentRuntime[SettingsT]:
        """Return the runtime of a run with this context.

        Args:
            context: of the run.
            publish: where its turns are streamed to.
            turn_ids: numbers the turns, where some were said before.
            begins: whether the run begins here; the environment, which may hold a new key, is looked at then, and
                after ``FRESH`` seconds.

        Raises:
            UsageError: a role that the protocol does not have, an unknown model, a missing key, a bad template, or
                what the callers of a server may not choose.
        """
        check_caller(context)
        turn_ids = turn_ids or TurnIds()
        settings, loop = self.settings(context), asyncio.get_running_loop()
        if not begins and (last := self._last) is not None and last.holds(context, loop):
            return AgentRuntime(settings, last.prompts, last.models, publish, turn_ids)
        self._last = None
        chosen = self._chosen(settings, context)
        prompts = self._prompts.get(settings.prompts)
        models = _already_loaded(chosen, loop)
        # Every node comes through here, so what is loaded already must not cost a thread.
        if prompts is not None and models is not None:
            # A model object of the caller's own may be chosen by the running config.
            if not self._own:
                self._last = _Loaded(context, weakref.ref(loop), time.monotonic() + FRESH, prompts, models)
            return AgentRuntime(settings, prompts, models, publish, turn_ids)
        # Templates and clients read files, and LangGraph's server refuses blocking calls on the event loop.
        prompts_and_models = await asyncio.to_thread(self._load, settings, chosen, loop)
        return AgentRuntime(settings, *prompts_and_models, publish, turn_ids)

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """Return the model of each role as bound by ``build``; ``"*"`` stands for all others."""
        return self._chosen(self.bound, None)

    def check(self) -> None:
        """Check models, keys and templates before any model is called.

        Raises:
            UsageError: an unknown model, a missing key, or prompts that cannot be read.
        """
        Prompts.load(self.bound.prompts, self.templates)
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

    def _load(
        self, settings: SettingsT, chosen: Mapping[str, ModelSpec | LoadedModel], loop: object
    ) -> tuple[Prompts, dict[str, LoadedModel]]:
        self._prompts[settings.prompts] = prompts = Prompts.load(settings.prompts, self.templates)
        models = {r: m if isinstance(m, LoadedModel) else resolver.load(m, loop) for r, m in chosen.items()}
        for model in models.values():
            # Reads the price list, which the first reply would otherwise do on the event loop.
            prices.is_priced(model.label)
        return prompts, models

    def _check_roles(self, named: Sequence[str] | Mapping[str, Any]) -> None:
        """Raise UsageError for a name that is not ``*``, a role, or an agent of one (``juror_2``, ``advocate_1_3``)."""
        for name in named:
            if name != "*" and name not in self.roles and re.sub(r"(_\d+)+$", "", name) not in self.roles:
                raise UsageError(
                    f"{self.protocol} has no role {name!r}; its roles are {', '.join(self.roles)} (and * for all)"
                )


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


def _already_loaded(
    chosen: Mapping[str, ModelSpec | LoadedModel], loop: object
) -> dict[str, LoadedModel] | None:
    """Return the loaded models of all roles, or None where one has yet to be loaded."""
    found = {r: m if isinstance(m, LoadedModel) else resolver.loaded(m, loop) for r, m in chosen.items()}
    models = {role: model for role, model in found.items() if model is not None}
    return models if len(models) == len(chosen) else None
