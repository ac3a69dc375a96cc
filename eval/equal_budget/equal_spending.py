"""Give a single judge as many samples as another judge's spending pays for, on the same items."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from math import ceil
from typing import NamedTuple

import numpy as np

from ...state.transcript import USAGE_FIELDS
from ..analysis.equal_cost import smaller_ensembles
from ..analysis.loading import JudgeAspectData, load_evaluations
from ..analysis.verdict_columns import Side, Verdicts
from ..results.evaluation import Evaluation
from ..statistics.alignment import Floats
from .terms import SPENT_FIELD, Unit


def spending(rows: Verdicts, unit: Unit) -> Floats:
    """Return what each row took; NaN where a price is unknown."""
    names = ("input_tokens", "output_tokens") if unit == "tokens" else (SPENT_FIELD[unit],)
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


def size_for(own: Evaluation, name: str, one_each: Evaluation, unit: Unit) -> int:
    """Return how many samples suffice to spend as much as a judge did, from what one sample of each item took."""
    single = next(iter(one_each.manifest["signatures"]))
    judge, judge_of_one = load_evaluations({name: (name, own), single: (single, one_each)})
    sizes = [1]
    for aspect, cell in judge.cells.items():
        if aspect not in judge_of_one.cells:
            continue
        rows, ones = cell.rows, judge_of_one.cells[aspect].rows
        budget = spending(rows.take(np.isin(rows.keys, ones.keys)), unit).sum()
        price = spending(ones.take(np.isin(ones.keys, rows.keys)), unit).sum()
        if price > 0 and np.isfinite(budget):
            # Sums of floats that are equal may differ in the last digits.
            sizes.append(ceil(budget / price * (1 - 1e-9)))
    return max(sizes)


def matched(cell: JudgeAspectData, judge: Verdicts, unit: Unit) -> Matched | None:
    """Match an opponent's first samples with the spending of a judge; ``None`` where no item was judged by both.

    Whole samples rarely come out even: of k and k + 1 samples, the more are taken on so many items as the budget
    allows. Which items these are depends on their ids alone (a hash), not on how long the judge debated them.
    """
    sizes = list(smaller_ensembles(cell))
    shared = np.isin(sizes[0].rows.keys, judge.keys) if sizes else np.zeros(0, dtype=bool)
    if not shared.any():
        return None
    rows = [side.rows.take(shared) for side in sizes]
    spent = [spending(of_size, unit) for of_size in rows]
    budget = float(spending(judge.take(np.isin(judge.keys, rows[0].keys)), unit).sum())
    affordable = [place for place, of_rows in enumerate(spent) if of_rows.sum() <= budget * (1 + 1e-9)]
    below = max(affordable, default=0)
    above = min(below + 1, len(rows) - 1)
    items = rows[0].names.items.names()
    order = sorted(range(len(rows[0])), key=lambda row: _hash(items[rows[0].item[row]][1]))
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
    side = Side(cell.judge.label, mixed, cell.distances)
    return Matched(side, size, float(spending(mixed, unit).sum()), budget, alike)


def _hash(item: str) -> bytes:
    return blake2b(item.encode(errors="replace"), digest_size=8).digest()
