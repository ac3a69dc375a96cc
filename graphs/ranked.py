"""ranked: the best of several answers, by a judge that compares two, and a rule by which votes are counted.

    prepare --every two answers--> judge x k(k - 1)/2 -> elect

``ranked(judge, rule)`` is a graph round any protocol that compares answers. The voters are those agents of the judge
whose scores or votes make its verdict: jurors, referees, or a judge alone; each votes on every two answers. Rules: see
``state.voting``.

Model calls: those of the judge, for every two answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, cast

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import Field
from typing_extensions import TypedDict

from ..state.aggregation import mean_pair, winner_by_mean
from ..state.errors import UsageError
from ..state.graph_state import JudgeOutput, append, merge_turns
from ..state.tasks import parse_task
from ..state.transcript import Turn
from ..state.verdict import Winner
from ..state.voting import RULES, Duel, VotingRule, duel_numbers, elect
from .base import SyncFunction
from .judge_graph import JudgeGraphBuilder
from .nested import JudgeSlot, nested_judge_node
from .registry import AnyGraph, role_kinds
from .wrapper import kinds_of, marked_outcome

MOST_ANSWERS = 20
"""Every two of 20 answers are 190 comparisons; more would be a mistake rather than a wish."""


class RankedInput(TypedDict):
    """What is to be judged: a question, its answers, and what a compare task may have besides."""

    question: str
    answers: list[str]
    criteria: NotRequired[list[str]]
    reference: NotRequired[str | None]


class Compared(TypedDict):
    """Two answers, by number, and the judge's verdict on them."""

    answers: tuple[int, int]
    verdict: dict[str, Any]
    votes: dict[str, Winner]
    scores: dict[str, list[float]]


class RankedOutput(TypedDict):
    """The outcome of the vote, every comparison, and all that was said."""

    winner: Annotated[
        int | None, Field(description="The number of the answer that is elected, from 1; None: none.")
    ]
    ranking: Annotated[list[int], Field(description="The numbers of the answers, the best first.")]
    points: list[float]
    why: str
    comparisons: Annotated[list[Compared], append]
    transcript: Annotated[list[Turn], merge_turns]


class RankedState(RankedInput, RankedOutput):
    """The state while answers are compared; ``pair`` is what one comparison is sent."""

    pair: NotRequired[tuple[int, int]]


def ranked(
    judge: str | AnyGraph | Any, rule: VotingRule = "condorcet", approve_from: float = 6
) -> StateGraph[Any, Any, Any, Any]:
    """Build a graph that elects the best of several answers; yours to compile.

    Args:
        judge: a protocol's name or graph, compiled or not, that compares two answers.
        rule: ``majority``, ``borda``, ``condorcet`` or ``approval``.
        approve_from: for ``approval``: the lowest score, on the judge's scale, with which a voter approves.

    Raises:
        UsageError: no such protocol or rule, or a judge that compares no answers.

    >>> graph = ranked("single", rule="borda").compile()
    >>> outcome = graph.invoke({"question": "When did the bridge open?",
    ...     "answers": ["The bridge opened in 1932.", "No idea.", "When did the bridge open?"]})
    >>> outcome["winner"], len(outcome["comparisons"])
    (1, 3)
    """
    if rule not in RULES:
        raise UsageError(f"unknown voting rule {rule!r}; rules are {', '.join(RULES)}")
    slot = JudgeSlot.of(getattr(judge, "graph", judge))
    if "compare" not in kinds_of(slot.graph):
        raise UsageError(
            "answers are ranked by comparing two, but this judge rates one text: use one with compare tasks"
        )
    builder = JudgeGraphBuilder(
        RankedState, context_schema=slot.context_schema, input_schema=RankedInput, output_schema=RankedOutput
    )

    def concluded(state: RankedState) -> dict[str, Any]:
        compared = ((*done["answers"], done) for done in state["comparisons"])
        duels = [Duel(first, second, done["votes"], done["scores"]) for first, second, done in compared]
        return {**elect(rule, len(state["answers"]), duels, approve_from)._asdict()}

    builder.add_node("prepare", SyncFunction("prepare", _prepared))
    builder.add_node("judge", nested_judge_node(slot, _task, _heard, mark=_mark))
    builder.add_node("elect", SyncFunction("elect", concluded))
    builder.add_edge(START, "prepare")
    builder.add_conditional_edges("prepare", SyncFunction("every_two", _every_two), ["judge"])
    builder.add_edge("judge", "elect")
    builder.add_edge("elect", END)
    return builder


