"""Pack the debates and texts of a report into compressed blocks, with an index of all verdicts."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...state.errors import JurygraphError
from ...state.tasks import TEXTS
from ...state.transcript import Turn
from ..analysis.verdict_columns import Codes
from ..datasets.dataset import Dataset, load_again
from ..results.folder import results_of
from ..results.results import FILE, Result, StoredResults, kind_of_turns

# Lists by column, because the index has a row for every verdict and is loaded with the page. Names
# are stored once.
_COLUMNS = (
    *("run", "item", "protocol", "aspect", "repeat", "ok", "value", "winner", "human"),
    *("gap", "distance", "moved", "rounds", "reason", "calls", "tokens", "cost", "block", "place"),
)
_TURN = (
    *("round", "agent", "role", "content", "value", "model"),
    *("order", "sample", "repeat", "stage", "problem"),  # not of all turns
)


class ReportedRun(NamedTuple):
    """A run whose debates are on the page.

    Attributes:
        name: the name of the run on the page.
        folder: the folder with its results.
        manifest: the content of its ``run.json``.
    """

    name: str
    folder: Path
    manifest: Mapping[str, Any]

    @property
    def scales(self) -> dict[str | None, float]:
        """The length of each aspect's scale, from its lowest to its highest score."""
        aspects = self.manifest.get("aspects") or ()
        known = (aspect for aspect in aspects if {"name", "low", "high"} <= aspect.keys())
        return {aspect["name"]: aspect["high"] - aspect["low"] for aspect in known}


MOST = 5000
"""The number of verdicts with debates on a page, unless the user asks for more."""
_MOST_DEBATES = 12_000_000
_MOST_TEXTS = 4_000_000
"""The default limits for a page below 10 MB.

These are bytes of JSON of the debates, and characters of the texts.
"""


