"""Test the claims and tables of a report, for judges with known properties."""

import csv
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.comparison import Comparison, PairwiseComparison
from jurygraph.eval.analysis.equal_cost import EnsembleOf, EqualCostComparison, EqualCostMatch
from jurygraph.eval.analysis.leaderboard import Leaderboard
from jurygraph.eval.cli import report as command
from jurygraph.eval.cli.app import app
from jurygraph.eval.report.chart_style import themed_svg
from jurygraph.eval.report.charts import numbers_of, pictures
from jurygraph.eval.report.debate_tables import gaps
from jurygraph.eval.report.first_screen import first_screens
from jurygraph.eval.report.labels import config_hash, with_notes
from jurygraph.eval.report.page import Table
from jurygraph.eval.report.sections import compose, grids
from jurygraph.eval.report.study_tables import summary
from jurygraph.eval.results.evaluation import UsageTotals
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.tables import Grid
from jurygraph.state.errors import JurygraphError
from jurygraph.state.transcript import Usage
from rich.console import Console
from typer.testing import CliRunner

from .processes import in_this_process
from .run_folders import RATED, compared, noisy, run_folder, scored
from .sample_run import failed, write_run
from .sample_study import OFFLINE, average_duel, judge, pairwise, study
from .truth_gate import GATE


def table(found: Iterator[Grid], title: str) -> tuple[list[list[str]], Grid]:
    grid = next(grid for grid in found if title in grid.title)
    return [[cell.text for cell in row] for row in grid.written()], grid


def report(*arguments: object) -> Any:
    words = ["report", *map(str, arguments), "--resamples", "30"]
    return CliRunner().invoke(app, words, env={"COLUMNS": "150"})


# The first line
OVER_BASE = average_duel("debate")


@pytest.mark.parametrize(
    ("averages", "claim", "evidence"),
    [
        (
            # A pair may be in the other order.
            [OVER_BASE, average_duel("chateval", "debate")],
            "debate agrees best with your annotators",
            "rho 0.39 (debate) against 0.35 (chateval), mean of 2 aspects; difference 0.04, 95 % CI 0.03 to 0.05, "
            "p = 0.025. 1 other judge is further behind.",
        ),
        (
            [average_duel("debate", p=0.2), average_duel("debate", "chateval")],
            "No clear winner between debate and single",
            "rho 0.39 (debate) against 0.27 (single), mean of 2 aspects; difference 0.12, 95 % CI 0.11 to 0.13, "
            "p = 0.200.",
        ),
        (
            [],
            "No clear winner between debate and chateval",
            "rho 0.39 (debate) against 0.35 (chateval), mean of 2 aspects; no row in common.",
        ),
        (
            [replace(OVER_BASE, units=6), replace(average_duel("debate", "chateval"), units=6)],
            "Too few shared items to say which judge is better",
            "rho: debate 0.39, chateval 0.35, mean of 2 aspects.",
        ),
    ],
    ids=["holds", "not over the third", "not compared", "few"],
)
def test_the_best_is_called_so_where_its_lead_holds(
    averages: list[PairwiseComparison], claim: str, evidence: str
) -> None:
    comparison = replace(study().comparison, averages=tuple(averages))
    (screen,) = first_screens(study(comparison=comparison))
    assert screen.headline == claim
    assert screen.evidence.startswith(evidence)


def test_the_companion_of_the_metric_asked_for_is_asked_too(tmp_path: Path) -> None:
    makes = GATE["a judge of sources beside a judge of candidates"]
    folders = makes(tmp_path, np.random.default_rng(6))
    both = "of_source separates groups better, of_candidate separates the items of a group better."
    for metric in (None, "spearman", "group_spearman"):
        (screen,) = first_screens(Study.of(folders, metric=metric))
        assert screen.evidence.startswith(both)


