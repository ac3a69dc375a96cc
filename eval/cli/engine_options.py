"""Choose how a command spreads its run over several processes: the options of an engine."""

from __future__ import annotations

from typing import Annotated

import typer

from ...state.errors import UsageError
from ..engines.ray_engine import Ray

_PANEL = "Several processes"
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ray",
        help="Judge with several processes, on one machine or a Ray cluster; needs --journal postgresql://... "
        "--concurrency is for each of them, other limits for all together.",
        rich_help_panel=_PANEL,
    ),
]
EngineAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Ray cluster that is there, or auto. Default: RAY_ADDRESS, else one on this machine.",
        rich_help_panel=_PANEL,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Processes that judge. Default: one a CPU.", rich_help_panel=_PANEL
    ),
]
PartsOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR|URL",
        help="Has no effect any more: results come back to this process.",
        rich_help_panel=_PANEL,
    ),
]


def engine_of(name: str | None, address: str | None, workers: int | None, parts: str | None) -> Ray | None:
    """Return the engine that the options choose; ``None`` is this process alone."""
    if name is None:
        given = {"--engine-address": address, "--workers": workers, "--parts": parts}
        if needless := [option for option, value in given.items() if value is not None]:
            raise UsageError(f"{needless[0]} is an option of an engine: add --engine ray")
        return None
    if name != "ray":
        raise UsageError(f"no engine {name!r}; there is ray")
    return Ray(workers=workers, address=address, parts=parts)
