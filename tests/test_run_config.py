"""Test that Python and the command line take the limits of a run from ``RunConfig``."""

from dataclasses import fields
from typing import Any, get_type_hints

import click
import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.cli.app import app
from jurygraph.eval.experiments import sweep
from jurygraph.eval.experiments.sweep_plan import SWEEP_WITHOUT, SweepRunOptions
from jurygraph.eval.results.config import RunConfig, RunLimits
from jurygraph.eval.run.evaluate import RunOptions
from jurygraph.nodes.models.retry import DEFAULT_RETRY_POLICY
from jurygraph.state import UsageError
from jurygraph.state.checked import field_docstrings
from typer.main import get_command

NAMES = [field.name for field in fields(RunConfig)]
NO_NUMBERS = {"grace", "ignore_prefixes", "batch", "journal", "fresh", "overwrite"}


def test_python_takes_all_names_of_the_config_with_their_types_and_defaults() -> None:
    hints = get_type_hints(RunConfig)
    assert get_type_hints(RunLimits) == hints
    assert set(NAMES) < set(RunOptions.__annotations__)
    assert set(NAMES) < set(SweepRunOptions.__annotations__)
    assert RunConfig.from_options({}) == RunConfig.from_options(dict.fromkeys(NAMES)) == RunConfig()
    assert RunConfig().retry_policy == DEFAULT_RETRY_POLICY


def test_zero_is_no_limit_but_calls_in_flight_may_be_given_no_time() -> None:
    for name in {*NAMES} - NO_NUMBERS:
        number: dict[str, Any] = {name: 0}
        with pytest.raises(UsageError, match=f"^{name} must be above 0, got 0$"):
            RunConfig(**number)
    assert RunConfig(grace=0).grace == 0
    with pytest.raises(UsageError, match="grace must be 0 or more, got -1"):
        RunConfig(grace=-1)


@pytest.mark.parametrize(("name", "without"), [("run", ()), ("sweep", SWEEP_WITHOUT)])
def test_a_command_has_an_option_for_each_with_default_and_help(
    name: str, without: tuple[str, ...]
) -> None:
    group: Any = get_command(app)
    _, command, _ = group.resolve_command(click.Context(group), [name])
    options = {option.name: option for option in command.params}
    for field in fields(RunConfig):
        if field.name in without:
            assert field.name not in options
        else:
            option = options[field.name]
            assert (option.default, option.help) == (
                field.default,
                field_docstrings(RunConfig)[field.name],
            )


@pytest.mark.parametrize(
    "judge", [lambda **o: evaluate("single", "demo", **o), lambda **o: sweep("single", {}, **o)]
)
def test_an_unknown_option_is_refused_with_those_that_there_are(judge: Any) -> None:
    with pytest.raises(
        UsageError, match=r"unknown option 'max_dollars'; options are aspects, .*max_cost"
    ):
        judge(max_dollars=20)
