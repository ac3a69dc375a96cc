"""Test faults of providers: keys, limits, connections, unusable replies, and their errors."""

import asyncio
import copy
import http.client
import json
import pickle
import re
import socket
import ssl
from typing import Any

import aiohttp
import httpx
import pytest
import requests
from jurygraph.graphs import single
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import UnsupportedParameterError
from jurygraph.nodes.models.loaded_model import LoadedModel
from jurygraph.nodes.models.provider_errors import ProviderFault
from jurygraph.nodes.models.scripted_model import ScriptedModel
from jurygraph.state import (
    DataError,
    JurygraphError,
    ModelCallError,
    ReplyError,
    StoppedError,
    UsageError,
)
from jurygraph.state.errors import TransientCallError
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from .loopback import (
    Answer,
    Broken,
    Coded,
    Coding,
    Failure,
    Hang,
    Noise,
    Provider,
    Raw,
    Reset,
    Text,
)
from .loopback_debate import (
    OPENAI,
    PROVIDERS,
    SCORE_TASK,
    asked,
    chat_of,
    google,
    loaded,
    name_of,
    run,
    speakers,
)
from .processes import HANG_GUARD, reached

GOOD: dict[str, Any] = {"reasoning": "Every claim holds.", "score": 4}
FINE: dict[str, Any] = {"feedback": "Nothing to add.", "no_issue": True}


# One attempt, and whether to try again


async def failed(model: LoadedModel | str) -> ModelCallError:
    """How an attempt at a model, or at one of that name, fails."""
    with pytest.raises(ModelCallError) as raised:
        async with asyncio.timeout(HANG_GUARD):
            await asked(loaded(model) if isinstance(model, str) else model)
    return raised.value


HTML = Raw("<html><body>502 Bad Gateway</body></html>", "text/html")
CUT_JSON = Raw('{"id": "x", "choices": [{"message": {"content": "Sco')
PASSING: dict[str, tuple[Answer, str]] = {
    "reset": (Reset(), ""), "no HTTP": (Noise(), ""), "half a body": (Broken(), ""),
    "half of a body in chunks": (Broken(coding="chunked"), ""),
    "half of a compressed body": (Broken(coding="gzip"), ""), "HTML with status 200": (HTML, ""),
    "HTML with status 502": (Raw("<html>Bad Gateway</html>", "text/html", 502), "Bad Gateway"),
    "cut JSON that says it is whole": (CUT_JSON, ""), "garbage": (Raw("\x00\x01 nothing"), ""),
    "no body": (Raw(""), ""), "a list": (Raw("[]"), ""),
    "an error inside, by its number": (Raw('{"error": {"message": "Overloaded.", "code": 502}}'), ""),
    "request time-out": (Failure(408, "Too slow."), "Too slow"),
    "conflict": (Failure(409, "Locked."), "Locked"),
    "rate limit": (Failure(429, "Slow down."), "rate limit or quota"),
    "server error": (Failure(500, "Our fault."), "Our fault"),
    "overloaded": (Failure(503, "Overloaded."), "Overloaded"),
    "gateway time-out": (Failure(504, "Late."), "Late"),
    "status of nobody else's": (Failure(529, "Overloaded."), "Overloaded"),
    "OpenAI, no choices": (Raw('{"id": "x", "choices": []}'), "no choices"),
    "OpenAI, null for choices": (Raw('{"id": "x", "choices": null}'), "no choices"),
    "OpenAI, a choice without a message": (Raw('{"choices": [{"index": 0}]}'), "no message"),
    "OpenAI, an error inside, in words": (Raw('{"error": "upstream overloaded"}'), "upstream overloaded"),
    "OpenAI, an error by its kind": (Raw('{"error": {"message": "Oh.", "type": "server_error"}}'), "Oh"),
    "OpenAI, a status where nobody looks for a body": (Raw("", status=500), "500"),
}  # fmt: skip
STAYING: dict[str, tuple[Answer, str]] = {
    "bad request": (Failure(400, "Your prompt is too long.", "messages"), "prompt is too long"),
    "key": (Failure(401, "Incorrect API key."), "check it"),
    "no credit": (Failure(402, "No credit left."), "billing"),
    "access": (Failure(403, "Not for you."), "no access"),
    "model": (Failure(404, "No such model."), "wrong base URL"),
    "not processable": (Failure(422, "The schema is odd."), "schema is odd"),
    "content filter": (Failure(400, "Blocked by the filter.", code="content_filter"), "filter"),
    "OpenAI, spent": (
        Failure(429, "No quota.", code="insufficient_quota"),
        "waiting does not help",
    ),
    "OpenAI, an error inside": (
        Raw('{"error": {"message": "No.", "type": "invalid_request_error"}}'),
        "No",
    ),
}

