"""A gate for the final answer of an agent: a judge rates it, and below the bar the objections go back to the agent.

    agent --final answer--> judge --good enough--> end
      ^                        |
      +------- objection ------+   at most ``tries`` answers; then the best of them stands

It is middleware for ``langchain.agents.create_agent``, with the judge's graph as a sub-graph of the agent's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import hook_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ..state.aspects import Aspect
from ..state.conversations import Entry, before_last_answers, read_conversation
from ..state.errors import UsageError
from ..state.graph_state import append
from ..state.media import Media
from ..state.tasks import ScoreTask, parse_task
from .nested import nested_judge_node
from .refine import Try, check_tries, check_until, objections, slot_of, softly

OBJECTOR = "judge"
"""The name under which objections stand in the conversation."""


class GateState(AgentState[Any]):
    """The state of an agent with a gate: every final answer since the last input, with its verdict."""

    judged: NotRequired[Annotated[list[Try], append]]


class AnswerGate(AgentMiddleware[GateState, Any, Any]):
    """Has an agent's final answer judged, and sent back with the objections while it is below the bar.

    The agent's state has every answer with its verdict, in order, under ``judged``. After the last try the best answer
    stands. Where the judge fails, the answer stands, and ``judged`` says with what error.

    The judge is shown the conversation before the answer, the calls of tools with their results among it, and rates the
    answer. It is not shown what is no message, as the agent's system prompt, nor how the model reasoned. What the
    judge's model cannot be shown is refused, as the answer would be judged without it.

    Args:
        judge: a protocol's name or graph, compiled or not, or what ``create_judge`` made with an aspect.
        aspect: what answers are rated on; a judge of ``create_judge`` has its own.
        until: the score that is good enough, on the aspect's scale.
        tries: how many answers there may be.

    Raises:
        UsageError: no such judge or aspect, a judge that rates no texts, or fewer tries than one; in a run, an image,
            audio or a file in the conversation.

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
        self._until, self._tries = until, tries
        # A judge of ``create_judge`` makes its tasks itself.
        self._made_by = getattr(judge, "task", None)
        self._aspect = aspect
        rated = self._task(source="-", candidate="-").aspect
        check_until(until, rated)
        slot = slot_of(judge)
        slot.rubric = rated
        self._judge = softly(nested_judge_node(slot, self._input, self._decided, once=True), self._failed)

    def before_agent(self, state: GateState, runtime: Any) -> dict[str, Any]:
        """Begin anew: what was judged in an earlier turn of the conversation counts no more.

        What the judge could not see is refused here already, before the agent's model is asked.
        """
        _heard(state["messages"], {})
        return {"judged": None}

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: GateState, runtime: Any) -> dict[str, Any] | None:
        """Judge the final answer; below the bar have the agent answer again."""
        return self._judge.invoke(state) if _is_answered(state) else None

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: GateState, runtime: Any) -> dict[str, Any] | None:
        """Judge the final answer as ``after_agent`` does."""
        return await self._judge.ainvoke(state) if _is_answered(state) else None

    def _input(self, state: GateState) -> dict[str, Any]:
        media: Media = {}
        asked, (answer,) = before_last_answers(_heard(state["messages"], media))
        return {"task": self._task(source=asked, candidate=answer, media=media).model_dump(mode="json")}

    def _task(self, **texts: Any) -> ScoreTask:
        given = {"kind": "score", "aspect": self._aspect, **texts}
        task = self._made_by(**texts) if self._made_by else parse_task(given)
        if not isinstance(task, ScoreTask):
            raise UsageError("an answer is rated, but this judge compares two: create it with an aspect")
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
            return {"judged": [done], "messages": [HumanMessage(words, name=OBJECTOR)], "jump_to": "model"}
        # An earlier answer that was better is given again, as the last message is what counts.
        best = max(reversed(judged), key=lambda attempt: (attempt["verdict"] or verdict)["score"])
        return {"judged": [done], "messages": [] if best is done else [AIMessage(best["candidate"])]}

    def _failed(self, state: GateState, error: Exception) -> dict[str, Any]:
        return {"judged": [Try(candidate=str(state["messages"][-1].text), verdict=None, error=str(error))]}


def _is_answered(state: GateState) -> bool:
    """Tell whether the conversation ends with an answer to something."""
    entries = _heard(state["messages"], {})
    return bool(entries) and entries[-1].answers and any(entry.asks for entry in entries)


def _heard(messages: Sequence[AnyMessage], media: Media) -> list[Entry]:
    """Return what happened in the conversation, without objections and the answers that they are to.

    Raises:
        UsageError: a message holds what a judge would not see.
    """
    if not messages:
        return []
    remedy = "have it put in words, or use an agent without the gate for it"
    entries = read_conversation(messages, "messages", remedy, media)
    objections = {entry.message for entry in entries if entry.asks and entry.name == OBJECTOR}
    return [entry for entry in entries if not {entry.message, entry.message + 1} & objections]
