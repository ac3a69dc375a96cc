"""Asking an agent: one question or several samples, one repair, the turn.

``Hearing.ask`` is the one place that calls a model, reads its reply, has it repaired and makes the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from ..state.errors import ReplyError
from ..state.settings import SettingsT
from ..state.transcript import Turn, turn_without_model, written_by
from ..state.usage import total_usage
from .models.call import Call, Reply, UnsupportedParameterError
from .models.capabilities import SEVERAL
from .models.loaded_model import LoadedModel
from .models.send import invalidate, send
from .output_schemas import OutputSchema, TextSchema, Value
from .prompt_templates import Prompt, Prompts


@dataclass(frozen=True)
class Question:
    """What one agent is asked: who, when, what it is shown, in which form it answers.

    ``details`` go along as metadata of the call: traces show them, and the offline judge plays by them.
    ``parameters`` are the call's own, beside those of the model.
    """

    agent: str
    role: str
    round: int
    prompt: Prompt
    form: OutputSchema
    details: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """An agent's turn, and what it does to the state; ``tokens`` where log-probabilities were asked for."""

    turn: Turn
    warnings: tuple[str, ...]
    tokens: Sequence[Mapping[str, Any]] | None = None

    @property
    def value(self) -> Value:
        """What was read from the reply."""
        return self.turn["value"]

    @property
    def update(self) -> dict[str, Any]:
        """The state update that every agent's node makes."""
        return {"transcript": [self.turn], "warnings": list(self.warnings)}


