"""Finds protocols by name: bundled ones, those of other packages, and those in single files.

A protocol is a module with ``protocol``, ``build`` and ``graph``. A bundled module has the
protocol's name. Another package registers its module under the protocol's name in the entry point
group ``jurygraph.protocols``. A reference can replace a protocol's name. After it has been loaded,
a file's protocol is known by its name too::

    mine.py                  the protocol of the file (its ``protocol`` and ``build``), else its only graph
    mine.py:graph            this graph, with the settings and models that it was built with
    package.module:graph     the same of a module that Python finds
"""

from __future__ import annotations

import hashlib
import json
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from langgraph.graph import StateGraph
from langgraph.pregel.protocol import PregelProtocol
from pydantic import ValidationError

from ...nodes.common.plugins import Group, load_plugin, plugins
from ...state.checked import listed, shortened
from ...state.errors import JurygraphError, UsageError
from ...state.protocols import Protocol, Range
from ...state.review_rules import KindOf
from ...state.transcript import RoleKind
from .own_code import described, line_of, place_of, place_of_function

AnyGraph = PregelProtocol[Any, Any, Any, Any] | StateGraph[Any, Any, Any, Any]
"""A graph, compiled or not, or one that runs elsewhere, such as LangGraph's ``RemoteGraph``."""

Given = str | ModuleType | AnyGraph
"""A judge from a caller: a protocol's name, file (``mine.py``) or module, or a graph.

A graph needs the same input and output. It can be an object or a reference to a file
(``mine.py:graph``).
"""

NameOrGraph = str | AnyGraph
"""A resolved judge: the name of a protocol, which is built with a run's settings, or a graph."""

_PROTOCOLS = __name__.rsplit(".", maxsplit=2)[0]
_WRAPPERS = f"{_PROTOCOLS}.wrappers"
_GROUP: Group = "jurygraph.protocols"

_REFERENCE = re.compile(r"(?P<source>.+\.py|\w+(?:\.\w+)*(?=:))(?::(?P<object>\w+))?")


class _Loaded(NamedTuple):
    """A protocol from a single file: its module, its reference, and a digest of the file."""

    module: ModuleType
    reference: str
    digest: str


_loaded: dict[str, _Loaded] = {}

DEFAULT = "debate"
"""The protocol that commands use if none is named."""


def protocols() -> dict[str, ModuleType]:
    """Return all protocols' modules by name, in alphabetical order.

    Each module has ``protocol``, ``build`` and ``graph``.

    Raises:
        UsageError: a registered module that cannot be loaded or does not define a protocol.

    >>> "debate" in protocols()
    True
    """
    return {name: _bundled(name) or _registered(name) for name in protocol_names()}


def protocol_names() -> list[str]:
    """Return the names of all protocols in alphabetical order, without loading other packages.

    >>> "debate" in protocol_names()
    True
    """
    return sorted({*filter(_bundled, _bundled_modules()), *plugins(_GROUP)})


def find_protocol(name: str) -> ModuleType:
    """Return a protocol's module.

    Args:
        name: the name of the protocol, or the file that defines it, such as ``mine.py``.

    Raises:
        UsageError: an unknown protocol; the message lists the known ones.
    """
    if is_reference(name):
        judge = judge_of(name)
        if isinstance(judge, str):
            return find_protocol(judge)
        raise UsageError(
            f"{name} is a graph with settings of its own, but a protocol is needed here: define build"
        )
    # Import only the requested module. Wrappers look up their protocols during their own import,
    # and a scan of the folder would find them incomplete.
    if (module := _bundled(name)) is not None:
        return module
    if name in plugins(_GROUP):
        return _registered(name)
    if name in _loaded:
        return _loaded[name].module
    _take_in_served()
    if name in _loaded:
        return _loaded[name].module
    names = sorted({*protocol_names(), *_loaded})
    raise UsageError(f"unknown protocol {name!r}; known are {listed(names, name)}")


def take_in(module: ModuleType, reference: str = "") -> str:
    """Register a module's protocol and return its name, by which it can be found from now on.

    Args:
        module: a module with ``protocol`` and ``build``.
        reference: the reference by which another process finds it; default: its file.

    Raises:
        UsageError: the module defines no protocol, or the name is already used.
    """
    reference = reference or getattr(module, "__file__", None) or module.__name__
    if not _is_protocol(module):
        raise UsageError(f"{reference} defines no protocol: it needs both protocol and build")
    name: str = module.protocol.name
    if name not in protocol_names():
        if name not in _loaded or _loaded[name].module is not module:
            _check_record(module.protocol)
        _loaded[name] = _Loaded(module, reference, source_digest(module))
        # The role kinds of wrappers now include this protocol's roles.
        role_kinds.cache_clear()
    elif find_protocol(name) is not module:
        raise UsageError(f"{reference}: another protocol is named {name}, too: choose another name")
    return name


