"""Measure the time of single items, one at a time, in a warmed-up process; for ``speed.py``.

    python -m benchmarks.critical_path PROTOCOL FOLDER [--set KEY=VALUE]... [--concurrency 16]

Prints JSON: the seconds and the number of rounds of each item. ``OPENAI_BASE_URL`` is the address
of the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jurygraph.eval import aevaluate

from .scenario import MODEL


async def measure(
    protocol: Any, files: Iterable[Path], settings: Any, concurrency: int
) -> list[Any]:
    """Judge one file after the other; the first warms up and does not count."""
    taken = []
    for path in files:
        started = time.perf_counter()
        done = await aevaluate(
            protocol, path, settings=settings, models={"*": MODEL}, concurrency=concurrency
        )
        seconds = time.perf_counter() - started
        if done.failed:
            raise SystemExit(f"{protocol}: {done.failed[0].error}")
        taken.append([seconds, done.results[0].rounds])
    return taken[1:]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("protocol")
    parser.add_argument("folder", type=Path, help="of files with one item each")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--concurrency", type=int, default=16)
    arguments = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in arguments.set)
    taken = asyncio.run(
        measure(
            arguments.protocol,
            sorted(arguments.folder.glob("*.jsonl")),
            settings,
            arguments.concurrency,
        )
    )
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
