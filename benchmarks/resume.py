"""Measure what finding the judged verdicts of a run costs when it is started again.

    python -m benchmarks.resume [--verdicts 10000,100000,1000000]

The runs are generated as in ``large_run``, and all verdicts exist. Each size is a fresh process. The
last column is the memory per verdict by which the peak exceeds that of the smallest run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jurygraph.eval.results.run_folder import run_folder
from jurygraph.eval.run.calls.call_pipeline import RunContext
from jurygraph.eval.run.plan.plan import plan
from jurygraph.eval.run.runner import Run

from .large_run import ASPECTS, PROTOCOLS, make_large_run
from .scenario import run, scratch, show, show_machine

STEPS = ("plan", "keys", "progress", "end")
HEADINGS = (
    *("verdicts", "plan: us each", "keys: us each", "progress: us each", "end: us each"),
    *("after the plan: us each", "peak MiB", "bytes each"),
)


def start_again(folder: Path) -> None:
    """Find what is judged, and print the CPU seconds of each step as JSON."""
    taken: dict[str, float] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        taken[name] = time.process_time() - started

    async def measure() -> None:
        with step("plan"):
            planned = plan(
                list(PROTOCOLS["score"]),
                folder.with_suffix(".jsonl"),
                aspects=list(ASPECTS["score"]),
                models={"*": "offline"},
                out=folder,
            )
        context = RunContext()
        async with run_folder(planned.folder, planned.manifest, context.config) as files:
            with step("keys"):
                assert files.results is not None
                files.results.ok_keys()
            with step("progress"):
                again = Run(planned, files, context)
            with step("end"):
                again.evaluation()
            assert context.counts.judged == len(planned)

    with warnings.catch_warnings(action="ignore"):
        asyncio.run(measure())
    print(json.dumps(taken))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--verdicts", default="10000,100000", help="sizes of the runs, ascending")
    parser.add_argument("--folder", type=Path, help="measure this run alone, in this process")
    options = parser.parse_args()
    if options.folder is not None:
        start_again(options.folder)
        return
    show_machine()
    rows: list[tuple[object, ...]] = []
    smallest: tuple[int, float] | None = None
    with scratch() as scratched:
        for size in map(int, options.verdicts.split(",")):
            folder = scratched / f"run-{size}"
            with warnings.catch_warnings(action="ignore"):
                make_large_run(folder, size, failed=0.0)
            again = run([sys.executable, "-m", "benchmarks.resume", "--folder", str(folder)], {})
            if again.code:
                raise SystemExit(again.output[-3000:])
            taken = json.loads(again.output.splitlines()[-1])
            each = [1e6 * taken[name] / size for name in STEPS]
            smallest = smallest or (size, again.peak_mib)
            more = size - smallest[0]
            slope = (again.peak_mib - smallest[1]) * 2**20 / more if more else None
            rows.append(
                (
                    f"{size:,}",
                    *(f"{one:.1f}" for one in each),
                    f"{sum(each[1:]):.1f}",
                    f"{again.peak_mib:.0f}",
                    "-" if slope is None else f"{slope:.0f}",
                )
            )
    show("Resuming", HEADINGS, rows)


if __name__ == "__main__":
    main()
