"""List protocols and datasets, draw graphs, and create protocols.

The commands are ``jurygraph protocols``, ``graph``, ``new-protocol`` and ``datasets``.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from string import Template

from rich.table import Column, Table
from rich.text import Text

from ...graphs.engine.registry import find_protocol, judge_of, protocol_names
from ...graphs.engine.registry import protocols as registered
from ...state.citations import Citation
from ...state.errors import UsageError
from ...state.settings import Settings
from ..datasets.catalog import HuggingFace, Source, dataset_names, find_source
from ..report.labels import LABELS
from .graph_drawing import drawing, mermaid
from .option_sets import argument, option
from .runtime import console, echo, settings_of

_NEW = {
    "{name}.py": "protocol.txt",
    "prompts/{name}/scorer.md": "scorer.txt",
    "test_{name}.py": "test.txt",
}
"""The files of a new protocol, and their templates."""


def graph(
    protocol: str = argument(
        "A protocol's name (see `protocols`), or a file: mine.py, mine.py:graph.", "PROTOCOL"
    ),
    settings: list[str] | None = option(
        "Setting of the protocol; write lists as JSON; repeatable.", "KEY=VALUE", name="--set"
    ),
    svg: Path | None = option("Write an SVG picture to this file.", "FILE"),
) -> None:
    """Draw a protocol's graph.

    Prints Mermaid text; with --svg, writes a picture.
    """
    chosen = settings_of(settings or [])
    if svg is None:
        echo(mermaid(protocol, chosen))
        return
    svg.write_text(drawing(protocol, chosen), encoding="utf-8")
    echo(f"wrote {svg}")


def protocols(
    file: str | None = argument(
        "A file with a protocol of your own, to list that one.", "FILE", default=None
    ),
    bibtex: bool = option("Print the papers' BibTeX entries instead.", default=False),
) -> None:
    """List the protocols with their settings and papers.

    The list has what each protocol judges, its roles and the defaults of its settings.
    """
    judge = None if file is None else judge_of(file)
    if judge is not None and not isinstance(judge, str):
        raise UsageError(f"{file}: its graph has no settings that a command could set")
    rows = []
    by_paper: dict[Citation, list[str]] = {}
    for name, module in (registered() if judge is None else {judge: find_protocol(judge)}).items():
        about = module.protocol
        if about.citation is not None:
            by_paper.setdefault(about.citation, []).append(name)
        facts = about.kinds, about.roles, _fields(about.settings, without=Settings.model_fields)
        rows.append((name, *map(", ".join, facts), f"{about.summary}; {about.source}"))
    if bibtex:
        if not by_paper:
            raise UsageError(
                f"{file}: its protocol has no `citation`, so there is no paper to cite"
            )
        echo("\n\n".join(paper.bibtex for paper in by_paper))
        return
    console().print_list(("protocol", "tasks", "roles", "settings (default)", "description"), rows)
    console().print(f"Every protocol also has the settings {', '.join(_fields(Settings))}.")
    for paper, names in by_paper.items():
        echo(f"{', '.join(names)}: {', '.join(filter(None, (paper.cite, paper.url)))}")
    if by_paper:
        echo("To cite the papers: jurygraph protocols --bibtex")


def new_protocol(
    name: str = argument("Name of the protocol, such as two_scorers.", "NAME"),
    folder: Path = option("Folder for the files.", "DIR", name="--in", default=Path()),
) -> None:
    """Create the files for a protocol of your own.

    These are a file that runs, a folder with its prompt, and a test that passes. Existing files are
    never changed.
    """
    if not name.isidentifier() or not name.islower():
        raise UsageError(
            f"{name!r} cannot name a protocol: use lower-case letters, digits and _, such as two_scorers"
        )
    if name in protocol_names():
        raise UsageError(f"there is already a protocol {name}: choose another name")
    written = {folder / path.format(name=name): source for path, source in _NEW.items()}
    if taken := [path for path in written if path.exists()]:
        raise UsageError(
            f"{taken[0]} exists already: choose another name, or another folder with --in"
        )
    for path, source in written.items():
        text = (Path(__file__).with_name("new_protocol_files") / source).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).safe_substitute(name=name), encoding="utf-8")
        console().print_line(f"wrote {path}")
    file, test = (
        shlex.quote(str(path)) for path in (folder / f"{name}.py", folder / f"test_{name}.py")
    )
    console().print_line(f"try it: jurygraph run {file},single --data demo --limit 5")
    console().print_line(f"test it (pip install pytest): pytest {test}")


def datasets(
    name: str | None = argument("Name of a dataset to describe.", "NAME", default=None),
) -> None:
    """List the named datasets, or describe one."""
    if name is not None:
        if (source := find_source(name)) is None:
            raise UsageError(f"unknown dataset {name!r}; datasets are {', '.join(dataset_names())}")
        # A long address continues on the next line: shortened, it would not work.
        table = Table.grid(Column(), Column(overflow="fold"), padding=(0, 2))
        for fact, text in _facts(source):
            table.add_row(Text(fact, style="bold"), Text(text))
        console().print(table)
        for paper in source.papers:
            echo(f"\n{paper.bibtex}")
        return
    rows = []
    for source in filter(None, map(find_source, dataset_names())):
        reference = (
            source.papers[0].cite if source.papers else "bundled" if source.file is None else ""
        )
        aspects = ", ".join(source.aspects or ("preference",))
        rows.append(
            (
                source.name,
                source.kind,
                source.size,
                aspects,
                source.scale,
                source.licence,
                reference,
            )
        )
    console().print_list(
        ("dataset", "task", "size", "aspects", "scale", "licence", "reference"), rows
    )
    published = "are downloaded (pip install 'jurygraph[hub]') or read from --data-dir"
    console().print(f"`jurygraph datasets NAME` describes one. Published datasets {published}.")


def _facts(source: Source) -> Iterator[tuple[str, str]]:
    yield source.name, source.summary
    yield "kind", source.kind
    yield "size", source.size
    if source.aspects:
        yield "aspects", ", ".join(source.aspects)
    yield "scale", source.scale
    yield "labels", LABELS[source.labels]
    yield "licence", source.terms or source.licence
    for paper in source.papers:
        yield "cite", f"{paper.cite}, {paper.title}"
    if source.file is not None:
        yield "home", "provided by another package"
    elif source.home is None:
        yield "home", "bundled"
    else:
        yield "home", source.home.address
        yield "files", "\n".join(source.forms[0].files)
        by_git = "each file's Git object id at that commit, whenever it is read"
        sha256 = source.home.sha256 if isinstance(source.home, HuggingFace) else None
        yield (
            "checksum",
            by_git if sha256 is None else "\n".join(f"SHA-256 {digest}" for digest in sha256),
        )
        yield (
            "local copy",
            f"--data-dir DIR with {source.wanted}, also as .gz, in DIR or DIR/{source.name}",
        )
    for quirk in source.quirks:
        yield "note", quirk


def _fields(settings: type[Settings], without: Collection[str] = ()) -> Iterator[str]:
    """Return each setting as its name with its default."""
    for name, field in settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        elif isinstance(default, bool):
            default = str(default).lower()
        if name not in without:
            yield name if default in (None, {}, "") else f"{name}={default}"
