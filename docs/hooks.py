"""Fill the site's pages from the registry while it is built: drawings, settings and numbers of
calls.

A page says where with a comment: ``<!-- drawing: debate -->``, ``<!-- drawing: samre jurors=0 -->``
with settings, ``<!-- facts: debate -->``. Links
that lead out of ``docs/`` become plain words, since what they lead to is not on the site.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jurygraph.eval.cli.graph_drawing import drawing
from jurygraph.eval.cli.runtime import settings_of
from jurygraph.graphs.engine.registry import find_protocol
from jurygraph.state.checked import field_docstrings
from jurygraph.state.protocols import Protocol, total
from jurygraph.state.settings import Settings
from mkdocs.structure.files import File

MARK = re.compile(r"<!-- (drawing|facts): (\w+(?: \w+=\w+)*) -->")
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"/>'


def on_config(config: Any) -> Any:
    """List the pages that the menu does not name under a heading of their own, so that none is left
    out.
    """
    named = re.findall(r"[\w-]+\.md", str(config.nav))
    others = [
        page.name for page in sorted(Path(config.docs_dir).glob("*.md")) if page.name not in named
    ]
    config.nav = [*config.nav, *([{"More": others}] if others else [])]
    return config


def on_files(files: Any, *, config: Any) -> Any:
    """Add the drawing of every protocol that a page shows."""
    marks = [MARK.findall(file.content_string) for file in files.documentation_pages()]
    for name in sorted({name for of_page in marks for what, name in of_page if what == "drawing"}):
        picture = drawn(name) if config.extra["drawings"] else EMPTY
        files.append(File.generated(config, place_of(name), content=picture))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_others: Any) -> str:
    """Put a drawing or the facts of a protocol in the place of each mark."""
    up = "../" * page.file.src_uri.count("/")

    def filled(mark: re.Match[str]) -> str:
        what, name = mark.groups()
        if what == "facts":
            return facts(find_protocol(name).protocol)
        return f"![The graph of {name}]({up}{place_of(name)})"

    return MARK.sub(filled, outside(up).sub(r"\1", markdown))


def outside(up: str) -> re.Pattern[str]:
    """Match links that lead out of ``docs/`` from a page so many folders deep."""
    return re.compile(rf"(?<!!)\[([^\]]+)\]\({re.escape(up)}\.\./[^)]*\)")


def place_of(name: str) -> str:
    """Return the place of a drawing on the site.

    >>> place_of("samre jurors=0")
    'pictures/graphs/samre-jurors-0.svg'
    """
    return f"pictures/graphs/{re.sub(r'[ =]', '-', name)}.svg"


@cache
def drawn(name: str) -> str:
    """Return the drawing of a protocol's graph, with settings after its name, as SVG."""
    protocol, *settings = name.split()
    return drawing(protocol, settings_of(settings))


def facts(about: Protocol[Any]) -> str:
    """Return a protocol's calls and settings as Markdown tables."""
    return "\n".join(
        ["## Calls by default", "", *calls(about), "", "## Settings", "", *settings(about)]
    )


def calls(about: Protocol[Any]) -> list[str]:
    """Return a table of calls by role for each kind of task: of a model that returns one reply to a
    request.
    """
    rows = ["| task | model calls a verdict | by role |", "|---|---|---|"]
    for kind in about.kinds:
        by_role = about.calls(
            find_protocol(about.name).build().bound_judge.bound, kind, lambda *_: False
        )
        spelled = [f"{role} {span(of)}" for role, of in by_role.items() if of.most]
        rows.append(f"| {kind} | {span(total(by_role.values()))} | {', '.join(spelled)} |")
    return rows


def span(calls: Any) -> str:
    """Write a range: ``2 to 9``, or ``3``."""
    return f"{calls.least}" if calls.least == calls.most else f"{calls.least} to {calls.most}"


def settings(about: Protocol[Any]) -> list[str]:
    """Return a table of a protocol's settings, those of its own first."""
    rows = ["| setting | default | |", "|---|---|---|"]
    words = field_docstrings(about.settings)
    for name in about.settings.names():
        field = about.settings.model_fields[name]
        default = field.get_default(call_default_factory=True)
        shown = f"`{default}`" if default not in (None, {}, ()) else ""
        own = name if name in Settings.model_fields else f"**{name}**"
        rows.append(
            f"| {own} | {shown} | {(field.description or words.get(name, '')).replace('|', chr(92) + '|')} |"
        )
    return rows
