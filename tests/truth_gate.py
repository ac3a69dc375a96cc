"""Judges whose truth is known, and what the first screen must and must not say of them.

    python -m tests.truth_gate --write

writes docs/promises.md: what is true, and the output of the package. ``test_truth_gate.py`` compares
the package with it.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.loading import load_runs
from jurygraph.eval.analysis.panel_value import panels_of
from jurygraph.eval.analysis.study import comparators_of
from jurygraph.eval.experiments.equal_spending import Terms
from jurygraph.eval.experiments.finding import findings_of
from jurygraph.eval.experiments.opponents import Opponent
from jurygraph.eval.experiments.versus_runner import compare
from jurygraph.eval.experiments.whatif import Edit, WhatIf, adjusted_over_turns, turn_effect
from jurygraph.eval.report.debate_tables import placebo_notes
from jurygraph.eval.report.first_screen import first_screens
from jurygraph.eval.report.panel_tables import panel_screen
from jurygraph.eval.results.evaluation import Evaluation
from jurygraph.eval.results.folder import read_manifest, results_of
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling

from .run_folders import compared, failed, run_folder, scored, turn
from .source_tree import ROOT

PAGE = ROOT / "docs" / "promises.md"
Random = np.random.Generator
Makes = Callable[[Path, Random], Sequence[Path]]
"""Writes run folders into a folder and returns them."""


Judge = Callable[[Random, Mapping[str, Any]], Any]
"""Judges a row: its ``level`` and ``own`` quality, ``length`` and ``human`` label; ``None`` is a
failure."""
STOPPED = "stopped"
"""What a judge says of a row that its run did not come to."""


def texts(
    judges: Mapping[str, Judge],
    groups: int = 40,
    size: int = 5,
    apart: float = 0.7,
    label: float | None = None,
    name: str = "mine",
) -> Makes:
    """Candidates of some sources: their quality is the source's level (so far ``apart``) and their
    own.

    Humans see it with noise; with a ``label``, all of them say that; with NaN nobody labelled the
    texts.
    """

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results: list[Result] = []
        for group in range(groups):
            level = random.normal(0, apart)
            for number in range(size):
                own = random.normal(0, 0.7)
                row: dict[str, Any] = {
                    "level": level,
                    "own": own,
                    "length": int(random.integers(100, 900)),
                }
                row["place"] = group * size + number
                row["human"] = (
                    _points(level + own + random.normal(0, 0.4)) if label is None else label
                )
                if label is not None and math.isnan(label):
                    row["human"] = None
                item = f"{group}-{number}"
                of_group = f"g{group}" if size > 1 else None
                about = {"group": of_group, "lengths": (row["length"],), "human": row["human"]}
                for protocol, judge in judges.items():
                    score = judge(random, row)
                    if score is None:
                        results.append(failed(item, protocol, aspect="wit", **about))
                    elif score != STOPPED:
                        results.append(scored(item, protocol, score=score, **about))
        return [run_folder(folder / name, results, data={"name": name, "digest": name})]

    return makes


def pairs(
    judges: Mapping[str, Judge],
    items: int = 400,
    first: float = 0.5,
    ties: float = 0.0,
    name: str = "pairs",
    orders: int = 1,
) -> Makes:
    """Comparisons of two answers, of which the first is better so often; with two ``orders``,
    judged in both.
    """

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results: list[Result] = []
        for number in range(items):
            human = "tie" if random.random() < ties else "1" if random.random() < first else "2"
            row = {"human": human, "lengths": tuple(int(x) for x in random.integers(100, 900, 2))}
            for protocol, judge in judges.items():
                winner = judge(random, row)
                if orders == 1:
                    results.append(compared(f"i{number}", protocol, winner=winner, **row))
                    continue
                swapped = {"human": _OTHER[human], "lengths": row["lengths"][::-1]}
                both = [winner, _OTHER[judge(random, swapped)]]
                same = both[0] == both[1]
                about = {"position_consistent": same, "details": {"winner_by_order": both}, **row}
                results.append(
                    compared(f"i{number}", protocol, winner=winner if same else "tie", **about)
                )
        return [
            run_folder(folder / name, results, kind="compare", data={"name": name, "digest": name})
        ]

    return makes


_OTHER = {"1": "2", "2": "1", "tie": "tie"}
"""The name of a winner where the two answers change places."""


def precise_on_texts(folder: Path, random: Random) -> Sequence[Path]:
    """A judge that sees quality exactly, which longer texts have more of, beside labels with much
    noise.
    """
    results = []
    for number in range(300):
        length = int(random.integers(100, 900))
        quality = (length - 500) / 250 + random.normal(0, 0.5)
        label = _points(quality + random.normal(0, 2))
        score = _points(quality)
        results.append(scored(f"i{number}", "precise", score=score, human=label, lengths=(length,)))
    return [run_folder(folder / "mine", results)]


def precise_on_pairs(folder: Path, random: Random) -> Sequence[Path]:
    """A judge that always picks the better answer, mostly the longer and the first; 3 labels in 10
    are wrong.
    """
    results = []
    for number in range(400):
        shorter, longer = sorted(int(x) for x in random.integers(100, 900, 2))
        best = "1" if random.random() < 0.8 else "2"
        human = best if random.random() < 0.7 else _OTHER[best]
        best_is_longer = random.random() < 0.8
        lengths = (longer, shorter) if best_is_longer == (best == "1") else (shorter, longer)
        about = {
            "position_consistent": True,
            "details": {"winner_by_order": [best, best]},
            "lengths": lengths,
        }
        results.append(compared(f"i{number}", "precise", winner=best, human=human, **about))
    return [run_folder(folder / "pairs", results, kind="compare")]


def _points(value: float) -> float:
    return float(np.clip(np.round(3 + value), 1, 5))


def sees(noise: float, shift: float = 0.0, length: float = 0.0) -> Judge:
    """Sees the quality with so much noise; adds a shift, and points for length."""

    def judge(random: Random, row: Mapping[str, Any]) -> float:
        longer = length * (row["length"] - 500) / 250
        return _points(row["level"] + row["own"] + random.normal(0, noise) + shift + longer)

    return judge


def right(share: float) -> Judge:
    """Finds the winner so often; else names another."""

    def judge(random: Random, row: Mapping[str, Any]) -> str:
        if random.random() < share:
            return str(row["human"])
        return {"1": "2", "2": "1", "tie": "1"}[row["human"]]

    return judge


def leaning(share: float, answer: str, how_often: float) -> Judge:
    """Says one and the same answer so often, and finds the winner else."""
    fair = right(share)
    return lambda random, row: answer if random.random() < how_often else fair(random, row)


def longer(how_often: float) -> Judge:
    """Takes the longer answer so often, and finds the winner else."""
    first, second = (leaning(0.85, answer, how_often) for answer in "12")
    return lambda random, row: (first if row["lengths"][0] > row["lengths"][1] else second)(
        random, row
    )


def sees_only(part: str) -> Judge:
    """Sees the source's ``level`` alone, or what is the candidate's ``own``."""
    return lambda random, row: _points(1.5 * row[part] + random.normal(0, 0.3))


def _fails_on_hard(random: Random, row: Mapping[str, Any]) -> float | None:
    # Those in the middle of the scale are hard.
    return None if abs(row["human"] - 3) < 1 else sees(0.9)(random, row)


def _stops(random: Random, row: Mapping[str, Any]) -> float | str:
    return sees(0.5)(random, row) if row["place"] < 3 else STOPPED


def _reversed(random: Random, row: Mapping[str, Any]) -> float:
    return 6 - float(sees(0.5)(random, row))


def _copies(random: Random, row: Mapping[str, Any]) -> float:
    """Follows from the row alone, so that two of them say the same."""
    return _points(row["level"] + row["own"] + row["length"] / 900 - 0.5)


def ranks_part(first: int, last: int) -> Judge:
    """Rank the candidates of the sources between two places, and say 3 of all candidates of the
    other sources.
    """
    return lambda random, row: sees(0.5)(random, row) if first <= row["place"] // 5 < last else 3.0


def silent(share: float) -> Judge:
    """See the quality with little noise, but say 3 of all candidates of this share of the
    sources.
    """
    return lambda random, row: (
        3.0 if row["place"] // 5 % 10 < 10 * share else sees(0.5)(random, row)
    )


def sees_rows(first: int, last: int, noise: float) -> Judge:
    """See the quality of the rows between two places, those from 96 to 109 badly; the run has no
    other rows.
    """

    def judge(random: Random, row: Mapping[str, Any]) -> Any:
        if not first <= row["place"] < last:
            return STOPPED
        return sees(3.0 if 96 <= row["place"] < 110 else noise)(random, row)

    return judge


def _rolls_a_die(random: Random, row: Mapping[str, Any]) -> float:
    return float(random.integers(1, 6))


def _says(word: Any) -> Judge:
    return lambda random, row: word


def one_judge_twice(folder: Path, random: Random) -> Sequence[Path]:
    """The same judges, model and settings on two datasets."""
    folders = []
    for name in ("first", "second"):
        run = texts({"good": sees(0.4), "weak": sees(1.5)}, groups=30, name=name)(folder, random)[0]
        manifest = run / "run.json"
        manifest.write_text(
            manifest.read_text().replace(
                '"protocol:good"', f'"protocol:good|data:{name}@{name}|models:*=a"'
            )
        )
        folders.append(run)
    return folders


def two_runs(folder: Path, random: Random) -> Sequence[Path]:
    """Two runs of one judge, whose noise differs."""
    runs = []
    seed = int(random.integers(1000))
    for name, noise in (("one", 0.80), ("two", 0.81)):
        run = texts({"debate": sees(noise)})(folder / name, np.random.default_rng(seed))[0]
        runs.append(run.rename(folder / f"run-{name}").rename(folder / name / name))
    return runs


def personas(folder: Path, random: Random) -> Sequence[Path]:
    """An ensemble of three roles beside ``single``, with the referees' turns."""
    results = []
    for number in range(60):
        quality = random.normal(0, 1)
        about: dict[str, Any] = {"human": _points(quality), "aspect": "wit"}
        points = [_points(quality + random.normal(0, 0.9)) for _ in range(3)]
        turns = tuple(turn(f"referee_{at}", score) for at, score in enumerate(points, start=1))
        mean = sum(points) / len(points)
        results.append(
            scored(f"i{number}", "ensemble", score=mean, calls=3, transcript=turns, **about)
        )
        results.append(
            scored(f"i{number}", "single", score=_points(quality + random.normal(0, 0.5)), **about)
        )
    settings = {"ensemble": {"roles": "diverse", "referees": 3}, "single": {}}
    return [run_folder(folder / "mine", results, protocols=settings)]


