"""Make the results of a run: the commands ``jurygraph run``, ``merge`` for its shards, ``measure`` for metrics."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import typer
from rich.text import Text

from ...graphs.given_graphs import judges_of
from ..batch_api.batch_provider import BATCH_DISCOUNT
from ..engines.ray_engine import ENGINE, Ray
from ..metrics import measure as measure_all
from ..plan.estimator import Estimate, estimate, estimate_table
from ..plan.plan import Plan, count_judged, plan
from ..report.result_tables import overview_table
from ..results.config import RunConfig
from ..results.evaluation import Evaluation
from ..results.merge import merge as merge_folders
from ..run.runner import check_run, execute
from ..statistics.alignment import grouped
from .gate import GateOptions, end_with_gates
from .option_sets import argument, flag, option, takes_options
from .plan_options import DATA, PlanOptions, engine_of
from .progress import carry_out_to_end
from .report import print_answer
from .review import AnswerOptions, ReviewOptions, export_or_ask
from .runtime import ALL_JUDGED, SOME_FAILED, CommandConfig, Output, console, interruptible, program
from .show import print_note

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
    config: CommandConfig,
    engine: str | None = option(
        "Judge with several processes, on one machine or a Ray cluster; needs --journal postgresql://... --concurrency "
        "applies to each process, other limits to all of them together.",
        "ray",
        panel=ENGINE,
    ),
    ray: Ray,
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
        # All that can fail is checked before the first call, so that nobody pays for a run that ends in an error.
        if spread is not None:
            spread.check(prepared, config)
        if gates:
            gates.check(prepared.manifest, {(item.group, item.id) for item in prepared.dataset})
        rules = reviewed.rules(prepared, config.dry_run)
        announce(out, prepared, config)
    # A shard has a folder of its own inside the one that the command names.
    work = partial(execute, prepared, engine=spread)
    evaluation, _ = carry_out_to_end(out, folder, config, work, print_evaluation, log_in=prepared.folder)
    if rules and not evaluation.stopped:
        asked = export_or_ask(evaluation.folder or folder, rules, AnswerOptions(queue=reviewed.review_queue))
        if asked != ALL_JUDGED:
            raise typer.Exit(asked)
    end_with_gates(out, gates, evaluation, required.junit)


def merge(
    folders: list[Path] = argument("Folders of the shards, or the folder that holds them.", "DIR"),
    out: Path = option("Folder for the whole run.", "DIR", default=MISSING),
) -> None:
    """Merge the shards of a run, in the order of the dataset, as if one process had judged everything.

    To judge missing shards and failed items, repeat the run's command without --shard and with this --out.

    Exit codes: 0 all judged, 2 bad input, 3 something failed or is missing.
    """
    merged, output = merge_folders(folders, out), console()
    output.print_line(f"{out}: {merged.judged:,} verdicts, {merged.failed:,} failed")
    if merged.missing:
        remedy = f"to judge the rest, repeat the run's command without --shard, with --out {out}"
        output.print_line(f"missing: shard {', '.join(map(str, merged.missing))}; {remedy}")
    raise typer.Exit(SOME_FAILED if merged.missing or merged.failed else ALL_JUDGED)


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(PlanOptions):
    """What is to be measured: data are always named, and the results are no run's that could be resumed."""

    data: str = option(f"{DATA}.", "NAME|FILE", default=MISSING)
    limit: int | None = option(metavar="N", min=1)
    """Measure only the first N items."""
    out: Path | None = option(metavar="DIR")
    """Folder for the results."""
    overwrite: bool = flag()
    """Start again in a folder that already holds results; the old results are renamed."""


@takes_options(without=("replies", "model", "role_model", "settings", "repeats", "shard"))
def measure(
    metrics: str = argument(
        "One or more metrics: rouge-l, bleu-4, bertscore, moverscore, bartscore, unieval, gptscore, one that "
        "another package registers, or your own function as module:function.",
        "METRIC[,METRIC...]",
    ),
    *,
    chosen: MeasureOptions,
) -> None:
    """Compute reference metrics over a dataset; no model is called.

    Writes results.jsonl and run.json as `run` does, so that `report` compares metrics with judges.

    Exit codes: 0 all measured, 2 bad input, 3 something failed.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    sys.path.append(str(Path.cwd()))  # where the user's own module may be
    dataset = chosen.dataset()
    assert dataset is not None  # data were named
    # Without a folder given, its name is made of the metrics', without their parameters after "?" and without colons.
    plain = [name.partition("?")[0].replace(":", ".") for name in names]
    folder = chosen.out or default_out(plain, chosen.data)
    # Metrics are computed anew each time: they cost nothing, so there is no run to resume.
    evaluation = measure_all(
        names, dataset, aspects=chosen.aspect or [], limit=chosen.limit, out=folder, replace=chosen.overwrite
    )
    out = console()
    print_evaluation(out, evaluation)
    for name, reasons in evaluation.manifest["left_out"].items():
        left_out = ", ".join(f"{count:,} items with {reason}" for reason, count in reasons.items())
        out.print_line(f"{name} left out {left_out}")
    raise typer.Exit(SOME_FAILED if evaluation.failed else ALL_JUDGED)


def announce(out: Output, prepared: Plan, config: CommandConfig) -> None:
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
        if config.dry_run:
            out.print(f"{left:,} verdicts to judge, no model calls")
        return
    if not config.dry_run and not (prepared.costs_money and left):
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
        from ..analysis import Study

        print_answer(out, Study.of(evaluation.folder))
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


def print_failures(out: Output, failures: Iterable[tuple[str, str | None]], where: str = "") -> None:
    """Print each reason once, with the first item that failed for it and how many more there are."""
    by_reason = grouped(((error or "")[:600], item) for item, error in failures)
    for reason, items in [*by_reason.items()][:SHOWN_FAILURES]:
        more = f" and {len(items) - 1:,} more" if len(items) > 1 else ""
        out.print(Text.assemble((f"failed: {items[0]}{more}: ", "red"), reason), soft_wrap=True)
    # Only the first few reasons are printed; the others are counted, and are in the results file.
    if others := sum(map(len, [*by_reason.values()][SHOWN_FAILURES:])):
        out.print_line(f"... and {others:,} more failures{where}")
