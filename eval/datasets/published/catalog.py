"""List the datasets that have a name: those of ``catalog.yaml``, and those that other packages register."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import yaml
from pydantic import TypeAdapter

from ....nodes.plugins import Group, load_plugin, plugins
from ....state.errors import UsageError
from . import readers
from .source import Source


def _read_catalog() -> dict[str, Source]:
    text = Path(__file__).with_name("catalog.yaml").read_text(encoding="utf-8")
    # The parser in C takes a tenth of the time; PyYAML may have been built without it.
    catalog = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for entry in catalog["datasets"]:
        entry["papers"] = [catalog["papers"][name] for name in entry.get("papers", ())]
        for form in entry.get("forms", ()):
            names = ("columns", "optional") if "columns" in form else ()
            given = {name: form.pop(name, {}) for name in names}
            form["rows"] = partial(getattr(readers, form["rows"]), **given)
    # Extra keys are refused: a misspelt one would be left out without a word.
    sources = TypeAdapter(tuple[Source, ...]).validate_python(catalog["datasets"], extra="forbid")
    return {source.name: source for source in sources}


SOURCES = _read_catalog()
"""The datasets of this package, by name."""

_GROUP: Group = "jurygraph.datasets"


def dataset_names() -> tuple[str, ...]:
    """Return the names of the package's datasets, then of those that other packages register.

    >>> dataset_names()[:2]
    ('demo', 'demo-pairs')
    """
    return tuple(dict.fromkeys([*SOURCES, *plugins(_GROUP)]))


def find_source(name: str) -> Source | None:
    """Find the description of a dataset by its name; ``None`` if no dataset has it.

    Raises:
        UsageError: what a package registers under ``jurygraph.datasets`` cannot be loaded, or is no ``Source`` of
            that name with a file.
    """
    # A name of the catalogue stays what it is, whatever another package registers under it.
    if name in SOURCES or name not in plugins(_GROUP):
        return SOURCES.get(name)
    source = load_plugin(_GROUP, name)
    if not isinstance(source, Source):
        wrong = f"it is a {type(source).__name__}"
    elif source.name != name:
        wrong = f"its name is {source.name!r}"
    elif source.file is None:
        wrong = "it has no file"
    else:
        return source
    raise UsageError(
        f"{name!r}, registered under {_GROUP}, is not a dataset: {wrong}; register a Source with a file"
    )
