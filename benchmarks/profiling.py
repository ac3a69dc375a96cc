"""Where the runner's time goes, part by part.

    python -m benchmarks.profiling [--protocol debate] [--items 400] [--concurrency 64] [--functions 25]

A run against a provider that answers at once, under the standard library's deterministic profiler, which makes
everything slower, small functions most: shares are a hint at where to look, not a measurement. The journal writes in
a thread of its own, which is not in them.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import pstats
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from jurygraph.eval import aevaluate

from .scenario import ASPECT, FIVE_CALLS, MODEL, options, score_items, scratch, show, show_machine, two_cores
from .simulated_provider import simulated

PARTS = (
    ("jurygraph: graphs", r"jurygraph/graphs/|main/graphs/"),
    ("jurygraph: prompts and fences", r"/nodes/(?:prompt_templates|prompt_context|delimiters)\.py"),
    ("jurygraph: reading replies", r"/nodes/replies/|/nodes/output_schemas\.py"),
    ("jurygraph: journal", r"/eval/journal/"),
    (
        "jurygraph: limits and retries",
        r"/nodes/models/(?:rate_limiter|retry|send)\.py|/eval/run/(?:budget|call_pipeline)\.py",
    ),
    ("jurygraph: client", r"/nodes/models/"),
    ("jurygraph: agents", r"/nodes/"),
    ("jurygraph: runner, data, results", r"/eval/"),
    ("jurygraph: state", r"/state/"),
    ("langgraph", r"/langgraph/"),
    ("langchain", r"/langchain_?\w*/|/langsmith/"),
    ("openai client", r"/openai/"),
    ("HTTP", r"/(?:aiohttp|httpx2?|httpcore2?|h11|anyio|yarl|multidict|sniffio|httptools)/"),
    ("jinja2", r"/jinja2/"),
    ("pydantic", r"/pydantic"),
    ("SQLAlchemy", r"/sqlalchemy/"),
    ("rich", r"/rich/"),
    ("event loop", r"/asyncio/|/selectors\.py|/uvloop/"),
    ("JSON", r"/json/|_json"),
)


def part_of(code: CodeType | str) -> str:
    """Which part a function belongs to."""
    if isinstance(code, str):
        return _builtin(code)
    return next((part for part, pattern in PARTS if re.search(pattern, code.co_filename)), "other Python")


def _builtin(name: str) -> str:
    if "epoll" in name or "select." in name or "acquire" in name:
        return "waiting"
    if "socket" in name:
        return "sockets"
    if "pydantic" in name.lower() or "SchemaValidator" in name or "SchemaSerializer" in name:
        return "pydantic"
    return "JSON" if "json" in name.lower() or "c_make_encoder" in name else "built-in functions"


def by_part(profiler: cProfile.Profile) -> dict[str, float]:
    """Seconds spent in each part itself, without what it calls."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for entry in profiler.getstats():
        seconds[part_of(entry.code)] += entry.inlinetime
    return dict(sorted(seconds.items(), key=lambda pair: -pair[1]))


def profiled(protocol: str, data: Path, concurrency: int, settings: Mapping[str, Any]) -> cProfile.Profile:
    """The profile of one run in this thread, which has made one before."""
    chosen: dict[str, Any] = {"aspects": [ASPECT[1]], "models": {"*": MODEL}, "settings": settings}
    asyncio.run(aevaluate(protocol, data, limit=2, out=data.parent / "warm", **chosen))
    profiler = cProfile.Profile()
    profiler.enable()
    asyncio.run(aevaluate(protocol, data, concurrency=concurrency, out=data.parent / "run", **chosen))
    profiler.disable()
    return profiler


def main() -> None:
    """The command line."""
    parser = options(__doc__, repeats=1)
    parser.add_argument("--protocol", default="debate")
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--functions", type=int, default=25, help="so many of the dearest are listed")
    arguments = parser.parse_args()
    items = arguments.items // 10 if arguments.quick else arguments.items
    settings = dict(pair.split("=") for pair in FIVE_CALLS[1::2]) if arguments.protocol == "debate" else {}
    show_machine()
    _, core = two_cores()
    with scratch() as folder, simulated(core) as provider:
        os.environ.update(provider.environment)
        data = score_items(folder / "items.jsonl", items)
        profiler = profiled(arguments.protocol, data, arguments.concurrency, settings)
        calls = provider.stats()["requests"]
    seconds = by_part(profiler)
    whole = sum(seconds.values())
    rows = [(part, spent, 100 * spent / whole, 1000 * spent / calls) for part, spent in seconds.items()]
    show(f"{arguments.protocol}, {calls} calls", ("part", "seconds", "%", "ms per call"), rows)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(arguments.functions)


if __name__ == "__main__":
    main()
