"""Define what the pydantic classes share: the text types, and short descriptions in their JSON schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.config import JsonDict
from pydantic_core import CoreSchema, PydanticCustomError


def first_paragraph(schema: JsonDict) -> None:
    """Shorten a schema's description to its first paragraph, which is what a form shows (Studio's, for example).

    >>> schema = {"description": "Rate one text.\\n\\n>>> 1 + 1\\n2"}
    >>> first_paragraph(schema)
    >>> schema
    {'description': 'Rate one text.'}
    """
    schema["description"] = " ".join(str(schema.get("description", "")).split("\n\n")[0].split())


def alternative(schema: JsonDict) -> None:
    """Shorten the description and require ``kind``, by which a class is told from others in a union."""
    # With a default, pydantic's schema has ``kind`` optional, and clients would leave it out.
    first_paragraph(schema)
    required = schema.get("required")
    schema["required"] = ["kind", *(required if isinstance(required, list) else [])]


class Described:
    """Apply ``first_paragraph`` to a class where it is a field's type, as an annotation of that field."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core)
        first_paragraph(handler.resolve_ref_schema(schema))
        return schema


def _encodable(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"not valid Unicode at character {error.start} ({error.reason})") from error
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""A string that can be encoded as UTF-8, and so sent: one without lone surrogates."""


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: spaces, line breaks, and characters without width or mark.

    >>> is_blank(" \\n\\u200b"), is_blank("?")
    (True, False)
    """
    return not any(character.isprintable() and not character.isspace() for character in text)


def _filled(text: str) -> str:
    if is_blank(text):
        raise PydanticCustomError("blank", "is blank")
    return text


FilledText = Annotated[Text, AfterValidator(_filled), Field(json_schema_extra={"minLength": 1})]
"""A text that shows something: a model that is asked about nothing would answer all the same."""

OptionalText = Annotated[
    Text | None, BeforeValidator(lambda text: None if isinstance(text, str) and is_blank(text) else text)
]
"""A text that may be left out, as a form does by sending an empty one."""
