"""Test that the shared part of an item's prompts comes first, and the short own part last.

Prompts mention other agents only if there are any. With ``layout=papers``, an agent's role is in
the system message.
"""

import asyncio
import importlib
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin
from unittest import mock

import pytest
from jurygraph.graphs.engine.registry import find_protocol, protocols
from jurygraph.nodes.common.delimiters import fence, fenced_sections
from jurygraph.nodes.models.call import Call, Reply, Send
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.models.send import CallMiddleware, call_middleware
from jurygraph.nodes.runtime.prompt_context import Prompt
from jurygraph.state.settings import DebateSettings, Layout, RefereeSettings, WrapperSettings
from jurygraph.state.settings.protocol_settings import ROLES, SAME
from jurygraph.state.transcript import Turn

from .source_tree import ROOT, imported

Settings = dict[str, Any]

SHARE_MUST = 0.70
LONGEST_INSTRUCTION = 900

SEVERAL_ROUNDS: dict[str, Settings] = {"more": {"rounds": 2}}
"""Agents get more text from the second round on; these protocols have one by default."""

UNSWAPPED: Settings = {"position_calibration": False}

NEEDS_MORE = ("human", "logprobs", "weighted")
"""Values that take a person, a provider of token log-probabilities, or another setting."""


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    yield imported("benchmarks/prompts.py")
    heard.cache_clear()


def choices(annotation: Any) -> tuple[Any, ...]:
    """Return the values of a setting, if they can be listed."""
    if annotation is bool:
        return (True, False)
    if get_origin(annotation) in (Union, UnionType):
        return tuple(value for part in get_args(annotation) for value in choices(part))
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def variants(name: str) -> Iterator[Settings]:
    """Yield the defaults, every other value of each listable setting, and every role."""
    cls = find_protocol(name).protocol.settings
    several = SEVERAL_ROUNDS.get(name, {})
    yield several
    for key, setting in cls.model_fields.items():
        # Without fences, it cannot be told from a prompt who is heard (test_bare_texts).
        for value in choices(setting.annotation) if key != "fences" else ():
            if value not in NEEDS_MORE and value != several.get(key, setting.default):
                yield {**several, key: value}
    if issubclass(cls, RefereeSettings):
        yield from ({"roles": [role], "referees": 1} for role in ROLES)
        yield {"roles": SAME, "referees": 12}
    if name == "chateval":
        yield {"referees": 1, "strategy": "summarizer"}
    if "persona" in cls.model_fields:
        for persona in choices(cls.model_fields["persona"].annotation):
            yield {"persona": persona, "commander": "llm", "tie_breaker": True}


CASES = [
    (name, kind)
    for name, module in protocols().items()
    if not issubclass(
        module.protocol.settings, WrapperSettings
    )  # their judges do not hear each other
    for kind in module.protocol.kinds
]


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
        ("more", "score"): 2 * 3 + 2 + 1,
        ("more", "compare"): 2 * 3 + 2 + 1,
    }
    courts: list[tuple[str, Settings]] = [("samre", {"memory": "summary"}), ("more", {"rounds": 2})]
    courts += [("more", {"aggregate": aggregate}) for aggregate in ("concat", "best")]
    for name, settings in courts:
        recording = bench.record(name, bench.tasks("compare")["item"], **settings)
        assert bench.later_share(recording) >= SHARE_MUST, (name, settings)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_all_agents_are_shown_the_same_before_their_own_part(
    bench: ModuleType, name: str, kind: str
) -> None:
    task = bench.item_for(name, kind)
    known = find_protocol(name).protocol.settings.model_fields
    settings = SEVERAL_ROUNDS.get(name, {}) | (
        UNSWAPPED if UNSWAPPED.keys() <= known.keys() else {}
    )
    shown = sorted((sent.shared for sent in bench.record(name, task, **settings).sent), key=len)
    if name == "commit_first":
        # A committer sees the question only.
        shown = shown[1:]
    material = shown[0]
    assert all(shared.startswith(material) for shared in shown)
    # G-Eval's planner writes steps for any text, and is shown none.
    assert name == "geval" or all(
        task[key] in material for key in task if key not in ("kind", "aspect")
    )


@pytest.mark.parametrize("kind", ["score", "compare"])
def test_the_log_of_a_debate_only_grows(bench: ModuleType, kind: str) -> None:
    ended = {"tie_breaker": True}
    for name, settings in (("debate", ended), ("multiagent", ended), ("chateval", UNSWAPPED)):
        shown = [
            sent.shared for sent in bench.record(name, bench.tasks(kind)["item"], **settings).sent
        ]
        assert all(later.startswith(earlier) for earlier, later in pairwise(shown))


