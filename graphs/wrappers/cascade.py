"""cascade: a cheap protocol, and an expensive one only if the cheap one is in doubt.

    prepare --> cheap --sure--> conclude
                  |                ^
                  +--in doubt--> expensive

``cascade(cheap, expensive)`` takes any two graphs. The registered protocol ``cascade`` takes the
two that its settings name. A verdict is in doubt if it ended at its last round (``unresolved``), if
its two answer orders disagree (``inconsistent``), if the scores of its two answers differ by less
than a threshold (``gap``), or if too small a share of a panel's votes, or of the probability of a
score, supports it (``confidence``, not by default). If the expensive protocol is asked, its verdict counts.

Model calls: those of the cheap protocol; in doubt also those of the expensive one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, NotRequired, Unpack, cast

from ...nodes.runtime.bound_judge import Models
from ...state.aggregation import winner_by_mean
from ...state.errors import UsageError
from ...state.graph_state import GraphState, Outcome
from ...state.protocols import CallRange, CallsByRole, Can
from ...state.settings.wrapper_settings import REASONS, CascadeSettings, Reason
from ...state.tasks import TaskKind
from ...state.transcript import Turn, usage_of_turns
from ...state.verdict import Verdict, Winner
from ..engine.options import AnyJudge, Bound, CascadeOptions
from ..engine.wrapper import (
    Count,
    GivenJudges,
    Judges,
    NestedJudges,
    Wrapper,
    calls_inside,
    gathered,
    marked_outcome,
    verdict_in,
    wrapper_record,
)

When = Sequence[Reason] | Callable[[Verdict], bool]

Doubt = Callable[[Verdict, CascadeSettings], str | None]
"""Returns why a verdict is in doubt under the settings of a run, or ``None``."""


class CascadeState(GraphState):
    """The state of a cascade: each protocol's outcome, and why the second protocol was asked."""

    cheap: NotRequired[Outcome | None]
    because: NotRequired[str | None]
    expensive: NotRequired[Outcome | None]


def cascade(
    cheap: AnyJudge,
    expensive: AnyJudge,
    when: When = REASONS,
    gap: float = 1.0,
    confidence: float = 0.6,
) -> Cascade:
    """Build a graph that asks the second protocol only if the first is in doubt, not compiled.

    Args:
        cheap: the graph that is always asked, compiled or not; its bound settings and models stay.
        expensive: the graph that is asked in doubt.
        when: the reasons that count as doubt, or a function that returns whether the cheap verdict
            is in doubt.
        gap: two answers are too close if their scores differ by less.
        confidence: with ``when="confidence"``, the share of votes or of probability below which a
            verdict is in doubt.

    Raises:
        InputError: an unknown reason, a ``gap`` below 0, or a ``confidence`` outside 0 to 1.

    >>> from jurygraph.graphs import debate, single
    >>> graph = cascade(single.build(), debate.build(n=1), gap=0.5).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "The tide turned."}
    >>> graph.invoke({"task": task})["verdict"]["details"]["asked"]
    ['single', 'debate']
    """
    chosen: dict[str, Any] = {} if callable(when) else {"when": when, "gap": gap}
    if not callable(when) and confidence != 0.6:
        chosen["confidence"] = confidence
    judges = GivenJudges(CascadeSettings(**chosen), cheap=cheap, expensive=expensive)
    if not callable(when):
        return Cascade(judges)
    reason = f"{getattr(when, '__name__', type(when).__name__)}: reports doubt"
    graph = Cascade(judges, lambda verdict, _settings: reason if when(verdict) else None)
    graph.parameters = {"when": getattr(when, "__qualname__", type(when).__qualname__)}
    return graph


def escalation_reason(verdict: Verdict, settings: CascadeSettings) -> str | None:
    """Return the first reason of the settings why a verdict is in doubt, or ``None``."""
    judge = verdict.protocol
    gap = abs(verdict.scores[0] - verdict.scores[1]) if verdict.scores else inf
    words: dict[Reason, str] = {}
    if verdict.stop_reason == "max_rounds":
        words["unresolved"] = f"{judge} ended at its last round"
    elif verdict.stop_reason == "budget":
        words["unresolved"] = f"{judge} ended without agreement, because its budget was spent"
    if verdict.position_consistent is False:
        words["inconsistent"] = f"{judge} has another winner with the answers swapped"
    if gap < settings.gap:
        words["gap"] = f"{gap:g} between the answers is less than {settings.gap:g}"
    if "confidence" in settings.when:
        share = confidence_of(verdict.winner, verdict.details)
        if share is None:
            raise UsageError(
                f"when=confidence needs votes of a panel or probabilities of scores, and a verdict "
                f"of {judge} has neither: use another reason, or a panel or geval as cheap"
            )
        if share < settings.confidence:
            words["confidence"] = f"{share:.2g} of {judge} supports its verdict, less than " + (
                f"{settings.confidence:g}"
            )
    return next((f"{name}: {words[name]}" for name in settings.when if name in words), None)


