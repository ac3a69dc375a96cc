"""Judges whose truth is known, and what the first screen must and must not say of them.

    python -m tests.truth_gate --write

writes docs/promises.md from the declarations below; ``test_truth_gate.py`` holds the package to them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.report.headline import answers, headline
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling

from .run_folders import compared, failed, run_folder, scored, turn
from .source_tree import ROOT

PAGE = ROOT / "docs" / "promises.md"
Random = np.random.Generator
Makes = Callable[[Path, Random], Sequence[Path]]
"""Writes run folders into a folder and returns them."""


@dataclass(frozen=True)
class Known:
    """Declares judges of a known kind.

    Attributes:
        truth: what is known of them.
        makes: their runs.
        must, must_not: patterns that the first screen holds, or does not.
    """

    truth: str
    makes: Makes
    must: tuple[str, ...]
    must_not: tuple[str, ...] = ()

    def first_screen(self, folder: Path, number: int) -> str:
        """Return what ``report`` says first, of runs made in this folder."""
        study = Study.of(
            self.makes(folder, np.random.default_rng(number)), resampling=Resampling(resamples=300)
        )
        return "\n".join([headline(study, None), *answers(study, None)])


Judge = Callable[[Random, Mapping[str, Any]], Any]
"""Judges a row: its ``level`` and ``own`` quality, ``length`` and ``human`` label; ``None`` is a failure."""
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
    """Candidates of some sources: their quality is the source's level (so far ``apart``) and their own.

    Humans see it with noise; with a ``label``, all of them say that.
    """

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results: list[Result] = []
        for group in range(groups):
            level = random.normal(0, apart)
            for number in range(size):
                own = random.normal(0, 0.7)
                row: dict[str, Any] = {"level": level, "own": own, "length": int(random.integers(100, 900))}
                row["place"] = group * size + number
                row["human"] = _points(level + own + random.normal(0, 0.4)) if label is None else label
                item, of_group = f"{group}-{number}", f"g{group}" if size > 1 else None
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
    judges: Mapping[str, Judge], items: int = 400, first: float = 0.5, ties: float = 0.0, name: str = "pairs"
) -> Makes:
    """Comparisons of two answers, of which the first is better so often."""

    def makes(folder: Path, random: Random) -> Sequence[Path]:
        results: list[Result] = []
        for number in range(items):
            human = "tie" if random.random() < ties else "1" if random.random() < first else "2"
            row = {"human": human, "lengths": tuple(int(x) for x in random.integers(100, 900, 2))}
            for protocol, judge in judges.items():
                winner = judge(random, row)
                results.append(compared(f"i{number}", protocol, winner=winner, **row))
        return [run_folder(folder / name, results, kind="compare", data={"name": name, "digest": name})]

    return makes


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
    return lambda random, row: (first if row["lengths"][0] > row["lengths"][1] else second)(random, row)


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
    """Rank five candidates of each source between two places among the sources, and say 3 of all others."""
    return lambda random, row: sees(0.5)(random, row) if first <= row["place"] // 5 < last else 3.0


def _says(word: Any) -> Judge:
    return lambda random, row: word


def one_judge_twice(folder: Path, random: Random) -> Sequence[Path]:
    """The same judges, model and settings on two datasets."""
    folders = []
    for name in ("first", "second"):
        run = texts({"good": sees(0.4), "weak": sees(1.5)}, groups=30, name=name)(folder, random)[0]
        manifest = run / "run.json"
        manifest.write_text(
            manifest.read_text().replace('"protocol:good"', f'"protocol:good|data:{name}@{name}|models:*=a"')
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
        results.append(scored(f"i{number}", "ensemble", score=mean, calls=3, transcript=turns, **about))
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
            "source": "It rained all day, and the river rose.",
            "candidate": "It rained. " * (1 + number % 7),
        }
        items.append({"id": f"i{number}", **shown, "human": {"coherence": ratings}})
    evaluate("single", items, aspects=["coherence"], out=folder / "mine")
    return [folder / "mine"]


_CLAIM = r"(ranks most like|agrees best with) humans"
_NO_CLAIM = (_CLAIM, r"significantly better than chance: ")
_ALONE = r"(like|with) humans significantly better than chance: (?!the highest)"
_PATH = (r"/", r"tmp")

GATE: Mapping[str, Known] = {
    "a better judge": Known(
        "One sees the quality with little noise, the other with much.",
        texts({"good": sees(0.4), "weak": sees(1.6)}),
        (
            r"^good ranks most like humans: Spearman's rho within groups 0\.\d+ \[.*above weak \(Holm-adjusted p",
        ),
    ),
    "a slightly better judge": Known(
        "One sees the quality with slightly less noise than the other; the data cannot tell them apart.",
        texts({"good": sees(0.80), "fair": sees(0.82)}),
        (r"ranks first by Spearman's rho within groups.*and that may be chance", r"groups would tell"),
        (_CLAIM,),
    ),
    "three judges, the second as good": Known(
        "Two see the quality equally well, the third with much noise.",
        texts({"one": sees(0.5), "two": sees(0.5), "weak": sees(2.5)}),
        (r"ranks first.*may be chance",),
        (_CLAIM,),
    ),
    "a constant score": Known(
        "One always says 3; the other sees the quality.",
        texts({"always": _says(3.0), "good": sees(0.6)}),
        (
            r"^good ranks like humans significantly better than chance",
            r"always always says 3: it agrees with nobody",
        ),
        (r"always rank", _CLAIM),
    ),
    "a constant winner": Known(
        "85 % of the labels are 1. One always says 1 and is right most often; two others are right in 80 % and 70 %.",
        pairs({"always": _says("1"), "good": right(0.80), "fair": right(0.70)}, items=600, first=0.85),
        (
            r"always always says 1, which 0\.8\d+ of the labels are: it agrees with nobody",
            r"^good agrees best",
        ),
        (r"always agrees", r"always ranks"),
    ),
    "a nearly constant winner": Known(
        "85 % of the labels are 1. One says 1 in 97 % of cases, at random; the other is right in 77 %.",
        pairs({"nearly": leaning(0.5, "1", 0.97), "good": right(0.77)}, items=600, first=0.85),
        (r"^No judge can be said to agree best with humans.*\(kappa.*of nearly, cannot be told from chance",),
        (_CLAIM,),
    ),
    "a judge that knows only the source": Known(
        "It gives all candidates of a source the same score, apart from noise.",
        texts({"of_source": sees_only("level")}),
        (r"^No judge agrees with humans significantly better than chance",),
        (_ALONE, r"of_source ranks like"),
    ),
    "a judge of sources beside a judge of candidates": Known(
        "One knows which sources have good candidates, the other which candidates of a source are good.",
        texts({"of_source": sees_only("level"), "of_candidate": sees_only("own")}, groups=60, apart=1.4),
        (r"^of_source ranks sources, of_candidate ranks the candidates of a source",),
        (_CLAIM,),
    ),
    "a judge that fails on hard items": Known(
        "It has no verdict on candidates in the middle of the scale; another, just as good, has all verdicts.",
        texts({"steady": sees(0.9), "failing": _fails_on_hard}),
        (r"failing failed on \d+ of 200 rows \(\d+%\), which are left out for all judges", r"may be chance"),
        (_CLAIM,),
    ),
    "a low level": Known(
        "It sees the quality and scores 1.5 points lower.",
        texts({"low": sees(0.4, shift=-1.5), "fair": sees(1.2)}),
        (r"low scores 1\.\d points lower \(\d\.\d\d against \d\.\d\d\) than humans",),
        (r"fair scores",),
    ),
    "a level that hardly differs": Known(
        "It scores .15 points higher, which is less than a tenth of the scale.",
        texts({"high": sees(0.4, shift=0.15)}, groups=100),
        (r"^high ranks like humans significantly better than chance",),
        (r"points (lower|higher)",),
    ),
    "longer texts": Known(
        "It gives points for length; humans do not.",
        texts({"long": sees(0.4, length=0.8), "fair": sees(0.6)}),
        (r"long follows length more than humans do: rho with length 0\.\d+",),
        (r"fair follows",),
    ),
    "longer answers": Known(
        "Half of the time it picks the longer answer.",
        pairs({"long": longer(0.5), "fair": right(0.75)}),
        (r"long follows length more than humans do: the longer answer wins \d+% of the time",),
        (r"fair follows",),
    ),
    "the first place": Known(
        "Half of the time it says 1, whatever the answers are.",
        pairs({"first": leaning(0.9, "1", 0.5), "fair": right(0.75)}),
        (r"first prefers the first answer more than humans do: the first one wins 7\d% of the time",),
        (r"fair prefers",),
    ),
    "the second place": Known(
        "Four times in ten it says 2, whatever the answers are.",
        pairs({"second": leaning(0.9, "2", 0.4), "fair": right(0.75)}),
        (r"second prefers the second answer more than humans do",),
        (r"fair prefers",),
    ),
    "random scores": Known(
        "It rolls a die.",
        texts({"random": lambda random, row: float(random.integers(1, 6))}),
        (r"^No judge agrees with humans significantly better than chance",),
        (_ALONE, r"random ranks like"),
    ),
    "random winners": Known(
        "It tosses a coin, and 70 % of the labels are 1.",
        pairs({"random": lambda random, row: "12"[int(random.integers(2))]}, first=0.7),
        (r"^No judge agrees with humans significantly better than chance",),
        (_ALONE, r"random prefers", r"random agrees"),
    ),
    "reversed": Known(
        "It gives good candidates low scores.",
        texts({"reversed": _reversed}),
        (r"^No judge agrees with humans significantly better than chance.*-0\.\d+ \[-",),
        (_ALONE, r"reversed ranks like"),
    ),
    "the same judge under two names": Known(
        "Two give every row the same score.",
        texts({"one": _copies, "two": _copies}),
        (r"give the same verdict on every row, so there is no difference",),
        (_CLAIM, r"above", r"ranks first"),
    ),
    "the same judge under two names, and a worse one": Known(
        "Two give every row the same score; a third sees little of the quality.",
        texts({"one": _copies, "two": _copies, "weak": sees(2.5)}),
        (r"^one and two, which give the same verdict on every row, rank most like humans.*above weak",),
        (r"above (one|two)",),
    ),
    "six items": Known(
        "Six items without groups; one judge sees the quality better.",
        texts({"good": sees(0.3), "weak": sees(0.9)}, groups=6, size=1),
        (r"6 items are too few to claim anything: \w+'s Spearman's rho is", r"would tell the two apart"),
        (*_NO_CLAIM, r"p [=<]", r"\["),
    ),
    "five groups": Known(
        "Five sources with ten candidates each: many rows, but only five independent sources.",
        texts({"good": sees(0.4), "weak": sees(1.2)}, groups=5, size=10),
        (r"5 groups are too few to claim anything",),
        (*_NO_CLAIM, r"p [=<]"),
    ),
    "few groups that both rank": Known(
        "One ranks 24 of 40 sources, the other 20; both rank only four.",
        texts({"many": ranks_part(0, 24), "fewer": ranks_part(20, 40)}),
        (r"^The judges have too few groups in which all rank the items to claim anything",),
        (*_NO_CLAIM, r"ranks first", r"above"),
    ),
    "many ties": Known(
        "Six labels in ten are ties. One always says tie; the other is right in 70 %.",
        pairs({"always": _says("tie"), "good": right(0.7)}, ties=0.6),
        (r"^good agrees with humans significantly better than chance", r"always always says tie"),
        (r"always agrees", _CLAIM),
    ),
    "twenty of twenty": Known(
        "It is right on all twenty comparisons.",
        pairs({"perfect": right(1.0)}, items=20),
        (r"accuracy 1\.000 \[0\.8\d+, 1\.000\]",),
        (r"1\.000 \[1\.000",),
    ),
    "labels of one value": Known(
        "All labels are 3: there is nothing to rank.",
        texts({"good": sees(0.3)}, label=3.0),
        (
            r"^No judge can be compared with human labels here: wit has no Spearman's rho, since all 200 labels are "
            r"the same",
        ),
        (_CLAIM, _ALONE),
    ),
    "one judge on two datasets": Known(
        "The same model and settings judged two datasets.",
        one_judge_twice,
        (r"^first: good ranks most like humans", r"second: good ranks most like humans"),
        (r"good \(", *_PATH),
    ),
    "a judge that was stopped": Known(
        "One judged three of 200 candidates, the others all.",
        texts({"good": sees(0.4), "weak": sees(1.5), "stopped": _stops}),
        (
            r"^good ranks most like humans.*above weak",
            r"stopped has no verdict on 197 of 200 rows",
            r"stopped is not ranked: it has only 3 labelled rows",
        ),
        (r"left out for all",),
    ),
    "two runs of one judge": Known(
        "The same model and settings judged the same data twice.",
        two_runs,
        (r"debate \((one|two)\) ranks first.*may be chance.*above debate \((one|two)\)",),
        (_CLAIM, *_PATH),
    ),
    "an ensemble of personas": Known(
        "Three referees of different roles beside a single judge that is about as good as their average.",
        personas,
        (r"may be chance",),
        (_CLAIM, r"ensemble of 1", r"k=1"),
    ),
    "missing annotators": Known(
        "On every item one of the two or three annotators gave no rating.",
        missing_annotators,
        (r"over 40 rows",),
    ),
    "labels of one value, and a judge that always says it": Known(
        "All labels are 3, and the judge always says 3: that is neither agreement nor disagreement.",
        texts({"always": _says(3.0)}, label=3.0),
        (
            r"^No judge can be compared with human labels here: wit has no Spearman's rho, since all 200 labels",
        ),
        (_CLAIM, _ALONE, r"agrees with"),
    ),
    "eight high levels": Known(
        "Eight judges score 1.5 points higher; the first screen names two and counts the others.",
        texts({f"high{number}": sees(0.5, shift=1.5) for number in range(8)}, groups=30),
        (
            r"high1 scores \d\.\d points higher \(.*\) than humans",
            r"6 more judges score on another level than humans",
        ),
        (r"high2 scores", r"(?s)^.{1000}", r"-0\.\d+ \[.*above"),
    ),
}


def quoted(known: Known, screen: str) -> str:
    """Return the first line of the first screen, and those of the other sentences that hold what it must say."""
    claim, *others = screen.split("\n")
    sentences = [sentence.removesuffix(".") for line in others for sentence in line.split(". ")]
    held = [one for one in sentences if any(re.search(pattern, one) for pattern in known.must)]
    return " ... ".join([claim, *held])


INTRODUCTION = """\
# What the first sentence promises

