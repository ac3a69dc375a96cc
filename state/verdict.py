"""The verdict: the outcome of one judgement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .aspects import Aspect
from .checked import for_forms
from .errors import ReplyError, UsageError
from .tasks import TaskKind
from .transcript import Score, Usage

Winner = Literal["1", "2", "tie"]
StopReason = Literal[
    "no_issue",
    "max_rounds",
    "tie_breaker",
    "human",
    "agreement",
    "budget",
    "decided",
    "stable",
    "predicted",
    "abstained",
    "complete",
]
"""Why a protocol ended; ``complete`` if nothing was cut short.

With ``abstained``, the verdict has no score and no winner.
"""


class Verdict(BaseModel, Usage):
    """The outcome of one judgement, without the transcript.

    A score task has ``score``, and a comparison has ``scores`` and ``winner``. A graph returns its
    verdict as plain JSON, for any checkpointer and client. This class reads it:

    >>> verdict = Verdict.model_validate({"protocol": "debate", "kind": "score", "score": 4.0,
    ...     "stop_reason": "no_issue", "rounds": 1, "score_by_round": [4.0]})
    >>> verdict.score
    4.0
    """

    model_config = ConfigDict(frozen=True, json_schema_extra=for_forms)

    protocol: str
    """The protocol that judged."""
    kind: TaskKind
    """`score` or `compare`."""
    score: float | None = None
    """The score, on the aspect's scale."""
    scores: tuple[float, float] | None = None
    """Scores of answer 1 and answer 2."""
    winner: Winner | None = None
    """`1`, `2` or `tie`."""
    stop_reason: StopReason
    """Why the protocol ended."""
    rounds: int
    """Number of rounds."""
    score_by_round: tuple[float | tuple[float, float], ...] = ()
    """The score (or the pair) after each round."""
    position_consistent: bool | None = None
    """Whether both orders of the answers have the same winner; null for a single order."""
    explanation: str = ""
    """The explanation of the verdict, from the agent that decided it."""
    explained_by: str | None = None
    """The id of the turn with the explanation."""
    details: dict[str, Any] = Field(default_factory=dict)
    """The protocol's own details."""
    warnings: tuple[str, ...] = ()
    """Warnings for the reader of the verdict."""

    @property
    def final(self) -> Score:
        """The score, or the pair of scores; 0 if there is none."""
        return list(self.scores) if self.scores else self.score or 0.0

    def check_decided(self) -> None:
        """Check that the judge did not abstain.

        Raises:
            ReplyError: it did; contains its explanation.
        """
        if self.stop_reason == "abstained":
            raise ReplyError(
                f"{self.protocol} abstained: its judge is unsure, so there is no verdict.",
                self.explanation,
            )

    @classmethod
    def of(
        cls, result: Mapping[str, Any], kind: TaskKind | None = None, aspect: Aspect | None = None
    ) -> Verdict:
        """Read the verdict from a graph's output.

        Raises:
            ReplyError: the judge abstained, although the task of this ``kind`` needs a verdict.
            UsageError: the verdict has no score or no winner, although the task of this ``kind``
                needs one; or the score is off the scale of this ``aspect``.
        """
        verdict = cls.model_validate(result["verdict"])
        wanted = {"score": "score", "compare": "winner"}.get(kind or "")
        if wanted:
            verdict.check_decided()
        if wanted and getattr(verdict, wanted) is None:
            raise UsageError(f"{verdict.protocol} returned a verdict without a {wanted}")
        # Means and weighted sums of scores may exceed the scale by a rounding error.
        if aspect and not aspect.low - 1e-9 <= (verdict.score or 0) <= aspect.high + 1e-9:
            raise UsageError(
                f"{verdict.protocol} returned {verdict.score}, off the scale of {aspect.label}"
            )
        return verdict


def outcome_in_words(verdict: Mapping[str, Any], aspect: Aspect | None) -> str:
    """Return a verdict's outcome as a sentence: the score on its scale, or the winner.

    Args:
        verdict: the verdict as plain JSON.
        aspect: the aspect of a score task; None for a comparison.

    >>> outcome_in_words({"winner": "tie", "scores": None}, None)
    'The answers are equally good (scores: ? and ?).'
    """
    if verdict.get("stop_reason") == "abstained":
        return "No verdict: the judge abstained."
    if aspect is not None:
        scale = f"from {aspect.low:g} to {aspect.high:g}"
        return f"{aspect.name}: {verdict['score']:g} on a scale {scale}."
    first, second = verdict["scores"] or ("?", "?")
    winner = verdict["winner"]
    better = "The answers are equally good" if winner == "tie" else f"Answer {winner} is better"
    return f"{better} (scores: {first} and {second})."


def winner_of(scores: Iterable[float]) -> Winner:
    """Return the answer with the higher score; equal scores are a tie.

    >>> winner_of((8, 6.5)), winner_of([7, 7])
    ('1', 'tie')
    """
    first, second = scores
    return "tie" if first == second else "1" if first > second else "2"
