"""Several runs looked at together.

    Study.of(folders, base=None, resampling=None, people=None, eps=0.1)               study.py
      .contenders   Judge: a protocol of a run; UsageTotals: what it took                contenders.py
      .subjects     EvaluationTarget: an aspect (or the preference) of a dataset               contenders.py
      .leaderboard  Leaderboard: LeaderboardEntry (contender x subject), Average              leaderboard.py
      .comparison   Comparison: PairwiseComparison (a pair on a subject): Difference, PairedTest;
                    AverageComparison (a pair over a dataset's aspects)                     comparison.py
      .matching     EqualCostComparison: EnsembleOf (k of K judges), EqualCostMatch                       matching.py
      .frontiers    Frontier (one a subject): Point, Curve                            frontier.py
      .diagnoses    Diagnosis (contender x subject): Changes, Round, ScoreChanges,
                    Conformity, Spending, Positions, LengthBias, Replies              diagnostics.py
      .costs        Costs: CostRow; People: what people would take                    costs.py
      .courtrooms   Courtroom (one a subject with MORE, SAMRE, baseline)              courtroom.py

What these files describe is computed elsewhere: ``gathering`` reads runs, keeps of each result a ``Row``, and
counts the rest as it comes by; ``standings``, ``comparing``, ``matchmaking``, ``pareto``, ``diagnosing``, ``pricing``
and ``gaps`` fill them in.

Everything is frozen and refers to contenders and subjects by their labels. ``None`` stands for what does not exist.
"""

from ..run.evaluation import UsageTotals
from .comparison import AverageComparison, Comparison, Difference, PairedTest, PairwiseComparison
from .costs import CostRow, Costs, Curve, Frontier, People, Point
from .counters import Replies, Spending
from .diagnostics import Changes, Diagnosis, Positions, Round
from .equal_cost import EnsembleOf, EqualCostComparison, EqualCostMatch
from .influence import Conformity, ScoreChanges
from .judges import EvaluationTarget, Judge
from .leaderboard import Alphas, Average, Leaderboard, LeaderboardEntry, OverRepeats, WinnerShare
from .length_bias import LengthBias
from .score_gaps import Courtroom
from .study import Study

__all__ = [
    "Alphas",
    "Average",
    "AverageComparison",
    "Changes",
    "Comparison",
    "Conformity",
    "CostRow",
    "Costs",
    "Courtroom",
    "Curve",
    "Diagnosis",
    "Difference",
    "EnsembleOf",
    "EqualCostComparison",
    "EqualCostMatch",
    "EvaluationTarget",
    "Frontier",
    "Judge",
    "Leaderboard",
    "LeaderboardEntry",
    "LengthBias",
    "OverRepeats",
    "PairedTest",
    "PairwiseComparison",
    "People",
    "Point",
    "Positions",
    "Replies",
    "Round",
    "ScoreChanges",
    "Spending",
    "Study",
    "UsageTotals",
    "WinnerShare",
]
