"""Define the terms of a comparison at equal spending, and match samples with the spending."""

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
from ..analysis.granularity import same_granularity
from ..analysis.loading import JudgeAspectData, load_evaluations
from ..analysis.verdict_columns import Side, Verdicts
from ..results.config import option
from ..results.evaluation import Evaluation
from ..statistics.alignment import Floats
from ..statistics.metrics import check_metric
from ..statistics.resampling import Resampling

WORTH = 0.05
"""The default of the smallest gain that would be worth having."""

SPENT_FIELD: Mapping[Currency, str] = {"tokens": "tokens", "cost": "cost_usd", "calls": "calls"}
"""The field of a usage and of a result that contains the spending."""

_term = partial(option, panel="Comparison")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of a comparison: opponents, currency and metric.

    Attributes:
        against: names of the opponents, or files that define one, also in one text with commas; by
            default, samples of a single judge and an ensemble of single judges.
        by: the currency in which spending is equal.
        metric: the metric to compare; ``None`` for the default of the data.
        worth: the smallest gain that would be worth having.
        taken_from: the folder of a run of the protocol, which is not judged again.
        resampling: how to compute intervals.

    Raises:
        UsageError: an unknown currency or metric, or a negative or infinite gain.

    >>> Terms(by="euros")
    Traceback (most recent call last):
    ...
    jurygraph.state.errors.UsageError: by 'euros' is unknown; budgets are counted by tokens, cost, calls
    """

    against: str | Sequence[str] | None = _term(metavar="NAME,...")
    """Opponents: protocols, or files such as mine.py. Default: single,ensemble: samples of a single
    judge, and an ensemble of identical judges."""
    by: Currency = _term(metavar="tokens|cost|calls", default="tokens")  # noqa: RUF009 - likewise
    """Unit of the budget: opponents are sampled until they have spent as much as the protocol."""
    taken_from: str | Path | None = _term(metavar="DIR", name="--from")  # noqa: RUF009 - a field like the others
    """Folder of a finished run of the protocol, to use instead of judging again."""
    worth: float = _term(metavar="GAIN", default=WORTH)
    """Smallest gain in the metric that would be worth having."""
    metric: str | None = _term(metavar="NAME")
    """Metric to compare by. Default: depends on the data."""
    resampling: Resampling = field(default_factory=Resampling)

    @property
    def opponents(self) -> list[str]:
        """The names of the chosen opponents."""
        names = self.against.split(",") if isinstance(self.against, str) else self.against or ()
        return [name.strip() for name in names if name.strip()]

    def __post_init__(self) -> None:
        if self.by not in SPENT_FIELD:
            raise UsageError(
                f"by {self.by!r} is unknown; budgets are counted by {', '.join(SPENT_FIELD)}"
            )
        check_metric(self.metric)
        if not (isfinite(self.worth) and self.worth >= 0):
            raise UsageError(f"worth must be 0 or more, a gain in the metric, got {self.worth:g}")


def spending(rows: Verdicts, currency: Currency) -> Floats:
    """Return the spending of each row; NaN if a price is unknown."""
    names = ("input_tokens", "output_tokens") if currency == "tokens" else (SPENT_FIELD[currency],)
    total: Floats = rows.usage[:, [USAGE_FIELDS.index(name) for name in names]].sum(axis=1)
    return total


class Matched(NamedTuple):
    """An opponent at the size that spends as much as a judge.

    Attributes:
        side: its verdicts, for comparisons.
        size: the mean number of samples, or of judges, per item.
        spent, budget: its total spending, and the judge's on the same items.
        alike: whether its samples are all equal, so that more samples add nothing.
    """

    side: Side
    size: float
    spent: float
    budget: float
    alike: bool


def size_for(own: Evaluation, name: str, sampled: Evaluation, currency: Currency) -> int:
    """Return the samples needed to match a judge's spending, from the cost of the first samples."""
    single = next(iter(sampled.manifest["signatures"]))
    judge, opponent = load_evaluations({name: (name, own), single: (single, sampled)})
    sizes = [1]
    for aspect in judge.by_aspect.keys() & opponent.by_aspect.keys():
        rows = judge.by_aspect[aspect].rows
        samples = opponent.by_aspect[aspect].rows
        ones = samples.take(samples.repeat == 0)
        # Only items that both judged: a run may be stopped, or fail on some items.
        budget = spending(rows.take(np.isin(rows.keys, ones.keys)), currency).sum()
        price = spending(ones.take(np.isin(ones.keys, rows.keys)), currency).sum()
        if price > 0 and np.isfinite(budget):
            # Equal sums of floats may differ in the last digits.
            sizes.append(ceil(budget / price * (1 - 1e-9)))
    return max(sizes)


def matched(data: JudgeAspectData, judge: Verdicts, currency: Currency) -> Matched | None:
    """Match an opponent's first samples with a judge's spending; ``None`` without common items.

    The budget rarely pays for a whole number of samples. So some items get k samples and others
    k + 1, as the budget allows. A hash of the item's id selects these items, so the length of the
    judge's debate has no influence. The verdicts are converted to the judge's output scale
    (``same_granularity``).
    """
    sizes = list(smaller_ensembles(data))
    shared = np.isin(sizes[0].rows.keys, judge.keys) if sizes else np.zeros(0, dtype=bool)
    if not shared.any():
        return None
    rows = [side.rows.take(shared) for side in sizes]
    spent = [spending(of_size, currency) for of_size in rows]
    budget = float(spending(judge.take(np.isin(judge.keys, rows[0].keys)), currency).sum())
    affordable = [
        place for place, of_rows in enumerate(spent) if of_rows.sum() <= budget * (1 + 1e-9)
    ]
    below = max(affordable, default=0)
    above = min(below + 1, len(rows) - 1)
    items = rows[0].names.items.names()
    ids = [items[item][1].encode(errors="replace") for item in rows[0].item]
    order = sorted(range(len(ids)), key=lambda row: blake2b(ids[row], digest_size=8).digest())
    more = np.concatenate([[0.0], np.cumsum((spent[above] - spent[below])[order])])
    # No smaller size exists, so nothing can be removed.
    wanted = max(0.0, budget - float(spent[below].sum()))
    count = (
        int(np.abs(more - wanted).argmin())
        if np.isfinite(more).all() and np.isfinite(wanted)
        else 0
    )
    takes_more = np.isin(np.arange(len(order)), order[:count])
    judged = np.where(takes_more, rows[above].judged, rows[below].judged)
    usage = np.where(takes_more[:, None], rows[above].usage, rows[below].usage)
    scores = np.where(takes_more[:, None], rows[above].scores, rows[below].scores)
    mixed = replace(rows[below], judged=judged, scores=scores, usage=usage)
    mixed = same_granularity(mixed, judge)
    size = below + 1 + (float(takes_more.mean()) if above > below else 0.0)
    alike = len(rows) > 1 and all(
        np.array_equal(rows[0].judged, larger.judged) for larger in rows[1:]
    )
    side = Side(data.judge.label, mixed, data.distances)
    return Matched(side, size, float(spending(mixed, currency).sum()), budget, alike)
