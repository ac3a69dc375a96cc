"""Pack the debates and judged texts of a report into compressed blocks, with an index of all verdicts."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...state.errors import JurygraphError
from ...state.transcript import Turn
from ..analysis.verdict_columns import Codes
from ..datasets.dataset import Dataset, load_again
from ..datasets.items import Item, ScoreItem
from ..results.results import FILE, Result, ResultsFile, StoredResults
from ..results.turn_kinds import kind_of_turns
from .debate_choice import error, interests, moved, worth_reading

# Lists by column, since the index has a row for every verdict and is loaded with the page: names stand there once.
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
class ReportedRun:
    """Names a run whose debates are put on the page.

    Attributes:
        name: the name of the run on the page.
        folder: the folder with its results.
        manifest: the content of its ``run.json``.
    """

    name: str
    folder: Path
    manifest: Mapping[str, Any]

    @property
    def size(self) -> int:
        """The size of its file of results, in bytes; 0 without one."""
        path = self.folder / FILE
        return path.stat().st_size if path.exists() else 0

    @property
    def scales(self) -> dict[str | None, float]:
        """The length of each aspect's scale, from its lowest to its highest score."""
        return {
            aspect["name"]: aspect["high"] - aspect["low"]
            for aspect in self.manifest.get("aspects") or ()
            if {"name", "low", "high"} <= aspect.keys()
        }


MOST = 5000
"""Verdicts of which a page has the debates, unless it is asked for more."""
_MOST_DEBATES, _MOST_TEXTS = 12_000_000, 4_000_000
"""Bytes of JSON of the debates, and characters of the texts, that a page has then: it stays below 10 MB."""


class Debates:
    """Writes blocks first (``blocks``), then the index of what is in them (``index``).

    Of more verdicts than a page is to have, those worth reading are chosen. In memory are a few numbers of each
    verdict, a row of each chosen one, and one block of transcripts or texts at a time.

    Args:
        runs: the runs.
        most: verdicts that the page may have, however large that makes it; by default ``MOST``, or as many as keep it
            below 10 MB.
    """

    def __init__(self, runs: Sequence[ReportedRun], most: int | None = None) -> None:
        self._runs = runs
        self._most = most
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._protocols, self._aspects, self._reasons, self._items = (
            Codes(),
            Codes(),
            Codes(),
            Codes(),
        )
        self._transcripts, self._texts = Packer("t"), TextPacker()
        self._places: dict[int, tuple[int, int]] = {}
        self._without: dict[int, str] = {}

    def __len__(self) -> int:
        """Return how many verdicts the page has."""
        return sum(map(len, self._chosen))

    @property
    def total(self) -> int:
        """How many verdicts the runs have."""
        return sum(map(len, self._results))

    @property
    def note(self) -> str | None:
        """What readers must know where not every verdict is on the page."""
        if len(self) == self.total:
            return None
        return (
            f"{len(self):,} of {self.total:,} verdicts are on this page, those worth reading first: failed, far from "
            f"the label, or changed in the debate. The other {self.total - len(self):,} are in the folders of the "
            "runs: jurygraph show DIR ITEM prints all of an item, and --debates N puts more of them on the page."
        )

    def blocks(self) -> Iterator[Block]:
        """Yield blocks with all transcripts, then with all texts, each as soon as it is full.

        Raises:
            DataError: a line is not a result; the message names file and line.
        """
        for number, run in enumerate(self._runs):
            for result in self._results[number].at(self._chosen[number]):
                self._add(number, run, result, run.scales.get(result.aspect))
                if self._transcripts.full:
                    yield from self._transcripts.take()
        yield from self._transcripts.take()
        # Texts come last: only now is it known which items of a dataset have a verdict.
        yield from self._text_blocks()

    @cached_property
    def _results(self) -> list[StoredResults]:
        return [ResultsFile(run.folder).read() for run in self._runs]

    @cached_property
    def _chosen(self) -> list[NDArray[np.intp]]:
        """The places of the verdicts of each run that the page has, in their order."""
        ends = np.cumsum([0, *map(len, self._results)])
        chosen, bounded = np.arange(self.total), self._most is None
        # A file of results is longer than its debates on the page.
        large = sum(run.size for run in self._runs) > _MOST_DEBATES
        if self.total > (MOST if self._most is None else self._most) or (bounded and large):
            read = zip(self._runs, self._results, strict=True)
            heads = (interests(run.name, run.scales, results.heads()) for run, results in read)
            chosen = worth_reading(chain.from_iterable(heads))[: MOST if self._most is None else self._most]
        if bounded and large:
            chosen = chosen[: self._within_bounds(chosen, ends)]
        chosen = np.sort(chosen)
        return [chosen[(low <= chosen) & (chosen < high)] - low for low, high in pairwise(ends)]

    def _within_bounds(self, chosen: NDArray[np.intp], ends: NDArray[np.intp]) -> int:
        """Return how many of the chosen, the first first, a page can have that is to stay small."""
        size = 0
        for count, place in enumerate(chosen.tolist()):
            run = int(np.searchsorted(ends, place, side="right")) - 1
            size += len(as_json(_debate(self._results[run][place - int(ends[run])])))
            if size > _MOST_DEBATES:
                return count
        return len(chosen)

    def index(self) -> dict[str, Any]:
        """Return the index that the page loads at once, as plain JSON; call it after ``blocks``."""
        items = self._items.names()
        nowhere = (-1, -1)  # of an item whose text could not be read again
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

    def _add(self, number: int, run: ReportedRun, result: Result, scale: float | None) -> None:
        place = self._transcripts.add(_debate(result))
        row = {
            "run": number,
            # By the data's digest and the id: two runs on the same data share their items' texts.
            "item": self._items.code((_digest(run.manifest), result.item)),
            "protocol": self._protocols.code(result.protocol),
            "aspect": self._aspects.code(result.aspect),
            "repeat": result.repeat,
            "ok": int(result.status == "ok"),
            "value": result.score if result.scores is None else result.scores,
            "winner": result.winner,
            "human": result.human,
            **error(vars(result), scale),
            "moved": moved(vars(result)),
            "rounds": result.rounds,
            "reason": self._reasons.code(result.stop_reason),
            "calls": result.calls,
            "tokens": result.tokens if result.tokens or not result.calls else None,
            "cost": result.cost_usd,
            "block": place.block,
            "place": place.place,
        }
        for name, value in row.items():
            self._columns[name].append(value)

    def _text_blocks(self) -> Iterator[Block]:
        """Yield blocks with the texts of each dataset, once even if several runs judged it."""
        read: dict[str, Dataset | str] = {}
        for number, run in enumerate(self._runs):
            digest = _digest(run.manifest)
            if digest not in read:
                read[digest] = dataset = dataset_of(run.manifest)
                if isinstance(dataset, Dataset):
                    yield from self._texts_of(dataset, digest)
            dataset = read[digest]
            self._without[number] = dataset if isinstance(dataset, str) else _NO_TEXT

    def _texts_of(self, dataset: Dataset, digest: str) -> Iterator[Block]:
        numbers = {id: number for number, (of, id) in enumerate(self._items.names()) if of == digest}
        for item in wanted(dataset, numbers):
            if self._most is None and self._texts.characters > _MOST_TEXTS:
                break
            self._places[numbers[item.id]] = self._texts.add(item)
            if self._texts.full:
                yield from self._texts.take()
        yield from self._texts.take()


