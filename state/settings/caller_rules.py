"""The settings that callers of a LangGraph server may choose, by the type of the field.

Numbers, switches and choices from a list are open to callers, because their values do not name
anything. Text is closed, because it may name a file, a module, an address or an environment
variable. A field opens its text with a mark in its type: ``PromptText``, or ``Annotated[str,
ForCallers(...)]``. Every other type is closed, so a new field is closed until its type opens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from ..checked import Checked, FilledText


@dataclass(frozen=True)
class ForCallers:
    """Marks text in the type of a field that callers of a server may choose.

    Attributes:
        check: returns whether callers may choose a text; None: any text.
    """

    check: Callable[[str], bool] | None = None

    def allows(self, value: object) -> bool:
        """Return whether callers may choose this value."""
        return isinstance(value, str) and (self.check is None or self.check(value))


PromptText = Annotated[FilledText, ForCallers()]
"""Text that becomes part of a prompt and has no other use."""


def one_of(*texts: str) -> ForCallers:
    """Return the mark for text that callers may choose from these values.

    >>> one_of("papers").allows("papers"), one_of("papers").allows("/etc")
    (True, False)
    """
    return ForCallers(frozenset(texts).__contains__)


def closed_choices(chosen: Mapping[str, Any], owner: type[Checked]) -> Iterator[str]:
    """Yield the names of the fields with values that callers of a server may not choose.

    Args:
        chosen: field values, by name. Empty values choose nothing, because forms send them.
        owner: the class of the object with these fields.

    >>> from jurygraph.state.settings import DebateSettings
    >>> list(closed_choices({"n": 2, "persona": "strict", "prompts": "/etc"}, DebateSettings))
    ['prompts']
    """
    for name, value in chosen.items():
        field = owner.model_fields.get(name)
        if _is_empty(value):
            continue
        if owner.for_callers is not None and name not in owner.for_callers:
            yield name
        elif field is None:
            # An undeclared parameter that the class accepts has no type to check.
            if not isinstance(value, str | int | float):
                yield name
        else:
            # pydantic moves the marks of the whole field from its annotation to its metadata.
            marks = [mark for mark in field.metadata if isinstance(mark, ForCallers)]
            if not any(mark.allows(value) for mark in marks):
                yield from dict.fromkeys(_closed(name, field.annotation, value))


def _closed(name: str, kind: Any, value: Any) -> Iterator[str]:
    """Yield the names of the fields that a type does not open for this value."""
    origin = get_origin(kind)
    arguments = get_args(kind)
    if origin is Annotated:
        marks = [mark for mark in kind.__metadata__ if isinstance(mark, ForCallers)]
        if not any(mark.allows(value) for mark in marks):
            yield from _closed(name, arguments[0], value)
    elif origin in (Union, UnionType):
        by_type = [list(_closed(name, argument, value)) for argument in arguments]
        # The innermost field describes best what was refused.
        yield from min(by_type, key=lambda names: (bool(names), names == [name]))
    elif origin is tuple and arguments[1:] == (...,) and isinstance(value, tuple):
        for part in value:
            yield from _closed(name, arguments[0], part)
    elif origin is dict and isinstance(value, dict):
        for key, part in value.items():
            yield from _closed(name, arguments[0], key)
            yield from _closed(name, arguments[1], part)
    elif isinstance(kind, type) and issubclass(kind, Checked) and isinstance(value, kind):
        yield from closed_choices(
            {part: getattr(value, part) for part in value.model_fields_set}, kind
        )
    elif not (value in arguments if origin is Literal else _is_plain(kind, value)):
        yield name


def _is_plain(kind: Any, value: Any) -> bool:
    """Return whether an open type accepts this value."""
    is_nothing = kind in (None, NoneType) and value is None
    return is_nothing or (kind in (bool, int, float) and isinstance(value, bool | int | float))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | list | dict) and not value)
