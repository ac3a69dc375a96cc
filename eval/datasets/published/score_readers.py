"""Read published ratings: SummEval, Topical-Chat and HANNA, as published and as one JSON object on each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from ....state.errors import DataError
from ..files import Row, RowFile, checked, digest_of

SYSTEMS_OF_A_CONTEXT = 6
TRUTH = "Original Ground Truth"
HANNA = ("relevance", "coherence", "empathy", "surprise", "engagement", "complexity")
SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")


def topical_chat(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each response, grouped by dialogue context; those of a context must follow one another."""
    rows = checked(files[0], "item_id", "context_id", "dialogue_history", "response", "human")
    for _, context in groupby(rows, key=lambda row: row[1]["context_id"]):
        held = list(context)
        truth = [row["response"].strip() for _, row in held if row.get("system_id") == TRUTH]
        for line, row in held:
            about = {"id": row["item_id"], "group": row["context_id"], "system": row.get("system_id")}
            texts = (row["dialogue_history"], row["response"], row.get("fact"))
            yield line, {**about, **_response(row.get("system_id"), texts, row["human"], truth)}


def topical_chat_of_unieval(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read UniEval's copy of USR's annotations: one row for each response, the six of a context one after the other."""
    rows = checked(files[0], "source", "system_id", "system_output", "scores")
    # This copy has no ids: rows of one context follow one another with the same dialogue and fact.
    contexts = groupby(rows, key=lambda row: (row[1]["source"], row[1].get("context")))
    for number, (_, context) in enumerate(contexts):
        held = list(context)
        truth = [row["system_output"].strip() for _, row in held if row["system_id"] == TRUTH]
        for place, (line, row) in enumerate(held):
            group = f"tc-{number:02d}"
            about = {"id": f"{group}-{place}", "group": group, "system": row["system_id"]}
            texts = (row["source"], row["system_output"], row.get("context"))
            yield line, {**about, **_response(row["system_id"], texts, row["scores"], truth)}


def _response(
    system: str | None, texts: tuple[str, str, str | None], human: Mapping[str, float], truth: Sequence[str]
) -> dict[str, Any]:
    """Make an item's fields; what people really said next is the other responses' reference, and has none itself."""
    source, response, fact = texts
    return {
        "source": source.strip(),
        "candidate": response.strip(),
        "fact": (fact or "").strip() or None,
        "references": [] if system == TRUTH else truth,
        # The overall rating has a scale of its own, 1 to 5, and is of no single aspect.
        "human": {name: value for name, value in human.items() if name != "overall"},
    }


def summeval(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each summary, grouped by article; references are in a file beside it, which may be missing."""
    references = _references(files[1]) if len(files) > 1 else {}
    for line, row in checked(files[0], "item_id", "article_id", "source", "summary", "human"):
        yield (
            line,
            {
                "id": row["item_id"],
                "group": row["article_id"],
                "system": row.get("system_id"),
                "source": row["source"],
                "candidate": row["summary"],
                "references": references.get(row.get("doc_id"), ()),
                "human": row["human"],
                "annotations": _single(row.get("expert_annotations") or ()),
            },
        )


def _references(file: RowFile) -> dict[str | None, list[str]]:
    return {row["doc_id"]: row["references"] for _, row in checked(file, "doc_id", "references")}


def summeval_paired(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read the authors' ``model_annotations.aligned.paired.jsonl``: single ratings, systems, articles, references."""
    for line, row in checked(files[0], "id", "decoded", "expert_annotations"):
        if "text" not in row:
            raise DataError(
                f"{files[0].path}, line {line}: field 'text' is missing: the annotations were published without "
                "the articles; pair them with the authors' pair_data.py, or leave --data-dir out to fetch both"
            )
        single = _single(row["expert_annotations"])
        yield (
            line,
            {
                "id": f"{row['id']}-{row.get('model_id')}",
                "group": row["id"],
                "system": row.get("model_id"),
                "source": row["text"],
                "candidate": row["decoded"],
                "references": row.get("references", ()),
                "human": {name: fmean(values) for name, values in single.items()},
                "annotations": single,
            },
        )


def summeval_of_mteb(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read MTEB's copy: one row for each article, with lists of its summaries and of their mean ratings."""
    number = 0  # of a summary over all articles: a row of the file holds several
    fields = ("id", "text", "machine_summaries", "human_summaries", *SUMMEVAL)
    for line, row in checked(files[0], *fields):
        summaries = row["machine_summaries"]
        for name in SUMMEVAL:
            if len(row[name]) != len(summaries):
                problem = f"has {len(row[name])} values for {len(summaries)} summaries"
                raise DataError(f"{files[0].path}, row {line}: field {name!r} {problem}")
        for place, summary in enumerate(summaries):
            number += 1
            yield (
                number,
                {
                    "id": f"{row['id']}-{place}",
                    "group": row["id"],
                    "source": row["text"],
                    "candidate": summary,
                    "references": row["human_summaries"],
                    "human": {name: row[name][place] for name in SUMMEVAL},
                },
            )


def _single(annotations: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Turn the annotators' ratings, each by aspect, into one list of ratings for each aspect."""
    return {name: [one[name] for one in annotations] for name in (annotations[0] if annotations else ())}


def hanna(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each story with the means of its three raters; grouped by prompt."""
    titles = [name.title() for name in HANNA]
    for line, row in checked(files[0], "prompt_id", "story_id", "prompt", "story", *titles):
        yield (
            line,
            {
                "id": f"{row['prompt_id']}-{row['story_id']}",
                "group": row["prompt_id"],
                "source": row["prompt"],
                "candidate": row["story"],
                "human": {title.lower(): row[title] for title in titles},
            },
        )


def hanna_annotations(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read the authors' ``hanna_stories_annotations.csv``: one row for each story and rater."""
    titles = [name.title() for name in HANNA]
    stories: dict[str, Row] = {}
    for line, row in checked(files[0], "Story ID", "Prompt", "Story", "Model", *titles):
        _, story = stories.setdefault(
            row["Story ID"],
            (
                line,
                {
                    "id": f"story-{row['Story ID']}",
                    "group": digest_of(row["Prompt"]),
                    "system": row["Model"],
                    "source": row["Prompt"],
                    "candidate": row["Story"],
                    "human": {name: [] for name in HANNA},
                },
            ),
        )
        for name, title in zip(HANNA, titles, strict=True):
            story["human"][name].append(row[title])
    yield from stories.values()
