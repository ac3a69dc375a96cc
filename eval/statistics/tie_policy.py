"""The policy for votes on two answers: the meaning of a human tie, and majority or single votes.

Confusion tables count in row i and column j how often the judge said i and humans said j, in the
codes of ``CODES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ...state.errors import UsageError
from ...state.verdict import Winner
from .alignment import Floats

WINNERS: tuple[Winner, ...] = ("1", "2", "tie")
CODES: dict[str, int] = {winner: code for code, winner in enumerate(WINNERS)}
"""The number of each winner in arrays."""

Ties = Literal["class", "left_out", "half"]
"""A human tie is its own class, is left out, or is half right for any verdict."""
_TIES: dict[Ties, str] = {
    "class": "a human tie is a class of its own",
    "left_out": "human ties are left out",
    "half": "any verdict on a human tie is half right",
}

Votes = Literal["majority", "each"]
"""The votes of a row that count: the human majority, once, or each of the votes."""


@dataclass(frozen=True)
class TiePolicy:
    """What counts as agreement on two answers; scores do not depend on the policy.

    Attributes:
        ties: the meaning of a human tie: its own ``class``, ``left_out``, or ``half`` right for any
            verdict.
        votes: whether the human ``majority`` counts, or ``each`` vote.

    >>> print(TiePolicy(ties="left_out", votes="each"))
    every human vote counts; human ties are left out; a judge's tie against a human winner is wrong
    """

    ties: Ties = "class"
    votes: Votes = "majority"

    def __str__(self) -> str:
        whose = "every human vote counts" if self.votes == "each" else "the human majority counts"
        return f"{whose}; {_TIES[self.ties]}; a judge's tie against a human winner is wrong"

    @property
    def signature(self) -> str:
        """The policy as a part of a run's signature; empty for the default policy.

        >>> TiePolicy().signature, TiePolicy(votes="each").signature
        ('', 'ties=class,votes=each')
        """
        return "" if self == TiePolicy() else f"ties={self.ties},votes={self.votes}"

    def override(self, ties: str | None = None, votes: str | None = None) -> TiePolicy:
        """Return the same policy with other values for the given fields.

        Raises:
            UsageError: an unknown value.

        >>> TiePolicy(votes="each").override(ties="half")
        TiePolicy(ties='half', votes='each')
        """
        for name, value, known in (
            ("ties", ties, get_args(Ties)),
            ("votes", votes, get_args(Votes)),
        ):
            if value not in (None, *known):
                raise UsageError(f"{name} {value!r} is not one of {', '.join(known)}")
        return TiePolicy(cast("Ties", ties or self.ties), cast("Votes", votes or self.votes))

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> TiePolicy:
        """Read the policy of a run from its manifest; older runs have the default one.

        Raises:
            UsageError: the manifest contains an unknown value.

        >>> TiePolicy.of({"data": {"rule": {"votes": "each"}}}), TiePolicy.of({})
        (TiePolicy(ties='class', votes='each'), TiePolicy(ties='class', votes='majority'))
        """
        written = (manifest.get("data") or {}).get("rule") or {}
        return cls().override(written.get("ties"), written.get("votes"))


DEFAULT_TIE_POLICY = TiePolicy()
"""The default policy: the human majority, with ties as their own class (ChatEval, section 3.4)."""


TIE_CODE = CODES["tie"]
TOWARDS_FIRST = np.array([1.0, -1.0, 0.0])
"""The preference of each code for answer 1."""


def wins(winners: Floats, toward: Floats) -> Floats:
    """Return 1 for each row in which the given answer wins, 0 if the other wins, and 0.5 for a tie.

    Args:
        winners: codes.
        toward: 1 for the first answer, -1 for the second.

    >>> wins(np.array([0.0, 1, 2]), np.array([1.0, 1, 1]))
    array([1. , 0. , 0.5])
    """
    return (1 + TOWARDS_FIRST[winners.astype(np.intp)] * toward) / 2


def count_votes(labels: Floats) -> Floats:
    """Count how often each row's labels, codes of winners, are 1, 2 and tie; NaN is no vote.

    Args:
        labels: of shape (rows, annotators).

    >>> count_votes(np.array([[0.0, 2.0, 2.0], [1.0, np.nan, np.nan]])).tolist()
    [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]
    """
    return np.stack([(labels == code).sum(axis=1) for code in CODES.values()], axis=1).astype(float)


def confusion_tables(judged: NDArray[Any], votes: Floats, ties: Ties) -> Floats:
    """Return each row's table of the judge's and the human verdicts: shape (rows, 3, 3).

    If a human tie is half right, it is half a vote for either answer, and a judge's tie is then
    half of either too. A judge's tie against a human winner is always wrong.

    Args:
        judged: the code of the judge's verdict in each row.
        votes: the counting human votes for 1, 2 and tie in each row: shape (rows, 3).
        ties: the meaning of a human tie.

    >>> tables = confusion_tables(np.array([0, 2]), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), "half")
    >>> tables.trace(axis1=1, axis2=2).tolist()
    [0.5, 0.5]
    """
    # A verdict as one vote: the row of the unit matrix with its code.
    verdicts = np.eye(3)[judged.astype(np.intp)]
    tied: Floats = votes[:, TIE_CODE:] * [0.5, 0.5, 0]
    # Against a tie that counts half, any verdict puts half of the vote on the diagonal.
    verdicts_on_ties = np.where(verdicts[:, TIE_CODE:] == 1, [0.5, 0.5, 0], verdicts)
    tables: Floats = np.einsum("ri,rj->rij", verdicts, votes * [1, 1, ties != "half"])
    return tables if ties != "half" else tables + np.einsum("ri,rj->rij", verdicts_on_ties, tied)
