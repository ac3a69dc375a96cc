"""The courtroom paper's theory on runs whose truth is known: its model, and the premises of its proofs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.gap_analysis import fit_prior
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling

from .processes import Command
from .run_folders import compared, run_folder


def test_the_prior_is_fitted_where_growth_and_rounds_move_the_gap() -> None:
    draws = np.random.default_rng(4)
    paths = []
    for _ in range(1500):
        path: list[float] = []
        for number in range(1, 4):
            # Drawn given that the gap grew or did not, as the model has it: by rejection.
            grown = sum(after > before for before, after in zip([0.0, *path], path, strict=False))
            while True:
                grows = bool(draws.random() < 0.5)
                gap = draws.beta(2 + grown + grows, 6 + number - grown - grows)
                if (gap > (path[-1] if path else 0.0)) == grows:
                    break
            path.append(float(gap))
        paths.append(path)
    fitted = fit_prior(np.array(paths))
    assert fitted is not None
    assert fitted == pytest.approx((2, 6), rel=0.35)
    assert fit_prior(np.array(paths[:9])) is None


def debate(item: int, protocol: str, *scores: tuple[float, float]) -> Result:
    winner = "1" if scores[-1][0] > scores[-1][1] else "2"
    rounds: dict[str, Any] = {"scores": scores[-1], "score_by_round": scores, "rounds": len(scores)}
    return compared(f"i{item}", protocol, winner=winner, human="1", **rounds)


def test_premises_are_held_and_refuted_where_they_are_true_and_false(tmp_path: Path) -> None:
    plain = [debate(n, "baseline", (70, 60 + n % 3)) for n in range(30)]
    merged = [debate(n, "more", (90, 50 + n % 5)) for n in range(30)]
    shrinking = [debate(n, "samre", (90, 60 - n % 3), (80, 66 + n % 4)) for n in range(30)]
    picked = [debate(n, "more", (95, 66 + n % 3)) for n in range(30)]
    common: dict[str, Any] = {"kind": "compare", "aspects": ()}
    first = run_folder(
        tmp_path / "all",
        [*plain, *merged, *shrinking],
        protocols={"baseline": {}, "more": {"aggregate": "llm", "advocates": 3}, "samre": {}},
        **common,
    )
    second = run_folder(
        tmp_path / "best", picked, protocols={"more": {"aggregate": "best", "advocates": 3}}, **common
    )
    (courtroom,) = Study.of([first, second], resampling=Resampling(100)).courtrooms
    outcomes = {premise.claim: premise.outcome for premise in courtroom.premises}
    (aggregate,) = (outcome for claim, outcome in outcomes.items() if claim.startswith("an aggregate"))
    assert aggregate == "refuted"
    widened = [claim for claim, outcome in outcomes.items() if "widen" in claim and outcome == "holds"]
    assert any("more (all) minus baseline" in claim for claim in widened), outcomes
    assert outcomes["gaps grow with the rounds: samre, last round minus first"] == "refuted"
    by_round = {row.round: row for row in courtroom.predicted if row.judge == "samre"}
    assert by_round[1].observed.value == pytest.approx(np.mean([(30 + n % 3) / 114 for n in range(30)]))
    excess = by_round[2].excess
    assert excess.high is not None and excess.high < 0  # the model makes gaps grow, and these shrink


def test_the_prior_and_the_threshold_are_settable(tmp_path: Path, command: Command) -> None:
    runs = run_folder(
        tmp_path / "r", [debate(n, "samre", (90, 60)) for n in range(12)], kind="compare", aspects=()
    )
    words = ("report", str(runs), "--table", "score-gap", "--resamples", "20")
    assert command(*words, "--gap-prior", "2,3", "--eps", "0.2") == 0
    out = " ".join(command.printed.split())
    assert "eps 0.2" in out and "Beta(2 + w, 3 + i - w)" in out
    for wrong in ("0,1", "1", "a,b", "1,2,3"):
        assert command(*words, "--gap-prior", wrong) == 2
        assert f"--gap-prior '{wrong}': give two numbers above 0" in command.errors
