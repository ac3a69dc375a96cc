"""Simulate how often intervals cover the true value, and how often tests find a false difference.

    python -m benchmarks.coverage [--runs 1000] [--only systems] [--write]

The true value is known because humans and judges are drawn from a model. Clusters are groups of
candidates of one source, or single items. A table row is a metric with its rows per cluster. For
each number of clusters it lists the share of 95 % intervals that cover the true value, and the
share of comparisons of two equally good judges with p < .05. ``--write`` puts the table into
docs/agreement.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jurygraph.eval.statistics.chance_corrected import krippendorff_alpha
from jurygraph.eval.statistics.error_correlation import effective_votes, error_correlation
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import Sample, average, paired_difference
from jurygraph.eval.statistics.system_ranking import rank_by_scores

CLUSTERS = (10, 20, 30, 45, 100)
DOCS = Path(__file__).parents[1] / "docs" / "agreement.md"
BEGIN = "<!-- made by python -m benchmarks.coverage --write -->\n"
END = "<!-- end of the table -->\n"
QUICK = Resampling(resamples=400)
Figures = Mapping[str, tuple[Statistic, float | None]]
"""Metrics by name, each with its interval and, if it has one, the p-value of two equally good
judges being equal."""
Random = np.random.Generator


class Model(NamedTuple):
    """Draws and measures a number of clusters; ``rows``: rows per cluster, 0 if they vary."""

    rows: int
    figures: Callable[[Random, int, Resampling], Figures]
    plenty: int = 20_000
    """The number of clusters that determines the true value."""


def _five_points(values: np.ndarray) -> np.ndarray:
    return np.clip(np.round(values * 1.2 + 3), 1, 5).ravel()


def rated_pair(random: Random, clusters: int, size: int, how: Resampling) -> tuple[Sample, Sample]:
    """Draw two judges with equally large errors, on five-point scores with ties."""
    spread = 0.6 if size > 1 else 0.0
    human = random.normal(0, 1, (clusters, 1)) * spread + random.normal(0, 0.8, (clusters, size))
    codes = np.repeat(np.arange(clusters), size)

    def judge() -> Sample:
        errors = random.normal(0, 0.5, (clusters, 1)) * (size > 1) + random.normal(
            0, 0.7, human.shape
        )
        return Sample(
            "score", _five_points(human + errors), _five_points(human), codes, size > 1, how
        )

    return judge(), judge()


def rated(size: int) -> Model:
    """Correlations over rows, within groups, and averaged over three aspects."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        pairs = [rated_pair(random, clusters, size, how) for _ in range(3)]
        first, second = pairs[0]
        names = ["spearman", "pearson", "kendall"]
        names += ["group_spearman", "group_pearson", "group_kendall"] if size > 1 else []
        found = {
            name: (first.statistic(name), paired_difference([(first, second)], name).p)
            for name in names
        }
        for name in ("group_spearman",) if size > 1 else ("spearman",):
            mean = average([one for one, _ in pairs], name)
            found[f"mean of {name} over 3 aspects"] = mean, paired_difference(pairs, name).p
        return found

    return Model(size, figures)


def ordered(size: int) -> Model:
    """Pairwise accuracy within groups, with thresholds fitted on other groups."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        first, second = rated_pair(random, clusters, size, how)
        p = paired_difference([(first, second)], "pairwise").p
        return {"pairwise": (first.statistic("pairwise"), p)}

    return Model(size, figures)


def voted(size: int) -> Model:
    """Draw two judges that are right equally often; within a group their errors are correlated."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        human = random.integers(0, 2, clusters * size)
        codes = np.repeat(np.arange(clusters), size)

        def judge() -> Sample:
            skill = np.clip(random.normal(0.8, 0.15 if size > 1 else 0, clusters), 0, 1)
            right = random.random(clusters * size) < skill[codes]
            judged = np.where(right, human, 1 - human).astype(float)
            return Sample("compare", judged, np.eye(3)[human], codes, False, how)

        first = judge()
        second = judge()
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
            "alpha, nominal": (
                krippendorff_alpha((seen > 0.3).tolist(), "nominal", groups, how).alpha,
                None,
            ),
        }

    return Model(size, figures, plenty=5_000)


def systems(count: int = 12) -> Model:
    """Draw a judge's mean scores of systems and the humans'.

    With ``plenty`` groups the means have no error left.
    """

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        ability = np.random.default_rng(5).normal(0, 0.5, (2, count))
        human = (
            ability[0]
            + random.normal(0, 0.8, (clusters, count))
            + random.normal(0, 0.5, (clusters, 1))
        )
        judged = human + 0.5 * ability[1] + random.normal(0, 0.7, human.shape)
        names = [f"s{system:02}" for system in range(count)]
        codes = np.tile(np.arange(count), clusters)
        groups = np.repeat(np.arange(clusters), count)
        ranking = rank_by_scores(names, codes, judged.ravel(), human.ravel(), groups, how)
        return {"mean of a system": (ranking.judge["s00"], None)}

    return Model(count, figures, plenty=3_000)


