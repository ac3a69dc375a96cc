"""List the commands of jurygraph, call the one that is asked for, and end the program with its exit code.

Each command is a function in a file of this folder. The file is imported only when its command is called: most of
them import far more than the others need, and ``jurygraph --help`` needs none of it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ...state.errors import JurygraphError
from ...state.redaction import redact
from .runtime import ALL_JUDGED, BAD_USAGE, INTERRUPTED


class _Command(NamedTuple):
    """Describes a command for ``jurygraph --help``.

    Attributes:
        panel: the group of commands it is listed in.
        summary: what it does, in a sentence.
        example: the arguments of a call.
        file: the module beside this one that holds the function of the command's name.
    """

    panel: str
    summary: str
    example: str
    file: str


_SUMMARIES = {
    "Judge": {
        "try": "Try one judge and a debate on a few items of your own data.",
        "run": "Judge a dataset with one or more protocols.",
        "sweep": "Judge a dataset with every combination of some settings.",
        "versus": "See whether a debate beats one judge on the same budget.",
        "whatif": "Judge a run's debates again without a turn.",
        "redteam": "See how a judge holds out against texts that judge themselves.",
        "reproduce": "Run a paper's table again, beside the figures that it prints.",
        "merge": "Put the shards of a run together.",
        "measure": "Compute reference metrics such as ROUGE-L; no model is called.",
        "check-model": "Try a model in a few cheap calls: what judges will use of it.",
    },
    "Read results": {
        "report": "Compare judges: agreement with humans, cost, diagnostics.",
        "show": "Print the debates on one item.",
        "gate": "Check a run against limits and an earlier run, for CI.",
        "agree": "Compute agreement with humans from a file of scores.",
        "review": "Have people review verdicts, in the terminal or by a file.",
        "audit": "Label what each turn of a run's debates did.",
    },
    "Protocols and datasets": {
        "protocols": "List the protocols with their settings.",
        "datasets": "List the datasets that have a name, or describe one.",
        "new-protocol": "Write a protocol of your own to begin with.",
        "graph": "Draw a protocol's graph.",
        "studio": "Serve all protocols to LangGraph Studio.",
    },
    "Maintenance": {
        "journal": "Show what a run's journal of calls holds, or delete from it.",
    },
}
"""What each command does, by the part of the help that lists it, in the help's order."""

_EXAMPLES = {
    "try": "demo --aspect consistency --sample 6 --out runs/try",
    "run": "debate --data demo --limit 5 --out runs/demo",
    "sweep": "debate --axis n=1,2 --data demo --limit 5 --out runs/sweep",
    "versus": "debate --data demo --aspect consistency --limit 12 --out runs/versus",
    "whatif": "runs/demo --drop critic:1",
    "redteam": "single --data demo --aspect consistency --limit 5 --out runs/redteam",
    "reproduce": "courtroom-table2",
    "merge": "runs/demo --out runs/merged",
    "measure": "rouge-l --data demo --limit 5 --out runs/rouge",
    "check-model": "offline",
    "report": "runs/demo --html report.html",
    "show": "runs/demo lighthouse-good",
    "gate": "runs/demo --fail-under coherence=2 --baseline runs/demo",
    "agree": "runs/demo",
    "review": "runs/demo --when always --queue queue.csv",
    "audit": "runs/demo",
    "datasets": "demo",
    "new-protocol": "two_scorers --in mine",
    "graph": "debate",
    "studio": "--config langgraph.json",
    "journal": "runs/demo",
}
"""The arguments of a call that works as it stands, on the bundled data; later ones read what earlier ones wrote."""

_FILES = {"try": "try_data", "protocols": "listing", "datasets": "listing", "graph": "listing"}
"""The modules beside this one that hold commands which are not called like them."""

COMMANDS = {
    name: _Command(panel, summary, _EXAMPLES.get(name, ""), _FILES.get(name, name.replace("-", "_")))
    for panel, of_panel in _SUMMARIES.items()
    for name, summary in of_panel.items()
}
"""The commands, listed in the order of the help."""


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
        if cmd_name not in COMMANDS:
            return None
        about = COMMANDS[cmd_name]
        return TyperCommand(
            cmd_name, short_help=about.summary, rich_help_panel=about.panel, rich_markup_mode="rich"
        )

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
        function = getattr(import_module(f".{about.file}", __package__), named)
    except KeyboardInterrupt:
        # Importing takes long enough for Ctrl-C to be pressed meanwhile.
        raise typer.Exit(INTERRUPTED) from None
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, cls=_LoadedCommand, epilog=f"Example: jurygraph {name} {about.example}".rstrip())(
        function
    )
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
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warning_printer()
            app(prog_name="jurygraph")
    except JurygraphError as error:
        _fail(str(error))
    except ValidationError as error:
        from ..datasets.dataset import explain

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


def _warning_printer() -> Callable[..., None]:
    """Print a warning in one line, without the place in the code that gave it, and once in a command."""
    printed: set[str] = set()

    def show(message: Warning | str, kind: type[Warning], *_where: Any, **_more: Any) -> None:
        if (text := str(message)) not in printed:
            printed.add(text)
            # How a file was read is no warning: it may well be right.
            _tell("" if kind.__name__ == "ReadingNotice" else "Warning: ", "yellow", text)

    return show


def _tell(what: str, style: str, message: str) -> None:
    Console(stderr=True).print(Text.assemble((what, style), redact(message)), soft_wrap=True)
