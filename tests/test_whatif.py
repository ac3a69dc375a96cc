"""Test debates that are forked at a turn, on top of the original run."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from jurygraph.eval import evaluate, load_dataset, whatif
from jurygraph.eval.experiments.whatif import SILENCE, Edit, plan_whatif
from jurygraph.eval.results.config import RunConfig
from jurygraph.eval.results.experiment_result import read_experiment
from jurygraph.eval.results.placebo import may_vary
from jurygraph.eval.statistics.resampling import Statistic
from jurygraph.eval.statistics.significance import holm
from jurygraph.graphs import debate, repeated
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.errors import UsageError
from jurygraph.state.transcript import turn_without_model

from .processes import in_this_process
from .sample_data import read_lines, write_lines
from .truth_gate import effect_of_turn, resumed_debates, sees

DEBATES: Any = {"aspects": ["consistency"], "settings": {"n": 1}}


def test_a_dropped_turn_says_nothing_and_a_flipped_one_the_opposite() -> None:
    def turn(agent: str, number: int, value: Any) -> Any:
        made = turn_without_model(number, agent, agent.partition("_")[0], "Words.", value)
        return {**made, "id": f"{agent}:{number}", "scale": [1, 5]}

    objection = turn("critic", 1, False)
    satisfied = turn("critic", 2, True)
    talk = [turn("referee_1", 1, 4.0), turn("referee_2", 1, 2.0), turn("referee_1", 2, 3.0)]
    assert Edit("critic:1", "drop").of_turns("debate", [objection, satisfied]) == [
        {"id": "critic:1", "content": SILENCE, "value": False}
    ]
    assert Edit("critic:2", "flip").of_turns("debate", [objection, satisfied])[0]["value"] is False
    assert Edit("referee_1:1", "drop").of_turns("chateval", talk) == [
        {"id": "referee_1:1", "content": SILENCE}
    ]
    # No model gives this score again: it is part of the verdict.
    assert Edit("referee_2:1", "drop").of_turns("chateval", talk) == []
    assert Edit("referee_2:1", "flip").of_turns("chateval", talk)[0]["value"] == 4.0
    pair: Any = {**turn("referee_1", 1, [8.0, 6.0]), "id": "swapped/referee_1:1"}
    assert Edit("referee_1:1", "flip").of_turns("chateval", [pair])[0]["value"] == [6.0, 8.0]


def persuaded(call: Any, prompt: str) -> Any:
    """Play all roles: the Scorer says 4 alone, and 2 after it has heard the Critic."""
    if call["role"] == "critic":
        return {"feedback": "You overlooked the year.", "no_issue": False}
    return {"reasoning": "So it is.", "score": 2 if "You overlooked the year." in prompt else 4}


def test_dropping_the_critic_shows_how_far_it_moved_the_verdicts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = ScriptedModel(script=persuaded)
    evaluate("debate", "demo", **DEBATES, limit=12, models=model, out=run)
    asked = len(model.calls)
    [dropped] = whatif(run, Edit("critic:1", "drop"), models=model)
    [effect] = dropped.effects
    assert (effect.n, dropped.failed, dropped.stopped) == (12, 0, None)
    # With the Critic 2, without it 4; two of a debate's three calls are answered by the run's
    # journal. The third one is made twice, since the model may vary: without the Critic, and with
    # nothing changed.
    assert effect.move is not None
    assert (effect.moved.value, effect.placebo.value, effect.move.value) == (1.0, 0.0, -2.0)
    assert dropped.sentence == "Too few debates to say whether critic:1 changes verdicts"
    assert "with nothing changed: effect 100% [" in effect.evidence
    assert effect.evidence.endswith("; no test of fewer than 10 groups")
    assert len(model.calls) == asked + 24
    items: list[Any] = [*load_dataset("demo").first(12)]
    labels = [item.label("consistency") for item in items]
    assert effect.towards == sum(label < 3 for label in labels if label is not None)
    assert effect.away == sum(label > 3 for label in labels if label is not None)
    lines = read_lines(run / "whatif" / "drop-critic-1")
    placebo = [result for result in lines if not result["details"]["changed"]]
    assert len(placebo) == 12 and not any(
        turn.get("edited") for each in placebo for turn in each["transcript"]
    )
    results = [result for result in lines if result["details"]["changed"] == ["critic:1"]]
    assert len(results) == 12
    edited = [
        turn for result in results for turn in result["transcript"] if turn["id"] == "critic:1"
    ]
    assert all((turn["content"], turn["edited"]) == (SILENCE, True) for turn in edited)

    # A budget applies to new calls; a repetition makes none.
    assert whatif(run, Edit("critic:1", "drop"), models=model, max_calls=24)[0] == dropped
    assert len(model.calls) == asked + 24


def test_the_command_prints_how_far_turns_moved_verdicts_and_refuses_others(tmp_path: Path) -> None:
    evaluate("debate", "demo", **DEBATES, limit=4, out=tmp_path / "run")
    done = in_this_process(
        "whatif", "run", "--drop", "critic:1", "--flip", "critic:1", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "debate without critic:1" in done.stdout
    folders = {path.name for path in (tmp_path / "run" / "whatif").iterdir()}
    assert folders == {"drop-critic-1", "flip-critic-1"}
    for arguments, words in (
        (["--drop", "critic:7"], "no such turn; turns are commander:1"),
        (
            ["--drop", "scorer:2"],
            "it gives the score that is the verdict, and its agent gives no other",
        ),
        ([], "no turn to change"),
    ):
        refused = in_this_process("whatif", "run", *arguments, cwd=tmp_path)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    bare = [{"id": f"i{n}", "source": "The ferry sank.", "candidate": "It sank."} for n in range(2)]
    write_lines(tmp_path / "bare.jsonl", bare)
    evaluate("debate", tmp_path / "bare.jsonl", aspects=["fluency"], limit=2, out=tmp_path / "bare")
    done = in_this_process("whatif", "bare", "--drop", "critic:1", cwd=tmp_path)
    before, _, _ = done.stdout.partition("as it was, minus")
    assert (
        done.returncode,
        "no agreement with humans will be shown: bare.jsonl has fewer" in before,
    ) == (
        0,
        True,
    )
    twice = {"twice": repeated(debate.build(n=1), 2)}
    evaluate(twice, "demo", aspects=["consistency"], limit=2, out=tmp_path / "wrapper")
    with pytest.raises(UsageError):
        whatif(tmp_path / "wrapper", Edit("critic:1", "drop"))


def items(folder: Path, count: int) -> Path:
    shown = {"source": "The ferry sank in 1912.", "human": {"consistency": 3}}
    rows = [{"id": f"i{n}", "candidate": f"It sank in {1900 + n}.", **shown} for n in range(count)]
    write_lines(folder / "items.jsonl", rows)
    return folder / "items.jsonl"


def dice(*, hears: bool) -> ScriptedModel:
    """Make a Scorer with a random score per prompt, lower by up to two after the Critic."""
    random = Random(1)

    def script(call: Any, prompt: str) -> Any:
        if call["role"] == "critic":
            return {"feedback": "You overlooked the year.", "no_issue": False}
        thrown = random.choice([3, 4, 5])
        return {
            "reasoning": "So.",
            "score": thrown - 2 * (hears and "You overlooked the year." in prompt),
        }

    return ScriptedModel(script=script)


@pytest.mark.slow
@pytest.mark.parametrize("hears", [False, True])
def test_a_judge_that_varies_is_compared_with_debates_resumed_with_nothing_changed(
    hears: bool, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    model = dice(hears=hears)
    evaluate("debate", items(tmp_path, 40), **DEBATES, models=model, out=run)
    [dropped] = whatif(run, Edit("critic:1", "drop"), models=model)
    [effect] = dropped.effects
    # Two throws of three faces differ in two of three cases, whether or not the Critic was heard.
    assert effect.placebo.value is not None and 0.4 < effect.placebo.value < 0.9
    assert effect.moved.value is not None and effect.moved.value > 0.4
    assert effect.effect.value == pytest.approx(effect.moved.value - effect.placebo.value)
    said = (
        "critic:1 changes the verdicts of debate" if hears else "No effect of critic:1 on verdicts"
    )
    assert (dropped.sentence, dropped.placebo_judged) == (said, True)
    assert (
        json.loads((run / "whatif" / "drop-critic-1" / "whatif.json").read_text())["sentence"]
        == said
    )
    stored = read_experiment(run / "whatif" / "drop-critic-1")
    assert stored is not None and stored.screen == dropped.screen()
    assert (stored.screen.headline, len(stored.screen.table.columns)) == (said, 4)


def test_both_forks_share_the_replies_that_the_turn_does_not_change(tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = dice(hears=False)
    evaluate("debate", items(tmp_path, 12), **DEBATES, models=model, out=run)
    asked = len(model.calls)
    whatif(run, [Edit("critic:1", "drop"), Edit("critic:1", "flip")], models=model)
    # Each debate: without the turn, with it flipped (NO ISSUE ends it: no call), and one placebo
    # for both.
    assert len(model.calls) == asked + 12 + 12


@pytest.mark.slow
def test_p_values_are_adjusted_over_the_turns_that_are_changed_together(tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = dice(hears=True)
    evaluate("debate", items(tmp_path, 20), **DEBATES, models=model, out=run)
    [alone] = whatif(run, Edit("critic:1", "drop"), models=model)
    both = whatif(run, [Edit("critic:1", "drop"), Edit("critic:1", "flip")], models=model)
    assert both[0].effects[0].tests == alone.effects[0].tests
    raw = [p for done in both for effect in done.effects for p in effect.tests]
    shown = [p for done in both for effect in done.effects for p in effect.adjusted]
    assert shown == list(holm(raw))
    assert (both[0].effects[0].p_move or 0) > (alone.effects[0].p_move or 0)


def test_a_judge_that_gives_the_same_verdict_again_needs_no_placebo(tmp_path: Path) -> None:
    evaluate("debate", items(tmp_path, 12), **DEBATES, out=tmp_path / "run")
    [dropped] = whatif(tmp_path / "run", Edit("critic:1", "drop"))
    [effect] = dropped.effects
    assert (dropped.placebo_judged, effect.placebo) == (False, Statistic(0.0))
    assert effect.effect.value == effect.moved.value
    assert len(read_lines(tmp_path / "run" / "whatif" / "drop-critic-1")) == 12


@pytest.mark.parametrize(
    ("label", "varies"),
    [
        ("offline", False),
        # Servers decode requests together, so replies vary at temperature 0, too.
        ("openai:gpt-4o?temperature=0.0", True),
        ("openai:gpt-4o?temperature=0.2", True),
        ("chatopenai:gpt-4o", True),
    ],
)
def test_a_placebo_is_judged_where_a_verdict_may_come_out_otherwise(
    label: str, varies: bool
) -> None:
    assert may_vary({"models": {"debate": {"*": label}}}, "debate") is varies
    by_role = {"*": "offline", "critic": label}
    assert may_vary({"models": {"debate": by_role}}, "debate") is varies


def test_the_command_names_the_calls_of_the_placebo_before_any_is_made(tmp_path: Path) -> None:
    model = dice(hears=False)
    evaluate("debate", items(tmp_path, 3), **DEBATES, models=model, out=tmp_path / "run")
    planned = plan_whatif(
        tmp_path / "run", Edit("critic:1", "drop"), RunConfig(), {"models": model}
    )
    assert (planned.calls, len(planned.plan)) == (6, 6)
    evaluate("debate", items(tmp_path, 3), **DEBATES, out=tmp_path / "fixed")
    done = in_this_process("whatif", "fixed", "--drop", "critic:1", "--dry-run", cwd=tmp_path)
    assert (done.returncode, done.stdout.count("3 debates, about 3 calls after the turn")) == (0, 1)
    assert not (tmp_path / "fixed" / "whatif").exists()


@pytest.mark.slow
def test_a_turn_without_effect_is_said_to_have_one_in_at_most_one_run_of_twenty(
    tmp_path: Path,
) -> None:
    runs = {}
    for name, without in (("none", sees(0.6)), ("some", sees(0.6, shift=0.7))):
        makes = resumed_debates(without, groups=25)
        for seed in range(200):
            [folder] = makes(tmp_path / f"{name}-{seed}", np.random.default_rng(seed))
            runs[name, seed] = effect_of_turn(folder).effects[0].changes_verdicts
    claimed = {which: sum(runs[which, seed] for seed in range(200)) for which in ("none", "some")}
    assert claimed["none"] <= 10, claimed
    assert claimed["some"] >= 190, claimed