@dataclass(frozen=True)
class Told:
    """The prompts of one call: both messages, a repair request with the schema, and their source.

    ``asks``: the request for a form of the reply; ``persona``: the agent's persona.
    """

    agent: str
    order: int
    form: str
    persona: str
    system: str
    user: str
    rest: str
    prompt: Prompt
    asks: str

    def own_words(self) -> str:
        """All of it but the fenced texts and the name of the agent's persona."""
        words = _FENCED.sub("", "\n".join((self.system, self.user, self.rest)))
        for title in filter(None, (self.persona, self.persona.replace("_", " ").title())):
            words = words.replace(title, "")
        return words

    def instruction(self) -> int:
        """Characters of the agent's own part, without words of others and the form of the reply."""
        own = self.user[len(self.prompt.shared) :].strip()
        return (
            len(own)
            - len(self.asks)
            - sum(len(fence(*section)) for section in fenced_sections(own))
        )

    def papers(self) -> tuple[str, str]:
        """Both messages as ``layout=papers`` lays them out."""
        return self.prompt.messages(self.asks, "papers")


_FENCED = re.compile(
    r"^<<<([^<>\n]+) ([0-9a-f]{12})>>>\n.*?^<<<end \1 \2>>>$", re.DOTALL | re.MULTILINE
)

OTHERS = re.compile(
    r"\b(?:others|agents?|referees|judges|jurors?|jury|advocates?|aggregators?|opponents?|colleagues?|mates?|teams?|"
    r"panel|group|scorer|critic|commander|tie-?breaker|summari[sz]er|discuss\w*|debat\w*|"
    r"(?:other|two|both) (?:one|judge|side)s?)\b",
    re.IGNORECASE,
)
"""Words that mention other judges."""


@dataclass
class Listener(CallMiddleware):
    """Records the prompts of agents and their turns; ``prompts`` is the source of messages."""

    prompts: dict[tuple[str, str], tuple[Prompt, str]] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)

    def by_agent(self) -> list[Told]:
        """Return the prompts agent by agent; the order within one step is not fixed."""
        return sorted(self.told, key=lambda told: (told.agent, told.order))

    async def __call__(self, call: Call, send: Send) -> Reply:
        system, user, *rest = (
            str(message.text) for message in call.messages if message.type != "ai"
        )
        about = call.metadata
        whole_rest = "\n".join([*rest, json.dumps(call.schema or "")])
        place = about["agent"], about.get("order", 1), about["form"], str(about.get("persona", ""))
        self.told.append(Told(*place, system, user, whole_rest, *self.prompts[system, user]))
        return await send(call)

    def anybody_is_heard(self) -> bool:
        """Return whether any agent sees another agent's words."""
        return any(
            turn["content"] in section.text
            for told in self.told
            for section in fenced_sections(told.user)
            for turn in self.turns
            if turn["agent"] != told.agent
        )


def listen(module: ModuleType, bench: ModuleType, kind: str, **settings: Any) -> Listener:
    """Judge an item with replies that must be requested again wherever a value is wanted."""

    def reply(metadata: Any, prompt: str) -> Any:
        if not metadata["repair"] and metadata["form"] not in ("text", "critique"):
            return "Well."
        said = bench.reply(metadata, prompt)
        return {**said, "grade": said["score"]} if isinstance(said, dict) else said

    listener = Listener()
    laid_out = Prompt.messages

    async def judge() -> None:
        call_middleware.set(listener)
        graph = module.build(models={"*": ScriptedModel(script=reply)}, **settings).compile()
        name = module.protocol.name
        task = bench.item_for(name, kind) if name in protocols() else bench.tasks(kind)["item"]
        listener.turns = (await graph.ainvoke({"task": task}))["transcript"]

    def messages(prompt: Prompt, form: str, layout: Layout) -> tuple[str, str]:
        both = laid_out(prompt, form, layout)
        listener.prompts[both] = prompt, form
        return both

    with mock.patch.object(Prompt, "messages", messages):
        asyncio.run(judge())
    return listener


@cache
def heard(name: str, bench: ModuleType, kind: str, **settings: Any) -> Listener:
    """As ``listen``, of a registered protocol, once for all tests."""
    return listen(find_protocol(name), bench, kind, **settings)


def check_what_agents_know_of_each_other(listener: Listener) -> None:
    """Prompts mention other agents exactly if some agent sees another's words."""
    several = listener.anybody_is_heard()
    for told in listener.told:
        named = OTHERS.findall(told.own_words())
        assert bool(named) is several, (told.agent, named, told.own_words())


