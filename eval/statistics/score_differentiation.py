"""Test the courtroom paper's Theorems 1 and 2: do many advocates separate two answers' scores further, and sooner?

Protocols are compared on the items that all of them judged: the mean absolute gap of their final scores (score
differentiation), and the rounds until the gap first reaches a threshold (iteration complexity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...state.errors import UsageError
from .alignment import (
    Floats,
    Reasons,
    Units,
    fields_of,
    number_groups,
    number_units,
    resampling_unit,
    why_unjudged,
)
from .gap_analysis import HIGH, LOW, GapRound, gap_analysis, gaps_of, rounds_until
from .resampling import Resampling, Statistic, share_of_rows
from .significance import PairedTTest, binomial_test, holm, paired_t_test

Scale = tuple[float, float]


@dataclass(frozen=True)
class RoundOfGaps:
    """Holds the gap after one round, over the debates that lasted so long.

    Attributes:
        round: its number, from 1; ``n``: debates that had it.
        gap: mean gap, as a share of the widest; ``growths``: mean number of rounds in which it had grown.
        tail: mean exact chance of a gap of 1 - eps or more, under the paper's model.
        holds, vacuous, not_applying: in how many debates the paper's bound of that chance does so.
    """

    round: int
    n: int
    gap: Statistic
    growths: Statistic
    tail: Statistic
    holds: int
    vacuous: int
    not_applying: int


@dataclass(frozen=True)
class Gaps:
    """Holds the gaps of a protocol, round by round.

    ``n`` debates count; ``left_out`` says why others do not; ``eps`` and ``prior`` (alpha, beta) are the model's.
    """

    n: int
    left_out: Reasons
    rounds: tuple[RoundOfGaps, ...]
    eps: float
    prior: tuple[float, float]
    resampling: Resampling


@dataclass(frozen=True)
class ScoreDifferentiation:
    """Holds mean absolute gaps of final scores, as shares of the widest possible one.

    Attributes:
        n: items that all protocols judged; ``left_out``: others, by reason.
        gaps: of each protocol, with the interval of groups drawn with replacement.
        tests: paired t-test of the first protocol's gaps against each other one's.
        adjusted: their p-values after Holm's correction.
        resampling: how intervals were made.
    """

    n: int
    left_out: Reasons
    gaps: Mapping[str, Statistic]
    tests: Mapping[str, PairedTTest]
    adjusted: Mapping[str, float | None]
    resampling: Resampling


@dataclass(frozen=True)
class RoundsNeeded:
    """Says how soon a protocol's gap reaches the threshold.

    Attributes:
        after: items by the round after which it first did; ``never``: items on which it did not.
        share: of items on which it did, with its interval.
        rounds: mean round, of these items alone: compare it with care, the others would have taken longer.
    """

    after: Mapping[int, int]
    never: int
    share: Statistic
    rounds: Statistic


@dataclass(frozen=True)
class SoonerOrLater:
    """Counts the items on which one protocol reached the threshold sooner or later than another (never is later).

    ``p`` is the exact two-sided p-value of the sign test; ``None`` without items, ``adjusted`` after Holm's correction.
    """

    sooner: int
    later: int
    same: int
    p: float | None
    adjusted: float | None


@dataclass(frozen=True)
class IterationComplexity:
    """Rounds until the gap first reaches ``eps``.

    Attributes:
        eps: the threshold, as a share of the widest possible gap.
        n: items that all protocols judged; ``left_out``: others, by reason.
        protocols: of each, how soon.
        against: the first protocol beside each other one.
        resampling: how intervals were made.
    """

    eps: float
    n: int
    left_out: Reasons
    protocols: Mapping[str, RoundsNeeded]
    against: Mapping[str, SoonerOrLater]
    resampling: Resampling


def gaps_by_round(
    rows: Iterable[Any],
    eps: float = 0.1,
    scale: Scale = (LOW, HIGH),
    prior: tuple[float, float] = (1, 1),
    resampling: Resampling | None = None,
) -> Gaps:
    """Run the gap analysis over the debates of one protocol.

    Args:
        rows: as in ``results.jsonl``: ``score_by_round`` with a pair for each round.
        eps, scale, prior: as in ``gap_analysis``.
        resampling: how intervals are made.

    Raises:
        UsageError: as ``gap_analysis``, naming the item.

    >>> rows = [{"item": "a", "score_by_round": [[60, 50], [80, 50]]}, {"item": "b", "score_by_round": [[60, 60]]}]
    >>> [(each.round, each.n, round(each.gap.value, 3)) for each in gaps_by_round(rows).rounds]
    [(1, 2, 0.044), (2, 1, 0.263)]
    """
    resampling = resampling or Resampling()
    debates: list[tuple[Hashable, tuple[GapRound, ...]]] = []
    left_out: Counter[str] = Counter()
    for row in map(fields_of, rows):
        pairs = row.get("score_by_round") or ()
        if reason := why_unjudged(row, pairs or None):
            left_out[reason] += 1
            continue
        try:
            debates.append((resampling_unit(row), gap_analysis(pairs, eps, scale, prior)))
        except UsageError as error:
            raise UsageError(f"item {row.get('item')}: {error}") from error
    longest = max((len(by_round) for _, by_round in debates), default=0)
    rounds = tuple(
        _round([(unit, by_round[number]) for unit, by_round in debates if number < len(by_round)], resampling)
        for number in range(longest)
    )
    return Gaps(len(debates), dict(left_out), rounds, eps, prior, resampling)


def score_differentiation(
    rows: Iterable[Any],
    protocols: Sequence[str] = ("more", "samre", "baseline"),
    scale: Scale = (LOW, HIGH),
    resampling: Resampling | None = None,
) -> ScoreDifferentiation:
    """Compare the mean absolute gap of the first protocol with those of others, on the same items (Theorem 1).

    Args:
        rows: of all these protocols, as in ``results.jsonl``: ``scores``.
        protocols: which; the first is compared with each other one.
        scale: of the scores of all of them.
        resampling: how intervals are made.

    >>> rows = [{"item": item, "protocol": name, "scores": pair} for item, more, samre in
    ...     [("a", [80, 60], [70, 65]), ("b", [90, 60], [60, 60]), ("c", [70, 80], [70, 72])]
    ...     for name, pair in [("more", more), ("samre", samre)]]
    >>> comparison = score_differentiation(rows, ["more", "samre"])
    >>> {name: round(gap.value, 3) for name, gap in comparison.gaps.items()}, comparison.n
    ({'more': 0.175, 'samre': 0.02}, 3)
    """
    resampling = resampling or Resampling()
    table = _SharedItems.of(rows, protocols, "scores", lambda pair: gaps_of([pair], scale)[0])
    first, *others = protocols
    tests = {
        other: paired_t_test(table.columns[first], table.columns[other], resampling.confidence)
        for other in others
    }
    return ScoreDifferentiation(
        n=len(table.groups),
        left_out=table.left_out,
        gaps={
            name: _mean(np.array(values, dtype=float), table.units, resampling)
            for name, values in table.columns.items()
        },
        tests=tests,
        adjusted=dict(zip(others, holm([test.p for test in tests.values()]), strict=True)),
        resampling=resampling,
    )


def iteration_complexity(
    rows: Iterable[Any],
    eps: float,
    protocols: Sequence[str] = ("more", "samre"),
    scale: Scale = (LOW, HIGH),
    resampling: Resampling | None = None,
) -> IterationComplexity:
    """Compare the rounds that protocols take until their gap reaches ``eps``, on the same items (Theorem 2).

    Args:
        rows: of all these protocols, as in ``results.jsonl``: ``score_by_round``.
        eps: the threshold, above 0 and at most 1.
        protocols, scale, resampling: as in ``score_differentiation``.

    >>> rows = [{"item": item, "protocol": name, "score_by_round": pairs} for item, more, samre in
    ...     [("a", [[80, 60]], [[70, 65], [80, 60]]), ("b", [[61, 60]], [[60, 60]])]
    ...     for name, pairs in [("more", more), ("samre", samre)]]
    >>> comparison = iteration_complexity(rows, eps=0.15)
    >>> comparison.protocols["samre"].after, comparison.against["samre"].sooner, comparison.against["samre"].same
    ({2: 1}, 1, 1)
    """
    if not 0 < eps <= 1:
        raise UsageError(f"eps must be above 0 and at most 1, not {eps}")
    resampling = resampling or Resampling()
    # Infinity stands for a gap that never reached the threshold: it compares as later than any round.
    table = _SharedItems.of(
        # Rounds count from 1, so ``or`` replaces ``None`` alone.
        rows,
        protocols,
        "score_by_round",
        lambda pairs: rounds_until(gaps_of(pairs, scale), eps) or np.inf,
    )
    rounds = {name: np.array(values, dtype=float) for name, values in table.columns.items()}
    first, *others = protocols
    signs = {
        # Compared, not subtracted: infinity less infinity is no number.
        other: (rounds[other] > rounds[first]).astype(int) - (rounds[other] < rounds[first])
        for other in others
    }
    p_values = [_sign_test(sign) for sign in signs.values()]
    return IterationComplexity(
        eps=eps,
        n=len(table.groups),
        left_out=table.left_out,
        protocols={name: _needed(values, table.units, resampling) for name, values in rounds.items()},
        against={
            other: SoonerOrLater(
                int((sign > 0).sum()), int((sign < 0).sum()), int((sign == 0).sum()), p, adjusted
            )
            for (other, sign), p, adjusted in zip(signs.items(), p_values, holm(p_values), strict=True)
        },
        resampling=resampling,
    )


class _SharedItems(NamedTuple):
    """Holds each protocol's figure of each item, for the items of which all protocols have one."""

    columns: Mapping[str, list[float]]
    groups: list[Hashable]
    units: Units
    left_out: Reasons

    @classmethod
    def of(
        cls, rows: Iterable[Any], protocols: Sequence[str], what: str, figure: Callable[[Any], float]
    ) -> _SharedItems:
        if len(set(protocols)) < 2 or len(set(protocols)) < len(protocols):
            raise UsageError(f"give at least two different protocols, not {', '.join(protocols) or 'none'}")
        by_item: dict[tuple[Hashable, Hashable], dict[str, float]] = {}
        groups: dict[tuple[Hashable, Hashable], Hashable] = {}
        for row in map(fields_of, rows):
            if row.get("protocol") not in protocols:
                continue
            # Repeats of an item are paired one by one: the first of one protocol with the first of the other.
            key = (row["item"], row.get("repeat"))
            groups[key] = resampling_unit(row)
            figures = by_item.setdefault(key, {})
            if row.get("status") != "failed" and row.get(what):
                try:
                    figures[row["protocol"]] = figure(row[what])
                except UsageError as error:
                    raise UsageError(f"item {row['item']}, {row['protocol']}: {error}") from error
        shared = [key for key, figures in by_item.items() if len(figures) == len(protocols)]
        missing = Counter(
            "no scores of " + ", ".join(name for name in protocols if name not in figures)
            for figures in by_item.values()
            if len(figures) < len(protocols)
        )
        kept = [groups[key] for key in shared]
        columns = {name: [by_item[key][name] for key in shared] for name in protocols}
        return cls(columns, kept, number_units(kept, len(kept)), dict(missing))


