"""A gate for an agent's final answers: a judge returns answers that score too low.

    agent --final answer--> judge --good enough--> end
      ^                        |
      +------- objection ------+   at most ``tries`` answers; then the gate ends as its owner chose

The gate is middleware for ``langchain.agents.create_agent``. The judge's graph is a sub-graph of
the agent's graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, get_args

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import hook_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ...graphs.engine.given_graphs import judges_of
from ...graphs.engine.nested import nested_judge_node
from ...graphs.wrappers.refine import (
    Try,
    check_tries,
    check_until,
    objections,
    slot_of,
    softly,
)
from ...state.conversations import Entry, before_last_answers, read_conversation
from ...state.errors import (
    AnswerRejectedError,
    LimitError,
    ModelCallError,
    ReplyError,
    UsageError,
)
from ...state.graph_state import append
from ...state.media import Media
from ..journal.records import JournalError
from .gate_options import AfterTries, OnError, OnReject, Rated, TakesGateOptions
from .judge import AsyncJudge, Judge, create_judge

OBJECTOR = "judge"
"""The message name that marks objections in the conversation."""

_NOT_AN_ANSWER = re.compile(
    r"""
    Model\ call\ limits\ exceeded:\                   # ModelCallLimitMiddleware
    | (?:Tool|'[^']*'\ tool)\ call\ limit\ reached:\  # ToolCallLimitMiddleware
    | Model\ call\ failed\ after\ \d+\ attempts?\     # ModelRetryMiddleware
    """,
    re.VERBOSE,
)
"""The beginnings of messages that LangChain's middleware puts in place of a model's answer."""

FAILURES = (ReplyError, ModelCallError, LimitError, JournalError)
"""The errors of a judge that ``on_error`` is about; the others are the caller's."""

_OF_CALLS = ("normalize", "output_schema", "variable_mapping", "ignore")
"""Options of ``create_judge`` for the arguments and the result of a call, which a gate lacks."""


class GateState(AgentState[Any]):
    """An agent's state with every final answer since the last input, with its verdict."""

    judged: NotRequired[Annotated[list[Try], append]]


@dataclass(frozen=True)
class _Ends:
    """The end of a gate that rejects an answer, or whose judge fails; see ``AnswerGate``."""

    on_reject: OnReject
    after_tries: AfterTries
    on_error: OnError
    replacement: str | Callable[[Try], str] | None

    def __post_init__(self) -> None:
        for name, known in (
            ("on_reject", OnReject),
            ("after_tries", AfterTries),
            ("on_error", OnError),
        ):
            if (value := getattr(self, name)) not in get_args(known):
                raise UsageError(
                    f"{name} must be one of {', '.join(get_args(known))}, got {value!r}"
                )
        if self.after_tries != "raise" and self.on_reject != "retry":
            raise UsageError(
                f"after_tries={self.after_tries!r} belongs to on_reject='retry', not to "
                f"{self.on_reject!r}: leave it out"
            )
        if ("replace" in (self.on_reject, self.after_tries)) != (self.replacement is not None):
            raise UsageError(
                "replacement is the text instead of a rejected answer: give it together with "
                "on_reject='replace' or after_tries='replace', and only then"
            )


