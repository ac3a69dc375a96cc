"""Make the verdict of a protocol: from the task that is checked first to what the turns come to.

In this order: two answers in either order; the score after each round; the decision, by the last score or by the votes
of referees; and the first and the last node of every protocol, which are made where its graph is wired::

    graph.agent("prepare", prepare(protocol))
    graph.agent("conclude", conclude(protocol, stop_reason))

Nothing here calls a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ..state.aggregation import majority_vote, mean_by_round, mean_of, swapped, winner_by_mean
from ..state.errors import UsageError
from ..state.graph_state import JudgeOutput, JudgeState
from ..state.protocols import Protocol
from ..state.settings import PositionSettings, Settings
from ..state.tasks import TEXTS, TaskKind, parse_task
from ..state.transcript import RoleKind, Score, Turn, usage_of_turns
from ..state.verdict import StopReason, Verdict, Winner, winner_of
from ..state.verdict_warnings import repeated_words
from .agent_runtime import AgentRuntime
from .replies.shown import verdict_warnings
from .server_rules import check_size


def number_of_orders(settings: Settings, kind: TaskKind) -> int:
    """Return the number of orders in which a task is judged: two for calibrated comparisons, one for a single text.

    >>> number_of_orders(PositionSettings(), "compare"), number_of_orders(PositionSettings(), "score")
    (2, 1)
    """
    calibrated = isinstance(settings, PositionSettings) and settings.position_calibration
    return 2 if calibrated and kind == "compare" else 1


def swap_answers(task: dict[str, Any]) -> dict[str, Any]:
    """Return a comparison with its two answers in each other's place."""
    return {**task, "answer_1": task["answer_2"], "answer_2": task["answer_1"]}


def turns_in_order(state: JudgeState, order: int) -> list[Turn]:
    """Return the turns of one order of the answers; all of them where there is only one order."""
    return [turn for turn in state["transcript"] if turn.get("order", order) == order]


def as_shown(state: JudgeState, order: int) -> JudgeState:
    """Return the state as agents of one of two orders see it: the answers and the turns' values in that order."""
    turns = turns_in_order(state, order)
    if order == 1:
        return {**state, "transcript": turns}
    shown = [cast("Turn", {**turn, "value": swapped(turn["value"])}) for turn in turns]
    return {**state, "task": swap_answers(state["task"]), "transcript": shown}


def orders_shown(state: JudgeState, _settings: Settings) -> str:
    """Name the outcome of ``prepare`` for protocols that may show two answers in both orders."""
    return "both_orders" if len(state["orders"]) > 1 else "one_order"


def lone_scorer(_state: JudgeState, _settings: Any) -> list[str]:
    """Return the name of a scorer who is alone; in both orders of the answers it is asked once in each."""
    return ["scorer"]


def score_of(turn: Mapping[str, Any]) -> Score | None:
    """Return a turn's value if it is a score or a pair of scores; also of an edit, which may hold no value."""
    value = turn.get("value")
    return value if type(value) in (int, float, list) else None


def scores_of_roles(role_kinds: Mapping[str, RoleKind]) -> Callable[[JudgeState], list[Score]]:
    """Make the function that returns, for each round, the mean of the scores that agents gave in it.

    Where answers were shown in two orders, both count alike. Of several turns of one agent in a round the latest
    counts, as where a thread was taken back and it was asked again.

    Args:
        role_kinds: of the protocol; the scores of roles that are of the kind ``scores`` or ``panel`` count, which is
            what a role is of which nothing is said.
    """

    # Asked before and behind every node.
    quiet = {role for role, kind in role_kinds.items() if kind not in ("scores", "panel")}

    def scores_by_round(state: JudgeState) -> list[Score]:
        rounds: dict[int, dict[int, dict[tuple[str, int], Score]]] = {}
        for turn in state["transcript"]:
            if turn["role"] not in quiet and type(value := turn["value"]) in (int, float, list):
                of_order = rounds.setdefault(turn["round"], {}).setdefault(turn.get("order", 1), {})
                of_order[turn["agent"], turn.get("sample", 0)] = cast("Score", value)
        means: list[Score] = []
        for orders in rounds.values():
            # Order by order first: one with an unreadable sample would otherwise weigh less than the other.
            groups = [[*scores.values()] for scores in orders.values()]
            # A single score stays as it is, a whole number a whole number.
            of_orders = [group[0] if len(group) == 1 else mean_of(group) for group in groups]
            means.append(of_orders[0] if len(of_orders) == 1 else mean_of(of_orders))
        return means

    return scores_by_round


