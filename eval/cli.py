"""The command line of jurygraph: its commands, each from its own file of ``commands/``, and how it ends."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from ..state.errors import JurygraphError
from .commands.agree import agree
from .commands.common import ALL_JUDGED, BAD_USAGE
from .commands.journal import journal
from .commands.listing import datasets, graph, protocols
from .commands.measure import measure
from .commands.report import report
from .commands.run import run
from .commands.show import show
from .commands.sweep import sweep
from .datasets import explain

app = typer.Typer(
    help="Juries of language models that debate before they judge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (run, measure, sweep, report, agree, show, journal, graph, protocols, datasets):
    app.command()(command)


def main() -> NoReturn:
    """Entry point: errors that the caller can mend are told in a line, not in a traceback."""
    try:
        app(prog_name="jurygraph")
    except JurygraphError as error:
        _fail(str(error))
    except ValidationError as error:
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
