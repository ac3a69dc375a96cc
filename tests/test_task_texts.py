"""Test that every text of a task reaches every agent, and only allowed scores count."""

from pathlib import Path
from typing import Any

import pytest
from jurygraph.graphs import geval, single
from jurygraph.graphs.engine.registry import find_protocol, protocols
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import ReplyError, UsageError

RATING_TEXTS = {
    "source": "SOURCE",
    "context": "CONTEXT",
    "fact": "FACT",
    "reference": "REFERENCE",
    "candidate": "CANDIDATE",
}
COMPARISON_TEXTS = {
    "question": "Q",
    "context": "C",
    "reference": "R",
    "answer_1": "A",
    "answer_2": "B",
}
ACCURACY = {
    "name": "accuracy",
    "criteria": "Is it right?",
    "examples": [{"candidate": "EXAMPLE", "score": 3}],
}
WITH_RUBRIC = {**ACCURACY, "rubric": [{"criterion": "Says when."}]}
PASS = {"name": "pass", "criteria": "Is it right?", "choices": [0, 1]}


def prompts_seen(protocol: str, task: dict[str, Any], **settings: Any) -> list[str]:
    """Return the prompts of a judgement by the offline judge."""
    from jurygraph.nodes.offline.offline_model import OfflineJudge

    offline = OfflineJudge()
    seen: list[str] = []

    def reply(metadata: Any, prompt: str) -> Any:
        seen.append(prompt)
        return offline.invoke(prompt, config={"metadata": dict(metadata)})

    model = ScriptedModel(script=reply)
    find_protocol(protocol).build(models={"*": model}, **settings).compile().invoke({"task": task})
    return seen


RATING = [name for name, module in protocols().items() if "score" in module.protocol.kinds]
COMPARING = [name for name, module in protocols().items() if "compare" in module.protocol.kinds]


@pytest.mark.parametrize("prompts", [None, "papers"])
@pytest.mark.parametrize("protocol", RATING)
def test_a_rating_shows_every_text_to_every_agent(protocol: str, prompts: str | None) -> None:
    aspect = WITH_RUBRIC if protocol == "checklist" else ACCURACY
    seen = prompts_seen(
        protocol, {"kind": "score", "aspect": aspect, **RATING_TEXTS}, prompts=prompts
    )
    # G-Eval's planner writes steps from the criteria only, and a committer sees the question only.
    partly = protocol in ("geval", "commit_first")
    judging = [prompt for prompt in seen if not partly or "<<<reference " in prompt]
    assert judging
    for prompt in judging:
        assert [name for name in RATING_TEXTS if f"<<<{name} " not in prompt] == []
        assert "EXAMPLE" in prompt


@pytest.mark.parametrize("prompts", [None, "papers"])
@pytest.mark.parametrize("protocol", COMPARING)
def test_a_comparison_shows_every_text_to_every_agent(protocol: str, prompts: str | None) -> None:
    seen = prompts_seen(protocol, {"kind": "compare", **COMPARISON_TEXTS}, prompts=prompts)
    if protocol == "commit_first":
        # A committer sees the question only.
        seen = seen[1:]
    assert seen
    for prompt in seen:
        labels = [name.replace("_", " ") for name in COMPARISON_TEXTS]
        assert [label for label in labels if f"<<<{label} " not in prompt] == []


def test_a_template_that_leaves_out_a_text_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "score_task.md").write_text(
        '{{ fence("candidate", candidate) }} {{ fence("source", source) }}'
    )
    task = {"kind": "score", "source": "S", "candidate": "T", "reference": "R", "aspect": "fluency"}
    with pytest.raises(
        UsageError, match=r"shared/score_task\.md does not show the task's reference"
    ):
        single.build(prompts=str(tmp_path)).compile().invoke({"task": task})


@pytest.mark.parametrize(
    ("structured", "reply"),
    [("auto", {"reasoning": "Half.", "score": 0.37}), ("off", "Score: 0.37")],
)
def test_a_pass_or_fail_judge_accepts_no_score_between(structured: Any, reply: Any) -> None:
    model = ScriptedModel(script={"scorer": [reply, reply]})
    graph = single.build(models={"*": model}, structured=structured).compile()
    with pytest.raises(ReplyError, match="only 0 and 1 are allowed"):
        graph.invoke({"task": {"kind": "score", "candidate": "T", "aspect": PASS}})
    assert "Only these scores are allowed: 0 and 1." in model.calls[0].prompt


def test_geval_refuses_choices_that_leave_out_a_whole_number() -> None:
    aspect = {"name": "grade", "criteria": "Is it right?", "choices": [1, 3, 5]}
    with pytest.raises(UsageError, match="G-Eval rates on all whole numbers from 1 to 5"):
        geval.graph.invoke({"task": {"kind": "score", "candidate": "T", "aspect": aspect}})
