"""Every verdict of several runs: rows for a list, and transcripts and texts in blocks, read one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...state.transcript import Turn
from ..datasets import Dataset
from ..results import Result, ResultsFile
from .packing import Block, Packer
from .texts import TextPacker, dataset_of, wanted

_COLUMNS = (
    *(
        "run",
        "item",
        "protocol",
        "aspect",
        "repeat",
        "ok",
        "value",
        "winner",
        "human",
        "gap",
        "distance",
        "moved",
    ),
    *("rounds", "reason", "calls", "tokens", "cost", "block", "place"),
)
_LEFT_OUT_WHERE_EMPTY = ("order", "sample", "repeat", "stage")


@dataclass(frozen=True)
class RunFolder:
    """A run whose debates are to be read.

    Attributes:
        name: how it is called on the page.
        folder: where its results are.
        manifest: what was run.
    """

    name: str
    folder: Path
    manifest: Mapping[str, Any]


class Numbers:
    """Names, each with a number, in the order in which they come up."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def of(self, name: Any) -> int:
        """The number of a name; -1 for ``None``."""
        return -1 if name is None else self._numbers.setdefault(name, len(self._numbers))

    def names(self) -> list[Any]:
        """All names, in the order of their numbers."""
        return list(self._numbers)


class Debates:
    """Blocks first (``blocks``), then the index of what is in them (``index``), which is known when they are done.

    Of each verdict a row of numbers is kept; of transcripts and texts, a block at a time.
    """

    def __init__(self, runs: Sequence[RunFolder]) -> None:
        self._runs = runs
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._protocols, self._aspects, self._reasons, self._items = (
            Numbers(),
            Numbers(),
            Numbers(),
            Numbers(),
        )
        self._transcripts, self._texts = Packer("t"), TextPacker()
        self._places: dict[int, tuple[int, int]] = {}
        self._without: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._columns["run"])

    def blocks(self) -> Iterator[Block]:
        """Every transcript, then every text, each block as soon as it is full.

        Raises:
            DataError: a line that is no result; names file and line.
        """
        for number, run in enumerate(self._runs):
            scales = _scales(run.manifest)
            for result in ResultsFile(run.folder).read():
                self._add(number, run, result, scales.get(result.aspect))
                if self._transcripts.full:
                    yield from self._transcripts.take()
        yield from self._transcripts.take()
        yield from self._text_blocks()

    def index(self) -> dict[str, Any]:
        """What the page must know at once, as plain JSON; call it after ``blocks``."""
        items = self._items.names()
        nowhere = (-1, -1)
        return {
            "runs": [
                {"name": run.name, "without": self._without.get(number, "")}
                for number, run in enumerate(self._runs)
            ],
            "protocols": self._protocols.names(),
            "aspects": self._aspects.names(),
            "reasons": self._reasons.names(),
            "disclosures": list(dict.fromkeys(run.manifest.get("note") for run in self._runs)),
            "items": {
                "id": [id for _, id in items],
                "block": [self._places.get(number, nowhere)[0] for number in range(len(items))],
                "place": [self._places.get(number, nowhere)[1] for number in range(len(items))],
            },
            "rows": self._columns,
            "blocks": {"transcripts": self._transcripts.count, "texts": self._texts.count},
        }

    def _add(self, number: int, run: RunFolder, result: Result, scale: float | None) -> None:
        place = self._transcripts.add(_debate(result))
        row = {
            "run": number,
            "item": self._items.of((_digest(run.manifest), result.item)),
            "protocol": self._protocols.of(result.protocol),
            "aspect": self._aspects.of(result.aspect),
            "repeat": result.repeat,
            "ok": int(result.status == "ok"),
            "value": result.score if result.scores is None else result.scores,
            "winner": result.winner,
            "human": result.human,
            **_apart(result, scale),
            "moved": _moved(result),
            "rounds": result.rounds,
            "reason": self._reasons.of(result.stop_reason),
            "calls": result.calls,
            "tokens": result.input_tokens + result.output_tokens,
            "cost": result.cost_usd,
            "block": place.block,
            "place": place.place,
        }
        for name, value in row.items():
            self._columns[name].append(value)

    def _text_blocks(self) -> Iterator[Block]:
        """The texts of each dataset once, however many runs judged it."""
        read: dict[str, Dataset | str] = {}
        for number, run in enumerate(self._runs):
            digest = _digest(run.manifest)
            if digest not in read:
                read[digest] = found = dataset_of(run.manifest)
                if isinstance(found, Dataset):
                    yield from self._texts_of(found, digest)
            found = read[digest]
            self._without[number] = (
                found if isinstance(found, str) else "The texts are not shown: the data holds no such item."
            )

    def _texts_of(self, dataset: Dataset, digest: str) -> Iterator[Block]:
        numbers = {id: number for number, (of, id) in enumerate(self._items.names()) if of == digest}
        for item in wanted(dataset, numbers):
            self._places[numbers[item.id]] = self._texts.add(item)
            if self._texts.full:
                yield from self._texts.take()
        yield from self._texts.take()


