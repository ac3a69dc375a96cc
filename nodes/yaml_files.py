"""Read small YAML files that people write: bounded in size, also in what their aliases expand to."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import yaml

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000
"""Values and keys, each as often as an alias repeats it: nine lines of aliases can make a billion."""


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds. Blocking.

    Raises:
        OSError: no such file, or one that cannot be read.
        YAMLError: no YAML, or too much of it.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise yaml.YAMLError(f"more than {MOST_BYTES:,} bytes")
    try:
        loader = yaml.SafeLoader(content)
        node = loader.get_single_node()
        if node is None:
            return None
        # Before values are made of the nodes, for which merges (``<<``) copy what they name.
        if _size(node, {}) > MOST_VALUES:
            raise yaml.YAMLError(f"more than {MOST_VALUES:,} values, where aliases count as what they repeat")
        return loader.construct_document(node)
    except (RecursionError, UnicodeDecodeError) as error:
        raise yaml.YAMLError(str(error)) from None


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """Return how many values a node expands to; one that holds itself has no end."""
    if id(node) not in known:
        known[id(node)] = inf
        inside = node.value if isinstance(node, yaml.CollectionNode) else []
        parts = (part for pair in inside for part in (pair if isinstance(pair, tuple) else (pair,)))
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]
