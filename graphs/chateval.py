"""ChatEval: referees with different personas discuss a text, then judge it (Chan et al. 2024).

    prepare --roles_given--------> next_speakers --referees--> referee ----> next_speakers     one or all side by side
       +--roles_open--> planner -> next_speakers --summary---> summarizer -> next_speakers     between turns
                                   next_speakers --complete, decided--> conclude

Each of N referees speaks T times. The setting ``strategy`` decides how: one by one, all at the same
time, or all at the same time with a summary after every turn. With the summarizer, referees read
summaries instead of turns: only the latest one (``summary="replace"``) or all so far
(``summary="append"``, Algorithm 3).

The referees give scores in the last turn. A score task gets their average. In a comparison, each
referee votes for the answer that it scored higher, or for a tie. An outcome (a tie included) with
more than half of the votes wins. Without such a majority, the answer with the higher average wins.

By default, a comparison runs in both orders of the answers at once, each with its own discussion.
Each referee then votes by its averages over both orders. With ``roles=auto``, a planner first
writes personas that fit the question.

A referee whose call fails in the last turn is missing from the vote, which needs a quorum. In an
earlier turn, it is silent, and is asked again in the next one.

Stop reason: ``complete`` after T turns, or ``decided``: with ``stop="decided"``, the last turn of a
comparison ends when no outstanding referee can change the winner. With ``budget_tokens``, the
referees vote in an earlier turn than T if further turns would exceed it (``budget``).

Model calls: N * T. The summarizer adds T - 1 (T with ``summarize_last``). A comparison with
position calibration takes twice as many. ``roles=auto`` adds 1. With ``juror_tools``, up to
``tool_rounds`` requests for tools come before each referee's call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from ..nodes.referee import final_turn, referee, referees, roles_of_referees, who_judged
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.personas import casting, roles_are_open, with_roles
from ..nodes.runtime.prompt_context import score_schema, task_of
from ..nodes.runtime.stops import early_stop_of_discussion, panel_is_decided
from ..nodes.runtime.verdicts import (
    Decision,
    last_scores,
    number_of_orders,
    scores_over_orders,
    turns_in_order,
    vote,
    with_early_stop,
)
from ..nodes.summarizer import summarizer
from ..state.aggregation import majority_vote
from ..state.citations import CHATEVAL
from ..state.graph_state import JudgeState, Outcome
from ..state.panels import votes_needed
from ..state.protocol_facts import CHATEVAL_FACTS
from ..state.protocols import (
    CallRange,
    CallsByRole,
    Can,
    Protocol,
    Replay,
    exactly,
    with_requests_for_tools,
)
from ..state.settings import ChatEvalSettings
from ..state.settings.protocol_settings import AUTO
from ..state.tasks import TaskKind
from ..state.transcript import Score
from ..state.verdict import StopReason, Verdict
from .engine.base import FanOut, ProtocolGraph, each
from .engine.options import Bound, ChatEvalOptions
from .engine.panel_rules import PanelRules
from .wrappers.calibrated import weigh_orders


def calls(settings: ChatEvalSettings, kind: TaskKind, _can: Can) -> CallsByRole:
    """Count all turns of the referees, and the summaries, in each order of the answers."""
    # The vote takes a turn of its own, unless every turn has scores.
    least = 1 if settings.score_each_turn else 2
    turns = CallRange(settings.turns if settings.budget_tokens is None else least, settings.turns)
    unread = int(not settings.summarize_last)
    summaries = CallRange(turns.least - unread, turns.most - unread)
    # More than half of the referees decide in the last turn.
    voters = max(settings.referees // 2 + 1, votes_needed(settings.quorum, settings.referees))
    fewest = settings.referees * turns.least
    if kind == "compare" and "decided" in settings.stop:
        fewest += voters - settings.referees
    if settings.recuse != "none":
        fewest = votes_needed(settings.quorum, settings.referees) * turns.least
    discussion = {
        "referee": CallRange(fewest, settings.referees * turns.most),
        "summarizer": summaries if settings.strategy == "summarizer" else exactly(0),
    }
    of_all = {
        role: of_role * number_of_orders(settings, kind) for role, of_role in discussion.items()
    }
    of_roles = {"planner": exactly(int(settings.roles == AUTO)), **of_all}
    return with_requests_for_tools(of_roles, settings, "referee")


def impossible(settings: ChatEvalSettings) -> set[str]:
    """Return the outcomes that the settings exclude: a planner or none, summaries or none."""
    excluded = {"roles_given" if settings.roles == AUTO else "roles_open"}
    if "decided" not in settings.stop:
        excluded |= {"decided"}
    summaries = settings.turns if settings.summarize_last else settings.turns - 1
    return excluded if settings.strategy == "summarizer" and summaries else excluded | {"summary"}


protocol = Protocol(
    name="chateval",
    summary="referees with different personas discuss, then vote or average",
    source="ChatEval (Chan et al. 2024)",
    citation=CHATEVAL,
    kinds=("score", "compare"),
    roles=("planner", "referee", "summarizer"),
    settings=ChatEvalSettings,
    prompts=("shared", "chateval", "casting"),
    calls=calls,
    role_kinds=CHATEVAL_FACTS.role_kinds,
    tool_roles=("referee",),
    agents=lambda settings: {"referee": settings.referees},
    phases={
        "next_speakers": {
            "prepare": ["referees"],
            "planner": ["referees"],
            "referee": ["referees", "summary", "complete", "decided"],
            "summarizer": ["referees", "complete"],
        }
    },
    impossible=impossible,
    replay=Replay(
        fixed=("roles", "referees", "strategy", "summary", "summarize_last", "score_each_turn")
    ),
)


def times_spoken(state: JudgeState, role: str) -> int:
    """Return how often a role spoke in one order of the answers, which is the same in both orders.

    A failed turn and that of its replacement count as one.
    """
    turns = turns_in_order(state, 1)
    return len({(turn["agent"], turn["round"]) for turn in turns if turn["role"] == role})


def next_referees(state: JudgeState, settings: ChatEvalSettings) -> Sequence[str]:
    """Return the agents that speak next: one referee, or all of them at the same time."""
    everybody = referees(state, settings)
    if settings.strategy != "one_by_one":
        return everybody
    return [everybody[times_spoken(state, "referee") % len(everybody)]]


async def next_speakers(
    state: JudgeState, runtime: AgentRuntime[ChatEvalSettings]
) -> dict[str, Any]:
    """Wait until all agents that were asked have spoken; ``what_follows`` decides who is next.

    If another turn would exceed the token budget, the next turn becomes the last one.
    """
    settings = runtime.settings
    turns, spoken = divmod(times_spoken(state, "referee"), len(state["details"]["roles"]))
    last = turns if settings.score_each_turn else turns + 1
    is_open = settings.budget_tokens is not None and last < final_turn(state, settings)
    if not turns or spoken or not is_open or what_follows(state, settings) == "summary":
        return {}
    stop = early_stop_of_discussion(settings, state["transcript"])
    return {"details": {"last_turn": last, "stopped": stop.words}} if stop else {}


def what_follows(state: JudgeState, settings: ChatEvalSettings) -> str:
    """Return the next step: more referees, a summary of the turn, or the end of the discussion."""
    final = final_turn(state, settings)
    turns, spoken = divmod(times_spoken(state, "referee"), len(state["details"]["roles"]))
    if settings.strategy == "summarizer" and not spoken:
        # No referee would read a summary of the last turn.
        wanted = turns if turns < final or settings.summarize_last else turns - 1
        if times_spoken(state, "summarizer") < wanted:
            return "summary"
    if turns >= final:
        return "complete"
    return "decided" if "decided" in settings.stop and is_decided(state, settings) else "referees"


def is_decided(state: JudgeState, settings: ChatEvalSettings) -> bool:
    """Return whether no referee that has yet to speak in the last turn can change the winner."""
    orders = [turns_in_order(state, order) for order in state["orders"]]
    final = final_turn(state, settings)
    last = [[turn for turn in turns if turn["round"] == final] for turns in orders]
    votes: Mapping[str, Score] = (
        scores_over_orders(last[0], last[1]) if len(last) > 1 else last_scores(last[0])
    )
    form = score_schema(task_of(state))
    scale = (form.low, form.high)
    is_compared = state["task"]["kind"] == "compare"
    has_quorum = len(votes) >= votes_needed(settings.quorum, len(referees(state, settings)))
    outstanding = not_asked(state, settings)
    return is_compared and has_quorum and panel_is_decided(votes, outstanding, scale, "majority")


def not_asked(state: JudgeState, settings: ChatEvalSettings) -> list[str]:
    """Return the referees that did not speak in the last turn."""
    spoken = {
        turn["agent"]
        for turn in state["transcript"]
        if turn["role"] == "referee" and turn["round"] == final_turn(state, settings)
    }
    return [referee for referee in referees(state, settings) if referee not in spoken]


def stop_reason(state: JudgeState, settings: ChatEvalSettings) -> StopReason:
    """Return why the discussion ended: the vote was decided, the budget, or after all turns."""
    if not_asked(state, settings):
        return "decided"
    return "budget" if final_turn(state, settings) < settings.turns else "complete"


def decide(state: JudgeState, settings: ChatEvalSettings) -> Decision:
    """Decide by vote or average; the details name the referees that were not asked at last."""
    decision = vote(state, settings)
    silent = not_asked(state, settings)
    details = {**decision.details, "not_asked": silent} if silent else decision.details
    return with_early_stop(
        replace(decision, details=details), None, state["transcript"], settings.budget_tokens
    )


def weigh_votes(straight: Outcome, mapped: Outcome) -> Verdict:
    """Average each referee's scores over the two orders, then let the referees vote."""
    winner, details = majority_vote(
        scores_over_orders(straight["transcript"], mapped["transcript"])
    )
    of_order = straight["verdict"]["details"]
    further = ("not_asked", "last_turn", "stopped")
    details |= {name: of_order[name] for name in further if name in of_order}
    return weigh_orders(straight, mapped, winner, {**who_judged(straight), **details})


