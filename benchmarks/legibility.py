"""Count properties that make the package's code easy or hard to navigate.

    python -m benchmarks.legibility [--functions]

From the source: files, lines and comments of each folder, names with several meanings, files that
are too long, and import cycles. From running a debate: the files and functions that it uses.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import io
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("state", "nodes", "graphs", "eval", "testing", "adapters")
LONGEST_FILE = 450
COMMANDS = Path("eval/cli")
"""A file there has the name of its command, which may be the name of a folder too."""


@dataclass(frozen=True)
class Module:
    """One source file.

    Attributes:
        path: relative to the root of the repository.
        text: its contents.
    """

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The dotted name; the ``__init__`` of a package has the package's name."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return ".".join(self.path.parts[:-1])

    @property
    def lines(self) -> int:
        """How long it is."""
        return self.text.count("\n")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text)

    @property
    def comments(self) -> int:
        """Lines with a comment that a person wrote for another, so none for a linter."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        words = [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]
        return sum(not word.startswith(("noqa", "type:", "pragma")) for word in words)

    @property
    def classes(self) -> list[str]:
        """The classes that it defines."""
        return [node.name for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]


def modules(root: Path = ROOT) -> dict[str, Module]:
    """All modules of the package's code, by name."""
    files = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py")))
    all_files = (Module(path.relative_to(root), path.read_text(encoding="utf-8")) for path in files)
    return {module.name: module for module in all_files}


