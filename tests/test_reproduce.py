"""The papers' tables: what they print, what is measured beside it, and by which measure."""

import json
import math
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.experiments.presets import ablations
from jurygraph.eval.experiments.reproduction import find_table, paper_tables, reproduce_table
from jurygraph.eval.statistics.metrics import METRICS
from jurygraph.graphs.registry import find_protocol
from jurygraph.state.settings import make_settings
from scipy import stats

from .loopback import Failure, Provider, Request, Text
from .processes import Command
from .sample_data import numbered, read_lines, write_lines


@pytest.mark.parametrize("name", paper_tables())
def test_every_row_has_its_figures_and_every_judge_its_settings(name: str) -> None:
    table = find_table(name)
    for row, models in table.printed.items():
        for model in models:
            figures = [figure for figure in table.printed_figures(row, model).values() if figure is not None]
            low, high = (-1, 1) if {*table.metrics} & {*METRICS, "preference"} else (0, 300)
            assert figures
            assert all(low <= figure <= high for figure in figures), (row, model)
    assert table.measure == "none" or not table.data or table.judges or table.rows
    for judge in table.judges.values():
        settings = {key: value for key, value in judge.items() if key != "protocol"}
        make_settings(find_protocol(str(judge["protocol"])).protocol.settings, settings, {})
    assert not {*paper_tables()} & {*ablations()}


def test_gains_follow_from_the_table_that_they_are_of(command: Command) -> None:
    done = reproduce_table(find_table("courtroom-table2"), None)
    gains = {key: row["preference", "gain"] for key, row in done.measured.items()}
    assert gains["SAMRE without juries", "GPT-4-o"] == pytest.approx(100 * (0.94 / 0.85 - 1))
    # The erratum is what the arithmetic says.
    alone = [gain for (row, _), gain in gains.items() if row == "SAMRE without juries"]
    assert f"{sum(alone) / len(alone):.1f}" == "9.9"  # type: ignore[arg-type]
    assert command("reproduce", "courtroom-table2") == 0
    assert "here, GPT-4-o           10.6" in command.printed
    assert "Erratum: Table 1 implies a gain of 10.6 percent" in command.printed


def test_unieval_s_row_is_rho_and_tau_over_the_rows_without_the_original_response(shared_data: Path) -> None:
    dataset = load_dataset("topical-chat", shared_data)
    done = reproduce_table(find_table("debate-table1-unieval"), dataset)
    figures = done.measured["UniEval", ""]
    raw = read_lines(shared_data / "topical_chat/topical_chat.jsonl")
    rows = [row for row in raw if row["system_id"] != "Original Ground Truth"]
    for aspect in ("naturalness", "engagingness"):
        by_id = {item.id: item for item in dataset}
        given = [float(row["unieval"][aspect]) for row in rows]
        labels = [float(by_id[row["item_id"]].label(aspect)) for row in rows]  # type: ignore[arg-type]
        assert value(figures[aspect, "spearman"]) == pytest.approx(stats.spearmanr(given, labels)[0])
        assert value(figures[aspect, "kendall"]) == pytest.approx(stats.kendalltau(given, labels)[0])
    assert done.rows == {"UniEval": len(rows)}
    assert "270 of the 360 items that were published" in done.part


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "data", "rows", "within"),
    [
        ("debate-table1-summeval", "summeval", {"ROUGE-L": 1200}, 0.01),
        # A quarter of the responses is not here.
        ("chateval-table2", "topical-chat", {"ROUGE-L": 225, "BLEU-4": 225}, 0.05),
    ],
)
def test_reference_metrics_are_close_to_what_is_printed(
    table: str, data: str, rows: dict[str, int], within: float, shared_data: Path
) -> None:
    wanted = find_table(table)
    done = reproduce_table(wanted, load_dataset(data, shared_data))
    assert done.rows == rows
    place = "average", wanted.metrics[0]
    for row in rows:
        printed = wanted.printed_figures(row, "")[place]
        assert value(done.measured[row, ""][place]) == pytest.approx(printed, abs=within)


def value(figure: Any) -> float:
    return float(figure.value)


