"""Begin a protocol of one's own: the command ``jurygraph new-protocol``."""

from __future__ import annotations

import shlex
from pathlib import Path
from string import Template

from ...graphs.registry import protocol_names
from ...state.errors import UsageError
from .option_sets import argument, option
from .runtime import console

_FILES = {"{name}.py": "protocol.txt", "prompts/{name}/scorer.md": "scorer.txt", "test_{name}.py": "test.txt"}
"""The files of a new protocol, and what each is made of."""


def new_protocol(
    name: str = argument("Name of the protocol, such as two_scorers.", "NAME"),
    folder: Path = option("Folder for the files.", "DIR", name="--in", default=Path()),
) -> None:
    """Create a protocol of your own: a file that runs, a folder with its prompt, and a test that passes.

    Existing files are never changed.
    """
    if not name.isidentifier() or not name.islower():
        remedy = "use lower-case letters, digits and _, such as two_scorers"
        raise UsageError(f"{name!r} cannot name a protocol: {remedy}")
    if name in protocol_names():
        raise UsageError(f"there is already a protocol {name}: choose another name")
    written = {folder / path.format(name=name): source for path, source in _FILES.items()}
    if taken := [path for path in written if path.exists()]:
        raise UsageError(f"{taken[0]} exists already: choose another name, or another folder with --in")
    for path, source in written.items():
        text = (Path(__file__).with_name("new_protocol_files") / source).read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).safe_substitute(name=name), encoding="utf-8")
        console().print_line(f"wrote {path}")
    file, test = (shlex.quote(str(path)) for path in (folder / f"{name}.py", folder / f"test_{name}.py"))
    console().print_line(f"try it: jurygraph run {file},single --data demo --limit 5")
    console().print_line(f"test it (pip install pytest): pytest {test}")
