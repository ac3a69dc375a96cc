"""A run that is killed at random moments ends with what it would have ended with, and repeats only what was in flight.

``benchmarks/durability.py`` does the killing, fifty times where this does five.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from .journal_locations import schema
from .processes import HANG_GUARD
from .source_tree import ROOT, beside

pytestmark = pytest.mark.slow
FEW = ("--items", "8", "--concurrency", "8", "--latency-ms", "30", "--protocol", "debate")


def killed(journal: str, kills: int) -> dict[str, Any]:
    """What the benchmark reports."""
    beside("benchmarks/durability.py")
    command = [sys.executable, "-m", "benchmarks.durability", "--json", "--journal", journal, *FEW]
    finished = subprocess.run(
        [*command, "--kills", str(kills)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )
    assert finished.stdout, finished.stderr
    [outcome] = json.loads(finished.stdout.splitlines()[-1])
    return dict(outcome)


def assert_nothing_was_lost(outcome: dict[str, Any], kills: int) -> None:
    assert outcome["kills"] == kills
    assert outcome["lost"] == 0, outcome["examples"]
    assert outcome["changed"] == 0, outcome["examples"]
    assert outcome["repeated"] <= outcome["allowed"], outcome["examples"]


def test_a_run_on_sqlite_outlives_two_kills() -> None:
    assert_nothing_was_lost(killed("sqlite", 2), 2)


def test_a_run_on_postgres_outlives_a_kill() -> None:
    with schema():  # skips where there is no server
        pass
    assert_nothing_was_lost(killed("postgres", 1), 1)
