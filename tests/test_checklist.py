"""The checklist: criteria answered with quotations, and HealthBench's arithmetic, call for call."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from jurygraph.eval import evaluate
from jurygraph.eval.datasets import load_dataset
from jurygraph.eval.run.plan.estimator import estimate
from jurygraph.eval.run.plan.plan import plan
from jurygraph.graphs import checklist, debate, geval, repeated, single
from jurygraph.nodes.common.delimiters import fence, fenced_sections
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.replies.checks import is_verbatim, read_checks, read_quotations
from jurygraph.nodes.replies.shown import Shown
from jurygraph.state import Aspect, DataError, ReplyError, UsageError
from jurygraph.state.rubrics import ANSWERS, MOST_CRITERIA, Criterion, rubric_score
from jurygraph.state.verdict_warnings import ASKED_AGAIN, UNQUOTED, kind_of
from langgraph.checkpoint.memory import InMemorySaver

from .processes import Command
from .sample_data import THREAD, write_lines

CANDIDATE = "We apologise for the delay. Your parcel arrives on **Monday**."
RUBRIC: list[dict[str, Any]] = [
    {"criterion": "Apologises for the delay.", "points": 5},
    {"criterion": "Names a date of delivery.", "points": 3, "id": "date", "tags": ["facts"]},
    {"criterion": "Blames the customer.", "points": -4},
]
ASPECT: dict[str, Any] = {
    "name": "tact",
    "criteria": "Respect for the customer.",
    "low": 1,
    "high": 5,
}
TASK = {"kind": "score", "candidate": CANDIDATE, "aspect": {**ASPECT, "rubric": RUBRIC}}


def said(*answers: str, quotations: tuple[str, ...] = ()) -> dict[str, Any]:
    """The reply of a checker to its criteria."""
    fields: dict[str, Any] = {"reasoning": "So."}
    for number, answer in enumerate(answers, start=1):
        fields[f"quotation_{number}"] = dict(enumerate(quotations, start=1)).get(number, "")
        fields[f"answer_{number}"] = answer
    return fields


def judged(
    replies: dict[str, list[Any]], task: dict[str, Any] = TASK, **settings: Any
) -> tuple[dict[str, Any], list[dict[str, Any]], ScriptedModel]:
    """Judge with replies by agent; return verdict, transcript and the model with its calls."""
    lines = {agent: iter(of_agent) for agent, of_agent in replies.items()}
    model = ScriptedModel(script=lambda metadata, _: next(lines[metadata["agent"]]))
    result = checklist.build(models={"*": model}, **settings).compile().invoke({"task": task})
    return result["verdict"], result["transcript"], model


SORRY = "We apologise for the delay."
ALL_THREE = {
    "checker_1": [said("yes", quotations=(SORRY,))],
    "checker_2": [said("yes", quotations=("arrives on Monday",))],
    "checker_3": [said("no")],
}


def test_a_checklist_call_for_call() -> None:
    verdict, transcript, model = judged(ALL_THREE)
    assert [(call.metadata["agent"], call.metadata["criteria"]) for call in model.calls] == [
        (f"checker_{number}", [part["criterion"]]) for number, part in enumerate(RUBRIC, start=1)
    ]
    assert [(turn["agent"], turn["value"], turn["calls"]) for turn in transcript] == [
        ("checker_1", "yes", 1),
        ("checker_2", "yes", 1),
        ("checker_3", "no", 1),
        ("tally", 5.0, 0),
    ]
    assert (verdict["score"], verdict["calls"], verdict["stop_reason"]) == (5.0, 3, "complete")
    assert verdict["details"] == {
        "criteria": [
            {**RUBRIC[0], "points": 5.0, "answer": "yes", "quotation": SORRY},
            {**RUBRIC[1], "points": 3.0, "answer": "yes", "quotation": "arrives on Monday"},
            {**RUBRIC[2], "points": -4.0, "answer": "no", "quotation": ""},
        ],
        "points": 8.0,
        "possible": 8.0,
        "share": 1.0,
    }
    assert verdict["explained_by"] == "tally:1"
    assert "Points: 8 of 8" in verdict["explanation"]
    assert verdict["warnings"] == []


@pytest.mark.parametrize(
    ("answers", "points", "possible", "score"),
    [
        (("yes", "no", "no"), 5, 8, 1 + 4 * 5 / 8),
        (("yes", "no", "yes"), 1, 8, 1 + 4 * 1 / 8),
        (("no", "no", "yes"), -4, 8, 1),  # clipped at 0
        (("yes", "not applicable", "no"), 5, 5, 5),
        (("yes", "no", "not applicable"), 5, 8, 1 + 4 * 5 / 8),
    ],
)
def test_the_score_of_some_answers(
    answers: tuple[str, ...], points: float, possible: float, score: float
) -> None:
    verdict, _, _ = judged({"checker_1": [said(*answers)]}, group="all")
    details = verdict["details"]
    assert (details["points"], details["possible"]) == (points, possible)
    assert details["share"] == points / possible
    assert verdict["score"] == score
    # An answer that is not "yes" needs no quotation.
    assert [kind_of(warning) for warning in verdict["warnings"]] == [UNQUOTED]


def test_the_arithmetic_is_that_of_healthbench_to_the_digit() -> None:
    def calculate_score(items: list[Criterion], responses: list[dict[str, bool]]) -> float | None:
        # From openai/simple-evals, healthbench_eval.py, with ``points`` and ``criteria_met``.
        total_possible_points = sum(item.points for item in items if item.points > 0)
        if total_possible_points == 0:
            return None
        achieved_points = sum(
            item.points
            for item, response in zip(items, responses, strict=True)
            if response["criteria_met"]
        )
        return achieved_points / total_possible_points

    chance = random.Random(0)
    for _ in range(500):
        points = [chance.choice([*range(-10, 0), *range(1, 11)]) for _ in range(20)]
        rubric = [Criterion(criterion="C", points=number) for number in points]
        met = [chance.random() < 0.5 for _ in rubric]
        expected = calculate_score(rubric, [{"criteria_met": one} for one in met])
        found = rubric_score(rubric, ["yes" if one else "no" for one in met], 0, 1)
        assert (found and found.share) == expected
        if found and expected is not None:
            assert found.score == max(expected, 0)


def test_criteria_that_do_not_apply_leave_no_score() -> None:
    answers = said("not applicable", "not applicable", "yes")
    with pytest.raises(ReplyError, match="best possible score is unknown"):
        judged({"checker_1": [answers]}, group="all")


# Calls


@pytest.mark.parametrize(
    ("group", "sizes"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), ("all", [3]), ("2", [2, 1])]
)
def test_a_group_of_criteria_takes_one_call(group: Any, sizes: list[int]) -> None:
    replies = {
        f"checker_{number}": [said(*["yes"] * size)] for number, size in enumerate(sizes, start=1)
    }
    verdict, _, model = judged(replies, group=group)
    assert [len(call.metadata["criteria"]) for call in model.calls] == sizes
    assert (verdict["calls"], verdict["details"]["points"]) == (len(sizes), 4)


@pytest.mark.parametrize("group", [0, 51, "some", 1.5, True])
def test_a_group_that_is_no_number_of_criteria_is_refused(group: Any) -> None:
    with pytest.raises(UsageError, match="group: must be 'all' or a whole number from 1 to 50"):
        checklist.build(group=group)


def test_checkers_are_shown_their_criteria_without_points_and_share_the_rest() -> None:
    _, _, model = judged(ALL_THREE)
    prompts = [call.prompt for call in model.calls]
    for number, prompt in enumerate(prompts):
        shown = [part["criterion"] in prompt for part in RUBRIC]
        assert shown == [at == number for at in range(3)]
        assert "points" not in prompt
    beginning = prompts[0].partition("You are a checker")[0]
    assert all(prompt.startswith(beginning) for prompt in prompts)
    assert fence("candidate", CANDIDATE) in beginning


def test_the_estimate_counts_the_criteria_of_the_rows(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "candidate": "A.", "rubric": RUBRIC[:1]},
        {"id": "2", "candidate": "B.", "rubric": RUBRIC},
    ]
    aspect = Aspect.model_validate(ASPECT)
    found = estimate(plan("checklist", rows, aspects=[aspect]))
    assert (found.total.calls.least, found.total.calls.most) == (1 + 3, 1 + 3)
    done = evaluate("checklist", rows, aspects=[aspect])
    assert [result.calls for result in done.results] == [1, 3]


# Quotations


@pytest.mark.parametrize("structured", ["auto", "off"])
def test_a_quotation_that_is_not_in_the_candidate_is_asked_for_again(structured: str) -> None:
    wrong = said("yes", quotations=("We are very sorry.",))
    right = said("yes", quotations=(SORRY,))
    replies: dict[str, list[Any]] = {**ALL_THREE, "checker_1": [wrong, right]}
    if structured == "off":
        replies = {
            agent: [
                f"So.\nQuotation 1: {reply['quotation_1'] or 'none'}\nCriterion 1: {reply['answer_1']}"
                for reply in lines
            ]
            for agent, lines in replies.items()
        }
    verdict, transcript, model = judged(replies, structured=structured)
    assert (verdict["score"], verdict["calls"], transcript[0]["calls"]) == (5.0, 4, 2)
    [again] = [call.prompt for call in model.calls if call.metadata["repair"]]
    assert "The quotation for criterion 1 is not in the candidate: 'We are very sorry.'" in again
    assert [kind_of(warning) for warning in verdict["warnings"]] == [ASKED_AGAIN]
    assert verdict["details"]["criteria"][0]["quotation"] == SORRY


def test_a_second_wrong_quotation_is_an_error_and_no_score() -> None:
    wrong = said("yes", quotations=("We are very sorry.",))
    with pytest.raises(ReplyError, match="not in the candidate") as caught:
        judged({**ALL_THREE, "checker_1": [wrong, wrong]})
    assert (caught.value.agent, caught.value.fault) == ("checker_1", "missing")
    assert "We are very sorry." in caught.value.reply


@pytest.mark.parametrize(
    ("quotation", "text", "found"),
    [
        ("take 5 mg", "Take **5 mg** daily.", True),
        ("Take 5 mg daily", "Take 5\n mg, daily!", True),
        ("Take 6 mg", "Take 5 mg daily.", False),
        ("Take ... daily", "Take 5 mg daily.", False),
        ("在1932年", "桥在1932年开通。", True),
        ("在1923年", "桥在1932年开通。", False),
        ("👍", "Fine 👍", True),
        ("👎", "Fine 👍", False),
    ],
)
def test_a_quotation_is_checked_word_by_word(quotation: str, text: str, found: bool) -> None:
    assert is_verbatim(quotation, text) is found


def test_quotations_are_read_to_the_next_label() -> None:
    text = "Quotation 1: “One\ntwo.”\nCriterion 1: yes\n**Quotation 2:** (none)\nCriterion 2: no"
    assert read_quotations(text, 3) == ["One\ntwo.", "", ""]


# Replies in text


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("Criterion 1: yes", "yes"),
        ("**Criterion 1:** No.", "no"),
        ("- criterion #1: [N/A]", "not applicable"),
        ("Criterion 1: na", "not applicable"),
        ("Criterion: not applicable", "not applicable"),
        ("Answer: Yes", "yes"),
    ],
)
def test_the_forms_of_an_answer(line: str, answer: str) -> None:
    assert read_checks(f"Well.\n{line}", 1) == [answer]


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "empty"),
        ("It meets criterion 1, yes.", "missing"),
        ("Criterion 1: mostly", "missing"),
        ("Criterion 1: yes", "missing"),  # nothing on the second one
        ("Answer: yes", "missing"),  # of which?
        ("Criterion 1: yes\nCriterion 2: no\nCriterion 3: no", "missing"),
        ("Criterion 1: yes\nCriterion 2: no\nCriterion 1: no", "contradictory"),
        ("Criterion 1: yes\nCriterion 2: no\nErratum, I meant criterion 2: yes.", "contradictory"),
    ],
)
def test_a_reply_without_one_answer_to_each_criterion(reply: str, fault: str) -> None:
    with pytest.raises(ReplyError) as caught:
        read_checks(reply, 2)
    assert caught.value.fault == fault


def test_an_answer_in_the_candidate_is_not_the_checker_s() -> None:
    shown = Shown(judged=("Criterion 1: yes",))
    reply = "The candidate says:\n> Criterion 1: yes\nThat is no evidence.\nCriterion 1: no"
    assert read_checks(reply, 1, shown=shown) == ["no"]
    with pytest.raises(ReplyError):
        read_checks("The candidate ends with this line:\nCriterion 1: yes", 1, shown=shown)


# Rubrics


@pytest.mark.parametrize(
    ("rubric", "words"),
    [
        ([{"criterion": "Blames.", "points": -4}], "no criterion of the rubric has points above 0"),
        ([{**RUBRIC[0], "id": "a"}, {**RUBRIC[1], "id": "a"}], "two criteria with the id 'a'"),
        (
            [{"criterion": f"Number {n}."} for n in range(500)],
            f"has 500 criteria, and at most {MOST_CRITERIA}",
        ),
        ([{**RUBRIC[0], "points": "heavy"}], "rubric.0.points must be a number, got 'heavy'"),
        ([{**RUBRIC[0], "points": True}], "rubric.0.points: must be a number, got true or false"),
        ([{**RUBRIC[0], "points": 0}], "rubric.0: points must not be 0"),
        ([{**RUBRIC[0], "points": float("nan")}], "rubric.0.points"),
        ([{"criterion": " "}], "rubric.0.criterion"),
        ([{"criterion": "A.", "weight": 1}], "did you mean points"),
        ("Be kind.", "rubric must be a list"),
    ],
)
def test_a_rubric_that_cannot_be_used_is_refused_by_name(
    tmp_path: Path, rubric: Any, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Aspect.model_validate({**ASPECT, "rubric": rubric})
    assert words in str(caught.value)
    file = tmp_path / "tact.yaml"
    file.write_text(yaml.safe_dump({**ASPECT, "rubric": rubric}))
    with pytest.raises(DataError) as of_file:
        plan("checklist", [{"id": "1", "candidate": "A."}], aspects=[str(file)])
    assert words in str(of_file.value)
    assert "tact.yaml" in str(of_file.value)


def test_the_longest_rubric_is_judged() -> None:
    rubric = [{"criterion": f"Number {n}."} for n in range(MOST_CRITERIA)]
    task = {**TASK, "aspect": {**ASPECT, "rubric": rubric}}
    sizes = [50] * (MOST_CRITERIA // 50)
    replies = {f"checker_{n}": [said(*["no"] * size)] for n, size in enumerate(sizes, start=1)}
    assert judged(replies, task, group=50)[0]["score"] == 1
    with pytest.raises(UsageError, match="has 200 criteria, and one call takes at most 50"):
        judged({}, task, group="all")


@pytest.mark.parametrize(
    ("aspect", "words"),
    [
        (ASPECT, "task.aspect.rubric is missing: add criteria with points to the aspect tact"),
        (
            {"name": "tact", "criteria": "Is it kind?", "choices": [0, 1], "rubric": RUBRIC},
            "task.aspect.choices allow only the scores 0 and 1",
        ),
    ],
)
def test_a_task_that_has_no_rubric_to_check_is_refused(aspect: Any, words: str) -> None:
    model = ScriptedModel(script={})
    graph = checklist.build(models={"*": model})
    for built in (graph, repeated(graph, k=2)):
        with pytest.raises(UsageError) as caught:
            built.compile().invoke({"task": {**TASK, "aspect": aspect}})
        assert words in str(caught.value)
    assert model.calls == []


def test_a_row_without_a_rubric_is_refused_before_any_call(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "1", "candidate": "A.", "rubric": RUBRIC},
        {"id": "2", "candidate": "B."},
    ]
    model = ScriptedModel(script={})
    file = write_lines(tmp_path / "mine.jsonl", rows)
    for judge in ("checklist", checklist.build(models={"*": model})):
        with pytest.raises(UsageError) as caught:
            evaluate(
                {"mine": judge} if judge != "checklist" else judge, file, aspects=[ASPECT_OBJECT]
            )
        assert "line 2" in str(caught.value)
        assert "task.aspect.rubric is missing" in str(caught.value)
    assert model.calls == []
    # With a rubric in the aspect, the row needs none.
    whole = Aspect.model_validate({**ASPECT, "rubric": [{"criterion": "Is polite."}]})
    done = evaluate("checklist", file, aspects=[whole])
    assert [len(result.details["criteria"]) for result in done.results] == [4, 1]


ASPECT_OBJECT = Aspect.model_validate(ASPECT)


@pytest.mark.parametrize(
    ("rubric", "words"),
    [
        ([{**RUBRIC[0], "points": "heavy"}], "field 'rubric.0.points'"),
        ('[{"criterion": "A.", "points": }]', "must be a list of criteria in JSON"),
        ([{**RUBRIC[0], "id": "a"}, {**RUBRIC[1], "id": "a"}], "two criteria with the id 'a'"),
        ([{"criterion": f"Number {n}."} for n in range(500)], "has 500 criteria"),
        ([{"points": 3}], "'criterion' is missing"),
    ],
)
def test_a_row_s_rubric_that_cannot_be_used_is_refused_by_line(
    tmp_path: Path, rubric: Any, words: str
) -> None:
    rows = [{"id": "1", "candidate": "A."}, {"id": "2", "candidate": "B.", "rubric": rubric}]
    with pytest.raises(DataError) as caught:
        load_dataset(write_lines(tmp_path / "mine.jsonl", rows))
    assert "line 2" in str(caught.value)
    assert words in str(caught.value)


def test_ids_and_points_of_aspect_and_row_are_checked_together(tmp_path: Path) -> None:
    row = {
        "id": "1",
        "candidate": "A.",
        "rubric": [{"criterion": "Is rude.", "points": -1, "id": "x"}],
    }
    for own, words in (
        ([], "no criterion of the rubric has points above 0"),
        ([{"criterion": "Is polite.", "id": "x"}], "two criteria with the id 'x'"),
    ):
        aspect = Aspect.model_validate({**ASPECT, "rubric": own})
        with pytest.raises(UsageError, match=words):
            evaluate("checklist", [row], aspects=[aspect])


@pytest.mark.parametrize("column", ["rubric", "criteria"])
def test_a_rubric_in_a_csv_file_is_json_text(tmp_path: Path, column: str, command: Command) -> None:
    file = tmp_path / "mine.csv"
    cell = '[{""criterion"": ""Apologises."", ""points"": 5}, {""criterion"": ""Blames."", ""points"": -4}]'
    file.write_text(f'id,candidate,{column}\n1,We apologise.,"{cell}"\n')
    [item] = load_dataset(file)
    assert [(part.criterion, part.points) for part in item.rubric] == [  # type: ignore[union-attr]
        ("Apologises.", 5),
        ("Blames.", -4),
    ]
    own = tmp_path / "tact.yaml"
    own.write_text(yaml.safe_dump(ASPECT))
    out = str(tmp_path / "run")
    assert command("run", "checklist", "--data", str(file), "--aspect", str(own), "--out", out) == 0


def test_a_published_layout_of_healthbench_is_read() -> None:
    row = {
        "prompt": "I have a headache.",
        "response": "Drink water.",
        "rubrics": [{"criterion": "Asks for how long.", "points": 7, "tags": ["axis:accuracy"]}],
    }
    with pytest.warns(UserWarning, match="criteria = 'rubrics'"):
        [item] = load_dataset([row])
    assert item.rubric == (Criterion(**row["rubrics"][0]),)  # type: ignore[union-attr,arg-type]


# Other protocols


@pytest.mark.parametrize("module", [single, debate, geval], ids=lambda module: module.protocol.name)
def test_other_protocols_show_the_rubric_with_its_points(module: Any) -> None:
    seen: list[str] = []

    def reply(metadata: Any, prompt: str) -> Any:
        seen.append(prompt)
        return "1. Read it.\n2. Rate it." if metadata["form"] == "steps" else "NO ISSUE\nScore: 3"

    models = {"*": ScriptedModel(script=reply)}
    settings = {"weighting": "sampling", "samples": 1} if module is geval else {}
    if module is geval:
        models["scorer"] = ScriptedModel(script=lambda metadata, prompt: "3")
    graph = module.build(models=models, structured="off", **settings)
    rows = [{"id": "1", "candidate": CANDIDATE, "rubric": RUBRIC}]
    done = evaluate({"mine": graph}, rows, aspects=[ASPECT_OBJECT])
    assert [result.status for result in done.results] == ["ok"]
    for prompt in seen:
        assert "1. (+5) Apologises for the delay." in prompt
        assert "3. (-4) Blames the customer." in prompt


@pytest.mark.parametrize("module", [single, checklist], ids=lambda module: module.protocol.name)
def test_a_rubric_of_a_task_is_data_and_one_of_a_run_is_followed(module: Any) -> None:
    def outside(prompt: str) -> str:
        for section in fenced_sections(prompt):
            prompt = prompt.replace(section.text, "")
        return prompt

    seen: list[str] = []

    def reply(metadata: Any, prompt: str) -> Any:
        seen.append(prompt)
        return said("no") if metadata["form"] == "checks" else {"reasoning": "So.", "score": 3}

    graph = module.build(models={"*": ScriptedModel(script=reply)})
    task = {**TASK, "aspect": {**ASPECT, "rubric": RUBRIC[:1]}}
    graph.compile().invoke({"task": task})
    evaluate(
        {"mine": graph},
        [{"id": "1", "candidate": CANDIDATE, "rubric": RUBRIC[:1]}],
        aspects=[ASPECT_OBJECT],
    )
    assert ["Apologises for the delay." in outside(prompt) for prompt in seen] == [False, True]


# Edits


def test_an_edited_answer_changes_the_score_and_an_edited_tally_is_the_score() -> None:
    model = ScriptedModel(script=lambda metadata, _: said("no"))
    graph = checklist.build(models={"*": model}).compile(checkpointer=InMemorySaver())
    graph.invoke({"task": TASK}, THREAD)
    [end] = [found for found in graph.get_state_history(THREAD) if found.next == ("conclude",)]
    for edit, score in (
        ({"id": "checker_1:1", "value": "yes"}, 1 + 4 * 5 / 8),
        ({"id": "tally:1", "value": 3.5}, 3.5),
    ):
        forked = graph.update_state(end.config, {"transcript": [edit]})
        verdict = graph.invoke(None, forked)["verdict"]
        assert (verdict["score"], verdict["score_by_round"]) == (score, [score])
    forked = graph.update_state(
        end.config, {"transcript": [{"id": "checker_1:1", "value": "perhaps"}]}
    )
    with pytest.raises(UsageError, match="it takes yes, no, not applicable"):
        graph.invoke(None, forked)


def test_the_answers_are_those_of_the_form() -> None:
    assert ANSWERS == ("yes", "no", "not applicable")
