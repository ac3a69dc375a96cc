"""Measure the share of prompts that repeats earlier ones, which prefix caches discount.

    python benchmarks/prompts.py [--protocol NAME]... [--markdown]

Every registered protocol judges texts of 3,000 characters. A script replies at the usual length of
models, and no agent ever gives in. All figures count characters, without key or network, so they
are the same in every run. The marks for Claude are read from the requests that its own client sends
to a server in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from jurygraph.graphs.engine.registry import find_protocol, protocols
from jurygraph.nodes.common.delimiters import fence, fenced_sections
from jurygraph.nodes.evaluation_steps import EvaluationStepsCache, keep_steps_in
from jurygraph.nodes.models.call import Call, Reply, Send
from jurygraph.nodes.models.scripted_model import Line, ScriptedModel
from jurygraph.nodes.models.send import CallMiddleware, call_middleware
from jurygraph.nodes.runtime.prompt_context import Prompt
from jurygraph.state.aspects import find_aspect
from jurygraph.state.settings import Layout
from jurygraph.state.tasks import RubricInput
from langchain_core.language_models import BaseChatModel
from rich.console import Console
from rich.table import Table

Task = dict[str, Any]

# Tasks and replies

REPLY_LENGTHS = {
    "advocate": 500,
    "aggregator": 900,
    "commander": 450,
    "critic": 900,
    "judge": 1500,
    "juror": 350,
    "planner": 400,
    "referee": 700,
    "scorer": 900,
    "summarizer": 800,
    "tie_breaker": 900,
}
"""Characters of a reply by role: the templates' word limits at six characters a word, else 120 to
250 words."""

_SPOKEN = (
    "harbour winter council bridge report river measured evening before nobody school reopened costs "
    "although minister several between letter northern because claims support detail written clearly "
    "seldom argued summary missing further"
)
_WORDS = tuple(_SPOKEN.split())


@cache
def prose(seed: str, length: int) -> str:
    """Return this many characters of generated text; each seed gives another text."""
    draw = random.Random(seed)
    words: list[str] = []
    while sum(map(len, words)) + len(words) <= length:
        words.append(draw.choice(_WORDS))
    return " ".join(words)[: length - 1] + "."


def tasks(kind: str) -> dict[str, Task]:
    """Return an item, and others that share parts with it."""
    if kind == "score":
        source = prose("source", 2500)
        first = prose("first", 500)
        second = prose("second", 500)
        item = {"kind": "score", "source": source, "candidate": first, "aspect": "coherence"}
        return {
            "item": item,
            "same source": {**item, "candidate": second},
            "same text": {**item, "aspect": "fluency"},
        }
    answers = {f"answer_{number}": prose(f"answer {number}", 1400) for number in (1, 2, 3, 4)}
    item = {"kind": "compare", "question": prose("question", 200)}
    pair = {"answer_1": answers["answer_3"], "answer_2": answers["answer_4"]}
    return {
        "item": {**item, "answer_1": answers["answer_1"], "answer_2": answers["answer_2"]},
        "same source": {**item, **pair},
    }


RUBRIC = [{"criterion": prose(f"criterion {number}", 90), "points": number} for number in (1, 2, 3)]


def item_for(protocol: str, kind: str) -> Task:
    """Return the item of ``tasks``; with a rubric for a protocol that needs one."""
    item = tasks(kind)["item"]
    if find_protocol(protocol).protocol.input_schema is not RubricInput:
        return item
    aspect = find_aspect(item["aspect"]).model_dump(mode="json")
    return {**item, "aspect": {**aspect, "rubric": RUBRIC}}


def reply(metadata: Mapping[str, Any], prompt: str) -> Line:
    """Reply so that all rounds take place: the Critic objects and the lead changes."""
    role = metadata["role"]
    form = metadata["form"]
    round = metadata["round"]
    words = prose(f"{metadata['agent']} {round} {form}", REPLY_LENGTHS.get(role, 900))
    if form == "steps":
        return f"1. {words[:100]}\n2. {words[100:200]}\n3. {words[200:300]}"
    if form == "text":
        return words
    if form == "checks":
        numbers = range(1, len(metadata["criteria"]) + 1)
        return "\n".join([words, *(f"Criterion {number}: yes" for number in numbers)])
    ends = metadata["low"], metadata["high"]
    first, second = ends if round % 2 else reversed(ends)
    if "Answer in JSON" in prompt:
        said = {"reasoning": words, "feedback": words, "no_issue": False, "winner": "1"}
        return {**said, "score": first, "score_1": first, "score_2": second}
    lines = {
        "critique": "",
        "vote": "\nVote: 1",
        "pair": f"\nScore of answer 1: {first:g}\nScore of answer 2: {second:g}",
    }
    return words + lines.get(form, f"\nScore: {first:g}")


# Requests


@dataclass(frozen=True)
class Sent:
    """One call: the shared part, the agent's own part, and the calls answered before it."""

    agent: str
    shared: str
    own: str
    schema: str
    answered: int
    user: str = ""

    def text(self, schema_first: bool = False) -> str:
        """Return the whole request in order."""
        return f"{self.schema if schema_first else ''}{self.shared}\n\n{self.own}"

    @property
    def instruction(self) -> int:
        """Characters of the agent's own part, quoted words of others left out."""
        return len(self.own) - sum(len(fence(*section)) for section in fenced_sections(self.own))


