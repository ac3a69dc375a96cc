"""Wrap a chat model for calls, and remember what its provider does not take."""

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
from ..offline import DISCLOSURE, OfflineJudge
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
    Asked,
    Bounds,
    Form,
    Marks,
    Schema,
)
from .connections import for_running_loop, handled, hold_connections, request_handler
from .model_chains import Chain, Identity, chats_in, label_of, naming_writer, with_each
from .prices import listed_window
from .provider_words import WORDS
from .scripted_model import ScriptedModel


class Serving(NamedTuple):
    """What is known beforehand about how a model is served: by this package itself, or as its user says.

    Attributes:
        warning: what every verdict is to carry.
        at_once: how many calls it answers at a time; further ones would wait in its queue.
        context: how many tokens prompt and reply may have together.
        max_wait: how many seconds the waits of one call may add up to, where that is less than else.
    """

    warning: str | None = None
    at_once: int | None = None
    context: int | None = None
    max_wait: float | None = None


PATIENCE = 3.0
"""Seconds that a server has to say what its models are."""

MOST_RUNNABLES = 64
"""So many runnables of a model are kept; samples with a seed each are of as many kinds."""

_WARNINGS: dict[str, str] = WORDS["warnings"]
"""What verdicts say of a model whose provider does not take a parameter, behind the model's name."""

_LADDERS: Mapping[str, tuple[str, Sequence[Any]]] = {
    STRUCTURE: ("form", FORMS),
    BOUNDS: ("bounds", BOUNDS_KEPT),
    REASONING: ("room", ROOMS),
}
"""What is eased step by step: the attribute that holds the step, and all steps in their order."""


