"""Make a row of each verdict: ids, texts, labels, outcome, usage and an optional transcript."""

from __future__ import annotations

import json
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import orjson

from ....state.errors import DataError
from ....state.redaction import redact
from ....state.tasks import TEXTS, CompareTask, ScoreTask, TaskKind
from ....state.transcript import USAGE_FIELDS
from ...datasets.dataset import Dataset
from ...datasets.items import Item, ScoreItem, digest
from ...results.evaluation import Evaluation
from ...results.results import Key, StoredResults
from ...review.review_queue import RecordedAnswer

ColumnType = Literal["text", "number", "count", "flag", "texts", "numbers", "reviews", "turns"]
"""The type of a column's cells; every cell may also be missing."""


@dataclass(frozen=True)
class ExportColumn:
    """A column of the table.

    Attributes:
        name: its heading.
        type: the type of its cells.
        kind: the kind of runs with this column; ``None`` for both kinds.
        from_data: whether its cells come from the dataset instead of the results.
    """

    name: str
    type: ColumnType = "text"
    kind: TaskKind | None = None
    from_data: bool = False


def _texts_shown() -> Iterator[ExportColumn]:
    """Yield a column for each text of a task of either kind."""
    for name in TEXTS:
        of_score = name in ScoreTask.model_fields
        of_compare = name in CompareTask.model_fields
        kind: TaskKind | None = (
            None if of_score and of_compare else "score" if of_score else "compare"
        )
        yield ExportColumn(name, kind=kind, from_data=True)


COLUMNS: tuple[ExportColumn, ...] = (
    ExportColumn("run"),
    ExportColumn("run_id"),
    ExportColumn("dataset"),
    ExportColumn("item"),
    ExportColumn("group"),
    ExportColumn("category", kind="compare"),
    ExportColumn("system", kind="score"),
    ExportColumn("system_1", kind="compare"),
    ExportColumn("system_2", kind="compare"),
    *_texts_shown(),
    ExportColumn("references", "texts", "score", from_data=True),
    ExportColumn("media", "texts", from_data=True),
    ExportColumn("aspect", kind="score"),
    ExportColumn("scale_low", "number", "score"),
    ExportColumn("scale_high", "number", "score"),
    ExportColumn("protocol"),
    ExportColumn("judge"),
    ExportColumn("model"),
    ExportColumn("signature"),
    ExportColumn("repeat", "count"),
    ExportColumn("status"),
    ExportColumn("error"),
    ExportColumn("score", "number", "score"),
    ExportColumn("score_1", "number", "compare"),
    ExportColumn("score_2", "number", "compare"),
    ExportColumn("winner", kind="compare"),
    ExportColumn("criteria_1", "numbers", "compare"),
    ExportColumn("criteria_2", "numbers", "compare"),
    ExportColumn("position_consistent", "flag", "compare"),
    ExportColumn("explanation"),
    ExportColumn("human_score", "number", "score"),
    ExportColumn("human_winner", kind="compare"),
    ExportColumn("annotator_scores", "numbers", "score"),
    ExportColumn("annotator_winners", "texts", "compare"),
    ExportColumn("annotators", "texts"),
    ExportColumn("reviews", "reviews"),
    ExportColumn("rounds", "count"),
    ExportColumn("stop_reason"),
    ExportColumn("score_by_round", "numbers", "score"),
    ExportColumn("score_1_by_round", "numbers", "compare"),
    ExportColumn("score_2_by_round", "numbers", "compare"),
    ExportColumn("calls", "count"),
    ExportColumn("input_tokens", "count"),
    ExportColumn("cached_input_tokens", "count"),
    ExportColumn("output_tokens", "count"),
    ExportColumn("reasoning_tokens", "count"),
    ExportColumn("uncounted", "count"),
    ExportColumn("cost_usd", "number"),
    ExportColumn("seconds", "number"),
    ExportColumn("details"),
    ExportColumn("warnings", "texts"),
    ExportColumn("transcript", "turns"),
)
"""All columns, in their order."""


def columns_for(kinds: Sequence[TaskKind], *, texts: bool, turns: bool) -> tuple[ExportColumn, ...]:
    """Return the columns of a table of these kinds of runs.

    >>> [column.name for column in columns_for(["compare"], texts=True, turns=False) if column.from_data]
    ['question', 'context', 'reference', 'answer_1', 'answer_2', 'media']
    """
    return tuple(
        column
        for column in COLUMNS
        if (column.kind is None or column.kind in kinds)
        and (texts or not column.from_data)
        and (turns or column.type != "turns")
    )


