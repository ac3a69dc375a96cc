"""The command line of jurygraph: its commands, each from a file of this folder, and how it ends.

A command's file is loaded when the command is asked for: most of them load far more than the others need.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_command

from ...state.errors import JurygraphError
from .runtime import ALL_JUDGED, BAD_USAGE, INTERRUPTED

FILES = {
    **{name: name for name in ("run", "measure", "sweep", "report", "agree", "show", "journal")},
    **dict.fromkeys(("graph", "protocols", "datasets"), "listing"),
}
"""Each command, and the file beside this one that holds the function of its name."""


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(FILES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _loaded(cmd_name) if cmd_name in FILES else None


def _loaded(name: str) -> Any:
    """A command by itself."""
    try:
        function = getattr(import_module(f".{FILES[name]}", __package__), name)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name)(function)
    return get_command(alone)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def _about() -> None:
    """Juries of language models that debate before they judge."""


def main() -> NoReturn:
    """Entry point: errors that the caller can mend are told in a line, not in a traceback."""
    try:
        app(prog_name="jurygraph")
    except JurygraphError as error:
        _fail(str(error))
    except ValidationError as error:
        from ..datasets.dataset import explain

        _fail(explain(error))
    except BrokenPipeError:
        # Whoever reads our output has seen enough (``| head``).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    sys.exit(ALL_JUDGED)


def _fail(message: str) -> NoReturn:
    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    sys.exit(BAD_USAGE)
