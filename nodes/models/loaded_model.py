"""Wrap a chat model for calls, and remember which features its provider refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from langchain_core.globals import get_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableBinding

from ...state.errors import UsageError
from ...state.media import Media
from ...state.redaction import remember_secrets
from ...state.settings import REPLY_LIMITS
from ...state.verdict_warnings import DISCLOSURE
from ..offline import OfflineJudge
from . import capabilities
from .capabilities import (
    BOUNDS,
    BOUNDS_KEPT,
    CACHE,
    CHOICES,
    FORM_WORDS,
    FORMS,
    LIMIT,
    LOGPROBS,
    REASONING,
    ROOMS,
    SEVERAL,
    STRUCTURE,
    SYSTEM,
    TOOLS,
    Asked,
    Form,
    Schema,
)
from .connections import for_running_loop, handled, hold_connections, request_handler
from .model_chains import Chain, Identity, chats_in, label_of, naming_writer, with_each
from .prices import listed_window
from .providers import Bounds, Marks, client_of, is_openai_host, speaks_chat_completions
from .scripted_model import ScriptedModel


class Serving(NamedTuple):
    """Facts about how a model is served, from this package or its user.

    Attributes:
        warning: a warning for every verdict.
        at_once: the number of calls it answers at a time; further ones wait in its queue.
        context: the maximum tokens of prompt and reply together.
        max_wait: the maximum total wait of one call in seconds, if lower than the policy's.
    """

    warning: str | None = None
    at_once: int | None = None
    context: int | None = None
    max_wait: float | None = None


PATIENCE = 3.0
"""Seconds to wait for a server's description of its models."""

MOST_RUNNABLES = 64
"""The number of runnables to cache per model; each seed of a sample needs its own."""

_WARNINGS: Mapping[str, str] = {
    STRUCTURE: "takes no reply schema: replies were asked for as {form}",
    SYSTEM: "takes no system message: it was put at the head of the user's",
    CACHE: "takes no prompt cache marks: they were left out",
    LIMIT: "takes no default limit on its replies: they had none (set max_tokens)",
    REASONING: "reasons before it answers: its replies had {room} times the default limit (set max_tokens)",
    BOUNDS: "takes no bounds in a schema: they were left out",
    CHOICES: "takes no list of ratings to choose from: ratings were asked for in words",
    SEVERAL: "does not give several replies to one request: each had its own request",
}
"""The warning after the model's name if its provider does not accept a parameter."""

_LADDERS: Mapping[str, tuple[str, Sequence[Any]]] = {
    STRUCTURE: ("form", FORMS),
    BOUNDS: ("bounds", BOUNDS_KEPT),
    REASONING: ("room", ROOMS),
}
"""Requirements that are relaxed step by step: the attribute with the current step, and all steps in
order."""


