"""What a run came to: the same figures whether results are in memory or stay in their file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, Result, evaluate
from jurygraph.eval.report.result_tables import overview_table
from jurygraph.eval.results.agreement import PreferenceAgreement, ScoreAgreement
from jurygraph.eval.results.results import ResultsFile
from jurygraph.state import Aspect, UsageError
from rich.console import Console

from .run_folders import compared, failed, scored

MANIFEST = {"data": {"labels": "people"}, "protocols": {"debate": {}, "more": {}}}
SPENT: dict[str, Any] = {"calls": 2, "input_tokens": 1_000, "output_tokens": 100, "cost_usd": 0.25}


def debated(n: int, score: float, human: float, rounds: int, stop_reason: str = "max_rounds") -> Result:
    about = {"group": f"g{n % 2}", "human": human, "rounds": rounds, "stop_reason": stop_reason, **SPENT}
    return scored(f"i{n}", score=score, score_by_round=(3.0, score), **about)


RESULTS = [
    debated(0, 3.0, 2.5, 4),
    debated(1, 1.0, 1.0, 1, "no_issue"),
    debated(2, 5.0, 4.0, 3),
    debated(3, 2.0, 2.5, 2),
    failed("i9", aspect="wit", human=4.0, **SPENT),
    *(
        compared(f"p{n}", "more", winner="1", human=human, rounds=9, **{**SPENT, "cost_usd": None})
        for n, human in enumerate(["1", "tie", "1"])
    ),
]


@pytest.fixture(params=["in memory", "in a file"])
def evaluation(request: pytest.FixtureRequest, tmp_path: Path) -> Evaluation:
    results: Sequence[Result] = tuple(RESULTS)
    if request.param == "in a file":
        file = ResultsFile(tmp_path)
        for result in reversed(RESULTS):
            file.add(result)
        results = file.finish(result.key for result in RESULTS)
    return Evaluation(results, MANIFEST)


def test_agreement_of_one_protocol(evaluation: Evaluation) -> None:
    wit = evaluation.agreement("debate")["wit"]
    assert isinstance(wit, ScoreAgreement)
    assert (wit.n, wit.left_out, wit.groups) == (4, {"failed": 1}, 2)
    assert wit.over_rows["spearman"].value == pytest.approx(0.9486832980505138)
    assert wit.per_group["pearson"].value == pytest.approx(1.0)
    preference = evaluation.agreement("more")["preference"]
    assert isinstance(preference, PreferenceAgreement)
    assert (preference.n, preference.left_out, preference.ties, preference.human_ties) == (3, {}, 0, 1)
    assert (preference.accuracy.value, preference.kappa.value) == (2 / 3, 0.0)


def test_agreement_wants_to_know_of_which_protocol(evaluation: Evaluation) -> None:
    with pytest.raises(ValueError, match="name one of debate, more"):
        evaluation.agreement()
    assert evaluation.agreement("samre") == {}
    alone = Evaluation(RESULTS[:5], MANIFEST)
    assert alone.agreement() == alone.agreement("debate") == evaluation.agreement("debate")


def shown(evaluation: Evaluation) -> list[str]:
    """The table's lines, their cells one space apart."""
    console = Console(width=120)
    with console.capture() as captured:
        console.print(overview_table(evaluation))
    return [" ".join(line.split()) for line in captured.get().splitlines()]


def test_results_failures_and_overviews(evaluation: Evaluation) -> None:
    assert list(evaluation.results) == RESULTS
    assert [result.item for result in evaluation.failed] == ["i9"]
    assert evaluation.stopped is None
    debate = evaluation.figures.overviews["debate", "wit"]
    assert (debate.judged, debate.failed, debate.usage.calls, debate.usage.tokens) == (4, 1, 10, 5_500)
    assert (debate.score.value, debate.rounds.value, debate.usage.cost_usd) == (2.75, 2.5, 1.25)
    assert debate.stop_reasons == {"max_rounds": 3, "no_issue": 1}
    more = evaluation.figures.overviews["more", None]
    assert (more.judged, more.score.value, more.usage.cost_usd) == (3, None, None)
    assert "debate wit 4 1 2.75 2.50 10 5.5k $1.2500 max_rounds 3, no_issue 1" in shown(evaluation)
    assert "more preference 3 0 - 9.00 6 3.3k unknown complete 3" in shown(evaluation)
    # The one that changed its score most.
    example = evaluation.most_worth_reading()
    assert example and example.item == "i2"


def test_no_results(tmp_path: Path) -> None:
    for results in ((), ResultsFile(tmp_path).finish([])):
        nothing = Evaluation(results, MANIFEST)
        assert (len(nothing.failed), nothing.agreement(), nothing.most_worth_reading()) == (0, {}, None)
        assert not any("debate" in line for line in shown(nothing))


def test_an_edited_rubric_is_another_run(tmp_path: Path) -> None:
    wit = Aspect(name="wit", criteria="Does the text amuse?")
    first, again = (evaluate("single", "demo", aspects=[wit], limit=2, out=tmp_path) for _ in range(2))
    assert again.manifest["run"] == first.manifest["run"]
    edited = wit.model_copy(update={"steps": ("Count the jokes.",)})
    with pytest.raises(UsageError, match="aspects was wit@"):
        evaluate("single", "demo", aspects=[edited], limit=2, out=tmp_path)
    ready_made = evaluate("single", "demo", aspects=["fluency"], limit=2)
    assert "|aspects:fluency|" in ready_made.manifest["signatures"]["single"]
