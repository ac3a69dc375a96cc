"""What the first line of a report claims: no more than the comparison holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from jurygraph.eval.analysis import AverageComparison, Comparison, Leaderboard, Study
from jurygraph.eval.report.headline import answers, headline
from jurygraph.eval.statistics.resampling import Statistic

from .sample_study import around, average_duel, judge, study


def with_averages(*averages: AverageComparison, **changes: Any) -> Study:
    made = study(**changes)
    return replace(made, comparison=replace(made.comparison, averages=averages))


OVER_BASE = average_duel("debate")


@pytest.mark.parametrize(
    ("averages", "claim"),
    [
        ([OVER_BASE, average_duel("debate", "chateval")], "debate agrees best with humans"),
        (
            [OVER_BASE, average_duel("debate", "chateval", p=0.051)],
            "debate ranks first, but chateval may be as good",
        ),
        (
            [average_duel("debate", p=0.2), average_duel("debate", "chateval")],
            "debate ranks first, but the lead may be due to chance",
        ),
        ([], "debate ranks first, but the lead may be due to chance"),
        (
            [replace(OVER_BASE, units=6), replace(average_duel("debate", "chateval"), units=6)],
            "debate ranks first, but the data is too little to tell whether it is better",
        ),
    ],
    ids=["holds", "not over the runner-up", "not over the base", "not compared", "few"],
)
def test_the_best_is_called_so_where_its_lead_holds(averages: list[AverageComparison], claim: str) -> None:
    assert headline(with_averages(*averages), "spearman") == claim


def test_a_pair_may_stand_the_other_way_round() -> None:
    turned = average_duel("chateval", "debate")
    assert headline(with_averages(OVER_BASE, turned), "spearman") == "debate agrees best with humans"
    told = " ".join(answers(with_averages(OVER_BASE, turned), "spearman"))
    assert "lead over chateval (second): 0.040 [0.030, 0.050]" in told


def one_aspect(*judges: str, figure: Statistic | None = None) -> Study:
    made = study()
    standings = tuple(
        replace(one, measures={**one.measures, "spearman": figure or one.measures["spearman"]})
        for one in made.leaderboard.standings
        if one.judge in judges and one.subject == "coherence"
    )
    return study(
        judges=tuple(map(judge, judges)),
        subjects=made.subjects[:1],
        leaderboard=Leaderboard(standings, ()),
        comparison=Comparison((), ""),
        bases={},
    )


def test_a_judge_alone_is_not_the_best_of_anybody() -> None:
    made = one_aspect("debate")
    assert (
        headline(made, "spearman")
        == "debate, the only judge, agrees with humans significantly better than chance"
    )
    assert "no other judge to compare it with" in " ".join(answers(made, "spearman"))


def test_a_judge_without_a_value_on_every_aspect_is_a_judge_all_the_same() -> None:
    made = one_aspect("debate")
    made = replace(made, judges=(*made.judges, judge("single")))
    assert "debate, the only judge with a value on every aspect, agrees" in headline(made, "spearman")
    assert "No other judge has a value on every aspect." in " ".join(answers(made, "spearman"))


def test_who_cannot_be_told_from_chance_is_not_said_to_agree() -> None:
    made = one_aspect("debate", "single", figure=around(0.05))
    assert headline(made, "spearman") == "No judge agrees with humans significantly better than chance"


def test_that_one_can_be_told_from_chance_is_not_denied() -> None:
    made = one_aspect("debate", "single")
    wide, narrow = made.leaderboard.standings
    wide = replace(wide, measures={"spearman": Statistic(0.4, -0.1, 0.8)})
    either = replace(made, leaderboard=Leaderboard((wide, narrow), ()))
    assert headline(either, "spearman").endswith("ranks first, but the lead may be due to chance")


def test_each_dataset_has_its_claim() -> None:
    made = with_averages(OVER_BASE, average_duel("debate", "chateval"))
    other = [replace(one, label=f"wag: {one.label}", data="wag", digest="def") for one in made.subjects]
    each_judge = judge("debate", label="debate (wag)", data="wag", digest="def")
    standings = [
        replace(one, judge=each_judge.label, subject=f"wag: {one.subject}")
        for one in made.leaderboard.standings
        if one.judge == "debate"
    ]
    average = replace(
        made.leaderboard.averages[0], judge=each_judge.label, subjects=tuple(one.label for one in other)
    )
    both = replace(
        made,
        subjects=(*made.subjects, *other),
        judges=(*made.judges, each_judge),
        leaderboard=Leaderboard(
            (*made.leaderboard.standings, *standings), (*made.leaderboard.averages, average)
        ),
    )
    assert headline(both, "spearman") == (
        "wit: debate agrees best with humans\n"
        "wag: debate (wag), the only judge, agrees with humans significantly better than chance"
    )
