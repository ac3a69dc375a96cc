"""Answer for each role of the offline judge.

The scorer starts from a first impression. The critic looks at all the evidence, and brings up the piece that
stands farthest from the score and has not been named yet. The scorer then weighs that piece together with
what it had: it moves as far as the piece's weight takes it, which may be too little to change the number.

All look at the same evidence; several agents of one role stress different pieces of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..delimiters import Section
from .offline_scoring import Call, Evidence, Qualities, View, blend, features_of, mixture, pull, reweight
from .written_reply import Response

Role: TypeAlias = Callable[[View], Response]


def judge(view: View) -> Response:
    """Score both answers by all the evidence, where what the advocates have brought up counts double."""
    raised = view.cited(view.said_by("advocate") + view.said_by("aggregator"))
    pieces = [
        Evidence(p.name, 2 * p.weight, p.quick, p.qualities, p.words) if p in raised else p
        for p in view.pieces
    ]
    qualities = mixture(pieces, view.width)
    if view.call.form == "text":
        quiet = listed(
            [p.name for p in strongest((p for p in view.pieces if p not in raised), 3)] or ["the rest"]
        )
        return Response(f"Both sides should say more clearly how they differ, above all on {quiet}.")
    reasons = " ".join(map(told, strongest(pieces)))
    return _verdict(view, f"{reasons} All in all that means {standing(qualities)}.", qualities)


def tie_breaker(view: View) -> Response:
    """Settle the score: all the evidence counts half, the last score and the critic's points a quarter each."""
    whole = mixture(view.pieces, view.width)
    last = view.last if view.last is not None else whole
    cited = view.cited(view.said_by("critic"))
    attacked = mixture(cited, view.width) if cited else last
    settled = blend(whole, blend(last, attacked, 0.5), 0.5)
    values = view.values(settled)
    nearer = abs(pull(settled, last)) <= abs(pull(settled, attacked))
    side = "nearer to the Scorer" if nearer else "nearer to the Critic"
    reasons = " ".join(map(told, strongest(view.pieces)))
    return Response(
        f"I have read both sides and all the evidence. {reasons} On balance I stand {side}.", values
    )


def referee(view: View) -> Response:
    """Score by the first impression and all that the others brought up, with the referee's own emphasis."""
    raised = view.cited(turn for turn in view.log if turn.agent != view.call.agent)
    # Where none of the pieces that make a first impression can be measured, all evidence has to do.
    held = [p for p in view.pieces if p.quick or p in raised] or list(view.pieces)
    seen = reweight(held, view.call.index)
    qualities = mixture(seen, view.width)
    fresh = [p for p in reweight(view.pieces, view.call.index) if p.name not in view.topics(view.log)]
    reasons = " ".join(map(told, strongest(fresh or seen)))
    heard = f"I have taken up what was said on {listed([p.name for p in raised])}. " if raised else ""
    return _verdict(view, f"{heard}{reasons} To me that means {standing(qualities)}.", qualities)


def planner(view: View) -> Response:
    """List the steps of an evaluation: the features of the aspect, heaviest first."""
    witnesses = sorted(features_of(view.call.aspect), key=lambda w: -w.weight)
    steps = [f"{n}. Look at {w.name}." for n, w in enumerate(witnesses, start=1)]
    return Response(
        "\n".join([*steps, f"{len(steps) + 1}. Weigh all of it, and settle on a number of the scale."])
    )


def advocate(view: View) -> Response:
    """Argue with the two best points of its own side that it has not made yet, in at most 80 words."""
    points = _points(view)
    made = view.cited(turn for turn in view.log if turn.agent == view.call.agent)
    fresh = [p for p in points if p not in made] or points
    # Each advocate of a team starts at another point, so that they do not all make the same two.
    start = max(view.call.index - 1, 0) % max(len(fresh), 1)
    chosen = (fresh[start:] + fresh[:start])[:2]
    return Response(shortened(f"I speak for answer {view.call.side}. {' '.join(map(told, chosen))}", 80))


