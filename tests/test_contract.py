"""What every protocol is held to, also the next one: this file runs over the registry."""

import asyncio
import json
import re
from collections import Counter
from functools import cache
from types import ModuleType
from typing import Any

import pytest
from jurygraph.graphs.registry import find_protocol, protocols
from jurygraph.nodes.models.scripted_model import Script, ScriptedModel
from jurygraph.state import ReplyError, UsageError, Verdict
from jurygraph.state.protocols import CallRange, CallsByRole, exactly, total
from jurygraph.state.settings import Settings, WrapperSettings
from pydantic import ValidationError

from .loopback import Answer, Failure, Provider, Text
from .loopback_debate import OPENAI
from .sample_data import CASES, TASKS
from .source_tree import ROOT
from .virtual_time import InFlight


@pytest.fixture(params=sorted(protocols()))
def module(request: pytest.FixtureRequest) -> ModuleType:
    return find_protocol(request.param)


def task(kind: str, **changes: Any) -> dict[str, Any]:
    return {**TASKS[kind], **changes}


def content_follower(metadata: Any, prompt: str) -> str | dict[str, Any]:
    """A judge that prefers the answer about clay, wherever it stands, and never objects."""
    if metadata["form"] == "critique":
        return {"feedback": "Agreed.", "no_issue": True}
    if metadata["form"] == "steps":
        return "1. Read both texts.\n2. Give a score."
    if metadata["kind"] == "score":
        return {"reasoning": "Because.", "score": 3}
    first, second = prompt.find("Clay must heat"), prompt.find("They do not")
    low, high = metadata["low"], metadata["high"]
    scores, winner = ((high, low), "1") if first < second else ((low, high), "2")
    pair = {"score_1": scores[0], "score_2": scores[1], "winner": winner}
    return {"reasoning": "Because.", "score": low, **pair}


def worst_script(metadata: Any, prompt: str) -> str | dict[str, Any]:
    if metadata["form"] == "critique":
        return {"feedback": "I object.", "no_issue": False}
    if metadata["form"] == "steps":
        return "1. Read both texts.\n2. Give a score."
    low, odd = metadata["low"], metadata["round"] % 2
    pair = {"score_1": low + 1 - odd, "score_2": low + odd}
    return {"reasoning": "So.", "score": max(3, low), **pair, "winner": "2"}


@cache
def judged_offline(name: str, kind: str) -> dict[str, Any]:
    """What the protocol as it is comes to, where nobody has chosen a model."""
    result: dict[str, Any] = find_protocol(name).graph.invoke({"task": task(kind)})
    return result


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_same_input_and_output_keys_and_all_of_it_plain_json(name: str, kind: str) -> None:
    result = judged_offline(name, kind)
    assert set(result) == {"verdict", "transcript"}
    assert json.loads(json.dumps(result)) == result
    verdict = Verdict.of(result)
    assert (verdict.protocol, verdict.kind) == (name, kind)
    assert (verdict.score is None) is (kind == "compare")
    assert (verdict.winner is None) is (kind == "score")
    assert verdict.calls == sum(turn["calls"] for turn in result["transcript"])
    [explains] = [turn for turn in result["transcript"] if turn["id"] == verdict.explained_by]
    assert verdict.explanation and explains["content"].strip() in verdict.explanation
    assert any("no language model" in warning for warning in verdict.warnings)


SETTINGS: dict[str, list[dict[str, Any]]] = {
    "debate": [{}, {"n": 1}, {"n": 2, "tie_breaker": True}, {"n": 2, "commander": "llm"}],
    "multiagent": [{}, {"n": 3, "tie_breaker": True, "commander": "llm"}],
    "chateval": [
        {},
        {"position_calibration": False},
        {"referees": 3, "turns": 3, "strategy": "simultaneous", "score_each_turn": True},
        {"strategy": "summarizer"},
        {"strategy": "summarizer", "summarize_last": True, "summary": "append"},
        {"roles": "coding", "turns": 1, "summarize_last": True},
    ],
    "single": [{}, {"position_calibration": False}],
    "ensemble": [{}, {"referees": 5, "position_calibration": False}, {"roles": ["critic", "teacher"]}],
    "geval": [{}, {"weighting": "sampling", "samples": 1}, {"samples": 3, "steps": ["Give a score."]}],
    "faireval": [{}, {"k": 1}, {"k": 4, "position_calibration": False}],
    "more": [
        {},
        {"aggregate": "concat", "advocates": 2},
        {"aggregate": "best", "rounds": 2},
        {"rounds": 3, "collaborate": True},
    ],
    "samre": [{}, {"jurors": 0}, {"max_rounds": 3, "memory": "summary", "jurors": 2}, {"max_rounds": 1}],
    "baseline": [{}],
    "calibrated": [{}, {"of": "samre", "inner": {"jurors": 1}}, {"of": "chateval", "inner": {"turns": 1}}],
    "repeated": [
        {"of": "debate", "k": 2},
        {"of": "single"},
        {"of": "repeated", "inner": {"of": "debate", "inner": {"n": 1}, "k": 2}, "k": 2},
    ],
    "cascade": [
        {"cheap": "debate", "cheap_settings": {"n": 1}, "expensive": "ensemble"},
        {"cheap": "multiagent", "expensive": "debate", "expensive_settings": {"tie_breaker": True}},
        {"when": []},
    ],
    "review": [{}, {"of": "repeated", "when": "wide>9", "inner": {"of": "single", "k": 2}}],
}
"""What decides how many calls a protocol takes."""
COUNTED = [(name, kind, settings) for name, kind in CASES for settings in SETTINGS.get(name, [{}])]


