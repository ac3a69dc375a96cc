"""Test the papers' tables: printed figures, measured figures, and the papers' errors."""

import json
import math
import re
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.datasets.dataset import Dataset
from jurygraph.eval.datasets.items import ScoreItem
from jurygraph.eval.experiments.paper_tables import find_table, paper_tables
from jurygraph.eval.experiments.presets import ablations
from jurygraph.eval.experiments.reproduction import reproduce_table
from jurygraph.eval.statistics.metrics import METRICS
from jurygraph.graphs.engine.registry import find_protocol
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
            figures = [
                figure
                for figure in table.printed_figures(row, model).values()
                if figure is not None
            ]
            low, high = (-1, 1) if {*table.metrics} & {*METRICS} else (0, 300)
            assert figures
            assert all(low <= figure <= high for figure in figures), (row, model)
    for row, models in table.printed_sd.items():
        for model in models:
            assert (
                table.printed_figures(row, model).keys()
                == table.printed_deviations(row, model).keys()
            )
    # No table is empty: it has printed figures, or rows that are measured here.
    assert table.printed or table.judges
    for judge in table.judges.values():
        settings = {key: value for key, value in judge.items() if key != "protocol"}
        make_settings(find_protocol(str(judge["protocol"])).protocol.settings, settings, {})
    assert not {*paper_tables()} & {*ablations()}


def test_gains_follow_from_the_table_that_they_are_of(command: Command) -> None:
    done = reproduce_table(find_table("courtroom-table2"), None)
    gains = {key: row["preference", "gain"] for key, row in done.computed.items()}
    assert not done.measured
    assert gains["SAMRE without juries", "GPT-4-o"] == pytest.approx(100 * (0.94 / 0.85 - 1))
    # The erratum follows from the arithmetic.
    alone = [gain for (row, _), gain in gains.items() if row == "SAMRE without juries"]
    assert f"{sum(alone) / len(alone):.1f}" == "9.9"  # type: ignore[arg-type]
    assert command("reproduce", "courtroom-table2") == 0
    # They are the paper's own figures, so they are not labelled as measured here.
    assert "here" not in command.printed.partition("Erratum")[0]
    assert "computed from Table 1, GPT-4-o        10.6" in command.printed
    printed = " ".join(command.printed.split())
    assert (
        "gain of SAMRE without juries (page 9). Printed: 10.5 percent; should be: 10.6" in printed
    )
    assert "Differs: The prompts" not in printed


def test_unieval_s_row_is_rho_and_tau_over_the_rows_without_the_original_response(
    shared_data: Path,
) -> None:
    dataset = load_dataset("topical-chat", shared_data)
    done = reproduce_table(find_table("debate-table1-unieval"), dataset)
    figures = done.measured["UniEval", ""]
    raw = read_lines(shared_data / "topical_chat/topical_chat.jsonl")
    rows = [row for row in raw if row["system_id"] != "Original Ground Truth"]
    for aspect in ("naturalness", "engagingness"):
        by_id = {item.id: item for item in dataset}
        given = [float(row["unieval"][aspect]) for row in rows]
        labels = [float(by_id[row["item_id"]].label(aspect)) for row in rows]  # type: ignore[arg-type]
        assert value(figures[aspect, "spearman"]) == pytest.approx(
            stats.spearmanr(given, labels)[0]
        )
        assert value(figures[aspect, "kendall"]) == pytest.approx(
            stats.kendalltau(given, labels)[0]
        )
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
    texts = {"source": "s", "candidate": "c"}
    others = {"coherence": 1, "engagingness": 3}
    items = [
        ScoreItem(id=str(n), **texts, human={"naturalness": label, **others})
        for n, label in enumerate((1.0, 1.5, 2.4, 2.5, 3.0))
    ]
    done = reproduce_table(find_table("debate-table2-topical-chat"), Dataset.of("mine", items))
    shares = done.measured["human", ""]
    assert [value(shares["naturalness", point]) for point in "123"] == pytest.approx([20, 40, 40])
    assert value(shares["coherence", "1"]) == 100
    assert math.isclose(sum(value(shares["engagingness", point]) for point in "123"), 100)
    # 2 of 5 texts: Wilson's interval.
    wanted = stats.binomtest(2, 5).proportion_ci(method="wilson")
    share = shares["naturalness", "2"]
    assert (share.low, share.high) == pytest.approx((100 * wanted.low, 100 * wanted.high))  # type: ignore[union-attr]


