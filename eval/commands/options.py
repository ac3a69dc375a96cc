"""Options that commands share: what each is called, and what its help says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
JournalAt = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|URL",
        help="Where finished calls are kept, so that none is paid twice: a file, or postgresql://...; "
        "default: in the folder.",
        rich_help_panel=KEPT,
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Print what the log file gets, and more.", rich_help_panel=KEPT)
]

Concurrency = Annotated[
    int, typer.Option(min=1, help="Model calls in flight, at most.", rich_help_panel=SPEED)
]
RequestsPerMinute = Annotated[
    float | None, typer.Option(help="To one model, at most.", rich_help_panel=SPEED)
]
TokensPerMinute = Annotated[
    float | None, typer.Option(help="To and from one model, at most.", rich_help_panel=SPEED)
]
Timeout = Annotated[float, typer.Option(help="Seconds for one attempt at a call.", rich_help_panel=SPEED)]
Attempts = Annotated[int, typer.Option(min=1, help="At one call, at most.", rich_help_panel=SPEED)]
Grace = Annotated[
    float,
    typer.Option(min=0, help="Seconds for calls in flight to finish after Ctrl-C.", rich_help_panel=SPEED),
]

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say what it would take, and do nothing.", rich_help_panel=LIMITS),
]
MaxCost = Annotated[
    float | None, typer.Option(metavar="USD", help="Stop before it costs more.", rich_help_panel=LIMITS)
]
MaxCalls = Annotated[
    int | None, typer.Option(min=1, help="Stop before it takes more calls.", rich_help_panel=LIMITS)
]
MaxTokens = Annotated[
    int | None,
    typer.Option(min=1, help="Stop before it takes more tokens, in and out.", rich_help_panel=LIMITS),
]
