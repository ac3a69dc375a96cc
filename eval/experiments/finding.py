"""State in one sentence whether a protocol is better than opponents with the same budget.

The tests come from ``statistics.sample``: paired, over clusters, and adjusted by Holm's method for
several opponents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, log10
from typing import Annotated, Literal, Self

from ..analysis import Study
from ..analysis.equal_cost import Currency, EqualCostMatch
from ..analysis.granularity import APART
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic
from ..statistics.sample import POWER, Difference
from ..statistics.significance import holm
from ..tables.grid import Column, share_column, text_column
from .equal_spending import Terms

Answer = Literal["pays", "does not pay", "better for more", "worse for less", "undecided"]
Budget = Literal["equal", "more", "less", "unknown"]
"""What an opponent spent, compared with the protocol."""
Rival = tuple[str, float, str]
"""An opponent: its name, its size, and both in words."""

_AMOUNTS: Mapping[Currency, str] = {
    "tokens": "many tokens",
    "cost": "much money",
    "calls": "many calls",
}
TOLERANCE = 0.1
"""The difference in spending that still counts as equal."""


@dataclass(frozen=True)
class Contest:
    """The comparison of a protocol with one opponent, on one subject and in its leading metric.

    Attributes:
        subject: the aspect, ``preference``, or ``average`` over the aspects.
        opponent: the name of the opponent.
        size: the mean number of its samples, or of its judges, per item.
        title: name and size in words.
        items: the number of labelled items that both judged.
        clusters: the number of groups, or items without a group, that count; within groups, those
            in which both have a value.
        ratio: the opponent's spending as a multiple of the protocol's; ``None`` if unknown.
        protocol, other: the agreement of each, in the leading metric, over the same groups.
        difference: the first minus the second; its value is ``None`` if it is undefined.
        p: two-sided, adjusted by Holm's method for all opponents, and on single aspects for all
            aspects; ``None`` without a test.
        ties, other_ties: the share of ties of each; for scores, the share of pairs of items with
            the same score.
        hinges_on_ties: whether the difference is not significant among items on which neither
            gives a tie.
    """

    subject: Annotated[str, text_column("on")]
    opponent: Annotated[str, text_column("against")]
    size: Annotated[float, Column("samples", digits=1, about="or judges; average per item")]
    title: str
    items: Annotated[int, Column("items", about="labelled items that both have judged")]
    clusters: Annotated[int, Column("groups", about="groups that count, or items without a group")]
    ratio: Annotated[float | None, share_column("spent", "as a share of what the protocol spent")]
    protocol: Annotated[float | None, Column("protocol")]
    other: Annotated[float | None, Column("opponent")]
    difference: Annotated[Statistic, Column("difference")]
    p: Annotated[
        float | None, Column("p (Holm)", form="p", about="adjusted over opponents and aspects")
    ]
    ties: Annotated[
        float | None, share_column("ties", "of the protocol: ties, or pairs with one score")
    ] = None
    other_ties: Annotated[float | None, share_column("its ties", "of the opponent, likewise")] = (
        None
    )
    hinges_on_ties: bool = False

    @property
    def uneven(self) -> bool:
        """Whether ties alone may explain the difference: their shares differ, and it needs them."""
        if self.ties is None or self.other_ties is None or not self.hinges_on_ties:
            return False
        return abs(self.ties - self.other_ties) > APART

    @property
    def budget(self) -> Budget:
        """What the opponent spent, compared with the protocol."""
        if self.ratio is None:
            return "unknown"
        if abs(self.ratio - 1) <= TOLERANCE:
            return "equal"
        return "more" if self.ratio > 1 else "less"

    def spent_in_words(self, unit: Currency) -> str:
        """Return what the opponent spent, as a relative clause; empty at equal spending.

        >>> difference = Statistic(0.1)
        >>> five = Contest("wit", "debate", 1, "1 sample of debate", 36, 8, 5.03, None, None, difference, None)
        >>> five.spent_in_words("tokens")
        ', which spent 5.0 times as many tokens'
        """
        if self.budget == "equal":
            return ""
        if self.ratio is None:
            return ", which spent an unknown amount"
        times = f"{self.ratio:.1f}" if self.ratio > 1 else f"{self.ratio:.2f}"
        return f", which spent {times} times as {_AMOUNTS[unit]}"

    @classmethod
    def of(
        cls, subject: str, rival: Rival, items: int, ratio: float | None, difference: Difference
    ) -> Self:
        """Make a contest from a difference that is adjusted for all opponents."""
        first = difference.first
        second = difference.second
        value = difference.difference
        clusters = difference.clusters
        p = difference.adjusted
        return cls(subject, *rival, items, clusters, ratio, first, second, value, p)


@dataclass(frozen=True)
class Finding:
    """The answer to whether a protocol pays.

    Attributes:
        answer: the answer.
        sentence: the answer in words, with the differences that support it.
        items: the number of labelled items that all judged.
        needed: the smallest number of items needed, if these are too few; ``None`` if the data do
            not show it.
    """

    answer: Answer
    sentence: str
    items: int
    needed: int | None = None


def find(
    protocol: str,
    contests: Sequence[Contest],
    metric: str,
    terms: Terms,
    tests: int | None = None,
) -> Finding:
    """Decide whether a protocol pays.

    It pays if it is significantly better than each opponent, none of which spent less. It does not
    pay if an opponent that spent no more is significantly better, or if the interval of its gain
    over such an opponent is below the smallest gain worth having: then more items would not change
    the answer. Opponents with another budget are compared as they are. If the protocol is better
    and spent more, or worse and spent less, the answer is that.

    Args:
        protocol: its label.
        contests: the comparison with each opponent, on the same items.
        metric: the metric of agreement.
        terms: the terms of the comparison.
        tests: the number of contests of several aspects that are shown together; their p-values
            are already adjusted. Bonferroni's correction widens the interval that is compared with
            the smallest gain worth having. ``None`` for the main comparison.
    """
    items = min((contest.items for contest in contests), default=0)
    differences = [contest.difference for contest in contests]
    known = [contest for contest in contests if contest.difference.low is not None]
    # Contests without an interval explain this themselves. "Too few groups" must apply to all of
    # them, so take the largest number.
    most = max((contest.clusters for contest in contests), default=0)
    clusters = min((contest.clusters for contest in known), default=most)
    by = f"by {METRICS[metric].title}, {budgets_in_words(contests, terms.by)}"
    against = "; ".join(_in_words(contest, terms.by) for contest in contests)
    whether = f"Undecided whether {protocol} pays"

    def undecided(reason: str, needed: int | None = None) -> Finding:
        enough = ""
        if needed:
            enough = f"; at least {needed:,} would be needed, for {POWER:.0%} power at the difference seen"
        sentence = f"{whether} with {items:,} items{enough} ({by}: {against}){reason}"
        return Finding("undecided", sentence, items, needed)

    nothing = ""
    if not contests:
        nothing = "there is no opponent with verdicts on the same items"
    elif all(difference.value is None for difference in differences):
        missing = f"agreement cannot be compared, because {METRICS[metric].title} is undefined here"
        nothing = f"{missing}: verdicts or labels are missing, or all the same"
    if nothing:
        return Finding("undecided", f"{whether}: {nothing}", items)
    unsure = ""
    uneven = [contest for contest in contests if contest.uneven]
    if clusters < FEWEST_CLUSTERS:
        unsure = f"{clusters} groups, or items without a group, are too few: at least {FEWEST_CLUSTERS} are needed"
    elif uneven:
        shares = f"{uneven[0].ties:.0%} of its verdicts are ties, and {uneven[0].other_ties:.0%} of those of"
        unsure = f"{shares} {uneven[0].title}, and the difference hinges on them"
    if unsure:
        return undecided(f": {unsure}")
    answer, reason = _answer(contests, known, terms, tests or 1)
    if answer != "undecided":
        claim = {
            "pays": f"{protocol} pays",
            "does not pay": f"{protocol} does not pay",
            "better for more": f"{protocol} agrees better but spends more",
            "worse for less": f"{protocol} agrees less well but spends less",
        }[answer]
        return Finding(answer, f"{claim}: {by}, {reason} on {items:,} items: {against}", items)
    if known != [*contests]:
        return undecided(": too few groups have verdicts of both that vary")
    # More items would not make budgets equal.
    is_equal = all(contest.budget == "equal" for contest in contests)
    return undecided(
        "", items_needed(differences, items, clusters, terms, tests) if is_equal else None
    )


def _answer(
    contests: Sequence[Contest], known: Sequence[Contest], terms: Terms, tests: int
) -> tuple[Answer, str]:
    """Return the answer and its reason in words.

    Args:
        contests: the comparison with each opponent.
        known: those with an interval.
        terms: the terms of the comparison.
        tests: the number of contests that are shown together.
    """

    def significant(contest: Contest, way: int) -> bool:
        # Use the level of the intervals, so that the answer agrees with the interval next to it.
        is_sure = contest.p is not None and contest.p < 1 - terms.resampling.confidence
        return is_sure and way * (contest.difference.value or 0.0) > 0

    if len(known) == len(contests) and all(significant(contest, 1) for contest in contests):
        no_cheaper = all(contest.budget in ("equal", "more") for contest in contests)
        return "pays" if no_cheaper else "better for more", "it is ahead"
    # One opponent that is as good is enough: its budget, or less, buys the same without a debate.
    no_dearer = [contest for contest in known if contest.budget in ("equal", "less")]
    reasons = [_behind(contest) for contest in no_dearer if significant(contest, -1)]
    for contest in no_dearer:
        high = _widened(contest, terms, tests)
        if high is not None and high < terms.worth:
            reasons.append(f"any gain over {contest.title} is smaller than {terms.worth:g}")
    if reasons:
        return "does not pay", reasons[0]
    if any(significant(contest, -1) for contest in known if contest.budget == "more"):
        return "worse for less", "it is behind"
    return "undecided", ""


def _behind(contest: Contest) -> str:
    return "it is behind" if contest.budget == "equal" else "it is behind and spent more"


def _widened(contest: Contest, terms: Terms, tests: int) -> float | None:
    """Return the upper end of a difference's interval, corrected for several tests (Bonferroni)."""
    from scipy.special import stdtrit

    high = contest.difference.high
    value = contest.difference.value
    if high is None or value is None or tests == 1:
        return high
    tail = (1 - terms.resampling.confidence) / 2
    freedom = contest.clusters - 1
    wider = float(stdtrit(freedom, 1 - tail / tests) / stdtrit(freedom, 1 - tail))
    return value + (high - value) * wider


