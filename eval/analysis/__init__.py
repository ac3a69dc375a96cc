"""Several runs looked at together.

    Study.of(folders, base=None, resampling=None, people=None, eps=0.1)               study.py
      .contenders   Contender: a protocol of a run; Bill: what it took                contenders.py
      .subjects     Subject: an aspect (or the preference) of a dataset               contenders.py
      .leaderboard  Leaderboard: Standing (contender x subject), Average              leaderboard.py
      .comparison   Comparison: Duel (a pair on a subject): Difference, PairedTest;
                    AverageDuel (a pair over a dataset's aspects)                     comparison.py
      .matching     Matching: EnsembleOf (k of K judges), Match                       matching.py
      .frontiers    Frontier (one a subject): Point, Curve                            frontier.py
      .diagnoses    Diagnosis (contender x subject): Changes, Round, Mover,
                    Conformity, Spending, Positions, LengthBias, Replies              diagnostics.py
      .costs        Costs: CostRow; People: what people would take                    costs.py
      .courtrooms   Courtroom (one a subject with MORE, SAMRE, baseline)              courtroom.py

What these files describe is computed elsewhere: ``gathering`` reads runs, keeps of each result a ``Row``, and
counts the rest as it comes by; ``standings``, ``comparing``, ``matchmaking``, ``pareto``, ``diagnosing``, ``pricing``
and ``gaps`` fill them in.

Everything is frozen and refers to contenders and subjects by their labels. ``None`` stands for what does not exist.
"""

from .comparison import AverageDuel, Comparison, Difference, Duel, PairedTest
from .costs import CostRow, Costs, Curve, Frontier, People, Point
from .counters import Replies, Spending
from .diagnostics import Changes, Diagnosis, Positions, Round
from .equal_cost import EnsembleOf, Match, Matching
from .influence import Conformity, Mover
from .judges import Bill, Contender, Subject
from .leaderboard import Alphas, Average, Leaderboard, OverRepeats, Standing, WinnerShare
from .length_bias import LengthBias
from .score_gaps import Courtroom
from .study import Study

__all__ = [
    "Alphas",
    "Average",
    "AverageDuel",
    "Bill",
    "Changes",
    "Comparison",
    "Conformity",
    "Contender",
    "CostRow",
    "Costs",
    "Courtroom",
    "Curve",
    "Diagnosis",
    "Difference",
    "Duel",
    "EnsembleOf",
    "Frontier",
    "Leaderboard",
    "LengthBias",
    "Match",
    "Matching",
    "Mover",
    "OverRepeats",
    "PairedTest",
    "People",
    "Point",
    "Positions",
    "Replies",
    "Round",
    "Spending",
    "Standing",
    "Study",
    "Subject",
    "WinnerShare",
]