class LoadedModel:
    """Hold a chat model ready to be called, and remember which parameters its provider does not take.

    A provider that rejects a parameter (reasoning models refuse ``temperature``) is asked again without it,
    and every call from then on leaves it out; ``warnings`` says so.

    Attributes:
        label: its name in turns and in the price list.
        identity: what identifies it in records of replies; it stays the same when a parameter is dropped.
        chats: the chat models in it, of which the first is asked before any fallbacks.
        chat: the first of them.
        plays_roles: whether its replies depend on the agent that asks, not on the messages alone.
        form: in which replies are asked for that are to be JSON; ``text`` where it gives none.
        bounds: which bounds of a schema's fields are sent.
        serving: what is known of it beforehand.
        cache_marks: how a repeated beginning of a prompt is marked; None where it is not, or where a fallback has no
            marks.
        warnings: what every verdict from now on carries, by what it is about; of a form that is eased twice, the last.
        room: how many times the default limit its replies may have, since it did not come to its answer with less.
        dropped: what its provider turned out not to take: parameters, the default limit, the role of the system.
        misformed: how often in a row the provider failed to bring the model's words into the form that was asked for.

    A chat model that is ``shared`` may be in use on other event loops as well.
    """

    def __init__(self, chain: Chain, identity: Identity, serving: Serving, shared: bool = False) -> None:
        self.dropped: set[str] = set()
        self._take(chain)
        remember_secrets(self.chats)
        self.label, self.identity = str(identity["name"]), identity
        self.plays_roles = isinstance(self.chat, OfflineJudge | ScriptedModel)
        # The forms that the client has, and the clients of all fallbacks; strictest first.
        first, *others = ([*capabilities.forms_of(chat)] for chat in self.chats)
        self._forms = [form for form in first if all(form in forms for forms in others)]
        self.form: Form = self._forms[0]
        self.bounds: Bounds = capabilities.bounds_of(self.chat)
        self.misformed, self.room = 0, 1
        self.serving = Serving(DISCLOSURE) if isinstance(self.chat, OfflineJudge) else serving
        self.warnings: dict[str, str] = {}
        if self.serving.warning:
            self.warn(self.serving.warning)
        self._runnables: dict[tuple[object, ...], Asked] = {}
        self._tuned: dict[tuple[float | None, int | None], LoadedModel] = {}
        self._shared = shared

    def _take(self, chain: Chain) -> None:
        """Take a chain, and look through it once for all calls."""
        self._chain = chain
        self.chats = [*chats_in(chain)]
        self.chat = self.chats[0]
        ways = {capabilities.marks_of(chat) for chat in self.chats}
        marked = len(ways) == 1 and CACHE not in self.dropped
        self.cache_marks: Marks | None = ways.pop() if marked else None

    def runnable(self, schema: Schema | None, parameters: Mapping[str, Any], may_be_cached: bool) -> Asked:
        """Return the runnable that gives a reply in this schema, or plain text where there is none.

        Args:
            schema: JSON schema of the reply.
            parameters: of this call alone; temperature, seed, ``max_tokens``, and what ``gives`` says that it takes.
            may_be_cached: whether LangChain's cache, or the model's own, may answer.
        """
        # One that is shared may be changed by its owner between two calls, or be called on another loop; one that plays
        # roles has nothing that calls set, and no connections.
        if self._shared and not self.plays_roles:
            return self._runnable(schema, parameters, may_be_cached)
        # Most calls are of one of a few kinds; all that decides about a runnable is in here.
        taken = self.form, self.bounds, frozenset(self.dropped)
        around = may_be_cached, get_llm_cache() is None, request_handler.get() is None
        kind = repr((schema, parameters)), taken, around
        if kind not in self._runnables:
            if len(self._runnables) >= MOST_RUNNABLES:
                self._runnables.clear()
            self._runnables[kind] = self._runnable(schema, parameters, may_be_cached)
        return self._runnables[kind]

    def _runnable(self, schema: Schema | None, parameters: Mapping[str, Any], may_be_cached: bool) -> Asked:
        bound = dict(parameters)
        own = {name: bound.pop(name) for name in ("temperature", "seed", LIMIT) if name in bound}
        numbers = bound.pop(CHOICES, ())
        chooses = bool(numbers) and self.gives(CHOICES)
        several = len(self.chats) > 1

        def ready(chat: BaseChatModel) -> Chain:
            if not isinstance(chat, OfflineJudge):
                wanted = {name: value for name, value in own.items() if name not in self.dropped}
                for name in wanted:
                    # The limit is a default, which nobody has asked for.
                    if name != LIMIT and _field(chat, name) is None:
                        self._warn_of_missing(name)
                chat = _with(chat, wanted)
            # A copy is made only where a cache would answer: a model of the caller's own may hold state.
            if not may_be_cached and (chat.cache or (chat.cache is None and get_llm_cache() is not None)):
                chat = chat.model_copy(update={"cache": False})
            if not self.plays_roles:
                chat = handled(for_running_loop(chat, made_for_it=not self._shared))
            asked: Chain = chat
            if schema is not None:
                asked = capabilities.asked_in_form(chat, schema, self.form, self.bounds)
            elif chooses:
                asked = chat.bind(**capabilities.choice_options(chat, numbers))
            return naming_writer(asked, label_of(chat)) if several else asked

        chain = self._chain
        asked = ready(chain) if isinstance(chain, BaseChatModel) else with_each(chain, ready)
        # LangChain streams where a callback listens for tokens, and a streamed request gives one reply alone.
        return asked.bind(**bound, stream=False) if bound else asked

    def tuned(self, temperature: float | None, max_tokens: int | None) -> LoadedModel:
        """Return this model with these parameters set; itself where neither is given."""
        wanted = {"temperature": temperature, "max_tokens": max_tokens}
        given = {name: value for name, value in wanted.items() if value is not None}
        if not given or isinstance(self.chat, OfflineJudge):
            return self
        # Kept, since every run asks for it: a new one would forget what the provider has refused.
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
        """Return images and files as they are sent.

        Raises:
            UsageError: the model, or one that it falls back to, is known not to take one of them.
        """
        blocks, *_ = [_content_blocks(media, chat) for chat in self.chats]
        return blocks

    # What it takes

    def gives(self, what: str) -> bool:
        """Tell whether it can be asked for several replies at once, for log-probabilities, or for one of a list."""
        chain = self._chain
        asked = chain.bound if isinstance(chain, RunnableBinding) else chain
        # Through retries and fallbacks comes one message.
        if what in self.dropped or not isinstance(asked, BaseChatModel):
            return False
        if what == CHOICES:
            return bool(capabilities.choice_options(self.chat, (1,)))
        # llama.cpp gives as many replies as it has slots, and tells the tokens of the first one alone.
        if not capabilities.speaks_chat_completions(self.chat) or (what == SEVERAL and self.serving.at_once):
            return False
        return what in type(self.chat).model_fields

    @cached_property
    def asked_name(self) -> str | None:
        """The model's name as its client sends it, or None where the name says nothing about the model."""
        # A deployment at Azure is called whatever its owner likes.
        if self.plays_roles or capabilities.is_a(self.chat, "AzureChatOpenAI"):
            return None
        name = self.chat._get_ls_params().get("ls_model_name")
        return name if isinstance(name, str) and name else None

    @cached_property
    def is_limited_by_default(self) -> bool:
        """Whether its replies have the default limit: nobody has set one, and reasoning does not count into it."""
        if self.plays_roles or _field(self.chat, LIMIT) is None:
            return False
        return capabilities.is_limited_by_default(self.identity)

    def reply_limit(self, form: str) -> dict[str, int]:
        """Return the parameter with the default limit of a reply of this form; empty where there is none."""
        # Also where it was lifted on the way: a call stays the same call however its run has come to it.
        limit = REPLY_LIMITS.get(form, REPLY_LIMITS["*"])
        return {LIMIT: limit} if self.is_limited_by_default else {}

    async def context_window(self) -> int | None:
        """Return how many tokens prompt and reply may have together; None where nobody knows.

        A server of OpenAI's dialect at an address of its own is asked (``/v1/models`` of vLLM, LM Studio and gateways,
        ``/props`` of llama.cpp), since a name says nothing about how a model is served there.
        """
        if self.serving.context is not None:
            return self.serving.context
        chat: Any = self.chat
        address = str(getattr(chat, "root_async_client", None) and chat.root_async_client.base_url)
        elsewhere = "://" in address and "api.openai.com" not in address
        if elsewhere and capabilities.speaks_chat_completions(chat):
            await hold_connections()
            client = chat.root_async_client.with_options(max_retries=0, timeout=PATIENCE)
            for path in ("/models", f"{address.rstrip('/').removesuffix('/v1')}/props"):
                try:
                    about = await asyncio.wait_for(client.get(path, cast_to=object), PATIENCE)
                # A server need not have these, and the run itself will tell what is wrong with it.
                except Exception:
                    continue
                if (tokens := next(_windows(about, self.asked_name), None)) is not None:
                    return tokens
        return listed_window(self.label)

    # What it turned out not to take

    def next_form(self, refused: Form) -> str:
        """Return what ``drop`` is to be told when a form was refused: the next one that the client has."""
        later = (form for form in self._forms if FORMS.index(form) > FORMS.index(refused))
        return f"{STRUCTURE}:{next(later, 'text')}"

    def drop(self, parameter: str, sent: Container[str] = ()) -> bool:
        """Stop sending a parameter; return False where neither every call nor this one (``sent``) had it.

        Calls run side by side: a parameter that another call has dropped in the meantime counts as dropped.
        """
        kind, _, eased = parameter.partition(":")
        if kind in _LADDERS:
            name, steps = _LADDERS[kind]
            # Journals of earlier versions do not say how much room there was.
            step = next((known for known in steps if str(known) == eased), steps[-1])
            # A later step may be taken already.
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
            # G-Eval's scorer warns of missing log-probabilities itself, with what it did instead.
            elif parameter != LOGPROBS:
                self._take(with_each(self._chain, lambda chat: _with(chat, {parameter: None})))
                self._warn_of(parameter, f"takes no {parameter}: it was left out")
        return True

    def _has(self, parameter: str, with_call: bool) -> bool:
        """Tell whether a parameter was sent: with this call, or with every one."""
        if parameter in (SEVERAL, LOGPROBS, CHOICES):
            return with_call
        if parameter == CACHE:
            return self.cache_marks is not None
        field = _field(self.chat, parameter)
        always = field is not None and getattr(self.chat, field) is not None
        return parameter == SYSTEM or always or (with_call and (field is not None or parameter == LIMIT))

    def take_back(self, dropped: Sequence[str]) -> None:
        """Ask for JSON as at first if this call has eased the form and failed all the same: that was not the cause."""
        if any(parameter.startswith(STRUCTURE) for parameter in dropped):
            self.warnings.pop(STRUCTURE, None)
            self.form = self._forms[0]
        if CHOICES in dropped:
            self.warnings.pop(CHOICES, None)
            self.dropped.discard(CHOICES)

    # What verdicts say of it

    def warn(self, warning: str) -> None:
        """Add a warning that every verdict from now on carries; the same warning is added once."""
        self.warnings[warning] = warning

    def _warn_of(self, parameter: str, words: str | None = None) -> None:
        words = words or _WARNINGS[parameter].format(room=self.room, form=FORM_WORDS[self.form])
        self.warnings[parameter] = f"{self.label} {words}"

    def _warn_of_missing(self, parameter: str) -> None:
        self.warn(f"{self.label} has no {parameter} to set: it was used as it is")


