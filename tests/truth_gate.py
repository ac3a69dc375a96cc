"""Judges whose truth is known; docs/promises.md has it, and what the first screen must and must not say of them.

    python -m tests.truth_gate --write

writes into the page what the package says; ``test_report.py`` holds the package to it.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

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


GATE: Mapping[str, Makes] = {
    "a better judge": texts({"good": sees(0.4), "weak": sees(1.6)}),
    "a slightly better judge": texts({"good": sees(0.80), "fair": sees(0.82)}),
    "three judges, the second as good": texts({"one": sees(0.5), "two": sees(0.5), "weak": sees(2.5)}),
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
    "the first place": pairs({"first": leaning(0.9, "1", 0.5), "fair": right(0.75)}),
    "the second place": pairs({"second": leaning(0.9, "2", 0.4), "fair": right(0.75)}),
    "random scores": texts({"random": lambda random, row: float(random.integers(1, 6))}),
    "random winners": pairs({"random": lambda random, row: "12"[int(random.integers(2))]}, first=0.7),
    "reversed": texts({"reversed": _reversed}),
    "the same judge under two names": texts({"one": _copies, "two": _copies}),
    "the same judge under two names, and a worse one": texts(
        {"one": _copies, "two": _copies, "weak": sees(2.5)}
    ),
    "six items": texts({"good": sees(0.3), "weak": sees(0.9)}, groups=6, size=1),
    "five groups": texts({"good": sees(0.4), "weak": sees(1.2)}, groups=5, size=10),
    "few groups that both rank": texts({"many": ranks_part(0, 24), "fewer": ranks_part(20, 40)}),
    "many ties": pairs({"always": _says("tie"), "good": right(0.7)}, ties=0.6),
    "twenty of twenty": pairs({"perfect": right(1.0)}, items=20),
    "labels of one value": texts({"good": sees(0.3)}, label=3.0),
    "one judge on two datasets": one_judge_twice,
    "a judge that was stopped": texts({"good": sees(0.4), "weak": sees(1.5), "stopped": _stops}),
    "two runs of one judge": two_runs,
    "an ensemble of personas": personas,
    "missing annotators": missing_annotators,
    "labels of one value, and a judge that always says it": texts({"always": _says(3.0)}, label=3.0),
    "eight high levels": texts({f"high{number}": sees(0.5, shift=1.5) for number in range(8)}, groups=30),
}


def first_screen(name: str, folder: Path) -> str:
    """Return what ``report`` says first of the judges of this name, whose runs are made in a folder."""
    random = np.random.default_rng(list(GATE).index(name))
    study = Study.of(GATE[name](folder, random), resampling=Resampling(resamples=300))
    return "\n".join([headline(study), *answers(study)])


class Promise(NamedTuple):
    """What the page says of judges: what it quotes, and the patterns that the first screen must hold, and must not."""

    quoted: str
    must: list[str]
    must_not: list[str]

    def quotation(self, screen: str) -> str:
        """Return the first line of a screen, and those of its other sentences that hold what it must say."""
        claim, *others = screen.split("\n")
        sentences = [sentence.removesuffix(".") for line in others for sentence in line.split(". ")]
        wanted = [one for one in sentences if any(re.search(pattern, one) for pattern in self.must)]
        return " ... ".join([claim, *wanted])

    def faults(self, screen: str) -> list[str]:
        """Return what a screen lacks, and what it says that is not so."""
        lacking = [f"lacks {pattern}" for pattern in self.must if not re.search(pattern, screen)]
        return lacking + [f"says {pattern}" for pattern in self.must_not if re.search(pattern, screen)]


def promises() -> dict[str, Promise]:
    """Read the two tables of the page, by the judges that their rows are about."""
    told, _, required = PAGE.read_text(encoding="utf-8").partition("## What the tests require")
    quotations = {cells[0]: _text(cells[2]) for cells in _rows(told)}
    found = {}
    for name, *patterns in _rows(required):
        must, must_not = ([_text(part) for part in re.findall("`(.*?)`", cell)] for cell in patterns)
        found[name] = Promise(quotations.pop(name), must, must_not)
    assert not quotations, "judges of whom nothing is required"
    return found


def _rows(table: str) -> list[list[str]]:
    rows = [line[2:-2].split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return [cells for cells in rows if cells[0] != "judges"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def _text(cell: str) -> str:
    return cell.replace("\\|", "|").replace("<br>", "\n")


def without_figures(text: str) -> str:
    """Return a sentence without its figures, whose last digit depends on the machine."""
    return re.sub(r"[<=]? ?-?\d[\d.,]*", "#", text)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    for name, promise in promises().items():
        with TemporaryDirectory() as folder:
            screen = first_screen(name, Path(folder))
        print(f"--- {name}\n{screen}\n    {promise.faults(screen) or 'ok'}")
        page = page.replace(f" | {_cell(promise.quoted)} |\n", f" | {_cell(promise.quotation(screen))} |\n")
    if "--write" in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
