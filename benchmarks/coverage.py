"""Simulate how often intervals of agreement hold the truth, and how often equal judges are called different.

    python -m benchmarks.coverage [--runs 1000]

Truth is known: humans and judges are drawn from a model. Clusters are groups of six candidates of one source, or single
items. A line says how many clusters there were, how many of the 95 % intervals held the truth, and how many of the
comparisons of two equally good judges had p < .05. The table of docs/agreement.md is of 300 runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.sample import Sample, difference
from numpy.typing import NDArray

CLUSTERS = (10, 20, 45, 100)
RATED = ("spearman", "group_spearman", "pearson", "kendall")
VOTED = ("accuracy", "kappa")
QUICK = Resampling(resamples=400)
Draw = Callable[[np.random.Generator, int], tuple[Sample, Sample]]


def rated(size: int) -> Draw:
    """Two judges whose errors are as large, on groups of so many candidates; scores of five points, with ties."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[Sample, Sample]:
        of_group = random.normal(0, 0.6, (clusters, 1)) if size > 1 else np.zeros((clusters, 1))
        human = of_group + random.normal(0, 0.8, (clusters, size))
        codes = np.repeat(np.arange(clusters), size)

        def judge() -> Sample:
            errors = random.normal(0, 0.5, (clusters, 1)) * (size > 1) + random.normal(0, 0.7, human.shape)
            columns = (
                np.clip(np.round(column * 1.2 + 3), 1, 5).ravel() for column in (human + errors, human)
            )
            judged, label = columns
            return Sample("score", judged, label, codes, size > 1, QUICK)

        return judge(), judge()

    return draw


def voted(size: int) -> Draw:
    """Two judges that are right on the same share of comparisons; in a group they err together now and then."""

    def draw(random: np.random.Generator, clusters: int) -> tuple[Sample, Sample]:
        human = random.integers(0, 2, clusters * size)
        codes = np.repeat(np.arange(clusters), size)

        def judge() -> Sample:
            skill = np.clip(random.normal(0.8, 0.15 if size > 1 else 0, clusters), 0, 1)
            right = random.random(clusters * size) < skill[codes]
            judged: NDArray[np.float64] = np.where(right, human, 1 - human).astype(float)
            return Sample("compare", judged, np.eye(3)[human], codes, False, QUICK)

        return judge(), judge()

    return draw


def truth(draw: Draw, metric: str) -> float:
    """The metric of very many clusters."""
    value = draw(np.random.default_rng(99), 20_000)[0].value(metric)
    assert value is not None
    return value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    print(f"{'metric':16}{'rows each':>10}{'clusters':>10}{'held':>8}{'p < .05':>9}")
    for metrics, kind, sizes in ((RATED, rated, (6, 1)), (VOTED, voted, (1, 4))):
        for size in sizes:
            draw = kind(size)
            names = [name for name in metrics if size > 1 or not name.startswith("group_")]
            true = {name: truth(draw, name) for name in names}
            for clusters in CLUSTERS:
                random = np.random.default_rng(clusters)
                shown, held, found = (dict.fromkeys(names, 0) for _ in range(3))
                for _ in range(runs):
                    one, other = draw(random, clusters)
                    for name in names:
                        figure, p = one.statistic(name), difference(one, other, name)[1]
                        # Of few groups that have a correlation at all there is no interval.
                        if figure.low is not None and figure.high is not None:
                            shown[name] += 1
                            held[name] += figure.low <= true[name] <= figure.high
                        found[name] += p is not None and p < 0.05
                for name in names:
                    shares = held[name] / max(1, shown[name]), found[name] / runs
                    print(f"{name:16}{size:10}{clusters:10}{shares[0]:8.3f}{shares[1]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