def shared_module_names(all_modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Return names of several files, except ``__init__`` and commands of the command line."""
    places = defaultdict(list)
    for module in all_modules.values():
        if module.path.stem != "__init__" and module.path.parent != COMMANDS:
            places[module.path.stem].append(str(module.path))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def shared_class_names(
    all_modules: Mapping[str, Module], *, at_least: int = 3
) -> dict[str, list[str]]:
    """Return classes with the same name in this many files or more, including private ones."""
    places = defaultdict(set)
    for module in all_modules.values():
        for name in module.classes:
            places[name].add(str(module.path))
    return {name: sorted(paths) for name, paths in places.items() if len(paths) >= at_least}


def long_files(all_modules: Mapping[str, Module]) -> dict[str, int]:
    """Files above the limit, with their lines."""
    return {
        str(module.path): module.lines
        for module in all_modules.values()
        if module.lines > LONGEST_FILE
    }


def import_circles(all_modules: Mapping[str, Module]) -> list[list[str]]:
    """Return groups of modules that import each other, also indirectly or within functions."""
    arrows = {
        name: {target for target in _imports(module, all_modules) if target != name}
        for name, module in all_modules.items()
    }
    reached = {name: _reachable(name, arrows) for name in arrows}
    circles = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in arrows
        if name in reached[name]
    }
    return sorted(map(list, circles))


def _imports(module: Module, all_modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield the modules that a module imports, except for type checking only."""
    unseen = {
        id(node)
        for block in ast.walk(module.tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in unseen:
            continue
        parts = module.package.split(".")
        base = [*parts[: len(parts) - node.level + 1], *(node.module or "").split(".")]
        source = ".".join(filter(None, base))
        for alias in node.names:
            whole = f"{source}.{alias.name}".lstrip(".")
            if whole in all_modules or source in all_modules:
                yield whole if whole in all_modules else source


def _reachable(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    """Return all modules that an import leads to; the start itself only in a cycle."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for target in arrows[waiting.pop()] - reached:
            reached.add(target)
            waiting.append(target)
    return reached


@dataclass
class CallPath:
    """The functions of the package that a task uses.

    Attributes:
        entered: how often each function was entered, by file and name, in the order of first entry.
            A coroutine counts when it starts, not when it continues; comprehensions do not count.
        changes: how often a function of one file called one of another, skipping LangGraph's and
            other packages' calls between them.
    """

    entered: Counter[tuple[str, str]] = field(default_factory=Counter)
    changes: int = 0

    @property
    def files(self) -> list[str]:
        """The files, in the order in which they are reached."""
        return [*dict.fromkeys(file for file, _ in self.entered)]

    def times(self, function: str) -> int:
        """How often functions of this name were entered, a class before a dot left out."""
        return sum(
            times
            for (_, name), times in self.entered.items()
            if name.rpartition(".")[2] == function
        )


def debate_path() -> CallPath:
    """Run a debate of four calls with default settings and a scripted model; return its path.

    It is the second debate of its process, so that one-time loading does not count.
    """
    import jurygraph
    from jurygraph.graphs import debate
    from jurygraph.nodes.models.scripted_model import ScriptedModel

    def reply(metadata: Any, _prompt: str) -> str:
        if metadata["role"] == "critic":
            return (
                "NO ISSUE"
                if metadata["round"] == 2
                else "The year is wrong, and you overlooked it."
            )
        return "Fluent, but the year is off.\nScore: 3"

    graph = debate.build(models={"*": ScriptedModel(script=reply)}).compile()
    texts = {"source": "The bridge opened in 1932.", "candidate": "The bridge opened in 1923."}
    task = {"kind": "score", **texts, "aspect": "consistency"}
    # The package that is imported, which need not be the one in this repository.
    package = Path(jurygraph.__file__).resolve().parent
    path = CallPath()
    begun = set[FrameType]()
    names = dict[CodeType, str]()

    def file_of(frame: FrameType) -> str:
        """The file of a function of the package, from its root; empty for any other."""
        code = frame.f_code
        if code not in names:
            file = Path(code.co_filename).resolve()
            inside = file.is_relative_to(package) and file.relative_to(package).parts[0] in FOLDERS
            inside = inside and (not code.co_name.startswith("<") or code.co_name == "<lambda>")
            names[code] = file.relative_to(package).as_posix() if inside else ""
        return names[code]

    def count(frame: FrameType, event: str, _argument: object) -> None:
        # Python reports a coroutine each time it continues.
        if event != "call" or not (file := file_of(frame)) or frame in begun:
            return
        begun.add(frame)
        path.entered[file, frame.f_code.co_qualname] += 1
        caller = frame.f_back
        while caller is not None and not file_of(caller):
            caller = caller.f_back
        path.changes += caller is not None and file_of(caller) != file

    async def hold() -> None:
        await graph.ainvoke({"task": task})
        sys.setprofile(count)
        try:
            await graph.ainvoke({"task": task})
        finally:
            sys.setprofile(None)

    asyncio.run(hold())
    return path


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(
        description="Count what makes the package easy or hard to find one's way in."
    )
    parser.add_argument(
        "--functions",
        action="store_true",
        help="also list the functions that the debate goes through",
    )
    options = parser.parse_args()
    all_modules = modules()
    print(f"{'folder':24} {'files':>5} {'lines':>6} {'comments in 100 lines':>22}")
    folders = sorted({str(module.path.parent) for module in all_modules.values()})
    for folder in [*folders, ""]:
        inside = [
            module
            for module in all_modules.values()
            if not folder or str(module.path.parent) == folder
        ]
        lines = sum(module.lines for module in inside)
        comments = sum(module.comments for module in inside)
        print(f"{folder or 'all':24} {len(inside):5} {lines:6} {100 * comments / lines:22.1f}")
    for title, findings in (
        ("module names of several files", shared_module_names(all_modules)),
        ("class names of three files or more", shared_class_names(all_modules)),
        (f"files of more than {LONGEST_FILE} lines", long_files(all_modules)),
        ("circles of imports", {", ".join(circle): "" for circle in import_circles(all_modules)}),
    ):
        print(f"\n{title}: {len(findings)}")
        for name, places in findings.items():
            print(f"  {name}  {', '.join(places) if isinstance(places, list) else places}")
    path = debate_path()
    functions = path.entered.total()
    print(
        f"\na debate of four calls: {len(path.files)} files, {path.changes} changes of file, {functions} functions"
    )
    for file in path.files:
        entered = {name: times for (where, name), times in path.entered.items() if where == file}
        print(f"  {sum(entered.values()):4} {file}")
        if options.functions:
            print("".join(f"       {times:4} {name}\n" for name, times in entered.items()), end="")


if __name__ == "__main__":
    main()
