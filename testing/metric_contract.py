"""The contract of a metric, as a class of tests to subclass."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from ..eval.datasets.dataset import Dataset
from ..eval.datasets.items import ScoreItem
from ..eval.metrics import Metric, measure
from ..eval.metrics.reference_metrics import number_of
from ..state import UsageError

ITEMS = (
    ScoreItem(
        id="with-references",
        source="The ferry sank on Monday. Nobody was aboard.",
        candidate="The ferry sank on Monday. Nobody was aboard!",
        references=("The old ferry sank. Divers start on Friday.", "A ferry sank."),
        human={"fluency": 3},
    ),
    ScoreItem(
        id="without-references",
        source="It rained all week.",
        candidate="Rain.",
        human={"fluency": 4},
    ),
)


class MetricContract:
    """Tests that every metric passes, whether it comes with jurygraph or from you.

    The metric has a default for each parameter, a signature that changes with each of them, and a
    finite number for each item that it can score.

    Attributes:
        metric: the function that the entry point names; it returns a ``Metric``.
        parameters: for each parameter of this function, a value that is not the default.
        items: texts to score. At least one needs references if the metric needs them.

    >>> def brevity(words: int = 20) -> Metric:
    ...     def score(item, _aspects):
    ...         return max(0.0, 1 - len(item.candidate.split()) / words)
    ...     return Metric("brevity", f"brevity|words:{words}", score)
    >>> class TestBrevity(MetricContract):
    ...     metric = brevity
    ...     parameters = {"words": 10}
    """

    metric: ClassVar[Callable[..., Metric]]
    parameters: ClassVar[Mapping[str, Any]] = {}
    items: ClassVar[Sequence[ScoreItem]] = ITEMS

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test with ``parameter`` for each parameter of the metric."""
        if "parameter" in metafunc.fixturenames:
            metafunc.parametrize("parameter", list(inspect.signature(self._function()).parameters))

    def _function(self) -> Callable[..., Metric]:
        # From the class: from an object, a function would be bound as a method.
        function: Callable[..., Metric] | None = getattr(type(self), "metric", None)
        if function is None:
            raise UsageError(
                f"{type(self).__name__} names no metric: add `metric = my_metric`, "
                "the function that returns a Metric"
            )
        return function

    def _scored(self, metric: Metric) -> list[ScoreItem]:
        """Return the items that are not left out."""
        return [item for item in self.items if item.references or not metric.needs_references]

    def test_it_is_made_without_arguments(self) -> None:
        made = self._function()()
        assert isinstance(made, Metric)
        assert made.name
        assert made.signature

    def test_a_parameter_has_a_default_that_is_a_text_a_number_or_a_switch(
        self, parameter: str
    ) -> None:
        default = inspect.signature(self._function()).parameters[parameter].default
        assert isinstance(default, (str, int, float)), (
            f"{parameter} has the default {default!r}; a value after the question mark "
            f"is read as the default's type"
        )

    def test_a_parameter_changes_the_signature(self, parameter: str) -> None:
        assert parameter in self.parameters, (
            f"add a value that is not the default: `parameters = {{{parameter!r}: ...}}`"
        )
        default = inspect.signature(self._function()).parameters[parameter].default
        other = self.parameters[parameter]
        assert other != default, f"{other!r} is the default of {parameter}"
        changed = self._function()(**{parameter: other})
        assert changed.signature != self._function()().signature, (
            f"the signature does not contain {parameter}: runs with different values look alike"
        )

    def test_it_gives_a_finite_number_for_each_item(self) -> None:
        metric = self._function()()
        scored = self._scored(metric)
        assert scored, "every item is left out: add an item with references"
        for item in scored:
            aspects = list(item.human)
            values = metric.score(item, aspects)
            for aspect in aspects:
                assert math.isfinite(number_of(values, aspect)), item.id

    def test_it_gives_the_same_number_again(self) -> None:
        first = self._function()()
        second = self._function()()
        for item in self._scored(first):
            aspects = list(item.human)
            assert first.score(item, aspects) == first.score(item, aspects)
            assert first.score(item, aspects) == second.score(item, aspects)

    def test_it_measures_a_dataset_and_leaves_out_only_items_without_references(self) -> None:
        metric = self._function()()
        done = measure({metric.name: metric}, Dataset.of("contract", self.items))
        assert [result.error for result in done.results if result.status != "ok"] == []
        assert [result.item for result in done.results] == [
            item.id for item in self._scored(metric) for _ in item.human
        ]
        assert done.manifest["signatures"][metric.name].endswith(metric.signature)