def _field(chat: BaseChatModel, parameter: str) -> str | None:
    """Return the name of a parameter in the client's class, or None where it has no such field."""
    return capabilities.field_of(parameter, type(chat).model_fields)


def _with(chat: BaseChatModel, given: Mapping[str, Any]) -> BaseChatModel:
    """Return a chat model with these parameters, as far as its class has them."""
    fields = {name: _field(chat, name) for name in given}
    update = {field: given[name] for name, field in fields.items() if field is not None}
    if given.get(LIMIT) == 0:
        # A limit of 0 asks for none, and the class's own one stays.
        update.pop(fields[LIMIT] or "", None)
    return chat.model_copy(update=update) if update else chat


_INPUTS = {"image": "image_inputs", "audio": "audio_inputs", "video": "video_inputs", "file": "pdf_inputs"}
"""What LangChain's profile of a model says whether it takes, by the type of a content block."""


def _content_blocks(media: Media, chat: BaseChatModel) -> list[dict[str, Any]]:
    """Return images and files as LangChain's content blocks, which its clients translate for their providers.

    Raises:
        UsageError: the model is known not to take one of them.
    """
    blocks = []
    for name, part in media.items():
        [standard] = HumanMessage(content=[part]).content_blocks
        # What LangChain does not know is left as it is: the provider may.
        block: dict[str, Any] = part if standard["type"] == "non_standard" else {**standard}
        if str(block.get("id", "")).startswith("lc_"):
            del block["id"]  # drawn at random: the call would never be the same again
        if block["type"] == "file" and "file_id" not in block:
            block.setdefault("extras", {}).setdefault("filename", name.strip("[]").replace(" ", "-"))
        kind, profile = str(block["type"]), chat.profile or {}
        if isinstance(chat, OfflineJudge) or profile.get(_INPUTS.get(kind, "")) is False:
            problem = f"{label_of(chat)} cannot be shown {name}, which is part of what is judged"
            raise UsageError(f"{problem}: choose a model that takes {kind}s, or describe it in words")
        blocks.append(block)
    return blocks


_SIZES = ("max_model_len", "loaded_context_length", "context_length", "context_window", "n_ctx")


def _windows(about: Any, name: str | None) -> Iterator[int]:
    """Yield the sizes in what a server says of the model, or of the only one that it has."""
    listed = about.get("data", [about]) if isinstance(about, Mapping) else ()
    models = [entry for entry in listed if isinstance(entry, Mapping)]
    for entry in [entry for entry in models if entry.get("id") == name] or models[: len(models) == 1]:
        places = (entry, entry.get("meta"), entry.get("default_generation_settings"))
        sizes = (place.get(key) for place in places if isinstance(place, Mapping) for key in _SIZES)
        yield from (size for size in sizes if isinstance(size, int) and size > 0)
