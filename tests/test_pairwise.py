"""Test pairwise accuracy in groups and over systems, against mt-metrics-eval and definitions."""

import gzip
import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import agreement
from jurygraph.eval.analysis import Study
from jurygraph.eval.cli.app import app
from jurygraph.eval.report.headline import claim
from jurygraph.eval.report.ranked_dataset import ranked_datasets
from jurygraph.eval.results.agreement import ScoreAgreement
from jurygraph.eval.statistics.alignment import Floats
from jurygraph.eval.statistics.chance_corrected import alphas, krippendorff_alpha
from jurygraph.eval.statistics.metrics import METRICS, of_kind
from jurygraph.eval.statistics.pairwise import (
    GroupPairs,
    random_signs,
    same_orders,
    soft_agreement,
)
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.sample import Sample
from jurygraph.state.errors import UsageError
from numpy.typing import NDArray
from typer.testing import CliRunner

from .run_folders import compared, run_folder, scored

# Published values of google-research/mt-metrics-eval at commit 68a481ae, for lines of texts of one
# source: tau_optimization(judged, human, TauSufficientStats.acc_23) gives best_threshold, best_tau
# and, as taus[0], the value without a threshold.
HUMAN = np.array(
    [[5, 2, 1, 2], [3, 5, 3, 1], [2, 4, 5, 4], [5, 1, 5, 1], [3, 2, 2, 4], [2, 3, 2, 1]], float
)
WHOLE = np.array(
    [[5, 2, 2, 2], [3, 5, 2, 1], [2, 5, 5, 4], [4, 2, 5, 1], [2, 3, 2, 4], [3, 3, 1, 1]], float
)
THREE_POINTS = np.array(
    [
        [3, 3, 1, 3, 2],
        [2, 2, 1, 3, 1],
        [1, 2, 2, 2, 1],
        [1, 1, 1, 1, 3],
        [1, 2, 3, 1, 1],
        [2, 1, 3, 1, 3],
    ],
    float,
)
# Eighths have no rounding: two differences of decimal numbers, such as 1.8 - 1.2 and 1.1 - 0.5, are
# one threshold here and two in the reference.
EIGHTHS = np.array(
    [
        [0.875, 1.75, 0.0, 1.5, 1.0],
        [0.875, 1.5, 0.625, 1.5, 0.75],
        [1.0, 0.375, 1.125, 0.75, 0.5],
        [0.0, 0.625, 0.625, 0.5, 1.25],
        [0.375, 0.625, 1.125, 0.75, 0.0],
        [1.75, 1.0, 0.75, 0.75, 1.25],
    ]
)
REFERENCE = {
    "whole": (WHOLE, HUMAN, 1.0, 0.6944444444444443, 0.6388888888888888),
    "eighths": (EIGHTHS, THREE_POINTS, 0.375, 0.5499999999999999, 0.5166666666666666),
}


def pairs_of(judged: Floats, human: Floats) -> GroupPairs:
    groups = np.repeat(np.arange(len(judged)), judged.shape[1])
    return GroupPairs(judged.ravel(), human.ravel(), groups)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_published_value_equals_mt_metrics_eval(name: str) -> None:
    judged, human, threshold, best, without = REFERENCE[name]
    pairs = pairs_of(judged, human)
    found = pairs.fitted()
    assert found.threshold == pytest.approx(threshold, abs=1e-12)
    assert found.accuracy == pytest.approx(best, abs=1e-12)
    fixed = pairs.accuracies(np.full(len(judged), threshold)).mean()
    assert fixed == pytest.approx(best, abs=1e-12)
    assert pairs.accuracies(np.zeros(len(judged))).mean() == pytest.approx(without, abs=1e-12)