@dataclass(frozen=True)
class AgentRuntime(Generic[SettingsT]):
    """One run of a protocol: what its nodes need beside the state."""

    settings: SettingsT
    prompts: Prompts
    models: Mapping[str, LoadedModel]
    publish: Callable[[Any], None]

    async def ask(self, question: Question) -> Answer:
        """Have an agent answer, and if its reply cannot be read, ask again as often as settings allow.

        Raises:
            ReplyError: no readable reply; carries the raw text of the last one.
            ModelCallError: the provider refused the call, or it failed for good.
        """
        model = self.model_of(question.role, question.agent)
        call = self._call(question, model, self._messages(question, model))
        return await self._settled(question, call, await send(call))

    async def sample(self, question: Question, size: int) -> Samples:
        """Have an agent answer so many times, at a temperature that lets the answers differ.

        A sample that cannot be read is left out, told as a warning, and not asked for again: the others stand for
        it. Only where none can be read is the first one repaired, as ``ask`` would.

        Raises:
            ReplyError: none can be read, and the repair neither.
            ModelCallError: as ``ask``.
        """
        model = self.model_of(question.role, question.agent)
        heated = replace(question, parameters={**question.parameters, **self._heat(question)})
        drawn = await draw_samples(self._call(heated, model, self._messages(question, model)), size)
        turns = [_sampled(heated, reply, model.label) for _, reply in drawn]
        untold, warnings = turns, tuple(model.warnings)
        if all(turn["value"] is None for turn in turns):
            answer = await self._mended(heated, drawn)
            turns[0], untold, warnings = answer.turn, turns[1:], answer.warnings
        for number, turn in enumerate(turns, start=1):
            turn["sample"] = number
        for turn in untold:
            self.tell(turn)
        return Samples(tuple(turns), (*warnings, *_unread(question, turns)))

    async def _mended(self, question: Question, drawn: Sequence[SampledReply]) -> Answer:
        """The first sample, asked for again; if that is of no use either, none of them is."""
        first = replace(question, details={**question.details, "sample": 1})
        try:
            return await self._settled(first, *drawn[0])
        except ReplyError:
            invalidate([call for call, _ in drawn[1:]])
            raise

    async def ask_all(self, questions: Sequence[Question]) -> list[Answer]:
        """Have several agents answer at the same time; the answers are in the order of the questions.

        Raises:
            ReplyError, ModelCallError: as ``ask``, the first in order, and only when all are through: what one
                agent cannot say does not cut the others short.
        """
        answers = await self.poll(questions)
        for answer in answers:
            if isinstance(answer, ReplyError):
                raise answer
        return [answer for answer in answers if isinstance(answer, Answer)]

    async def poll(self, questions: Sequence[Question]) -> list[Answer | ReplyError]:
        """The same where a voice can be done without: an unreadable reply stands in its place as the error."""
        answers = await asyncio.gather(*map(self.ask, questions), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, ReplyError):
                raise answer
        return [answer for answer in answers if isinstance(answer, Answer | ReplyError)]

    def model_of(self, role: str, agent: str | None = None) -> LoadedModel:
        """The model of an agent: its own, its role's, or the one for all."""
        for key in (agent, role, "*"):
            if key is not None and key in self.models:
                return self.models[key]
        raise KeyError(f"no model for {role}, and none for all")

    def _structured(self, model: LoadedModel) -> bool:
        return self.settings.structured == "auto" and model.takes_structure()

    def _form_text(self, form: OutputSchema, model: LoadedModel) -> str:
        structured = self._structured(model) and not isinstance(form, TextSchema)
        return self.prompts.render(form.template, structured=structured, **form.limits())

    async def _settled(self, question: Question, call: Call, reply: Reply) -> Answer:
        """What a reply says; if it cannot be read, what comes when it is asked for again."""
        model, calls, replies = call.model, [call], [reply]
        while True:
            try:
                content, value = read(question.form, replies[-1])
            except ReplyError as error:
                turn = _turn(question, replies, replies[-1].text, None, model.label)
                self.tell(turn, error.problem)
                if len(replies) > self.settings.repair:
                    invalidate(calls)
                    error.agent, error.round, error.turn = question.agent, question.round, turn
                    raise
                messages = [*calls[-1].messages, *self._repair(question, error, model)]
                calls.append(self._call(question, model, messages, len(replies)))
                replies.append(await send(calls[-1]))
            else:
                turn = _turn(question, replies, content, value, model.label)
                self.tell(turn)
                return Answer(turn, (*model.warnings, *_repaired(question, replies)), replies[-1].tokens)

    def _call(
        self, question: Question, model: LoadedModel, messages: Sequence[BaseMessage], repairs: int = 0
    ) -> Call:
        schema = question.form.schema() if self._structured(model) else None
        return Call(model, messages, schema, self._metadata(question, repairs), question.parameters)

    def _heat(self, question: Question) -> dict[str, float]:
        """The temperature of samples: a named model's own, else that of the settings, else the method's."""
        keys = (key for key in (question.agent, question.role, "*") if key in self.models)
        spec = self.settings.models.get(next(keys, "*"))
        if spec is not None and spec.temperature is not None:
            return {"temperature": spec.temperature}
        given = self.settings.temperature
        return {"temperature": TEMPERATURE if given is None else given}

    def _messages(self, question: Question, model: LoadedModel) -> list[BaseMessage]:
        prompt = question.prompt
        own = f"{prompt.own}\n{self._form_text(question.form, model)}"
        return [SystemMessage(prompt.system), HumanMessage(replace(prompt, own=own).user)]

    def _repair(self, question: Question, error: ReplyError, model: LoadedModel) -> list[BaseMessage]:
        form = self._form_text(question.form, model)
        request = self.prompts.render("shared/repair", problem=error.problem, form=form)
        return [AIMessage(error.reply or "(no text)"), HumanMessage(request)]

    def _metadata(self, question: Question, repairs: int) -> dict[str, Any]:
        return {
            "agent": question.agent,
            "role": question.role,
            "round": question.round,
            "form": question.form.name,
            **question.details,
            "repair": repairs > 0,
        }

    def tell(self, turn: Turn, problem: str | None = None) -> None:
        """Send a turn to whoever streams the run (``stream_mode="custom"``); ``problem`` says why it is unusable."""
        self.publish({"turn": turn, "problem": problem})


