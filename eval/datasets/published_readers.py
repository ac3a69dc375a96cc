"""Read the files of published datasets, in their published form and as JSON lines.

``catalog.yaml`` names these functions. Each takes a format's files and, if the catalogue lists
them, the columns of fields. It yields rows with the fields of an item.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby
from statistics import fmean
from typing import Any

from ...state.errors import DataError
from .files import Row, RowFile, checked, digest_of
from .reading import Columns

SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")
HANNA = ("relevance", "coherence", "empathy", "surprise", "engagement", "complexity")
TRUTH = "Original Ground Truth"
GPT35 = "gpt35"
VICUNA = "vicuna-13b"
# The verdicts in FairEval's review file and in faireval.jsonl.
_VERDICTS = {"CHATGPT": "1", "VICUNA13B": "2", "TIE": "tie", GPT35: "1", VICUNA: "2", "tie": "tie"}
_OBJECTIVE = {"A>B": "1", "B>A": "2"}
_CATEGORIES = (
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
)


def _renamed(file: RowFile, columns: Columns, optional: Columns) -> Iterator[Row]:
    """Yield rows with fields from the columns that are listed for them.

    A column of ``optional`` may be missing; its field is then ``None``.

    Raises:
        DataError: a row lacks one of ``columns``; names file, line and column.
    """
    for line, row in checked(file, *columns.values()):
        yield line, {field: row.get(column) for field, column in {**columns, **optional}.items()}


def as_named(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read rows that only need their fields renamed."""
    return _renamed(files[0], columns, optional)


