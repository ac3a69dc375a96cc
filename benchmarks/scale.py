"""Measure calls per second of several workers on Ray relative to one, with a slow provider.

    python -m benchmarks.scale --journal postgresql://... [--workers 1,4] [--items 480]
    [--latency-ms 500]

The time from the first request to the last reply counts. The start of Ray and its workers is left
out and has its own column. Each worker has the same number of items, so that all runs take equally
long and the start-up of workers weighs the same. Every run makes its own calls, so that the journal
answers none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .scenario import (
    ASPECT,
    FIVE_CALLS,
    judge,
    middle,
    options,
    results_of,
    score_items,
    scratch,
    show,
    show_machine,
)
from .simulated_provider import simulated

GOAL = 3.6
"""The goal for four workers relative to one."""


def measured(folder: Path, workers: int, arguments: Any) -> tuple[float, float]:
    """Judge the items; return the calls per second and the seconds of the command."""
    items = arguments.items * workers
    out = folder / f"{workers}-{len(list(folder.iterdir()))}"
    data = score_items(folder / f"{out.name}.jsonl", items)
    spread = (
        "--engine",
        "ray",
        "--workers",
        str(workers),
        "--concurrency",
        str(arguments.concurrency),
    )
    with simulated(latency_ms=arguments.latency_ms, words=12) as provider:
        # Its address is new each time. It is part of the model's name, by which the journal
        # distinguishes calls.
        model = ("--model", f"openai:sim-model?base_url={provider.url}", *FIVE_CALLS, *ASPECT)
        finished = judge(
            "debate", data, out, provider, *model, *spread, "--journal", arguments.journal
        )
        seen = provider.stats()
    if len(results_of(out)) != items or seen["requests"] != 5 * items:
        raise SystemExit(f"{seen['requests']} requests, {len(results_of(out))} results")
    return seen["requests"] / seen["span_seconds"], finished.seconds


def main() -> None:
    """The command line."""
    parser = options(__doc__, repeats=1)
    parser.add_argument(
        "--journal", required=True, metavar="URL", help="a Postgres database to fill"
    )
    parser.add_argument("--workers", default="1,4", help="numbers of workers")
    parser.add_argument(
        "--items", type=int, default=480, help="for each worker, of five calls in sequence"
    )
    parser.add_argument("--concurrency", type=int, default=16, help="of each worker")
    parser.add_argument("--latency-ms", type=float, default=500)
    arguments = parser.parse_args()
    arguments.items = arguments.items // 10 if arguments.quick else arguments.items
    show_machine()
    rows: list[tuple[object, ...]] = []
    rates: dict[int, list[float]] = {}
    with scratch() as folder:
        for workers in map(int, arguments.workers.split(",")):
            came = [measured(folder, workers, arguments) for _ in range(arguments.repeats)]
            rates[workers] = [rate for rate, _ in came]
            ideal = workers * arguments.concurrency * 1000 / arguments.latency_ms
            first = min(rates)
            times = max(rates[workers]) / max(rates[first])
            rows.append(
                (
                    workers,
                    middle(rates[workers]),
                    ideal,
                    times,
                    middle([seconds for _, seconds in came]),
                )
            )
    show("scale", ("workers", "calls/s", "ideal", f"x {min(rates)}", "seconds in all"), rows)
    if {1, 4} <= rates.keys() and max(rates[4]) < GOAL * max(rates[1]):
        sys.exit(f"four workers are to reach {GOAL} x one")


if __name__ == "__main__":
    main()
