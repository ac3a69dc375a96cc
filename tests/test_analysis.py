"""Test several runs together: participants, leaderboard, comparisons of judges, costs."""

import math
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import evaluate, load_dataset
from jurygraph.eval.analysis import AnnotatorRates, Study
from jurygraph.eval.analysis.leaderboard import gain
from jurygraph.eval.analysis.loading import load_runs
from jurygraph.eval.analysis.pooled_gains import PooledGains
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.metrics import METRICS
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.significance import holm
from jurygraph.state.errors import DataError, UsageError
from scipy import stats

from .run_folders import RATED, compared, failed, noisy, run_folder, scored, turn

FEW = Resampling(resamples=300, seed=5)


def study_of(folder: Path, results: list[Result], kind: str = "score", **options: Any) -> Study:
    return Study.of(run_folder(folder, results, kind=kind), resampling=FEW, **options)


# Contenders and subjects
def test_two_runs_of_one_judge_are_told_apart_by_their_folders_but_by_no_path(
    tmp_path: Path,
) -> None:
    one = run_folder(tmp_path / "n2", [*noisy("debate", 1), *noisy("single", 1)])
    other = run_folder(tmp_path / "n4", noisy("debate", 0.5))
    same_name = run_folder(tmp_path / "else" / "n4", noisy("debate", 0.4))
    study = Study.of([one, other, same_name, one], resampling=FEW)
    labels = ["debate (n2)", "single", "debate (n4)", "debate (n4) #2"]
    assert ([judge.label for judge in study.judges], study.base) == (labels, "single")


@pytest.mark.parametrize(
    ("signatures", "labels"),
    [
        (
            ["models:*=openai:gpt-4o|n:2", "models:*=openai:gpt-4o-mini|n:2"],
            ["gpt-4o", "gpt-4o-mini"],
        ),
        # The models already distinguish them; the signatures also contain that n differs.
        (["models:*=a|n:2", "models:*=b|n:4"], ["a", "b"]),
        (["models:*=a|n:2|k:1", "models:*=a|n:4|k:1"], ["n=2", "n=4"]),
        (["data:x@1|models:*=a", "data:x@1|models:*=a|version:2"], ["one", "version=2"]),
    ],
    ids=["models", "the model is enough", "a setting", "a part that one has not"],
)
def test_labels_are_as_short_as_tells_apart(
    tmp_path: Path, signatures: list[str], labels: list[str]
) -> None:
    folders = [
        run_folder(
            tmp_path / name,
            noisy("debate", 1),
            signatures={"debate": f"protocol:debate|{signature}"},
        )
        for name, signature in zip(("one", "two"), signatures, strict=True)
    ]
    assert [judge.label for judge in Study.of(folders, resampling=FEW).judges] == [
        "debate" if label == "one" else f"debate ({label})" for label in labels
    ]


def test_an_aspect_of_two_datasets_is_two_subjects_and_nobody_is_compared_across(
    tmp_path: Path,
) -> None:
    runs = [
        run_folder(tmp_path / name, noisy(judge, 1), data={"name": name, "digest": name})
        for name, judge in (("summeval", "debate"), ("topical-chat", "single"))
    ]
    pairs = [compared(f"p{n}", "single", winner="12"[n % 2], human="1") for n in range(6)]
    runs.append(
        run_folder(tmp_path / "b", pairs, kind="compare", data={"name": "pairs", "digest": "bb"})
    )
    study = Study.of(runs, resampling=FEW)
    kinds = {subject.label: subject.kind for subject in study.subjects}
    assert kinds == {
        "summeval: wit": "score",
        "topical-chat: wit": "score",
        "preference": "compare",
    }
    assert (study.comparison.pairwise, study.base, study.courtrooms) == ((), None, ())
    assert study.leaderboard.standings[-1].measures["accuracy"].value == 0.5


