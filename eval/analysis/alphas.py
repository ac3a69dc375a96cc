"""Compute Krippendorff's alpha of a judge: between its agents, between its repeats, and with annotators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from ..statistics.alignment import FAILED
from ..statistics.chance_corrected import Level, Reliability, krippendorff_alpha
from ..statistics.resampling import Resampling, Statistic
from ..tables import Column
from .loading import JudgeAspectData


def _alpha(reliability: Reliability) -> Statistic:
    return reliability.alpha


@dataclass(frozen=True)
class AgreementWithPeople:
    """Compares alpha between annotators with alpha when the judge is one more rater, on the same rows.

    A judge that fits in leaves alpha as it is or raises it; one that does not lowers it. Where humans gave no single
    annotations, their mean is the one human rater and ``people`` is ``None``.
    """

    people: Annotated[Reliability | None, Column("between annotators", of=_alpha)]
    with_judge: Annotated[
        Reliability, Column("with the judge", about="the judge as one more annotator", of=_alpha)
    ]


@dataclass(frozen=True)
class Alphas:
    """Holds Krippendorff's alpha: scores by amount, verdicts of comparisons as classes.

    Attributes:
        agents: between referees, or jurors, by their last opinions; ``None`` where there are not several.
        repeats: of a judge with itself, asked again; ``None`` for a single repeat.
        people: between annotators, and with the judge as one more of them; ``None`` without labels on its scale.
    """

    agents: Annotated[Reliability | None, Column("between agents", of=_alpha)] = None
    repeats: Annotated[Reliability | None, Column("between repeats", of=_alpha)] = None
    people: AgreementWithPeople | None = None


def alphas_of(cell: JudgeAspectData, resampling: Resampling) -> Alphas:
    """Compute all that a judge's verdicts on an aspect allow."""
    # Scores on another scale than the humans' differ from them by amount, however well they agree.
    same_scale = cell.distances or cell.subject.kind == "compare"
    return Alphas(
        agents=_between_agents(cell, resampling),
        repeats=_between_repeats(cell, resampling),
        people=_with_humans(cell, resampling) if len(cell.labelled) and same_scale else None,
    )


def _between_agents(cell: JudgeAspectData, resampling: Resampling) -> Reliability | None:
    """Measure the agreement of agents that judge in the same verdict, by their last opinions."""
    several = cell.rows.take(cell.rows.agent_count > 1)
    if not len(several):
        return None
    return krippendorff_alpha(several.opinions(), _level(cell), several.cluster_names.tolist(), resampling)


def _between_repeats(cell: JudgeAspectData, resampling: Resampling) -> Reliability | None:
    """Measure how far a judge agrees with itself when it judges the same items again."""
    rows = cell.rows
    if len(np.unique(rows.repeat)) < 2:
        return None
    # Items are what is rated, and their repeats the raters; rows come sorted by item.
    starts = np.flatnonzero(np.diff(rows.item, prepend=-1))
    ratings = [values.tolist() for values in np.split(rows.judged, starts[1:])]
    alpha = krippendorff_alpha(ratings, _level(cell), rows.cluster_names[starts].tolist(), resampling)
    return _without_failures(alpha, cell)


def _with_humans(cell: JudgeAspectData, resampling: Resampling) -> AgreementWithPeople:
    """Measure how far a judge agrees with humans, as one more rater; each repeat of an item counts by itself."""
    rows, known = cell.labelled, cell.labelled.names.annotations.names()
    annotations = [list(known[code] or ()) for code in rows.annotations.tolist()]
    judged, human = rows.as_verdicts(rows.judged), rows.as_verdicts(rows.human)
    everybody = [
        [*(given or [label]), verdict]
        for given, label, verdict in zip(annotations, human, judged, strict=True)
    ]
    clusters, level = rows.cluster_names.tolist(), _level(cell)
    several = any(len(given) > 1 for given in annotations)
    people = krippendorff_alpha(annotations, level, clusters, resampling) if several else None
    with_judge = krippendorff_alpha(everybody, level, clusters, resampling)
    return AgreementWithPeople(
        people and _without_failures(people, cell), _without_failures(with_judge, cell)
    )


def _level(cell: JudgeAspectData) -> Level:
    return "interval" if cell.subject.kind == "score" else "nominal"


def _without_failures(alpha: Reliability, cell: JudgeAspectData) -> Reliability:
    """Add the failed judgements to the reasons for which rows do not count."""
    return replace(alpha, left_out={**alpha.left_out, FAILED: cell.failed}) if cell.failed else alpha
