"""Contenders held against each other: on the same rows, at the same price, over what they cost."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from jurygraph.eval import evaluate, load_dataset
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.costs import Point, pareto_front
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.significance import holm
from scipy import stats

from .run_folders import RATED, compared, noisy, run_folder, scored, turn

FEW = Resampling(resamples=300, seed=5)


def chooser(protocol: str, skill: float, items: int = 60) -> list[Result]:
    """Verdicts on two answers that are right so often."""
    draw = random.Random(protocol)
    found = []
    for number in range(items):
        human = "12"[number % 2]
        right = draw.random() < skill
        winner = human if right else draw.choice(["1", "2", "tie"])
        found.append(compared(f"p{number:02}", protocol, winner=winner, human=human))
    return found


def study_of(folder: Path, results: list[Result], base: str | None = None, kind: str = "score") -> Study:
    return Study.of(run_folder(folder, results, kind=kind), base=base, resampling=FEW)


# --- pairs ---------------------------------------------------------------------------------------------------------


def test_pairs_of_preferences_against_scipy(tmp_path: Path) -> None:
    one, other = chooser("debate", 0.8), chooser("single", 0.4)
    [pair] = study_of(tmp_path / "r", one + other, kind="compare").comparison.pairwise
    winners = [[str(r.winner) for r in rows] for rows in (one, other)]
    human = [str(r.human) for r in one]
    found = pair.differences["accuracy"]
    counts = pair.tests["mcnemar"].counts
    alone = counts["first"], counts["second"]
    assert pair.tests["mcnemar"].p == pytest.approx(stats.binomtest(alone[0], sum(alone)).pvalue)
    mine, theirs = ([float(w == h) for w, h in zip(own, human, strict=True)] for own in winners)
    assert found.difference.value == pytest.approx((sum(mine) - sum(theirs)) / len(human))
    assert pair.tests["t_right"].p == pytest.approx(stats.ttest_rel(mine, theirs).pvalue)
    assert found.p == pytest.approx(stats.ttest_rel(mine, theirs).pvalue, abs=0.02)


def columns(results: list[Result]) -> tuple[list[float], list[float]]:
    """Scores and labels."""
    return [r.score or 0.0 for r in results], [float(r.human or 0) for r in results]


def test_t_tests_against_scipy(tmp_path: Path) -> None:
    one, other = noisy("debate", 0.8, group=None), noisy("single", 1.6, group=None)
    [pair] = study_of(tmp_path / "r", one + other).comparison.pairwise
    (mine, human), (theirs, _) = columns(one), columns(other)
    expected = stats.ttest_rel(mine, theirs)
    found = pair.tests["t_scores"]
    assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    own, other_s = (np.abs(np.subtract(scores, human)) for scores in (mine, theirs))
    assert pair.tests["t_errors"].statistic == pytest.approx(stats.ttest_rel(own, other_s).statistic)
    assert (pair.tests["t_errors"].statistic or 0) < 0, "debate errs less"


def test_repeats_of_an_item_are_one_item_to_the_t_test(tmp_path: Path) -> None:
    def twice(protocol: str, noise: float) -> list[Result]:
        return [r for n in range(2) for r in noisy(protocol, noise, items=10, repeat=n, group=None)]

    [pair] = study_of(tmp_path / "r", twice("debate", 0.5) + twice("single", 1)).comparison.pairwise
    assert (pair.shared, pair.tests["t_scores"].n) == (20, 10)


def test_only_shared_rows_count_and_the_others_are_counted(tmp_path: Path) -> None:
    one, other = noisy("debate", 1)[:30], noisy("single", 1)[10:]
    other[-1] = other[-1].model_copy(update={"repeat": 1})
    one[29] = one[29].model_copy(update={"human": None})
    [pair] = study_of(tmp_path / "r", one + other).comparison.pairwise
    assert (pair.shared, pair.only_first, pair.only_second) == (19, 10, 10)
    expected = stats.spearmanr(*columns(one[10:29]))[0]
    assert pair.differences["spearman"].first == pytest.approx(expected)


def test_p_values_hold_together_in_both_families(tmp_path: Path) -> None:
    rows = [r for number in range(4) for r in noisy(f"j{number}", 0.5 + number / 2)]
    pairwise = study_of(tmp_path / "r", rows, base="j0").comparison.pairwise
    with_base = [(f"j{number}", "j0", True) for number in (1, 2, 3)]
    assert [(pair.first, pair.second, pair.with_base) for pair in pairwise[:3]] == with_base
    found = [pair.differences["spearman"] for pair in pairwise]
    assert [each.adjusted for each in found] == list(holm([each.p for each in found]))
    assert [each.adjusted_to_base for each in found[:3]] == list(holm([each.p for each in found[:3]]))
    assert {each.adjusted_to_base for each in found[3:]} == {None}


def test_rows_that_only_one_run_groups_have_a_difference_without_an_interval(tmp_path: Path) -> None:
    rows = [*noisy("debate", 1), *noisy("single", 2, group=None)]
    [pair] = study_of(tmp_path / "r", rows).comparison.pairwise
    found = pair.differences["spearman"]
    assert found.difference == Statistic((found.first or 0) - (found.second or 0))
    assert (found.p, pair.differences["group_spearman"].difference) == (None, Statistic(None))


def test_values_subtract_to_the_difference_beside_them(tmp_path: Path) -> None:
    """Within groups, both are of the groups in which both have a correlation, on each aspect and on average."""
    varied, better = noisy("debate", 2, items=60), noisy("single", 0.3, items=60)
    halting = [row.model_copy(update={"score": 3.0}) if row.group == "g0" else row for row in varied]
    both = [row.model_copy(update={"aspect": "other"}) for row in varied + better]
    aspects = [RATED, {**RATED, "name": "other"}]
    study = Study.of(run_folder(tmp_path / "r", halting + better + both, aspects=aspects), resampling=FEW)
    own = study.leaderboard.standing("single", "wit")
    on_wit, on_other = study.comparison.pairwise
    [average] = study.comparison.averages
    assert [pair.differences["group_spearman"].clusters for pair in (on_wit, on_other, average)] == [
        14,
        15,
        14,
    ]
    for pair in (on_wit, on_other, average):
        for of_pair in pair.differences.values():
            assert of_pair.difference.value is not None and of_pair.first and of_pair.second
            assert of_pair.first - of_pair.second == pytest.approx(of_pair.difference.value, abs=1e-12)
    # Its own mean is over all groups, which the leaderboard shows.
    assert own and own.measures["group_spearman"].value != on_wit.differences["group_spearman"].second


# --- ensembles at the same price -----------------------------------------------------------------------------------


def referees(item: str, values: list[float], human: float) -> Result:
    """An ensemble's verdict, each referee having taken one call."""
    turns = tuple(turn(f"referee_{n}", value) for n, value in enumerate(values, start=1))
    score = sum(values) / len(values)
    return scored(item, "ensemble", score=score, human=human, calls=len(values), transcript=turns)


