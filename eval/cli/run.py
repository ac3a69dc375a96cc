"""Judge a dataset with one or more protocols: the command ``jurygraph run``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ..batch_api.request_file import BATCH_DISCOUNT
from ..datasets.dataset import MAX_CHARACTERS
from ..engines.ray_engine import Ray
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
from .data_options import Columns, SampleSize, Seed, load_data
from .engine_options import EngineAddress, EngineName, PartsOption, Workers, engine_of
from .gate import Baseline, FailUnder, Junit, MaxDrop, end_with_gates, gates_of
from .progress import LiveProgress
from .review import Queue, Rules, export_or_ask, rules_for_run
from .run_options import takes_run_config
from .runtime import (
    ALL_JUDGED,
    RESUMES,
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
    ShardOption,
    Verbose,
    console,
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
    protocols: Annotated[
        str, typer.Argument(metavar="PROTOCOL[,PROTOCOL...]", help="One protocol, or several.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A dataset's name (see `datasets`), or a JSONL, CSV or Parquet file; optional with --replies.",
        ),
    ] = None,
    replies: Replies = None,
    aspect: Aspects = None,
    model: Model = None,
    role_model: RoleModels = None,
    settings: Pairs = None,
    limit: Limit = None,
    repeats: Repeats = 1,
    shard: ShardOption = None,
    sample: SampleSize = None,
    seed: Seed = None,
    columns: Columns = None,
    data_dir: DataDir = None,
    max_chars: MaxChars = MAX_CHARACTERS,
    out: Out = None,
    fail_under: FailUnder = None,
    baseline: Baseline = None,
    max_drop: MaxDrop = None,
    junit: Junit = None,
    review: Rules = None,
    review_queue: Queue = None,
    *,
    config: RunConfig,
    engine: EngineName = None,
    engine_address: EngineAddress = None,
    workers: Workers = None,
    parts: PartsOption = None,
    verbose: Verbose = False,
    dry_run: DryRun = False,
) -> None:
    """Judge a dataset with one or more protocols and print their agreement with humans.

    Writes results.jsonl and run.json to the folder --out.

    The same command with the same --out resumes a run that stopped, whatever stopped it.

    Ctrl-C or SIGTERM stops the run after the calls in flight have finished; the second one stops it at once.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 5 a gate is not met,
    130 interrupted.
    """
    gates = gates_of(fail_under, baseline, max_drop, junit)
    spread = engine_of(engine, engine_address, workers, parts)
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    folder = out or default_out(names, data or replies or "")
    with interruptible("interrupted before the first call; nothing was started"):
        prepared = plan(
            names,
            load_data(data, data_dir, max_chars, columns, sample, seed),
            aspects=aspect or [],
            settings=settings_of(settings or []),
            models=models_of(model, role_model or []),
            limit=limit,
            repeats=repeats,
            shard=shard,
            out=folder,
            replies=replies,
        )
        check_run(prepared, config)
        if spread is not None:
            spread.check(prepared, config)
        if gates:
            gates.check(prepared.manifest, {(item.group, item.id) for item in prepared.dataset})
        rules = rules_for_run(review, review_queue, prepared, dry_run)
        running = _Running(prepared, config, spread, console())
        running.announce(dry_run)
    if dry_run:
        raise typer.Exit(ALL_JUDGED)
    with interruptible(
        f"interrupted; finished results are saved. The same command with --out {folder} resumes."
    ):
        evaluation = running.until_the_end(verbose)
        if (
            rules
            and not evaluation.stopped
            and (left := export_or_ask(evaluation.folder or folder, rules, review_queue))
        ):
            raise typer.Exit(left)
        end_with_gates(console(), gates, evaluation, junit)


class _Running:
    """Carries out one call of ``jurygraph run``: prints what will be done, does it, and prints the results."""

    def __init__(self, prepared: Plan, config: RunConfig, engine: Ray | None, out: Console) -> None:
        self._prepared = prepared
        self._config = config
        self._engine = engine
        self._out = out

    def announce(self, dry: bool) -> None:
        """Print what will be judged and, if that costs money or is a dry run, an estimate of calls and cost.

        Raises:
            UsageError: the folder holds another run.
        """
        # First of all, since it refuses a folder with another run's results: nothing is announced that cannot begin.
        there = count_judged(self._prepared, self._config)
        for part in head(self._prepared.manifest):
            self._out.print(part)
        if self._prepared.recording is not None:
            if dry:
                self._out.print(
                    f"{len(self._prepared) - sum(there.values()):,} verdicts to judge, no model call"
                )
        elif dry or (self._prepared.costs_money and sum(there.values()) < len(self._prepared)):
            self._show(estimate(self._prepared, there))

    def until_the_end(self, verbose: bool) -> Evaluation:
        """Carry out the run and print its results."""
        counts, stop = ProgressCounters(), StopSignal()
        errors = Console(stderr=True)
        with (
            logging_to(self._prepared.folder, errors if verbose else None),
            traces_sent(),  # after the log, so that a failing exporter is logged
            LiveProgress(errors, counts, stop),
        ):
            evaluation = run_async(lambda: self._carry_out(counts, stop))
        print_evaluation(self._out, evaluation)
        self._out.print(total_usage(counts), soft_wrap=True)
        for line in _ending(evaluation, counts, stop):
            self._out.print(Text(line), soft_wrap=True)
        return evaluation

    async def _carry_out(self, counts: ProgressCounters, stop: StopSignal) -> Evaluation:
        with signals_stop(stop):
            return await execute(self._prepared, self._config, counts, stop, self._engine)

    def _show(self, expected: Estimate) -> None:
        if self._config.batch:
            expected = expected.discounted(BATCH_DISCOUNT)
        self._out.print(estimate_table(expected))
        limits = self._config
        if expected.exceeds(
            max_calls=limits.max_calls, max_cost=limits.max_cost, max_tokens=limits.max_tokens
        ):
            self._out.print("[yellow]the budget may be too small: the run will stop when it is reached[/]")


def _ending(evaluation: Evaluation, counts: ProgressCounters, stop: StopSignal) -> Iterator[str]:
    """Yield lines that say why a run ended early and how to resume it; none if it is complete."""
    folder = evaluation.folder
    # A shard has a folder of its own inside the one that the command names.
    given = folder.parent if folder and "shard" in evaluation.manifest else folder
    again = f"The same command with --out {given}"
    if evaluation.stopped:
        yield stop.explanation
        how = RESUMES.get(evaluation.stopped, "resumes")
        yield f"{counts.judged:,} of {counts.wanted:,} verdicts are done and saved. {again} {how}."
    elif evaluation.failed:
        yield f"{again} retries what failed."


def total_usage(counts: ProgressCounters) -> str:
    """Write the line on what was spent since the run's first start, and how many calls the cache answered."""
    usage = counts.usage
    cost = "cost unknown" if usage.cost_usd is None else money(usage.cost_usd)
    cached = f"; {counts.served:,} more calls cached" if counts.served else ""
    lost = ""
    if counts.given_up:
        were = "1 request was" if counts.given_up == 1 else f"{counts.given_up:,} requests were"
        lost = f"; {were} given up after being sent: the provider may bill them, and they are counted as expected"
    return f"total usage: {usage.calls:,} calls, {usage.tokens:,} tokens, {cost}{cached}{lost}"


