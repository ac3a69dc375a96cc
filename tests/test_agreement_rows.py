"""Which rows count, and what is said of those that do not; ties, votes, repeats."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, stdev
from typing import Any

import pytest
from jurygraph.eval.results.agreement import (
    PreferenceAgreement,
    Range,
    RepeatedAgreement,
    RowsByAspect,
    ScoreAgreement,
    Ties,
    Votes,
    agreement,
)
from jurygraph.state.errors import DataError

from .agreement_columns import cohen_kappa

Row = dict[str, Any]


def scores(rows: list[Row]) -> ScoreAgreement:
    found = agreement(rows)["score"]
    assert isinstance(found, ScoreAgreement)
    return found


def preferences(rows: list[Row], ties: Ties = "class", votes: Votes = "majority") -> PreferenceAgreement:
    found = agreement(rows, ties=ties, votes=votes)["preference"]
    assert isinstance(found, PreferenceAgreement)
    return found


GOOD = [{"item": f"i{n}", "score": n, "human": n % 3} for n in range(6)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"status": "failed", "score": None, "human": 3}, "failed"),
        ({"status": "failed", "score": 4, "human": None}, "failed"),
        ({"score": 4, "human": None}, "no label"),
        ({"score": 4, "human": []}, "no label"),
        ({"score": None, "human": 4}, "not judged"),
        ({"score": "", "human": "4"}, "not judged"),
        ({"score": math.nan, "human": 4}, "not a number"),
        ({"score": 4, "human": math.inf}, "not a number"),
        ({"score": 4, "human": [3, math.nan]}, "not a number"),
        ({"score": 4, "human": [3, "x"]}, "not a number"),
        ({"score": 4, "human": [None, None]}, "no label"),
        ({"score": True, "human": 3}, "not a number"),
        ({"score": "four", "human": 3}, "not a number"),
        ({"score": 10**400, "human": 3}, "not a number"),
        ({"score": 4, "human": {"wit": 3}}, "not a number"),
        ({"score": 4, "human": "tie"}, "not a number"),
        (dict(GOOD[0]), "duplicate"),
    ],
)
def test_rows_that_do_not_count_are_counted_by_reason(bad: Row, reason: str) -> None:
    found = scores([*GOOD, {"item": "bad", **bad}])
    assert (found.n, found.left_out) == (6, {reason: 1})
    assert found.over_rows == scores(GOOD).over_rows


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"winner": "1", "human": None}, "no label"),
        ({"winner": None, "human": "2"}, "not judged"),
        ({"winner": "model_a", "human": "2"}, "not 1, 2 or tie"),
        ({"winner": "1", "human": "A"}, "not 1, 2 or tie"),
        ({"winner": "1", "human": ["1", "both"]}, "not 1, 2 or tie"),
        ({"winner": None, "human": "2", "status": "failed"}, "failed"),
    ],
)
def test_comparisons_that_do_not_count_are_counted_by_reason(bad: Row, reason: str) -> None:
    good = [{"item": n, "winner": "12"[n % 2], "human": "1"} for n in range(4)]
    found = preferences([{"item": "bad", **bad}, *good])
    assert (found.n, found.left_out, found.accuracy.value) == (4, {reason: 1}, 0.5)


def test_a_row_like_another_counts_once_and_one_that_contradicts_it_is_an_error() -> None:
    rows = [*GOOD, {**GOOD[2], "score": 5}]
    with pytest.raises(DataError, match=r"row 3 and row 7 have the same item.*delete one of them"):
        agreement(rows)
    called = RowsByAspect("scores.csv, line")
    called.add({"item": "a", "winner": "1", "human": "1"}, place=2)
    called.add({"item": "a", "winner": "1", "human": "2"}, place=9)
    with pytest.raises(DataError, match=r"scores.csv, line 2 and scores.csv, line 9"):
        called.agreement()


@pytest.mark.parametrize("field", ["item", "group", "system", "aspect", "protocol", "repeat"])
def test_rows_that_differ_in_what_they_are_of_are_no_duplicates(field: str) -> None:
    one = {"item": "a", "group": "g", "system": "m", "aspect": "score", "protocol": "p", "repeat": 0}
    rows = [{**one, "score": 1, "human": 1}, {**one, field: "1", "score": 2, "human": 3}]
    assert sum(found.n for found in agreement(rows).values()) == 2
    assert scores([{"score": 1, "human": 2}] * 3).n == 3, "rows without an item are all different"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [{"aspect": "wit", "score": 1, "human": 1}, {"aspect": "wit", "winner": "1", "human": "1"}],
            r"row 2 and row 1, both of aspect 'wit': one has a score and one a winner",
        ),
        ([{"winner": "1", "human": "1"}, {"score": 1, "human": 1}], "both of no aspect"),
        ([{"score": 1, "winner": "1", "human": "1"}], "row 1: has both a score and a winner"),
        (
            [{"aspect": "preference", "score": 1, "human": 1}, {"winner": "1", "human": "1"}],
            "both called 'preference'",
        ),
    ],
)
def test_scores_and_winners_in_one_aspect_are_an_error(rows: list[Row], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        agreement(rows)


def test_failed_rows_are_of_the_kind_of_the_others_wherever_they_stand() -> None:
    """A failed comparison has no winner; in a table its label may look like a number."""
    failed: Row = {"status": "failed", "human": "1"}
    assert preferences([failed, {"winner": "1", "human": 1}]).left_out == {"failed": 1}
    assert scores([failed, {"score": "1", "human": "1"}]).left_out == {"failed": 1}
    nothing = scores([{"score": 1}, {"score": None, "human": 2}])
    assert (nothing.n, nothing.left_out, nothing.judged) == (0, {"no label": 1, "not judged": 1}, None)
    assert all(one.value is None for one in nothing.over_rows.values())
    only_failed = preferences([{"winner": None, **failed}])
    assert (only_failed.n, only_failed.left_out, only_failed.kappa.value) == (0, {"failed": 1}, None)


def test_several_annotators() -> None:
    """Scores: the mean of those who gave one; preferences: their majority, a tie without one."""
    means = scores([{"score": n, "human": human} for n, human in enumerate([[1, 2, "4.5"], [3, 4, None]])])
    assert means.human == Range(2.5, 3.5)
    rows = [{"winner": "1", "human": ["1", "1", "2"]}, {"winner": "tie", "human": ["1", "2"]}]
    assert preferences(rows).accuracy.value == 1.0
    forms = [{"winner": form, "human": "1"} for form in (1, "1", 2.0, " TIE ", 3, True)]
    found = preferences(forms)
    assert (found.accuracy.value, found.ties, found.left_out) == (0.5, 1, {"not 1, 2 or tie": 2})


def test_scales_may_differ_and_are_told() -> None:
    """Very large numbers are numbers."""
    for scale in (0.1, 1e300):
        found = scores([{"score": n * scale, "human": 1 + n} for n in range(5)])
        assert (found.judged, found.human) == (Range(0, 4 * scale), Range(1, 5))
        assert found.over_rows["pearson"].value == pytest.approx(1)


def test_rows_without_a_group_among_others_are_drawn_alone() -> None:
    rows = [{"item": n, "group": "g" if n < 3 else None, "score": n, "human": (n * 2) % 5} for n in range(6)]
    found = scores(rows)
    assert (found.groups, found.units) == (1, 4)
    assert (found.per_group["pearson"].groups, found.per_group["pearson"].skipped) == (1, 3)


# --- ties and votes -----------------------------------------------------------------------------------------------

JUDGED = ["1", "2", "tie", "1", "tie", "2", "1"]
HUMAN = ["1", "2", "1", "tie", "tie", "1", "1"]
COMPARED = [{"item": n, "winner": j, "human": h} for n, (j, h) in enumerate(zip(JUDGED, HUMAN, strict=True))]


def test_a_tie_as_a_class() -> None:
    found = preferences(COMPARED)
    assert (found.n, found.ties, found.human_ties) == (7, 2, 2)
    assert found.accuracy.value == pytest.approx(4 / 7)
    assert found.kappa.value == pytest.approx(cohen_kappa(JUDGED, HUMAN))


def test_human_ties_left_out() -> None:
    """A judge's tie against a human winner is wrong."""
    found = preferences(COMPARED, ties="left_out")
    kept = [(j, h) for j, h in zip(JUDGED, HUMAN, strict=True) if h != "tie"]
    assert (found.n, found.left_out, found.ties, found.units) == (5, {"human tie": 2}, 1, 5)
    assert found.accuracy.value == pytest.approx(3 / 5)
    assert found.kappa.value == pytest.approx(cohen_kappa(*zip(*kept, strict=True)))
    nothing = preferences([{"winner": "1", "human": "tie"}] * 2, ties="left_out")
    assert (nothing.n, nothing.accuracy.value, nothing.left_out) == (0, None, {"human tie": 2})


