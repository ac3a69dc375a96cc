"""Test the courtroom paper's model, premises, gaps and theorems on runs with known truth."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.gap_analysis import (
    RoundOfGaps,
    fit_prior,
    gaps_by_round,
    iteration_complexity,
    score_differentiation,
)
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.state.errors import UsageError
from scipy import stats

from .processes import Command, in_this_process
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


def test_gaps_at_the_ends_of_the_scale_do_not_prevent_the_fit() -> None:
    gaps = np.random.default_rng(4).beta(2, 2, size=(400, 1))
    gaps[0] = 0.0
    gaps[1] = 1.0
    fitted = fit_prior(gaps)
    assert fitted is not None
    # Each gap is a growth from 0, so alpha is one less than drawn.
    assert fitted == pytest.approx((1, 2), rel=0.5)


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
        tmp_path / "best",
        picked,
        protocols={"more": {"aggregate": "best", "advocates": 3}},
        **common,
    )
    (courtroom,) = Study.of([first, second], resampling=Resampling(100)).courtrooms
    outcomes = {premise.claim: premise.outcome for premise in courtroom.premises}
    (aggregate,) = (
        outcome for claim, outcome in outcomes.items() if claim.startswith("an aggregate")
    )
    assert aggregate == "refuted"
    widened = [
        claim for claim, outcome in outcomes.items() if "widen" in claim and outcome == "holds"
    ]
    assert any("more (all) minus baseline" in claim for claim in widened), outcomes
    assert outcomes["gaps grow with the rounds: samre, last round minus first"] == "refuted"
    by_round = {row.round: row for row in courtroom.predicted if row.judge == "samre"}
    assert by_round[1].observed.value == pytest.approx(
        np.mean([(30 + n % 3) / 114 for n in range(30)])
    )
    excess = by_round[2].excess
    assert (
        excess.high is not None and excess.high < 0
    )  # the model makes gaps grow, and these shrink


def test_the_prior_and_the_threshold_are_settable(tmp_path: Path, command: Command) -> None:
    runs = run_folder(
        tmp_path / "r",
        [debate(n, "samre", (90, 60)) for n in range(12)],
        kind="compare",
        aspects=(),
    )
    words = ("report", str(runs), "--table", "score-gap", "--resamples", "20")
    assert command(*words, "--gap-prior", "2,3", "--eps", "0.2") == 0
    out = " ".join(command.printed.split())
    assert "eps 0.2" in out and "Beta(2 + w, 3 + i - w)" in out
    for wrong in ("0,1", "1", "a,b", "1,2,3"):
        assert command(*words, "--gap-prior", wrong) == 2
        assert f"--gap-prior '{wrong}': give two numbers above 0" in command.errors


QUICK = Resampling(resamples=40, seed=6)


def after(rounds: int, growths: int, eps: float) -> RoundOfGaps:
    """Return the model after some rounds, in the first of which the gap grew."""
    gaps = np.minimum(np.arange(1.0, rounds + 1), growths) / (rounds + 1)
    # The model has no interval of its own.
    none = Resampling(resamples=0)
    return gaps_by_round(gaps[None, :], np.zeros(1, dtype=np.intp), eps, none)[-1]


@pytest.mark.slow
@given(st.integers(1, 400), st.floats(0, 1), st.floats(0.01, 1))
def test_the_model_against_scipy(rounds: int, share: float, eps: float) -> None:
    growths = round(share * rounds)
    found = after(rounds, growths, eps)
    wanted = stats.beta(1 + growths, 1 + rounds - growths)
    assert found.growths.value == growths
    assert found.tail.value == pytest.approx(wanted.sf(1 - eps), abs=1e-9)
    assert (found.not_applying == 1) == (wanted.mean() <= 1 - eps / 2)
    if found.holds:
        assert found.tail.value is not None
        assert 0 < 1 - 4 * wanted.var() / eps**2 <= found.tail.value + 1e-12
    # It requires a prior below 1: if the proof applies, 4 Var >= eps^2 needs a > b (a + b + 1), so
    # b < 1.
    assert found.vacuous == 0


@pytest.mark.parametrize(("gaps", "growths"), [
    ([0], [0]), ([0.1], [1]), ([0, 0.2, 0.2, 0.1, 0.15], [0, 1, 1, 1, 2]), ([0.3, 0.1, 0.2], [1, 1, 2]),
    ([0.3 - 0.2, 0.8 - 0.7], [1, 1]),
])  # fmt: skip
def test_growths_are_counted_from_round_to_round(gaps: list[float], growths: list[int]) -> None:
    found = gaps_by_round(np.array([gaps]), np.zeros(1, dtype=np.intp), 0.5, QUICK)
    assert [each.growths.value for each in found] == growths


def test_rounds_are_averaged_over_the_cases_that_held_them() -> None:
    gaps = np.array([[0, 20, np.nan], [30, 20, 114]]) / 114
    found = gaps_by_round(gaps, np.arange(2), 0.5, QUICK)
    of_bound = [(each.n, each.holds, each.vacuous, each.not_applying) for each in found]
    assert of_bound == [(2, 0, 0, 2), (2, 0, 0, 2), (1, 0, 0, 1)]
    assert found[0].gap.value == pytest.approx(15 / 114)
    assert found[2].tail.value == pytest.approx(stats.beta(3, 2).sf(0.5))


def test_differentiation_against_scipy() -> None:
    random = np.random.default_rng(0)
    gaps = {
        name: random.integers(0, spread, 25) / 114
        for name, spread in (("a", 30), ("b", 15), ("c", 15))
    }
    first, *others = score_differentiation(gaps, np.arange(25), QUICK)
    means = {name: np.mean(values) for name, values in gaps.items()}
    assert {of.judge: of.gap.value for of in (first, *others)} == pytest.approx(means)
    for other in others:
        wanted = stats.ttest_rel(gaps[other.judge], gaps["a"])
        interval = wanted.confidence_interval()
        assert other.p == pytest.approx(wanted.pvalue)
        assert other.difference is not None
        found = other.difference.value, other.difference.low, other.difference.high
        assert found == pytest.approx(
            (means[other.judge] - means["a"], interval.low, interval.high)
        )


def test_differentiation_is_tested_over_groups_and_names_its_direction(tmp_path: Path) -> None:
    """Items of a group share their difference, so 12 groups of 5 items count as 12, not 60."""
    random = np.random.default_rng(3)
    shifts = np.repeat(random.normal(-0.03, 0.02, 12), 5)
    clusters = np.repeat(np.arange(12), 5)
    base = random.uniform(0.2, 0.4, 60)
    _, other = score_differentiation({"more": base, "samre": base + shifts}, clusters, QUICK)
    assert other.p == pytest.approx(stats.ttest_1samp(shifts[::5], 0).pvalue)

    wide = [debate(n, "more", (90, 60)) for n in range(48)]
    narrow = [debate(n, "samre", (90, 60 + n // 4 % 3 + 1)) for n in range(48)]
    grouped = [
        row.model_copy(update={"group": f"g{int(row.item[1:]) // 4}"}) for row in (*wide, *narrow)
    ]
    run = run_folder(tmp_path / "r", grouped, kind="compare", aspects=())
    [courtroom] = Study.of(run, resampling=QUICK).courtrooms
    more, samre = courtroom.differentiation.rows
    assert (courtroom.unit, more.clusters, more.direction) == ("groups", 12, None)
    assert samre.direction == "smaller"
    assert samre.difference is not None
    assert samre.difference.value == pytest.approx(-2 / 114)
    tests = [row.p for row in courtroom.differentiation.rows]
    tests += [row.p for row in courtroom.complexity.rows]
    tests += [row.p for row in courtroom.predicted]
    tests += [row.p for row in courtroom.premises]
    assert samre.p is not None
    assert samre.adjusted == pytest.approx(samre.p * sum(p is not None for p in tests))
    done = in_this_process("report", "r", "--table", "score-gap", cwd=tmp_path)
    assert "Δ vs. more: judge - more" in done.stdout
    assert "gap smaller than that of more by 0.018" in done.stdout


def test_few_groups_have_a_score_gap_without_a_claim_and_the_number_needed(
    tmp_path: Path, command: Command
) -> None:
    run = "run samre,more,baseline --data demo-pairs --limit 8 --set samre.jurors=0"
    assert command(*run.split(), "--out", str(tmp_path / "r")) == 0
    assert command("report", str(tmp_path / "r"), "--table", "score-gap") == 0
    _, _, gaps = command.printed.partition("final score gap (Theorem 1)")
    final, _, _ = gaps.partition("rounds until")
    assert "4 groups are too few to claim anything: at least 10 groups are needed" in final
    assert not {"p", "(Holm)", "finding", "["} & {*final.split()}
    [samre] = [line.split() for line in final.splitlines() if line.split()[:1] == ["samre"]]
    assert samre == ["samre", "8", "0.105", "-0.013"]


def test_complexity_counts_who_came_first() -> None:
    rounds = {"more": np.array([1, 1, np.inf, np.inf]), "samre": np.array([2, np.inf, 3, np.inf])}
    more, samre = iteration_complexity(rounds, np.arange(4), QUICK)
    assert (more.after, more.never, more.share.value, more.rounds.value) == ({1: 2}, 2, 0.5, 1.0)
    assert (samre.after, samre.never, samre.rounds.value) == ({2: 1, 3: 1}, 2, 2.5)
    assert (samre.sooner, samre.later, samre.same) == (2, 1, 1)
    assert samre.p is None, "4 items are too few for a test"
    many = {name: np.tile(values, 5) for name, values in rounds.items()}
    assert iteration_complexity(many, np.arange(20), QUICK)[1].p == pytest.approx(
        stats.binomtest(10, 15).pvalue
    )
    # Groups of the same four items: more is ahead in each of them.
    assert iteration_complexity(many, np.arange(20) // 4, QUICK)[1].p is None
    forty = {name: np.tile(values, 10) for name, values in rounds.items()}
    assert iteration_complexity(forty, np.arange(40) // 4, QUICK)[1].p == pytest.approx(2 * 0.5**10)


def test_nothing_in_common_gives_no_figures() -> None:
    none = {"more": np.zeros(0), "samre": np.zeros(0)}
    more, samre = score_differentiation(none, np.zeros(0, dtype=np.intp), QUICK)
    assert (more.n, more.gap.value, samre.p) == (0, None, None)
    more_rounds, samre_rounds = iteration_complexity(none, np.zeros(0, dtype=np.intp), QUICK)
    assert (more_rounds.n, more_rounds.share.value, samre_rounds.p) == (0, None, None)


def test_items_that_a_protocol_did_not_judge_count_for_none(tmp_path: Path) -> None:
    rows = [compared(item, name, winner="1") for item in "abcd" for name in ("more", "samre")]
    rows = [row for row in rows if (row.item, row.protocol) != ("a", "samre")]
    rows.append(compared("b", "more", winner="2", repeat=1))
    [found] = Study.of(
        run_folder(tmp_path / "r", rows, kind="compare"), resampling=QUICK
    ).courtrooms
    assert {judge.n for judge in found.differentiation.rows} == {3}
    assert found.differentiation.left_out == {"no scores of samre": 2}
    off = run_folder(
        tmp_path / "off", [compared("x", "more", winner="1", scores=(200.0, 9.0))], kind="compare"
    )
    with pytest.raises(
        UsageError, match=r"item x, more: \[200.0, 9.0\] is off the scale from 6 to 120"
    ):
        Study.of(off, resampling=QUICK)
