"""A judge as a metric of deepeval."""

from __future__ import annotations

import math
from typing import Any

from ..state.errors import UsageError
from .host_judge import AnyJudge, HostJudge, Judgement

try:
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase
except ImportError as error:
    raise ImportError(
        'jurygraph.adapters.deepeval needs deepeval: pip install "jurygraph[deepeval]"'
    ) from error

_EVIDENCE = ("context", "retrieval_context", "tools_called", "expected_tools")
"""The fields of a test case that a judge is shown as its context."""


class JudgeMetric(BaseMetric):
    """A metric of deepeval whose score is a judge's, from 0 to 1; see ``metric``."""

    score: float | None
    score_breakdown: dict[str, float]
    reason: str | None
    error: str | None
    success: bool | None

    # deepeval copies a metric for each test case, by the arguments that are also attributes.
    def __init__(self, judge: AnyJudge, threshold: float) -> None:
        self.host = HostJudge.of(judge, "deepeval.metric")
        if isinstance(threshold, bool) or not math.isfinite(threshold) or not 0 < threshold <= 1:
            raise UsageError(
                f"threshold must be above 0 and at most 1, got {threshold}: a score of "
                f"{self.host.scale} is handed over from 0 to 1"
            )
        self.judge = judge
        self.threshold = threshold
        self.evaluation_model = f"jurygraph/{self.host.judge.name}"
        self._begin()
        self.async_mode = True
        self.include_reason = True

    @property
    def __name__(self) -> str:
        return self.host.judge.key

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Judge a test case; a judgement that fails raises its error."""
        self._begin()
        try:
            return self._note(self.host.judged(**_shown(test_case)))
        except Exception as error:
            self.error = str(error)
            raise

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Judge a test case as ``measure`` does."""
        self._begin()
        try:
            return self._note(await self.host.ajudged(**_shown(test_case)))
        except Exception as error:
            self.error = str(error)
            raise

    def is_successful(self) -> bool:
        """Return whether the score reaches the threshold; an error never does."""
        reached = self.score is not None and self.score >= self.threshold
        self.success = reached and self.error is None
        return self.success

    def _begin(self) -> None:
        # A metric may be used again, and its last score is not this one's.
        self.score = None
        self.score_breakdown = {}
        self.reason = None
        self.error = None
        self.success = None

    def _note(self, found: Judgement) -> float:
        self.score = found.scaled
        self.score_breakdown = {f"{self.__name__} ({self.host.scale})": found.score}
        self.reason = found.explanation
        self.evaluation_cost = found.verdict.get("cost_usd")
        self.input_tokens = found.verdict.get("input_tokens")
        self.output_tokens = found.verdict.get("output_tokens")
        self.is_successful()
        return found.scaled


def metric(judge: AnyJudge, *, threshold: float) -> JudgeMetric:
    """Return a metric for deepeval's ``assert_test`` and ``evaluate``.

    The judge is shown ``input``, ``actual_output``, ``expected_output`` as the reference, and as
    the context ``context``, ``retrieval_context``, ``tools_called`` and ``expected_tools``.
    ``score`` is from 0 to 1, as deepeval expects, and ``score_breakdown`` has the score on the
    aspect's scale. A judgement that fails raises its error, and deepeval's ``ErrorConfig`` decides.

    Args:
        judge: a judge from ``create_judge`` with an aspect.
        threshold: the lowest score that passes, from 0 to 1. On a scale from 1 to 5, a score of 4
            is 0.75.

    Raises:
        UsageError: it is not such a judge, or the threshold is out of bounds.
    """
    return JudgeMetric(judge, threshold)


def _shown(test_case: LLMTestCase) -> dict[str, Any]:
    """Return the arguments of a judge for a test case."""
    if not isinstance(test_case, LLMTestCase):
        raise UsageError(
            f"the metric rates an LLMTestCase, got {type(test_case).__name__}: for a conversation, "
            "give its last turn as actual_output and the turns before it as input"
        )
    if test_case.multimodal:
        raise UsageError(
            "the test case has images, which this metric cannot show the judge: call the judge "
            "itself with attachments=[...]"
        )
    evidence = {}
    for name in _EVIDENCE:
        if given := getattr(test_case, name):
            evidence[name] = [
                part.model_dump(exclude_none=True) if hasattr(part, "model_dump") else part
                for part in given
            ]
    # A single list needs no heading, as everywhere in a judge's texts.
    context = next(iter(evidence.values())) if len(evidence) == 1 else evidence or None
    return {
        "inputs": test_case.input,
        "outputs": test_case.actual_output,
        "reference_outputs": test_case.expected_output,
        "context": context,
    }
