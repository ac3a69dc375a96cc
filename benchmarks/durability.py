"""Kill a run with ``kill -9`` at random moments, finish it, and check the results.

    python -m benchmarks.durability [--kills 50] [--journal sqlite|postgres|both] [--concurrency
    4,16,64] [--json]

A job repeats the same command until it ends normally; it is killed while it starts, works, or
rewrites its results. Its results are compared with an undisturbed run's, line by line,
except for times. The provider counts the requests for each call. A call that was in flight at the
kill has to be repeated, so a kill may cost as many calls as may be in flight. The exit code is 1 if
anything was lost or changed, or if more was repeated.

On Postgres each job has its own schema, in the database of ``JURYGRAPH_TEST_POSTGRES``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .scenario import (
    ASPECT,
    Finished,
    environment,
    judge,
    judging,
    results_of,
    score_items,
    scratch,
    show,
    show_machine,
)
from .simulated_provider import Simulated, simulated

POSTGRES = "postgresql://postgres@127.0.0.1:5432/test"
MOST_KILLS_OF_A_JOB = 6

JournalKind = Literal["sqlite", "postgres"]
Moment = Literal["start", "work", "end"]
MOMENTS: tuple[Moment, ...] = ("start", "work", "work", "work", "work", "end", "end")
"""The moments to draw from: before the first call, during calls, after the last reply."""


@dataclass
class Outcome:
    """The result of the jobs on one kind of journal.

    Attributes:
        start, work, end: processes killed before their first call, during calls, and after the last
            reply.
        lost: missing results.
        changed: results that differ from the undisturbed run or are duplicated.
        calls: calls of the jobs without kills.
        repeated: calls that were made more than once.
        cut_off: those of them without a reply when the process was killed.
        answered: those of them with a reply that was not saved.
        allowed: the maximum of calls that may have been in flight at the kills.
    """

    journal: str
    jobs: int = 0
    start: int = 0
    work: int = 0
    end: int = 0
    lost: int = 0
    changed: int = 0
    calls: int = 0
    repeated: int = 0
    cut_off: int = 0
    answered: int = 0
    allowed: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        """All of them."""
        return self.start + self.work + self.end

    @property
    def sound(self) -> bool:
        """Whether it is as it must be."""
        return not self.lost and not self.changed and self.repeated <= self.allowed


@dataclass(frozen=True)
class Undisturbed:
    """The undisturbed run for comparison.

    Attributes:
        results: its results by key, without times.
        calls: its number of calls.
        before, working, after: seconds before the first call, of the calls, and after the last.
    """

    results: dict[str, str]
    calls: int
    before: float
    working: float
    after: float


@dataclass(frozen=True)
class Trial:
    """The command of a trial and the number of kills."""

    folder: Path
    provider: Simulated
    protocol: str
    data: Path
    chance: random.Random

    def command(self, out: Path, journal: str | None, concurrency: int) -> list[str]:
        """The command that is given again and again."""
        more = ("--journal", journal) if journal else ()
        return judging(self.protocol, self.data, out, *self.options(concurrency), *more)

    def options(self, concurrency: int) -> tuple[str, ...]:
        """Return the options that are the same for every journal."""
        return (*ASPECT, "--concurrency", str(concurrency))


# The undisturbed run


def undisturbed(trial: Trial, concurrency: int) -> Undisturbed:
    """Run it to its end."""
    out = trial.folder / f"undisturbed-{concurrency}"
    trial.provider.reset()
    finished = judge(trial.protocol, trial.data, out, trial.provider, *trial.options(concurrency))
    seen = trial.provider.stats()
    after = _after_last_reply(finished, seen)
    before = finished.seconds - seen["span_seconds"] - after
    return Undisturbed(_results(out), seen["distinct"], before, seen["span_seconds"], after)


def _after_last_reply(finished: Finished, seen: dict[str, Any]) -> float:
    """Seconds from the last reply to the end of the process, which has just come."""
    idle: float = seen["idle_seconds"]
    return min(idle, finished.seconds)


def _results(out: Path) -> dict[str, str]:
    """Return each result without its time; a duplicate is marked."""
    found: dict[str, str] = {}
    for result in results_of(out):
        key = "|".join(str(result[name]) for name in ("item", "aspect", "protocol", "repeat"))
        line = json.dumps(without_times(result), sort_keys=True)
        found[key] = f"twice: {line}" if key in found else line
    return found


def without_times(value: Any) -> Any:
    """The same with no ``seconds`` anywhere in it."""
    if isinstance(value, dict):
        return {name: without_times(part) for name, part in value.items() if name != "seconds"}
    return [without_times(part) for part in value] if isinstance(value, list) else value


# Killing


def put_through(
    trial: Trial,
    place: AbstractContextManager[str | None],
    reference: Undisturbed,
    concurrency: int,
    most: int,
) -> Outcome:
    """Run one job: kill it up to a number of times, let it finish, and compare the results."""
    outcome = Outcome("", jobs=1, calls=reference.calls)
    out = trial.folder / f"job-{uuid.uuid4().hex[:8]}"
    trial.provider.reset()
    with place as journal:
        command = trial.command(out, journal, concurrency)
        while outcome.kills < most:
            moment = trial.chance.choice(MOMENTS)
            before = trial.provider.stats()["requests"]
            if not _killed(trial, command, reference, moment):
                break
            made = trial.provider.stats()["requests"] - before
            outcome.allowed += min(concurrency, made)
            setattr(outcome, moment, getattr(outcome, moment) + 1)
        else:
            _left_alone(trial, command)
    _count(outcome, trial.provider.stats(), reference)
    _compare(outcome, reference.results, _results(out))
    return outcome


def _killed(trial: Trial, command: Sequence[str], reference: Undisturbed, moment: Moment) -> bool:
    """Start the process and kill it; return False if it had already ended."""
    seen = trial.provider.stats()
    left = reference.working * max(0.0, 1 - seen["distinct"] / reference.calls)
    with _started(trial, command) as process:
        if moment == "start":
            _wait(process, trial.chance.uniform(0, reference.before))
        elif moment == "work":
            _wait_until(process, lambda: trial.provider.stats()["requests"] > seen["requests"])
            _wait(process, trial.chance.uniform(0, left))
        else:
            _wait_until(process, lambda: _all_answered(trial.provider, reference.calls))
            _wait(process, trial.chance.uniform(0, reference.after))
        if process.poll() is None:
            process.kill()
            process.wait()
            _wait_for_hanging_up(trial.provider)
            return True
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}: {_printed(trial)}")
    return False


def _left_alone(trial: Trial, command: Sequence[str]) -> None:
    with _started(trial, command) as process:
        process.wait()
    if process.returncode:
        raise SystemExit(f"the last run ended with {process.returncode}: {_printed(trial)}")


@contextlib.contextmanager
def _started(trial: Trial, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with (
        (trial.folder / "printed.txt").open("wb") as printed,
        subprocess.Popen(
            command,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env=environment(trial.provider.environment),
            cwd=trial.folder,
        ) as process,
    ):
        yield process


def _printed(trial: Trial) -> str:
    return (trial.folder / "printed.txt").read_text(encoding="utf-8", errors="replace")[-3000:]


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _wait_until(process: subprocess.Popen[bytes], come: Callable[[], bool]) -> None:
    """Until something has come to pass, or the process has ended."""
    while process.poll() is None and not come():
        time.sleep(0.005)


def _all_answered(provider: Simulated, calls: int) -> bool:
    seen = provider.stats()
    return bool(seen["distinct"] >= calls and not seen["in_flight"])


def _wait_for_hanging_up(provider: Simulated) -> None:
    """Wait until the provider has noticed that its clients hung up."""
    deadline = time.monotonic() + 10
    while provider.stats()["in_flight"] and time.monotonic() < deadline:
        time.sleep(0.005)


# Counting


def _count(outcome: Outcome, seen: dict[str, Any], reference: Undisturbed) -> None:
    outcome.repeated = seen["repeated"]
    outcome.answered = seen["answered_twice"]
    outcome.cut_off = seen["repeated"] - seen["answered_twice"]
    if seen["distinct"] != reference.calls:
        outcome.changed += 1
        outcome.examples.append(
            f"{seen['distinct']} different calls were made, not {reference.calls}"
        )


def _compare(outcome: Outcome, expected: dict[str, str], found: dict[str, str]) -> None:
    for key, line in expected.items():
        if key not in found:
            outcome.lost += 1
            outcome.examples.append(f"lost: {key}")
        elif found[key] != line:
            outcome.changed += 1
            outcome.examples.append(f"changed: {key}: {found[key][:300]} instead of {line[:300]}")
    for key in found.keys() - expected.keys():
        outcome.changed += 1
        outcome.examples.append(f"nobody asked for: {key}")


def _add(total: Outcome, one: Outcome) -> None:
    for name, value in asdict(one).items():
        if name != "journal":
            setattr(total, name, getattr(total, name) + value)


# Journals


def journal_place(kind: JournalKind) -> AbstractContextManager[str | None]:
    """Return the place of a job's journal: its own folder by default."""
    return contextlib.nullcontext() if kind == "sqlite" else schema()


