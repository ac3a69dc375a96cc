"""SAMRE: one advocate for each answer, several rounds, a judge and a jury (courtroom paper, 3.2).

    prepare -> advocate x 2 -> judge --agreement, max_rounds--> mean_scores --jury--> juror x 5 -> conclude
                    ^            |                                   |                               ^
                    +------------+ another_round                     +------------no_jury------------+
                    +-summarizer-+ another_round_from_summary (memory="summary")

With ``backgrounds="auto"``, a planner first writes the jurors' backgrounds for the question::

    prepare --backgrounds_open--> planner --begin_round--> advocate x 2

With ``cross_examine=True``, each advocate asks one question in round 1, and answers one::

    advocate x 2 -> examination --questions--> question x 2 -> examination --answers--> answer x 2
                                               answer x 2 -> examination --examined--> judge

With ``stop="decided"``, the jurors vote one after the other, until their votes decide::

    mean_scores --jury_in_turn--> juror -> next_juror --next_vote--> juror
                                           next_juror --decided--> conclude

A juror that fails has no vote. With fewer votes than the quorum, the mean totals decide.

In each round, the judge gives both sides a total of 6 to 120, and feedback. The mean totals are the
verdict's scores. The answer with more of the jury's votes wins. If the votes are equal, the answer
with the higher mean wins. If the means are equal too, the result is a tie.

Stop reasons: ``agreement`` (two successive rounds favour the same side; a tied round favours none),
``max_rounds``; with the settings of that name ``stable``, ``predicted`` and ``budget``; ``decided``
if some jurors were not asked.

Model calls: 3R + jurors, where R is the number of rounds (2 to 4 by default, from 1 with
``stop="predicted"`` or ``budget_tokens``). ``memory="summary"`` adds one after each round except
the last. ``stop="decided"`` asks at least half of the jurors. ``backgrounds="auto"`` adds 1,
``cross_examine`` 4. With ``juror_tools``, up to ``tool_rounds`` requests for tools come before each
juror's vote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from ..nodes.advocate import answer_of_advocate, lone_advocate, question_of_advocate
from ..nodes.court_summarizer import summarizer
from ..nodes.courtroom_judge import judge_of_round, points_by_round
from ..nodes.juror import backgrounds_of, juror
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.courtroom import (
    HIGHEST,
    HIGHEST_TOTAL,
    LOWEST,
    LOWEST_TOTAL,
    SIDES,
    mean_totals,
)
from ..nodes.runtime.personas import casting_of_jury
from ..nodes.runtime.stops import EarlyStop, early_stop_of_hearing, jury_is_decided
from ..nodes.runtime.verdicts import Decision, nearest, with_early_stop
from ..state.aggregation import winner_by_mean
from ..state.citations import COURTROOM
from ..state.graph_state import JudgeState
from ..state.panels import votes_needed
from ..state.protocol_facts import SAMRE_FACTS
from ..state.protocols import (
    CallRange,
    CallsByRole,
    Can,
    Protocol,
    Replay,
    exactly,
    with_requests_for_tools,
)
from ..state.settings import SamreSettings
from ..state.tasks import TaskKind
from ..state.transcript import Score, Turn
from ..state.verdict import StopReason, winner_of
from ..state.verdict_warnings import NO_QUORUM
from .engine.base import FanOut, ProtocolGraph, each
from .engine.options import Bound, SamreOptions
from .engine.panel_rules import PanelRules


def calls(settings: SamreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count at least two rounds, at most all of them, then the jury."""
    may_end_at_once = "predicted" in settings.stop or settings.budget_tokens is not None
    rounds = CallRange(min(1 if may_end_at_once else 2, settings.max_rounds), settings.max_rounds)
    # Half of the jurors decide if the mean scores agree with them.
    in_turn = CallRange((settings.jurors + 1) // 2, settings.jurors)
    jury = in_turn if "decided" in settings.stop else exactly(settings.jurors)
    if settings.recuse != "none":
        jury = CallRange(0, settings.jurors)
    # No round reads a summary of the last one.
    between = CallRange(rounds.least - 1, rounds.most - 1)
    of_roles = {
        "planner": exactly(int(settings.writes_backgrounds)),
        "advocate": rounds * 2 + exactly(4 if settings.cross_examine else 0),
        "judge": rounds,
        "juror": jury,
        "summarizer": between if settings.memory == "summary" else exactly(0),
    }
    return with_requests_for_tools(of_roles, settings, "juror")


def impossible(settings: SamreSettings) -> set[str]:
    """Return the outcomes that the settings exclude: a jury or none, a summary or none."""
    in_turn = {"jury_in_turn", "in_turn", "next_vote", "decided"}
    at_once = {"jury", "heard"}
    excluded = {"no_jury"} if settings.jurors else {"jury", *in_turn}
    if not settings.writes_backgrounds:
        excluded |= {"backgrounds_open"}
    examining = {"examination", "questions", "answers", "examined"}
    excluded |= {"argued"} if settings.cross_examine else examining
    excluded |= at_once if "decided" in settings.stop else in_turn
    if settings.max_rounds == 1:
        never = {"agreement", "another_round", "another_round_from_summary", "early_end"}
        return excluded | never
    if not ({"stable", "predicted"} & {*settings.stop} or settings.budget_tokens):
        excluded |= {"early_end"}
    full = settings.memory == "full"
    return excluded | {"another_round_from_summary" if full else "another_round"}


def further_prompts(settings: SamreSettings) -> tuple[str, ...]:
    """Return the folders of templates that only written jurors and cross-examinations use."""
    jury = ("casting", "jury") if settings.writes_backgrounds else ()
    return (*jury, "examination") if settings.cross_examine else jury


protocol = Protocol(
    name="samre",
    summary="two advocates argue over several rounds before a judge and a jury",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, section 3.2",
    citation=COURTROOM,
    kinds=("compare",),
    roles=("planner", "advocate", "judge", "juror", "summarizer"),
    settings=SamreSettings,
    prompts=("shared", "courtroom"),
    further_prompts=further_prompts,
    calls=calls,
    role_kinds=SAMRE_FACTS.role_kinds,
    tool_roles=("juror",),
    may_end_unresolved=lambda _settings: True,
    agents=lambda settings: {
        "advocate": 2,
        "question": 2,
        "answer": 2,
        "juror": settings.jurors,
    },
    replay=Replay(fixed=("backgrounds", "memory", "ballot")),
    score_gaps=SAMRE_FACTS.score_gaps,
    impossible=impossible,
    phases={
        "examination": {
            "advocate": ["questions", "examined"],
            "question": ["answers"],
            "answer": ["examined"],
        },
        "next_juror": {"juror": ["next_vote", "decided"]},
    },
)


def rounds_agree(scores: Sequence[Score]) -> bool:
    """Return whether the last two rounds favour the same side; a tied round favours none.

    >>> rounds_agree([[90, 80], [70, 60]]), rounds_agree([[90, 80], [70, 70]]), rounds_agree([[90, 80]])
    (True, False, False)
    """
    gaps = [pair[0] - pair[1] for pair in scores[-2:] if isinstance(pair, list)]
    return len(gaps) == 2 and gaps[0] * gaps[1] > 0


def early_stop(state: JudgeState, settings: SamreSettings) -> EarlyStop | None:
    """Return why the rounds end before the last one without agreement, or ``None``."""
    if rounds_agree(state["scores"]) or len(state["scores"]) >= settings.max_rounds:
        return None
    rounds = [turn for turn in state["transcript"] if turn["role"] != "juror"]
    return early_stop_of_hearing(settings, state["scores"], rounds, HIGHEST_TOTAL - LOWEST_TOTAL)


def end_of_rounds(state: JudgeState, settings: SamreSettings) -> StopReason:
    """Return why no further round follows."""
    if rounds_agree(state["scores"]):
        return "agreement"
    early = early_stop(state, settings)
    return early.reason if early else "max_rounds"


def stop_reason(state: JudgeState, settings: SamreSettings) -> StopReason:
    """Return why the hearing ended: the vote was decided, or no further round followed."""
    return "decided" if unasked_jurors(state, settings) else end_of_rounds(state, settings)


def advocates(_state: JudgeState, _settings: SamreSettings) -> list[str]:
    """Return both advocates, who open a round at the same time."""
    return [f"advocate_{side}" for side in SIDES]


def after_advocate(_state: JudgeState, settings: SamreSettings) -> str:
    """Route to the judge, or to the cross-examination if there is one."""
    return "examination" if settings.cross_examine else "argued"


async def examination(_state: JudgeState, _runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Wait for both advocates; ``after_examination`` decides what follows."""
    return {}


def after_examination(state: JudgeState, _settings: SamreSettings) -> str:
    """Return whether the advocates ask, answer, or are done; they are examined once."""
    spoken = {turn["agent"] for turn in state["transcript"] if turn["role"] == "advocate"}
    if not spoken.issuperset(examined("asks")):
        return "questions"
    return "examined" if spoken.issuperset(examined("answers")) else "answers"


def examined(part: Literal["asks", "answers"]) -> list[str]:
    """Return the names of both advocates in a part of the cross-examination."""
    return [f"advocate_{side}_{part}" for side in SIDES]


def jurors(_state: JudgeState, settings: SamreSettings) -> list[str]:
    """Return all jurors, who vote at the same time."""
    return list(backgrounds_of(settings))


def unasked_jurors(state: JudgeState, settings: SamreSettings) -> list[str]:
    """Return the jurors that have not voted, in order; their vote may be void."""
    asked = {turn["agent"] for turn in state["transcript"] if turn["role"] == "juror"}
    return [juror for juror in backgrounds_of(settings) if juror not in asked]


async def next_juror(_state: JudgeState, _runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Wait for a juror's vote; ``after_vote`` decides whether another one is asked."""
    return {}


def after_juror(_state: JudgeState, settings: SamreSettings) -> str:
    """Return to the next juror if they are asked in turn."""
    return "in_turn" if "decided" in settings.stop else "heard"


def after_vote(state: JudgeState, settings: SamreSettings) -> str:
    """Return whether the votes decide, or another juror is asked."""
    outstanding = len(unasked_jurors(state, settings))
    votes = [*votes_of(ballots(state)).values()]
    widest = HIGHEST - LOWEST if settings.ballot == "score" else 1
    w = winner_by_mean(mean_totals(state["scores"]))
    decided = not outstanding or jury_is_decided(votes, outstanding, widest, w)
    return "decided" if decided else "next_vote"


def begin(_state: JudgeState, _settings: SamreSettings) -> str:
    """Route to the advocates without a condition."""
    return "begin_round"


def after_prepare(_state: JudgeState, settings: SamreSettings) -> str:
    """Route to the planner if it has to write the jurors' backgrounds."""
    return "backgrounds_open" if settings.writes_backgrounds else "begin_round"


def after_judge(state: JudgeState, settings: SamreSettings) -> str:
    """Return whether the rounds are over, or whether the next one begins with a summary."""
    if rounds_agree(state["scores"]):
        return "agreement"
    if state["round"] >= settings.max_rounds:
        return "max_rounds"
    if early_stop(state, settings):
        return "early_end"
    return "another_round" if settings.memory == "full" else "another_round_from_summary"


def after_mean_scores(_state: JudgeState, settings: SamreSettings) -> str:
    """Route to the jury if there is one."""
    if not settings.jurors:
        return "no_jury"
    return "jury_in_turn" if "decided" in settings.stop else "jury"


async def mean_scores(state: JudgeState, _runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Average the totals over all rounds; ``w`` is the side with the higher mean (Algorithm 2)."""
    means = mean_totals(state["scores"])
    return {"details": {"mean_scores": means, "w": winner_by_mean(means)}}


def last_jurors(state: JudgeState) -> list[Turn]:
    """Return each juror's latest turn: after an edited turn, the jury may have voted again."""
    turns = state["transcript"]
    return [*{turn["agent"]: turn for turn in turns if turn["role"] == "juror"}.values()]


def ballots(state: JudgeState) -> list[Any]:
    """Return the jurors' votes; a void vote is ``None``."""
    return [juror["value"] for juror in last_jurors(state)]


def votes_of(ballots: Sequence[Any]) -> dict[str, float]:
    """Return the votes for each answer, or the sums of the jurors' scores.

    >>> votes_of(["1", None, "1"]), votes_of([[18, 12], [10, 11]])
    ({'1': 2, '2': 0}, {'1': 28, '2': 23})
    """
    # A void vote has the value None, so it counts for neither side.
    if scored := [ballot for ballot in ballots if isinstance(ballot, list)]:
        return {str(side): sum(pair[side - 1] for pair in scored) for side in SIDES}
    return {str(side): ballots.count(str(side)) for side in SIDES}


def decide(state: JudgeState, settings: SamreSettings) -> Decision:
    """Decide by the jury's votes, or by the higher mean without a jury, a quorum or a majority.

    The details contain both results.
    """
    turns = state["transcript"]
    means = mean_totals(state["scores"])
    winner = by_means = winner_by_mean(means)
    turn = nearest([turn for turn in turns if turn["role"] == "judge"], means)
    details: dict[str, Any] = {**state["details"], "criteria": points_by_round(state)}
    jury: dict[str, Any] = {"jury_winner": None, "votes": None}
    warnings: list[str] = []
    if settings.jurors:
        details["jurors"] = backgrounds_of(settings, state["details"].get("personas", ()))
        jurors = last_jurors(state)
        given = ballots(state)
        votes = votes_of(given)
        by_votes = winner_by_mean([*votes.values()])
        jury = {"jury_winner": by_votes, "votes": votes, "void_votes": given.count(None)}
        needed = votes_needed(settings.quorum, settings.jurors)
        # A juror that was not asked could have voted.
        valid = settings.jurors - given.count(None)
        if valid < needed:
            warnings = [
                NO_QUORUM.of(
                    votes=valid, jurors=settings.jurors, needed=needed, quorum=settings.quorum
                )
            ]
        elif by_votes != "tie":
            winner = by_votes
            preferred = [
                winner_of(ballot) if isinstance(ballot, list) else ballot for ballot in given
            ]
            if winner in preferred:
                turn = jurors[preferred.index(winner)]
    if unasked := unasked_jurors(state, settings):
        jury["not_asked"] = unasked
    details |= {"w": by_means, "mean_scores": means, **jury}
    return with_early_stop(
        Decision(means, turn, winner, details, warnings),
        early_stop(state, settings),
        turns,
        settings.budget_tokens,
    )


def build(
    settings: Bound[SamreSettings] = None,
    models: Models | None = None,
    **fields: Unpack[SamreOptions],
) -> ProtocolGraph[SamreSettings]:
    """Build the SAMRE graph, not compiled; arguments and errors as for ``debate.build``.

    >>> graph = build(jurors=3).compile()
    >>> result = graph.invoke({"task": {"kind": "compare", "question": "When did the bridge open?",
    ...     "answer_1": "The bridge opened in 1932.", "answer_2": "No idea."}})
    >>> result["verdict"]["details"]["votes"]
    {'1': 3, '2': 0}
    """
    graph = ProtocolGraph(protocol, SamreSettings, settings, models, fields)
    graph.begin()
    graph.agent("planner", casting_of_jury)
    graph.agents("advocate", lone_advocate)
    graph.agent("examination", examination)
    graph.agents("question", question_of_advocate, then="examination")
    graph.agents("answer", answer_of_advocate, then="examination")
    graph.agent("judge", judge_of_round)
    graph.agent("summarizer", summarizer)
    graph.agent("mean_scores", mean_scores)
    # Without the quorum, the mean scores decide.
    jury = PanelRules[SamreSettings](lambda settings: settings.quorum, is_required=False)
    graph.agents("juror", juror, quorum=jury)
    graph.agent("next_juror", next_juror)
    graph.end(stop_reason, decide)
    argue = each("advocate", advocates)
    start: dict[str, str | FanOut] = {"begin_round": argue}
    graph.route("prepare", after_prepare, {**start, "backgrounds_open": "planner"})
    graph.route("planner", begin, start)
    graph.route("advocate", after_advocate, {"argued": "judge", "examination": "examination"})
    ask = each("question", lambda _state, _settings: examined("asks"))
    reply = each("answer", lambda _state, _settings: examined("answers"))
    parts: dict[str, str | FanOut] = {"questions": ask, "answers": reply, "examined": "judge"}
    graph.route("examination", after_examination, parts)
    again: dict[str, str | FanOut] = {
        "another_round": argue,
        "another_round_from_summary": "summarizer",
    }
    # Both outcomes lead to the jury. The means decide if the jury's votes are equal.
    over = dict.fromkeys(("agreement", "max_rounds", "early_end"), "mean_scores")
    graph.route("judge", after_judge, {**again, **over})
    graph.route("summarizer", begin, {"begin_round": argue})
    vote = each("juror", lambda state, settings: unasked_jurors(state, settings)[:1])
    ways: dict[str, str | FanOut] = {"jury": each("juror", jurors), "jury_in_turn": vote}
    graph.route("mean_scores", after_mean_scores, {**ways, "no_jury": "conclude"})
    graph.route("juror", after_juror, {"heard": "conclude", "in_turn": "next_juror"})
    graph.route("next_juror", after_vote, {"next_vote": vote, "decided": "conclude"})
    return graph


graph = build().compile(name="samre")
