"""Find every protocol by name: the modules of this folder, those that other packages register, and single files.

A protocol is a module with ``protocol``, ``build`` and ``graph``. In this folder the module bears the protocol's
name; another package registers its module under the protocol's name in the entry point group ``jurygraph.protocols``.
Wherever a protocol's name does, a reference may stand; once it is loaded, a file's protocol is known by name, too::

    mine.py                  the protocol of the file (its ``protocol`` and ``build``), else its only graph
    mine.py:graph            this graph, with the settings and models that it was built with
    package.module:graph     the same of a module that Python finds
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
import sys
import traceback
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from langgraph.graph import StateGraph
from langgraph.pregel.protocol import PregelProtocol

from ..nodes.plugins import Group, load_plugin, plugins
from ..state.checked import listed
from ..state.errors import UsageError
from ..state.protocols import Protocol
from ..state.review_rules import KindOf
from ..state.transcript import RoleKind

AnyGraph = PregelProtocol[Any, Any, Any, Any] | StateGraph[Any, Any, Any, Any]
"""A graph, compiled or not; also one that runs elsewhere, such as LangGraph's ``RemoteGraph``."""

Given = str | ModuleType | AnyGraph
"""A judge as a caller gives it: a protocol's name, file (``mine.py``) or module, or a graph with the same input and
output, as an object or by the file that has it (``mine.py:graph``)."""

NameOrGraph = str | AnyGraph
"""A judge as it is run: the name of a protocol, which is built with a run's settings, or a graph."""

_PACKAGE = __name__.rpartition(".")[0]
_GROUP: Group = "jurygraph.protocols"
_NO_PROTOCOLS = {"answer_gate"}
"""Modules of this folder that would only take time: this one imports LangChain's agents."""


_REFERENCE = re.compile(r"(?P<source>.+\.py|\w+(?:\.\w+)*(?=:))(?::(?P<object>\w+))?")


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
    return {name: _bundled(name) or _registered(name) for name in protocol_names()}


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
        judge = judge_of(name)
        if isinstance(judge, str):
            return find_protocol(judge)
        needed = "a protocol is needed here: define build"
        raise UsageError(f"{name} is a graph with settings of its own, but {needed}")
    # Only the module asked for is imported: the wrappers ask for the protocols that they hold while they are
    # themselves being imported, and a scan of the folder would find them half done.
    if (module := _bundled(name)) is not None:
        return module
    if name in plugins(_GROUP):
        return _registered(name)
    if name in _loaded:
        return _loaded[name].module
    names = protocol_names()
    raise UsageError(f"unknown protocol {name!r}; known are {listed(names, name)}")


def take_in(module: ModuleType, reference: str = "") -> str:
    """Return the name of a module's protocol, by which it can be found from now on.

    Args:
        module: one that has ``protocol`` and ``build``.
        reference: what another process finds it by; default: its file.

    Raises:
        UsageError: it defines no protocol, or one whose name another one has.
    """
    reference = reference or getattr(module, "__file__", None) or module.__name__
    if not _is_protocol(module):
        raise UsageError(f"{reference} defines no protocol: it needs both protocol and build")
    name: str = module.protocol.name
    if name not in protocol_names():
        _loaded[name] = _Loaded(module, reference, source_digest(module))
        # A wrapper's turns may now be those of this protocol's roles.
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
    judge = _referenced(given)
    return take_in(judge, given) if isinstance(judge, ModuleType) else judge


def is_reference(name: str) -> bool:
    """Tell whether a name is that of a file or of a module's object; no protocol's name has a dot or a colon.

    >>> is_reference("mine.py"), is_reference("package.module:graph"), is_reference("debate")
    (True, True, False)
    """
    return _REFERENCE.fullmatch(name) is not None


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
        remedy = "register a module with protocol, build and graph under the protocol's own name"
        raise UsageError(f"{name!r}, registered under {_GROUP}, is not a protocol: {wrong}; {remedy}")
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


def _is_protocol(module: object) -> bool:
    """Tell whether a module defines a protocol, whose graphs can be built with other settings."""
    build = getattr(module, "build", None)
    return isinstance(getattr(module, "protocol", None), Protocol) and callable(build)


def _referenced(name: str) -> ModuleType | AnyGraph:
    """Return the module of a protocol, or the graph, that a reference names; the file is run as Python imports it.

    Raises:
        UsageError: no such file, one that does not import (with the line), or no graph, or several, in it.
    """
    match = _REFERENCE.fullmatch(name)
    assert match is not None
    source, wanted = match["source"], match["object"]
    module = _module_of(source)
    graphs = {n: graph for n, graph in vars(module).items() if isinstance(graph, StateGraph | PregelProtocol)}
    if wanted is None and _is_protocol(module):
        return module
    if wanted is None and (len(graphs) == 1 or "graph" in graphs):
        wanted = "graph" if "graph" in graphs else next(iter(graphs))
    if wanted in graphs:
        graph = graphs[wanted]
        builder = getattr(graph, "builder", graph)
        if isinstance(builder, StateGraph):
            # Of a graph that holds a judge of this package, the judge is described; of another one, its drawing.
            described: Any = getattr(builder, "bound_judge", builder)
            described.source_digest = source_digest(module)
        return graph
    choice = f"its graphs are {', '.join(graphs)}" if graphs else "it has no graph"
    if wanted is not None:
        raise UsageError(f"{name}: {wanted} is not a graph of {source}; {choice}")
    remedy = f"name the one you mean, as in {source}:{next(iter(graphs), 'graph')}"
    raise UsageError(f"{name}: {choice}; {remedy}{'' if graphs else ', or define protocol and build'}")


def _module_of(source: str) -> ModuleType:
    """Import a file, or a module by name; what that raises is told with the last line of the file that led there."""
    path = Path(source).expanduser().resolve() if source.endswith(".py") else None
    if path and not path.is_file():
        raise UsageError(f"{source}: there is no such file")
    try:
        if path is None:
            return import_module(source)
        return _imported(path, hashlib.sha256(path.read_bytes()).hexdigest())
    except Exception as error:  # whatever somebody else's module raises while it is imported
        named = str(path or source)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == named]
        line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
        where = "" if line is None else f"line {line}: "
        raise UsageError(f"{named} cannot be imported: {where}{type(error).__name__}: {error}") from error


@lru_cache
def _imported(path: Path, digest: str) -> ModuleType:
    """Import a file once for each of its versions; beside it stand the modules that it may import."""
    # Classes of settings and states are found again by their module's name.
    name = f"jurygraph_file_{path.stem}_{digest[:8]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    # At the end: a file beside it must not take the place of an installed package.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception:  # whatever the file raises
        del sys.modules[name]
        raise
    return module


def source_digest(module: ModuleType) -> str:
    """Return a digest of the file that a module was read from; empty where it has none.

    It says of a judge that no package's version describes whether it is the one of an earlier run.
    """
    file = Path(getattr(module, "__file__", None) or "")
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else ""
