"""Wrap a chat model for calls, and make its identity.

The identity is all that decides what a model says, and nothing that is secret or says where it is asked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import BaseModel

from ...state.redaction import remember_secrets
from ...state.settings import ModelSpec
from ..offline import DISCLOSURE, OfflineJudge
from .capabilities import BOUNDS, LOGPROBS, SEVERAL, STRUCTURE, SYSTEM
from .chat_classes import field_of
from .event_loop import on_loop_end
from .loop_clients import for_running_loop, hold_connections
from .model_chains import Chain, chats_in, fallbacks_in, naming_writer, parameters_in, with_each
from .reply_forms import (
    FORM_WORDS,
    FORMS,
    Form,
    asked_in_form,
    forms_of,
    speaks_chat_completions,
    without_bounds,
)
from .scripted_model import ScriptedModel

Identity = Mapping[str, Any]
"""Plain JSON, the same in every process."""


def identity_of_name(spec: ModelSpec) -> Identity:
    """Return the identity of a model chosen by name: the name and the parameters that it carries.

    >>> identity_of_name(ModelSpec.parse("ollama:llama3.2?num_ctx=4096&reasoning=false&price_in=0&price_out=0"))
    {'name': 'ollama:llama3.2', 'num_ctx': 4096, 'reasoning': False}
    """
    known = spec.model_dump(mode="json", exclude_none=True, exclude={"key_env", "price_in", "price_out"})
    return {name: value for name, value in known.items() if name not in spec.more or _may_matter(name)}


def identity_of_chain(label: str, chain: Chain) -> Identity:
    """Return the identity of a chat model, with the parameters bound to it, and of its fallbacks."""
    identity = dict(identity_of_chat(label, next(chats_in(chain))))
    if bound := _plain(parameters_in(chain)):
        identity["bound"] = bound
    if others := fallbacks_in(chain):
        identity["fallbacks"] = [identity_of_chain(label_of(next(chats_in(one))), one) for one in others]
    return identity


def identity_of_chat(label: str, chat: BaseChatModel) -> Identity:
    """Return the identity of a chat model object: its class, and every plain parameter that may matter to a reply.

    >>> from langchain_openai import ChatOpenAI
    >>> chat = ChatOpenAI(model="gpt-4o-mini", temperature=0.5, api_key="sk-1", base_url="http://127.0.0.1/v1")
    >>> identity = identity_of_chat("openai:gpt-4o-mini", chat)
    >>> identity["class"], identity["parameters"]
    ('langchain_openai.chat_models.base.ChatOpenAI', {'model': 'gpt-4o-mini', 'model_name': 'gpt-4o-mini', \
'temperature': 0.5})
    """
    kind = type(chat)
    secret = frozenset(chat.lc_secrets)
    fields = {name: getattr(chat, name, None) for name in kind.model_fields if name not in secret}
    named = {name: value for name, value in chat._identifying_params.items() if name not in secret}
    parameters = _plain({**named, **fields})
    return {"name": label, "class": f"{kind.__module__}.{kind.__qualname__}", "parameters": parameters}


_LEFT_OUT = re.compile(
    r"key|secret|password|credential|auth|(?:^|_)token$|access_token"  # secrets; ``max_tokens`` does not match
    r"|url|uri|endpoint|api_base|host|proxy|header|query|project|location|organi[sz]ation|client|http|socket"
    r"|timeout|retries|rate_limit|stream|^(?:name|cache|verbose|callbacks|tags|metadata|profile|labels)$"
    r"|custom_get_token_ids|default_metadata|tiktoken|lc_"
)
"""Matches names of parameters that are left out of an identity: they are secret, or do not change a reply."""


def _plain(value: Any) -> Any:
    """Return a value as plain JSON; what is not set, empty, secret or no plain data is left out."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        kept = {str(_plain(name)): _plain(inner) for name, inner in value.items()}
        return {name: kept[name] for name in sorted(kept) if _tells(name, kept[name])}
    if isinstance(value, list | tuple):
        return [inner for one in value if (inner := _plain(one)) is not None]
    return _scalar(value)


