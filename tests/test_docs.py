"""Test that the documentation's examples work: doctests, code, links, JSON, commands."""

import ast
import asyncio
import doctest
import importlib.util
import inspect
import json
import math
import pkgutil
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import jurygraph
import pytest
import typer
from jurygraph.eval.cli.app import app
from jurygraph.graphs.engine.registry import protocols
from jurygraph.state.protocols import total
from typer.main import get_command

from .source_tree import ROOT, imported

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FRACTION = re.compile(r"\d+\.\d+(?:e[+-]?\d+)?")
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+) *(?P<language>[\w-]*)[^\n]*$")
SOURCE = re.compile(
    r"\b(?:state|nodes|graphs|eval|testing|tests|benchmarks|docs)/[\w/]+\.(?:py|md|ipynb)\b"
)
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|(?:href|src)=\"([^\"]+)\"")


class LastDigitsMayDiffer(doctest.OutputChecker):
    """Accepts fractions that are close; everything else must be equal."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        wanted = FRACTION.findall(want)
        gotten = FRACTION.findall(got)
        if len(wanted) == len(gotten) and all(
            math.isclose(float(one), float(other), rel_tol=1e-12)
            for one, other in zip(wanted, gotten, strict=True)
        ):
            want = FRACTION.sub("_._", want)
            got = FRACTION.sub("_._", got)
        return super().check_output(want, got, optionflags)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str


def modules() -> list[str]:
    infos = pkgutil.walk_packages(jurygraph.__path__, "jurygraph.")
    specs = [
        importlib.util.find_spec("jurygraph"),
        *(importlib.util.find_spec(info.name) for info in infos),
    ]
    return [
        spec.name
        for spec in specs
        if spec and ">>> " in Path(spec.origin or "").read_text(encoding="utf-8")
    ]


def blocks(page: Path) -> Iterator[Block]:
    lines = iter(enumerate(page.read_text(encoding="utf-8").split("\n"), start=1))
    for number, line in lines:
        if opening := FENCE.match(line):
            inside = []
            for _, text in lines:
                if text.strip() == opening["fence"]:
                    break
                inside.append(text.removeprefix(opening["indent"]))
            yield Block(page, number, opening["language"], "\n".join(inside))


def prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text, "") if block.text else text
    return re.sub(r"`[^`\n]*`", "``", text)


def all_blocks(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


def where(value: Path | Block) -> str:
    if isinstance(value, Path):
        return value.relative_to(ROOT).as_posix()
    return f"{where(value.page)}:{value.line}"


@pytest.mark.parametrize("name", modules())
def test_doctests(name: str) -> None:
    runner = doctest.DocTestRunner(LastDigitsMayDiffer())
    for test in doctest.DocTestFinder(exclude_empty=True).find(import_module(name)):
        assert runner.run(test).failed == 0, test.name
    assert runner.tries > 0


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's blocks in order, in one namespace, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            run(block, namespace)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_shown_output_is_what_a_block_prints(
    page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = 0
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block, following in pairwise(blocks(ROOT / page)):
        if block.language != "python":
            continue
        run(block, namespace)
        printed = capsys.readouterr().out
        if following.language == "text":
            assert printed.split() == following.text.split()
            shown += 1
    assert shown == 2


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Run a block; one with await runs on its own event loop."""
    source = "\n" * block.line + block.text
    code = compile(source, where(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, namespace))
    else:
        exec(code, namespace)


@pytest.mark.parametrize("page", PAGES, ids=where)
def test_what_a_page_links_to_and_names_is_there(page: Path) -> None:
    """Check paths in prose and drawings, except those of a walk-through's protocol."""
    links = [one or other for one, other in LINK.findall(prose(page))]
    assert [link for link in links if not _leads_somewhere(page, link)] == []
    named = set(SOURCE.findall(page.read_text(encoding="utf-8")))
    assert (
        sorted(path for path in named if "mean_" not in path and not (ROOT / path).exists()) == []
    )


def test_every_test_that_a_page_names_is_in_its_file() -> None:
    named = [
        (name, file)
        for page in PAGES
        for name, file in re.findall(
            r"\[`(test_\w+)`\]\(\.\./(tests/\w+\.py)\)", page.read_text(encoding="utf-8")
        )
    ]
    assert len(named) >= 10
    assert [
        name for name, file in named if f"def {name}(" not in (ROOT / file).read_text("utf-8")
    ] == []


def _leads_somewhere(page: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not (target.exists() and target.is_relative_to(ROOT)):
        return False
    return not anchor or target.suffix != ".md" or anchor in _anchors(target)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    names = re.findall(r"(?:id|name)=\"([^\"]+)\"", prose(page))
    slugs = {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }
    return slugs | set(names)


def test_every_protocol_has_a_page_with_its_facts_on_the_site() -> None:
    pytest.importorskip("mkdocs")
    hooks: Any = imported("docs/hooks.py")
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for name, module in protocols().items():
        page = (ROOT / "docs" / "protocols" / f"{name}.md").read_text(encoding="utf-8")
        assert {("drawing", name), ("facts", name)} <= set(hooks.MARK.findall(page))
        assert f"protocols/{name}.md" in menu
        facts = hooks.facts(module.protocol)
        assert [
            setting for setting in module.protocol.settings.names() if setting not in facts
        ] == []
        for kind in module.protocol.kinds:
            calls = module.protocol.calls(module.build().bound_judge.bound, kind, lambda *_: False)
            assert f"| {kind} | {hooks.span(total(calls.values()))} |" in facts


@pytest.mark.parametrize("block", all_blocks("json", "jsonl"), ids=where)
def test_json_blocks_parse(block: Block) -> None:
    for part in block.text.splitlines() if block.language == "jsonl" else [block.text]:
        json.loads(part)


def command_lines() -> list[Any]:
    """Return the calls of ``jurygraph`` in shell blocks, anywhere in a line."""
    found = []
    for block in all_blocks("bash", "sh", "shell", "console"):
        for line in block.text.replace("\\\n", " ").split("\n"):
            for part in re.split(r" (?:&&|\|\|?|;) ", line.removeprefix("$ ")):
                if call := re.match(r"\s*(?:\w+=\S* )*(?:\S*/)?jurygraph(?: (.*))?$", part):
                    found.append(pytest.param(call[1] or "", id=f"{where(block)} {part.strip()}"))
    return found


@pytest.mark.parametrize("line", command_lines())
def test_command_lines_can_be_parsed(line: str) -> None:
    parse(line)


def parse(line: str) -> None:
    """Parse the arguments of ``jurygraph`` in a command line, without executing it."""
    words = shlex.split(re.sub(r" \d?>>? ?\S+", "", line), comments=True) or ["--help"]
    group: Any = get_command(app)
    if words[0] == "--help":
        return
    context = typer.Context(group)
    name, command, rest = group.resolve_command(context, words)
    with suppress(typer.Exit), command.make_context(name, rest):
        pass


def test_every_design_decision_is_short_listed_and_has_its_three_parts() -> None:
    pages = sorted(
        path for path in (ROOT / "docs" / "design").glob("*.md") if path.name != "index.md"
    )
    assert pages
    index = (ROOT / "docs" / "design" / "index.md").read_text(encoding="utf-8")
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [
            "Context",
            "Decision",
            "Consequences",
        ], page.name
        assert 20 <= len(text.splitlines()) <= 40, page.name
        assert f"]({page.name})" in index
        assert f"design/{page.name}" in menu