def test_what_cannot_be_studied_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a" / "run", [*noisy("debate", 1), *noisy("single", 1)])
    other = run_folder(tmp_path / "b", noisy("single", 1), aspects=[{**RATED, "high": 10}])
    with pytest.raises(UsageError, match="no run given"):
        Study.of([])
    with pytest.raises(UsageError, match="from 1 to 10, but another run does so from 1 to 5"):
        Study.of([folder, other])
    with pytest.raises(UsageError, match="eps must be above 0 and at most 1, got 2"):
        Study.of(folder, eps=2)
    (folder / "results.jsonl").unlink()
    with pytest.raises(DataError, match="nothing was judged"):
        Study.of(folder)


def test_what_failed_and_what_was_never_reached_is_counted(tmp_path: Path) -> None:
    results = [*noisy("debate", 1, items=7), failed("i90", aspect="wit", human=3.0)]
    folder = run_folder(tmp_path / "run", results, data={"items": 10})
    study = Study.of(folder, resampling=FEW)
    [judge] = study.judges
    assert (judge.wanted, judge.judged, judge.failed, judge.missing) == (10, 7, 1, 2)
    assert judge.usage.total.calls == 8
    assert "debate: 2 of 10 judgements are missing, because the run was not finished" in study.notes
    [standing] = study.leaderboard.standings
    assert standing.agreement is not None
    assert (standing.agreement.n, sum(standing.agreement.left_out.values())) == (7, 1)


# Standings
def test_wanted_judgements_are_items_times_repeats_without_those_left_out(tmp_path: Path) -> None:
    results = noisy("debate", 1, items=7)
    left_out = {"debate": {"no references": 1}}
    folder = run_folder(tmp_path / "run", results, data={"items": 10}, repeats=2, left_out=left_out)
    study = Study.of(folder, resampling=FEW)
    assert (study.judges[0].wanted, study.judges[0].missing) == (18, 11)
    assert any("11 of 18 judgements are missing" in note for note in study.notes)


def test_repeats_have_a_mean_and_a_deviation_and_an_alpha(tmp_path: Path) -> None:
    twice = [
        scored(
            f"i{n}", "single", score=1 + (n + repeat * (n == 3)) % 5, human=1 + n % 5, repeat=repeat
        )
        for repeat in range(2)
        for n in range(10)
    ]
    [standing] = study_of(tmp_path, twice).leaderboard.standings
    columns = [
        [[r.score, float(r.human or 0)] for r in twice[start : start + 10]] for start in (0, 10)
    ]
    expected = [float(stats.pearsonr(*zip(*rows, strict=True))[0]) for rows in columns]
    assert standing.repeats["pearson"].values == pytest.approx(expected)
    assert standing.repeats["pearson"].sd == pytest.approx(
        abs(expected[0] - expected[1]) / math.sqrt(2)
    )
    assert standing.alphas is not None and standing.alphas.repeats is not None
    assert standing.alphas.repeats.value == pytest.approx(1 - 1 / 20, abs=0.06)


# Degenerate studies
@pytest.mark.parametrize("results", [
    [scored("a", score=3.0, human=2.0)], [scored(f"i{n}", score=3.0, human=float(1 + n)) for n in range(4)],
    [scored(f"i{n}", score=1.0 + n) for n in range(4)], [failed(f"i{n}", aspect="wit") for n in range(4)],
    [compared("a", winner="1")],
], ids=["one item", "constant scores", "no labels", "all failed", "preferences without labels"])  # fmt: skip
def test_where_nothing_can_be_said_nothing_is(tmp_path: Path, results: list[Result]) -> None:
    beside = [result.model_copy(update={"protocol": "single"}) for result in results]
    kind = "compare" if results[0].winner else "score"
    folder = run_folder(tmp_path / "run", [*results, *beside], kind=kind)
    study = Study.of(folder, people=AnnotatorRates(price_usd=1), resampling=FEW)
    for standing in study.leaderboard.standings:
        assert all(found.value is None for found in standing.measures.values())
    [pair] = study.comparison.pairwise
    assert all(
        found.difference.value is None and found.p is None for found in pair.differences.values()
    )
    [frontier] = study.frontiers
    assert set(frontier.left_out) == {"debate", "single"}


