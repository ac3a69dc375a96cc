"""The count at the end: mean scores, the jury's votes, and who wins by which (SAMRE, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..state.graph_state import JudgeState
from ..state.settings import SamreSettings
from ..state.transcript import Score, Turn
from ..state.verdict import winner_of
from .courtroom import SIDES
from .hearing import Hearing


async def tally(state: JudgeState, hearing: Hearing[SamreSettings]) -> dict[str, Any]:
    """Decide without a model: the jury's winner, where it has one; else the side with the higher mean score.

    ``final`` is the mean pair; ``details`` holds both winners and the count.
    """
    means = mean_scores(state["scores"])
    winner = by_means = winner_of(means)
    details: dict[str, Any] = {"w": by_means, "mean_scores": means, "jury_winner": None, "votes": None}
    if hearing.settings.jurors:
        votes = counted(state["transcript"])
        by_votes = winner_of(votes.values())
        details |= {"jury_winner": by_votes, "votes": votes}
        winner = by_means if by_votes == "tie" else by_votes
    stopped = "agreement" if rounds_agree(state["scores"]) else "max_rounds"
    return {"final": means, "winner": winner, "stop_reason": stopped, "details": details}


def rounds_agree(scores: Sequence[Score]) -> bool:
    """Whether the last two rounds favour the same side; a tied round agrees with nothing.

    >>> rounds_agree([[90, 80], [70, 60]]), rounds_agree([[90, 80], [70, 70]]), rounds_agree([[90, 80]])
    (True, False, False)
    """
    gaps = [pair[0] - pair[1] for pair in scores[-2:] if isinstance(pair, list)]
    return len(gaps) == 2 and gaps[0] * gaps[1] > 0


def mean_scores(scores: Sequence[Score]) -> list[float]:
    """The mean of each side's totals over the rounds held.

    >>> mean_scores([[90, 80], [70, 60]])
    [80.0, 70.0]
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]


def counted(transcript: Sequence[Turn]) -> dict[str, float]:
    """Votes for each answer; where jurors gave scores, the sums of these. A void vote counts for nobody."""
    cast = [turn["value"] for turn in transcript if turn["role"] == "juror"]
    scored = [value for value in cast if isinstance(value, list)]
    if scored:
        return {str(side): sum(pair[side - 1] for pair in scored) for side in SIDES}
    return {str(side): cast.count(str(side)) for side in SIDES}