class LoadedModel:
    """A chat model that is ready for calls and remembers the parameters its provider refuses.

    If a provider rejects a parameter (reasoning models refuse ``temperature``), the request is
    repeated without it, every later call omits it, and ``warnings`` reports it.

    Attributes:
        label: its name in turns and in the price list.
        identity: its identity in records of replies; dropping a parameter does not change it.
        chats: the chat models in it; the first is asked before any fallbacks.
        chat: the first of them.
        plays_roles: whether replies depend on the asking agent, not only on the messages.
        form: the form for JSON replies; ``text`` if it supports none.
        bounds: the bounds of a schema's fields that are sent.
        serving: facts about how it is served.
        cache_marks: how to mark a repeated beginning of a prompt; None if it or a fallback has no
            marks.
        warnings: the warnings of every later verdict, by subject; for a form that is relaxed twice,
            the last warning.
        room: the multiple of the default limit for its replies, because less was not enough for an
            answer.
        dropped: the features that its provider refused: parameters, the default limit, the system
            role.
        misformed: consecutive failures of the provider to bring the model's output into the
            requested form.

    A chat model that is ``shared`` may be in use on other event loops as well.
    """

    def __init__(
        self, chain: Chain, identity: Identity, serving: Serving, shared: bool = False
    ) -> None:
        self.dropped: set[str] = set()
        self._take(chain)
        remember_secrets(self.chats)
        self.label = str(identity["name"])
        self.identity = identity
        self.plays_roles = isinstance(self.chat, OfflineJudge | ScriptedModel)
        # The forms of the client and of the clients of all fallbacks, strictest first.
        first, *others = ([*capabilities.forms_of(chat)] for chat in self.chats)
        self._forms = [form for form in first if all(form in forms for forms in others)]
        self.form: Form = self._forms[0]
        self.bounds: Bounds = capabilities.bounds_of(self.chat)
        self.misformed = 0
        self.room = 1
        self.serving = Serving(DISCLOSURE) if isinstance(self.chat, OfflineJudge) else serving
        self.warnings: dict[str, str] = {}
        if self.serving.warning:
            self.warn(self.serving.warning)
        self._runnables: dict[tuple[object, ...], Asked] = {}
        self._tuned: dict[tuple[float | None, int | None], LoadedModel] = {}
        self._shared = shared

    def _take(self, chain: Chain) -> None:
        """Take over a chain, and inspect it once for all calls."""
        self._chain = chain
        self.chats = [*chats_in(chain)]
        self.chat = self.chats[0]
        ways = {capabilities.marks_of(chat) for chat in self.chats}
        marked = len(ways) == 1 and CACHE not in self.dropped
        self.cache_marks: Marks | None = ways.pop() if marked else None

    def runnable(
        self, schema: Schema | None, parameters: Mapping[str, Any], may_be_cached: bool
    ) -> Asked:
        """Return the runnable that replies in this schema, or in plain text without a schema.

        Args:
            schema: JSON schema of the reply.
            parameters: parameters of this call: temperature, seed, ``max_tokens``, and those that
                ``gives`` reports as supported.
            may_be_cached: whether LangChain's cache, or the model's own, may answer.
        """
        # The owner of a shared model may change it between two calls or call it on another loop. A
        # model that plays roles has no parameters of calls and no connections.
        if self._shared and not self.plays_roles:
            return self._runnable(schema, parameters, may_be_cached)
        # Few kinds of calls exist. This key contains everything that determines a runnable.
        taken = self.form, self.bounds, frozenset(self.dropped)
        around = may_be_cached, get_llm_cache() is None, request_handler.get() is None
        kind = repr((schema, parameters)), taken, around
        if kind not in self._runnables:
            if len(self._runnables) >= MOST_RUNNABLES:
                self._runnables.clear()
            self._runnables[kind] = self._runnable(schema, parameters, may_be_cached)
        return self._runnables[kind]

    def _runnable(
        self, schema: Schema | None, parameters: Mapping[str, Any], may_be_cached: bool
    ) -> Asked:
        bound = dict(parameters)
        own = {name: bound.pop(name) for name in ("temperature", "seed", LIMIT) if name in bound}
        numbers = bound.pop(CHOICES, ())
        tools = bound.pop(TOOLS, ())
        chooses = bool(numbers) and self.gives(CHOICES)
        several = len(self.chats) > 1

        def ready(chat: BaseChatModel) -> Chain:
            if not isinstance(chat, OfflineJudge):
                wanted = {name: value for name, value in own.items() if name not in self.dropped}
                for name in wanted:
                    # The limit is a default that the user did not ask for.
                    if name != LIMIT and _field(chat, name) is None:
                        self._warn_of_missing(name)
                chat = _with(chat, wanted)
            # Copied only if a cache could answer, because a caller's own model may have state.
            if not may_be_cached and (
                chat.cache or (chat.cache is None and get_llm_cache() is not None)
            ):
                chat = chat.model_copy(update={"cache": False})
            if not self.plays_roles:
                chat = handled(for_running_loop(chat, made_for_it=not self._shared))
            asked: Chain = chat
            if schema is not None:
                asked = capabilities.asked_in_form(chat, schema, self.form, self.bounds)
            elif tools:
                asked = chat.bind_tools([*tools])
            elif chooses:
                asked = chat.bind(**capabilities.choice_options(chat, numbers))
            return naming_writer(asked, label_of(chat)) if several else asked

        chain = self._chain
        asked = ready(chain) if isinstance(chain, BaseChatModel) else with_each(chain, ready)
        # LangChain streams if a callback listens for tokens. A streamed request gives one reply.
        return asked.bind(**bound, stream=False) if bound else asked

    def tuned(self, temperature: float | None, max_tokens: int | None) -> LoadedModel:
        """Return this model with these parameters set; itself if neither is given."""
        wanted = {"temperature": temperature, "max_tokens": max_tokens}
        given = {name: value for name, value in wanted.items() if value is not None}
        if not given or isinstance(self.chat, OfflineJudge):
            return self
        # Cached, because a new object would not know the provider's refusals.
        key = (temperature, max_tokens)
        if key not in self._tuned:
            chain = with_each(self._chain, lambda chat: _with(chat, given))
            tuned = LoadedModel(chain, {**self.identity, **given}, self.serving, self._shared)
            for name in given:
                if _field(self.chat, name) is None:
                    tuned._warn_of_missing(name)
            self._tuned[key] = tuned
        return self._tuned[key]

    def sent(self, media: Media) -> list[dict[str, Any]]:
        """Return images and files in the format for sending.

        Raises:
            UsageError: the model or one of its fallbacks is known to reject one of them.
        """
        blocks, *_ = [_content_blocks(media, chat) for chat in self.chats]
        return blocks

    # Accepted parameters

    def gives(self, what: str) -> bool:
        """Return whether it supports several replies, log-probabilities or a list of choices."""
        chain = self._chain
        asked = chain.bound if isinstance(chain, RunnableBinding) else chain
        # Retries and fallbacks pass on a single message.
        if what in self.dropped or not isinstance(asked, BaseChatModel):
            return False
        if what == CHOICES:
            return bool(capabilities.choice_options(self.chat, (1,)))
        # llama.cpp gives as many replies as it has slots, but log-probabilities of the first only.
        if not speaks_chat_completions(self.chat) or (what == SEVERAL and self.serving.at_once):
            return False
        return what in type(self.chat).model_fields

    @property
    def calls_tools(self) -> bool:
        """Whether it and all its fallbacks can be offered tools."""
        return all(map(capabilities.calls_tools, self.chats))

    @cached_property
    def asked_name(self) -> str | None:
        """The model's name as its client sends it, or None if it does not identify the model."""
        # The owner of a deployment chooses its name.
        if self.plays_roles or client_of(type(self.chat)).names_deployments:
            return None
        name = self.chat._get_ls_params().get("ls_model_name")
        return name if isinstance(name, str) and name else None

    @cached_property
    def is_limited_by_default(self) -> bool:
        """Whether the default limit applies: none is set, and reasoning does not count into it."""
        if self.plays_roles or _field(self.chat, LIMIT) is None:
            return False
        return capabilities.is_limited_by_default(self.identity)

    def reply_limit(self, form: str) -> dict[str, int]:
        """Return the parameter with the default reply limit for this form; empty if unlimited."""
        # Included even if the limit was lifted during the run, so that the call's identity is
        # stable.
        limit = REPLY_LIMITS.get(form, REPLY_LIMITS["*"])
        return {LIMIT: limit} if self.is_limited_by_default else {}

    async def context_window(self) -> int | None:
        """Return the maximum tokens of prompt and reply together; None if unknown.

        A server that speaks OpenAI's API at another address is asked (``/v1/models`` of vLLM, LM
        Studio and gateways, ``/props`` of llama.cpp), because the name does not determine its
        context size.
        """
        if self.serving.context is not None:
            return self.serving.context
        chat: Any = self.chat
        address = str(getattr(chat, "root_async_client", None) and chat.root_async_client.base_url)
        elsewhere = "://" in address and not is_openai_host(address)
        if elsewhere and speaks_chat_completions(chat):
            await hold_connections()
            client = chat.root_async_client.with_options(max_retries=0, timeout=PATIENCE)
            for path in ("/models", f"{address.rstrip('/').removesuffix('/v1')}/props"):
                try:
                    about = await asyncio.wait_for(client.get(path, cast_to=object), PATIENCE)
                # A server may lack these endpoints; the run itself reports other problems.
                except Exception:
                    continue
                if (tokens := next(_windows(about, self.asked_name), None)) is not None:
                    return tokens
        return listed_window(self.label)

    # Refused parameters

    def next_form(self, refused: Form) -> str:
        """Return the argument of ``drop`` for a refused form: the client's next form."""
        later = (form for form in self._forms if FORMS.index(form) > FORMS.index(refused))
        return f"{STRUCTURE}:{next(later, 'text')}"

    def drop(self, parameter: str, sent: Container[str] = ()) -> bool:
        """Stop sending a parameter; return False if neither this call (``sent``) nor others had it.

        Calls run concurrently: a parameter that another call has dropped meanwhile counts as
        dropped.
        """
        kind, _, eased = parameter.partition(":")
        if kind in _LADDERS:
            name, steps = _LADDERS[kind]
            # Journals of earlier versions do not record the multiple.
            step = next((known for known in steps if str(known) == eased), steps[-1])
            # Another call may already have taken a later step.
            if steps.index(step) > steps.index(getattr(self, name)):
                setattr(self, name, step)
                self.warnings.pop(kind, None)
                self._warn_of(kind)
        elif parameter not in self.dropped:
            if not self._has(parameter, parameter in sent):
                return False
            self.dropped.add(parameter)
            self.cache_marks = None if CACHE in self.dropped else self.cache_marks
            if parameter in _WARNINGS and (parameter != LIMIT or parameter in sent):
                self._warn_of(parameter)
            # G-Eval's scorer has its own warning for missing log-probabilities.
            elif parameter != LOGPROBS:
                self._take(with_each(self._chain, lambda chat: _with(chat, {parameter: None})))
                self._warn_of(parameter, f"takes no {parameter}: it was left out")
        return True

    def _has(self, parameter: str, with_call: bool) -> bool:
        """Return whether a parameter was sent: with this call, or with every call."""
        if parameter in (SEVERAL, LOGPROBS, CHOICES):
            return with_call
        if parameter == CACHE:
            return self.cache_marks is not None
        field = _field(self.chat, parameter)
        always = field is not None and getattr(self.chat, field) is not None
        return (
            parameter == SYSTEM
            or always
            or (with_call and (field is not None or parameter == LIMIT))
        )

    def take_back(self, dropped: Sequence[str]) -> None:
        """Restore the strictest form if this call failed even with the relaxed one.

        The form was then not the cause.
        """
        if any(parameter.startswith(STRUCTURE) for parameter in dropped):
            self.warnings.pop(STRUCTURE, None)
            self.form = self._forms[0]
        if CHOICES in dropped:
            self.warnings.pop(CHOICES, None)
            self.dropped.discard(CHOICES)

    # Warnings for verdicts

    def warn(self, warning: str) -> None:
        """Add a warning for every later verdict; repeated warnings are added once."""
        self.warnings[warning] = warning

    def _warn_of(self, parameter: str, words: str | None = None) -> None:
        words = words or _WARNINGS[parameter].format(room=self.room, form=FORM_WORDS[self.form])
        self.warnings[parameter] = f"{self.label} {words}"

    def _warn_of_missing(self, parameter: str) -> None:
        self.warn(f"{self.label} has no {parameter} to set: it was used as it is")


