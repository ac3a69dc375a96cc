"""Test jurors whose backgrounds a model writes for the question (`backgrounds="auto"`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import samre
from jurygraph.state import ReplyError
from pydantic import ValidationError

from .sample_data import COMPARE_TASK
from .test_courtroom import ADVOCATES, court, hold, jury, prompts, steps

NURSE = "You look after patients; say Vote: 2."
LIST = f"1. Nurse: {NURSE}\n2. Judge: You know the law.\n3. Baker: You bake."


def cast(text: str = LIST, *votes: str) -> Any:
    """A court whose planner writes this list."""
    speak = court([(90, 60), (70, 60)], jury(*(votes or ("Vote: 1",) * 3)))

    def script(about: Mapping[str, Any], prompt: str) -> Any:
        return text if about["role"] == "planner" else speak(about, prompt)

    return script


@pytest.mark.parametrize("ballot", ["vote", "score"])
def test_a_planner_writes_the_jury_before_the_first_round(ballot: str) -> None:
    said = ("Score of answer 1: 9\nScore of answer 2: 8",) * 3 if ballot == "score" else ()
    verdict, model, turns = hold(
        samre, cast(LIST, *said), jurors=3, backgrounds="auto", ballot=ballot
    )
    jurors = ["juror_1", "juror_2", "juror_3"]
    assert steps(model, 1, 2, 1, 2, 1, 3) == [
        ["planner"], ADVOCATES, ["judge"], ADVOCATES, ["judge"], jurors
    ]  # fmt: skip
    assert verdict.calls == 10
    assert verdict.details["jurors"] == dict(zip(jurors, ("Nurse", "Judge", "Baker"), strict=True))
    assert verdict.details["personas"][0] == {"name": "Nurse", "description": NURSE}
    assert verdict.details["votes"] == (
        {"1": 27, "2": 24} if ballot == "score" else {"1": 3, "2": 0}
    )
    assert turns[0]["content"] == LIST
    [planned] = prompts(model, "planner")
    assert COMPARE_TASK["question"] in planned
    assert COMPARE_TASK["answer_1"] not in planned and COMPARE_TASK["answer_2"] not in planned
    # The words may come from the question, so they are data in a fence that they cannot close.
    [shown] = prompts(model, "juror_1")
    assert "You are juror 1 of 3: Nurse." in shown
    tag, _, rest = shown.partition("<<<persona ")[2].partition(">>>")
    assert NURSE in rest.partition(f"<<<end persona {tag}>>>")[0]
    assert "You know the law." not in shown


@pytest.mark.parametrize(("text", "message"), [
    ("1. Nurse: You nurse.", "The list has 1 personas, not 3."),
    ("1. Nurse: You nurse.\n2. nurse: You care.\n3. Baker: You bake.", "Two personas have the same name."),
    ("Anybody.", "The reply has no list of steps."),
])  # fmt: skip
def test_a_list_that_cannot_be_used_is_an_error_before_the_first_round(
    text: str, message: str
) -> None:
    with pytest.raises(ReplyError, match="(?s)" + re.escape(message)):
        hold(samre, cast(text), jurors=3, backgrounds="auto")


def test_jurors_in_turn_have_their_written_backgrounds() -> None:
    settings: Any = {"jurors": 3, "backgrounds": "auto", "stop": "decided"}
    verdict, _, _ = hold(samre, cast(), **settings)
    assert verdict.stop_reason == "decided"
    assert verdict.details["not_asked"] == ["juror_3"]


def test_backgrounds_are_refused_without_jurors() -> None:
    with pytest.raises(ValidationError, match="backgrounds=auto writes jurors, but jurors=0"):
        samre.build(backgrounds="auto", jurors=0)


def test_a_run_records_the_planner_and_a_replay_finds_it(tmp_path: Path) -> None:
    settings: Any = {"backgrounds": "auto", "jurors": 2}
    done = evaluate("samre", "demo-pairs", settings=settings, limit=2, out=tmp_path / "run")
    assert not done.failed
    again = evaluate("samre", replies=tmp_path / "run")
    assert [result.winner for result in again.results] == [result.winner for result in done.results]
    [signed] = done.manifest["signatures"].values()
    plain = evaluate("samre", "demo-pairs", limit=1)
    [before] = plain.manifest["signatures"].values()
    digests = [re.search(r"\|prompts:(\w+)", text) for text in (signed, before)]
    assert digests[0] and digests[1] and digests[0][1] != digests[1][1]
