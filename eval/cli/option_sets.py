"""Make a command's options of sets: dataclasses whose fields say what the help says, each option declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from functools import partial, wraps
from types import UnionType
from typing import Annotated, Any, get_args, get_type_hints

import typer

from .runtime import KEPT, LIMITS, SPEED

Command = Callable[..., None]


def option(description: str, metavar: str | None = None, *, default: Any = None, **about: Any) -> Any:
    """Make a field of a set: what the help says of the option, its placeholder, and its value where it is not given.

    Args:
        description: the help.
        metavar: what stands for the value in the help; none for a flag.
        default: the value; ``MISSING`` where the option has to be given.
        **about: ``name``, where it is not the field's; ``old_name``, which stays valid and is not shown; ``panel`` of
            the help; ``min`` and ``max``.
    """
    return field(default=default, metadata={"description": description, "metavar": metavar, **about})


flag = partial(option, default=False)


def takes_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command one option for each field of the sets among its parameters.

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
        sets = {name: its.annotation for name, its in own.items() if is_dataclass(its.annotation)}
        options = {name: list(_options(kind, without)) for name, kind in sets.items()}
        # Typer reads the signature, so the options must stand there as if they had been written out.
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, of_command in own.items()
            for parameter in options.get(name, [of_command])
        ]

        @wraps(command)
        def with_options(**given: Any) -> None:
            values = {
                name: {
                    option.name: given.pop(option.name) for option in options[name] if option.name in given
                }
                for name in sets
            }
            command(**given, **{name: _made(kind, values[name]) for name, kind in sets.items()})

        # Typer takes parameters from the signature and their types from the annotations: both have to agree.
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {option.name: option.annotation for option in parameters}
        return with_options

    return decorate


def _options(kind: Any, without: Collection[str]) -> Iterator[inspect.Parameter]:
    """Yield the options of a set in the order of its fields, each followed by its old name."""
    hints = get_type_hints(kind)
    for declared in fields(kind):
        if declared.name not in without:
            of_field = hints[declared.name]
            for name in filter(None, (declared.name, declared.metadata.get("old_name"))):
                yield inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if declared.default is MISSING else declared.default,
                    annotation=Annotated[_kind(of_field), _typer_option(name, declared, of_field)],
                )


def _typer_option(name: str, declared: Field[Any], kind: Any) -> Any:
    about, takes_value, is_old = declared.metadata, kind is not bool, name != declared.name
    lowest = about.get("min")
    # Numbers of ``RunConfig`` are above 0, where they may not be 0; "above 0" can be said of whole numbers alone.
    if "may_be_zero" in about:
        lowest = 0 if about["may_be_zero"] else 1 if kind in (int, int | None) else None
    names = [about["name"]] if "name" in about and not is_old else []
    # With its name given, a flag gets no "--no-..." beside it.
    return typer.Option(
        *(names if takes_value or names else [f"--{name.replace('_', '-')}"]),
        help=about["description"],
        min=lowest,
        max=about.get("max"),
        # A flag takes no value; numbers of ``RunConfig`` have no placeholder of their own.
        metavar=about["metavar"] or ("N" if takes_value and "may_be_zero" in about else None),
        rich_help_panel=_PANELS.get(about.get("group"), about.get("panel")),
        hidden=is_old,
    )


_PANELS: Mapping[str | None, str] = {"speed": SPEED, "budget": LIMITS, "storage": KEPT}


def _kind(kind: Any) -> Any:
    """Return a field's type for Typer, which takes no union but that with ``None``; text or anything else is text."""
    return str | None if isinstance(kind, UnionType) and str in get_args(kind) else kind


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    """Make the set of the values; one that was given by its option's old name counts."""
    given = dict(values)
    for declared in fields(kind):
        if (old := declared.metadata.get("old_name")) in given and (
            value := given.pop(old)
        ) != declared.default:
            given[declared.name] = value
    return kind(**given)
