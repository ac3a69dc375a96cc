"""The estimate of a run's usage before it starts, also as a table.

Calls are bounds by protocol and settings (``Protocol.calls``), without repair requests. Tokens and
dollars are estimates. Prompts are measured on a few items (``dry_run``); replies are assumed to be
of usual length, from half to twice of it or up to ``max_tokens``. The middle of the range may well
be off by half, and reasoning tokens that a provider bills without showing them are added. Discounts
for prompts with the same beginning are not subtracted. The same holds for identical calls of
different protocols or items, which a run makes once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ....graphs.engine.base import Graph
from ....graphs.engine.wrapper import bound_judge_of
from ....nodes.common.sync_bridge import run_blocking
from ....nodes.models import prices
from ....nodes.models.capabilities import default_limits
from ....nodes.models.loaded_model import LoadedModel
from ....state.errors import InputError
from ....state.protocols import CallRange, CallsByRole, Range, total
from ....state.transcript import Usage, total_usage
from ...datasets.items import Item
from ...statistics.alignment import grouped
from ...tables.grid import Column, Grid, money, short, text_column
from .dry_run import RoleProfile, calls_of_roles, role_estimates
from .plan import Plan

MOST_SAMPLED = 8
"""The number of verdicts that a dry run makes with each protocol."""


def estimate(plan: Plan, done: Mapping[str, int] | None = None) -> Estimate:
    """Estimate the usage of a plan; ``aestimate`` is the same for async code.

    Args:
        plan: the plan.
        done: the number of verdicts that exist already, by protocol.

    Raises:
        UsageError: a setting with which a protocol would fail at its first item.

    >>> from jurygraph.eval.run.plan.plan import plan
    >>> total = estimate(plan("debate", "demo", aspects=["consistency"], limit=10)).total
    >>> total.calls, total.cost_usd
    (Range(least=20, most=90), Range(least=0.0, most=0.0))
    """
    return run_blocking(aestimate(plan, done))


async def aestimate(
    plan: Plan, done: Mapping[str, int] | None = None, most: int = MOST_SAMPLED
) -> Estimate:
    """Estimate as ``estimate`` does, in async code.

    ``most`` limits the verdicts of each dry run. With 0, calls are those that protocols and
    settings allow, and tokens are unknown.
    """
    verdicts = {name: _left(plan, name, done) for name in plan.graphs}
    if plan.recording is not None:  # A replay makes no calls.
        return Estimate(verdicts, (), 0)
    tasks = await asyncio.to_thread(lambda: list(some_tasks(plan, most)))

    def length(item: Item) -> int:
        return sum(map(len, map(str, vars(item).values())))

    # The task with the longest texts, if its texts can be judged.
    longest = await asyncio.to_thread(
        lambda: list(_task(plan, max(plan.dataset, key=length), 0)) if most else []
    )
    parts: list[Part] = []
    limited = False
    overflows = list[str]()
    for name, graph in plan.graphs.items():
        cast = await role_estimates(graph, plan.dataset.kind, tasks, longest)
        models = {role: profile.model for role, profile in cast.items()}
        limited = limited or any(model.is_limited_by_default for model in models.values())
        by_length = sorted(cast.items(), key=lambda pair: (pair[1].longest, pair[0]))
        # The role with a model's longest prompt comes last and replaces the others.
        for role, of_role in {
            of_role.model.label: (role, of_role) for role, of_role in by_length
        }.values():
            window = await of_role.model.context_window()
            if window is not None and of_role.longest > window:
                prompt = f"the longest prompt of {role} may have about {rough(round(of_role.longest))} tokens"
                context = f"the context of {of_role.model.label} has {window:,}"
                remedy = "use shorter texts, fewer rounds or a larger context"
                overflows.append(f"{name}: {prompt}, but {context}: {remedy}")
        wanted = _wanted(plan, graph, models, verdicts[name])
        of_roles = (part for role, calls in wanted for part in shares(name, cast[role], calls))
        by_model = grouped((part.model, part) for part in of_roles)
        of_models = (added(own, name, model) for model, own in by_model.items())
        parts += [part for part in of_models if part.calls.most]
    return Estimate(verdicts, tuple(parts), len(tasks), limited, tuple(overflows))


def _left(plan: Plan, protocol: str, done: Mapping[str, int] | None) -> int:
    """Count the verdicts of one protocol that are still to be made."""
    return max(0, len(plan) // len(plan.graphs) - (done or {}).get(protocol, 0))


def some_tasks(plan: Plan, most: int = MOST_SAMPLED) -> Iterator[dict[str, Any]]:
    """Iterate over a few tasks of a plan, evenly spread over its items, each aspect in turn."""
    size = len(plan.dataset)
    # A set, since the places of a small dataset coincide.
    places = {size * place // most for place in range(most)}
    chosen = (item for place, item in enumerate(plan.dataset) if place in places)
    # The range comes first in `zip`, so that the dataset is not read beyond the last place.
    for number, item in zip(range(len(places)), chosen, strict=False):
        yield from _task(plan, item, number)


def _task(plan: Plan, item: Item, number: int) -> Iterator[dict[str, Any]]:
    aspect = plan.aspects[number % len(plan.aspects)] if plan.aspects else None
    # An item with a blank text fails in its own turn, and makes no call.
    with suppress(InputError):
        yield item.task(aspect).model_dump(mode="json")


def _wanted(
    plan: Plan, graph: Graph, models: Mapping[str, LoadedModel], verdicts: int
) -> Iterator[tuple[str, CallRange]]:
    """Yield each role of a protocol with its calls for the verdicts that are to be made."""
    per_verdict, once = calls_of_roles(bound_judge_of(graph), plan.dataset.kind, models)
    of_tasks = list(_calls_of_tasks(plan, graph, models))
    for role, in_verdict in per_verdict.items():
        if not of_tasks:
            yield role, in_verdict * verdicts
        elif verdicts == _left(plan, "", None):
            yield role, total(of_task[role] for of_task in of_tasks) * plan.repeats
        else:
            least = min(of_task[role].least for of_task in of_tasks)
            most = max(of_task[role].most for of_task in of_tasks)
            yield role, CallRange(least, most) * verdicts
    # Calls that each aspect (or the comparison) needs once: if some of its verdicts exist, they may
    # have been made.
    sets = max(1, len(plan.aspects)) if verdicts else 0
    none_done = verdicts == _left(plan, "", None)
    for role, of_set in once.items():
        yield role, CallRange(of_set.least * sets if none_done else 0, of_set.most * sets)


def _calls_of_tasks(
    plan: Plan, graph: Graph, models: Mapping[str, LoadedModel]
) -> Iterator[CallsByRole]:
    """Yield the calls of every item and aspect, if a protocol's calls depend on them."""
    judge = bound_judge_of(graph)
    count = judge.record.calls_of_task
    if count is None or plan.only is not None or plan.repeated is not None:
        return
    for item in plan.dataset:
        for aspect in plan.aspects or (None,):
            # An item with a blank text fails in its own turn, and makes no call.
            with suppress(InputError):
                task = item.task(aspect)
                yield count(judge.bound, task, lambda role, what: models[role].gives(what))


