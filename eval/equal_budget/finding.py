"""Say in one sentence whether a protocol pays: better than its equally dear opponents, or not, or not to be told.

The tests are those of ``statistics.sample``: paired, over clusters, adjusted by Holm's method over the opponents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, log10
from typing import Literal, NamedTuple

from ..analysis import Study
from ..statistics.metrics import METRICS
from ..statistics.resampling import FEWEST_UNITS, Statistic
from .terms import WORTH

Answer = Literal["pays", "does not pay", "cannot be told"]
TOLERANCE = 0.1
"""By how much the spending of two may differ and still count as equal."""

POWER = 0.8
"""The chance with which so many items as are recommended would tell."""


@dataclass(frozen=True)
class Rivalry:
    """Holds the difference between a protocol and one opponent, in the metric that leads on the data.

    Attributes:
        opponent: such as ``4 samples of single``.
        difference: the protocol's less the opponent's, with its interval; ``None`` as value where it does not exist.
        p: two-sided, by Holm's method over the opponents; ``None`` where there is no test.
        ratio: what the opponent spent, as a multiple of what the protocol did; ``None`` where that is not known.
    """

    opponent: str
    difference: Statistic
    p: float | None
    ratio: float | None


class Evidence(NamedTuple):
    """Says what differences are of.

    Attributes:
        metric: the name of the metric.
        unit: what was spent equally: ``tokens``, ``cost`` or ``calls``.
        items: labelled items that all have judged.
        clusters: groups, or items without a group, among them.
    """

    metric: str
    unit: str
    items: int
    clusters: int


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


def find(
    protocol: str,
    rivalries: Sequence[Rivalry],
    evidence: Evidence,
    worth: float = WORTH,
    confidence: float = 0.95,
) -> Finding:
    """Decide whether a protocol pays.

    It pays if it is significantly better than each opponent. It does not if it is significantly worse than one, or if
    the interval of its gain over one lies below ``worth``: then more items would not make it worth the effort.

    Args:
        protocol: its label.
        rivalries: the comparison with each opponent, on the same items.
        evidence: what is compared, and on how many items.
        worth: the smallest gain that would be worth having.
        confidence: of the intervals.
    """
    metric, unit, items, clusters = evidence
    by, against = f"by {METRICS[metric].title}, at equal {unit}", "; ".join(map(_in_words, rivalries))

    def significant(rival: Rivalry) -> bool:
        return rival.p is not None and rival.p < 1 - confidence

    def cannot_tell(reason: str, needed: int | None = None) -> Finding:
        enough = f"; about {needed:,} would tell" if needed else ""
        sentence = (
            f"Whether {protocol} pays cannot be told with {items:,} items{enough} ({by}: {against}){reason}"
        )
        return Finding("cannot be told", sentence, items, needed)

    unequal = [rival for rival in rivalries if rival.ratio is None or abs(rival.ratio - 1) > TOLERANCE]
    known = [rival for rival in rivalries if rival.difference.low is not None]
    if unequal or all(rival.difference.value is None for rival in rivalries):
        return Finding("cannot be told", _why_nothing(protocol, rivalries, unequal, evidence), items)
    if clusters < FEWEST_UNITS:
        few = f"to tell it from chance takes {FEWEST_UNITS} groups, or items without a group; here are {clusters}"
        return cannot_tell(f": {few}")
    if known == [*rivalries] and all(_gain(rival) > 0 and significant(rival) for rival in rivalries):
        return Finding("pays", f"{protocol} pays: {by}, it is ahead on {items:,} items: {against}", items)
    # One opponent that is as good is enough: the budget buys as much without a debate.
    ahead = next((rival for rival in known if _gain(rival) < 0 and significant(rival)), None)
    equal = next((rival for rival in known if rival.difference.high < worth), None)  # type: ignore[operator]
    if ahead or equal:
        why = "it is behind" if ahead else f"any gain over {equal.opponent} is smaller than {worth:g}"  # type: ignore[union-attr]
        sentence = f"{protocol} does not pay: {by}, {why} on {items:,} items: {against}"
        return Finding("does not pay", sentence, items)
    if known != [*rivalries]:
        return cannot_tell(": in too few groups do both give verdicts that differ")
    differences = [rival.difference for rival in rivalries]
    return cannot_tell("", items_needed(differences, items, clusters, worth=worth, confidence=confidence))


def items_needed(
    differences: Sequence[Statistic],
    items: int,
    clusters: int,
    *,
    worth: float = WORTH,
    confidence: float = 0.95,
    power: float = POWER,
) -> int | None:
    """Estimate how many items would tell whether a protocol pays, from the paired spread seen.

    The standard error of a difference is read off its Student's interval and taken to fall with the square root of the
    number of items, the groups being as large as now. By the normal approximation a distance d is told from 0 with the
    power wanted on n (z_(1 - alpha / 2m) + z_power)^2 se^2 / d^2 items, with m opponents (Holm's first step). It pays
    if d, the difference seen, is told from 0 for every opponent; it does not as soon as one difference is told from
    ``worth``; whichever takes fewer items counts. Differences seen on few items are themselves uncertain, and so is
    this number: it is rounded to two digits.

    >>> items_needed([Statistic(0.04, -0.02, 0.10)], 100, 100)
    450
    """
    from scipy.special import ndtri, stdtrit

    z = float(ndtri(1 - (1 - confidence) / (2 * len(differences)))) + float(ndtri(power))
    student = float(stdtrit(clusters - 1, (1 + confidence) / 2))

    def items_for(difference: Statistic, distance: float) -> float:
        assert difference.low is not None and difference.high is not None
        error = (difference.high - difference.low) / 2 / student
        return items * (z * error / distance) ** 2 if distance > 0 else inf

    pays = max(items_for(difference, difference.value or 0.0) for difference in differences)
    does_not = min(items_for(difference, worth - (difference.value or 0.0)) for difference in differences)
    needed = max(min(pays, does_not), items + 1)
    if not isfinite(needed):
        return None
    scale: int = 10 ** max(0, int(log10(needed)) - 1)
    return ceil(needed / scale) * scale


def _gain(rival: Rivalry) -> float:
    return rival.difference.value or 0.0


def _in_words(rival: Rivalry) -> str:
    value, low, high = rival.difference.value, rival.difference.low, rival.difference.high
    if value is None:
        return f"no difference to {rival.opponent}, since one of the two agrees with nobody"
    interval = "" if low is None or high is None else f" [{low:z.3f}, {high:z.3f}]"
    return f"{value:+z.3f}{interval} against {rival.opponent}"


def _why_nothing(
    protocol: str, rivalries: Sequence[Rivalry], unequal: Sequence[Rivalry], evidence: Evidence
) -> str:
    """Write why there is nothing to decide."""
    nothing = f"Whether {protocol} pays cannot be told: "
    if not rivalries:
        return f"{nothing}there is no opponent with verdicts on the same items"
    if unequal:
        rival = unequal[0]
        share = "an unknown amount" if rival.ratio is None else f"{rival.ratio:.0%}"
        return f"{nothing}{rival.opponent} spent {share} of its {evidence.unit}, which is not the same budget"
    return (
        f"{nothing}nothing can be said of agreement, since {METRICS[evidence.metric].title} does not exist here: "
        "verdicts or labels are missing, or all alike"
    )


def findings_of(study: Study, worth: float = WORTH) -> Iterator[Finding]:
    """Say of every protocol in a study whose agents talk, and of every subject, whether it pays.

    Only those are in it for which the study holds several samples of the same model, or an ensemble of judges who are
    all alike and ask it, that spent as much: others say nothing about what the same budget buys.
    """
    talking = {(spoken.judge, spoken.subject) for spoken in study.diagnoses if spoken.changes is not None}
    subjects = {subject.label: subject for subject in study.subjects}
    models = {judge.label: {*judge.models.values()} for judge in study.judges}
    for match in study.matching.matches:
        ratio = match.ensemble_spent / match.spent
        same_model = models[match.judge] == models[match.ensemble.source]
        if (match.judge, match.subject) not in talking or not same_model or abs(ratio - 1) > TOLERANCE:
            continue
        subject = subjects[match.subject]
        difference = match.pairwise.differences[subject.metric]
        yield find(
            match.judge if len(subjects) == 1 else f"{match.judge} on {match.subject}",
            [Rivalry(match.ensemble.label, difference.difference, difference.adjusted, ratio)],
            Evidence(subject.metric, match.unit, match.pairwise.shared, difference.clusters),
            worth,
            study.resampling.confidence,
        )
