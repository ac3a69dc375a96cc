"""Read published comparisons: FairEval, LLMBar, JudgeBench, PandaLM and MT-Bench."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, count, zip_longest
from typing import Any

from ....state.errors import DataError
from ..files import Row, RowFile, checked, digest_of

GPT35, VICUNA = "gpt35", "vicuna-13b"
# The verdicts as the repository's review file and as faireval.jsonl write them.
_VERDICTS = {"CHATGPT": "1", "VICUNA13B": "2", "TIE": "tie", GPT35: "1", VICUNA: "2", "tie": "tie"}
_OBJECTIVE = {"A>B": "1", "B>A": "2"}


def faireval(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each question of the Vicuna benchmark: gpt35's answer first, vicuna-13b's second."""
    for line, row in checked(files[0], "question_id", "question", "answers", "human_label"):
        if missing := [model for model in (GPT35, VICUNA) if model not in row["answers"]]:
            raise DataError(f"{files[0].path}, line {line}: field 'answers' has none of {missing[0]!r}")
        answers = row["answers"][GPT35], row["answers"][VICUNA]
        yield line, _question(row, row["question"], answers, row["human_label"])


def faireval_repository(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read a file of questions, two of answers, and one of verdicts, one on each line in the order of the questions."""
    asked, first, second, review = files
    answers = [
        {row["question_id"]: row["text"] for _, row in checked(file, "question_id", "text")}
        for file in (first, second)
    ]
    verdicts = [row["text"].strip() for _, row in review.rows()]
    rows = checked(asked, "question_id", "text")
    # The verdicts carry no ids: one too few would shift all that follow it, so both must end together.
    for verdict, numbered in zip_longest(verdicts, rows):
        if numbered is None or verdict is None:
            questions = sum(1 for _ in asked.rows())
            raise DataError(f"{review.path}: has {len(verdicts)} verdicts for {questions} questions")
        line, row = numbered
        for file, known in zip((first, second), answers, strict=True):
            if row["question_id"] not in known:
                raise DataError(f"{file.path}: has no answer to question {row['question_id']}")
        yield line, _question(row, row["text"], tuple(a[row["question_id"]] for a in answers), verdict)


def _question(row: dict[str, Any], question: str, answers: Sequence[str], verdict: str) -> dict[str, Any]:
    return {
        "id": row["question_id"],
        "category": row.get("category"),
        "question": question,
        **{"answer_1": answers[0], "answer_2": answers[1], "model_1": GPT35, "model_2": VICUNA},
        # An unknown verdict is passed on as it is: the item's own check refuses it and names the line.
        "human": _VERDICTS.get(verdict, verdict),
    }


def llmbar(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each instruction with two outputs; the subset is its category."""
    for line, row in checked(files[0], "item_id", "instruction", "output_1", "output_2", "label"):
        yield line, _instruction(row["item_id"], row.get("subset"), row["instruction"], row)


def llmbar_repository(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read the eight ``dataset.json``; a subset is called after its folder."""
    numbers = count(1)
    for file in files:
        folder, above = file.path.parent.name, file.path.parent.parent.name
        subset = f"{above}-{folder}" if above == "Adversarial" else folder
        for line, row in checked(file, "input", "output_1", "output_2", "label"):
            # Ids count from 0 within a subset, the items' own numbers from 1 over all files.
            yield next(numbers), _instruction(f"{subset}-{line - 1:03d}", subset, row["input"], row)


def _instruction(id: str, subset: str | None, instruction: str, row: dict[str, Any]) -> dict[str, Any]:
    answers = {"answer_1": row["output_1"], "answer_2": row["output_2"]}
    return {"id": id, "category": subset, "question": instruction, **answers, "human": row["label"]}


def judgebench(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each pair of responses of a model; several pairs may share a question, which is their group."""
    numbers = count(1)
    for file in files:
        fields = ("pair_id", "source", "question", "response_A", "response_B", "label")
        for _, row in checked(file, *fields):
            yield (
                next(numbers),
                {
                    "id": row["pair_id"],
                    "group": digest_of(row["question"]),
                    "category": row["source"],
                    "question": row["question"],
                    "answer_1": row["response_A"],
                    "answer_2": row["response_B"],
                    "human": _OBJECTIVE.get(row["label"], row["label"]),
                },
            )


def pandalm(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each pair of responses; three annotators' votes are its label, the instruction is its group."""
    fields = ("idx", "cmp_key", "instruction", "response1", "response2")
    votes = ("annotator1", "annotator2", "annotator3")
    for line, row in checked(files[0], *fields, *votes):
        models = row["cmp_key"].split("_")
        question = "\n\n".join(filter(None, (row["instruction"], _text(row.get("input")))))
        yield (
            line,
            {
                "id": row["idx"],
                "group": digest_of(question),
                "category": row.get("motivation_app"),
                "question": question,
                "answer_1": _text(row["response1"]),
                "answer_2": _text(row["response2"]),
                # If a model's name has an underscore of its own, it is unclear where the second begins: none is named.
                **(dict(zip(("model_1", "model_2"), models, strict=True)) if len(models) == 2 else {}),
                "human": ["tie" if row[vote] == 0 else row[vote] for vote in votes],
            },
        )


def _text(value: Any) -> str:
    """Turn a cell back into text: the published file holds NaN for no text, and `True` and `7` that are no strings."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


EXPERT = "expert"
CATEGORIES = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
FIRST_QUESTION, OF_A_CATEGORY = 81, 10
_OTHER = {"1": "2", "2": "1", "tie": "tie"}


def human_votes(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read one row for each pair of answers, both turns shown; its label lists the experts' votes on either turn.

    The votes of the benchmark's authors are left out.
    """
    pairs: dict[tuple[Any, ...], Row] = {}
    for line, vote in checked(files[0], *_FIELDS):
        if not vote["judge"].startswith(EXPERT):
            continue
        models, sides = (vote["model_a"], vote["model_b"]), ("conversation_a", "conversation_b")
        winner = _winner(files[0], line, vote)
        # The same two models may have been shown in the other order: such a vote is turned to the pair's own order.
        if (vote["question_id"], *models[::-1]) in pairs:
            models, sides, winner = models[::-1], sides[::-1], _OTHER[winner]
        key = vote["question_id"], *models
        _, pair = pairs.setdefault(key, (line, {**_pair(key), "question": [], "human": []}))
        shown = _shown(*(vote[side] for side in sides))
        # The item shows as many turns as the longest conversation that was voted on.
        if len(shown["question"]) > len(pair["question"]):
            pair.update(shown)
        pair["human"].append(winner)
    yield from pairs.values()


_FIELDS = ("question_id", "model_a", "model_b", "winner", "judge", "conversation_a", "conversation_b")


def _winner(file: RowFile, line: int, vote: dict[str, Any]) -> str:
    """Read the winner of a vote; a tie has also been published as "tie (inconsistent)"."""
    winner = str(vote["winner"])
    if winner in ("model_a", "model_b"):
        return "1" if winner == "model_a" else "2"
    if winner.startswith("tie"):
        return "tie"
    raise DataError(
        f"{file.path}, {file.unit} {line}: field 'winner' is {winner!r}; expected model_a, model_b or tie"
    )


def _pair(key: tuple[Any, ...]) -> dict[str, Any]:
    question, first, second = key
    return {
        "id": f"{question}-{first}-{second}",
        "group": question,
        "category": _category(question),
        "model_1": first,
        "model_2": second,
    }


def _category(question: Any) -> str | None:
    """Return the category of a question: the 80 questions, numbered from 81, are ten to a category."""
    place = (int(question) - FIRST_QUESTION) // OF_A_CATEGORY
    return CATEGORIES[place] if 0 <= place < len(CATEGORIES) else None


def _shown(first: Sequence[dict[str, str]], second: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    return {
        "question": _said(first, "user"),
        "answer_1": _said(first, "assistant"),
        "answer_2": _said(second, "assistant"),
    }


def _said(conversation: Sequence[dict[str, str]], role: str) -> list[str]:
    return [turn["content"] for turn in conversation if turn["role"] == role]


def all_pairs(files: Sequence[RowFile]) -> Iterator[Row]:
    """Read questions with several models' answers and no votes: every two models are a pair, without a label."""
    numbers = count(1)
    for _, row in checked(files[0], "question_id", "turns", "answers"):
        # Sorted, so that two models have the same order, and their pair the same id, whatever the order in the file.
        for first, second in combinations(sorted(row["answers"]), 2):
            pair = _pair((row["question_id"], first, second))
            yield (
                next(numbers),
                {
                    **pair,
                    "category": row.get("category") or pair["category"],
                    "question": row["turns"],
                    "answer_1": row["answers"][first],
                    "answer_2": row["answers"][second],
                    "reference": row.get("reference") or row.get("gpt4_reference"),
                },
            )