def missing_annotators(folder: Path, random: Random) -> Sequence[Path]:
    """Items whose annotators are not all there, judged by the offline judge."""
    items = []
    for number in range(40):
        ratings = [1 + number % 5, None, 1 + number % 3] if number % 2 else [None, 1 + number % 5]
        shown = {
            "source": f"It rained all day, and river {number} rose.",
            "candidate": "It rained. " * (1 + number % 7),
        }
        items.append({"id": f"i{number}", **shown, "human": {"coherence": ratings}})
    evaluate("single", items, aspects=["coherence"], out=folder / "mine")
    return [folder / "mine"]


def groups_of_one_and_two(folder: Path, random: Random) -> Sequence[Path]:
    """Sources with one candidate or two."""
    results = []
    for group in range(160):
        for number in range(1 + group % 2):
            quality = random.normal(0, 1)
            about = {"group": f"g{group}", "human": _points(quality + random.normal(0, 0.4))}
            for protocol, noise in (("good", 0.3), ("weak", 2.0)):
                score = _points(quality + random.normal(0, noise))
                results.append(scored(f"{group}-{number}", protocol, score=score, **about))
    return [run_folder(folder / "mine", results)]


def an_aspect_that_hardly_varies(folder: Path, random: Random) -> Sequence[Path]:
    """Two aspects, one of which nearly all texts have the best label for."""
    results = []
    for number in range(40):
        quality = random.normal(0, 1)
        for aspect, human in (("wit", _points(quality)), ("spelling", 4.0 if number < 3 else 5.0)):
            for protocol, noise in (("good", 0.5), ("weak", 1.5)):
                score = _points(quality + random.normal(0, noise))
                results.append(
                    scored(f"i{number}", protocol, score=score, human=human, aspect=aspect)
                )
    return [run_folder(folder / "mine", results)]


def one_large_group(folder: Path, random: Random) -> Sequence[Path]:
    """Texts of 30 sources, one of which has 300 of the 358."""
    results = []
    for number in range(358):
        quality = random.normal(0, 1)
        group = max(0, number - 328)
        for protocol, noise in (("good", 0.5), ("weak", 0.6)):
            score = _points(quality + random.normal(0, noise))
            about = {"group": f"g{group}", "human": _points(quality), "aspect": "wit"}
            results.append(scored(f"i{number}", protocol, score=score, **about))
    return [run_folder(folder / "mine", results)]


def an_annotator_with_one_label(folder: Path, random: Random) -> Sequence[Path]:
    """Three annotators, the third of whom gives every text a 4."""
    results = []
    for number in range(60):
        quality = random.normal(0, 1)
        ratings = [_points(quality + random.normal(0, 0.5)) for _ in range(2)] + [4.0]
        about: dict[str, Any] = {"human": float(np.mean(ratings)), "annotations": tuple(ratings)}
        results.append(
            scored(f"i{number}", "good", score=_points(quality + random.normal(0, 0.3)), **about)
        )
    return [run_folder(folder / "mine", results)]


def fails_now_and_then(random: Random, row: Mapping[str, Any]) -> float | None:
    """See the quality with noise; fail on one text in twenty."""
    return None if random.random() < 0.05 else sees(1.6)(random, row)


def texts_of_three(noise: float, length: float = 0.0) -> Makes:
    """Make texts with three annotators, the longer ones of which are better. A judge without noise is
    more precise than the labels.
    """

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results = []
        for number in range(300):
            size = random.normal()
            quality = 0.6 * size + 0.8 * random.normal()
            ratings = tuple(_points(quality + random.normal(0, 1)) for _ in range(3))
            about: dict[str, Any] = {
                "human": float(np.mean(ratings)),
                "annotations": ratings,
                "lengths": (int(np.exp(6 + 0.5 * size)),),
            }
            score = _points(quality + length * size + random.normal(0, noise))
            results.append(scored(f"i{number}", "judge", score=score, **about))
        return [run_folder(folder / "mine", results)]

    return makes


def precise_on_pairs_of_three(folder: Path, random: Random) -> Sequence[Path]:
    """Make pairs with a vote of three annotators each, two of ten of which are wrong; the judge is
    always right, and the longer answer is better in 80 %.
    """
    results = []
    for number in range(400):
        shorter, longer = sorted(int(x) for x in random.choice(np.arange(100, 900), 2, False))
        best = "1" if random.random() < 0.5 else "2"
        votes = tuple(best if random.random() < 0.8 else _OTHER[best] for _ in range(3))
        human = "1" if votes.count("1") > 1 else "2"
        first_is_longer = (random.random() < 0.8) == (best == "1")
        lengths = (longer, shorter) if first_is_longer else (shorter, longer)
        about: dict[str, Any] = {"human": human, "annotations": votes, "lengths": lengths}
        results.append(compared(f"i{number}", "judge", winner=best, **about))
    return [run_folder(folder / "pairs", results, kind="compare")]


