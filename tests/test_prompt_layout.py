"""What an item's prompts have in common comes first, word for word; what is an agent's own comes last, and is short."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin

import pytest
from jurygraph.graphs.registry import find_protocol, protocols
from jurygraph.state.settings import BACKGROUNDS, RefereeSettings, WrapperSettings
from jurygraph.state.settings.referee_settings import ROLES, SAME

Settings = dict[str, Any]

SHARE_MUST, LONGEST_INSTRUCTION = 0.70, 900

SEVERAL_ROUNDS: dict[str, Settings] = {"more": {"rounds": 2}}
"""Agents are told more from the second round on, and the defaults of these protocols hold one."""

NEEDS_MORE = ("human", "logprobs")
"""Values that take a person, or a provider of token log-probabilities."""


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The benchmark, which is a script and no part of the package."""
    path = Path(__file__).parents[1] / "benchmarks" / "prompts.py"
    if not path.is_file():
        pytest.skip("benchmarks/ is not beside tests/")
    spec = importlib.util.spec_from_file_location("prompts_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def choices(annotation: Any) -> tuple[Any, ...]:
    """The values that a setting can have, where they can be listed."""
    if annotation is bool:
        return (True, False)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def variants(name: str) -> Iterator[Settings]:
    """A protocol's defaults, every value of every setting that has a list of them, and every role."""
    cls = find_protocol(name).protocol.settings
    several = SEVERAL_ROUNDS.get(name, {})
    yield several
    for key, field in cls.model_fields.items():
        for value in choices(field.annotation):
            if value not in NEEDS_MORE:
                yield {**several, key: value}
    if issubclass(cls, RefereeSettings):
        yield from ({"roles": [role], "referees": 1} for role in ROLES)
        yield {"roles": SAME, "referees": 12}
    if "persona" in cls.model_fields:
        for persona in choices(cls.model_fields["persona"].annotation):
            yield {"persona": persona, "commander": "llm", "tie_breaker": True}


CASES = [
    (name, kind)
    for name, module in protocols().items()
    if not issubclass(module.protocol.settings, WrapperSettings)  # their judges do not hear each other
    for kind in module.protocol.kinds
]


def test_the_common_prefix_is_counted(bench: ModuleType) -> None:
    others = {"abxd": 2, "abcd": 4, "abcde": 4, "x": 0, "": 0}
    assert {other: bench.common_prefix("abcd", other) for other in others} == others
    assert bench.repeated("abcd", ["ax", "abx", "b"]) == 2
    assert bench.repeated("abcd", []) == 0


def test_texts_have_3000_characters_in_all(bench: ModuleType) -> None:
    score, compare = (bench.tasks(kind)["item"] for kind in ("score", "compare"))
    assert len(score["source"]) + len(score["candidate"]) == 3000
    assert len(compare["question"]) + len(compare["answer_1"]) + len(compare["answer_2"]) == 3000


def test_later_calls_mostly_repeat_what_was_sent(bench: ModuleType) -> None:
    layouts = [bench.measure(case) for case in bench.cases() if case.bar]
    short = {layout.case.protocol: layout.later for layout in layouts if layout.later < SHARE_MUST}
    assert short == {}
    calls = {(layout.case.protocol, layout.case.kind): layout.calls for layout in layouts}
    assert calls == {
        ("debate", "score"): 2 * 4 + 1,
        ("debate", "compare"): 2 * 4 + 1,
        ("chateval", "score"): 3 * 2,
        ("chateval", "compare"): 2 * 3 * 2,
        ("samre", "compare"): 3 * 3 + 5,
        ("more", "compare"): 2 * 3 + 2 + 1,
    }


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_agents_own_instruction_is_short_whatever_the_settings(
    bench: ModuleType, name: str, kind: str
) -> None:
    task = bench.tasks(kind)["item"]
    for settings in variants(name):
        for sent in bench.record(name, task, **settings).sent:
            assert 0 < sent.instruction <= LONGEST_INSTRUCTION, (settings, sent.agent, sent.own)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_all_agents_are_shown_the_same_before_what_is_their_own(
    bench: ModuleType, name: str, kind: str
) -> None:
    task, settings = bench.tasks(kind)["item"], dict(SEVERAL_ROUNDS.get(name, {}))
    if "position_calibration" in find_protocol(name).protocol.settings.model_fields:
        settings["position_calibration"] = False
    shown = sorted((sent.shared for sent in bench.record(name, task, **settings).sent), key=len)
    material = shown[0]
    assert all(shared.startswith(material) for shared in shown)
    # G-Eval's planner writes steps for any text, and is shown none.
    assert name == "geval" or all(task[key] in material for key in task if key not in ("kind", "aspect"))


@pytest.mark.parametrize(
    ("name", "kind"), [case for case in CASES if case[0] in ("debate", "multiagent", "chateval")]
)
def test_the_log_of_a_debate_only_grows(bench: ModuleType, name: str, kind: str) -> None:
    settings = {"position_calibration": False} if name == "chateval" else {"tie_breaker": True}
    shown = [sent.shared for sent in bench.record(name, bench.tasks(kind)["item"], **settings).sent]
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))


def test_the_figures_are_the_same_in_every_run(bench: ModuleType) -> None:
    for case in bench.cases(["more"]):
        assert bench.measure(case) == bench.measure(case)


def test_jurors_of_any_background_are_told_little(bench: ModuleType) -> None:
    settings = {"jurors": 2 * len(BACKGROUNDS), "max_rounds": 1, "ballot": "score"}
    sent = bench.record("samre", bench.tasks("compare")["item"], **settings).sent
    assert max(call.instruction for call in sent if call.agent.startswith("juror")) <= 500