class AnswerGate(TakesGateOptions, AgentMiddleware[GateState, Any, Any]):
    """Middleware that has a judge rate an agent's final answer and returns objections to the agent.

    The agent's state lists every answer with its verdict under ``judged``.

    The judge reads the conversation before the answer, including tool calls and their results, and
    rates the answer. It sees messages only: neither the agent's system prompt nor the model's
    reasoning. The gate refuses content that the judge's model cannot be shown, because the judge
    would rate the answer without it. A message that is no answer is not judged: a tool's result, an
    empty message, and the messages of LangChain's middleware about limits and failed calls.

    Args:
        judge: a protocol's name or graph, compiled or not, or a judge from ``create_judge`` with an
            aspect. It needs a model; ``model="offline"`` asks for the judge without one.
        aspect: the aspect on which answers are rated; a judge from ``create_judge`` has its own.
        **options: settings of the protocol and other options of ``create_judge``, such as
            ``model``, ``n=2``, ``max_calls`` or ``timeout``, and those below.

    Keyword Args:
        until: the lowest score that is good enough, on the aspect's scale. Default: 4.
        tries: the maximum number of answers, for ``on_reject="retry"``. Default: 3.
        on_reject: what becomes of an answer that scores too low. ``retry`` (default): the agent
            gets the objections and answers again. ``replace``: ``replacement`` stands instead.
            ``raise``: an ``AnswerRejectedError``. ``pass``: the answer stands.
        after_tries: what becomes of the last answer if all tries score too low: ``raise``
            (default), ``replace``, or ``pass``: the answer with the highest score stands.
        on_error: ``raise`` (default) the error of a judge that fails or reaches a limit, or
            ``pass`` the answer; ``judged`` then contains the error.
        replacement: the text instead of a rejected answer, or a function of the rejected ``Try``.

    Raises:
        UsageError: an unknown judge, aspect or option, a judge without a model, a judge that does
            not rate texts, or fewer tries than one; in a run, an image, audio or a file in the
            conversation that the judge's model cannot read.
        AnswerRejectedError: in a run, an answer is rejected.
        ReplyError, ModelCallError, LimitError: in a run, the judge fails.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeListChatModel
    >>> model = FakeListChatModel(responses=["No idea, sorry.", "The tide turned at noon."])
    >>> gate = AnswerGate("single", "consistency", model="offline")
    >>> agent = create_agent(model, middleware=[gate])
    >>> state = agent.invoke({"messages": [("user", "Repeat: the tide turned at noon.")]})
    >>> state["messages"][-1].text, [answer["verdict"]["score"] >= 4 for answer in state["judged"]]
    ('The tide turned at noon.', [False, True])
    """

    state_schema = GateState

    def _set_up(
        self,
        judge: Any,
        aspect: Rated,
        *,
        until: float = 4,
        tries: int = 3,
        on_reject: OnReject = "retry",
        after_tries: AfterTries = "raise",
        on_error: OnError = "raise",
        replacement: str | Callable[[Try], str] | None = None,
        **options: Any,
    ) -> None:
        check_tries(tries)
        self._until = until
        self._tries = tries
        self._ends = _Ends(on_reject, after_tries, on_error, replacement)
        self._made = _judge_of(judge, aspect, options)
        if (rated := self._made.aspect) is None:
            raise UsageError(
                "an answer is rated, but this judge compares two: name an aspect, such as "
                'aspect="consistency"'
            )
        check_until(until, rated)
        slot = slot_of(self._made)
        slot.rubric = rated
        node = nested_judge_node(slot, self._input, self._decided, once=True)
        self._judge = node if on_error == "raise" else softly(node, _failed, FAILURES)

    @property
    def judge(self) -> Judge:
        """The judge, with its ``usage``."""
        return self._made

    def before_agent(self, state: GateState, runtime: Any) -> dict[str, Any]:
        """Clear the verdicts on answers to an earlier input of the conversation.

        Content that the judge cannot be shown is refused here, before the agent's model is called.
        """
        _heard(state["messages"], {})
        return {"judged": None}

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: GateState, runtime: Any) -> dict[str, Any] | None:
        """Judge the final answer; if it scores too low, have the agent answer again."""
        return self._judge.invoke(state) if _is_answered(state) else None

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: GateState, runtime: Any) -> dict[str, Any] | None:
        """Judge the final answer as ``after_agent`` does."""
        return await self._judge.ainvoke(state) if _is_answered(state) else None

    def _input(self, state: GateState) -> dict[str, Any]:
        media: Media = {}
        asked, (answer,) = before_last_answers(_heard(state["messages"], media))
        task = self._made.task(source=asked, candidate=answer, media=media)
        return {"task": task.model_dump(mode="json")}

    def _decided(self, state: GateState, outcome: Any) -> dict[str, Any]:
        verdict = outcome["verdict"]
        done = Try(candidate=str(state["messages"][-1].text), verdict=verdict, error=None)
        judged = [*(state.get("judged") or ()), done]
        if verdict["score"] >= self._until:
            return {"judged": [done]}
        end: str = self._ends.on_reject
        if end == "retry":
            if len(judged) < self._tries:
                why = objections(verdict, outcome["transcript"])
                words = f"Your answer is not good enough yet. Give a whole new one that meets this:\n\n{why}"
                return {
                    "judged": [done],
                    "messages": [HumanMessage(words, name=OBJECTOR)],
                    "jump_to": "model",
                }
            end = self._ends.after_tries
        if end == "raise":
            scores = ", ".join(
                f"{attempt['verdict']['score']:g}" for attempt in judged if attempt["verdict"]
            )
            raise AnswerRejectedError(
                f"the judge rejected the agent's answer (scores: {scores}; needed: "
                f"{self._until:g} or more): {verdict.get('explanation', '')}",
                judged,
            )
        if end == "replace":
            new = self._ends.replacement
            text = new(done) if callable(new) else str(new)
            return {"judged": [done], "messages": [AIMessage(text)]}
        # The last message counts, so repeat an earlier answer if it scored better.
        best = max(reversed(judged), key=lambda attempt: (attempt["verdict"] or verdict)["score"])
        return {
            "judged": [done],
            "messages": [] if best is done else [AIMessage(best["candidate"])],
        }


