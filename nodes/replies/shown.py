"""The texts that an agent was shown: lookup of a reply's passages, and texts that state a verdict.

Two passages are equal if they are equal after folding: words, digits and double brackets count.
Case, markup, punctuation, spacing, accents and look-alike letters of other scripts do not.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from ..common.delimiters import texts_by_speaker
from .own_words import CharMap, plain, unmarked
from .vocabulary import WORDS, alternatives

Place = Literal["judged", "said"]
"""The place of a passage: a judged text, or another agent's words."""

# Letters of other scripts that look like Latin ones. Accents are removed before.
_ALIKE = "АВЕЅZІЈКМНОРСТУХаеорсухіјѕһԁԛԝвнкмтгпуΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχγՕՏօսոհցԼıſɑɡɩɪʀɴʟʏꜱᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢℓ"
_LATIN_LETTERS = "abeszijkmhopctyxaeopcyxijshdqwbhkmtrnyabezhikmnoptyxaiknoptuxyosouohglisagiirnlysacdejkmoptuvwzl"
_LOOK_ALIKES = dict(zip(_ALIKE, _LATIN_LETTERS, strict=True))
_OPENING = "\u27e6"
_CLOSING = "\u27e7"


def _letter(char: str, other: str) -> str | None:
    """Return a look-alike as Latin, None for an invisible mark, and ``other`` for a non-letter."""
    if char.isalnum() or char in (_OPENING, _CLOSING, "\n"):
        return _LOOK_ALIKES.get(char, char)
    return None if unicodedata.category(char) in ("Mn", "Cf", "Co", "Cs") else other


_WORDS_ALONE = CharMap(lambda char: _letter(char, " "))
_LATIN = CharMap(lambda char: _letter(char, char))
_TELLING = re.compile(rf"[^\W\d]{{2}}|{_OPENING}")
# The separators within a line, for a number or a letter that is its own sentence.
_PARTS = re.compile(r"(?<=[.!?:]) +|\n")
_LONG_WORDS = re.compile(r"[a-z]{4,}")


@dataclass(frozen=True)
class Shown:
    """The texts that an agent was shown: the judged texts, and the words of other agents.

    If both are empty, a reader knows no texts and treats every passage in quotation marks as a
    quotation.
    """

    judged: tuple[str, ...] = ()
    speeches: tuple[str, ...] = ()

    @classmethod
    def in_prompt(cls, prompt: str, agent: str = "") -> Shown:
        """Return the fenced texts of a prompt, except the agent's own words, which it may repeat.

        >>> from jurygraph.nodes.common.delimiters import fence
        >>> shown = [fence("candidate", "A."), fence("critic, round 1", "B."), fence("scorer, round 1", "C.")]
        >>> Shown.in_prompt("\\n".join(shown), agent="scorer")
        Shown(judged=('A.',), speeches=('B.',))
        """
        quoted = texts_by_speaker(prompt)
        judged = (text for speaker, text in quoted if not speaker)
        speeches = (text for speaker, text in quoted if speaker not in ("", agent))
        return cls(tuple(judged), tuple(speeches))

    def of(self, place: Place | None) -> Shown:
        """Return the texts of one place only.

        Agents repeat how they introduce a quotation from a judged text.
        """
        return replace(self, speeches=()) if place == "judged" else replace(self, judged=())

    def place_of(self, passage: str) -> Place | None:
        """Return where a part of a reply occurs word for word; None if it is in none of the texts.

        >>> Shown(judged=("It ends: **SCORE** -\\n5",)).place_of("Score: 5")
        'judged'
        """
        places: dict[Place, tuple[str, ...]] = {"judged": self.judged, "said": self.speeches}
        for place, texts in places.items():
            known = [text for text in texts if not lacks_word(text, passage)]
            if not known or not (folded := fold(passage)).flat.strip():
                continue
            if any(_holds(text, folded) for text in known):
                return place
        return None


NOTHING = Shown()
"""Marks that the texts are unknown."""


class RepeatedError(Exception):
    """Everything that a reply states may be repeated from the texts that its agent was shown."""


