"""Tasks, aspects, settings, turns and verdicts: plain data with its rules."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jurygraph.state import (
    ASPECTS,
    Aspect,
    CompareTask,
    DebateSettings,
    InputError,
    ModelSpec,
    ScoreTask,
    Usage,
    UsageError,
    Verdict,
    find_aspect,
    parse_task,
)
from jurygraph.state.graph_state import append, as_json
from jurygraph.state.settings import ChatEvalSettings, Settings, make_settings, resolve_settings
from jurygraph.state.transcript import (
    USAGE_FIELDS,
    total_usage,
    turn_without_model,
    usage_of_turns,
    written_by,
)
from pydantic import ValidationError

SCALES = {
    "summeval": {"coherence": (1, 5), "consistency": (1, 5), "fluency": (1, 5), "relevance": (1, 5)},
    "topical-chat": {
        "naturalness": (1, 3),
        "coherence": (1, 3),
        "engagingness": (1, 3),
        "groundedness": (0, 1),
        "understandability": (0, 1),
    },
    "hanna": {
        **{"relevance": (1, 5), "coherence": (1, 5), "empathy": (1, 5)},
        **{"surprise": (1, 5), "engagement": (1, 5), "complexity": (1, 5)},
    },
}


def test_ready_made_aspects_are_the_benchmarks_with_their_scales() -> None:
    expected = {
        f"{family}/{name}": scale for family, names in SCALES.items() for name, scale in names.items()
    }
    assert {name: (aspect.low, aspect.high) for name, aspect in ASPECTS.items()} == expected
    assert all(f"/{aspect.name}" in name and aspect.steps for name, aspect in ASPECTS.items())


def test_a_bare_name_that_two_share_is_summevals() -> None:
    assert find_aspect("coherence") is ASPECTS["summeval/coherence"]
    assert find_aspect("Naturalness ") is ASPECTS["topical-chat/naturalness"]


def test_an_unknown_aspect_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown aspect 'wit'.*topical-chat/groundedness"):
        find_aspect("wit")


@pytest.mark.parametrize(("low", "high"), [(5, 1), (3, 3), (float("nan"), 5)])
def test_a_scale_must_run_upwards(low: float, high: float) -> None:
    with pytest.raises(ValidationError, match="low"):
        Aspect(name="wit", criteria="Does it amuse?", low=low, high=high)
    with pytest.raises(ValidationError, match="low"):
        CompareTask(question="q", answer_1="a", answer_2="b", low=low, high=high)


def test_a_task_is_told_by_its_kind_or_else_by_its_fields() -> None:
    score: dict[str, Any] = {"source": "s", "candidate": "c", "aspect": "fluency"}
    compare: dict[str, Any] = {"question": "q", "answer_1": "a", "answer_2": "b"}
    for kind, fields, cls in (("score", score, ScoreTask), ("compare", compare, CompareTask)):
        named, bare = parse_task({"kind": kind, **fields}), parse_task(fields)
        assert isinstance(named, cls)
        assert parse_task(named) == named == bare
    with pytest.raises(UsageError, match=r"task\.answer_2 is missing"):
        parse_task({"question": "q", "answer_1": "a"})


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (None, "task"),
        ({}, "task"),
        ("A text.", "task"),
        ({"source": "s"}, "task"),
        ({"kind": "rank"}, "task"),
        ({"kind": "score", "source": "s", "aspect": "fluency"}, "task.candidate"),
        ({"kind": "score", "source": "s", "candidate": 5, "aspect": "fluency"}, "task.candidate"),
        ({"kind": "score", "source": "s", "candidate": "c", "aspect": "wit"}, "task.aspect"),
        ({"kind": "score", "source": "s", "candidate": "c", "aspect": 5}, "task.aspect"),
        (
            {"kind": "score", "source": "s", "candidate": "c", "aspect": {"name": "wit"}},
            "task.aspect.criteria",
        ),
        ({"kind": "score", "source": "s", "candidate": "\ud800", "aspect": "fluency"}, "task.candidate"),
        ({"kind": "compare", "question": "q", "answer_1": "a", "answer_2": "b", "x": 1}, "task.x"),
    ],
)
def test_bad_tasks_name_the_field(bad: object, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parse_task(bad)
    assert field in [".".join(map(str, error["loc"])) for error in caught.value.errors()]
    assert str(caught.value).startswith(field), "in one sentence, the field first"
    assert not re.search(r"https?:|_Input|ScoreTask|CompareTask", str(caught.value))


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b\ufeff"], ids=["empty", "spaces", "without width"])
@pytest.mark.parametrize("field", ["source", "candidate", "question", "answer_1", "answer_2"])
def test_a_blank_text_is_not_judged(field: str, blank: str) -> None:
    score = {"source": "s", "candidate": "c", "aspect": "fluency"}
    task = score if field in score else {"question": "q", "answer_1": "a", "answer_2": "b"}
    with pytest.raises(UsageError, match=rf"^task\.{field} is blank"):
        parse_task({**task, field: blank})


def test_an_optional_text_that_is_blank_is_left_out() -> None:
    """A form sends an empty text for a field that nobody filled in."""
    assert ScoreTask(source="s", candidate="c", aspect="fluency", fact=" ").fact is None
    assert CompareTask(question="q", answer_1="a", answer_2="b", reference="").reference is None


@pytest.mark.parametrize(
    "unclear", [{"source": "s"}, {"candidate": "c", "answer_1": "a"}, {"kind": "rank"}, {}]
)
def test_a_task_of_no_kind_is_shown_both(unclear: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"kind.*\"candidate\": .*\"answer_2\": "):
        parse_task(unclear)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"persona": "fierce"},
            "^persona: must be 'strict', .*'sophisticated', or several words in one line .*, got 'fierce'$",
        ),
        ({"persona": "strickt"}, "got 'strickt'; did you mean strict\\?"),
        ({"persona": "You are a nurse.\nSay NO ISSUE."}, "in one line"),
        ({"persona": "You look for harm. " * 40}, "at most 500 characters"),
        ({"persona": ""}, "several words"),
        ({"rounds": 3}, "^rounds is not a setting of debate; did you mean n\\? Its settings are n, persona,"),
        ({"persna": 3}, "did you mean persona\\?"),
        ({"loudness": 3}, "^loudness is not a setting of debate; its settings are n, persona, .*, repair$"),
        ({"n": "many"}, "^n must be a whole number, got 'many'$"),
        ({"n": 0}, "^n must be greater than or equal to 1, got 0$"),
        ({"tie_breaker": "perhaps"}, "^tie_breaker must be true or false, got 'perhaps'$"),
        ({"models": 5}, "^models"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_wrong_setting_is_told_in_words_with_the_valid_ones(given: dict[str, Any], words: str) -> None:
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


def test_of_a_value_of_several_types_the_nearest_fault_is_told() -> None:
    with pytest.raises(InputError, match=r"^roles\.0\.description is missing$"):
        ChatEvalSettings(roles=[{"name": "Nurse"}])
    with pytest.raises(InputError, match=r"^roles must be text or a list, got 5$"):
        ChatEvalSettings(roles=5)


def test_an_input_error_is_the_same_after_a_journey_between_processes() -> None:
    with pytest.raises(InputError) as caught:
        DebateSettings(n=0, loudness={"a": 1})  # type: ignore[call-arg]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.errors()) == (InputError, str(caught.value), caught.value.errors())


def test_settings_that_are_no_names_and_values_are_refused() -> None:
    with pytest.raises(InputError, match="the settings of debate must be an object of names and values"):
        make_settings(DebateSettings, 5, {})  # type: ignore[arg-type]


def test_models_are_read_with_their_parameters() -> None:
    spec = ModelSpec.parse("openai:gpt-4o-mini?temperature=0.5&seed=7")
    assert (spec.name, spec.temperature, spec.seed) == ("openai:gpt-4o-mini", 0.5, 7)
    assert str(spec) == "openai:gpt-4o-mini?temperature=0.5&seed=7"
    assert ModelSpec.parse(str(spec)) == spec


def test_a_model_parameter_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match=r"^temperature must be less than or equal to 2, got .3.$"):
        ModelSpec.parse("openai:gpt-4o?temperature=3")
    with pytest.raises(InputError, match=r"^models\.critic\.temperature must be less than or equal to 2"):
        DebateSettings(models={"critic": "openai:gpt-4o?temperature=3"})


@pytest.mark.parametrize(
    ("settings", "fallback"),
    [
        ({}, "last"),
        ({"tie_breaker": True}, "tie_breaker"),
        ({"on_unresolved": "tie_breaker"}, "tie_breaker"),
        ({"tie_breaker": True, "on_unresolved": "tie_breaker"}, "tie_breaker"),
        ({"tie_breaker": True, "on_unresolved": "human"}, None),
        ({"tie_breaker": False, "on_unresolved": "tie_breaker"}, None),
    ],
)
def test_the_fallback_can_be_named_either_way_but_not_in_two(settings: Any, fallback: str | None) -> None:
    if fallback is None:
        with pytest.raises(ValidationError, match="contradict"):
            DebateSettings.model_validate(settings)
    else:
        assert DebateSettings.model_validate(settings).fallback == fallback


def test_a_form_filled_in_by_a_server_changes_only_what_differs() -> None:
    bound = DebateSettings(n=2, persona="weak")
    form = DebateSettings(**{**DebateSettings().model_dump(), "tie_breaker": True})
    found = resolve_settings(bound, form)
    assert (found.n, found.persona, found.fallback) == (2, "weak", "tie_breaker")


def test_a_foreign_context_says_nothing() -> None:
    bound = DebateSettings(n=2)
    assert resolve_settings(bound, {"n": 3}) is bound
    assert resolve_settings(bound, None) is bound
    assert resolve_settings(bound, Settings(repair=0)) is bound


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


@given(st.lists(st.integers()), st.lists(st.integers()))
def test_append_changes_neither_side(before: list[int], new: list[int]) -> None:
    kept = list(before), list(new)
    assert append(before, new) == before + new
    assert (before, new) == kept


def test_pydantic_objects_become_json_in_the_state() -> None:
    task = CompareTask(question="q", answer_1="a", answer_2="b")
    assert as_json(None, task)["answer_2"] == "b"
    assert as_json({"old": 1}, {"new": 2}) == {"new": 2}


def test_usage_is_added_field_by_field() -> None:
    one = Usage(1, 900, 400, 100, 30, 0.25, 1.5)
    assert one + one == total_usage([one, one]) == Usage(2, 1800, 800, 200, 60, 0.5, 3.0)
    assert total_usage([one, Usage(cost_usd=None), one]) == Usage(2, 1800, 800, 200, 60, None, 3.0)
    assert one.tokens == 1000


def test_usage_stands_as_flat_fields_in_turns_and_verdicts() -> None:
    one = Usage(1, 900, 400, 100, 30, None, 1.5)
    turn = written_by(turn_without_model(0, "a", "a", "Aye."), "m", [one])
    assert list(turn)[-len(USAGE_FIELDS) :] == list(USAGE_FIELDS)
    assert Usage.of_fields(turn) == usage_of_turns([turn]) == one
    verdict = Verdict(protocol="debate", kind="score", stop_reason="no_issue", rounds=1, **one.flat())
    assert verdict.model_dump(include=set(USAGE_FIELDS)) == one.flat()
    assert (verdict.calls, verdict.tokens, verdict + one) == (1, 1000, one + one)


def test_a_discount_is_taken_off_known_costs_only() -> None:
    assert Usage(3, cost_usd=0.5).discounted(0.5) == Usage(3, cost_usd=0.25)
    assert Usage(3, cost_usd=None).discounted(0.5) == Usage(3, cost_usd=None)


def test_a_verdict_reads_back_from_json() -> None:
    verdict = Verdict(
        protocol="debate", kind="compare", scores=(1, 2), winner="2", stop_reason="no_issue", rounds=1
    )
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict
    assert Verdict.of({"verdict": verdict.model_dump(mode="json")}) == verdict
