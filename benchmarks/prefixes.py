"""Measure the share of a run's prompts that a provider has read before, by calls in flight.

    python -m benchmarks.prefixes [--items 200] [--concurrency 1,16,64] [--protocol single]...
    python -m benchmarks.prefixes --local --items 4 --concurrency 1,4

Items of 3,000 characters are judged on four aspects. A scripted model replies after a time that
differs from call to call. The share counts the characters of an item's second and later calls that
repeat the beginning of an earlier call of the item, if that call had its reply before this one was
sent (E1b). Each case runs with and without holding calls back (``ignore_prefixes``), in turns.

With ``--local``, a tiny real model judges shorter texts, and its server counts the tokens that it
has read before. It has one slot for each call in flight. Every case has its own texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from jurygraph.eval import evaluate
from jurygraph.eval.run.calls.judge_item import current_judgement
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.nodes.models.scripted_model import ScriptedModel
from langchain_core.outputs import ChatResult
from pydantic import Field, SkipValidation

from .prompts import prose, repeated, reply
from .scenario import options, scratch, show, show_machine

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
CASES: Mapping[str, Mapping[str, Any]] = {
    "single": {},
    "ensemble": {},
    "debate": {"n": 2},
}
HEADINGS = (
    *("protocol", "in flight", "calls", "held: share %", "at once: share %"),
    *("held: seconds", "at once: seconds", "held / at once"),
)


@dataclass
class Sent:
    """One request: its text, and the number of the item's answered requests when it was sent."""

    text: str
    answered: int


@dataclass
class Requests:
    """The requests of one item, in the order of sending and in the order of replies."""

    sent: list[Sent] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)


class SlowModel(ScriptedModel):
    """Replies after a random time, and records what was sent for each item."""

    seconds: float = 0.5
    requests: SkipValidation[dict[str, Requests]] = Field(
        default_factory=lambda: defaultdict(Requests)
    )
    draw: SkipValidation[random.Random] = Field(default_factory=lambda: random.Random(0))

    async def _agenerate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        judgement = current_judgement.get()
        assert judgement is not None
        text = "\n\n".join(message.text for message in messages)
        of_item = self.requests[judgement.key.item]
        of_item.sent.append(Sent(text, len(of_item.answered)))
        await asyncio.sleep(self.seconds * self.draw.uniform(0.6, 1.4))
        made = await super()._agenerate(messages, stop, run_manager, **kwargs)
        of_item.answered.append(text)
        return made

    def share(self) -> float:
        """Return the share of later calls' characters that an answered call began with."""
        hits = characters = 0
        for of_item in self.requests.values():
            for sent in of_item.sent[1:]:
                hits += repeated(sent.text, of_item.answered[: sent.answered])
                characters += len(sent.text)
        return hits / characters


@dataclass(frozen=True)
class Figures:
    """One run: its calls, the share, its seconds."""

    calls: int
    share: float
    seconds: float


def items(path: Path, count: int, characters: int = 3000) -> Path:
    """Write different texts of this length, different in each file."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            source = prose(f"source {path.stem} {number}", characters * 5 // 6)
            candidate = prose(f"candidate {path.stem} {number}", characters // 6)
            item = {"id": f"item-{number}", "source": source, "candidate": candidate}
            file.write(json.dumps(item) + "\n")
    return path


def measure(protocol: str, data: Path, concurrency: int, seconds: float, at_once: bool) -> Figures:
    """Judge all items."""
    model = SlowModel(script=reply, seconds=seconds)
    graph = find_protocol(protocol).build(models={"*": model}, structured="off", **CASES[protocol])
    started = time.perf_counter()
    done = evaluate(
        {protocol: graph},
        data,
        aspects=ASPECTS,
        concurrency=concurrency,
        ignore_prefixes=at_once,
    )
    taken = time.perf_counter() - started
    if done.failed:
        raise SystemExit(f"{protocol}: {done.failed[0].error}")
    return Figures(sum(len(of.sent) for of in model.requests.values()), model.share(), taken)


def measure_local(data: Path, concurrency: int, at_once: bool) -> tuple[object, ...]:
    """Judge all items with the model ``local``; return a row of the table."""
    started = time.perf_counter()
    done = evaluate(
        "single",
        data,
        aspects=ASPECTS,
        models={"*": f"local?slots={concurrency}&max_tokens=40"},
        concurrency=concurrency,
        ignore_prefixes=at_once,
    )
    taken = time.perf_counter() - started
    tokens = sum(result.input_tokens for result in done.results)
    cached = sum(result.cached_input_tokens for result in done.results)
    calls = sum(result.calls for result in done.results)
    way = "at once" if at_once else "held"
    return concurrency, way, calls, tokens, 100 * cached / tokens, taken


def show_local(arguments: argparse.Namespace) -> None:
    """Measure the tokens that the server of a real model has read before."""
    rows = []
    with scratch() as folder:
        for concurrency in map(int, arguments.concurrency.split(",")):
            for at_once in [False, True][: 1 + (concurrency > 1)]:
                path = folder / f"local-{concurrency}-{at_once}.jsonl"
                data = items(path, arguments.items, characters=900)
                rows.append(measure_local(data, concurrency, at_once))
    headings = ("in flight", "", "calls", "input tokens", "cached tokens: share %", "seconds")
    show("single, local", headings, rows)


def main() -> None:
    """The command line."""
    parser = options(__doc__, repeats=1)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--concurrency", default="1,16,64", help="calls in flight")
    parser.add_argument("--protocol", action="append", choices=[*CASES], help="only this one")
    parser.add_argument("--seconds", type=float, default=0.5, help="mean time of a reply")
    parser.add_argument("--local", action="store_true", help="judge with the model local")
    arguments = parser.parse_args()
    show_machine()
    if arguments.local:
        show_local(arguments)
        return
    rows: list[tuple[object, ...]] = []
    with scratch() as folder:
        data = items(folder / "items.jsonl", 20 if arguments.quick else arguments.items)
        few = items(folder / "few.jsonl", 10)
        for protocol in arguments.protocol or CASES:
            for concurrency in map(int, arguments.concurrency.split(",")):
                if concurrency == 1:
                    # One at a time needs no slow replies, and few items.
                    alone = measure(protocol, few, 1, 0.0, False)
                    rows.append((protocol, 1, alone.calls, 100 * alone.share, *4 * ("-",)))
                    continue
                found: dict[bool, list[Figures]] = {False: [], True: []}
                for _ in range(arguments.repeats):
                    for at_once, figures in found.items():
                        figures.append(
                            measure(protocol, data, concurrency, arguments.seconds, at_once)
                        )
                held = found[False]
                sent_at_once = found[True]
                seconds_held = median(one.seconds for one in held)
                seconds_at_once = median(one.seconds for one in sent_at_once)
                rows.append(
                    (
                        protocol,
                        concurrency,
                        held[0].calls,
                        100 * held[0].share,
                        100 * sent_at_once[0].share,
                        seconds_held,
                        seconds_at_once,
                        seconds_held / seconds_at_once,
                    )
                )
    show("E1b", HEADINGS, rows)


if __name__ == "__main__":
    main()
