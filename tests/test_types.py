"""Test pyright's errors: wrong protocols and settings fail, right ones pass.

Both follow the settings classes. ``mypy tests`` checks the same two files separately.
"""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, get_args

import jurygraph
import pytest
from jurygraph.graphs.engine import options
from jurygraph.graphs.engine.registry import protocols
from jurygraph.state.settings.option_types import TypedAs
from jurygraph.state.settings.protocol_settings import AUTO, GROUPS, ROLES, SAME

from .source_tree import imported

HERE = Path(__file__).parent
FILES = ["types_that_must_fail.py", "types_that_must_pass.py"]
BUNDLED = {
    name: module.protocol
    for name, module in protocols().items()
    if name in get_args(options.ProtocolName)
}


def test_every_protocol_is_known_by_name() -> None:
    assert set(BUNDLED) == set(get_args(options.ProtocolName))
    assert {name for group in get_args(options.RoleName) for name in get_args(group)} == set(ROLES)
    assert set(get_args(options.RoleGroup)) == {*GROUPS, SAME, AUTO}


def test_options_are_written_from_the_settings_classes() -> None:
    make_options = imported("benchmarks/make_options.py")
    for file, text in make_options.all_files().items():
        assert make_options.is_same_code(file, text), (
            f"{file}: run python -m benchmarks.make_options"
        )


def test_a_setting_of_unknown_type_needs_a_mark() -> None:
    make_options = imported("benchmarks/make_options.py")
    assert make_options.type_code(Annotated[list[int], TypedAs("Sequence[int]")]) == "Sequence[int]"
    with pytest.raises(TypeError, match="TypedAs"):
        make_options.type_code(list[int])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyright") is None, reason="pyright is not installed")
def test_pyright_agrees(tmp_path: Path) -> None:
    # In this folder pyright finds the package by its name, however it is installed.
    assert (Path(jurygraph.__file__).parent / "py.typed").is_file(), (
        "the package says that it is typed"
    )
    (tmp_path / "jurygraph").symlink_to(Path(jurygraph.__file__).parent)
    for file in FILES:
        shutil.copy(HERE / file, tmp_path)
    config = {
        "include": FILES,
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
        # Left open by LangGraph.
        "reportUnknownMemberType": "none",
        "reportMissingTypeStubs": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
