"""Find the statements of a score in a text, and choose the one that counts.

``stated`` chooses; ``bracketed``, ``labelled``, ``phrases``, ``criteria``, ``fractions`` and ``bare`` find the
statements of one form each.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from .numbers import (
    NUMBER,
    VALUE,
    Statement,
    Strength,
    ends_line,
    ends_phrase,
    limit_end,
    limit_ends_phrase,
    value_at,
    value_of,
    without_scales,
)
from .vocabulary import (
    FINAL_WORDS,
    SCORE_WORDS,
    is_final,
    is_of_others,
    is_plain,
    may_be_criterion,
    one_of,
    qualifier_of,
    word_set,
)

# A line that begins as a list item does: ``- ``, ``2. ``, ``(3) ``.
_ITEM = re.compile(r"(?:[-•*+]|\(?\d{1,2}[.)]) ")


def stated(words: str, low: float, high: float, aspect: str | None = None) -> Statement | None:
    """Return the statement that counts in ``words``; None where there is none.

    Args:
        words: what the reply itself says, unmarked.
        low: lowest value of the scale.
        high: highest value of the scale.
        aspect: the aspect asked for, whose line is a score line.

    >>> stated("Grammar: 3\\nStyle: 4\\nFinal score: 4 out of 5", 1, 5).values
    (4.0,)
    """
    # "On a scale of 1 to 5" holds numbers that are no score.
    return merged(counting(without_scales(words, low, high), low, high, aspect))


def merged(found: Sequence[Statement]) -> Statement | None:
    """Return the last statement, with the values of all: where they differ, they contradict each other."""
    if len(found) < 2:
        return found[0] if found else None
    return found[-1]._replace(values=tuple(value for statement in found for value in statement.values))


def counting(words: str, low: float, high: float, aspect: str | None = None) -> list[Statement]:
    """Return the statements that count in ``words``, from which mentions of the scale were removed.

    These are the last of the strongest, or all of the strongest where each is about a subject of its own.
    """
    statements = [*bracketed(words), *labelled(words), *phrases(words), *criteria(words, aspect)]
    statements = _outside_lists(words, statements)
    strong = [found for found in statements if found.strength >= Strength.LABEL]
    if strong:
        return _last_of_strongest(strong)
    # A phrase such as "gives 12 reasons" is told from a score by the scale; only if nothing weaker is stated
    # either does a phrase off the scale count, which is then an error.
    in_phrases = [found for found in statements if found.strength == Strength.PHRASE]
    on_scale = [found for found in in_phrases if all(low <= value <= high for value in found.values)]
    weaker = (
        on_scale
        or _single_criterion(statements)
        or [*fractions(words, high)]
        or _bare(words, statements)
        or in_phrases
    )
    return _last_of_strongest(weaker) if weaker else []


def _last_of_strongest(statements: list[Statement]) -> list[Statement]:
    """Return the last of the strongest statements; all of them where they are about different subjects.

    "Score for style: 4. Score for content: 2." states no score of the whole; the values then contradict each other.
    Numbers on lines of their own have one subject, and contradict each other too.
    """
    strongest = max(found.strength for found in statements)
    finalists = sorted(
        (found for found in statements if found.strength == strongest), key=lambda found: found.at
    )
    subjects = {found.subject for found in finalists}
    if strongest == Strength.BARE or (len(subjects) > 1 and "" not in subjects):
        return finalists
    return finalists[-1:]


def _single_criterion(statements: list[Statement]) -> list[Statement]:
    """Return the statements about a criterion if all are about the same one; several are no score of the whole."""
    criteria = [found for found in statements if found.strength == Strength.CRITERION]
    return criteria if len({found.subject for found in criteria}) == 1 else []


def _bare(words: str, statements: list[Statement]) -> list[Statement]:
    return [] if any(found.strength == Strength.CRITERION for found in statements) else bare(words)


def _outside_lists(words: str, statements: list[Statement]) -> list[Statement]:
    """Drop the items of a list that scores several criteria, each in its own words."""
    starts = [0, *(match.end() for match in re.finditer("\n", words))]
    lines = {
        found: starts[bisect_right(starts, found.at) - 1]
        for found in statements
        if found.strength < Strength.FINAL
    }
    items = {found: line for found, line in lines.items() if _ITEM.match(words, line)}
    if len(set(items.values())) < 2 or {found.strength for found in items} == {Strength.CRITERION}:
        return statements
    others = [found for found in statements if found not in items]
    return others if others or len({found.values for found in items}) > 1 else statements


# A remark in brackets between label and value: ``Score (out of 5): 4``.
_NOTE = r"(?: ?[(\[][^()\[\]\n]{0,60}[)\]])?"
_TOWARDS = one_of("of for on to di für pour de para per del della")
# What is scored: ``Score for the summary: 4``.
_TARGET = rf"(?: {_TOWARDS} (?!an? |\d)(?P<target>[^\n:=.;,\x00]{{1,60}}?))?"
# A qualifier behind the label, as Romance languages have it: ``voto finale``.
_AFTER = r"(?: (?:finale?|globale?|complessiv[oa]|totale?))?"
# ``The score is 4``, ``the rating would be 3``.
_COPULA = (
    rf" {one_of('is are was be would_be will_be should_be could_be might_be must_be has_to_be')[:-1]}"
    r"|remains|becomes|stays|comes to)"
    rf"(?: {one_of('therefore thus still now then hence best set given_as rated also')})?"
)
_FOREIGN_COPULA = rf" {one_of('ist est es è é beträgt lautet является')}"
# A label, then a separator: ``Score: 4``, ``**Rating** - 4`` (unmarked), ``评分为4``.
_LABELLED = re.compile(
    rf"(?P<label>{SCORE_WORDS}){_AFTER}"
    rf"(?:{_NOTE}{_TARGET}{_NOTE} ?(?:[:=]|->|→|-(?= )|—)|{_NOTE} ?(?:は、?|는|은|为|是|為)?)"
    rf"{_NOTE}[ \n]{{0,3}}{VALUE}",
    re.IGNORECASE,
)
# A label in a sentence: ``The overall score is 4``.
_STATED = re.compile(
    rf"(?P<label>{SCORE_WORDS}){_AFTER}{_TARGET}(?:{_COPULA}|{_FOREIGN_COPULA}) {VALUE}", re.IGNORECASE
)
# ``a score of 4``.
_OF = re.compile(rf"(?P<label>{SCORE_WORDS}){_AFTER} (?:of|di|von|de|at|as) {VALUE}", re.IGNORECASE)
# Verbs by which a judge gives a score: ``I rate it 4``, ``the summary deserves a 3``.
_GIVERS = one_of(
    "score scores scored scoring rate rates rated rating grade grades graded grading give gives given "
    "giving assign* award* earn* deserve* deserving receive* receiving get gets merit* warrant* stand_by "
    "stick_with settle_on maintain keep reduce lower raise increase revise adjust change go_with choose "
    "make makes making vergebe gebe donne assegno doy dou attribue"
)
_GIVEN = one_of("it this them that both my_score my_rating")
_THING = rf"{one_of('the this its their your my der die das dem la le il')}(?: [\w'\u2019-]{{1,24}}){{1,10}}?"
_GIVING = re.compile(
    rf"\b(?P<label>{_GIVERS}(?: (?:{_GIVEN}|{_THING}))?)(?: (?:as|at|to|with|from {NUMBER} to"
    rf"|an? \w{{3,20}} of))? {VALUE}",
    re.IGNORECASE,
)
# Any short label before a number: ``Coherence: 3``.
_CRITERION = re.compile(
    r"(?:^|(?<=[.!?,;] ))(?:[-•*+] |\(?\d{1,2}[.)] ?)?"
    rf"(?P<label>[^\W\d_][^\n:=\d.,;\x00]{{0,50}}?){_NOTE} ?(?:[:=]|-(?= ))\s{{0,2}}{VALUE}",
    re.MULTILINE,
)
# MT-Bench's form, ``[[4]]``; two of them are alternatives.
_BRACKETED = re.compile(
    rf"\[\[ ?(?P<value>{NUMBER})(?: ?/ ?(?P<out>\d{{1,3}}))? ?\]\](?: ?(?:or|/|-"
    rf"|and) ?\[\[ ?(?P<other>{NUMBER}) ?\]\])?"
)
# ``4/5``, ``4 out of 5``, ``4 su 5``.
_FRACTION = re.compile(rf"(?P<value>{NUMBER})(?= ?/ ?\d| out of | (?:su|sur|von|de|из) \d)")
_SEPARATED = re.compile(r"[:=\n—-]|->|→")
# Words between a label and its value that make it a statement: ``The score for this text is``.
_STATES = re.compile(
    r" ?(?:は|는|은|为|是|為)| [\w ]{0,70}\b(?:is|are|ist|est|es|è|é)\b| (?:is|are|ist|est|es|è|é)\b"
)
_REPORTERS = one_of("scorer critic judge referee other others author human annotator annotators he she they")
_REPORTED = one_of("gave gives assigned suggested suggests proposed proposes wants argued has_given")
# Words that take a value back or only compare with it: ``not a 4``, ``rather than 4``, ``above 3``.
_DENIALS = one_of(
    "not cannot never than instead_of from without of_both unlike neither nor whether above below why "
    "prevents to_reach to_achieve needed_for argue_for argues_for"
)
_IDEAL = one_of("perfect full higher maximum top better highest")
# Words that may stand between a denial and the value it denies: ``does not really deserve a 5``.
_LINKS = one_of(
    "really quite fully simply be give given giving assign award deserve merit warrant justify support accept "
    "see call_for earn get "
    "receive reach it this worth worthy_of a an the clear full perfect higher lower me for agree_with have to"
)
# A score that was not given: ``would have earned a 5``, ``to reach the full 5``.
_UNREACHED = (
    r"(?:would have \w{1,12}(?: it)?(?: an?)?"
    rf"|(?:to|from) \w{{1,20}} (?:it )?(?:an? |the )?{_IDEAL})(?: \w{{1,20}}){{0,2}}"
)
_DOUBTED_BEFORE = re.compile(
    rf"(?:\b(?:{_DENIALS}|{_REPORTERS} {_REPORTED}|{_UNREACHED})|n't)(?: {_LINKS}){{0,4}} ?\Z", re.IGNORECASE
)
_EXCESS = one_of("too unfair more_if overly excessive harsh generous unjustified given_if")
# What follows a value that is only talked about: ``a 5 would require ...``, ``4 is too generous``.
_DOUBTED_AFTER = re.compile(
    r"[\])\"']{0,2}(?: ?(?:out of|/) ?\w{1,5})?(?: (?:for|in) [\w ]{1,24}?)? (?:"
    rf"(?:would|could|might|may) (?:require|need|mean|imply|suggest|indicate|only|be {_EXCESS})"
    rf"|(?:is|was|seems|appears|feels|looks) (?:not|{_EXCESS}|for texts|for a|reserved|defined|given (?:to|when"
    rf"|if))"
    r"|(?:isn't|requires|means|if|only if|unless)\b)",
    re.IGNORECASE,
)
# The last ones count; without a limit, a reply full of labels would take long for nothing.
_MOST_LABELS = 500
_OWN_LABEL_WORDS = word_set("overall final my the score rating for of summary's response's text's")


def bracketed(words: str) -> Iterator[Statement]:
    """Find ``[[4]]``."""
    for match in _BRACKETED.finditer(words):
        values = [value_of(part) for part in (match["value"], match["other"]) if part]
        known = tuple(value for value in values if value is not None)
        if known:
            yield Statement(
                Strength.BRACKETS,
                match.start(),
                known,
                float(match["out"]) if match["out"] else None,
                end=match.end(),
            )


def labelled(words: str) -> Iterator[Statement]:
    """Find ``Score: 4``, ``Final score = 4/5``, ``The overall rating is 3``."""
    for form in (_LABELLED, _STATED):
        for match in list(form.finditer(words))[-_MOST_LABELS:]:
            between = words[match.end("label") : match.start("value")]
            # "Scores:" and then "1. Coherence ...": the 1 numbers a list.
            if "\n" in between and match["value"] == "1" and not ends_line(words, match.end("value")):
                continue
            qualifier = qualifier_of(words[max(0, match.start() - 60) : match.start()])
            prose = form is _STATED or not _SEPARATED.search(between)
            if is_of_others(qualifier) or (prose and (_doubted(words, match))):
                continue
            strength = _label_strength(words, match, qualifier, between, prose=prose)
            statement = value_at(words, match, strength) if strength else None
            if statement is not None and not (prose and _is_result(statement)):
                yield statement._replace(subject=_subject(match, qualifier, strength))


def _subject(match: re.Match[str], qualifier: str, strength: int | None) -> str:
    if strength == Strength.CRITERION:
        return f"{qualifier} {match['label']}".casefold()
    return (match["target"] or "").casefold()


def _label_strength(
    words: str, match: re.Match[str], qualifier: str, between: str, *, prose: bool
) -> Strength | None:
    if (
        is_final(qualifier)
        or re.match(FINAL_WORDS, match["label"] + between, re.IGNORECASE)
        or re.match(r" final", between)
    ):
        return Strength.FINAL
    if prose and not _STATES.match(between) and not ends_phrase(words, match.end("value")):
        return None
    if prose:
        return Strength.PHRASE
    if is_plain(qualifier):
        return Strength.LABEL
    return Strength.CRITERION if len(qualifier.split()) <= 5 else Strength.PHRASE


def phrases(words: str) -> Iterator[Statement]:
    """Find ``a score of 4 out of 5``, ``I would give it a 3``."""
    for match in _OF.finditer(words):
        qualifier = qualifier_of(words[max(0, match.start() - 60) : match.start()])
        if not is_of_others(qualifier) and not _doubted(words, match):
            statement = value_at(words, match, Strength.FINAL if is_final(qualifier) else Strength.PHRASE)
            if statement is not None and not _is_result(statement):
                yield statement
    for match in _GIVING.finditer(words):
        statement = None if _doubted(words, match) else value_at(words, match, Strength.PHRASE)
        if statement is not None and ends_phrase(words, statement.end) and not _is_result(statement):
            yield statement


def _is_result(statement: Statement) -> bool:
    """Whether two falling numbers are the result of a match, ``3-1``, rather than a range."""
    return len(statement.values) == 2 and statement.values[0] > statement.values[1]


def criteria(words: str, aspect: str | None) -> Iterator[Statement]:
    """Find ``Coherence: 3``, a criterion's line; the line of the aspect that was asked for is a score line."""
    if aspect is not None:
        yield from _aspect_sentences(words, aspect)
    for match in _CRITERION.finditer(words):
        label = match["label"].strip().casefold()
        wanted = aspect is not None and _is_about(label, aspect.casefold())
        between = words[match.end("label") : match.start("value")]
        below, equation = "\n" in between, "=" in between and "\n" in words.strip()
        if not (wanted or (may_be_criterion(label) and not equation)):
            continue
        if below and not ends_line(words, match.end("value")):
            continue
        statement = value_at(words, match, Strength.LABEL if wanted else Strength.CRITERION)
        if statement is not None and ends_phrase(words, statement.end):
            own_at = None if wanted else match.start("value")
            end = limit_end(words, statement.end)
            yield statement._replace(subject="" if wanted else label, own_at=own_at, end=end)


