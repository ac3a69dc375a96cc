"""repeated: runs one protocol several times and averages or votes its verdicts, with their spread.

    prepare --> judge (k times, side by side) --> weigh

``repeated(graph, k)`` wraps any graph. The registered protocol ``repeated`` wraps the protocol that
the setting ``of`` names. The spread shows how far one verdict can be trusted if the judge samples
or the provider answers the same question differently. Every run makes its own calls. Calls and
turns are marked with the number of their run (``repeat`` in the metadata, from 0).

Model calls: k times those of the protocol inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Unpack, cast

from langgraph.types import Send

from ...nodes.runtime.bound_judge import Models
from ...nodes.runtime.verdicts import distance, joint_verdict
from ...state.aggregation import majority, mean_of, standard_deviation, winner_by_mean
from ...state.citations import CHATEVAL
from ...state.graph_state import GraphState, Outcome, append
from ...state.settings.wrapper_settings import RepeatedSettings
from ...state.transcript import Score, Turn
from ...state.verdict import Verdict
from ..engine._langgraph import SyncFunction
from ..engine.options import AnyJudge, Bound, RepeatedOptions
from ..engine.wrapper import (
    GivenJudges,
    Judges,
    NestedJudges,
    Wrapper,
    marked_outcome,
    verdict_in,
    wrapper_record,
)


class RepeatsState(GraphState):
    """The state while the runs are in progress: the outcome of each, in order."""

    outcomes: Annotated[list[Outcome], append]


def repeated(graph: AnyJudge, k: int = 3, by: Literal["average", "vote"] = "average") -> Repeats:
    """Build a graph that runs a protocol k times and makes one verdict, not compiled.

    Args:
        graph: a protocol's graph, compiled or not; its bound settings and models stay.
        k: the number of runs.
        by: ``average``: the mean of the runs' scores; ``vote``: the outcome of more than half of
            them, otherwise the mean.

    Raises:
        InputError: a ``k`` below 1, or an unknown ``by``.

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
            # The node needs ``k`` to compute the marks of its calls.
            return [Send("judge", {"task": state["task"], "repeat": i, "k": k}) for i in range(k)]

        def weigh(state: RepeatsState) -> dict[str, Any]:
            return self.concluded(weigh_repeats(state["outcomes"], self.settings().by))

        self.judge("judge", "of", _marked, then="weigh", metadata=_metadata, mark=_mark)
        self.end("weigh", weigh)
        self.add_conditional_edges("prepare", SyncFunction("runs", runs), ["judge"])


def weigh_repeats(
    outcomes: Sequence[Outcome], by: Literal["average", "vote"] = "average"
) -> Verdict:
    """Combine several runs into one verdict with their spread and the details of each run.

    Args:
        outcomes: the outcomes of the runs, in order.
        by: ``average``: the mean of their scores; ``vote``: the outcome of more than half of them,
            otherwise the mean. If all runs have the same winner, that answer wins either way.
    """
    verdicts = [verdict_in(outcome) for outcome in outcomes]
    scores = [verdict.final for verdict in verdicts]
    outcome, decided_by = _aggregate(verdicts, scores, by)
    details: dict[str, Any] = {"repeated": len(verdicts), "by": by, "decided_by": decided_by}
    details |= {"scores": scores, "spread": standard_deviation(scores)}
    stops = [verdict.stop_reason for verdict in verdicts]
    winners = [verdict.winner for verdict in verdicts]
    if len(set(stops)) > 1:
        details["stop_reasons"] = stops
    if any(winners):
        details["winners"] = winners
    if any(verdict.details for verdict in verdicts):
        details["details_by_run"] = [verdict.details for verdict in verdicts]
    # Runs that were judged in one order have no value here.
    consistent = [v.position_consistent for v in verdicts if v.position_consistent is not None]
    final = list(outcome["scores"]) if "scores" in outcome else outcome["score"]

    def far(verdict: Verdict) -> tuple[bool, tuple[bool, float]]:
        return verdict.winner != outcome.get("winner"), distance(verdict.final, final)

    # The run closest to the joint outcome explains it.
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


def _aggregate(
    verdicts: Sequence[Verdict], scores: Sequence[Score], by: str
) -> tuple[dict[str, Any], str]:
    """Return the joint scores and winner of several runs, and the rule that decided."""
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
    """Return the number of a run; in nested repeats, the numbers continue over all outer runs."""
    return {"repeat": outer.get("repeat", 0) * run["k"] + run["repeat"]}


def _mark(run: Mapping[str, Any], turn: Turn) -> Turn:
    """Mark a turn with its run's number and the number of runs, as ``_metadata`` counts."""
    # A turn of a judge that is repeated itself has the number of inner runs as a mark. It cannot be
    # counted from the turns: a cascade asks its expensive judge only in some runs.
    inner_runs = turn.get("repeats", 1)
    number = run["repeat"] * inner_runs + turn.get("repeat", 0)
    id = f"repeat_{run['repeat']}/{turn.get('id')}"
    return cast("Turn", {**turn, "id": id, "repeat": number, "repeats": run["k"] * inner_runs})


def _marked(run: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    """Return the outcome of a run, its turns marked with the run's number."""
    marked = marked_outcome(outcome, lambda turn: _mark(run, turn))
    return {
        "outcomes": [marked],
        "transcript": marked["transcript"],
        "round": marked["verdict"]["rounds"],
    }


protocol = wrapper_record(
    RepeatedSettings,
    name="repeated",
    summary="several independent verdicts of one protocol, averaged or voted, with their spread",
    source="repeats in ChatEval (Chan et al. 2024), Table 1",
    citation=CHATEVAL,
    times=lambda settings: settings.k,
)


def build(
    settings: Bound[RepeatedSettings] = None,
    models: Models | None = None,
    **fields: Unpack[RepeatedOptions],
) -> Repeats:
    """Build the graph of several runs, not compiled.

    Args:
        settings: settings to bind, as an object or a dict.
        models: a chat model or the name of one for each role of the protocol inside, ``"*"`` for
            all others.
        **fields: single settings, such as ``of="chateval"``, ``inner={"turns": 1}`` or ``k=5``.

    Raises:
        InputError: an unknown setting or an invalid value, here or in the protocol inside.
        UsageError: an unknown protocol, or a role that it does not have.

    >>> graph = build(of="single", k=2).compile()
    >>> task = {"kind": "compare", "question": "Why?", "answer_1": "The tide turned.", "answer_2": "No idea."}
    >>> verdict = graph.invoke({"task": task})["verdict"]
    >>> verdict["details"]["of"], verdict["calls"]
    ('single', 4)
    """
    return Repeats(NestedJudges(protocol, settings, models, fields))


graph = build().compile(name="repeated")
