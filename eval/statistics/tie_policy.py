"""Set how votes on two answers are compared: what a human tie counts as, and whether the majority or each vote counts.

Confusion tables hold in row i and column j how often the judge said i and people said j, in the codes of ``CODES``.
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
"""The number that a winner has in arrays."""

Ties = Literal["class", "left_out", "half"]
"""A human tie is a class of its own, is left out, or is half right whatever the judge says."""
_TIES: dict[Ties, str] = {
    "class": "a human tie is a class of its own",
    "left_out": "human ties are left out",
    "half": "any verdict on a human tie is half right",
}

Votes = Literal["majority", "each"]
"""The votes of a row that are counted: people's majority, once, or each of their votes."""


@dataclass(frozen=True)
class TiePolicy:
    """Sets what counts as agreement on two answers. Scores are measured alike under every policy.

    Attributes:
        ties: what a human tie is: a ``class`` of its own, ``left_out``, or ``half`` right whatever the judge says.
        votes: whether people's ``majority`` is counted, or ``each`` of their votes.

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
        """The policy as a part of a run's signature; empty for the usual policy.

        >>> TiePolicy().signature, TiePolicy(votes="each").signature
        ('', 'ties=class,votes=each')
        """
        return "" if self == TiePolicy() else f"ties={self.ties},votes={self.votes}"

    def override(self, ties: str | None = None, votes: str | None = None) -> TiePolicy:
        """Return the same policy, except for what is given.

        Raises:
            UsageError: an unknown value.

        >>> TiePolicy(votes="each").override(ties="half")
        TiePolicy(ties='half', votes='each')
        """
        for name, value, known in (("ties", ties, get_args(Ties)), ("votes", votes, get_args(Votes))):
            if value not in (None, *known):
                raise UsageError(f"{name} {value!r} is not one of {', '.join(known)}")
        return TiePolicy(cast("Ties", ties or self.ties), cast("Votes", votes or self.votes))

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> TiePolicy:
        """Read the policy of a run from its manifest; runs made before there were policies have the usual one.

        Raises:
            UsageError: the manifest holds an unknown value.

        >>> TiePolicy.of({"data": {"rule": {"votes": "each"}}}), TiePolicy.of({})
        (TiePolicy(ties='class', votes='each'), TiePolicy(ties='class', votes='majority'))
        """
        written = (manifest.get("data") or {}).get("rule") or {}
        return cls().override(written.get("ties"), written.get("votes"))


DEFAULT_TIE_POLICY = TiePolicy()
"""The policy unless a dataset says otherwise: people's majority, ties a class of their own (ChatEval, section 3.4)."""


TIE_CODE = CODES["tie"]
TOWARDS_FIRST = np.array([1.0, -1.0, 0.0])
"""By its code, how far a winner leans towards answer 1."""


def wins(winners: Floats, toward: Floats) -> Floats:
    """Return of each row 1 where the answer that is pointed to wins, 0 where the other does, and half of a tie.

    Args:
        winners: codes.
        toward: 1 for the first answer, -1 for the second.

    >>> wins(np.array([0.0, 1, 2]), np.array([1.0, 1, 1]))
    array([1. , 0. , 0.5])
    """
    return (1 + TOWARDS_FIRST[winners.astype(np.intp)] * toward) / 2


def count_votes(labels: Floats) -> Floats:
    """Count of each row how often its labels, codes of winners, say 1, 2 and tie; NaN is no vote.

    Args:
        labels: of shape (rows, annotators).

    >>> count_votes(np.array([[0.0, 2.0, 2.0], [1.0, np.nan, np.nan]])).tolist()
    [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]]
    """
    return np.stack([(labels == code).sum(axis=1) for code in CODES.values()], axis=1).astype(float)


def confusion_tables(judged: NDArray[Any], votes: Floats, ties: Ties) -> Floats:
    """Return for each row how often the judge said one thing and people another: shape (rows, 3, 3).

    Where a human tie is half right, it is half a vote for either answer; a judge's tie is then half of either, too.
    A judge's tie against a human winner is wrong in any case.

    Args:
        judged: of each row the code of the judge's verdict.
        votes: of each row how often people said 1, 2 and tie, where that counts: shape (rows, 3).
        ties: what a human tie is.

    >>> tables = confusion_tables(np.array([0, 2]), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), "half")
    >>> tables.trace(axis1=1, axis2=2).tolist()
    [0.5, 0.5]
    """
    # A verdict as one vote: the row of the unit matrix that its code names.
    verdicts = np.eye(3)[judged.astype(np.intp)]
    tied: Floats = votes[:, TIE_CODE:] * [0.5, 0.5, 0]
    # Against a tie that counts half, whatever the judge says puts half of the vote on the diagonal.
    verdicts_on_ties = np.where(verdicts[:, TIE_CODE:] == 1, [0.5, 0.5, 0], verdicts)
    tables: Floats = np.einsum("ri,rj->rij", verdicts, votes * [1, 1, ties != "half"])
    return tables if ties != "half" else tables + np.einsum("ri,rj->rij", verdicts_on_ties, tied)
