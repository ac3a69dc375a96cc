"""People's votes on two answers, as instances that a judge's verdicts are held against."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .columns import Floats, Units

Ties = Literal["class", "left_out", "half"]
"""A human tie is a class of its own, is left out, or is half right whatever the judge says."""
Votes = Literal["majority", "each"]
"""People's majority is one instance, or each of their votes is."""
TIE = 2
"""The code of a tie; 0 and 1 are the answers."""


def counting(votes: Floats, ties: Ties) -> Floats:
    """The votes that count: those for a tie do not where human ties are left out.

    Args:
        votes: of each row how often people said 1, 2 and tie: shape (rows, 3).
        ties: what a human tie is.

    >>> counting(np.array([[1.0, 0.0, 2.0]]), "left_out").tolist()
    [[1.0, 0.0, 0.0]]
    """
    found = votes.astype(float)
    if ties == "left_out":
        found[:, TIE] = 0
    return found


def counted(judged: NDArray[Any], votes: Floats, ties: Ties) -> Floats:
    """For each row how often the judge said one thing and people another: shape (rows, 3, 3).

    Where a human tie is half right, it is half a vote for either answer; a judge's tie is then half of either, too.
    A judge's tie against a human winner is wrong in any case.

    Args:
        judged: of each row the code of the judge's verdict.
        votes: of each row how often people said 1, 2 and tie: shape (rows, 3).
        ties: what a human tie is.

    >>> right = counted(np.array([0, 2]), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), "half")
    >>> right.trace(axis1=1, axis2=2).tolist()
    [0.5, 0.5]
    """
    votes, said = counting(votes, ties), np.eye(3)[judged.astype(np.intp)]
    half = ties == "half"
    tied = votes[:, TIE:] * [0.5, 0.5, 0] if half else np.zeros_like(votes)
    untied = votes * [1, 1, 0] if half else votes
    either = np.where(said[:, TIE:] == 1, [0.5, 0.5, 0], said)
    found: Floats = np.einsum("ri,rj->rij", said, untied) + np.einsum("ri,rj->rij", either, tied)
    return found


def by_unit(tables: Floats, units: Units) -> Floats:
    """The tables of rows that are drawn together, added up: shape (units, 3, 3).

    >>> by_unit(np.ones((3, 3, 3)), np.array([0, 1, 0]))[0, 0, 0].item()
    2.0
    """
    found = np.zeros((int(units.max(initial=-1)) + 1, 3, 3))
    np.add.at(found, units, tables)
    return found