def build(
    settings: Bound[ChatEvalSettings] = None,
    models: Models | None = None,
    **fields: Unpack[ChatEvalOptions],
) -> ProtocolGraph[ChatEvalSettings]:
    """Build the ChatEval graph, not compiled.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role (``referee``, ``summarizer``) or agent
            (``referee_2``), ``"*"`` for all others.
        **fields: single settings, such as ``turns=3`` or ``roles="coding"``; they override
            ``settings``.

    Raises:
        InputError: an unknown setting or an invalid value.
        UsageError: a role that the protocol does not have, or a file of roles that cannot be read.

    >>> graph = build(roles=["critic", "scientist"], turns=1).compile()
    >>> result = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})
    >>> [turn["agent"] for turn in result["transcript"]]
    ['referee_1', 'referee_2']
    """
    graph = ProtocolGraph(protocol, ChatEvalSettings, settings, models, fields)
    graph.bound_judge.bound = with_roles(graph.bound_judge.bound)
    graph.begin(roles_of_referees)
    graph.agent("planner", casting, then="next_speakers")
    graph.agent("next_speakers", next_speakers)
    panel = PanelRules[ChatEvalSettings](
        quorum=lambda settings: settings.quorum,
        members=referees,
        voting_round=final_turn,
    )
    graph.agents("referee", referee, then="next_speakers", quorum=panel)
    graph.agents("summarizer", summarizer, then="next_speakers")
    graph.end(stop_reason, decide, weigh_votes)
    graph.route(
        "prepare", roles_are_open, {"roles_given": "next_speakers", "roles_open": "planner"}
    )
    speak = each("referee", next_referees)
    sum_up = each("summarizer", lambda _state, _settings: ["summarizer"])
    outcomes: dict[str, str | FanOut] = {
        "referees": speak,
        "summary": sum_up,
        "complete": "conclude",
        "decided": "conclude",
    }
    graph.route("next_speakers", what_follows, outcomes)
    return graph


graph = build().compile(name="chateval")