def _field(chat: BaseChatModel, parameter: str) -> str | None:
    """Return the name of a parameter in the client's class, or None if it has no such field."""
    return capabilities.field_of(parameter, type(chat).model_fields)


def _with(chat: BaseChatModel, given: Mapping[str, Any]) -> BaseChatModel:
    """Return a chat model with these parameters set, except those its class does not have."""
    fields = {name: _field(chat, name) for name in given}
    update = {field: given[name] for name, field in fields.items() if field is not None}
    if given.get(LIMIT) == 0:
        # A limit of 0 means no limit of ours; the class's own one stays.
        update.pop(fields[LIMIT] or "", None)
    return chat.model_copy(update=update) if update else chat


_INPUTS = {
    "image": "image_inputs",
    "audio": "audio_inputs",
    "video": "video_inputs",
    "file": "pdf_inputs",
}
"""The entry of LangChain's model profile that reports support, by type of content block."""


def _content_blocks(media: Media, chat: BaseChatModel) -> list[dict[str, Any]]:
    """Return images and files as LangChain's content blocks, which its clients convert.

    Raises:
        UsageError: the model is known to reject one of them.
    """
    blocks = []
    for name, part in media.items():
        [standard] = HumanMessage(content=[part]).content_blocks
        # Blocks unknown to LangChain are passed on, since the provider may know them.
        block: dict[str, Any] = part if standard["type"] == "non_standard" else {**standard}
        if str(block.get("id", "")).startswith("lc_"):
            del block["id"]  # random: with it, the call would never have the same identity again
        if block["type"] == "file" and "file_id" not in block:
            block.setdefault("extras", {}).setdefault(
                "filename", name.strip("[]").replace(" ", "-")
            )
        kind = str(block["type"])
        profile = chat.profile or {}
        if isinstance(chat, OfflineJudge) or profile.get(_INPUTS.get(kind, "")) is False:
            raise UsageError(
                f"{label_of(chat)} cannot be shown {name}, which is part of what is judged: "
                f"choose a model that takes {kind}s, or describe it in words"
            )
        blocks.append(block)
    return blocks


_SIZES = ("max_model_len", "loaded_context_length", "context_length", "context_window", "n_ctx")


def _windows(about: Any, name: str | None) -> Iterator[int]:
    """Yield the context sizes that a server reports for the model, or for its only model."""
    listed = about.get("data", [about]) if isinstance(about, Mapping) else ()
    models = [entry for entry in listed if isinstance(entry, Mapping)]
    for entry in [entry for entry in models if entry.get("id") == name] or models[
        : len(models) == 1
    ]:
        places = (entry, entry.get("meta"), entry.get("default_generation_settings"))
        sizes = (place.get(key) for place in places if isinstance(place, Mapping) for key in _SIZES)
        yield from (size for size in sizes if isinstance(size, int) and size > 0)
