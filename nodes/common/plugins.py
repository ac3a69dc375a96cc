"""Finds extensions from other packages: protocols, metrics, datasets and model providers.

A package registers them as entry points in its ``pyproject.toml``::

    [project.entry-points."jurygraph.protocols"]
    two_judges = "my_package.two_judges"
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, Literal

from ...state.errors import UsageError

Group = Literal[
    "jurygraph.protocols", "jurygraph.metrics", "jurygraph.datasets", "jurygraph.providers"
]


@lru_cache
def plugins(group: Group) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, in alphabetical order, without importing them.

    Raises:
        UsageError: two packages register the same name for different things.
    """
    entries: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        other = entries.setdefault(entry.name, entry)
        # The same entry can be found twice, for example if a package is on the path twice.
        if other.value != entry.value:
            raise UsageError(
                f"two packages register {entry.name!r} under {group}: {_origin(other)} "
                f"and {_origin(entry)}; uninstall one of them"
            )
    return entries


def load_plugin(group: Group, name: str) -> Any:
    """Import the object that is registered under a name.

    Raises:
        UsageError: it cannot be imported; the message names the package that registered it.
        KeyError: nothing is registered under this name.
    """
    entry = plugins(group)[name]
    try:
        return entry.load()
    except Exception as error:  # an imported module can raise anything
        raise UsageError(
            f"{name!r}, registered under {group} by {_origin(entry)}, cannot be loaded: "
            f"{type(error).__name__}: {error}"
        ) from error


def _origin(entry: EntryPoint) -> str:
    package = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"{entry.value}{package}"


def installed_version(package: str) -> str:
    """Return the version of an installed package; ``unknown`` if it has no metadata.

    >>> installed_version("no such package")
    'unknown'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def needed(module: str, lacking: str) -> Any:
    """Import a module of an optional package.

    Raises:
        UsageError: the package is not installed; the message explains how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{lacking} ({error})") from error
