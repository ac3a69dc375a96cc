"""The page of an experiment: its first screen, its tables, and the configurations of its runs."""

from __future__ import annotations

from dataclasses import replace

from ...nodes.common.plugins import installed_version
from ..results.experiment_result import StoredExperiment
from ..results.folder import read_manifest
from ..tables.screen import FirstScreen
from .labels import config_hash, shown_note
from .page import Page, PageOfDataset, Section, Table


def compose_experiment(stored: StoredExperiment, title: str) -> Page:
    """Compose the page of an experiment; ``write_page`` adds the debates of its runs.

    Args:
        stored: the result.
        title: the title of the window.
    """
    manifests = [read_manifest(folder) for folder in stored.runs]
    notes = dict.fromkeys(shown_note(str(of["note"])) for of in manifests if of.get("note"))
    signatures = {
        f"{name}: {signature}": str(signature)
        for manifest in manifests
        for name, signature in manifest["signatures"].items()
    }
    data = ", ".join(dict.fromkeys(str(manifest["data"]["name"]) for manifest in manifests))
    version = installed_version("jurygraph")
    sections = tuple(
        Section(f"table-{number}", grid.title, grid.title, parts=(Table(grid),))
        for number, grid in enumerate(stored.grids, start=1)
    )
    screen = _with_warnings(stored.screen, tuple(notes))
    return Page(
        title=title,
        subtitle=data or "No model was called.",
        datasets=(PageOfDataset("", "", screen, sections),),
        configs=tuple(f"#{config_hash(of)} {line}" for line, of in signatures.items()),
        made=f"Made with jurygraph {version}.",
        version=version,
    )


def _with_warnings(screen: FirstScreen, notes: tuple[str, ...]) -> FirstScreen:
    """Add the warnings about the judges that the screen does not have."""
    said = (*screen.warnings, *screen.others)
    missing = (note for note in notes if note not in said)
    return replace(screen, warnings=(*screen.warnings, *missing))