def no_skill_beside_three_annotators(folder: Path, random: Random) -> Sequence[Path]:
    """Make texts with three annotators, a judge that always says 3, and one that rolls a die."""
    results = []
    for number in range(120):
        quality = random.normal(0, 0.8)
        ratings = tuple(_points(quality + random.normal(0, 0.7)) for _ in range(3))
        about: dict[str, Any] = {"human": float(np.mean(ratings)), "annotations": ratings}
        results.append(scored(f"i{number}", "always", score=3.0, **about))
        die = float(random.integers(1, 6))
        results.append(scored(f"i{number}", "random", score=die, **about))
    return [run_folder(folder / "mine", results)]


def _winner_of(first: float, second: float) -> str:
    return "1" if first > second else "2" if second > first else "tie"


def debate_of_pairs(ties: float) -> Makes:
    """Make debates whose last scores are one new sample, beside an ensemble of four such samples.

    Scores are whole numbers, so the mean of four has fewer ties; this share of the labels are ties.
    """

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        gaps = random.normal(0, 1.5, 240)
        least = float(np.quantile(np.abs(gaps), ties))
        results = []
        for number, gap in enumerate(gaps.tolist()):
            human = "tie" if abs(gap) <= least else _winner_of(gap, 0.0)
            level = random.normal(6, 1)
            seen = np.array([level + gap / 2, level - gap / 2])
            samples = np.round(seen + random.normal(0, 1, (6, 2)))
            pairs = [(float(first), float(second)) for first, second in samples]
            about: dict[str, Any] = {"human": human, "calls": 4}
            path = (pairs[0], pairs[1])
            results.append(
                compared(
                    f"i{number}",
                    winner=_winner_of(*pairs[1]),
                    scores=pairs[1],
                    score_by_round=path,
                    **about,
                )
            )
            turns = tuple(turn(f"referee_{at}", list(pairs[1 + at])) for at in range(1, 5))
            mean = tuple(float(value) for value in samples[2:].mean(axis=0))
            results.append(
                compared(
                    f"i{number}",
                    "ensemble",
                    winner=_winner_of(*mean),
                    scores=mean,
                    transcript=turns,
                    **about,
                )
            )
        settings = {"ensemble": {"roles": "same", "referees": 4}, "debate": {}}
        return [run_folder(folder / "pairs", results, kind="compare", protocols=settings)]

    return makes


def debate_of_scores(folder: Path, random: Random) -> Sequence[Path]:
    """Make debates whose last score is the rounded mean of four samples, beside an ensemble of four
    other samples, whose mean has more steps.
    """
    results = []
    for number in range(240):
        quality = random.normal(0, 0.9)
        samples = [_points(quality + random.normal(0, 1)) for _ in range(8)]
        about: dict[str, Any] = {"human": _points(quality), "group": f"g{number // 6}", "calls": 4}
        last = math.floor(float(np.mean(samples[:4])) + 0.5)
        path = (samples[0], float(last))
        results.append(scored(f"i{number}", score=path[-1], score_by_round=path, **about))
        turns = tuple(turn(f"referee_{at}", samples[3 + at]) for at in range(1, 5))
        mean = float(np.mean(samples[4:]))
        results.append(scored(f"i{number}", "ensemble", score=mean, transcript=turns, **about))
    settings = {"ensemble": {"roles": "same", "referees": 4}, "debate": {}}
    return [run_folder(folder / "mine", results, protocols=settings)]


def a_debate_that_is_right(folder: Path, random: Random) -> Sequence[Path]:
    """Make debates that end with the label, beside an ensemble of four that sees little."""
    results = []
    for number in range(120):
        quality = random.normal(0, 1)
        human = _points(quality)
        first, *samples = (_points(quality + random.normal(0, 2)) for _ in range(5))
        about: dict[str, Any] = {"human": human, "calls": 4}
        results.append(scored(f"i{number}", score=human, score_by_round=(first, human), **about))
        turns = tuple(turn(f"referee_{at}", value) for at, value in enumerate(samples, start=1))
        mean = float(np.mean(samples))
        results.append(scored(f"i{number}", "ensemble", score=mean, transcript=turns, **about))
    settings = {"ensemble": {"roles": "same", "referees": 4}, "debate": {}}
    return [run_folder(folder / "mine", results, protocols=settings)]


def against_geval(judge: Judge, calls: int = 1) -> Makes:
    """Make debates, and ``geval`` on the same texts, which made so many calls."""

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results = []
        for number in range(60):
            row = {"level": random.normal(), "own": 0.0, "place": number}
            human = _points(row["level"])
            about: dict[str, Any] = {"human": human, "aspect": "wit"}
            last = _points(row["level"] + random.normal(0, 0.3))
            path = (_points(row["level"] + random.normal(0, 1)), last)
            results.append(scored(f"i{number}", score=last, score_by_round=path, **about))
            score = judge(random, row)
            if score is None:
                error = (
                    "ReplyError: planner, round 0: The reply has no list of steps. Raw reply: 'Yes'"
                )
                results.append(failed(f"i{number}", "geval", error=error, **about))
            else:
                results.append(scored(f"i{number}", "geval", score=score, calls=calls, **about))
        return [run_folder(folder / "mine", results)]

    return makes


def five_judges(correlation: float, skills: Sequence[float]) -> Makes:
    """Make judges of pairs, which follow one draw on this share of the items."""

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results = []
        for number in range(300):
            common = random.random()
            together = random.random() < correlation
            for place, skill in enumerate(skills, start=1):
                is_right = (common if together else random.random()) < skill
                winner = "1" if is_right else "2"
                results.append(compared(f"i{number}", f"judge{place}", winner=winner, human="1"))
        return [run_folder(folder / "pairs", results, kind="compare")]

    return makes


def redrawn_debates(repeats: int) -> Makes:
    """Make debates whose last score is a new draw, so that the discussion has no effect."""

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results = []
        for number in range(60):
            for repeat in range(repeats):
                first, last = (float(random.integers(1, 6)) for _ in range(2))
                about: dict[str, Any] = {"human": 3.0, "score_by_round": (first, last)}
                results.append(scored(f"i{number}", score=last, repeat=repeat, **about))
        return [run_folder(folder / "mine", results)]

    return makes


def comparisons_without_labels(folder: Path, random: Random) -> Sequence[Path]:
    """Comparisons judged in both orders, of which answer 2 wins most; nobody labelled them."""
    results = []
    for number in range(60):
        winner, other = ("2" if random.random() < 0.7 else "1" for _ in range(2))
        both = [winner, winner if random.random() < 0.8 else other]
        same = both[0] == both[1]
        about = {"position_consistent": same, "details": {"winner_by_order": both}}
        results.append(compared(f"i{number}", "debate", winner=winner if same else "tie", **about))
    unlabelled = {"name": "mine", "labels": "none"}
    return [run_folder(folder / "mine", results, kind="compare", data=unlabelled)]


