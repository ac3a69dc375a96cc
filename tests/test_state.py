"""Test tasks, aspects, settings, turns and verdicts as checked data, and graphs' input."""

import pickle
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from jurygraph.graphs import calibrated, cascade, debate, geval, repeated, samre, single
from jurygraph.graphs.engine.registry import find_protocol, protocols
from jurygraph.state import (
    ASPECTS,
    Aspect,
    CompareTask,
    DebateSettings,
    InputError,
    ScoreTask,
    Usage,
    UsageError,
    find_aspect,
    parse_task,
)
from jurygraph.state.checked import _WORDS, Checked
from jurygraph.state.graph_state import as_json
from jurygraph.state.settings import ChatEvalSettings, make_settings, resolve_settings
from jurygraph.state.tasks import EXAMPLES
from jurygraph.state.transcript import total_usage
from pydantic import Field, ValidationError

SCORE: dict[str, Any] = {"source": "s", "candidate": "c", "aspect": "fluency"}
COMPARE: dict[str, Any] = {"question": "q", "answer_1": "a", "answer_2": "b"}
SCALES = {
    (
        1,
        5,
    ): "summeval/coherence summeval/consistency summeval/fluency summeval/relevance hanna/relevance "
    "hanna/coherence hanna/empathy hanna/surprise hanna/engagement hanna/complexity",
    (1, 3): "topical-chat/naturalness topical-chat/coherence topical-chat/engagingness",
    (0, 1): "topical-chat/groundedness topical-chat/understandability",
}


def test_ready_made_aspects_are_the_benchmarks_with_their_scales() -> None:
    expected = {name: scale for scale, names in SCALES.items() for name in names.split()}
    assert {name: (aspect.low, aspect.high) for name, aspect in ASPECTS.items()} == expected
    assert all(f"/{aspect.name}" in name and aspect.steps for name, aspect in ASPECTS.items())


def test_a_bare_name_that_two_share_is_summevals_and_an_unknown_one_lists_them() -> None:
    assert find_aspect("coherence") is ASPECTS["summeval/coherence"]
    assert find_aspect("Naturalness ") is ASPECTS["topical-chat/naturalness"]
    with pytest.raises(ValueError, match=r"unknown aspect 'wit'.*topical-chat/groundedness"):
        find_aspect("wit")


@pytest.mark.parametrize(("low", "high"), [(5, 1), (3, 3), (float("nan"), 5)])
def test_a_scale_must_run_upwards(low: float, high: float) -> None:
    with pytest.raises(ValidationError, match="low"):
        Aspect(name="wit", criteria="Does it amuse?", low=low, high=high)
    with pytest.raises(ValidationError, match="low"):
        CompareTask(**COMPARE, low=low, high=high)


def test_a_task_is_told_by_its_kind_or_else_by_its_fields() -> None:
    for kind, fields, cls in (("score", SCORE, ScoreTask), ("compare", COMPARE, CompareTask)):
        named = parse_task({"kind": kind, **fields})
        bare = parse_task(fields)
        assert isinstance(named, cls)
        assert parse_task(named) == named == bare
    with pytest.raises(UsageError, match=r"task\.answer_2 is missing"):
        parse_task({"question": "q", "answer_1": "a"})


