"""Every protocol by name: a module of this folder that has a ``protocol`` is one."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from ..state.errors import UsageError


@lru_cache(maxsize=1)
def protocols() -> dict[str, ModuleType]:
    """Name to module, in alphabetical order; each has ``protocol``, ``build`` and ``graph``.

    >>> "debate" in protocols()
    True
    """
    package = __name__.rpartition(".")[0]
    names = sorted(info.name for info in pkgutil.iter_modules(import_module(package).__path__))
    modules = [import_module(f"{package}.{name}") for name in names if name != "registry"]
    return {module.protocol.name: module for module in modules if hasattr(module, "protocol")}


def find_protocol(name: str) -> ModuleType:
    """A protocol's module.

    Raises:
        UsageError: no such protocol; the message lists those there are.
    """
    known = protocols()
    if name not in known:
        raise UsageError(f"unknown protocol {name!r}; known are {', '.join(known)}")
    return known[name]
