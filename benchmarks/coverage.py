"""Simulate how often intervals hold the truth, and how often a difference is found where there is none.

    python -m benchmarks.coverage [--runs 1000] [--only systems] [--write]

Truth is known: humans and judges are drawn from a model. Clusters are groups of candidates of one source, or single
items. A line is a figure, with how many rows a cluster has; beside it stand, for each number of clusters, the share of
the 95 % intervals that hold the truth, and the share of the comparisons of two equally good judges with p < .05.
``--write`` puts the table into docs/agreement.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jurygraph.eval.statistics.chance_corrected import krippendorff_alpha
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import Sample, average, paired_difference
from jurygraph.eval.statistics.system_ranking import rank_by_scores

CLUSTERS = (10, 20, 30, 45, 100)
DOCS = Path(__file__).parents[1] / "docs" / "agreement.md"
BEGIN, END = "<!-- made by python -m benchmarks.coverage --write -->\n", "<!-- end of the table -->\n"
QUICK = Resampling(resamples=400)
Figures = Mapping[str, tuple[Statistic, float | None]]
"""By name, a figure with its interval, and the p-value that it is equal in two equally good judges, if it has one."""
Random = np.random.Generator


class Model(NamedTuple):
    """Draws data of so many clusters and measures them; ``rows`` a cluster has."""

    rows: int
    figures: Callable[[Random, int, Resampling], Figures]
    plenty: int = 20_000
    """So many clusters tell the truth."""


def _five_points(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values * 1.2 + 3), 1, 5).ravel()


def _rated(random: Random, clusters: int, size: int, how: Resampling) -> tuple[Sample, Sample]:
    """Two judges whose errors are as large, on scores of five points with ties."""
    spread = 0.6 if size > 1 else 0.0
    human = random.normal(0, 1, (clusters, 1)) * spread + random.normal(0, 0.8, (clusters, size))
    codes = np.repeat(np.arange(clusters), size)

    def judge() -> Sample:
        errors = random.normal(0, 0.5, (clusters, 1)) * (size > 1) + random.normal(0, 0.7, human.shape)
        return Sample("score", _five_points(human + errors), _five_points(human), codes, size > 1, how)

    return judge(), judge()


def rated(size: int) -> Model:
    """Correlations over rows, within groups, and averaged over three aspects."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        pairs = [_rated(random, clusters, size, how) for _ in range(3)]
        first, second = pairs[0]
        names = ["spearman", "pearson", "kendall"]
        names += ["group_spearman", "group_pearson", "group_kendall"] if size > 1 else []
        found = {
            name: (first.statistic(name), paired_difference([(first, second)], name).p) for name in names
        }
        for name in ("group_spearman",) if size > 1 else ("spearman",):
            mean = average([one for one, _ in pairs], name)
            found[f"mean of {name} over 3 aspects"] = mean, paired_difference(pairs, name).p
        return found

    return Model(size, figures)


def voted(size: int) -> Model:
    """Two judges that are right on the same share of comparisons; in a group they err together now and then."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        human = random.integers(0, 2, clusters * size)
        codes = np.repeat(np.arange(clusters), size)

        def judge() -> Sample:
            skill = np.clip(random.normal(0.8, 0.15 if size > 1 else 0, clusters), 0, 1)
            right = random.random(clusters * size) < skill[codes]
            judged = np.where(right, human, 1 - human).astype(float)
            return Sample("compare", judged, np.eye(3)[human], codes, False, how)

        first, second = judge(), judge()
        return {
            name: (first.statistic(name), paired_difference([(first, second)], name).p)
            for name in ("accuracy", "kappa")
        }

    return Model(size, figures)


def raters(size: int) -> Model:
    """Three raters of one quality, in scores of five points and in two classes."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        quality = random.normal(0, 0.6, (clusters, 1, 1)) * (size > 1) + random.normal(
            0, 0.8, (clusters, size, 1)
        )
        seen = (quality + random.normal(0, 0.6, (clusters, size, 3))).reshape(-1, 3)
        groups = np.repeat(np.arange(clusters), size).tolist()
        scores = _five_points(seen).reshape(-1, 3).tolist()
        return {
            "alpha, interval": (krippendorff_alpha(scores, "interval", groups, how).alpha, None),
            "alpha, nominal": (krippendorff_alpha((seen > 0.3).tolist(), "nominal", groups, how).alpha, None),
        }

    return Model(size, figures, plenty=5_000)


