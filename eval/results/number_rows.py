"""Collect rows of numbers one at a time, each in as few bytes as it needs, so that millions of them fit into memory."""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray


class NumberRows:
    """Collects rows of numbers.

    Args:
        **fields: of each field what ``struct`` and numpy alike call its type: ``i`` and ``q`` are whole numbers of four
            and eight bytes, ``Q`` is one from 0 on, ``d`` is a float (``2d`` are two of them), ``?`` is true or false.

    >>> rows = NumberRows(item="i", scores="2d")
    >>> rows.add(7, 0.5, 1.5)
    >>> rows.table()["scores"].tolist()
    [[0.5, 1.5]]
    """

    def __init__(self, **fields: str) -> None:
        shapes = {name: (int(code[:-1]),) if code[:-1] else () for name, code in fields.items()}
        self._type = np.dtype([(name, code[-1], shapes[name]) for name, code in fields.items()])
        self._packed = Struct("=" + "".join(fields.values())).pack
        self._rows = bytearray()

    def add(self, *numbers: float) -> None:
        """Add a row: the numbers of its fields, one after the other."""
        self._rows += self._packed(*numbers)

    def table(self) -> NDArray[Any]:
        """Return the rows, in columns by the fields' names; no row can be added while somebody holds on to them."""
        return np.frombuffer(self._rows, self._type)
