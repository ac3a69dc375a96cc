"""review: runs any protocol and asks a human about verdicts that match a rule.

    prepare --> judge --no rule holds--> conclude
                  |                         ^
                  +--a rule holds--> human -+

``review(graph, when=...)`` wraps any graph. The registered protocol ``review`` wraps the protocol
that the setting ``of`` names. ``state/review_rules.py`` defines the rules, and ``nodes/human.py``
reads the human's answer. The graph pauses with LangGraph's ``interrupt``: it needs a checkpointer
and resumes with ``Command(resume=...)``.

Model calls: those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NotRequired, Unpack

from langgraph.graph.state import CompiledStateGraph

from ...nodes.human import ask_person, turn_of_person
from ...nodes.human_answers import HumanAnswer
from ...nodes.runtime.agent_runtime import without_models
from ...nodes.runtime.bound_judge import Models
from ...nodes.runtime.verdicts import number_of_orders, outcome_fields
from ...state.errors import UsageError
from ...state.graph_state import GraphState, Outcome
from ...state.protocol_facts import REVIEW_FACTS
from ...state.review_rules import IN_DOUBT, Rule, reasons
from ...state.settings.base_settings import explicitly_set
from ...state.settings.wrapper_settings import ReviewSettings
from ...state.tasks import CompareTask, ScoreTask, TaskKind
from ...state.verdict import Verdict
from ..engine.base import ProtocolGraph
from ..engine.judge_graph import context_of_run
from ..engine.options import AnyJudge, Bound, ReviewOptions
from ..engine.registry import kind_of_turns
from ..engine.wrapper import (
    GivenJudges,
    Judges,
    NestedJudges,
    Wrapper,
    gathered,
    verdict_in,
    wrapper_record,
)
from .calibrated import BothOrders
from .repeated import Repeats


class ReviewState(GraphState):
    """The state of a review: the judge's outcome, and the reasons to ask a human (empty: none)."""

    outcome: NotRequired[Outcome | None]
    why: NotRequired[list[str] | None]


def review(graph: AnyJudge, when: str | Sequence[str] = IN_DOUBT) -> Review:
    """Build a graph that asks a human about verdicts that match a rule, not compiled.

    Compile it with a checkpointer. If a rule matches, the graph pauses until
    ``Command(resume=...)`` brings the answer.

    Args:
        graph: a protocol's graph, compiled or not; its bound settings and models stay.
        when: one rule or several: ``unresolved``, ``orders_differ``, ``split``, ``gap<x``,
            ``wide>x``, ``always``.

    Raises:
        UsageError: an unknown rule, or one that can never match this judge's verdicts.

    >>> from langgraph.checkpoint.memory import InMemorySaver
    >>> from langgraph.types import Command
    >>> from jurygraph.graphs import debate
    >>> graph = review(debate.build(n=1), when="always").compile(checkpointer=InMemorySaver())
    >>> thread = {"configurable": {"thread_id": "1"}}
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task}, thread)["__interrupt__"][0].value["why"]
    ['always: every verdict is reviewed']
    >>> answer = {"answer": "tie", "reason": "Neither says why.", "name": "Ann"}
    >>> verdict = graph.invoke(Command(resume=answer), thread)["verdict"]
    >>> verdict["winner"], verdict["stop_reason"], verdict["explanation"], verdict["explained_by"]
    ('tie', 'human', 'Neither says why.', 'human:1')
    """
    chosen = {} if when is IN_DOUBT else {"when": when}
    return Review(GivenJudges(ReviewSettings.model_validate(chosen), of=graph))


class Review(Wrapper[ReviewSettings]):
    """A graph that runs a judge and has a human review verdicts that match a rule."""

    def __init__(self, judges: Judges[ReviewSettings]) -> None:
        super().__init__(ReviewState, judges)
        _check_chosen(judges.bound, judges.slots["of"].graph)

        def judged(_state: ReviewState, outcome: Outcome) -> dict[str, Any]:
            verdict = verdict_in(outcome)
            turns = outcome["transcript"]
            kind_of = kind_of_turns(verdict.protocol, verdict.details)
            why = reasons(self.settings().rules, verdict, turns, kind_of)
            return {"outcome": outcome, "why": why, **gathered(outcome)}

        def asks_person(state: ReviewState) -> str:
            return "a_rule_holds" if state.get("why") else "no_rule_holds"

        self.judge("judge", "of", judged)
        self.step("human", _human, then="conclude")
        self.end("conclude", lambda state: self.concluded(verdict_in(state.get("outcome"))))
        self.add_edge("prepare", "judge")
        self.fork("judge", asks_person, {"a_rule_holds": "human", "no_rule_holds": "conclude"})

    def check(self, task: ScoreTask | CompareTask) -> None:
        """Check also that the rules can match verdicts of the judge that the run chooses."""
        super().check(task)
        chosen, _ = self.judges.slots["of"].choose(context_of_run())
        if chosen is not None:
            _check_chosen(self.settings(), chosen)