class Debates:
    """Write blocks first (``blocks``), then the index of their content (``index``).

    If there are more verdicts than the limit, the ones most worth reading are chosen. Memory
    contains a few numbers for each verdict, a row for each chosen one, and one block of transcripts
    or texts at a time.

    Args:
        runs: the runs.
        most: the maximum number of verdicts on the page, whatever its size. The default is
            ``MOST``, or the number that keeps the page below 10 MB.
    """

    def __init__(self, runs: Sequence[ReportedRun], most: int | None = None) -> None:
        self._runs = runs
        self._most = most
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._protocols, self._aspects, self._reasons, self._items = (Codes() for _ in range(4))
        self._transcripts = Packer("t")
        self._texts = Packer("i", shared=True)
        self._places: dict[int, Position] = {}
        self._without: list[str] = []

    def __len__(self) -> int:
        """Return the number of verdicts on the page."""
        return sum(map(len, self._chosen))

    @property
    def total(self) -> int:
        """The number of verdicts of the runs."""
        return sum(map(len, self._results))

    @property
    def note(self) -> str | None:
        """A note for readers if some verdicts are not on the page."""
        if not (left_out := self.total - len(self)):
            return None
        chosen = (
            f"{len(self):,} of {self.total:,} verdicts are on this page, those worth reading first"
        )
        others = f"The other {left_out:,} are in the folders of the runs: jurygraph show DIR ITEM prints all of an item"
        more = "--debates N puts more of them on the page"
        return (
            f"{chosen}: failed, far from the label, or changed in the debate. {others}, and {more}."
        )

    def blocks(self) -> Iterator[Block]:
        """Yield blocks with all transcripts, then with all texts, each as soon as it is full.

        Raises:
            DataError: a line is not a result; the message names the file and the line.
        """
        for number, run in enumerate(self._runs):
            for result in self._results[number][self._chosen[number]]:
                position = self._transcripts.add(_debate(result))
                fields = vars(result)
                row = {
                    **{
                        name: fields[name]
                        for name in ("repeat", "winner", "human", "rounds", "calls")
                    },
                    **error(fields, run.scales.get(result.aspect)),
                    **position._asdict(),
                    "run": number,
                    # By the data's digest and the id, so that two runs on the same data share their
                    # items' texts.
                    "item": self._items.code((_digest(run.manifest), result.item)),
                    "protocol": self._protocols.code(result.protocol),
                    "aspect": self._aspects.code(result.aspect),
                    "ok": int(result.status == "ok"),
                    "value": result.score if result.scores is None else result.scores,
                    "moved": moved(fields),
                    "reason": self._reasons.code(result.stop_reason),
                    "tokens": result.tokens if result.tokens or not result.calls else None,
                    "cost": result.cost_usd,
                }
                for name, value in row.items():
                    self._columns[name].append(value)
                yield from self._transcripts.take()
        yield from self._transcripts.take(last=True)
        # Texts come last, because only now is it known which items of a dataset have a verdict.
        yield from self._text_blocks()

    @cached_property
    def _results(self) -> list[StoredResults]:
        return [results_of(run.folder).read() for run in self._runs]

    @cached_property
    def _chosen(self) -> list[NDArray[np.intp]]:
        """The places of each run's verdicts on the page, in their order."""
        ends = np.cumsum([0, *map(len, self._results)])
        most = MOST if self._most is None else self._most
        chosen = np.arange(self.total)
        # A file of results is longer than its debates on the page.
        files = [path for run in self._runs if (path := run.folder / FILE).exists()]
        small = (
            self._most is not None or sum(path.stat().st_size for path in files) <= _MOST_DEBATES
        )
        if self.total > most or not small:
            chosen = worth_reading(np.fromiter(self._interests(), dtype=np.dtype((float, 4))))[
                :most
            ]
        size = 0
        for count, place in enumerate(() if small else chosen.tolist()):
            run = int(np.searchsorted(ends, place, side="right")) - 1
            size += len(as_json(_debate(self._results[run][place - int(ends[run])])))
            if size > _MOST_DEBATES:
                chosen = chosen[:count]
                break
        chosen = np.sort(chosen)
        return [chosen[(low <= chosen) & (chosen < high)] - low for low, high in pairwise(ends)]

    def _interests(self) -> Iterator[tuple[int, bool, float, float]]:
        """Yield the input of ``worth_reading`` for each verdict, without reading its transcript."""
        judges = Codes()
        for run, results in zip(self._runs, self._results, strict=True):
            scales = run.scales
            for head in results.heads():
                judge = judges.code((run.name, head["protocol"], head["aspect"]))
                gap = error(head, scales.get(head["aspect"]))["gap"]
                yield judge, head["status"] == "failed", gap or 0.0, moved(head) or 0.0

    def index(self) -> dict[str, Any]:
        """Return the index that the page loads at once, as plain JSON. Call it after ``blocks``."""
        ids = [id for _, id in self._items.names()]
        # An item without a readable text has no block.
        places = [self._places.get(number, Position(-1, -1)) for number in range(len(ids))]
        return {
            "runs": [
                {"name": run.name, "without": why}
                for run, why in zip(self._runs, self._without, strict=True)
            ],
            "protocols": self._protocols.names(),
            "aspects": self._aspects.names(),
            "reasons": self._reasons.names(),
            "disclosures": list(dict.fromkeys(run.manifest.get("note") for run in self._runs)),
            "items": {
                "id": ids,
                "block": [position.block for position in places],
                "place": [position.place for position in places],
            },
            "rows": self._columns,
            "blocks": {"transcripts": self._transcripts.count, "texts": self._texts.count},
        }

    def _text_blocks(self) -> Iterator[Block]:
        """Yield blocks with the texts of each dataset, once even if several runs judged it."""
        read: dict[str, Dataset | str] = {}
        for run in self._runs:
            digest = _digest(run.manifest)
            if digest not in read:
                read[digest] = dataset = dataset_of(run.manifest)
                if isinstance(dataset, Dataset):
                    yield from self._texts_of(dataset, digest)
            dataset = read[digest]
            self._without.append(dataset if isinstance(dataset, str) else _NO_TEXT)

    def _texts_of(self, dataset: Dataset, digest: str) -> Iterator[Block]:
        numbers = {
            id: number for number, (of, id) in enumerate(self._items.names()) if of == digest
        }
        try:
            for item in dataset:
                if self._most is None and self._texts.characters > _MOST_TEXTS:
                    break
                if item.id not in numbers:
                    continue
                texts = ((name, getattr(item, name, None)) for name in TEXTS)
                fields = [(name, self._texts.share(text)) for name, text in texts if text]
                self._places[numbers[item.id]] = self._texts.add(fields)
                yield from self._texts.take()
        except JurygraphError:
            pass  # the file changed while it was read: items without texts say so on the page
        yield from self._texts.take(last=True)