def test_smaller_ensembles_are_the_means_of_the_first_referees(tmp_path: Path) -> None:
    rows = [referees(f"i{n}", [1 + n % 5, 1 + (n * 2) % 5, 1 + (n * 3) % 5], 1 + n % 4) for n in range(12)]
    cheap = noisy("single", 1, items=12)
    debate = [
        r.model_copy(update={"item": f"i{n}", "calls": 2}) for n, r in enumerate(noisy("debate", 1, 12))
    ]
    study = study_of(tmp_path / "r", [*rows, *debate, *cheap])
    ensembles = study.matching.ensembles
    assert [(found.label, found.k, found.usage.calls_each) for found in ensembles] == [
        ("ensemble, 1 of 3", 1, 1.0),
        ("ensemble, 2 of 3", 2, 2.0),
        ("ensemble, 3 of 3", 3, 3.0),
    ]
    expected = [1 + (n % 5 + (n * 2) % 5) / 2 for n in range(12)]
    human = [1 + n % 4 for n in range(12)]
    assert ensembles[1].agreement.value == pytest.approx(stats.spearmanr(expected, human)[0])
    whole = study.leaderboard.standing("ensemble", "wit")
    assert whole is not None
    assert ensembles[2].agreement == whole.measures["spearman"], "all of them are the run itself"
    matched = {match.judge: match.ensemble.k for match in study.matching.matches}
    assert matched == {"debate": 2, "single": 1}


@pytest.mark.parametrize("data", ["demo", "demo-pairs"])
def test_the_greatest_ensemble_is_the_run_itself(tmp_path: Path, data: str) -> None:
    """A real run, with both orders of the answers."""
    evaluate("ensemble", data, settings={"referees": 4, "roles": "same"}, limit=8, out=tmp_path / "run")
    study = Study.of(tmp_path / "run", resampling=Resampling(resamples=20))
    for subject in study.subjects:
        whole = study.leaderboard.standing("ensemble", subject.label)
        [greatest] = [e for e in study.matching.ensembles if (e.subject, e.k) == (subject.label, 4)]
        assert whole is not None
        assert greatest.agreement == whole.measures[greatest.measure]
        used, total = greatest.usage.total, whole.usage.total
        assert (used.calls, used.tokens) == (total.calls, total.tokens)


def test_repeats_of_a_single_judge_are_ensembles_too(tmp_path: Path) -> None:
    rows = [
        compared(f"p{n}", "single", scores=scores, winner="1", human="12"[n % 2], repeat=repeat)
        for n in range(6)
        for repeat, scores in enumerate([(8.0, 7.0), (6.0, 9.0), (9.0, 6.0)])
    ]
    ensembles = study_of(tmp_path / "r", rows, kind="compare").matching.ensembles
    sizes = [(e.k, e.usage.judgements, e.usage.total.calls, e.agreement.value) for e in ensembles]
    assert sizes == [(1, 6, 6, 0.5), (2, 6, 12, 0.5), (3, 6, 18, 0.5)]


