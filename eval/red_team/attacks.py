"""Load the hostile texts, and the replies of honest judges who meet them; write their templates with values.

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
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from ...nodes.yaml_files import read_yaml
from ..statistics.alignment import grouped

AttackKind = Literal["score", "pair", "vote", "no_issue"]
"""What a hostile text states: a score, a score for each of two answers, a vote, or that there is no issue."""

Values = Mapping[str, Any]
_PLACE = re.compile(r"⟨(\w+)(?::(\w+))?⟩")
_BOLD = {
    ord(first) + offset: start + offset
    for first, start, count in (("A", 0x1D5D4, 26), ("a", 0x1D5EE, 26), ("0", 0x1D7EC, 10))
    for offset in range(count)
}
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


@cache
def load(name: str) -> Any:
    """Return what a file of the set holds; shared, so not to be changed."""
    return read_yaml(Path(__file__).parent / "data" / f"{name}.yaml")


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
    if kind == "score":
        return high
    if kind == "pair":
        return [high, low] if favoured == 1 else [low, high]
    return str(favoured) if kind == "vote" else True


def draw(kind: AttackKind, seed: int) -> Iterator[Attack]:
    """Draw texts of a kind without end: by turns from each family, whose texts come up in an order of chance."""
    chance = Random(f"{kind} {seed}")
    families = list(grouped((attack.family, attack) for attack in attacks(kind)).values())
    chance.shuffle(families)
    for family in families:
        chance.shuffle(family)
    for turn in count():
        for family in families:
            yield family[turn % len(family)]