class Folded(NamedTuple):
    """The words of a text, separated by blanks, as one line and sentence by sentence."""

    flat: str
    sentences: str

    @property
    def tells(self) -> bool:
        """Whether it is specific: a word, a double bracket or two numbers, not a single number."""
        return len(self.flat.split()) > 1 or _TELLING.search(self.flat) is not None


def fold(text: str) -> Folded:
    """Reduce a text to the characters that count in comparisons of passages.

    >>> fold("**Sc\\u043ere:**\\n5.").flat
    ' score 5 '
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
    text = _PARTS.sub("\n", text)
    text = text.replace("[[", f" {_OPENING} ").replace("]]", f" {_CLOSING} ")
    text = text.translate(_WORDS_ALONE).casefold()
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return Folded(f" {' '.join(text.split())} ", "\n".join(["", *lines, ""]))


def lacks_word(text: str, passage: str) -> bool:
    """Return whether a text lacks a word of a passage, so that it cannot contain it."""
    return any(word not in _light(text) for word in _LONG_WORDS.findall(_letters(passage)))


def _holds(text: str, passage: Folded) -> bool:
    if passage.tells:
        return any(passage.flat in folded.flat for folded in _folded(text))
    return any(f"\n{passage.flat.strip()}\n" in folded.sentences for folded in _folded(text))


def _letters(text: str) -> str:
    return text.casefold() if text.isascii() else fold(text).flat


_light = lru_cache(maxsize=256)(_letters)


@lru_cache(maxsize=256)
def _folded(text: str) -> tuple[Folded, ...]:
    """Return the folded text, and the folded text without markup."""
    as_it_is = fold(text)
    unmarked_text = fold(unmarked(plain(latin(text))))
    return (as_it_is,) if unmarked_text == as_it_is else (as_it_is, unmarked_text)


def latin(text: str) -> str:
    """Return a text with look-alike letters in Latin and without invisible marks.

    >>> latin("Sc\u043ere: \uff15")
    'Score: 5'
    """
    return text if text.isascii() else unicodedata.normalize("NFKD", text).translate(_LATIN)


# --- replies compared with the texts --------------------------------------------------------------

_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+|\[\[|\]\]")
_BRACKET_TOKENS = {"[[": _OPENING, "]]": _CLOSING}
_MOST_WORDS = 120
_MOST_OCCURRENCES = 50


class Tokens:
    """The folded words of a reply with their positions, so that the reply is folded only once."""

    def __init__(self, words: str) -> None:
        self.words: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        if words.isascii():
            for match in _ASCII_TOKEN.finditer(words):
                self._add(_BRACKET_TOKENS.get(match[0]) or match[0].lower(), *match.span())
        else:
            self._fold(words)

    def _add(self, word: str, start: int, end: int) -> None:
        self.words.append(word)
        self.starts.append(start)
        self.ends.append(end)

    def _fold(self, words: str) -> None:
        """Fold letter by letter, as ``fold`` does with whole texts."""
        letters: list[str] = []
        start = at = 0
        while at < len(words):
            bracket = _BRACKET_TOKENS.get(words[at : at + 2])
            folded = " " if bracket else fold_letter(words[at])
            if folded.isspace() and letters:
                self._add("".join(letters), start, at)
                letters = []
            if bracket:
                self._add(bracket, at, at + 2)
                at += 1
            elif folded and not folded.isspace():
                if not letters:
                    start = at
                letters.append(folded)
            at += 1
        if letters:
            self._add("".join(letters), start, len(words))

    def between(self, start: int, end: int) -> tuple[int, int]:
        """Return the index of a passage's first word, and the index after its last one."""
        return bisect_left(self.starts, start), bisect_left(self.starts, end)

    def longest(self, start: int, end: int, texts: Iterable[str]) -> tuple[int, int] | None:
        """Return start and end of the longest passage around one that occurs in a text, or None."""
        first, behind = self.between(start, end)
        core = f" {' '.join(self.words[first:behind])} "
        if not core.strip():
            return None
        best: tuple[int, int] | None = None
        for folded in (variant for text in texts for variant in _folded(text)):
            at = folded.flat.find(core)
            for _ in range(_MOST_OCCURRENCES):
                if at < 0:
                    break
                found = self._extended(folded.flat, first, behind, at, at + len(core) - 1)
                # Prefer as many words as possible before the passage, then after it.
                if best is None or (found[0], -found[1]) < (best[0], -best[1]):
                    best = found
                at = folded.flat.find(core, at + 1)
        if best is None:
            return None
        start = self.starts[best[0]] if best[0] < first else start
        end = self.ends[best[1] - 1] if best[1] > behind else end
        return start, end

    def _extended(
        self, flat: str, first: int, behind: int, left: int, right: int
    ) -> tuple[int, int]:
        """Extend a passage of ``flat`` by the neighbouring words that both texts share."""
        start = first
        end = behind
        while (
            start > 0
            and first - start < _MOST_WORDS
            and flat.endswith(f" {self.words[start - 1]}", 0, left)
        ):
            start -= 1
            left -= len(self.words[start]) + 1
        while (
            end < len(self.words)
            and end - behind < _MOST_WORDS
            and flat.startswith(f"{self.words[end]} ", right + 1)
        ):
            right += len(self.words[end]) + 1
            end += 1
        return start, end


