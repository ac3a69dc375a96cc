"""Forms of the courtroom: totals with the criteria behind them, and votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..state.errors import ReplyError
from .forms import Form, PairForm, ScoreForm, Value
from .replies import read_vote


@dataclass(frozen=True)
class TotalsForm(PairForm):
    """A total for each answer, with its points on every criterion.

    ``feedback``: some words for each advocate as well; ``explained``: and why one answer is better.
    """

    feedback: bool = False
    explained: bool = False
    template: ClassVar[str] = "courtroom/form_totals"

    def schema(self) -> dict[str, Any]:
        schema = super().schema()
        if not self.feedback:
            return schema
        words = {"type": "string", "description": "Feedback for each advocate, up to 50 words each."}
        reasoning, *scores = schema["properties"].items()
        properties = dict([reasoning, ("feedback", words), *scores])
        return {**schema, "title": "judgement_reply", "properties": properties, "required": list(properties)}

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        asked_for = ("reasoning", "feedback") if self.feedback else ("reasoning",)
        said = dict.fromkeys(_words(fields, key) for key in asked_for)
        return super().from_fields({**fields, "reasoning": "\n".join(filter(None, said))}, raw)

    def limits(self) -> dict[str, Any]:
        return {**super().limits(), "feedback": self.feedback, "explained": self.explained}


@dataclass(frozen=True)
class TotalForm(ScoreForm):
    """The total of one defence, with its points on every criterion."""

    template: ClassVar[str] = "courtroom/form_total"


@dataclass(frozen=True)
class VoteForm(Form):
    """A vote for one of the two answers (value ``"1"`` or ``"2"``)."""

    name: ClassVar[str] = "vote"
    template: ClassVar[str] = "courtroom/form_vote"

    def schema(self) -> dict[str, Any]:
        winner = {"type": "string", "enum": ["1", "2"], "description": "The better answer, 1 or 2."}
        return {
            "title": "vote_reply",
            "type": "object",
            "properties": {
                "reasoning": {"type": "string", "description": "Reasons, briefly."},
                "winner": winner,
            },
            "required": ["reasoning", "winner"],
            "additionalProperties": False,
        }

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        winner = str(fields.get("winner", "")).strip()
        if winner not in ("1", "2"):
            raise ReplyError("The field winner is neither 1 nor 2.", raw, "missing")
        return f"{_words(fields, 'reasoning')}\nVote: {winner}".strip(), winner

    def from_text(self, text: str) -> Value:
        vote = read_vote(text)
        if vote == "tie":
            raise ReplyError("The reply votes for a tie, which is no vote.", text, "missing")
        return vote


def _words(fields: Mapping[str, Any], key: str) -> str:
    words = fields.get(key)
    return words.strip() if isinstance(words, str) else ""
