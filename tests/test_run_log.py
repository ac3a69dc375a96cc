"""The log of a run: what it tells in the morning, what it never tells, and that it spoils nothing."""

from __future__ import annotations

import io
import json
import logging
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.calls.progress_counters import ProgressCounters
from jurygraph.eval.calls.shutdown import StopSignal
from jurygraph.eval.cli.progress import LiveProgress
from jurygraph.eval.results.run_log import FILE, log_text, logging_to
from rich.console import Console

from .loopback import Failure, Provider
from .processes import ran
from .sample_data import numbered

log = logging.getLogger("jurygraph.test")

HOSTILE = (
    'no\r\n{"event":"forged"}\x1b[31mred\x1b]0;title\x07\x9b31m [red]markup[/red] \u202eabc\u2028 \ud800 \x00'
)


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was logged, but for the warnings of an exporter of another test that is still ending."""
    logged = [json.loads(line) for line in (folder / FILE).read_bytes().splitlines()]
    return [line for line in logged if "Shutdown in progress" not in line["event"]]


def judged(folder: Path, count: int = 3, **options: Any) -> Evaluation:
    data = numbered(folder, count, source="The secret source.")
    options |= {"models": {"*": "openai:gpt-4o-mini"}, "settings": {"structured": "off"}}
    with logging_to(folder / "out", None):
        return evaluate("single", data, aspects=["fluency"], out=folder / "out", **options)


@pytest.mark.usefixtures("fast_retries")
def test_the_morning_after(provider: Provider, tmp_path: Path) -> None:
    """What a night with every kind of trouble leaves in the log."""
    replies = ["Fine.\nScore: 3", "mumble", "mumble", "Fine.\nScore: 2", "Fine.\nScore: 2"]
    provider.play(Failure(503, "Overloaded."), *replies)
    judged(tmp_path, concurrency=1, max_calls=4)
    told = lines(tmp_path / "out")
    events = [line["event"] for line in told]
    assert events == ["run started", "another attempt", "item failed", "stopping", "run ended"]
    started, retry, failed, stopping, ended = told
    assert started.items() >= {"wanted": 3, "there": 0}.items()
    assert retry.items() >= {"model": "openai:gpt-4o-mini", "attempt": 1}.items()
    assert "Overloaded." in retry["reason"]
    assert retry["wait_seconds"] >= 0
    about = {"item": "i1", "aspect": "fluency", "protocol": "single", "level": "WARNING"}
    assert failed.items() >= about.items()
    assert failed["reason"].startswith("ReplyError: ")
    assert stopping["reason"] == "budget"
    assert ended.items() >= {"stopped": "budget", "judged": 1, "failed": 1}.items()
    assert {line["logger"] for line in told} == {"jurygraph.run", "jurygraph.calls"}
    for line in told:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])
        gone = datetime.now().astimezone() - datetime.fromisoformat(line["time"])
        assert abs(gone) < timedelta(minutes=5)


@pytest.mark.usefixtures("fast_retries")
def test_neither_keys_nor_prompts_nor_replies_are_told(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "an-unusual-key")
    provider.play(
        Failure(401, "Incorrect API key provided: an-unusual-key."),
        *["As the secret source. says, so it is."] * 2,
        Failure(500, "Bearer abc.def-123 at https://me:hidden@host/?key=AIzaSyA1234567890abc&x=1"),
        "Fine.\nScore: 3",
    )
    judged(tmp_path, concurrency=1)
    written = (tmp_path / "out" / FILE).read_text()
    assert [line["event"] for line in lines(tmp_path / "out")][1:-1] == [
        *("calls cannot succeed", "item failed", "item failed", "another attempt")
    ]
    for secret in ("an-unusual-key", "abc.def-123", "hidden", "AIza", "secret source", "Number 1"):
        assert secret not in written
    assert "Incorrect API key provided: ***" in written


@pytest.mark.parametrize("terminal", [True, False])
def test_hostile_text_forges_no_lines_and_cannot_steer_a_terminal(tmp_path: Path, terminal: bool) -> None:
    out = io.StringIO()
    with logging_to(tmp_path, Console(file=out, force_terminal=terminal, width=80)):
        log.warning(HOSTILE, extra={"reason": HOSTILE, "item": "i\n1"})
    shown = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    assert shown.count("\n") == 1
    assert shown.strip("\n").isprintable()
    assert shown.count("[red]markup[/red]") == 2
    assert "\x1b[31m" not in out.getvalue()
    raw = (tmp_path / FILE).read_bytes()
    assert raw.count(b"\n") == 1
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", raw)
    [line] = lines(tmp_path)
    assert line["reason"].isprintable()
    assert "[red]markup[/red]" in line["reason"]


def test_long_lines_are_not_folded_where_there_is_no_terminal_and_long_texts_lose_their_middle() -> None:
    out = io.StringIO()
    with logging_to(None, Console(file=out, width=80)):
        log.info("event", extra={"reason": "word " * 60, "calls": 3})
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("calls=3\n")
    shown = log_text("beginning " + "x" * 5000 + " end")
    assert len(shown) < 1010
    assert (shown.startswith("beginning "), shown.endswith(" end")) == (True, True)


def test_verbose_lines_and_the_live_bar_share_a_screen() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80)
    with logging_to(None, console), LiveProgress(console, ProgressCounters(wanted=10), StopSignal()):
        log.info("another attempt", extra={"attempt": 2})
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", out.getvalue())
    assert re.search(r"^\r*\d\d:\d\d:\d\dZ info another attempt attempt=2$", shown, re.MULTILINE)
    assert "judging" in shown


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """As good as a full disk: what goes beyond is not written, be it in the middle of a line."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_or_torn_line_costs_no_more(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with logging_to(tmp_path, None):
        with no_file_longer_than(1000):
            for number in range(20):
                log.info("event", extra={"number": number})
        log.info("room again")
    assert capfd.readouterr() == ("", "")
    *whole, torn, last = (tmp_path / FILE).read_bytes().splitlines()
    assert [json.loads(line)["number"] for line in whole] == list(range(len(whole)))
    assert not torn.endswith(b"}")
    assert (json.loads(last)["event"], json.loads(last)["lines_lost"]) == ("room again", 20 - len(whole))
    (tmp_path / FILE).write_bytes(b'{"event":"whole"}\n{"event":"to')
    with logging_to(tmp_path, None):
        log.info("after")
    assert json.loads((tmp_path / FILE).read_bytes().splitlines()[-1])["event"] == "after"


