"""List the commands of jurygraph, call the one that is asked for, and end the program with its exit code.

Each command is a function in a file of this folder. The file is imported only when its command is called: most of
them import far more than the others need, and ``jurygraph --help`` needs none of it.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from inspect import getdoc, signature
from keyword import iskeyword
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ...state.errors import JurygraphError
from ...state.redaction import redact
from ...state.word_files import words_beside
from ..results.config import OLD_NAMES
from .option_sets import takes_options
from .runtime import ALL_JUDGED, BAD_USAGE, INTERRUPTED


class _Command(NamedTuple):
    """Describes a command for ``jurygraph --help``.

    Attributes:
        panel: the group of commands it is listed in.
        summary: what it does, in a sentence.
        example: the arguments of a call.
        file: the module beside this one that holds the command's function; empty where it is called like it.
    """

    panel: str
    summary: str
    example: str = ""
    file: str = ""


_PANELS = words_beside(__file__, "commands.toml")
COMMANDS = {name: _Command(panel, **about) for panel, its in _PANELS.items() for name, about in its.items()}
"""The commands, listed in the order of the help."""

_OLD_OPTIONS = {**OLD_NAMES, "disowned": "invalidated"}
"""Earlier names of options, which stay valid and are not shown, to the present ones."""


class _PlainFlags:
    """Prints a flag in the help as a flag: typer would print the type of a value after it, though it takes none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of a command, ``--help`` among them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


class _LoadedCommand(_PlainFlags, TyperCommand):
    """Runs one command, with its options."""


class _Commands(_PlainFlags, TyperGroup):
    """Lists all commands from ``COMMANDS``, and imports one when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command's name and summary, for the help and for suggestions; ``resolve_command`` loads it."""
        if (about := COMMANDS.get(cmd_name)) is None:
            return None
        return TyperCommand(cmd_name, short_help=about.summary, rich_help_panel=about.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that was called; return it with the arguments that are left for it."""
        name, _, rest = super().resolve_command(ctx, args)
        # In resilient parsing Click returns no name for an unknown command; otherwise it has raised an error by now.
        return name, name and _load(name), rest


def _load(name: str) -> Any:
    """Import a command with its options, its help ending in an example."""
    about = COMMANDS[name]
    try:
        # A function cannot be called as a word of Python's own is.
        named = f"{name}_" if iskeyword(name) else name.replace("-", "_")
        module = about.file or name.replace("-", "_")
        function = takes_options()(getattr(import_module(f".{module}", __package__), named))
    except KeyboardInterrupt:
        # Importing takes long enough for Ctrl-C to be pressed meanwhile.
        raise typer.Exit(INTERRUPTED) from None
    options = signature(function).parameters
    renamed = {old: name for old, name in _OLD_OPTIONS.items() if name in options}
    settings = {"token_normalize_func": lambda word: renamed.get(word, word)}
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    example = f"Example: jurygraph {name} {about.example}".rstrip()
    # Lines break where the terminal ends, and brackets in a help, such as those of an extra, are no markup.
    words = escape("\n\n".join(" ".join(part.split()) for part in (getdoc(function) or "").split("\n\n")))
    alone.command(name, cls=_LoadedCommand, context_settings=settings, epilog=example, help=words)(function)
    return get_command(alone)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Example: jurygraph run debate --data demo --limit 5\n\n"
    "jurygraph COMMAND --help describes a command and its options.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from ... import __version__

        typer.echo(f"jurygraph {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Judge texts with language-model agents that debate, and measure how well they agree with humans."""


def main() -> NoReturn:
    """Run the program; an error that the user can fix is printed in one line, without a traceback."""
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_where: Any, **_more: Any) -> None:
        """Print a warning in one line, without the place in the code that gave it, and once in a command."""
        if (text := str(message)) not in printed:
            printed.add(text)
            # How a file was read is no warning: it may well be right.
            _tell("" if category.__name__ == "ReadingNotice" else "Warning: ", "yellow", text)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            app(prog_name="jurygraph")
    except JurygraphError as error:
        _fail(str(error))
    except ValidationError as error:
        from ..datasets.items import explain

        _fail(explain(error))
    except BrokenPipeError:
        # The reader of our output has closed it (``| head``): what is still buffered must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    sys.exit(ALL_JUDGED)


def _fail(message: str) -> NoReturn:
    _tell("error: ", "bold red", message)
    sys.exit(BAD_USAGE)


def _tell(what: str, style: str, message: str) -> None:
    Console(stderr=True).print(Text.assemble((what, style), redact(message)), soft_wrap=True)
