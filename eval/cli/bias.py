"""Test a judge for bias: the command ``jurygraph bias``."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import typer
from click import echo

from ...state.errors import UsageError
from ..datasets.dataset import Dataset
from ..experiments.bias import Bias, BiasTests, plan_bias
from .experiment_screen import carry_out_experiment
from .option_sets import argument, flag, takes_options
from .plan_options import PlanOptions
from .progress import carry_out_to_end
from .run import announce, default_out
from .runtime import CommandConfig, Output, console, interruptible

_AUTHOR_FIELDS = {"score": ("system",), "compare": ("model_1", "model_2")}
"""The fields with the authors of an item's texts."""


@takes_options(without=("shard", "repeats", "replies"))
def bias(
    protocol: str = argument(
        "The judge: a protocol, or a file: mine.py, mine.py:graph.", "PROTOCOL"
    ),
    *,
    tests: BiasTests,
    chosen: PlanOptions,
    config: CommandConfig,
    as_json: bool = flag("Print the result as JSON alone.", name="--json"),
) -> None:
    """Test a judge for bias: position, length, its own model.

    Judges the items as they are and changed: with the answers in the other order (--swap), and with
    filler that adds nothing (--pad). By default it tests both, as far as they apply. --self FIELD
    compares texts by the judge's own model with others. A language model also judges each item
    again with nothing changed (the placebo). --limit counts unchanged items; a pair takes up to 5
    verdicts, a text up to 3.

    Writes a run folder with bias.json. The same command with the same --out resumes a test that
    stopped.

    Exit codes: 0 all judged, 2 bad input (no call made), 3 something failed, 4 budget reached, 130
    interrupted.
    """
    if chosen.data is None:
        raise UsageError("nothing to judge: give a dataset (--data)")
    out = Output(stderr=True) if as_json else console()
    folder = chosen.out or default_out(["bias", protocol], chosen.data)
    with interruptible():
        dataset, tests = _with_authors(chosen, tests)
        planned = plan_bias(protocol, dataset, tests, chosen.of_plan(folder))
        announce(out, planned.plan, config)
    if as_json:
        raise typer.Exit(carry_out_to_end(out, folder, config, planned.carry_out, _print_json)[1])
    carry_out_experiment(out, planned, folder, config)


def _with_authors(chosen: PlanOptions, tests: BiasTests) -> tuple[Dataset, BiasTests]:
    """Load the data, and rename the column of authors to its field.

    For pairs, the columns are ``FIELD_1`` and ``FIELD_2``.
    """
    column, equals, names = (tests.self_field or "").partition("=")
    if not column or column in ("system", "model"):
        dataset = chosen.dataset()
        assert dataset is not None
        return dataset, tests
    with warnings.catch_warnings():
        # The second reading gives the same notices on unused columns.
        warnings.simplefilter("ignore")
        first = chosen.dataset()
    assert first is not None
    fields = _AUTHOR_FIELDS[first.kind]
    columns = [column] if len(fields) == 1 else [f"{column}_1", f"{column}_2"]
    mapped = ",".join(f"{field}={name}" for field, name in zip(fields, columns, strict=True))
    dataset = replace(chosen, columns=[*(chosen.columns or ()), mapped]).dataset()
    assert dataset is not None
    own = f"{fields[0].removesuffix('_1')}{equals}{names}"
    return dataset, replace(tests, self_field=own)


def _print_json(_out: Output, done: Bias) -> None:
    echo(json.dumps(done.to_json(), indent=2))