def _digest(manifest: Mapping[str, Any]) -> str:
    data = manifest.get("data") or {}
    return str(data.get("digest") or data.get("name"))


def _scales(manifest: Mapping[str, Any]) -> dict[str | None, float]:
    """How long each aspect's scale is."""
    return {
        aspect["name"]: aspect["high"] - aspect["low"]
        for aspect in manifest.get("aspects") or ()
        if {"name", "low", "high"} <= aspect.keys()
    }


def _apart(result: Result, scale: float | None) -> dict[str, float | None]:
    """How far a verdict is from people's, in points, and as a part of the most it could be: what lists are ordered by.

    Of two answers: nothing where the same won, half where one side says tie, all where the other won.
    """
    if result.status == "failed" or result.human is None:
        return {"distance": None, "gap": None}
    if isinstance(result.human, str):
        gap = 0.0 if result.winner == result.human else 0.5 if "tie" in (result.winner, result.human) else 1.0
        return {"distance": None, "gap": gap}
    if result.score is None:
        return {"distance": None, "gap": None}
    distance = round(abs(result.score - result.human), 6)
    return {"distance": distance, "gap": round(distance / scale, 6) if scale else distance}


def _moved(result: Result) -> float | None:
    """How far the last score is from the first one; of two answers, the gap between their scores."""
    if len(result.score_by_round) < 2:
        return None
    first, last = result.score_by_round[0], result.score_by_round[-1]
    return round(abs(_gap(last) - _gap(first)), 6)


def _gap(score: float | tuple[float, float]) -> float:
    return score[0] - score[1] if isinstance(score, tuple) else score


def _debate(result: Result) -> dict[str, Any]:
    """What is read of a verdict when it is opened; what is empty is left out."""
    debate = {
        "error": result.error,
        "warnings": result.warnings,
        "score_by_round": result.score_by_round,
        "details": result.details,
        "transcript": [_turn(turn) for turn in result.transcript],
    }
    return {name: value for name, value in debate.items() if value}


def _turn(turn: Turn) -> dict[str, Any]:
    held: Mapping[str, Any] = turn
    said = {name: held[name] for name in ("round", "agent", "role", "content", "value", "model")}
    return said | {name: held[name] for name in _LEFT_OUT_WHERE_EMPTY if name in held}


def run_folders(folders: Iterable[tuple[Path, Mapping[str, Any]]]) -> list[RunFolder]:
    """Runs with a name each: the folder's last part, or as much of its path as tells it from the others.

    >>> [run.name for run in run_folders([(Path("a/tc"), {}), (Path("b/tc"), {}), (Path("fe"), {})])]
    ['a/tc', 'b/tc', 'fe']
    """
    held = list(folders)
    last = [folder.resolve().name for folder, _ in held]
    return [
        RunFolder(name if last.count(name) == 1 else str(folder), folder, manifest)
        for name, (folder, manifest) in zip(last, held, strict=True)
    ]
