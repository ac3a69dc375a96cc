"""Test a model behind several servers or keys: debates stay on one, broken ones are skipped."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jurygraph import create_judge
from jurygraph.eval import evaluate
from jurygraph.state import UsageError

from .loopback import Failure, Provider, Request
from .loopback_debate import Debaters

ASPECT = "consistency"


@pytest.fixture
def servers(provider: Provider) -> Iterator[list[Provider]]:
    """Three servers of one model; ``provider`` sets the key."""
    three = [Provider() for _ in range(3)]
    for server in three:
        server.play(by=by_role)
    yield three
    for server in three:
        server.stop()


def by_role(request: Request) -> Any:
    """Answer a debate of three rounds, whatever the request."""
    return Debaters(scores=[3], satisfied_in=None)(request)


def model(servers: list[Provider], more: str = "") -> str:
    return f"openai:qwen?base_url={','.join(server.openai_url for server in servers)}{more}"


def rows(size: int) -> list[dict[str, Any]]:
    told = "The bridge opened in 1932."
    return [
        {"id": str(n), "source": f"{n}: {told}", "candidate": "It opened."} for n in range(size)
    ]


def judged(servers: list[Provider], items: int = 12, more: str = "", **options: Any) -> list[str]:
    options |= {"aspects": [ASPECT], "models": {"*": model(servers, more)}, "settings": {"n": 2}}
    done = evaluate("debate", rows(items), **options)
    return [result.status for result in done.results]


def debates(server: Provider) -> Counter[str]:
    """How many calls of which debate a server has had."""
    heads = (request.user.partition(": The bridge")[0] for request in server.requests)
    return Counter(head.rpartition("\n")[2] for head in heads)


def test_a_debate_stays_with_one_server_and_all_have_some(servers: list[Provider]) -> None:
    assert judged(servers, concurrency=6) == ["ok"] * 12
    of_servers = [debates(server) for server in servers]
    assert all(of_servers)
    assert sum(map(len, of_servers)) == 12
    assert {count for of_server in of_servers for count in of_server.values()} == {5}


@pytest.mark.parametrize(("status", "asked"), [(401, 1), (404, 1), (503, 3)])
def test_a_server_that_answers_nobody_is_left_out_at_once_and_one_that_fails_soon(
    servers: list[Provider], status: int, asked: int, caplog: pytest.LogCaptureFixture
) -> None:
    servers[1].play(by=lambda _: Failure(status))
    with caplog.at_level(logging.WARNING, "jurygraph.notices"):
        assert judged(servers, concurrency=1) == ["ok"] * 12
    assert len(servers[1].requests) == asked
    assert any(vars(record).get("others") == 2 for record in caplog.records)


def test_a_server_that_is_not_there_costs_nothing_and_is_told_of_once(
    servers: list[Provider], caplog: pytest.LogCaptureFixture
) -> None:
    servers[0].stop()
    with caplog.at_level(logging.WARNING, "jurygraph.notices"):
        assert judged(servers, concurrency=6) == ["ok"] * 12
    told = [record.message for record in caplog.records if record.name.startswith("jurygraph")]
    assert told == ["endpoint left out"]
    requests = [request for server in servers[1:] for request in server.requests]
    assert len(requests) == 60
    # The parameters of a call go with it to another server.
    assert all("response_format" in request.body for request in requests)


def test_where_all_fail_the_error_is_theirs(servers: list[Provider]) -> None:
    for server in servers:
        server.play(by=lambda _: Failure(401))
    assert judged(servers, items=1) == ["failed"]
    assert [len(server.requests) for server in servers] == [1, 1, 1]


def test_each_takes_no_more_at_once_than_it_may(servers: list[Provider]) -> None:
    assert judged(servers, items=9, more="&at_once=1", concurrency=9) == ["ok"] * 9
    assert max(server.connections for server in servers) <= 2


def test_keys_share_calls_of_one_address(
    servers: list[Provider], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRST", "sk-first-key-of-two")
    monkeypatch.setenv("SECOND", "sk-second-key-of-two")
    assert judged(servers[:1], more="&key_env=FIRST,SECOND", concurrency=4) == ["ok"] * 12
    used = Counter(request.headers["authorization"] for request in servers[0].requests)
    assert {*used} == {"Bearer sk-first-key-of-two", "Bearer sk-second-key-of-two"}


def test_another_host_is_paid_nothing_anew(servers: list[Provider], tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert judged(servers[:2], out=out) == ["ok"] * 12
    assert judged(servers[1:], out=out) == ["ok"] * 12
    assert judged(servers[2:], more="&identity=*", out=out) == ["ok"] * 12
    assert judged(servers[2:], more="&identity=*", journal=out / "journal.sqlite") == ["ok"] * 12
    assert not servers[2].requests


def test_a_host_that_replaces_another_is_paid_nothing_anew_if_it_is_said_to_serve_the_same(
    servers: list[Provider], tmp_path: Path
) -> None:
    old, new, _ = servers
    journal: Any = {"journal": tmp_path / "calls.sqlite"}
    same = {"more": f"&identity={old.openai_url}", **journal}
    assert judged([old], out=tmp_path / "run", **journal) == ["ok"] * 12
    assert judged([new], **same) == judged([new], out=tmp_path / "run", **same) == ["ok"] * 12
    assert not new.requests
    # Without that word it may be another model of the same name.
    with pytest.raises(UsageError, match=r"models was.*Add &identity=OLD_ADDRESS"):
        judged([new], out=tmp_path / "run", **journal)
    assert judged([new], 1, **journal) == ["ok"]
    assert {*debates(new)} == {"0"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "openai:qwen?base_url=http://a,http://b,http://c&key_env=ONE,TWO",
            "3 addresses and 2 keys",
        ),
        ("openai:qwen?base_url=http://a&key_env=ONE,NOT_SET", "NOT_SET is not set"),
        (
            "openai:qwen?base_url=localhost:1/v1",
            "begins with http:// or https://, got base_url=localhost:1/v1",
        ),
        ("google_genai:gemini?base_url=http://a,http://b", "only work with OpenAI's protocol"),
    ],
)
def test_what_cannot_be_shared_says_why(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONE", "sk-1")
    monkeypatch.setenv("TWO", "sk-2")
    with pytest.raises(UsageError, match=words):
        create_judge("single", aspect=ASPECT, model=name)(inputs="a", outputs="b")
