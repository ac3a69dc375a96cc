"""Find out what debates are worth: the commands ``jurygraph try``, ``versus``, ``redteam``, ``whatif``, ``audit``."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from ...graphs.registry import DEFAULT
from ...nodes.sync_bridge import run_blocking
from ...state.errors import UsageError
from ...state.transcript import NO_USAGE
from ..analysis.equal_cost import ensemble_protocols
from ..datasets.dataset import data_options, describe_data, load_dataset
from ..experiments.attacks import DRAWN, grids, replayed
from ..experiments.equal_spending import Terms
from ..experiments.redteam import ATTACKS, carry_out_redteam, plan_redteam
from ..experiments.versus_plan import VERSUS_WITHOUT, VersusPlan, plan_versus
from ..experiments.versus_runner import Versus, carry_out_versus
from ..experiments.whatif import Edit, WhatIfOptions, carry_out_whatif, plan_whatif
from ..plan.estimator import estimate_table
from ..plan.plan import count_judged, plan
from ..results.experiment import ExperimentResult
from ..review.audit_labels import FILE, AuditedRole
from ..run.run_audit import Audit, carry_out_audit, plan_audit
from ..run.runner import check_run, execute
from ..tables.grid import Grid, columns_of, cost_in_words, printable
from .option_sets import argument, flag, option, takes_options
from .plan_options import DATA, PlanOptions
from .progress import carry_out_to_end
from .run import announce, announce_estimate, default_out, print_evaluation
from .runtime import (
    ALL_JUDGED,
    CommandConfig,
    Output,
    console,
    interruptible,
    models_of,
    program,
    settings_of,
)
from .show import print_note

TRIED = (next(iter(ensemble_protocols().values())).single, DEFAULT)
"""One judge, and the debate that it is held against."""
FEW = 24

attack = partial(option, panel="Attacks")
change = partial(option, panel="Change")


@dataclass(frozen=True, kw_only=True)
class TriedOptions(PlanOptions):
    """What is tried: a few items of some groups."""

    sample: int | None = option(metavar="N", min=1, default=FEW)
    """Number of items to judge, drawn at random, a few from each group."""
    # Two can be put in order, and of many groups more can be said than of a few.
    of_group: int | None = option(metavar="N", min=1, default=2)
    """Number of items to draw from a group before other groups have had their turn."""


@takes_options(without=("data", "replies", "limit", "repeats", "shard", "dry_run"))
def try_(
    data: str = argument(f"{DATA}.", "FILE|NAME"), *, chosen: TriedOptions, config: CommandConfig
) -> None:
    """Compare one judge with a debate on a few items of your own data.

    Prints how the file was read, judges the items with `single` and `debate`, tells which of the two agrees better with
    the labels, and estimates what judging the rest would cost.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    folder = chosen.out or default_out(["try"], data)
    out = console()
    with interruptible():
        # The whole of it is read, since at the end the rest is counted.
        whole = chosen.whole(data)
        few = whole.sample(chosen.sample or FEW, chosen.seed or 0, chosen.of_group)
        prepared = plan(TRIED, few, **chosen.of_plan(folder))
        check_run(prepared, config)
        out.print_line(f"{len(few):,} of {len(whole):,} items of {whole.name}, with {' and '.join(TRIED)}")
        announce(out, prepared, config)
    evaluation, code = carry_out_to_end(out, folder, config, partial(execute, prepared), print_evaluation)
    left = len(whole) - len(few)
    # These few tell what the others would take only if all of them were judged.
    if not left or evaluation.stopped or evaluation.failed:
        raise typer.Exit(code)
    spent = dict.fromkeys(TRIED, NO_USAGE)
    for (protocol, _aspect), overview in evaluation.figures.overviews.items():
        spent[protocol] += overview.usage
    more = left / len(few)
    costs = ((name, more * usage.calls, usage.discounted(more).cost_usd) for name, usage in spent.items())
    parts = [f"{name} about {calls:,.0f} calls, {cost_in_words(cost)}" for name, calls, cost in costs]
    out.print_line(f"judging the other {left:,} items would take: {'; '.join(parts)}")
    taken = {
        "--aspect": chosen.aspect,
        "--model": chosen.model and [chosen.model],
        "--role-model": chosen.role_model,
        "--set": chosen.settings,
    }
    given = [word for option, values in taken.items() for value in values or () for word in (option, value)]
    seed = [] if chosen.seed is None else ["--seed", str(chosen.seed)]
    # A sample again, of all items: the folder refuses a run whose signature names no seed, or another one.
    sample = ["--sample", str(len(whole)), *seed, "--out", str(evaluation.folder)]
    words = ["run", ",".join(TRIED), *data_options(describe_data(whole)), *given, *sample]
    out.print_line(f"to judge them, too: {program()} {shlex.join(words)}")
    raise typer.Exit(code)


