"""Test what a panel of judges is worth: statistics, the command, and panels of known kind."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import panel
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.panel_value import Panel
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.reading import ReadingNotice
from jurygraph.eval.report.panel_tables import claim, evidence, further_members, panel_screen
from jurygraph.eval.report.sections import compose, tables_by_dataset
from jurygraph.eval.statistics.error_correlation import (
    MOST_TRIED,
    PanelSearch,
    combined,
    effective_votes,
    error_correlation,
    members_worth_it,
)
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.state.errors import DataError, JurygraphError, UsageError
from typer.testing import CliRunner

from .run_folders import compared, failed, noisy, run_folder, scored, turn
from .sample_data import write_lines

Row = dict[str, Any]
QUICK = Resampling(resamples=200)


def told(*arguments: object) -> str:
    done = CliRunner().invoke(
        app, ["panel", *map(str, arguments)], env={"COLUMNS": "150"}, catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def refusal(*arguments: object) -> str:
    """Return the command's message about unusable input."""
    with pytest.raises(JurygraphError) as error:
        CliRunner().invoke(app, ["panel", *map(str, arguments)], catch_exceptions=False)
    return str(error.value)


def verdicts(right: Mapping[str, Sequence[bool]], human: str = "1") -> list[Row]:
    """Rows of comparisons with the given right and wrong verdicts of each judge."""
    wrong = {"1": "2", "2": "1"}[human]
    return [
        {"protocol": judge, "item": item, "winner": human if good else wrong, "human": human}
        for judge, of_judge in right.items()
        for item, good in enumerate(of_judge)
    ]


def world(skills: Sequence[float], correlation: float, items: int = 200, seed: int = 0) -> Panel:
    """Draw judges with a share of items on which all of them follow one draw."""
    random = np.random.default_rng(seed)
    common = random.random(items)
    together = random.random(items) < correlation
    drawn = {
        f"judge {place}": np.where(together, common, random.random(items)) < skill
        for place, skill in enumerate(skills)
    }
    (found,) = panel(verdicts({name: of.tolist() for name, of in drawn.items()}), resampling=QUICK)
    return found


# Statistics


def test_the_mean_correlation_is_that_of_numpy_whatever_the_order_of_rows() -> None:
    random = np.random.default_rng(3)
    errors = random.normal(size=(60, 4)) + random.normal(size=(60, 1))
    clusters = np.arange(60) // 2
    found = error_correlation(errors, clusters, QUICK)
    wanted = np.asarray(np.corrcoef(errors.T))
    upper = np.triu_indices(4, 1)
    assert found.mean.value == pytest.approx(wanted[upper].mean())
    assert found.pairs[upper] == pytest.approx(wanted[upper])
    order = random.permutation(60)
    again = error_correlation(errors[order], clusters[order], QUICK)
    assert again.mean.low == pytest.approx(found.mean.low)
    assert again.effective.high == pytest.approx(found.effective.high)


def test_effective_votes_are_between_one_and_the_number_of_members() -> None:
    assert effective_votes(9, 0.0) == 9
    assert effective_votes(9, -0.1) == 9
    assert effective_votes(9, 1.0) == 1
    assert effective_votes(5, 0.35) == pytest.approx(5 / 2.4)
    random = np.random.default_rng(1)
    found = error_correlation((random.random((80, 3)) < 0.6).astype(float), np.arange(80), QUICK)
    effective = found.effective
    assert effective.low is not None and effective.high is not None
    assert 1 <= effective.low < effective.high <= 3


def test_equal_errors_have_an_interval_that_is_no_point() -> None:
    right = (np.random.default_rng(1).random((40, 1)) < 0.6).astype(float)
    found = error_correlation(np.repeat(right, 3, axis=1), np.arange(40), QUICK)
    assert found.effective.value == pytest.approx(1)
    assert found.mean.low is not None and found.mean.low < 1


def test_a_judge_whose_errors_do_not_vary_has_no_correlation() -> None:
    right = np.ones((40, 3))
    right[::3, 0] = right[::2, 1] = 0
    found = error_correlation(right, np.arange(40), QUICK)
    assert math.isnan(found.with_others[2])
    assert found.undefined == 2
    assert found.mean.value == pytest.approx(np.asarray(np.corrcoef(right[:, :2].T))[0, 1])
    never = error_correlation(np.ones((40, 2)), np.arange(40), QUICK)
    assert never.mean.value is None and never.effective.value is None


def test_few_wrong_verdicts_withhold_the_interval() -> None:
    right = np.ones((40, 2))
    right[0] = right[1, 0] = right[2, 1] = 0
    assert error_correlation(right, np.arange(40), QUICK).mean.low is None


