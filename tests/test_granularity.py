"""Test that a debate without effect does not pay through more or fewer ties."""

from dataclasses import replace

import numpy as np
import pytest
from jurygraph.eval.analysis.granularity import hinges_on_ties, on_steps, with_ties
from jurygraph.eval.experiments.equal_spending import Terms
from jurygraph.eval.experiments.finding import Contest, find
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.sample import Sample, paired_difference

from .test_versus import rival

QUICK = Resampling(resamples=40)
RUNS = 200
ITEMS = 240


def pays(
    pair: tuple[Sample, Sample], metric: str, own_ties: float = 0.0, ties: float = 0.0
) -> bool:
    """Return whether the first of two is reported to pay against the second."""
    difference = paired_difference([pair], metric)
    found = replace(difference, adjusted=difference.p)
    contest = Contest.of("wit", ("single", 4, "4 samples"), ITEMS, 1.0, found)
    hinges = metric == "accuracy" and hinges_on_ties(pair)
    contest = replace(contest, ties=own_ties, other_ties=ties, hinges_on_ties=hinges)
    return find("debate", [contest], metric, Terms(resampling=QUICK)).answer == "pays"


@pytest.mark.parametrize("tied", [0.26, 0.38, 0.59])
def test_a_debate_of_pairs_without_effect_does_not_pay(tied: float) -> None:
    """Scores are whole numbers; the debate ends with one of them, the opponent averages four."""
    random = np.random.default_rng(1)
    said = 0
    unmatched = 0
    for _ in range(RUNS):
        gap = random.normal(0, 1.5, ITEMS)
        least = np.quantile(np.abs(gap), tied)
        human = np.where(np.abs(gap) <= least, 2, np.where(gap > 0, 0, 1))
        level = random.normal(6, 1, ITEMS)
        seen = np.stack([level + gap / 2, level - gap / 2])
        scores = np.round(seen + random.normal(0, 1, (5, 2, ITEMS)))
        apart = scores[:, 0] - scores[:, 1]
        debate = np.where(apart[0] > 0, 0.0, np.where(apart[0] < 0, 1.0, 2.0))
        mean = apart[1:].mean(axis=0)
        folds = np.arange(ITEMS) % 2
        matched = with_ties(mean, folds, debate == 2, folds)
        plain = np.where(mean > 0, 0.0, np.where(mean < 0, 1.0, 2.0))
        votes = np.eye(3)[human]
        codes = np.arange(ITEMS)
        own, other, before = (
            Sample("compare", judged, votes, codes, False, QUICK)
            for judged in (debate, matched, plain)
        )
        shares = [float((judged == 2).mean()) for judged in (debate, matched)]
        said += pays((own, other), "accuracy", *shares)
        difference = paired_difference([(own, before)], "accuracy")
        unmatched += (
            difference.p is not None
            and difference.p < 0.05
            and (difference.difference.value or 0) > 0
        )
    assert said <= 0.03 * RUNS
    # Without equal granularity, the same data show that it pays.
    if tied == 0.59:
        assert unmatched > 0.1 * RUNS


def test_scores_are_compared_on_the_same_steps() -> None:
    """The protocol is the rounded mean of four samples, the opponent the mean of four others."""
    random = np.random.default_rng(2)
    said = 0
    matched = list[float]()
    unmatched = list[float]()
    for _ in range(60):
        quality = random.normal(3, 0.9, ITEMS)
        human = np.clip(np.round(quality), 1, 5)
        samples = np.clip(np.round(quality + random.normal(0, 1.0, (8, ITEMS))), 1, 5)
        own = np.floor(samples[:4].mean(axis=0) + 0.5)
        other = samples[4:].mean(axis=0)
        groups = np.arange(ITEMS) // 6
        pairs = [
            (
                Sample("score", own, human, groups, True, QUICK),
                Sample("score", judged, human, groups, True, QUICK),
            )
            for judged in (on_steps(other, own), other)
        ]
        said += pays(pairs[0], "group_kendall") or pays(pairs[0], "group_spearman")
        for found, pair in zip((matched, unmatched), pairs, strict=True):
            found.append(paired_difference([pair], "group_spearman").difference.value or 0.0)
    assert said <= 2
    assert abs(np.mean(matched)) < 0.01
    assert np.mean(unmatched) < np.mean(matched) - 0.01


def test_nothing_is_claimed_where_ties_make_the_difference() -> None:
    better = rival(0.1, 0.05, 0.15, 0.001)
    uneven = replace(better, ties=0.1, other_ties=0.3, hinges_on_ties=True)
    found = find("debate", [uneven], "accuracy", Terms())
    assert found.answer == "undecided"
    assert "10% of its verdicts are ties, and 30% of those of 4 samples of single" in found.sentence
    for fair in (replace(uneven, other_ties=0.14), replace(uneven, hinges_on_ties=False)):
        assert find("debate", [fair], "accuracy", Terms()).answer == "pays"


def test_a_threshold_gives_as_many_ties_and_sees_no_label() -> None:
    apart = np.random.default_rng(0).normal(size=1000)
    ties = (np.arange(1000) % 10 < 3).astype(float)
    folds = np.arange(1000) // 500
    judged = with_ties(apart, folds, ties, folds)
    assert (judged == 2).mean() == pytest.approx(0.3, abs=0.05)
    assert (judged[judged != 2] == (apart < 0)[judged != 2]).all()
