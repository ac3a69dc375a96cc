"""The sign test: are there more of one kind than of the other than a fair coin would give?"""

from __future__ import annotations

from ..statistics.significance import fair_coin


def sign_test(one: int, other: int) -> float | None:
    """Exact two-sided p-value of the binomial test of one half; ``None`` without either kind.

    >>> sign_test(5, 0), sign_test(3, 3), sign_test(0, 0)
    (0.0625, 1.0, None)
    """
    if not one + other:
        return None
    return fair_coin(one, other)