def summeval(folder: Path) -> tuple[Floats, Floats, Floats]:
    """Return the experts' coherence, the word overlap with the article, and lengths."""
    file = folder / "summeval" / "summeval.jsonl.gz"
    if not file.is_file():
        pytest.skip("SummEval is not there")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = sorted(map(json.loads, lines), key=lambda row: (row["article_id"], row["system_id"]))
    shape = len({row["article_id"] for row in rows}), len({row["system_id"] for row in rows})

    def overlap(row: dict[str, Any]) -> float:
        words = {*row["summary"].split()}
        return len(words & {*row["source"].split()}) / len(words)

    columns = (
        [row["human"]["coherence"] for row in rows],
        [*map(overlap, rows)],
        [len(row["summary"]) for row in rows],
    )
    human, overlaps, lengths = (np.array(column, float).reshape(shape) for column in columns)
    return human, overlaps, lengths


def test_the_published_value_on_summeval(shared_data: Path) -> None:
    # The same functions of mt-metrics-eval as above, on 75 articles with 16 summaries each.
    human, overlaps, lengths = summeval(shared_data)
    by_overlap = pairs_of(overlaps, human).fitted()
    assert by_overlap.accuracy == pytest.approx(0.514, abs=1e-12)
    assert by_overlap.threshold == pytest.approx(0.00032594524119944346, abs=1e-15)
    assert pairs_of(lengths, human).fitted().accuracy == pytest.approx(0.433, abs=1e-12)
    # compute_one_minus_pce of the p-values of compute_pairwise_p_values; labels are thirds, which
    # its numbers of 32 bits do not add up exactly, so they are given as multiples.
    thirds = np.rint(3 * human)
    found = soft_agreement(lengths, thirds, published_signs(len(human)))
    assert found == pytest.approx(0.4933166666666666, abs=1e-12)
    own = soft_agreement(lengths, thirds)
    assert own == pytest.approx(0.4933, abs=0.003), "other random permutations"


def published_signs(clusters: int) -> NDArray[np.int8]:
    """The permutations of the reference, so that equal numbers can be expected."""
    drawn = np.random.default_rng(4).random((1000, clusters), dtype=np.float32)
    return (2 * np.rint(drawn) - 1).astype(np.int8)


def test_soft_pairwise_accuracy_equals_mt_metrics_eval() -> None:
    # compute_one_minus_pce of compute_pairwise_p_values(HUMAN.T) and (WHOLE.T), seed 4.
    found = soft_agreement(WHOLE, HUMAN, published_signs(6))
    assert found == pytest.approx(0.847, abs=1e-12)
    assert random_signs(6).shape == (1000, 6)
    assert {*np.unique(random_signs(6))} == {-1.0, 1.0}


def test_soft_pairwise_accuracy_needs_systems_with_common_groups() -> None:
    human = np.array([[1.0, 2, np.nan], [3, 1, np.nan], [np.nan, 2, 1], [np.nan, 1, 2]])
    assert soft_agreement(human, human) is None, "the first and the last share no group"
    assert soft_agreement(human[:, :1], human[:, :1]) is None


def by_hand(judged: Floats, human: Floats, threshold: float) -> float:
    pairs = [*combinations(range(len(judged)), 2)]
    right = 0
    for first, second in pairs:
        apart = judged[first] - judged[second]
        order = 0.0 if abs(apart) <= threshold + 1e-9 else np.sign(apart)
        right += order == np.sign(human[first] - human[second])
    return right / len(pairs)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_threshold_is_fitted_on_the_other_groups(name: str) -> None:
    judged, human, *_ = REFERENCE[name]
    expected = []
    for group in range(len(judged)):
        others = [place for place in range(len(judged)) if place != group]
        gaps = {0.0} | {
            float(abs(a - b)) for place in others for a, b in combinations(judged[place], 2)
        }
        best = max(
            sorted(gaps),
            key=lambda gap: round(
                float(np.mean([by_hand(judged[place], human[place], gap) for place in others])), 9
            ),
        )
        expected.append(by_hand(judged[group], human[group], best))
    assert pairs_of(judged, human).cross_fitted() == pytest.approx(expected, abs=1e-12)


