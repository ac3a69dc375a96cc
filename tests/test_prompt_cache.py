"""What Claude is told to cache: the beginning that an item's later calls repeat, and nothing of it for anybody else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from jurygraph.graphs import debate, single
from jurygraph.nodes.delimiters import fence
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Call, fingerprint
from jurygraph.nodes.models.responses import read_response
from jurygraph.nodes.models.send import attempt
from jurygraph.state import Verdict
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from .loopback_debate import SCORE_TASK
from .loopback_dialects import DIALECTS, REFUSALS, Asked, Dialect, Refusal, Said, close, serving
from .test_prompt_layout import bench as bench  # noqa: PLC0414

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
    """What a provider is asked; it refuses the first requests in these words."""
    left = list(refusals)
    with serving(dialect, lambda _: left.pop(0) if left else Said(fields={"score": 4})) as server:
        chat = dialect.chat(server.url)
        try:
            asyncio.run(attempt(Call(resolver.wrap(chat), MESSAGES, repeated=ends, **{**PLAIN, **more})))
        finally:
            close(chat)
        return server.asked


PLAIN: dict[str, Any] = {"schema": None, "metadata": {}}


def blocks(asked: Asked) -> list[dict[str, Any]]:
    return list(asked.body["messages"][0]["content"])


@pytest.mark.parametrize("name", DIALECTS)
def test_only_claude_is_sent_marks(name: str) -> None:
    plain, marked = sent(DIALECTS[name], ())[0].body, sent(DIALECTS[name], ENDS)[0].body
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
    ("bedrock", 403, "You invoked an unsupported model or your request did not allow prompt caching."),
    ("bedrock", 400, "Malformed input request: #/messages/0: extraneous key [cachePoint] is not permitted"),
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


# Agents who are asked side by side read nothing of each other: what MORE's six advocates share is written six times.
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
    for details in ({"cache_creation": 500}, {"cache_creation": 0, "ephemeral_5m_input_tokens": 500}):
        usage["input_token_details"] = {"cache_read": 200, **details}
        counted = read_response([AIMessage("Fine.", usage_metadata=usage)], label, 0.0).usage
        assert (counted.input_tokens, counted.cached_input_tokens) == (1000, 200)
        assert counted.cost_usd == pytest.approx((300 * 3 + 200 * 0.3 + 500 * 3.75 + 10 * 15) / 1e6)
