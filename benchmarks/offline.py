"""Compare the offline judge's rankings with the annotators', and count how its debates end.

Run from the repository: ``python benchmarks/offline.py``. The data folder is ``$JURYGRAPH_DATA`` or
``../shared/data`` next to the repository. No model, network or graph is involved: the script calls
the roles directly.
"""

from __future__ import annotations

import gzip
import json
import os
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from jurygraph.nodes.common.delimiters import Section
from jurygraph.nodes.offline.offline_model import as_text
from jurygraph.nodes.offline.offline_roles import PERSONAS, respond
from scipy import stats

DATA = Path(os.environ.get("JURYGRAPH_DATA") or Path(__file__).parents[2] / "shared" / "data")
ROUNDS = 4

Statistic: TypeAlias = Callable[[Sequence[float], Sequence[float]], Any]
STATISTICS: dict[str, Statistic] = {
    "Spearman": stats.spearmanr,
    "Kendall": stats.kendalltau,
    "Pearson": stats.pearsonr,
}


@dataclass(frozen=True)
class Item:
    """One text with people's ratings of it; ``group`` is its article or dialogue context."""

    group: str
    sections: tuple[Section, ...]
    human: dict[str, float]
    winner: str = ""


@dataclass(frozen=True)
class Debate:
    """The scores of a debate, first to last, and whether the critic was content in the end."""

    scores: tuple[tuple[float, ...], ...]
    content: bool


def topical_chat() -> list[Item]:
    """270 replies to 45 dialogues."""
    with (DATA / "topical_chat" / "topical_chat.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Item(
            row["context_id"],
            (
                Section("source", row["dialogue_history"]),
                Section("fact", row["fact"]),
                Section("candidate", row["response"]),
            ),
            row["human"],
        )
        for row in rows
    ]


def summeval() -> list[Item]:
    """1,200 summaries of 75 articles."""
    with gzip.open(DATA / "summeval" / "summeval.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        Item(
            row["article_id"],
            (Section("source", row["source"]), Section("candidate", row["summary"])),
            row["human"],
        )
        for row in rows
    ]