def read(form: OutputSchema, reply: Reply) -> tuple[str, Value]:
    """Words and value of a reply; one that was refused or cut off is never read as whole.

    Raises:
        ReplyError: nothing usable in it.
    """
    if reply.refused:
        raise ReplyError("The reply is a refusal.", reply.text, "refused")
    if reply.cut_off:
        raise ReplyError("The reply was cut off by the length limit; be shorter.", reply.text, "cut_off")
    if reply.fields is not None and form.schema() is not None:
        return form.from_fields(reply.fields, reply.text)
    return reply.text, form.from_text(reply.text)


def _sampled(question: Question, reply: Reply, model: str) -> Turn:
    """One of several answers to the same question; with no value if it cannot be read."""
    try:
        content, value = read(question.form, reply)
    except ReplyError:
        content, value = reply.text, None
    return _turn(question, [reply], content, value, model)


def _turn(question: Question, replies: list[Reply], content: str, value: Value, model: str) -> Turn:
    """Make the turn of the last reply, with the usage of all of them: a repaired reply was paid for as well."""
    usage = total_usage(reply.usage for reply in replies)
    turn = turn_without_model(question.round, question.agent, question.role, content, value)
    return written_by(turn, replies[-1].model or model, usage)


def _unread(question: Question, turns: Sequence[Turn]) -> tuple[str, ...]:
    unread = sum(turn["value"] is None for turn in turns)
    if not unread:
        return ()
    samples = f"{unread} of {len(turns)} samples could not be read and were left out"
    return (f"{question.agent}, round {question.round}: {samples}",)


def _repaired(question: Question, replies: list[Reply]) -> tuple[str, ...]:
    if len(replies) == 1:
        return ()
    return (
        f"{question.agent}, round {question.round}: the reply was asked for again {len(replies) - 1} time(s)",
    )


TEMPERATURE = 1.0
"""Of a method that samples, where nobody set another (G-Eval, section 3.1; FairEval, section 3.1)."""


@dataclass(frozen=True)
class Samples:
    """The answers to one question that was asked several times; the value of one that cannot be read is None."""

    turns: tuple[Turn, ...]
    warnings: tuple[str, ...]

    @property
    def read(self) -> list[Turn]:
        """Those that count."""
        return [turn for turn in self.turns if turn["value"] is not None]

    @property
    def unread(self) -> int:
        """How many do not."""
        return len(self.turns) - len(self.read)


class SampledReply(NamedTuple):
    """A reply, and the call that it answers."""

    call: Call
    reply: Reply


async def draw_samples(call: Call, size: int) -> list[SampledReply]:
    """So many replies to one call, each with an index of its own, which is part of what identifies it.

    Raises:
        ModelCallError: as ``send``, the first in order, and only when all are through.
    """
    drawn = await _at_once(call, size) if size > 1 and call.model.gives(SEVERAL) else []
    return [*drawn, *await _side_by_side(call, range(len(drawn) + 1, size + 1))]


async def _at_once(call: Call, size: int) -> list[SampledReply]:
    """What one request yields: all of them, some, or none where the provider refuses."""
    asked = _numbered(replace(call, parameters={**call.parameters, SEVERAL: size}), 1)
    try:
        first = await send(asked)
    except UnsupportedParameterError:
        return []
    if not first.others:
        call.model.drop(SEVERAL, asked.parameters)
    elif len(first.others) + 1 < size:
        call.model.warn(
            f"{call.model.label} gave fewer replies to one request than asked for; the rest was asked for"
        )
    return [SampledReply(asked, reply) for reply in [first, *first.others][:size]]


async def _side_by_side(call: Call, numbers: Iterable[int]) -> list[SampledReply]:
    calls = [_numbered(_reseeded(call, number), number) for number in numbers]
    replies = await asyncio.gather(*map(send, calls), return_exceptions=True)
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply
    return [
        SampledReply(sent, reply)
        for sent, reply in zip(calls, replies, strict=True)
        if isinstance(reply, Reply)
    ]


def _numbered(call: Call, number: int) -> Call:
    return replace(call, metadata={**call.metadata, "sample": number})


def _reseeded(call: Call, number: int) -> Call:
    """One seed for all would make one sample of them."""
    seed = call.model.seed
    return call if seed is None else replace(call, parameters={**call.parameters, "seed": seed + number - 1})
