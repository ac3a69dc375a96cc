"""Tell what the debates did: how verdicts changed, round by round, and whether the order of answers decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated

import numpy as np

from ..results.evaluation import Overview
from ..statistics.resampling import Resampling, Statistic, mean_statistic
from ..statistics.sample import paired_difference
from ..statistics.significance import sign_test
from ..statistics.tie_policy import TOWARDS_FIRST
from ..tables.grid import Column, counts, share_column, text_column
from .debate_counters import Conformity, Objections, Replies, ScoreChanges
from .leanings import LengthBias, length_bias
from .loading import JudgeAspectData
from .verdict_columns import directions, distances, moved, sample

MOST = 40
"""The most rounds that are looked at."""


@dataclass(frozen=True)
class Changes:
    """Says how often talking changed verdicts, from the first to the last, and whether for the better.

    A changed score is helpful if it ends nearer to the label, harmful if it ends farther away, and neither at equal
    distance. In comparisons the winner counts: helpful is from wrong to right, harmful from right to wrong.

    Attributes:
        n: verdicts with a first one to compare with.
        changed: those that ended elsewhere than they began; ``moved`` is their share.
        labelled: changed verdicts with a label: the sum of ``helpful``, ``harmful`` and ``neither``.
        error: ``None`` in comparisons, where a verdict is right or wrong.
        up, down: scores that rose and fell; in comparisons, winners that went to answer 1 and to answer 2.
    """

    n: Annotated[int, Column("verdicts")]
    moved: Annotated[Statistic, share_column("changed")]
    helpful: Annotated[int, Column("helpful")]
    """changes towards the label"""
    harmful: Annotated[int, Column("harmful")]
    """changes away from the label"""
    neither: Annotated[int, Column("neither")]
    p: Annotated[float | None, Column("p", form="p")]
    """sign test of helpful against harmful; none where rows share a group or an item"""
    error: Annotated[Statistic | None, Column("Δ error")]
    """mean change of the absolute error: below zero is better"""
    back: Annotated[int, Column("returned")]
    """verdicts that changed and then returned to the first one"""
    up: Annotated[int, Column("up")]
    down: Annotated[int, Column("down")]
    changed: int
    labelled: int


@dataclass(frozen=True)
class Round:
    """Holds the agreement if every debate had ended after this round; debates that were over keep their last score.

    Attributes:
        round: 0 is the first score (in protocols that score after a round of talk first: that round); it is the place
            in ``score_by_round``.
        agreement: in the subject's leading metric.
        gain: ``None`` for the first round; its interval comes from paired resamples.
        calls: ``None`` if they cannot be assigned to rounds.
        error: ``None`` if scores and labels are not on one scale.
        final: whether it is no round of talk, but what a tie-breaker, a jury, a vote or a mean over rounds made of
            the last one. There is such an entry only where it differs from the last round.
    """

    round: Annotated[int, Column("round")]
    active: Annotated[int, Column("active")]
    """verdicts with a score in this round"""
    agreement: Annotated[Statistic, Column("agreement")]
    """agreement with the labels if every debate had ended here"""
    gain: Annotated[Statistic | None, Column("gain")]
    """over the previous round"""
    calls: Annotated[float | None, Column("calls", digits=2)]
    """per judgement, up to this round"""
    gain_per_call: Annotated[float | None, Column("gain per call", digits=4)]
    changed: Annotated[int, Column("changed")]
    """verdicts that this round changed"""
    helpful: Annotated[int, Column("helpful")]
    """changes towards the label"""
    harmful: Annotated[int, Column("harmful")]
    """changes away from the label"""
    error: Annotated[float | None, Column("absolute error")]
    """mean over verdicts; in comparisons the share of wrong winners"""
    final: bool = False


@dataclass(frozen=True)
class Positions:
    """Says whether the order of two answers decides. Winners are counted over all orders in which they were shown.

    Attributes:
        n: verdicts that were made in both orders.
        consistent: ``None`` if every verdict was made in one order.
    """

    n: Annotated[int, Column("verdicts")]
    consistent: Annotated[Statistic | None, share_column("consistent")]
    """both orders gave the same winner"""
    shown_first: Annotated[int, Column("first shown wins")]
    shown_second: Annotated[int, Column("second shown wins")]
    ties: Annotated[int, Column("ties")]
    p: Annotated[float | None, Column("p", form="p")]
    """sign test of first against second; none where rows share a group or an item"""


@dataclass(frozen=True)
class Spending:
    """Says how long debates were. Counts by number rise, those by reason begin with the most frequent."""

    mean_rounds: Annotated[float | None, Column("rounds", digits=2)]
    """per verdict"""
    mean_calls: Annotated[float | None, Column("calls", digits=2)]
    """model calls per judgement"""
    unresolved: Annotated[float | None, share_column("unresolved")]
    """stopped by the round limit"""
    rounds: Annotated[Mapping[int, int], text_column("debates by round count", of=counts)]
    stop_reasons: Annotated[Mapping[str, int], text_column("stop reason", of=counts)]
    calls: Mapping[int, int]


def spending(of: Overview) -> Spending:
    """Return the rounds, calls and ends of all judgements."""
    ends = Counter[str]()
    for reason, verdicts in of.stop_reasons.items():
        ends[reason or "complete"] += verdicts
    return Spending(
        mean_rounds=of.rounds.value,
        mean_calls=of.calls.value,
        # The stop reason of debates that nothing else ended.
        unresolved=ends["max_rounds"] / of.judged if of.judged else None,
        rounds=dict(sorted(of.rounds.items())),
        stop_reasons=dict(ends.most_common()),
        calls=dict(sorted(of.calls.items())),
    )


def changes(data: JudgeAspectData, resampling: Resampling) -> Changes | None:
    """Count how one judge's verdicts on a subject changed; ``None`` where nobody talked, so that none could."""
    rows = data.rows.take(data.rows.path_count > 0)
    if not data.debates or not len(rows):
        return None
    first, last, winners = rows.after(0), rows.judged, rows.winners
    changed = moved(first, last, winners)
    comparable = changed & rows.labelled & data.distances
    ways = Counter(directions(first[comparable], last[comparable], rows.human[comparable], winners).tolist())
    # Verdicts that were elsewhere after some round, wherever they ended.
    on_the_way = np.any([moved(first, rows.after(entry), winners) for entry in range(rows.rounds)], axis=0)
    error = None
    if not winners and data.distances and rows.labelled.any():
        farther = np.abs(last - rows.human) - np.abs(first - rows.human)
        error = mean_statistic(farther[rows.labelled], rows.clusters[rows.labelled], resampling)
    if winners:
        # A winner rises towards answer 1: from answer 2 over a tie.
        first, last = (TOWARDS_FIRST[codes.astype(np.intp)] for codes in (first, last))
    rise = (last - first)[changed]
    return Changes(
        n=len(rows),
        changed=int(changed.sum()),
        moved=mean_statistic(changed, rows.clusters, resampling),
        back=int((on_the_way & ~changed).sum()),
        labelled=int(comparable.sum()),
        helpful=ways[1],
        harmful=ways[-1],
        neither=ways[0],
        p=sign_test(ways[1], ways[-1], rows.clusters),
        error=error,
        up=int((rise > 0).sum()),
        down=int((rise < 0).sum()),
    )


