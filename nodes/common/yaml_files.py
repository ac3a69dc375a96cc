"""Reads and checks small YAML files, with limits on their size and on expanded aliases."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ...state.data_files import Place, check_data

T = TypeVar("T")

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000
"""Values and keys, counted after expanding aliases: nine lines of aliases can make a billion."""


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file. Blocking.

    Raises:
        OSError: the file does not exist or cannot be read.
        YAMLError: the file is not YAML, or too large.
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
        # Check before values are made, because merges (``<<``) copy their targets.
        if _size(node, {}) > MOST_VALUES:
            raise yaml.YAMLError(
                f"more than {MOST_VALUES:,} values, where aliases count as what they repeat"
            )
        return loader.construct_document(node)
    except (RecursionError, UnicodeDecodeError) as error:
        raise yaml.YAMLError(str(error)) from None


def _size(node: yaml.Node, known: dict[int, float]) -> float:
    """Return the number of values that a node expands to; infinite if it contains itself."""
    if id(node) not in known:
        known[id(node)] = inf
        inside = node.value if isinstance(node, yaml.CollectionNode) else []
        parts = (part for pair in inside for part in (pair if isinstance(pair, tuple) else (pair,)))
        known[id(node)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(node)]


def read_data(path: Path, kind: type[T]) -> T:
    """Return the content of a YAML file of this package, checked against a type. Blocking.

    Args:
        path: the file.
        kind: the type of its content. Keys that the type does not have are refused.

    Raises:
        DataError: a misspelt key or an impossible value; the message has the file and the line.
    """
    return check_data(path, read_yaml(path), kind, lambda place, _: line_in_yaml(path, place))


def line_in_yaml(path: Path, place: Place) -> int:
    """Return the line of a value in a YAML file, by the names and indices that lead to it."""
    node = yaml.SafeLoader(path.read_bytes()).get_single_node()
    line = 1
    for part in place:
        if isinstance(node, yaml.MappingNode):
            key, node = next(pair for pair in node.value if str(pair[0].value) == str(part))
            line = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
