"""Say in one sentence whether a protocol pays: better than its equally dear opponents, or not, or not to be told.

The tests are those of ``statistics.sample``: paired, over clusters, adjusted by Holm's method over the opponents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, log10
from typing import Annotated, Literal, Self

from ..analysis import Study
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_CLUSTERS, Statistic
from ..statistics.sample import Difference
from ..tables.grid import Column, share_column, text_column
from .equal_spending import Terms

Answer = Literal["pays", "does not pay", "cannot be told"]
Rival = tuple[str, float, str]
"""An opponent: its name, its size, and both in words."""

TOLERANCE = 0.1
"""By how much the spending of two may differ and still count as equal."""

POWER = 0.8
"""The chance with which so many items as are recommended would tell."""


@dataclass(frozen=True)
class Contest:
    """Compares the protocol with one opponent on one aspect, or on the comparisons, in the metric that leads there.

    Attributes:
        subject: the aspect, ``preference``, or ``average`` over the aspects.
        opponent: the name of the opponent.
        size: samples of it, or judges in it, an item on average.
        title: both in words.
        items: labelled items that both have judged.
        clusters: groups, or items without a group, that count; within groups, those in which both have a figure.
        ratio: what the opponent spent, as a multiple of what the protocol did; ``None`` where that is not known.
        protocol, other: the agreement of each, in the leading metric, over the same groups.
        difference: the first less the second; ``None`` as value where it does not exist.
        p: two-sided, by Holm's method over the opponents; ``None`` where there is no test.
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
    p: Annotated[float | None, Column("p (Holm)", form="p", about="adjusted over the opponents")]

    @classmethod
    def of(cls, subject: str, rival: Rival, items: int, ratio: float | None, difference: Difference) -> Self:
        """Make a contest of a difference, adjusted over the opponents."""
        first, second, value = difference.first, difference.second, difference.difference
        clusters, p = difference.clusters, difference.adjusted
        return cls(subject, *rival, items, clusters, ratio, first, second, value, p)


@dataclass(frozen=True)
class Finding:
    """Says whether a protocol pays.

    Attributes:
        answer: the answer.
        sentence: the answer in words, with the differences that it rests on.
        items: labelled items that all have judged.
        needed: about how many would tell, where these do not; ``None`` where that cannot be said.
    """

    answer: Answer
    sentence: str
    items: int
    needed: int | None = None


def find(protocol: str, contests: Sequence[Contest], metric: str, terms: Terms) -> Finding:
    """Decide whether a protocol pays.

    It pays if it is significantly better than each opponent. It does not if it is significantly worse than one, or if
    the interval of its gain over one lies below the smallest that is worth having: then more items would not make it
    worth the effort.

    Args:
        protocol: its label.
        contests: the comparison with each opponent, on the same items.
        metric: what agreement is measured by.
        terms: of the comparison.
    """
    items = min((contest.items for contest in contests), default=0)
    differences = [contest.difference for contest in contests]
    known = [contest for contest in contests if contest.difference.low is not None]
    # Those without an interval say in words that they have none; fewer groups than enough are of all of them.
    most = max((contest.clusters for contest in contests), default=0)
    clusters = min((contest.clusters for contest in known), default=most)
    by, against = f"by {METRICS[metric].title}, at equal {terms.by}", "; ".join(map(_in_words, contests))
    whether = f"Whether {protocol} pays cannot be told"

    def significant(contest: Contest, way: int) -> bool:
        # At the level of the intervals, so that the answer and the interval beside it say the same.
        is_sure = contest.p is not None and contest.p < 1 - terms.resampling.confidence
        return is_sure and way * (contest.difference.value or 0.0) > 0

    def cannot_tell(reason: str, needed: int | None = None) -> Finding:
        enough = f"; about {needed:,} would tell" if needed else ""
        sentence = f"{whether} with {items:,} items{enough} ({by}: {against}){reason}"
        return Finding("cannot be told", sentence, items, needed)

    unequal = [contest for contest in contests if contest.ratio is None or abs(contest.ratio - 1) > TOLERANCE]
    nothing = ""
    if not contests:
        nothing = "there is no opponent with verdicts on the same items"
    elif unequal:
        share = "an unknown amount" if unequal[0].ratio is None else f"{unequal[0].ratio:.0%}"
        nothing = f"{unequal[0].title} spent {share} of its {terms.by}, which is not the same budget"
    elif all(difference.value is None for difference in differences):
        missing = f"agreement cannot be compared, because {METRICS[metric].title} is undefined here"
        nothing = f"{missing}: verdicts or labels are missing, or all the same"
    if nothing:
        return Finding("cannot be told", f"{whether}: {nothing}", items)
    if clusters < (least := FEWEST_CLUSTERS):
        few = f"telling it from chance takes {least} groups, or items without a group, not {clusters}"
        return cannot_tell(f": {few}")
    if known == [*contests] and all(significant(contest, 1) for contest in contests):
        return Finding("pays", f"{protocol} pays: {by}, it is ahead on {items:,} items: {against}", items)
    # One opponent that is as good is enough: the budget buys as much without a debate.
    reasons = ["it is behind" for contest in known if significant(contest, -1)]
    for contest in known:
        if contest.difference.high is not None and contest.difference.high < terms.worth:
            reasons.append(f"any gain over {contest.title} is smaller than {terms.worth:g}")
    if reasons:
        sentence = f"{protocol} does not pay: {by}, {reasons[0]} on {items:,} items: {against}"
        return Finding("does not pay", sentence, items)
    if known != [*contests]:
        return cannot_tell(": too few groups have verdicts of both that vary")
    return cannot_tell("", items_needed(differences, items, clusters, terms))


