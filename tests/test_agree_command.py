"""``jurygraph agree``: known answers on recorded scores, the shape of its JSON, and what it says of bad input."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import Result
from jurygraph.eval.cli.app import app
from jurygraph.eval.results.results import ResultsFile
from jurygraph.state.errors import DataError, UsageError
from typer.testing import CliRunner

from .agreement_columns import SCIPY

Row = dict[str, Any]
INTERVAL = {"value", "low", "high"}


def told(*arguments: object) -> str:
    """What the command prints."""
    done = CliRunner().invoke(
        app, ["agree", *map(str, arguments)], env={"COLUMNS": "150"}, catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def figures(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told(*arguments, "--json"))
    return found


def refusal(*arguments: object) -> str:
    """What the command says on input that it cannot use."""
    with pytest.raises((DataError, UsageError)) as error:
        CliRunner().invoke(app, ["agree", *map(str, arguments)], catch_exceptions=False)
    return str(error.value)


def written(path: Path, rows: Iterable[Row]) -> Path:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def read(path: Path) -> list[Row]:
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [json.loads(line) for line in content.decode().split("\n") if line]


# --- known answers ------------------------------------------------------------------------------------------------


def check_against_scipy(rows: list[Row], found: dict[str, Any]) -> None:
    """All correlations of one aspect, over rows and within groups, by another library."""
    x, y = ([float(row[side]) for row in rows] for side in ("score", "human"))
    groups: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        groups[row["group"]].append(place)
    pairs = [([x[i] for i in places], [y[i] for i in places]) for places in groups.values()]
    vary = [(a, b) for a, b in pairs if len(set(a)) > 1 and len(set(b)) > 1]
    assert (found["n"], found["groups"]) == (len(rows), len(groups))
    for name, scipy in SCIPY.items():
        over, within = found["over_rows"][name], found["per_group"][name]
        assert over["value"] == pytest.approx(scipy(x, y), abs=1e-9)
        assert over["low"] < over["value"] < over["high"]
        assert (within["groups"], within["skipped"]) == (len(vary), len(pairs) - len(vary))
        wanted = np.mean([scipy(a, b) for a, b in vary])
        assert within["value"] == pytest.approx(wanted, abs=1e-9)
        assert within["low"] < within["value"] < within["high"]


def test_recorded_scores_on_topical_chat(shared_data: Path, tmp_path: Path) -> None:
    aspects = ("naturalness", "coherence", "engagingness", "groundedness")
    rows = [
        {
            "item": r["item_id"],
            "group": r["context_id"],
            "aspect": a,
            "score": r["unieval"][a],
            "human": r["human"][a],
        }
        for r in read(shared_data / "topical_chat" / "topical_chat.jsonl")
        for a in aspects
    ]
    found = figures(written(tmp_path / "rows.jsonl.gz", rows))
    assert tuple(found) == aspects
    for aspect in aspects:
        check_against_scipy([row for row in rows if row["aspect"] == aspect], found[aspect])


def test_annotators_of_pandalm(shared_data: Path, tmp_path: Path) -> None:
    """Cohen's kappa of each two annotators, from counts."""
    names = {0: "tie", 1: "1", 2: "2"}
    raw = read(shared_data / "pandalm" / "pandalm.jsonl.gz")
    rows = [
        {"item": r["idx"], "protocol": f"{a} and {b}"}
        | {"winner": names[r[f"annotator{a}"]], "human": names[r[f"annotator{b}"]]}
        for r in raw
        for a, b in itertools.combinations((1, 2, 3), 2)
    ]
    found = figures(written(tmp_path / "rows.jsonl", rows))
    assert list(found) == ["1 and 2", "1 and 3", "2 and 3"]
    for pair, one in found.items():
        first, second = ([r[f"annotator{who}"] for r in raw] for who in pair.split(" and "))
        n, counts = len(raw), (Counter(first), Counter(second))
        observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
        chance = sum(counts[0][c] * counts[1][c] for c in names) / n**2
        preference = one["preference"]
        assert preference["accuracy"]["value"] == pytest.approx(observed, abs=1e-9)
        assert preference["kappa"]["value"] == pytest.approx((observed - chance) / (1 - chance), abs=1e-9)
        assert preference["kappa"]["low"] < preference["kappa"]["value"] < preference["kappa"]["high"]
        assert (preference["n"], preference["ties"]) == (n, counts[0][0])


