"""Test agreement statistics and intervals against other tools, definitions and resamples."""

import math
import tracemalloc
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jurygraph.eval import agreement
from jurygraph.eval.results.agreement import (
    PreferenceAgreement,
    Range,
    RowsByAspect,
    ScoreAgreement,
    Ties,
)
from jurygraph.eval.statistics.alignment import Floats
from jurygraph.eval.statistics.correlation import (
    STATISTICS,
    correlation,
    correlations_within,
    resampled_correlations,
)
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import Sample
from jurygraph.state.errors import DataError
from scipy import stats

from .agreement_columns import SCIPY, cohen_kappa

Row = dict[str, Any]
NAMES = tuple(SCIPY)


def scores(rows: list[Row]) -> ScoreAgreement:
    found = agreement(rows)["score"]
    assert isinstance(found, ScoreAgreement)
    return found


def preferences(
    rows: list[Row], resampling: Resampling | None = None, **rule: Any
) -> PreferenceAgreement:
    found = agreement(rows, resampling, **rule)["preference"]
    assert isinstance(found, PreferenceAgreement)
    return found


def correlate(
    name: str, x: Any, y: Any, units: Any = None, how: Resampling | None = None
) -> Statistic:
    """Correlate two columns over all rows; ``units``: the rows to draw together."""
    first = np.array(x, dtype=float)
    second = np.array(y, dtype=float)
    drawn = np.arange(len(first)) if units is None else units
    return Sample("score", first, second, drawn, False, how or Resampling()).statistic(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [2, 3, 10, 2_000])
@pytest.mark.parametrize("levels", [2, 5, 10**9])
def test_against_scipy(name: str, size: int, levels: int) -> None:
    """Few levels, as people give them, and hardly any ties, as weighted scores have them."""
    random = np.random.default_rng([size, levels])
    x = random.integers(0, levels, size) / 7
    y = np.where(random.random(size) < 0.5, x, random.integers(0, levels, size) / 7)
    x[0], x[1], y[0], y[1] = 0, 1, 1, 0
    wanted = SCIPY[name](x, y)
    assert correlate(name, x, y).value == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_nearly_constant_columns_are_still_data(name: str) -> None:
    x = [1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)]
    assert correlate(name, x, [2, 3, 1]).value == pytest.approx(1.0, abs=0.15)


choices = st.sampled_from(["1", "2", "tie"])


@given(st.lists(st.tuples(choices, choices), min_size=1, max_size=40))
# Two readers of 50 grant proposals: 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no gives kappa 0.4.
@example([("1", "1")] * 20 + [("1", "2")] * 5 + [("2", "1")] * 10 + [("2", "2")] * 15)
def test_kappa_against_its_definition(rows: list[tuple[str, str]]) -> None:
    columns = [first for first, _ in rows], [second for _, second in rows]
    labelled = [{"winner": first, "human": second} for first, second in rows]
    found = preferences(labelled, Resampling(resamples=0)).kappa.value
    assert found == pytest.approx(0.4 if len(rows) == 50 else cohen_kappa(*columns), abs=1e-9)


def test_rows_are_told_apart_by_aspect_and_kind() -> None:
    """An aspect may be called preference where nothing is compared."""
    rated = [{"aspect": name, "score": 1.0, "human": 2.0} for name in ("wit", "wit", "preference")]
    comparisons = [{"aspect": name, "winner": "1", "human": "1"} for name in ("tact", None)]
    found = agreement([*rated[:2], *comparisons, {"aspect": None, "winner": None, "human": "2"}])
    assert {name: one.n for name, one in found.items()} == {"wit": 2, "tact": 1, "preference": 1}
    assert isinstance(found["wit"], ScoreAgreement)
    assert found["preference"].left_out == {"not judged": 1}
    assert isinstance(agreement(rated)["preference"], ScoreAgreement)


def test_of_many_rows_only_numbers_are_kept() -> None:
    """Six megabytes of rows, ten of which make a group."""
    rows = RowsByAspect()
    tracemalloc.start()
    for n in range(3_000):
        rows.add(
            {
                "score": n % 5,
                "human": n % 7,
                "group": f"g{n // 10}",
                "transcript": "x" * (2_000 + n % 2),
            }
        )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.agreement()["score"].n == 3_000
    assert peak < 1_000_000


