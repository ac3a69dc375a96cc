"""Compare the calls of a sweep whose cells share a journal with those of separate cells.

    python -m benchmarks.economy [--items 20] [--rounds 1,2,3,4,5] [--personas strict,moderate,...]

A cell is a debate with its own settings: rounds x personas x tie-breaker on and off. In the first
sweep each cell has its own journal, in the second all share one. The provider counts the calls.
Debates whose settings differ only in how they end share their first turns, which should be paid for
once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jurygraph.eval import evaluate

from .scenario import ASPECT, MODEL, options, score_items, scratch, show, show_machine
from .simulated_provider import Simulated, simulated

PERSONAS = "strict,moderate,weak,plain,sophisticated"


def cells(rounds: Sequence[str], personas: Sequence[str]) -> Iterator[Any]:
    """The settings of each cell."""
    for n, persona, tie_breaker in itertools.product(rounds, personas, (False, True)):
        yield {"n": int(n), "persona": persona, "tie_breaker": tie_breaker}


def calls(
    data: Path, provider: Simulated, settings: Sequence[Any], journal: Path | None
) -> tuple[int, list[str]]:
    """Return the number of calls of all cells, and their verdicts."""
    provider.reset()
    verdicts = []
    for number, cell in enumerate(settings):
        done = evaluate(
            "debate",
            data,
            aspects=[ASPECT[1]],
            settings=cell,
            models={"*": MODEL},
            out=data.parent / f"{'shared' if journal else 'alone'}-{number}",
            journal=journal,
            concurrency=64,
        )
        verdicts += [
            f"{result.item} {result.score_by_round} {result.score}" for result in done.results
        ]
    requests: int = provider.stats()["requests"]
    return requests, verdicts


def main() -> None:
    """The command line."""
    parser = options(__doc__)
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--rounds", default="1,2,3,4,5")
    parser.add_argument("--personas", default=PERSONAS)
    arguments = parser.parse_args()
    rounds = arguments.rounds.split(",")
    personas = arguments.personas.split(",")
    settings = list(cells(rounds[:2], personas[:2]) if arguments.quick else cells(rounds, personas))
    show_machine()
    rows: list[tuple[object, ...]] = []
    for critic, told in (
        ("objects", "no Critic gives in"),
        ("mixed", "one objection in four is the last"),
    ):
        with scratch() as folder, simulated(critic=critic) as provider:
            os.environ.update(provider.environment)
            data = score_items(folder / "items.jsonl", arguments.items)
            alone, verdicts = calls(data, provider, settings, None)
            shared, again = calls(data, provider, settings, folder / "journal.sqlite")
        same = "yes" if sorted(verdicts) == sorted(again) else "NO"
        rows.append(
            (f"{len(settings)} cells, {told}", alone, shared, shared / alone, same, 0.5, 0.3)
        )
    headings = (
        "sweep",
        "calls one by one",
        "calls on one journal",
        "ratio",
        "same verdicts",
        "must",
        "goal",
    )
    show("E2", headings, rows)


if __name__ == "__main__":
    main()