def test_many_different_scores_give_no_advantage_without_skill() -> None:
    draw = np.random.default_rng(1)
    published = []
    fitted_elsewhere = []
    for _ in range(40):
        human = draw.integers(1, 4, (12, 4)).astype(float)
        pairs = pairs_of(draw.normal(size=human.shape), human)
        published.append(pairs.fitted().accuracy)
        fitted_elsewhere.append(pairs.cross_fitted().mean())
    # A coin is right on 1/3 of pairs, and so is a judge that always says tie.
    assert np.mean(published) > 0.36
    assert np.mean(fitted_elsewhere) == pytest.approx(1 / 3, abs=0.015)


def test_groups_of_one_text_and_repeats_of_one_text_form_no_pair() -> None:
    scores = np.array([1.0, 2.0, 1.0, 2.0, 5.0])
    groups = np.array([0, 0, 0, 0, 1])
    repeats = np.array([0, 0, 1, 1, 0])
    pairs = GroupPairs(scores, np.array([1.0, 2, 1, 2, 3]), groups, repeats)
    found = pairs.accuracies(np.zeros(2))
    assert found[0] == 1.0
    assert np.isnan(found[1])
    empty = GroupPairs(np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.intp))
    assert np.isnan(empty.fitted().accuracy)
    assert len(empty.cross_fitted()) == 0


def test_a_sample_of_groups_gives_the_same_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    human = draw.integers(1, 4, (400, 4)).astype(float)
    judged = human + draw.normal(0, 0.7, human.shape)
    whole = pairs_of(judged, human).cross_fitted()
    monkeypatch.setattr("jurygraph.eval.statistics.pairwise._MOST_PAIRS", 600)
    part = pairs_of(judged, human).cross_fitted()
    assert part.mean() == pytest.approx(whole.mean(), abs=0.02)


def test_order_of_systems() -> None:
    human = np.array([1.0, 2.0, 2.0, 3.0])
    assert same_orders(human, human) == 1.0
    assert same_orders(np.array([1.0, 2, 3, 4]), human) == 5 / 6, "one tie of two systems"
    assert same_orders(human[:1], human[:1]) is None


def test_alpha_of_two_raters_equals_that_of_any_number() -> None:
    judge = ["1", "1", "2", "tie", "2", "1"]
    human = ["1", "2", "2", "tie", "1", "1"]
    names = ["1", "2", "tie"]
    table = np.zeros((3, 3))
    for one, other in zip(judge, human, strict=True):
        table[names.index(one), names.index(other)] += 1
    expected = krippendorff_alpha([*zip(judge, human, strict=True)], "nominal").alpha.value
    assert alphas(table[None])[0] == pytest.approx(expected)


def rated(size: int, groups: int, noise: float, seed: int, name: str) -> list[Any]:
    draw = random.Random(seed)
    labels = random.Random(99)
    found = []
    for group in range(groups):
        for place in range(size):
            human = labels.randint(1, 5)
            score = round(min(5.0, max(1.0, human + draw.gauss(0, noise))), 1)
            item = f"g{group}-{place}"
            systems = (f"s{place}",)
            found.append(
                scored(item, name, score=score, human=human, group=f"g{group}", systems=systems)
            )
    return found


def test_groups_of_two_lead_with_pairwise_accuracy(tmp_path: Path) -> None:
    results = [*rated(2, 60, 0.4, 1, "debate"), *rated(2, 60, 3.0, 2, "single")]
    folder = run_folder(tmp_path / "run", results)
    [dataset] = ranked_datasets(Study.of(folder, resampling=Resampling(200)))
    assert dataset.measure == "pairwise"
    assert claim(dataset) == "debate agrees best with your annotators"
    chance = dataset.chance(dataset.judges[0])
    assert chance is not None
    assert chance.tested.value != chance.figure.value, "tau within groups is tested against 0"
    few = run_folder(tmp_path / "few", rated(2, 9, 0.4, 1, "debate"))
    assert ranked_datasets(Study.of(few))[0].measure == "spearman"
    more = run_folder(tmp_path / "more", rated(3, 12, 0.4, 1, "debate"))
    assert ranked_datasets(Study.of(more))[0].measure == "group_spearman"


