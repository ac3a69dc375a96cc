"""Live progress: right after a resume, readable on a narrow terminal, and next to free."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jurygraph.eval.calls.progress_counters import ProgressCounters
from jurygraph.eval.calls.shutdown import StopSignal
from jurygraph.eval.cli import progress
from jurygraph.eval.cli.progress import LiveProgress, Rate, _LogEveryMinute
from jurygraph.eval.results.run_log import FILE, logging_to
from jurygraph.state.transcript import Usage
from rich.cells import cell_len
from rich.console import Console

from .processes import until

SPENT = Usage(calls=200_000, input_tokens=100_000_000, output_tokens=1_000_000, cost_usd=123.4)


def resumed(wanted: int = 10_000, there: int = 9_000, spent: Usage = SPENT) -> ProgressCounters:
    counts = ProgressCounters()
    counts.take_up(wanted, there, spent)
    return counts


def shown(
    counts: ProgressCounters, *, stop: StopSignal | None = None, width: int = 80, after: float = 0.0
) -> list[str]:
    """The last picture, some seconds after the first ones, line by line."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, legacy_windows=False)
    begun = time.monotonic()
    with LiveProgress(console, counts, stop or StopSignal()):
        time.sleep(after)
        before = len(pictures(out))
        # The next picture may have been begun before the counts were what they are now; the one after it was not.
        until(lambda: len(pictures(out)) >= before + 3)
    drawn = len(pictures(out))
    assert drawn <= progress.REFRESHES_PER_SECOND * (time.monotonic() - begun) + 2, (
        "the display costs too much"
    )
    return pictures(out)[-1].strip("\n").splitlines()


def pictures(out: io.StringIO) -> list[str]:
    """What was drawn, one picture after another."""
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", out.getvalue())
    return [picture for picture in re.split(r"\r+", plain) if "/" in picture]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pictures drawn often, so that nobody waits for one."""
    monkeypatch.setattr(progress, "REFRESHES_PER_SECOND", 30)


def seconds_left(line: str) -> int:
    hours, minutes, seconds = re.findall(r"left\s+(\d+):(\d\d):(\d\d)", line)[0]
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


@contextmanager
def at_work(counts: ProgressCounters, *, verdicts: int, calls: int) -> Iterator[None]:
    """So many verdicts and calls a second, however late a busy machine lets them be counted."""
    over = threading.Event()

    def work() -> None:
        judged, made, begun = counts.judged, counts.made, time.monotonic()
        while not over.wait(0.05):
            gone = time.monotonic() - begun
            fresh = int(calls * gone) - (counts.made - made)
            counts.judged = judged + int(verdicts * gone)
            counts.made += fresh
            counts.usage += Usage(calls=fresh, input_tokens=900 * fresh)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_what_earlier_starts_did_distorts_neither_rate_nor_time_left() -> None:
    counts = resumed()
    with at_work(counts, verdicts=10, calls=500):
        bar, figures = shown(counts, after=2.5)
    assert re.search(r"judging .* 9\d\d\d/10000 0:\d\d:\d\d left", bar)
    assert 50 < seconds_left(bar) < 250, "1,000 open verdicts at some 10 a second"
    rate = float(re.findall(r"([\d.]+) calls/s", figures)[0])
    assert 200 < rate < 700
    assert re.search(r"20\dk calls", figures)
    assert "$123.4000" in figures


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_width_holds_two_lines_with_what_matters(width: int) -> None:
    counts = resumed(wanted=100_000, there=40_000)
    counts.failed, counts.served, counts.rounds = 1_234, 123_456, 98_765
    drawn = shown(counts, width=width)
    assert len(drawn) == 2
    assert all(cell_len(line) <= width for line in drawn)
    assert re.search(r"41234/100000 \d:\d\d:\d\d left", drawn[0])
    assert all(word in drawn[1] for word in ("1,234 failed", "calls/s", "$123.4000", "200k calls"))
    assert ("98,765 rounds" in drawn[1]) == (width == 200)


@pytest.mark.usefixtures("often")
def test_open_items_an_unknown_cost_and_why_a_run_stops_are_shown() -> None:
    counts, stop = resumed(wanted=100, there=90, spent=Usage(calls=3, cost_usd=None)), StopSignal()
    # Those that failed and are judged again count as open.
    counts.judged, counts.failed = 93, 2
    stop.ask("interrupted", "stopped by SIGINT")
    bar, figures = shown(counts, stop=stop)
    assert " 95/100 " in bar
    assert "stopping: interrupted" in bar
    assert figures.startswith("2 failed · ")
    assert "cost unknown" in figures


@pytest.mark.usefixtures("often")
def test_a_run_that_waits_says_for_what_and_until_when() -> None:
    counts = resumed()
    counts.waits.add("openai:gpt-4o-mini", "next attempt", 1.5)
    assert counts.waits.summary() == "", "that is too short to be read"
    counts.waits.add("openai:gpt-4o-mini", "it refuses all calls", 1800)
    until_when = re.compile(r"^waiting for openai:gpt-4o-mini until \d\d:\d\d:\d\d \(it refuses all calls\)")
    assert until_when.search(shown(counts)[1])
    counts.waits.add("openai:gpt-4o", "next attempt", 3600)
    assert shown(counts)[1].startswith("waiting for openai:gpt-4o and 1 more until ")


def test_without_a_terminal_a_long_wait_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.02)
    counts, out = resumed(), io.StringIO()
    counts.waits.add("openai:gpt-4o-mini", "next attempt", 1800)
    with logging_to(tmp_path, None):
        minutes = _LogEveryMinute(counts, Console(file=out))
        minutes.start()
        log = tmp_path / FILE
        until(lambda: log.exists() and log.read_text().count("waiting for openai:gpt-4o-mini until") >= 3)
        minutes.stop()
    assert re.fullmatch(r"waiting for openai:gpt-4o-mini until [\d:]{8} \(next attempt\)\n", out.getvalue())


def test_nothing_is_drawn_without_a_terminal_or_before_there_is_anything_to_tell() -> None:
    for counts, terminal in ((resumed(), False), (ProgressCounters(), True)):
        out = io.StringIO()
        with LiveProgress(Console(file=out, force_terminal=terminal), counts, StopSignal()):
            time.sleep(0 if terminal else 0.6)
        assert "judging" not in out.getvalue()
        assert terminal or out.getvalue() == ""


def test_the_rate_is_of_the_last_seconds() -> None:
    clock = iter(float(second) for second in range(1000)).__next__
    rate = Rate(10, clock)
    assert [rate.of(100 * second) for second in range(200)][-1] == 100
    assert [rate.of(20_000) for _ in range(20)][-1] == 0


def test_the_log_gets_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LOGGED_EVERY", 0.2)
    counts = resumed()
    with logging_to(tmp_path, None):
        minutes = _LogEveryMinute(counts)
        begun = time.monotonic()
        minutes.start()
        with at_work(counts, verdicts=10, calls=100):
            until(lambda: counts.judged > 9_010 and (tmp_path / FILE).read_text().count("\n") >= 4)
            minutes.stop()
        gone = time.monotonic() - begun
        logging.getLogger("jurygraph.run").info("run ended")
    *told, ended = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert ended["event"] == "run ended"
    # A thread that an earlier test has left may log here, too.
    told = [line for line in told if line["event"] == "so far"]
    assert 4 <= len(told) <= gone / 0.2
    assert told[-1]["judged"] > 9000
    assert told[-1]["calls_per_second"] > 20
