"""Live progress: right after a resume, readable on a narrow terminal, and next to free."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.calls.progress_counters import ProgressCounters
from jurygraph.eval.calls.shutdown import StopSignal
from jurygraph.eval.cli import progress
from jurygraph.eval.cli.progress import LiveProgress, Rate
from jurygraph.eval.results.run_log import FILE, logging_to
from jurygraph.state.transcript import Usage
from rich.cells import cell_len
from rich.console import Console

from .processes import until, whole_lines
from .sample_data import read_lines

SPENT = Usage(calls=200_000, input_tokens=100_000_000, output_tokens=1_000_000, cost_usd=123.4)


def resumed(wanted: int = 10_000, there: int = 9_000, spent: Usage = SPENT) -> ProgressCounters:
    counts = ProgressCounters()
    counts.take_up(wanted, there, spent)
    return counts


class Display:
    """What is shown of a run, drawn whenever a test wants it, and by a clock that the test sets."""

    def __init__(self, counts: ProgressCounters, stop: StopSignal | None = None, width: int = 80) -> None:
        self.now = 0.0
        self._console = Console(
            file=io.StringIO(), force_terminal=True, width=width, get_time=lambda: self.now
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(progress, "Rate", partial(Rate, clock=lambda: self.now))
            self._live = LiveProgress(self._console, counts, stop or StopSignal())

    def lines(self) -> list[str]:
        with self._console.capture() as drawn:
            self._console.print(self._live.get_renderable())
        return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn.get()).strip("\n").splitlines()


def shown(counts: ProgressCounters, stop: StopSignal | None = None, width: int = 80) -> list[str]:
    return Display(counts, stop, width).lines()


def test_what_earlier_starts_did_distorts_neither_rate_nor_time_left() -> None:
    counts = resumed()
    display = Display(counts)
    display.lines()
    for _ in range(20):
        display.now += 0.5
        counts.judged += 5
        counts.made += 250
        counts.usage += Usage(calls=250, input_tokens=900 * 250)
        bar, figures = display.lines()
    assert re.search(r"judging .* 9100/10000 0:00:10 left 0:01:30", bar), "900 open verdicts at 10 a second"
    assert figures == "500.0 calls/s · $123.4000 · 205k calls · 106M tokens · 0 rounds"


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


def test_open_items_an_unknown_cost_and_why_a_run_stops_are_shown() -> None:
    counts, stop = resumed(wanted=100, there=90, spent=Usage(calls=3, cost_usd=None)), StopSignal()
    # Those that failed and are judged again count as open.
    counts.judged, counts.failed = 93, 2
    stop.ask("interrupted", "stopped by SIGINT")
    bar, figures = shown(counts, stop)
    assert " 95/100 " in bar
    assert "stopping: interrupted" in bar
    assert figures.startswith("2 failed · ")
    assert "cost unknown" in figures


def test_a_run_that_waits_says_for_what_and_until_when() -> None:
    counts = resumed()
    counts.waits.add("openai:gpt-4o-mini", "next attempt", 1.5)
    assert counts.waits.summary() == "", "that is too short to be read"
    counts.waits.add("openai:gpt-4o-mini", "it refuses all calls", 1800)
    until_when = re.compile(r"^waiting for openai:gpt-4o-mini until \d\d:\d\d:\d\d \(it refuses all calls\)")
    assert until_when.search(shown(counts)[1])
    counts.waits.add("openai:gpt-4o", "next attempt", 3600)
    assert shown(counts)[1].startswith("waiting for openai:gpt-4o and 1 more until ")


def test_without_a_terminal_a_long_wait_is_told_once(tmp_path: Path) -> None:
    counts, out = resumed(), io.StringIO()
    counts.waits.add("openai:gpt-4o-mini", "next attempt", 1800)
    with logging_to(tmp_path, None):
        log = tmp_path / FILE
        with LiveProgress(Console(file=out), counts, StopSignal(), logged_every=0.02):
            until(lambda: log.exists() and log.read_text().count("waiting for openai:gpt-4o-mini until") >= 3)
    assert re.fullmatch(r"waiting for openai:gpt-4o-mini until [\d:]{8} \(next attempt\)\n", out.getvalue())


def test_nothing_is_drawn_without_a_terminal_or_before_there_is_anything_to_tell() -> None:
    for counts, terminal in ((resumed(), False), (ProgressCounters(), True)):
        out = io.StringIO()
        with LiveProgress(Console(file=out, force_terminal=terminal), counts, StopSignal()):
            pass
        assert "judging" not in out.getvalue()
        assert terminal or out.getvalue() == ""


def test_the_log_gets_a_line_now_and_then(tmp_path: Path) -> None:
    counts = resumed()

    def logged() -> list[dict[str, Any]]:
        """What has been, while judging goes on; a thread that an earlier test has left may log here, too."""
        counts.judged += 1
        counts.made += 10
        records = map(json.loads, whole_lines(tmp_path / FILE) if (tmp_path / FILE).exists() else [])
        return [record for record in records if record["event"] == "so far"]

    with logging_to(tmp_path, None):
        begun = time.monotonic()
        with LiveProgress(Console(file=io.StringIO()), counts, StopSignal(), logged_every=0.2):
            until(lambda: len(logged()) >= 3)
        gone = time.monotonic() - begun
        told = logged()
        logging.getLogger("jurygraph.run").info("run ended")
    assert read_lines(tmp_path / FILE)[-1]["event"] == "run ended"
    assert 3 <= len(told) <= gone / 0.2
    assert told[-1]["judged"] > 9000
    assert told[-1]["calls_per_second"] > 20