def test_without_a_majority_the_panel_ties() -> None:
    votes = np.array([[0.0, 1.0, 2.0, 0.0], [1.0, 1.0, 1.0, 0.0], [2.0, 2.0, 2.0, 0.0]])
    assert combined(votes, "compare").tolist() == [2, 1, 2]
    assert combined(votes, "score").tolist() == [0.75, 0.75, 1.5]


def test_the_best_of_equal_judges_is_not_better_than_they_are() -> None:
    random = np.random.default_rng(7)
    apparent = []
    fitted = []
    for _ in range(60):
        right = (random.random((60, 5)) < 0.6).astype(float)
        search = PanelSearch(
            (1 - right).astype(np.float64),
            "compare",
            np.arange(60),
            lambda judged, _: float((judged == 0).mean()),
        )
        found = search.best(lambda members: len(members) == 1)
        apparent.append(found.apparent)
        fitted.append(float((found.verdicts == 0).mean()))
    assert np.mean(apparent) > 0.65
    assert np.mean(fitted) == pytest.approx(0.6, abs=0.02)


def test_many_judges_are_searched_step_by_step() -> None:
    random = np.random.default_rng(2)
    wrong = (random.random((90, MOST_TRIED + 3)) >= 0.6).astype(np.float64)
    search = PanelSearch(
        wrong, "compare", np.arange(90), lambda judged, _: float((judged == 0).mean())
    )
    found = search.best(lambda _: True)
    assert found.apparent >= float(1 - wrong.mean(axis=0).min())


@pytest.mark.parametrize(("correlation", "size"), [(1.0, 1), (0.35, 3), (0.1, 10)])
def test_members_are_worth_their_cost_up_to_a_size(correlation: float, size: int) -> None:
    assert members_worth_it(correlation, 0.25) == size


# Panels of known kind


def test_independent_judges_of_one_skill_beat_their_best_member() -> None:
    found = world([0.7] * 5, 0.0, items=400)
    assert found.better == "panel"
    assert found.correlation.effective.value == pytest.approx(5, abs=0.8)
    assert claim(found) == "The majority is right more often than the best single judge"
    assert "further member" in further_members(found)


def test_perfectly_correlated_judges_are_worth_one_vote() -> None:
    found = world([0.7] * 5, 1.0)
    assert found.identical
    assert found.correlation.effective.value == pytest.approx(1)
    assert claim(found) == "All judges gave identical verdicts, so a panel adds nothing"
    assert found.worth_members[1] == 1


def test_one_strong_judge_among_weak_ones_is_better_alone() -> None:
    found = world([0.9, 0.5, 0.5, 0.5, 0.5], 0.3)
    assert found.better == "member"
    assert found.best == "judge 0"
    assert claim(found) == "judge 0 alone is right more often than the majority"
    assert found.recommended.members == ("judge 0",)


def test_judges_that_tie_make_no_claim() -> None:
    right = {"a": [True, False] * 30, "b": [False, True] * 30}
    (found,) = panel(verdicts(right), resampling=QUICK)
    assert found.agreement.value == 0  # an equal vote is a tie, which is wrong against a winner
    assert found.correlation.mean.value == pytest.approx(-1)
    assert found.correlation.effective.value == 2


def test_correlated_judges_of_one_skill_have_no_clear_winner_and_rarely_a_false_one() -> None:
    claims = [world([0.7] * 3, 0.97, items=120, seed=seed).better for seed in range(40)]
    assert claims.count("neither") >= 37


def test_scores_have_correlated_errors_and_a_mean() -> None:
    random = np.random.default_rng(5)
    human = random.integers(1, 6, 150).astype(float)
    common = random.normal(0, 1, 150)
    rows = [
        {"protocol": judge, "item": item, "score": human[item] + error[item], "human": human[item]}
        for judge in "abc"
        for error in [math.sqrt(0.5) * common + math.sqrt(0.5) * random.normal(0, 1, 150)]
        for item in range(150)
    ]
    (found,) = panel(rows, resampling=QUICK)
    mean = found.correlation.mean
    assert mean.low is not None and mean.high is not None
    assert mean.low < 0.5 < mean.high
    assert found.better == "panel"
    assert claim(found) == "The mean agrees better than the best single judge"
    with_metric = panel(rows, resampling=QUICK, metric="pearson")[0]
    assert with_metric.metric == "pearson"


# Rows that do not count, and judges that cannot be members


def test_groups_without_a_ranking_of_labels_are_named() -> None:
    random = np.random.default_rng(5)
    # The labels of the first three groups are equal.
    human = [[3.0, 3.0] if group < 3 else [2.0, 4.0] for group in range(30)]
    rows = [
        {
            "protocol": judge,
            "item": f"{group} {place}",
            "group": group,
            "score": human[group][place] + random.normal(0, 1.5),
            "human": human[group][place],
        }
        for judge in "abc"
        for group in range(30)
        for place in (0, 1)
    ]
    (found,) = panel(rows, resampling=QUICK, metric="group_spearman")
    assert (found.clusters, found.groups_left_out) == (30, 3)
    assert (
        "over 60 texts in 30 groups, 3 groups with one item or equal labels left out"
        in evidence(found)
    )
    assert found.to_json()["groups_left_out"] == 3


