"""Rules that end a vote or a debate early, because the rest would not change its outcome.

In this order: votes that are decided, rounds without change, a budget of tokens, and the chance
that another round changes the outcome. All are pure functions of scores and turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from ...state.aggregation import Combination, combine_scores, winner_by_mean
from ...state.settings import ChatEvalSettings, DebateSettings, MoreSettings, SamreSettings
from ...state.transcript import Score, Turn, usage_of_turns

EarlyReason = Literal["budget", "stable", "predicted"]


class EarlyStop(NamedTuple):
    """Why a debate ends before its last round.

    Attributes:
        reason: the stop reason of the verdict.
        words: the reason in a sentence, with its numbers.
    """

    reason: EarlyReason
    words: str


def panel_is_decided(
    scores: Mapping[str, Score],
    outstanding: Sequence[str],
    scale: tuple[float, float],
    how: Combination = "mean",
    weights: Mapping[str, float] | None = None,
) -> bool:
    """Return whether no outstanding member can change the winner, whether it votes or fails.

    A rating has no winner. It is decided if more than half of all members gave the same score and
    the rule is ``majority``.

    Args:
        scores: the score or pair of each member that has voted.
        outstanding: the members that have not been asked.
        scale: the lowest and the highest score.
        how, weights: the rule, as for ``combine_scores``; not ``geometric_median``.

    >>> votes = {"a": [9, 1], "b": [8, 2]}
    >>> panel_is_decided(votes, ["c"], (1, 10)), panel_is_decided(votes, ["c", "d"], (1, 10))
    (True, False)
    >>> panel_is_decided(votes, ["c"], (1, 10), "majority"), panel_is_decided({"a": 4, "b": 4}, ["c"], (1, 5))
    (True, False)
    """
    if not scores:
        return False
    pairs = {member: pair for member, pair in scores.items() if isinstance(pair, list)}
    if how == "majority":
        votes: list[Any] = [*map(winner_by_mean, pairs.values())] if pairs else [*scores.values()]
        [(_, most)] = Counter(votes).most_common(1)
        return 2 * most > len(scores) + len(outstanding)
    if not pairs:
        return False
    final = combine_scores(pairs, how, weights)
    assert isinstance(final, list)
    winner = winner_by_mean(final)
    if winner == "tie":
        return False
    low, high = scale
    # These rules grow with each score, so no vote is worse for the leader than this one.
    worst = [low, high] if winner == "1" else [high, low]
    for size in range(1, len(outstanding) + 1):
        after = combine_scores({**pairs, **dict.fromkeys(outstanding[:size], worst)}, how, weights)
        assert isinstance(after, list)
        if winner_by_mean(after) != winner:
            return False
    return True


def jury_is_decided(
    votes: Sequence[float], outstanding: int, widest: float, without_majority: str
) -> bool:
    """Return whether no outstanding juror can change the winner, whether it votes or its vote is void.

    Args:
        votes: the sums of the votes, or of the scores, for answer 1 and answer 2.
        outstanding: the number of jurors that have not been asked.
        widest: the widest difference that one juror can make.
        without_majority: the winner if both sums are equal.

    >>> [jury_is_decided(votes, 2, 1, "1") for votes in ([3, 0], [2, 0], [0, 2])]
    [True, True, False]
    """
    lead = abs(votes[0] - votes[1])
    reach = outstanding * widest
    leader = "1" if votes[0] > votes[1] else "2"
    # With a lead of exactly this size, the sums can become equal. Then the scores decide.
    return lead > reach or (lead == reach > 0 and leader == without_majority)


def early_stop_of_debate(
    settings: DebateSettings, scores: Sequence[Score], turns: Sequence[Turn]
) -> EarlyStop | None:
    """Return why a debate ends before its next round, or ``None``."""
    if "stable" in settings.stop and (stop := _stable(scores, settings.eps)):
        return stop
    rounds = len(scores) - 1
    # A debate without a round of criticism would be a single scorer.
    if settings.n == "auto" and rounds >= 1:
        chance = chance_of_new_score(scores, settings.prior)
        if chance < settings.risk:
            return _predicted("score", chance, settings.risk)
    # The opening has no Critic, so a first round costs at least twice as much.
    return _over_budget(settings.budget_tokens, turns, times=1 if rounds else 2)


def early_stop_of_hearing(
    settings: SamreSettings, scores: Sequence[Score], turns: Sequence[Turn], span: float
) -> EarlyStop | None:
    """Return why the rounds before a jury end early, or ``None``; ``span`` is the widest gap."""
    if "stable" in settings.stop and (stop := _stable(scores, settings.eps)):
        return stop
    if "predicted" in settings.stop:
        gaps = [(pair[0] - pair[1]) / span for pair in scores if isinstance(pair, list)]
        chance = chance_of_new_winner(gaps, settings.prior)
        if chance < settings.risk:
            return _predicted("winner", chance, settings.risk, "at most ")
    return _over_budget(settings.budget_tokens, turns)


def early_stop_of_discussion(settings: ChatEvalSettings, turns: Sequence[Turn]) -> EarlyStop | None:
    """Return why a discussion has no further turn before its last one, or ``None``.

    The last turn has the votes, so it is always held. If every turn has scores, the discussion can
    end at once.
    """
    if settings.score_each_turn:
        return _over_budget(settings.budget_tokens, turns, what="a turn like the last one")
    what = "another turn before the votes"
    return _over_budget(settings.budget_tokens, turns, times=2, what=what)


def early_stop_of_teams(settings: MoreSettings, turns: Sequence[Turn]) -> EarlyStop | None:
    """Return why the teams argue in no further round, or ``None``."""
    # The judge writes its feedback before each further round, in a call like that of a ruling.
    rulings = [usage_of_turns([turn]).tokens for turn in turns if turn["role"] == "judge"]
    return _over_budget(settings.budget_tokens, turns, further=max(rulings))


def are_stable(scores: Sequence[Score], eps: float) -> bool:
    """Return whether no score changed by more than ``eps`` in the last two rounds.

    >>> are_stable([3, 4, 4, 4], 0), are_stable([4, 4], 0), are_stable([[60, 70], [61, 70], [61, 69]], 1)
    (True, False, True)
    """
    last = [score if isinstance(score, list) else [score] for score in scores[-3:]]
    changes = [
        abs(after - before)
        for earlier, later in pairwise(last)
        for before, after in zip(earlier, later, strict=True)
    ]
    return len(last) == 3 and max(changes) <= eps


def chance_of_new_score(scores: Sequence[Score], prior: tuple[float, float]) -> float:
    """Return the chance that the next round changes the score.

    The courtroom paper's model, with a round that changed the score as a success: after i rounds
    with w changes, the chance is distributed as Beta(alpha + w, beta + i - w). This is its mean.

    >>> chance_of_new_score([3, 4, 4, 4], (1, 1))
    0.4
    """
    alpha, beta = prior
    changes = sum(before != after for before, after in pairwise(scores))
    return (alpha + changes) / (alpha + beta + len(scores) - 1)


def chance_of_new_winner(gaps: Sequence[float], prior: tuple[float, float]) -> float:
    """Return an upper bound of the chance that the next round changes the winner by mean totals.

    In the courtroom paper's model, the next gap is distributed as Beta(alpha + w, beta + i - w) if
    the gap grew in w of i rounds (appendix A.2). The winner changes only if the next gap favours
    the other answer and is at least as wide as the sum of all gaps so far. The paper has no chance
    for the first condition and for a growth, so both count as certain.

    Args:
        gaps: the difference of both totals after each round, as a share of the widest one;
            positive if answer 1 leads.
        prior: alpha and beta.

    >>> round(chance_of_new_winner([0.5], (1, 12)), 4), chance_of_new_winner([0.2, -0.2], (1, 12))
    (0.0065, 1.0)
    """
    # Imported here, because graphs without this rule need no scipy.
    from scipy.special import betaincc

    lead = min(abs(sum(gaps)), 1.0)
    if lead < _EQUAL:
        return 1.0
    sizes = [0.0, *map(abs, gaps)]
    growths = sum(after - before > _EQUAL for before, after in pairwise(sizes))
    alpha, beta = prior
    return float(betaincc(alpha + growths + 1, beta + len(gaps) - growths, lead))


_EQUAL = 1e-12


def tokens_are_unknown(turns: Iterable[Turn]) -> bool:
    """Return whether the provider of some call reported no tokens."""
    return usage_of_turns(turns).uncounted > 0


def _stable(scores: Sequence[Score], eps: float) -> EarlyStop | None:
    words = f"no score changed by more than {eps:g} in two rounds"
    return EarlyStop("stable", words) if are_stable(scores, eps) else None


def _predicted(what: str, chance: float, risk: float, bound: str = "") -> EarlyStop:
    words = (
        f"another round changes the {what} with a chance of {bound}{chance:.2g}, "
        f"which is below risk={risk:g}"
    )
    return EarlyStop("predicted", words)


def _over_budget(
    budget: int | None,
    turns: Sequence[Turn],
    times: int = 1,
    further: int = 0,
    what: str = "a round like the last one",
) -> EarlyStop | None:
    """End the debate if another round like the last one would exceed the budget.

    Args:
        budget: the maximum of tokens.
        turns: the turns so far.
        times: the number of such rounds that the debate would still take.
        further: the tokens of calls that the last round did not have.
        what: the rounds in words.
    """
    if budget is None:
        return None
    spent = usage_of_turns(turns).tokens
    last = max(turn["round"] for turn in turns)
    # Advocates are cross-examined in one round only.
    again = [turn for turn in turns if not turn["agent"].endswith(("_asks", "_answers"))]
    of_round = usage_of_turns(turn for turn in again if turn["round"] == last).tokens
    wanted = times * of_round + further
    if spent + wanted <= budget:
        return None
    words = (
        f"{spent:,} tokens were spent, and {what} ({wanted:,}) would exceed budget_tokens={budget}"
    )
    return EarlyStop("budget", words)
