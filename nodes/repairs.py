"""Ask again for a reply that could not be read, and notice one that only repeats what it was shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..state.errors import ReplyError
from .prompt_context import Prompts


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
        return [*asked[:-1], HumanMessage(f"{asked[-1].text}\n\n{request}")]
    return [*asked, AIMessage(error.reply or "(no text)"), HumanMessage(request)]


def value_alone(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a reply's schema without the fields for prose, where something else is left that says enough.

    >>> fields = {"reasoning": {"type": "string"}, "score": {"type": "number"}}
    >>> value_alone({"title": "score_reply", "properties": fields})["properties"]
    {'score': {'type': 'number'}}
    """
    if schema is None:
        return None
    kept = {
        name: about
        for name, about in schema["properties"].items()
        if about.get("type") != "string" or "enum" in about
    }
    # A bare flag is no critique: an objection without its words helps nobody.
    if all(about.get("type") == "boolean" for about in kept.values()):
        brief = {
            name: {**about, "maxLength": _BRIEF} if about.get("type") == "string" else about
            for name, about in schema["properties"].items()
        }
        return {**schema, "properties": brief}
    return {**schema, "properties": kept, "required": list(kept)}


_BRIEF = 500
"""Characters, somewhat more than the 60 words that a repair request speaks of."""


def copy_warning(who: str, content: str, shown: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Return a warning where a reply does hardly more than repeat, word for word, what it was shown.

    Args:
        who: the agent and its round.
        content: the text of its reply.
        shown: the conversation up to the reply; it holds the texts, the log and the instructions.
    """
    joined = (" ".join(line.split()) for line in content.splitlines())
    lines = [line for line in joined if len(line) >= _TELLING][:_MOST_LINES]
    length = sum(map(len, lines))
    if length < _LONG:
        return ()
    prompt = " ".join(" ".join(message.text for message in shown).split())
    copied = sum(len(line) for line in lines if line in prompt)
    told = f"{who}: the reply repeats what it was shown, word for word"
    return (told,) if copied >= _SHARE * length else ()


_TELLING, _LONG, _SHARE = 20, 80, 0.9
"""Characters of a line, and of all such lines, below which equal words are no copy; the share that must be copied."""
_MOST_LINES = 200
"""So many lines are looked at, since each is looked for in the whole prompt."""
