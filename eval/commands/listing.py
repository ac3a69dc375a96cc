"""``jurygraph protocols``, ``datasets`` and ``graph``: what there is, and what it looks like."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer
from pydantic.fields import FieldInfo
from rich.table import Table

from ...state.settings import Settings
from .. import drawing
from ..datasets import SOURCES
from .common import console


def graph(
    protocol: Annotated[str, typer.Argument(help="A protocol.")],
    svg: Annotated[Path | None, typer.Option(help="Write the drawing to this file.")] = None,
) -> None:
    """Draw a protocol's graph: as Mermaid text, or as a picture with --svg."""
    if svg is None:
        typer.echo(drawing.mermaid(protocol))
        return
    svg.write_text(drawing.svg(protocol), encoding="utf-8")
    typer.echo(f"wrote {svg}")


def protocols() -> None:
    """List the protocols: what they judge, their roles and settings."""
    from ...graphs.registry import protocols as registered

    table = Table("protocol", "judges", "roles", "settings (default)", "what it does", show_lines=True)
    for name, module in registered().items():
        about = module.protocol
        own = _fields(about.settings, without=Settings.model_fields)
        does = f"{about.summary}; {about.source}"
        table.add_row(name, "\n".join(about.kinds), "\n".join(about.roles), own, does)
    table.caption = f"all have the settings {', '.join(_fields(Settings).splitlines())}"
    table.caption_justify = "left"
    console().print(table)


def datasets() -> None:
    """List the datasets that have a name."""
    table = Table("dataset", "kind", "labels", "what it is", "where it comes from")
    for source in SOURCES.values():
        origin = "a local folder (--data-dir)" if source.rows else "bundled"
        table.add_row(source.name, source.kind, source.labels, source.summary, origin)
    console().print(table)


def _fields(settings: type[Settings], without: Collection[str] = ()) -> str:
    fields = {name: field for name, field in settings.model_fields.items() if name not in without}
    return "\n".join(_field(name, field) for name, field in fields.items())


def _field(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default in (None, {}, ()):
        return name
    shown = ",".join(default) if isinstance(default, tuple) else str(default)
    return f"{name}={shown.lower() if isinstance(default, bool) else shown}"