def items_needed(differences: Sequence[Statistic], items: int, clusters: int, terms: Terms) -> int | None:
    """Estimate how many items would tell whether a protocol pays, from the paired spread seen.

    The standard error of a difference is read off its Student's interval and taken to fall with the square root of the
    number of items, the groups being as large as now. By the normal approximation a distance d is told from 0 with the
    chance ``POWER`` on n (z_(1 - alpha / 2m) + z_power)^2 se^2 / d^2 items, with m opponents (Holm's first step). It
    pays if d, the difference seen, is told from 0 for every opponent; it does not as soon as one difference is told
    from the smallest gain worth having; whichever takes fewer items counts. Differences seen on few items are
    themselves uncertain, and so is this number: it is rounded to two digits.

    >>> items_needed([Statistic(0.04, -0.02, 0.10)], 100, 100, Terms())
    450
    """
    from scipy.special import ndtri, stdtrit

    confidence = terms.resampling.confidence
    z = float(ndtri(1 - (1 - confidence) / (2 * len(differences)))) + float(ndtri(POWER))
    student = float(stdtrit(clusters - 1, (1 + confidence) / 2))

    def items_for(difference: Statistic, distance: float) -> float:
        assert difference.low is not None and difference.high is not None
        error = (difference.high - difference.low) / 2 / student
        return items * (z * error / distance) ** 2 if distance > 0 else inf

    gains = [(difference, difference.value or 0.0) for difference in differences]
    pays = max(items_for(difference, gain) for difference, gain in gains)
    does_not = min(items_for(difference, terms.worth - gain) for difference, gain in gains)
    # So many as there are were not enough.
    needed = max(min(pays, does_not), items + 1)
    if not isfinite(needed):
        return None
    # Rounded up, so that two digits are left.
    scale: int = 10 ** max(0, int(log10(needed)) - 1)
    return ceil(needed / scale) * scale


def _in_words(contest: Contest) -> str:
    value, low, high = contest.difference.value, contest.difference.low, contest.difference.high
    if value is None:
        return f"no difference to {contest.title}, because the agreement of one is undefined"
    interval = "" if low is None or high is None else f" [{low:z.3f}, {high:z.3f}]"
    return f"{value:+z.3f}{interval} against {contest.title}"


def findings_of(study: Study) -> Iterator[Finding]:
    """Say of every protocol in a study whose agents talk, and of every subject, whether it pays.

    Only those are in it for which the study holds several samples of the same model, or an ensemble of judges who are
    all alike and ask it, that spent as much: others say nothing about what the same budget buys.
    """
    talking = {(spoken.judge, spoken.subject) for spoken in study.diagnoses if spoken.changes is not None}
    subjects = {subject.label: subject for subject in study.subjects}
    models = {judge.label: {*judge.models.values()} for judge in study.judges}
    for match in study.matching.matches:
        # The largest ensemble that costs no more may still cost much less.
        ratio = match.ensemble_spent / match.spent
        same_model = models[match.judge] == models[match.ensemble.source]
        if (match.judge, match.subject) not in talking or not same_model or abs(ratio - 1) > TOLERANCE:
            continue
        subject, ensemble = subjects[match.subject], match.ensemble
        difference = match.pairwise.differences[subject.metric]
        opponent = ensemble.source, ensemble.k, ensemble.label
        contest = Contest.of(match.subject, opponent, match.pairwise.shared, ratio, difference)
        label = match.judge if len(subjects) == 1 else f"{match.judge} on {match.subject}"
        yield find(label, [contest], subject.metric, Terms(by=match.currency, resampling=study.resampling))