def columns(rows: int, x_levels: int, y_levels: int) -> tuple[Floats, Floats]:
    """Two columns that go together, with as many distinct values as asked for."""
    random = np.random.default_rng([rows, x_levels, y_levels])
    both = random.random(rows)
    x, y = ((both + random.random(rows)) / 2 for _ in range(2))
    return np.floor(x * x_levels) / 7, np.floor(y * y_levels) / 3


def check_resamples(x: Floats, y: Floats, units: Any, how: Resampling) -> None:
    """Compare with the correlation of each resample, built row by row."""
    weights = np.concatenate(list(how.weights(int(units.max()) + 1)))
    chosen = [np.repeat(np.arange(len(units)), weight[units]) for weight in weights]
    for name, found in resampled_correlations(tuple(STATISTICS), x, y, units, how).items():
        values = [correlation(name, x[rows], y[rows]) if units.max() else None for rows in chosen]
        wanted = [math.nan if value is None else value for value in values]
        assert found == pytest.approx(wanted, abs=1e-9, nan_ok=True), name
        for rows, value in zip(chosen, values, strict=True):
            assert value is None or value == pytest.approx(
                SCIPY[name](x[rows], y[rows]), abs=1e-9
            ), name


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize(("rows", "x_levels", "y_levels"), [
    (2, 9, 9), (40, 5, 5), (500, 10**9, 10**9), (600, 10**9, 4), (3_000, 10**9, 10**9), (3_000, 5, 60),
    (3_000, 4, 5),
])  # fmt: skip
def test_resamples_against_scipy_on_made_ones(
    size: int, rows: int, x_levels: int, y_levels: int
) -> None:
    """Try few and many rows; untied, heavily tied, tied on one side; single and grouped."""
    units = np.arange(rows) // size
    check_resamples(*columns(rows, x_levels, y_levels), units, Resampling(resamples=12, seed=rows))


def test_distant_values_and_a_heavy_cluster_leave_resamples_exact() -> None:
    """Of twenty-four rows one is a million away: a third of the resamples do not have it."""
    x, y = columns(24, 10**9, 10**9)
    x[3], y[3] = 1e12, -1e9
    check_resamples(x, y, np.arange(24), Resampling(resamples=200))
    # One group has nearly all the rows, and may be drawn several times.
    units = np.maximum(np.arange(4_000) - 3_990, 0)
    check_resamples(*columns(4_000, 10**9, 10**9), units, Resampling(resamples=10))
    check_resamples(*columns(4_000, 2, 2), units, Resampling(resamples=10))


@settings(max_examples=60)
@given(
    st.sampled_from(list(STATISTICS)),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=30
    ),
)
def test_within_groups_against_each_group_by_itself(
    name: str, rows: list[tuple[int, int, int]]
) -> None:
    groups, x, y = (np.array(column) for column in zip(*rows, strict=True))
    numbers = np.unique(groups, return_inverse=True)[1]
    wanted = [correlation(name, x[groups == g] / 7, y[groups == g] / 3) for g in np.unique(groups)]
    each = correlations_within(name, x / 7, y / 3, numbers)
    assert each == pytest.approx(
        [np.nan if value is None else value for value in wanted], abs=1e-12, nan_ok=True
    )


def test_large_groups_are_computed_as_small_ones_are() -> None:
    x, y = columns(300, 10**9, 12)
    groups = np.repeat([0, 1, 2], [30, 70, 200])
    for name in STATISTICS:
        wanted = [SCIPY[name](x[groups == g], y[groups == g]) for g in range(3)]
        assert correlations_within(name, x, y, groups) == pytest.approx(wanted, abs=1e-12)


def test_weights_are_what_drawing_with_replacement_gives() -> None:
    """A resample has as many units as the data; each unit's count is about Poisson."""
    weights = np.concatenate(list(Resampling(resamples=2_000).weights(50)))
    assert weights.shape == (2_000, 50)
    assert (weights.sum(axis=1) == 50).all()
    assert weights.mean(axis=0) == pytest.approx(np.ones(50), abs=0.12)
    assert (weights == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.005)


