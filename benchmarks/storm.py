"""Compare a run against a faulty provider with the same run against a reliable one.

    python -m benchmarks.storm [--calls 10000] [--concurrency 64] [--protocol debate] [--attempts
    12]

In the storm 30 % of calls fail: 10 % with 429 and Retry-After, 8 % with a server error, 5 % by a
lost connection, 3 % hang forever, 2 % break off in the body, and 2 % come with status 200 and no
completion (HTML, JSON without choices, an error). The request and how often it came determine the
fault, so each run has the same storm. The exit code is 1 if an item was lost or a result differs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from .durability import without_times
from .scenario import (
    ASPECT,
    FIVE_CALLS,
    Finished,
    judging,
    options,
    results_of,
    run,
    score_items,
    scratch,
    show,
    show_machine,
    two_cores,
)
from .simulated_provider import simulated

CALLS_OF_AN_ITEM = 5


def weather(
    folder: Path, faults: str, command: list[str], latency_ms: float, core: int | None
) -> dict[str, Any]:
    """Run once; return the results and the provider's counts."""
    with simulated(
        core, latency_ms=latency_ms, spread=0.3, faults=faults, retry_after=0.5
    ) as provider:
        finished = run(command, provider.environment, folder)
        return {
            "finished": finished,
            "seen": provider.stats(),
            "results": results_of(_out(command)),
        }


def _out(command: list[str]) -> Path:
    return Path(command[command.index("--out") + 1])


def by_item(results: list[dict[str, Any]]) -> dict[str, str]:
    """Each result without times, or the word ``failed``."""
    return {
        result["item"]: json.dumps(without_times(result)) if result["status"] == "ok" else "failed"
        for result in results
    }


def row(name: str, came: dict[str, Any]) -> tuple[object, ...]:
    """A line of the table."""
    seen = came["seen"]
    finished = came["finished"]
    assert isinstance(finished, Finished)
    failed = sum(result["status"] != "ok" for result in came["results"])
    faults = ", ".join(f"{kind} {count}" for kind, count in sorted(seen["faults"].items()))
    return name, finished.code, seen["requests"], seen["answered"], faults, failed, finished.seconds


def main() -> None:
    """The command line."""
    parser = options(__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument(
        "--attempts", type=int, default=12, help="of a call; 30 %% ^ attempts are lost"
    )
    parser.add_argument("--timeout", type=float, default=2.0, help="of a call, in seconds")
    arguments = parser.parse_args()
    items = (arguments.calls // 10 if arguments.quick else arguments.calls) // CALLS_OF_AN_ITEM
    retry_policy = ("--timeout", str(arguments.timeout), "--attempts", str(arguments.attempts))
    show_machine()
    _, core = two_cores()
    with scratch() as folder:
        data = score_items(folder / "items.jsonl", items)
        came = {}
        for faults in ("none", "storm"):
            command = judging(
                "debate",
                data,
                folder / faults,
                *FIVE_CALLS,
                *ASPECT,
                *retry_policy,
                *("--concurrency", str(arguments.concurrency)),
            )
            came[faults] = weather(folder, faults, command, arguments.latency_ms, core)
    headings = ("weather", "exit code", "requests", "answered", "faults", "items lost", "seconds")
    show("storm", headings, [row(name, one) for name, one in came.items()])
    fair, foul = (by_item(came[name]["results"]) for name in ("none", "storm"))
    lost = [item for item in fair if foul.get(item, "failed") == "failed"]
    changed = [item for item in fair if item not in lost and foul[item] != fair[item]]
    print(f"items lost: {len(lost)} of {items}; results changed: {len(changed)}")
    for result in [result for result in came["storm"]["results"] if result["status"] != "ok"][:5]:
        print(f"lost: {result['item']}: {result['error'][:300]}")
    for item in changed[:3]:
        print(f"changed: {fair[item][:400]}\n     to: {foul[item][:400]}")
    sys.exit(bool(lost or changed or len(fair) != items))


if __name__ == "__main__":
    main()
