"""Measure what a panel of judges is worth: correlated errors, the best judge, the best sub-panel.

Judges that judged the same rows (``panel_rows``) are taken as the members of a panel, whose verdict
is the majority of their winners or the mean of their scores. The statistics are in
``statistics.error_correlation``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

import numpy as np

from ...state.tasks import TaskKind
from ..statistics.alignment import Floats, Ints, grouped
from ..statistics.error_correlation import (
    ErrorCorrelation,
    PanelSearch,
    combined,
    error_correlation,
    members_worth_it,
)
from ..statistics.metrics import METRICS
from ..statistics.resampling import Resampling, Statistic
from ..statistics.sample import Difference, paired_difference
from ..statistics.significance import LEVEL, holm
from .comparison import PairwiseComparator
from .panel_rows import NoPanelError, PanelRows, Unit, rows_of_runs
from .verdict_columns import close

Better = Literal["panel", "member", "neither"]
"""Whether the panel agrees significantly better than its best member, or the other way round."""
WORTH = 0.25
"""The effective votes that a further member must add to be worth its cost."""
_SLACK = 1e-9


@dataclass(frozen=True)
class Member:
    """A judge as a member of a panel.

    Attributes:
        name: its label.
        agreement: its own agreement with the labels.
        error_correlation: the mean correlation of its errors with those of the other members;
            ``None`` if its errors do not vary.
        price: the price of its verdict on an item, in the unit of the panel; ``None`` if unknown.
        missing: the number of rows that other members judged and it did not.
        always: its verdict if it gave the same one on every row: a score, or a winner's code.
    """

    name: str
    agreement: Statistic
    error_correlation: float | None
    price: float | None
    missing: int = 0
    always: float | None = None


@dataclass(frozen=True)
class SubPanel:
    """The best sub-panel up to a price.

    Attributes:
        members: the labels of its members, chosen on all rows.
        price: the sum of their prices: dollars or calls per item, or the number of judges.
        agreement: of the best sub-panel up to this price, chosen and judged on different clusters.
        apparent: the agreement of these members on the rows on which they were chosen; higher by
            the optimism of the choice.
    """

    members: tuple[str, ...]
    price: float
    agreement: Statistic
    apparent: float | None


@dataclass(frozen=True)
class Panel:
    """What a panel of judges is worth on one subject.

    Attributes:
        subject: the aspect, or ``preference``.
        data: the name of the data.
        kind: whether these are scores or preferences.
        metric: the metric of agreement.
        rows: the number of labelled rows that every member judged and whose labels count.
        of_rows: the number of labelled rows that at least one member judged.
        clusters: the number of groups, or of items without a group.
        has_groups: whether clusters are groups of items.
        members: the members, in the order of the judges.
        correlation: the correlation of the members' errors, and the effective votes.
        agreement: of the panel: the majority of the winners, or the mean of the scores.
        best: the label of the best member, chosen on all rows.
        best_agreement: the agreement of a member that is chosen and judged on different clusters.
        best_apparent: the agreement of ``best`` on the rows on which it was chosen.
        same_choice: whether every part of the clusters chooses the same best member.
        lead: the best member minus the panel, on the same rows; ``adjusted`` by Holm's method over
            the subjects of the data.
        sub_panels: the best sub-panel up to each price, the cheapest first.
        recommended: the cheapest of them within one standard error of the best one.
        unit: the unit of prices.
        worth: the effective votes that a further member must add.
        worth_members: the number of members up to which each adds that much, for the mean error
            correlation and both ends of its interval (lowest number first).
        identical: whether all members gave identical verdicts.
        left_out: by judge, the number of other rows that do not count, by reason.
        resampling: how intervals are computed.
        notes: judges that are not members, with the reason.
        human_ties: the number of rows that every member judged and that do not count, because human
            ties are left out.
        groups_left_out: for agreement within groups, the number of groups in which it is not
            defined, because they have one row or equal labels.
    """

    subject: str
    data: str
    kind: TaskKind
    metric: str
    rows: int
    of_rows: int
    clusters: int
    has_groups: bool
    members: tuple[Member, ...]
    correlation: ErrorCorrelation
    agreement: Statistic
    best: str
    best_agreement: Statistic
    best_apparent: float | None
    same_choice: bool
    lead: Difference
    sub_panels: tuple[SubPanel, ...]
    recommended: SubPanel
    unit: Unit
    worth: float
    worth_members: tuple[int, int, int]
    identical: bool
    left_out: Mapping[str, Mapping[str, int]]
    resampling: Resampling
    notes: tuple[str, ...] = ()
    human_ties: int = 0
    groups_left_out: int = 0

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.members)

    @property
    def better(self) -> Better:
        """Whether the panel or its best member agrees significantly better."""
        value = self.lead.difference.value
        p = self.lead.adjusted
        if value is None or p is None or p >= LEVEL:
            return "neither"
        return "member" if value > 0 else "panel"

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON.

        >>> from jurygraph.eval import panel
        >>> rows = [{"item": i, "protocol": j, "winner": w, "human": "1"} for j in "ab" for i, w in enumerate("12")]
        >>> panel(rows)[0].to_json()["effective_votes"]["value"]
        1.0
        """
        pairs = [
            [None if np.isnan(value) else round(float(value), 6) for value in line]
            for line in self.correlation.pairs
        ]
        return {
            "subject": self.subject,
            "data": self.data,
            "kind": self.kind,
            "metric": self.metric,
            "judges": self.size,
            "rows": self.rows,
            "rows_of_any_judge": self.of_rows,
            "human_ties_left_out": self.human_ties,
            "clusters": self.clusters,
            "clusters_are": "groups" if self.has_groups else "items",
            "groups_left_out": self.groups_left_out,
            "error_correlation": _figure(self.correlation.mean),
            "effective_votes": _figure(self.correlation.effective),
            "pairs": pairs,
            "pairs_without_correlation": self.correlation.undefined,
            "panel": _figure(self.agreement),
            "best": {
                "judge": self.best,
                **_figure(self.best_agreement),
                "chosen_by": "cross-fitting over clusters",
                "apparent": self.best_apparent,
                "same_choice_in_every_fold": self.same_choice,
            },
            "best_minus_panel": {
                **_figure(self.lead.difference),
                "p": self.lead.p,
                "p_holm": self.lead.adjusted,
                "needed": self.lead.needed,
            },
            "better": self.better,
            "identical": self.identical,
            "members": [
                {
                    "judge": member.name,
                    **_figure(member.agreement),
                    "error_correlation": member.error_correlation,
                    "price": member.price,
                    "missing": member.missing,
                    "one_verdict": member.always is not None,
                    "left_out": dict(self.left_out.get(member.name, {})),
                }
                for member in self.members
            ],
            "price_unit": self.unit,
            "sub_panels": [_sub_panel(of) for of in self.sub_panels],
            "recommended": _sub_panel(self.recommended),
            "worth": self.worth,
            "members_worth_their_cost": dict(
                zip(("low", "value", "high"), self.worth_members, strict=True)
            ),
            "notes": list(self.notes),
            "resamples": self.resampling.resamples,
            "confidence": self.resampling.confidence,
            "seed": self.resampling.seed,
        }


