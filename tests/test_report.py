"""What a report carries and says: blocks and index, tables of a study, the command and what it is given."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.comparison import Comparison
from jurygraph.eval.analysis.leaderboard import Leaderboard
from jurygraph.eval.cli.app import app
from jurygraph.eval.report import debates
from jurygraph.eval.report.chart_style import themed_svg
from jurygraph.eval.report.charts import numbers_of, pictures
from jurygraph.eval.report.debates import Debates, ReportedRun, run_folders
from jurygraph.eval.report.headline import answers, headline
from jurygraph.eval.report.labels import config_hash
from jurygraph.eval.report.page import write_page
from jurygraph.eval.report.sections import compose, grids
from jurygraph.state.errors import DataError, JurygraphError
from typer.testing import CliRunner, Result

from .sample_run import debate, failed, write_run
from .sample_study import OFFLINE, judge, study


def debates_of(*folders: Path, most: int | None = None) -> Debates:
    manifests = [(folder, json.loads((folder / "run.json").read_text())) for folder in folders]
    return Debates(run_folders(manifests), most)


def read(*folders: Path) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """The index, all transcripts and all texts of runs, as a page unpacks them."""
    made = debates_of(*folders)
    blocks = {block.id: json.loads(gzip.decompress(base64.b64decode(block.text))) for block in made.blocks()}
    index = made.index()
    counts = index["blocks"]
    transcripts = [blocks[f"t{number}"] for number in range(counts["transcripts"])]
    return index, transcripts, [blocks[f"i{number}"] for number in range(counts["texts"])]


def row(index: dict[str, Any], number: int) -> dict[str, Any]:
    return {name: values[number] for name, values in index["rows"].items()}


ITEMS = [
    {"id": f"i{n}", "source": "It rained all day.", "candidate": f"Rain, {n}.", "human": {"coherence": 3}}
    for n in range(3)
]


def test_every_verdict_is_a_row_that_leads_to_its_transcript(tmp_path: Path) -> None:
    results = [
        debate("i0"),
        failed("i1", human=4.0),
        debate("i2", "more", human=1.0, score_by_round=(5.0,), score=5.0),
    ]
    index, transcripts, texts = read(write_run(tmp_path / "run", results, ITEMS))
    first, second, third = (row(index, number) for number in range(3))
    assert [index["items"]["id"][each["item"]] for each in (first, second, third)] == ["i0", "i1", "i2"]
    assert (first["value"], first["gap"], first["moved"], first["tokens"]) == (3.0, 0.0, 1.0, 480)
    assert (second["ok"], second["value"], second["gap"], second["reason"]) == (0, None, None, -1)
    assert (third["distance"], third["gap"], third["moved"]) == (4.0, 1.0, None)
    assert index["protocols"] == ["debate", "more"]
    held = transcripts[first["block"]][first["place"]]
    assert [turn["agent"] for turn in held["transcript"]] == ["scorer", "critic", "scorer", "critic"]
    assert transcripts[second["block"]][second["place"]]["error"].startswith("no score in the reply")
    strings = texts[0]["strings"]
    assert strings.count("It rained all day.") == 1
    assert [[name, strings[place]] for name, place in texts[0]["items"][2]] == [
        ["source", "It rained all day."],
        ["candidate", "Rain, 2."],
    ]


def test_of_two_answers_the_winner_counts(tmp_path: Path) -> None:
    about: Any = {
        "aspect": None,
        "score": None,
        "scores": (6.0, 8.0),
        "score_by_round": ((8.0, 6.0), (6.0, 8.0)),
    }
    labels = [("1", "1"), ("tie", "1"), ("2", "1"), ("2", None)]
    results = [
        debate(f"p{n}", winner=winner, human=human, **about) for n, (winner, human) in enumerate(labels)
    ]
    index, _, _ = read(write_run(tmp_path / "run", results))
    assert index["rows"]["gap"] == [0.0, 0.5, 1.0, None]
    assert (index["rows"]["moved"], index["rows"]["aspect"]) == ([4.0] * 4, [-1] * 4)


def test_of_more_verdicts_than_a_page_is_to_have_those_worth_reading_are_chosen(tmp_path: Path) -> None:
    dull = [debate(f"i{number}", score_by_round=(3.0,)) for number in range(60)]
    dull[50] = failed("i50", aspect="coherence")
    dull[30] = debate("i30", human=1.0, score_by_round=(3.0,))
    dull[40] = debate("i40", score_by_round=(5.0, 3.0))
    folder = write_run(tmp_path / "run", dull)

    def page(most: int | None) -> tuple[str, list[str]]:
        made = debates_of(folder, most=most)
        write_page(compose(study(), "spearman", "title"), made, tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text()
        index = json.loads(text.partition('id="index">')[2].partition("</script>")[0])
        assert len(made) == len(index["rows"]["item"])
        return text, [index["items"]["id"][item] for item in index["rows"]["item"]]

    text, shown = page(4)
    assert shown == ["i0", "i30", "i40", "i50"]  # in the order of the run
    assert "4 of 60 verdicts are on this page" in text
    assert "The other 56 are in the folders" in text
    text, shown = page(None)
    assert len(shown) == 60
    assert "are on this page" not in text


def test_blocks_fill_up_and_long_debates_leave_room_for_fewer_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [debate(f"i{n}", words=f"word {n} " * 150, human=1.0 + n % 5) for n in range(40)]
    folder = write_run(tmp_path / "run", results)
    monkeypatch.setattr(debates, "FULL", 2_000)
    index, transcripts, _ = read(folder)
    assert len(transcripts) > 5
    for number in range(40):
        found = row(index, number)
        held = transcripts[found["block"]][found["place"]]
        assert held["transcript"][0]["content"].startswith(f"word {number} ")
    monkeypatch.setattr(debates, "_MOST_DEBATES", 20_000)
    index, transcripts, _ = read(folder)
    assert 5 < len(index["rows"]["item"]) < 20
    assert sum(len(json.dumps(block)) for block in transcripts) < 21_000
    assert len(debates_of(folder, most=40)) == 40  # asked for


def test_two_runs_on_the_same_data_share_items_and_texts(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [debate("i0")], ITEMS)
    other = write_run(tmp_path / "other", [debate("i0", "more")], ITEMS)
    index, _, texts = read(one, other)
    assert index["rows"]["item"] == [0, 0]
    assert [run["name"] for run in index["runs"]] == ["one", "other"]
    assert len(texts) == 1
    elsewhere = write_run(tmp_path / "elsewhere", [debate("i0")], ITEMS[:1])
    assert read(one, elsewhere)[0]["rows"]["item"] == [0, 1]


@pytest.mark.parametrize(
    ("mischief", "told"),
    [
        (lambda file: file.unlink(), "run-data.jsonl is no longer where the run read it"),
        (
            lambda file: file.write_text(file.read_text().replace("Rain", "Snow")),
            "run-data.jsonl has changed since",
        ),
        (lambda file: file.write_text("{"), "run-data.jsonl can no longer be read"),
    ],
    ids=["gone", "changed", "spoilt"],
)
def test_texts_that_cannot_be_had_are_left_out_with_a_word(tmp_path: Path, mischief: Any, told: str) -> None:
    folder = write_run(tmp_path / "run", [debate("i0")], ITEMS)
    mischief(tmp_path / "run-data.jsonl")
    index, _, texts = read(folder)
    assert told in index["runs"][0]["without"]
    assert texts == []
    assert index["items"]["block"] == [-1]


def test_a_page_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [debate("i0")])
    with (folder / "results.jsonl").open("a") as file:
        file.write("{}\n")
    debates = Debates([ReportedRun("run", folder, {})])
    (tmp_path / "page.html").write_text("the page of before")
    with pytest.raises(DataError, match=r"results\.jsonl, line 2"):
        write_page(compose(study(), "spearman", "wit"), debates, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "the page of before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run"]


def cells(made: Study, title: str, full: bool = False) -> dict[str, list[str]]:
    """A table's rows by their first cell, as they are read."""
    grid = next(grid for grid in grids(made, "spearman", full) if title in grid.title)
    return {row[0].text: [cell.text for cell in row[1:]] for row in grid.written()}


