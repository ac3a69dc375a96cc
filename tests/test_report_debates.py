"""Test a page's debates: a row per verdict, blocks of texts, and the selection."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.report import debates
from jurygraph.eval.report.debates import Debates, ReportedRun, run_folders
from jurygraph.eval.report.page import write_page
from jurygraph.eval.report.sections import compose
from jurygraph.state.errors import DataError

from .sample_run import debate, failed, write_run
from .sample_study import study


def debates_of(*folders: Path, most: int | None = None) -> Debates:
    manifests = [(folder, json.loads((folder / "run.json").read_text())) for folder in folders]
    return Debates(run_folders(manifests), most)


def read(*folders: Path) -> tuple[dict[str, Any], list[Any], list[Any]]:
    """The index, all transcripts and all texts of runs, as a page unpacks them."""
    made = debates_of(*folders)
    blocks = {
        block.id: json.loads(gzip.decompress(base64.b64decode(block.text)))
        for block in made.blocks()
    }
    index = made.index()
    counts = index["blocks"]
    transcripts = [blocks[f"t{number}"] for number in range(counts["transcripts"])]
    return index, transcripts, [blocks[f"i{number}"] for number in range(counts["texts"])]


def row(index: dict[str, Any], number: int) -> dict[str, Any]:
    return {name: values[number] for name, values in index["rows"].items()}


ITEMS = [
    {
        "id": f"i{n}",
        "source": "It rained all day.",
        "candidate": f"Rain, {n}.",
        "human": {"coherence": 3},
    }
    for n in range(3)
]


def test_every_verdict_is_a_row_that_leads_to_its_transcript(tmp_path: Path) -> None:
    far_off = debate("i2", "more", human=1.0, score_by_round=(5.0,), score=5.0)
    results = [debate("i0"), failed("i1", human=4.0), far_off]
    index, transcripts, texts = read(write_run(tmp_path / "run", results, ITEMS))
    first, second, third = (row(index, number) for number in range(3))
    assert [index["items"]["id"][each["item"]] for each in (first, second, third)] == [
        "i0",
        "i1",
        "i2",
    ]
    assert (first["value"], first["gap"], first["moved"], first["tokens"]) == (3.0, 0.0, 1.0, 480)
    assert (second["ok"], second["value"], second["gap"], second["reason"]) == (0, None, None, -1)
    assert (third["distance"], third["gap"], third["moved"]) == (4.0, 1.0, None)
    assert index["protocols"] == ["debate", "more"]
    held = transcripts[first["block"]][first["place"]]
    assert [turn["agent"] for turn in held["transcript"]] == [
        "scorer",
        "critic",
        "scorer",
        "critic",
    ]
    assert transcripts[second["block"]][second["place"]]["error"].startswith(
        "no score in the reply"
    )
    strings = texts[0]["strings"]
    assert strings.count("It rained all day.") == 1
    third_item = {name: strings[place] for name, place in texts[0]["items"][2]}
    assert third_item == {"source": "It rained all day.", "candidate": "Rain, 2."}


def test_of_two_answers_the_winner_counts(tmp_path: Path) -> None:
    about: Any = {"aspect": None, "score": None, "scores": (6.0, 8.0)}
    about["score_by_round"] = ((8.0, 6.0), (6.0, 8.0))
    labels = [("1", "1"), ("tie", "1"), ("2", "1"), ("2", None)]
    results = [
        debate(f"p{n}", winner=winner, human=human, **about)
        for n, (winner, human) in enumerate(labels)
    ]
    index, _, _ = read(write_run(tmp_path / "run", results))
    assert index["rows"]["gap"] == [0.0, 0.5, 1.0, None]
    assert (index["rows"]["moved"], index["rows"]["aspect"]) == ([4.0] * 4, [-1] * 4)


def test_of_more_verdicts_than_a_page_is_to_have_those_worth_reading_are_chosen(
    tmp_path: Path,
) -> None:
    dull = [debate(f"i{number}", score_by_round=(3.0,)) for number in range(60)]
    dull[50] = failed("i50", aspect="coherence")
    dull[30] = debate("i30", human=1.0, score_by_round=(3.0,))
    dull[40] = debate("i40", score_by_round=(5.0, 3.0))
    folder = write_run(tmp_path / "run", dull)

    def page(most: int | None) -> tuple[str, list[str]]:
        made = debates_of(folder, most=most)
        write_page(compose(study(), "title"), made, tmp_path / "page.html")
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


def test_blocks_fill_up_and_long_debates_are_fewer(
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
def test_texts_that_cannot_be_had_are_left_out_with_a_word(
    tmp_path: Path, mischief: Any, told: str
) -> None:
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
        write_page(compose(study(), "wit"), debates, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "the page of before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run"]
