"""Estimate the calls of a sweep: of each cell alone, and of all cells with shared calls.

The limits follow from protocols and settings. The number of shared calls depends on the course of
debates, so it is measured in a dry run: all cells judge a few items, the offline judge answers
every call, and calls are identified as in the journal. There are two dry runs: in one, the offline
judge decides when debates end; in the other, Critics always object. A real model's debates may end
in between, or elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...graphs.engine.registry import find_protocol
from ...graphs.engine.wrapper import bound_judge_of
from ...nodes.models.call import Call, Reply, Send, fingerprint
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.resolver import load
from ...nodes.models.send import CallMiddleware
from ...state.protocols import CallRange, Range
from ...state.settings import OFFLINE
from ..run.plan.dry_run import ask_instead, rehearse, with_reply_shape
from ..run.plan.estimator import Estimate, Part, added, aestimate, some_tasks
from .sweep_plan import PlannedCell, SweepPlan

MOST = 4
LEAST = 2
ALTOGETHER = 100
"""Verdicts of a dry run: the most and least for each cell, and a rough number for all cells."""

SAYS_SOMETHING = 40
"""The number of characters above which a reply is more than a bare value."""


class CallShares(NamedTuple):
    """The calls of all cells for a few verdicts each.

    Attributes:
        verdicts: the number of verdicts of all cells together.
        calls: the number of calls with a journal for each cell.
        distinct: the number of calls with one journal for all cells.
    """

    verdicts: int = 0
    calls: int = 0
    distinct: int = 0


class ExpectedCalls(NamedTuple):
    """The estimated calls and cost of a sweep.

    Attributes:
        cells: the estimate of each cell alone; from a dry run if calls cost money, else of the
            calls only.
        sampled: verdicts of each cell in the dry runs of all cells; 0 without dry runs.
        played: the dry run in which the offline judge decides when debates end.
        drawn_out: the dry run with Critics that always object.
    """

    cells: tuple[Estimate, ...]
    sampled: int = 0
    played: CallShares = CallShares()
    drawn_out: CallShares = CallShares()

    @property
    def alone(self) -> Part:
        """The estimate if each cell is run alone, without repair requests."""
        return added(of_cell.total for of_cell in self.cells)

    @property
    def bounds(self) -> CallRange:
        """The limits of the sweep's calls, from those of the largest cell to those of all."""
        # However many calls are shared, the largest cell needs all of its own.
        return CallRange(
            max(of_cell.total.calls.least for of_cell in self.cells), self.alone.calls.most
        )

    @property
    def together(self) -> CallRange:
        """The estimated calls of the sweep from the dry runs, with shared calls made once."""
        return self._scaled(lambda run: run.distinct)

    @property
    def saved(self) -> CallRange:
        """The estimated calls that need not be repeated, from the dry runs."""
        return self._scaled(lambda run: run.calls - run.distinct)

    def _scaled(self, count: Callable[[CallShares], int]) -> CallRange:
        """Scale a count of the dry runs to the number of verdicts to be made."""
        runs = (self.played, self.drawn_out)
        verdicts = sum(sum(of.verdicts.values()) for of in self.cells)
        return CallRange(
            *sorted(round(count(run) * verdicts / max(1, run.verdicts)) for run in runs)
        )

    @property
    def cost(self) -> Range[float] | None:
        """US dollars from the dry runs, at mean prices; ``None`` if a price is unknown."""
        if (alone := self.alone.cost_usd) is None:
            return None
        runs = (self.played, self.drawn_out)
        least, most = (run.distinct / run.calls if run.calls else 1.0 for run in runs)
        return Range(alone.least * least, alone.most * most)


async def bounds(planned: SweepPlan, done: Sequence[int], most: int = 0) -> ExpectedCalls:
    """Estimate each cell alone, with at most this many verdicts in a dry run."""
    pairs = zip(planned.cells, done, strict=True)
    estimates = [
        await aestimate(cell.plan, {cell.protocol: judged}, most) for cell, judged in pairs
    ]
    return ExpectedCalls(tuple(estimates))


