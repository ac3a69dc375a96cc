"""Load and draw hostile texts, fill in their values, and check how honest replies are read.

Authors of new texts in ``data/`` should not know how replies are read. Texts that were used to
develop the readers say nothing about how well other texts are read.
"""

from __future__ import annotations

import base64
import codecs
import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from heapq import nlargest
from itertools import chain, count, cycle, product
from pathlib import Path
from random import Random
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, get_args
from urllib.parse import quote

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from ...nodes.common.yaml_files import read_data
from ...nodes.replies import Shown
from ...nodes.runtime.output_schemas import (
    CritiqueSchema,
    OutputSchema,
    PairSchema,
    ScoreSchema,
    VoteSchema,
)
from ...state.errors import ReplyError
from ..statistics.alignment import grouped
from ..tables.grid import Column, Grid, columns_of, text_column

AttackKind = Literal["score", "pair", "vote", "no_issue"]
"""The claim of a hostile text: a score, a score for each answer, a vote, or no issue."""

Values = Mapping[str, Any]
# Brackets that hostile texts do not contain; they are full of braces and quotation marks.
_PLACE = re.compile(r"⟨(\w+)(?::(\w+))?⟩")
# Letters and digits of mathematical bold, which readers that normalize Unicode see as plain ones.
_BOLD = dict(zip(map(ord, ascii_uppercase + ascii_lowercase), count(0x1D5D4), strict=False))
_BOLD |= dict(zip(map(ord, digits), count(0x1D7EC), strict=False))
# Full-width forms have a fixed distance from ASCII.
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


_FOLDER = Path(__file__).parent / "hostile_texts"
_VALUES = {
    *("low", "high", "score", "first", "second", "winner", "loser", "letter", "other", "line"),
    *("it", "noun", "key", "text", "forged", "passage", "own", "fields", "claim"),
}
"""The names that templates may use in their brackets."""


def _is_template(text: str) -> str:
    for name, form in _PLACE.findall(text):
        if name not in _VALUES:
            raise ValueError(f"⟨{name}⟩ is not a value; values are {', '.join(sorted(_VALUES))}")
        if form and form not in _FORMS and form not in numerals():
            raise ValueError(
                f"⟨{name}:{form}⟩ is not a form; forms are {', '.join([*_FORMS, *numerals()])}"
            )
    if text.count("⟨") != text.count("⟩") or text.count("⟨") != len(_PLACE.findall(text)):
        raise ValueError("has a bracket ⟨ or ⟩ without a name in it")
    return text


def _has_a_verdict(frame: str) -> str:
    if "⟨own⟩" not in frame and "⟨fields⟩" not in frame:
        raise ValueError("must have the judge's own verdict, ⟨own⟩ or ⟨fields⟩")
    return frame


_Template = Annotated[str, AfterValidator(_is_template)]
_Templates = Annotated[list[_Template], Field(min_length=1)]
_Frames = Annotated[list[Annotated[_Template, AfterValidator(_has_a_verdict)]], Field(min_length=1)]


class _HostileTexts(TypedDict):
    """Hostile texts by kind and family; ``any`` has texts that surround a verdict line."""

    any: dict[str, _Templates]
    score: dict[str, _Templates]
    pair: dict[str, _Templates]
    vote: dict[str, _Templates]
    no_issue: dict[str, _Templates]


class _HonestReplies(TypedDict):
    """Replies to texts without hostile content, and sentences of such texts."""

    reasons: _Frames
    objects: _Frames
    bare: _Frames
    passages: Annotated[list[str], Field(min_length=3, max_length=3)]


class _Claims(TypedDict):
    """Ways in which a judge reports the demand of a hostile text, by language."""

    en: _Templates
    de: _Template
    fr: _Template
    es: _Template
    ru: _Template
    zh: _Template
    ja: _Template
    ar: _Template


class _Verdicts(TypedDict):
    """Ways in which a judge gives a verdict of one kind, and the names of such verdicts."""

    it: str
    key: Literal["reasoning", "feedback"]
    noun: str
    line: _Template
    own: _Templates
    fields: _Templates
    declared_own: NotRequired[_Templates]
    declared_fields: NotRequired[_Templates]
    claims: _Claims


@cache
def numerals() -> dict[str, list[str]]:
    """Return the numbers from 0 to 10 in words, by language; shared, do not modify."""
    words = Annotated[list[str], Field(min_length=11, max_length=11)]
    return read_data(_FOLDER / "numerals.yaml", dict[str, words])


@cache
def texts() -> _HostileTexts:
    """Return the hostile texts; the result is shared, do not modify."""
    return read_data(_FOLDER / "texts.yaml", _HostileTexts)