CASES = [
    (kind, case)
    for case in (*PASSING, *STAYING)
    for kind in (["openai"] if case.startswith("OpenAI") else PROVIDERS)
]


@pytest.mark.parametrize(("kind", "case"), CASES)
async def test_what_may_pass_is_retryable_and_no_more(
    provider: Provider, kind: str, case: str
) -> None:
    answer, words = (PASSING | STAYING)[case]
    provider.play(answer)
    error = await failed(name_of(kind, provider))
    assert (error.retryable, error.rate_limited) == (case in PASSING, case == "rate limit"), str(
        error
    )
    assert words in str(error)
    assert str(error).startswith(f"scorer, round 0: {name_of(kind, provider).partition('?')[0]}: ")
    assert len(provider.requests) == 1


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_a_model_object_of_the_callers_own_is_understood_as_well(
    provider: Provider, kind: str
) -> None:
    misread = {}
    for case in (case for of, case in CASES if of == kind):
        provider.play((PASSING | STAYING)[case][0])
        async with chat_of(kind, provider) as chat:
            error = await failed(resolver.wrap(chat))
        if error.retryable != (case in PASSING):
            misread[case] = str(error)
    assert misread == {}


@pytest.mark.parametrize(
    "name",
    [f"{OPENAI}?base_url=http://{{}}/v1", "google_genai:gemini-2.0-flash?base_url=http://{}"],
)
async def test_nobody_there(provider: Provider, name: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{closed.getsockname()[1]}"
    error = await failed(name.format(host))
    assert error.retryable
    assert "127.0.0.1" in str(error)


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize("coding", ["chunked", "gzip"])
async def test_chunked_and_compressed_replies_are_read(
    provider: Provider, kind: str, coding: Coding
) -> None:
    provider.play(Coded("Score: 4", coding))
    reply = await asked(loaded(name_of(kind, provider)))
    assert (reply.text, reply.usage.input_tokens, reply.dropped) == ("Score: 4", 100, ())


async def test_a_reply_under_a_wrong_content_type_is_read(provider: Provider) -> None:
    body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Score: 4"}}]}
    provider.play(Raw(json.dumps(body), "text/plain"))
    reply = await asked(loaded())
    assert (reply.text, reply.usage.cost_usd) == ("Score: 4", None)


async def test_a_huge_body_is_given_up(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurygraph.nodes.models.openai_fast.LARGEST_BODY", 1_000_000)
    provider.play(Raw(" " * 3_000_000))
    assert "larger than 1000000 bytes" in str(await failed(OPENAI))


@pytest.mark.parametrize("kind", PROVIDERS)
@pytest.mark.parametrize(
    "answer", [Hang(3600), Broken(silent=3600)], ids=["hang", "half a body, then silence"]
)
async def test_a_call_that_hangs_can_be_given_up(
    provider: Provider, kind: str, answer: Answer
) -> None:
    model = loaded(name_of(kind, provider))
    provider.play(answer, "Score: 4")
    hanging = asyncio.create_task(asked(model))
    await reached(lambda: provider.requests, hanging)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    async with asyncio.timeout(HANG_GUARD):
        assert (await asked(model)).text == "Score: 4"


def refused(status: int = 429, **headers: str) -> Failure:
    return Failure(
        status, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


LATER = "Wed, 21 Oct 2015 07:28:30 GMT"
NOW = "Wed, 21 Oct 2015 07:28:00 GMT"
USED_UP: dict[str, Any] = {
    "x_ratelimit_remaining_requests": "12",
    "x_ratelimit_reset_requests": "1h",
}
USED_UP |= {"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "1m6.5s"}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7.5s"}
GEMINIS = {"error": {"code": 429, "message": "Slow down.", "details": [RETRY_INFO]}}
WAITS: dict[str, tuple[str, Answer, float | None]] = {
    "seconds": ("openai", refused(Retry_After="12"), 12),
    "parts of a second": ("openai", refused(503, Retry_After="0.25"), 0.25),
    "milliseconds count first": ("openai", refused(Retry_After_Ms="40", Retry_After="1"), 0.04),
    "a date, by the server's clock": ("openai", refused(Retry_After=LATER, Date=NOW), 30),
    "a date that is over": ("openai", refused(Retry_After=LATER), 0),
    "what is used up": ("openai", refused(**USED_UP), 66.5),
    "nothing": ("openai", refused(), None),
    "no number": ("openai", refused(Retry_After="soon"), None),
    "seconds, Gemini": ("google", refused(Retry_After="12"), 12),
    "RetryInfo, Gemini": ("google", Raw(json.dumps(GEMINIS), status=429), 7.5),
}


@pytest.mark.parametrize("case", WAITS)
async def test_when_a_provider_wants_to_be_asked_again(provider: Provider, case: str) -> None:
    kind, answer, wait = WAITS[case]
    provider.play(answer)
    assert (await failed(name_of(kind, provider))).retry_after == wait


@pytest.mark.parametrize(
    "error", [ValueError("odd"), KeyError("score"), TypeError("no"), ZeroDivisionError()]
)
async def test_a_fault_of_ones_own_is_not_tried_again(error: Exception) -> None:
    assert not (await failed(resolver.wrap(ScriptedModel(script={"scorer": [error]})))).retryable


MAY_COME_BACK = [
    TimeoutError(),
    ConnectionResetError("reset by peer"),
    socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
    httpx.ReadTimeout("timed out"),
    httpx.RemoteProtocolError("Server disconnected"),
    aiohttp.ServerDisconnectedError(),
    aiohttp.ClientPayloadError("not enough data"),
    requests.ConnectionError("refused"),
    requests.Timeout("timed out"),
    ssl.SSLError("bad record mac"),
    http.client.IncompleteRead(b""),
    RuntimeError("Event loop is closed"),  # a client used on one loop after another, once
]
STAY = [
    ssl.SSLCertVerificationError("self-signed certificate"), httpx.UnsupportedProtocol("no scheme"),
    aiohttp.InvalidURL("nowhere"), requests.exceptions.InvalidURL("nowhere"),
    FileNotFoundError("cacert.pem"), asyncio.InvalidStateError(),
]  # fmt: skip


@pytest.mark.parametrize("error", [*MAY_COME_BACK, *STAY], ids=repr)
def test_connections_of_other_clients_may_come_back_and_other_errors_stay(error: Exception) -> None:
    fault = ProviderFault(error)
    assert (fault.retryable, fault.status) == (error in MAY_COME_BACK, None)


@pytest.mark.parametrize(
    ("status", "passing"), [(529, True), (429, True), (413, False), (400, False)]
)
def test_errors_of_unknown_clients_are_read_by_their_status(status: int, passing: bool) -> None:
    class APIStatusError(Exception):
        status_code = status

    wrapped = RuntimeError("the client failed")
    wrapped.__cause__ = APIStatusError("no")
    assert ProviderFault(wrapped).retryable == passing
    assert ProviderFault(wrapped).status == status


# Attempts that follow


@pytest.mark.parametrize("kind", PROVIDERS)
async def test_a_time_out_of_the_callers_own(provider: Provider, kind: str) -> None:
    provider.play(Hang(3600))
    async with chat_of(kind, provider, timeout=1.0) as chat:
        error = await failed(resolver.wrap(chat))
    assert re.match(r"(?i)^scorer, round 0: .*time.?out", str(error))
    assert error.retryable
    await reached(lambda: len(provider.requests) == 1)


# Replies that cannot be used


def test_a_prompt_that_gemini_blocks_is_filtered(provider: Provider) -> None:
    blocked = Raw(
        '{"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}'
    )
    provider.play(blocked, blocked)
    with pytest.raises(ReplyError) as raised:
        run("async", models={"*": google(provider)})
    assert raised.value.fault == "filtered"


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
    provider.play(
        off_scale, "Score: 5" if text else {**GOOD, "score": 5}, "NO ISSUE" if text else FINE
    )
    verdict, transcript = run("async", models={"*": name_of(kind, provider)}, structured=structured)
    again = provider.requests[1].messages
    assert [role for role, _ in again] == ["system", "user", "assistant", "user"]
    assert again[:2] == provider.requests[0].messages
    assert "Splendid." in again[2][1]
    assert "9" in again[3][1]
    assert "off the scale 1 to 5" in again[3][1]
    turn = transcript[1]
    assert (turn["value"], turn["calls"], turn["input_tokens"], turn["output_tokens"]) == (
        5,
        2,
        200,
        40,
    )
    assert verdict.calls == 3
    assert verdict.warnings == ("scorer, round 0: the reply was asked for again 1 time(s)",)


def test_a_function_call_is_repaired_in_words_the_provider_takes(provider: Provider) -> None:
    provider.play({"reasoning": "Splendid.", "score": 9}, GOOD, FINE)
    verdict, _ = run("async", models={"*": "openai:gpt-4"})
    assert provider.requests[1].messages[2] == (
        "assistant",
        '{"reasoning": "Splendid.", "score": 9}',
    )
    assert (verdict.score, verdict.calls) == (4, 3)


@pytest.mark.parametrize("repair", [0, 1, 2])
def test_how_often_a_reply_is_asked_for_again(provider: Provider, repair: int) -> None:
    provider.play(*[{"reasoning": "Splendid.", "score": "9"}] * 4)
    with pytest.raises(ReplyError, match="off the scale") as raised:
        run("async", models={"*": OPENAI}, repair=repair)
    assert len(provider.requests) == repair + 1
    assert (raised.value.fault, raised.value.reply) == (
        "off_scale",
        '{"reasoning": "Splendid.", "score": "9"}',
    )


def test_a_critic_that_fails_is_named_with_its_round(provider: Provider) -> None:
    again = {"feedback": "Look again.", "no_issue": False}
    provider.play(GOOD, again, GOOD, Failure(403, "Out of your reach."))
    with pytest.raises(
        ModelCallError, match=r"^critic, round 2: openai:gpt-4o-mini: .*Out of your reach"
    ):
        run("async", models={"*": OPENAI})
    assert speakers(provider) == ["scorer", "critic"] * 2
    provider.play(GOOD, {"verdict": "fine"}, {"verdict": "fine"})
    with pytest.raises(ReplyError, match=r"^critic, round 1: ") as raised:
        run("async", models={"*": OPENAI})
    assert (raised.value.agent, raised.value.round, raised.value.fault) == ("critic", 1, "missing")


# LangGraph's default retries, and pickling and copying of errors

GIVEN: Any = {"task": SCORE_TASK}


class State(TypedDict):
    task: dict[str, Any]
    verdict: dict[str, Any]


def judge_with_retry() -> Any:
    """Make a caller's LangGraph graph with a judge as a node and LangGraph's own retries."""
    parent = StateGraph(State)
    judge = single.build(models={"*": OPENAI}).compile()
    parent.add_node("judge", judge, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    parent.add_edge(START, "judge")
    parent.add_edge("judge", END)
    return parent.compile()


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("failure", [Failure(503, "Overloaded."), Failure(429, "Slow down.")])
async def test_langgraph_retries_what_may_pass(provider: Provider, failure: Failure) -> None:
    provider.play(failure, GOOD, failure, GOOD)
    for result in (judge_with_retry().invoke(GIVEN), await judge_with_retry().ainvoke(GIVEN)):
        assert result["verdict"]["score"] == 4
    assert len(provider.requests) == 4


# Of an unreadable reply, the second request is the repair.
@pytest.mark.parametrize(
    ("answer", "requests_made"),
    [
        *((Failure(status, "No."), 1) for status in (400, 401, 403, 404)),
        ("I would rather not say.", 2),
    ],
)
def test_langgraph_retries_nothing_that_stays(
    provider: Provider, answer: Answer, requests_made: int
) -> None:
    provider.play(*[answer] * 9)
    with pytest.raises((ModelCallError, ReplyError)):
        judge_with_retry().invoke(GIVEN)
    assert len(provider.requests) == requests_made


UNREADABLE = ReplyError("It states no score.", "I would rather not say.", "missing")
UNREADABLE.agent = "critic"
UNREADABLE.round = 2
ERRORS = [
    UsageError("no such role"), DataError("items.jsonl, line 3"), UNREADABLE,
    ModelCallError("the key was refused"),
    TransientCallError("overloaded", rate_limited=True, retry_after=2.5),
    StoppedError("the budget is spent"), UnsupportedParameterError("no logprobs here", "logprobs"),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))]
)
def test_errors_can_be_pickled_and_copied(error: JurygraphError, again: Any) -> None:
    copied = again(error)
    assert type(copied) is type(error)
    assert (str(copied), vars(copied)) == (str(error), vars(error))
