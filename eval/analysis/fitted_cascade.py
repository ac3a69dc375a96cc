"""Learn from labels when a cascade should ask its expensive judge.

A cascade asks the expensive judge if a signal of the cheap verdict is below a threshold: the gap
between the scores of two answers, or the confidence (see ``graphs.wrappers.cascade``). This module
chooses signal and threshold on finished runs of both judges on the same labelled items. The
agreement on the items that chose the threshold would be too high, so it is measured by
cross-fitting: each part of the items is judged with the threshold that the other parts choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...state.errors import UsageError
from ..results.results import Result
from ..statistics.alignment import Floats

FEWEST_ITEMS = 30
"""The minimum number of labelled items."""


class FittedCascade(NamedTuple):
    """A cascade whose threshold was chosen on labelled items.

    Attributes:
        settings: the settings for ``cascade``: ``when``, and the threshold of its signal. An empty
            ``when`` means that asking the expensive judge does not pay.
        items: the number of labelled items with a verdict of both judges.
        loss: the mean loss of the cascade by cross-fitting: the share of wrong winners, or the mean
            absolute error of scores.
        asked: the share of items on which the expensive judge is asked, by cross-fitting.
        cheap, expensive: the mean losses of the two judges alone.
        signals: the compared signals; a signal is compared if all cheap verdicts have it.
        left_out: the number of items that were not used, by the reason; empty if all were.
    """

    settings: dict[str, Any]
    items: int
    loss: float
    asked: float
    cheap: float
    expensive: float
    signals: tuple[str, ...]
    left_out: dict[str, int]


class _Rule(NamedTuple):
    signal: str
    below: float


def fit_cascade(
    cheap: Iterable[Result],
    expensive: Iterable[Result],
    *,
    most: float = 1.0,
    folds: int = 5,
    seed: int = 0,
) -> FittedCascade:
    """Choose when a cascade asks its expensive judge, by cross-fitting on labelled items.

    Args:
        cheap: results of the cheap judge, such as ``evaluate(...).results``.
        expensive: results of the expensive judge on the same items.
        most: the largest share of items on which the expensive judge may be asked.
        folds: the number of parts; items of one group stay together.
        seed: the seed for the split into parts.

    Raises:
        UsageError: fewer than 30 labelled items with a verdict of both judges, fewer groups than
            parts, cheap verdicts without a signal, or values outside their range.

    Source: cross-fitting as for the best judge of a panel (``panel_value``). Human ties are left
    out, as in reports on comparisons.
    """
    # Imported here, because reading results needs no graphs.
    from ...graphs.wrappers.cascade import confidence_of

    if not 0 < most <= 1 or folds < 2:
        raise UsageError(
            f"most must be above 0 and at most 1, and folds at least 2; got {most:g} and {folds}"
        )
    first, second = (_by_item(results) for results in (cheap, expensive))
    reasons = {key: _unusable(first.get(key), second.get(key)) for key in first | second}
    left_out = dict(Counter(reason for reason in reasons.values() if reason))
    keys = [key for key, reason in reasons.items() if reason is None]
    if len(keys) < FEWEST_ITEMS:
        others = "".join(f", {count} {reason}" for reason, count in left_out.items())
        raise UsageError(
            f"{len(keys)} labelled items have a verdict of both judges{others}; a threshold needs "
            f"at least {FEWEST_ITEMS}"
        )
    verdicts = [first[key] for key in keys]
    losses = np.array([[_loss(first[key]), _loss(second[key])] for key in keys])
    signals: dict[str, Floats] = {}
    for name, values in {
        "gap": [_gap(result) for result in verdicts],
        "confidence": [confidence_of(result.winner, result.details) for result in verdicts],
    }.items():
        if all(value is not None for value in values):
            signals[name] = np.array(values, dtype=float)
    if not signals:
        raise UsageError(
            "the cheap verdicts have neither two scores nor a confidence; use a panel, geval, or "
            "comparisons"
        )
    groups = [result.group or result.item for result in verdicts]
    names, of_item = np.unique(groups, return_inverse=True)
    if len(names) < folds:
        raise UsageError(f"{len(names)} groups cannot be split into {folds} parts")
    part = np.random.default_rng(seed).permutation(np.arange(len(names)) % folds)[of_item]
    asked = np.zeros(len(keys), dtype=bool)
    for fold in range(folds):
        held_out = part == fold
        rule = _best(
            {name: values[~held_out] for name, values in signals.items()}, losses[~held_out], most
        )
        if rule:
            asked[held_out] = signals[rule.signal][held_out] < rule.below
    chosen = _best(signals, losses, most)
    settings: dict[str, Any] = {"when": []}
    if chosen:
        settings = {"when": [chosen.signal], chosen.signal: chosen.below}
    of_cascade = np.where(asked, losses[:, 1], losses[:, 0])
    return FittedCascade(
        settings,
        len(keys),
        float(of_cascade.mean()),
        float(asked.mean()),
        float(losses[:, 0].mean()),
        float(losses[:, 1].mean()),
        tuple(signals),
        left_out,
    )


def _by_item(results: Iterable[Result]) -> dict[tuple[Any, ...], Result]:
    """Return the results by item, aspect and repeat."""
    return {(result.item, result.aspect, result.repeat): result for result in results}


def _unusable(cheap: Result | None, expensive: Result | None) -> str | None:
    """Return why no threshold can be learned from an item, or None if it is of use."""
    if cheap is None or expensive is None:
        return "judged by one judge alone"
    if cheap.status != "ok" or expensive.status != "ok":
        return "without a verdict"
    if cheap.human is None:
        return "without a label"
    return "with a human tie" if cheap.human == "tie" else None


def _loss(result: Result) -> float:
    if isinstance(result.human, str):
        return float(result.winner != result.human)
    if result.score is None or result.human is None:
        raise UsageError(f"item {result.item} has a number as its label, but no score")
    return abs(result.score - result.human)


def _gap(result: Result) -> float | None:
    return None if result.scores is None else abs(result.scores[0] - result.scores[1])


def _best(signals: Mapping[str, Floats], losses: Floats, most: float) -> _Rule | None:
    """Return the rule with the lowest mean loss; among equal ones, the one that asks least."""
    best: tuple[float, float] = (float(losses[:, 0].mean()), 0.0)
    chosen: _Rule | None = None
    for signal, values in signals.items():
        for below in _thresholds(values):
            asked = values < below
            share = float(asked.mean())
            found = float(np.where(asked, losses[:, 1], losses[:, 0]).mean()), share
            # Sums of the same losses may differ in the last digit.
            if share <= most and (
                found[0] < best[0] - 1e-12 or (found[0] <= best[0] and share < best[1])
            ):
                best = found
                chosen = _Rule(signal, float(below))
    return chosen


def _thresholds(values: Floats) -> NDArray[np.float64]:
    """Return thresholds between neighbouring values.

    The last one is above all values, so that the expensive judge is always asked. There is none for
    shares, which are at most 1.
    """
    distinct = np.unique(values)
    between = (distinct[1:] + distinct[:-1]) / 2
    return np.append(between, distinct[-1] + 1) if distinct[-1] > 1 else between
