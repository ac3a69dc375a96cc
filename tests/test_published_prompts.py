"""Test folders of published prompts: the recipe in the docs, and the checks before any call.

The published texts are not part of this repository. Stand-ins have their placeholders and layout.
"""

import json
import re
from pathlib import Path

import pytest
from jurygraph.nodes.common.delimiters import fenced_sections
from jurygraph.nodes.runtime.prompt_context import Prompts
from jurygraph.nodes.runtime.prompt_variables import given_to
from jurygraph.state import UsageError

from .processes import Command
from .source_tree import ROOT

QUESTION = '{{ fence("question", question) }}'
ANSWERS = '{{ fence("answer 1", answer_1) }}\n{{ fence("answer 2", answer_2) }}'
PAIR = "Name two numbers.\nThe score of Assistant 1: [x]\nThe score of Assistant 2: [y]"

RECIPES = {
    "chateval": {
        "shared/compare_task": f"[Question]\n{QUESTION}\n{ANSWERS}\n[System]\nFrom 1 to 10.",
        "shared/log": "History:\n{% for turn in turns %}"
        '{{ fence(turn.agent ~ ", round " ~ turn.round, turn.content) }}{% endfor %}',
        "chateval/referee": "{{ role }}\nSpeak, {{ title }} !\n{% if scored %}Evidence.{% endif %}",
        "chateval/role_general_public": "You are the public.",
        "chateval/role_critic": "You are the critic.",
        "shared/form_pair": PAIR,
    },
    "faireval": {
        "shared/compare_task": f"[Question]\n{QUESTION}\n{ANSWERS}\n[System]\n",
        "faireval/scorer": "Explain, then score.",
        "shared/form_pair": PAIR,
    },
    "geval": {
        "geval/rubric": "Rate a summary.\nCriteria: order.",
        "geval/task": 'Steps: 1. Read.\n{{ fence("source", source) }}\n'
        '{{ fence("fact", fact) if fact }}\n{{ fence("candidate", candidate) }}',
        "geval/form_rating": "Form (score ONLY):\n- Coherence:",
        "geval/scorer": "",
    },
}


def write(folder: Path, templates: dict[str, str]) -> Path:
    for name, text in templates.items():
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("protocol", RECIPES)
def test_a_folder_made_by_the_recipe_runs_and_the_run_names_it(
    protocol: str, tmp_path: Path, command: Command
) -> None:
    folder = write(tmp_path / "published", RECIPES[protocol])
    data = ["--data", "demo", "--aspect", "coherence"]
    data = data if protocol == "geval" else ["--data", "demo-pairs"]
    steps = ["--set", 'steps=["see the template"]'] if protocol == "geval" else []
    out = tmp_path / "run"
    options = [*data, "--limit", "2", "--set", f"prompts={folder}", "--set", "structured=off"]
    assert command("run", protocol, *options, *steps, "--out", str(out)) == 0
    manifest = json.loads((out / "run.json").read_text())
    (own,) = manifest["own_prompts"][protocol]
    assert own["folder"] == "published"
    assert own["templates"] == sorted(RECIPES[protocol])
    assert own["digest"] == manifest["prompts"][protocol]
    assert command("report", str(out), "--all") == 0
    named = f"published ({len(RECIPES[protocol])} templates, digest {own['digest']})"
    assert f"used the prompts {named}" in " ".join(command.printed.split())


def test_a_run_with_the_bundled_prompts_names_no_others(tmp_path: Path, command: Command) -> None:
    out = tmp_path / "run"
    assert command("run", "single", "--data", "demo-pairs", "--limit", "1", "--out", str(out)) == 0
    assert "own_prompts" not in json.loads((out / "run.json").read_text())


def test_the_recipe_in_the_docs_names_templates_with_placeholders_that_they_have() -> None:
    page = (ROOT / "docs/prompts.md").read_text(encoding="utf-8")
    section = page.partition("## Published prompts")[2].partition("### What is checked")[0]
    checked = set()
    template = ""
    for row in re.findall(r"^\|(.*)\|$", section, re.MULTILINE):
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) == 4 and (names := re.findall(r"`([\w/]+)\.md`", cells[1])):
            assert set(names) <= Prompts.bundled().sources.keys()
            template = names[0]
        if len(cells) == 4 and (used := re.findall(r"\{\{ .*?(\w+)\)? \}\}", cells[3])):
            given = given_to(template)
            assert given is not None
            assert {*used} <= {*given, "content"}, template
            checked |= {*used}
    assert checked == {
        *("question", "answer_1", "answer_2", "role", "title", "source", "candidate", "content")
    }


