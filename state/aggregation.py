"""Combine several judgements into one: means, majority votes, pairs in swapped answer order, expected scores.

An expected score (G-Eval: Liu et al. 2023, 2.2) comes from token log-probabilities or from samples:

expected_score         from the tokens that were likely in place of the one that states the score
expected_from_samples  from scores that were read from several replies to one question
score_tokens           finds the place of the score among the tokens of a reply

Probability on tokens that are no value of the scale is dropped, and the rest is normalised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeVar

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


def mean_pair(pairs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Return the mean of pairs, answer by answer.

    >>> mean_pair([(8, 6), (7, 7)])
    (7.5, 6.5)
    """
    first, second = zip(*pairs, strict=True)
    return fmean(first), fmean(second)


def winner_by_mean(scores: Sequence[float]) -> Winner:
    """Return the answer with the higher mean score; means that differ by rounding errors alone are a tie.

    >>> winner_by_mean([0.1 + 0.2, 0.3]), winner_by_mean([7.5, 7.0])
    ('tie', '1')
    """
    first, second = scores
    # Means of the same scores, added up in another order, differ in the last bits of a float.
    return "tie" if math.isclose(first, second, rel_tol=1e-9) else winner_of((first, second))


def majority_vote(pairs: Mapping[str, Sequence[float]]) -> tuple[Winner, dict[str, Any]]:
    """Turn each referee's pair of scores into a vote for the higher one; return who wins, and the vote's details.

    Equal scores are a vote for neither answer, but count as a voter. Without an absolute majority for an answer the
    higher mean score wins; equal means are a tie.

    >>> majority_vote({"a": [8, 7], "b": [7, 6], "c": [1, 10]})[0]
    '1'
    >>> winner, details = majority_vote({"a": [8, 7], "b": [1, 10]})
    >>> winner, details["votes"], details["decided_by"]
    ('2', {'a': '1', 'b': '2'}, 'average')
    """
    votes = {voter: winner_by_mean(pair) for voter, pair in pairs.items()}
    # Of all voters, not of the votes for an answer: voters with equal scores can keep both from a majority.
    winner, decided_by = majority([*votes.values()]), "majority"
    if winner is None or winner == "tie":
        winner, decided_by = winner_by_mean(mean_pair(pairs.values())), "average"
    return winner, {"scores_by_referee": dict(pairs), "votes": votes, "decided_by": decided_by}


def swapped(value: Any) -> Any:
    """Convert a value given for swapped answers to the order of the task: pairs are reversed, winners change sides.

    Values without sides (a score, a tie, None) are returned as they are.

    >>> swapped([8.0, 6.0]), swapped("1"), swapped("tie"), swapped(None)
    ([6.0, 8.0], '2', 'tie', None)
    """
    if isinstance(value, list | tuple):
        return list(reversed(value))
    return {"1": "2", "2": "1"}.get(value, value) if isinstance(value, str) else value