def shares(protocol: str, profile: RoleProfile, calls: CallRange) -> Iterator[Part]:
    """Split the calls of a role over its models and estimate the usage of each."""
    # The n-th call of a verdict adds n - 1 times the growth, which is (calls - 1) / 2 times on
    # average.
    shortest = profile.first + profile.growth.least * max(profile.calls.least - 1, 0) / 2
    longest = profile.first + profile.growth.most * max(profile.calls.most - 1, 0) / 2
    before = 0.0
    for model, share in profile.labels.items():
        # Rounded so that the parts of a role add up to its calls.
        bounds = [
            round(of * (before + share)) - round(of * before) for of in (calls.least, calls.most)
        ]
        own = CallRange(*bounds)
        reply = profile.reply[model]
        before = before + share
        replies = own.least * profile.several
        least = _usage(model, own.least, shortest, replies * reply.least)
        # With the maximum number of calls, each returns one reply.
        most = _usage(model, own.most, longest, max(replies, own.most) * reply.most)
        yield Part(protocol, model, least, most)


def _usage(model: str, calls: int, prompt: float, output: float) -> Usage:
    """Return the usage of calls with this number of tokens per prompt, and of output in total."""
    # The price is per call, since a long prompt may have another price than two short ones.
    price = prices.cost_usd(model, round(prompt), 0, round(output / calls) if calls else 0)
    cost = None if price is None else price * calls
    return Usage(
        calls, input_tokens=round(calls * prompt), output_tokens=round(output), cost_usd=cost
    )


