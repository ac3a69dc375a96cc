"""A batch that the provider has, as the journal notes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Parcel:
    """Requests to one model at one address, written to one file.

    Attributes:
        file: its name.
        address: where it is to go.
        requests: how many.
        tokens: that they are expected to take.
        cost: US dollars that they are expected to take.
    """

    file: str
    address: str
    requests: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    @property
    def each(self) -> tuple[float, float]:
        """Tokens and dollars of one request, on average."""
        return self.tokens / max(self.requests, 1), self.cost / max(self.requests, 1)

    def add(self, tokens: float, cost: float) -> None:
        """Count one more request."""
        self.requests += 1
        self.tokens += tokens
        self.cost += cost


@dataclass
class Sent(Parcel):
    """A parcel that was sent.

    Attributes:
        id: the provider's name for the batch.
        input_file: the provider's name for the file of requests.
        requests_done: how far it has come.
    """

    id: str = ""
    input_file: str = ""
    requests_done: int = 0

    @classmethod
    def of(cls, name: str, about: Mapping[str, Any]) -> Sent:
        """From what was noted, here or at the provider, where all values are strings."""
        return cls(
            file=str(about["file"]),
            address=str(about["address"]),
            requests=int(about["requests"]),
            tokens=float(about["tokens"]),
            cost=float(about["cost"]),
            id=name,
            input_file=str(about.get("input_file", "")),
        )

    def about(self) -> dict[str, Any]:
        """What is to be noted."""
        return {
            "file": self.file,
            "address": self.address,
            "requests": self.requests,
            "tokens": self.tokens,
            "cost": self.cost,
            "input_file": self.input_file,
        }
