"""Diagnose debates: changed verdicts, agreement by round, and the effect of the answers' order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..results.evaluation import Overview
from ..results.placebo import may_vary
from ..statistics.resampling import Resampling, Statistic, mean_statistic
from ..statistics.sample import paired_difference
from ..statistics.significance import clustered_sign_test, sign_test
from ..statistics.tie_policy import TOWARDS_FIRST
from ..tables.grid import Column, counts, share_column, text_column
from .debate_counters import Conformity, Objections, Replies, ScoreChanges
from .leanings import LengthBias, length_bias
from .loading import JudgeAspectData
from .verdict_columns import Verdicts, directions, distances, moved, sample

MOST = 40
"""The maximum number of rounds to analyse."""


@dataclass(frozen=True)
class Changes:
    """How often debate changed the first verdict, and whether for the better.

    A changed score is helpful if it ends nearer to the label, harmful if it ends farther away, and
    neither at equal distance. In comparisons the winner counts: helpful is from wrong to right,
    harmful from right to wrong.

    Attributes:
        n: verdicts with an earlier one to compare with.
        changed: verdicts that differ from the first one; ``moved`` is their share.
        labelled: changed verdicts with a label: the sum of ``helpful``, ``harmful`` and
            ``neither``.
        error: ``None`` in comparisons, because a verdict is right or wrong.
        up, down: scores that rose and fell; in comparisons, winners that changed towards answer 1
            and towards answer 2.
        placebo, effect, p_effect: ``None`` without repeats. See ``Placebo``.
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
    placebo: Annotated[Statistic | None, share_column("placebo")] = None
    """first verdicts that differ between two repeats of an item, with no discussion between them"""
    effect: Annotated[Statistic | None, share_column("effect")] = None
    """changed minus placebo, over pairs of repeats"""
    p_effect: Annotated[float | None, Column("p of effect", form="p")] = None
    """sign test over groups"""


@dataclass(frozen=True)
class Round:
    """The agreement if every debate had ended after this round.

    Attributes:
        round: 0 is the first score. In protocols that first score after a round of talk, it is that
            round. The number is the place in ``score_by_round``. Debates that have ended keep their
            last score.
        agreement: in the subject's leading metric.
        gain: ``None`` for the first round; its interval comes from paired resamples.
        calls: ``None`` if they cannot be assigned to rounds.
        error: ``None`` if scores and labels are not on one scale.
        final: whether this is the result of a tie-breaker, a jury, a vote or a mean over rounds
            instead of a round of talk. There is such an entry only if it differs from the last
            round.
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
    """The effect of the order of two answers.

    Winners are counted over all orders in which they were shown.

    Attributes:
        n: verdicts made in both orders.
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
    """The length of debates.

    Counts by number are in ascending order; counts by reason begin with the most frequent.
    """

    mean_rounds: Annotated[float | None, Column("rounds", digits=2)]
    """per verdict"""
    mean_calls: Annotated[float | None, Column("calls", digits=2)]
    """model calls per judgement"""
    unresolved: Annotated[float | None, share_column("unresolved")]
    """stopped by the round limit, or by a budget of tokens"""
    rounds: Annotated[Mapping[int, int], text_column("debates by round count", of=counts)]
    stop_reasons: Annotated[Mapping[str, int], text_column("stop reason", of=counts)]
    calls: Mapping[int, int]


def spending(of: Overview) -> Spending:
    """Return the rounds, calls and stop reasons of all judgements."""
    ends = Counter[str]()
    for reason, verdicts in of.stop_reasons.items():
        ends[reason or "complete"] += verdicts
    return Spending(
        mean_rounds=of.rounds.value,
        mean_calls=of.calls.value,
        # The stop reasons of debates that ended for no other reason.
        unresolved=(ends["max_rounds"] + ends["budget"]) / of.judged if of.judged else None,
        rounds=dict(sorted(of.rounds.items())),
        stop_reasons=dict(ends.most_common()),
        calls=dict(sorted(of.calls.items())),
    )


def changes(data: JudgeAspectData, resampling: Resampling) -> Changes | None:
    """Count how one judge's verdicts on a subject changed; ``None`` without debates."""
    rows = data.rows.take(data.rows.path_count > 0).in_order()
    if not data.debates or not len(rows):
        return None
    first = rows.after(0)
    last = rows.judged
    winners = rows.winners
    changed = moved(first, last, winners)
    comparable = changed & rows.labelled & data.distances
    ways = Counter(
        directions(first[comparable], last[comparable], rows.human[comparable], winners).tolist()
    )
    # Verdicts that differed after some round, whatever they were in the end.
    on_the_way = np.any(
        [moved(first, rows.after(entry), winners) for entry in range(rows.rounds)], axis=0
    )
    error = None
    if not winners and data.distances and rows.labelled.any():
        farther = np.abs(last - rows.human) - np.abs(first - rows.human)
        error = mean_statistic(farther[rows.labelled], rows.clusters[rows.labelled], resampling)
    if winners:
        # A winner rises towards answer 1: from answer 2 via a tie.
        first, last = (TOWARDS_FIRST[codes.astype(np.intp)] for codes in (first, last))
    rise = (last - first)[changed]
    placebo = _placebo(rows, changed, resampling)
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
        placebo=placebo.moved if placebo else None,
        effect=placebo.effect if placebo else None,
        p_effect=placebo.p if placebo else None,
    )