def test_a_log_that_cannot_be_written_stops_no_run(
    provider: Provider, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    provider.play(by=lambda _: "Fine.\nScore: 3")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FILE).symlink_to("/dev/full")
    assert len(judged(tmp_path).results) == 3
    assert "Traceback" not in capfd.readouterr().err


def test_warnings_of_libraries_go_into_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with logging_to(tmp_path, None):
        logging.getLogger("opentelemetry.exporter").error("Failed to export %s", "spans")
        logging.getLogger("asyncio").info("not worth telling")
    assert [(line["logger"], line["event"]) for line in lines(tmp_path)] == [
        ("opentelemetry.exporter", "Failed to export spans")
    ]
    assert capfd.readouterr() == ("", "")


def test_everything_is_as_before_afterwards_and_nothing_is_written_for_nothing(tmp_path: Path) -> None:
    def state() -> list[tuple[int, bool, int]]:
        loggers = [logging.getLogger(name) for name in ("jurygraph", "asyncio", "langsmith", "opentelemetry")]
        return [(one.level, one.propagate, len(one.handlers)) for one in loggers]

    before = state()
    with logging_to(tmp_path / "out", Console(file=io.StringIO())):
        assert state() != before
    with logging_to(None, None):
        assert state() == before
    assert state() == before
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_python_users_are_told_nothing_unless_they_ask() -> None:
    script = """
import logging
from jurygraph.eval import evaluate
logging.getLogger("jurygraph.run").warning("item failed")
evaluate("single", "demo", aspects=["consistency"], limit=1)
logging.basicConfig(format="%(name)s %(message)s")
logging.getLogger("jurygraph.run").warning("heard")
"""
    done = ran(sys.executable, "-c", script)
    assert (done.stdout, done.stderr) == ("", "jurygraph.run heard\n")
