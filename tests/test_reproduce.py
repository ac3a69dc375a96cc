"""The papers' tables: what they print, what is measured beside it, and by which measure."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.reproduce.reproduction import reproduce_table
from jurygraph.eval.reproduce.tables import find_table, paper_tables
from jurygraph.eval.sweeps.presets import ablations
from jurygraph.graphs.registry import find_protocol
from jurygraph.state.settings import make_settings
from scipy import stats

from .test_try import call

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
published = pytest.mark.skipif(not (DATA / "topical_chat").is_dir(), reason=f"no data at {DATA}")


@pytest.mark.parametrize("name", paper_tables())
def test_every_row_has_its_figures_and_every_judge_its_settings(name: str) -> None:
    table = find_table(name)
    for row, models in table.printed.items():
        for model in models:
            figures = [figure for figure in table.printed_figures(row, model).values() if figure is not None]
            low, high = (-1, 1) if table.metrics else (0, 100)
            assert figures
            assert all(low <= figure <= high for figure in figures), (row, model)
    for judge in table.judges.values():
        settings = {key: value for key, value in judge.items() if key != "protocol"}
        make_settings(find_protocol(str(judge["protocol"])).protocol.settings, settings, {})
    assert not {*paper_tables()} & {*ablations()}


def test_gains_follow_from_the_table_that_they_are_of(capsys: pytest.CaptureFixture[str]) -> None:
    done = reproduce_table(find_table("courtroom-table2"), None)
    gains = {key: row["preference", "gain"] for key, row in done.measured.items()}
    assert gains["SAMRE without juries", "GPT-4-o"] == pytest.approx(100 * (0.94 / 0.85 - 1))
    # The erratum is what the arithmetic says.
    alone = [gain for (row, _), gain in gains.items() if row == "SAMRE without juries"]
    assert f"{sum(alone) / len(alone):.1f}" == "9.9"  # type: ignore[arg-type]
    assert call("reproduce", "courtroom-table2") == 0
    out = capsys.readouterr().out
    assert "here, GPT-4-o           10.6" in out
    assert "Erratum: From Table 1 follows a gain of 10.6 percent" in out


@published
def test_unieval_s_row_is_rho_and_tau_over_the_rows_without_the_original_response() -> None:
    dataset = load_dataset("topical-chat", DATA)
    done = reproduce_table(find_table("debate-table1-unieval"), dataset)
    figures = done.measured["UniEval", ""]
    raw = [json.loads(line) for line in (DATA / "topical_chat/topical_chat.jsonl").read_text().splitlines()]
    rows = [row for row in raw if row["system_id"] != "Original Ground Truth"]
    for aspect in ("naturalness", "engagingness"):
        by_id = {item.id: item for item in dataset}
        given = [float(row["unieval"][aspect]) for row in rows]
        labels = [float(by_id[row["item_id"]].label(aspect)) for row in rows]  # type: ignore[call-arg, arg-type]
        assert value(figures[aspect, "spearman"]) == pytest.approx(stats.spearmanr(given, labels)[0])
        assert value(figures[aspect, "kendall"]) == pytest.approx(stats.kendalltau(given, labels)[0])
    assert done.rows == {"UniEval": len(rows)}
    assert "270 of the 360 items that were published" in done.part


def value(figure: Any) -> float:
    return float(figure.value)


def test_shares_are_of_means_rounded_half_up() -> None:
    labels = [1.0, 1.5, 2.4, 2.5, 3.0]
    items = [
        ScoreItem(
            id=str(n),
            source="s",
            candidate="c",
            human={"naturalness": label, "coherence": 1, "engagingness": 3},
        )
        for n, label in enumerate(labels)
    ]
    done = reproduce_table(find_table("debate-table2-topical-chat"), Dataset.of("mine", items))
    shares = done.measured["people", ""]
    assert [shares["naturalness", point] for point in "123"] == [20, 40, 40]
    assert shares["coherence", "1"] == 100
    assert math.isclose(sum(shares["engagingness", point] for point in "123"), 100)  # type: ignore[misc]


@published
def test_a_table_is_run_and_the_second_time_costs_no_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "reproduce",
        "chateval-table3",
        "--data-dir",
        str(DATA),
        "--sample",
        "5",
        "--out",
        str(tmp_path / "out"),
    )
    assert call(*words) == 0
    first = capsys.readouterr().out
    assert "Only the machinery is shown" in first
    assert "60 of the 80 items that were published" in first
    written = json.loads((tmp_path / "out" / "reproduce.json").read_text())
    assert [row[:2] for row in written["rows"]][:2] == [
        ["single agent", "here, offline"],
        ["single agent", "printed, ChatGPT"],
    ]
    before = (tmp_path / "out" / "table.md").read_text()
    assert call(*words) == 0
    assert (tmp_path / "out" / "table.md").read_text() == before
    assert first.splitlines()[-1] == capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("debate-tabel3",), "no table 'debate-tabel3'; there are debate-table1-summeval"),
        (
            ("debate-table1-unieval", "--data", "demo"),
            "has no field 'unieval': this row is taken from a copy",
        ),
        (("chateval-table3", "--data-dir", "/nowhere"), "/nowhere"),
    ],
)
def test_what_cannot_be_run_says_why(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("reproduce", *words) == 2
    assert message in capsys.readouterr().err
