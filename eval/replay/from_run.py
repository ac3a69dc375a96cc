"""Read recorded replies from the folder of a past run, whose transcripts hold every agent's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from ...graphs.registry import find_protocol
from ...state.aspects import Aspect
from ...state.errors import DataError, UsageError
from ...state.settings import Settings
from ...state.transcript import Turn
from ..datasets.dataset import Dataset, explain
from ..datasets.items import About, Item
from ..datasets.selection import Sample
from ..results.folder import read_manifest
from ..results.results import FILE, Key, Result, ResultsFile
from ..statistics.tie_policy import TiePolicy
from .recording import (
    Recorded,
    RecordedAnswers,
    RecordedReply,
    RecordedText,
    Recording,
    TurnKey,
    chosen,
    unasked,
)

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
        self._results = ResultsFile(folder).read()
        self._heads = [_Head(head) for head in self._results.heads()]
        if not self._heads:
            raise DataError(f"{folder}: holds no results to replay")
        self._places = {head.key: place for place, head in enumerate(self._heads)}
        self._units = {(head.key.item, head.key.aspect) for head in self._heads}
        self.name, self.location = folder.resolve().name, str(folder)
        self.digest = _digest(folder / FILE)
        self.models = tuple(_models(self._manifest))
        self.dataset = self._dataset(folder)

    def of(self, key: Key) -> Recorded:
        """Return the replies of a verdict; those of a failed one are used as far as its turns can be told apart.

        Raises:
            DataError: the results were changed after they were opened.
        """
        place = self._places.get(key)
        if place is None:
            return {}
        result = self._results[place]
        # The file may have been rewritten in place; another result would then stand at this offset.
        if result.key != key:
            raise DataError(
                f"{self.location}: has changed since it was read; leave it alone, and start again"
            )
        turn_keys: dict[TurnKey, list[RecordedReply]] = {}
        for turn in result.transcript:
            if turn["model"] is not None:
                turn_keys.setdefault(_turn_key(turn), []).append(
                    RecordedReply(turn["content"], turn["model"])
                )
        return {} if result.status == "failed" and self._mixed_up(result, turn_keys) else turn_keys

    def has(self, item: str, aspect: str | None) -> bool:
        """Tell whether the run judged the item, or tried to."""
        return (item, aspect) in self._units

    def aspects(self, dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
        """Return the run's own aspects with their scales; other ones are found by name, as in any run."""
        own = {row["name"]: Aspect.model_validate(row) for row in self._manifest.get("aspects", ())}
        wanted = [name.rpartition("/")[2] if isinstance(name, str) else None for name in names] or list(own)
        found = [own[name] for name in wanted if name in own]
        return found if len(found) == len(wanted) else chosen(dataset, names, own)

    def settings(self, protocol: str, known: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the run that are not the protocol's defaults."""
        if protocol not in self._manifest["signatures"]:
            raise UsageError(
                f"{self.location}: a run of {', '.join(self._manifest['signatures'])}; "
                f"nothing of {protocol} is recorded there"
            )
        usual = known().model_dump(mode="json")
        held = self._manifest.get("protocols", {}).get(protocol, {})
        self._check(protocol, known, held, given)
        own = {name: value for name, value in held.items() if name in usual and usual[name] != value}
        used = {name: value for name, value in own.items() if name not in _ELSEWHERE}
        return {**used, **unasked(protocol, self._most_samples(protocol))}

    def _check(
        self, protocol: str, known: type[Settings], held: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        """Refuse settings with which the agents would have said something else, which is not recorded."""
        fixed = _FIXED | {*find_protocol(protocol).protocol.replay.fixed}
        for name in given.keys() & fixed & held.keys():
            wanted = known.model_validate({name: given[name]}).model_dump(mode="json")[name]
            if wanted != held[name]:
                raise UsageError(
                    f"{name}={given[name]}: with it other words would have been said than are recorded "
                    f"(of {name}={held[name]}), and a replay makes none up"
                )

    def _most_samples(self, protocol: str) -> int:
        """Count how many times the scorer of the first verdict was asked."""
        first = next(
            (p for p, head in enumerate(self._heads) if head.ok and head.key.protocol == protocol), None
        )
        # One verdict is enough, since the settings of a run hold for all of them.
        turns = self._results[first].transcript if first is not None else ()
        return max((turn.get("sample", 1) for turn in turns), default=1)

    def _mixed_up(self, result: Result, turn_keys: Mapping[TurnKey, Sequence[RecordedReply]]) -> bool:
        """Tell whether turns of a failed verdict look alike: wrappers mark them only when their graph ends."""
        settings = self._manifest.get("protocols", {}).get(result.protocol, {})
        nested = "of" in settings or "cheap" in settings
        both_orders = result.aspect is None and settings.get("position_calibration", False)
        return nested or both_orders or any(len(said) > 1 for said in turn_keys.values())

    def _dataset(self, folder: Path) -> Dataset:
        """Make a dataset of what results say of the run's items, under the name of the data that they came from."""
        try:
            items = list(_items(self._heads))
        except ValidationError as error:
            raise DataError(f"{folder}: {explain(error)}") from error
        about = self._manifest["data"]
        dataset = Dataset.of(about["name"], items, labels=about["labels"])
        return replace(
            dataset,
            digest=about["digest"],
            location=about["location"],
            rule=TiePolicy.of(self._manifest),
            columns=about.get("columns", {}),
            chosen=Sample(**about["sample"]) if "sample" in about else None,
        )


class _Head:
    """Holds in memory what a result is about, and its human ratings."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self.key = Key(head["item"], head["aspect"], head["protocol"], head["repeat"])
        self.ok = head["status"] == "ok"
        self.group, self.human = head["group"], head["human"]
        self.about = cast("About", {name: head[name] for name in About.__annotations__ if name in head})


def _items(heads: Sequence[_Head]) -> Iterator[Item]:
    """Yield each item once, in order, with all its aspects."""
    by_item: dict[str, dict[str | None, _Head]] = {}
    for head in heads:
        # Protocols and repeats have the same labels: the first result of an item and aspect stands for all.
        by_item.setdefault(head.key.item, {}).setdefault(head.key.aspect, head)
    for item, by_aspect in by_item.items():
        group = next(iter(by_aspect.values())).group
        if None in by_aspect:
            one = by_aspect[None]
            yield RecordedAnswers.model_validate(
                {"id": item, "group": group, "human": one.human, "known": one.about}
            )
        else:
            human = {name: head.human for name, head in by_aspect.items() if head.human is not None}
            known = {name: head.about for name, head in by_aspect.items()}
            yield RecordedText.model_validate({"id": item, "group": group, "human": human, "known": known})


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:12]


def _turn_key(turn: Turn) -> TurnKey:
    return TurnKey(
        agent=turn["agent"],
        round=turn["round"],
        sample=turn.get("sample", 0),
        order=turn.get("order", 1),
        repeat=turn.get("repeat", 0),
        stage=turn.get("stage", ""),
    )


def _models(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Name the models of a run, without their parameters; of a replay, those of its own recording."""
    if "replies" in manifest:
        yield from manifest["replies"]["models"]
        return
    labels = (label for of_protocol in manifest.get("models", {}).values() for label in of_protocol.values())
    yield from dict.fromkeys(label.partition("?")[0] for label in labels)