def test_a_metric_has_no_calls_and_no_distances(tmp_path: Path) -> None:
    rouge = [
        result.model_copy(
            update={"score": (result.score or 0) / 5, "calls": 0, "score_by_round": ()}
        )
        for result in noisy("rouge-l", 1)
    ]
    judged = run_folder(tmp_path / "a", [*noisy("debate", 1), *noisy("ensemble", 1)])
    left_out = {"rouge-l": {"no references": 3}}
    metric = run_folder(
        tmp_path / "b", rouge[3:], models={}, metrics={}, data={"items": 40}, left_out=left_out
    )
    study = Study.of([judged, metric], resampling=FEW)
    assert study.notes == ("rouge-l: 3 items left out (no references)",)
    standing = study.leaderboard.standing("rouge-l", "wit")
    assert standing is not None
    assert standing.alphas is not None
    assert (standing.alphas.people, standing.distribution) == (None, None)
    assert [bool(judge.models) for judge in study.judges] == [True, True, False]
    [pair] = [
        pair
        for pair in study.comparison.pairwise
        if {pair.first, pair.second} == {"debate", "rouge-l"}
    ]
    assert "t_errors" not in pair.tests
    [point] = [point for point in study.frontiers[0].points if point.label == "rouge-l"]
    assert (point.spent, point.on_frontier) == (0.0, True)
    [diagnosis] = [found for found in study.diagnoses if found.judge == "rouge-l"]
    assert (diagnosis.changes, diagnosis.rounds, diagnosis.score_changes) == (None, (), ())


# Costs
def test_people_cost_what_they_are_said_to_cost(tmp_path: Path) -> None:
    results = noisy("debate", 1, calls=3, cost_usd=0.25, seconds=2.0)
    people = AnnotatorRates(price_usd=0.5, minutes=2, annotators=3)
    judge, humans = study_of(tmp_path, results, people=people).costs.rows
    assert (judge.cost_usd, judge.cost_each, judge.calls_each, judge.seconds) == (
        10.0,
        0.25,
        3.0,
        80.0,
    )
    assert (humans.judgements, humans.cost_usd, humans.cost_each) == (40, 60.0, 1.5)
    assert (humans.seconds, humans.label) == (40 * 360.0, "humans")


def test_an_unknown_price_is_no_price(tmp_path: Path) -> None:
    results = [*noisy("debate", 1, cost_usd=None), *noisy("single", 1, cost_usd=0.1)]
    study = study_of(tmp_path, results)
    assert study.costs.rows[0].cost_usd is None
    assert study.frontiers[0].currency == "calls"
    assert "the cost is unknown, because the price of a model is: debate" in study.costs.notes


@pytest.mark.parametrize("bad", [{"price_usd": -1}, {"minutes": float("nan")}, {"annotators": 0}])
def test_people_who_cannot_be_so(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"people: {next(iter(bad))} must be"):
        AnnotatorRates(**bad)


def test_the_same_runs_give_the_same_study_whatever_the_order_of_their_lines(
    tmp_path: Path,
) -> None:
    results = [*noisy("debate", 1), *noisy("single", 2)]
    one = run_folder(tmp_path / "a" / "run", results)
    other = run_folder(tmp_path / "b" / "run", [*results[39::-1], *results[:39:-1]])
    first, second = (Study.of(folder, resampling=FEW) for folder in (one, other))
    assert (first.comparison, first.diagnoses) == (second.comparison, second.diagnoses)
    measures = (
        [entry.measures for entry in study.leaderboard.standings] for study in (first, second)
    )
    assert next(measures) == next(measures)
    assert first.resampling.seed == 5


