"""Makes the verdict of a protocol, from checking the task to the decision.

In this order: two answers in either order; the score after each round; the decision, by the last
score or by the referees' votes; and the first and the last node of every protocol, which its graph
wires::

    graph.agent("prepare", prepare(protocol))
    graph.agent("conclude", conclude(protocol, stop_reason))

Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ...state.aggregation import (
    Combination,
    combine_scores,
    majority_vote,
    mean_by_round,
    mean_of,
    swapped,
    winner_by_mean,
)
from ...state.errors import UsageError
from ...state.graph_state import JudgeState, Outcome
from ...state.panels import (
    RECUSED,
    failed_turns,
    reasons_of_missing,
    replaced_members,
    silent_turns,
)
from ...state.protocols import Protocol
from ...state.settings import EnsembleSettings, PositionSettings, Settings
from ...state.tasks import TEXTS, TaskKind, parse_task
from ...state.transcript import RoleKind, Score, Turn, usage_of_turns
from ...state.verdict import StopReason, Verdict, Winner
from ...state.verdict_warnings import (
    NO_TOKENS,
    NO_VOTE,
    NOT_TRIMMED,
    RECUSED_MEMBER,
    REPLACED,
    SILENT,
    repeated_words,
)
from ..common.server_rules import check_media, check_size
from ..replies.shown import verdict_warnings
from .agent_runtime import AgentRuntime
from .recusal import recuses, unchecked
from .stops import EarlyStop, tokens_are_unknown


def number_of_orders(settings: Settings, kind: TaskKind) -> int:
    """Return the number of orders in which a task is judged: 2 for calibrated comparisons, else 1.

    >>> number_of_orders(PositionSettings(), "compare"), number_of_orders(PositionSettings(), "score")
    (2, 1)
    """
    calibrated = isinstance(settings, PositionSettings) and settings.position_calibration
    return 2 if calibrated and kind == "compare" else 1


def swap_answers(task: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison with its two answers swapped."""
    kept = {name: value for name, value in task.items() if name not in ("model_1", "model_2")}
    authors = {"model_1": task.get("model_2"), "model_2": task.get("model_1")}
    known = {name: author for name, author in authors.items() if author is not None}
    return {**kept, **known, "answer_1": task["answer_2"], "answer_2": task["answer_1"]}


def turns_in_order(state: JudgeState, order: int) -> list[Turn]:
    """Return the turns of one order of the answers; all turns if there is only one order."""
    return [turn for turn in state["transcript"] if turn.get("order", order) == order]


def as_shown(state: JudgeState, order: int) -> JudgeState:
    """Return the state with the answers and the turns' values in one of two orders."""
    turns = turns_in_order(state, order)
    if order == 1:
        return {**state, "transcript": turns}
    shown = [cast("Turn", {**turn, "value": swapped(turn["value"])}) for turn in turns]
    return {**state, "task": swap_answers(state["task"]), "transcript": shown}


def orders_shown(state: JudgeState, _settings: Settings) -> str:
    """Return the outcome of ``prepare`` for protocols that may use both orders of two answers."""
    return "both_orders" if len(state["orders"]) > 1 else "one_order"


def lone_scorer(_state: JudgeState, _settings: Any) -> list[str]:
    """Return the name of a single scorer, which is asked once in each order of the answers."""
    return ["scorer"]


def score_of(turn: Mapping[str, Any]) -> Score | None:
    """Return a turn's value if it is a score or a pair of scores.

    An edited turn may have no value.
    """
    value = turn.get("value")
    return value if type(value) in (int, float, list) else None


