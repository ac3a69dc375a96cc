"""Test interrupted runs: they lose no finished work and continue."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from jurygraph.eval import evaluate
from jurygraph.eval.cli import run as run_command
from jurygraph.eval.results.results import ResultsFile

from .loopback import Answer, Failure, Hang, Provider, Request
from .processes import HANG_GUARD, Command, Simulated, child, pairs, signalled, started, until, when
from .test_batch_api import lines
from .test_call_pipeline import MODEL, PLAIN, dataset, debater, most_repeated, results, scorer

MODEL_OPTIONS = ("--model", "openai:gpt-4o-mini", "--set", "structured=off")


def arguments(protocol: str, data: Path, out: Path, *more: str) -> list[str]:
    return ["run", protocol, "--data", str(data), *MODEL_OPTIONS, "--out", str(out), *more]


def kept(out: Path) -> int:
    with closing(sqlite3.connect(out / "journal.sqlite")) as journal:
        return int(journal.execute("SELECT count(*) FROM jurygraph_calls").fetchone()[0])


def slowly(answer: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
    """So that there are always calls in flight."""

    def script(request: Request) -> Answer:
        time.sleep(0.01)
        return answer(request)

    return script


def is_stopping(out: Path, event: str = '"stopping"') -> bool:
    return (out / "log.jsonl").exists() and event in (out / "log.jsonl").read_text()


@pytest.mark.slow
def test_a_signal_lets_calls_finish(provider: Provider, tmp_path: Path, command: Command) -> None:
    provider.play(by=slowly(debater))
    data = dataset(tmp_path, 40)
    out = tmp_path / "out"
    signalled(lambda: len(provider.requests) >= 30, signal.SIGTERM)
    assert command(*arguments("debate", data, out, "--concurrency", "4")) == 130
    assert command.errors == ""
    made = len(provider.requests)
    assert kept(out) == made, "a call in flight was not let finish"
    assert f"total usage: {made} calls" in command.printed
    assert "stopped by SIGTERM\n" in command.printed
    assert (
        f"of 40 verdicts are done and saved. The same command with --out {out} resumes."
        in command.printed
    )
    provider.play(by=debater)
    whole = evaluate("debate", data, models=MODEL, settings=PLAIN, out=out)
    assert most_repeated(provider) == 1
    assert results(whole) == results(evaluate("debate", data, models=MODEL, settings=PLAIN))


@pytest.mark.parametrize("grace", ["3600", "0.05"])
def test_calls_that_hang_are_cut_short_by_a_second_signal_or_when_their_time_is_up(
    provider: Provider, tmp_path: Path, command: Command, grace: str
) -> None:
    provider.play(by=lambda request: Hang(3600) if "Number 9." in request.user else scorer(request))
    data = dataset(tmp_path, 10)
    out = tmp_path / "out"
    signalled(lambda: len(provider.requests) == 10 and kept(out) == 9, signal.SIGINT)
    if grace == "3600":
        signalled(lambda: is_stopping(out), signal.SIGINT)
    assert command(*arguments("single", data, out, "--grace", grace)) == 130
    assert "9 of 10 verdicts are done and saved" in command.printed


def test_a_call_between_attempts_is_not_awaited(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    provider.play(by=lambda request: Failure(429, "Slow down.", headers={"Retry-After": "3000"}))
    signalled(lambda: is_stopping(tmp_path / "out", "another attempt"), signal.SIGINT)
    assert (
        command(*arguments("single", dataset(tmp_path), tmp_path / "out", "--grace", "3600")) == 130
    )
    assert "0 of 6 verdicts are done" in command.printed
    assert "failed" not in command.printed.replace(" failed ", "")


def test_a_call_that_queues_is_not_waited_for(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    provider.play(by=scorer)
    data = dataset(tmp_path)
    out = tmp_path / "out"
    signalled(lambda: len(provider.requests) == 1, signal.SIGTERM)
    # A queued call would wait for a day.
    slow = ("--grace", "100000", "--requests-per-minute", "0.0007")
    assert command(*arguments("single", data, out, *slow)) == 130
    assert len(provider.requests) == kept(out) == 1


def test_a_run_that_ends_repeats_no_attempt(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    gate = threading.Event()

    def fails_late(request: Request) -> Answer:
        gate.wait(HANG_GUARD)
        return Failure(500, "Out of order.")

    provider.play(by=fails_late)
    data = dataset(tmp_path, 1)
    out = tmp_path / "out"
    signalled(lambda: len(provider.requests) == 1, signal.SIGINT)
    when(lambda: is_stopping(out), gate.set)
    assert command(*arguments("single", data, out, "--grace", "3600")) == 130
    assert len(provider.requests) == 1
    assert "0 of 1 verdicts are done" in command.printed


def comes_to_rest(provider: Provider) -> bool:
    """Return whether no more requests come: all replies in flight wait to be written."""
    before = len(provider.requests)
    time.sleep(0.5)
    return len(provider.requests) == before


def test_a_journal_that_is_held_up_is_awaited(
    provider: Provider, tmp_path: Path, command: Command
) -> None:
    """Replies that have come are written before the run ends, also those of cancelled calls."""
    provider.play(by=scorer)
    data = dataset(tmp_path, 30)
    out = tmp_path / "out"

    def hold_up() -> None:
        until(lambda: len(provider.requests) >= 5)
        with closing(sqlite3.connect(out / "journal.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            until(lambda: comes_to_rest(provider))
            os.kill(os.getpid(), signal.SIGINT)
            until(lambda: is_stopping(out))

    holding = threading.Thread(target=hold_up)
    holding.start()
    assert command(*arguments("single", data, out, "--grace", "0.01", "--concurrency", "4")) == 130
    holding.join()
    assert kept(out) == len(provider.requests) < 30


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_the_first_call_nothing_has_begun(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(run_command, "estimate", lambda *_, **__: os.kill(os.getpid(), number))
    monkeypatch.chdir(tmp_path)
    assert command("run", "debate", "--data", "demo", "--out", "out", "--dry-run") == 130
    assert command.errors == "interrupted before the first call; nothing was started\n"
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


AT_AN_IMPORT = """
import os, sys
module, number, *sys.argv[1:] = sys.argv[1:]

