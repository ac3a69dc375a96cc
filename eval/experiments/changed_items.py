"""Plan a run that judges items unchanged, and again in changed forms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from ...graphs.engine.registry import Given
from ...state.aspects import Aspect
from ...state.errors import UsageError
from ..datasets.aspect_choice import choose_aspects
from ..datasets.dataset import Data, Dataset, load_dataset
from ..datasets.items import Item
from ..run.plan.plan import Options, Plan, plan
from .experiment import refuse_other_runs


@dataclass(frozen=True)
class UnchangedItems:
    """The unchanged items of an experiment.

    Attributes:
        dataset: all items of the data.
        items: the items of the experiment, of which there are at most ``limit``.
        aspects: the aspects of scores; empty for comparisons.
        options: the options of the run of all forms, without a limit.
    """

    dataset: Dataset
    items: Sequence[Item]
    aspects: Sequence[Aspect]
    options: Options

    @classmethod
    def of(cls, experiment: str, data: Data, options: Options) -> Self:
        """Load the data, and check the options.

        Args:
            experiment: the name of the experiment.
            data: a dataset, its name, a file or a table in memory.
            options: the options of a run; its limit counts unchanged items.

        Raises:
            UsageError: an option that does not apply, or invalid data.
        """
        refuse_other_runs(experiment, options)
        limit = options.get("limit")
        if limit is not None and limit < 1:
            raise UsageError(f"limit must be 1 or more, got {limit}")
        dataset = load_dataset(data)
        aspects = choose_aspects(dataset, options.get("aspects", ()))
        # The limit is applied here: in the plan of the run it would cut off the changed items, which
        # come last.
        of_run = cast("Options", {**options, "limit": None, "aspects": aspects})
        return cls(dataset, list(dataset.first(limit).items), aspects, of_run)

    @property
    def keys(self) -> frozenset[tuple[str, str | None]]:
        """The id of each item with the name of each aspect, ``None`` for comparisons."""
        names = [aspect.name for aspect in self.aspects]
        return frozenset((item.id, name) for item in self.items for name in names or (None,))

    def plan(self, judge: Given) -> Plan:
        """Plan a run of the unchanged items, which shows the models and roles of the judge."""
        return plan([judge], self.dataset, **self.options)

    def plan_with(self, judge: Given, forms: Iterable[Item], suffix: str, **more: Any) -> Plan:
        """Plan the run of all forms of the items.

        Args:
            judge: the judge.
            forms: unchanged and changed items.
            suffix: added to the name of the dataset.
            **more: options of the run that differ from those of the unchanged items.
        """
        dataset = Dataset.of(
            f"{self.dataset.name}{suffix}",
            list(forms),
            labels=self.dataset.labels,
            family=self.dataset.family,
        )
        return plan([judge], dataset, **cast("Options", {**self.options, **more}))