# --- forms --------------------------------------------------------------------------------------------------------

SCORES: list[Row] = [
    {"item": f"i{n}", "group": f"g{n // 4}", "aspect": "wit", "score": (n * 7) % 5, "human": (n * 5) % 6}
    for n in range(20)
]
TEN_GROUPS = [{**row, "group": f"g{n // 2}"} for n, row in enumerate(SCORES)]
COMPARED = [{"item": n, "winner": ("1", "2", "tie")[n % 3], "human": ("1", "2")[n % 2]} for n in range(12)]


def test_json_of_scores(tmp_path: Path) -> None:
    found = figures(written(tmp_path / "rows.jsonl", SCORES))["wit"]
    assert {"n", "groups", "over_rows", "per_group"} <= found.keys()
    assert (found["n"], found["groups"], found["seed"], found["resamples"], found["confidence"]) == (
        20,
        5,
        0,
        1000,
        0.95,
    )
    for name in SCIPY:
        assert found["over_rows"][name].keys() == INTERVAL
        assert found["per_group"][name].keys() >= INTERVAL | {"skipped"}
    assert found["ranges"] == {"judge": [0, 4], "people": [0, 5]}


def test_json_of_comparisons(tmp_path: Path) -> None:
    found = figures(written(tmp_path / "rows.jsonl", COMPARED))
    assert found.keys() == {"preference"}
    preference = found["preference"]
    assert (preference["n"], preference["ties"]) == (12, 4)
    assert preference["accuracy"].keys() == preference["kappa"].keys() == INTERVAL


def test_seed_resamples_and_confidence(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", TEN_GROUPS)
    wide, narrow, other = (
        figures(path, "--resamples", 200, *more)["wit"]["over_rows"]["pearson"]
        for more in ((), ("--confidence", "0.5"), ("--seed", "3"))
    )
    assert figures(path, "--resamples", 200)["wit"]["over_rows"]["pearson"] == wide
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert wide["value"] == other["value"]
    assert wide["low"] != other["low"]
    assert figures(path, "--resamples", 0)["wit"]["over_rows"]["pearson"]["low"] is None
    assert "--confidence must be between 0 and 1" in refusal(path, "--confidence", "95")


def test_ties_and_votes(tmp_path: Path) -> None:
    rows = [{"item": n, "winner": "1", "human": ["1", "1", "tie", "2"]} for n in range(3)]
    path = written(tmp_path / "rows.jsonl", rows)
    assert figures(path)["preference"]["accuracy"]["value"] == 0
    each = figures(path, "--votes", "each", "--ties", "left_out")["preference"]
    assert (each["n"], each["accuracy"]["value"], each["left_out"]) == (
        9,
        pytest.approx(2 / 3),
        {"human tie": 3},
    )
    assert figures(path, "--votes", "each", "--ties", "half")["preference"]["accuracy"]["value"] == 2.5 / 4
    text = told(path, "--votes", "each", "--ties", "half")
    assert "every human vote counts; any verdict on a human tie is half right" in text


def test_a_table_of_cells_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["item", "group", "aspect", "score", "human"])
        writer.writeheader()
        writer.writerows({**row, "human": f"[{row['human']}, {row['human']}]"} for row in SCORES)
    assert figures(path) == figures(written(tmp_path / "rows.jsonl", SCORES))


def test_several_protocols(tmp_path: Path) -> None:
    rows = [{**row, "protocol": name} for name in ("debate", "single") for row in SCORES]
    path = written(tmp_path / "rows.jsonl", rows)
    found = figures(path)
    assert list(found) == ["debate", "single"]
    assert found["debate"] == figures(path, "--protocol", "debate")
    lines = told(path).splitlines()
    assert sum(line.split()[:2] == ["debate", "wit"] for line in lines) == 2
    assert "protocol 'more'; protocols in the file: 'debate', 'single'" in refusal(path, "--protocol", "more")