class Signalling:
    def find_spec(self, name, *_):
        if name == module:
            print("signalled", flush=True)
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Signalling())
from jurygraph.eval.cli.start import main
main()
"""
IMPORTED = ("typer", "jurygraph.state", "jurygraph.eval.cli.run", "jurygraph.graphs.debate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "number"), list(zip(IMPORTED, cycle([signal.SIGINT, signal.SIGTERM]), strict=False))
)
def test_a_signal_ends_a_starting_program_well(
    tmp_path: Path, number: signal.Signals, module: str
) -> None:
    arguments = ("run", "debate", "--data", "demo", "--out", "out")
    command = (sys.executable, "-c", AT_AN_IMPORT, module, str(int(number)), *arguments)
    with child(*command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        printed, errors = process.communicate(timeout=HANG_GUARD)
    assert (process.returncode, printed) == (130, "signalled\n"), errors
    told = (
        f"interrupted by {number.name}; no run was in progress",
        "interrupted before the first call; nothing was started",
    )
    assert errors.strip() in told
    assert list(tmp_path.iterdir()) == []


def test_when_all_is_judged_there_is_nothing_to_interrupt_and_while_tables_are_printed_results_are_safe(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = ResultsFile.finish
    out = tmp_path / "out"

    def late(self: ResultsFile, keys: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return finish(self, keys)

    with monkeypatch.context() as patch:
        patch.setattr(ResultsFile, "finish", late)
        assert command("run", "debate", "--data", "demo", "--limit", "1", "--out", out) == 0
    assert "stopped by" not in command.printed
    monkeypatch.setattr(
        run_command, "print_evaluation", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
    )
    assert command("run", "debate", "--data", "demo", "--limit", "1", "--out", out) == 130
    assert "interrupted; finished results are saved." in command.errors
    assert len((out / "results.jsonl").read_text().splitlines()) == 4


def in_a_script(judge: Callable[[], Any]) -> None:
    judge()


def in_a_running_loop(judge: Callable[[], Any]) -> None:
    async def cell() -> None:
        judge()

    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(cell())
    finally:
        loop.close()


@pytest.mark.parametrize("where", [in_a_script, in_a_running_loop])
def test_ctrl_c_in_evaluate_leaves_nothing_running(
    provider: Provider, tmp_path: Path, where: Callable[[Callable[[], Any]], None]
) -> None:
    provider.play(by=slowly(debater))
    data = dataset(tmp_path, 24)
    out = tmp_path / "out"
    signalled(lambda: len(provider.requests) >= 20, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        where(
            lambda: evaluate("debate", data, models=MODEL, settings=PLAIN, out=out, concurrency=4)
        )
    with FileLock(out / "run.lock", blocking=False):
        """The run does not go on in the background."""
    finished = kept(out)
    assert finished >= len(provider.requests) - 4
    provider.play(by=debater)
    whole = evaluate("debate", data, models=MODEL, settings=PLAIN, out=out)
    assert len(whole.results) == 24
    assert most_repeated(provider) <= 2
    assert len(provider.requests) <= kept(out) + 4


SCRIPT = """
import sys
from jurygraph.eval import evaluate
evaluate("debate", sys.argv[1], models={"*": "openai:gpt-4o-mini"}, settings={"structured": "off"}, out="out")
"""


@pytest.mark.slow
def test_a_script_ends_on_ctrl_c(provider: Provider, tmp_path: Path) -> None:
    provider.play(
        by=lambda request: Hang(3600) if len(provider.requests) > 10 else debater(request)
    )
    data = dataset(tmp_path, 30)
    command = (sys.executable, "-c", SCRIPT, str(data))
    with child(*command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        until(lambda: len(provider.requests) > 20, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_GUARD)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


ALL_PROTOCOLS = {
    "scores": (
        "debate,multiagent,chateval,ensemble,single,geval,repeated,cascade",
        ("--aspect", "fluency"),
    ),
    "pairs": ("more,samre,faireval,baseline,calibrated,chateval,repeated", ()),
}


MOST_UNKEPT = 6
"""Calls in flight, including one whose reply is being written."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL_PROTOCOLS)
def test_a_killed_run_ends_as_an_undisturbed_one(
    simulated: Simulated, tmp_path: Path, kind: str
) -> None:
    protocols, more = ALL_PROTOCOLS[kind]
    names: Any = protocols.split(",")
    data = dataset(tmp_path, 2) if kind == "scores" else pairs(tmp_path, 2)
    aspects = ["fluency"] if kind == "scores" else []
    settings: dict[str, Any] = {
        "models": {"*": "openai:gpt-4o-mini"},
        "aspects": aspects,
        "repeats": 2,
    }
    undisturbed = evaluate(names, data, **settings)
    assert not undisturbed.failed
    needed = simulated.stats()["requests"]
    simulated.reset()

    out = tmp_path / "out"
    command = ["run", protocols, "--data", str(data), *more, "--repeats", "2", "--concurrency", "6"]
    with started(
        *command, "--model", "openai:gpt-4o-mini", "--out", str(out), cwd=tmp_path
    ) as process:
        until(lambda: simulated.stats()["requests"] > needed / 2, process)
        process.kill()
        process.wait()
    until(lambda: not simulated.stats()["in_flight"])
    lost = simulated.stats()["requests"] - kept(out)
    assert lost <= MOST_UNKEPT
    whole = evaluate(names, data, out=out, **settings)
    assert lines(whole) == lines(undisturbed)
    assert simulated.stats()["requests"] - lost == needed, "a finished call was made again"
