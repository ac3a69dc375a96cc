"""Compute Krippendorff's alpha of a judge: between its agents, between its repeats, and with annotators."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ..statistics.alignment import Units
from ..statistics.chance_corrected import Level, krippendorff_alpha
from ..statistics.resampling import Resampling, Statistic
from ..tables import Column
from .loading import JudgeAspectData


@dataclass(frozen=True)
class Alphas:
    """Holds Krippendorff's alpha: scores by amount, verdicts of comparisons as classes.

    ``None`` stands for what does not exist: one agent, one repeat, no labels on the judge's scale, or no single
    annotations, in whose place humans' mean is the one human rater.

    Attributes:
        agents: between referees, or jurors, by their last opinions.
        repeats: of a judge with itself, asked again.
        people: between annotators.
        with_judge: the same with the judge as one more of them, on the same rows. A judge that fits in leaves alpha as
            it is or raises it; one that does not lowers it.
    """

    agents: Annotated[Statistic | None, Column("between agents")] = None
    repeats: Annotated[Statistic | None, Column("between repeats")] = None
    people: Annotated[Statistic | None, Column("between annotators")] = None
    with_judge: Annotated[Statistic | None, Column("with the judge")] = None
    """the judge as one more annotator"""


def alphas_of(cell: JudgeAspectData, resampling: Resampling) -> Alphas:
    """Compute all that a judge's verdicts on an aspect allow."""
    rows = cell.rows
    level: Level = "interval" if cell.subject.kind == "score" else "nominal"

    def alpha(ratings: Iterable[Sequence[Hashable]], clusters: Units) -> Statistic:
        return krippendorff_alpha(ratings, level, clusters.tolist(), resampling).alpha

    several = rows.take(rows.agent_count > 1)
    agents = alpha(several.opinions(), several.clusters) if len(several) else None
    repeats = people = with_judge = None
    if len(np.unique(rows.repeat)) > 1:
        # Items are what is rated, and their repeats the raters; rows come sorted by item.
        starts = np.flatnonzero(np.diff(rows.item, prepend=-1))
        ratings = [values.tolist() for values in np.split(rows.judged, starts[1:])]
        repeats = alpha(ratings, rows.clusters[starts])
    # Scores on another scale than the humans' differ from them by amount, however well they agree.
    if len(labelled := cell.labelled) and cell.distances:
        # Each repeat of an item counts by itself.
        ratings = np.column_stack([labelled.all_labels, labelled.judged]).tolist()
        with_judge, annotations = alpha(ratings, labelled.clusters), labelled.by_annotator
        if ((~np.isnan(annotations)).sum(axis=1) > 1).any():
            people = alpha(annotations.tolist(), labelled.clusters)
    return Alphas(agents, repeats, people, with_judge)