GATE: Mapping[str, Makes] = {
    "a better judge": texts({"good": sees(0.4), "weak": sees(1.6)}),
    "a slightly better judge": texts({"good": sees(0.80), "fair": sees(0.82)}),
    "three judges, the second as good": texts(
        {"one": sees(0.5), "two": sees(0.5), "weak": sees(2.5)}
    ),
    "a constant score": texts({"always": _says(3.0), "good": sees(0.6)}),
    "a constant winner": pairs(
        {"always": _says("1"), "good": right(0.80), "fair": right(0.70)}, items=600, first=0.85
    ),
    "a nearly constant winner": pairs(
        {"nearly": leaning(0.5, "1", 0.97), "good": right(0.77)}, items=600, first=0.85
    ),
    "a judge that knows only the source": texts({"of_source": sees_only("level")}),
    "a judge of sources beside a judge of candidates": texts(
        {"of_source": sees_only("level"), "of_candidate": sees_only("own")}, groups=60, apart=1.4
    ),
    "a judge that fails on hard items": texts({"steady": sees(0.9), "failing": _fails_on_hard}),
    "a low level": texts({"low": sees(0.4, shift=-1.5), "fair": sees(1.2)}),
    "a level that hardly differs": texts({"high": sees(0.4, shift=0.15)}, groups=100),
    "longer texts": texts({"long": sees(0.4, length=0.8), "fair": sees(0.6)}),
    "longer answers": pairs({"long": longer(0.5), "fair": right(0.75)}),
    "the first place": pairs({"first": leaning(0.9, "1", 0.5), "fair": right(0.75)}, orders=2),
    "the second place": pairs({"second": leaning(0.9, "2", 0.4), "fair": right(0.75)}, orders=2),
    "random scores": texts({"random": lambda random, row: float(random.integers(1, 6))}),
    "random winners": pairs(
        {"random": lambda random, row: "12"[int(random.integers(2))]}, first=0.7
    ),
    "reversed": texts({"reversed": _reversed}),
    "the same judge under two names": texts({"one": _copies, "two": _copies}),
    "the same judge under two names, and a worse one": texts(
        {"one": _copies, "two": _copies, "weak": sees(2.5)}
    ),
    "six items": texts({"good": sees(0.3), "weak": sees(0.9)}, groups=6, size=1),
    "five groups": texts({"good": sees(0.4), "weak": sees(1.2)}, groups=5, size=10),
    "silent on different sources": texts({"many": ranks_part(0, 24), "fewer": ranks_part(20, 40)}),
    "many ties": pairs({"always": _says("tie"), "good": right(0.7)}, ties=0.6),
    "twenty of twenty": pairs({"perfect": right(1.0)}, items=20),
    "labels of one value": texts({"good": sees(0.3)}, label=3.0),
    "one judge on two datasets": one_judge_twice,
    "a judge that was stopped": texts({"good": sees(0.4), "weak": sees(1.5), "stopped": _stops}),
    "two runs of one judge": two_runs,
    "an ensemble of personas": personas,
    "missing annotators": missing_annotators,
    "labels of one value, and a judge that always says it": texts(
        {"always": _says(3.0)}, label=3.0
    ),
    "eight high levels": texts(
        {f"high{number}": sees(0.5, shift=1.5) for number in range(8)}, groups=30
    ),
    "silent on a third of the sources": texts(
        {"honest": sees(0.7), "silent": silent(0.3)}, groups=60
    ),
    "silent on half of the sources": texts({"honest": sees(0.5), "silent": silent(0.5)}, groups=60),
    "one score for each source": texts(
        {"of_source": lambda random, row: _points(1.5 * row["level"])}
    ),
    "a precise judge of texts, noisy labels": precise_on_texts,
    "a precise judge of pairs, noisy labels": precise_on_pairs,
    "a small overlap": texts(
        {"early": sees_rows(0, 110, 0.4), "late": sees_rows(96, 200, 0.8)}, 200, 1
    ),
    "twelve random judges": texts({f"random{number}": _rolls_a_die for number in range(12)}, 30),
    "one group": texts({"good": sees(0.3), "weak": sees(1.5)}, groups=1, size=40),
    "groups of one and two": groups_of_one_and_two,
    "judges without overlap": texts(
        {"early": sees_rows(0, 96, 0.4), "late": sees_rows(110, 200, 0.8)}, 200, 1
    ),
    "an annotator with one label": an_annotator_with_one_label,
    "all verdicts the same": texts({"always": _says(3.0), "flat": _says(3.0)}),
    "ties only": pairs({"judge": leaning(0.5, "tie", 0.5)}, ties=1.0),
    "an opponent that fails on some texts": texts({"good": sees(0.3), "other": fails_now_and_then}),
    "every judgement failed": texts({"single": lambda random, row: None}, groups=40, size=1),
    "comparisons without labels": comparisons_without_labels,
    "scores without labels": texts(
        {"high": sees(0.5, shift=1.0), "low": sees(0.5)}, label=math.nan
    ),
    "a length bias, three annotators": texts_of_three(0.5, length=0.7),
    "a precise judge of texts, three annotators": texts_of_three(0.0),
    "a precise judge of pairs, three annotators": precise_on_pairs_of_three,
    "random winners, nearly all labels equal": pairs(
        {
            "random": leaning(0.5, "1", 0.9),
            "coin": lambda random, row: "12"[int(random.integers(2))],
        },
        items=200,
        first=0.95,
    ),
    "groups of two": texts(
        {"of_source": sees_only("level"), "of_candidate": sees_only("own")}, 80, 2, apart=1.4
    ),
    "an aspect that hardly varies": an_aspect_that_hardly_varies,
    "one large group": one_large_group,
}
"""Judges of a known kind by name. Each world is drawn from its own seed, which is its place here:
add new ones last."""


def resumed_debates(without: Judge, groups: int = 40) -> Makes:
    """Debates of a run, resumed at one turn with nothing changed, and without the turn."""
    return texts({"debate": sees(0.6), "resumed": sees(0.6), "without": without}, groups=groups)


TURNS: Mapping[str, Makes] = {
    "a turn without effect": resumed_debates(sees(0.6)),
    "a turn that lowers scores": resumed_debates(sees(0.6, shift=1.0)),
    "a turn in five groups": resumed_debates(sees(0.6, shift=1.0), groups=5),
}
"""Debates of which ``whatif`` speaks; the other judges are those of a report."""


def effect_of_turn(folder: Path) -> WhatIf:
    """Return what ``whatif`` says of the debates in a run folder."""
    loaded = {judge.label: judge.by_aspect["wit"] for judge in load_runs([folder])}
    arms = loaded["debate"], loaded["resumed"], loaded["without"]
    effect = turn_effect(*arms, Resampling(resamples=300))
    done = WhatIf("debate", Edit("critic:1", "drop"), arms[0].subject.metric, (effect,), True)
    return adjusted_over_turns([done])[0]


def whether_it_pays(runs: Sequence[Path]) -> str:
    """Return what ``report`` says of a debate beside an ensemble of the same budget."""
    study = Study.of(runs, resampling=Resampling(resamples=300))
    return "\n".join(finding.sentence for finding in findings_of(study))


def versus_geval(runs: Sequence[Path]) -> str:
    """Return what ``versus`` says of a debate against one sample of ``geval``."""
    whole = results_of(runs[0]).read()
    manifest = read_manifest(runs[0])
    judged = {
        name: Evaluation(tuple(of for of in whole if of.protocol == name), manifest, runs[0])
        for name in ("debate", "geval")
    }
    terms = Terms(by="calls", resampling=Resampling(resamples=300))
    return "\n".join(compare(judged, [Opponent("geval", None, {})], terms).screen().lines())


def who_replaces(runs: Sequence[Path]) -> str:
    """Return what ``report`` says of judges in the place of an annotator."""
    [people] = Study.of(runs, resampling=Resampling(resamples=300)).annotators
    return people.ceiling


def what_a_panel_is_worth(runs: Sequence[Path]) -> str:
    """Return what ``panel`` says first of the judges."""
    comparators = comparators_of(load_runs(runs), Resampling(resamples=300))
    [panel] = panels_of(comparators)
    return "\n".join(panel_screen(panel).lines())


