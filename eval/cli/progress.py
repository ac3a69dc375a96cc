"""Do the work of a command, with live progress on a terminal and in the log, and report its end."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeftColumn
from rich.text import Text

from ..results.run_log import logging_to
from ..run.calls.call_pipeline import RunContext
from ..run.calls.progress_counters import ProgressCounters
from ..run.calls.shutdown import StopSignal, signals_stop
from ..run.calls.tracing import traces_sent
from ..tables.grid import cost_in_words, short
from .exit_codes import ExitCode
from .runtime import CommandConfig, Output, exit_code, interruptible, run_async
from .screens import Step, print_next

if TYPE_CHECKING:
    from ..results.evaluation import Evaluation, Evaluations
    from ..results.experiment_result import ExperimentResult

log = logging.getLogger("jurygraph.run")

REFRESHES_PER_SECOND = 2
RECENT = 10.0
"""The seconds for averaging the rate on the screen."""

LOOKING_BACK = 600.0
"""The seconds for averaging the speed of verdicts: many, because debates end in bursts."""

LOGGED_EVERY = 60.0
"""The seconds between two records in the log."""

RESUMES = {
    "interrupted": "resumes",
    "budget": "resumes with a higher limit",
    "disk": "resumes once there is room",
}
"""The effect of repeating the command, by the reason of the stop; the default is for errors."""

Runs = TypeVar("Runs", bound="Evaluation | Evaluations | ExperimentResult")


def carry_out_to_end(
    out: Output,
    folder: Path | None,
    config: CommandConfig,
    work: Callable[[RunContext], Coroutine[Any, Any, Runs]],
    show: Callable[[Output, Runs], Sequence[Step] | None],
    log_in: Path | None = None,
) -> tuple[Runs, int]:
    """Do one or several runs, print their results and their end, and return them with an exit code.

    The log goes to the folder and the progress to the screen, until a signal stops the work. A dry
    run ends here.

    Args:
        out: the console.
        folder: the folder that resumes the work with ``--out``; ``None`` for a command without it.
        config: the limits, the place of replies, whether it is a dry run, and whether log events
            are printed.
        work: the work to do.
        show: prints the results, and returns suggested commands.
        log_in: the folder of the log; default: ``folder``.
    """
    if config.dry_run:
        raise typer.Exit(ExitCode.ALL_JUDGED)
    context = RunContext(config)
    counters = context.counts
    stop = context.stop
    # On standard error, so that only the tables are redirected to a file.
    errors = Output(stderr=True)
    again = f"The same command with --out {folder}" if folder else "The same command"

    async def until_stopped() -> Runs:
        with signals_stop(stop):
            return await work(context)

    with interruptible(f"interrupted; finished results are saved. {again} resumes."):
        with (
            logging_to(log_in or folder, errors if config.verbose else None, errors),
            traces_sent(),  # after the log, so that a failing exporter is logged
            LiveProgress(errors, counters, stop),
        ):
            done = run_async(until_stopped)
        steps = show(out, done)
        failed = done.failed if isinstance(done.failed, int) else len(done.failed)
        out.print_line(total_usage(counters))
        if done.stopped:
            out.print_line(stop.explanation)
            saved = f"{counters.judged:,} of {counters.wanted:,} verdicts are done and saved."
            out.print_line(
                f"{saved} {again} {RESUMES.get(done.stopped, 'resumes once that is fixed')}."
            )
        elif failed:
            out.print_line(f"{again} retries what failed.")
        print_next(out, steps, str(folder or ""))
    return done, exit_code(done.stopped, failed)


def total_usage(counts: ProgressCounters) -> str:
    """Return a line with all spending since the run's first start, and the calls from the cache."""
    usage = counts.usage
    cost = cost_in_words(usage.cost_usd)
    cached = f"; {counts.served:,} more calls cached" if counts.served else ""
    sent = (
        f" ({usage.calls + counts.refused:,} requests, incl. refused ones)"
        if counts.refused
        else ""
    )
    lost = ""
    if counts.given_up:
        were = "1 request was" if counts.given_up == 1 else f"{counts.given_up:,} requests were"
        lost = f"; {were} given up after being sent: the provider may bill for that, so the expected usage is counted"
    return f"total usage: {usage.calls:,} calls{sent}, {usage.shown_tokens()} tokens, {cost}{cached}{lost}"


