"""The judgement of one text, as all adapters hand it to their programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..eval.judges.judge import AsyncJudge, Feedback, Judge
from ..state.aspects import Aspect
from ..state.checked import shortened
from ..state.errors import UsageError

AnyJudge = Judge | AsyncJudge
ModuleT = TypeVar("ModuleT")


@dataclass(frozen=True)
class Judgement:
    """A score with its reason.

    Attributes:
        score: on the scale of the judge's aspect.
        scaled: from 0 (the scale's lowest score) to 1 (its highest).
        explanation: the words that explain the score.
        verdict: the whole verdict.
    """

    score: float
    scaled: float
    explanation: str
    verdict: Mapping[str, Any]


@dataclass(frozen=True)
class HostJudge:
    """A judge that rates one text for a host program.

    Attributes:
        judge: the judge.
        aspect: the aspect of its scores.
    """

    judge: Judge
    aspect: Aspect

    @classmethod
    def of(cls, judge: AnyJudge, function: str) -> HostJudge:
        """Check a judge.

        Args:
            judge: a judge from ``create_judge`` or ``create_async_judge`` with an aspect.
            function: the name of the adapter, for errors.

        Raises:
            UsageError: it is not such a judge.
        """
        made = plain_judge(judge, function)
        if made.aspect is None:
            raise UsageError(
                f"{function} rates one text, but this judge compares two: create it with an "
                'aspect, such as create_judge("debate", aspect="coherence")'
            )
        return cls(made, made.aspect)

    @property
    def scale(self) -> str:
        """The scale of the scores in words."""
        return f"{self.aspect.low:g} to {self.aspect.high:g}"

    def judged(self, **given: Any) -> Judgement:
        """Judge a text; takes the arguments of the judge and raises its errors."""
        return self._read(self.judge(**given))

    async def ajudged(self, **given: Any) -> Judgement:
        """Judge from async code."""
        return self._read(await self.judge.acall(**given))

    def _read(self, feedback: Feedback) -> Judgement:
        # The score of the feedback may be normalized already; the verdict's never is.
        verdict: Mapping[str, Any] = feedback["metadata"]
        score = float(verdict["score"])
        scaled = (score - self.aspect.low) / (self.aspect.high - self.aspect.low)
        return Judgement(score, scaled, str(feedback["comment"]), verdict)


def plain_judge(judge: AnyJudge, function: str) -> Judge:
    """Return the judge itself.

    Raises:
        UsageError: it is not a judge, or it has an ``output_schema``.
    """
    made = judge.judge if isinstance(judge, AsyncJudge) else judge
    if not isinstance(made, Judge):
        raise UsageError(
            f"{function} takes a judge from create_judge, got {shortened(judge)}: for example "
            'create_judge("debate", aspect="coherence", model="openai:gpt-4o-mini")'
        )
    if made.has_schema:
        raise UsageError(
            f"{function} needs the whole result of the judge: create it without output_schema"
        )
    return made