def scorer(view: View) -> Response:
    """Score by a first impression; or revise the last score where a critic has objected."""
    objections = view.said_by("critic")
    if objections and view.last is not None:
        return _second_thought(view, view.last)
    quick = reweight(_at_first_sight(view), view.call.index)
    qualities = mixture(quick, view.width)
    reasons = " ".join(map(told, strongest(quick))) or "There is nothing in the text to go by."
    return Response(f"{reasons} Taken together, that means {standing(qualities)}.", view.values(qualities))


def summarizer(view: View) -> Response:
    """Sum up what has been brought up so far and the latest scores, in at most 50 words."""
    topics = listed(view.topics(view.log)[:8]) or "nothing that can be counted"
    latest = f" The latest scores stand at {spoken_values(view.call.last)}." if view.call.last else ""
    # Only the topics are cut short: a debate goes on from the scores, so these must stay whole.
    return Response(f"{shortened(f'So far the discussion was about {topics}', 40)}.{latest}")


def critic(view: View) -> Response:
    """Object with the strongest evidence, not named before, that the score is off; or declare that there is none."""
    whole = mixture(view.pieces, view.width)
    last = view.last if view.last is not None else whole
    temper = THRESHOLDS_BY_PERSONA.get(view.call.persona, THRESHOLDS_BY_PERSONA["strict"])
    fresh = [p for p in view.pieces if p not in view.cited(view.said_by("critic"))]
    off = [p for p in fresh if abs(pull(p.qualities, last)) >= temper.piece]
    if not off or abs(pull(whole, last)) < temper.whole:
        return _content(view)
    if view.call.persona == "sophisticated":
        return _doubt(view, max(off, key=lambda p: abs(pull(p.qualities, last))), last)
    return _objection(view, max(off, key=lambda p: p.weight * abs(pull(p.qualities, last))), last)


def commander(view: View) -> Response:
    """Write the Commander's message: a brief for the first score, or what accompanies the latest words."""
    spoken = [turn for turn in view.log if turn.agent != "commander"]
    subject = "the two answers" if view.width == 2 else f"the candidate's {view.call.aspect or 'quality'}"
    if not spoken:
        return Response(
            f"Scorer, please judge {subject} from the texts alone. Go step by step and give your reasons."
        )
    points = view.topics(spoken[-1:])
    basis = listed(points) if points else "what was said"
    if spoken[-1].agent.startswith("critic"):
        return Response(
            f"Scorer, the Critic objects and points to {basis}. Please weigh it step by step, and answer it."
        )
    return Response(
        f"Critic, the verdict on {subject} rests on {basis}. Please check step by step whether that holds."
    )


def juror(view: View) -> Response:
    """Vote or score by all the evidence, with the juror's own emphasis."""
    pieces = reweight(view.pieces, view.call.index)
    qualities = mixture(pieces, view.width)
    reasons = " ".join(map(told, strongest(pieces)))
    return _verdict(view, f"{reasons} From where I sit that means {standing(qualities)}.", qualities)


def aggregator(view: View) -> Response:
    """Combine what its side's advocates said, strongest first, in at most 150 words."""
    cited = view.cited(view.said_by("advocate"))
    points = [p for p in _points(view) if p in cited] or _points(view)
    return Response(
        shortened(f"The case for answer {view.call.side}. {' '.join(map(told, points[:4]))}", 150)
    )


def unfamiliar_role(view: View) -> Response:
    """Answer for a role of a protocol that the offline judge does not know, by the form that is asked of it.

    Nothing is known of what the role is for. It objects where an objection is asked for, lists steps where steps are,
    and else says what the evidence comes to, in words and in the numbers or the vote that its form may want.
    """
    if view.call.form == "critique":
        return critic(view)
    if view.call.form == "steps":
        return planner(view)
    pieces = reweight(view.pieces, view.call.index)
    qualities = mixture(pieces, view.width)
    reasons = " ".join(map(told, strongest(pieces)))
    return _verdict(view, f"{reasons} That means {standing(qualities)}.", qualities)