class Rate:
    """Computes a counter's growth per second, over the last few seconds.

    >>> clock = iter([0.0, 5.0, 10.0, 15.0, 20.0]).__next__
    >>> rate = Rate(seconds=10, clock=clock)
    >>> [rate.of(count) for count in (100, 150, 200, 1200, 2200)]
    [0.0, 10.0, 10.0, 105.0, 200.0]
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, count: int) -> float:
        """Record the current count and return the rate."""
        now = self._clock()
        self._seen.append((now, count))
        # Store at least two observations, because a rate needs a beginning and an end.
        while len(self._seen) > 2 and self._seen[1][0] <= now - self._seconds:
            self._seen.popleft()
        since, before = self._seen[0]
        return (count - before) / (now - since) if now > since else 0.0


class LiveProgress(Progress):
    """Shows two lines during a run: a bar with times, and calls, their rate, tokens and cost.

    It reads the counters a few times a second, however many calls are made in between. Without a
    terminal it draws nothing and reports only long waits. In any case the log gets the counters
    every minute, to show when a long run was slow.
    """

    def __init__(
        self,
        console: Console,
        counts: ProgressCounters,
        stop: StopSignal,
        logged_every: float = LOGGED_EVERY,
    ) -> None:
        # Set this first, because rich draws once during its setup.
        self._counts = counts
        self._halt = stop
        self._logged_every = logged_every
        self._rate = Rate(RECENT)
        super().__init__(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeLeftColumn(),
            console=console,
            disable=not console.is_terminal,
            refresh_per_second=REFRESHES_PER_SECOND,
            speed_estimate_period=LOOKING_BACK,
            transient=True,
            expand=True,
        )
        self.add_task("", start=False)
        self._over = Event()
        # A daemon thread, so that a failing command does not wait for the end of the minute.
        self._logging = Thread(target=self._log_now_and_then, name="jurygraph-minutes", daemon=True)

    def start(self) -> None:
        """Start drawing and logging."""
        self._logging.start()
        # Draw first after half a second, so that a run with nothing to do shows no bar.
        if not self.disable:
            self.live.start()

    def stop(self) -> None:
        """Remove the lines from the screen, and stop logging."""
        super().stop()
        self._over.set()
        self._logging.join()

    def get_renderables(self) -> Iterator[RenderableType]:
        """Draw the current counters, the most important ones first.

        A narrow terminal cuts off the end of the line.
        """
        counts = self._counts
        compact = partial(short, least=100_000)
        # Before the number of verdicts is known, a bar of 0 of 0 would look complete.
        if not (counts.wanted and self.tasks):
            return
        task = self.tasks[0]
        if not task.started:
            # Verdicts of earlier starts count as done, but must not affect the speed.
            task.total = counts.wanted
            task.completed = counts.resumed
            self.start_task(task.id)
        doing = escape(counts.phase) or "judging"
        if self._halt.is_asked:
            doing = f"[yellow]stopping: {self._halt.reason}"
        self.update(task.id, completed=counts.judged + counts.failed, description=doing)
        yield from super().get_renderables()
        figures = (
            Text(counts.waits.summary(), "yellow"),
            Text(f"{counts.failed:,} failed" if counts.failed else "", "red"),
            Text(f"{self._rate.of(counts.made):,.1f} calls/s"),
            Text(cost_in_words(counts.usage.cost_usd)),
            Text(f"{compact(counts.usage.calls)} calls"),
            Text(f"{counts.usage.shown_tokens(compact)} tokens"),
            Text(f"{compact(counts.served)} cached" if counts.served else ""),
            Text(f"{compact(counts.rounds)} rounds"),
        )
        line = Text(" · ").join(filter(None, figures))
        line.no_wrap = True
        line.overflow = "ellipsis"
        yield line

    def _log_now_and_then(self) -> None:
        """Log the counters; without a drawing, also print a line when the run begins to wait."""
        counts = self._counts
        rate = Rate(self._logged_every)
        shown = ""
        rate.of(counts.made)  # the beginning of the first minute
        while not self._over.wait(self._logged_every):
            waiting = counts.waits.summary()
            if self.disable and waiting not in ("", shown):
                self.console.print(Text(waiting), soft_wrap=True)
            shown = waiting
            figures = {"calls_per_second": round(rate.of(counts.made), 2)}
            waits = {"waiting": waiting} if waiting else {}
            log.info("so far", extra={**counts.summary(), **figures, **waits})