def cannot(_role: str, _what: str) -> bool:
    """A model that gives neither several replies at once nor log-probabilities."""
    return False


def by_role(calls: CallsByRole) -> dict[str, CallRange]:
    """Roles of one name in several places of a cascade taken together, as the calls' metadata do."""
    found: dict[str, CallRange] = {}
    for role, of_role in calls.items():
        name = role.rpartition(".")[2]
        found[name] = found.get(name, exactly(0)) + of_role
    return found


def told(module: ModuleType, kind: str, settings: dict[str, Any]) -> dict[str, CallRange]:
    bound = module.build(**settings).bound_judge.bound
    each, once = module.protocol.calls(bound, kind, cannot), module.protocol.calls_once(bound, kind, cannot)
    return by_role({**each, **once})


def made(module: ModuleType, kind: str, settings: dict[str, Any], script: Script) -> Counter[str]:
    model = ScriptedModel(script=script)
    module.build(model=model, **settings).compile().invoke({"task": task(kind)})
    return Counter(call.metadata["role"] for call in model.calls)


@pytest.mark.parametrize(("name", "kind", "settings"), COUNTED)
def test_calls_lie_between_least_and_most_reached(name: str, kind: str, settings: dict[str, Any]) -> None:
    module = find_protocol(name)
    ranges = told(module, kind, settings)
    assert set(ranges) <= set(module.build(**settings).bound_judge.roles)
    least, most = (made(module, kind, settings, script) for script in (content_follower, worst_script))
    assert dict(least) == {role: calls.least for role, calls in ranges.items() if calls.least}
    assert dict(most) == {role: calls.most for role, calls in ranges.items() if calls.most}


def test_every_protocol_that_has_settings_of_its_own_is_counted_with_them(module: ModuleType) -> None:
    own = module.protocol.settings.model_fields.keys() - Settings.model_fields.keys()
    assert not own or len(SETTINGS[module.protocol.name]) > 1


@pytest.mark.parametrize(("gives", "end"), [(True, "least"), (False, "most")], ids=["gives them", "refuses"])
@pytest.mark.parametrize(
    ("name", "kind", "settings"),
    [("faireval", "compare", {}), ("geval", "score", {"samples": 3, "steps": ["Score."]})],
)
def test_the_calls_to_a_model_that_may_give_several_replies_or_log_probabilities(
    provider: Provider, name: str, kind: str, settings: Any, gives: bool, end: str
) -> None:
    refusal = Failure(400, "Unsupported parameter: 'n'", "n")
    pair = {"reasoning": "So.", "score_1": 8, "score_2": 4}
    score = Text("4", top=({"4": 1.0},)) if gives else Text("4")
    answer: Answer = pair if kind == "compare" else score
    provider.play(by=lambda request: refusal if request.body.get("n") and not gives else answer)
    graph = find_protocol(name).build(models={"*": OPENAI}, **settings).compile()
    calls = graph.invoke({"task": task(kind)})["verdict"]["calls"]
    ranges = find_protocol(name).protocol.calls(
        graph.builder.bound_judge.bound, kind, lambda role, what: True
    )
    assert calls == getattr(total(ranges.values()), end)


