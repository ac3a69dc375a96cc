"""A run that is killed at a random moment ends with what it would have ended with, and repeats only what was in flight.

``benchmarks/durability.py`` does the killing, fifty times where this does one.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .journal_locations import schema
from .processes import HANG_GUARD
from .source_tree import ROOT, beside

pytestmark = pytest.mark.slow
ONE_KILL = ("--json", "--journal", "postgres", "--kills", "1")
FEW = ("--items", "8", "--concurrency", "8", "--latency-ms", "30", "--protocol", "debate")


def test_a_run_outlives_a_kill() -> None:
    with schema():  # skips where there is no server: ``test_interruption.py`` kills runs on SQLite
        beside("benchmarks/durability.py")
    command = (sys.executable, "-m", "benchmarks.durability", *ONE_KILL, *FEW)
    finished = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=HANG_GUARD
    )
    assert finished.stdout, finished.stderr
    [outcome] = json.loads(finished.stdout.splitlines()[-1])
    assert (outcome["kills"], outcome["lost"], outcome["changed"]) == (1, 0, 0), outcome["examples"]
    assert outcome["repeated"] <= outcome["allowed"], outcome["examples"]