def test_of_each_result_little_stays_in_memory(tmp_path: Path) -> None:
    def held(count: int) -> int:
        usual: Any = {"score": 3.0, "score_by_round": (2.0, 4.0, 3.0), "human": 2.0}
        results = [
            scored(f"item-{number}", group=f"g{number // 8}", **usual) for number in range(count)
        ]
        folder = run_folder(tmp_path / str(count), results)
        del results
        tracemalloc.start()
        try:
            judges = load_runs([folder])
            assert len(judges[0].by_aspect["wit"].rows) == count
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    held(50)  # what is imported and cached once
    # Bytes, with the item's name; a result as an object takes 3,000.
    assert (held(1_500) - held(500)) / 1_000 < 700


# Pairs
def chooser(protocol: str, skill: float, items: int = 60, model: str = "") -> list[Result]:
    """Verdicts on two answers that are right so often."""
    draw = random.Random(f"{model}{protocol}")
    found = []
    for number in range(items):
        human, other = ("1", "2") if number % 2 else ("2", "1")
        winner = human if draw.random() < skill else draw.choice([other, "tie"])
        found.append(compared(f"p{number:02}", protocol, winner=winner, human=human))
    return found


def test_pairs_of_preferences_against_scipy(tmp_path: Path) -> None:
    one = chooser("debate", 0.8)
    other = chooser("single", 0.4)
    [pair] = study_of(tmp_path / "r", one + other, kind="compare").comparison.pairwise
    winners = [[str(r.winner) for r in rows] for rows in (one, other)]
    human = [str(r.human) for r in one]
    found = pair.differences["accuracy"]
    mine, theirs = ([float(w == h) for w, h in zip(own, human, strict=True)] for own in winners)
    alone = [
        sum(a > b for a, b in zip(*both, strict=True)) for both in ((mine, theirs), (theirs, mine))
    ]
    assert pair.tests["mcnemar"].p == pytest.approx(stats.binomtest(alone[0], sum(alone)).pvalue)
    assert found.difference.value == pytest.approx((sum(mine) - sum(theirs)) / len(human))
    assert pair.tests["t_right"].p == pytest.approx(stats.ttest_rel(mine, theirs).pvalue)
    assert found.p == pytest.approx(stats.ttest_rel(mine, theirs).pvalue, abs=0.02)


def columns(results: list[Result]) -> tuple[list[float], list[float]]:
    return [r.score or 0.0 for r in results], [float(r.human or 0) for r in results]


def test_repeats_of_an_item_are_one_item_to_the_t_test(tmp_path: Path) -> None:
    def twice(protocol: str, noise: float) -> list[Result]:
        return [r for n in range(2) for r in noisy(protocol, noise, items=10, repeat=n, group=None)]

    one = twice("debate", 0.5)
    other = twice("single", 1)
    [pair] = study_of(tmp_path / "r", one + other).comparison.pairwise
    errors = [
        np.abs(np.subtract(*columns(rows))).reshape(2, 10).mean(axis=0) for rows in (one, other)
    ]
    assert pair.shared == 20
    assert pair.tests["t_errors"].p == pytest.approx(stats.ttest_rel(errors[0], errors[1]).pvalue)


def test_only_shared_rows_count_and_the_others_are_counted(tmp_path: Path) -> None:
    one = noisy("debate", 1)[:30]
    other = noisy("single", 1)[10:]
    other[-1] = other[-1].model_copy(update={"repeat": 1})
    one[29] = one[29].model_copy(update={"human": None})
    [pair] = study_of(tmp_path / "r", one + other).comparison.pairwise
    assert (pair.shared, pair.only_first, pair.only_second) == (19, 10, 10)
    expected = stats.spearmanr(*columns(one[10:29]))[0]
    assert pair.differences["spearman"].first == pytest.approx(expected)


