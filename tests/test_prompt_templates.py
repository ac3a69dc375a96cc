"""Templates: bundled ones, and a folder of one's own in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.graphs import debate
from jurygraph.graphs.options import RunSettings
from jurygraph.graphs.registry import find_protocol
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.prompt_context import Prompt, Prompts
from jurygraph.state import UsageError
from jurygraph.state.tasks import EXAMPLES, TaskKind

TASK = {"kind": "score", "source": "Es regnete.", "candidate": "Es regnete nicht.", "aspect": "consistency"}
SCRIPT: dict[str, Any] = {"scorer": ["Score: 1"], "critic": ["NO ISSUE"]}


def template(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_a_template_of_ones_own_replaces_its_namesake_alone(tmp_path: Path) -> None:
    folder = template(tmp_path, "debate/critic_strict", "Du bist der Kritiker. Widersprich!")
    model = ScriptedModel(script=SCRIPT)
    graph = debate.build(models={"*": model}, structured="off", prompts=str(folder)).compile()
    graph.invoke({"task": TASK})
    scorer, critic = (call.prompt for call in model.calls)
    assert "You are the Scorer" in scorer
    assert "Du bist der Kritiker" in critic
    assert "devil's advocate" not in critic


def test_a_run_can_bring_its_own_templates(tmp_path: Path) -> None:
    folder = template(tmp_path, "debate/scorer_first", "Du bewertest {{ wanted }}.")
    model = ScriptedModel(script=SCRIPT)
    graph = debate.build(models={"*": model}, structured="off").compile()
    graph.invoke({"task": TASK}, context={"prompts": str(folder)})
    assert "Du bewertest one score for consistency." in model.calls[0].prompt


def test_another_wording_has_another_digest(tmp_path: Path) -> None:
    folder = template(tmp_path, "debate/critic_plain", "Anders.")
    bundled, own = Prompts.bundled(), Prompts.load(str(folder))
    # Those of a user's folder are checked when it is loaded, and the bundled ones here.
    bundled.check()
    assert bundled.digest("debate") != own.digest("debate")
    assert bundled.digest("shared") == own.digest("shared")


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("debate/critic_gentle", "x", "no template is called debate/critic_gentle"),
        ("debate/critic_plain", "{% if %}", r"debate/critic_plain\.md, line 1"),
    ],
)
def test_a_bad_folder_is_told_before_any_call(tmp_path: Path, name: str, text: str, fault: str) -> None:
    with pytest.raises(UsageError, match=r"no \*\.md file"):
        Prompts.load(str(tmp_path))
    with pytest.raises(UsageError, match="no such folder"):
        debate.build(prompts="promts")
    folder = str(template(tmp_path, name, text))
    with pytest.raises(UsageError, match=fault):
        debate.build(prompts=folder)
    with pytest.raises(UsageError, match=fault):
        find_protocol("repeated").build(inner={"prompts": folder})


def test_a_name_that_a_template_is_not_given(tmp_path: Path) -> None:
    prompts = Prompts.load(str(template(tmp_path, "debate/scorer_first", "{{ mood }}")))
    with pytest.raises(UsageError, match="'mood' is undefined; it is given wanted"):
        prompts.render("debate/scorer_first", wanted="one score")


def test_texts_are_never_rendered_as_templates() -> None:
    prompt = Prompts.bundled().render(
        "shared/log", turns=[{"agent": "critic", "round": 1, "content": "{{ 7 * 7 }}"}], alone=False
    )
    assert "{{ 7 * 7 }}" in prompt
    assert "49" not in prompt


def test_the_role_block_of_a_template_is_the_role() -> None:
    own = Prompts.bundled().instruction("debate/scorer_first", wanted="one score")
    assert own.role == "You are the Scorer: work logically and step by step."
    assert own.request == "Go through the criteria, then settle on one score."
    assert own.text == f"{own.role} {own.request}"
    # A message that repeats the role stays as it is.
    assert own.after(own.role).request == f"{own.role}\n{own.request}"
    # An instruction that is all role leaves the message and the form.
    own = Prompts.bundled().instruction("debate/critic_plain").after("Check the score.")
    system, user = Prompt("Rules.", "Material.", own).messages("Form.", "papers")
    assert (system, user) == (f"{own.role}\n\nRules.", "Material.\n\nCheck the score.\nForm.")


def test_a_template_without_a_role_block_is_all_request(tmp_path: Path) -> None:
    prompts = Prompts.load(str(template(tmp_path, "debate/critic_strict", "Du bist der Kritiker.")))
    own = prompts.instruction("debate/critic_strict")
    assert (own.role, own.request) == ("", "Du bist der Kritiker.")
    prompt = Prompt("Rules.", "Material.", own)
    assert prompt.messages("Form.", "papers") == prompt.messages("Form.", "shared_prefix")


def test_a_layout_reaches_what_is_inside_a_wrapper() -> None:
    model = ScriptedModel(script={"scorer": ["Score: 1"] * 2, "critic": ["NO ISSUE"] * 2})
    graph = (
        find_protocol("repeated").build(k=2, models={"*": model}, structured="off", layout="papers").compile()
    )
    graph.invoke({"task": TASK})
    assert len(model.calls) == 4
    assert all(call.prompt.startswith(("You are the Scorer", "You are the Critic")) for call in model.calls)


FILLED_IN = {
    "score": "It holds.\n- consistency: 4",
    "steps": "1. Read it.\n2. Score it.",
    "critique": "NO ISSUE",
    "text": "Both are short.",
    "pair": "Evaluation evidence: both are short.\nThe score of assistant 1: 8\nThe score of assistant 2: 6",
}


@pytest.mark.parametrize(
    ("name", "kind", "order"),
    [
        ("debate", "score", ["You are the Scorer", "Your task", "Evaluation criteria", "Evaluation steps", "Example"]),
        ("geval", "score", ["Your task", "Evaluation criteria", "Evaluation steps", "Example", "- consistency:"]),
        ("single", "compare", ["[Question]", "[Assistant 1's", "[Assistant 2's", "[System]", "assistant 2:"]),
        ("chateval", "compare", ["[Question]", "[System]", "Other referees", "one of the referees", "It is your turn"]),
        ("faireval", "compare", ["[Question]", "[System]", "Give your evidence", "Evaluation evidence:"]),
        ("baseline", "compare", ["fair, impartial judge", "The question", "Answer 1", "Answer 2", "Final scores: ("]),
    ],
)  # fmt: skip
def test_the_papers_structure_is_a_set_of_templates(name: str, kind: TaskKind, order: list[str]) -> None:
    seen: list[str] = []

    def reply(metadata: Mapping[str, Any], prompt: str) -> str:
        seen.append(prompt)
        return "Final scores: (95, 87)" if name == "baseline" else FILLED_IN[metadata["form"]]

    graph = find_protocol(name).build(
        models={"*": ScriptedModel(script=reply)}, structured="off", prompts="papers"
    )
    verdict = graph.compile().invoke({"task": EXAMPLES[kind]})["verdict"]
    # Judged in both orders, two answers have the mean of both.
    read = verdict["score"] if kind == "score" else sum(verdict["scores"])
    assert read == {"score": 4, "compare": 182 if name == "baseline" else 14}[kind]
    shown = seen[-1] if name in ("geval", "chateval") else seen[0]
    places = [shown.find(part) for part in order]
    assert -1 not in places
    assert places == sorted(places)


def test_the_papers_structure_shows_in_a_runs_signature() -> None:
    rows = [{"id": "a", "source": "Es regnete.", "candidate": "Es regnete nicht."}]
    given: list[RunSettings] = [{}, {"prompts": "papers"}]
    signatures = {
        evaluate("debate", rows, aspects=["fluency"], settings=settings).manifest["signatures"]["debate"]
        for settings in given
    }
    assert len(signatures) == 2
    assert any("|layout:papers|" in one and "|prompts:papers@" in one for one in signatures)
