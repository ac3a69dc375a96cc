"""The command line: ``jurygraph run``, ``show``, ``graph``, ``protocols``, ``datasets``."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..state.errors import JurygraphError, UsageError
from ..state.settings import ModelSpec, Settings
from . import drawing
from .datasets import MAX_CHARACTERS, SOURCES, Item, explain, load_dataset
from .manifest import read_manifest
from .plan import Plan, plan
from .progress import LiveProgress
from .reading import debates_view, head, item_view
from .results import Result, ResultsFile
from .runner import Evaluation, carry_out
from .tables import agreement_tables, overview_table

ALL_JUDGED, SOME_FAILED, BAD_USAGE, INTERRUPTED = 0, 3, 2, 130
SHOWN_FAILURES = 10
PIPED_WIDTH = 120

app = typer.Typer(
    help="Juries of language models that debate before they judge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def main() -> NoReturn:
    """Entry point: errors that the caller can mend are told in a line, not in a traceback."""
    try:
        app(prog_name="jurygraph")
    except JurygraphError as error:
        _fail(str(error))
    except ValidationError as error:
        _fail(explain(error))
    except BrokenPipeError:
        # Whoever reads our output has seen enough (``| head``).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    sys.exit(ALL_JUDGED)


@app.command()
def run(
    protocols: Annotated[str, typer.Argument(help="One protocol, or several with commas between.")],
    data: Annotated[str, typer.Option(help="A dataset's name (see `datasets`), or a JSONL or CSV file.")],
    aspect: Annotated[
        list[str] | None, typer.Option(help="An aspect's name or a YAML file; default: all that have labels.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The model of all roles, such as openai:gpt-4o-mini.")
    ] = None,
    role_model: Annotated[
        list[str] | None, typer.Option(metavar="ROLE=NAME", help="The model of one role.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of the protocol.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge the first so many items only.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Judge everything so many times.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Model calls in flight.")] = 16,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; the same one again resumes.")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with a published dataset's files.")] = None,
    max_chars: Annotated[
        int, typer.Option(min=1, help="The longest text that an item may have.")
    ] = MAX_CHARACTERS,
) -> None:
    """Judge a dataset: results.jsonl, run.json and a table of agreement with people."""
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    prepared = plan(
        names,
        load_dataset(data, data_dir, max_characters=max_chars),
        aspects=aspect or [],
        settings=_settings(settings or []),
        models=_models(model, role_model or []),
        limit=limit,
        repeats=repeats,
        out=out or _default_out(names, data),
    )
    console = _console()
    evaluation = _carry_out(prepared, concurrency, console)
    _print_evaluation(console, evaluation)
    raise typer.Exit(SOME_FAILED if evaluation.failed else ALL_JUDGED)


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a run.")],
    item: Annotated[str, typer.Argument(help="The id of an item.")],
    protocol: Annotated[str | None, typer.Option(help="This protocol's debate only.")] = None,
    aspect: Annotated[str | None, typer.Option(help="This aspect's debate only.")] = None,
) -> None:
    """Print the debates on one item, beside each other and beside people's score."""
    manifest = read_manifest(folder)
    results = ResultsFile(folder).read()
    chosen = _chosen(results, item, protocol, aspect)
    console = _console()
    for part in head(manifest):
        console.print(part)
    texts = _item_of(manifest, item)
    for part in item_view(texts) if texts else ():
        console.print(part)
    console.print(debates_view(chosen, console.width))


@app.command()
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


@app.command()
def protocols() -> None:
    """List the protocols: what they judge, their roles and settings."""
    from ..graphs.registry import protocols as registered

    table = Table("protocol", "judges", "roles", "settings (default)", "what it does", show_lines=True)
    for name, module in registered().items():
        about = module.protocol
        own = _fields(about.settings, without=Settings.model_fields)
        does = f"{about.summary}; {about.source}"
        table.add_row(name, "\n".join(about.kinds), "\n".join(about.roles), own, does)
    table.caption = f"all have the settings {', '.join(_fields(Settings).splitlines())}"
    table.caption_justify = "left"
    _console().print(table)


@app.command()
def datasets() -> None:
    """List the datasets that have a name."""
    table = Table("dataset", "kind", "labels", "what it is", "where it comes from")
    for source in SOURCES.values():
        origin = "a local folder (--data-dir)" if source.rows else "bundled"
        table.add_row(source.name, source.kind, source.labels, source.summary, origin)
    _console().print(table)


