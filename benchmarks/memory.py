"""Measure the memory of a run, and whether it grows with the number of items.

    python -m benchmarks.memory [--items 1000,11000,21000] [--concurrency 64]

It prints the peak resident memory of a fresh process for each number of items, and the growth per
10,000 items.
"""

from __future__ import annotations

from statistics import median

from .scenario import (
    ASPECT,
    FIVE_CALLS,
    judge,
    middle,
    options,
    score_items,
    scratch,
    show,
    show_machine,
    two_cores,
)
from .simulated_provider import simulated

HEADINGS = ("protocol", "items", "peak MiB", "MiB per 10,000 items more", "must", "goal")
CASES = {"debate": FIVE_CALLS, "single": ()}


def main() -> None:
    """The command line."""
    parser = options(__doc__, repeats=1)
    parser.add_argument("--items", default="1000,11000,21000", help="sizes of the runs, ascending")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--protocols", default="single", help=f"of {', '.join(CASES)}")
    arguments = parser.parse_args()
    sizes = (
        [100, 300, 500] if arguments.quick else [int(size) for size in arguments.items.split(",")]
    )
    show_machine()
    _, core = two_cores()
    rows: list[tuple[object, ...]] = []
    with scratch() as folder, simulated(core) as provider:
        for protocol in arguments.protocols.split(","):
            before: tuple[int, float] | None = None
            for size in sizes:
                data = score_items(folder / f"{size}.jsonl", size)
                more = (*CASES[protocol], *ASPECT, "--concurrency", str(arguments.concurrency))
                peaks = [
                    judge(
                        protocol, data, folder / f"{protocol}-{size}-{at}", provider, *more
                    ).peak_mib
                    for at in range(arguments.repeats)
                ]
                peak = median(peaks)
                grown = "" if before is None else 10_000 * (peak - before[1]) / (size - before[0])
                rows.append((protocol, f"{size:,}", middle(peaks), grown, "160; 5", "125; 2"))
                before = (size, peak)
    show("P5", HEADINGS, rows)


if __name__ == "__main__":
    main()
