"""Where and how a text states a score: the forms, their strength, and which of them is the last word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from .labels import (
    FINAL_WORDS,
    SCORE_WORDS,
    is_final,
    is_of_others,
    is_plain,
    may_be_criterion,
    qualifier_of,
)
from .numbers import LIMIT, NUMBER, value_of


class Strength(IntEnum):
    """How clearly a form says that its number is the score."""

    BARE = 1
    FRACTION = 2
    CRITERION = 3
    PHRASE = 4
    LABEL = 5
    FINAL = 6
    BRACKETS = 7


class Statement(NamedTuple):
    """A stated value: several where it gives alternatives, with the maximum where it names one."""

    strength: int
    at: int
    values: tuple[float, ...]
    out_of: float | None = None
    subject: str = ""


_RANGE = r"\d{1,3}(?:\.\d)?(?: ?\([^()\n]{1,40}\))? ?(?:-|to|through|and|bis|à|al?|〜|~|до) ?\d{1,3}(?:\.\d)?(?: ?\([^()\n]{1,40}\))?"
_SCALES = re.compile(
    rf"\b(?:on|using|in|within|auf|sur|su|en|over) (?:an? |the |einer |une |una )?(?:\w+ )?(?:scale|range|skala|échelle|scala|escala)"
    rf" ?(?:of|from|von|de|da)? ?(?:{_RANGE}|\d{{1,3}}(?! ?[.\n]))"
    rf"|[(\[] ?(?:scale ?(?:of|from)?:? ?|from |range:? ?|out of \d+, )?{_RANGE} ?(?:scale)?[)\]]"
    rf"|\b{_RANGE} scale\b|满分(?:为|是)?\d+分?|\d+点満点|\d+分制",
    re.IGNORECASE,
)
_HEDGE = (
    r"(?:(?:an?|the|just|only|about|around|approximately|roughly|solid|strong|full|perfect|near-perfect|low|high|clear|at|"
    r"un|une|una|uno|ein|eine|einen|di|de|ca\.|[~≈]) ){0,3}[\[({\"']{0,2}"
)
_VALUE = rf"{_HEDGE}(?P<value>{NUMBER})"
_NOTE = r"(?: ?[(\[][^()\[\]\n]{0,60}[)\]])?"
_TARGET = r"(?: (?:of|for|on|to|di|für|pour|de|para|per|del|della) (?!a |an |\d)[^\n:=.;,\x00]{1,60}?)?"
_COPULA = (
    r" (?:is|are|was|be|would be|will be|should be|could be|might be|remains|becomes|stays|must be|has to be|comes to|ist|est|es|è|é|"
    r"beträgt|lautet|являетс[яь])(?: (?:therefore|thus|still|now|then|hence|best|set|given as|rated|also|a|an))?"
)
_LABELLED = re.compile(
    rf"(?P<label>{SCORE_WORDS})(?:{_NOTE}{_TARGET}{_NOTE} ?(?:[:=]|->|→|-(?= )|—)|{_NOTE} ?(?:は、?|는|은|为|是|為)?){_NOTE}[ \n]{{0,3}}{_VALUE}",
    re.IGNORECASE,
)
_STATED = re.compile(rf"(?P<label>{SCORE_WORDS}){_TARGET}{_COPULA} {_VALUE}", re.IGNORECASE)
_OF = re.compile(rf"(?P<label>{SCORE_WORDS}) (?:of|di|von|de|at|as) {_VALUE}", re.IGNORECASE)
_GIVING = re.compile(
    r"\b(?P<label>(?:scor(?:e|es|ed|ing)|rat(?:e|es|ed|ing)|grad(?:e|es|ed|ing)|giv(?:e|es|en|ing)|assign(?:s|ed|ing)?|award(?:s|ed|ing)?|"
    r"earn(?:s|ed|ing)?|deserv(?:e|es|ed|ing)|receiv(?:e|es|ed|ing)|gets?|merit(?:s|ed|ing)?|warrant(?:s|ed|ing)?|stand by|stick with|settle on|"
    r"maintain|keep|reduce|lower|raise|increase|revise|adjust|change|go with|choose|mak(?:e|es|ing)|vergebe|gebe|donne|assegno|do|doy|dou|attribue)"
    r"(?: (?:it|this|them|that|him|my score|my rating|both|"
    r"(?:the|this|its|their|your|der|die|das|dem|la|le|il)(?: [\w'’-]{1,24}){1,10}?))?)"
    rf"(?: (?:as|at|to|with|from {NUMBER} to|an? \w{{3,20}} of))? {_VALUE}",
    re.IGNORECASE,
)
_CRITERION = re.compile(
    rf"(?:^|(?<=[.!?] ))(?:[-•*+] |\(?\d{{1,2}}[.)] ?)?(?P<label>[^\W\d_][^\n:=\d.,;\x00]{{0,50}}?){_NOTE} ?(?:[:=]|-(?= ))\s{{0,2}}{_VALUE}",
    re.MULTILINE,
)
_BRACKETED = re.compile(rf"\[\[ ?(?P<value>{NUMBER})(?: ?/ ?(?P<out>\d{{1,3}}))? ?\]\]")
_FRACTION = re.compile(rf"(?P<value>{NUMBER})(?= ?/ ?\d| out of | su \d| sur \d| von \d| de \d| из \d)")
_BARE = re.compile(rf"(?:[-•*+>] |(?:\d{{1,2}}[.)]|[A-Za-z]\)) )?[\[(]?(?P<value>{NUMBER})")
_CLOSING = re.compile(
    rf"(?:\A|[.!?)\]\x00\n] |^|\A(?:yes|no)\b,? )\(?(?P<value>{NUMBER})(?=[^\n]{{0,24}}\Z)",
    re.IGNORECASE | re.MULTILINE,
)

_LINE_TAIL = re.compile(
    r"[\])]{0,2}(?: ?(?:/|out of|or|to|-|,|and) ?[\w.,]{1,8})?[\])]{0,2} ?(?:points?|stars?|点|分|점|балл\w*)?[.:]?(?: ?\([^()]{0,60}\))?[.;,! ]{0,3}",
    re.IGNORECASE,
)
_GLOSS = re.compile(
    rf"(?:(?:the|this|it) (?:[\w ]{{1,20}} )?(?:is|was) )?(?:[\w-]+ ){{1,4}}\((?P<value>{NUMBER})\)(?=[.!]? |[.!]?\Z|[.!]?\n)",
    re.IGNORECASE,
)

_OUT_OF = re.compile(
    rf"[\])}}\"']{{0,2}} ?(?:/|out of|\bsu\b|\bsur\b|\bvon\b|\bde\b|\bиз\b) ?(?:the |a )?(?:possible |total |maximum )?(?P<out>{LIMIT})",
    re.IGNORECASE,
)
_OTHER = re.compile(
    rf" ?(?:(?P<dash>[-~]|to|bis) ?|(?:or|and|or maybe|or even|oder|ou|o|или|或) (?:an? )?|, ?|/ ?)(?P<value>{NUMBER})",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?:[-•*+]|\(?\d{1,2}[.)]) ")
_EXPLAINED = re.compile(r"(?:[.:;,)]| ?-| ?—| ?\() ?[^\W\d_\x00]")
_ARROW = re.compile(rf" ?(?:->|→|=>|⇒) ?(?P<value>{NUMBER})")
_SUM = re.compile(rf"(?: ?[-+*x×/÷()] ?\(?{NUMBER}\)?){{1,12}}\)? ?= ?(?P<value>{NUMBER})")
_UNIT = re.compile(
    r"[\])}\"']{0,2} ?(?:points?|pts?\.?|stars?|punkte?n?|punti|points|puntos|балл(?:а|ов)?|분|点|分|점)?(?![^\W\d_])",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\s*(?:\Z|[.,;:!?)\]}\"'*|\x00\n—(]|- |-\Z|(?:for|in|on|because|as|since|due|given|and|but|which|with|to|overall|here|instead|rather|"
    r"based|at|would|seems?|is|was|might|may|could|if|reflecting|indicating|per|per il|für|pour|para|out|when|considering|while|though|than|"
    r"regarding|across|from|under|also|so|therefore|al|sul|com|por|parce|weil|perché|porque|è|isn't|from me)\b)",
    re.IGNORECASE,
)
_DOUBTED_BEFORE = re.compile(
    r"(?:\b(?:not|cannot|never|than|instead of|from|without|of both|unlike|neither|nor|whether|between|above|below|of about|why|argues? for|prevents?|to reach|to achieve|needed for|"
    r"(?:scorer|critic|judge|referee|others?|author|human|annotators?|he|she|they) (?:gave|gives|assigned|suggested?|suggests|proposed?|proposes|wants|argued|has given)"
    r"|(?:to|from) \w+ (?:an? |the )?(?:perfect|full|higher|maximum|top|better|highest)(?: \w+)?)|n't)"
    r"(?: (?:really|quite|fully|simply|be|give|given|giving|assign|award|deserve|merit|warrant|justify|support|accept|see|call for|earn|get|receive|reach"
    r"|it|this|worth|worthy of|an?|the|clear|full|perfect|higher|lower|me|for|agree with|have|to)){0,4} ?\Z",
    re.IGNORECASE,
)
_DOUBTED_AFTER = re.compile(
    r"[\])\"']{0,2}(?: (?:out of|/) ?\w+)?(?: (?:for|in) [\w ]{1,24}?)? "
    r"(?:(?:would|could|might|may) (?:require|need|mean|imply|suggest|indicate|only|be (?:too|unfair|more|overly|excessive|harsh|generous|unjustified|given if))"
    r"|(?:is|was|seems|appears|feels|looks) (?:not|too|overly|unjustified|unfair|harsh|generous|for texts|for a|reserved|excessive|defined|given (?:to|when|if))|isn't|requires|means|if\b|only if|unless)",
    re.IGNORECASE,
)


def stated(words: str, low: float, high: float, aspect: str | None = None) -> Statement | None:
    """The statement that counts in ``words`` (own words, unmarked), None where there is none.

    Args:
        words: what the reply itself says.
        low: lowest value of the scale.
        high: highest value of the scale.
        aspect: the aspect asked for, whose line is a score line.

    >>> stated("Grammar: 3\\nStyle: 4\\nFinal score: 4 out of 5", 1, 5).values
    (4.0,)
    """
    words = without_scales(words, low, high)
    found = [*_bracketed(words), *_labelled(words), *_phrases(words), *_criteria(words, aspect)]
    found = _outside_lists(words, found)
    strong = [one for one in found if one.strength >= Strength.LABEL]
    if strong:
        return _settled(strong)
    phrases = [one for one in found if one.strength == Strength.PHRASE]
    fitting = [one for one in phrases if all(low <= value <= high for value in one.values)]
    weaker = fitting or _single_criterion(found) or [*_fractions(words, high)] or _bare(words) or phrases
    return _settled(weaker) if weaker else None


def _outside_lists(words: str, found: list[Statement]) -> list[Statement]:
    """Without the items of a list that scores several criteria, each in its own words."""
    items = {
        one
        for one in found
        if one.strength < Strength.FINAL and _ITEM.match(words, words.rfind("\n", 0, one.at + 1) + 1)
    }
    lines = {words.rfind("\n", 0, one.at + 1) for one in items}
    if len(lines) < 2 or {one.strength for one in items} == {Strength.CRITERION}:
        return found
    others = [one for one in found if one not in items]
    return others if others or len({one.values for one in items}) > 1 else found


def without_scales(words: str, low: float, high: float) -> str:
    """``words`` without mentions of the scale: "on a scale of 1 to 5", "(1-5)", "from 1 to 5"."""
    own = rf"\b(?:from|between) {low:g}(?: \([^()\n]{{1,40}}\))? (?:to|and|through) {high:g}(?![\d.,]\d)"
    return re.sub(own, " ", _SCALES.sub(" ", words), flags=re.IGNORECASE)


def _settled(found: list[Statement]) -> Statement:
    """The last of the strongest statements; all values where they are about different subjects."""
    strongest = max(one.strength for one in found)
    finalists = [one for one in found if one.strength == strongest]
    last = max(finalists, key=lambda one: one.at)
    subjects = {one.subject for one in finalists}
    if len(subjects) > 1 and last.subject and "" not in subjects:
        values = tuple(value for one in finalists for value in one.values)
        return last._replace(values=(*values, *last.values))
    return last


def _bracketed(words: str) -> Iterator[Statement]:
    for match in _BRACKETED.finditer(words):
        value = value_of(match["value"])
        if value is not None:
            yield Statement(
                Strength.BRACKETS, match.start(), (value,), float(match["out"]) if match["out"] else None
            )


def _labelled(words: str) -> Iterator[Statement]:
    """``Score: 4``, ``Final score = 4/5``, ``The overall rating is 3``."""
    for form in (_LABELLED, _STATED):
        for match in form.finditer(words):
            qualifier = qualifier_of(words[max(0, match.start() - 60) : match.start()])
            prose = form is _STATED or not re.search(
                r"[:=]|->|→|-|—|\n", words[match.end("label") : match.start("value")]
            )
            if "\n" in match[0] and match["value"] == "1" and not _ends_line(words, match.end("value")):
                continue
            if prose and (is_of_others(qualifier) or _doubted(words, match)):
                continue
            strength = _label_strength(words, match, qualifier, prose=prose)
            statement = value_at(words, match, strength) if strength else None
            if statement is not None:
                yield statement


def _label_strength(words: str, match: re.Match[str], qualifier: str, *, prose: bool) -> Strength | None:
    between = words[match.end("label") : match.start("value")]
    if is_final(qualifier) or re.match(rf"{FINAL_WORDS}", match["label"], re.IGNORECASE):
        return Strength.FINAL
    if not prose and is_of_others(qualifier):
        return None
    if (
        prose
        and "\n" not in between
        and not re.match(
            r" ?(?:is|=|ist|est|es|è|é|는|은|为|是|は)\b| ?[は는은为是為]| [\w ]+ (?:is|are) ", between
        )
    ):
        return Strength.PHRASE if ends_phrase(words, match.end("value")) else None
    if prose:
        return Strength.PHRASE
    if is_plain(qualifier):
        return Strength.LABEL
    return Strength.CRITERION if len(qualifier.split()) <= 5 else Strength.PHRASE


def _phrases(words: str) -> Iterator[Statement]:
    """``a score of 4 out of 5``, ``I would give it a 3``."""
    for match in _OF.finditer(words):
        qualifier = qualifier_of(words[max(0, match.start() - 60) : match.start()])
        if not is_of_others(qualifier) and not _doubted(words, match):
            strength = Strength.FINAL if is_final(qualifier) else Strength.PHRASE
            if (statement := value_at(words, match, strength)) is not None:
                yield statement
    for match in _GIVING.finditer(words):
        if not _doubted(words, match) and ends_phrase(words, match.end("value")):
            if (statement := value_at(words, match, Strength.PHRASE)) is not None:
                yield statement


def _criteria(words: str, aspect: str | None) -> Iterator[Statement]:
    if aspect is not None:
        yield from _aspect_sentences(words, aspect)
    for match in _CRITERION.finditer(words):
        label = match["label"].strip().casefold()
        wanted = aspect is not None and _is_about(label, aspect.casefold())
        if not wanted and not may_be_criterion(label):
            continue
        below = "\n" in words[match.end("label") : match.start("value")]
        if not ends_phrase(words, match.end("value")) or (
            below and not _ends_line(words, match.end("value"))
        ):
            continue
        strength = Strength.LABEL if wanted else Strength.CRITERION
        statement = value_at(words, match, strength)
        if statement is not None:
            yield statement._replace(subject="" if wanted else label)


def _aspect_sentences(words: str, aspect: str) -> Iterator[Statement]:
    """``The coherence of the summary is 3``."""
    form = rf"\b{re.escape(aspect)}(?: (?:of|for) (?:[\w'’-]+ ){{0,5}}?[\w'’-]+)?{_COPULA} {_VALUE}"
    for match in re.finditer(form, words, re.IGNORECASE):
        if not _doubted(words, match) and ends_phrase(words, match.end("value")):
            statement = value_at(words, match, Strength.PHRASE)
            if statement is not None:
                yield statement


def _is_about(label: str, aspect: str) -> bool:
    """Whether the label is the aspect's own: ``"overall coherence"`` is coherence's, ``"coherence of style"`` is not."""
    rest = label.replace(aspect, " ", 1) if aspect in label else "no"
    return all(
        word in ("overall", "final", "my", "the", "score", "rating", "for", "of", "summary's", "response's")
        for word in rest.split()
    )


def _single_criterion(found: list[Statement]) -> list[Statement]:
    """The one criterion that a reply scores; several different ones are no score of the whole."""
    criteria = [one for one in found if one.strength == Strength.CRITERION]
    return criteria if len({one.subject for one in criteria}) == 1 else []


def _fractions(words: str, high: float) -> Iterator[Statement]:
    for match in _FRACTION.finditer(words):
        statement = value_at(words, match, Strength.FRACTION)
        if statement is None or statement.out_of != high:
            continue
        out = _OUT_OF.match(words, match.end("value"))
        if out is not None and ends_phrase(words, out.end()) and not words.startswith(" of ", out.end()):
            yield statement


def _bare(words: str) -> list[Statement]:
    """Numbers that are a line or the closing sentence of their own, or that open a reply and are then explained."""
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]+", words)]
    found = [one for at, line in lines if (one := _whole_line(line, at)) is not None]
    if found:
        values = tuple(dict.fromkeys(value for one in found for value in one.values))
        return [found[-1]._replace(values=values if len(values) == 1 else (*values, found[-1].values[-1]))]
    for match in reversed(list(_CLOSING.finditer(words, max(0, len(words) - 40)))):
        statement = value_at(words, match, Strength.BARE)
        if statement is not None and re.fullmatch(
            r"[\])]{0,2}(?: ?(?:/|out of) ?\d+)?[.)\]! ]{0,3}", words[match.end("value") :]
        ):
            return [statement]
    return _opening(lines)


def _whole_line(line: str, at: int) -> Statement | None:
    match = _BARE.match(line)
    if match is None:
        return None
    statement = value_at(line, match, Strength.BARE)
    if statement is None:
        return None
    return statement._replace(at=at) if _LINE_TAIL.fullmatch(line, match.end("value")) else None


def _ends_line(words: str, end: int) -> bool:
    """Whether nothing but a maximum or a note follows the value on its line."""
    stop = words.find("\n", end)
    return _LINE_TAIL.fullmatch(words, end, stop if stop >= 0 else len(words)) is not None


def _opening(lines: list[tuple[int, str]]) -> list[Statement]:
    """``2. The response is somewhat interesting``; a numbered list is none."""
    if not lines:
        return []
    match = _GLOSS.match(lines[0][1]) or _BARE.match(lines[0][1])
    numbered = sum(re.match(r"\(?\d{1,2}[.)] ", line) is not None for _, line in lines)
    if match is None or numbered > 1:
        return []
    if match.re is _BARE and not _EXPLAINED.match(lines[0][1], match.end("value")):
        return []
    statement = value_at(lines[0][1], match, Strength.BARE)
    return [statement] if statement is not None else []


def value_at(words: str, match: re.Match[str], strength: int) -> Statement | None:
    """The value that ``match`` found, with what follows it: a maximum, alternatives, a revision, a sum."""
    first = value_of(match["value"])
    if first is None:
        return None
    end = match.end("value")
    if words.startswith("%", end):
        return Statement(strength, match.start(), (first,), 100.0)
    for form in (_SUM, _ARROW):
        result = form.match(words, end)
        if result is not None and (value := value_of(result["value"])) is not None:
            return Statement(strength, match.start(), (value,), _out_of(words, result.end()))
    values = (first, *_alternatives(words, end))
    return Statement(strength, match.start(), values, _out_of(words, end))


def _out_of(words: str, end: int) -> float | None:
    match = _OUT_OF.match(words, end)
    return value_of(match["out"]) if match else None


def _alternatives(words: str, end: int) -> tuple[float, ...]:
    match = _OTHER.match(words, end)
    if match is None or words[end : match.start("value")].strip() in ("/",):
        return ()
    joint = words[end : match.start("value")].strip().casefold()
    after = words[match.end("value") :][:24]
    loose = joint in ("and", ",", "-", "to") and words[end] in " ,"
    if loose and not re.match(r"\s*(?:\Z|[.;)\]\n]|out of|points?\b|/)", after):
        return ()
    value = value_of(match["value"])
    return () if value is None else (value,)


def ends_phrase(words: str, end: int) -> bool:
    """Whether the value ends its phrase, so that no noun follows (``gives 5 reasons``)."""
    if (out := _OUT_OF.match(words, end)) is not None:
        end = out.end()
    unit = _UNIT.match(words, end)
    return _ENDS.match(words, unit.end() if unit else end) is not None


def _doubted(words: str, match: re.Match[str]) -> bool:
    """Whether the phrase denies, compares or supposes its value, or reports somebody else's."""
    before = words[max(0, match.start() - 80) : match.start()].replace("’", "'")
    inner = words[match.start() : match.start("value")]
    before_value = (before + inner).rpartition("\n")[2]
    return bool(
        _DOUBTED_BEFORE.search(before.rpartition("\n")[2])
        or _DOUBTED_BEFORE.search(before_value)
        and not re.search(r"\b(?:from|of both)\b", inner)
        or _DOUBTED_AFTER.match(words, match.end("value"))
    )