ROLES: dict[str, Role] = {
    "scorer": scorer,
    "critic": critic,
    "tie_breaker": tie_breaker,
    "commander": commander,
    "referee": referee,
    "judge": judge,
    "juror": juror,
    "advocate": advocate,
    "aggregator": aggregator,
    "summarizer": summarizer,
    "planner": planner,
}
"""To add a role, write a function that turns what it sees into what it says, and name it here.

A role that is not here answers as ``unfamiliar_role``."""


def respond(metadata: Mapping[str, Any], sections: Iterable[Section]) -> tuple[Response, str]:
    """Return what the role of a call says, and the form in which the reply is to be written.

    Raises:
        ValueError: no role, or no fenced text to be judged.
    """
    call = Call.from_metadata(metadata)
    return ROLES.get(call.role, unfamiliar_role)(View(call, sections)), call.form


@dataclass(frozen=True, slots=True)
class CriticThresholds:
    """Say how far a score must be off before a critic objects.

    Attributes:
        piece: distance of a single piece of evidence from the score (1 is the whole scale).
        whole: distance of all the evidence taken together.
    """

    piece: float
    whole: float


THRESHOLDS_BY_PERSONA = {
    "strict": CriticThresholds(piece=0.26, whole=0.0),
    "sophisticated": CriticThresholds(piece=0.3, whole=0.02),
    "moderate": CriticThresholds(piece=0.3, whole=0.06),
    "weak": CriticThresholds(piece=0.4, whole=0.1),
    "plain": CriticThresholds(piece=0.3, whole=0.15),
}


def _at_first_sight(view: View) -> tuple[Evidence, ...]:
    return tuple(p for p in view.pieces if p.quick) or view.pieces


def _second_thought(view: View, last: Qualities) -> Response:
    cited = view.cited(view.said_by("critic"))
    latest = view.cited(view.said_by("critic")[-1:])
    quick = _at_first_sight(view)
    before = view.values(last)
    if not latest:
        return Response(
            f"I find nothing countable in the objection, and stay with {spoken_values(before)}.", before
        )
    considered = [p for p in view.pieces if p in quick or p in cited]
    revised = mixture(considered, view.width)
    # A score that came from elsewhere may lie beyond the evidence; an objection never moves it the other way.
    # Both factors have the same sign where the revised score lies on the side to which the objection points.
    follows = pull(revised, last) * sum(pull(p.qualities, last) for p in latest) >= 0
    values = view.values(revised) if follows else before
    point = f"I have looked at the Critic's point again. {told(latest[0])}"
    if values == before:
        rest = [p.name for p in strongest(p for p in considered if p not in latest)]
        kept = listed(rest or ["the rest"])
        return Response(
            f"{point} Beside {kept} that is too little, and I stay with {spoken_values(before)}.", before
        )
    change = f"from {spoken_values(before)} to {spoken_values(values)}"
    return Response(f"{point} That is fair, and takes me {change}.", values)


def _content(view: View) -> Response:
    prose = f"I have gone through all {len(view.pieces)} pieces of evidence. What is left does not speak against it."
    return Response(prose, no_issue=True)


def _objection(view: View, piece: Evidence, last: Qualities) -> Response:
    claim = f"I find {spoken_values(view.values(last))} {_direction(piece, last)}."
    return Response(
        f"{claim} {told(piece)} I would rather defend {spoken_values(_figure(view, piece, last))}."
    )


def _doubt(view: View, piece: Evidence, last: Qualities) -> Response:
    # Begins with what does support the score (the piece nearest to it), and turns that into a doubt.
    others = [p for p in view.pieces if p.name != piece.name]
    ground = min(others, key=lambda p: abs(pull(p.qualities, last)), default=piece)
    question = f"What does {spoken_values(view.values(last))} rest on, other than what agrees with it?"
    case = f"Suppose a reader knew nothing else: would the verdict stand, or is it {_direction(piece, last)}?"
    figure = f"Until that is answered I hold {spoken_values(_figure(view, piece, last))} to be as defensible."
    support = f"That {ground.words[0]} does not settle it. " if ground is not piece else ""
    return Response(f"{question} {support}{told(piece)} {case} {figure}")