def what_changed(runs: Sequence[Path]) -> str:
    """Return what ``report`` says of verdicts before and after the discussion."""
    [diagnosis] = Study.of(runs, resampling=Resampling(resamples=300)).diagnoses
    changes = diagnosis.changes
    assert changes is not None
    lines = placebo_notes([diagnosis])
    if changes.placebo and changes.effect:
        shares = f"{changes.moved.value:.0%} changed, placebo {changes.placebo.value:.0%}"
        sign = (
            "p < 0.05" if changes.p_effect is not None and changes.p_effect < 0.05 else "p >= 0.05"
        )
        lines.insert(0, f"{shares}: effect {changes.effect.value:+.0%}, {sign}")
    return "\n".join(lines)


SAID: Mapping[str, tuple[Makes, Callable[[Sequence[Path]], str]]] = {
    "a debate of pairs without effect, 26 % ties": (debate_of_pairs(0.26), whether_it_pays),
    "a debate of pairs without effect, 38 % ties": (debate_of_pairs(0.38), whether_it_pays),
    "a debate of pairs without effect, 59 % ties": (debate_of_pairs(0.59), whether_it_pays),
    "a debate of scores without effect": (debate_of_scores, whether_it_pays),
    "a debate that finds the label": (a_debate_that_is_right, whether_it_pays),
    "an opponent that failed everywhere": (
        against_geval(lambda random, row: None),
        versus_geval,
    ),
    "an opponent with five times the budget": (
        against_geval(lambda random, row: _points(row["level"] + random.normal(0, 0.3)), calls=5),
        versus_geval,
    ),
    "no skill, three annotators": (no_skill_beside_three_annotators, who_replaces),
    "a discussion that redraws verdicts": (redrawn_debates(1), what_changed),
    "a discussion that redraws verdicts, two repeats": (redrawn_debates(2), what_changed),
    "five judges with one mind": (five_judges(0.9, [0.7] * 5), what_a_panel_is_worth),
    "five independent judges": (five_judges(0.0, [0.7] * 5), what_a_panel_is_worth),
    "one strong judge among weak ones": (
        five_judges(0.0, [0.95, 0.55, 0.55, 0.55, 0.55]),
        what_a_panel_is_worth,
    ),
}
"""Worlds with sentences that are not on the first screen of a report."""


class Promise(NamedTuple):
    """What is true of some judges, and what the first screen must and must not say of them.

    Attributes:
        true: what is true, in a sentence or two.
        must: patterns that the screen has.
        must_not: patterns that it does not have.
    """

    true: str
    must: tuple[str, ...]
    must_not: tuple[str, ...]

    def quotation(self, screen: str) -> str:
        """Return the first line of a screen, and the other sentences that a pattern requires."""
        claim, *others = screen.split("\n")
        wanted = [
            line
            for line in others
            if any(re.search(pattern, line, re.MULTILINE) for pattern in self.must)
        ]
        return "<br>".join([f"**{_cell(claim)}**", *map(_cell, wanted)])

    def faults(self, screen: str) -> list[str]:
        """Return what a screen lacks, and what it says although it is not true."""
        found = {
            pattern: re.search(pattern, screen, re.MULTILINE)
            for pattern in (*self.must, *self.must_not)
        }
        lacking = [f"lacks {pattern}" for pattern in self.must if not found[pattern]]
        return lacking + [f"says {pattern}" for pattern in self.must_not if found[pattern]]


BEST = r"agrees? best with"
"""A claim that one judge is the best."""
AGREES = r"(?<!No judge )agrees? (best )?with your annotators"
"""A claim that a judge agrees with the labels."""