def test_an_aspect_whose_labels_are_all_alike_does_not_hide_the_others(tmp_path: Path) -> None:
    results = []
    for aspect in ("wit", "pace", "spelling"):
        for n in range(80):
            label = {"human": 5.0 if aspect == "spelling" else float(n % 5), "aspect": aspect}
            results.append(scored(f"i{n}", "good", score=float(n % 5), **label))
            results.append(scored(f"i{n}", "fair", score=float(n % 3), **label))
    aspects = [{"name": name, "low": 0, "high": 5} for name in ("wit", "pace", "spelling")]
    (screen,) = first_screens(Study.of(run_folder(tmp_path / "run", results, aspects=aspects)))
    assert screen.headline == "good agrees best with your annotators"
    assert "mean of 2 aspects" in screen.evidence
    assert "No agreement on spelling: all 80 labels are the same." in screen.sentences


# The first screen
def test_the_table_has_four_columns_and_the_other_remarks_wait_for_the_report(
    tmp_path: Path,
) -> None:
    (screen,) = first_screens(study(notes=("one", "two", "three")), ["debate pays: sure"])
    assert [column.name for column in screen.table.columns][1:] == [
        "agreement (rho)",
        "calls",
        "cost",
    ]
    assert [row[0] for row in screen.table.rows] == ["debate", "chateval", "single"]
    assert screen.warnings == ("one", "two")
    assert screen.others[:2] == ("three", "debate pays: sure.")
    failing = 'debate failed on 1 of 24 judgements ("no score in the reply").'
    assert any(failing in other for other in screen.others), (
        "no remark is lost where two others stand before it"
    )


def test_a_sentence_to_quote_has_both_figures_and_the_difference() -> None:
    (screen,) = first_screens(study())
    assert screen.quotable == (
        "On 0 items of wit (mean of coherence and fluency), debate agreed better with the annotators than any of "
        "the 2 other judges (Spearman's rho 0.39, 95 % CI 0.29 to 0.49, against 0.35, 95 % CI 0.26 to 0.45 for "
        "chateval, the next best; difference 0.04, 95 % CI 0.03 to 0.05, p = 0.025, Holm-adjusted)."
    )
    demo = [replace(judge, note=OFFLINE) for judge in study().judges]
    assert first_screens(study(judges=tuple(demo)))[0].quotable == "", (
        "demo mode has nothing to report"
    )


def test_the_command_prints_a_screen_in_its_order(unlabelled: Path, demo: Path) -> None:
    printed = report(demo).output
    places = [
        printed.index(words)
        for words in ("Too few groups", "agreement (rho", "rho: ", "Demo mode", "Next")
    ]
    assert places == sorted(places)
    assert len(printed.splitlines()) < 25, "a screen fits on a terminal"
    steps = printed[places[4] :].splitlines()[1:]
    assert 1 <= len(steps) <= 4 and all(" report " in step for step in steps)
    assert "What you may write" not in printed


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return GATE["comparisons without labels"](
        tmp_path_factory.mktemp("bare"), np.random.default_rng(0)
    )[0]


def test_without_labels_screen_and_page_have_no_word_about_agreement(
    unlabelled: Path, tmp_path: Path
) -> None:
    printed = report(unlabelled, "--html", tmp_path / "r.html").output
    assert "Answer 2 wins most often (no human labels)" in printed
    assert not re.search(r"(?i)agree|kappa", printed)
    assert re.search(r"debate +\d+% \[\d+%, \d+%\]", printed)
    page = compose(Study.of(unlabelled), "mine")
    titles = [
        part.grid.title
        for section in page.sections
        for part in section.parts
        if isinstance(part, Table)
    ]
    assert "Verdicts" in titles
    assert not [title for title in titles if "agreement" in title.lower()]
    assert page.sections[0].id == "verdict-summary"


# --- few groups: nothing is called significant, and every output says why; enough groups are tested
# as ever -----------
CAUTION = "fewer than 10 groups or items to resample"


