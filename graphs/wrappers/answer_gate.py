"""A gate for an agent's final answers: a judge returns answers that score too low.

    agent --final answer--> judge --good enough--> end
      ^                        |
      +------- objection ------+   at most ``tries`` answers; then the best of them stands

The gate is middleware for ``langchain.agents.create_agent``. The judge's graph is a sub-graph of
the agent's graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import hook_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ...state.aspects import Aspect
from ...state.conversations import Entry, before_last_answers, read_conversation
from ...state.errors import UsageError
from ...state.graph_state import append
from ...state.media import Media
from ...state.tasks import ScoreTask, parse_task
from ..engine.nested import nested_judge_node
from .refine import Try, check_tries, check_until, objections, slot_of, softly

OBJECTOR = "judge"
"""The message name that marks objections in the conversation."""


class GateState(AgentState[Any]):
    """An agent's state with every final answer since the last input, with its verdict."""

    judged: NotRequired[Annotated[list[Try], append]]


class AnswerGate(AgentMiddleware[GateState, Any, Any]):
    """Middleware that has a judge rate an agent's final answer and returns objections to the agent.

    The agent's state lists every answer with its verdict under ``judged``. After the last try, the
    best answer is final. If the judge fails, the answer is final, and ``judged`` contains the
    error.

    The judge reads the conversation before the answer, including tool calls and their results, and
    rates the answer. It sees messages only: neither the agent's system prompt nor the model's
    reasoning. The gate refuses content that the judge's model cannot be shown, because the judge
    would rate the answer without it.

    Args:
        judge: a protocol's name or graph, compiled or not, or a judge from ``create_judge`` with an
            aspect.
        aspect: the aspect on which answers are rated; a judge from ``create_judge`` has its own.
        until: the lowest score that is good enough, on the aspect's scale.
        tries: the maximum number of answers.

    Raises:
        UsageError: an unknown judge or aspect, a judge that does not rate texts, or fewer tries
            than one; in a run, an image, audio or a file in the conversation.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models import FakeListChatModel
    >>> model = FakeListChatModel(responses=["No idea, sorry.", "The tide turned at noon."])
    >>> agent = create_agent(model, middleware=[AnswerGate("single", "consistency")])
    >>> state = agent.invoke({"messages": [("user", "Repeat: the tide turned at noon.")]})
    >>> state["messages"][-1].text, [answer["verdict"]["score"] >= 4 for answer in state["judged"]]
    ('The tide turned at noon.', [False, True])
    """

    state_schema = GateState

    def __init__(
        self,
        judge: Any,
        aspect: str | Aspect | Mapping[str, Any] | None = None,
        until: float = 4,
        tries: int = 3,
    ) -> None:
        super().__init__()
        check_tries(tries)
        self._until = until
        self._tries = tries
        # A judge from ``create_judge`` makes its tasks itself.
        self._made_by = getattr(judge, "task", None)
        self._aspect = aspect
        rated = self._task(source="-", candidate="-").aspect
        check_until(until, rated)
        slot = slot_of(judge)
        slot.rubric = rated
        self._judge = softly(
            nested_judge_node(slot, self._input, self._decided, once=True), self._failed
        )

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
        return {
            "task": self._task(source=asked, candidate=answer, media=media).model_dump(mode="json")
        }

    def _task(self, **texts: Any) -> ScoreTask:
        given = {"kind": "score", "aspect": self._aspect, **texts}
        task = self._made_by(**texts) if self._made_by else parse_task(given)
        if not isinstance(task, ScoreTask):
            raise UsageError(
                "an answer is rated, but this judge compares two: create it with an aspect"
            )
        return task

    def _decided(self, state: GateState, outcome: Any) -> dict[str, Any]:
        verdict = outcome["verdict"]
        done = Try(candidate=str(state["messages"][-1].text), verdict=verdict, error=None)
        judged = [*(state.get("judged") or ()), done]
        if verdict["score"] >= self._until:
            return {"judged": [done]}
        if len(judged) < self._tries:
            why = objections(verdict, outcome["transcript"])
            words = f"Your answer is not good enough yet. Give a whole new one that meets this:\n\n{why}"
            return {
                "judged": [done],
                "messages": [HumanMessage(words, name=OBJECTOR)],
                "jump_to": "model",
            }
        # The last message counts, so repeat an earlier answer if it scored better.
        best = max(reversed(judged), key=lambda attempt: (attempt["verdict"] or verdict)["score"])
        return {
            "judged": [done],
            "messages": [] if best is done else [AIMessage(best["candidate"])],
        }

    def _failed(self, state: GateState, error: Exception) -> dict[str, Any]:
        return {
            "judged": [
                Try(candidate=str(state["messages"][-1].text), verdict=None, error=str(error))
            ]
        }


def _is_answered(state: GateState) -> bool:
    """Return whether the conversation ends with an answer to an input."""
    entries = _heard(state["messages"], {})
    return bool(entries) and entries[-1].answers and any(entry.asks for entry in entries)


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
