"""What a run will take, told before it starts: calls, tokens and dollars, between least and most.

Calls are bounds, by protocol and settings (``Protocol.calls``): every verdict takes as many, beside replies that are
asked for again because they could not be read. Tokens and dollars are an estimate. Prompts are measured on a few
items (``rehearsal``), replies are assumed to be of usual length, from half to twice of it or up to ``max_tokens``. The
middle of it may well be off by half, and reasoning that a provider bills and does not show comes on top; what a
provider takes off for prompts that begin alike is not taken off here, and neither are identical calls of different
protocols or items, which a run makes once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...graphs.registry import find_protocol
from ...nodes.bound_judge import Panel
from ...nodes.models import prices
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.sync_bridge import run_blocking
from ...state.aspects import Aspect
from ...state.call_counts import CallRange, Range, exactly, total
from ...state.tasks import TaskKind
from ..items import Item, ScoreItem
from ..plan import Plan
from .figures import Estimate, Part, added
from .voices import Voice, models_of, panel_of, voices

REHEARSED = 8
"""Verdicts that are rehearsed, for each protocol."""


def estimate(plan: Plan, done: Mapping[str, int] | None = None) -> Estimate:
    """What carrying out a plan will take; ``aestimate`` is the same for async code.

    Args:
        plan: what is to be done.
        done: verdicts that are there already, by protocol.

    Raises:
        UsageError: a setting that a protocol would stumble over at its first item.

    >>> from jurygraph.eval.plan import plan
    >>> total = estimate(plan("debate", "demo", aspects=["consistency"], limit=10)).total
    >>> total.calls, total.cost_usd
    (Range(least=20, most=90), Range(least=0.0, most=0.0))
    """
    return run_blocking(aestimate(plan, done))


async def aestimate(plan: Plan, done: Mapping[str, int] | None = None, most: int = REHEARSED) -> Estimate:
    """``estimate`` for async code; the same arguments and errors. ``most`` verdicts a protocol are rehearsed."""
    runs = {name: _runs(plan, name, done) for name in plan.graphs}
    if plan.recording is not None:  # nobody is asked
        return Estimate({name: left.verdicts for name, left in runs.items()}, (), 0)
    tasks = await asyncio.to_thread(lambda: list(some_tasks(plan, most)))
    parts: list[Part] = []
    for name, graph in plan.graphs.items():
        cast = await voices(graph, plan.dataset.kind, tasks)
        models = {role: voice.model for role, voice in cast.items()}
        parts += _parts(name, _wanted(panel_of(graph), plan.dataset.kind, models, runs[name]), cast)
    return Estimate({name: left.verdicts for name, left in runs.items()}, tuple(parts), len(tasks))


async def calls_of(plan: Plan, done: Mapping[str, int] | None = None) -> CallRange:
    """How many calls a plan takes, at least and at most, as ``aestimate`` has it; nothing is rehearsed for it."""
    found = exactly(0)
    for name, graph in plan.graphs.items():
        models = await models_of(graph)
        calls = _wanted(panel_of(graph), plan.dataset.kind, models, _runs(plan, name, done))
        found += total(each for _, each in calls)
    return found


def _runs(plan: Plan, protocol: str, done: Mapping[str, int] | None) -> _Runs:
    """What is left to be done of one protocol."""
    wanted = len(plan.dataset) * max(1, len(plan.aspects)) * plan.repeats
    left = max(0, wanted - (done or {}).get(protocol, 0))
    sets = max(1, len(plan.aspects)) if left else 0
    return _Runs(left, CallRange(sets if left == wanted else 0, sets))


class _Runs(NamedTuple):
    """Verdicts to be made, and sets of them that share the calls made once; none where those were made before."""

    verdicts: int
    sets: CallRange


def some_tasks(plan: Plan, most: int = REHEARSED) -> Iterator[dict[str, Any]]:
    """A few of what is to be judged, spread evenly over the items, and over the aspects in turn."""
    size = len(plan.dataset)
    places = {size * place // most for place in range(most)}
    chosen = (item for place, item in enumerate(plan.dataset) if place in places)
    for number, item in zip(range(len(places)), chosen, strict=False):
        aspect = plan.aspects[number % len(plan.aspects)] if plan.aspects else None
        yield _task(item, aspect)


def _task(item: Item, aspect: Aspect | None) -> dict[str, Any]:
    if isinstance(item, ScoreItem):
        assert aspect is not None
        return item.task(aspect).model_dump(mode="json")
    return item.task().model_dump(mode="json")


def _wanted(
    panel: Panel[Any], kind: TaskKind, models: Mapping[str, LoadedModel], runs: _Runs
) -> Iterator[tuple[str, CallRange]]:
    """The calls of each role in all the verdicts."""
    protocol = find_protocol(panel.protocol).protocol

    def can(role: str, what: str) -> bool:
        return models[role].gives(what)

    for role, calls in protocol.calls(panel.bound, kind, can).items():
        yield role, calls * runs.verdicts
    for role, once in protocol.calls_once(panel.bound, kind, can).items():
        yield role, CallRange(once.least * runs.sets.least, once.most * runs.sets.most)


def _parts(
    protocol: str, wanted: Iterable[tuple[str, CallRange]], cast: Mapping[str, Voice]
) -> Iterator[Part]:
    """The parts of one protocol, by model."""
    by_model: dict[str, list[Part]] = {}
    for role, calls in wanted:
        for part in _shares(protocol, cast[role], calls):
            by_model.setdefault(part.model, []).append(part)
    for model, parts in by_model.items():
        of_model = added(parts, protocol, model)
        if of_model.calls.most:
            yield of_model


def _shares(protocol: str, voice: Voice, calls: CallRange) -> Iterator[Part]:
    """What so many calls of a role ask of each of its models."""
    manner, prompt = voice.manner, voice.manner.prompt(voice.calls)
    for model, share in manner.labels.items():
        own = CallRange(round(calls.least * share), round(calls.most * share))
        replies, reply = manner.replies(own), manner.reply[model]
        output = Range(replies.least * reply.least, replies.most * reply.most)
        yield Part(
            protocol=protocol,
            model=model,
            calls=own,
            input_tokens=_whole(own.least * prompt.least, own.most * prompt.most),
            output_tokens=_whole(output.least, output.most),
            cost_usd=_cost(model, own, prompt, output),
        )


def _whole(least: float, most: float) -> CallRange:
    return CallRange(round(least), round(most))


def _cost(model: str, calls: CallRange, prompt: Range[float], output: Range[float]) -> Range[float] | None:
    """Call by call, since a long prompt may have another price than two short ones."""
    least = _price(model, calls.least, prompt.least, output.least)
    most = _price(model, calls.most, prompt.most, output.most)
    return None if least is None or most is None else Range(least, most)


def _price(model: str, calls: int, prompt: float, output: float) -> float | None:
    price = prices.cost_usd(model, round(prompt), 0, round(output / calls) if calls else 0)
    return None if price is None else price * calls
