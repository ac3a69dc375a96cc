"""Processes that judge parts of one run: its budget is one for all of them, also when one is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.journal.admin import summarize
from jurygraph.eval.results.merge import merge

from .processes import HANG_GUARD, Simulated, child, command_line, pairs

MODEL = "openai:gpt-4o-mini"
SHORT_LEASE = """
from jurygraph.eval.journal.call_journal import Journal
opening = Journal.open
Journal.open = lambda where, **options: opening(where, **{**options, "lease": 3})
from jurygraph.eval.cli.start import main
main()
"""


@contextmanager
def shards(
    of: int, data: Path, out: Path, journal: str, *options: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """As many processes, all started at once."""
    command = command_line(f"run single --data {data} --model {MODEL} --out {out} --journal '{journal}'")
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                child(
                    *(sys.executable, "-c", SHORT_LEASE, *command, "--shard", f"{number}/{of}", *options),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
            for number in range(1, of + 1)
        ]


@pytest.mark.slow
def test_one_budget_stops_all_processes(simulated: Simulated, postgres: str, tmp_path: Path) -> None:
    data, out = pairs(tmp_path, 90), tmp_path / "out"
    with shards(3, data, out, postgres, "--max-calls", "50", "--concurrency", "4") as processes:
        ends = [process.communicate(timeout=HANG_GUARD) for process in processes]
    assert [process.returncode for process in processes] == [4, 4, 4], ends
    assert all(
        "the budget is reached: at most 50 calls" in " ".join((out + err).split()) for out, err in ends
    )
    assert simulated.stats()["requests"] == 50
    assert next(iter(summarize(postgres).by_run.values())).calls == 50
    # A larger budget counts what all of them have spent; and no call is made again.
    with shards(3, data, out, postgres, "--max-calls", "70", "--concurrency", "4") as processes:
        ends = [process.communicate(timeout=HANG_GUARD) for process in processes]
    assert {process.returncode for process in processes} <= {0, 4}, ends
    assert simulated.stats()["requests"] == 70
    merge(sorted(out.glob("shard-*")), tmp_path / "merged")
    rest = evaluate(
        "single", data, models={"*": MODEL}, out=tmp_path / "merged", journal=postgres, max_calls=10_000
    )
    assert not rest.failed
    made = simulated.stats()["requests"]
    assert made == summarize(postgres).spent.calls == sum(line.calls for line in rest.results)
