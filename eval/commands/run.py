"""``jurygraph run``: judge a dataset."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ..batching.terms import BATCH_DISCOUNT
from ..datasets import MAX_CHARACTERS, load_dataset
from ..estimate import Estimate, estimate, estimate_table
from ..evaluation import Evaluation
from ..plan import Plan, plan
from ..progress import LiveProgress
from ..reading import head
from ..runner import carry_out
from ..running.conduct import Conduct
from ..running.counts import Counts
from ..running.exporting import traces_sent
from ..running.folder import judged
from ..running.logs import logging_to
from ..running.stopping import Stop, signals_stop, sigterm_interrupts
from ..tables import agreement_tables, money, overview_table
from .common import (
    ALL_JUDGED,
    BUDGET_REACHED,
    INTERRUPTED,
    SOME_FAILED,
    console,
    models_of,
    program,
    settings_of,
)

SHOWN_FAILURES = 10
GOES_ON = {
    "budget": "goes on with a higher limit",
    "provider": "goes on when that is mended",
    "journal": "goes on when that is mended",
    "disk": "goes on when there is room",
}

SPEED, LIMITS, KEPT = "How fast", "For how much", "What is kept"


def run(
    protocols: Annotated[str, typer.Argument(help="One protocol, or several with commas between.")],
    data: Annotated[str, typer.Option(help="A dataset's name (see `datasets`), or a JSONL or CSV file.")],
    aspect: Annotated[
        list[str] | None, typer.Option(help="An aspect's name or a YAML file; default: all that have labels.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model of all roles, such as openai:gpt-4o-mini.")
    ] = None,
    role_model: Annotated[
        list[str] | None, typer.Option(metavar="ROLE=NAME", help="The model of one role.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the protocol.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge the first so many items only.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Judge everything so many times.")] = 1,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with a published dataset's files.")] = None,
    max_chars: Annotated[
        int, typer.Option(min=1, help="The longest text that an item may have.")
    ] = MAX_CHARACTERS,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the results; the same one again resumes.", rich_help_panel=KEPT),
    ] = None,
    journal: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|URL",
            help="Where finished calls are kept, so that none is paid twice: a file, or postgresql://...; "
            "default: in the folder.",
            rich_help_panel=KEPT,
        ),
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Judge everything anew, with no reply from before.", rich_help_panel=KEPT
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Rename the results that the folder holds and start a run.",
            rich_help_panel=KEPT,
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print what the log file gets, and more.", rich_help_panel=KEPT)
    ] = False,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Model calls in flight, at most.", rich_help_panel=SPEED)
    ] = 16,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="To one model, at most.", rich_help_panel=SPEED)
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="To and from one model, at most.", rich_help_panel=SPEED)
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds for one attempt at a call.", rich_help_panel=SPEED)
    ] = 180.0,
    attempts: Annotated[int, typer.Option(min=1, help="At one call, at most.", rich_help_panel=SPEED)] = 12,
    grace: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds for calls in flight to finish after Ctrl-C.", rich_help_panel=SPEED
        ),
    ] = 30.0,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Send calls of OpenAI's models through its Batch API: half the price, replies within a day.",
            rich_help_panel=LIMITS,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what it would take, and do nothing.", rich_help_panel=LIMITS),
    ] = False,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", help="Stop before it costs more.", rich_help_panel=LIMITS)
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Stop before it takes more calls.", rich_help_panel=LIMITS)
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Stop before it takes more tokens, in and out.", rich_help_panel=LIMITS),
    ] = None,
) -> None:
    """Judge a dataset: results.jsonl, run.json and a table of agreement with people.

    The same command with the same --out goes on where it stopped, however it stopped.

    Ctrl-C or SIGTERM: calls in flight finish, then it ends; a second time, it ends at once.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    folder = out or _default_out(names, data)
    conduct = Conduct.of(
        {
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "timeout": timeout,
            "attempts": attempts,
            "grace": grace,
            "max_calls": max_calls,
            "max_tokens": max_tokens,
            "max_cost": max_cost,
            "journal": journal,
            "fresh": fresh,
            "replace": replace,
            "batch": batch,
        }
    )
    with _interruptible("interrupted before the first call; nothing has begun"):
        prepared = plan(
            names,
            load_dataset(data, data_dir, max_characters=max_chars),
            aspects=aspect or [],
            settings=settings_of(settings or []),
            models=models_of(model, role_model or []),
            limit=limit,
            repeats=repeats,
            out=folder,
        )
        conduct.budget.check(prepared.models())
        if batch:
            from ..batching.checking import check_batch

            check_batch(prepared)
        running = _Running(prepared, conduct, console())
        running.announce(dry_run)
    if dry_run:
        raise typer.Exit(ALL_JUDGED)
    with _interruptible(f"interrupted; what was done is kept. The same command with --out {folder} goes on."):
        running.until_the_end(verbose)


