"""Provide what all commands share: console, event loop, Ctrl-C and exit codes."""

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
from rich.console import Console
from rich.text import Text

from ...state.errors import UsageError
from ...state.settings import ModelSpec
from ..calls.shutdown import signals_interrupt
from ..results.config import KEPT, LIMITS, RunConfig
from .option_sets import flag

if TYPE_CHECKING:
    from ..tables import Grid
    from ..tables.grid import CellValue

ALL_JUDGED, BAD_USAGE, SOME_FAILED, BUDGET_REACHED, GATE_NOT_MET, INTERRUPTED = 0, 2, 3, 4, 5, 130
PIPED_WIDTH = 120


class Output(Console):
    """The console of a command: tables and panels are printed to its width, lines in one piece.

    Brackets in a path, a name or an extra are no markup.
    """

    def __init__(self, width: int | None = None, stderr: bool = False) -> None:
        super().__init__(width=width, stderr=stderr, markup=False)

    def print_line(self, text: str, style: str = "") -> None:
        """Print a line as it is: a terminal breaks it."""
        self.print(Text(text, style), soft_wrap=True)

    def print_grids(self, grids: Iterable[Grid], gap: bool = True) -> None:
        """Print tables as wide as the terminal, with a blank line below each unless there is to be no ``gap``."""
        from ..tables import to_lines

        for grid in grids:
            self.print(to_lines(grid, self.width), end="\n\n" if gap else "\n")

    def print_list(
        self, headings: Iterable[str], rows: Iterable[tuple[CellValue, ...]], title: str = ""
    ) -> None:
        """Print a table of texts."""
        from ..tables import Grid, text_column

        self.print_grids([Grid(title, tuple(map(text_column, headings)), tuple(rows))])


def console() -> Output:
    """Make the console that results are printed on; outside a terminal it is wide enough for the tables."""
    # Redirected output has no width of its own: 80 columns would split most tables.
    output = Output()
    return output if output.is_terminal or "COLUMNS" in os.environ else Output(width=PIPED_WIDTH)


def program() -> str:
    """Return how the user can call this program again: its name, or the path that it was called with."""
    return "jurygraph" if shutil.which("jurygraph") else sys.argv[0]


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Parse ``KEY=VALUE`` pairs to settings by name; ``inner.n=2`` sets the field ``n`` of the setting ``inner``.

    >>> settings_of(['roles=["critic", "scientist"]', "inner.n=2"])
    {'roles': ['critic', 'scientist'], 'inner': {'n': '2'}}
    """
    settings: dict[str, Any] = {}
    whole: set[str] = set()
    for key, value in (key_and_value(pair, "--set KEY=VALUE") for pair in pairs):
        *outer, name = key.split(".")  # "wrapper.inner.n": the objects from outside to inside, then the field
        fields = settings
        for depth, part in enumerate(outer, start=1):
            if ".".join(outer[:depth]) in whole:
                raise UsageError(f"--set {key}={value}: {part} is already set as a whole; give only one")
            fields = fields.setdefault(part, {})
        if isinstance(fields.get(name), dict) and key not in whole:
            raise UsageError(f"--set {key}={value}: parts of {name} are already set; give only one")
        try:
            # Any other value than a list or an object is left to the setting to read.
            fields[name] = json.loads(value) if value.lstrip().startswith(("[", "{")) else value
        except ValueError as error:
            example = f"""write a list as '{key}=["a", "b"]', in single quotes"""
            raise UsageError(f"--set {key}={value}: not valid JSON ({error}); {example}") from None
        whole.add(key)
    return settings


def models_of(default: str | None, pairs: list[str]) -> dict[str, ModelSpec]:
    """Parse ``--model`` and ``--role-model`` to a model for each role; ``"*"`` stands for all other roles."""
    named = {"*": default} if default else {}
    named.update(key_and_value(pair, "--role-model ROLE=NAME") for pair in pairs)
    return {role: ModelSpec.parse(name) for role, name in named.items()}


def key_and_value(text: str, form: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``; ``form`` is what the error message asks for."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not of the form {form}")
    return key.strip(), value


def check_confidence(confidence: float) -> None:
    """Refuse a confidence level that is none, such as per cent."""
    if not 0 < confidence < 1:
        raise UsageError(f"--confidence must be between 0 and 1 (0.95 for 95 %), got {confidence:g}")


def check_file(option: str, path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed or written."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; give the name of a file")
    there = next(known for known in (path, *path.parents) if known.exists())
    if there != path and not there.is_dir():
        raise UsageError(f"{option} {path}: cannot be written, because {there} is a file")
    if not os.access(there, os.W_OK):
        raise UsageError(f"{option} {path}: cannot be written, because {there} is write-protected")


T = TypeVar("T")

GARBAGE_LOOKED_FOR = 5_000
"""After so many new objects, at most some MB, Python looks for those that nobody refers to any more."""


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, on uvloop where it is installed."""
    freeze_heap()
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with suppress(ImportError):
        from uvloop import new_event_loop as new_loop
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work())


def freeze_heap() -> None:
    """Take what is loaded by now out of all later garbage collections: it lives until the process ends."""
    # Collected first, since garbage that is frozen is never freed.
    gc.collect()
    gc.freeze()
    # A call makes hundreds of objects that live as long as it does. At Python's own 700, those of all calls in flight
    # would be looked through several times a second for nothing.
    gc.set_threshold(GARBAGE_LOOKED_FOR)


@contextmanager
def interruptible(message: str = "interrupted before the first call; nothing was started") -> Iterator[None]:
    """End with a message on Ctrl-C and SIGTERM, for the parts of a command that no event loop watches over."""
    try:
        with signals_interrupt():
            yield
    except KeyboardInterrupt:
        Output(stderr=True).print_line(message)
        raise typer.Exit(INTERRUPTED) from None


def exit_code(stopped: str | None, failed: int) -> int:
    """Return the exit code of a command, by why it stopped and how many items have no verdict."""
    codes = {"budget": BUDGET_REACHED, "interrupted": INTERRUPTED}
    return codes.get(stopped or "", SOME_FAILED if stopped or failed else ALL_JUDGED)


@dataclass(frozen=True, kw_only=True)
class CommandConfig(RunConfig):
    """How a command that judges is carried out: the limits of its runs, and what it prints."""

    verbose: bool = flag(panel=KEPT)
    """Print log events to standard error."""
    dry_run: bool = flag(panel=LIMITS)
    """Print an estimate of calls and cost, and exit."""
