"""Analyse one or more runs: ``Study.of`` computes once all that a report shows.

A *judge* is a protocol of a run; a *subject* is what judges are compared on, an aspect of a dataset or its preferences.
Results are frozen and name judges and subjects by their labels; ``None`` stands for what does not exist.

    Study                 all of this, of some runs                                           study.py
      .judges             Judge: a protocol of a run; UsageTotals: its calls, tokens, cost    judges.py
      .subjects           Subject: an aspect, or the preferences, of a dataset                judges.py
      .leaderboard        Leaderboard: LeaderboardEntry (judge x subject), Average, Gain      leaderboard.py
      .comparison         Comparison: PairwiseComparison (a pair on a subject), PairedTest    comparison.py
      .matching           EqualCostComparison: EnsembleOf (k of K judges), EqualCostMatch     equal_cost.py
      .frontiers          Frontier (one a subject): Point                                     costs.py
      .diagnoses          Diagnosis (judge x subject): Changes, Round, Positions, Spending    diagnostics.py
                          ScoreChanges, Conformity, Objections, Replies                       debate_counters.py
                          LengthBias                                                          leanings.py
      .costs              Costs: CostRow; AnnotatorRates: what people would take              costs.py
      .leanings           Leaning (judge x subject): level, length, place                     leanings.py
      .annotators         Annotators (one a subject): Rater, each one and each judge          annotators.py
      .pooled             PooledGains: LevelGain (method x dataset and model), pooled         pooled_gains.py
      .courtrooms         Courtroom (one a subject): the gap between both answers' scores     score_gaps.py

``loading`` reads the runs: of each result it keeps a few numbers and makes the samples that ``statistics.sample``
computes agreement from (verdict_columns.py), and counts the rest (debate_counters.py).
"""

from .costs import AnnotatorRates
from .study import Study

__all__ = ["AnnotatorRates", "Study"]