def scores_of_roles(role_kinds: Mapping[str, RoleKind]) -> Callable[[JudgeState], list[Score]]:
    """Return the function that computes each round's mean of the agents' scores.

    Two orders of the answers count equally. If an agent has several turns in a round, the latest
    counts: it was asked again after a fork.

    Args:
        role_kinds: the protocol's role kinds; the roles of the kinds ``scores`` and ``panel``
            count, and so do unlisted roles.
    """

    # Computed once, because the function runs before and after every node.
    quiet = {role for role, kind in role_kinds.items() if kind not in ("scores", "panel")}

    def scores_by_round(state: JudgeState) -> list[Score]:
        rounds: dict[int, dict[int, dict[tuple[str, int], Score]]] = {}
        for turn in state["transcript"]:
            if turn["role"] not in quiet and type(value := turn["value"]) in (int, float, list):
                of_order = rounds.setdefault(turn["round"], {}).setdefault(turn.get("order", 1), {})
                of_order[turn["agent"], turn.get("sample", 0)] = cast("Score", value)
        means: list[Score] = []
        for orders in rounds.values():
            # Average each order first: an order with an unreadable sample would otherwise weigh
            # less.
            groups = [[*scores.values()] for scores in orders.values()]
            # A single score is returned unchanged, so a whole number stays whole.
            of_orders = [group[0] if len(group) == 1 else mean_of(group) for group in groups]
            means.append(of_orders[0] if len(of_orders) == 1 else mean_of(of_orders))
        return means

    return scores_by_round


