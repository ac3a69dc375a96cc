"""The bundled demo datasets: their shape, their balance, and that their generator reproduces them."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from importlib import resources
from types import ModuleType
from typing import Any

import pytest

from .source_tree import imported

DATA = resources.files("jurygraph") / "eval" / "datasets" / "data"
ASPECTS = {"coherence", "consistency", "fluency", "relevance"}
DEGRADATIONS = {"facts_changed", "shuffled", "repetition", "off_topic", "broken_grammar"}
CATEGORIES = {"howto", "science", "writing", "advice", "reasoning"}


def load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_bytes().splitlines()]


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:
    return load("demo.jsonl")


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, Any]]:
    return load("demo-pairs.jsonl")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return imported("benchmarks/make_demo_data.py")


def test_score_items_are_graded_degradations_of_a_good_text(items: list[dict[str, Any]]) -> None:
    groups: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for item in items:
        assert item["id"] == f"{item['group']}-{item['system']}"
        assert item["candidate"] not in item["references"]
        assert item["human"].keys() == ASPECTS
        assert (item["system"] == "good") == (set(item["human"].values()) == {5}), item["id"]
        groups[item["group"]][item["system"]] = item
    assert (len(groups), sum("fact" in group["good"] for group in groups.values())) == (24, 6)
    for name, group in groups.items():
        assert 3 <= len(group) <= 5 and group.keys() <= {*DEGRADATIONS, "good"}, name
        assert len({(item["source"], item.get("fact")) for item in group.values()}) == 1, name
        assert len({item["candidate"] for item in group.values()}) == len(group), name
        for aspect in ASPECTS:
            assert len({item["human"][aspect] for item in group.values()}) >= 2, (name, aspect)
    counts = Counter(item["system"] for item in items)
    assert all(counts[system] >= 12 for system in DEGRADATIONS), counts


def test_the_better_answer_of_a_pair_stands_first_as_often_as_second(pairs: list[dict[str, Any]]) -> None:
    assert len({pair["question"] for pair in pairs}) >= 20
    for category in CATEGORIES:
        own = Counter(pair["human"] for pair in pairs if pair["category"] == category)
        assert abs(own["1"] - own["2"]) <= 1, category
    verdicts = Counter(pair["human"] for pair in pairs)
    assert verdicts["1"] == verdicts["2"] and 4 <= verdicts["tie"] <= 10
    for pair in pairs:
        assert pair["category"] in CATEGORIES and pair["human"] in {"1", "2", "tie"}
        models = {pair["model_1"]: "1", pair["model_2"]: "2"}
        if pair["human"] != "tie" and "good" in models:
            assert pair["human"] == models["good"], pair["id"]


def test_the_card_states_the_counts_and_the_label_rule(
    maker: ModuleType, items: list[dict[str, Any]], pairs: list[dict[str, Any]]
) -> None:
    card = (DATA / "README.md").read_text(encoding="utf-8")
    assert f"| `demo.jsonl` | score | {len(items)} |" in card
    assert f"| `demo-pairs.jsonl` | compare | {len(pairs)} |" in card
    assert "Apache-2.0" in card
    for (system, degree), labels in maker.LABELS.items():
        count = sum(
            item["system"] == system and tuple(item["human"].values()) == tuple(labels) for item in items
        )
        cells = " | ".join(f"{label:g}" for label in labels)
        row = rf"^\|[^|]*\| {degree}[^|]*\| [^|]+ \| {re.escape(cells)} \| {count} \|$"
        assert re.search(row, card, flags=re.MULTILINE), (system, degree)
    for model, rank in maker.RANK.items():
        assert re.search(rf"^\| {rank} \|.*`{model}`", card, flags=re.MULTILINE), model


def test_the_generator_reproduces_the_files(maker: ModuleType) -> None:
    for name, text in maker.render().items():
        assert (DATA / name).read_bytes() == text.encode("utf-8"), name