_NO_TEXT = "The texts are not shown: the data has no such item, or the page would grow too large."


def _digest(manifest: Mapping[str, Any]) -> str:
    data = manifest.get("data") or {}
    return str(data.get("digest") or data.get("name"))


def _debate(result: Result) -> dict[str, Any]:
    """Return the part of a result that the page shows when it is opened, without empty fields."""
    kind_of = kind_of_turns(result)
    debate = {
        "error": result.error,
        "warnings": result.warnings,
        "score_by_round": result.score_by_round,
        "details": result.details,
        "transcript": [_turn(turn, kind_of(turn)) for turn in result.transcript],
    }
    return {name: value for name, value in debate.items() if value}


def _turn(turn: Turn, kind: str) -> dict[str, Any]:
    fields: Mapping[str, Any] = turn
    shown = {name: fields[name] for name in ("round", "agent", "role", "content", "value", "model")}
    shown["kind"] = kind
    return shown | {name: fields[name] for name in _LEFT_OUT_WHERE_EMPTY if name in fields}


def run_folders(folders: Iterable[tuple[Path, Mapping[str, Any]]]) -> list[ReportedRun]:
    """Give each run a name: the last part of its folder, or the whole path if others end alike.

    >>> [run.name for run in run_folders([(Path("a/tc"), {}), (Path("b/tc"), {}), (Path("fe"), {})])]
    ['a/tc', 'b/tc', 'fe']
    """
    runs = list(folders)
    last = [folder.resolve().name for folder, _ in runs]
    return [
        ReportedRun(name if last.count(name) == 1 else str(folder), folder, manifest)
        for name, (folder, manifest) in zip(last, runs, strict=True)
    ]


