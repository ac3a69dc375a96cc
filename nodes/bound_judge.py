"""Who judges: a protocol's roles, the settings bound to it, and the model behind each role."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from langchain_core.language_models import BaseChatModel

from ..state.errors import UsageError
from ..state.settings import ModelSpec, Settings, SettingsT, resolve_settings
from .agent_runtime import AgentRuntime
from .models import prices, resolver
from .models.loaded_model import LoadedModel
from .prompt_templates import Prompts

DEFAULT_TEMPERATURE = 0.0
"""Of a model chosen by name, where neither it nor the settings say otherwise (DEBATE, E.1; ChatEval, 3.1)."""

Models = Mapping[str, "str | dict[str, Any] | ModelSpec | BaseChatModel"]
"""Role (or one agent's name, or ``"*"`` for all) to a chat model or the name of one."""


class BoundJudge(Generic[SettingsT]):
    """The agents of one graph, from ``build`` on; each run gets its ``AgentRuntime`` from here."""

    def __init__(
        self, protocol: str, roles: Sequence[str], bound: SettingsT, chats: Mapping[str, BaseChatModel]
    ):
        self.protocol = protocol
        self.roles = roles
        self.bound = bound
        self._own = {role: resolver.wrap(chat) for role, chat in chats.items()}
        self._prompts: dict[str | None, Prompts] = {None: Prompts.bundled()}
        self._check_roles([*bound.models, *chats])

    def settings(self, context: object) -> SettingsT:
        """The settings of a run; see ``resolve_settings``."""
        return resolve_settings(self.bound, context)

    async def runtime(self, context: object, publish: Callable[[Any], None]) -> AgentRuntime[SettingsT]:
        """What the agents of one run need. Whatever reads files is done off the event loop.

        Raises:
            UsageError: a role that the protocol does not have, an unknown model, a missing key, a bad template.
        """
        settings = self.settings(context)
        chosen = self._chosen(settings, context)
        loop = asyncio.get_running_loop()
        prompts = self._prompts.get(settings.prompts)
        seated = _at_hand(chosen, loop)
        if prompts is not None and seated is not None:
            return AgentRuntime(settings, prompts, seated, publish)
        return AgentRuntime(settings, *await asyncio.to_thread(self._load, settings, chosen, loop), publish)

    def chosen(self) -> dict[str, ModelSpec | LoadedModel]:
        """The model of each role as bound by ``build``; ``"*"`` stands for all others."""
        return self._chosen(self.bound, None)

    def check(self) -> None:
        """Say what is missing before any model is called.

        Raises:
            UsageError: an unknown model, a missing key, or prompts that cannot be read.
        """
        Prompts.load(self.bound.prompts)
        for model in self.chosen().values():
            if isinstance(model, ModelSpec):
                resolver.check(model)

    def _chosen(self, settings: SettingsT, context: object) -> dict[str, ModelSpec | LoadedModel]:
        of_run = context.models if isinstance(context, Settings) and type(context) is type(self.bound) else {}
        self._check_roles(of_run)
        chosen: dict[str, ModelSpec | LoadedModel] = {"*": resolver.OFFLINE}
        chosen.update({**settings.models, **self._own, **of_run})
        return {role: _with_parameters(model, settings) for role, model in chosen.items()}

    def _load(
        self, settings: SettingsT, chosen: Mapping[str, ModelSpec | LoadedModel], loop: object
    ) -> tuple[Prompts, dict[str, LoadedModel]]:
        self._prompts[settings.prompts] = prompts = Prompts.load(settings.prompts)
        seated = {r: m if isinstance(m, LoadedModel) else resolver.load(m, loop) for r, m in chosen.items()}
        for model in seated.values():
            prices.is_priced(model.label)
        return prompts, seated

    def _check_roles(self, named: Sequence[str] | Mapping[str, Any]) -> None:
        for name in named:
            if name != "*" and name not in self.roles and re.sub(r"(_\d+)+$", "", name) not in self.roles:
                raise UsageError(
                    f"{self.protocol} has no role {name!r}; its roles are {', '.join(self.roles)} (and * for all)"
                )


def _with_parameters(model: ModelSpec | LoadedModel, settings: Settings) -> ModelSpec | LoadedModel:
    """A named model's own parameters, else those of the settings; a caller's chat model only changes on purpose."""
    if isinstance(model, LoadedModel):
        return model.tuned(settings.temperature, settings.max_tokens)
    if model.name == resolver.OFFLINE.name:
        return model
    temperature = DEFAULT_TEMPERATURE if settings.temperature is None else settings.temperature
    defaults = {"temperature": temperature, "max_tokens": settings.max_tokens}
    return model.model_copy(update={k: v for k, v in defaults.items() if getattr(model, k) is None})


def _at_hand(chosen: Mapping[str, ModelSpec | LoadedModel], loop: object) -> dict[str, LoadedModel] | None:
    """The models if all of them have been loaded before."""
    seated = {r: m if isinstance(m, LoadedModel) else resolver.loaded(m, loop) for r, m in chosen.items()}
    at_hand = {role: model for role, model in seated.items() if model is not None}
    return at_hand if len(at_hand) == len(chosen) else None
