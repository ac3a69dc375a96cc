"""A run on Ray is the run of one process, whatever dies on the way."""

import asyncio
import contextlib
import importlib
import importlib.util
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jurygraph.eval import Ray, evaluate, load_dataset
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.engines import ray_engine
from jurygraph.eval.run.engines.ray_engine import check_address, cluster
from jurygraph.eval.run.engines.ray_worker import RunDescription, inspect_host
from jurygraph.eval.run.plan.plan import plan
from jurygraph.graphs import debate
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.errors import UsageError
from sqlalchemy import make_url

from .journal_locations import POSTGRES, schema
from .processes import (
    Simulated,
    command_line,
    in_this_process,
    signalled,
    started,
    until,
    when,
    whole_lines,
)
from .sample_data import read_lines

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)
RUN: dict[str, Any] = {"data": "demo", "aspects": ["fluency", "relevance"], "limit": 12}
IN_FLIGHT = 4
"""Calls that each worker has in flight."""
PASSWORD = "a-word-that-stands-nowhere"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of this module's own, to which this process is connected."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "test-key")
        connection = cluster(None, 4)
        with asyncio.Runner() as runner:
            ray = runner.run(connection.__aenter__())
            yield ray.get_runtime_context().gcs_address
            runner.run(connection.__aexit__(None, None, None))


@pytest.fixture
def journal() -> Iterator[str]:
    with schema() as url:
        place = make_url(f"{url}&application_name={url[-12:]}")
        yield place.set(password=place.password or PASSWORD).render_as_string(hide_password=False)


def lines(folder: Path) -> list[Any]:
    """The results but for seconds, which no two runs share."""
    return [timeless(line) for line in read_lines(folder)]


def timeless(one: Any) -> Any:
    if isinstance(one, dict):
        return {name: timeless(value) for name, value in one.items() if name != "seconds"}
    return [timeless(value) for value in one] if isinstance(one, list) else one


def logged(folder: Path, event: str) -> list[dict[str, Any]]:
    path = folder / "log.jsonl"
    records = [json.loads(line) for line in whole_lines(path)] if path.exists() else []
    return [record for record in records if record["event"] == event]