def test_the_seed_decides_and_nobody_elses_generator() -> None:
    x, y = columns(30, 10**9, 10**9)
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    one, again, other = (
        correlate("pearson", x, y, how=Resampling(100, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == again
    assert one.value == other.value
    assert (one.low, one.high) != (other.low, other.high)
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]
    bad: dict[str, Any] = {"resamples": -1, "confidence": 1.0, "seed": -2}
    for name, wrong in bad.items():
        with pytest.raises(ValueError, match=name):
            Resampling(**{name: wrong})


def test_two_rows_are_not_sure_of_a_perfect_correlation() -> None:
    two, ten = (list(map(float, range(n))) for n in (2, 10))
    assert correlate("spearman", two, two) == Statistic(1.0)
    assert (correlate("spearman", ten, ten).low or 1.0) < 0.5


def test_resamples_without_a_figure_are_left_out_unless_most_are() -> None:
    how = Resampling(resamples=4)
    some = np.array([0.4, 0.6, np.nan, np.nan])
    most = np.array([0.4, np.nan, np.nan, np.nan])
    assert how.studentised(0.5, some, 20) == how.studentised(0.5, some[:2], 20)
    assert how.studentised(0.5, some, 20)[0].low is not None
    assert how.studentised(0.5, most, 20) == (Statistic(0.5), None)
    assert how.studentised(None, some, 20) == (Statistic(None), None)
    assert how.studentised(0.5, some, 9) == (Statistic(0.5), None), "too few clusters"


@pytest.mark.parametrize(("right", "n"), [(20, 20), (0, 7), (13, 31)])
def test_accuracy_has_the_score_interval_of_a_share(right: int, n: int) -> None:
    """20 of 20 right is not certain to be right: against scipy's Wilson interval."""
    found = preferences([{"winner": "12"[at >= right], "human": "1"} for at in range(n)]).accuracy
    expected = stats.binomtest(right, n).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_share_of_rows_that_share_clusters_is_as_sure_as_of_fewer_rows() -> None:
    rows = [
        {"item": f"{n}", "group": f"g{n // 5}", "winner": "1", "human": "12"[n < 50]}
        for n in range(100)
    ]
    grouped = preferences(rows).accuracy
    alone = preferences([{**row, "group": None} for row in rows]).accuracy
    assert grouped.value == alone.value == 0.5
    assert (grouped.low or 0) < (alone.low or 0) - 0.05


# Which rows count, and what is said of those that do not
GOOD = [{"item": f"i{n}", "score": n, "human": n % 3} for n in range(6)]
CHOSEN = [{"item": f"i{n}", "winner": "12"[n % 2], "human": "1"} for n in range(6)]


@pytest.mark.parametrize(("bad", "reason"), [
    ({"status": "failed", "score": None, "human": 3}, "failed"),
    ({"status": "failed", "score": 4, "human": None}, "failed"), ({"score": 4, "human": None}, "no label"),
    ({"score": 4, "human": []}, "no label"), ({"score": None, "human": 4}, "not judged"),
    ({"score": "", "human": "4"}, "not judged"), ({"score": math.nan, "human": 4}, "not judged"),
    ({"score": 4, "human": [None, math.nan]}, "no label"), (dict(GOOD[0]), "duplicate"),
    ({"winner": "1", "human": None}, "no label"), ({"winner": None, "human": "2"}, "not judged"),
    ({"winner": None, "human": "2", "status": "failed"}, "failed"),
    *(({"score": 4, "human": word}, "no label") for word in ("", "NA", "n/a", "NaN", "None", "null", "-")),
    *(({"winner": "1", "human": word}, "no label") for word in ("", "NA", "n/a", "NaN", "None", "null", "-")),
])  # fmt: skip
def test_rows_that_do_not_count_are_counted_by_reason(bad: Row, reason: str) -> None:
    good = CHOSEN if "winner" in bad else GOOD
    (found,), (wanted,) = (
        agreement(rows).values() for rows in ([*good, {"item": "bad", **bad}], good)
    )
    assert (found.n, found.left_out) == (6, {reason: 1})
    assert found.figures() == wanted.figures()


@pytest.mark.parametrize(("bad", "problem"), [
    ({"score": 4, "human": math.inf}, "field 'human': inf is not a number"),
    ({"score": 4, "human": [3, "x"]}, "field 'human': 'x' is not a number"),
    ({"score": 10**400, "human": 3}, "field 'score': 1000.* is not a number"),
    ({"score": "1_0", "human": 3}, "field 'score': '1_0' is not a number"),
    ({"score": 4, "human": {"wit": 3}}, "field 'human' has labels of the aspects wit; choose one"),
    ({"winner": "3", "human": "2"}, "field 'winner': '3' is not 1, 2 or tie"),
    ({"winner": True, "human": "1"}, "field 'winner': True is not 1, 2 or tie"),
    ({"winner": "1", "human": ["1", "both"]}, "field 'human': 'both' is not 1, 2 or tie; say what your labels mean"),
    ({"winner": "1", "human": 0}, 'field \'human\': 0 is not 1, 2 or tie; if labels are counted from 0, add --labels'),
])  # fmt: skip
def test_an_unreadable_value_is_an_error_unless_it_is_waived_and_counted(
    bad: Row, problem: str
) -> None:
    good = CHOSEN if "winner" in bad else GOOD
    rows = [*good, {"item": "bad", **bad}]
    with pytest.raises(DataError, match=rf"^row 7: {problem}.*skip_unreadable=True"):
        agreement(rows)
    (found,), (wanted,) = (agreement(some, skip_unreadable=True).values() for some in (rows, good))
    assert (found.n, found.left_out) == (6, {"unreadable value": 1})
    assert found.figures() == wanted.figures()


def test_true_and_false_are_scores_and_labels_may_be_translated() -> None:
    rows = [
        {"score": n, "human": word}
        for n, word in enumerate([True, "FALSE", "yes", "No", "true", 0])
    ]
    plain = [{"score": n, "human": value} for n, value in enumerate([1, 0, 1, 0, 1, 0])]
    assert scores(rows).figures() == scores(plain).figures()
    words = [
        {"score": n, "human": word}
        for n, word in enumerate(["poor", "good", ["fair", "good"], "skip"])
    ]
    codes = {"poor": "1", "fair": "2", "good": "3", "skip": "NA"}
    [found] = agreement(words, label_codes=codes).values()
    assert isinstance(found, ScoreAgreement)
    assert (found.human, found.left_out) == (Range(1, 3), {"no label": 1})
    with pytest.raises(DataError, match="'skip' is not among the values of --labels"):
        agreement(words, label_codes={"poor": "1", "fair": "2", "good": "3"})


def test_a_row_like_another_counts_once_and_one_that_contradicts_it_is_an_error() -> None:
    with pytest.raises(DataError, match=r"row 3 and row 7 have the same item.*delete one of them"):
        agreement([*GOOD, {**GOOD[2], "score": 5}])


@pytest.mark.parametrize("field", ["item", "group", "system", "aspect", "protocol", "repeat"])
def test_rows_that_differ_in_what_they_are_of_are_no_duplicates(field: str) -> None:
    one = {
        "item": "a",
        "group": "g",
        "system": "m",
        "aspect": "score",
        "protocol": "p",
        "repeat": 0,
    }
    rows = [{**one, "score": 1, "human": 1}, {**one, field: "1", "score": 2, "human": 3}]
    assert sum(found.n for found in agreement(rows).values()) == 2
    assert scores([{"score": 1, "human": 2}] * 3).n == 3, "rows without an item are all different"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            [
                {"aspect": "wit", "score": 1, "human": 1},
                {"aspect": "wit", "winner": "1", "human": "1"},
            ],
            r"row 2 and row 1, both of aspect 'wit': one has a score and one a winner",
        ),
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
    """A failed comparison has no winner, even if its label in a table looks like a number."""
    failed: Row = {"status": "failed", "human": "1"}
    assert preferences([failed, {"winner": "1", "human": 1}]).left_out == {"failed": 1}
    assert scores([failed, {"score": "1", "human": "1"}]).left_out == {"failed": 1}
    nothing = scores([{"score": 1}, {"score": None, "human": 2}])
    assert (nothing.n, nothing.left_out, nothing.judged) == (
        0,
        {"no label": 1, "not judged": 1},
        None,
    )
    assert all(one.value is None for one in nothing.over_rows.values())
    only_failed = preferences([{"winner": None, **failed}])
    assert (only_failed.n, only_failed.left_out, only_failed.kappa.value) == (
        0,
        {"failed": 1},
        None,
    )


def test_several_annotators() -> None:
    """Scores: the mean of the given ones; preferences: their majority, or a tie without one."""
    means = scores(
        [{"score": n, "human": human} for n, human in enumerate([[1, 2, "4.5"], [3, 4, None]])]
    )
    assert means.human == Range(2.5, 3.5)
    rows = [{"winner": "1", "human": ["1", "1", "2"]}, {"winner": "tie", "human": ["1", "2"]}]
    assert preferences(rows).accuracy.value == 1.0
    winners = (1, "1", "model_a", "A", 1.0, 2.0, "Answer 2", " TIE ", "draw", "tie (bothbad)")
    found = preferences([{"winner": form, "human": "1"} for form in winners])
    assert (found.accuracy.value, found.ties, found.left_out) == (0.5, 3, {})


def test_scales_may_differ_and_are_told() -> None:
    """Very large numbers are numbers, and so are very small ones."""
    rows = [{"score": n, "human": (n * 2) % 5} for n in range(5)]
    for scale in (1e-300, 1e-160, 0.1, 1e160, 1e300):
        found = scores([{**row, "score": scale * row["score"]} for row in rows])
        assert (found.judged, found.human) == (Range(0, 4 * scale), Range(0, 4))
        for name, wanted in scores(rows).over_rows.items():
            assert found.over_rows[name].value == pytest.approx(wanted.value, abs=1e-12)


# Ties and votes
JUDGED = ["1", "2", "tie", "1", "tie", "2", "1"]
HUMAN = ["1", "2", "1", "tie", "tie", "1", "1"]
COMPARED = [
    {"item": n, "winner": j, "human": h} for n, (j, h) in enumerate(zip(JUDGED, HUMAN, strict=True))
]


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
    """A tied human counts as 1 in half the cases and 2 in the other half; so does a judge."""
    found = preferences(COMPARED, ties="half")
    assert found.n == 7
    assert found.accuracy.value == pytest.approx((3 + 2 * 0.5) / 7)
    split = [(j, h) for j, h in zip(JUDGED, HUMAN, strict=True) if h != "tie"] * 4
    split += [("1", "1"), ("1", "2")] * 2 + [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert found.kappa.value == pytest.approx(cohen_kappa(*zip(*split, strict=True)))


@pytest.mark.parametrize("ties", ["class", "left_out", "half"])
@pytest.mark.parametrize("listed", [True, False])
def test_each_vote_is_an_instance(ties: Ties, listed: bool) -> None:
    """The votes may be the label, or a separate field as in a run's results."""
    rows: list[Row] = []
    single: list[Row] = []
    judged = {
        "1": ["1", "1", "tie"],
        "2": ["2", "1"],
        "tie": ["tie"],
        " tie": ["1", "1", "2", "tie"],
    }
    for n, (winner, votes) in enumerate(judged.items()):
        labels = {"human": votes} if listed else {"human": "tie", "annotations": votes}
        rows.append({"item": n, "winner": winner, **labels})
        single += [
            {"item": f"{n}-{k}", "winner": winner, "human": vote} for k, vote in enumerate(votes)
        ]
    found = preferences(rows, ties=ties, votes="each")
    wanted = preferences(single, ties=ties)
    assert (found.n, found.left_out, found.figures()) == (
        wanted.n,
        wanted.left_out,
        wanted.figures(),
    )
    assert found.units == (4 if ties != "left_out" else 3)


# Repeats
def test_repeats_are_drawn_together_and_have_a_mean_and_a_deviation() -> None:
    collected = RowsByAspect()
    rows = [
        {"item": n, "group": n // 4, "repeat": r, "score": (n * (r + 2)) % 7, "human": n % 5}
        for r in range(3)
        for n in range(12)
    ]
    for row in rows:
        collected.add(row)
    pooled = scores(rows)
    ungrouped = scores([{**row, "group": None} for row in rows])
    assert (pooled.n, pooled.repeats, pooled.units, pooled.groups) == (36, 3, 3, 3)
    assert (ungrouped.units, ungrouped.per_group) == (12, {})
    found = collected.over_repeats()["score"]
    assert (found.repeats, found.n) == (3, (12, 12, 12))
    each = [scores([row for row in rows if row["repeat"] == r]).figures() for r in range(3)]
    for name, spread in found.figures.items():
        values = [figures[name] or 0.0 for figures in each]
        assert spread.values == tuple(values)
        assert spread[:2] == pytest.approx((fmean(values), stdev(values)))