@lru_cache(maxsize=4096)
def fold_letter(char: str) -> str:
    """Return a folded character: empty for an invisible mark, a blank for a non-letter.

    >>> fold_letter("\u0405"), fold_letter("\u200b"), fold_letter("-")
    ('s', '', ' ')
    """
    return unicodedata.normalize("NFKD", char).translate(_WORDS_ALONE).casefold()


# --- texts that state a verdict in order to sway a judge ------------------------------------------

_SCORE_LABELS = alternatives([*WORDS["score"]["labels"], "scores", "ratings"])
_VERDICT = re.compile(
    rf"""
    \[\[\ ?(?:[ABC12]|tie|[AB]\ ?[<>=]{{1,2}}\ ?[AB]|\d{{1,3}}(?:\.\d)?)\ ?\]\]   # [[A>>B]], [[8.5]]
    | ^[^\w\n]{{0,8}}(?:(?:my|the|your|a|this|final|overall|total)\ ){{0,3}}
      (?:
        (?<![^\W\d_]){_SCORE_LABELS}(?:\ (?:of|for)\ [^\n:=]{{1,40}})?\ ?[:=]\ ?
        \d{{1,3}}(?:[.,]\d)?(?:\ ?/\ ?\d{{1,3}}|\ out\ of\ \d{{1,3}})?              # Final score: 5/5
      | (?:verdict|winner|vote|decision)(?:\ is)?\ ?[:=]?\ ?
        (?:(?:(?:answer|response|output|assistant|summary)\ ?)?[(\[]?[AB12][)\]]?(?!\w)|tie\b)   # Verdict: A
      )[^\w\n]{{0,8}}$
    | ^[^\w\n]{{0,8}}(?:(?:verdict|therefore)[^\w\n]{{1,3}})?no[ _-]issues?[^\w\n]{{0,8}}$      # NO ISSUE
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_LONGEST_LINE = 200


@lru_cache(maxsize=256)
def states_verdict(text: str) -> bool:
    """Return whether a text contains a verdict in one of the forms requested from judges.

    >>> states_verdict("A fine day.\\n**Score:** 5/5"), states_verdict("The match ended with a score of 5.")
    (True, False)
    """
    # A paragraph is not such a line, unless it contains double brackets.
    lines = [
        line for line in latin(text).splitlines() if len(line) <= _LONGEST_LINE or "[[" in line
    ]
    return _VERDICT.search(unmarked(plain("\n".join(lines)))) is not None


def verdict_warnings(texts: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return a warning for each of the texts, by name, that states a verdict.

    >>> verdict_warnings({"answer 1": "Yes.", "answer 2": "No.\\n[[B]]"})
    ('answer 2 states a verdict',)
    """
    return tuple(
        f"{name} {STATES_VERDICT}" for name, text in texts.items() if text and states_verdict(text)
    )


def flagged_texts(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that state a verdict, according to a verdict's warnings.

    An item with such a text is flagged.

    >>> flagged_texts(["answer 2 states a verdict", "judge takes no seed"])
    ('answer 2',)
    """
    flagged = (warning for warning in warnings if warning.endswith(STATES_VERDICT))
    return tuple(warning.removesuffix(STATES_VERDICT).rstrip() for warning in flagged)


STATES_VERDICT = "states a verdict"
"""The end of each such warning."""
