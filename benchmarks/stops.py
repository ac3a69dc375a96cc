"""Measure what the stops save and change, on recorded panels and on debates of the offline judge.

    python -m benchmarks.stops REPLIES [--items 200] [--folds 2]

REPLIES is a file of recorded verdicts with one row for each judge and item, such as the replies of
LLMBar's authors (`judge_model`, `item_id`, `strategy`, `swapped`, `author_winner`, `label`). Each
prompt and order is a panel of five models, which are asked in every order of the models.

The debates are full debates of the offline judge on the demo datasets. Each is cut where the rule
would have ended it, which gives the same verdict as a debate with this rule. Priors are fitted to
the other folds.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

from jurygraph.eval import Result, evaluate, fit_cascade
from jurygraph.eval.analysis.early_stops import fit_changes, fit_gaps
from jurygraph.graphs.samre import rounds_agree
from jurygraph.nodes.runtime.courtroom import mean_totals
from jurygraph.nodes.runtime.stops import (
    are_stable,
    chance_of_new_score,
    chance_of_new_winner,
    panel_is_decided,
)
from jurygraph.state.aggregation import majority_vote, winner_by_mean
from jurygraph.state.transcript import Score

RISKS = (0.02, 0.05, 0.1, 0.2)
SPAN = 114.0


def panels(replies: Path) -> None:
    """Print the calls of recorded panels whose members are asked in turn."""
    votes: dict[tuple[Any, ...], dict[str, list[float]]] = defaultdict(dict)
    with gzip.open(replies, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["kind"] == "verdict" and str(row["author_winner"]) in ("1", "2"):
                key = row["strategy"], row["step"], row["swapped"], row["item_id"]
                pair = [10.0, 1.0] if str(row["author_winner"]) == "1" else [1.0, 10.0]
                votes[key][row["judge_model"]] = pair
    whole = [panel for panel in votes.values() if len(panel) == 5]
    asked = []
    changed = 0
    for panel in whole:
        winner, _ = majority_vote(panel)
        for order in permutations(panel):
            heard: dict[str, Score] = {}
            for place, member in enumerate(order, 1):
                heard[member] = panel[member]
                if panel_is_decided(heard, order[place:], (1, 10), "majority"):
                    break
            asked.append(len(heard))
            changed += majority_vote({m: panel[m] for m in heard})[0] != winner
    print(
        f"{len(whole):,} recorded panels of 5: {fmean(asked):.2f} of 5 members asked, "
        f"{changed} of {len(asked):,} winners changed"
    )


def cascades(replies: Path) -> None:
    """Print cascades of a panel of the weaker recorded models, and GPT-4 in doubt."""
    rows: dict[str, dict[str, Any]] = defaultdict(dict)
    labels = {}
    with gzip.open(replies, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            chosen = (row["kind"], row["strategy"], row["swapped"]) == ("verdict", "Vanilla", False)
            if chosen and str(row["author_winner"]) in ("1", "2"):
                rows[row["item_id"]][row["judge_model"]] = str(row["author_winner"])
                labels[row["item_id"]] = str(row["label"])
    cheap = []
    dear = []
    left_out = 0
    for item, votes in rows.items():
        weak = {model: vote for model, vote in votes.items() if model != "GPT-4"}
        if "GPT-4" not in votes or len(weak) < 3:
            left_out += 1
            continue
        pairs = {model: [10.0, 1.0] if vote == "1" else [1.0, 10.0] for model, vote in weak.items()}
        winner, details = majority_vote(pairs)
        about: Any = {"item": item, "status": "ok", "human": labels[item]}
        cheap.append(Result(**about, protocol="ensemble", winner=winner, details=details))
        dear.append(Result(**about, protocol="single", winner=votes["GPT-4"]))
    print(f"cascades: {len(cheap)} rows; {left_out} left out without GPT-4 or three other votes")
    for most in (0.1, 0.25, 0.5, 1.0):
        found = fit_cascade(cheap, dear, most=most)
        print(
            f"cascade, at most {most:.0%}: {found.items} items, accuracy {1 - found.loss:.3f} with "
            f"GPT-4 asked on {found.asked:.0%}; panel {1 - found.cheap:.3f}, GPT-4 "
            f"{1 - found.expensive:.3f}; {found.settings}"
        )


Path_ = Sequence[Score]
Ends = Callable[[Path_], bool]


def cut(path: Path_, ends: Ends, first: int) -> Path_:
    """Return a debate up to the round after which the rule ends it."""
    for length in range(first, len(path)):
        if ends(path[:length]):
            return path[:length]
    return path


def show(
    name: str, whole: Sequence[Path_], short: Sequence[Path_], outcome: Any, unit: int
) -> None:
    """Print the calls and changed outcomes of a rule."""
    calls = [unit * len(path) for path in whole]
    fewer = [unit * len(path) for path in short]
    changed = sum(outcome(a) != outcome(b) for a, b in zip(whole, short, strict=True))
    saved = 1 - sum(fewer) / sum(calls)
    print(
        f"  {name:24} {saved:6.1%} of the calls saved, {changed} of {len(whole)} outcomes changed"
    )


def debates(items: int, folds: int) -> None:
    """Print the effect of the rules of DEBATE, with a Critic that never agrees (n=4)."""
    done = evaluate("debate", "demo", settings={"n": 4}, limit=items)
    paths = [[*map(float, result.score_by_round)] for result in done.results]  # type: ignore[arg-type]
    print(
        f"debate: {len(paths)} debates on demo, {fmean(map(len, paths)) - 1:.2f} rounds on average"
    )

    def final(path: Path_) -> Score:
        return path[-1]

    show("stop=stable", paths, [cut(p, lambda p: are_stable(p, 0), 3) for p in paths], final, 2)
    for risk in RISKS:
        short = list[Path_]()
        order = list[Path_]()
        for fold in range(folds):
            prior = fit_changes([p for at, p in enumerate(paths) if at % folds != fold])
            if prior is None:
                raise SystemExit(f"the prior could not be fitted for risk={risk}")

            def ends(path: Path_, prior: tuple[float, float] = prior, risk: float = risk) -> bool:
                return chance_of_new_score(path, prior) < risk

            order += paths[fold::folds]
            short += [cut(path, ends, 2) for path in paths[fold::folds]]
        show(f"n=auto, risk={risk}", order, short, final, 2)


def hearings(items: int, folds: int) -> None:
    """Print the effect of the rules of SAMRE without a jury."""
    done = evaluate("samre", "demo-pairs", settings={"jurors": 0}, limit=items)
    paths: list[Any] = [[[*pair] for pair in result.score_by_round] for result in done.results]  # type: ignore[misc]
    print(
        f"samre: {len(paths)} hearings on demo-pairs, {fmean(map(len, paths)):.2f} rounds on average"
    )

    def winner(path: Path_) -> str:
        return winner_by_mean(mean_totals(path))

    assert all(rounds_agree(path) or len(path) == 4 for path in paths)
    show(
        "stop=stable, eps=1",
        paths,
        [cut(p, lambda p: are_stable(p, 1), 3) for p in paths],
        winner,
        3,
    )
    for risk in RISKS:
        short = list[Path_]()
        order = list[Path_]()
        for fold in range(folds):
            prior = fit_gaps([p for at, p in enumerate(paths) if at % folds != fold])
            if prior is None:
                raise SystemExit(f"the prior could not be fitted for risk={risk}")

            def ends(path: Path_, prior: tuple[float, float] = prior, risk: float = risk) -> bool:
                gaps = [(pair[0] - pair[1]) / SPAN for pair in path if isinstance(pair, list)]
                return chance_of_new_winner(gaps, prior) < risk

            order += paths[fold::folds]
            short += [cut(path, ends, 1) for path in paths[fold::folds]]
        show(f"stop=predicted, risk={risk}", order, short, winner, 3)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replies", type=Path, nargs="?")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--folds", type=int, default=2)
    given = parser.parse_args()
    if given.replies:
        panels(given.replies)
        cascades(given.replies)
    debates(given.items, given.folds)
    hearings(given.items, given.folds)


if __name__ == "__main__":
    main()