@pytest.mark.parametrize(("groups", "starred"), [(4, False), (12, True)])
def test_screen_page_and_exports_say_the_same(tmp_path: Path, groups: int, starred: bool) -> None:
    results = [
        row
        for aspect in ("wit", "tact")
        for protocol, noise in (("debate", 0.2), ("single", 2.0))
        for row in noisy(protocol, noise, items=4 * groups, aspect=aspect)
    ]
    run_folder(tmp_path / "run", results, aspects=[RATED, {**RATED, "name": "tact"}])
    forms = (
        "--html",
        "page.html",
        "--markdown",
        "tables.md",
        "--csv",
        "csv",
        "--latex",
        "tables.tex",
    )
    said = in_this_process("report", "run", "--all", *forms, "--resamples", "300", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    texts = {
        name: (tmp_path / name).read_text() for name in ("page.html", "tables.md", "tables.tex")
    }
    screen = " ".join(said.stdout.split())
    for name, text in {**texts, "screen": screen}.items():
        assert (CAUTION in " ".join(text.split())) is not starred, name
    assert ("Too few groups to say which judge is better" in screen) is not starred
    tables = [
        csv.DictReader(path.read_text().splitlines()) for path in (tmp_path / "csv").rglob("*.csv")
    ]
    p_values = [row["p"] for table in tables for row in table if "Δ" in row and "p" in row]
    assert p_values
    assert all(bool(p) is starred for p in p_values)
    tables_printed = screen.partition(" wrote ")[0].replace("* p <", "").replace("**", "")
    assert ("*" in tables_printed) is starred


# The tables of a terminal
def test_a_row_a_judge_and_a_column_an_aspect_with_marks_where_holm_allows() -> None:
    cells, grid = table(summary(study()), "difference vs. single")
    assert [column.name for column in grid.columns] == ["judge", "average", "coherence", "fluency"]
    assert cells == [
        ["debate", "0.120*", "0.120*", "0.120*"],
        ["chateval", "0.080*", "0.080*", "0.080*"],
    ]
    assert grid.notes == ("* p < 0.05, paired, Holm-adjusted over the judges in a column",)


def test_where_nothing_is_sure_that_is_said() -> None:
    compared = study().comparison
    unsure = [
        replace(
            one,
            differences={n: replace(d, adjusted_to_base=0.05) for n, d in one.differences.items()},
        )
        for one in compared.pairwise
    ]
    made = study(comparison=replace(compared, pairwise=tuple(unsure), averages=()))
    cells, grid = table(summary(made), "difference vs. single")
    assert cells[0] == ["debate", "0.120", "0.120"]
    assert grid.notes[0].startswith("no difference is significant (p < 0.05")


def test_at_the_same_price_says_of_how_many() -> None:
    usage = UsageTotals(12, Usage(48))
    figure = Statistic(0.3)
    ensemble = EnsembleOf("ensemble, 4 of 9", "ensemble", "coherence", 4, usage, figure)
    pair = pairwise("debate", "coherence")
    match = EqualCostMatch("debate", "coherence", ensemble, "calls", 4.4, 4.0, pair)
    made = study(matching=EqualCostComparison((ensemble,), (match,), ()))
    cells, _ = table(summary(made), "equal-cost baseline")
    assert cells == [["debate", "0.120* (k=4)", "-"]]


@pytest.fixture(scope="module")
def courtroom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MORE's gap grows to 2/3 in a round, SAMRE's in two, the baseline's stays small."""
    rounds: dict[str, Any] = {
        "more": ((100.0, 24.0),),
        "samre": ((80.0, 80.0), (100.0, 43.0)),
        "baseline": ((70.0, 60.0),),
    }
    results = [
        compared(
            f"p{n}", name, winner="1", human="12"[n % 2], scores=pairs[-1], score_by_round=pairs
        )
        for name, pairs in rounds.items()
        for n in range(6)
    ]
    return run_folder(tmp_path_factory.mktemp("gaps") / "run", results, kind="compare")


def test_all_shows_what_the_short_form_leaves_out(courtroom: Path) -> None:
    short = report(courtroom).output
    full = report(courtroom, "--all").output
    assert "Theorem 2" in full and "Theorem 2" not in short
    assert "pairwise differences" in full and "pairwise differences" not in short
    assert (short.count("#"), full.count("#")) == (0, 3)
    notes = [note for grid in summary(study()) for note in grid.notes]
    assert not any(note.startswith(("config hash", "Brackets")) for note in notes), (
        "said once, under all tables"
    )
    assert len(list(summary(study()))) <= 5 < len(list(grids(study())))


def test_gaps_are_shown_with_what_becomes_of_the_bound(courtroom: Path) -> None:
    made = Study.of(courtroom, resampling=Resampling(resamples=50, seed=1))
    cells, grid = table(gaps(made), "score gap by round")
    assert [column.name for column in grid.columns][-3:] == [
        "bound holds",
        "vacuous",
        "does not apply",
    ]
    rounds = {"more 1": "0.667", "samre 1": "0.000", "samre 2": "0.500", "baseline 1": "0.088"}
    assert {f"{row[0]} {row[1]}": row[3] for row in cells} == rounds
    assert {(row[2], *row[-3:]) for row in cells} == {("6", "0", "0", "6")}
    assert "distributed as Beta(1 + w, 1 + i - w)" in " ".join(grid.notes)
    apart, _ = table(gaps(made), "Theorem 1")
    wanted = [
        ["more", "6", "0.667", "-"],
        ["samre", "6", "0.500", "-0.167"],
        ["baseline", "6", "0.088", "-0.579"],
    ]
    assert [row[:4] for row in apart] == wanted
    sooner, _ = table(gaps(made), "Theorem 2")
    wanted = [["more", "1: 6", "-", "-", "-"], ["samre", "2: 6", "6", "0", "0"]]
    assert [row[:1] + row[5:9] for row in sooner] == wanted
    assert not list(gaps(study()))


class Closed(StringIO):
    """A pipe that its reader has closed after the first lines."""

    def write(self, _: str) -> int:
        raise BrokenPipeError


def test_files_come_before_output(
    courtroom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "console", lambda: Console(file=Closed()))
    wanted = {f"--{form}": tmp_path / form for form in ("html", "markdown", "latex", "csv")}
    done = report(courtroom, *(word for option in wanted.items() for word in option))
    assert done.exit_code != 0
    assert all(path.exists() for path in wanted.values())


# All tables, and the command
def cells(made: Study, title: str) -> dict[str, list[str]]:
    """A table's rows by their first cell, as they are read."""
    return {first: others for first, *others in table(grids(made), title)[0]}


def test_tables_say_what_the_study_says() -> None:
    made = study()
    board = cells(made, "over rows")
    assert list(board) == ["debate", "chateval", "single"]
    assert board["debate"] == ["0.395", "0.420", "0.370", "23", "1", "4.4", "$0.0052"]
    assert cells(made, "coherence: Spearman")["chateval"][:5] == [
        "12",
        "0.380",
        "0.300",
        "0.080",
        "0.012",
    ]
    assert cells(made, "Cost")["humans"] == [
        "24",
        "-",
        "-",
        "$0.7500",
        "180.00",
        "$18.0000",
        "72.0",
    ]
    assert cells(made, "Verdict changes")["debate"][:5] == ["12", "50%", "4", "1", "1"]
    gained = cells(made, "gain over single")
    assert (list(gained), gained["debate"][:2]) == (["debate", "chateval"], ["0.120", "44%"])
    pairs = next(grid for grid in grids(made) if "pairwise differences" in grid.title)
    assert [row[:2] for row in pairs.rows] == [("debate", "single"), ("chateval", "single")]


def test_gains_are_the_differences_of_the_comparison(tmp_path: Path) -> None:
    """The leaderboard has both repeats of debate, the second of which is worse; one of single."""
    again = noisy("debate", 3.0, repeat=1)
    run = run_folder(tmp_path / "run", [*noisy("debate", 0.4), *again, *noisy("single", 1.2)])
    made = Study.of(run)
    [pair] = made.comparison.pairwise
    difference = pair.differences["group_spearman"]
    own = made.leaderboard.standings[0].measures["group_spearman"].value
    assert difference.first is not None and difference.second is not None
    assert own is not None and own < difference.first - 0.01
    assert report(run, "--csv", tmp_path / "csv").exit_code == 0
    [row] = csv.DictReader(StringIO((tmp_path / "csv" / "gains.csv").read_text()))
    assert float(row["wit"]) == pytest.approx(difference.difference.value)
    assert float(row["wit %"]) == pytest.approx(
        (difference.first - difference.second) / difference.second
    )


def test_a_signature_and_the_leading_metric_stand_under_every_table() -> None:
    short = f"#{config_hash(judge('debate').signature)}"
    for full, signed in ((False, short), (True, "protocol:debate|data:wit@abc")):
        for grid in grids(study()):
            noted = with_notes(study(), grid, full)
            notes = [note for note in noted.notes if note.endswith("; ranked by Spearman's rho")]
            assert any(
                signed in note and (full or note.startswith("config hash: ")) for note in notes
            )


def test_the_other_remarks_have_the_price_and_what_makes_the_answer_doubtful() -> None:
    (screen,) = first_screens(study())
    assert "debate needs 4.4 model calls per item, which costs $0.0052." in screen.others
    few = Comparison(study().comparison.pairwise, ("fewer than 10 groups to resample",))
    unsure = compose(study(comparison=few), "wit").datasets[0].screen.others[-1]
    assert unsure == "Caution: fewer than 10 groups to resample."


def test_without_figures_there_is_no_answer_and_no_made_up_figure() -> None:
    made = study(
        leaderboard=Leaderboard((), ()),
        comparison=Comparison(()),
        frontiers=(),
        diagnoses=(),
        bases={},
    )
    (screen,) = first_screens(made)
    assert screen.headline == "Agreement cannot be computed here"
    assert (
        screen.evidence
        == "coherence: no row has a verdict and a label. fluency: no row has a verdict and a label."
    )
    assert screen.quotable == ""
    assert cells(made, "over rows")["debate"][:3] == ["-", "-", "-"]
    page = compose(made, "wit")
    assert [section.id for section in page.sections] == ["leaderboard", "cost"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "run"
    evaluate(["debate", "single"], "demo", aspects=["consistency"], limit=6, out=folder)
    return folder


@pytest.mark.slow
def test_the_command_prints_tables_and_writes_a_page_and_figures(
    demo: Path, tmp_path: Path
) -> None:
    done = report(
        demo,
        "--html",
        tmp_path / "r.html",
        "--figures",
        tmp_path / "figures",
        *("--human-price", 0.75, "--human-minutes", 3),
    )
    assert done.exit_code == 0, done.output
    assert OFFLINE in done.output
    done = report(demo, "--all", "--human-price", 0.75, "--human-minutes", 3)
    assert re.search(r"humans +\d+ +- +- +\$0\.7500 +180\.00", done.output)
    signed = json.loads((demo / "run.json").read_text())["signatures"]["debate"]
    assert signed in done.output.replace("\n", "")
    assert (tmp_path / "r.html").read_text().count("<h1>") == 1
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".pdf"}


@pytest.mark.parametrize(("arguments", "told"), [
    ("--metric rouge", "--metric 'rouge' is unknown; metrics are pearson, spearman, kendall, group_p"),
    ("--metric kappa", "--metric kappa measures comparisons, and these are scores; metrics of"),
    ("--confidence 95", "--confidence must be between 0 and 1 (0.95 for 95 %), got 95"),
    ("--open", "--open needs a page to open: write one with --html"),
    ("--base nobody", "no judge 'nobody' to compare with; judges are debate, single"),
    ("/nowhere", "/nowhere: holds no run"), ("--csv x.csv", "--csv x.csv names a file"),
    (f"--figures {__file__}", "names a file"), ("--latex /", "--latex / is a folder"),
    (f"--markdown {__file__}/r.md", "r.md: cannot be written, because"),
    ("--table leaderboard,wits", "there is no table wits; tables are leaderboard, agreement,"),
    ("--table ,", "no table given"),
])  # fmt: skip
def test_bad_input_is_told(demo: Path, arguments: str, told: str) -> None:
    done = report(demo, *arguments.split())
    assert isinstance(done.exception, JurygraphError)
    assert told in str(done.exception)


def test_tables_of_two_reports_are_not_mixed_in_one_folder(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "csv"
    page = tmp_path / "r.md"
    folder.mkdir()
    old = folder / "agreement-wit.csv"
    old.write_text("judge\n")
    (folder / "mine.csv").write_text("not ours\n")
    done = report(demo, "--csv", folder, "--markdown", page)
    assert isinstance(done.exception, JurygraphError)
    assert "agreement-wit.csv" in str(done.exception)
    assert sorted(path.name for path in folder.iterdir()) == ["agreement-wit.csv", "mine.csv"]
    assert not page.exists()
    old.unlink()
    for _ in range(2):
        assert report(demo, "--csv", folder).exit_code == 0
    assert len(list(folder.glob("*.csv"))) > 5


def test_tables_are_chosen_by_name(demo: Path, tmp_path: Path) -> None:
    latex = tmp_path / "t.tex"
    folder = tmp_path / "csv"
    done = report(demo, "--table", "cost,agreement", "--latex", latex, "--csv", folder)
    assert done.exit_code == 0, done.output
    assert "Cost per judgement" in done.output
    assert "difference vs." not in done.output
    labels = re.findall(r"\\label\{tab:([a-z-]+)\}", latex.read_text())
    assert labels[0] == "cost"
    assert {label.partition("-")[0] for label in labels} == {"cost", "agreement"}
    assert {f"{label}.csv" for label in labels} == {path.name for path in folder.iterdir()}


def test_latex_has_hashes_in_place_of_signatures_and_bold_for_tested_leads_alone(
    tmp_path: Path,
) -> None:
    host = "http://judge.internal:8000/v1"
    tables = {}
    for name, makes in (("lead", GATE["a better judge"]), ("tie", GATE["a slightly better judge"])):
        (folder,) = makes(tmp_path / name, np.random.default_rng(0))
        manifest = json.loads((folder / "run.json").read_text())
        for protocol in manifest["signatures"]:
            manifest["signatures"][protocol] += f"|models:*=openai:m?base_url={host}"
        (folder / "run.json").write_text(json.dumps(manifest))
        done = report(folder, "--latex", tmp_path / f"{name}.tex")
        assert done.exit_code == 0, done.output
        tables[name] = (tmp_path / f"{name}.tex").read_text()
        assert "judge.internal" not in tables[name] and str(tmp_path) not in tables[name]
        assert config_hash(manifest["signatures"]["good"]) in tables[name]
    bold = {name: re.findall(r"\\textbf\{[^}]*\d\.\d+\}", text) for name, text in tables.items()}
    assert len(bold["lead"]) == 1 and bold["tie"] == []


def test_a_judge_has_one_colour_in_all_charts() -> None:
    made = study()
    numbers = numbers_of(made)
    assert list(numbers) == [judge.label for judge in made.judges]
    drawn = [themed_svg(one.figure, one.title, one.description) for one in pictures(made)]
    assert len(drawn) == 3
    for label, number in numbers.items():
        assert all(f"--series-{number + 1}," in svg for svg in drawn if f">{label}<" in svg), label


def test_a_page_needs_no_charts_package(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "r.html"
    figures = tmp_path / "figures"
    assert "no charts" not in report(demo, "--html", page).output
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page.unlink()
    done = report(demo, "--figures", figures, "--markdown", tmp_path / "r.md")
    assert "--figures needs matplotlib" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
    told = report(demo, "--html", page).output.replace("\n", " ")
    assert 'for charts: pip install "jurygraph[report]"' in told
    assert "<table" in page.read_text()


def test_an_empty_run_and_one_that_failed_wholly_have_reports(tmp_path: Path) -> None:
    signed: Any = {"signatures": {"debate": "protocol:debate"}, "protocols": {"debate": {}}}
    empty = write_run(tmp_path / "empty", [], **signed)
    wholly = write_run(tmp_path / "failed", [failed("i0"), failed("i1")])
    for folder, verdicts in ((empty, "0 verdicts"), (wholly, "2 verdicts")):
        done = report(folder, "--html", tmp_path / "page.html")
        assert done.exit_code == 0, done.output
        assert "wrote" in done.output and verdicts in done.output


def test_judges_that_hardly_vary_on_the_same_items_are_not_said_to_share_too_few(
    tmp_path: Path,
) -> None:
    random = np.random.default_rng(2)
    results = []
    for number in range(24):
        scores = {"single": 5.0 if number > 1 else 4.0, "debate": float(random.uniform(1, 5))}
        results += [
            scored(f"i{number}", name, score=score, human=1 + number / 6)
            for name, score in scores.items()
        ]
    done = report(run_folder(tmp_path / "run", results))
    assert done.exit_code == 0, done.exception
    lines = done.output.splitlines()
    assert lines[0] == "Verdicts or labels vary too little to say which judge is better"
    assert re.search(
        r"Most verdicts or labels are the same: for single, 24 items count as \d\.\d\.", done.output
    )
    assert "share too few" not in done.output
