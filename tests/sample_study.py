"""Make studies by hand with chosen figures, so that tests know where each must appear."""

from pathlib import Path
from typing import Any

from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.comparison import Comparison, PairwiseComparison
from jurygraph.eval.analysis.costs import CostRow, Costs, Frontier, Point
from jurygraph.eval.analysis.debate_counters import Replies, ScoreChanges
from jurygraph.eval.analysis.diagnostics import Changes, Diagnosis, Round, Spending
from jurygraph.eval.analysis.equal_cost import EqualCostComparison
from jurygraph.eval.analysis.judges import Judge, Subject
from jurygraph.eval.analysis.leaderboard import (
    AgainstChance,
    Average,
    Leaderboard,
    LeaderboardEntry,
)
from jurygraph.eval.analysis.leanings import LengthBias
from jurygraph.eval.results.evaluation import UsageTotals
from jurygraph.eval.statistics.resampling import Resampling, Statistic
from jurygraph.eval.statistics.sample import Difference
from jurygraph.state.transcript import Usage

OFFLINE = "Demo mode: scores come from word counts, not from a language model."
FIGURES = {
    "single": (0.30, 1.0, 0.001),
    "debate": (0.42, 4.4, 0.0052),
    "chateval": (0.38, 4.0, 0.0041),
}


def around(value: float, width: float = 0.1) -> Statistic:
    """A figure in the middle of its interval."""
    return Statistic(value, value - width, value + width)


def judge(name: str, **changes: Any) -> Judge:
    """Make a judge that judged twelve items of two aspects and failed at one."""
    _, calls, cost = FIGURES.get(name, (0.1, 2.0, 0.002))
    fields: dict[str, Any] = {
        **{
            "label": name,
            "protocol": name,
            "signature": f"protocol:{name}|data:wit@abc|version:0.1.0",
        },
        **{"folder": Path("runs/wit"), "models": {"*": "openai:gpt-4o-mini"}, "note": None},
        **{"data": "wit", "digest": "abc", "subjects": ("coherence", "fluency")},
        **{"wanted": 24, "judged": 23, "failed": 1, "missing": 0},
        "usage": UsageTotals(24, spent(24, calls, cost)),
    }
    return Judge(**{**fields, **changes})


def spent(judgements: int, calls: float, cost: float) -> Usage:
    """Return the usage of this many judgements at given calls and dollars each."""
    return Usage(
        calls=round(judgements * calls),
        input_tokens=1_000 * judgements,
        cost_usd=judgements * cost,
        seconds=2.0 * judgements,
    )


def subject(name: str = "coherence") -> Subject:
    """An aspect on a scale of five."""
    return Subject(name, "wit", "abc", name, "score", 1, 5)


def standing(each_judge: str, of: str) -> LeaderboardEntry:
    """Make an entry with the figures of ``FIGURES``, a little less on fluency."""
    value = FIGURES[each_judge][0] - (0.05 if of == "fluency" else 0)
    shifts = {"pearson": 0.02, "spearman": 0, "kendall": -0.06}
    measures = {name: around(value + shift) for name, shift in shifts.items()}
    figure = measures["spearman"]
    better = AgainstChance(0, figure, figure, 0.001, 0.004)
    return LeaderboardEntry(each_judge, of, None, measures, chance=better)


def pairwise(each_judge: str, of: str) -> PairwiseComparison:
    """Against single, with a p that Holm's method has doubled."""
    value = FIGURES[each_judge][0]
    base = FIGURES["single"][0]
    gain = around(value - base, 0.09)
    differences = {
        name: Difference(value, base, gain, 0.0123, 0.0369, 0.0246)
        for name in ("pearson", "spearman", "kendall")
    }
    return PairwiseComparison(of, each_judge, "single", differences, shared=12)


def average_duel(first: str, second: str = "single", p: float = 0.0246) -> PairwiseComparison:
    """Over both aspects."""
    value = FIGURES[first][0] - 0.025
    base = FIGURES[second][0] - 0.025
    difference = Difference(value, base, around(value - base, 0.01), p, p, p)
    return PairwiseComparison("abc", first, second, {"spearman": difference}, 12)


