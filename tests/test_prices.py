"""What calls cost: the list's own figures, on a shorter way."""

from __future__ import annotations

import pytest
from jurygraph.nodes.models import prices

LABELS = [
    "openai:gpt-4o-mini",
    "openai:gpt-4o",
    "openai:gpt-4",
    "openai:gpt-3.5-turbo",
    "openai:o1-mini",
    "google_genai:gemini-2.0-flash",
    "google_genai:gemini-2.5-pro",
]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("tokens", [(1000, 0, 100), (1000, 900, 100), (300_000, 1000, 10), (0, 0, 0)])
def test_against_the_list(label: str, tokens: tuple[int, int, int]) -> None:
    found = prices.cost_usd(label, *tokens)
    assert found == pytest.approx(prices._listed_price(label, *tokens), rel=1e-12)


@pytest.mark.parametrize("label", ["openai:my-own", "anthropic:claude", "somebody", "google_genai:nothing"])
def test_an_unknown_price_is_unknown(label: str) -> None:
    assert prices.cost_usd(label, 1000, 0, 100) is None
    assert not prices.is_priced(label)


def test_a_price_that_depends_on_the_length_is_looked_up() -> None:
    assert prices._flat_rates("google_genai:gemini-2.5-pro") is None
    short, long = (prices.cost_usd("google_genai:gemini-2.5-pro", size, 0, 0) for size in (100_000, 300_000))
    assert short is not None
    assert long is not None
    assert long > 3 * short
