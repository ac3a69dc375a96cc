"""Templates: bundled ones, and a folder of one's own in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jurygraph.graphs import debate
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.prompt_templates import Prompts
from jurygraph.state import UsageError

TASK = {"kind": "score", "source": "Es regnete.", "candidate": "Es regnete nicht.", "aspect": "consistency"}
SCRIPT: dict[str, Any] = {"scorer": ["Score: 1"], "critic": ["NO ISSUE"]}


def template(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_a_template_of_ones_own_replaces_its_namesake_alone(tmp_path: Path) -> None:
    folder = template(
        tmp_path, "debate/critic_strict", "Du bist der Kritiker. Widersprich, so gut du kannst."
    )
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
    with pytest.raises(UsageError, match=fault):
        Prompts.load(str(template(tmp_path, name, text)))


def test_an_empty_folder_replaces_nothing_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \*\.md file"):
        Prompts.load(str(tmp_path))


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
