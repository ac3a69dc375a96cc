"""Share tools of the scenarios: items, processes with their cost, pinned cores, tables."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from .simulated_provider import Simulated
from .simulated_replies import prose

ROOT = Path(__file__).resolve().parents[1]
MODEL = "openai:sim-model"
FIVE_CALLS = ("--set", "n=2")
"""A debate whose Critic always objects: scorer, critic, scorer, critic, scorer."""

PROGRAM = (sys.executable, "-c", "from jurygraph.eval.cli.start import main; main()")
_PACKAGES = ("jurygraph", "openai", "langgraph", "langchain-core", "langchain-openai", "uvloop")


# Processes


@dataclass(frozen=True)
class Finished:
    """A process that has ended.

    Attributes:
        code: its exit code.
        seconds: its duration.
        cpu_seconds: its user and system CPU time.
        peak_mib: its peak resident memory.
        output: its output, including errors.
    """

    code: int
    seconds: float
    cpu_seconds: float
    peak_mib: float
    output: str


def run(command: Sequence[str], more: Mapping[str, str], folder: Path = ROOT) -> Finished:
    """Run a process to its end with ``more`` in its environment; return its cost."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output, scratch() as place:
        used = place / "used.json"
        started = time.perf_counter()
        code = subprocess.call(
            [*_MEASURED, str(used), *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(more),
            cwd=folder,
        )
        seconds = time.perf_counter() - started
        output.seek(0)
        printed = output.read()
        cpu, peak = json.loads(used.read_text(encoding="utf-8"))
    return Finished(code, seconds, cpu, peak / 1024, printed)


# The system counts the memory of the process that starts another as the other's. This one is large,
# so a small one starts it.
_MEASURED = (
    sys.executable,
    "-S",
    "-c",
    """
import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    file.write(f"[{used.ru_utime + used.ru_stime}, {used.ru_maxrss}]")
sys.exit(code if code >= 0 else 128 - code)
""",
)


def judging(protocol: str, data: Path, out: Path, *options: str, model: str = MODEL) -> list[str]:
    """The command that judges ``data`` with the simulated model, by this name."""
    return [
        *PROGRAM,
        "run",
        protocol,
        "--data",
        str(data),
        "--out",
        str(out),
        "--model",
        model,
        *options,
    ]


def judge(
    protocol: str,
    data: Path,
    out: Path,
    provider: Simulated,
    *options: str,
    model: str = MODEL,
) -> Finished:
    """Judge ``data`` in a fresh process, and have it succeed."""
    command = judging(protocol, data, out, *options, model=model)
    finished = run(command, provider.environment, out.parent)
    if finished.code:
        raise SystemExit(
            f"jurygraph run {protocol} ended with {finished.code}:\n{finished.output[-3000:]}"
        )
    return finished


def module(name: str, *arguments: object) -> list[str]:
    """The command that runs another module of this folder."""
    return [sys.executable, "-m", f"benchmarks.{name}", *map(str, arguments)]


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """This process's, without whatever would trace the calls or send them elsewhere."""
    foreign = ("OPENAI_", "GOOGLE_", "GEMINI_", "LANGSMITH_", "LANGCHAIN_", "OTEL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**kept, "COLUMNS": "120", "NO_PROXY": "127.0.0.1", **more}


def two_cores() -> tuple[int | None, int | None]:
    """Return a core for clients, to which this process is pinned, and one for the provider."""
    if not hasattr(os, "sched_setaffinity") or len(allowed := sorted(os.sched_getaffinity(0))) < 2:
        return None, None
    client = allowed[0]
    server = allowed[-1]
    os.sched_setaffinity(0, {client})
    return client, server


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for data and results that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="jurygraph-bench-") as folder:
        yield Path(folder)


# Items

ASPECT = ("--aspect", "coherence")


def score_items(path: Path, count: int, *, words: int = 25, labels: bool = False) -> Path:
    """Write this many generated, different texts to rate, each with a source."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            item: dict[str, Any] = {
                "id": f"item-{number}",
                "group": f"group-{number // 4}",
                "source": f"Text {number}. {prose(f'source {number}', words)}",
                "candidate": f"Summary {number}. {prose(f'candidate {number}', words // 2)}",
            }
            if labels:
                item["human"] = {"coherence": 1 + number * 7 % 5}
            file.write(json.dumps(item) + "\n")
    return path


def compare_items(path: Path, count: int, *, words: int = 25) -> Path:
    """Write this many questions with two answers each."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            item = {
                "id": f"question-{number}",
                "question": f"Question {number}: {prose(f'question {number}', words)}",
                "answer_1": prose(f"first {number}", words),
                "answer_2": prose(f"second {number}", words),
            }
            file.write(json.dumps(item) + "\n")
    return path


def results_of(out: Path) -> list[dict[str, Any]]:
    """The results of a run."""
    lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


# Output


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=140).print(table)


def show_machine() -> None:
    """Print the machine and the versions of the figures."""
    print(
        f"{_processor()}, {os.cpu_count()} cores; {platform.system()}, Python {platform.python_version()}"
    )
    print("; ".join(f"{name} {_version(name)}" for name in _PACKAGES))


def middle(values: Sequence[float]) -> str:
    """Return the median with the lowest and highest value."""
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def options(doc: str | None, *, repeats: int = 3) -> argparse.ArgumentParser:
    """The options that every scenario has."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes: a look, no measurement"
    )
    parser.add_argument(
        "--repeats", type=int, default=repeats, help="measure so many times and take the median"
    )
    return parser


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
