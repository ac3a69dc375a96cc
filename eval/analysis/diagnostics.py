"""Tell what the debates did: how verdicts changed, round by round, and whether the order of answers decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ..statistics.alignment import Floats, number_groups
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Sample, difference
from ..statistics.significance import sign_test
from .counters import Replies, Spending
from .influence import Conformity, ScoreChanges
from .length_bias import LengthBias, length_bias
from .loading import JudgeAspectData, LoadedJudge
from .measures import mean_statistic, sample
from .verdict_columns import Verdicts, directions, distances, moved


@dataclass(frozen=True)
class Changes:
    """Says how often talking changed verdicts, from the first to the last, and whether for the better.

    Of scores, a change is helpful that ends nearer to people, harmful that ends farther from them, and neither at equal
    distance. Of two answers the winner counts: helpful is from wrong to right, harmful from right to wrong, neither
    from wrong to wrong otherwise.

    Attributes:
        n: verdicts with a first one to compare with.
        changed: how many ended elsewhere than they began; ``moved`` the share of them with its interval.
        moved: ``changed / n``.
        back: how many moved on the way and came back to where they began.
        labelled: changed verdicts that have a label; the next three add up to it.
        helpful, harmful, neither: how many.
        p: two-sided sign test of helpful against harmful; ``None`` without either.
        error: mean change of the distance to people over all labelled verdicts (below zero: nearer); ``None`` for two
            answers, whose distance is right or wrong.
        up, down: scores that rose and fell; for two answers, winners that went to answer 1 and to answer 2.
    """

    n: int
    changed: int
    moved: Statistic
    back: int
    labelled: int
    helpful: int
    harmful: int
    neither: int
    p: float | None
    error: Statistic | None
    up: int
    down: int


@dataclass(frozen=True)
class Round:
    """Holds the agreement with people had every debate ended after this round; those done before keep their last score.

    Attributes:
        round: 0 is the first score, before anybody answered it (for protocols whose first entry comes after a round of
            talk: that round); counted as the entries of ``score_by_round``.
        active: verdicts that were still being debated, so gave a score in this round.
        agreement: with people, of all verdicts as they stood then, in the subject's main measure.
        gain: ``agreement`` less that of the round before, from paired resamples; ``None`` for the first.
        calls: model calls a judgement up to and including this round (from transcripts); ``None`` where they cannot be
            told apart by round.
        gain_per_call: ``gain`` over the calls a judgement that this round took; ``None`` where it took none.
        changed: verdicts that this round changed.
        helpful, harmful: of these, towards people and away from them.
        error: the mean distance to people; for two answers the share of wrong winners; ``None`` where scores and labels
            are not on one scale.
        final: the last entry of all, not a round of talk: what a tie-breaker, a jury, a vote or a mean over rounds made
            of it. It is there only where that differs from the last round anywhere.
    """

    round: int
    active: int
    agreement: Statistic
    gain: Statistic | None
    calls: float | None
    gain_per_call: float | None
    changed: int
    helpful: int
    harmful: int
    error: float | None
    final: bool = False


@dataclass(frozen=True)
class Positions:
    """Says whether the order of two answers decides.

    Attributes:
        n: verdicts held in both orders; ``consistent`` the share where both gave one winner, with its interval.
        consistent: see above; ``None`` where every verdict was held in one order.
        shown_first, shown_second, ties: winners by the place in which the answer was shown, over all orders held.
        p: two-sided sign test of the first place against the second.
    """

    n: int
    consistent: Statistic | None
    shown_first: int
    shown_second: int
    ties: int
    p: float | None


def changes(cell: JudgeAspectData, resampling: Resampling) -> Changes | None:
    """Count how one judge's verdicts on a subject changed; ``None`` where nobody talked, so that none could."""
    rows = cell.rows.take(cell.rows.path_count > 0)
    if not cell.debates or not len(rows):
        return None
    first, last, winners = rows.after(0), rows.judged, rows.winners
    changed = moved(first, last, winners)
    told = changed & rows.labelled & (cell.distances or cell.subject.kind == "compare")
    ways = Counter(directions(first[told], last[told], rows.human[told], winners).tolist())
    on_the_way = np.any([moved(first, rows.after(entry), winners) for entry in range(rows.rounds)], axis=0)
    rank = (
        _WINNERS_BY_RANK[last.astype(np.intp)] - _WINNERS_BY_RANK[first.astype(np.intp)]
        if winners
        else last - first
    )
    return Changes(
        n=len(rows),
        changed=int(changed.sum()),
        moved=mean_statistic(changed, rows.clusters, resampling),
        back=int((on_the_way & ~changed).sum()),
        labelled=int(told.sum()),
        helpful=ways[1],
        harmful=ways[-1],
        neither=ways[0],
        p=sign_test(ways[1], ways[-1]),
        error=_error(cell, rows, resampling),
        up=int((rank[changed] > 0).sum()),
        down=int((rank[changed] < 0).sum()),
    )


