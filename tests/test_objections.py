"""Whether critics object to wrong scores more often than to right ones."""

from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.debate_counters import Objections
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.state.transcript import Turn

from .run_folders import compared, run_folder, scored, turn


def debate(item: int, scores: list[float], satisfied: list[bool], human: float) -> Result:
    said: list[Turn] = []
    for number, (score, end) in enumerate(zip(scores, satisfied, strict=True)):
        said += [turn("scorer", score, number), turn("critic", end, number + 1)]
    fields: dict[str, Any] = {"score": scores[-1], "human": human, "score_by_round": tuple(scores)}
    return scored(f"i{item}", transcript=tuple(said), **fields)


def objections(tmp_path: Path, results: list[Result], **manifest: Any) -> Objections | None:
    study = Study.of(run_folder(tmp_path / "run", results, **manifest), resampling=Resampling(200))
    (diagnosis,) = study.diagnoses
    return diagnosis.objections


def test_a_critic_that_knows_and_one_that_objects_to_everything(tmp_path: Path) -> None:
    knowing = [debate(n, [2, 4], [False, True], human=3.6) for n in range(20)]
    found = objections(tmp_path / "knows", knowing)
    assert found is not None
    assert (found.wrong, found.right) == (20, 20)
    assert (found.to_wrong.value, found.to_right.value, found.difference.value) == (1, 0, 1)
    quarrelsome = [debate(n, [2, 4], [False, False], human=4.5) for n in range(20)]
    found = objections(tmp_path / "quarrels", quarrelsome)
    assert found is not None and found.difference.value == 0
    mixed = [debate(n, [1, 4], [n % 2 == 0, n % 4 != 0], human=4) for n in range(40)]
    found = objections(tmp_path / "mixed", mixed)
    assert found is not None
    assert (found.to_wrong.value, found.to_right.value) == (0.5, 0.25)
    assert found.difference.value == pytest.approx(0.25)
    assert found.difference.low is not None and found.difference.low < 0.25 < (
        found.difference.high or 0
    )


def test_of_comparisons_the_preferred_answer_is_right_or_wrong(tmp_path: Path) -> None:
    first = [9.0, 3.0]
    last = [3.0, 9.0]
    turns = (
        turn("scorer", first, 0),
        turn("critic", False),
        turn("scorer", last),
        turn("critic", True, 2),
    )
    fields: dict[str, Any] = {
        "winner": "2",
        "human": "2",
        "scores": (3.0, 9.0),
        "transcript": turns,
    }
    results = [compared(f"i{number}", **fields) for number in range(12)]
    found = objections(tmp_path, results, kind="compare", aspects=())
    assert found is not None and (found.wrong, found.right, found.difference.value) == (12, 12, 1)


def test_without_labels_or_with_right_scores_alone_nothing_is_said(tmp_path: Path) -> None:
    right = [debate(n, [4], [True], human=4) for n in range(12)]
    assert objections(tmp_path / "right", right) is None
    unlabelled = [result.model_copy(update={"human": None}) for result in right]
    assert objections(tmp_path / "none", unlabelled) is None
