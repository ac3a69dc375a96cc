"""Annotators among themselves, and judges in their place."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.annotators import Rater
from jurygraph.eval.datasets.items import CompareItem, ScoreItem
from jurygraph.eval.report.sections import compose
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.significance import (
    Closeness,
    adjusted_for_discoveries,
    alternative_annotator_test,
)
from jurygraph.eval.tables.grid import Grid, columns_of
from jurygraph.state.errors import UsageError
from scipy import stats

from .run_folders import compared, run_folder, scored


def test_the_alternative_annotator_test_against_its_authors_results(shared_data: Path) -> None:
    folder = shared_data / "alttest"
    printed = json.loads((folder / "printed_results.json").read_text())
    assert len(printed) == 18
    for line in printed:
        humans = json.loads((folder / f"{line['set']}.human.json").read_text())
        judge = json.loads((folder / f"{line['set']}.llm.json").read_text())[line["judge"]]
        closeness: Closeness = "accuracy" if line["score"] == "accuracy" else "rmse"
        result = alternative_annotator_test(*table(judge, humans), closeness, line["epsilon"])
        assert result.winning_rate is not None and result.advantage is not None
        rates = round(result.winning_rate, 2), round(result.advantage, 2)
        assert rates == (line["winning_rate"], line["advantage_probability"]), line
        assert result.passed == line["passed"], line


def table(judge: dict[str, Any], humans: dict[str, dict[str, Any]]) -> tuple[Any, Any]:
    """The labels as numbers, a row for each item; classes as codes."""
    items = sorted({*judge, *(item for labels in humans.values() for item in labels)})
    columns = [[labels.get(item) for item in items] for labels in (judge, *humans.values())]
    classes = sorted({label for column in columns for label in column if isinstance(label, str)})
    code = {name: float(number) for number, name in enumerate(classes)} | {None: np.nan}
    numbers = np.array(
        [[code.get(label, label) for label in column] for column in columns], dtype=float
    )
    return numbers[0], numbers[1:].T


def test_too_few_items_say_nothing_and_an_impossible_epsilon_is_refused() -> None:
    result = alternative_annotator_test(np.ones(29), np.ones((29, 2)))
    assert (result.winning_rate, result.advantage, result.passed) == (None, None, None)
    with pytest.raises(UsageError, match="epsilon must be at least 0 and below 1, got 2"):
        alternative_annotator_test(np.zeros(0), np.zeros((0, 0)), epsilon=2)


def test_p_values_are_adjusted_as_scipy_adjusts_them() -> None:
    draw = np.random.default_rng(0)
    for size in (1, 2, 3, 10):
        p_values = np.round(draw.random(size), 1) * 0.3
        wanted = stats.false_discovery_control(p_values, method="by")
        assert adjusted_for_discoveries(p_values) == pytest.approx(wanted, abs=1e-12)


def test_an_annotator_keeps_the_place_where_another_gave_nothing() -> None:
    text = ScoreItem.model_validate(
        {"id": 1, "source": "s", "candidate": "c", "human": {"wit": [None, 2, 4]}}
    )
    assert text.label("wit") == 3 and text.about("wit")["annotations"] == (None, 2, 4)
    pair = CompareItem.model_validate(
        {"id": 1, "question": "q", "answer_1": "a", "answer_2": "b", "human": ["1", None, "1"]}
    )
    assert pair.label() == "1" and pair.about()["annotations"] == ("1", None, "1")
    nobody = pair.model_copy(update={"human": [None, None]})
    assert nobody.label() is None and nobody.about()["annotations"] == ()


RATINGS = [
    (1, 2, 1),
    (2, 2, 3),
    (3, None, 3),
    (4, 3, 5),
    (5, 5, 4),
    (2, 1, None),
    (4, 4, 4),
    (1, 1, 2),
] * 5


def raters(tmp_path: Path, results: list[Any], **manifest: Any) -> dict[str, Rater]:
    study = Study.of(run_folder(tmp_path / "run", results, **manifest), resampling=Resampling(50))
    (annotators,) = study.annotators
    return {rater.name: rater for rater in annotators.raters}


def test_annotators_and_judges_are_measured_against_the_mean_of_the_other_annotators(
    tmp_path: Path,
) -> None:
    """The judge repeats annotator 1."""
    results = []
    for number, labels in enumerate(RATINGS):
        given = [label for label in labels if label is not None]
        human = sum(given) / len(given)
        results.append(
            scored(f"i{number}", "single", score=labels[0], human=human, annotations=labels)
        )
    by_name = raters(tmp_path, results)
    annotators = ["annotator 1", "annotator 2", "annotator 3"]
    controls = ["control: always 1", "control: the others' mean"]
    assert list(by_name) == [*annotators, "mean of annotators", "single", *controls]
    of_judge = []
    for place, name in enumerate(annotators):
        rows = [labels for labels in RATINGS if labels[place] is not None]
        others = [
            np.mean([x for x in (*row[:place], *row[place + 1 :]) if x is not None]) for row in rows
        ]
        own: list[Any] = [row[place] for row in rows]
        assert by_name[name].others.value == pytest.approx(stats.spearmanr(own, others)[0])
        of_judge.append(stats.spearmanr([row[0] or 0 for row in rows], others)[0])
    assert by_name["single"].others.value == pytest.approx(np.mean(of_judge))
    grid = Grid.from_records("", columns_of(Rater), by_name.values())
    assert [column.name for column in grid.columns][-3:] == ["closer", "beats", "could replace one"]
    judge = by_name["single"]
    assert judge.replaces is True
    assert grid.rows[-3][-3:] == (judge.closer, judge.beats, "yes")


def test_the_human_ceiling_is_the_reliability_of_the_mean_label(tmp_path: Path) -> None:
    """The mean of four labels agrees with the mean of four others as the ceiling predicts."""
    random = np.random.default_rng(5)
    quality = random.normal(size=400)
    labels = quality[:, None] + random.normal(size=(400, 8))
    results = [
        scored(f"i{number}", "single", score=3.0, human=float(row.mean()), annotations=list(row))
        for number, row in enumerate(labels[:, :4])
    ]
    run = run_folder(tmp_path / "run", results)
    study = Study.of(run, resampling=Resampling(50), metric="pearson")
    (people,) = study.annotators
    pairs = [float(stats.pearsonr(a, b)[0]) for a, b in combinations(labels[:, :4].T, 2)]
    one = float(np.mean(pairs))
    assert people.reliability is not None
    assert people.reliability == pytest.approx(4 * one / (1 + 3 * one))
    two_panels = np.corrcoef(labels[:, :4].mean(axis=1), labels[:, 4:].mean(axis=1))[0, 1]
    assert people.reliability == pytest.approx(two_panels, abs=0.05)
    assert "Human ceiling: the mean of 4 labels has a reliability of 0." in people.ceiling
    (of_one,) = (rater for rater in people.raters if rater.name == "mean of annotators")
    assert of_one.others.value is not None and of_one.others.value < people.reliability


@pytest.mark.parametrize("kind", ["constant", "random", "good"])
def test_only_a_judge_that_beats_chance_could_replace_an_annotator(
    tmp_path: Path, kind: str
) -> None:
    """Annotators agree so little that a constant or random judge could replace one."""
    random = np.random.default_rng(3)
    results = []
    for number in range(200):
        quality = float(random.integers(1, 4))
        labels = [float(np.clip(quality + random.integers(-3, 4), 1, 5)) for _ in range(3)]
        scores = {
            "constant": 3.0,
            "random": 2.75 + float(random.integers(0, 3)) / 4,
            "good": quality,
        }
        about = {"human": float(np.mean(labels)), "annotations": labels}
        results.append(scored(f"i{number}", "single", score=scores[kind], **about))
    by_name = raters(tmp_path, results)
    judge = by_name["single"]
    mean = by_name["control: the others' mean"]
    (constant,) = (of for name, of in by_name.items() if name.startswith("control: always"))
    assert judge.beats is not None and judge.beats >= 0.5
    assert judge.replaces is (kind == "good")
    assert mean.closer is not None and judge.closer is not None and mean.closer > judge.closer
    assert constant.beats is not None and (constant.replaces, mean.replaces) == (None, None)


def test_votes_on_pairs_count_with_the_majority_of_the_others(tmp_path: Path) -> None:
    votes = [("1", "1", "2"), ("2", "2", "2"), ("tie", "1", "1"), ("1", "2", "tie")] * 10
    results = [
        compared(f"i{number}", "single", winner="1", human="tie", annotations=given)
        for number, given in enumerate(votes)
    ]
    by_name = raters(tmp_path, results, kind="compare", aspects=())
    # Annotator 1 against the others' majority: 1 against a tie, 2 against 2, tie against 1, 1
    # against a tie.
    assert by_name["annotator 1"].others.value == 0.25
    assert by_name["annotator 1"].everybody.value == 0.25  # the label is a tie throughout


def test_one_item_makes_no_ceiling_and_labels_of_nobody_in_particular_no_annotators(
    tmp_path: Path,
) -> None:
    nobody = [scored(f"i{n}", "single", score=1 + n % 5, human=n % 3) for n in range(12)]
    assert Study.of(run_folder(tmp_path / "a", nobody), resampling=Resampling(50)).annotators == ()
    folder = run_folder(
        tmp_path / "run", [scored("i", "single", score=3, human=3, annotations=[2, 3, 4])]
    )
    study = Study.of(folder, resampling=Resampling(50))
    assert [people.ceiling for people in study.annotators] == [""]
    assert compose(study, "one item").sections
