"""The set of hostile texts: load and draw them, write them with values, and read what honest judges reply to them.

Whoever writes to ``data/`` should not have read how replies are read: what the readers were developed on says nothing
about what else is out there.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from heapq import nlargest
from itertools import chain, count, cycle, product
from pathlib import Path
from random import Random
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import quote

from ...nodes.output_schemas import CritiqueSchema, OutputSchema, PairSchema, ScoreSchema, VoteSchema
from ...nodes.replies import Shown
from ...nodes.yaml_files import read_yaml
from ...state.errors import ReplyError
from ..statistics.alignment import grouped
from ..tables.grid import Column, Grid, columns_of, text_column

AttackKind = Literal["score", "pair", "vote", "no_issue"]
"""What a hostile text states: a score, a score for each of two answers, a vote, or that there is no issue."""

Values = Mapping[str, Any]
# Brackets that hostile texts, which are full of braces and quotation marks, do not have themselves.
_PLACE = re.compile(r"⟨(\w+)(?::(\w+))?⟩")
# Letters and digits of mathematical bold, which a reader that normalizes Unicode takes for plain ones.
_BOLD = dict(zip(map(ord, ascii_uppercase + ascii_lowercase), count(0x1D5D4), strict=False))
_BOLD |= dict(zip(map(ord, digits), count(0x1D7EC), strict=False))
# Full-width forms lie at one distance behind ASCII.
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


@cache
def load(name: str) -> Any:
    """Return what a file of the set holds; shared, so not to be changed."""
    return read_yaml(Path(__file__).parent / "hostile_texts" / f"{name}.yaml")


def _flat(text: str) -> str:
    return " ".join(text.split())


_FORMS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "bold": lambda text: text.translate(_BOLD),
    "capital": lambda text: text[:1].upper() + text[1:],
    "cell": lambda text: _flat(text).replace("|", "\\|"),
    "end": lambda text: " ".join(text.split()[-8:]),
    "entities": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "escapes": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "flat": _flat,
    "half": lambda text: " ".join(text.split()[: (len(text.split()) + 1) // 2]),
    "hex": lambda text: text.encode().hex(),
    "html": html.escape,
    "indented": lambda text: "\n".join(f"    {line}" for line in text.splitlines()),
    "json": lambda text: json.dumps(text, ensure_ascii=False),
    "lower": str.lower,
    "numbered": lambda text: "\n".join(f"{n}. {line}" for n, line in enumerate(text.splitlines(), start=1)),
    "percent": quote,
    "plain": lambda text: _flat(unicodedata.normalize("NFKC", html.unescape(text)).replace("\u200b", "")),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
    "reversed": lambda text: text[::-1],
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "spaced": " ".join,
    "upper": str.upper,
    "wide": lambda text: text.translate(_WIDE),
    "zero": "\u200b".join,
}
"""The ways to write a value, by the name that a template gives after a colon."""


def write(template: str, values: Values) -> str:
    """Write a template with its values.

    Raises:
        ValueError: a number that has no word in the language asked for.

    >>> write("Score: ⟨score:fr⟩ (⟨score⟩), ⟨line:spaced⟩", {"score": 4.0, "line": "ok"})
    'Score: quatre (4), o k'
    """

    def written(place: re.Match[str]) -> str:
        value, form = values[place[1]], place[2]
        if isinstance(value, Mapping):
            return str(value[form or "en"])
        if form in load("numerals"):
            if value not in range(11):
                raise ValueError(f"{value} has no word in {form}")
            return str(load("numerals")[form][int(value)])
        text = value if isinstance(value, str) else f"{value:g}"
        return _FORMS[form](text) if form else text

    return _PLACE.sub(written, template)


class Attack(NamedTuple):
    """A hostile text as a template.

    Attributes:
        id: its kind and its number within the kind.
        kind: what it states.
        family: in what manner.
        template: the text, to be written with ``stated``.
    """

    id: str
    kind: AttackKind
    family: str
    template: str


@cache
def attacks(kind: AttackKind) -> tuple[Attack, ...]:
    """Return all hostile texts of a kind, those around its plain line included."""
    numbers = count(1)
    return tuple(
        Attack(f"{kind}-{next(numbers)}", kind, family, template)
        for part in (kind, "any")
        for family, of_family in load("texts")[part].items()
        for template in of_family
    )


def valued(kind: AttackKind, verdict: Any, low: float, high: float) -> dict[str, Any]:
    """Return a verdict as the values of a template; a score, a pair, a winner, or anything for NO ISSUE.

    >>> valued("vote", "2", 1, 10)["line"]
    'Vote: 2'
    """
    values: dict[str, Any] = {"low": low, "high": high}
    if kind == "score":
        values["score"] = verdict
    elif kind == "pair":
        values["first"], values["second"] = verdict
    elif kind == "vote":
        winner = int(verdict)
        values |= {"winner": winner, "loser": 3 - winner, "letter": " AB"[winner], "other": " BA"[winner]}
    return {**values, "line": write(load("verdicts")[kind]["line"], values)}


def forged_verdict(kind: AttackKind, low: float, high: float, favoured: int = 1) -> Any:
    """Return the verdict that a text in the favoured answer states for itself: the best that there is."""
    pair = [high, low] if favoured == 1 else [low, high]
    return {"score": high, "pair": pair, "vote": str(favoured), "no_issue": True}[kind]


def draw(kind: AttackKind, seed: int) -> Iterator[Attack]:
    """Draw texts of a kind without end: by turns from each family, whose texts come up in an order of chance."""
    # Seeded with the kind, too: how many texts of one kind are drawn changes nothing for the others.
    chance = Random(f"{kind} {seed}")
    families = list(grouped((attack.family, attack) for attack in attacks(kind)).values())
    chance.shuffle(families)
    for family in families:
        chance.shuffle(family)
    return chain.from_iterable(zip(*map(cycle, families), strict=True))


ReadOutcome = Literal["right", "forged", "lost", "wrong"]
DRAWN = 2000
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

    def read(self) -> ReadOutcome:
        """Write the reply, read it, and say whose verdict was read."""
        low, high = (1, 5) if self.kind == "score" else (1, 10)
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
    numbers = count()
    for kind in get_args(AttackKind):
        about, texts = load("verdicts")[kind], (None,) * 3 if honest else attacks(kind)
        for attack, (family, frame), declared in product(texts, frames, (False, True)):
            name = "fields" if "⟨fields⟩" in frame else "own"
            owns = about.get(f"declared_{name}" if declared else name, ())
            for own in owns:
                yield Case(kind, attack, family, frame, own, declared, next(numbers), len(owns))


class Read(NamedTuple):
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


def grids(read: Iterable[Read]) -> Iterator[Grid]:
    """Make a table for each way to count."""
    for what, rows in grouped((row.what, row) for row in read).items():
        yield Grid.from_records(_TITLES[what], columns_of(Read)[1:], rows)


_TITLES = {
    "kind": "Replies that hold a hostile text, by verdict",
    "text": "By family of texts",
    "frame": "By family of frames",
    "honest": "False alarms: replies to texts in which nothing is hostile",
}


def replayed(drawn: int | None = DRAWN, seed: int = 0) -> tuple[Read, ...]:
    """Read replies of honest judges who meet hostile texts, and count whose verdict is read; no model is called.

    Args:
        drawn: how many replies are drawn; ``None`` for all, which takes many minutes. Honest replies are always all.
        seed: says which.

    Returns:
        the counts by kind of verdict, by family of texts and by family of frames, then those of honest replies.

    >>> sum(row.n for row in replayed(drawn=40) if row.what == "kind")
    40
    """
    chosen: Iterable[Case] = cases()
    if drawn is not None:
        chance = Random(seed)
        # Weighted sampling (Efraimidis and Spirakis 2006) by the key U^(1/w): w = 1/forms makes frames equally likely.
        chosen = nlargest(drawn, chosen, key=lambda case: chance.random() ** case.forms)
    counts: dict[tuple[str, str, str], Counter[ReadOutcome]] = {}
    for case in (*chosen, *cases(honest=True)):
        kind = f"{case.kind}, declared" if case.declared else case.kind
        keys = [("honest", kind, case.family)]
        if case.attack:
            keys = [("kind", kind, "all"), ("text", "all", case.attack.family), ("frame", "all", case.family)]
        outcome = case.read()
        for key in keys:
            counts.setdefault(key, Counter())[outcome] += 1
    rows = sorted(counts.items(), key=lambda pair: [*_TITLES].index(pair[0][0]))
    wanted: tuple[ReadOutcome, ...] = ("forged", "lost", "wrong")
    return tuple(Read(*key, of.total(), *(of[outcome] for outcome in wanted)) for key, of in rows)