def test_rows_that_a_judge_failed_are_counted_by_name(tmp_path: Path) -> None:
    rows = verdicts({"a": [True, False] * 10, "b": [True] * 15 + [False] * 5, "c": [True] * 20})
    rows[3]["winner"] = None
    rows[25]["status"] = "failed"
    path = write_lines(tmp_path / "rows.jsonl", rows)
    printed = told(path)
    assert "2 of 20 labelled rows lack the verdict of a judge (a on 1 and b on 1)" in printed
    assert "All figures are for 18 rows." in printed
    found = json.loads(told(path, "--json"))["panels"][0]
    assert (found["rows"], found["rows_of_any_judge"]) == (18, 20)
    assert found["members"][1]["left_out"] == {"failed": 1}
    assert "c gave every item the verdict 1." in told(path, "--all")
    assert found["pairs_without_correlation"] == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (verdicts({"a": [True, False]}), "at least two judges, and only a judged here"),
        (
            [{**row, "human": None} for row in verdicts({"a": [True], "b": [True]})],
            "a has no row with a verdict and a label",
        ),
        (
            [
                {**row, "item": f"{row['item']}{row['protocol']}"}
                for row in verdicts({"a": [True], "b": [True]})
            ],
            "a, b have no labelled row in common",
        ),
        (
            [
                *verdicts({"a": [True] * 3, "b": [True] * 3}),
                *({**row, "item": row["item"] + 50} for row in verdicts({"c": [True] * 3})),
            ],
            "c has no labelled row in common with the other judges; without it, 3 rows are common",
        ),
        (
            [{**row, "protocol": ""} for row in verdicts({"a": [True]})],
            "rows without a name of their judge",
        ),
        (
            [
                *verdicts({"a": [True] * 3}),
                *(
                    {"protocol": "b", "item": item, "aspect": "", "score": 3, "human": 3}
                    for item in range(3)
                ),
            ],
            "",
        ),
        (
            [
                {"protocol": judge, "item": item, "score": score, "human": 1 + item % 5}
                for judge, score in (("a", 3), ("b", 0.5))
                for item in range(20)
            ],
            "half of the scores of b are beyond 0.5, and the labels are from 1 to 5",
        ),
        (
            [
                *verdicts({"a": [True, True]}),
                *({**row, "human": "2"} for row in verdicts({"b": [True, True]})),
            ],
            "have different labels for one item, of a and b",
        ),
    ],
)
def test_judges_that_are_no_panel_are_refused_by_name(
    rows: list[Row], message: str, tmp_path: Path
) -> None:
    assert message in refusal(write_lines(tmp_path / "rows.jsonl", rows))
    with pytest.raises((UsageError, DataError)):
        panel(rows)


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", verdicts({"a": [True], "b": [True]}))
    folder = run_folder(tmp_path / "run", noisy("single", 1.0))
    assert "nothing to measure" in refusal()
    assert "but not both" in refusal(path, "--replies", path)
    assert "is a folder and" in refusal(folder, path)
    assert "--columns only applies to files" in refusal(folder, "--columns", "human=gold")
    assert "--data only applies to recorded replies" in refusal(path, "--data", "demo")
    assert "--protocol only applies to recorded" in refusal(path, "--protocol", "geval")
    assert "no judge 'd' to leave out; judges are a, b" in refusal(path, "--without", "d")
    assert "no field 'model'" in refusal(f"{path}?model=x")
    assert "no rows with protocol=x" in refusal(f"{path}?protocol=x")
    assert "--worth must be above 0" in refusal(path, "--worth", "0")


def test_a_file_for_each_judge_and_chosen_rows(tmp_path: Path) -> None:
    rows = verdicts({"a": [True, False] * 10, "b": [True] * 20, "c": [True, False, False] * 7})
    of_judge = [
        write_lines(
            tmp_path / f"{judge}.jsonl",
            [
                {name: value for name, value in row.items() if name != "protocol"}
                for row in rows
                if row["protocol"] == judge
            ],
        )
        for judge in "ab"
    ]
    found = json.loads(told(*of_judge, "--json"))["panels"][0]
    assert [member["judge"] for member in found["members"]] == ["a.jsonl", "b.jsonl"]
    path = write_lines(
        tmp_path / "rows.jsonl", [{**row, "odd": bool(row["item"] % 2)} for row in rows]
    )
    chosen = json.loads(told(f"{path}?odd=true", "--without", "c", "--json"))["panels"][0]
    assert (chosen["rows"], chosen["judges"]) == (10, 2)


# Runs


