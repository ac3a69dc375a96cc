"""Find every protocol by name: the modules of this folder, and those that other packages register.

A protocol is a module with ``protocol``, ``build`` and ``graph``. In this folder the module bears the protocol's
name; another package registers its module under the protocol's name in the entry point group ``jurygraph.protocols``.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from ..nodes.plugins import Group, load_plugin, plugins
from ..state.checked import did_you_mean
from ..state.errors import UsageError
from ..state.role_kinds import RoleKind
from .protocol_record import Protocol

_PACKAGE = __name__.rpartition(".")[0]
_GROUP: Group = "jurygraph.protocols"
_NO_PROTOCOLS = {"answer_gate"}
"""Modules of this folder that would only take time: this one imports LangChain's agents."""

DEFAULT = "debate"
"""The protocol that is taken where a command needs one and none is named."""


def protocols() -> dict[str, ModuleType]:
    """Return all protocols' modules by name, in alphabetical order; each has ``protocol``, ``build`` and ``graph``.

    Raises:
        UsageError: a registered protocol that cannot be loaded, or is none.

    >>> "debate" in protocols()
    True
    """
    bundled = {name: module for name in _bundled_names() if (module := _bundled(name)) is not None}
    return {name: bundled.get(name) or _registered(name) for name in sorted({*bundled, *plugins(_GROUP)})}


def protocol_names() -> list[str]:
    """Give the names of all protocols in alphabetical order; another package's protocol need not load for it.

    >>> "debate" in protocol_names()
    True
    """
    bundled = [name for name in _bundled_names() if _bundled(name) is not None]
    return sorted({*bundled, *plugins(_GROUP)})


def find_protocol(name: str) -> ModuleType:
    """Return a protocol's module.

    Raises:
        UsageError: no such protocol; the message lists those there are.
    """
    # Only the module asked for is imported: the wrappers ask for the protocols that they hold while they are
    # themselves being imported, and a scan of the folder would find them half done.
    if (module := _bundled(name)) is not None:
        return module
    if name in plugins(_GROUP):
        return _registered(name)
    names = protocol_names()
    raise UsageError(f"unknown protocol {name!r}; known are {', '.join(names)}{did_you_mean(name, names)}")


@lru_cache
def _bundled_names() -> frozenset[str]:
    found = (info.name for info in pkgutil.iter_modules(import_module(_PACKAGE).__path__))
    return frozenset(found) - _NO_PROTOCOLS


def _bundled(name: str) -> ModuleType | None:
    """Return the module of this folder by this name if it is a protocol's, else None."""
    if name not in _bundled_names():
        return None
    # The folder also holds modules without a protocol, such as this one.
    module = import_module(f"{_PACKAGE}.{name}")
    return module if isinstance(getattr(module, "protocol", None), Protocol) else None


def _registered(name: str) -> ModuleType:
    module: ModuleType = load_plugin(_GROUP, name)
    missing = [part for part in ("protocol", "build", "graph") if not hasattr(module, part)]
    if missing or module.protocol.name != name:
        wrong = f"it has no {missing[0]}" if missing else f"its protocol is named {module.protocol.name!r}"
        raise UsageError(
            f"{name!r}, registered under {_GROUP}, is no protocol: {wrong}; "
            "register a module with protocol, build and graph under the protocol's own name"
        )
    return module


@lru_cache
def role_kinds(name: str) -> Mapping[str, RoleKind]:
    """Return what the turns of each role do to the verdict of a protocol; a role that is not in it ``scores``.

    A wrapper says nothing of roles, since its settings name the protocols inside, and a protocol that is not installed
    cannot: for these, every role counts as what it is in the protocols that there are.

    >>> role_kinds("samre")["juror"], role_kinds("repeated")["critic"]
    ('votes', 'objects')
    """
    known = protocols()
    if name in known and known[name].protocol.role_kinds:
        return dict(known[name].protocol.role_kinds)
    found: dict[str, RoleKind] = {}
    # The package's own protocols come first: another package's must not change what their roles mean.
    for other in sorted(known, key=lambda other: (other not in _bundled_names(), other)):
        found = {**known[other].protocol.role_kinds, **found}
    return found
