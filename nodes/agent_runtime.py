"""Ask an agent and make its turn: messages, model call, reading of the reply, repair.

``AgentRuntime.ask`` is the one place where a protocol calls a model. It builds the messages, sends them
(``models/send.py``), reads the reply with the output schema of the question, asks for a repair where that fails, and
makes the turn, with a warning where a reply only repeats what it was shown. ``sample`` does this for several replies to
one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.runtime import get_runtime

from ..state.aggregation import swapped
from ..state.errors import ReplyError, ReplyFault
from ..state.settings import Settings, SettingsT
from ..state.transcript import Turn, TurnIds, total_usage, turn_without_model
from ..state.verdict_warnings import ASKED_AGAIN, PROMPT_CUT, SPEECH_CUT_OFF, UNREAD_SAMPLES, copied_words
from .models.call import Call, Reply
from .models.capabilities import text_block, with_text
from .models.loaded_model import LoadedModel
from .models.send import draw_samples, invalidate, send
from .output_schemas import OutputSchema, TextSchema, Value
from .prompt_context import Prompt, Prompts
from .replies import LONGEST_READ_WHOLE, Shown
from .replies.own_words import without_reasoning

SAMPLING_TEMPERATURE = 1.0
"""Used by ``sample`` where neither the model's name nor the settings give one (G-Eval, 3.1; FairEval, 3.1)."""

Publish = Callable[[Any], None]

heard_beside: ContextVar[Publish | None] = ContextVar("heard_beside", default=None)
"""Where the turns of a judge inside a wrapper or a run go, beside its own stream."""


@dataclass(frozen=True)
class Question:
    """Describe one request to one agent.

    Attributes:
        agent: the name under which it speaks, such as ``juror_2``.
        role: what kind of agent it is, such as ``juror``; models are chosen by role.
        round: the round in which it is asked, from 1 (0 before the first).
        prompt: what it is shown.
        form: the shape of the reply, and how its value is read.
        details: sent as metadata of the call; traces show it and the offline judge answers by it.
        parameters: model parameters of this call alone, such as ``logprobs``.
    """

    agent: str
    role: str
    round: int
    prompt: Prompt
    form: OutputSchema
    details: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def who(self) -> str:
        """The agent and the round, as warnings name them."""
        return f"{self.agent}, round {self.round}"


class Answer(NamedTuple):
    """Hold an agent's turn with its warnings; ``tokens`` where log-probabilities were asked for."""

    turn: Turn
    warnings: tuple[str, ...]
    tokens: Sequence[Mapping[str, Any]] | None = None

    @property
    def update(self) -> dict[str, Any]:
        """The state update that every agent's node returns."""
        return {"transcript": [self.turn], "warnings": list(self.warnings)}


