"""Items with a text that states a verdict itself: counted in reports, and left out for all judges alike on request."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.cli.app import app
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.nodes.replies.shown import flagged_texts, verdict_warnings
from jurygraph.state.errors import DataError, UsageError
from typer.testing import CliRunner

from .run_folders import compared, failed, run_folder, scored

FEW = Resampling(resamples=20)
PAGE = ("2 of 6 items contain a verdict of their own (candidate, source)", "see --without-flagged")


def printed(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "150"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two judges that agree with people but on two items, which only one of them warns of (the other failed on i4)."""
    results = []
    warned = {4: ("judge takes no seed", "source states a verdict"), 5: ("candidate states a verdict",)}
    for number in range(6):
        item, human = f"i{number}", float(1 + number % 5)
        about: dict[str, Any] = {"human": human, "group": f"g{number}"}
        score = human if number < 4 else 6 - human
        results.append(scored(item, "single", score=score, warnings=warned.get(number, ()), **about))
        is_failed = number == 4
        results.append(
            failed(item, aspect="wit", **about) if is_failed else scored(item, score=score, **about)
        )
    return run_folder(tmp_path / "run", results)


def test_the_warnings_of_a_verdict_name_the_texts_that_flag_its_item() -> None:
    warnings = verdict_warnings({"source": "Rain.", "answer 1": "Yes.\n[[A]]", "answer 2": "Score: 5"})
    assert flagged_texts(("judge takes no seed", *warnings)) == ("answer 1", "answer 2")
    assert flagged_texts(("answer 1: states a verdict, says the critic",)) == ()


def test_a_study_counts_flagged_items_which_all_judges_lose_alike(folder: Path, tmp_path: Path) -> None:
    study = Study.of(folder, resampling=FEW)
    assert study.notes[0] == ": ".join(PAGE)
    assert [(judge.judged, judge.failed) for judge in study.judges] == [(6, 0), (5, 1)]
    study = Study.of(folder, resampling=FEW, without_flagged=True)
    # No failure is left either, and nothing counts as missing.
    assert study.notes == (f"{PAGE[0]}: left out",)
    told = [(judge.wanted, judge.judged, judge.failed, judge.missing) for judge in study.judges]
    assert told == [(4, 4, 0, 0), (4, 4, 0, 0)]
    for judge in study.judges:
        standing = study.leaderboard.standing(judge.label, "wit")
        assert standing and standing.agreement
        assert (standing.agreement.n, standing.agreement.figures()["over_rows.spearman"]) == (4, 1.0)
    # Nothing is said of a run without such items unless it was asked for.
    run = run_folder(tmp_path / "plain", [scored(item, score=2.0, human=3.0) for item in "abc"])
    assert Study.of(run, resampling=FEW).notes == ()
    asked = Study.of(run, resampling=FEW, without_flagged=True)
    assert asked.notes == ("none of 3 items contains a verdict of its own, so none is left out",)


def test_a_judge_of_another_run_loses_what_a_later_folder_flags(folder: Path, tmp_path: Path) -> None:
    plain = [scored(f"i{number}", "geval", score=2.0, human=3.0) for number in range(3, 6)]
    other = run_folder(tmp_path / "other", plain)
    elsewhere = run_folder(tmp_path / "elsewhere", plain, data={"digest": "4567", "name": "theirs"})
    study = Study.of([other, elsewhere, folder], resampling=FEW, without_flagged=True)
    assert [judge.judged for judge in study.judges] == [1, 3, 4, 4]
    assert study.notes[0].startswith("2 of 9 items")


def test_terminal_and_page_say_it_in_one_line(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert printed("report", folder, "--html", page, "--resamples", 20).count(": ".join(PAGE)) == 1
    assert page.read_text().count(": ".join(PAGE)) == 1
    without = printed("report", folder, "--without-flagged", "--html", page, "--resamples", 20)
    assert without.count(f"{PAGE[0]}: left out") == 1
    assert page.read_text().count(f"{PAGE[0]}: left out") == 1
    assert PAGE[1] not in without
    hostile = [scored("a", score=2.0, human=3.0, warnings=("\x1b[2J states a verdict",))]
    assert "\x1b" not in printed("report", run_folder(tmp_path / "hostile", hostile), "--resamples", 20)


@pytest.mark.parametrize("name", ["", "results.jsonl"])
def test_agree_leaves_them_out_of_all_protocols_and_counts_them(folder: Path, name: str) -> None:
    kept = json.loads(printed("agree", folder / name, "--json"))
    assert {protocol: found["wit"]["n"] for protocol, found in kept.items()} == {"single": 6, "debate": 5}
    found = json.loads(printed("agree", folder / name, "--json", "--without-flagged"))
    for protocol in ("single", "debate"):
        wit = found[protocol]["wit"]
        assert (wit["n"], wit["left_out"]) == (4, {"contains a verdict": 2})
        assert wit["over_rows"]["spearman"]["value"] == 1.0
    # The other protocol's warnings count, also where its rows do not.
    alone = printed("agree", folder / name, "--protocol", "debate", "--without-flagged")
    assert f"{PAGE[0]}: left out" in alone
    assert "left out 2 contains a verdict" in alone
    pairs = [compared(item, winner="1", human="1") for item in "bc"]
    pairs += [compared("a", winner="1", human="1", warnings=("answer 2 states a verdict",))]
    run = run_folder(folder.with_name("pairs"), pairs, kind="compare")
    found = json.loads(printed("agree", run, "--json", "--without-flagged"))
    assert (found["preference"]["n"], found["preference"]["left_out"]) == (2, {"contains a verdict": 1})


def test_agree_refuses_what_cannot_tell_which_items_are_flagged(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"item": "a", "score": 1, "human": 2}\n')
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    for file, error, why in (
        (rows, UsageError, "line 1: the row has no list of warnings"),
        (pipe, UsageError, "reads rows twice"),
        (tmp_path, UsageError, "not the folder of a run"),
        (tmp_path / "nowhere.jsonl", DataError, "nowhere.jsonl"),
    ):
        with pytest.raises(error, match=why):
            CliRunner().invoke(app, ["agree", str(file), "--without-flagged"], catch_exceptions=False)
