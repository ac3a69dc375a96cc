"""Provide the shared parts of all commands: console, event loop, Ctrl-C and exit codes."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ...state.errors import UsageError
from ...state.redaction import shell_line, spelled_out
from ...state.settings import ModelSpec
from ..results.config import KEPT, LIMITS, RunConfig
from ..run.calls.shutdown import signals_interrupt
from .exit_codes import ExitCode
from .option_sets import flag

if TYPE_CHECKING:
    from ..tables import Grid
    from ..tables.grid import CellValue

PIPED_WIDTH = 120


class Output(Console):
    """The console of a command: it wraps tables and panels to its width, but not lines.

    Brackets in a path, a name or an extra are not markup. Control characters in all texts are
    escaped, so that ids, names, paths and replies cannot clear the screen or change its title.
    """

    def __init__(self, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(width=width, stderr=stderr, markup=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render like rich, with the control characters of all texts escaped."""
        for text, style, control in super().render(renderable, options):
            # rich marks its own control sequences, such as the end of a progress bar.
            yield Segment(text if control else spelled_out(text), style, control)

    def print_line(self, text: str, style: str = "") -> None:
        """Print a line unchanged; the terminal wraps it."""
        self.print(Text(text, style), soft_wrap=True)

    def print_grids(self, grids: Iterable[Grid], gap: bool = True) -> None:
        """Print tables as wide as the terminal, with a blank line below each if ``gap`` is set."""
        from ..tables import to_lines

        for grid in grids:
            self.print(to_lines(grid, self.width), end="\n\n" if gap else "\n")

    def print_list(
        self, headings: Iterable[str], rows: Iterable[tuple[CellValue, ...]], title: str = ""
    ) -> None:
        """Print a table of texts."""
        from ..tables import Grid, text_column

        self.print_grids([Grid(title, tuple(map(text_column, headings)), tuple(rows))])


def echo(text: str) -> None:
    """Print a text unchanged for other programs, except for control characters."""
    typer.echo(spelled_out(text))


def console() -> Output:
    """Make the console for results; outside a terminal it is wide enough for the tables."""
    # Redirected output has an unknown width, and 80 columns would split most tables.
    output = Output()
    return output if output.is_terminal or "COLUMNS" in os.environ else Output(width=PIPED_WIDTH)


def command(*words: object) -> str:
    """Return a command of this program in a form to paste into a shell."""
    return shell_line(program(), *words)


def show_command(folder: object, item: str) -> str:
    """Return the command that shows the debate of an item, also if its id begins with a hyphen."""
    return command("show", folder, *(["--"] if item.startswith("-") else []), item)


def program() -> str:
    """Return the command or path with which the user called this program."""
    return "jurygraph" if shutil.which("jurygraph") else sys.argv[0]


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Parse ``KEY=VALUE`` pairs to settings; ``inner.n=2`` sets ``n`` of the setting ``inner``.

    >>> settings_of(['roles=["critic", "scientist"]', "inner.n=2"])
    {'roles': ['critic', 'scientist'], 'inner': {'n': '2'}}
    """
    settings: dict[str, Any] = {}
    whole: set[str] = set()
    for key, value in (key_and_value(pair, "--set KEY=VALUE") for pair in pairs):
        *outer, name = key.split(
            "."
        )  # "wrapper.inner.n": the objects from outside to inside, then the field
        fields = settings
        for depth, part in enumerate(outer, start=1):
            if ".".join(outer[:depth]) in whole:
                raise UsageError(
                    f"--set {key}={value}: {part} is already set as a whole; give only one"
                )
            fields = fields.setdefault(part, {})
        if isinstance(fields.get(name), dict) and key not in whole:
            raise UsageError(f"--set {key}={value}: parts of {name} are already set; give only one")
        if key in whole:
            raise UsageError(f"--set {key}={value}: {key} is already set; give only one value")
        try:
            # Anything except a list or an object is parsed by the setting.
            fields[name] = json.loads(value) if value.lstrip().startswith(("[", "{")) else value
        except ValueError as error:
            raise UsageError(
                f"--set {key}={value}: not valid JSON ({error}); "
                f"""write a list as '{key}=["a", "b"]', in single quotes"""
            ) from None
        whole.add(key)
    return settings


def models_of(default: str | None, pairs: list[str]) -> dict[str, ModelSpec]:
    """Parse ``--model`` and ``--role-model`` to a model per role; ``"*"`` means all other roles."""
    named: dict[str, str] = {}
    for role, name in (key_and_value(pair, "--role-model ROLE=NAME") for pair in pairs):
        if role in named:
            raise UsageError(
                f"--role-model {role}={name}: {role} already has the model {named[role]}"
            )
        named[role] = name
    if default and "*" in named:
        raise UsageError(
            f"--role-model *={named['*']}: --model {default} is the model of all other roles already"
        )
    if default:
        named = {"*": default, **named}
    return {role: ModelSpec.parse(name) for role, name in named.items()}


def key_and_value(text: str, form: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``; ``form`` is the expected syntax for the error message."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not of the form {form}")
    return key.strip(), value


def check_confidence(confidence: float) -> None:
    """Refuse an invalid confidence level, such as a percentage."""
    if not 0 < confidence < 1:
        raise UsageError(
            f"--confidence must be between 0 and 1 (0.95 for 95 %), got {confidence:g}"
        )


def check_file(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed or written."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; give the name of a file")
    known = next(place for place in (path, *path.parents) if place.exists())
    if known != path and not known.is_dir():
        raise UsageError(f"{option} {path}: cannot be written, because {known} is a file")
    if not os.access(known, os.W_OK):
        raise UsageError(f"{option} {path}: cannot be written, because {known} is write-protected")


T = TypeVar("T")

GARBAGE_LOOKED_FOR = 5_000
"""The number of new objects, at most some MB, after which Python collects garbage."""


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, on uvloop if it is installed."""
    freeze_heap()
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop as new_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work())


def freeze_heap() -> None:
    """Exclude all current objects from later garbage collections, because they are permanent."""
    # Collect first, because frozen garbage is never freed.
    gc.collect()
    gc.freeze()
    # A call makes hundreds of objects that live as long as it does. With Python's default of 700,
    # the objects of all open calls would be scanned several times a second for nothing.
    gc.set_threshold(GARBAGE_LOOKED_FOR)


@contextmanager
def interruptible(
    message: str = "interrupted before the first call; nothing was started",
) -> Iterator[None]:
    """End with a message on Ctrl-C and SIGTERM, in parts of a command without an event loop."""
    try:
        with signals_interrupt():
            yield
    except KeyboardInterrupt:
        Output(stderr=True).print_line(message)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def exit_code(stopped: str | None, failed: int) -> ExitCode:
    """Return a command's exit code from its stop reason and the number of items without verdict."""
    codes = {"budget": ExitCode.BUDGET_REACHED, "interrupted": ExitCode.INTERRUPTED}
    return codes.get(
        stopped or "", ExitCode.SOME_FAILED if stopped or failed else ExitCode.ALL_JUDGED
    )


@dataclass(frozen=True, kw_only=True)
class CommandConfig(RunConfig):
    """The configuration of a command that judges: the limits of its runs, and its output."""

    verbose: bool = flag(panel=KEPT)
    """Print log events to standard error."""
    dry_run: bool = flag(panel=LIMITS)
    """Print an estimate of calls and cost, and exit."""