def topical_chat(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read one row for each response, grouped by dialogue context.

    The rows of a context must be consecutive. Its reference is the reply that a person really gave;
    this reply itself has none.
    """
    rows = _renamed(files[0], columns, optional)
    # UniEval's copy has no ids: consecutive rows with the same dialogue and fact share a context.
    contexts = groupby(
        rows, key=lambda row: row[1].get("group", (row[1]["source"], row[1]["fact"]))
    )
    for number, (_, context) in enumerate(contexts):
        responses = list(context)
        truth = [row["candidate"].strip() for _, row in responses if row["system"] == TRUTH]
        group = f"tc-{number:02d}"
        for place, (line, row) in enumerate(responses):
            row |= {
                name: (row[name] or "").strip() or None for name in ("source", "candidate", "fact")
            }
            row["references"] = [] if row["system"] == TRUTH else truth
            # The overall rating has a different scale, 1 to 5, and covers all aspects together.
            row["human"] = {
                name: value for name, value in row["human"].items() if name != "overall"
            }
            yield line, {"id": f"{group}-{place}", "group": group, **row}


def summeval(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read one row for each summary, grouped by article.

    References are in an optional second file in the same folder.
    """
    beside = checked(files[1], "doc_id", "references") if len(files) > 1 else ()
    references = {row["doc_id"]: row["references"] for _, row in beside}
    for line, row in _renamed(files[0], columns, optional):
        row["references"] = references.get(row.pop("document"), ())
        row["annotations"] = _by_aspect(row["annotations"] or ())
        yield line, row


def summeval_paired(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read the authors' ``model_annotations.aligned.paired.jsonl``.

    It contains single ratings, systems, articles and references.
    """
    for line, row in _renamed(files[0], columns, optional):
        if row["source"] is None:
            raise DataError(
                f"{files[0].path}, line {line}: field 'text' is missing: the annotations were "
                "published without the articles; pair them with the authors' pair_data.py, or leave "
                "--data-dir out to fetch both"
            )
        ratings = _by_aspect(row["annotations"])
        row |= {"id": f"{row['group']}-{row['system']}", "references": row["references"] or ()}
        yield (
            line,
            {
                **row,
                "annotations": ratings,
                "human": {name: fmean(ratings[name]) for name in ratings},
            },
        )


def _by_aspect(annotations: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Turn the annotators' ratings, each by aspect, into a list of ratings per aspect."""
    aspects = annotations[0] if annotations else ()
    return {name: [ratings[name] for ratings in annotations] for name in aspects}


def summeval_of_mteb(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read MTEB's copy: each row is an article with its summaries and their mean ratings."""
    for line, row in checked(
        files[0], "id", "text", "machine_summaries", "human_summaries", *SUMMEVAL
    ):
        summaries = row["machine_summaries"]
        for name in SUMMEVAL:
            if len(row[name]) != len(summaries):
                raise DataError(
                    f"{files[0].path}, row {line}: field {name!r} has {len(row[name])} values for "
                    f"{len(summaries)} summaries"
                )
        for place, summary in enumerate(summaries):
            item = {"id": f"{row['id']}-{place}", "group": row["id"], "source": row["text"]}
            item |= {"candidate": summary, "references": row["human_summaries"]}
            yield line, {**item, "human": {name: row[name][place] for name in SUMMEVAL}}


def hanna(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read one row for each story with the means of its three raters; grouped by prompt."""
    for line, row in _renamed(files[0], columns, optional):
        row["id"] = f"{row['group']}-{row['id']}"
        yield line, {**row, "human": {name: row[name] for name in HANNA}}


def hanna_annotations(
    files: Sequence[RowFile], columns: Columns, optional: Columns
) -> Iterator[Row]:
    """Read the authors' ``hanna_stories_annotations.csv``: one row for each story and rater."""
    stories: dict[str, Row] = {}
    for line, row in _renamed(files[0], columns, optional):
        own = {"id": f"story-{row['id']}", "group": digest_of(row["source"])}
        ratings: dict[str, list[Any]] = {name: [] for name in HANNA}
        _, story = stories.setdefault(row["id"], (line, {**row, **own, "human": ratings}))
        for name in HANNA:
            story["human"][name].append(row[name])
    yield from stories.values()


def faireval(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read one row for each question of the Vicuna benchmark: gpt35's answer, then vicuna-13b's."""
    for line, row in _renamed(files[0], columns, optional):
        answers = row.pop("answers")
        if missing := [model for model in (GPT35, VICUNA) if model not in answers]:
            raise DataError(
                f"{files[0].path}, line {line}: field 'answers' has none of {missing[0]!r}"
            )
        yield line, _answered(row, (answers[GPT35], answers[VICUNA]), row["human"])


def faireval_repository(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read a file of questions, two files of answers, and one of verdicts.

    The verdicts are in the order of the questions, one on each line.
    """
    asked, *answered, review = files
    columns = {"id": "question_id", "text": "text"}
    answers = [
        {row["id"]: row["text"] for _, row in _renamed(file, columns, {})} for file in answered
    ]
    verdicts = [row["text"].strip() for _, row in review.rows()]
    questions = list(
        _renamed(asked, {"id": "question_id", "question": "text"}, {"category": "category"})
    )
    # Verdicts have no ids: a missing one would shift all later ones.
    if len(verdicts) != len(questions):
        raise DataError(
            f"{review.path}: has {len(verdicts)} verdicts for {len(questions)} questions"
        )
    for verdict, (line, row) in zip(verdicts, questions, strict=True):
        for file, known in zip(answered, answers, strict=True):
            if row["id"] not in known:
                raise DataError(f"{file.path}: has no answer to question {row['id']}")
        yield line, _answered(row, [known[row["id"]] for known in answers], verdict)


def _answered(row: dict[str, Any], answers: Sequence[str], verdict: str) -> dict[str, Any]:
    pair = {"answer_1": answers[0], "answer_2": answers[1], "model_1": GPT35, "model_2": VICUNA}
    # Pass on an unknown verdict unchanged: the item's own check refuses it and names the line.
    return {**row, **pair, "human": _VERDICTS.get(verdict, verdict)}


def llmbar_repository(
    files: Sequence[RowFile], columns: Columns, optional: Columns
) -> Iterator[Row]:
    """Read the eight ``dataset.json`` files; each folder's name is the name of a subset."""
    for file in files:
        folder = file.path.parent.name
        above = file.path.parent.parent.name
        subset = f"{above}-{folder}" if above == "Adversarial" else folder
        for line, row in _renamed(file, columns, optional):
            # Ids count from 0 in each subset.
            yield line, {**row, "id": f"{subset}-{line - 1:03d}", "category": subset}


def judgebench(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read one row for each pair of responses of a model; pairs are grouped by question."""
    for file in files:
        for line, row in _renamed(file, columns, optional):
            row["human"] = _OBJECTIVE.get(row["human"], row["human"])
            yield line, {**row, "group": digest_of(row["question"])}


def pandalm(files: Sequence[RowFile], columns: Columns, optional: Columns) -> Iterator[Row]:
    """Read one row for each pair of responses, with three votes, grouped by instruction."""
    votes = ("annotator1", "annotator2", "annotator3")
    for line, row in _renamed(files[0], columns, optional):
        row["question"] = "\n\n".join(filter(None, (row["question"], _text(row["input"]))))
        row |= {name: _text(row[name]) for name in ("answer_1", "answer_2")}
        models = row["models"].split("_")
        # If a model's name contains an underscore, the boundary between the names is unclear, so
        # neither is named.
        if len(models) == 2:
            row["model_1"], row["model_2"] = models
        row["human"] = ["tie" if row[name] == 0 else row[name] for name in votes]
        yield line, {**row, "group": digest_of(row["question"])}


def _text(value: Any) -> str:
    """Turn a cell back into text: the published file has NaN for no text, and `True` and `7`."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def mt_bench_votes(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each pair of answers, with both turns and the experts' votes on either.

    The votes of the benchmark's authors are left out.
    """
    pairs: dict[tuple[Any, ...], Row] = {}
    fields = (
        "question_id",
        "model_a",
        "model_b",
        "winner",
        "judge",
        "conversation_a",
        "conversation_b",
    )
    for line, vote in checked(files[0], *fields):
        if not vote["judge"].startswith("expert"):
            continue
        winner = str(vote["winner"])
        # Ties have also been published as "tie (inconsistent)".
        if winner not in ("model_a", "model_b") and not winner.startswith("tie"):
            raise DataError(
                f"{files[0].path}, {files[0].line_name} {line}: field 'winner' is {winner!r}; "
                "expected model_a, model_b or tie"
            )
        # Another vote may show the same two models in the other order: convert it to the pair's
        # order.
        sides = (
            "ab" if (vote["question_id"], vote["model_b"], vote["model_a"]) not in pairs else "ba"
        )
        key = (vote["question_id"], *(vote[f"model_{side}"] for side in sides))
        _, pair = pairs.setdefault(key, (line, {**_pair(*key), "question": [], "human": []}))
        first, second = (vote[f"conversation_{side}"] for side in sides)
        questions = _turns(first, "user")
        # The item shows as many turns as the longest conversation with a vote.
        if len(questions) > len(pair["question"]):
            answers = {
                "answer_1": _turns(first, "assistant"),
                "answer_2": _turns(second, "assistant"),
            }
            pair.update(question=questions, **answers)
        pair["human"].append(
            "tie" if winner.startswith("tie") else str(sides.index(winner[-1]) + 1)
        )
    yield from pairs.values()


def _turns(conversation: Sequence[dict[str, str]], role: str) -> list[str]:
    return [turn["content"] for turn in conversation if turn["role"] == role]


def mt_bench_answers(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read questions with several models' answers; every two models are a pair without a label."""
    for line, row in checked(files[0], "question_id", "turns", "answers"):
        # Sort, so that a pair has the same order and id, whatever the order in the file.
        for first, second in combinations(sorted(row["answers"]), 2):
            pair = _pair(row["question_id"], first, second)
            pair["category"] = row.get("category") or pair["category"]
            answers = {"answer_1": row["answers"][first], "answer_2": row["answers"][second]}
            reference = row.get("reference") or row.get("gpt4_reference")
            yield line, {**pair, "question": row["turns"], **answers, "reference": reference}


def _pair(question: Any, first: str, second: str) -> dict[str, Any]:
    # MT-Bench numbers its 80 questions from 81, with ten per category.
    place = (int(question) - 81) // 10
    category = _CATEGORIES[place] if 0 <= place < len(_CATEGORIES) else None
    about = {"id": f"{question}-{first}-{second}", "group": question, "category": category}
    return {**about, "model_1": first, "model_2": second}
