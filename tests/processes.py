"""Runs as processes, and conditions to wait for instead of sleeping."""

import asyncio
import io
import json
import os
import shlex
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.cli.app import main

from .sample_data import write_lines
from .source_tree import beside

JURYGRAPH = [sys.executable, "-c", "from jurygraph.eval.cli.start import main; main()"]
BEHAVIOUR = ("--latency-ms=15", "--critic=mixed", "--words=8")

HANG_GUARD = 300.0
"""Seconds after which a test gives up waiting; enough for any busy machine."""


def until(
    come: Callable[[], object],
    process: subprocess.Popen[str] | None = None,
    seconds: float = HANG_GUARD,
) -> None:
    """Wait for a condition; a process that is to bring it about is not to end before."""
    deadline = time.monotonic() + seconds
    while not come():
        if process is not None and process.poll() is not None and not come():
            raise AssertionError(process.communicate())
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.002)


def whole_lines(file: Path) -> list[str]:
    """Return the complete lines of a file; a running process may be writing the next one."""
    return [line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


async def reached(state: Callable[[], object], by: asyncio.Task[Any] | None = None) -> None:
    """Wait on the event loop for a state; the task that causes it must not end before."""
    async with asyncio.timeout(HANG_GUARD):
        while not state():
            if by is not None and by.done() and not state():
                raise AssertionError(f"it has ended with {by.result()}")
            await asyncio.sleep(0.001)


def ran(*command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a process to its end, whatever that is."""
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANG_GUARD, **options
    )


@contextmanager
def child(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process that is killed at the end, also if the test fails."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            # Leaving the block of Popen waits for the process, and a hanging one would block
            # forever.
            process.kill()


@contextmanager
def started(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """Run ``jurygraph`` in a process of its own, which is gone afterwards."""
    with child(
        *JURYGRAPH, *arguments, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        yield process


WATCHERS: list[threading.Event] = []
"""Events that end threads waiting for a condition, so that none signals the next test."""


def when(come: Callable[[], object], do: Callable[[], object]) -> threading.Thread:
    """Do something in another thread when a condition is met, unless the test has ended."""
    over = threading.Event()
    WATCHERS.append(over)

    def wait() -> None:
        while not come():
            if over.wait(0.002):
                return
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def signalled(come: Callable[[], object], number: int) -> threading.Thread:
    """Send this process a signal when a condition is met."""
    return when(come, lambda: os.kill(os.getpid(), number))


def command_line(line: str) -> list[str]:
    """Split a command as a shell does."""
    return shlex.split(line)


def in_this_process(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``jurygraph`` here like a process, with the same signals, but without start-up time."""
    printed = io.StringIO()
    errors = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(errors):
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["jurygraph", *arguments])
        for name, value in env.items():
            patch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
    code = int(ended.value.code or 0)
    out = printed.getvalue()
    err = errors.getvalue()
    assert "Traceback" not in out + err
    return subprocess.CompletedProcess(arguments, code, out, err)


class Command:
    """The command line in this process and folder, with the output of the last command."""

    printed = errors = ""

    def __call__(self, *arguments: str | Path) -> int:
        done = in_this_process(*map(str, arguments), cwd=Path())
        self.printed = done.stdout
        self.errors = done.stderr
        return done.returncode


FORKING = """
import importlib, json, os, sys, traceback
import jurygraph.eval.cli.run
from jurygraph.eval.cli.app import main

for name in sys.argv[1:]:
    importlib.import_module(name)

for line in sys.stdin:
    request = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for number, name in (1, "stdout"), (2, "stderr"):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT), number)
    os.chdir(request["cwd"])
    os.environ.update(request["environment"])
    sys.argv = ["jurygraph", *request["arguments"]]
    code = 70
    try:
        exec(request["program"], {"main": main})
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
"""


class Forks:
    """Runs ``jurygraph`` in processes forked from one that has imported it, for a fast start."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def __call__(
        self, *arguments: str, cwd: Path, program: str = "main()", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, or another program, to its end."""
        files = {name: self._folder / name for name in ("stdout", "stderr")}
        for file in files.values():
            file.unlink(missing_ok=True)
        request = {name: str(file) for name, file in files.items()}
        assert self._process.stdin
        assert self._process.stdout
        asked = {"program": program, "cwd": str(cwd), "environment": env, "arguments": arguments}
        print(json.dumps({**request, **asked}), file=self._process.stdin, flush=True)
        code = int(self._process.stdout.readline())
        printed, errors = (file.read_text() for file in files.values())
        return subprocess.CompletedProcess(arguments, code, printed, errors)


@contextmanager
def forking(folder: Path, *path: Path, imports: Sequence[str] = ()) -> Iterator[Forks]:
    """Yield a process that forks commands with this path; output goes to ``folder``.

    It has imported the command ``run`` and ``imports``, which the commands then need not import.
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "COLUMNS": "200"}
    command = (sys.executable, "-c", FORKING, *imports)
    with child(*command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Forks(process, folder)


class Simulated:
    """A provider that answers whatever any protocol asks, and counts."""

    def __init__(self, address: str) -> None:
        self._address = address

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._address}/stats", timeout=HANG_GUARD) as reply:
            return dict(json.load(reply))

    def reset(self) -> None:
        urllib.request.urlopen(f"{self._address}/reset", b"", timeout=HANG_GUARD).close()


@contextmanager
def simulated_address(*options: str) -> Iterator[str]:
    """Yield the address of the provider of ``benchmarks/`` in its own process."""
    script = beside("benchmarks/simulated_provider.py")
    command = [sys.executable, str(script), "--until-stdin-ends", *options]
    with child(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        yield process.stdout.readline().strip()
        process.stdin.close()


@contextmanager
def simulated_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulated]:
    """The same, with the environment pointing to it."""
    with simulated_address(*BEHAVIOUR) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        yield Simulated(address.removesuffix("/v1"))


def pairs(folder: Path, number: int) -> Path:
    rows = [
        {
            "id": f"p{n}",
            "question": f"What is {n}?",
            "answer_1": f"It is {n}.",
            "answer_2": "No idea.",
        }
        for n in range(number)
    ]
    return write_lines(folder / "pairs.jsonl", rows)
