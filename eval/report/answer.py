"""Decide which statement about the judges of a dataset its figures support.

Examples: one judge is best, or a judge agrees with the labels at all. The sentences for each
outcome are in ``headline``. docs/promises.md shows the outcome for simulated judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..analysis.judges import Judge
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS
from .ranked_dataset import LeadOverRunnerUp, RankedDataset


class Outcome(Enum):
    """The statement that the figures of a dataset support."""

    BEST = "one judge leads all others significantly"
    UNCLEAR = "the first judge's lead may be chance"
    TWO_ABILITIES = "one judge separates groups better, another the items of a group"
    AGREES = "the only judge agrees better than chance"
    IDENTICAL = "all ranked judges gave identical verdicts"
    NONE = "no judge agrees better than chance"
    CONSTANT = "each judge gave every item the same verdict"
    TOO_FEW = "too few independent units for any claim"
    UNMEASURED = "there is no agreement to compute"


@dataclass(frozen=True)
class Answer:
    """The statement about the judges of a dataset, with the judges and figures in it.

    Attributes:
        outcome: the statement that the figures support.
        judges: the judges that the headline names, the first one first.
        lead: the difference between the first two of them, if both are compared.
        against: the lead of the second over the first by the companion metric, if that contradicts
            the order.
    """

    outcome: Outcome
    judges: tuple[Judge, ...] = ()
    lead: LeadOverRunnerUp | None = None
    against: LeadOverRunnerUp | None = None


def answer_of(dataset: RankedDataset) -> Answer:
    """Choose the statement about the judges of a dataset by the tests of the comparison."""
    if not dataset.ranked:
        constant = [judge for judge in dataset.judges if dataset.constant(judge)]
        # If all labels are the same, a constant judge neither agrees nor disagrees.
        is_constant = bool(constant) and dataset.labels_differ
        return (
            Answer(Outcome.CONSTANT, tuple(constant)) if is_constant else Answer(Outcome.UNMEASURED)
        )
    best, *others = dataset.ranked
    leads = [dataset.lead(best, other) for other in others]
    # Judges that give whole groups one score may share few groups, and have another order in these.
    unsure = any(lead and lead.difference.low is None for lead in leads[:1])
    if dataset.figure(best).low is None or unsure or any(lead and lead.few for lead in leads):
        return Answer(Outcome.TOO_FEW, (best, *others[:1]), leads[0] if leads else None)
    sure = [judge for judge in dataset.ranked if dataset.beats_chance(judge)]
    if not sure:
        # An interval above 0 without significance after Holm's adjustment supports neither claim.
        chance = dataset.chance(best)
        above = chance is not None and (chance.tested.low or 0.0) > 0
        is_close = others and above and not dataset.compares
        return (
            Answer(Outcome.UNCLEAR, (best, others[0]), leads[0])
            if is_close
            else Answer(Outcome.NONE, (best,))
        )
    if best not in sure:
        return Answer(Outcome.UNCLEAR, (best, sure[0]), dataset.lead(best, sure[0]))
    if not others:
        return Answer(Outcome.AGREES, (best,))
    return _contradiction(dataset) or _first_place(dataset)


def _contradiction(dataset: RankedDataset) -> Answer | None:
    """Return the answer if the companion metric contradicts the order; otherwise ``None``.

    It contradicts the order if another judge agrees significantly better than the first by the
    companion. The companion of accuracy is kappa; that of a figure over rows is the figure within
    groups.
    """
    best = dataset.ranked[0]
    companion = METRICS[dataset.measure].companion
    if companion is None:
        return None
    leads = [(other, dataset.lead(other, best, companion)) for other in dataset.ranked[1:]]
    against = [(other, lead) for other, lead in leads if lead and lead.holds]
    if not against:
        return None
    # The judge with the largest lead by the companion.
    rival, lead = max(against, key=lambda pair: pair[1].difference.value or 0.0)
    own = dataset.lead(best, rival)
    # If both orders are significant, the metrics measure two abilities.
    both = own is not None and own.holds and not dataset.compares
    return Answer(Outcome.TWO_ABILITIES if both else Outcome.UNCLEAR, (best, rival), own, lead)


def _first_place(dataset: RankedDataset) -> Answer:
    best = dataset.ranked[0]
    same = dataset.same_as(best)
    others = [judge for judge in dataset.ranked[1:] if judge not in same]
    if not others:
        return Answer(Outcome.IDENTICAL, (best, *same))
    leads = [(other, dataset.lead(best, other)) for other in others]
    open_to = [(other, lead) for other, lead in leads if lead is None or not lead.holds]
    if open_to:
        other, lead = open_to[0]
        return Answer(Outcome.UNCLEAR, (best, other), lead)
    other, lead = leads[0]
    return Answer(Outcome.BEST, (best, *same, other), lead)


def too_few(dataset: RankedDataset) -> bool:
    """Whether the first judge's figure is based on fewer units than a claim needs."""
    clusters = dataset.clusters(dataset.ranked[0])
    return clusters is not None and clusters < FEWEST_CLUSTERS
