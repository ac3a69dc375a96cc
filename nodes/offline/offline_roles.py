"""The roles of the offline judge.

The scorer starts from a first impression. The critic looks at all evidence, and names the piece
that is farthest from the score and has not been named yet. The scorer then adds that piece to its
evidence. Its score moves according to the weight of the piece, which may be too little to change
the number.

All agents have the same evidence. Agents of one role emphasize different pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle, islice
from typing import Any, NamedTuple

from ..common.delimiters import Section
from .agent_view import (
    Response,
    View,
    between,
    distance,
    lead,
    listed,
    pull,
    sentence,
    sentences,
    shortened,
    spoken,
    topics,
)
from .features import WORDS, profile, weights_of


class Temper(NamedTuple):
    """A critic's temper.

    Attributes:
        piece: the distance of a single piece of evidence from the score before it objects, as a
            share of the scale.
        whole: the same distance for all of the evidence.
        opening: its objection, with the place ``{claim}``.
    """

    piece: float
    whole: float
    opening: str


PERSONAS: Mapping[str, Temper] = {
    "strict": Temper(0.26, 0.0, "I object: {claim}."),
    "sophisticated": Temper(
        0.3, 0.02, "Would a reader who knew only the following not say that {claim}?"
    ),
    "moderate": Temper(0.3, 0.06, "I have a reservation: {claim}."),
    "weak": Temper(0.4, 0.1, "I may be wrong, but it seems to me that {claim}."),
    "plain": Temper(0.3, 0.15, "I think that {claim}."),
}
"""The tempers of the critics' personas."""


def scorer(view: View) -> Response:
    """Score by a first impression, or revise the last score after a critic's objection."""
    objections = [turn for turn in view.log if turn.role == "critic"]
    if not objections or not view.last_values:
        return view.verdict(view.emphasised(view.first_impression))
    last = view.last
    before = view.values(view.last)
    points = [piece for piece in view.evidence if piece.name in topics(objections[-1:])]
    if not points:
        nothing = "The objection names nothing that I can count, so I stay with"
        return Response(f"{nothing} {spoken(before)}.", before)
    considered = {*view.first_impression, *view.raised("critic")}
    revised = view.mean(piece for piece in view.evidence if piece in considered)
    # A score from elsewhere may lie beyond the evidence. An objection never moves it in the
    # opposite direction: both factors have the same sign if the revised score lies on the side of
    # the objection.
    follows = pull(revised, last) * sum(pull(piece.qualities, last) for piece in points) >= 0
    values = view.values(revised) if follows else before
    point = f"I have looked at the Critic's point again. {sentence(points[0])}"
    if values == before:
        stay = f"Next to the other evidence it weighs too little to change the score, so I stay with {spoken(before)}."
        return Response(f"{point} {stay}", before)
    moved = f"That is a fair point, and I move from {spoken(before)} to {spoken(values)}."
    return Response(f"{point} {moved}", values)


def critic(view: View) -> Response:
    """Object with the strongest evidence not named before, or declare that there is no issue."""
    # A custom persona appears in the text, and is as strict as the strictest known persona.
    opening = f"Speaking as {shortened(view.persona, 8)}, I find that {{claim}}."
    temper = PERSONAS.get(view.persona or "strict") or PERSONAS["strict"]._replace(opening=opening)
    last = view.last
    before = view.raised("critic")
    off = [
        p for p in view.evidence if p not in before and abs(pull(p.qualities, last)) >= temper.piece
    ]
    if not off or abs(pull(view.mean(view.evidence), last)) < temper.whole:
        how_many = f"all {len(view.evidence)} features of the text" if view.evidence else "the text"
        return Response(
            f"I have checked {how_many} and see no reason to change the verdict.", no_issue=True
        )
    piece = max(off, key=lambda p: p.weight * abs(pull(p.qualities, last)))
    up = pull(piece.qualities, last) > 0
    values = view.values(last)
    preferred = view.values(between(last, piece.qualities))
    if preferred == values:
        # Move by at least one step. In a pair, one score goes up and the other down, so that their
        # difference changes.
        preferred = view.values(last, (1, -1) if up else (-1, 1))
    claim = f"a score of {spoken(values)} is too {'low' if up else 'high'}"
    if view.compares:
        claim = f"scores of {spoken(values)} are too hard on answer {1 if up else 2}"
    objection = f"{temper.opening.replace('{claim}', claim)} {sentence(piece)}"
    return Response(f"{objection} I would give {spoken(preferred)}.")