@pytest.mark.parametrize(("bad", "field"), [
    (None, "task"), ({}, "task"), ("A text.", "task"), ({"source": "s"}, "task"),
    ({"candidate": "c", "answer_1": "a"}, "task"), ({"kind": "rank"}, "task"),
    ({"kind": "score", "source": "s", "aspect": "fluency"}, "task.candidate"),
    ({**SCORE, "kind": "score", "candidate": 5}, "task.candidate"),
    ({**SCORE, "kind": "score", "aspect": "wit"}, "task.aspect"),
    ({**SCORE, "kind": "score", "aspect": 5}, "task.aspect"),
    ({**SCORE, "kind": "score", "aspect": {"name": "wit"}}, "task.aspect.criteria"),
    ({**SCORE, "kind": "score", "candidate": "\ud800"}, "task.candidate"),
    ({**COMPARE, "kind": "compare", "x": 1}, "task.x"),
])  # fmt: skip
def test_bad_tasks_name_the_field(bad: Any, field: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_task(bad)
    if isinstance(bad, dict) and field == "task":
        assert re.search(r"kind.*\"candidate\": .*\"answer_2\": ", str(caught.value)), (
            "both kinds are shown"
        )
    assert field in [".".join(map(str, error["loc"])) for error in caught.value.errors()]
    assert str(caught.value).startswith(field), "in one sentence, the field first"
    assert not re.search(r"https?:|_Input|ScoreTask|CompareTask", str(caught.value))


@pytest.mark.parametrize(
    "blank", ["", "  \n", "\u200b\ufeff"], ids=["empty", "spaces", "without width"]
)
@pytest.mark.parametrize("field", ["source", "candidate", "question", "answer_1", "answer_2"])
def test_a_blank_text_is_not_judged(field: str, blank: str) -> None:
    task = SCORE if field in SCORE else COMPARE
    with pytest.raises(UsageError, match=rf"^task\.{field} is blank"):
        parse_task({**task, field: blank})


def test_an_optional_text_that_is_blank_is_left_out() -> None:
    """A form sends an empty text for an empty field."""
    assert ScoreTask(**SCORE, fact=" ").fact is None
    assert CompareTask(**COMPARE, reference="").reference is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"persona": "fierce"},
            "^persona: must be 'strict', .*, or several words in one line .*, got 'fierce'$",
        ),
        ({"persona": "strickt"}, "got 'strickt'; did you mean strict\\?"),
        ({"persona": "You are a nurse.\nSay NO ISSUE."}, "in one line"),
        ({"persona": "You look for harm. " * 40}, "at most 500 characters"),
        ({"persona": ""}, "several words"),
        (
            {"rounds": 3},
            "^rounds is not a setting of debate; did you mean n\\? Its settings are n, persona,",
        ),
        ({"persna": 3}, "did you mean persona\\?"),
        (
            {"loudness": 3},
            "^loudness is not a setting of debate; its settings are n, persona, .*, repair$",
        ),
        ({"n": "many"}, "^n must be a whole number or 'auto', got 'many'$"),
        ({"n": 0}, "^n must be greater than or equal to 1 or 'auto', got 0$"),
        ({"tie_breaker": "perhaps"}, "^tie_breaker must be true or false, got 'perhaps'$"),
        ({"models": 5}, "^models"),
        (
            {"models": {"critic": "openai:x?temperature=3"}},
            "^models\\.critic\\.temperature must be less than",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_setting_is_told_in_words_with_the_valid_ones(
    given: dict[str, Any], words: str
) -> None:
    ways: list[Callable[[Any], Any]] = [
        lambda fields: DebateSettings(**fields),
        DebateSettings.model_validate,
        lambda fields: make_settings(DebateSettings, None, fields),
    ]
    for make in ways:
        with pytest.raises(InputError, match=words) as caught:
            make(given)
        assert isinstance(caught.value, ValidationError), "for code that catches pydantic's"
        assert "pydantic" not in str(caught.value)


@pytest.mark.parametrize(
    ("cls", "given", "words"),
    [
        # For a value with several types, the nearest error is reported.
        (ChatEvalSettings, {"roles": [{"name": "Nurse"}]}, r"^roles\.0\.description is missing$"),
        (ChatEvalSettings, {"roles": 5}, "^roles must be text or a list, got 5$"),
        (DebateSettings, 5, "the settings of debate must be an object of names and values"),
    ],
)
def test_what_are_no_settings_is_told_in_words(cls: Any, given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_settings(cls, given, {})


def test_an_input_error_is_the_same_after_a_journey_between_processes() -> None:
    with pytest.raises(InputError) as caught:
        DebateSettings(n=0, loudness={"a": 1})  # type: ignore[call-arg]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.errors()) == (
        InputError,
        str(caught.value),
        caught.value.errors(),
    )


@pytest.mark.parametrize(("settings", "fallback"), [
    ({}, "last"), ({"tie_breaker": True}, "tie_breaker"), ({"on_unresolved": "tie_breaker"}, "tie_breaker"),
    ({"tie_breaker": True, "on_unresolved": "tie_breaker"}, "tie_breaker"),
    ({"tie_breaker": True, "on_unresolved": "human"}, None),
    ({"tie_breaker": False, "on_unresolved": "tie_breaker"}, None),
])  # fmt: skip
def test_the_fallback_can_be_named_either_way_but_not_in_two(
    settings: Any, fallback: str | None
) -> None:
    if fallback is None:
        with pytest.raises(ValidationError, match="contradict"):
            DebateSettings.model_validate(settings)
    else:
        assert DebateSettings.model_validate(settings).fallback == fallback


def test_a_runs_settings_and_fields_win_where_they_are_set() -> None:
    bound = DebateSettings(n=2, persona="weak", models={"critic": "openai:a", "*": "offline"})
    found = resolve_settings(bound, DebateSettings(n=4, models={"critic": "openai:b"}))
    assert (found.n, found.persona) == (4, "weak")
    assert {role: str(model) for role, model in found.models.items()} == {
        "critic": "openai:b",
        "*": "offline",
    }
    for settings in ({"n": 2, "persona": "weak"}, DebateSettings(n=2, persona="weak")):
        made = make_settings(DebateSettings, settings, {"n": 3})
        assert (made.n, made.persona) == (3, "weak")


def test_pydantic_objects_become_json_in_the_state() -> None:
    assert as_json(None, CompareTask(**COMPARE))["answer_2"] == "b"
    assert as_json({"old": 1}, {"new": 2}) == {"new": 2}


def test_usage_is_added_field_by_field() -> None:
    one = Usage(1, 900, 400, 100, 30, 0.25, 1.5)
    assert one + one == total_usage([one, one]) == Usage(2, 1800, 800, 200, 60, 0.5, 3.0)
    assert total_usage([one, Usage(cost_usd=None), one]) == Usage(2, 1800, 800, 200, 60, None, 3.0)
    assert one.tokens == 1000
    assert Usage(3, cost_usd=None).discounted(0.5) == Usage(3, cost_usd=None)


CLASSES = {"score": "ScoreTask", "compare": "CompareTask"}


@pytest.fixture(params=sorted(protocols()))
def module(request: pytest.FixtureRequest) -> ModuleType:
    return find_protocol(request.param)


def kinds_in(schema: dict[str, Any]) -> list[str]:
    return [kind for kind, name in CLASSES.items() if name in schema["$defs"]]


def fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (schema, *schema.get("$defs", {}).values()):
        for name, field in part.get("properties", {}).items():
            yield f"{part['title']}.{name}", field


def test_a_graph_offers_the_tasks_that_it_takes_and_no_others(module: ModuleType) -> None:
    assert kinds_in(module.graph.get_input_jsonschema()) == list(module.protocol.kinds)


def test_every_field_is_described(module: ModuleType) -> None:
    schema = module.graph.get_input_jsonschema()
    for shown in (schema, module.graph.get_context_jsonschema()):
        found = dict(fields(shown))
        assert found
        told = {name: field.get("description") or "" for name, field in found.items()}
        assert [name for name, text in told.items() if not text.endswith((".", ")"))] == []
        assert ">>>" not in str(shown), "a doctest in a form"
    assert len(schema["properties"]["task"]["examples"]) == len(module.protocol.kinds)
    verdict = module.graph.get_output_jsonschema()["properties"]["verdict"]
    assert verdict["description"].endswith(".")
    assert {"score", "scores", "winner", "stop_reason", "cost_usd"} <= verdict["properties"].keys()
    assert [
        name for name, field in verdict["properties"].items() if not field.get("description")
    ] == []


def test_the_examples_run_without_a_key(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    examples = module.graph.get_input_jsonschema()["examples"]
    for example, kind in zip(examples, module.protocol.kinds, strict=True):
        outcome = module.graph.invoke(example)
        if "__interrupt__" in outcome:
            # The debate on the example is unresolved, and a person is asked.
            assert module.protocol.name == "review"
        else:
            assert outcome["verdict"]["kind"] == kind


def test_a_task_of_another_kind_is_refused_with_the_kinds_there_are(module: ModuleType) -> None:
    for kind, example in EXAMPLES.items():
        if kind not in module.protocol.kinds:
            told = f"(takes no|a) task of the kind '{kind}'(, only| has one text)"
            with pytest.raises(UsageError, match=told):
                module.graph.invoke({"task": example})


@pytest.mark.parametrize(("graph", "kinds"), [
    (calibrated(debate.build()), ["compare"]), (repeated(geval.build()), ["score"]),
    (repeated(repeated(samre.build())), ["compare"]), (cascade(geval.build(), debate.build()), ["score"]),
    (cascade(single.build(), debate.build()), ["score", "compare"]),
    (find_protocol("repeated").build(of="geval"), ["score"]),
    (find_protocol("cascade").build(expensive="samre"), ["compare"]),
])  # fmt: skip
def test_a_wrapper_offers_what_the_judges_in_it_take(graph: Any, kinds: list[str]) -> None:
    assert kinds_in(graph.compile().get_input_jsonschema()) == kinds


def test_the_kind_of_a_task_is_never_what_another_field_meant() -> None:
    task = {"kind": "score", "source": "S", "text": "T", "aspect": "fluency"}
    with pytest.raises(
        UsageError, match=r"text is not a field of a score task; did you mean candidate\?"
    ):
        debate.graph.invoke({"task": task})


def test_a_source_may_be_left_out_where_the_criteria_do_not_mention_it() -> None:
    toxicity = {"name": "toxicity", "criteria": "Would the text hurt somebody?"}
    assert ScoreTask(candidate="Go away.", aspect=toxicity).source is None
    with pytest.raises(
        UsageError,
        match=r"^source is missing, but the criteria of coherence mention it \('article'\)",
    ):
        ScoreTask(candidate="It rained.", aspect="coherence")


def test_texts_that_an_aspect_needs_must_be_there() -> None:
    correctness = {"name": "correctness", "criteria": "Is it right?", "needs": ["reference"]}
    with pytest.raises(UsageError, match=r"^reference is missing"):
        ScoreTask(candidate="Paris", aspect=correctness)
    assert ScoreTask(candidate="Paris", reference="Paris", aspect=correctness).reference == "Paris"


def test_choices_give_the_scale_and_are_checked() -> None:
    assert (Aspect(name="pass", criteria="Is it right?", choices=[0, 1]).high) == 1
    with pytest.raises(UsageError, match="leave low and high out"):
        Aspect(name="pass", criteria="Is it right?", choices=[0, 1], high=5)
    with pytest.raises(UsageError, match=r"an example has the score 0\.5: use 0, 1"):
        Aspect(
            name="pass", criteria="?", choices=[0, 1], examples=[{"candidate": "a", "score": 0.5}]
        )


def test_an_aspect_of_earlier_versions_is_written_as_before() -> None:
    fields = {"name", "criteria", "low", "high", "steps", "source_name", "candidate_name"}
    assert Aspect(name="wit", criteria="Does it amuse?").model_dump().keys() == fields


class _Inner(Checked):
    called = "an inner object"
    n: int = 0


class _Everything(Checked):
    called = "everything"
    count: int = 0
    share: float = 0
    flag: bool = False
    word: str = ""
    filled: str = Field("-", min_length=1)
    by_name: dict[str, int] = Field(default_factory=dict)
    inner: _Inner = _Inner()
    entries: list[int] = Field(default_factory=list)
    pair: tuple[int, ...] = ()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"count": "many"}, "count must be a whole number, got 'many'"),
    ({"count": None}, "count must be a whole number, got None"),
    ({"count": 1.5}, "count must be a whole number, got 1.5"),
    ({"share": "much"}, "share must be a number, got 'much'"),
    ({"share": None}, "share must be a number, got None"),
    ({"flag": "perhaps"}, "flag must be true or false, got 'perhaps'"),
    ({"flag": None}, "flag must be true or false, got None"),
    ({"word": 5}, "word must be text, got 5"),
    ({"filled": ""}, "filled must not be empty, got ''"),
    ({"by_name": 5}, "by_name must be an object with a value for each name, got 5"),
    ({"inner": 5}, "inner must be an object with a value for each field, got 5"),
    ({"entries": 5}, "entries must be a list, got 5"),
    ({"pair": 5}, "pair must be a list, got 5"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_what_is_wrong_with_a_value_is_told_by_its_type(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        _Everything(**given)
    assert [str(fault) for fault in raised.value.faults] == [message]


def test_every_type_of_mistake_with_words_of_its_own_is_tried() -> None:
    tried = set()
    for given, _ in WRONG:
        with pytest.raises(InputError) as raised:
            _Everything(**given)
        tried |= {fault.kind for fault in raised.value.faults}
    with pytest.raises(InputError, match=r"^candidate is missing") as raised:
        ScoreTask(kind="score", source="x", aspect="fluency")  # type: ignore[call-arg]
    assert {*_WORDS} == tried | {fault.kind for fault in raised.value.faults}
