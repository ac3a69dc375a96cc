"""Test debate diagnostics by hand, against other tools, and with planted effects."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.analysis import Study
from jurygraph.eval.analysis.debate_counters import ScoreChanges
from jurygraph.eval.analysis.diagnostics import Diagnosis
from jurygraph.eval.analysis.leanings import LengthBias, partial_correlation
from jurygraph.eval.report.debate_tables import placebo_notes
from jurygraph.eval.results.results import Result
from jurygraph.eval.statistics.resampling import Resampling
from scipy import stats

from .run_folders import compared, failed, run_folder, scored, turn

FEW = Resampling(resamples=200, seed=1)


def diagnosis(
    tmp_path: Path, results: list[Result], kind: str = "score", **manifest: object
) -> Diagnosis:
    """Of the one protocol on the one subject of a run."""
    folder = run_folder(tmp_path / "run", results, kind=kind, **manifest)  # type: ignore[arg-type]
    [found] = Study.of(folder, resampling=FEW).diagnoses
    return found


def debated(item: str, path: tuple[float, ...], human: float | None, **fields: Any) -> Result:
    """A DEBATE that gave these scores, ended by a satisfied Critic."""
    turns = [turn("scorer", path[0], 0)]
    for round, score in enumerate(path[1:], start=1):
        turns += [turn("critic", False, round), turn("scorer", score, round)]
    turns.append(turn("critic", True, len(path)))
    usual = {"score": path[-1], "calls": len(turns), "rounds": len(path), "stop_reason": "no_issue"}
    rest = {**usual, "score_by_round": path, "human": human, "transcript": tuple(turns), **fields}
    return scored(item, **rest)


# Changes
def test_changes_by_hand(tmp_path: Path) -> None:
    found = diagnosis(
        tmp_path,
        [
            debated("nearer", (2.0, 3.0), 4.0),
            debated("farther", (4.0, 2.0), 4.0),
            debated("as far", (3.0, 5.0), 4.0),
            debated("there and back", (3.0, 4.0, 3.0), 4.0),
            debated("stayed", (3.0,), 4.0),
            debated("no label", (2.0, 1.0), None),
        ],
    ).changes
    assert found is not None
    assert (found.n, found.changed, found.back, found.labelled) == (6, 4, 1, 3)
    assert (found.helpful, found.harmful, found.neither, found.p) == (1, 1, 1, 1.0)
    assert (found.up, found.down) == (2, 2)
    assert found.moved.value == 4 / 6
    assert found.error is not None
    assert found.error.value == pytest.approx((-1 + 2 + 0 + 0 + 0) / 5)


def test_changes_of_preferences_by_hand(tmp_path: Path) -> None:
    def pair(item: str, first: Any, last: Any, winner: str, human: str) -> Result:
        return compared(item, winner=winner, human=human, scores=last, score_by_round=(first, last))

    rows = [
        pair("put right", (5, 6), (7, 6), "1", "1"),
        pair("spoilt", (6, 5), (5, 6), "2", "1"),
        pair("wrong either way", (6, 6), (5, 6), "2", "1"),
        pair("stayed", (7, 5), (9, 5), "1", "1"),
    ]
    found = diagnosis(tmp_path, rows, kind="compare").changes
    assert found is not None
    assert (found.n, found.changed, found.back, found.labelled, found.error) == (4, 3, 0, 3, None)
    assert (found.helpful, found.harmful, found.neither, found.p) == (1, 1, 1, 1.0)
    assert (found.up, found.down) == (1, 2)


def repeated_debates(last: Callable[[float], float]) -> list[Result]:
    """Two repeats of 40 items; the judge draws its first score, and ``last`` ends the debate."""
    draws = random.Random(3)
    return [
        debated(f"i{n:02}", (first := float(draws.randint(1, 5)), last(first)), 3.0, repeat=repeat)
        for n in range(40)
        for repeat in range(2)
    ]


def test_resampling_alone_is_no_effect_of_the_discussion(tmp_path: Path) -> None:
    draws = random.Random(4)
    redrawn = repeated_debates(lambda _first: float(draws.randint(1, 5)))
    found = diagnosis(tmp_path / "redrawn", redrawn, repeats=2)
    assert found.changes is not None and found.changes.p_effect is not None
    assert found.changes.moved.value is not None and found.changes.moved.value > 0.7
    assert found.changes.p_effect > 0.05
    changed = diagnosis(
        tmp_path / "changed", repeated_debates(lambda first: first % 5 + 1), repeats=2
    )
    kept = diagnosis(tmp_path / "kept", repeated_debates(lambda first: first), repeats=2)
    for diagnosed, way in ((changed, 1), (kept, -1)):
        assert diagnosed.changes is not None and diagnosed.changes.placebo is not None
        placebo = diagnosed.changes.placebo.value or 0.0
        assert diagnosed.changes.effect is not None and 0.7 < placebo < 0.9
        assert way * (diagnosed.changes.effect.value or 0.0) > 0
    assert [note[:7] for note in placebo_notes([changed])] == ["Placebo"]
    without = diagnosis(tmp_path / "once", redrawn[::2])
    assert without.changes is not None and without.changes.placebo is None
    assert placebo_notes([without])[0].startswith("No placebo was run: a model that judges again")


def test_where_nobody_talked_or_moved_nothing_changed(tmp_path: Path) -> None:
    alone = [scored(f"i{n}", "single", score=1.0 + n, human=2.0) for n in range(4)]
    found = diagnosis(tmp_path / "alone", alone)
    assert (found.changes, found.rounds, found.score_changes, found.conformity) == (
        None,
        (),
        (),
        None,
    )
    silent = diagnosis(tmp_path / "silent", [debated(f"i{n}", (1.0 + n,), 2.0) for n in range(4)])
    assert silent.changes is not None
    assert (silent.changes.changed, silent.changes.p, len(silent.rounds)) == (0, None, 1)
    rounded = diagnosis(tmp_path / "rounded", [debated("i", (1.1 + 2.2, 3.3), 2.0)])
    assert rounded.changes is not None and rounded.changes.changed == 0


def test_labels_on_another_scale_say_nothing_of_distances(tmp_path: Path) -> None:
    found = diagnosis(
        tmp_path, [debated(f"i{n}", (1.0, 2.0 + n % 3), 40.0 + 10 * n) for n in range(6)]
    )
    assert found.changes is not None
    assert (found.changes.changed, found.changes.labelled, found.changes.error) == (6, 0, None)
    assert [(round.helpful, round.error) for round in found.rounds] == [(0, None), (0, None)]
    assert found.rounds[1].agreement.value is not None, "ranks need no common scale"
    assert found.score_changes == (ScoreChanges("critic", 6, 6, 2.0, 0, 0),)
    assert "6 of 6 verdicts or their labels lie outside 1 to 5" in found.notes[0]


# Rounds
def test_a_debate_that_helps_has_rounds_worth_their_calls(tmp_path: Path) -> None:
    """The noise of the judge shrinks with each round."""
    draw = random.Random(4)
    rows = []
    for number in range(80):
        human = 1 + 4 * draw.random()
        noise = draw.gauss(0, 1)
        path = tuple(min(5.0, max(1.0, human + noise * step)) for step in (2.0, 0.8, 0.1))
        rows.append(debated(f"i{number}", path, human))
    helped = diagnosis(tmp_path, rows)
    first, *later = helped.rounds
    assert (first.gain, first.gain_per_call) == (None, None)
    assert all((round.gain_per_call or 0) > 0 for round in later)
    assert all(round.gain.low > 0 for round in later)  # type: ignore[operator,union-attr]
    assert first.error > later[0].error > later[1].error  # type: ignore[operator]
    assert helped.changes is not None and helped.changes.error is not None
    assert helped.changes.helpful > 5 * helped.changes.harmful
    assert (helped.changes.p or 1) < 1e-6
    assert (helped.changes.error.high or 0) < 0


def test_who_is_done_keeps_the_last_score_and_takes_no_more_calls(tmp_path: Path) -> None:
    rows = [debated("a", (1.0, 2.0), 2.0), debated("b", (3.0,), 3.0), debated("c", (2.0, 5.0), 5.0)]
    first, second = diagnosis(tmp_path, rows).rounds
    assert (first.active, second.active) == (3, 2)
    assert first.calls == 1.0
    assert second.calls == (3 + 2 + 3) / 3, "two objections and a satisfied Critic"
    assert first.agreement.value == pytest.approx(stats.spearmanr([1, 3, 2], [2, 3, 5])[0])
    assert second.agreement.value == 1.0
    gain = 1 - (first.agreement.value or 0)
    assert second.gain_per_call == pytest.approx(gain / (8 / 3 - 1))
    assert (second.changed, second.helpful, second.error) == (2, 2, 0.0)


def test_critics_who_object_side_by_side_are_both_named(tmp_path: Path) -> None:
    row = debated("i", (1.0, 3.0), 3.0)
    first, _, last, _ = row.transcript
    both = (first, turn("critic_1", False), turn("critic_2", False), last)
    found = diagnosis(tmp_path, [row.model_copy(update={"transcript": both})])
    assert found.score_changes == tuple(
        ScoreChanges(f"critic_{n}", 1, 1, 2.0, 1, 0) for n in (1, 2)
    )


def test_what_a_tie_breaker_decided_is_an_entry_of_its_own(tmp_path: Path) -> None:
    rows = [debated(f"i{n}", (1.0 + n, 2.0 + n), 4.0 - n) for n in range(3)]
    tied = (*rows[0].transcript[:-1], turn("tie_breaker", 4.0, 1))
    ended = {"transcript": tied, "score": 4.0, "stop_reason": "tie_breaker"}
    found = diagnosis(tmp_path, [rows[0].model_copy(update=ended), *rows[1:]])
    last = found.rounds[-1]
    assert [round.final for round in found.rounds] == [False, False, True]
    assert (last.changed, last.helpful) == (1, 1)
    critic, tie_breaker = found.score_changes
    assert critic == ScoreChanges("critic", 3, 3, 1.0, 2, 1)
    assert tie_breaker == ScoreChanges("tie_breaker", 1, 1, 2.0, 1, 0)
    assert found.spending.stop_reasons == {"no_issue": 2, "tie_breaker": 1}


def test_a_cascade_has_no_calls_by_round(tmp_path: Path) -> None:
    """Its two protocols count their rounds separately."""
    rows = [debated(f"i{n}", (1.0 + n, 2.0 + n), 4.0 - n) for n in range(3)]
    turns = [tuple({**each, "stage": "cheap"} for each in row.transcript) for row in rows]
    staged = [
        row.model_copy(update={"transcript": own}) for row, own in zip(rows, turns, strict=True)
    ]
    found = diagnosis(tmp_path, staged)
    assert [(round.calls, round.gain_per_call) for round in found.rounds] == [
        (None, None),
        (None, None),
    ]
    assert found.spending.mean_calls == 4.0


# Movers and conformity
def discussed(item: str, turns: list[list[float]], human: float = 3.0) -> Result:
    """A ChatEval discussion in which every referee scores every turn."""
    means = tuple(sum(values) / len(values) for values in turns)
    transcript = tuple(
        turn(f"referee_{slot}", value, round)
        for round, values in enumerate(turns, start=1)
        for slot, value in enumerate(values, start=1)
    )
    rest = {"score": means[-1], "human": human, "calls": len(transcript)}
    return scored(item, "chateval", **rest, score_by_round=means, transcript=transcript)


def test_which_referee_moved_and_towards_whom(tmp_path: Path) -> None:
    rows = [discussed("a", [[1, 3, 5], [2, 3, 4]]), discussed("b", [[3, 3, 3], [3, 3, 5]])]
    found = diagnosis(tmp_path, rows)
    moved: list[Any] = [(3, 2, 2, 1.5, 1, 1), (1, 2, 1, 1.0, 1, 0), (2, 2, 0, None, 0, 0)]
    assert found.score_changes == tuple(
        ScoreChanges(f"referee_{slot}", *rest) for slot, *rest in moved
    )
    conformity = found.conformity
    assert conformity is not None
    assert (conformity.n, conformity.changes, conformity.towards_previous) == (2, 3, 2)
    assert (conformity.towards, conformity.away, conformity.p) == (2, 1, 1.0)
    assert (conformity.start_equal, conformity.end_equal) == (0.5, 0.0)
    spread = [np.std([1, 3, 5]) / 2, (np.std([2, 3, 4]) + np.std([3, 3, 5])) / 2]
    assert conformity.spread_by_turn == pytest.approx(spread)


def test_samples_of_one_agent_do_not_move_each_other(tmp_path: Path) -> None:
    samples = tuple(turn("scorer", value, sample=number) for number, value in enumerate((2, 4), 1))
    found = diagnosis(tmp_path, [scored("a", "geval", score=3.0, human=3.0, transcript=samples)])
    assert found.score_changes == ()


def test_who_speaks_at_the_same_time_does_not_hear_the_others(tmp_path: Path) -> None:
    """One by one, the second referee moves from the first's new value, else to its old one."""
    rows = [discussed("a", [[1, 5], [5, 3]])]
    by_turns = diagnosis(tmp_path / "a", rows).conformity
    together = {"chateval": {"strategy": "simultaneous"}}
    at_once = diagnosis(tmp_path / "b", rows, protocols=together).conformity
    assert by_turns is not None
    assert at_once is not None
    assert (by_turns.towards, by_turns.away, by_turns.towards_previous) == (1, 1, 1)
    assert (at_once.towards, at_once.away, at_once.towards_previous) == (2, 0, None)


