"""The contract of a dataset, as a class of tests to subclass."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import ClassVar

import pytest

from ..eval import evaluate
from ..eval.datasets.aspect_choice import choose_aspects
from ..eval.datasets.catalog import SOURCES, Source
from ..eval.datasets.dataset import Dataset, load_source
from ..eval.datasets.items import ScoreItem
from ..state import UsageError


class DatasetContract:
    """Tests that every dataset passes, whether it comes with jurygraph or from you.

    Its file exists and loads, contains what the ``Source`` states, and can be judged.

    Attributes:
        dataset: the ``Source`` that the entry point names.

    >>> from jurygraph.eval.datasets.catalog import SOURCES
    >>> class TestDemo(DatasetContract):
    ...     dataset = SOURCES["demo"]
    >>> len(TestDemo().load())
    108
    """

    dataset: ClassVar[Source]

    def load(self) -> Dataset:
        """Load the dataset under test, once.

        Raises:
            UsageError: the class names no dataset.
            DataError: its file does not exist or cannot be read.
        """
        return _loaded(self._source())

    def _source(self) -> Source:
        source: Source | None = getattr(self, "dataset", None)
        if source is None:
            raise UsageError(
                f"{type(self).__name__} names no dataset: add `dataset = my_dataset`, a Source"
            )
        return source

    def test_it_is_a_source_with_a_file(self) -> None:
        source = self._source()
        assert isinstance(source, Source)
        if source.name in SOURCES:
            assert source is SOURCES[source.name], f"{source.name} is a dataset of jurygraph"
        else:
            assert source.file is not None, "give its file, or a function that returns its path"

    def test_it_is_described(self) -> None:
        source = self._source()
        facts = ("summary", "size", "licence", "scale")
        assert [name for name in facts if not getattr(source, name)] == []

    def test_its_items_are_as_stated(self) -> None:
        source = self._source()
        loaded = self.load()
        assert loaded.kind == source.kind
        assert source.items in (None, len(loaded))

    def test_each_item_has_an_id_of_its_own(self) -> None:
        ids = Counter(item.id for item in self.load())
        assert [name for name, count in ids.items() if count > 1] == []

    def test_it_has_labels_exactly_if_it_states_their_origin(self) -> None:
        has_labels = any(_is_labelled(item) for item in self.load())
        assert has_labels is (self._source().labels != "none")

    def test_the_stated_aspects_are_known_and_labelled(self) -> None:
        source = self._source()
        if source.kind == "compare":
            assert source.aspects == ()
            pytest.skip("comparisons have one label, not one for each aspect")
        loaded = self.load()
        chosen = choose_aspects(loaded, source.aspects)
        assert [aspect.name for aspect in chosen] == list(source.aspects)
        labelled = {name for item in loaded if isinstance(item, ScoreItem) for name in item.human}
        if source.labels != "none":
            assert [aspect for aspect in source.aspects if aspect not in labelled] == []

    def test_it_is_the_same_when_it_is_loaded_again(self) -> None:
        assert load_source(self._source()).digest == self.load().digest

    def test_its_first_item_can_be_judged(self) -> None:
        done = evaluate("single", self.load().first(1))
        assert [result.error for result in done.results if result.status != "ok"] == []
        assert done.results


@lru_cache(maxsize=1)
def _loaded(source: Source) -> Dataset:
    return load_source(source)


def _is_labelled(item: object) -> bool:
    return bool(getattr(item, "human", None))
