"""Check the courtroom paper's Theorems 1 and 2 in simulated courts (section 3.3, 3.4, appendix B).

The paper compares one advocate for each answer with teams of k advocates. A judge gives each
argument a score g from 0 to 1, and the best argument of a team represents it (the softmax at
temperature 0). Theorem 1 states that teams widen the gap between the scores of both answers.
Theorem 2 states that teams need fewer rounds until the gap is wide. The functions here compute
which conditions hold in a court and whether the claims follow:

- ``score_differentiation_holds``: Theorem 1, its aggregation property and the assumption that its
  proof adds in appendix B.
- ``rounds_needed_hold``: Theorem 2. Its proof is said to be in appendix B, but it is not there.
- ``simulated``: scores of advocates who argue equally well on average for one answer.

The tests of the premises on the runs of a study are in ``score_gaps``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..statistics.alignment import Floats
from .gap_analysis import rounds_until


class Court(NamedTuple):
    """How well advocates argue: the distributions of their scores for a better and a worse answer.

    Attributes:
        name: a description.
        better, worse: alpha and beta of a Beta distribution of an argument's score.
    """

    name: str
    better: tuple[float, float]
    worse: tuple[float, float]


COURTS = (
    Court("better arguments vary more", (6, 4), (24, 36)),
    Court("both vary equally", (24, 26), (20, 30)),
    Court("better arguments near the top of the scale", (45, 5), (5, 5)),
    Court("both answers equally good", (5, 5), (5, 5)),
)
"""Courts in which the theorems hold and do not hold, for the docs page on the paper."""


def simulated(
    court: Court, advocates: int, rounds: int = 1, debates: int = 10_000, seed: int = 0
) -> Floats:
    """Return the scores of the arguments that represent both answers after each round.

    A round adds an argument of each advocate, and the best argument so far represents an answer.

    Args:
        court: the distributions of scores.
        advocates: the number of advocates for each answer.
        rounds: the number of rounds.
        debates: the number of debates.
        seed: debates with the same seed share the first advocate's arguments.

    Returns:
        Scores of shape (debates, rounds, 2), the better answer first.

    >>> one, three = (simulated(COURTS[0], advocates) for advocates in (1, 3))
    >>> bool((three >= one).all())
    True
    """
    if advocates < 1 or rounds < 1:
        raise ValueError("a court needs at least one advocate and one round")
    best = []
    for side, (alpha, beta) in enumerate((court.better, court.worse)):
        # Each advocate has a generator of its own, so that a team includes the lone advocate.
        drawn = [
            np.random.default_rng((seed, side, number)).beta(alpha, beta, (debates, rounds))
            for number in range(advocates)
        ]
        best.append(np.maximum.accumulate(np.max(drawn, axis=0), axis=1))
    return np.stack(best, axis=2)


class Differentiation(NamedTuple):
    """Theorem 1 in one court: how often its conditions hold, and how often its claim does.

    Attributes:
        aggregation: the share of debates in which no answer's score falls (the aggregation
            property).
        assumption: the share in which the answer ahead gains more (the assumption in the proof).
        claim: the share in which the gap is wider.
        claim_without: the share with a wider gap among the debates without the assumption; NaN if
            there are none.
        mean_change: the mean change of the gap.
    """

    aggregation: float
    assumption: float
    claim: float
    claim_without: float
    mean_change: float


def score_differentiation_holds(lone: Floats, team: Floats) -> Differentiation:
    """Check Theorem 1 on scores of both answers, with one advocate and with a team.

    Args:
        lone: scores from 0 to 1 with one advocate for each answer, of shape (debates, 2).
        team: scores with teams on the same debates.

    Raises:
        ValueError: other shapes, or no debates.

    Source: the courtroom paper, section 3.3 and appendix B. The proof defines the gains of both
    answers, assumes that the answer ahead gains more, and concludes that the gap widens.

    >>> found = score_differentiation_holds(np.array([[0.5, 0.4]]), np.array([[0.6, 0.6]]))
    >>> found.aggregation, found.assumption, found.claim
    (1.0, 0.0, 0.0)
    """
    if lone.shape != team.shape or lone.ndim != 2 or lone.shape[1:] != (2,) or not len(lone):
        raise ValueError("both arguments need the shape (debates, 2), with at least one debate")
    before = lone[:, 0] - lone[:, 1]
    after = team[:, 0] - team[:, 1]
    gains = team - lone
    assumed = (after - before) * np.sign(before) > 0
    wider = np.abs(after) > np.abs(before)
    without = wider[~assumed]
    return Differentiation(
        float((gains >= 0).all(axis=1).mean()),
        float(assumed.mean()),
        float(wider.mean()),
        float(without.mean()) if len(without) else float("nan"),
        float((np.abs(after) - np.abs(before)).mean()),
    )


class Complexity(NamedTuple):
    """Theorem 2 in one court: how teams compare with lone advocates, by rounds until the gap.

    Attributes:
        fewer, equal, more: the shares of debates in which teams need fewer, as many or more rounds.
            A debate that never reaches the gap needs more rounds than one that does.
        never: the shares of debates that never reach it, with one advocate and with a team.
    """

    fewer: float
    equal: float
    more: float
    never: tuple[float, float]


def rounds_needed_hold(lone: Floats, team: Floats, eps: float) -> Complexity:
    """Check Theorem 2: teams need fewer rounds until the gap is at least ``eps``.

    Args:
        lone: scores after each round with one advocate, of shape (debates, rounds, 2).
        team: scores with teams on the same debates.
        eps: the gap, above 0 and at most 1.

    Raises:
        ValueError: other shapes, no debates, or ``eps`` outside its range.

    Source: the courtroom paper, section 3.4 (the proof in appendix B is missing; appendix A.5 calls
    the theorem a conjecture).

    >>> lone = np.array([[[0.5, 0.4], [0.7, 0.4]]])
    >>> rounds_needed_hold(lone, np.array([[[0.7, 0.4], [0.7, 0.4]]]), 0.3).fewer
    1.0
    """
    if lone.shape != team.shape or lone.ndim != 3 or lone.shape[2:] != (2,) or not len(lone):
        raise ValueError("both arguments need the shape (debates, rounds, 2), with a debate")
    if not 0 < eps <= 1:
        raise ValueError(f"eps must be above 0 and at most 1, got {eps}")
    first, second = (
        rounds_until(np.abs(scores[:, :, 0] - scores[:, :, 1]), eps) for scores in (lone, team)
    )
    return Complexity(
        float((second < first).mean()),
        float((second == first).mean()),
        float((second > first).mean()),
        (float(np.isinf(first).mean()), float(np.isinf(second).mean())),
    )