def items_needed(
    differences: Sequence[Statistic],
    items: int,
    clusters: int,
    terms: Terms,
    tests: int | None = None,
) -> int | None:
    """Return the least number of items needed to decide whether a protocol pays.

    The number follows from the observed paired spread. The standard error of a difference comes
    from its Student interval, and is assumed to fall with the square root of the number of items,
    with groups of the same size. By the normal approximation, a distance d differs significantly
    from 0 with probability ``POWER`` for n (z_(1 - alpha / 2m) + z_power)^2 se^2 / d^2 items, with
    m opponents, or ``tests`` contests of several aspects (Holm's first step).

    The protocol pays if the observed difference is significant for every opponent. It does not pay
    as soon as one difference is significantly below the smallest gain worth having. The smaller
    number of items counts. A distance below one standard error gives no number. Differences on few
    items are uncertain, and so is this number: it is rounded up to two digits.

    >>> items_needed([Statistic(0.04, -0.02, 0.10)], 100, 100, Terms())
    450
    """
    from scipy.special import ndtri, stdtrit

    confidence = terms.resampling.confidence
    z = float(ndtri(1 - (1 - confidence) / (2 * (tests or len(differences))))) + float(ndtri(POWER))
    student = float(stdtrit(clusters - 1, (1 + confidence) / 2))

    def items_for(difference: Statistic, distance: float) -> float:
        assert difference.low is not None and difference.high is not None
        error = (difference.high - difference.low) / 2 / student
        return items * (z * error / distance) ** 2 if distance >= error else inf

    gains = [(difference, difference.value or 0.0) for difference in differences]
    pays = max(items_for(difference, gain) for difference, gain in gains)
    does_not = min(items_for(difference, terms.worth - gain) for difference, gain in gains)
    # The current number of items was not enough.
    needed = max(min(pays, does_not), items + 1)
    if not isfinite(needed):
        return None
    # Round up to two digits.
    scale: int = 10 ** max(0, int(log10(needed)) - 1)
    return ceil(needed / scale) * scale


