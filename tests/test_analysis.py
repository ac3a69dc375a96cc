"""Several runs together: who takes part, where everybody stands, what it cost."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import People, Study
from jurygraph.eval.analysis.loading import load_runs
from jurygraph.eval.results.agreement import ScoreAgreement, agreement
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.state.errors import DataError, UsageError
from scipy import stats

from .run_folders import RATED, compared, failed, noisy, run_folder, scored

FEW = Resampling(resamples=200, seed=3)


def study_of(tmp_path: Path, results: list[Result], **options: Any) -> Study:
    return Study.of(run_folder(tmp_path / "run", results), resampling=FEW, **options)


# --- contenders and subjects ---------------------------------------------------------------------------------------


def test_two_runs_of_one_judge_are_told_apart_by_their_folders_but_by_no_path(tmp_path: Path) -> None:
    one = run_folder(tmp_path / "n2", [*noisy("debate", 1), *noisy("single", 1)])
    other = run_folder(tmp_path / "n4", noisy("debate", 0.5))
    same_name = run_folder(tmp_path / "else" / "n4", noisy("debate", 0.4))
    study = Study.of([one, other, same_name, one], resampling=FEW)
    labels = ["debate (n2)", "single", "debate (n4)", "debate (n4) #2"]
    assert ([judge.label for judge in study.judges], study.base) == (labels, "single")


@pytest.mark.parametrize(
    ("signatures", "labels"),
    [
        (["models:*=openai:gpt-4o|n:2", "models:*=openai:gpt-4o-mini|n:2"], ["gpt-4o", "gpt-4o-mini"]),
        # The model tells them apart already: that they differ in n as well is in the signatures.
        (["models:*=a|n:2", "models:*=b|n:4"], ["a", "b"]),
        (["models:*=a|n:2|k:1", "models:*=a|n:4|k:1"], ["n=2", "n=4"]),
        (["data:x@1|models:*=a", "data:x@1|models:*=a|version:2"], ["one", "version=2"]),
    ],
    ids=["models", "the model is enough", "a setting", "a part that one has not"],
)
def test_labels_are_as_short_as_tells_apart(tmp_path: Path, signatures: list[str], labels: list[str]) -> None:
    folders = [
        run_folder(tmp_path / name, noisy("debate", 1), signatures={"debate": f"protocol:debate|{signature}"})
        for name, signature in zip(("one", "two"), signatures, strict=True)
    ]
    assert [judge.label for judge in Study.of(folders, resampling=FEW).judges] == [
        "debate" if label == "one" else f"debate ({label})" for label in labels
    ]


def test_an_aspect_of_two_datasets_is_two_subjects_and_nobody_is_compared_across(tmp_path: Path) -> None:
    """Preferences stand beside both."""
    runs = [
        run_folder(tmp_path / name, noisy(judge, 1), data={"name": name, "digest": name})
        for name, judge in (("summeval", "debate"), ("topical-chat", "single"))
    ]
    pairs = [compared(f"p{n}", "single", winner="12"[n % 2], human="1") for n in range(6)]
    runs.append(run_folder(tmp_path / "b", pairs, kind="compare", data={"name": "pairs", "digest": "bb"}))
    study = Study.of(runs, resampling=FEW)
    kinds = {subject.label: subject.kind for subject in study.subjects}
    assert kinds == {"summeval: wit": "score", "topical-chat: wit": "score", "preference": "compare"}
    assert (study.comparison.pairwise, study.base, study.courtrooms) == ((), None, ())
    assert study.leaderboard.standings[-1].measures["accuracy"].value == 0.5


def test_what_cannot_be_studied_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a" / "run", [*noisy("debate", 1), *noisy("single", 1)])
    other = run_folder(tmp_path / "b", noisy("single", 1), aspects=[{**RATED, "high": 10}])
    with pytest.raises(UsageError, match="no run given"):
        Study.of([])
    with pytest.raises(DataError, match="holds no run"):
        Study.of(tmp_path)
    with pytest.raises(UsageError, match="from 1 to 10, but another run does so from 1 to 5"):
        Study.of([folder, other])
    with pytest.raises(UsageError, match=r"no judge 'judge'.*judges are debate, single"):
        Study.of(folder, base="judge")
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


# --- standings -----------------------------------------------------------------------------------------------------


def test_measures_are_those_of_agreement_to_the_last_digit(tmp_path: Path) -> None:
    """They are resampled by another way, for pairs to share: figures and intervals must be one."""
    results = noisy("debate", 1.5)
    [standing] = study_of(tmp_path, results).leaderboard.standings
    expected = agreement(map(vars, results), FEW)["wit"]
    assert standing.agreement == expected
    assert isinstance(expected, ScoreAgreement)
    assert {name: standing.measures[name] for name in expected.over_rows} == expected.over_rows
    assert standing.measures["group_kendall"].low == expected.per_group["kendall"].low


def test_gains_over_the_base_and_the_average_over_aspects(tmp_path: Path) -> None:
    def of(protocol: str, noise: float) -> list[Result]:
        return [
            result.model_copy(update={"aspect": aspect})
            for aspect in ("wit", "tact")
            for result in noisy(protocol, noise)
        ]

    aspects = [RATED, {**RATED, "name": "tact"}]
    folder = run_folder(tmp_path / "run", [*of("debate", 0.5), *of("single", 2)], aspects=aspects)
    study = Study.of(folder, resampling=FEW)
    debate, single = (study.leaderboard.standing(name, "wit") for name in ("debate", "single"))
    assert debate is not None
    assert single is not None
    own, base = (standing.measures["spearman"].value or 0 for standing in (debate, single))
    assert debate.gains["spearman"].absolute == pytest.approx(own - base)
    assert debate.gains["spearman"].relative == pytest.approx((own - base) / base)
    assert single.gains == {}
    average = study.leaderboard.averages[0]
    assert (average.judge, average.subjects) == ("debate", ("wit", "tact"))
    assert average.measures["spearman"] == debate.measures["spearman"], "both aspects are alike here"


def test_repeats_have_a_mean_and_a_deviation_and_an_alpha(tmp_path: Path) -> None:
    twice = [
        scored(f"i{n}", "single", score=1 + (n + repeat * (n == 3)) % 5, human=1 + n % 5, repeat=repeat)
        for repeat in range(2)
        for n in range(10)
    ]
    [standing] = study_of(tmp_path, twice).leaderboard.standings
    columns = [[[r.score, float(r.human or 0)] for r in twice[start : start + 10]] for start in (0, 10)]
    expected = [float(stats.pearsonr(*zip(*rows, strict=True))[0]) for rows in columns]
    assert standing.repeats["pearson"].values == pytest.approx(expected)
    assert standing.repeats["pearson"].sd == pytest.approx(abs(expected[0] - expected[1]) / math.sqrt(2))
    assert standing.alphas is not None and standing.alphas.repeats is not None
    assert standing.alphas.repeats.value == pytest.approx(1 - 1 / 20, abs=0.06)


# --- degenerate studies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "results",
    [
        [scored("a", score=3.0, human=2.0)],
        [scored(f"i{n}", score=3.0, human=float(1 + n)) for n in range(4)],
        [scored(f"i{n}", score=1.0 + n) for n in range(4)],
        [failed(f"i{n}", aspect="wit") for n in range(4)],
        [compared("a", winner="1")],
    ],
    ids=["one item", "constant scores", "no labels", "all failed", "preferences without labels"],
)
def test_where_nothing_can_be_said_nothing_is(tmp_path: Path, results: list[Result]) -> None:
    beside = [result.model_copy(update={"protocol": "single"}) for result in results]
    kind = "compare" if results[0].winner else "score"
    folder = run_folder(tmp_path / "run", [*results, *beside], kind=kind)
    study = Study.of(folder, people=People(price_usd=1), resampling=FEW)
    for standing in study.leaderboard.standings:
        assert all(found.value is None for found in standing.measures.values())
    [pair] = study.comparison.pairwise
    assert all(found.difference.value is None and found.p is None for found in pair.differences.values())
    [frontier] = study.frontiers
    assert set(frontier.left_out) == {"debate", "single"}


def test_a_metric_has_no_calls_and_no_distances(tmp_path: Path) -> None:
    rouge = [
        result.model_copy(update={"score": (result.score or 0) / 5, "calls": 0, "score_by_round": ()})
        for result in noisy("rouge-l", 1)
    ]
    judged = run_folder(tmp_path / "a", [*noisy("debate", 1), *noisy("ensemble", 1)])
    left_out = {"rouge-l": {"no references": 3}}
    metric = run_folder(tmp_path / "b", rouge[3:], models={}, data={"items": 40}, left_out=left_out)
    study = Study.of([judged, metric], resampling=FEW)
    assert study.notes == ("rouge-l: 3 items left out (no references)",)
    standing = study.leaderboard.standing("rouge-l", "wit")
    assert standing is not None
    assert standing.alphas is not None
    assert (standing.alphas.people, standing.distribution, standing.missing) == (None, None, 0)
    assert [judge.is_metric for judge in study.judges] == [False, False, True]
    [pair] = [
        pair for pair in study.comparison.pairwise if {pair.first, pair.second} == {"debate", "rouge-l"}
    ]
    assert not {"t_scores", "t_errors"} & set(pair.tests)
    [point] = [point for point in study.frontiers[0].points if point.label == "rouge-l"]
    assert (point.spent, point.on_frontier) == (0.0, True)
    [diagnosis] = [found for found in study.diagnoses if found.judge == "rouge-l"]
    assert (diagnosis.changes, diagnosis.rounds, diagnosis.score_changes) == (None, (), ())


# --- costs ---------------------------------------------------------------------------------------------------------


def test_people_cost_what_they_are_said_to_cost(tmp_path: Path) -> None:
    results = noisy("debate", 1, calls=3, cost_usd=0.25, seconds=2.0)
    people = People(price_usd=0.5, minutes=2, annotators=3)
    judge, humans = study_of(tmp_path, results, people=people).costs.rows
    assert (judge.cost_usd, judge.cost_each, judge.calls_each, judge.seconds) == (10.0, 0.25, 3.0, 80.0)
    assert (humans.judgements, humans.cost_usd, humans.cost_each) == (40, 60.0, 1.5)
    assert (humans.seconds, humans.is_people) == (40 * 360.0, True)


def test_an_unknown_price_is_no_price(tmp_path: Path) -> None:
    results = [*noisy("debate", 1, cost_usd=None), *noisy("single", 1, cost_usd=0.1)]
    study = study_of(tmp_path, results)
    assert study.costs.rows[0].cost_usd is None
    assert study.frontiers[0].unit == "calls"
    assert "the cost is unknown, because the price of a model is: debate" in study.costs.notes


@pytest.mark.parametrize("bad", [{"price_usd": -1}, {"minutes": float("nan")}, {"annotators": 0}])
def test_people_who_cannot_be_so(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"people: {next(iter(bad))} must be"):
        People(**bad)


def test_the_same_runs_give_the_same_study_whatever_the_order_of_their_lines(tmp_path: Path) -> None:
    results = [*noisy("debate", 1), *noisy("single", 2)]
    one = run_folder(tmp_path / "a" / "run", results)
    other = run_folder(tmp_path / "b" / "run", [*results[39::-1], *results[:39:-1]])
    first, second = (Study.of(folder, resampling=FEW) for folder in (one, other))
    assert (first.comparison, first.diagnoses) == (second.comparison, second.diagnoses)
    measures = ([entry.measures for entry in study.leaderboard.standings] for study in (first, second))
    assert next(measures) == next(measures)
    assert first.resampling.seed == 3


def test_of_each_result_little_stays_in_memory(tmp_path: Path) -> None:
    def held(count: int) -> int:
        usual: Any = {"score": 3.0, "score_by_round": (2.0, 4.0, 3.0), "human": 2.0}
        results = [scored(f"item-{number}", group=f"g{number // 8}", **usual) for number in range(count)]
        folder = run_folder(tmp_path / str(count), results)
        del results
        tracemalloc.start()
        try:
            judges = load_runs([folder])
            assert len(judges[0].cells["wit"].rows) == count
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    held(50)  # what is imported and cached once
    # Bytes, with the item's name; a result as an object takes 3,000.
    assert (held(1_500) - held(500)) / 1_000 < 700
