"""Test templates, bundled and from a user's folder, and the cache marks for Claude."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval.run.plan.plan import plan
from jurygraph.graphs import debate, single
from jurygraph.graphs.engine.options import RunSettings
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.nodes.common.delimiters import fence
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call, fingerprint
from jurygraph.nodes.models.responses import read_response
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.nodes.models.send import attempt
from jurygraph.nodes.runtime.courtroom import TotalSchema, TotalsSchema
from jurygraph.nodes.runtime.output_schemas import (
    CritiqueSchema,
    OutputSchema,
    PairSchema,
    RatingSchema,
    ScoreSchema,
    VoteSchema,
)
from jurygraph.nodes.runtime.prompt_context import Prompt, Prompts
from jurygraph.nodes.runtime.prompt_variables import given_to, unknown_placeholders
from jurygraph.state import ReplyError, UsageError, Verdict
from jurygraph.state.settings import DebateSettings
from jurygraph.state.tasks import EXAMPLES, RUBRIC_EXAMPLE, TaskKind
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from .loopback import Provider
from .loopback_debate import SCORE_TASK
from .loopback_dialects import DIALECTS, REFUSALS, Asked, Dialect, Refusal, Said, close, serving
from .processes import Command
from .test_prompt_layout import bench as bench  # noqa: PLC0414

TASK = {
    "kind": "score",
    "source": "Es regnete.",
    "candidate": "Es regnete nicht.",
    "aspect": "consistency",
}


def template(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return folder


def test_a_template_of_ones_own_replaces_its_namesake_alone_and_a_run_may_bring_more(
    tmp_path: Path,
) -> None:
    folder = template(
        tmp_path / "built", "debate/critic_strict", "Du bist der Kritiker. Widersprich!"
    )
    of_the_run = template(tmp_path / "run", "debate/scorer_first", "Du bewertest {{ wanted }}.")
    model = ScriptedModel(script={"scorer": ["Score: 1"] * 2, "critic": ["NO ISSUE"] * 2})
    graph = debate.build(models={"*": model}, structured="off", prompts=str(folder)).compile()
    graph.invoke({"task": TASK})
    graph.invoke({"task": TASK}, context={"prompts": str(of_the_run)})
    scorer, critic, scorer_of_the_run, _ = (call.prompt for call in model.calls)
    assert "You are the Scorer" in scorer
    assert "Du bist der Kritiker" in critic
    assert "devil's advocate" not in critic
    assert "Du bewertest one score for consistency." in scorer_of_the_run


def test_another_wording_has_another_digest(tmp_path: Path) -> None:
    folder = template(tmp_path, "debate/critic_plain", "Anders.")
    bundled = Prompts.bundled()
    own = Prompts.load(str(folder))
    # A user's folder is checked when it is loaded, and the bundled templates here.
    bundled.check(bundled.sources)
    assert bundled.digest("debate") != own.digest("debate")
    assert bundled.digest("shared") == own.digest("shared")


def test_a_bad_folder_or_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no \*.md file"):
        Prompts.load(str(tmp_path))
    with pytest.raises(UsageError, match="no such folder"):
        debate.build(prompts="promts")
    unknown = template(tmp_path / "unknown", "debate/critic_gentle", "x")
    broken = template(tmp_path / "broken", "debate/critic_plain", "{% if %}")
    for folder, fault in (
        (unknown, "no template is called debate/critic_gentle"),
        (broken, r"debate/critic_plain\.md, line 1"),
    ):
        with pytest.raises(UsageError, match=fault):
            debate.build(prompts=str(folder))
        with pytest.raises(UsageError, match=fault):
            find_protocol("repeated").build(inner={"prompts": str(folder)})
    prompts = Prompts.load(
        str(template(tmp_path / "own", "debate/scorer_first", "{{ wanted.mood }}"))
    )
    with pytest.raises(UsageError, match="has no attribute 'mood'; it is given wanted"):
        prompts.render("debate/scorer_first", wanted="one score")


def test_the_role_block_of_a_template_is_the_role_and_without_one_it_is_all_request(
    tmp_path: Path,
) -> None:
    own = Prompts.bundled().instruction("debate/scorer_first", wanted="one score")
    assert own.role == "You are the Scorer: work logically and step by step."
    assert own.request == "Go through the criteria, then settle on one score."
    assert own.text == f"{own.role} {own.request}"
    # A message that repeats the role stays as it is.
    assert own.after(own.role).request == f"{own.role}\n{own.request}"
    # An instruction that is all role leaves the message and the form.
    own = Prompts.bundled().instruction("debate/critic_plain").after("Check the score.")
    system, user = Prompt("Rules.", "Material.", own).messages("Form.", "papers")
    assert (system, user) == (f"{own.role}\n\nRules.", "Material.\n\nCheck the score.\nForm.")
    prompts = Prompts.load(str(template(tmp_path, "debate/critic_strict", "Du bist der Kritiker.")))
    own = prompts.instruction("debate/critic_strict")
    assert (own.role, own.request) == ("", "Du bist der Kritiker.")
    prompt = Prompt("Rules.", "Material.", own)
    assert prompt.messages("Form.", "papers") == prompt.messages("Form.", "shared_prefix")


FILLED_IN = {
    "score": "It holds.\n- consistency: 4",
    "steps": "1. Read it.\n2. Score it.",
    "critique": "NO ISSUE",
    "text": "Both are short.",
    "pair": "Evaluation evidence: both are short.\nThe score of assistant 1: 8\nThe score of assistant 2: 6",
}


@pytest.mark.parametrize(
    ("name", "kind", "order"),
    [
        ("debate", "score", ["You are the Scorer", "Your task", "Evaluation criteria", "Evaluation steps", "Example"]),
        ("geval", "score", ["Your task", "Evaluation criteria", "Evaluation steps", "Example", "- consistency:"]),
        ("single", "compare", ["[Question]", "[Assistant 1's", "[Assistant 2's", "[System]", "assistant 2:"]),
        ("chateval", "compare", ["[Question]", "[System]", "Other referees", "one of the referees", "It is your turn"]),
        ("faireval", "compare", ["[Question]", "[System]", "Give your evidence", "Evaluation evidence:"]),
        ("baseline", "compare", ["fair, impartial judge", "The question", "Answer 1", "Answer 2", "Final scores: ("]),
    ],
)  # fmt: skip
def test_the_papers_structure_is_a_set_of_templates(
    name: str, kind: TaskKind, order: list[str]
) -> None:
    seen: list[str] = []

    def reply(metadata: Mapping[str, Any], prompt: str) -> str:
        seen.append(prompt)
        return "Final scores: (95, 87)" if name == "baseline" else FILLED_IN[metadata["form"]]

    graph = find_protocol(name).build(
        models={"*": ScriptedModel(script=reply)}, structured="off", prompts="papers"
    )
    verdict = graph.compile().invoke({"task": EXAMPLES[kind]})["verdict"]
    # Judged in both orders, two answers have the mean of both.
    read = verdict["score"] if kind == "score" else sum(verdict["scores"])
    assert read == {"score": 4, "compare": 182 if name == "baseline" else 14}[kind]
    shown = seen[-1] if name in ("geval", "chateval") else seen[0]
    places = [shown.find(part) for part in order]
    assert -1 not in places
    assert places == sorted(places)


def test_the_papers_structure_shows_in_a_runs_signature() -> None:
    given: list[RunSettings] = [{}, {"prompts": "papers"}]
    plans = [plan("debate", "demo", limit=1, settings=settings) for settings in given]
    own, papers = (planned.manifest["signatures"]["debate"] for planned in plans)
    assert "papers" not in own
    assert "|layout:papers|" in papers and "|prompts:papers@" in papers
    assert "|structured:auto|" in own and "|structured:off|" in papers
    manifest = plans[1].manifest["protocols"]["debate"]
    assert (manifest["layout"], manifest["structured"]) == ("papers", "off")


PAPERS_FORM: dict[str, Any] = {
    **{
        name: field.default
        for name, field in DebateSettings.model_fields.items()
        if name != "models"
    },
    "prompts": "papers",
}
"""What a form sends in which the prompts alone were changed."""


@pytest.mark.parametrize(
    ("bound", "context", "structured", "layout"),
    [
        ({"prompts": "papers"}, None, "off", "papers"),
        ({"prompts": "papers", "structured": "auto"}, None, "auto", "papers"),
        ({"prompts": "papers", "layout": "shared_prefix"}, None, "off", "shared_prefix"),
        ({}, {"prompts": "papers"}, "off", "papers"),
        ({}, PAPERS_FORM, "off", "papers"),
        ({"n": 2}, PAPERS_FORM, "off", "papers"),
        ({"structured": "auto"}, {"prompts": "papers"}, "auto", "papers"),
        ({"structured": "auto"}, PAPERS_FORM, "auto", "papers"),
        ({"prompts": "papers"}, {"structured": "auto"}, "auto", "papers"),
        ({"prompts": "papers"}, {"prompts": None}, "auto", "shared_prefix"),
    ],
    ids=str,
)
def test_the_papers_structure_implies_text_unless_set(
    bound: Any, context: Any, structured: str, layout: str
) -> None:
    graph = debate.build(**bound)
    settings = graph.bound_judge.settings(context and DebateSettings.model_validate(context))
    assert (settings.structured, settings.layout) == (structured, layout)
    assert settings.n == bound.get("n", 4), "a form changes nothing else"


@pytest.mark.parametrize(
    "given", [{"prompts": "papers"}, {"inner": {"prompts": "papers"}}], ids=str
)
def test_the_papers_structure_reaches_a_judge_inside_a_wrapper(given: Any) -> None:
    asked: list[str] = []

    def reply(metadata: Mapping[str, Any], prompt: str) -> str:
        asked.append(prompt)
        return FILLED_IN[metadata["form"]]

    built = find_protocol("repeated").build(k=1, models={"*": ScriptedModel(script=reply)}, **given)
    assert built.compile().invoke({"task": EXAMPLES["score"]})["verdict"]["score"] == 4
    assert "JSON" not in "".join(asked)
    assert built.bound_judge.bound.inner["structured"] == "off"


LOG = f"The material.\n\nSo far:\n{fence('scorer', 'A.')}\n\n{fence('critic', 'B.')}"
USER = f"{LOG}\n\nYou are the Scorer."
MESSAGES = [SystemMessage("Rules."), HumanMessage(USER)]
SCHEMA: dict[str, Any] = {
    **{"title": "score_reply", "type": "object", "required": ["score"]},
    "properties": {"score": {"type": "number"}},
}
ENDS = (len("The material."), len(LOG))
pytestmark = pytest.mark.usefixtures("one_attempt")


def sent(dialect: Dialect, ends: tuple[int, ...], *refusals: Refusal, **more: Any) -> list[Asked]:
    """Return the provider's requests; it refuses the first ones with these words."""
    left = list(refusals)
    with serving(dialect, lambda _: left.pop(0) if left else Said(fields={"score": 4})) as server:
        chat = dialect.chat(server.url)
        try:
            asyncio.run(
                attempt(Call(resolver.wrap(chat), MESSAGES, repeated=ends, **{**PLAIN, **more}))
            )
        finally:
            close(chat)
        return server.asked


