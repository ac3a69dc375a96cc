"""Everybody beyond the debate: referees, advocates, judges, jurors, and those who only write.

All look at the same evidence; several agents of one role stress different pieces of it.
"""

from __future__ import annotations

from .aspects import Piece, witnesses_of
from .call import View
from .reading import Qualities, emphasised, mixture, pull
from .wording import Said, listed, shortened, spoken_values, standing, strongest, told


def referee(view: View) -> Said:
    """First impression and all that has come up in the discussion, with an emphasis of its own."""
    raised = view.cited(turn for turn in view.log if turn.agent != view.call.agent)
    held = [p for p in view.pieces if p.quick or p in raised] or list(view.pieces)
    seen = emphasised(held, view.call.index)
    qualities = mixture(seen, view.width)
    fresh = [p for p in emphasised(view.pieces, view.call.index) if p.name not in view.topics(view.log)]
    reasons = " ".join(map(told, strongest(fresh or seen)))
    heard = f"I have taken up what was said on {listed([p.name for p in raised])}. " if raised else ""
    return _verdict(view, f"{heard}{reasons} To me that means {standing(qualities)}.", qualities)


def judge(view: View) -> Said:
    """All the evidence; what the advocates have brought up counts double."""
    raised = view.cited(view.said_by("advocate") + view.said_by("aggregator"))
    pieces = [
        Piece(p.name, 2 * p.weight, p.quick, p.qualities, p.words) if p in raised else p for p in view.pieces
    ]
    qualities = mixture(pieces, view.width)
    if view.call.form == "text":
        quiet = listed(
            [p.name for p in strongest((p for p in view.pieces if p not in raised), 3)] or ["the rest"]
        )
        return Said(f"Both sides should say more clearly how they differ, above all on {quiet}.")
    reasons = " ".join(map(told, strongest(pieces)))
    return _verdict(view, f"{reasons} All in all that means {standing(qualities)}.", qualities)


def juror(view: View) -> Said:
    """All the evidence, with an emphasis of its own."""
    pieces = emphasised(view.pieces, view.call.index)
    qualities = mixture(pieces, view.width)
    reasons = " ".join(map(told, strongest(pieces)))
    return _verdict(view, f"{reasons} From where I sit that means {standing(qualities)}.", qualities)


def _verdict(view: View, prose: str, qualities: Qualities) -> Said:
    values = view.values(qualities)
    if view.width == 1:
        return Said(prose, values)
    if view.call.form == "score":
        return Said(prose, values[view.call.side - 1 : view.call.side])
    gap = pull(qualities, (0.0, 0.0))
    # Level answers: neighbouring jurors vote differently, so that a tie of the evidence is no vote for a place.
    winner = "1" if gap > 0 else "2" if gap < 0 else "12"[view.call.index % 2]
    return Said(prose, values, winner=winner)


def advocate(view: View) -> Said:
    """The two best points of its own side which its side has not made yet, at most 80 words."""
    points = _points(view)
    made = view.cited(turn for turn in view.log if turn.agent == view.call.agent)
    fresh = [p for p in points if p not in made] or points
    start = max(view.call.index - 1, 0) % max(len(fresh), 1)
    chosen = (fresh[start:] + fresh[:start])[:2]
    return Said(shortened(f"I speak for answer {view.call.side}. {' '.join(map(told, chosen))}", 80))


def aggregator(view: View) -> Said:
    """What its side's advocates said, strongest first, at most 150 words."""
    cited = view.cited(view.said_by("advocate"))
    points = [p for p in _points(view) if p in cited] or _points(view)
    return Said(shortened(f"The case for answer {view.call.side}. {' '.join(map(told, points[:4]))}", 150))


def _points(view: View) -> list[Piece]:
    sign = 1 if view.call.side == 1 else -1
    level = (0.0,) * view.width
    return sorted(view.pieces, key=lambda p: -sign * p.weight * pull(p.qualities, level))


def summarizer(view: View) -> Said:
    """What has been brought up so far and the latest scores, at most 50 words."""
    topics = listed(view.topics(view.log)[:8]) or "nothing that can be counted"
    latest = f" The latest scores stand at {spoken_values(view.call.last)}." if view.call.last else ""
    return Said(f"{shortened(f'So far the discussion was about {topics}', 40)}.{latest}")


def planner(view: View) -> Said:
    """The steps of an evaluation: what would be looked at, heaviest first."""
    witnesses = sorted(witnesses_of(view.call.aspect), key=lambda w: -w.weight)
    steps = [f"{n}. Look at {w.name}." for n, w in enumerate(witnesses, start=1)]
    return Said(
        "\n".join([*steps, f"{len(steps) + 1}. Weigh all of it, and settle on a number of the scale."])
    )
