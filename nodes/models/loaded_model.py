"""Wrap a chat model for calls, and remember what its provider does not take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableBinding

from ...state.redaction import remember_secrets
from ..offline import DISCLOSURE, OfflineJudge
from .capabilities import BOUNDS, CACHE, CHOICES, LIMIT, LOGPROBS, REASONING, SEVERAL, STRUCTURE, SYSTEM
from .chat_classes import field_of
from .event_loop import on_loop_end
from .loop_clients import for_running_loop, hold_connections
from .model_chains import Chain, chats_in, fallbacks_in, naming_writer, with_each
from .model_identity import Identity, identity_of_chain, label_of
from .prompt_cache import Marks, marks_of
from .reply_forms import (
    BOUNDS_KEPT,
    FORM_WORDS,
    FORMS,
    Form,
    asked_in_form,
    bounds_of,
    choice_options,
    forms_of,
    speaks_chat_completions,
    with_bounds,
)
from .reply_limits import is_limited_by_default, reply_limit
from .request_handler import handled, request_handler
from .scripted_model import ScriptedModel


class Serving(NamedTuple):
    """What is known beforehand about a model that this package serves itself.

    Attributes:
        warning: what every verdict is to carry.
        at_once: how many calls it answers at a time; further ones would wait in its queue.
    """

    warning: str | None = None
    at_once: int | None = None


MOST_RUNNABLES = 64
"""So many runnables of a model are kept; samples with a seed each are of as many kinds."""


class LoadedModel:
    """Hold a chat model ready to be called, and remember which parameters its provider does not take.

    A provider that rejects a parameter (reasoning models refuse ``temperature``) is asked again without it,
    and every call from then on leaves it out; ``warnings`` says so.

    Attributes:
        label: its name in turns and in the price list.
        identity: what identifies it in records of replies; it stays the same when a parameter is dropped.
        plays_roles: whether its replies depend on the agent that asks, not on the messages alone.
        form: in which replies are asked for that are to be JSON.
        bounds: which bounds of a schema's fields are sent.
        folds_system: whether the system message is put at the head of the user's, since the provider takes none.
        serving: what is known of it beforehand.
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
        serving: Serving | None = None,
    ) -> None:
        self._chain = chain
        remember_secrets([*chats_in(chain)])
        self.label = label
        self.identity = identity or identity_of_chain(label, chain)
        chat = self.chat
        self.plays_roles = isinstance(chat, OfflineJudge | ScriptedModel)
        self.form: Form = self._forms()[0]
        self.bounds = bounds_of(chat)
        self.folds_system = False
        self.misformed = 0
        self.serving = Serving(DISCLOSURE) if isinstance(chat, OfflineJudge) else serving or Serving()
        self.warnings: list[str] = [self.serving.warning] if self.serving.warning else []
        self._dropped: set[str] = set()
        self._runnables: dict[tuple[object, ...], Runnable[Any, BaseMessage]] = {}
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
            parameters: of this call alone; temperature, seed, ``max_tokens``, and what ``gives`` says that it takes.
            may_be_cached: whether LangChain's cache, or the model's own, may answer.
        """
        if self._shared:
            return self._runnable(schema, parameters or {}, may_be_cached)
        # Most calls are of one of a few kinds; all that decides about a runnable is in here.
        taken = self.form, self.bounds, frozenset(self._dropped)
        around = may_be_cached, get_llm_cache() is None, request_handler() is None
        kind = repr((schema, parameters)), taken, around
        if kind not in self._runnables:
            if len(self._runnables) >= MOST_RUNNABLES:
                self._runnables.clear()
            self._runnables[kind] = self._runnable(schema, parameters or {}, may_be_cached)
        return self._runnables[kind]

    def _runnable(
        self, schema: dict[str, Any] | None, parameters: Mapping[str, Any], may_be_cached: bool
    ) -> Runnable[Any, BaseMessage]:
        given = dict(parameters)
        own = {name: given.pop(name) for name in ("temperature", "seed", LIMIT) if name in given}
        numbers = given.pop(CHOICES, ())
        held = bool(numbers) and self.gives(CHOICES)
        several = len([*chats_in(self._chain)]) > 1
        wanted = schema if schema is None else with_bounds(schema, self.bounds)

        def ready(chat: BaseChatModel) -> Chain:
            chat = self._adjusted(chat, own)
            # A copy is made only where a cache would answer: a model of the caller's own may hold state.
            if not may_be_cached and (chat.cache or (chat.cache is None and get_llm_cache() is not None)):
                chat = chat.model_copy(update={"cache": False})
            if not self.plays_roles:
                chat = handled(for_running_loop(chat, made_for_it=not self._shared))
            if wanted is not None:
                asked = asked_in_form(chat, wanted, self.form)
            else:
                asked = chat.bind(**choice_options(chat, numbers)) if held else chat
            return naming_writer(asked, label_of(chat)) if several else asked

        asked = with_each(self._chain, ready)
        # LangChain streams where a callback listens for tokens, and a streamed request gives one reply alone.
        return asked.bind(**given, stream=False) if given else asked

    def gives(self, what: str) -> bool:
        """Tell whether it can be asked for several replies at once, for log-probabilities, or for one of a list."""
        # Through retries and fallbacks comes one message.
        direct = isinstance(self._chain, BaseChatModel | RunnableBinding) and not fallbacks_in(self._chain)
        if what in self._dropped or not direct:
            return False
        if what == CHOICES:
            return bool(choice_options(self.chat, (1,)))
        # llama.cpp gives as many replies as it has slots, and tells the tokens of the first one alone.
        if not speaks_chat_completions(self.chat) or (what == SEVERAL and self.serving.at_once):
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
    def cache_marks(self) -> Marks | None:
        """How a repeated beginning of a prompt is marked; None where it is not, or where a fallback has no marks."""
        ways = {marks_of(chat) for chat in chats_in(self._chain)}
        return ways.pop() if len(ways) == 1 and CACHE not in self._dropped else None

    @property
    def seed(self) -> int | None:
        """The seed that every call has, or None; samples that are to differ each add their number to it."""
        return getattr(self.chat, "seed", None)

    @cached_property
    def is_limited_by_default(self) -> bool:
        """Whether its replies have the default limit: nobody has set one, and reasoning does not count into it."""
        if self.plays_roles or _field(self.chat, LIMIT) is None:
            return False
        return is_limited_by_default(self.identity)

    def reply_limit(self, form: str) -> dict[str, int]:
        """Return the parameter with the default limit of a reply of this form; empty where there is none."""
        # Also where it was lifted on the way: a call stays the same call however its run has come to it.
        return {LIMIT: reply_limit(form)} if self.is_limited_by_default else {}

    def limits(self, parameters: Mapping[str, Any]) -> bool:
        """Tell whether a call with these parameters is sent with the default limit."""
        return LIMIT in parameters and LIMIT not in self._dropped

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
        if parameter == REASONING:
            self._dropped.add(LIMIT)
            self.warn(f"{self.label} reasons before it answers: its replies had no limit (set max_tokens)")
        if kind == BOUNDS:
            eased = BOUNDS_KEPT.index(next(kept for kept in BOUNDS_KEPT if kept == form))
            self.bounds = BOUNDS_KEPT[max(eased, BOUNDS_KEPT.index(self.bounds))]
            self.warn(f"{self.label} takes no bounds in a schema: they were left out")
        if parameter in (*self._dropped, REASONING) or kind == BOUNDS:
            return True
        with_call = parameter in (sent or {})
        field = _field(self.chat, parameter)
        if parameter in (SEVERAL, LOGPROBS, CHOICES):
            return with_call and self._do_without(parameter)
        what = f"{parameter}: it was left out"
        if parameter == SYSTEM:
            self.folds_system = True
            what = "system message: it was put at the head of the user's"
        elif parameter == CACHE and self.cache_marks:
            what = "marks for a prompt cache: they were left out"
        elif parameter == LIMIT and with_call:
            what = "default limit of its replies: they had none (set max_tokens)"
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
        if CHOICES in dropped:
            self._dropped.discard(CHOICES)
            self.warnings = [told for told in self.warnings if told != self._no_choices]

    @property
    def _no_choices(self) -> str:
        return f"{self.label} takes no list of ratings to choose from: ratings were asked for in words"

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
        if parameter == CHOICES:
            self.warn(self._no_choices)
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
        for name in (name for name in wanted if name != LIMIT and _field(chat, name) is None):
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
    if given.get(LIMIT) == 0:
        update.pop(fields[LIMIT] or "", None)
    return chat.model_copy(update=update) if update else chat


def _tuned(model: LoadedModel, given: dict[str, Any]) -> LoadedModel:
    chain = with_each(model._chain, lambda chat: _with(chat, given))
    tuned = LoadedModel(
        model.label, chain, {**model.identity, **given}, model._connections, model._shared, model.serving
    )
    missing = [name for name in given if _field(model.chat, name) is None]
    tuned.warnings += [f"{model.label} has no {name} to set: it was used as it is" for name in missing]
    return tuned