def _aspect_sentences(words: str, aspect: str) -> Iterator[Statement]:
    """Find ``The coherence of the summary is 3``."""
    thing = r"(?:[\w'\u2019-]{1,24} ){0,5}?[\w'\u2019-]{1,24}"
    form = rf"\b{re.escape(aspect)}(?: (?:of|for) {thing})?{_COPULA} {VALUE}"
    for match in re.finditer(form, words, re.IGNORECASE):
        if not _doubted(words, match) and ends_phrase(words, match.end("value")):
            statement = value_at(words, match, Strength.PHRASE)
            if statement is not None:
                yield statement


def _is_about(label: str, aspect: str) -> bool:
    """Whether the label is the aspect's own: ``"overall coherence"`` is, ``"coherence of style"`` is not."""
    return aspect in label and all(word in _OWN_LABEL_WORDS for word in label.replace(aspect, " ", 1).split())


def fractions(words: str, high: float) -> Iterator[Statement]:
    """Find ``4/5`` or ``4 out of 5`` on a scale that ends at 5."""
    for match in _FRACTION.finditer(words):
        statement = value_at(words, match, Strength.FRACTION)
        if (
            statement is not None
            and statement.out_of == high
            and limit_ends_phrase(words, match.end("value"))
        ):
            yield statement._replace(end=limit_end(words, match.end("value")))