PLAIN: dict[str, Any] = {"schema": None, "metadata": {}}


def blocks(asked: Asked) -> list[dict[str, Any]]:
    return list(asked.body["messages"][0]["content"])


@pytest.mark.slow
@pytest.mark.parametrize("name", DIALECTS)
def test_only_claude_is_sent_marks(name: str) -> None:
    plain = sent(DIALECTS[name], ())[0].body
    marked = sent(DIALECTS[name], ENDS)[0].body
    assert (plain == marked) == (name not in ("anthropic", "bedrock"))


def test_each_turn_is_a_block_and_marks_end_what_is_repeated() -> None:
    found = blocks(sent(DIALECTS["anthropic"], ENDS)[0])
    assert "".join(block["text"] for block in found) == USER
    assert [block["text"].count("<<<end") for block in found] == [0, 1, 1, 0]
    assert [block.get("cache_control") for block in found] == [{"type": "ephemeral"}, None] * 2
    on_bedrock = blocks(sent(DIALECTS["bedrock"], ENDS)[0])
    assert [place for place, block in enumerate(on_bedrock) if "cachePoint" in block] == [1, 4]
    assert "".join(block.get("text", "") for block in on_bedrock) == USER


def test_marks_stay_in_place_where_the_system_message_is_folded_in_and_the_form_is_told() -> None:
    dialect = DIALECTS["anthropic"]
    refusals = (dialect.system_refusal, *REFUSALS["anthropic"].values())
    last = sent(dialect, ENDS, *refusals, schema=SCHEMA)[-1]
    assert not last.has_system
    texts = [block["text"] for block in blocks(last)]
    assert texts[0] == "Rules.\n\nThe material."
    assert texts[-1].startswith("\n\nYou are the Scorer.")
    assert '"score" (number)' in texts[-1]


