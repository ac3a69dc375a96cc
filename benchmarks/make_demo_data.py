"""Make eval/datasets/data/demo.jsonl and demo-pairs.jsonl from the hand-written demo_sources.yaml.

Labels follow from how a text was made worse (LABELS and RANK below). eval/datasets/data/README.md
defines them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

SEED = 20
HERE = Path(__file__).resolve().parent
SOURCES = HERE / "demo_sources.yaml"
DATA = HERE.parent / "eval" / "datasets" / "data"

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
DEGRADATIONS = ("facts_changed", "shuffled", "repetition", "off_topic", "broken_grammar")
LABELS: dict[tuple[str, str], tuple[float, float, float, float]] = {
    ("good", ""): (5, 5, 5, 5),
    ("facts_changed", "subtle"): (5, 2.5, 5, 4.5),
    ("facts_changed", "gross"): (5, 1, 5, 3.5),
    ("shuffled", "subtle"): (3, 5, 5, 4.5),
    ("shuffled", "gross"): (1.5, 4.5, 4.5, 4),
    ("repetition", "subtle"): (3.5, 5, 3.5, 4),
    ("repetition", "gross"): (2, 5, 2, 3),
    ("off_topic", "subtle"): (4.5, 2, 5, 2),
    ("off_topic", "gross"): (4, 1, 5, 1),
    ("broken_grammar", "subtle"): (4.5, 5, 3, 5),
    ("broken_grammar", "gross"): (3, 4.5, 1, 4),
}
RANK = {
    "good": 4,
    "paraphrase": 4,
    "repetition": 3,
    "truncated": 3,
    "broken_grammar": 3,
    "wrong_facts": 2,
    "wrong_facts_2": 2,
    "off_topic": 1,
}
AGREEMENT = {"is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has"}


def replaced(text: str, pairs: Sequence[Sequence[str]]) -> str:
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} must occur exactly once in: {text}")
        text = text.replace(old, new)
    return text


def repeated(sentences: Sequence[str], gross: bool) -> str:
    """Repeat the longest sentence at the end, or every sentence."""
    if gross:
        return " ".join(f"{sentence} {sentence}" for sentence in sentences)
    return " ".join([*sentences, max(sentences, key=len)])


def truncated(sentences: Sequence[str]) -> str:
    """Keep the first sentence and half of the second."""
    words = sentences[1].split()
    return f"{sentences[0]} {' '.join(words[: (len(words) + 1) // 2])}".rstrip(",;:")


def garbled(sentences: Sequence[str], seed: str) -> str:
    """Drop articles, capitals and punctuation, break agreement, and swap neighbouring words."""
    rng = random.Random(seed)
    out: list[str] = []
    for sentence in sentences:
        words = [word for word in sentence.lower().split() if word not in {"a", "an", "the"}]
        words = [re.sub(r"^'|[,.;:!?']+$", "", AGREEMENT.get(word, word)) for word in words]
        if len(words) > 2:
            at = rng.randrange(len(words) - 1)
            words[at], words[at + 1] = words[at + 1], words[at]
        out += words
    return " ".join(out) + "."


def candidate(source: dict[str, Any], system: str) -> str:
    good: list[str] = source["good"]
    if system == "good":
        return " ".join(good)
    spec: dict[str, Any] = source[system]
    if system == "off_topic":
        return str(spec["text"])
    if system == "shuffled":
        if sorted(spec["order"]) != list(range(len(good))):
            raise ValueError(f"{source['id']}: the order must name each sentence once")
        return " ".join(good[index] for index in spec["order"])
    if system == "repetition":
        return repeated(good, gross=spec["degree"] == "gross")
    if system == "broken_grammar" and spec["degree"] == "gross":
        return garbled(good, f"{SEED}/{source['id']}")
    return replaced(" ".join(good), spec["replace"])


def score_items(sources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for source in sources:
        for system in ("good", *(name for name in DEGRADATIONS if name in source)):
            degree = source[system]["degree"] if system != "good" else ""
            items.append(
                {
                    "id": f"{source['id']}-{system}",
                    "group": source["id"],
                    "system": system,
                    "source": source["source"],
                    **({"fact": source["fact"]} if "fact" in source else {}),
                    "candidate": candidate(source, system),
                    "references": [source["reference"]],
                    "human": dict(zip(ASPECTS, LABELS[system, degree], strict=True)),
                }
            )
    return items


def answer(question: dict[str, Any], model: str) -> str:
    good: list[str] = question["good"]
    if model == "repetition":
        return repeated(good[:3], gross=True)
    if model == "truncated":
        return truncated(good)
    if model == "broken_grammar":
        return garbled(good, f"{SEED}/{question['id']}")
    if model in {"off_topic", "paraphrase"}:
        return str(question[model])
    return replaced(" ".join(good), question[model] if model != "good" else ())


def pair_items(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pair the answers; the better one is first in half of the decided pairs per category."""
    rng = random.Random(SEED)
    turns = itertools.cycle((0, 1))
    places: dict[str, list[int]] = {question["category"]: [] for question in questions}
    for category, turn in places.items():
        decided = sum(
            len(question["beats"]) for question in questions if question["category"] == category
        )
        turn.extend(itertools.islice(turns, decided))
        rng.shuffle(turn)
    items: list[dict[str, Any]] = []
    ties = 0
    for question in questions:
        pairs = [*question["beats"], *question.get("ties", ())]
        for number, (one, two) in enumerate(pairs, start=1):
            tie = number > len(question["beats"])
            if (RANK[one] == RANK[two]) is not tie or RANK[one] < RANK[two]:
                raise ValueError(f"{question['id']}: {one} against {two} contradicts the ranks")
            second = ties % 2 if tie else places[question["category"]].pop()
            ties += tie
            models = (two, one) if second else (one, two)
            items.append(
                {
                    "id": f"{question['id']}-{number}",
                    "group": question["id"],
                    "category": question["category"],
                    "question": question["question"],
                    "answer_1": answer(question, models[0]),
                    "answer_2": answer(question, models[1]),
                    "model_1": models[0],
                    "model_2": models[1],
                    "human": "tie" if tie else str(second + 1),
                }
            )
    return items


def render() -> dict[str, str]:
    """Return the text of each data file by its name."""
    written = yaml.safe_load(SOURCES.read_text(encoding="utf-8"))
    files = {
        "demo.jsonl": score_items(written["sources"]),
        "demo-pairs.jsonl": pair_items(written["questions"]),
    }
    return {
        name: "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
        for name, items in files.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the bundled demo datasets.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file would change"
    )
    parser.add_argument("--out", type=Path, default=DATA, help="folder of the JSONL files")
    args = parser.parse_args(argv)
    stale = 0
    for name, text in render().items():
        path: Path = args.out / name
        new = text.encode("utf-8")
        if not args.check:
            path.write_bytes(new)
            print(f"{name}: {text.count(chr(10))} items")
        elif not path.is_file() or path.read_bytes() != new:
            print(f"{name} differs from what make_demo_data.py makes", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