@dataclass(frozen=True)
class AgentRuntime(Generic[SettingsT]):
    """Ask agents with the settings, prompts and models of one run, and stream their turns to ``publish``.

    Attributes:
        settings: of the run.
        prompts: the templates.
        models: the model of each role, or agent, that has one; ``"*"`` for all others.
        publish: the stream of the judge's own graph.
        turn_ids: numbers the turns; its order is the one in which the answers are shown, where there are two.
    """

    settings: SettingsT
    prompts: Prompts
    models: Mapping[str, LoadedModel]
    publish: Publish
    turn_ids: TurnIds = field(default_factory=TurnIds)

    def say(self, round: int, agent: str, content: str, value: Any = None, **further: Any) -> Turn:
        """Make and stream a turn that no model wrote: a message passed on, or a person's words, with further fields."""
        spoken = turn_without_model(round, agent, agent, content, value)
        turn = cast("Turn", {**spoken, "id": self.turn_ids.next(agent), **further})
        self.publish_turn(turn)
        return turn

    async def ask(self, question: Question) -> Answer:
        """Ask one agent and return its answer; a reply that cannot be read is requested again (setting ``repair``).

        Raises:
            ReplyError: no readable reply; carries the raw text of the last one.
            ModelCallError: the provider refused the call, or it failed for good.
        """
        model = self.model_of(question.role, question.agent)
        call = self._call(question, model, self._messages(question, model))
        reply = await send(call)
        return await self._read_or_repair(question, call, reply, self.turn_ids.next(question.agent))

    async def sample(self, question: Question, size: int) -> tuple[list[Turn], list[str]]:
        """Ask one agent for ``size`` replies to the same question, at a temperature at which they differ.

        A sample that cannot be read has the value None and a warning, and is not requested again, since the others
        stand for it. Only where none can be read is the first one repaired, as ``ask`` would.

        Returns:
            The turns, and the warnings.

        Raises:
            ReplyError: no sample can be read, and neither can the repaired one.
            ModelCallError: as ``ask``.
        """
        model = self.model_of(question.role, question.agent)
        # The settings' own entry, for the loaded model already has the default temperature of a single reply.
        spec = self.settings.models.get(self._model_key(question.role, question.agent))
        given = (spec.temperature if spec else None, self.settings.temperature, SAMPLING_TEMPERATURE)
        temperature = next(degree for degree in given if degree is not None)
        question = replace(question, parameters={**question.parameters, "temperature": temperature})
        sampled = await draw_samples(self._call(question, model, self._messages(question, model)), size)
        form = _knowing(question, _prompt_of(sampled[0][0]))
        turns = []
        for _, reply in sampled:
            try:
                content, value = await _read(form, reply)
            except ReplyError as error:
                content, value = error.reply, None
            id = self.turn_ids.next(question.agent)
            turns.append(self._turn(id, question, [reply], content, value, model.label))
        unpublished, warnings = turns, tuple(model.warnings.values())
        if all(turn["value"] is None for turn in turns):
            # The sample's number stays in the metadata, as in the call that is repaired.
            first = replace(question, details={**question.details, "sample": 1})
            try:
                answer = await self._read_or_repair(first, *sampled[0], turns[0]["id"])
            except ReplyError:
                invalidate([call for call, _ in sampled[1:]])
                raise
            turns[0], warnings = answer.turn, answer.warnings
            # The repair has published its own turns.
            unpublished = turns[1:]
        for number, turn in enumerate(turns, start=1):
            turn["sample"] = number
        for turn in unpublished:
            self.publish_turn(turn)
        if temperature == 0 and size > 1:
            warnings = (*warnings, f"{model.label} was sampled at temperature 0: its samples are all alike")
        # Replies that share a request have its usage on the first of them.
        cut = dict.fromkeys(warning for pair in sampled for warning in _prompt_warning(question.who, *pair))
        if unread := sum(turn["value"] is None for turn in turns):
            warnings = (*warnings, UNREAD_SAMPLES.of(question.who, unread=unread, asked=len(turns)))
        return turns, [*warnings, *cut]

    def model_of(self, role: str, agent: str | None = None) -> LoadedModel:
        """Return the model of an agent: the one chosen for the agent, else for its role, else for all (``"*"``)."""
        return self.models[self._model_key(role, agent)]

    def publish_turn(self, turn: Turn, problem: str | None = None) -> None:
        """Stream a turn (``stream_mode="custom"``); ``problem`` says why its reply could not be read."""
        event = {"turn": turn, "problem": problem}
        self.publish(event)
        if outer := heard_beside.get():
            outer(event)

    async def _read_or_repair(self, question: Question, call: Call, reply: Reply, id: str) -> Answer:
        """Parse the reply; while that fails and repairs are left, send a repair request and parse its reply."""
        model, calls, replies, cut_off = call.model, [call], [reply], False
        prompt = _prompt_of(call)
        form = _knowing(question, prompt)
        while True:
            try:
                content, value = await _read(form, replies[-1])
            except ReplyError as error:
                turn = self._turn(id, question, replies, error.reply, None, model.label)
                self.publish_turn(turn, error.problem)
                if len(replies) > self.settings.repair:
                    # Served from the journal, the same unreadable replies would fail every later attempt too.
                    invalidate(calls)
                    error.agent, error.round, error.turn = question.agent, question.round, turn
                    raise
                cut_off = cut_off or error.fault == "cut_off"
                if cut_off:
                    form = form.after_cut_off()
                    question = replace(question, form=form)
                # The conversation grows: a second repair request comes after the first one and its reply.
                structured = self._asks_for_json(model)
                wanted = self.prompts.form(form, structured=structured, alone=cut_off)
                messages = repair_conversation(calls[-1].messages, self.prompts, error, wanted)
                again = self._call(question, model, messages, len(replies))
                calls.append(replace(again, schema=value_alone(again.schema)) if cut_off else again)
                replies.append(await send(calls[-1]))
            else:
                turn = self._turn(id, question, replies, content, value, model.label)
                self.publish_turn(turn)
                warnings = _warnings(question, prompt, content, calls, replies)
                return Answer(turn, (*model.warnings.values(), *warnings), replies[-1].tokens)

    def _turn(
        self, id: str, question: Question, replies: list[Reply], content: str, value: Value, model: str
    ) -> Turn:
        """Make the turn of the last reply, with the usage of all of them: a repaired reply was paid for as well."""
        order = self.turn_ids.order
        who = {"id": id, "round": question.round, "agent": question.agent, "role": question.role}
        # Values always refer to the task's order of the answers, the words to the order that the agent was shown.
        words = {"content": content, "value": swapped(value) if order == 2 else value}
        # A recorded reply names the model that once wrote it, which may not be the one that is asked now.
        took = {"model": replies[-1].model or model, **total_usage(reply.usage for reply in replies).flat()}
        turn = cast("Turn", {**who, **words, **took})
        if scale := question.form.scale:
            turn["scale"] = list(scale)
        if order is not None:
            turn["order"] = order
        return turn

    def _call(
        self, question: Question, model: LoadedModel, messages: Sequence[BaseMessage], repairs: int = 0
    ) -> Call:
        schema = question.form.schema() if self._asks_for_json(model) else None
        parameters = {**model.reply_limit(question.form.name), **question.parameters}
        about = {
            "agent": question.agent,
            "role": question.role,
            "round": question.round,
            "form": question.form.name,
            **question.details,
            "repair": repairs > 0,
            **({"order": 2} if self.turn_ids.order == 2 else {}),
        }
        return Call(model, messages, schema, about, parameters, question.prompt.repeated)

    def _messages(self, question: Question, model: LoadedModel) -> list[BaseMessage]:
        form = self.prompts.form(question.form, structured=self._asks_for_json(model))
        system, user = question.prompt.messages(form, self.settings.layout)
        if not (media := question.prompt.media):
            return [SystemMessage(system), HumanMessage(user)]
        attached = self.prompts.render("shared/attached", names=list(media))
        # Before the text, as providers advise: they are the same for all agents, so that a prefix cache keeps them.
        content: list[str | dict[str, Any]] = [*model.sent(media), text_block(user)]
        return [SystemMessage(f"{system}\n\n{attached}"), HumanMessage(content)]

    def _asks_for_json(self, model: LoadedModel) -> bool:
        return self.settings.structured == "auto" and model.form != "text"

    def _model_key(self, role: str, agent: str | None) -> str:
        for key in (agent, role, "*"):
            if key is not None and key in self.models:
                return key
        raise KeyError(f"no model for {role}, and none for all")


