"""Combines several judgements: means, majority votes, pairs in swapped order, expected scores.

An expected score (G-Eval: Liu et al. 2023, 2.2) comes from token log-probabilities or from samples:

expected_score         from the likely tokens at the position of the score
expected_from_samples  from scores that were read from several replies to one question
score_tokens           finds the position of the score among the tokens of a reply

Probability on tokens that are not a value of the scale is dropped, and the rest is normalised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, median, stdev
from typing import Any, Literal, NamedTuple, TypeVar

from .transcript import Score
from .verdict import Winner, winner_of

T = TypeVar("T")


def mean_of(scores: Sequence[Score]) -> Score:
    """Return the mean of scores, or of pairs answer by answer.

    >>> mean_of([3, 4]), mean_of([[8, 6], [7, 7]])
    (3.5, [7.5, 6.5])
    """
    return _by_side(scores, fmean)


def _by_side(scores: Sequence[Score], combine: Callable[[Iterable[float]], float]) -> Score:
    if pairs := [score for score in scores if isinstance(score, list)]:
        return [combine(side) for side in zip(*pairs, strict=True)]
    return combine(score for score in scores if not isinstance(score, list))


Combination = Literal["mean", "median", "trimmed", "geometric_median", "majority", "weighted"]
"""The rules that make one score, or one pair of scores, of those of a panel's members."""


def combine_scores(
    scores: Mapping[str, Score], how: Combination, weights: Mapping[str, float] | None = None
) -> Score:
    """Combine the scores of a panel's members by a rule that does not depend on their order.

    The rule ``majority`` decides between answers, so the scores are those of the mean, except for a
    single score that more than half of the members gave.

    Args:
        scores: each member's score, or pair of scores.
        how: ``mean``, ``median`` (answer by answer), ``trimmed`` (the mean without the highest and
            the lowest value; with fewer than three members, the mean), ``geometric_median`` (the
            pair with the smallest sum of distances to all pairs; for single scores the median),
            ``majority``, or ``weighted``.
        weights: each member's weight, 0 or more, for ``weighted``. They need not add up to 1.

    Raises:
        ValueError: the weights of these members add up to 0.

    >>> scores = {"a": 4, "b": 5, "c": 1, "d": 4}
    >>> [combine_scores(scores, how) for how in ("mean", "median", "trimmed", "majority")]
    [3.5, 4.0, 4.0, 3.5]
    >>> combine_scores(scores, "weighted", {"a": 1, "b": 1, "c": 0, "d": 2})
    4.25
    >>> combine_scores({"a": [8, 6], "b": [8, 6], "c": [1, 10]}, "geometric_median")
    [8.0, 6.0]

    Source: Verga et al. 2024 (arXiv 2404.18796), section 3, for mean and majority; the geometric
    median after Vardi and Zhang 2000, for panels in arXiv 2606.30931.
    """
    values = [*scores.values()]
    pairs = sorted((pair[0], pair[1]) for pair in values if isinstance(pair, list))
    if how == "weighted":
        shares = [(weights or {})[member] for member in scores]
        if math.fsum(shares) <= 0:
            raise ValueError(f"the weights of {', '.join(scores)} add up to 0")
        return _by_side(values, lambda side: fmean(side, shares))
    if how == "geometric_median" and pairs:
        return list(_geometric_median(pairs))
    if how == "majority" and not pairs:
        common = majority(values)
        return mean_of(values) if common is None else common
    rules = {"median": _median, "geometric_median": _median, "trimmed": _trimmed_mean}
    return _by_side(values, rules.get(how, fmean))


def _median(side: Iterable[float]) -> float:
    return float(median(side))


def _trimmed_mean(side: Iterable[float]) -> float:
    ordered = sorted(side)
    return fmean(ordered[1:-1] if len(ordered) > 2 else ordered)