def test_a_table_of_agreement_needs_labels_and_says_so_before_any_call(
    command: Command, tmp_path: Path
) -> None:
    bare = [
        {name: row[name] for name in row if name != "human"}
        for row in read_lines(votes_file(tmp_path))
    ]
    write_lines(tmp_path / "bare.jsonl", bare)
    for table in ("courtroom-table1", "courtroom-table3", "chateval-table1"):
        assert (
            command(
                "reproduce", table, "--data", "bare.jsonl", "--model", "offline", "--out", "out"
            )
            == 2
        )
        assert f"{table} cannot be measured on" in command.errors
        assert "has a human label that counts" in command.errors
        assert not (tmp_path / "out").exists()
    # The cost of a table needs no labels.
    cost = (
        "reproduce",
        "chateval-table6",
        "--data",
        "bare.jsonl",
        "--model",
        "offline",
        "--dry-run",
    )
    assert command(*cost) == 0


@pytest.mark.slow
def test_a_table_is_run_and_again_at_no_call(
    command: Command, tmp_path: Path, shared_data: Path
) -> None:
    words = f"reproduce chateval-table3 --data-dir {shared_data} --sample 5 --out out --html page.html".split()
    assert command(*words) == 0
    page = (tmp_path / "page.html").read_text()
    first = command.printed
    assert "The paper&#39;s table" in page and "printed, ChatGPT" in page
    assert "measures no model" in first and "60 of the 80 items that were published" in first
    rows = json.loads((tmp_path / "out" / "reproduce.json").read_text())["rows"]
    assert [row[1] for row in rows if row[0] == "single agent"] == [
        "here, offline",
        "printed, ChatGPT",
    ]
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
    assert (
        Command()("reproduce", name, "--data", str(data), "--model", "offline", "--out", str(out))
        == 0
    )
    done = json.loads((out / "reproduce.json").read_text())
    here = [row for row in done["rows"] if row[1] == "here, offline"]
    return {row[0]: dict(zip(done["columns"][2:], row[2:], strict=True)) for row in here}


def rights(out: Path, cell: str) -> dict[str, float]:
    return {
        row["item"]: float(row["winner"] == row["human"])
        for row in read_lines(out / "cells" / cell)
    }


def other_way_round(results: Path) -> None:
    """Turn some verdicts, so that the judges of two runs differ, unlike the offline ones."""
    rows = read_lines(results)
    for row in rows[::3]:
        row["winner"] = {"1": "2", "2": "1"}.get(row["winner"], "1")
        row["scores"] = {"1": [100, 50], "2": [50, 100]}[row["winner"]]
    write_lines(results, rows)


@pytest.mark.slow
def test_gains_and_t_tests_over_questions_and_over_votes(tmp_path: Path) -> None:
    data = votes_file(tmp_path)
    run_table("courtroom-table3", data, tmp_path / "t")
    other_way_round(tmp_path / "t/cells/method=baseline/results.jsonl")
    row = run_table("courtroom-table3", data, tmp_path / "t")["SAMRE without juries"]
    own, base = (
        rights(tmp_path / "t", f"method={name}") for name in ("SAMRE-without-juries", "baseline")
    )
    votes = [[right[item] for item in own] for right in (own, base)]
    questions = [
        [sum(right[f"{question}-{pair}"] for pair in range(2)) / 2 for question in range(12)]
        for right in (own, base)
    ]
    for unit, sides in (("votes", votes), ("questions", questions)):
        wanted = stats.ttest_rel(sides[0], sides[1])
        assert (row[f"{unit} t"], row[f"{unit} p"]) == pytest.approx(
            (wanted.statistic, wanted.pvalue)
        )
    # The judgements of two judges, once made, serve the other table too.
    shutil.copytree(tmp_path / "t/cells", tmp_path / "g/cells")
    gain = run_table("courtroom-table2", data, tmp_path / "g")["SAMRE without juries"]["gain"]
    assert gain["value"] == pytest.approx(100 * (sum(own.values()) / sum(base.values()) - 1))
    assert gain["low"] < gain["value"] < gain["high"]