REFUSED = [
    ("anthropic", 400, "messages.0.content.0.text.cache_control: Extra inputs are not permitted"),
    (
        "bedrock",
        403,
        "You invoked an unsupported model or your request did not allow prompt caching.",
    ),
    (
        "bedrock",
        400,
        "Malformed input request: #/messages/0: extraneous key [cachePoint] is not permitted",
    ),
]


@pytest.mark.parametrize(("name", "status", "words"), REFUSED)
def test_marks_that_are_refused_are_left_out(name: str, status: int, words: str) -> None:
    dialect = DIALECTS[name]
    first, second = sent(dialect, ENDS, Refusal(status, words))
    assert first.body != second.body == sent(dialect, ())[0].body


def test_a_call_is_the_same_with_and_without_marks() -> None:
    model = resolver.wrap(DIALECTS["anthropic"].chat("http://127.0.0.1:9"))
    without, with_marks = (Call(model, MESSAGES, repeated=ends, **PLAIN) for ends in ((), ENDS))
    assert fingerprint(without) == fingerprint(with_marks)


def test_a_discussion_is_marked_and_a_judge_who_is_alone_is_not() -> None:
    with serving(DIALECTS["anthropic"], lambda _: Said("No.\nScore: 4")) as server:
        chat = DIALECTS["anthropic"].chat(server.url)
        for protocol in (single, debate):
            graph = protocol.build(models={"*": chat}, structured="off").compile()
            assert Verdict.of(asyncio.run(graph.ainvoke({"task": SCORE_TASK}))).score == 4
        close(chat)
    alone, *discussed = ("cache_control" in str(asked.body) for asked in server.asked)
    assert not alone
    assert len(discussed) > 4
    assert all(discussed)