def _console() -> Console:
    """Where results are printed; wide enough for the tables where it is no terminal."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=PIPED_WIDTH)


def _fail(message: str) -> NoReturn:
    Console(stderr=True).print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    sys.exit(BAD_USAGE)


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Settings by name; ``inner.n=2`` sets one of those that a setting holds."""
    settings: dict[str, Any] = {}
    for key, value in (_pair(pair, "--set KEY=VALUE") for pair in pairs):
        *outer, name = key.split(".")
        held = settings
        for part in outer:
            held = held.setdefault(part, {})
            if not isinstance(held, dict):
                raise UsageError(f"--set {key}={value}: {part} was given as a whole before; give one of them")
        held[name] = value
    return settings


def _models(everybody: str | None, pairs: list[str]) -> dict[str, ModelSpec]:
    named = {"*": everybody} if everybody else {}
    named.update(_pair(pair, "--role-model ROLE=NAME") for pair in pairs)
    return {role: ModelSpec.parse(name) for role, name in named.items()}


def _pair(text: str, form: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not of the form {form}")
    return key.strip(), value


def _default_out(protocols: list[str], data: str) -> Path:
    stem = Path(data).name.split(".")[0]
    return Path("runs") / f"{'-'.join(protocols)}-{stem}-{datetime.now():%Y%m%d-%H%M%S}"


def _carry_out(prepared: Plan, concurrency: int, console: Console) -> Evaluation:
    for part in head(prepared.manifest):
        console.print(part)
    try:
        with LiveProgress(Console(stderr=True)) as progress:
            return asyncio.run(carry_out(prepared, concurrency, progress))
    except KeyboardInterrupt:
        console.print(
            f"interrupted; what is done is kept. The same command with --out {prepared.folder} goes on."
        )
        sys.exit(INTERRUPTED)


def _print_evaluation(console: Console, evaluation: Evaluation) -> None:
    console.print(overview_table(evaluation))
    for table in agreement_tables(evaluation):
        console.print(table)
    for signature in evaluation.manifest["signatures"].values():
        console.print(Text(signature, style="dim"), soft_wrap=True)
    for result in evaluation.failed[:SHOWN_FAILURES]:
        what = " · ".join(filter(None, (result.item, result.aspect, result.protocol)))
        console.print(Text.assemble((f"failed: {what}: ", "red"), (result.error or "")[:600]), soft_wrap=True)
    if len(evaluation.failed) > SHOWN_FAILURES:
        console.print(f"... and {len(evaluation.failed) - SHOWN_FAILURES} more, see {evaluation.folder}")
    example = _most_worth_reading(evaluation.results)
    console.print(f"results: {evaluation.folder}/results.jsonl, run.json")
    console.print(f"read a debate: {_program()} show {evaluation.folder} {example.item}", soft_wrap=True)


def _program() -> str:
    """The program as its user can call it again: by its name, or by the path it was called with."""
    return "jurygraph" if shutil.which("jurygraph") else sys.argv[0]


def _most_worth_reading(results: tuple[Result, ...]) -> Result:
    """The longest debate that changed its score."""
    return max(results, key=lambda r: (len(set(r.score_by_round)) > 1, r.rounds or 0))


def _chosen(results: list[Result], item: str, protocol: str | None, aspect: str | None) -> list[Result]:
    of_item = [result for result in results if result.item == item]
    if not of_item:
        some = ", ".join(list(dict.fromkeys(result.item for result in results))[:5])
        raise UsageError(f"no item {item!r} in this run; it has {some}, ...")
    chosen = [r for r in of_item if protocol in (None, r.protocol) and aspect in (None, r.aspect)]
    if not chosen:
        there = ", ".join(dict.fromkeys(" · ".join(filter(None, (r.protocol, r.aspect))) for r in of_item))
        raise UsageError(f"item {item!r} was judged by {there} only")
    return chosen


def _item_of(manifest: dict[str, Any], item: str) -> Item | None:
    """The texts of an item, where the data is still where the run found it."""
    data = manifest["data"]
    source = SOURCES.get(data["name"])
    try:
        where = Path(data["location"])
        name, folder = (data["name"], where.parent) if source else (where, None)
        found = load_dataset(name, folder, max_characters=sys.maxsize)
    except JurygraphError:
        return None
    return next((candidate for candidate in found.items if candidate.id == item), None)


def _fields(settings: type[Settings], without: Collection[str] = ()) -> str:
    fields = {name: field for name, field in settings.model_fields.items() if name not in without}
    return "\n".join(_field(name, field) for name, field in fields.items())


def _field(name: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    if default in (None, {}, ()):
        return name
    shown = ",".join(default) if isinstance(default, tuple) else str(default)
    return f"{name}={shown.lower() if isinstance(default, bool) else shown}"