def leanings(size: int) -> Model:
    """Measure leanings to level, length and place for a judge that leans like the humans."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        judge, human = rated_pair(random, clusters, size, how)
        codes = judge.clusters
        level, p_level = how.mean_interval(judge.judged - judge.human, codes)
        length = judge.human + random.normal(0, 2, len(codes))
        # Its errors and the humans' have the same distribution, so both depend on length equally.
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


def rare_labels(skill: float | None, share: float = 0.05) -> Model:
    """Two judges of comparisons, with few labels of the second class.

    Args:
        skill: how often a judge sees the label; otherwise, or with ``None``, it draws from the
            labels' distribution.
        share: of labels of the second class.
    """

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        human = (random.random(clusters) < share).astype(int)

        def judge() -> Sample:
            guess = (random.random(clusters) < share).astype(int)
            judged = np.where(random.random(clusters) < (skill or 0.0), human, guess).astype(float)
            return Sample("compare", judged, np.eye(3)[human], np.arange(clusters), False, how)

        first = judge()
        second = judge()
        name = (
            "kappa, random judge, 95/5 labels"
            if skill is None
            else "kappa, good judge, 95/5 labels"
        )
        return {name: (first.statistic("kappa"), paired_difference([(first, second)], "kappa").p)}

    return Model(1, figures, plenty=2_000_000)


def unequal_groups() -> Model:
    """Draw two judges of comparisons in groups with power-law sizes."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        sizes = np.minimum(300, np.ceil(3 / random.random(clusters))).astype(int)
        codes = np.repeat(np.arange(clusters), sizes)
        human = random.integers(0, 2, len(codes))

        def judge() -> Sample:
            skill = np.clip(random.normal(0.8, 0.15, clusters), 0, 1)
            right = random.random(len(codes)) < skill[codes]
            judged = np.where(right, human, 1 - human).astype(float)
            return Sample("compare", judged, np.eye(3)[human], codes, False, how)

        first = judge()
        second = judge()
        p = paired_difference([(first, second)], "accuracy").p
        return {"accuracy, sizes by a power law": (first.statistic("accuracy"), p)}

    return Model(0, figures)


def equal_labels(share: float = 0.93) -> Model:
    """Two judges that give random scores, where most labels are the same."""

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        human = np.where(random.random(clusters) < share, 5.0, random.integers(1, 5, clusters))

        def judge() -> Sample:
            scores = random.integers(1, 6, clusters).astype(float)
            return Sample("score", scores, human, np.arange(clusters), False, how)

        first = judge()
        second = judge()
        names = ("pearson", "spearman")
        return {
            f"{name}, 93 % of the labels equal": (
                first.statistic(name),
                paired_difference([(first, second)], name).p,
            )
            for name in names
        }

    return Model(1, figures, plenty=200_000)


def panel(
    rho: float, skill: float | None, members: int = 5, size: int = 1, difficult: bool = False
) -> Model:
    """Draw judges with a planted correlation of their errors, and measure their effective votes.

    Args:
        rho: the correlation of the errors of two judges.
        skill: how often a judge is right; ``None`` for errors of scores.
        members: the number of judges.
        size: the number of rows per cluster.
        difficult: whether the rows of a cluster are equally difficult.
    """
    name = (
        "effective votes of scores" if skill is None else f"effective votes, right in {skill:.0%}"
    )
    name += f", errors correlated at {rho:g}"

    def figures(random: Random, clusters: int, how: Resampling) -> Figures:
        codes = np.repeat(np.arange(clusters), size)
        rows = len(codes)
        shape = (clusters if difficult else rows, 1)
        if skill is None:
            common = random.normal(0, 1, shape)
            common = common[codes] if difficult else common
            own = random.normal(0, 1, (rows, members))
            errors = np.sqrt(rho) * common + np.sqrt(1 - rho) * own
        elif rho == 0:
            errors = (random.random((rows, members)) < skill).astype(float)
        else:
            # Judges with the chance of an item to be right, drawn from a beta distribution, have
            # errors with the correlation 1 / (a + b + 1).
            total = (1 - rho) / rho
            chance = random.beta(skill * total, (1 - skill) * total, shape)
            chance = chance[codes] if difficult else chance
            errors = (random.random((rows, members)) < chance).astype(float)
        found = error_correlation(errors, codes, how)
        planted = effective_votes(members, rho)
        if clusters >= 5_000:
            return {name: (Statistic(planted), None)}
        return {name: (found.effective, None)}

    return Model(size, figures, plenty=5_000)


MODELS: Mapping[str, Model] = {
    "rated": rated(6),
    "rated alone": rated(1),
    "ordered": ordered(6),
    "ordered pairs": ordered(2),
    "voted": voted(4),
    "voted alone": voted(1),
    "raters": raters(4),
    "raters alone": raters(1),
    "systems": systems(),
    "leanings": leanings(6),
    "groups of three": rated(3),
    "random judge, rare labels": rare_labels(None),
    "good judge, rare labels": rare_labels(0.8),
    "unequal groups": unequal_groups(),
    "equal labels": equal_labels(),
    "panel, independent": panel(0.0, 0.7),
    "panel, correlated": panel(0.35, 0.7),
    "panel, correlated, good judges": panel(0.35, 0.85),
    "panel, strongly correlated": panel(0.8, 0.7),
    "panel, correlated in groups": panel(0.35, 0.7, size=4, difficult=True),
    "panel of scores": panel(0.35, None),
    "panel of scores in groups": panel(0.35, None, size=4, difficult=True),
}


def simulate(model: Model, runs: int) -> dict[str, list[str]]:
    """Return shares covered / shares of false differences, by metric and number of clusters."""
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
                # If few groups have a correlation at all, there is no interval.
                if figure.low is not None and figure.high is not None and truth is not None:
                    shown[name] += 1
                    held[name] += figure.low <= truth <= figure.high
                tested[name] += p is not None
                found[name] += p is not None and p < 0.05
        for name, line in cells.items():
            # If data of this size have an interval only sometimes, these are the easiest cases, so
            # the share means nothing.
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
                rows = model.rows or "3 to 300"
                lines.append(f"| {figure} | {rows} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    if given.write:
        before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        table = "".join(f"{line}\n" for line in lines)
        DOCS.write_text(f"{before}{BEGIN}{table}{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
