"""Test that all experiments keep to one form: result file, resuming, report and page."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.cli.commands import COMMANDS
from jurygraph.eval.experiments.reproduction_plan import reproduce
from jurygraph.eval.experiments.run_audit import audit
from jurygraph.eval.results.experiment_result import EXPERIMENTS, read_experiment
from jurygraph.state.errors import UsageError

from .processes import command_line, in_this_process

RUN = "run debate --data demo --limit 3 --aspect consistency --set n=1 --out run"
SMALL: Mapping[str, str] = {
    "versus": "debate --data demo --aspect consistency --limit 3 --set debate.n=1 --by calls --out out",
    "sweep": "debate --axis n=1,2 --data demo --aspect consistency --limit 2 --out out",
    "whatif": "run --drop critic:1",
    "redteam": "single --data demo --aspect consistency --limit 2 --attacks 2 --out out",
    "bias": "single --data demo-pairs --limit 2 --out out",
    "reproduce": "debate-table3 --data demo --limit 4 --aspect coherence --out out",
}
"""A small call of each experiment; some read a run."""


def without_times(fields: Any) -> Any:
    """Return the fields of a file without seconds, times and random ids."""
    if isinstance(fields, dict):
        left_out = ("seconds", "created", "run")
        return {name: without_times(of) for name, of in fields.items() if name not in left_out}
    return [without_times(of) for of in fields] if isinstance(fields, list) else fields


def test_each_experiment_has_a_command() -> None:
    assert tuple(name for name in COMMANDS if name in SMALL) == EXPERIMENTS


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_result_is_stored_resumed_and_reported_on(name: str, tmp_path: Path) -> None:
    if name == "whatif":
        assert in_this_process(*command_line(RUN), cwd=tmp_path).returncode == 0
    words = command_line(f"{name} {SMALL[name]}")
    done = in_this_process(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [file] = tmp_path.rglob(f"{name}.json")
    stored = json.loads(file.read_text())
    assert {"screen", "tables"} <= stored.keys()
    headline = stored["screen"]["headline"]
    assert headline in done.stdout.splitlines()

    again = in_this_process(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert without_times(json.loads(file.read_text())) == without_times(stored)

    folder = str(file.parent.relative_to(tmp_path))
    reported = in_this_process("report", folder, "--html", "page.html", cwd=tmp_path)
    assert reported.returncode == 0, reported.stderr
    assert reported.stdout.splitlines()[0] == headline
    page = (tmp_path / "page.html").read_text()
    assert headline in page and "Demo mode" in page
    read = read_experiment(file.parent)
    assert read is not None and read.runs
    titles = [grid.title for grid in read.grids]
    whole = in_this_process("report", folder, "--all", cwd=tmp_path, COLUMNS="400").stdout
    assert titles and all(title in whole for title in titles)


def test_options_for_runs_apply_to_the_run_of_an_experiment(tmp_path: Path) -> None:
    words = command_line(f"bias {SMALL['bias']}")
    assert in_this_process(*words, cwd=tmp_path).returncode == 0
    of_run = in_this_process("report", "out", "--table", "leaderboard", cwd=tmp_path)
    assert of_run.returncode == 0, of_run.stderr
    assert "Too few items to test single for bias" not in of_run.stdout


def test_audits_and_reproduced_tables_can_be_called_from_python(tmp_path: Path) -> None:
    evaluate("debate", "demo", aspects=["consistency"], limit=2, out=tmp_path / "run")
    labelled = audit(tmp_path / "run", limit=1)
    assert (labelled.read, labelled.left, labelled.failed) == (1, 1, 0)
    assert labelled.screen().headline == "The turns are labelled by role"
    with pytest.raises(UsageError, match="an audit has no batch"):
        audit(tmp_path / "run", fresh=True)
    table = reproduce("debate-table3", "demo", aspects=["coherence"], limit=4, out=tmp_path / "out")
    assert table.sweep is not None and len(table.sweep.cells) == 2
    assert (tmp_path / "out" / "reproduce.json").exists()
    with pytest.raises(UsageError, match="debate-appendix-h has only printed figures"):
        reproduce("debate-appendix-h")
