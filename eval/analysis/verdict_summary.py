"""Summarise verdicts without labels: means, spread, winners, order consistency, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from ..statistics.resampling import Resampling, Statistic, mean_statistic
from ..statistics.tie_policy import CODES, WINNERS
from ..tables.grid import Column, counts, share_column, text_column
from .loading import JudgeAspectData


@dataclass(frozen=True)
class VerdictSummary:
    """The verdicts of one judge on one subject, without regard to labels.

    Attributes:
        judge, subject: their labels.
        wins: for comparisons, how often each of ``WINNERS`` won; empty for scores.
        stop_reasons: the number of verdicts by the reason for the end of the debate.
    """

    judge: Annotated[str, text_column("judge")]
    subject: Annotated[str, text_column("aspect")]
    judged: Annotated[int, Column("judged")]
    failed: Annotated[int, Column("failed")]
    mean: Annotated[Statistic | None, Column("mean", 2)] = None
    spread: Annotated[float | None, Column("sd", 2)] = None
    """standard deviation between verdicts (n - 1)"""
    lowest: Annotated[float | None, Column("lowest", 2)] = None
    highest: Annotated[float | None, Column("highest", 2)] = None
    first: Annotated[Statistic | None, share_column("answer 1 wins")] = None
    second: Annotated[Statistic | None, share_column("answer 2 wins")] = None
    tied: Annotated[Statistic | None, share_column("ties")] = None
    consistent: Annotated[Statistic | None, share_column("same in both orders")] = None
    """share of the comparisons judged in both orders in which both orders gave one winner"""
    orders: Annotated[int | None, Column("both orders")] = None
    """comparisons judged in both orders"""
    rounds: Annotated[float | None, Column("rounds", 2)] = None
    calls: Annotated[float | None, Column("calls", 1)] = None
    """model calls per judgement"""
    stop_reasons: Annotated[Mapping[str, int], text_column("stop reason", of=counts)] = field(
        default_factory=dict
    )
    wins: Mapping[str, int] = field(default_factory=dict)


def summarise_verdicts(data: JudgeAspectData, how: Resampling) -> VerdictSummary:
    """Summarise the verdicts of one judge on one subject."""
    rows = data.rows
    overview = data.overview
    ends = {reason or "complete": count for reason, count in overview.stop_reasons.most_common()}
    summary = VerdictSummary(
        judge=data.judge.label,
        subject=data.subject.label,
        judged=len(rows),
        failed=data.failed,
        rounds=overview.rounds.value,
        calls=data.usage.calls_each,
        stop_reasons=ends,
    )
    if not len(rows):
        return summary
    if data.subject.kind == "score":
        scores = rows.judged
        spread = float(scores.std(ddof=1)) if len(scores) > 1 else None
        mean = how.mean_interval(scores, rows.clusters)[0]
        return replace(
            summary,
            mean=mean,
            spread=spread,
            lowest=float(scores.min()),
            highest=float(scores.max()),
        )
    won = {winner: rows.judged == CODES[winner] for winner in WINNERS}
    first, second, tied = (mean_statistic(won[winner], rows.clusters, how) for winner in WINNERS)
    both = data.orders.table()
    consistent = mean_statistic(both["consistent"], both["cluster"], how) if len(both) else None
    return replace(
        summary,
        first=first,
        second=second,
        tied=tied,
        consistent=consistent,
        orders=len(both) or None,
        wins={winner: int(np.count_nonzero(of)) for winner, of in won.items()},
    )
