"""Declare the options of commands, each once: as a parameter, or in a set that commands share.

A set is a dataclass; the docstrings of its fields are the help texts.
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
"""Declares a positional argument of a command."""


def takes_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command an option for each declared parameter, and for each field of option sets.

    Args:
        without: fields without an option in this command; they have their defaults. Where two
            sets have a field of this name, ``Set.field`` names that of one.

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
        # Typer reads the signature, so the options must appear in it.
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
                given[name] = kind(
                    **{option.name: given.pop(option.name) for option in options[name]}
                )
            command(**given)

        # Typer takes parameters from the signature and their types from the annotations, so the two
        # must agree.
        with_options.__signature__ = signature  # type: ignore[attr-defined]
        with_options.__annotations__ = {option.name: option.annotation for option in parameters}
        return with_options

    return decorate


def _options(kind: Any, without: Collection[str]) -> Iterator[Parameter]:
    """Yield the options of a set in the order of its fields, without fields that declare none."""
    hints = get_type_hints(kind)
    words = field_docstrings(kind)
    for declared in fields(kind):
        names = {declared.name, f"{kind.__name__}.{declared.name}"}
        if "metavar" in declared.metadata and names.isdisjoint(without):
            yield _parameter(
                declared, hints[declared.name], declared.name, words.get(declared.name, "")
            )


def _parameter(declared: Field[Any], kind: Any, name: str, description: str = "") -> Parameter:
    """Return an option or argument as a parameter for Typer."""
    about = declared.metadata
    takes_value = kind is not bool
    lowest = about.get("min")
    # Numbers in ``RunConfig`` must be above 0 unless they may be 0. Typer can express "above 0"
    # only for integers.
    if "may_be_zero" in about:
        lowest = 0 if about["may_be_zero"] else 1 if kind in (int, int | None) else None
    # With an explicit name, a flag has no "--no-..." variant.
    shown_name = about.get("name", f"--{name.replace('_', '-')}")
    # A flag takes no value; numbers of ``RunConfig`` have no placeholder.
    metavar = about["metavar"] or ("N" if takes_value and "may_be_zero" in about else None)
    words = escape(about["description"] or description)
    made: Any = typer.Argument(metavar=metavar, help=words)
    if "is_argument" not in about:
        more: Any = {"min": lowest, "max": about.get("max"), "rich_help_panel": about.get("panel")}
        made = typer.Option(shown_name, metavar=metavar, help=words, **more)
    # Typer supports no unions except with ``None``: use text for "text or anything else".
    kind = str | None if isinstance(kind, UnionType) and str in get_args(kind) else kind
    default = Parameter.empty if declared.default is MISSING else declared.default
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, made]
    )