def working() -> list[int]:
    """The processes of this process's cluster that judge a shard now."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if place.joinpath("cmdline").read_bytes().startswith(b"ray::judge_shard"):
                found += [int(place.name)] if os.getpid() in ancestors(int(place.name)) else []
    return found


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        # The name before the parent may have blanks and brackets.
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


class Runs:
    """The same run in one process and on Ray, with calls that a simulated provider counts."""

    def __init__(self, simulated: Simulated, journal: str, folder: Path) -> None:
        self.provider = simulated
        self.journal = journal
        self.folder = folder
        self.out = folder / "ray"
        model = f"openai:sim?base_url={os.environ['OPENAI_BASE_URL']}&price_in=1&price_out=1"
        run = (
            "run",
            "debate",
            "--data",
            "demo",
            "--aspect",
            "fluency",
            "--limit",
            "60",
            "--model",
            model,
        )
        self.command = (*run, "--set", "structured=off", "--concurrency", str(IN_FLIGHT))
        on_ray = command_line(f"--engine ray --workers 2 --journal '{journal}' --out {self.out}")
        self.on_ray = (*self.command, *on_ray)
        self.calls = 0

    def in_one_process(self) -> list[Any]:
        """Judge in one process, and count the calls that it takes."""
        out = self.folder / "one"
        assert in_this_process(*self.command, "--out", str(out), cwd=self.folder).returncode == 0
        self.calls = self.requests()
        self.provider.reset()
        return lines(out)

    def requests(self) -> int:
        return int(self.provider.stats()["requests"])

    def have_made(self, calls: int) -> Callable[[], bool]:
        return lambda: self.requests() >= calls


@pytest.fixture
def runs(address: str, simulated: Simulated, journal: str, tmp_path: Path) -> Runs:
    return Runs(simulated, journal, tmp_path)


@pytest.mark.slow
@needs_ray
def test_workers_judge_as_one_process_does(address: str, journal: str, tmp_path: Path) -> None:
    evaluate(["debate", "geval"], **RUN, out=tmp_path / "one")
    # There is room for two of them, who take all CPUs.
    engine = Ray(workers=3, cpus_per_worker=2)
    done = evaluate(
        ["debate", "geval"], **RUN, out=tmp_path / "ray", journal=journal, engine=engine
    )
    assert (len(done.results), done.stopped, len(done.failed)) == (48, None, 0)
    planned = [
        [one for one in lines(tmp_path / name) if one["protocol"] == "debate"]
        for name in ("one", "ray")
    ]
    assert planned[0] == planned[1]
    assert {path.name for path in (tmp_path / "ray").iterdir()} == {
        "results.jsonl",
        "run.json",
        "run.lock",
    }
    assert sorted(one["aspect"] for one in done.manifest["steps"]) == ["fluency", "relevance"]
    asked = [
        one["item"] for one in lines(tmp_path / "ray") if one["transcript"][0]["agent"] == "planner"
    ]
    assert asked == [done.results[0].item] * 2, (
        "the first item asks for the steps, and all others have them"
    )
    more = {**RUN, "limit": 13}
    again = evaluate(
        ["debate", "geval"], **more, out=tmp_path / "ray", journal=journal, engine=engine
    )
    assert len(again.results) == 52, "a run with more items goes on, with fewer items than workers"
    assert sorted(again.manifest["steps"], key=str) == sorted(done.manifest["steps"], key=str)
    password = make_url(journal).password
    session = importlib.import_module("ray._private.worker")._global_node.get_session_dir_path()
    written = [
        path for place in (tmp_path, Path(session)) for path in place.rglob("*") if path.is_file()
    ]
    assert len(written) > 10
    assert password
    assert [path for path in written if password.encode() in path.read_bytes()] == []


@pytest.mark.slow
@needs_ray
def test_workers_and_sessions_of_the_journal_may_be_killed(runs: Runs) -> None:
    import psycopg

    one = runs.in_one_process()
    killed = []

    def kill_a_worker() -> None:
        until(working)
        killed.append(working()[0])
        os.kill(killed[0], signal.SIGKILL)

    def end_all_sessions() -> None:
        with psycopg.connect(POSTGRES, autocommit=True) as server:
            name = make_url(runs.journal).query["application_name"]
            ended = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s"
            )
            killed.append(len(server.execute(ended, [name]).fetchall()))

    when(runs.have_made(runs.calls // 4), kill_a_worker)
    when(runs.have_made(runs.calls // 2), end_all_sessions)
    done = in_this_process(*runs.on_ray, cwd=runs.folder)
    assert done.returncode == 0, done.stderr
    assert lines(runs.out) == one
    assert len(killed) == 2
    assert killed[1] >= 2, "the driver and at least one worker had sessions"
    assert runs.calls <= runs.requests() <= runs.calls + IN_FLIGHT
    workers = {record["pid"] for record in logged(runs.out, "worker started")}
    assert workers
    assert killed[0] not in workers, "another worker judged its shard, and handed over its log"
    assert f"{runs.calls} calls" in done.stdout
    assert "raylet" not in done.stdout + done.stderr, "Ray's own words are not shown"


@pytest.mark.slow
@needs_ray
def test_a_run_that_spent_its_budget_or_was_interrupted_or_killed_goes_on(
    runs: Runs, address: str
) -> None:
    one = runs.in_one_process()
    most = runs.calls // 4
    done = in_this_process(*runs.on_ray, "--max-calls", str(most), cwd=runs.folder)
    assert done.returncode == 4, done.stderr
    assert most - 2 * IN_FLIGHT <= runs.requests() <= most, "the budget was passed"
    kept = lines(runs.out)
    assert 0 < len(kept) < len(one)
    assert [result for result in one if result in kept] == kept
    signalled(runs.have_made(runs.calls // 3), signal.SIGINT)
    done = in_this_process(*runs.on_ray, cwd=runs.folder)
    assert done.returncode == 130, done.stderr
    assert len(kept) < len(lines(runs.out)) < len(one)
    made = runs.requests()
    assert f"{made} calls" in done.stdout, "calls in flight are let finish, and kept"
    with started(*runs.on_ray, "--engine-address", address, cwd=runs.folder) as process:
        # Half of the interrupted run's remaining calls, however many were in flight.
        until(runs.have_made((made + runs.calls) // 2), process)
        process.kill()
    done = in_this_process(*runs.on_ray, cwd=runs.folder)
    assert done.returncode == 0, done.stderr
    assert lines(runs.out) == one
    assert runs.calls <= runs.requests() <= runs.calls + 2 * IN_FLIGHT


class DyingWorkers:
    """Stands for Ray: workers in this process, all of whom die at some items."""

    class exceptions:  # noqa: N801, this is the name of Ray's module
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            pass

    def __init__(self, *poisoned: str) -> None:
        self.poisoned = poisoned
        self.deaths = 0

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1}

    def remote(self, task: Callable[..., Any]) -> Any:
        async def carry_out(about: Any, journal: str, jobs: Any, part: str) -> Any:
            if any(job[1].id in self.poisoned for job in jobs):
                self.deaths += 1
                raise self.exceptions.RayError("The worker died unexpectedly.")
            return await asyncio.to_thread(task, about, journal, jobs, part)

        def start(*given: Any) -> "asyncio.Task[Any]":
            return asyncio.create_task(carry_out(*given))

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=start))

    def cancel(self, task: "asyncio.Task[Any]", force: bool) -> None:
        task.cancel()


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Callable[..., DyingWorkers]:
    def of_items(*poisoned: str) -> DyingWorkers:
        workers = DyingWorkers(*poisoned)

        @contextlib.asynccontextmanager
        async def cluster_of_this(*_: Any) -> AsyncIterator[DyingWorkers]:
            yield workers

        monkeypatch.setattr(ray_engine, "cluster", cluster_of_this)
        monkeypatch.setattr(ray_engine, "check_hosts", lambda *_: None)
        monkeypatch.setattr(ray_engine, "load_ray", lambda: workers)
        return workers

    return of_items


def test_a_verdict_at_which_workers_die_is_set_aside_with_its_error(
    dying: Callable[..., DyingWorkers], journal: str, tmp_path: Path
) -> None:
    ids = [item.id for item in load_dataset("demo").items[:12]]
    workers = dying(ids[7])
    options: dict[str, Any] = {**RUN, "out": tmp_path / "ray", "journal": journal}
    done = evaluate("debate", **options, engine=Ray(workers=1))
    assert (len(done.results), done.stopped) == (24, None)
    assert [(one.item, one.aspect) for one in done.failed] == [
        (ids[7], aspect) for aspect in RUN["aspects"]
    ]
    assert "3 workers died while they judged it: The worker died unexpectedly." in str(
        done.failed[0].error
    )
    assert workers.deaths < len(ids)
    evaluate("debate", **RUN, out=tmp_path / "one")
    others = [line for line in lines(tmp_path / "one") if line["item"] != ids[7]]
    assert [line for line in lines(tmp_path / "ray") if line["item"] != ids[7]] == others
    # The next start tries it again.
    dying()
    again = evaluate("debate", **options, engine=Ray(workers=1))
    assert not again.failed
    assert lines(tmp_path / "ray") == lines(tmp_path / "one")


def test_a_run_ends_where_workers_die_at_many_verdicts(
    dying: Callable[..., DyingWorkers], journal: str, tmp_path: Path
) -> None:
    dying(*(item.id for item in load_dataset("demo").items))
    options: dict[str, Any] = {**RUN, "out": tmp_path / "ray", "journal": journal}
    done = evaluate("debate", **options, engine=Ray(workers=1))
    assert (len(done.failed), done.stopped) == (ray_engine.MOST_SET_ASIDE, "worker")


@pytest.mark.slow
@needs_ray
def test_a_worker_without_the_key_is_refused_first(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_THE_DRIVER", "here")
    model = f"openai:sim?base_url={os.environ['OPENAI_BASE_URL']}&key_env=KEY_OF_THE_DRIVER"
    command = [*runs.on_ray]
    command[command.index("--model") + 1] = model
    done = in_this_process(*command, cwd=runs.folder)
    assert done.returncode == 2
    # On a busy machine, a line before it says that Ray's workers start.
    [problem] = [
        line for line in done.stderr.splitlines() if not line.startswith("waiting for Ray")
    ]
    assert "cannot judge: " in problem
    assert "KEY_OF_THE_DRIVER" in problem
    assert runs.requests() == 0


GOOD = {"journal": "postgresql://127.0.0.1:1/x", "engine": Ray(workers=2), "out": "out"}


@needs_ray
@pytest.mark.parametrize(("options", "message"), [
    *(({"journal": place}, "share one journal") for place in (None, "j.sqlite", "sqlite:///j.sqlite")),
    ({"out": None}, "a folder"), ({"shard": "1/2"}, "--shard only works with one process"),
    ({"batch": True, "models": "openai:gpt-4o-mini"}, "--batch only works with one process"),
    ({"protocols": debate.build()}, "debate is a graph"),
    ({"models": ScriptedModel(script=["Score: 3"])}, "a chat model object cannot be sent"),
], ids=lambda value: ",".join(value) if isinstance(value, dict) else "")  # fmt: skip
def test_what_cannot_be_shared_is_refused_before_any_call(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    given = {**GOOD, **options}
    with pytest.raises(UsageError, match=message) as refused:
        evaluate(given.pop("protocols", "debate"), "demo", limit=1, **given)
    assert "\n" not in str(refused.value)


def test_engines_that_cannot_be_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unused_tcp_port: int
) -> None:
    with pytest.raises(
        UsageError, match=f"no Ray cluster at 127.0.0.1:{unused_tcp_port}: .*refused"
    ):
        check_address(f"127.0.0.1:{unused_tcp_port}")
    run = ("run", "debate", "--data", "demo", "--out", str(tmp_path / "out"))
    for options, message in (
        (("--workers", "2"), "add --engine ray"),
        (("--engine", "dask"), "unknown engine 'dask'"),
        (("--engine", "ray", "--engine-address", "ray://host:10001"), "Ray's client cannot"),
    ):
        done = in_this_process(*run, *options, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    done = in_this_process(*run, "--engine", "ray", cwd=tmp_path)
    assert (done.returncode, 'pip install "jurygraph[ray]"' in done.stderr) == (2, True)


def test_hosts_that_would_judge_otherwise_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    prepared = plan("debate", "demo", limit=1, models={"*": "openai:gpt-4o-mini"})
    here = RunDescription.from_plan(prepared, prepared.manifest, RunConfig())
    for package, version in here.versions.items():
        there = replace(here, versions={**here.versions, package: "0"})
        assert f"it has {package} {version}, but the driver has 0" in inspect_host(there, "")
    other = {
        **prepared.manifest,
        "signatures": plan("debate", "demo", limit=1).manifest["signatures"],
    }
    assert "differs from the driver's: debate: models" in inspect_host(
        replace(here, manifest=other), ""
    )
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in inspect_host(here, "")
