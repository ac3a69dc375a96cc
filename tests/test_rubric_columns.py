"""Test the columns ``criteria`` and ``rubric``: judges follow them, outside all fences."""

from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.eval.datasets import load_dataset
from jurygraph.eval.run.plan.dry_run import rehearse
from jurygraph.graphs import geval, single
from jurygraph.nodes.common.delimiters import fenced_sections
from jurygraph.nodes.models.scripted_model import ScriptedModel

RATED = {"id": 1, "source": "How do I reset it?", "candidate": "Press the red button."}
COMPARED = {"id": 1, "question": "How?", "answer_1": "Press it.", "answer_2": "Read the manual."}
RATINGS = {"scorer": ["Fine.\nScore: 3"] * 9}
PAIRS = {"scorer": ["Fine.\nScore of answer 1: 8\nScore of answer 2: 5"] * 9}
OWN = "Names every step that the reader takes."


def prompt_of(row: dict[str, Any]) -> str:
    """The prompt by which an item of a dataset is judged."""
    rated = "candidate" in row
    model = ScriptedModel(script=RATINGS if rated else PAIRS)
    graph = single.build(models={"*": model}, structured="off")
    run = evaluate({"single": graph}, [row], aspects=["fluency"] if rated else [])
    assert [result.status for result in run.results] == ["ok"]
    return model.calls[0].prompt


def outside_fences(prompt: str) -> str:
    for section in fenced_sections(prompt):
        prompt = prompt.replace(section.text, "")
    return prompt


@pytest.mark.parametrize("row", [RATED, COMPARED], ids=["rating", "comparison"])
@pytest.mark.parametrize("column", ["criteria", "rubric"])
@pytest.mark.parametrize(
    "value", [OWN, [OWN], {"5": OWN, "1": "Names none."}], ids=["text", "list", "object"]
)
def test_a_rubric_column_is_followed(row: dict[str, Any], column: str, value: Any) -> None:
    prompt = prompt_of({**row, column: value})
    assert OWN in outside_fences(prompt)
    assert "come with the data" not in prompt
    if "candidate" in row:
        assert f"For this text: {'5: ' if isinstance(value, dict) else ''}{OWN}" in prompt
        # The aspect's own criteria and scale stay.
        assert "fluency (1 to 5)" in prompt


@pytest.mark.parametrize("row", [RATED, COMPARED], ids=["rating", "comparison"])
def test_a_rubric_under_another_name_is_found(row: dict[str, Any]) -> None:
    names = {"source": "prompt", "question": "prompt", "candidate": "response"}
    named = {names.get(name, name): value for name, value in row.items()}
    with pytest.warns(UserWarning, match="criteria = 'score_rubric'"):
        [item] = load_dataset([{**named, "score_rubric": OWN}])
    assert item.criteria == (OWN,)


@pytest.mark.parametrize("missing", [None, "", "n/a"])
def test_an_item_without_a_rubric_is_judged_by_the_usual_criteria(missing: Any) -> None:
    assert prompt_of({**RATED, "rubric": missing}) == prompt_of(RATED)
    assert prompt_of({**COMPARED, "criteria": missing}) == prompt_of(COMPARED)


def test_a_rubric_of_a_text_needs_no_further_texts() -> None:
    row = {
        "id": 1,
        "candidate": "Noon.",
        "rubric": "The reference says noon; the source is a clock.",
    }
    assert "The reference says noon" in outside_fences(prompt_of(row))


def test_texts_with_different_rubrics_are_different_items() -> None:
    rows = [{**RATED, "id": n, "rubric": f"Rule {n}.", "human.fluency": n} for n in (1, 2)]
    assert [item.human for item in load_dataset(rows)] == [{"fluency": 1}, {"fluency": 2}]


def test_geval_plans_steps_for_each_rubric_and_follows_them() -> None:
    steps = "1. Read it.\n2. Rate it."
    model = ScriptedModel(script={"planner": [steps] * 2, "scorer": ["2"] * 9})
    graph = geval.build(models={"*": model}, structured="off", weighting="sampling", samples=1)
    rows = [{**RATED, "id": n, "candidate": f"Text {n}.", "rubric": f"Rule {n}."} for n in (1, 2)]
    evaluate({"geval": graph}, rows, aspects=["fluency"])
    planned = [call.prompt for call in model.calls if call.metadata["agent"] == "planner"]
    told = [[n for n in (1, 2) if f"Rule {n}." in outside_fences(prompt)] for prompt in planned]
    assert sorted(told) == [[1], [2]]


async def test_a_dry_run_shows_a_rubric_as_the_run_does() -> None:
    model = ScriptedModel(script=PAIRS)
    [item] = load_dataset([{**COMPARED, "criteria": [OWN]}])

    async def answer(call: Any, send: Any) -> Any:
        return await send(call)

    graph = single.build(models={"*": model}, structured="off").compile()
    assert await rehearse(graph, [item.task(None).model_dump(mode="json")], answer) is None  # type: ignore[arg-type]
    assert model.calls[0].prompt == prompt_of({**COMPARED, "criteria": [OWN]})