def judge_of(given: Given) -> NameOrGraph:
    """Resolve a judge: a file or module becomes the name of its protocol, or its graph.

    Raises:
        UsageError: a file that does not exist, cannot be imported, or has no graph or several.
    """
    if isinstance(given, ModuleType):
        return take_in(given)
    if not isinstance(given, str) or not is_reference(given):
        return given
    judge = _referenced(given)
    return take_in(judge, given) if isinstance(judge, ModuleType) else judge


def is_reference(name: str) -> bool:
    """Return whether a name refers to a file or to an object in a module.

    Protocol names contain neither a dot nor a colon.

    >>> is_reference("mine.py"), is_reference("package.module:graph"), is_reference("debate")
    (True, True, False)
    """
    return _REFERENCE.fullmatch(name) is not None


def reference_of(name: str) -> str:
    """Return the reference by which another process finds a protocol: its file, or its name."""
    return _loaded[name].reference if name in _loaded else name


def built(name: str, settings: Any = None, models: Any = None, **fields: Any) -> Any:
    """Build the graph of a protocol; a graph from a single file gets the file's digest as version.

    Raises:
        UsageError: an unknown protocol, or invalid settings.
    """
    module = find_protocol(name)
    if module.protocol.name not in _loaded:
        return module.build(settings, models, **fields)
    graph = _built_by_user(module.build, settings, models, fields)
    getattr(graph, "bound_judge", graph).source_digest = _loaded[module.protocol.name].digest
    return graph


def _built_by_user(
    build: Callable[..., Any], settings: Any, models: Any, fields: Mapping[str, Any]
) -> Any:
    """Call the ``build`` of a user's file and name the file and the line in errors."""
    try:
        graph = build(settings, models, **fields)
    except (JurygraphError, ValidationError):
        raise
    except Exception as error:
        remedy = (
            "; it is called as build(settings, models, **fields)" if line_of(error) is None else ""
        )
        raise UsageError(f"{place_of(error, build)}: {described(error)}{remedy}") from error
    if not isinstance(graph, StateGraph):
        raise UsageError(
            f"{place_of_function(build)}: build returned {shortened(graph)}; "
            "it returns a graph that is not compiled"
        )
    try:
        graph.validate()
    except ValueError as error:
        raise UsageError(
            f"{place_of_function(build)}: the graph of build is not whole: {error}"
        ) from error
    # LangGraph treats a validated graph as compiled and warns about edges that are added later.
    graph.compiled = False
    return graph


def _check_record(protocol: Protocol[Any]) -> None:
    """Call the functions of a protocol's record with the default settings to find mistakes early.

    Raises:
        UsageError: a function raises an error or returns the wrong type; the message names its file
            and line.
    """
    try:
        settings = protocol.settings()
    except ValidationError:
        # The settings have no defaults.
        return
    for function in (protocol.agents, protocol.pauses_for_person, protocol.may_end_unresolved):
        _called(function, settings)
    for count in (protocol.calls, protocol.calls_once):
        for kind in protocol.kinds:
            calls = _called(count, settings, kind, lambda *_: False)
            if not (
                isinstance(calls, Mapping) and all(isinstance(of, Range) for of in calls.values())
            ):
                raise UsageError(
                    f"{place_of_function(count)}: calls returned {shortened(calls)}; "
                    'it returns a range for each role, such as {"scorer": exactly(3)}'
                )


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except JurygraphError:
        raise
    except Exception as error:
        raise UsageError(f"{place_of(error, function)}: {described(error)}") from error


@lru_cache
def _bundled_modules() -> dict[str, str]:
    """Return the full name of every module that may define a protocol, by its last part."""
    found: dict[str, str] = {}
    for package in (_PROTOCOLS, _WRAPPERS):
        for module in pkgutil.iter_modules(import_module(package).__path__):
            if not module.ispkg:
                found[module.name] = f"{package}.{module.name}"
    return found


def _bundled(name: str) -> ModuleType | None:
    """Return the bundled module of this name if it defines a protocol, else None."""
    if name not in _bundled_modules():
        return None
    # `graphs/protocol.py` does not define a protocol; it exports what protocols import.
    module = import_module(_bundled_modules()[name])
    return module if isinstance(getattr(module, "protocol", None), Protocol) else None


def _registered(name: str) -> ModuleType:
    module: ModuleType = load_plugin(_GROUP, name)
    missing = [part for part in ("protocol", "build", "graph") if not hasattr(module, part)]
    if missing or module.protocol.name != name:
        wrong = (
            f"it has no {missing[0]}"
            if missing
            else f"its protocol is named {module.protocol.name!r}"
        )
        raise UsageError(
            f"{name!r}, registered under {_GROUP}, is not a protocol: {wrong}; "
            "register a module with protocol, build and graph under the protocol's own name"
        )
    return module


