"""Convert attachments of evaluators (LangSmith and openevals forms) to content blocks."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from ...state.checked import shortened
from ...state.errors import UsageError
from ...state.media import MOST_MEDIA, Media, media_fault

_AUDIO_FORMATS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
}


def add_attachments(given: Any, media: Media) -> str:
    """Add attachments to the images and files of a task, and return a text that names each of them.

    Args:
        given: an address, a content block, a dict with ``mime_type`` and ``data`` (openevals), or a
            list of these. Also LangSmith's dict of attachments by name, each with ``mime_type`` and
            ``reader``.
        media: receives the attachments, under the names that the text uses.

    Raises:
        UsageError: an attachment has another form, or a type that models cannot be shown.

    >>> media = {}
    >>> add_attachments("https://example.org/cat.png", media)
    'Attached: [image 1]'
    >>> media["[image 1]"]["type"]
    'image_url'
    """
    names: list[str] = []
    texts: list[str] = []
    for where, attachment in _each(given):
        block = _block(attachment, where)
        if isinstance(block, str):
            texts.append(f"{where}:\n{block}")
            continue
        if fault := media_fault(block):
            raise UsageError(f"{where} cannot be shown: {fault}")
        if len(media) >= MOST_MEDIA:
            raise UsageError(
                f"{where} cannot be shown: a task has at most {MOST_MEDIA} images and files"
            )
        kind = (
            "image" if "image" in block["type"] else "audio" if "audio" in block["type"] else "file"
        )
        known = next((name for name, other in media.items() if other == block), None)
        name = known or f"[{kind} {len(media) + 1}]"
        media[name] = block
        names.append(name)
    attached = [f"Attached: {', '.join(names)}"] if names else []
    return "\n\n".join([*attached, *texts])


def _each(given: Any) -> Iterator[tuple[str, Any]]:
    """Yield each attachment with its name for error messages."""
    if isinstance(given, list | tuple):
        yield from ((f"attachments[{place}]", attachment) for place, attachment in enumerate(given))
    elif isinstance(given, Mapping) and not {"type", "mime_type", "data"} & given.keys():
        yield from ((f"attachments.{name}", attachment) for name, attachment in given.items())
    else:
        yield "attachments", given


def _block(attachment: Any, where: str) -> dict[str, Any] | str:
    """Return an attachment as a content block, or a text attachment as its text."""
    if isinstance(attachment, str):
        return {"type": "image_url", "image_url": {"url": attachment}}
    if not isinstance(attachment, Mapping):
        raise UsageError(
            f"{where} must be an address, a content block, or a dict with mime_type and data, "
            f"got {shortened(attachment)}"
        )
    if isinstance(attachment.get("type"), str):
        return dict(attachment)
    kind = str(attachment.get("mime_type") or "").lower().strip()
    data = attachment.get("data")
    if (
        kind.startswith("image/")
        and isinstance(data, str)
        and data.startswith(("http://", "https://"))
    ):
        return {"type": "image_url", "image_url": {"url": data}}
    content = _base64(attachment, where)
    if kind.startswith("text/") or kind == "application/json":
        try:
            return base64.b64decode(content).decode("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{where} ({kind}) is not UTF-8 text: {error.reason}") from error
    return _media_block(kind, content, str(attachment.get("name") or "attachment.pdf"), where)


def _media_block(kind: str, content: str, file_name: str, where: str) -> dict[str, Any]:
    """Return the content block of an image, a PDF file or audio."""
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{content}"}}
    if kind == "application/pdf":
        return {
            "type": "file",
            "file": {"filename": file_name, "file_data": f"data:{kind};base64,{content}"},
        }
    if kind in _AUDIO_FORMATS:
        return {
            "type": "input_audio",
            "input_audio": {"data": content, "format": _AUDIO_FORMATS[kind]},
        }
    raise UsageError(
        f"{where} has the type {kind or 'unknown'}, but a judge is shown images, PDF files, "
        "audio (mp3, wav) and texts: leave it out, or waive it with create_judge(..., "
        'ignore=["attachments"])'
    )


def _base64(attachment: Mapping[str, Any], where: str) -> str:
    """Return the content of an attachment as base64."""
    data = attachment.get("data")
    reader = attachment.get("reader")
    if data is None and reader is not None and hasattr(reader, "read"):
        reader.seek(0)
        data = reader.read()
    if isinstance(data, bytes):
        return base64.b64encode(data).decode()
    if not isinstance(data, str) or not data:
        raise UsageError(f"{where} has no content: it needs data, as bytes or base64, or a reader")
    return data.partition(",")[2] if data.startswith("data:") else data
