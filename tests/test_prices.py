"""What calls cost: the list's own figures, on a shorter way."""

from __future__ import annotations

import pytest
from genai_prices import Usage, calc_price
from jurygraph.nodes.models import prices, resolver
from jurygraph.state.settings import ModelSpec

IN_THE_LIST = {
    "google_genai": "google",
    "mistralai": "mistral",
    "xai": "x-ai",
    "azure_openai": "azure",
    "bedrock_converse": "aws",
    "amazon_bedrock": "aws",
}
"""From a provider's name to the one that the price list has for it, where that is another one."""

LABELS = [
    *(f"openai:{name}" for name in ("gpt-4o-mini", "gpt-4o", "gpt-4", "gpt-3.5-turbo", "o1-mini")),
    "google_genai:gemini-2.0-flash",
    "google_genai:gemini-2.5-pro",
    "anthropic:claude-haiku-4-5",
    "mistralai:mistral-small-latest",
    "mistral:mistral-small-latest",
    "groq:llama-3.3-70b-versatile",
    "deepseek:deepseek-chat",
    "xai:grok-4",
    "azure_openai:gpt-4o-mini",
    "azure:gpt-4o-mini",
    "bedrock_converse:anthropic.claude-3-5-sonnet-20241022-v2:0",
    "amazon_bedrock:us.anthropic.claude-3-5-sonnet-20241022-v2:0",
    "openrouter:anthropic/claude-3.5-sonnet",
]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(
    "tokens", [(1000, 0, 100, 0), (1000, 200, 100, 500), (300_000, 1000, 10, 0), (0, 0, 0, 0)]
)
def test_against_the_list(label: str, tokens: tuple[int, int, int, int]) -> None:
    provider, _, name = label.partition(":")
    sent, cached, written, kept = tokens
    usage = Usage(input_tokens=sent, cache_read_tokens=cached, cache_write_tokens=kept, output_tokens=written)
    listed = calc_price(usage, model_ref=name, provider_id=IN_THE_LIST.get(provider, provider))
    assert prices.cost_usd(label, *tokens) == pytest.approx(float(listed.total_price), rel=1e-12)


@pytest.mark.parametrize(
    "label",
    ["openai:my-own", "anthropic:nobody", "somebody", "gpt-4o", "google_genai:nothing", "ollama:llama3.2"],
)
def test_an_unknown_price_is_unknown(label: str) -> None:
    assert prices.cost_usd(label, 1000, 0, 100) is None
    assert not prices.is_priced(label)


@pytest.fixture(autouse=True)
def _none_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "_GIVEN", {})


def test_a_price_that_is_given_counts() -> None:
    assert not prices.is_priced("ollama:my-own")
    resolver.check(ModelSpec.parse("ollama:my-own?price_in=0.5&price_out=2"))
    assert prices.is_priced("ollama:my-own")
    assert prices.cost_usd("ollama:my-own", 1_000_000, 400_000, 100_000) == pytest.approx(0.5 + 0.2)
    # Zero is given on purpose only.
    assert prices.cost_usd("ollama:local", 1000, 0, 100) is None
    resolver.check(ModelSpec.parse("ollama:local?price_in=0&price_out=0"))
    assert prices.cost_usd("ollama:local", 1000, 0, 100) == 0
