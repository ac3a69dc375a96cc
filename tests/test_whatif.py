"""Debates forked at a turn, over the run that held them."""

from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate, load_dataset, whatif
from jurygraph.eval.experiments.whatif import SILENCE, Edit
from jurygraph.graphs import debate, repeated
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state.errors import UsageError
from jurygraph.state.transcript import turn_without_model

from .processes import in_this_process
from .sample_data import read_lines

DEBATES: Any = {"aspects": ["consistency"], "settings": {"n": 1}}


def test_a_dropped_turn_says_nothing_and_a_flipped_one_the_opposite() -> None:
    def turn(agent: str, number: int, value: Any) -> Any:
        made = turn_without_model(number, agent, agent.partition("_")[0], "Words.", value)
        return {**made, "id": f"{agent}:{number}", "scale": [1, 5]}

    objection, satisfied = turn("critic", 1, False), turn("critic", 2, True)
    talk = [turn("referee_1", 1, 4.0), turn("referee_2", 1, 2.0), turn("referee_1", 2, 3.0)]
    assert Edit("critic:1", "drop").of_turns("debate", [objection, satisfied]) == [
        {"id": "critic:1", "content": SILENCE, "value": False}
    ]
    assert Edit("critic:2", "flip").of_turns("debate", [objection, satisfied])[0]["value"] is False
    assert Edit("referee_1:1", "drop").of_turns("chateval", talk) == [
        {"id": "referee_1:1", "content": SILENCE}
    ]
    # Nobody gives this score again: it is part of the verdict.
    assert Edit("referee_2:1", "drop").of_turns("chateval", talk) == []
    assert Edit("referee_2:1", "flip").of_turns("chateval", talk)[0]["value"] == 4.0
    pair: Any = {**turn("referee_1", 1, [8.0, 6.0]), "id": "swapped/referee_1:1"}
    assert Edit("referee_1:1", "flip").of_turns("chateval", [pair])[0]["value"] == [6.0, 8.0]


def persuaded(call: Any, prompt: str) -> Any:
    """Play all roles: the Scorer says 4 by itself, and 2 when it has heard the Critic."""
    if call["role"] == "critic":
        return {"feedback": "You overlooked the year.", "no_issue": False}
    return {"reasoning": "So it is.", "score": 2 if "You overlooked the year." in prompt else 4}


def test_dropping_the_critic_shows_how_far_it_moved_the_verdicts(tmp_path: Path) -> None:
    run, model = tmp_path / "run", ScriptedModel(script=persuaded)
    evaluate("debate", "demo", **DEBATES, limit=12, models=model, out=run)
    asked = len(model.calls)
    [dropped] = whatif(run, Edit("critic:1", "drop"), models=model)
    [effect] = dropped.effects
    assert (effect.n, dropped.failed, dropped.stopped) == (12, 0, None)
    # With the Critic 2, without it 4; two of a debate's three calls are answered by the run's journal.
    assert effect.move is not None
    assert (effect.moved.value, effect.move.value) == (1.0, -2.0)
    assert len(model.calls) == asked + 12
    items: list[Any] = [*load_dataset("demo").first(12)]
    labels = [item.label("consistency") for item in items]
    assert effect.towards == sum(label < 3 for label in labels if label is not None)
    assert effect.away == sum(label > 3 for label in labels if label is not None)
    results = read_lines(run / "whatif" / "drop-critic-1")
    assert all(result["details"]["changed"] == ["critic:1"] for result in results)
    edited = [turn for result in results for turn in result["transcript"] if turn["id"] == "critic:1"]
    assert all((turn["content"], turn["edited"]) == (SILENCE, True) for turn in edited)

    # A budget holds for what is asked anew; the same again asks nobody.
    assert whatif(run, Edit("critic:1", "drop"), models=model, max_calls=12)[0] == dropped
    assert len(model.calls) == asked + 12


def test_the_command_prints_how_far_turns_moved_verdicts_and_refuses_others(tmp_path: Path) -> None:
    evaluate("debate", "demo", **DEBATES, limit=4, out=tmp_path / "run")
    done = in_this_process("whatif", "run", "--drop", "critic:1", "--flip", "critic:1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "debate without critic:1" in done.stdout
    folders = {path.name for path in (tmp_path / "run" / "whatif").iterdir()}
    assert folders == {"drop-critic-1", "flip-critic-1"}
    for arguments, words in (
        (["--drop", "critic:7"], "no such turn; turns are commander:1"),
        (["--drop", "scorer:2"], "it gives the score that is the verdict, and its agent gives no other"),
        ([], "no turn to change"),
    ):
        refused = in_this_process("whatif", "run", *arguments, cwd=tmp_path)
        assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr
    twice = {"twice": repeated(debate.build(n=1), 2)}
    evaluate(twice, "demo", aspects=["consistency"], limit=2, out=tmp_path / "wrapper")
    with pytest.raises(UsageError):
        whatif(tmp_path / "wrapper", Edit("critic:1", "drop"))