@dataclass(frozen=True)
class Decision:
    """Hold what a protocol's turns come to.

    Attributes:
        final: the score, or the pair of scores.
        turn: the turn whose words explain it.
        winner: the winner of a comparison, where something other than the higher score decides it.
        details: what is particular to the protocol.
        warnings: what a reader of the verdict should know.
    """

    final: Score
    turn: Turn | None
    winner: Winner | None = None
    details: dict[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()


Decide = Callable[[JudgeState, Any], Decision]
"""A pure function of the state and the settings."""


def by_last_score(role_kinds: Mapping[str, RoleKind]) -> Decide:
    """Make the rule that the score of the last round stands, unless somebody who ``decides`` overrules it."""

    def decide(state: JudgeState, _settings: Any) -> Decision:
        kinds = [(turn, role_kinds.get(turn["role"], "scores")) for turn in state["transcript"]]
        final = state["scores"][-1]
        for turn in reversed([turn for turn, kind in kinds if kind == "decides"]):
            if (score := score_of(turn)) is not None:
                return Decision(score, turn, details=state["details"])
            # A person may vote for an answer, which overrules the scores as a jury's vote does.
            if turn["value"] in ("1", "2", "tie"):
                return Decision(final, turn, cast("Winner", turn["value"]), state["details"])
        scoring = [turn for turn, kind in kinds if kind in ("scores", "panel")]
        return Decision(final, nearest(scoring, final), details=state["details"])

    return decide


def nearest(turns: Iterable[Turn], final: Score) -> Turn | None:
    """Return, of the turns of the last round with a score, the one whose score is nearest to the final one.

    Of equally near ones the first is taken; for two answers, one that prefers the same answer comes first.
    """
    scored = [(turn, score) for turn in turns if (score := score_of(turn)) is not None]
    last = max((turn["round"] for turn, _ in scored), default=0)
    of_last = [(turn, score) for turn, score in scored if turn["round"] == last]
    return min(of_last, key=lambda pair: distance(pair[1], final), default=(None, 0.0))[0]


def distance(score: Score, final: Score) -> tuple[bool, float]:
    """Return how far a score is from the final one; for a pair, whether it prefers the other answer comes first.

    >>> distance(3.0, 4.0), distance([8, 6], [7, 6]), distance([6, 7], [7, 6])
    ((False, 1.0), (False, 1), (True, 2))
    """
    if isinstance(score, list) and isinstance(final, list):
        apart = sum(abs(theirs - whole) for theirs, whole in zip(score, final, strict=True))
        return (score[0] - score[1]) * (final[0] - final[1]) <= 0, apart
    assert not isinstance(score, list) and not isinstance(final, list)
    return False, abs(score - final)


def average(state: JudgeState, _settings: Settings) -> Decision:
    """Take the mean of the referees' last scores; of two answers the one with the higher mean wins."""
    final, turns = state["scores"][-1], state["transcript"]
    details = {**state["details"], "scores_by_referee": last_scores(turns)}
    winner = winner_by_mean(final) if isinstance(final, list) else None
    return Decision(final, nearest(turns, final), winner, details)


def vote(state: JudgeState, settings: Settings) -> Decision:
    """Take the mean as ``average`` does, but of two answers the one wins that most referees prefer."""
    averaged = average(state, settings)
    if averaged.winner is None:
        return averaged
    winner, details = majority_vote(averaged.details["scores_by_referee"])
    last = max(turn["round"] for turn in state["transcript"])
    of_last = [(turn, turn["value"]) for turn in state["transcript"] if turn["round"] == last]
    agreeing = [turn for turn, pair in of_last if isinstance(pair, list) and winner_by_mean(pair) == winner]
    # Of the turns of the last round that prefer the winner, if any does, the one nearest to the mean explains it.
    turn = nearest(agreeing, averaged.final) or averaged.turn
    return Decision(averaged.final, turn, winner, {**averaged.details, **details})


def last_scores(transcript: Iterable[Turn]) -> dict[str, Score]:
    """Return the latest scores of each referee."""
    scores = ((turn["agent"], score_of(turn)) for turn in transcript if turn["role"] == "referee")
    return {agent: score for agent, score in scores if score is not None}


def scores_over_orders(straight: Iterable[Turn], mapped: Iterable[Turn]) -> dict[str, list[float]]:
    """Average each referee's latest scores over the two orders of the answers."""
    first, second = last_scores(straight), last_scores(mapped)
    return {agent: cast("list[float]", mean_of([first[agent], second[agent]])) for agent in first}


def check_kind(kind: TaskKind, judge: str, kinds: Sequence[TaskKind]) -> None:
    """Refuse a kind of task that the judge of this name does not take."""
    if kind not in kinds:
        raise UsageError(f"{judge} takes no task of the kind {kind!r}, only {' and '.join(kinds)}")


Node = Callable[[JudgeState, AgentRuntime[Any]], Awaitable[dict[str, Any]]]
Weigh = Callable[[JudgeOutput, JudgeOutput], Verdict]
"""A function that makes one verdict of both orders' outcomes; the second is already in the task's order."""


Details = Callable[[Any], Awaitable[dict[str, Any]]]
"""Returns, from the settings, the details with which a protocol begins."""


def prepare(protocol: Protocol[Any], details: Details | None = None) -> Node:
    """Make the node that checks the task before any model is called and empties the rest of the state.

    Args:
        protocol: whose task it is.
        details: returns the details to begin with, from the settings; most protocols have none.

    The node raises:
        UsageError: a bad task (names the field), or a kind of task that the protocol does not take.
    """

    async def prepare_task(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        task = parse_task(state.get("task"))
        check_size("characters", task)
        check_kind(task.kind, protocol.name, protocol.kinds)
        begun: dict[str, Any] = {
            # A thread may be used again: the reducers would add to what its last run left, and None empties them.
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
    """Return the stop reason of a protocol that nothing cuts short."""
    return "complete"


def conclude(
    protocol: Protocol[Any],
    stop_reason: Callable[[JudgeState, Any], StopReason] = complete,
    decide: Decide | None = None,
    weigh: Weigh | None = None,
) -> Node:
    """Make the node that builds the verdict from the turns in the state.

    Args:
        protocol: the protocol that the verdict names.
        stop_reason: returns why the protocol ended, from the state and the settings alone.
        decide: returns what the turns come to; by default the score of the last round, unless a turn of a role that
            ``decides`` overrules it.
        weigh: makes one verdict of two where a comparison was held in both orders of the answers.
    """
    decide = decide or by_last_score(protocol.role_kinds)
    scores_by_round = scores_of_roles(protocol.role_kinds)

    def verdict_of(state: JudgeState, settings: Any) -> Verdict:
        decision, repeated = decide(state, settings), repeated_words(state["transcript"])
        # A text may state a verdict itself.
        texts = {name.replace("_", " "): state["task"].get(name) for name in TEXTS}
        stated = verdict_warnings(texts)
        explanation: dict[str, Any] = {}
        if turn := decision.turn:
            words = turn["content"].strip() or f"{turn['agent']} gave {turn['value']} and no reasons."
            explanation = {"explanation": words, "explained_by": turn.get("id")}
        return Verdict(
            protocol=protocol.name,
            kind=state["task"]["kind"],
            # A vote may decide for the answer with the lower score, and then overrules the winner by scores.
            **outcome_fields(decision.final) | ({"winner": decision.winner} if decision.winner else {}),
            stop_reason=stop_reason(state, settings),
            rounds=state["round"],
            score_by_round=state["scores"],
            details=decision.details,
            # A model's warnings come with each of its turns; each is told once, in the order of its first turn.
            warnings=tuple(dict.fromkeys((*state["warnings"], *repeated, *decision.warnings, *stated))),
            **explanation,
            **usage_of_turns(state["transcript"]).flat(),
        )

    async def build_verdict(state: JudgeState, runtime: AgentRuntime[Any]) -> dict[str, Any]:
        settings = runtime.settings
        if weigh is None or len(state["orders"]) < 2:
            return {"verdict": verdict_of(state, settings).model_dump(mode="json")}
        outcomes = []
        for order in (1, 2):
            # What the turns of one order come to by themselves; their values are in the task's order.
            alone: JudgeState = {**state, "transcript": turns_in_order(state, order)}
            made = verdict_of({**alone, "scores": scores_by_round(alone)}, settings)
            outcomes.append(JudgeOutput(verdict=made.model_dump(mode="json"), transcript=alone["transcript"]))
        return {"verdict": weigh(*outcomes).model_dump(mode="json")}

    return build_verdict


def joint_verdict(verdicts: Sequence[Verdict], turns: Iterable[Turn], **own: Any) -> Verdict:
    """Make one verdict of several on the same task that were made side by side.

    Args:
        verdicts: in order. Their rounds do not add up; where they ended for different reasons, none holds for all.
        turns: of all of them, for what they took.
        own: the other fields; ``warnings`` come behind those of the verdicts, each once.
    """
    by_round = [[list(s) if isinstance(s, tuple) else s for s in made.score_by_round] for made in verdicts]
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


def outcome_fields(value: Score) -> dict[str, Any]:
    """Return the fields of a verdict for a final score or a final pair of scores."""
    if isinstance(value, list):
        return {"scores": (value[0], value[1]), "winner": winner_of(value)}
    return {"score": value}
