"""Read recorded replies from the folder of a past run, whose transcripts hold every agent's words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import Any, cast

from ...graphs.registry import find_protocol
from ...state.aspects import Aspect
from ...state.errors import DataError, UsageError
from ...state.settings import Settings
from ..datasets.dataset import Dataset
from ..datasets.items import About
from ..datasets.selection import Sample
from ..results.folder import read_manifest, results_of
from ..results.results import FILE, Key, Result
from ..statistics.tie_policy import TiePolicy
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
        self._first_verdicts: dict[str, int] = {}
        self._units: dict[Unit, RecordedUnit] = {}
        for place, head in enumerate(self._results.heads()):
            key = Key(head["item"], head["aspect"], head["protocol"], head["repeat"])
            self._places[key] = place
            if head["status"] == "ok":
                self._first_verdicts.setdefault(key.protocol, place)
            # Protocols and repeats have the same labels: the first result of an item and aspect stands for all.
            if key[:2] not in self._units:
                known = cast("About", {name: head[name] for name in About.__annotations__ if name in head})
                self._units[key[:2]] = RecordedUnit(*key[:2], head["group"], head["human"], known=known)
        if not self._places:
            raise DataError(f"{folder}: holds no results to replay")
        self.name, self.location = folder.resolve().name, str(folder)
        with (folder / FILE).open("rb") as file:
            self.digest = file_digest(file, "sha256").hexdigest()[:12]
        self.models = _models(self._manifest)
        self.dataset = self._dataset()

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
        return {} if result.status == "failed" and self._mixed_up(result, replies) else replies

    def aspects(self, dataset: Dataset, names: Sequence[str | Aspect]) -> list[Aspect]:
        """Return the run's own aspects with their scales; other ones are found by name, as in any run."""
        own = {row["name"]: Aspect.model_validate(row) for row in self._manifest.get("aspects", ())}
        wanted = [name.rpartition("/")[2] if isinstance(name, str) else None for name in names] or list(own)
        if all(name in own for name in wanted):
            return [own[name] for name in wanted if name is not None]
        return chosen(dataset, names, own)

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
        first = self._first_verdicts.get(protocol)
        turns = self._results[first].transcript if first is not None else ()
        return {**own, **unasked(protocol, max((turn.get("sample", 1) for turn in turns), default=1))}

    def _mixed_up(self, result: Result, replies: Mapping[TurnKey, Sequence[RecordedReply]]) -> bool:
        """Tell whether turns of a failed verdict look alike: wrappers mark them only when their graph ends."""
        settings = self._manifest.get("protocols", {}).get(result.protocol, {})
        nested = "of" in settings or "cheap" in settings
        both_orders = result.aspect is None and settings.get("position_calibration", False)
        return nested or both_orders or any(len(several) > 1 for several in replies.values())

    def _dataset(self) -> Dataset:
        """Make a dataset of what results say of the run's items, under the name of the data that they came from."""
        about = self._manifest["data"]
        items = recorded_items(self._units.values(), self.location)
        return replace(
            Dataset.of(about["name"], items, labels=about["labels"]),
            digest=about["digest"],
            location=about["location"],
            rule=TiePolicy.of(self._manifest),
            columns=about.get("columns", {}),
            chosen=Sample(**about["sample"]) if "sample" in about else None,
        )


def recorded_settings(
    manifest: Mapping[str, Any], protocol: str, known: type[Settings], without: Collection[str]
) -> dict[str, Any]:
    """Return the settings of a run that are not the protocol's defaults."""
    usual, recorded = known().model_dump(mode="json"), manifest.get("protocols", {}).get(protocol) or {}
    wanted = recorded.keys() & usual.keys() - {*without}
    return {name: value for name, value in recorded.items() if name in wanted and usual[name] != value}


def _models(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the models of a run, without their parameters; of a replay, those of its own recording."""
    if "replies" in manifest:
        return tuple(manifest["replies"]["models"])
    labels = (label for of_protocol in manifest.get("models", {}).values() for label in of_protocol.values())
    return tuple(dict.fromkeys(label.partition("?")[0] for label in labels))