# Agents that are asked at once read nothing of each other: the text that MORE's six advocates share
# is written six times.
MUST = [("debate", "score", {"n": 4}, 0.70), ("chateval", "score", {"referees": 3, "turns": 2}, 0.70),
        ("samre", "compare", {"max_rounds": 3}, 0.70), ("more", "compare", {}, 0.30)]  # fmt: skip


@pytest.mark.parametrize(("protocol", "kind", "settings", "must"), MUST)
def test_what_is_marked_is_read_again(
    bench: Any, protocol: str, kind: str, settings: dict[str, Any], must: float
) -> None:
    recording = bench.record_claude(protocol, bench.tasks(kind)["item"], **settings)
    found = bench.claude_cache(recording)
    later = found[1:]
    assert sum(one.read for one in later) / sum(one.whole for one in later) >= must
    assert sum(one.cost for one in found) < sum(one.whole for one in found)


def test_what_is_written_to_the_cache_has_its_price() -> None:
    label = "anthropic:claude-sonnet-4-5"
    usage: Any = {"input_tokens": 1000, "output_tokens": 10, "total_tokens": 1010}
    for details in (
        {"cache_creation": 500},
        {"cache_creation": 0, "ephemeral_5m_input_tokens": 500},
    ):
        usage["input_token_details"] = {"cache_read": 200, **details}
        counted = read_response([AIMessage("Fine.", usage_metadata=usage)], label, 0.0).usage
        assert (counted.input_tokens, counted.cached_input_tokens) == (1000, 200)
        assert counted.cost_usd == pytest.approx((300 * 3 + 200 * 0.3 + 500 * 3.75 + 10 * 15) / 1e6)


