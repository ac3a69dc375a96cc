"""Test that a reproduced table can be published, and checked again without a model."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.experiments.published_table import Checked, check_published, private_in, publish

from .processes import Command
from .sample_data import read_lines, write_lines

TABLE = "chateval-table3"
RUN = "cells/method=same-roles,model=offline"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the table with two models, four pairs of answers each."""
    folder = tmp_path_factory.mktemp("published") / "table"
    command = Command()
    models = "--model offline --model offline?temperature=0.5"
    words = f"reproduce {TABLE} --data demo-pairs --limit 4 {models} --out {folder}"
    assert command(*words.split()) == 0
    assert f"--check {folder}" in command.printed
    return folder


@pytest.fixture
def copy(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "copy"))


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def edit_verdict(folder: Path) -> None:
    rows = read_lines(folder / RUN)
    rows[0]["winner"] = "2" if rows[0]["winner"] == "1" else "1"
    write_lines(folder / RUN / "results.jsonl", rows)


def written_anew(folder: Path) -> Checked:
    """Check a folder whose manifest was written again after an edit."""
    publish(folder, TABLE, [folder / RUN])
    return check_published(folder, TABLE)


def test_the_folder_has_what_others_need_and_agrees(published: Path) -> None:
    names = {path.name for path in published.iterdir()}
    assert {"calls.sqlite", "manifest.json", "reproduce.json", "table.md", "page.html"} <= names
    manifest = json.loads((published / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["table"] == TABLE
    assert {"python", "jurygraph", "langgraph"} <= manifest["versions"].keys()
    assert manifest["data"][0] == "demo-pairs"
    assert len(manifest["signatures"]) == 6
    assert {"calls.sqlite", f"{RUN}/results.jsonl", "page.html"} <= manifest["files"].keys()
    found = check_published(published, TABLE)
    assert found.faults == ()
    assert found.unchecked == ()
    # Three methods, two models, four pairs; accuracy and kappa, also of three printed rows.
    assert (found.verdicts, found.figures) == (24, 18)


@pytest.mark.slow
def test_no_path_of_this_machine_is_in_the_folder(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "wholly-secret-value")
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "mine" / "pairs.jsonl"
    data.parent.mkdir()
    names = ("id", "question", "answer_1", "answer_2", "human")
    rows = [dict(zip(names, (f"i{n}", "Q?", "A", "B " * n, "1"), strict=True)) for n in range(1, 5)]
    write_lines(data, rows)
    template = tmp_path / "words" / "chateval" / "summarizer.md"
    template.parent.mkdir(parents=True)
    template.write_text("Sum up.", encoding="utf-8")
    words = ("reproduce", TABLE, "--data", str(data), "--set", f"prompts={tmp_path / 'words'}")
    for _ in range(2):
        assert command(*words, "--model", "offline", "--out", str(tmp_path / "table")) == 0
        assert "before you publish" not in command.printed
        places = [*tmp_path.glob("table/**/*.json"), *tmp_path.glob("table/**/*.html")]
        assert len(places) >= 6
        for path in (path for path in tmp_path.glob("table/**/*") if path.is_file()):
            assert str(tmp_path).encode() not in path.read_bytes(), path
            assert b"wholly-secret-value" not in path.read_bytes(), path
        run = json.loads(next(tmp_path.glob("table/cells/*/run.json")).read_text(encoding="utf-8"))
        assert run["data"]["location"] == "mine/pairs.jsonl"
        assert next(iter(run["protocols"].values()))["prompts"] == "words"
    assert check_published(tmp_path / "table", TABLE).faults == ()


def test_what_names_the_machine_or_a_key_is_told(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "wholly-secret-value")
    assert [*private_in(copy)] == []
    (copy / "table.csv").write_text(f"from {Path.cwd()}/x", encoding="utf-8")
    (copy / "table.tex").write_text("wholly-secret-value", encoding="utf-8")
    assert [*private_in(copy)] == [
        "table.csv contains the current folder",
        "table.tex contains a key, or a text that looks like one",
    ]


def test_a_changed_digit_is_found(copy: Path) -> None:
    path = copy / "table.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("0.538", "0.588", 1), encoding="utf-8")

    def change(content: Any) -> None:
        content["rows"][0][2]["value"] += 0.01

    edit_json(copy / "reproduce.json", change)
    faults = "\n".join(written_anew(copy).faults)
    assert "table.md, line " in faults and "0.588" in faults
    assert "reproduce.json: single agent, here, offline, accuracy: " in faults
    assert "follows from the verdicts" in faults


def test_an_edited_journal_is_named(copy: Path) -> None:
    with sqlite3.connect(copy / "calls.sqlite") as connection:
        connection.execute("UPDATE jurygraph_calls SET seconds = 9")
    connection.close()
    (fault,) = check_published(copy, TABLE).faults
    assert fault.startswith("calls.sqlite: edited after the run (the journal of calls)")
    (copy / "calls.sqlite").unlink()
    assert check_published(copy, TABLE).faults == ("calls.sqlite: missing (the journal of calls)",)


def test_an_edited_verdict_is_found_even_with_a_new_manifest(copy: Path) -> None:
    edit_verdict(copy)
    faults = written_anew(copy).faults
    assert any("results.jsonl: item " in fault and ": winner is " in fault for fault in faults)
    assert not [fault for fault in faults if "SHA-256" in fault]


def test_an_edited_reply_is_found(copy: Path) -> None:
    rows = read_lines(copy / RUN)
    for row in rows:
        for turn in row["transcript"]:
            if turn["value"] is not None:
                turn["content"] = "Score of answer 1: 1\nScore of answer 2: 10"
    write_lines(copy / RUN / "results.jsonl", rows)
    assert any("but its replies give" in fault for fault in written_anew(copy).faults)


def test_an_added_file_is_named(copy: Path) -> None:
    (copy / "notes.txt").write_text("new", encoding="utf-8")
    assert check_published(copy, TABLE).faults == ("notes.txt: not in the manifest",)


def test_the_command_reports_and_ends_with_a_code(
    copy: Path, command: Command, tmp_path: Path
) -> None:
    assert command("reproduce", TABLE, "--check", str(copy)) == 0
    assert "24 verdicts from recorded replies and 18 figures" in command.printed
    assert "all agree" in command.printed
    edit_verdict(copy)
    assert command("reproduce", TABLE, "--check", str(copy)) == 3
    assert "differs: cells/method=same-roles" in " ".join(command.printed.split())
    assert command("reproduce", TABLE, "--check", str(copy), "--model", "offline") == 2
    assert "--check calls no model" in command.errors
    assert command("reproduce", "chateval-table4", "--check", str(copy)) == 2
    assert f"has the table {TABLE}, not chateval-table4" in " ".join(command.errors.split())
    assert command("reproduce", TABLE, "--check", str(tmp_path)) == 2
    assert "is not the folder of a reproduced table" in " ".join(command.errors.split())
