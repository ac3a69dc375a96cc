"""Declare what a command takes, each option once: as a parameter, or as a field of a set that commands share.

A set is a dataclass whose fields say what the help says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter
from types import UnionType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from rich.markup import escape

from ...state.checked import field_docstrings
from ..results.config import option

Command = Callable[..., None]


__all__ = ["argument", "flag", "option", "takes_options"]

flag = partial(option, default=False)
argument = partial(option, default=MISSING, is_argument=True)
"""Declares what a command takes by its place, not by a name."""


def takes_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command an option for each parameter that declares one, and for each field of the sets among them.

    Args:
        without: fields that this command has no option for; they keep their defaults.

    >>> from jurygraph.eval.results.config import RunConfig
    >>> @takes_options(without=["batch"])
    ... def command(name: str, config: RunConfig) -> None:
    ...     print(name, config.concurrency)
    >>> command(name="one", concurrency=4)
    one 4
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        sets: dict[str, Any] = {
            name: its.annotation for name, its in own.items() if is_dataclass(its.annotation)
        }
        options = {name: list(_options(kind, without)) for name, kind in sets.items()}
        # Typer reads the signature, so the options must stand there as if they had been written out.
        parameters: list[Parameter] = []
        for name, its in own.items():
            if name in options:
                parameters += options[name]
            elif isinstance(its.default, Field):
                parameters.append(_parameter(its.default, its.annotation, name))
            else:
                parameters.append(its.replace(kind=Parameter.KEYWORD_ONLY))
        signature = inspect.Signature(parameters)

        @wraps(command)
        def with_options(**by_name: Any) -> None:
            given = {option.name: option.default for option in parameters} | by_name
            for name, kind in sets.items():
                given[name] = kind(**{option.name: given.pop(option.name) for option in options[name]})
            command(**given)

        # Typer takes parameters from the signature and their types from the annotations: both have to agree.
        with_options.__signature__ = signature  # type: ignore[attr-defined]
        with_options.__annotations__ = {option.name: option.annotation for option in parameters}
        return with_options

    return decorate


def _options(kind: Any, without: Collection[str]) -> Iterator[Parameter]:
    """Yield the options of a set in the order of its fields; fields that declare none are left out."""
    hints, words = get_type_hints(kind), field_docstrings(kind)
    for declared in fields(kind):
        if "metavar" in declared.metadata and declared.name not in without:
            yield _parameter(declared, hints[declared.name], declared.name, words.get(declared.name, ""))


def _parameter(declared: Field[Any], kind: Any, name: str, description: str = "") -> Parameter:
    """Return an option, or an argument, as a parameter that Typer understands."""
    about, takes_value = declared.metadata, kind is not bool
    lowest = about.get("min")
    # Numbers of ``RunConfig`` are above 0, where they may not be 0; "above 0" can be said of whole numbers alone.
    if "may_be_zero" in about:
        lowest = 0 if about["may_be_zero"] else 1 if kind in (int, int | None) else None
    # With its name given, a flag gets no "--no-..." beside it.
    shown_name = about.get("name", f"--{name.replace('_', '-')}")
    # A flag takes no value; numbers of ``RunConfig`` have no placeholder of their own.
    metavar = about["metavar"] or ("N" if takes_value and "may_be_zero" in about else None)
    words = escape(about["description"] or description)
    made: Any = typer.Argument(metavar=metavar, help=words)
    if "is_argument" not in about:
        more: Any = {"min": lowest, "max": about.get("max"), "rich_help_panel": about.get("panel")}
        made = typer.Option(shown_name, metavar=metavar, help=words, **more)
    # Typer takes no union but that with ``None``; text or anything else is text.
    kind = str | None if isinstance(kind, UnionType) and str in get_args(kind) else kind
    default = Parameter.empty if declared.default is MISSING else declared.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, made])
