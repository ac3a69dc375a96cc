"""Judge a dataset with one or more protocols: the command ``jurygraph run``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.text import Text

from ...graphs.given_graphs import judges_of
from ..batch_api.batch_provider import BATCH_DISCOUNT
from ..calls.call_pipeline import RunContext
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import signals_stop
from ..calls.tracing import traces_sent
from ..engines.ray_engine import ENGINE, Ray
from ..plan.estimator import Estimate, estimate, estimate_table
from ..plan.plan import Plan, count_judged, plan
from ..report.result_tables import overview_table
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.run_log import logging_to
from ..run.runner import check_run, execute
from ..statistics.alignment import grouped
from ..tables.grid import cost_in_words
from .gate import GateOptions, end_with_gates
from .option_sets import argument, option
from .plan_options import PlanOptions, engine_of
from .progress import LiveProgress
from .review import AnswerOptions, ReviewOptions, export_or_ask
from .runtime import (
    ALL_JUDGED,
    RESUMES,
    Output,
    RunFlags,
    console,
    exit_code,
    interruptible,
    program,
    run_async,
)
from .show import print_note

if TYPE_CHECKING:
    from ..results.experiment import ExperimentResult
    from ..run.run_audit import Audit
    from ..sweeps.sweep_result import Sweep

SHOWN_FAILURES = 10


def run(
    protocols: str = argument(
        "One or more protocols: names, or files of your own such as mine.py, mine.py:graph, label=mine.py.",
        "PROTOCOL[,PROTOCOL...]",
    ),
    *,
    chosen: PlanOptions,
    required: GateOptions,
    reviewed: ReviewOptions,
    config: RunConfig,
    engine: str | None = option(
        "Judge with several processes, on one machine or a Ray cluster; needs --journal postgresql://... --concurrency "
        "applies to each process, other limits to all of them together.",
        "ray",
        panel=ENGINE,
    ),
    ray: Ray,
    flags: RunFlags,
) -> None:
    """Judge a dataset with one or more protocols and print their agreement with humans.

    Writes results.jsonl and run.json to the --out folder.

    The same command with the same --out resumes a run that stopped, for whatever reason.

    Ctrl-C or SIGTERM stops the run once the calls in flight have finished; a second one stops it at once.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 5 a gate is not met,
    130 interrupted.
    """
    gates, spread = required.gates(), engine_of(engine, ray)
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    folder = chosen.out or default_out(names, chosen.data or chosen.replies or "")
    out = console()
    with interruptible():
        prepared = plan(names, chosen.dataset(), **chosen.of_plan(folder))
        if spread is not None:
            spread.check(prepared, config)
        if gates:
            gates.check(prepared.manifest, {(item.group, item.id) for item in prepared.dataset})
        rules = reviewed.rules(prepared, flags.dry_run)
        announce(out, prepared, config, flags.dry_run)
    # A shard has a folder of its own inside the one that the command names.
    work, show = partial(execute, prepared, engine=spread), partial(print_evaluation, out)
    evaluation, _ = carry_out_to_end(out, folder, flags, config, work, show, log_in=prepared.folder)
    if rules and not evaluation.stopped:
        asked = export_or_ask(evaluation.folder or folder, rules, AnswerOptions(queue=reviewed.review_queue))
        if asked != ALL_JUDGED:
            raise typer.Exit(asked)
    end_with_gates(out, gates, evaluation, required.junit)


def announce(out: Output, prepared: Plan, config: RunConfig, dry: bool) -> None:
    """Print what will be judged and, if that costs money or is a dry run, an estimate of calls and cost.

    Raises:
        UsageError: the run cannot be carried out in this way, or the folder holds another one.
    """
    check_run(prepared, config)
    # Before all else, since it refuses a folder with another run's results: nothing is announced that cannot begin.
    judged = count_judged(prepared, config)
    print_note(out, prepared.manifest)
    left = len(prepared) - sum(judged.values())
    if prepared.recording is not None:
        if dry:
            out.print(f"{left:,} verdicts to judge, no model calls")
        return
    if not dry and not (prepared.costs_money and left):
        return
    if unknown := [name for name, graph in prepared.graphs.items() if not judges_of(graph)]:
        out.print(f"no estimate: the calls of {', '.join(unknown)} are not known before they are made")
        return
    expected = estimate(prepared, judged)
    if config.batch:
        expected = expected.discounted(BATCH_DISCOUNT)
    announce_estimate(out, expected, config)


def announce_estimate(out: Output, expected: Estimate, config: RunConfig) -> None:
    """Print what a run will take, and whether that may be more than it may take."""
    out.print_grids([estimate_table(expected)], gap=False)
    if expected.exceeds(**config.budget):
        out.print_line("the budget may be too small: the run will stop when it is reached", "yellow")


Runs = TypeVar("Runs", bound="Evaluation | ExperimentResult | Sweep | Audit")


def carry_out_to_end(
    out: Output,
    folder: Path | None,
    flags: RunFlags,
    config: RunConfig,
    work: Callable[[RunContext], Coroutine[Any, Any, Runs]],
    show: Callable[[Runs], None],
    log_in: Path | None = None,
) -> tuple[Runs, int]:
    """Carry out a run or several, print what came of it and how it ended, and return it with its exit code.

    The log goes to the folder and the progress to the screen, until a signal stops the work. A dry run ends here.

    Args:
        out: where it is printed.
        folder: what ``--out`` resumes it; ``None`` for a command that takes none.
        flags: whether it is a dry run, and whether log events are printed.
        config: limits, and where replies are stored.
        work: what is done.
        show: prints what came of it.
        log_in: the folder of the log; default: ``folder``.
    """
    if flags.dry_run:
        raise typer.Exit(ALL_JUDGED)
    context = RunContext(config)
    counters, stop = context.counts, context.stop
    errors = Output(stderr=True)
    again = f"The same command with --out {folder}" if folder else "The same command"

    async def until_stopped() -> Runs:
        with signals_stop(stop):
            return await work(context)

    with interruptible(f"interrupted; finished results are saved. {again} resumes."):
        with (
            logging_to(log_in or folder, errors if flags.verbose else None, errors),
            traces_sent(),  # after the log, so that a failing exporter is logged
            LiveProgress(errors, counters, stop),
        ):
            done = run_async(until_stopped)
        show(done)
        failed = done.failed if isinstance(done.failed, int) else len(done.failed)
        out.print_line(total_usage(counters))
        if done.stopped:
            out.print_line(stop.explanation)
            saved = f"{counters.judged:,} of {counters.wanted:,} verdicts are done and saved."
            out.print_line(f"{saved} {again} {RESUMES.get(done.stopped, 'resumes once that is fixed')}.")
        elif failed:
            out.print_line(f"{again} retries what failed.")
    return done, exit_code(done.stopped, failed)


def show_experiment(out: Output, done: ExperimentResult) -> None:
    """Print the tables of an experiment, and where all of it is."""
    out.print_grids(done.grids())
    out.print_line(f"results: {done.folder}/{done.file}, results.jsonl")


def total_usage(counts: ProgressCounters) -> str:
    """Write the line on what was spent since the run's first start, and how many calls the cache answered."""
    usage = counts.usage
    cost = cost_in_words(usage.cost_usd)
    cached = f"; {counts.served:,} more calls cached" if counts.served else ""
    sent = f" ({usage.calls + counts.refused:,} requests, incl. refused ones)" if counts.refused else ""
    lost = ""
    if counts.given_up:
        were = "1 request was" if counts.given_up == 1 else f"{counts.given_up:,} requests were"
        lost = f"; {were} given up after being sent: the provider may bill for that, so the expected usage is counted"
    return f"total usage: {usage.calls:,} calls{sent}, {usage.shown_tokens()} tokens, {cost}{cached}{lost}"