def test_the_folder_of_a_run(tmp_path: Path) -> None:
    """With repeats and a failure; its results may also be given as a file."""
    results = ResultsFile(tmp_path)
    for repeat in range(2):
        for n, row in enumerate(SCORES):
            failed = n == repeat == 1
            fields = {**row, "score": None if failed else float(row["score"] + repeat * (n % 2))}
            status = "failed" if failed else "ok"
            results.add(
                Result(**{**fields, "protocol": "debate", "repeat": repeat, "status": status, "error": None})
            )
    results.close()
    found = figures(tmp_path)["wit"]
    assert (found["n"], found["left_out"], found["repeats"], found["units"]) == (39, {"failed": 1}, 2, 5)
    spread = found["over_repeats"]
    assert (spread["repeats"], spread["n"]) == (2, [20, 19])
    values = spread["figures"]["over_rows.kendall"]["values"]
    assert spread["figures"]["over_rows.kendall"]["mean"] == pytest.approx(sum(values) / 2)
    assert figures(tmp_path / "results.jsonl")["wit"] == found
    text = told(tmp_path)
    assert "between repeats" in text
    assert "2 repeats are pooled" in text
    assert "wit: left out 1 failed" in text


def test_tables_have_intervals_and_notes(tmp_path: Path) -> None:
    text = told(written(tmp_path / "rows.jsonl", TEN_GROUPS))
    found = figures(tmp_path / "rows.jsonl")["wit"]["over_rows"]["pearson"]
    assert "rows.jsonl: over rows" in text
    assert f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]" in text
    assert "[low, high]: 95 % confidence interval, 1,000 bootstrap resamples of 10 groups, seed 0" in text


# --- bad input ----------------------------------------------------------------------------------------------------


def test_constant_scores(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [{**row, "score": 3} for row in SCORES])
    found = figures(path)["wit"]
    assert all(one == {"value": None, "low": None, "high": None} for one in found["over_rows"].values())
    assert found["per_group"]["kendall"]["skipped"] == 5
    assert "wit: no correlation, because scores do not vary (judge always 3)" in (text := told(path))
    assert "interval" not in text, "none is shown, so none is explained"


def test_one_group(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.jsonl", [{**row, "group": "all"} for row in SCORES])
    found = figures(path)["wit"]
    assert (found["groups"], found["over_rows"]["pearson"]["low"]) == (1, None)
    assert found["over_rows"]["pearson"]["value"] == pytest.approx(found["per_group"]["pearson"]["value"])
    assert "no interval for wit: all rows belong to one group or item" in told(path)


def test_hostile_names_are_names(tmp_path: Path) -> None:
    name = "[bold red]x[/] \x1b[31m \u202e </script> \ud800"
    path = written(tmp_path / "rows.jsonl", [{**row, "aspect": name, "protocol": "[/]"} for row in SCORES])
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
            "none of its 1 rows can be used: 1 no label; a row needs the field human, and score or winner",
        ),
        ([{"score": 1}, {"score": 2}], "none of its 2 rows can be used: 2 no label"),
        (
            [{"item": "a", "score": 1, "label": 2}],
            r"winner \(1, 2 or tie\); the first row has item, score, label",
        ),
        (
            [{"status": "failed", "human": 1}, {"score": math.nan, "human": 2}],
            "2 rows can be used: 1 failed, 1 not a number",
        ),
        (
            [{"winner": "1", "human": "2"}, {"score": 1, "human": 2}],
            r"line 2 and .*line 1, both of no aspect",
        ),
        ([{**SCORES[0]}, {**SCORES[0], "score": 4}], r"line 1 and .*line 2 have the same item"),
    ],
)
def test_input_without_an_answer(tmp_path: Path, rows: list[Row], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        raise DataError(refusal(written(tmp_path / "rows.jsonl", rows)))


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
