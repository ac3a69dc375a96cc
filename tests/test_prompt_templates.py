"""Templates: bundled ones, and a folder of one's own in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.plan.plan import plan
from jurygraph.graphs import debate
from jurygraph.graphs.options import RunSettings
from jurygraph.graphs.registry import find_protocol
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.prompt_context import Prompt, Prompts
from jurygraph.state import UsageError
from jurygraph.state.tasks import EXAMPLES, TaskKind

TASK = {"kind": "score", "source": "Es regnete.", "candidate": "Es regnete nicht.", "aspect": "consistency"}


def template(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_a_template_of_ones_own_replaces_its_namesake_alone_and_a_run_may_bring_more(tmp_path: Path) -> None:
    folder = template(tmp_path / "built", "debate/critic_strict", "Du bist der Kritiker. Widersprich!")
    of_the_run = template(tmp_path / "run", "debate/scorer_first", "Du bewertest {{ wanted }}.")
    model = ScriptedModel(script={"scorer": ["Score: 1"] * 2, "critic": ["NO ISSUE"] * 2})
    graph = debate.build(models={"*": model}, structured="off", prompts=str(folder)).compile()
    graph.invoke({"task": TASK})
    graph.invoke({"task": TASK}, context={"prompts": str(of_the_run)})
    scorer, critic, scorer_of_the_run, _ = (call.prompt for call in model.calls)
    assert "You are the Scorer" in scorer
    assert "Du bist der Kritiker" in critic
    assert "devil's advocate" not in critic
    assert "Du bewertest one score for consistency." in scorer_of_the_run


def test_another_wording_has_another_digest(tmp_path: Path) -> None:
    folder = template(tmp_path, "debate/critic_plain", "Anders.")
    bundled, own = Prompts.bundled(), Prompts.load(str(folder))
    # Those of a user's folder are checked when it is loaded, and the bundled ones here.
    bundled.check()
    assert bundled.digest("debate") != own.digest("debate")
    assert bundled.digest("shared") == own.digest("shared")


def test_a_bad_folder_or_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \*.md file"):
        Prompts.load(str(tmp_path))
    with pytest.raises(UsageError, match="no such folder"):
        debate.build(prompts="promts")
    unknown = template(tmp_path / "unknown", "debate/critic_gentle", "x")
    broken = template(tmp_path / "broken", "debate/critic_plain", "{% if %}")
    for folder, fault in (
        (unknown, "no template is called debate/critic_gentle"),
        (broken, r"debate/critic_plain\.md, line 1"),
    ):
        with pytest.raises(UsageError, match=fault):
            debate.build(prompts=str(folder))
        with pytest.raises(UsageError, match=fault):
            find_protocol("repeated").build(inner={"prompts": str(folder)})
    prompts = Prompts.load(str(template(tmp_path / "own", "debate/scorer_first", "{{ mood }}")))
    with pytest.raises(UsageError, match="'mood' is undefined; it is given wanted"):
        prompts.render("debate/scorer_first", wanted="one score")


def test_the_role_block_of_a_template_is_the_role_and_without_one_it_is_all_request(tmp_path: Path) -> None:
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
    given: list[RunSettings] = [{}, {"prompts": "papers"}]
    plans = [plan("debate", "demo", limit=1, settings=settings) for settings in given]
    own, papers = (planned.manifest["signatures"]["debate"] for planned in plans)
    assert "papers" not in own
    assert "|layout:papers|" in papers and "|prompts:papers@" in papers