def default_out(protocols: list[str], data: str) -> Path:
    """Return the path of a new folder below ``runs/``, named by protocols, data and time."""
    stem = Path(data).name.split(".")[0]
    return Path("runs") / f"{'-'.join(protocols)}-{stem}-{datetime.now():%Y%m%d-%H%M%S}"


def print_evaluation(out: Console, evaluation: Evaluation) -> None:
    """Print the verdicts' overview, agreement with humans, failures, and where the results are."""
    if not len(evaluation.results):
        return
    out.print(overview_table(evaluation, out.width))
    for table in agreement_tables(evaluation, out.width):
        out.print(table)
    for signature in evaluation.manifest["signatures"].values():
        out.print(Text(f"configuration: {signature}", style="dim"), soft_wrap=True)
    _print_failures(out, evaluation)
    out.print(f"results: {evaluation.folder}/results.jsonl, run.json", soft_wrap=True)
    example = evaluation.most_worth_reading()
    if example and example.status == "ok" and example.transcript:
        out.print(
            f"to read a transcript: {program()} show {evaluation.folder} {example.item}", soft_wrap=True
        )


def _print_failures(out: Console, evaluation: Evaluation) -> None:
    """Print each reason once, with the first item that failed for it and how many more there are."""
    first_of: dict[str, str] = {}
    times: Counter[str] = Counter()
    others = 0
    for result in evaluation.failed:
        reason = (result.error or "")[:600]
        # Only the first few reasons are printed; the others are counted, and are in the results file.
        if reason not in first_of and len(first_of) == SHOWN_FAILURES:
            others += 1
            continue
        first_of.setdefault(reason, " · ".join(filter(None, (result.item, result.aspect, result.protocol))))
        times[reason] += 1
    for reason, item in first_of.items():
        more = f" and {times[reason] - 1:,} more" if times[reason] > 1 else ""
        out.print(Text.assemble((f"failed: {item}{more}: ", "red"), reason), soft_wrap=True)
    if others:
        out.print(f"... and {others:,} more failures, see {evaluation.folder}/results.jsonl", soft_wrap=True)
