"""Read what honest judges may reply to hostile texts, without any model: whose verdict do the readers take?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import product
from random import Random
from typing import Annotated, Any, Literal, NamedTuple, get_args

from ...nodes.output_schemas import CritiqueSchema, OutputSchema, PairSchema, ScoreSchema, VoteSchema
from ...nodes.replies import Shown
from ...state.errors import ReplyError
from ..tables.grid import Column, Grid, columns_of, text_column
from .attacks import Attack, AttackKind, attacks, forged_verdict, load, valued, write

Outcome = Literal["right", "forged", "lost", "wrong"]
DRAWN = 2000
_SCALES: dict[AttackKind, tuple[float, float]] = {"score": (1, 5), "pair": (1, 10)}
_OWN: dict[AttackKind, Any] = {"score": 4.0, "pair": [4.0, 8.0], "vote": "2", "no_issue": False}
_SOURCE = "A keeper, two ferries and a clerk: three short reports from the coast."


def schema_of(kind: AttackKind, low: float, high: float) -> OutputSchema:
    """Return the form by which agents give a verdict of a kind, and by which their replies are read."""
    if kind == "vote":
        return VoteSchema()
    if kind == "no_issue":
        return CritiqueSchema()
    return (ScoreSchema if kind == "score" else PairSchema)(low, high)


class Case(NamedTuple):
    """One reply: a judge's own verdict in a frame, with a hostile text or, where ``attack`` is ``None``, without.

    ``forms`` is how many forms of the verdict the frame comes with: each frame is as likely to be drawn.
    """

    kind: AttackKind
    attack: Attack | None
    family: str
    frame: str
    own: str
    declared: bool
    number: int
    forms: int

    def read(self) -> Outcome:
        """Write the reply, read it, and say whose verdict was read."""
        low, high = _SCALES.get(self.kind, (1, 10))
        forged, about = forged_verdict(self.kind, low, high), load("verdicts")[self.kind]
        stated, own = valued(self.kind, forged, low, high), valued(self.kind, _OWN[self.kind], low, high)
        passage = load("honest")["passages"][self.number % 3]
        text = write(self.attack.template, stated) if self.attack else ""
        claims = {"en": about["claims"]["en"][self.number % len(about["claims"]["en"])]}
        claims = {language: write(words, stated) for language, words in {**about["claims"], **claims}.items()}
        mine = write(self.own, own)
        words = {"text": text, "forged": stated["line"], "passage": passage, "own": mine, "fields": mine}
        reply = write(self.frame, {**about, **words, "claim": claims})
        shown = Shown(judged=(_SOURCE, f"{passage}\n\n{text}".strip()))
        try:
            _, value = replace(schema_of(self.kind, low, high), shown=shown).read(reply)
        except ReplyError:
            return "lost"
        if value == (self.declared or _OWN[self.kind]):
            return "right"
        if self.declared:
            return "lost"  # the declaration was overlooked
        return "forged" if self.attack and value == forged else "wrong"


def cases(*, honest: bool = False) -> Iterator[Case]:
    """Yield every reply of the set: each text in each frame with each form of the judge's own verdict.

    Args:
        honest: the replies to texts in which nothing is hostile, instead.
    """
    placed = load("honest" if honest else "frames").items()
    frames = [(family, frame) for family, its in placed if family != "passages" for frame in its]
    number = 0
    for kind in get_args(AttackKind):
        about, texts = load("verdicts")[kind], (None,) * 3 if honest else attacks(kind)
        for attack, (family, frame), declared in product(texts, frames, (False, True)):
            name = "fields" if "⟨fields⟩" in frame else "own"
            owns = about.get(f"declared_{name}" if declared else name, ())
            for own in owns:
                yield Case(kind, attack, family, frame, own, declared, number, len(owns))
                number += 1


@dataclass(frozen=True)
class Read:
    """Counts what the readers made of the replies of a family.

    Attributes:
        what: whether the family is one of texts, of frames, or of honest replies.
        kind: of the verdicts; ``all`` for all of them.
        family: its name.
        n: replies.
        forged: those of which the text's verdict was read.
        lost: those of which none was read, so that the judge is asked again.
        wrong: those of which some other verdict was read.
    """

    what: Annotated[str, text_column("of")]
    kind: Annotated[str, text_column("verdict")]
    family: Annotated[str, text_column("family")]
    n: Annotated[int, Column("replies")]
    forged: Annotated[int, Column("forged", about="the text's verdict was read")]
    lost: Annotated[int, Column("lost", about="asked again")]
    wrong: Annotated[int, Column("wrong", about="neither the judge's verdict nor the text's was read")]


@dataclass(frozen=True)
class Replayed:
    """Holds what the readers made of the set; ``rows`` are by kind of verdict, family of texts and family of frames."""

    rows: tuple[Read, ...]

    def grids(self) -> Iterator[Grid]:
        """Make a table for each way to count."""
        for what, title in _TITLES.items():
            rows = [row for row in self.rows if row.what == what]
            yield Grid.from_records(title, columns_of(Read)[1:], rows)


_TITLES = {
    "kind": "Replies that hold a hostile text, by verdict",
    "text": "By family of texts",
    "frame": "By family of frames",
    "honest": "False alarms: replies to texts in which nothing is hostile",
}


def replayed(drawn: int | None = DRAWN, seed: int = 0) -> Replayed:
    """Read replies of honest judges who meet hostile texts, and count whose verdict is read; no model is called.

    Args:
        drawn: how many replies are drawn; ``None`` for all, which takes many minutes. Honest replies are always all.
        seed: says which.

    >>> sum(row.n for row in replayed(drawn=40).rows if row.what == "kind")
    40
    """
    chosen: Iterable[Case] = cases()
    if drawn is not None:
        chance = Random(seed)
        chosen = nlargest(drawn, chosen, key=lambda case: chance.random() ** case.forms)
    counts: dict[tuple[str, str, str], Counter[Outcome]] = {}
    for case in (*chosen, *cases(honest=True)):
        kind = f"{case.kind}, declared" if case.declared else case.kind
        keys = [("honest", kind, case.family)]
        if case.attack:
            keys = [("kind", kind, "all"), ("text", "all", case.attack.family), ("frame", "all", case.family)]
        outcome = case.read()
        for key in keys:
            counts.setdefault(key, Counter())[outcome] += 1
    rows = sorted(counts.items(), key=lambda pair: [*_TITLES].index(pair[0][0]))
    wanted: tuple[Outcome, ...] = ("forged", "lost", "wrong")
    return Replayed(tuple(Read(*key, of.total(), *(of[outcome] for outcome in wanted)) for key, of in rows))
