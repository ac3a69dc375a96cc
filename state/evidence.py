"""The results of tools that an agent called before it judged, and which of them its reply cites."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

EvidenceStatus = Literal["ok", "failed", "timed_out"]


class Evidence(TypedDict):
    """The result of one tool call.

    ``id`` is its number, such as ``E1``, or ``E2.1`` for the first result of ``juror_2``. ``args``
    are the arguments that the agent gave. ``result`` is the tool's text, cut to a limit, or why
    there is none. ``length`` is the number of characters before the cut.
    """

    id: str
    tool: str
    args: Any
    result: str
    status: EvidenceStatus
    length: NotRequired[int]


class Citations(TypedDict):
    """What an agent's reply cites of its evidence.

    ``cited`` and ``uncited`` are the ids of its evidence, ``unknown`` the cited ids that it was not
    shown. Each sentence is a claim: ``cited_claims`` is the number of sentences that cite known
    evidence, and ``uncited_claims`` has the others.
    """

    cited: list[str]
    uncited: list[str]
    unknown: list[str]
    cited_claims: int
    uncited_claims: list[str]


MOST_CLAIMS = 50
"""The number of uncited claims that are listed."""

_ID = r"E\d+(?:\.\d+)*"
# [E1], [E1, E2] or [E1; E2]; models also write the brackets double or in full width.
_CITATION = re.compile(rf"[\[【]\s*({_ID}(?:\s*[,;]\s*{_ID})*)\s*[\]】]")
# A line that only states a value, such as "Score: 4" or "NO ISSUE", is not a claim.
_VALUE_LINE = re.compile(
    r"[\s*_#>`]*(?:[\w ]{1,40}:\s*[\[\](){}\d.,/ ]+|no[ _-]?issues?|\[\[[ABC]\]\]|[\d.,/ ()]+)[\s*_`.]*$",
    re.IGNORECASE,
)
# The end of a sentence; its citation may stand behind the full stop.
_SENTENCE_END = re.compile(
    rf"(?<=[.!?])(?P<late>(?:\s*[\[【]\s*{_ID}[^\]】\n]*[\]】])*)(?:\s+|$)|\n"
)


def cited_ids(text: str) -> list[str]:
    """Return the numbers that a text cites, each once, in order.

    >>> cited_ids("It opened in 1932 [E1], not in 1923 [E2, E1]. Grade E3.")
    ['E1', 'E2']
    """
    groups = (found[1] for found in _CITATION.finditer(text))
    return list(dict.fromkeys(id for group in groups for id in re.findall(_ID, group)))


def citations_of(text: str, evidence: Iterable[Evidence], shown: Iterable[str] = ()) -> Citations:
    """Check the citations of a reply against the evidence that its agent was shown.

    Args:
        text: the reply.
        evidence: the results of the agent's own tool calls in this turn.
        shown: the ids of earlier evidence that it was shown too.

    >>> found: Evidence = {"id": "E1", "tool": "search", "args": {}, "result": "1932", "status": "ok"}
    >>> made = citations_of("It opened in 1932 [E1]. It is long. See [E7].", [found])
    >>> made["cited"], made["unknown"], made["cited_claims"], made["uncited_claims"]
    (['E1'], ['E7'], 1, ['It is long.', 'See [E7].'])
    """
    own = [piece["id"] for piece in evidence]
    known = {*own, *shown}
    named = cited_ids(text)
    claims = [claim for claim in sentences(text) if not _VALUE_LINE.match(claim)]
    without = [claim for claim in claims if not known.intersection(cited_ids(claim))]
    return Citations(
        cited=[id for id in named if id in known],
        uncited=[id for id in own if id not in named],
        unknown=[id for id in named if id not in known],
        cited_claims=len(claims) - len(without),
        uncited_claims=without[:MOST_CLAIMS],
    )


def sentences(text: str) -> list[str]:
    """Split a text into sentences; a citation behind the full stop belongs to the sentence.

    >>> sentences("It opened in 1932. [E1] It is long.")
    ['It opened in 1932. [E1]', 'It is long.']
    """
    parts = []
    start = 0
    for found in _SENTENCE_END.finditer(text):
        parts.append(text[start : found.end()])
        start = found.end()
    parts.append(text[start:])
    # A part without a letter, such as a bullet, is no sentence.
    return [part.strip() for part in parts if any(char.isalpha() for char in part)]


def next_number(prefix: str, earlier: Iterable[Evidence]) -> int:
    """Return the number after the highest one with this prefix.

    >>> next_number("E2.", [{"id": "E2.1", "tool": "t", "args": {}, "result": "", "status": "ok"}])
    2
    """
    numbers = [
        int(piece["id"].removeprefix(prefix))
        for piece in earlier
        if piece["id"].startswith(prefix) and piece["id"].removeprefix(prefix).isdecimal()
    ]
    return 1 + max(numbers, default=0)


def id_prefix(agent: str) -> str:
    """Return the beginning of the ids of an agent's evidence; agents with a number have their own.

    >>> id_prefix("scorer"), id_prefix("juror_2")
    ('E', 'E2.')
    """
    number = re.search(r"\d+$", agent)
    return f"E{number[0]}." if number else "E"


def written(piece: Evidence) -> str:
    """Return a piece of evidence as a text for a prompt: the call and its result.

    >>> written({"id": "E1", "tool": "search", "args": {"q": "tides"}, "result": "Twice a day.", "status": "ok"})
    'search({"q": "tides"})\\nTwice a day.'
    """
    args = piece["args"]
    shown = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    return f"{piece['tool']}({shown})\n{piece['result']}"


def cited_evidence(turns: Sequence[Any]) -> list[Evidence]:
    """Return the evidence that these turns cite, each once, in order."""
    found: dict[str, Evidence] = {}
    for turn in turns:
        cited = (turn.get("citations") or {}).get("cited", ())
        for piece in turn.get("evidence") or ():
            if piece["id"] in cited:
                found.setdefault(piece["id"], piece)
    return [*found.values()]
