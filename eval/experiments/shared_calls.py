"""Estimate the calls of a sweep before it starts: of each cell alone, and of all cells with shared calls made once.

Bounds follow from protocols and settings. How many calls cells share depends on how debates go, so it is measured in
a dry run: all cells on a few items, every call answered by the offline judge, and calls identified as the journal
does. There are two dry runs, one with debates that end as the offline judge decides, one with Critics that always
object; a real model's debates may end in between, or elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...graphs.registry import find_protocol
from ...graphs.wrapper import bound_judge_of
from ...nodes.models.call import Call, Reply, Send, fingerprint
from ...nodes.models.loaded_model import LoadedModel
from ...nodes.models.resolver import OFFLINE, load
from ...nodes.models.send import CallMiddleware
from ...state.protocols import CallRange, Range
from ..plan.dry_run import ask_instead, rehearse, with_reply_shape
from ..plan.estimator import Estimate, Part, added, aestimate, some_tasks
from .sweep_plan import PlannedCell, SweepPlan

MOST, LEAST, ALTOGETHER = 4, 2, 100
"""Verdicts of a dry run: the most and least of each cell, and about how many of all cells."""

SAYS_SOMETHING = 40
"""Characters from which on a reply is more than a bare value."""


class CallShares(NamedTuple):
    """Counts the calls of all cells for a few verdicts each.

    Attributes:
        verdicts: of all cells together.
        calls: how many there are with a journal for each cell.
        distinct: how many there are with one journal for all cells.
    """

    verdicts: int = 0
    calls: int = 0
    distinct: int = 0


class ExpectedCalls(NamedTuple):
    """Estimates the calls and the cost of a sweep.

    Attributes:
        cells: the estimate of each cell by itself; of a dry run where calls cost money, else of the calls alone.
        sampled: verdicts of each cell in the dry runs of all cells; 0 where there was none.
        played: the dry run with debates that end as the offline judge decides.
        drawn_out: the dry run with Critics that always object.
    """

    cells: tuple[Estimate, ...]
    sampled: int = 0
    played: CallShares = CallShares()
    drawn_out: CallShares = CallShares()

    @property
    def alone(self) -> Part:
        """What it would take if every cell were run by itself, repair requests aside."""
        return added(of_cell.total for of_cell in self.cells)

    @property
    def bounds(self) -> CallRange:
        """The calls of the sweep, whatever cells share: at least those of the greatest cell, at most those of all."""
        # Whatever cells share with each other, the calls of the greatest one are made.
        return CallRange(max(of_cell.total.calls.least for of_cell in self.cells), self.alone.calls.most)

    @property
    def together(self) -> CallRange:
        """The calls of the sweep by the dry runs, with shared calls made once."""
        return self._scaled(lambda run: run.distinct)

    @property
    def saved(self) -> CallRange:
        """The calls of other cells that need not be made again, by the dry runs."""
        return self._scaled(lambda run: run.calls - run.distinct)

    def _scaled(self, count: Callable[[CallShares], int]) -> CallRange:
        """Return a count of the dry runs, for as many verdicts as are to be made."""
        runs, verdicts = (self.played, self.drawn_out), sum(sum(of.verdicts.values()) for of in self.cells)
        return CallRange(*sorted(round(count(run) * verdicts / max(1, run.verdicts)) for run in runs))

    @property
    def cost(self) -> Range[float] | None:
        """US dollars by the dry runs, as if shared calls cost as much as others; None where a price is unknown."""
        if (alone := self.alone.cost_usd) is None:
            return None
        runs = (self.played, self.drawn_out)
        least, most = (run.distinct / run.calls if run.calls else 1.0 for run in runs)
        return Range(alone.least * least, alone.most * most)


async def bounds(planned: SweepPlan, done: Sequence[int], most: int = 0) -> ExpectedCalls:
    """Estimate each cell by itself; arguments as for ``expected_calls``, and how many verdicts a dry run may make."""
    pairs = zip(planned.cells, done, strict=True)
    estimates = [await aestimate(cell.plan, {cell.protocol: judged}, most) for cell, judged in pairs]
    return ExpectedCalls(tuple(estimates))


async def expected_calls(planned: SweepPlan, done: Sequence[int]) -> ExpectedCalls:
    """Estimate what a sweep will take, with dry runs; no provider is called.

    Args:
        planned: the sweep.
        done: how many verdicts each cell has already.

    Raises:
        UsageError: a setting with which a protocol would fail at its first item.
    """
    # Cells that are done make no calls, and would only look as if they shared theirs.
    todo = [cell for cell, judged in zip(planned.cells, done, strict=True) if judged < len(cell.plan)]
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
        cells: of one sweep.
        tasks: what each of them judges.
        content: whether Critics may be satisfied.
    """
    stand_in = load(OFFLINE, asyncio.get_running_loop())
    replies, asked = dict[bytes, Reply](), list[set[bytes]]()
    for cell in cells:
        (graph,) = cell.plan.graphs.values()
        protocol = find_protocol(cell.protocol).protocol
        once = protocol.calls_once(bound_judge_of(graph).bound, cell.plan.dataset.kind, lambda *_: False)
        journal = _Journal(stand_in, not content, {role.rpartition(".")[2] for role in once}, replies)
        await rehearse(graph, tasks, journal)
        asked.append(journal.asked)
    return CallShares(len(cells) * len(tasks), sum(map(len, asked)), len(set().union(*asked)))


@dataclass
class _Journal(CallMiddleware):
    """Middleware that has the offline judge answer each new call of a cell.

    Attributes:
        stand_in: the offline judge.
        objects: whether Critics always object.
        roles_once: the roles whose calls serve the whole run.
        replies: by fingerprint, of all cells.
        asked: the fingerprints of the calls that serve a single verdict.
    """

    stand_in: LoadedModel
    objects: bool
    roles_once: Collection[str]
    replies: dict[bytes, Reply]
    asked: set[bytes] = field(default_factory=set)

    async def __call__(self, call: Call, send: Send) -> Reply:
        """Return the earlier reply, else the offline judge's in the shape that the real model was asked for."""
        key = fingerprint(call)
        # Others are made once however many items there are: counted here they would be scaled with them.
        if call.metadata.get("role") not in self.roles_once:
            self.asked.add(key)
        if key not in self.replies:
            reply = await ask_instead(call, send, self.stand_in)
            reply = with_reply_shape(call, reply, objects=self.objects)
            self.replies[key] = reply if call.model.plays_roles else _told_apart(reply, key)
        return self.replies[key]


def _told_apart(reply: Reply, key: bytes) -> Reply:
    """Return the reply with a word of its own in front of each text.

    The offline judge often says the same to different prompts, which a language model does not, and the calls after
    it would look shared. Short texts are values and stay as they are.
    """
    # Letters alone: a digit could be read as a score.
    mark = "".join(chr(ord("a") + byte % 26) for byte in key[:8])

    def marked(text: Any) -> Any:
        return f"{mark}\n{text}" if isinstance(text, str) and len(text) >= SAYS_SOMETHING else text

    if reply.fields is None:
        return replace(reply, text=marked(reply.text))
    return replace(reply, fields={name: marked(value) for name, value in reply.fields.items()})
