"""The rules by which a human reviews a verdict: pure functions of the verdict and its turns.

unresolved     the debate ended at its last round without agreement
orders_differ  the two orders of the answers have different winners
split          jurors, referees or repeated runs favour different answers, or no score has a majority
gap<x          the scores of the two answers differ by less than x (``gap``: than 1)
wide>x         the scores of repeated runs have a standard deviation above x (``wide``: above 1)
always         every verdict
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .aggregation import majority, mean_pair, winner_by_mean
from .checked import fields_in
from .errors import UsageError
from .panels import without_missing
from .transcript import RoleKind, Turn
from .verdict import Verdict

RULES = ("unresolved", "orders_differ", "split", "gap<x", "wide>x", "always")
IN_DOUBT = ("unresolved", "orders_differ", "split")
"""The default rules for reviews."""
_RULE = re.compile(
    r"(?P<name>unresolved|orders_differ|split|always|gap|wide)(?:(?P<sign>[<>])(?P<limit>[\d.]+))?"
)
_SIGNS = {"gap": "<", "wide": ">"}

KindOf = Callable[[Turn], RoleKind]


class Rule(NamedTuple):
    """A rule by its name; ``limit`` is the x of ``gap<x`` and ``wide>x``."""

    name: str
    limit: float | None = None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule.

        Raises:
            UsageError: an unknown rule; the message lists the known ones.

        >>> Rule.parse("gap<0.5"), str(Rule.parse("wide"))
        (Rule(name='gap', limit=0.5), 'wide>1')
        """
        match = _RULE.fullmatch(text.replace(" ", ""))
        sign = _SIGNS.get(match["name"]) if match else None
        try:
            if match and match["sign"] in (sign, None):
                return cls(match["name"], float(match["limit"] or 1) if sign else None)
        except ValueError:  # 1.2.3
            pass
        raise UsageError(
            f"unknown rule {text!r}; rules are {', '.join(RULES)}, with a number for x, as in gap<0.5"
        )

    def __str__(self) -> str:
        return self.name if self.limit is None else f"{self.name}{_SIGNS[self.name]}{self.limit:g}"


def reasons(
    rules: Iterable[Rule], verdict: Verdict, turns: Sequence[Turn], kind_of: KindOf
) -> list[str]:
    """Return the reasons to ask a human: for each matching rule, a sentence that begins with it.

    Args:
        rules: the rules, in the order of the sentences.
        verdict: the judge's verdict.
        turns: its transcript.
        kind_of: returns the effect of a turn on the verdict.

    >>> verdict = Verdict(protocol="single", kind="compare", scores=(7, 6.5), stop_reason="complete", rounds=1)
    >>> reasons([Rule.parse("gap<1"), Rule.parse("unresolved")], verdict, [], lambda turn: "scores")
    ['gap<1: the scores of the two answers are 0.5 apart']
    """
    whys = {rule: _why(rule, verdict, turns, kind_of) for rule in rules}
    return [f"{rule}: {why}" for rule, why in whys.items() if why]


def _why(rule: Rule, verdict: Verdict, turns: Sequence[Turn], kind_of: KindOf) -> str:
    if rule.name == "always":
        return "every verdict is reviewed"
    if rule.name == "unresolved":
        stops = (verdict.stop_reason, *_all_of("stop_reasons", verdict.details))
        ends = {"max_rounds": "at its last round", "budget": "at its budget"}
        where = next((ends[stop] for stop in ends if stop in stops), "")
        return f"the debate ended {where} without agreement" if where else ""
    if rule.name == "orders_differ":
        differ = verdict.position_consistent is False
        return "the two orders of the answers have different winners" if differ else ""
    if rule.name == "split":
        return "; ".join(_splits(verdict, turns, kind_of))
    limit = rule.limit or 0
    if rule.name == "gap":
        apart = math.inf if verdict.scores is None else abs(verdict.scores[0] - verdict.scores[1])
        return f"the scores of the two answers are {apart:g} apart" if apart < limit else ""
    spread = max(_all_of("spread", verdict.details), default=0)
    return (
        f"scores of repeated runs have a standard deviation of {spread:.3g}"
        if spread > limit
        else ""
    )


def _splits(verdict: Verdict, turns: Sequence[Turn], kind_of: KindOf) -> Iterator[str]:
    """Describe the split juries: agents of one role, or the runs of a repeated judge."""
    runs = [winner for winner in _all_of("winners", verdict.details) if isinstance(winner, str)]
    juries: dict[str, Sequence[float | str]] = {"runs": runs} if len(set(runs)) > 1 else {}
    # If a cascade asked its expensive judge, only that judge's turns count.
    asked_twice = any(turn.get("stage", "").startswith("expensive") for turn in turns)
    opinions: dict[tuple[Any, ...], dict[str, dict[int, Any]]] = {}
    for turn in without_missing(turns):
        overruled = asked_twice and turn.get("stage", "").startswith("cheap")
        if kind_of(turn) in ("votes", "panel") and turn["value"] is not None and not overruled:
            jury = opinions.setdefault((turn["role"], turn.get("repeat"), turn.get("stage")), {})
            jury.setdefault(turn["agent"], {})[turn.get("order", 1)] = turn["value"]
    for (role, *_), jury in opinions.items():
        votes = [_opinion(list(by_order.values())) for by_order in jury.values()]
        # Different votes are split. Scores usually differ, and are split if no score has a
        # majority.
        if len(set(votes)) > 1 and (isinstance(votes[0], str) or majority(votes) is None):
            juries[f"{role}s"] = votes
    for name, jurors in juries.items():
        most_first = sorted(
            Counter(jurors).items(), key=lambda counted: (-counted[1], str(counted[0]))
        )
        counts = ", ".join(
            f"{count} of {len(jurors)} for {_shown(opinion)}" for opinion, count in most_first
        )
        yield f"{name} disagree, {counts}"


def _opinion(values: list[Any]) -> float | str:
    """Return an agent's opinion over both orders: a vote, the favoured answer, or a score."""
    if isinstance(values[0], list):
        return winner_by_mean(mean_pair(values))
    if isinstance(values[0], str):
        return values[0] if len(set(values)) == 1 else "tie"
    return math.fsum(values) / len(values)


def _shown(opinion: float | str) -> str:
    if isinstance(opinion, str):
        return "a tie" if opinion == "tie" else f"answer {opinion}"
    return f"{opinion:g}"


def _all_of(key: str, details: Any) -> Iterator[Any]:
    """Yield the values under a key at any depth of a verdict's details, lists member by member."""
    for value in (value for name, value in fields_in(details) if name == key):
        members = value if isinstance(value, list) else [value]
        yield from (member for member in members if member is not None)