_SEAM = "\n\x1e"
_TICKS = 50


@dataclass
class Recording(CallMiddleware):
    """The calls of one item, in the order of sending and in the order of answers."""

    sent: list[Sent] = field(default_factory=list)
    answered: list[Sent] = field(default_factory=list)
    bodies: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The requests of Claude's client, by the user's text."""
    lines: dict[str, Line] = field(default_factory=dict)
    """The answers of the script, by the user's text."""

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Record a request, and send it."""
        system, user = (str(message.text) for message in call.messages)
        shared, _, own = user.partition(_SEAM)
        schema = f"{json.dumps(call.schema)}\n" if call.schema else ""
        answered = len(self.answered)
        sent = Sent(call.metadata["agent"], f"{system}\n\n{shared}", own, schema, answered, user)
        self.sent.append(sent)
        self.lines[user] = reply(call.metadata, user)
        for _ in range(
            _TICKS
        ):  # agents that are asked at the same time are all asked before any answer
            await asyncio.sleep(0)
        answer = await send(call)
        self.answered.append(sent)
        return answer


def record_claude(protocol: str, task: Task, **settings: Any) -> Recording:
    """Judge one item with Claude's own client, against a server on the loopback interface."""
    # Scripts import their neighbours. The server is among the tests, which are not a package for
    # type checkers.
    sys.path.append(str(Path(__file__).parents[1]))
    loopback = import_module("tests.loopback_dialects")
    claude = loopback.DIALECTS["anthropic"]
    recording = Recording()

    def answer(asked: Any) -> Any:
        [message] = asked.body["messages"]
        content = message["content"]
        text = content if isinstance(content, str) else "".join(block["text"] for block in content)
        recording.bodies[text] = asked.body
        return loopback.Said(str(recording.lines[text]))

    with loopback.serving(claude, answer) as server:
        chat = claude.chat(server.url)
        try:
            return record(protocol, task, model=chat, recording=recording, **settings)
        finally:
            loopback.close(chat)


def record(
    protocol: str,
    task: Task,
    *,
    book: EvaluationStepsCache | None = None,
    model: BaseChatModel | None = None,
    recording: Recording | None = None,
    **settings: Any,
) -> Recording:
    """Judge one item and record the requests; plain text unless ``structured`` is set."""
    models = {"*": model or ScriptedModel(script=reply)}
    graph = (
        find_protocol(protocol).build(models=models, **{"structured": "off", **settings}).compile()
    )
    recording = Recording() if recording is None else recording

    async def judge() -> None:
        call_middleware.set(recording)
        await graph.ainvoke({"task": task})

    laid_out = Prompt.messages

    def seamed(prompt: Prompt, form: str, layout: Layout) -> tuple[str, str]:
        system, user = laid_out(prompt, form, layout)
        # A separator of two characters, like the empty line that it replaces, keeps the lengths.
        return system, prompt.shared + _SEAM + user[len(prompt.shared) + len(_SEAM) :]

    with mock.patch.object(Prompt, "messages", seamed), keep_steps_in(book):
        asyncio.run(judge())
    return recording