def rounds(data: JudgeAspectData, resampling: Resampling) -> Iterator[Round]:
    """Yield the agreement after each round, then that of the final verdicts if it differs; nothing without debates."""
    rows = data.labelled.take(data.labelled.path_count > 0)
    if not data.debates or not len(rows):
        return
    calls, verdicts, count = data.calls_by_round, len(data.rows), min(MOST, rows.rounds)
    # How all verdicts stood after each round; a debate that ended earlier stays at its last entry.
    stages = [
        (rows.after(entry), int((rows.path_count > entry).sum()), calls.up_to(entry, verdicts))
        for entry in range(count)
    ]
    # A tie-breaker or a jury may have decided otherwise than the last round.
    if moved(stages[-1][0], rows.judged, rows.winners).any():
        stages.append((rows.judged, len(rows), data.rows.usage_totals.calls_each))
    measure, comparable = data.subject.metric, data.distances
    samples = [sample(data.subject, rows, resampling, judged) for judged, *_ in stages]
    for number, (now, (judged, active, calls_now)) in enumerate(zip(samples, stages, strict=True)):
        # The first round is held against itself: it changed nothing.
        was, _, calls_before = stages[max(0, number - 1)]
        gain = paired_difference([(now, samples[number - 1])], measure).difference if number else None
        taken = None if calls_now is None or calls_before is None else calls_now - calls_before
        ways = directions(was, judged, rows.human, rows.winners) if comparable else np.zeros(0)
        yield Round(
            round=number,
            active=active,
            agreement=now.statistic(measure),
            gain=gain,
            calls=calls_now,
            gain_per_call=gain.value / taken if gain and gain.value is not None and taken else None,
            changed=int(moved(was, judged, rows.winners).sum()),
            helpful=int((ways == 1).sum()),
            harmful=int((ways == -1).sum()),
            error=fmean(distances(judged, rows.human, rows.winners).tolist()) if comparable else None,
            final=number == count,
        )