def _scalar(value: Any) -> str | int | float | None:
    """Return a single value as JSON has it: functions and classes by name, None for other objects.

    The text of another object may hold its address in memory, which differs from process to process.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, set | frozenset):
        return ", ".join(sorted(map(str, value)))
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return None


def _tells(name: str, value: Any) -> bool:
    """Tell whether a parameter is set and matters to a reply; zero counts as set."""
    # No plain test for truth, which would leave out ``temperature=0``.
    return not (value is None or value is False or value in ("", [], {})) and _may_matter(name)


def _may_matter(name: str) -> bool:
    """Tell whether a parameter of this name may change a reply, and is no secret."""
    return not _LEFT_OUT.search(name.lower())


class LoadedModel:
    """Hold a chat model ready to be called, and remember which parameters its provider does not take.

    A provider that rejects a parameter (reasoning models refuse ``temperature``) is asked again without it,
    and every call from then on leaves it out; ``warnings`` says so.

    Attributes:
        label: its name in turns and in the price list.
        identity: what identifies it in records of replies; it stays the same when a parameter is dropped.
        plays_roles: whether its replies depend on the agent that asks, not on the messages alone.
        form: in which replies are asked for that are to be JSON.
        bounded: whether the bounds of a schema's fields are sent.
        folds_system: whether the system message is put at the head of the user's, since the provider takes none.
        misformed: how often in a row the provider failed to bring the model's words into the form that was asked for.

    A chat model that is ``shared`` may be in use on other event loops as well.
    """

    def __init__(
        self,
        label: str,
        chain: Chain,
        identity: Identity | None = None,
        connections: Connections | None = None,
        shared: bool = False,
    ) -> None:
        self._chain = chain
        remember_secrets([*chats_in(chain)])
        self.label = label
        self.identity = identity or identity_of_chain(label, chain)
        chat = self.chat
        self.plays_roles = isinstance(chat, OfflineJudge | ScriptedModel)
        self.form: Form = self._forms()[0]
        self.bounded = True
        self.folds_system = False
        self.misformed = 0
        self.warnings: list[str] = [DISCLOSURE] if isinstance(chat, OfflineJudge) else []
        self._dropped: set[str] = set()
        self._tuned: dict[tuple[float | None, int | None], LoadedModel] = {}
        self._connections = connections
        self._shared = shared

    @property
    def chat(self) -> BaseChatModel:
        """The chat model that is asked, before any fallbacks."""
        return next(chats_in(self._chain))

    def runnable(
        self,
        schema: dict[str, Any] | None,
        parameters: Mapping[str, Any] | None = None,
        may_be_cached: bool = True,
    ) -> Runnable[Any, BaseMessage]:
        """Return the runnable that gives a reply in this schema, or plain text where there is none.

        Args:
            schema: JSON schema of the reply.
            parameters: of this call alone; temperature and seed, and what ``gives`` says that the model takes.
            may_be_cached: whether LangChain's cache, or the model's own, may answer.
        """
        given = dict(parameters or {})
        own: dict[str, Any] = {name: given.pop(name) for name in ("temperature", "seed") if name in given}
        several = len([*chats_in(self._chain)]) > 1
        wanted = schema if schema is None or self.bounded else without_bounds(schema)

        def ready(chat: BaseChatModel) -> Chain:
            chat = self._adjusted(chat, own)
            # A copy is made only where a cache would answer: a model of the caller's own may hold state.
            if not may_be_cached and (chat.cache or (chat.cache is None and get_llm_cache() is not None)):
                chat = chat.model_copy(update={"cache": False})
            if not self.plays_roles:
                chat = for_running_loop(chat, made_for_it=not self._shared)
            asked = chat if wanted is None else asked_in_form(chat, wanted, self.form)
            return naming_writer(asked, label_of(chat)) if several else asked

        asked = with_each(self._chain, ready)
        # LangChain streams where a callback listens for tokens, and a streamed request gives one reply alone.
        return asked.bind(**given, stream=False) if given else asked

    def gives(self, what: str) -> bool:
        """Tell whether it can be asked for several replies at once (``n``) or for log-probabilities (``logprobs``)."""
        # Through retries and fallbacks comes one message.
        direct = isinstance(self._chain, BaseChatModel | RunnableBinding) and not fallbacks_in(self._chain)
        if what in self._dropped or not direct:
            return False
        if not speaks_chat_completions(self.chat):
            return False
        return what in type(self.chat).model_fields

    @cached_property
    def asked_name(self) -> str | None:
        """The model's name as its client sends it, or None where the name says nothing about the model."""
        # A deployment at Azure is called whatever its owner likes.
        if self.plays_roles or any(one.__name__ == "AzureChatOpenAI" for one in type(self.chat).__mro__):
            return None
        name = self.chat._get_ls_params().get("ls_model_name")
        return name if isinstance(name, str) and name else None

    @property
    def seed(self) -> int | None:
        """The seed that every call has, or None; samples that are to differ each add their number to it."""
        return getattr(self.chat, "seed", None)

    def takes_structure(self) -> bool:
        """Tell whether replies can be asked for as JSON."""
        return self.form != "text"

    def next_form(self, refused: Form) -> str:
        """Return what ``drop`` is to be told when a form was refused: the next one that the client has."""
        later = (form for form in self._forms() if FORMS.index(form) > FORMS.index(refused))
        return f"{STRUCTURE}:{next(later, 'text')}"

    def _forms(self) -> list[Form]:
        """Return the forms that the client has, and the clients of all fallbacks; strictest first."""
        first, *others = ([*forms_of(chat)] for chat in chats_in(self._chain))
        return [form for form in first if all(form in forms for forms in others)]

    def drop(self, parameter: str, sent: Mapping[str, Any] | None = None) -> bool:
        """Stop sending a parameter; return False where neither every call nor this one (``sent``) had it.

        Calls run side by side: a parameter that another call has dropped in the meantime counts as dropped.
        """
        kind, _, form = parameter.partition(":")
        if kind == STRUCTURE:
            return self._ask_in(next(known for known in FORMS if known == (form or "text")))
        if parameter in self._dropped:
            return True
        with_call = parameter in (sent or {})
        field = _field(self.chat, parameter)
        if parameter in (SEVERAL, LOGPROBS):
            return with_call and self._do_without(parameter)
        what = f"{parameter}: it was left out"
        if parameter == SYSTEM:
            self.folds_system = True
            what = "system message: it was put at the head of the user's"
        elif parameter == BOUNDS:
            self.bounded = False
            what = "bounds in a schema: they were left out"
        elif field is not None and (with_call or getattr(self.chat, field) is not None):
            self._chain = with_each(self._chain, lambda chat: _with(chat, {parameter: None}))
        else:
            return False
        self._dropped.add(parameter)
        self.warnings.append(f"{self.label} takes no {what}")
        return True

    def _ask_in(self, form: Form) -> bool:
        """Ask for JSON in this form from now on, unless a looser one is in use already; return True."""
        if FORMS.index(form) > FORMS.index(self.form):
            # One warning, of the form in use: those on the way to it say nothing more.
            self._forget_form()
            self.warn(f"{self._no_schema}{FORM_WORDS[form]}")
            self.form = form
        return True

    def take_back(self, dropped: Sequence[str]) -> None:
        """Ask for JSON as at first if this call has eased the form and failed all the same: that was not the cause."""
        if any(parameter.startswith(STRUCTURE) for parameter in dropped):
            self._forget_form()
            self.form = self._forms()[0]

    @property
    def _no_schema(self) -> str:
        return f"{self.label} takes no reply schema: replies were asked for as "

    def _forget_form(self) -> None:
        self.warnings = [told for told in self.warnings if not told.startswith(self._no_schema)]

    def _do_without(self, parameter: str) -> bool:
        """Note that a parameter is not to be sent again; return True."""
        self._dropped.add(parameter)
        # G-Eval's scorer warns of missing log-probabilities itself, with what it did instead.
        if parameter == SEVERAL:
            self.warn(f"{self.label} gives no several replies to one request: each had a request of its own")
        return True

    def tuned(self, temperature: float | None, max_tokens: int | None) -> LoadedModel:
        """Return this model with these parameters set; itself where neither is given."""
        wanted = {"temperature": temperature, "max_tokens": max_tokens}
        given = {name: value for name, value in wanted.items() if value is not None}
        if not given or isinstance(self.chat, OfflineJudge):
            return self
        # Kept, since every node asks for it: a new one would forget what the provider has refused.
        key = (temperature, max_tokens)
        if key not in self._tuned:
            self._tuned[key] = _tuned(self, given)
        return self._tuned[key]

    def _adjusted(self, chat: BaseChatModel, given: Mapping[str, Any]) -> BaseChatModel:
        """Return a chat model with the parameters of one call, as far as it has them to set."""
        if isinstance(chat, OfflineJudge):
            return chat
        wanted = {name: value for name, value in given.items() if name not in self._dropped}
        for name in (name for name in wanted if _field(chat, name) is None):
            self.warn(f"{self.label} has no {name} to set: it was used as it is")
        return _with(chat, wanted)

    def warn(self, warning: str) -> None:
        """Add a warning that every verdict from now on carries; the same warning is added once."""
        if warning not in self.warnings:
            self.warnings.append(warning)

    async def hold(self) -> None:
        """Have the connections closed when the running event loop ends, and not after it."""
        if self._connections is not None:
            await self._connections.hold()
        await hold_connections()


