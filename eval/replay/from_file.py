"""Read recorded replies from a file, in our own format or in a published one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...nodes.yaml_files import read_yaml
from ...state.aspects import Aspect
from ...state.errors import DataError, UsageError
from ...state.settings import Settings
from ...state.verdict import Winner
from ..datasets.dataset import Dataset
from ..datasets.files import Row, RowFile
from ..datasets.items import Number, explain
from ..results.results import Key
from .recording import (
    Recorded,
    RecordedReply,
    RecordedUnit,
    Recording,
    TurnKey,
    Unit,
    chosen,
    recorded_items,
    unasked,
)

Filter = Mapping[str, str]
"""Selects lines by the values of their fields, where a file holds the replies of several judges."""


class Line(BaseModel):
    """Holds one line of a file of recorded replies.

    A line with ``replies`` holds an agent's samples, one with ``reply`` a single reply. Without ``role`` and ``agent``
    the agent is the scorer. The round is 1 by default, and 0 for what comes before the first round of a debate.

    >>> line = Line(item="a", aspect="topical-chat/coherence", replies=["3", "2"], model="gpt-4", human=2.5)
    >>> line.agent, line.round, line.unit
    ('scorer', 1, ('a', 'coherence'))
    """

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    item: str = Field(min_length=1)
    aspect: str | None = None
    replies: tuple[str | None, ...] | None = None
    reply: str | None = None
    role: str | None = None
    agent: str = "scorer"
    round: int = Field(default=1, ge=0)
    sample: int = Field(default=0, ge=0)
    order: Literal[1, 2] = 1
    repeat: int = Field(default=0, ge=0)
    model: str | None = None
    human: Winner | Number | None = None
    group: str | None = None
    systems: tuple[str, ...] = ()
    category: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _speaker(cls, given: Any) -> Any:
        if isinstance(given, dict):
            # A field that is null counts as absent, so that it gets its default.
            given = {name: value for name, value in given.items() if value is not None}
            if "role" in given:
                given.setdefault("agent", given["role"])
            if "system" in given:
                given.setdefault("systems", (str(given["system"]),))
        return given

    @model_validator(mode="after")
    def _one_or_several(self) -> Line:
        if self.reply is not None and self.replies is not None:
            raise ValueError("a line has `reply` or `replies`, not both")
        return self

    @property
    def unit(self) -> Unit:
        """The item and the aspect that were judged."""
        return self.item, self.aspect and self.aspect.rpartition("/")[2]

    def turns(self) -> Iterator[tuple[TurnKey, RecordedReply]]:
        """Yield each reply with its turn; a null sample becomes an empty reply, later left out as unreadable."""
        # Where every sample is null or empty, nothing is recorded of the turn.
        samples = self.replies if any(self.replies or ()) else ()
        alone = [] if self.reply is None else [(self.sample, self.reply)]
        for sample, text in alone or enumerate(samples or (), start=1):
            turn_key = TurnKey(self.agent, self.round, sample, self.order, self.repeat)
            yield turn_key, RecordedReply(text or "", self.model)


class RecordedFile(Recording):
    """Gives the replies recorded in a file; they are held in memory, the texts that were judged are not.

    Args:
        path: a file that ``RowFile`` reads.
        only: selects lines of the file by the values of their fields.

    Raises:
        DataError: a line that is no recording, or two with the same turn of a verdict; names file and line.
        UsageError: ``only`` names a field that no line has, or leaves no line.
    """

    def __init__(self, path: Path, only: Filter) -> None:
        file = RowFile(path)
        self._units: dict[Unit, RecordedUnit] = {}
        self._replies: dict[Unit, dict[TurnKey, RecordedReply]] = {}
        self._names: dict[str, str] = {}
        self._aspects: dict[str, str] = {}
        family, models, units = "", dict[str, None](), self._units
        places: dict[tuple[Unit, TurnKey], Row] = {}
        for number, row, line in _lines(file, only):
            place = f"{path}, line {number}"
            unit = RecordedUnit(*line.unit, line.group, line.human, line.systems, line.category)
            unit = units.setdefault(line.unit, unit)
            if line.human is not None:
                unit.human = line.human
            if (line.aspect is None) != (next(iter(units))[1] is None):
                raise DataError(f"{place}: a file cannot mix lines with and without an aspect")
            if line.aspect is not None:
                own = line.aspect.rpartition("/")[0]
                if own and family not in ("", own):
                    raise DataError(f"{place}: a file cannot mix aspects of {family} and of {own}")
                family = own or family
                self._aspects.setdefault(unit.aspect or "", line.aspect)
            if line.model is not None:
                models.setdefault(line.model)
            turns = self._replies.setdefault(line.unit, {})
            for turn_key, reply in line.turns():
                if turn_key in turns:
                    raise _same(path, (number, row), places[line.unit, turn_key], turn_key)
                turns[turn_key] = reply
                places[line.unit, turn_key] = number, row
        if not units:
            raise DataError(f"{path}: holds no recorded replies")
        query = "&".join(f"{name}={value}" for name, value in only.items())
        self.name = f"{path.name}?{query}" if query else path.name
        self.location, self.digest, self.models = str(path), file.digest, tuple(models)
        dataset = Dataset.of(self.name, recorded_items(units.values(), path), family=family or None)
        self.dataset = replace(dataset, digest=self.digest, location=self.location)

    def match(self, dataset: Dataset) -> None:
        """Check as ``Recording.match`` does; items of a published dataset may be recorded under earlier names."""
        self._names = names_of(dataset)
        if not {name for name, _ in self._replies} & set(self._names.values()):
            self._names = {}
            super().match(dataset)

    def of(self, key: Key) -> Recorded:
        """Return the replies of a verdict; repeats of the run and inside a repeated protocol are counted together."""
        turns = self._replies.get((self._names.get(key.item, key.item), key.aspect), {})
        return {
            turn_key._replace(repeat=turn_key.repeat - key.repeat): (reply,)
            for turn_key, reply in turns.items()
            if turn_key.repeat >= key.repeat
        }

    def aspects(self, dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
        """Return the aspects named, else those of the lines."""
        return chosen(dataset, names, self._aspects)

    def settings(self, protocol: str, known: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings for as many samples and orders as there are; lines hold no others, which stay the default."""
        turn_keys = [turn_key for turns in self._replies.values() for turn_key in turns]
        settings = unasked(protocol, max([1, *(turn_key.sample for turn_key in turn_keys)]))
        one_order = self.dataset.kind == "compare" and all(turn_key.order == 1 for turn_key in turn_keys)
        asks_for_both = one_order and "position_calibration" in known.model_fields
        return {**settings, "position_calibration": False} if asks_for_both else settings