@pytest.mark.slow
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
    here = {
        (row[0], row[1].partition("here, ")[2]): row[2]
        for row in rows
        if row[1].startswith("here, ")
    }
    assert set(here) == {
        (row, model) for row in ("single agent", "multi-agent") for model in models
    }
    right = rights(tmp_path / "out", "method=single-agent,model=openai-gpt-4o-mini")
    assert here["single agent", models[0]]["value"] == pytest.approx(sum(right.values()) / 24)


@pytest.mark.slow
def test_categories_costs_and_repeats(tmp_path: Path) -> None:
    data = votes_file(tmp_path)
    by_category = run_table("chateval-figure3-experts", data, tmp_path / "c")["coding"]
    right = rights(tmp_path / "c", "method=coding")
    of_coding = [right[f"{question}-{pair}"] for question in range(1, 12, 2) for pair in range(2)]
    assert by_category["coding accuracy"]["value"] == pytest.approx(sum(of_coding) / 12)
    assert by_category["knowledge accuracy"] is None
    row = run_table("debate-repeats", numbered(tmp_path, 9, human={"fluency": 3}), tmp_path / "r")[
        "DEBATE"
    ]
    judged = [line["aspect"] for line in read_lines(tmp_path / "r/cells/method=DEBATE")]
    assert judged.count("fluency") == 5 * 20
    assert (row["fluency sd"]["value"], row["fluency range"]) == (0, 0)


@pytest.mark.slow
def test_costs_are_scaled_to_the_number_of_questions_of_the_paper(tmp_path: Path) -> None:
    run_table("chateval-table6", votes_file(tmp_path), tmp_path / "m")
    results = tmp_path / "m/cells/method=single-agent/results.jsonl"
    rows = read_lines(results)
    for number, row in enumerate(rows):
        row["cost_usd"], row["seconds"] = 0.01 * (number % 2), 6.0
    write_lines(results, rows)
    row = run_table("chateval-table6", votes_file(tmp_path), tmp_path / "m")["single agent"]
    costs = [80 * row["cost_usd"] for row in rows]
    wanted = stats.t.interval(0.95, len(costs) - 1, np.mean(costs), stats.sem(costs))
    # 24 questions were judged, and the paper has 80.
    assert row["USD"] == pytest.approx(
        {"value": np.mean(costs), "low": wanted[0], "high": wanted[1]}
    )
    assert row["minutes"]["value"] == pytest.approx(80 * 0.1)
    done = json.loads((tmp_path / "m" / "reproduce.json").read_text())
    assert ["human", "printed", 90, 240] in done["rows"]
    prices = next(note for note in done["notes"] if "price_in=10" in note)
    assert prices.startswith(
        "Differs: ChatEval does not print the prices per token. DEBATE (Kim et al. 2024, appendix E.1)"
    )


