"""Say what of a message a judge would not see: judges are shown text, and messages can hold much else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from ..state.errors import UsageError

_PARTS = {
    "an image": ("image",),
    "audio": ("audio",),
    "a video": ("video",),
    "reasoning": ("reasoning", "thinking"),
    "the result of a tool call": ("result", "call_output"),
    "a call of a tool": ("tool", "call"),
    "a file": ("file", "document", "text-plain"),
}
"""What a part is by a word in its type. Providers' types differ: ``image``, ``image_url``, ``input_image``."""

_BESIDE_AN_ANSWER = ("reasoning", "the result of a tool call", "a call of a tool")
"""What models put into the message of an answer, and what no reader of the answer is shown."""

# Where messages hold such things beside their content: OpenAI's, Ollama's and DeepSeek's keys.
_KEYS_BESIDE = ("audio", "images", "refusal", "reasoning", "reasoning_content")


def refuse_unseen(messages: Iterable[tuple[str, BaseMessage]], remedy: str, answers: bool = False) -> None:
    """Refuse messages that hold what a judge would not see.

    Args:
        messages: each with the name that the error has for it, such as ``outputs[2]``.
        remedy: what to do instead.
        answers: whether only what was asked and answered is judged, as in an agent's conversation: reasoning, and what
            a provider's own tools did for an answer, are then not missed.

    Raises:
        UsageError: names each message and what it holds.
    """
    parts = [f"{name} {part}" for name, message in messages for part in unseen_parts(message, answers)]
    if parts:
        more = f"; and {len(parts) - 5} more" if len(parts) > 5 else ""
        raise UsageError(
            f"{'; '.join(parts[:5])}{more}. A judge is shown text and nothing else, so that it would judge without "
            f"seeing this: {remedy}"
        )


def unseen_parts(message: BaseMessage, answers: bool = False) -> list[str]:
    """Return what of a message is no text, as predicates: ``calls the tool 'search'``, ``holds an image (image_url)``.

    >>> unseen_parts(HumanMessage([{"type": "text", "text": "What is this?"}, {"type": "image", "url": "..."}]))
    ['holds an image (image)']
    """
    if isinstance(message, ToolMessage | FunctionMessage):
        return ["is the result of a tool call"]
    if not isinstance(message, HumanMessage | AIMessage | SystemMessage):
        return [f"is a message of the role {getattr(message, 'role', message.type)!r}"]
    beside = message.additional_kwargs
    calls = _calls(message)
    if not answers:
        # LangChain keeps these beside the content when it reads a message from a dict.
        calls += getattr(message, "invalid_tool_calls", ()) or beside.get("invalid_tool_calls") or ()
    blocks = message.content if isinstance(message.content, list) else []
    types = [_type_of(block) for block in blocks if not _is_text(block)]
    types += [key for key in _KEYS_BESIDE if beside.get(key)]
    named = [(_part(name), name) for name in types]
    # Anthropic's content repeats the calls of tools, of which the message has a list.
    aside = _BESIDE_AN_ANSWER if answers else ("a call of a tool",) if calls else ()
    return [
        *(f"calls the tool {call.get('name')!r}" for call in calls),
        *dict.fromkeys(f"holds {part} ({name})" for part, name in named if part not in aside),
    ]


def is_answer(message: BaseMessage) -> bool:
    """Whether a message is what a model answers a person, in words or otherwise, and not a call of a tool."""
    if not isinstance(message, AIMessage) or _calls(message):
        return False
    return bool(message.text.strip() or unseen_parts(message, answers=True))


def _calls(message: BaseMessage) -> list[Any]:
    """Return the calls of tools in a message, OpenAI's former way of them among them."""
    former = message.additional_kwargs.get("function_call")
    return [*(getattr(message, "tool_calls", None) or ()), *([former] if former else ())]


def _is_text(block: str | dict[str, Any]) -> bool:
    return isinstance(block, str) or (block.get("type") == "text" and isinstance(block.get("text"), str))


def _type_of(block: str | dict[str, Any]) -> str:
    """Return the type of a content block; Bedrock's have none, and one key that says it."""
    if isinstance(block, str):
        return "text"
    return str(block.get("type") or next(iter(block), "empty"))


def _part(name: str) -> str:
    words = name.casefold()
    kinds = (part for part, marks in _PARTS.items() if any(mark in words for mark in marks))
    return next(kinds, "a part that is no text")
