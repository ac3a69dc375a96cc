"""Test that merged shards equal the run of one process, and that earlier files are readable."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jurygraph.eval import evaluate, load_dataset
from jurygraph.eval.analysis.loading import load_runs
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.selection import Shard
from jurygraph.eval.journal import records
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.journal.call_journal import Journal
from jurygraph.eval.results.merge import Merged, merge
from jurygraph.eval.results.results import ResultsFile
from jurygraph.eval.run.plan.plan import plan
from jurygraph.state.errors import DataError, UsageError
from typer.testing import CliRunner

from .sample_data import read_lines
from .source_tree import ROOT

RUN: dict[str, Any] = {"data": "demo", "aspects": ["fluency", "relevance"], "limit": 10}


def shards(folder: Path, of: int, **options: Any) -> list[Path]:
    for number in range(1, of + 1):
        evaluate(
            ["debate", "single"], **{**RUN, "out": folder, "shard": f"{number}/{of}", **options}
        )
    return sorted(folder.glob("shard-*"))


def verdicts(folder: Path) -> list[Any]:
    lines = read_lines(folder)
    return [
        (one["item"], one["aspect"], one["protocol"], one["score"], one["calls"]) for one in lines
    ]


def test_every_item_is_in_one_shard_and_groups_stay_together() -> None:
    demo = load_dataset("demo")
    parts = [list(demo.shard(Shard(number, 7))) for number in range(1, 8)]
    assert sorted(item.id for part in parts for item in part) == sorted(item.id for item in demo)
    groups = [{item.group for item in part} for part in parts]
    assert sum(map(len, groups)) == len(set.union(*groups))
    assert max(map(len, groups)) - min(map(len, groups)) <= 1


def test_merged_shards_are_the_run_of_one_process_and_resume_as_it_does(tmp_path: Path) -> None:
    evaluate(["debate", "single"], **RUN, out=tmp_path / "whole")
    first, *others = shards(tmp_path / "parts", 3)
    with (first / "results.jsonl").open("a") as file:
        file.write('{"item": "half a line of a killed process')
    out = tmp_path / "merged"
    missing = CliRunner().invoke(
        app, ["merge", *map(str, others), "--out", str(tmp_path / "unfinished")]
    )
    assert missing.exit_code == 3 and "missing: shard 1/3" in missing.output
    evaluate(["debate", "single"], **RUN, out=tmp_path / "unfinished")
    assert verdicts(tmp_path / "unfinished") == verdicts(tmp_path / "whole")
    assert merge(others, out).missing == (Shard(1, 3),)
    done = merge([first, *others, first], out)
    assert done == Merged(len(verdicts(tmp_path / "whole")), 0, ())
    assert merge([tmp_path / "parts"], tmp_path / "by the folder above") == done
    assert verdicts(out) == verdicts(tmp_path / "whole")
    manifests = [
        json.loads((folder / "run.json").read_text()) for folder in (out, tmp_path / "whole")
    ]
    assert manifests[0]["signatures"] == manifests[1]["signatures"]
    assert "shard" not in manifests[0]
    again = evaluate(["debate", "single"], **RUN, out=out)
    assert len(again.results) == done.judged
    with pytest.raises(UsageError, match="was resumed after a merge"):
        merge([first, *others], out)


def run_id(folder: Path) -> Any:
    return json.loads((folder / "run.json").read_text())["run"]


@pytest.mark.slow
def test_shards_below_one_folder_are_one_run(tmp_path: Path) -> None:
    parts = shards(tmp_path / "parts", 3, journal=f"sqlite:///{tmp_path}/journal.sqlite")
    whole = json.loads((tmp_path / "parts" / "run.json").read_text())
    assert "shard" not in whole
    assert {run_id(part) for part in parts} == {whole["run"]}
    spent = summarize(tmp_path / "journal.sqlite").by_run
    assert list(spent) == [whole["run"]]
    assert spent[whole["run"]].calls == sum(one[-1] for part in parts for one in verdicts(part))
    with pytest.raises(
        UsageError, match=r"parts belongs to another run: single: temperature was not set"
    ):
        shards(tmp_path / "parts", 4, settings={"single": {"temperature": 0.5}})
    with pytest.raises(
        DataError, match=r"in shards; first run jurygraph merge .*parts --out .*parts"
    ):
        load_runs([tmp_path / "parts"])
    merge(parts, tmp_path / "merged")
    assert run_id(tmp_path / "merged") == whole["run"]
    # Restarted shards are one new run.
    earlier = whole["run"]
    for options in (
        {"fresh": True},
        {"overwrite": True, "settings": {"single": {"temperature": 0.5}}},
    ):
        shards(tmp_path / "parts", 3, **options)
        assert {run_id(part) for part in parts} == {run_id(tmp_path / "parts")} != {earlier}
        earlier = run_id(tmp_path / "parts")
    assert len(verdicts(tmp_path / "merged")) == sum(len(verdicts(part)) for part in parts)


def test_a_shard_that_cannot_be_is_refused() -> None:
    for said in ("0/4", "5/4", "4", "1/0", "a/b", "1/4/2", "-1/4", ""):
        with pytest.raises(UsageError, match="give a shard and the number of shards"):
            evaluate("single", "demo", shard=said)
    with pytest.raises(UsageError, match="shard 99/99 of demo is empty"):
        evaluate("single", "demo", shard="99/99")


@pytest.mark.slow
def test_what_does_not_belong_together_is_not_merged(tmp_path: Path) -> None:
    one, two = shards(tmp_path / "parts", 2)
    other, _ = shards(tmp_path / "other", 2, settings={"single": {"temperature": 0.5}})
    third, *_ = shards(tmp_path / "thirds", 3)
    evaluate(["debate", "single"], **RUN, out=tmp_path / "whole")
    out = tmp_path / "merged"
    for folders, told in (
        ([one, other], "not parts of one run: single: temperature"),
        ([one, third], "counts differ"),
        ([one, tmp_path / "whole"], "verdicts are in more than one of the folders"),
    ):
        with pytest.raises(UsageError, match=told):
            merge(folders, out)
        assert not (out / "results.jsonl").exists()
    with pytest.raises(UsageError, match="one of the folders to merge"):
        merge([one, two], one)
    with pytest.raises(UsageError, match="holds another run"):
        merge([one, two], tmp_path / "whole")
    with pytest.raises(DataError, match="holds no run"):
        merge([one, tmp_path / "nothing"], out)
    with pytest.raises(UsageError, match="it is shard 1/2, not shard 2/2"):
        (tmp_path / "parts" / "shard-2-of-2").rename(tmp_path / "kept")
        one.rename(tmp_path / "parts" / "shard-2-of-2")
        evaluate(["debate", "single"], **RUN, out=tmp_path / "parts", shard="2/2")


def test_the_command_speaks_of_the_folder_that_it_was_given(tmp_path: Path) -> None:
    runner = CliRunner()
    out = str(tmp_path / "out")
    command = [
        "run",
        "single",
        "--data",
        "demo",
        "--limit",
        "4",
        "--aspect",
        "fluency",
        "--shard",
        "1/1",
    ]
    command += ["--out", out]
    asked = runner.invoke(
        app,
        [*command, "--review", "always", "--review-queue", str(tmp_path / "q.csv")],
        terminal_width=200,
    )
    assert asked.exit_code == 0, asked.output
    assert "4 questions" in asked.output
    stopped = runner.invoke(app, [*command, "--fresh", "--max-calls", "1"])
    assert stopped.exit_code == 4, stopped.output
    assert f"The same command with --out {out} " in stopped.output


EARLIER = Path(__file__).parent / "earlier"
DEMO: dict[str, Any] = {"data": "demo", "aspects": ["fluency"]}


def signed_as_now(manifest: Path, protocols: list[str], limit: int) -> None:
    """Sign a run as today, since its prompts may have changed; the test is about file formats."""
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
def old_shards(tmp_path: Path) -> Path:
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


def test_an_earlier_run_resumes_without_a_call_and_with_the_verdicts_that_it_lacks(
    run: Path,
) -> None:
    signed_as_now(run / "run.json", ["debate", "geval"], limit=2)
    lines = (run / "results.jsonl").read_bytes()
    calls = summarize(run / "journal.sqlite").spent.calls
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


def test_earlier_shards_are_merged_and_resumed(old_shards: Path, tmp_path: Path) -> None:
    parts = sorted(old_shards.glob("shard-*"))
    lines = [line for part in parts for line in (part / "results.jsonl").read_bytes().splitlines()]
    done = merge([old_shards], tmp_path / "merged")
    assert (done.judged, done.failed, done.missing) == (len(lines), 0, ())
    assert sorted((tmp_path / "merged" / "results.jsonl").read_bytes().splitlines()) == sorted(
        lines
    )
    for manifest in (old_shards / "run.json", *(part / "run.json" for part in parts)):
        signed_as_now(manifest, ["geval"], limit=6)
    before = (parts[0] / "results.jsonl").read_bytes()
    evaluate("geval", **DEMO, limit=6, out=old_shards, shard="1/2")
    assert (parts[0] / "results.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("title", "numbers"),
    [
        ("judge.sh", lambda n: {"SLURM_ARRAY_TASK_ID": str(n), "SLURM_ARRAY_TASK_COUNT": "4"}),
        ("judge.yaml", lambda n: {"JOB_COMPLETION_INDEX": str(n - 1)}),
    ],
)
@pytest.mark.slow
def test_the_documented_jobs_of_schedulers_judge_everything_once(
    title: str, numbers: Callable[[int], dict[str, str]], tmp_path: Path
) -> None:
    """A small scheduler: it starts a job's command with each number, one of them twice."""
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    job = page.partition(f'title="{title}"\n')[2].partition("```")[0]
    if title == "judge.yaml":
        spec = yaml.safe_load(job)["spec"]
        assert spec["completions"] == 4
        (container,) = spec["template"]["spec"]["containers"]
        command = container["command"]
    else:
        assert "#SBATCH --array=1-4" in job
        command = ["bash", "-c", job]
    scripts = str(Path(sys.executable).parent)
    for number in (1, 2, 3, 4, 2):
        env = {**os.environ, **numbers(number), "PATH": f"{scripts}:{os.environ['PATH']}"}
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    (runs,) = (tmp_path / "runs").iterdir()
    merged = merge([runs], tmp_path / "merged")
    whole = evaluate("debate", "demo", aspects=["fluency"], limit=36, out=tmp_path / "whole")
    assert merged == Merged(len(whole.results), 0, ())
    assert verdicts(tmp_path / "merged") == verdicts(tmp_path / "whole")
