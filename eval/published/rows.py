"""Published datasets, read from a folder of one's own: one JSON object a line, the fields named below."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...state.errors import DataError, UsageError
from ..files import Row, RowFile

FILES = {
    "topical-chat": "topical_chat.jsonl",
    "summeval": "summeval.jsonl",
    "faireval": "faireval.jsonl",
    "llmbar": "instances.jsonl",
}


def find(name: str, data_dir: str | Path | None) -> Path:
    """The file of a published dataset in a folder, plain or compressed, also one folder down.

    Raises:
        UsageError: no folder given.
        DataError: it is not there.
    """
    if data_dir is None:
        raise UsageError(f"{name} is not bundled: give the folder that holds {FILES[name]} with --data-dir")
    folder, wanted = Path(data_dir), FILES[name]
    for place in (folder, folder / name, folder / name.replace("-", "_")):
        for path in (place / wanted, place / f"{wanted}.gz"):
            if path.is_file():
                return path
    raise DataError(f"{folder}: holds no {wanted} (nor {wanted}.gz), which {name} is read from")


def topical_chat(file: RowFile) -> Iterator[Row]:
    """One row a response; grouped by dialogue context."""
    for line, row in _rows(file, "item_id", "context_id", "dialogue_history", "response", "human"):
        human = {name: value for name, value in row["human"].items() if name != "overall"}
        texts = {"source": row["dialogue_history"].strip(), "candidate": row["response"].strip()}
        fact = (row.get("fact") or "").strip() or None
        yield line, {**_rated(row, "context_id"), **texts, "fact": fact, "human": human}


def summeval(file: RowFile) -> Iterator[Row]:
    """One row a summary; grouped by article."""
    for line, row in _rows(file, "item_id", "article_id", "source", "summary", "human"):
        texts = {"source": row["source"], "candidate": row["summary"]}
        single = row.get("expert_annotations") or []
        annotations = {name: [one[name] for one in single] for name in (single[0] if single else ())}
        yield line, {**_rated(row, "article_id"), **texts, "human": row["human"], "annotations": annotations}


def faireval(file: RowFile) -> Iterator[Row]:
    """One row a question of the Vicuna benchmark: gpt35's answer first, vicuna-13b's second."""
    models = ("gpt35", "vicuna-13b")
    winners = {models[0]: "1", models[1]: "2", "tie": "tie"}
    for line, row in _rows(file, "question_id", "question", "answers", "human_label"):
        first, second = (row["answers"].get(model) for model in models)
        yield (
            line,
            {
                "id": row["question_id"],
                "category": row.get("category"),
                "question": row["question"],
                **{"answer_1": first, "answer_2": second, "model_1": models[0], "model_2": models[1]},
                "human": winners.get(row["human_label"], row["human_label"]),
            },
        )


def llmbar(file: RowFile) -> Iterator[Row]:
    """One row an instruction with two outputs; grouped by subset."""
    for line, row in _rows(file, "item_id", "instruction", "output_1", "output_2", "label"):
        answers = {"answer_1": row["output_1"], "answer_2": row["output_2"]}
        about = {"id": row["item_id"], "group": row.get("subset"), "category": row.get("subset")}
        yield line, {**about, "question": row["instruction"], **answers, "human": row["label"]}


def _rated(row: dict[str, Any], group: str) -> dict[str, Any]:
    return {"id": row["item_id"], "group": row[group], "system": row.get("system_id")}


def _rows(file: RowFile, *fields: str) -> Iterator[Row]:
    for line, row in file.rows():
        if missing := [field for field in fields if field not in row]:
            raise DataError(
                f"{file.path}, line {line}: field {missing[0]!r} is missing; there are {', '.join(row)}"
            )
        yield line, row
