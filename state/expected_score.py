"""Compute the expected score of a judge, from token log-probabilities or from samples (G-Eval: Liu et al. 2023, 2.2).

expected_score         from the tokens that were likely in place of the one that states the score
expected_from_samples  from scores that were read from several replies to one question
token_mass             the shares of labels of any kind (``m`` and ``M``, ``A`` and ``B``) among likely tokens
score_tokens           finds the place of the score among the tokens of a reply

Probability on tokens that are no value of the scale is dropped, and the rest is normalised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TopTokens = Mapping[str, float] | Sequence[Mapping[str, Any]]
"""Natural log-probabilities by token, or a provider's list of ``{"token": ..., "logprob": ...}``."""

NEGLIGIBLE = 1e-3
"""A share of probability that is too small to change a score in the digits that are reported."""

# Tokenizers of some models write the blank before a word as one of the last two characters.
_MARKS = " \t\r\n\u2581\u0120"


@dataclass(frozen=True)
class Expectation:
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


def expected_score(top_logprobs: TopTokens, low: float, high: float) -> Expectation:
    """Return the expectation over the whole numbers of a scale, from the tokens that were likely in one place.

    Args:
        top_logprobs: the likely tokens with their natural log-probabilities.
        low: lowest value of the scale, 0 or more.
        high: highest value of the scale.

    Raises:
        ValueError: no token is a value of the scale; or a token may be a value or only a part of one (``1`` of
            ``10``, where nothing shows that the model writes 10 as one token; ``1`` of ``-1``).

    >>> found = expected_score({"4": math.log(0.6), " 5": math.log(0.2), "The": math.log(0.2)}, 1, 5)
    >>> round(found.value, 6), round(found.dropped, 6)
    (4.25, 0.2)
    """
    if low < 0:
        raise ValueError(f"the scale begins at {low:g}, and a sign and its number are several tokens")
    shares, dropped = token_mass(top_logprobs, lambda token: _scale_value(token, low, high))
    _refuse_beginnings(shares, high)
    distribution = {
        float(label): share for label, share in sorted(shares.items(), key=lambda one: int(one[0]))
    }
    return Expectation(_mean(distribution), distribution, dropped)


def expected_from_samples(values: Iterable[float]) -> Expectation:
    """Return the expectation by relative frequency: the mean of the samples.

    Raises:
        ValueError: there are no samples.

    >>> expected_from_samples([4, 4, 5, 3]).distribution
    {3.0: 0.25, 4.0: 0.5, 5.0: 0.25}
    """
    counts = Counter(map(float, values))
    if not counts:
        raise ValueError("an expectation needs one sample at least")
    distribution = {value: counts[value] / counts.total() for value in sorted(counts)}
    return Expectation(math.fsum(v * n for v, n in counts.items()) / counts.total(), distribution)


def token_mass(
    top_logprobs: TopTokens, label_of: Callable[[str], str | None]
) -> tuple[dict[str, float], float]:
    """Return each label's share of the probability of all labels, and the probability of all other tokens.

    Args:
        top_logprobs: the likely tokens with their natural log-probabilities.
        label_of: returns the label that a token stands for, or None.

    Raises:
        ValueError: no token stands for a label.

    >>> token_mass({"M": math.log(0.5), "m": math.log(0.25)}, {"M": "M"}.get)
    ({'M': 1.0}, 0.5)
    """
    mass: dict[str, float] = {}
    for token, logprob in _pairs(top_logprobs):
        if (label := label_of(token)) is not None:
            mass[label] = mass.get(label, 0.0) + math.exp(logprob)
    whole = math.fsum(mass.values())
    if whole <= 0:
        raise ValueError("none of the likely tokens is one of those asked for")
    shares = {label: part / whole for label, part in mass.items()}
    # Rounded, since probabilities of tokens that add up to 1 miss it by some last bits.
    return shares, max(0.0, round(1.0 - whole, 12))


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
    candidates = [at for at in exact if not _numbers_an_item(tokens, at, exact)]
    # 2.5 is no single token: its first one, 2, is where the model decided.
    if stated % 1:
        candidates = list(values)
    if not candidates:
        raise ValueError(f"no token of the reply is the score that it states, {stated:g}")
    token = tokens[candidates[0]]
    # Where no alternatives are listed, the token itself is all that is known to be likely.
    return token.get("top_logprobs") or [token]


def _numbers_an_item(tokens: Sequence[Mapping[str, Any]], at: int, exact: Sequence[int]) -> bool:
    """Tell whether the token numbers a list item that holds the score, as the first 1 of ``1. Naturalness: 1`` does."""
    after = tokens[at + 1]["token"] if at + 1 < len(tokens) else ""
    # The last token of this value is the score itself, whatever follows: ``I give it a 4.``
    return at != exact[-1] and after.startswith((".", ")"))


def _scale_value(token: str, low: float, high: float) -> str | None:
    """Return the whole number of the scale that a token spells, white space around it or not; else None."""
    digits = token.strip(_MARKS)
    # ``isdigit`` alone is true of ``²``, which ``int`` refuses; and ``int`` of thousands of digits is an error.
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    # ``04`` is no usual spelling of a score.
    return digits if str(int(digits)) == digits and low <= int(digits) <= high else None


def _refuse_beginnings(shares: Mapping[str, float], high: float) -> None:
    """Raise ValueError where ``1`` on a scale to 10 may be the first token of 10."""
    # A label of two digits among the tokens shows that the model writes such numbers as one token.
    if any(len(label) > 1 for label in shares):
        return
    # ``0`` begins no longer number, and 2 begins none on a scale to 10.
    unclear = {label: share for label, share in shares.items() if 0 < int(label) * 10 <= high}
    if math.fsum(unclear.values()) > NEGLIGIBLE:
        raise ValueError(
            f"the scale goes up to {high:g}, and the token {max(unclear, key=unclear.__getitem__)!r} may be the "
            "beginning of a longer number"
        )


def _pairs(top_logprobs: TopTokens) -> Iterator[tuple[str, float]]:
    if isinstance(top_logprobs, Mapping):
        yield from top_logprobs.items()
        return
    for entry in top_logprobs:
        yield entry["token"], entry["logprob"]


def _mean(distribution: Mapping[float, float]) -> float:
    return math.fsum(value * share for value, share in distribution.items())