def test_money_is_matched_where_prices_are_known(tmp_path: Path) -> None:
    votes = [referees(f"i{n}", [1.0 + n % 5, 2.0, 3.0], 1 + n % 5) for n in range(6)]
    priced = []
    for row in votes:
        turns = tuple({**turn, "cost_usd": 0.1} for turn in row.transcript)
        priced.append(row.model_copy(update={"cost_usd": 0.3, "transcript": turns}))
    debate = [scored(f"i{n}", score=3.0 + n % 2, human=1 + n % 5, calls=9, cost_usd=0.25) for n in range(6)]
    [match] = study_of(tmp_path / "r", [*priced, *debate]).matching.matches
    assert (match.unit, match.ensemble.k) == ("cost", 2)
    assert (match.spent, match.ensemble_spent) == pytest.approx((0.25, 0.2))
    pair = match.pairwise
    assert (pair.first, pair.second, pair.shared) == ("debate", "ensemble, 2 of 3", 6)


def test_where_there_is_no_match_it_is_told_why_and_how_to_make_one(tmp_path: Path) -> None:
    made_by = "--set roles=same --data FILE --model test --aspect FILE --out DIR"
    without = study_of(tmp_path / "without", noisy("debate", 1, calls=4)).matching
    assert (without.ensembles, without.matches) == ((), ())
    assert without.notes == (
        "mine: no equal-cost baseline, because no run has an ensemble of single judges; to make one, with all "
        f"smaller ones: jurygraph run ensemble --set referees=4 {made_by}",
    )
    rows = [referees(f"i{n:02}", [1.0 + n % 5, 2.0, 3.0], 1 + n % 5) for n in range(12)]
    small = study_of(tmp_path / "small", [*rows, *noisy("debate", 1, 12, calls=9)]).matching
    assert [(match.judge, match.ensemble.k) for match in small.matches] == [("debate", 3)]
    assert small.notes == (
        "debate spends up to 3.0 times as much as the largest ensemble here; to make a larger one: jurygraph "
        f"run ensemble --set referees=9 {made_by}",
    )
    both_orders = tuple(turn("referee_1", [8.0, 6.0], order=order) for order in (1, 2))
    about = {"winner": "1", "human": "1"}
    pairs = [compared(f"p{n}", "ensemble", **about, calls=2, transcript=both_orders) for n in range(3)]
    pairs += [compared(f"p{n}", "baseline", **about) for n in range(3)]
    cheap = study_of(tmp_path / "cheap", pairs, kind="compare").matching
    assert [(each.k, each.usage.calls_each) for each in cheap.ensembles] == [(1, 2.0)]
    assert cheap.matches == ()
    assert cheap.notes == ("baseline on preference: spends less than a single judge of any ensemble here",)


def test_the_command_judges_the_same_aspects_of_the_same_columns(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("id,text,candidate,human.fluency\n" + "".join(f"i{n},S,C {n},{n}\n" for n in range(1, 6)))
    data = load_dataset(mine, columns={"source": "text"})
    evaluate("debate", data, aspects=["fluency"], out=tmp_path / "r")
    [note] = Study.of(tmp_path / "r", resampling=FEW).matching.notes
    assert f"--data {mine} --columns source=text --aspect summeval/fluency --out DIR" in note


# --- the frontier --------------------------------------------------------------------------------------------------


def test_nobody_on_the_frontier_is_beaten_and_everybody_off_it_is() -> None:
    draw = random.Random(2)
    points = [
        Point(f"p{n}", draw.randint(1, 8), None, 1.0, Statistic(draw.randint(1, 8) / 8), False)
        for n in range(60)
    ]

    def beaten(point: Point) -> bool:
        return any(
            other.spent <= point.spent
            and (other.agreement.value or 0) >= (point.agreement.value or 0)
            and (other.spent, other.agreement.value) != (point.spent, point.agreement.value)
            for other in points
        )

    found = {point.label for point in pareto_front(points)}
    assert found == {point.label for point in points if not beaten(point)}


def test_the_frontier_of_a_study(tmp_path: Path) -> None:
    rows = [*noisy("cheap", 2, calls=1), *noisy("good", 0.2, calls=4), *noisy("waste", 2.5, calls=9)]
    [frontier] = study_of(tmp_path / "r", rows).frontiers
    points = [(point.label, point.spent, point.on_frontier) for point in frontier.points]
    assert points == [("cheap", 1.0, True), ("good", 4.0, True), ("waste", 9.0, False)]
    assert [point.label for point in frontier.frontier] == ["cheap", "good"]
