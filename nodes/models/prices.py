"""Look up what tokens cost in a public price list (genai-prices); an unknown price stays unknown, never zero."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from .provider_words import WORDS, by_word

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_PROVIDERS = by_word(WORDS["price_list"])

FREE = ("offline", "local")
"""The models that run inside this process."""

_Rates = tuple[Decimal, ...]
"""Dollars for a million input tokens, tokens read from a cache and written to it, and output tokens."""
_GIVEN: dict[str, _Rates] = {}


def give(label: str, price_in: float, price_out: float) -> None:
    """Set what a model costs, in US dollars for a million input and output tokens; the price list counts no more."""
    fresh, written = Decimal(str(price_in)), Decimal(str(price_out))
    _GIVEN[label] = fresh, fresh, fresh, written


def cost_usd(
    label: str, input_tokens: int, cached_input_tokens: int, output_tokens: int, kept_input_tokens: int = 0
) -> float | None:
    """Return the price of one call in US dollars, or ``None`` where the model's price is unknown.

    Args:
        label: the model's.
        input_tokens: all that were sent.
        cached_input_tokens: of these, those that the provider read from its cache.
        output_tokens: all that came back.
        kept_input_tokens: of those sent, those that the provider wrote to its cache and has a price of its own for.

    >>> cost_usd("offline", 1000, 0, 100)
    0.0
    >>> cost_usd("somebody:their-own-model", 1000, 0, 100) is None
    True
    """
    if label in FREE or (rates := _GIVEN.get(label) or _listed_rates(label)) is None:
        return 0.0 if label in FREE else None
    sent, cached, written, kept = input_tokens, cached_input_tokens, output_tokens, kept_input_tokens
    if not rates:
        # Rates that depend on the call's length: the list itself is asked.
        tokens = {"input_tokens": sent, "cache_read_tokens": cached, "cache_write_tokens": kept}
        return float(_listed(label, **tokens, output_tokens=written).total_price)
    # Providers count cached tokens among the input tokens, and their clients those that were written to a cache.
    fresh, read, stored, output = rates
    price = (sent - cached - kept) * fresh + cached * read + kept * stored + written * output
    return float(price) / 1_000_000


def is_priced(label: str) -> bool:
    """Return whether a model's price is known. The first call reads the price list from disk and blocks.

    >>> is_priced("openai:gpt-4o-mini"), is_priced("ollama:llama3.2")
    (True, False)
    """
    return label in FREE or label in _GIVEN or _listed_rates(label) is not None


def _listed(label: str, **tokens: int) -> PriceCalculation:
    """Return what the price list says of a call; raise LookupError for a model that is not in it."""
    from genai_prices import Usage, calc_price

    provider, _, name = label.partition(":")
    return calc_price(Usage(**tokens), model_ref=name, provider_id=_PROVIDERS.get(provider, provider))


def listed_window(label: str) -> int | None:
    """Return how many tokens a model takes by the price list, prompt and reply together; None where it does not say.

    >>> listed_window("openai:gpt-4o-mini"), listed_window("somebody:their-own-model")
    (128000, None)
    """
    return None if _listed_rates(label) is None else _listed(label).model.context_window


@lru_cache(maxsize=512)
def _listed_rates(label: str) -> _Rates | None:
    """Return what a model's tokens cost: nothing where rates depend on the count, None where the list has no price.

    They are cached, since to ask the list for every call costs more than all else that is done with a reply.
    """
    with suppress(LookupError):
        # A name of ours that has no colon would be looked for with all providers. A usage of nothing, since only the
        # rates are wanted.
        price = _listed(label).model_price if ":" in label else None
        # A model whose tokens have no price, one of pictures perhaps, is not free.
        if price is None or price.input_mtok is None or price.output_mtok is None:
            return None
        own = price.input_mtok, price.cache_read_mtok, price.cache_write_mtok, price.output_mtok
        # Without a rate of their own, tokens read from a cache or written to it cost what all others do. A rate that
        # depends on the number of tokens is an object of tiers, not a number.
        rates = [price.input_mtok if rate is None else rate for rate in own]
        flat = [rate for rate in rates if isinstance(rate, Decimal)]
        return tuple(flat) if len(flat) == len(rates) else ()
    return None