def budgets_in_words(contests: Sequence[Contest], unit: Currency) -> str:
    """Return whether budgets are equal, such as ``at equal tokens``."""
    unequal = sum(contest.budget != "equal" for contest in contests)
    if not unequal:
        return f"at equal {unit}"
    return f"at unequal {unit}" if unequal == len(contests) else f"at equal {unit} unless stated"


def _in_words(contest: Contest, unit: Currency) -> str:
    value = contest.difference.value
    low = contest.difference.low
    high = contest.difference.high
    opponent = f"{contest.title}{contest.spent_in_words(unit)}"
    if value is None:
        return f"no difference to {opponent}, because the agreement of one is undefined"
    interval = "" if low is None or high is None else f" [{low:z.3f}, {high:z.3f}]"
    return f"{value:+z.3f}{interval} against {opponent}"


def find_each(
    protocol: str, contests: Mapping[str, Sequence[Contest]], metric: str, terms: Terms
) -> dict[str, Finding]:
    """Decide for each of several aspects whether a protocol pays.

    Args:
        protocol: its label.
        contests: the contests on each aspect; their p-values are those of ``adjusted_over``.
        metric: the metric of agreement.
        terms: the terms of the comparison.
    """
    tests = sum(map(len, contests.values()))
    return {
        aspect: find(protocol, of_aspect, metric, terms, tests)
        for aspect, of_aspect in contests.items()
    }


