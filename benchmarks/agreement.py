"""Measure the time and memory of computing agreement with annotators, including intervals.

    python -m benchmarks.agreement [--rows 100000] [--resamples 1000] [--quick]

It computes Pearson, Spearman and Kendall over rows, and within groups if there are any, each with
its bootstrap interval: in a fresh process per case, then by ``jurygraph agree`` from a file. The
scores are random with a fixed seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
from jurygraph.eval import agreement
from jurygraph.eval.results.agreement import Resampling
from numpy.typing import NDArray

from .scenario import middle, module, options, run, scratch, show, show_machine

HEADINGS = ("scores", "groups of", "what", "seconds", "of the processor", "peak MiB", "wanted")
CASES = [(kind, size) for kind in ("continuous", "1 to 5") for size in (1, 16)]
_AGREE = (
    sys.executable,
    "-c",
    "from jurygraph.eval.cli.app import main; main()",
    "agree",
    "--json",
)


def main() -> None:
    """The command line."""
    parser = options(__doc__, repeats=3)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--resamples", type=int, default=1_000)
    parser.add_argument("--case", nargs=2, metavar=("KIND", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    rows = 5_000 if arguments.quick else arguments.rows
    if arguments.case:
        _one(arguments.case[0], int(arguments.case[1]), rows, arguments.resamples)
        return
    show_machine()
    how = ("--rows", rows, "--resamples", arguments.resamples)
    table: list[tuple[object, ...]] = []
    with scratch() as folder:
        for kind, size in CASES:
            data = _file(folder / "scores.jsonl", kind, size, rows)
            command = [*_AGREE, "--resamples", str(arguments.resamples), str(data)]
            done = [
                run(module("agreement", *how, "--case", kind, size), {})
                for _ in range(arguments.repeats)
            ]
            whole = [run(command, {}) for _ in range(arguments.repeats)]
            seconds = [float(each.output.strip().splitlines()[-1]) for each in done]
            for what, runs, spent, wanted in (
                ("computing", done, seconds, "10 s; 1,000 MiB"),
                ("jurygraph agree", whole, [each.seconds for each in whole], ""),
            ):
                cpu, peak = (
                    median(values)
                    for values in zip(*((r.cpu_seconds, r.peak_mib) for r in runs), strict=True)
                )
                table.append((kind, size, what, middle(spent), cpu, f"{peak:.0f}", wanted))
    show(f"{rows:,} rows, {arguments.resamples:,} resamples", HEADINGS, table)


def _columns(kind: str, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A judge's and people's scores, which go together as they often do."""
    random = np.random.default_rng(0)
    judged = random.normal(3, 1, rows)
    human = judged + random.normal(0, 1, rows)
    if kind == "1 to 5":
        judged = np.clip(np.round(judged), 1, 5)
        human = np.clip(np.round(human), 1, 5)
    return judged, human


def _file(path: Path, kind: str, size: int, rows: int) -> Path:
    judged, human = _columns(kind, rows)
    with path.open("w", encoding="utf-8") as file:
        for at in range(rows):
            row = {"item": f"i{at}", "score": float(judged[at]), "human": float(human[at])}
            if size > 1:
                row["group"] = f"g{at // size}"
            file.write(json.dumps(row) + "\n")
    return path


def _one(kind: str, size: int, rows: int, resamples: int) -> None:
    """Compute one case, and print how many seconds it took."""
    judged, human = _columns(kind, rows)
    columns = zip(judged.tolist(), human.tolist(), strict=True)
    scores = [
        {"score": score, "human": label, "group": f"g{at // size}" if size > 1 else None}
        for at, (score, label) in enumerate(columns)
    ]
    started = time.perf_counter()
    agreement(scores, Resampling(resamples))
    print(f"{time.perf_counter() - started:.2f}")


if __name__ == "__main__":
    main()
