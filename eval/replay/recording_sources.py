"""Read recorded replies: from a file, in our own format or a published one, or from the folder of a past run.

The transcripts of a run hold every agent's words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...graphs.registry import find_protocol
from ...nodes.yaml_files import read_yaml
from ...state.aspects import Aspect
from ...state.errors import DataError, UsageError
from ...state.settings import Settings
from ...state.verdict import Winner
from ..datasets.dataset import Dataset
from ..datasets.files import Row, RowFile, sha256
from ..datasets.items import About, Number, explain
from ..datasets.selection import Sample
from ..results.folder import model_names, read_manifest, results_of
from ..results.results import FILE, Key
from ..statistics.tie_policy import TiePolicy
from .recording import (
    ItemAspect,
    ItemRows,
    Recorded,
    RecordedReply,
    Recording,
    TurnKey,
    note_item,
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
    >>> line.agent, line.round, line.item_aspect
    ('scorer', 1, ('a', 'coherence'))
    """

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    item: str = Field(min_length=1)
    aspect: str | None = None
    replies: tuple[str | None, ...] | None = None
    reply: str | None = None
    agent: str = Field(default="scorer", validation_alias=AliasChoices("agent", "role"))
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
            if "system" in given:
                given.setdefault("systems", (str(given["system"]),))
        return given

    @model_validator(mode="after")
    def _one_or_several(self) -> Line:
        if self.reply is not None and self.replies is not None:
            raise ValueError("a line has `reply` or `replies`, not both")
        return self

    @property
    def item_aspect(self) -> ItemAspect:
        """The item and the aspect that were judged."""
        return self.item, self.aspect and self.aspect.rpartition("/")[2]

    def about(self) -> About:
        """Return what a result repeats of the item; the texts are not there, and so have no lengths."""
        return About(systems=self.systems, category=self.category, lengths=(), annotations=())

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
        self._recorded = self._replies = dict[ItemAspect, dict[TurnKey, RecordedReply]]()
        self._names: dict[str, str] = {}
        # What the first line of an item says of it holds for all its aspects.
        rows, abouts = ItemRows(), dict[str, About]()
        family, models = "", dict[str, None]()
        places: dict[tuple[ItemAspect, TurnKey], Row] = {}
        for number, row, line in _lines(file, only):
            place = f"{path}, line {number}"
            turns = self._replies.setdefault(line.item_aspect, {})
            if (line.aspect is None) != (next(iter(self._replies))[1] is None):
                raise DataError(f"{place}: a file cannot mix lines with and without an aspect")
            if line.aspect is not None:
                own = line.aspect.rpartition("/")[0]
                if own and family not in ("", own):
                    raise DataError(f"{place}: a file cannot mix aspects of {family} and of {own}")
                family = own or family
            known = abouts.setdefault(line.item, line.about())
            note_item(rows, line.item_aspect, line.group, line.human, known)
            if line.model is not None:
                models.setdefault(line.model)
            for turn_key, reply in line.turns():
                if turn_key in turns:
                    raise _same(path, (number, row), places[line.item_aspect, turn_key], turn_key)
                turns[turn_key] = reply
                places[line.item_aspect, turn_key] = number, row
        if not rows:
            raise DataError(f"{path}: holds no recorded replies")
        query = "&".join(f"{name}={value}" for name, value in only.items())
        self.name = f"{path.name}?{query}" if query else path.name
        self.location, self.digest, self.models = str(path), file.digest, tuple(models)
        dataset = Dataset.of(self.name, recorded_items(rows, self._recorded, path), family=family or None)
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

    def settings(self, protocol: str, known: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings for as many samples and orders as there are; lines hold no others, which stay the default."""
        turn_keys = [turn_key for turns in self._replies.values() for turn_key in turns]
        settings = unasked(protocol, max([1, *(turn_key.sample for turn_key in turn_keys)]))
        one_order = self.dataset.kind == "compare" and all(turn_key.order == 1 for turn_key in turn_keys)
        asks_for_both = one_order and "position_calibration" in known.model_fields
        return {**settings, "position_calibration": False} if asks_for_both else settings


def _lines(file: RowFile, only: Filter) -> Iterator[tuple[int, dict[str, Any], Line]]:
    """Yield the chosen lines, each with the row that it was made of."""
    form, names = None, set[str]()
    for number, row in file.rows():
        names.update(row)
        if any(str(row.get(name)) != value for name, value in only.items()):
            continue
        # The first line that is chosen decides for the whole file.
        form = form_of(row) if form is None else form
        if form is None:
            wanted = "a line has `item` and `reply` or `replies` (see docs/replay.md)"
            why = f"no recorded reply; {wanted}, this one has {', '.join(row)}"
            raise DataError(f"{file.path}, line {number}: {why}")
        try:
            yield number, row, Line.model_validate(_published(form, row) if form else row)
        except (ValidationError, LookupError) as error:
            why = explain(error, row) if isinstance(error, ValidationError) else f"field {error} is missing"
            raise DataError(f"{file.path}, line {number}: {why}") from error
    if only and form is None:
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


@cache
def _formats() -> dict[str, dict[str, Any]]:
    """Read formats.yaml: by name, how the lines of published files are read."""
    formats: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_name("formats.yaml"))
    return formats


def form_of(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find how rows with these fields are read, empty for lines of our own; ``None`` if they hold no recorded reply.

    >>> form_of({"item": "a", "reply": "4"}), form_of({"id": "a", "text": "4"})
    ({}, None)
    """
    if not row.keys() & {"reply", "replies"}:
        return None
    published = (form for form in _formats().values() if row.keys() >= {*form["fields"]})
    return {} if "item" in row else next(published, None)


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


_ELSEWHERE = ("models", "prompts", "repair", "temperature", "max_tokens", "structured")
"""The settings that a replay does not take over: models, prompts, repairs and parameters of requests."""

_FIXED = frozenset(["prompts", "layout", "temperature", "max_tokens", "structured"])
"""The settings of every protocol that decide what agents are told, and so what they reply."""


class PastRun(Recording):
    """Gives the replies in the transcripts of a run; each transcript is read when its verdict is made again.

    Where a reply was asked for again, the transcript has the last one. Of a structured reply it has the words and the
    value written out.

    Raises:
        DataError: the folder holds no run, or one without results.
    """

    def __init__(self, folder: Path) -> None:
        self._manifest = read_manifest(folder)
        self._results = results_of(folder).read()
        self._places: dict[Key, int] = {}
        recorded = self._manifest.get("aspects", ())
        self._aspects: dict[str, Aspect] = {row["name"]: Aspect.model_validate(row) for row in recorded}
        self._recorded = dict[ItemAspect, None]()
        rows: ItemRows = {}
        for place, head in enumerate(self._results.heads()):
            key = Key(head["item"], head["aspect"], head["protocol"], head["repeat"])
            self._places[key] = place
            # Protocols and repeats have the same labels: the first result of an item and aspect stands for all.
            if key[:2] not in self._recorded:
                known = cast("About", {name: head[name] for name in About.__annotations__})
                self._recorded[key[:2]] = None
                note_item(rows, key[:2], head["group"], head["human"], known)
        if not self._places:
            raise DataError(f"{folder}: holds no results to replay")
        self.name, self.location = folder.resolve().name, str(folder)
        self.digest = sha256(folder / FILE)[:12]
        # Of a replay, the models are those of its own recording.
        replayed = self._manifest.get("replies")
        self.models = tuple(replayed["models"]) if replayed else model_names(self._manifest)
        # What results say of the run's items, under the name of the data that they came from.
        about = self._manifest["data"]
        self.dataset = replace(
            Dataset.of(about["name"], recorded_items(rows, self._recorded, folder), labels=about["labels"]),
            digest=about["digest"],
            location=about["location"],
            rule=TiePolicy.of(self._manifest),
            columns=about.get("columns", {}),
            chosen=Sample(**about["sample"]) if "sample" in about else None,
        )

    def of(self, key: Key) -> Recorded:
        """Return the replies of a verdict; those of a failed one are used as far as its turns can be told apart.

        Raises:
            DataError: the results were changed after they were opened.
        """
        if key not in self._places:
            return {}
        result = self._results[self._places[key]]
        # The file may have been rewritten in place; another result would then stand at this offset.
        if result.key != key:
            raise DataError(f"{self.location} has changed since it was read; leave it alone and start again")
        replies: dict[TurnKey, list[RecordedReply]] = {}
        for turn in result.transcript:
            if turn["model"] is not None:
                reply = RecordedReply(turn["content"], turn["model"])
                # Fields that a turn does not have are those of a turn by itself.
                turn_key = TurnKey(**{name: turn[name] for name in TurnKey._fields if name in turn})  # type: ignore[literal-required]
                replies.setdefault(turn_key, []).append(reply)
        if result.status == "failed":
            # Its turns may look alike: wrappers mark them only when their graph ends.
            settings = self._manifest.get("protocols", {}).get(key.protocol, {})
            nested = "of" in settings or "cheap" in settings
            both_orders = key.aspect is None and settings.get("position_calibration", False)
            if nested or both_orders or any(len(several) > 1 for several in replies.values()):
                return {}
        return replies

    def aspects(self, dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
        """Return the run's own aspects with their scales; other ones are found by name, as in any run."""
        own = self._aspects
        wanted = [name.rpartition("/")[2] if isinstance(name, str) else None for name in names] or list(own)
        if all(name in own for name in wanted):
            return [own[name] for name in wanted if name is not None]
        return super().aspects(dataset, names)

    def settings(self, protocol: str, known: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the run that are not the protocol's defaults."""
        if protocol not in self._manifest["signatures"]:
            judges = ", ".join(self._manifest["signatures"])
            raise UsageError(f"{self.location}: a run of {judges}, with no replies recorded for {protocol}")
        recorded = self._manifest.get("protocols", {}).get(protocol, {})
        fixed = _FIXED | {*find_protocol(protocol).protocol.replay.fixed}
        for name in given.keys() & fixed & recorded.keys():
            wanted = known.model_validate({name: given[name]}).model_dump(mode="json")[name]
            if wanted != recorded[name]:
                why = "with another value there would have been other replies; leave the setting out"
                was = f"the replies were recorded with {name}={recorded[name]}"
                raise UsageError(f"{name}={given[name]}: {was}, and {why}")
        own = recorded_settings(self._manifest, protocol, known, _ELSEWHERE)
        # The first verdict says how often a scorer was asked: the settings of a run hold for all of them.
        of_protocol = (result for result in self._results if result.protocol == protocol)
        turns = next((result.transcript for result in of_protocol if result.status == "ok"), ())
        return {**own, **unasked(protocol, max((turn.get("sample", 1) for turn in turns), default=1))}


def recorded_settings(
    manifest: Mapping[str, Any], protocol: str, known: type[Settings], without: Collection[str]
) -> dict[str, Any]:
    """Return the settings of a run that are not the protocol's defaults."""
    usual, recorded = known().model_dump(mode="json"), manifest.get("protocols", {}).get(protocol) or {}
    wanted = recorded.keys() & usual.keys() - {*without}
    return {name: value for name, value in recorded.items() if name in wanted and usual[name] != value}
