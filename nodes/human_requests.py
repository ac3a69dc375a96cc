"""The form of LangChain's human in the loop for a question to a human.

A pause carries ``action_requests`` and ``review_configs``, as those of LangChain's
``HumanInTheLoopMiddleware`` do, so that agent-chat-ui and Agent Inbox show buttons and fields. The
human answers with a decision:

    approve   the judge's verdict stands
    edit      the fields ``answer``, ``reason`` and ``name``
    respond   an answer as text, such as "3: too kind"

``interrupt`` takes plain answers as well; ``human_answers.py`` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..state.errors import ReplyError
from ..state.tasks import TEXTS, CompareTask, ScoreTask
from .human_answers import HumanAnswer, read_answer

ACTION = "verdict"
"""The name of the action that a human decides on."""

_FIELDS = {"answer": "let it stand", "reason": "", "name": ""}
"""The fields of the form. The first one has the answer that the button "Approve" stands for."""

_DECISIONS = ("approve", "edit", "respond")

# Agent Inbox has its own names for decisions, and sends a list with one of them.
_OF_AGENT_INBOX = {"accept": "approve", "edit": "edit", "response": "respond"}


def request_of(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return LangChain's form (``HITLRequest``) of a question.

    Args:
        question: the question as ``ask_person`` asks it.

    >>> request_of({"question": "Your verdict, please.", "why": [], "task": {}, "log": []})["review_configs"]
    [{'action_name': 'verdict', 'allowed_decisions': ['approve', 'edit', 'respond']}]
    """
    action = {
        "name": ACTION,
        "args": {**_FIELDS},
        # Agent Inbox reads the fields from this key, agent-chat-ui and LangChain from ``args``.
        "arguments": {**_FIELDS},
        "description": _description(question),
    }
    config = {"action_name": ACTION, "allowed_decisions": [*_DECISIONS]}
    return {"action_requests": [action], "review_configs": [config]}


def _description(question: Mapping[str, Any]) -> str:
    """Write a question as Markdown, because chat clients show a human nothing else of it."""
    lines = [question["question"]]
    if problem := question.get("problem"):
        lines.append(f"**Your answer could not be read:** {problem}")
    lines += [f"**Why you are asked:** {why}" for why in question["why"]]
    texts = {name: question["task"].get(name) for name in TEXTS}
    lines += [f"**{_title(name)}**\n{_fenced(text)}" for name, text in texts.items() if text]
    aspect = question["task"].get("aspect")
    if isinstance(aspect, Mapping):
        lines.append(f"**{aspect['name']}**\n{_fenced(aspect['criteria'])}")
    lines += [
        f"**{turn['agent']}, round {turn['round']}**\n{_fenced(turn['content'])}"
        for turn in question["log"]
    ]
    if verdict := question.get("verdict"):
        scores = verdict["score"] if verdict["kind"] == "score" else verdict["scores"]
        winner = f", winner: {verdict['winner']}" if verdict["kind"] == "compare" else ""
        lines.append(f"**The judge's verdict:** {scores}{winner}")
    return "\n\n".join(lines)


def _title(field: str) -> str:
    return field.replace("_", " ").capitalize()


def _fenced(text: str) -> str:
    """Fence a text, so that a chat client neither loads its images nor follows its markup."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def read_reply(reply: Any, task: ScoreTask | CompareTask) -> HumanAnswer:
    """Read a reply to a pause: a decision of a chat client, or an answer as ``read_answer`` takes it.

    Args:
        reply: ``{"decisions": [...]}`` with one decision, a list with one response of Agent Inbox,
            or a plain answer.
        task: the judged task, which gives the kind and the scale.

    Raises:
        ReplyError: the reply is unreadable or off the scale; ``problem`` describes it in a
            sentence.

    >>> task = CompareTask(question="Why?", answer_1="Rain.", answer_2="Snow.")
    >>> edit = {"name": "verdict", "args": {"answer": "2", "reason": "It is true.", "name": "Ann"}}
    >>> read_reply({"decisions": [{"type": "edit", "edited_action": edit}]}, task)
    HumanAnswer(value='2', reason='It is true.', name='Ann')
    >>> read_reply({"decisions": [{"type": "approve"}]}, task)
    HumanAnswer(value=None, reason='', name='')
    """
    if isinstance(reply, Mapping) and "decisions" in reply:
        return _decided(_only(reply, reply["decisions"]), task)
    if isinstance(reply, list | tuple) and reply and isinstance(reply[0], Mapping):
        return _of_agent_inbox(_only(reply, reply), task)
    return read_answer(reply, task)


def _only(reply: Any, decisions: Any) -> Mapping[str, Any]:
    """Return the only decision of a reply."""
    listed = isinstance(decisions, Sequence) and not isinstance(decisions, str)
    if not (listed and len(decisions) == 1 and isinstance(decisions[0], Mapping)):
        raise ReplyError("One decision is needed, as an object with a type.", str(reply))
    if isinstance(reply, Mapping) and (others := sorted(set(reply) - {"decisions"})):
        raise ReplyError(f"The reply has decisions and also {others[0]!r}.", str(reply))
    decision: Mapping[str, Any] = decisions[0]
    return decision


def _decided(decision: Mapping[str, Any], task: ScoreTask | CompareTask) -> HumanAnswer:
    """Read a decision in LangChain's form."""
    kind = decision.get("type")
    taken = {"approve": None, "edit": "edited_action", "respond": "message"}
    if kind not in taken:
        raise ReplyError(
            f"A verdict takes the decisions {', '.join(_DECISIONS)}, not {kind!r}.", str(decision)
        )
    key = taken[kind]
    if others := sorted(set(decision) - {"type", key}, key=str):
        raise ReplyError(f"The decision {kind} does not take {others[0]!r}.", str(decision))
    if key is None:
        return read_answer({"stands": True}, task)
    if kind == "respond":
        return read_answer(decision.get(key), task)
    action = decision.get(key)
    named = isinstance(action, Mapping) and action.get("name", ACTION) == ACTION
    arguments = action.get("args") if isinstance(action, Mapping) else None
    if not (named and isinstance(arguments, Mapping)):
        raise ReplyError(
            f"The decision edit needs edited_action with the name {ACTION} and args.", str(decision)
        )
    return read_answer(arguments, task)


def _of_agent_inbox(response: Mapping[str, Any], task: ScoreTask | CompareTask) -> HumanAnswer:
    """Read a response of Agent Inbox, which has the same content under other names."""
    kind = response.get("type")
    arguments = response.get("args")
    if kind not in _OF_AGENT_INBOX or set(response) - {"type", "args"}:
        raise ReplyError(
            f"A verdict takes the responses {', '.join(_OF_AGENT_INBOX)}, not {kind!r}.",
            str(response),
        )
    if kind == "response":
        return _decided({"type": "respond", "message": arguments}, task)
    if kind == "accept" and not arguments:
        return _decided({"type": "approve"}, task)
    # An accepted action has the fields too; they contain the answer that was offered.
    action = dict(arguments) if isinstance(arguments, Mapping) else {}
    action["name"] = action.pop("action", None)
    return _decided({"type": "edit", "edited_action": action}, task)