def without_models(transcript: Sequence[Turn]) -> AgentRuntime[Settings]:
    """Return the runtime of a node of a graph that asks no model: what is said there is streamed, and numbered."""
    return AgentRuntime(Settings(), Prompts.bundled(), {}, get_runtime().stream_writer, TurnIds(transcript))


def _prompt_of(call: Call) -> str:
    return "\n".join(message.text for message in call.messages)


def _knowing(question: Question, prompt: str) -> OutputSchema:
    """Return the form with the texts that the agent was shown: what it reprints of them is no value of its own."""
    return replace(question.form, shown=Shown.in_prompt(prompt, question.agent))


async def _read(form: OutputSchema, reply: Reply) -> tuple[str, Value]:
    """Read a reply as ``read`` does; a long one in a thread, so that other calls go on."""
    if len(reply.text) > LONGEST_READ_WHOLE:
        return await asyncio.to_thread(read, form, reply)
    return read(form, reply)


def read(form: OutputSchema, reply: Reply) -> tuple[str, Value]:
    """Read the text and the value of a reply; one that was refused or cut off is never read, whatever it says.

    Raises:
        ReplyError: the reply holds no usable value.
    """
    if reply.refused or reply.cut_off:
        answer = without_reasoning(reply.text)
        if reply.refused:
            fault: ReplyFault = "filtered" if reply.filtered else "refused"
            raise ReplyError(reply.problem or "The reply is a refusal.", answer, fault)
        if not form.is_whole(answer):
            raise ReplyError(reply.problem or "The reply was cut off by the length limit.", answer, "cut_off")
    if reply.problem and not reply.text:
        raise ReplyError(reply.problem, "", "missing")
    content, value = form.read(reply.text, reply.fields)
    return (f"{content.rstrip()} {CUT_OFF}" if _is_half_a_speech(form, reply) else content), value


