"""What goes wrong around a run: budgets, providers, folders, disks. No hang, no loss, a clear word."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from jurygraph.eval import evaluate
from jurygraph.eval.calls.call_pipeline import MAX_FAILURES
from jurygraph.eval.journal import call_journal as journal_module
from jurygraph.eval.results import folder as folder_module
from jurygraph.eval.results.config import RunConfig
from jurygraph.state import DataError, UsageError

from .loopback import Answer, Broken, Failure, Hang, Noise, Provider, Raw, Request, Reset, Text, Usage
from .processes import Command, pairs, simulated_provider
from .test_call_pipeline import MODEL, PLAIN, dataset, debater, results, scorer

MODEL_OPTIONS = ("--model", "openai:gpt-4o-mini", "--set", "structured=off")
OPTIONS: dict[str, Any] = {"models": MODEL, "settings": PLAIN}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
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


def arguments(data: Path, *more: str, protocol: str = "single", out: str = "out") -> list[str]:
    return ["run", protocol, "--data", str(data), *MODEL_OPTIONS, "--out", out, *more]


# --- budgets ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "most"), [("more", 10), ("samre", 13), ("ensemble", 4)])
def test_agents_who_speak_at_the_same_time_keep_to_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: Any, most: int
) -> None:
    data, out = pairs(tmp_path, 3), tmp_path / "out"
    with simulated_provider(monkeypatch) as provider:
        whole = evaluate(protocol, data, models=MODEL)
        needed = provider.stats()["requests"]
        stopped = evaluate(protocol, data, models=MODEL, out=out, max_calls=most)
        assert (stopped.stopped, len(stopped.failed)) == ("budget", 0)
        assert provider.stats()["requests"] == needed + most
        assert results(evaluate(protocol, data, models=MODEL, out=out)) == results(whole)
        assert provider.stats()["requests"] == 2 * needed


def test_calls_in_flight_are_not_taken_for_spent(provider: Provider, tmp_path: Path) -> None:
    """What sixteen calls at the same time might take is more than the budget; what they do take is not."""
    provider.play(by=lambda request: Text("Fine.\nScore: 4", usage=Usage(input=10, output=5)))
    done = evaluate("single", dataset(tmp_path, 40), **OPTIONS, max_tokens=1500)
    assert (done.stopped, len(done.results)) == (None, 40)


def test_a_spent_budget_is_exit_code_4_and_names_the_way_on(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    provider.play(by=scorer)
    data = dataset(tmp_path)
    assert command(*arguments(data, "--dry-run", "--max-calls", "2")) == 0
    assert (provider.requests, [*tmp_path.iterdir()]) == ([], [data])
    assert command(*arguments(data, "--max-calls", "2")) == 4
    assert "the budget is reached: at most 2 calls\n2 of 6 verdicts are done" in command.printed
    assert "The same command with --out out resumes with a higher limit." in command.printed
    assert "the budget may be too small" in command.printed
    assert command(*arguments(data, "--max-calls", "6")) == 0
    assert len(provider.requests) == 6


def test_what_is_judged_anew_is_estimated_anew(provider: Provider, tmp_path: Path, command: Command) -> None:
    provider.play(by=scorer)
    data = dataset(tmp_path)
    assert command(*arguments(data)) == 0
    assert command(*arguments(data)) == 0
    assert "Estimate: " not in command.printed
    assert command(*arguments(data, "--fresh", "--dry-run")) == 0
    assert next(line.split()[2:4] for line in command.printed.splitlines() if "single " in line) == ["6", "6"]


# --- providers ----------------------------------------------------------------------------------------------------


HOPELESS = {
    "wrong key": (Failure(401, "Incorrect API key provided."), "check it"),
    "no access": (Failure(403, "Not for you."), "no access to this model"),
    "no such model": (Failure(404, "The model does not exist."), "no such model"),
    "quota spent": (Failure(429, "No more.", code="insufficient_quota"), "waiting does not help"),
}


@pytest.mark.parametrize(("failure", "words"), HOPELESS.values(), ids=HOPELESS)
def test_what_no_call_will_get_past_ends_the_run(
    provider: Provider, tmp_path: Path, command: Command, failure: Failure, words: str
) -> None:
    provider.play(by=lambda request: failure)
    data = dataset(tmp_path, 60)
    assert command(*arguments(data, "--concurrency", "4")) == 3
    assert MAX_FAILURES <= len(provider.requests) <= MAX_FAILURES + 4
    assert f"{MAX_FAILURES} calls of openai:gpt-4o-mini in a row failed" in command.printed
    assert words in command.printed
    assert "0 of 60 verdicts are done and saved. The same command with --out out" in command.printed
    assert command.printed.count("failed: ") == 1, "the same reason is told again and again"
    provider.play(by=scorer)
    assert command(*arguments(data)) == 0


def test_a_provider_that_is_not_there_ends_the_run(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    assert command(*arguments(dataset(tmp_path, 200), "--attempts", "2")) == 3
    assert "(given up after 2 attempts)" in command.printed
    told = [line for line in command.errors.splitlines() if " warning " in line]
    assert len(told) == 1, "once, and before the first call is given up"
    assert (
        "nothing answers at the address (connection refused): start the server, or correct base_url"
        in told[0]
    )
    events = [json.loads(line) for line in (tmp_path / "out" / "log.jsonl").read_text().splitlines()]
    assert [event["logger"] for event in events[:3]].count("jurygraph.notices") == 1
    assert "0 of 200 verdicts are done" in command.printed
    assert len((tmp_path / "out" / "results.jsonl").read_text().splitlines()) < 30


def test_failures_that_alternate_with_replies_or_are_of_single_items_end_no_run(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    provider.play(by=lambda request: Failure(403, "Flagged.") if "5." in request.user else scorer(request))
    done = evaluate("single", dataset(tmp_path, 100), **OPTIONS, concurrency=1)
    assert (done.stopped, len(done.failed)) == (None, MAX_FAILURES)
    provider.play(by=lambda request: Failure(400, "Too long.", code="context_length_exceeded"))
    done = evaluate("single", dataset(tmp_path, 30), **OPTIONS)
    assert (done.stopped, len(done.failed)) == (None, 30)
    provider.play(by=lambda request: Failure(429, "Slow down.", headers={"Retry-After": "0.01"}))
    assert command(*arguments(dataset(tmp_path, 2), "--attempts", "3")) == 3
    for words in (
        "lower --concurrency",
        "(given up after 3 attempts)",
        "with --out out retries what failed.",
    ):
        assert words in command.printed


def test_a_provider_that_wants_decades_ends_the_run_with_all_that_is_kept(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    provider.play(
        by=lambda request: (
            scorer(request)
            if len(provider.requests) <= 20
            else Failure(429, "Slow down.", headers={"Retry-After": "1e9"})
        )
    )
    assert command(*arguments(dataset(tmp_path, 60), "--max-wait", "0.3", "--concurrency", "4")) == 3
    assert f"{MAX_FAILURES} calls of openai:gpt-4o-mini in a row failed" in command.printed
    assert "20 of 60 verdicts are done and saved" in command.printed
    assert "resumes once that is fixed" in command.printed
    made = len(provider.requests)
    provider.play(by=scorer)
    assert command(*arguments(dataset(tmp_path, 60), "--concurrency", "4")) == 0
    assert len(provider.requests) == made + 40


def test_a_word_of_decades_among_refusals_does_not_stop_a_run(provider: Provider, tmp_path: Path) -> None:
    numbers = count()

    def refuses_at_first(request: Request) -> Answer:
        if next(numbers) < 3:
            return Failure(429, "Slow down.", headers={"Retry-After": "1e9"})
        return scorer(request)

    provider.play(by=refuses_at_first)
    done = evaluate("single", dataset(tmp_path), **OPTIONS, max_wait=3.0, concurrency=1)
    assert (done.stopped, done.failed) == (None, ())


def test_faults_that_pass_change_nothing(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=debater)
    data = dataset(tmp_path)
    undisturbed = evaluate("debate", data, **OPTIONS)
    faults: list[Answer] = [
        Hang(3600),
        Reset(),
        Broken(),
        Broken(coding="gzip"),
        Noise(),
        Raw("<html>Bad gateway</html>", "text/html", 502),
        Raw("<html>Welcome</html>", "text/html"),
        Raw(json.dumps({"error": {"message": "Overloaded.", "type": "server_error", "code": 503}})),
        Failure(429, "Slow down.", headers={"Retry-After": "0.02"}),
        Failure(500),
    ]
    numbers = count()

    def stormy(request: Request) -> Answer:
        number = next(numbers)
        return faults[number // 2 % len(faults)] if number % 2 else debater(request)

    provider.play(by=stormy)
    done = evaluate("debate", data, **OPTIONS, timeout=2.0)
    assert results(done) == results(undisturbed)


# --- folders ------------------------------------------------------------------------------------------------------


@pytest.fixture
def finished(provider: Provider, tmp_path: Path, command: Command) -> Path:
    provider.play(by=scorer)
    assert command(*arguments(dataset(tmp_path))) == 0
    return tmp_path / "out"


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


FAULTS: dict[str, tuple[str, str | None, str]] = {
    "other settings": ("repair=2", None, "single: repair was 1, is 2. Choose another"),
    "other data": ("repair=1", None, "single: data was mine.jsonl@"),
    "half a manifest": ("repair=1", '{"run": "1', "out/run.json: not JSON"),
    "another manifest": ("repair=1", '{"signatures": []}', "out/run.json: not the manifest of a run"),
    "no manifest": ("repair=1", "", "out holds results.jsonl, but run.json is missing"),
}
"""A setting (1 is the default), what stands in the manifest instead, and what the user is told."""


@pytest.mark.parametrize(("setting", "manifest", "words"), FAULTS.values(), ids=FAULTS)
def test_what_belongs_to_another_run_is_refused_and_can_make_way(
    finished: Path, provider: Provider, command: Command, setting: str, manifest: str | None, words: str
) -> None:
    lines = (finished / "results.jsonl").read_text()
    if manifest:
        (finished / "run.json").write_text(manifest)
    elif manifest == "":
        (finished / "run.json").unlink()
    elif setting == "repair=1":
        spoil(finished.parent / "mine.jsonl", "Number 3", "Number three")
    run = arguments(finished.parent / "mine.jsonl", "--set", setting)
    made = len(provider.requests)
    assert command(*run) == 2
    assert words in command.errors
    assert "--overwrite" in command.errors
    assert command.printed == "", "told only after the estimate"
    assert (finished / "results.jsonl").read_text() == lines
    assert len(provider.requests) == made
    assert command(*run, "--overwrite") == 0
    [earlier] = finished.glob("results.*.jsonl")
    assert earlier.read_text() == lines
    assert len(provider.requests) <= made + 1, "the journal was not used"


def test_a_line_that_is_no_result_is_named_with_the_remedy(
    finished: Path, provider: Provider, command: Command
) -> None:
    spoil(finished / "results.jsonl", '{"item":"i1"', '{"item":')
    run = arguments(finished.parent / "mine.jsonl")
    assert command(*run) == 2
    assert "out/results.jsonl, line 2: " in command.errors
    assert "Delete that line" in command.errors
    lines = (finished / "results.jsonl").read_text().splitlines(keepends=True)
    (finished / "results.jsonl").write_text("".join([lines[0], *lines[2:]]))
    assert command(*run) == 0
    assert len(provider.requests) == 6


def test_a_damaged_journal_is_told_before_any_call(
    finished: Path, provider: Provider, command: Command
) -> None:
    for path in finished.glob("journal.sqlite*"):
        path.write_bytes(b"no database" * 1000)
    (finished / "results.jsonl").unlink()
    assert command(*arguments(finished.parent / "mine.jsonl")) == 2
    assert "journal.sqlite" in command.errors
    assert "move it away" in command.errors
    assert len(provider.requests) == 6


def test_a_folder_in_use_is_left_alone_and_free_after_an_error(finished: Path, command: Command) -> None:
    with FileLock(finished / "run.lock"):
        assert command(*arguments(finished.parent / "mine.jsonl")) == 2
        assert "in use by another run; wait for it to end" in command.errors
        with pytest.raises(UsageError, match="in use"):
            evaluate("debate", "demo", limit=1, out=finished, journal=finished.parent / "shared.sqlite")
    # A notebook keeps the last error, and with it every local name of the frames that it went through.
    with pytest.raises(ZeroDivisionError) as kept, folder_module.shared_calls(finished, "sweep", RunConfig()):
        _ = 1 / 0
    with folder_module.shared_calls(finished, "sweep", RunConfig()):
        assert kept.value.__traceback__ is not None


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("mine.jsonl", "mine.jsonl is a file: --out takes a folder"),
        ("mine.jsonl/x", "mine.jsonl/x: Not a directory"),
        ("/proc/nowhere", "/proc/nowhere: No such file or directory"),
    ],
)
def test_a_place_that_cannot_be_a_folder_is_told_before_any_call(
    provider: Provider, tmp_path: Path, command: Command, out: str, words: str
) -> None:
    assert command(*arguments(dataset(tmp_path), out=out)) == 2
    assert words in command.errors
    assert provider.requests == []


def test_data_that_changes_while_it_is_judged_is_told_as_that(provider: Provider, tmp_path: Path) -> None:
    data = dataset(tmp_path, 3000)

    def meddler(request: Request) -> Answer:
        if len(provider.requests) == 1:
            data.write_text(data.read_text().replace("Number 29", "Number of"))
        return scorer(request)

    provider.play(by=meddler)
    with pytest.raises(DataError, match="has changed since its rows were checked"):
        evaluate("single", data, **OPTIONS, out=tmp_path / "out", concurrency=2)


# --- disks --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_full_disk_ends_the_run_and_loses_nothing(
    provider: Provider, small_disk: Path, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SQLITE_PATIENCE", 0.5)
    provider.play(by=lambda request: "Fine. " + "x" * 3000 + "\nScore: 4")
    run = arguments(dataset(tmp_path, 300), "--grace", "1", "--concurrency", "4", out=str(small_disk / "out"))
    assert command(*run) == 3
    assert command.errors == ""
    assert "resumes once there is room" in command.printed or "make room on the disk" in command.printed
    made = len(provider.requests)
    assert made < 300
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    assert command(*run) == 0
    assert len(provider.requests) <= 300 + 4 + 1, "more calls were lost than were in flight"


def test_steps_that_cannot_be_kept_end_the_run(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, planned: object) -> None:
        raise OSError(28, "No space left on device", str(folder / "run.tmp"))

    monkeypatch.setattr(folder_module, "keep_steps", full)
    provider.play(by=lambda request: "1. Read.\n2. Judge.\nScore: 4")
    data, out = dataset(tmp_path, 5), tmp_path / "out"
    stopped = evaluate("geval", data, **OPTIONS, out=out, concurrency=1)
    assert (stopped.stopped, len(stopped.failed)) == ("disk", 0)