PROMISES: Mapping[str, Promise] = {
    "a better judge": Promise(
        "One sees the quality with little noise, the other with much.",
        must=(
            r"^good agrees best with your annotators$",
            r"difference 0\.\d+, 95 % CI 0\.\d+ to 0\.\d+, p",
        ),
        must_not=(),
    ),
    "a slightly better judge": Promise(
        "One sees the quality with slightly less noise than the other; the data cannot tell them apart.",
        must=(r"^No clear winner between (good and fair|fair and good)$",),
        # The lead is smaller than its standard error.
        must_not=(AGREES, "would be needed"),
    ),
    "three judges, the second as good": Promise(
        "Two see the quality equally well, the third with much noise.",
        must=(r"^No clear winner between (one and two|two and one)$",),
        must_not=(AGREES, "would be needed"),
    ),
    "a constant score": Promise(
        "One always says 3; the other sees the quality.",
        must=(
            r"^good agrees with your annotators$",
            r"always gave every item 3, so its agreement cannot be computed",
        ),
        must_not=(
            BEST,
            r"always agree",
            r"\(always\)",
        ),
    ),
    "a constant winner": Promise(
        "85 % of the labels are 1. One always says 1 and is right most often; two others are "
        "right in 80 % and 70 %.",
        must=(
            r"^good agrees best with your annotators$",
            r"always gave every comparison to answer 1, as 8\d% of the labels do; that is no better than chance",
        ),
        must_not=(
            r"always agree",
            r"\(always\)",
        ),
    ),
    "a nearly constant winner": Promise(
        "85 % of the labels are 1. One says 1 in 97 % of cases, at random; the other is right in 77 %.",
        must=(
            r"^No clear winner between nearly and good$",
            r"nearly is not significantly better than chance .*; good is better than chance",
        ),
        must_not=(
            AGREES,
            r"would be needed",
        ),
    ),
    "a judge that knows only the source": Promise(
        "It gives all candidates of a source the same score, apart from noise.",
        must=(
            r"^No judge agrees with your annotators$",
            r"not significantly better than chance",
        ),
        must_not=(AGREES,),
    ),
    "a judge of sources beside a judge of candidates": Promise(
        "One knows which sources have good candidates, the other which candidates of a source are good.",
        must=(
            r"^No clear winner between of_candidate and of_source$",
            r"of_source separates groups better, of_candidate separates the items of a group better",
        ),
        must_not=(AGREES,),
    ),
    "a judge that fails on hard items": Promise(
        "It has no verdict on candidates in the middle of the scale; another, just as good, "
        "has all verdicts.",
        must=(
            r"At least [\d,]+ groups would be needed to separate them \(80% power at the difference seen\)",
            r"^No clear winner between",
            r"over \d+ of 200 items",
            r"failing failed on \d+ of 200 items .*; they are left out for all judges",
        ),
        must_not=(AGREES,),
    ),
    "a low level": Promise(
        "It sees the quality and scores 1.5 points lower.",
        must=(
            r"low is 1\.\d points too strict \(mean \d\.\d\d, labels \d\.\d\d\)\. This does not affect"
            r" its rank correlation",
        ),
        must_not=(r"fair is",),
    ),
    "a level that hardly differs": Promise(
        "It scores .15 points higher, which is less than a tenth of the scale.",
        must=(r"^high agrees with your annotators$",),
        must_not=(r"too (strict|lenient)",),
    ),
    "longer texts": Promise(
        "It gives points for length; humans do not.",
        must=(
            r"The verdicts of long go with length more than the labels do .*; labels this noisy would show it too",
        ),
        must_not=(
            r"follows length",
            r"verdicts of fair",
            r"(?i)bias",
        ),
    ),
    "longer answers": Promise(
        "Half of the time it picks the longer answer.",
        must=(
            r"The verdicts of long go with length more than the labels do \(the longer answer wins \d+%"
            r" of the time.*; labels this noisy would show it too",
        ),
        must_not=(
            r"follows length",
            r"verdicts of fair",
            r"(?i)bias",
        ),
    ),
    "the first place": Promise(
        "Half of the time it picks the answer shown first, whatever the answers are; each pair "
        "is judged in both orders.",
        must=(
            r"first prefers the answer shown first: with both orders judged, the one shown first wins"
            r" 7\d% of the time",
        ),
        must_not=(r"fair prefers",),
    ),
    "the second place": Promise(
        "Four times in ten it picks the answer shown second, whatever the answers are; each "
        "pair is judged in both orders.",
        must=(r"second prefers the answer shown second: with both orders judged",),
        must_not=(r"fair prefers",),
    ),
    "random scores": Promise(
        "It rolls a die.",
        must=(r"^No judge agrees with your annotators$",),
        must_not=(AGREES,),
    ),
    "random winners": Promise(
        "It tosses a coin, and 70 % of the labels are 1.",
        must=(r"^No judge agrees with your annotators$",),
        must_not=(
            AGREES,
            r"random prefers",
        ),
    ),
    "reversed": Promise(
        "It gives good candidates low scores.",
        must=(
            r"^No judge agrees with your annotators$",
            r"significantly below chance .*, as where a low label means good",
        ),
        must_not=(
            AGREES,
            r"reversed agreed",
        ),
    ),
    "the same judge under two names": Promise(
        "Two give every row the same score.",
        must=(r"^one and two gave identical verdicts$",),
        must_not=(
            AGREES,
            r"difference",
        ),
    ),
    "the same judge under two names, and a worse one": Promise(
        "Two give every row the same score; a third sees little of the quality.",
        must=(
            r"^one and two, with identical verdicts, agree best with your annotators$",
            r"against 0\.\d+ \(weak\)",
        ),
        must_not=(r"than (one|two)",),
    ),
    "an aspect that hardly varies": Promise(
        "Two aspects of 40 texts; of one, 37 labels are the same. The mean has no interval, and the "
        "reason names that aspect.",
        must=(
            r"^Verdicts or labels vary too little to say which judge is better$",
            r"Most verdicts or labels are the same: for good on spelling, 40 items count as",
        ),
        must_not=(AGREES, r"CI", r"p [=<]", r"different items", r"share too few"),
    ),
    "one large group": Promise(
        "Thirty sources, one of which has 300 candidates more than each of the others.",
        must=(
            r"^Groups differ too much in size to say which judge is better$",
            r"Most rows are in few groups: for good, 30 groups count as",
        ),
        must_not=(AGREES, r"CI", r"p [=<]", r"vary too little", r"are the same"),
    ),
    "six items": Promise(
        "Six items without groups; one judge sees the quality better.",
        must=(
            r"^Too few items to say which judge is better$",
            r"At least [\d,]+ items would be needed",
        ),
        must_not=(
            AGREES,
            r"better than chance",
            r"p [=<]",
            r"CI",
        ),
    ),
    "five groups": Promise(
        "Five sources with ten candidates each: many rows, but only five independent sources.",
        must=(
            r"^Too few groups to say which judge is better$",
            r"At least [\d,]+ groups would be needed",
        ),
        must_not=(
            AGREES,
            r"better than chance",
            r"p [=<]",
            r"CI",
        ),
    ),
    "silent on different sources": Promise(
        "One ranks 24 of 40 sources, the other 20; each gives all candidates of the other "
        "sources the same score, which counts as 0.",
        must=(
            r"^No clear winner between many and fewer$",
            r"in 40 groups \(16 with one score for all items count as 0\)",
            r"fewer gave all items of a group one score in 20 of 40 groups; these count as 0",
        ),
        must_not=(
            AGREES,
            r"separates groups",
        ),
    ),
    "many ties": Promise(
        "Six labels in ten are ties. One always says tie; the other is right in 70 %.",
        must=(
            r"^good agrees with your annotators$",
            r"always gave every comparison a tie, as 60% of the labels do; that is no better than chance",
        ),
        must_not=(
            BEST,
            r"always agree",
        ),
    ),
    "twenty of twenty": Promise(
        "It is right on all twenty comparisons.",
        must=(r"Accuracy 1\.00, 95 % CI 0\.8\d to 1\.00 over 20 comparisons",),
        must_not=(r"CI 1\.00 to 1\.00",),
    ),
    "labels of one value": Promise(
        "All labels are 3: there is nothing to rank.",
        must=(
            r"^Agreement cannot be computed here$",
            r"all 200 labels are the same",
        ),
        must_not=(
            AGREES,
            r"chance",
        ),
    ),
    "one judge on two datasets": Promise(
        "The same model and settings judged two datasets.",
        must=(
            r"^first: good agrees best with your annotators$",
            r"^second: good agrees best with your annotators$",
        ),
        must_not=(
            r"good \(\w",
            r"/",
            r"tmp",
        ),
    ),
    "a judge that was stopped": Promise(
        "One judged three of 200 candidates, the others all.",
        must=(
            r"^good agrees best with your annotators$",
            r"stopped has not made 197 of 200 judgements",
            r"stopped is not ranked, because it has only 3 labelled items",
        ),
        must_not=(r"left out for all",),
    ),
    "two runs of one judge": Promise(
        "The same model and settings judged the same data twice.",
        must=(r"^No clear winner between debate \((one|two)\) and debate \((one|two)\)$",),
        must_not=(
            AGREES,
            r"/",
            r"tmp",
        ),
    ),
    "an ensemble of personas": Promise(
        "Three referees of different roles beside a single judge that is about as good as their average.",
        must=(r"^No clear winner between",),
        must_not=(
            AGREES,
            r"ensemble of 1",
            r"k=1",
        ),
    ),
    "missing annotators": Promise(
        "On every item one of the two or three annotators gave no rating.",
        must=(r"over 40 items",),
        must_not=(),
    ),
    "labels of one value, and a judge that always says it": Promise(
        "All labels are 3, and the judge always says 3: that is neither agreement nor disagreement.",
        must=(
            r"^Agreement cannot be computed here$",
            r"all 200 labels are the same",
            r"always gave every item 3\.",
        ),
        must_not=(
            AGREES,
            r"chance",
            r"agrees with",
        ),
    ),
    "eight high levels": Promise(
        "Eight judges score 1.5 points higher; the first screen names two and counts the others.",
        must=(
            r"^No clear winner between",
            r"is \d\.\d points too lenient .* This does not affect its rank correlation\. 7 more judges"
            r" score on another level than the labels",
        ),
        must_not=(
            r"-0\.\d+ \(",
            r"(?s)^.{1500}",
        ),
    ),
    "silent on a third of the sources": Promise(
        "One ranks the candidates of every source; the other sees a little better, but gives "
        "all candidates of three sources in ten the same score.",
        must=(
            r"^honest agrees best with your annotators$",
            r"silent gave all items of a group one score in 1\d of (58|59|60) groups; these count as 0",
        ),
        must_not=(
            r"silent agrees",
            r"separates groups",
        ),
    ),
    "silent on half of the sources": Promise(
        "Both see the quality equally well; one gives all candidates of every second source the same score.",
        must=(
            r"^honest agrees best with your annotators$",
            r"silent gave all items of a group one score in (29|30) of (59|60) groups; these count as 0",
        ),
        must_not=(
            r"silent agrees",
            r"separates groups",
        ),
    ),
    "one score for each source": Promise(
        "It gives all candidates of a source the same score, a higher one where they are better.",
        must=(
            r"^No judge agrees with your annotators$",
            r"rho within groups 0\.00 \(of_source\)",
            r"38 with one score for all items count as 0",
        ),
        must_not=(
            AGREES,
            r"CI 0\.00 to 0\.00",
        ),
    ),
    "a precise judge of texts, noisy labels": Promise(
        "Longer texts are better. The judge sees the quality exactly, the labels see it with "
        "much noise: the judge follows length further than the labels, without any bias.",
        must=(
            r"^precise agrees with your annotators$",
            r"labels this noisy would show it too",
        ),
        must_not=(
            r"follows length",
            r"(?i)bias",
        ),
    ),
    "a precise judge of pairs, noisy labels": Promise(
        "The longer answer, and the first one, is better in 80 % of the pairs. The judge is "
        "always right, three labels in ten are wrong.",
        must=(
            r"^precise agrees with your annotators$",
            r"labels this noisy would show it too",
        ),
        must_not=(
            r"follows length",
            r"prefers",
            r"(?i)bias",
        ),
    ),
    "a small overlap": Promise(
        "Both see the quality of most texts. They share 14 of 200 rows, which both see badly.",
        must=(
            r"^No clear winner between (early and late|late and early)$",
            r"over 14 of 200 items",
            r"compared on the 14 items that all of them judged.*early 0\.\d+ \[.*over 110 \(better than chance\)",
            r"late 0\.\d+ \[.*over 104 \(better than chance\)",
        ),
        must_not=(
            r"No judge agrees",
            AGREES,
        ),
    ),
    "twelve random judges": Promise(
        "Twelve judges roll a die.",
        must=(
            r"^No judge agrees with your annotators$",
            r"Holm-adjusted over 12 judges",
        ),
        must_not=(AGREES,),
    ),
    "one group": Promise(
        "All texts are candidates of one source: many rows, but nothing independent.",
        must=(
            r"^Too few groups to say which judge is better$",
            r"At least [\d,]+ groups would be needed",
        ),
        must_not=(
            AGREES,
            r"CI",
            r"p [=<]",
        ),
    ),
    "groups of one and two": Promise(
        "Half of the sources have one candidate, half have two. Only pairs of one source count.",
        must=(
            r"^good agrees best with your annotators$",
            r"over 240 items in 160 groups \(80 with one item or equal labels left out\)",
            r"On 240 items of mine in 160 groups \(aspect wit; 80 groups with one item or equal labels left out\)",
        ),
        must_not=(r"tmp",),
    ),
    "judges without overlap": Promise(
        "Each judged one half of the texts, so no text has verdicts of both.",
        must=(
            r"^Too few shared items to say which judge is better$",
            r"early 0\.\d+ over 96 items, late 0\.\d+ over 90 items\. The judges share too few items",
        ),
        must_not=(
            AGREES,
            r"better than",
        ),
    ),
    "an annotator with one label": Promise(
        "Three annotators rated every text; the third gave 4 to all of them.",
        must=(r"^good agrees with your annotators$",),
        must_not=(),
    ),
    "all verdicts the same": Promise(
        "Both judges give every text a 3; the labels differ.",
        must=(r"^Agreement cannot be computed: always and flat gave constant verdicts$",),
        must_not=(
            AGREES,
            r"chance",
        ),
    ),
    "ties only": Promise(
        "All labels are ties, and so are half of the verdicts.",
        must=(r"^Agreement cannot be computed here$", r"all 400 labels are the same"),
        must_not=(AGREES,),
    ),
    "an opponent that fails on some texts": Promise(
        "One is right more often; the other failed on one text in twenty.",
        must=(r"other failed on \d+ of 200 items",),
        must_not=(),
    ),
    "every judgement failed": Promise(
        "The only judge has no verdict at all.",
        must=(
            r"^Every judgement failed$",
            r"single failed on all 40 items",
        ),
        must_not=(
            AGREES,
            r"agreement",
        ),
    ),
    "comparisons without labels": Promise(
        "Nobody labelled the comparisons; answer 2 is preferred.",
        must=(
            r"^Answer 2 wins most often \(no human labels\)$",
            r"the same winner in both orders in \d+ of 60 comparisons",
        ),
        must_not=(
            r"(?i)agree",
            r"chance",
        ),
    ),
    "scores without labels": Promise(
        "Nobody labelled the texts.",
        must=(r"^high gives the highest scores \(no human labels\)$",),
        must_not=(
            r"(?i)agree",
            r"chance",
        ),
    ),
    "a length bias, three annotators": Promise(
        "Longer texts are better. Three annotators rated each; the judge also gives points for length.",
        must=(
            r"judge favours longer texts: at equal quality, 0\.\d+ points per standard deviation of log"
            r" length, 95 % CI 0\.\d+ to \d\.\d+",
        ),
        must_not=(r"labels this noisy",),
    ),
    "a precise judge of texts, three annotators": Promise(
        "Longer texts are better. Three annotators with much noise rated each; the judge sees the quality exactly.",
        must=(
            r"^judge agrees with your annotators$",
            r"no effect of length is found beyond the noise of the labels",
        ),
        must_not=(r"favours longer", r"(?i)bias"),
    ),
    "a precise judge of pairs, three annotators": Promise(
        "The longer answer is better in 80 % of the pairs. Three annotators voted, two votes in ten are "
        "wrong; the judge is always right.",
        must=(
            r"^judge agrees with your annotators$",
            r"no effect of length is found beyond the noise of the labels",
        ),
        must_not=(r"favours longer", r"(?i)bias"),
    ),
    "random winners, nearly all labels equal": Promise(
        "95 % of the labels are 1. One judge says 1 in nine cases of ten, the other tosses a coin; neither "
        "looks at the answers.",
        must=(r"^No judge agrees with your annotators$",),
        must_not=(AGREES, r"CI 0\.00 to 0\.00"),
    ),
    "groups of two": Promise(
        "Every source has two candidates. One judge knows which sources have good candidates, the other "
        "which candidate of a source is better.",
        must=(r"^(No clear winner between|of_candidate agrees best)",),
        must_not=(r"of_source agrees best",),
    ),
    "a debate of pairs without effect, 26 % ties": Promise(
        "26 % of the labels are ties. The debate draws its scores again; the ensemble averages four draws.",
        must=(r"debate does not pay|Undecided whether debate pays",),
        must_not=(r"debate pays:",),
    ),
    "a debate of pairs without effect, 38 % ties": Promise(
        "The same with 38 % ties.",
        must=(r"debate does not pay|Undecided whether debate pays",),
        must_not=(r"debate pays:",),
    ),
    "a debate of pairs without effect, 59 % ties": Promise(
        "The same with 59 % ties.",
        must=(r"debate does not pay|Undecided whether debate pays",),
        must_not=(r"debate pays:",),
    ),
    "a debate of scores without effect": Promise(
        "The debate ends with the rounded mean of four draws; the ensemble averages four others.",
        must=(r"debate does not pay|Undecided whether debate pays",),
        must_not=(r"debate pays:", r"it is behind"),
    ),
    "a debate that finds the label": Promise(
        "The debate ends with the label; the ensemble sees little, with the same number of calls.",
        must=(r"debate pays: by Spearman's rho, at equal calls",),
        must_not=(r"does not pay",),
    ),
    "an opponent that failed everywhere": Promise(
        "The opponent has no verdict at all.",
        must=(
            r"^Undecided whether debate pays$",
            r'geval failed on all 60 items \("The reply has no list of steps"\); nothing to compare\.',
        ),
        must_not=(r"^debate pays$", r"does not pay", r"Raw reply"),
    ),
    "an opponent with five times the budget": Promise(
        "The opponent is as good and spends five times as much.",
        must=(
            r"^No clear winner between debate and geval$",
            r"at unequal calls",
            r"which spent 5\.0 times as many calls",
        ),
        must_not=(r"^debate pays$", r"does not pay", r"at equal"),
    ),
    "no skill, three annotators": Promise(
        "One judge always says 3, one rolls a die; three annotators rated every text.",
        must=(r"with the other annotators: mean of annotators",),
        must_not=(r"could replace one",),
    ),
    "a discussion that redraws verdicts": Promise(
        "The last score of a debate is a new draw; nothing was judged twice.",
        must=(r"^No placebo was run: a model that judges again also changes some verdicts",),
        must_not=(r"effect of [+-]",),
    ),
    "a discussion that redraws verdicts, two repeats": Promise(
        "The same, judged twice.",
        must=(r"^\d+% changed, placebo \d+%: effect [+-]\d+%, p >= 0\.05$",),
        must_not=(r"p < 0\.05", r"No placebo"),
    ),
    "five judges with one mind": Promise(
        "Five judges are right in 70 %, on nine items of ten together.",
        must=(
            r"^No clear winner between",
            r"Five judges, worth 1\.\d\d? independent votes",
            r"their errors correlate at 0\.[89]\d",
        ),
        must_not=(r"panel.* is right more often than the best single judge",),
    ),
    "five independent judges": Promise(
        "Five judges are right in 70 %, each on its own.",
        must=(
            r"is right more often than the best single judge$",
            r"Five judges, worth [45]\.\d independent votes",
        ),
        must_not=(r"alone is right",),
    ),
    "one strong judge among weak ones": Promise(
        "One judge is right in 95 %, four in 55 %.",
        must=(r"^judge1 alone is right more often than",),
        must_not=(r"is right more often than the best single judge",),
    ),
    "a turn without effect": Promise(
        "`whatif` forks each debate at a turn that moves no verdict; the judge samples, so many "
        "verdicts change in any case.",
        must=(r"^No effect of critic:1 on verdicts$", r"with nothing changed: effect"),
        must_not=(r"changes the verdicts",),
    ),
    "a turn that lowers scores": Promise(
        "Without the turn, scores are one point higher.",
        must=(r"^critic:1 changes the verdicts of debate$", r"with nothing changed: effect"),
        must_not=(r"No effect",),
    ),
    "a turn in five groups": Promise(
        "Without the turn, scores are one point higher; there are only five sources.",
        must=(r"^Too few debates to say whether critic:1 changes verdicts$",),
        must_not=(r"p [=<]", r"changes the verdicts of"),
    ),
}

GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "A judge is called best only if its lead is real": (
        "A lead that chance explains is never announced, and judges with identical verdicts are recognised. The "
        "evidence names the difference with its interval, and the number of items or groups "
        "that would be needed.",
        (
            "a better judge",
            "a slightly better judge",
            "three judges, the second as good",
            "two runs of one judge",
            "an ensemble of personas",
            "the same judge under two names",
            "the same judge under two names, and a worse one",
            "one judge on two datasets",
            "a judge of sources beside a judge of candidates",
            "twenty of twenty",
            "longer texts",
            "the first place",
        ),
    ),
    "Chance is not agreement": (
        "A judge that always gives the same verdict, or a random one, never agrees with anybody, however many labels "
        "it meets. Groups in which a judge gives every candidate one score count as 0.",
        (
            "a constant score",
            "a constant winner",
            "a nearly constant winner",
            "all verdicts the same",
            "many ties",
            "ties only",
            "random scores",
            "random winners",
            "random winners, nearly all labels equal",
            "no skill, three annotators",
            "twelve random judges",
            "reversed",
            "a judge that knows only the source",
            "one score for each source",
            "silent on different sources",
            "silent on a third of the sources",
            "silent on half of the sources",
        ),
    ),
    "Too little data gets no claim": (
        "With fewer than ten independent items or groups, or with as little information as these have, there are "
        "figures and no claim.",
        (
            "six items",
            "five groups",
            "one group",
            "groups of one and two",
            "groups of two",
            "one large group",
            "an aspect that hardly varies",
            "labels of one value",
            "labels of one value, and a judge that always says it",
            "an annotator with one label",
            "missing annotators",
        ),
    ),
    "Missing verdicts are counted": (
        "Judges are compared on the items that all of them judged. Failures and missing verdicts are named with their "
        "number.",
        (
            "a judge that fails on hard items",
            "an opponent that fails on some texts",
            "a judge that was stopped",
            "a small overlap",
            "judges without overlap",
            "every judgement failed",
        ),
    ),
    "A lean is named, a bias only by experiment": (
        "A shift of level does not touch a rank correlation. A preference for a place is measured by showing both "
        "orders. That verdicts go with length is no evidence of a bias.",
        (
            "a low level",
            "a level that hardly differs",
            "eight high levels",
            "the second place",
            "longer answers",
            "a precise judge of texts, noisy labels",
            "a precise judge of pairs, noisy labels",
            "a length bias, three annotators",
            "a precise judge of texts, three annotators",
            "a precise judge of pairs, three annotators",
        ),
    ),
    "A debate pays only at the same budget and granularity": (
        "`versus`, and a report with an ensemble of equal judges, compare verdicts on the same scale with the same "
        "share of ties. They name another budget, and an opponent that failed.",
        (
            "a debate that finds the label",
            "a debate of pairs without effect, 26 % ties",
            "a debate of pairs without effect, 38 % ties",
            "a debate of pairs without effect, 59 % ties",
            "a debate of scores without effect",
            "an opponent with five times the budget",
            "an opponent that failed everywhere",
            "a discussion that redraws verdicts",
            "a discussion that redraws verdicts, two repeats",
        ),
    ),
    "A panel is worth its independent votes": (
        "`panel` measures how far the errors of judges are correlated, and names the best single judge.",
        (
            "five judges with one mind",
            "five independent judges",
            "one strong judge among weak ones",
        ),
    ),
    "A turn has an effect only beyond what sampling changes": (
        "`whatif` compares the changed debates with the same debates resumed unchanged.",
        tuple(TURNS),
    ),
    "Without labels there is no word about agreement": (
        "Winners, ties, order consistency, means and spread are reported.",
        ("comparisons without labels", "scores without labels"),
    ),
}
"""The page by sections: what is promised, and the judges that show it."""


