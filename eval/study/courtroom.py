"""The courtroom's gaps between two answers' scores: how they grow, and under whom they are wider (courtroom paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..statistics.differentiation import Gaps, IterationComplexity, ScoreDifferentiation

PROTOCOLS = ("more", "samre", "baseline")
"""Those whose judge gives each side a total of six criteria, in the order in which they are held against each other."""


@dataclass(frozen=True)
class Courtroom:
    """The gap analysis of one subject (courtroom paper, appendices A and B; Theorems 1 and 2).

    Attributes:
        subject: its label.
        eps: the threshold, as a share of the widest possible gap.
        gaps: by contender, the gap after each round, with the model's tail and the paper's bound.
        differentiation: mean gaps beside each other on the same items; ``None`` for a single contender.
        complexity: rounds until the gap reaches ``eps``, on the same items; ``None`` likewise. The baseline, which has
            one round, is not in it.
    """

    subject: str
    eps: float
    gaps: Mapping[str, Gaps]
    differentiation: ScoreDifferentiation | None
    complexity: IterationComplexity | None