def _judge_of(judge: Any, aspect: Rated, options: Mapping[str, Any]) -> Judge:
    """Return the judge of a gate.

    Raises:
        UsageError: an option that a gate, or this judge, does not take; or no model.
    """
    if unused := [name for name in _OF_CALLS if name in options]:
        raise UsageError(
            f"{unused[0]} is for calls of a judge; a gate compares the score on the aspect's scale"
        )
    if isinstance(judge, AsyncJudge):
        judge = judge.judge
    if isinstance(judge, Judge):
        if given := [*(["aspect"] if aspect is not None else []), *options]:
            raise UsageError(
                f"{given[0]}: a judge from create_judge has its own; give it to create_judge"
            )
        made = judge
    else:
        make: Callable[..., Judge] = create_judge
        made = make(judge, aspect=aspect, **options)
    if unnamed := [name for name, bound in judges_of(made.graph).items() if not bound.has_models]:
        where = f" ({unnamed[0]})" if unnamed[0] else ""
        raise UsageError(
            f"the gate's judge {made.name}{where} has no model, so word counts would decide about "
            'answers: name one, such as model="openai:gpt-4o-mini", or ask for word counts with '
            'model="offline"'
        )
    return made


def _failed(state: GateState, error: Exception) -> dict[str, Any]:
    """Let the answer stand, and store the error."""
    answer = str(state["messages"][-1].text)
    return {"judged": [Try(candidate=answer, verdict=None, error=str(error))]}


def _is_answered(state: GateState) -> bool:
    """Return whether the conversation ends with an answer to an input."""
    entries = _heard(state["messages"], {})
    if not entries or not entries[-1].answers or not any(entry.asks for entry in entries):
        return False
    last = state["messages"][-1]
    # The metadata of a model's reply tells it from a message that middleware has written.
    by_model = bool(last.response_metadata)
    return by_model or _NOT_AN_ANSWER.match(str(last.text)) is None


def _heard(messages: Sequence[AnyMessage], media: Media) -> list[Entry]:
    """Return the conversation's entries, without objections and the answers they refer to.

    Raises:
        UsageError: a message contains something that the judge cannot be shown.
    """
    if not messages:
        return []
    remedy = "have it put in words, or use an agent without the gate for it"
    entries = read_conversation(messages, "messages", remedy, media)
    objections = {entry.message for entry in entries if entry.asks and entry.name == OBJECTOR}
    return [entry for entry in entries if not {entry.message, entry.message + 1} & objections]
