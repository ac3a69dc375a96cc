"""Fit the stops that predict the effect of another round to finished debates.

``debate`` with ``n="auto"`` and ``samre`` with ``stop="predicted"`` use the courtroom paper's model
(appendix A): after i rounds with w successes, a quantity is distributed as Beta(alpha + w, beta + i
- w). In DEBATE, a success is a round that changes the score, and the quantity is the chance of a
change. In SAMRE, a success is a round in which the gap between both answers grew, and the quantity
is the gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...state.errors import UsageError
from ...state.transcript import Score
from ..results.results import Result
from .gap_analysis import FEWEST_DEBATES, fit_prior
from .score_gaps import HIGH, LOW


def fit_stops(results: Iterable[Result]) -> dict[str, Any]:
    """Return the settings that let debates like these end early, with a prior fitted to them.

    Args:
        results: finished debates of one protocol: ``debate``, ``multiagent`` or ``samre``, such as
            ``evaluate(...).results``. Debates without a verdict do not count.

    Raises:
        UsageError: no such protocol, several protocols, fewer than ten debates with a round, or
            debates whose likelihood has no maximum (such as debates in which no score changed).

    >>> from jurygraph.eval.results.results import Result
    >>> paths = [(3, 3, 3)] * 20 + [(3, 4, 4)] * 10 + [(3, 4, 5)] * 10
    >>> debates = [Result(item=str(place), protocol="debate", status="ok", score_by_round=path)
    ...     for place, path in enumerate(paths)]
    >>> fit_stops(debates)["n"]
    'auto'

    Source: the courtroom paper, appendix A.4 ("fitting the model to empirical data").
    """
    debates = [result for result in results if result.status == "ok"]
    protocols = {result.protocol for result in debates}
    if len(protocols) != 1 or not protocols <= {"debate", "multiagent", "samre"}:
        raise UsageError(
            "a stop is fitted to debates of one of debate, multiagent and samre; "
            f"these results are of {', '.join(sorted(protocols)) or 'no protocol'}"
        )
    paths = [_path(result) for result in debates]
    if protocols == {"samre"}:
        prior = fit_gaps(paths)
        settings: dict[str, Any] = {"stop": ["predicted"]}
    else:
        prior = fit_changes(paths)
        settings = {"n": "auto"}
    if prior is None:
        raise UsageError(
            f"the stop could not be fitted to {len(paths)} debates: it needs at least "
            f"{FEWEST_DEBATES} with a round, and rounds with and without a change"
        )
    return {**settings, "prior": prior}


def _path(result: Result) -> list[Score]:
    return [list(score) if isinstance(score, tuple) else score for score in result.score_by_round]


def fit_gaps(paths: Sequence[Sequence[Score]]) -> tuple[float, float] | None:
    """Fit alpha and beta to the gaps of hearings; as ``fit_prior``, from the totals by round."""
    longest = max(map(len, paths), default=0)
    gaps = np.full((len(paths), longest), np.nan)
    for place, path in enumerate(paths):
        for number, pair in enumerate(path):
            assert isinstance(pair, list)
            gaps[place, number] = abs(pair[0] - pair[1]) / (HIGH - LOW)
    return fit_prior(gaps) if longest else None


def fit_changes(paths: Sequence[Sequence[Score]]) -> tuple[float, float] | None:
    """Fit alpha and beta of the chance that a round changes the score, by maximum likelihood.

    A debate with w changes in i rounds has the likelihood B(alpha + w, beta + i - w) / B(alpha,
    beta) (the beta-binomial distribution). If debates do not differ in their chance, both values
    are large, and the chance is the same for all. Return ``None`` with fewer than ten debates with
    a round, and if all rounds or no round changed the score.

    Args:
        paths: the score of each debate before the first round and after each round.

    >>> drawn = np.random.default_rng(1)
    >>> chances = drawn.beta(2, 5, 20_000)
    >>> paths = [[0.0, *np.cumsum(drawn.random(4) < chance).tolist()] for chance in chances]
    >>> alpha, beta = fit_changes(paths)
    >>> round(alpha), round(beta)
    (2, 5)
    """
    from scipy.optimize import minimize
    from scipy.special import betaln

    debates = [path for path in paths if len(path) > 1]
    if len(debates) < FEWEST_DEBATES:
        return None
    changes = np.array([sum(a != b for a, b in pairwise(path)) for path in debates])
    rounds = np.array([len(path) - 1 for path in debates])

    if changes.sum() in (0, rounds.sum()):
        return None

    def surprise(logs: Any) -> float:
        alpha, beta = np.exp(logs)
        likelihood = betaln(alpha + changes, beta + rounds - changes) - betaln(alpha, beta)
        return -float(likelihood.sum())

    best = minimize(surprise, np.zeros(2), method="L-BFGS-B", bounds=[(-7, 7)] * 2)
    alpha, beta = np.exp(best.x).tolist()
    return alpha, beta
