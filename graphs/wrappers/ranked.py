"""ranked: elects the best of several answers from comparisons of every two, by a voting rule.

    prepare --every two answers--> judge x k(k - 1)/2 -> elect

``ranked(judge, rule)`` is a graph around any protocol that compares answers. The voters are the
judge's agents whose scores or votes make its verdict: jurors, referees, or a single judge. Each
votes on every two answers. The courtroom paper (section 2) names the first two of these rules:

majority    each voter's first choice counts, the answer that it prefers most often; an answer
            needs more than half of the first choices
borda       an answer gets a point for every answer that a voter ranks below it, and half a point
            for a tie (Borda 1781)
condorcet   the answer that more voters prefer over every other one wins; the ranking is by duels
            won (Copeland 1951)
approval    a voter approves of the answers that it gives a minimum score or more (Brams and
            Fishburn 1978)

Model calls: those of the judge, for every two answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import fmean
from typing import Annotated, Any, Literal, NotRequired, cast, get_args

from langgraph.types import Send
from pydantic import Field
from typing_extensions import TypedDict

from ...state.aggregation import mean_pair, winner_by_mean
from ...state.errors import UsageError
from ...state.graph_state import Outcome, append, merge_turns
from ...state.panels import without_missing
from ...state.tasks import parse_task
from ...state.transcript import Turn
from ...state.verdict import Winner, winner_of
from ..engine._langgraph import SyncFunction
from ..engine.nested import JudgeSlot, nested_judge_node
from ..engine.registry import AnyGraph, role_kinds
from ..engine.wrapper import StepGraph, kinds_of, marked_outcome

VotingRule = Literal["majority", "borda", "condorcet", "approval"]
RULES: tuple[VotingRule, ...] = get_args(VotingRule)
MOST_ANSWERS = 20
"""20 answers make 190 comparisons. A longer list is probably a mistake."""


class RankedInput(TypedDict):
    """The input: a question, its answers, and the optional fields of a compare task."""

    question: str
    answers: list[str]
    criteria: NotRequired[list[str] | None]
    context: NotRequired[str | None]
    reference: NotRequired[str | None]


FURTHER = ("criteria", "context", "reference")
"""The optional inputs."""


class Compared(TypedDict):
    """Two answers by number from 1, the judge's verdict on them, and the votes of each voter.

    A vote is ``"1"`` for the first of the two, ``"2"``, or ``tie``. ``scores`` has an entry for
    each voter that gives scores.
    """

    answers: tuple[int, int]
    verdict: dict[str, Any]
    votes: dict[str, Winner]
    scores: dict[str, list[float]]


class RankedOutput(TypedDict):
    """The outcome of the vote, every comparison, and the transcript."""

    winner: Annotated[
        int | None,
        Field(description="The number of the answer that is elected, from 1; None: none."),
    ]
    ranking: Annotated[list[int], Field(description="The numbers of the answers, the best first.")]
    points: list[float]
    why: str
    comparisons: Annotated[list[Compared], append]
    transcript: Annotated[list[Turn], merge_turns]


class RankedState(RankedInput, RankedOutput):
    """The state while answers are compared."""


def ranked(
    judge: str | AnyGraph | Any, rule: VotingRule = "condorcet", approve_from: float = 6
) -> StepGraph:
    """Build a graph that elects the best of several answers, not compiled.

    Args:
        judge: a protocol's name or graph, compiled or not, that compares two answers.
        rule: ``majority``, ``borda``, ``condorcet`` or ``approval``.
        approve_from: for ``approval``: the lowest score, on the judge's scale, that counts as
            approval.

    Raises:
        UsageError: an unknown protocol or rule, or a judge that does not compare answers.

    >>> graph = ranked("single", rule="borda").compile()
    >>> outcome = graph.invoke({"question": "When did the bridge open?",
    ...     "answers": ["The bridge opened in 1932.", "No idea.", "When did the bridge open?"]})
    >>> outcome["winner"], len(outcome["comparisons"])
    (1, 3)
    """
    if rule not in RULES:
        raise UsageError(f"unknown voting rule {rule!r}; rules are {', '.join(RULES)}")
    slot = JudgeSlot(judge)
    if "compare" not in kinds_of(slot.graph):
        raise UsageError(
            "answers are ranked by comparing two, but this judge rates one text: use one with compare tasks"
        )
    graph = StepGraph(
        RankedState, slot.context_schema, input_schema=RankedInput, output_schema=RankedOutput
    )

    def concluded(state: RankedState) -> dict[str, Any]:
        elected = elect(rule, len(state["answers"]), state["comparisons"], approve_from)
        # Otherwise the next question on this thread would have this one's reference.
        return {**elected, **dict.fromkeys(FURTHER)}

    graph.begin(_prepared)
    judge_node = nested_judge_node(slot, lambda sent: {"task": sent["task"]}, _heard, mark=_mark)
    graph.place("judge", judge_node, then="elect")
    graph.end("elect", concluded)
    graph.add_conditional_edges("prepare", SyncFunction("every_two", _every_two), ["judge"])
    return graph


def _prepared(state: RankedState) -> dict[str, Any]:
    """Check every comparison before any model is called."""
    answers = state.get("answers")
    if not isinstance(answers, list) or not 2 <= len(answers) <= MOST_ANSWERS:
        got = len(answers) if isinstance(answers, list) else answers
        raise UsageError(f"answers must be a list of 2 to {MOST_ANSWERS} texts, got {got}")
    for comparison in _every_two(state):
        parse_task(comparison.arg["task"])
    # A reused thread still has the comparisons of its last run, which must not count.
    return {"comparisons": None, "transcript": None}


def _every_two(state: Mapping[str, Any]) -> list[Send]:
    """Send the judge every two answers, with their numbers."""
    further = {name: state[name] for name in FURTHER if state.get(name) is not None}
    about = {"kind": "compare", "question": state.get("question"), **further}
    pairs = combinations(enumerate(state["answers"], start=1), 2)
    return [
        Send(
            "judge",
            {"pair": (first, second), "task": {**about, "answer_1": answer, "answer_2": other}},
        )
        for (first, answer), (second, other) in pairs
    ]


def _mark(sent: Mapping[str, Any], turn: Turn) -> Turn:
    first, second = sent["pair"]
    return cast("Turn", {**turn, "id": f"answers_{first}_{second}/{turn.get('id')}"})


def _heard(sent: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    marked = marked_outcome(outcome, partial(_mark, sent))
    votes, scores = _ballots(marked)
    done = Compared(answers=sent["pair"], verdict=marked["verdict"], votes=votes, scores=scores)
    return {"comparisons": [done], "transcript": marked["transcript"]}


def _ballots(outcome: Outcome) -> tuple[dict[str, Winner], dict[str, list[float]]]:
    """Return each voter's vote and its scores, averaged over both orders of the answers.

    If agents vote, they are the voters; otherwise the agents that score are. For an unknown judge,
    the verdict is the only vote.
    """
    verdict = outcome["verdict"]
    kinds = role_kinds(str((verdict.get("details") or {}).get("of", verdict["protocol"])))
    last: dict[str, dict[int, Any]] = {}
    for kind in (("votes",), ("scores", "panel")):
        for turn in without_missing(outcome["transcript"]):
            if kinds.get(turn["role"]) in kind and turn["value"] is not None:
                last.setdefault(turn["agent"], {})[turn.get("order", 1)] = turn["value"]
        if last:
            break
    pairs = {
        voter: [v for v in by_order.values() if isinstance(v, list)]
        for voter, by_order in last.items()
    }
    scores = {voter: [*mean_pair(of_voter)] for voter, of_voter in pairs.items() if of_voter}
    votes = {voter: winner_by_mean(pair) for voter, pair in scores.items()}
    latest = {voter: values[max(values)] for voter, values in last.items()}
    votes |= {voter: vote for voter, vote in latest.items() if vote in ("1", "2", "tie")}
    return votes or {"judge": verdict["winner"]}, scores


def elect(
    rule: VotingRule, answers: int, comparisons: Sequence[Compared], approve_from: float = 0.0
) -> dict[str, Any]:
    """Elect one of several answers.

    Args:
        rule: the voting rule.
        answers: the number of answers.
        comparisons: the comparisons of every two answers.
        approve_from: the lowest score that counts as approval, for ``approval``.

    Returns:
        ``winner``: the number of the answer, or None if the rule elects none; ``ranking``: the
        numbers, best first, equal points in input order; ``points`` of each answer under the rule;
        and ``why``.

    Raises:
        UsageError: ``approval`` needs scores, but no voter gave any.

    >>> votes = {(1, 2): {"a": "1", "b": "1", "c": "2"}, (2, 3): {"a": "1", "b": "2", "c": "1"},
    ...     (1, 3): {"a": "1", "b": "2", "c": "2"}}
    >>> cycle = [Compared(answers=pair, verdict={}, votes=of_pair, scores={}) for pair, of_pair in votes.items()]
    >>> elect("condorcet", 3, cycle)
    {'winner': None, 'ranking': (1, 2, 3), 'points': (1.0, 1.0, 1.0), 'why': 'no answer beats every other one'}
    """
    ballots = [(done["answers"], *vote) for done in comparisons for vote in done["votes"].items()]
    points = [0.0] * answers
    if rule == "majority":
        voters = dict.fromkeys(voter for _, voter, _ in ballots)
        for own in voters:
            # A voter that prefers several answers equally often divides its vote among them.
            preferred = _points(
                answers, [(pair, vote) for pair, voter, vote in ballots if voter == own]
            )
            first = [place for place, count in enumerate(preferred) if count == max(preferred)]
            for place in first:
                points[place] += 1 / len(first)
        elected = max(points) * 2 > len(voters)
        why = f"{'it' if elected else 'no answer'} is the first choice of more than half"
    elif rule == "condorcet":
        # A duel counts once, for the answer that more voters prefer.
        duels = [(done["answers"], [*done["votes"].values()]) for done in comparisons]
        duels_won = [
            (pair, winner_of((votes.count("1"), votes.count("2")))) for pair, votes in duels
        ]
        points = _points(answers, duels_won)
        elected = max(points) == answers - 1
        why = "it beats every other answer" if elected else "no answer beats every other one"
    else:
        if rule == "borda":
            points = _points(answers, [(pair, vote) for pair, _, vote in ballots])
            why = "it has the most points"
        else:
            points = _approvals(answers, comparisons, approve_from)
            why = f"most voters give it {approve_from:g} or more"
        elected = points.count(max(points)) == 1
        why = why if elected else "several answers have equally many points"
    ranking = sorted(range(1, answers + 1), key=lambda number: -points[number - 1])
    winner = ranking[0] if elected else None
    return {"winner": winner, "ranking": tuple(ranking), "points": tuple(points), "why": why}


def _points(answers: int, votes: Iterable[tuple[tuple[int, int], Winner]]) -> list[float]:
    """Give one point per vote to the preferred answer, or half a point to both for a tie."""
    points = [0.0] * answers
    for (first, second), vote in votes:
        share = {"1": 1.0, "2": 0.0}.get(vote, 0.5)
        points[first - 1] += share
        points[second - 1] += 1 - share
    return points


def _approvals(answers: int, comparisons: Sequence[Compared], approve_from: float) -> list[float]:
    """Count, for each answer, the voters whose mean score over all comparisons approves of it."""
    given: dict[tuple[str, int], list[float]] = {}
    for done in comparisons:
        for voter, scores in done["scores"].items():
            for number, score in zip(done["answers"], scores, strict=True):
                given.setdefault((voter, number), []).append(score)
    if not given:
        raise UsageError(
            "the rule approval counts scores, but these voters give none: use another rule"
        )
    points = [0.0] * answers
    for (_, number), of_answer in given.items():
        points[number - 1] += fmean(of_answer) >= approve_from
    return points
