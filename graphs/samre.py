"""SAMRE: one advocate for each answer, several rounds, a judge, and a jury (courtroom paper, section 3.2).

    prepare -> advocate x 2 -> judge --agreement, max_rounds--> mean_scores --jury--> juror x 5 -> conclude
                    ^            |                                   |                               ^
                    +------------+ another_round                     +------------no_jury------------+
                    +-summarizer-+ another_round_from_summary (memory="summary")

Each round the judge gives both sides a total of 6 to 120, and feedback. The mean totals are the verdict's scores;
the jury's majority wins. Equal votes: the higher mean; equal again: a tie.

Why it stops: ``agreement`` (two rounds running favour the same side; a tied round favours none), ``max_rounds``.

Model calls: 3R + jurors, R being the rounds held (2 to 4 by default); ``memory="summary"`` adds one after each
round but the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from ..nodes.advocate import lone_advocate
from ..nodes.agent_runtime import AgentRuntime
from ..nodes.bound_judge import Models
from ..nodes.court_summarizer import summarizer
from ..nodes.courtroom import SIDES
from ..nodes.courtroom_judge import judge_of_round, points_by_round
from ..nodes.juror import backgrounds_of, juror
from ..nodes.verdicts import Decision, nearest
from ..state.graph_state import JudgeState
from ..state.protocols import CallRange, CallsByRole, Can, Protocol, Replay, exactly
from ..state.settings import SamreSettings
from ..state.tasks import TaskKind
from ..state.transcript import Score
from ..state.verdict import winner_of
from .base import FanOut, ProtocolGraph, each
from .options import Bound, SamreOptions


def calls(settings: SamreSettings, _kind: TaskKind, _can: Can) -> CallsByRole:
    """Count two rounds if they agree, all of them at most; then the jury."""
    rounds = CallRange(min(2, settings.max_rounds), settings.max_rounds)
    # After the last round nobody reads a summary of it.
    between = CallRange(rounds.least - 1, rounds.most - 1)
    return {
        "advocate": rounds * 2,
        "judge": rounds,
        "juror": exactly(settings.jurors),
        "summarizer": between if settings.memory == "summary" else exactly(0),
    }


protocol = Protocol(
    name="samre",
    summary="two advocates argue over several rounds before a judge and a jury",
    source="Optimal Architectures for Judging LLM Outputs Using LLMs, section 3.2",
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
)


def rounds_agree(scores: Sequence[Score]) -> bool:
    """Tell whether the last two rounds favour the same side; a tied round agrees with nothing.

    >>> rounds_agree([[90, 80], [70, 60]]), rounds_agree([[90, 80], [70, 70]]), rounds_agree([[90, 80]])
    (True, False, False)
    """
    gaps = [pair[0] - pair[1] for pair in scores[-2:] if isinstance(pair, list)]
    return len(gaps) == 2 and gaps[0] * gaps[1] > 0


def stop_reason(state: JudgeState, _settings: SamreSettings) -> Literal["agreement", "max_rounds"]:
    """Say why no further round is held."""
    return "agreement" if rounds_agree(state["scores"]) else "max_rounds"


def advocates(_state: JudgeState, _settings: SamreSettings) -> list[str]:
    """Both advocates open a round, at the same time."""
    return [f"advocate_{side}" for side in SIDES]


def jurors(_state: JudgeState, settings: SamreSettings) -> list[str]:
    """All jurors vote at the same time."""
    return list(backgrounds_of(settings))


def begin(_state: JudgeState, _settings: SamreSettings) -> str:
    """The first round, or one that begins with a summary, needs no decision."""
    return "begin_round"


def after_judge(state: JudgeState, settings: SamreSettings) -> str:
    """The rounds end when two in a row agree or none is left; another one may begin with a summary of the memory."""
    if rounds_agree(state["scores"]) or state["round"] >= settings.max_rounds:
        return stop_reason(state, settings)
    return "another_round" if settings.memory == "full" else "another_round_from_summary"


def after_mean_scores(_state: JudgeState, settings: SamreSettings) -> str:
    """The jury votes, unless there is none."""
    return "jury" if settings.jurors else "no_jury"


async def mean_scores(state: JudgeState, _runtime: AgentRuntime[SamreSettings]) -> dict[str, Any]:
    """Average the totals over the rounds held; ``w`` is the side with the higher mean (Algorithm 2)."""
    means = mean_totals(state["scores"])
    return {"details": {"mean_scores": means, "w": winner_of(means)}}


def mean_totals(scores: Sequence[Score]) -> list[float]:
    """Return the mean of each side's totals over the rounds held.

    >>> mean_totals([[90, 80], [70, 60]])
    [80.0, 70.0]
    """
    pairs = [pair for pair in scores if isinstance(pair, list)]
    return [sum(side) / len(pairs) for side in zip(*pairs, strict=True)]


def decide(state: JudgeState, settings: SamreSettings) -> Decision:
    """The jury's majority wins; equal votes, or no jury: the higher mean. The details hold both, and the count."""
    turns, means = state["transcript"], mean_totals(state["scores"])
    winner = by_means = winner_of(means)
    turn = nearest([turn for turn in turns if turn["role"] == "judge"], means)
    details: dict[str, Any] = {**state["details"], "criteria": points_by_round(state)}
    jury: dict[str, Any] = {"jury_winner": None, "votes": None}
    if settings.jurors:
        details["jurors"] = backgrounds_of(settings)
        # The latest turn of each: the jury may have been asked again after a turn was edited.
        jurors = [*{turn["agent"]: turn for turn in turns if turn["role"] == "juror"}.values()]
        ballots = [juror["value"] for juror in jurors]
        # Votes are counted, scores added up; a void vote has the value None, and so is counted for neither side.
        votes: dict[str, float] = {str(side): ballots.count(str(side)) for side in SIDES}
        if scored := [ballot for ballot in ballots if isinstance(ballot, list)]:
            votes = {str(side): sum(pair[side - 1] for pair in scored) for side in SIDES}
        by_votes = winner_of(votes.values())
        jury = {"jury_winner": by_votes, "votes": votes, "void_votes": ballots.count(None)}
        if by_votes != "tie":
            winner = by_votes
            preferred = [winner_of(ballot) if isinstance(ballot, list) else ballot for ballot in ballots]
            if winner in preferred:
                turn = jurors[preferred.index(winner)]
    return Decision(means, turn, winner, {**details, "w": by_means, "mean_scores": means, **jury})


def build(
    settings: Bound[SamreSettings] = None, models: Models | None = None, **fields: Unpack[SamreOptions]
) -> ProtocolGraph[SamreSettings]:
    """Build the SAMRE graph, yours to compile; arguments and errors as for ``debate.build``.

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
    again: dict[str, str | FanOut] = {"another_round": argue, "another_round_from_summary": "summarizer"}
    # Whatever ends the rounds: the jury votes on all of them, and the means are what equal votes fall back on.
    over = dict.fromkeys(("agreement", "max_rounds"), "mean_scores")
    graph.route("judge", after_judge, {**again, **over})
    graph.route("summarizer", begin, {"begin_round": argue})
    graph.route("mean_scores", after_mean_scores, {"jury": each("juror", jurors), "no_jury": "conclude"})
    return graph


graph = build().compile(name="samre")
