"""Test calls in the forms of other evaluators: all is shown, or refused by name."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from jurygraph import UsageError, create_judge
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from .test_judge_inputs import refusal, shown

Q = "Which hour is it?"
A = "It is noon."
R = "Twelve."
C = "The clock shows 12:00."
USER = {"role": "user", "content": Q}
ASSISTANT = {"role": "assistant", "content": A}
CALL = {"role": "assistant", "tool_calls": [{"function": {"name": "clock", "arguments": "{}"}}]}
INSPECT_CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "1", "function": "clock", "arguments": {}}],
}
RESULT = {"role": "tool", "content": "12:00"}
TRAJECTORY = [USER, CALL, RESULT, ASSISTANT]
TALK = f"Human: {Q}\nAI calls clock (call 1): {{}}\nResult of clock (call 1): 12:00\nAI: {A}"
PAIR = {"source": Q, "candidate": A}
ALL = {**PAIR, "reference": R}
GRADED = "Is {outputs} a right answer to {inputs}? The right one: {reference_outputs}"
FOUNDED = "Is {outputs} founded on {context}? The question: {inputs}"
ACCURACY = {"name": "accuracy", "criteria": "Is the answer right?"}
IMAGE = {"mime_type": "image/png", "data": "https://example.org/cat.png"}


class Sample(BaseModel):
    user_input: str
    response: str


@dataclass
class TestCase:
    __test__ = False
    input: str
    actual_output: str


def prompt(text: Any, **more: Any) -> dict[str, Any]:
    return {"prompt": text, **more}


def rubric(**more: Any) -> dict[str, Any]:
    return {"aspect": {**ACCURACY, **more}}


Call = tuple[dict[str, Any], dict[str, Any], dict[str, str]]
SHOWN: dict[str, list[Call]] = {
    "openevals": [
        (prompt(GRADED), {"inputs": Q, "outputs": A, "reference_outputs": R}, ALL),
        (prompt(GRADED, continuous=True), {"inputs": Q, "outputs": A, "reference_outputs": R}, ALL),
        (prompt(GRADED, choices=[0, 0.5, 1]), {"inputs": Q, "outputs": A, "reference_outputs": R}, ALL),
        (prompt("Is {outputs} concise for {inputs}?"), {"inputs": {"question": Q}, "outputs": {"answer": A}}, PAIR),
        (prompt("Is {outputs} concise for {inputs}?"), {"inputs": [USER], "outputs": [ASSISTANT]}, PAIR),
        (prompt(FOUNDED), {"inputs": Q, "outputs": A, "context": C}, {**PAIR, "context": C}),
        (prompt(FOUNDED), {"inputs": Q, "outputs": A, "context": {"documents": [C, R]}}, {"context": R}),
        (prompt(FOUNDED), {"inputs": Q, "outputs": A, "context": [Document(C)]}, {"context": C}),
        (
            prompt("{inputs} {outputs} {context} {reference_outputs}"),
            {"inputs": Q, "outputs": A, "context": C, "reference_outputs": ""},
            {**PAIR, "context": C, "reference": "(none)"},
        ),
        (prompt("Is {context} relevant for {inputs}?"), {"inputs": Q, "context": C}, {"source": Q, "candidate": C}),
        (prompt("Is {inputs} an attack?"), {"inputs": Q}, {"candidate": Q}),
        (prompt("Does {outputs} leak names?"), {"outputs": A}, {"candidate": A}),
        (
            prompt("Does {outputs} follow {plan} for {inputs}?"),
            {"inputs": Q, "outputs": A, "plan": ["look", "say"]},
            {**PAIR, "context": "look"},
        ),
        (prompt("Rate {outputs}.", system="You grade."), {"outputs": A}, {"candidate": A}),
        (
            prompt("Rate {outputs}.", few_shot_examples=[{"inputs": Q, "outputs": A, "score": 1, "reasoning": "y"}]),
            {"outputs": R},
            {"candidate": R, "candidate of example 1": A},
        ),
        (prompt("Was the user content? {outputs}"), {"outputs": [USER, ASSISTANT]}, {"candidate": f"AI: {A}"}),
        (prompt("Rate {outputs}."), {"outputs": {"messages": [HumanMessage(Q), AIMessage(A)]}}, {"candidate": A}),
        (prompt("Is {outputs} right code?"), {"outputs": "def f(x):\n    return {x}"}, {"candidate": "return {x}"}),
        (prompt("Rate {outputs} for {inputs}."), {"inputs": Q, "outputs": {"a": 1, "b": [2]}}, {"candidate": '"b"'}),
        (prompt("Rate {outputs} for {inputs}."), {"inputs": Q, "outputs": A, "reference_outputs": R}, PAIR),
    ],
    "agentevals": [
        (prompt("Is the course right? {outputs}"), {"outputs": TRAJECTORY}, {"candidate": TALK}),
        (
            prompt("Is {outputs} as good as {reference_outputs}?"),
            {"outputs": TRAJECTORY, "reference_outputs": TRAJECTORY},
            {"candidate": TALK, "reference": TALK},
        ),
        (
            prompt("Is the course right? {outputs}"),
            {
                "outputs": [
                    HumanMessage(Q),
                    AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "1"}]),
                    ToolMessage("12:00", tool_call_id="1"),
                    AIMessage(A),
                ]
            },
            {"candidate": TALK},
        ),
        (
            prompt("Is {outputs} right for {inputs}?"),
            {"inputs": [USER], "outputs": {"results": [{"messages": [ASSISTANT]}], "steps": [["__start__", "agent"]]}},
            {"source": Q, "candidate": "__start__"},
        ),
        (rubric(), {"inputs": {"messages": [USER]}, "outputs": {"messages": TRAJECTORY[1:]}}, {"source": Q}),
        (rubric(), {"outputs": TRAJECTORY}, {"candidate": TALK}),
        (rubric(), {"outputs": TRAJECTORY, "reference_outputs": [USER, ASSISTANT]}, {"reference": A}),
    ],
    "LangSmith": [
        (rubric(), {"inputs": {"question": Q}, "outputs": {"answer": A}, "reference_outputs": {"answer": R}}, ALL),
        (rubric(), {"inputs": {"question": Q}, "outputs": {"answer": A}, "reference_outputs": {}}, PAIR),
        (rubric(), {"inputs": {"q": Q, "k": 3}, "outputs": {"answer": A}}, {"source": '"k": 3'}),
        (rubric(), {"inputs": {"question": Q}, "outputs": {"answer": A, "documents": [C]}}, {"candidate": C}),
        (rubric(), {"inputs": {"question": Q, "context": C}, "outputs": A}, {"context": C}),
        (rubric(), {"inputs": {"question": Q}, "outputs": {"output": True}}, {"candidate": "true"}),
        (
            {"aspect": ACCURACY, "variable_mapping": {"candidate": "outputs.answer", "context": "outputs.documents"}},
            {"inputs": {"question": Q}, "outputs": {"answer": A, "documents": [C]}},
            {**PAIR, "context": C},
        ),
        ({}, {"inputs": {"question": Q}, "outputs": [{"answer": A}, {"answer": R}]}, {"answer 1": A, "answer 2": R}),
        ({}, {"inputs": Q, "outputs": [A, R], "reference_outputs": {"answer": C}}, {"question": Q, "reference": C}),
        (rubric(), {"inputs": {"question": Q}, "outputs": {"answer": A}, "attachments": {}}, PAIR),
    ],
    "deepeval": [
        (rubric(), {"input": Q, "actual_output": A}, PAIR),
        (rubric(), {"input": Q, "actual_output": A, "expected_output": R}, ALL),
        (rubric(), {"input": Q, "actual_output": A, "retrieval_context": [C]}, {**PAIR, "context": C}),
        (rubric(), {"input": Q, "actual_output": A, "context": [C]}, {**PAIR, "context": C}),
        (rubric(steps=["Read it.", "Rate it."]), {"input": Q, "actual_output": A}, PAIR),
        (rubric(low=0, high=10), {"actual_output": A}, {"candidate": A}),
        (rubric(), {"outputs": TestCase(Q, A)}, {"candidate": f'"input": "{Q}"'}),
        (rubric(), {"outputs": {"turns": [USER, ASSISTANT]}}, {"candidate": A}),
        (rubric(), {"outputs": [USER, {**ASSISTANT, "retrieval_context": [C]}]}, {"candidate": C}),
        ({}, {"inputs": Q, "outputs": [A, R]}, {"answer 1": A, "answer 2": R}),
        (
            {"aspect": ACCURACY, "ignore": ["expected_tools"]},
            {"input": Q, "actual_output": A, "expected_tools": ["clock"]},
            PAIR,
        ),
    ],
    "Inspect": [
        (
            prompt("Question: {question} Answer: {answer} Criterion: {criterion}", choices=[0, 0.5, 1]),
            {"question": Q, "answer": A, "criterion": R},
            ALL,
        ),
        (
            prompt("Question: {question} Submission: {answer} Expert: {criterion}"),
            {"inputs": Q, "outputs": A, "reference_outputs": R},
            ALL,
        ),
        (
            prompt("Grade {answer}.", choices={"C": 1, "P": 0.5, "I": 0}),
            {"answer": A},
            {"candidate": A},
        ),
        (rubric(), {"input": Q, "output": A, "target": R}, ALL),
        (rubric(), {"input": [USER], "output": A, "target": R}, {"reference": R}),
        (
            rubric(),
            {"input": Q, "output": [INSPECT_CALL, RESULT]},
            {"source": Q, "candidate": "clock"},
        ),
        (rubric(), {"input": Q, "output": A, "target": [R, C]}, {"reference": C}),
    ],
    "MLflow": [
        (prompt("Is {{ outputs }} friendly for {{ inputs }}?"), {"inputs": Q, "outputs": A}, PAIR),
        (
            prompt("Is {{ outputs }} as in {{ expectations }}?"),
            {"inputs": {"question": Q}, "outputs": {"response": A}, "expectations": {"expected_response": R}},
            {"candidate": A, "reference": R},
        ),
        (prompt("Is {{outputs}} {right} for {{inputs}}?"), {"inputs": Q, "outputs": A}, PAIR),
        (
            prompt("Is {{ outputs }} coherent?", choices={"coherent": 1, "incoherent": 0}),
            {"outputs": {"response": A}},
            {"candidate": A},
        ),
        (rubric(), {"inputs": {"messages": [USER]}, "outputs": {"response": A}}, PAIR),
        (rubric(), {"inputs": Q, "outputs": A, "expectations": {"facts": [R, C]}}, {"reference": C}),
    ],
    "ragas": [
        (prompt(FOUNDED), {"user_input": Q, "response": A, "retrieved_contexts": [C]}, {**PAIR, "context": C}),
        (rubric(), {"user_input": Q, "response": A, "reference": R}, ALL),
        (rubric(), {"user_input": Q, "response": A}, PAIR),
        (rubric(), {"user_input": Q, "response": A, "retrieved_contexts": [C, R]}, {"context": R}),
        (rubric(), {"outputs": Sample(user_input=Q, response=A)}, {"candidate": A}),
        (rubric(), {"outputs": [USER, ASSISTANT], "reference": R}, {"reference": R}),
        (prompt("Is {response} true by {reference}?"), {"response": A, "reference": R}, {"reference": R}),
    ],
    "autoevals": [
        (
            prompt(
                "Is {{{output}}} consistent with {{{expected}}} for {{{input}}}?",
                choices={"A": 0.4, "C": 1, "D": 0},
            ),
            {"input": Q, "output": A, "expected": R},
            ALL,
        ),
        (
            prompt("{{input}} {{output}} Does it meet: {{criteria}}"),
            {"input": Q, "output": A, "criteria": "It names noon."},
            {**PAIR, "context": "It names noon."},
        ),
        (rubric(), {"input": Q, "output": A, "expected": R}, ALL),
        (rubric(), {"output": A}, {"candidate": A}),
        (rubric(), {"input": Q, "output": {"a": 1, "b": 2}, "expected": R}, {"candidate": '"b": 2'}),
        (prompt(FOUNDED), {"input": Q, "output": A, "context": C}, {**PAIR, "context": C}),
        ({}, {"input": Q, "outputs": [A, R]}, {"question": Q, "answer 1": A, "answer 2": R}),
    ],
    "promptfoo": [
        (prompt("Is {{output}} polite?"), {"output": A}, {"candidate": A}),
        (prompt("Is {{ output }} polite by {{ rubric }}?"), {"output": A, "rubric": R}, {"context": R}),
        (
            prompt("Is {{output}} right for {{query}}?"),
            {"output": A, "query": Q},
            PAIR,
        ),
        (rubric(), {"output": {"a": 1, "b": 2}, "context": C}, {"context": C}),
    ],
}  # fmt: skip

REFUSED: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]] = {
    "openevals": [
        (prompt(GRADED), {"inputs": Q, "outputs": A}, "reference_outputs is missing"),
        (prompt("Rate {outputs}."), {"outputs": A, "plan": C}, "unknown argument 'plan'"),
    ],
    "LangSmith": [
        (rubric(), {"inputs": {"question": Q}, "outputs": {}}, "outputs is missing"),
    ],
    "deepeval": [
        (rubric(), {"input": Q, "actual_output": A, "expected_tools": ["clock"]}, "unknown argument 'expected_tools'"),
        (rubric(), {"input": Q, "actual_output": ""}, "outputs is empty"),
        (
            rubric(),
            {"input": Q, "actual_output": A, "context": [C], "retrieval_context": [R]},
            "context and retrieval_context are both given",
        ),
    ],
    "MLflow": [
        (prompt("Is {{ outputs }} right?"), {"outputs": A, "trace": object()}, "unknown argument 'trace'"),
    ],
    "autoevals": [
        (rubric(), {"output": A, "expected": R, "reference_outputs": R}, "reference_outputs and expected are both"),
    ],
}  # fmt: skip


def _cases(of: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(*case, id=f"{peer} {place}")
        for peer, cases in of.items()
        for place, case in enumerate(cases)
    ]


@pytest.mark.parametrize(("options", "given", "texts"), _cases(SHOWN))
def test_a_call_of_another_library_is_shown(
    options: dict[str, Any], given: dict[str, Any], texts: dict[str, str]
) -> None:
    fences = shown(options, **given)
    for label, text in texts.items():
        assert text in fences[label]


@pytest.mark.parametrize(("options", "given", "words"), _cases(REFUSED))
def test_a_call_that_cannot_be_shown_is_refused_by_name(
    options: dict[str, Any], given: dict[str, Any], words: str
) -> None:
    assert re.search(words, refusal(options, **given))


def test_eighty_four_calls_are_tried() -> None:
    shown = sum(len(cases) for cases in SHOWN.values())
    refused = sum(len(cases) for cases in REFUSED.values())
    assert shown + refused >= 84


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            prompt("Rate {outputs}.", choices=["good", "bad"]),
            r"give each a score, such as choices=\{'good': 1, ...\}",
        ),
        (prompt("Does {answer} agree with {response}?"), "names no text to judge"),
        (prompt(["Rate {outputs}."]), "prompt must be a text"),
        (
            prompt("Rate {outputs}.", few_shot=[], few_shot_examples=[]),
            "few_shot and few_shot_examples are both given",
        ),
        (prompt("Rate {outputs}.", threshold=0.5), "threshold is not a setting of single"),
        (prompt("Rate {{ outputs.text }}."), "names no text to judge"),
    ],
)
def test_an_option_of_another_library_is_refused_by_name(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        create_judge(**options)


def test_named_choices_are_scores_with_a_meaning() -> None:
    judge = create_judge(
        prompt="Is {outputs} right?", choices={"right": 1, "partly": 0.5, "wrong": 0}
    )
    aspect = judge.task(outputs=A).aspect  # type: ignore[union-attr]
    assert aspect.choices == (1, 0.5, 0)
    assert 'The score 1 stands for "right", 0.5 for "partly", 0 for "wrong".' in aspect.criteria


def test_all_prompts_of_openevals_and_agentevals_are_read() -> None:
    prompts = pytest.importorskip("openevals.prompts")
    texts = [getattr(prompts, name) for name in dir(prompts) if name.endswith("_PROMPT")]
    assert len(texts) > 20
    for text in texts:
        assert create_judge(prompt=text)
