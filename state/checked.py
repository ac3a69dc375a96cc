"""Define the base class, text types and schema descriptions for all caller input.

``Checked`` reports invalid objects in our words and names the valid values.
"""

from __future__ import annotations

import ast
import difflib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails, PydanticCustomError

from .errors import Fault, InputError
from .redaction import redact

_TYPE = re.compile(r"[\[(]|^(float|int|str|constrained-int)$")

_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "must be true or false"),
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "dict_type": "must be an object with a value for each name",
    "model_type": "must be an object with a value for each field",
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
}
"""Messages by pydantic's type of error; other types use pydantic's own message."""


def field_docstrings(cls: type) -> Mapping[str, str]:
    """Return the docstrings of a class's fields, also inherited ones, each on one line.

    Python itself does not store them, and pydantic searches all modules for each class.

    >>> field_docstrings(Checked)["called"]
    'What messages call an object of this class.'
    """
    words: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        file = getattr(sys.modules.get(base.__module__), "__file__", None)
        if file is not None and base is not BaseModel:
            words |= _docstrings_in(file).get(base.__name__, {})
    return words


@cache
def _docstrings_in(file: str) -> Mapping[str, Mapping[str, str]]:
    """Return the field docstrings of all classes in a file; empty if it cannot be read."""
    try:
        module = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (
        Exception
    ):  # packed without its source, or read on a server's event loop, which refuses that
        return {}
    words: dict[str, dict[str, str]] = {}
    for declared in (node for node in ast.walk(module) if isinstance(node, ast.ClassDef)):
        for statement, following in pairwise(declared.body):
            match statement, following:
                case ast.AnnAssign(target=field), ast.Expr(value=ast.Constant(value=str(text))):
                    words.setdefault(declared.name, {})[ast.unparse(field)] = " ".join(text.split())
    return words


def for_forms(schema: JsonDict, cls: type) -> None:
    """Shorten a schema's description to its first paragraph for forms, and describe its fields.

    >>> class Lamp(Checked):
    ...     '''Light a room.
    ...
    ...     >>> 1 + 1
    ...     2
    ...     '''
    >>> Lamp.model_json_schema()["description"]
    'Light a room.'
    """
    schema["description"] = " ".join(str(schema.get("description", "")).split("\n\n")[0].split())
    described = field_docstrings(cls)
    for name, field in cast("dict[str, JsonDict]", schema.get("properties", {})).items():
        if words := field.get("description") or described.get(name):
            field["description"] = words


def alternative(schema: JsonDict, cls: type) -> None:
    """Shorten the description and require ``kind``, which identifies a class in a union."""
    # With a default, pydantic's schema makes ``kind`` optional, and clients would omit it.
    for_forms(schema, cls)
    required = schema.get("required")
    schema["required"] = ["kind", *(required if isinstance(required, list) else [])]


class Checked(BaseModel):
    """The base class of tasks, aspects and settings; invalid input raises ``InputError``.

    >>> class Lamp(Checked, extra="forbid"):
    ...     called = "a lamp"
    ...     watts: int
    >>> Lamp(watts=5, colour="red")
    Traceback (most recent call last):
    jurygraph.state.errors.InputError: colour is not a field of a lamp; its fields are watts
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=for_forms)
    called: ClassVar[str] = "it"
    """What messages call an object of this class."""
    part: ClassVar[str] = "field"
    """The word for its parts in messages."""
    for_callers: ClassVar[frozenset[str] | None] = None
    """The only parts that callers of a server may choose; None: their types decide
    (``settings/caller_rules.py``)."""

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise input_error(error, type(self)) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:
        """Read the field docstrings now, because a server's event loop may forbid file access."""
        field_docstrings(cls)

    # Tells pydantic not to call ``__init__`` for nested objects: the outermost reports all errors.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def model_validate(cls, obj: Any, **how: Any) -> Self:
        """Check an object with pydantic, and report errors in our words."""
        try:
            return super().model_validate(obj, **how)
        except ValidationError as error:
            raise input_error(error, cls) from None

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of its parts in the order of messages."""
        return list(cls.model_fields)


def input_error(error: ValidationError, owner: type[Checked]) -> InputError:
    """Return pydantic's errors about an object of this class as an error in our words."""
    if isinstance(error, InputError):
        return error
    faults = [_fault(detail, owner) for detail in error.errors(include_url=False)]
    return InputError.from_faults(owner.called, _merged(faults))