def _geometric_median(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the point with the smallest sum of distances to sorted points."""
    first = points[0]
    last = points[-1]
    if all(
        math.isclose((x - first[0]) * (last[1] - first[1]), (y - first[1]) * (last[0] - first[0]))
        for x, y in points
    ):
        # On a line, every point between the two middle ones has the smallest sum. The centre of
        # these is the median of both coordinates.
        return (
            float(median(x for x, _ in points)),
            float(median(y for _, y in points)),
        )
    for point, times in Counter(points).items():
        others = [other for other in points if other != point]
        pull = [(x - point[0], y - point[1], math.dist((x, y), point)) for x, y in others]
        force = math.hypot(
            math.fsum(x / length for x, _, length in pull),
            math.fsum(y / length for _, y, length in pull),
        )
        # The other points do not pull the median away from this one.
        if force <= times:
            return (float(point[0]), float(point[1]))
    at = (fmean(x for x, _ in points), fmean(y for _, y in points))
    for _ in range(_MOST_STEPS):
        near = [1 / max(math.dist(point, at), _SMALLEST) for point in points]
        total = math.fsum(near)
        moved = (
            math.fsum(x * share for (x, _), share in zip(points, near, strict=True)) / total,
            math.fsum(y * share for (_, y), share in zip(points, near, strict=True)) / total,
        )
        if math.dist(moved, at) < _SMALLEST:
            break
        at = moved
    # Round away the steps' remainder, which is far below a point of any scale.
    return (round(at[0], 9), round(at[1], 9))


_MOST_STEPS = 10_000
_SMALLEST = 1e-12


def mean_pair(pairs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Return the mean of pairs, answer by answer.

    >>> mean_pair([(8, 6), (7, 7)])
    (7.5, 6.5)
    """
    first, second = zip(*pairs, strict=True)
    return fmean(first), fmean(second)


def winner_by_mean(scores: Sequence[float]) -> Winner:
    """Return the answer with the higher mean score; a difference by rounding errors is a tie.

    >>> winner_by_mean([0.1 + 0.2, 0.3]), winner_by_mean([7.5, 7.0])
    ('tie', '1')
    """
    first, second = scores
    # Means of the same scores, added in another order, differ in the last bits of a float.
    return "tie" if math.isclose(first, second, rel_tol=1e-9) else winner_of((first, second))


def majority_vote(pairs: Mapping[str, Sequence[float]]) -> tuple[Winner, dict[str, Any]]:
    """Return the winner by the referees' votes, and the details of the vote.

    Each referee votes for the answer with its higher score; equal scores are a vote for a tie. An
    outcome (a tie included) with more than half of the votes wins. Without such a majority, the
    answer with the higher mean score wins; equal means are a tie.

    >>> majority_vote({"a": [8, 7], "b": [7, 6], "c": [1, 10]})[0]
    '1'
    >>> majority_vote({"a": [7, 8], "b": [8, 8], "c": [8, 8]})[0]
    'tie'
    >>> winner, details = majority_vote({"a": [8, 7], "b": [1, 10]})
    >>> winner, details["votes"], details["decided_by"]
    ('2', {'a': '1', 'b': '2'}, 'average')
    """
    votes = {voter: winner_by_mean(pair) for voter, pair in pairs.items()}
    winner = majority([*votes.values()])
    decided_by = "majority"
    if winner is None:
        winner = winner_by_mean(mean_pair(pairs.values()))
        decided_by = "average"
    return winner, {"scores_by_referee": dict(pairs), "votes": votes, "decided_by": decided_by}


def swapped(value: Any) -> Any:
    """Convert a value for swapped answers to the order of the task.

    Pairs are reversed, and winners change sides. Other values (a score, a tie, None) are unchanged.

    >>> swapped([8.0, 6.0]), swapped("1"), swapped("tie"), swapped(None)
    ([6.0, 8.0], '2', 'tie', None)
    """
    if isinstance(value, list | tuple):
        return list(reversed(value))
    return {"1": "2", "2": "1"}.get(value, value) if isinstance(value, str) else value


def standard_deviation(scores: Sequence[Score]) -> Score | None:
    """Return the sample standard deviation (n - 1) of scores, or of pairs; None for one score.

    >>> standard_deviation([2, 4]) == math.sqrt(2)
    True
    >>> standard_deviation([[8, 6], [8, 6]]), standard_deviation([3])
    ([0.0, 0.0], None)
    """
    return None if len(scores) < 2 else _by_side(scores, stdev)


def majority(votes: Sequence[T]) -> T | None:
    """Return the value that more than half of the votes have, or None.

    >>> majority(["1", "tie", "1"]), majority([3.0, 4.0])
    ('1', None)
    """
    # Only the most frequent value can have more than half of the votes.
    [(first, count)] = Counter(votes).most_common(1)
    return first if 2 * count > len(votes) else None


def mean_by_round(runs: Sequence[Sequence[Score]]) -> list[Score]:
    """Return the mean score over several runs after each round.

    A run that ended earlier contributes its last score.

    >>> mean_by_round([[3, 5], [4]])
    [3.5, 4.5]
    """
    # A run without any score has no last one.
    if not all(runs):
        return []
    longest = max(map(len, runs))
    padded = ([*run, *[run[-1]] * (longest - len(run))] for run in runs)
    return [mean_of(scores) for scores in zip(*padded, strict=True)]


NEGLIGIBLE = 1e-3
"""A share of probability that is too small to change the reported digits of a score."""

# Some tokenizers write the blank before a word as one of the last two characters.
_MARKS = " \t\r\n\u2581\u0120"


class Expectation(NamedTuple):
    """An expected score, and the distribution whose mean it is.

    Attributes:
        value: the sum of p(s) * s over the values s of the scale.
        distribution: the share of each value, in the order of the scale; the shares add up to 1.
        dropped: the probability of all other tokens (0 for samples).
    """

    value: float
    distribution: Mapping[float, float]
    dropped: float = 0.0

    @property
    def by_name(self) -> dict[str, float]:
        """The distribution with strings as keys, for JSON."""
        return {f"{value:g}": share for value, share in self.distribution.items()}


def expected_score(likely: Iterable[Mapping[str, Any]], low: float, high: float) -> Expectation:
    """Return the expectation over the whole numbers of a scale from likely tokens at one position.

    Args:
        likely: the likely tokens with their natural log-probabilities, as ``{"token": ...,
            "logprob": ...}``.
        low: lowest value of the scale, 0 or more.
        high: highest value of the scale.

    Raises:
        ValueError: no token is a value of the scale; or a token may be a value or only a part of
            one (``1`` of ``10``, if nothing shows that the model writes 10 as one token; ``1`` of
            ``-1``).

    >>> shares = {"4": 0.6, " 5": 0.2, "The": 0.2}
    >>> expected = expected_score([{"token": t, "logprob": math.log(p)} for t, p in shares.items()], 1, 5)
    >>> round(expected.value, 6), round(expected.dropped, 6)
    (4.25, 0.2)
    """
    if low < 0:
        raise ValueError(
            f"the scale begins at {low:g}, and a sign and its number are several tokens"
        )
    mass: dict[str, float] = {}
    # Add up duplicates: a server may decode two tokens to the same text.
    for entry in likely:
        if (label := _scale_value(entry["token"], low, high)) is not None:
            mass[label] = mass.get(label, 0.0) + math.exp(entry["logprob"])
    whole = math.fsum(mass.values())
    if whole <= 0:
        raise ValueError("none of the likely tokens is one of those asked for")
    shares = {label: part / whole for label, part in mass.items()}
    # A label of two digits among the tokens shows that the model writes such numbers as one token.
    if all(len(label) == 1 for label in shares):
        # Otherwise ``1`` may be the first token of 10. ``0`` cannot begin a longer number, nor can
        # 2 on a scale to 10.
        unclear = {label: share for label, share in shares.items() if 0 < int(label) * 10 <= high}
        if math.fsum(unclear.values()) > NEGLIGIBLE:
            token = max(unclear, key=unclear.__getitem__)
            raise ValueError(
                f"the scale goes up to {high:g}, and the token {token!r} "
                "may be the beginning of a longer number"
            )
    distribution = {float(label): shares[label] for label in sorted(shares, key=int)}
    mean = math.fsum(value * share for value, share in distribution.items())
    # Round, because probabilities that should add up to 1 differ in the last bits.
    return Expectation(mean, distribution, max(0.0, round(1.0 - whole, 12)))


def expected_from_samples(values: Iterable[float]) -> Expectation:
    """Return the expectation by relative frequency, that is, the mean of the samples.

    Raises:
        ValueError: there are no samples.

    >>> expected_from_samples([4, 4, 5, 3]).distribution
    {3.0: 0.25, 4.0: 0.5, 5.0: 0.25}
    """
    counts = Counter(map(float, values))
    if not counts:
        raise ValueError("an expectation needs at least one sample")
    distribution = {value: counts[value] / counts.total() for value in sorted(counts)}
    return Expectation(math.fsum(v * n for v, n in counts.items()) / counts.total(), distribution)


def score_tokens(
    tokens: Sequence[Mapping[str, Any]], stated: float, low: float, high: float
) -> Sequence[Mapping[str, Any]]:
    """Find the token that states the score, and return the likely tokens at its position.

    It is the first token with this value, except the number of a list item that contains the score.
    If a reply writes 2.5 in three tokens, it is the first token that is a value of the scale.

    Args:
        tokens: all tokens of a reply, as the provider lists them.
        stated: the score that was read from the reply.
        low: lowest value of the scale.
        high: highest value of the scale.

    Raises:
        ValueError: there is no such token.
    """
    labels = ((at, _scale_value(token["token"], low, high)) for at, token in enumerate(tokens))
    values = {at: float(label) for at, label in labels if label is not None}
    exact = [at for at, value in values.items() if value == stated]
    # Skip tokens that number the list item with the score, such as the first 1 of ``1. Naturalness:
    # 1``. The last token with this value is the score itself, whatever follows: ``I give it a 4.``
    candidates = [
        at for at in exact if at == exact[-1] or not tokens[at + 1]["token"].startswith((".", ")"))
    ]
    # 2.5 consists of several tokens. The model decided at the first one, 2.
    if stated % 1:
        candidates = list(values)
    if not candidates:
        raise ValueError(f"no token of the reply is the score that it states, {stated:g}")
    token = tokens[candidates[0]]
    # If no alternatives are listed, only the token itself is known to be likely.
    return token.get("top_logprobs") or [token]


def _scale_value(token: str, low: float, high: float) -> str | None:
    """Return the whole number of the scale that a token spells, without white space; else None."""
    digits = token.strip(_MARKS)
    # ``isdigit`` also accepts ``²``, which ``int`` refuses. ``int`` fails on thousands of digits.
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    # ``04`` is not a usual spelling of a score.
    return digits if str(int(digits)) == digits and low <= int(digits) <= high else None