def _direction(piece: Evidence, last: Qualities) -> str:
    up = pull(piece.qualities, last) > 0
    if len(last) == 1:
        return "too low" if up else "too high"
    return f"too hard on answer {1 if up else 2}"


def _figure(view: View, piece: Evidence, last: Qualities) -> tuple[float, ...]:
    """Return the score that the critic would give: half-way to the piece, and at least one step off."""
    scale = view.call.scale
    values = view.values(blend(last, piece.qualities, 0.5))
    if values != view.values(last):
        return values
    sign = 1 if pull(piece.qualities, last) > 0 else -1
    # Of a pair, one score goes up and the other down by a step, so that their gap moves the critic's way.
    moved = [values[0] + sign * scale.step, *(v - sign * scale.step for v in values[1:])]
    return tuple(min(scale.high, max(scale.low, round(v, 6))) for v in moved)


def _verdict(view: View, prose: str, qualities: Qualities) -> Response:
    values = view.values(qualities)
    if view.width == 1:
        return Response(prose, values)
    if view.call.form == "score":
        return Response(prose, values[view.call.side - 1 : view.call.side])
    gap = pull(qualities, (0.0, 0.0))
    # Level answers: neighbouring jurors vote differently, so that a tie of the evidence is no vote for a place.
    winner = "1" if gap > 0 else "2" if gap < 0 else "12"[view.call.index % 2]
    return Response(prose, values, winner=winner)


def _points(view: View) -> list[Evidence]:
    sign = 1 if view.call.side == 1 else -1
    # Against level scores the pull is the gap between the answers: positive where answer 1 is ahead.
    level = (0.0,) * view.width
    return sorted(view.pieces, key=lambda p: -sign * p.weight * pull(p.qualities, level))


def told(piece: Evidence) -> str:
    """Write a piece of evidence as one sentence.

    >>> told(Evidence("substance", 1, True, (0.5,), ("the candidate offers 6 content words",)))
    'On substance, the candidate offers 6 content words.'
    """
    return f"On {piece.name}, {' while '.join(piece.words)}."


def spoken_values(values: Sequence[float]) -> str:
    """Write numbers as they stand inside a sentence.

    >>> spoken_values((4.0,)), spoken_values((8.0, 6.5))
    ('4', '8 and 6.5')
    """
    return " and ".join(f"{v:g}" for v in values)


def strongest(pieces: Iterable[Evidence], most: int = 2) -> list[Evidence]:
    """Return the pieces that weigh most and are farthest from the middle (or set the two answers most apart)."""
    return sorted(pieces, key=lambda p: -p.weight * _distance(p.qualities))[:most]


def _distance(qualities: Qualities) -> float:
    return abs(qualities[0] - (0.5 if len(qualities) == 1 else qualities[1]))


def standing(qualities: Qualities) -> str:
    """Say in words where on the scale qualities lie.

    >>> standing((0.9,)), standing((0.3, 0.7))
    ('near the top of the scale', 'answer 2 ahead of answer 1')
    """
    if len(qualities) == 2:
        gap = round(qualities[0] - qualities[1], 6)
        ahead = "answer 1 ahead of answer 2" if gap > 0 else "answer 2 ahead of answer 1"
        return ahead if gap else "both answers level"
    places = ["near the bottom", "in the lower part", "in the middle", "in the upper part", "near the top"]
    return f"{places[min(4, int(qualities[0] * 5))]} of the scale"


def listed(names: Sequence[str]) -> str:
    """Join names to a list as it stands in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shortened(text: str, most: int) -> str:
    """Cut a text to at most so many words.

    >>> shortened("one two three", 2)
    'one two ...'
    """
    words = text.split()
    return text if len(words) <= most else f"{' '.join(words[:most])} ..."