def test_a_random_judge_of_pairs_is_not_better_than_chance(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", rated(2, 60, 50.0, 3, "debate"))
    [dataset] = ranked_datasets(Study.of(folder, resampling=Resampling(200)))
    assert claim(dataset) == "No judge agrees with your annotators"


@pytest.mark.parametrize("metric", [*of_kind("score")])
def test_report_ranks_by_every_metric_of_scores(metric: str, tmp_path: Path) -> None:
    results = [*rated(4, 20, 0.4, 1, "debate"), *rated(4, 20, 3.0, 2, "single")]
    folder = run_folder(tmp_path / "run", results)
    words = ["report", str(folder), "--all", "--metric", metric, "--resamples", "50"]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "250"})
    assert result.exit_code == 0, result.output
    assert METRICS[metric].title.lower() in result.output.lower()
    first = result.output.split("What you may write")[0]
    assert "debate" in first
    if METRICS[metric].unit == "systems":
        assert "Too few systems to say which judge is better" in result.output


def test_a_metric_of_comparisons_that_tables_show_on_request(tmp_path: Path) -> None:
    draw = random.Random(4)
    results = [
        compared(f"i{n}", winner=draw.choice("12"), human=draw.choice("12")) for n in range(40)
    ]
    folder = run_folder(tmp_path / "run", results, kind="compare")
    run = CliRunner().invoke
    shown = run(app, ["report", str(folder), "--all"], env={"COLUMNS": "200"}).output
    assert "alpha" not in shown.split("Krippendorff")[0]
    asked = run(app, ["report", str(folder), "--all", "--metric", "alpha"], env={"COLUMNS": "200"})
    assert asked.exit_code == 0, asked.output
    assert "Krippendorff's alpha" in asked.output
    found = json.loads(run(app, ["agree", str(folder), "--json"]).output)["preference"]
    assert {"accuracy", "kappa", "alpha"} <= found.keys()
    with pytest.raises(UsageError, match="system_pairwise measures scores, and these are comp"):
        run(
            app,
            ["report", str(folder), "--metric", "system_pairwise"],
            catch_exceptions=False,
        )


def test_agree_shows_pairs_and_systems(tmp_path: Path) -> None:
    rows = [
        {
            "item": r.item,
            "group": r.group,
            "system": r.systems[0],
            "score": r.score,
            "human": r.human,
        }
        for r in rated(4, 20, 0.4, 1, "debate")
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    text = CliRunner().invoke(app, ["agree", str(file)], env={"COLUMNS": "200"}).output
    assert "pairs within" in text
    assert "over systems" in text
    assert "fitted on other groups" in " ".join(text.split())
    found = agreement(rows)["score"]
    assert isinstance(found, ScoreAgreement)
    assert {*found.over_systems} == {
        METRICS[name].coefficient for name in of_kind("score", "systems")
    }
    assert all(of.value is not None and of.low is None for of in found.over_systems.values())
    pairs = found.per_group["pairwise"]
    assert pairs.value is not None and pairs.low is not None and pairs.high is not None
    assert 0 <= pairs.low < pairs.value < pairs.high <= 1
    without = agreement([{**row, "system": None} for row in rows])["score"]
    assert isinstance(without, ScoreAgreement)
    assert without.over_systems == {}
    printed = json.loads(CliRunner().invoke(app, ["agree", str(file), "--json"]).output)["score"]
    assert printed["intervals"]["over_systems"] == "none"
    assert printed["over_systems"]["soft_pairwise"]["value"] == pytest.approx(
        found.over_systems["soft_pairwise"].value
    )


def test_a_silent_judge_gets_the_share_of_human_ties() -> None:
    human = np.array([1.0, 1, 2, 3, 3, 3] * 12)
    groups = np.repeat(np.arange(24), 3)
    sample = Sample("score", np.full(72, 3.0), human, groups, True, Resampling(0))
    assert sample.value("pairwise") == pytest.approx((1 / 3 + 1) / 2)
    found = sample.within_groups("pairwise")
    assert (found.groups, found.skipped, found.one_score) == (24, 0, 0)