def rounds(cell: JudgeAspectData, resampling: Resampling) -> tuple[Round, ...]:
    """Measure agreement after each round, then that of the final verdicts where they differ; empty without debates."""
    rows = cell.labelled.take(cell.labelled.path_count > 0)
    if not cell.debates or not len(rows):
        return ()
    found: list[Round] = []
    before: tuple[_Stage, Sample] | None = None
    for number, stage in enumerate(_stages(cell, rows)):
        now = sample(cell.subject.kind, rows, resampling, stage.judged, cell.subject.rule)
        found.append(_round(cell, rows, number, stage, now, before))
        before = stage, now
    return tuple(found)


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
    notes: tuple[str, ...] = ()


def diagnose(judge: LoadedJudge, cell: JudgeAspectData, resampling: Resampling) -> Diagnosis:
    """Compute what one judge's debates did on one subject."""
    return Diagnosis(
        judge=judge.label,
        subject=cell.subject.label,
        measure=cell.subject.metric,
        changes=changes(cell, resampling),
        rounds=rounds(cell, resampling),
        score_changes=cell.score_changes.score_changes(),
        conformity=cell.conformity.conformity(),
        spending=cell.spending.spending(),
        positions=_positions(cell, resampling),
        length=length_bias(cell, resampling),
        replies=cell.replies.replies(),
        notes=tuple(_notes(cell)),
    )


def _positions(cell: JudgeAspectData, resampling: Resampling) -> Positions | None:
    if cell.subject.kind != "compare" or not len(cell.rows):
        return None
    places, both = cell.places, np.asarray(cell.consistent)
    units = number_groups(np.asarray(cell.consistent_clusters), rows=len(both))
    consistent = mean_statistic(both, units, resampling) if len(both) else None
    return Positions(
        n=len(both),
        consistent=consistent,
        shown_first=places.first,
        shown_second=places.second,
        ties=places.ties,
        p=sign_test(places.first, places.second),
    )


def _notes(cell: JudgeAspectData) -> Iterator[str]:
    subject = cell.subject
    if cell.is_metric and subject.kind == "score":
        yield "a metric has its own scale, so absolute errors are left out"
    elif cell.off_scale and subject.low is not None and subject.high is not None:
        yield (
            f"{cell.off_scale} of {len(cell.rows)} verdicts or their labels lie outside {subject.low:g} to "
            f"{subject.high:g}, so absolute errors are left out"
        )
    if not len(cell.labelled) and len(cell.rows):
        yield "no verdict has a label, so agreement and errors are left out"
    if not len(cell.rows):
        yield f"no verdict: {cell.failed} judgements failed" if cell.failed else "nothing was judged yet"


# A number by code that rises towards answer 1.
_WINNERS_BY_RANK = np.array([2.0, 0.0, 1.0])


def _error(cell: JudgeAspectData, rows: Verdicts, resampling: Resampling) -> Statistic | None:
    """Return the mean change of the distance to people."""
    if cell.subject.kind != "score" or not cell.distances:
        return None
    told = rows.take(rows.labelled)
    if not len(told):
        return None
    apart = np.abs(told.judged - told.human) - np.abs(told.after(0) - told.human)
    return mean_statistic(apart, told.clusters, resampling)


MOST = 40
"""The most rounds that are looked at."""


class _Stage(NamedTuple):
    """Holds how all verdicts stood after one round."""

    judged: Floats
    active: int
    calls: float | None
    final: bool = False


def _stages(cell: JudgeAspectData, rows: Verdicts) -> Iterator[_Stage]:
    stage = None
    for entry in range(min(MOST, rows.rounds)):
        # A debate that ended earlier stays at its last entry.
        active = int((rows.path_count > entry).sum())
        stage = _Stage(rows.after(entry), active, cell.calls_by_round.up_to(entry))
        yield stage
    # After the loop ``stage`` is the last round; a tie-breaker or a jury may have decided otherwise.
    if stage is not None and moved(stage.judged, rows.judged, rows.winners).any():
        yield _Stage(rows.judged, len(rows), cell.calls_by_round.in_all(), final=True)


def _round(
    cell: JudgeAspectData,
    rows: Verdicts,
    number: int,
    stage: _Stage,
    now: Sample,
    before: tuple[_Stage, Sample] | None,
) -> Round:
    measure, comparable = cell.subject.metric, cell.distances or cell.subject.kind == "compare"
    gain = None if before is None else difference(now, before[1], measure)[0]
    # The first round is held against itself: it changed nothing.
    was = stage.judged if before is None else before[0].judged
    ways = directions(was, stage.judged, rows.human, rows.winners) if comparable else np.zeros(0)
    taken = _taken(stage, None if before is None else before[0])
    return Round(
        round=number,
        active=stage.active,
        agreement=now.statistic(measure),
        gain=gain,
        calls=stage.calls,
        gain_per_call=gain.value / taken if gain and gain.value is not None and taken else None,
        changed=int(moved(was, stage.judged, rows.winners).sum()),
        helpful=int((ways == 1).sum()),
        harmful=int((ways == -1).sum()),
        error=fmean(distances(stage.judged, rows.human, rows.winners).tolist()) if comparable else None,
        final=stage.final,
    )


def _taken(stage: _Stage, before: _Stage | None) -> float | None:
    """Return the calls a verdict between two stages; ``None`` where either is not known."""
    if before is None or stage.calls is None or before.calls is None:
        return None
    return stage.calls - before.calls
