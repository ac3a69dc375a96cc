"""Compare the cost of the runner with OpenAI's own client without any wrapper.

    python -m benchmarks.speed [--only cpu,replies,wall,logprobs,path,imports,linear] [--quick]
    [--repeats 3]

Each measurement uses a fresh process, with the client on one core and the simulated provider on
another, and the two clients in turns. Figures are medians with lowest and highest value. CPU cost
is the slope between a small and a large run, so that start-up is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Any

from .scenario import (
    ASPECT,
    FIVE_CALLS,
    Finished,
    compare_items,
    judge,
    middle,
    module,
    options,
    run,
    score_items,
    scratch,
    show,
    show_machine,
    two_cores,
)
from .simulated_provider import Simulated, simulated

Row = tuple[object, ...]
HEADINGS = ("figure", "case", "raw client", "jurygraph", "ratio", "must", "goal")

WORDS = 12
"""Words of each text in a reply; with the fixed parts, a debate's prompts are 1.5 to 3 KB long."""

RAW_FRAME = 120
"""Characters of a bare request without its prompt."""

DEBATE = ("debate", *FIVE_CALLS, *ASPECT)
CALLS_OF_A_DEBATE = 5


@dataclass(frozen=True)
class Bench:
    """Where and how thoroughly is measured."""

    folder: Path
    server_core: int | None
    repeats: int
    quick: bool

    def size(self, calls: int) -> int:
        """Return the number of calls; a tenth of it with ``--quick``."""
        return max(1, calls // 10) if self.quick else calls

    def out(self) -> Path:
        """A folder that no run has had."""
        return Path(mkdtemp(dir=self.folder)) / "run"

    def provider(self, **behaviour: Any) -> AbstractContextManager[Simulated]:
        """A simulated provider on the other core."""
        return simulated(self.server_core, **behaviour)


@dataclass(frozen=True)
class Measured:
    """One client's run: the process, and the provider's counts."""

    finished: Finished
    seen: dict[str, Any]


Client = Callable[[int], Finished]
"""Makes this many calls in its own process."""


def measured(client: Client, calls: int, provider: Simulated) -> Measured:
    """Measure a run of this many calls."""
    provider.reset()
    finished = client(calls)
    seen = provider.stats()
    if seen["requests"] < calls:
        raise SystemExit(f"{calls} calls were wanted, and {seen['requests']} made")
    return Measured(finished, seen)


def slope(small: Measured, large: Measured) -> float:
    """Milliseconds of the processor for each further call."""
    more = large.finished.cpu_seconds - small.finished.cpu_seconds
    calls: int = large.seen["requests"] - small.seen["requests"]
    return 1000 * more / calls


def raw(provider: Simulated, concurrency: int, characters: int, *more: object) -> Client:
    """OpenAI's own client, with prompts of this length."""

    def client(calls: int) -> Finished:
        sizes = ("--calls", calls, "--concurrency", concurrency, "--characters", characters)
        finished = run(module("raw_client", *sizes, *more), provider.environment)
        if finished.code:
            raise SystemExit(
                f"the raw client ended with {finished.code}:\n{finished.output[-3000:]}"
            )
        return finished

    return client


def ours(
    bench: Bench, provider: Simulated, concurrency: int, command: Sequence[str], each: int
) -> Client:
    """``jurygraph run`` with a journal of its own; ``each`` is how many calls an item takes."""

    def client(calls: int) -> Finished:
        data = score_items(bench.folder / f"items-{calls // each}.jsonl", calls // each)
        protocol, *more = command
        return judge(
            protocol, data, bench.out(), provider, *more, "--concurrency", str(concurrency)
        )

    return client


def length(client: Client, calls: int, provider: Simulated) -> int:
    """Return the characters of this client's request, so that the raw client can send as many."""
    seen = measured(client, calls, provider).seen
    characters: int = seen["characters"] // seen["requests"]
    return characters - RAW_FRAME


# Processor time, calls a second, connections


def cpu(bench: Bench) -> Iterator[Row]:
    """P1, P2, P6: a debate's calls relative to bare ones."""
    for latency, concurrency, calls in ((50, 64, 6400), (0, 16, 3200)):
        with bench.provider(latency_ms=latency, words=WORDS) as provider:
            mine = ours(bench, provider, concurrency, DEBATE, CALLS_OF_A_DEBATE)
            clients = (raw(provider, concurrency, length(mine, CALLS_OF_A_DEBATE, provider)), mine)
            pairs = list(_beside(bench, provider, clients, CALLS_OF_A_DEBATE * concurrency, calls))
        case = f"debate, L{latency} C{concurrency}"
        yield _compared(
            "P1 CPU per call, ms", case, [[slope(*one) for one in pair] for pair in pairs], 1.6, 0.9
        )
        rates = [
            [large.seen["requests"] / large.seen["span_seconds"] for _, large in pair]
            for pair in pairs
        ]
        yield _compared("P2 calls a second", case, rates, 0.7, 0.95)
        opened = [[large.seen["connections"] / concurrency for _, large in pair] for pair in pairs]
        yield _compared("P6 connections / C", case, opened, 1.2, 1.05, ratio=1)
        sizes: list[float] = [
            large.seen["characters"] / large.seen["requests"] for _, large in pairs[0]
        ]
        yield ("", "characters of a request", *sizes, sizes[1] / sizes[0], "", "")


REPLIES = (6, 26, 80, 270)
"""Words of each text, for replies of about 100, 200, 600 and 2,000 characters."""


def replies(bench: Bench) -> Iterator[Row]:
    """P1 by form and length of the replies: reading a reply takes time, too."""
    in_text = (*DEBATE, "--set", "structured=off")
    for form, command, must, goal in (("JSON", DEBATE, 1.3, 0.9), ("text", in_text, 1.6, 1.1)):
        for words in REPLIES:
            with bench.provider(latency_ms=50, words=words) as provider:
                mine = ours(bench, provider, 64, command, CALLS_OF_A_DEBATE)
                first = measured(mine, CALLS_OF_A_DEBATE, provider).seen
                bare = raw(provider, 64, first["characters"] // first["requests"] - RAW_FRAME)
                pairs = list(_beside(bench, provider, (bare, mine), CALLS_OF_A_DEBATE * 64, 3200))
            case = f"{form}, replies of {words + 5} words"
            costs = [[slope(*one) for one in pair] for pair in pairs]
            yield _compared("P1 CPU per call, ms", case, costs, must, goal)


def _beside(
    bench: Bench, provider: Simulated, clients: Sequence[Client], few: int, many: int
) -> Iterator[list[tuple[Measured, Measured]]]:
    """A small and a large run of each client in turn, again and again."""
    for _ in range(bench.repeats):
        yield [
            (measured(client, few, provider), measured(client, few + bench.size(many), provider))
            for client in clients
        ]


def _compared(
    figure: str,
    case: str,
    pairs: Sequence[Sequence[float]],
    must: float,
    goal: float,
    ratio: int | None = None,
) -> Row:
    """Return both clients' figures and their ratio; ``ratio``: whose figure is already a ratio."""
    theirs, mine = ([pair[at] for pair in pairs] for at in (0, 1))
    ratios = [two / one for one, two in pairs] if ratio is None else [pair[ratio] for pair in pairs]
    return figure, case, middle(theirs), middle(mine), middle(ratios), must, goal


# Wall time

WALL = {16: (1.08, 1.04), 64: (1.2, 1.08), 256: (1.6, 1.25)}


def wall(bench: Bench) -> Iterator[Row]:
    """P3: from the first request to the last reply, relative to calls x latency / concurrency."""
    latency = 0.5
    for concurrency, (must, goal) in WALL.items():
        calls = CALLS_OF_A_DEBATE * concurrency * (1 if bench.quick else 6)
        with bench.provider(latency_ms=1000 * latency, words=WORDS) as provider:
            mine = ours(bench, provider, concurrency, DEBATE, CALLS_OF_A_DEBATE)
            clients = (raw(provider, concurrency, length(mine, CALLS_OF_A_DEBATE, provider)), mine)
            ideal = calls * latency / concurrency
            pairs = [
                [
                    measured(client, calls, provider).seen["span_seconds"] / ideal
                    for client in clients
                ]
                for _ in range(bench.repeats)
            ]
        yield _compared(
            "P3 wall / ideal", f"debate, L500 C{concurrency}", pairs, must, goal, ratio=1
        )


# Log-probabilities


def logprobs(bench: Bench) -> Iterator[Row]:
    """P7: G-Eval's call, with 20 likely tokens for each of 64."""
    command = (
        "geval",
        "--set",
        "steps=Read both texts; Give a score",
        "--set",
        "weighting=logprobs",
        *ASPECT,
    )
    with bench.provider(latency_ms=50) as provider:
        mine = ours(bench, provider, 64, command, 1)
        clients = (raw(provider, 64, length(mine, 1, provider), "--likely", 20), mine)
        pairs = list(_beside(bench, provider, clients, 64, 2000))
    costs = [[slope(*one) for one in pair] for pair in pairs]
    # 12 and 2 ms where the raw client takes 7.7
    yield _compared("P7 CPU per call, ms", "geval, top_logprobs=20", costs, 1.56, 0.26)


# The critical path

PATHS: tuple[tuple[str, tuple[str, ...], Callable[[int], int]], ...] = (
    ("more", (), lambda _rounds: 3),
    ("samre", (), lambda rounds: 2 * rounds + 1),
    ("chateval", ("--set=strategy=simultaneous", "--set=turns=3"), lambda _rounds: 3),
)


def path(bench: Bench) -> Iterator[Row]:
    """P8: one item at a time, in units of the longest chain of calls that wait for each other."""
    latency = 0.5
    folder = bench.folder / "one-by-one"
    folder.mkdir()
    every = compare_items(bench.folder / "pairs.jsonl", 2 + bench.repeats).read_text(
        encoding="utf-8"
    )
    for number, line in enumerate(every.splitlines()):
        (folder / f"{number}.jsonl").write_text(line + "\n", encoding="utf-8")
    with bench.provider(latency_ms=1000 * latency) as provider:
        for protocol, more, chain in PATHS:
            finished = run(module("critical_path", protocol, folder, *more), provider.environment)
            if finished.code:
                raise SystemExit(finished.output[-3000:])
            taken = json.loads(finished.output.splitlines()[-1])
            shares = [seconds / (chain(rounds) * latency) for seconds, rounds in taken]
            yield "P8 wall / critical path", protocol, "", "", middle(shares), 1.15, 1.05


# Imports, and growth


def imports(bench: Bench) -> Iterator[Row]:
    """P9: the time to import a protocol relative to LangGraph."""
    code = "import time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t)"
    names = ("langgraph.graph", "jurygraph.graphs.debate")
    # As installed packages are: compiled, in a folder that the first two of these fill.
    compiled = {
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(bench.folder / "compiled"),
    }
    pairs = [
        [
            float(run([sys.executable, "-c", code.format(name)], compiled, bench.folder).output)
            for name in names
        ]
        for _ in range(2 * bench.repeats + 2)
    ][1:]
    yield _compared("P9 seconds", "import graphs.debate; left: langgraph.graph", pairs, 2, 1.3)


def linear(bench: Bench) -> Iterator[Row]:
    """P10: CPU seconds per item of a big run relative to a small one, without start-up.

    Each run is paired with a run of a single item, because a machine may be slower a minute later.
    The small runs take less time than start-up varies by, so there are more of them.
    """
    small = 100
    big = 1_000 if bench.quick else 10_000
    for labels in (False, True):
        with bench.provider() as provider:

            def more(size: int, labels: bool = labels, provider: Simulated = provider) -> float:
                one, many = (_single(bench, provider, each, labels=labels) for each in (1, size))
                return 1000 * (many.cpu_seconds - one.cpu_seconds) / (size - 1)

            per_item = [
                median(more(size) for _ in range(times))
                for size, times in ((small, 3 * bench.repeats), (big, bench.repeats))
            ]
        case = f"single, {big:,} items / {small}{', with labels' if labels else ''}"
        told = f"{per_item[0]:.3g}, {per_item[1]:.3g}"
        yield "P10 ms per item", case, "", told, per_item[1] / per_item[0], 1.1, 1.0


def _single(bench: Bench, provider: Simulated, size: int, *, labels: bool) -> Finished:
    data = score_items(bench.folder / f"single-{size}-{labels}.jsonl", size, labels=labels)
    return judge("single", data, bench.out(), provider, *ASPECT, "--concurrency", "16")


FIGURES: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "cpu": cpu,
    "replies": replies,
    "wall": wall,
    "logprobs": logprobs,
    "path": path,
    "imports": imports,
    "linear": linear,
}


def main() -> None:
    """The command line."""
    parser = options(__doc__)
    parser.add_argument(
        "--only", default=",".join(FIGURES), help="these figures, with commas between"
    )
    arguments = parser.parse_args()
    show_machine()
    _, server_core = two_cores()
    with scratch() as folder:
        bench = Bench(folder, server_core, arguments.repeats, arguments.quick)
        for name in arguments.only.split(","):
            show(f"{name}", HEADINGS, list(FIGURES[name](bench)))


if __name__ == "__main__":
    main()
