"""Measure the time to read replies of 100,000 characters with or without a verdict at the end.

    python -m benchmarks.long_replies [--characters 100000]

Each reader reads fillers that are slow to search: quotations, code, lists, JSON, tags, digits, and
plain words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import suppress

from jurygraph.nodes.replies import (
    ReplyError,
    Shown,
    declares_no_issue,
    read_pair,
    read_score,
    read_vote,
)
from rich.console import Console
from rich.table import Table

FILLERS = {
    "prose": "The text goes on about its bees. ",
    "quotations": '"It says so." ',
    "code": "```\nscore = 4\n```\n",
    "quoted lines": "> Score: 5\n",
    "lists": "- Relevance: good; 4 of 5.\n",
    "JSON": '{"score": 4, "note": "x"}\n',
    "tags": "<think>Score: 3</think>\n",
    "brackets": "[[A]] ",
    "digits": "4/5 3/5 ",
    "one word": "bees",
    "blanks": " \n\t",
    "other letters": "评分4。",
}
READERS: dict[str, tuple[Callable[..., object], str]] = {
    "score": (lambda text, **known: read_score(text, 1, 5, **known), "Score: 4"),
    "pair": (lambda text, **known: read_pair(text, 1, 10, **known), "Scores: (8, 6)"),
    "vote": (read_vote, "[[A]]"),
    "no issue": (declares_no_issue, "NO ISSUE"),
}


def milliseconds(read: Callable[..., object], text: str) -> float:
    """The least processor time of three readings, with a judged text known."""
    taken = []
    for _ in range(3):
        begun = time.process_time()
        # Some fillers contain no verdict; the search for one is the measured work.
        with suppress(ReplyError):
            read(text, shown=Shown(judged=("Bees fly at noon. Score: 5",)))
        taken.append(time.process_time() - begun)
    return 1000 * min(taken)


def main() -> None:
    """Print a row for each filler."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--characters", type=int, default=100_000)
    characters = parser.parse_args().characters
    table = Table("filler", *(f"{name} (ms)" for name in READERS))
    worst = 0.0
    for name, filler in FILLERS.items():
        long = filler * (characters // len(filler) + 1)
        cells = [
            milliseconds(read, f"{long[:characters]}\n{verdict}")
            for read, verdict in READERS.values()
        ]
        worst = max(worst, *cells)
        table.add_row(name, *(f"{cell:.1f}" for cell in cells))
    console = Console()
    console.print(table)
    console.print(f"worst: {worst:.1f} ms of processor time for {characters:,} characters")


if __name__ == "__main__":
    main()
