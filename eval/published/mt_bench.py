"""MT-Bench: the published human votes on pairs of answers, and questions with answers that nobody voted on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, count
from typing import Any

from ...state.errors import DataError
from ..files import Row, RowFile
from .fields import checked

EXPERT = "expert"
CATEGORIES = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
FIRST_QUESTION, OF_A_CATEGORY = 81, 10
_OTHER = {"1": "2", "2": "1", "tie": "tie"}


def human_votes(files: Sequence[RowFile]) -> Iterator[Row]:
    """One row a pair of answers, both turns shown; its label is the list of the experts' votes on either turn.

    The votes of the benchmark's authors are left out.
    """
    pairs: dict[tuple[Any, ...], Row] = {}
    for line, vote in checked(files[0], *_FIELDS):
        if not vote["judge"].startswith(EXPERT):
            continue
        models, sides = (vote["model_a"], vote["model_b"]), ("conversation_a", "conversation_b")
        winner = _winner(files[0], line, vote)
        if (vote["question_id"], *models[::-1]) in pairs:
            models, sides, winner = models[::-1], sides[::-1], _OTHER[winner]
        key = vote["question_id"], *models
        _, pair = pairs.setdefault(key, (line, {**_pair(key), "question": [], "human": []}))
        shown = _shown(*(vote[side] for side in sides))
        if len(shown["question"]) > len(pair["question"]):
            pair.update(shown)
        pair["human"].append(winner)
    yield from pairs.values()


_FIELDS = ("question_id", "model_a", "model_b", "winner", "judge", "conversation_a", "conversation_b")


def _winner(file: RowFile, line: int, vote: dict[str, Any]) -> str:
    """A tie has also been published as "tie (inconsistent)"."""
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
    """The 80 questions, numbered from 81, are ten a category."""
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
    """Questions with several models' answers and no votes: every two models are a pair, without a label."""
    numbers = count(1)
    for _, row in checked(files[0], "question_id", "turns", "answers"):
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