def adjusted_over(contests: Sequence[Contest]) -> list[Contest]:
    """Adjust the p-values of contests that are shown together, by Holm's method."""
    adjusted = holm([contest.p for contest in contests])
    return [replace(contest, p=p) for contest, p in zip(contests, adjusted, strict=True)]


def findings_of(study: Study) -> Iterator[Finding]:
    """Decide for every protocol with a debate in a study, and every subject, whether it pays.

    Only protocols with an opponent in the study are included: several samples of the same model,
    or an ensemble of identical judges with this model. Other runs do not show what the same budget
    buys. The p-values are adjusted for all of them together.
    """
    talking = {
        (spoken.judge, spoken.subject) for spoken in study.diagnoses if spoken.changes is not None
    }
    subjects = {subject.label: subject for subject in study.subjects}
    models = {judge.label: {*judge.models.values()} for judge in study.judges}
    found = [
        match
        for match in study.matching.matches
        if (match.judge, match.subject) in talking
        and models[match.judge] == models[match.ensemble.source]
    ]
    contests = adjusted_over([_contest(match, subjects[match.subject].metric) for match in found])
    for match, contest in zip(found, contests, strict=True):
        metric = subjects[match.subject].metric
        label = match.judge if len(subjects) == 1 else f"{match.judge} on {match.subject}"
        terms = Terms(by=match.currency, resampling=study.resampling)
        yield find(label, [contest], metric, terms, len(found))


def _contest(match: EqualCostMatch, metric: str) -> Contest:
    """Return the contest of a judge with an ensemble, with its unadjusted p-value."""
    ensemble = match.ensemble
    # The largest ensemble within the budget may still cost much less.
    ratio = match.ensemble_spent / match.spent
    difference = match.pairwise.differences[metric]
    opponent = ensemble.source, ensemble.k, ensemble.label
    contest = Contest.of(match.subject, opponent, match.pairwise.shared, ratio, difference)
    return replace(
        contest,
        p=difference.p,
        ties=match.ties,
        other_ties=match.ensemble_ties,
        hinges_on_ties=match.hinges_on_ties,
    )
