"""People's votes as instances: what a human tie is, votes or majority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ...state.errors import UsageError
from .alignment import Floats, Units

CODES = {"1": 0, "2": 1, "tie": 2}

Ties = Literal["class", "left_out", "half"]
"""A human tie is a class of its own, is left out, or is half right whatever the judge says."""
_TIES: dict[Ties, str] = {
    "class": "a human tie is a class of its own",
    "left_out": "human ties are left out",
    "half": "a human tie is half right whatever the judge says",
}

Votes = Literal["majority", "each"]
"""People's majority is one instance, or each of their votes is."""


@dataclass(frozen=True)
class TiePolicy:
    """What counts as agreement on two answers. Scores are measured alike under every rule.

    Attributes:
        ties: what a human tie is: a ``class`` of its own, ``left_out``, or ``half`` right whatever the judge says.
        votes: whether people's ``majority`` is an instance, or ``each`` of their votes.

    >>> print(TiePolicy(ties="left_out", votes="each"))
    every human vote is an instance; human ties are left out; a judge's tie against a human winner is wrong
    """

    ties: Ties = "class"
    votes: Votes = "majority"

    def __str__(self) -> str:
        whose = "every human vote is an instance" if self.votes == "each" else "people's majority counts"
        return f"{whose}; {_TIES[self.ties]}; a judge's tie against a human winner is wrong"

    @property
    def signature(self) -> str:
        """As a part of a run's signature; empty for the usual rule.

        >>> TiePolicy().signature, TiePolicy(votes="each").signature
        ('', 'ties=class,votes=each')
        """
        return "" if self == TiePolicy() else f"ties={self.ties},votes={self.votes}"

    def described(self) -> dict[str, str]:
        """As the manifest of a run has it."""
        return asdict(self)

    def override(self, ties: str | None = None, votes: str | None = None) -> TiePolicy:
        """The same, except for what is given.

        Raises:
            UsageError: a value that there is not.

        >>> TiePolicy(votes="each").override(ties="half")
        TiePolicy(ties='half', votes='each')
        """
        for name, value, known in (("ties", ties, get_args(Ties)), ("votes", votes, get_args(Votes))):
            if value not in (None, *known):
                raise UsageError(f"{name} {value!r} is not one of {', '.join(known)}")
        return TiePolicy(cast("Ties", ties or self.ties), cast("Votes", votes or self.votes))

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> TiePolicy:
        """Of a run, by its manifest; runs that were made before there were rules have the usual one.

        Raises:
            UsageError: the manifest holds a rule that there is not.

        >>> TiePolicy.of({"data": {"rule": {"votes": "each"}}}), TiePolicy.of({})
        (TiePolicy(ties='class', votes='each'), TiePolicy(ties='class', votes='majority'))
        """
        said = (manifest.get("data") or {}).get("rule") or {}
        return cls().override(said.get("ties"), said.get("votes"))

    def vote_counts(self, human: str, annotations: Sequence[Any]) -> tuple[int, int, int]:
        """How often people said 1, 2 and tie, of the votes that are instances.

        >>> TiePolicy(votes="each").vote_counts("1", ["1", "1", "tie"]), TiePolicy().vote_counts("1", ["1", "1", "tie"])
        ((2, 0, 1), (1, 0, 0))
        """
        said = list(annotations) if self.votes == "each" and annotations else [human]
        if self.ties == "left_out":
            said = [vote for vote in said if vote != "tie"]
        one, other, tie = (said.count(name) for name in CODES)
        return one, other, tie


DEFAULT_TIE_POLICY = TiePolicy()
"""What holds unless a dataset says otherwise: people's majority, ties a class of their own (ChatEval, section 3.4)."""


class Overrides(TypedDict, total=False):
    """What is given instead of a rule's own; ``None`` as if it were not there."""

    ties: str | None
    votes: str | None


TIE_CODE = 2
"""The code of a tie; 0 and 1 are the answers."""


def counted_votes(votes: Floats, ties: Ties) -> Floats:
    """The votes that count: those for a tie do not where human ties are left out.

    Args:
        votes: of each row how often people said 1, 2 and tie: shape (rows, 3).
        ties: what a human tie is.

    >>> counted_votes(np.array([[1.0, 0.0, 2.0]]), "left_out").tolist()
    [[1.0, 0.0, 0.0]]
    """
    found = votes.astype(float)
    if ties == "left_out":
        found[:, TIE_CODE] = 0
    return found


def confusion_tables(judged: NDArray[Any], votes: Floats, ties: Ties) -> Floats:
    """For each row how often the judge said one thing and people another: shape (rows, 3, 3).

    Where a human tie is half right, it is half a vote for either answer; a judge's tie is then half of either, too.
    A judge's tie against a human winner is wrong in any case.

    Args:
        judged: of each row the code of the judge's verdict.
        votes: of each row how often people said 1, 2 and tie: shape (rows, 3).
        ties: what a human tie is.

    >>> right = confusion_tables(np.array([0, 2]), np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]), "half")
    >>> right.trace(axis1=1, axis2=2).tolist()
    [0.5, 0.5]
    """
    votes, said = counted_votes(votes, ties), np.eye(3)[judged.astype(np.intp)]
    half = ties == "half"
    tied = votes[:, TIE_CODE:] * [0.5, 0.5, 0] if half else np.zeros_like(votes)
    untied = votes * [1, 1, 0] if half else votes
    either = np.where(said[:, TIE_CODE:] == 1, [0.5, 0.5, 0], said)
    found: Floats = np.einsum("ri,rj->rij", said, untied) + np.einsum("ri,rj->rij", either, tied)
    return found


def sum_by_unit(tables: Floats, units: Units) -> Floats:
    """The tables of rows that are drawn together, added up: shape (units, 3, 3).

    >>> sum_by_unit(np.ones((3, 3, 3)), np.array([0, 1, 0]))[0, 0, 0].item()
    2.0
    """
    found = np.zeros((int(units.max(initial=-1)) + 1, 3, 3))
    np.add.at(found, units, tables)
    return found
