"""Test the contract of every protocol, metric and dataset that comes with the package.

The registries name the protocols and datasets, so the next one is tested too. The tests themselves
are in ``jurygraph.testing``, where authors of other packages find them too.
"""

import asyncio
import re
from typing import Any, ClassVar

import pytest
from jurygraph.eval.datasets.catalog import SOURCES
from jurygraph.eval.metrics import METRICS
from jurygraph.graphs.engine.registry import find_protocol, protocols
from jurygraph.state.protocol_facts import BUNDLED, ProtocolFacts
from jurygraph.state.protocols import total
from jurygraph.state.settings import WrapperSettings
from jurygraph.testing import DatasetContract, MetricContract, ProtocolContract
from jurygraph.testing.scripted_judges import objecting_reply

from .loopback import Answer, Failure, Provider, Text
from .loopback_debate import OPENAI
from .sample_data import TASKS, TASKS_OF
from .source_tree import ROOT
from .virtual_time import InFlight

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "debate": [
        {},
        {"n": 1},
        {"n": 2, "tie_breaker": True},
        {"n": 2, "commander": "llm"},
        {"n": "auto"},
    ],
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
    "ensemble": [
        {},
        {"referees": 5, "position_calibration": False},
        {"roles": ["critic", "teacher"]},
        {"referees": 5, "stop": "decided"},
    ],
    "geval": [
        {},
        {"weighting": "sampling", "samples": 1},
        {"samples": 3, "steps": ["Give a score."]},
    ],
    "checklist": [{}, {"group": "all"}, {"group": 2}],
    "faireval": [{}, {"k": 1}, {"k": 4, "position_calibration": False}],
    "more": [
        {},
        {"aggregate": "concat", "advocates": 2},
        {"aggregate": "best", "rounds": 2},
        {"rounds": 3, "collaborate": True},
    ],
    "samre": [
        {},
        {"jurors": 0},
        {"max_rounds": 3, "memory": "summary", "jurors": 2},
        {"max_rounds": 1},
        {"stop": "decided", "ballot": "score"},
        {"cross_examine": True, "jurors": 1},
        {"stop": ["decided"], "ballot": "score", "jurors": 4},
    ],
    "baseline": [{}],
    "calibrated": [
        {},
        {"of": "samre", "inner": {"jurors": 1}},
        {"of": "chateval", "inner": {"turns": 1}},
    ],
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
"""Settings of each protocol that change the number of calls."""


def add_class(name: str, contract: type, **attributes: Any) -> None:
    """Add a class of tests to this file, such as ``TestDebate``, where pytest finds it."""
    called = f"Test{name.title().replace('_', '').replace('-', '')}"
    globals()[called] = type(called, (contract,), {**attributes, "__module__": __name__})


for _name, _module in protocols().items():
    _attributes = {"protocol": _module, "settings": SETTINGS.get(_name, [{}])}
    add_class(_name, ProtocolContract, **_attributes, tasks={**TASKS, **TASKS_OF.get(_name, {})})

for _name, _source in SOURCES.items():
    # The other datasets are downloaded.
    if not _source.is_published:
        add_class(_name, DatasetContract, dataset=_source)


class TestRougeL(MetricContract):
    metric = METRICS["rouge-l"]
    parameters: ClassVar = {"words": "any"}


class TestBleu4(MetricContract):
    metric = METRICS["bleu-4"]
    parameters: ClassVar = {"tokenize": "zh"}


@pytest.mark.parametrize(
    ("gives", "end"), [(True, "least"), (False, "most")], ids=["gives them", "refuses"]
)
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
    calls = graph.invoke({"task": TASKS[kind]})["verdict"]["calls"]
    ranges = find_protocol(name).protocol.calls(
        graph.builder.bound_judge.bound, kind, lambda role, what: True
    )
    assert calls == getattr(total(ranges.values()), end)


IN_FLIGHT: list[tuple[str, str, dict[str, Any], dict[str, int]]] = [
    ("chateval", "score", {"referees": 4, "strategy": "one_by_one"}, {"referee": 1}),
    ("chateval", "score", {"referees": 4, "strategy": "simultaneous"}, {"referee": 4}),
    (
        "chateval",
        "score",
        {"referees": 4, "strategy": "summarizer"},
        {"referee": 4, "summarizer": 1},
    ),
    ("chateval", "compare", {"referees": 4, "strategy": "one_by_one"}, {"referee": 2}),
    ("chateval", "compare", {"referees": 4, "strategy": "simultaneous"}, {"referee": 8}),
    ("ensemble", "score", {"referees": 5}, {"referee": 5}),
    ("ensemble", "compare", {"referees": 5}, {"referee": 10}),
    ("single", "compare", {}, {"scorer": 2}),
    ("more", "score", {}, {"advocate": 6, "aggregator": 2, "judge": 1}),
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
    model = InFlight(script=objecting_reply, expected=most[first])
    graph = find_protocol(name).build(models={"*": model}, **settings).compile()
    given = {"task": TASKS[kind]}
    if sync:
        graph.invoke(given)
        # No later step waits for the others, which run in threads.
        assert model.most[first] == most[first]
    else:
        asyncio.run(graph.ainvoke(given))
        assert dict(model.most) == most


@pytest.mark.parametrize("name", sorted(protocols()))
def test_the_readme_tells_the_same_number_of_calls(name: str) -> None:
    module = find_protocol(name)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{module.protocol.name}` \|.*\| (.*) \|$", readme, re.MULTILINE)
    if row is None:
        assert issubclass(module.protocol.settings, WrapperSettings)
        return
    numbers = set(map(int, re.findall(r"\d+", row[1])))
    for kind in module.protocol.kinds:
        calls = total(
            module.protocol.calls(module.build().bound_judge.bound, kind, lambda *_: False).values()
        )
        assert {calls.least, calls.most} <= numbers


def test_readers_of_runs_know_every_bundled_protocol_as_its_record_does() -> None:
    known = protocols().items()
    bundled = {
        name: module.protocol
        for name, module in known
        if module.__name__.startswith("jurygraph.graphs.")
    }
    facts = {
        name: ProtocolFacts(
            role_kinds=record.role_kinds,
            ensemble=record.ensemble,
            is_baseline=record.is_baseline,
            score_gaps=record.score_gaps,
        )
        for name, record in bundled.items()
    }
    assert list(facts) == list(BUNDLED)
    assert facts == dict(BUNDLED)