class _Running:
    """One call of the command."""

    def __init__(self, prepared: Plan, conduct: Conduct, out: Console) -> None:
        self._prepared = prepared
        self._conduct = conduct
        self._out = out

    def announce(self, dry: bool) -> None:
        """Say what is to be judged and, where it costs money or is all that is wanted, what it will take.

        Raises:
            UsageError: the folder holds another run.
        """
        there = judged(self._prepared, self._conduct)
        for part in head(self._prepared.manifest):
            self._out.print(part)
        if dry or (self._prepared.costs_money and sum(there.values()) < len(self._prepared)):
            self._show(estimate(self._prepared, there))

    def until_the_end(self, verbose: bool) -> NoReturn:
        """Run, and tell what came of it."""
        counts, stop = Counts(), Stop()
        errors = Console(stderr=True)
        with (
            logging_to(self._prepared.folder, errors if verbose else None),
            traces_sent(),  # after the log, which gets the complaints of whoever sends them
            LiveProgress(errors, counts, stop),
        ):
            evaluation = _run_async(lambda: self._carry_out(counts, stop))
        print_evaluation(self._out, evaluation)
        self._out.print(_spent(counts), soft_wrap=True)
        for line in _ending(evaluation, counts, stop):
            self._out.print(Text(line), soft_wrap=True)
        raise typer.Exit(_exit_code(evaluation))

    async def _carry_out(self, counts: Counts, stop: Stop) -> Evaluation:
        with signals_stop(stop):
            return await carry_out(self._prepared, self._conduct, counts, stop)

    def _show(self, expected: Estimate) -> None:
        if self._conduct.batch:
            expected = expected.discounted(BATCH_DISCOUNT)
        self._out.print(estimate_table(expected))
        budget = self._conduct.budget
        if expected.exceeds(
            max_calls=budget.max_calls, max_cost=budget.max_cost, max_tokens=budget.max_tokens
        ):
            self._out.print(
                "[yellow]the budget will not do for all of it: the run will stop when it is spent[/]"
            )


def _run_async(work: Callable[[], Coroutine[Any, Any, Evaluation]]) -> Evaluation:
    """On a fast event loop where there is one; what has been loaded by now is no garbage."""
    gc.collect()
    gc.freeze()
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(work())


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@contextmanager
def _interruptible(told: str) -> Iterator[None]:
    """What Ctrl-C and SIGTERM are answered with as long as no loop is there to hear them."""
    try:
        with sigterm_interrupts():
            yield
    except KeyboardInterrupt:
        Console(stderr=True).print(told, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def _ending(evaluation: Evaluation, counts: Counts, stop: Stop) -> Iterator[str]:
    """Why it ended before its work was done, and how to go on."""
    again = f"The same command with --out {evaluation.folder}"
    if evaluation.stopped:
        yield stop.explanation
        how = GOES_ON.get(evaluation.stopped, "goes on")
        yield f"{counts.judged:,} of {counts.wanted:,} verdicts are there, and kept. {again} {how}."
    elif evaluation.failed:
        yield f"{again} tries those that failed again."


def _exit_code(evaluation: Evaluation) -> int:
    codes = {"budget": BUDGET_REACHED, "interrupted": INTERRUPTED}
    if evaluation.stopped in codes:
        return codes[evaluation.stopped]
    return SOME_FAILED if evaluation.stopped or evaluation.failed else ALL_JUDGED


def _spent(counts: Counts) -> str:
    cost = "cost unknown" if counts.cost_usd is None else money(counts.cost_usd)
    served = f", {counts.served:,} answered from what was kept" if counts.served else ""
    return f"paid in all: {counts.calls:,} calls, {counts.tokens:,} tokens, {cost}{served}"


def _default_out(protocols: list[str], data: str) -> Path:
    stem = Path(data).name.split(".")[0]
    return Path("runs") / f"{'-'.join(protocols)}-{stem}-{datetime.now():%Y%m%d-%H%M%S}"


def print_evaluation(out: Console, evaluation: Evaluation) -> None:
    """What was judged, how well it agrees with people, what failed, and where to read on."""
    if not len(evaluation.results):
        return
    out.print(overview_table(evaluation))
    for table in agreement_tables(evaluation):
        out.print(table)
    for signature in evaluation.manifest["signatures"].values():
        out.print(Text(signature, style="dim"), soft_wrap=True)
    _print_failures(out, evaluation)
    out.print(f"results: {evaluation.folder}/results.jsonl, run.json", soft_wrap=True)
    example = evaluation.most_worth_reading()
    if example and example.status == "ok":
        out.print(f"read a debate: {program()} show {evaluation.folder} {example.item}", soft_wrap=True)


def _print_failures(out: Console, evaluation: Evaluation) -> None:
    """Each reason once, with the first item that it befell and how many more there are."""
    befallen: dict[str, str] = {}
    times: Counter[str] = Counter()
    others = 0
    for result in evaluation.failed:
        reason = (result.error or "")[:600]
        if reason not in befallen and len(befallen) == SHOWN_FAILURES:
            others += 1
            continue
        befallen.setdefault(reason, " · ".join(filter(None, (result.item, result.aspect, result.protocol))))
        times[reason] += 1
    for reason, what in befallen.items():
        more = f" and {times[reason] - 1:,} more" if times[reason] > 1 else ""
        out.print(Text.assemble((f"failed: {what}{more}: ", "red"), reason), soft_wrap=True)
    if others:
        out.print(f"... and {others:,} more, see {evaluation.folder}", soft_wrap=True)