def _figure(figure: Statistic) -> dict[str, float | None]:
    return {"value": figure.value, "low": figure.low, "high": figure.high}


def _sub_panel(of: SubPanel) -> dict[str, Any]:
    return {
        "judges": list(of.members),
        "price": of.price,
        **_figure(of.agreement),
        "apparent": of.apparent,
    }


def measure_panel(
    rows: PanelRows, resampling: Resampling, worth: float = WORTH, notes: Sequence[str] = ()
) -> Panel:
    """Measure what a panel is worth on the rows that all its members judged.

    Args:
        rows: the verdicts and the labels; two judges or more, one row or more.
        resampling: how intervals are computed.
        worth: the effective votes that a further member must add.
        notes: judges that are not members, with the reason.
    """
    judged_by_all = len(rows.values)
    rows = rows.counted()
    names = rows.judges
    alone = [rows.sample(column, resampling) for column in rows.values.T]
    errors = np.column_stack(
        [sample.right if rows.kind == "compare" else sample.judged - rows.human for sample in alone]
    )
    correlation = error_correlation(errors, rows.clusters, resampling)
    whole = rows.sample(combined(rows.values, rows.kind), resampling)
    without = Resampling(resamples=0)

    def agree(verdicts: Floats, some: Ints) -> float:
        value = rows.sample(verdicts, without, some).value(rows.metric)
        return -inf if value is None else value

    search = PanelSearch(rows.values, rows.kind, rows.clusters, agree, resampling.seed)
    single = search.best(lambda members: len(members) == 1)
    chosen_member = rows.sample(single.verdicts, resampling) if _known(single.verdicts) else None
    best = names[single.chosen[0]]
    best_agreement = (
        Statistic(None) if chosen_member is None else chosen_member.statistic(rows.metric)
    )
    lead = (
        Difference(None, None, Statistic(None))
        if chosen_member is None
        else paired_difference([(chosen_member, whole)], rows.metric)
    )
    prices = rows.prices or (1.0,) * len(names)
    sub_panels = tuple(_sub_panels(rows, search, prices, resampling))
    with_others = correlation.with_others
    members = tuple(
        Member(
            name,
            sample.statistic(rows.metric),
            None if np.isnan(with_others[place]) else float(with_others[place]),
            None if rows.prices is None else rows.prices[place],
            rows.missing.get(name, 0),
            float(sample.judged[0]) if np.ptp(sample.judged) == 0 else None,
        )
        for place, (name, sample) in enumerate(zip(names, alone, strict=True))
    )
    mean = correlation.mean
    ends = (mean.high, mean.value, mean.low)
    sizes = [members_worth_it(1.0 if end is None else end, worth) for end in ends]
    if mean.low is None or mean.high is None:
        sizes = [sizes[1]] * 3
    first = rows.values[:, :1]
    is_within = METRICS[rows.metric].within
    return Panel(
        subject=rows.subject,
        data=rows.data,
        kind=rows.kind,
        metric=rows.metric,
        rows=len(rows.values),
        of_rows=max(rows.rows, len(rows.values)),
        clusters=whole.count,
        has_groups=rows.has_groups,
        members=members,
        correlation=correlation,
        agreement=whole.statistic(rows.metric),
        best=best,
        best_agreement=best_agreement,
        best_apparent=_none_if_infinite(single.apparent),
        same_choice=single.alike,
        lead=replace(lead, adjusted=lead.p),
        sub_panels=sub_panels,
        recommended=_recommended(sub_panels),
        unit=rows.unit if rows.prices else "judges",
        worth=worth,
        worth_members=(sizes[0], sizes[1], sizes[2]),
        identical=bool(close(rows.values, np.broadcast_to(first, rows.values.shape)).all()),
        left_out=rows.left_out,
        resampling=resampling,
        notes=tuple(notes),
        human_ties=judged_by_all - len(rows.values),
        groups_left_out=whole.within_groups(rows.metric).skipped if is_within else 0,
    )