def confidence_of(winner: Winner | None, details: Mapping[str, Any]) -> float | None:
    """Return how far a verdict is supported, as a share, or ``None`` if its details do not tell.

    It is the probability of the likeliest score (``geval``), the share of the jurors' votes for the
    winner (``samre``), the share of runs with this winner (``repeated``), or the share of a panel's
    members that prefer the winner or gave the most frequent score.

    >>> confidence_of("1", {"votes": {"1": 3, "2": 2}, "jurors": dict.fromkeys("abcde")})
    0.6
    >>> confidence_of(None, {"distribution": {"3": 0.25, "4": 0.75}}), confidence_of("1", {})
    (0.75, None)
    """
    if distribution := details.get("distribution"):
        return float(max(distribution.values()))
    jurors = details.get("jurors")
    votes = details.get("votes")
    if winner and jurors and votes and 0 < sum(votes.values()) <= len(jurors):
        return float(votes.get(winner, 0) / sum(votes.values()))
    ballots: list[Any] = list(details.get("winners") or ())
    if not ballots:
        given = (details.get("scores_by_referee") or {}).values()
        ballots = [winner_by_mean(score) if isinstance(score, list) else score for score in given]
    if not ballots:
        return None
    supported = ballots.count(winner) if winner else Counter(ballots).most_common(1)[0][1]
    return supported / len(ballots)


class Cascade(Wrapper[CascadeSettings]):
    """A graph with a cheap judge, and an expensive one for verdicts in doubt."""

    def __init__(self, judges: Judges[CascadeSettings], doubt: Doubt = escalation_reason) -> None:
        super().__init__(CascadeState, judges)

        def heard(stage: str, state: CascadeState, outcome: Outcome) -> dict[str, Any]:
            marked = marked_outcome(outcome, partial(_staged, stage, state))
            update = {stage: marked, **gathered(marked)}
            if stage == "cheap":
                update["because"] = doubt(verdict_in(outcome), self.settings())
                if update["because"]:
                    # The expensive verdict counts. It may have fewer rounds, but the reducer takes
                    # the highest number.
                    del update["round"]
            return update

        def in_doubt(state: CascadeState) -> str:
            return "in_doubt" if state.get("because") else "sure"

        for stage in judges.slots:
            self.judge(stage, stage, partial(heard, stage), mark=partial(_staged, stage))
        self.end("conclude", self._conclude)
        self.add_edge("prepare", "cheap")
        self.fork("cheap", in_doubt, {"in_doubt": "expensive", "sure": "conclude"})
        self.add_edge("expensive", "conclude")

    def _conclude(self, state: CascadeState) -> dict[str, Any]:
        """Return the last verdict with the usage of both protocols."""
        outcomes = [state.get("cheap"), state.get("expensive")]
        verdicts = [verdict_in(outcome) for outcome in outcomes if outcome]
        details = {
            "asked": [verdict.protocol for verdict in verdicts],
            "because": state.get("because"),
            "cheap": verdicts[0].model_dump(
                mode="json", include={"score", "scores", "winner", "stop_reason"}
            ),
            **({"details": verdicts[-1].details} if verdicts[-1].details else {}),
        }
        warnings = tuple(
            dict.fromkeys(warning for verdict in verdicts for warning in verdict.warnings)
        )
        both = {
            "details": details,
            "warnings": warnings,
            **usage_of_turns(state["transcript"]).flat(),
        }
        # The details list the protocols that were asked, so the verdict can bear the cascade's
        # name.
        name = (
            self.judges.protocol if isinstance(self.judges, NestedJudges) else verdicts[-1].protocol
        )
        return self.concluded(verdicts[-1].model_copy(update={**both, "protocol": name}))


def _staged(stage: str, _state: CascadeState, turn: Turn) -> Turn:
    """Mark a turn with its stage; a cascade inside a cascade gives both: ``expensive.cheap``."""
    inner = [turn["stage"]] if "stage" in turn else []
    marks = {"id": f"{stage}/{turn.get('id')}", "stage": ".".join([stage, *inner])}
    return cast("Turn", {**turn, **marks})


def counted(count: Count, settings: CascadeSettings, kind: TaskKind, can: Can) -> CallsByRole:
    """Count the calls of both protocols, whose roles are named like ``cheap.scorer``.

    The expensive protocol is only asked in doubt, so its minimum is 0.
    """
    # A single text has no orders that could disagree and no two scores that could be close.
    of_score = {"unresolved", "confidence"} & {*settings.when}
    in_doubt = bool(of_score if kind == "score" else settings.when)
    calls: dict[str, CallRange] = {}
    for place in settings.places:

        def can_there(role: str, what: str, place: str = place) -> bool:
            return can(f"{place}.{role}", what)

        for role, of_role in calls_inside(count, settings, kind, can_there, place).items():
            sure = place == "cheap"
            calls[f"{place}.{role}"] = of_role if sure else CallRange(0, of_role.most * in_doubt)
    return calls


protocol = wrapper_record(
    CascadeSettings,
    name="cascade",
    summary="a cheap protocol, and an expensive one where the cheap one is unsure",
    source="composition of any two protocols",
    calls=partial(counted, "calls"),
    calls_once=partial(counted, "calls_once"),
)


def build(
    settings: Bound[CascadeSettings] = None,
    models: Models | None = None,
    **fields: Unpack[CascadeOptions],
) -> Cascade:
    """Build the graph of two protocols, not compiled; errors as for ``repeated.build``.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role, ``"*"`` for all others; each protocol
            takes those of its own roles. Models for one of the two only:
            ``cheap_settings={"models": {"*": "openai:..."}}``.
        **fields: single settings, such as ``expensive="chateval"``, ``cheap_settings={"repair":
            0}`` or ``gap=2``.

    >>> graph = build(gap=3, expensive_settings={"n": 1}).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "The tide turned."}
    >>> graph.invoke({"task": task})["verdict"]["details"]["because"]
    'gap: 0 between the answers is less than 3'
    """
    return Cascade(NestedJudges(protocol, settings, models, fields))


graph = build().compile(name="cascade")