IN_FLIGHT: list[tuple[str, str, dict[str, Any], dict[str, int]]] = [
    ("chateval", "score", {"referees": 4, "strategy": "one_by_one"}, {"referee": 1}),
    ("chateval", "score", {"referees": 4, "strategy": "simultaneous"}, {"referee": 4}),
    ("chateval", "score", {"referees": 4, "strategy": "summarizer"}, {"referee": 4, "summarizer": 1}),
    ("chateval", "compare", {"referees": 4, "strategy": "one_by_one"}, {"referee": 2}),
    ("chateval", "compare", {"referees": 4, "strategy": "simultaneous"}, {"referee": 8}),
    ("ensemble", "score", {"referees": 5}, {"referee": 5}),
    ("ensemble", "compare", {"referees": 5}, {"referee": 10}),
    ("single", "compare", {}, {"scorer": 2}),
    ("more", "compare", {}, {"advocate": 6, "aggregator": 2, "judge": 1}),
    ("more", "compare", {"collaborate": True}, {"advocate": 2, "aggregator": 2, "judge": 1}),
    ("more", "compare", {"aggregate": "best"}, {"advocate": 6, "judge": 6}),
    ("samre", "compare", {}, {"advocate": 2, "judge": 1, "juror": 5}),
]


@pytest.mark.parametrize(("name", "kind", "settings", "most"), IN_FLIGHT)
@pytest.mark.parametrize("sync", [True, False])
def test_what_is_independent_runs_in_parallel(
    name: str, kind: str, settings: dict[str, Any], most: dict[str, int], sync: bool
) -> None:
    first = next(iter(most))
    model = InFlight(script=worst_script, expected=most[first])
    graph = find_protocol(name).build(models={"*": model}, **settings).compile()
    given = {"task": task(kind)}
    if sync:
        graph.invoke(given)
        # Of later steps nobody waits for the others, who are in threads of their own.
        assert model.most[first] == most[first]
    else:
        asyncio.run(graph.ainvoke(given))
        assert dict(model.most) == most


def test_the_readme_tells_the_same_number_of_calls(module: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{module.protocol.name}` \|.*\| (.*) \|$", readme, re.MULTILINE)
    if row is None:
        assert issubclass(module.protocol.settings, WrapperSettings)
        return
    numbers = set(map(int, re.findall(r"\d+", row[1])))
    for kind in module.protocol.kinds:
        calls = total(module.protocol.calls(module.build().bound_judge.bound, kind, cannot).values())
        assert {calls.least, calls.most} <= numbers


@pytest.mark.parametrize("name", sorted(n for n, m in protocols().items() if "compare" in m.protocol.kinds))
def test_swapped_answers_swap_the_verdict(name: str) -> None:
    graph = find_protocol(name).build(models={"*": ScriptedModel(script=content_follower)}).compile()
    swapped = {"answer_1": TASKS["compare"]["answer_2"], "answer_2": TASKS["compare"]["answer_1"]}
    straight = graph.invoke({"task": task("compare")})["verdict"]
    crossed = graph.invoke({"task": task("compare", **swapped)})["verdict"]
    assert (straight["winner"], crossed["winner"]) == ("1", "2")
    assert straight["scores"] == crossed["scores"][::-1]


@pytest.mark.parametrize(("name", "kind"), CASES)
@pytest.mark.parametrize("reply", ["", "Score: 11 out of 3 or 4"])
def test_an_unreadable_reply_is_an_error_and_no_score(name: str, kind: str, reply: str) -> None:
    model = ScriptedModel(script=lambda metadata, prompt: reply)
    graph = find_protocol(name).build(models={"*": model}, structured="off").compile()
    with pytest.raises(ReplyError) as caught:
        graph.invoke({"task": task(kind)})
    assert caught.value.reply == reply
    who = (caught.value.agent, caught.value.round)
    asked = [call for call in model.calls if (call.metadata["agent"], call.metadata["round"]) == who]
    again = [call for call in asked if call.metadata["repair"]]
    assert 1 <= len(again) <= len(asked) - len(again), "every question once more at most, in whatever order"


def test_bad_input_names_the_field_before_any_call(module: ModuleType) -> None:
    model = ScriptedModel(script=worst_script)
    graph = module.build(models={"*": model}).compile()
    kind = module.protocol.kinds[0]
    field = {"score": "candidate", "compare": "answer_1"}[kind]
    bad = {key: value for key, value in task(kind).items() if key != field}
    with pytest.raises(ValidationError, match=field):
        graph.invoke({"task": bad})
    assert model.calls == []


def test_a_role_or_a_setting_that_it_does_not_have_is_refused(module: ModuleType) -> None:
    with pytest.raises(UsageError, match=f"no role 'usher'; its roles are {module.protocol.roles[0]}"):
        module.build(models={"usher": "offline"})
    with pytest.raises(ValidationError, match="loudness"):
        module.build(loudness=11)
