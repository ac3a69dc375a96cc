"""Run a command of jurygraph, and end the program with its exit code.

`commands.py` lists the commands. Each is a function in a file of this folder.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import getdoc
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from rich.markup import escape
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ...state.errors import JurygraphError
from ...state.redaction import redact, spelled_out
from .commands import COMMANDS, FIRST_OPTIONS, GUESSED, OTHER_OPTIONS
from .exit_codes import ExitCode
from .option_sets import takes_options
from .runtime import Output


class _PlainFlags:
    """Prints a flag in the help without a value type, which typer would add."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of a command, including ``--help``."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params


@contextmanager
def _printable_errors() -> Iterator[None]:
    """Escape control characters in typer's errors, which quote the arguments."""
    try:
        yield
    except Exception as error:
        if isinstance(message := getattr(error, "message", None), str):
            error.message = spelled_out(message)  # type: ignore[attr-defined]
        raise


class _PrintableErrors:
    """Prints errors in a command's arguments without control characters."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments like typer."""
        with _printable_errors():
            rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
            return rest


_INSTEAD = {("sweep", "model"): "to judge with several models, add --axis model=A,B"}
"""By command and option: the right way to give several values."""


class _LoadedCommand(_PlainFlags, _PrintableErrors, TyperCommand):
    """Runs one command.

    An option with one value refuses a second one; Click would replace the first value.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with the headings under which the help shows the options."""
        params = super().get_params(ctx)
        first = FIRST_OPTIONS.get(str(self.name), ())
        for param in params if first else ():
            if param.param_type_name != "option" or param.name == "help":
                continue
            if not {*first}.isdisjoint(param.opts):
                param.rich_help_panel = None
            elif getattr(param, "rich_help_panel", None) is None:
                param.rich_help_panel = OTHER_OPTIONS
        return params

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command.

        Raises:
            UsageError: an option with one value is given several times.
        """
        with _printable_errors():
            self._refuse_second_values(ctx, args)
        parsed: list[str] = super().parse_args(ctx, args)
        return parsed

    def _refuse_second_values(self, ctx: Any, args: list[str]) -> None:
        # Click's parser lists an option once for each occurrence. It modifies its list of
        # arguments.
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        times_given: Counter[Any] = Counter(given)
        for param, times in times_given.items():
            if param.param_type_name != "option" or times == 1 or ctx.resilient_parsing:
                continue
            # A repeated flag loses no value.
            if not (param.multiple or param.count or param.is_flag):
                hint = _INSTEAD.get((str(ctx.info_name), str(param.name)))
                once = f"{max(param.opts, key=len)} takes one value, but is given {times} times"
                ctx.fail(f"{once}; {hint}" if hint else once)


class _Commands(_PlainFlags, _PrintableErrors, TyperGroup):
    """Lists all commands from ``COMMANDS``, and imports only the one that is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command's name and summary, for the help and for suggestions.

        ``resolve_command`` loads the command itself.
        """
        if (about := COMMANDS.get(cmd_name)) is None:
            return None
        return TyperCommand(cmd_name, short_help=about.summary, rich_help_panel=about.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the called command; return it with its arguments.

        Raises:
            UsageError: an unknown command. The error suggests similar commands.
        """
        if meant := GUESSED.get(args[0]) if args else None:
            known = "; ".join(f"{name} ({COMMANDS[name].summary.rstrip('.')})" for name in meant)
            ctx.fail(f"No such command {args[0]!r}. Did you mean one of these? {known}.")
        with _printable_errors():
            name, _, rest = super().resolve_command(ctx, args)
        # In resilient parsing Click returns no name for an unknown command; otherwise it has
        # already raised an error.
        return name, name and _load(name), rest


def _load(name: str) -> Any:
    """Import a command with its options, and add an example to its help."""
    about = COMMANDS[name]
    try:
        function = takes_options()(about.load())
    except KeyboardInterrupt:
        # Importing takes long enough for the user to press Ctrl-C.
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    example = f"Example: jurygraph {name} {about.example}".rstrip()
    # The terminal wraps lines, and brackets in a help, such as those of an extra, are not markup.
    words = escape(
        "\n\n".join(" ".join(part.split()) for part in (getdoc(function) or "").split("\n\n"))
    )
    alone.command(name, cls=_LoadedCommand, epilog=example, help=words)(function)
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
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Judge texts with language-model agents that debate, and measure how well they agree with
    humans.
    """


def main() -> NoReturn:
    """Run the program; an error that the user can fix is printed in one line."""
    for stream in (sys.stdout, sys.stderr):
        # A Windows terminal, or PYTHONIOENCODING, may not support all characters of texts: escape
        # them.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_where: Any, **_more: Any) -> None:
        """Print a warning once per command, in one line, without its place in the code."""
        if (text := str(message)) not in printed:
            printed.add(text)
            # A notice of how a file was read is not a warning: it may be right.
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
        # The reader of our output has closed it (``| head``): flushing the buffer at exit must not
        # fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except Exception as error:
        from ...graphs.engine.own_code import described, line_of

        # For a mistake in the user's own file, its line is enough; for one in this program, the
        # traceback is needed.
        if (found := line_of(error)) is None:
            raise
        file, line = found
        _fail(f"{file}, line {line}: {described(error)}")
    sys.exit(ExitCode.ALL_JUDGED)


def _fail(message: str) -> NoReturn:
    _tell("error: ", "bold red", message)
    sys.exit(ExitCode.BAD_USAGE)


def _tell(what: str, style: str, message: str) -> None:
    Output(stderr=True).print(Text.assemble((what, style), redact(message)), soft_wrap=True)
