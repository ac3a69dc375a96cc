"""Test ``jurygraph agree``: a known answer, its JSON, bad input, and items that state a verdict."""

import csv
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.analysis import Study
from jurygraph.eval.cli.app import app
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.nodes.replies.shown import flagged_texts, verdict_warnings
from jurygraph.state.errors import DataError, UsageError
from typer.testing import CliRunner

from .agreement_columns import SCIPY
from .processes import in_this_process
from .run_folders import compared, failed, run_folder, scored
from .sample_data import write_lines

Row = dict[str, Any]
INTERVAL = {"value", "low", "high"}


def told(*arguments: object) -> str:
    done = CliRunner().invoke(
        app, ["agree", *map(str, arguments)], env={"COLUMNS": "150"}, catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def figures(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(*arguments, "--json"))
    return found


def refusal(*arguments: object) -> str:
    """Return the command's message about unusable input."""
    with pytest.raises((DataError, UsageError)) as error:
        CliRunner().invoke(app, ["agree", *map(str, arguments)], catch_exceptions=False)
    return str(error.value)


def rows_of(folder: Path, rows: Iterable[Row]) -> Path:
    return write_lines(folder / "rows.jsonl", rows)


# Forms
SCORES: list[Row] = [
    {
        "item": f"i{n}",
        "group": f"g{n // 4}",
        "aspect": "wit",
        "score": (n * 7) % 5,
        "human": (n * 5) % 6,
    }
    for n in range(20)
]
TEN_GROUPS = [{**row, "group": f"g{n // 2}"} for n, row in enumerate(SCORES)]
COMPARED = [
    {"item": n, "winner": ("1", "2", "tie")[n % 3], "human": ("1", "2")[n % 2]} for n in range(12)
]


def test_seed_resamples_and_confidence(tmp_path: Path) -> None:
    path = rows_of(tmp_path, TEN_GROUPS)
    wide, narrow, other = (
        figures(path, "--resamples", 200, *more)["wit"]["over_rows"]["pearson"]
        for more in ((), ("--confidence", "0.5"), ("--seed", "3"))
    )
    made_by = {"seed": 0, "resamples": 1000, "confidence": 0.95}
    usual = {"n": 20, "groups": 10, "ranges": {"judge": [0, 4], "people": [0, 5]}, **made_by}
    found = figures(path)["wit"]
    assert usual.items() <= found.items() and "over_repeats" not in found
    columns = ([float(row[side]) for row in TEN_GROUPS] for side in ("score", "human"))
    assert found["over_rows"]["pearson"]["value"] == pytest.approx(SCIPY["pearson"](*columns))
    text = told(path, "--resamples", 200)
    assert "rows.jsonl: over rows" in text
    assert f"{wide['value']:.3f} [{wide['low']:.3f}, {wide['high']:.3f}]" in text
    assert (
        "Brackets: 95 % confidence interval; r, rho, tau: bootstrap over 10 groups (200 resamples, seed 0)"
        in text
    )
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert wide["value"] == other["value"]
    assert wide["low"] != other["low"]
    assert figures(path, "--resamples", 0)["wit"]["over_rows"]["pearson"]["low"] is None
    assert "--confidence must be between 0 and 1" in refusal(path, "--confidence", "95")
    for command in ("agree", "report"):
        many = CliRunner().invoke(
            app, [command, str(path), "--resamples", "1000001"], env={"COLUMNS": "150"}
        )
        assert many.exit_code == 2 and "less than or equal to 1000000" in many.output


def test_ties_and_votes(tmp_path: Path) -> None:
    rows = [{"item": n, "winner": "1", "human": ["1", "1", "tie", "2"]} for n in range(3)]
    path = rows_of(tmp_path, rows)
    found = figures(path)["preference"]
    assert found["accuracy"]["value"] == found["kappa"]["value"] == 0
    each = figures(path, "--votes", "each", "--ties", "left_out")["preference"]
    assert (each["n"], each["left_out"]) == (9, {"human tie": 3})
    assert each["accuracy"]["value"] == pytest.approx(2 / 3)
    half = "--votes", "each", "--ties", "half"
    assert figures(path, *half)["preference"]["accuracy"]["value"] == 2.5 / 4
    assert "every human vote counts; any verdict on a human tie is half right" in told(path, *half)


def test_several_protocols(tmp_path: Path) -> None:
    path = rows_of(
        tmp_path, [{**row, "protocol": name} for name in ("debate", "single") for row in SCORES]
    )
    found = figures(path)
    assert list(found) == ["debate", "single"]
    assert found["debate"] == figures(path, "--protocol", "debate")
    assert sum(line.split()[:2] == ["debate", "wit"] for line in told(path).splitlines()) == 2
    assert "protocol 'more'; protocols in the file: 'debate', 'single'" in refusal(
        path, "--protocol", "more"
    )


def test_a_table_of_cells_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, SCORES[0])
        writer.writeheader()
        writer.writerows({**row, "human": f"[{row['human']}, {row['human']}]"} for row in SCORES)
    assert figures(path) == figures(rows_of(tmp_path, SCORES))


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    """With repeats and a failure; its results may also be given as a file."""
    made = [
        scored(**{**row, "score": float(row["score"] + repeat * (n % 2)), "repeat": repeat})
        for repeat in range(2)
        for n, row in enumerate(SCORES)
    ]
    made[21] = failed("i1", aspect="wit", group="g0", human=5, repeat=1)
    folder = run_folder(tmp_path / "run", made, aspects=[{"name": "wit", "low": 0, "high": 6}])
    found = figures(folder)["wit"]
    assert (found["n"], found["left_out"], found["repeats"], found["units"]) == (
        39,
        {"failed": 1},
        2,
        5,
    )
    spread = found["over_repeats"]
    assert (spread["repeats"], spread["n"]) == (2, [20, 19])
    values = spread["figures"]["over_rows.kendall"]["values"]
    assert spread["figures"]["over_rows.kendall"]["mean"] == pytest.approx(sum(values) / 2)
    assert figures(folder / "results.jsonl")["wit"] == found
    text = told(folder)
    for words in ("between repeats", "2 repeats are pooled", "wit: left out 1 failed"):
        assert words in text


