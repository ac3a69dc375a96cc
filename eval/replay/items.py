"""Items of which replies are known and no texts: what a recording tells of them, and nothing made up."""

from __future__ import annotations

from pydantic import Field

from ..items import About, CompareItem, ScoreItem

NOT_RECORDED = "(not recorded)"


class RecordedText(ScoreItem):
    """A text that was rated and that the recording does not hold; ``known`` is what is told of it, by aspect."""

    source: str = ""
    candidate: str = ""
    known: dict[str, About] = Field(default_factory=dict)

    def about(self, aspect: str) -> About:
        """What is known of the item: no length where the text is not there."""
        return self.known.get(aspect) or {**super().about(aspect), "lengths": ()}


class RecordedAnswers(CompareItem):
    """Two answers that were compared and that the recording does not hold."""

    question: str = NOT_RECORDED
    answer_1: str = NOT_RECORDED
    answer_2: str = NOT_RECORDED
    known: About | None = None

    def about(self) -> About:
        """What is known of the item: no lengths where the texts are not there."""
        return self.known or {**super().about(), "lengths": ()}