def _known(values: Floats) -> bool:
    return not np.isnan(values).any()


def _none_if_infinite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _sub_panels(
    rows: PanelRows, search: PanelSearch, prices: Sequence[float], resampling: Resampling
) -> Iterator[SubPanel]:
    """Yield the best sub-panel up to each price, without repetitions."""
    ascending = sorted(prices)
    limits = sorted({*ascending, *np.cumsum(ascending).tolist()})
    known = set[tuple[int, ...]]()

    def price_of(members: tuple[int, ...]) -> float:
        return sum(prices[member] for member in members)

    for limit in limits:
        most = limit * (1 + _SLACK)

        def affordable(members: tuple[int, ...], most: float = most) -> bool:
            return price_of(members) <= most

        found = search.best(affordable)
        if found.chosen in known:
            continue
        known.add(found.chosen)
        agreement = Statistic(None)
        if _known(found.verdicts):
            agreement = rows.sample(found.verdicts, resampling).statistic(rows.metric)
        names = tuple(rows.judges[member] for member in found.chosen)
        apparent = _none_if_infinite(found.apparent)
        yield SubPanel(names, price_of(found.chosen), agreement, apparent)


def _recommended(sub_panels: Sequence[SubPanel]) -> SubPanel:
    """Return the cheapest sub-panel within one standard error of the best one.

    Source: the one-standard-error rule of Breiman, Friedman, Olshen and Stone 1984, Classification
    and Regression Trees, section 3.4.3.
    """
    best = max(
        sub_panels, key=lambda of: -inf if of.agreement.value is None else of.agreement.value
    )
    figure = best.agreement
    if figure.value is None or figure.low is None or figure.high is None:
        return best
    error = (figure.high - figure.low) / 4
    enough = [
        of
        for of in sub_panels
        if of.agreement.value is not None and of.agreement.value >= figure.value - error
    ]
    return min(enough, key=lambda of: of.price)


def adjusted_panels(panels: Sequence[Panel]) -> tuple[Panel, ...]:
    """Adjust the p-values of the leads by Holm's method over the subjects of each dataset."""
    adjusted: dict[int, float | None] = {}
    for of_data in grouped((panel.data, place) for place, panel in enumerate(panels)).values():
        p_values = holm([panels[place].lead.p for place in of_data])
        adjusted.update(zip(of_data, p_values, strict=True))
    return tuple(
        replace(panel, lead=replace(panel.lead, adjusted=adjusted[place]))
        for place, panel in enumerate(panels)
    )


def panels_of(
    comparators: Sequence[PairwiseComparator],
    worth: float = WORTH,
    strict: bool = False,
    without: Sequence[str] = (),
) -> tuple[Panel, ...]:
    """Measure the panel of each subject that several judges judged.

    Args:
        comparators: one for each subject, with its judges.
        worth: the effective votes that a further member must add.
        strict: refuse judges that cannot be members. Otherwise, they are left out and named in the
            notes, and a subject without a panel is skipped.
        without: names of members inside one run of a panel to leave out.

    Raises:
        NoPanelError: with ``strict``, a subject without a panel.
    """
    panels = []
    for comparator in comparators:
        try:
            rows, notes = rows_of_runs(comparator, strict, without)
        except NoPanelError:
            if strict:
                raise
            continue
        panels.append(measure_panel(rows, comparator.resampling, worth, notes))
    return adjusted_panels(panels)
