"""Define the terms of a comparison; give a single judge as many samples as another judge's spending pays for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from math import ceil, isfinite
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...state.errors import UsageError
from ...state.transcript import USAGE_FIELDS
from ..analysis.equal_cost import Currency, smaller_ensembles
from ..analysis.loading import JudgeAspectData, load_evaluations
from ..analysis.verdict_columns import Side, Verdicts
from ..results.config import option
from ..results.evaluation import Evaluation
from ..statistics.alignment import Floats
from ..statistics.metrics import check_metric
from ..statistics.resampling import Resampling

WORTH = 0.05
"""The smallest gain in the metric that counts as worth having, unless the user names another."""

SPENT_FIELD: Mapping[Currency, str] = {"tokens": "tokens", "cost": "cost_usd", "calls": "calls"}
"""The field of a usage, and of a result, that has what is spent."""

_term = partial(option, panel="Comparison")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Says what a protocol is compared with, and how.

    Attributes:
        against: names of the opponents, also in one text with commas; none are samples of a single judge and an
            ensemble of such.
        by: what is spent equally.
        metric: what is compared; ``None`` for what belongs to the data.
        worth: the smallest gain in it that would be worth having.
        taken_from: the folder of a run of the protocol, which is not judged again.
        resampling: how intervals are made.

    Raises:
        UsageError: a currency or metric that does not exist, or a gain that is none.

    >>> Terms(by="euros")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: by 'euros' is unknown; budgets are counted by tokens, cost, calls
    """

    against: str | Sequence[str] | None = _term(metavar="NAME,...")
    """Opponents. Default: single,ensemble: samples of a single judge, and an ensemble of identical judges."""
    by: Currency = _term(metavar="tokens|cost|calls", default="tokens")  # noqa: RUF009 - likewise
    """What the protocol and its opponents spend equal amounts of."""
    taken_from: str | Path | None = _term(metavar="DIR", name="--from")  # noqa: RUF009 - a field like the others
    """Folder of a finished run of the protocol, to use instead of judging again."""
    worth: float = _term(metavar="GAIN", default=WORTH)
    """Smallest gain in the metric that would be worth having."""
    metric: str | None = _term(metavar="NAME")
    """Metric to compare by. Default: depends on the data."""
    resampling: Resampling = field(default_factory=Resampling)

    @property
    def opponents(self) -> list[str]:
        """The names of the opponents that were chosen."""
        names = self.against.split(",") if isinstance(self.against, str) else self.against or ()
        return [name.strip() for name in names if name.strip()]

    def __post_init__(self) -> None:
        if self.by not in SPENT_FIELD:
            raise UsageError(f"by {self.by!r} is unknown; budgets are counted by {', '.join(SPENT_FIELD)}")
        check_metric(self.metric)
        if not (isfinite(self.worth) and self.worth >= 0):
            raise UsageError(f"worth must be 0 or more, a gain in the metric, got {self.worth:g}")


def spending(rows: Verdicts, currency: Currency) -> Floats:
    """Return what each row took; NaN where a price is unknown."""
    names = ("input_tokens", "output_tokens") if currency == "tokens" else (SPENT_FIELD[currency],)
    total: Floats = rows.usage[:, [USAGE_FIELDS.index(name) for name in names]].sum(axis=1)
    return total


class Matched(NamedTuple):
    """Holds an opponent at the size that spends as much as a judge.

    Attributes:
        side: its verdicts, for comparisons.
        size: samples, or judges, an item on average.
        spent, budget: what it took, and what the judge took on the same items, in all.
        alike: whether its samples are all the same, so that several say no more than one.
    """

    side: Side
    size: float
    spent: float
    budget: float
    alike: bool


def size_for(own: Evaluation, name: str, sampled: Evaluation, currency: Currency) -> int:
    """Return how many samples suffice to spend as much as a judge did, from what the first sample of each item took."""
    single = next(iter(sampled.manifest["signatures"]))
    judge, opponent = load_evaluations({name: (name, own), single: (single, sampled)})
    sizes = [1]
    for aspect in judge.by_aspect.keys() & opponent.by_aspect.keys():
        rows, samples = judge.by_aspect[aspect].rows, opponent.by_aspect[aspect].rows
        ones = samples.take(samples.repeat == 0)
        # On what both have judged: a run that was stopped, or failed somewhere, has less.
        budget = spending(rows.take(np.isin(rows.keys, ones.keys)), currency).sum()
        price = spending(ones.take(np.isin(ones.keys, rows.keys)), currency).sum()
        if price > 0 and np.isfinite(budget):
            # Sums of floats that are equal may differ in the last digits.
            sizes.append(ceil(budget / price * (1 - 1e-9)))
    return max(sizes)


def matched(data: JudgeAspectData, judge: Verdicts, currency: Currency) -> Matched | None:
    """Match an opponent's first samples with the spending of a judge; ``None`` where no item was judged by both.

    Whole samples rarely come out even: of k and k + 1 samples, the more are taken on so many items as the budget
    allows. Which items these are depends on their ids alone (a hash), not on how long the judge debated them.
    """
    sizes = list(smaller_ensembles(data))
    shared = np.isin(sizes[0].rows.keys, judge.keys) if sizes else np.zeros(0, dtype=bool)
    if not shared.any():
        return None
    rows = [side.rows.take(shared) for side in sizes]
    spent = [spending(of_size, currency) for of_size in rows]
    budget = float(spending(judge.take(np.isin(judge.keys, rows[0].keys)), currency).sum())
    affordable = [place for place, of_rows in enumerate(spent) if of_rows.sum() <= budget * (1 + 1e-9)]
    below = max(affordable, default=0)
    above = min(below + 1, len(rows) - 1)
    items = rows[0].names.items.names()
    ids = [items[item][1].encode(errors="replace") for item in rows[0].item]
    order = sorted(range(len(ids)), key=lambda row: blake2b(ids[row], digest_size=8).digest())
    more = np.concatenate([[0.0], np.cumsum((spent[above] - spent[below])[order])])
    # Below the first size there is nothing to take away, and nothing is added.
    wanted = max(0.0, budget - float(spent[below].sum()))
    count = int(np.abs(more - wanted).argmin()) if np.isfinite(more).all() and np.isfinite(wanted) else 0
    takes_more = np.isin(np.arange(len(order)), order[:count])
    judged = np.where(takes_more, rows[above].judged, rows[below].judged)
    usage = np.where(takes_more[:, None], rows[above].usage, rows[below].usage)
    mixed = replace(rows[below], judged=judged, usage=usage)
    size = below + 1 + (float(takes_more.mean()) if above > below else 0.0)
    alike = len(rows) > 1 and all(np.array_equal(rows[0].judged, larger.judged) for larger in rows[1:])
    side = Side(data.judge.label, mixed, data.distances)
    return Matched(side, size, float(spending(mixed, currency).sum()), budget, alike)
