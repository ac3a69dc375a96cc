"""Test live progress on resume and narrow terminals, its cost, and the log of a run."""

import io
import json
import logging
import re
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import Evaluation, evaluate
from jurygraph.eval.cli import progress
from jurygraph.eval.cli.progress import LiveProgress, Rate
from jurygraph.eval.cli.waiting import shown_if_slow
from jurygraph.eval.results.run_log import FILE, log_text, logging_to
from jurygraph.eval.run.calls.progress_counters import ProgressCounters
from jurygraph.eval.run.calls.shutdown import StopSignal
from jurygraph.state.transcript import Usage
from rich.cells import cell_len
from rich.console import Console

from .loopback import Failure, Provider
from .processes import HANG_GUARD, ran, until, whole_lines
from .sample_data import numbered, read_lines

SPENT = Usage(calls=200_000, input_tokens=100_000_000, output_tokens=1_000_000, cost_usd=123.4)


def resumed(wanted: int = 10_000, there: int = 9_000, spent: Usage = SPENT) -> ProgressCounters:
    counts = ProgressCounters()
    counts.take_up(wanted, there, spent)
    return counts


class Display:
    """The display of a run, drawn on request, with a clock that the test sets."""

    def __init__(
        self, counts: ProgressCounters, stop: StopSignal | None = None, width: int = 80
    ) -> None:
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
    assert re.search(r"judging .* 9100/10000 0:00:10 left 0:01:30", bar), (
        "900 open verdicts at 10 a second"
    )
    assert figures == "500.0 calls/s · $123.4000 · 205k calls · 106M tokens · 0 rounds"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_width_holds_two_lines_with_what_matters(width: int) -> None:
    counts = resumed(wanted=100_000, there=40_000)
    counts.failed = 1_234
    counts.served = 123_456
    counts.rounds = 98_765
    drawn = shown(counts, width=width)
    assert len(drawn) == 2
    assert all(cell_len(line) <= width for line in drawn)
    assert re.search(r"41234/100000 \d:\d\d:\d\d left", drawn[0])
    assert all(word in drawn[1] for word in ("1,234 failed", "calls/s", "$123.4000", "200k calls"))
    assert ("98,765 rounds" in drawn[1]) == (width == 200)


def test_open_items_an_unknown_cost_and_why_a_run_stops_are_shown() -> None:
    counts = resumed(wanted=100, there=90, spent=Usage(calls=3, cost_usd=None))
    stop = StopSignal()
    # Failed items that are judged again count as open.
    counts.judged = 93
    counts.failed = 2
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
    until_when = re.compile(
        r"^waiting for openai:gpt-4o-mini until \d\d:\d\d:\d\d \(it refuses all calls\)"
    )
    assert until_when.search(shown(counts)[1])
    counts.waits.add("openai:gpt-4o", "next attempt", 3600)
    assert shown(counts)[1].startswith("waiting for openai:gpt-4o and 1 more until ")


def test_without_a_terminal_a_long_wait_is_told_once(tmp_path: Path) -> None:
    counts = resumed()
    out = io.StringIO()
    counts.waits.add("openai:gpt-4o-mini", "next attempt", 1800)
    with logging_to(tmp_path, None):
        log = tmp_path / FILE
        with LiveProgress(Console(file=out), counts, StopSignal(), logged_every=0.02):
            until(
                lambda: (
                    log.exists()
                    and log.read_text().count("waiting for openai:gpt-4o-mini until") >= 3
                )
            )
    assert re.fullmatch(
        r"waiting for openai:gpt-4o-mini until [\d:]{8} \(next attempt\)\n", out.getvalue()
    )


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
        """Return the log during judging; a thread of an earlier test may log here too."""
        counts.judged += 1
        counts.made += 10
        records = map(
            json.loads, whole_lines(tmp_path / FILE) if (tmp_path / FILE).exists() else []
        )
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


log = logging.getLogger("jurygraph.test")

HOSTILE = 'no\r\n{"event":"forged"}\x1b[31mred\x1b]0;title\x07\x9b31m [red]markup[/red] \u202eabc\u2028 \ud800 \x00'


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the log, without warnings of another test's exporter that is still ending."""
    logged = [json.loads(line) for line in (folder / FILE).read_bytes().splitlines()]
    return [line for line in logged if "Shutdown in progress" not in line["event"]]


def judged(folder: Path, count: int = 3, **options: Any) -> Evaluation:
    data = numbered(folder, count, source="The secret source.")
    options |= {"models": {"*": "openai:gpt-4o-mini"}, "settings": {"structured": "off"}}
    with logging_to(folder / "out", None):
        return evaluate("single", data, aspects=["fluency"], out=folder / "out", **options)


@pytest.mark.usefixtures("fast_retries")
def test_the_morning_after(provider: Provider, tmp_path: Path) -> None:
    """Check the log of a night with every kind of trouble."""
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
def test_hostile_text_forges_no_lines_and_cannot_steer_a_terminal(
    tmp_path: Path, terminal: bool
) -> None:
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


def test_long_lines_are_not_folded_where_there_is_no_terminal_and_long_texts_lose_their_middle() -> (
    None
):
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
    with (
        logging_to(None, console),
        LiveProgress(console, ProgressCounters(wanted=10), StopSignal()),
    ):
        log.info("another attempt", extra={"attempt": 2})
    shown = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", out.getvalue())
    assert re.search(r"^\r*\d\d:\d\d:\d\dZ info another attempt attempt=2$", shown, re.MULTILINE)
    assert "judging" in shown


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Simulate a full disk: bytes beyond the size are not written, even in the middle of a line."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_or_torn_line_costs_no_more(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with logging_to(tmp_path, None):
        with no_file_longer_than(1000):
            for number in range(20):
                log.info("event", extra={"number": number})
        log.info("room again")
    assert capfd.readouterr() == ("", "")
    *whole, torn, last = (tmp_path / FILE).read_bytes().splitlines()
    assert [json.loads(line)["number"] for line in whole] == list(range(len(whole)))
    assert not torn.endswith(b"}")
    assert (json.loads(last)["event"], json.loads(last)["lines_lost"]) == (
        "room again",
        20 - len(whole),
    )
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


def test_warnings_of_libraries_go_into_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with logging_to(tmp_path, None):
        logging.getLogger("opentelemetry.exporter").error("Failed to export %s", "spans")
        logging.getLogger("asyncio").info("not worth telling")
    assert [(line["logger"], line["event"]) for line in lines(tmp_path)] == [
        ("opentelemetry.exporter", "Failed to export spans")
    ]
    assert capfd.readouterr() == ("", "")


def test_everything_is_as_before_afterwards_and_nothing_is_written_for_nothing(
    tmp_path: Path,
) -> None:
    def state() -> list[tuple[int, bool, int]]:
        loggers = [
            logging.getLogger(name)
            for name in ("jurygraph", "asyncio", "langsmith", "opentelemetry")
        ]
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


@pytest.mark.parametrize(("after", "shown"), [(HANG_GUARD, False), (0.1, True)])
def test_a_bar_appears_where_reading_takes_long(after: float, shown: bool) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60)
    with shown_if_slow("reading big.csv", console, after=after):
        if shown:
            until(lambda: "reading big.csv" in screen.getvalue())
    assert ("reading big.csv" in screen.getvalue()) is shown


def test_no_bar_is_printed_outside_a_terminal() -> None:
    screen = io.StringIO()
    with shown_if_slow("reading big.csv", Console(file=screen), after=0.0):
        time.sleep(0.1)
    assert screen.getvalue() == ""
