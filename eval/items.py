"""One item of a dataset: what is to be judged, and what people said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from typing_extensions import TypedDict

from ..state.aspects import Aspect
from ..state.tasks import DEFAULT_CRITERIA, CompareTask, ScoreTask
from ..state.verdict import Winner

Number = Annotated[float, Field(allow_inf_nan=False)]


class _Item(BaseModel):
    # A dataset may carry columns of its own: they are left alone.
    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1)
    group: str | None = None

    def texts(self) -> Iterator[tuple[str, str]]:
        """The fields that are text, and what they hold."""
        return ((name, value) for name, value in self if isinstance(value, str))


class About(TypedDict):
    """What results repeat of their item, so that whoever reads them needs no dataset.

    Attributes:
        systems: who wrote the candidate, or answer 1 and answer 2; empty where it is not known.
        category: of the question, if it has one.
        lengths: characters of the candidate, or of answer 1 and answer 2.
        annotations: what each annotator said, where it is known.
    """

    systems: tuple[str, ...]
    category: str | None
    lengths: tuple[int, ...]
    annotations: tuple[float | Winner, ...]


class ScoreItem(_Item):
    """A text to be rated, with people's scores by aspect where there are any.

    ``annotations`` holds single annotators' scores where ``human`` has their mean.
    """

    system: str | None = None
    source: str
    fact: str | None = None
    candidate: str
    references: tuple[str, ...] = ()
    human: dict[str, Number | list[Number]] = {}
    annotations: dict[str, list[Number]] = {}

    def task(self, aspect: Aspect) -> ScoreTask:
        """What a protocol is given."""
        return ScoreTask(source=self.source, candidate=self.candidate, fact=self.fact, aspect=aspect)

    def label(self, aspect: str) -> float | None:
        """People's score: the mean where several are given."""
        given = self.human.get(aspect)
        if given is None or given == []:
            return None
        return fmean(given) if isinstance(given, list) else given

    def about(self, aspect: str) -> About:
        """What a result of that aspect repeats of the item."""
        given = self.human.get(aspect)
        return About(
            systems=(self.system,) if self.system else (),
            category=None,
            lengths=(len(self.candidate),),
            annotations=tuple(given if isinstance(given, list) else self.annotations.get(aspect, ())),
        )


def _joined(value: Any) -> Any:
    """The turns of a conversation as one text."""
    if isinstance(value, list) and all(isinstance(turn, str) for turn in value):
        return "\n\n".join(f"Turn {number}: {turn}" for number, turn in enumerate(value, start=1))
    return value


def _as_text(value: Any) -> Any:
    """Whole numbers as text; a column with missing cells has 1.0 for 1."""
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    return f"{value:.0f}" if whole else value


Joined = Annotated[str, BeforeValidator(_joined)]
Preference = Annotated[Winner, BeforeValidator(_as_text)]


class CompareItem(_Item):
    """Two answers to be compared, with people's preference where there is one."""

    category: str | None = None
    question: Joined = Field(min_length=1)
    answer_1: Joined
    answer_2: Joined
    model_1: str | None = None
    model_2: str | None = None
    reference: Joined | None = None
    criteria: tuple[str, ...] = DEFAULT_CRITERIA
    human: Preference | list[Preference] | None = None

    def task(self) -> CompareTask:
        """What a protocol is given."""
        return CompareTask(
            question=self.question,
            answer_1=self.answer_1,
            answer_2=self.answer_2,
            criteria=self.criteria,
            reference=self.reference,
        )

    def label(self) -> Winner | None:
        """People's preference: that of the majority; no majority is a tie."""
        if not self.human:
            return None
        return majority(self.human) if isinstance(self.human, list) else self.human

    def about(self) -> About:
        """What a result repeats of the item."""
        return About(
            systems=(self.model_1, self.model_2) if self.model_1 and self.model_2 else (),
            category=self.category,
            lengths=(len(self.answer_1), len(self.answer_2)),
            annotations=tuple(self.human) if isinstance(self.human, list) else (),
        )


Item = ScoreItem | CompareItem


def majority(votes: Sequence[Winner]) -> Winner:
    """What more than half of the annotators said; else a tie (ChatEval, section 3.4).

    >>> majority(["1", "1", "tie"]), majority(["1", "2", "tie"])
    ('1', 'tie')
    """
    [(winner, count), *_] = Counter(votes).most_common(1)
    return winner if 2 * count > len(votes) else "tie"


def parse_item(row: Mapping[str, Any]) -> Item:
    """Make an item of a row; a question, or turns, mark a comparison.

    Raises:
        pydantic.ValidationError: names the field that is wrong.
    """
    if "turns" in row and "question" not in row:
        row = {**row, "question": row["turns"]}
    return (CompareItem if "question" in row else ScoreItem).model_validate(dict(row))