CUT_OFF = "[cut off]"
"""Marks the end of a speech that ran into its length limit."""


def _is_half_a_speech(form: OutputSchema, reply: Reply) -> bool:
    return reply.cut_off and isinstance(form, TextSchema)


def _warnings(
    question: Question, prompt: str, content: str, calls: Sequence[Call], replies: Sequence[Reply]
) -> Iterator[str]:
    """Yield what a reader should know of an agent's turn, which took these calls and their replies."""
    who = question.who
    if len(replies) > 1:
        yield ASKED_AGAIN.of(who, times=len(replies) - 1)
    if _is_half_a_speech(question.form, replies[-1]):
        yield SPEECH_CUT_OFF.of(who)
    yield from copied_words(who, content, prompt)
    for call, reply in zip(calls, replies, strict=True):
        yield from _prompt_warning(who, call, reply)


def _prompt_warning(who: str, call: Call, reply: Reply) -> Iterator[str]:
    """Yield a warning where the server counted far fewer tokens than the prompt can have: it may have cut it."""
    counted = reply.usage.input_tokens
    least = max(_LONG_PROMPT, counted * _MOST_CHARACTERS + 1)
    if counted and sum(len(message.text) for message in call.messages) >= least:
        # Blanks in a row may be one token.
        sent = len(" ".join(_prompt_of(call).split()))
        if sent >= least:
            yield PROMPT_CUT.of(who, counted=counted, sent=sent)


_MOST_CHARACTERS, _LONG_PROMPT = 12, 8000
"""Characters to a token, three times as many as in English; and of the shortest prompt whose count is looked at."""


def repair_conversation(
    asked: Sequence[BaseMessage], prompts: Prompts, error: ReplyError, form: str
) -> list[BaseMessage]:
    """Return the conversation that asks for a reply again; ``form`` is how the agent was told to answer.

    A reply that was cut off is not sent back: a model that has run into a loop goes on with it when it sees it, and the
    loop may fill its context. Nothing stands in its place either, since a small model repeats that as its reply. It is
    asked for the value alone, at the end of the message that it has answered.
    """
    cut_off = error.fault == "cut_off"
    request = prompts.render("shared/repair", problem=error.problem, form=form, cut_off=cut_off)
    # Some providers refuse an assistant's message without text, and two messages of one role in a row.
    if cut_off:
        return [*asked[:-1], with_text(asked[-1], f"{asked[-1].text}\n\n{request}")]
    return [*asked, AIMessage(error.reply or "(no text)"), HumanMessage(request)]


def value_alone(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a reply's schema without the fields for prose, where something else is left that says enough.

    >>> fields = {"reasoning": {"type": "string"}, "score": {"type": "number"}}
    >>> value_alone({"title": "score_reply", "properties": fields})["properties"]
    {'score': {'type': 'number'}}
    """
    if schema is None:
        return None
    fields = schema["properties"]
    kept = {n: about for n, about in fields.items() if about.get("type") != "string" or "enum" in about}
    # A bare flag is no critique: an objection without its words helps nobody.
    if all(about.get("type") == "boolean" for about in kept.values()):
        brief = {name: {**about, "maxLength": _BRIEF} for name, about in fields.items() if name not in kept}
        return {**schema, "properties": {**fields, **brief}}
    return {**schema, "properties": kept, "required": list(kept)}


_BRIEF = 500
"""Characters, somewhat more than the 60 words that a repair request speaks of."""
