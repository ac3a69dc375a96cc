"""Test the export of verdicts to a table: rows, formats, refusals, and no overwriting."""

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Dataset, evaluate, export, load_dataset, measure
from jurygraph.eval.report.exports import table_files
from jurygraph.eval.report.exports.verdict_rows import COLUMNS, columns_for
from jurygraph.nodes.common import plugins
from jurygraph.state.errors import DataError, UsageError
from jurygraph.state.evidence import Citations, Evidence, citations_of
from jurygraph.state.transcript import Turn

from .processes import Command, command_line
from .run_folders import failed, run_folder, scored, turn
from .sample_data import read_lines, write_lines

SOURCE = "The well ran dry in May, and water came by cart until August."
HOSTILE = '=cmd|"/c calc"!A1'
TEXTS: list[dict[str, Any]] = [
    {
        "id": HOSTILE,
        "group": "well",
        "system": "+sum",
        "source": SOURCE,
        "reference": "The well was dry.",
        "references": ["The well was dry.", "No water in May."],
        "candidate": "=HYPERLINK(1)\nThe well ran dry,\t\u201cin May\u201d.",
        "human": {"consistency": [4, None, 5]},
    },
    {
        "id": "b",
        "source": SOURCE,
        "candidate": "The well was full.",
        "human": {"consistency": [1, 2, 2]},
    },
    {
        "id": "c",
        "source": SOURCE,
        "candidate": "Water came by cart.",
        "human": {"consistency": [3, 3, 3]},
    },
]
PAIRS: list[dict[str, Any]] = [
    {
        "id": name,
        "category": "wells",
        "question": "When did the well run dry?",
        "answer_1": one,
        "answer_2": two,
        "model_1": "old",
        "model_2": "new",
        "human": ["1", "tie", "1"],
    }
    for name, one, two in [
        ("p1", "In May.", "Never."),
        ("p2", "Never.", "In May, before the carts came."),
    ]
]


def run(command: Command, line: str) -> int:
    return command(*command_line(line))


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """A run that rates texts twice."""
    data = write_lines(tmp_path / "texts.jsonl", TEXTS)
    evaluate(
        ["debate", "single"], data, repeats=2, settings={"debate": {"n": 1}}, out=tmp_path / "rated"
    )
    return tmp_path / "rated"


@pytest.fixture
def preferred(tmp_path: Path) -> Path:
    """A run that compares answers."""
    data = write_lines(tmp_path / "pairs.jsonl", PAIRS)
    evaluate("single", data, out=tmp_path / "preferred")
    return tmp_path / "preferred"