def test_fences_in_the_middle_of_a_line_are_found_and_known_to_readers(tmp_path: Path) -> None:
    text = (
        'Is {{ fence("candidate", candidate) }}{{ fence("source", source) }} right?\n'
        "{% block role %}Be {{ fence('criteria', 'kind') }}!{% endblock %}"
    )
    folder = write(tmp_path, {"shared/score_task": text})
    shown = Prompts.load(str(folder)).instruction("shared/score_task", candidate="A.", source="B.")
    assert [section.text for section in fenced_sections(shown.text)] == ["A.", "B.", "kind"]
    assert [section.text for section in fenced_sections(shown.role)] == ["kind"]
    assert shown.request.endswith("right?")


REFUSED = {
    "a name of another program": (
        "shared/compare_task",
        f"{QUESTION}{ANSWERS}\n{{{{ source_text }}}}",
        r"compare_task\.md, line 3: the template has no placeholder 'source_text'",
    ),
    "ChatEval's notation": (
        "shared/compare_task",
        f"{QUESTION}\n{ANSWERS}\n${{source_text}}",
        r"compare_task\.md, line 4: \$\{source_text\} is not a placeholder",
    ),
    "FairEval's notation": (
        "shared/compare_task",
        "{question}",
        r"\{question\} is not a placeholder of these templates.* did you mean question\?",
    ),
    "G-Eval's names": (
        "geval/task",
        "{{Document}}\n{{Summary}}",
        r"task\.md, line 1: the template has no placeholder 'Document'",
    ),
    "a text that is left out": (
        "shared/compare_task",
        f'{QUESTION}\n{{{{ fence("answer 1", answer_1) }}}}',
        r"does not use the placeholder 'answer_2', .* \{\{ fence\(\"answer 2\", answer_2\) \}\}",
    ),
    "the debate so far": ("shared/log", "So far:", "does not use the placeholder 'turns'"),
    "a referee's role": (
        "chateval/referee",
        "Speak, {{ title }}!",
        "does not use the placeholder 'role'",
    ),
}


@pytest.mark.parametrize(("template", "text", "fault"), REFUSED.values(), ids=REFUSED.keys())
def test_a_placeholder_that_is_unknown_or_missing_is_refused(
    template: str, text: str, fault: str, tmp_path: Path
) -> None:
    folder = write(tmp_path, {template: text})
    with pytest.raises(UsageError, match=fault):
        Prompts.load(str(folder))


@pytest.mark.parametrize(
    "text",
    ['{{ "{question}" }}', r"\boxed{N}", '{"score": 3}', "{}", "{% raw %}{{ x }}{% endraw %}"],
)
def test_braces_that_are_no_placeholder_are_text(text: str, tmp_path: Path) -> None:
    folder = write(tmp_path, {"faireval/scorer": f"Score. {text}"})
    expected = text.replace('{{ "{question}" }}', "{question}")
    expected = expected.removeprefix("{% raw %}").removesuffix("{% endraw %}")
    assert Prompts.load(str(folder)).render("faireval/scorer") == f"Score. {expected}"


def test_a_placeholder_in_an_included_template_counts_as_used(tmp_path: Path) -> None:
    included = '{{ fence("candidate", candidate) }}'
    folder = write(
        tmp_path,
        {"geval/task": '{% include "geval/scorer" %}', "geval/scorer": included + "{{ aspect }}"},
    )
    # The name is the placeholder of another template, so the included one is refused.
    with pytest.raises(UsageError, match=r"scorer\.md, line 1: .* no placeholder 'candidate'"):
        Prompts.load(str(folder))
    folder = write(
        tmp_path, {"geval/task": '{% include "shared/score_task" %}', "geval/scorer": ""}
    )
    assert Prompts.load(str(folder)).replaced.keys() == {"geval/scorer", "geval/task"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Rate ${generated_text}.", "${generated_text} is not a placeholder"),
        ("{{ candidat }}", "the template has no placeholder 'candidat'"),
        ('{{ fence("candidate", candidate) }}', "does not use the placeholder 'source'"),
    ],
)
def test_a_run_with_such_a_folder_ends_with_exit_code_2_before_any_call(
    text: str, fault: str, tmp_path: Path, command: Command
) -> None:
    folder = write(tmp_path / "published", {"shared/score_task": text})
    out = tmp_path / "run"
    code = command(
        *("run", "single", "--data", "demo", "--limit", "1", "--set", f"prompts={folder}"),
        *("--out", str(out)),
    )
    assert code == 2
    assert fault in " ".join(command.errors.split())
    assert "published/shared/score_task.md" in command.errors.replace("\n", "")
    assert not out.exists()
