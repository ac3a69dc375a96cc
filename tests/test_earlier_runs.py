"""Folders and journals that an earlier state of version 0.1.0 wrote are read, resumed, reported and merged."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate, merge
from jurygraph.eval.analysis.loading import load_runs
from jurygraph.eval.cli.app import app
from jurygraph.eval.journal import records
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.plan.plan import plan
from jurygraph.eval.results.results import ResultsFile
from typer.testing import CliRunner

from .sample_data import read_lines

EARLIER = Path(__file__).parent / "earlier"
DEMO: dict[str, Any] = {"data": "demo", "aspects": ["fluency"]}


def signed_as_now(manifest: Path, protocols: list[str], limit: int) -> None:
    """Sign a run as today: its prompts may have changed since, and what is tested is the form of its files."""
    now = plan(protocols, **DEMO, limit=limit).manifest
    before = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**before, "signatures": now["signatures"]}))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(EARLIER / "run", tmp_path / "run"))
    with sqlite3.connect(folder / "journal.sqlite") as journal:
        journal.executescript((EARLIER / "journal.sql").read_text())
    journal.close()
    return folder


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EARLIER / "shards", tmp_path / "shards"))


def test_an_earlier_run_is_read_and_reported(run: Path) -> None:
    results = ResultsFile(run).read()
    assert [(one.item, one.protocol, one.score) for one in results] == [
        (line["item"], line["protocol"], line["score"]) for line in read_lines(run)
    ]
    assert [judge.protocol for judge in load_runs([run])] == ["debate", "geval"]
    said = str(results[0].transcript[0]["content"])[:20]
    for command, shown in (("report", "geval"), ("agree", "geval"), ("show", said)):
        item = [results[0].item] if command == "show" else []
        done = CliRunner().invoke(app, [command, str(run), *item])
        assert (done.exit_code, shown in done.output) == (0, True), done.output


async def test_the_journal_of_an_earlier_run_answers(run: Path) -> None:
    before = summarize(run / "journal.sqlite")
    assert before.version == 2
    assert before.replies == before.spent.calls > 0
    with sqlite3.connect(run / "journal.sqlite") as file:
        keys = [key for (key,) in file.execute("SELECT key FROM jurygraph_calls")]
    file.close()
    (identity,) = before.by_run
    journal = await Journal.open(run / "journal.sqlite", run=identity)
    assert journal.totals() == before.spent
    for key in keys:
        kept = await journal.reserve(key)
        assert kept is not None
        assert records.from_bytes(kept).text
    await journal.close()


def test_an_earlier_run_resumes_without_a_call_and_with_the_verdicts_that_it_lacks(run: Path) -> None:
    signed_as_now(run / "run.json", ["debate", "geval"], limit=2)
    lines, calls = (run / "results.jsonl").read_bytes(), summarize(run / "journal.sqlite").spent.calls
    done = evaluate(["debate", "geval"], **DEMO, limit=2, out=run)
    assert len(done.results) == len(read_lines(run)) == 4
    assert (run / "results.jsonl").read_bytes() == lines
    assert summarize(run / "journal.sqlite").spent.calls == calls
    assert done.manifest["run"] == json.loads((EARLIER / "run" / "run.json").read_text())["run"]
    assert [steps["aspect"] for steps in done.manifest["steps"]] == ["fluency"]
    # As a run leaves it that is killed in the middle of a line.
    first, second, third, _ = lines.splitlines(keepends=True)
    (run / "results.jsonl").write_bytes(first + second + third[:50])
    assert not evaluate(["debate", "geval"], **DEMO, limit=2, out=run).failed
    assert (run / "results.jsonl").read_bytes().startswith(first + second)
    assert [(one["item"], one["protocol"]) for one in read_lines(run)] == [
        (one["item"], one["protocol"]) for one in read_lines(EARLIER / "run")
    ]


def test_earlier_shards_are_merged_and_resumed(shards: Path, tmp_path: Path) -> None:
    parts = sorted(shards.glob("shard-*"))
    lines = [line for part in parts for line in (part / "results.jsonl").read_bytes().splitlines()]
    done = merge([shards], tmp_path / "merged")
    assert (done.judged, done.failed, done.missing) == (len(lines), 0, ())
    assert sorted((tmp_path / "merged" / "results.jsonl").read_bytes().splitlines()) == sorted(lines)
    for manifest in (shards / "run.json", *(part / "run.json" for part in parts)):
        signed_as_now(manifest, ["geval"], limit=6)
    before = (parts[0] / "results.jsonl").read_bytes()
    evaluate("geval", **DEMO, limit=6, out=shards, shard="1/2")
    assert (parts[0] / "results.jsonl").read_bytes() == before
