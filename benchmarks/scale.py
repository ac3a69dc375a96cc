"""Extrapolate time, memory, disk and money of a very large run from measured slopes.

    python -m benchmarks.scale [--lines 10000,100000,1000000] [--target 10000000] [--items 200,600]

A debate of five calls is judged on a simulated provider at two sizes: what an item more takes is
the slope. Reading is measured on generated runs of ``--lines`` verdicts. The slope between two
sizes predicts the next size, and the table shows how far the prediction was off. Money is computed,
not measured: ``--tokens-in`` and ``--tokens-out`` for each call, at ``--prices``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from .large_run import make_large_run
from .scenario import (
    ASPECT,
    FIVE_CALLS,
    PROGRAM,
    judge,
    options,
    run,
    score_items,
    scratch,
    show,
    show_machine,
    two_cores,
)
from .simulated_provider import simulated

CALLS = 5
"""The calls of a debate whose Critic always objects."""


class Measured(NamedTuple):
    """What a stage took.

    Attributes:
        size: the number of items or verdicts.
        cpu_seconds: its user and system CPU time.
        peak_mib: its peak resident memory.
    """

    size: int
    cpu_seconds: float
    peak_mib: float


class Line(NamedTuple):
    """A straight line through two measurements."""

    start: float
    slope: float

    @classmethod
    def through(cls, first: tuple[int, float], second: tuple[int, float]) -> Line:
        """Return the line through two points of a size and a value."""
        slope = (second[1] - first[1]) / (second[0] - first[0])
        return cls(first[1] - slope * first[0], slope)

    def at(self, size: int) -> float:
        """Return the value at a size."""
        return self.start + self.slope * size


READERS: dict[str, Callable[[Path, list[str]], list[str]]] = {
    "agree": lambda folder, _: ["agree", str(folder)],
    "show": lambda folder, _: ["show", str(folder), "item-0000001"],
    "report --html": lambda folder, _: [
        *("report", str(folder), "--html", str(folder.with_suffix(".html")), "--resamples", "200"),
    ],
    "resume": lambda folder, command: ["run", *command, "--out", str(folder)],
}
"""The commands that read a run."""


def read(folder: Path, sizes: list[int]) -> dict[str, list[Measured]]:
    """Measure the readers on runs of these numbers of verdicts."""
    found: dict[str, list[Measured]] = {name: [] for name in READERS}
    for size in sizes:
        place = folder / f"of-{size}"
        command = make_large_run(place, size, failed=0.0)
        for name, words in READERS.items():
            done = run([*PROGRAM, *words(place, command)], {}, folder)
            if done.code:
                raise SystemExit(f"{name} ended with {done.code}:\n{done.output[-2000:]}")
            found[name].append(Measured(size, done.cpu_seconds, done.peak_mib))
    return found


class Judging(NamedTuple):
    """The cost of judging items.

    Attributes:
        points: time and memory at each size.
        result_bytes: the bytes of an item in ``results.jsonl``.
        journal_bytes: the bytes of an item in the journal.
    """

    points: list[Measured]
    result_bytes: float
    journal_bytes: float


def judged(folder: Path, sizes: list[int]) -> Judging:
    """Judge these numbers of items."""
    found = []
    for size in sizes:
        with simulated(two_cores()[1]) as provider:
            data = score_items(folder / f"items-{size}.jsonl", size)
            out = folder / f"judged-{size}"
            done = judge("debate", data, out, provider, *FIVE_CALLS, *ASPECT)
        found.append(Measured(size, done.cpu_seconds, done.peak_mib))
    journal = sum(path.stat().st_size for path in out.glob("journal.sqlite*"))
    return Judging(found, (out / "results.jsonl").stat().st_size / size, journal / size)


def rows_of(stage: str, points: list[Measured], target: int) -> list[tuple[object, ...]]:
    """Return a row for CPU time and one for memory, with the prediction of the largest size."""
    rows: list[tuple[object, ...]] = []
    for what, known in (
        ("CPU s", [(point.size, point.cpu_seconds) for point in points]),
        ("peak MiB", [(point.size, point.peak_mib) for point in points]),
    ):
        lines = [Line.through(*pair) for pair in pairwise(known)]
        last = lines[-1]
        off = ""
        if len(lines) > 1:
            predicted = lines[-2].at(known[-1][0])
            off = f"{100 * (predicted / known[-1][1] - 1):+.0f} %"
        measured = ", ".join(f"{size:,}: {took:.3g}" for size, took in known)
        grows = last.slope > 0
        slope: object = 1e6 * last.slope if grows else "no growth seen"
        at_target = last.at(target) if grows else max(took for _, took in known)
        rows.append((stage, what, measured, off, slope, at_target))
    return rows


def main() -> None:
    """The command line."""
    parser: argparse.ArgumentParser = options(__doc__, repeats=1)
    parser.add_argument("--lines", default="10000,100000,1000000", help="sizes of runs to read")
    parser.add_argument("--items", default="200,600", help="numbers of items to judge")
    parser.add_argument("--target", type=int, default=10_000_000, help="items of the large run")
    parser.add_argument("--tokens-in", type=int, default=1000, help="of a call")
    parser.add_argument("--tokens-out", type=int, default=100, help="of a call")
    parser.add_argument("--prices", default="0.15,0.60", help="US$ per million tokens in, out")
    arguments = parser.parse_args()
    lines = [int(size) for size in arguments.lines.split(",")]
    items = [int(size) for size in arguments.items.split(",")]
    if arguments.quick:
        lines = [1000, 3000, 10_000]
        items = [20, 60]
    target = arguments.target
    show_machine()
    with scratch() as folder:
        judging = judged(folder, items)
        reading = read(folder, lines)
    rows = rows_of("judge", judging.points, target)
    for stage, points in reading.items():
        rows += rows_of(stage, points, target)
    headings = ("stage", "", "measured", "prediction off", "per million", f"at {target:,}")
    show("scale", headings, rows)
    calls = CALLS * target
    price_in, price_out = map(float, arguments.prices.split(","))
    money = calls * (arguments.tokens_in * price_in + arguments.tokens_out * price_out) / 1e6
    show(
        "disk and money",
        ("", "each", f"at {target:,}"),
        [
            (
                "results.jsonl",
                f"{judging.result_bytes:.0f} bytes an item",
                f"{judging.result_bytes * target / 1e9:.0f} GB",
            ),
            (
                "journal",
                f"{judging.journal_bytes / CALLS:.0f} bytes a call",
                f"{judging.journal_bytes * target / 1e9:.0f} GB",
            ),
            ("calls", CALLS, f"US$ {money:,.0f}"),
        ],
    )


if __name__ == "__main__":
    main()