@dataclass(frozen=True)
class Decision:
    """The outcome of a protocol's turns.

    Attributes:
        final: the score, or the pair of scores; None if the judge abstained.
        turn: the turn that explains it.
        winner: the winner of a comparison, if another rule than the higher score decides it.
        details: the protocol's own details.
        warnings: warnings for the reader of the verdict.
        score_by_round: the score after each round, if it is not the mean of the agents' scores.
    """

    final: Score | None
    turn: Turn | None
    winner: Winner | None = None
    details: dict[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    score_by_round: Sequence[Score] = ()


Decide = Callable[[JudgeState, Any], Decision]
"""A pure function of the state and the settings."""


def by_last_score(role_kinds: Mapping[str, RoleKind]) -> Decide:
    """Return the rule that the last score counts unless a ``decides`` role overrules it."""

    def decide(state: JudgeState, _settings: Any) -> Decision:
        kinds = [(turn, role_kinds.get(turn["role"], "scores")) for turn in state["transcript"]]
        final = state["scores"][-1]
        for turn in reversed([turn for turn, kind in kinds if kind == "decides"]):
            if (score := score_of(turn)) is not None:
                return Decision(score, turn, details=state["details"])
            # A human may vote for an answer, which overrules the scores like a jury's vote.
            if turn["value"] in ("1", "2", "tie"):
                return Decision(final, turn, cast("Winner", turn["value"]), state["details"])
        scoring = [turn for turn, kind in kinds if kind in ("scores", "panel")]
        return Decision(final, nearest(scoring, final), details=state["details"])

    return decide


def with_early_stop(
    decision: Decision, stop: EarlyStop | None, turns: Sequence[Turn], budget: int | None
) -> Decision:
    """Add to a decision why the debate ended early, and whether its budget could not be checked."""
    details = {**decision.details, "stopped": stop.words} if stop else decision.details
    warned = [NO_TOKENS.of()] if budget is not None and tokens_are_unknown(turns) else []
    return replace(decision, details=details, warnings=[*decision.warnings, *warned])


def nearest(turns: Iterable[Turn], final: Score) -> Turn | None:
    """Return the turn of the last round whose score is closest to the final one.

    Among equally close turns, the first is taken. For two answers, turns that prefer the same
    answer come first.
    """
    scored = [(turn, score) for turn in turns if (score := score_of(turn)) is not None]
    last = max((turn["round"] for turn, _ in scored), default=0)
    of_last = [(turn, score) for turn, score in scored if turn["round"] == last]
    return min(of_last, key=lambda pair: distance(pair[1], final), default=(None, 0.0))[0]


def distance(score: Score, final: Score) -> tuple[bool, float]:
    """Return the distance of a score to the final one as a sort key.

    For a pair, a preference for the other answer counts first.

    >>> distance(3.0, 4.0), distance([8, 6], [7, 6]), distance([6, 7], [7, 6])
    ((False, 1.0), (False, 1), (True, 2))
    """
    if isinstance(score, list) and isinstance(final, list):
        apart = sum(abs(theirs - whole) for theirs, whole in zip(score, final, strict=True))
        return (score[0] - score[1]) * (final[0] - final[1]) <= 0, apart
    assert not isinstance(score, list) and not isinstance(final, list)
    return False, abs(score - final)


def average(state: JudgeState, _settings: Settings) -> Decision:
    """Decide by the mean of the referees' last scores; the answer with the higher mean wins."""
    final = state["scores"][-1]
    turns = state["transcript"]
    details = {**state["details"], "scores_by_referee": last_scores(turns)}
    winner = winner_by_mean(final) if isinstance(final, list) else None
    return Decision(final, nearest(turns, final), winner, details)


def combine_panel(
    scores: Mapping[str, Score], how: Combination, weights: Mapping[str, float] | None
) -> tuple[Score, Winner | None, dict[str, Any]]:
    """Combine a panel's scores by another rule than the mean.

    Returns:
        The score or pair, the winner of a comparison, and the details: the rule, the weights, and
        the votes of a majority.
    """
    final = combine_scores(scores, how, weights)
    details: dict[str, Any] = {"combine": how}
    if weights is not None:
        details["weights"] = dict(weights)
    if not isinstance(final, list):
        return final, None, details
    if how == "majority":
        pairs = {member: pair for member, pair in scores.items() if isinstance(pair, list)}
        winner, votes = majority_vote(pairs)
        return final, winner, {**details, **votes}
    return final, winner_by_mean(final), details


def by_rule(state: JudgeState, settings: EnsembleSettings) -> Decision:
    """Decide by the rule of the settings, ``combine``."""
    averaged = average(state, settings)
    if settings.combine == "mean":
        return averaged
    scores = averaged.details["scores_by_referee"]
    final, winner, details = combine_panel(scores, settings.combine, settings.weights)
    return Decision(
        final,
        nearest(state["transcript"], final),
        winner,
        {**averaged.details, **details},
        [NOT_TRIMMED.of()] if settings.combine == "trimmed" and len(scores) < 3 else [],
        score_by_round=[final],
    )


def vote(state: JudgeState, settings: Settings) -> Decision:
    """Decide by the vote of more than half of the referees, with the scores of ``average``."""
    averaged = average(state, settings)
    if averaged.winner is None or averaged.final is None:
        return averaged
    winner, details = majority_vote(averaged.details["scores_by_referee"])
    last = max(turn["round"] for turn in state["transcript"])
    of_last = [(turn, turn["value"]) for turn in state["transcript"] if turn["round"] == last]
    agreeing = [
        turn for turn, pair in of_last if isinstance(pair, list) and winner_by_mean(pair) == winner
    ]
    # A turn of the last round that prefers the winner explains it, otherwise the turn closest to
    # the mean.
    turn = nearest(agreeing, averaged.final) or averaged.turn
    return Decision(averaged.final, turn, winner, {**averaged.details, **details})


def last_scores(transcript: Iterable[Turn]) -> dict[str, Score]:
    """Return the latest scores of each referee."""
    scores = ((turn["agent"], score_of(turn)) for turn in transcript if turn["role"] == "referee")
    return {agent: score for agent, score in scores if score is not None}


def scores_over_orders(straight: Iterable[Turn], mapped: Iterable[Turn]) -> dict[str, list[float]]:
    """Average each referee's latest scores over the two orders of the answers."""
    first = last_scores(straight)
    second = last_scores(mapped)
    return {agent: cast("list[float]", mean_of([first[agent], second[agent]])) for agent in first}


def check_kind(kind: TaskKind, judge: str, kinds: Sequence[TaskKind]) -> None:
    """Refuse a kind of task that the judge of this name does not take."""
    if kind not in kinds:
        raise UsageError(f"{judge} takes no task of the kind {kind!r}, only {' and '.join(kinds)}")


Node = Callable[[JudgeState, AgentRuntime[Any]], Awaitable[dict[str, Any]]]
Weigh = Callable[[Outcome, Outcome], Verdict]
"""Makes one verdict from both orders' outcomes; the second is already in the task's order."""


Details = Callable[[Any], Awaitable[dict[str, Any]]]
"""Returns the initial details of a protocol from the settings."""


def prepare(protocol: Protocol[Any], details: Details | None = None) -> Node:
    """Return the node that checks the task before any model call and clears the rest of the state.

    Args:
        protocol: the protocol.
        details: returns the initial details from the settings; most protocols have none.

    The node raises:
        UsageError: an invalid task (the message names the field), or a kind of task that the
            protocol does not take.
    """

    async def prepare_task(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        task = parse_task(state.get("task"))
        check_size("characters", task)
        check_media(task.media)
        check_kind(task.kind, protocol.name, protocol.kinds)
        protocol.check_task(runtime.settings, task)
        begun: dict[str, Any] = {
            # A reused thread has the values of its last run. The reducers would add to them, and
            # None clears them.
            **dict.fromkeys(("transcript", "warnings", "details", "round")),
            "orders": [*range(1, number_of_orders(runtime.settings, task.kind) + 1)],
            "scores": [],
            "verdict": None,
            "task": task.model_dump(mode="json"),
        }
        if details is not None:
            begun["details"] = await details(runtime.settings) or None
        return begun

    return prepare_task


def complete(_state: JudgeState, _settings: Any) -> StopReason:
    """Return the stop reason of a protocol that always runs to its end."""
    return "complete"


def conclude(
    protocol: Protocol[Any],
    stop_reason: Callable[[JudgeState, Any], StopReason] = complete,
    decide: Decide | None = None,
    weigh: Weigh | None = None,
) -> Node:
    """Return the node that builds the verdict from the turns in the state.

    Args:
        protocol: the protocol that the verdict names.
        stop_reason: returns why the protocol ended, from the state and the settings.
        decide: returns the outcome of the turns; by default, the score of the last round, unless a
            turn of a role that ``decides`` overrules it.
        weigh: makes one verdict of two if a comparison ran in both orders of the answers.
    """
    decide = decide or by_last_score(protocol.role_kinds)
    scores_by_round = scores_of_roles(protocol.role_kinds)

    def verdict_of(state: JudgeState, settings: Any) -> Verdict:
        decision = decide(state, settings)
        repeated = repeated_words(state["transcript"])
        # A text may state a verdict itself, which causes a warning.
        texts = {name.replace("_", " "): state["task"].get(name) for name in TEXTS}
        stated = verdict_warnings(texts)
        explanation: dict[str, Any] = {}
        if turn := decision.turn:
            words = (
                turn["content"].strip() or f"{turn['agent']} gave {turn['value']} and no reasons."
            )
            explanation = {"explanation": words, "explained_by": turn.get("id")}
        return Verdict(
            protocol=protocol.name,
            kind=state["task"]["kind"],
            # A vote may choose the answer with the lower score, and then overrules the winner by
            # scores.
            **outcome_fields(decision.final)
            | ({"winner": decision.winner} if decision.winner else {}),
            stop_reason=stop_reason(state, settings),
            rounds=state["round"],
            score_by_round=[*decision.score_by_round] or state["scores"],
            details=decision.details,
            # Each turn of a model repeats its warnings. List each once, in the order of the first
            # turns.
            warnings=tuple(
                dict.fromkeys((*state["warnings"], *repeated, *decision.warnings, *stated))
            ),
            **explanation,
            **usage_of_turns(state["transcript"]).flat(),
        )

    async def build_verdict(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        settings = runtime.settings
        if weigh is None or len(state["orders"]) < 2:
            verdict = verdict_of(state, settings)
            return {"verdict": of_panel(verdict, state, settings).model_dump(mode="json")}
        outcomes = []
        for order in (1, 2):
            # Build the verdict of one order alone. The turns' values are in the task's order.
            alone: JudgeState = {**state, "transcript": turns_in_order(state, order)}
            made = verdict_of({**alone, "scores": scores_by_round(alone)}, settings)
            outcomes.append(
                Outcome(verdict=made.model_dump(mode="json"), transcript=alone["transcript"])
            )
        verdict = of_panel(weigh(*outcomes), state, settings)
        return {"verdict": verdict.model_dump(mode="json")}

    def of_panel(verdict: Verdict, state: JudgeState, settings: Any) -> Verdict:
        turns = state["transcript"]
        verdict = with_failed(verdict, turns, protocol.role_kinds)
        verdict = with_citations(verdict, turns)
        if not recuses(settings):
            return verdict
        voters = [role for role, kind in protocol.role_kinds.items() if kind in ("panel", "votes")]
        warnings = unchecked(state["task"], turns, voters)
        return verdict.model_copy(update={"warnings": (*verdict.warnings, *warnings)})

    return build_verdict


def with_failed(
    verdict: Verdict, transcript: Sequence[Turn], role_kinds: Mapping[str, RoleKind]
) -> Verdict:
    """Add the members that did not vote, were silent or were replaced to details and warnings."""
    missing = reasons_of_missing(transcript)
    silent = {
        f"{turn['agent']}, round {turn['round']}": str(turn["problem"])
        for turn in silent_turns(transcript)
        # A recused member is missing in every round.
        if turn.get("fault") != RECUSED
    }
    recused = [
        str(agent)
        for (agent, *_), turns in failed_turns(transcript).items()
        if {turn.get("fault") for turn in turns} == {RECUSED}
    ]
    replaced = replaced_members(transcript)
    found: dict[str, Any] = {
        "missing": missing,
        "recused": recused,
        "silent": silent,
        "replaced": replaced,
    }
    if not any(found.values()):
        return verdict
    # An advocate has no vote.
    roles = {turn["agent"]: turn["role"] for turn in transcript}
    warnings = []
    for agent, reason in missing.items():
        kind = SILENT if role_kinds.get(roles[agent]) == "argues" else NO_VOTE
        kind = RECUSED_MEMBER if agent in recused else kind
        warnings.append(kind.of(agent, problem=reason))
    warnings += [SILENT.of(who, problem=reason) for who, reason in silent.items()]
    warnings += [REPLACED.of(agent, **facts) for agent, facts in replaced.items()]
    details = {**verdict.details, **{name: of for name, of in found.items() if of}}
    return verdict.model_copy(
        update={"details": details, "warnings": (*verdict.warnings, *warnings)}
    )


def with_citations(verdict: Verdict, transcript: Sequence[Turn]) -> Verdict:
    """Add to the details what each turn of an agent with tools cites of its evidence."""
    citations = {turn["id"]: turn["citations"] for turn in transcript if "citations" in turn}
    if not citations:
        return verdict
    details = {**verdict.details, "citations": citations}
    return verdict.model_copy(update={"details": details})


def joint_verdict(verdicts: Sequence[Verdict], turns: Iterable[Turn], **own: Any) -> Verdict:
    """Combine several verdicts on the same task that were made side by side.

    Args:
        verdicts: the verdicts in order. Their rounds are not added up. If their stop reasons
            differ, the joint one is ``complete``.
        turns: the turns of all verdicts, for their usage.
        own: the other fields; ``warnings`` are added after the verdicts' warnings, each once.
    """
    by_round = [
        [list(s) if isinstance(s, tuple) else s for s in made.score_by_round] for made in verdicts
    ]
    warnings = [warning for verdict in verdicts for warning in verdict.warnings]
    stops = {verdict.stop_reason for verdict in verdicts}
    together: dict[str, Any] = {
        "protocol": verdicts[0].protocol,
        "kind": verdicts[0].kind,
        "stop_reason": stops.pop() if len(stops) == 1 else "complete",
        "rounds": max(verdict.rounds for verdict in verdicts),
        "score_by_round": mean_by_round(by_round),
        "warnings": tuple(dict.fromkeys([*warnings, *own.pop("warnings", ())])),
    }
    return Verdict(**together, **own, **usage_of_turns(turns).flat())


def outcome_fields(value: Score | None) -> dict[str, Any]:
    """Return the fields of a verdict for a final score or a final pair; none for an abstention."""
    if value is None:
        return {}
    if isinstance(value, list):
        return {"scores": (value[0], value[1]), "winner": winner_by_mean(value)}
    return {"score": value}