def test_human_ties_as_half() -> None:
    """As if a tied person said 1 half the time and 2 the other half, and so a judge who ties there."""
    found = preferences(COMPARED, ties="half")
    assert found.n == 7
    assert found.accuracy.value == pytest.approx((3 + 2 * 0.5) / 7)
    split = [(j, h) for j, h in zip(JUDGED, HUMAN, strict=True) if h != "tie"] * 4
    split += [("1", "1"), ("1", "2")] * 2 + [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert found.kappa.value == pytest.approx(cohen_kappa(*zip(*split, strict=True)))


@pytest.mark.parametrize("ties", ["class", "left_out", "half"])
@pytest.mark.parametrize("listed", [True, False])
def test_each_vote_is_an_instance(ties: Ties, listed: bool) -> None:
    """The votes may be the label, or stand beside it as a run's results have them."""
    rows: list[Row] = []
    single: list[Row] = []
    judged = {"1": ["1", "1", "tie"], "2": ["2", "1"], "tie": ["tie"], " tie": ["1", "1", "2", "tie"]}
    for n, (winner, votes) in enumerate(judged.items()):
        labels = {"human": votes} if listed else {"human": "tie", "annotations": votes}
        rows.append({"item": n, "winner": winner, **labels})
        single += [{"item": f"{n}-{k}", "winner": winner, "human": vote} for k, vote in enumerate(votes)]
    found, wanted = preferences(rows, ties, "each"), preferences(single, ties)
    assert (found.n, found.accuracy.value, found.kappa.value) == (
        wanted.n,
        wanted.accuracy.value,
        wanted.kappa.value,
    )
    assert found.left_out == wanted.left_out
    assert found.units == (4 if ties != "left_out" else 3)


# --- repeats ------------------------------------------------------------------------------------------------------


def repeated(judge: Callable[[int, int], float]) -> list[Row]:
    return [
        {"item": n, "group": n // 4, "repeat": r, "score": judge(n, r), "human": n % 5}
        for r in range(3)
        for n in range(12)
    ]


def over_repeats(rows: list[Row]) -> dict[str, RepeatedAgreement]:
    collected = RowsByAspect()
    for row in rows:
        collected.add(row)
    return collected.over_repeats()


def test_repeats_are_drawn_together_and_have_a_mean_and_a_deviation() -> None:
    rows = repeated(lambda n, r: (n * (r + 2)) % 7)
    pooled, ungrouped = scores(rows), scores([{**row, "group": None} for row in rows])
    assert (pooled.n, pooled.repeats, pooled.units, pooled.groups) == (36, 3, 3, 3)
    assert (ungrouped.units, ungrouped.per_group) == (12, {})
    each = [scores([row for row in rows if row["repeat"] == r]) for r in range(3)]
    found = over_repeats(rows)["score"]
    assert (found.repeats, found.n) == (3, (12, 12, 12))
    for name in ("pearson", "kendall"):
        values = [one.over_rows[name].value for one in each]
        spread = found.figures[f"over_rows.{name}"]
        assert spread.values == tuple(values)
        assert spread[:2] == pytest.approx((fmean(map(float, values)), stdev(map(float, values))))  # type: ignore[arg-type]
        within = tuple(one.per_group[name].value for one in each)
        assert found.figures[f"per_group.{name}"].values == within


def test_a_repeat_without_a_figure_is_none_and_one_repeat_is_no_spread() -> None:
    rows = repeated(lambda n, r: n if r else 3)
    spread = over_repeats(rows)["score"].figures["over_rows.spearman"]
    assert spread.values[0] is None
    assert spread.sd == pytest.approx(0)
    assert over_repeats(rows[:12]) == {}
