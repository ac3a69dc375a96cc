"""Measure a report over many debates: to build it, and to open, filter and search it.

    python -m benchmarks.report [--debates 10000] [--browser /usr/bin/chromium]
    python -m benchmarks.report --verdicts 1000000

The debates are generated: seeded random words, as many as in debates of real models. With
``--verdicts``, it measures CPU time and memory of `agree`, `show`, `report`, `export` and resuming
on a run of that many verdicts.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jurygraph.eval import Result
from jurygraph.eval.analysis import Study
from jurygraph.eval.report.debates import Debates, run_folders
from jurygraph.eval.report.page import write_page
from jurygraph.eval.report.sections import compose
from jurygraph.eval.results.folder import read_manifest
from jurygraph.eval.results.results import ResultsFile
from jurygraph.eval.statistics.resampling import Resampling
from jurygraph.state.transcript import Usage

from .large_run import PROTOCOLS, make_large_run
from .scenario import PROGRAM, run, scratch, show, show_machine

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
)
NEEDLE = "heliotrope"


def main() -> None:
    """Make a run, report on it, open the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--debates", type=int, default=10_000)
    parser.add_argument("--browser", type=Path, default=Path("/usr/bin/chromium"))
    parser.add_argument(
        "--verdicts", type=int, help="measure the commands on a run of so many verdicts"
    )
    parser.add_argument(
        "--kind", choices=tuple(PROTOCOLS), default="score", help="what those verdicts are of"
    )
    options = parser.parse_args()
    if options.verdicts:
        measure_commands(options.verdicts, options.kind)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        make_run(folder, options.debates)
        say("results on disk", f"{(folder / 'results.jsonl').stat().st_size / 1e6:.1f} MB")
        page = build(folder, options.debates)
        if options.browser.exists():
            look(page, options.browser)
        else:
            print(f"not opened: there is no browser {options.browser}")


def measure_commands(verdicts: int, kind: str) -> None:
    """Print CPU time and memory of each command on a finished run, each in its own process."""
    show_machine()
    rows: list[tuple[object, ...]] = []
    with scratch() as scratched:
        folder = scratched / "run"
        page = scratched / "page.html"
        resumed = make_large_run(folder, verdicts, kind, failed=0.0)
        size = (folder / "results.jsonl").stat().st_size / 1e6
        for what, *arguments in (
            ("agree", "agree", folder),
            ("show", "show", folder, "item-0000001"),
            ("report", "report", folder),
            ("report --html", "report", folder, "--html", page),
            ("export", "export", folder, "--out", scratched / "verdicts.csv"),
            ("run, all judged", "run", *resumed, "--out", folder),
            ("agree, in order", "agree", folder),
        ):
            done = run([*PROGRAM, *map(str, arguments)], {}, scratched)
            if done.code:
                raise SystemExit(f"jurygraph {what} ended with {done.code}:\n{done.output[-3000:]}")
            rows.append((what, done.seconds, done.cpu_seconds, f"{done.peak_mib:.0f}"))
        page_size = page.stat().st_size / 1e6
    headings = ("command", "seconds", "of the processor", "peak MiB")
    show(
        f"{verdicts:,} verdicts, {size:,.0f} MB of results; page {page_size:.1f} MB", headings, rows
    )


def say(what: str, figure: str) -> None:
    """One figure."""
    print(f"{what:<44}{figure:>14}")


def make_run(folder: Path, debates: int) -> None:
    """A run of two protocols over items of one aspect."""
    folder.mkdir()
    draw = random.Random(0)
    words = [
        "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9)))
        for _ in range(4_000)
    ]
    file = ResultsFile(folder)
    for result in results(draw, words, debates):
        file.add(result)
    file.close()
    manifest = {
        "signatures": {
            name: f"protocol:{name}|data:made-up@0|version:0" for name in ("debate", "single")
        },
        "protocols": {"debate": {}, "single": {}},
        "models": {"debate": {"*": "made-up"}, "single": {"*": "made-up"}},
        "data": {
            "name": "made-up",
            "digest": "0",
            "kind": "score",
            "labels": "people",
            "items": debates // 2,
        },
        "aspects": [{"name": "wit", "criteria": "", "low": 1, "high": 5}],
        "note": None,
        "limit": None,
        "repeats": 1,
    }
    (folder / "run.json").write_text(json.dumps(manifest))


