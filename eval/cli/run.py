"""Judge a dataset with one or more protocols: the command ``jurygraph run``."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from ...graphs.given_graphs import judges_of
from ..batch_api.batch_files import BATCH_DISCOUNT
from ..calls.progress_counters import ProgressCounters
from ..calls.shutdown import StopSignal, signals_stop
from ..calls.tracing import traces_sent
from ..plan.estimator import estimate, estimate_table
from ..plan.plan import Plan, count_judged, plan
from ..report.result_tables import money, overview_table
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.run_log import logging_to
from ..run.pipelines import check_run
from ..run.runner import execute
from .gate import GateOptions, end_with_gates
from .option_sets import takes_options
from .plan_options import EngineOptions, PlanOptions
from .progress import LiveProgress
from .review import ReviewOptions, export_or_ask
from .runtime import (
    ALL_JUDGED,
    RESUMES,
    DryRun,
    Output,
    Verbose,
    console,
    exit_code,
    interruptible,
    program,
    run_async,
)
from .show import head

if TYPE_CHECKING:
    from ..equal_budget.versus_result import Versus
    from ..red_team.redteam import RedTeam
    from ..sweeps.sweep_result import Sweep

SHOWN_FAILURES = 10


T = TypeVar("T")


@takes_options()
def run(
    protocols: Annotated[
        str,
        typer.Argument(
            metavar="PROTOCOL[,PROTOCOL...]",
            help="One protocol, or several: names, or files of your own: mine.py, mine.py:graph, label=mine.py.",
        ),
    ],
    chosen: PlanOptions,
    required: GateOptions,
    reviewed: ReviewOptions,
    config: RunConfig,
    engine: EngineOptions,
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
    gates, spread = required.gates(), engine.chosen()
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    folder = chosen.out or default_out(names, chosen.data or chosen.replies or "")
    out = console()
    with interruptible("interrupted before the first call; nothing was started"):
        prepared = plan(names, chosen.dataset(), **chosen.of_plan(folder))
        check_run(prepared, config)
        if spread is not None:
            spread.check(prepared, config)
        if gates:
            gates.check(prepared.manifest, {(item.group, item.id) for item in prepared.dataset})
        rules = reviewed.rules(prepared, dry_run)
        announce(out, prepared, config, dry_run)
    if dry_run:
        raise typer.Exit(ALL_JUDGED)
    counts, stop = ProgressCounters(), StopSignal()
    with interruptible(
        f"interrupted; finished results are saved. The same command with --out {folder} resumes."
    ):
        evaluation = carry_out(
            prepared.folder, verbose, counts, stop, lambda: execute(prepared, config, counts, stop, spread)
        )
        print_evaluation(out, evaluation)
        # A shard has a folder of its own inside the one that the command names.
        saved = evaluation.folder
        print_ending(
            out,
            saved.parent if saved and "shard" in evaluation.manifest else saved,
            evaluation.stopped,
            len(evaluation.failed),
            counts,
            stop,
        )
        if (
            rules
            and not evaluation.stopped
            and (left := export_or_ask(saved or folder, rules, reviewed.review_queue))
        ):
            raise typer.Exit(left)
        end_with_gates(out, gates, evaluation, required.junit)


def announce(out: Console, prepared: Plan, config: RunConfig, dry: bool) -> None:
    """Print what will be judged and, if that costs money or is a dry run, an estimate of calls and cost.

    Raises:
        UsageError: the folder holds another run.
    """
    # First of all, since it refuses a folder with another run's results: nothing is announced that cannot begin.
    judged = count_judged(prepared, config)
    for part in head(prepared.manifest):
        out.print(part)
    left = len(prepared) - sum(judged.values())
    if prepared.recording is not None:
        if dry:
            out.print(f"{left:,} verdicts to judge, no model call")
        return
    if not dry and not (prepared.costs_money and left):
        return
    if unknown := [name for name, graph in prepared.graphs.items() if not judges_of(graph)]:
        out.print(f"no estimate: what {', '.join(unknown)} asks of models is known when it is asked")
        return
    expected = estimate(prepared, judged)
    if config.batch:
        expected = expected.discounted(BATCH_DISCOUNT)
    out.print(estimate_table(expected))
    if expected.exceeds(max_calls=config.max_calls, max_cost=config.max_cost, max_tokens=config.max_tokens):
        out.print("[yellow]the budget may be too small: the run will stop when it is reached[/]")


def carry_out(
    folder: Path | None,
    verbose: bool,
    counts: ProgressCounters,
    stop: StopSignal,
    work: Callable[[], Coroutine[Any, Any, T]],
) -> T:
    """Carry out a run or a sweep with its log in the folder and its progress on the screen, until a signal stops it."""

    async def until_stopped() -> T:
        with signals_stop(stop):
            return await work()

    errors = Console(stderr=True)
    with (
        logging_to(folder, errors if verbose else None, errors),
        traces_sent(),  # after the log, so that a failing exporter is logged
        LiveProgress(errors, counts, stop),
    ):
        return run_async(until_stopped)


Runs = TypeVar("Runs", bound="Versus | Sweep | RedTeam")
Counts = TypeVar("Counts", bound=ProgressCounters)


def carry_out_to_end(
    out: Output,
    folder: Path,
    verbose: bool,
    counts: Counts,
    work: Callable[[Counts, StopSignal], Coroutine[Any, Any, Runs]],
    show: Callable[[Runs], None],
) -> NoReturn:
    """Carry out what takes several runs, print what came of it and how it ended, and end with its exit code."""
    stop = StopSignal()
    with interruptible(
        f"interrupted; finished results are saved. The same command with --out {folder} resumes."
    ):
        done = carry_out(folder, verbose, counts, stop, lambda: work(counts, stop))
        show(done)
        print_ending(out, folder, done.stopped, done.failed, counts, stop)
        raise typer.Exit(exit_code(done.stopped, done.failed))


def print_ending(
    out: Console,
    folder: Path | None,
    stopped: str | None,
    failed: int,
    counts: ProgressCounters,
    stop: StopSignal,
) -> None:
    """Print what a run or a sweep took; if it is not complete, also why it ended and how it is resumed."""
    lines = [total_usage(counts)]
    again = f"The same command with --out {folder}"
    if stopped:
        done = f"{counts.judged:,} of {counts.wanted:,} verdicts are done and saved."
        lines += [stop.explanation, f"{done} {again} {RESUMES.get(stopped, 'resumes')}."]
    elif failed:
        lines.append(f"{again} retries what failed.")
    for line in lines:
        out.print(Text(line), soft_wrap=True)


def total_usage(counts: ProgressCounters) -> str:
    """Write the line on what was spent since the run's first start, and how many calls the cache answered."""
    usage = counts.usage
    cost = "cost unknown" if usage.cost_usd is None else money(usage.cost_usd)
    cached = f"; {counts.served:,} more calls cached" if counts.served else ""
    requests = f" ({usage.calls + counts.refused:,} requests, with those refused)" if counts.refused else ""
    lost = ""
    if counts.given_up:
        were = "1 request was" if counts.given_up == 1 else f"{counts.given_up:,} requests were"
        lost = f"; {were} given up after being sent: the provider may bill them, and they are counted as expected"
    return (
        f"total usage: {usage.calls:,} calls{requests}, {usage.shown_tokens()} tokens, {cost}{cached}{lost}"
    )