class Connections:
    """Close a client's connections together with the event loop on which they were used."""

    def __init__(self, close: Callable[[], Awaitable[None]]) -> None:
        self._close = close
        self._held = False

    async def hold(self) -> None:
        """Register the closing with the running event loop; later calls do nothing."""
        if not self._held:
            self._held = True
            await on_loop_end(self._close)


def _field(chat: BaseChatModel, parameter: str) -> str | None:
    """Return the name of a parameter in the client's class, or None where it has no such field."""
    return field_of(parameter, type(chat).model_fields)


def _with(chat: BaseChatModel, given: Mapping[str, Any]) -> BaseChatModel:
    """Return a chat model with these parameters, as far as its class has them."""
    fields = {name: _field(chat, name) for name in given}
    update = {field: given[name] for name, field in fields.items() if field is not None}
    return chat.model_copy(update=update) if update else chat


def _tuned(model: LoadedModel, given: dict[str, Any]) -> LoadedModel:
    chain = with_each(model._chain, lambda chat: _with(chat, given))
    tuned = LoadedModel(model.label, chain, {**model.identity, **given}, model._connections, model._shared)
    missing = [name for name in given if _field(model.chat, name) is None]
    tuned.warnings += [f"{model.label} has no {name} to set: it was used as it is" for name in missing]
    return tuned


def label_of(chat: BaseChatModel) -> str:
    """Return the name of a chat model object: its provider's and its own."""
    if isinstance(chat, OfflineJudge):
        return "offline"
    # The names under which LangSmith's traces know provider and model, which every client gives in one form.
    known = chat._get_ls_params()
    name = known.get("ls_model_name") or getattr(chat, "model_name", None) or type(chat).__name__
    provider = known.get("ls_provider")
    return f"{provider}:{name}" if provider else str(name)
