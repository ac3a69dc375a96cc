"""How a comparison is measured against people: what a human tie is, and whether each vote counts or their majority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, cast, get_args

from ..state.errors import UsageError
from .statistics.votes import Ties, Votes

CODES = {"1": 0, "2": 1, "tie": 2}
_TIES: dict[Ties, str] = {
    "class": "a human tie is a class of its own",
    "left_out": "human ties are left out",
    "half": "a human tie is half right whatever the judge says",
}


@dataclass(frozen=True)
class Rule:
    """What counts as agreement on two answers. Scores are measured alike under every rule.

    Attributes:
        ties: what a human tie is: a ``class`` of its own, ``left_out``, or ``half`` right whatever the judge says.
        votes: whether people's ``majority`` is an instance, or ``each`` of their votes.

    >>> print(Rule(ties="left_out", votes="each"))
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

        >>> Rule().signature, Rule(votes="each").signature
        ('', 'ties=class,votes=each')
        """
        return "" if self == Rule() else f"ties={self.ties},votes={self.votes}"

    def described(self) -> dict[str, str]:
        """As the manifest of a run has it."""
        return asdict(self)

    def but(self, ties: str | None = None, votes: str | None = None) -> Rule:
        """The same, except for what is given.

        Raises:
            UsageError: a value that there is not.

        >>> Rule(votes="each").but(ties="half")
        Rule(ties='half', votes='each')
        """
        for name, value, known in (("ties", ties, get_args(Ties)), ("votes", votes, get_args(Votes))):
            if value not in (None, *known):
                raise UsageError(f"{name} {value!r} is not one of {', '.join(known)}")
        return Rule(cast("Ties", ties or self.ties), cast("Votes", votes or self.votes))

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Rule:
        """Of a run, by its manifest; runs that were made before there were rules have the usual one.

        Raises:
            UsageError: the manifest holds a rule that there is not.

        >>> Rule.of({"data": {"rule": {"votes": "each"}}}), Rule.of({})
        (Rule(ties='class', votes='each'), Rule(ties='class', votes='majority'))
        """
        said = (manifest.get("data") or {}).get("rule") or {}
        return cls().but(said.get("ties"), said.get("votes"))

    def cast(self, human: str, annotations: Sequence[Any]) -> tuple[int, int, int]:
        """How often people said 1, 2 and tie, of the votes that are instances.

        >>> Rule(votes="each").cast("1", ["1", "1", "tie"]), Rule().cast("1", ["1", "1", "tie"])
        ((2, 0, 1), (1, 0, 0))
        """
        said = list(annotations) if self.votes == "each" and annotations else [human]
        if self.ties == "left_out":
            said = [vote for vote in said if vote != "tie"]
        one, other, tie = (said.count(name) for name in CODES)
        return one, other, tie


USUAL = Rule()
"""What holds unless a dataset says otherwise: people's majority, ties a class of their own (ChatEval, section 3.4)."""


class Overrides(TypedDict, total=False):
    """What is given instead of a rule's own; ``None`` as if it were not there."""

    ties: str | None
    votes: str | None