def default_out(protocols: list[str], data: str) -> Path:
    """Return the path of a new folder below ``runs/``, named by protocols, data and time."""
    stem = Path(data).name.split(".")[0]
    names = "-".join(re.sub(r"[^\w.-]+", "-", name) for name in protocols)
    return Path("runs") / f"{names}-{stem}-{datetime.now():%Y%m%d-%H%M%S}"


def print_evaluation(out: Console, evaluation: Evaluation) -> None:
    """Print the verdicts' overview, agreement with humans, failures, and where the results are."""
    if not len(evaluation.results):
        return
    out.print(overview_table(evaluation, out.width))
    _print_failures(out, evaluation)
    if evaluation.folder:
        print_answer(out, [evaluation.folder])
        out.print(
            f"tables, charts and debates: {program()} report {evaluation.folder} --html report.html --open",
            soft_wrap=True,
        )
    out.print(f"results: {evaluation.folder}/results.jsonl, run.json", soft_wrap=True)
    print_example(out, evaluation)


def print_example(out: Console, evaluation: Evaluation) -> bool:
    """Print how to read the debate that is most worth it; return whether there is one."""
    example = evaluation.most_worth_reading()
    if not (example and example.status == "ok" and example.transcript):
        return False
    where = shlex.join(("show", str(evaluation.folder), example.item))
    out.print(Text(f"to read a transcript: {program()} {where}"), soft_wrap=True)
    return True


def print_answer(out: Console, folders: Sequence[Path], metric: str | None = None) -> dict[str, Any]:
    """Print the sentences that head a report on these runs, and return all of them as JSON."""
    from ..analysis import Study
    from ..equal_budget.finding import findings_of
    from ..report.headline import answers, headline

    study = Study.of(folders, metric=metric)
    claim = headline(study, metric)
    paying = [finding.sentence for finding in findings_of(study)]
    out.print(Text(claim, style="bold"), soft_wrap=True)
    for answer in (*answers(study, metric), *paying):
        out.print(Text(answer), soft_wrap=True)
    return {"headline": claim, "answers": [*answers(study, metric, full=True), *paying]}


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