def test_runs_have_prices_and_their_panel(tmp_path: Path) -> None:
    folders = [
        run_folder(tmp_path / name, noisy(name, noise, cost_usd=cost))
        for name, noise, cost in (
            ("single", 1.0, 0.01),
            ("debate", 1.2, 0.04),
            ("geval", 1.1, 0.02),
        )
    ]
    printed = told(*folders)
    assert "the mean of all three" in printed
    assert "$0.0700" in printed
    (found,) = panel(folders, resampling=QUICK)
    assert found.unit == "cost"
    assert found.sub_panels[0].price == pytest.approx(0.01)
    assert [of.price for of in found.sub_panels] == sorted(of.price for of in found.sub_panels)
    assert found.recommended in found.sub_panels


def test_a_report_has_the_panel_of_judges_of_the_same_rows(tmp_path: Path) -> None:
    folders = [
        run_folder(tmp_path / name, noisy(name, noise))
        for name, noise in (("single", 1.0), ("debate", 1.2))
    ]
    (found,) = panel(folders)
    study = Study.of(folders)
    assert study.panels[0].to_json() == found.to_json()
    (of_data,) = tables_by_dataset(study, ["panels"])
    members, sub_panels = of_data.grids
    assert [row[0] for row in members.rows] == ["debate", "single", "the mean of both"]
    assert "independent votes" in " ".join(members.notes)
    assert sub_panels.rows
    page = compose(study, "panels")
    assert "panels" in [section.id for of in page.datasets for section in of.sections]
    assert not Study.of(folders[:1]).panels


def test_a_failed_judgement_of_a_run_is_counted(tmp_path: Path) -> None:
    first = noisy("single", 1.0)
    second = [*noisy("debate", 1.2)[1:], failed("i00", aspect="wit", human=1.0, group="g0")]
    folders = [run_folder(tmp_path / "a", first), run_folder(tmp_path / "b", second)]
    printed = told(*folders)
    assert "1 of 40 labelled rows lack the verdict of a judge (debate on 1)" in printed


def test_members_inside_an_ensemble_are_a_panel(tmp_path: Path) -> None:
    results = [
        compared(
            f"i{item}",
            "ensemble",
            winner="1",
            human="1" if item % 3 else "2",
            group=f"g{item}",
            transcript=[
                turn(f"referee_{place}", [8, 6] if (item + place) % 4 else [6, 8])
                for place in (1, 2, 3)
            ],
        )
        for item in range(30)
    ]
    folder = run_folder(tmp_path / "run", results, kind="compare")
    (found,) = panel(folder, resampling=QUICK)
    assert [member.name for member in found.members] == [
        f"ensemble, member {place}" for place in (1, 2, 3)
    ]
    (fewer,) = panel(folder, without=["ensemble, member 2"], resampling=QUICK)
    assert fewer.size == 2


def test_one_judge_alone_is_refused(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", [scored("a", "single", score=3.0, human=3.0)])
    assert "at least two judges, and only single judged here" in refusal(folder)


# The screen


def test_the_first_screen_has_few_words_and_columns() -> None:
    for skills, correlation in (([0.7] * 5, 0.0), ([0.9, 0.5, 0.5], 0.3), ([0.7] * 3, 0.9)):
        found = world(skills, correlation)
        screen = panel_screen(found)
        assert len(screen.headline.split()) <= 12
        assert not any(letter.isdigit() for letter in screen.headline.replace(found.best, ""))
        assert len(screen.table.columns) <= 4
        assert len(screen.warnings) <= 2
        assert "independent votes" in evidence(found)


def test_too_few_items_support_no_claim() -> None:
    found = world([0.9, 0.5, 0.5], 0.0, items=8)
    assert claim(found) == "Too few items to compare the panel with its best judge"
    assert found.lead.p is None


def test_the_five_judges_of_llmbar(shared_data: Path) -> None:
    file = shared_data / "llmbar" / "replies.jsonl.gz"
    if not file.exists():
        pytest.skip("no replies of LLMBar")
    chosen = f"{file}?strategy=Vanilla&swapped=false&kind=verdict"
    columns = "protocol=judge_model,winner=author_winner,human=label"
    with pytest.warns(ReadingNotice, match="`subset`, `step`, `reply`, `intermediate` were not"):
        printed = told(chosen, "--columns", columns, "--json")
    found = json.loads(printed)["panels"][0]
    assert found["judges"] == 5
    assert found["error_correlation"]["value"] == pytest.approx(0.35, abs=0.005)
    assert found["effective_votes"]["value"] == pytest.approx(2.1, abs=0.05)
    assert found["panel"]["value"] == pytest.approx(0.558, abs=0.0005)
    assert found["best"]["judge"] == "GPT-4"
    assert found["best"]["value"] == pytest.approx(0.845, abs=0.0005)
    assert found["better"] == "member"
