"""``jurygraph run``: judge a dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ..batch_api.request_file import BATCH_DISCOUNT
from ..datasets.dataset import MAX_CHARACTERS, load_dataset
from ..estimate import Estimate, estimate, estimate_table
from ..pipelines import check_run
from ..plan import Plan, count_judged, plan
from ..run.config import RunConfig
from ..run.evaluation import Evaluation
from ..run.progress_counters import ProgressCounters
from ..run.run_log import logging_to
from ..run.shutdown import StopSignal, signals_stop
from ..run.tracing import traces_sent
from ..runner import execute
from ..tables.result_tables import agreement_tables, money, overview_table
from .progress import LiveProgress
from .run_options import takes_run_config
from .runtime import (
    ALL_JUDGED,
    GOES_ON,
    Aspects,
    DataDir,
    DryRun,
    Limit,
    MaxChars,
    Model,
    Out,
    Pairs,
    Repeats,
    Replies,
    RoleModels,
    Verbose,
    console,
    exit_code,
    interruptible,
    models_of,
    program,
    run_async,
    settings_of,
)
from .show import head

SHOWN_FAILURES = 10


@takes_run_config()
def run(
    protocols: Annotated[str, typer.Argument(help="One protocol, or several with commas between.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="A dataset's name (see `datasets`), or a JSONL, CSV or Parquet file; not needed with --replies."
        ),
    ] = None,
    replies: Replies = None,
    aspect: Aspects = None,
    model: Model = None,
    role_model: RoleModels = None,
    settings: Pairs = None,
    limit: Limit = None,
    repeats: Repeats = 1,
    data_dir: DataDir = None,
    max_chars: MaxChars = MAX_CHARACTERS,
    out: Out = None,
    *,
    config: RunConfig,
    verbose: Verbose = False,
    dry_run: DryRun = False,
) -> None:
    """Judge a dataset: results.jsonl, run.json and a table of agreement with people.

    The same command with the same --out goes on where it stopped, however it stopped.

    Ctrl-C or SIGTERM: calls in flight finish, then it ends; a second time, it ends at once.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    folder = out or default_out(names, data or replies or "")
    with interruptible("interrupted before the first call; nothing has begun"):
        prepared = plan(
            names,
            None if data is None else load_dataset(data, data_dir, max_characters=max_chars),
            aspects=aspect or [],
            settings=settings_of(settings or []),
            models=models_of(model, role_model or []),
            limit=limit,
            repeats=repeats,
            out=folder,
            replies=replies,
        )
        check_run(prepared, config)
        running = _Running(prepared, config, console())
        running.announce(dry_run)
    if dry_run:
        raise typer.Exit(ALL_JUDGED)
    with interruptible(f"interrupted; what was done is kept. The same command with --out {folder} goes on."):
        running.until_the_end(verbose)


class _Running:
    """One call of the command."""

    def __init__(self, prepared: Plan, config: RunConfig, out: Console) -> None:
        self._prepared = prepared
        self._config = config
        self._out = out

    def announce(self, dry: bool) -> None:
        """Say what is to be judged and, where it costs money or is all that is wanted, what it will take.

        Raises:
            UsageError: the folder holds another run.
        """
        there = count_judged(self._prepared, self._config)
        for part in head(self._prepared.manifest):
            self._out.print(part)
        if self._prepared.recording is not None:
            if dry:
                self._out.print(f"{len(self._prepared) - sum(there.values()):,} verdicts to be made, no call")
        elif dry or (self._prepared.costs_money and sum(there.values()) < len(self._prepared)):
            self._show(estimate(self._prepared, there))

    def until_the_end(self, verbose: bool) -> NoReturn:
        """Run, and tell what came of it."""
        counts, stop = ProgressCounters(), StopSignal()
        errors = Console(stderr=True)
        with (
            logging_to(self._prepared.folder, errors if verbose else None),
            traces_sent(),  # after the log, which gets the complaints of whoever sends them
            LiveProgress(errors, counts, stop),
        ):
            evaluation = run_async(lambda: self._carry_out(counts, stop))
        print_evaluation(self._out, evaluation)
        self._out.print(_spent(counts), soft_wrap=True)
        for line in _ending(evaluation, counts, stop):
            self._out.print(Text(line), soft_wrap=True)
        raise typer.Exit(exit_code(evaluation.stopped, len(evaluation.failed)))

    async def _carry_out(self, counts: ProgressCounters, stop: StopSignal) -> Evaluation:
        with signals_stop(stop):
            return await execute(self._prepared, self._config, counts, stop)

    def _show(self, expected: Estimate) -> None:
        if self._config.batch:
            expected = expected.discounted(BATCH_DISCOUNT)
        self._out.print(estimate_table(expected))
        limits = self._config
        if expected.exceeds(
            max_calls=limits.max_calls, max_cost=limits.max_cost, max_tokens=limits.max_tokens
        ):
            self._out.print(
                "[yellow]the budget will not do for all of it: the run will stop when it is spent[/]"
            )


def _ending(evaluation: Evaluation, counts: ProgressCounters, stop: StopSignal) -> Iterator[str]:
    """Why it ended before its work was done, and how to go on."""
    again = f"The same command with --out {evaluation.folder}"
    if evaluation.stopped:
        yield stop.explanation
        how = GOES_ON.get(evaluation.stopped, "goes on")
        yield f"{counts.judged:,} of {counts.wanted:,} verdicts are there, and kept. {again} {how}."
    elif evaluation.failed:
        yield f"{again} tries those that failed again."


def _spent(counts: ProgressCounters) -> str:
    cost = "cost unknown" if counts.cost_usd is None else money(counts.cost_usd)
    served = f", {counts.served:,} answered from what was kept" if counts.served else ""
    return f"paid in all: {counts.calls:,} calls, {counts.tokens:,} tokens, {cost}{served}"


def default_out(protocols: list[str], data: str) -> Path:
    """A folder of its own for each run."""
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
    if example and example.status == "ok" and example.transcript:
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
