"""What the debate itself did: to the scores, by whose word, round after round, and what can bend a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..statistics.statistic import Statistic


@dataclass(frozen=True)
class Changes:
    """From the first verdict to the last: how often talking changed it, and whether for the better.

    Of scores, a change is helpful that ends nearer to people, harmful that ends farther from them, and neither at equal
    distance. Of two answers the winner counts: helpful is from wrong to right, harmful from right to wrong, neither
    from wrong to wrong otherwise.

    Attributes:
        n: verdicts with a first one to compare with.
        changed: how many ended elsewhere than they began; ``moved`` the share of them with its interval.
        moved: ``changed / n``.
        back: how many moved on the way and came back to where they began.
        labelled: changed verdicts that have a label; the next three add up to it.
        helpful, harmful, neither: how many.
        p: two-sided sign test of helpful against harmful; ``None`` without either.
        error: mean change of the distance to people over all labelled verdicts (below zero: nearer); ``None`` for two
            answers, whose distance is right or wrong.
        up, down: scores that rose and fell; for two answers, winners that went to answer 1 and to answer 2.
    """

    n: int
    changed: int
    moved: Statistic
    back: int
    labelled: int
    helpful: int
    harmful: int
    neither: int
    p: float | None
    error: Statistic | None
    up: int
    down: int


@dataclass(frozen=True)
class Round:
    """Agreement with people had every debate ended after this round; who was done before keeps the last score.

    Attributes:
        round: 0 is the first score, before anybody answered it (for protocols whose first entry comes after a round of
            talk: that round); counted as the entries of ``score_by_round``.
        active: verdicts that were still being debated, so gave a score in this round.
        agreement: with people, of all verdicts as they stood then, in the subject's main measure.
        gain: ``agreement`` less that of the round before, from paired resamples; ``None`` for the first.
        calls: model calls a judgement up to and including this round (from transcripts); ``None`` where they cannot be
            told apart by round.
        gain_per_call: ``gain`` over the calls a judgement that this round took; ``None`` where it took none.
        changed: verdicts that this round changed.
        helpful, harmful: of these, towards people and away from them.
        error: the mean distance to people; for two answers the share of wrong winners; ``None`` where scores and labels
            are not on one scale.
        final: the last entry of all, not a round of talk: what a tie-breaker, a jury, a vote or a mean over rounds made
            of it. It is there only where that differs from the last round anywhere.
    """

    round: int
    active: int
    agreement: Statistic
    gain: Statistic | None
    calls: float | None
    gain_per_call: float | None
    changed: int
    helpful: int
    harmful: int
    error: float | None
    final: bool = False


@dataclass(frozen=True)
class Mover:
    """After whose word the verdict changed.

    Attributes:
        agent: whose turn it was: of a debate the Critic (the Scorer revised after its objection) or the tie-breaker; of
            ChatEval the referee whose own scores moved; of SAMRE and MORE the judge after its hearing, and the jury
            where it overruled the scores.
        turns: how many turns it had that could have moved something.
        moves: after how many of them something moved.
        mean_move: the mean size of these moves, on the subject's scale (of two answers: of their scores' gap).
        helpful, harmful: moves towards people and away from them, as in ``Changes``.
    """

    agent: str
    turns: int
    moves: int
    mean_move: float | None
    helpful: int
    harmful: int


@dataclass(frozen=True)
class Conformity:
    """Whether referees give in to each other; of protocols where several give values in several turns.

    Values are scores, of two answers the gap between their scores.

    Attributes:
        n: discussions that could be looked at; a comparison held in both orders is two of them.
        changes: values that differ from the same referee's value before.
        towards: how many of these ended nearer to the mean of what the others had last said.
        away: farther from it.
        p: two-sided sign test of the two.
        towards_previous: nearer to the last value that somebody else gave before it; ``None`` where all speak at the
            same time.
        start_equal, end_equal: share of verdicts in whose first and last turn all referees give one value.
        spread_by_turn: mean over verdicts of the standard deviation between referees (n), turn by turn.
    """

    n: int
    changes: int
    towards: int
    away: int
    p: float | None
    towards_previous: int | None
    start_equal: float | None
    end_equal: float | None
    spread_by_turn: tuple[float, ...]


@dataclass(frozen=True)
class Spending:
    """How long debates were.

    Attributes:
        rounds, calls: how many judgements took how many of them, in rising order.
        stop_reasons: why how many ended, the most frequent first.
        mean_rounds, mean_calls: a judgement; of rounds, a verdict.
        unresolved: share of verdicts that ended for no better reason than that the rounds were used up.
    """

    rounds: Mapping[int, int]
    calls: Mapping[int, int]
    stop_reasons: Mapping[str, int]
    mean_rounds: float | None
    mean_calls: float | None
    unresolved: float | None


@dataclass(frozen=True)
class Positions:
    """Whether the order of two answers decides.

    Attributes:
        n: verdicts held in both orders; ``consistent`` the share where both gave one winner, with its interval.
        consistent: see above; ``None`` where every verdict was held in one order.
        shown_first, shown_second, ties: winners by the place in which the answer was shown, over all orders held.
        p: two-sided sign test of the first place against the second.
    """

    n: int
    consistent: Statistic | None
    shown_first: int
    shown_second: int
    ties: int
    p: float | None


@dataclass(frozen=True)
class LengthBias:
    """Whether length decides. Lengths are in characters.

    Attributes:
        n: verdicts whose texts' lengths are known.
        labelled: those of them that have a label: over these are ``partial``, ``human`` and ``human_longer``.
        correlation: of scores: Spearman's with the candidate's length.
        partial: of scores: the same with people's score held constant; above zero: longer is better than people say.
        human: of scores: Spearman's of people's score with length.
        longer: of two answers: share of verdicts for the longer one, ties and equal lengths left out.
        human_longer: of two answers: the same of people.
    """

    n: int
    labelled: int
    correlation: Statistic | None = None
    partial: Statistic | None = None
    human: Statistic | None = None
    longer: Statistic | None = None
    human_longer: Statistic | None = None


@dataclass(frozen=True)
class Replies:
    """How well the models kept to their forms.

    Attributes:
        repaired: judgements with a reply that had to be asked for again.
        unread: judgements in which samples or votes stayed unread and were left out.
        failed: judgements without a verdict; ``reasons`` the first words of why, how many each.
        warnings: every warning's kind and the judgements that carry it, the offline judge's disclosure left out.
    """

    repaired: int
    unread: int
    failed: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """What one contender's debates did on one subject. ``None`` and empty stand for what it has not.

    Attributes:
        contender, subject: their labels.
        measure: in which ``rounds`` are given: ``spearman`` or ``accuracy``.
        changes: ``None`` where every verdict has one score only.
        rounds: empty likewise.
        movers: by agent, who moved most first.
        conformity: of referees who speak several times with values.
        spending: rounds and calls.
        positions: of comparisons.
        length: ``None`` where lengths were not kept, as in runs of old.
        replies: how well models kept to their forms.
        notes: what a reader should know.
    """

    contender: str
    subject: str
    measure: str
    changes: Changes | None
    rounds: tuple[Round, ...]
    movers: tuple[Mover, ...]
    conformity: Conformity | None
    spending: Spending
    positions: Positions | None
    length: LengthBias | None
    replies: Replies
    notes: tuple[str, ...] = ()
