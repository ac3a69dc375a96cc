"""repeated: one protocol several times, its verdicts averaged or voted, with their spread.

    prepare --> judge (k times, side by side) --> weigh

``repeated(graph, k)`` puts it around any graph; the registered protocol ``repeated`` around the one that the setting
``of`` names. A judge that samples, or a provider that answers the same question differently, shows in the spread how
far one verdict can be trusted. Every run makes calls of its own: each is marked with the number of its run
(``repeat`` in the metadata, from 0), and so are the turns.

Model calls: k times those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Unpack, cast

from langgraph.types import Send

from ..nodes.bound_judge import Models
from ..nodes.verdicts import distance, joint_verdict
from ..state.aggregation import majority, mean_of, standard_deviation, winner_by_mean
from ..state.graph_state import GraphState, JudgeOutput, append
from ..state.settings.wrapper_settings import RepeatedSettings
from ..state.transcript import Score, Turn
from ..state.verdict import Verdict
from .base import SyncFunction
from .options import AnyJudge, Bound, RepeatedOptions
from .wrapper import GivenJudges, Judges, NestedJudges, Wrapper, marked_outcome, verdict_in, wrapper_record


class RepeatsState(GraphState):
    """The state while the runs go on: the outcome of each, in order."""

    outcomes: Annotated[list[JudgeOutput], append]


def repeated(graph: AnyJudge, k: int = 3, by: Literal["average", "vote"] = "average") -> Repeats:
    """Build a graph that runs a protocol k times and makes one verdict; yours to compile.

    Args:
        graph: a protocol's graph, compiled or not; settings and models that are bound to it stay.
        k: how many runs.
        by: the mean of the runs' scores, or what more than half of them say (else the mean).

    Raises:
        InputError: a ``k`` below 1, or a ``by`` that does not exist.

    >>> from jurygraph.graphs import debate
    >>> graph = repeated(debate.build(n=1), k=2).compile()
    >>> verdict = graph.invoke({"task": {"kind": "score", "aspect": "consistency",
    ...     "source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}})["verdict"]
    >>> verdict["details"]["repeated"], verdict["details"]["spread"]
    (2, 0.0)
    """
    return Repeats(GivenJudges(RepeatedSettings(k=k, by=by), of=graph))


class Repeats(Wrapper[RepeatedSettings]):
    """A graph that runs a judge several times side by side and weighs its verdicts."""

    def __init__(self, judges: Judges[RepeatedSettings]) -> None:
        super().__init__(RepeatsState, judges)

        def runs(state: RepeatsState) -> list[Send]:
            k = self.settings().k
            # ``k`` goes along: the marks of a run's calls are made from what the node is sent.
            return [Send("judge", {"task": state["task"], "repeat": i, "k": k}) for i in range(k)]

        def weigh(state: RepeatsState) -> dict[str, Any]:
            return self.concluded(weigh_repeats(state["outcomes"], self.settings().by))

        self.judge("judge", "of", _marked, then="weigh", metadata=_metadata, mark=_mark)
        self.end("weigh", weigh)
        self.add_conditional_edges("prepare", SyncFunction("runs", runs), ["judge"])


def weigh_repeats(outcomes: Sequence[JudgeOutput], by: Literal["average", "vote"] = "average") -> Verdict:
    """Make one verdict of several runs: their joint outcome, their spread, and what each said.

    Args:
        outcomes: what the runs came to, in order.
        by: the mean of their scores, or what more than half of them say (else the mean). Runs that all have one
            winner have it together, whatever decided it within each.
    """
    verdicts = [verdict_in(outcome) for outcome in outcomes]
    scores = [verdict.final for verdict in verdicts]
    outcome, decided_by = _aggregate(verdicts, scores, by)
    details: dict[str, Any] = {"repeated": len(verdicts), "by": by, "decided_by": decided_by}
    details |= {"scores": scores, "spread": standard_deviation(scores)}
    stops, winners = [verdict.stop_reason for verdict in verdicts], [verdict.winner for verdict in verdicts]
    if len(set(stops)) > 1:
        details["stop_reasons"] = stops
    if any(winners):
        details["winners"] = winners
    if any(verdict.details for verdict in verdicts):
        details["details_by_run"] = [verdict.details for verdict in verdicts]
    # Runs that were not judged in both orders say nothing of them.
    consistent = [v.position_consistent for v in verdicts if v.position_consistent is not None]
    final = list(outcome["scores"]) if "scores" in outcome else outcome["score"]

    def far(verdict: Verdict) -> tuple[bool, tuple[bool, float]]:
        return verdict.winner != outcome.get("winner"), distance(verdict.final, final)

    # The run that came nearest to what all of them came to explains it.
    nearest = min(verdicts, key=far)
    return joint_verdict(
        verdicts,
        (turn for run in outcomes for turn in run["transcript"]),
        **outcome,
        position_consistent=all(consistent) if consistent else None,
        details=details,
        explanation=nearest.explanation,
        explained_by=nearest.explained_by,
    )


def _aggregate(verdicts: Sequence[Verdict], scores: Sequence[Score], by: str) -> tuple[dict[str, Any], str]:
    """Return the joint outcome of several runs, score and winner, and what decided it."""
    mean = mean_of(scores)
    if not isinstance(mean, list):
        most = majority(scores) if by == "vote" else None
        return ({"score": mean}, "average") if most is None else ({"score": most}, "majority")
    winners = [verdict.winner or "tie" for verdict in verdicts]
    outcome = {"scores": (mean[0], mean[1])}
    if len(set(winners)) == 1:
        return {**outcome, "winner": winners[0]}, "all"
    if by == "vote" and (winner := majority(winners)):
        return {**outcome, "winner": winner}, "majority"
    return {**outcome, "winner": winner_by_mean(mean)}, "average"


def _metadata(run: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Number the run, one of ``k``; in a graph that is itself repeated the numbers continue over all of its runs."""
    return {"repeat": outer.get("repeat", 0) * run["k"] + run["repeat"]}


def _mark(run: Mapping[str, Any], turn: Turn, inner: int = 1) -> Turn:
    """Mark a turn with the number of its run, in which there may be ``inner`` runs of a repeated judge."""
    number = run["repeat"] * inner + turn.get("repeat", 0)
    return cast("Turn", {**turn, "id": f"repeat_{run['repeat']}/{turn.get('id')}", "repeat": number})


def _marked(run: Mapping[str, Any], outcome: JudgeOutput) -> dict[str, Any]:
    """Return the outcome of a run, its turns marked with the run's number, counted as in ``_metadata``."""
    inner = 1 + max((turn.get("repeat", 0) for turn in outcome["transcript"]), default=0)
    marked = marked_outcome(outcome, lambda turn: _mark(run, turn, inner))
    return {"outcomes": [marked], "transcript": marked["transcript"], "round": marked["verdict"]["rounds"]}


protocol = wrapper_record(
    RepeatedSettings,
    name="repeated",
    summary="several independent verdicts of one protocol, averaged or voted, with their spread",
    source="repeats in ChatEval (Chan et al. 2024), Table 1",
    times=lambda settings: settings.k,
)


def build(
    settings: Bound[RepeatedSettings] = None, models: Models | None = None, **fields: Unpack[RepeatedOptions]
) -> Repeats:
    """Build the graph of several runs, yours to compile.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role of the protocol inside, ``"*"`` for all others.
        **fields: single settings, such as ``of="chateval"``, ``inner={"turns": 1}`` or ``k=5``.

    Raises:
        InputError: a setting that does not exist or cannot be so, here or in the protocol inside.
        UsageError: a protocol that does not exist, or a role that it does not have.

    >>> graph = build(of="single", k=2).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["details"]["of"], verdict["calls"]
    ('single', 4)
    """
    return Repeats(NestedJudges(protocol, settings, models, fields))


graph = build().compile(name="repeated")