# Counting


def common_prefix(one: str, two: str) -> int:
    """Characters up to where two texts part.

    >>> common_prefix("abcd", "abxy")
    2
    """
    return bisect_left(
        range(min(len(one), len(two))), True, key=lambda at: one[: at + 1] != two[: at + 1]
    )


def repeated(text: str, earlier: Iterable[str]) -> int:
    """Return the longest prefix length that this text shares with an earlier one."""
    return max((common_prefix(text, other) for other in earlier), default=0)


def later_share(
    recording: Recording, *, answered: bool = False, schema_first: bool = False
) -> float | None:
    """Return the share of later calls' characters that repeats a prefix of an earlier call.

    ``answered``: counts only calls that were answered before this one was sent. ``None``: there is
    only one call.
    """
    texts = [sent.text(schema_first) for sent in recording.sent]
    replied = [sent.text(schema_first) for sent in recording.answered]
    earlier = [
        replied[: sent.answered] if answered else texts[:at]
        for at, sent in enumerate(recording.sent)
    ]
    hits = [repeated(text, before) for text, before in zip(texts, earlier, strict=True)]
    return sum(hits[1:]) / sum(map(len, texts[1:])) if len(texts) > 1 else None


LOOKBACK = 20
"""Blocks before a mark that are searched for an earlier mark's entry (Anthropic's docs)."""


@dataclass(frozen=True)
class Marked:
    """The characters of one request to Claude: read from the cache, written to it, and in all."""

    read: int
    written: int
    whole: int

    @property
    def cost(self) -> float:
        """Return the cost of the input; a character without caching costs 1."""
        return self.whole - 0.9 * self.read + 0.25 * self.written


def claude_cache(recording: Recording) -> list[Marked]:
    """Simulate Anthropic's cache for each request, reading only entries of answered requests."""
    found = []
    kept = [set(_written(recording, sent)) for sent in recording.answered]
    for sent in recording.sent:
        prefixes, marks = _prefixes(recording, sent)
        there: set[str] = set().union(*kept[: sent.answered])
        looked = {place for mark in marks for place in range(max(0, mark - LOOKBACK), mark + 1)}
        read = max(
            (len(prefixes[place]) for place in looked if prefixes[place] in there), default=0
        )
        marked = max((len(prefixes[mark]) for mark in marks), default=0)
        found.append(Marked(read, max(0, marked - read), len(prefixes[-1])))
    return found


def _written(recording: Recording, sent: Sent) -> list[str]:
    prefixes, marks = _prefixes(recording, sent)
    return [prefixes[mark] for mark in marks]


def _prefixes(recording: Recording, sent: Sent) -> tuple[list[str], list[int]]:
    """Return the texts up to the end of each block, and the indices of marked blocks."""
    body = recording.bodies[sent.user]
    content = body["messages"][0]["content"]
    blocks = [{"text": content}] if isinstance(content, str) else content
    texts = [body["system"], *("\x1d" + block["text"] for block in blocks)]
    marks = [place for place, block in enumerate(blocks, start=1) if "cache_control" in block]
    assert len(marks) <= 4, "Anthropic takes four marks"
    return [*accumulate(texts)], marks


def first_share(recording: Recording, before: Recording) -> float:
    """Of an item's first call, the share that repeats a prefix of another item's calls."""
    text = recording.sent[0].text()
    return repeated(text, (sent.text() for sent in before.sent)) / len(text)


@dataclass(frozen=True)
class Case:
    """A protocol with settings, on one kind of task; ``bar``: whether a goal is set for it."""

    protocol: str
    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = "defaults"
    bar: bool = False


@dataclass(frozen=True)
class Figures:
    """The figures of one case, as shares of characters; by default of layout ``shared_prefix``."""

    case: Case
    calls: int
    later: float | None
    answered: float | None
    schema_first: float | None
    papers: float | None
    papers_answered: float | None
    claude: float | None
    claude_cost: float | None
    same_source: float
    same_text: float | None
    instructions: tuple[int, float, int]


