"""Send images and files along with a prompt, as LangChain's content blocks, to models that take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from ...state.errors import UsageError
from ...state.media import Media
from ..offline import OfflineJudge

_INPUTS = {"image": "image_inputs", "audio": "audio_inputs", "video": "video_inputs", "file": "pdf_inputs"}
"""What LangChain's profile of a model says whether it takes, by the type of a content block."""


def content_blocks(media: Media, chat: BaseChatModel, label: str) -> list[dict[str, Any]]:
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
            problem = f"{label} cannot be shown {name}, which is part of what is judged"
            raise UsageError(f"{problem}: choose a model that takes {kind}s, or describe it in words")
        blocks.append(block)
    return blocks


def text_block(text: str) -> dict[str, Any]:
    """Return a text as a content block."""
    return {"type": "text", "text": text}


def with_text(message: BaseMessage, text: str) -> BaseMessage:
    """Return a message with another text, and all that is attached to it."""
    content = [*attached(message), text_block(text)] if isinstance(message.content, list) else text
    return message.model_copy(update={"content": content})


def attached(message: BaseMessage) -> Iterator[dict[str, Any]]:
    """Yield what is attached to a message."""
    blocks = message.content if isinstance(message.content, list) else ()
    return (block for block in blocks if isinstance(block, dict) and block.get("type") != "text")
