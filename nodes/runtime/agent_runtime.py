"""Asks an agent and makes its turn: messages, model call, reading of the reply, repair.

``AgentRuntime.ask`` is the only place where a protocol calls a model. It builds the messages, sends
them (``models/send.py``), reads the reply with the question's output schema, requests a repair if
that fails, and makes the turn. It adds a warning if a reply only repeats the prompt. ``sample``
does this for several replies to one question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.runtime import get_runtime

from ...state.aggregation import swapped
from ...state.errors import ModelCallError, RecusedError, ReplyError, ReplyFault, UsageError
from ...state.evidence import Evidence, citations_of, id_prefix, next_number
from ...state.panels import CALL_FAILED, RECUSED
from ...state.settings import Settings, SettingsT, ToolSettings
from ...state.transcript import Turn, TurnIds, total_usage, turn_without_model
from ...state.verdict_warnings import (
    ASKED_AGAIN,
    PROMPT_CUT,
    SPEECH_CUT_OFF,
    UNCITED,
    UNKNOWN_EVIDENCE,
    UNREAD_SAMPLES,
    copied_words,
)
from ..common.delimiters import fenced_sections
from ..common.server_rules import check_media
from ..models.call import Call, Reply
from ..models.capabilities import TOOLS, text_block, with_text
from ..models.families import kinship
from ..models.loaded_model import LoadedModel
from ..models.send import draw_samples, invalidate, send
from ..offline import OfflineJudge
from ..replies import LONGEST_READ_WHOLE, Shown
from ..replies.own_words import without_reasoning
from .look_up import LookedUp, LookUp, LookUpSchema, look_up_graph, tool_warnings, with_evidence
from .output_schemas import OutputSchema, TextSchema, Value
from .prompt_context import Prompt, Prompts
from .recusal import check_recusal
from .toolbox import Toolbox

SAMPLING_TEMPERATURE = 1.0
"""The temperature of ``sample`` unless model or settings set one (G-Eval 3.1, FairEval 3.1)."""

REPLACEMENT = "replacement"
"""The role of the models that take the seats of failed members: ``replacement_1``, and so on."""

Publish = Callable[[Any], None]

heard_beside: ContextVar[Publish | None] = ContextVar("heard_beside", default=None)
"""The additional receiver of the turns of a judge inside a wrapper or a run."""

Mark = Callable[[Turn], Turn]
marks_of_wrappers: ContextVar[tuple[Mark, ...]] = ContextVar("marks_of_wrappers", default=())
"""The marks of the wrappers around the running judge for its turns, innermost first."""


def marked_by_wrappers(turn: Turn) -> Turn:
    """Return a turn with the id and the marks that it has in the outermost wrapper's transcript.

    Streams and pauses show turns in this form, so that each turn has the same id everywhere.
    """
    for mark in marks_of_wrappers.get():
        turn = mark(turn)
    return turn


@dataclass(frozen=True)
class Question:
    """One request to one agent.

    Attributes:
        agent: the agent's name, such as ``juror_2``.
        role: the agent's role, such as ``juror``; models are chosen by role.
        round: the round in which it is asked, from 1 (0 before the first).
        prompt: the agent's prompt.
        form: the form of the reply, which also reads its value.
        details: metadata of the call, for traces and for the offline judge.
        parameters: model parameters of this call only, such as ``logprobs``.
        looked_up: the evidence from the agent's tools; None if it has no tools.
    """

    agent: str
    role: str
    round: int
    prompt: Prompt
    form: OutputSchema
    details: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    looked_up: LookedUp | None = None

    @property
    def who(self) -> str:
        """The agent and the round, as warnings name them."""
        return f"{self.agent}, round {self.round}"


class Answer(NamedTuple):
    """An agent's turn and its warnings; ``tokens`` if log-probabilities were requested."""

    turn: Turn
    warnings: tuple[str, ...]
    tokens: Sequence[Mapping[str, Any]] | None = None

    @property
    def update(self) -> dict[str, Any]:
        """The state update that every agent's node returns."""
        return {"transcript": [self.turn], "warnings": list(self.warnings)}