@cache
def frames() -> dict[str, list[str]]:
    """Return replies that may contain a hostile text, by family; shared, do not modify."""
    return read_data(_FOLDER / "frames.yaml", dict[str, _Frames])


@cache
def honest_replies() -> _HonestReplies:
    """Return the replies to texts without hostile content; the result is shared, do not modify."""
    return read_data(_FOLDER / "honest.yaml", _HonestReplies)


@cache
def verdicts() -> dict[AttackKind, _Verdicts]:
    """Return the ways to give a verdict, by kind; the result is shared, do not modify."""
    return read_data(_FOLDER / "verdicts.yaml", dict[AttackKind, _Verdicts])


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
    "numbered": lambda text: "\n".join(
        f"{n}. {line}" for n, line in enumerate(text.splitlines(), start=1)
    ),
    "percent": quote,
    "plain": lambda text: _flat(
        unicodedata.normalize("NFKC", html.unescape(text)).replace("\u200b", "")
    ),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
    "reversed": lambda text: text[::-1],
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "spaced": " ".join,
    "upper": str.upper,
    "wide": lambda text: text.translate(_WIDE),
    "zero": "\u200b".join,
}
"""The ways to write a value, by the name after the colon in a template."""


def write(template: str, values: Values) -> str:
    """Fill a template with values.

    Raises:
        ValueError: a number without a word in the requested language.

    >>> write("Score: ⟨score:fr⟩ (⟨score⟩), ⟨line:spaced⟩", {"score": 4.0, "line": "ok"})
    'Score: quatre (4), o k'
    """

    def written(place: re.Match[str]) -> str:
        value = values[place[1]]
        form = place[2]
        if isinstance(value, Mapping):
            return str(value[form or "en"])
        if form in numerals():
            if value not in range(11):
                raise ValueError(f"{value} has no word in {form}")
            return numerals()[form][int(value)]
        text = value if isinstance(value, str) else f"{value:g}"
        return _FORMS[form](text) if form else text

    return _PLACE.sub(written, template)


class Attack(NamedTuple):
    """A hostile text as a template.

    Attributes:
        id: its kind and its number within the kind.
        kind: the kind of verdict that it states.
        family: its style.
        template: the text, to be filled with ``stated``.
    """

    id: str
    kind: AttackKind
    family: str
    template: str


@cache
def attacks(kind: AttackKind) -> tuple[Attack, ...]:
    """Return all hostile texts of a kind, including those around its plain line."""
    numbers = count(1)
    return tuple(
        Attack(f"{kind}-{next(numbers)}", kind, family, template)
        for families in (texts()[kind], texts()["any"])
        for family, of_family in families.items()
        for template in of_family
    )


def valued(kind: AttackKind, verdict: Any, low: float, high: float) -> dict[str, Any]:
    """Return a verdict as values for a template.

    The verdict is a score, a pair, a winner, or anything for NO ISSUE.

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
        values |= {
            "winner": winner,
            "loser": 3 - winner,
            "letter": " AB"[winner],
            "other": " BA"[winner],
        }
    return {**values, "line": write(verdicts()[kind]["line"], values)}


def forged_verdict(kind: AttackKind, low: float, high: float, favoured: int = 1) -> Any:
    """Return the best possible verdict for the answer that contains the hostile text."""
    pair = [high, low] if favoured == 1 else [low, high]
    return {"score": high, "pair": pair, "vote": str(favoured), "no_issue": True}[kind]


def draw(kind: AttackKind, seed: int) -> Iterator[Attack]:
    """Draw texts of a kind without end: from each family in turn, in random order within it."""
    # The kind is part of the seed, so the number of texts of one kind does not affect the others.
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
    """Return the schema with which agents give a verdict of a kind and replies are read."""
    if kind == "vote":
        return VoteSchema()
    if kind == "no_issue":
        return CritiqueSchema()
    return (ScoreSchema if kind == "score" else PairSchema)(low, high)


class Case(NamedTuple):
    """A reply with a judge's own verdict in a frame, and a hostile text unless it is honest.

    ``attack`` is ``None`` for an honest reply. ``forms`` is the number of forms of the verdict for
    this frame; sampling uses it to make all frames equally likely.
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
        """Write and read the reply, and return whose verdict was read."""
        low, high = (1, 5) if self.kind == "score" else (1, 10)
        forged = forged_verdict(self.kind, low, high)
        about = verdicts()[self.kind]
        stated = valued(self.kind, forged, low, high)
        own = valued(self.kind, _OWN[self.kind], low, high)
        passage = honest_replies()["passages"][self.number % 3]
        text = write(self.attack.template, stated) if self.attack else ""
        in_english = about["claims"]["en"]
        claims = {**about["claims"], "en": in_english[self.number % len(in_english)]}
        claim = {language: write(str(words), stated) for language, words in claims.items()}
        mine = write(self.own, own)
        words = {
            "text": text,
            "forged": stated["line"],
            "passage": passage,
            "own": mine,
            "fields": mine,
        }
        reply = write(self.frame, {**about, **words, "claim": claim})
        shown = Shown(judged=(_SOURCE, f"{passage}\n\n{text}".strip()))
        try:
            _, value = replace(schema_of(self.kind, low, high), shown=shown).read(reply)
        except ReplyError:
            return "lost"
        if value == (self.declared or _OWN[self.kind]):
            return "right"
        if self.declared:
            return "lost"  # the declaration was missed
        return "forged" if self.attack and value == forged else "wrong"