def _doubted(words: str, match: re.Match[str]) -> bool:
    """Whether the phrase denies, compares or supposes its value, or reports somebody else's."""
    before = words[max(0, match.start() - 80) : match.start()].replace("\u2019", "'").rpartition("\n")[2]
    inner = words[match.start() : match.start("value")]
    return bool(
        _DOUBTED_BEFORE.search(before)
        or (
            _DOUBTED_BEFORE.search((before + inner).rpartition("\n")[2])
            and not re.search(r"\b(?:from|of both)\b", inner)
        )
        or _DOUBTED_AFTER.match(words, match.end("value"))
    )


# A line that is nothing but a number, maybe as a list item or in brackets.
_LINE = re.compile(rf"(?:[-•*+>] |(?:\d{{1,2}}[.)]|[A-Za-z]\)) )?[\[(]?(?P<value>{NUMBER})")
# A number that opens the last sentence, close to the end: ``The text is clear. 4``.
_CLOSING = re.compile(
    rf"(?:\A|[.!?)\]\x00\n] |^|\A(?:yes|no)\b,? )\(?(?P<value>{NUMBER})(?=[^\n]{{0,24}}\Z)",
    re.IGNORECASE | re.MULTILINE,
)
_CLOSING_TAIL = re.compile(r"[\])]{0,2}(?: ?(?:/|out of) ?\d{1,3})?[.)\]! ]{0,3}")
# A grade in words with its number: ``Rather good (4)``.
_GLOSS = re.compile(
    r"(?:(?:the|this|it) (?:[\w ]{1,20} )?(?:is|was) )?"
    rf"(?:[\w-]{{1,24}} ){{1,4}}\((?P<value>{NUMBER})\)(?=[.!]? |[.!]?\Z)",
    re.IGNORECASE,
)
# What follows a number with which a reply begins: ``2. The response is ...``, ``4 - clear and fluent``.
_EXPLAINED = re.compile(r"(?:[.:;,)]| ?-| ?—| ?\() ?[^\W\d_\x00]")
_NUMBERED = re.compile(r"\(?\d{1,2}[.)] ")


