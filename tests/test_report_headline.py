"""What the first line of a report claims: no more than the comparison holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.comparison import AverageComparison, Comparison
from jurygraph.eval.analysis.leaderboard import Leaderboard
from jurygraph.eval.report.headline import answers, headline
from jurygraph.eval.results.results import Result

from .run_folders import failed, run_folder, scored
from .sample_study import average_duel, judge, study
from .truth_gate import GATE


def with_averages(*averages: AverageComparison, **changes: Any) -> Study:
    made = study(**changes)
    return replace(made, comparison=replace(made.comparison, averages=averages))


OVER_BASE = average_duel("debate")


@pytest.mark.parametrize(
    ("averages", "claim"),
    [
        (
            # A pair may stand the other way round.
            [OVER_BASE, average_duel("chateval", "debate")],
            "debate ranks most like humans: Spearman's rho 0.395 [0.295, 0.495], "
            "0.040 [0.030, 0.050] above chateval (Holm-adjusted p = 0.025)",
        ),
        (
            [OVER_BASE, average_duel("debate", "chateval", p=0.051)],
            "debate ranks first by Spearman's rho, 0.395 [0.295, 0.495], and that may be chance: "
            "0.040 [0.030, 0.050] above chateval (Holm-adjusted p = 0.051)",
        ),
        (
            [average_duel("debate", p=0.2), average_duel("debate", "chateval")],
            "debate ranks first by Spearman's rho, 0.395 [0.295, 0.495], 0.040 [0.030, 0.050] above chateval "
            "(Holm-adjusted p = 0.025); but single may be as good",
        ),
        (
            [],
            "debate ranks first by Spearman's rho, 0.395 [0.295, 0.495], and that may be chance: "
            "without a row in common with chateval",
        ),
        (
            [replace(OVER_BASE, units=6), replace(average_duel("debate", "chateval"), units=6)],
            "The judges have too few rows in common to claim anything: debate's Spearman's rho is 0.395; "
            "chateval's Spearman's rho is 0.355; single's Spearman's rho is 0.275",
        ),
    ],
    ids=["holds", "not over the runner-up", "not over the third", "not compared", "few"],
)
def test_the_best_is_called_so_where_its_lead_holds(averages: list[AverageComparison], claim: str) -> None:
    assert headline(with_averages(*averages), "spearman") == claim


def test_a_judge_alone_is_not_the_best_of_anybody() -> None:
    made = study()
    [own] = [one for one in made.leaderboard.standings if (one.judge, one.subject) == ("debate", "coherence")]
    made = study(
        judges=(judge("debate"),),
        subjects=made.subjects[:1],
        leaderboard=Leaderboard((own,), ()),
        comparison=Comparison((), ""),
        bases={},
    )
    alone = "debate ranks like humans significantly better than chance: Spearman's rho 0.420 [0.320, 0.520]"
    assert headline(made, "spearman") == alone
    # One that has no value on every aspect is there, and changes nothing.
    assert headline(replace(made, judges=(*made.judges, judge("single"))), "spearman") == alone


def test_the_companion_of_the_metric_asked_for_is_asked_too(tmp_path: Path) -> None:
    """Whichever of rows and groups leads, the other one is beside it."""
    makes = GATE["a judge of sources beside a judge of candidates"].makes
    made = Study.of(makes(tmp_path, np.random.default_rng(6)))
    both = "of_source ranks sources, of_candidate ranks the candidates of a source"
    assert all(headline(made, metric).startswith(both) for metric in (None, "spearman", "group_spearman"))


def test_judges_are_ranked_on_the_rows_that_all_of_them_judged(tmp_path: Path) -> None:
    """One fails on half of the items, on which the other is wrong: on the others both say the same."""
    results: list[Result] = []
    for number in range(80):
        hard, human = number % 2 == 0, float(1 + number // 2 % 5)
        about: dict[str, Any] = {"item": f"i{number}", "human": human, "aspect": "wit"}
        results.append(scored(**about, protocol="steady", score=6 - human if hard else human))
        about["protocol"] = "failing"
        results.append(failed(**about) if hard else scored(**about, score=human))
    made = Study.of(run_folder(tmp_path / "run", results))
    steady, failing = (made.leaderboard.standing(name, "wit") for name in ("steady", "failing"))
    assert steady is not None and failing is not None
    assert steady.measures["spearman"].value == failing.measures["spearman"].value == pytest.approx(1)
    assert steady.agreement is not None
    assert (steady.agreement.n, steady.agreement.left_out) == (40, {"not judged by all": 40})
    assert "give the same verdict on every row" in headline(made, None)
    told = " ".join(answers(made, None))
    assert "failing failed on 40 of 80 rows (50%), which are left out for all judges" in told


def test_an_aspect_whose_labels_are_all_alike_does_not_hide_the_others(tmp_path: Path) -> None:
    results = []
    for aspect in ("wit", "pace", "spelling"):
        for n in range(80):
            label = {"human": 5.0 if aspect == "spelling" else float(n % 5), "aspect": aspect}
            results.append(scored(f"i{n}", "good", score=float(n % 5), **label))
            results.append(scored(f"i{n}", "fair", score=float(n % 3), **label))
    aspects = [{"name": name, "low": 1, "high": 5} for name in ("wit", "pace", "spelling")]
    made = Study.of(run_folder(tmp_path / "run", results, aspects=aspects))
    assert headline(made, None).startswith("good ranks most like humans: Spearman's rho 1.000")
    told = " ".join(answers(made, None))
    assert "the mean over 2 aspects" in told
    assert "spelling has no Spearman's rho, since all 80 labels are the same" in told