def reviewed(verdict: Verdict, answer: HumanAnswer, turn_id: str, why: Sequence[str]) -> Verdict:
    """Return the verdict as a human decided it, with the judge's outcome under ``review``.

    Args:
        verdict: the judge's verdict.
        answer: the human's answer. If it confirms the verdict without a reason, the judge's
            explanation stays.
        turn_id: the id of the human's turn.
        why: the reasons for which the human was asked.
    """
    kept = {"score", "scores", "winner", "stop_reason", "explained_by"}
    before = verdict.model_dump(mode="json", include=kept)
    decision = "let it stand" if answer.value is None else answer.value
    about = {"why": [*why], "name": answer.name or None, "answer": decision, "judge": before}
    update: dict[str, Any] = {
        "stop_reason": "human",
        "details": {**verdict.details, "review": about},
    }
    if isinstance(answer.value, str):
        update["winner"] = answer.value
    elif answer.value is not None:
        update |= outcome_fields(answer.value)
    if answer.value is not None or answer.reason:
        update |= {"explanation": answer.words, "explained_by": turn_id}
    return verdict.model_copy(update=update)


def _human(state: ReviewState) -> dict[str, Any]:
    """Ask a human, add the answer as a turn, and update the verdict."""
    verdict = verdict_in(state.get("outcome"))
    why = state.get("why") or []
    turns = state["transcript"]
    answer = ask_person(state, why, turns, verdict.model_dump(mode="json"))
    turn = turn_of_person(answer, state, verdict.final, without_models(turns))
    decided_verdict = reviewed(verdict, answer, turn["id"], why).model_dump(mode="json")
    return {"transcript": [turn], "outcome": Outcome(verdict=decided_verdict, transcript=turns)}


def _check_chosen(settings: ReviewSettings, graph: object) -> None:
    """Check rules that the caller chose.

    The default rules serve all judges and need not match each of them.
    """
    if "when" in explicitly_set(settings):
        check_rules(settings.rules, graph)


def check_rules(
    rules: Iterable[Rule], graph: object, kind: TaskKind | None = None, repeats: int = 1
) -> None:
    """Refuse rules that can never match a judge's verdicts, if the graph shows it.

    Args:
        rules: the rules.
        graph: the compiled judge; a graph from elsewhere is not checked.
        kind: the only kind of task that the judge receives, if known.
        repeats: the number of times each item is judged.

    Raises:
        UsageError: a rule that can never match; the message explains why.
    """
    if not isinstance(graph, CompiledStateGraph):
        return
    inside = [getattr(judge, "builder", None) for _, judge in graph.get_subgraphs(recurse=True)]
    builders = [graph.builder, *inside]
    if not all(isinstance(judge, ProtocolGraph | Wrapper) for judge in builders):
        return
    for rule in rules:
        wanted = _WANTED.get(rule.name)
        if wanted and not any(_can_hold(rule, builder, kind, repeats) for builder in builders):
            # A graph that was compiled without a name is named after its protocol.
            protocol = getattr(graph.builder, "protocol", None)
            name = protocol.name if protocol and graph.name == "LangGraph" else graph.name
            raise UsageError(f"review: the rule {rule} never matches {name}, which {wanted}")


_WANTED = {
    "unresolved": "has no debate that can end at its last round without agreement (or lets another agent decide then)",
    "orders_differ": "does not judge two answers in both orders",
    "split": "does not have several jurors, referees or repeated runs that judge the same",
    "gap": "gives no scores to two answers",
    "wide": "is not repeated (`repeated`, or a run with --repeats)",
}


def _can_hold(rule: Rule, builder: Any, kind: TaskKind | None, repeats: int) -> bool:
    """Return whether a rule can match verdicts of one of the graphs inside a judge."""
    if rule.name in ("split", "wide") and (isinstance(builder, Repeats) or repeats > 1):
        return True
    if isinstance(builder, BothOrders):
        return rule.name in ("orders_differ", "gap") and kind != "score"
    if not isinstance(builder, ProtocolGraph) or rule.name == "wide":
        return False
    protocol = builder.protocol
    settings = builder.bound_judge.bound
    kinds = [task_kind for task_kind in protocol.kinds if kind in (None, task_kind)]
    if rule.name == "unresolved":
        return protocol.may_end_unresolved(settings)
    if rule.name != "split":
        return "compare" in kinds and (
            rule.name == "gap" or number_of_orders(settings, "compare") > 1
        )
    # Several agents of a role judge the same text if there are more calls than orders of the
    # answers.
    juries = [
        role for role, of_role in protocol.role_kinds.items() if of_role in ("votes", "panel")
    ]
    calls = {k: protocol.calls(settings, k, lambda _role, _what: False) for k in kinds}
    return any(
        calls[k][role].most > number_of_orders(settings, k) for k in kinds for role in juries
    )


protocol = wrapper_record(
    ReviewSettings,
    name="review",
    summary="one protocol, and a person for verdicts that match a rule",
    source="human review of doubtful verdicts around any protocol",
    role_kinds=REVIEW_FACTS.role_kinds,
    pauses_for_person=lambda settings: f"when={','.join(settings.when)}",
)


def build(
    settings: Bound[ReviewSettings] = None,
    models: Models | None = None,
    **fields: Unpack[ReviewOptions],
) -> Review:
    """Build the reviewed graph, not compiled; arguments and errors as for ``repeated.build``.

    >>> graph = build(of="single", when="orders_differ").compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> graph.invoke({"task": task})["verdict"]["protocol"]
    'review'
    """
    return Review(NestedJudges(protocol, settings, models, fields))


graph = build().compile(name="review")
