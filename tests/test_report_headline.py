"""What the first line of a report claims: no more than the comparison holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jurygraph.eval.analysis import AverageComparison, Comparison, Leaderboard, Study
from jurygraph.eval.report.headline import answers, headline
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Statistic

from .run_folders import compared, run_folder, scored
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


def test_a_judge_that_cannot_be_told_from_chance_is_not_named_where_another_one_can() -> None:
    made = one_aspect("debate", "single")
    wide, narrow = made.leaderboard.standings
    wide = replace(wide, measures={"spearman": Statistic(0.5, -0.1, 0.8)})
    either = replace(made, leaderboard=Leaderboard((wide, narrow), ()))
    assert headline(either, "spearman") == (
        "No judge can be said to agree best with humans: the highest Spearman's rho cannot be told from chance"
    )


def test_a_judge_that_always_says_the_same_agrees_with_nobody(tmp_path: Path) -> None:
    """Of 600 labels 85 % are "1": to say "1" always is right most often, and knows nothing."""
    random = Random(7)
    results: list[Result] = []
    for number in range(600):
        label = "1" if random.random() < 0.85 else "2"
        results.append(compared(f"i{number}", "always", winner="1", human=label))
        for name, share in (("good", 0.76), ("fair", 0.74)):
            right = random.random() < share
            other = "2" if label == "1" else "1"
            results.append(compared(f"i{number}", name, winner=label if right else other, human=label))
    made = Study.of(run_folder(tmp_path / "run", results, kind="compare"))
    lead = next(pair for pair in made.comparison.pairwise if {pair.first, pair.second} == {"always", "good"})
    assert (lead.differences["accuracy"].adjusted or 1) < 0.05, "its accuracy leads significantly"
    claim = headline(made, None)
    assert claim.startswith("No judge can be said to agree best with humans")
    assert "always" not in claim
    assert "kappa 0.000 [0.000, 0.000]" in " ".join(answers(made, None))


def test_who_ranks_sources_is_not_said_to_agree_best_where_another_ranks_their_candidates(
    tmp_path: Path,
) -> None:
    """One knows how good a source's candidates are on the whole and nothing of them; one the other way round."""
    random = Random(3)
    results: list[Result] = []
    for group in range(40):
        level = random.gauss(0, 1)
        for number in range(6):
            own = random.gauss(0, 0.5)
            about = {"group": f"g{group}", "human": level + own}
            for name, known in (("of_sources", level), ("of_candidates", own)):
                score = known + random.gauss(0, 0.3)
                results.append(scored(f"{group}-{number}", name, score=score, **about))
    made = Study.of(run_folder(tmp_path / "run", results))
    both = "of_sources ranks sources, of_candidates ranks the candidates of a source"
    # Whichever of the two leads, the other one is beside it.
    assert headline(made, None) == headline(made, "spearman") == both


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
