"""Test faults around a run (budgets, providers, folders, disks): no hang, no loss."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from jurygraph.eval import evaluate
from jurygraph.eval.journal import call_journal as journal_module
from jurygraph.eval.results import folder as folder_module
from jurygraph.eval.results import run_folder
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.run.calls.call_pipeline import MAX_FAILURES
from jurygraph.state import DataError, UsageError

from .loopback import (
    Answer,
    Broken,
    Failure,
    Hang,
    Noise,
    Provider,
    Raw,
    Request,
    Reset,
    Text,
    Usage,
)
from .processes import Command, pairs, simulated_provider
from .sample_data import read_lines
from .test_call_pipeline import MODEL, PLAIN, dataset, debater, results, scorer

MODEL_OPTIONS = ("--model", "openai:gpt-4o-mini", "--set", "structured=off")
OPTIONS: dict[str, Any] = {"models": MODEL, "settings": PLAIN}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no disk can be mounted: {error}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


class Runs(Command):
    """Runs of ``single`` from the command line on a scripted provider, with six items or more."""

    def __init__(self, provider: Provider, folder: Path) -> None:
        self.provider = provider
        self.folder = folder
        self.out = folder / "out"
        self.data = dataset(folder)

    def run(self, *more: str, out: str | Path = "out") -> int:
        return self("run", "single", "--data", self.data, *MODEL_OPTIONS, "--out", out, *more)


@pytest.fixture
def runs(provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.chdir(tmp_path)
    return Runs(provider, tmp_path)


# Budgets
@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "most"), [("more", 10), ("samre", 13), ("ensemble", 4)])
def test_agents_who_speak_at_the_same_time_keep_to_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Any, most: int
) -> None:
    data = pairs(tmp_path, 3)
    out = tmp_path / "out"
    with simulated_provider(monkeypatch) as provider:
        whole = evaluate(protocol, data, models=MODEL)
        needed = provider.stats()["requests"]
        stopped = evaluate(protocol, data, models=MODEL, out=out, max_calls=most)
        assert (stopped.stopped, len(stopped.failed)) == ("budget", 0)
        assert provider.stats()["requests"] == needed + most
        assert results(evaluate(protocol, data, models=MODEL, out=out)) == results(whole)
        assert provider.stats()["requests"] == 2 * needed


def test_calls_in_flight_are_not_taken_for_spent(provider: Provider, tmp_path: Path) -> None:
    """Sixteen concurrent calls may take more than the budget; their real cost is lower."""
    provider.play(by=lambda request: Text("Fine.\nScore: 4", usage=Usage(input=10, output=5)))
    done = evaluate("single", dataset(tmp_path, 40), **OPTIONS, max_tokens=1500)
    assert (done.stopped, len(done.results)) == (None, 40)


def test_a_spent_budget_is_exit_code_4_and_names_the_way_on(runs: Runs) -> None:
    runs.provider.play(by=scorer)
    assert runs.run("--dry-run", "--max-calls", "2") == 0
    assert (runs.provider.requests, [*runs.folder.iterdir()]) == ([], [runs.data])
    assert runs.run("--max-calls", "2") == 4
    assert "the budget is reached: at most 2 calls\n2 of 6 verdicts are done" in runs.printed
    assert "The same command with --out out resumes with a higher limit." in runs.printed
    assert "the budget may be too small" in runs.printed
    assert runs.run("--max-calls", "6") == 0
    assert len(runs.provider.requests) == 6


def test_what_is_judged_anew_is_estimated_anew(finished: Runs) -> None:
    assert finished.run() == 0
    assert "Estimate: " not in finished.printed
    assert finished.run("--fresh", "--dry-run") == 0
    assert next(
        line.split()[2:4] for line in finished.printed.splitlines() if "single " in line
    ) == [
        "6",
        "6",
    ]


# Providers
HOPELESS = {
    "wrong key": (Failure(401, "Incorrect API key provided."), "check it"),
    "no access": (Failure(403, "Not for you."), "no access to this model"),
    "no such model": (Failure(404, "The model does not exist."), "no such model"),
    "quota spent": (Failure(429, "No more.", code="insufficient_quota"), "waiting does not help"),
}


@pytest.mark.parametrize(("failure", "words"), HOPELESS.values(), ids=HOPELESS)
def test_what_no_call_will_get_past_ends_the_run(runs: Runs, failure: Failure, words: str) -> None:
    runs.provider.play(by=lambda request: failure)
    dataset(runs.folder, 60)
    assert runs.run("--concurrency", "4") == 3
    assert MAX_FAILURES <= len(runs.provider.requests) <= MAX_FAILURES + 4
    assert f"{MAX_FAILURES} calls of openai:gpt-4o-mini in a row failed" in runs.printed
    assert words in runs.printed
    assert "0 of 60 verdicts are done and saved. The same command with --out out" in runs.printed
    assert runs.printed.count("failed: ") == 1, "the same reason is told again and again"
    runs.provider.play(by=scorer)
    assert runs.run() == 0


def test_a_provider_that_is_not_there_ends_the_run(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    dataset(runs.folder, 200)
    assert runs.run("--attempts", "2") == 3
    assert "(given up after 2 attempts)" in runs.printed
    told = [line for line in runs.errors.splitlines() if " warning " in line]
    assert len(told) == 1, "once, and before the first call is given up"
    assert "nothing answers at the address (connection refused): start the server, or" in told[0]
    events = read_lines(runs.out / "log.jsonl")
    assert [event["logger"] for event in events[:3]].count("jurygraph.notices") == 1
    assert "0 of 200 verdicts are done" in runs.printed
    assert len(read_lines(runs.out)) < 30


@pytest.mark.slow
def test_failures_that_alternate_with_replies_or_are_of_single_items_end_no_run(runs: Runs) -> None:
    play = runs.provider.play
    play(by=lambda request: Failure(403, "Flagged.") if "5." in request.user else scorer(request))
    done = evaluate("single", dataset(runs.folder, 100), **OPTIONS, concurrency=1)
    assert (done.stopped, len(done.failed)) == (None, MAX_FAILURES)
    play(by=lambda request: Failure(400, "Too long.", code="context_length_exceeded"))
    done = evaluate("single", dataset(runs.folder, 30), **OPTIONS)
    assert (done.stopped, len(done.failed)) == (None, 30)
    play(by=lambda request: Failure(429, "Slow down.", headers={"Retry-After": "0.01"}))
    dataset(runs.folder, 2)
    assert runs.run("--attempts", "3") == 3
    for words in (
        "lower --concurrency",
        "(given up after 3 attempts)",
        "with --out out retries what failed.",
    ):
        assert words in runs.printed


def test_a_provider_that_wants_decades_ends_the_run_with_all_that_is_kept(runs: Runs) -> None:
    wall = Failure(429, "Slow down.", headers={"Retry-After": "1e9"})
    runs.provider.play(
        by=lambda request: scorer(request) if len(runs.provider.requests) <= 20 else wall
    )
    dataset(runs.folder, 60)
    assert runs.run("--max-wait", "0.3", "--concurrency", "4") == 3
    assert f"{MAX_FAILURES} calls of openai:gpt-4o-mini in a row failed" in runs.printed
    assert "20 of 60 verdicts are done and saved" in runs.printed
    assert "resumes once that is fixed" in runs.printed
    made = len(runs.provider.requests)
    runs.provider.play(by=scorer)
    assert runs.run("--concurrency", "4") == 0
    assert len(runs.provider.requests) == made + 40


@pytest.mark.slow
def test_faults_that_pass_change_nothing(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path)
    undisturbed = evaluate("debate", data, **OPTIONS)
    faults: list[Answer] = [
        Hang(3600), Reset(), Broken(), Broken(coding="gzip"), Noise(),
        Raw("<html>Bad gateway</html>", "text/html", 502), Raw("<html>Welcome</html>", "text/html"),
        Raw(json.dumps({"error": {"message": "Overloaded.", "type": "server_error", "code": 503}})),
        Failure(429, "Slow down.", headers={"Retry-After": "0.02"}), Failure(500),
    ]  # fmt: skip
    numbers = count()

    def stormy(request: Request) -> Answer:
        number = next(numbers)
        return faults[number // 2 % len(faults)] if number % 2 else debater(request)

    provider.play(by=stormy)
    done = evaluate("debate", data, **OPTIONS, timeout=2.0)
    assert results(done) == results(undisturbed)


# Folders
@pytest.fixture
def finished(runs: Runs) -> Runs:
    runs.provider.play(by=scorer)
    assert runs.run() == 0
    return runs


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


FAULTS: dict[str, tuple[str, str | None, str]] = {
    "other settings": ("repair=2", None, "single: repair was 1, is 2. Choose another"),
    "other data": ("repair=1", None, "single: data was mine.jsonl@"),
    "half a manifest": ("repair=1", '{"run": "1', "out/run.json: not JSON"),
    "another manifest": (
        "repair=1",
        '{"signatures": []}',
        "out/run.json: not the manifest of a run",
    ),
    "no manifest": ("repair=1", "", "out holds results.jsonl, but run.json is missing"),
}
"""A setting (default 1), its replacement in the manifest, and the message."""


@pytest.mark.parametrize(("setting", "manifest", "words"), FAULTS.values(), ids=FAULTS)
def test_what_belongs_to_another_run_is_refused_and_can_make_way(
    finished: Runs, setting: str, manifest: str | None, words: str
) -> None:
    lines = (finished.out / "results.jsonl").read_text()
    if manifest:
        (finished.out / "run.json").write_text(manifest)
    elif manifest == "":
        (finished.out / "run.json").unlink()
    elif setting == "repair=1":
        spoil(finished.data, "Number 3", "Number three")
    assert finished.run("--set", setting) == 2
    assert words in finished.errors
    assert "--overwrite" in finished.errors
    assert finished.printed == "", "told only after the estimate"
    assert (finished.out / "results.jsonl").read_text() == lines
    assert len(finished.provider.requests) == 6
    assert finished.run("--set", setting, "--overwrite") == 0
    [earlier] = finished.out.glob("results.*.jsonl")
    assert earlier.read_text() == lines
    assert len(finished.provider.requests) <= 7, "the journal was not used"


def test_a_line_that_is_no_result_is_named_with_the_remedy(finished: Runs) -> None:
    results = finished.out / "results.jsonl"
    spoil(results, '{"item":"i1"', '{"item":')
    assert finished.run() == 2
    assert "out/results.jsonl, line 2: " in finished.errors
    assert "Delete that line" in finished.errors
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join([lines[0], *lines[2:]]))
    assert finished.run() == 0
    assert len(finished.provider.requests) == 6


def test_a_damaged_journal_is_told_before_any_call(finished: Runs) -> None:
    for path in finished.out.glob("journal.sqlite*"):
        path.write_bytes(b"no database" * 1000)
    (finished.out / "results.jsonl").unlink()
    assert finished.run() == 2
    assert "journal.sqlite" in finished.errors
    assert "move it away" in finished.errors
    assert len(finished.provider.requests) == 6


def test_a_folder_in_use_is_left_alone_and_free_after_an_error(finished: Runs) -> None:
    with FileLock(finished.out / "run.lock"):
        assert finished.run() == 2
        assert "in use by another run; wait for it to end" in finished.errors
        with pytest.raises(UsageError, match="in use"):
            evaluate(
                "debate",
                "demo",
                limit=1,
                out=finished.out,
                journal=finished.folder / "shared.sqlite",
            )
    # A notebook stores the last error, and with it every local name of its frames.
    calls = partial(folder_module.shared_calls, finished.out, "sweep", RunConfig())
    with pytest.raises(ZeroDivisionError) as kept, calls():
        _ = 1 / 0
    with calls():
        assert kept.value.__traceback__ is not None


@pytest.mark.parametrize(("out", "words"), [
    ("mine.jsonl", "mine.jsonl is a file: --out takes a folder"),
    ("mine.jsonl/x", "mine.jsonl/x: Not a directory"),
    ("/proc/nowhere", "/proc/nowhere: No such file or directory"),
])  # fmt: skip
def test_a_place_that_cannot_be_a_folder_is_told_before_any_call(
    runs: Runs, out: str, words: str
) -> None:
    assert runs.run(out=out) == 2
    assert words in runs.errors
    assert runs.provider.requests == []


def test_data_that_changes_while_it_is_judged_is_told_as_that(
    provider: Provider, tmp_path: Path
) -> None:
    data = dataset(tmp_path, 3000)

    def meddler(request: Request) -> Answer:
        if len(provider.requests) == 1:
            data.write_text(data.read_text().replace("Number 29", "Number of"))
        return scorer(request)

    provider.play(by=meddler)
    with pytest.raises(DataError, match="has changed since its rows were checked"):
        evaluate("single", data, **OPTIONS, out=tmp_path / "out", concurrency=2)


# Disks
@pytest.mark.slow
def test_a_full_disk_ends_the_run_only(
    runs: Runs, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SQLITE_PATIENCE", 0.5)
    runs.provider.play(by=lambda request: "Fine. " + "x" * 3000 + "\nScore: 4")
    dataset(runs.folder, 300)
    assert runs.run("--grace", "1", "--concurrency", "4", out=small_disk / "out") == 3
    assert runs.errors == ""
    assert "resumes once there is room" in runs.printed or "make room on the disk" in runs.printed
    made = len(runs.provider.requests)
    assert made < 300
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    assert runs.run("--grace", "1", "--concurrency", "4", out=small_disk / "out") == 0
    assert len(runs.provider.requests) <= 300 + 4 + 1, "more calls were lost than were in flight"


def test_unkept_steps_end_a_run(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, planned: object) -> None:
        raise OSError(28, "No space left on device", str(folder / "run.tmp"))

    monkeypatch.setattr(run_folder, "keep_steps", full)
    provider.play(by=lambda request: "1. Read.\n2. Judge.\nScore: 4")
    data = dataset(tmp_path, 5)
    out = tmp_path / "out"
    stopped = evaluate("geval", data, **OPTIONS, out=out, concurrency=1)
    assert (stopped.stopped, len(stopped.failed)) == ("disk", 0)
