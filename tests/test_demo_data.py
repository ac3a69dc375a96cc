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
    text = (DATA / name).read_bytes().decode("utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:
    return load("demo.jsonl")


@pytest.fixture(scope="module")
def pairs() -> list[dict[str, Any]]:
    return load("demo-pairs.jsonl")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return imported("benchmarks/make_demo_data.py")


def grouped(items: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in items:
        groups[item["group"]].append(item)
    return groups


@pytest.mark.parametrize("name", ["demo.jsonl", "demo-pairs.jsonl"])
def test_ids_are_unique_and_texts_are_clean(name: str) -> None:
    items = load(name)
    assert len({item["id"] for item in items}) == len(items)
    for item in items:
        for key, value in item.items():
            if isinstance(value, str):
                assert value.strip() == value != "", (item["id"], key)
                assert "  " not in value, (item["id"], key)


def test_score_items_have_the_item_format(items: list[dict[str, Any]]) -> None:
    required = {"id", "group", "system", "source", "candidate", "references", "human"}
    for item in items:
        assert set(item) - {"fact"} == required
        assert item["id"] == f"{item['group']}-{item['system']}"
        assert item["system"] in DEGRADATIONS | {"good"}
        assert len(item["references"]) == 1
        assert item["candidate"] not in item["references"]


def test_score_counts(items: list[dict[str, Any]]) -> None:
    groups = grouped(items)
    assert len(groups) == 24
    assert sum("fact" in group[0] for group in groups.values()) == 6
    for name, group in groups.items():
        assert 3 <= len(group) <= 5, name
        assert "good" in {item["system"] for item in group}, name
        assert len({item["source"] for item in group}) == 1, name
        assert len({item.get("fact") for item in group}) == 1, name
        assert len({item["candidate"] for item in group}) == len(group), name
    counts = Counter(item["system"] for item in items)
    assert all(counts[system] >= 12 for system in DEGRADATIONS), counts


def test_score_labels_are_graded_halves_from_1_to_5(items: list[dict[str, Any]]) -> None:
    for item in items:
        assert set(item["human"]) == ASPECTS
        for label in item["human"].values():
            assert 1 <= label <= 5
            assert float(label * 2).is_integer()
        assert (item["system"] == "good") == (set(item["human"].values()) == {5}), item["id"]
    for name, group in grouped(items).items():
        for aspect in ASPECTS:
            assert len({item["human"][aspect] for item in group}) >= 2, (name, aspect)


def test_score_text_lengths(items: list[dict[str, Any]]) -> None:
    for item in items:
        least = 60 if "fact" in item else 90
        assert least <= words(item["source"]) <= 160, item["id"]
        if item["system"] in {"good", "facts_changed", "off_topic"}:
            assert 35 <= words(item["candidate"]) <= 60, item["id"]
            assert 2 <= len(re.findall(r"[.!?](?= |$)", item["candidate"])) <= 5, item["id"]


def test_shuffled_and_repeated_candidates_say_what_the_good_one_says(items: list[dict[str, Any]]) -> None:
    for group in grouped(items).values():
        by_system = {item["system"]: item["candidate"] for item in group}
        good = Counter(by_system["good"].split())
        if "shuffled" in by_system:
            assert Counter(by_system["shuffled"].split()) == good
        if "repetition" in by_system:
            assert set(by_system["repetition"].split()) == set(good)
            assert words(by_system["repetition"]) > words(by_system["good"])


def test_pairs_have_the_item_format(pairs: list[dict[str, Any]]) -> None:
    assert len(pairs) >= 40
    assert len({pair["question"] for pair in pairs}) >= 20
    keys = {"id", "group", "category", "question", "answer_1", "answer_2", "model_1", "model_2", "human"}
    for pair in pairs:
        assert set(pair) == keys
        assert pair["human"] in {"1", "2", "tie"}
        assert pair["answer_1"] != pair["answer_2"]
        for place in ("1", "2"):
            if pair[f"model_{place}"] in {"good", "paraphrase", "off_topic"}:
                assert 60 <= words(pair[f"answer_{place}"]) <= 120, pair["id"]
    assert {pair["category"] for pair in pairs} == CATEGORIES


def test_the_better_answer_stands_first_as_often_as_second(pairs: list[dict[str, Any]]) -> None:
    verdicts = Counter(pair["human"] for pair in pairs)
    assert verdicts["1"] == verdicts["2"]
    assert 4 <= verdicts["tie"] <= 10
    for category in CATEGORIES:
        own = Counter(pair["human"] for pair in pairs if pair["category"] == category)
        assert abs(own["1"] - own["2"]) <= 1, category
    for pair in pairs:
        good = [pair["model_1"] == "good", pair["model_2"] == "good"]
        if pair["human"] != "tie" and any(good):
            assert pair["human"] == ("1" if good[0] else "2"), pair["id"]


def test_the_card_states_the_counts(items: list[dict[str, Any]], pairs: list[dict[str, Any]]) -> None:
    card = (DATA / "README.md").read_text(encoding="utf-8")
    assert f"| `demo.jsonl` | score | {len(items)} |" in card
    assert f"| `demo-pairs.jsonl` | compare | {len(pairs)} |" in card
    assert "Apache-2.0" in card


def test_the_card_states_the_label_rule(maker: ModuleType, items: list[dict[str, Any]]) -> None:
    card = (DATA / "README.md").read_text(encoding="utf-8")
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
