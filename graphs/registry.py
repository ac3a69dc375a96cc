"""Find every protocol by name: the modules of this folder, those that other packages register, and single files.

A protocol is a module with ``protocol``, ``build`` and ``graph``. In this folder the module bears the protocol's
name; another package registers its module under the protocol's name in the entry point group ``jurygraph.protocols``.
A file is named by its path, and once it is loaded by its protocol's name, too.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, cast

from ..nodes.plugins import Group, load_plugin, plugins
from ..state.checked import did_you_mean
from ..state.errors import UsageError
from ..state.protocols import Protocol
from ..state.review_rules import KindOf
from ..state.transcript import RoleKind
from .references import Given, NameOrGraph, is_protocol, is_reference, referenced, source_digest

_PACKAGE = __name__.rpartition(".")[0]
_GROUP: Group = "jurygraph.protocols"
_NO_PROTOCOLS = {"answer_gate"}
"""Modules of this folder that would only take time: this one imports LangChain's agents."""


class _Loaded(NamedTuple):
    """Hold a protocol of a single file: the module, what it was named by, and a digest of the file."""

    module: ModuleType
    reference: str
    digest: str


_loaded: dict[str, _Loaded] = {}

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
    return sorted({*filter(_bundled, _bundled_names()), *plugins(_GROUP)})


def find_protocol(name: str) -> ModuleType:
    """Return a protocol's module.

    Args:
        name: of the protocol, or of the file that defines it, such as ``mine.py``.

    Raises:
        UsageError: no such protocol; the message lists those there are.
    """
    if is_reference(name):
        found = referenced(name)
        if isinstance(found, ModuleType):
            return find_protocol(take_in(found, name))
        raise UsageError(
            f"{name} is a graph with settings of its own, but a protocol is needed here: define build"
        )
    # Only the module asked for is imported: the wrappers ask for the protocols that they hold while they are
    # themselves being imported, and a scan of the folder would find them half done.
    if (module := _bundled(name)) is not None:
        return module
    if name in plugins(_GROUP):
        return _registered(name)
    if name in _loaded:
        return _loaded[name].module
    names = protocol_names()
    raise UsageError(f"unknown protocol {name!r}; known are {', '.join(names)}{did_you_mean(name, names)}")


def take_in(module: ModuleType, reference: str = "") -> str:
    """Return the name of a module's protocol, by which it can be found from now on.

    Args:
        module: one that has ``protocol`` and ``build``.
        reference: what another process finds it by; default: its file.

    Raises:
        UsageError: it defines no protocol, or one whose name another one has.
    """
    reference = reference or getattr(module, "__file__", None) or module.__name__
    if not is_protocol(module):
        raise UsageError(f"{reference} defines no protocol: it needs both protocol and build")
    name: str = module.protocol.name
    if name not in protocol_names():
        _loaded[name] = _Loaded(module, reference, source_digest(module))
        role_kinds.cache_clear()
    elif find_protocol(name) is not module:
        raise UsageError(f"{reference}: another protocol is named {name}, too: choose another name")
    return name


def judge_of(given: Given) -> NameOrGraph:
    """Return a judge as it is run: of a file or a module, the protocol that it defines, else its graph.

    Raises:
        UsageError: a file that is not there, does not import, or has no graph or several.
    """
    if isinstance(given, ModuleType):
        return take_in(given)
    if not isinstance(given, str) or not is_reference(given):
        return given
    found = referenced(given)
    return take_in(found, given) if isinstance(found, ModuleType) else cast("NameOrGraph", found)


def reference_of(name: str) -> str:
    """Return what another process finds a protocol by: the file that it was loaded from, or its name."""
    return _loaded[name].reference if name in _loaded else name


def built(name: str, settings: Any = None, models: Any = None, **fields: Any) -> Any:
    """Build the graph of a protocol; one of a single file is marked with the file's digest, since it has no version.

    Raises:
        UsageError: no such protocol; bad settings.
    """
    module = find_protocol(name)
    graph = module.build(settings, models, **fields)
    if module.protocol.name in _loaded:
        graph.bound_judge.source_digest = _loaded[module.protocol.name].digest
    return graph


@lru_cache
def _bundled_names() -> frozenset[str]:
    modules = (info.name for info in pkgutil.iter_modules(import_module(_PACKAGE).__path__))
    return frozenset(modules) - _NO_PROTOCOLS


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
            f"{name!r}, registered under {_GROUP}, is not a protocol: {wrong}; "
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
    known = {**protocols(), **{name: loaded.module for name, loaded in _loaded.items()}}
    if name in known and known[name].protocol.role_kinds:
        return dict(known[name].protocol.role_kinds)
    kinds: dict[str, RoleKind] = {}
    # The package's own protocols come first: another package's must not change what their roles mean.
    for other in sorted(known, key=lambda other: (other not in _bundled_names(), other)):
        kinds = {**known[other].protocol.role_kinds, **kinds}
    return kinds


def kind_of_turns(protocol: str, details: Mapping[str, Any]) -> KindOf:
    """Return the function that tells what a turn does to a protocol's verdict with these details.

    A wrapper's verdict names in its details the protocol inside, whose turns these are. An unknown role ``scores``.
    """
    kinds = role_kinds(str(details.get("of", protocol)))
    return lambda turn: kinds.get(turn["role"], "scores")