def test_the_previous_speaker_is_who_gave_the_last_value(tmp_path: Path) -> None:
    row = discussed("a", [[3, 3, 5], [3, 1, 5], [4, 1, 5]])
    turns = tuple(
        each for each in row.transcript if (each["round"], each["agent"]) != (2, "referee_3")
    )
    conformity = diagnosis(tmp_path, [row.model_copy(update={"transcript": turns})]).conformity
    assert conformity is not None
    assert (conformity.changes, conformity.towards_previous) == (2, 0)


def test_a_jury_that_overrules_the_scores_moved_it(tmp_path: Path) -> None:
    details = {"w": "1", "jury_winner": "2"}
    votes = tuple(turn(f"juror_{n}", "2", 2) for n in range(3))
    judged = (turn("judge", [70.0, 60.0]), turn("judge", [65.0, 60.0], 2))
    row = compared("a", "samre", winner="2", human="2", details=details, transcript=judged + votes)
    found = diagnosis(
        tmp_path, [row, row.model_copy(update={"item": "b", "human": "1"})], kind="compare"
    )
    assert found.score_changes == (
        ScoreChanges("judge", 2, 2, 5.0, 0, 0),
        ScoreChanges("jury", 2, 2, None, 1, 1),
    )


# Places, lengths, replies
def test_places_are_those_in_which_answers_were_shown(tmp_path: Path) -> None:
    rows = []
    for n, orders in enumerate([("1", "1"), ("1", "2"), ("1", "2"), ("tie", "1")]):
        shown: Any = {
            "details": {"winner_by_order": list(orders)},
            "position_consistent": orders[0] == orders[1],
        }
        rows.append(compared(f"p{n}", winner="1", human="1", **shown))
    found = diagnosis(tmp_path, rows, kind="compare").positions
    assert found is not None and found.consistent is not None
    assert (found.n, found.consistent.value) == (4, 0.25)
    assert (found.shown_first, found.shown_second, found.ties) == (5, 2, 1)
    assert found.p == pytest.approx(stats.binomtest(5, 7).pvalue)


