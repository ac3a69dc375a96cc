"""Make options of the command line from the fields of ``RunConfig``: names, defaults, help and bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import Field, fields
from functools import wraps
from itertools import starmap
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_type_hints

import typer

from ..run.config import OLD_NAMES, RunConfig
from .runtime import KEPT, LIMITS, SPEED

_PANELS = {"speed": SPEED, "budget": LIMITS, "storage": KEPT}


def takes_run_config(
    *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command one option for each field of ``RunConfig``, in place of its parameter ``config``.

    Args:
        without: fields that this command has no option for; they keep their defaults.

    >>> @takes_run_config(without=["batch"])
    ... def command(name: str, config: RunConfig) -> None:
    ...     print(name, config.concurrency)
    >>> command("one", concurrency=4)
    one 4
    """
    options = {one.name: one for one in fields(RunConfig) if one.name not in without}
    # Old names stay valid on the command line; the help does not show them.
    options |= {old: options[name] for old, name in OLD_NAMES.items() if name in options}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        # Typer reads the signature, so the options must stand there as if they had been written out.
        parameters = [
            parameter
            for name, own in inspect.signature(command, eval_str=True).parameters.items()
            for parameter in (starmap(_parameter, options.items()) if name == "config" else [own])
        ]

        @wraps(command)
        def with_options(*arguments: Any, **given: Any) -> None:
            limits = {name: given.pop(name) for name in options if name in given}
            # Of an old and a new name for the same field, the one that was not given must not count.
            changed = {name: value for name, value in limits.items() if value != options[name].default}
            command(*arguments, **given, config=RunConfig.from_options(changed))

        # Typer takes parameters from the signature and their types from the annotations: both have to agree.
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in parameters}
        return with_options

    return decorate


def _parameter(name: str, one: Field[Any]) -> inspect.Parameter:
    kind = _kind(one.name)
    flag = f"--{name.replace('_', '-')}"
    about = one.metadata
    lowest = 0 if about["may_be_zero"] else 1 if kind in (int, int | None) else None
    option = typer.Option(
        # With its name given, a flag gets no "--no-..." beside it.
        *([flag] if kind is bool else []),
        help=about["description"],
        min=lowest,
        # A flag takes no value; all other fields without a placeholder of their own are numbers.
        metavar=about["metavar"] or (None if kind is bool else "N"),
        rich_help_panel=_PANELS[about["group"]],
        hidden=name in OLD_NAMES,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=Annotated[kind, option]
    )


_KINDS = get_type_hints(RunConfig)


def _kind(name: str) -> Any:
    """Return a field's type for Typer, which takes no union but that with ``None``; a path or text becomes text."""
    kind = _KINDS[name]
    if isinstance(kind, UnionType):
        return Union[tuple(one for one in get_args(kind) if one is not Path)]  # noqa: UP007
    return kind