def systems(count: int = 12) -> Model:
    """A judge's mean scores of systems beside humans'; in ``plenty`` groups the means have no error left."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        ability = np.random.default_rng(5).normal(0, 0.5, (2, count))
        human = ability[0] + random.normal(0, 0.8, (clusters, count)) + random.normal(0, 0.5, (clusters, 1))
        judged = human + 0.5 * ability[1] + random.normal(0, 0.7, human.shape)
        names, codes = [f"s{system:02}" for system in range(count)], np.tile(np.arange(count), clusters)
        groups = np.repeat(np.arange(clusters), count)
        ranking = rank_by_scores(names, codes, judged.ravel(), human.ravel(), groups, how)
        return {"mean of a system": (ranking.judge["s00"], None)}

    return Model(count, figures, plenty=3_000)


def leanings(size: int) -> Model:
    """What a sentence says of level, length and place, of a judge that leans no way that humans do not."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        judge, human = _rated(random, clusters, size, how)
        codes = judge.clusters
        level, p_level = how.mean_interval(judge.judged - judge.human, codes)
        length = judge.human + random.normal(0, 2, len(codes))
        # Its errors and humans' are drawn alike, so that either follows length as far as the other does.
        both = human.judged, judge.judged
        mine, theirs = (Sample("score", scores, length, codes, False, how) for scores in both)
        first = np.sign(random.random(len(codes)) - 0.4 + random.normal(0, 0.2, clusters)[codes])
        label = np.sign(random.random(len(codes)) - 0.4 + random.normal(0, 0.2, clusters)[codes])
        place, p_place = how.mean_interval(first - label, codes)
        follows = paired_difference([(mine, theirs)], "spearman")
        return {
            "level above humans'": (level, p_level),
            "length followed above humans'": (follows.difference, follows.p),
            "first place above humans'": (place, p_place),
        }

    return Model(size, figures)


MODELS: Mapping[str, Model] = {
    "rated": rated(6),
    "rated alone": rated(1),
    "voted": voted(4),
    "voted alone": voted(1),
    "raters": raters(4),
    "raters alone": raters(1),
    "systems": systems(),
    "leanings": leanings(6),
}


def simulate(model: Model, runs: int) -> dict[str, list[str]]:
    """Return by figure, for each number of clusters, the share that held / the share that was found."""
    true = {
        name: figure.value
        for name, (figure, _) in model.figures(
            np.random.default_rng(99), model.plenty, Resampling(resamples=0)
        ).items()
    }
    cells: dict[str, list[str]] = {name: [] for name in true}
    for clusters in CLUSTERS:
        random = np.random.default_rng(clusters)
        shown, held, tested, found = (dict.fromkeys(true, 0) for _ in range(4))
        for _ in range(runs):
            for name, (figure, p) in model.figures(random, clusters, QUICK).items():
                truth = true[name]
                # Of few groups that have a correlation at all there is no interval.
                if figure.low is not None and figure.high is not None and truth is not None:
                    shown[name] += 1
                    held[name] += figure.low <= truth <= figure.high
                tested[name] += p is not None
                found[name] += p is not None and p < 0.05
        for name, line in cells.items():
            # Where data of this size now and then have an interval, it is of the easiest of them: no share to speak of.
            share = f"{held[name] / shown[name]:.1%}" if 2 * shown[name] > runs else "withheld"
            line.append(f"{share} / {found[name] / runs:.1%}" if tested[name] else share)
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", choices=MODELS, help="simulate one model alone")
    parser.add_argument("--write", action="store_true", help="put the table into docs/agreement.md")
    given = parser.parse_args()
    lines = [
        f"| figure | rows each | {' | '.join(f'{clusters} groups' for clusters in CLUSTERS)} |",
        "|---" * (2 + len(CLUSTERS)) + "|",
    ]
    for name, model in MODELS.items():
        if given.only in (None, name):
            for figure, cells in simulate(model, given.runs).items():
                lines.append(f"| {figure} | {model.rows} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    if given.write:
        before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        table = "".join(f"{line}\n" for line in lines)
        DOCS.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