@contextlib.contextmanager
def schema() -> Iterator[str]:
    """Yield a URL whose tables are in a schema that is dropped afterwards."""
    import psycopg

    server = os.environ.get("JURYGRAPH_TEST_POSTGRES", POSTGRES)
    name = f"jurygraph_bench_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        try:
            yield f"{server}?options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=50, help="of each kind of journal")
    parser.add_argument("--journal", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument(
        "--concurrency",
        default="4,16,64",
        help="calls in flight; with commas: one job each, in turn",
    )
    parser.add_argument("--protocol", default="debate,chateval")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--seed", type=int, default=20, help="of the moments of the kills")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    arguments = parser.parse_args()
    kinds: list[JournalKind] = (
        ["sqlite", "postgres"] if arguments.journal == "both" else [arguments.journal]
    )
    with (
        scratch() as folder,
        simulated(latency_ms=arguments.latency_ms, spread=0.3, critic="mixed") as provider,
    ):
        data = score_items(folder / "items.jsonl", arguments.items)
        trial = Trial(folder, provider, arguments.protocol, data, random.Random(arguments.seed))
        levels = [int(level) for level in arguments.concurrency.split(",")]
        references = {level: undisturbed(trial, level) for level in levels}
        outcomes = [kill_often(trial, kind, references, arguments.kills) for kind in kinds]
    report(outcomes, as_json=arguments.json)
    sys.exit(not all(outcome.sound for outcome in outcomes))


def kill_often(
    trial: Trial, kind: JournalKind, references: dict[int, Undisturbed], kills: int
) -> Outcome:
    """Run jobs at each concurrency in turn until the number of kills is reached."""
    total = Outcome(kind)
    levels = list(references)
    while total.kills < kills:
        level = levels[total.jobs % len(levels)]
        most = min(MOST_KILLS_OF_A_JOB, kills - total.kills)
        _add(total, put_through(trial, journal_place(kind), references[level], level, most))
    return total


def report(outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    """Print the results."""
    if as_json:
        print(json.dumps([{**asdict(outcome), "kills": outcome.kills} for outcome in outcomes]))
        return
    show_machine()
    names = [name for name in asdict(outcomes[0]) if name != "examples"]
    show("kill -9", names, [[getattr(outcome, name) for name in names] for outcome in outcomes])
    for outcome in outcomes:
        for example in outcome.examples[:10]:
            print(f"{outcome.journal}: {example}")


if __name__ == "__main__":
    main()
