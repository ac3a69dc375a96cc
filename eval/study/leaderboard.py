"""How far each contender can be trusted on each subject, with intervals; averages, gains, repeats, rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .contenders import Bill

if TYPE_CHECKING:
    from ..agreement import PreferenceAgreement, ScoreAgreement
    from ..statistics.distribution import ScoreDistribution
    from ..statistics.gains import Gain
    from ..statistics.ranking import Rankings
    from ..statistics.raters import AgreementWithPeople
    from ..statistics.reliability import Reliability
    from ..statistics.statistic import Statistic
    from ..statistics.systems import SystemAgreement


@dataclass(frozen=True)
class OverRepeats:
    """A measure in each repeat of the same thing (ChatEval, 2023, table 1; DEBATE, E.1).

    Attributes:
        values: one for each repeat, in order; ``None`` where the measure does not exist.
        mean: over the repeats that have one.
        deviation: their sample standard deviation (n - 1); ``None`` below two.
    """

    values: tuple[float | None, ...]
    mean: float | None
    deviation: float | None


@dataclass(frozen=True)
class WinnerShare:
    """How often one outcome of a comparison comes up.

    Attributes:
        winner: ``1``, ``2`` or ``tie``.
        judge, human: percent of verdicts, and of people's labels on the same rows; no value for people without labels.
    """

    winner: str
    judge: Statistic
    human: Statistic


@dataclass(frozen=True)
class Alphas:
    """Krippendorff's alpha: scores by amount, verdicts of comparisons as classes.

    Attributes:
        agents: between referees, or jurors, by their last words; ``None`` where there are not several.
        repeats: of a judge with itself, asked again; ``None`` for a single repeat.
        people: between annotators, and with the judge as one more of them; ``None`` without labels on its scale.
    """

    agents: Reliability | None = None
    repeats: Reliability | None = None
    people: AgreementWithPeople | None = None


@dataclass(frozen=True)
class Standing:
    """One contender on one subject.

    Measures are named ``pearson``, ``spearman``, ``kendall`` (over all rows), ``group_pearson``, ``group_spearman``,
    ``group_kendall`` (mean within groups), ``accuracy``, ``kappa``: see ``measures.MEASURES``.

    Attributes:
        contender, subject: their labels.
        judged, failed, missing: how many judgements have a verdict; have none; are not there.
        mean: the mean score; ``None`` for comparisons.
        rounds: the mean number of rounds.
        stop_reasons: for what reason how many came to their end.
        bill: what it took.
        agreement: with people, in full (rows that counted, groups skipped, rows left out and why).
        measures: the same figures by the measure's name, each with its interval.
        gains: over the base, by measure; empty for the base itself, and where the base did not judge the subject.
        repeats: by measure, where there are several.
        alphas: Krippendorff's alpha: of agents who judge beside each other, of repeats, and with people.
        systems: the mean score of each system beside people's; ``None`` for comparisons, or of unknown systems.
        ranking: of the systems that were compared, beside people's (with intervals of fewer resamples, as its
            ``resampling`` says); ``None`` for scores, of unknown systems, or where the package that ranks them is not
            there, as ``Leaderboard.notes`` says.
        distribution: how often each point of the scale was given, beside people; ``None`` for comparisons and metrics.
        winners: of comparisons, how often each answer won, beside people.
    """

    contender: str
    subject: str
    judged: int
    failed: int
    missing: int
    mean: float | None
    rounds: float | None
    stop_reasons: Mapping[str, int]
    bill: Bill
    agreement: ScoreAgreement | PreferenceAgreement | None
    measures: Mapping[str, Statistic] = field(default_factory=dict)
    gains: Mapping[str, Gain] = field(default_factory=dict)
    repeats: Mapping[str, OverRepeats] = field(default_factory=dict)
    alphas: Alphas | None = None
    systems: SystemAgreement | None = None
    ranking: Rankings | None = None
    distribution: ScoreDistribution | None = None
    winners: tuple[WinnerShare, ...] = ()


@dataclass(frozen=True)
class Average:
    """One contender's mean over the subjects of one dataset (the papers' ``average`` column).

    Attributes:
        contender, data: their labels.
        subjects: over which the mean is.
        measures: by name; no value where a subject has none, and no interval where subjects have different units.
        gains: of these means over the base's; empty for the base itself, and where it judged other subjects.
    """

    contender: str
    data: str
    subjects: tuple[str, ...]
    measures: Mapping[str, Statistic]
    gains: Mapping[str, Gain]


@dataclass(frozen=True)
class Leaderboard:
    """All contenders on all their subjects.

    Attributes:
        standings: in the order of the contenders, then of the subjects.
        averages: of contenders with several score subjects in one dataset.
        notes: what a reader should know.
    """

    standings: tuple[Standing, ...]
    averages: tuple[Average, ...]
    notes: tuple[str, ...] = ()

    def standing(self, contender: str, subject: str) -> Standing | None:
        """Of one contender on one subject, if it judged it."""
        return next((s for s in self.standings if (s.contender, s.subject) == (contender, subject)), None)