@pytest.mark.slow
def test_repeats_give_the_standard_deviation_that_the_paper_prints(tmp_path: Path) -> None:
    data = votes_file(tmp_path)
    words = [
        "reproduce",
        "chateval-table5",
        "--data",
        str(data),
        "--repeats",
        "3",
        "--out",
        str(tmp_path / "out"),
    ]
    assert Command()(*words) == 0
    results = tmp_path / "out/cells/method=single-agent/results.jsonl"
    rows = read_lines(results)
    for row in rows[::5]:
        row["winner"] = {"1": "2", "2": "1"}.get(row["winner"], "1")
        row["scores"] = {"1": [100, 50], "2": [50, 100]}[row["winner"]]
    write_lines(results, rows)
    assert Command()(*words) == 0
    done = json.loads((tmp_path / "out" / "reproduce.json").read_text())
    here, small, vicuna = (dict(zip(done["columns"], row, strict=True)) for row in done["rows"][:3])
    by_repeat = [
        [row["winner"] == row["human"] for row in rows if row["repeat"] == repeat]
        for repeat in range(3)
    ]
    accuracies = [np.mean(rights) for rights in by_repeat]
    assert len({*accuracies}) > 1
    assert here["accuracy"]["value"] == pytest.approx(np.mean(accuracies))
    assert here["accuracy sd"] == pytest.approx(np.std(accuracies, ddof=1))
    assert here["kappa sd"] > 0
    assert (small["accuracy sd"], small["kappa sd"], vicuna["accuracy sd"]) == (0.013, 0.01, 0.015)


def unlabelled(folder: Path) -> Path:
    rows = read_lines(votes_file(folder))
    for row in rows:
        del row["human"]
    return write_lines(folder / "unlabelled.jsonl", rows)


@pytest.mark.parametrize(
    "table",
    [
        name
        for name, table in paper_tables().items()
        if table.judges and table.measure not in ("spread", "shares")
    ],
)
def test_a_table_that_cannot_be_filled_is_refused_before_any_call(
    table: str, provider: Provider, tmp_path: Path, command: Command
) -> None:
    wanted = find_table(table)
    data = (
        unlabelled(tmp_path)
        if "preference" in wanted.columns or wanted.measure in ("category", "t-tests")
        else None
    )
    if wanted.measure == "cost":
        data = votes_file(tmp_path)
        model = "openai:unpriced-model"
        missing = "the price of openai:unpriced-model is unknown"
    elif data is None:
        rows = [
            {"id": str(n), "source": "It rained.", "candidate": f"Rain {n}.", "group": "g"}
            for n in range(4)
        ]
        data = write_lines(tmp_path / "texts.jsonl", rows)
        model = "openai:gpt-4o-mini"
        missing = "has a human label for"
    else:
        model = "openai:gpt-4o-mini"
        missing = "none of its 24 items has a human label that counts. Add a field `human`"
    code = command(
        "reproduce", table, "--data", str(data), "--model", model, "--out", "out", "--dry-run"
    )
    printed = " ".join((command.errors + command.printed).split())
    # Minutes can be measured without a price.
    assert code == (0 if wanted.measure == "cost" else 2)
    assert missing in printed
    if wanted.printed and code:
        assert "printed, " in command.printed
    assert not provider.requests


def test_missing_votes_are_named_with_the_file_that_has_them(
    command: Command, shared_data: Path
) -> None:
    assert (
        command("reproduce", "courtroom-table1", "--data-dir", str(shared_data), "--limit", "4")
        == 2
    )
    said = " ".join(command.errors.split())
    assert "courtroom-table1 cannot be measured on" in said
    assert "none of its 4 items has a human label" in said
    file = "data/human-00000-of-00001-25f4910818759289.parquet"
    assert f"The labels of mt-bench are in {file} of https://huggingface.co/datasets/lmsys" in said
    assert "leave out --data-dir to download it" in said
    # The printed figures are shown all the same.
    assert "printed, GPT-4-turbo" in command.printed


