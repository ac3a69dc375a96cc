"""SAMRE: one advocate for each answer, several rounds, a judge and a jury (courtroom paper, 3.2).

    prepare -> advocate x 2 -> judge --agreement, max_rounds--> mean_scores --jury--> juror x 5 -> conclude
                    ^            |                                   |                               ^
                    +------------+ another_round                     +------------no_jury------------+
                    +-summarizer-+ another_round_from_summary (memory="summary")

In each round, the judge gives both sides a total of 6 to 120, and feedback. The mean totals are the
verdict's scores. The answer with more of the jury's votes wins. If the votes are equal, the answer
with the higher mean wins. If the means are equal too, the result is a tie.

Stop reasons: ``agreement`` (two successive rounds favour the same side; a tied round favours none),
``max_rounds``.

Model calls: 3R + jurors, where R is the number of rounds (2 to 4 by default). ``memory="summary"``
adds one after each round except the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from ..nodes.advocate import lone_advocate
from ..nodes.court_summarizer import summarizer
from ..nodes.courtroom_judge import judge_of_round, points_by_round
from ..nodes.juror import backgrounds_of, juror
from ..nodes.runtime.agent_runtime import AgentRuntime
from ..nodes.runtime.bound_judge import Models
from ..nodes.runtime.courtroom import SIDES
from ..nodes.runtime.verdicts import Decision, nearest
from ..state.aggregation import winner_by_mean
from ..state.citations import COURTROOM
from ..state.graph_state import JudgeState
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, Replay, exactly
from ..state.settings import SamreSettings
from ..state.tasks import TaskKind
from ..state.transcript import Score
from ..state.verdict import winner_of
from .engine.base import FanOut, ProtocolGraph, each
from .engine.options import Bound, SamreOptions


def calls(settings: SamreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count at least two rounds, at most all of them, then the jury."""
    rounds = CallRange(min(2, settings.max_rounds), settings.max_rounds)
    # No round reads a summary of the last one.
    between = CallRange(rounds.least - 1, rounds.most - 1)
    return {
        "advocate": rounds * 2,
        "judge": rounds,
        "juror": exactly(settings.jurors),
        "summarizer": between if settings.memory == "summary" else exactly(0),
    }


def impossible(settings: SamreSettings) -> set[str]:
    """Return the outcomes that the settings exclude: a jury or none, a summary or none."""
    excluded = {"no_jury" if settings.jurors else "jury"}
    if settings.max_rounds == 1:
        return excluded | {"agreement", "another_round", "another_round_from_summary"}
    full = settings.memory == "full"
    return excluded | {"another_round_from_summary" if full else "another_round"}


protocol = Protocol(
    name="samre",
    summary="two advocates argue over several rounds before a judge and a jury",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, section 3.2",
    citation=COURTROOM,
    kinds=("compare",),
    roles=("advocate", "judge", "juror", "summarizer"),
    settings=SamreSettings,
    prompts=("shared", "courtroom"),
    calls=calls,
    role_kinds={"advocate": "argues", "judge": "scores", "juror": "votes", "summarizer": "assists"},
    may_end_unresolved=lambda _settings: True,
    agents=lambda settings: {"advocate": 2, "juror": settings.jurors},
    replay=Replay(fixed=("backgrounds", "memory", "ballot")),
    score_gaps="by_round",
    impossible=impossible,
)


def rounds_agree(scores: Sequence[Score]) -> bool:
    """Return whether the last two rounds favour the same side; a tied round favours none.

    >>> rounds_agree([[90, 80], [70, 60]]), rounds_agree([[90, 80], [70, 70]]), rounds_agree([[90, 80]])
    (True, False, False)
    """
    gaps = [pair[0] - pair[1] for pair in scores[-2:] if isinstance(pair, list)]
    return len(gaps) == 2 and gaps[0] * gaps[1] > 0


def stop_reason(state: JudgeState, _settings: SamreSettings) -> Literal["agreement", "max_rounds"]:
    """Return why no further round follows."""
    return "agreement" if rounds_agree(state["scores"]) else "max_rounds"