def test_p_values_hold_together_in_both_families(tmp_path: Path) -> None:
    rows = [r for number in range(4) for r in noisy(f"j{number}", 0.5 + number / 2)]
    comparison = study_of(tmp_path / "r", rows, base="j0").comparison
    pairwise = comparison.pairwise
    assert comparison.with_base() == pairwise[:3]
    with_base = [(f"j{number}", "j0") for number in (1, 2, 3)]
    assert [(pair.first, pair.second) for pair in pairwise[:3]] == with_base
    found = [pair.differences["spearman"] for pair in pairwise]
    assert [each.adjusted for each in found] == list(holm([each.p for each in found]))
    assert [each.adjusted_to_base for each in found[:3]] == list(
        holm([each.p for each in found[:3]])
    )
    assert {each.adjusted_to_base for each in found[3:]} == {None}


def test_rows_that_only_one_run_groups_have_a_difference_without_an_interval(
    tmp_path: Path,
) -> None:
    rows = [*noisy("debate", 1), *noisy("single", 2, group=None)]
    [pair] = study_of(tmp_path / "r", rows).comparison.pairwise
    found = pair.differences["spearman"]
    assert found.difference == Statistic((found.first or 0) - (found.second or 0))
    assert (found.p, pair.differences["group_spearman"].difference) == (None, Statistic(None))


def test_values_subtract_to_the_difference_beside_them(tmp_path: Path) -> None:
    """Within groups, a group with one score counts as 0 for both, on each aspect and on average."""
    varied = noisy("debate", 2, items=60)
    better = noisy("single", 0.3, items=60)
    halting = [
        row.model_copy(update={"score": 3.0}) if row.group == "g0" else row for row in varied
    ]
    both = [row.model_copy(update={"aspect": "other"}) for row in varied + better]
    aspects = [RATED, {**RATED, "name": "other"}]
    study = Study.of(
        run_folder(tmp_path / "r", halting + better + both, aspects=aspects), resampling=FEW
    )
    on_wit, on_other = study.comparison.pairwise
    [average] = study.comparison.averages
    pairs = (on_wit, on_other, average)
    assert [pair.differences["group_spearman"].clusters for pair in pairs] == [15, 15, 15]
    for pair in pairs:
        for name, of_pair in pair.differences.items():
            if METRICS[name].unit == "systems":
                assert of_pair.difference.value is None, "no text names its system"
                continue
            assert of_pair.difference.value is not None and of_pair.first and of_pair.second
            assert of_pair.first - of_pair.second == pytest.approx(
                of_pair.difference.value, abs=1e-12
            )
    debate, on_other_aspect, own, _ = study.leaderboard.standings
    # The leaderboard shows the same values as the comparison.
    assert own.measures["group_spearman"].value == on_wit.differences["group_spearman"].second
    assert debate.measures["group_spearman"].value == on_wit.differences["group_spearman"].first
    first = debate.measures["spearman"].value or 0
    base = own.measures["spearman"].value or 0
    assert gain(first, base) == pytest.approx((first - base, (first - base) / base))
    of_debate, of_single = study.leaderboard.averages
    assert (of_debate.judge, of_debate.subjects) == ("debate", ("wit", "other"))
    assert of_single.measures["spearman"] == own.measures["spearman"], "its aspects are alike"
    second = on_other_aspect.measures["spearman"].value or 0
    assert of_debate.measures["spearman"].value == pytest.approx((first + second) / 2)


# Ensembles at the same price
def referees(item: str, values: list[float], human: float) -> Result:
    """An ensemble's verdict, each referee having taken one call."""
    turns = tuple(turn(f"referee_{n}", value) for n, value in enumerate(values, start=1))
    score = sum(values) / len(values)
    return scored(item, "ensemble", score=score, human=human, calls=len(values), transcript=turns)