def exported(runs: Any, out: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows of an export to JSONL."""
    export(runs, out, **options)
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


# -- the contents of a row
def test_a_row_has_the_texts_the_judge_the_verdict_and_the_labels(
    rated: Path, tmp_path: Path
) -> None:
    rows = exported(rated, tmp_path / "verdicts.jsonl")
    lines = read_lines(rated)
    assert len(rows) == len(lines) == 12
    by_key = {(row["item"], row["protocol"], row["repeat"]): row for row in rows}
    items = {item["id"]: item for item in TEXTS}
    for line in lines:
        row = by_key[line["item"], line["protocol"], line["repeat"]]
        item = items[line["item"]]
        for name in ("source", "candidate", "reference", "references", "system", "group"):
            assert row[name] == item.get(name, [] if name == "references" else None), name
        same = (
            "status",
            "score",
            "rounds",
            "stop_reason",
            "calls",
            "input_tokens",
            "cost_usd",
            "warnings",
        )
        assert {name: row[name] for name in same} == {name: line[name] for name in same}
        assert (
            row["human_score"] == line["human"] and row["annotator_scores"] == line["annotations"]
        )
        explained = [
            turn["content"] for turn in line["transcript"] if turn["id"] == line["explained_by"]
        ]
        assert [row["explanation"]] == explained
        assert (row["judge"], row["model"], row["dataset"]) == (
            line["protocol"],
            "offline",
            "texts.jsonl",
        )
        assert (row["scale_low"], row["scale_high"], row["aspect"]) == (1, 5, "consistency")
    assert by_key[HOSTILE, "debate", 0]["annotator_scores"] == [4, None, 5]


def test_a_comparison_has_both_answers_scores_and_the_winner(
    preferred: Path, tmp_path: Path
) -> None:
    rows = exported(preferred, tmp_path / "verdicts.jsonl")
    for row, line, item in zip(rows, read_lines(preferred), PAIRS, strict=True):
        for name in ("question", "answer_1", "answer_2", "category"):
            assert row[name] == item[name]
        assert [row["score_1"], row["score_2"]] == line["scores"] and row["winner"] == line[
            "winner"
        ]
        assert row["human_winner"] == "1" and row["annotator_winners"] == ["1", "tie", "1"]
        assert (row["system_1"], row["system_2"]) == ("old", "new")
        assert [row["score_1_by_round"], row["score_2_by_round"]] == [[at] for at in line["scores"]]
    assert not {"score", "candidate", "aspect", "human_score"} & rows[0].keys()


def test_criteria_details_and_annotators_are_columns(tmp_path: Path) -> None:
    data = write_lines(
        tmp_path / "pairs.jsonl", [{**pair, "annotators": ["ann", "bob", "cem"]} for pair in PAIRS]
    )
    evaluate(["baseline", "ensemble"], data, out=tmp_path / "run")
    rows = exported(tmp_path / "run", tmp_path / "verdicts.jsonl")
    lines = {(line["item"], line["protocol"]): line for line in read_lines(tmp_path / "run")}
    for row in rows:
        line = lines[row["item"], row["protocol"]]
        assert json.loads(row["details"]) == line["details"]
        assert row["annotators"] == ["ann", "bob", "cem"]
        points = line["details"]["criteria"][-1] if row["protocol"] == "baseline" else [None, None]
        assert [row["criteria_1"], row["criteria_2"]] == points
    assert len(rows[0]["criteria_1"]) == 6 and sum(rows[0]["criteria_1"]) == rows[0]["score_1"]


def test_lines_of_other_versions_are_exported_like_those_of_this_one(
    rated: Path, tmp_path: Path
) -> None:
    rows = exported(rated, tmp_path / "a.jsonl")
    path = rated / "results.jsonl"
    lines = [
        {
            name: value
            for name, value in line.items()
            if name not in ("annotators", "details") or value
        }
        for line in read_lines(rated)
    ]
    write_lines(path, (dict(reversed(line.items())) for line in lines))
    assert exported(rated, tmp_path / "b.jsonl") == rows


def test_several_runs_are_one_table_with_the_columns_of_both_kinds(
    rated: Path, preferred: Path, tmp_path: Path
) -> None:
    rows = exported([rated, preferred, rated], tmp_path / "verdicts.jsonl")
    assert len(rows) == 14
    assert {(row["run"], row["candidate"] is None) for row in rows} == {
        ("rated", False),
        ("preferred", True),
    }
    assert {tuple(row) for row in rows} == {
        tuple(column.name for column in columns_for(["score", "compare"], texts=True, turns=False))
    }


# A notice reports that the aspect does not apply to comparisons.
@pytest.mark.filterwarnings("always::jurygraph.eval.datasets.reading.ReadingNotice")
def test_the_folder_of_several_runs_is_exported_with_all_of_them(command: Command) -> None:
    assert (
        run(
            command, "run single --data demo --data demo-pairs --limit 3 --out out --aspect fluency"
        )
        == 0
    )
    assert run(command, "export out --out verdicts.jsonl") == 0
    rows = [json.loads(line) for line in Path("verdicts.jsonl").read_text().splitlines()]
    assert [(row["dataset"], row["run"]) for row in rows] == [("demo", "demo")] * 3 + [
        ("demo-pairs",) * 2
    ] * 3
    assert "Warning: Demo mode: scores come from word counts" in command.printed
    assert "wrote verdicts.jsonl: 6 rows, 58 columns\n" in command.printed


def test_failed_judgements_have_a_row_with_their_error(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path / "run",
        [scored("a", score=3.0), failed("b", aspect="wit", error="no score", cost_usd=None)],
        note="made by hand",
    )
    done = export(folder, tmp_path / "verdicts.csv", texts=False)
    good, bad = csv_rows(done.path)
    assert (done.rows, done.failed, done.notes) == (2, 1, ("made by hand",))
    assert (good["status"], good["score"], good["error"]) == ("ok", "3.0", "")
    assert (bad["status"], bad["score"], bad["error"]) == ("failed", "", "no score")
    # The price is unknown, and no provider reported the tokens: neither is 0.
    assert (bad["calls"], bad["cost_usd"], bad["input_tokens"], bad["uncounted"]) == (
        "1",
        "",
        "",
        "1",
    )


def test_an_evaluation_without_a_folder_is_exported_in_the_order_of_its_data(
    tmp_path: Path,
) -> None:
    data = Dataset.of_frame(TEXTS, "mine")
    done = evaluate("single", data)
    with pytest.raises(
        UsageError, match=r"its data mine was in memory; give the data with --data \(data=\)"
    ):
        export(done, tmp_path / "verdicts.jsonl")
    assert not (tmp_path / "verdicts.jsonl").exists()
    for given in (data, TEXTS, [data]):
        rows = exported(done, tmp_path / "verdicts.jsonl", data=given, overwrite=True)
        assert [row["candidate"] for row in rows] == [item["candidate"] for item in TEXTS]
    with pytest.raises(
        UsageError, match="--data demo: none of the runs judged data with this content"
    ):
        export(done, tmp_path / "verdicts.jsonl", data=[data, load_dataset("demo")], overwrite=True)


def test_results_in_another_order_than_the_data_get_their_own_texts(
    rated: Path, tmp_path: Path
) -> None:
    path = rated / "results.jsonl"
    path.write_text("".join(reversed(path.read_text("utf-8").splitlines(keepends=True))), "utf-8")
    rows = exported(rated, tmp_path / "verdicts.jsonl")
    assert [row["item"] for row in rows] == [item["id"] for item in TEXTS for _ in range(4)]
    assert all(
        row["candidate"] == item["candidate"]
        for row in rows
        for item in TEXTS
        if item["id"] == row["item"]
    )


def test_metrics_are_exported_without_a_scale_or_a_model(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "texts.jsonl", TEXTS)
    measure({"words": lambda item: len(item.candidate.split())}, data, out=tmp_path / "words")
    rows = exported(tmp_path / "words", tmp_path / "verdicts.jsonl")
    assert [row["score"] for row in rows] == [len(item["candidate"].split()) for item in TEXTS]
    assert {(row["scale_high"], row["model"], row["calls"]) for row in rows} == {(None, None, 0)}


def test_roles_with_different_models_are_named(tmp_path: Path) -> None:
    models = {"debate": {"*": "a", "critic": "b"}, "single": {"*": "a", "scorer": "a"}}
    results = [scored("i", "debate", score=3.0), scored("i", "single", score=3.0)]
    rows = exported(
        run_folder(tmp_path / "run", results, models=models), tmp_path / "v.jsonl", texts=False
    )
    assert [row["model"] for row in rows] == ["*=a, critic=b", "a"]


def test_answers_of_a_review_have_the_names_of_the_people(
    rated: Path, tmp_path: Path, command: Command
) -> None:
    assert run(command, f"review {rated} --when always --queue queue.csv") == 0
    rows = csv_rows(Path("queue.csv"))
    for row in rows:
        row |= {
            "answer": "2" if row["item"] == "b" else "",
            "name": "Ada" if row["item"] == "b" else "",
        }
    with Path("queue.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    assert run(command, f"review {rated} --answers queue.csv") == 0
    named = {row["item"]: row["reviews"] for row in exported(rated, tmp_path / "verdicts.jsonl")}
    assert [(given["name"], given["score"], given["winner"]) for given in named["b"]] == [
        ("Ada", 2, None)
    ]
    assert named["c"] == []


# -- formats
def test_csv_runs_no_formula_and_keeps_numbers(rated: Path, tmp_path: Path) -> None:
    export(rated, tmp_path / "verdicts.csv", turns=True)
    rows = csv_rows(tmp_path / "verdicts.csv")
    first = rows[0]
    assert first["item"] == f"'{HOSTILE}" and first["system"] == "'+sum"
    assert first["candidate"] == f"'{TEXTS[0]['candidate']}"
    assert not any(cell.startswith(("=", "+", "@", "\t")) for row in rows for cell in row.values())
    assert json.loads(first["annotator_scores"]) == [4, None, 5]
    said = [line["transcript"] for line in read_lines(rated) if line["item"] == HOSTILE]
    assert json.loads(first["transcript"]) in said


@pytest.mark.parametrize("reader", ["pandas", "polars", "pyarrow"])
def test_parquet_has_typed_columns_and_nested_transcripts(
    rated: Path, preferred: Path, tmp_path: Path, reader: str
) -> None:
    path = tmp_path / "verdicts.parquet"
    export([rated, preferred], path, turns=True)
    if reader == "pandas":
        rows = pytest.importorskip("pandas").read_parquet(path).to_dict("records")
    elif reader == "polars":
        rows = pytest.importorskip("polars").read_parquet(path).to_dicts()
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    lines = {
        (line["item"], line["protocol"], line["repeat"]): line
        for line in (*read_lines(rated), *read_lines(preferred))
    }
    assert len(rows) == len(lines)
    for row in rows:
        line = lines[row["item"], row["protocol"], row["repeat"]]
        assert [said["content"] for said in row["transcript"]] == [
            said["content"] for said in line["transcript"]
        ]
        values = [
            None if said["value"] is None else json.loads(said["value"])
            for said in row["transcript"]
        ]
        assert values == [said["value"] for said in line["transcript"]]
        assert list(row["warnings"]) == line["warnings"]


def test_an_all_empty_column_keeps_its_type(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = run_folder(tmp_path / "run", [failed("a", aspect="wit")])
    export(folder, tmp_path / "v.parquet", texts=False, turns=True)
    schema = parquet.read_schema(tmp_path / "v.parquet")
    assert {str(schema.field(name).type) for name in ("score", "human_score")} == {"double"}
    assert str(schema.field("explanation").type) == "string"
    turns = schema.field("transcript").type.value_type
    assert {field.name for field in turns} == set(Turn.__annotations__)
    evidence = turns.field("evidence").type.value_type
    assert {field.name for field in evidence} == set(Evidence.__annotations__)
    citations = turns.field("citations").type
    assert {field.name for field in citations} == set(Citations.__annotations__)


def test_the_results_of_tools_are_exported_with_their_turn(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = Evidence(id="E1", tool="search", args={"q": "tide"}, result="At noon.", status="ok")
    cited = citations_of("It turned at noon [E1]. It was late.", [found])
    spoken = {**turn("scorer", 3.0), "evidence": [found], "citations": cited}
    folder = run_folder(
        tmp_path / "run", [scored("a", score=3.0, aspect="wit", transcript=(spoken,))]
    )
    export(folder, tmp_path / "v.parquet", texts=False, turns=True)
    [row] = parquet.read_table(tmp_path / "v.parquet").to_pylist()
    [exported] = row["transcript"]
    assert exported["citations"] == cited
    assert exported["evidence"] == [{**found, "args": '{"q":"tide"}', "length": None}]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_half_a_surrogate_pair_costs_no_table(tmp_path: Path, ending: str) -> None:
    done = evaluate("single", Dataset.of_frame(TEXTS))
    broken = done.results[0].model_copy(
        update={"transcript": (turn("scorer", 3.0, content="\ud83d!"),)}
    )
    bad = type(done)((broken,), done.manifest)
    assert export(bad, tmp_path / f"v.{ending}", texts=False, turns=True).rows == 1
    assert b"\xed\xa0" not in (tmp_path / f"v.{ending}").read_bytes()


def test_parquet_without_pyarrow_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_module: str) -> Any:
        raise ImportError("not installed")

    monkeypatch.setattr(plugins, "import_module", missing)
    with pytest.raises(
        UsageError, match=r'pip install "jurygraph\[frames\]", or name a .csv or .jsonl file'
    ):
        export(tmp_path / "no run", tmp_path / "v.parquet")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "MOST_CHARACTERS", 1_000_000)
    said = (turn("scorer", 3.0, content="word " * 20_000),)
    folder = run_folder(
        tmp_path / "run", (scored(f"i{at}", score=3.0, transcript=said) for at in range(400))
    )
    assert (folder / "results.jsonl").stat().st_size > 40_000_000
    small = run_folder(tmp_path / "small", [scored("i0", score=3.0, transcript=())])
    for ending in ("jsonl", "csv", "parquet"):
        # What the first export imports is no part of the run.
        export(small, tmp_path / f"small.{ending}", texts=False, turns=True)
        tracemalloc.start()
        export(folder, tmp_path / f"v.{ending}", texts=False, turns=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 12_000_000, ending
    groups = (
        pytest.importorskip("pyarrow.parquet").ParquetFile(tmp_path / "v.parquet").num_row_groups
    )
    assert groups == 40


# -- refusals
def test_data_that_is_gone_or_has_changed_is_named_with_the_remedy(
    rated: Path, tmp_path: Path, command: Command
) -> None:
    data = tmp_path / "texts.jsonl"
    original = data.read_text("utf-8")
    data.write_text(original.replace("cart", "ship"), "utf-8")
    assert run(command, f"export {rated} --out v.csv") == 2
    assert (
        f"the texts of {rated} cannot be exported: {data} has changed since the run"
        in command.errors
    )
    assert "--data (data=), or leave the texts out with --without-texts" in command.errors
    data.unlink()
    assert run(command, f"export {rated} --out v.csv") == 2
    assert f"{data}: cannot be read: No such file" in command.errors
    assert "--without-texts" in command.errors and not Path("v.csv").exists()
    assert run(command, f"export {rated} --out v.csv --without-texts") == 0
    rows = csv_rows(Path("v.csv"))
    assert len(rows) == 12 and "candidate" not in rows[0] and rows[0]["score"]
    Path("moved.jsonl").write_text(original, "utf-8")
    assert run(command, f"export {rated} --out moved.csv --data moved.jsonl") == 0
    assert csv_rows(Path("moved.csv"))[0]["source"] == SOURCE
    Path("other.jsonl").write_text(original.replace("cart", "ship"), "utf-8")
    assert run(command, f"export {rated} --out x.csv --data moved.jsonl --data other.jsonl") == 2
    assert "--data other.jsonl: none of the runs judged data with this content" in command.errors
    assert run(command, f"export {rated} --out x.csv --data moved.jsonl --without-texts") == 2


def test_an_item_that_the_data_does_not_have_is_named(rated: Path, tmp_path: Path) -> None:
    path = rated / "results.jsonl"
    path.write_text(path.read_text("utf-8").replace('"item":"c"', '"item":"elsewhere"'), "utf-8")
    with pytest.raises(DataError, match="has no item 'elsewhere', which the run rated judged"):
        export(rated, tmp_path / "v.csv")
    assert list(tmp_path.glob("v.csv*")) == []


def test_no_file_is_overwritten_unless_asked(rated: Path, tmp_path: Path, command: Command) -> None:
    Path("v.csv").write_text("mine")
    assert run(command, f"export {rated} --out v.csv") == 2
    assert "v.csv exists already" in command.errors and "--overwrite" in command.errors
    assert Path("v.csv").read_text() == "mine"
    assert run(command, f"export {rated} --out v.csv --overwrite") == 0
    assert len(csv_rows(Path("v.csv"))) == 12


@pytest.mark.parametrize("target", ["rated/results.jsonl", "rated/reviews.jsonl", "texts.jsonl"])
def test_the_files_of_a_run_are_never_replaced(rated: Path, target: str, command: Command) -> None:
    path = rated.parent / target
    before = path.read_bytes() if path.exists() else None
    assert run(command, f"export {rated} --out {path} --overwrite") == 2
    assert (path.read_bytes() if path.exists() else None) == before


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "export {run} --out v.xlsx",
            "the ending names the format of an export: .parquet, .csv, .jsonl",
        ),
        ("export {run} --out {run}", "is a folder"),
        ("export nowhere --out v.csv", "nowhere: holds no run"),
        ("export {run}", "Missing option '--out'"),
    ],
)
def test_a_mistake_is_named_before_anything_is_written(
    preferred: Path, command: Command, line: str, problem: str
) -> None:
    assert run(command, line.format(run=preferred)) == 2
    assert problem in command.errors
    assert not list(Path().glob("v.*"))


def test_a_run_in_shards_is_refused_with_the_command_that_merges_it(command: Command) -> None:
    assert (
        run(command, "run single --data demo --limit 6 --aspect fluency --shard 1/2 --out out") == 0
    )
    assert run(command, "export out --out v.csv") == 2
    assert "its verdicts are in shards; first run jurygraph merge" in command.errors


def test_the_docs_name_every_column() -> None:
    docs = (Path(__file__).parents[1] / "docs" / "runs.md").read_text("utf-8")
    assert [column.name for column in COLUMNS if f"`{column.name}`" not in docs] == []