def test_tables_say_what_the_study_says() -> None:
    made = study()
    board = cells(made, "over rows")
    assert list(board) == ["debate", "chateval", "single"]
    assert board["debate"] == ["0.395", "0.420", "0.370", "23", "1", "4.4", "$0.0052"]
    assert cells(made, "coherence: Spearman")["chateval"][:5] == ["12", "0.380", "0.300", "0.080", "0.012"]
    assert cells(made, "Cost")["humans"] == ["24", "-", "-", "$0.7500", "180.00", "$18.0000", "72.0"]
    assert cells(made, "Verdict changes")["debate"][:5] == ["12", "50%", "4", "1", "1"]
    gained = cells(made, "gain over single")
    assert (list(gained), gained["debate"][:2]) == (["debate", "chateval"], ["0.100", "33%"])
    pairs = next(grid for grid in grids(made, "spearman") if "pairwise differences" in grid.title)
    assert [row[:2] for row in pairs.rows] == [("debate", "single"), ("chateval", "single")]


def test_a_signature_and_the_leading_metric_stand_under_every_table() -> None:
    short = f"#{config_hash(judge('debate').signature)}"
    for full, signed in ((False, short), (True, "protocol:debate|data:wit@abc")):
        for grid in grids(study(), "spearman", full=full):
            notes = [note for note in grid.notes if note.endswith("; ranked by Spearman's rho")]
            assert any(signed in note and (full or note.startswith("config hash: ")) for note in notes)