def default_out(protocols: list[str], data: str) -> Path:
    """Return the path of a new folder below ``runs/``, named by protocols, data and time."""
    stem = Path(data).name.split(".")[0]
    names = "-".join(re.sub(r"[^\w.-]+", "-", name) for name in protocols)
    return Path("runs") / f"{names}-{stem}-{datetime.now():%Y%m%d-%H%M%S}"


def print_evaluation(out: Output, evaluation: Evaluation) -> None:
    """Print the verdicts' overview, agreement with humans, failures, and where the results are."""
    if not len(evaluation.results):
        return
    out.print(overview_table(evaluation, out.width))
    failed = ((" · ".join(filter(None, (r.item, r.aspect, r.protocol))), r.error) for r in evaluation.failed)
    print_failures(out, failed, f", see {evaluation.folder}/results.jsonl")
    if evaluation.folder:
        print_answer(out, [evaluation.folder])
        page = f"{program()} report {evaluation.folder} --html report.html --open"
        out.print_line(f"tables, charts and debates: {page}")
    out.print_line(f"results: {evaluation.folder}/results.jsonl, run.json")
    print_example(out, evaluation)


def print_example(out: Output, evaluation: Evaluation) -> bool:
    """Print how to read the debate that is most worth it; return whether there is one."""
    example = evaluation.most_worth_reading()
    if not (example and example.status == "ok" and example.transcript):
        return False
    where = shlex.join(("show", str(evaluation.folder), example.item))
    out.print_line(f"to read a transcript: {program()} {where}")
    return True


def print_answer(out: Output, folders: Sequence[Path], metric: str | None = None) -> dict[str, Any]:
    """Print the sentences that head a report on these runs, and return all of them as JSON."""
    from ..analysis import Study
    from ..equal_budget.finding import findings_of
    from ..report.headline import answers, headline

    study = Study.of(folders, metric=metric)
    claim = headline(study, metric)
    paying = [finding.sentence for finding in findings_of(study)]
    out.print_line(claim, style="bold")
    for answer in (*answers(study, metric), *paying):
        out.print_line(answer)
    return {"headline": claim, "answers": [*answers(study, metric, full=True), *paying]}


def print_failures(out: Output, failures: Iterable[tuple[str, str | None]], where: str = "") -> None:
    """Print each reason once, with the first item that failed for it and how many more there are."""
    by_reason = grouped(((error or "")[:600], item) for item, error in failures)
    for reason, items in [*by_reason.items()][:SHOWN_FAILURES]:
        more = f" and {len(items) - 1:,} more" if len(items) > 1 else ""
        out.print(Text.assemble((f"failed: {items[0]}{more}: ", "red"), reason), soft_wrap=True)
    # Only the first few reasons are printed; the others are counted, and are in the results file.
    if others := sum(map(len, [*by_reason.values()][SHOWN_FAILURES:])):
        out.print_line(f"... and {others:,} more failures{where}")