_NO_TEXT = "The texts are not shown: the data has no such item, or the page would grow too large."


def _digest(manifest: Mapping[str, Any]) -> str:
    data = manifest.get("data") or {}
    return str(data.get("digest") or data.get("name"))


def _debate(result: Result) -> dict[str, Any]:
    """Return the part of a result that the page shows on request, without empty fields."""
    kind_of = kind_of_turns(result)
    kinds = ((turn, kind_of(turn)) for turn in result.transcript)
    turns = (
        {name: turn.get(name) for name in _TURN if name in turn} | {"kind": kind} | _evidence(turn)
        for turn, kind in kinds
    )
    names = ("error", "warnings", "score_by_round", "details")
    debate = {name: getattr(result, name) for name in names} | {"transcript": list(turns)}
    return {name: value for name, value in debate.items() if value}


def _evidence(turn: Turn) -> dict[str, Any]:
    """Return the results of a turn's tool calls with whether its reply cites them."""
    cited = turn["citations"]["cited"] if "citations" in turn else []
    pieces = [
        {
            "id": piece["id"],
            "tool": piece["tool"],
            "result": piece["result"][:_LONGEST_EVIDENCE],
            "cited": piece["id"] in cited,
        }
        for piece in turn.get("evidence", ())
    ]
    return {"evidence": pieces} if pieces else {}


_LONGEST_EVIDENCE = 1000
"""The characters of a tool's result on the page."""