@dataclass
class _Spoken:
    """The turns of the agents of one node so far.

    Attributes:
        turns: their turns by id.
        problems: the reason why a reply could not be read, by the id of its turn.
        question: the question whose call the provider refused.
    """

    turns: dict[str, Turn] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    question: Question | None = None


@dataclass(frozen=True)
class AgentRuntime(Generic[SettingsT]):
    """Asks agents with the settings, prompts and models of one run, and streams their turns.

    Attributes:
        settings: the run's settings.
        prompts: the templates.
        models: the models by role or agent; ``"*"`` for all others.
        publish: the stream of the judge's own graph.
        turn_ids: numbers the turns, and knows the order in which two answers are shown.
        authors: the authors of the texts under judgement, whose families may not judge them.
        toolbox: the tools of the judging agents; None if they have none.
        tool_roles: the roles whose agents may call the tools.
    """

    settings: SettingsT
    prompts: Prompts
    models: Mapping[str, LoadedModel]
    publish: Publish
    turn_ids: TurnIds = field(default_factory=TurnIds)
    authors: Sequence[str] = ()
    toolbox: Toolbox | None = None
    tool_roles: tuple[str, ...] = ()
    _spoken: _Spoken = field(default_factory=_Spoken, repr=False, compare=False)

    def say(self, round: int, agent: str, content: str, value: Any = None, **further: Any) -> Turn:
        """Make and stream a turn without a model call: a relayed message, or a human's words.

        ``further`` are additional fields of the turn.
        """
        spoken = turn_without_model(round, agent, agent, content, value)
        turn = cast("Turn", {**spoken, "id": self.turn_ids.next(agent), **further})
        self.publish_turn(turn)
        return turn

    async def ask(self, question: Question) -> Answer:
        """Ask one agent and return its answer; unreadable replies are requested again (``repair``).

        Raises:
            ReplyError: no readable reply; the error contains the raw text of the last one.
            ModelCallError: the provider refused the call, or it failed permanently; a
                ``RecusedError`` if the agent's family may not judge the texts.
        """
        model = self.model_of(question.role, question.agent)
        try:
            check_recusal(model.label, self.authors)
            if self.toolbox is not None and question.role in self.tool_roles:
                question = await self._look_up(question, model, self.toolbox)
            call = self._first_call(question, model)
            reply = await send(call)
        except ModelCallError:
            # A failed request for tools has set it, with what was found before.
            if self._spoken.question is None:
                self._spoken.question = question
            raise
        return await self._read_or_repair(question, call, reply, self.turn_ids.next(question.agent))

    async def _look_up(self, question: Question, model: LoadedModel, toolbox: Toolbox) -> Question:
        """Let an agent call its tools, and return its question with the evidence.

        Raises:
            UsageError: its model cannot be offered tools.
            ModelCallError: the provider refused a request for tools, or it failed permanently.
        """
        check_calls_tools(model.label, question.role, model.calls_tools)
        settings = self.settings
        assert isinstance(settings, ToolSettings)
        names = tuple(tool.name for tool in toolbox.tools)
        parameters = {**question.parameters, TOOLS: toolbox.schemas}
        made = LookedUp()

        async def request(evidence: Sequence[Evidence], left: int) -> tuple[Call, Reply]:
            prompt = with_evidence(question.prompt, self.prompts, evidence)
            form = LookUpSchema(tools=names, left=left)
            asked = replace(question, prompt=prompt, form=form, parameters=parameters)
            call = self._first_call(asked, model)
            return call, await send(call)

        prefix = id_prefix(question.agent)
        turns = self.turn_ids.transcript
        earlier = [piece for turn in turns for piece in turn.get("evidence", ())]
        first = next_number(prefix, earlier)
        context = LookUp(request, prefix, first, settings.tool_rounds, question.who, made)
        try:
            await look_up_graph(toolbox).ainvoke({"messages": [], "calls": []}, context=context)
        except ModelCallError:
            self._spoken.question = replace(question, looked_up=made)
            raise
        prompt = with_evidence(question.prompt, self.prompts, made.evidence)
        return replace(question, prompt=prompt, looked_up=made)

    async def sample(self, question: Question, size: int) -> tuple[list[Turn], list[str]]:
        """Ask one agent for ``size`` replies to the same question, at a temperature above 0.

        An unreadable sample has the value None and a warning. It is not requested again, because
        the others represent it. Only if all samples are unreadable, the first one is repaired, as
        in ``ask``.

        Returns:
            The turns, and the warnings.

        Raises:
            ReplyError: no sample can be read, and neither can the repaired one.
            ModelCallError: as in ``ask``.
        """
        model = self.model_of(question.role, question.agent)
        # Read the settings' own entry, because the loaded model already has the default temperature
        # of a single reply.
        spec = self.settings.models.get(self._model_key(question.role, question.agent))
        given = (
            spec.temperature if spec else None,
            self.settings.temperature,
            SAMPLING_TEMPERATURE,
        )
        temperature = next(degree for degree in given if degree is not None)
        question = replace(question, parameters={**question.parameters, "temperature": temperature})
        try:
            check_recusal(model.label, self.authors)
            sampled = await draw_samples(self._first_call(question, model), size)
        except ModelCallError:
            self._spoken.question = question
            raise
        form = _knowing(question, sampled[0][0])
        turns = []
        for _, reply in sampled:
            try:
                content, value = await _read(form, reply)
            except ReplyError as error:
                content = error.reply
                value = None
            id = self.turn_ids.next(question.agent)
            turns.append(self._turn(id, question, [reply], content, value, model.label))
        unpublished = turns
        warnings = tuple(model.warnings.values())
        if all(turn["value"] is None for turn in turns):
            # The sample's number stays in the metadata, as in the call that is repaired.
            first = replace(question, details={**question.details, "sample": 1})
            try:
                answer = await self._read_or_repair(first, *sampled[0], turns[0]["id"])
            except ReplyError as error:
                invalidate([call for call, _ in sampled[1:]])
                for turn in turns[1:]:
                    self.publish_turn(turn, error.problem)
                raise
            turns[0], warnings = answer.turn, answer.warnings
            # The repair has already published its turns.
            unpublished = turns[1:]
        for number, turn in enumerate(turns, start=1):
            turn["sample"] = number
        for turn in unpublished:
            self.publish_turn(turn)
        if temperature == 0 and size > 1:
            warnings = (
                *warnings,
                f"{model.label} was sampled at temperature 0: its samples are all alike",
            )
        # If replies share a request, the first one has its usage.
        cut = dict.fromkeys(
            warning for pair in sampled for warning in _prompt_warning(question.who, *pair)
        )
        if unread := sum(turn["value"] is None for turn in turns):
            warnings = (*warnings, UNREAD_SAMPLES.of(question.who, unread=unread, asked=len(turns)))
        return turns, [*warnings, *cut]

    def model_of(self, role: str, agent: str | None = None) -> LoadedModel:
        """Return the model of an agent: its own, its role's, or the one for all (``"*"``)."""
        return self.models[self._model_key(role, agent)]

    def publish_turn(self, turn: Turn, problem: str | None = None) -> None:
        """Stream a turn (``stream_mode="custom"``).

        ``problem`` is why its reply could not be read.
        """
        self._spoken.turns[turn["id"]] = turn
        if problem is None:
            self._spoken.problems.pop(turn["id"], None)
        else:
            self._spoken.problems[turn["id"]] = problem
        event = {"turn": marked_by_wrappers(turn), "problem": problem}
        self.publish(event)
        if outer := heard_beside.get():
            outer(event)

    def turns_without_vote(self, error: ReplyError | ModelCallError) -> list[Turn]:
        """Return the turns of an agent whose call failed: they have its cost, but no value.

        The failed turns have the fields ``problem`` and ``fault``. If the provider refused the
        first request, there is no reply, so this function makes and streams the turn.
        """
        spoken = self._spoken
        question = self._spoken.question
        failed = list(spoken.problems)
        if not failed and question is not None:
            turn = turn_without_model(question.round, question.agent, question.role, "")
            about: dict[str, Any] = {"model": self.model_of(question.role, question.agent).label}
            if scale := question.form.scale:
                about["scale"] = list(scale)
            if question.looked_up is not None:
                about.update(total_usage(question.looked_up.usages).flat())
                about["evidence"] = question.looked_up.evidence
            if self.turn_ids.order is not None:
                about["order"] = self.turn_ids.order
            made = cast("Turn", {"id": self.turn_ids.next(question.agent), **turn, **about})
            self.publish_turn(made, str(error))
            failed = [made["id"]]
        elif not failed:
            # The reply was readable, but the agent could not use it.
            failed = list(spoken.turns)[-1:]
        if not failed:
            raise error
        first = spoken.turns[failed[0]]
        fault: str = error.fault if isinstance(error, ReplyError) else CALL_FAILED
        if isinstance(error, RecusedError):
            fault = RECUSED
        words = error.problem if isinstance(error, ReplyError) else str(error)
        # Warnings already name the agent before the problem.
        problem = words.removeprefix(f"{first['agent']}, round {first['round']}: ")
        about = {"value": None, "problem": problem, "fault": fault}
        return [
            cast("Turn", {**t, **about}) if id in failed else t for id, t in spoken.turns.items()
        ]

    def replaced(self, role: str, agent: str) -> AgentRuntime[SettingsT] | None:
        """Return the runtime with another model in an agent's seat; None if no other is left.

        A model that is recused itself takes no seat.
        """
        failed = self.model_of(role, agent)
        for key, model in self.models.items():
            if not key.startswith(f"{REPLACEMENT}_") or model.label == failed.label:
                continue
            if not kinship(model.label, self.authors).author:
                return replace(self, models={**self.models, agent: model}, _spoken=_Spoken())
        return None

    async def _read_or_repair(
        self, question: Question, call: Call, reply: Reply, id: str
    ) -> Answer:
        """Read the reply; while that fails and repairs are left, request and read another one."""
        model = call.model
        calls = [call]
        replies = [reply]
        cut_off = False
        form = _knowing(question, call)
        while True:
            try:
                content, value = await _read(form, replies[-1])
            except ReplyError as error:
                turn = self._turn(id, question, replies, error.reply, None, model.label)
                self.publish_turn(turn, error.problem)
                if len(replies) > self.settings.repair:
                    # If the journal served them, the same unreadable replies would fail every later
                    # attempt too.
                    invalidate(calls)
                    error.agent = question.agent
                    error.round = question.round
                    error.turn = turn
                    raise
                cut_off = cut_off or error.fault == "cut_off"
                if cut_off:
                    form = form.after_cut_off()
                    question = replace(question, form=form)
                # The conversation grows: a second repair request follows the first one and its
                # reply.
                structured = self._asks_for_json(model)
                wanted = self.prompts.form(form, structured=structured, alone=cut_off)
                messages = repair_conversation(calls[-1].messages, self.prompts, error, wanted)
                again = self._call(question, model, messages, len(replies))
                calls.append(replace(again, schema=value_alone(again.schema)) if cut_off else again)
                replies.append(await send(calls[-1]))
            else:
                turn = self._turn(id, question, replies, content, value, model.label)
                self.publish_turn(turn)
                warnings = [*_warnings(question, content, calls, replies)]
                warnings += _warnings_of_tools(question, turn)
                return Answer(turn, (*model.warnings.values(), *warnings), replies[-1].tokens)

    def _turn(
        self,
        id: str,
        question: Question,
        replies: list[Reply],
        content: str,
        value: Value,
        model: str,
    ) -> Turn:
        """Make the turn of the last reply with the usage of all replies, as repairs cost too."""
        order = self.turn_ids.order
        who = {"id": id, "round": question.round, "agent": question.agent, "role": question.role}
        # Values refer to the task's order of the answers. Words refer to the order that the agent
        # was shown.
        words = {"content": content, "value": swapped(value) if order == 2 else value}
        # A recorded reply names the model that wrote it, which may differ from the current one.
        usages = [reply.usage for reply in replies]
        if question.looked_up is not None:
            usages = [*question.looked_up.usages, *usages]
        took = {"model": replies[-1].model or model, **total_usage(usages).flat()}
        turn = cast("Turn", {**who, **words, **took})
        if question.looked_up is not None:
            evidence = question.looked_up.evidence
            turn["evidence"] = evidence
            turn["citations"] = citations_of(content, evidence, _evidence_shown(question.prompt))
        if scale := question.form.scale:
            turn["scale"] = list(scale)
        if order is not None:
            turn["order"] = order
        return turn

    def _first_call(self, question: Question, model: LoadedModel) -> Call:
        messages = self._messages(question, model)
        # The offline judge is not a language model: it finds its texts by their fences.
        if self.settings.fences == "on" or isinstance(model.chat, OfflineJudge):
            return self._call(question, model, messages)
        bare = replace(question, prompt=question.prompt.without_fences())
        return replace(self._call(bare, model, self._messages(bare, model)), fenced=messages)

    def _call(
        self,
        question: Question,
        model: LoadedModel,
        messages: Sequence[BaseMessage],
        repairs: int = 0,
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
        # Check again, because a caller may have edited the task in the state of a thread.
        check_media(media)
        attached = self.prompts.render("shared/attached", names=list(media))
        # Media come before the text, as providers advise: they are the same for all agents, so a
        # prefix cache can store them.
        content: list[str | dict[str, Any]] = [*model.sent(media), text_block(user)]
        return [SystemMessage(f"{system}\n\n{attached}"), HumanMessage(content)]

    def _asks_for_json(self, model: LoadedModel) -> bool:
        return self.settings.structured == "auto" and model.form != "text"

    def _model_key(self, role: str, agent: str | None) -> str:
        return model_key(self.models, role, agent)


def without_models(transcript: Sequence[Turn]) -> AgentRuntime[Settings]:
    """Return the runtime of a node that does not call a model but streams and numbers its turns."""
    return AgentRuntime(
        Settings(), Prompts.bundled(), {}, get_runtime().stream_writer, TurnIds(transcript)
    )


def check_calls_tools(label: str, role: str, can: bool) -> None:
    """Check that the model of a role can be offered tools.

    Raises:
        UsageError: it cannot.
    """
    if not can:
        raise UsageError(
            f"juror_tools: the {role}'s model {label} cannot call tools; choose another model for "
            "it, or leave juror_tools out"
        )


def model_key(models: Container[str], role: str, agent: str | None) -> str:
    """Return the key of an agent's model: its own, its role's, or ``"*"``.

    Raises:
        KeyError: there is no model for it, and none for all.
    """
    # In a cross-examination, an advocate keeps its model.
    speaker = agent and agent.removesuffix("_asks").removesuffix("_answers")
    for key in (agent, speaker, role, "*"):
        if key is not None and key in models:
            return key
    raise KeyError(f"no model for {role}, and none for all")


def _evidence_shown(prompt: Prompt) -> list[str]:
    """Return the numbers of the evidence in a prompt, also of evidence that other agents cite."""
    labels = (section.label for section in fenced_sections(prompt.shared))
    return [label.removeprefix("evidence ") for label in labels if label.startswith("evidence E")]


def _warnings_of_tools(question: Question, turn: Turn) -> Iterator[str]:
    """Yield the warnings about an agent's tool calls, and about what its reply cites of them."""
    if question.looked_up is None:
        return
    who = question.who
    evidence = question.looked_up.evidence
    citations = turn["citations"]
    yield from question.looked_up.warnings
    yield from tool_warnings(who, evidence)
    if citations["unknown"]:
        yield UNKNOWN_EVIDENCE.of(who, ids=", ".join(citations["unknown"]))
    if evidence and len(citations["uncited"]) == len(evidence):
        yield UNCITED.of(who, results=len(evidence))


def _text_of(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(message.text for message in messages)


def _knowing(question: Question, call: Call) -> OutputSchema:
    """Return the form with the texts that the agent was shown, which are not values if repeated."""
    shown = Shown.in_prompt(_text_of(call.marked), question.agent)
    return replace(question.form, shown=shown)


async def _read(form: OutputSchema, reply: Reply) -> tuple[str, Value]:
    """Read a reply as ``read`` does; read a long one in a thread, so that other calls continue."""
    if len(reply.text) > LONGEST_READ_WHOLE:
        return await asyncio.to_thread(read, form, reply)
    return read(form, reply)


def read(form: OutputSchema, reply: Reply) -> tuple[str, Value]:
    """Read the text and the value of a reply; a refused or truncated reply is never read.

    Raises:
        ReplyError: the reply contains no usable value.
    """
    if reply.refused or reply.cut_off:
        answer = without_reasoning(reply.text)
        if reply.refused:
            fault: ReplyFault = "filtered" if reply.filtered else "refused"
            raise ReplyError(reply.problem or "The reply is a refusal.", answer, fault)
        if not form.is_whole(answer):
            raise ReplyError(
                reply.problem or "The reply was cut off by the length limit.", answer, "cut_off"
            )
    if reply.problem and not reply.text:
        raise ReplyError(reply.problem, "", "missing")
    if reply.rule is not None:
        form = replace(form, rule=reply.rule)
    content, value = form.read(reply.text, reply.fields)
    return (f"{content.rstrip()} {CUT_OFF}" if _is_half_a_speech(form, reply) else content), value


CUT_OFF = "[cut off]"
"""Marks the end of a speech that reached its length limit."""


def _is_half_a_speech(form: OutputSchema, reply: Reply) -> bool:
    return reply.cut_off and isinstance(form, TextSchema)


def _warnings(
    question: Question, content: str, calls: Sequence[Call], replies: Sequence[Reply]
) -> Iterator[str]:
    """Yield the warnings about an agent's turn, given its calls and their replies."""
    who = question.who
    if len(replies) > 1:
        yield ASKED_AGAIN.of(who, times=len(replies) - 1)
    if _is_half_a_speech(question.form, replies[-1]):
        yield SPEECH_CUT_OFF.of(who)
    yield from copied_words(who, content, _text_of(calls[0].marked))
    for call, reply in zip(calls, replies, strict=True):
        yield from _prompt_warning(who, call, reply)


def _prompt_warning(who: str, call: Call, reply: Reply) -> Iterator[str]:
    """Yield a warning if the server counted far fewer tokens than the prompt must have.

    The server may have truncated the prompt.
    """
    counted = reply.usage.input_tokens
    least = max(_LONG_PROMPT, counted * _MOST_CHARACTERS + 1)
    if counted and sum(len(message.text) for message in call.messages) >= least:
        # Several blanks may be one token.
        sent = len(" ".join(_text_of(call.messages).split()))
        if sent >= least:
            yield PROMPT_CUT.of(who, counted=counted, sent=sent)


_MOST_CHARACTERS = 12
_LONG_PROMPT = 8000
"""The most characters per token (three times English), and the shortest prompt that is checked."""


def repair_conversation(
    asked: Sequence[BaseMessage], prompts: Prompts, error: ReplyError, form: str
) -> list[BaseMessage]:
    """Return the conversation that requests a reply again; ``form`` describes the reply's form.

    A truncated reply is not sent back: a model in a loop would continue the loop, which may fill
    its context. No placeholder replaces it, because small models repeat the placeholder. Instead,
    the request for the value alone is added to the message that the model answered.
    """
    cut_off = error.fault == "cut_off"
    request = prompts.render("shared/repair", problem=error.problem, form=form, cut_off=cut_off)
    # Some providers refuse an assistant message without text, and successive messages of one role.
    if cut_off:
        return [*asked[:-1], with_text(asked[-1], f"{asked[-1].text}\n\n{request}")]
    return [*asked, AIMessage(error.reply or "(no text)"), HumanMessage(request)]


def value_alone(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a reply's schema without the fields for prose, if the remaining fields are enough.

    >>> fields = {"reasoning": {"type": "string"}, "score": {"type": "number"}}
    >>> value_alone({"title": "score_reply", "properties": fields})["properties"]
    {'score': {'type': 'number'}}
    """
    if schema is None:
        return None
    fields = schema["properties"]
    kept = {
        n: about for n, about in fields.items() if about.get("type") != "string" or "enum" in about
    }
    # A flag alone is not a critique: an objection needs words.
    if all(about.get("type") == "boolean" for about in kept.values()):
        brief = {
            name: {**about, "maxLength": _BRIEF}
            for name, about in fields.items()
            if name not in kept
        }
        return {**schema, "properties": {**fields, **brief}}
    return {**schema, "properties": kept, "required": list(kept)}


_BRIEF = 500
"""A number of characters slightly above the 60 words that a repair request asks for."""
