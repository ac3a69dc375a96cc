"""The courtroom paper's gap analysis and its theorems: against scipy's Beta distribution, theory, and counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.eval.statistics.gap_analysis import (
    gap_analysis,
    gap_posterior,
    gaps_of,
    growths_of,
    rounds_until,
)
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.eval.statistics.score_differentiation import (
    gaps_by_round,
    iteration_complexity,
    score_differentiation,
)
from jurygraph.state.errors import UsageError
from scipy import stats

QUICK = Resampling(resamples=40, seed=6)
Row = dict[str, Any]


@given(st.integers(1, 400), st.floats(0, 1), st.floats(0.01, 1), st.floats(0.1, 5), st.floats(0.1, 5))
def test_the_model_against_scipy(rounds: int, share: float, eps: float, alpha: float, beta: float) -> None:
    growths = round(share * rounds)
    found = gap_posterior(rounds, growths, eps, alpha, beta)
    wanted = stats.beta(alpha + growths, beta + rounds - growths)
    assert found.mean == pytest.approx(wanted.mean(), rel=1e-9)
    assert found.variance == pytest.approx(wanted.var(), rel=1e-9)
    assert found.tail == pytest.approx(wanted.sf(1 - eps), abs=1e-9)


@given(st.integers(1, 2000), st.floats(0, 1), st.floats(0.001, 1))
def test_where_the_bound_holds_it_is_one(rounds: int, share: float, eps: float) -> None:
    found = gap_posterior(rounds, round(share * rounds), eps)
    if found.status == "does not apply":
        assert found.bound is None
        assert found.mean <= 1 - eps / 2
        return
    assert found.bound is not None
    assert found.bound <= found.tail + 1e-12
    assert found.mean > 1 - eps / 2
    assert (found.status == "vacuous") == (found.bound <= 0)


def test_many_rounds_without_growth_refute_the_unconditional_bound() -> None:
    """alpha = beta = 1, i = 1000, w = 0: taken literally the bound says .9996, the model itself says 0."""
    found = gap_posterior(rounds=1000, growths=0, eps=0.1)
    assert found.mean == pytest.approx(1 / 1002)
    assert 1 - 4 * found.variance / 0.1**2 > 0.999
    assert found.tail < 1e-300
    assert (found.bound, found.status) == (None, "does not apply")


def test_a_vacuous_bound_is_called_so() -> None:
    """It takes a beta below 1: where the proof applies, 4 Var >= eps^2 needs a > b (a + b + 1), and so b < 1."""
    found = gap_posterior(rounds=20, growths=20, eps=0.02, beta=0.1)
    assert (found.status, found.bound is not None and found.bound <= 0) == ("vacuous", True)
    with_default_prior = [
        gap_posterior(i, w, eps / 50) for i in range(1, 30) for w in range(i + 1) for eps in range(1, 51)
    ]
    assert {each.status for each in with_default_prior} == {"holds", "does not apply"}


@pytest.mark.parametrize(
    ("gaps", "growths"),
    [
        ([], ()),
        ([0], (0,)),
        ([0.1], (1,)),
        ([0, 0.2, 0.2, 0.1, 0.15], (0, 1, 1, 1, 2)),
        ([0.3, 0.1, 0.2], (1, 1, 2)),
    ],
)
def test_growths_are_counted_from_round_to_round(gaps: list[float], growths: tuple[int, ...]) -> None:
    assert growths_of(gaps) == growths


def test_equal_gaps_that_floats_tell_apart_are_no_growth() -> None:
    gaps = gaps_of([(0.3, 0.2), (0.8, 0.7)], scale=(0, 1))
    assert gaps[1] > gaps[0]
    assert growths_of(gaps) == (1, 1)


def test_totals_are_a_share_of_114() -> None:
    found = gap_analysis([(100, 43), (120, 6)], eps=0.5)
    assert [each.gap for each in found] == [0.5, 1.0]
    assert [each.posterior.mean for each in found] == pytest.approx([2 / 3, 3 / 4])


@given(st.lists(st.tuples(st.integers(6, 120), st.integers(6, 120)), min_size=1, max_size=6))
def test_which_answer_stands_first_does_not_matter(pairs: list[tuple[int, int]]) -> None:
    assert gap_analysis(pairs, eps=0.2) == gap_analysis([(b, a) for a, b in pairs], eps=0.2)


def test_rounds_until_a_threshold() -> None:
    gaps = gaps_of([(60, 60), (70, 60), (90, 50)])
    assert [rounds_until(gaps, eps) for eps in (0.05, 0.3, 0.9)] == [2, 3, None]


def test_bad_input_is_refused() -> None:
    for eps in (0, -1, 1.5):
        with pytest.raises(UsageError, match="eps must be above 0 and at most 1"):
            gap_posterior(3, 1, eps)
    with pytest.raises(UsageError, match="alpha and beta must be above 0"):
        gap_posterior(3, 1, 0.1, alpha=0)
    with pytest.raises(UsageError, match="of 3 rounds, 4 cannot have made the gap grow"):
        gap_posterior(3, 4, 0.1)
    with pytest.raises(UsageError, match=r"round 2: 4\.0 is no pair of scores"):
        gaps_of([(60, 60), 4.0])  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"round 1: \[121, 60\] is off the scale from 6 to 120"):
        gaps_of([(121, 60)])
    with pytest.raises(UsageError, match="scale must run upwards, not from 5 to 1"):
        gaps_of([], scale=(5, 1))


def case(item: str, protocol: str, *pairs: tuple[float, float], **more: Any) -> Row:
    return {
        "item": item,
        "group": f"g{item}",
        "protocol": protocol,
        "status": "ok",
        "scores": pairs[-1] if pairs else None,
        "score_by_round": pairs,
        **more,
    }


def test_rounds_are_averaged_over_the_cases_that_held_them() -> None:
    rows = [case("a", "samre", (60, 60), (80, 60)), case("b", "samre", (90, 60), (80, 60), (120, 6))]
    rows.append(case("c", "samre", status="failed"))
    found = gaps_by_round(rows, eps=0.5, resampling=QUICK)
    assert [each.n for each in found.rounds] == [2, 2, 1]
    assert found.rounds[0].gap.value == pytest.approx(15 / 114)
    assert found.rounds[2].tail.value == pytest.approx(stats.beta(3, 2).sf(0.5))
    assert [(each.holds, each.vacuous, each.not_applying) for each in found.rounds] == [
        (0, 0, 2),
        (0, 0, 2),
        (0, 0, 1),
    ]
    assert (found.n, found.left_out) == (2, {"failed": 1})


def test_a_bad_row_is_named() -> None:
    with pytest.raises(UsageError, match="item x: round 1: "):
        gaps_by_round([case("x", "samre", (200, 1))])
    with pytest.raises(UsageError, match="item x, samre: round 1: "):
        score_differentiation([case("x", "samre", (200, 1))], ["more", "samre"])


def trials(seed: int = 0, items: int = 25) -> list[Row]:
    random = np.random.default_rng(seed)
    rows = []
    for at in range(items):
        for protocol, spread in (("more", 30), ("samre", 15), ("baseline", 15)):
            gap = float(random.integers(0, spread))
            rows.append(case(str(at), protocol, (60 + gap / 2, 60), (60 + gap, 60)))
    return rows


def test_differentiation_against_scipy() -> None:
    rows = trials()
    found = score_differentiation(rows, resampling=QUICK)
    of = {
        name: [abs(r["scores"][0] - 60) / 114 for r in rows if r["protocol"] == name] for name in found.gaps
    }
    assert {name: gap.value for name, gap in found.gaps.items()} == pytest.approx(
        {name: np.mean(values) for name, values in of.items()}
    )
    p_values = []
    for other in ("samre", "baseline"):
        wanted = stats.ttest_rel(of["more"], of[other])
        assert found.tests[other].t == pytest.approx(wanted.statistic, abs=1e-9)
        p_values.append(wanted.pvalue)
    assert sorted(found.adjusted.values()) == pytest.approx(  # type: ignore[type-var]
        [2 * min(p_values), max(2 * min(p_values), *p_values)]
    )


def test_items_that_a_protocol_did_not_judge_count_for_none() -> None:
    rows = [r for r in trials(items=4) if not (r["item"] == "0" and r["protocol"] == "samre")]
    rows += [case("1", "more", (6, 120), repeat=1), case("2", "chateval", (6, 120))]
    found = score_differentiation(rows, resampling=QUICK)
    assert found.n == 3
    assert found.left_out == {"no scores of samre": 1, "no scores of samre, baseline": 1}


def test_complexity_counts_who_came_first() -> None:
    wide, narrow = (80, 60), (61, 60)
    rows = [
        *(case("a", "more", wide), case("a", "samre", narrow, wide)),
        *(case("b", "more", wide), case("b", "samre", narrow)),
        *(case("c", "more", narrow), case("c", "samre", narrow, narrow, wide)),
        *(case("d", "more", narrow), case("d", "samre", narrow)),
    ]
    found = iteration_complexity(rows, eps=0.1, resampling=QUICK)
    more, samre, against = found.protocols["more"], found.protocols["samre"], found.against["samre"]
    assert (more.after, more.never, more.share.value, more.rounds.value) == ({1: 2}, 2, 0.5, 1.0)
    assert (samre.after, samre.never, samre.rounds.value) == ({2: 1, 3: 1}, 2, 2.5)
    assert (against.sooner, against.later, against.same) == (2, 1, 1)
    assert against.p == pytest.approx(stats.binomtest(2, 3).pvalue)


def test_nothing_in_common_gives_no_figures() -> None:
    found = score_differentiation([case("a", "more", (80, 60))], ["more", "samre"], resampling=QUICK)
    assert (found.n, found.gaps["more"].value, found.tests["samre"].p) == (0, None, None)
    needed = iteration_complexity([], 0.1, resampling=QUICK)
    assert (needed.n, needed.protocols["more"].share.value, needed.against["samre"].p) == (0, None, None)


def test_one_protocol_cannot_be_compared() -> None:
    for protocols in (["more"], ["more", "more"], []):
        with pytest.raises(UsageError, match="give at least two different protocols"):
            score_differentiation([], protocols)
    with pytest.raises(UsageError, match="eps must be above 0"):
        iteration_complexity([], 0)