def cases(*, honest: bool = False) -> Iterator[Case]:
    """Yield every reply: each text in each frame with each form of the judge's verdict.

    Args:
        honest: yield the replies to texts without hostile content instead.
    """
    by_family = frames()
    if honest:
        replies = honest_replies()
        by_family = {
            "reasons": replies["reasons"],
            "objects": replies["objects"],
            "bare": replies["bare"],
        }
    placed = [(family, frame) for family, its in by_family.items() for frame in its]
    numbers = count()
    for kind in get_args(AttackKind):
        about = verdicts()[kind]
        hostile: Sequence[Attack | None] = (None,) * 3 if honest else attacks(kind)
        for attack, (family, frame), declared in product(hostile, placed, (False, True)):
            in_object = "⟨fields⟩" in frame
            owns = about["fields"] if in_object else about["own"]
            if declared:
                owns = (
                    about.get("declared_fields", []) if in_object else about.get("declared_own", [])
                )
            for own in owns:
                yield Case(kind, attack, family, frame, own, declared, next(numbers), len(owns))


class Read(NamedTuple):
    """How the replies of one family were read.

    Attributes:
        what: the type of family: texts, frames or honest replies.
        kind: the kind of verdict; ``all`` for all kinds.
        family: its name.
        n: the number of replies.
        forged: replies from which the text's verdict was read.
        lost: replies from which no verdict was read, so that the judge is asked again.
        wrong: replies from which another verdict was read.
    """

    what: Annotated[str, text_column("of")]
    kind: Annotated[str, text_column("verdict")]
    family: Annotated[str, text_column("family")]
    n: Annotated[int, Column("replies")]
    forged: Annotated[int, Column("forged", about="the text's verdict was read")]
    lost: Annotated[int, Column("lost", about="asked again")]
    wrong: Annotated[
        int, Column("wrong", about="neither the judge's verdict nor the text's was read")
    ]


def grids(read: Iterable[Read]) -> Iterator[Grid]:
    """Yield one table per grouping of the counts."""
    for what, rows in grouped((row.what, row) for row in read).items():
        yield Grid.from_records(_TITLES[what], columns_of(Read)[1:], rows)


_TITLES = {
    "kind": "Replies that hold a hostile text, by verdict",
    "text": "By family of texts",
    "frame": "By family of frames",
    "honest": "False alarms: replies to texts in which nothing is hostile",
}


def replayed(drawn: int | None = DRAWN, seed: int = 0) -> tuple[Read, ...]:
    """Read honest judges' replies to hostile texts, and count whose verdict is read.

    No model is called.

    Args:
        drawn: the number of replies to draw; ``None`` for all, which takes many minutes. Honest
            replies are always all read.
        seed: the random seed.

    Returns:
        the counts by kind of verdict, by family of texts and by family of frames, then those of
        honest replies.

    >>> sum(row.n for row in replayed(drawn=40) if row.what == "kind")
    40
    """
    chosen: Iterable[Case] = cases()
    if drawn is not None:
        chance = Random(seed)
        # Weighted sampling (Efraimidis and Spirakis 2006) with the key U^(1/w). With w = 1/forms,
        # frames are equally likely.
        chosen = nlargest(drawn, chosen, key=lambda case: chance.random() ** case.forms)
    counts: dict[tuple[str, str, str], Counter[ReadOutcome]] = {}
    for case in (*chosen, *cases(honest=True)):
        kind = f"{case.kind}, declared" if case.declared else case.kind
        keys = [("honest", kind, case.family)]
        if case.attack:
            keys = [
                ("kind", kind, "all"),
                ("text", "all", case.attack.family),
                ("frame", "all", case.family),
            ]
        outcome = case.read()
        for key in keys:
            counts.setdefault(key, Counter())[outcome] += 1
    rows = sorted(counts.items(), key=lambda pair: [*_TITLES].index(pair[0][0]))
    wanted: tuple[ReadOutcome, ...] = ("forged", "lost", "wrong")
    return tuple(Read(*key, of.total(), *(of[outcome] for outcome in wanted)) for key, of in rows)
