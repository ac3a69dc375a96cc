"""The forms in which judges' replies were published, each turned into the fields of a ``Line``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..datasets import Dataset
from ..files import RowFile

Fields = Mapping[str, Any]
Shape = Callable[[Fields], dict[str, Any]]


def shape_of(row: Fields) -> Shape | None:
    """How rows with these fields are read; ``None`` for rows that hold no recorded reply.

    >>> shape_of({"item": "a", "reply": "4"})({"item": "a", "reply": "4"})
    {'item': 'a', 'reply': '4'}
    >>> shape_of({"id": "a", "text": "4"}) is None
    True
    """
    for fields, shape in _SHAPES.items():
        if fields <= row.keys() and ("reply" in row or "replies" in row):
            return shape
    return None


def names_of(dataset: Dataset) -> dict[str, str]:
    """Items of a published dataset to the names that ``_summeval`` gives them, where its file tells."""
    path = Path(dataset.location)
    if dataset.name != "summeval" or not path.is_file():
        return {}
    rows = (row for _, row in RowFile(path).rows())
    return {row["item_id"]: _summary(row) for row in rows if row.keys() >= _NAMED}


_NAMED = frozenset({"item_id", "doc_id", "system_id"})


def _summary(row: Fields) -> str:
    return f"{row['doc_id']}-{row['system_id']}"


def _as_it_is(row: Fields) -> dict[str, Any]:
    return dict(row)


def _topical_chat(row: Fields) -> dict[str, Any]:
    """Twenty replies for each response and dimension (Chiang and Lee 2023, *A Closer Look ...*)."""
    about = {"item": row["item_id"], "aspect": f"topical-chat/{row['dimension']}", "group": row["context_id"]}
    return {**about, **_replies(row), "system": row.get("system_id")}


def _summeval(row: Fields) -> dict[str, Any]:
    """One reply (Shen et al. 2023) or twenty for each article, system and dimension of SummEval."""
    about = {
        "item": _summary(row),
        "group": row["doc_id"],
        "system": row["system_id"],
    }
    return {**about, "aspect": f"summeval/{row['dimension']}", **_replies(row)}


def _reviews(row: Fields) -> dict[str, Any]:
    """One review with two scores for each question and pair of models (Vicuna's benchmark)."""
    models = [row["model_1"], row["model_2"]]
    item = "/".join(map(str, (row["question_id"], *models)))
    return {"item": item, "group": str(row["question_id"]), "systems": models, **_replies(row)}


def _replies(row: Fields) -> dict[str, Any]:
    given = {name: row[name] for name in ("reply", "replies", "human") if name in row}
    return {**given, "model": row.get("judge_model")}


_SHAPES: dict[frozenset[str], Shape] = {
    frozenset({"item"}): _as_it_is,
    frozenset({"item_id", "context_id", "dimension"}): _topical_chat,
    frozenset({"doc_id", "system_id", "dimension"}): _summeval,
    frozenset({"question_id", "model_1", "model_2"}): _reviews,
}
