"""Money and time of each contender over its data, with a row for people."""

from __future__ import annotations

from dataclasses import dataclass

from ...state.errors import UsageError


@dataclass(frozen=True)
class People:
    """What people would take, as the user knows it (ChatEval, 2024, appendix E; DEBATE, E.1).

    Attributes:
        price_usd: US dollars that one judgement of one person costs.
        minutes: that it takes.
        annotators: how many people judge each item.

    Raises:
        UsageError: a price or a time below zero, or no annotator.
    """

    price_usd: float | None = None
    minutes: float | None = None
    annotators: int = 1

    def __post_init__(self) -> None:
        for name, value in (("price_usd", self.price_usd), ("minutes", self.minutes)):
            if value is not None and not 0 <= value < float("inf"):
                raise UsageError(f"people: {name} must be a number from 0 on, not {value}")
        if self.annotators < 1:
            raise UsageError(f"people: annotators must be 1 or more, not {self.annotators}")

    @property
    def cost_each(self) -> float | None:
        """US dollars an item and aspect, by all its annotators."""
        return None if self.price_usd is None else self.price_usd * self.annotators

    @property
    def seconds_each(self) -> float | None:
        """Working time an item and aspect, of all its annotators."""
        return None if self.minutes is None else 60 * self.minutes * self.annotators


@dataclass(frozen=True)
class CostRow:
    """What one way of judging takes for one dataset.

    Attributes:
        label: a contender's, or ``people``.
        data: the dataset's name.
        judgements: how many (an item, an aspect, a repeat).
        cost_usd, seconds: of all of them, one after another; ``None`` where it is not known.
        cost_each, seconds_each: of one.
        calls_each, tokens_each: of one; ``None`` for people.
        is_people: whether this is the row of people.
    """

    label: str
    data: str
    judgements: int
    cost_usd: float | None
    seconds: float | None
    cost_each: float | None
    seconds_each: float | None
    calls_each: float | None
    tokens_each: float | None
    is_people: bool = False


@dataclass(frozen=True)
class Costs:
    """A row a contender, then a row for people for each dataset, where their price or time was given."""

    rows: tuple[CostRow, ...]
    people: People | None = None
    notes: tuple[str, ...] = ()