def bare(words: str) -> list[Statement]:
    """Find a number that stands alone on a line, or closes or opens the text; all where several lines hold one.

    >>> bare("The text is clear.\\n4")[0].values
    (4.0,)
    >>> bare("1. Short\\n2. Clear")
    []
    """
    lines = [(match.start(), match[0]) for match in re.finditer(r"[^\n]+", words)]
    alone = [found for at, line in lines if (found := _whole_line(line, at)) is not None]
    if alone:
        return alone
    return _closing(words) or _opening(lines)


def _whole_line(line: str, at: int) -> Statement | None:
    match = _LINE.match(line)
    if match is None or not ends_line(line, match.end("value")):
        return None
    statement = value_at(line, match, Strength.BARE)
    return statement._replace(at=at, end=at + statement.end) if statement is not None else None


def _closing(words: str) -> list[Statement]:
    """Find ``The text is well made. 4``."""
    for match in reversed(list(_CLOSING.finditer(words, max(0, len(words) - 40)))):
        statement = value_at(words, match, Strength.BARE)
        if statement is not None and _CLOSING_TAIL.fullmatch(words, match.end("value")):
            return [statement._replace(own_at=match.start("value"))]
    return []


def _opening(lines: list[tuple[int, str]]) -> list[Statement]:
    """Find ``2. The response is somewhat interesting``, ``Rather good (4)``; a numbered list states no score."""
    if not lines or sum(_NUMBERED.match(line) is not None for _, line in lines) > 1:
        return []
    first = lines[0][1]
    match = _GLOSS.match(first) or _LINE.match(first)
    if match is None or (match.re is _LINE and not _EXPLAINED.match(first, match.end("value"))):
        return []
    statement = value_at(first, match, Strength.BARE)
    if statement is None:
        return []
    at = lines[0][0]
    return [statement._replace(at=at + statement.at, end=at + statement.end)]
