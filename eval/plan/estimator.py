"""Estimate what a run will take before it starts, and show it as a table.

Calls are bounds by protocol and settings (``Protocol.calls``), repair requests aside. Tokens and dollars are
estimates. Prompts are measured on a few items (``dry_run``); replies are assumed to be of usual length, from half to
twice of it or up to ``max_tokens``. The middle of the range may well be off by half, and reasoning tokens that a
provider bills without showing them come on top. Not subtracted are discounts for prompts that begin alike, and
identical calls of different protocols or items, which a run makes once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rich import box
from rich.table import Table

from ...graphs.nested import bound_judge_of
from ...graphs.registry import find_protocol
from ...nodes.bound_judge import BoundJudge
from ...nodes.models import prices
from ...nodes.models.capabilities import default_limits
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.sync_bridge import run_blocking
from ...state.aspects import Aspect
from ...state.call_counts import CallRange, Range, exactly, total
from ...state.errors import InputError
from ...state.tasks import TaskKind
from ...state.usage import Usage, total_usage
from ..datasets.items import Item, ScoreItem
from ..report.result_tables import money
from .dry_run import RoleEstimate, models_of, role_estimates
from .plan import Plan

SAMPLED_VERDICTS = 8
"""The number of verdicts that a dry run makes with each protocol."""


def estimate(plan: Plan, done: Mapping[str, int] | None = None) -> Estimate:
    """Estimate what a plan will take; ``aestimate`` is the same for async code.

    Args:
        plan: what is to be judged.
        done: how many verdicts are there already, by protocol.

    Raises:
        UsageError: a setting with which a protocol would fail at its first item.

    >>> from jurygraph.eval.plan.plan import plan
    >>> total = estimate(plan("debate", "demo", aspects=["consistency"], limit=10)).total
    >>> total.calls, total.cost_usd
    (Range(least=20, most=90), Range(least=0.0, most=0.0))
    """
    return run_blocking(aestimate(plan, done))


async def aestimate(
    plan: Plan, done: Mapping[str, int] | None = None, most: int = SAMPLED_VERDICTS
) -> Estimate:
    """Estimate as ``estimate`` does, in async code; ``most`` limits the verdicts of each dry run."""
    runs = {name: _runs(plan, name, done) for name in plan.graphs}
    if plan.recording is not None:  # A replay makes no calls.
        return Estimate({name: left.verdicts for name, left in runs.items()}, (), 0)
    tasks = await asyncio.to_thread(lambda: list(some_tasks(plan, most)))
    parts: list[Part] = []
    limited = False
    for name, graph in plan.graphs.items():
        cast = await role_estimates(graph, plan.dataset.kind, tasks)
        models = {role: role_estimate.model for role, role_estimate in cast.items()}
        limited = limited or any(model.is_limited_by_default for model in models.values())
        parts += _parts(name, _wanted(bound_judge_of(graph), plan.dataset.kind, models, runs[name]), cast)
    return Estimate({name: left.verdicts for name, left in runs.items()}, tuple(parts), len(tasks), limited)


async def calls_of(plan: Plan, done: Mapping[str, int] | None = None) -> CallRange:
    """Return how many calls a plan takes, as ``aestimate`` does, without a dry run."""
    found = exactly(0)
    for name, graph in plan.graphs.items():
        models = await models_of(graph)
        calls = _wanted(bound_judge_of(graph), plan.dataset.kind, models, _runs(plan, name, done))
        found += total(each for _, each in calls)
    return found


def _runs(plan: Plan, protocol: str, done: Mapping[str, int] | None) -> _Runs:
    """Count the verdicts of one protocol that are still to be made."""
    wanted = len(plan.dataset) * max(1, len(plan.aspects)) * plan.repeats
    left = max(0, wanted - (done or {}).get(protocol, 0))
    sets = max(1, len(plan.aspects)) if left else 0
    return _Runs(left, CallRange(sets if left == wanted else 0, sets))


class _Runs(NamedTuple):
    """Counts the verdicts to be made, and the sets of them that still need the calls which a set makes once.

    A set is an aspect (or the comparison): where some of its verdicts exist, those calls may have been made.
    """

    verdicts: int
    sets: CallRange


def some_tasks(plan: Plan, most: int = SAMPLED_VERDICTS) -> Iterator[dict[str, Any]]:
    """Iterate over a few tasks of a plan, spread evenly over its items, with each aspect in turn."""
    size = len(plan.dataset)
    # A set, since the places of a small dataset coincide.
    places = {size * place // most for place in range(most)}
    chosen = (item for place, item in enumerate(plan.dataset) if place in places)
    # The range comes first in `zip`, so that the dataset is not read beyond the last place.
    for number, item in zip(range(len(places)), chosen, strict=False):
        aspect = plan.aspects[number % len(plan.aspects)] if plan.aspects else None
        try:
            task = _task(item, aspect)
        except InputError:
            # An item with a blank text fails by itself when its turn comes, and makes no call.
            continue
        yield task


def _task(item: Item, aspect: Aspect | None) -> dict[str, Any]:
    if isinstance(item, ScoreItem):
        assert aspect is not None
        return item.task(aspect).model_dump(mode="json")
    return item.task().model_dump(mode="json")


def _wanted(
    bound_judge: BoundJudge[Any], kind: TaskKind, models: Mapping[str, LoadedModel], runs: _Runs
) -> Iterator[tuple[str, CallRange]]:
    """Yield each role with its calls for all verdicts."""
    protocol = find_protocol(bound_judge.protocol).protocol

    def can(role: str, what: str) -> bool:
        return models[role].gives(what)

    for role, calls in protocol.calls(bound_judge.bound, kind, can).items():
        yield role, calls * runs.verdicts
    for role, once in protocol.calls_once(bound_judge.bound, kind, can).items():
        yield role, CallRange(once.least * runs.sets.least, once.most * runs.sets.most)


def _parts(
    protocol: str, wanted: Iterable[tuple[str, CallRange]], cast: Mapping[str, RoleEstimate]
) -> Iterator[Part]:
    """Yield the parts of one protocol, one for each model."""
    by_model: dict[str, list[Part]] = {}
    for role, calls in wanted:
        for part in _shares(protocol, cast[role], calls):
            by_model.setdefault(part.model, []).append(part)
    for model, parts in by_model.items():
        of_model = added(parts, protocol, model)
        if of_model.calls.most:
            yield of_model


def _shares(protocol: str, role_estimate: RoleEstimate, calls: CallRange) -> Iterator[Part]:
    """Split the calls of a role over its models and estimate the usage of each."""
    profile, prompt = role_estimate.profile, role_estimate.profile.prompt(role_estimate.calls)
    for model, share in profile.labels.items():
        # Rounded for each model, so that the parts of a role may add up to a call more or less than it makes.
        own = CallRange(round(calls.least * share), round(calls.most * share))
        replies, reply = profile.replies(own), profile.reply[model]
        output = Range(replies.least * reply.least, replies.most * reply.most)
        yield Part(
            protocol=protocol,
            model=model,
            least=_usage(model, own.least, prompt.least, output.least),
            most=_usage(model, own.most, prompt.most, output.most),
        )


def _usage(model: str, calls: int, prompt: float, output: float) -> Usage:
    """Return the usage of calls with so many tokens in each prompt and so many tokens of output in total."""
    # Priced call by call, since a long prompt may have another price than two short ones.
    price = prices.cost_usd(model, round(prompt), 0, round(output / calls) if calls else 0)
    return Usage(
        calls=calls,
        input_tokens=round(calls * prompt),
        output_tokens=round(output),
        cost_usd=None if price is None else price * calls,
    )


@dataclass(frozen=True)
class Part:
    """Estimates the usage of one model for one protocol, or of several added up.

    Attributes:
        least: what it takes at least; cached and reasoning tokens, and time, are not estimated and stand at 0.
        most: what it takes at most, likewise.
    """

    protocol: str
    model: str
    least: Usage
    most: Usage

    @property
    def calls(self) -> CallRange:
        """Requests that are answered."""
        return Range(self.least.calls, self.most.calls)

    @property
    def input_tokens(self) -> CallRange:
        """Tokens of all prompts."""
        return Range(self.least.input_tokens, self.most.input_tokens)

    @property
    def output_tokens(self) -> CallRange:
        """Tokens of all replies."""
        return Range(self.least.output_tokens, self.most.output_tokens)

    @property
    def cost_usd(self) -> Range[float] | None:
        """US dollars; ``None`` where a price is unknown."""
        least, most = self.least.cost_usd, self.most.cost_usd
        return None if least is None or most is None else Range(least, most)


@dataclass(frozen=True)
class Estimate:
    """Estimates the usage of a run.

    Attributes:
        verdicts: verdicts that are still to be made, by protocol.
        parts: estimated usage by protocol and model.
        sampled: how many verdicts of each protocol the tokens were measured on.
        limited: whether replies have the default limit (``REPLY_LIMITS``), at least those of some model.
    """

    verdicts: Mapping[str, int]
    parts: tuple[Part, ...]
    sampled: int
    limited: bool = False

    @property
    def total(self) -> Part:
        """The sum over all protocols and models."""
        return added(self.parts)

    def discounted(self, share: float) -> Estimate:
        """Return the estimate where calls cost a share of the usual price."""
        return replace(self, parts=tuple(_discounted(part, share) for part in self.parts))

    def of(self, protocol: str) -> Part:
        """Add up the parts of all models of one protocol."""
        return added([part for part in self.parts if part.protocol == protocol], protocol)

    def exceeds(
        self, *, max_calls: int | None = None, max_tokens: int | None = None, max_cost: float | None = None
    ) -> tuple[str, ...]:
        """Return a sentence for each limit that the run must exceed even at best; none if it may keep to its budget.

        The cost of models with an unknown price is left out; ``max_tokens`` is of prompts and replies together.
        """
        total = self.total
        tokens = total.least.tokens
        dollars = sum(part.cost_usd.least for part in self.parts if part.cost_usd is not None)
        found = []
        if max_calls is not None and total.calls.least > max_calls:
            found.append(f"at least {total.calls.least:,} calls are needed, and {max_calls:,} are allowed")
        if max_tokens is not None and tokens > max_tokens:
            found.append(f"about {tokens:,} tokens are needed at least, and {max_tokens:,} are allowed")
        if max_cost is not None and dollars > max_cost:
            found.append(f"about ${dollars:.2f} are needed at least, and ${max_cost:.2f} are allowed")
        return tuple(found)


def _discounted(part: Part, share: float) -> Part:
    return replace(part, least=part.least.discounted(share), most=part.most.discounted(share))


def added(parts: Iterable[Part], protocol: str = "", model: str = "") -> Part:
    """Add up parts; the cost is unknown where that of any part is."""
    parts = tuple(parts)
    least = total_usage(part.least for part in parts)
    return Part(protocol, model, least, total_usage(part.most for part in parts))


def estimate_table(estimate: Estimate) -> Table:
    """Lay out an estimate as a table: a line for each protocol and model, and the total."""
    table = Table(
        title="Estimate: from the least to the most expected",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=0,
        caption=_caption(estimate),
        caption_justify="left",
    )
    table.add_column("protocol", no_wrap=True)
    table.add_column("model", overflow="fold")
    for column in ("verdicts", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    for part in estimate.parts:
        table.add_row(part.protocol, part.model, f"{estimate.verdicts[part.protocol]:,}", *_cells(part))
    if len(estimate.parts) != 1:
        table.add_section()
        table.add_row("all", "", f"{sum(estimate.verdicts.values()):,}", *_cells(estimate.total))
    return table


def _caption(estimate: Estimate) -> str:
    limit = f" A reply has at most {default_limits()}; max_tokens sets another limit."
    return (
        "Calls do not include repairs of unreadable replies. Tokens are estimated from a dry run of "
        f"{estimate.sampled} verdicts per protocol and replies of usual length; they may be off by half."
        f"{limit if estimate.limited else ''}"
    )


def _cells(part: Part) -> tuple[str, str, str, str]:
    calls = _counts(part.calls)
    return calls, _tokens(part.input_tokens), _tokens(part.output_tokens), _dollars(part.cost_usd)


def _counts(calls: CallRange) -> str:
    return _between(f"{calls.least:,}", f"{calls.most:,}")


def _tokens(tokens: CallRange) -> str:
    return _between(rough(tokens.least), rough(tokens.most))


def _dollars(cost: Range[float] | None) -> str:
    return "unknown" if cost is None else _between(_cost_text(cost.least), _cost_text(cost.most))


def _between(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _cost_text(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.1 else money(dollars)


def rough(count: int) -> str:
    """Format a count with two significant digits, since an estimate has no more.

    >>> rough(87), rough(1_349), rough(612_345), rough(18_496_827)
    ('87', '1.3k', '610k', '18M')
    """
    rounded = float(f"{count:.2g}")
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rounded >= unit:
            return f"{rounded / unit:g}{name}"
    return f"{rounded:g}"
