"""What was recorded, as a run needs it: which items there are, and what was said of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ...nodes.offline import DISCLOSURE
from ...state.aspects import Aspect
from ...state.errors import UsageError
from ...state.settings import FairEvalSettings, GEvalSettings, Settings
from ..aspects import choose_aspects
from ..datasets import Dataset
from ..results import Key
from .mute import RecordedModel
from .voices import Recorded

STEPS = ("As recorded.",)
"""In place of G-Eval's evaluation steps: what the scorer was shown is not asked for again."""


class Recording(ABC):
    """Recorded replies.

    Attributes:
        name: of the file or folder, for people.
        location: of the same.
        digest: of what it holds.
        models: who wrote the replies.
        dataset: the items that are recorded; without texts where it holds none.
    """

    name: str
    location: str
    digest: str
    models: tuple[str, ...]
    dataset: Dataset

    @abstractmethod
    def of(self, key: Key) -> Recorded:
        """What was said in a verdict; nothing where none is recorded."""

    @abstractmethod
    def has(self, item: str, aspect: str | None) -> bool:
        """Whether anything is recorded of an item."""

    @abstractmethod
    def aspects(self, dataset: Dataset, names: Sequence[str]) -> list[Aspect]:
        """The aspects to judge in a dataset: those named, else the recorded ones.

        Raises:
            UsageError, DataError: as ``choose_aspects``.
        """

    @abstractmethod
    def settings(self, protocol: str, known: type[Settings], given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that a protocol has where no others are given.

        Raises:
            UsageError: nothing of that protocol is recorded, or a setting is given that decides what agents say.
        """

    def match(self, dataset: Dataset) -> None:
        """See that a dataset is the one that was judged.

        Raises:
            UsageError: nothing is recorded of any of its items.
        """
        recorded = {item.id for item in self.dataset}
        if not any(item.id in recorded for item in dataset):
            one, other = next(iter(dataset)).id, next(iter(self.dataset)).id
            raise UsageError(
                f"{self.name}: no reply to any item of {dataset.name} is recorded; an item there is {one!r}, "
                f"one that is recorded is {other!r}. Without --data, what was recorded is judged"
            )

    @property
    def model(self) -> RecordedModel:
        """Who is named where a judge is named."""
        return RecordedModel(label=self.models[0] if len(self.models) == 1 else "recorded")

    @property
    def signature(self) -> str:
        """The recording in a run's signature."""
        return f"{self.name}@{self.digest}"

    def described(self) -> dict[str, Any]:
        """The recording in a run's manifest."""
        about = {"name": self.name, "location": self.location, "digest": self.digest}
        return {**about, "models": list(self.models)}

    @property
    def note(self) -> str:
        """What stands at the head of all that is printed about the run."""
        offline = [DISCLOSURE] if "offline" in self.models else []
        by = f" by {', '.join(self.models)}" if self.models else ""
        return " ".join(
            [f"Replayed: no model was called; the replies were recorded in {self.name}{by}.", *offline]
        )


def unasked(known: type[Settings], samples: int) -> dict[str, Any]:
    """Settings with which a protocol asks for nothing that recordings have not.

    No reply is asked for again, as many samples as there are, and no planner.
    """
    settings: dict[str, Any] = {"repair": 0}
    if issubclass(known, GEvalSettings):
        settings |= {"weighting": "sampling", "samples": samples, "steps": STEPS}
    if issubclass(known, FairEvalSettings):
        settings |= {"k": samples}
    return settings


def chosen(
    dataset: Dataset, names: Sequence[str], recorded: Mapping[str, Any] | Sequence[str]
) -> list[Aspect]:
    """The aspects named, else the recorded ones, by the names that they have."""
    return choose_aspects(dataset, list(names) or ([] if dataset.kind == "compare" else list(recorded)))