def worth_reading(verdicts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the places of verdicts, the ones most worth reading first.

    Each judge has three lists: failures, the largest distances from the label, and the largest
    changes. The first of each list come first, then the second of each, and so on. The verdicts on
    no list follow in their order.

    Args:
        verdicts: rows with the number of the verdict's judge, whether it failed, its distance from
            the label, and its change in the debate. Each judge has its share of the page on each
            aspect.

    >>> gaps = (0.1, 0.1, 0.1, 0.9, 0)
    >>> worth_reading(np.array([(0, place == 2, gap, 0) for place, gap in enumerate(gaps)])).tolist()
    [2, 3, 0, 1, 4]
    """
    turn = np.full(len(verdicts), len(verdicts))
    for judge in np.unique(verdicts[:, 0]):
        rows = np.flatnonzero(verdicts[:, 0] == judge)
        for column in verdicts[rows, 1:].T:
            # Stable, so that equal verdicts stay in their order.
            listed = rows[np.argsort(-column, kind="stable")[: int((column > 0).sum())]]
            turn[listed] = np.minimum(turn[listed], np.arange(len(listed)))
    return np.argsort(turn, kind="stable")


def error(fields: Mapping[str, Any], scale: float | None) -> dict[str, float | None]:
    """Compute the absolute error of a verdict: ``distance`` in points, ``gap`` as a scale share.

    In comparisons ``gap`` is 0 for the same winner, 0.5 if one of the two is a tie, and 1 for the
    other winner.
    """
    human = fields["human"]
    winner = fields["winner"]
    score = fields["score"]
    distance = gap = None
    if fields["status"] != "failed" and isinstance(human, str):
        gap = 0.0 if winner == human else 0.5 if "tie" in (winner, human) else 1.0
    elif fields["status"] != "failed" and human is not None and score is not None:
        # Rounded, because differences of floats such as 0.30000000000000004 would lengthen the
        # index.
        distance = round(abs(score - human), 6)
        gap = round(distance / scale, 6) if scale else distance
    return {"distance": distance, "gap": gap}


def moved(fields: Mapping[str, Any]) -> float | None:
    """Compute the absolute change from the first to the last score.

    In comparisons, this is the change of the difference of the two scores.
    """
    path = fields["score_by_round"]
    return None if len(path) < 2 else round(abs(_gap(path[-1]) - _gap(path[0])), 6)


def _gap(score: float | Sequence[float]) -> float:
    return score[0] - score[1] if isinstance(score, Sequence) else score


def run_folders(folders: Iterable[tuple[Path, Mapping[str, Any]]]) -> list[ReportedRun]:
    """Name each run by the last part of its folder, or by the whole path if others end alike.

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
    """Load the dataset of a run again, or return a sentence for readers with the reason why not."""
    data = manifest.get("data") or {}
    name = data.get("name")
    location = data.get("location")
    if not name or not location:
        return "The texts are not shown: the run did not record where its data was."
    where = Path(location)
    why = "has changed since the run"
    # Bundled data has no path.
    if name not in ("demo", "demo-pairs") and not where.exists():
        why = "is no longer where the run read it"
    else:
        try:
            dataset = load_again(data)
            if dataset.digest == data.get("digest"):
                return dataset
        except (JurygraphError, OSError):
            why = "can no longer be read"
    return f"The texts are not shown: {where.name} {why}."


FULL = 1 << 18
"""The size of a block in bytes of JSON.

A small block is unpacked at once, and a large one compresses well.
"""


class Position(NamedTuple):
    """The place of a stored value: the number of the block, and the index in it."""

    block: int
    place: int


class Block(NamedTuple):
    """A compressed block, as text for HTML."""

    id: str
    text: str


def as_json(value: Any) -> bytes:
    """Write JSON in UTF-8, with a question mark for each lone surrogate.

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
    """Write JSON for a ``script`` element, without text that ends the element or begins a comment.

    >>> for_script("</script>")
    '"\\\\u003c/script>"'
    """
    return as_json(value).decode().replace("<", "\\u003c")


class Packer:
    """Pack values into blocks. Take the block after each value, and the last one at the end.

    Args:
        prefix: the beginning of the blocks' ids.
        shared: whether the values of a block refer to texts by number (``share``), so that each
            text is stored once.

    Attributes:
        count: the number of blocks so far.
        characters: the number of characters of all shared texts so far.
    """

    def __init__(self, prefix: str, shared: bool = False) -> None:
        self.count = self.characters = 0
        self._prefix = prefix
        self._shared = shared
        self._values: list[bytes] = []
        self._texts: dict[str, int] = {}
        self._size = 0

    def share(self, text: str) -> int:
        """Add a text to the current block, unless it is already there, and return its number."""
        if text not in self._texts:
            self._size += len(text)
            self.characters += len(text)
        return self._texts.setdefault(text, len(self._texts))

    def add(self, value: Any) -> Position:
        """Add a value, and return its place."""
        self._values.append(as_json(value))
        self._size += len(self._values[-1])
        return Position(self.count, len(self._values) - 1)

    def take(self, last: bool = False) -> list[Block]:
        """Return the current block and begin a new one.

        Return ``None`` before the block is full, or if the last one is empty.
        """
        if not self._values or (self._size < FULL and not last):
            return []
        content = b"[" + b",".join(self._values) + b"]"
        if self._shared:
            content = b'{"items":' + content + b',"strings":' + as_json(list(self._texts)) + b"}"
        # Without a time stamp, equal content gives equal text, so pages can be compared.
        packed = base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode("ascii")
        block = Block(f"{self._prefix}{self.count}", packed)
        self.count += 1
        self._values = []
        self._texts = {}
        self._size = 0
        return [block]