def _lines(file: RowFile, only: Filter) -> Iterator[tuple[int, dict[str, Any], Line]]:
    """Yield the chosen lines, each with the row that it was made of."""
    shape, names = None, set[str]()
    for number, row in file.rows():
        names.update(row)
        if any(str(row.get(name)) != value for name, value in only.items()):
            continue
        # The first line that is chosen decides for the whole file.
        shape = shape or shape_of(row)
        if shape is None:
            wanted = "a line has `item` and `reply` or `replies` (see docs/replay.md)"
            why = f"no recorded reply; {wanted}, this one has {', '.join(row)}"
            raise DataError(f"{file.path}, line {number}: {why}")
        try:
            yield number, row, Line.model_validate(shape(row))
        except (ValidationError, LookupError) as error:
            why = explain(error, row) if isinstance(error, ValidationError) else f"field {error} is missing"
            raise DataError(f"{file.path}, line {number}: {why}") from error
    if only and shape is None:
        unknown = [name for name in only if name not in names]
        what = f"no field {unknown[0]!r}, only {', '.join(sorted(names))}" if unknown else "no such line"
        raise UsageError(f"{file.path}: {what} ({' and '.join(f'{k}={v}' for k, v in only.items())})")


# These differ between any two lines, and say nothing of which judge a line is from.
_OF_A_REPLY = {"reply", "replies", "human", "author_score", "author_scores"}


def _same(path: Path, late: Row, early: Row, turn_key: TurnKey) -> DataError:
    """Make the error for two lines with the same turn; it names the fields that tell them apart, to choose by."""
    (number, new), (earlier, old) = late, early
    apart = [
        f"{path.name}?{name}={old.get(name)} (or {value})"
        for name, value in new.items()
        if name not in _OF_A_REPLY and value != old.get(name) and isinstance(value, str | int)
    ]
    how = f"; choose with {' or '.join(apart[:2])}" if apart else ""
    return DataError(f"{path}, line {number}: line {earlier} already has a reply of {turn_key}{how}")


Shape = Callable[[Mapping[str, Any]], dict[str, Any]]


@cache
def _formats() -> dict[str, dict[str, Any]]:
    """Read formats.yaml: by name, how the lines of published files are read."""
    formats: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_name("formats.yaml"))
    return formats


def shape_of(row: Mapping[str, Any]) -> Shape | None:
    """Find the function that reads rows with these fields; ``None`` for rows that hold no recorded reply.

    >>> shape_of({"item": "a", "reply": "4"})({"item": "a", "reply": "4"})
    {'item': 'a', 'reply': '4'}
    >>> shape_of({"id": "a", "text": "4"}) is None
    True
    """
    if not row.keys() & {"reply", "replies"}:
        return None
    if "item" in row:
        return dict
    known = (form for form in _formats().values() if row.keys() >= {*form["fields"]})
    return next((partial(_published, form) for form in known), None)


def _published(form: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a row of a published file as a line of our own."""
    names = {name: form[name].format_map(row) for name in ("item", "aspect") if name in form}
    systems = [row[name] for name in form["systems"] if row.get(name) is not None]
    given = {name: row[name] for name in ("reply", "replies", "human") if name in row}
    about = {"group": row[form["group"]], "systems": systems, "model": row.get("judge_model")}
    return {**names, **about, **given}


def names_of(dataset: Dataset) -> dict[str, str]:
    """Map items of a published dataset to the names that recorded replies have for them, where its file says so."""
    path = Path(dataset.location)
    if dataset.name != "summeval" or not path.is_file():
        return {}
    rows = (row for _, row in RowFile(path).rows() if row.keys() >= {"item_id", "doc_id", "system_id"})
    return {row["item_id"]: _formats()["summeval"]["item"].format_map(row) for row in rows}