BARS: Sequence[tuple[str, str, Mapping[str, Any]]] = (
    ("debate", "n=4, unresolved", {"n": 4}),
    ("chateval", "3 referees, 2 turns", {"referees": 3, "turns": 2}),
    ("samre", "3 rounds", {"max_rounds": 3}),
    ("more", "defaults", {}),
)


def cases(names: Iterable[str] = ()) -> Iterator[Case]:
    """The cases with a figure to reach, then every protocol at its defaults."""
    chosen = {name: find_protocol(name).protocol for name in names or protocols()}
    seen = set()
    for name, label, settings in BARS:
        if name in chosen:
            seen.add((name, repr(chosen[name].settings(**settings))))
            yield from (Case(name, kind, settings, label, bar=True) for kind in chosen[name].kinds)
    for name, protocol in chosen.items():
        if (name, repr(protocol.settings())) not in seen:
            yield from (Case(name, kind) for kind in protocol.kinds)


def measure(case: Case, *, claude: bool = False) -> Figures:
    """Judge the case's item and the items that share parts with it, and count.

    ``claude``: also judge it through Claude's client.
    """
    given = tasks(case.kind)
    book = EvaluationStepsCache()
    run = {
        name: record(case.protocol, task, book=book, **case.settings)
        for name, task in given.items()
    }
    item = run["item"]
    as_json = record(case.protocol, given["item"], structured="auto", **case.settings)
    papers = record(case.protocol, given["item"], layout="papers", **case.settings)
    lengths = [sent.instruction for sent in item.sent]
    cached = (
        claude_cache(record_claude(case.protocol, given["item"], **case.settings)) if claude else []
    )
    later = cached[1:]
    return Figures(
        case=case,
        calls=len(item.sent),
        later=later_share(item),
        answered=later_share(item, answered=True),
        schema_first=later_share(as_json, schema_first=True),
        papers=later_share(papers),
        papers_answered=later_share(papers, answered=True),
        claude=sum(one.read for one in later) / sum(one.whole for one in later) if later else None,
        claude_cost=sum(one.cost for one in cached) / sum(one.whole for one in cached)
        if cached
        else None,
        same_source=first_share(run["same source"], item),
        same_text=first_share(run["same text"], item) if "same text" in run else None,
        instructions=(min(lengths), median(lengths), max(lengths)),
    )


# The report

HEADINGS = (
    *("protocol", "case", "task", "calls", "later calls %", "answered %", "schema first %"),
    *("papers: later calls %", "papers: answered %", "Claude reads %", "Claude costs %"),
    *("next of source %", "next aspect %", "own min / median / max"),
)


def line(figures: Figures) -> tuple[str, ...]:
    """One line of the report."""
    case = figures.case
    shares = (
        *(figures.later, figures.answered, figures.schema_first),
        *(figures.papers, figures.papers_answered, figures.claude, figures.claude_cost),
        *(figures.same_source, figures.same_text),
    )
    return (
        *(
            case.protocol,
            f"{case.label}{' (E1)' if case.bar else ''}",
            case.kind,
            str(figures.calls),
        ),
        *("-" if share is None else f"{100 * share:.1f}" for share in shares),
        " / ".join(f"{length:g}" for length in figures.instructions),
    )


def report(rows: Sequence[Figures], *, markdown: bool) -> None:
    """Print the table."""
    if markdown:
        print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
        for figures in rows:
            print(f"| {' | '.join(line(figures))} |")
        return
    table = Table(*HEADINGS, title="What of an item's prompts was sent before")
    for figures in rows:
        table.add_row(*line(figures))
    Console(width=160).print(table)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--protocol",
        action="append",
        default=[],
        metavar="NAME",
        choices=[*protocols()],
        help="only this one",
    )
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    arguments = parser.parse_args()
    report(
        [measure(case, claude=True) for case in cases(arguments.protocol)],
        markdown=arguments.markdown,
    )


if __name__ == "__main__":
    main()
