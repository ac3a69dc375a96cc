"""``jurygraph agree``: known answers on recorded scores, the shape of its JSON, and what it says of bad input."""

from __future__ import annotations

import csv
import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval.cli.app import app
from jurygraph.state.errors import DataError, UsageError
from typer.testing import CliRunner

from .agreement_columns import SCIPY
from .run_folders import failed, run_folder, scored
from .sample_data import read_lines, write_lines

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
    """What the command says on input that it cannot use."""
    with pytest.raises((DataError, UsageError)) as error:
        CliRunner().invoke(app, ["agree", *map(str, arguments)], catch_exceptions=False)
    return str(error.value)


def rows_of(folder: Path, rows: Iterable[Row]) -> Path:
    return write_lines(folder / "rows.jsonl", rows)


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
        {"item": r["item_id"], "group": r["context_id"], "aspect": a}
        | {"score": r["unieval"][a], "human": r["human"][a]}
        for r in read_lines(shared_data / "topical_chat" / "topical_chat.jsonl")
        for a in aspects
    ]
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(rows_of(tmp_path, rows).read_bytes()))
    found = figures(path)
    assert tuple(found) == aspects
    for aspect in aspects:
        check_against_scipy([row for row in rows if row["aspect"] == aspect], found[aspect])


# --- forms --------------------------------------------------------------------------------------------------------

SCORES: list[Row] = [
    {"item": f"i{n}", "group": f"g{n // 4}", "aspect": "wit", "score": (n * 7) % 5, "human": (n * 5) % 6}
    for n in range(20)
]
TEN_GROUPS = [{**row, "group": f"g{n // 2}"} for n, row in enumerate(SCORES)]
COMPARED = [{"item": n, "winner": ("1", "2", "tie")[n % 3], "human": ("1", "2")[n % 2]} for n in range(12)]


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
    text = told(path, "--resamples", 200)
    assert "rows.jsonl: over rows" in text
    assert f"{wide['value']:.3f} [{wide['low']:.3f}, {wide['high']:.3f}]" in text
    assert "[low, high]: 95 % confidence interval, 200 bootstrap resamples of 10 groups, seed 0" in text
    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]
    assert wide["value"] == other["value"]
    assert wide["low"] != other["low"]
    assert figures(path, "--resamples", 0)["wit"]["over_rows"]["pearson"]["low"] is None
    assert "--confidence must be between 0 and 1" in refusal(path, "--confidence", "95")
    for command in ("agree", "report"):
        many = CliRunner().invoke(app, [command, str(path), "--resamples", "1000001"], env={"COLUMNS": "150"})
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
    path = rows_of(tmp_path, [{**row, "protocol": name} for name in ("debate", "single") for row in SCORES])
    found = figures(path)
    assert list(found) == ["debate", "single"]
    assert found["debate"] == figures(path, "--protocol", "debate")
    assert sum(line.split()[:2] == ["debate", "wit"] for line in told(path).splitlines()) == 2
    assert "protocol 'more'; protocols in the file: 'debate', 'single'" in refusal(path, "--protocol", "more")


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
    assert (found["n"], found["left_out"], found["repeats"], found["units"]) == (39, {"failed": 1}, 2, 5)
    spread = found["over_repeats"]
    assert (spread["repeats"], spread["n"]) == (2, [20, 19])
    values = spread["figures"]["over_rows.kendall"]["values"]
    assert spread["figures"]["over_rows.kendall"]["mean"] == pytest.approx(sum(values) / 2)
    assert figures(folder / "results.jsonl")["wit"] == found
    text = told(folder)
    for words in ("between repeats", "2 repeats are pooled", "wit: left out 1 failed"):
        assert words in text


# --- bad input ----------------------------------------------------------------------------------------------------


def test_where_there_is_no_correlation_or_no_interval_that_is_said(tmp_path: Path) -> None:
    path = rows_of(tmp_path, [{**row, "score": 3} for row in SCORES])
    constant = figures(path)["wit"]
    assert all(one == dict.fromkeys(INTERVAL) for one in constant["over_rows"].values())
    assert constant["per_group"]["kendall"]["skipped"] == 5
    assert "wit: no correlation, because scores do not vary (judge always 3)" in (text := told(path))
    assert "interval" not in text, "none is shown, so none is explained"
    rows_of(tmp_path, [{**row, "group": "all"} for row in SCORES])
    found = figures(path)["wit"]
    assert (found["groups"], found["over_rows"]["pearson"]["low"]) == (1, None)
    assert found["over_rows"]["pearson"]["value"] == pytest.approx(found["per_group"]["pearson"]["value"])
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
        ([{"item": "a"}], "1 rows can be used: 1 no label; a row needs the field human, and score or winner"),
        ([{"score": 1}, {"score": 2}], "none of its 2 rows can be used: 2 no label"),
        (
            [{"item": "a", "score": 1, "label": 2}],
            "winner (1, 2 or tie); the first row has item, score, label",
        ),
        ([{"status": "failed", "human": 1}, {"score": math.nan, "human": 2}], "1 failed, 1 not a number"),
        ([{"winner": "1", "human": "2"}, {"score": 1, "human": 2}], "line 1, both of no aspect"),
        ([SCORES[0], {**SCORES[0], "score": 4}], "rows.jsonl, line 2 have the same item"),
    ],
)
def test_input_without_an_answer(tmp_path: Path, rows: list[Row], problem: str) -> None:
    assert problem in refusal(rows_of(tmp_path, rows))


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