def first_screen(name: str, folder: Path) -> str:
    """Return what ``report`` says first of the judges of this name, whose runs are made in a
    folder.
    """
    if name in TURNS:
        random = np.random.default_rng(1000 + list(TURNS).index(name))
        done = effect_of_turn(TURNS[name](folder, random)[0])
        return "\n".join([done.sentence, *(effect.evidence for effect in done.effects)])
    if name in SAID:
        random = np.random.default_rng(2000 + list(SAID).index(name))
        makes, says = SAID[name]
        return says(makes(folder, random))
    random = np.random.default_rng(list(GATE).index(name))
    study = Study.of(GATE[name](folder, random), resampling=Resampling(resamples=300))
    return "\n".join(
        f"{screen.name}: {line}" if screen.name else line
        for screen in first_screens(study)
        for line in screen.lines()
    )


START = "<!-- `python -m tests.truth_gate --write` writes what follows -->\n"


def page(screens: Mapping[str, str]) -> str:
    """Return the part of the page that is made from the first screens of all judges."""
    parts = []
    for title, (promise, names) in GROUPS.items():
        rows = [
            f"| {PROMISES[name].true} | {PROMISES[name].quotation(screens[name])} |"
            for name in names
        ]
        table = "\n".join(["| the truth | the output |", "|---|---|", *rows])
        parts.append(f"## {title}\n\n{promise}\n\n{table}\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def without_figures(text: str) -> str:
    """Return a sentence without its figures, whose last digit depends on the machine."""
    return re.sub(r"[<=]? ?-?\d[\d.,]*", "#", text)


if __name__ == "__main__":
    shown = {}
    chosen = [name for name in sys.argv[1:] if name in PROMISES]
    for name, promise in PROMISES.items():
        if chosen and name not in chosen:
            continue
        with TemporaryDirectory() as folder:
            shown[name] = first_screen(name, Path(folder))
        print(f"--- {name}\n{shown[name]}\n    {promise.faults(shown[name]) or 'ok'}")
    if "--write" in sys.argv:
        before, _, _ = PAGE.read_text(encoding="utf-8").partition(START)
        PAGE.write_text(f"{before}{START}\n{page(shown)}", encoding="utf-8")
