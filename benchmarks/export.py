"""Measure `jurygraph export` on a large run, relative to reading the file with ``json``.

    python -m benchmarks.export [--verdicts 200000] [--kind score] [--turns]

The verdicts are generated as in ``large_run``. Each export is a separate process.
"""

from __future__ import annotations

import argparse
import sys

from .large_run import PROTOCOLS, make_large_run
from .scenario import PROGRAM, run, scratch, show, show_machine

FORMATS = ("parquet", "csv", "jsonl")
READ = "import json, sys\nfor line in open(sys.argv[1], encoding='utf-8'):\n    json.loads(line)\n"


def main() -> None:
    """Make a run, and export it in each format, with and without its texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=int, default=200_000)
    parser.add_argument(
        "--kind", choices=tuple(PROTOCOLS), default="score", help="what the verdicts are of"
    )
    parser.add_argument("--turns", action="store_true", help="export the transcripts, too")
    options = parser.parse_args()
    show_machine()
    rows: list[tuple[object, ...]] = []
    with scratch() as scratched:
        folder = scratched / "run"
        make_large_run(folder, options.verdicts, options.kind)
        results = folder / "results.jsonl"
        read = run([sys.executable, "-c", READ, str(results)], {}, scratched)
        rows.append(
            (
                "json.loads of each line",
                read.seconds,
                read.cpu_seconds,
                1.0,
                f"{read.peak_mib:.0f}",
                "",
            )
        )
        more = ["--turns"] if options.turns else []
        for ending in FORMATS:
            for texts in ([], ["--without-texts"]):
                out = scratched / f"verdicts.{ending}"
                command = [
                    *PROGRAM,
                    "export",
                    str(folder),
                    "--out",
                    str(out),
                    "--overwrite",
                    *more,
                    *texts,
                ]
                done = run(command, {}, scratched)
                if done.code:
                    raise SystemExit(
                        f"jurygraph export ended with {done.code}:\n{done.output[-3000:]}"
                    )
                what = f"{ending}{', no texts' if texts else ''}"
                size = f"{out.stat().st_size / 1e6:.0f}"
                ratio = done.cpu_seconds / read.cpu_seconds
                rows.append(
                    (what, done.seconds, done.cpu_seconds, ratio, f"{done.peak_mib:.0f}", size)
                )
        title = (
            f"{options.verdicts:,} verdicts ({options.kind}), {results.stat().st_size / 1e6:.0f} MB"
        )
    show(
        title,
        ("export", "seconds", "CPU seconds", "CPU / json.loads", "peak MiB", "MB written"),
        rows,
    )


if __name__ == "__main__":
    main()
