"""Ask for points on the six criteria, from 1 to 20 each; the software adds them up to totals (MORE, SAMRE, baseline).

As text, the judge states each total itself, as in the paper, and the stated ones count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..state.errors import ReplyError
from .courtroom import CRITERIA, CRITERIA_WITHOUT_OPPONENT, HIGHEST, LOWEST, SIDES, points_off_scale
from .output_schemas import (
    PairSchema,
    ScoreSchema,
    Value,
    number,
    object_schema,
    prose,
    read_number,
    read_words,
)
from .replies import Shown

_POINTS = ScoreSchema(LOWEST, HIGHEST)


@dataclass(frozen=True)
class TotalsSchema(PairSchema):
    """Ask for points for each answer on every criterion; the value is the two totals.

    ``feedback`` asks for some words to each advocate as well, ``explained`` for why one answer is better.
    """

    feedback: bool = False
    explained: bool = False
    template: ClassVar[str] = "courtroom/form_totals"

    def schema(self) -> dict[str, Any]:
        words = {"reasoning": prose("For each criterion, why each answer earns its points.")}
        if self.feedback:
            words["feedback"] = prose("Feedback for each advocate, up to 50 words each.")
        points = {name: number(LOWEST, HIGHEST) for name in self._names}
        return object_schema("judgement_reply" if self.feedback else "totals_reply", **words, **points)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        asked_for = ("reasoning", "feedback") if self.feedback else ("reasoning",)
        # Feedback that repeats the reasoning word for word is kept once.
        said = [*filter(None, dict.fromkeys(read_words(fields, key) for key in asked_for))]
        if points := _read_points(fields, self._names, raw):
            first, second = points[::2], points[1::2]
            criteria = CRITERIA_WITHOUT_OPPONENT if self.explained else CRITERIA
            rows = zip(criteria, first, second, strict=True)
            said += [f"{criterion.name}: [{one:g}, {other:g}]" for criterion, one, other in rows]
            fields = {"score_1": sum(first), "score_2": sum(second)}
        return super().from_fields({**fields, "reasoning": "\n".join(said)}, raw)

    def from_text(self, text: str) -> Value:
        _refuse_points_off_scale(text, self.shown)
        return super().from_text(text)

    def limits(self) -> dict[str, Any]:
        points = {"lowest": LOWEST, "highest": HIGHEST, "names": self._names}
        return {**super().limits(), **points, "feedback": self.feedback, "explained": self.explained}

    @property
    def _names(self) -> list[str]:
        return [f"{word}_{side}" for word in _WORDS for side in SIDES]


@dataclass(frozen=True)
class TotalSchema(ScoreSchema):
    """Ask for the points of one defence on every criterion; the value is their total."""

    template: ClassVar[str] = "courtroom/form_total"

    def schema(self) -> dict[str, Any]:
        reasons = prose("For each criterion, why the defence earns its points.")
        points = {name: number(LOWEST, HIGHEST) for name in _POINTS_OF_ONE}
        return object_schema("total_reply", reasoning=reasons, **points)

    def from_fields(self, fields: Mapping[str, Any], raw: str) -> tuple[str, Value]:
        said = [*filter(None, [read_words(fields, "reasoning")])]
        if points := _read_points(fields, _POINTS_OF_ONE, raw):
            said += [
                f"{criterion.name}: {value:g}" for criterion, value in zip(CRITERIA, points, strict=True)
            ]
            fields = {"score": sum(points)}
        return super().from_fields({**fields, "reasoning": "\n".join(said)}, raw)

    def from_text(self, text: str) -> Value:
        _refuse_points_off_scale(text, self.shown)
        return super().from_text(text)

    def limits(self) -> dict[str, Any]:
        return {**super().limits(), "lowest": LOWEST, "highest": HIGHEST, "names": _POINTS_OF_ONE}


_WORDS = [criterion.name.partition(" ")[0].lower() for criterion in CRITERIA]
# ``reasoning`` alone would be both a criterion and the reasons.
_POINTS_OF_ONE = [f"{word}_points" for word in _WORDS]


def _refuse_points_off_scale(text: str, shown: Shown) -> None:
    if problem := points_off_scale(text, shown):
        raise ReplyError(problem, text, "off_scale")


def _read_points(fields: Mapping[str, Any], names: Sequence[str], raw: str) -> list[float]:
    """Return the points in the fields of these names; none where the reply has none of the fields.

    Such a reply states its totals, as one in text does.

    Raises:
        ReplyError: some are missing, no numbers, or off the scale.
    """
    if not any(name in fields for name in names):
        return []
    return [read_number(fields, name, _POINTS, raw) for name in names]