class Placebo(NamedTuple):
    """How often resampling alone changes the first verdict, and how often debate changes it more.

    Repeats of an item are independent debates. If a discussion only draws the verdict again, the
    last verdict of a debate and the first verdict of another debate are exchangeable: each differs
    equally often from the first verdict of the debate. Each repeat belongs to one pair at most, so
    the sign test is exact (Fisher 1935, The design of experiments, section 21).

    Attributes:
        moved: the share of first verdicts that differ from those of the other repeat.
        effect: the share of last verdicts that differ from the first ones, minus ``moved``.
        p: two-sided; ``None`` for too few groups.
    """

    moved: Statistic
    effect: Statistic
    p: float | None


def _placebo(rows: Verdicts, changed: NDArray[np.bool_], how: Resampling) -> Placebo | None:
    """Compare debates with their own repeats; ``None`` without repeats."""
    # Rows are sorted by item and repeat.
    starts = np.flatnonzero(np.diff(rows.item, prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    place = np.arange(len(rows)) - np.repeat(starts, sizes)
    last = np.repeat(sizes, sizes) - 1
    pairs = np.flatnonzero((place % 2 == 0) & (place < last))
    if not len(pairs):
        return None
    first = rows.after(0)
    redrawn = moved(first[pairs], first[pairs + 1], rows.winners)
    excess = changed[pairs].astype(int) - redrawn
    clusters = rows.clusters[pairs]
    return Placebo(
        mean_statistic(redrawn, clusters, how),
        mean_statistic(excess, clusters, how),
        clustered_sign_test(excess, clusters),
    )


def rounds(data: JudgeAspectData, resampling: Resampling) -> Iterator[Round]:
    """Yield the agreement after each round, then that of the final verdicts if it differs.

    Yield nothing without debates.
    """
    rows = data.labelled.take(data.labelled.path_count > 0)
    if not data.debates or not len(rows):
        return
    calls = data.calls_by_round
    verdicts = len(data.rows)
    count = min(MOST, rows.rounds)
    # The verdicts after each round; a debate that ended earlier keeps its last entry.
    stages = [
        (rows.after(entry), int((rows.path_count > entry).sum()), calls.up_to(entry, verdicts))
        for entry in range(count)
    ]
    # A tie-breaker or a jury may have overruled the last round.
    if moved(stages[-1][0], rows.judged, rows.winners).any():
        stages.append((rows.judged, len(rows), data.rows.usage_totals.calls_each))
    measure = data.subject.metric
    comparable = data.distances
    samples = [sample(data.subject, rows, resampling, judged) for judged, *_ in stages]
    for number, (now, (judged, active, calls_now)) in enumerate(zip(samples, stages, strict=True)):
        # The first round is compared with itself, so its gain is zero.
        was, _, calls_before = stages[max(0, number - 1)]
        gain = (
            paired_difference([(now, samples[number - 1])], measure).difference if number else None
        )
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
            error=fmean(distances(judged, rows.human, rows.winners).tolist())
            if comparable
            else None,
            final=number == count,
        )


@dataclass(frozen=True)
class Diagnosis:
    """The diagnostics of one judge's debates on one subject.

    ``None`` and empty values mean that a figure does not exist.

    Attributes:
        judge, subject: their labels.
        measure: the metric of ``rounds``: ``spearman`` or ``accuracy``.
        changes: ``None`` if every verdict has only one score.
        rounds: empty in the same case.
        score_changes: by agent, the one with the most changes first.
        conformity: for referees that give values in several turns.
        objections: by critics, to wrong and to right scores.
        spending: rounds and calls.
        positions: for comparisons.
        length: ``None`` if results have no lengths.
        replies: how well replies follow the required forms.
        notes: the notes for readers.
        varies: whether the judge may give another verdict when it judges again.
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
    varies: bool = False


def diagnose(data: JudgeAspectData, resampling: Resampling) -> Diagnosis:
    """Compute the diagnostics of one judge's debates on one subject."""
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
        varies=may_vary(data.judge.manifest, data.judge.protocol),
    )


def _positions(data: JudgeAspectData, resampling: Resampling) -> Positions | None:
    if data.subject.kind != "compare" or not len(data.rows):
        return None
    places = data.places
    both = data.orders.table()
    consistent = (
        mean_statistic(both["consistent"], both["cluster"], resampling) if len(both) else None
    )
    first = places["first"]
    second = places["second"]
    ties = places["tie"]
    return Positions(
        len(both), consistent, first, second, ties, sign_test(first, second, data.rows.clusters)
    )


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
        yield (
            f"no verdict: {data.failed} judgements failed"
            if data.failed
            else "nothing was judged yet"
        )