def _round(debates: Sequence[tuple[Hashable, GapRound]], resampling: Resampling) -> RoundOfGaps:
    units = number_units([unit for unit, _ in debates], len(debates))
    models = [after.posterior for _, after in debates]
    statuses = Counter(model.status for model in models)
    gap, growths, tail = (
        _mean(np.array(column, dtype=float), units, resampling)
        for column in (
            [after.gap for _, after in debates],
            [model.growths for model in models],
            [model.tail for model in models],
        )
    )
    return RoundOfGaps(
        round=debates[0][1].round,
        n=len(debates),
        gap=gap,
        growths=growths,
        tail=tail,
        holds=statuses["holds"],
        vacuous=statuses["vacuous"],
        not_applying=statuses["does not apply"],
    )


def _needed(rounds: Floats, units: Units, resampling: Resampling) -> RoundsNeeded:
    reached = np.isfinite(rounds)
    return RoundsNeeded(
        after=dict(sorted(Counter(rounds[reached].astype(int).tolist()).items())),
        never=int((~reached).sum()),
        share=share_of_rows(reached, units, resampling),
        rounds=_mean(rounds[reached], number_groups(units[reached], int(reached.sum())), resampling),
    )


def _sign_test(signs: NDArray[np.int_]) -> float | None:
    return binomial_test(int((signs > 0).sum()), int((signs < 0).sum())) if len(signs) else None


def _mean(values: Floats, units: Units, resampling: Resampling) -> Statistic:
    return resampling.mean_interval(values, units)[0]
