"""Look up token prices in a public list (genai-prices); an unknown price is never zero."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from .providers import provider_of

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

FREE = ("offline", "local")
"""The models that run inside this process."""

_Rates = tuple[Decimal, ...]
"""Dollars per million tokens: input, read from a cache, written to a cache, output."""
_GIVEN: dict[str, _Rates] = {}


def give(label: str, price_in: float, price_out: float) -> None:
    """Set a model's prices in US dollars per million tokens, in place of the price list's."""
    fresh = Decimal(str(price_in))
    written = Decimal(str(price_out))
    _GIVEN[label] = fresh, fresh, fresh, written


def cost_usd(
    label: str,
    input_tokens: int,
    cached_input_tokens: int,
    output_tokens: int,
    kept_input_tokens: int = 0,
) -> float | None:
    """Return the price of one call in US dollars, or ``None`` if the model's price is unknown.

    Args:
        label: the model's name.
        input_tokens: all input tokens.
        cached_input_tokens: the input tokens that the provider read from its cache.
        output_tokens: all output tokens.
        kept_input_tokens: the input tokens that the provider wrote to its cache at a separate
            price.

    >>> cost_usd("offline", 1000, 0, 100)
    0.0
    >>> cost_usd("somebody:their-own-model", 1000, 0, 100) is None
    True
    """
    if label in FREE or (rates := _GIVEN.get(label) or _listed_rates(label)) is None:
        return 0.0 if label in FREE else None
    sent = input_tokens
    cached = cached_input_tokens
    written = output_tokens
    kept = kept_input_tokens
    if not rates:
        # Rates that depend on the length of the call: the list itself computes the price.
        tokens = {"input_tokens": sent, "cache_read_tokens": cached, "cache_write_tokens": kept}
        return float(_listed(label, **tokens, output_tokens=written).total_price)
    # Input tokens include tokens read from a cache and tokens written to it.
    fresh, read, stored, output = rates
    price = (sent - cached - kept) * fresh + cached * read + kept * stored + written * output
    return float(price) / 1_000_000


def is_priced(label: str) -> bool:
    """Return whether a model's price is known. The first call reads the list and blocks.

    >>> is_priced("openai:gpt-4o-mini"), is_priced("ollama:llama3.2")
    (True, False)
    """
    return label in FREE or label in _GIVEN or _listed_rates(label) is not None


def _listed(label: str, **tokens: int) -> PriceCalculation:
    """Return the price list's entry for a call; raise LookupError for an unlisted model."""
    from genai_prices import Usage, calc_price

    provider, _, name = label.partition(":")
    record = provider_of(provider)
    listed = record.price_list if record is not None and record.price_list else provider
    return calc_price(Usage(**tokens), model_ref=name, provider_id=listed)


def listed_window(label: str) -> int | None:
    """Return a model's context size in tokens by the price list; None if it has no entry.

    >>> listed_window("openai:gpt-4o-mini"), listed_window("somebody:their-own-model")
    (128000, None)
    """
    return None if _listed_rates(label) is None else _listed(label).model.context_window


@lru_cache(maxsize=512)
def _listed_rates(label: str) -> _Rates | None:
    """Return the prices of a model's tokens: empty if they depend on the count, None if unknown.

    They are cached, because looking them up costs more than the rest of the work on a reply.
    """
    with suppress(LookupError):
        # The list would look up our names without a colon at all providers. The usage is empty
        # because only the rates are needed.
        price = _listed(label).model_price if ":" in label else None
        # A model without a price per token, such as an image model, is not free.
        if price is None or price.input_mtok is None or price.output_mtok is None:
            return None
        own = price.input_mtok, price.cache_read_mtok, price.cache_write_mtok, price.output_mtok
        # Without a separate rate, tokens read from or written to a cache cost the usual price. A
        # rate that depends on the number of tokens is an object of tiers, not a number.
        rates = [price.input_mtok if rate is None else rate for rate in own]
        flat = [rate for rate in rates if isinstance(rate, Decimal)]
        return tuple(flat) if len(flat) == len(rates) else ()
    return None
