"""Measures of an answer to a question, for tasks that compare two of them."""

from __future__ import annotations

import re

from .measures import Case, Measured, many, percent, ramp, share

_REFUSAL = re.compile(
    r"\bas an ai\b|\blanguage model\b|\bi(?: am|'m)? (?:cannot|can't|unable to|not able to)\b|\bi(?:'m| am) sorry\b"
    r"|\bi apologi[sz]e\b|\bi do(?: not|n't) (?:have|know)\b"
)
_STRUCTURE = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)]|#{1,6} |```)", re.MULTILINE)


def reply_to_the_question(case: Case) -> Measured | None:
    """How many content words of the question the answer takes up."""
    asked = case.source.stem_set
    if not asked:
        return None
    found = len(asked & case.candidate.stem_set)
    words = f"{case.name} takes up {found} of the {many(len(asked), 'content word')} of the question"
    return Measured(ramp(found / len(asked), 0.0, 0.7), f"{words} ({percent(found / len(asked))})")


def level_of_detail(case: Case) -> Measured | None:
    """How many different content words the answer has to give."""
    n = len(case.candidate.stem_set)
    return Measured(ramp(n, 0, 120) ** 0.5, f"{case.name} offers {many(n, 'different content word')}")


def answer_length(case: Case) -> Measured | None:
    """How long the answer is; each further word counts for less, and beyond 600 for nothing."""
    n = len(case.candidate.words)
    return Measured(
        ramp(n, 0, 300) ** 0.5 * (1 - 0.5 * ramp(n, 600, 2000)), f"{case.name} runs to {many(n, 'word')}"
    )


def layout(case: Case) -> Measured | None:
    """Whether lists, paragraphs or code blocks give the answer a shape."""
    marks = len(_STRUCTURE.findall(case.candidate.text))
    blocks = len(re.findall(r"\n\s*\n", case.candidate.text.strip())) + 1
    words = f"{case.name} has {many(blocks, 'paragraph')} and {many(marks, 'line')} set as list or heading"
    return Measured(0.3 + 0.4 * ramp(marks, 0, 4) + 0.3 * ramp(blocks, 1, 4), words)


def exact_details(case: Case) -> Measured | None:
    """How many names and numbers the answer gives that the question did not."""
    items = [i for i in (*case.candidate.names, *case.candidate.numbers) if i not in case.source.vocabulary]
    return Measured(
        ramp(len(items), 0, 12) ** 0.5, f"{case.name} gives {len(items)} names and numbers of its own"
    )


def readiness(case: Case) -> Measured | None:
    """Whether the answer answers, rather than excuse itself."""
    excuses = len(_REFUSAL.findall(case.candidate.text.lower().replace("\u2019", "'")))
    if not excuses:
        return Measured(1.0, f"{case.name} does not excuse itself anywhere")
    per_sentence = share(excuses, len(case.candidate.sentences))
    return Measured(1 - ramp(per_sentence, 0.0, 0.5), f"{case.name} excuses itself {many(excuses, 'time')}")


def match_with_the_reference(case: Case) -> Measured | None:
    """How many content words and numbers of the reference answer the answer has as well."""
    if case.fact is None or not case.fact.stem_set:
        return None
    wanted = case.fact.stem_set
    found = len(wanted & case.candidate.stem_set)
    words = f"{case.name} has {found} of the {many(len(wanted), 'content word')} of the reference"
    return Measured(ramp(found / len(wanted), 0.0, 0.7), f"{words} ({percent(found / len(wanted))})")
