"""What the provider's batches are like, and how often they are looked after."""

from __future__ import annotations

from dataclasses import dataclass

BATCH_DISCOUNT = 0.5
"""What a batched call costs, as a share of the usual price."""


@dataclass(frozen=True)
class Terms:
    """OpenAI's, as of its guide to the Batch API.

    Attributes:
        requests: in one file, at most.
        file_bytes: of one file, at most.
        first_look: seconds after which a batch is looked after for the first time.
        between_looks: seconds between later looks, at most.
    """

    requests: int = 50_000
    file_bytes: int = 200_000_000
    first_look: float = 5.0
    between_looks: float = 60.0


TERMS = Terms()