async def expected_calls(planned: SweepPlan, done: Sequence[int]) -> ExpectedCalls:
    """Estimate the calls of a sweep with dry runs; no provider is called.

    Args:
        planned: the sweep.
        done: the number of existing verdicts of each cell.

    Raises:
        UsageError: a setting with which a protocol would fail on its first item.
    """
    # Cells that are done make no calls, and would only seem to share theirs.
    todo = [
        cell for cell, judged in zip(planned.cells, done, strict=True) if judged < len(cell.plan)
    ]
    size = min(MOST, max(LEAST, ALTOGETHER // max(1, len(todo))))
    tasks = await asyncio.to_thread(lambda: list(some_tasks(planned.first, size)))
    known = await bounds(planned, done, size if planned.costs_money else 0)
    return known._replace(
        sampled=len(tasks) if todo else 0,
        played=await sample_call_shares(todo, tasks),
        drawn_out=await sample_call_shares(todo, tasks, content=False),
    )


async def sample_call_shares(
    cells: Sequence[PlannedCell], tasks: Sequence[Mapping[str, Any]], *, content: bool = True
) -> CallShares:
    """Run all cells on a few items with the offline judge as every model, and count calls.

    Args:
        cells: the cells of one sweep.
        tasks: the tasks that each cell judges.
        content: whether Critics may be satisfied.
    """
    stand_in = load(OFFLINE, asyncio.get_running_loop())
    replies = dict[bytes, Reply]()
    asked = list[set[bytes]]()
    for cell in cells:
        (graph,) = cell.plan.graphs.values()
        protocol = find_protocol(cell.protocol).protocol
        once = protocol.calls_once(
            bound_judge_of(graph).bound, cell.plan.dataset.kind, lambda *_: False
        )
        journal = _Journal(
            stand_in, not content, {role.rpartition(".")[2] for role in once}, replies
        )
        await rehearse(graph, tasks, journal)
        asked.append(journal.asked)
    return CallShares(len(cells) * len(tasks), sum(map(len, asked)), len(set().union(*asked)))


@dataclass
class _Journal(CallMiddleware):
    """Middleware in which the offline judge answers each new call of a cell.

    Attributes:
        stand_in: the offline judge.
        objects: whether Critics always object.
        roles_once: the roles whose calls serve the whole run.
        replies: the replies of all cells by fingerprint.
        asked: the fingerprints of calls that serve a single verdict.
    """

    stand_in: LoadedModel
    objects: bool
    roles_once: Collection[str]
    replies: dict[bytes, Reply]
    asked: set[bytes] = field(default_factory=set)

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Return the earlier reply, or a new one of the offline judge in the requested shape."""
        key = fingerprint(call)
        # Calls that serve the whole run do not grow with the number of items, so do not count them.
        if call.metadata.get("role") not in self.roles_once:
            self.asked.add(key)
        if key not in self.replies:
            reply = await ask_instead(call, send, self.stand_in)
            reply = with_reply_shape(call, reply, objects=self.objects)
            self.replies[key] = reply if call.model.plays_roles else _told_apart(reply, key)
        return self.replies[key]


def _told_apart(reply: Reply, key: bytes) -> Reply:
    """Return the reply with a unique word in front of each text.

    The offline judge often gives the same reply to different prompts, unlike a language model.
    Later calls would then look shared. Short texts are values and stay unchanged.
    """
    # Letters only: a digit could be read as a score.
    mark = "".join(chr(ord("a") + byte % 26) for byte in key[:8])

    def marked(text: Any) -> Any:
        return f"{mark}\n{text}" if isinstance(text, str) and len(text) >= SAYS_SOMETHING else text

    if reply.fields is None:
        return replace(reply, text=marked(reply.text))
    return replace(reply, fields={name: marked(value) for name, value in reply.fields.items()})
