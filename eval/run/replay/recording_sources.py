"""Sources of recorded replies: a file in our own or a published format, or a past run's folder.

The transcripts of a run contain every agent's words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import TypedDict

from ....graphs.engine.registry import find_protocol
from ....nodes.common.yaml_files import read_data
from ....nodes.replies import RULES, Rule
from ....nodes.replies.rules import OF_COMPARISONS, OF_SCORES
from ....state.aspects import Aspect
from ....state.data_files import Word, Words
from ....state.errors import DataError, UsageError
from ....state.settings import Settings
from ....state.verdict import Winner
from ...datasets.dataset import Dataset
from ...datasets.files import Filter, Row, RowFile, is_chosen, sha256
from ...datasets.items import About, explain
from ...datasets.label_reader import read_score, read_winner
from ...datasets.selection import Sample
from ...results.folder import model_names, read_manifest, results_of
from ...results.results import FILE, Key
from ...statistics.tie_policy import TiePolicy
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


class Line(BaseModel):
    """One line of a file of recorded replies.

    A line with ``replies`` contains an agent's samples, one with ``reply`` a single reply. Without
    ``role`` and ``agent`` the agent is the scorer. The round is 1 by default, and 0 before the
    first round of a debate. Without ``rule``, replies are read like those to this package's own
    prompts.

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
    human: Winner | float | None = None
    group: str | None = None
    systems: tuple[str, ...] = ()
    category: str | None = None
    rule: Rule | None = None

    @field_validator("human", mode="before")
    @classmethod
    def _label(cls, value: Any, about: ValidationInfo) -> Any:
        """Read a score if the line has an aspect, and a winner if it has none."""
        return read_winner(value) if about.data.get("aspect") is None else read_score(value)

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
        fitting = OF_COMPARISONS if self.aspect is None else OF_SCORES
        if self.rule is not None and self.rule not in fitting:
            wanted = "comparisons" if self.aspect is None else "scores"
            raise ValueError(
                f"the rule {self.rule} reads no {wanted}; these do: {', '.join(sorted(fitting))}"
            )
        return self

    @property
    def item_aspect(self) -> ItemAspect:
        """The item and the aspect that were judged."""
        return self.item, self.aspect and self.aspect.rpartition("/")[2]

    def about(self) -> About:
        """Return the information that a result repeats about the item.

        Without texts, there are no lengths.
        """
        return About(
            systems=self.systems, category=self.category, lengths=(), annotations=(), annotators=()
        )

    def turns(self) -> Iterator[tuple[TurnKey, RecordedReply]]:
        """Yield each reply with its turn; a null sample becomes an empty, unreadable reply."""
        # If every sample is null or empty, nothing is recorded for the turn.
        samples = self.replies if any(self.replies or ()) else ()
        alone = [] if self.reply is None else [(self.sample, self.reply)]
        for sample, text in alone or enumerate(samples or (), start=1):
            turn_key = TurnKey(self.agent, self.round, sample, self.order, self.repeat)
            yield turn_key, RecordedReply(text or "", self.model, self.rule)


