"""Measure where the time of a call goes, by stage.

    python -m benchmarks.profiling [--protocols debate,samre] [--items 200] [--concurrency 64]
    [--functions 0]

Runs each protocol like the command line, against a provider that answers at once: first normally,
for the CPU time of a call, then under the standard library's deterministic profiler, for the shares
of the stages. The profiler slows everything, small functions most. So shares are only a hint where
to look, and the number of Python functions is the figure to compare between versions. The journal
writes in its own thread, which is included in the CPU time but not in the shares.
"""

from __future__ import annotations

import cProfile
import os
import pstats
import re
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from jurygraph.eval import aevaluate
from jurygraph.eval.cli.runtime import run_async

from .scenario import (
    ASPECT,
    FIVE_CALLS,
    MODEL,
    compare_items,
    options,
    score_items,
    scratch,
    show,
    show_machine,
    two_cores,
)
from .simulated_provider import simulated

STAGES = (
    (
        "LangGraph: runs, callbacks, config",
        r"/langgraph/_internal/_(?:runnable|config)\.py|/langchain_core/(?:callbacks|tracers|runnables)/|/langsmith/",
    ),
    ("LangGraph: scheduling and state", r"/langgraph/"),
    (
        "graphs: nodes, routers, state",
        r"/graphs/|/state/(?:transcript|graph_state|usage)\.py",
    ),
    (
        "tasks, settings, verdicts",
        r"/state/|/nodes/(?:bound_judge|verdicts)\.py",
    ),
    ("prompts", r"/nodes/prompt_\w+\.py|/nodes/delimiters\.py|/jinja2/"),
    (
        "reply schemas and reading",
        r"/nodes/replies/|/nodes/(?:output_schemas|courtroom\w*|repairs)\.py",
    ),
    ("replies", r"/nodes/models/(?:responses|prices)\.py"),
    (
        "limits, budget, retries",
        r"/nodes/models/(?:rate_limiter|retry)\.py|/eval/run/calls/(?:budget|call_pipeline)\.py",
    ),
    ("journal", r"/eval/journal/"),
    ("HTTP", r"/(?:aiohttp|httpx2?|httpcore2?|h11|anyio|yarl|multidict|propcache)/"),
    (
        "client: request and response",
        r"/nodes/models/|/langchain_openai/|/langchain_core/|/openai/",
    ),
    ("agents", r"/nodes/"),
    ("items, results, progress", r"/eval/|/benchmarks/"),
    ("event loop", r"/asyncio/|/uvloop/|/selectors\.py"),
)
"""The stage of a file: the first match counts. Other functions count for the calling stage."""

LOOP = "event loop"
WAITING = "waiting"
OTHER = "other"


@cache
def stage_of(code: CodeType | str) -> str | None:
    """Return the stage of a function; None if it counts for its caller, such as a built-in one."""
    if isinstance(code, str):
        named = (
            (WAITING, r"epoll|select\.|acquire|uvloop.*run"),
            (LOOP, r"Context|uvloop|_asyncio"),
            ("HTTP", r"socket"),
        )
        return next((stage for stage, pattern in named if re.search(pattern, code)), None)
    return next((stage for stage, pattern in STAGES if re.search(pattern, code.co_filename)), None)


def by_stage(profiler: cProfile.Profile) -> dict[str, tuple[float, int]]:
    """Return own seconds and function calls of each stage, without the stages that it calls."""
    seconds: defaultdict[str, float] = defaultdict(float)
    count: defaultdict[str, int] = defaultdict(int)

    def add(stage: str, spent: float, calls: int) -> None:
        seconds[stage] += spent
        count[stage] += calls

    for entry in profiler.getstats():
        if stage := stage_of(entry.code):
            add(stage, entry.inlinetime, entry.callcount)
        for inner in entry.calls or ():
            if stage_of(inner.code) is None:
                add(stage or OTHER, inner.inlinetime, inner.callcount)
    return {
        stage: (seconds[stage], count[stage])
        for stage in sorted(seconds, key=lambda name: -seconds[name])
    }


def judging(protocol: Any, folder: Path, items: int, concurrency: int) -> Callable[[], int]:
    """Make a function that judges generated items and returns the number of calls."""
    chosen: dict[str, Any] = {"models": {"*": MODEL}, "concurrency": concurrency}
    if protocol in ("samre", "more", "faireval", "baseline"):
        data = compare_items(folder / f"{protocol}.jsonl", items)
    else:
        data, chosen["aspects"] = score_items(folder / f"{protocol}.jsonl", items), [ASPECT[1]]
    if protocol == "debate":
        chosen["settings"] = dict(pair.split("=") for pair in FIVE_CALLS[1::2])
    runs = iter(range(100))

    def judge() -> int:
        out = folder / f"{protocol}-{next(runs)}"
        done = run_async(lambda: aevaluate(protocol, data, out=out, **chosen))
        if done.failed:
            raise SystemExit(f"{protocol} failed: {done.failed[0].error}")
        return sum(result.calls for result in done.results)

    return judge


def measured(judge: Callable[[], int], repeats: int) -> float:
    """Return the lowest CPU microseconds per call, all threads together, over several runs."""
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        calls = judge()
        taken.append(1e6 * (time.process_time() - started) / calls)
    return min(taken)


def report(protocol: str, judge: Callable[[], int], repeats: int, functions: int) -> None:
    """Print where the time of a protocol's calls goes."""
    judge()
    microseconds = measured(judge, repeats)
    profiler = cProfile.Profile()
    calls = profiler.runcall(judge)
    stages = by_stage(profiler)
    stages.pop(WAITING, None)
    _show(
        f"{protocol}: {microseconds:,.0f} us of the processor a call", stages, calls, microseconds
    )
    if functions:
        pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(functions)


def _show(
    title: str, stages: Mapping[str, tuple[float, int]], calls: int, microseconds: float
) -> None:
    whole = sum(spent for spent, _ in stages.values())
    rows = [
        (
            stage,
            f"{100 * spent / whole:.1f}",
            f"{microseconds * spent / whole:.0f}",
            f"{count / calls:.0f}",
        )
        for stage, (spent, count) in stages.items()
    ]
    total = sum(count for _, count in stages.values()) / calls
    show(
        title,
        ("stage", "%", "us a call", "functions a call"),
        [*rows, ("all", "100", f"{microseconds:.0f}", f"{total:.0f}")],
    )


def main() -> None:
    """The command line."""
    parser = options(__doc__)
    parser.add_argument("--protocols", default="debate,samre", help="with commas between")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument(
        "--functions", type=int, default=0, help="so many of the dearest are listed"
    )
    arguments = parser.parse_args()
    items = arguments.items // 10 if arguments.quick else arguments.items
    warnings.simplefilter("ignore")
    show_machine()
    _, core = two_cores()
    with scratch() as folder, simulated(core, words=12) as provider:
        os.environ.update(provider.environment)
        for protocol in arguments.protocols.split(","):
            judge = judging(protocol, folder, items, arguments.concurrency)
            report(protocol, judge, arguments.repeats, arguments.functions)


if __name__ == "__main__":
    main()