def tie_breaker(view: View) -> Response:
    """Settle the score: 1/2 all evidence, 1/4 the last score, 1/4 the critic's points."""
    last = view.last
    cited = view.raised("critic")
    attacked = view.mean(cited) if cited else last
    settled = between(view.mean(view.evidence), between(last, attacked))
    side = "Scorer" if abs(pull(settled, last)) <= abs(pull(settled, attacked)) else "Critic"
    weighed = f"I have weighed both sides. {view.reasons(view.evidence)}"
    return Response(f"{weighed} On balance I am closer to the {side}.", view.values(settled))


def referee(view: View) -> Response:
    """Score by the first impression and the others' points, with the referee's own emphasis."""
    names = topics(turn for turn in view.log if turn.speaker != view.agent)
    heard = [piece for piece in view.evidence if piece.name in names]
    opening = f"Speaking as {shortened(view.persona, 8)}, I note this. " if view.persona else ""
    opening += (
        f"I have considered what was said on {listed([p.name for p in heard])}. " if heard else ""
    )
    seen = view.emphasised(p for p in view.evidence if p in heard or p in view.first_impression)
    # Points that have not been mentioned come first, so that the discussion continues.
    fresh = [
        piece for piece in view.emphasised(view.evidence) if piece.name not in topics(view.log)
    ]
    return view.verdict(seen, opening, view.reasons(fresh or seen))


def judge(view: View) -> Response:
    """Judge by all evidence, with double weight for the advocates' points, or give feedback."""
    raised = view.raised("advocate", "aggregator")
    if view.form == "text":
        rest = sorted(
            (p for p in view.evidence if p not in raised), key=lambda p: -distance(p.qualities)
        )
        names = listed([piece.name for piece in rest[:3]]) or "all of this"
        subject = "how the answers differ" if view.compares else "what the score rests on"
        return Response(f"Both sides should say more clearly {subject}, above all in {names}.")
    return view.verdict(
        [p._replace(weight=2 * p.weight) if p in raised else p for p in view.evidence]
    )


def unfamiliar(view: View) -> Response:
    """Answer for jurors and unknown roles by the requested form.

    The answer is an objection or a list of steps if the form requests it, otherwise the conclusion
    from all evidence with the agent's own emphasis.
    """
    if view.form in ("critique", "steps"):
        return critic(view) if view.form == "critique" else planner(view)
    return view.verdict(view.emphasised(view.evidence))


