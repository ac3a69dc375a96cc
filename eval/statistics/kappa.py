"""How often two raters say the same, and how much of that is more than chance.

    kappa = (p_o - p_e) / (1 - p_e)

p_o being the share of cases in which they agree (the accuracy, where one of them is held to be right), p_e the share
that two raters with the same habits would agree on by chance: the sum over classes of the product of both shares
(Cohen 1960).
Kappa does not exist where both always say one and the same thing (p_e = 1).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from .columns import Floats, numbered, units_of
from .resampling import Resampling, Weights
from .statistic import Statistic


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's kappa of two raters over the classes that either uses; ``None`` where there is none.

    Raises:
        ValueError: columns of different length, or empty.

    >>> cohen_kappa(["a", "b", "a", "b"], ["a", "b", "b", "a"])
    0.0
    """
    return rated(first, second, resampling=Resampling(resamples=0))[1].value


def rated(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    groups: Sequence[Hashable | None] | None = None,
    resampling: Resampling | None = None,
) -> tuple[Statistic, Statistic]:
    """The share of cases on which two raters agree, and Cohen's kappa, with their intervals.

    Args:
        first, second: what each said of each case, in classes; equally many.
        groups: which cases belong together and are drawn together; without, each stands alone.
        resampling: how the intervals are made.

    Raises:
        ValueError: columns of different length, or empty.

    >>> [found.value for found in rated(["a", "b", "a", "b"], ["a", "b", "b", "b"])]
    [0.75, 0.5]
    """
    if len(first) != len(second) or not len(first):
        raise ValueError("kappa needs two equally long, non-empty columns")
    codes = numbered([*first, *second], rows=2 * len(first))
    classes = int(codes.max()) + 1
    cells = codes[: len(first)] * classes + codes[len(first) :]
    units = np.arange(len(first)) if groups is None else units_of(groups, rows=len(first))
    tables = np.zeros((int(units.max()) + 1, classes * classes))
    np.add.at(tables, (units, cells), 1)
    return tabled(tables.reshape(-1, classes, classes), resampling or Resampling())


def tabled(tables: Floats, resampling: Resampling) -> tuple[Statistic, Statistic]:
    """Accuracy and kappa, of what was counted.

    Args:
        tables: of each unit that the bootstrap draws, how often the first rater said one class and the second another:
            shape (units, classes, classes).
        resampling: how the intervals are made.
    """
    units, classes, _ = tables.shape
    flat = tables.reshape(units, classes * classes)

    def resampled(weights: Weights) -> Floats:
        drawn = (weights @ flat).reshape(-1, classes, classes)
        return np.stack([accuracies(drawn), kappas(drawn)], axis=1)

    whole = flat.sum(axis=0).reshape(1, classes, classes)
    figures = resampling.figures(units, resampled)
    if figures.ndim == 1:
        figures = np.stack([figures, figures], axis=1)
    found = (accuracies(whole)[0], kappas(whole)[0])
    accuracy, kappa = (
        resampling.interval(None if np.isnan(value) else float(value), figures[:, at])
        for at, value in enumerate(found)
    )
    return accuracy, kappa


def accuracies(tables: Floats) -> Floats:
    """The share of each table of shape (some, classes, classes) that lies on its diagonal; NaN of an empty one."""
    total = tables.sum(axis=(1, 2))
    agreed = np.trace(tables, axis1=1, axis2=2)
    found: Floats = agreed / np.where(total > 0, total, np.nan)
    return found


def kappas(tables: Floats) -> Floats:
    """Cohen's kappa of each table of shape (some, classes, classes); NaN where chance agreement is certain.

    Of counts, not of shares: of whole numbers, chance agreement is told from certainty exactly.

    >>> kappas(np.array([[[2, 0], [0, 2]], [[4, 0], [0, 0]]])).tolist()
    [1.0, nan]
    """
    total = tables.sum(axis=(1, 2))
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    room = total**2 - chance
    found: Floats = (accuracies(tables) * total**2 - chance) / np.where(room > 0, room, np.nan)
    return found