def advocates(_state: JudgeState, _settings: SamreSettings) -> list[str]:
    """Return both advocates, who open a round at the same time."""
    return [f"advocate_{side}" for side in SIDES]


def jurors(_state: JudgeState, settings: SamreSettings) -> list[str]:
    """Return all jurors, who vote at the same time."""
    return list(backgrounds_of(settings))


def begin(_state: JudgeState, _settings: SamreSettings) -> str:
    """Route to the advocates without a condition."""
    return "begin_round"


def after_judge(state: JudgeState, settings: SamreSettings) -> str:
    """Return whether the rounds are over, or whether the next one begins with a summary."""
    if rounds_agree(state["scores"]) or state["round"] >= settings.max_rounds:
        return stop_reason(state, settings)
    return "another_round" if settings.memory == "full" else "another_round_from_summary"


def after_mean_scores(_state: JudgeState, settings: SamreSettings) -> str:
    """Route to the jury if there is one."""
    return "jury" if settings.jurors else "no_jury"


async def mean_scores(state: JudgeState, _runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Average the totals over all rounds; ``w`` is the side with the higher mean (Algorithm 2)."""
    means = mean_totals(state["scores"])
    return {"details": {"mean_scores": means, "w": winner_by_mean(means)}}


def mean_totals(scores: Sequence[Score]) -> list[float]:
    """Return the mean of each side's totals over all rounds.

    >>> mean_totals([[90, 80], [70, 60]])
    [80.0, 70.0]
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]


def decide(state: JudgeState, settings: SamreSettings) -> Decision:
    """Decide by the jury's votes, or by the higher mean without a jury or majority.

    The details contain both results.
    """
    turns = state["transcript"]
    means = mean_totals(state["scores"])
    winner = by_means = winner_by_mean(means)
    turn = nearest([turn for turn in turns if turn["role"] == "judge"], means)
    details: dict[str, Any] = {**state["details"], "criteria": points_by_round(state)}
    jury: dict[str, Any] = {"jury_winner": None, "votes": None}
    if settings.jurors:
        details["jurors"] = backgrounds_of(settings)
        # Use each juror's latest turn: after an edited turn, the jury may have voted again.
        jurors = [*{turn["agent"]: turn for turn in turns if turn["role"] == "juror"}.values()]
        ballots = [juror["value"] for juror in jurors]
        # A void vote has the value None, so it counts for neither side.
        votes: dict[str, float] = {str(side): ballots.count(str(side)) for side in SIDES}
        if scored := [ballot for ballot in ballots if isinstance(ballot, list)]:
            votes = {str(side): sum(pair[side - 1] for pair in scored) for side in SIDES}
        by_votes = winner_by_mean([*votes.values()])
        jury = {"jury_winner": by_votes, "votes": votes, "void_votes": ballots.count(None)}
        if by_votes != "tie":
            winner = by_votes
            preferred = [
                winner_of(ballot) if isinstance(ballot, list) else ballot for ballot in ballots
            ]
            if winner in preferred:
                turn = jurors[preferred.index(winner)]
    return Decision(means, turn, winner, {**details, "w": by_means, "mean_scores": means, **jury})


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
    graph.agents("advocate", lone_advocate, then="judge")
    graph.agent("judge", judge_of_round)
    graph.agent("summarizer", summarizer)
    graph.agent("mean_scores", mean_scores)
    graph.agents("juror", juror, then="conclude")
    graph.end(stop_reason, decide)
    argue = each("advocate", advocates)
    graph.route("prepare", begin, {"begin_round": argue})
    again: dict[str, str | FanOut] = {
        "another_round": argue,
        "another_round_from_summary": "summarizer",
    }
    # Both outcomes lead to the jury. The means decide if the jury's votes are equal.
    over = dict.fromkeys(("agreement", "max_rounds"), "mean_scores")
    graph.route("judge", after_judge, {**again, **over})
    graph.route("summarizer", begin, {"begin_round": argue})
    graph.route(
        "mean_scores", after_mean_scores, {"jury": each("juror", jurors), "no_jury": "conclude"}
    )
    return graph


graph = build().compile(name="samre")
