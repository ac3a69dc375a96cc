"""The part of a protocol's record that readers of finished runs need.

A report must not import a graph to learn that a critic objects. The bundled protocols' facts are
therefore here, and their records in ``graphs`` take them from here. The facts of another package's
protocol are in its own record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .settings.protocol_settings import GROUPS, SAME
from .transcript import RoleKind


@dataclass(frozen=True)
class Ensemble:
    """The rules for ensembles of any size of a protocol with several judges that do not talk.

    Attributes:
        single: the protocol of a single such judge; a run that repeats it contains ensembles too.
        settings: returns the settings of an ensemble of a number of judges; with ``True``, of equal
            judges, so that the first k of them are the ensemble of k.
        alike: returns whether the judges of a run with these settings are equal.
    """

    single: str
    settings: Callable[[int, bool], Mapping[str, Any]]
    alike: Callable[[Mapping[str, Any]], bool] = lambda _settings: True


@dataclass(frozen=True, kw_only=True)
class ProtocolFacts:
    """The facts about a protocol for counting and comparing its verdicts.

    Attributes:
        role_kinds: the effect of each role's turns on the verdict; by default ``scores``.
        ensemble: the rules for smaller and larger ensembles, for judges that do not talk.
        is_baseline: whether it is a single judge, the default base for gains.
        score_gaps: whether both answers have a total after each round (``by_round``) or once
            (``once``), so that reports can show the gap between them.
    """

    role_kinds: Mapping[str, RoleKind] = field(default_factory=dict)
    ensemble: Ensemble | None = None
    is_baseline: bool = False
    score_gaps: Literal["none", "once", "by_round"] = "none"


def ensemble_of_size(referees: int, alike: bool) -> dict[str, Any]:
    """Return the settings of an ensemble of a given size.

    All referees share one persona if ``alike`` is set or there are fewer personas than referees.
    """
    same = {"roles": SAME} if alike or referees > len(GROUPS["diverse"]) else {}
    return {"referees": referees, **same}


def are_alike(settings: Mapping[str, Any]) -> bool:
    """Return whether all referees have one role, all are asked, and their scores are averaged."""
    if settings.get("combine", "mean") != "mean" or settings.get("stop"):
        return False
    roles = settings.get("roles", SAME)
    return roles == SAME if isinstance(roles, str) else len({str(role) for role in roles}) == 1


BASELINE_FACTS = ProtocolFacts(role_kinds={"judge": "scores"}, is_baseline=True, score_gaps="once")
CHATEVAL_FACTS = ProtocolFacts(
    role_kinds={"planner": "plans", "referee": "panel", "summarizer": "assists"}
)
CHECKLIST_FACTS = ProtocolFacts(role_kinds={"checker": "assists", "tally": "scores"})
COMMIT_FIRST_FACTS = ProtocolFacts(role_kinds={"committer": "assists", "scorer": "scores"})
DEBATE_FACTS = ProtocolFacts(
    role_kinds={
        "scorer": "scores",
        "critic": "objects",
        "tie_breaker": "decides",
        "human": "decides",
        "commander": "assists",
    }
)
ENSEMBLE_FACTS = ProtocolFacts(
    role_kinds={"planner": "plans", "referee": "panel"},
    ensemble=Ensemble(single="single", settings=ensemble_of_size, alike=are_alike),
)
FAIREVAL_FACTS = ProtocolFacts(role_kinds={"scorer": "scores"})
GEVAL_FACTS = ProtocolFacts(role_kinds={"planner": "plans", "scorer": "scores"})
MORE_FACTS = ProtocolFacts(
    role_kinds={"advocate": "argues", "aggregator": "argues", "judge": "scores"},
    score_gaps="by_round",
)
REVIEW_FACTS = ProtocolFacts(role_kinds={"human": "decides"})
SAMRE_FACTS = ProtocolFacts(
    role_kinds={
        "planner": "plans",
        "advocate": "argues",
        "judge": "scores",
        "juror": "votes",
        "summarizer": "assists",
    },
    score_gaps="by_round",
)
SINGLE_FACTS = ProtocolFacts(role_kinds={"scorer": "scores"}, is_baseline=True)
_ANY_ROLES = ProtocolFacts()
"""Wrappers whose settings choose the protocols inside."""

BUNDLED: Mapping[str, ProtocolFacts] = {
    "baseline": BASELINE_FACTS,
    "calibrated": _ANY_ROLES,
    "cascade": _ANY_ROLES,
    "chateval": CHATEVAL_FACTS,
    "checklist": CHECKLIST_FACTS,
    "commit_first": COMMIT_FIRST_FACTS,
    "debate": DEBATE_FACTS,
    "ensemble": ENSEMBLE_FACTS,
    "faireval": FAIREVAL_FACTS,
    "geval": GEVAL_FACTS,
    "more": MORE_FACTS,
    "multiagent": DEBATE_FACTS,
    "repeated": _ANY_ROLES,
    "review": REVIEW_FACTS,
    "samre": SAMRE_FACTS,
    "single": SINGLE_FACTS,
}
"""The facts about the bundled protocols, in alphabetical order."""