@takes_options(without=("shard", "repeats", "replies", *VERSUS_WITHOUT))
def versus(
    protocol: str = argument(
        "The protocol to test: a name, or a file such as mine.py or mine.py:graph.", "PROTOCOL"
    ),
    *,
    terms: Terms,
    chosen: PlanOptions,
    config: CommandConfig,
) -> None:
    """Test whether a debate pays, compared with what the same budget buys from a single judge on the same items.

    Judges with the protocol first; then with a single judge sampled as often, and an ensemble of as many identical
    judges, as the protocol's spending pays for. Limits apply to all of these together.

    Writes a run folder for each, and versus.json. The same command with the same --out resumes a test that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    folder = chosen.out or default_out(["versus", protocol], chosen.data or str(terms.taken_from))
    out = console()
    with interruptible():
        planned = plan_versus(protocol, chosen.dataset(), terms, folder, config, chosen.of_plan(folder))
        _announce_versus(out, planned, config)
    work = partial(carry_out_versus, planned)
    raise typer.Exit(carry_out_to_end(out, folder, config, work, _show_versus)[1])


def _announce_versus(out: Output, planned: VersusPlan, config: CommandConfig) -> None:
    """Print what is compared and, if that costs money or is a dry run, an estimate of all runs.

    Raises:
        UsageError: a folder holds another run.
    """
    check_run(planned.own, config)
    if planned.taken_up is None:
        # For its error alone: the folder may hold another run.
        count_judged(planned.own, config)
    if not config.dry_run and not planned.own.costs_money:
        return
    print_note(out, planned.own.manifest)
    expected, sizes = planned.estimate()
    if expected is None:
        out.print_line(f"no estimate: the calls of {planned.name} are not known before they are made")
        return
    out.print_grids([estimate_table(expected)], gap=False)
    named = ", ".join(opponent.title(sizes[opponent.name]) for opponent in planned.opponents)
    out.print_line(f"expected at equal {planned.terms.by}: {named}; adjusted to what it really spends")
    if expected.exceeds(**config.budget):
        then = "each run stops when its part is spent, and only items that all have judged are compared"
        out.print_line(f"the budget may be too small: {then}", "yellow")


def _show_versus(out: Output, done: Versus) -> None:
    """Print the answer, the tables that it rests on, and where the runs are."""
    out.print_line(printable(done.finding.sentence), "bold")
    for subject, finding in done.findings.items() if len(done.findings) > 1 else ():
        out.print_line(f"{subject}: {printable(finding.sentence)}")
    for note in done.notes:
        out.print_line(f"Warning: {printable(note)}", "yellow")
    out.print()
    out.print_grids(done.grids())
    for name, folder in done.folders.items():
        out.print_line(f"{name}: {folder}")
    out.print_line(f"results: {done.folder}/{done.file}")


@dataclass(frozen=True, kw_only=True)
class AttackOptions:
    """What is drawn from the set of hostile texts."""

    attacks: int = attack(metavar="N", default=ATTACKS, min=1)
    """Number of hostile texts for each item and aspect; one is inserted at a time."""
    draw_seed: int = attack(metavar="N", default=0, name="--seed")
    """Random seed by which the hostile texts are drawn."""
    replayed: bool = flag(panel="Attacks")
    """Call no model: parse replies that honest judges might give to such texts, and count whose verdict is read."""
    all: bool = flag(f"With --replayed: parse all replies, not a sample of {DRAWN:,}.", panel="Attacks")


@takes_options(without=("shard", "repeats", "replies", "sample", "seed"))
def redteam(
    protocol: str = argument(
        "The judge: a protocol, or a file: mine.py, mine.py:graph.", "[PROTOCOL]", default="single"
    ),
    *,
    chosen: PlanOptions,
    drawn: AttackOptions,
    config: CommandConfig,
) -> None:
    """Test a judge on texts that try to dictate their own verdict.

    Judges clean items (--data; by default the bundled demo), and again with hostile texts inserted. Prints how many
    verdicts were forged (read from words copied out of the text), lost, or persuaded (moved at least halfway to what
    the text states), with agreement and cost. --limit counts clean items; each takes 1 + --attacks verdicts.

    Writes a run folder with redteam.json. The same command with the same --out resumes a test that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed or was lost, 4 budget reached,
    130 interrupted.
    """
    out = console()
    if drawn.replayed:
        out.print_grids(grids(replayed(None if drawn.all else DRAWN, drawn.draw_seed)))
        raise typer.Exit(ALL_JUDGED)
    if drawn.all:
        raise UsageError("--all only applies to replies that are read without a model: add --replayed")
    folder = chosen.out or default_out(["redteam", protocol], chosen.data or "demo")
    with interruptible():
        dataset = chosen.dataset() or "demo"
        planned = plan_redteam(protocol, dataset, chosen.of_plan(folder), drawn.attacks, drawn.draw_seed)
        announce(out, planned.plan, config)
    work = partial(carry_out_redteam, planned)
    raise typer.Exit(carry_out_to_end(out, folder, config, work, _show_experiment)[1])


def _show_experiment(out: Output, done: ExperimentResult) -> None:
    """Print the tables of an experiment, and where all of it is."""
    out.print_grids(done.grids())
    out.print_line(f"results: {done.folder}/{done.file}, results.jsonl")


@dataclass(frozen=True, kw_only=True)
class ChangeOptions:
    """Which turns are changed, and in whose debates."""

    drop: list[str] | None = change(metavar="TURN")
    """Leave out this turn, such as critic:1 (the critic's first turn); repeatable."""
    flip: list[str] | None = change(metavar="TURN")
    """Make this turn say the opposite; repeatable."""
    protocol: str | None = option(metavar="NAME")
    """Protocol whose debates are rerun; needed if the run has several."""
    data: str | None = option(f"{DATA}; needed if the run's own data has moved.", "NAME|FILE")
    data_dir: Path | None = option(metavar="DIR")
    """Folder with the files of a published dataset."""


@takes_options(without=("batch", "dry_run"))
def whatif(
    folder: Path = argument("The folder of a run.", "DIR"), *, chosen: ChangeOptions, config: CommandConfig
) -> None:
    """Find out how far a turn moves verdicts: leave it out of a run's debates, and let them continue from there.

    Calls before the turn are answered from the run's journal; calls after it are made and paid for. Results go to a
    folder in DIR/whatif, and the same command resumes a rerun that stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    dropped = [Edit(turn, "drop") for turn in chosen.drop or ()]
    edits = [*dropped, *(Edit(turn, "flip") for turn in chosen.flip or ())]
    if not edits:
        raise UsageError("no turn to change: name one with --drop or --flip, such as --drop critic:1")
    out, left = console(), 0
    with interruptible():
        items = None if chosen.data is None else load_dataset(chosen.data, chosen.data_dir)
        about: WhatIfOptions = {"data": items, "protocol": chosen.protocol}
        planned = [plan_whatif(folder, edit, config, about) for edit in edits]
        for fork in planned:
            check_run(fork.plan, fork.config)
        print_note(out, planned[0].plan.manifest)
        if planned[0].config.journal is None:
            missing = f"{folder} has no journal: the calls before the turn are made and paid for again"
            out.print_line(missing, "yellow")
    for fork in planned:
        own, work = replace(config, journal=fork.config.journal), partial(carry_out_whatif, fork)
        done, code = carry_out_to_end(out, None, own, work, _show_experiment, log_in=fork.plan.folder)
        # The command ends as the first fork did that did not end well.
        left = left or code
        # Whatever else has ended one fork, such as its budget, the next one may come further.
        if done.stopped == "interrupted":
            break
    raise typer.Exit(left)


@takes_options(without=("batch", "fresh", "overwrite"))
def audit(
    folder: Path = argument("The folder of a run.", "DIR"),
    *,
    model: str | None = option("Model that labels the turns. Default: the offline judge.", "NAME"),
    settings: list[str] | None = option("Setting of the audit; repeatable.", "KEY=VALUE", name="--set"),
    limit: int | None = option("Label only the debates of the first N verdicts.", "N", min=1),
    config: CommandConfig,
) -> None:
    """Label each turn of a run's debates: new argument, repetition or concession, and whether it answers another turn.

    Verdicts do not change. Labels are saved to DIR/audit.jsonl as they are made, and reports show them. The same
    command resumes an audit that stopped. Each turn takes one model call.

    Exit codes: 0 all labelled, 2 bad input (no call made), 3 something failed, 4 budget reached, 130 interrupted.
    """
    out, models = console(), models_of(model, []) or None
    with interruptible():
        planned = run_blocking(plan_audit(folder, models, limit, **settings_of(settings or [])))
        planned.check(config)
        if config.dry_run or planned.costs_money:
            announce_estimate(out, planned.expected, config)
    work, show = partial(carry_out_audit, planned), partial(_show_audit, folder)
    raise typer.Exit(carry_out_to_end(out, None, config, work, show)[1])


def _show_audit(folder: Path, out: Output, done: Audit) -> None:
    """Print what the turns of each role did, what could not be read, and where the labels are."""
    if done.roles:
        title = f"what turns did, labelled by {', '.join(done.models) or 'nobody'}"
        out.print_grids([Grid.from_records(title, columns_of(AuditedRole), done.roles)], gap=False)
    if "offline" in done.models:
        offline = "The offline judge is not a language model: it labels turns by their words."
        out.print_line(f"Warning: {offline} These labels only show what the command prints.", "yellow")
    for key, reason in list(done.failed.items())[:5]:
        out.print_line(f"failed: {key.item}: {reason.splitlines()[0]}", "yellow")
    left = f"; {done.left:,} left to label" if done.left else ""
    out.print_line(f"debates of {done.read:,} verdicts labelled{left}; {done.calls:,} new calls")
    out.print_line(f"labels: {folder / FILE}; table: {program()} report {folder} --table audit")
