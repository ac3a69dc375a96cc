"""Every protocol by name: a module of this folder that has a ``protocol`` is one, and so is each of ``wrappers``."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from ..state.errors import UsageError

_PACKAGE = __name__.rpartition(".")[0]


def protocols() -> dict[str, ModuleType]:
    """Name to module, in alphabetical order; each has ``protocol``, ``build`` and ``graph``.

    >>> "debate" in protocols()
    True
    """
    return dict(sorted({**_protocols_in(_PACKAGE), **_protocols_in(f"{_PACKAGE}.wrappers")}.items()))


def find_protocol(name: str) -> ModuleType:
    """A protocol's module.

    Raises:
        UsageError: no such protocol; the message lists those there are.
    """
    # The wrappers look for the protocols that they hold while they are themselves being imported.
    if module := _protocols_in(_PACKAGE).get(name):
        return module
    known = protocols()
    if name not in known:
        raise UsageError(f"unknown protocol {name!r}; known are {', '.join(known)}")
    return known[name]


@lru_cache
def _protocols_in(package: str) -> dict[str, ModuleType]:
    names = sorted(info.name for info in pkgutil.iter_modules(import_module(package).__path__))
    modules = [import_module(f"{package}.{name}") for name in names if name != "registry"]
    return {module.protocol.name: module for module in modules if hasattr(module, "protocol")}