def test_shares_are_of_means_rounded_half_up() -> None:
    texts, others = {"source": "s", "candidate": "c"}, {"coherence": 1, "engagingness": 3}
    items = [
        ScoreItem(id=str(n), **texts, human={"naturalness": label, **others})
        for n, label in enumerate((1.0, 1.5, 2.4, 2.5, 3.0))
    ]
    done = reproduce_table(find_table("debate-table2-topical-chat"), Dataset.of("mine", items))
    shares = done.measured["people", ""]
    assert [shares["naturalness", point] for point in "123"] == [20, 40, 40]
    assert shares["coherence", "1"] == 100
    assert math.isclose(sum(shares["engagingness", point] for point in "123"), 100)  # type: ignore[misc]


def test_a_table_is_run_and_again_at_no_call(command: Command, tmp_path: Path, shared_data: Path) -> None:
    words = (
        f"reproduce chateval-table3 --data-dir {shared_data} --sample 5 --out out --html page.html".split()
    )
    assert command(*words) == 0
    page, first = (tmp_path / "page.html").read_text(), command.printed
    assert "The paper&#39;s table" in page and "printed, ChatGPT" in page
    assert "measures no model" in first and "60 of the 80 items that were published" in first
    rows = json.loads((tmp_path / "out" / "reproduce.json").read_text())["rows"]
    assert [row[1] for row in rows if row[0] == "single agent"] == ["here, offline", "printed, ChatGPT"]
    before = (tmp_path / "out" / "table.md").read_text()
    assert command(*words) == 0
    assert (tmp_path / "out" / "table.md").read_text() == before
    assert first.splitlines()[-1] == command.printed.splitlines()[-1]


def votes_file(folder: Path) -> Path:
    """Pairs of answers on 12 questions, two pairs each, with the vote of one person each."""
    answers = [
        "The tide rises twice a day, since the moon pulls the sea and the earth turns.",
        "Water moves. Water moves. It moves because it MOVES, why does the tide rise in case of tide!",
        "The moon.",
        "First, the moon pulls the sea. Second, the earth turns under it; so a tide comes twice a day, or nearly so.",
    ]
    rows = []
    for question in range(12):
        asked = f"Why does the tide rise, in case {question}?"
        about = {
            "group": f"q{question}",
            "category": "coding" if question % 2 else "writing",
            "question": asked,
        }
        for pair in range(2):
            second = answers[(question * 3 + 2 + pair) % 4] + " So it is." * (question % 3)
            pair_of = {"answer_1": answers[(question + pair) % 4], "answer_2": second}
            vote = "1" if (question + pair) % 3 else "2"
            rows.append({"id": f"{question}-{pair}", **about, **pair_of, "human": vote})
    return write_lines(folder / "votes.jsonl", rows)


def run_table(name: str, data: Path, out: Path) -> dict[str, dict[str, Any]]:
    """Run a table offline and return its rows measured here, by method."""
    assert Command()("reproduce", name, "--data", str(data), "--model", "offline", "--out", str(out)) == 0
    done = json.loads((out / "reproduce.json").read_text())
    here = [row for row in done["rows"] if row[1] == "here, offline"]
    return {row[0]: dict(zip(done["columns"][2:], row[2:], strict=True)) for row in here}


def rights(out: Path, cell: str) -> dict[str, float]:
    return {row["item"]: float(row["winner"] == row["human"]) for row in read_lines(out / "cells" / cell)}


def other_way_round(results: Path) -> None:
    """Turn some verdicts, so that the judges of two runs differ, which the offline ones do not on these answers."""
    rows = read_lines(results)
    for row in rows[::3]:
        row["winner"] = {"1": "2", "2": "1"}.get(row["winner"], "1")
        row["scores"] = {"1": [100, 50], "2": [50, 100]}[row["winner"]]
    write_lines(results, rows)


