"""The four who hold a debate: scorer, critic, tie-breaker, commander.

The scorer starts from what meets the eye. The critic looks at all the evidence, and brings up the piece that
stands farthest from the score and has not been named yet. The scorer then weighs that piece together with
what it had: it moves as far as the piece's weight takes it, which may be too little to change the number.
"""

from __future__ import annotations

from dataclasses import dataclass

from .aspects import Piece
from .call import View
from .reading import Qualities, blend, emphasised, mixture, pull
from .wording import Said, listed, spoken_values, standing, strongest, told


@dataclass(frozen=True, slots=True)
class Temper:
    """How far off things must be before a critic speaks up.

    Attributes:
        piece: distance of a single piece of evidence from the score (1 is the whole scale).
        whole: distance of all the evidence taken together.
    """

    piece: float
    whole: float


TEMPERS = {
    "strict": Temper(piece=0.26, whole=0.0),
    "sophisticated": Temper(piece=0.3, whole=0.02),
    "moderate": Temper(piece=0.3, whole=0.06),
    "weak": Temper(piece=0.4, whole=0.1),
    "plain": Temper(piece=0.3, whole=0.15),
}


def scorer(view: View) -> Said:
    """A first impression; or, where a critic has spoken since, a second thought."""
    objections = view.said_by("critic")
    if objections and view.last is not None:
        return _second_thought(view, view.last)
    quick = emphasised(_at_first_sight(view), view.call.index)
    qualities = mixture(quick, view.width)
    reasons = " ".join(map(told, strongest(quick))) or "There is nothing in the text to go by."
    return Said(f"{reasons} Taken together, that means {standing(qualities)}.", view.values(qualities))


def _at_first_sight(view: View) -> tuple[Piece, ...]:
    return tuple(p for p in view.pieces if p.quick) or view.pieces


def _second_thought(view: View, last: Qualities) -> Said:
    cited = view.cited(view.said_by("critic"))
    latest = view.cited(view.said_by("critic")[-1:])
    quick = _at_first_sight(view)
    before = view.values(last)
    if not latest:
        return Said(
            f"I find nothing countable in the objection, and stay with {spoken_values(before)}.", before
        )
    considered = [p for p in view.pieces if p in quick or p in cited]
    revised = mixture(considered, view.width)
    # A score that came from elsewhere may lie beyond the evidence; an objection never moves it the other way.
    follows = pull(revised, last) * sum(pull(p.qualities, last) for p in latest) >= 0
    values = view.values(revised) if follows else before
    point = f"I have looked at the Critic's point again. {told(latest[0])}"
    if values == before:
        rest = [p.name for p in strongest(p for p in considered if p not in latest)]
        kept = listed(rest or ["the rest"])
        return Said(
            f"{point} Beside {kept} that is too little, and I stay with {spoken_values(before)}.", before
        )
    change = f"from {spoken_values(before)} to {spoken_values(values)}"
    return Said(f"{point} That is fair, and takes me {change}.", values)


def critic(view: View) -> Said:
    """The strongest evidence, not named before, that the score is off; or the declaration that there is none."""
    whole = mixture(view.pieces, view.width)
    last = view.last if view.last is not None else whole
    temper = TEMPERS.get(view.call.persona, TEMPERS["strict"])
    fresh = [p for p in view.pieces if p not in view.cited(view.said_by("critic"))]
    off = [p for p in fresh if abs(pull(p.qualities, last)) >= temper.piece]
    if not off or abs(pull(whole, last)) < temper.whole:
        return _content(view)
    if view.call.persona == "sophisticated":
        return _doubt(view, max(off, key=lambda p: abs(pull(p.qualities, last))), last)
    return _objection(view, max(off, key=lambda p: p.weight * abs(pull(p.qualities, last))), last)


def _content(view: View) -> Said:
    prose = f"I have gone through all {len(view.pieces)} pieces of evidence. What is left does not speak against it."
    return Said(prose, no_issue=True)


def _objection(view: View, piece: Piece, last: Qualities) -> Said:
    claim = f"I find {spoken_values(view.values(last))} {_direction(piece, last)}."
    return Said(f"{claim} {told(piece)} I would rather defend {spoken_values(_figure(view, piece, last))}.")


def _doubt(view: View, piece: Piece, last: Qualities) -> Said:
    others = [p for p in view.pieces if p.name != piece.name]
    ground = min(others, key=lambda p: abs(pull(p.qualities, last)), default=piece)
    question = f"What does {spoken_values(view.values(last))} rest on, other than what agrees with it?"
    case = f"Suppose a reader knew nothing else: would the verdict stand, or is it {_direction(piece, last)}?"
    figure = f"Until that is answered I hold {spoken_values(_figure(view, piece, last))} to be as defensible."
    support = f"That {ground.words[0]} does not settle it. " if ground is not piece else ""
    return Said(f"{question} {support}{told(piece)} {case} {figure}")


def _direction(piece: Piece, last: Qualities) -> str:
    up = pull(piece.qualities, last) > 0
    if len(last) == 1:
        return "too low" if up else "too high"
    return f"too hard on answer {1 if up else 2}"


def _figure(view: View, piece: Piece, last: Qualities) -> tuple[float, ...]:
    """What the critic would say: half-way to the piece, and at least one step off."""
    scale = view.call.scale
    values = view.values(blend(last, piece.qualities, 0.5))
    if values != view.values(last):
        return values
    sign = 1 if pull(piece.qualities, last) > 0 else -1
    moved = [values[0] + sign * scale.step, *(v - sign * scale.step for v in values[1:])]
    return tuple(min(scale.high, max(scale.low, round(v, 6))) for v in moved)


def tie_breaker(view: View) -> Said:
    """All the evidence counts half; the scorer's last word and what the critic brought up, a quarter each."""
    whole = mixture(view.pieces, view.width)
    last = view.last if view.last is not None else whole
    cited = view.cited(view.said_by("critic"))
    attacked = mixture(cited, view.width) if cited else last
    settled = blend(whole, blend(last, attacked, 0.5), 0.5)
    values = view.values(settled)
    nearer = abs(pull(settled, last)) <= abs(pull(settled, attacked))
    side = "nearer to the Scorer" if nearer else "nearer to the Critic"
    reasons = " ".join(map(told, strongest(view.pieces)))
    return Said(f"I have read both sides and all the evidence. {reasons} On balance I stand {side}.", values)


def commander(view: View) -> Said:
    """The words that go with a brief or a hand-over."""
    spoken = [turn for turn in view.log if turn.agent != "commander"]
    subject = "the two answers" if view.width == 2 else f"the candidate's {view.call.aspect or 'quality'}"
    if not spoken:
        return Said(
            f"Scorer, please judge {subject} from the texts alone. Go step by step and give your reasons."
        )
    points = view.topics(spoken[-1:])
    basis = listed(points) if points else "what was said"
    if spoken[-1].agent.startswith("critic"):
        return Said(
            f"Scorer, the Critic objects and points to {basis}. Please weigh it step by step, and answer it."
        )
    return Said(
        f"Critic, the verdict on {subject} rests on {basis}. Please check step by step whether that holds."
    )
