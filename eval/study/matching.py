"""Against an ensemble of single judges that costs as much: the smaller ensembles that one big ensemble holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .comparison import Duel
from .contenders import Bill

if TYPE_CHECKING:
    from ..statistics.statistic import Statistic

Unit = Literal["cost", "calls"]
"""What is spent: US dollars where every price is known and something was paid, else model calls."""


@dataclass(frozen=True)
class EnsembleOf:
    """The first k single judges of a run, taken as an ensemble of their own, on one subject.

    Attributes:
        label: such as ``ensemble, 2 of 5``.
        source: the contender that holds it.
        subject: its label.
        k: how many judges.
        bill: what they alone took.
        measure: the subject's main measure (``spearman`` or ``accuracy``).
        agreement: with people, in that measure; with its interval.
    """

    label: str
    source: str
    subject: str
    k: int
    bill: Bill
    measure: str
    agreement: Statistic


@dataclass(frozen=True)
class Match:
    """One contender beside the biggest ensemble that costs no more than it, on the same rows.

    Attributes:
        contender, subject: their labels.
        ensemble: what it is compared with.
        unit: whether cost or calls were matched.
        spent, ensemble_spent: of that unit, a judgement.
        duel: contender (first) against ensemble (second), as in the fair comparison; p-values are adjusted over all
            matches on the subject.
    """

    contender: str
    subject: str
    ensemble: EnsembleOf
    unit: Unit
    spent: float
    ensemble_spent: float
    duel: Duel


@dataclass(frozen=True)
class Matching:
    """Every contender against single judges at its own price.

    Attributes:
        ensembles: all k of all sources, by subject and source, k rising.
        matches: by subject, in the order of the contenders.
        notes: why a contender has no match; where the study holds no ensemble, the command that makes one.
    """

    ensembles: tuple[EnsembleOf, ...]
    matches: tuple[Match, ...]
    notes: tuple[str, ...] = ()