def field_path(place: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the names and indices that lead to a field, from the place in pydantic's error.

    If a field may have one of several types, pydantic adds the type that it tried to the place.

    >>> field_path(("human", "fluency", "list[float]")), field_path(("human", "function-before[as_text(), str]"))
    (('human', 'fluency'), ('human',))
    """
    return tuple(part for part in place if not _TYPE.search(str(part)))


def _fault(detail: ErrorDetails, owner: type[Checked]) -> Fault:
    first = owner.model_fields.get(str(detail["loc"][0])) if detail["loc"] else None
    types = {known.__name__ for known in _classes(first.annotation)} if first else set()
    where = tuple(part for part in field_path(detail["loc"]) if part not in types)
    return Fault(detail["type"], where, _words(detail, where, owner), detail["input"])


def _words(detail: ErrorDetails, where: tuple[str | int, ...], owner: type[Checked]) -> str:
    kind = detail["type"]
    context = detail.get("ctx", {})
    if "words" in context:  # already reported by the class of a nested object
        return str(context["words"])
    if kind == "extra_forbidden":
        return _unknown(where, owner)
    if kind == "value_error":
        return str(context["error"])
    if kind in ("too_short", "too_long"):
        return _wrong_length(kind, context)
    words = _WORDS.get(kind) or detail["msg"].replace("Input should be", "must be")
    if kind == "literal_error":
        return words + did_you_mean(str(detail["input"]), re.findall(r"'([^']*)'", words))
    return words


def _wrong_length(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "too_short":
        bound = f"at least {context['min_length']}"
        most = context["min_length"]
    else:
        bound = f"at most {context['max_length']}"
        most = context["max_length"]
    # Pydantic does not count to the end of an iterator that is too long.
    got = "more" if context.get("actual_length") is None else context["actual_length"]
    return f"must have {bound} {'entry' if most == 1 else 'entries'}, got {got}"


def _merged(faults: list[Fault]) -> list[Fault]:
    """Merge errors about a field as different types; errors inside it are more specific."""
    # ``roles=[{"name": "Nurse"}]`` is not a text, and its first entry not a name, but the entry
    # lacks a description.
    merged: dict[tuple[str | int, ...], Fault] = {}
    for fault in faults:
        if any(other.where[: len(fault.where)] == fault.where != other.where for other in faults):
            continue
        before = merged.setdefault(fault.where, fault)
        if before.words != fault.words:
            both = f"{before.words} or {fault.words.removeprefix('must be ')}"
            merged[fault.where] = before._replace(words=both)
    for where, fault in merged.items():
        # The value is quoted unless the message quotes it, or there is none.
        if (
            fault.kind not in ("missing", "extra_forbidden", "value_error")
            and ", got " not in fault.words
        ):
            wrong, mark, meant = fault.words.partition("; did you mean")
            merged[where] = fault._replace(
                words=f"{wrong}, got {shortened(fault.value)}{mark}{meant}"
            )
    return [*merged.values()]


def _classes(annotation: Any) -> Iterator[type[Checked]]:
    if isinstance(annotation, type) and issubclass(annotation, Checked):
        yield annotation
    for argument in get_args(annotation):
        yield from _classes(argument)


def _unknown(where: tuple[str | int, ...], owner: type[Checked]) -> str:
    """Suggest a known field for an unknown one at this place in an object of class ``owner``."""
    *outer, name = map(str, where)
    holder = owner
    for part in outer:
        field = holder.model_fields.get(part)
        holder = next(_classes(field.annotation), holder) if field else holder
    names = holder.names()
    about = holder.model_fields
    # A field with a single value, such as the kind of a task, is never meant.
    single = {
        n
        for n in names
        if get_origin(a := about[n].annotation) is Literal and len(get_args(a)) == 1
    }
    free = [known for known in names if known not in single]
    words = field_docstrings(holder)
    described = {known: about[known].description or words.get(known, "") for known in free}
    # For two letters, one in common is a lot: ``nn`` was meant as ``n``.
    meant = did_you_mean(name, names, described, cutoff=0.6 if len(name) < 4 else 0.75)
    its = " Its" if meant else "; its"
    return f"is not a {holder.part} of {holder.called}{meant}{its} {holder.part}s are {', '.join(names)}"


def did_you_mean(
    wrong: str, names: Sequence[str], about: Mapping[str, str] | None = None, cutoff: float = 0.75
) -> str:
    """Suggest the name that is spelt alike, or whose description contains the word."""
    meant = difflib.get_close_matches(wrong.lower(), names, n=1, cutoff=cutoff)
    if not meant and about:
        words = {word.rstrip("s") for word in wrong.lower().split("_") if len(word) > 3}
        meant = [
            name
            for name in about
            if words & {w.rstrip("s") for w in re.findall(r"\w+", about[name].lower())}
        ]
    return f"; did you mean {meant[0]}?" if meant else ""


def listed(names: Iterable[str], wrong: str) -> str:
    """List the valid names, and suggest the one that a wrong name was probably meant for.

    >>> listed(["demo", "summeval"], "sumeval")
    'demo, summeval; did you mean summeval?'
    """
    known = list(names)
    return f"{', '.join(known)}{did_you_mean(wrong, known)}"


def shortened(value: Any) -> str:
    """Return a value as Python writes it, cut to a length that fits into a message.

    >>> shortened("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ..."
    """
    # Redacted before cutting, because half a key is not recognized.
    shown = redact(repr(value))
    return shown if len(shown) <= 60 else f"{shown[:60]} ..."


def fields_in(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of plain data at any depth, those of an object before nested ones.

    >>> [name for name, _ in fields_in({"a": [{"b": 1}], "c": {"d": 2}})]
    ['a', 'c', 'b', 'd']
    """
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield str(name), inner
    for inner in (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    ):
        yield from fields_in(inner)


LONGEST_TEXT = 10_000_000
"""Characters: more than any model reads."""


def _encodable(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"has {len(text):,} characters, but a text may have at most {LONGEST_TEXT:,}"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"not valid Unicode at character {error.start} ({error.reason})"
        ) from error
    return text


Text = Annotated[str, AfterValidator(_encodable)]
"""A string of limited length that can be encoded as UTF-8: without lone surrogates."""


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: spaces, line breaks, characters without width or mark.

    >>> is_blank(" \\n\\u200b"), is_blank("?")
    (True, False)
    """
    return not any(character.isprintable() and not character.isspace() for character in text)


def _filled(text: str) -> str:
    if is_blank(text):
        raise PydanticCustomError("blank", "is blank")
    return text


FilledText = Annotated[Text, AfterValidator(_filled), Field(json_schema_extra={"minLength": 1})]
"""A text that is not blank: a model would answer even if it is asked about nothing."""

OptionalText = Annotated[
    Text | None,
    BeforeValidator(lambda text: None if isinstance(text, str) and is_blank(text) else text),
]
"""An optional text; a form omits it by sending an empty one."""


def parts(separators: str) -> Callable[[Any], Any]:
    """Return a function that splits a text at these characters, for lists on a command line.

    Other values stay unchanged.

    >>> parts(",")("gap, unresolved"), parts(",")(["gap"])
    (['gap', 'unresolved'], ['gap'])
    """
    between = re.compile(f"[{re.escape(separators)}]")

    def split(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return [part.strip() for part in between.split(value) if part.strip()]

    return split
