"""Start LangGraph's development server for LangGraph Studio: the command ``jurygraph studio``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from ...graphs.engine.given_graphs import named
from ...graphs.engine.registry import is_reference, protocols
from ...graphs.wrappers import chat
from ...state.errors import UsageError
from .option_sets import argument, flag, option
from .runtime import console

KEPT_RUNS = Path(".langgraph_api", ".langgraph_ops.pckl")
"""The file in which ``langgraph dev`` stores runs and threads, below the current folder.

A new server would resume the unfinished runs of the earlier one, even a run that made the user stop
the server.
"""


HTTP_APP = "jurygraph.adapters.langgraph_server:app"
"""The server's HTTP app, which shortens the results of MCP tools."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The settings of the server."""

    host: str = option(metavar="HOST", default="127.0.0.1")
    """Address to listen on."""
    port: int = option(metavar="N", min=1, max=65535, default=2024)
    """Port to listen on."""
    env: Path | None = option(metavar="FILE")
    """File with environment variables such as OPENAI_API_KEY. Default: .env, if there is one."""
    jobs: int = option(metavar="N", min=1, default=10)
    """Maximum number of runs at a time."""
    reload: bool = flag()
    """Restart the server when a Python file in this folder changes."""
    browser: bool = flag(default=True, name="--browser/--no-browser")
    """Open Studio in the browser."""
    config: Path | None = option(metavar="FILE")
    """Write the configuration for `langgraph` to this file and start no server."""


def studio(
    graphs: list[str] | None = argument(
        "Graphs of your own to serve with the protocols: mine.py, mine=agent.py:graph, mine=package.module:graph.",
        "[NAME=]FILE[:OBJECT]",
        default=None,
    ),
    *,
    chosen: ServerOptions,
) -> None:
    """Serve all protocols to LangGraph Studio.

    The server can also be called over HTTP. Protocols of other installed packages are included. The
    server is `langgraph dev`, which keeps threads in memory. Threads and runs of an earlier server
    in the same folder are moved aside, so that none of those runs continues.

    It runs until Ctrl-C. Needs the extra studio: pip install "jurygraph[studio]".
    """
    written = json.dumps(configuration(graphs or [], chosen.env), indent=2) + "\n"
    if (file := chosen.config) is not None:
        file.write_text(written, encoding="utf-8")
        console().print_line(f"wrote {file}; to start the server: langgraph dev --config {file}")
        return
    if find_spec("langgraph_cli") is None or find_spec("langgraph_api") is None:
        raise UsageError('the server is not installed: pip install "jurygraph[studio]"')
    if KEPT_RUNS.is_file():
        aside = KEPT_RUNS.replace(KEPT_RUNS.with_suffix(".before"))
        console().print_line(
            f"threads and runs of an earlier server in this folder were moved to {aside}"
        )
    with TemporaryDirectory(prefix="jurygraph-studio-") as folder:
        file = Path(folder) / "langgraph.json"
        file.write_text(written, encoding="utf-8")
        options = ["--host", chosen.host, "--port", str(chosen.port)]
        # Always pass this on: without it, the server does one run at a time.
        options += ["--n-jobs-per-worker", str(chosen.jobs)]
        options += [] if chosen.browser else ["--no-browser"]
        options += [] if chosen.reload else ["--no-reload"]
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--config", str(file), *options]
        server = subprocess.Popen(command, env={"LANGGRAPH_CLI_NO_ANALYTICS": "1", **os.environ})
        # Otherwise the server would continue after the command.
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        while True:
            # The server also gets Ctrl-C, and reports what it does.
            with suppress(KeyboardInterrupt):
                raise typer.Exit(server.wait())


def configuration(own: Sequence[str], env: Path | None = None) -> dict[str, Any]:
    """Return the configuration of a server with all protocols and the user's own graphs.

    Args:
        own: graphs as ``NAME=FILE:OBJECT`` or ``NAME=MODULE:OBJECT``.
        env: a file with environment variables; by default ``.env`` of the current folder, if it
            exists.

    Raises:
        UsageError: a graph that does not exist, or a name that is taken.
    """
    served: dict[str, Any] = {"chat": {"path": f"{chat.__name__}:graph", "description": chat.ABOUT}}
    served |= {
        name: {"path": f"{module.__name__}:graph", "description": module.protocol.about}
        for name, module in protocols().items()
    }
    for given in own:
        if "=" not in given and is_reference(given):
            # The protocol's name comes from its file; the server needs the graph in it.
            path = given if ":" in given else f"{given}:graph"
            name = next(iter(named([given])))
        else:
            name, _, path = given.partition("=")
        source, _, attribute = path.rpartition(":")
        if not (name.isidentifier() and source and attribute.isidentifier()):
            raise UsageError(
                f"{given!r} is not a graph: write name=file.py:object or name=package.module:object"
            )
        if name in served:
            raise UsageError(
                f"{given!r}: there is already a graph called {name}; choose another name"
            )
        if source.endswith(".py"):
            file = Path(source).resolve()
            if not file.is_file():
                raise UsageError(f"{given!r}: there is no file {source}")
            path = f"{file}:{attribute}"
        served[name] = {"path": path}
    if env is not None and not env.is_file():
        raise UsageError(f"--env {env}: there is no such file")
    variables = env or Path(".env")
    return {
        # Find the user's modules in the current folder, like Python.
        "dependencies": [str(Path.cwd())],
        "graphs": served,
        "http": {"app": HTTP_APP},
        **({"env": str(variables.resolve())} if variables.is_file() else {}),
    }