@dataclass(frozen=True)
class Diagnosis:
    """Holds what one judge's debates did on one subject. ``None`` and empty stand for what does not exist.

    Attributes:
        judge, subject: their labels.
        measure: in which ``rounds`` are given: ``spearman`` or ``accuracy``.
        changes: ``None`` where every verdict has one score only.
        rounds: empty likewise.
        score_changes: by agent, who moved most first.
        conformity: of referees who give values in several turns.
        objections: of critics, to wrong and to right scores.
        spending: rounds and calls.
        positions: of comparisons.
        length: ``None`` where results hold no lengths.
        replies: how well models kept to their forms.
        notes: what a reader should know.
    """

    judge: str
    subject: str
    measure: str
    changes: Changes | None
    rounds: tuple[Round, ...]
    score_changes: tuple[ScoreChanges, ...]
    conformity: Conformity | None
    spending: Spending
    positions: Positions | None
    length: LengthBias | None
    replies: Replies
    objections: Objections | None = None
    notes: tuple[str, ...] = ()


def diagnose(data: JudgeAspectData, resampling: Resampling) -> Diagnosis:
    """Compute what one judge's debates did on one subject."""
    return Diagnosis(
        judge=data.judge.label,
        subject=data.subject.label,
        measure=data.subject.metric,
        changes=changes(data, resampling),
        rounds=tuple(rounds(data, resampling)),
        score_changes=data.score_changes.score_changes(),
        conformity=data.conformity.conformity(data.rows.clusters),
        objections=data.objections.objections(resampling),
        spending=spending(data.overview),
        positions=_positions(data, resampling),
        length=length_bias(data, resampling),
        replies=data.replies.replies(),
        notes=tuple(_notes(data)),
    )


def _positions(data: JudgeAspectData, resampling: Resampling) -> Positions | None:
    if data.subject.kind != "compare" or not len(data.rows):
        return None
    places, both = data.places, data.orders.table()
    consistent = mean_statistic(both["consistent"], both["cluster"], resampling) if len(both) else None
    first, second, ties = places["first"], places["second"], places["tie"]
    return Positions(len(both), consistent, first, second, ties, sign_test(first, second, data.rows.clusters))


def _notes(data: JudgeAspectData) -> Iterator[str]:
    subject = data.subject
    if not data.judge.models and data.usage.judgements and subject.kind == "score":
        yield "a metric has its own scale, so absolute errors are left out"
    elif data.off_scale and subject.low is not None and subject.high is not None:
        outside = f"{data.off_scale} of {len(data.rows)} verdicts or their labels lie outside"
        yield f"{outside} {subject.low:g} to {subject.high:g}, so absolute errors are left out"
    if not len(data.labelled) and len(data.rows):
        yield "no verdict has a label, so agreement and errors are left out"
    if not len(data.rows):
        yield f"no verdict: {data.failed} judgements failed" if data.failed else "nothing was judged yet"