def test_smaller_ensembles_are_the_means_of_the_first_referees(tmp_path: Path) -> None:
    rows = [
        referees(f"i{n}", [1 + n % 5, 1 + (n * 2) % 5, 1 + (n * 3) % 5], 1 + n % 4)
        for n in range(12)
    ]
    cheap = noisy("single", 1, items=12)
    debate = [
        r.model_copy(update={"item": f"i{n}", "calls": 2})
        for n, r in enumerate(noisy("debate", 1, 12))
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
    run = evaluate(
        "ensemble", data, settings={"referees": 4, "roles": "same"}, limit=8, out=tmp_path / "run"
    )
    study = Study.of(tmp_path / "run", resampling=Resampling(resamples=20))
    for subject in study.subjects:
        whole = study.leaderboard.standing("ensemble", subject.label)
        [greatest] = [e for e in study.matching.ensembles if (e.subject, e.k) == (subject.label, 4)]
        assert whole is not None
        assert greatest.agreement == whole.measures[subject.metric]
        used = greatest.usage.total
        total = run.figures.overviews["ensemble", subject.aspect].usage
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
    debate = [
        scored(f"i{n}", score=3.0 + n % 2, human=1 + n % 5, calls=9, cost_usd=0.25)
        for n in range(6)
    ]
    [match] = study_of(tmp_path / "r", [*priced, *debate]).matching.matches
    assert (match.currency, match.ensemble.k) == ("cost", 2)
    assert (match.spent, match.ensemble_spent) == pytest.approx((0.25, 0.2))
    pair = match.pairwise
    assert (pair.first, pair.second, pair.shared) == ("debate", "ensemble, 2 of 3", 6)


def test_where_there_is_no_match_it_is_told_why_and_how_to_make_one(tmp_path: Path) -> None:
    made_by = "--set roles=same --data FILE --model test --aspect FILE --out DIR"
    made_by += " (FILE: a YAML file with the aspect wit)"
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
    pairs = [
        compared(f"p{n}", "ensemble", **about, calls=2, transcript=both_orders) for n in range(3)
    ]
    pairs += [compared(f"p{n}", "baseline", **about) for n in range(3)]
    cheap = study_of(tmp_path / "cheap", pairs, kind="compare").matching
    assert [(each.k, each.usage.calls_each) for each in cheap.ensembles] == [(1, 2.0)]
    assert cheap.matches == ()
    assert cheap.notes == (
        "baseline on preference: spends less than a single judge of any ensemble here",
    )


@pytest.mark.parametrize(("model", "shown"), [
    ("offline", ""), ("openai:slow", "--model openai:slow "),
    ("openai:slow?base_url=http://h/v1&seed=1", "--model 'openai:slow?base_url=http://h/v1&seed=1' "),
])  # fmt: skip
def test_the_command_asks_the_same_server_with_its_parameters(
    tmp_path: Path, model: str, shown: str
) -> None:
    """Without the address it would send the texts, and a key, elsewhere."""
    folder = run_folder(
        tmp_path / "r", noisy("debate", 1, calls=4), models={"debate": {"*": model}}
    )
    [note] = Study.of(folder, resampling=FEW).matching.notes
    assert f"--data FILE {shown}--aspect FILE --out DIR" in note


def test_the_command_judges_the_same_aspects_of_the_same_columns(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text(
        "id,text,candidate,human.fluency\n" + "".join(f"i{n},S,C {n},{n}\n" for n in range(1, 6))
    )
    data = load_dataset(mine, columns={"source": "text"})
    evaluate("debate", data, aspects=["fluency"], out=tmp_path / "r")
    [note] = Study.of(tmp_path / "r", resampling=FEW).matching.notes
    assert f"--data {mine} --columns source=text --aspect summeval/fluency --out DIR" in note


# The frontier
def test_the_frontier_of_a_study(tmp_path: Path) -> None:
    """A judge is off the frontier if another is cheaper or better; equal judges stay on it."""
    good = noisy("good", 0.2, calls=4)
    alike, dear = (
        [row.model_copy(update={"protocol": name, "calls": calls}) for row in good]
        for name, calls in (("good too", 4), ("dear", 5))
    )
    rows = [*noisy("cheap", 2, calls=1), *noisy("bad", 1, calls=4), *good, *alike, *dear]
    [frontier] = study_of(tmp_path / "r", [*rows, *noisy("waste", 2.5, calls=9)]).frontiers
    off = [(point.label, point.spent) for point in frontier.points if not point.on_frontier]
    assert off == [("bad", 4.0), ("dear", 5.0), ("waste", 9.0)]
    assert [point.label for point in frontier.frontier] == ["cheap", "good", "good too"]


# Gains over the base of the same model, level by level and pooled
RIGHT = {"weak": {"baseline": 0.5, "more": 0.7}, "strong": {"baseline": 0.8, "more": 0.9}}


def level(
    folder: Path,
    model: str,
    data: str = "mine",
    protocols: tuple[str, ...] = ("baseline", "more"),
    name: str = "",
) -> Path:
    """Make a run of both protocols with a model of a given accuracy; names share the errors."""
    results = [
        row
        for protocol in protocols
        for row in chooser(protocol, RIGHT[model][protocol], items=200, model=model)
    ]
    called = name or model
    signatures = {
        protocol: f"protocol:{protocol}|data:{data}@{data}|models:*={called}"
        for protocol in protocols
    }
    models = {protocol: {"*": called} for protocol in protocols}
    about: Any = {
        "signatures": signatures,
        "models": models,
        "data": {"name": data, "digest": data},
    }
    return run_folder(folder, results, kind="compare", aspects=(), **about)


def pooled(*folders: Path) -> tuple[PooledGains, ...]:
    return Study.of(folders, resampling=Resampling(300)).pooled


def test_each_model_has_its_own_base_and_levels_are_pooled(tmp_path: Path) -> None:
    (gains,) = pooled(level(tmp_path / "w", "weak"), level(tmp_path / "s", "strong"))
    assert (gains.base, gains.metric) == ("baseline", "accuracy")
    by_level = {row.level: row for row in gains.rows}
    assert list(by_level) == ["weak", "strong", "pooled"]
    assert by_level["weak"].base == pytest.approx(0.5, abs=0.08)
    weak, strong, whole = (row.gain for row in gains.rows)
    assert weak.value == pytest.approx(0.2, abs=0.1) and strong.value == pytest.approx(0.1, abs=0.1)
    assert weak.value is not None and strong.value is not None and whole.value is not None
    assert min(weak.value, strong.value) <= whole.value <= max(weak.value, strong.value)
    tau = by_level["pooled"].between
    assert tau is not None and 0 <= tau < 0.2
    # Two levels have one degree of freedom: their mean is known far less well than either of them.
    assert whole.low is not None and whole.high is not None and whole.high - whole.low > 0.5


@pytest.mark.slow
def test_gains_are_never_pooled_over_datasets(tmp_path: Path) -> None:
    folders = [level(tmp_path / name, "weak", data=name) for name in ("a", "b", "c")]
    assert pooled(*folders) == ()
    folders += [level(tmp_path / f"{name}-strong", "strong", data=name) for name in ("a", "b")]
    assert [gains.data for gains in pooled(*folders)] == ["a", "b"]
    assert all(
        [row.level for row in of.rows] == ["weak", "strong", "pooled"] for of in pooled(*folders)
    )


def test_models_without_any_difference_between_them_have_no_tau(tmp_path: Path) -> None:
    (gains,) = pooled(*(level(tmp_path / name, "weak", name=name) for name in ("weak", "b", "c")))
    last = gains.rows[-1]
    first = gains.rows[0].gain
    assert last.level == "pooled" and last.between == 0
    assert last.gain.value == pytest.approx(first.value)
    assert last.gain.high is not None and first.high is not None and first.value is not None
    margin = last.gain.high - first.value
    alone = first.high - first.value
    assert margin == pytest.approx(alone / 1.96 / math.sqrt(3) * 4.303, rel=0.02)
    # One model is not pooled, nor one without a base.
    assert pooled(tmp_path / "weak") == ()
    without = level(tmp_path / "s", "strong", protocols=("more",))
    assert pooled(tmp_path / "weak", without) == ()