def votes_of_experts(folder: Path, questions: int = 12) -> Path:
    """Write a small file in the layout of MT-Bench's votes."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    def conversation(question: int, words: int) -> list[dict[str, str]]:
        said = " ".join(f"w{number * question % 7}" for number in range(words))
        turns = (f"Question {question}?", said, "And then?", said.upper())
        roles = ("user", "assistant") * 2
        return [{"role": role, "content": text} for role, text in zip(roles, turns, strict=True)]

    rows = [
        {
            **{"question_id": question, "model_a": "gpt-4", "model_b": "alpaca-13b"},
            **{"winner": winner, "judge": judge, "turn": turn},
            "conversation_a": conversation(question, 9),
            "conversation_b": conversation(question, 4),
        }
        for question in range(81, 81 + questions)
        for turn in (1, 2)
        for judge, winner in (
            ("expert_1", "model_a"),
            ("expert_2", "tie" if question % 2 else "model_b"),
            ("author_0", "model_b"),
        )
    ]
    file = folder / "data" / "human-00000-of-00001-25f4910818759289.parquet"
    file.parent.mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "cells"),
    {
        "courtroom-table1": {"baseline", "MORE", "SAMRE", "SAMRE without juries"},
        "courtroom-table2": {"MORE", "SAMRE", "SAMRE without juries"},
        "courtroom-table3": {"SAMRE without juries"},
        "courtroom-ballot": {"vote", "score"},
    }.items(),
)
def test_the_courtroom_s_tables_run_as_soon_as_the_votes_are_there(
    table: str, cells: set[str], command: Command, tmp_path: Path
) -> None:
    votes = votes_of_experts(tmp_path / "mt-bench")
    model = ("--model", "offline")
    assert command("reproduce", table, "--data-dir", votes, *model, "--limit", "3") == 0
    here = [line.split("here, offline")[0].strip() for line in command.printed.splitlines()
            if "here, offline" in line]  # fmt: skip
    assert set(here) == cells


def test_a_folder_without_the_votes_is_refused_with_their_address(
    command: Command, tmp_path: Path
) -> None:
    assert command("reproduce", "courtroom-table1", "--data-dir", tmp_path) == 2
    said = " ".join(command.errors.split())
    assert "has no human-00000-of-00001-25f4910818759289.parquet or mt_bench.jsonl" in said
    assert "published at https://huggingface.co/datasets/lmsys/mt_bench_human_judgments" in said


def test_cells_that_stay_empty_are_named_before_the_others_are_judged(
    command: Command, tmp_path: Path
) -> None:
    rows = [
        {
            "id": str(n),
            "source": "It rained.",
            "candidate": "Rain " * n,
            "group": f"g{n % 2}",
            "human": {"coherence": 1 + n % 3, "engagingness": 1 + n % 2},
        }
        for n in range(1, 7)
    ]
    write_lines(tmp_path / "texts.jsonl", rows)
    assert command("reproduce", "chateval-table2", "--data", "texts.jsonl", "--dry-run") == 0
    said = " ".join(command.printed.split())
    assert said.index("ROUGE-L: stays empty, because ROUGE-L needs references") < said.index(
        "48 verdicts"
    )
    assert (
        "naturalness, groundedness: texts.jsonl has no labels, so these columns stay empty" in said
    )
    assert "average: measured here over coherence, engagingness only" in said


def test_a_category_without_labelled_questions_stays_empty(
    command: Command, tmp_path: Path
) -> None:
    votes_file(tmp_path)
    assert (
        command("reproduce", "chateval-figure3-experts", "--data", "votes.jsonl", "--dry-run") == 0
    )
    assert (
        "knowledge accuracy: stays empty, because no item with a label has the category knowledge"
        in command.printed
    )
    assert "coding accuracy: stays empty" not in command.printed


@pytest.mark.parametrize(("words", "message"), [
    ("chateval-table3 --data demo", "chateval-table3 is about pairs of answers, but demo has single texts"),
    ("debate-table3 --data demo-pairs", "debate-table3 is about single texts, but demo-pairs has pairs of answers"),
    ("debate-table2-topical-chat --data texts.jsonl --aspect relevance", "has no column 'relevance'; its"),
    ("debate-table3 --data lone.jsonl", "needs groups of several texts with different labels, and lone.jsonl has none"),
    ("chateval-table2 --data same.jsonl", "all labels of same.jsonl for coherence are equal"),
])  # fmt: skip
def test_data_that_do_not_fit_a_table_are_refused(
    words: str, message: str, command: Command, tmp_path: Path
) -> None:
    texts = [{"id": str(n), "source": "It rained.", "candidate": f"Rain {n}."} for n in range(4)]
    labels = [{"relevance": 1 + n, "coherence": 1 + n} for n in range(4)]
    write_lines(
        tmp_path / "texts.jsonl",
        [text | {"human": of} for text, of in zip(texts, labels, strict=True)],
    )
    write_lines(
        tmp_path / "lone.jsonl",
        [text | {"human": {"fluency": 1 + n}} for n, text in enumerate(texts)],
    )
    write_lines(
        tmp_path / "same.jsonl",
        [text | {"group": "g", "human": {"coherence": 3}} for text in texts],
    )
    assert command("reproduce", *words.split()) == 2
    assert message in " ".join(command.errors.split())


def test_labels_beyond_the_limit_are_pointed_at(command: Command, tmp_path: Path) -> None:
    rows = read_lines(votes_file(tmp_path))
    del rows[0]["human"]
    write_lines(tmp_path / "votes.jsonl", rows)
    assert command("reproduce", "chateval-table3", "--data", "votes.jsonl", "--limit", "1") == 2
    assert "Other items of votes.jsonl may have labels: raise --limit" in " ".join(
        command.errors.split()
    )


def test_appendix_h_names_whose_scores_it_prints() -> None:
    grid = reproduce_table(find_table("debate-appendix-h"), None).grid()
    heads = [column.name for column in grid.columns[2:]]
    assert heads == ["G-Eval score", "MultiAgent score", "DEBATE score", "human score"]
    assert [row[2:] for row in grid.rows] == [(1, 2, 5, 5), (1, 2, 3, 3)]


def test_the_list_says_which_tables_need_a_model(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    assert command("reproduce", "list") == 0
    lines = {line.split()[0]: line for line in command.printed.splitlines() if line.strip()}
    assert "no: UniEval from published data" in lines["debate-table1-unieval"]
    assert "yes, except ROUGE-L, BLEU-4 (from published data)" in lines["chateval-table2"]
    assert "no: printed figures only" in lines["debate-appendix-h"]
    assert re.search(r"with a summarizer +yes +2", lines["chateval-table4"])
    assert "chateval-figure5" not in lines
    # An error that concerns no table is listed here.
    assert (
        "Theorem 2 (pages 7, 8). Printed: a formal proof is in appendix B; should be: a conjecture"
        in command.printed
    )


def test_the_wording_of_the_prompts_is_named_as_a_difference(
    command: Command, shared_data: Path
) -> None:
    words = f"reproduce chateval-table4 --data-dir {shared_data} --limit 2 --dry-run"
    assert command(*words.split()) == 0
    said = " ".join(command.printed.split())
    assert (
        "Differs: The prompts are this package's words, not the paper's (docs/prompts.md)." in said
    )


@pytest.mark.parametrize(("words", "message"), [
    ("debate-tabel3", "no table 'debate-tabel3'; tables are debate-table1-summeval"),
    ("debate-table1-unieval --data demo", "has no field 'unieval': this row needs a copy"),
    ("chateval-table3 --data-dir /nowhere", "/nowhere"),
    ("debate-appendix-h --model offline", "debate-appendix-h has no row that a model could fill"),
    ("debate-table1-unieval --model offline", "debate-table1-unieval has no row that a model could fill"),
    ("chateval-table3 --columns group=topic", "only applies to a file or data frame of your own"),
])  # fmt: skip
def test_what_cannot_be_run_says_why(words: str, message: str, command: Command) -> None:
    assert command("reproduce", *words.split()) == 2
    assert message in command.errors
