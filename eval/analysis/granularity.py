"""Convert opponents to a protocol's output scale, so that ties do not decide a comparison.

A mean of k samples has almost no ties; a debate gives whole numbers and has many. With human
labels that have ties, or in rank correlations, this difference alone can decide who agrees more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..statistics.alignment import Floats, Ints
from ..statistics.sample import Pair, Sample, paired_difference
from ..statistics.significance import LEVEL
from ..statistics.tie_policy import TIE_CODE
from .verdict_columns import Verdicts

STEPS = (1.0, 0.5, 0.25, 0.2, 0.1)
"""The possible steps of a scale, from coarse to fine."""

APART = 0.05
"""The largest difference in shares of ties that counts as the same granularity."""


def same_granularity(opponent: Verdicts, protocol: Verdicts) -> Verdicts:
    """Return an opponent's verdicts at the granularity of the protocol's.

    - Scores are rounded to the largest step of which all scores of the protocol are multiples, if
      there is one.
    - In comparisons, the opponent's smallest differences between the two answers become ties, until
      it has as many as the protocol. The threshold for each half of the items comes from the other
      half, and does not use labels.

    Args:
        opponent: the verdicts, with the mean scores of both answers for comparisons; votes
            without scores stay unchanged.
        protocol: the verdicts of the protocol.
    """
    if not len(opponent) or not len(protocol):
        return opponent
    if not opponent.winners:
        return replace(opponent, judged=on_steps(opponent.judged, protocol.judged))
    apart = opponent.scores[:, 0] - opponent.scores[:, 1]
    if not np.isfinite(apart).all():
        return opponent
    folds = opponent.item % 2
    own = protocol.take(np.isin(protocol.keys, opponent.keys))
    judged = with_ties(apart, folds, own.judged == TIE_CODE, own.item % 2)
    return replace(opponent, judged=judged)


def on_steps(scores: Floats, protocol: Floats) -> Floats:
    """Round scores, halves up, to the largest step that divides all the protocol's scores.

    >>> on_steps(np.array([2.25, 2.5, 3.75]), np.array([1.0, 4.0])).tolist()
    [2.0, 3.0, 4.0]
    >>> on_steps(np.array([2.25, 2.5]), np.array([1.5, 4.0])).tolist()
    [2.5, 2.5]
    """
    for step in STEPS:
        if np.allclose(protocol / step, np.round(protocol / step), atol=1e-6):
            rounded: Floats = np.floor(scores / step + 0.5 + 1e-9) * step
            return rounded
    return scores


def with_ties(apart: Floats, folds: Ints, ties: Floats, tie_folds: Ints) -> Floats:
    """Return winners from score differences, with the same share of ties as another judge.

    Args:
        apart: the first answer's score minus the second's.
        folds: 0 or 1 for each difference: the threshold of a fold comes from the other fold.
        ties: whether each verdict of the other judge is a tie.
        tie_folds: the folds of these verdicts.

    >>> halves = np.array([0, 0, 0, 1, 1, 1])
    >>> with_ties(np.array([-2.0, 0.1, 3, -0.2, 2, 4]), halves, np.array([1, 0, 0, 1, 0, 0]), halves).tolist()
    [1.0, 2.0, 0.0, 1.0, 0.0, 0.0]
    """
    judged = np.where(apart > 0, 0.0, np.where(apart < 0, 1.0, float(TIE_CODE)))
    for fold in (0, 1):
        seen = np.abs(apart[folds != fold])
        wanted = ties[tie_folds != fold]
        if not len(seen) or not len(wanted):
            continue
        thresholds = np.unique(seen)
        shares = np.searchsorted(np.sort(seen), thresholds, side="right") / len(seen)
        # The threshold can also be below the smallest difference, for no ties at all.
        thresholds = np.append(-1.0, thresholds)
        shares = np.append(0.0, shares)
        threshold = thresholds[np.abs(shares - wanted.mean()).argmin()]
        judged[(folds == fold) & (np.abs(apart) <= threshold + 1e-9)] = TIE_CODE
        # Differences of 0 cannot be split by a threshold: they stay ties.
    return judged


def tie_share(rows: Verdicts) -> float | None:
    """Return the share of ties; for scores, the share of pairs of items with the same score."""
    if len(rows) < 2:
        return None
    if rows.winners:
        return float((rows.judged == TIE_CODE).mean())
    counts = np.unique(np.round(rows.judged, 9), return_counts=True)[1]
    return float((counts * (counts - 1)).sum() / (len(rows) * (len(rows) - 1)))


def hinges_on_ties(pair: Pair) -> bool:
    """Return whether the difference in accuracy vanishes or reverses without ties of the judges."""
    mine, theirs = pair
    decided = (mine.judged != TIE_CODE) & (theirs.judged != TIE_CODE)
    difference = paired_difference([pair], "accuracy")
    if difference.p is None or not decided.any():
        return True
    kept = [
        Sample(
            of.kind,
            of.judged[decided],
            of.human[decided],
            of.names[of.clusters[decided]],
            of.grouped,
            of.resampling,
            of.ties,
        )
        for of in pair
    ]
    among = paired_difference([(kept[0], kept[1])], "accuracy")
    same_way = (among.difference.value or 0.0) * (difference.difference.value or 0.0) > 0
    return not (same_way and among.p is not None and among.p < LEVEL)
