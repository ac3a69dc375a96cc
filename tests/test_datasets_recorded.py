"""The datasets that have a name, as they were recorded, and what is said of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from jurygraph.eval import load_dataset
from jurygraph.eval.cli.app import app
from jurygraph.eval.datasets.aspect_choice import choose_aspects
from jurygraph.eval.datasets.dataset import SOURCES, find_item, load_again
from typer.testing import CliRunner

from .test_datasets_published import PUBLISHED, TRUTH, compared, scored

LABELS = {
    "faireval": {"1", "2", "tie"},
    "llmbar": {"1", "2"},
    "judgebench": {"1", "2"},
    "pandalm": {"1", "2", "tie"},
    "mt-bench": {None},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_recorded_data(shared_data: Path, name: str) -> None:
    dataset = load_dataset(name, shared_data)
    again = load_again(name, dataset.location)
    last = dataset.items[-1]
    assert find_item(again, last.id) == last
    assert again.digest == dataset.digest
    assert dataset.kind == SOURCES[name].kind
    if name in LABELS:
        assert {item.label() for item in compared(dataset)} == LABELS[name]
    else:
        assert dataset.aspect_names() == list(SOURCES[name].aspects)
        choose_aspects(dataset, [])


def test_groups_and_references_of_recorded_data(shared_data: Path) -> None:
    chat, summaries, stories = (
        scored(load_dataset(name, shared_data)) for name in ("topical-chat", "summeval", "hanna")
    )
    for items, systems in ((chat, 6), (summaries, 16), (stories, 11)):
        assert set(Counter(item.group for item in items).values()) == {systems}
    assert {len(item.references) for item in summaries} == {11}
    assert {len(item.references) for item in chat if item.system != TRUTH} == {1}
    assert {item.references for item in chat if item.system == TRUTH} == {()}


def test_the_list_of_datasets() -> None:
    def told(*name: str) -> str:
        return CliRunner().invoke(app, ["datasets", *name]).output

    listed = told()
    for name, source in SOURCES.items():
        assert name in listed
        assert source.size.split()[0] in listed
        assert all(paper.bibtex in told(name) for paper in source.papers)
        assert source.home is None or source.home.address in told(name).replace("\n", "")
    refused = CliRunner().invoke(app, ["datasets", "dmeo"])
    assert "unknown dataset 'dmeo'; datasets are demo, " in str(refused.exception)


def test_what_the_catalogue_says_of_the_bundled_ones() -> None:
    for name in ("demo", "demo-pairs"):
        dataset = load_dataset(name)
        assert (len(dataset), dataset.kind) == (SOURCES[name].items, SOURCES[name].kind)
        assert dataset.labels == "construction"
        assert SOURCES[name].size.startswith(f"{SOURCES[name].items} ")
