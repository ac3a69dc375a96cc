"""What commands share: options, console, event loop, Ctrl-C, exit codes."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from ...state.errors import UsageError
from ...state.settings import ModelSpec
from ..run.shutdown import sigterm_interrupts

ALL_JUDGED, SOME_FAILED, BAD_USAGE, BUDGET_REACHED, INTERRUPTED = 0, 3, 2, 4, 130
PIPED_WIDTH = 120


def console() -> Console:
    """Where results are printed; wide enough for the tables where it is no terminal."""
    found = Console()
    return found if found.is_terminal or "COLUMNS" in os.environ else Console(width=PIPED_WIDTH)


def program() -> str:
    """The program as its user can call it again: by its name, or by the path it was called with."""
    return "jurygraph" if shutil.which("jurygraph") else sys.argv[0]


def settings_of(pairs: list[str]) -> dict[str, Any]:
    """Settings by name; ``inner.n=2`` sets one of those that a setting holds."""
    settings: dict[str, Any] = {}
    for key, value in (_pair(pair, "--set KEY=VALUE") for pair in pairs):
        *outer, name = key.split(".")
        held = settings
        for part in outer:
            held = held.setdefault(part, {})
            if not isinstance(held, dict):
                raise UsageError(f"--set {key}={value}: {part} was given as a whole before; give one of them")
        held[name] = value
    return settings


def models_of(everybody: str | None, pairs: list[str]) -> dict[str, ModelSpec]:
    """Role to model; ``"*"`` for all."""
    named = {"*": everybody} if everybody else {}
    named.update(_pair(pair, "--role-model ROLE=NAME") for pair in pairs)
    return {role: ModelSpec.parse(name) for role, name in named.items()}


def _pair(text: str, form: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not of the form {form}")
    return key.strip(), value


T = TypeVar("T")
GOES_ON = {
    "budget": "goes on with a higher limit",
    "provider": "goes on when that is mended",
    "journal": "goes on when that is mended",
    "disk": "goes on when there is room",
}


def run_async(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """On a fast event loop where there is one; what has been loaded by now is no garbage."""
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(work())


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@contextmanager
def interruptible(told: str) -> Iterator[None]:
    """What Ctrl-C and SIGTERM are answered with as long as no loop is there to hear them."""
    try:
        with sigterm_interrupts():
            yield
    except KeyboardInterrupt:
        Console(stderr=True).print(told, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def exit_code(stopped: str | None, failed: int) -> int:
    """How a command ends, by why it stopped and how many items have no verdict."""
    codes = {"budget": BUDGET_REACHED, "interrupted": INTERRUPTED}
    if stopped in codes:
        return codes[stopped]
    return SOME_FAILED if stopped or failed else ALL_JUDGED


SPEED, LIMITS, KEPT = "How fast", "For how much", "What is kept"
Aspects = Annotated[
    list[str] | None, typer.Option(help="An aspect's name or a YAML file; default: all that have labels.")
]
Model = Annotated[str | None, typer.Option(help="The model of all roles, such as openai:gpt-4o-mini.")]
RoleModels = Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="The model of one role.")]
Pairs = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A setting of the protocols; PROTOCOL.KEY=VALUE: of one alone."
    ),
]
Replies = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|DIR",
        help="Recorded replies, or the folder of a past run, to be scored again without a call.",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Judge the first so many items only.")]
Repeats = Annotated[int, typer.Option(min=1, help="Judge everything so many times.")]
DataDir = Annotated[Path | None, typer.Option(help="Folder with a published dataset's files.")]
MaxChars = Annotated[int, typer.Option(min=1, help="The longest text that an item may have.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the results; the same one again resumes.", rich_help_panel=KEPT),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print what the log file gets, and more.", rich_help_panel=KEPT)
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what it would take, and do nothing.", rich_help_panel=LIMITS),
]
