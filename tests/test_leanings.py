"""Test that an unbiased judge is not reported as biased, even if it is more precise than labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.analysis.leanings import Leaning, effect_of_length, leanings
from jurygraph.eval.analysis.loading import load_runs
from jurygraph.eval.analysis.study import comparators_of
from jurygraph.eval.statistics.resampling import Resampling, Statistic

from .run_folders import compared, run_folder

OTHER = {"1": "2", "2": "1"}


def pairs_in_both_orders(folder: Path, seed: int, for_first: float, noise: float) -> list[Leaning]:
    """Judge pairs whose first answer is better in 80 %, with a given rate of first picks."""
    random = np.random.default_rng(seed)

    def verdict(best: str) -> str:
        return (
            "1" if random.random() < for_first else best if random.random() < 0.9 else OTHER[best]
        )

    results = []
    for number in range(80):
        best = "1" if random.random() < 0.8 else "2"
        human = OTHER[best] if random.random() < noise else best
        both = [verdict(best), OTHER[verdict(OTHER[best])]]
        same = both[0] == both[1]
        about: dict[str, Any] = {
            "human": human,
            "position_consistent": same,
            "details": {"winner_by_order": both},
        }
        results.append(compared(f"i{number}", winner=both[0] if same else "tie", **about))
    comparators = comparators_of(
        load_runs([run_folder(folder / str(seed), results, kind="compare")]),
        Resampling(resamples=20),
    )
    return [leaning for leaning in leanings(comparators) if leaning.way == "place"]


def convictions(folder: Path, runs: int, for_first: float) -> int:
    found = [pairs_in_both_orders(folder, seed, for_first, noise=0.35) for seed in range(runs)]
    assert all(len(one) == 1 for one in found)
    return sum(leaning.holds for (leaning,) in found)


@pytest.mark.slow
def test_at_most_six_percent_of_judges_without_bias_are_said_to_prefer_a_place(
    tmp_path: Path,
) -> None:
    """The first answer is better in most pairs, and the labels are much noisier than the judge."""
    assert convictions(tmp_path, 200, for_first=0.0) <= 12


def test_a_judge_that_prefers_the_answer_shown_first_is_found(tmp_path: Path) -> None:
    assert convictions(tmp_path, 5, for_first=0.4) == 5


def test_without_both_orders_nothing_is_said_of_a_place(tmp_path: Path) -> None:
    rows = [compared(f"i{n}", winner="1", human="12"[n % 2]) for n in range(40)]
    rows.append(compared("last", winner="2", human="2"))
    loaded = load_runs([run_folder(tmp_path, rows, kind="compare")])
    ways = {leaning.way for leaning in leanings(comparators_of(loaded, Resampling(resamples=20)))}
    assert "place" not in ways


QUICK = Resampling(resamples=200)


def points(value: np.ndarray) -> np.ndarray:
    return np.clip(np.round(3 + value), 1, 5)


def winners(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0.15, 1.0, np.where(value < -0.15, 0.0, 0.5))


def favours_longer(seed: int, noise: float, lean: float, *, compares: bool) -> bool:
    """Draw 300 texts, longer ones of which are better, with three annotators, and test a judge."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=300)
    length = 0.6 * quality + 0.8 * random.normal(size=300)
    verdict = winners if compares else points
    judged = verdict(quality + noise * random.normal(size=300) + lean * length)
    labels = verdict(quality[:, None] + random.normal(size=(300, 3)))
    feature = np.sign(length) if compares else (length - length.mean()) / length.std()
    found = effect_of_length(judged, feature, labels, np.arange(300), QUICK)
    assert found is not None
    leaning = Leaning("judge", "wit", "length", 0.0, 0.0, Statistic(0.0), None)
    judged_longer = leaning._replace(beyond=found.effect, beyond_p=found.p, beyond_adjusted=found.p)
    return judged_longer.favours_longer


@pytest.mark.slow
@pytest.mark.parametrize("compares", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_judges_without_length_bias_are_rarely_convicted(noise: float, compares: bool) -> None:
    """With no noise, the judge is more precise than the labels."""
    fair = sum(favours_longer(seed, noise, 0.0, compares=compares) for seed in range(200))
    assert fair <= 12
    biased = sum(favours_longer(seed, noise, 0.7, compares=compares) for seed in range(200))
    assert biased >= 120


@pytest.mark.parametrize("compares", [False, True])
def test_a_length_bias_is_found_and_a_precise_judge_is_not_convicted(compares: bool) -> None:
    assert sum(favours_longer(seed, 0.3, 0.7, compares=compares) for seed in range(5)) >= 3
    assert not any(favours_longer(seed, 0.0, 0.0, compares=compares) for seed in range(5))
