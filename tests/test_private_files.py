"""Test who can read the files of a run: only its owner, unless a user decides otherwise."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from jurygraph.eval import evaluate, measure, sweep
from jurygraph.eval.results.run_log import logging_to

from .sample_data import read_lines


@pytest.fixture(autouse=True)
def _usual_permissions() -> Iterator[None]:
    """New files are readable by everybody, as on most machines."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def permissions(folder: Path) -> dict[str, str]:
    paths = (folder, *folder.rglob("*"))
    return {str(path.relative_to(folder)): oct(path.stat().st_mode & 0o777) for path in paths}


def judged(out: Path, **options: object) -> None:
    with logging_to(out, None):
        evaluate("single", "demo", aspects=["consistency"], limit=3, out=out, **options)  # type: ignore[arg-type]


def test_what_a_run_a_sweep_or_a_metric_writes_is_its_owners_alone(tmp_path: Path) -> None:
    judged(tmp_path / "runs" / "out")
    files = ("results.jsonl", "run.json", "log.jsonl", "journal.sqlite", "run.lock")
    assert permissions(tmp_path / "runs" / "out") == {".": "0o700", **dict.fromkeys(files, "0o600")}
    assert oct((tmp_path / "runs").stat().st_mode & 0o777) == "0o755"
    judged(tmp_path / "out", journal=tmp_path / "shared" / "calls.sqlite")
    assert permissions(tmp_path / "shared")["calls.sqlite"] == "0o600"
    sweep("debate", {"n": [1]}, "demo", aspects=["consistency"], limit=2, out=tmp_path / "sweep")
    measure("rouge-l", "demo", aspects=["consistency"], limit=2, out=tmp_path / "rouge")
    assert (
        permissions(tmp_path / "rouge").items() >= {".": "0o700", "results.jsonl": "0o600"}.items()
    )
    assert permissions(tmp_path / "sweep").items() >= {".": "0o700", "sweep.json": "0o600"}.items()


def test_a_folder_that_was_opened_to_others_stays_so_and_the_log_tells_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    judged(out)
    out.chmod(0o755)
    for name in ("results.jsonl", "run.json"):
        (out / name).chmod(0o644)
    judged(out, repeats=2)
    found = permissions(out)
    assert (found["."], found["results.jsonl"], found["run.json"]) == ("0o755", "0o644", "0o644")
    told = [record["event"] for record in read_lines(out / "log.jsonl")]
    assert [line for line in told if "other users can read" in line] == [
        f"other users can read results.jsonl, run.json in {out}; `chmod -R go= {out}` stops that"
    ]
