"""Count what makes the package easy or hard to find one's way in.

    python -m benchmarks.legibility

Files, lines and comments of each folder, names that stand for several things, files that are too long, and circles of
imports. It reads the source and imports nothing of it.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("state", "nodes", "graphs", "eval")
LONGEST_FILE = 450
COMMANDS = Path("eval/cli")
"""A file there is named after its command, and a command after what it shows, as a folder may be."""


@dataclass(frozen=True)
class Module:
    """One source file.

    Attributes:
        path: from the root of the repository.
        text: what stands in it.
    """

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The dotted name; that of a package's ``__init__`` is the package's."""
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
    found = (Module(path.relative_to(root), path.read_text(encoding="utf-8")) for path in files)
    return {module.name: module for module in found}


def shared_module_names(all_modules: Mapping[str, Module]) -> dict[str, list[str]]:
    """Names that several files bear, beside ``__init__`` and the commands of the command line."""
    places = defaultdict(list)
    for module in all_modules.values():
        if module.path.stem != "__init__" and module.path.parent != COMMANDS:
            places[module.path.stem].append(str(module.path))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def shared_class_names(all_modules: Mapping[str, Module], *, at_least: int = 3) -> dict[str, list[str]]:
    """Classes of one name in so many files or more, private ones included."""
    places = defaultdict(set)
    for module in all_modules.values():
        for name in module.classes:
            places[name].add(str(module.path))
    return {name: sorted(paths) for name, paths in places.items() if len(paths) >= at_least}


def long_files(all_modules: Mapping[str, Module]) -> dict[str, int]:
    """Files above the limit, with their lines."""
    return {str(one.path): one.lines for one in all_modules.values() if one.lines > LONGEST_FILE}


def import_circles(all_modules: Mapping[str, Module]) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others, in functions as well."""
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
    """The modules that one names in its imports, but for the type checker alone."""
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
    """All modules that an import leads to; the start itself only where it comes round again."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for target in arrows[waiting.pop()] - found:
            found.add(target)
            waiting.append(target)
    return found


def main() -> None:
    """Print the counts."""
    all_modules = modules()
    print(f"{'folder':24} {'files':>5} {'lines':>6} {'comments in 100 lines':>22}")
    folders = sorted({str(module.path.parent) for module in all_modules.values()})
    for folder in [*folders, ""]:
        inside = [one for one in all_modules.values() if not folder or str(one.path.parent) == folder]
        lines, comments = sum(one.lines for one in inside), sum(one.comments for one in inside)
        print(f"{folder or 'all':24} {len(inside):5} {lines:6} {100 * comments / lines:22.1f}")
    for title, found in (
        ("module names of several files", shared_module_names(all_modules)),
        ("class names of three files or more", shared_class_names(all_modules)),
        (f"files of more than {LONGEST_FILE} lines", long_files(all_modules)),
        ("circles of imports", {", ".join(circle): "" for circle in import_circles(all_modules)}),
    ):
        print(f"\n{title}: {len(found)}")
        for name, told in found.items():
            print(f"  {name}  {', '.join(told) if isinstance(told, list) else told}")


if __name__ == "__main__":
    main()
