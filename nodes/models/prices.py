"""Look up what tokens cost in a public price list (genai-prices); an unknown price stays unknown, never zero."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

# From the provider in a model's label, by LangChain's and LangSmith's names, to its name in the price list. Others have
# the same name in both.
_PROVIDERS = {
    **dict.fromkeys(("google_genai", "google_vertexai"), "google"),
    **dict.fromkeys(("azure_openai", "azure_ai"), "azure"),
    **dict.fromkeys(("bedrock", "bedrock_converse", "anthropic_bedrock", "amazon_bedrock"), "aws"),
    "mistralai": "mistral",
    "xai": "x-ai",
}

_GIVEN: dict[str, tuple[Decimal, Decimal, Decimal]] = {}


def give(label: str, price_in: float, price_out: float) -> None:
    """Set what a model costs, in US dollars for a million input and output tokens; the price list counts no more."""
    fresh, written = Decimal(str(price_in)), Decimal(str(price_out))
    _GIVEN[label] = fresh, fresh, written


def cost_usd(label: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float | None:
    """Return the price of one call in US dollars, or ``None`` where the model's price is unknown.

    >>> cost_usd("offline", 1000, 0, 100)
    0.0
    >>> cost_usd("somebody:their-own-model", 1000, 0, 100) is None
    True
    """
    if label == "offline":
        return 0.0
    if not is_priced(label):
        return None
    return _price(label, input_tokens, cached_input_tokens, output_tokens)


def is_priced(label: str) -> bool:
    """Return whether a model's price is known. The first call reads the price list from disk and blocks.

    >>> is_priced("openai:gpt-4o-mini"), is_priced("ollama:llama3.2")
    (True, False)
    """
    return label in _GIVEN or _is_listed(label)


@lru_cache(maxsize=512)
def _is_listed(label: str) -> bool:
    # A name of ours that has no colon would be looked for with all providers.
    if ":" not in label:
        return False
    from genai_prices import Usage, calc_price

    provider, name = _listed_as(label)
    try:
        price = calc_price(Usage(), model_ref=name, provider_id=provider).model_price
    except LookupError:
        return False
    # A model whose tokens have no price, one of pictures perhaps, is not free.
    return price.input_mtok is not None and price.output_mtok is not None


def _price(label: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
    rates = _GIVEN.get(label) or _flat_rates(label)
    if rates is None:
        return _listed_price(label, input_tokens, cached_input_tokens, output_tokens)
    # Providers count cached tokens among the input tokens.
    tokens = (input_tokens - cached_input_tokens, cached_input_tokens, output_tokens)
    return float(sum(rate * count for rate, count in zip(rates, tokens, strict=True)) / 1_000_000)


@lru_cache(maxsize=512)
def _flat_rates(label: str) -> tuple[Decimal, Decimal, Decimal] | None:
    """Return dollars for a million input, cached and output tokens; None where rates depend on the count.

    They are cached, since to ask the list for every call costs more than all else that is done with a reply.
    """
    from genai_prices import Usage, calc_price

    provider, name = _listed_as(label)
    # A usage of nothing, since only the rates are wanted.
    price = calc_price(Usage(), model_ref=name, provider_id=provider).model_price
    fresh, cached, written = price.input_mtok, price.cache_read_mtok, price.output_mtok
    # Without a rate of their own, cached tokens cost what all others do.
    cached = fresh if cached is None else cached
    # A rate that depends on the number of tokens is an object of tiers, not a number.
    if isinstance(fresh, Decimal) and isinstance(cached, Decimal) and isinstance(written, Decimal):
        return fresh, cached, written
    return None


def _listed_price(label: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
    """Ask the price list for the price of one call, for models whose rates depend on its length."""
    from genai_prices import Usage, calc_price

    provider, name = _listed_as(label)
    usage = Usage(
        input_tokens=input_tokens, cache_read_tokens=cached_input_tokens, output_tokens=output_tokens
    )
    return float(calc_price(usage, model_ref=name, provider_id=provider).total_price)


def _listed_as(label: str) -> tuple[str, str]:
    provider, _, name = label.partition(":")
    return _PROVIDERS.get(provider, provider), name
