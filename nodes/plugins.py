"""Find what other installed packages add through entry points: protocols, metrics, datasets and model providers.

A package registers them in its ``pyproject.toml``::

    [project.entry-points."jurygraph.protocols"]
    two_judges = "my_package.two_judges"
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Any, Literal

from ..state.errors import UsageError

Group = Literal["jurygraph.protocols", "jurygraph.metrics", "jurygraph.datasets", "jurygraph.providers"]


@lru_cache
def plugins(group: Group) -> Mapping[str, EntryPoint]:
    """Return what is registered under a group: name to entry point, in alphabetical order; nothing is imported yet.

    Raises:
        UsageError: two packages register the same name for different things.
    """
    entries: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        other = entries.setdefault(entry.name, entry)
        # The same entry found twice, as where a package is on the path twice, is no conflict.
        if other.value != entry.value:
            both = f"{_origin(other)} and {_origin(entry)}; uninstall one of them"
            raise UsageError(f"two packages register {entry.name!r} under {group}: {both}")
    return entries


def load_plugin(group: Group, name: str) -> Any:
    """Import what is registered under a name.

    Raises:
        UsageError: it cannot be imported; names the package that registered it.
        KeyError: nothing is registered under this name.
    """
    entry = plugins(group)[name]
    try:
        return entry.load()
    except Exception as error:  # whatever somebody else's module raises while it is imported
        origin, problem = f"registered under {group} by {_origin(entry)}", f"{type(error).__name__}: {error}"
        raise UsageError(f"{name!r}, {origin}, cannot be loaded: {problem}") from error


def _origin(entry: EntryPoint) -> str:
    package = f" of {entry.dist.name}" if entry.dist is not None else ""
    return f"{entry.value}{package}"


def installed_version(package: str) -> str:
    """Return the version of an installed package; ``unknown`` if its metadata is not there.

    >>> installed_version("no such package")
    'unknown'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def needed(module: str, lacking: str) -> Any:
    """Import a module of a package that need not be installed.

    Raises:
        UsageError: it is not there; says what is lacking, and how to get it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{lacking} ({error})") from error
