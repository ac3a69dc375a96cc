"""Measure calls per second of several workers relative to one, with a slow provider.

    python -m benchmarks.workers --journal postgresql://... [--launcher ray|shards] [--workers 1,4]
    [--items 480] [--latency-ms 500]

With ``--launcher shards``, each worker is a process with ``--shard I/N``. The time from the first
request to the last reply counts. The start of Ray and its workers is left out and has its own
column. Each worker has the same number of items, so that all runs take equally long and the
start-up of workers weighs the same. Every run makes its own calls, so that the journal answers
none.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .scenario import (
    ASPECT,
    FIVE_CALLS,
    PROGRAM,
    judge,
    middle,
    options,
    results_of,
    run,
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
    with simulated(latency_ms=arguments.latency_ms, words=12) as provider:
        # Its address is new each time. It is part of the model's name, by which the journal
        # distinguishes calls.
        model = f"openai:sim-model?base_url={provider.url}"
        in_flight = ("--concurrency", str(arguments.concurrency))
        given = (*FIVE_CALLS, *ASPECT, *in_flight, "--journal", arguments.journal)
        started = time.perf_counter()
        if arguments.launcher == "ray":
            spread = ("--engine", "ray", "--workers", str(workers))
            judge("debate", data, out, provider, *given, *spread, model=model)
        else:
            with ThreadPoolExecutor(workers) as pool:
                shards = [
                    pool.submit(
                        judge,
                        "debate",
                        data,
                        out,
                        provider,
                        *given,
                        "--shard",
                        f"{number}/{workers}",
                        model=model,
                    )
                    for number in range(1, workers + 1)
                ]
                for shard in shards:
                    shard.result()
            out = folder / f"{out.name}-merged"
            merged = run(
                [*PROGRAM, "merge", str(data.with_suffix("")), "--out", str(out)], {}, folder
            )
            if merged.code:
                raise SystemExit(merged.output)
        seconds = time.perf_counter() - started
        seen = provider.stats()
    if len(results_of(out)) != items or seen["requests"] != 5 * items:
        raise SystemExit(f"{seen['requests']} requests, {len(results_of(out))} results")
    return seen["requests"] / seen["span_seconds"], seconds


def main() -> None:
    """The command line."""
    parser = options(__doc__, repeats=1)
    parser.add_argument(
        "--journal", required=True, metavar="URL", help="a Postgres database to fill"
    )
    parser.add_argument("--launcher", choices=("ray", "shards"), default="ray")
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
    show("workers", ("workers", "calls/s", "ideal", f"x {min(rates)}", "seconds in all"), rows)
    if {1, 4} <= rates.keys() and max(rates[4]) < GOAL * max(rates[1]):
        sys.exit(f"four workers are to reach {GOAL} x one")


if __name__ == "__main__":
    main()
