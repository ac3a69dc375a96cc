"""The expected score of a judge that is unsure: from the likelihood of tokens, or from samples.

expected_score         tokens in place of the one that states the score, with their log-probabilities
expected_from_samples  scores that were read from several replies to one question
token_mass             the same for labels of any kind (``m`` and ``M``, ``A`` and ``B``)

Mass on tokens that are no value of the scale is dropped and the rest normalised (G-Eval: Liu et al. 2023,
section 2.2).
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
_MARKS = " \t\r\n\u2581\u0120"


@dataclass(frozen=True)
class Expectation:
    """An expected score, and the distribution that it is the mean of.

    Attributes:
        value: the sum of p(s) * s over the scale.
        distribution: value of the scale to its share, in the order of the scale; the shares add up to 1.
        dropped: probability that lay on other tokens (0 for samples).
    """

    value: float
    distribution: Mapping[float, float]
    dropped: float = 0.0

    @property
    def by_name(self) -> dict[str, float]:
        """The distribution as JSON can hold it."""
        return {f"{value:g}": share for value, share in self.distribution.items()}


def expected_score(top_logprobs: TopTokens, low: float, high: float) -> Expectation:
    """The expectation over the whole numbers of a scale, by the tokens likely in one place.

    Raises:
        ValueError: no value of the scale is among the tokens; or a token that may be a value or only a part of
            one (1 of 10, where nothing shows that the model writes 10 as one token; 1 of -1).

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
    """The expectation by relative frequency: the mean of the samples that could be read.

    Raises:
        ValueError: there are none.

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
    """Each label's share of the probability that lies on labels, and the probability that lies elsewhere.

    Args:
        top_logprobs: the tokens that were likely.
        label_of: the label that a token stands for, or None.

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
    return shares, max(0.0, round(1.0 - whole, 12))


def score_tokens(
    tokens: Sequence[Mapping[str, Any]], stated: float, low: float, high: float
) -> Sequence[Mapping[str, Any]]:
    """What was likely in place of the token that states the score, out of all tokens of a reply.

    That is the first one of this value (the number of a list item, with the score behind it, does not count);
    or the first value of the scale where a reply says 2.5 in three tokens.

    Raises:
        ValueError: there is no such token.
    """
    labels = ((at, _scale_value(one["token"], low, high)) for at, one in enumerate(tokens))
    places = {at: float(label) for at, label in labels if label is not None}
    exact = [at for at, value in places.items() if value == stated]
    wanted = [at for at in exact if not _numbers_an_item(tokens, at, exact)]
    if stated % 1:
        wanted = list(places)
    if not wanted:
        raise ValueError(f"no token of the reply is the score that it states, {stated:g}")
    one = tokens[wanted[0]]
    return one.get("top_logprobs") or [one]


def _numbers_an_item(tokens: Sequence[Mapping[str, Any]], at: int, places: Sequence[int]) -> bool:
    """``1. Naturalness: 1``."""
    after = tokens[at + 1]["token"] if at + 1 < len(tokens) else ""
    return at != places[-1] and after.startswith((".", ")"))


def _scale_value(token: str, low: float, high: float) -> str | None:
    """The whole number of the scale that a token is, in its usual spelling, white space round it or not."""
    digits = token.strip(_MARKS)
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    return digits if str(int(digits)) == digits and low <= int(digits) <= high else None


def _refuse_beginnings(shares: Mapping[str, float], high: float) -> None:
    if any(len(label) > 1 for label in shares):
        return
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
