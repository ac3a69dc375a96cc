"""Analyse one or more runs: ``Study.of`` computes everything that a report shows.

A *judge* is a protocol of a run. A *subject* is what judges are compared on: an aspect of a
dataset, or its preferences. Results are frozen and refer to judges and subjects by label. ``None``
means that a value does not exist.

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
      .panels             Panel (one a subject): Member, SubPanel                             panel_value.py
      .annotators         Annotators (one a subject): Rater, each one and each judge          annotators.py
      .pooled             PooledGains: LevelGain (method x dataset and model), pooled         pooled_gains.py
      .verdicts           VerdictSummary (judge x subject): means, winners, failures          verdict_summary.py
      .courtrooms         Courtroom (one a subject): the gap between both answers' scores     score_gaps.py

``panel_rows`` collects the rows that several judges judged, and ``panel_sources`` is the function
``panel`` for runs and for any rows.

``pilot`` plans the size of a study from a run: ``plan_study``.

``loading`` reads the runs. It stores a few numbers of each result, makes the samples from which
``statistics.sample`` computes agreement (verdict_columns.py), and counts the rest
(debate_counters.py).
"""

from .costs import AnnotatorRates
from .study import Study

__all__ = ["AnnotatorRates", "Study"]