@dataclass(frozen=True)
class Part:
    """The estimated usage of one model for one protocol, or of several added up.

    Attributes:
        least: the minimum usage; cached and reasoning tokens, and time, are not estimated and are
            0.
        most: the maximum usage, with the same limits.
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
        """US dollars; ``None`` if a price is unknown."""
        least = self.least.cost_usd
        most = self.most.cost_usd
        return None if least is None or most is None else Range(least, most)

    def discounted(self, share: float) -> Part:
        """Return the same usage at a share of its cost."""
        return replace(self, least=self.least.discounted(share), most=self.most.discounted(share))


@dataclass(frozen=True)
class Estimate:
    """The estimated usage of a run.

    Attributes:
        verdicts: the number of verdicts that are still to be made, by protocol.
        parts: the estimated usage by protocol and model.
        sampled: the number of verdicts of each protocol in which tokens were measured.
        overflows: a sentence for each model whose context may be too small for the longest prompt.
        limited: whether replies have the default limit (``REPLY_LIMITS``), at least those of some
            model.
    """

    verdicts: Mapping[str, int]
    parts: tuple[Part, ...]
    sampled: int
    limited: bool = False
    overflows: tuple[str, ...] = ()

    @property
    def total(self) -> Part:
        """The sum over all protocols and models."""
        return added(self.parts)

    def discounted(self, share: float) -> Estimate:
        """Return the estimate with calls at a share of the usual price."""
        return replace(self, parts=tuple(part.discounted(share) for part in self.parts))

    def exceeds(self, **budget: float | None) -> tuple[str, ...]:
        """Return a sentence for each limit that even the minimum exceeds.

        None if the budget may suffice.

        The cost of models with an unknown price is left out.

        Args:
            **budget: ``max_calls``; ``max_tokens``, of prompts and replies together; ``max_cost``,
                in US dollars.
        """
        least = self.total.least
        cost = sum(part.least.cost_usd or 0.0 for part in self.parts)
        needed = {
            "max_calls": (least.calls, "at least {:,} calls are needed, but only {:,} are allowed"),
            "max_tokens": (
                least.tokens,
                "at least about {:,} tokens are needed, but only {:,} are allowed",
            ),
            "max_cost": (cost, "at least about ${:.2f} is needed, but only ${:.2f} is allowed"),
        }
        return tuple(
            words.format(amount, limit)
            for name, (amount, words) in needed.items()
            if (limit := budget.get(name)) is not None and amount > limit
        )


def added(parts: Iterable[Part], protocol: str = "", model: str = "") -> Part:
    """Add up parts; the cost is unknown if the cost of any part is."""
    parts = tuple(parts)
    least = total_usage(part.least for part in parts)
    return Part(protocol, model, least, total_usage(part.most for part in parts))


def estimate_table(estimate: Estimate) -> Grid:
    """Create the table of an estimate: a line for each protocol and model, and the total."""
    verdicts = {**estimate.verdicts, "all": sum(estimate.verdicts.values())}
    parts = estimate.parts
    if len(parts) != 1:
        parts = (*parts, replace(estimate.total, protocol="all"))
    limits = f"A reply has at most {default_limits()}; max_tokens sets another limit."
    notes = (
        "Calls do not include repairs of unreadable replies. Tokens are estimated from a dry run of "
        f"{estimate.sampled} verdicts per protocol and replies of usual length; they may be off by half.",
        *([limits] if estimate.limited else []),
        *(f"Warning: {overflow}" for overflow in estimate.overflows),
    )
    columns = (
        text_column("protocol", of=lambda part: part.protocol),
        text_column("model", of=lambda part: part.model),
        Column("verdicts", of=lambda part: verdicts[part.protocol]),
        Column("calls", of=lambda part: between(part.calls)),
        Column("tokens in", of=lambda part: between(part.input_tokens, rough)),
        Column("tokens out", of=lambda part: between(part.output_tokens, rough)),
        Column(
            "cost", of=lambda part: between(part.cost_usd, _dollars) if part.cost_usd else "unknown"
        ),
    )
    return Grid.from_records("Estimate (lowest to highest)", columns, parts, notes)


Number = TypeVar("Number", int, float)


def between(numbers: Range[Number], form: Callable[[Number], str] = "{:,}".format) -> str:
    """Write the minimum and the maximum; only once if both look the same."""
    least = form(numbers.least)
    most = form(numbers.most)
    return least if least == most else f"{least} to {most}"


def _dollars(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.1 else money(dollars)


def rough(count: int) -> str:
    """Format a count with two significant digits, since an estimate has no more.

    >>> rough(87), rough(1_349), rough(612_345), rough(18_496_827)
    ('87', '1.3k', '610k', '18M')
    """
    return short(count, digits=2, least=0)