`run` and `sweep` end with a sentence on which judge agrees best with humans; `report` and its page begin
with it. The tests check it on invented judges, about which the truth is known; they are drawn anew, from
fixed seeds, in each test run. The last column shows what the package says: its first sentence and, after
`...`, the others that the tests require.

`python -m benchmarks.coverage` simulates how often intervals contain the true value, and how often a
difference is found where there is none; the table is in [agreement](agreement.md#intervals).

<!-- made by python -m tests.truth_gate --write -->

| judges | what is true of them | the package says |
|---|---|---|"""
REQUIREMENTS = """
## What the tests require

Regular expressions that the first screen must match, and must not.

| judges | it must say | it must not say |
|---|---|---|"""


def page(screens: Mapping[str, str]) -> str:
    """Write the page of the docs from what the package says of the judges, by the name of their kind."""
    lines = [INTRODUCTION]
    lines += [f"| {name} | {known.truth} | {_cell(screens[name])} |" for name, known in GATE.items()]
    lines += [REQUIREMENTS]
    for name, known in GATE.items():
        cells = ("<br>".join(f"`{_cell(one)}`" for one in of) for of in (known.must, known.must_not))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def screens_on(page: str) -> dict[str, str]:
    """Return what a page says that the package says, by the name of the kind."""
    table = page.partition("## What the tests require")[0]
    rows = [line[2:-2].split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0]: row[2] for row in rows if row[0] in GATE}


def without_figures(text: str) -> str:
    """Return a sentence without its figures, whose last digit depends on the machine."""
    return re.sub(r"[<=]? ?-?\d[\d.,]*", "#", text)


def faults(known: Known, screen: str) -> list[str]:
    """Return what the first screen lacks, and what it says that is not so."""
    lacking = [f"lacks {pattern}" for pattern in known.must if not re.search(pattern, screen)]
    return lacking + [f"says {pattern}" for pattern in known.must_not if re.search(pattern, screen)]


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    screens = {}
    for number, (name, known) in enumerate(GATE.items()):
        with TemporaryDirectory() as folder:
            screen = known.first_screen(Path(folder), number)
        screens[name] = quoted(known, screen)
        print(f"--- {name}\n{screen}\n    {faults(known, screen) or 'ok'}")
    if "--write" in sys.argv:
        PAGE.write_text(page(screens), encoding="utf-8")
