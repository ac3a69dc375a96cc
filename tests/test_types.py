"""What pyright says: wrong protocols and settings fail, right ones pass, and both follow the settings classes.

What mypy says of the same two files is a check of its own, ``mypy tests``.
"""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import jurygraph
import pytest
from jurygraph.eval.judges import judge_options
from jurygraph.graphs import options
from jurygraph.graphs.registry import protocols
from jurygraph.state.settings.protocol_settings import AUTO, GROUPS, ROLES, SAME

HERE = Path(__file__).parent
FILES = ["types_that_must_fail.py", "types_that_must_pass.py"]
BUNDLED = {
    name: module.protocol for name, module in protocols().items() if name in get_args(options.ProtocolName)
}
# What callers may give in other forms than the one that settings keep.
IN_OTHER_FORMS = {"persona", "roles", "steps", "backgrounds", "of", "inner", "when"}
IN_OTHER_FORMS |= {"cheap", "cheap_settings", "expensive", "expensive_settings"}


def plain(hint: Any) -> Any:
    """A type without the bounds that pydantic checks."""
    return plain(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def options_of(name: str) -> dict[str, Any]:
    return get_type_hints(get_type_hints(options.RunSettings)[name])


def test_every_protocol_is_known_by_name() -> None:
    assert set(BUNDLED) == set(get_args(options.ProtocolName))
    assert {name for group in get_args(options.RoleName) for name in get_args(group)} == set(ROLES)
    assert set(get_args(options.RoleGroup)) == {*GROUPS, SAME, AUTO}


@pytest.mark.parametrize("name", BUNDLED)
def test_options_are_those_of_the_settings_class(name: str) -> None:
    fields = BUNDLED[name].settings.model_fields
    known = options_of(name)
    assert set(known) == {*fields, "model"} - {"models"}
    for field, hint in known.items():
        if field not in {*IN_OTHER_FORMS, "model"}:
            assert hint == plain(fields[field].annotation), field


@pytest.mark.parametrize("name", BUNDLED)
def test_a_judges_options_are_its_protocols_and_its_own(name: str) -> None:
    class_name = get_type_hints(options.RunSettings)[name].__name__.replace("Options", "Judge")
    judge = getattr(judge_options, class_name.replace("Common", "Baseline"))
    own = get_type_hints(judge_options.WithModels)
    assert set(get_type_hints(judge)) == {*options_of(name), *own}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyright") is None, reason="pyright is not installed")
def test_pyright_agrees(tmp_path: Path) -> None:
    # In this folder pyright finds the package by its name, however it is installed.
    assert (Path(jurygraph.__file__).parent / "py.typed").is_file(), "the package says that it is typed"
    (tmp_path / "jurygraph").symlink_to(Path(jurygraph.__file__).parent)
    for file in FILES:
        shutil.copy(HERE / file, tmp_path)
    config = {
        "include": FILES,
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
        # What LangGraph leaves open.
        "reportUnknownMemberType": "none",
        "reportMissingTypeStubs": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