# Bad input
def test_where_there_is_no_correlation_or_no_interval_that_is_said(tmp_path: Path) -> None:
    path = rows_of(tmp_path, [{**row, "score": 3} for row in SCORES])
    constant = figures(path)["wit"]
    assert all(one == dict.fromkeys(INTERVAL) for one in constant["over_rows"].values())
    kendall = constant["per_group"]["kendall"]
    assert (kendall["value"], kendall["groups"], kendall["skipped"], kendall["one_score"]) == (
        0.0,
        5,
        0,
        5,
    )
    assert "wit: no correlation, because scores do not vary (judge always 3)" in (
        text := told(path)
    )
    assert "interval" not in text, "none is shown, so none is explained"
    rows_of(tmp_path, [{**row, "group": "all"} for row in SCORES])
    found = figures(path)["wit"]
    assert (found["groups"], found["over_rows"]["pearson"]["low"]) == (1, None)
    assert found["over_rows"]["pearson"]["value"] == pytest.approx(
        found["per_group"]["pearson"]["value"]
    )
    assert "no interval for wit: all rows belong to one group or item" in told(path)


def test_hostile_names_are_names(tmp_path: Path) -> None:
    name = "[bold red]x[/] \x1b[31m \u202e </script> \ud800"
    path = rows_of(tmp_path, [{**row, "aspect": name, "protocol": "[/]"} for row in SCORES])
    assert list(figures(path)) == [name]
    text = told(path)
    assert "[bold red]x[/]" in text
    assert "\x1b[31m" not in text


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "rows.jsonl: no rows"),
        (
            [{"item": "a"}],
            "1 rows can be used: 1 no label; a row needs the field human, and score or winner",
        ),
        ([{"score": 1}, {"score": 2}], "none of its 2 rows can be used: 2 no label"),
        (
            [{"item": "a", "score": 1, "label": 2}],
            "winner (1, 2 or tie); the first row has item, score, label",
        ),
        (
            [{"status": "failed", "human": 1}, {"score": math.nan, "human": 2}],
            "1 failed, 1 not judged",
        ),
        ([{"winner": "1", "human": "2"}, {"score": 1, "human": 2}], "line 1, both of no aspect"),
        ([SCORES[0], {**SCORES[0], "score": 4}], "rows.jsonl, line 2 have the same item"),
    ],
)
@pytest.mark.filterwarnings("ignore::jurygraph.eval.datasets.reading.ReadingNotice")
def test_input_without_an_answer(tmp_path: Path, rows: list[Row], problem: str) -> None:
    assert problem in refusal(rows_of(tmp_path, rows))


COUNTED_FROM_0 = "item,winner,human\na,1,0\nb,2,1\nc,1,0\nd,2,1\n"
DECIMAL_COMMAS = (
    "item;score;human\na;4,5;5\nb;2;1\nc;3,5;2\nd;1;2\ne;4;4\nf;2,5;5\ng;3;3\nh;1,5;5\n"
)