@dataclass(frozen=True)
class ExportedRun:
    """A run to export.

    Attributes:
        name: the name of the run's folder.
        evaluation: its results and its manifest.
        labels: the label of each judge by protocol, as in reports.
        items: a digest of the item of each result, in the order of the results.
        dataset: the dataset with the texts; ``None`` exports no texts.
        reviews: the answers in a review, by verdict and name.
    """

    name: str
    evaluation: Evaluation
    labels: Mapping[str, str]
    items: array[int]
    dataset: Dataset | None = None
    reviews: Mapping[Key, Mapping[str, RecordedAnswer]] = field(default_factory=dict)

    @property
    def kind(self) -> TaskKind:
        """The kind of its tasks."""
        kind: TaskKind = self.data.get("kind", "score")
        return kind

    @property
    def data(self) -> Mapping[str, Any]:
        """The dataset, as the manifest describes it."""
        return self.evaluation.manifest.get("data") or {}

    def rows(self, turns: bool = False) -> Iterator[dict[str, Any]]:
        """Yield a row for each result, one at a time, in the order of the dataset if there is one.

        Args:
            turns: whether rows have the transcript.

        Raises:
            DataError: the dataset has changed, or lacks the item of a result.
        """
        about_run = {
            "run": self.name,
            "run_id": self.evaluation.manifest.get("run"),
            "dataset": self.data.get("name"),
        }
        about_judge = {protocol: self._about_judge(protocol) for protocol in self.labels}
        aspects = {
            aspect["name"]: aspect for aspect in self.evaluation.manifest.get("aspects") or ()
        }
        # A metric's numbers are not on the scale of the aspect.
        scales = {} if "metrics" in self.evaluation.manifest else aspects
        compares = self.kind == "compare"
        texts: Mapping[str, Any] = {}
        before: Item | None = None
        for item, fields in self._pairs():
            if item is not None and item is not before:
                texts = texts_of(item)
                before = item
            scale = scales.get(fields["aspect"], {})
            yield {
                **about_run,
                **texts,
                **about_judge[fields["protocol"]],
                "scale_low": scale.get("low"),
                "scale_high": scale.get("high"),
                **outcome(fields, compares, turns),
                "reviews": self._reviews_of(fields) if self.reviews else [],
            }

    def _about_judge(self, protocol: str) -> dict[str, Any]:
        manifest = self.evaluation.manifest
        by_role: Mapping[str, str] = (manifest.get("models") or {}).get(protocol) or {}
        models = list(dict.fromkeys(by_role.values()))
        # Roles are named only if their models differ.
        several = ", ".join(f"{role}={model}" for role, model in by_role.items())
        return {
            "protocol": protocol,
            "judge": self.labels[protocol],
            "model": models[0] if len(models) == 1 else several or None,
            "signature": manifest.get("signatures", {}).get(protocol),
        }

    def _reviews_of(self, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
        # All repeats of a judgement are one question to a reviewer.
        key = Key(fields["item"], fields["aspect"], fields["protocol"], 0)
        return [_review(answer) for answer in self.reviews.get(key, {}).values()]

    def _pairs(self) -> Iterator[tuple[Item | None, Mapping[str, Any]]]:
        """Yield the fields of each result with its item."""
        results = self.evaluation.results
        if self.dataset is None:
            of_all = results.fields() if isinstance(results, StoredResults) else map(vars, results)
            yield from ((None, fields) for fields in of_all)
            return
        # The items of the next results. No result is read ahead, and each item is read once.
        waiting: deque[Item] = deque()
        places = self._places(self.dataset, waiting)
        if isinstance(results, StoredResults):
            found = results.fields(places)
        else:
            found = (vars(results[place]) for place in places)
        for fields in found:
            yield waiting.popleft(), fields

    def _places(self, dataset: Dataset, waiting: deque[Item]) -> Iterator[int]:
        """Yield the place of each result in the dataset's order, and add its item to ``waiting``.

        Raises:
            DataError: the dataset lacks the item of a result.
        """
        # Only a digest of each result's item is stored.
        wanted = np.frombuffer(self.items, dtype=np.uint64)
        order = np.argsort(wanted, kind="stable")
        keys, first = np.unique(wanted[order], return_index=True)
        ends = [*first[1:].tolist(), len(wanted)]
        starts = dict(zip(keys.tolist(), zip(first.tolist(), ends, strict=True), strict=True))
        for item in dataset:
            start, end = starts.pop(digest(item.id), (0, 0))
            for place in order[start:end].tolist():
                waiting.append(item)
                yield place
        if starts:
            place = min(int(order[start]) for start, _ in starts.values())
            item_id = self.evaluation.results[place].item
            raise DataError(
                f"{dataset.location}: has no item {item_id!r}, which the run {self.name} judged"
            )


def texts_of(item: Item) -> dict[str, Any]:
    """Return the texts of an item, and the names of its images and files."""
    # Looking up a missing field of a pydantic model is slow.
    fields = vars(item)
    texts = {name: fields.get(name) for name in TEXTS}
    references = list(item.references) if isinstance(item, ScoreItem) else None
    return {**texts, "references": references, "media": list(item.media)}


def outcome(fields: Mapping[str, Any], compares: bool, turns: bool) -> dict[str, Any]:
    """Return a result's ids, verdict, labels, usage and, if wanted, its transcript.

    Args:
        fields: the fields of the result.
        compares: whether the result compares two answers.
        turns: whether to include the transcript.
    """
    human = fields["human"]
    systems = fields["systems"]
    by_round = fields["score_by_round"]
    explained_by = fields["explained_by"]
    details = fields["details"]
    explanation = None
    if explained_by:
        explained = (
            turn["content"] for turn in fields["transcript"] if turn.get("id") == explained_by
        )
        explanation = next(explained, None)
    row: dict[str, Any] = {
        "item": fields["item"],
        "group": fields["group"],
        "aspect": fields["aspect"],
        "repeat": fields["repeat"],
        "status": fields["status"],
        "error": None if fields["error"] is None else redact(fields["error"]),
        "explanation": explanation,
        "annotators": fields["annotators"],
        "rounds": fields["rounds"],
        "stop_reason": fields["stop_reason"],
        "details": _as_json(details) if details else None,
        **_usage(fields),
        "warnings": [redact(warning) for warning in fields["warnings"]],
    }
    if compares:
        pairs = [value for value in by_round if isinstance(value, list | tuple)]
        score_1, score_2 = fields["scores"] or (None, None)
        criteria_1, criteria_2 = _last_criteria(details)
        row |= {
            "category": fields["category"],
            "system_1": systems[0] if systems else None,
            "system_2": systems[1] if len(systems) > 1 else None,
            "score_1": score_1,
            "score_2": score_2,
            "winner": fields["winner"],
            "criteria_1": criteria_1,
            "criteria_2": criteria_2,
            "position_consistent": fields["position_consistent"],
            "human_winner": human,
            "annotator_winners": fields["annotations"],
            "score_1_by_round": [first for first, _ in pairs],
            "score_2_by_round": [second for _, second in pairs],
        }
    else:
        row |= {
            "system": systems[0] if systems else None,
            "score": fields["score"],
            "human_score": human,
            "annotator_scores": fields["annotations"],
            "score_by_round": by_round,
        }
    if turns:
        row["transcript"] = fields["transcript"]
    return row


def _as_json(details: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(details).decode()
    except TypeError:
        # Lone surrogates, which models can write, are escaped.
        return json.dumps(details)


def _last_criteria(details: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return both answers' points on each criterion in the last round; ``None`` without any."""
    rounds = details.get("criteria")
    last = rounds[-1] if isinstance(rounds, list) and rounds else None
    if (
        not isinstance(last, list)
        or len(last) != 2
        or not all(isinstance(points, list) for points in last)
    ):
        return None, None
    return last[0], last[1]


def _usage(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return calls, tokens, cost and time. Unreported tokens are missing instead of 0."""
    usage: dict[str, Any] = {name: fields[name] for name in USAGE_FIELDS}
    uncounted = fields.get("uncounted") or 0
    if not uncounted and usage["calls"] and not usage["input_tokens"]:
        uncounted = usage["calls"]
    if uncounted and not (usage["input_tokens"] or usage["output_tokens"]):
        usage |= {name: None for name in usage if name.endswith("_tokens")}
    usage["uncounted"] = uncounted
    return usage


def _review(answer: RecordedAnswer) -> dict[str, Any]:
    """Return one reviewer's answer.

    Score and winner are missing if the reviewer accepts the verdict.
    """
    given = answer.outcome
    return {
        "name": answer.name,
        "score": None if isinstance(given, str) else given,
        "winner": given if isinstance(given, str) else None,
        "reason": answer.reason,
        "blind": answer.blind,
        "at": answer.at,
    }