def standard_deviation(scores: Sequence[Score]) -> Score | None:
    """Return the sample standard deviation (n - 1) of scores, or of pairs answer by answer; None for a single score.

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
    # At most one value can have more than half, so the most frequent one is the only candidate.
    [(first, count)] = Counter(votes).most_common(1)
    return first if 2 * count > len(votes) else None


def mean_by_round(runs: Sequence[Sequence[Score]]) -> list[Score]:
    """Return the mean score over several runs after each round; a run that ended earlier keeps its last score.

    >>> mean_by_round([[3, 5], [4]])
    [3.5, 4.5]
    """
    # A run without any score has no last one to keep.
    if not all(runs):
        return []
    longest = max(map(len, runs))
    padded = ([*run, *[run[-1]] * (longest - len(run))] for run in runs)
    return [mean_of(scores) for scores in zip(*padded, strict=True)]


NEGLIGIBLE = 1e-3
"""A share of probability that is too small to change a score in the digits that are reported."""

# Tokenizers of some models write the blank before a word as one of the last two characters.
_MARKS = " \t\r\n\u2581\u0120"


class Expectation(NamedTuple):
    """Hold an expected score, and the distribution whose mean it is.

    Attributes:
        value: the sum of p(s) * s over the values s of the scale.
        distribution: from each value to its share, in the order of the scale; the shares add up to 1.
        dropped: probability of all other tokens (0 for samples).
    """

    value: float
    distribution: Mapping[float, float]
    dropped: float = 0.0

    @property
    def by_name(self) -> dict[str, float]:
        """The distribution with strings as keys, as JSON has them."""
        return {f"{value:g}": share for value, share in self.distribution.items()}


def expected_score(likely: Iterable[Mapping[str, Any]], low: float, high: float) -> Expectation:
    """Return the expectation over the whole numbers of a scale, from the tokens that were likely in one place.

    Args:
        likely: the likely tokens with their natural log-probabilities, as ``{"token": ..., "logprob": ...}``.
        low: lowest value of the scale, 0 or more.
        high: highest value of the scale.

    Raises:
        ValueError: no token is a value of the scale; or a token may be a value or only a part of one (``1`` of
            ``10``, where nothing shows that the model writes 10 as one token; ``1`` of ``-1``).

    >>> shares = {"4": 0.6, " 5": 0.2, "The": 0.2}
    >>> expected = expected_score([{"token": t, "logprob": math.log(p)} for t, p in shares.items()], 1, 5)
    >>> round(expected.value, 6), round(expected.dropped, 6)
    (4.25, 0.2)
    """
    if low < 0:
        raise ValueError(f"the scale begins at {low:g}, and a sign and its number are several tokens")
    mass: dict[str, float] = {}
    # Added up: a server may list a token twice, such as two that it decodes to the same text.
    for entry in likely:
        if (label := _scale_value(entry["token"], low, high)) is not None:
            mass[label] = mass.get(label, 0.0) + math.exp(entry["logprob"])
    whole = math.fsum(mass.values())
    if whole <= 0:
        raise ValueError("none of the likely tokens is one of those asked for")
    shares = {label: part / whole for label, part in mass.items()}
    # A label of two digits among the tokens shows that the model writes such numbers as one token.
    if all(len(label) == 1 for label in shares):
        # Else ``1`` may be the first token of 10; ``0`` begins no longer number, and 2 begins none on a scale to 10.
        unclear = {label: share for label, share in shares.items() if 0 < int(label) * 10 <= high}
        if math.fsum(unclear.values()) > NEGLIGIBLE:
            token = max(unclear, key=unclear.__getitem__)
            may_go_on = f"the token {token!r} may be the beginning of a longer number"
            raise ValueError(f"the scale goes up to {high:g}, and {may_go_on}")
    distribution = {float(label): shares[label] for label in sorted(shares, key=int)}
    mean = math.fsum(value * share for value, share in distribution.items())
    # Rounded, since probabilities of tokens that add up to 1 miss it by some last bits.
    return Expectation(mean, distribution, max(0.0, round(1.0 - whole, 12)))


def expected_from_samples(values: Iterable[float]) -> Expectation:
    """Return the expectation by relative frequency: the mean of the samples.

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
    """Find the token that states the score, and return the tokens that were likely in its place.

    That is the first token of this value, not counting the number of a list item with the score behind it; where a
    reply says 2.5 in three tokens, it is the first token that is a value of the scale.

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
    # Not a token that numbers a list item which holds the score, as the first 1 of ``1. Naturalness: 1`` does. The last
    # token of this value is the score itself, whatever follows: ``I give it a 4.``
    candidates = [at for at in exact if at == exact[-1] or not tokens[at + 1]["token"].startswith((".", ")"))]
    # 2.5 is no single token: its first one, 2, is where the model decided.
    if stated % 1:
        candidates = list(values)
    if not candidates:
        raise ValueError(f"no token of the reply is the score that it states, {stated:g}")
    token = tokens[candidates[0]]
    # Where no alternatives are listed, the token itself is all that is known to be likely.
    return token.get("top_logprobs") or [token]


def _scale_value(token: str, low: float, high: float) -> str | None:
    """Return the whole number of the scale that a token spells, white space around it or not; else None."""
    digits = token.strip(_MARKS)
    # ``isdigit`` alone is true of ``²``, which ``int`` refuses; and ``int`` of thousands of digits is an error.
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    # ``04`` is no usual spelling of a score.
    return digits if str(int(digits)) == digits and low <= int(digits) <= high else None
