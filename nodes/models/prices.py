"""Look up what tokens cost in a public price list (genai-prices); an unknown price stays unknown, never zero."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

# From the provider in a model's label to its name in the price list.
_PROVIDERS = {"openai": "openai", "google_genai": "google"}


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


@lru_cache(maxsize=512)
def is_priced(label: str) -> bool:
    """Return whether the price list knows the model. The first call reads the list from disk and blocks.

    >>> is_priced("openai:gpt-4o-mini")
    True
    """
    provider, _, _ = label.partition(":")
    if provider not in _PROVIDERS:
        return False
    try:
        _price(label, 1, 0, 1)
    except LookupError:
        return False
    return True


def _price(label: str, input_tokens: int, cached_input_tokens: int, output_tokens: int) -> float:
    rates = _flat_rates(label)
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

    provider, _, name = label.partition(":")
    # A usage of nothing, since only the rates are wanted.
    price = calc_price(Usage(), model_ref=name, provider_id=_PROVIDERS[provider]).model_price
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

    provider, _, name = label.partition(":")
    usage = Usage(
        input_tokens=input_tokens, cache_read_tokens=cached_input_tokens, output_tokens=output_tokens
    )
    return float(calc_price(usage, model_ref=name, provider_id=_PROVIDERS[provider]).total_price)