def test_where_rows_share_a_group_no_sign_test_takes_them_as_independent(tmp_path: Path) -> None:
    spoken = [discussed(f"i{n}", [[1, 3, 5], [2, 3, 4]]) for n in range(6)]
    pairs = [
        compared(f"p{n}", winner="1", human="1", score_by_round=((5, 6), (7, 6))) for n in range(6)
    ]
    for groups, tested in (("abcdef", True), ("abcdee", False)):
        alike, compares = (
            diagnosis(
                tmp_path / f"{kind} {groups}",
                [
                    row.model_copy(update={"group": group})
                    for row, group in zip(rows, groups, strict=True)
                ],
                kind=kind,
            )
            for rows, kind in ((spoken, "score"), (pairs, "compare"))
        )
        found = (alike.conformity, compares.changes, compares.positions)
        assert [part is not None and part.p is not None for part in found] == [tested] * 3


def test_partial_correlation_against_residuals_of_ranks(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    length = draw.permutation(50) + 1
    human = np.round(1 + 4 * stats.rankdata(length + draw.normal(0, 15, 50)) / 50, 3)
    score = np.round(1 + 4 * stats.rankdata(human + 0.05 * length + draw.normal(0, 1, 50)) / 50, 3)
    columns = zip(score.tolist(), human.tolist(), length.tolist(), strict=True)
    rows = [
        scored(f"i{n:02}", score=s, human=h, lengths=(size,))
        for n, (s, h, size) in enumerate(columns)
    ]
    found = diagnosis(tmp_path, rows).length
    assert (
        isinstance(found, LengthBias)
        and found.partial is not None
        and found.correlation is not None
    )
    ranks = [stats.rankdata(column) for column in (score, length, human)]
    residuals = [
        column - np.polyval(np.polyfit(ranks[2], column, 1), ranks[2]) for column in ranks[:2]
    ]
    assert found.partial.value == pytest.approx(stats.pearsonr(*residuals)[0])
    assert found.correlation.value == pytest.approx(stats.spearmanr(score, length)[0])
    assert found.partial.low is not None
    # Nothing is left if the label explains everything.
    assert np.isnan(partial_correlation(np.array([0.5]), np.array([1.0]), np.array([0.5]))[0])


def test_the_longer_answer(tmp_path: Path) -> None:
    judged = [
        ("1", "1", 9, 5),
        ("2", "1", 5, 9),
        ("2", "2", 9, 5),
        ("tie", "1", 9, 5),
        ("1", "1", 5, 5),
    ]
    rows = [
        compared(f"p{n}", winner=winner, human=human, lengths=tuple(lengths))
        for n, (winner, human, *lengths) in enumerate(judged)
    ]
    study = Study.of(run_folder(tmp_path, rows, kind="compare"), resampling=FEW)
    found = study.diagnoses[0].length
    assert found is not None and found.longer is not None and found.human_longer is not None
    assert (found.longer.value, found.human_longer.value) == (2.5 / 4, 0.5)
    # The first screen uses the same figures.
    [leaning] = [leaning for leaning in study.leanings if leaning.way == "length"]
    assert (leaning.judged, leaning.human) == (found.longer.value, found.human_longer.value)


def test_faults_of_replies_are_counted_by_kind(tmp_path: Path) -> None:
    warned = (
        "critic, round 1: the reply was asked for again 1 time(s)",
        "critic, round 2: the reply was asked for again 1 time(s)",
        "juror_1: void vote. No vote in the reply.",
        "juror_2, round 1: the reply repeats what it was shown, word for word",
    )
    samples = "scorer, round 1: 2 of 20 samples could not be read and were left out"
    rows = [scored("a", score=3.0, human=3.0, warnings=warned)]
    rows += [scored("b", score=3.0, human=3.0, warnings=(samples,))]
    errors = [f"scorer, round {n}: No score. Raw reply: '{n}'" for n in range(2)]
    rows += [failed(f"f{n}", aspect="wit", error=error) for n, error in enumerate(errors)]
    found = diagnosis(tmp_path, rows).replies
    assert (found.repaired, found.unread, found.copied, found.failed) == (1, 2, 1, 2)
    assert found.reasons == {"No score.": 2}
    assert found.warnings == {
        "reply asked for again": 1,
        "void vote": 1,
        "reply that copies what it was shown": 1,
        "samples left out as unreadable": 1,
    }


# Real runs
@pytest.mark.parametrize(("protocol", "settings", "data"), [
    ("debate", {"n": 2, "tie_breaker": True}, "demo"),
    ("chateval", {"score_each_turn": True, "turns": 3}, "demo"),
    ("chateval", {"score_each_turn": True}, "demo-pairs"), ("samre", {}, "demo-pairs"),
    ("more", {"rounds": 2}, "demo-pairs"),
])  # fmt: skip
def test_real_debates_end_where_they_ended(
    tmp_path: Path, protocol: Any, settings: Any, data: str
) -> None:
    """The last entry is the run's own agreement, after all calls or all but one."""
    run = evaluate(protocol, data, settings=settings, limit=8, out=tmp_path / "run")
    study = Study.of(tmp_path / "run", resampling=Resampling(resamples=20))
    for found in study.diagnoses:
        standing = study.leaderboard.standing(protocol, found.subject)
        overview = run.figures.overviews[protocol, None if data == "demo-pairs" else found.subject]
        assert standing is not None and found.changes is not None
        last = found.rounds[-1]
        assert last.agreement == standing.measures[found.measure]
        assert found.changes.n == overview.judged
        assert found.spending.mean_calls == overview.totals.calls_each
        assert last.calls is not None and last.calls <= (overview.totals.calls_each or 0)
        assert sum(round.changed for round in found.rounds) >= found.changes.changed
