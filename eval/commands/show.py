"""``jurygraph show``: the debates on one item."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ...state.errors import JurygraphError, UsageError
from ..datasets import find_item, load_again
from ..items import Item
from ..manifest import read_manifest
from ..reading import debates_view, head, item_view
from ..results import Result, ResultsFile
from .common import console


def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    item: Annotated[str, typer.Argument(help="The id of an item.")],
    protocol: Annotated[str | None, typer.Option(help="This protocol's debate only.")] = None,
    aspect: Annotated[str | None, typer.Option(help="This aspect's debate only.")] = None,
) -> None:
    """Print the debates on one item, beside each other and beside people's score."""
    manifest = read_manifest(folder)
    chosen = _chosen(ResultsFile(folder), item, protocol, aspect)
    out = console()
    for part in head(manifest):
        out.print(part)
    if texts := _item_of(manifest, item):
        for part in item_view(texts):
            out.print(part)
    else:
        where = manifest["data"]["location"]
        out.print(
            f"Its texts are not shown: they are not to be found again ({where}).",
            markup=False,
            soft_wrap=True,
        )
    out.print(debates_view(chosen, out.width))


def _chosen(results: ResultsFile, item: str, protocol: str | None, aspect: str | None) -> list[Result]:
    of_item = results.of_item(item)
    if not of_item:
        some = ", ".join(dict.fromkeys(result.item for result in islice(results.read(), 20)))
        raise UsageError(f"no item {item!r} in this run; it has {some}, ...")
    chosen = [r for r in of_item if protocol in (None, r.protocol) and aspect in (None, r.aspect)]
    if not chosen:
        there = ", ".join(dict.fromkeys(" · ".join(filter(None, (r.protocol, r.aspect))) for r in of_item))
        raise UsageError(f"item {item!r} was judged by {there} only")
    return chosen


def _item_of(manifest: dict[str, Any], item: str) -> Item | None:
    """The texts of an item, where the data is still where the run found it."""
    data = manifest["data"]
    try:
        return find_item(load_again(data["name"], data["location"]), item)
    except JurygraphError:
        return None