# Placeholders

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *(
        (f"{name}", {})
        for name in ("debate", "chateval", "single", "ensemble", "geval", "faireval", "baseline")
    ),
    *(
        ("debate", {"persona": persona, "n": 1})
        for persona in ("moderate", "weak", "plain", "sophisticated")
    ),
    (
        "debate",
        {"persona": "You are a nurse who looks for harm.", "commander": "llm", "tie_breaker": True},
    ),
    ("chateval", {"strategy": "summarizer", "roles": "coding", "turns": 2}),
    ("chateval", {"roles": "knowledge", "turns": 1}),
    ("chateval", {"roles": "writing", "turns": 1}),
    ("chateval", {"referees": 5, "turns": 1}),
    ("ensemble", {"roles": "same"}),
    ("ensemble", {"roles": [{"name": "Nurse", "description": "You look after patients."}]}),
    ("ensemble", {"roles": "auto", "referees": 2}),
    ("more", {"rounds": 2}),
    ("more", {"aggregate": "best"}),
    ("samre", {"memory": "summary", "jurors": 2}),
    ("samre", {"ballot": "score", "jurors": 2}),
    ("samre", {"backgrounds": "auto", "jurors": 2, "cross_examine": True}),
    ("samre", {"backgrounds": "auto", "ballot": "score", "jurors": 2}),
    ("checklist", {"group": "all"}),
    ("commit_first", {}),
]


