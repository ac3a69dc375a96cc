"""Many comparisons at once: with twenty of them, one is expected below .05 by chance alone."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Holm's adjusted p-values: each may be held against the level as it stands, whatever the number of comparisons.

    Sorted upwards, the i-th smallest of m (from 0) is multiplied by m - i, and none may be smaller than the one before
    it nor greater than 1. Source: Holm 1979, A simple sequentially rejective multiple test procedure.

    Args:
        p_values: one a comparison; ``None`` where there was no test. Those stay ``None`` and are not counted in m.

    Returns:
        the adjusted values, in the order given.

    Raises:
        ValueError: a p-value that is not between 0 and 1.

    >>> holm([0.01, None, 0.04, 0.03])
    (0.03, None, 0.06, 0.06)
    """
    known = [(p, place) for place, p in enumerate(p_values) if p is not None]
    for p, place in known:
        if math.isnan(p) or not 0 <= p <= 1:
            raise ValueError(f"p-value {place + 1} is {p}, not between 0 and 1")
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(sorted(known)):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = highest
    return tuple(adjusted)