def faireval() -> list[Item]:
    """60 questions with two models' answers and the people's verdict on them."""
    with (DATA / "faireval" / "faireval.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    winners = {"gpt35": "1", "vicuna-13b": "2", "tie": "tie"}
    return [
        Item(
            row["question_id"],
            (
                Section("question", row["question"]),
                Section("answer 1", row["answers"]["gpt35"]),
                Section("answer 2", row["answers"]["vicuna-13b"]),
            ),
            {},
            winners[row["human_label"]],
        )
        for row in rows
    ]


SCALES = {"understandability": (0, 1), "groundedness": (0, 1)}
DATASETS: dict[str, tuple[Callable[[], list[Item]], tuple[float, float], tuple[str, ...]]] = {
    "Topical-Chat": (
        topical_chat,
        (1, 3),
        ("naturalness", "coherence", "engagingness", "groundedness", "understandability"),
    ),
    "SummEval": (summeval, (1, 5), ("coherence", "consistency", "fluency", "relevance")),
}


def debate(item: Item, about: dict[str, Any], persona: str) -> Debate:
    """Scorer and critic in turn, as in the protocol ``debate`` with a relaying commander."""
    log: list[Section] = []
    about = {**about, "persona": persona}

    def ask(role: str, turn: int) -> tuple[tuple[float, ...], bool]:
        last = scores[-1] if scores else None
        call = {**about, "role": role, "round": turn, "last_value": last}
        response, form = respond(call, [*item.sections, *log])
        log.append(Section(f"{role}, round {turn}", as_text(response, form)))
        return response.values, response.no_issue

    scores: list[tuple[float, ...]] = []
    scores.append(ask("scorer", 0)[0])
    for turn in range(1, ROUNDS + 1):
        if ask("critic", turn)[1]:
            return Debate(tuple(scores), content=True)
        scores.append(ask("scorer", turn)[0])
    return Debate(tuple(scores), content=False)


def correlation(statistic: Statistic, judged: Sequence[float], human: Sequence[float]) -> float:
    """One coefficient over all rows."""
    return float(statistic(judged, human)[0])


def grouped(
    statistic: Statistic, items: Sequence[Item], judged: Sequence[float], human: Sequence[float]
) -> tuple[float, int]:
    """The mean coefficient over the groups, and how many groups had one (no side constant)."""
    rows: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for item, j, h in zip(items, judged, human, strict=True):
        rows[item.group].append((j, h))
    coefficients = [
        float(statistic(js, hs)[0])
        for js, hs in (zip(*pairs, strict=True) for pairs in rows.values())
        if len(set(js)) > 1 and len(set(hs)) > 1
    ]
    return sum(coefficients) / len(coefficients), len(coefficients)


def correlation_rows() -> Iterable[tuple[str, ...]]:
    """Data, aspect, which score, then each coefficient per group and over rows."""
    for name, (load, usual, aspects) in DATASETS.items():
        items = load()
        for aspect in aspects:
            low, high = SCALES.get(aspect, usual)
            about = {"kind": "score", "aspect": aspect, "low": low, "high": high}
            debates = [debate(item, about, "strict") for item in items]
            human = [item.human[aspect] for item in items]
            for label, judged in (
                ("first", [d.scores[0][0] for d in debates]),
                ("after debate", [d.scores[-1][0] for d in debates]),
            ):
                cells = [grouped(s, items, judged, human) for s in STATISTICS.values()]
                whole = [correlation(s, judged, human) for s in STATISTICS.values()]
                yield (
                    name,
                    aspect,
                    label,
                    *(f"{c:.3f}" for c, _ in cells),
                    str(cells[0][1]),
                    *(f"{c:.3f}" for c in whole),
                )


def ending_rows() -> Iterable[tuple[str, ...]]:
    """Yield a row per data set, aspect and persona: how debates end, in per cent."""
    for name, (load, usual, aspects) in DATASETS.items():
        items = load()[:240]
        for aspect in aspects:
            low, high = SCALES.get(aspect, usual)
            about = {"kind": "score", "aspect": aspect, "low": low, "high": high}
            for persona in PERSONAS:
                debates = [debate(item, about, persona) for item in items]
                ends = Counter(len(d.scores) if d.content else 0 for d in debates)
                changed = sum(d.scores[0] != d.scores[-1] for d in debates)
                numbers = [*(ends[r] for r in range(1, ROUNDS + 1)), ends[0], changed]
                yield name, aspect, persona, *(f"{100 * n / len(items):.0f}" for n in numbers)


def comparison_rows() -> Iterable[tuple[str, ...]]:
    """Yield a row per persona: right winners of 60 before and after the debate, and endings."""
    items = faireval()
    for persona in PERSONAS:
        debates = [
            debate(item, {"kind": "compare", "low": 1, "high": 10}, persona) for item in items
        ]
        first = sum(winner(d.scores[0]) == i.winner for d, i in zip(debates, items, strict=True))
        after = sum(winner(d.scores[-1]) == i.winner for d, i in zip(debates, items, strict=True))
        ends = Counter(len(d.scores) if d.content else 0 for d in debates)
        yield persona, str(first), str(after), *(str(ends[r]) for r in (*range(1, ROUNDS + 1), 0))


def winner(pair: tuple[float, ...]) -> str:
    """The answer with the higher score."""
    return "1" if pair[0] > pair[1] else "2" if pair[1] > pair[0] else "tie"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Print the tables."""
    # Rounded scores are often nearly constant within a group. scipy warns; such groups are counted.
    warnings.simplefilter("ignore", stats.ConstantInputWarning)
    warnings.simplefilter("ignore", stats.NearConstantInputWarning)
    means = [f"{name}, group mean" for name in STATISTICS]
    print(
        table(
            ["data", "aspect", "score", *means, "groups", *(f"{n}, rows" for n in STATISTICS)],
            correlation_rows(),
        )
    )
    print()
    ends = [f"round {r}" for r in range(1, ROUNDS + 1)]
    print(table(["data", "aspect", "persona", *ends, "unresolved", "score changed"], ending_rows()))
    print()
    print(
        table(
            ["persona", "right at first", "right after debate", *ends, "unresolved"],
            comparison_rows(),
        )
    )


if __name__ == "__main__":
    main()