@pytest.fixture
def filled_in(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Map each template that is filled in during the test to its placeholders."""
    given: dict[str, set[str]] = {}
    fill = Prompts._fill

    def noted(self: Prompts, name: str, **values: Any) -> Any:
        given.setdefault(name, set()).update(values)
        return fill(self, name, **values)

    monkeypatch.setattr(Prompts, "_fill", noted)
    return given


@pytest.mark.slow
def test_the_placeholders_of_every_template_are_known(filled_in: dict[str, set[str]]) -> None:
    # A set of its own, so that no template has been filled in by an earlier test.
    fresh = Prompts(dict(Prompts.bundled().sources))
    for name, settings in VARIANTS:
        for kind in find_protocol(name).protocol.kinds:
            for structured in ("auto", "off"):
                graph = find_protocol(name).build(structured=structured, **settings)
                graph.bound_judge._prompts[None, "on"] = fresh
                example = RUBRIC_EXAMPLE if name == "checklist" else EXAMPLES[kind]
                graph.compile().invoke({"task": example})
    for name, values in filled_in.items():
        assert values == set(given_to(name) or ()), name
    bundled = Prompts.bundled()
    unseen = {name for name in bundled.sources if name not in filled_in}
    # Those of graphs that are no protocols, of agents with tools, and of replies and texts that these
    # runs do not have.
    folders = {"audit", "court", "debate", "refine", "shared", "tools"}
    assert {name.partition("/")[0] for name in unseen} <= folders, sorted(unseen)
    for name, source in bundled.sources.items():
        given = given_to(name)
        assert given is not None, name
        assert list(unknown_placeholders(bundled._jinja, source, given)) == [], name


@pytest.mark.parametrize(("name", "text", "told"), [
    ("shared/score_task", "Read:\n\n{{ candidat }}", r"line 3: .* no placeholder 'candidat'; did you mean candidate\?"),
    ("debate/scorer_first", "Give {{ wantd }}.", r"line 1: .* 'wantd'; did you mean wanted\?; it is given wanted"),
    ("debate/critic_strict", "{% if mood %}Be strict.{% endif %}", r"line 1: .* 'mood'; it is given none"),
    ("shared/log", "{% for t in turn %}{{ t.content }}{% endfor %}", r"'turn'; did you mean turns\?"),
])  # fmt: skip
def test_a_misspelt_placeholder_is_refused_before_the_first_call(
    provider: Provider, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch,
    name: str, text: str, told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    folder = template(tmp_path / "own", name, text)
    told = rf"{re.escape(name)}\.md, {told}" if told.startswith("line") else told
    with pytest.raises(UsageError, match=told):
        debate.build(prompts=str(folder))
    with pytest.raises(UsageError, match=told):
        debate.graph.invoke(
            {"task": TASK}, context={"prompts": str(folder), "models": {"*": "openai:gpt-4o-mini"}}
        )
    run = (
        "run",
        "single,debate",
        "--data",
        "demo",
        "--aspect",
        "consistency",
        "--model",
        "openai:gpt-4o-mini",
    )
    assert command(*run, "--set", f"prompts={folder}", "--out", "out") == 2
    assert re.search(told, command.errors)
    assert (
        command("run", "repeated", *run[2:], "--set", f"inner.prompts={folder}", "--out", "out")
        == 2
    )
    assert re.search(told, command.errors)
    assert provider.requests == []


def test_a_template_may_use_every_placeholder_and_names_of_its_own(tmp_path: Path) -> None:
    text = "{{ low }}"
    text += "{% set best = high %}{% for n in range(2) %}{{ n }}{% endfor %}"
    text += "{% if mood is defined %}{{ mood }}{% endif %}"
    folder = template(
        tmp_path, "shared/score_task", text + "{{ best }} {{ metric }} {{ fence('x', candidate) }}"
    )
    assert Prompts.load(str(folder))


@pytest.mark.parametrize(("name", "told"), [
    ("debate/critic_strickt", "no template is called debate/critic_strickt.md (did you mean debate/critic_strict.md?)"),
    ("debat/critic_strict", "no template is called debat/critic_strict.md (did you mean debate/critic_strict.md?)"),
    ("critic_strict", "no template is called critic_strict.md (did you mean debate/critic_strict.md?)"),
    ("notes/monday", "no template is called notes/monday.md; templates that"),
])  # fmt: skip
def test_a_file_that_replaces_no_template_is_named(tmp_path: Path, name: str, told: str) -> None:
    folder = template(tmp_path, "debate/critic_plain", "Anders.")
    template(tmp_path, name, "Anders.")
    with pytest.raises(UsageError, match=re.escape(told)):
        Prompts.load(str(folder))


def test_a_template_with_another_ending_is_named(tmp_path: Path) -> None:
    folder = template(tmp_path, "debate/critic_plain", "Anders.")
    (folder / "debate" / "critic_strict.txt").write_text("Anders.", encoding="utf-8")
    with pytest.raises(
        UsageError,
        match=r"debate/critic_strict\.txt is not read: the name of a template ends in \.md",
    ):
        Prompts.load(str(folder))
    (folder / "debate" / "critic_strict.txt").rename(folder / "debate" / "notes.txt")
    assert Prompts.load(str(folder))


FORMS: dict[str, tuple[OutputSchema, Any]] = {
    "score": (ScoreSchema(1, 5, "coherence"), 4.0),
    "rating": (RatingSchema(1, 5, "coherence"), 4.0),
    "pair": (PairSchema(1, 10), [4.0, 4.0]),
    "total": (TotalSchema(6, 120), 40.0),
    "totals": (TotalsSchema(6, 120), [40.0, 40.0]),
    "totals with feedback": (TotalsSchema(6, 120, feedback=True, explained=True), [40.0, 40.0]),
    "vote": (VoteSchema(), "2"),
    "critique": (CritiqueSchema(), True),
}


@pytest.mark.parametrize("alone", [False, True], ids=["reasons", "alone"])
@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("wording", ["bundled", "papers"])
def test_each_form_ends_by_asking_for_the_value_in_a_form_that_is_read(
    wording: str, kind: str, alone: bool
) -> None:
    form, value = FORMS[kind]
    prompts = Prompts.bundled() if wording == "bundled" else Prompts.load("papers")
    asked = prompts.form(form, structured=False, alone=alone).rstrip()
    last = asked.splitlines()[
        -2 if isinstance(form, PairSchema) and asked.endswith("2: <number>") else -1 :
    ]
    number = "2" if kind == "vote" else f"{value[0] if isinstance(value, list) else value:g}"
    # A literal placeholder is not a value.
    if "<" in last[-1]:
        with pytest.raises(ReplyError):
            form.read(f"Reasons.\n{asked}")
        reply = "\n".join(re.sub(r"<[^<>]*>", number, line) for line in last)
    else:
        reply = "NO ISSUE" if kind == "critique" else number
        assert reply in asked or "number" in asked
    for written in (
        reply,
        f"It is clear, with 3 slips.\n{reply}",
        f"**{reply}**" if "\n" not in reply else reply,
    ):
        assert form.read(written)[1] == value, written
    repair = prompts.render("shared/repair", problem="Why.", form=asked, cut_off=alone)
    assert repair.rstrip().endswith(asked)