def test_the_answer_says_how_sure_and_at_what_price() -> None:
    (told,) = answers(study(), "spearman")
    assert "ratings: 0.395 [0.295, 0.495], the mean over 2 aspects" in told
    assert "A judgement of debate takes 4.4 calls and costs $0.0052." in told
    few = Comparison(study().comparison.pairwise, "", ("fewer than 10 groups to resample",))
    unsure = compose(study(comparison=few), "spearman", "wit").answers[-1]
    assert unsure == "Caution: fewer than 10 groups to resample."


def test_without_labels_there_is_no_answer_and_no_made_up_figure() -> None:
    made = study(
        leaderboard=Leaderboard((), ()), comparison=Comparison((), ""), frontiers=(), diagnoses=(), bases={}
    )
    assert "No judge can be compared" in headline(made, "spearman")
    assert cells(made, "over rows")["debate"][:3] == ["-", "-", "-"]
    page = compose(made, "spearman", "wit")
    assert "how many rows were used" in page.answers[0]
    assert [section.id for section in page.sections] == ["leaderboard", "cost"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "run"
    evaluate(["debate", "single"], "demo", aspects=["consistency"], limit=6, out=folder)
    return folder


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(
        app, ["report", *map(str, arguments), "--resamples", "30"], env={"COLUMNS": "140"}
    )


def test_the_command_prints_tables_and_writes_every_form(demo: Path, tmp_path: Path) -> None:
    done = invoke(
        demo,
        *("--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md", "--latex", tmp_path / "r.tex"),
        *("--csv", tmp_path / "csv", "--figures", tmp_path / "figures"),
        *("--human-price", 0.75, "--human-minutes", 3),
    )
    assert done.exit_code == 0, done.output
    assert OFFLINE in done.output
    assert re.search(r"humans +\d+ +- +- +\$0\.7500 +180\.00", done.output)
    signed = json.loads((demo / "run.json").read_text())["signatures"]["debate"]
    assert signed in done.output.replace("\n", "")
    assert (tmp_path / "r.html").read_text().count("<h1>") == 1
    assert "### " in (tmp_path / "r.md").read_text()
    assert r"\toprule" in (tmp_path / "r.tex").read_text()
    assert len(list((tmp_path / "csv").glob("*.csv"))) > 5
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".svg", ".pdf"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--metric rouge", "--metric 'rouge' is unknown; metrics are pearson, spearman, kendall, group_p"),
        ("--confidence 95", "--confidence must be between 0 and 1 (0.95 for 95 %), got 95"),
        ("--open", "--open needs a page to open: write one with --html"),
        ("--base nobody", "nobody"),
        ("/nowhere", "/nowhere: holds no run"),
        ("--csv x.csv", "--csv x.csv names a file"),
        (f"--figures {__file__}", "names a file"),
        ("--latex /", "--latex / is a folder"),
        (f"--markdown {__file__}/r.md", "r.md: cannot be written, because"),
        ("--table leaderboard,wits", "there is no table wits; tables are leaderboard, agreement,"),
        ("--table ,", "no table given"),
    ],
)
def test_bad_input_is_told(demo: Path, arguments: str, told: str) -> None:
    done = invoke(demo, *arguments.split())
    assert isinstance(done.exception, JurygraphError)
    assert told in str(done.exception)