def diagnosis(each_judge: str = "debate") -> Diagnosis:
    """Three rounds, each of which helped a little."""
    counts: dict[str, Any] = {
        "n": 12,
        "helpful": 4,
        "harmful": 1,
        "neither": 1,
        "back": 1,
        "up": 2,
        "down": 4,
        "changed": 6,
    }
    moved = Statistic(0.5, 0.3, 0.7)
    error = Statistic(-0.21, -0.4, 0.0)
    rounds = []
    for number in range(3):
        gain, a_call = (around(0.06, 0.03), 0.03) if number else (None, None)
        agreement = around(0.3 + 0.06 * number)
        calls = 1.0 + 2 * number
        rounds.append(Round(number, 12 - 4 * number, agreement, gain, calls, a_call, 3, 2, 1, 0.5))
    means = {"mean_rounds": 2.0, "mean_calls": 4.33, "unresolved": 1 / 3}
    reasons = {"no_issue": 8, "max_rounds": 4}
    return Diagnosis(
        judge=each_judge,
        subject="coherence",
        measure="spearman",
        changes=Changes(**counts, labelled=6, moved=moved, p=0.375, error=error),
        rounds=tuple(rounds),
        score_changes=(ScoreChanges("critic", 20, 7, 0.6, 4, 2),),
        conformity=None,
        spending=Spending(**means, rounds={1: 8, 4: 4}, stop_reasons=reasons, calls={2: 8, 9: 4}),
        positions=None,
        length=LengthBias(12, 12, correlation=around(0.2), partial=around(0.1), human=around(0.15)),
        replies=Replies(
            repaired=1, unread=0, copied=0, failed=1, reasons={"no score in the reply": 1}
        ),
    )


def study(**changes: Any) -> Study:
    """Three judges on two aspects; the best is debate."""
    judges = list(FIGURES)
    subjects = ("coherence", "fluency")
    points = []
    averages = []
    costs = []
    for name, (value, calls, cost) in FIGURES.items():
        points.append(Point(name, calls, around(value), name != "chateval"))
        mean = around(value - 0.025)
        better = AgainstChance(0, mean, mean, 0.001, 0.004)
        averages.append(Average(name, subjects, {"spearman": mean}, better))
        costs.append(CostRow(name, "wit", 24, calls, 1000.0, cost, 2.0, 24 * cost, 48.0))
    people = CostRow("humans", "wit", 24, None, None, 0.75, 180.0, 18.0, 4320.0)
    sizes = [Point(f"{k} of 3", k, around(0.28 + 0.02 * k)) for k in (1, 2, 3)]
    curve = tuple(sizes)
    left_out = {"geval": "its scores are constant"}
    duels = average_duel("debate"), average_duel("chateval"), average_duel("debate", "chateval")
    fields: dict[str, Any] = {
        "judges": tuple(map(judge, judges)),
        "subjects": tuple(map(subject, subjects)),
        "base": "single",
        "resampling": Resampling(resamples=500, seed=7),
        "leaderboard": Leaderboard(
            tuple(standing(each_judge, of) for each_judge in judges for of in subjects),
            tuple(averages),
        ),
        "comparison": Comparison(
            tuple(
                pairwise(each_judge, of) for of in subjects for each_judge in ("debate", "chateval")
            ),
            averages=duels,
        ),
        "matching": EqualCostComparison(
            (), (), ("no ensemble was run: jurygraph run ensemble --data wit",)
        ),
        "frontiers": (
            Frontier("coherence", "spearman", "calls", tuple(points), (curve,), left_out),
        ),
        "diagnoses": (diagnosis(),),
        "costs": Costs((*costs, people)),
        "notes": (),
        "bases": dict.fromkeys(subjects, "single"),
    }
    return Study(**{**fields, **changes})