def results(draw: random.Random, words: list[str], debates: int) -> Iterator[Result]:
    """Debates of up to four rounds, with some hundred words a turn."""
    for number in range(debates // 2):
        human = draw.randint(1, 5)
        for protocol, rounds in (("debate", draw.randint(1, 4)), ("single", 0)):
            path = tuple(
                float(min(5, max(1, human + draw.randint(-2, 2)))) for _ in range(rounds + 1)
            )
            said = [
                " ".join(draw.choices(words, k=draw.randint(60, 160)))
                for _ in range(2 * rounds + 1)
            ]
            if number == debates // 4:
                said[-1] += f" {NEEDLE}"
            yield Result(
                item=f"item-{number:05}",
                group=f"group-{number // 8}",
                aspect="wit",
                protocol=protocol,
                status="ok",
                score=path[-1],
                human=float(human),
                rounds=rounds,
                stop_reason="no_issue" if rounds < 4 else "max_rounds",
                score_by_round=path,
                **usage_of(len(said), 0.001 * len(said)),
                transcript=tuple(turn(place, content, path) for place, content in enumerate(said)),
            )


def usage_of(calls: int, cost: float) -> dict[str, Any]:
    """Return the usage of calls in the format of turns and results."""
    return Usage(calls, 1_000 * calls, 0, 150 * calls, cost_usd=cost).flat()


def turn(place: int, content: str, path: tuple[float, ...]) -> Any:
    """Scorer and critic in turns."""
    role = "critic" if place % 2 else "scorer"
    value = False if place % 2 else path[place // 2]
    return {
        "round": (place + 1) // 2,
        "agent": role,
        "role": role,
        "content": content,
        "value": value,
        "model": "made-up",
        **usage_of(1, 0),
    }


def build(folder: Path, most: int) -> Path:
    """Compute and write the page; return its path."""
    start = time.perf_counter()
    study = Study.of(folder, resampling=Resampling(1000))
    computed = time.perf_counter()
    page = folder.parent / "page.html"
    debates = Debates(run_folders([(folder, read_manifest(folder))]), most)
    size = write_page(compose(study, "benchmark"), debates, page)
    written = time.perf_counter()
    say("computing the study", f"{computed - start:.1f} s")
    say("writing the page", f"{written - computed:.1f} s")
    say("the page", f"{size / 1e6:.1f} MB")
    say("peak memory", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return page


def look(file: Path, browser: Path) -> None:
    """Open the page as a reader does."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=list(OPTIONS))
        page = started.new_page(viewport={"width": 1366, "height": 850})
        start = time.perf_counter()
        page.goto(file.as_uri(), wait_until="commit")
        page.wait_for_selector("h1")
        say("first words on the screen", f"{1000 * (time.perf_counter() - start):.0f} ms")
        page.wait_for_selector("html[data-ready]")
        say("the list of debates", f"{1000 * (time.perf_counter() - start):.0f} ms")
        for select, label in (
            ("protocol", "debate"),
            ("reason", "max rounds"),
            ("sort", "Longest first"),
        ):
            say(f"to {select} {label!r}", f"{page.evaluate(CHANGE, [select, label]):.0f} ms")
        say("to open a debate", f"{page.evaluate(OPEN):.0f} ms")
        for select in ("protocol", "reason"):
            page.evaluate(CHANGE, [select, "All"])
        taken = page.evaluate(SEARCH, NEEDLE)
        say("to search all that was said", f"{taken['taken']:.0f} ms")
        say("longest time that the page stood still", f"{taken['still']:.0f} ms")
        say("found", page.locator("#count").inner_text())
        started.close()


CHANGE = """([id, label]) => {
  const select = document.getElementById(id);
  select.value = [...select.options].find((option) => option.text === label).value;
  const start = performance.now();
  select.dispatchEvent(new Event("change", { bubbles: true }));
  document.body.getBoundingClientRect();
  return performance.now() - start;
}"""
OPEN = """async () => {
  const start = performance.now();
  document.querySelector("#rows a").click();
  while (!document.querySelector("article.sheet")) await new Promise((resolve) => setTimeout(resolve, 1));
  return performance.now() - start;
}"""
SEARCH = """async (words) => {
  const start = performance.now();
  let still = 0;
  let last = start;
  const field = document.getElementById("search");
  field.value = words;
  field.dispatchEvent(new Event("input"));
  const done = () => / of .* debates$/.test(document.getElementById("count").textContent);
  while (!done()) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    still = Math.max(still, performance.now() - last);
    last = performance.now();
  }
  return { taken: performance.now() - start - 150, still };
}"""

if __name__ == "__main__":
    main()