def dataset_of(manifest: Mapping[str, Any]) -> Dataset | str:
    """Load the dataset of a run again, or say in a sentence for readers why that is impossible."""
    data = manifest.get("data") or {}
    name, location = data.get("name"), data.get("location")
    if not name or not location:
        return "The texts are not shown: the run did not record where its data was."
    where = Path(location)
    # Bundled data has no path of its own.
    if name not in ("demo", "demo-pairs") and not where.exists():
        return f"The texts are not shown: {where.name} is no longer where the run read it."
    try:
        dataset = load_again(name, location, data.get("columns"))
    except (JurygraphError, OSError):
        return f"The texts are not shown: {where.name} can no longer be read."
    if dataset.digest != data.get("digest"):
        return f"The texts are not shown: {where.name} has changed since the run."
    return dataset


def fields_of(item: Item) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of an item's fields, in the order of reading."""
    named: tuple[tuple[str, str | None], ...]
    if isinstance(item, ScoreItem):
        named = (("source", item.source), ("fact", item.fact), ("candidate", item.candidate))
    else:
        named = (
            *(("question", item.question), ("reference", item.reference)),
            *(("answer_1", item.answer_1), ("answer_2", item.answer_2)),
        )
    return ((name, text) for name, text in named if text)


class TextPacker:
    """Packs the texts of items into blocks; a text that several items of a block share is stored once.

    Attributes:
        count: blocks so far.
        characters: those of all texts so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._items: list[list[tuple[str, int]]] = []
        self._strings: dict[str, int] = {}
        self._size = 0
        self.characters = 0

    @property
    def full(self) -> bool:
        """Tell whether the current block is large enough to be taken."""
        return self._size >= FULL

    def add(self, item: Item) -> TextPosition:
        """Add the texts of an item and return where they are stored."""
        self._items.append([(name, self._place(text)) for name, text in fields_of(item)])
        return TextPosition(self.count, len(self._items) - 1)

    def take(self) -> list[Block]:
        """Return the current block and begin a new one; an empty list if it holds nothing."""
        if not self._items:
            return []
        content = {"items": self._items, "strings": list(self._strings)}
        block = Block(f"i{self.count}", packed(as_json(content)))
        self.count += 1
        self._items, self._strings, self._size = [], {}, 0
        return [block]

    def _place(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self._size += len(text)
            self.characters += len(text)
        return self._strings[text]


def wanted(dataset: Dataset, ids: Container[str]) -> Iterator[Item]:
    """Yield the items with these ids; end early if the file changes while it is read."""
    try:
        yield from (item for item in dataset if item.id in ids)
    except JurygraphError:
        return  # the report is written all the same; items without texts say so on the page


FULL = 1 << 18
"""The size of a block in bytes of JSON: small enough to unpack at once, large enough to compress well."""


class TextPosition(NamedTuple):
    """Says where something is stored: the number of the block, and the index in it."""

    block: int
    place: int


class Block(NamedTuple):
    """Holds a compressed block, as text that HTML can hold."""

    id: str
    text: str


def as_json(value: Any) -> bytes:
    """Write JSON in UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes a question mark.

    >>> as_json({"said": "\\ud83d!"})
    b'{"said":"?!"}'
    """
    # orjson is much faster, but refuses lone surrogates and integers of more than 64 bits.
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode(errors="replace")


def for_script(value: Any) -> str:
    """Write JSON that a ``script`` element can hold: nothing in it ends the element or begins a comment.

    >>> for_script("</script>")
    '"\\\\u003c/script>"'
    """
    return as_json(value).decode().replace("<", "\\u003c")


def packed(content: bytes) -> str:
    """Compress and encode as base64; the same content always gives the same text."""
    # Without a time stamp, equal content gives equal text and the page can be compared with an older one.
    return base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode("ascii")


class Packer:
    """Packs values into blocks. Take the block whenever it is ``full``, and the last one at the end."""

    def __init__(self, prefix: str) -> None:
        self.count = 0
        self._prefix = prefix
        self._held: list[bytes] = []
        self._size = 0

    @property
    def full(self) -> bool:
        """Tell whether the current block is large enough to be taken."""
        return self._size >= FULL

    def add(self, value: Any) -> TextPosition:
        """Add a value and return where it is stored."""
        content = as_json(value)
        self._held.append(content)
        self._size += len(content)
        return TextPosition(self.count, len(self._held) - 1)

    def take(self) -> list[Block]:
        """Return the current block and begin a new one; an empty list if it holds nothing."""
        if not self._held:
            return []
        block = Block(f"{self._prefix}{self.count}", packed(b"[" + b",".join(self._held) + b"]"))
        self.count += 1
        self._held, self._size = [], 0
        return [block]