def _prepared(state: RankedState) -> dict[str, Any]:
    """Check every comparison before any model is called."""
    answers = state.get("answers")
    if not isinstance(answers, list) or not 2 <= len(answers) <= MOST_ANSWERS:
        got = len(answers) if isinstance(answers, list) else answers
        raise UsageError(f"answers must be a list of 2 to {MOST_ANSWERS} texts, got {got}")
    for pair in duel_numbers(len(answers)):
        parse_task(_task({**state, "pair": pair})["task"])
    # A thread may be used again: its last run's comparisons would be counted.
    return {"comparisons": None, "transcript": None}


def _task(state: Mapping[str, Any]) -> dict[str, Any]:
    first, second = (state["answers"][number - 1] for number in state["pair"])
    further = {name: state[name] for name in ("criteria", "reference") if state.get(name) is not None}
    task = {"kind": "compare", "question": state.get("question"), "answer_1": first, "answer_2": second}
    return {"task": {**task, **further}}


def _every_two(state: RankedState) -> list[Send]:
    about = {name: state[name] for name in RankedInput.__annotations__ if name in state}  # type: ignore[literal-required]
    return [Send("judge", {**about, "pair": pair}) for pair in duel_numbers(len(state["answers"]))]


def _mark(state: RankedState, turn: Turn) -> Turn:
    first, second = state["pair"]
    return cast("Turn", {**turn, "id": f"answers_{first}_{second}/{turn.get('id')}"})


def _heard(state: RankedState, outcome: JudgeOutput) -> dict[str, Any]:
    marked = marked_outcome(outcome, lambda turn: _mark(state, turn))
    votes, scores = _ballots(marked)
    done = Compared(answers=state["pair"], verdict=marked["verdict"], votes=votes, scores=scores)
    return {"comparisons": [done], "transcript": marked["transcript"]}


def _ballots(outcome: JudgeOutput) -> tuple[dict[str, Winner], dict[str, list[float]]]:
    """Return what each voter of a judge said last, its scores averaged over both orders of the answers.

    Where agents vote, they are the voters; else those who score. Of an unknown judge the verdict is the only vote.
    """
    verdict = outcome["verdict"]
    kinds = role_kinds(str((verdict.get("details") or {}).get("of", verdict["protocol"])))
    last: dict[str, dict[int, Any]] = {}
    for kind in (("votes",), ("scores", "panel")):
        for turn in outcome["transcript"]:
            if kinds.get(turn["role"]) in kind and turn["value"] is not None:
                last.setdefault(turn["agent"], {})[turn.get("order", 1)] = turn["value"]
        if last:
            break
    pairs = {voter: _mean(values.values()) for voter, values in last.items()}
    scores = {voter: [*pair] for voter, pair in pairs.items() if pair is not None}
    votes = {voter: winner_by_mean(pair) for voter, pair in scores.items()}
    latest = {voter: values[max(values)] for voter, values in last.items()}
    votes |= {voter: vote for voter, vote in latest.items() if vote in ("1", "2", "tie")}
    return votes or {"judge": verdict["winner"]}, scores


def _mean(values: Any) -> Sequence[float] | None:
    pairs = [value for value in values if isinstance(value, list)]
    return mean_pair(pairs) if pairs else None
