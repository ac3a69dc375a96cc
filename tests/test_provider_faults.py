"""What goes wrong between us and a provider: keys, limits, broken connections, replies that cannot be used."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from jurygraph.graphs import debate
from jurygraph.state import ReplyError
from jurygraph.state.errors import ModelCallError
from langchain_core.language_models import BaseChatModel
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from .loopback import Answer, Broken, Failure, Hang, Provider, Raw, Reset, Text
from .loopback_debate import OPENAI, SCORE_TASK, google, run, speakers

PROVIDERS = ["openai", "google"]
GOOD: dict[str, Any] = {"reasoning": "Every claim holds.", "score": 4}
FINE: dict[str, Any] = {"feedback": "Nothing to add.", "no_issue": True}
CUT_OFF = Text('{"reasoning": "All claims hold, so the score', finish="length")
REFUSED = "I'm sorry, I cannot rate this text."


def name_of(kind: str, provider: Provider) -> str:
    return OPENAI if kind == "openai" else google(provider)


# Errors that stay


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "advice"), [(401, "check it"), (403, "no access to this model"), (404, "wrong base URL")]
)
def test_what_will_not_pass_is_tried_once(provider: Provider, kind: str, status: int, advice: str) -> None:
    provider.play(Failure(status, "Incorrect API key provided, or the like."))
    with pytest.raises(ModelCallError) as raised:
        run("async", models={"*": name_of(kind, provider)})
    assert "Incorrect API key provided" in str(raised.value)
    assert advice in str(raised.value)
    assert len(provider.requests) == 1


def test_a_critic_that_fails_is_named_with_its_round(provider: Provider) -> None:
    provider.play(
        GOOD, {"feedback": "Look again.", "no_issue": False}, GOOD, Failure(403, "Out of your reach.")
    )
    with pytest.raises(ModelCallError, match=r"^critic, round 2: openai:gpt-4o-mini: .*Out of your reach"):
        run("async", models={"*": OPENAI})
    assert speakers(provider) == ["scorer", "critic"] * 2


def test_a_sync_run_raises_the_same_error(provider: Provider) -> None:
    provider.play(Failure(401, "Incorrect API key provided."))
    with pytest.raises(ModelCallError, match=r"^scorer, round 0: .*Incorrect API key"):
        run("sync", models={"*": OPENAI})


NOT_JSON = Raw("<html><body>502 Bad Gateway</body></html>", "text/html")
ERROR_INSIDE = Raw('{"error": {"message": "upstream overloaded", "code": 502}}')


@pytest.mark.parametrize(
    ("answer", "words"), [(NOT_JSON, "Bad Gateway"), (ERROR_INSIDE, "upstream overloaded")]
)
def test_status_200_with_no_reply_in_it_is_not_a_reply(provider: Provider, answer: Raw, words: str) -> None:
    provider.play(answer)
    with pytest.raises(ModelCallError, match=words):
        run("async", models={"*": OPENAI})
    assert len(provider.requests) == 1


def test_gemini_html_with_status_200_is_not_a_reply(provider: Provider) -> None:
    provider.play(NOT_JSON)
    with pytest.raises(ModelCallError, match=r"^scorer, round 0: google_genai:gemini-2.0-flash: "):
        run("async", models={"*": google(provider)})
    assert len(provider.requests) == 1


# Errors that pass: the clients' own retries


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(provider: Provider, fast_retries: None, kind: str, status: int) -> None:
    passing = Failure(status, "Try again later.", headers={"Retry-After": "0"})
    provider.play(passing, passing, GOOD, passing, FINE)
    verdict, _ = run("async", models={"*": name_of(kind, provider)})
    assert speakers(provider) == ["scorer"] * 3 + ["critic"] * 2
    assert (verdict.score, verdict.calls, verdict.warnings) == (4, 2, ())


def test_openai_waits_for_as_long_as_it_is_told(provider: Provider, fast_retries: None) -> None:
    provider.play(Failure(429, "Slow down.", headers={"Retry-After": "0.3"}), GOOD, FINE)
    began = time.monotonic()
    run("async", models={"*": OPENAI})
    assert time.monotonic() - began >= 0.3
    assert len(provider.requests) == 3


@pytest.mark.parametrize(
    ("kind", "answer"), [("openai", Reset()), ("openai", Broken()), ("google", Reset())], ids=str
)
def test_a_broken_connection_is_tried_again(
    provider: Provider, fast_retries: None, kind: str, answer: Answer
) -> None:
    provider.play(answer, GOOD, answer, FINE)
    verdict, _ = run("async", models={"*": name_of(kind, provider)})
    assert speakers(provider) == ["scorer", "scorer", "critic", "critic"]
    assert verdict.score == 4


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_provider_that_stays_down_is_given_up(provider: Provider, fast_retries: None, kind: str) -> None:
    provider.play(by=lambda _: Failure(503, "The model is overloaded.", headers={"Retry-After": "0"}))
    with pytest.raises(ModelCallError, match="overloaded"):
        run("async", models={"*": name_of(kind, provider)})
    assert 5 <= len(provider.requests) <= 8


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_provider_that_never_answers(provider: Provider, kind: str) -> None:
    chat: BaseChatModel
    if kind == "openai":
        chat = ChatOpenAI(model="gpt-4o-mini", timeout=0.2, max_retries=0)
    else:
        chat = ChatGoogleGenerativeAI(
            model="gemini-2.0-flash", base_url=provider.url, timeout=0.2, max_retries=1
        )
    provider.play(Hang(30))
    with pytest.raises(ModelCallError, match=r"(?i)^scorer, round 0: .*time.?out"):
        run("sync", models={"*": chat})
    assert len(provider.requests) == 1


async def test_a_cancelled_run_is_cancelled_and_the_next_one_works(provider: Provider) -> None:
    graph = debate.build(models={"*": OPENAI}).compile()
    given: Any = {"task": SCORE_TASK}
    provider.play(Hang(30))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(graph.ainvoke(given), 0.5)
    provider.play(GOOD, FINE)
    assert (await graph.ainvoke(given))["verdict"]["score"] == 4


# Replies that cannot be used


@pytest.mark.parametrize("kind", PROVIDERS)
def test_a_cut_off_reply_is_never_read_as_whole(provider: Provider, kind: str) -> None:
    whole_looking = Text(fields={"reasoning": "So far so good", "score": 3}, finish="length")
    provider.play(whole_looking, CUT_OFF)
    with pytest.raises(ReplyError) as raised:
        run("async", models={"*": name_of(kind, provider)})
    error = raised.value
    assert (error.fault, error.reply, error.agent, error.round) == ("cut_off", CUT_OFF.text, "scorer", 0)
    assert len(provider.requests) == 2
    assert "cut off" in provider.requests[1].messages[-1][1]


def test_a_cut_off_text_is_never_read_as_whole(provider: Provider) -> None:
    provider.play(Text("Score: 3\nOn second thought", finish="length"), "Score: 2", "NO ISSUE")
    verdict, _ = run("async", models={"*": OPENAI}, structured="off")
    assert (verdict.score, verdict.calls) == (2, 3)


def test_a_cut_off_function_call_is_quoted(provider: Provider) -> None:
    broken = Text(fields={"reasoning": "Half", "score": 3}, finish="length")
    provider.play(broken, broken)
    with pytest.raises(ReplyError) as raised:
        run("async", models={"*": "openai:gpt-4"})
    assert raised.value.fault == "cut_off"
    assert raised.value.reply == '{"reasoning": "Half", "score": 3}'


@pytest.mark.parametrize(
    ("kind", "answer", "raw"),
    [
        ("openai", Text(refusal=REFUSED), REFUSED),
        ("openai", Text("Filtered", finish="blocked"), "Filtered"),
        ("openai", Text(REFUSED), REFUSED),
        ("google", Text(finish="blocked"), ""),
        ("google", Text(REFUSED), REFUSED),
    ],
    ids=str,
)
def test_a_refusal(provider: Provider, kind: str, answer: Text, raw: str) -> None:
    provider.play(answer, answer)
    with pytest.raises(ReplyError) as raised:
        run("async", models={"*": name_of(kind, provider)})
    assert (raised.value.fault, raised.value.reply) == ("refused", raw)
    assert len(provider.requests) == 2


def test_a_prompt_that_gemini_blocks_is_a_refusal(provider: Provider) -> None:
    blocked = Raw('{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}')
    provider.play(blocked, blocked)
    with pytest.raises(ReplyError) as raised:
        run("async", models={"*": google(provider)})
    assert raised.value.fault == "refused"


@pytest.mark.parametrize("kind", PROVIDERS)
def test_an_empty_reply_is_asked_for_again(provider: Provider, kind: str) -> None:
    provider.play(Text(""), GOOD, FINE)
    verdict, _ = run("async", models={"*": name_of(kind, provider)})
    assert (verdict.score, verdict.calls) == (4, 3)
    assert "empty" in provider.requests[1].messages[-1][1]


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("structured", ["auto", "off"])
def test_an_off_scale_score_is_quoted_back(provider: Provider, kind: str, structured: str) -> None:
    text = structured == "off"
    off_scale: Answer = "Splendid.\nScore: 9" if text else {"reasoning": "Splendid.", "score": 9}
    provider.play(off_scale, "Score: 5" if text else {**GOOD, "score": 5}, "NO ISSUE" if text else FINE)
    verdict, transcript = run("async", models={"*": name_of(kind, provider)}, structured=structured)
    again = provider.requests[1].messages
    assert [role for role, _ in again] == ["system", "user", "assistant", "user"]
    assert again[:2] == provider.requests[0].messages
    assert "Splendid." in again[2][1]
    assert "9" in again[3][1]
    assert "off the scale 1 to 5" in again[3][1]
    turn = transcript[1]
    assert (turn["value"], turn["calls"], turn["input_tokens"], turn["output_tokens"]) == (5, 2, 200, 40)
    assert verdict.calls == 3
    assert verdict.warnings == ("scorer, round 0: the reply was asked for again 1 time(s)",)


def test_a_score_in_words_that_is_off_scale_carries_the_whole_reply(provider: Provider) -> None:
    provider.play({"reasoning": "Splendid.", "score": "9"})
    with pytest.raises(ReplyError) as raised:
        run("async", models={"*": OPENAI}, repair=0)
    assert raised.value.fault == "off_scale"
    assert raised.value.reply == '{"reasoning": "Splendid.", "score": "9"}'


def test_a_critics_unusable_reply_names_critic_and_round(provider: Provider) -> None:
    provider.play(GOOD, {"verdict": "fine"}, {"verdict": "fine"})
    with pytest.raises(ReplyError, match=r"^critic, round 1: ") as raised:
        run("async", models={"*": OPENAI})
    assert (raised.value.agent, raised.value.round, raised.value.fault) == ("critic", 1, "missing")


@pytest.mark.parametrize("repair", [0, 1, 2])
def test_how_often_a_reply_is_asked_for_again(provider: Provider, repair: int) -> None:
    provider.play(*["no number here"] * 4)
    with pytest.raises(ReplyError, match="states no score"):
        run("async", models={"*": OPENAI}, repair=repair)
    assert len(provider.requests) == repair + 1


def test_the_second_repair_counts_too(provider: Provider) -> None:
    provider.play("no number here", {**GOOD, "score": 8}, GOOD, FINE)
    verdict, transcript = run("async", models={"*": OPENAI}, repair=2)
    assert (transcript[1]["value"], transcript[1]["calls"], verdict.calls) == (4, 3, 4)
    assert len(provider.requests[2].messages) == 6


def test_a_function_call_is_repaired_in_words_the_provider_takes(provider: Provider) -> None:
    provider.play({"reasoning": "Splendid.", "score": 9}, GOOD, FINE)
    verdict, _ = run("async", models={"*": "openai:gpt-4"})
    assert provider.requests[1].messages[2] == ("assistant", '{"reasoning": "Splendid.", "score": 9}')
    assert (verdict.score, verdict.calls) == (4, 3)