def test_tables_of_two_reports_are_not_mixed_in_one_folder(demo: Path, tmp_path: Path) -> None:
    folder, page = tmp_path / "csv", tmp_path / "r.md"
    folder.mkdir()
    old = folder / "agreement-wit.csv"
    old.write_text("judge\n")
    (folder / "mine.csv").write_text("not ours\n")
    done = invoke(demo, "--csv", folder, "--markdown", page)
    assert isinstance(done.exception, JurygraphError)
    assert "agreement-wit.csv" in str(done.exception)
    assert sorted(path.name for path in folder.iterdir()) == ["agreement-wit.csv", "mine.csv"]
    assert not page.exists()
    old.unlink()
    for _ in range(2):
        assert invoke(demo, "--csv", folder).exit_code == 0
    assert len(list(folder.glob("*.csv"))) > 5


def test_tables_are_chosen_by_name(demo: Path, tmp_path: Path) -> None:
    latex, folder = tmp_path / "t.tex", tmp_path / "csv"
    done = invoke(demo, "--table", "cost,agreement", "--latex", latex, "--csv", folder)
    assert done.exit_code == 0, done.output
    assert "Cost per judgement" in done.output
    assert "difference vs." not in done.output
    labels = re.findall(r"\\label\{tab:([a-z-]+)\}", latex.read_text())
    assert labels[0] == "cost"
    assert {label.partition("-")[0] for label in labels} == {"cost", "agreement"}
    assert {f"{label}.csv" for label in labels} == {path.name for path in folder.iterdir()}


def test_a_judge_has_one_colour_in_all_charts() -> None:
    made = study()
    numbers = numbers_of(made)
    assert list(numbers) == [judge.label for judge in made.judges]
    drawn = [themed_svg(one.figure, one.title, one.description) for one in pictures(made)]
    assert len(drawn) == 2
    for label, number in numbers.items():
        assert all(f"--series-{number + 1}," in svg for svg in drawn if f">{label}<" in svg), label


def test_a_page_needs_no_package_for_charts_but_figures_do(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, figures = tmp_path / "r.html", tmp_path / "figures"
    assert "no charts" not in invoke(demo, "--html", page).output
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page.unlink()
    done = invoke(demo, "--figures", figures, "--markdown", tmp_path / "r.md")
    assert "--figures needs matplotlib" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
    told = invoke(demo, "--html", page).output.replace("\n", " ")
    assert 'for charts: pip install "jurygraph[report]"' in told
    assert "<table" in page.read_text()


def test_an_empty_run_and_one_that_failed_wholly_have_reports(tmp_path: Path) -> None:
    signed: Any = {"signatures": {"debate": "protocol:debate"}, "protocols": {"debate": {}}}
    empty = write_run(tmp_path / "empty", [], **signed)
    wholly = write_run(tmp_path / "failed", [failed("i0"), failed("i1")])
    for folder, verdicts in ((empty, "0 verdicts"), (wholly, "2 verdicts")):
        done = invoke(folder, "--html", tmp_path / "page.html")
        assert done.exit_code == 0, done.output
        assert "wrote" in done.output and verdicts in done.output
