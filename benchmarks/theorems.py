"""Print Theorems 1 and 2 of the courtroom paper in simulated courts, as in docs/papers/courtroom.md.

python -m benchmarks.theorems [--advocates 3] [--rounds 8] [--debates 10000]
"""

from __future__ import annotations

import argparse

from jurygraph.eval.analysis.courtroom_theorems import (
    COURTS,
    rounds_needed_hold,
    score_differentiation_holds,
    simulated,
)

GAPS = (0.1, 0.3, 0.5)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--advocates", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--debates", type=int, default=10_000)
    given = parser.parse_args()
    print("| court | property | assumption | wider | wider without the assumption | mean change |")
    print("|---|---|---|---|---|---|")
    for court in COURTS:
        lone = simulated(court, 1, given.rounds, given.debates)
        team = simulated(court, given.advocates, given.rounds, given.debates)
        found = score_differentiation_holds(lone[:, 0], team[:, 0])
        shares = " | ".join(f"{share:.0%}" for share in found[:4])
        print(f"| {court.name} | {shares} | {found.mean_change:+.3f} |")
    print("\n| court | gap | fewer | equally many | more | never: one, team |")
    print("|---|---|---|---|---|---|")
    for court in COURTS:
        lone = simulated(court, 1, given.rounds, given.debates)
        team = simulated(court, given.advocates, given.rounds, given.debates)
        for eps in GAPS:
            needed = rounds_needed_hold(lone, team, eps)
            shares = " | ".join(f"{share:.0%}" for share in needed[:3])
            print(
                f"| {court.name} | {eps} | {shares} | {needed.never[0]:.0%}, {needed.never[1]:.0%} |"
            )


if __name__ == "__main__":
    main()