def check_the_papers_layout(prefix: Listener) -> None:
    """The same words in another place: the role heads a system message that stays the same."""
    systems: dict[tuple[str, str], set[str]] = {}
    for told in prefix.told:
        system, user = told.papers()
        assert Counter(f"{system} {user}".split()) == Counter(f"{told.system} {told.user}".split())
        assert system.endswith(told.system)
        assert not re.search(r"^You are (?!given)", _FENCED.sub("", user), re.MULTILINE), user
        systems.setdefault((told.agent, told.form), set()).add(system)
    assert {key: len(texts) for key, texts in systems.items() if len(texts) > 1} == {}


def check_what_is_sent_in_the_papers_layout(prefix: Listener, papers: Listener) -> None:
    """A run with ``layout=papers`` sends what one without it would have sent in that layout."""
    assert [(told.agent, told.order, (told.system, told.user)) for told in papers.by_agent()] == [
        (told.agent, told.order, told.papers()) for told in prefix.by_agent()
    ]


ALONE = {"baseline", "checklist", "commit_first", "ensemble", "faireval", "geval", "single"}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_what_agents_are_told_whatever_the_settings(
    bench: ModuleType, name: str, kind: str
) -> None:
    """An own instruction is short, mentions other agents it hears, and its role can be moved.

    The own words include the longest form of a reply of this protocol, as JSON or as text.
    """
    listeners = [
        listen(find_protocol(name), bench, kind, **settings) for settings in variants(name)
    ]
    asks = max(len(told.asks) for listener in listeners for told in listener.told)
    for listener in listeners:
        assert all(0 < told.instruction() <= LONGEST_INSTRUCTION - asks for told in listener.told)
        check_what_agents_know_of_each_other(listener)
        check_the_papers_layout(listener)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_judges_are_alone_in_the_protocols_known_for_it(
    bench: ModuleType, name: str, kind: str
) -> None:
    listener = heard(name, bench, kind, **SEVERAL_ROUNDS.get(name, {}))
    assert listener.anybody_is_heard() is (name not in ALONE)
    assert ("several agents" in listener.told[0].system) is (name not in ALONE)
    # Only some values have to be asked for again, but some have: the requests for that are among
    # what is looked at.
    assert any("could not be used" in told.rest for told in listener.told)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_papers_layout_moves_the_role_and_nothing_else(
    bench: ModuleType, name: str, kind: str
) -> None:
    settings = SEVERAL_ROUNDS.get(name, {})
    papers = heard(name, bench, kind, **settings, layout="papers")
    check_what_is_sent_in_the_papers_layout(heard(name, bench, kind, **settings), papers)


@pytest.mark.parametrize("kind", ["score", "compare"])
def test_a_foreign_protocol_is_held_to_the_same(
    bench: ModuleType, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "plugin"))
    module = importlib.import_module("acme_judging.two_judges")
    pair = [listen(module, bench, kind, rounds=2, layout=layout) for layout in get_args(Layout)]
    for listener in pair:
        check_what_agents_know_of_each_other(listener)
    check_the_papers_layout(pair[0])
    check_what_is_sent_in_the_papers_layout(*pair)
    system = pair[1].told[0].system
    assert system.startswith("You are the optimist of two judges. Look for what is good first.\n")


SAID_ELSEWHERE: dict[str, list[Settings]] = {
    "debate": [
        {"persona": persona, "tie_breaker": True, "commander": "llm"}
        for persona in choices(DebateSettings.model_fields["persona"].annotation)
    ],
    "chateval": [{"referees": 5}, {"strategy": "summarizer"}, {"roles": SAME}, {"roles": "coding"}],
    "samre": [{"ballot": "score"}, {"memory": "summary"}],
    "more": [{"rounds": 2}, {"aggregate": "best"}, {"collaborate": True}],
}
"""Settings that add text to the agents' prompts."""


@pytest.mark.slow
def test_the_page_on_prompts_quotes_what_agents_are_told(bench: ModuleType) -> None:
    page = ROOT / "docs" / "prompts.md"
    if not page.is_file():
        pytest.skip("docs/ is not beside tests/")
    told = [
        "\n".join((one.system, one.user, one.rest))
        for name, kind in CASES
        for settings in ({"structured": "off"}, *SAID_ELSEWHERE.get(name, [{}]))
        for one in heard(name, bench, kind, **settings).told
    ]
    known = _numbers_aside("\n".join(told))
    quoted = [
        _numbers_aside(part).strip(" .,:")
        for row in re.findall(r"^\|.*\| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for quotation in re.findall(r'"([^"]+)"', row)
        for part in quotation.split("...")
    ]
    assert len(quoted) > 100
    assert [part for part in quoted if part not in known] == []


def _numbers_aside(text: str) -> str:
    return re.sub(r"\d+", "0", " ".join(text.split()))