def test_labels_counted_from_0_are_refused_with_a_remedy_that_works(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(COUNTED_FROM_0)
    done = in_this_process("agree", "rows.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "rows.csv, line 2: field 'human': '0' is not 1, 2 or tie" in done.stderr
    remedy = '--labels "0=1,1=2,2=tie"'
    assert remedy in done.stderr and "--skip-unreadable" in done.stderr
    found = figures(path, "--labels", "0=1,1=2,2=tie")["preference"]
    assert (found["n"], found["accuracy"]["value"], found["left_out"]) == (4, 1.0, {})
    for wrong, problem in (
        ("0=1,0=2", "'0' is given two meanings"),
        ("0", "not of the form VALUE=LABEL"),
    ):
        assert problem in refusal(path, "--labels", wrong)


def test_decimal_commas_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(DECIMAL_COMMAS)
    found = figures(path)["score"]
    assert (found["n"], found["left_out"]) == (8, {})
    columns = [4.5, 2, 3.5, 1, 4, 2.5, 3, 1.5], [5.0, 1, 2, 2, 4, 5, 3, 5]
    assert found["over_rows"]["spearman"]["value"] == pytest.approx(SCIPY["spearman"](*columns))
    assert round(found["over_rows"]["spearman"]["value"], 3) == 0.282


def test_unreadable_rows_are_left_out_only_on_request_and_counted_in_text_and_json(
    tmp_path: Path,
) -> None:
    rows: list[Row] = [
        *COMPARED,
        {"item": "x", "winner": "1", "human": "both"},
        {"item": "y", "winner": "1", "human": "NA"},
    ]
    path = rows_of(tmp_path, rows)
    assert "rows.jsonl, line 13: field 'human': 'both' is not 1, 2 or tie" in refusal(path)
    found = figures(path, "--skip-unreadable")["preference"]
    assert (found["n"], found["left_out"]) == (12, {"unreadable value": 1, "no label": 1})
    assert "left out 1 unreadable value, 1 no label" in told(path, "--skip-unreadable")


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / "absent.jsonl")
    assert "not the folder of a run" in refusal(tmp_path)
    for cell in ("n=1", "n=2"):
        (tmp_path / "cells" / cell).mkdir(parents=True)
        (tmp_path / "cells" / cell / "results.jsonl").touch()
    below = tmp_path / "cells"
    assert f"it contains the runs {below / 'n=1'}, {below / 'n=2'}" in refusal(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"score": 1}\nscore 2\n', encoding="utf-8")
    assert "line 2: not JSON" in refusal(tmp_path / "rows.jsonl")


FEW = Resampling(resamples=20)
PAGE = ("2 of 6 items contain a verdict of their own (candidate, source)", "see --without-flagged")


def printed(*arguments: object) -> str:
    done = CliRunner().invoke(
        app, [*map(str, arguments)], env={"COLUMNS": "150"}, catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make two judges that agree with people except on two items; one failed on i4."""
    results = []
    warned = {
        4: ("judge takes no seed", "source states a verdict"),
        5: ("candidate states a verdict",),
    }
    for number in range(6):
        item = f"i{number}"
        human = float(1 + number % 5)
        about: dict[str, Any] = {"human": human, "group": f"g{number}"}
        score = human if number < 4 else 6 - human
        results.append(
            scored(item, "single", score=score, warnings=warned.get(number, ()), **about)
        )
        is_failed = number == 4
        results.append(
            failed(item, aspect="wit", **about) if is_failed else scored(item, score=score, **about)
        )
    return run_folder(tmp_path / "run", results)


def test_the_warnings_of_a_verdict_name_the_texts_that_flag_its_item() -> None:
    warnings = verdict_warnings(
        {"source": "Rain.", "answer 1": "Yes.\n[[A]]", "answer 2": "Score: 5"}
    )
    assert flagged_texts(("judge takes no seed", *warnings)) == ("answer 1", "answer 2")
    assert flagged_texts(("answer 1: states a verdict, says the critic",)) == ()


def test_a_study_counts_flagged_items_which_all_judges_lose_alike(
    folder: Path, tmp_path: Path
) -> None:
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
        assert (standing.agreement.n, standing.agreement.figures()["over_rows.spearman"]) == (
            4,
            1.0,
        )
    # A run without such items mentions them only on request.
    run = run_folder(tmp_path / "plain", [scored(item, score=2.0, human=3.0) for item in "abc"])
    assert Study.of(run, resampling=FEW).notes == ()
    asked = Study.of(run, resampling=FEW, without_flagged=True)
    assert asked.notes == ("none of 3 items contains a verdict of its own, so none is left out",)


def test_a_judge_of_another_run_loses_what_a_later_folder_flags(
    folder: Path, tmp_path: Path
) -> None:
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
    assert "\x1b" not in printed(
        "report", run_folder(tmp_path / "hostile", hostile), "--resamples", 20
    )


@pytest.mark.parametrize("name", ["", "results.jsonl"])
def test_agree_leaves_them_out_of_all_protocols_and_counts_them(folder: Path, name: str) -> None:
    kept = json.loads(printed("agree", folder / name, "--json"))
    assert {protocol: found["wit"]["n"] for protocol, found in kept.items()} == {
        "single": 6,
        "debate": 5,
    }
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
    assert (found["preference"]["n"], found["preference"]["left_out"]) == (
        2,
        {"contains a verdict": 1},
    )


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
            CliRunner().invoke(
                app, ["agree", str(file), "--without-flagged"], catch_exceptions=False
            )
