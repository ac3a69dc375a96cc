"""A run that is killed at random moments ends with what it would have ended with, and repeats only what was in flight.

``benchmarks/durability.py`` does the killing, fifty times where this does five.
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
FEW = ("--items", "8", "--concurrency", "8", "--latency-ms", "30", "--protocol", "debate")


@pytest.mark.parametrize(("journal", "kills"), [("sqlite", 2), ("postgres", 1)])
def test_a_run_outlives_kills(journal: str, kills: int) -> None:
    if journal == "postgres":
        with schema():  # skips where there is no server
            pass
    beside("benchmarks/durability.py")
    command = [sys.executable, "-m", "benchmarks.durability", "--json", "--journal", journal, *FEW]
    command += ["--kills", str(kills)]
    finished = subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=HANG_GUARD
    )
    assert finished.stdout, finished.stderr
    [outcome] = json.loads(finished.stdout.splitlines()[-1])
    assert outcome["kills"] == kills
    assert outcome["lost"] == outcome["changed"] == 0, outcome["examples"]
    assert outcome["repeated"] <= outcome["allowed"], outcome["examples"]
