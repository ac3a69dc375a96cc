"""A key for each item, by which providers and routers keep its calls on one machine."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from jurygraph.eval import evaluate
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.providers import openai
from jurygraph.state import UsageError
from jurygraph.state.settings import ModelSpec

from .loopback import Provider, Request
from .sample_data import numbered

ASPECTS = ["consistency", "coherence"]


def scorer(_request: Request) -> str:
    return "Fine.\nScore: 4"


def judged(provider: Provider, folder: Path, more: str = "", **options: Any) -> None:
    model = f"openai:qwen?base_url={provider.openai_url}{more}"
    options |= {"aspects": ASPECTS, "models": {"*": model}, "settings": {"structured": "off"}}
    done = evaluate("single", numbered(folder, 3), **options)
    assert not done.failed, done.failed[0].error


def keys_by_item(provider: Provider, found: Any) -> dict[str, set[str]]:
    """The keys of the requests about each candidate."""
    keys = defaultdict(set)
    for request in provider.requests:
        item = next(text for text in ("Number 0", "Number 1", "Number 2") if text in request.user)
        keys[item].add(found(request))
    return keys


def test_a_header_names_the_item_and_is_no_part_of_the_call(
    provider: Provider, tmp_path: Path
) -> None:
    provider.play(by=scorer)
    shared: dict[str, Any] = {"journal": tmp_path / "calls.sqlite"}
    judged(provider, tmp_path, "&session_header=x-session-id", out=tmp_path / "one", **shared)
    assert len(provider.requests) == 6
    keys = keys_by_item(provider, lambda request: dict(request.headers).get("x-session-id"))
    assert [len(of_item) for of_item in keys.values()] == [1, 1, 1]
    named = set.union(*keys.values())
    assert len(named) == 3
    assert all(len(name) == 32 and "i0" not in name for name in named)
    assert not any("prompt_cache_key" in request.body for request in provider.requests)
    judged(provider, tmp_path, out=tmp_path / "two", **shared)
    assert len(provider.requests) == 6


def test_without_the_option_other_servers_get_no_key(provider: Provider, tmp_path: Path) -> None:
    provider.play(by=scorer)
    judged(provider, tmp_path)
    assert not any("prompt_cache_key" in request.body for request in provider.requests)


def test_openai_gets_its_own_parameter(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "HOST", "127.0.0.1")
    provider.play(by=scorer)
    judged(provider, tmp_path)
    keys = keys_by_item(provider, lambda request: request.body["prompt_cache_key"])
    assert [len(of_item) for of_item in keys.values()] == [1, 1, 1]
    assert len(set.union(*keys.values())) == 3
    provider.requests.clear()
    judged(provider, tmp_path, "&model_kwargs.prompt_cache_key=mine")
    assert {request.body["prompt_cache_key"] for request in provider.requests} == {"mine"}


def test_the_header_is_refused_where_it_could_not_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    spec = ModelSpec.parse("anthropic:claude-sonnet-4-5?session_header=x-session-id")
    with pytest.raises(UsageError, match="session_header only works with OpenAI's protocol"):
        resolver.check(spec)
    with pytest.raises(ValueError, match="session_header"):
        ModelSpec.parse("openai:qwen?session_header=a b")
