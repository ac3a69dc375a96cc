"""Test a dataset's policy for comparisons: votes or majority, with or without human ties."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate, load_dataset
from jurygraph.eval.analysis import Study
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.catalog import SOURCES
from jurygraph.eval.datasets.items import majority
from jurygraph.eval.experiments.cell_metrics import MetricKey, measure
from jurygraph.eval.experiments.cells import Cell, CellResult
from jurygraph.eval.results.agreement import PreferenceAgreement, agreement
from jurygraph.eval.results.folder import read_manifest
from jurygraph.eval.results.results import ResultsFile
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.tie_policy import DEFAULT_TIE_POLICY, TiePolicy, Ties, Votes
from jurygraph.state.errors import UsageError
from jurygraph.state.verdict import Winner
from typer.testing import CliRunner

from .sample_run import debate, write_run

EACH = TiePolicy(ties="left_out", votes="each")
VOTES: list[list[Winner]] = [
    ["1", "1", "2"],
    ["tie", "2"],
    ["2"],
    ["tie", "tie"],
    ["1", "2", "1", "tie"],
]
JUDGED = ["1", "2", "tie", "1", "2"]
OTHER = ["2", "2", "2", "1", "1"]
# By hand, human ties left out: of 8 votes JUDGED agrees with 2 + 1 + 0 + 0 + 1, OTHER with 1 + 1 +
# 1 + 0 + 2.
QUICK = Resampling(resamples=60, seed=3)
ACCURACY = 4 / 8
OTHERS = 5 / 8


def run(folder: Path, rule: TiePolicy | None = EACH) -> Path:
    """Two judges on five pairs of answers, of which people voted several times."""
    compared: dict[str, Any] = {
        "aspect": None,
        "score": None,
        "score_by_round": (),
        "transcript": (),
    }
    results = [
        debate(
            f"q{number}",
            protocol,
            winner=winner,
            human=majority(votes),
            annotations=tuple(votes),
            **compared,
        )
        for protocol, said in (("single", OTHER), ("more", JUDGED))
        for number, (winner, votes) in enumerate(zip(said, VOTES, strict=True))
    ]
    data = {"name": "wit", "digest": "abc", "kind": "compare", "labels": "people", "items": 5}
    return write_run(
        folder, results, data=data | ({"rule": asdict(rule)} if rule else {}), aspects=[], models={}
    )


def measured(study: Study, judge: str = "more") -> PreferenceAgreement:
    standing = study.leaderboard.standing(judge, "preference")
    assert standing is not None
    assert isinstance(standing.agreement, PreferenceAgreement)
    return standing.agreement


def of_run(folder: Path) -> Evaluation:
    return Evaluation(tuple(ResultsFile(folder).read()), read_manifest(folder))


def preference(found: dict[str, Any]) -> PreferenceAgreement:
    (one,) = found.values()
    assert isinstance(one, PreferenceAgreement)
    return one


def test_a_run_says_its_rule_and_signs_what_is_not_usual_as_of_mt_bench_alone() -> None:
    assert {name for name, source in SOURCES.items() if source.rule != DEFAULT_TIE_POLICY} == {
        "mt-bench"
    }
    assert SOURCES["mt-bench"].rule == EACH
    pairs = load_dataset("demo-pairs").first(2)
    assert pairs.rule == DEFAULT_TIE_POLICY
    usual, other = (
        evaluate("single", replace(pairs, rule=rule)).manifest
        for rule in (DEFAULT_TIE_POLICY, EACH)
    )
    assert usual["data"]["rule"] == {"ties": "class", "votes": "majority"}
    assert "rule" not in usual["signatures"]["single"]
    assert other["data"]["rule"] == {"ties": "left_out", "votes": "each"}
    assert "|rule:ties=left_out,votes=each|" in other["signatures"]["single"]


def test_evaluation_study_and_sweep_measure_by_the_rule_alike(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    evaluation = of_run(folder)
    study = Study.of(folder, resampling=QUICK)
    for judge, accuracy in (("more", ACCURACY), ("single", OTHERS)):
        own = preference(evaluation.agreement(judge, QUICK))
        assert (own.n, own.accuracy.value) == (8, accuracy)
        assert own == measured(study, judge)
        assert own.left_out == {"human tie": 4}
    (pair,) = study.comparison.pairwise
    apart = pair.differences["accuracy"]
    assert apart.difference.value == pytest.approx(ACCURACY - OTHERS)
    assert "mcnemar" not in pair.tests
    assert pair.tests["t_right"].about == "mean share of human votes that agree, item by item"
    cells = [
        CellResult(Cell({"judge": name}), name, alone(evaluation, name))
        for name in ("single", "more")
    ]
    gained = measure(cells, resampling=QUICK)[1]
    assert gained.figures[MetricKey("preference", "accuracy")] == measured(study).accuracy
    assert gained.gains[MetricKey("preference", "accuracy")] == apart.difference


def alone(evaluation: Evaluation, protocol: str) -> Evaluation:
    results = tuple(one for one in evaluation.results if one.protocol == protocol)
    return Evaluation(results, evaluation.manifest)


@pytest.mark.parametrize("ties", ["class", "left_out", "half"])
@pytest.mark.parametrize("votes", ["majority", "each"])
def test_the_study_says_what_agreement_does_under_any_rule(
    tmp_path: Path, ties: Ties, votes: Votes
) -> None:
    folder = run(tmp_path / "run", rule=None)
    rows = [one for one in map(vars, ResultsFile(folder).read()) if one["protocol"] == "more"]
    told = preference(agreement(rows, QUICK, ties=ties, votes=votes))
    assert measured(Study.of(folder, resampling=QUICK, ties=ties, votes=votes)) == told
    assert preference(of_run(folder).agreement("more", QUICK, ties=ties, votes=votes)) == told


def test_an_old_run_has_the_usual_rule_and_a_given_one_goes_before(tmp_path: Path) -> None:
    old = run(tmp_path / "old", rule=None)
    assert preference(of_run(old).agreement("more")).n == 5
    assert measured(Study.of(old)).votes == "majority"
    new = run(tmp_path / "new")
    assert preference(of_run(new).agreement("more", votes="majority")).n == 2
    assert of_run(new).rule.override(votes="majority") == TiePolicy(ties="left_out")
    assert of_run(old).rule == DEFAULT_TIE_POLICY


def test_a_rule_that_there_is_not_is_told(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    with pytest.raises(UsageError, match="ties 'out' is not one of class, left_out, half"):
        of_run(folder).agreement("more", ties="out")  # type: ignore[arg-type]
    done = CliRunner().invoke(app, ["report", str(folder), "--votes", "all"])
    assert "votes 'all' is not one of majority, each" in str(done.exception)


def test_the_report_says_the_rule(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    for options, told in (
        ("", "every human vote counts; human ties are left out"),
        ("--table panels", "1 row is a human tie, which is left out."),
        (
            "--ties half --votes majority",
            "the human majority counts; any verdict on a human tie is half right",
        ),
    ):
        words = ["report", str(folder), "--all", "--resamples", "20", *options.split()]
        assert told in CliRunner().invoke(app, words, env={"COLUMNS": "150"}).output
