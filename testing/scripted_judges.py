"""The replies of two judges: one agrees at once, and one objects as long as it can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Reply = str | dict[str, Any]
STEPS = "1. Read both texts.\n2. Give a score."


def _checks(metadata: Mapping[str, Any], answer: str) -> Reply:
    numbers = range(1, len(metadata["criteria"]) + 1)
    answers = {f"answer_{number}": answer for number in numbers}
    return {"reasoning": "Because.", **{f"quotation_{number}": "" for number in numbers}, **answers}


def agreeing_reply(metadata: Mapping[str, Any], prompt: str, preferred: str, other: str) -> Reply:
    """Return the reply of a judge that never objects and always prefers the same answer.

    Args:
        metadata: the metadata of the call, see ``ScriptedModel``.
        prompt: the whole prompt.
        preferred: the answer that it prefers, wherever it stands.
        other: the other answer.

    >>> agreeing_reply({"form": "critique", "kind": "score"}, "", "Yes.", "No.")["no_issue"]
    True
    """
    if metadata["form"] == "critique":
        return {"feedback": "Agreed.", "no_issue": True}
    if metadata["form"] == "steps":
        return STEPS
    if metadata["form"] == "checks":
        return _checks(metadata, "yes")
    if metadata["kind"] == "score":
        return {"reasoning": "Because.", "score": 3}
    low = metadata["low"]
    high = metadata["high"]
    is_first = prompt.find(preferred) < prompt.find(other)
    scores, winner = ((high, low), "1") if is_first else ((low, high), "2")
    pair = {"score_1": scores[0], "score_2": scores[1], "winner": winner}
    return {"reasoning": "Because.", "score": low, **pair}


def objecting_reply(metadata: Mapping[str, Any], _prompt: str) -> Reply:
    """Return the reply of a judge that always objects, and changes its mind in every round.

    >>> objecting_reply({"form": "critique"}, "")["no_issue"]
    False
    """
    if metadata["form"] == "critique":
        return {"feedback": "I object.", "no_issue": False}
    if metadata["form"] == "steps":
        return STEPS
    if metadata["form"] == "checks":
        return _checks(metadata, "no")
    low = metadata["low"]
    odd = metadata["round"] % 2
    pair = {"score_1": low + 1 - odd, "score_2": low + odd}
    return {"reasoning": "So.", "score": max(3, low), **pair, "winner": "2"}