def _take_in_served() -> None:
    """Register the protocols of files that a LangGraph server was started with.

    The server (``jurygraph studio mine.py``) has imported all modules of its configuration, so
    nothing is imported here.
    """
    entries = json.loads(os.environ.get("LANGSERVE_GRAPHS") or "{}").values()
    paths = (entry["path"] if isinstance(entry, dict) else str(entry) for entry in entries)
    sources = {path.rpartition(":")[0] for path in paths}
    # A file may be relative to a folder that is no longer the current one.
    files = {Path(source).name for source in sources if source.endswith(".py")}
    for module in list(sys.modules.values()):
        if (
            not isinstance(module, ModuleType)
            or "protocol" not in vars(module)
            or not _is_protocol(module)
        ):
            continue
        name = module.protocol.name
        file = Path(module.__file__ or "")
        is_served = module.__name__ in sources or file.name in files
        if is_served and name not in _loaded and name not in protocol_names():
            # Leave out the digest: a server's event loop does not allow reading the file.
            _loaded[name] = _Loaded(module, str(file), "")
            role_kinds.cache_clear()


@lru_cache
def role_kinds(name: str) -> Mapping[str, RoleKind]:
    """Return the kind of each role of a protocol; roles that are not listed are ``scores``.

    A wrapper's record lists no roles, because its settings choose the protocols inside. A protocol
    that is not installed has no record. For both, each role has the kind that it has in the known
    protocols.

    >>> role_kinds("samre")["juror"], role_kinds("repeated")["critic"]
    ('votes', 'objects')
    """
    known = {**protocols(), **{name: loaded.module for name, loaded in _loaded.items()}}
    if name in known and known[name].protocol.role_kinds:
        return dict(known[name].protocol.role_kinds)
    kinds: dict[str, RoleKind] = {}
    # Bundled protocols win, so that another package cannot change the kinds of their roles.
    for other in sorted(known, key=lambda other: (other not in _bundled_modules(), other)):
        kinds = {**known[other].protocol.role_kinds, **kinds}
    return kinds


def kind_of_turns(protocol: str, details: Mapping[str, Any]) -> KindOf:
    """Return the function that returns the kind of a turn in a verdict with these details.

    A wrapper's verdict names the protocol inside in its details. Unknown roles are ``scores``.
    """
    kinds = role_kinds(str(details.get("of", protocol)))
    return lambda turn: kinds.get(turn["role"], "scores")


def _is_protocol(module: object) -> bool:
    """Return whether a module defines a protocol whose graphs can be built with other settings."""
    build = getattr(module, "build", None)
    return isinstance(getattr(module, "protocol", None), Protocol) and callable(build)


def _referenced(name: str) -> ModuleType | AnyGraph:
    """Return the protocol's module or the graph that a reference names, and import its file.

    Raises:
        UsageError: a file that does not exist or cannot be imported (with the line), or has no
            graph or several.
    """
    match = _REFERENCE.fullmatch(name)
    assert match is not None
    source = match["source"]
    wanted = match["object"]
    module = _module_of(source)
    graphs = {
        n: graph
        for n, graph in vars(module).items()
        if isinstance(graph, StateGraph | PregelProtocol)
    }
    if wanted is None and _is_protocol(module):
        return module
    if wanted is None and (len(graphs) == 1 or "graph" in graphs):
        wanted = "graph" if "graph" in graphs else next(iter(graphs))
    if wanted in graphs:
        graph = graphs[wanted]
        builder = getattr(graph, "builder", graph)
        if isinstance(builder, StateGraph):
            # If the graph contains a judge of this package, mark the judge; otherwise mark the
            # graph.
            described: Any = getattr(builder, "bound_judge", builder)
            described.source_digest = source_digest(module)
        return graph
    choice = f"its graphs are {', '.join(graphs)}" if graphs else "it has no graph"
    if wanted is not None:
        raise UsageError(f"{name}: {wanted} is not a graph of {source}; {choice}")
    raise UsageError(
        f"{name}: {choice}; name the one you mean, as in {source}:"
        f"{next(iter(graphs), 'graph')}{('' if graphs else ', or define protocol and build')}"
    )


def _module_of(source: str) -> ModuleType:
    """Import a file, or a module by name; errors name the file's last line involved."""
    path = Path(source).expanduser().resolve() if source.endswith(".py") else None
    if path and not path.is_file():
        raise UsageError(f"{source}: there is no such file")
    try:
        if path is None:
            return import_module(source)
        return _imported(path, hashlib.sha256(path.read_bytes()).hexdigest())
    # An imported module can raise anything.
    except (Exception, SystemExit) as error:
        named = str(path or source)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == named]
        line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
        where = "" if line is None else f"line {line}: "
        raise UsageError(f"{named} cannot be imported: {where}{described(error)}") from error


@lru_cache
def _imported(path: Path, digest: str) -> ModuleType:
    """Import each version of a file once; it may import modules from its own folder."""
    # Classes of settings and states are looked up by the name of their module.
    name = f"jurygraph_file_{path.stem}_{digest[:8]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    # Append, so that a neighbouring file does not shadow an installed package.
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:  # whatever the file raises
        del sys.modules[name]
        raise
    return module


def source_digest(module: ModuleType) -> str:
    """Return a digest of a module's file; empty if there is no file.

    A judge from a file has no package version. The digest shows whether it is the judge of an
    earlier run.
    """
    file = Path(getattr(module, "__file__", None) or "")
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else ""
