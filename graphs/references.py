"""Take a Python file, or an object of a module, for the protocol or the graph that it defines.

A reference stands wherever a protocol's name does::

    mine.py                  the protocol of the file (its ``protocol`` and ``build``), else its only graph
    mine.py:graph            this graph, with the settings and models that it was built with
    package.module:graph     the same of a module that Python finds
"""

from __future__ import annotations

import hashlib
import re
import sys
import traceback
from functools import lru_cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel.protocol import PregelProtocol

from ..state.errors import UsageError
from ..state.protocols import Protocol

AnyGraph = PregelProtocol[Any, Any, Any, Any] | StateGraph[Any, Any, Any, Any]
"""A graph, compiled or not; also one that runs elsewhere, such as LangGraph's ``RemoteGraph``."""

Given = str | ModuleType | AnyGraph
"""A judge as a caller gives it: a protocol's name, file (``mine.py``) or module, or a graph with the same input and
output, as an object or by the file that has it (``mine.py:graph``)."""

NameOrGraph = str | AnyGraph
"""A judge as it is run: the name of a protocol, which is built with a run's settings, or a graph."""

_REFERENCE = re.compile(r"(?P<source>.+\.py|\w+(?:\.\w+)*(?=:))(?::(?P<object>\w+))?")


def is_reference(name: str) -> bool:
    """Tell whether a name is that of a file or of a module's object; no protocol's name has a dot or a colon.

    >>> is_reference("mine.py"), is_reference("package.module:graph"), is_reference("debate")
    (True, True, False)
    """
    return _REFERENCE.fullmatch(name) is not None


def is_protocol(module: object) -> bool:
    """Tell whether a module defines a protocol, whose graphs can be built with other settings."""
    build = getattr(module, "build", None)
    return isinstance(getattr(module, "protocol", None), Protocol) and callable(build)


def referenced(name: str) -> Any:
    """Return the module of a protocol, or the graph, that a reference names; the file is run as Python imports it.

    Raises:
        UsageError: no such file, one that does not import (with the line), or no graph, or several, in it.
    """
    match = _REFERENCE.fullmatch(name)
    assert match is not None
    source, wanted = match["source"], match["object"]
    module = _of_file(source) if source.endswith(".py") else _of_name(source)
    graphs = {n: found for n, found in vars(module).items() if isinstance(found, StateGraph | PregelProtocol)}
    if wanted is None and is_protocol(module):
        return module
    if wanted is None and (len(graphs) == 1 or "graph" in graphs):
        wanted = "graph" if "graph" in graphs else next(iter(graphs))
    if wanted in graphs:
        return _marked(graphs[wanted], module)
    there = f"its graphs are {', '.join(graphs)}" if graphs else "it has no graph"
    if wanted is not None:
        raise UsageError(f"{name}: {wanted} is not a graph of {source}; {there}")
    raise UsageError(
        f"{name}: {there}; name the one you mean, as in {source}:{next(iter(graphs), 'graph')}"
        + ("" if graphs else ", or define protocol and build")
    )


def _of_name(source: str) -> ModuleType:
    try:
        return import_module(source)
    except Exception as error:  # whatever somebody else's module raises while it is imported
        raise UsageError(f"{source} cannot be imported: {_explained(error, source)}") from error


def _of_file(source: str) -> ModuleType:
    path = Path(source).expanduser().resolve()
    if not path.is_file():
        raise UsageError(f"{source}: there is no such file")
    return _imported(path, hashlib.sha256(path.read_bytes()).hexdigest())


@lru_cache
def _imported(path: Path, digest: str) -> ModuleType:
    """Import a file once for each of its versions; beside it stand the modules that it may import."""
    # Classes of settings and states are found again by their module's name.
    name = f"jurygraph_file_{path.stem}_{digest[:8]}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the file raises
        del sys.modules[name]
        raise UsageError(f"{path} cannot be imported: {_explained(error, str(path))}") from error
    return module


def _explained(error: Exception, source: str) -> str:
    """Return what an import raised, and the last line of the file that led there."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source]
    line = error.lineno if isinstance(error, SyntaxError) else next(reversed(lines), None)
    return f"{'' if line is None else f'line {line}: '}{type(error).__name__}: {error}"


def source_digest(module: ModuleType) -> str:
    """Return a digest of the file that a module was read from; empty where it has none.

    It says of a judge that no package's version describes whether it is the one of an earlier run.
    """
    file = Path(getattr(module, "__file__", None) or "")
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else ""


def _marked(graph: Any, module: ModuleType) -> Any:
    """Note at a graph which version of which file it is of, for its description."""
    builder = getattr(graph, "builder", graph)
    # Of a graph that holds a judge of this package, the judge is described; of another one, its drawing.
    marked = getattr(builder, "bound_judge", builder)
    if isinstance(builder, StateGraph):
        marked.source_digest = source_digest(module)
    return graph
