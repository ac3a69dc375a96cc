"""When it is no use going on: call after call of a model fails for a reason that the next one will meet as well."""

from __future__ import annotations

from collections import Counter

from ...nodes.models.provider_errors import ProviderFault
from ...state.errors import ModelCallError
from .stopping import Stop

ENOUGH = 10
"""Calls of one model that failed for good, with none between that succeeded."""

_FOR_ALL = {401, 402, 403, 404, 429}
"""Statuses that say something of key, account or model; 429 where it is the quota that is spent."""


class Losses:
    """Calls that failed for good, in a row, by model; ends the run when there are enough.

    What may be the fault of one call alone does not count: a text that is too long, or that a filter refuses.
    """

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self._in_a_row: Counter[str] = Counter()

    def succeeded(self, model: str) -> None:
        """A call of the model was answered."""
        self._in_a_row.pop(model, None)

    def failed(self, model: str, error: ModelCallError) -> None:
        """A call of the model failed for good: at once, or after all the attempts that it had."""
        if not (error.retryable or ProviderFault.of(error).status in _FOR_ALL):
            return
        self._in_a_row[model] += 1
        if self._in_a_row[model] >= ENOUGH:
            self._stop.ask(
                "provider", f"{ENOUGH} calls of {model} in a row failed, the last one with: {error}"
            )
