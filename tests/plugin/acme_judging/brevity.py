"""A metric: the shorter a candidate, the better."""

from collections.abc import Sequence

from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.metrics import Metric


def brevity(words: int = 20) -> Metric:
    """The share of a number of words that a candidate leaves unused; longer ones get 0."""

    def score(item: ScoreItem, _aspects: Sequence[str]) -> float:
        return max(0.0, 1 - len(item.candidate.split()) / words)

    return Metric("brevity", f"brevity|words:{words}", score)
