"""Count rounds, calls, places of winners and faults of replies, one result after another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from ...nodes.models import local_model
from ...nodes.offline import DISCLOSURE
from ...state.verdict_warnings import ASKED_AGAIN, COPIED, HEALTH, UNREAD_SAMPLES, VOID_VOTE, kind_of
from ..results.evaluation import Overview
from ..results.results import Result
from ..tables.grid import Column, counts, share_column, text_column
from .result_rows import Said

# Characters of a reason that are shown.
_REASON = 60


def spending(of: Overview) -> Spending:
    """Return the rounds, calls and ends of all judgements."""
    ends = Counter[str]()
    for reason, verdicts in of.stop_reasons.items():
        ends[reason or "complete"] += verdicts
    return Spending(
        mean_rounds=of.rounds.value,
        mean_calls=of.calls.value,
        # The stop reason of debates that nothing else ended.
        unresolved=ends["max_rounds"] / of.judged if of.judged else None,
        rounds=dict(sorted(of.rounds.items())),
        stop_reasons=dict(ends.most_common()),
        calls=dict(sorted(of.calls.items())),
    )


def places_of_winners(result: Result) -> Iterator[str]:
    """Yield in which place the winner of a comparison was shown, ``first`` or ``second``, or ``tie``, in each order."""
    for order, winner in enumerate(result.details.get("winner_by_order") or [result.winner], start=1):
        if winner is not None:
            # A winner is named by its answer, not its place; in the second order answer 2 was shown first.
            yield "tie" if winner == "tie" else "first" if (winner == "1") == (order == 1) else "second"


@dataclass
class ReplyCounter:
    """Counts faults of replies."""

    _unread: int = 0
    _reasons: Counter[str] = field(default_factory=Counter)
    _warnings: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """Count one judgement's warnings, or why it has no verdict."""
        warnings = (text for text in result.warnings if text not in (DISCLOSURE, local_model.DISCLOSURE))
        kinds = set(map(kind, warnings))
        # Sorted, since a set of texts has another order in each process, and equal counts come in order of occurrence.
        self._warnings.update(sorted(kinds))
        self._unread += bool(kinds & {UNREAD_SAMPLES.label, VOID_VOTE.label})
        if result.status == "failed":
            self._reasons[reason(result.error or "no reason given")] += 1

    def replies(self) -> Replies:
        """Return the faults of all judgements so far."""
        return Replies(
            repaired=self._warnings[ASKED_AGAIN.label],
            unread=self._unread,
            copied=self._warnings[COPIED.label],
            failed=self._reasons.total(),
            reasons=dict(self._reasons.most_common()),
            health={of.label: self._warnings[of.label] for of in HEALTH if self._warnings[of.label]},
            warnings=dict(self._warnings.most_common()),
        )


@dataclass
class CallsByRound:
    """Adds up model calls round by round; those who decide at the very end (tie-breaker, jury) are not of a round."""

    first: int | None = None
    _mixed: bool = False
    _calls: Counter[int] = field(default_factory=Counter)

    def add(self, turns: Iterable[Said]) -> None:
        """Add the turns of one verdict."""
        for turn, kind, value in turns:
            self._mixed = self._mixed or "stage" in turn
            if kind in ("decides", "votes"):
                continue
            self._calls[turn["round"]] += turn["calls"]
            scored = kind in ("scores", "panel") and value is not None
            if scored and (self.first is None or turn["round"] < self.first):
                self.first = turn["round"]

    def up_to(self, entry: int, verdicts: int) -> float | None:
        """Return the calls a verdict up to the round of this entry of ``score_by_round``; ``None`` if unknown.

        It is unknown without transcripts, and in a cascade, whose two protocols count their rounds each by itself.

        Args:
            entry: its place, from 0.
            verdicts: how many there are in all.
        """
        if self.first is None or self._mixed:
            return None
        # The first entry belongs to the first round with a score, which need not be round 1.
        return sum(calls for round, calls in self._calls.items() if round <= self.first + entry) / verdicts


def kind(warning: str) -> str:
    """Return what a warning is about, without agent and round.

    >>> kind("critic, round 2: the reply was asked for again 1 time(s)")
    'reply asked for again'
    >>> kind("judge, round 12: the criteria add up to 80")
    'the criteria add up to #'
    """
    if known := kind_of(warning):
        return known.label
    # Without "critic, round 2: " in front, and with # for each number (80, 3.5), so that like warnings count as one.
    return re.sub(r"\d+(\.\d+)?", "#", re.sub(r"^\w+, round \d+: ", "", warning))


def reason(error: str) -> str:
    """Return the first words of why there is no verdict, without agent and round.

    >>> reason("scorer, round 1: No score in the reply. Raw reply: 'x'")
    'No score in the reply.'
    """
    words = re.sub(r"^\w+, round \d+: ", "", error).partition(" Raw reply:")[0]
    return words if len(words) <= _REASON else f"{words[: _REASON - 3].rstrip()}..."


def _reasons(numbers: Mapping[str, int]) -> str:
    return "; ".join(f"{number}: {reason}" for reason, number in numbers.items())


@dataclass(frozen=True)
class Spending:
    """Says how long debates were. Counts by number rise, those by reason begin with the most frequent."""

    mean_rounds: Annotated[float | None, Column("rounds", digits=2)]
    """per verdict"""
    mean_calls: Annotated[float | None, Column("calls", digits=2)]
    """model calls per judgement"""
    unresolved: Annotated[float | None, share_column("unresolved")]
    """stopped by the round limit"""
    rounds: Annotated[Mapping[int, int], text_column("debates by round count", of=counts)]
    stop_reasons: Annotated[Mapping[str, int], text_column("stop reason", of=counts)]
    calls: Mapping[int, int]


@dataclass(frozen=True)
class Replies:
    """Says how well the models kept to their forms.

    Attributes:
        warnings: every kind of warning with the judgements that carry it, disclosures left out.
    """

    repaired: Annotated[int, Column("repaired")]
    """judgements with a repair request"""
    unread: Annotated[int, Column("unreadable")]
    """judgements without some samples or votes, which could not be read"""
    copied: Annotated[int, Column("copied")]
    """judgements with a reply that copies its prompt or another agent's words"""
    failed: Annotated[int, Column("failed")]
    """judgements without a verdict"""
    reasons: Annotated[Mapping[str, int], text_column("reason", of=_reasons)]
    """first words of each reason, and how often"""
    health: Annotated[Mapping[str, int], text_column("warnings", of=counts)] = field(default_factory=dict)
    """judgements in which agents did not work as intended"""
    warnings: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any reply departed from its form."""
        return bool(self.repaired or self.unread or self.failed or self.copied or self.health)