class RecordedFile(Recording):
    """The replies recorded in a file; they are in memory, the judged texts are not.

    Args:
        path: a file that ``RowFile`` reads.
        only: selects lines of the file by the values of their fields; ``rule`` names the rule by
            which all replies are read, instead of that of their format or line.

    Raises:
        DataError: a line that is no recording, or two with the same turn of a verdict; names file
            and line.
        UsageError: ``only`` names a field that no line has, leaves no line, or names an unknown
            rule.
    """

    def __init__(self, path: Path, only: Filter) -> None:
        file = RowFile(path)
        self._recorded = self._replies = dict[ItemAspect, dict[TurnKey, RecordedReply]]()
        self._names: dict[str, str] = {}
        # The information about an item in its first line applies to all its aspects.
        rows = ItemRows()
        abouts = dict[str, About]()
        family = ""
        models = dict[str, None]()
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
            raise DataError(f"{path}: contains no recorded replies")
        query = "&".join(f"{name}={value}" for name, value in only.items())
        self.name = f"{path.name}?{query}" if query else path.name
        self.location = str(path)
        self.digest = file.digest
        self.models = tuple(models)
        dataset = Dataset.of(
            self.name, recorded_items(rows, self._recorded, path), family=family or None
        )
        self.dataset = replace(dataset, digest=self.digest, location=self.location)

    def match(self, dataset: Dataset) -> None:
        """Check as ``Recording.match`` does.

        Items of a published dataset may be recorded under earlier names.
        """
        self._names = names_of(dataset)
        if not {name for name, _ in self._replies} & set(self._names.values()):
            self._names = {}
            super().match(dataset)

    def of(self, key: Key) -> Recorded:
        """Return the replies of a verdict.

        Repeats of the run and inside a repeated protocol are counted together.
        """
        turns = self._replies.get((self._names.get(key.item, key.item), key.aspect), {})
        return {
            turn_key._replace(repeat=turn_key.repeat - key.repeat): (reply,)
            for turn_key, reply in turns.items()
            if turn_key.repeat >= key.repeat
        }

    def settings(
        self, protocol: str, known: type[Settings], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings for the recorded numbers of samples and orders.

        Lines contain no other settings, which have their defaults.
        """
        turn_keys = [turn_key for turns in self._replies.values() for turn_key in turns]
        settings = unasked(protocol, max([1, *(turn_key.sample for turn_key in turn_keys)]))
        one_order = self.dataset.kind == "compare" and all(
            turn_key.order == 1 for turn_key in turn_keys
        )
        asks_for_both = one_order and "position_calibration" in known.model_fields
        return {**settings, "position_calibration": False} if asks_for_both else settings


def _lines(file: RowFile, only: Filter) -> Iterator[tuple[int, dict[str, Any], Line]]:
    """Yield the chosen lines, each with its original row."""
    form = None
    names = set[str]()
    chosen = {name: value for name, value in only.items() if name != "rule"}
    rule = only.get("rule")
    if rule is not None and rule not in RULES:
        raise UsageError(f"{file.path}: there is no rule {rule!r}; choose from {', '.join(RULES)}")
    for number, row in file.rows():
        names.update(row)
        if not is_chosen(row, chosen):
            continue
        # The first chosen line decides for the whole file.
        form = form_of(row) if form is None else form
        if form is None:
            raise DataError(
                f"{file.path}, line {number}: no recorded reply; a line has `item` and `reply` or "
                f"`replies` (see docs/replay.md), this one has {', '.join(row)}"
            )
        try:
            line = _published(form, row) if form else row
            yield number, row, Line.model_validate(line if rule is None else {**line, "rule": rule})
        except (ValidationError, LookupError) as error:
            why = (
                explain(error, row)
                if isinstance(error, ValidationError)
                else f"field {error} is missing"
            )
            raise DataError(f"{file.path}, line {number}: {why}") from error
    if chosen and form is None:
        unknown = [name for name in chosen if name not in names]
        condition = " and ".join(f"{name}={value}" for name, value in chosen.items())
        if unknown:
            raise UsageError(
                f"{file.path}: no field {unknown[0]!r}, only {', '.join(sorted(names))} ({condition})"
            )
        raise UsageError(f"{file.path}: no such line ({condition})")


# These fields differ between any two lines, and do not identify the judge of a line.
_OF_A_REPLY = {"reply", "replies", "human", "author_score", "author_scores"}


def _same(path: Path, late: Row, early: Row, turn_key: TurnKey) -> DataError:
    """Create the error for two lines with the same turn.

    It names the fields that differ, to choose by.
    """
    (number, new), (earlier, old) = late, early
    apart = [
        f"{path.name}?{name}={old.get(name)} (or {value})"
        for name, value in new.items()
        if name not in _OF_A_REPLY and value != old.get(name) and isinstance(value, str | int)
    ]
    how = f"; choose with {' or '.join(apart[:2])}" if apart else ""
    return DataError(
        f"{path}, line {number}: line {earlier} already has a reply of {turn_key}{how}"
    )


class _Format(TypedDict):
    """The reading rules for a published file, from formats.yaml, which describes the fields."""

    fields: Words
    item: Annotated[str, StringConstraints(pattern=r"\{\w+\}")]
    aspect: NotRequired[Annotated[str, StringConstraints(pattern=r"\{\w+\}")]]
    group: Word
    systems: Words
    rule: Rule
    rule_by: NotRequired[dict[str, dict[str, Rule]]]


@cache
def _formats() -> dict[str, _Format]:
    """Read formats.yaml: the reading rules for published files, by name."""
    return read_data(Path(__file__).with_name("formats.yaml"), dict[str, _Format])


def form_of(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find the reading rules for rows with these fields.

    ``None`` if they contain no recorded reply.

    The rules are empty for lines in our own format.

    >>> form_of({"item": "a", "reply": "4"}), form_of({"id": "a", "text": "4"})
    ({}, None)
    """
    if not row.keys() & {"reply", "replies"}:
        return None
    published = (form for form in _formats().values() if row.keys() >= {*form["fields"]})
    return {} if "item" in row else next(published, None)


def _published(form: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Read a row of a published file as a line in our own format."""
    names = {name: form[name].format_map(row) for name in ("item", "aspect") if name in form}
    systems = [row[name] for name in form["systems"] if row.get(name) is not None]
    given = {name: row[name] for name in ("reply", "replies", "human") if name in row}
    about = {"group": row[form["group"]], "systems": systems, "model": row.get("judge_model")}
    return {**names, **about, **given, "rule": _rule_of(form, row)}


def _rule_of(form: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return the rule by which the authors of a format read a line's replies."""
    for field, rules in form.get("rule_by", {}).items():
        if row.get(field) in rules:
            return str(rules[row[field]])
    return str(form["rule"])


def names_of(dataset: Dataset) -> dict[str, str]:
    """Map items of a published dataset to their names in recorded replies, if its file has them."""
    path = Path(dataset.location)
    if dataset.name != "summeval" or not path.is_file():
        return {}
    rows = (
        row for _, row in RowFile(path).rows() if row.keys() >= {"item_id", "doc_id", "system_id"}
    )
    return {row["item_id"]: _formats()["summeval"]["item"].format_map(row) for row in rows}


_ELSEWHERE = (
    *("models", "prompts", "repair", "temperature", "max_tokens", "structured"),
    *("juror_tools", "tool_rounds", "tool_timeout"),
)
"""The settings that a replay does not take over: models, prompts, repairs, request parameters,
tools. The recorded replies were written with the tools' results, and no tool runs again."""

_FIXED = frozenset(["prompts", "layout", "fences", "temperature", "max_tokens", "structured"])
"""The settings of every protocol that decide the prompts, and thus the replies."""


class PastRun(Recording):
    """The replies in the transcripts of a run; each is read when its verdict is repeated.

    If a reply was requested again, the transcript has the last one. Of a structured reply it has
    the words and the value written out.

    Raises:
        DataError: the folder contains no run, or one without results.
    """

    def __init__(self, folder: Path) -> None:
        self._manifest = read_manifest(folder)
        self._results = results_of(folder).read()
        self._places: dict[Key, int] = {}
        recorded = self._manifest.get("aspects", ())
        self._aspects: dict[str, Aspect] = {
            row["name"]: Aspect.model_validate(row) for row in recorded
        }
        self._recorded = dict[ItemAspect, None]()
        rows: ItemRows = {}
        for place, head in enumerate(self._results.heads()):
            key = Key(head["item"], head["aspect"], head["protocol"], head["repeat"])
            self._places[key] = place
            # Protocols and repeats have the same labels: the first result of an item and aspect
            # represents all.
            if key[:2] not in self._recorded:
                known = cast("About", {name: head[name] for name in About.__annotations__})
                self._recorded[key[:2]] = None
                note_item(rows, key[:2], head["group"], head["human"], known)
        if not self._places:
            raise DataError(f"{folder}: contains no results to replay")
        self.name = folder.resolve().name
        self.location = str(folder)
        self.digest = sha256(folder / FILE)[:12]
        # The models of a replay are those of its own recording.
        replayed = self._manifest.get("replies")
        self.models = tuple(replayed["models"]) if replayed else model_names(self._manifest)
        # The information in results about the run's items, under the name of their data.
        about = self._manifest["data"]
        self.dataset = replace(
            Dataset.of(
                about["name"], recorded_items(rows, self._recorded, folder), labels=about["labels"]
            ),
            digest=about["digest"],
            location=about["location"],
            rule=TiePolicy.of(self._manifest),
            columns=about.get("columns", {}),
            label_codes=about.get("label_codes", {}),
            empty=about.get("empty", "refuse"),
            chosen=Sample(**about["sample"]) if "sample" in about else None,
        )

    def of(self, key: Key) -> Recorded:
        """Return the replies of a verdict; of a failed one, if its turns can be distinguished.

        Raises:
            DataError: the results were changed after they were opened.
        """
        if key not in self._places:
            return {}
        result = self._results[self._places[key]]
        # The file may have been rewritten in place; another result would then be at this offset.
        if result.key != key:
            raise DataError(
                f"{self.location} has changed since it was read; leave it alone and start again"
            )
        replies: dict[TurnKey, list[RecordedReply]] = {}
        for turn in result.transcript:
            if turn["model"] is not None:
                reply = RecordedReply(turn["content"], turn["model"])
                # Fields that a turn does not have get the defaults of a single turn.
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
        """Return the run's own aspects with their scales.

        Others are found by name, as in any run.
        """
        own = self._aspects
        wanted = [
            name.rpartition("/")[2] if isinstance(name, str) else None for name in names
        ] or list(own)
        if all(name in own for name in wanted):
            return [own[name] for name in wanted if name is not None]
        return super().aspects(dataset, names)

    def settings(
        self, protocol: str, known: type[Settings], given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the settings of the run that are not the protocol's defaults."""
        if protocol not in self._manifest["signatures"]:
            judges = ", ".join(self._manifest["signatures"])
            raise UsageError(
                f"{self.location}: a run of {judges}, with no replies recorded for {protocol}"
            )
        recorded = self._manifest.get("protocols", {}).get(protocol, {})
        fixed = _FIXED | {*find_protocol(protocol).protocol.replay.fixed}
        for name in given.keys() & fixed & recorded.keys():
            wanted = known.model_validate({name: given[name]}).model_dump(mode="json")[name]
            if wanted != recorded[name]:
                raise UsageError(
                    f"{name}={given[name]}: the replies were recorded with "
                    f"{name}={recorded[name]}, and with another value there would have been "
                    "other replies; leave the setting out"
                )
        own = recorded_settings(self._manifest, protocol, known, _ELSEWHERE)
        # The first verdict shows how often a scorer was asked: the settings of a run apply to all
        # verdicts.
        of_protocol = (result for result in self._results if result.protocol == protocol)
        turns = next((result.transcript for result in of_protocol if result.status == "ok"), ())
        return {
            **own,
            **unasked(protocol, max((turn.get("sample", 1) for turn in turns), default=1)),
        }


def recorded_settings(
    manifest: Mapping[str, Any], protocol: str, known: type[Settings], without: Collection[str]
) -> dict[str, Any]:
    """Return the settings of a run that are not the protocol's defaults."""
    usual = known().model_dump(mode="json")
    recorded = manifest.get("protocols", {}).get(protocol) or {}
    wanted = recorded.keys() & usual.keys() - {*without}
    return {
        name: value for name, value in recorded.items() if name in wanted and usual[name] != value
    }
