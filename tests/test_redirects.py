"""A provider that redirects: judged texts and keys go to no other host, and no other request is made in their place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jurygraph.nodes.models import resolver
from jurygraph.nodes.models.call import Reply
from jurygraph.state import ModelCallError

from .loopback import Provider, Raw
from .loopback_debate import OPENAI, asked, google, loaded, openai_chat

GEMINI = "/v1beta/models/gemini-2.0-flash:generateContent"


@pytest.fixture
def other() -> Iterator[Provider]:
    """Another host, which would answer whatever it is asked."""
    server = Provider()
    server.play(by=lambda _: "Score: 5")
    yield server
    server.stop()


async def ask(kind: str, provider: Provider) -> Reply:
    """Ask by each real client, as a name or an object makes it."""
    if kind == "object":
        return await asked(resolver.wrap(openai_chat(provider, max_retries=0)))
    claude = f"anthropic:claude-mine?base_url={provider.url}"
    model = loaded({"google": google(provider), "anthropic": claude}.get(kind, OPENAI))
    if kind == "openai":
        # Without it, calls go through the ``openai`` client.
        model.chat._post = None  # type: ignore[attr-defined]
    return await asked(model)


def redirect(status: int, to: str) -> Raw:
    return Raw("Moved.", "text/html", status, {"Location": to})


def path_of(kind: str) -> str:
    return GEMINI if kind == "google" else "/v1/chat/completions"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["fast", "openai", "object", "google", "anthropic"])
async def test_no_redirect_leads_to_another_host(
    provider: Provider, other: Provider, monkeypatch: pytest.MonkeyPatch, kind: str, status: int
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    provider.play(by=lambda _: redirect(status, other.url + path_of(kind)))
    with pytest.raises(ModelCallError, match="set base_url to where it leads") as caught:
        await ask(kind, provider)
    assert not caught.value.retryable
    assert other.connections == 0
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("kind", ["fast", "openai", "object", "google"])
async def test_no_redirect_turns_the_request_into_another(provider: Provider, kind: str, status: int) -> None:
    provider.play(by=lambda _: redirect(status, f"{path_of(kind)}?again=1"))
    with pytest.raises(ModelCallError, match=str(status)):
        await ask(kind, provider)
    assert len(provider.requests) == 1


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("kind", ["fast", "openai", "object"])
async def test_a_request_is_repeated_on_the_same_host(provider: Provider, kind: str, status: int) -> None:
    provider.play(redirect(status, "/v1/chat/completions?again=1"), "Score: 4")
    assert (await ask(kind, provider)).text == "Score: 4"
    first, second = provider.requests
    assert (first.method, second.method) == ("POST", "POST")
    assert "again" in second.path
    assert first.body == second.body


async def test_a_circle_of_redirects_ends(provider: Provider) -> None:
    provider.play(by=lambda _: redirect(307, "/v1/chat/completions"))
    with pytest.raises(ModelCallError, match="more than 3 redirects"):
        await ask("fast", provider)
