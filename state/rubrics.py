"""Rubrics: weighted criteria that a candidate meets or does not meet, and their arithmetic.

An aspect may have a rubric, and an item of a dataset may add criteria of its own. The protocol
``checklist`` has every criterion checked; other protocols show the rubric with the aspect.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from .checked import Checked, FilledText, OptionalText

MOST_CRITERIA = 200
"""The criteria that a rubric may have: four times as many as the longest of HealthBench."""

CriterionAnswer = Literal["yes", "no", "not applicable"]
ANSWERS: tuple[CriterionAnswer, ...] = get_args(CriterionAnswer)


def _number(points: Any) -> Any:
    # In Python, True is a number.
    if isinstance(points, bool):
        raise ValueError("must be a number, got true or false")
    return points


class Criterion(Checked):
    """One criterion of a rubric, with the points that it is worth.

    >>> Criterion(criterion="Names the dose.", points=5).points
    5.0
    """

    called: ClassVar[str] = "a criterion"

    criterion: FilledText
    """What the candidate says or does if it meets the criterion."""
    points: Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)] = 1
    """Its weight; below 0 for something undesirable."""
    id: OptionalText = None
    """Its name in verdicts, if it has one."""
    tags: tuple[str, ...] = ()
    """Words by which to group criteria later; judges do not see them."""

    @model_validator(mode="after")
    def _counts(self) -> Criterion:
        if self.points == 0:
            raise ValueError("points must not be 0: the criterion would change no score")
        return self


def check_ids(rubric: Sequence[Criterion]) -> None:
    """Check the size of a rubric, and that its ids differ.

    Raises:
        ValueError: too many criteria, or two with one id.
    """
    if len(rubric) > MOST_CRITERIA:
        raise ValueError(
            f"the rubric has {len(rubric)} criteria, and at most {MOST_CRITERIA} are possible"
        )
    ids = Counter(criterion.id for criterion in rubric if criterion.id is not None)
    if twice := [id for id, count in ids.items() if count > 1]:
        raise ValueError(f"the rubric has two criteria with the id {twice[0]!r}")


def check_rubric(rubric: Sequence[Criterion]) -> None:
    """Check that a rubric can give a score.

    Raises:
        ValueError: as for ``check_ids``, or no criterion has points above 0.
    """
    check_ids(rubric)
    if rubric and all(criterion.points < 0 for criterion in rubric):
        raise ValueError(
            "no criterion of the rubric has points above 0, so the best possible score is unknown"
        )


@dataclass(frozen=True)
class RubricScore:
    """The result of a rubric.

    Attributes:
        points: the sum of the points of the criteria that are met, below 0 if faults prevail.
        possible: the sum of the positive points of the criteria that apply.
        share: ``points / possible``, not clipped.
        score: the share, at least 0, on the aspect's scale.
    """

    points: float
    possible: float
    share: float
    score: float


def rubric_score(
    rubric: Sequence[Criterion], answers: Sequence[CriterionAnswer], low: float, high: float
) -> RubricScore | None:
    """Return the score of a rubric from the answer to each criterion.

    A criterion that is answered with "not applicable" counts neither as met nor as possible.

    Returns:
        The result; None if no criterion with positive points applies.

    >>> rubric = [Criterion(criterion="Names the dose.", points=7), Criterion(criterion="Guesses.", points=-3)]
    >>> rubric_score(rubric, ["yes", "yes"], 0, 1).share == 4 / 7
    True
    >>> rubric_score(rubric, ["no", "yes"], 1, 5)
    RubricScore(points=-3.0, possible=7.0, share=-0.42857142857142855, score=1.0)

    Source: HealthBench (Arora et al. 2025), ``calculate_score`` of its code. There, the mean over
    all examples is clipped; here, every score.
    """
    both = list(zip(rubric, answers, strict=True))
    possible = math.fsum(
        criterion.points
        for criterion, answer in both
        if criterion.points > 0 and answer != "not applicable"
    )
    if not possible:
        return None
    points = math.fsum(criterion.points for criterion, answer in both if answer == "yes")
    share = points / possible
    return RubricScore(points, possible, share, low + (high - low) * max(share, 0.0))
