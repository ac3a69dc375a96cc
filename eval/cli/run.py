"""Run judges, merge shards, and compute metrics: ``jurygraph run``, ``merge``, ``measure``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from functools import partial
from pathlib import Path

import typer
from rich.text import Text

from ...graphs.engine.given_graphs import judges_of
from ...state.errors import UsageError
from ..metrics import measure as measure_all
from ..report.result_tables import overview_table
from ..results.config import RunConfig
from ..results.evaluation import Evaluation, Evaluations
from ..results.merge import merge_run_sets
from ..results.run_set import read_run_set
from ..run.batch_api.batch_provider import BATCH_DISCOUNT
from ..run.engines.ray_engine import ENGINE, Ray
from ..run.plan.estimator import Estimate, estimate, estimate_table
from ..run.plan.plan import Options, Plan, count_judged, plan
from ..run.plan.run_set_plan import RunSetPlan, estimate_runs, plan_run_set
from ..run.run_set_runner import check_run_set, execute_run_set
from ..run.runner import Engine, check_run, execute
from ..statistics.alignment import grouped
from ..tables.grid import printable
from .exit_codes import ExitCode
from .gate import GateOptions, end_with_gates
from .option_sets import argument, flag, option, takes_options
from .pilot import check_pilot, print_members_worth
from .plan_options import DATA, PlanOptions, RunPlanOptions, engine_of
from .progress import carry_out_to_end
from .report import print_answer
from .review import AnswerOptions, ReviewOptions, export_or_ask
from .runtime import (
    CommandConfig,
    Output,
    command,
    console,
    interruptible,
    show_command,
)
from .screens import Step, print_next
from .show import print_note

SHOWN_FAILURES = 2
ALL_FAILURES = 10
"""The number of reasons of failures that are printed, by default and with --verbose."""


def run(
    protocols: str = argument(
        "One or more protocols: names, or files of your own such as mine.py, mine.py:graph, label=mine.py.",
        "PROTOCOL[,PROTOCOL...]",
    ),
    *,
    chosen: RunPlanOptions,
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
    """Judge a dataset with one or more protocols.

    Prints their agreement with humans, and writes results.jsonl and run.json to the --out folder.
    Several datasets or models are judged in every combination, each in a folder below --out; limits
    apply to all of them together.

    The same command with the same --out resumes a run that stopped, for whatever reason.

    Ctrl-C or SIGTERM stops the run once the calls in flight have finished; a second one stops it at
    once.

    With --pilot N, judges N labelled items, and prints how many members of the panel are worth
    their cost. Give the pilot and the whole run one --journal FILE, so that no reply is paid for
    twice.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 5 a
    gate is not met, 130 interrupted.
    """
    gates = required.gates()
    spread = engine_of(engine, ray)
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    folder = chosen.out or default_out(names, *(chosen.data or [chosen.replies or ""]))
    out = console()
    with interruptible():
        datasets = chosen.datasets()
        models = chosen.models()
        # A folder with several runs is resumed as it was started.
        several = len(datasets) > 1 or len(models) > 1 or read_run_set(folder) is not None
        if several:
            refuse_for_several(required, reviewed)
            run_set = plan_run_set(names, datasets, models, **chosen.judging(folder))
            if chosen.pilot:
                check_pilot([of.plan for of in run_set.runs])
            announce_run_set(out, run_set, config, spread)
        else:
            judging: Options = {**chosen.judging(folder), "models": models[0]}
            prepared = plan(names, datasets[0] if datasets else None, **judging)
            if chosen.pilot:
                check_pilot([prepared])
            # Check everything before the first call, so that nobody pays for a run that ends in an
            # error.
            if spread is not None:
                spread.check(prepared, config)
            if gates:
                gates.check(prepared.manifest, {(item.group, item.id) for item in prepared.dataset})
            rules = reviewed.rules(prepared, config.dry_run)
            announce(out, prepared, config)
    if several:
        work_on_all = partial(execute_run_set, run_set, engine=spread)
        log_in = run_set.runs[0].plan.folder if run_set.shard else None

        def show_all(out: Output, evaluations: Evaluations) -> list[Step]:
            steps = print_evaluations(out, evaluations, config.verbose)
            return [*print_members_worth(out, folder), *steps] if chosen.pilot else steps

        code = carry_out_to_end(out, folder, config, work_on_all, show_all, log_in=log_in)[1]
        raise typer.Exit(code)
    # Each shard has a subfolder of the folder that the command names.
    work = partial(execute, prepared, engine=spread)

    def show(out: Output, evaluation: Evaluation) -> list[Step]:
        steps = print_evaluation(out, evaluation, config.verbose)
        return [*print_members_worth(out, folder), *steps] if chosen.pilot else [*steps]

    evaluation, _ = carry_out_to_end(out, folder, config, work, show, log_in=prepared.folder)
    if rules and not evaluation.stopped:
        asked = export_or_ask(
            evaluation.folder or folder, rules, AnswerOptions(queue=reviewed.review_queue)
        )
        if asked != ExitCode.ALL_JUDGED:
            raise typer.Exit(asked)
    end_with_gates(out, gates, evaluation, required.junit)


def refuse_for_several(required: GateOptions, reviewed: ReviewOptions) -> None:
    """Refuse options that apply to a single run.

    Raises:
        UsageError: names the option, and the command that does the same for each run.
    """
    commands: dict[str, GateOptions | ReviewOptions] = {"gate": required, "review": reviewed}
    for name_of_command, options in commands.items():
        given = (field for field in fields(options) if getattr(options, field.name) is not None)
        if (field := next(given, None)) is not None:
            raise UsageError(
                f"--{field.name.replace('_', '-')} applies to a run with one dataset and one "
                f"model; afterwards, call `{command(name_of_command, 'DIR')}` with the folder of "
                "each run"
            )


def merge(
    folders: list[Path] = argument("Folders of the shards, or the folder that holds them.", "DIR"),
    out: Path = option("Folder for the whole run.", "DIR", default=MISSING),
) -> None:
    """Merge the shards of a run.

    The result is as if one process had judged everything, in the order of the dataset. To judge
    missing shards and failed items, repeat the run's command without --shard and with this --out.

    Exit codes: 0 all judged, 2 bad input, 3 something failed or is missing.
    """
    output = console()
    is_complete = True
    for place, merged in merge_run_sets(folders, out).items():
        output.print_line(f"{place}: {merged.judged:,} verdicts, {merged.failed:,} failed")
        is_complete = is_complete and not (merged.missing or merged.failed)
        if merged.missing:
            remedy = (
                f"to judge the rest, repeat the run's command without --shard, with --out {out}"
            )
            output.print_line(f"missing: shard {', '.join(map(str, merged.missing))}; {remedy}")
    raise typer.Exit(ExitCode.ALL_JUDGED if is_complete else ExitCode.SOME_FAILED)


@dataclass(frozen=True, kw_only=True)
class MeasureOptions(PlanOptions):
    """The data to measure and the output; data are required, and there is no run to resume."""

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
    """Compute reference metrics such as ROUGE-L; no model is called.

    Writes results.jsonl and run.json as `run` does, so that `report` compares metrics with judges.

    Exit codes: 0 all measured, 2 bad input, 3 something failed.
    """
    names = [name.strip() for name in metrics.split(",") if name.strip()]
    sys.path.append(str(Path.cwd()))  # the user's own module may be here
    dataset = chosen.dataset()
    assert dataset is not None  # data were named
    # The default folder is named after the metrics, without parameters and colons.
    plain = [name.partition("?")[0].replace(":", ".") for name in names]
    folder = chosen.out or default_out(plain, chosen.data)
    # Always compute metrics again: they cost nothing, so there is no run to resume.
    evaluation = measure_all(
        names,
        dataset,
        aspects=chosen.aspect or [],
        limit=chosen.limit,
        out=folder,
        overwrite=chosen.overwrite,
    )
    out = console()
    steps = print_evaluation(out, evaluation)
    for name, reasons in evaluation.manifest["left_out"].items():
        left_out = ", ".join(f"{count:,} items with {reason}" for reason, count in reasons.items())
        out.print_line(f"{name} left out {left_out}.", "yellow")
    print_next(out, steps, str(folder))
    raise typer.Exit(ExitCode.SOME_FAILED if evaluation.failed else ExitCode.ALL_JUDGED)


def announce(out: Output, prepared: Plan, config: CommandConfig) -> None:
    """Print the planned run and, if it costs money or is a dry run, an estimate of calls and cost.

    Raises:
        UsageError: the run is not possible with these settings, or the folder has another run.
    """
    check_run(prepared, config)
    # Check first for another run's results in the folder: do not announce a run that cannot start.
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
        out.print(
            f"no estimate: the calls of {', '.join(unknown)} are not known before they are made"
        )
        return
    expected = estimate(prepared, judged)
    if config.batch:
        expected = expected.discounted(BATCH_DISCOUNT)
    announce_estimate(out, expected, config)


def announce_run_set(
    out: Output, prepared: RunSetPlan, config: CommandConfig, engine: Engine | None
) -> None:
    """Print several planned runs and, if they cost money or are a dry run, an estimate for all.

    Raises:
        UsageError: a run is not possible, or a folder contains another one.
    """
    check_run_set(prepared, config, engine)
    for name in ("note", "seats"):
        for note in dict.fromkeys(run.plan.manifest.get(name) for run in prepared.runs):
            print_note(out, {name: note})
    judged = sum(sum(run.judged(config).values()) for run in prepared.runs)
    if not config.dry_run and not (prepared.costs_money and len(prepared) > judged):
        return
    graphs = {name: graph for run in prepared.runs for name, graph in run.plan.graphs.items()}
    if unknown := [name for name, graph in graphs.items() if not judges_of(graph)]:
        out.print(
            f"no estimate: the calls of {', '.join(unknown)} are not known before they are made"
        )
        return
    announce_estimate(out, estimate_runs(prepared, config), config)


def announce_estimate(out: Output, expected: Estimate, config: RunConfig) -> None:
    """Print the expected usage of a run, and whether it may exceed the limits."""
    out.print_grids([estimate_table(expected)], gap=False)
    if expected.exceeds(**config.budget):
        out.print_line(
            "the budget may be too small: the run will stop when it is reached", "yellow"
        )


def default_out(protocols: list[str], *data: str) -> Path:
    """Return the path of a new folder below ``runs/``, named by protocols, data and time."""
    stem = "-".join(Path(name).name.split(".")[0] for name in data)
    names = "-".join(re.sub(r"[^\w.-]+", "-", name) for name in protocols)
    return Path("runs") / f"{names}-{stem}-{datetime.now():%Y%m%d-%H%M%S}"


def print_failed(out: Output, evaluation: Evaluation, verbose: bool) -> None:
    """Print why judgements failed; more reasons if ``verbose``."""
    failed = (
        (" · ".join(filter(None, (r.item, r.aspect, r.protocol))), r.error)
        for r in evaluation.failed
    )
    where = f", see {evaluation.folder}/results.jsonl"
    print_failures(out, failed, where, ALL_FAILURES if verbose else SHOWN_FAILURES)


def print_evaluations(out: Output, evaluations: Evaluations, verbose: bool = False) -> list[Step]:
    """Print the first screen and the failures of each dataset; return suggested commands."""
    from ..analysis import Study

    folder = evaluations.folder
    for dataset, runs in evaluations.by_dataset().items():
        out.rule(Text(printable(dataset), "bold"), align="left")
        judged = [run for run in runs if len(run.evaluation.results)]
        for run in judged:
            if verbose:
                out.print_line(printable(run.model), "bold")
                out.print(overview_table(run.evaluation, out.width))
        if folders := [of_run for run in judged if (of_run := run.evaluation.folder)]:
            print_answer(out, Study.of(folders), more=command("report", folder, "--all"))
        else:
            out.print_line("Nothing was judged yet.")
            out.print()
        for run in judged:
            if run.model and len(run.evaluation.failed):
                out.print_line(printable(run.model), "bold")
            print_failed(out, run.evaluation, verbose)
    examples = (example_step(run.evaluation) for run in reversed(evaluations.runs))
    return [*filter(None, [next(filter(None, examples), None)]), *report_steps(folder)]


def print_evaluation(
    out: Output, evaluation: Evaluation, verbose: bool = False, whole: int | None = None
) -> list[Step]:
    """Print the first screen of a run and its failures; return suggested commands.

    Args:
        out: the console.
        evaluation: the results of the run.
        verbose: whether to print the overview of the verdicts, too.
        whole: the number of items before sampling.
    """
    if not len(evaluation.results):
        return []
    if verbose:
        out.print(overview_table(evaluation, out.width))
    if not evaluation.folder:
        print_failed(out, evaluation, verbose)
        return []
    from ..analysis import Study

    more = command("report", evaluation.folder, "--all")
    print_answer(out, Study.of(evaluation.folder), more=more, whole=whole)
    print_failed(out, evaluation, verbose)
    example = example_step(evaluation)
    steps = report_steps(evaluation.folder)
    if (evaluation.manifest.get("data") or {}).get("labels") == "none":
        queue = command("review", evaluation.folder, "--when", "always", "--queue", "queue.csv")
        steps.append(Step("label it yourself", queue))
    return [*([example] if example else []), *steps]


def report_steps(folder: Path | None) -> list[Step]:
    """Return the commands that show the full report of a folder, as a page and in the terminal."""
    page = command("report", folder, "--html", "report.html", "--open")
    return [
        Step("see the report", page),
        Step("see all tables", command("report", folder, "--all")),
    ]


def example_step(evaluation: Evaluation) -> Step | None:
    """Return the command that shows the debate most worth reading, if there is one."""
    example = evaluation.most_worth_reading()
    if not (example and example.status == "ok" and example.transcript):
        return None
    return Step("read a transcript", show_command(evaluation.folder, example.item))


def print_failures(
    out: Output,
    failures: Iterable[tuple[str, str | None]],
    where: str = "",
    most: int = ALL_FAILURES,
) -> None:
    """Print each reason once, with the first failed item and the number of others.

    Args:
        out: the console.
        failures: the item and the reason of each.
        where: the place of the full list.
        most: the number of reasons to print; other failures are counted.
    """
    by_reason = grouped(((error or "")[:600], item) for item, error in failures)
    for reason, items in [*by_reason.items()][:most]:
        more = f" and {len(items) - 1:,} more" if len(items) > 1 else ""
        out.print(Text.assemble((f"failed: {items[0]}{more}: ", "red"), reason), soft_wrap=True)
    # Print only the first reasons and count the others, which are in the results file.
    if others := sum(map(len, [*by_reason.values()][most:])):
        out.print_line(f"... and {others:,} more failures{where}")