def test_gains_and_t_tests_over_questions_and_over_votes(tmp_path: Path) -> None:
    data = votes_file(tmp_path)
    for name in "tg":
        run_table(f"courtroom-table{3 if name == 't' else 2}", data, tmp_path / name)
        other_way_round(tmp_path / name / "cells/method=baseline/results.jsonl")
    row = run_table("courtroom-table3", data, tmp_path / "t")["SAMRE without juries"]
    own, base = (rights(tmp_path / "t", f"method={name}") for name in ("SAMRE-without-juries", "baseline"))
    votes = [[right[item] for item in own] for right in (own, base)]
    questions = [
        [sum(right[f"{question}-{pair}"] for pair in range(2)) / 2 for question in range(12)]
        for right in (own, base)
    ]
    for unit, sides in (("votes", votes), ("questions", questions)):
        wanted = stats.ttest_rel(sides[0], sides[1])
        assert (row[f"{unit} t"], row[f"{unit} p"]) == pytest.approx((wanted.statistic, wanted.pvalue))
    gain = run_table("courtroom-table2", data, tmp_path / "g")["SAMRE without juries"]["gain"]
    assert gain == pytest.approx(100 * (sum(own.values()) / sum(base.values()) - 1))


def test_several_models_judge_every_row_and_gains_over_the_base_of_each_are_pooled(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    def answer(request: Request) -> Text | Failure:
        if "Water moves" in request.user and request.model == "gpt-4o":
            return Failure(400, "No water.")
        first = 1 + zlib.crc32(f"{request.model} {request.user}".encode()) % 9
        return Text(f"So it is.\nScore of answer 1: {first}\nScore of answer 2: 5")

    provider.play(by=answer)
    votes_file(tmp_path)
    models = ("openai:gpt-4o-mini", "openai:gpt-4o")
    asked = f"--set structured=off --model {models[0]} --model {models[1]} --out out"
    assert command("reproduce", "chateval-table5", "--data", "votes.jsonl", *asked.split()) == 3
    printed = " ".join(command.printed.split())
    assert "gain over single of the same model" in printed and "pooled" in printed
    failed = r"failed: method=single agent, model=openai:gpt-4o: .{,300}No water\."
    assert re.search(failed, printed), printed[-1500:]
    assert "votes.jsonl here: in place of faireval" in printed
    rows = json.loads((tmp_path / "out" / "reproduce.json").read_text())["rows"]
    here = {(row[0], row[1].partition("here, ")[2]): row[2] for row in rows if row[1].startswith("here, ")}
    assert set(here) == {(row, model) for row in ("single agent", "multi-agent") for model in models}
    right = rights(tmp_path / "out", "method=single-agent,model=openai-gpt-4o-mini")
    assert here["single agent", models[0]]["value"] == pytest.approx(sum(right.values()) / 24)


def test_categories_costs_and_repeats(tmp_path: Path) -> None:
    data = votes_file(tmp_path)
    by_category = run_table("chateval-figure3-experts", data, tmp_path / "c")["coding"]
    right = rights(tmp_path / "c", "method=coding")
    of_coding = [right[f"{question}-{pair}"] for question in range(1, 12, 2) for pair in range(2)]
    assert by_category["coding accuracy"]["value"] == pytest.approx(sum(of_coding) / 12)
    assert by_category["knowledge accuracy"] is None
    assert run_table("chateval-table6", data, tmp_path / "m")["single agent"]["USD"] == 0
    row = run_table("debate-repeats", numbered(tmp_path, 9, human={"fluency": 3}), tmp_path / "r")["DEBATE"]
    judged = [line["aspect"] for line in read_lines(tmp_path / "r/cells/method=DEBATE")]
    assert judged.count("fluency") == 5 * 20
    assert (row["fluency sd"], row["fluency range"]) == (0, 0)


@pytest.mark.parametrize(("words", "message"), [
    ("debate-tabel3", "no table 'debate-tabel3'; tables are debate-table1-summeval"),
    ("debate-table1-unieval --data demo", "has no field 'unieval': this row needs a copy"),
    ("chateval-table3 --data-dir /nowhere", "/nowhere"),
    ("chateval-table3 --columns group=topic", "only applies to a file of your own"),
])  # fmt: skip
def test_what_cannot_be_run_says_why(words: str, message: str, command: Command) -> None:
    assert command("reproduce", *words.split()) == 2
    assert message in command.errors