def planner(view: View) -> Response:
    """List the evaluation steps: the aspect's features, those of a first impression first."""
    if view.form == "personas":
        concerns = islice(cycle(weights_of(view.aspect)), view.wanted)
        people = (
            f"{n}. Reader {n}: You look at the {name} first." for n, name in enumerate(concerns, 1)
        )
        return Response("\n".join(people))
    # The table lists an aspect's features in this order.
    steps = [f"Look at the {name}." for name in weights_of(view.aspect)]
    steps.append("Weigh all of it, and settle on a number on the scale.")
    return Response("\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1)))


def advocate(view: View) -> Response:
    """Argue for a side with its strongest points.

    An advocate makes two new points in 80 words, and an aggregator the team's points in 150.
    """
    points = sorted(
        view.evidence, key=lambda piece: -piece.weight * lead(piece.qualities, view.side)
    )
    side = f"answer {view.side}" if view.compares else f"a {('high', 'low')[view.side - 1]} score"
    if view.role == "aggregator":
        made = [piece for piece in points if piece in view.raised("advocate")] or points
        return Response(shortened(f"This is the case for {side}. {sentences(made[:4])}", 150))
    before = topics(turn for turn in view.log if turn.speaker == view.agent)
    fresh = [piece for piece in points if piece.name not in before] or points
    # Each advocate of a team starts at another point, so that their points differ.
    start = max(view.index - 1, 0) % max(len(fresh), 1)
    chosen = sentences((fresh[start:] + fresh[:start])[:2])
    return Response(shortened(f"I speak for {side}. {chosen}", 80))


def commander(view: View) -> Response:
    """Write the Commander's message: a brief for the first score, or text with a turn."""
    turns = [turn for turn in view.log if turn.role != "commander"]
    subject = (
        "the two answers" if view.compares else f"the {view.aspect or 'quality'} of the candidate"
    )
    basis = listed(topics(turns[-1:])) or "what was said"
    if not turns:
        return Response(
            f"Scorer, please judge {subject} from the texts alone, step by step, and give your reasons."
        )
    if turns[-1].role == "critic":
        return Response(
            f"Scorer, the Critic objects and points to {basis}. Please weigh this step by step and reply."
        )
    return Response(
        f"Critic, the verdict on {subject} rests on {basis}. Please check step by step whether that holds."
    )


def summarizer(view: View) -> Response:
    """Sum up the points so far and the latest scores, in at most 50 words."""
    subjects = listed(topics(view.log)[:6]) or "nothing that can be counted"
    latest = f" The latest scores are {spoken(view.last_values)}." if view.last_values else ""
    return Response(f"So far the discussion has been about {subjects}.{latest}")


_REPEATED = 0.85
_TAKEN_UP = 0.2
"""The shares of a speech's content words for a repetition, and for taking up the last speech."""


def auditor(view: View) -> Response:
    """Label a speech by its words: a conceding phrase, repeated words, or new ones."""
    own = profile(view.speech).stem_set
    before = [profile(turn.text).stem_set for turn in view.log]
    known = len(own & frozenset().union(*before)) if own else 0
    gives_in = before and any(phrase in view.speech.lower() for phrase in WORDS["gives_in"])
    kind = (
        "concession"
        if gives_in
        else "repetition"
        if own and known / len(own) >= _REPEATED
        else "argument"
    )
    answers = bool(before) and len(own & before[-1]) >= _TAKEN_UP * min(
        len(own), len(before[-1]) or 1
    )
    behaviour = {"concession": "consensus", "repetition": "maintenance"}.get(kind, "alternative")
    return Response("", kind=kind, behaviour=behaviour if before else "opening", answers=answers)


def committer(view: View) -> Response:
    """Commit to the beginning of the question or source, since it knows nothing else."""
    return Response(f"What I can go by is this: {shortened(view.question, 60)}")


_MET = 0.5
"""The share of a criterion's content words that one sentence of the candidate must have."""


def checker(view: View) -> Response:
    """Answer each criterion by the sentence of the candidate that shares most words with it."""
    spoken_sentences = [part.strip() for part in re.split(r"(?<=[.!?])\s+|\n", view.candidate)]
    checks = []
    words = []
    for number, criterion in enumerate(view.criteria, start=1):
        wanted = profile(criterion).stem_set
        shares = {
            said: len(wanted & profile(said).stem_set) / len(wanted) if wanted else 0.0
            for said in spoken_sentences
        }
        best = max(shares, key=shares.__getitem__)
        met = shares[best] >= _MET
        checks.append(("yes" if met else "no", best if met else ""))
        share = f"{shares[best]:.0%} of its content words"
        words.append(f"Criterion {number}: one sentence of the candidate has {share}.")
    return Response(" ".join(words), checks=tuple(checks))


_NAMED = (
    scorer,
    critic,
    tie_breaker,
    commander,
    referee,
    judge,
    advocate,
    summarizer,
    planner,
    auditor,
    checker,
    committer,
)
ROLES: dict[str, Callable[[View], Response]] = {role.__name__: role for role in _NAMED}
ROLES["aggregator"] = advocate
"""The function of each role. Roles that are not listed answer as ``unfamiliar``.

To add a role, write a function from a ``View`` to a ``Response``, name it after the role, and list
it here.
"""


def respond(metadata: Mapping[str, Any], sections: Iterable[Section]) -> tuple[Response, str]:
    """Return the answer of a call's role, and the form in which to write it.

    Raises:
        ValueError: the call has no role, or no fenced text to judge.
    """
    view = View(metadata, sections)
    return ROLES.get(view.role, unfamiliar)(view), view.form
